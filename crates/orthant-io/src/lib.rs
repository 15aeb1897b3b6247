//! Point clouds from files: tables in text, `NumPy` arrays, Parquet, Arrow, HDF5 and PLY.
//!
//! [`read`] takes a path and chooses the format by the extension, or by the content if the
//! extension says nothing:
//!
//! | extension | format |
//! |---|---|
//! | `.csv` `.tsv` `.txt` `.dat` | a table in text, with or without a header; the separator is found |
//! | `.npy` | an array of points in rows, or of numbers |
//! | `.npz` | an archive of arrays; `file.npz:key` chooses one |
//! | `.parquet` `.pq` | a table; a folder of them, or a pattern such as `dir/*.parquet`, is one table |
//! | `.arrow` `.feather` `.ipc` | a table, in a file or a stream |
//! | `.h5` `.hdf5` | an array; `file.h5:/path` chooses one |
//! | `.h5ad` | an annotated matrix: `obsm/X_pca`, or `cells.h5ad:obsm/X_umap`; columns of `obs` as weights |
//! | `.ply` | the vertices of a mesh or scan, in text or binary |
//!
//! Any of them may be compressed once more as `.gz`, and `-` is the standard input.
//!
//! Columns of text are left out, and what else is decided by the reader is told in [`Cloud::notes`].
//! Two files are brought to the same order of columns with [`match_columns`].
//!
//! What comes out is finite: missing values are an error or drop their row, as
//! [`ReadOptions::missing`] says, and infinite values are always an error. A bad file gives an
//! [`Error`] of one line that names the place; no file, however broken, makes this crate panic, and
//! none takes more memory than [`ReadOptions::max_bytes`].

mod arrow;
mod budget;
mod checksum;
mod cloud;
mod columns;
mod delimiter;
mod error;
mod format;
mod guard;
mod hdf5;
mod identity;
mod ids;
mod journal;
mod layout;
mod matching;
mod note;
mod npy_header;
mod npz;
mod number;
mod numpy;
mod options;
mod parquet;
mod parts;
mod ply;
mod records;
mod rows;
mod screen;
mod select;
mod source;
mod text;
mod write;
mod write_table;

pub use checksum::Checksum;
pub use cloud::{Cloud, Other, Values};
pub use error::{Column, Error, Place};
pub use identity::same_file;
pub use journal::{Journal, parse_journal};
pub use matching::{match_columns, match_columns_with, match_positions};
pub use note::Note;
pub use options::{Header, Missing, Others, ReadOptions};
pub use parts::files_of;
pub use rows::Rows;
pub use write::{Halted, check_writable, remove_temporaries, write_atomic};
pub use write_table::{Cells, Series, TableFormat, write_table, write_table_to};

use std::ffi::OsStr;
use std::io::{self, Read};

use budget::Budget;
use parts::Input;
use source::{Raw, Spec, label};

/// Reads a point cloud from a file, from an array in it (`file.npz:key`), from all Parquet files of a folder, or from
/// the standard input if `spec` is `-`. Names need not be text.
///
/// ```
/// use orthant_io::{ReadOptions, Values, read};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("cities.csv");
/// # let path = path.to_str().unwrap();
/// std::fs::write(path, "city,lat,lon,people\nOslo,59.9,10.7,709000\nRome,41.9,12.5,2750000\n")?;
///
/// let mut options = ReadOptions::default();
/// options.columns = Some(vec!["lat".into(), "lon".into()]);
/// options.weights = Some("people".into());
/// let cloud = read(path, &options)?;
///
/// assert_eq!((cloud.len(), cloud.dim), (2, 2));
/// assert_eq!(cloud.values, Values::F64(vec![59.9, 10.7, 41.9, 12.5]));
/// assert_eq!(cloud.weights, Some(vec![709_000.0, 2_750_000.0]));
///
/// // Without columns all that hold numbers are read.
/// let cloud = read(path, &ReadOptions::default())?;
/// assert_eq!(cloud.columns.as_deref().unwrap(), ["lat", "lon", "people"]);
/// assert!(cloud.notes[0].to_string().ends_with(r#"column "city" holds text and is left out"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(spec: impl AsRef<OsStr>, options: &ReadOptions) -> Result<Cloud, Error> {
    let spec = spec.as_ref();
    if spec == "-" {
        return read_from("-", io::stdin().lock(), options);
    }
    let path = label(spec);
    let budget = Budget::new(&path, options.max_bytes);
    let cloud = match Input::of(spec) {
        Input::File(spec) => source::decode(&spec, Raw::open(&spec)?, options, &budget)?,
        Input::Parts(parts) => parts::read(&path, &parts, options, &budget)?,
    };
    finish(cloud, options)
}

/// Reads a point cloud from a reader.
///
/// The name stands in messages, and its extension chooses the format; for `-` the content does.
/// As with [`read`], a name such as `file.npz:key` chooses an array.
pub fn read_from(name: &str, reader: impl Read, options: &ReadOptions) -> Result<Cloud, Error> {
    let spec = Spec::of_name(name.as_ref());
    let budget = Budget::new(&spec.label(), options.max_bytes);
    let cloud = source::decode(&spec, Raw::Stream(Box::new(reader)), options, &budget)?;
    finish(cloud, options)
}

/// What is left to do when all is read.
fn finish(mut cloud: Cloud, options: &ReadOptions) -> Result<Cloud, Error> {
    if options.columns.is_none() {
        ids::examine(&mut cloud)?;
    }
    Ok(cloud)
}

/// Reads a point cloud from bytes; the name is used as in [`read_from`].
pub fn read_bytes(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Cloud, Error> {
    read_from(name, bytes, options)
}
