//! Parquet tables.

mod checks;
mod chunk;
mod kind;
mod thrift;

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::budget::Budget;
use crate::columns::Columns;
use crate::error::Error;
use crate::guard::fence;
use crate::ids;
use crate::numpy::half;
use crate::screen::Screen;
use crate::select::Table;
use crate::{Cloud, Other, Others, ReadOptions};
use checks::{CheckedPages, Failure};
use chunk::Chunk;
use kind::{Kind, has_text};

/// Reads a table.
pub(crate) fn read(
    path: &str,
    source: impl ChunkReader + 'static,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Error> {
    // The crate returns errors for most damage to a file, and panics for some.
    fence(|| read_table(path, Bounded(source), options, budget))
        .unwrap_or(Err(Failure::Damaged("its footer or a page is damaged")))
        .map_err(|failure| failure.into_error(path, budget))
}

fn read_table(
    path: &str,
    source: Bounded<impl ChunkReader + 'static>,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Failure> {
    check_footer(path, &source, budget)?;
    let source = Arc::new(source);
    let file = SerializedFileReader::new(Shared(Arc::clone(&source)))?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
    let table = Table { path, count: names.len(), names: Some(&names) };
    let foreign = |i: usize| Kind::of(&schema.column(i)).err();
    let mut selection = table.select(options, || {
        let mut columns = table.numeric(foreign)?;
        columns.retain(|&i| !ids::is_index_of_pandas(&names[i]));
        Ok(columns)
    })?;
    if options.others == Others::All {
        selection.others.retain(|&i| has_text(&schema.column(i)));
    }
    let not_numeric = |i: usize, kind: &str| Error::NotNumeric {
        path: path.to_owned(),
        column: table.label(i),
        kind: kind.to_owned(),
    };
    for &i in &selection.others {
        if !has_text(&schema.column(i)) {
            return Err(not_numeric(i, foreign(i).unwrap_or("lists")).into());
        }
    }
    let mut others: Vec<Other> =
        selection.others.iter().map(|&i| table.other(i, Vec::new())).collect();
    let mut columns = Vec::new();
    for i in selection.all() {
        columns.push((i, Kind::of(&schema.column(i)).map_err(|kind| not_numeric(i, kind))?));
    }

    let dim = selection.coordinates.len();
    let narrow = columns[..dim].iter().all(|(_, kind)| *kind == Kind::F32);
    let mut table_columns = Columns::new(dim, narrow, selection.weights.is_some(), budget);
    for metadata in file.metadata().row_groups() {
        let group = Group::new(path, &*source, metadata, budget)?;
        for other in &mut others {
            group.read_text(other)?;
        }
        for (c, &(i, kind)) in columns.iter().enumerate() {
            table_columns.add(c, &group.read_column(i, kind)?)?;
        }
    }
    let (values, weights) = table_columns.finish();
    let screen = Screen::new(&table, &selection, options, "null or NaN", others);
    let mut cloud = screen.finish(values, weights)?;
    cloud.notes = table.left_out(&selection, options, foreign);
    Ok(cloud)
}

/// Looks at the end of the file before the decoder does.
fn check_footer(path: &str, source: &impl ChunkReader, budget: &Budget) -> Result<(), Failure> {
    const TAIL: u64 = 8;
    let broken = Failure::Damaged("its footer is missing");
    let Some(at) = source.len().checked_sub(TAIL) else { return Err(broken) };
    let tail = source.get_bytes(at, 8)?;
    let Some((length, magic)) = tail.split_first_chunk::<4>() else { return Err(broken) };
    if magic == b"PARE" {
        return Err(Failure::Own(Error::Unsupported {
            path: path.to_owned(),
            what: "an encrypted Parquet file".to_owned(),
            remedy: "write it without encryption".to_owned(),
        }));
    }
    let length = u32::from_le_bytes(*length);
    let (b"PAR1", Some(start)) = (magic, at.checked_sub(u64::from(length))) else {
        return Err(broken);
    };
    // Decoded it takes several times as much.
    budget.probe(u64::from(length) * 8)?;
    let footer = source.get_bytes(start, length as usize)?;
    if checks::footer_is_sound(&footer) {
        return Ok(());
    }
    Err(Failure::Damaged("its footer is damaged"))
}

/// A source that checks what is asked of it: the offsets come from the file and may be anything.
struct Bounded<S>(S);

impl<S: ChunkReader> Bounded<S> {
    fn check(&self, start: u64, length: u64) -> Result<(), ParquetError> {
        match start.checked_add(length) {
            Some(end) if end <= self.0.len() => Ok(()),
            _ => Err(ParquetError::EOF("beyond the end".to_owned())),
        }
    }
}

impl<S: ChunkReader> Length for Bounded<S> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<S: ChunkReader> ChunkReader for Bounded<S> {
    type T = S::T;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.check(start, 0)?;
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.check(start, length as u64)?;
        self.0.get_bytes(start, length)
    }
}

/// A source with several owners.
struct Shared<S>(Arc<S>);

impl<S: ChunkReader> Length for Shared<S> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<S: ChunkReader> ChunkReader for Shared<S> {
    type T = S::T;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}

/// A row group.
struct Group<'a, S> {
    path: &'a str,
    source: &'a S,
    metadata: &'a RowGroupMetaData,
    rows: usize,
    budget: &'a Budget,
}

impl<'a, S: ChunkReader> Group<'a, S> {
    fn new(
        path: &'a str,
        source: &'a S,
        metadata: &'a RowGroupMetaData,
        budget: &'a Budget,
    ) -> Result<Self, Failure> {
        let rows = usize::try_from(metadata.num_rows())
            .map_err(|_| Failure::Damaged("a row group has a negative number of rows"))?;
        Ok(Group { path, source, metadata, rows, budget })
    }

    /// Reads the bytes of a column and checks them; `read` gets the decoder and how many values it may hand out at once.
    fn open<V>(
        &self,
        index: usize,
        read: impl FnOnce(ColumnReader, Shape<'_>) -> Result<V, Failure>,
    ) -> Result<V, Failure> {
        const BATCH: usize = 1 << 15;
        let column = self.metadata.column(index);
        supported(self.path, column.compression())?;
        let (start, length) = column.byte_range();
        let length = usize::try_from(length).map_err(|_| Failure::Short)?;
        self.budget.probe(length as u64)?;
        self.budget.take(length)?;
        let chunk = Chunk { start, bytes: self.source.get_bytes(start, length)? };
        let largest = checks::check_pages(&chunk.bytes, column.compression(), self.budget)?;
        // A value may be as long as its page, and many of them may share their bytes.
        let batch = usize::try_from(self.budget.left() / 4).unwrap_or(usize::MAX) / largest.max(8);
        let descriptor = column.column_descr_ptr();
        let shape = Shape {
            rows: self.rows,
            top: descriptor.max_def_level(),
            batch: batch.clamp(1, BATCH),
            budget: self.budget,
        };
        let pages = SerializedPageReader::new(Arc::new(chunk), column, self.rows, None)?;
        let pages = CheckedPages::new(pages, Arc::clone(&descriptor));
        let values = read(get_column_reader(descriptor, Box::new(pages)), shape)?;
        self.budget.give(length);
        Ok(values)
    }

    /// A column of numbers, with `NaN` for null; integers beyond 2^53 are rounded.
    fn read_column(&self, index: usize, kind: Kind) -> Result<Vec<f64>, Failure> {
        self.open(index, |reader, shape| {
            let mut numbers = Vec::new();
            let push = |x: Option<f64>| shape.budget.push(&mut numbers, x.unwrap_or(f64::NAN));
            numbers_of(reader, kind, &shape, push)?;
            Ok(numbers)
        })
    }

    /// Adds the cells of a column as text; null is empty.
    fn read_text(&self, other: &mut Other) -> Result<(), Failure> {
        let descriptor = self.metadata.column(other.position).column_descr_ptr();
        let cells = &mut other.cells;
        self.open(other.position, |reader, shape| {
            let budget = shape.budget;
            let mut push = |cell: Option<String>| budget.push_cell(cells, cell.unwrap_or_default());
            match (Kind::of(&descriptor), reader) {
                (Ok(kind), reader) => {
                    #[expect(clippy::cast_possible_truncation, reason = "read as 32-bit floats")]
                    let text = |x: f64| match kind {
                        _ if x.is_nan() => String::new(),
                        Kind::F32 => (x as f32).to_string(),
                        _ => x.to_string(),
                    };
                    numbers_of(reader, kind, &shape, |x| push(x.map(text)))
                }
                (Err(_), ColumnReader::ByteArrayColumnReader(reader)) => {
                    let text = |x: &parquet::data_type::ByteArray| {
                        Some(String::from_utf8_lossy(x.data()).into_owned())
                    };
                    shape.collect(reader, text, push)
                }
                (Err(_), ColumnReader::BoolColumnReader(reader)) => {
                    shape.collect(reader, |x| Some(x.to_string()), push)
                }
                _ => Err(Failure::Damaged("a column is not of the type it claims")),
            }
        })
    }
}

/// Hands over the numbers of a column, and nothing for null.
#[expect(
    clippy::cast_sign_loss,
    reason = "unsigned integers are stored as signed ones of the same size"
)]
fn numbers_of(
    reader: ColumnReader,
    kind: Kind,
    shape: &Shape<'_>,
    push: impl FnMut(Option<f64>) -> Result<(), Error>,
) -> Result<(), Failure> {
    match (reader, kind) {
        (ColumnReader::FloatColumnReader(reader), Kind::F32) => {
            shape.collect(reader, |&x| Some(f64::from(x)), push)
        }
        (ColumnReader::DoubleColumnReader(reader), Kind::F64) => {
            shape.collect(reader, |&x| Some(x), push)
        }
        (ColumnReader::Int32ColumnReader(reader), Kind::I32) => {
            shape.collect(reader, |&x| Some(f64::from(x)), push)
        }
        (ColumnReader::Int32ColumnReader(reader), Kind::U32) => {
            shape.collect(reader, |&x| Some(f64::from(x as u32)), push)
        }
        (ColumnReader::Int64ColumnReader(reader), Kind::I64) => {
            shape.collect(reader, |&x| Some(x as f64), push)
        }
        (ColumnReader::Int64ColumnReader(reader), Kind::U64) => {
            shape.collect(reader, |&x| Some(x as u64 as f64), push)
        }
        (ColumnReader::Int32ColumnReader(reader), Kind::Decimal(unit)) => {
            shape.collect(reader, |&x| Some(f64::from(x) / unit), push)
        }
        (ColumnReader::Int64ColumnReader(reader), Kind::Decimal(unit)) => {
            shape.collect(reader, |&x| Some(x as f64 / unit), push)
        }
        (ColumnReader::FixedLenByteArrayColumnReader(reader), Kind::Decimal(unit)) => {
            shape.collect(reader, |x| integer(x.data()).map(|x| x as f64 / unit), push)
        }
        (ColumnReader::ByteArrayColumnReader(reader), Kind::Decimal(unit)) => {
            shape.collect(reader, |x| integer(x.data()).map(|x| x as f64 / unit), push)
        }
        (ColumnReader::FixedLenByteArrayColumnReader(reader), Kind::F16) => {
            let number = |x: &parquet::data_type::FixedLenByteArray| {
                Some(half(u16::from_le_bytes(x.data().try_into().ok()?)))
            };
            shape.collect(reader, number, push)
        }
        _ => Err(Failure::Damaged("a column is not of the type it claims")),
    }
}

/// A big-endian integer of up to 16 bytes.
fn integer(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let sign = if first < 0x80 { 0 } else { 0xff };
    let mut all = [sign; 16];
    all.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(all))
}

/// How many values a column has, and how they are handed out.
struct Shape<'a> {
    rows: usize,
    /// Values with a lower definition level are null.
    top: i16,
    batch: usize,
    budget: &'a Budget,
}

impl Shape<'_> {
    /// Reads all rows, which must be as many as claimed.
    fn collect<T: DataType, V>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        convert: impl Fn(&T::T) -> Option<V>,
        mut push: impl FnMut(Option<V>) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let mut seen = 0;
        let mut values = Vec::new();
        let mut levels = Vec::new();
        loop {
            values.clear();
            levels.clear();
            let (records, ..) =
                reader.read_records(self.batch, Some(&mut levels), None, &mut values)?;
            if records == 0 && seen == self.rows {
                return Ok(());
            }
            if records == 0 || seen + records > self.rows {
                return Err(Failure::Damaged("a column has another number of rows than it claims"));
            }
            seen += records;
            let mut present = values
                .iter()
                .map(|value| convert(value).ok_or(Failure::Damaged("a number is malformed")));
            if self.top == 0 {
                for value in present {
                    push(Some(value?))?;
                }
            } else {
                for &level in &levels {
                    let value = if level == self.top { present.next() } else { None };
                    push(value.transpose()?)?;
                }
            }
        }
    }
}

fn supported(path: &str, compression: Compression) -> Result<(), Error> {
    match compression {
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::LZ4
        | Compression::LZ4_RAW
        | Compression::ZSTD(_)
        | Compression::BROTLI(_) => Ok(()),
        Compression::LZO => Err(Error::Unsupported {
            path: path.to_owned(),
            what: "Parquet compressed with LZO".to_owned(),
            remedy: "write it with snappy, gzip, lz4, zstd, brotli or no compression".to_owned(),
        }),
    }
}
