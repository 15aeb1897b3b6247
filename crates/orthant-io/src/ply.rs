//! Vertices from PLY files, in text or binary.
//!
//! Read here rather than by a crate: those at hand refuse `nan` and `.5` in text and lose a
//! property if two have the same name, which shifts all binary data after it.

use std::io::{self, BufRead, BufReader, Read};

use crate::budget::{Budget, Limited};
use crate::error::{Error, Place, one_line, quote};
use crate::number::{Decimal, Field};
use crate::screen::Screen;
use crate::select::Table;
use crate::{Cloud, Other, Others, ReadOptions, Values};

/// Far longer than any header.
const LONGEST_HEADER: u64 = 1 << 20;

/// Reads the vertices.
pub(crate) fn read(
    path: &str,
    reader: impl Read,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Error> {
    let mut reader = BufReader::new(budget.limit(reader));
    let header = Header::read(path, &mut reader)?;
    let Some(at) = header.elements.iter().position(|e| e.name == "vertex") else {
        return Err(malformed(path, "there is no element vertex".to_owned()));
    };
    let vertex = &header.elements[at];
    let names: Vec<String> = vertex.properties.iter().map(|p| p.name.clone()).collect();
    let table = Table { path, count: names.len(), names: Some(&names) };
    let mut selection = table.select(options, || default_columns(&table))?;
    let is_list = |i: usize| matches!(vertex.properties[i].kind, Kind::List { .. });
    if options.others == Others::All {
        selection.others.retain(|&i| !is_list(i));
    }
    let mut columns = selection.all();
    let dim = selection.coordinates.len();
    for &i in &selection.others {
        // The weights may be among them, and one may be asked for twice.
        if !columns.contains(&i) {
            columns.push(i);
        }
    }
    for &i in &columns {
        if is_list(i) {
            return Err(Error::NotNumeric {
                path: path.to_owned(),
                column: table.label(i),
                kind: "lists".to_owned(),
            });
        }
    }

    let mut body = Body { path, reader, encoding: header.encoding, line: Vec::new(), budget };
    for element in &header.elements[..at] {
        body.skip(element)?;
    }
    let numbers = body.read(vertex, &columns, &table)?;

    let column = |i: usize| {
        let at = columns.iter().position(|&c| c == i).unwrap_or_default();
        numbers.iter().copied().skip(at).step_by(columns.len())
    };
    let weights = match selection.weights {
        Some(i) => {
            let mut weights = budget.vector(numbers.len() / columns.len())?;
            weights.extend(column(i));
            Some(weights)
        }
        None => None,
    };
    let is_narrow = |i: usize| vertex.properties[i].kind == Kind::Scalar(Scalar::F32);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the numbers were read as 32-bit floats, so nothing is lost"
    )]
    let text = |i: usize, x: f64| if is_narrow(i) { (x as f32).to_string() } else { x.to_string() };
    let mut others: Vec<Other> = Vec::new();
    for &i in &selection.others {
        let mut cells = Vec::new();
        for x in column(i) {
            budget.push_cell(&mut cells, text(i, x))?;
        }
        others.push(table.other(i, cells));
    }
    let coordinates = numbers.chunks_exact(columns.len()).flat_map(|row| &row[..dim]);
    let narrow = selection.coordinates.iter().all(|&i| is_narrow(i));
    let points = numbers.len() / columns.len() * dim;
    let values = if narrow {
        let mut values = budget.vector(points)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the numbers were read as 32-bit floats, so nothing is lost"
        )]
        values.extend(coordinates.map(|&x| x as f32));
        Values::F32(values)
    } else if columns.len() == dim {
        Values::F64(numbers)
    } else {
        let mut values = budget.vector(points)?;
        values.extend(coordinates);
        Values::F64(values)
    };
    Screen::new(&table, &selection, options, "NaN", others).finish(values, weights)
}

/// `x`, `y` and, if there is one, `z`.
fn default_columns(table: &Table<'_>) -> Result<Vec<usize>, Error> {
    let names = table.names.unwrap_or_default();
    let find = |name: &str| names.iter().position(|n| n == name);
    match (find("x"), find("y")) {
        (Some(x), Some(y)) => Ok([x, y].into_iter().chain(find("z")).collect()),
        (x, _) => Err(Error::UnknownColumn {
            path: table.path.to_owned(),
            column: if x.is_none() { "x" } else { "y" }.to_owned(),
            names: Some(names.to_vec()),
            count: table.count,
            in_first_line: false,
        }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Text,
    Little,
    Big,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar(Scalar),
    List { count: Scalar, item: Scalar },
}

#[derive(Debug)]
struct Property {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
struct Element {
    name: String,
    count: u64,
    properties: Vec<Property>,
}

impl Scalar {
    fn parse(name: &str) -> Option<Scalar> {
        Some(match name {
            "char" | "int8" => Scalar::I8,
            "uchar" | "uint8" => Scalar::U8,
            "short" | "int16" => Scalar::I16,
            "ushort" | "uint16" => Scalar::U16,
            "int" | "int32" => Scalar::I32,
            "uint" | "uint32" => Scalar::U32,
            "float" | "float32" => Scalar::F32,
            "double" | "float64" => Scalar::F64,
            _ => return None,
        })
    }

    fn size(self) -> u64 {
        match self {
            Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::F64 => 8,
        }
    }

    /// Reads a binary number.
    fn read(self, reader: &mut impl Read, big: bool) -> io::Result<f64> {
        Ok(match self {
            Scalar::I8 => f64::from(i8::from_le_bytes(bytes(reader, big)?)),
            Scalar::U8 => f64::from(u8::from_le_bytes(bytes(reader, big)?)),
            Scalar::I16 => f64::from(i16::from_le_bytes(bytes(reader, big)?)),
            Scalar::U16 => f64::from(u16::from_le_bytes(bytes(reader, big)?)),
            Scalar::I32 => f64::from(i32::from_le_bytes(bytes(reader, big)?)),
            Scalar::U32 => f64::from(u32::from_le_bytes(bytes(reader, big)?)),
            Scalar::F32 => f64::from(f32::from_le_bytes(bytes(reader, big)?)),
            Scalar::F64 => f64::from_le_bytes(bytes(reader, big)?),
        })
    }

    /// Parses a number in text; 32-bit floats are rounded as if they were stored.
    fn parse_text(self, token: &[u8]) -> Option<f64> {
        let text = str::from_utf8(token).ok()?;
        if self == Scalar::F32 {
            return text.parse::<f32>().ok().map(f64::from);
        }
        text.parse().ok()
    }
}

/// The next bytes, as if they were little-endian.
fn bytes<const N: usize>(reader: &mut impl Read, big: bool) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    if big {
        bytes.reverse();
    }
    Ok(bytes)
}

#[derive(Debug)]
struct Header {
    encoding: Encoding,
    elements: Vec<Element>,
}

impl Header {
    fn read(path: &str, reader: &mut impl BufRead) -> Result<Header, Error> {
        let mut encoding = None;
        let mut elements: Vec<Element> = Vec::new();
        let mut reader = reader.take(LONGEST_HEADER);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(|source| Error::read(path, source))?;
            if line.last() != Some(&b'\n') {
                return Err(Error::Truncated {
                    path: path.to_owned(),
                    detail: "the header has no end".to_owned(),
                });
            }
            let text = String::from_utf8_lossy(&line);
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            let understood = match *words {
                ["ply"] => number == 1,
                [] | ["comment" | "obj_info", ..] => number > 1,
                ["format", name, "1.0"] => {
                    encoding = match name {
                        "ascii" => Some(Encoding::Text),
                        "binary_little_endian" => Some(Encoding::Little),
                        "binary_big_endian" => Some(Encoding::Big),
                        _ => None,
                    };
                    encoding.is_some()
                }
                ["element", name, count] => count.parse().is_ok_and(|count| {
                    elements.push(Element { name: name.to_owned(), count, properties: Vec::new() });
                    true
                }),
                ["property", ref kind @ .., name] => {
                    let kind = match *kind {
                        [kind] => Scalar::parse(kind).map(Kind::Scalar),
                        ["list", count, item] => Scalar::parse(count)
                            .zip(Scalar::parse(item))
                            .map(|(count, item)| Kind::List { count, item }),
                        _ => None,
                    };
                    match (elements.last_mut(), kind) {
                        (Some(element), Some(kind)) => {
                            let name = name.to_owned();
                            element.properties.push(Property { name, kind });
                            true
                        }
                        _ => false,
                    }
                }
                ["end_header"] => break,
                _ => false,
            };
            if !understood {
                return Err(malformed(
                    path,
                    format!(
                        "cannot make sense of line {number} of the header, {}",
                        quote(&one_line(&text))
                    ),
                ));
            }
        }
        match encoding {
            Some(encoding) => Ok(Header { encoding, elements }),
            None => Err(malformed(path, "the header has no format".to_owned())),
        }
    }
}

/// The data after the header.
struct Body<'a, R> {
    path: &'a str,
    reader: R,
    encoding: Encoding,
    /// The current line of text.
    line: Vec<u8>,
    budget: &'a Budget,
}

impl<R: Read> Body<'_, BufReader<Limited<R>>> {
    /// Passes over an element.
    fn skip(&mut self, element: &Element) -> Result<(), Error> {
        if element.properties.is_empty() {
            return Ok(());
        }
        for index in 0..element.count {
            match self.encoding {
                Encoding::Text => self.next_line(element, index)?,
                Encoding::Little | Encoding::Big => {
                    self.binary(element, index, &mut |_, _| {})?;
                }
            }
        }
        Ok(())
    }

    /// Reads some columns of an element, row after row.
    fn read(
        &mut self,
        element: &Element,
        columns: &[usize],
        table: &Table<'_>,
    ) -> Result<Vec<f64>, Error> {
        // Where each property goes, if it is wanted.
        let mut slots = vec![None; element.properties.len()];
        for (slot, &column) in columns.iter().enumerate() {
            slots[column] = Some(slot);
        }
        let mut numbers = Vec::new();
        let mut row = vec![0.0; columns.len()];
        for index in 0..element.count {
            if self.encoding == Encoding::Text {
                self.next_line(element, index)?;
                self.text(element, index, &slots, &mut row, table)?;
            } else {
                self.binary(element, index, &mut |property, number| {
                    if let Some(slot) = slots[property] {
                        row[slot] = number;
                    }
                })?;
            }
            self.budget.reserve(&mut numbers, row.len())?;
            numbers.extend_from_slice(&row);
        }
        Ok(numbers)
    }

    /// Reads the next line that is not blank.
    fn next_line(&mut self, element: &Element, index: u64) -> Result<(), Error> {
        // A line without an end would fill the memory. Vectors double, and a block is read ahead.
        let left = (self.budget.left() / 4).saturating_add(1 << 16);
        self.reader.get_mut().restart(left);
        loop {
            self.line.clear();
            let length = self
                .reader
                .read_until(b'\n', &mut self.line)
                .map_err(|source| self.budget.error(source))?;
            if length == 0 {
                return Err(self.short(element, index));
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(());
            }
        }
    }

    /// Parses the current line.
    fn text(
        &self,
        element: &Element,
        index: u64,
        slots: &[Option<usize>],
        row: &mut [f64],
        table: &Table<'_>,
    ) -> Result<(), Error> {
        let wrong = |what: &str| {
            malformed(self.path, format!("row {} of {} has {what}", index + 1, element.name))
        };
        let mut tokens = self.line.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty());
        for (i, property) in element.properties.iter().enumerate() {
            let token = tokens.next().ok_or_else(|| wrong("too few values"))?;
            match property.kind {
                Kind::List { .. } => {
                    let count = match Field::parse(token, Decimal::Point) {
                        Field::Number(count) => list_length(count),
                        _ => None,
                    };
                    let count = count.ok_or_else(|| wrong("a list of no valid length"))?;
                    for _ in 0..count {
                        tokens.next().ok_or_else(|| wrong("too few values"))?;
                    }
                }
                Kind::Scalar(scalar) => {
                    let Some(slot) = slots[i] else { continue };
                    row[slot] = scalar.parse_text(token).ok_or_else(|| Error::NotANumber {
                        path: self.path.to_owned(),
                        place: Place { row: index + 1, line: None, column: table.label(i) },
                        value: String::from_utf8_lossy(token).into_owned(),
                        comma: false,
                    })?;
                }
            }
        }
        match tokens.next() {
            Some(_) => Err(wrong("too many values")),
            None => Ok(()),
        }
    }

    /// Reads one row of binary data, handing over the scalars with the index of their property.
    fn binary(
        &mut self,
        element: &Element,
        index: u64,
        each: &mut impl FnMut(usize, f64),
    ) -> Result<(), Error> {
        let big = self.encoding == Encoding::Big;
        // What is passed over takes no memory.
        self.reader.get_mut().restart(u64::MAX);
        let mut all = || -> io::Result<bool> {
            for (i, property) in element.properties.iter().enumerate() {
                match property.kind {
                    Kind::Scalar(scalar) => each(i, scalar.read(&mut self.reader, big)?),
                    Kind::List { count, item } => {
                        let Some(count) = list_length(count.read(&mut self.reader, big)?) else {
                            return Ok(false);
                        };
                        let size = count * item.size();
                        let mut list = (&mut self.reader).take(size);
                        if io::copy(&mut list, &mut io::sink())? < size {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                    }
                }
            }
            Ok(true)
        };
        match all() {
            Ok(true) => Ok(()),
            Ok(false) => Err(malformed(
                self.path,
                format!("row {} of {} has a list of no valid length", index + 1, element.name),
            )),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.short(element, index))
            }
            Err(error) => Err(self.budget.error(error)),
        }
    }

    fn short(&self, element: &Element, index: u64) -> Error {
        Error::Truncated {
            path: self.path.to_owned(),
            detail: format!(
                "the header promises {} rows of {}, and {index} are there",
                element.count, element.name
            ),
        }
    }
}

/// The length of a list, if it can be one.
fn list_length(count: f64) -> Option<u64> {
    // No list type counts further than 32 bits, so the conversion is exact.
    let whole = count >= 0.0 && count <= f64::from(u32::MAX) && count.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
    whole.then_some(count as u64)
}

fn malformed(path: &str, detail: String) -> Error {
    Error::Malformed { path: path.to_owned(), format: "PLY", detail }
}
