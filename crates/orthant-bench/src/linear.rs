//! Growth of the time with the number of points.

use std::time::Duration;

use orthant::{Method, Options, Precision, rot};
use orthant_support::Failure;
use orthant_support::clouds::figure_1;
use serde_json::json;

use crate::measure::{EPSILON, interleaved, line};

/// Growth of the time of a solve with the number of points.
pub(crate) fn run(quick: bool) -> Result<(), Failure> {
    let (sizes, repeats) = if quick { ([20_000, 200_000], 2) } else { ([200_000, 2_000_000], 5) };
    let rank = 100;
    let clouds = figure_1(sizes[1], 0);
    let clouds = [clouds.measures(sizes[0])?, clouds.measures(sizes[1])?];
    let options = Options::builder(EPSILON)
        .method(Method::paper())
        .rank(rank)
        .precision(Precision::F32)
        .max_iterations(10)
        .time_limit(Duration::from_secs(600))
        .build()?;
    let mut failure = None;
    let mut iterations = [0; 2];
    let times: [f64; 2] =
        interleaved(repeats, |k| match rot(&clouds[k][0], &clouds[k][1], &options) {
            Ok(solution) => iterations[k] = solution.iterations,
            Err(error) => failure = Some(error),
        });
    if let Some(error) = failure {
        return Err(error.into());
    }
    let exponent = (times[1] / times[0]).ln() / (sizes[1] as f64 / sizes[0] as f64).ln();
    line(&json!({
        "bench": "linear", "precision": "f32", "rank": rank, "n": sizes, "seconds": times,
        "iterations": iterations, "exponent": exponent,
    }))
}
