//! `NumPy` arrays.

use std::io::{self, Read};

use crate::budget::Budget;
use crate::error::{Error, quote};
use crate::npy_header::{Header, malformed};
use crate::screen::Screen;
use crate::select::{Selection, Table};
use crate::{Cloud, ReadOptions, Values};

/// Reads an array as a cloud; `length` is that of the whole file, if it is known.
pub(crate) fn read(
    path: &str,
    reader: impl Read,
    length: Option<u64>,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Error> {
    let array = Array::read(path, reader, length, budget)?;
    let table = array.table(path);
    let selection = table.select(options, || Ok((0..table.count).collect()))?;
    let screen = screen(&array, &table, &selection, options, budget)?;
    let (values, weights) = array.arrange(&selection, budget)?;
    screen.finish(values, weights)
}

/// The checks for an array, whose columns have no names.
pub(crate) fn screen<'a>(
    array: &Array,
    table: &Table<'a>,
    selection: &Selection,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Screen<'a>, Error> {
    let mut others = Vec::new();
    for &i in &selection.others {
        others.push(table.other(i, array.cells(i, budget)?));
    }
    Ok(Screen::new(table, selection, options, "NaN", others))
}

/// An array of one or two axes, in the order in which it is stored.
#[derive(Debug)]
pub(crate) struct Array {
    values: Values,
    rows: usize,
    columns: usize,
    /// Column after column instead of row after row.
    fortran: bool,
    axes: usize,
}

impl Array {
    pub(crate) fn read(
        path: &str,
        mut reader: impl Read,
        length: Option<u64>,
        budget: &Budget,
    ) -> Result<Self, Error> {
        let (header, size) = Header::read(path, &mut reader)?;
        let dtype = Dtype::parse(path, &header.descr)?;
        let (rows, columns) = match *header.shape {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => {
                return Err(Error::Unsupported {
                    path: path.to_owned(),
                    what: format!("an array of shape {}", header.shape()),
                    remedy: "save an array of one or two axes, with the points in its rows"
                        .to_owned(),
                });
            }
        };
        let (Some(count), Ok(rows), Ok(columns)) = (
            rows.checked_mul(columns)
                .filter(|count| count.checked_mul(dtype.size() as u64).is_some())
                .and_then(|count| usize::try_from(count).ok()),
            usize::try_from(rows),
            usize::try_from(columns),
        ) else {
            return Err(malformed(path, format!("the shape {} is too large", header.shape())));
        };
        let need = count as u64 * dtype.size() as u64;
        let short = |have: u64| Error::Truncated {
            path: path.to_owned(),
            detail: format!(
                "its shape {} takes {need} bytes, and {have} are there",
                header.shape()
            ),
        };
        if let Some(have) = length.map(|length| length.saturating_sub(size))
            && have < need
        {
            return Err(short(have));
        }
        let reserved = if length.is_some() { count } else { 0 };
        let values =
            dtype.decode(&mut reader, count, reserved, budget).map_err(|stop| match stop {
                Stop::End(read) => short(read),
                Stop::Error(error) => error,
            })?;
        // Reading to the end also makes the decompressors verify their checksums.
        let more = reader.read(&mut [0]).map_err(|source| Error::read(path, source))?;
        if more > 0 {
            return Err(malformed(
                path,
                format!("more data follow than the shape {} takes", header.shape()),
            ));
        }
        Ok(Array { values, rows, columns, fortran: header.fortran, axes: header.shape.len() })
    }

    /// An array from its bytes, row after row; nothing if there are not as many as the shape takes.
    pub(crate) fn decode(
        bytes: &[u8],
        dtype: Dtype,
        (rows, columns): (usize, usize),
        axes: usize,
        budget: &Budget,
    ) -> Option<Result<Self, Error>> {
        let count = rows.checked_mul(columns)?;
        if count.checked_mul(dtype.size()) != Some(bytes.len()) {
            return None;
        }
        match dtype.decode(&mut &*bytes, count, count, budget) {
            Ok(values) => Some(Ok(Array { values, rows, columns, fortran: false, axes })),
            Err(Stop::End(_)) => None,
            Err(Stop::Error(error)) => Some(Err(error)),
        }
    }

    pub(crate) fn table<'a>(&self, path: &'a str) -> Table<'a> {
        Table { path, count: self.columns, names: None }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The numbers of an array of one axis.
    pub(crate) fn into_vector(self) -> Option<Vec<f64>> {
        (self.axes == 1).then(|| match self.values {
            Values::F32(values) => values.into_iter().map(f64::from).collect(),
            Values::F64(values) => values,
        })
    }

    /// A column as text.
    pub(crate) fn cells(&self, column: usize, budget: &Budget) -> Result<Vec<String>, Error> {
        let layout = Layout { rows: self.rows, columns: self.columns, fortran: self.fortran };
        let mut cells = Vec::new();
        for at in (0..self.rows).map(|row| layout.at(row, column)) {
            let cell = match &self.values {
                Values::F32(values) => values[at].to_string(),
                Values::F64(values) => values[at].to_string(),
            };
            budget.push_cell(&mut cells, cell)?;
        }
        Ok(cells)
    }

    /// The coordinates, point after point, and the weights.
    pub(crate) fn arrange(
        self,
        selection: &Selection,
        budget: &Budget,
    ) -> Result<(Values, Option<Vec<f64>>), Error> {
        let layout = Layout { rows: self.rows, columns: self.columns, fortran: self.fortran };
        let (columns, weights) = (&selection.coordinates, selection.weights);
        Ok(match self.values {
            Values::F32(values) => {
                let weights = weights.map(|i| layout.column(&values, i, budget)).transpose()?;
                (Values::F32(layout.pick(values, columns, budget)?), weights)
            }
            Values::F64(values) => {
                let weights = weights.map(|i| layout.column(&values, i, budget)).transpose()?;
                (Values::F64(layout.pick(values, columns, budget)?), weights)
            }
        })
    }
}

/// Where the numbers of an array are.
struct Layout {
    rows: usize,
    columns: usize,
    fortran: bool,
}

impl Layout {
    fn at(&self, row: usize, column: usize) -> usize {
        if self.fortran { column * self.rows + row } else { row * self.columns + column }
    }

    fn column<T: Copy + Into<f64>>(
        &self,
        values: &[T],
        column: usize,
        budget: &Budget,
    ) -> Result<Vec<f64>, Error> {
        let mut numbers = budget.vector(self.rows)?;
        numbers.extend((0..self.rows).map(|row| values[self.at(row, column)].into()));
        Ok(numbers)
    }

    fn pick<T: Copy>(
        &self,
        values: Vec<T>,
        columns: &[usize],
        budget: &Budget,
    ) -> Result<Vec<T>, Error> {
        let in_place = !self.fortran || self.columns == 1 || self.rows == 1;
        if in_place && columns.iter().copied().eq(0..self.columns) {
            return Ok(values);
        }
        let mut picked = budget.vector(self.rows * columns.len())?;
        for row in 0..self.rows {
            picked.extend(columns.iter().map(|&column| values[self.at(row, column)]));
        }
        budget.give(values.capacity() * size_of::<T>());
        Ok(picked)
    }
}

/// Why an array could not be decoded.
enum Stop {
    /// The data end after this many bytes.
    End(u64),
    Error(Error),
}

/// The type of the numbers in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dtype {
    pub(crate) kind: Kind,
    /// The most significant byte comes first.
    pub(crate) big: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    F2,
    F4,
    F8,
    I1,
    I2,
    I4,
    I8,
    U1,
    U2,
    U4,
    U8,
}

impl Dtype {
    fn parse(path: &str, descr: &str) -> Result<Self, Error> {
        let (order, code) = match descr.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), ..] => (*order, &descr[1..]),
            _ => (b'=', descr),
        };
        let kind = match code {
            "f2" => Kind::F2,
            "f4" => Kind::F4,
            "f8" => Kind::F8,
            "i1" => Kind::I1,
            "i2" => Kind::I2,
            "i4" => Kind::I4,
            "i8" => Kind::I8,
            "u1" => Kind::U1,
            "u2" => Kind::U2,
            "u4" => Kind::U4,
            "u8" => Kind::U8,
            _ => {
                let name = match code.as_bytes().first() {
                    Some(b'b' | b'?') => "boolean",
                    Some(b'c') => "complex",
                    Some(b'O') => "object",
                    Some(b'S' | b'U' | b'a') => "string",
                    Some(b'm' | b'M') => "date or time",
                    Some(b'V' | b'[') => "structured",
                    Some(b'f') => "extended float",
                    _ => "unknown",
                };
                return Err(Error::Unsupported {
                    path: path.to_owned(),
                    what: format!("an array of {name} type {}", quote(descr)),
                    remedy: "convert it with .astype(float) before saving".to_owned(),
                });
            }
        };
        Ok(Dtype { kind, big: order == b'>' })
    }

    fn size(self) -> usize {
        match self.kind {
            Kind::I1 | Kind::U1 => 1,
            Kind::F2 | Kind::I2 | Kind::U2 => 2,
            Kind::F4 | Kind::I4 | Kind::U4 => 4,
            Kind::F8 | Kind::I8 | Kind::U8 => 8,
        }
    }

    /// Reads the numbers; integers beyond 2^53 are rounded. Memory is reserved for so many, as these are known to be
    /// there.
    fn decode(
        self,
        reader: &mut impl Read,
        count: usize,
        reserved: usize,
        budget: &Budget,
    ) -> Result<Values, Stop> {
        let mut source = Source { reader, count, reserved, big: self.big, budget };
        Ok(match self.kind {
            Kind::F4 => Values::F32(source.collect(f32::from_le_bytes)?),
            Kind::F8 => Values::F64(source.collect(f64::from_le_bytes)?),
            Kind::F2 => Values::F64(source.collect(|b| half(u16::from_le_bytes(b)))?),
            Kind::I1 => Values::F64(source.collect(|b| f64::from(i8::from_le_bytes(b)))?),
            Kind::I2 => Values::F64(source.collect(|b| f64::from(i16::from_le_bytes(b)))?),
            Kind::I4 => Values::F64(source.collect(|b| f64::from(i32::from_le_bytes(b)))?),
            Kind::I8 => Values::F64(source.collect(|b| i64::from_le_bytes(b) as f64)?),
            Kind::U1 => Values::F64(source.collect(|b| f64::from(u8::from_le_bytes(b)))?),
            Kind::U2 => Values::F64(source.collect(|b| f64::from(u16::from_le_bytes(b)))?),
            Kind::U4 => Values::F64(source.collect(|b| f64::from(u32::from_le_bytes(b)))?),
            Kind::U8 => Values::F64(source.collect(|b| u64::from_le_bytes(b) as f64)?),
        })
    }
}

/// Numbers in binary.
struct Source<'a, R> {
    reader: &'a mut R,
    count: usize,
    /// A header may claim any number of values; memory is not reserved on its word alone.
    reserved: usize,
    big: bool,
    budget: &'a Budget,
}

impl<R: Read> Source<'_, R> {
    /// Reads numbers of `N` bytes.
    fn collect<const N: usize, T>(
        &mut self,
        number: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, Stop> {
        const CHUNK: usize = 1 << 16;
        let mut numbers = self.budget.vector(self.reserved).map_err(Stop::Error)?;
        let mut buffer = vec![0; CHUNK];
        while numbers.len() < self.count {
            let want = (self.count - numbers.len()).min(CHUNK / N) * N;
            let got = fill(self.reader, &mut buffer[..want])
                .map_err(|source| Stop::Error(self.budget.error(source)))?;
            if got < want {
                return Err(Stop::End((numbers.len() * N + got) as u64));
            }
            let (chunks, _) = buffer[..want].as_chunks::<N>();
            self.budget.reserve(&mut numbers, chunks.len()).map_err(Stop::Error)?;
            if self.big {
                numbers.extend(chunks.iter().map(|&chunk| {
                    let mut chunk = chunk;
                    chunk.reverse();
                    number(chunk)
                }));
            } else {
                numbers.extend(chunks.iter().map(|&chunk| number(chunk)));
            }
        }
        Ok(numbers)
    }
}

/// Reads until the buffer is full or the data end; returns how much was read.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A half-precision float from its bits.
pub(crate) fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * f64::powi(2.0, -14),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction) * f64::powi(2.0, exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "half-precision floats are exact in double precision")]
    fn halves() {
        assert_eq!(half(0x3c00), 1.0);
        assert_eq!(half(0xc500), -5.0);
        assert_eq!(half(0x0001), f64::powi(2.0, -24));
        assert_eq!(half(0x7bff), 65504.0);
        assert_eq!(half(0xfc00), f64::NEG_INFINITY);
        assert!(half(0x7e00).is_nan());
        assert!(half(0x8000).is_sign_negative());
    }
}
