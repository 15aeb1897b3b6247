//! Barycentres on given points.

use numpy::{PyArray1, PyArray2};
use orthant::Measure;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Matrix, array, frozen, rows};
use crate::clouds::{clouds, measures, shares};
use crate::errors::raised;
use crate::methods::methods;
use crate::pickle::{Reduced, reduced};
use crate::results::{Lazy, Lines, seconds, short};
use crate::settings::Settings;
use crate::solve::Object;
use crate::watch::{Ear, run};

#[pyfunction]
pub(crate) fn barycenter<'py>(
    py: Python<'py>,
    given: &Object<'py>,
    epsilon: Option<Object<'py>>,
    weights: Option<Object<'py>>,
    support: Option<Object<'py>>,
    debiased: bool,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Barycenter> {
    let settings = Settings::new(epsilon.as_ref(), settings)?;
    let (given, support) = clouds(given, support.map(|s| ("support", (s, None))))?;
    let measures = measures(&given)?;
    let weights = shares(weights.as_ref(), measures.len())?;
    let matrix = support.map(|(s, _)| Matrix::new("support", &s)).transpose()?;
    let points = match &matrix {
        Some(matrix) => matrix.points("support", Matrix::borrowed)?,
        None => together(&measures)?,
    };
    let epsilon = settings.epsilon(|scale, cost| scale.of_all(cost, &measures))?;
    let all: Vec<&Measure<'_>> = measures.iter().collect();
    let matrices = settings.matrices(Matrix::borrowed)?;
    let options = settings.options(epsilon, &all)?;
    let inner = run(py, settings.watch()?, |shared| {
        let mut ear = Ear::new(shared, options.epsilon());
        let barycenters = matrices.barycenters(&options).debiased(debiased).observer(&mut ear);
        barycenters.fixed(&measures, &weights, &points)
    })?;
    let inner = inner.map_err(raised)?;
    let columns = points.dim();
    let values: Vec<f64> =
        (0..points.len() * columns).map(|i| points.coordinate(i / columns, i % columns)).collect();
    let points = frozen(rows(py, values, columns)?)?.unbind();
    Ok(Barycenter::new(inner, points))
}

/// All points of some measures.
fn together(measures: &[Measure<'_>]) -> PyResult<orthant::Points<'static>> {
    let dim = measures.first().map_or(1, Measure::dim);
    if let Some(k) = measures.iter().position(|m| m.dim() != dim) {
        let other = measures[k].dim();
        let message = format!(
            "cloud 0 has {dim} coordinates and cloud {k} has {other}; both need the same number"
        );
        return Err(PyValueError::new_err(message));
    }
    let of = |m: &Measure<'_>| -> Vec<f64> {
        (0..m.points().len() * dim).map(|i| m.points().coordinate(i / dim, i % dim)).collect()
    };
    let values: Vec<f64> = measures.iter().flat_map(of).collect();
    orthant::Points::new(values, dim).map_err(raised)
}

/// A barycentre on given points.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct Barycenter {
    inner: orthant::barycenter::Barycenter,
    points: Py<PyArray2<f64>>,
    weights: Lazy,
    distances: Lazy,
}

methods! {
    Barycenter [solved shown] {
        /// The points of the support, a row each.
        #[getter]
        fn points(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
            self.points.clone_ref(py)
        }

        /// The weights of the points, of sum 1.
        #[getter]
        fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
            self.weights.get(py, || self.inner.weights.clone())
        }

        /// The weighted sum of the values (of the divergences, if it is debiased) of the barycentre and the clouds.
        #[getter]
        fn value(&self) -> f64 {
            self.inner.value
        }

        /// The value or divergence of the barycentre and each cloud.
        #[getter]
        fn distances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
            self.distances.get(py, || self.inner.distances.clone())
        }

        /// Whether it is that of the divergence.
        #[getter]
        fn debiased(&self) -> bool {
            self.inner.debiased
        }

        /// Largest L1 distance of a marginal of the plans from its cloud.
        #[getter]
        fn marginal_error(&self) -> f64 {
            self.inner.marginal_error
        }

        /// How many iterations were done.
        #[getter]
        fn iterations(&self) -> usize {
            self.inner.iterations
        }

        /// Whether the marginal error fell below the tolerance.
        #[getter]
        fn converged(&self) -> bool {
            self.inner.converged()
        }

        /// `exp(temperature p / max p)`, divided by its sum: a picture of the peaks of the weights `p`.
        fn softmax<'py>(
            &self,
            py: Python<'py>,
            temperature: f64,
        ) -> PyResult<Bound<'py, PyArray1<f64>>> {
            Ok(array(py, self.inner.softmax(temperature).map_err(raised)?))
        }

        fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
            reduced(py, "Barycenter", &self.inner, (&self.points,))
        }
    }
}

impl Barycenter {
    pub(crate) fn new(inner: orthant::barycenter::Barycenter, points: Py<PyArray2<f64>>) -> Self {
        Barycenter { inner, points, weights: Lazy::default(), distances: Lazy::default() }
    }

    fn lines(&self) -> Lines {
        let b = &self.inner;
        let kind = if b.debiased { "of the divergence" } else { "of W" };
        let yes = if b.converged() { "yes" } else { b.stop.as_str() };
        Lines::new()
            .add("value", short(b.value), kind)
            .add("points", b.weights.len(), format!("from {} clouds", b.distances.len()))
            .value("epsilon", b.epsilon, None)
            .add(
                "converged",
                yes,
                format!("{} iterations, marginal error {:.1e}", b.iterations, b.marginal_error),
            )
            .add(
                "method",
                format!("{}, rank {}", b.method.as_str(), b.rank),
                b.reason.clone().unwrap_or_default(),
            )
    }
}
