//! What certificates add to the time of a solve.

use std::time::Instant;

use orthant::{Measure, Method, Options, Points, Precision, rot};
use orthant_support::Failure;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde_json::json;

use crate::measure::line;

/// What a certificate adds to a solve with random features.
pub(crate) fn run(quick: bool) -> Result<(), Failure> {
    let n = if quick { 2_000 } else { 100_000 };
    for dim in [5, 20] {
        let [mu, nu] = gaussians(n, dim, 2)?;
        let epsilon = 0.1 * orthant::mean_squared_distance(&mu, &nu)?;
        for (rank, precision) in [(1_000, Precision::F32), (1_000, Precision::F64)] {
            let mut best = [f64::INFINITY; 2];
            let mut iterations = 0;
            for _ in 0..5 {
                for (certify, best) in [false, true].into_iter().zip(&mut best) {
                    let options = Options::builder(epsilon).method(Method::gaussian()).rank(rank);
                    let options = options.precision(precision).certify(certify).build()?;
                    let begun = Instant::now();
                    iterations = rot(&mu, &nu, &options)?.iterations;
                    *best = best.min(begun.elapsed().as_secs_f64());
                }
            }
            let [without, with] = best;
            line(&json!({
                "bench": "certificate", "n": n, "dim": dim, "rank": rank,
                "precision": if precision == Precision::F32 { "f32" } else { "f64" },
                "iterations": iterations, "seconds": without, "seconds_certified": with,
                "cost": with / without - 1.0,
            }))?;
        }
    }
    Ok(())
}

/// Two normal clouds of `n` points, the second wider on some axes and moved.
fn gaussians(n: usize, dim: usize, seed: u64) -> orthant::Result<[Measure<'static>; 2]> {
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
