//! Results go through `pickle`: to other processes, and into files.
//!
//! Numbers are bytes, arrays and results within results pickle by themselves.

use numpy::{PyArray1, PyArray2};
use orthant::{descent::Rest, results::Times};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use pyo3::{PyClass, PyClassInitializer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arrays::frozen;
use crate::barycenter::Barycenter;
use crate::compare::{Compared, Comparison};
use crate::descent::{Flow, FreeBarycenter};
use crate::features::FeatureMap;
use crate::plan::Plan;
use crate::results::{Divergence, Interval, Solution};
use crate::solve::Gradient;
use crate::two_sample::TwoSample;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `__reduce__` returns: a function, and what it makes the object of (its class, the version, numbers, objects).
pub(crate) type Reduced<'py> =
    (Bound<'py, PyAny>, (&'static str, &'static str, Bound<'py, PyBytes>, Bound<'py, PyTuple>));

pub(crate) fn reduced<'py>(
    py: Python<'py>,
    class: &'static str,
    numbers: &impl Serialize,
    objects: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
) -> PyResult<Reduced<'py>> {
    let bytes = postcard::to_allocvec(numbers)
        .map_err(|e| PyValueError::new_err(format!("this {class} cannot be written: {e}")))?;
    let function = py.import("orthant._orthant")?.getattr("_restored")?;
    let objects = objects.into_pyobject(py).map_err(Into::into)?;
    Ok((function, (class, VERSION, PyBytes::new(py, &bytes), objects)))
}

/// Makes an object of what [`reduced`] made of it.
#[pyfunction(name = "_restored")]
pub(crate) fn restored<'py>(
    py: Python<'py>,
    kind: &str,
    version: &str,
    bytes: &[u8],
    objects: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    if version != VERSION {
        let message = format!(
            "this {kind} was pickled by orthant {version}, and this is {VERSION}; results are read by the version that \
             wrote them"
        );
        return Err(PyValueError::new_err(message));
    }
    let stored = Stored { class: kind, bytes, objects };
    match kind {
        "Interval" => object(py, Interval(stored.numbers()?)),
        "Solution" => object(py, Solution::new(stored.numbers()?)),
        "Divergence" => object(py, Divergence::new(stored.numbers()?)),
        "Pair" => object(py, Compared(stored.numbers()?)),
        "TwoSample" => object(py, TwoSample::new(stored.numbers()?)),
        "Comparison" => {
            let (inner, epsilon) = stored.numbers()?;
            object(py, Comparison { inner, epsilon })
        }
        "Barycenter" => object(py, Barycenter::new(stored.numbers()?, stored.matrix(0)?)),
        "Flow" => {
            let (first, steps, gradients, rest, times): (_, _, _, Rest, Times) =
                stored.numbers()?;
            let (points, divergence) = (stored.matrix(0)?, stored.object(1)?);
            object(py, Flow { points, divergence, first, steps, gradients, rest, times })
        }
        "FreeBarycenter" => {
            let (value, first, debiased, steps, gradients, rest, times) = stored.numbers()?;
            let (points, weights) = (stored.matrix(0)?, stored.vector(1)?);
            let (distances, solution) = (stored.vector(2)?, stored.object(3)?);
            object(
                py,
                FreeBarycenter {
                    points,
                    weights,
                    value,
                    first,
                    distances,
                    debiased,
                    solution,
                    steps,
                    gradients,
                    rest,
                    times,
                },
            )
        }
        "FeatureMap" => object(py, FeatureMap::new(stored.numbers()?)?),
        "Plan" => object(py, Plan::restored(py, stored.numbers()?, objects)?),
        "Gradient" => object(py, Gradient::restored(stored.numbers()?, objects)?),
        other => Err(PyAttributeError::new_err(format!("orthant has no result that is a {other}"))),
    }
}

fn object<T>(py: Python<'_>, value: T) -> PyResult<Bound<'_, PyAny>>
where
    T: PyClass + Into<PyClassInitializer<T>>,
{
    Ok(Bound::new(py, value)?.into_any())
}

/// What an object was made into.
struct Stored<'s, 'py> {
    class: &'s str,
    bytes: &'s [u8],
    objects: &'s Bound<'py, PyTuple>,
}

impl Stored<'_, '_> {
    fn numbers<T: DeserializeOwned>(&self) -> PyResult<T> {
        postcard::from_bytes(self.bytes).map_err(|e| {
            PyValueError::new_err(format!("the bytes are not those of a {}: {e}", self.class))
        })
    }

    fn object<T: PyClass>(&self, place: usize) -> PyResult<Py<T>> {
        Ok(self.objects.get_item(place)?.cast_into::<T>()?.unbind())
    }

    fn matrix(&self, place: usize) -> PyResult<Py<PyArray2<f64>>> {
        Ok(frozen(self.objects.get_item(place)?.cast_into::<PyArray2<f64>>()?)?.unbind())
    }

    fn vector(&self, place: usize) -> PyResult<Py<PyArray1<f64>>> {
        Ok(frozen(self.objects.get_item(place)?.cast_into::<PyArray1<f64>>()?)?.unbind())
    }
}
