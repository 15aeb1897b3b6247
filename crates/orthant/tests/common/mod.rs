//! Clouds for the tests, from seeds.
#![allow(dead_code, reason = "each test file uses some of these")]

pub(crate) mod shapes;

use orthant::{Measure, Points};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// `n` draws from `N(mean, deviation^2 I)` in `d` dimensions.
pub(crate) fn normal(n: usize, mean: &[f64], deviation: f64, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n)
        .flat_map(|_| mean.to_vec())
        .map(|m| {
            let z: f64 = StandardNormal.sample(&mut rng);
            m + deviation * z
        })
        .collect()
}

/// The uniform measure on such draws.
pub(crate) fn normal_measure(
    n: usize,
    mean: &[f64],
    deviation: f64,
    seed: u64,
) -> Measure<'static> {
    Measure::uniform(Points::new(normal(n, mean, deviation, seed), mean.len()).unwrap())
}

/// Weights `10^-8 .. 1`, spread evenly in their logarithm and shuffled by the seed.
pub(crate) fn wide_weights(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| 10f64.powf(-8.0 * rng.random::<f64>())).collect()
}

/// The two clouds of the paper's Figure 1.
pub(crate) fn figure_1(n: usize, m: usize, seed: u64) -> (Measure<'static>, Measure<'static>) {
    (
        normal_measure(n, &[1.0, 1.0], 1.0, 2 * seed),
        normal_measure(m, &[0.0, 0.0], 0.1_f64.sqrt(), 2 * seed + 1),
    )
}

/// `|x - y|` relative to the larger of the two.
pub(crate) fn relative(x: f64, y: f64) -> f64 {
    (x - y).abs() / x.abs().max(y.abs()).max(f64::MIN_POSITIVE)
}
