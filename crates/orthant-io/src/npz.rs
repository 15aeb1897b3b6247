//! Archives of `NumPy` arrays.

use std::io::{BufReader, Read, Seek};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::budget::Budget;
use crate::error::{Column, Error};
use crate::numpy::{self, Array};
use crate::select::Selection;
use crate::source::label;
use crate::{Cloud, ReadOptions};

/// Reads the array `key`, or the only one.
pub(crate) fn read(
    path: &str,
    key: Option<&str>,
    reader: impl Read + Seek,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Error> {
    let mut archive = Archive::open(path, reader, budget)?;
    let key = match (key, archive.keys.as_slice()) {
        (Some(key), _) => key.to_owned(),
        (None, [only]) => only.clone(),
        (None, keys) => {
            // Weights from the same file leave one array less to choose from.
            let mut others = keys.iter().filter(|&k| Some(k) != options.weights.as_ref());
            match (others.next(), others.next()) {
                (Some(only), None) => only.clone(),
                _ => {
                    return Err(Error::ChooseKey { path: path.to_owned(), keys: keys.to_vec() });
                }
            }
        }
    };
    let array = archive.array(&key)?;
    let name = options.weights.as_ref().filter(|w| archive.keys.contains(w));
    let Some(name) = name else {
        // The weights, if any, are a column of the array.
        let table = array.table(path);
        let selection = table.select(options, || Ok((0..table.count).collect()))?;
        let screen = numpy::screen(&array, &table, &selection, options, budget)?;
        let (values, weights) = array.arrange(&selection, budget)?;
        return screen.finish(values, weights);
    };

    let weights = archive.array(name)?.into_vector().ok_or_else(|| Error::Unsupported {
        path: path.to_owned(),
        what: format!("{name:?} as weights: an array of two axes"),
        remedy: "save one weight per point".to_owned(),
    })?;
    if weights.len() != array.rows() {
        return Err(Error::WeightsLength {
            path: path.to_owned(),
            weights: name.clone(),
            found: weights.len(),
            points: array.rows(),
        });
    }
    let table = array.table(path);
    let mut columns = options.clone();
    columns.weights = None;
    let selection: Selection = table.select(&columns, || Ok((0..table.count).collect()))?;
    let mut screen = numpy::screen(&array, &table, &selection, options, budget)?;
    screen.weights_label = Some(Column::Name(name.clone()));
    let (values, _) = array.arrange(&selection, budget)?;
    screen.finish(values, Some(weights))
}

struct Archive<'a, R> {
    path: &'a str,
    zip: ZipArchive<R>,
    /// The names of the arrays.
    keys: Vec<String>,
    budget: &'a Budget,
}

impl<'a, R: Read + Seek> Archive<'a, R> {
    fn open(path: &'a str, reader: R, budget: &'a Budget) -> Result<Self, Error> {
        let zip = ZipArchive::new(reader).map_err(|error| zip_error(path, error))?;
        let names: Vec<String> = zip.file_names().filter_map(Result::ok).map(Into::into).collect();
        let keys: Vec<String> = names
            .iter()
            .filter_map(|name| name.strip_suffix(".npy"))
            .map(ToOwned::to_owned)
            .collect();
        if keys.is_empty() {
            return Err(foreign(path, &names));
        }
        Ok(Archive { path, zip, keys, budget })
    }

    fn array(&mut self, key: &str) -> Result<Array, Error> {
        let plain = key.strip_suffix(".npy").unwrap_or(key);
        let found = [key, plain].into_iter().find(|k| self.keys.iter().any(|known| known == k));
        let Some(found) = found else {
            return Err(Error::UnknownKey {
                path: self.path.to_owned(),
                key: key.to_owned(),
                keys: self.keys.clone(),
            });
        };
        let entry = self
            .zip
            .by_name(&format!("{found}.npy"))
            .map_err(|error| zip_error(self.path, error))?;
        // Messages about an array name it like the command line does.
        let name = format!("{}:{}", self.path, label(found.as_ref()));
        Array::read(&name, BufReader::new(entry), None, self.budget)
    }
}

fn zip_error(path: &str, error: ZipError) -> Error {
    match error {
        ZipError::Io(source) => Error::read(path, source),
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => {
            Error::Unsupported {
                path: path.to_owned(),
                what: "this kind of zip archive".to_owned(),
                remedy: "write it with numpy.savez or numpy.savez_compressed".to_owned(),
            }
        }
        _ => Error::Malformed {
            path: path.to_owned(),
            format: "npz",
            detail: "its table of contents is damaged".to_owned(),
        },
    }
}

/// An archive that holds no arrays.
fn foreign(path: &str, names: &[String]) -> Error {
    let has = |part: &str| names.iter().any(|name| name.starts_with(part));
    let (what, remedy) = if has("xl/") {
        ("an Excel workbook", "save the sheet as CSV")
    } else if has("content.xml") {
        ("an OpenDocument file", "save the sheet as CSV")
    } else if names.is_empty() {
        ("an empty zip archive", "give a file with data")
    } else {
        ("a zip archive without NumPy arrays", "unpack it and give the file inside")
    };
    Error::Unsupported { path: path.to_owned(), what: what.to_owned(), remedy: remedy.to_owned() }
}
