//! Which method is quickest for an accuracy.
//!
//! All methods need about the same number of iterations, so what counts is the time of one, as
//! measured on one machine and scaled: pairs for the exact kernel, points times nodes of a window for
//! a lattice, points times rank for random anchors.

use std::fmt::Write;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::build::KernelChoice;
use crate::anchors::{Draw, MOST_AXES};
use crate::control::{Cancel, Clock, Observer, begin};
use crate::error::Result;
use crate::features::{self, FeatureMap, Gaussian};
use crate::measure::Points;
use crate::numerics::log_sum;
use crate::numerics::simd::Float;
use crate::options::{Options, Precision, SampleSizes};
use crate::sampling::certificate::Strata;
use crate::sampling::stratified;
use crate::term::gauged::{Axes, Gauged, GaugedTerm};
use crate::term::lattices::{self, PAIR, fits};
use crate::words::{Part, Phase, Side};

/// What was chosen and why.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) kernel: KernelChoice,
    pub(crate) reason: String,
    /// The largest error of the kernel of a term, in units of the cost, if it is not what the accuracy says of it.
    pub(crate) error: Option<f64>,
    /// That of the marginals, if it is smaller than usual.
    pub(crate) tolerance: Option<f64>,
}

impl Choice {
    pub(crate) fn new(kernel: KernelChoice, reason: String) -> Self {
        Choice { kernel, reason, error: None, tolerance: None }
    }
}

/// Up to this many pairs the exact kernel is so quick that nothing else is worth it.
const FEW_PAIRS: f64 = 1e6;
/// Beyond this many pairs an iteration of the exact kernel takes minutes.
const MANY_PAIRS: f64 = 2e11;
/// Clusters of midpoints have covariances in up to so many dimensions.
const MOST_LOCAL: usize = 64;
/// Random anchors, at least and at most.
const RANKS: [usize; 2] = [128, 49_152];
/// A stored feature, a byte; evaluating it, for a trial, the solve and its certificate, takes so many times that,
/// and counts for some iterations.
const BYTE: f64 = 0.07;
const BUILD: f64 = 70.0;
const ITERATIONS: f64 = 8.0;
/// What a [`Trial`] says about half the width of a certificate.
const HALF_WIDTH: f64 = 0.3;
/// Errors of random features fall like this power of the rank at most.
const FASTEST: f64 = 2.0;
/// Iterations of the exact kernel after random features: see [`crate::sinkhorn::polish`].
const POLISH: f64 = 6.0;

/// Why samples are chosen.
pub(crate) const SAMPLED: &str = "samples of the clouds say enough, whatever the number of axes";

/// And why all pairs are in the end.
pub(crate) const SAMPLED_NEARLY_ALL: &str = "the exact kernel visits all pairs: a pilot says that samples of the clouds would have to be nearly as large as they are";

/// Points of a sample for an accuracy of one, where plans are spread and usually, at least, and samples: errors fall like
/// the size of a sample.
const SAMPLE: [f64; 3] = [1.0, 40.0, 1024.0];
const SAMPLES: f64 = 8.0;
/// Points of a cloud for which a pilot of samples takes a few hundredths of the time of all pairs.
const PILOT: f64 = 8192.0;
/// Nanoseconds of a pair of a point and a sample, and of one within a sample, all iterations together.
const SAMPLED_PAIR: [f64; 2] = [2.0, 40.0];
/// Iterations of a solve.
const SOLVE: f64 = 40.0;

/// Points that samples are likely to have.
fn sample_size(options: &Options) -> f64 {
    (SAMPLE[1] / options.accuracy).max(SAMPLE[2])
}

/// Whether samples of clouds of these sizes may be quicker than all pairs. A pilot tells, and the exact kernel takes over
/// where they are not.
pub(crate) fn may_sample(sizes: impl Iterator<Item = f64>, options: &Options) -> bool {
    // A quarter of a cloud, and the exact kernel is better.
    let least = (4.0 * SAMPLE[0] / options.accuracy).max(PILOT);
    sizes.fold(f64::INFINITY, f64::min) >= least && options.gauge
}

/// What a method would cost.
struct Offer {
    kernel: KernelChoice,
    /// Nanoseconds of an iteration of all terms.
    time: f64,
    text: String,
    /// Whether the accuracy is reached.
    good: bool,
}

/// Chooses a method for these terms, the cross term first. `shared` makes the coordinates in which one random
/// map would serve all of them.
pub(crate) fn choose(
    terms: &[GaugedTerm<'_>],
    options: &Options,
    shared: impl FnOnce() -> Result<Option<Gauged>>,
    clock: &Clock,
    observer: &mut dyn Observer,
) -> Result<Choice> {
    let dim = terms[0].measures[0].dim();
    let pairs: f64 = terms.iter().map(|t| t.sizes()[0] * t.sizes()[1]).sum();
    let largest = terms.iter().map(|t| t.sizes()[0] * t.sizes()[1]).fold(0.0, f64::max);
    let stored = is_stored(pairs, largest, dim, options);
    let kernel = KernelChoice::Exact { stored };
    if options.exact && pairs <= FEW_PAIRS {
        return Ok(Choice::new(kernel, format!("{} few enough to be exact", counted(pairs))));
    }
    let pair = PAIR[0] + PAIR[1] * dim as f64;
    let time_of_pairs = pairs * if stored { pair / ITERATIONS + 8.0 * BYTE } else { pair };
    let mut offers = Vec::new();
    if options.exact {
        let text = "the exact kernel visits all pairs".to_owned();
        offers.push(Offer { kernel, time: time_of_pairs, text, good: true });
    }
    offers.extend(lattice_offer(terms, options));
    if may_sample(terms.iter().flat_map(GaugedTerm::sizes), options) {
        let points: f64 = terms.iter().flat_map(GaugedTerm::sizes).sum();
        let size = sample_size(options);
        let own = 2.0 * terms.len() as f64 * size * size * SAMPLED_PAIR[1];
        let time = SAMPLES * (points * size * SAMPLED_PAIR[0] + own) / SOLVE;
        // Or what the pilot may bring.
        let time = time.min(0.99 * time_of_pairs);
        let (kernel, text) = (KernelChoice::Sampled(SampleSizes::default()), SAMPLED.to_owned());
        offers.push(Offer { kernel, time, text, good: true });
    }
    // Lattices are at their best where they exist; random anchors need a closer look at the points.
    let quick = offers.iter().any(|o| matches!(o.kernel, KernelChoice::Lattice { .. }));
    if !quick {
        let gauged = shared()?;
        let gauged = gauged.as_ref().unwrap_or(terms[0].gauged);
        // No slower than all pairs, if these are possible, or than samples.
        let possible = |offer: &&Offer| offer.kernel != kernel || pairs <= MANY_PAIRS;
        let most = offers.iter().filter(possible).map(|offer| offer.time).reduce(f64::min);
        offers.extend(random_offer(terms, gauged, options, most, (clock, observer))?);
    }
    offers.sort_by(|a, b| b.good.cmp(&a.good).then(a.time.total_cmp(&b.time)));
    let mut best = 0;
    if offers.first().is_some_and(|o| o.kernel == kernel) && pairs > MANY_PAIRS && offers.len() > 1
    {
        // Hours: what comes near the accuracy is of more use.
        best = 1;
    }
    let Some(offer) = offers.get(best) else {
        let reason = "nothing reaches the accuracy within the memory without the exact kernel";
        return Ok(Choice::new(kernel, reason.to_owned()));
    };
    let mut reason = offer.text.clone();
    if offer.kernel != kernel {
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
    Ok(Choice::new(offer.kernel, reason))
}

/// Bytes that an exact kernel may take, if nobody asked for it to be stored.
const STORED: f64 = 1e9;

/// Pairs of a term that stay in the caches: see the bench `small`, where the stored kernel of up to so many is quicker in
/// any number of axes.
const CACHED_PAIRS: f64 = 4e5;

/// Whether the exact kernel is better stored: where there are many axes its entries take longer to compute than to read,
/// and where there are few pairs they are read from the caches. `largest` is the number of pairs of a term, at most.
fn is_stored(pairs: f64, largest: f64, dim: usize, options: &Options) -> bool {
    let bytes = 8.0 * pairs;
    (dim > MOST_AXES || largest <= CACHED_PAIRS)
        && options.precision == Precision::F64
        && bytes <= STORED
        && fits(bytes, options)
}

/// Whether a kernel of costs that take long to compute is worth storing; the pairs of the terms.
pub(crate) fn stores_pairs(terms: impl Iterator<Item = f64>, options: &Options) -> bool {
    let (pairs, largest) =
        terms.fold((0.0, 0.0_f64), |(all, most), pairs| (all + pairs, most.max(pairs)));
    is_stored(pairs, largest, usize::MAX, options)
}

/// Random anchors, as many as `rank`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sobol,
    Adaptive,
}

impl Kind {
    pub(crate) fn kernel(self, rank: usize) -> KernelChoice {
        match self {
            Kind::Sobol => KernelChoice::Random { draw: Draw::Sobol, rank },
            Kind::Adaptive => KernelChoice::Adaptive { rank },
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
    options: &Options,
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
        return Some(Choice::new(KernelChoice::Exact { stored: false }, reason));
    }
    more.map(|more| {
        let (more_anchors, name, rank) = (commas(more), kind.name(), commas(rank));
        let reason = format!("{more_anchors} {name} anchors, as {rank} were too few");
        Choice::new(kind.kernel(more), reason)
    })
}

/// The exact kernel for this reason, if it is allowed and takes no hours.
pub(crate) fn exact_because(
    reason: String,
    sizes: &[[f64; 2]],
    options: &Options,
) -> Option<Choice> {
    let pairs: f64 = sizes.iter().map(|[n, m]| n * m).sum();
    (options.exact && pairs <= MANY_PAIRS)
        .then(|| Choice::new(KernelChoice::Exact { stored: false }, reason))
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

fn lattice_offer(terms: &[GaugedTerm<'_>], options: &Options) -> Option<Offer> {
    let (mut time, mut nodes, mut bytes, mut good) = (0.0, 0, 0.0_f64, true);
    for term in terms {
        let lattice = term.lattice(options)?;
        let points: f64 = term.sizes().iter().sum();
        time += term.time_on(&lattice);
        bytes = bytes.max(lattices::bytes(&lattice, points));
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
    let kernel = KernelChoice::Lattice { stored: false };
    Some(Offer { kernel, time, text, good })
}

/// What the error of these terms is relative to.
fn whole(terms: &[GaugedTerm<'_>]) -> &'static str {
    if terms.len() > 1 { "divergence" } else { "value" }
}

fn random_offer(
    terms: &[GaugedTerm<'_>],
    gauged: &Gauged,
    options: &Options,
    time_of_pairs: Option<f64>,
    (clock, observer): (&Clock, &mut dyn Observer),
) -> Result<Option<Offer>> {
    let weights = terms[0].measures.map(|m| m.support().weights);
    let axes = Axes::new(gauged, weights.map(Some));
    let trial = Trial::new(gauged, terms[0].clouds, weights, options.seed);
    let clouds: Vec<[Side; 2]> = terms.iter().map(|t| t.clouds).collect();
    let dim = axes.q.len();
    // Where time is short, Sobol anchors are what there is at once.
    let local = dim <= MOST_LOCAL && !clock.is_time_to_choose();
    let midpoints = local.then(|| gauged.likely_midpoints(&clouds, weights, options.seed));
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
        let map = gauged.random(&axes, Draw::Sobol, rank, options.seed);
        let sobol = trial.error(&map, clock.cancel());
        let known = midpoints.as_ref().filter(|_| !clock.is_time_to_choose());
        let adaptive = known.map_or(f64::INFINITY, |midpoints| {
            trial.error(&gauged.adaptive(midpoints, rank, options.seed), clock.cancel())
        });
        let kind = if sobol <= adaptive { Kind::Sobol } else { Kind::Adaptive };
        let good = options.epsilon * sobol.min(adaptive) <= allowed;
        last = Some((kind, rank, good));
        begin(observer, Phase::Choosing)?;
        let enough = good || clock.is_time_to_choose();
        // No more is worth a look, or likely to reach the accuracy.
        let useless = time_of_pairs.is_some_and(|most| {
            let left = most / time(rank);
            left < 1.0 || options.epsilon * sobol.min(adaptive) > allowed * left.powf(FASTEST)
        });
        if enough || useless {
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
    let kernel = kind.kernel(rank);
    Ok(Some(Offer { kernel, time: time(rank), text, good }))
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
const TRIED_POINTS: [usize; 2] = [256, 64];

impl Trial {
    fn new(gauged: &Gauged, clouds: [Side; 2], weights: [&[f64]; 2], seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut coordinates, mut shares, mut dim) = (Vec::new(), Vec::new(), 0);
        for (cloud, weights) in clouds.into_iter().zip(weights) {
            let points = gauged.points(cloud, Part::Support);
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
    let [most, far] = TRIED_POINTS;
    let strata = Strata::new(points, weights, if points.len() <= most { most } else { far });
    let mut chosen: Vec<(usize, f64)> = strata.far.iter().map(|&i| (i, weights[i])).collect();
    if !strata.rest.is_empty() {
        let count = most - far;
        let each = (1.0 - strata.share) / count as f64;
        chosen.extend(stratified(&strata.rest, weights, count, rng).iter().map(|&i| (i, each)));
    }
    chosen
}
