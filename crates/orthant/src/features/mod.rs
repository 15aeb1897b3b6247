//! Positive feature maps: `k(x, y) = phi(x) . phi(y)` with `phi` positive.
//!
//! Every map gives the *logarithms* of its features, so that no entry under- or overflows whatever
//! epsilon is; the kernels scale them before they leave the logarithmic domain.

mod affine;
mod arc_cosine;
mod explicit;
mod gaussian;
mod lattice;
mod linear;
mod nystrom;

pub(crate) use affine::{Affine, SquaredEuclidean};
pub use arc_cosine::ArcCosine;
pub use explicit::FeatureMatrix;
pub use gaussian::Gaussian;
pub(crate) use lattice::lattice_map;
pub use linear::Linear;
pub(crate) use nystrom::{Basis, Spectrum};

use crate::error::{Error, Result};
use crate::kernel::LogRows;
use crate::measure::Points;

/// A map from points to `rank` positive features.
///
/// Implement it to bring a kernel of your own; [`Gaussian`], [`ArcCosine`] and [`Linear`] are here.
pub trait FeatureMap: std::fmt::Debug + Send + Sync {
    /// Number of coordinates of the points that the map takes.
    fn dim(&self) -> usize;

    /// Number of features.
    fn rank(&self) -> usize;

    /// Checks that the map is defined and positive at these points.
    fn check(&self, points: &Points<'_>) -> Result<()> {
        check_dimension(self.dim(), points)
    }

    /// Writes `log phi_k(x_i)` for the points `i = first, first + 1, ...` to the rows of `out`.
    ///
    /// Rows are [`stride`]`(rank)` apart; what lies between is padding. A feature may be
    /// zero (its logarithm is minus infinity), but not all features of a point.
    ///
    /// Called inside solvers' loops, from several threads: it should not allocate.
    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]);
}

/// Distance of rows of `rank` features: the next multiple of the width of the vectors.
///
/// ```
/// assert_eq!(orthant::features::stride(600), 600);
/// assert_eq!(orthant::features::stride(601), 608);
/// ```
pub fn stride(rank: usize) -> usize {
    crate::simd::padded(rank)
}

pub(crate) fn check_dimension(dim: usize, points: &Points<'_>) -> Result<()> {
    if points.dim() == dim {
        Ok(())
    } else {
        Err(Error::MapDimension { map: dim, points: points.dim() })
    }
}

/// The features of some points, as rows of logarithms.
#[derive(Debug)]
pub(crate) struct Mapped<'a> {
    map: &'a dyn FeatureMap,
    points: Points<'a>,
}

impl<'a> Mapped<'a> {
    /// `map` must be defined at the points: see [`FeatureMap::check`].
    pub(crate) fn new(map: &'a dyn FeatureMap, points: Points<'a>) -> Self {
        Mapped { map, points }
    }
}

impl LogRows for Mapped<'_> {
    fn rows(&self) -> usize {
        self.points.len()
    }

    fn rank(&self) -> usize {
        self.map.rank()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        self.map.log_features(&self.points, first, stride, out);
    }
}
