//! What a solve returns.

use std::time::Duration;

use crate::control::Stop;
use crate::error::{Error, Result};
use crate::options::Anchors;
use crate::sampling::Pairs;

/// Regularised optimal transport between two measures: the value, how it was obtained and how good
/// it is.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Solution {
    /// `W = <P, C> + eps sum P log P`: the paper's regularised transport, as its dual value. It is a
    /// lower bound of `W`, and exact at convergence. Of unbalanced problems, the same and the prices of both
    /// marginals.
    pub value: f64,
    /// `W + eps (H(a) + H(b))`: the form of other libraries, with the entropy relative to the
    /// product of the marginals. Independent of the number of points, and positive where the cost is.
    /// Of unbalanced problems `<P, C> + eps KL(P | a b^T) + rho_x KL(P 1 | a) + rho_y KL(P^T 1 | b)`, as its dual
    /// value.
    pub value_kl: f64,
    /// `<P, C>`. For features of the squared Euclidean cost it is the squared Euclidean cost of the
    /// plan, in linear time. Where the cost is defined by the features themselves it takes all
    /// pairs, so it is there only up to [`PAIRS_LIMIT`] multiplications.
    pub transport_cost: Option<f64>,
    /// How concentrated the plan is: `KL(P | a b^T) / log min(n, m)`, with `n` and `m` the numbers of points of positive
    /// weight. 0 is the plan of independent points, which sends everything everywhere, 1 a permutation of points of equal
    /// weights. `KL(P | a b^T) = (value_kl - <P, C>) / eps`, so an approximate kernel leaves its error in it. Where
    /// marginals are relaxed it is that of the plan at mass 1 and of the marginals that it has. None where the transport
    /// cost is not known, and where a cloud has a single point.
    pub plan_concentration: Option<f64>,
    /// Mass of the plan: 1 for balanced problems.
    pub mass: f64,
    /// The regularisation.
    pub epsilon: f64,
    /// What it costs to change the marginals: see [`OptionsBuilder::rho_x`](crate::options::OptionsBuilder::rho_x).
    pub rho: [f64; 2],
    /// `alpha = eps log u` for every point of the first cloud. At a point of weight zero, where that
    /// is minus infinity, its extension `-eps log (K v)_i`: see [`Solution::potential_kl_x`].
    pub potential_x: Vec<f64>,
    /// `beta = eps log v` for every point of the second cloud.
    pub potential_y: Vec<f64>,
    /// L1 distance of the plan's first marginal from what it should be, relative to the mass: from the
    /// weights, or, if it is relaxed, from what the next iteration would make of it.
    pub marginal_error_x: f64,
    /// L1 distance of the plan's second marginal from what it should be: see [`Solution::marginal_error_x`].
    pub marginal_error_y: f64,
    /// L1 distance of the plan's first marginal from the weights: if it is relaxed, a result and no error.
    /// Weights of balanced problems are normalised, those of unbalanced ones are as given.
    pub marginal_gap_x: f64,
    /// L1 distance of the plan's second marginal from the weights: see [`Solution::marginal_gap_x`].
    pub marginal_gap_y: f64,
    /// Iterations done.
    pub iterations: usize,
    /// Why the solve ended.
    pub stop: Stop,
    /// Number of features or landmarks; for exact methods the number of columns of the kernel.
    pub rank: usize,
    /// What was used.
    pub method: MethodUsed,
    /// Where the anchors of Gaussian features really were, also if they were chosen automatically; None of other kernels.
    pub anchors: Option<Anchors>,
    /// Why, if the choice was automatic.
    pub reason: Option<String>,
    /// Bound of the distance of `value_kl` from that of the exact kernel, both converged: for lattices,
    /// from Poisson summation and from the mass that was left out. Of balanced problems it is that of `value` too,
    /// from which `value_kl` differs by a constant.
    pub bound: Option<f64>,
    /// Where the `value` of the exact kernel is, converged: [`Solution::interval_kl`], moved by the entropies of the
    /// weights. None for unbalanced problems, where the difference of the two values depends on the plan: what is
    /// known there is about `value_kl`.
    pub interval: Option<Interval>,
    /// Where the `value_kl` of the exact kernel is, converged, if that is known: for exact kernels always, for
    /// lattices by their bound, for random anchors if the options ask for a certificate or the choice was automatic.
    pub interval_kl: Option<Interval>,
    /// The best estimate of the `value` of the exact kernel from samples of the plan, where there are such; None for
    /// unbalanced problems.
    pub corrected: Option<f64>,
    /// The best estimate of the `value_kl` of the exact kernel from samples of the plan, where there are such.
    pub corrected_kl: Option<f64>,
    /// What was sampled, if the measures were: see [`Method::Sampled`](crate::Method::Sampled).
    #[cfg_attr(feature = "serde", serde(default))]
    pub sampling: Option<Sampling>,
    /// Epsilons that were gone through: 1, or more where it is small, and larger ones led to it.
    pub stages: usize,
    /// Iterations of the exact kernel at the end, if it went on from the potentials of features.
    pub polished: Option<usize>,
    /// How often features were stored: twice for a cross term, and again whenever the potentials had
    /// moved too far for the range of the stored numbers (absorption).
    pub builds: usize,
    /// Where the time went.
    pub times: Times,
    /// What the iterations that were not done may have to do with the upper end of the interval.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) slack: f64,
    pub(crate) weights_x: Vec<f64>,
    pub(crate) weights_y: Vec<f64>,
    /// Pairs of the plan that a certificate was made from.
    pub(crate) pairs: Pairs,
}

/// How much of the clouds was sampled, and what the samples say of the value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Sampling {
    /// Points of each cloud in a sample.
    pub size: usize,
    /// Independent samples.
    pub samples: usize,
    /// Points of the first cloud whose rows were taken with all columns, for the lower end of the interval.
    pub rows: usize,
    /// Points of each cloud in the samples that the upper end of the interval is from: as many as in the others, or more.
    pub upper_size: usize,
    /// The best estimate of [`Solution::value`] from the samples: that of the jackknife, or what the values of samples of two
    /// sizes tend to. No bound, and several times closer than the ends of the interval.
    pub estimate: Estimate,
}

impl Sampling {
    /// Of a value that differs by a constant.
    pub(crate) fn shifted(mut self, by: f64) -> Self {
        self.estimate.value += by;
        self
    }
}

/// A number that is estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub stderr: f64,
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How certain that is.
    pub kind: Certainty,
}

impl Interval {
    /// The interval with these ends.
    pub fn new(low: f64, high: f64, kind: Certainty) -> Self {
        Interval { low, high, kind }
    }

    /// Distance of the ends.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Whether a number is inside.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Distance of a number from the end that is farther away: the largest error that it may have.
    pub fn farthest(&self, value: f64) -> f64 {
        (self.high - value).max(value - self.low)
    }

    /// Adds a constant to both ends: the interval of a number that differs by that constant.
    #[must_use]
    pub fn shifted(self, by: f64) -> Self {
        Interval { low: self.low + by, high: self.high + by, ..self }
    }
}

/// What an [`Interval`] comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Certainty {
    /// The kernel is exact; how far the iterations have come is all that counts.
    Exact,
    /// A proven bound of the error of the kernel.
    Bound,
    /// Samples of the plan, with three standard errors.
    Sampled,
}

impl Certainty {
    /// A word for programs: `exact`, `bound`, `sampled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Certainty::Exact => "exact",
            Certainty::Bound => "bound",
            Certainty::Sampled => "sampled",
        }
    }

    /// The one that a word stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        [Certainty::Exact, Certainty::Bound, Certainty::Sampled]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// Multiplications above which `<P, C>` of a cost that is defined by features is not computed.
pub const PAIRS_LIMIT: f64 = 2e9;

/// Bytes above which [`Plan::to_dense`](crate::Plan::to_dense) is refused, unless the options have a
/// [`max_memory`](crate::options::OptionsBuilder::max_memory).
pub const DENSE_LIMIT: u64 = 1 << 30;

/// The time of a solve, by phase.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Times {
    /// Drawing anchors and storing features or kernel matrices.
    pub features: Duration,
    /// The rest: iterations, and the figures that are computed from the plan at the end.
    pub solve: Duration,
}

/// The method that a solve used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum MethodUsed {
    /// Random features of the Gaussian kernel.
    Gaussian,
    /// Features of the Gaussian kernel on a lattice.
    Lattice,
    /// Features of the arc-cosine kernel.
    ArcCosine,
    /// The linear kernel.
    Linear,
    /// A feature map (or two) of the caller's.
    Map,
    /// Feature matrices of the caller's.
    Explicit,
    /// The stored kernel.
    Dense,
    /// The recomputed kernel.
    Online,
    /// The Nystrom approximation.
    Nystrom,
    /// The exact kernel between samples of the clouds.
    Sampled,
}

impl MethodUsed {
    /// What solves over all pairs are called.
    pub(crate) fn over_pairs(stored: bool) -> Self {
        if stored { MethodUsed::Dense } else { MethodUsed::Online }
    }

    /// The word for it on the command line and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            MethodUsed::Gaussian => "gaussian",
            MethodUsed::Lattice => "lattice",
            MethodUsed::ArcCosine => "arccos",
            MethodUsed::Linear => "linear",
            MethodUsed::Map => "map",
            MethodUsed::Explicit => "explicit",
            MethodUsed::Dense => "dense",
            MethodUsed::Online => "online",
            MethodUsed::Nystrom => "nystrom",
            MethodUsed::Sampled => "sampled",
        }
    }

    /// The one that a word stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            MethodUsed::Gaussian,
            MethodUsed::Lattice,
            MethodUsed::ArcCosine,
            MethodUsed::Linear,
            MethodUsed::Map,
            MethodUsed::Explicit,
            MethodUsed::Dense,
            MethodUsed::Online,
            MethodUsed::Nystrom,
            MethodUsed::Sampled,
        ]
        .into_iter()
        .find(|used| used.as_str() == name)
    }
}

impl Solution {
    /// Whether the marginal error fell below the tolerance.
    pub fn converged(&self) -> bool {
        self.stop == Stop::Converged
    }

    /// Counts the work of another solve of the same problem.
    pub(crate) fn add_work_of(&mut self, other: &Solution) {
        self.iterations += other.iterations;
        self.builds += other.builds;
        self.times.features += other.times.features;
        self.times.solve += other.times.solve;
    }

    /// Width of the interval.
    pub(crate) fn width(&self) -> f64 {
        self.interval_kl.map_or(f64::INFINITY, |interval| interval.width())
    }

    /// Whether `value_kl` is known to be within this part of `value_kl` from that of the exact kernel. (Or of a
    /// thousandth of epsilon for each unit of mass, if that is more: of clouds that all but coincide nobody asks for
    /// so much.)
    pub fn meets_accuracy(&self, accuracy: f64) -> bool {
        self.error_kl() <= accuracy * self.scale()
    }

    /// The largest error that `value_kl` may have: infinite if nothing is known.
    pub(crate) fn error_kl(&self) -> f64 {
        self.interval_kl.map_or(f64::INFINITY, |interval| interval.farthest(self.value_kl))
    }

    /// What an accuracy is relative to.
    pub(crate) fn scale(&self) -> f64 {
        scale(self.value_kl, self.epsilon * self.mass)
    }

    /// `alpha_i - eps log a_i = -eps log (K v)_i`: the potential as a function of position, which is
    /// defined at points of weight zero too and does not depend on how many points there are. Other
    /// libraries call this one the potential; `value_kl = a.alpha_kl + b.beta_kl`. Where the marginal is
    /// relaxed it is `-eps tau log (K v)_i`, `tau = rho / (rho + eps)`, with weights as given.
    pub fn potential_kl_x(&self) -> Vec<f64> {
        relative(&self.potential_x, &self.weights_x, self.epsilon)
    }

    /// `beta_j - eps log b_j`: see [`Solution::potential_kl_x`].
    pub fn potential_kl_y(&self) -> Vec<f64> {
        relative(&self.potential_y, &self.weights_y, self.epsilon)
    }
}

/// What an accuracy is relative to.
pub(crate) fn scale(value_kl: f64, epsilon: f64) -> f64 {
    value_kl.abs().max(1e-3 * epsilon)
}

/// The part of the value of its cross term below which a divergence is small, and accuracies are relative to it.
const SMALL: f64 = 0.01;

/// What the accuracy of a divergence is relative to; `cross` is that of its cross term.
pub(crate) fn divergence_scale(divergence: f64, cross: f64) -> f64 {
    divergence.abs().max(SMALL * cross)
}

fn relative(potential: &[f64], weights: &[f64], epsilon: f64) -> Vec<f64> {
    potential
        .iter()
        .zip(weights)
        .map(|(p, w)| if *w > 0.0 { p - epsilon * w.ln() } else { *p })
        .collect()
}

/// A Sinkhorn divergence `S = W(mu, nu) - (W(mu, mu) + W(nu, nu)) / 2` and its three terms. If the marginals are
/// relaxed, `S` also has `eps/2` times the square of the difference of the masses, and is zero for
/// equal measures only.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Divergence {
    /// The divergence: zero for equal measures, positive for others.
    pub value: f64,
    /// Whether its terms have one kernel.
    pub kernels: Kernels,
    /// `W(mu, nu)`.
    pub cross: Solution,
    /// `W(mu, mu)`.
    pub self_x: Solution,
    /// `W(nu, nu)`.
    pub self_y: Solution,
}

/// The value of a divergence out of its terms, and what it has beside them. The entropies of the weights cancel; the KL
/// form has fewer digits to lose.
pub(crate) fn debiased([cross, self_x, self_y]: [&Solution; 3], mass_term: f64) -> f64 {
    cross.value_kl - 0.5 * self_x.value_kl - 0.5 * self_y.value_kl + mass_term
}

/// The kernels of the terms of a divergence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Kernels {
    /// The exact kernel of the cost.
    Exact,
    /// One feature map for all terms: the divergence of a positive-definite kernel, never negative
    /// beyond rounding. (But for Nystrom, whose features are signed, and for automatic and adaptive anchors,
    /// whose terms are corrected one by one: there it may be negative within its interval.)
    Shared,
    /// An approximation for each term, with an error bound each: see [`Divergence::bound`].
    PerTerm,
}

impl Kernels {
    /// A word for programs: `exact`, `shared`, `per_term`.
    pub fn as_str(self) -> &'static str {
        match self {
            Kernels::Exact => "exact",
            Kernels::Shared => "shared",
            Kernels::PerTerm => "per_term",
        }
    }
}

impl Divergence {
    /// Puts a divergence together: its terms, and what it has beside them.
    pub(crate) fn of(
        [cross, self_x, self_y]: [Solution; 3],
        kernels: Kernels,
        mass_term: f64,
    ) -> Result<Self> {
        let value = debiased([&cross, &self_x, &self_y], mass_term);
        if value.is_finite() {
            Ok(Divergence { value, kernels, cross, self_x, self_y })
        } else {
            Err(Error::Overflow { what: "the divergence" })
        }
    }

    /// Bound of the distance of `value` from the divergence of the exact kernel, if the terms have one.
    pub fn bound(&self) -> Option<f64> {
        Some(self.cross.bound? + 0.5 * self.self_x.bound? + 0.5 * self.self_y.bound?)
    }

    /// Where the divergence of the exact kernel is, if that is known of the terms: the interval of `value`, balanced
    /// or not. (The entropies of the weights cancel in a divergence, so there is one form of it only.)
    pub fn interval(&self) -> Option<Interval> {
        let [cross, x, y] = self.terms().map(|t| t.interval_kl.map(|i| i.shifted(-t.value_kl)));
        let (cross, x, y) = (cross?, x?, y?);
        Some(Interval {
            low: self.value + cross.low - 0.5 * (x.high + y.high),
            high: self.value + cross.high - 0.5 * (x.low + y.low),
            kind: cross.kind.max(x.kind).max(y.kind),
        })
    }

    /// Whether `value` is known to be within this part of itself from the divergence of the exact kernel. (Or of a
    /// hundredth of what the accuracy of the cross term is relative to, see [`Solution::meets_accuracy`], if that is more: clouds
    /// that all but coincide have a divergence that is all but zero.)
    pub fn meets_accuracy(&self, accuracy: f64) -> bool {
        self.interval()
            .is_some_and(|interval| interval.farthest(self.value) <= accuracy * self.scale())
    }

    /// What an accuracy is relative to.
    pub(crate) fn scale(&self) -> f64 {
        divergence_scale(self.value, self.cross.scale())
    }

    /// The best estimate of the divergence of the exact kernel from samples of the plans, where there are such.
    pub fn corrected(&self) -> Option<f64> {
        let [cross, x, y] = self.terms().map(|t| Some(t.corrected_kl? - t.value_kl));
        Some(self.value + cross? - 0.5 * (x? + y?))
    }

    /// Whether all three terms converged.
    pub fn converged(&self) -> bool {
        self.terms().iter().all(|t| t.converged())
    }

    /// The three terms: cross, first with itself, second with itself.
    pub fn terms(&self) -> [&Solution; 3] {
        [&self.cross, &self.self_x, &self.self_y]
    }
}
