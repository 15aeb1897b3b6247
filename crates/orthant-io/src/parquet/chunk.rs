//! The bytes of one column of a row group, where a reader of the whole file would look for them.

use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// A piece of a file that is in memory.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    /// Where it begins in the file.
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

impl Chunk {
    /// What is there from a place in the file on, if that is inside.
    fn from(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let at = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| Some((at, at.checked_add(length)?))) {
            Some((_, end)) if end > self.bytes.len() => {
                Err(ParquetError::EOF("beyond the column".to_owned()))
            }
            Some((at, _)) => Ok(self.bytes.slice(at..)),
            None => Err(ParquetError::General("outside of the column".to_owned())),
        }
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

impl ChunkReader for Chunk {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start, 0)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(self.from(start, length)?.slice(..length))
    }
}
