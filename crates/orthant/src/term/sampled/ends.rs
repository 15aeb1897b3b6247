//! Where the exact value is, from samples that are solved: both ends, and the best guess between them.

use rand_chacha::ChaCha8Rng;

use super::draws::Draws;
use super::{SampledKernel, best_response, columns, message};
use crate::comm::Span;
use crate::kernel::LogPass;
use crate::rows::LogRows;
use crate::sampling::stratified;

/// The clouds of a term.
pub(super) struct Whole<'t> {
    pub(super) weights: [&'t [f64]; 2],
    pub(super) spans: [&'t Span; 2],
    pub(super) is_self: bool,
}

/// Potentials at all points, in units of epsilon and relative to the weights.
#[derive(Debug, Clone)]
pub(super) struct Extended {
    pub(super) f: Vec<f64>,
    pub(super) g: Vec<f64>,
}

impl Extended {
    /// The mean of some.
    pub(super) fn mean(all: &[Extended]) -> Self {
        let count = all.len() as f64;
        let mean = |of: fn(&Extended) -> &[f64]| {
            let mut out: Vec<f64> = Vec::new();
            for part in all.iter().map(of) {
                out.resize(part.len(), 0.0);
                out.iter_mut().zip(part).for_each(|(out, f)| *out += f / count);
            }
            out
        };
        Extended { f: mean(|e| &e.f), g: mean(|e| &e.g) }
    }

    /// This mean of `count` potentials, without one of them.
    fn without(&self, one: &Extended, count: usize) -> Self {
        let count = count as f64;
        let rest = |mean: &[f64], one: &[f64]| {
            let left = |(mean, one): (&f64, &f64)| mean + (mean - one) / (count - 1.0);
            mean.iter().zip(one).map(left).collect()
        };
        Extended { f: rest(&self.f, &one.f), g: rest(&self.g, &one.g) }
    }
}

impl Whole<'_> {
    /// `a.f + b.g`.
    pub(super) fn total(&self, potentials: &Extended) -> f64 {
        self.mean(0, |i| potentials.f[i]) + self.mean(1, |j| potentials.g[j])
    }

    /// The mean of a function of the points of a cloud.
    fn mean(&self, slot: usize, value: impl Fn(usize) -> f64 + Sync) -> f64 {
        let weights = self.weights[slot];
        self.spans[slot].sum(|i| weights[i] * value(i))
    }

    /// What the value of a sample has more than that of the clouds, to first order, by potentials that do not know the
    /// sample: its expectation is zero.
    fn noise(&self, draws: &Draws, potentials: &Extended) -> f64 {
        let part = |slot: usize, value: &(dyn Fn(usize) -> f64 + Sync)| {
            let drawn = draws.of(slot);
            let mean: f64 = drawn.iter().map(|&i| value(i)).sum::<f64>() / drawn.len() as f64;
            mean - self.mean(slot, value)
        };
        let Extended { f, g } = potentials;
        if self.is_self {
            // Its own entry of the plan is known for each point.
            let a = self.weights[0];
            return part(0, &|i| 2.0 * f[i] + (2.0 * f[i] + a[i].ln()).exp());
        }
        part(0, &|i| f[i]) + part(1, &|j| g[j])
    }
}

/// Where the value is, in units of epsilon: see [`super`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) low: f64,
    pub(super) high: f64,
    /// The best guess, between both.
    pub(super) value: f64,
    /// What the jackknife says, and its standard error.
    pub(super) estimate: f64,
    pub(super) stderr: f64,
    /// What rows that were not taken add to the lower end.
    pub(super) noise: f64,
    /// What samples that differ add to the upper end.
    pub(super) scatter: f64,
    /// How far the mean potentials are from having the marginals: L1, from the rows.
    pub(super) error: f64,
    /// The mean cost of the plan, from the rows.
    pub(super) cost: f64,
}

/// Standard errors that are added to every mean of many numbers.
const SIGMAS: f64 = 3.0;
/// Part of the rows that are kept for the points about which samples disagree most.
const DISPUTED: usize = 4;

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
        samples: &[Extended],
        bag: &Extended,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let a = whole.weights[0];
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

    /// The mean cost of the plan of the best first potential, which is better than the one there is by `gains`. That goes up
    /// and down with the potential, whose mean is known.
    fn cost(
        &self,
        entries: &dyn LogRows,
        whole: &Whole<'_>,
        Extended { f, g }: &Extended,
        gains: &[f64],
    ) -> f64 {
        let of_rows = |value: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
            self.chosen.iter().zip(gains).map(|(&i, gain)| value(i, *gain)).collect()
        };
        let potentials = of_rows(&|i, _| f[i]);
        let mut masses = of_rows(&|i, gain| f[i] + gain);
        masses.iter_mut().zip(&self.weights).for_each(|(f, w)| *f += w.ln());
        let message = message(entries, columns(g, whole.weights[1]));
        let log = LogPass::of(entries).expected_log(entries, &masses, &message);
        whole.mean(0, |i| f[i]) - self.mean(&potentials).0 - log
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

impl Ends {
    /// Distance of both ends.
    pub(super) fn width(&self) -> f64 {
        self.high - self.low
    }

    pub(super) fn new(
        kernel: &SampledKernel<'_>,
        whole: &Whole<'_>,
        samples: &[Extended],
        bag: &Extended,
        values: &[(f64, Draws)],
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let rows = Rows::new(whole, samples, bag, count, rng);
        let entries = kernel.rows_at(&rows.chosen);
        // How much better the best first potential is at the rows.
        let gains = |potentials: &Extended| -> Vec<f64> {
            let best = best_response(&*entries, &potentials.g, whole.weights[1]);
            rows.chosen.iter().zip(best).map(|(&i, best)| best - potentials.f[i]).collect()
        };
        let own = gains(bag);
        let (gain, noise) = rows.mean(&own);
        let lower = whole.total(bag) + gain;
        let low = lower - SIGMAS * noise;
        let error: Vec<f64> = own.iter().map(|gain| (-gain).exp_m1().abs()).collect();
        let error = rows.mean(&error).0;
        let cost = rows.cost(&*entries, whole, bag, &own);
        // All of the samples but one, one after the other.
        let times = samples.len() as f64;
        let mut uppers = Vec::new();
        let mut pseudo = Vec::new();
        let mut corrected: Vec<f64> = own.iter().map(|gain| times * gain).collect();
        for (sample, (value, draws)) in samples.iter().zip(values) {
            let rest = bag.without(sample, samples.len());
            uppers.push(value - whole.noise(draws, &rest));
            let gains = gains(&rest);
            let lower_rest = whole.total(&rest) + rows.mean(&gains).0;
            pseudo.push(times * lower - (times - 1.0) * lower_rest);
            for (corrected, gain) in corrected.iter_mut().zip(&gains) {
                *corrected -= (times - 1.0) / times * gain;
            }
        }
        let (upper, upper_error) = mean(&uppers);
        let scatter = student(samples.len() - 1) * upper_error;
        let high = upper + scatter;
        let (estimate, spread) = mean(&pseudo);
        // The jackknife takes away what falls like the number of samples. What is left of their bias is of second order in
        // that of the upper end, which the size of a sample decides.
        let apart = (upper - estimate).max(0.0);
        let bias = 0.5 * apart * apart.min(1.0);
        let stderr = spread.hypot(rows.mean(&corrected).1).hypot(bias);
        let low = low.min(high);
        let value = estimate.clamp(low, high);
        Ends { low, high, value, estimate, stderr, noise: SIGMAS * noise, scatter, error, cost }
    }
}

/// A mean and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
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
