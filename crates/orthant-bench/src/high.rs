//! Many dimensions: samples of the clouds against all pairs.

use std::time::Instant;

use orthant::{Measure, Method, Options, Solution, mean_squared_distance, rot};
use orthant_support::Failure;
use orthant_support::clouds::clusters;
use serde_json::json;

use crate::measure::line;

/// Relative accuracy that is asked for, and epsilon as a part of the mean cost.
const ACCURACY: f64 = 1e-2;
const PART: f64 = 0.05;
/// Iterations of the exact kernel that are timed; a whole solve of so many points would take an hour.
const TIMED: usize = 2;

pub(crate) fn run(quick: bool) -> Result<(), Failure> {
    let (sizes, few, dims) = if quick {
        ([2_000, 8_000], 1_000, &[28][..])
    } else {
        ([100_000, 1_000_000], 5_000, &[28, 50][..])
    };
    for &dim in dims {
        measure(dim, sizes, few)?;
    }
    Ok(())
}

/// Samples of clouds of both sizes, and the exact kernel of the smaller: the time of an iteration, and as many of them as a
/// solve of few points takes.
fn measure(dim: usize, sizes: [usize; 2], few: usize) -> Result<(), Failure> {
    let clouds = clusters(sizes[1], dim, 1);
    let epsilon = {
        let [mu, nu] = clouds.measures(sizes[0])?;
        PART * mean_squared_distance(&mu, &nu)?
    };
    let solve = |n: usize, method: Method, most: usize| -> Result<(Solution, f64), Failure> {
        let measures: [Measure<'_>; 2] = clouds.measures(n)?;
        let options = Options::builder(epsilon)
            .method(method)
            .accuracy(ACCURACY)
            .tolerance(0.02 * ACCURACY)
            .max_iterations(most)
            .build()?;
        let begun = Instant::now();
        let solution = rot(&measures[0], &measures[1], &options)?;
        Ok((solution, begun.elapsed().as_secs_f64()))
    };
    let exact = solve(few, Method::online(), 10_000)?.0;
    let check = solve(few, Method::sampled(), 10_000)?.0;
    let timed = [1, 1 + TIMED].map(|most| solve(sizes[0], Method::online(), most));
    let [once, more] = timed;
    let iteration = (more?.1 - once?.1) / TIMED as f64;
    let online = iteration * exact.iterations as f64;
    let mut seconds = [0.0; 2];
    for (n, seconds) in sizes.into_iter().zip(&mut seconds) {
        let (s, time) = solve(n, Method::sampled(), 10_000)?;
        *seconds = time;
        let interval = s.interval_kl.map(|i| [i.low / s.value_kl - 1.0, i.high / s.value_kl - 1.0]);
        line(&json!({
            "bench": "high", "dim": dim, "n": n, "epsilon": epsilon, "accuracy": ACCURACY,
            "seconds": time, "value_kl": s.value_kl, "interval": interval,
            "sample_size": s.sampling.map(|s| s.size), "samples": s.sampling.map(|s| s.samples),
            "rows": s.sampling.map(|s| s.rows), "upper_size": s.sampling.map(|s| s.upper_size),
            "accurate": s.meets_accuracy(ACCURACY),
            "stderr": s.sampling.map(|sampling| sampling.estimate.stderr / s.value_kl),
        }))?;
    }
    line(&json!({
        "bench": "high", "dim": dim, "n": sizes, "seconds": seconds,
        "exponent": (seconds[1] / seconds[0]).ln() / (sizes[1] as f64 / sizes[0] as f64).ln(),
        "online_iteration": iteration, "online_iterations": exact.iterations,
        "online_seconds": online, "times_as_fast": online / seconds[0],
        "few": few, "value_of_few": exact.value_kl,
        "error_of_few": check.value_kl / exact.value_kl - 1.0,
    }))
}
