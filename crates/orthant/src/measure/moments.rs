//! What clouds look like as a whole.

use rayon::prelude::*;

use super::Points;

/// Smallest and largest coordinate of every axis.
pub(crate) fn extremes(points: &Points<'_>) -> Vec<[f64; 2]> {
    (0..points.dim())
        .map(|a| {
            (0..points.len())
                .into_par_iter()
                .with_min_len(4096)
                .map(|i| [points.coordinate(i, a); 2])
                .reduce(
                    || [f64::INFINITY, f64::NEG_INFINITY],
                    |p, q| [p[0].min(q[0]), p[1].max(q[1])],
                )
        })
        .collect()
}
