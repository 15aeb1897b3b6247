//! The lattice, whose features are never stored.

use std::time::Instant;

use orthant::bench::{Sweep, on_lattice};
use orthant::features::Gaussian;
use orthant::{Method, Options, rot};
use orthant_support::clouds::figure_1;
use orthant_support::{Failure, memory};
use serde_json::json;

use crate::measure::{EPSILON, interleaved, line};

/// Epsilon and error of the kernel for a lattice of about 576 nodes.
const LATTICE: [f64; 2] = [0.25, 1e-3];

/// An iteration on a lattice, whose features are never stored, against one over as many stored ones.
pub(crate) fn run(quick: bool) -> Result<(), Failure> {
    let (n, repeats) = if quick { (20_000, 5) } else { (100_000, 20) };
    let clouds = figure_1(n, 0);
    let [mu, nu] = clouds.measures(n)?;
    let many = rayon::current_num_threads();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(Failure::other)?;
    let [epsilon, ratio] = LATTICE;
    on_lattice::<f64, _>(&mu, &nu, epsilon, ratio, |double| {
        on_lattice::<f32, _>(&mu, &nu, epsilon, ratio, |single| {
            let rank = single.rank();
            let map = Gaussian::paper(&mu, &nu, EPSILON, rank, 0, true)?;
            let mut stored = Sweep::<f32>::new(&map, &mu, &nu)?;
            let mut failure = None;
            let mut errors = [f64::NAN; 2];
            let times: [f64; 4] = interleaved(repeats, |k| {
                let done = match k {
                    0 => stored.iterate(),
                    1 => single.iterate(),
                    2 => double.iterate(),
                    _ => one.install(|| single.iterate()),
                };
                match done {
                    Ok(e) if k == 1 || k == 2 => errors[k - 1] = e,
                    Ok(_) => {}
                    Err(e) => failure = Some(e),
                }
            });
            if let Some(error) = failure {
                return Err(Failure::from(error));
            }
            for (k, precision) in [(1, "f32"), (2, "f64")] {
                let mut entry = json!({
                    "bench": "lattice", "precision": precision, "n": n, "m": n, "rank": rank,
                    "threads": many, "seconds": times[k],
                    "ns_per_point": 1e9 * times[k] / (2 * n) as f64,
                    "speedup_over_stored_f32": times[0] / times[k],
                    "marginal_error": errors[k - 1],
                });
                if k == 1 {
                    entry["speedup_over_one_thread"] = json!(times[3] / times[1]);
                }
                line(&entry)?;
            }
            Ok(())
        })
    })???;
    growth(quick)
}

/// Growth of the time of whole solves on a lattice with the number of points.
fn growth(quick: bool) -> Result<(), Failure> {
    let sizes: &[usize] =
        if quick { &[10_000, 100_000] } else { &[100_000, 1_000_000, 10_000_000] };
    let most = sizes[sizes.len() - 1];
    let clouds = figure_1(most, 0);
    let mut times = Vec::new();
    let mut iterations = Vec::new();
    let mut bounds = Vec::new();
    for &n in sizes {
        let [mu, nu] = clouds.measures(n)?;
        let options = Options::builder(0.05).method(Method::lattice()).accuracy(1e-4).build()?;
        let mut best = f64::INFINITY;
        let repeats = if n > 1_000_000 { 1 } else { 3 };
        for repeat in 0..repeats {
            let begun = Instant::now();
            let solution = rot(&mu, &nu, &options)?;
            best = best.min(begun.elapsed().as_secs_f64());
            if repeat == 0 {
                iterations.push(solution.iterations);
                bounds.push(solution.bound.map(|bound| bound / solution.value_kl));
            }
        }
        times.push(best);
    }
    let last = times.len() - 1;
    let exponent = (times[last] / times[0]).ln() / (most as f64 / sizes[0] as f64).ln();
    line(&json!({
        "bench": "lattice_growth", "precision": "f64", "epsilon": 0.05, "accuracy": 1e-4, "n": sizes,
        "seconds": times, "iterations": iterations, "relative_bound": bounds, "exponent": exponent,
        "peak_bytes": memory::peak(),
    }))
}
