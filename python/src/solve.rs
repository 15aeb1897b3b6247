//! Two clouds: transport, divergences, gradients.

use numpy::{PyArray1, PyArray2};
use orthant::{Gradient as Derivatives, Measure, Options, Side, Solver};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{Columns, Matrix, array, frozen, rows};
use crate::errors::raised;
use crate::pickle::{Reduced, reduced};
use crate::results::{Divergence, Lines, Solution, short};
use crate::settings::{Matrices, Scale, ScaleOfTwo, Settings};
use crate::watch::{Ear, run};

pub(crate) type Object<'py> = Bound<'py, PyAny>;

/// A previous result to start from.
pub(crate) enum Warm<'py> {
    Cold,
    Rot(Bound<'py, Solution>),
    Divergence(Bound<'py, Divergence>),
}

/// The same without the interpreter's lock.
#[derive(Clone, Copy)]
pub(crate) enum WarmFrom<'w> {
    Cold,
    Rot(&'w orthant::Solution),
    Divergence(&'w orthant::Divergence),
}

impl<'py> Warm<'py> {
    pub(crate) fn new(settings: &Settings<'py>) -> PyResult<Self> {
        let Some(given) = settings.raw("warm_start")? else { return Ok(Warm::Cold) };
        // A gradient knows what it is of.
        let given = match given.cast::<Gradient>() {
            Ok(gradient) => gradient.get().result.bind(given.py()).clone(),
            Err(_) => given,
        };
        if let Ok(solution) = given.cast::<Solution>() {
            return Ok(Warm::Rot(solution.clone()));
        }
        if let Ok(divergence) = given.cast::<Divergence>() {
            return Ok(Warm::Divergence(divergence.clone()));
        }
        Err(PyTypeError::new_err("warm_start must be a Solution, a Divergence or a Gradient"))
    }

    pub(crate) fn from(&self) -> WarmFrom<'_> {
        match self {
            Warm::Cold => WarmFrom::Cold,
            Warm::Rot(solution) => WarmFrom::Rot(&solution.get().inner),
            Warm::Divergence(divergence) => WarmFrom::Divergence(&divergence.get().inner),
        }
    }
}

impl<'w> WarmFrom<'w> {
    /// A solver of one term.
    pub(crate) fn of_term<'d>(self, solver: Solver<'w, 'd>) -> Solver<'w, 'd> {
        match self {
            WarmFrom::Cold => solver,
            WarmFrom::Rot(solution) => solver.warm_start(solution),
            WarmFrom::Divergence(divergence) => solver.warm_start(&divergence.cross),
        }
    }

    /// A solver of all three.
    fn of_terms<'d>(self, solver: Solver<'w, 'd>) -> Solver<'w, 'd> {
        match self {
            WarmFrom::Divergence(divergence) => solver.warm_start_divergence(divergence),
            other => other.of_term(solver),
        }
    }
}

/// Two clouds and the options of a call, checked.
pub(crate) struct Between<'b, 'py> {
    pub(crate) settings: &'b Settings<'py>,
    pub(crate) mu: &'b Measure<'b>,
    pub(crate) nu: &'b Measure<'b>,
    pub(crate) options: &'b Options,
    pub(crate) matrices: &'b Matrices<'b>,
    columns: &'b Columns,
}

/// Checks two clouds and the options of a call, and does `work` on them.
pub(crate) fn between<'py, R>(
    points: [Option<Object<'py>>; 2],
    weights: [Option<Object<'py>>; 2],
    epsilon: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
    work: impl FnOnce(Between<'_, 'py>) -> PyResult<R>,
) -> PyResult<R> {
    scaled(points, weights, (epsilon, Scale::of_two), settings, work)
}

/// The same where epsilon may be a part of another scale of the costs.
pub(crate) fn scaled<'py, R>(
    points: [Option<Object<'py>>; 2],
    weights: [Option<Object<'py>>; 2],
    (epsilon, scale): (Option<Object<'py>>, ScaleOfTwo),
    settings: &Bound<'py, PyDict>,
    work: impl FnOnce(Between<'_, 'py>) -> PyResult<R>,
) -> PyResult<R> {
    let settings = Settings::new(epsilon.as_ref(), settings)?;
    let (clouds, columns) = settings
        .clouds(points.each_ref().map(Option::as_ref), weights.each_ref().map(Option::as_ref))?;
    let [mu, nu] = [clouds[0].measure(Matrix::borrowed)?, clouds[1].measure(Matrix::borrowed)?];
    let matrices = &settings.matrices(Matrix::borrowed)?;
    let epsilon = settings.epsilon_between(matrices, [&mu, &nu], scale)?;
    let options = &settings.options(epsilon, &[&mu, &nu])?;
    let (settings, mu, nu, columns) = (&settings, &mu, &nu, &columns);
    work(Between { settings, mu, nu, options, matrices, columns })
}

#[pyfunction]
pub(crate) fn rot<'py>(
    py: Python<'py>,
    x: Option<Object<'py>>,
    y: Option<Object<'py>>,
    epsilon: Option<Object<'py>>,
    a: Option<Object<'py>>,
    b: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Solution> {
    between([x, y], [a, b], epsilon, settings, |given| {
        let Between { settings, mu, nu, options, matrices, .. } = given;
        let warm = Warm::new(settings)?;
        let warm = warm.from();
        let solution = run(py, settings.watch()?, |shared| {
            warm.of_term(matrices.solver(options))
                .observer(&mut Ear::new(shared, options.epsilon()))
                .rot(mu, nu)
        })?;
        Ok(Solution::new(solution.map_err(raised)?))
    })
}

#[pyfunction]
pub(crate) fn divergence<'py>(
    py: Python<'py>,
    x: Option<Object<'py>>,
    y: Option<Object<'py>>,
    epsilon: Option<Object<'py>>,
    a: Option<Object<'py>>,
    b: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Divergence> {
    between([x, y], [a, b], epsilon, settings, |given| {
        let Between { settings, mu, nu, options, matrices, .. } = given;
        let warm = Warm::new(settings)?;
        let warm = warm.from();
        let divergence = run(py, settings.watch()?, |shared| {
            warm.of_terms(matrices.solver(options))
                .observer(&mut Ear::new(shared, options.epsilon()))
                .divergence(mu, nu)
        })?;
        Ok(Divergence::new(divergence.map_err(raised)?))
    })
}

/// What a gradient can be by.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum By {
    Points(Side),
    Weights(Side),
    Epsilon,
    Anchors,
    Features(Side),
    LogFeatures(Side),
}

const BY: [(&str, By); 10] = [
    ("x", By::Points(Side::X)),
    ("y", By::Points(Side::Y)),
    ("a", By::Weights(Side::X)),
    ("b", By::Weights(Side::Y)),
    ("epsilon", By::Epsilon),
    ("anchors", By::Anchors),
    ("features_x", By::Features(Side::X)),
    ("features_y", By::Features(Side::Y)),
    ("log_features_x", By::LogFeatures(Side::X)),
    ("log_features_y", By::LogFeatures(Side::Y)),
];

impl By {
    /// From a name, or several.
    pub(crate) fn list(names: &Bound<'_, PyAny>) -> PyResult<Vec<By>> {
        let names: Vec<String> = match names.extract::<String>() {
            Ok(name) => vec![name],
            Err(_) => crate::settings::extract(names, "by", "a name or a tuple of names")?,
        };
        By::named(&names)
    }

    fn named(names: &[String]) -> PyResult<Vec<By>> {
        let by = |name: &String| {
            BY.iter().find(|(known, _)| known == name).map(|(_, by)| *by).ok_or_else(|| {
                let known = BY.map(|(name, _)| name).join(", ");
                PyValueError::new_err(format!("by must be of {known}; got '{name}'"))
            })
        };
        names.iter().map(by).collect()
    }
}

/// Derivatives as numbers, and how many columns a row of them has (0: no rows).
pub(crate) struct Found {
    by: By,
    values: Vec<f64>,
    columns: usize,
}

/// What was asked for of a gradient.
pub(crate) fn found(
    derivatives: &Derivatives<'_>,
    by: &[By],
    dims: [usize; 2],
) -> orthant::Result<Vec<Found>> {
    let one = |by: &By| -> orthant::Result<Found> {
        let (values, columns) = match *by {
            By::Points(side) => (derivatives.points(side)?, dims[side as usize]),
            By::Weights(side) => (derivatives.weights(side)?, 0),
            By::Epsilon => (vec![derivatives.epsilon()?], 0),
            By::Anchors => (derivatives.anchors()?, dims[0]),
            By::Features(side) => {
                let matrix = derivatives.features(side)?;
                (matrix.to_dense()?, matrix.shape().columns)
            }
            By::LogFeatures(side) => {
                let rank = derivatives.features(side)?.shape().columns;
                (derivatives.log_features(side)?, rank)
            }
        };
        Ok(Found { by: *by, values, columns })
    };
    by.iter().map(one).collect()
}

/// Derivatives by points have the columns of the tables that these came in.
pub(crate) fn as_given(mut found: Vec<Found>, columns: &Columns) -> Vec<Found> {
    for Found { by, values, .. } in &mut found {
        if let By::Points(side) = by {
            *values = columns.as_given(*side as usize, std::mem::take(values));
        }
    }
    found
}

#[pyfunction]
pub(crate) fn gradient<'py>(
    py: Python<'py>,
    x: Option<Object<'py>>,
    y: Option<Object<'py>>,
    epsilon: Option<Object<'py>>,
    a: Option<Object<'py>>,
    b: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Gradient> {
    between([x, y], [a, b], epsilon, settings, |given| {
        let Between { settings, mu, nu, options, matrices, columns } = given;
        let by = match settings.raw("by")? {
            Some(names) => By::list(&names)?,
            None => vec![By::Points(Side::X)],
        };
        let of = Of::new(settings)?;
        let warm = Warm::new(settings)?;
        let warm = warm.from();
        let dims = [mu.dim(), nu.dim()];
        let done = run(py, settings.watch()?, |shared| -> orthant::Result<_> {
            let mut ear = Ear::new(shared, options.epsilon());
            if of == Of::Divergence {
                let solver = warm.of_terms(matrices.solver(options)).observer(&mut ear);
                let plans = solver.plans(mu, nu)?;
                let found = found(&plans.gradient(), &by, dims)?;
                return Ok((found, Kind::Divergence(Box::new(plans.into_divergence()))));
            }
            let plan = warm.of_term(matrices.solver(options)).observer(&mut ear).plan(mu, nu)?;
            let derivatives = plan.gradient();
            let derivatives = if of == Of::Value { derivatives.of_value()? } else { derivatives };
            let found = found(&derivatives, &by, dims)?;
            drop(derivatives);
            Ok((found, Kind::Solution(Box::new(plan.into_solution()))))
        })?;
        let (found, kind) = done.map_err(raised)?;
        let found = as_given(found, columns);
        let (value, result) = match kind {
            Kind::Divergence(d) => {
                (d.value, Bound::new(py, Divergence::new(*d))?.into_any().unbind())
            }
            Kind::Solution(s) => {
                let value = if of == Of::Value { s.value } else { s.value_kl };
                (value, Bound::new(py, Solution::new(*s))?.into_any().unbind())
            }
        };
        Gradient::new(py, value, found, result)
    })
}

/// Checks what can be checked of the settings of a gradient before there are points.
#[pyfunction(name = "_checked")]
pub(crate) fn checked<'py>(
    epsilon: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<()> {
    let settings = Settings::new(epsilon.as_ref(), settings)?;
    // Any epsilon will do where the points choose it.
    let epsilon = settings.epsilon(|_, _| Ok(1.0))?;
    settings.matrices(Matrix::borrowed)?;
    settings.options(epsilon, &[])?;
    settings.watch()?;
    Of::new(&settings)?;
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Of {
    Divergence,
    ValueKl,
    Value,
}

impl Of {
    fn new(settings: &Settings<'_>) -> PyResult<Self> {
        let of: Option<String> = settings.get("of", "a string")?;
        match of.as_deref() {
            None | Some("divergence") => Ok(Of::Divergence),
            Some("value_kl") => Ok(Of::ValueKl),
            Some("value") => Ok(Of::Value),
            Some(other) => {
                let message =
                    format!("of must be 'divergence', 'value_kl' or 'value', got '{other}'");
                Err(PyValueError::new_err(message))
            }
        }
    }
}

enum Kind {
    Divergence(Box<orthant::Divergence>),
    Solution(Box<orthant::Solution>),
}

/// Derivatives of a value or a divergence: those that were asked for.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct Gradient {
    /// What it is the gradient of: the divergence, `value_kl` or `value`.
    #[pyo3(get)]
    value: f64,
    /// The result that the gradient belongs to: a `Divergence` or a `Solution`.
    #[pyo3(get)]
    pub(crate) result: Py<PyAny>,
    found: Vec<(By, Py<PyAny>)>,
}

impl Gradient {
    pub(crate) fn new(
        py: Python<'_>,
        value: f64,
        found: Vec<Found>,
        result: Py<PyAny>,
    ) -> PyResult<Self> {
        let object = |Found { by, values, columns }: Found| -> PyResult<_> {
            let object = match by {
                By::Epsilon => values[0].into_pyobject(py)?.into_any(),
                By::Weights(_) => frozen::<PyArray1<f64>>(array(py, values))?.into_any(),
                _ => frozen::<PyArray2<f64>>(rows(py, values, columns)?)?.into_any(),
            };
            Ok((by, object.unbind()))
        };
        let found = found.into_iter().map(object).collect::<PyResult<_>>()?;
        Ok(Gradient { value, result, found })
    }

    /// From its value, the names of the derivatives, the result, and the derivatives.
    pub(crate) fn restored(
        (value, names): (f64, Vec<String>),
        objects: &Bound<'_, PyTuple>,
    ) -> PyResult<Self> {
        let result = objects.get_item(0)?.unbind();
        let mut found = Vec::new();
        for (k, (name, by)) in names.iter().zip(By::named(&names)?).enumerate() {
            let object = objects.get_item(k + 1)?;
            let object = if name == "epsilon" { object } else { frozen(object)? };
            found.push((by, object.unbind()));
        }
        Ok(Gradient { value, result, found })
    }

    fn get(&self, py: Python<'_>, by: By) -> PyResult<Py<PyAny>> {
        let found = self.found.iter().find(|(found, _)| *found == by);
        found.map(|(_, object)| object.clone_ref(py)).ok_or_else(|| {
            let name = name(by);
            let message = format!("the derivative by {name} was not asked for: by=('{name}',)");
            PyAttributeError::new_err(message)
        })
    }
}

fn name(by: By) -> &'static str {
    BY.iter().find(|(_, known)| *known == by).map_or("", |(name, _)| name)
}

#[pymethods]
impl Gradient {
    /// By the points of x, a row for every point, in the columns in which they were given.
    #[getter]
    fn x(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::Points(Side::X))
    }

    /// By the points of y, a row for every point, in the columns in which they were given.
    #[getter]
    fn y(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::Points(Side::Y))
    }

    /// By the weights of x, along changes that keep their sum unless a marginal is relaxed.
    #[getter]
    fn a(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::Weights(Side::X))
    }

    /// By the weights of y, along changes that keep their sum unless a marginal is relaxed.
    #[getter]
    fn b(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::Weights(Side::Y))
    }

    /// By epsilon.
    #[getter]
    fn epsilon(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::Epsilon)
    }

    /// By the anchors of Gaussian features, a row for every anchor.
    #[getter]
    fn anchors(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::Anchors)
    }

    /// By the features of x.
    #[getter]
    fn features_x(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::Features(Side::X))
    }

    /// By the features of y.
    #[getter]
    fn features_y(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::Features(Side::Y))
    }

    /// By the logarithms of the features of x.
    #[getter]
    fn log_features_x(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::LogFeatures(Side::X))
    }

    /// By the logarithms of the features of y.
    #[getter]
    fn log_features_y(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py, By::LogFeatures(Side::Y))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let names: Vec<&str> = self.found.iter().map(|(by, _)| name(*by)).collect();
        let objects = std::iter::once(&self.result).chain(self.found.iter().map(|(_, o)| o));
        let objects = PyTuple::new(py, objects.collect::<Vec<_>>())?;
        reduced(py, "Gradient", &(self.value, names), objects)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.lines(py)?.text("Gradient"))
    }

    /// The same as a table for notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.lines(py)?.html("Gradient"))
    }
}

impl Gradient {
    fn lines(&self, py: Python<'_>) -> PyResult<Lines> {
        let mut lines = Lines::new().add("value", short(self.value), "");
        for (by, object) in &self.found {
            let shown = match by {
                By::Epsilon => object.bind(py).str()?.to_string(),
                _ => format!("array of shape {}", object.bind(py).getattr("shape")?),
            };
            lines = lines.add(name(*by), shown, "");
        }
        Ok(lines)
    }
}
