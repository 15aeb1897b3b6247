//! What can go wrong with a file, in one line each.

use std::fmt;
use std::io;

use crate::number::{Decimal, has_other_mark};

/// A column of a file, by its name if it has one, otherwise by its position counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// The name in the header of the file.
    Name(String),
    /// The position, counted from 1.
    Position(usize),
}

impl Column {
    /// The name, or the position as text.
    pub fn name(&self) -> String {
        match self {
            Column::Name(name) => name.clone(),
            Column::Position(position) => position.to_string(),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Name(name) => write!(f, "column {}", quote(name)),
            Column::Position(position) => write!(f, "column {position}"),
        }
    }
}

/// Where a value stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The data row, counted from 1; a header, comments and blank lines are not rows.
    pub row: u64,
    /// The line of a text file, counted from 1.
    pub line: Option<u64>,
    /// The column of the file.
    pub column: Column,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", Row(self.row, self.line), self.column)
    }
}

/// `row 3 (line 5)`, or `row 3` where a file has no lines.
struct Row(u64, Option<u64>);

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(line) => write!(f, "row {} (line {line})", self.0),
            None => write!(f, "row {}", self.0),
        }
    }
}

/// Why a file could not be read or written.
///
/// The message of every variant is one line that says what was found, where, and what to do about
/// it. It names the options of the `orthant` command: `--columns` is [`ReadOptions::columns`],
/// `--weights` is [`ReadOptions::weights`], `--missing` is [`ReadOptions::missing`] and `--carry` is
/// [`ReadOptions::others`].
///
/// [`ReadOptions::columns`]: crate::ReadOptions::columns
/// [`ReadOptions::weights`]: crate::ReadOptions::weights
/// [`ReadOptions::missing`]: crate::ReadOptions::missing
/// [`ReadOptions::others`]: crate::ReadOptions::others
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("{path}: no such file")]
    NotFound {
        /// The file.
        path: String,
    },

    /// The path is a directory.
    #[error("{path}: this is a directory; give a file")]
    Directory {
        /// The directory.
        path: String,
    },

    /// The operating system refused to read the file.
    #[error("{path}: cannot read the file: {}", because(.reason))]
    Read {
        /// The file.
        path: String,
        /// The reason. It is part of the message, and so no source of the error.
        reason: io::Error,
    },

    /// The file could not be written; nothing was left behind.
    #[error("{path}: cannot write the file: {}", because(.reason))]
    Write {
        /// The file.
        path: String,
        /// The reason. It is part of the message, and so no source of the error.
        reason: io::Error,
    },

    /// The file holds no bytes.
    #[error("{path}: the file is empty")]
    Empty {
        /// The file.
        path: String,
    },

    /// The file is well formed and holds no rows.
    #[error("{path}: no rows of data{}", if *.header { "; the only line is the header" } else { "" })]
    NoRows {
        /// The file.
        path: String,
        /// There is a header and nothing after it.
        header: bool,
    },

    /// All rows have a missing value and were dropped.
    #[error(
        "{path}: no rows are left: each of the {dropped} rows has a missing value; leave out the \
         columns with gaps using --columns"
    )]
    AllDropped {
        /// The file.
        path: String,
        /// The number of rows dropped.
        dropped: usize,
    },

    /// The content is not what the name of the file says.
    #[error("{path}: expected {expected}, but the content is {found}")]
    Foreign {
        /// The file.
        path: String,
        /// The format the name stands for.
        expected: String,
        /// What the content looks like.
        found: String,
    },

    /// The file ends too early.
    #[error("{path}: the file is truncated: {detail}; get a complete copy")]
    Truncated {
        /// The file.
        path: String,
        /// What is missing.
        detail: String,
    },

    /// The file breaks the rules of its format.
    #[error("{path}: not a valid {format} file: {detail}")]
    Malformed {
        /// The file.
        path: String,
        /// The name of the format.
        format: &'static str,
        /// What is wrong.
        detail: String,
    },

    /// The file is valid, and something in it is not supported.
    #[error("{path}: {what} is not supported; {remedy}")]
    Unsupported {
        /// The file.
        path: String,
        /// The thing that is not supported.
        what: String,
        /// What to do instead.
        remedy: String,
    },

    /// A field of a text file is neither a number nor a missing value.
    #[error("{path}: {place}: cannot read {} as a number; {}", quote(.value), number_remedy(.value, *.comma))]
    NotANumber {
        /// The file.
        path: String,
        /// The place of the field.
        place: Place,
        /// The text of the field.
        value: String,
        /// Numbers were expected to have a decimal comma.
        comma: bool,
    },

    /// A value is missing, and missing values are not to be dropped.
    #[error(
        "{path}: {place}: the value is missing ({}); use --missing drop to skip such rows",
        if .value.is_empty() { "empty".to_owned() } else { shorten(.value, VALUE) }
    )]
    MissingValue {
        /// The file.
        path: String,
        /// The place of the value.
        place: Place,
        /// The marker in the file: empty, `NaN`, `null` and so on.
        value: String,
    },

    /// A value is infinite, or too large for a 64-bit float.
    #[error(
        "{path}: {place}: {} is not finite; remove the row or replace the value",
        shorten(.value, VALUE)
    )]
    Infinite {
        /// The file.
        path: String,
        /// The place of the value.
        place: Place,
        /// The value as it stands in the file.
        value: String,
    },

    /// A row of a text file has more or fewer fields than the first line.
    #[error(
        "{path}: {} has {}, but the first line has {expected}; every row needs the same number of fields",
        Row(*.row, *.line), count(*.found, "field")
    )]
    Ragged {
        /// The file.
        path: String,
        /// The data row, counted from 1.
        row: u64,
        /// The line of the file, counted from 1.
        line: Option<u64>,
        /// The number of fields in the first line.
        expected: usize,
        /// The number of fields in this row.
        found: usize,
    },

    /// A line of a journal is not as it was written.
    #[error(
        "{path}: line {line} is damaged: its checksum is not that of its content; delete the line or the file"
    )]
    Journal {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: u64,
    },

    /// There is no column of this name or position.
    #[error(
        "{path}: no column {}; {}{}",
        quote(.column), available(.names.as_deref(), *.count),
        if *.in_first_line { ", or use --header yes as the first line has that name" } else { "" }
    )]
    UnknownColumn {
        /// The file.
        path: String,
        /// The column as it was asked for.
        column: String,
        /// The names of the columns, if they have names.
        names: Option<Vec<String>>,
        /// The number of columns.
        count: usize,
        /// The first line of the file, which was taken for a row, has it.
        in_first_line: bool,
    },

    /// No column holds numbers, so that none can be a coordinate.
    #[error(
        "{path}: none of the columns holds numbers; {}; if another character separates the fields of a table, name it \
         with --separator",
        available(.names.as_deref(), *.count)
    )]
    NoNumbers {
        /// The file.
        path: String,
        /// The names of the columns, if they have names.
        names: Option<Vec<String>>,
        /// The number of columns.
        count: usize,
    },

    /// Two columns have this name.
    #[error("{path}: several columns are named {}; select by position, counted from 1", quote(.column))]
    AmbiguousColumn {
        /// The file.
        path: String,
        /// The name.
        column: String,
    },

    /// A column is selected twice, or as a coordinate and as something else.
    #[error("{path}: {column} is selected twice; name each column once in --columns and --weights")]
    DuplicateColumn {
        /// The file.
        path: String,
        /// The column.
        column: Column,
    },

    /// A column of a text file has no name while others have one: most likely a row index.
    #[error(
        "{path}: column {position} has no name and may be a row index; say which columns are \
         coordinates with --columns"
    )]
    UnnamedColumn {
        /// The file.
        path: String,
        /// The position of the column, counted from 1.
        position: usize,
    },

    /// Nothing is left to be a coordinate.
    #[error("{path}: no columns are left for the coordinates; select at least one with --columns")]
    NoColumns {
        /// The file.
        path: String,
    },

    /// A column that was selected holds something other than numbers.
    #[error(
        "{path}: {column} holds {kind}, not numbers; select the numeric columns with --columns"
    )]
    NotNumeric {
        /// The file.
        path: String,
        /// The column.
        column: Column,
        /// The type in the file.
        kind: String,
    },

    /// An array of weights has another length than the cloud has points.
    #[error("{path}: {} has {}, but there are {points} points; they must agree", quote(.weights), count(*.found, "weight"))]
    WeightsLength {
        /// The file.
        path: String,
        /// The name of the array of weights.
        weights: String,
        /// The length of that array.
        found: usize,
        /// The number of points.
        points: usize,
    },

    /// The parts of a table have different columns.
    #[error(
        "{path}: the parts {first} and {part} have different columns or types; all parts of a table need the same schema"
    )]
    DifferentParts {
        /// The folder or pattern.
        path: String,
        /// The first part.
        first: String,
        /// The part that differs from it.
        part: String,
    },

    /// What is read takes more memory than it may, or than there is.
    #[error(
        "{path}: reading it takes more {}; raise --memory, select fewer columns with --columns, or take a sample",
        memory(*.limit)
    )]
    TooLarge {
        /// The file.
        path: String,
        /// The memory that was allowed, in bytes; nothing if the machine has no more.
        limit: Option<u64>,
    },

    /// Two files have columns of different names.
    #[error(
        "{cloud} has the columns {} and {reference} has {}; choose the same ones with --columns, or match them by \
         their order with --by-position",
        list(.columns), list(.expected)
    )]
    DifferentColumns {
        /// The file whose columns are expected.
        reference: String,
        /// Its columns.
        expected: Vec<String>,
        /// The other file.
        cloud: String,
        /// Its columns.
        columns: Vec<String>,
    },

    /// Two files have points of different dimensions.
    #[error(
        "{reference} has {} and {cloud} has {}; use --columns to choose the same ones",
        count(*.expected, "coordinate"), found
    )]
    DifferentDimensions {
        /// The file whose dimension is expected.
        reference: String,
        /// Its dimension.
        expected: usize,
        /// The other file.
        cloud: String,
        /// Its dimension.
        found: usize,
    },

    /// An archive holds several arrays, and none was chosen.
    #[error("{path}: the file holds several arrays; choose one of {} as {path}:NAME", list(.keys))]
    ChooseKey {
        /// The file.
        path: String,
        /// The names of the arrays.
        keys: Vec<String>,
    },

    /// An annotated matrix does not hold the array that was chosen or is read without a choice.
    #[error(
        "{path}: there is no {wanted}; {}",
        if .keys.is_empty() {
            "the file holds no dense matrices, so compute principal components first (scanpy.pp.pca)".to_owned()
        } else {
            format!("choose one of {} as {path}:NAME", list(.keys))
        }
    )]
    NoMatrix {
        /// The file.
        path: String,
        /// What was looked for.
        wanted: String,
        /// The matrices in the file.
        keys: Vec<String>,
    },

    /// An archive does not hold the array that was chosen.
    #[error("{path}: no array {}; {}", quote(.key), if .keys.is_empty() { "the file holds none".to_owned() } else { format!("the file holds {}", list(.keys)) })]
    UnknownKey {
        /// The file.
        path: String,
        /// The name asked for.
        key: String,
        /// The names of the arrays in the file.
        keys: Vec<String>,
    },
}

impl Error {
    /// Whether a limit was reached, of memory or of the disk: the input itself may be fine.
    pub fn is_resource(&self) -> bool {
        match self {
            Error::TooLarge { .. } => true,
            Error::Write { reason, .. } => matches!(
                reason.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::FileTooLarge
                    | io::ErrorKind::OutOfMemory
            ),
            _ => false,
        }
    }

    /// An error of reading: the end of the data where more was due means a truncated file.
    pub(crate) fn read(path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { path },
            io::ErrorKind::IsADirectory => Error::Directory { path },
            io::ErrorKind::UnexpectedEof => {
                Error::Truncated { path, detail: "the data end too early".to_owned() }
            }
            // The decoders of gzip and zip report corrupt data in these two ways.
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Error::Malformed {
                path,
                format: "compressed",
                detail: "the compressed data are damaged; get a complete copy".to_owned(),
            },
            _ => Error::Read { path, reason: source },
        }
    }
}

/// As many characters of a value as a message shows.
const VALUE: usize = 40;

/// Text from a file in quotes: on one line and not longer than a terminal is wide.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", shorten(text, VALUE))
}

/// A foreign message made fit for one line.
pub(crate) fn one_line(text: &str) -> String {
    shorten(text.trim(), 200)
}

fn shorten(text: &str, limit: usize) -> String {
    let mut short = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == limit {
            short.push('…');
            break;
        }
        if c.is_control() {
            short.extend(c.escape_default());
        } else {
            short.push(c);
        }
    }
    short
}

fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

/// The first few names, in quotes.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| quote(name)).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What the operating system says, without its number.
pub(crate) fn because(error: &io::Error) -> String {
    let mut text = one_line(&error.to_string());
    while let Some(at) = text.rfind(" (os error ").filter(|_| text.ends_with(')')) {
        text.truncate(at);
    }
    text
}

fn memory(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => format!("than the {} of memory that it may use", size(limit)),
        None => "memory than there is".to_owned(),
    }
}

/// A number of bytes, readable.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return count(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = usize::from(value < 99.5);
    format!("{value:.decimals$} {}", UNITS[unit])
}

fn available(names: Option<&[String]>, columns: usize) -> String {
    match names {
        Some(names) => format!("the columns are {}", list(names)),
        None if columns == 1 => "the one column has no name; it is column 1".to_owned(),
        None => format!("the columns have no names; give positions from 1 to {columns}"),
    }
}

fn number_remedy(value: &str, comma: bool) -> &'static str {
    let decimal = if comma { Decimal::Comma } else { Decimal::Point };
    match (has_other_mark(value, decimal), comma) {
        (true, false) => "write decimals with a point, or use --decimal ,",
        (true, true) => "write decimals with a comma, or leave out --decimal",
        (false, _) => "correct it, or select the numeric columns with --columns",
    }
}
