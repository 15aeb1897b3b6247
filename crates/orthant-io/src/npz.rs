//! Archives of `NumPy` arrays.

use std::io::{BufReader, Read, Seek};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::{Column, Error, one_line};
use crate::numpy::{self, Array};
use crate::select::Selection;
use crate::{Cloud, ReadOptions};

/// Reads the array `key`, or the only one.
pub(crate) fn read(
    path: &str,
    key: Option<&str>,
    reader: impl Read + Seek,
    options: &ReadOptions,
) -> Result<Cloud, Error> {
    let mut archive = Archive::open(path, reader)?;
    let key = match (key, archive.keys.as_slice()) {
        (Some(key), _) => key.to_owned(),
        (None, [only]) => only.clone(),
        (None, []) => {
            return Err(Error::Malformed {
                path: path.to_owned(),
                format: "npz",
                detail: "the archive holds no arrays".to_owned(),
            });
        }
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
        let screen = numpy::screen(&array, &table, &selection, options);
        let (values, weights) = array.arrange(&selection);
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
    let mut screen = numpy::screen(&array, &table, &selection, options);
    screen.weights_label = Some(Column::Name(name.clone()));
    let (values, _) = array.arrange(&selection);
    screen.finish(values, Some(weights))
}

struct Archive<'a, R> {
    path: &'a str,
    zip: ZipArchive<R>,
    /// The names of the arrays.
    keys: Vec<String>,
}

impl<'a, R: Read + Seek> Archive<'a, R> {
    fn open(path: &'a str, reader: R) -> Result<Self, Error> {
        let zip = ZipArchive::new(reader).map_err(|error| zip_error(path, error))?;
        let keys = zip
            .file_names()
            .filter_map(Result::ok)
            .filter_map(|name| name.strip_suffix(".npy").map(ToOwned::to_owned))
            .collect();
        Ok(Archive { path, zip, keys })
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
        let name = format!("{}:{found}", self.path);
        Array::read(&name, BufReader::new(entry), None)
    }
}

fn zip_error(path: &str, error: ZipError) -> Error {
    match error {
        ZipError::Io(source) => Error::read(path, source),
        error => Error::Malformed {
            path: path.to_owned(),
            format: "npz",
            detail: one_line(&error.to_string()),
        },
    }
}
