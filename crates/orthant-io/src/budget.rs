//! How much memory reading a file may take.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};

use crate::error::Error;

/// Counts the memory that is taken while a file is read. What would go beyond the limit is an error before it is taken.
#[derive(Debug)]
pub(crate) struct Budget {
    path: String,
    limit: Option<u64>,
    used: Cell<u64>,
}

impl Budget {
    pub(crate) fn new(path: &str, limit: Option<u64>) -> Self {
        Budget { path: path.to_owned(), limit, used: Cell::new(0) }
    }

    /// What may still be taken.
    pub(crate) fn left(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.used.get()))
    }

    /// The error of a file that takes too much.
    pub(crate) fn exceeded(&self) -> Error {
        Error::TooLarge { path: self.path.clone(), limit: self.limit }
    }

    /// An error if so much may not be taken.
    pub(crate) fn check(&self, bytes: u64) -> Result<(), Error> {
        if bytes > self.left() { Err(self.exceeded()) } else { Ok(()) }
    }

    /// An error if so much may not be taken at once, or if the machine does not have it: for code of others, which
    /// would end the process.
    pub(crate) fn probe(&self, bytes: u64) -> Result<(), Error> {
        self.check(bytes)?;
        let bytes = usize::try_from(bytes).map_err(|_| self.no_memory())?;
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| self.no_memory())
    }

    pub(crate) fn take(&self, bytes: usize) -> Result<(), Error> {
        self.check(bytes as u64)?;
        self.used.set(self.used.get().saturating_add(bytes as u64));
        Ok(())
    }

    /// Memory that was taken is free again.
    pub(crate) fn give(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes as u64));
    }

    /// Makes room for more elements. Vectors grow by doubling, and by less as the limit comes near.
    pub(crate) fn reserve<T>(&self, vector: &mut Vec<T>, more: usize) -> Result<(), Error> {
        let free = vector.capacity() - vector.len();
        if free >= more {
            return Ok(());
        }
        let size = size_of::<T>().max(1);
        let half = usize::try_from(self.left() / (2 * size as u64)).unwrap_or(usize::MAX);
        let more = more.max(vector.capacity().min(half));
        let before = vector.capacity();
        let bytes = (more - free).checked_mul(size).ok_or_else(|| self.exceeded())?;
        self.check(bytes as u64)?;
        vector.try_reserve_exact(more).map_err(|_| self.no_memory())?;
        self.take((vector.capacity() - before) * size)
    }

    /// A vector with room for so many elements.
    pub(crate) fn vector<T>(&self, length: usize) -> Result<Vec<T>, Error> {
        let mut vector = Vec::new();
        self.reserve(&mut vector, length)?;
        Ok(vector)
    }

    pub(crate) fn push<T>(&self, vector: &mut Vec<T>, element: T) -> Result<(), Error> {
        self.reserve(vector, 1)?;
        vector.push(element);
        Ok(())
    }

    /// Adds a cell of text.
    pub(crate) fn push_cell(&self, cells: &mut Vec<String>, cell: String) -> Result<(), Error> {
        // What allocators take for themselves.
        const OVERHEAD: usize = 16;
        if cell.capacity() > 0 {
            self.take(cell.capacity() + OVERHEAD)?;
        }
        self.push(cells, cell)
    }

    /// All that a reader yields.
    pub(crate) fn slurp(&self, mut reader: impl Read) -> Result<Vec<u8>, Error> {
        const CHUNK: usize = 1 << 16;
        let mut bytes = Vec::new();
        loop {
            self.reserve(&mut bytes, CHUNK)?;
            let room = (bytes.capacity() - bytes.len()) as u64;
            let read = (&mut reader).take(room).read_to_end(&mut bytes);
            if read.map_err(|source| self.error(source))? < CHUNK {
                return Ok(bytes);
            }
        }
    }

    /// A reader that fails where more is read than may be taken, counted from the last [`Limited::restart`].
    pub(crate) fn limit<R: Read>(&self, reader: R) -> Limited<R> {
        Limited { reader, left: self.left(), limit: self.limit }
    }

    /// The error of a reader that [`Budget::limit`] made, or of any other.
    pub(crate) fn error(&self, source: io::Error) -> Error {
        let exceeded =
            source.get_ref().and_then(|inner| inner.downcast_ref::<Exceeded>()).is_some();
        match source.kind() {
            _ if exceeded => self.exceeded(),
            io::ErrorKind::OutOfMemory => self.no_memory(),
            _ => Error::read(&self.path, source),
        }
    }

    fn no_memory(&self) -> Error {
        Error::TooLarge { path: self.path.clone(), limit: None }
    }
}

/// Marks the end of what may be read.
#[derive(Debug)]
struct Exceeded;

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too large")
    }
}

impl std::error::Error for Exceeded {}

/// A reader that yields so much and no more.
#[derive(Debug)]
pub(crate) struct Limited<R> {
    reader: R,
    left: u64,
    limit: Option<u64>,
}

impl<R> Limited<R> {
    /// Allows for so much from now on.
    pub(crate) fn restart(&mut self, left: u64) {
        self.left = left;
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if self.limit.is_some() {
            self.left = match self.left.checked_sub(read as u64) {
                Some(left) => left,
                None => return Err(io::Error::other(Exceeded)),
            };
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_grow_to_the_limit_and_not_beyond() {
        let budget = Budget::new("a", Some(1000));
        let mut vector: Vec<u64> = Vec::new();
        let mut reached = 0;
        while budget.push(&mut vector, 7).is_ok() {
            reached += 1;
        }
        assert!((120..=125).contains(&reached), "{reached}");
        assert!(vector.capacity() <= 125);
        assert!(matches!(
            budget.push(&mut vector, 7),
            Err(Error::TooLarge { limit: Some(1000), .. })
        ));
        let free = Budget::new("a", None);
        assert!(matches!(free.vector::<u64>(1 << 58), Err(Error::TooLarge { limit: None, .. })));
        assert!(free.vector::<u64>(usize::MAX).is_err());
    }

    #[test]
    fn readers_end_at_the_limit() {
        let budget = Budget::new("a", Some(1 << 20));
        assert!(matches!(budget.slurp(io::repeat(0)), Err(Error::TooLarge { .. })));
        let budget = Budget::new("a", Some(1 << 20));
        let bytes = vec![3; 70_000];
        assert_eq!(budget.slurp(&bytes[..]).unwrap(), bytes);
        let mut limited = budget.limit(io::repeat(0));
        let error = io::copy(&mut limited, &mut io::sink()).unwrap_err();
        assert!(budget.error(error).is_resource());
    }
}
