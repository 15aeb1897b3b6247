//! Precision and recall by nearest neighbours: Kynkaanniemi et al., *Improved Precision and Recall Metric for Assessing
//! Generative Models*, `NeurIPS` 2019.

use rayon::prelude::*;

/// How many samples look like data, and how much of the data samples cover.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct PrecisionRecall {
    /// Part of the samples that lie in the manifold of the data.
    pub precision: f64,
    /// Part of the data that lies in the manifold of the samples.
    pub recall: f64,
}

/// Both, of rows of `dim` coordinates. The manifold of a cloud is the union of balls around its points, each as large as
/// the distance to the `neighbours`-th nearest other point of the cloud.
///
/// # Panics
///
/// If a cloud has no more than `neighbours` points.
pub fn precision_recall(
    data: &[f32],
    samples: &[f32],
    dim: usize,
    neighbours: usize,
) -> PrecisionRecall {
    let inside = |points: &[f32], manifold: &[f32]| {
        let radii = radii(manifold, dim, neighbours);
        let hits = points.par_chunks_exact(dim).filter(|point| {
            let balls = manifold.chunks_exact(dim).zip(&radii);
            balls.into_iter().any(|(centre, radius)| distance(point, centre) <= *radius)
        });
        hits.count() as f64 / (points.len() / dim) as f64
    };
    PrecisionRecall { precision: inside(samples, data), recall: inside(data, samples) }
}

/// Squared distances to the `neighbours`-th nearest other point.
fn radii(points: &[f32], dim: usize, neighbours: usize) -> Vec<f64> {
    assert!(points.len() / dim > neighbours, "too few points for so many neighbours");
    let one = |(i, point): (usize, &[f32])| {
        let others = points.chunks_exact(dim).enumerate().filter(|(j, _)| *j != i);
        let mut distances: Vec<f64> = others.map(|(_, other)| distance(point, other)).collect();
        *distances.select_nth_unstable_by(neighbours - 1, f64::total_cmp).1
    };
    points.par_chunks_exact(dim).enumerate().map(one).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    #[test]
    fn radii_are_distances_to_the_kth_other_point() {
        let points = [0.0, 1.0, 3.0, 7.0, 7.0];
        assert_eq!(radii(&points, 1, 1), [1.0, 1.0, 4.0, 0.0, 0.0]);
        assert_eq!(radii(&points, 1, 2), [9.0, 4.0, 9.0, 16.0, 16.0]);
    }

    #[test]
    fn what_is_missing_lowers_recall_and_what_is_foreign_precision() {
        // Data are two clusters, and so on: the parts are what they are made to be.
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut cluster = |at: f32, count: usize| -> Vec<f32> {
            (0..2 * count)
                .map(|_| at + Distribution::<f32>::sample(&StandardNormal, &mut rng))
                .collect()
        };
        let data = [cluster(0.0, 300), cluster(100.0, 100)].concat();
        // One cluster only, and a fifth of the samples nowhere near.
        let samples = [cluster(0.0, 400), cluster(-100.0, 100)].concat();
        let found = precision_recall(&data, &samples, 2, 3);
        assert!((found.precision - 0.8).abs() < 0.04, "{found:?}");
        assert!((found.recall - 0.75).abs() < 0.04, "{found:?}");
        let same = precision_recall(&data, &data, 2, 3);
        assert_eq!((same.precision, same.recall), (1.0, 1.0));
    }
}
