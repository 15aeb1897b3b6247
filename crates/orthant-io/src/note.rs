//! What a reader decided by itself, for the person to know.

use std::fmt;

use crate::error::{Column, list, quote};

/// Something that was decided while a file was read and that may not be what was meant.
///
/// It is shown as one sentence that names the file, what was assumed, and the option of the `orthant` command that
/// says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Columns were left out because they hold no numbers.
    LeftOut {
        /// The file.
        path: String,
        /// The columns.
        columns: Vec<Column>,
        /// What they hold: text, dates and so on.
        kind: String,
    },
    /// A column was left out because it only numbers the rows.
    RowNumbers {
        /// The file.
        path: String,
        /// The column.
        column: Column,
    },
    /// The first line of a table in text may be a header or a row.
    AmbiguousHeader {
        /// The file.
        path: String,
        /// The first line, as far as a message shows it.
        line: String,
        /// It was taken for a header.
        header: bool,
    },
    /// A coordinate looks like the name of a row: integers, all different, sorted or with a telling name.
    IdColumn {
        /// The file.
        path: String,
        /// The column.
        column: Column,
    },
}

impl Note {
    /// Says it of another file.
    pub(crate) fn set_path(&mut self, new: &str) {
        let (Note::LeftOut { path, .. }
        | Note::RowNumbers { path, .. }
        | Note::AmbiguousHeader { path, .. }
        | Note::IdColumn { path, .. }) = self;
        new.clone_into(path);
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::LeftOut { path, columns, kind } => {
                let names: Vec<String> = columns.iter().map(Column::name).collect();
                let (noun, verb) =
                    if names.len() == 1 { ("column", "holds") } else { ("columns", "hold") };
                let is = if names.len() == 1 { "is" } else { "are" };
                write!(f, "{path}: {noun} {} {verb} {kind} and {is} left out", list(&names))
            }
            Note::RowNumbers { path, column } => write!(
                f,
                "{path}: {column} numbers the rows and is left out; name it in --columns to use it as a coordinate"
            ),
            Note::AmbiguousHeader { path, line, header } => {
                let (taken, option) = if *header { ("a header", "no") } else { ("a row", "yes") };
                write!(
                    f,
                    "{path}: the first line {} is taken for {taken}; use --header {option} if it is not",
                    quote(line)
                )
            }
            Note::IdColumn { path, column } => write!(
                f,
                "{path}: {column} looks like an identifier of the rows and is used as a coordinate; \
                 choose the coordinates with --columns if it is none"
            ),
        }
    }
}
