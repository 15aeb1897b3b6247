//! Lattices for the terms of a squared Euclidean cost: how fine, how large and how quick they are.

use super::gauged::GaugedTerm;
use crate::anchors::{Lattice, MOST_AXES};
use crate::options::Options;
use crate::sinkhorn::anderson::Anderson;

/// Nodes of a lattice for clouds of so many points at most: with more, all pairs are quicker.
pub(crate) fn most_nodes(points: usize) -> f64 {
    (1000.0 * points as f64).clamp(1e4, 4e6)
}

/// Largest relative error of the kernel that moves a value by no more than `accuracy`.
pub(crate) fn ratio_for(accuracy: f64, epsilon: f64) -> f64 {
    (-(-accuracy / epsilon).exp_m1()).clamp(1e-11, 0.5)
}

/// Nanoseconds of one thread, an iteration: a pair of the exact kernel, and more for each coordinate.
pub(crate) const PAIR: [f64; 2] = [2.5, 0.35];
/// A point of a lattice, and more for each node of its window and of the lattice.
const POINT: [f64; 3] = [60.0, 0.35, 0.005];
impl GaugedTerm<'_> {
    /// The box of all midpoints of pairs, one of each cloud.
    pub(crate) fn midpoints(&self) -> [Vec<f64>; 2] {
        self.gauged.midpoints(self.clouds[0], self.clouds[1])
    }

    /// Points of both clouds together.
    fn points(&self) -> usize {
        self.measures.iter().map(|m| m.support().len()).sum()
    }

    pub(crate) fn sizes(&self) -> [f64; 2] {
        self.measures.map(|m| m.support().len() as f64)
    }

    /// The error that the kernel may have, in units of the cost, judged by the value of Gaussians.
    pub(crate) fn allowed(&self, options: &Options) -> f64 {
        let value = || self.gauged.gauge.gaussian_value().unwrap_or(0.0);
        self.gauged.error.unwrap_or_else(|| options.accuracy * value())
    }

    /// The lattice for the accuracy asked for.
    pub(crate) fn lattice(&self, options: &Options) -> Option<Lattice> {
        self.lattice_for(self.allowed(options), options)
    }

    /// The lattice whose error is at most this.
    pub(crate) fn lattice_for(&self, error: f64, options: &Options) -> Option<Lattice> {
        let [low, high] = self.midpoints();
        if low.len() > MOST_AXES {
            return None;
        }
        let most = most_nodes(self.points());
        let ratio = 0.8 * ratio_for(error, options.epsilon);
        Lattice::covering(&low, &high, self.gauged.gauge.epsilon(), ratio, most)
    }

    /// Nanoseconds of an iteration on a lattice.
    pub(crate) fn time_on(&self, lattice: &Lattice) -> f64 {
        // As wide as the terms that count, and the cell.
        let spacing = lattice.spacing() / self.gauged.gauge.epsilon().sqrt();
        let reach = ((11.0 - lattice.ratio().ln()) / 2.0).sqrt();
        let window: f64 = (lattice.counts().iter())
            .map(|count| (2.0 * reach / spacing + 3.0).min(*count as f64))
            .product();
        let points: f64 = self.sizes().iter().sum();
        let all = lattice.nodes() as f64;
        // Cells of few points share the work on their windows badly.
        let crowd = (points / (2.0 * all)).clamp(0.02, 1.0).recip();
        points * (POINT[0] + POINT[1] * window * (1.0 + 0.2 * crowd) + POINT[2] * all) + 20.0 * all
    }
}

/// Relative errors of lattices beside the exact kernel, the best first.
const NEAR: [f64; 4] = [1e-7, 1e-4, 1e-2, 0.1];
/// Their iterations in the time of a pass over all pairs, at least.
const QUICK: f64 = 4.0;

/// The finest lattice that is quick beside the exact kernel, if there is one.
pub(super) fn near(term: &GaugedTerm<'_>, options: &Options) -> Option<Lattice> {
    let [low, high] = term.midpoints();
    if low.len() > MOST_AXES {
        return None;
    }
    let [n, m] = term.sizes();
    let most = QUICK.recip() * n * m * (PAIR[0] + PAIR[1] * low.len() as f64);
    NEAR.iter()
        .filter_map(|&ratio| {
            let nodes = most_nodes(term.points());
            Lattice::covering(&low, &high, term.gauged.gauge.epsilon(), ratio, nodes)
        })
        .find(|lattice| term.time_on(lattice) <= most && fits(bytes(lattice, n + m), options))
}

/// Memory that a choice may take, in bytes, where nobody says how much.
const DEFAULT_MEMORY: f64 = 4e9;

pub(crate) fn fits(bytes: f64, options: &Options) -> bool {
    bytes <= options.max_memory.map_or(DEFAULT_MEMORY, |limit| limit as f64)
}

/// Memory of a solve on a lattice: a few numbers a point, and for each chunk of points two a node.
pub(crate) fn bytes(lattice: &Lattice, points: f64) -> f64 {
    let chunks = (points / 1024.0).clamp(2.0, 128.0);
    let nodes = lattice.nodes() as f64;
    points * (32.0 * lattice.dim() as f64 + 64.0)
        + 16.0 * chunks * nodes.min(5e5)
        + 8.0 * Anderson::MEMORY as f64 * nodes
}
