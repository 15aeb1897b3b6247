//! Parquet tables.

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{
    ChunkReader, FileReader, Length, RowGroupReader, SerializedFileReader,
};
use parquet::schema::types::ColumnDescriptor;

use crate::error::{Error, one_line};
use crate::guard::fence;
use crate::numpy::half;
use crate::screen::Screen;
use crate::select::Table;
use crate::{Cloud, Other, Others, ReadOptions, Values};

/// Reads a table.
pub(crate) fn read(
    path: &str,
    source: impl ChunkReader + 'static,
    options: &ReadOptions,
) -> Result<Cloud, Error> {
    // The crate returns errors for most damage to a file, and panics for some.
    fence(|| read_table(path, source, options))
        .unwrap_or_else(|panic| Err(malformed(path, &one_line(&panic))))
}

fn read_table(
    path: &str,
    source: impl ChunkReader + 'static,
    options: &ReadOptions,
) -> Result<Cloud, Error> {
    let failed = |error| parquet_error(path, error);
    let file = SerializedFileReader::new(Bounded(source)).map_err(failed)?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
    let table = Table { path, count: names.len(), names: Some(&names) };
    let mut selection = table.select(options, || Ok(data_columns(&names)))?;
    if options.others == Others::All {
        selection.others.retain(|&i| has_text(&schema.column(i)));
    }
    for &i in &selection.others {
        if !has_text(&schema.column(i)) {
            let kind = Kind::of(&schema.column(i)).err().unwrap_or_default();
            return Err(Error::NotNumeric { path: path.to_owned(), column: table.label(i), kind });
        }
    }
    let mut others: Vec<Other> =
        selection.others.iter().map(|&i| table.other(i, Vec::new())).collect();
    let columns = selection
        .all()
        .into_iter()
        .map(|i| {
            let column = schema.column(i);
            match Kind::of(&column) {
                Ok(kind) => Ok((i, kind)),
                Err(kind) => {
                    Err(Error::NotNumeric { path: path.to_owned(), column: table.label(i), kind })
                }
            }
        })
        .collect::<Result<Vec<_>, Error>>()?;

    let dim = selection.coordinates.len();
    let narrow = columns[..dim].iter().all(|(_, kind)| *kind == Kind::F32);
    let mut values = if narrow { Values::F32(Vec::new()) } else { Values::F64(Vec::new()) };
    let mut weights = selection.weights.map(|_| Vec::new());
    for index in 0..file.num_row_groups() {
        let group = file.get_row_group(index).map_err(failed)?;
        let rows = usize::try_from(group.metadata().num_rows())
            .map_err(|_| malformed(path, "a row group has a negative number of rows"))?;
        for other in &mut others {
            let i = other.position;
            supported(path, group.metadata().column(i).compression())?;
            other.cells.extend(read_text(&*group, i, rows).map_err(failed)?);
        }
        let mut table = Vec::with_capacity(columns.len());
        for &(i, kind) in &columns {
            supported(path, group.metadata().column(i).compression())?;
            let numbers = read_column(&*group, i, kind, rows).map_err(failed)?;
            table.push(numbers);
        }
        if let Some(weights) = &mut weights {
            weights.extend(table.pop().unwrap_or_default());
        }
        match &mut values {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the numbers were read as 32-bit floats, so nothing is lost"
            )]
            Values::F32(values) => {
                values.extend((0..rows).flat_map(|r| table.iter().map(move |c| c[r] as f32)));
            }
            Values::F64(values) => {
                values.extend((0..rows).flat_map(|r| table.iter().map(move |c| c[r])));
            }
        }
    }
    Screen::new(&table, &selection, options, "null or NaN", others).finish(values, weights)
}

/// A source that checks what is asked of it: the offsets come from the file and may be anything.
struct Bounded<S>(S);

impl<S: ChunkReader> Bounded<S> {
    fn check(&self, start: u64, length: u64) -> Result<(), ParquetError> {
        match start.checked_add(length) {
            Some(end) if end <= self.0.len() => Ok(()),
            _ => Err(ParquetError::EOF(format!(
                "{length} bytes from byte {start} on are beyond the end"
            ))),
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

/// All columns but those in which pandas keeps the index of the rows.
fn data_columns(names: &[String]) -> Vec<usize> {
    let is_index = |name: &str| name.starts_with("__index_level_") && name.ends_with("__");
    (0..names.len()).filter(|&i| !is_index(&names[i])).collect()
}

/// How the numbers of a column are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    F16,
    F32,
    F64,
    I32,
    U32,
    I64,
    U64,
    /// Integers of any size, to be divided by this.
    Decimal(f64),
}

impl Kind {
    /// The kind of a column, or what it holds instead of numbers.
    fn of(column: &ColumnDescriptor) -> Result<Kind, String> {
        if column.max_rep_level() > 0 {
            return Err("lists".to_owned());
        }
        let physical = column.physical_type();
        let logical = Logical::of(column);
        match (physical, logical) {
            (Physical::FLOAT, _) => Ok(Kind::F32),
            (Physical::DOUBLE, _) => Ok(Kind::F64),
            (Physical::INT32, Logical::Signed | Logical::None) => Ok(Kind::I32),
            (Physical::INT64, Logical::Signed | Logical::None) => Ok(Kind::I64),
            (Physical::INT32, Logical::Unsigned) => Ok(Kind::U32),
            (Physical::INT64, Logical::Unsigned) => Ok(Kind::U64),
            (Physical::FIXED_LEN_BYTE_ARRAY, Logical::Half) => Ok(Kind::F16),
            (
                Physical::INT32
                | Physical::INT64
                | Physical::FIXED_LEN_BYTE_ARRAY
                | Physical::BYTE_ARRAY,
                Logical::Decimal(scale),
            ) => Ok(Kind::Decimal(f64::powi(10.0, scale))),
            (Physical::BOOLEAN, _) => Err("booleans".to_owned()),
            (_, Logical::Text) => Err("text".to_owned()),
            (_, Logical::Time) | (Physical::INT96, _) => Err("dates or times".to_owned()),
            (Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY, _) => Err("bytes".to_owned()),
            _ => Err(format!("values of type {physical}")),
        }
    }
}

/// What a column means. Old files say it in another way than new ones, and some say it in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logical {
    None,
    Signed,
    Unsigned,
    /// The number of digits after the point.
    Decimal(i32),
    Half,
    Text,
    Time,
    Other,
}

impl Logical {
    fn of(column: &ColumnDescriptor) -> Logical {
        match column.logical_type_ref() {
            Some(LogicalType::Integer(int)) if int.is_signed => Logical::Signed,
            Some(LogicalType::Integer(_)) => Logical::Unsigned,
            Some(LogicalType::Decimal(decimal)) => Logical::Decimal(decimal.scale),
            Some(LogicalType::Float16) => Logical::Half,
            Some(LogicalType::String | LogicalType::Json | LogicalType::Enum) => Logical::Text,
            Some(LogicalType::Date | LogicalType::Time(_) | LogicalType::Timestamp(_)) => {
                Logical::Time
            }
            Some(_) => Logical::Other,
            None => match column.converted_type() {
                ConvertedType::NONE => Logical::None,
                ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64 => Logical::Signed,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64 => Logical::Unsigned,
                ConvertedType::DECIMAL => Logical::Decimal(column.type_scale()),
                ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Logical::Text,
                ConvertedType::DATE
                | ConvertedType::TIME_MILLIS
                | ConvertedType::TIME_MICROS
                | ConvertedType::TIMESTAMP_MILLIS
                | ConvertedType::TIMESTAMP_MICROS => Logical::Time,
                _ => Logical::Other,
            },
        }
    }
}

/// One column of a row group, with `NaN` for null; integers beyond 2^53 are rounded.
#[expect(
    clippy::cast_sign_loss,
    reason = "unsigned integers are stored as signed ones of the same size"
)]
fn read_column(
    group: &dyn RowGroupReader,
    index: usize,
    kind: Kind,
    rows: usize,
) -> Result<Vec<f64>, ParquetError> {
    let column = group.metadata().column(index);
    let shape = (rows, column.column_descr().max_def_level());
    match (group.get_column_reader(index)?, kind) {
        (ColumnReader::FloatColumnReader(reader), Kind::F32) => {
            collect(shape, reader, |&x| Some(f64::from(x)))
        }
        (ColumnReader::DoubleColumnReader(reader), Kind::F64) => {
            collect(shape, reader, |&x| Some(x))
        }
        (ColumnReader::Int32ColumnReader(reader), Kind::I32) => {
            collect(shape, reader, |&x| Some(f64::from(x)))
        }
        (ColumnReader::Int32ColumnReader(reader), Kind::U32) => {
            collect(shape, reader, |&x| Some(f64::from(x as u32)))
        }
        (ColumnReader::Int64ColumnReader(reader), Kind::I64) => {
            collect(shape, reader, |&x| Some(x as f64))
        }
        (ColumnReader::Int64ColumnReader(reader), Kind::U64) => {
            collect(shape, reader, |&x| Some(x as u64 as f64))
        }
        (ColumnReader::Int32ColumnReader(reader), Kind::Decimal(unit)) => {
            collect(shape, reader, |&x| Some(f64::from(x) / unit))
        }
        (ColumnReader::Int64ColumnReader(reader), Kind::Decimal(unit)) => {
            collect(shape, reader, |&x| Some(x as f64 / unit))
        }
        (ColumnReader::FixedLenByteArrayColumnReader(reader), Kind::Decimal(unit)) => {
            collect(shape, reader, |x| integer(x.data()).map(|x| x as f64 / unit))
        }
        (ColumnReader::ByteArrayColumnReader(reader), Kind::Decimal(unit)) => {
            collect(shape, reader, |x| integer(x.data()).map(|x| x as f64 / unit))
        }
        (ColumnReader::FixedLenByteArrayColumnReader(reader), Kind::F16) => {
            collect(shape, reader, |x| {
                let bits = x.data().try_into().ok()?;
                Some(half(u16::from_le_bytes(bits)))
            })
        }
        _ => Err(ParquetError::General("a column is not of the type it claims".to_owned())),
    }
}

/// Whether a column can come along as text: numbers, text and truth values.
fn has_text(column: &ColumnDescriptor) -> bool {
    let is_text = column.max_rep_level() == 0
        && column.physical_type() == Physical::BYTE_ARRAY
        && Logical::of(column) == Logical::Text;
    is_text
        || Kind::of(column).is_ok()
        || (column.physical_type() == Physical::BOOLEAN && column.max_rep_level() == 0)
}

/// One column of a row group as text; null is empty.
fn read_text(
    group: &dyn RowGroupReader,
    index: usize,
    rows: usize,
) -> Result<Vec<String>, ParquetError> {
    let column = group.metadata().column(index).column_descr_ptr();
    let shape = (rows, column.max_def_level());
    if let Ok(kind) = Kind::of(&column) {
        let narrow = kind == Kind::F32;
        #[expect(clippy::cast_possible_truncation, reason = "read as 32-bit floats")]
        let text = |x: f64| {
            if x.is_nan() {
                String::new()
            } else if narrow {
                (x as f32).to_string()
            } else {
                x.to_string()
            }
        };
        return Ok(read_column(group, index, kind, rows)?.into_iter().map(text).collect());
    }
    match group.get_column_reader(index)? {
        ColumnReader::ByteArrayColumnReader(reader) => {
            collect(shape, reader, |x| Some(String::from_utf8_lossy(x.data()).into_owned()))
        }
        ColumnReader::BoolColumnReader(reader) => collect(shape, reader, |x| Some(x.to_string())),
        _ => Err(ParquetError::General("a column is not of the type it claims".to_owned())),
    }
}

/// What stands for null.
trait Null {
    const NULL: Self;
}

impl Null for f64 {
    const NULL: f64 = f64::NAN;
}

impl Null for String {
    const NULL: String = String::new();
}

/// A big-endian integer of up to 16 bytes.
fn integer(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let sign = if first < 0x80 { 0 } else { 0xff };
    let mut all = [sign; 16];
    all.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(all))
}

/// Reads all rows, which must be as many as claimed; values with a definition level below `top`
/// are null.
fn collect<T: DataType, V: Null>(
    (rows, top): (usize, i16),
    mut reader: ColumnReaderImpl<T>,
    number: impl Fn(&T::T) -> Option<V>,
) -> Result<Vec<V>, ParquetError> {
    const BATCH: usize = 1 << 15;
    let mut numbers = Vec::new();
    let mut values = Vec::new();
    let mut levels = Vec::new();
    loop {
        values.clear();
        levels.clear();
        let (records, ..) = reader.read_records(BATCH, Some(&mut levels), None, &mut values)?;
        if records == 0 && numbers.len() == rows {
            return Ok(numbers);
        }
        if records == 0 || numbers.len() + records > rows {
            return Err(ParquetError::General(
                "a column has another number of rows than it claims".to_owned(),
            ));
        }
        let mut present = values.iter().map(|value| {
            number(value).ok_or_else(|| ParquetError::General("a number is malformed".to_owned()))
        });
        if top == 0 {
            for value in present {
                numbers.push(value?);
            }
        } else {
            for &level in &levels {
                let value = if level == top { present.next() } else { None };
                numbers.push(value.transpose()?.unwrap_or(V::NULL));
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
        | Compression::LZ4_RAW => Ok(()),
        other => {
            let name = format!("{other:?}");
            let name = name.split('(').next().unwrap_or_default();
            Err(Error::Unsupported {
                path: path.to_owned(),
                what: format!("Parquet compressed with {name}"),
                remedy: "write it with snappy, gzip, lz4 or no compression".to_owned(),
            })
        }
    }
}

fn parquet_error(path: &str, error: ParquetError) -> Error {
    match error {
        ParquetError::EOF(detail) => {
            Error::Truncated { path: path.to_owned(), detail: one_line(&detail) }
        }
        error => malformed(path, &one_line(&error.to_string())),
    }
}

fn malformed(path: &str, detail: &str) -> Error {
    Error::Malformed { path: path.to_owned(), format: "Parquet", detail: detail.to_owned() }
}
