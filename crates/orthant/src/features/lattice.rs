//! Features of the Gaussian kernel on the nodes of a lattice, one by one: to be stored.

use super::Affine;
use crate::anchors::Lattice;
use crate::coordinates::Frame;

/// The features of a lattice as a map, for points in its coordinates.
pub(crate) fn lattice_map(lattice: &Lattice) -> Affine {
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
    Affine::new(Frame::unit(dim), kept.len(), -square, 2.0 * square, node, |k| {
        let norm: f64 = (0..dim).map(|a| node(k, a).powi(2)).sum();
        [lattice.log_norm(), -square * norm]
    })
    .with_power(-0.25 * dim as f64)
}
