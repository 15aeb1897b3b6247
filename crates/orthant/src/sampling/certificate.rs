//! How far the value of features is from that of the exact kernel: bounds, from samples of the plan.
//!
//! Let `P` be the plan of the features, with potentials `f = log u`, `g = log v`, and `d = log(k_theta / k)`. The plan
//! is feasible for the exact kernel, and its potentials are too, after a shift:
//!
//! ```text
//! -log E_P[exp(-d)]  <=  (W - W_theta) / eps  <=  E_P[d]
//! ```
//!
//! A better lower bound keeps one potential and takes the best other one for the exact kernel, point by point. With
//! `s_j = sum_i u_i k_ij` and `s_theta` the same of the features, it is
//!
//! ```text
//! -E_b[t_j]  <=  (W - W_theta) / eps,      t_j = log(s_j / s_theta_j) = log E_P[exp(-d_ij) | j]
//! ```
//!
//! and so for rows. All three are means over the plan or over points, estimated from samples with their standard
//! errors. To second order in `d` the bounds are `E[d]` less half a variance: of `d` itself, of what is left of it
//! after the means of the columns or of the rows are taken away; and `W` is with both taken away. Means of columns are
//! `-t_j`, so a bound from columns and half of the variance of `t` over the rows, or the other way round, is the
//! *corrected* value.
//!
//! **Relaxed marginals** ([`crate::sinkhorn::unbalanced`]). All of these are then about a constant factor: the value is between
//! those of the features divided by `exp(low)` and by `exp(high)`, which is known exactly ([`Dual::bound`]), and which
//! is the same as above for balanced problems. The plan, scaled to its best mass, gives `high = E_P[d]`, its potentials
//! `-log E_P[exp(-d)]`. With one potential kept and the best other one the dual value has
//! `sum_j q_j (s_j / s_theta_j)^(1 - tau)` instead of the mass of `q_j = b_j s_theta_j^(1 - tau)`, so that
//!
//! ```text
//! low = -log(E_q[exp((1 - tau) t_j)]) / (1 - tau)
//! ```
//!
//! which is `-E_b[t_j]` for `tau = 1`. To second order only `tau` times the variance of the means is taken away, of
//! these and of the value.
//!
//! [`Dual::bound`]: crate::sinkhorn::unbalanced::Dual::bound

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Pairs, log_kernel, partners, stratified};
use crate::comm::Partition;
use crate::control::Cancel;
use crate::coordinates::Frame;
use crate::features::SquaredEuclidean;
use crate::kernel::{Conditional, LogPass, Target};
use crate::measure::Points;
use crate::rows::LogRows;

/// One of the clouds of a plan.
pub(crate) struct CertifiedSide<'a> {
    /// Features of the points.
    features: &'a dyn LogRows,
    points: Points<'a>,
    /// The marginal that an update gives: `b`, or `q`.
    weights: Vec<f64>,
    /// `log s_theta`.
    sums: Vec<f64>,
    /// `1 - tau`, or zero.
    slack: f64,
    /// `log u`.
    potential: &'a [f64],
}

impl<'a> CertifiedSide<'a> {
    /// Of a plan of mass 1 with this marginal.
    pub(crate) fn new(
        features: &'a dyn LogRows,
        points: Points<'a>,
        target: Target<'_>,
        potential: &'a [f64],
        marginal: &[f64],
    ) -> Self {
        let sums = |marginal: &[f64]| -> Vec<f64> {
            marginal.iter().zip(potential).map(|(p, f)| p.ln() - f).collect()
        };
        let (weights, sums, slack) = match target.relaxed {
            None => (target.weights.to_vec(), sums(target.weights), 0.0),
            Some(relaxed) => {
                let sums = sums(marginal);
                let mass = relaxed.log_mass(&sums, points.span());
                let weight = |(i, s): (usize, &f64)| (relaxed.log_marginal(i, *s) - mass).exp();
                (sums.iter().enumerate().map(weight).collect(), sums, relaxed.slack)
            }
        };
        CertifiedSide { features, points, weights, sums, slack, potential }
    }
}

/// What there is to certify, in coordinates in which the kernel is `exp(-||x - y||^2 / eps)`.
pub(crate) struct Claim<'a> {
    pub(crate) x: CertifiedSide<'a>,
    pub(crate) y: CertifiedSide<'a>,
    pub(crate) frame: &'a Frame,
    pub(crate) epsilon: f64,
    /// The first marginal of the plan.
    pub(crate) rows: &'a [f64],
    pub(crate) seed: u64,
    pub(crate) cancel: &'a Cancel,
}

/// Bounds on `(W - W_theta) / eps`, and the best estimate of it; of relaxed problems on the logarithm of the factor
/// that does the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) corrected: f64,
}

/// Standard errors that are added to every mean.
const SIGMAS: f64 = 3.0;
/// Pairs of the plan at least, and for each feature.
const PAIRS: [usize; 2] = [2048, 8];
/// Points whose exact sums are taken, at least and at most, in both clouds together.
const POINTS: [usize; 2] = [512, 8192];
/// Chunks of a cloud at most.
const CERTIFIED_CHUNKS: usize = 64;
/// Part of the samples that are kept for the points that are farthest out: few, and worst.
const OUT: usize = 4;

/// Bounds that are farther apart, in units of epsilon, say little about what is between.
const USEFUL: f64 = 1.0;

/// Below this, numbers are not bent beyond their rounding.
const BENT: f64 = 1e-17;

/// `(exp(slack t) - 1) / slack`: its mean is that of `exp(slack t)`, also where `slack` is zero or all but zero.
fn bent(t: f64, slack: f64) -> f64 {
    if (slack * t).abs() < BENT { t } else { (slack * t).exp_m1() / slack }
}

/// A mean and its variance.
#[derive(Debug, Clone, Copy)]
struct Mean {
    value: f64,
    variance: f64,
}

impl Mean {
    /// Of independent samples.
    fn of(samples: &[f64]) -> Self {
        let count = samples.len() as f64;
        let value = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|x| (x - value).powi(2)).sum();
        Mean { value, variance: squares / (count * (count - 1.0).max(1.0)) }
    }

    /// Of samples of two parts, the first of which has this share of the whole.
    fn of_parts(parts: [&[f64]; 2], share: f64) -> Self {
        let [one, two] = parts.map(|samples| {
            if samples.is_empty() { Mean { value: 0.0, variance: 0.0 } } else { Mean::of(samples) }
        });
        Mean {
            value: share * one.value + (1.0 - share) * two.value,
            variance: share * share * one.variance + (1.0 - share).powi(2) * two.variance,
        }
    }

    fn most(self) -> f64 {
        self.value + SIGMAS * self.variance.sqrt()
    }

    /// `log(1 + slack x) / slack` of the mean of numbers [`bent`] by `slack`.
    fn unbent(self, slack: f64) -> Self {
        let x = slack * self.value;
        let value = if x.abs() < BENT { self.value } else { x.ln_1p() / slack };
        Mean { value, variance: self.variance / (1.0 + x).powi(2) }
    }

    /// The logarithm, for means of positive numbers.
    fn ln(self) -> Self {
        Mean { value: self.value.ln(), variance: self.variance / self.value.powi(2) }
    }
}

/// What exact sums show: the mean of `t`, and the variance over the points that the marginals take away.
struct Sums {
    mean: Mean,
    spread: f64,
}

/// Points of a cloud, the farthest apart from the rest.
pub(crate) struct Strata {
    pub(crate) far: Vec<usize>,
    pub(crate) rest: Vec<usize>,
    /// Weight of the farthest.
    pub(crate) share: f64,
}

impl Strata {
    pub(crate) fn new(points: &Points<'_>, weights: &[f64], far: usize) -> Self {
        let (count, dim) = (points.len(), points.dim());
        let mut mean = vec![0.0; dim];
        let mut square = vec![0.0; dim];
        for (i, weight) in weights.iter().enumerate() {
            for c in 0..dim {
                let x = points.coordinate(i, c);
                mean[c] += weight * x;
                square[c] += weight * x * x;
            }
        }
        let distance: Vec<f64> = (0..count)
            .into_par_iter()
            .map(|i| {
                let axes = (0..dim).filter(|&c| square[c] > mean[c] * mean[c]);
                let deviation = |c: usize| (points.coordinate(i, c) - mean[c]).powi(2);
                axes.map(|c| deviation(c) / (square[c] - mean[c] * mean[c])).sum()
            })
            .collect();
        // Relaxed marginals may have points without any mass.
        let mut far_first: Vec<usize> = (0..count).filter(|&i| weights[i] > 0.0).collect();
        let far = far.min(far_first.len());
        if far < far_first.len() {
            far_first.select_nth_unstable_by(far, |i, j| {
                distance[*j].total_cmp(&distance[*i]).then(i.cmp(j))
            });
        }
        let mut rest = far_first.split_off(far);
        far_first.sort_unstable();
        rest.sort_unstable();
        let share: f64 = far_first.iter().map(|&i| weights[i]).sum();
        Strata { far: far_first, rest, share: share.min(1.0) }
    }
}

impl Claim<'_> {
    /// The bounds, or nothing if the samples show a pair that the features do not know at all; and pairs of the plan.
    /// `columns` are the points of the second cloud given a feature.
    pub(crate) fn bounds(&self, columns: &mut dyn Conditional) -> (Option<Bounds>, Pairs) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let rank = self.x.features.rank();
        // What exact sums cost grows with the axes; they should take a part of the time of the solve.
        let [least, most] = POINTS;
        let points = (160 * rank / (125 + 17 * self.frame.dim())).clamp(least, most) / 2;
        let ([upper, plain], pairs) = self.ratios(rank, columns, &mut rng);
        let columns = self.exact_sums(&self.x, &self.y, points, &mut rng);
        let rows = self.exact_sums(&self.y, &self.x, points, &mut rng);
        let low = -plain.most().min(columns.mean.most()).min(rows.mean.most());
        let high = upper.most();
        // A further half-step of each would gain half of the variance that the other has.
        let [by_columns, by_rows] = [&columns, &rows].map(|t| -t.mean.value);
        let corrected = 0.5 * (by_columns + by_rows) + 0.25 * (columns.spread + rows.spread);
        // More than half of the way up that is not to be believed, unless the lower bounds are of no use at all.
        let best_low = by_columns.max(by_rows);
        let width = upper.value - best_low;
        let most = best_low + if width < USEFUL { 0.5 * width } else { width };
        let corrected = corrected.max(best_low).min(most).max(low).min(high);
        let all = [low, high, corrected];
        let bounds = Bounds { low: low.min(high), high, corrected };
        (all.iter().all(|b| b.is_finite()).then_some(bounds), pairs)
    }

    /// Means of `d` and of `exp(-d)`, the latter as its logarithm, over pairs of the plan.
    fn ratios(
        &self,
        rank: usize,
        columns: &mut dyn Conditional,
        rng: &mut ChaCha8Rng,
    ) -> ([Mean; 2], Pairs) {
        let [least, each] = PAIRS;
        // Fewer than points, so that they take a part of the time of the solve.
        let most = 2 * (self.x.weights.len() + self.y.weights.len()) / 5;
        let count = (each * rank).clamp(least, most.max(least));
        let strata = Strata::new(&self.x.points, self.rows, count / OUT);
        let far = stratified(&strata.far, self.rows, count / OUT, rng);
        let rest = if strata.rest.is_empty() {
            Vec::new()
        } else {
            stratified(&strata.rest, self.rows, count - count / OUT, rng)
        };
        let split = far.len();
        let features = [self.x.features, self.y.features];
        let pairs = partners(self.x.features, columns, [far, rest].concat(), rng);
        let mut logs = log_kernel(features, &pairs);
        let dim = self.frame.dim();
        logs.par_iter_mut().zip(&pairs).with_min_len(1024).for_each(|(log, [i, j])| {
            let x = |c| self.frame.coordinate(&self.x.points, *i, c);
            let y = |c| self.frame.coordinate(&self.y.points, *j, c);
            let square: f64 = (0..dim).map(|c| (x(c) - y(c)).powi(2)).sum();
            *log += square / self.epsilon;
        });
        let parts = |logs: &[f64]| {
            let (far, rest) = logs.split_at(split);
            Mean::of_parts([far, rest], strata.share)
        };
        let upper = parts(&logs);
        let top = logs.iter().fold(f64::NEG_INFINITY, |top, d| top.max(-d));
        for d in &mut logs {
            *d = (-*d - top).exp();
        }
        let plain = parts(&logs).ln();
        let each = [
            strata.share / split as f64,
            (1.0 - strata.share) / (pairs.len() - split).max(1) as f64,
        ];
        let weights = (0..pairs.len()).map(|s| each[usize::from(s >= split)]).collect();
        ([upper, Mean { value: top + plain.value, ..plain }], Pairs { pairs, weights })
    }

    /// `t_j` over the second of two clouds, in the way that its marginal asks for.
    fn exact_sums(
        &self,
        from: &CertifiedSide<'_>,
        to: &CertifiedSide<'_>,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Sums {
        let all = to.weights.iter().filter(|w| **w > 0.0).count() <= count;
        // All points of the first part are taken as they are, of the second a sample.
        let far = if all { count } else { count / OUT };
        let strata = Strata::new(&to.points, &to.weights, far);
        let mut chosen = strata.far;
        let split = chosen.len();
        if !all {
            chosen.extend(stratified(&strata.rest, &to.weights, count - split, rng));
        }
        let points = to.points.select(&chosen);
        // Few columns, which stay in the caches.
        let exact =
            SquaredEuclidean::new(self.frame, self.epsilon, from.points.borrowed(), &points);
        let exact = self.cancel.guard(exact);
        let mut sums = vec![0.0; chosen.len()];
        let partition = Partition::new(from.points.span(), CERTIFIED_CHUNKS);
        LogPass::new(&exact, partition).column_sums(&exact, from.potential, &mut sums);
        for (sum, j) in sums.iter_mut().zip(&chosen) {
            *sum = bent(*sum - to.sums[*j], to.slack);
        }
        let (far, rest) = sums.split_at(split);
        let known: f64 = far.iter().zip(&chosen).map(|(t, j)| to.weights[*j] * t).sum();
        let sampled = Mean::of_parts([&[], rest], strata.share);
        let mean = Mean { value: known + sampled.value, ..sampled };
        let square = |t: &f64| (t - mean.value).powi(2);
        let spread_far: f64 =
            far.iter().zip(&chosen).map(|(t, j)| to.weights[*j] * square(t)).sum();
        let squares: f64 = rest.iter().map(square).sum();
        let spread_rest =
            if rest.is_empty() { 0.0 } else { (1.0 - strata.share) * squares / rest.len() as f64 };
        let spread = (1.0 - to.slack) * (spread_far + spread_rest);
        Sums { mean: mean.unbent(to.slack), spread }
    }
}
