//! Tables to files: CSV, TSV and NumPy arrays.

use std::io::{self, Write};
use std::path::Path;

use crate::error::{Error, quote};
use crate::format::NPY;
use crate::write::write_atomic;

/// A format in which tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Text, with commas.
    Csv,
    /// Text, with tabs.
    Tsv,
    /// An array of `NumPy`: numbers only, no names.
    Npy,
}

impl TableFormat {
    /// The format that the suffix of a file stands for: `.csv`, `.tsv` or `.npy`.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let suffix = path.extension().map(|s| s.to_string_lossy().to_ascii_lowercase());
        match suffix.as_deref() {
            Some("csv") => Ok(TableFormat::Csv),
            Some("tsv") => Ok(TableFormat::Tsv),
            Some("npy") => Ok(TableFormat::Npy),
            other => Err(Error::Unsupported {
                path: path.display().to_string(),
                what: match other {
                    Some(suffix) => format!("a table in a file with the suffix {}", quote(suffix)),
                    None => "a table in a file without a suffix".to_owned(),
                },
                remedy: "name it .csv, .tsv or .npy".to_owned(),
            }),
        }
    }
}

/// A column of a table to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<'a> {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub cells: Cells<'a>,
}

/// The cells of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells<'a> {
    /// Numbers, written such that reading them gives the same ones.
    Numbers(Vec<f64>),
    /// Places in other tables.
    Indices(Vec<u64>),
    /// Text of the caller's.
    Text(&'a [String]),
}

impl Cells<'_> {
    fn len(&self) -> usize {
        match self {
            Cells::Numbers(cells) => cells.len(),
            Cells::Indices(cells) => cells.len(),
            Cells::Text(cells) => cells.len(),
        }
    }
}

/// Writes a table to a file, whole or not at all: see [`write_atomic`]. All columns must be of the same length.
///
/// Arrays of `NumPy` have a row a row of the table, in double precision, or in 64-bit integers if all columns are
/// indices; a column of text is an error there.
///
/// ```
/// use orthant_io::{Cells, Series, TableFormat, write_table};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("moved.csv");
/// let names = ["a, b".to_owned(), "c".to_owned()];
/// let columns = [
///     Series { name: "x".into(), cells: Cells::Numbers(vec![0.1, 1.0]) },
///     Series { name: "name".into(), cells: Cells::Text(&names) },
/// ];
/// write_table(&path, TableFormat::of(&path)?, &columns, true)?;
/// assert_eq!(std::fs::read_to_string(&path)?, "x,name\n0.1,\"a, b\"\n1,c\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_table(
    path: &Path,
    format: TableFormat,
    columns: &[Series<'_>],
    header: bool,
) -> Result<(), Error> {
    if let (TableFormat::Npy, Some(text)) =
        (format, columns.iter().find(|c| matches!(c.cells, Cells::Text(_))))
    {
        return Err(Error::Unsupported {
            path: path.display().to_string(),
            what: format!("the text of column {} in an array", quote(&text.name)),
            remedy: "write .csv or .tsv".to_owned(),
        });
    }
    write_atomic(path, |out| write_table_to(out, format, columns, header))
}

/// Writes a table to anything. Arrays of `NumPy` have zeros for text.
pub fn write_table_to(
    out: &mut dyn Write,
    format: TableFormat,
    columns: &[Series<'_>],
    header: bool,
) -> io::Result<()> {
    match format {
        TableFormat::Csv => delimited(out, b',', columns, header),
        TableFormat::Tsv => delimited(out, b'\t', columns, header),
        TableFormat::Npy => array(out, columns),
    }
}

fn rows(columns: &[Series<'_>]) -> usize {
    columns.iter().map(|column| column.cells.len()).min().unwrap_or(0)
}

fn delimited(
    out: &mut dyn Write,
    delimiter: u8,
    columns: &[Series<'_>],
    header: bool,
) -> io::Result<()> {
    // What went wrong below, as it was.
    let io = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        // Records of equal lengths have no other errors.
        _ => io::ErrorKind::InvalidData.into(),
    };
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    if header {
        writer.write_record(columns.iter().map(|column| column.name.as_bytes())).map_err(io)?;
    }
    let mut cell = String::new();
    for row in 0..rows(columns) {
        for column in columns {
            let text = match &column.cells {
                Cells::Text(cells) => cells[row].as_str(),
                Cells::Numbers(cells) => number(&mut cell, cells[row]),
                Cells::Indices(cells) => number(&mut cell, cells[row]),
            };
            writer.write_field(text).map_err(io)?;
        }
        writer.write_record(None::<&[u8]>).map_err(io)?;
    }
    writer.flush()
}

fn number(cell: &mut String, number: impl std::fmt::Display) -> &str {
    use std::fmt::Write;
    cell.clear();
    // Writing to a string does not fail.
    let _ = write!(cell, "{number}");
    cell
}

fn array(out: &mut dyn Write, columns: &[Series<'_>]) -> io::Result<()> {
    let whole = columns.iter().all(|c| matches!(c.cells, Cells::Indices(_)));
    let (rows, descr) = (rows(columns), if whole { "<i8" } else { "<f8" });
    let mut header = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {}), }}",
        columns.len()
    );
    // Magic, version and length take ten bytes; the data begin at a multiple of 64, after a line break.
    let length = (header.len() + 11).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', length - 1 - header.len()));
    header.push('\n');
    out.write_all(NPY)?;
    out.write_all(&[1, 0])?;
    // Headers of these few words are short.
    out.write_all(&u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    for row in 0..rows {
        for column in columns {
            let bytes = match &column.cells {
                Cells::Numbers(cells) => cells[row].to_le_bytes(),
                Cells::Indices(cells) if whole => cells[row].to_le_bytes(),
                Cells::Indices(cells) => (cells[row] as f64).to_le_bytes(),
                Cells::Text(_) => 0_f64.to_le_bytes(),
            };
            out.write_all(&bytes)?;
        }
    }
    Ok(())
}
