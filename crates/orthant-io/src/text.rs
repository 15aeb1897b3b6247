//! Tables in text: CSV, TSV and columns aligned with spaces.

use std::io::Read;

use csv::ByteRecord;

use crate::budget::Budget;
use crate::delimiter::Delimiter;
use crate::error::{Error, Place};
use crate::layout::{Kind, Layout};
use crate::number::{Decimal, Field};
use crate::records::Records;
use crate::rows::Rows;
use crate::select::{Selection, Table};
use crate::{Cloud, Missing, Other, Others, ReadOptions, Values};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// As many rows, and bytes of them, decide what the columns hold.
const FIRST_ROWS: usize = 200;
const FIRST_BYTES: usize = 1 << 20;

/// The memory that is kept of a column beside its values and the letters of its name.
const COLUMN: usize = 128;

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
    budget: &Budget,
) -> Result<Cloud, Error> {
    let unreadable = |source| budget.error(source);
    let mut sample = Sample { ..*sample };
    if let Some(rest) = sample.bytes.strip_prefix(BOM) {
        reader.read_exact(&mut [0; BOM.len()]).map_err(unreadable)?;
        sample.bytes = rest;
    }
    let carriage = sample.bytes.contains(&b'\r') && !sample.bytes.contains(&b'\n');
    let decimal = if options.decimal_comma { Decimal::Comma } else { Decimal::Point };
    let delimiter = match options.separator {
        Some(byte) => Delimiter::chosen(path, byte, decimal)?,
        None if tabs => Delimiter::Byte(b'\t'),
        None => Delimiter::sniff(&sample, carriage, decimal),
    };

    let mut records = Records::new(reader, delimiter, carriage, budget);
    let mut first = FirstRecords::read(&mut records, budget)?;
    if first.records.is_empty() {
        return Err(Error::NoRows { path: path.to_owned(), header: false });
    }
    // Names, kinds and choices.
    budget.take(first.records[0].len().saturating_mul(COLUMN))?;
    let layout = Layout::of(path, &first.records, options.header, decimal);
    let names = layout.names.as_deref();
    let table = Table { path, count: layout.kinds.len(), names };
    let is_text = |i: usize| (layout.kinds[i] == Kind::Text).then_some("text");
    let selection = table
        .select(options, || table.numeric(is_text))
        .map_err(|error| with_hint(error, &first.records[0]))?;
    let mut body = Body::new(&table, &selection, options, decimal, budget);

    let skip = usize::from(names.is_some());
    for (record, line) in first.records.drain(..).zip(first.lines.drain(..)).skip(skip) {
        body.push(&record, &|| line)?;
    }
    budget.give(first.bytes);
    let mut record = ByteRecord::new();
    while records.next(&mut record).map_err(unreadable)? {
        body.push(&record, &|| records.line(&record))?;
    }
    let mut cloud = body.finish()?;
    cloud.notes = table.left_out(&selection, options, is_text);
    cloud.notes.extend(layout.note);
    Ok(cloud)
}

/// The beginning of a table, with the lines that the records stand on.
#[derive(Default)]
struct FirstRecords {
    records: Vec<ByteRecord>,
    lines: Vec<Option<u64>>,
    bytes: usize,
}

impl FirstRecords {
    fn read(records: &mut Records<'_, impl Read>, budget: &Budget) -> Result<Self, Error> {
        let mut first = FirstRecords::default();
        let mut record = ByteRecord::new();
        while first.records.len() < 2
            || (first.records.len() <= FIRST_ROWS && first.bytes < FIRST_BYTES)
        {
            if !records.next(&mut record).map_err(|source| budget.error(source))? {
                break;
            }
            let bytes = record.as_slice().len() + size_of::<usize>() * record.len();
            budget.take(bytes)?;
            first.bytes += bytes;
            first.lines.push(records.line(&record));
            first.records.push(record.clone());
        }
        Ok(first)
    }
}

/// Says so if a column that is not there is in a first line that was taken for a row.
fn with_hint(error: Error, first: &ByteRecord) -> Error {
    match error {
        Error::UnknownColumn { path, column, names: None, count, .. } => {
            let in_first_line = first.iter().any(|f| f.trim_ascii() == column.as_bytes());
            Error::UnknownColumn { path, column, names: None, count, in_first_line }
        }
        error => error,
    }
}

/// Finds the line of the current record.
type Line<'a> = &'a dyn Fn() -> Option<u64>;

/// The rows read so far.
struct Body<'a> {
    table: &'a Table<'a>,
    selection: &'a Selection,
    missing: Missing,
    decimal: Decimal,
    budget: &'a Budget,
    values: Vec<f64>,
    weights: Option<Vec<f64>>,
    others: Vec<Other>,
    /// Missing values in the others count.
    checked: bool,
    seen: u64,
    rows: Rows,
}

impl<'a> Body<'a> {
    fn new(
        table: &'a Table<'a>,
        selection: &'a Selection,
        options: &ReadOptions,
        decimal: Decimal,
        budget: &'a Budget,
    ) -> Self {
        Body {
            table,
            selection,
            missing: options.missing,
            decimal,
            budget,
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
        self.budget.reserve(&mut self.values, self.selection.coordinates.len())?;
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
                let mut cell = String::from_utf8_lossy(field).into_owned();
                if self.decimal == Decimal::Comma
                    && matches!(Field::parse(field, self.decimal), Field::Number(_))
                {
                    cell = cell.replace(',', ".");
                }
                self.budget.push_cell(&mut other.cells, cell)?;
            }
            if let (Some(weights), Some(weight)) = (&mut self.weights, weight) {
                self.budget.push(weights, weight)?;
            }
            self.rows.keep();
        } else {
            self.values.truncate(start);
            self.budget.take(self.rows.skip())?;
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
        let found = Field::parse(field, self.decimal);
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
            Field::Text => {
                Error::NotANumber { path, place, value, comma: self.decimal == Decimal::Comma }
            }
        })
    }

    /// Whether there is anything in a column; an error if there is not, and has to be.
    fn is_there(&self, record: &ByteRecord, line: Line<'_>, column: usize) -> Result<bool, Error> {
        let field = record.get(column).unwrap_or_default();
        if Field::parse(field, self.decimal) == Field::Missing {
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
            values: Values::F64(self.values),
            dim: self.selection.coordinates.len(),
            weights: self.weights,
            weights_name: self.selection.weights.map(|i| self.table.label(i).name()),
            columns: self.table.names_of(self.selection),
            positions: self.selection.coordinates.clone(),
            others: self.others,
            dropped,
            rows: self.rows,
            notes: Vec::new(),
        })
    }
}
