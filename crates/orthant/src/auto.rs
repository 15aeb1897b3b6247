//! Which method is quickest for an accuracy.
//!
//! All methods need about the same number of iterations, so what counts is the time of one, as
//! measured on one machine and scaled: pairs for the exact kernel, points times nodes of a window for
//! a lattice, points times rank for random anchors.

use std::fmt::Write;

use crate::design::{Draw, Lattice, MOST_AXES};
use crate::error::{Cloud, Result};
use crate::measure::{Measure, Points};
use crate::options::{Options, Precision};
use crate::problem::{Pick, most_nodes};
use crate::stage::{Axes, Part, Stage};
use crate::theory;

/// What was chosen and why.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) pick: Pick,
    pub(crate) reason: String,
    /// Error of the value that random anchors are expected to have.
    pub(crate) estimate: Option<f64>,
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
const RANKS: [usize; 2] = [100, 50_000];
/// Nanoseconds of one thread, an iteration: a pair of the exact kernel, and more for each coordinate.
const PAIR: [f64; 2] = [2.5, 0.35];
/// A point of a lattice, and more for each node of its window and of the lattice.
const POINT: [f64; 3] = [60.0, 0.35, 0.005];
/// A stored feature, a byte; evaluating it takes so many times that, and counts for some iterations.
const BYTE: f64 = 0.07;
const BUILD: f64 = 10.0;
const ITERATIONS: f64 = 15.0;

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
    estimate: Option<f64>,
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
        return Ok(Choice { pick: Pick::Exact, reason, estimate: None });
    }
    let mut offers = Vec::new();
    if options.exact {
        let text = "the exact kernel visits all pairs".to_owned();
        let (pick, estimate) = (Pick::Exact, None);
        offers.push(Offer { pick, time: time_of_pairs, text, estimate, good: true });
    }
    offers.extend(lattice_offer(terms, options));
    // Lattices are at their best where they exist; random anchors need a closer look at the points.
    let quick = offers.iter().any(|o| matches!(o.pick, Pick::Lattice { .. }));
    if !quick {
        let stage = shared()?;
        let stage = stage.as_ref().unwrap_or(terms[0].stage);
        offers.extend(random_offer(terms, stage, options));
    }
    offers.sort_by(|a, b| b.good.cmp(&a.good).then(a.time.total_cmp(&b.time)));
    let mut best = 0;
    if offers[0].pick == Pick::Exact && pairs > MANY_PAIRS && offers.len() > 1 {
        // Hours: what comes near the accuracy is of more use.
        best = 1;
    }
    let Some(offer) = offers.get(best) else {
        let reason = "nothing reaches the accuracy within the memory without the exact kernel";
        return Ok(Choice { pick: Pick::Exact, reason: reason.to_owned(), estimate: None });
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
    Ok(Choice { pick: offer.pick, reason, estimate: offer.estimate })
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

fn fits(bytes: f64, options: &Options<'_>) -> bool {
    options.max_memory.is_none_or(|limit| bytes <= limit as f64)
}

fn lattice_offer(terms: &[TermStage<'_>], options: &Options<'_>) -> Option<Offer> {
    let (mut time, mut nodes, mut bytes) = (0.0, 0, 0.0_f64);
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
    }
    if !fits(bytes, options) {
        return None;
    }
    let text = format!(
        "a lattice of {} nodes bounds the error by {:.0e} of the value",
        commas(nodes),
        options.accuracy
    );
    let pick = Pick::Lattice { stored: false };
    Some(Offer { pick, time, text, estimate: None, good: true })
}

/// Memory of a solve on a lattice: a few numbers a point, and for each chunk of points two a node.
pub(crate) fn lattice_bytes(lattice: &Lattice, points: f64) -> f64 {
    let chunks = (points / 1024.0).clamp(2.0, 128.0);
    points * (32.0 * lattice.dim() as f64 + 64.0)
        + 16.0 * chunks * (lattice.nodes() as f64).min(5e5)
}

fn random_offer(terms: &[TermStage<'_>], stage: &Stage, options: &Options<'_>) -> Option<Offer> {
    let weights = terms[0].measures.map(|m| Some(m.support().weights));
    let axes = Axes::new(stage, weights);
    let model = ErrorModel::new(stage, &axes, weights);
    let width = match options.precision {
        Precision::F32 => 4.0,
        Precision::F64 => 8.0,
    };
    let points: f64 = terms.iter().map(|t| t.sizes().iter().sum::<f64>()).sum();
    let largest = terms.iter().map(|t| t.sizes().iter().sum::<f64>()).fold(0.0, f64::max);
    let value = terms[0].stage.gauge.gaussian_value().unwrap_or(0.0);
    let mut last = None;
    for step in 0.. {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let rank = (RANKS[0] as f64 * 2f64.powf(0.5 * f64::from(step))) as usize;
        let dim = stage.points(Cloud::X, Part::Support).dim() as f64;
        let bytes = largest * (width * rank as f64 + 8.0 * dim + 64.0);
        if rank > RANKS[1] || !fits(bytes, options) {
            break;
        }
        let error = options.epsilon * model.error(rank as f64);
        let good = error <= options.accuracy * value;
        last = Some((rank, error, good));
        if good {
            break;
        }
    }
    let (rank, error, good) = last?;
    let text = format!(
        "{} Sobol anchors have an estimated error of {:.0e} of the value{}",
        commas(rank),
        error / value,
        if good { "" } else { ", not the accuracy asked for" }
    );
    let pick = Pick::Random { draw: Draw::Sobol, rank };
    // Evaluating features takes several passes over them.
    let time = points * rank as f64 * width * BYTE * (1.0 + BUILD / ITERATIONS);
    Some(Offer { pick, time, text, estimate: Some(error), good })
}

/// How the error of a value falls with the number of random anchors.
///
/// With `k_theta / k = 1 + delta`, the value moves by `-eps E_P[delta]` to first and by
/// `eps E_P[delta^2] / 2` to second order. Over the draw of `r` independent anchors
/// `E_P[delta]` has the variance `V1 / r`, `V1 + 1` the mean of [`theory::ln_joint_moment`] over pairs of
/// midpoints, and `delta^2` has the mean `(M - 1) / r`, `M` the second moment at a midpoint. The plan is not
/// known yet: in the coordinates of the gauge partners are close, so points stand for midpoints.
struct ErrorModel {
    first: f64,
    /// Second moments at points, as logarithms, and their weights.
    second: Vec<(f64, f64)>,
}

/// Points whose pairs are looked at.
const SAMPLE: usize = 400;
/// Sobol points are this much better than independent ones, to first and to second order.
const GAIN: [f64; 2] = [0.25, 0.25];

impl ErrorModel {
    fn new(stage: &Stage, axes: &Axes, weights: [Option<&[f64]>; 2]) -> Self {
        let dim = axes.q.len();
        let epsilon = stage.gauge.epsilon();
        let on_axes = |points: &Points<'_>, i: usize| -> Vec<f64> {
            let mut x = vec![0.0; dim];
            points.copy_coordinates(i, 0, &mut x);
            axes.directions
                .chunks_exact(dim)
                .map(|axis| axis.iter().zip(&x).map(|(a, x)| a * x).sum())
                .collect()
        };
        let mut second = Vec::new();
        let mut sample = Vec::new();
        for (cloud, weights) in [Cloud::X, Cloud::Y].into_iter().zip(weights) {
            let (points, weights) = (stage.points(cloud, Part::Support), weights.expect("both"));
            let step = points.len().div_ceil(SAMPLE / 2);
            let all = points.len().div_ceil(50 * SAMPLE);
            for i in (0..points.len()).step_by(all) {
                let x = on_axes(points, i);
                let log = theory::ln_second_moment(&axes.q, &x, epsilon);
                second.push((log, 0.5 * weights[i] * all as f64));
                if i % step == 0 {
                    sample.push((x, weights[i] * step as f64));
                }
            }
        }
        let (mut sum, mut mass) = (0.0, 0.0);
        for (k, (x, w)) in sample.iter().enumerate() {
            for (y, v) in &sample[..k] {
                let log = theory::ln_joint_moment(&axes.q, x, y, epsilon);
                sum += w * v * log.min(40.0).exp_m1();
                mass += w * v;
            }
        }
        let first = if mass > 0.0 { (sum / mass).max(0.0) } else { 0.0 };
        ErrorModel { first, second }
    }

    /// Error of a value in units of epsilon.
    fn error(&self, rank: f64) -> f64 {
        let second: f64 = self
            .second
            .iter()
            .map(|(log, weight)| {
                let t = GAIN[1] * (log - rank.ln()).exp();
                // Where the variance is larger than one there is no anchor near: the logarithm counts.
                weight * if t < 1.0 { 0.5 * t } else { 0.5 + t.ln() }
            })
            .sum();
        GAIN[0] * (self.first / rank).sqrt() + second
    }
}
