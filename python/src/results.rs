//! What solves return, frozen.

use numpy::PyArray1;
use orthant::{Interval as Range, Solution as Solved, Times};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyIterator, PyTuple};

use crate::arrays::{array, frozen};
use crate::pickle::{Reduced, reduced};

/// A vector that is made once, when somebody asks for it.
pub(crate) struct Lazy(PyOnceLock<Py<PyArray1<f64>>>);

impl Default for Lazy {
    fn default() -> Self {
        Lazy(PyOnceLock::new())
    }
}

impl Lazy {
    pub(crate) fn get<'py>(
        &self,
        py: Python<'py>,
        values: impl FnOnce() -> Vec<f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let made = self
            .0
            .get_or_try_init(py, || -> PyResult<_> { Ok(frozen(array(py, values()))?.unbind()) })?;
        Ok(made.bind(py).clone())
    }
}

/// Where a value is.
#[pyclass(frozen, eq, module = "orthant")]
#[derive(Clone, PartialEq)]
pub(crate) struct Interval(pub(crate) Range);

#[pymethods]
impl Interval {
    #[getter]
    fn low(&self) -> f64 {
        self.0.low
    }

    #[getter]
    fn high(&self) -> f64 {
        self.0.high
    }

    #[getter]
    fn width(&self) -> f64 {
        self.0.width()
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.as_str()
    }

    fn __contains__(&self, value: f64) -> bool {
        self.0.contains(value)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, [self.0.low, self.0.high])?.try_iter()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "Interval", &self.0, ())
    }

    fn __repr__(&self) -> String {
        let Range { low, high, kind, .. } = self.0;
        format!("Interval({low}, {high}, kind='{}')", kind.as_str())
    }
}

pub(crate) fn interval(range: Option<Range>) -> Option<Interval> {
    range.map(Interval)
}

/// Seconds for features and for iterations.
pub(crate) fn seconds(times: &Times) -> (f64, f64) {
    (times.features.as_secs_f64(), times.solve.as_secs_f64())
}

/// The lines of a result: what, how much, and a remark.
pub(crate) struct Lines(Vec<[String; 3]>);

impl Lines {
    pub(crate) fn new() -> Self {
        Lines(Vec::new())
    }

    pub(crate) fn add(
        mut self,
        what: &str,
        value: impl std::fmt::Display,
        remark: impl Into<String>,
    ) -> Self {
        self.0.push([what.to_owned(), value.to_string(), remark.into()]);
        self
    }

    pub(crate) fn value(self, what: &str, value: f64, range: Option<Range>) -> Self {
        let remark = range.map_or_else(String::new, |r| {
            format!("in [{}, {}], {}", short(r.low), short(r.high), r.kind.as_str())
        });
        self.add(what, short(value), remark)
    }

    /// `Name(a=1 (remark), b=2)`, over several lines.
    pub(crate) fn text(&self, name: &str) -> String {
        let width = |k: usize| self.0.iter().map(|l| l[k].chars().count()).max().unwrap_or(0);
        let (first, second) = (width(0), width(1));
        let lines = self.0.iter().map(|[what, value, remark]| {
            format!("  {what:<first$}  {value:<second$}  {remark}").trim_end().to_owned()
        });
        std::iter::once(name.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn html(&self, name: &str) -> String {
        let rows = self.0.iter().map(|line| {
            let [what, value, remark] = line.each_ref().map(|cell| escaped(cell));
            format!("<tr><th style=\"text-align:left\">{what}</th><td>{value}</td><td>{remark}</td></tr>")
        });
        let rows: String = rows.collect();
        format!("<table><caption><b>{}</b></caption>{rows}</table>", escaped(name))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Seven digits, as the command prints.
pub(crate) fn short(x: f64) -> String {
    if x != 0.0 && x.is_finite() && !(1e-4..1e7).contains(&x.abs()) {
        return format!("{x:.6e}");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 11")]
    let decimals =
        if x == 0.0 { 1 } else { (6.0 - x.abs().log10().floor()).clamp(0.0, 11.0) as usize };
    let text = format!("{x:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// How a solve ended, in a line.
fn ending(lines: Lines, s: &Solved, iterations: usize) -> Lines {
    let yes = if s.converged() { "yes" } else { s.stop.as_str() };
    let errors = format!(
        "{iterations} iterations, marginal errors {:.1e} and {:.1e}",
        s.marginal_error_x, s.marginal_error_y
    );
    lines.add("converged", yes, errors)
}

fn used(lines: Lines, s: &Solved) -> Lines {
    let (method, rank) = (s.method.as_str(), s.rank);
    lines.add("method", format!("{method}, rank {rank}"), s.reason.clone().unwrap_or_default())
}

/// Regularised optimal transport between two clouds.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct Solution {
    pub(crate) inner: Solved,
    potentials: [Lazy; 4],
}

impl Solution {
    pub(crate) fn new(inner: Solved) -> Self {
        Solution { inner, potentials: Default::default() }
    }

    fn lines(&self) -> Lines {
        let s = &self.inner;
        let balanced = s.rho.iter().all(|rho| rho.is_infinite());
        let mut lines = Lines::new().value("value", s.value, s.interval).value(
            "value_kl",
            s.value_kl,
            s.interval_kl,
        );
        if let Some(cost) = s.transport_cost {
            lines = lines.value("transport_cost", cost, None);
        }
        if !balanced {
            lines = lines.value("mass", s.mass, None);
        }
        let lines = ending(lines.value("epsilon", s.epsilon, None), s, s.iterations);
        used(lines, s)
    }
}

#[pymethods]
impl Solution {
    #[getter]
    fn value(&self) -> f64 {
        self.inner.value
    }

    #[getter]
    fn value_kl(&self) -> f64 {
        self.inner.value_kl
    }

    #[getter]
    fn transport_cost(&self) -> Option<f64> {
        self.inner.transport_cost
    }

    #[getter]
    fn interval(&self) -> Option<Interval> {
        interval(self.inner.interval)
    }

    #[getter]
    fn interval_kl(&self) -> Option<Interval> {
        interval(self.inner.interval_kl)
    }

    #[getter]
    fn corrected(&self) -> Option<f64> {
        self.inner.corrected
    }

    #[getter]
    fn corrected_kl(&self) -> Option<f64> {
        self.inner.corrected_kl
    }

    #[getter]
    fn bound(&self) -> Option<f64> {
        self.inner.bound
    }

    #[getter]
    fn mass(&self) -> f64 {
        self.inner.mass
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.inner.epsilon
    }

    #[getter]
    fn rho(&self) -> (f64, f64) {
        self.inner.rho.into()
    }

    #[getter]
    fn converged(&self) -> bool {
        self.inner.converged()
    }

    #[getter]
    fn stop(&self) -> &'static str {
        self.inner.stop.as_str()
    }

    #[getter]
    fn iterations(&self) -> usize {
        self.inner.iterations
    }

    #[getter]
    fn marginal_errors(&self) -> (f64, f64) {
        (self.inner.marginal_error_x, self.inner.marginal_error_y)
    }

    #[getter]
    fn marginal_gaps(&self) -> (f64, f64) {
        (self.inner.marginal_gap_x, self.inner.marginal_gap_y)
    }

    #[getter]
    fn method(&self) -> &'static str {
        self.inner.method.as_str()
    }

    #[getter]
    fn rank(&self) -> usize {
        self.inner.rank
    }

    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.reason.as_deref()
    }

    #[getter]
    fn stages(&self) -> usize {
        self.inner.stages
    }

    #[getter]
    fn polished(&self) -> Option<usize> {
        self.inner.polished
    }

    #[getter]
    fn builds(&self) -> usize {
        self.inner.builds
    }

    #[getter]
    fn times(&self) -> (f64, f64) {
        seconds(&self.inner.times)
    }

    #[getter]
    fn potential_x<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.potentials[0].get(py, || self.inner.potential_x.clone())
    }

    #[getter]
    fn potential_y<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.potentials[1].get(py, || self.inner.potential_y.clone())
    }

    #[getter]
    fn potentials<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        Ok((self.potential_x(py)?, self.potential_y(py)?))
    }

    #[getter]
    fn potentials_kl<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        Ok((
            self.potentials[2].get(py, || self.inner.potential_kl_x())?,
            self.potentials[3].get(py, || self.inner.potential_kl_y())?,
        ))
    }

    fn keeps(&self, accuracy: f64) -> bool {
        self.inner.keeps(accuracy)
    }

    fn __float__(&self) -> f64 {
        self.inner.value
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "Solution", &self.inner, ())
    }

    fn __repr__(&self) -> String {
        self.lines().text("Solution")
    }

    fn _repr_html_(&self) -> String {
        self.lines().html("Solution")
    }
}

pub(crate) type Pair<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A Sinkhorn divergence and its three terms.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct Divergence {
    pub(crate) inner: orthant::Divergence,
    terms: [PyOnceLock<Py<Solution>>; 3],
}

impl Divergence {
    pub(crate) fn new(inner: orthant::Divergence) -> Self {
        Divergence { inner, terms: [const { PyOnceLock::new() }; 3] }
    }

    fn term(&self, py: Python<'_>, k: usize) -> PyResult<Py<Solution>> {
        let made = self.terms[k]
            .get_or_try_init(py, || Py::new(py, Solution::new(self.inner.terms()[k].clone())))?;
        Ok(made.clone_ref(py))
    }

    fn lines(&self) -> Lines {
        let d = &self.inner;
        let mut lines = Lines::new().value("divergence", d.value, d.interval());
        for (name, term) in ["W(x,y)", "W(x,x)", "W(y,y)"].into_iter().zip(d.terms()) {
            let remark =
                format!("value_kl {}, {} iterations", short(term.value_kl), term.iterations);
            lines = lines.add(name, short(term.value), remark);
        }
        lines = lines.value("epsilon", d.cross.epsilon, None);
        let slowest = d.terms().into_iter().find(|t| !t.converged()).unwrap_or(&d.cross);
        used(ending(lines, slowest, self.iterations()), &d.cross)
    }
}

#[pymethods]
impl Divergence {
    #[getter]
    fn value(&self) -> f64 {
        self.inner.value
    }

    #[getter]
    fn interval(&self) -> Option<Interval> {
        interval(self.inner.interval())
    }

    #[getter]
    fn corrected(&self) -> Option<f64> {
        self.inner.corrected()
    }

    #[getter]
    fn bound(&self) -> Option<f64> {
        self.inner.bound()
    }

    #[getter]
    fn kernels(&self) -> &'static str {
        self.inner.kernels.as_str()
    }

    #[getter]
    fn converged(&self) -> bool {
        self.inner.converged()
    }

    #[getter]
    fn iterations(&self) -> usize {
        self.inner.terms().iter().map(|t| t.iterations).sum()
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.inner.cross.epsilon
    }

    #[getter]
    fn method(&self) -> &'static str {
        self.inner.cross.method.as_str()
    }

    #[getter]
    fn rank(&self) -> usize {
        self.inner.cross.rank
    }

    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.cross.reason.as_deref()
    }

    #[getter]
    fn cross(&self, py: Python<'_>) -> PyResult<Py<Solution>> {
        self.term(py, 0)
    }

    #[getter]
    fn self_x(&self, py: Python<'_>) -> PyResult<Py<Solution>> {
        self.term(py, 1)
    }

    #[getter]
    fn self_y(&self, py: Python<'_>) -> PyResult<Py<Solution>> {
        self.term(py, 2)
    }

    /// Those of the divergence itself: centred they are its derivatives by the weights.
    #[getter]
    fn potentials<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let d = &self.inner;
        let difference = |cross: Vec<f64>, own: Vec<f64>| {
            frozen(array(py, cross.into_iter().zip(own).map(|(c, o)| c - o).collect()))
        };
        Ok((
            difference(d.cross.potential_kl_x(), d.self_x.potential_kl_x())?,
            difference(d.cross.potential_kl_y(), d.self_y.potential_kl_x())?,
        ))
    }

    fn __float__(&self) -> f64 {
        self.inner.value
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "Divergence", &self.inner, ())
    }

    fn __repr__(&self) -> String {
        self.lines().text("Divergence")
    }

    fn _repr_html_(&self) -> String {
        self.lines().html("Divergence")
    }
}
