//! The loop: Algorithm 1 of the paper, on logarithms.

pub(crate) mod accelerated;
pub(crate) mod anderson;
pub(crate) mod anneal;
pub(crate) mod polish;
#[cfg(test)]
mod tests;
pub(crate) mod unbalanced;

use std::time::{Duration, Instant};

use crate::comm::Span;
use crate::control::{Next, Observer, Progress, Stop};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Marginal, Ordered};
use crate::options::Algorithm;
use crate::sinkhorn::anderson::Anderson;
use crate::sinkhorn::unbalanced::Goal;
use crate::words::{Phase, Term};

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
///
/// For a cloud with itself that is the averaged update `f <- (f + T(f)) / 2`, which needs a fraction of the iterations and
/// keeps both potentials equal.
pub(crate) fn solve(
    kernel: &mut dyn Kernel,
    goal: Goal<'_>,
    start: Option<&[f64]>,
    run: Run,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    if let (Algorithm::Accelerated, Some(kernel)) = (run.algorithm, kernel.between()) {
        let start = start.expect("accelerated solves start from potentials");
        return accelerated::solve(kernel, goal, start, run, observer);
    }
    let (mut f, mut g) = (vec![0.0; kernel.rows()], vec![0.0; kernel.columns()]);
    let [a, b] = goal.targets();
    let numbers = if run.algorithm == Algorithm::Plain { 0 } else { kernel.messages().0.len() };
    let mut anderson = (numbers > 0).then(|| Anderson::new(numbers));
    let arranged = kernel.arrange([a, b]);
    let [to_x, to_y] = [arranged[0].ordered(), arranged[1].ordered()];
    // Inside a worker of the thread pool, where parallel loops do not allocate.
    in_pool(|| {
        let begun = Instant::now();
        if let Some(start) = start {
            kernel.start(start)?;
        }
        if let Some(kernel) = kernel.between() {
            kernel.update_y(to_y)?;
        }
        observer.phase(Phase::Iterations);
        let mut iterations = 0;
        let end = loop {
            // u <- a / K v, the error ||v * K^T u - b||_1, v <- b / K^T u.
            let here = |e| at_iteration(e, iterations + 1);
            kernel.update_x(to_x).map_err(here)?;
            if let Some(anderson) = &mut anderson {
                anderson.sent(kernel.messages().0);
            }
            let mut error = kernel.update_y(to_y).map_err(here)?;
            if let Some(anderson) = &anderson {
                // With a message that no `v` sent, that was the error of no plan.
                error = anderson.error(kernel.messages());
            }
            iterations += 1;
            let mut value = || {
                kernel.potentials(&mut f, &mut g);
                goal.value(&f, &g, run.epsilon, run.offset)
            };
            let verdict =
                run.check(iterations, error, begun, &mut value, (observer, goal.spans[0]));
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
                    kernel.update_x(to_x)?;
                    kernel.update_y(to_y)?;
                }
                if let Some(end) = conclude(kernel, goal, [to_x, to_y], run, verdict)? {
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
        outcome(kernel, goal, iterations, end)
    })
}

/// Why a solve ends here and what part of the mass was left out, if it may end.
pub(crate) fn conclude(
    kernel: &mut dyn Kernel,
    goal: Goal<'_>,
    targets: [Ordered<'_>; 2],
    run: Run,
    verdict: Verdict,
) -> Result<Option<(Stop, f64)>> {
    let (mut left_out, settled) = settle(kernel, goal, targets, run)?;
    let Some(stop) = verdict.stop(settled) else { return Ok(None) };
    let [a, b] = targets;
    // Potentials that answer a part of the kernel only are of no use.
    for _ in 0..SETTLING {
        if left_out <= run.leave_out {
            break;
        }
        kernel.update_x(a)?;
        kernel.update_y(b)?;
        (left_out, _) = settle(kernel, goal, targets, run)?;
    }
    Ok(Some((stop, left_out)))
}

/// Completes what a kernel left out. Returns the part of the mass that it was, and whether a solve may end so.
fn settle(
    kernel: &mut dyn Kernel,
    goal: Goal<'_>,
    [a, b]: [Ordered<'_>; 2],
    run: Run,
) -> Result<(f64, bool)> {
    let left_out = kernel.settle(run.leave_out)?;
    let mut settled = left_out <= run.leave_out;
    if goal.unbalanced.is_some() {
        // Faint points: what they lacked must not have mattered.
        let found = kernel.refresh(a, b)?;
        settled &= found <= 10.0 * run.tolerance.max(run.leave_out);
    }
    Ok((left_out, settled))
}

/// What a kernel has in the end.
pub(crate) fn outcome(
    kernel: &mut dyn Kernel,
    goal: Goal<'_>,
    iterations: usize,
    (stop, left_out): (Stop, f64),
) -> Result<Outcome> {
    let [a, b] = goal.targets();
    let [x, y] = kernel.marginals(a, b).map_err(|e| at_iteration(e, iterations))?;
    let (mut f, mut g) = (vec![0.0; kernel.rows()], vec![0.0; kernel.columns()]);
    kernel.potentials(&mut f, &mut g);
    // The plan of mass 1: of a cloud with itself it has the best dual value along a common shift of both potentials;
    // where marginals are relaxed, what mass it should have comes later.
    let excess = match kernel.between() {
        None => [0.5 * x.log_mass; 2],
        Some(_) if goal.unbalanced.is_some() => [x.log_mass, 0.0],
        Some(_) => [0.0; 2],
    };
    for (potential, excess) in [&mut f, &mut g].into_iter().zip(excess) {
        for f in potential.iter_mut() {
            *f -= excess;
        }
    }
    Ok(Outcome { f, g, x, y, iterations, stop, left_out })
}

impl Run {
    /// Tells the observer of an iteration, and looks for reasons to stop after it.
    pub(crate) fn check(
        &self,
        iteration: usize,
        marginal_error: f64,
        begun: Instant,
        value: &mut dyn FnMut() -> f64,
        (observer, span): (&mut dyn Observer, &Span),
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
        let late = || self.time.is_some_and(|time| elapsed + last(elapsed, iteration) >= time);
        let reasons = [
            (Stop::Requested, next == Next::Stop),
            (Stop::IterationLimit, iteration >= self.max_iterations),
            (Stop::TimeLimit, late()),
        ];
        // Clocks and observers differ from process to process: the first one decides.
        let here = reasons.iter().position(|(_, holds)| *holds).unwrap_or(reasons.len());
        let limit = reasons.get(span.decided(here)).map(|(stop, _)| *stop);
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
