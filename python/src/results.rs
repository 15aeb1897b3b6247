//! What solves return, frozen.

use numpy::PyArray1;
use orthant::{Interval as Range, Solution as Solved, results::Times};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyIterator, PyTuple};

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
    /// Lower end.
    #[getter]
    fn low(&self) -> f64 {
        self.0.low
    }

    /// Upper end.
    #[getter]
    fn high(&self) -> f64 {
        self.0.high
    }

    /// Distance of the ends.
    #[getter]
    fn width(&self) -> f64 {
        self.0.width()
    }

    /// How it is known: `exact` (the kernel is exact, and only the iterations count), `bound` (a proven bound), or
    /// `sampled` (samples of the plan, with three standard errors).
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
        lines(Lines::new(), &self.inner)
    }
}

/// What a solution says, after some lines.
pub(crate) fn lines(lines: Lines, s: &Solved) -> Lines {
    let balanced = s.rho.iter().all(|rho| rho.is_infinite());
    let lines = lines.value("value", s.value, s.interval);
    let mut lines = lines.value("value_kl", s.value_kl, s.interval_kl);
    if let Some(cost) = s.transport_cost {
        lines = lines.value("transport_cost", cost, None);
    }
    if let Some(concentration) = s.plan_concentration {
        lines = lines.value("plan_concentration", concentration, None);
    }
    if !balanced {
        lines = lines.value("mass", s.mass, None);
    }
    used(ending(lines.value("epsilon", s.epsilon, None), s, s.iterations), s)
}

#[pymethods]
impl Solution {
    /// `<P, C> + eps sum P log P`, the paper's regularised value, as its dual value.
    #[getter]
    fn value(&self) -> f64 {
        self.inner.value
    }

    /// `value + eps (H(a) + H(b))`: the value with the entropy relative to the product of the weights, as in OTT and
    /// POT, and twice that of `GeomLoss`.
    #[getter]
    fn value_kl(&self) -> f64 {
        self.inner.value_kl
    }

    /// `<P, C>`; `None` where features define the cost and all pairs would be too many.
    #[getter]
    fn transport_cost(&self) -> Option<f64> {
        self.inner.transport_cost
    }

    /// `KL(P | a b^T) / log min(n, m)`: how far the plan is from that of independent points, which has 0, and how near to
    /// a permutation, which has 1. `None` where the transport cost is not known, or a cloud has a single point.
    #[getter]
    fn plan_concentration(&self) -> Option<f64> {
        self.inner.plan_concentration
    }

    /// Where the `value` of the exact kernel is, if that is known; `None` for unbalanced problems.
    #[getter]
    fn interval(&self) -> Option<Interval> {
        interval(self.inner.interval)
    }

    /// Where the `value_kl` of the exact kernel is, if that is known, balanced or not.
    #[getter]
    fn interval_kl(&self) -> Option<Interval> {
        interval(self.inner.interval_kl)
    }

    /// The best estimate of the `value` of the exact kernel from samples of the plan; `None` if there are none.
    #[getter]
    fn corrected(&self) -> Option<f64> {
        self.inner.corrected
    }

    /// The best estimate of the `value_kl` of the exact kernel from samples of the plan; `None` if there are none.
    #[getter]
    fn corrected_kl(&self) -> Option<f64> {
        self.inner.corrected_kl
    }

    /// What `method="sampled"` took and found: `size` (points of each cloud in a sample), `samples`, `rows`, `upper_size`
    /// (points of each cloud in the samples of the upper end), and `estimate` with `stderr`, the best estimate of `value`
    /// and its standard error, which is no bound; otherwise `None`.
    #[getter]
    fn sampling<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(sampling) = self.inner.sampling else { return Ok(None) };
        let out = PyDict::new(py);
        out.set_item("size", sampling.size)?;
        out.set_item("samples", sampling.samples)?;
        out.set_item("rows", sampling.rows)?;
        out.set_item("upper_size", sampling.upper_size)?;
        out.set_item("estimate", sampling.estimate.value)?;
        out.set_item("stderr", sampling.estimate.stderr)?;
        Ok(Some(out))
    }

    /// How far the `value` is from that of the exact kernel at most, for lattices; otherwise `None`.
    #[getter]
    fn bound(&self) -> Option<f64> {
        self.inner.bound
    }

    /// The sum of the plan: 1, unless a marginal is relaxed.
    #[getter]
    fn mass(&self) -> f64 {
        self.inner.mass
    }

    /// The regularisation, in units of the cost.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.inner.epsilon
    }

    /// The prices of changing the two marginals; infinite where a marginal is kept.
    #[getter]
    fn rho(&self) -> (f64, f64) {
        self.inner.rho.into()
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

    /// How many iterations were done.
    #[getter]
    fn iterations(&self) -> usize {
        self.inner.iterations
    }

    /// L1 distances of the marginals of the plan from what they should be.
    #[getter]
    fn marginal_errors(&self) -> (f64, f64) {
        (self.inner.marginal_error_x, self.inner.marginal_error_y)
    }

    /// L1 distances of the marginals of the plan from the weights: of a relaxed marginal a result, and no error.
    #[getter]
    fn marginal_gaps(&self) -> (f64, f64) {
        (self.inner.marginal_gap_x, self.inner.marginal_gap_y)
    }

    /// The method that was used: `gaussian`, `lattice`, `arccos`, `linear`, `map`, `explicit`, `dense`, `online`,
    /// `nystrom` or `sampled`.
    #[getter]
    fn method(&self) -> &'static str {
        self.inner.method.as_str()
    }

    /// Where the anchors of Gaussian features were: `paper`, `sobol`, `iid`, `orthogonal`, `adaptive` or `lattice`; of other
    /// kernels `None`.
    #[getter]
    fn anchors(&self) -> Option<&'static str> {
        self.inner.anchors.map(orthant::options::Anchors::as_str)
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

    /// How many epsilons were gone through: larger ones lead to a small one.
    #[getter]
    fn stages(&self) -> usize {
        self.inner.stages
    }

    /// Iterations of the exact kernel that followed those of features, or `None`.
    #[getter]
    fn polished(&self) -> Option<usize> {
        self.inner.polished
    }

    /// How often features or kernels were stored.
    #[getter]
    fn builds(&self) -> usize {
        self.inner.builds
    }

    /// Seconds for storing features or kernels, and for all else.
    #[getter]
    fn times(&self) -> (f64, f64) {
        seconds(&self.inner.times)
    }

    /// `eps log u`, a number for every point of x.
    #[getter]
    fn potential_x<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.potentials[0].get(py, || self.inner.potential_x.clone())
    }

    /// `eps log v`, a number for every point of y.
    #[getter]
    fn potential_y<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.potentials[1].get(py, || self.inner.potential_y.clone())
    }

    /// `potential_x` and `potential_y`: `P = exp((potential_x + potential_y - C) / eps)`.
    #[getter]
    fn potentials<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        Ok((self.potential_x(py)?, self.potential_y(py)?))
    }

    /// The potentials less `eps log a` and `eps log b`: functions of position.
    #[getter]
    fn potentials_kl<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        Ok((
            self.potentials[2].get(py, || self.inner.potential_kl_x())?,
            self.potentials[3].get(py, || self.inner.potential_kl_y())?,
        ))
    }

    /// Whether `value_kl` is known to be within this part of itself of that of the exact kernel.
    fn keeps(&self, accuracy: f64) -> bool {
        self.inner.meets_accuracy(accuracy)
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

    /// The same as a table for notebooks.
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
    /// `W(x, y) - (W(x, x) + W(y, y)) / 2`: zero if the clouds are equal.
    #[getter]
    fn value(&self) -> f64 {
        self.inner.value
    }

    /// Where the divergence of the exact kernel is, if that is known.
    #[getter]
    fn interval(&self) -> Option<Interval> {
        interval(self.inner.interval())
    }

    /// The best estimate of the divergence of the exact kernel from samples of the plans; `None` if there are none.
    #[getter]
    fn corrected(&self) -> Option<f64> {
        self.inner.corrected()
    }

    /// How far the divergence is from that of the exact kernel at most, for lattices; otherwise `None`.
    #[getter]
    fn bound(&self) -> Option<f64> {
        self.inner.bound()
    }

    /// Which kernels the terms have: the `exact` one, one `shared` approximation, or one `per_term`.
    #[getter]
    fn kernels(&self) -> &'static str {
        self.inner.kernels.as_str()
    }

    /// Whether all three terms converged.
    #[getter]
    fn converged(&self) -> bool {
        self.inner.converged()
    }

    /// How many iterations the three terms did together.
    #[getter]
    fn iterations(&self) -> usize {
        self.inner.terms().iter().map(|t| t.iterations).sum()
    }

    /// The regularisation, in units of the cost.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.inner.cross.epsilon
    }

    /// The method of the cross term.
    #[getter]
    fn method(&self) -> &'static str {
        self.inner.cross.method.as_str()
    }

    /// Number of features of the cross term; of exact methods the number of columns of the kernel.
    #[getter]
    fn rank(&self) -> usize {
        self.inner.cross.rank
    }

    /// Where the anchors of Gaussian features of the cross term were: `paper`, `sobol`, `iid`, `orthogonal`, `adaptive` or
    /// `lattice`; of other kernels `None`.
    #[getter]
    fn anchors(&self) -> Option<&'static str> {
        self.inner.cross.anchors.map(orthant::options::Anchors::as_str)
    }

    /// Why this method, in words, if it was chosen automatically; otherwise `None`.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.cross.reason.as_deref()
    }

    /// Whether the divergence is known to be within this part of itself (or of a hundredth of the `value_kl` of its cross
    /// term, if that is more) of that of the exact kernel.
    fn keeps(&self, accuracy: f64) -> bool {
        self.inner.meets_accuracy(accuracy)
    }

    /// The solution of `W(x, y)`.
    #[getter]
    fn cross(&self, py: Python<'_>) -> PyResult<Py<Solution>> {
        self.term(py, 0)
    }

    /// The solution of `W(x, x)`.
    #[getter]
    fn self_x(&self, py: Python<'_>) -> PyResult<Py<Solution>> {
        self.term(py, 1)
    }

    /// The solution of `W(y, y)`.
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

    /// The same as a table for notebooks.
    fn _repr_html_(&self) -> String {
        self.lines().html("Divergence")
    }
}
