//! All pairs of many clouds.

use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use orthant::{
    Measure,
    compare::{Comparer, embedding, leaves, linkage},
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{frozen, rows};
use crate::clouds::{clouds, measures};
use crate::errors::raised;
use crate::methods::methods;
use crate::pickle::{Reduced, reduced};
use crate::results::{Interval, Lines, interval, short};
use crate::settings::Settings;
use crate::solve::Object;
use crate::watch::{Advance, Deaf, run};

#[pyfunction]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    given: &Object<'py>,
    epsilon: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Comparison> {
    let settings = Settings::new(epsilon.as_ref(), settings)?;
    if settings.has_matrices() {
        return Err(PyTypeError::new_err(
            "the cost between many clouds is a name or a function of two points, not a matrix",
        ));
    }
    let (given, _) = clouds(given, None)?;
    let measures = measures(&given)?;
    let epsilon = settings.epsilon(|scale, cost| scale.of_all(cost, &measures))?;
    let all: Vec<&Measure<'_>> = measures.iter().collect();
    let options = settings.options(epsilon, &all)?;
    let before = match settings.raw("finished")? {
        None => Vec::new(),
        Some(earlier) => match earlier.cast::<Comparison>() {
            Ok(earlier) => earlier.get().inner.pairs.clone(),
            Err(_) => return Err(PyTypeError::new_err("finished must be an earlier Comparison")),
        },
    };
    let total = measures.len() * measures.len().saturating_sub(1) / 2;
    let mut done = before.len();
    let inner = run(py, settings.watch()?, |shared| {
        let mut deaf = Deaf(shared);
        let mut each = |pair: &orthant::compare::Pair| {
            done += 1;
            shared.tell(|| Advance { what: "pairs", done, total, value: Some(pair.value) })
        };
        let comparer = Comparer::new(&options).finished(before);
        comparer.observer(&mut deaf).each(&mut each).compare(&measures)
    })?;
    Ok(Comparison { inner: inner.map_err(raised)?, epsilon })
}

/// The divergences of all pairs of some clouds.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct Comparison {
    pub(crate) inner: orthant::compare::Comparison,
    pub(crate) epsilon: f64,
}

impl Comparison {
    fn all(&self) -> PyResult<Vec<f64>> {
        self.inner.matrix().ok_or_else(|| {
            PyValueError::new_err(
                "the comparison was stopped before all pairs were finished: compare(..., finished=this) goes on",
            )
        })
    }

    fn lines(&self) -> Lines {
        let c = &self.inner;
        let all = c.count * c.count.saturating_sub(1) / 2;
        let values = || c.pairs.iter().map(|p| p.value);
        let mut lines = Lines::new()
            .add("clouds", c.count, format!("{} of {all} pairs", c.pairs.len()))
            .add("shared", c.sharing.as_str(), "")
            .value("epsilon", self.epsilon, None);
        if !c.pairs.is_empty() {
            let least = values().fold(f64::INFINITY, f64::min);
            let most = values().fold(f64::NEG_INFINITY, f64::max);
            lines = lines.add("divergences", format!("{} to {}", short(least), short(most)), "");
        }
        lines.add("converged", if c.converged() { "yes" } else { "no" }, "")
    }
}

methods! {
    Comparison [shown] {
        /// How many clouds there are.
        #[getter]
        fn count(&self) -> usize {
            self.inner.count
        }

        /// The regularisation, in units of the cost.
        #[getter]
        fn epsilon(&self) -> f64 {
            self.epsilon
        }

        /// Whether all pairs are finished.
        #[getter]
        fn complete(&self) -> bool {
            self.inner.is_complete()
        }

        /// Whether all terms of all pairs converged.
        #[getter]
        fn converged(&self) -> bool {
            self.inner.converged()
        }

        /// What pairs have in common: `self_terms`, `features`, `map` or `nothing`.
        #[getter]
        fn sharing(&self) -> &'static str {
            self.inner.sharing.as_str()
        }

        /// The divergences, symmetric, with zeros on the diagonal.
        #[getter]
        fn matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
            frozen(rows(py, self.all()?, self.inner.count)?)
        }

        /// Lower and upper ends, NaN where nothing is known.
        #[getter]
        fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
            self.all()?;
            let count = self.inner.count;
            let ends = |i| {
                (0..count).flat_map(move |j| {
                    self.inner.interval(i, j).map_or([f64::NAN; 2], |range| [range.low, range.high])
                })
            };
            let values: Vec<f64> = (0..count).flat_map(ends).collect();
            frozen(PyArray1::from_vec(py, values).reshape([count, count, 2])?)
        }

        /// The pairs that are finished.
        #[getter]
        fn pairs(&self) -> Vec<Compared> {
            self.inner.pairs.iter().map(|pair| Compared(*pair)).collect()
        }

        /// Average linkage, as `SciPy` has it.
        fn linkage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
            let tree = linkage(&self.all()?, self.inner.count).map_err(raised)?;
            let row = |m: &orthant::compare::Merge| [m.left as f64, m.right as f64, m.height, m.size as f64];
            rows(py, tree.iter().flat_map(row).collect(), 4)
        }

        /// An order of the clouds in which those that are near are next to each other.
        fn leaves(&self) -> PyResult<Vec<usize>> {
            Ok(leaves(&linkage(&self.all()?, self.inner.count).map_err(raised)?))
        }

        /// Points of the plane, and the share of the matrix that they show.
        fn embedding<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray2<f64>>, f64)> {
            let found = embedding(&self.all()?, self.inner.count).map_err(raised)?;
            Ok((rows(py, found.points.into_flattened(), 2)?, found.share))
        }

        fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
            reduced(py, "Comparison", &(&self.inner, self.epsilon), ())
        }
    }
}

/// Two of many clouds.
#[pyclass(frozen, module = "orthant", name = "Pair")]
pub(crate) struct Compared(pub(crate) orthant::compare::Pair);

#[pymethods]
impl Compared {
    /// The cloud with the smaller number.
    #[getter]
    fn first(&self) -> usize {
        self.0.first
    }

    /// The other cloud.
    #[getter]
    fn second(&self) -> usize {
        self.0.second
    }

    /// The divergence.
    #[getter]
    fn value(&self) -> f64 {
        self.0.value
    }

    /// Where the divergence of the exact kernel is, if that is known.
    #[getter]
    fn interval(&self) -> Option<Interval> {
        interval(self.0.interval)
    }

    /// Whether all terms converged.
    #[getter]
    fn converged(&self) -> bool {
        self.0.converged
    }

    /// Whether all terms are known to be as accurate as was asked for.
    #[getter]
    fn accurate(&self) -> bool {
        self.0.accurate
    }

    /// The method of the cross term.
    #[getter]
    fn method(&self) -> &'static str {
        self.0.method.as_str()
    }

    /// Iterations of the cross term.
    #[getter]
    fn iterations(&self) -> usize {
        self.0.iterations
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "Pair", &self.0, ())
    }

    fn __repr__(&self) -> String {
        let orthant::compare::Pair { first, second, value, method, .. } = self.0;
        format!("Pair({first}, {second}, value={value}, method='{}')", method.as_str())
    }
}
