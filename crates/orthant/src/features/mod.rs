//! Positive feature maps: `k(x, y) = phi(x) . phi(y)` with `phi` positive.
//!
//! Every map gives the *logarithms* of its features, so that no entry under- or overflows whatever
//! epsilon is; the kernels scale them before they leave the logarithmic domain.

mod affine;
mod arc_cosine;
mod explicit;
mod from_fn;
mod gaussian;
pub(crate) mod landmarks;
mod lattice;
mod linear;
mod nystrom;

pub(crate) use affine::{Affine, SquaredEuclidean};
pub use arc_cosine::ArcCosine;
pub use explicit::FeatureMatrix;
pub use from_fn::{FromFn, from_fn};
pub use gaussian::Gaussian;
pub use landmarks::Landmarks;
pub(crate) use lattice::lattice_map;
pub use linear::Linear;
pub(crate) use nystrom::{Basis, Spectrum};

use crate::comm::Span;
use crate::error::{Error, Result};
use crate::measure::Points;
use crate::rows::{GroundRows, LogRows};

/// A map from points to `rank` positive features.
///
/// Implement it to bring a kernel of your own, or give a function to [`from_fn`]; [`Gaussian`], [`ArcCosine`] and
/// [`Linear`] are here.
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

    /// The derivatives of the map, for [`Gradient`](crate::Gradient)s. Default: [`Error::NoDerivative`].
    fn derivative(&self) -> Result<&dyn Derivative> {
        Err(Error::NoDerivative {
            by: "the points",
            reason: "the feature map does not offer it",
            remedy: "implement FeatureMap::derivative, or take the gradient by the features themselves",
        })
    }
}

/// The derivatives of the logarithms of a map's features, each summed with weights `w_ik` of point `i` and feature
/// `k`: nothing of size points times features times coordinates is ever there.
///
/// Weights come in rows, `stride` apart, for the points `first, first + 1, ...`; they are zero in the padding, and
/// where a feature is zero. The methods are called from several threads.
pub trait Derivative: Send + Sync {
    /// `out_ic = sum_k w_ik d log phi_k(x_i) / d x_ic`, a row of coordinates for each row of weights.
    fn points(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    );

    /// Number of parameters of the map: of the maps here, the coordinates of all anchors. Default: none.
    fn parameters(&self) -> usize {
        0
    }

    /// Adds `sum_ik w_ik d log phi_k(x_i) / d theta_p` to `out_p`, for every parameter.
    fn add_parameters(
        &self,
        _points: &Points<'_>,
        _first: usize,
        _stride: usize,
        _weights: &[f64],
        _out: &mut [f64],
    ) {
    }

    /// `sum_ik w_ik d log phi_k(x_i) / d log eps`, for maps that belong to an epsilon, all else fixed. Default: zero.
    fn log_epsilon(
        &self,
        _points: &Points<'_>,
        _first: usize,
        _stride: usize,
        _weights: &[f64],
    ) -> f64 {
        0.0
    }
}

impl Derivative for GroundRows<'_> {
    fn points(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        self.slopes(points, first, stride, weights, out);
    }
}

/// Distance of rows of `rank` features: the next multiple of the width of the vectors.
///
/// ```
/// assert_eq!(orthant::features::stride(600), 600);
/// assert_eq!(orthant::features::stride(601), 608);
/// ```
pub fn stride(rank: usize) -> usize {
    crate::numerics::simd::padded(rank)
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
    fn span(&self) -> &Span {
        self.points.span()
    }

    fn rank(&self) -> usize {
        self.map.rank()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        self.map.log_features(&self.points, first, stride, out);
    }
}

/// Compares the derivatives of a map with central differences; `moved` is the map with one parameter moved.
#[cfg(test)]
fn assert_derivatives(
    map: &dyn FeatureMap,
    points: &Points<'_>,
    tolerance: f64,
    moved: impl Fn(usize, f64) -> Box<dyn FeatureMap>,
) {
    let (rank, dim, width, rows) = (map.rank(), map.dim(), stride(map.rank()), points.len());
    let derivative = map.derivative().unwrap();
    // Weights that differ, and none where there is no feature.
    let logs = |map: &dyn FeatureMap, points: &Points<'_>| {
        let mut logs = vec![0.0; rows * width];
        map.log_features(points, 0, width, &mut logs);
        logs
    };
    let here = logs(map, points);
    let mut weights = vec![0.0; rows * width];
    for (k, (w, log)) in weights.iter_mut().zip(&here).enumerate() {
        if k % width < rank && log.is_finite() {
            *w = 0.3 + (k as f64).sin().abs();
        }
    }
    let sum = |map: &dyn FeatureMap, points: &Points<'_>| -> f64 {
        let logs = logs(map, points);
        weights.iter().zip(logs).filter(|(w, _)| **w > 0.0).map(|(w, l)| w * l).sum()
    };
    let close = |what: &str, found: f64, value: &dyn Fn(f64) -> f64| {
        let h = 1e-3;
        let expected =
            (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h);
        let scale = expected.abs().max(1.0);
        assert!((found - expected).abs() < tolerance * scale, "{what}: {found}, not {expected}");
    };
    let mut found = vec![f64::NAN; rows * dim];
    derivative.points(points, 0, width, &weights, &mut found);
    for (k, found) in found.iter().enumerate() {
        close("points", *found, &|h| {
            let mut values: Vec<f64> =
                (0..rows * dim).map(|i| points.coordinate(i / dim, i % dim)).collect();
            values[k] += h;
            sum(map, &Points::new(values, dim).unwrap())
        });
    }
    let mut found = vec![0.0; derivative.parameters()];
    derivative.add_parameters(points, 0, width, &weights, &mut found);
    for (p, found) in found.iter().enumerate() {
        close("parameters", *found, &|h| sum(&*moved(p, h), points));
    }
}
