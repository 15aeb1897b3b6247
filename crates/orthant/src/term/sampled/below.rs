//! The lower end: the semi-dual of the mean potentials of some samples, on rows with all columns, and what the jackknife
//! makes of it.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use super::above::mean;
use super::draws::Draws;
use super::whole::{Extended, Whole};
use super::{SampledKernel, columns, message, sums};
use crate::kernel::LogPass;
use crate::rows::LogRows;
use crate::sampling::stratified;

/// Standard errors that are added to every mean of many numbers.
const SIGMAS: f64 = 3.0;
/// Part of the rows that are kept for the points about which samples disagree most.
const DISPUTED: usize = 4;

/// Samples that were solved and extended to all points.
pub(super) struct Bagged {
    pub(super) samples: Vec<Extended>,
    /// Upper bounds of the values of the samples, and what these are of.
    pub(super) values: Vec<(f64, Draws)>,
    /// The mean of the samples.
    pub(super) bag: Extended,
}

impl Bagged {
    pub(super) fn new(samples: Vec<Extended>, values: Vec<(f64, Draws)>) -> Self {
        let bag = Extended::mean(&samples);
        Bagged { samples, values, bag }
    }

    /// Points of each cloud in a sample.
    pub(super) fn size(&self) -> usize {
        self.values[0].1.of(0).len()
    }
}

/// What samples say of the lower end, and of the value.
pub(super) struct Below {
    pub(super) bagged: Arc<Bagged>,
    pub(super) rows: usize,
    /// The semi-dual of the mean, which is a lower bound but for its noise.
    pub(super) mean: f64,
    /// What rows that were not taken may add to it.
    pub(super) noise: f64,
    /// What the jackknife says, and its standard error, but for what is left of the bias.
    pub(super) estimate: f64,
    pub(super) spread: f64,
    /// How far the mean potentials are from having the marginals: L1, from the rows.
    pub(super) error: f64,
    /// The mean cost of the plan over its mass, from the rows.
    pub(super) cost: f64,
}

impl Below {
    /// Looks at so many rows.
    pub(super) fn new(
        kernel: &SampledKernel<'_>,
        whole: &Whole<'_>,
        bagged: Arc<Bagged>,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let rows = Rows::new(whole, &bagged, count, rng);
        let entries = kernel.rows_at(&rows.chosen);
        let mut below = Below {
            bagged,
            rows: rows.chosen.len(),
            mean: 0.0,
            noise: 0.0,
            estimate: 0.0,
            spread: 0.0,
            error: 0.0,
            cost: 0.0,
        };
        below.measure(whole, &rows, &*entries);
        below
    }

    pub(super) fn low(&self) -> f64 {
        self.mean - self.noise
    }

    fn measure(&mut self, whole: &Whole<'_>, rows: &Rows, entries: &dyn LogRows) {
        let [x, y] = &whole.clouds;
        // The best first potential at the rows, and how much more it is worth.
        let best = |potentials: &Extended| -> Vec<f64> {
            let sums = sums::<f64>(entries, columns(&potentials.g, y.weights));
            rows.chosen.iter().zip(sums).map(|(&i, s)| x.best(i, s, y)).collect()
        };
        let gains = |potentials: &Extended, best: &[f64]| -> Vec<f64> {
            let gain = |(&i, best): (&usize, &f64)| x.worth(i, *best) - x.worth(i, potentials.f[i]);
            rows.chosen.iter().zip(best).map(gain).collect()
        };
        let lower = |potentials: &Extended, gains: &[f64]| {
            let known = x.mean(|i| x.worth(i, potentials.f[i]));
            whole.semi_dual(known + rows.mean(gains).0, &potentials.g)
        };
        let Bagged { samples, bag, .. } = &*self.bagged;
        let best_of_bag = best(bag);
        let own = gains(bag, &best_of_bag);
        self.mean = lower(bag, &own);
        self.noise = SIGMAS * whole.mass() * rows.mean(&own).1;
        let off = |(&i, best): (&usize, &f64)| (bag.f[i] - best).exp_m1().abs();
        let errors: Vec<f64> = rows.chosen.iter().zip(&best_of_bag).map(off).collect();
        self.error = rows.mean(&errors).0;
        self.cost = rows.cost(entries, whole, bag, &best_of_bag);
        // All of the samples but one, one after the other.
        let times = samples.len() as f64;
        let mut pseudo = Vec::new();
        let mut corrected: Vec<f64> = own.iter().map(|gain| times * gain).collect();
        for sample in samples {
            let rest = bag.without(sample, samples.len());
            let gains = gains(&rest, &best(&rest));
            pseudo.push(times * self.mean - (times - 1.0) * lower(&rest, &gains));
            for (corrected, gain) in corrected.iter_mut().zip(&gains) {
                *corrected -= (times - 1.0) / times * gain;
            }
        }
        let (estimate, spread) = mean(&pseudo);
        self.estimate = estimate;
        self.spread = spread.hypot(whole.mass() * rows.mean(&corrected).1);
    }
}

/// Rows of the first cloud: some with their weights as they are, and a sample of the rest, which has a share.
struct Rows {
    chosen: Vec<usize>,
    /// How many are there as they are.
    known: usize,
    /// Weights that means over the rows have.
    weights: Vec<f64>,
}

impl Rows {
    /// The points about which potentials disagree most, and some of the others.
    fn new(
        whole: &Whole<'_>,
        Bagged { samples, bag, .. }: &Bagged,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let a = whole.clouds[0].weights;
        let dispute = |i: usize| {
            a[i] * samples.iter().map(|s| (s.f[i] - bag.f[i]).powi(2)).sum::<f64>().sqrt()
        };
        let disputes: Vec<f64> = (0..a.len()).map(dispute).collect();
        let mut first: Vec<usize> = (0..a.len()).collect();
        let known = if count >= a.len() { a.len() } else { count / DISPUTED };
        if known < a.len() {
            first.select_nth_unstable_by(known, |i, j| {
                disputes[*j].total_cmp(&disputes[*i]).then(i.cmp(j))
            });
        }
        let mut rest = first.split_off(known);
        let (mut chosen, mut weights) = (first, Vec::new());
        chosen.sort_unstable();
        weights.extend(chosen.iter().map(|&i| a[i]));
        if !rest.is_empty() {
            rest.sort_unstable();
            let share: f64 = rest.iter().map(|&i| a[i]).sum();
            let drawn = stratified(&rest, a, count - known, rng);
            weights.resize(count, share / drawn.len() as f64);
            chosen.extend(drawn);
        }
        Rows { chosen, known, weights }
    }

    /// The mean cost of the plan of the best first potential, over its mass. That goes up and down with the potential,
    /// whose mean is known.
    fn cost(
        &self,
        entries: &dyn LogRows,
        whole: &Whole<'_>,
        Extended { f, g }: &Extended,
        best: &[f64],
    ) -> f64 {
        let [x, y] = &whole.clouds;
        // exp(F) m S = exp(-k F): so rows have the masses that points keep at their prices.
        let rows = best.iter().zip(&self.weights);
        let logs: Vec<f64> = rows.map(|(best, w)| best + w.ln() + y.mass.ln()).collect();
        let message = message(entries, columns(g, y.weights));
        let log = LogPass::of(entries).expected_log(entries, &logs, &message);
        let kept = |i: usize| x.kept(i, f[i]).exp();
        let control: Vec<f64> = self.chosen.iter().map(|&i| kept(i) * f[i]).collect();
        (x.mean(|i| kept(i) * f[i]) - self.mean(&control).0 - log) / x.mean(kept)
    }

    /// A mean over the first cloud, and its standard error.
    fn mean(&self, values: &[f64]) -> (f64, f64) {
        let mean: f64 = values.iter().zip(&self.weights).map(|(v, w)| v * w).sum();
        let drawn = &values[self.known..];
        if drawn.len() < 2 {
            return (mean, 0.0);
        }
        let count = drawn.len() as f64;
        let middle = drawn.iter().sum::<f64>() / count;
        let squares: f64 = drawn.iter().map(|v| (v - middle).powi(2)).sum();
        let share = self.weights[self.known] * count;
        (mean, share * (squares / (count * (count - 1.0))).sqrt())
    }
}
