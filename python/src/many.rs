//! Several clouds, and clouds that move.

use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use orthant::{
    Barycenters, Comparer, Descent, Measure, Next, Rest, Times, TwoSampleTest, embedding, leaves,
    linkage, mean_cost,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{
    Cloud, Matrix, Parts, array, frozen, is_one_cloud, matched, parts, rows, vector,
};
use crate::errors::raised;
use crate::pickle::{Reduced, reduced};
use crate::results::{Divergence, Interval, Lazy, Lines, Solution, interval, seconds, short};
use crate::settings::{Settings, extract};
use crate::solve::{Between, Object, between};
use crate::watch::{Advance, Deaf, Ear, callable, run};

/// Clouds out of a list of arrays or of pairs (points, weights), and `more` points that go with them.
fn clouds<'py>(
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

fn measures<'m>(clouds: &'m [Cloud<'_>]) -> PyResult<Vec<Measure<'m>>> {
    clouds.iter().map(|cloud| cloud.measure(Matrix::borrowed)).collect()
}

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
    let epsilon = settings.epsilon(|| mean_cost(&measures))?;
    let all: Vec<&Measure<'_>> = measures.iter().collect();
    let options = settings.options(epsilon, &all, Matrix::borrowed)?;
    let inner = run(py, settings.watch()?, |shared| {
        let mut ear = Ear::new(shared, options.epsilon());
        let barycenters = Barycenters::new(&options).debiased(debiased).observer(&mut ear);
        barycenters.fixed(&measures, &weights, &points)
    })?;
    let inner = inner.map_err(raised)?;
    let columns = points.dim();
    let values: Vec<f64> =
        (0..points.len() * columns).map(|i| points.coordinate(i / columns, i % columns)).collect();
    let points = frozen(rows(py, values, columns)?)?.unbind();
    Ok(Barycenter::new(inner, points))
}

/// Equal ones, unless they are given.
fn shares(weights: Option<&Object<'_>>, count: usize) -> PyResult<Vec<f64>> {
    match weights {
        Some(weights) => vector("weights", weights),
        None => Ok(vec![1.0; count]),
    }
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
    inner: orthant::Barycenter,
    points: Py<PyArray2<f64>>,
    weights: Lazy,
    distances: Lazy,
}

#[pymethods]
impl Barycenter {
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

    /// The regularisation, in units of the cost.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.inner.epsilon
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

    /// Why it ended: `converged`, `iteration_limit`, `time_limit` or `requested`.
    #[getter]
    fn stop(&self) -> &'static str {
        self.inner.stop.as_str()
    }

    /// The method that was used: `gaussian`, `lattice`, `arccos`, `linear`, `map`, `explicit`, `dense`, `online` or
    /// `nystrom`.
    #[getter]
    fn method(&self) -> &'static str {
        self.inner.method.as_str()
    }

    /// Number of features or landmarks; of exact methods the number of columns of the kernel.
    #[getter]
    fn rank(&self) -> usize {
        self.inner.rank
    }

    /// Why this method, in words, if it was chosen automatically; otherwise `None`.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.reason.as_deref()
    }

    /// Seconds for storing features or kernels, and for all else.
    #[getter]
    fn times(&self) -> (f64, f64) {
        seconds(&self.inner.times)
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

    fn __repr__(&self) -> String {
        self.lines().text("Barycenter")
    }

    /// The same as a table for notebooks.
    fn _repr_html_(&self) -> String {
        self.lines().html("Barycenter")
    }
}

impl Barycenter {
    pub(crate) fn new(inner: orthant::Barycenter, points: Py<PyArray2<f64>>) -> Self {
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

    fn of<'s, 'o>(&self, mut descent: Descent<'s, 'o>) -> Descent<'s, 'o> {
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
    fn show(&self, step: &orthant::Step<'_>, dim: usize) -> PyResult<bool> {
        let Some(each) = &self.each else { return Ok(false) };
        Python::attach(|py| {
            let points = rows(py, step.points.to_vec(), dim)?.unbind();
            let &orthant::Step { number, value, pull, moved, size, rejected, .. } = step;
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
        let Between { settings, mu, nu, options, .. } = given;
        let moves = Moves::new(settings)?;
        let dim = mu.dim();
        let flow = run(py, settings.watch()?, |shared| -> PyResult<_> {
            let (mut deaf, mut failed) = (Deaf(shared), None);
            let mut each =
                |step: &orthant::Step<'_>| stepped(&moves, shared, step, dim, &mut failed);
            let descent = moves.of(Descent::new(options)).observer(&mut deaf).each(&mut each);
            let flow = descent.flow(mu, nu);
            failed.map_or(Ok(()), Err)?;
            flow.map_err(raised)
        })??;
        Ok((flow, dim))
    })?;
    let orthant::Flow { points, divergence, first, steps, gradients, rest, times, .. } = flow;
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
    step: &orthant::Step<'_>,
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

#[pymethods]
impl Flow {
    /// The divergence at the end.
    #[getter]
    fn value(&self) -> f64 {
        self.divergence.get().inner.value
    }

    /// Why the points came to rest: `reached`, `still`, `stalled`, `step_limit`, `time_limit`, `requested` or
    /// `iteration_limit`.
    #[getter]
    fn rest(&self) -> &'static str {
        self.rest.as_str()
    }

    /// Seconds for storing features or kernels, and for all else.
    #[getter]
    fn times(&self) -> (f64, f64) {
        seconds(&self.times)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let numbers = (self.first, self.steps, self.gradients, self.rest, self.times);
        reduced(py, "Flow", &numbers, (&self.points, &self.divergence))
    }

    fn __repr__(&self) -> String {
        self.lines().text("Flow")
    }

    /// The same as a table for notebooks.
    fn _repr_html_(&self) -> String {
        self.lines().html("Flow")
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
    let epsilon = settings.epsilon(|| mean_cost(&measures))?;
    let all: Vec<&Measure<'_>> = measures.iter().collect();
    let options = settings.options(epsilon, &all, Matrix::borrowed)?;
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
        let mut each = |step: &orthant::Step<'_>| stepped(&moves, shared, step, dim, &mut failed);
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

#[pymethods]
impl FreeBarycenter {
    /// Why the points came to rest: `reached`, `still`, `stalled`, `step_limit`, `time_limit`, `requested` or
    /// `iteration_limit`.
    #[getter]
    fn rest(&self) -> &'static str {
        self.rest.as_str()
    }

    /// Seconds for storing features or kernels, and for all else.
    #[getter]
    fn times(&self) -> (f64, f64) {
        seconds(&self.times)
    }

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

    fn __repr__(&self) -> String {
        self.lines().text("FreeBarycenter")
    }

    /// The same as a table for notebooks.
    fn _repr_html_(&self) -> String {
        self.lines().html("FreeBarycenter")
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

#[pyfunction]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    given: &Object<'py>,
    epsilon: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Comparison> {
    let settings = Settings::new(epsilon.as_ref(), settings)?;
    let (given, _) = clouds(given, None)?;
    let measures = measures(&given)?;
    let epsilon = settings.epsilon(|| mean_cost(&measures))?;
    let all: Vec<&Measure<'_>> = measures.iter().collect();
    let options = settings.options(epsilon, &all, Matrix::borrowed)?;
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
        let mut each = |pair: &orthant::Pair| {
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
    pub(crate) inner: orthant::Comparison,
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

#[pymethods]
impl Comparison {
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
        let row = |m: &orthant::Merge| [m.left as f64, m.right as f64, m.height, m.size as f64];
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

    fn __repr__(&self) -> String {
        self.lines().text("Comparison")
    }

    /// The same as a table for notebooks.
    fn _repr_html_(&self) -> String {
        self.lines().html("Comparison")
    }
}

/// Two of many clouds.
#[pyclass(frozen, module = "orthant", name = "Pair")]
pub(crate) struct Compared(pub(crate) orthant::Pair);

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
        let orthant::Pair { first, second, value, method, .. } = self.0;
        format!("Pair({first}, {second}, value={value}, method='{}')", method.as_str())
    }
}

#[pyfunction]
pub(crate) fn two_sample_test<'py>(
    py: Python<'py>,
    x: Option<Object<'py>>,
    y: Option<Object<'py>>,
    epsilon: Option<Object<'py>>,
    a: Option<Object<'py>>,
    b: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<TwoSample> {
    let permutations: usize = match settings.get_item("permutations")? {
        Some(count) => extract(&count, "permutations", "a positive integer")?,
        None => 999,
    };
    between([x, y], [a, b], epsilon, settings, |given| {
        let Between { settings, mu, nu, options, .. } = given;
        let inner = run(py, settings.watch()?, |shared| {
            let mut each = |done: usize, total: usize| {
                shared.tell(|| Advance { what: "permutations", done, total, value: None })
            };
            let test = TwoSampleTest::new(options).permutations(permutations);
            test.observer(&mut each).run(mu, nu)
        })?;
        Ok(TwoSample::new(inner.map_err(raised)?))
    })
}

/// The result of a test.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct TwoSample {
    inner: orthant::TwoSample,
    null: Lazy,
}

#[pymethods]
impl TwoSample {
    /// `(1 + exceeding) / (1 + permutations)`: the probability of a divergence at least as large, if the clouds are
    /// from one distribution.
    #[getter]
    fn pvalue(&self) -> f64 {
        self.inner.p_value
    }

    /// The smallest p-value that there can be.
    #[getter]
    fn resolution(&self) -> f64 {
        self.inner.resolution
    }

    /// The divergence of the clouds.
    #[getter]
    fn statistic(&self) -> f64 {
        self.inner.statistic
    }

    /// The divergences of the permutations, in the order in which they were drawn.
    #[getter]
    fn null<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.null.get(py, || self.inner.null.clone())
    }

    /// How many permutations were done.
    #[getter]
    fn permutations(&self) -> usize {
        self.inner.permutations()
    }

    /// How many permutations have a divergence at least as large.
    #[getter]
    fn exceeding(&self) -> usize {
        self.inner.exceeding
    }

    /// How many of the divergences did not converge; the p-value is valid all the same.
    #[getter]
    fn unconverged(&self) -> usize {
        self.inner.unconverged
    }

    /// Why it ended: `converged`, `iteration_limit`, `time_limit` or `requested`.
    #[getter]
    fn stop(&self) -> &'static str {
        self.inner.stop.as_str()
    }

    /// The regularisation, in units of the cost.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.inner.epsilon
    }

    /// The method that was used: `gaussian`, `lattice`, `arccos`, `linear`, `map`, `explicit`, `dense`, `online` or
    /// `nystrom`.
    #[getter]
    fn method(&self) -> &'static str {
        self.inner.method.as_str()
    }

    /// Number of features or landmarks; of exact methods the number of columns of the kernel.
    #[getter]
    fn rank(&self) -> usize {
        self.inner.rank
    }

    /// Why this method, in words, if it was chosen automatically; otherwise `None`.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.reason.as_deref()
    }

    /// Seconds for storing features or kernels, and for all else.
    #[getter]
    fn times(&self) -> (f64, f64) {
        seconds(&self.inner.times)
    }

    /// The smallest divergence of a permutation that this part of them does not exceed.
    fn quantile(&self, part: f64) -> PyResult<f64> {
        if !(0.0..=1.0).contains(&part) || self.inner.null.is_empty() {
            let message = format!(
                "a quantile is for a part from 0 to 1 of at least one permutation, got {part}"
            );
            return Err(PyValueError::new_err(message));
        }
        Ok(self.inner.quantile(part))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "TwoSample", &self.inner, ())
    }

    fn __repr__(&self) -> String {
        self.lines().text("TwoSample")
    }

    /// The same as a table for notebooks.
    fn _repr_html_(&self) -> String {
        self.lines().html("TwoSample")
    }
}

impl TwoSample {
    pub(crate) fn new(inner: orthant::TwoSample) -> Self {
        TwoSample { inner, null: Lazy::default() }
    }

    fn lines(&self) -> Lines {
        let t = &self.inner;
        let remark = format!("{} of {} permutations", t.exceeding, t.permutations());
        Lines::new()
            .add("pvalue", short(t.p_value), format!("{remark} are at least as far apart"))
            .value("statistic", t.statistic, None)
            .value("epsilon", t.epsilon, None)
            .add("stop", t.stop.as_str(), format!("{} not converged", t.unconverged))
            .add(
                "method",
                format!("{}, rank {}", t.method.as_str(), t.rank),
                t.reason.clone().unwrap_or_default(),
            )
    }
}
