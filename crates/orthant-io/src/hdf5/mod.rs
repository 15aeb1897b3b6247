//! HDF5 files, and the annotated matrices of single-cell biology that are kept in them.

mod anndata;
mod lzf;
mod store;

use std::fs::File;

use crate::budget::Budget;
use crate::error::{Column, Error};
use crate::guard::fence;
use crate::number::{Decimal, Field};
use crate::numpy::Array;
use crate::screen::Screen;
use crate::select::Table;
use crate::{Cloud, Other, Others, ReadOptions};
use store::Store;

/// Where the bytes of a file are.
pub(crate) enum Source {
    File(File),
    Bytes(Vec<u8>),
}

/// Reads the array `key`, or the only one of two axes.
pub(crate) fn read(
    path: &str,
    source: Source,
    key: Option<&str>,
    annotated: bool,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Error> {
    let read = || {
        let store = Store::open(path, source, budget)?;
        if annotated || store.has_encoding("/", &["anndata"]) {
            anndata::read(&store, key, options)
        } else {
            read_plain(&store, key, options)
        }
    };
    // Damage to a file is an error of the crate's; what is not one of them is a panic.
    fence(read).unwrap_or_else(|| Err(store::malformed(path, "its structure is damaged")))
}

fn read_plain(store: &Store<'_>, key: Option<&str>, options: &ReadOptions) -> Result<Cloud, Error> {
    let key = match key {
        Some(key) => key.to_owned(),
        None => only_matrix(store)?,
    };
    let array = store.array(&key)?;
    // Arrays beside it may be columns: by their paths, or by their names in the same group.
    let folder = key.trim_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    let side = |name: &str| {
        let beside = format!("{folder}/{name}");
        let found = [beside.as_str(), name].into_iter().find(|path| store.is_vector(path));
        found.map(|path| store.cells(path)).transpose()
    };
    Matrix { array, names: None, side: &side, sides: Vec::new() }.cloud(store, options)
}

/// The only array of two axes in a file, or of one if that is the only array.
fn only_matrix(store: &Store<'_>) -> Result<String, Error> {
    let arrays = store.arrays();
    let axes = |wanted: usize| {
        let found: Vec<&String> =
            arrays.iter().filter(|(_, axes)| *axes == wanted).map(|(path, _)| path).collect();
        found
    };
    match (axes(2).as_slice(), axes(1).as_slice()) {
        ([only], _) | ([], [only]) => Ok((*only).clone()),
        _ if arrays.is_empty() => {
            Err(store::malformed(store.path, "it holds no arrays of numbers"))
        }
        _ => Err(Error::ChooseKey {
            path: store.path.to_owned(),
            keys: arrays.into_iter().map(|(path, _)| path).collect(),
        }),
    }
}

/// Finds a column beside a matrix.
type Side<'a> = &'a dyn Fn(&str) -> Result<Option<Vec<String>>, Error>;

/// An array whose rows are points, and what is kept beside it.
struct Matrix<'a> {
    array: Array,
    /// The names of its columns.
    names: Option<Vec<String>>,
    side: Side<'a>,
    /// The columns beside it that come along if all do.
    sides: Vec<String>,
}

impl Matrix<'_> {
    fn cloud(self, store: &Store<'_>, options: &ReadOptions) -> Result<Cloud, Error> {
        let (path, budget, rows) = (store.path, store.budget, self.array.rows());
        let count = self.array.table(path).count;
        let table = Table { path, count, names: self.names.as_deref() };

        // What is kept beside the matrix is no column of it.
        let mut own = options.clone();
        let weights = match &options.weights {
            Some(name) => (self.side)(name)?.map(|cells| (name, cells)),
            None => None,
        };
        if weights.is_some() {
            own.weights = None;
        }
        let mut beside = Vec::new();
        if let Others::These(names) = &options.others {
            let mut inside = Vec::new();
            for name in names {
                match (self.side)(name)? {
                    Some(cells) => beside.push((name.clone(), cells)),
                    None => inside.push(name.clone()),
                }
            }
            own.others = Others::These(inside);
        }
        let selection = table.select(&own, || Ok((0..count).collect()))?;
        if options.others == Others::All {
            for name in &self.sides {
                beside.extend((self.side)(name)?.map(|cells| (name.clone(), cells)));
            }
        }
        let mut others: Vec<Other> = Vec::new();
        for &i in &selection.others {
            others.push(table.other(i, self.array.cells(i, budget)?));
        }
        for (k, (name, cells)) in beside.into_iter().enumerate() {
            same_length(path, &name, cells.len(), rows)?;
            others.push(Other { name: Some(name), position: count + k, cells });
        }
        if let Others::These(names) = &options.others {
            let place = |o: &Other| names.iter().position(|n| o.name.as_ref() == Some(n));
            others.sort_by_key(|other| place(other).unwrap_or(other.position));
        }

        let mut screen = Screen::new(&table, &selection, options, "NaN", others);
        let (values, mut numbers) = self.array.arrange(&selection, budget)?;
        if let Some((name, cells)) = weights {
            same_length(path, name, cells.len(), rows)?;
            screen.weights_label = Some(Column::Name(name.clone()));
            numbers = Some(to_numbers(path, name, &cells, budget)?);
        }
        screen.finish(values, numbers)
    }
}

fn same_length(path: &str, name: &str, found: usize, points: usize) -> Result<(), Error> {
    if found == points {
        return Ok(());
    }
    Err(Error::WeightsLength { path: path.to_owned(), weights: name.to_owned(), found, points })
}

fn to_numbers(
    path: &str,
    name: &str,
    cells: &[String],
    budget: &Budget,
) -> Result<Vec<f64>, Error> {
    let mut numbers = budget.vector(cells.len())?;
    for cell in cells {
        numbers.push(match Field::parse(cell.as_bytes(), Decimal::Point) {
            Field::Number(x) => x,
            Field::Missing => f64::NAN,
            Field::Text => {
                return Err(Error::NotNumeric {
                    path: path.to_owned(),
                    column: Column::Name(name.to_owned()),
                    kind: "text".to_owned(),
                });
            }
        });
    }
    Ok(numbers)
}
