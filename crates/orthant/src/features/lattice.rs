//! Features of the Gaussian kernel on the nodes of a lattice, one by one: to be stored.

use super::{Affine, FeatureMap};
use crate::design::Lattice;
use crate::frame::Frame;
use crate::measure::Points;

/// The features of a [`Lattice`] as a map, for points in its coordinates.
#[derive(Debug, Clone)]
pub(crate) struct LatticeMap {
    affine: Affine,
}

impl LatticeMap {
    pub(crate) fn new(lattice: &Lattice) -> Self {
        let (dim, counts) = (lattice.dim(), lattice.counts());
        let kept: Vec<usize> = match lattice.kept() {
            None => (0..lattice.nodes()).collect(),
            Some(kept) => (0..lattice.nodes()).filter(|&k| kept[k]).collect(),
        };
        let node = |k: usize, a: usize| {
            let behind: usize = counts[a + 1..].iter().product();
            lattice.coordinate(a, kept[k] / behind % counts[a])
        };
        let square = 2.0 / lattice.epsilon();
        let affine = Affine::new(Frame::unit(dim), kept.len(), -square, 2.0 * square, node, |k| {
            let norm: f64 = (0..dim).map(|a| node(k, a).powi(2)).sum();
            lattice.log_norm() - square * norm
        });
        LatticeMap { affine }
    }
}

impl FeatureMap for LatticeMap {
    fn dim(&self) -> usize {
        self.affine.dim()
    }

    fn rank(&self) -> usize {
        self.affine.rank()
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        self.affine.fill(points, first, stride, out);
    }
}
