//! One sample of the clouds: solved exactly, and extended to all points.

use super::draws::Draws;
use super::own::OwnRows;
use super::whole::{Extended, Whole};
use super::{SOLVED, SampledKernel, sums};
use crate::comm::Span;
use crate::control::Stop;
use crate::error::Result;
use crate::numerics::simd::Float;
use crate::options::Precision;
use crate::rows::LogRows;
use crate::sinkhorn::{Outcome, Run};
use crate::term::exact::{self, Held};
use crate::term::site::Chosen;
use crate::term::{Task, Work};
use crate::words::Side;

/// Bytes of the kernel of a sample that is stored.
const STORED: f64 = 5e8;
/// Tolerances above this can be had in single precision.
const SINGLE: f64 = 1e-5;

/// A sample that was solved.
pub(super) struct Sample {
    /// An upper bound of its value in units of epsilon, also where iterations are not at their end.
    pub(super) value: f64,
    /// Potentials at the points of the sample, relative to its weights.
    potentials: Extended,
    pub(super) iterations: usize,
    pub(super) stop: Stop,
}

impl SampledKernel<'_> {
    /// Solves a sample, from potentials at all points if there are such.
    pub(super) fn solve_sample(
        &self,
        draws: &Draws,
        start: Option<&Extended>,
        task: &Task<'_>,
        work: &mut Work<'_>,
    ) -> Result<Sample> {
        let site = self.exact.site();
        let [x, y] = site.clouds();
        let [rows, columns] = [draws.of(0), draws.of(1)];
        let entries = site.between(Chosen::some(x, rows), Chosen::some(y, columns));
        let entries: Box<dyn LogRows + '_> = if site.is_self() {
            Box::new(OwnRows::new(entries, draws, task.weights[0]))
        } else {
            entries
        };
        let sizes = [rows.len(), columns.len()];
        let even = sizes.map(|size| vec![1.0 / size as f64; size]);
        let spans = sizes.map(Span::alone);
        let shares = sizes.map(|size| (size as f64).ln());
        let first: Vec<f64> = match start {
            Some(bag) => rows.iter().map(|&i| bag.f[i] - shares[0]).collect(),
            None => vec![-shares[0]; sizes[0]],
        };
        let tolerance = task.run.tolerance.max(SOLVED * site.options().accuracy);
        let run = Run { offset: 0.0, time: work.clock.left(), tolerance, ..task.run };
        let small = Task {
            start: first,
            flat: start.is_none(),
            rough: None,
            weights: [&even[0], &even[1]],
            spans: [&spans[0], &spans[1]],
            unbalanced: task.unbalanced.as_ref().map(|whole| whole.sample([rows, columns])),
            run,
        };
        // Single precision is far more precise than samples are, unless a tolerance asks for more.
        let (precision, rounding, bytes) = if run.tolerance > SINGLE {
            (Precision::F32, f32::ROUNDING, 4.0)
        } else {
            (Precision::F64, f64::ROUNDING, 8.0)
        };
        let stored = bytes * sizes[0] as f64 * sizes[1] as f64 <= STORED;
        let held = Held { stored, precision };
        let outcome = exact::solve(entries, held, &small, work.observer)?.outcome;
        let dual = small.unbalanced.as_ref().map(|u| (u, u.dual(&outcome.f, &outcome.g, 0.0)));
        let value = small.values(&outcome).value_kl;
        let slack =
            self.slack(&small, &outcome) + dual.map_or(run.epsilon, |(_, d)| d.size) * rounding;
        // Shifts of unbalanced problems have the masses of the clouds.
        let shifts = dual
            .map_or([0.0; 2], |(u, dual)| [0, 1].map(|slot| dual.shifts[slot] - u.mass(slot).ln()));
        let relative = |f: &[f64], slot: usize| -> Vec<f64> {
            f.iter().map(|f| f + shares[slot] + shifts[slot]).collect()
        };
        Ok(Sample {
            value: (value + slack) / run.epsilon,
            potentials: Extended { f: relative(&outcome.f, 0), g: relative(&outcome.g, 1) },
            iterations: outcome.iterations,
            stop: outcome.stop,
        })
    }

    /// At most how much too low the dual value of a sample is: what it takes to move the mass that is elsewhere.
    fn slack(&self, small: &Task<'_>, outcome: &Outcome) -> f64 {
        let epsilon = small.run.epsilon;
        let range = |f: &[f64]| {
            let ends = f.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], f| {
                [low.min(*f), high.max(*f)]
            });
            epsilon * (ends[1] - ends[0])
        };
        let ranges = match outcome.stop {
            Stop::Converged => [range(&outcome.f), range(&outcome.g)],
            // Before the end, no price differs by more than costs do.
            _ => [self.exact.site().cost_range(); 2],
        };
        match &small.unbalanced {
            None => 0.5 * (outcome.x.error * ranges[0] + outcome.y.error * ranges[1]),
            Some(unbalanced) => {
                let dual = unbalanced.dual(&outcome.f, &outcome.g, 0.0);
                let marginals = [&outcome.x.sums[..], &outcome.y.sums];
                unbalanced.shortfall(&dual, [&outcome.f, &outcome.g], marginals, ranges)
            }
        }
    }

    /// The potentials of a sample at all points, by one half-step over it.
    pub(super) fn extend(&self, draws: &Draws, sample: &Sample, whole: &Whole<'_>) -> Extended {
        let [x, y] = self.exact.site().clouds();
        let Extended { f, g } = &sample.potentials;
        if whole.is_self {
            return self.extend_own(draws, f, whole);
        }
        let of = |slot: usize, sums: Vec<f64>| {
            let (own, other) = (&whole.clouds[slot], &whole.clouds[1 - slot]);
            sums.iter().enumerate().map(|(i, s)| own.best(i, *s, other)).collect()
        };
        Extended {
            f: of(0, self.mean_over(x, draws.of(1), g)),
            g: of(1, self.mean_over(y, draws.of(0), f)),
        }
    }

    /// `log` of the mean of `exp(g_j - c(x, y_j))` over a sample of the opposite cloud, at all points of a cloud.
    fn mean_over(&self, cloud: Side, sample: &[usize], g: &[f64]) -> Vec<f64> {
        let site = self.exact.site();
        let columns = Chosen::some(site.opposite(cloud), sample);
        let rows = site.between(Chosen::all(cloud), columns);
        let share = (g.len() as f64).ln();
        // Any potentials are allowed, so their rounding is not an error.
        sums::<f32>(&*rows, g.iter().map(|g| g - share))
    }

    /// The potential of a cloud with itself at all of its points.
    fn extend_own(&self, draws: &Draws, f: &[f64], whole: &Whole<'_>) -> Extended {
        let [x, _] = self.exact.site().clouds();
        let (cloud, others) = (&whole.clouds[0], draws.others().ln());
        let best = |(i, s): (usize, &f64)| cloud.best_own(i, s + others, cloud.weights[i]);
        let mut out: Vec<f64> =
            self.mean_over(x, draws.of(0), f).iter().enumerate().map(best).collect();
        for (&i, f) in draws.of(0).iter().zip(f) {
            out[i] = *f;
        }
        Extended { g: out.clone(), f: out }
    }
}
