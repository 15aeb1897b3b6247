//! Anchors on a lattice: features of the Gaussian kernel with an error bound before any iteration.
//!
//! ```text
//! k(x, y) = (4 / (pi eps))^{d/2} int exp(-2 ||x - u||^2 / eps) exp(-2 ||y - u||^2 / eps) du
//! ```
//!
//! The trapezoid rule on `u` in `origin + h Z^d` gives positive features
//! `phi_u(x) = [(4 / (pi eps))^{d/2} h^d]^{1/2} exp(-2 ||x - u||^2 / eps)`, and by Poisson summation
//!
//! ```text
//! k_theta / k = 1 + sum_{l != 0} exp(-pi^2 eps |l|^2 / (4 h^2)) cos(2 pi l.(m - origin) / h),   m = (x + y) / 2
//! ```
//!
//! so the relative error is below [`poisson_error`] everywhere. Cutting the lattice to a box loses, for
//! a pair of midpoint `m`, the mass of `N(m, eps/8 I)` outside the box.

use crate::control::Cancel;
use crate::numerics::simd::Float;

/// Dimensions for which there are lattices.
pub const MOST_AXES: usize = 4;

/// A box of lattice nodes: anchors whose features have a kernel within [`Lattice::ratio`] of the Gaussian.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lattice {
    epsilon: f64,
    spacing: f64,
    origin: Vec<f64>,
    counts: Vec<usize>,
    /// Which nodes there are, if not all of the box.
    kept: Option<Vec<bool>>,
    rank: usize,
    ratio: f64,
    /// Ends whatever is done with it.
    #[cfg_attr(feature = "serde", serde(skip))]
    cancel: Cancel,
}

impl PartialEq for Lattice {
    fn eq(&self, other: &Self) -> bool {
        let Lattice { epsilon, spacing, origin, counts, kept, rank, ratio, cancel: _ } = self;
        *epsilon == other.epsilon
            && *spacing == other.spacing
            && *origin == other.origin
            && *counts == other.counts
            && *kept == other.kept
            && *rank == other.rank
            && *ratio == other.ratio
    }
}

/// `(1 + 2 sum_{l >= 1} exp(-pi^2 l^2 / (4 t^2)))^d - 1` with `t = h / sqrt(eps)`: the largest relative
/// error of the kernel of an infinite lattice of spacing `h`.
///
/// ```
/// use orthant::anchors::poisson_error;
/// assert!((poisson_error(0.5, 1) / 1.034e-4 - 1.0).abs() < 1e-3);
/// assert!((poisson_error(0.4, 1) / 4.0e-7 - 1.0).abs() < 2e-2);
/// ```
pub fn poisson_error(spacing: f64, dim: usize) -> f64 {
    let exponent = -(std::f64::consts::PI / (2.0 * spacing)).powi(2);
    let mut sum = 0.0;
    for l in 1..=1000_i32 {
        let term = (exponent * f64::from(l * l)).exp();
        sum += 2.0 * term;
        if term < 1e-18 * sum {
            break;
        }
    }
    (dim as f64 * sum.ln_1p()).exp_m1()
}

/// The widest spacing (in units of `sqrt(eps)`) whose [`poisson_error`] is at most `ratio`.
fn widest_spacing(ratio: f64, dim: usize) -> f64 {
    let (mut low, mut high) = (0.1, 4.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if poisson_error(middle, dim) <= ratio { low = middle } else { high = middle }
    }
    low
}

/// Bound of the mass of `N(0, 1/8)` on the nodes of spacing `spacing` beyond `margin`, one side.
fn tail(margin: f64, spacing: f64) -> f64 {
    // The first node outside, and the integral over those behind it.
    let density = (4.0 / std::f64::consts::PI).sqrt() * (-4.0 * margin * margin).exp();
    spacing * density + 0.5 * libm::erfc(2.0 * margin)
}

/// Part of the error that is left to the cut at the box.
const CUT: f64 = 0.1;

impl Lattice {
    /// Nodes for pairs whose midpoints lie between the corners `low` and `high`, such that
    /// `|k_theta / k - 1| <= ratio` for all of them. `None` if that takes more than `most` nodes.
    pub(crate) fn covering(
        low: &[f64],
        high: &[f64],
        epsilon: f64,
        ratio: f64,
        most: f64,
    ) -> Option<Self> {
        let dim = low.len();
        let spacing = widest_spacing((1.0 - CUT) * ratio, dim);
        Self::with_spacing(low, high, epsilon, spacing, CUT * ratio, most)
    }

    /// The same with a given spacing, in units of `sqrt(eps)`, and an error of the cut.
    pub(crate) fn with_spacing(
        low: &[f64],
        high: &[f64],
        epsilon: f64,
        spacing: f64,
        cut: f64,
        most: f64,
    ) -> Option<Self> {
        let dim = low.len();
        assert!(dim <= MOST_AXES, "lattices have few axes");
        let sides = 2.0 * dim as f64;
        let mut margin = 0.0;
        while sides * tail(margin, spacing) > cut {
            margin += 1.0 / 64.0;
        }
        let (h, margin) = (spacing * epsilon.sqrt(), margin * epsilon.sqrt());
        let (mut origin, mut counts) = (vec![0.0; dim], vec![0; dim]);
        let mut nodes = 1.0;
        for a in 0..dim {
            let extent = (high[a] - low[a] + 2.0 * margin) / h;
            nodes *= extent.ceil() + 1.0;
            if nodes.is_nan() || nodes > most {
                return None;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let steps = extent.ceil() as usize;
            counts[a] = steps + 1;
            origin[a] = 0.5 * (low[a] + high[a]) - 0.5 * h * steps as f64;
        }
        let rank = counts.iter().product();
        let ratio = poisson_error(spacing, dim) + sides * tail(margin / epsilon.sqrt(), spacing);
        let cancel = Cancel::default();
        Some(Lattice { epsilon, spacing: h, origin, counts, kept: None, rank, ratio, cancel })
    }

    /// The same lattice, but this ends whatever is done with it.
    pub(crate) fn guarded(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Unwinds if that is wanted: see [`Cancel`].
    pub(crate) fn check_cancelled(&self) {
        self.cancel.check();
    }

    /// The same lattice with these nodes only.
    pub(crate) fn keep(mut self, kept: Vec<bool>) -> Self {
        assert_eq!(kept.len(), self.nodes(), "a flag for each node");
        self.rank = kept.iter().filter(|k| **k).count();
        self.kept = Some(kept);
        self
    }

    /// The same nodes for another epsilon.
    #[cfg(test)]
    pub(crate) fn at(&self, ratio: f64) -> Self {
        Lattice { epsilon: ratio * self.epsilon, ..self.clone() }
    }

    /// The whole box.
    pub(crate) fn whole(&self) -> Self {
        Lattice { kept: None, rank: self.nodes(), ..self.clone() }
    }

    /// Number of axes.
    pub fn dim(&self) -> usize {
        self.counts.len()
    }

    /// Number of nodes.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of nodes of the whole box.
    pub(crate) fn nodes(&self) -> usize {
        self.counts.iter().product()
    }

    /// Distance of neighbours.
    pub fn spacing(&self) -> f64 {
        self.spacing
    }

    /// Number of nodes along each axis.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    pub(crate) fn epsilon(&self) -> f64 {
        self.epsilon
    }

    pub(crate) fn kept(&self) -> Option<&[bool]> {
        self.kept.as_deref()
    }

    /// Coordinate of node `j` of axis `a`.
    pub(crate) fn coordinate(&self, a: usize, j: usize) -> f64 {
        self.origin[a] + self.spacing * j as f64
    }

    /// `log [(4 / (pi eps))^{d/2} h^d]^{1/2}`.
    pub(crate) fn log_norm(&self) -> f64 {
        let axis = 4.0 / (std::f64::consts::PI * self.epsilon) * self.spacing * self.spacing;
        0.25 * self.dim() as f64 * axis.ln()
    }

    /// `log k_theta(x, y)` of the whole box, a product over the axes: with `m = (x + y) / 2` the midpoint,
    ///
    /// ```text
    /// phi_u(x) phi_u(y) = norm^2 exp(-|x - y|^2 / eps) exp(-4 |m - u|^2 / eps)
    /// ```
    pub(crate) fn log_kernel(&self, x: impl Fn(usize) -> f64, y: impl Fn(usize) -> f64) -> f64 {
        let square = 4.0 * self.spacing * self.spacing / self.epsilon;
        let axes = (0..self.dim()).map(|a| {
            let (x, y) = (x(a), y(a));
            // In units of the spacing, from the first node.
            let middle = (0.5 * (x + y) - self.origin[a]) / self.spacing;
            let last = (self.counts[a] - 1) as f64;
            let nearest = middle.round().clamp(0.0, last);
            let top = square * (middle - nearest).powi(2);
            let mut sum = 1.0;
            for step in [-1.0, 1.0] {
                let mut node = nearest + step;
                while (0.0..=last).contains(&node) {
                    let log = top - square * (middle - node).powi(2);
                    if log < -f64::CUTOFF {
                        break;
                    }
                    sum += log.exp();
                    node += step;
                }
            }
            sum.ln() - top - (x - y) * (x - y) / self.epsilon
        });
        2.0 * self.log_norm() + axes.sum::<f64>()
    }

    /// Bound of `|k_theta / k - 1|` over all pairs, nodes that were left out not counted.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Terms below `exp(-cutoff)` of a sum over the nodes may be left out: together they carry a hundredth
    /// of the error of the lattice, or what is lost to rounding.
    pub(crate) fn cutoff<T: Float>(&self) -> f64 {
        (9.0 - self.ratio.ln()).clamp(12.0, T::CUTOFF)
    }

    /// Bound of `|W - W_theta|` in the same units as epsilon: `-eps log(1 - ratio)`.
    pub fn bound(&self) -> f64 {
        value_bound(self.epsilon, self.ratio)
    }
}

/// `-eps log(1 - ratio)`: how far a value moves when every entry of its kernel moves by at most
/// `ratio`.
pub(crate) fn value_bound(epsilon: f64, ratio: f64) -> f64 {
    if ratio < 1.0 { -epsilon * (-ratio).ln_1p() } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, Uniform};

    use super::*;

    /// `k_theta / k` of two points by plain sums over all nodes.
    fn kernel_ratio(lattice: &Lattice, x: &[f64], y: &[f64]) -> f64 {
        // A product over the axes.
        (0..lattice.dim())
            .map(|a| {
                let sum: f64 = (0..lattice.counts()[a])
                    .map(|j| {
                        let u = lattice.coordinate(a, j);
                        let exponent = (x[a] - u).powi(2) + (y[a] - u).powi(2);
                        (-2.0 * exponent / lattice.epsilon()
                            + (x[a] - y[a]).powi(2) / lattice.epsilon())
                        .exp()
                    })
                    .sum();
                sum * (2.0 * lattice.log_norm() / lattice.dim() as f64).exp()
            })
            .product()
    }

    #[test]
    fn the_kernel_stays_within_the_poisson_bound_and_reaches_it() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let uniform = Uniform::new(-1.0, 2.0).unwrap();
        for dim in 1..=3 {
            for (spacing, epsilon) in [(0.4, 0.3), (0.5, 0.05), (0.7, 1.0), (0.9, 0.2), (1.2, 0.1)]
            {
                let low = vec![-1.0; dim];
                let high = vec![2.0; dim];
                let lattice =
                    Lattice::with_spacing(&low, &high, epsilon, spacing, 1e-13, 1e9).unwrap();
                let tau = poisson_error(spacing, dim);
                let mut most: f64 = 0.0;
                for _ in 0..3000 {
                    let mut point =
                        || -> Vec<f64> { (0..dim).map(|_| uniform.sample(&mut rng)).collect() };
                    let ratio = kernel_ratio(&lattice, &point(), &point());
                    most = most.max((ratio - 1.0).abs());
                }
                assert!(most <= tau + 1e-12, "{dim} {spacing}: {most} {tau}");
                assert!(most >= 0.5 * tau, "{dim} {spacing}: {most} {tau}");
                // At a node, where all cosines are 1, the bound is reached.
                let node: Vec<f64> =
                    (0..dim).map(|a| lattice.coordinate(a, lattice.counts()[a] / 2)).collect();
                let at_node = kernel_ratio(&lattice, &node, &node) - 1.0;
                assert!((at_node / tau - 1.0).abs() < 1e-6, "{dim} {spacing}: {at_node} {tau}");
            }
        }
    }

    #[test]
    fn a_box_is_wide_enough_for_the_pairs_at_its_corners() {
        for dim in 1..=4 {
            for ratio in [0.3, 1e-2, 1e-4, 1e-8] {
                for epsilon in [1e-3_f64, 1.0, 50.0] {
                    let (low, high) = (vec![0.0; dim], vec![1.0 + epsilon.sqrt(); dim]);
                    let lattice = Lattice::covering(&low, &high, epsilon, ratio, 1e9);
                    let Some(lattice) = lattice else {
                        assert!(dim == 4, "{dim} {ratio} {epsilon}");
                        continue;
                    };
                    assert!(lattice.ratio() <= ratio && lattice.ratio() > 0.3 * ratio);
                    // Midpoints at corners, from pairs near and far.
                    for spread in [0.0, 0.5, 3.0] {
                        for corner in [&low, &high] {
                            let x: Vec<f64> = corner.iter().map(|c| c + spread).collect();
                            let y: Vec<f64> = corner.iter().map(|c| c - spread).collect();
                            let error = (kernel_ratio(&lattice, &x, &y) - 1.0).abs();
                            assert!(error <= ratio, "{dim} {ratio}: {error}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn too_many_nodes_are_no_lattice() {
        assert!(Lattice::covering(&[0.0; 3], &[1.0; 3], 1e-8, 1e-3, 1e6).is_none());
        assert!(Lattice::covering(&[-1e300], &[1e300], 1e-300, 1e-3, 1e6).is_none());
    }

    #[test]
    fn the_bound_is_the_logarithm_of_the_ratio() {
        let lattice = Lattice::covering(&[0.0], &[1.0], 0.1, 0.5, 1e6).unwrap();
        assert!((lattice.bound() - 0.1 * -(1.0 - lattice.ratio()).ln()).abs() < 1e-15);
        assert_eq!(value_bound(1.0, 1.0), f64::INFINITY);
        assert_eq!(value_bound(1.0, 0.0), 0.0);
    }
}
