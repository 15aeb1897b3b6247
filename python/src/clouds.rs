//! Lists of clouds, as the functions about several of them take them.

use orthant::Measure;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{Cloud, Matrix, Parts, is_one_cloud, matched, parts, vector};
use crate::solve::Object;

/// Clouds out of a list of arrays or of pairs (points, weights), and `more` points that go with them.
pub(crate) fn clouds<'py>(
    object: &Object<'py>,
    more: Option<(&str, Parts<'py>)>,
) -> PyResult<(Vec<Cloud<'py>>, Option<Parts<'py>>)> {
    let py = object.py();
    if is_one_cloud(object)? {
        return Err(PyTypeError::new_err(
            "a list of clouds is needed, each an array of points or a pair (points, weights); an array is one cloud, \
             or, if it has three axes, list(array) is the list",
        ));
    }
    let list = object.try_iter().map_err(|_| {
        PyTypeError::new_err(
            "a list of clouds is needed, each an array of points or a pair (points, weights)",
        )
    })?;
    let named = |(k, cloud): (usize, PyResult<Object<'py>>)| {
        let name = format!("cloud {k}");
        let parts = parts(&name, &cloud?)?;
        Ok((name, parts))
    };
    let mut list = list.enumerate().map(named).collect::<PyResult<Vec<_>>>()?;
    if list.is_empty() {
        return Err(PyValueError::new_err("the list of clouds is empty; give at least one"));
    }
    let count = list.len();
    list.extend(more.map(|(name, parts)| (name.to_owned(), parts)));
    // All of them have the columns of the first.
    let points: Vec<_> = list.iter().map(|(name, parts)| (&**name, parts.0.clone())).collect();
    let (points, _) = matched(py, &points)?;
    let mut list: Vec<(String, Parts<'py>)> = list
        .into_iter()
        .zip(points)
        .map(|((name, (_, weights)), points)| (name, (points, weights)))
        .collect();
    let more = list.split_off(count).pop().map(|(_, parts)| parts);
    let clouds = list.iter().map(|(name, parts)| Cloud::of_parts(name, parts));
    Ok((clouds.collect::<PyResult<_>>()?, more))
}

pub(crate) fn measures<'m>(clouds: &'m [Cloud<'_>]) -> PyResult<Vec<Measure<'m>>> {
    clouds.iter().map(|cloud| cloud.measure(Matrix::borrowed)).collect()
}

/// Equal ones, unless they are given.
pub(crate) fn shares(weights: Option<&Object<'_>>, count: usize) -> PyResult<Vec<f64>> {
    match weights {
        Some(weights) => vector("weights", weights),
        None => Ok(vec![1.0; count]),
    }
}
