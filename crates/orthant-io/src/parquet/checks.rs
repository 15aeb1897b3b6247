//! What a Parquet file claims, checked before memory is taken for it.
//!
//! The crate that decodes the pages believes the sizes that the file states, and a file may state any.

use std::io::{self, Read};

use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;

use super::chunk::Chunk;
use super::thrift::{Cursor, Wire};
use crate::budget::Budget;
use crate::error::Error;

/// Schemas deeper than this belong to no table.
const DEEPEST_SCHEMA: usize = 100;

/// Whether the schema in the footer of a file is one: groups have as many members as they claim, and do not nest
/// without end.
pub(super) fn footer_is_sound(footer: &[u8]) -> bool {
    let mut cursor = Cursor::new(footer);
    let mut sound = true;
    let walked = cursor.fields(|cursor, field, wire| {
        if field != 2 || wire != Wire::List {
            return Some(false);
        }
        let (wire, size) = cursor.list()?;
        if wire != Wire::Struct {
            return None;
        }
        // How many members the groups around the next element still have to come.
        let mut open = Vec::new();
        for _ in 0..size {
            let mut members = 0;
            cursor.fields(|cursor, field, wire| match (field, wire) {
                (5, Wire::Integer) => {
                    members = cursor.integer()?;
                    Some(true)
                }
                _ => Some(false),
            })?;
            while open.last() == Some(&0) {
                open.pop();
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            match usize::try_from(members) {
                Ok(members) if members <= size && open.len() < DEEPEST_SCHEMA => open.push(members),
                _ => sound = false,
            }
        }
        Some(true)
    });
    walked.is_some() && sound
}

/// What the header of a page says.
#[derive(Debug, Default)]
struct Header {
    uncompressed: i64,
    compressed: i64,
    /// Bytes before the compressed data, in the second version of pages.
    levels: i64,
    /// The page says that it is not compressed.
    plain: bool,
}

impl Header {
    fn read(cursor: &mut Cursor<'_>) -> Option<Header> {
        let mut header = Header::default();
        cursor.fields(|cursor, field, wire| {
            match (field, wire) {
                (2, Wire::Integer) => header.uncompressed = cursor.integer()?,
                (3, Wire::Integer) => header.compressed = cursor.integer()?,
                (8, Wire::Struct) => cursor.fields(|cursor, field, wire| {
                    match (field, wire) {
                        (5 | 6, Wire::Integer) => {
                            header.levels += cursor.integer()?.clamp(0, 1 << 31);
                        }
                        (7, Wire::False) => header.plain = true,
                        _ => return Some(false),
                    }
                    Some(true)
                })?,
                _ => return Some(false),
            }
            Some(true)
        })?;
        Some(header)
    }
}

/// Checks the pages of a column: none may take more memory than there is, also when it is unpacked. Returns the size
/// of the largest.
pub(super) fn check_pages(
    chunk: &[u8],
    compression: Compression,
    budget: &Budget,
) -> Result<usize, Failure> {
    let damaged = || Failure::Damaged("a page has no valid header");
    let mut cursor = Cursor::new(chunk);
    let mut largest = 0;
    while !cursor.rest().is_empty() {
        let header = Header::read(&mut cursor).ok_or_else(damaged)?;
        let size = usize::try_from(header.compressed).map_err(|_| damaged())?;
        let unpacked = u64::try_from(header.uncompressed).map_err(|_| damaged())?;
        budget.probe(unpacked)?;
        let data = cursor.rest().get(..size).ok_or(Failure::Short)?;
        let levels = usize::try_from(header.levels).unwrap_or(usize::MAX);
        if !header.plain
            && let Some(packed) = data.get(levels..)
            && expands(packed, compression, unpacked, budget)
        {
            return Err(Failure::Damaged("a page is longer than it claims"));
        }
        largest = largest.max(usize::try_from(unpacked).unwrap_or(usize::MAX)).max(size);
        cursor = Cursor::new(&cursor.rest()[size..]);
    }
    Ok(largest)
}

/// Whether compressed data become longer than claimed and than there is memory for. Codecs that are told how much to
/// unpack need no check.
fn expands(packed: &[u8], compression: Compression, claimed: u64, budget: &Budget) -> bool {
    // The most that a byte can become.
    const DEFLATE: u64 = 1032;
    const LZ4: u64 = 255;
    const LZ4_FRAME: &[u8] = b"\x04\x22\x4d\x18";
    let most = |ratio: u64| (packed.len() as u64).saturating_mul(ratio);
    let longer = |reader: &mut dyn Read| {
        let mut limited = reader.take(claimed.saturating_add(1));
        // What is damaged is an error of the decoder's, later.
        io::copy(&mut limited, &mut io::sink()).is_ok_and(|length| length > claimed)
    };
    match compression {
        Compression::GZIP(_) if most(DEFLATE) > budget.left() => {
            longer(&mut flate2::read::MultiGzDecoder::new(packed))
        }
        Compression::BROTLI(_) => longer(&mut brotli::Decompressor::new(packed, 1 << 14)),
        Compression::LZ4 => packed.starts_with(LZ4_FRAME) && most(LZ4) > budget.left(),
        _ => false,
    }
}

/// The pages of a column, each checked before it is decoded.
pub(super) struct CheckedPages {
    pages: SerializedPageReader<Chunk>,
    column: ColumnDescPtr,
}

impl CheckedPages {
    pub(super) fn new(pages: SerializedPageReader<Chunk>, column: ColumnDescPtr) -> Self {
        CheckedPages { pages, column }
    }

    fn is_sound(&self, page: &Page) -> bool {
        let levels = |length: u32| usize::try_from(length).unwrap_or(usize::MAX);
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let least = match self.column.physical_type() {
                    Physical::BOOLEAN => 0,
                    Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
                    Physical::INT64 | Physical::DOUBLE => 8,
                    Physical::INT96 => 12,
                    Physical::FIXED_LEN_BYTE_ARRAY => {
                        usize::try_from(self.column.type_length()).unwrap_or(0)
                    }
                };
                let need = u64::from(*num_values).saturating_mul(least as u64);
                least > 0 && need <= buf.len() as u64
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                let Some(data) = self.after_levels(buf, *num_values, *def_level_encoding) else {
                    return false;
                };
                delta_is_sound(data, *encoding, *num_values)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let at = levels(*def_levels_byte_len).checked_add(levels(*rep_levels_byte_len));
                let data = at.and_then(|at| buf.get(at..));
                data.is_some_and(|data| delta_is_sound(data, *encoding, *num_values))
            }
        }
    }

    /// The data after the levels that say which values are there; columns of lists are never read.
    fn after_levels<'a>(
        &self,
        page: &'a [u8],
        values: u32,
        encoding: Encoding,
    ) -> Option<&'a [u8]> {
        let top = self.column.max_def_level();
        if top == 0 {
            return Some(page);
        }
        #[expect(deprecated, reason = "old files have it")]
        let packed = encoding == Encoding::BIT_PACKED;
        if packed {
            let bits = u64::from(u16::BITS - top.unsigned_abs().leading_zeros());
            let bytes = (u64::from(values) * bits).div_ceil(8);
            return page.get(usize::try_from(bytes).ok()?..);
        }
        let (length, rest) = page.split_first_chunk::<4>()?;
        rest.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..)
    }

    fn check(&self, page: Page) -> Result<Page, ParquetError> {
        if self.is_sound(&page) {
            return Ok(page);
        }
        Err(ParquetError::General("a page claims more values than it has".to_owned()))
    }
}

/// Whether data in one of the encodings by differences hold no more numbers than the page has values.
fn delta_is_sound(data: &[u8], encoding: Encoding, values: u32) -> bool {
    match encoding {
        Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY => {
            pass_deltas(data, values).is_some()
        }
        Encoding::DELTA_BYTE_ARRAY => {
            pass_deltas(data, values).and_then(|rest| pass_deltas(rest, values)).is_some()
        }
        Encoding::PLAIN
        | Encoding::PLAIN_DICTIONARY
        | Encoding::RLE_DICTIONARY
        | Encoding::RLE
        | Encoding::BYTE_STREAM_SPLIT => true,
        _ => false,
    }
}

/// Passes over one run of numbers that are stored by their differences.
fn pass_deltas(data: &[u8], values: u32) -> Option<&[u8]> {
    let mut cursor = Cursor::new(data);
    let (block, minis, total) = (cursor.varint()?, cursor.varint()?, cursor.varint()?);
    cursor.integer()?;
    let sound = total <= u64::from(values)
        && (1..=1 << 16).contains(&minis)
        && block <= 1 << 24
        && block.is_multiple_of(128)
        && block.is_multiple_of(minis);
    if !sound {
        return None;
    }
    let (count, size) = (usize::try_from(minis).ok()?, block / minis);
    let mut left = total.saturating_sub(1);
    while left > 0 {
        cursor.integer()?;
        let (widths, mut rest) = cursor.rest().split_at_checked(count)?;
        for &width in widths {
            if left == 0 {
                break;
            }
            let bytes = usize::try_from(size * u64::from(width) / 8).ok()?;
            // The last of them may be cut.
            rest = rest.get(bytes.min(rest.len())..)?;
            left = left.saturating_sub(size);
        }
        if size == 0 {
            return None;
        }
        cursor = Cursor::new(rest);
    }
    Some(cursor.rest())
}

impl Iterator for CheckedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        match self.pages.get_next_page()? {
            Some(page) => self.check(page).map(Some),
            None => Ok(None),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}

/// Why a table could not be read.
#[derive(Debug)]
pub(super) enum Failure {
    /// The file is damaged in this way.
    Damaged(&'static str),
    /// The data end too early.
    Short,
    /// What the decoder says, whose words are its own.
    Decoder(ParquetError),
    /// An error that is told as it is.
    Own(Error),
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        Failure::Decoder(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Own(error)
    }
}

impl Failure {
    pub(super) fn into_error(self, path: &str, budget: &Budget) -> Error {
        let malformed = |detail: &str| Error::Malformed {
            path: path.to_owned(),
            format: "Parquet",
            detail: format!("{detail}; get a complete copy"),
        };
        match self {
            Failure::Own(error) => error,
            Failure::Damaged(detail) => malformed(detail),
            Failure::Short
            | Failure::Decoder(
                ParquetError::EOF(_)
                | ParquetError::NeedMoreData(_)
                | ParquetError::NeedMoreDataRange(_),
            ) => Error::Truncated {
                path: path.to_owned(),
                detail: "the data end too early".to_owned(),
            },
            Failure::Decoder(ParquetError::NYI(_)) => Error::Unsupported {
                path: path.to_owned(),
                what: "a feature of this Parquet file".to_owned(),
                remedy: "write it anew with the usual settings".to_owned(),
            },
            Failure::Decoder(ParquetError::External(source)) => {
                match source.downcast::<io::Error>() {
                    Ok(source) => budget.error(*source),
                    Err(_) => malformed("a page is damaged"),
                }
            }
            Failure::Decoder(_) => malformed("its footer or a page is damaged"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer that holds just a schema: for each element the number of its members.
    fn footer(members: &[u8]) -> Vec<u8> {
        // Field 2, a list of structures.
        let mut bytes = vec![0x29, 0xfc, u8::try_from(members.len()).unwrap()];
        for &count in members {
            bytes.extend([0x55, 2 * count, 0]);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn schemas() {
        assert!(footer_is_sound(&footer(&[2, 0, 0])));
        assert!(footer_is_sound(&footer(&[2, 1, 0, 0])));
        assert!(!footer_is_sound(&footer(&[9, 0, 0])));
        assert!(footer_is_sound(&footer(&[1; 50])));
        assert!(!footer_is_sound(&footer(&[1; 120])));
        assert!(!footer_is_sound(&[0x29]));
    }

    #[test]
    fn differences() {
        // Blocks of 128 in 4, 3 values, of which the first is 7; no bits for the differences.
        let data = [0x80, 1, 4, 3, 14, 0, 0, 0, 0, 0, 99];
        assert_eq!(pass_deltas(&data, 3), Some(&[99][..]));
        assert_eq!(pass_deltas(&data, 2), None);
        let endless = [0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x7f, 14];
        assert_eq!(pass_deltas(&endless, 1000), None);
    }
}
