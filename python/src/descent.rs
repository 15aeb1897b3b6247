//! Clouds that move: flows, and barycentres of points that are free.

use numpy::{PyArray1, PyArray2};
use orthant::{
    Measure,
    control::Next,
    descent::{Descent, Rest},
    results::Times,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Cloud, Matrix, array, frozen, parts, rows};
use crate::clouds::{clouds, measures, shares};
use crate::errors::raised;
use crate::methods::methods;
use crate::pickle::{Reduced, reduced};
use crate::results::{Divergence, Lines, Solution, seconds, short};
use crate::settings::Settings;
use crate::solve::{Between, Object, between};
use crate::watch::{Advance, Deaf, callable, run};

/// Settings of points that move.
struct Moves {
    step: Option<f64>,
    momentum: Option<f64>,
    max_steps: Option<usize>,
    until: Option<f64>,
    still: Option<f64>,
    each: Option<Py<PyAny>>,
}

impl Moves {
    fn new(settings: &Settings<'_>) -> PyResult<Self> {
        let each = settings.raw("each")?.map(|each| callable("each", &each)).transpose()?;
        Ok(Moves {
            step: settings.get("step", "a positive number")?,
            momentum: settings.get("momentum", "a number")?,
            max_steps: settings.get("max_steps", "an integer that is not negative")?,
            until: settings.get("until", "a number")?,
            still: settings.get("still", "a number")?,
            each,
        })
    }

    fn total(&self) -> usize {
        self.max_steps.unwrap_or(100)
    }

    fn of<'s>(&self, mut descent: Descent<'s>) -> Descent<'s> {
        if let Some(step) = self.step {
            descent = descent.step(step);
        }
        if let Some(momentum) = self.momentum {
            descent = descent.momentum(momentum);
        }
        if let Some(until) = self.until {
            descent = descent.until(until);
        }
        if let Some(still) = self.still {
            descent = descent.still(still);
        }
        descent.max_steps(self.total())
    }

    /// Shows where the points are, to whoever wants to see them.
    fn show(&self, step: &orthant::descent::Step<'_>, dim: usize) -> PyResult<bool> {
        let Some(each) = &self.each else { return Ok(false) };
        Python::attach(|py| {
            let points = rows(py, step.points.to_vec(), dim)?.unbind();
            let &orthant::descent::Step { number, value, pull, moved, size, rejected, .. } = step;
            let step = Step { number, value, points, pull, moved, size, rejected };
            each.bind(py).call1((step,))?.is_truthy()
        })
    }
}

/// Where the points are after a step.
#[pyclass(frozen, get_all, module = "orthant")]
pub(crate) struct Step {
    /// Steps done; 0 before the first.
    number: usize,
    /// What is minimised.
    value: f64,
    /// Where the points are.
    points: Py<PyArray2<f64>>,
    /// How far the gradient leads, in the root mean square over the points.
    pull: f64,
    /// How far the points have moved in this step, in the root mean square.
    moved: f64,
    /// The size of the step.
    size: f64,
    /// Trials so far that were not taken.
    rejected: usize,
}

#[pymethods]
impl Step {
    fn __repr__(&self) -> String {
        let Step { number, value, pull, moved, size, rejected, .. } = self;
        format!(
            "Step(number={number}, value={value}, pull={pull}, moved={moved}, size={size}, rejected={rejected})"
        )
    }
}

#[pyfunction]
pub(crate) fn flow<'py>(
    py: Python<'py>,
    x: Option<Object<'py>>,
    y: Option<Object<'py>>,
    epsilon: Option<Object<'py>>,
    a: Option<Object<'py>>,
    b: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Flow> {
    if x.is_none() || y.is_none() {
        return Err(PyTypeError::new_err("a flow moves points: x and y are needed"));
    }
    let (flow, dim) = between([x, y], [a, b], epsilon, settings, |given| {
        let Between { settings, mu, nu, options, matrices, .. } = given;
        matrices.refused().map_err(raised)?;
        let moves = Moves::new(settings)?;
        let dim = mu.dim();
        let flow = run(py, settings.watch()?, |shared| -> PyResult<_> {
            let (mut deaf, mut failed) = (Deaf(shared), None);
            let mut each =
                |step: &orthant::descent::Step<'_>| stepped(&moves, shared, step, dim, &mut failed);
            let descent = moves.of(Descent::new(options)).observer(&mut deaf).each(&mut each);
            let flow = descent.flow(mu, nu);
            failed.map_or(Ok(()), Err)?;
            flow.map_err(raised)
        })??;
        Ok((flow, dim))
    })?;
    let orthant::descent::Flow { points, divergence, first, steps, gradients, rest, times, .. } =
        flow;
    Ok(Flow {
        points: frozen(rows(py, points, dim)?)?.unbind(),
        divergence: Py::new(py, Divergence::new(divergence))?,
        first,
        steps,
        gradients,
        rest,
        times,
    })
}

/// Tells everybody of a step.
fn stepped(
    moves: &Moves,
    shared: &crate::watch::Shared,
    step: &orthant::descent::Step<'_>,
    dim: usize,
    failed: &mut Option<PyErr>,
) -> Next {
    let shown = moves.show(step, dim).unwrap_or_else(|error| {
        *failed = Some(error);
        true
    });
    let told = shared.tell(|| Advance {
        what: "steps",
        done: step.number,
        total: moves.total(),
        value: Some(step.value),
    });
    if shown { Next::Stop } else { told }
}

/// Where a flow ended.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct Flow {
    /// Where the points are in the end.
    #[pyo3(get)]
    pub(crate) points: Py<PyArray2<f64>>,
    /// The divergence there, with its terms.
    #[pyo3(get)]
    pub(crate) divergence: Py<Divergence>,
    /// The divergence before the first step.
    #[pyo3(get)]
    pub(crate) first: f64,
    /// How many steps were done.
    #[pyo3(get)]
    pub(crate) steps: usize,
    /// How many gradients were computed.
    #[pyo3(get)]
    pub(crate) gradients: usize,
    pub(crate) rest: Rest,
    pub(crate) times: Times,
}

methods! {
    Flow [moved shown] {
        /// The divergence at the end.
        #[getter]
        fn value(&self) -> f64 {
            self.divergence.get().inner.value
        }

        fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
            let numbers = (self.first, self.steps, self.gradients, self.rest, self.times);
            reduced(py, "Flow", &numbers, (&self.points, &self.divergence))
        }
    }
}

impl Flow {
    fn lines(&self) -> Lines {
        let d = &self.divergence.get().inner;
        Lines::new()
            .value("divergence", d.value, d.interval())
            .value("first", self.first, None)
            .add("steps", self.steps, format!("{} gradients", self.gradients))
            .add("rest", self.rest.as_str(), "")
            .value("epsilon", d.cross.epsilon, None)
            .add("method", format!("{}, rank {}", d.cross.method.as_str(), d.cross.rank), "")
    }
}

#[pyfunction]
pub(crate) fn free_barycenter<'py>(
    py: Python<'py>,
    given: &Object<'py>,
    epsilon: Option<Object<'py>>,
    weights: Option<Object<'py>>,
    start: &Object<'py>,
    debiased: bool,
    settings: &Bound<'py, PyDict>,
) -> PyResult<FreeBarycenter> {
    let settings = Settings::new(epsilon.as_ref(), settings)?;
    // A number of points, or the points with their weights.
    let count = start.extract::<usize>();
    let own = match &count {
        Ok(_) => None,
        Err(_) => Some(("start", parts("start", start)?)),
    };
    let (given, own) = clouds(given, own)?;
    let measures = measures(&given)?;
    let weights = shares(weights.as_ref(), measures.len())?;
    let epsilon = settings.epsilon(|scale, cost| scale.of_all(cost, &measures))?;
    let all: Vec<&Measure<'_>> = measures.iter().collect();
    settings.matrices(Matrix::borrowed)?.refused().map_err(raised)?;
    let options = settings.options(epsilon, &all)?;
    let moves = Moves::new(&settings)?;
    let own = own.map(|parts| Cloud::of_parts("start", &parts)).transpose()?;
    let start = match (&own, count) {
        (Some(cloud), _) => cloud.measure(Matrix::borrowed)?,
        (None, count) => {
            let drawn = Descent::new(&options).start(&measures, &weights, count?);
            Measure::uniform(drawn.map_err(raised)?)
        }
    };
    let dim = start.dim();
    let found = run(py, settings.watch()?, |shared| -> PyResult<_> {
        let (mut deaf, mut failed) = (Deaf(shared), None);
        let mut each =
            |step: &orthant::descent::Step<'_>| stepped(&moves, shared, step, dim, &mut failed);
        let descent = moves.of(Descent::new(&options)).debiased(debiased);
        let descent = descent.observer(&mut deaf).each(&mut each);
        let found = descent.barycenter(&measures, &weights, &start);
        failed.map_or(Ok(()), Err)?;
        found.map_err(raised)
    })??;
    let points = frozen(rows(py, found.points, dim)?)?.unbind();
    Ok(FreeBarycenter {
        points,
        weights: frozen(array(py, start.weights().to_vec()))?.unbind(),
        value: found.value,
        first: found.first,
        distances: frozen(array(py, found.distances))?.unbind(),
        debiased: found.debiased,
        solution: Py::new(py, Solution::new(found.solution))?,
        steps: found.steps,
        gradients: found.gradients,
        rest: found.rest,
        times: found.times,
    })
}

/// A barycentre whose points were free to move.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct FreeBarycenter {
    /// Where the points are in the end.
    #[pyo3(get)]
    pub(crate) points: Py<PyArray2<f64>>,
    /// Their weights, those of the start.
    #[pyo3(get)]
    pub(crate) weights: Py<PyArray1<f64>>,
    /// The weighted sum of the values (of the divergences, if it is debiased) of the barycentre and the clouds.
    #[pyo3(get)]
    pub(crate) value: f64,
    /// The same before the first step.
    #[pyo3(get)]
    pub(crate) first: f64,
    /// The value or divergence of the barycentre and each cloud.
    #[pyo3(get)]
    pub(crate) distances: Py<PyArray1<f64>>,
    /// Whether it is that of the divergence.
    #[pyo3(get)]
    pub(crate) debiased: bool,
    /// The solution of the last cloud.
    #[pyo3(get)]
    pub(crate) solution: Py<Solution>,
    /// How many steps were done.
    #[pyo3(get)]
    pub(crate) steps: usize,
    /// How many gradients were computed.
    #[pyo3(get)]
    pub(crate) gradients: usize,
    pub(crate) rest: Rest,
    pub(crate) times: Times,
}

methods! {
    FreeBarycenter [moved shown] {
        fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
            let numbers = (
                self.value,
                self.first,
                self.debiased,
                self.steps,
                self.gradients,
                self.rest,
                self.times,
            );
            let objects = (&self.points, &self.weights, &self.distances, &self.solution);
            reduced(py, "FreeBarycenter", &numbers, objects)
        }
    }
}

impl FreeBarycenter {
    fn lines(&self) -> Lines {
        let s = &self.solution.get().inner;
        Lines::new()
            .add(
                "value",
                short(self.value),
                if self.debiased { "of the divergence" } else { "of W" },
            )
            .value("first", self.first, None)
            .add("steps", self.steps, format!("{} gradients", self.gradients))
            .add("rest", self.rest.as_str(), "")
            .value("epsilon", s.epsilon, None)
            .add("method", format!("{}, rank {}", s.method.as_str(), s.rank), "")
    }
}
