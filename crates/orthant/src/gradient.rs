//! Gradients of values and divergences, by the envelope theorem.

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::results::{DENSE_LIMIT, Solution};
use crate::term::{Scaling, TermPlan};
use crate::words::{Shape, Side, Term, clouds};

/// The derivatives of a value by all that it depends on: what is asked for is computed, in linear time.
///
/// Made by [`Plan::gradient`](crate::Plan::gradient), of [`Solution::value_kl`]; and by
/// [`Plans::gradient`](crate::Plans::gradient), of [`Divergence::value`](crate::Divergence::value). By the envelope
/// theorem potentials need no derivatives, as they are optimal: `dW = -eps sum_ij P_ij d log K_ij`, whatever moves the
/// kernel `K`, for marginals that are kept and for relaxed ones. So gradients are as good as the solve has converged:
/// ask for a tolerance of 1e-9 or less if they should have many digits.
///
/// | by | features | exact kernel | time |
/// |---|---|---|---|
/// | [`points`](Gradient::points) | `-eps sum_k w_ik d log phi_k(x_i)` | `2 sum_j P_ij (x_i - y_j)` | some iterations |
/// | [`weights`](Gradient::weights) | the potential, centred | the same | none |
/// | [`epsilon`](Gradient::epsilon) | by the same sums | `sum_ij P_ij log(P_ij / (a_i b_j))` | some iterations |
/// | [`anchors`](Gradient::anchors) | `-eps sum_i w_ik d log phi_k(x_i)`, both clouds | | some iterations, `d` times |
/// | [`features`](Gradient::features) | `-eps u (Zeta^T v)^T`, as a product | | none |
/// | [`kernel`](Gradient::kernel) | `-eps u v^T`, as a product | the same | none |
///
/// with `w_ik = u_i phi_k(x_i) (Zeta^T v)_k` (formulas are for balanced problems). The derivative by the costs is the
/// [`Plan`](crate::Plan).
///
/// **What is held fixed.** Anchors, lattices and their coordinates (the gauge) are chosen from the data once, and so are
/// factors that correct values; the gradient is that of the value with all of it left where it is. Of exact kernels
/// coordinates drop out, and for lattices the difference is below what their error bound stands for. Anchors of your
/// own are those of [`Gaussian::with_anchors`](crate::features::Gaussian::with_anchors).
///
/// **Which value.** Of balanced problems `value = value_kl - eps (H(a) + H(b))`, so only derivatives by weights and by
/// epsilon differ: [`Gradient::of_value`] changes these. Of unbalanced problems only `value_kl` is the least of
/// something, which the theorem needs. In divergences entropies cancel.
///
/// ```
/// use orthant::{Side, Measure, Options, Points, plan, plans};
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0], 2)?);
/// let nu = Measure::uniform(Points::new(vec![3.0, 1.5], 2)?);
/// let options = Options::builder(0.1).build()?;
/// // One point each: W = ||x - y||^2.
/// let plan = plan(&mu, &nu, &options)?;
/// assert_eq!(plan.gradient().points(Side::X)?, [-6.0, -1.0]);
/// // Of a divergence, whose self terms are zero here.
/// let plans = plans(&mu, &nu, &options)?;
/// assert_eq!(plans.divergence().value, 9.25);
/// assert_eq!(plans.gradient().points(Side::Y)?, [6.0, 1.0]);
/// # Ok::<(), orthant::Error>(())
/// ```
pub struct Gradient<'g> {
    problem: &'g Problem<'g>,
    terms: Vec<GradientTerm<'g>>,
    of_value: bool,
}

/// A term of the value.
struct GradientTerm<'g> {
    term: Term,
    factor: f64,
    scaling: &'g Scaling,
    solution: &'g Solution,
    /// What the two clouds send, once somebody needs it.
    messages: [OnceLock<Vec<f64>>; 2],
}

impl<'g> GradientTerm<'g> {
    fn plan(&self, problem: &'g Problem<'g>) -> TermPlan<'g> {
        problem.plan(self.term, self.scaling)
    }
}

/// Where a cloud is in a term.
struct Place<'t, 'g> {
    part: &'t GradientTerm<'g>,
    slot: usize,
    /// A cloud is there twice in the term with itself.
    factor: f64,
}

impl<'g> Gradient<'g> {
    /// Of the sum of some terms, each with a factor.
    pub(crate) fn new(
        problem: &'g Problem<'g>,
        terms: impl IntoIterator<Item = (Term, f64, &'g Scaling, &'g Solution)>,
    ) -> Self {
        let part = |(term, factor, scaling, solution)| GradientTerm {
            term,
            factor,
            scaling,
            solution,
            messages: [OnceLock::new(), OnceLock::new()],
        };
        Gradient { problem, terms: terms.into_iter().map(part).collect(), of_value: false }
    }

    /// Takes derivatives of [`Solution::value`], the paper's value, in place of those of `value_kl`. Divergences are
    /// the same in both forms. Unbalanced problems have no such derivative, which is an error.
    pub fn of_value(mut self) -> Result<Self> {
        if self.problem.is_relaxed() && !self.is_divergence() {
            return Err(Error::NoDerivative {
                by: "anything of `value`",
                reason: "with relaxed marginals that is not the least of something",
                remedy: "take that of value_kl",
            });
        }
        self.of_value = true;
        Ok(self)
    }

    fn is_divergence(&self) -> bool {
        self.terms.len() > 1
    }

    /// The terms that depend on a cloud.
    fn places(&self, cloud: Side) -> impl Iterator<Item = Place<'_, 'g>> {
        self.terms.iter().filter_map(move |part| {
            let pair = clouds(part.term);
            let times = if pair[0] == pair[1] { 2.0 } else { 1.0 };
            let slot = pair.iter().position(|c| *c == cloud)?;
            Some(Place { part, slot, factor: times * part.factor })
        })
    }

    /// What a cloud of a term sends.
    fn message<'t>(&self, part: &'t GradientTerm<'g>, slot: usize) -> Result<&'t [f64]> {
        let pair = clouds(part.term);
        let cell = &part.messages[if pair[0] == pair[1] { 0 } else { slot }];
        if cell.get().is_none() {
            let message = part.plan(self.problem).message(slot)?;
            // Somebody else may have been quicker, with the same.
            let _ = cell.set(message);
        }
        Ok(cell.get().expect("just set"))
    }

    /// The derivative by the coordinates of the points of a cloud: a row for each point, as they were given. Rows are zero at points of
    /// weight zero.
    pub fn points(&self, cloud: Side) -> Result<Vec<f64>> {
        let measure = self.problem.measures()[cloud as usize];
        let (dim, count) = (measure.dim(), measure.support().len());
        let mut sum = vec![0.0; count * dim];
        for Place { part, slot, factor } in self.places(cloud) {
            let message = self.message(part, 1 - slot)?;
            let of = part.plan(self.problem).point_gradient(slot, message)?;
            sum.iter_mut().zip(of).for_each(|(sum, g)| *sum += factor * g);
        }
        finite(&sum)?;
        Ok(with_zero_rows(self.problem, cloud, sum, dim))
    }

    /// The derivative by the weights of a cloud.
    ///
    /// Of balanced problems by the normalised weights, whose sum stays 1: the potential `alpha_i - eps log a_i`,
    /// centred so that `sum_i a_i g_i = 0`. Only differences of weights can change, so a constant would not
    /// matter; by weights of any sum, which are normalised, it is this over their sum. Points of weight zero have
    /// it too; but of the paper's `value` it is minus infinity there, and asking for it an error.
    ///
    /// Where marginals are relaxed, by the weights as given, each on its own, not centred.
    pub fn weights(&self, cloud: Side) -> Result<Vec<f64>> {
        let measure = self.problem.measures()[cloud as usize];
        let mut sum = vec![0.0; measure.weights().len()];
        for Place { part, slot, factor } in self.places(cloud) {
            let solution = part.solution;
            let potential =
                if slot == 0 { solution.potential_kl_x() } else { solution.potential_kl_y() };
            let (rho, epsilon) = (solution.rho[slot], solution.epsilon);
            let other = part.plan(self.problem).masses()[1 - slot];
            for (sum, phi) in sum.iter_mut().zip(potential) {
                // rho (1 - exp(-phi / rho)) + eps (m - p / a), where p / a = exp(-phi / rho) of the marginal p.
                let own =
                    if rho.is_finite() { -(rho + epsilon) * (-phi / rho).exp_m1() } else { phi };
                *sum += factor * (own + epsilon * (other - 1.0));
            }
        }
        if self.problem.is_relaxed() {
            if self.is_divergence() {
                let [x, y] = self.terms[0].plan(self.problem).masses();
                let more = if cloud == Side::X { x - y } else { y - x };
                let epsilon = self.terms[0].solution.epsilon;
                for sum in &mut sum {
                    *sum += epsilon * more;
                }
            }
        } else {
            if self.of_value && !self.is_divergence() {
                if measure.outside().is_some() {
                    return Err(Error::NoDerivative {
                        by: "the weights of `value`",
                        reason: "it is minus infinity where a weight is zero",
                        remedy: "take that of value_kl",
                    });
                }
                let epsilon = self.terms[0].solution.epsilon;
                sum.iter_mut().zip(measure.weights()).for_each(|(s, a)| *s += epsilon * a.ln());
            }
            let weights = measure.weights();
            let mean = measure.points().span().sum(|i| sum[i] * weights[i]);
            for s in &mut sum {
                *s -= mean;
            }
        }
        finite(&sum)?;
        Ok(sum)
    }

    /// The derivative by epsilon, all else fixed: costs, and for features of the squared Euclidean cost their anchors, with `q` or
    /// densities. Features that define a cost of their own, `-eps log phi(x).psi(y)`, depend on epsilon as
    /// [`Derivative::log_epsilon`](crate::features::Derivative::log_epsilon) says, and by default not at all.
    pub fn epsilon(&self) -> Result<f64> {
        let mut sum = 0.0;
        for part in &self.terms {
            let GradientTerm { factor, solution, .. } = part;
            let plan = part.plan(self.problem);
            let messages = [self.message(part, 0)?, self.message(part, 1)?];
            let parts = plan.by_epsilon(messages)?;
            let [x, y] = plan.masses();
            let mass = parts.mass;
            let potentials = [solution.potential_kl_x(), solution.potential_kl_y()];
            let prices = plan.prices(&parts.marginals, [&potentials[0], &potentials[1]]);
            sum +=
                factor * (x * y - mass + (prices - parts.moved) / solution.epsilon - parts.kernel);
        }
        if self.is_divergence() {
            let [x, y] = self.terms[0].plan(self.problem).masses();
            sum += 0.5 * (x - y).powi(2);
        } else if self.of_value {
            sum -= self.problem.measures().iter().map(|m| m.entropy()).sum::<f64>();
        }
        finite(&[sum])?;
        Ok(sum)
    }

    /// The derivative by the anchors of the map that serves both clouds, row by row, or by the
    /// [parameters](crate::features::Derivative::parameters) of a map of your own, through the features of both.
    ///
    /// Anchors are in the coordinates of the points, as [`Gaussian::anchors`](crate::features::Gaussian::anchors) and
    /// [`ArcCosine::anchors`](crate::features::ArcCosine::anchors) give them; those that were drawn in a gauge are in
    /// its coordinates, in the user's units. Anchors of the paper come with the factor of their `q`, those around
    /// midpoints keep their densities.
    pub fn anchors(&self) -> Result<Vec<f64>> {
        if !self.problem.has_one_map() {
            return Err(Error::NoDerivative {
                by: "the anchors",
                reason: "each cloud has a map of its own",
                remedy: "take those by the parameters of either map",
            });
        }
        let mut sum = self.parameters(Side::X)?;
        sum.iter_mut().zip(self.parameters(Side::Y)?).for_each(|(s, y)| *s += y);
        finite(&sum)?;
        Ok(sum)
    }

    /// The derivative by the parameters of the map of one cloud, through the features of that cloud.
    pub fn parameters(&self, cloud: Side) -> Result<Vec<f64>> {
        let mut sum: Vec<f64> = Vec::new();
        for Place { part, slot, factor } in self.places(cloud) {
            let message = self.message(part, 1 - slot)?;
            let of = part.plan(self.problem).parameter_gradient(slot, message)?;
            sum.resize(of.len(), 0.0);
            sum.iter_mut().zip(of).for_each(|(s, g)| *s += factor * g);
        }
        finite(&sum)?;
        Ok(sum)
    }

    /// The derivative by the matrix of features of a cloud: `-eps u (Zeta^T v)^T` for the first, and one such product more for
    /// divergences, never stored. Of explicit features, and of those of any map; in a gauge those of its coordinates.
    pub fn features(&self, cloud: Side) -> Result<LowRank> {
        let rank = self.rank()?;
        let mut products = Vec::new();
        for Place { part, slot, factor } in self.places(cloud) {
            let message = self.message(part, 1 - slot)?;
            let logs = part.scaling.plan_logs(slot);
            products.push(Outer {
                scale: -factor * part.solution.epsilon,
                left: with_no_mass(self.problem, cloud, logs),
                right: message[..rank].to_vec(),
            });
        }
        Ok(LowRank { products, limit: self.limit() })
    }

    /// The derivative by the logarithms of the features of a cloud, point by point, all `n r` of them: `-eps w_ik`. What networks that
    /// make logarithms of features want. Refused above [`DENSE_LIMIT`] or the
    /// [`max_memory`](crate::options::OptionsBuilder::max_memory) of the options.
    pub fn log_features(&self, cloud: Side) -> Result<Vec<f64>> {
        let rank = self.rank()?;
        let count = self.problem.measures()[cloud as usize].support().len();
        check_bytes(count, rank, self.limit())?;
        let mut sum = vec![0.0; count * rank];
        for Place { part, slot, factor } in self.places(cloud) {
            let message = self.message(part, 1 - slot)?;
            let scale = -factor * part.solution.epsilon;
            part.plan(self.problem).add_feature_masses(slot, message, scale, &mut sum)?;
        }
        finite(&sum)?;
        Ok(with_zero_rows(self.problem, cloud, sum, rank))
    }

    /// The derivative by the kernel matrix of two clouds: `-eps u v^T`, never stored.
    pub fn kernel(&self) -> Result<LowRank> {
        let [part] = &self.terms[..] else {
            return Err(Error::NoDerivative {
                by: "the kernel",
                reason: "a divergence has three",
                remedy: "take those of its terms",
            });
        };
        let Solution { potential_x, potential_y, epsilon, .. } = part.solution;
        let logs = |cloud: Side, potential: &[f64]| -> Vec<f64> {
            let weights = self.problem.measures()[cloud as usize].weights();
            let log = |(p, a): (&f64, &f64)| if *a > 0.0 { p / epsilon } else { f64::NEG_INFINITY };
            potential.iter().zip(weights).map(log).collect()
        };
        let (left, right) = (logs(Side::X, potential_x), logs(Side::Y, potential_y));
        let products = vec![Outer { scale: -epsilon, left, right }];
        Ok(LowRank { products, limit: self.limit() })
    }

    /// Number of features.
    fn rank(&self) -> Result<usize> {
        self.terms[0].plan(self.problem).feature_rank()
    }

    fn limit(&self) -> u64 {
        self.problem.max_memory().unwrap_or(DENSE_LIMIT)
    }
}

impl std::fmt::Debug for Gradient<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let terms: Vec<Term> = self.terms.iter().map(|part| part.term).collect();
        f.debug_struct("Gradient").field("terms", &terms).finish_non_exhaustive()
    }
}

/// A matrix that is a sum of one or two outer products, never stored: the derivative by a matrix of features or by a
/// kernel.
///
/// ```
/// use orthant::{Side, Measure, Options, Points, Solver, features::FeatureMatrix};
/// let xi = FeatureMatrix::new(vec![1.0, 2.0, 3.0, 1.0], 2, 2)?;
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0], 1)?);
/// let options = Options::builder(1.0).build()?;
/// let plan = Solver::new(&options).features(xi.clone(), xi).plan(&mu, &mu)?;
/// let gradient = plan.gradient().features(Side::X)?;
/// // All features twice as large make the value smaller by eps log 2, and do not change the plan.
/// let along: f64 = gradient.to_dense()?.iter().zip([1.0, 2.0, 3.0, 1.0]).map(|(g, x)| g * x).sum();
/// assert!((along + 1.0).abs() < 1e-12);
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LowRank {
    products: Vec<Outer>,
    limit: u64,
}

/// `scale exp(left_i + right_k)`.
#[derive(Debug, Clone)]
struct Outer {
    scale: f64,
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Outer {
    fn entry(&self, i: usize, k: usize) -> f64 {
        self.scale * (self.left[i] + self.right[k]).exp()
    }
}

/// `sum_k exp(logs_k) x_k` as a logarithm of a scale and a factor.
fn scaled_dot(logs: &[f64], x: &[f64]) -> (f64, f64) {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return (0.0, 0.0);
    }
    (top, logs.iter().zip(x).map(|(l, x)| (l - top).exp() * x).sum())
}

impl LowRank {
    /// Rows by columns.
    pub fn shape(&self) -> Shape {
        let first = &self.products[0];
        Shape { rows: first.left.len(), columns: first.right.len() }
    }

    /// One entry; row and column are counted from 0.
    pub fn entry(&self, row: usize, column: usize) -> Result<f64> {
        let Shape { rows, columns } = self.shape();
        for (what, index, len) in [("row", row, rows), ("column", column, columns)] {
            if index >= len {
                return Err(Error::Index { what, index, len });
            }
        }
        let entry = self.products.iter().map(|p| p.entry(row, column)).sum();
        finite(&[entry])?;
        Ok(entry)
    }

    /// Its product with a vector that has a number for each column.
    pub fn times(&self, x: &[f64]) -> Result<Vec<f64>> {
        self.product(x, |p| (&p.left, &p.right), self.shape().columns)
    }

    /// The product of its transpose with a vector that has a number for each row.
    pub fn transposed_times(&self, x: &[f64]) -> Result<Vec<f64>> {
        self.product(x, |p| (&p.right, &p.left), self.shape().rows)
    }

    fn product(
        &self,
        x: &[f64],
        sides: impl Fn(&Outer) -> (&[f64], &[f64]),
        len: usize,
    ) -> Result<Vec<f64>> {
        if x.len() != len {
            return Err(Error::Shape {
                what: "the vector",
                expected: Shape { rows: len, columns: 1 },
                got: Shape { rows: x.len(), columns: 1 },
            });
        }
        let mut out: Vec<f64> = Vec::new();
        for product in &self.products {
            let (left, right) = sides(product);
            let (top, factor) = scaled_dot(right, x);
            out.resize(left.len(), 0.0);
            for (o, l) in out.iter_mut().zip(left) {
                *o += product.scale * factor * (l + top).exp();
            }
        }
        finite(&out)?;
        Ok(out)
    }

    /// All entries, row-major. Refused above [`DENSE_LIMIT`] or the
    /// [`max_memory`](crate::options::OptionsBuilder::max_memory) of the options.
    pub fn to_dense(&self) -> Result<Vec<f64>> {
        let Shape { rows, columns } = self.shape();
        check_bytes(rows, columns, self.limit)?;
        let entry = |i, k| self.products.iter().map(|p| p.entry(i, k)).sum();
        let out: Vec<f64> =
            (0..rows).flat_map(|i| (0..columns).map(move |k| entry(i, k))).collect();
        finite(&out)?;
        Ok(out)
    }
}

fn check_bytes(rows: usize, columns: usize, limit: u64) -> Result<()> {
    let (bytes, limit) = (8.0 * rows as f64 * columns as f64, limit as f64);
    if bytes <= limit {
        return Ok(());
    }
    let remedy = "ask for its products or single entries, or raise max_memory";
    Err(Error::Memory { what: "the gradient", bytes, limit, remedy })
}

/// Numbers beyond the range of double precision are no result.
fn finite(values: &[f64]) -> Result<()> {
    if values.iter().all(|v| v.is_finite()) {
        Ok(())
    } else {
        Err(Error::Overflow { what: "a gradient" })
    }
}

/// Rows on the support of a cloud, and rows of zeros at its points of weight zero.
fn with_zero_rows(problem: &Problem<'_>, cloud: Side, rows: Vec<f64>, width: usize) -> Vec<f64> {
    let measure = problem.measures()[cloud as usize];
    let Some(kept) = measure.indices(true) else { return rows };
    let mut all = vec![0.0; measure.weights().len() * width];
    for (&i, row) in kept.iter().zip(rows.chunks_exact(width)) {
        all[i * width..(i + 1) * width].copy_from_slice(row);
    }
    all
}

/// Logarithms on the support of a cloud, and of nothing at its points of weight zero.
fn with_no_mass(problem: &Problem<'_>, cloud: Side, logs: Vec<f64>) -> Vec<f64> {
    let measure = problem.measures()[cloud as usize];
    let outside = measure.indices(false).map_or(0, <[usize]>::len);
    measure.scatter(logs, &vec![f64::NEG_INFINITY; outside])
}
