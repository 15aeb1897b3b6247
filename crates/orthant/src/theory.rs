//! q.
use lambert_w::lambert_w0;
/// q
pub fn paper_q(radius: f64, epsilon: f64, dim: usize) -> f64 {
    0.5 * lambert_w0(radius * radius / (epsilon * dim as f64)).exp()
}
