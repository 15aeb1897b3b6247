//! The upper end: values of samples, which are too high in the mean.

use super::below::Bagged;
use super::draws::Draws;
use super::second_order;
use super::whole::{Extended, Whole};
use crate::results::Estimate;

/// What the values of some samples say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Above {
    /// Points of each cloud in a sample.
    pub(super) size: usize,
    /// The mean of the values, in units of epsilon.
    pub(super) mean: f64,
    /// What samples that differ add to it.
    pub(super) scatter: f64,
    /// Its standard error.
    stderr: f64,
}

impl Above {
    /// Of samples that the potentials do not know.
    pub(super) fn new(whole: &Whole<'_>, values: &[(f64, Draws)], potentials: &Extended) -> Self {
        let uppers = values.iter().map(|(value, draws)| value - whole.noise(draws, potentials));
        Above::of(values[0].1.of(0).len(), &uppers.collect::<Vec<_>>())
    }

    /// Of the samples that the potentials are of, each with those of the others.
    pub(super) fn within(whole: &Whole<'_>, bagged: &Bagged) -> Self {
        let Bagged { samples, values, bag } = bagged;
        let uppers = samples.iter().zip(values).map(|(sample, (value, draws))| {
            value - whole.noise(draws, &bag.without(sample, samples.len()))
        });
        Above::of(bagged.size(), &uppers.collect::<Vec<_>>())
    }

    fn of(size: usize, uppers: &[f64]) -> Self {
        let (mean, error) = mean(uppers);
        Above { size, mean, scatter: student(uppers.len() - 1) * error, stderr: error }
    }

    /// What values tend to, from those of smaller samples: they are too high by what falls like the size of a sample.
    pub(super) fn limit(&self, before: &Above) -> Estimate {
        let [small, large] = [before, self].map(|above| above.size as f64);
        let [less, more] = [small, large].map(|size| size / (large - small));
        let value = more * self.mean - less * before.mean;
        let left = second_order((before.mean - value).max(0.0)) * small / large;
        let stderr = (more * self.stderr).hypot(less * before.stderr).hypot(left);
        Estimate { value, stderr }
    }

    pub(super) fn high(&self) -> f64 {
        self.mean + self.scatter
    }
}

/// A mean and its standard error.
pub(super) fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (count * (count - 1.0))).sqrt())
}

/// How many standard errors hold 99.73 per cent on both sides together, as three do where they are known, if they are
/// estimated from samples with so many degrees of freedom.
fn student(freedom: usize) -> f64 {
    const QUANTILES: [f64; 30] = [
        235.8015, 19.2067, 9.2189, 6.6202, 5.5071, 4.9041, 4.5300, 4.2766, 4.0943, 3.9569, 3.8499,
        3.7643, 3.6942, 3.6358, 3.5864, 3.5441, 3.5075, 3.4755, 3.4472, 3.4222, 3.3997, 3.3796,
        3.3613, 3.3448, 3.3296, 3.3158, 3.3030, 3.2913, 3.2804, 3.2703,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => QUANTILES[freedom - 1],
        // The expansion in 1 / freedom at three.
        _ => 3.0 + 7.5 / freedom as f64 + 20.0 / (freedom as f64).powi(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student_go_on_smoothly() {
        // Of 30, 31 and 100 degrees of freedom.
        assert!((student(31) - 3.2609).abs() < 2e-3);
        assert!((student(100) - 3.0768).abs() < 1e-3);
        assert!(student(31) < student(30));
    }
}
