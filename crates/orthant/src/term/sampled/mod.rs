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
//! The first mean is over the points of the first cloud, of which some are taken, with all columns ([`Below`]); the second
//! over the samples ([`Above`]), less what potentials that do not know a sample tell of its noise. Samples that are solved for
//! their values alone need no extension, so these are larger where the upper end is too far away. The bags of all samples
//! but one tell by how much the lower end is too low, and values of samples of two sizes by how much the upper end is too
//! high: the value is the better of both estimates, between the ends, with a standard error.
//!
//! The plan of a cloud with itself sits on its diagonal, which a sample of `N` of `n` points would count `n / N` times. With
//! the diagonal entries `a_x`, and the others so that pairs of *different* points are unbiased, the dual function of the
//! sample has the right mean for every fixed potential, and Jensen holds again ([`own`]). Marginals may be relaxed: see [`whole`].

mod above;
mod below;
mod drawn;
mod draws;
mod own;
mod samples;
mod whole;

pub(crate) use drawn::Drawn;

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use above::Above;
use below::{Bagged, Below};
use draws::Draws;
use whole::{Cloud, Extended, Whole};

use super::derivative::Operand;
use super::exact::ExactKernel;
use super::pairwise::Pairwise;
use super::site::Chosen;
use super::view::{Partners, Seat, View};
use super::{KernelError, RowScaling, Scaling, Site, Solved, State, Task, TermKernel, Work};
use crate::control::{Stop, begin};
use crate::error::Result;
use crate::kernel::{Builds, Kernel, LogPass};
use crate::measure::Points;
use crate::numerics::simd::{self, Float};
use crate::options::SampleSizes;
use crate::results::{Estimate, Sampling, scale};
use crate::rows::{LogRows, TileFloat};
use crate::sampling::Pairs;
use crate::sampling::certificate::Bounds;
use crate::sinkhorn::Outcome;
use crate::sinkhorn::unbalanced::Unbalanced;
use crate::words::{Part, Phase, Side};

/// See the [module](self).
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
/// By how much samples grow at most from one round to the next.
const GROWTH: f64 = 8.0;
/// The part of the allowed error that is near enough to it, and the part that the next round is planned for otherwise.
const ENOUGH: f64 = 0.85;
const PLANNED: f64 = 0.6;
/// The part of that for the noise of rows.
const FOR_NOISE: f64 = 0.4;
/// Where the value usually is between the mean of the values of samples and the semi-dual of their potentials.
const GUESS: f64 = 0.6;
/// Samples are solved to this part of the accuracy, which marginals of extended potentials are far from.
const SOLVED: f64 = 0.01;
/// Samples that are solved for their values alone, for one of the others: that is less than twice as long, and their mean
/// scatters half as much.
const MORE_SAMPLES: usize = 2;

impl<'p> SampledKernel<'p> {
    pub(crate) fn new(site: Site<'p>, asked: SampleSizes) -> Self {
        SampledKernel { exact: ExactKernel::new(site, false), asked }
    }

    /// The clouds of a task.
    fn whole(&self, unbalanced: Option<&Unbalanced>) -> Whole<'_> {
        let clouds = [0, 1].map(|slot| self.cloud(unbalanced, slot));
        Whole { clouds, is_self: self.exact.site().is_self() }
    }

    /// The first cloud of the term or the second, with its marginal.
    fn cloud(&self, unbalanced: Option<&Unbalanced>, slot: usize) -> Cloud<'_> {
        let site = self.exact.site();
        Cloud::new((site.weights()[slot], site.span(site.clouds()[slot])), unbalanced, slot)
    }

    /// Rows of some points of the first cloud over all of the second.
    fn rows_at<'a>(&'a self, chosen: &'a [usize]) -> Box<dyn LogRows + 'a> {
        let site = self.exact.site();
        let [x, y] = site.clouds();
        site.between(Chosen::some(x, chosen), Chosen::all(y))
    }

    fn samples(&self) -> usize {
        self.asked.samples.unwrap_or(DEFAULT_SAMPLES)
    }

    /// The error that the value may have, in units of epsilon.
    fn allowed(&self, found: &Found, task: &Task<'_>) -> f64 {
        let site = self.exact.site();
        let options = site.options();
        let value = task.run.epsilon * found.value() + task.run.offset;
        let own = options.accuracy * scale(value, options.epsilon);
        site.kernel_error().unwrap_or(own) / task.run.epsilon
    }

    /// What there is to do next, if anything would bring the value closer.
    fn next(&self, found: &Found, allowed: f64, sizes: [usize; 2]) -> Option<Next> {
        if self.asked.size.is_some() || found.distance() <= allowed {
            return None;
        }
        let planned = PLANNED * allowed;
        let few = sizes[0].min(sizes[1]);
        let pairs = sizes[0] as f64 * sizes[1] as f64;
        let exact = self.exact.site().options().exact && pairs <= MANY_PAIRS;
        let most = scaled(few, NEARLY_ALL).min(LARGEST_SIZE);
        // The exact kernel, or the largest samples, unless these were not enough.
        let limited = |size: usize, now: usize, next: fn(usize) -> Next| match size {
            size if size <= most => Some(next(size)),
            _ if exact => Some(Next::Exact),
            _ if now < most => Some(next(most)),
            _ => None,
        };
        let Found { below, above, .. } = found;
        let likely = found.likely();
        // What is systematic falls like the size of samples, what is not a little slower.
        let left = |times: f64| (above.mean - likely) / times + above.scatter / times.powf(0.75);
        if left(1.0) > ENOUGH * allowed {
            let mut times = 1.2;
            while left(times) > planned && times < GROWTH {
                times *= 1.1;
            }
            if let Some(next) = limited(scaled(above.size, times), above.size, Next::Above) {
                return Some(next);
            }
        }
        // The noise of rows falls like the root of their number.
        let (systematic, rows) = (likely - below.mean, ROWS[1].min(sizes[0]));
        let room = planned - systematic;
        if below.noise > room && room >= FOR_NOISE * planned && below.rows < rows {
            let times = (below.noise / room).powi(2);
            return Some(Next::Rows(scaled(below.rows, times.clamp(1.5, GROWTH)).min(rows)));
        }
        let (now, times) = (below.bagged.size(), systematic / ((1.0 - FOR_NOISE) * planned));
        limited(scaled(now, times.clamp(1.5, GROWTH)), now, Next::Below)
    }

    /// Solves samples; as many as there is time for.
    fn solve_samples(
        &self,
        (size, count): (usize, usize),
        start: Option<&Extended>,
        extended: bool,
        Problem { whole, task }: Problem<'_>,
        work: &mut Work<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Solutions> {
        let mut found = Solutions {
            values: Vec::new(),
            potentials: Vec::new(),
            iterations: 0,
            stop: Stop::Converged,
        };
        for _ in 0..count {
            begin(work.observer, Phase::Iterations)?;
            let draws = Draws::new(whole, size, rng);
            let sample = self.solve_sample(&draws, start, task, work)?;
            found.iterations += sample.iterations;
            if matches!(sample.stop, Stop::TimeLimit | Stop::Requested) {
                found.stop = sample.stop;
                break;
            }
            if extended {
                found.potentials.push(self.extend(&draws, &sample, whole));
            }
            found.values.push((sample.value, draws));
        }
        Ok(found)
    }

    /// Solves and extends samples of a size, and looks at some rows. Nothing if there was no time for enough of them.
    fn below(
        &self,
        (size, rows): (usize, usize),
        start: Option<&Extended>,
        problem: Problem<'_>,
        work: &mut Work<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Option<Below>, Progressed)> {
        let sizes = (size, self.samples());
        let found = self.solve_samples(sizes, start, true, problem, work, rng)?;
        let progressed = found.progressed();
        if found.values.len() < LEAST_SAMPLES {
            return Ok((None, progressed));
        }
        begin(work.observer, Phase::Certificate)?;
        let bagged = Arc::new(Bagged::new(found.potentials, found.values));
        Ok((Some(Below::new(self, problem.whole, bagged, rows, rng)), progressed))
    }

    /// Does what there is to do next.
    fn improve(
        &self,
        next: &Next,
        found: &Found,
        problem: Problem<'_>,
        work: &mut Work<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Better, Progressed)> {
        let Found { below, .. } = found;
        let bag = &below.bagged.bag;
        match *next {
            Next::Exact => unreachable!("that needs no samples"),
            Next::Rows(rows) => {
                begin(work.observer, Phase::Certificate)?;
                let better = Below::new(self, problem.whole, below.bagged.clone(), rows, rng);
                Ok((Better::Below(better), Progressed { iterations: 0, stop: Stop::Converged }))
            }
            Next::Below(size) => {
                let sizes = (size, below.rows);
                let (better, more) = self.below(sizes, Some(bag), problem, work, rng)?;
                Ok((better.map_or(Better::Nothing, Better::Below), more))
            }
            Next::Above(size) => {
                let more = if self.asked.samples.is_some() { 1 } else { MORE_SAMPLES };
                let sizes = (size, more * self.samples());
                let samples = self.solve_samples(sizes, Some(bag), false, problem, work, rng)?;
                let enough = samples.values.len() >= LEAST_SAMPLES;
                let above = enough.then(|| Above::new(problem.whole, &samples.values, bag));
                // Fewer samples than before may tell less.
                let narrower = |above: &Above| {
                    samples.stop == Stop::Converged || above.high() < found.above.high()
                };
                let better = above.filter(narrower).map_or(Better::Nothing, Better::Above);
                Ok((better, samples.progressed()))
            }
        }
    }
}

/// Tells how far it came.
fn report(found: &Found, task: &Task<'_>, work: &mut Work<'_>) {
    let to_user = |end: f64| task.run.epsilon * end + task.run.offset;
    let ends = [found.below.low(), found.above.high()].map(to_user);
    work.observer.narrowed(task.run.term, ends);
}

/// What the rounds leave.
fn solved(found: Found, progressed: Progressed, whole: &Whole<'_>, task: &Task<'_>) -> Solved {
    let value = found.value();
    let estimate = found.estimate();
    let (low, high) = (found.below.low().min(value), found.above.high());
    let Found { below: Below { bagged, rows, error, cost, .. }, above, .. } = found;
    let bag = &bagged.bag;
    let epsilon = task.run.epsilon;
    let [a, b] = task.weights;
    let mut outcome = Outcome {
        f: columns(&bag.f, a).collect(),
        g: columns(&bag.g, b).collect(),
        x: whole.marginal(0, &bag.f, error),
        y: whole.marginal(1, &bag.g, error),
        iterations: progressed.iterations,
        stop: progressed.stop,
        left_out: 0.0,
    };
    // What the value of the mean potentials is off by is given to both.
    let (half, bounds) = match &task.unbalanced {
        None => {
            let total = whole.semi_dual(whole.clouds[0].mean(|i| bag.f[i]), &bag.g);
            (0.5 * (value - total), [low - value, high - value])
        }
        Some(unbalanced) => {
            let dual = unbalanced.dual(&outcome.f, &outcome.g, 0.0);
            let half = 0.5 * dual.fall_for(epsilon * value - dual.value);
            let shifted = |f: &[f64]| f.iter().map(|f| f + half).collect::<Vec<_>>();
            let dual = unbalanced.dual(&shifted(&outcome.f), &shifted(&outcome.g), 0.0);
            (half, [low, high].map(|end| dual.fall_for(epsilon * (end - value))))
        }
    };
    for f in outcome.f.iter_mut().chain(&mut outcome.g) {
        *f += half;
    }
    // A marginal that is kept is that of the rows over the draws; one that is relaxed goes with its potential.
    let shift = if task.unbalanced.is_some() { -half } else { half };
    let drawn: Vec<Drawn> = (0..whole.count())
        .map(|slot| Drawn::new(&bagged, slot, task.weights[slot], shift))
        .collect();
    let messages = drawn.iter().map(Drawn::message).collect();
    let bounds = Some(Bounds { low: bounds[0], high: bounds[1], corrected: 0.0 });
    Solved {
        outcome,
        builds: Builds::default(),
        transport_cost: Some(epsilon * cost),
        error: KernelError {
            settled: true,
            ..KernelError::of_features(None, bounds, f64::ROUNDING)
        },
        rank: bagged.size(),
        state: State { drawn, ..State::default() },
        pairs: Pairs::default(),
        messages,
        sampling: Some(Sampling {
            size: bagged.size(),
            samples: bagged.samples.len(),
            rows,
            upper_size: above.size,
            estimate: Estimate {
                value: epsilon * estimate.value + task.run.offset,
                stderr: epsilon * estimate.stderr,
            },
        }),
    }
}

/// What is solved.
#[derive(Clone, Copy)]
struct Problem<'t> {
    whole: &'t Whole<'t>,
    task: &'t Task<'t>,
}

/// What is known so far: see [`Below`] and [`Above`].
struct Found {
    below: Below,
    above: Above,
    /// Of smaller samples.
    before: Vec<Above>,
}

impl Found {
    /// The best guess, between both ends.
    fn value(&self) -> f64 {
        let high = self.above.high();
        self.estimate().value.clamp(self.below.low().min(high), high)
    }

    /// The best estimate, in units of epsilon: the jackknife's, or what the values of samples of two sizes tend to.
    fn estimate(&self) -> Estimate {
        let jackknife = self.jackknife();
        self.limit().filter(|limit| limit.stderr < jackknife.stderr).unwrap_or(jackknife)
    }

    /// What the values of samples tend to with their size, if there were several.
    fn limit(&self) -> Option<Estimate> {
        let limits = self.before.iter().map(|before| self.above.limit(before));
        limits.min_by(|a, b| a.stderr.total_cmp(&b.stderr))
    }

    /// Takes the values of larger samples for what they are.
    fn replace_above(&mut self, above: Above) {
        let before = std::mem::replace(&mut self.above, above);
        if before.size < above.size {
            self.before.push(before);
        }
    }

    fn jackknife(&self) -> Estimate {
        let Below { estimate, spread, .. } = self.below;
        // The jackknife takes away what falls like the number of samples. What is left of their bias is of second order in
        // that of the upper end of samples of that size.
        let ratio = self.above.size as f64 / self.below.bagged.size() as f64;
        let apart = ratio * (self.above.mean - estimate).max(0.0);
        Estimate { value: estimate, stderr: spread.hypot(second_order(apart)) }
    }

    /// Where the value is likely to be, to plan with.
    fn likely(&self) -> f64 {
        let (low, high) = (self.below.mean, self.above.mean);
        let guess = self.limit().map_or(high - GUESS * (high - low), |limit| limit.value);
        guess.clamp(low.min(high), high)
    }

    /// Of the best guess from the farther end.
    fn distance(&self) -> f64 {
        let value = self.value();
        (value - self.below.low()).max(self.above.high() - value)
    }
}

/// What is left of an error of first order, in units of epsilon, once that is taken away.
fn second_order(error: f64) -> f64 {
    0.5 * error * error.min(1.0)
}

/// What to do next.
enum Next {
    /// Look at more rows.
    Rows(usize),
    /// Solve and extend samples of a size.
    Below(usize),
    /// Solve samples of a size, for their values alone.
    Above(usize),
    /// Take the exact kernel.
    Exact,
}

/// What there is in place of what there was.
enum Better {
    Below(Below),
    Above(Above),
    Nothing,
}

/// Samples that were solved.
struct Solutions {
    values: Vec<(f64, Draws)>,
    potentials: Vec<Extended>,
    iterations: usize,
    /// What ended it before all samples were there.
    stop: Stop,
}

impl Solutions {
    fn progressed(&self) -> Progressed {
        Progressed { iterations: self.iterations, stop: self.stop }
    }
}

/// How far work came.
#[derive(Clone, Copy)]
struct Progressed {
    iterations: usize,
    stop: Stop,
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
        let whole = self.whole(task.unbalanced.as_ref());
        let problem = Problem { whole: &whole, task };
        let first = (self.asked.size.unwrap_or(FIRST_SIZE).min(few), ROWS[0].min(sizes[0]));
        let (below, mut progressed) = self.below(first, None, problem, work, &mut rng)?;
        let Some(below) = below else { return Err(clock.too_late(Phase::Iterations)) };
        let above = Above::within(&whole, &below.bagged);
        let mut found = Found { below, above, before: Vec::new() };
        while progressed.stop == Stop::Converged {
            report(&found, task, work);
            let allowed = self.allowed(&found, task);
            let Some(next) = self.next(&found, allowed, sizes) else { break };
            if let Next::Exact = next {
                // From the potentials that there are.
                let start = columns(&found.below.bagged.bag.f, task.weights[0]).collect();
                (task.start, task.flat) = (start, false);
                return self.exact.solve(task, work);
            }
            let better = clock.try_run(|| self.improve(&next, &found, problem, work, &mut rng))?;
            let Some((better, more)) = better else {
                progressed.stop = Stop::TimeLimit;
                break;
            };
            progressed.iterations += more.iterations;
            progressed.stop = more.stop;
            match better {
                Better::Below(below) => found.below = below,
                Better::Above(above) => found.replace_above(above),
                Better::Nothing => {}
            }
            // Values of larger samples are closer.
            if found.below.bagged.size() > found.above.size {
                found.replace_above(Above::within(&whole, &found.below.bagged));
            }
        }
        Ok(solved(found, progressed, &whole, task))
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
        match self.drawn_pairs(scaling, draws) {
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
        self.drawn_scaling(scaling, slot)
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
