//! Plans go through `pickle` with all that they are made of, and nothing is solved again.

use numpy::PyArrayMethods;
use orthant::features::FeatureMatrix;
use orthant::{measure::Values, plan::KeptPlan};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{Plan, Setting, prepared};
use crate::arrays::{Columns, Matrix, array};
use crate::errors::raised;
use crate::pickle::{Reduced, reduced};
use crate::settings::{Matrices, Settings};
use crate::solve::Object;
use crate::watch::quietly;

/// What a plan was made of, as far as its measures and options do not say it.
pub(super) struct Recipe {
    has_points: bool,
    /// As they were given.
    weights: [Option<Vec<f64>>; 2],
    /// Without matrices, which the setting of the plan has.
    settings: Py<PyDict>,
}

/// What matters to the solve alone.
const OF_THE_SOLVE: [&str; 3] = ["callback", "progress", "warm_start"];

/// Numbers of a plan.
type Numbers = (KeptPlan, Columns, [Option<Vec<f64>>; 2]);

impl Recipe {
    pub(super) fn new<'py>(
        settings: &Settings<'py>,
        points: [Option<&Object<'py>>; 2],
        weights: [Option<Vec<f64>>; 2],
    ) -> PyResult<Self> {
        let kept = settings.dict().copy()?;
        let py = kept.py();
        for name in OF_THE_SOLVE.into_iter().filter(|name| kept.contains(name).unwrap_or(false)) {
            kept.del_item(name)?;
        }
        if settings.has_matrices() {
            kept.set_item("cost", py.None())?;
            kept.set_item("features", py.None())?;
        }
        if let Some(anchors) = settings.raw("anchors")?
            && anchors.cast::<PyString>().is_err()
        {
            // The array may change.
            let matrix = Matrix::new("anchors", &anchors)?;
            let values = array(py, matrix.to_f64()).reshape([matrix.rows(), matrix.columns()])?;
            kept.set_item("anchors", values)?;
        }
        let has_points = points.iter().all(Option::is_some);
        Ok(Recipe { has_points, weights, settings: kept.unbind() })
    }
}

impl Plan {
    pub(super) fn reduced<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let Setting { mu, nu, options, matrices, columns, .. } = &self.setting;
        let settings = self.recipe.settings.bind(py).copy()?;
        match matrices {
            Matrices::Nothing => {}
            Matrices::Costs(costs) => {
                settings.set_item("cost", matrix(py, costs.values(), costs.shape().columns)?)?;
            }
            Matrices::Features([xi, zeta]) => {
                let of = |m: &FeatureMatrix<'_>| matrix(py, m.values(), m.rank());
                settings.set_item("features", (of(xi)?, of(zeta)?))?;
            }
        }
        let points = if self.recipe.has_points {
            [mu, nu].map(|m| Some(matrix(py, m.points().values(), m.dim())))
        } else {
            [None, None]
        };
        let [x, y] = points.map(Option::transpose);
        let numbers = (self.coupling.keep(), columns, &self.recipe.weights);
        reduced(py, "Plan", &numbers, (x?, y?, options.epsilon(), settings))
    }

    pub(crate) fn restored<'py>(
        py: Python<'py>,
        (kept, columns, weights): Numbers,
        objects: &Bound<'py, PyTuple>,
    ) -> PyResult<Self> {
        let object = |k: usize| -> PyResult<Option<Object<'py>>> {
            Ok(Some(objects.get_item(k)?).filter(|object| !object.is_none()))
        };
        let [x, y, epsilon] = [object(0)?, object(1)?, object(2)?];
        let given = objects.get_item(3)?.cast_into::<PyDict>()?;
        let [a, b] = weights.map(|w| w.map(|w| array(py, w).into_any()));
        let settings = Settings::new(epsilon.as_ref(), &given)?;
        let (mut setting, recipe) =
            prepared(&settings, [x.as_ref(), y.as_ref()], [a.as_ref(), b.as_ref()])?;
        setting.columns = columns;
        let made = quietly(py, &setting.cancel, || {
            setting.solver().restore(&setting.mu, &setting.nu, kept)
        })?;
        Ok(Plan { coupling: made.map_err(raised)?, setting, solution: PyOnceLock::new(), recipe })
    }
}

/// A matrix of so many columns, in the precision that it has.
fn matrix<'py>(py: Python<'py>, values: &Values<'_>, columns: usize) -> PyResult<Object<'py>> {
    let shape = |count: usize| [count / columns.max(1), columns];
    Ok(match values {
        Values::F32(values) => {
            numpy::PyArray1::from_slice(py, values).reshape(shape(values.len()))?.into_any()
        }
        Values::F64(values) => {
            numpy::PyArray1::from_slice(py, values).reshape(shape(values.len()))?.into_any()
        }
    })
}
