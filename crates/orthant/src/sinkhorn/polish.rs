//! The exact kernel after features: few passes over all pairs.
//!
//! Features that are a little wrong give potentials that are a little wrong. Starting the exact kernel from them saves
//! its first iterations, and not those that remain: these take as many passes a digit as ever. But features know more
//! than a start. They know, nearly, how the exact plan answers to a change.
//!
//! *Defect correction.* With the potential `g`, a pass over the exact kernel gives `f` such that the rows are right,
//! and the column marginal `b'`. Sinkhorn's step is `r = log(b / b')`. To first order in the change `dg`
//!
//! ```text
//! log b'(g + dg) = log b'(g) + (I - S) dg,      S = diag(1/b) P^T diag(1/a) P,      so (I - S) dg = r
//! ```
//!
//! is what should be solved; Sinkhorn's `dg = r` ignores `S`, and slow modes are those in which it is nearly the
//! identity. The plan of features `P_theta` is close to `P`, and it takes linear time. So the *model*, a problem with
//! features, is solved with the marginals `(a, b b/b')` in place of `(a, b)`, and the change of its potential is the
//! step. What is left of the error is the relative error of `S_theta`, whatever Sinkhorn's own rate is. Anderson's
//! mixing goes on top. For a cloud with itself `f + log K e^f = log a` has the derivative `I + diag(1/a) P`, and
//! the same is done with the symmetric model.
//!
//! Errors of features do not change the result: only the exact marginal ends the solve. They can make it slow, as
//! where features miss the contact between distant points, and the model moves these too far. So it is watched:
//!
//! - Rows are right after a pass, so `D = a.f + b.g` is a dual value. Sinkhorn's step gains at least the divergence
//!   `KL(b | b')`, and does not raise it. A corrected step that gained less, or raised it, was worse: the model is given
//!   up, and the iteration goes on with the plain step in its place, accelerated as always.
//! - Potentials of features that are no good at all (an error above a tenth) may be worse than none. Flat ones are
//!   tried too, and the larger dual value decides.

use std::time::Instant;

use super::anderson::Anderson;
use super::unbalanced::Goal;
use super::{Run, at_iteration, in_pool};
use crate::comm::Span;
use crate::control::{Observer, Stop};
use crate::error::Result;
use crate::kernel::{Kernel, Pass, Target};
use crate::words::Phase;

/// When a solve of the model ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    tolerance: f64,
    deadline: Option<Instant>,
}

/// Iterations of a model, at most.
const MODEL_ITERATIONS: usize = 200;

impl Until {
    /// As the clock of the first process has it.
    fn is_late(self, span: &Span) -> bool {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        span.decided(usize::from(late)) > 0
    }
}

/// A kernel near the exact one that takes little time.
struct Near<'m> {
    kernel: Box<dyn Kernel + 'm>,
    /// The first marginal.
    a: Vec<f64>,
    /// For kernels between two clouds.
    anderson: Option<Anderson>,
    f: Vec<f64>,
    g: Vec<f64>,
}

impl<'m> Near<'m> {
    /// From the potential `start`, with the weights `a` of the first cloud.
    fn new(mut kernel: Box<dyn Kernel + 'm>, start: &[f64], a: &[f64]) -> Result<Self> {
        kernel.start(start)?;
        let numbers = kernel.messages().0.len();
        let anderson = (numbers > 0).then(|| Anderson::new(numbers));
        let (f, g) = (vec![0.0; kernel.rows()], vec![0.0; kernel.columns()]);
        Ok(Near { kernel, a: a.to_vec(), anderson, f, g })
    }

    /// Solves with this second marginal, from where the last solve ended.
    fn solve(&mut self, b: &[f64], until: Until) -> Result<()> {
        let Near { kernel, anderson, .. } = self;
        let targets = kernel.arrange([Target::fixed(&self.a), Target::fixed(b)]);
        let [a, b] = [targets[0].ordered(), targets[1].ordered()];
        if let Some(anderson) = anderson {
            anderson.restart();
        }
        if let Some(kernel) = kernel.between() {
            kernel.update_y(b)?;
        }
        for iteration in 1..=MODEL_ITERATIONS {
            kernel.update_x(a)?;
            if let Some(anderson) = anderson {
                anderson.sent(kernel.messages().0);
            }
            let mut error = kernel.update_y(b)?;
            if let Some(anderson) = anderson {
                error = anderson.error(kernel.messages());
            }
            let last = iteration == MODEL_ITERATIONS || until.is_late(kernel.spans()[0]);
            if error < until.tolerance || last {
                break;
            }
            if let Some(anderson) = anderson {
                anderson.judge(kernel.messages().0, error, None, false);
                match anderson.better() {
                    Some(best) => kernel.go_back(best),
                    None => anderson.mix(kernel.messages()),
                }
            }
        }
        kernel.potentials(&mut self.f, &mut self.g);
        Ok(())
    }
}

/// How well a model is solved, relative to the residual.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Care {
    /// Error relative to the change that is asked for: that of the model itself need not be smaller.
    pub(crate) part: f64,
    /// Smaller changes are made this large (in the mean) and the step smaller again, so that the rounding of the model
    /// does not matter.
    pub(crate) least: f64,
    pub(crate) deadline: Option<Instant>,
}

/// Answers to changes of the marginal.
pub(crate) struct Model<'m> {
    near: Near<'m>,
    /// The second marginal, the potential that goes with it, and those of a changed one.
    b: Vec<f64>,
    base: Vec<f64>,
    changed: Vec<f64>,
    /// Whether only the differences of potentials matter.
    cross: bool,
    care: Care,
}

/// A residual may change the marginal by this factor, as a logarithm; the rest of it is added to the step as it is.
const LARGEST_CHANGE: f64 = 1.0;

impl<'m> Model<'m> {
    /// Of a kernel with the marginals `a` and `b`, from the potential `start` of the first cloud.
    pub(crate) fn new(
        mut kernel: Box<dyn Kernel + 'm>,
        start: &[f64],
        [a, b]: [&[f64]; 2],
        care: Care,
    ) -> Result<Self> {
        let cross = kernel.between().is_some();
        let near = Near::new(kernel, start, a)?;
        let b = b.to_vec();
        let (base, changed) = (vec![0.0; b.len()], b.clone());
        let mut model = Model { near, b, base, changed, cross, care };
        model.solve(care.least)?;
        model.base.copy_from_slice(&model.near.g);
        Ok(model)
    }

    /// Solves with the changed marginal, which was changed by `size`.
    fn solve(&mut self, size: f64) -> Result<()> {
        let Care { part, deadline, .. } = self.care;
        self.near.solve(&self.changed, Until { tolerance: part * size, deadline })
    }

    /// The potential of the first cloud, as the model has it.
    pub(crate) fn first(&self) -> Vec<f64> {
        self.near.f.clone()
    }

    /// The step that makes up for a residual `log(b / b')`.
    fn correct(&mut self, residual: &[f64], step: &mut [f64]) -> Result<()> {
        let span = self.near.kernel.spans()[1].clone();
        let size = span.sum(|k| self.b[k] * residual[k].abs());
        let scale = if size < self.care.least { self.care.least / size } else { 1.0 };
        let change = |k: usize| (scale * residual[k]).clamp(-LARGEST_CHANGE, LARGEST_CHANGE);
        for (k, (changed, b)) in self.changed.iter_mut().zip(&self.b).enumerate() {
            *changed = b * change(k).exp();
        }
        if self.cross {
            let changed = &self.changed;
            let mass = span.sum(|k| changed[k]);
            self.changed.iter_mut().for_each(|b| *b /= mass);
        }
        self.solve(scale * size)?;
        for (k, (z, base)) in self.near.g.iter().zip(&self.base).enumerate() {
            step[k] = (z - base + scale * residual[k] - change(k)) / scale;
        }
        if self.cross {
            let mean = span.sum(|k| self.b[k] * step[k]);
            for s in step {
                *s -= mean;
            }
        }
        Ok(())
    }
}

/// Errors above this are no better than those of flat potentials, perhaps.
const POOR_ERROR: f64 = 0.1;
/// Differences of dual values that are no rounding, relative to the value.
const NOISE: f64 = 1e-13;
/// Where values do not tell, a step that makes the error so many times larger is a failure.
const WORSE: f64 = 2.0;

/// What a pass says about its potential.
#[derive(Debug, Clone, Copy)]
struct Seen {
    error: f64,
    /// The dual value, in units of epsilon, and what a plain step adds to it at least.
    value: f64,
    sure: f64,
}

impl Seen {
    /// Before the first pass: everything is better, and nothing fails.
    const NOTHING: Seen =
        Seen { error: f64::INFINITY, value: f64::NEG_INFINITY, sure: f64::INFINITY };

    /// Whether dual values can be told from those of another potential.
    fn tells(self, other: Seen) -> bool {
        self.sure.max(other.sure) > NOISE * (1.0 + self.value.abs())
    }

    fn is_better(self, than: Seen) -> bool {
        if self.tells(than) { self.value > than.value } else { self.error < than.error }
    }

    /// Whether a plain step from `before` would have been better than the step that led here, for sure.
    fn fails(self, before: Seen) -> bool {
        if self.tells(before) {
            self.value - before.value < before.sure || self.sure > before.sure
        } else {
            self.error > WORSE * before.error
        }
    }
}

/// What the loop needs.
struct Loop {
    z: Vec<f64>,
    /// The message of the last pass.
    y: Vec<f64>,
    residual: Vec<f64>,
    /// The next potential: by a plain step, or by a corrected one.
    next: Vec<f64>,
    step: Vec<f64>,
    /// The best potential so far, and the plain step from it.
    best: Seen,
    after_best: Vec<f64>,
    anderson: Anderson,
    f: Vec<f64>,
}

/// Exact iterations from the potential `start` of the first cloud. Returns how many, and why they ended.
pub(crate) fn solve(
    exact: &mut dyn Pass,
    mut model: Option<Model<'_>>,
    goal: Goal<'_>,
    start: &[f64],
    run: Run,
    observer: &mut dyn Observer,
) -> Result<(usize, Stop)> {
    let [a, b] = goal.targets();
    let mut now = Loop::new(goal);
    in_pool(|| {
        let begun = Instant::now();
        exact.begin(start, b, &mut now.z)?;
        observer.phase(Phase::Iterations);
        let mut iterations = 0;
        // Whether the last potential was flat, as an alternative.
        let mut flat = false;
        let stop = loop {
            let seen = now.pass(exact, goal).map_err(|e| at_iteration(e, iterations + 1))?;
            iterations += 1;
            let mut value = || run.epsilon * seen.value + run.offset;
            let verdict =
                run.check(iterations, seen.error, begun, &mut value, (observer, goal.spans[0]));
            let better = seen.is_better(now.best);
            if let Some(stop) = verdict.stop(true) {
                if stop != Stop::Converged && !better {
                    // The last potential was a failed experiment.
                    exact.pass(&now.after_best, a)?;
                }
                break stop;
            }
            let failed = if flat { !better } else { model.is_some() && seen.fails(now.best) };
            if failed {
                // The plain step from the best is better, for sure.
                if !std::mem::take(&mut flat) {
                    model = None;
                    now.anderson.restart();
                }
                now.z.copy_from_slice(&now.after_best);
                continue;
            }
            if better {
                now.best = seen;
                now.after_best.copy_from_slice(&now.next);
            }
            if iterations == 1 && exact.share() == 1.0 && seen.error > POOR_ERROR {
                flat = true;
                now.f.iter_mut().zip(goal.a).for_each(|(f, a)| *f = a.ln());
                exact.begin(&now.f, b, &mut now.z)?;
                continue;
            }
            flat = false;
            if model.as_mut().is_some_and(|model| now.correct(model).is_err()) {
                model = None;
                now.anderson.restart();
            }
            now.advance(seen, model.is_some());
        };
        exact.finish(b)?;
        Ok((iterations, stop))
    })
}

impl Loop {
    fn new(goal: Goal<'_>) -> Self {
        let zeros = || vec![0.0; goal.b.len()];
        Loop {
            z: zeros(),
            y: zeros(),
            residual: zeros(),
            next: zeros(),
            step: zeros(),
            best: Seen::NOTHING,
            after_best: zeros(),
            anderson: Anderson::new(goal.b.len()),
            f: vec![0.0; goal.a.len()],
        }
    }

    /// One pass, and the plain step after it.
    fn pass(&mut self, exact: &mut dyn Pass, goal: Goal<'_>) -> Result<Seen> {
        let [a, _] = goal.targets();
        self.y.copy_from_slice(exact.pass(&self.z, a)?);
        let share = exact.share();
        for (k, b) in goal.b.iter().enumerate() {
            self.residual[k] = b.ln() - (self.y[k] + self.z[k]);
            self.next[k] = self.z[k] + share * self.residual[k];
        }
        let Loop { y, z, residual, .. } = self;
        let [error, mass, residual] = goal.spans[1].sums(|k| {
            let sum = (y[k] + z[k]).exp();
            [(sum - goal.b[k]).abs(), sum, goal.b[k] * residual[k]]
        });
        let sure = residual + mass.ln();
        let (f, g, offset) = exact.potentials(&mut self.f);
        Ok(Seen { error, value: goal.value(f, g, 1.0, offset), sure })
    }

    /// The step of the model in place of the plain one.
    fn correct(&mut self, model: &mut Model<'_>) -> Result<()> {
        model.correct(&self.residual, &mut self.step)?;
        for ((next, z), step) in self.next.iter_mut().zip(&self.z).zip(&self.step) {
            *next = z + step;
        }
        Ok(())
    }

    /// Mixes the next potential with earlier ones. Corrected ones were judged already.
    fn advance(&mut self, seen: Seen, corrected: bool) {
        let Loop { z, y, next, anderson, .. } = self;
        anderson.sent(z);
        if !corrected {
            let value = anderson.is_far(seen.error).then_some(seen.value);
            anderson.judge(next, seen.error, value, false);
            if let Some(best) = anderson.better() {
                z.copy_from_slice(best);
                return;
            }
        }
        anderson.mix((next, y));
        z.copy_from_slice(next);
    }
}
