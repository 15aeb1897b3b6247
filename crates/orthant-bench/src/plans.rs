//! What a plan is good for: pairs of points, gradients and maps.

use std::hint::black_box;
use std::time::Instant;

use orthant::{Method, Options, Side, plan};
use orthant_support::Failure;
use orthant_support::clouds::figure_1;
use serde_json::json;

use crate::measure::{EPSILON, interleaved, line};

/// Pairs of a plan: what one takes when many are drawn, and what a few take.
pub(crate) fn pairs(quick: bool) -> Result<(), Failure> {
    let count = if quick { 100_000 } else { 1_000_000 };
    for (name, method, n) in [
        ("sobol", Method::gaussian(), if quick { 10_000 } else { 100_000 }),
        ("lattice", Method::lattice(), if quick { 100_000 } else { 1_000_000 }),
        ("online", Method::online(), if quick { 2_000 } else { 20_000 }),
    ] {
        let clouds = figure_1(n, 0);
        let [mu, nu] = clouds.measures(n)?;
        let mut builder = Options::builder(0.05).method(method).accuracy(1e-4).max_iterations(100);
        if name == "sobol" {
            builder = builder.rank(if quick { 200 } else { 1000 });
        }
        let options = builder.build()?;
        let begun = Instant::now();
        let plan = plan(&mu, &nu, &options)?;
        let solve = begun.elapsed().as_secs_f64();
        let seconds = |count: usize| -> Result<f64, Failure> {
            let begun = Instant::now();
            black_box(plan.sample(count, 0)?);
            Ok(begun.elapsed().as_secs_f64())
        };
        let (few, many, more) = (seconds(1)?, seconds(count)?, seconds(4 * count)?);
        line(&json!({
            "bench": "pairs", "method": name, "n": n, "m": n, "rank": plan.solution().rank, "pairs": count,
            "threads": rayon::current_num_threads(), "seconds_solve": solve, "seconds_one_pair": few,
            "seconds": many, "ns_per_pair": 1e9 * many / count as f64,
            "ns_per_further_pair": 1e9 * (more - many) / (3 * count) as f64,
            "marginal_error": plan.solution().marginal_error_x,
        }))?;
    }
    Ok(())
}

/// What a plan is good for, in units of an iteration: gradients and maps, at two sizes.
pub(crate) fn gradients(quick: bool) -> Result<(), Failure> {
    for (name, method, sizes) in [
        ("sobol", Method::gaussian(), if quick { [1_000, 2_000] } else { [25_000, 100_000] }),
        ("lattice", Method::lattice(), if quick { [5_000, 10_000] } else { [250_000, 1_000_000] }),
        ("online", Method::online(), if quick { [500, 1_000] } else { [5_000, 20_000] }),
    ] {
        let mut before: Option<[f64; 2]> = None;
        for n in sizes {
            let clouds = figure_1(n, 0);
            let [mu, nu] = clouds.measures(n)?;
            let mut builder = Options::builder(EPSILON).method(method.clone()).accuracy(1e-4);
            if name == "sobol" {
                builder = builder.rank(if quick { 200 } else { 600 });
            }
            let options = builder.build()?;
            let plan = plan(&mu, &nu, &options)?;
            let solution = plan.solution();
            let iteration = solution.times.solve.as_secs_f64() / solution.iterations as f64;
            let mut failure = None;
            let [points, epsilon, map] = interleaved(if quick { 1 } else { 3 }, |k| {
                let gradient = plan.gradient();
                let done = match k {
                    0 => gradient.points(Side::X).map(|g| g.len()),
                    1 => gradient.epsilon().map(|_| 1),
                    _ => plan.barycentric(Side::X).map(|m| m.len()),
                };
                failure = black_box(done).err().or(failure.take());
            });
            if let Some(error) = failure {
                return Err(error.into());
            }
            let ratio = n as f64 / sizes[0] as f64;
            let exponent = |k: usize, now: f64| before.map(|b| (now / b[k]).ln() / ratio.ln());
            line(&json!({
                "bench": "gradients", "method": name, "n": n, "m": n, "rank": solution.rank,
                "threads": rayon::current_num_threads(), "iterations": solution.iterations,
                "seconds_iteration": iteration, "seconds_by_points": points,
                "seconds_by_epsilon": epsilon, "seconds_map": map,
                "by_points_in_iterations": points / iteration, "map_in_iterations": map / iteration,
                "exponent_by_points": exponent(0, points), "exponent_map": exponent(1, map),
                "marginal_error": solution.marginal_error_x,
            }))?;
            before = Some([points, map]);
        }
    }
    Ok(())
}
