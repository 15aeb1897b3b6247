//! Arrays at the door: what NumPy holds in C order is borrowed, what it holds otherwise is copied, row by row.

use numpy::ndarray::Ix2;
use numpy::{
    PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray2, PyUntypedArray,
    PyUntypedArrayMethods, dtype,
};
use orthant::{Measure, Points, measure::Values};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde::{Deserialize, Serialize};

use crate::errors::raised_by;

/// A matrix of real numbers, row-major.
pub(crate) struct Matrix<'py> {
    entries: Entries<'py>,
    rows: usize,
    columns: usize,
}

enum Entries<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
}

/// How to take the entries of a matrix: [`Matrix::borrowed`] or [`Matrix::owned`].
pub(crate) type Take<'m, 'py, 'a> = fn(&'m Matrix<'py>) -> Values<'a>;

impl<'py> Matrix<'py> {
    /// The argument of that name.
    pub(crate) fn new(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = numbers(name, object)?;
        if array.ndim() != 2 {
            return Err(PyValueError::new_err(match array.ndim() {
                1 => format!(
                    "{name} has one axis, and rows are needed: {name}[:, None] makes a row of every number, \
                     {name}[None, :] one row of all"
                ),
                0 => format!(
                    "{name} is a single number, and rows are needed: [[{name}]] is one point"
                ),
                n => format!(
                    "{name} has {n} axes, and rows are needed: {name}.reshape(len({name}), -1) makes a row of \
                     every entry of the first axis"
                ),
            }));
        }
        let (rows, columns) = (array.shape()[0], array.shape()[1]);
        let entries = if array.dtype().is_equiv_to(&dtype::<f32>(array.py())) {
            Entries::F32(readonly(name, &array)?)
        } else {
            Entries::F64(readonly(name, &array)?)
        };
        Ok(Matrix { entries, rows, columns })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// The entries, without a copy.
    pub(crate) fn borrowed(&self) -> Values<'_> {
        match &self.entries {
            Entries::F32(array) => slice(array).into(),
            Entries::F64(array) => slice(array).into(),
        }
    }

    /// A copy of the entries, for what outlives the call.
    pub(crate) fn owned(&self) -> Values<'static> {
        match &self.entries {
            Entries::F32(array) => slice(array).to_vec().into(),
            Entries::F64(array) => slice(array).to_vec().into(),
        }
    }

    /// Entries as double precision, and the number of columns.
    pub(crate) fn to_f64(&self) -> Vec<f64> {
        match &self.entries {
            Entries::F32(array) => slice(array).iter().map(|x| f64::from(*x)).collect(),
            Entries::F64(array) => slice(array).to_vec(),
        }
    }

    pub(crate) fn points<'m, 'a>(
        &'m self,
        name: &str,
        take: Take<'m, 'py, 'a>,
    ) -> PyResult<Points<'a>> {
        Points::new(take(self), self.columns).map_err(raised_by(name))
    }
}

/// In C order: [`numbers`] saw to that.
fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray2<'_, T>) -> &'a [T] {
    array.as_slice().expect("C order was checked when the array came in")
}

fn readonly<'py, T: numpy::Element>(
    name: &str,
    array: &Bound<'py, PyUntypedArray>,
) -> PyResult<PyReadonlyArray2<'py, T>> {
    let array = array.cast::<numpy::PyArray<T, Ix2>>()?;
    array.try_readonly().map_err(|e| PyValueError::new_err(format!("{name}: {e}")))
}

/// A vector of real numbers, in double precision.
pub(crate) fn vector(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let array = numbers(name, object)?;
    match array.ndim() {
        1 => {}
        0 => {
            return Err(PyValueError::new_err(format!(
                "{name} is a single number, and a vector is needed, with a number for every point"
            )));
        }
        axes => {
            return Err(PyValueError::new_err(format!(
                "{name} has {axes} axes, and one is needed, with a number for every point: {name}.ravel()"
            )));
        }
    }
    if let Ok(array) = array.cast::<PyArray1<f64>>() {
        return Ok(array.to_vec()?);
    }
    let singles = array.cast::<PyArray1<f32>>()?.to_vec()?;
    Ok(singles.into_iter().map(f64::from).collect())
}

/// An array of f32 or f64 in C order, aligned: the object itself if it is one, otherwise a copy.
fn numbers<'py>(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = object.py();
    let array = if let Ok(array) = object.cast::<PyUntypedArray>() {
        if object.hasattr("mask")? {
            return Err(PyTypeError::new_err(format!(
                "{name} is a masked array, and what is masked has no place: leave such rows out, \
                 np.asarray({name})[~np.ma.getmaskarray({name}).any(axis=1)], or fill them, {name}.filled(value)"
            )));
        }
        array.clone()
    } else {
        // Tables of other libraries, tensors, lists.
        let converted = tables(py)?.call_method1("to_array", (name, object))?;
        converted.cast_into::<PyUntypedArray>()?
    };
    let descr = array.dtype();
    let wanted = match (descr.kind(), descr.itemsize()) {
        (b'f', 2 | 4) => "float32",
        (b'f' | b'i' | b'u' | b'b', _) => "float64",
        (kind, _) => return Err(PyTypeError::new_err(no_numbers(name, kind, &descr.to_string()))),
    };
    let native = if wanted == "float32" { dtype::<f32>(py) } else { dtype::<f64>(py) };
    let aligned = || -> PyResult<bool> { array.getattr("flags")?.getattr("aligned")?.extract() };
    if descr.is_equiv_to(&native) && array.is_c_contiguous() && aligned()? {
        return Ok(array);
    }
    // `require` copies to what is asked for, entry by entry: never the memory of a transposed array as it lies.
    let options = PyDict::new(py);
    options.set_item("dtype", wanted)?;
    options.set_item("requirements", ["C", "A"])?;
    let copy = py.import("numpy")?.call_method("require", (array,), Some(&options))?;
    Ok(copy.cast_into::<PyUntypedArray>()?)
}

fn no_numbers(name: &str, kind: u8, dtype: &str) -> String {
    match kind {
        b'c' => format!(
            "{name} is complex ({dtype}): give real coordinates, as np.hstack([{name}.real, {name}.imag])"
        ),
        b'O' => format!(
            "{name} holds Python objects and not numbers (dtype object): {name}.astype(float) converts them \
             if they are numbers"
        ),
        b'U' | b'S' | b'T' => {
            format!("{name} holds text and not numbers: {name}.astype(float) reads it as numbers")
        }
        b'M' | b'm' => format!(
            "{name} holds times ({dtype}): say in which unit they count, as ({name} - {name}.min()) / np.timedelta64(1, 's')"
        ),
        b'V' => format!(
            "{name} is a structured array: np.lib.recfunctions.structured_to_unstructured({name}) has its fields as \
             columns"
        ),
        _ => format!("{name} has dtype {dtype}, and real numbers are needed: {name}.astype(float)"),
    }
}

/// The coordinates of clouds that are tables: their names, and for every cloud where they are in it, if not in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Columns {
    pub(crate) names: Option<Vec<String>>,
    pub(crate) places: Vec<Option<Vec<usize>>>,
}

impl Columns {
    /// Rows of the coordinates of a cloud, in the order in which the cloud was given.
    pub(crate) fn as_given(&self, cloud: usize, rows: Vec<f64>) -> Vec<f64> {
        let Some(Some(places)) = self.places.get(cloud) else { return rows };
        let mut given = rows.clone();
        for (given, row) in
            given.chunks_exact_mut(places.len()).zip(rows.chunks_exact(places.len()))
        {
            places.iter().zip(row).for_each(|(place, value)| given[*place] = *value);
        }
        given
    }

    /// The names, unless a library gave them to columns without names.
    pub(crate) fn own_names(&self, py: Python<'_>) -> PyResult<Option<Vec<String>>> {
        let Some(names) = &self.names else { return Ok(None) };
        let is_default: bool = tables(py)?.call_method1("is_default", (names,))?.extract()?;
        Ok((!is_default).then(|| names.clone()))
    }

    /// Points of one's own in the order of these columns.
    pub(crate) fn placed<'py>(
        &self,
        name: &str,
        points: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.names.is_none() || points.cast::<PyUntypedArray>().is_ok() {
            return Ok(points.clone());
        }
        tables(points.py())?.call_method1("placed", (name, points, &self.names))
    }
}

fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("orthant._tables")
}

/// Clouds by name, with their coordinates in one order: columns that have names are matched by them.
pub(crate) fn matched<'py>(
    py: Python<'py>,
    clouds: &[(&str, Bound<'py, PyAny>)],
) -> PyResult<(Vec<Bound<'py, PyAny>>, Columns)> {
    if clouds.iter().all(|(_, cloud)| cloud.cast::<PyUntypedArray>().is_ok()) {
        let objects = clouds.iter().map(|(_, cloud)| cloud.clone()).collect();
        return Ok((objects, Columns::default()));
    }
    let found = tables(py)?.call_method1("matched", (clouds.to_vec(),))?;
    let (objects, names, places) = found.extract()?;
    Ok((objects, Columns { names, places }))
}

/// Whether something is one cloud, and no list of them.
pub(crate) fn is_one_cloud(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    tables(object.py())?.call_method1("is_one_cloud", (object,))?.extract()
}

/// A cloud as it was given: points, or only their number, and weights.
pub(crate) struct Cloud<'py> {
    name: String,
    points: Option<Matrix<'py>>,
    count: usize,
    weights: Option<Vec<f64>>,
}

impl<'py> Cloud<'py> {
    /// Points may be missing where a matrix of costs or of features says how many there are.
    pub(crate) fn new(
        name: &str,
        points: Option<&Bound<'py, PyAny>>,
        (weights_name, weights): (&str, Option<&Bound<'py, PyAny>>),
        count: Option<usize>,
    ) -> PyResult<Self> {
        let points = points.map(|points| Matrix::new(name, points)).transpose()?;
        let Some(count) = points.as_ref().map(Matrix::rows).or(count) else {
            return Err(PyTypeError::new_err(format!(
                "{name} is None: points are needed, unless cost= or features= are matrices"
            )));
        };
        let weights = weights.map(|w| vector(weights_name, w)).transpose()?;
        if let Some(weights) = &weights
            && weights.len() != count
        {
            return Err(PyValueError::new_err(format!(
                "{weights_name} has {} weights for the {count} points of {name}; give one weight a point",
                weights.len()
            )));
        }
        Ok(Cloud { name: name.to_owned(), points, count, weights })
    }

    /// One of many, out of its parts.
    pub(crate) fn of_parts(name: &str, (points, weights): &Parts<'py>) -> PyResult<Self> {
        Cloud::new(name, Some(points), (&format!("the weights of {name}"), weights.as_ref()), None)
    }

    /// The weights as they were given.
    pub(crate) fn into_weights(self) -> Option<Vec<f64>> {
        self.weights
    }

    pub(crate) fn measure<'m, 'a>(&'m self, take: Take<'m, 'py, 'a>) -> PyResult<Measure<'a>> {
        let points = match &self.points {
            Some(points) => points.points(&self.name, take)?,
            // The kernel is given for the points, wherever they are.
            None => Points::new(vec![0.0; self.count], 1).map_err(raised_by(&self.name))?,
        };
        match &self.weights {
            None => Ok(Measure::uniform(points)),
            Some(weights) => Measure::weighted(points, weights)
                .map_err(raised_by(&format!("the weights of {}", self.name))),
        }
    }
}

/// Points and weights of one of many clouds.
pub(crate) type Parts<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// The parts of one of many clouds: an array of points, or a pair of points and weights.
pub(crate) fn parts<'py>(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Parts<'py>> {
    let Ok(pair) = object.cast::<PyTuple>() else {
        return Ok((object.clone(), None));
    };
    if pair.len() != 2 {
        return Err(PyValueError::new_err(format!(
            "{name} is a tuple of {}: give an array of points, or (points, weights)",
            pair.len()
        )));
    }
    let (points, weights) = (pair.get_item(0)?, pair.get_item(1)?);
    Ok((points, (!weights.is_none()).then_some(weights)))
}

/// A vector for Python.
pub(crate) fn array(py: Python<'_>, values: Vec<f64>) -> Bound<'_, PyArray1<f64>> {
    PyArray1::from_vec(py, values)
}

/// Rows of so many columns for Python.
pub(crate) fn rows(
    py: Python<'_>,
    values: Vec<f64>,
    columns: usize,
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let count = values.len() / columns.max(1);
    PyArray1::from_vec(py, values).reshape([count, columns])
}

/// The same, not to be written to: results do not change.
pub(crate) fn frozen<T>(array: Bound<'_, T>) -> PyResult<Bound<'_, T>> {
    let options = PyDict::new(array.py());
    options.set_item("write", false)?;
    array.as_any().call_method("setflags", (), Some(&options))?;
    Ok(array)
}
