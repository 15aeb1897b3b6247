//! Arrow files and streams, and Feather, which is the same.
//!
//! Messages are taken apart here, and their sizes checked, before the crate decodes them: it believes what they claim.

use std::io::{self, Read};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{AnyDictionaryArray, Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{Message, convert, root_as_message};
use arrow_schema::{ArrowError, DataType, Schema};

use crate::budget::Budget;
use crate::columns::Columns;
use crate::error::Error;
use crate::format::ARROW_MESSAGE;
use crate::guard::fence;
use crate::ids;
use crate::screen::Screen;
use crate::select::{Selection, Table};
use crate::{Cloud, Other, Others, ReadOptions};

/// Far longer than any schema.
const LONGEST_METADATA: u32 = 1 << 26;

/// Reads a table: a file, or a stream.
pub(crate) fn read(
    path: &str,
    mut reader: impl Read,
    is_file: bool,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Error> {
    if is_file {
        // A file is a stream after its first bytes, with a table of contents after it.
        reader.read_exact(&mut [0; 8]).map_err(|source| budget.error(source))?;
    }
    // The crate returns errors for most damage to a file, and panics for some.
    fence(|| read_table(Messages { path, reader, budget, padded: is_file }, options))
        .unwrap_or_else(|| Err(malformed(path, "a message is damaged")))
}

fn read_table(
    mut messages: Messages<'_, impl Read>,
    options: &ReadOptions,
) -> Result<Cloud, Error> {
    let (path, budget) = (messages.path, messages.budget);
    let first = messages.next()?.ok_or_else(|| malformed(path, "there is no schema"))?;
    let schema = first.schema().ok_or_else(|| malformed(path, "there is no schema"))?;
    let mut decoder = StreamDecoder::new();
    let mut decode = |message: Framed, add: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>| {
        let taken = message.taken;
        let mut buffer = Buffer::from_vec(message.bytes);
        while !buffer.is_empty() {
            let batch = decoder.decode(&mut buffer);
            if let Some(batch) = batch.map_err(|error| arrow_error(path, error, budget))? {
                add(&batch)?;
            }
        }
        budget.give(taken);
        Ok::<(), Error>(())
    };
    decode(first, &mut |_| Ok(()))?;

    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let table = Table { path, count: names.len(), names: Some(&names) };
    let foreign = |i: usize| foreign(schema.field(i).data_type());
    let mut selection = table.select(options, || {
        let mut columns = table.numeric(foreign)?;
        columns.retain(|&i| !ids::is_index_of_pandas(&names[i]));
        Ok(columns)
    })?;
    check_types(&table, &mut selection, options, &schema)?;

    let mut others: Vec<Other> =
        selection.others.iter().map(|&i| table.other(i, Vec::new())).collect();
    let is_narrow = |&i: &usize| *schema.field(i).data_type() == DataType::Float32;
    let narrow = selection.coordinates.iter().all(is_narrow);
    let weighted = selection.weights.is_some();
    let mut columns = Columns::new(selection.coordinates.len(), narrow, weighted, budget);
    while let Some(message) = messages.next()? {
        decode(message, &mut |batch| {
            for (c, i) in selection.all().into_iter().enumerate() {
                columns.add(c, &numbers_of(batch.column(i).as_ref(), budget)?)?;
            }
            for other in &mut others {
                add_text(batch.column(other.position).as_ref(), other, budget)?;
            }
            Ok(())
        })?;
    }
    let (values, weights) = columns.finish();
    let screen = Screen::new(&table, &selection, options, "null or NaN", others);
    let mut cloud = screen.finish(values, weights)?;
    cloud.notes = table.left_out(&selection, options, foreign);
    Ok(cloud)
}

/// The messages of a file or stream.
struct Messages<'a, R> {
    path: &'a str,
    reader: R,
    budget: &'a Budget,
    /// The next message may come after zeros, so that it begins at a multiple of some number of bytes.
    padded: bool,
}

/// A message with its length before it and its body after it.
struct Framed {
    bytes: Vec<u8>,
    /// Where its body begins.
    body: usize,
    /// The memory that it takes, unpacked.
    taken: usize,
}

impl Framed {
    fn header(&self) -> Option<Message<'_>> {
        let start = if self.bytes.starts_with(ARROW_MESSAGE) { 8 } else { 4 };
        root_as_message(self.bytes.get(start..self.body)?).ok()
    }

    fn schema(&self) -> Option<Schema> {
        convert::try_fb_to_schema(self.header()?.header_as_schema()?).ok()
    }

    /// What the buffers in the body say that they are when they are unpacked.
    fn unpacked(&self) -> Option<u64> {
        let header = self.header()?;
        let dictionary = || header.header_as_dictionary_batch().and_then(|batch| batch.data());
        let Some(batch) = header.header_as_record_batch().or_else(dictionary) else {
            return Some(0);
        };
        if batch.compression().is_none() {
            return Some(0);
        }
        let body = &self.bytes[self.body..];
        let mut total = 0_u64;
        for buffer in batch.buffers()? {
            if buffer.length() == 0 {
                continue;
            }
            let start = usize::try_from(buffer.offset()).ok()?;
            let prefix = body.get(start..)?.first_chunk::<8>()?;
            // Minus one says that it is stored as it is.
            let length = i64::from_le_bytes(*prefix).max(0);
            total = total.saturating_add(length.unsigned_abs());
        }
        Some(total)
    }
}

impl<R: Read> Messages<'_, R> {
    /// The next message, or nothing at the end, which has to be marked: a stream that was cut looks complete otherwise.
    fn next(&mut self) -> Result<Option<Framed>, Error> {
        const LONGEST_PADDING: usize = 1 << 12;
        let mut bytes = Vec::new();
        for _ in 0..LONGEST_PADDING {
            self.extend(&mut bytes, 4)?;
            if !self.padded || bytes != [0; 4] {
                break;
            }
            bytes.clear();
        }
        self.padded = false;
        if bytes == ARROW_MESSAGE {
            self.extend(&mut bytes, 4)?;
        }
        let length = bytes.last_chunk().map_or(0, |length| u32::from_le_bytes(*length));
        if length == 0 {
            return Ok(None);
        }
        if length > LONGEST_METADATA {
            return Err(malformed(self.path, "a message has no valid length"));
        }
        self.extend(&mut bytes, u64::from(length))?;
        let mut message = Framed { body: bytes.len(), bytes, taken: 0 };
        let damaged = || malformed(self.path, "a message is damaged");
        let length = message.header().map(|header| header.bodyLength());
        let length = length.and_then(|length| u64::try_from(length).ok()).ok_or_else(damaged)?;
        self.extend(&mut message.bytes, length)?;
        let damaged = || malformed(self.path, "a message is damaged");
        let unpacked = message.unpacked().ok_or_else(damaged)?;
        let unpacked = usize::try_from(unpacked).map_err(|_| self.budget.exceeded())?;
        self.budget.probe(unpacked as u64)?;
        self.budget.take(unpacked)?;
        message.taken = message.bytes.capacity() + unpacked;
        Ok(Some(message))
    }

    /// Reads so many bytes; memory is taken for those that are there.
    fn extend(&mut self, bytes: &mut Vec<u8>, length: u64) -> Result<(), Error> {
        const CHUNK: u64 = 1 << 20;
        // More than may be taken need not be tried.
        self.budget.check(length)?;
        let mut left = length;
        while left > 0 {
            let chunk = left.min(CHUNK);
            self.budget.reserve(bytes, usize::try_from(chunk).unwrap_or(usize::MAX))?;
            let read = (&mut self.reader).take(chunk).read_to_end(bytes);
            if (read.map_err(|source| self.budget.error(source))? as u64) < chunk {
                return Err(self.budget.error(io::ErrorKind::UnexpectedEof.into()));
            }
            left -= chunk;
        }
        Ok(())
    }
}

/// What a column holds if it holds no numbers.
fn foreign(kind: &DataType) -> Option<&'static str> {
    match kind {
        _ if kind.is_numeric() && !matches!(kind, DataType::Decimal256(..)) => None,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some("text"),
        DataType::Dictionary(_, values) => foreign(values).or(Some("categories")),
        DataType::Boolean => Some("booleans"),
        _ if kind.is_temporal() => Some("dates or times"),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Some("bytes"),
        DataType::Struct(_) | DataType::Union(..) | DataType::Map(..) => Some("structures"),
        DataType::Null => Some("nothing"),
        DataType::Decimal256(..) => Some("decimals of 256 bits"),
        _ => Some("lists"),
    }
}

/// Whether a column can come along as text: numbers, text and truth values.
fn has_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => foreign(values) == Some("text"),
        kind => matches!(foreign(kind), None | Some("text" | "booleans")),
    }
}

fn check_types(
    table: &Table<'_>,
    selection: &mut Selection,
    options: &ReadOptions,
    schema: &Schema,
) -> Result<(), Error> {
    let kind = |i: usize| schema.field(i).data_type();
    if options.others == Others::All {
        selection.others.retain(|&i| has_text(kind(i)));
    }
    let numbers = selection.all().into_iter().map(|i| (i, foreign(kind(i))));
    let texts = selection.others.iter().map(|&i| {
        let found = foreign(kind(i)).unwrap_or("lists");
        (i, (!has_text(kind(i))).then_some(found))
    });
    match numbers.chain(texts).find_map(|(i, found)| Some((i, found?))) {
        Some((i, found)) => Err(Error::NotNumeric {
            path: table.path.to_owned(),
            column: table.label(i),
            kind: found.to_owned(),
        }),
        None => Ok(()),
    }
}

/// A column of numbers, with `NaN` for null; integers beyond 2^53 are rounded.
fn numbers_of(array: &dyn Array, budget: &Budget) -> Result<Vec<f64>, Error> {
    let mut numbers = budget.vector(array.len())?;
    each_number(array, |x| {
        numbers.push(x.unwrap_or(f64::NAN));
        Ok(())
    })?;
    Ok(numbers)
}

/// Hands over the numbers of a column, and nothing for null; a column of something else has none.
fn each_number(
    array: &dyn Array,
    push: impl FnMut(Option<f64>) -> Result<(), Error>,
) -> Result<(), Error> {
    fn each<T: ArrowPrimitiveType>(
        array: &dyn Array,
        number: impl Fn(T::Native) -> f64,
        mut push: impl FnMut(Option<f64>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        array.as_primitive::<T>().iter().try_for_each(|x| push(x.map(&number)))
    }
    match array.data_type() {
        DataType::Float16 => each::<Float16Type>(array, f64::from, push),
        DataType::Float32 => each::<Float32Type>(array, f64::from, push),
        DataType::Float64 => each::<Float64Type>(array, |x| x, push),
        DataType::Int8 => each::<Int8Type>(array, f64::from, push),
        DataType::Int16 => each::<Int16Type>(array, f64::from, push),
        DataType::Int32 => each::<Int32Type>(array, f64::from, push),
        DataType::Int64 => each::<Int64Type>(array, |x| x as f64, push),
        DataType::UInt8 => each::<UInt8Type>(array, f64::from, push),
        DataType::UInt16 => each::<UInt16Type>(array, f64::from, push),
        DataType::UInt32 => each::<UInt32Type>(array, f64::from, push),
        DataType::UInt64 => each::<UInt64Type>(array, |x| x as f64, push),
        DataType::Decimal32(_, scale) => {
            each::<Decimal32Type>(array, |x| f64::from(x) / unit(*scale), push)
        }
        DataType::Decimal64(_, scale) => {
            each::<Decimal64Type>(array, |x| x as f64 / unit(*scale), push)
        }
        DataType::Decimal128(_, scale) => {
            each::<Decimal128Type>(array, |x| x as f64 / unit(*scale), push)
        }
        _ => Ok(()),
    }
}

/// What integers of a decimal type are multiples of.
fn unit(scale: i8) -> f64 {
    f64::powi(10.0, i32::from(scale))
}

/// Adds the cells of a column as text; null is empty.
fn add_text(array: &dyn Array, other: &mut Other, budget: &Budget) -> Result<(), Error> {
    let cells = &mut other.cells;
    let mut push = |cell: String| budget.push_cell(cells, cell);
    let kind = array.data_type();
    if foreign(kind).is_none() {
        let narrow = *kind == DataType::Float32;
        #[expect(clippy::cast_possible_truncation, reason = "read as 32-bit floats")]
        let text = |x: f64| if narrow { (x as f32).to_string() } else { x.to_string() };
        let known = |x: Option<f64>| x.filter(|x| !x.is_nan()).map(text).unwrap_or_default();
        return each_number(array, |x| push(known(x)));
    }
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return dictionary_text(dictionary, push);
    }
    (0..array.len()).try_for_each(|i| push(cell(array, i).unwrap_or_default()))
}

/// A cell of text or of a truth value; nothing if it is null.
fn cell(array: &dyn Array, i: usize) -> Option<String> {
    if array.is_null(i) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(i).to_owned()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(i).to_owned()),
        DataType::Utf8View => Some(array.as_string_view().value(i).to_owned()),
        DataType::Boolean => Some(array.as_boolean().value(i).to_string()),
        _ => None,
    }
}

fn dictionary_text(
    dictionary: &dyn AnyDictionaryArray,
    mut push: impl FnMut(String) -> Result<(), Error>,
) -> Result<(), Error> {
    let keys = dictionary.normalized_keys();
    let values = dictionary.values();
    for (i, key) in keys.into_iter().enumerate() {
        let known = dictionary.keys().is_valid(i) && key < values.len();
        push(known.then(|| cell(values.as_ref(), key)).flatten().unwrap_or_default())?;
    }
    Ok(())
}

fn malformed(path: &str, detail: &str) -> Error {
    let detail = format!("{detail}; get a complete copy");
    Error::Malformed { path: path.to_owned(), format: "Arrow", detail }
}

/// What the decoder says, in other words than its own.
fn arrow_error(path: &str, error: ArrowError, budget: &Budget) -> Error {
    match error {
        ArrowError::IoError(_, source) => budget.error(source),
        ArrowError::MemoryError(_) => budget.exceeded(),
        ArrowError::NotYetImplemented(_) => Error::Unsupported {
            path: path.to_owned(),
            what: "a feature of this Arrow file".to_owned(),
            remedy: "write it anew with the usual settings".to_owned(),
        },
        _ => malformed(path, "a message is damaged"),
    }
}
