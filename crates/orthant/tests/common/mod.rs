//! Clouds for the tests, from seeds.
#![allow(dead_code, reason = "each test file uses some of these")]

pub(crate) mod shapes;

use orthant::features::FeatureMatrix;
use orthant::{CostMatrix, Measure, Method, Options, Points, Solver};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The kernel of a test: a method, and matrices where these give the kernel.
#[derive(Debug, Clone)]
pub(crate) struct Kernel<'d> {
    pub(crate) method: Method,
    costs: Option<CostMatrix<'d>>,
    features: Option<[FeatureMatrix<'d>; 2]>,
}

impl From<Method> for Kernel<'_> {
    fn from(method: Method) -> Self {
        Kernel { method, costs: None, features: None }
    }
}

impl<'d> Kernel<'d> {
    pub(crate) fn costs(method: Method, matrix: CostMatrix<'d>) -> Self {
        Kernel { method, costs: Some(matrix), features: None }
    }

    pub(crate) fn features(method: Method, x: FeatureMatrix<'d>, y: FeatureMatrix<'d>) -> Self {
        Kernel { method, costs: None, features: Some([x, y]) }
    }

    /// A solve with these options, whose method is that of the kernel.
    pub(crate) fn solver<'s>(&self, options: &Options) -> Solver<'s, 'd> {
        let mut solver = Solver::new(options);
        if let Some(matrix) = &self.costs {
            solver = solver.costs(matrix.clone());
        }
        if let Some([x, y]) = &self.features {
            solver = solver.features(x.clone(), y.clone());
        }
        solver
    }
}

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
