//! What a solve returns.

use std::time::Duration;

use crate::sinkhorn::Stop;

/// Regularised optimal transport between two measures: the value, how it was obtained and how good
/// it is.
#[derive(Debug, Clone)]
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
    /// Mass of the plan: 1 for balanced problems.
    pub mass: f64,
    /// The regularisation.
    pub epsilon: f64,
    /// What it costs to change the marginals: see [`OptionsBuilder::rho_x`](crate::OptionsBuilder::rho_x).
    pub rho: [f64; 2],
    /// `alpha = eps log u` for every point of the first cloud. At a point of weight zero, where that
    /// is minus infinity, its extension `-eps log (K v)_i`: see [`Solution::potential_kl_x`].
    pub potential_x: Vec<f64>,
    /// `beta = eps log v` for every point of the second cloud.
    pub potential_y: Vec<f64>,
    /// L1 distance of the plan's first marginal from what it should be, relative to the mass: from the
    /// weights, or, if it is relaxed, from what the next iteration would make of it.
    pub marginal_error_x: f64,
    /// The same for the second marginal.
    pub marginal_error_y: f64,
    /// L1 distance of the plan's first marginal from the weights: if it is relaxed, a result and no error.
    /// Weights of balanced problems are normalised, those of unbalanced ones are as given.
    pub marginal_gap_x: f64,
    /// The same for the second marginal.
    pub marginal_gap_y: f64,
    /// Iterations done.
    pub iterations: usize,
    /// Why the solve ended.
    pub stop: Stop,
    /// Number of features; for exact methods the number of columns of the kernel.
    pub rank: usize,
    /// What was used.
    pub method: Used,
    /// Why, if the choice was automatic.
    pub reason: Option<String>,
    /// Bound of the distance of the value from that of the exact kernel, both converged: for lattices,
    /// from Poisson summation and from the mass that was left out. Same units as the value; of unbalanced
    /// problems it is for `value_kl`.
    pub bound: Option<f64>,
    /// What that distance should be below for random anchors that were chosen automatically: from a
    /// trial of the features at sampled points, and no bound.
    pub estimate: Option<f64>,
    /// How often features were stored: twice for a cross term, and again whenever the potentials had
    /// moved too far for the range of the stored numbers (absorption).
    pub builds: usize,
    /// Where the time went.
    pub times: Times,
    pub(crate) weights_x: Vec<f64>,
    pub(crate) weights_y: Vec<f64>,
}

/// Multiplications above which `<P, C>` of a cost that is defined by features is not computed.
pub const PAIRS_LIMIT: f64 = 2e9;

/// The time of a solve, by phase.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// Drawing anchors and storing features or kernel matrices.
    pub features: Duration,
    /// Iterations, and the figures that are computed from the plan at the end.
    pub solve: Duration,
}

/// The method that a solve used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Used {
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
}

impl Used {
    /// The word for it on the command line and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Used::Gaussian => "gaussian",
            Used::Lattice => "lattice",
            Used::ArcCosine => "arccos",
            Used::Linear => "linear",
            Used::Map => "map",
            Used::Explicit => "explicit",
            Used::Dense => "dense",
            Used::Online => "online",
        }
    }
}

impl Solution {
    /// Whether the marginal error fell below the tolerance.
    pub fn converged(&self) -> bool {
        self.stop == Stop::Converged
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

/// The kernels of the terms of a divergence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernels {
    /// The exact kernel of the cost.
    Exact,
    /// One feature map for all terms: the divergence of a positive-definite kernel, never negative
    /// beyond rounding.
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
    /// Bound of the distance from the divergence of the exact kernel, if the terms have one.
    pub fn bound(&self) -> Option<f64> {
        Some(self.cross.bound? + 0.5 * self.self_x.bound? + 0.5 * self.self_y.bound?)
    }

    /// The same for random anchors that were chosen automatically: an estimate, and no bound.
    pub fn estimate(&self) -> Option<f64> {
        Some(self.cross.estimate? + 0.5 * self.self_x.estimate? + 0.5 * self.self_y.estimate?)
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
