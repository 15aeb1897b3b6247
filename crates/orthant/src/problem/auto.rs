//! Which method is quickest for an accuracy.
//!
//! All methods need about the same number of iterations, so what counts is the time of one, as
//! measured on one machine and scaled: pairs for the exact kernel, points times nodes of a window for
//! a lattice, points times rank for random anchors.

use std::fmt::Write;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::stage::{Axes, Stage};
use super::{Pick, most_nodes};
use crate::anchors::{Draw, Lattice, MOST_AXES};
use crate::control::{Cancel, Clock, Observer, begin};
use crate::error::Result;
use crate::features::{self, FeatureMap, Gaussian};
use crate::measure::{Measure, Points};
use crate::numerics::log_sum;
use crate::numerics::simd::Float;
use crate::options::{Options, Precision};
use crate::sampling::certificate::Strata;
use crate::sampling::stratified;
use crate::sinkhorn::anderson::Anderson;
use crate::words::{Cloud, Part, Phase};

/// What was chosen and why.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) pick: Pick,
    pub(crate) reason: String,
    /// The largest error of the kernel of a term, in units of the cost, if it is not what the accuracy says of it.
    pub(crate) error: Option<f64>,
    /// That of the marginals, if it is smaller than usual.
    pub(crate) tolerance: Option<f64>,
}

impl Choice {
    pub(crate) fn new(pick: Pick, reason: String) -> Self {
        Choice { pick, reason, error: None, tolerance: None }
    }
}

/// Largest relative error of the kernel that moves a value by no more than `accuracy`.
pub(crate) fn ratio_for(accuracy: f64, epsilon: f64) -> f64 {
    (-(-accuracy / epsilon).exp_m1()).clamp(1e-11, 0.5)
}

/// Up to this many pairs the exact kernel is so quick that nothing else is worth it.
const FEW_PAIRS: f64 = 1e6;
/// Beyond this many pairs an iteration of the exact kernel takes minutes.
const MANY_PAIRS: f64 = 2e11;
/// Clusters of midpoints have covariances in up to so many dimensions.
const MOST_LOCAL: usize = 64;
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
/// What a [`Trial`] says about half the width of a certificate.
const HALF_WIDTH: f64 = 0.3;
/// Iterations of the exact kernel after random features: see [`crate::sinkhorn::polish`].
const POLISH: f64 = 6.0;

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

    /// The error that the kernel may have, in units of the cost, judged by the value of Gaussians.
    fn allowed(&self, options: &Options<'_>) -> f64 {
        let value = || self.stage.gauge.gaussian_value().unwrap_or(0.0);
        self.stage.error.unwrap_or_else(|| options.accuracy * value())
    }

    /// The lattice for the accuracy asked for.
    pub(crate) fn lattice(&self, options: &Options<'_>) -> Option<Lattice> {
        self.lattice_for(self.allowed(options), options)
    }

    /// The lattice whose error is at most this.
    pub(crate) fn lattice_for(&self, error: f64, options: &Options<'_>) -> Option<Lattice> {
        let [low, high] = self.stage.midpoints(self.clouds[0], self.clouds[1]);
        if low.len() > MOST_AXES {
            return None;
        }
        let most = most_nodes(self.measures.iter().map(|m| m.support().len()).sum());
        let ratio = 0.8 * ratio_for(error, options.epsilon);
        Lattice::covering(&low, &high, self.stage.gauge.epsilon(), ratio, most)
    }

    /// Nanoseconds of an iteration on a lattice.
    fn time_on(&self, lattice: &Lattice) -> f64 {
        // As wide as the terms that count, and the cell.
        let spacing = lattice.spacing() / self.stage.gauge.epsilon().sqrt();
        let reach = ((11.0 - lattice.ratio().ln()) / 2.0).sqrt();
        let window: f64 = (lattice.counts().iter())
            .map(|count| (2.0 * reach / spacing + 3.0).min(*count as f64))
            .product();
        let points: f64 = self.sizes().iter().sum();
        let all = lattice.nodes() as f64;
        // Cells of few points share the work on their windows badly.
        let crowd = (points / (2.0 * all)).clamp(0.02, 1.0).recip();
        points * (POINT[0] + POINT[1] * window * (1.0 + 0.2 * crowd) + POINT[2] * all) + 20.0 * all
    }
}

/// Relative errors of lattices beside the exact kernel, the best first.
const NEAR: [f64; 4] = [1e-7, 1e-4, 1e-2, 0.1];
/// Their iterations in the time of a pass over all pairs, at least.
const QUICK: f64 = 4.0;

/// The finest lattice that is quick beside the exact kernel, if there is one.
pub(crate) fn near_lattice(term: &TermStage<'_>, options: &Options<'_>) -> Option<Lattice> {
    let [low, high] = term.stage.midpoints(term.clouds[0], term.clouds[1]);
    if low.len() > MOST_AXES {
        return None;
    }
    let [n, m] = term.sizes();
    let most = QUICK.recip() * n * m * (PAIR[0] + PAIR[1] * low.len() as f64);
    NEAR.iter()
        .filter_map(|&ratio| {
            let nodes = most_nodes(term.measures.iter().map(|m| m.support().len()).sum());
            Lattice::covering(&low, &high, term.stage.gauge.epsilon(), ratio, nodes)
        })
        .find(|lattice| {
            term.time_on(lattice) <= most && fits(lattice_bytes(lattice, n + m), options)
        })
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
    clock: &Clock,
    observer: &mut dyn Observer,
) -> Result<Choice> {
    let dim = terms[0].measures[0].dim();
    let pairs: f64 = terms.iter().map(|t| t.sizes()[0] * t.sizes()[1]).sum();
    let largest = terms.iter().map(|t| t.sizes()[0] * t.sizes()[1]).fold(0.0, f64::max);
    let stored = is_stored(pairs, largest, dim, options);
    let pick = Pick::Exact { stored };
    if options.exact && pairs <= FEW_PAIRS {
        return Ok(Choice::new(pick, format!("{} few enough to be exact", counted(pairs))));
    }
    let pair = PAIR[0] + PAIR[1] * dim as f64;
    let time_of_pairs = pairs * if stored { pair / ITERATIONS + 8.0 * BYTE } else { pair };
    let mut offers = Vec::new();
    if options.exact {
        let text = "the exact kernel visits all pairs".to_owned();
        offers.push(Offer { pick, time: time_of_pairs, text, good: true });
    }
    offers.extend(lattice_offer(terms, options));
    // Lattices are at their best where they exist; random anchors need a closer look at the points.
    let quick = offers.iter().any(|o| matches!(o.pick, Pick::Lattice { .. }));
    if !quick {
        let stage = shared()?;
        let stage = stage.as_ref().unwrap_or(terms[0].stage);
        // No slower than all pairs, if these are possible.
        let most = (options.exact && pairs <= MANY_PAIRS).then_some(time_of_pairs);
        offers.extend(random_offer(terms, stage, options, most, (clock, observer))?);
    }
    offers.sort_by(|a, b| b.good.cmp(&a.good).then(a.time.total_cmp(&b.time)));
    let mut best = 0;
    if offers.first().is_some_and(|o| o.pick == pick) && pairs > MANY_PAIRS && offers.len() > 1 {
        // Hours: what comes near the accuracy is of more use.
        best = 1;
    }
    let Some(offer) = offers.get(best) else {
        let reason = "nothing reaches the accuracy within the memory without the exact kernel";
        return Ok(Choice::new(pick, reason.to_owned()));
    };
    let mut reason = offer.text.clone();
    if offer.pick != pick {
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
    Ok(Choice::new(offer.pick, reason))
}

/// Bytes that an exact kernel may take, if nobody asked for it to be stored.
const STORED: f64 = 1e9;

/// Pairs of a term that stay in the caches: see the bench `small`, where the stored kernel of up to so many is quicker in
/// any number of axes.
const CACHED_PAIRS: f64 = 4e5;

/// Whether the exact kernel is better stored: where there are many axes its entries take longer to compute than to read,
/// and where there are few pairs they are read from the caches. `largest` is the number of pairs of a term, at most.
fn is_stored(pairs: f64, largest: f64, dim: usize, options: &Options<'_>) -> bool {
    let bytes = 8.0 * pairs;
    (dim > MOST_AXES || largest <= CACHED_PAIRS)
        && options.precision == Precision::F64
        && bytes <= STORED
        && fits(bytes, options)
}

/// Random anchors, as many as `rank`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sobol,
    Adaptive,
}

impl Kind {
    pub(crate) fn pick(self, rank: usize) -> Pick {
        match self {
            Kind::Sobol => Pick::Random { draw: Draw::Sobol, rank },
            Kind::Adaptive => Pick::Adaptive { rank },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Sobol => "Sobol",
            Kind::Adaptive => "adaptive",
        }
    }
}

/// More anchors than `rank`, or the exact kernel, whichever takes less time, for values that are `miss` times less
/// certain than they should be. Starts from the potentials that there are.
pub(crate) fn improve(
    kind: Kind,
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
        let (rank, name) = (commas(rank), kind.name());
        let reason = format!("the exact kernel, from the potentials of {rank} {name} anchors");
        return Some(Choice::new(Pick::Exact { stored: false }, reason));
    }
    more.map(|more| {
        let (more_anchors, name, rank) = (commas(more), kind.name(), commas(rank));
        let reason = format!("{more_anchors} {name} anchors, as {rank} were too few");
        Choice::new(kind.pick(more), reason)
    })
}

/// The exact kernel after something else, if it is allowed and takes no hours.
pub(crate) fn exact_after(what: &str, sizes: &[[f64; 2]], options: &Options<'_>) -> Option<Choice> {
    let pairs: f64 = sizes.iter().map(|[n, m]| n * m).sum();
    let reason = || format!("the exact kernel, from the potentials of {what}");
    (options.exact && pairs <= MANY_PAIRS)
        .then(|| Choice::new(Pick::Exact { stored: false }, reason()))
}

/// So many pairs, as people say it.
fn counted(pairs: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    match pairs as usize {
        1 => "1 pair is".to_owned(),
        count => format!("{} pairs are", commas(count)),
    }
}

/// A count as people write it.
pub(crate) fn commas(count: usize) -> String {
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
        let points: f64 = term.sizes().iter().sum();
        time += term.time_on(&lattice);
        bytes = bytes.max(lattice_bytes(&lattice, points));
        nodes = nodes.max(lattice.nodes());
        // Single precision has a rounding of its own.
        good &= options.precision == Precision::F64
            || 2.0 * f32::ROUNDING * options.epsilon <= term.allowed(options);
    }
    if !fits(bytes, options) {
        return None;
    }
    let text = format!(
        "a lattice of {} nodes {} by {:.0e} of the {}",
        commas(nodes),
        if good { "bounds the error" } else { "in single precision cannot bound the error" },
        options.accuracy,
        whole(terms),
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

/// What the error of these terms is relative to.
fn whole(terms: &[TermStage<'_>]) -> &'static str {
    if terms.len() > 1 { "divergence" } else { "value" }
}

fn random_offer(
    terms: &[TermStage<'_>],
    stage: &Stage,
    options: &Options<'_>,
    time_of_pairs: Option<f64>,
    (clock, observer): (&Clock, &mut dyn Observer),
) -> Result<Option<Offer>> {
    let weights = terms[0].measures.map(|m| m.support().weights);
    let axes = Axes::new(stage, weights.map(Some));
    let trial = Trial::new(stage, terms[0].clouds, weights, options.seed);
    let clouds: Vec<[Cloud; 2]> = terms.iter().map(|t| t.clouds).collect();
    let dim = axes.q.len();
    // Where time is short, Sobol anchors are what there is at once.
    let local = dim <= MOST_LOCAL && !clock.is_time_to_choose();
    let midpoints = local.then(|| stage.likely_midpoints(&clouds, weights, options.seed));
    let width = match options.precision {
        Precision::F32 => 4.0,
        Precision::F64 => 8.0,
    };
    let points: f64 = terms.iter().map(|t| t.sizes().iter().sum::<f64>()).sum();
    let largest = terms.iter().map(|t| t.sizes().iter().sum::<f64>()).fold(0.0, f64::max);
    let allowed = terms[0].allowed(options);
    // Evaluating features takes several passes over them.
    let time = |rank: usize| points * rank as f64 * width * BYTE * (1.0 + BUILD / ITERATIONS);
    let mut last = None;
    // Sobol points like powers of two.
    for rank in (0..).flat_map(|step| [RANKS[0] << step, (3 * RANKS[0] / 2) << step]) {
        let bytes = largest * (width * rank as f64 + 8.0 * dim as f64 + 64.0);
        if rank > options.max_rank.unwrap_or(RANKS[1]) || !fits(bytes, options) {
            break;
        }
        let map = stage.random(&axes, Draw::Sobol, rank, options.seed);
        let sobol = trial.error(&map, clock.cancel());
        let known = midpoints.as_ref().filter(|_| !clock.is_time_to_choose());
        let adaptive = known.map_or(f64::INFINITY, |midpoints| {
            trial.error(&stage.adaptive(midpoints, rank, options.seed), clock.cancel())
        });
        let kind = if sobol <= adaptive { Kind::Sobol } else { Kind::Adaptive };
        let good = options.epsilon * sobol.min(adaptive) <= allowed;
        last = Some((kind, rank, good));
        begin(observer, Phase::Choosing)?;
        let enough = good || clock.is_time_to_choose();
        if enough || time_of_pairs.is_some_and(|pairs| time(rank) > pairs) {
            break;
        }
    }
    let Some((kind, rank, good)) = last else { return Ok(None) };
    let likely = if good { "likely" } else { "not likely" };
    let text = format!(
        "{} {} anchors are {likely} to have an error of at most {:.0e} of the {}",
        commas(rank),
        kind.name(),
        options.accuracy,
        whole(terms),
    );
    let pick = kind.pick(rank);
    Ok(Some(Offer { pick, time: time(rank), text, good }))
}

/// How wide a certificate would be with some features, from a trial of them.
///
/// With `k_theta / k = 1 + delta`, bounds from samples of the plan are apart by about half of the variance of
/// `delta` over the plan, and their middle is the value. In the coordinates of the gauge partners are close, and
/// `delta` is the same for all pairs of one midpoint. So the features themselves tell: at a point `k(x, x) = 1`,
/// and `k_theta(x, x) = sum_k phi_k(x)^2` is something else. With `l` its logarithm, the mean of `exp(l) - 1 - l`
/// over a sample of points is half of that variance if it is small; and where features miss points altogether it
/// counts how far. On the HIGGS data in 7 and 28 dimensions, epsilon from 3 to 90 per cent of the mean cost and 1024
/// and 3072 anchors, half of the width is 0.1 to 0.3 times this mean with adaptive anchors, and 0.4 to 1.1 times
/// with others.
struct Trial {
    sample: Points<'static>,
    weights: Vec<f64>,
}

/// Points of each cloud that are tried, and those of them that are the farthest of all: what heavy tails
/// and outliers need.
const SAMPLE: [usize; 2] = [256, 64];

impl Trial {
    fn new(stage: &Stage, clouds: [Cloud; 2], weights: [&[f64]; 2], seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut coordinates, mut shares, mut dim) = (Vec::new(), Vec::new(), 0);
        for (cloud, weights) in clouds.into_iter().zip(weights) {
            let points = stage.points(cloud, Part::Support);
            dim = points.dim();
            for (i, weight) in sampled(points, weights, &mut rng) {
                coordinates.extend((0..dim).map(|c| points.coordinate(i, c)));
                shares.push(0.5 * weight);
            }
        }
        let sample = Points::new(coordinates, dim).expect("points of the clouds");
        Trial { sample, weights: shares }
    }

    /// Error of a value in units of epsilon with these features.
    fn error(&self, map: &Gaussian, cancel: &Cancel) -> f64 {
        let (rank, width) = (map.rank(), features::stride(map.rank()));
        let logs: Vec<f64> = (0..self.weights.len())
            .into_par_iter()
            .map_init(
                || vec![0.0; width],
                |row, i| {
                    cancel.check();
                    map.log_features(&self.sample, i, width, row);
                    log_sum(row[..rank].iter().map(|l| 2.0 * l))
                },
            )
            .collect();
        let second: f64 = self.weights.iter().zip(&logs).map(|(w, l)| w * (l.exp_m1() - l)).sum();
        let error = HALF_WIDTH * second;
        // A point that no feature reaches is the worst that can be.
        if error.is_nan() { f64::INFINITY } else { error }
    }
}

/// Points of a cloud that stand for all, with their weights.
fn sampled(points: &Points<'_>, weights: &[f64], rng: &mut ChaCha8Rng) -> Vec<(usize, f64)> {
    let [most, far] = SAMPLE;
    let strata = Strata::new(points, weights, if points.len() <= most { most } else { far });
    let mut chosen: Vec<(usize, f64)> = strata.far.iter().map(|&i| (i, weights[i])).collect();
    if !strata.rest.is_empty() {
        let count = most - far;
        let each = (1.0 - strata.share) / count as f64;
        chosen.extend(stratified(&strata.rest, weights, count, rng).iter().map(|&i| (i, each)));
    }
    chosen
}
