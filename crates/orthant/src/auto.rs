//! Which method is quickest for an accuracy.
//!
//! All methods need about the same number of iterations, so what counts is the time of one, as
//! measured on one machine and scaled: pairs for the exact kernel, points times nodes of a window for
//! a lattice, points times rank for random anchors.

use std::fmt::Write;

use rayon::prelude::*;

use crate::anderson::Anderson;
use crate::design::{self, Draw, Lattice, MOST_AXES};
use crate::error::{Cloud, Result};
use crate::measure::{Measure, Points};
use crate::options::{Options, Precision};
use crate::problem::{Pick, most_nodes};
use crate::simd::Float;
use crate::stage::{Axes, Part, Stage};

/// What was chosen and why.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) pick: Pick,
    pub(crate) reason: String,
}

/// Largest relative error of the kernel that moves a value by no more than `accuracy`.
pub(crate) fn ratio_for(accuracy: f64, epsilon: f64) -> f64 {
    (-(-accuracy / epsilon).exp_m1()).clamp(1e-11, 0.5)
}

/// Up to this many pairs the exact kernel is so quick that nothing else is worth it.
const FEW_PAIRS: f64 = 1e6;
/// Beyond this many pairs an iteration of the exact kernel takes minutes.
const MANY_PAIRS: f64 = 2e11;
/// Random anchors, at least and at most.
const RANKS: [usize; 2] = [128, 49_152];
/// Nanoseconds of one thread, an iteration: a pair of the exact kernel, and more for each coordinate.
const PAIR: [f64; 2] = [2.5, 0.35];
/// A point of a lattice, and more for each node of its window and of the lattice.
const POINT: [f64; 3] = [60.0, 0.35, 0.005];
/// A stored feature, a byte; evaluating it, for a trial, the solve and its certificate, takes so many times that,
/// and counts for some iterations.
const BYTE: f64 = 0.07;
const BUILD: f64 = 70.0;
const ITERATIONS: f64 = 8.0;
/// Estimates that are this many times the accuracy are tried: most are too high, and certificates tell.
const LIKELY: f64 = 3.0;
/// Iterations of the exact kernel from good potentials.
const POLISH: f64 = 8.0;

/// One of the terms to be solved.
pub(crate) struct TermStage<'s> {
    pub(crate) stage: &'s Stage,
    pub(crate) clouds: [Cloud; 2],
    pub(crate) measures: [&'s Measure<'s>; 2],
}

impl TermStage<'_> {
    fn sizes(&self) -> [f64; 2] {
        self.measures.map(|m| m.support().len() as f64)
    }

    /// The lattice for the accuracy asked for, judged by the value of Gaussians.
    pub(crate) fn lattice(&self, options: &Options<'_>) -> Option<Lattice> {
        let [low, high] = self.stage.midpoints(self.clouds[0], self.clouds[1]);
        if low.len() > MOST_AXES {
            return None;
        }
        let most = most_nodes(self.measures.iter().map(|m| m.support().len()).sum());
        let value = self.stage.gauge.gaussian_value().unwrap_or(0.0);
        let ratio = 0.8 * ratio_for(options.accuracy * value, options.epsilon);
        Lattice::covering(&low, &high, self.stage.gauge.epsilon(), ratio, most)
    }
}

/// What a method would cost.
struct Offer {
    pick: Pick,
    /// Nanoseconds of an iteration of all terms.
    time: f64,
    text: String,
    /// Whether the accuracy is reached.
    good: bool,
}

/// Chooses a method for these terms, the cross term first. `shared` makes the stage on which one random
/// map would serve all of them.
pub(crate) fn choose(
    terms: &[TermStage<'_>],
    options: &Options<'_>,
    shared: impl FnOnce() -> Result<Option<Stage>>,
) -> Result<Choice> {
    let dim = terms[0].measures[0].dim();
    let pairs: f64 = terms.iter().map(|t| t.sizes()[0] * t.sizes()[1]).sum();
    let time_of_pairs = pairs * (PAIR[0] + PAIR[1] * dim as f64);
    if options.exact && pairs <= FEW_PAIRS {
        let reason = format!("{pairs:.1e} pairs are few enough to be exact");
        return Ok(Choice { pick: Pick::Exact, reason });
    }
    let mut offers = Vec::new();
    if options.exact {
        let text = "the exact kernel visits all pairs".to_owned();
        offers.push(Offer { pick: Pick::Exact, time: time_of_pairs, text, good: true });
    }
    offers.extend(lattice_offer(terms, options));
    // Lattices are at their best where they exist; random anchors need a closer look at the points.
    let quick = offers.iter().any(|o| matches!(o.pick, Pick::Lattice { .. }));
    if !quick {
        let stage = shared()?;
        let stage = stage.as_ref().unwrap_or(terms[0].stage);
        // No slower than all pairs, if these are possible.
        let most = (options.exact && pairs <= MANY_PAIRS).then_some(time_of_pairs);
        offers.extend(random_offer(terms, stage, options, most));
    }
    offers.sort_by(|a, b| b.good.cmp(&a.good).then(a.time.total_cmp(&b.time)));
    let mut best = 0;
    if offers[0].pick == Pick::Exact && pairs > MANY_PAIRS && offers.len() > 1 {
        // Hours: what comes near the accuracy is of more use.
        best = 1;
    }
    let Some(offer) = offers.get(best) else {
        let reason = "nothing reaches the accuracy within the memory without the exact kernel";
        return Ok(Choice { pick: Pick::Exact, reason: reason.to_owned() });
    };
    let mut reason = offer.text.clone();
    if offer.pick != Pick::Exact {
        let times = time_of_pairs / offer.time;
        if times >= 2.0 {
            let _ = write!(reason, "; all pairs would take about {times:.0} times as long");
        }
    } else if let Some(other) = offers.get(1) {
        let why = if other.good { " and would take longer" } else { "" };
        let _ = write!(reason, "; {}{why}", other.text);
    } else {
        reason += "; nothing else fits into the memory";
    }
    Ok(Choice { pick: offer.pick, reason })
}

/// More anchors than `rank`, or the exact kernel, whichever takes less time, for values that are `miss` times less
/// certain than they should be. Starts from the potentials that there are.
pub(crate) fn improve(
    rank: usize,
    miss: f64,
    sizes: &[[f64; 2]],
    dim: usize,
    options: &Options<'_>,
) -> Option<Choice> {
    let width = match options.precision {
        Precision::F32 => 4.0,
        Precision::F64 => 8.0,
    };
    let points: f64 = sizes.iter().flatten().sum();
    let pairs: f64 = sizes.iter().map(|[n, m]| n * m).sum();
    let largest = sizes.iter().map(|[n, m]| n + m).fold(0.0, f64::max);
    // Errors fall like the root of the rank, or faster.
    let factor = if miss <= 2.0 {
        2
    } else if miss <= 5.0 {
        4
    } else {
        8
    };
    let more = [factor, 4, 2].iter().map(|f| f * rank).find(|&more| {
        let bytes = largest * (width * more as f64 + 8.0 * dim as f64 + 64.0);
        more <= options.max_rank.unwrap_or(RANKS[1]) && fits(bytes, options)
    });
    let time_of_more = more.map(|more| points * more as f64 * width * BYTE * (ITERATIONS + BUILD));
    let time_of_pairs = POLISH * pairs * (PAIR[0] + PAIR[1] * dim as f64);
    let exact = options.exact && pairs <= MANY_PAIRS;
    let quicker = time_of_more.is_none_or(|more| time_of_pairs < more);
    if exact && quicker {
        let reason =
            format!("the exact kernel, from the potentials of {} Sobol anchors", commas(rank));
        return Some(Choice { pick: Pick::Exact, reason });
    }
    more.map(|more| Choice {
        pick: Pick::Random { draw: Draw::Sobol, rank: more },
        reason: format!("{} Sobol anchors, as {} were too few", commas(more), commas(rank)),
    })
}

/// A count as people write it.
fn commas(count: usize) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits"))
        .collect();
    groups.join(",")
}

/// Memory that a choice may take, in bytes, where nobody says how much.
const DEFAULT_MEMORY: f64 = 4e9;

fn fits(bytes: f64, options: &Options<'_>) -> bool {
    bytes <= options.max_memory.map_or(DEFAULT_MEMORY, |limit| limit as f64)
}

fn lattice_offer(terms: &[TermStage<'_>], options: &Options<'_>) -> Option<Offer> {
    let (mut time, mut nodes, mut bytes, mut good) = (0.0, 0, 0.0_f64, true);
    for term in terms {
        let lattice = term.lattice(options)?;
        // As wide as the terms that count, and the cell.
        let spacing = lattice.spacing() / term.stage.gauge.epsilon().sqrt();
        let reach = ((11.0 - lattice.ratio().ln()) / 2.0).sqrt();
        let window: f64 = (lattice.counts().iter())
            .map(|count| (2.0 * reach / spacing + 3.0).min(*count as f64))
            .product();
        let points: f64 = term.sizes().iter().sum();
        let all = lattice.nodes() as f64;
        // Cells of few points share the work on their windows badly.
        let crowd = (points / (2.0 * all)).clamp(0.02, 1.0).recip();
        time += points * (POINT[0] + POINT[1] * window * (1.0 + 0.2 * crowd) + POINT[2] * all)
            + 20.0 * all;
        bytes = bytes.max(lattice_bytes(&lattice, points));
        nodes = nodes.max(lattice.nodes());
        // Single precision has a rounding of its own.
        let value = term.stage.gauge.gaussian_value().unwrap_or(0.0);
        good &= options.precision == Precision::F64
            || 2.0 * f32::ROUNDING * options.epsilon <= options.accuracy * value;
    }
    if !fits(bytes, options) {
        return None;
    }
    let text = format!(
        "a lattice of {} nodes {} by {:.0e} of the value",
        commas(nodes),
        if good { "bounds the error" } else { "in single precision cannot bound the error" },
        options.accuracy
    );
    let pick = Pick::Lattice { stored: false };
    Some(Offer { pick, time, text, good })
}

/// Memory of a solve on a lattice: a few numbers a point, and for each chunk of points two a node.
pub(crate) fn lattice_bytes(lattice: &Lattice, points: f64) -> f64 {
    let chunks = (points / 1024.0).clamp(2.0, 128.0);
    let nodes = lattice.nodes() as f64;
    points * (32.0 * lattice.dim() as f64 + 64.0)
        + 16.0 * chunks * nodes.min(5e5)
        + 8.0 * Anderson::MEMORY as f64 * nodes
}

fn random_offer(
    terms: &[TermStage<'_>],
    stage: &Stage,
    options: &Options<'_>,
    time_of_pairs: Option<f64>,
) -> Option<Offer> {
    let weights = terms[0].measures.map(|m| m.support().weights);
    let axes = Axes::new(stage, weights.map(Some));
    let mut trial = Trial::new(stage, &axes, weights, options.seed);
    let width = match options.precision {
        Precision::F32 => 4.0,
        Precision::F64 => 8.0,
    };
    let points: f64 = terms.iter().map(|t| t.sizes().iter().sum::<f64>()).sum();
    let largest = terms.iter().map(|t| t.sizes().iter().sum::<f64>()).fold(0.0, f64::max);
    let value = terms[0].stage.gauge.gaussian_value().unwrap_or(0.0);
    // Evaluating features takes several passes over them.
    let time = |rank: usize| points * rank as f64 * width * BYTE * (1.0 + BUILD / ITERATIONS);
    let dim = axes.q.len() as f64;
    let mut last = None;
    // Sobol points like powers of two.
    for rank in (0..).flat_map(|step| [RANKS[0] << step, (3 * RANKS[0] / 2) << step]) {
        let bytes = largest * (width * rank as f64 + 8.0 * dim + 64.0);
        if rank > options.max_rank.unwrap_or(RANKS[1]) || !fits(bytes, options) {
            break;
        }
        let error = options.epsilon * trial.error(rank);
        let good = error <= LIKELY * options.accuracy * value;
        last = Some((rank, good));
        if good || time_of_pairs.is_some_and(|pairs| time(rank) > pairs) {
            break;
        }
    }
    let (rank, good) = last?;
    let likely = if good { "likely" } else { "not likely" };
    let text = format!(
        "{} Sobol anchors are {likely} to have an error of at most {:.0e} of the value",
        commas(rank),
        options.accuracy
    );
    let pick = Pick::Random { draw: Draw::Sobol, rank };
    Some(Offer { pick, time: time(rank), text, good })
}

/// What a value would be off by with so many random anchors, from a trial of them.
///
/// With `k_theta / k = 1 + delta` the value moves by `-eps E_P[log(1 + delta)]` if the plan `P` couples each
/// point to one other, and by less to second order if to more. In the coordinates of the gauge partners
/// are close, and `delta` is the same for all pairs of one midpoint. So the features themselves tell: at a
/// point `k(x, x) = 1`, and `k_theta(x, x) = sum_k phi_k(x)^2` is something else. With `l` its logarithm over
/// a sample of points, the estimate is
///
/// ```text
/// (|E[l]| + E[exp(l) - 1 - l]) / 2 + the standard error of E[l],    in units of epsilon
/// ```
///
/// The first part is what the mean does, half of it because [`Stage::mean_log_ratio`] finds the other half,
/// the second what the plan does about the differences, the last is for midpoints that are elsewhere. Over
/// clouds of five shapes in 5 to 30 dimensions, epsilon from 2 to 200 per cent of the mean cost and
/// 192 to 8192 anchors, the true error is a tenth of it in the median, and above it in 1 of 579 cases. Of an
/// unbalanced problem the mass of the plan times that: in 180 cases, `rho` from 3 to 300 per cent of the mean
/// cost, the true error is 6 per cent of it in the median, and never above 62. (What it is compared with is the
/// balanced value, so it is a first guess there; certificates tell.)
struct Trial<'a> {
    q: &'a [f64],
    seed: u64,
    sample: Vec<Sampled>,
    /// Standard normals of the anchors.
    normals: Vec<f64>,
    /// Anchors that were tried.
    tried: usize,
}

/// A point of a [`Trial`].
struct Sampled {
    /// `2 x / sqrt(eps)`, on the axes.
    x: Vec<f64>,
    weight: f64,
    /// `log sum_k r phi_k^2`, as the largest term and the sum relative to it.
    largest: f64,
    sum: f64,
}

/// Points of each cloud that are tried, and those of them that are the farthest of all: what heavy tails
/// and outliers need.
const SAMPLE: [usize; 2] = [256, 64];

impl<'a> Trial<'a> {
    fn new(stage: &Stage, axes: &'a Axes, weights: [&[f64]; 2], seed: u64) -> Self {
        let scale = 2.0 / stage.gauge.epsilon().sqrt();
        let dim = axes.q.len();
        let mut sample = Vec::new();
        for (cloud, weights) in [Cloud::X, Cloud::Y].into_iter().zip(weights) {
            let points = stage.points(cloud, Part::Support);
            for (i, weight) in sampled(points, weights) {
                let mut x = vec![0.0; dim];
                points.copy_coordinates(i, 0, &mut x);
                let along = |axis: &[f64]| -> f64 { axis.iter().zip(&x).map(|(a, x)| a * x).sum() };
                let x = axes.directions.chunks_exact(dim).map(|axis| scale * along(axis)).collect();
                sample.push(Sampled {
                    x,
                    weight: 0.5 * weight,
                    largest: f64::NEG_INFINITY,
                    sum: 0.0,
                });
            }
        }
        Trial { q: &axes.q, seed, sample, normals: Vec::new(), tried: 0 }
    }

    /// Error of a value in units of epsilon, with no fewer anchors than at the last call.
    fn error(&mut self, rank: usize) -> f64 {
        let dim = self.q.len();
        if rank * dim > self.normals.len() {
            self.normals = design::normals(Draw::Sobol, 2 * rank, dim, self.seed);
        }
        // phi^2 = prod_a sqrt(2 q_a) exp(z_a^2 / 2 - (x_a - sqrt(q_a) z_a)^2), x in the units above.
        let constant = 0.5 * self.q.iter().map(|q| (2.0 * q).ln()).sum::<f64>();
        let roots: Vec<f64> = self.q.iter().map(|q| q.sqrt()).collect();
        let anchors = &self.normals[self.tried * dim..rank * dim];
        self.sample.par_iter_mut().for_each(|point| {
            for z in anchors.chunks_exact(dim) {
                let parts = z.iter().zip(&roots).zip(&point.x);
                let exponent: f64 =
                    parts.map(|((z, root), x)| 0.5 * z * z - (x - root * z).powi(2)).sum();
                let log = constant + exponent;
                if log > point.largest {
                    point.sum = point.sum * (point.largest - log).exp() + 1.0;
                    point.largest = log;
                } else {
                    point.sum += (log - point.largest).exp();
                }
            }
        });
        self.tried = rank;
        let all = (rank as f64).ln();
        let logs: Vec<(f64, f64)> =
            self.sample.iter().map(|p| (p.weight, p.largest + p.sum.ln() - all)).collect();
        let mean: f64 = logs.iter().map(|(w, l)| w * l).sum();
        let second: f64 = logs.iter().map(|(w, l)| w * (l.exp_m1() - l)).sum();
        let variance: f64 = logs.iter().map(|(w, l)| (w * (l - mean)).powi(2)).sum();
        0.5 * (mean.abs() + second) + variance.sqrt()
    }
}

/// Points of a cloud that stand for all, with their weights.
fn sampled(points: &Points<'_>, weights: &[f64]) -> Vec<(usize, f64)> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    let [most, far] = SAMPLE;
    if points.len() <= most {
        return order.into_iter().map(|i| (i, weights[i])).collect();
    }
    let square = |i: usize| -> f64 {
        (0..points.dim()).map(|k| points.coordinate(i, k).powi(2)).sum::<f64>()
    };
    let squares: Vec<f64> = (0..points.len()).into_par_iter().map(square).collect();
    order.select_nth_unstable_by(far, |i, j| squares[*j].total_cmp(&squares[*i]).then(i.cmp(j)));
    let (farthest, rest) = order.split_at_mut(far);
    rest.sort_unstable();
    let step = rest.len().div_ceil(most - far);
    let thinned: Vec<usize> = rest.iter().copied().step_by(step).collect();
    let sum = |points: &[usize]| points.iter().map(|i| weights[*i]).sum::<f64>();
    let share = sum(rest) / sum(&thinned);
    (farthest.iter().map(|i| (*i, weights[*i])))
        .chain(thinned.iter().map(|i| (*i, share * weights[*i])))
        .collect()
}
