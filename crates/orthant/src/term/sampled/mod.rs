//! The exact kernel with sampled measures: any number of axes, any cost, in linear time.
//!
//! Positive features resolve the kernel along every axis, which is hopeless in many of them; the plan does not need it. In
//! units of epsilon and relative to the weights, let `f`, `g` be potentials and `c` the cost: at the optimum the value is
//! `a.f + b.g`. Some independent samples of both clouds are solved exactly, and the potentials of each are
//! extended to all points by one half-step over the sample. Their mean over the samples, the *bag*, is closer than
//! any of them, and the exact value is between
//!
//! ```text
//! b.g + E_a[f_g],     f_g(x) = -log sum_j b_j exp(g_j - c(x, y_j))            (semi-dual, any g)
//! E W(sample of a, sample of b)                                               (Jensen: W is convex in each measure)
//! ```
//!
//! The first mean is over the points of the first cloud, of which some are taken, with all columns (`lower`); the second
//! over the samples (`upper`), less what potentials that do not know a sample tell of its noise. The bags of all samples but
//! one tell by how much the lower end is too low: the value is the jackknife's, between both ends, with a
//! standard error.
//!
//! The plan of a cloud with itself sits on its diagonal, which a sample of `N` of `n` points would count `n / N` times. With
//! the diagonal entries `a_x`, and the others so that pairs of *different* points are unbiased, the dual function of the
//! sample has the right mean for every fixed potential, and Jensen holds again ([`OwnRows`]).

mod drawn;
mod draws;
mod ends;
mod own;

pub(crate) use drawn::Drawn;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use draws::Draws;
use ends::{Ends, Extended, Whole};
use own::OwnRows;

use super::derivative::Operand;
use super::exact::{self, ExactKernel, Held};
use super::pairwise::Pairwise;
use super::site::Chosen;
use super::view::{Partners, Seat, View};
use super::{KernelError, RowScaling, Scaling, Site, Solved, State, Task, TermKernel, Work};
use crate::comm::Span;
use crate::control::{Stop, begin};
use crate::error::Result;
use crate::kernel::{Builds, Kernel, LogPass, Marginal};
use crate::measure::Points;
use crate::numerics::simd::{self, Float};
use crate::options::{Precision, SampleSizes};
use crate::results::{Estimate, Sampling, scale};
use crate::rows::{LogRows, TileFloat};
use crate::sampling::Pairs;
use crate::sampling::certificate::Bounds;
use crate::sinkhorn::{Outcome, Run};
use crate::words::{Part, Phase, Side};

/// The exact kernel of a cost, with sampled measures. See the [module](self).
#[derive(Debug)]
pub(crate) struct SampledKernel<'p> {
    exact: ExactKernel<'p>,
    asked: SampleSizes,
}

/// Points of the first samples, and samples, where nobody says how many.
const FIRST_SIZE: usize = 512;
const DEFAULT_SAMPLES: usize = 8;
/// Samples without which there is no standard error.
const LEAST_SAMPLES: usize = 2;
/// Points of a sample at most where all pairs would take hours: its own pairs take minutes.
const LARGEST_SIZE: usize = 1 << 16;
/// Rows with all columns: at first, and at most.
const ROWS: [usize; 2] = [512, 1 << 14];
/// A sample of more than this part of a cloud takes longer than the cloud.
const NEARLY_ALL: f64 = 0.25;
/// Pairs up to which the exact kernel takes over from samples that are not good enough.
const MANY_PAIRS: f64 = 2e11;
/// Bytes of the kernel of a sample that is stored.
const STORED: f64 = 5e8;
/// Tolerances above this can be had in single precision.
const SINGLE: f64 = 1e-5;
/// By how much samples grow at most from one round to the next.
const GROWTH: f64 = 8.0;
/// The part of the allowed error that the next round is planned for.
const PLANNED: f64 = 0.85;

impl<'p> SampledKernel<'p> {
    pub(crate) fn new(site: Site<'p>, asked: SampleSizes) -> Self {
        SampledKernel { exact: ExactKernel::new(site, false), asked }
    }

    /// The value with samples of these sizes, from the potentials of an earlier round if there was one; with fewer samples if
    /// it was ended before, and nothing if these are too few.
    fn round(
        &self,
        sizes: Sizes,
        start: Option<&Extended>,
        task: &Task<'_>,
        work: &mut Work<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Round>> {
        let site = self.exact.site();
        let whole = Whole { weights: task.weights, spans: task.spans, is_self: site.is_self() };
        let (mut samples, mut values, mut iterations) = (Vec::new(), Vec::new(), 0);
        let mut stop = Stop::Converged;
        for _ in 0..sizes.samples {
            begin(work.observer, Phase::Iterations)?;
            let draws = Draws::new(&whole, sizes.size, rng);
            let sample = self.solve_sample(&draws, start, task, work)?;
            iterations += sample.iterations;
            if matches!(sample.stop, Stop::TimeLimit | Stop::Requested) {
                stop = sample.stop;
                break;
            }
            values.push((sample.value, draws));
            samples.push(sample.potentials);
        }
        if samples.len() < LEAST_SAMPLES {
            return Ok(None);
        }
        let sizes = Sizes { samples: samples.len(), ..sizes };
        begin(work.observer, Phase::Certificate)?;
        let bag = Extended::mean(&samples);
        let ends = Ends::new(self, &whole, &samples, &bag, &values, sizes.rows, rng);
        let draws = values.into_iter().map(|(_, draws)| draws).collect();
        Ok(Some(Round { sizes, draws, bag, ends, iterations, stop }))
    }

    fn solve_sample(
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
        let size = rows.len();
        let (even, span) = (vec![1.0 / size as f64; size], Span::alone(size));
        let share = (size as f64).ln();
        let first: Vec<f64> = match start {
            Some(bag) => rows.iter().map(|&i| bag.f[i] - share).collect(),
            None => vec![-share; size],
        };
        let run = Run { offset: 0.0, time: work.clock.left(), ..task.run };
        let small = Task {
            start: first,
            flat: start.is_none(),
            rough: None,
            weights: [&even; 2],
            spans: [&span; 2],
            unbalanced: None,
            run,
        };
        // Single precision is far more precise than samples are, unless a tolerance asks for more.
        let (precision, rounding, bytes) = if run.tolerance > SINGLE {
            (Precision::F32, f32::ROUNDING, 4.0)
        } else {
            (Precision::F64, f64::ROUNDING, 8.0)
        };
        let stored = bytes * (size as f64).powi(2) <= STORED;
        let held = Held { stored, precision };
        let outcome = exact::solve(entries, held, &small, work.observer)?.outcome;
        let mean = |f: &[f64]| f.iter().sum::<f64>() / size as f64 + share;
        // A dual value is too low by at most what it takes to move the mass that is elsewhere.
        let range = |f: &[f64]| {
            let ends = f.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], f| {
                [low.min(*f), high.max(*f)]
            });
            ends[1] - ends[0]
        };
        let ranges = match outcome.stop {
            Stop::Converged => [range(&outcome.f), range(&outcome.g)],
            // Before the end, no price differs by more than costs do.
            _ => [site.cost_range() / run.epsilon; 2],
        };
        let slack = 0.5 * (outcome.x.error * ranges[0] + outcome.y.error * ranges[1]);
        let value = mean(&outcome.f) + mean(&outcome.g) + slack + rounding;
        let relative = |f: Vec<f64>| -> Vec<f64> { f.into_iter().map(|f| f + share).collect() };
        let (f, g) = (relative(outcome.f), relative(outcome.g));
        let (stop, iterations) = (outcome.stop, outcome.iterations);
        let potentials = if site.is_self() {
            self.extend_own(draws, &f, task.weights[0])
        } else {
            Extended {
                f: self.extend(x, columns, &g).iter().map(|s| -s).collect(),
                g: self.extend(y, rows, &f).iter().map(|s| -s).collect(),
            }
        };
        Ok(Sample { value, potentials, iterations, stop })
    }

    /// `log` of the mean of `exp(g_j - c(x, y_j))` over a sample of the opposite cloud, at all points of a cloud.
    fn extend(&self, cloud: Side, sample: &[usize], g: &[f64]) -> Vec<f64> {
        let site = self.exact.site();
        let opposite = site.opposite(cloud);
        let rows = site.between(Chosen::all(cloud), Chosen::some(opposite, sample));
        let share = (g.len() as f64).ln();
        // Any potentials are allowed, so their rounding is not an error.
        sums::<f32>(&*rows, g.iter().map(|g| g - share))
    }

    /// The potential of a cloud with itself at all of its points: where a point is not in the sample, `t = exp(f)` solves
    /// `a_x t^2 + S t = 1`, with `S` the mean over the sample.
    fn extend_own(&self, draws: &Draws, f: &[f64], weights: &[f64]) -> Extended {
        let [x, _] = self.exact.site().clouds();
        let others = draws.others().ln();
        let mut out: Vec<f64> = self
            .extend(x, draws.of(0), f)
            .iter()
            .zip(weights)
            .map(|(s, a)| own_potential(s + others, *a))
            .collect();
        for (&i, f) in draws.of(0).iter().zip(f) {
            out[i] = *f;
        }
        Extended { g: out.clone(), f: out }
    }

    /// Rows of some points of the first cloud over all of the second.
    fn rows_at<'a>(&'a self, chosen: &'a [usize]) -> Box<dyn LogRows + 'a> {
        let site = self.exact.site();
        let [x, y] = site.clouds();
        site.between(Chosen::some(x, chosen), Chosen::all(y))
    }

    /// What there is to do next, if anything would bring the value closer.
    fn next(&self, round: &Round, allowed: f64, rows: usize, sizes: [usize; 2]) -> Next {
        let Ends { low, high, value, noise, scatter, .. } = round.ends;
        let now = round.sizes;
        let (below, above) = (value - low, high - value);
        if below.max(above) <= allowed || self.asked.size.is_some() {
            return Next::Done;
        }
        let mut next = now;
        // What rows that are not taken have to do with the lower end falls like the root of their number.
        let planned = PLANNED * allowed;
        if noise > 0.5 * planned && now.rows < ROWS[1].min(rows) {
            let times = (2.0 * noise / planned).powi(2).min(GROWTH);
            next.rows = scaled(now.rows, times).min(ROWS[1]);
        }
        // What is systematic falls like the size of samples, what is not a little slower.
        let ends = |times: f64| {
            let systematic = (above - scatter).max(below - noise);
            systematic / times + scatter / times.powf(0.75)
        };
        let mut times = 1.0;
        while ends(times) > planned && times < GROWTH {
            times *= 1.1;
        }
        next.size = scaled(now.size, times);
        let [n, m] = sizes.map(|n| n as f64);
        if next == now {
            next.rows = scaled(now.rows, 2.0);
        }
        let most = NEARLY_ALL * n.min(m);
        if next.size as f64 <= most && next.size <= LARGEST_SIZE {
            return Next::Round(next);
        }
        if self.exact.site().options().exact && n * m <= MANY_PAIRS {
            return Next::Exact;
        }
        let largest = LARGEST_SIZE.min(scaled(1, most));
        if now.size >= largest { Next::Done } else { Next::Round(Sizes { size: largest, ..next }) }
    }

    fn first_sizes(&self, [n, m]: [usize; 2]) -> Sizes {
        let SampleSizes { size, samples } = self.asked;
        let size = size.unwrap_or(FIRST_SIZE).min(n).min(m);
        Sizes { size, samples: samples.unwrap_or(DEFAULT_SAMPLES), rows: ROWS[0].min(n) }
    }
}

/// What the rounds leave.
fn solved(round: Round, iterations: usize, stop: Stop, task: &Task<'_>) -> Solved {
    let Round { sizes, draws, mut bag, ends, .. } = round;
    let epsilon = task.run.epsilon;
    let Ends { low, high, value, stderr, estimate, error, cost, .. } = ends;
    let [a, b] = task.weights;
    // The mass that the mean potentials are off by is given to both.
    let whole = Whole { weights: task.weights, spans: task.spans, is_self: task.is_self() };
    let half = 0.5 * (value - whole.total(&bag));
    let drawn: Vec<Drawn> = [&bag.f, &bag.g]
        .into_iter()
        .zip(task.weights)
        .take(if task.is_self() { 1 } else { 2 })
        .enumerate()
        .map(|(slot, (potential, weights))| Drawn::new(&draws, slot, potential, weights, half))
        .collect();
    let messages = drawn.iter().map(Drawn::message).collect();
    let shift = |f: &mut [f64], a: &[f64]| {
        f.iter_mut().zip(a).for_each(|(f, a)| *f += half + a.ln());
    };
    shift(&mut bag.f, a);
    shift(&mut bag.g, b);
    let marginal =
        |weights: &[f64], error| Marginal { sums: weights.to_vec(), error, log_mass: 0.0 };
    let outcome = Outcome {
        f: bag.f,
        g: bag.g,
        x: marginal(a, error),
        y: marginal(b, error),
        iterations,
        stop,
        left_out: 0.0,
    };
    let offset = task.run.offset;
    let bounds = Some(Bounds { low: low - value, high: high - value, corrected: 0.0 });
    Solved {
        outcome,
        builds: Builds::default(),
        transport_cost: Some(epsilon * cost),
        error: KernelError {
            settled: true,
            ..KernelError::of_features(None, bounds, f64::ROUNDING)
        },
        rank: sizes.size,
        state: State { drawn, ..State::default() },
        pairs: Pairs::default(),
        messages,
        sampling: Some(Sampling {
            size: sizes.size,
            samples: sizes.samples,
            rows: sizes.rows,
            estimate: Estimate { value: epsilon * estimate + offset, stderr: epsilon * stderr },
        }),
    }
}

/// The potential of a cloud with itself at a point of weight `a`, where the sum over the others is `exp(s)`: `t = exp(f)`
/// solves `a t^2 + exp(s) t = 1`.
fn own_potential(s: f64, a: f64) -> f64 {
    // In logarithms: 2 / (S + sqrt(S^2 + 4 a)).
    let root = 0.5 * (1.0 + 4.0 * (a.ln() - 2.0 * s).exp()).sqrt();
    -(s + (0.5 + root).ln())
}

/// `-log sum_j b_j exp(g_j - c(x, y_j))` at some points of the first cloud, over all of the second.
fn best_response(rows: &dyn LogRows, g: &[f64], weights: &[f64]) -> Vec<f64> {
    sums::<f64>(rows, columns(g, weights)).iter().map(|s| -s).collect()
}

/// The logarithms of `v` of a potential that is relative to the weights.
fn columns(g: &[f64], weights: &[f64]) -> impl Iterator<Item = f64> {
    g.iter().zip(weights).map(|(g, b)| g + b.ln())
}

/// Logarithms of `v` as passes want them.
fn message(rows: &dyn LogRows, logs: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut message: Vec<f64> = logs.collect();
    message.resize(simd::padded(rows.rank()), f64::NEG_INFINITY);
    message
}

/// `log sum_k exp(L_ik + z_k)` of all rows.
fn sums<T: TileFloat>(rows: &dyn LogRows, z: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut out = vec![0.0; rows.rows()];
    LogPass::of(rows).row_sums::<T>(rows, &message(rows, z), &mut out);
    out
}

/// A count, this many times.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn scaled(count: usize, times: f64) -> usize {
    (count as f64 * times).ceil() as usize
}

/// How much is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    size: usize,
    samples: usize,
    rows: usize,
}

/// A sample that was solved.
struct Sample {
    /// An upper bound of its value, also where iterations are not at their end.
    value: f64,
    potentials: Extended,
    iterations: usize,
    stop: Stop,
}

/// What samples of some sizes tell.
struct Round {
    sizes: Sizes,
    draws: Vec<Draws>,
    bag: Extended,
    ends: Ends,
    iterations: usize,
    /// What ended it before all samples were there.
    stop: Stop,
}

enum Next {
    Done,
    Round(Sizes),
    Exact,
}

impl TermKernel for SampledKernel<'_> {
    fn site(&self) -> &Site<'_> {
        self.exact.site()
    }

    fn rank(&self) -> usize {
        self.asked.size.unwrap_or(FIRST_SIZE)
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn reaches_everywhere(&self) -> bool {
        true
    }

    fn solve(&self, task: &mut Task<'_>, work: &mut Work<'_>) -> Result<Solved> {
        let site = self.exact.site();
        let sizes = task.weights.map(<[f64]>::len);
        let few = sizes[0].min(sizes[1]);
        if self.asked.size.is_none() && NEARLY_ALL * few as f64 <= FIRST_SIZE as f64 {
            return self.exact.solve(task, work);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(site.options().seed);
        let clock = work.clock.clone();
        let first = self.first_sizes(sizes);
        let Some(mut round) = self.round(first, None, task, work, &mut rng)? else {
            return Err(clock.too_late(Phase::Iterations));
        };
        let mut iterations = round.iterations;
        let mut stop = round.stop;
        while stop == Stop::Converged {
            let value = task.run.epsilon * round.ends.value + task.run.offset;
            let options = site.options();
            let own = options.accuracy * scale(value, options.epsilon);
            let allowed = site.kernel_error().unwrap_or(own) / task.run.epsilon;
            let next = match self.next(&round, allowed, sizes[0], sizes) {
                Next::Done => break,
                Next::Exact => {
                    // From the potentials that there are.
                    let [a, _] = task.weights;
                    task.start = round.bag.f.iter().zip(a).map(|(f, a)| f + a.ln()).collect();
                    task.flat = false;
                    return self.exact.solve(task, work);
                }
                Next::Round(next) => next,
            };
            let better =
                clock.try_run(|| self.round(next, Some(&round.bag), task, work, &mut rng))?;
            let Some(better) = better.flatten() else {
                stop = Stop::TimeLimit;
                break;
            };
            iterations += better.iterations;
            stop = better.stop;
            // Fewer samples than before may tell less.
            if stop == Stop::Converged || better.ends.width() < round.ends.width() {
                round = better;
            }
        }
        Ok(solved(round, iterations, stop, task))
    }

    fn iterated(&self) -> Box<dyn Kernel + '_> {
        self.exact.iterated()
    }

    fn stored_numbers(&self, _: [f64; 2]) -> f64 {
        0.0
    }

    fn rows(&self) -> Option<(Box<dyn LogRows + '_>, bool)> {
        self.exact.rows()
    }

    fn log_sums(&self, state: &State, cloud: Side, part: Part, g: &[f64]) -> Result<Vec<f64>> {
        match self.drawn_sums(state, cloud, part) {
            Some(sums) => Ok(sums),
            None => self.exact.log_sums(state, cloud, part, g),
        }
    }

    fn pairwise<'a>(&'a self, state: &'a State) -> Pairwise<'a> {
        self.exact.pairwise(state)
    }

    fn sample(&self, scaling: &Scaling, draws: &[[f64; 3]]) -> Result<Vec<[usize; 2]>> {
        match self.drawn_pairs(&scaling.state, draws) {
            Some(pairs) => Ok(pairs),
            None => self.exact.sample(scaling, draws),
        }
    }

    fn check_new(&self, cloud: Side, points: &Points<'_>) -> Result<()> {
        self.exact.check_new(cloud, points)
    }

    fn view(
        &self,
        state: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        columns: &[Vec<f64>],
    ) -> Result<View> {
        match self.drawn_view(state, cloud, *seat, columns) {
            Some(view) => Ok(view),
            None => self.exact.view(state, cloud, seat, g, columns),
        }
    }

    fn partners(
        &self,
        state: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        count: usize,
    ) -> Result<Vec<Partners>> {
        // Among all points: those that were drawn are not the nearest ones.
        self.exact.partners(state, cloud, seat, g, count)
    }

    fn row_scaling(&self, scaling: &Scaling, slot: usize) -> Option<RowScaling> {
        self.drawn_scaling(&scaling.state, slot)
    }

    fn operand<'a>(&'a self, state: &'a State, cloud: Side) -> Result<Operand<'a>> {
        Ok(self.exact.operand_over(cloud, self.drawn_points(state, cloud)))
    }

    fn on<'q>(&'q self, site: Site<'q>) -> Result<Box<dyn TermKernel + 'q>> {
        Ok(Box::new(SampledKernel::new(site, self.asked)))
    }

    #[cfg(test)]
    fn scaled_on<'q>(&self, site: Site<'q>, _: f64) -> Box<dyn TermKernel + 'q> {
        Box::new(SampledKernel::new(site, self.asked))
    }
}
