//! Small epsilon by way of larger ones.
//!
//! The smaller epsilon is, the farther the potentials are from where a solve starts, and the less an iteration
//! moves them. As functions of position, `alpha - eps log a`, they change little with epsilon. So they are carried
//! down: each stage solves with a quarter of the epsilon of the one before, roughly, with features or a lattice of
//! its own, which for large epsilon are small.

use crate::options::Options;

/// Epsilon relative to the mean cost below which the stages take less time than they save: measured with all of
/// these kernels on five shapes of clouds, ten times as many iterations are saved at a tenth of it, and none above.
const SMALL: f64 = 5e-3;
/// The first stage has at least this epsilon, relative to the mean cost.
const FIRST: f64 = 0.1;
/// Epsilon of a stage over that of the next.
const FACTOR: f64 = 4.0;

/// How good a stage has to be.
pub(crate) const TOLERANCE: f64 = 1e-4;
/// And its features.
pub(crate) const ACCURACY: f64 = 1e-2;

/// The epsilons of the stages before the last, falling, for costs of this mean. Empty if they do not pay.
pub(crate) fn schedule(epsilon: f64, cost: f64) -> Vec<f64> {
    let mut stages = Vec::new();
    if epsilon < SMALL * cost && cost.is_finite() {
        let mut at = epsilon;
        while at < FIRST * cost {
            at *= FACTOR;
            stages.push(at);
        }
        stages.reverse();
    }
    stages
}

impl Options {
    /// The same for a larger epsilon on the way.
    pub(crate) fn annealed(&self, epsilon: f64) -> Options {
        Options {
            epsilon,
            accuracy: self.accuracy.max(ACCURACY),
            tolerance: self.tolerance.max(TOLERANCE),
            certify: false,
            polish: false,
            // One is for the last stage.
            max_iterations: self.max_iterations - 1,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_lead_to_the_last() {
        assert!(schedule(1.0, 100.0).is_empty());
        assert!(schedule(1.0, f64::INFINITY).is_empty());
        assert!(schedule(1.0, f64::NAN).is_empty());
        assert_eq!(schedule(1.0, 1000.0), [256.0, 64.0, 16.0, 4.0]);
        assert!(schedule(f64::MIN_POSITIVE, 1.0).len() < 520);
    }
}
