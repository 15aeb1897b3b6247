//! Arithmetic that knows nothing of transport: vectors, matrices, sums of rows.

mod exact_sum;
pub(crate) mod linalg;
pub(crate) mod simd;

pub(crate) use exact_sum::{Add, ExactSums, sum_few};

/// `log sum exp` of some logarithms.
pub(crate) fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if top.is_finite() { top + logs.map(|l| (l - top).exp()).sum::<f64>().ln() } else { top }
}

/// The sum of the products.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
