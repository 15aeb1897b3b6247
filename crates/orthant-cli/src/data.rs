//! Clouds made from seeds, so that the demonstration and the benchmarks need no files.

use orthant::{Measure, Points};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The problem of the paper's Figure 1: `N((1, 1), I)` against `N(0, 0.1 I)` in the plane.
pub(crate) fn figure_1(n: usize, seed: u64) -> [Vec<f64>; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut cloud = |mean: f64, variance: f64| -> Vec<f64> {
        (0..2 * n)
            .map(|_| {
                let z: f64 = StandardNormal.sample(&mut rng);
                mean + variance.sqrt() * z
            })
            .collect()
    };
    [cloud(1.0, 1.0), cloud(0.0, 0.1)]
}

/// The uniform measure on the first `n` points of the plane in `values`.
pub(crate) fn uniform(values: &[f64], n: usize) -> orthant::Result<Measure<'_>> {
    Ok(Measure::uniform(Points::new(&values[..2 * n], 2)?))
}

/// Two normal clouds of `n` points, the second wider on some axes and moved.
pub(crate) fn gaussians(n: usize, dim: usize, seed: u64) -> orthant::Result<[Measure<'static>; 2]> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut cloud = |mean: f64, turn: usize| {
        let values: Vec<f64> = (0..n * dim)
            .map(|i| {
                let z: f64 = StandardNormal.sample(&mut rng);
                mean + z / ((i + turn) % dim + 1) as f64
            })
            .collect();
        Ok(Measure::uniform(Points::new(values, dim)?))
    };
    Ok([cloud(0.0, 0)?, cloud(0.5, dim / 2)?])
}
