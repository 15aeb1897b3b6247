//! `AnnData`: a matrix of observations with annotations, as scanpy writes it.
//!
//! The points are `obsm/X_pca` unless a name says otherwise; columns of `obs` are weights and labels.

use super::Matrix;
use super::store::Store;
use crate::error::{Column, Error, list};
use crate::source::label;
use crate::{Cloud, ReadOptions};

const DEFAULT: &str = "obsm/X_pca";

/// Reads the matrix `key`, or the principal components.
pub(super) fn read(
    store: &Store<'_>,
    key: Option<&str>,
    options: &ReadOptions,
) -> Result<Cloud, Error> {
    let key = key.unwrap_or(DEFAULT).trim_matches('/');
    if store.dataset(key).is_none() {
        return Err(why_not(store, key));
    }
    let array = store.array(key)?;
    // The columns of the whole matrix are variables, which have names.
    let names = match key {
        "X" => names_of_variables(store)?,
        _ => None,
    };
    let side = |name: &str| column(store, name);
    Matrix { array, names, side: &side, sides: columns(store) }.cloud(store, options)
}

/// What is wrong with a matrix that cannot be read as one.
fn why_not(store: &Store<'_>, key: &str) -> Error {
    let path = store.path.to_owned();
    if store.group(key).is_none() {
        return Error::NoMatrix { path, wanted: key.to_owned(), keys: matrices(store) };
    }
    let sparse = store.has_encoding(key, &["csr_matrix", "csc_matrix"])
        || store.dataset(&format!("{key}/indptr")).is_some();
    let what = if sparse { "a sparse matrix" } else { "a table" };
    Error::Unsupported {
        path,
        what: format!("{} as {what}", label(key.as_ref())),
        remedy: format!(
            "give a dense matrix such as principal components (scanpy.pp.pca); {}",
            there_are(&matrices(store))
        ),
    }
}

fn there_are(keys: &[String]) -> String {
    if keys.is_empty() {
        "the file holds none".to_owned()
    } else {
        format!("the file holds {}", list(keys))
    }
}

/// The dense matrices that could be meant.
fn matrices(store: &Store<'_>) -> Vec<String> {
    let (_, inside) = store.members("obsm");
    let mut found: Vec<String> = inside.into_iter().map(|name| format!("obsm/{name}")).collect();
    if store.dataset("X").is_some() {
        found.push("X".to_owned());
    }
    found
}

/// The index of the variables.
fn names_of_variables(store: &Store<'_>) -> Result<Option<Vec<String>>, Error> {
    let index = store.attribute("var", "_index").unwrap_or_else(|| "_index".to_owned());
    let path = format!("var/{index}");
    if store.is_vector(&path) { store.cells(&path).map(Some) } else { Ok(None) }
}

/// The columns of `obs`, but its index.
fn columns(store: &Store<'_>) -> Vec<String> {
    let index = store.attribute("obs", "_index").unwrap_or_else(|| "_index".to_owned());
    let (groups, datasets) = store.members("obs");
    let mut names: Vec<String> = groups.into_iter().chain(datasets).collect();
    names.retain(|name| *name != index && name != "__categories");
    names.sort();
    names
}

/// A column of `obs` as text: categories, numbers that may be missing, or what an array holds.
fn column(store: &Store<'_>, name: &str) -> Result<Option<Vec<String>>, Error> {
    let path = format!("obs/{name}");
    if store.is_vector(&path) {
        let categories = format!("obs/__categories/{name}");
        if store.is_vector(&categories) {
            // As older versions keep them.
            return category_names(store, &path, &categories).map(Some);
        }
        return store.cells(&path).map(Some);
    }
    let inside = |part: &str| format!("{path}/{part}");
    if store.is_vector(&inside("codes")) && store.is_vector(&inside("categories")) {
        return category_names(store, &inside("codes"), &inside("categories")).map(Some);
    }
    if store.is_vector(&inside("values")) && store.is_vector(&inside("mask")) {
        let (values, mask) = (store.cells(&inside("values"))?, store.cells(&inside("mask"))?);
        let is_missing = |masked: &String| matches!(masked.as_str(), "true" | "1");
        let known = values.into_iter().zip(mask);
        return Ok(Some(
            known
                .map(|(value, mask)| if is_missing(&mask) { String::new() } else { value })
                .collect(),
        ));
    }
    if store.group(&path).is_some() {
        return Err(Error::NotNumeric {
            path: store.path.to_owned(),
            column: Column::Name(path),
            kind: "neither numbers nor text nor categories".to_owned(),
        });
    }
    Ok(None)
}

/// Codes replaced by what they stand for; minus one is missing.
fn category_names(store: &Store<'_>, codes: &str, names: &str) -> Result<Vec<String>, Error> {
    let (codes, names) = (store.cells(codes)?, store.cells(names)?);
    let mut cells = Vec::new();
    for code in codes {
        let name = code.parse::<usize>().ok().and_then(|code| names.get(code)).cloned();
        store.budget.push_cell(&mut cells, name.unwrap_or_default())?;
    }
    Ok(cells)
}
