//! A map from a function.

use std::fmt;

use super::{FeatureMap, check_dimension};
use crate::error::{Error, Result};
use crate::measure::{Points, Values};

/// The map whose features are what a function writes: see [`from_fn`].
pub struct FromFn<F> {
    dim: usize,
    rank: usize,
    function: F,
}

/// A map of points of `dim` coordinates to `rank` features, from a function that is given a point and writes its features.
///
/// The kernel is `k(x, y) = phi(x) . phi(y)`, the cost that belongs to it `-eps log k(x, y)`. All features have to be
/// positive and finite at the points of a problem, and the function has to give the same features for the same point. What
/// is not so at some point is an [`Error::Feature`] with the number of the point, before anything is solved.
///
/// The function writes the features themselves. A map whose features leave the range of floats can give their logarithms
/// instead: implement [`FeatureMap`] for it.
///
/// ```
/// use std::sync::Arc;
/// use orthant::{Measure, Method, Options, Points, features, rot, options::Features};
/// // A kernel of points of the plane: 1 + exp(x_1 + y_1) + exp(x_2 + y_2).
/// let map = features::from_fn(2, 3, |x, out| {
///     out.copy_from_slice(&[1.0, x[0].exp(), x[1].exp()]);
/// })?;
/// let method = Method::Factored(Features::Map(Arc::new(map)));
/// let options = Options::builder(0.5).method(method).build()?;
/// let mu = Measure::uniform(Points::new(vec![0.0, 0.0, 1.0, 0.5], 2)?);
/// let nu = Measure::uniform(Points::new(vec![0.3, 0.9, 1.0, 0.2, 0.4, 0.4], 2)?);
/// assert!(rot(&mu, &nu, &options)?.converged());
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn from_fn<F>(dim: usize, rank: usize, function: F) -> Result<FromFn<F>>
where
    F: Fn(&[f64], &mut [f64]) + Send + Sync,
{
    if dim == 0 {
        return Err(Error::NoCoordinates);
    }
    if rank == 0 {
        let (name, expected) = ("the number of features", "at least 1");
        return Err(Error::Option { name, expected, value: 0.0 });
    }
    Ok(FromFn { dim, rank, function })
}

impl<F: Fn(&[f64], &mut [f64]) + Send + Sync> FromFn<F> {
    /// Room for a point in double precision, where points are not.
    fn room(&self, points: &Points<'_>) -> Vec<f64> {
        match points.values() {
            Values::F64(_) => Vec::new(),
            Values::F32(_) => vec![0.0; self.dim],
        }
    }

    /// Writes the features of point `i`.
    fn write(&self, points: &Points<'_>, i: usize, room: &mut [f64], out: &mut [f64]) {
        match points.values() {
            Values::F64(values) => (self.function)(&values[i * self.dim..(i + 1) * self.dim], out),
            Values::F32(_) => {
                points.point(i, room);
                (self.function)(room, out);
            }
        }
    }
}

impl<F: Fn(&[f64], &mut [f64]) + Send + Sync> FeatureMap for FromFn<F> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn check(&self, points: &Points<'_>) -> Result<()> {
        check_dimension(self.dim, points)?;
        let (mut room, mut features) = (self.room(points), vec![0.0; self.rank]);
        for i in 0..points.len() {
            // What the function does not write is no feature.
            features.fill(f64::NAN);
            self.write(points, i, &mut room, &mut features);
            if let Some(k) = features.iter().position(|f| !(*f > 0.0 && f.is_finite())) {
                return Err(Error::Feature { row: i + 1, column: k + 1, value: features[k] });
            }
        }
        Ok(())
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        let mut room = self.room(points);
        for (i, row) in (first..).zip(out.chunks_exact_mut(stride)) {
            let features = &mut row[..self.rank];
            self.write(points, i, &mut room, features);
            for f in features {
                *f = f.ln();
            }
        }
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn")
            .field("dim", &self.dim)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}
