//! How times are measured, and how they are told.

use std::time::Instant;

use orthant_support::{Failure, stdout};
use serde_json::Value;

/// Regularisation of most measurements, on the problem of the paper's Figure 1.
pub(crate) const EPSILON: f64 = 0.5;

/// Prints one line.
pub(crate) fn line(value: &Value) -> Result<(), Failure> {
    stdout::print(value)
}

/// The best times of several pieces of work, done in turn so that all see the same machine. Each is
/// done twice and the second time counts, so that each finds the caches as it left them.
pub(crate) fn interleaved<const K: usize>(repeats: usize, mut work: impl FnMut(usize)) -> [f64; K] {
    let mut best = [f64::INFINITY; K];
    for _ in 0..repeats {
        for (k, best) in best.iter_mut().enumerate() {
            work(k);
            let begun = Instant::now();
            work(k);
            *best = best.min(begun.elapsed().as_secs_f64());
        }
    }
    best
}
