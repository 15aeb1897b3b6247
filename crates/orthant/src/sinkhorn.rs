//! The loop: Algorithm 1 of the paper, on logarithms.

use std::time::{Duration, Instant};

use crate::accelerated;
use crate::anderson::Anderson;
use crate::cancel::Cancel;
use crate::clock::{Clock, Phase};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Marginal, SelfKernel};
use crate::options::Algorithm;
use crate::unbalanced::Goal;

/// What to run: which term, in which unit its value is told, and when to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    pub(crate) term: Term,
    pub(crate) epsilon: f64,
    /// What the coordinates of the term add to its value.
    pub(crate) offset: f64,
    /// L1 error of the marginal.
    pub(crate) tolerance: f64,
    pub(crate) max_iterations: usize,
    pub(crate) time: Option<Duration>,
    /// Part of the mass that a kernel may leave out, if it leaves out any: see [`Kernel::settle`].
    pub(crate) leave_out: f64,
    /// How iterations are accelerated, those between two clouds.
    pub(crate) algorithm: Algorithm,
}

/// Why a solve ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Stop {
    /// The marginal error fell below the tolerance.
    Converged,
    /// The largest number of iterations was reached.
    IterationLimit,
    /// The time was up.
    TimeLimit,
    /// An [`Observer`] asked for it.
    Requested,
}

impl Stop {
    /// A word for programs: `converged`, `iteration_limit`, `time_limit`, `requested`.
    pub fn as_str(self) -> &'static str {
        match self {
            Stop::Converged => "converged",
            Stop::IterationLimit => "iteration_limit",
            Stop::TimeLimit => "time_limit",
            Stop::Requested => "requested",
        }
    }
}

/// Which of the problems of a divergence is being solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// Between the two clouds.
    Cross,
    /// The first cloud with itself.
    SelfX,
    /// The second cloud with itself.
    SelfY,
}

/// The state after an iteration.
pub struct Progress<'a> {
    /// Which problem is being solved.
    pub term: Term,
    /// Of the problem that is being solved, which on the way to a small epsilon may be a larger one.
    pub epsilon: f64,
    /// Iterations done, from 1.
    pub iteration: usize,
    /// L1 error of the marginal that Algorithm 1 tests: its distance from what the iteration made of it,
    /// relative to the mass of the plan. With [`Algorithm::Accelerated`] that of both marginals.
    pub marginal_error: f64,
    /// Time since the solve began.
    pub elapsed: Duration,
    value: &'a mut dyn FnMut() -> f64,
}

impl Progress<'_> {
    /// The dual value now: a lower bound of the value of the solve once the plan has mass 1. With
    /// [`Algorithm::Accelerated`] the largest so far. For unbalanced problems that of [`Solution::value_kl`](crate::Solution::value_kl).
    ///
    /// Computed on request; costs a logarithm a point.
    pub fn value(&mut self) -> f64 {
        (self.value)()
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress")
            .field("term", &self.term)
            .field("iteration", &self.iteration)
            .field("marginal_error", &self.marginal_error)
            .field("elapsed", &self.elapsed)
            .finish_non_exhaustive()
    }
}

/// What an [`Observer`] wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Continue,
    /// End the solve with what there is.
    Stop,
}

/// Watches a solve: progress bars, traces, requests to stop.
///
/// Closures `FnMut(&mut Progress) -> Next` are observers.
pub trait Observer: Send {
    /// Called after every iteration.
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next;

    /// Called when a phase of a solve begins, and again now and then while a method is chosen. Asked to stop before
    /// there is a solution, a solve ends with [`Error::Cancelled`]; after that, with the solution that there is.
    /// Default: goes on.
    fn phase(&mut self, phase: Phase) -> Next {
        let _ = phase;
        Next::Continue
    }
}

/// The observer of a user, if there is one, and a token to end it all.
pub(crate) struct Watched<'w> {
    pub(crate) cancel: &'w Cancel,
    pub(crate) observer: Option<&'w mut dyn Observer>,
}

impl Observer for Watched<'_> {
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next {
        self.cancel.check();
        self.observer.as_mut().map_or(Next::Continue, |observer| observer.observe(progress))
    }

    fn phase(&mut self, phase: Phase) -> Next {
        self.cancel.check();
        self.observer.as_mut().map_or(Next::Continue, |observer| observer.phase(phase))
    }
}

/// An observer whose solve has a clock, which hears of the phases too.
pub(crate) struct Clocked<'c> {
    pub(crate) clock: &'c Clock,
    pub(crate) observer: &'c mut dyn Observer,
    /// Whether a phase was asked to stop.
    pub(crate) stopped: bool,
}

impl Observer for Clocked<'_> {
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next {
        let next = self.observer.observe(progress);
        if self.stopped { Next::Stop } else { next }
    }

    fn phase(&mut self, phase: Phase) -> Next {
        self.clock.enter(phase);
        let next = self.observer.phase(phase);
        self.stopped |= next == Next::Stop;
        next
    }
}

/// Hears of a phase; asked to stop, there is nothing to go on for.
pub(crate) fn begin(observer: &mut dyn Observer, phase: Phase) -> Result<()> {
    match observer.phase(phase) {
        Next::Continue => Ok(()),
        Next::Stop => Err(Error::Cancelled),
    }
}

impl<F: FnMut(&mut Progress<'_>) -> Next + Send> Observer for F {
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next {
        self(progress)
    }
}

/// What the loop leaves: `log u` and `log v`, and how good they are.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) f: Vec<f64>,
    pub(crate) g: Vec<f64>,
    pub(crate) x: Marginal,
    pub(crate) y: Marginal,
    pub(crate) iterations: usize,
    pub(crate) stop: Stop,
    /// Part of the mass that was left out.
    pub(crate) left_out: f64,
}

/// Iterations after the last one, not counted, at most, for a kernel that had left out too much of itself.
const SETTLING: usize = 4;

/// Sinkhorn's algorithm on a kernel, from `log u = start`, or from the messages that the kernel has.
pub(crate) fn solve(
    kernel: &mut dyn Kernel,
    goal: Goal<'_>,
    start: Option<&[f64]>,
    run: Run,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    if run.algorithm == Algorithm::Accelerated {
        let start = start.expect("accelerated solves start from potentials");
        return accelerated::solve(kernel, goal, start, run, observer);
    }
    let (mut f, mut g) = (vec![0.0; kernel.rows()], vec![0.0; kernel.columns()]);
    let [a, b] = goal.targets();
    let numbers = if run.algorithm == Algorithm::Plain { 0 } else { kernel.messages().0.len() };
    let mut anderson = (numbers > 0).then(|| Anderson::new(numbers));
    // Inside a worker of the thread pool, where parallel loops do not allocate.
    in_pool(|| {
        let begun = Instant::now();
        if let Some(start) = start {
            kernel.start(start)?;
        }
        kernel.update_y(b)?;
        observer.phase(Phase::Iterations);
        let mut iterations = 0;
        let (stop, left_out) = loop {
            // u <- a / K v, the error ||v * K^T u - b||_1, v <- b / K^T u.
            let here = |e| at_iteration(e, iterations + 1);
            kernel.update_x(a).map_err(here)?;
            if let Some(anderson) = &mut anderson {
                anderson.sent(kernel.messages().0);
            }
            let mut error = kernel.update_y(b).map_err(here)?;
            if let Some(anderson) = &anderson {
                // With a message that no `v` sent, that was the error of no plan.
                error = anderson.error(kernel.messages());
            }
            iterations += 1;
            let mut value = || {
                kernel.potentials(&mut f, &mut g);
                goal.value(&f, &g, run.epsilon, run.offset)
            };
            let verdict = run.check(iterations, error, begun, &mut value, observer);
            let mut again = false;
            if let Some(anderson) = &mut anderson {
                let value = anderson.is_far(error).then(value);
                anderson.judge(kernel.messages().0, error, value, verdict.limit.is_some());
                match anderson.better() {
                    Some(best) if !verdict.converged => {
                        kernel.go_back(best);
                        again = true;
                    }
                    _ => {}
                }
            }
            if verdict.converged || verdict.limit.is_some() {
                if again {
                    // The last message was a failed experiment.
                    kernel.update_x(a)?;
                    kernel.update_y(b)?;
                }
                if let Some(end) = conclude(kernel, goal, run, verdict)? {
                    break end;
                }
                // Its messages may have changed.
                if let Some(anderson) = &mut anderson {
                    anderson.restart();
                }
            } else if let (Some(anderson), false) = (&mut anderson, again) {
                anderson.mix(kernel.messages());
            }
        };
        let [x, y] = kernel.marginals(a, b).map_err(|e| at_iteration(e, iterations))?;
        kernel.potentials(&mut f, &mut g);
        if goal.unbalanced.is_some() {
            // The plan of mass 1: what mass it should have comes later.
            for f in &mut f {
                *f -= x.log_mass;
            }
        }
        Ok(Outcome { f, g, x, y, iterations, stop, left_out })
    })
}

/// Why a solve ends here and what part of the mass was left out, if it may end.
pub(crate) fn conclude(
    kernel: &mut dyn Kernel,
    goal: Goal<'_>,
    run: Run,
    verdict: Verdict,
) -> Result<Option<(Stop, f64)>> {
    let (mut left_out, settled) = settle(kernel, goal, run)?;
    let Some(stop) = verdict.stop(settled) else { return Ok(None) };
    let [a, b] = goal.targets();
    // Potentials that answer a part of the kernel only are of no use.
    for _ in 0..SETTLING {
        if left_out <= run.leave_out {
            break;
        }
        kernel.update_x(a)?;
        kernel.update_y(b)?;
        (left_out, _) = settle(kernel, goal, run)?;
    }
    Ok(Some((stop, left_out)))
}

/// Completes what a kernel left out. Returns the part of the mass that it was, and whether a solve may end so.
fn settle(kernel: &mut dyn Kernel, goal: Goal<'_>, run: Run) -> Result<(f64, bool)> {
    let left_out = kernel.settle(run.leave_out)?;
    let mut settled = left_out <= run.leave_out;
    if goal.unbalanced.is_some() {
        // Faint points: what they lacked must not have mattered.
        let [a, b] = goal.targets();
        let found = kernel.refresh(a, b)?;
        settled &= found <= 10.0 * run.tolerance.max(run.leave_out);
    }
    Ok((left_out, settled))
}

/// Sinkhorn's algorithm for a cloud with itself: the averaged update `f <- (f + T(f)) / 2`, which
/// needs a fraction of the iterations and keeps both potentials equal.
pub(crate) fn solve_self(
    kernel: &mut dyn SelfKernel,
    goal: Goal<'_>,
    start: Option<&[f64]>,
    run: Run,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let mut f = vec![0.0; kernel.rows()];
    let [a, _] = goal.targets();
    in_pool(|| {
        let begun = Instant::now();
        if let Some(start) = start {
            kernel.start(start)?;
        }
        observer.phase(Phase::Iterations);
        let mut iterations = 0;
        let (stop, left_out) = loop {
            let error = kernel.update(a).map_err(|e| at_iteration(e, iterations + 1))?;
            iterations += 1;
            let mut value = || {
                kernel.potential(&mut f);
                goal.value(&f, &f, run.epsilon, run.offset)
            };
            let verdict = run.check(iterations, error, begun, &mut value, observer);
            if verdict.converged || verdict.limit.is_some() {
                let left_out = kernel.settle(run.leave_out)?;
                if let Some(stop) = verdict.stop(left_out <= run.leave_out) {
                    break (stop, left_out);
                }
            }
        };
        let marginal = kernel.marginal(a).map_err(|e| at_iteration(e, iterations))?;
        kernel.potential(&mut f);
        // The best dual value along a common shift of both potentials: that of the plan of mass 1.
        for f in &mut f {
            *f -= 0.5 * marginal.log_mass;
        }
        let (x, y) = (marginal.clone(), marginal);
        Ok(Outcome { g: f.clone(), f, x, y, iterations, stop, left_out })
    })
}

impl Run {
    /// Tells the observer of an iteration, and looks for reasons to stop after it.
    pub(crate) fn check(
        &self,
        iteration: usize,
        marginal_error: f64,
        begun: Instant,
        value: &mut dyn FnMut() -> f64,
        observer: &mut dyn Observer,
    ) -> Verdict {
        let elapsed = begun.elapsed();
        let mut progress = Progress {
            term: self.term,
            epsilon: self.epsilon,
            iteration,
            marginal_error,
            elapsed,
            value,
        };
        let next = observer.observe(&mut progress);
        let limit = if next == Next::Stop {
            Some(Stop::Requested)
        } else if iteration >= self.max_iterations {
            Some(Stop::IterationLimit)
        } else if self.time.is_some_and(|limit| elapsed + last(elapsed, iteration) >= limit) {
            Some(Stop::TimeLimit)
        } else {
            None
        };
        Verdict { converged: marginal_error < self.tolerance, limit }
    }
}

/// Iterations in the time of one more and of what comes after the last: the marginals and the cost of the plan.
const LAST: f64 = 2.25;

/// The time that a solve takes if it goes on once more.
fn last(elapsed: Duration, iterations: usize) -> Duration {
    elapsed.mul_f64(LAST / iterations as f64)
}

/// Whether to go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    pub(crate) converged: bool,
    /// A reason to stop that has nothing to do with convergence.
    pub(crate) limit: Option<Stop>,
}

impl Verdict {
    /// The reason to stop. A solve whose kernel leaves out too much is not converged.
    pub(crate) fn stop(self, settled: bool) -> Option<Stop> {
        if self.converged && settled { Some(Stop::Converged) } else { self.limit }
    }
}

pub(crate) fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon::join(work, || ()).0
}

/// Kernels do not count iterations.
pub(crate) fn at_iteration(mut error: Error, now: usize) -> Error {
    if let Error::Breakdown { iteration, .. } | Error::NotPositive { iteration, .. } = &mut error {
        *iteration = now;
    }
    error
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
