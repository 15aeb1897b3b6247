//! Tables in text: CSV, TSV and columns aligned with spaces.

use std::io::Read;

use csv::ByteRecord;

use crate::delimiter::{self, Delimiter};
use crate::error::{Error, Place};
use crate::number::Field;
use crate::records::Records;
use crate::rows::Rows;
use crate::select::{Selection, Table, named};
use crate::{Cloud, Missing, Other, Others, ReadOptions, Values};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of a file.
pub(crate) struct Sample<'a> {
    pub(crate) bytes: &'a [u8],
    /// The file ends where the sample does.
    pub(crate) complete: bool,
}

/// Reads a table; the sample is the beginning of what `reader` yields.
pub(crate) fn read(
    path: &str,
    sample: &Sample<'_>,
    tabs: bool,
    mut reader: Box<dyn Read + '_>,
    options: &ReadOptions,
) -> Result<Cloud, Error> {
    let unreadable = |source| Error::read(path, source);
    let mut head = sample.bytes;
    if let Some(rest) = head.strip_prefix(BOM) {
        reader.read_exact(&mut [0; BOM.len()]).map_err(unreadable)?;
        head = rest;
    }
    let carriage = head.contains(&b'\r') && !head.contains(&b'\n');
    let delimiter = if tabs {
        Delimiter::Byte(b'\t')
    } else {
        delimiter::sniff(head, sample.complete, carriage)
    };

    let mut records = Records::new(reader, delimiter, carriage);
    let mut record = ByteRecord::new();
    if !records.next(&mut record).map_err(unreadable)? {
        return Err(Error::NoRows { path: path.to_owned(), header: false });
    }
    let names = header(path, &record, options);
    let table = Table { path, count: record.len(), names: names.as_deref() };
    let selection = table.select(options, || every_column(&table))?;
    let mut body = Body::new(&table, &selection, options);

    // Without a header the first record is the first row.
    let mut more = names.is_none() || records.next(&mut record).map_err(unreadable)?;
    while more {
        body.push(&record, &|| records.line(&record))?;
        more = records.next(&mut record).map_err(unreadable)?;
    }
    body.finish()
}

/// The names of the columns, if the first record is a header.
///
/// It is one if it has all the names that are asked for, or if a selected field is neither a number
/// nor missing: a row with a gap is a row even when it comes first. Fields that are not selected do
/// not count, so that a column of text may stand beside the coordinates without a header.
fn header(path: &str, record: &ByteRecord, options: &ReadOptions) -> Option<Vec<String>> {
    let count = record.len();
    let is_text = |i: usize| record.get(i).is_some_and(|f| Field::parse(f) == Field::Text);
    let all = || Ok((0..count).collect());
    let names: Vec<String> = record
        .iter()
        .map(|field| String::from_utf8_lossy(field.trim_ascii()).into_owned())
        .collect();

    let table = |names| Table { path, count, names };
    let is_header = if named(options, count).next().is_some() {
        let found = table(Some(&names)).select(options, all);
        !matches!(found, Err(Error::UnknownColumn { .. })) || (0..count).any(is_text)
    } else {
        match table(None).select(options, all) {
            Ok(selection) => selection.all().into_iter().any(is_text),
            // The selection is wrong either way; the message is better with names.
            Err(_) => (0..count).any(is_text),
        }
    };
    is_header.then_some(names)
}

/// All columns, if all of them are meant to be data.
fn every_column(table: &Table<'_>) -> Result<Vec<usize>, Error> {
    let unnamed = table.names.and_then(|names| names.iter().position(String::is_empty));
    match unnamed {
        // Written by pandas and R for the row numbers, which would silently become a coordinate.
        Some(i) => Err(Error::UnnamedColumn { path: table.path.to_owned(), position: i + 1 }),
        None => Ok((0..table.count).collect()),
    }
}

/// Finds the line of the current record.
type Line<'a> = &'a dyn Fn() -> Option<u64>;

/// The rows read so far.
struct Body<'a> {
    table: &'a Table<'a>,
    selection: &'a Selection,
    missing: Missing,
    values: Vec<f64>,
    weights: Option<Vec<f64>>,
    others: Vec<Other>,
    /// Missing values in the others count.
    checked: bool,
    seen: u64,
    rows: Rows,
}

impl<'a> Body<'a> {
    fn new(table: &'a Table<'a>, selection: &'a Selection, options: &ReadOptions) -> Self {
        Body {
            table,
            selection,
            missing: options.missing,
            values: Vec::new(),
            weights: selection.weights.map(|_| Vec::new()),
            others: selection.others.iter().map(|&i| table.other(i, Vec::new())).collect(),
            checked: matches!(options.others, Others::These(_)),
            seen: 0,
            rows: Rows::default(),
        }
    }

    /// Adds a row; its line is only worth counting if there is an error to report.
    fn push(&mut self, record: &ByteRecord, line: Line<'_>) -> Result<(), Error> {
        self.seen += 1;
        if record.len() != self.table.count {
            return Err(Error::Ragged {
                path: self.table.path.to_owned(),
                row: self.seen,
                line: line(),
                expected: self.table.count,
                found: record.len(),
            });
        }
        let start = self.values.len();
        let mut complete = true;
        for &column in &self.selection.coordinates {
            match self.number(record, line, column)? {
                Some(number) => self.values.push(number),
                None => complete = false,
            }
        }
        let weight = match self.selection.weights {
            Some(column) => self.number(record, line, column)?,
            None => None,
        };
        complete &= weight.is_some() || self.selection.weights.is_none();
        if self.checked {
            for &column in &self.selection.others {
                complete &= self.is_there(record, line, column)?;
            }
        }
        if complete {
            for other in &mut self.others {
                let field = record.get(other.position).unwrap_or_default().trim_ascii();
                other.cells.push(String::from_utf8_lossy(field).into_owned());
            }
            if let (Some(weights), Some(weight)) = (&mut self.weights, weight) {
                weights.push(weight);
            }
            self.rows.keep();
        } else {
            self.values.truncate(start);
            self.rows.skip();
        }
        Ok(())
    }

    /// The number in a column, or nothing if it is missing and may be.
    fn number(
        &self,
        record: &ByteRecord,
        line: Line<'_>,
        column: usize,
    ) -> Result<Option<f64>, Error> {
        let field = record.get(column).unwrap_or_default();
        let found = Field::parse(field);
        match found {
            Field::Number(number) if number.is_finite() => return Ok(Some(number)),
            Field::Missing if self.missing == Missing::Drop => return Ok(None),
            _ => {}
        }
        let path = self.table.path.to_owned();
        let value = String::from_utf8_lossy(field.trim_ascii()).into_owned();
        let place = Place { row: self.seen, line: line(), column: self.table.label(column) };
        Err(match found {
            Field::Number(_) => Error::Infinite { path, place, value },
            Field::Missing => Error::MissingValue { path, place, value },
            Field::Text => Error::NotANumber { path, place, value },
        })
    }

    /// Whether there is anything in a column; an error if there is not, and has to be.
    fn is_there(&self, record: &ByteRecord, line: Line<'_>, column: usize) -> Result<bool, Error> {
        if Field::parse(record.get(column).unwrap_or_default()) == Field::Missing {
            return Ok(self.number(record, line, column)?.is_some());
        }
        Ok(true)
    }

    fn finish(self) -> Result<Cloud, Error> {
        let path = self.table.path;
        if self.seen == 0 {
            return Err(Error::NoRows { path: path.to_owned(), header: true });
        }
        let dropped = usize::try_from(self.rows.dropped()).unwrap_or(usize::MAX);
        if self.values.is_empty() {
            return Err(Error::AllDropped { path: path.to_owned(), dropped });
        }
        Ok(Cloud {
            path: path.to_owned(),
            weights_name: self.selection.weights.map(|i| self.table.label(i).name()),
            rows: self.rows,
            notes: Vec::new(),
            values: Values::F64(self.values),
            dim: self.selection.coordinates.len(),
            weights: self.weights,
            columns: self.table.names_of(self.selection),
            positions: self.selection.coordinates.clone(),
            others: self.others,
            dropped,
        })
    }
}
