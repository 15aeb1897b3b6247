//! Files of JSON Lines that are added to, line by line, and read again after the program was stopped.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::checksum::Checksum;
use crate::error::Error;

/// What every line ends with: the checksum of what comes before.
const MARK: &str = ",\"check\":\"";
const END: &str = "\"}";
/// Digits of a checksum.
const DIGITS: usize = 16;

/// A file of JSON objects, one a line, each with a checksum in its last key, `check`.
///
/// A line counts when it has its end; what a program that was stopped has left of one is cut off when the file is
/// opened again. A line whose checksum is not that of its text is an error that names the line.
///
/// ```
/// use orthant_io::Journal;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("pairs.jsonl");
/// let (mut journal, earlier) = Journal::open(&path)?;
/// assert!(earlier.is_empty());
/// journal.add(r#"{"pair":[1,2],"value":0.5}"#)?;
///
/// let (_, earlier) = Journal::open(&path)?;
/// assert_eq!(earlier, [r#"{"pair":[1,2],"value":0.5}"#]);
///
/// // A digit that somebody changed is found.
/// std::fs::write(&path, std::fs::read_to_string(&path)?.replace("0.5", "0.6"))?;
/// assert!(Journal::open(&path).unwrap_err().to_string().contains("line 1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Journal {
    path: String,
    file: File,
}

impl Journal {
    /// Opens a file, or makes it: also the objects that are there, without their checksums.
    pub fn open(path: &Path) -> Result<(Self, Vec<String>), Error> {
        let name = path.display().to_string();
        let failed = |reason| Error::Write { path: name.clone(), reason };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let (lines, end) = parse_journal(&name, &bytes)?;
        file.set_len(end as u64).map_err(failed)?;
        file.seek(SeekFrom::Start(end as u64)).map_err(failed)?;
        Ok((Journal { path: name, file }, lines))
    }

    /// Adds an object, and does not come back before it is with the system.
    pub fn add(&mut self, object: &str) -> Result<(), Error> {
        let line = format!("{}\n", sealed(object).map_err(|reason| self.failed(reason))?);
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(|reason| self.failed(reason))
    }

    fn failed(&self, reason: io::Error) -> Error {
        Error::Write { path: self.path.clone(), reason }
    }
}

/// An object with its checksum.
fn sealed(object: &str) -> io::Result<String> {
    match object.strip_suffix('}') {
        Some(open) if open.len() > 1 && !object.contains('\n') => {
            Ok(format!("{open}{MARK}{}{END}", Checksum::of(object.as_bytes())))
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a line must be a JSON object with keys",
        )),
    }
}

/// The objects in the complete lines of a [`Journal`], without their checksums, and where these lines end.
pub fn parse_journal(path: &str, bytes: &[u8]) -> Result<(Vec<String>, usize), Error> {
    let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let mut lines = Vec::new();
    for (number, line) in bytes[..end].split(|b| *b == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let object = unsealed(line)
            .ok_or_else(|| Error::Journal { path: path.to_owned(), line: number as u64 + 1 })?;
        lines.push(object);
    }
    Ok((lines, end))
}

/// The object of a line, if its checksum is right.
fn unsealed(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix(END)?;
    let (line, check) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
    let object = format!("{}}}", line.strip_suffix(MARK)?);
    (Checksum::of(object.as_bytes()).to_string() == check).then_some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_found() {
        let objects = [r#"{"a":1}"#, r#"{"b":"two, \"three\"","c":[1.5e-7]}"#];
        let text: String = objects.iter().map(|o| sealed(o).unwrap() + "\n").collect();
        assert_eq!(
            parse_journal("f", text.as_bytes()).unwrap(),
            (objects.map(str::to_owned).to_vec(), text.len())
        );
        for at in 0..text.len() - 1 {
            for change in [1, 0x20, 0x80] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= change;
                // A line that is cut in two is no line either.
                assert!(parse_journal("f", &bytes).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn what_was_cut_off_is_left_out() {
        let text = sealed(r#"{"a":1}"#).unwrap() + "\n{\"b\":2,\"che";
        let (lines, end) = parse_journal("f", text.as_bytes()).unwrap();
        assert_eq!((lines.len(), end), (1, text.find('\n').unwrap() + 1));
        assert!(parse_journal("f", b"").unwrap().0.is_empty());
        assert!(sealed("{}").is_err() && sealed("{\"a\":\n1}").is_err() && sealed("1").is_err());
    }
}
