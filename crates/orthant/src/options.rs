//! What to compute and how: checked once, then immutable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::anchors::Draw;
use crate::control::{Cancel, Clock};
use crate::error::{Error, Result};
use crate::features::FeatureMap;
use crate::ground::GroundCost;

pub use crate::features::Landmarks;

/// How the kernel is applied.
///
/// A call may give the kernel as data: matrices of costs or of positive features, see
/// [`Solver::costs`](crate::Solver::costs) and [`Solver::features`](crate::Solver::features). They take the place of the
/// cost or of the features that the method names.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Method {
    /// What is quickest for the accuracy asked for, of the squared Euclidean cost: a lattice, Sobol or
    /// adaptive anchors, or the exact kernel. [`Solution::reason`](crate::Solution::reason) says why.
    #[default]
    Auto,
    /// Positive features: linear time.
    Factored(Features),
    /// The whole kernel matrix, stored: exact, quadratic time and memory.
    Dense(Cost),
    /// The whole kernel, evaluated on the way: exact, quadratic time, linear memory.
    Online(Cost),
    /// The Nystrom approximation of the kernel of the squared Euclidean cost, from its columns at
    /// landmarks: linear time, and excellent for large epsilon. It need not be positive, and where a
    /// product with it is not, the solve ends with [`Error::NotPositive`]: at small epsilon, as the
    /// paper reports. Double precision only.
    Nystrom(Landmarks),
    /// The exact kernel of any cost, between samples of the clouds: linear time in any number of axes, with an interval.
    /// Samples grow until the interval is as narrow as the accuracy asks for; where they would come near the clouds
    /// themselves, the exact kernel takes over.
    Sampled(SampleSizes),
}

/// How much of the clouds [`Method::Sampled`] takes; what is not said is found from the accuracy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SampleSizes {
    /// Points of each cloud in a sample.
    pub size: Option<usize>,
    /// Independent samples; 8 where nobody says how many.
    pub samples: Option<usize>,
}

impl Method {
    /// Features of the Gaussian kernel with Sobol anchors: any number of axes.
    pub fn gaussian() -> Self {
        Method::Factored(Features::Gaussian(Anchors::Random(Draw::Sobol)))
    }

    /// Features of the Gaussian kernel with anchors around the pairs that the plan couples.
    pub fn adaptive() -> Self {
        Method::Factored(Features::Gaussian(Anchors::Adaptive))
    }

    /// Features of the Gaussian kernel on a lattice: up to four axes, with an error bound.
    pub fn lattice() -> Self {
        Method::Factored(Features::Gaussian(Anchors::Lattice { stored: false }))
    }

    /// The paper's features of the Gaussian kernel.
    pub fn paper() -> Self {
        Method::Factored(Features::Gaussian(Anchors::Paper { centred: true }))
    }

    /// The stored kernel of the squared Euclidean cost.
    pub fn dense() -> Self {
        Method::Dense(Cost::SquaredEuclidean)
    }

    /// The kernel of the squared Euclidean cost, evaluated on the way.
    pub fn online() -> Self {
        Method::Online(Cost::SquaredEuclidean)
    }

    /// The exact kernel between samples of the clouds, of sizes that the accuracy asks for.
    pub fn sampled() -> Self {
        Method::Sampled(SampleSizes::default())
    }

    /// The Nystrom approximation with landmarks by ridge leverage scores.
    pub fn nystrom() -> Self {
        Method::Nystrom(Landmarks::Leverage)
    }
}

/// Which features.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Features {
    /// Of the Gaussian kernel, so of the squared Euclidean cost.
    Gaussian(Anchors),
    /// Of the arc-cosine kernel of order 0, 1 or 2 plus `kappa`, with anchors of deviation `sigma`.
    ArcCosine {
        /// 0, 1 or 2.
        order: u8,
        /// Positive.
        kappa: f64,
        /// At least 1.
        sigma: f64,
    },
    /// The coordinates themselves, all positive: cost `-eps log x.y`.
    Linear,
    /// One map for both clouds.
    Map(Arc<dyn FeatureMap>),
    /// Two maps into the same orthant, one for each cloud.
    Pair(Arc<dyn FeatureMap>, Arc<dyn FeatureMap>),
}

impl Features {
    /// Number of features for points of `dim` coordinates, where random ones have `rank`.
    pub(crate) fn rank(&self, dim: usize, rank: usize) -> usize {
        match self {
            Features::Gaussian(_) | Features::ArcCosine { .. } => rank,
            Features::Linear => dim,
            Features::Map(map) | Features::Pair(map, _) => map.rank(),
        }
    }
}

/// Where the anchors of Gaussian features sit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Anchors {
    /// Independent draws with one variance for all axes, from the largest norm of a point.
    Paper {
        /// Around the common centre of the clouds (the paper has them around the origin).
        centred: bool,
    },
    /// Random, with the best variance for each principal axis of the clouds.
    Random(Draw),
    /// Around the midpoints of the pairs that the plan couples, where features have their effect: Sobol points in
    /// clusters of these. The plan is guessed at first, and the problem solved again with anchors that know it; of the
    /// two solutions the one with the narrower certificate is returned. Far better than [`Anchors::Random`] for
    /// clouds that are not of one normal piece, and for small epsilon.
    Adaptive,
    /// The nodes of a lattice, up to four axes. Spaced for the accuracy asked for or, if a rank is
    /// given, as well as that many nodes allow.
    Lattice {
        /// Store the features, to compare with; they are products over the axes and need not be.
        stored: bool,
    },
}

impl Anchors {
    /// The word for it on the command line: `paper`, `sobol`, `iid`, `orthogonal`, `adaptive`, `lattice`.
    pub fn as_str(self) -> &'static str {
        match self {
            Anchors::Paper { .. } => "paper",
            Anchors::Random(Draw::Sobol) => "sobol",
            Anchors::Random(Draw::Iid) => "iid",
            Anchors::Random(Draw::Orthogonal) => "orthogonal",
            Anchors::Adaptive => "adaptive",
            Anchors::Lattice { .. } => "lattice",
        }
    }
}

/// The cost of an exact method.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Cost {
    /// `||x - y||^2`.
    #[default]
    SquaredEuclidean,
    /// `-eps log phi(x).psi(y)` of any features.
    Features(Features),
}

/// Number format of stored features; sums across rows are always in double precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Precision {
    /// Half the memory, twice the speed, about six decimals.
    F32,
    /// Double precision throughout.
    #[default]
    F64,
}

/// How Sinkhorn's fixed point is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// What needs the fewest iterations: Anderson acceleration, and for small epsilon, by way of larger ones
    /// (annealing), where the cost does not depend on it.
    #[default]
    Auto,
    /// Algorithm 1 of the paper.
    Plain,
    /// Algorithm 1 with messages extrapolated from the last few: a fraction of the iterations.
    Anderson,
    /// Accelerated Sinkhorn, the paper's Algorithm 2: alternating minimisation of the dual with momentum. With equal
    /// weights the value is within `4 eps R^2 / k^2` of its limit after `k` steps, `R` the distance of the start from
    /// the solution (as `log u` and `log v`). What counts as an iteration is a trial of a step, of which there are
    /// two a step: two products with the kernel each, as in Algorithm 1, in three passes over the features
    /// where that has two. Errors are the sum of those of both marginals, at the point where the trial has its
    /// products; the plan that is returned has one marginal right, and the error of the other is no larger. At a limit
    /// that is the plan with the largest dual value so far.
    ///
    /// It has a rate that is proven, and takes more iterations than [`Algorithm::Anderson`] and, unless epsilon is very
    /// small, than [`Algorithm::Plain`].
    ///
    /// For the term between two clouds: those of a cloud with itself keep their averaged update, which is quicker. For
    /// marginals that are kept: relaxed ones are [`Error::AcceleratedUnbalanced`].
    Accelerated,
}

/// The settings of a solve.
///
/// ```
/// use orthant::{Method, Options, Precision};
/// let options = Options::builder(0.1)
///     .method(Method::paper())
///     .rank(500)
///     .precision(Precision::F32)
///     .build()?;
/// assert_eq!(options.epsilon(), 0.1);
/// assert!(Options::builder(-0.1).build().is_err());
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
pub struct Options {
    pub(crate) epsilon: f64,
    pub(crate) method: Method,
    pub(crate) cost: GroundCost,
    pub(crate) rank: Option<usize>,
    pub(crate) accuracy: f64,
    pub(crate) gauge: bool,
    pub(crate) exact: bool,
    pub(crate) rho: [f64; 2],
    pub(crate) certify: bool,
    pub(crate) polish: bool,
    pub(crate) max_rank: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) algorithm: Algorithm,
    pub(crate) precision: Precision,
    pub(crate) tolerance: f64,
    pub(crate) max_iterations: usize,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) max_memory: Option<u64>,
    pub(crate) cancel: Cancel,
    pub(crate) pair_costs: bool,
}

impl Options {
    /// Settings with this epsilon, to be completed.
    pub fn builder(epsilon: f64) -> OptionsBuilder {
        OptionsBuilder {
            options: Options {
                epsilon,
                method: Method::Auto,
                cost: GroundCost::SquaredEuclidean,
                rank: None,
                accuracy: 1e-3,
                gauge: true,
                exact: true,
                rho: [f64::INFINITY; 2],
                certify: false,
                polish: false,
                max_rank: None,
                seed: 0,
                algorithm: Algorithm::Auto,
                precision: Precision::F64,
                tolerance: 1e-6,
                max_iterations: 10_000,
                time_limit: None,
                max_memory: None,
                cancel: Cancel::default(),
                pair_costs: true,
            },
        }
    }

    /// A clock for a solve that begins now.
    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.time_limit, &self.cancel)
    }

    /// Nodes that a lattice may have, if these options say so; an automatic choice goes by accuracy.
    pub(crate) fn lattice_rank(&self) -> Option<usize> {
        self.rank.filter(|_| !matches!(self.method, Method::Auto))
    }

    /// The same with the token of a clock, for work that is done within its time.
    pub(crate) fn timed(&self, clock: &Clock) -> Options {
        Options { cancel: clock.cancel().clone(), ..self.clone() }
    }

    /// The same with the time that is left since some beginning, if some is.
    pub(crate) fn since(&self, begun: Instant) -> Option<Self> {
        let mut options = self.clone();
        if let Some(limit) = &mut options.time_limit {
            *limit = limit.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())?;
        }
        Some(options)
    }

    /// The strength of the regularisation.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The method that was asked for.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The cost of two points.
    pub fn cost(&self) -> &GroundCost {
        &self.cost
    }

    /// Whether a marginal is relaxed.
    pub fn is_unbalanced(&self) -> bool {
        self.rho.iter().any(|rho| rho.is_finite())
    }
}

/// Settings that are not checked yet; see [`Options`].
#[derive(Debug, Clone)]
pub struct OptionsBuilder {
    options: Options,
}

/// More features than this are no low rank.
const LARGEST_RANK: usize = 1 << 24;

/// In units of epsilon; a marginal that is relaxed further does not matter any more.
const SMALLEST_RHO: f64 = 1e-10;

/// The smallest tolerance that each precision can tell from rounding.
const SMALLEST_TOLERANCE: [(Precision, f64); 2] = [(Precision::F32, 1e-6), (Precision::F64, 1e-13)];

impl OptionsBuilder {
    /// How the kernel is applied. Default: [`Method::Auto`].
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.options.method = method;
        self
    }

    /// The cost of two points, where the method or the call does not bring one of its own. Default: the squared Euclidean
    /// one.
    #[must_use]
    pub fn cost(mut self, cost: GroundCost) -> Self {
        self.options.cost = cost;
        self
    }

    /// Number of random features (default: 1000), of landmarks (default: 1000, and never more than
    /// there are distinct points), or of lattice nodes at most (default: as many as the accuracy
    /// needs).
    #[must_use]
    pub fn rank(mut self, rank: usize) -> Self {
        self.options.rank = Some(rank);
        self
    }

    /// Error of the value that [`Method::Auto`] and lattices aim at. Of a term it is relative to
    /// [`Solution::value_kl`](crate::Solution::value_kl), see [`Solution::meets_accuracy`](crate::Solution::meets_accuracy); of a
    /// divergence to the divergence, or to a hundredth of its cross term if that is more, see
    /// [`Divergence::meets_accuracy`](crate::Divergence::meets_accuracy). Default: 1e-3.
    #[must_use]
    pub fn accuracy(mut self, accuracy: f64) -> Self {
        self.options.accuracy = accuracy;
        self
    }

    /// Whether cross terms of the squared Euclidean cost are solved in coordinates in which both clouds
    /// have the same mean and covariance: exact, and needs fewer features. Default: yes.
    #[must_use]
    pub fn gauge(mut self, gauge: bool) -> Self {
        self.options.gauge = gauge;
        self
    }

    /// Whether [`Method::Auto`] may choose the exact kernel, in quadratic time. Default: yes.
    #[must_use]
    pub fn allow_exact(mut self, exact: bool) -> Self {
        self.options.exact = exact;
        self
    }

    /// Unbalanced transport: the first marginal of the plan may differ from the weights at a price of
    /// `rho KL(P 1 | a)`, with `KL(p | q) = sum p log(p / q) - p + q` and `rho` in units of the cost. The weights
    /// then count as given, see [`Measure::mass`](crate::Measure::mass). Default: infinite, which keeps the
    /// marginal. At least 1e-10 of epsilon.
    ///
    /// The entropy is relative to `a b^T`, whose mass is the product of those of the clouds, as in the libraries
    /// below. Where the masses are counts that alone makes plans heavy: see
    /// [`Measure::with_mass`](crate::Measure::with_mass).
    ///
    /// Other libraries: `rho` is `reg_m` of POT's `sinkhorn_unbalanced` (`reg_type="kl"`), `tau_a` of OTT is
    /// `rho / (rho + eps)`, and for `reach` of GeomLoss see [`OptionsBuilder::reach`].
    ///
    /// ```
    /// use orthant::{Measure, Options, Points, rot};
    /// // Mass 1 at distance 1 of mass 1: of the plan exp(-1 / (2 rho + eps)) is left.
    /// let mu = Measure::uniform(Points::new(vec![0.0], 1)?);
    /// let nu = Measure::uniform(Points::new(vec![1.0], 1)?);
    /// let options = Options::builder(0.1).rho_x(2.0).rho_y(2.0).build()?;
    /// assert!((rot(&mu, &nu, &options)?.mass - (-1.0_f64 / 4.1).exp()).abs() < 1e-12);
    /// # Ok::<(), orthant::Error>(())
    /// ```
    #[must_use]
    pub fn rho_x(mut self, rho: f64) -> Self {
        self.options.rho[0] = rho;
        self
    }

    /// What it costs to change the second marginal: see [`OptionsBuilder::rho_x`].
    #[must_use]
    pub fn rho_y(mut self, rho: f64) -> Self {
        self.options.rho[1] = rho;
        self
    }

    /// Both of them by a distance: `rho = 2 reach^2`. Mass that would have to move much further than `reach`
    /// is left where it is. The value is that of `reach` in GeomLoss (p = 2), whose cost is half the
    /// squared distance and whose `rho` is `reach^2`.
    #[must_use]
    pub fn reach(self, reach: f64) -> Self {
        // The sign must not get lost.
        let rho = 2.0 * reach * reach.abs();
        self.rho_x(rho).rho_y(rho)
    }

    /// Whether to bound the distance from the exact kernel of the squared Euclidean cost by samples of the plan:
    /// [`Solution::interval_kl`](crate::Solution::interval_kl), for balanced and unbalanced problems. The value is then
    /// the best estimate from these samples and not that of the features alone, which need not be in the interval; with
    /// it, features that are shared by the terms of a divergence are no longer those of one kernel, and the divergence
    /// of equal clouds is zero within its interval only. Random anchors that were chosen automatically always have that.
    /// Default: no.
    #[must_use]
    pub fn certify(mut self, certify: bool) -> Self {
        self.options.certify = certify;
        self
    }

    /// Whether to go on, from the potentials that features gave, with the exact kernel of the squared Euclidean cost:
    /// its solution in a few iterations of quadratic time. Does nothing to methods that are exact already. Default: no.
    #[must_use]
    pub fn polish(mut self, polish: bool) -> Self {
        self.options.polish = polish;
        self
    }

    /// Largest number of random anchors that [`Method::Auto`] may choose. Default: what the memory allows.
    #[must_use]
    pub fn max_rank(mut self, rank: usize) -> Self {
        self.options.max_rank = Some(rank);
        self
    }

    /// Seed of the random features or landmarks. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// How the fixed point is found. Default: [`Algorithm::Auto`].
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.options.algorithm = algorithm;
        self
    }

    /// Number format of stored features. Default: double precision.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.options.precision = precision;
        self
    }

    /// Stop when the L1 error of the marginal is below this. Default: 1e-6.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.options.tolerance = tolerance;
        self
    }

    /// Stop after so many iterations of a term, those with other epsilons or features on the way included. (A lattice may
    /// need up to five more at the end, not counted, to take in nodes that it had left out.) Default: 10,000.
    #[must_use]
    pub fn max_iterations(mut self, iterations: usize) -> Self {
        self.options.max_iterations = iterations;
        self
    }

    /// Stop after this time, within a tenth of it or a second, whatever is being done: choosing a method (which takes a
    /// tenth of it at most, and goes on with what it has found), storing features, iterations of all terms, certificates,
    /// improvements. The result is what there is by then, with [`Stop::TimeLimit`](crate::Stop::TimeLimit) and perhaps
    /// without an interval; [`Error::TimeLimit`] if there is nothing yet. Default: none.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.options.time_limit = Some(limit);
        self
    }

    /// A token that ends whatever is computed with these options: see [`Cancel`]. Default: one that nobody has.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.options.cancel = cancel;
        self
    }

    /// Refuse to store matrices of more bytes than this. Default: what the system gives.
    #[must_use]
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.options.max_memory = Some(bytes);
        self
    }

    /// Whether [`Solution::transport_cost`](crate::Solution::transport_cost) may go over all pairs, where the cost is
    /// defined by features and nothing quicker is known: no for training loops, in which nobody reads it. Default: yes,
    /// up to [`PAIRS_LIMIT`](crate::results::PAIRS_LIMIT).
    #[must_use]
    pub fn pair_costs(mut self, pairs: bool) -> Self {
        self.options.pair_costs = pairs;
        self
    }

    /// Checks every setting.
    pub fn build(self) -> Result<Options> {
        let o = &self.options;
        let option = |name, expected, value| Err(Error::Option { name, expected, value });
        if !(o.epsilon > 0.0 && o.epsilon.is_finite()) {
            return option("epsilon", "positive and finite", o.epsilon);
        }
        o.cost.check_setting()?;
        if o.rank == Some(0) {
            return option("rank", "at least 1", 0.0);
        }
        if o.max_rank == Some(0) {
            return option("the largest rank", "at least 1", 0.0);
        }
        if let Some(rank) = o.rank.filter(|r| *r > LARGEST_RANK) {
            return option("rank", "at most 16777216", rank as f64);
        }
        if !(o.accuracy >= 1e-12 && o.accuracy < 1.0) {
            return option("accuracy", "at least 1e-12 and below 1", o.accuracy);
        }
        for (name, rho) in ["rho_x", "rho_y"].into_iter().zip(o.rho) {
            if rho.is_nan() || rho <= 0.0 {
                return option(name, "positive (infinite: the marginal is kept)", rho);
            }
            if rho < SMALLEST_RHO * o.epsilon {
                return option(name, "at least 1e-10 of epsilon", rho);
            }
        }
        if o.max_iterations == 0 {
            return option("the number of iterations", "at least 1", 0.0);
        }
        if !(o.tolerance > 0.0 && o.tolerance < 1.0) {
            return option("tolerance", "between 0 and 1", o.tolerance);
        }
        if o.algorithm == Algorithm::Accelerated && o.is_unbalanced() {
            return Err(Error::AcceleratedUnbalanced);
        }
        if matches!(o.method, Method::Nystrom(_)) && o.precision == Precision::F32 {
            return Err(Error::SinglePrecision);
        }
        if let Method::Sampled(SampleSizes { size, samples }) = o.method {
            for (name, count) in [("the size of samples", size), ("the number of samples", samples)]
            {
                if let Some(count) = count.filter(|count| *count < 2) {
                    return option(name, "at least 2", count as f64);
                }
            }
        }
        for (precision, smallest) in SMALLEST_TOLERANCE {
            if o.precision == precision && o.tolerance < smallest {
                return option(
                    "tolerance",
                    match precision {
                        Precision::F32 => {
                            "at least 1e-6 in single precision (f64 takes smaller ones)"
                        }
                        Precision::F64 => "at least 1e-13, the rounding of double precision",
                    },
                    o.tolerance,
                );
            }
        }
        Ok(self.options)
    }
}

/// The features of a method, if it has any.
pub(crate) fn features_of(method: &Method) -> Option<&Features> {
    match method {
        Method::Factored(features)
        | Method::Dense(Cost::Features(features))
        | Method::Online(Cost::Features(features)) => Some(features),
        _ => None,
    }
}

/// What a method is called that is of one solve only: what depends on many of them, or on the kernel that they share, has
/// no use for it.
pub(crate) fn of_one_solve(method: &Method) -> Option<&'static str> {
    match method {
        Method::Nystrom(_) => Some("the Nystrom approximation"),
        Method::Sampled(_) => Some("a sample of the clouds"),
        _ => None,
    }
}

/// Whether each cloud has a feature map of its own.
pub(crate) fn has_two_maps(method: &Method) -> bool {
    matches!(features_of(method), Some(Features::Pair(..)))
}

/// Whether the cost is the squared Euclidean one, whose approximations depend on all points.
pub(crate) fn is_euclidean(method: &Method) -> bool {
    matches!(features_of(method), None | Some(Features::Gaussian(_)))
}

/// The same options for a kernel that several measures share: in coordinates that they share too.
pub(crate) fn without_gauge(options: &Options) -> Options {
    // What is stored is checked where it is known.
    let max_memory = options.max_memory.filter(|_| matches!(options.method, Method::Auto));
    Options { gauge: false, certify: false, polish: false, max_memory, ..options.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_setting_is_rejected() {
        let ok = || Options::builder(1.0);
        assert!(ok().build().is_ok());
        for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                Options::builder(epsilon).build(),
                Err(Error::Option { name: "epsilon", .. })
            ));
        }
        for bad in [
            ok().rank(0),
            ok().max_rank(0),
            ok().rank(usize::MAX),
            ok().accuracy(0.0),
            ok().accuracy(1.0),
            ok().accuracy(f64::NAN),
            ok().max_iterations(0),
            ok().tolerance(0.0),
            ok().tolerance(1.0),
            ok().tolerance(f64::NAN),
            ok().tolerance(1e-14),
            ok().precision(Precision::F32).tolerance(1e-7),
            ok().rho_x(0.0),
            ok().rho_x(-1.0),
            ok().rho_y(f64::NAN),
            ok().rho_y(1e-11),
            ok().reach(0.0),
            ok().reach(-1.0),
            ok().reach(f64::NAN),
        ] {
            assert!(matches!(bad.build(), Err(Error::Option { .. })));
        }
        let single = ok().precision(Precision::F32);
        assert_eq!(single.method(Method::nystrom()).build().err(), Some(Error::SinglePrecision));
    }

    #[test]
    fn messages_state_the_value() {
        let message = Options::builder(-0.1).build().unwrap_err().to_string();
        assert_eq!(message, "epsilon must be positive and finite, got -0.1");
    }
}
