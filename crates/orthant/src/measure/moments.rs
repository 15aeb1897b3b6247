//! What clouds look like as a whole.

use super::Points;

/// Smallest and largest coordinate of every axis.
pub(crate) fn extremes(points: &Points<'_>) -> Vec<[f64; 2]> {
    (0..points.dim())
        .map(|a| {
            let [low, high] = points.span().maxima(|i| {
                let x = points.coordinate(i, a);
                [-x, x]
            });
            [-low, high]
        })
        .collect()
}
