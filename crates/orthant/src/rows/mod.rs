//! Rows of logarithms, evaluated on demand: what kernels are made of.

mod costs;
mod ground;
mod guarded;
mod tiles;

pub use costs::CostMatrix;
pub(crate) use costs::{CostRows, FeatureCost};
pub(crate) use ground::GroundRows;
pub(crate) use tiles::{TileFloat, Tiles, WholeRows, fill_by_tiles, scratch_of_tiles};

use crate::comm::Span;

/// A source of rows of logarithms, evaluated on demand.
pub(crate) trait LogRows: Send + Sync {
    /// The rows, among those of all processes.
    fn span(&self) -> &Span;

    /// Number of rows.
    fn rows(&self) -> usize {
        self.span().len()
    }

    /// Number of entries of a row.
    fn rank(&self) -> usize;

    /// Length of the scratch space that [`LogRows::fill`] needs.
    fn scratch(&self) -> usize {
        0
    }

    /// Rows that should be asked for together, at least.
    fn group(&self) -> usize {
        1
    }

    /// Writes the rows `first, first + 1, ...` to the rows of `out`, which are `stride` apart.
    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]);

    /// The rows in tiles, where these are quicker than one row after the other.
    fn tiles(&self) -> Option<&dyn Tiles<f64>> {
        None
    }

    /// The same in single precision.
    fn tiles_f32(&self) -> Option<&dyn Tiles<f32>> {
        None
    }

    /// Whether the numbers themselves are there, between [`LEAST`] and [`MOST`]: whoever wants them, times something
    /// moderate, need not take logarithms first.
    fn is_plain(&self) -> bool {
        false
    }

    /// [`LogRows::fill`] with the numbers themselves, if they are there.
    fn fill_plain(&self, _first: usize, _stride: usize, _out: &mut [f64]) {}
}

/// See [`LogRows::is_plain`]: products of three such numbers stay far from the ends of the range.
pub(crate) const LEAST: f64 = 1e-100;

pub(crate) const MOST: f64 = 1e100;

impl<R: LogRows + ?Sized> LogRows for &R {
    fn span(&self) -> &Span {
        (**self).span()
    }

    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn scratch(&self) -> usize {
        (**self).scratch()
    }

    fn group(&self) -> usize {
        (**self).group()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
        (**self).fill(first, stride, out, scratch);
    }

    fn tiles(&self) -> Option<&dyn Tiles<f64>> {
        (**self).tiles()
    }

    fn tiles_f32(&self) -> Option<&dyn Tiles<f32>> {
        (**self).tiles_f32()
    }

    fn is_plain(&self) -> bool {
        (**self).is_plain()
    }

    fn fill_plain(&self, first: usize, stride: usize, out: &mut [f64]) {
        (**self).fill_plain(first, stride, out);
    }
}
