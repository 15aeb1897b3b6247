//! Accelerated Sinkhorn: the paper's Algorithm 2 without its misprints (`PAPER.md` lists them).
//!
//! Accelerated alternating minimisation (Guminov, Dvurechensky, Tupitsa & Gasnikov, *On a combination of alternating
//! minimization and Nesterov's momentum*, 2021) of
//!
//! ```text
//! phi(eta) = log <e^{eta_1}, K e^{eta_2}> - a.eta_1 - b.eta_2,      F = -eps phi
//! ```
//!
//! whose gradient is what the marginals `r`, `c` of the plan of `eta`, divided by its mass, have too much:
//! `(r - a, c - b)`. From `eta = zeta` and `A = 0`, with a trial value of `L`,
//!
//! ```text
//! s = 1/(2L) + sqrt(1/(4L^2) + A/L),      tau = 1/(sL),      lambda = tau zeta + (1 - tau) eta
//! eta'  = lambda, but for the block with the larger gradient, where phi is minimised: eta'_1 = log a - log K e^{lambda_2}
//! ```
//!
//! and if `phi(eta') <= phi(lambda) - |grad phi(lambda)|^2 / (2L)`,
//!
//! ```text
//! eta <- eta',      zeta <- zeta - s W^-1 grad phi(lambda),      A <- A + s,      L <- L/2;      otherwise L <- 2L.
//! ```
//!
//! *The norm.* `W` are the weights of the points, `|x|^2 = x.Wx` and `|grad|^2 = grad.W^-1 grad`: the algorithm in the
//! coordinates `sqrt(W) eta`. The curvature of `phi` is `W`, but for what has rank 1 or couples the clouds, so that
//! `L` is near 1 whatever the weights are. For clouds of equal weights, of one size, this changes no step. For others the
//! step in the norm of the paper is that of the heaviest point: with weights between 1e-8 and 1 it did not
//! converge in 50,000 iterations where this takes hundreds.
//!
//! *The test.* The minimum of a block is lower than `phi(lambda)` by exactly `KL(a | r)`, a sum of small positive terms.
//! So no two values of `phi`, all but equal, are compared, and it takes no product with the kernel. A trial has two
//! products, as an iteration of Algorithm 1 has, and counts as one.
//!
//! *It ends.* By Pinsker's inequality `KL(a | r) >= |r - a|_1^2 / 2`, and `|x|_1^2 >= 2 sum_i x_i^2` where entries sum to
//! zero, which is at least `2w |x|^2` with `w` the smallest weight. The larger block has half of the squared gradient, so
//! that the test holds for every `L >= 1/w`, and trials with such an `L` are accepted whatever rounding makes
//! of the test: no more than `log2(1 / (wL))` in a row are not.
//!
//! *The rate.* With `A` after `k` accepted trials, `phi(eta) - min phi <= R^2 / (2A)`, `R` the distance of the
//! start from a solution in the norm above; and `sqrt(A)` grows by `1 / (2 sqrt(L))` at least. Hence, `L` never being
//! above `2/w`,
//!
//! ```text
//! F* - F(eta_k) <= 4 eps R^2 / (w k^2)
//! ```
//!
//! which for equal weights is `4 eps |eta_0 - eta*|_2^2 / k^2`.
//!
//! *Any potentials.* Far from a solution a plan may have next to nothing at a point, and the logarithm of that counts.
//! Kernels that leave out what cannot matter to a plan whose marginals are nearly right, as lattices do, are asked for
//! whole products there ([`Kernel::depth`]).
//!
//! The dual value need not rise in every step. All `eta'` are as good as their dual values, accepted or not, and the
//! one with the largest is what a solve returns that ran out of time or iterations.
//!
//! *Convergence.* Errors are those of the plan of `lambda`, where the products are taken: both marginals together.
//! The plan that is returned is that of `eta'_1` and `v = b / K^T u`. Of its marginals the second is right, and the
//! first is off by no more: an exact step moves the other marginal by no more than the error that it removes, and
//! after it that error never grows.

use std::time::Instant;

use super::unbalanced::Goal;
use super::{Outcome, Run, at_iteration, conclude, in_pool};
use crate::comm::Span;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::kernel::Between;
use crate::words::{Phase, Side};

/// The largest `L`: beyond it numbers would leave their range, for weights below its inverse.
const LARGEST_CONSTANT: f64 = 1e300;
/// Steps beyond the inverse of this are of no use: gradients that let `L` fall so far are nothing but rounding.
const SMALLEST: f64 = 1e-100;
/// Dual values that differ by less than this part of them are the same.
const SAME: f64 = 1e-14;

/// One cloud: its points' coordinates of everything that the algorithm knows.
#[derive(Debug)]
struct Block<'a> {
    /// Its points, among those of all processes.
    span: &'a Span,
    weights: &'a [f64],
    log_weights: Vec<f64>,
    eta: Vec<f64>,
    zeta: Vec<f64>,
    lambda: Vec<f64>,
    /// `log K e^{lambda}` of the other cloud's `lambda`.
    sums: Vec<f64>,
    /// `log(r / a)`: the gradient, divided by the weights, is `e^d - 1`.
    excess: Vec<f64>,
    /// Of the best trial so far.
    best: Vec<f64>,
    /// `lambda` of the last products that left out nothing.
    whole: Vec<f64>,
}

/// By how much a marginal is missed.
#[derive(Debug, Clone, Copy, Default)]
struct Miss {
    /// L1 norm.
    error: f64,
    /// Square of the norm of the gradient.
    square: f64,
    /// `KL(a | r)`.
    divergence: f64,
    /// The largest `log(a / r)`.
    depth: f64,
}

impl std::ops::Add for Miss {
    type Output = Miss;
    fn add(self, other: Miss) -> Miss {
        Miss {
            error: self.error + other.error,
            square: self.square + other.square,
            divergence: self.divergence + other.divergence,
            depth: self.depth.max(other.depth),
        }
    }
}

impl<'a> Block<'a> {
    fn new(weights: &'a [f64], span: &'a Span) -> Self {
        let zeros = || vec![0.0; weights.len()];
        Block {
            span,
            weights,
            log_weights: weights.iter().map(|a| a.ln()).collect(),
            eta: zeros(),
            zeta: zeros(),
            lambda: zeros(),
            sums: zeros(),
            excess: zeros(),
            best: zeros(),
            whole: zeros(),
        }
    }

    /// `lambda <- tau zeta + (1 - tau) eta`.
    fn mix(&mut self, tau: f64) {
        for ((lambda, zeta), eta) in self.lambda.iter_mut().zip(&self.zeta).zip(&self.eta) {
            *lambda = tau * zeta + (1.0 - tau) * eta;
        }
    }

    /// How far `lambda` is from where products were whole, up to a constant.
    fn moved(&self) -> f64 {
        let moved = |i: usize| self.lambda[i] - self.whole[i];
        let [low, high] = self.span.maxima(|i| [-moved(i), moved(i)]);
        high + low
    }

    /// The gradient at `lambda`, and what goes with it.
    fn measure(&mut self) -> Miss {
        for ((log, lambda), sum) in self.excess.iter_mut().zip(&self.lambda).zip(&self.sums) {
            *log = lambda + sum;
        }
        let log_mass = self.span.log_sum(|i| self.excess[i]);
        for (d, log) in self.excess.iter_mut().zip(&self.log_weights) {
            *d -= log_mass + log;
        }
        let depth = self.span.max(|i| -self.excess[i]).max(0.0);
        let [error, square, divergence] = self.span.sums(|i| {
            let (a, d) = (self.weights[i], self.excess[i]);
            let more = d.exp_m1();
            // e^d - 1 - d, also where nearly all of it cancels.
            let rest = if d.abs() < 1e-4 { d * d * (0.5 + d / 6.0) } else { more - d };
            [(a * more).abs(), a * more * more, a * rest]
        });
        Miss { error, square, divergence, depth }
    }

    /// `eta'`, where `phi` is minimised in this block or not.
    fn next(&self, minimised: bool, i: usize) -> f64 {
        if minimised { self.log_weights[i] - self.sums[i] } else { self.lambda[i] }
    }

    /// What this block adds to `-phi(eta')`: the plan of `eta'` has mass 1.
    fn value(&self, minimised: bool) -> f64 {
        self.span.sum(|i| self.weights[i] * self.next(minimised, i))
    }

    fn keep(&mut self, minimised: bool) {
        let mut best = std::mem::take(&mut self.best);
        best.iter_mut().enumerate().for_each(|(i, best)| *best = self.next(minimised, i));
        self.best = best;
    }

    fn accept(&mut self, minimised: bool, step: f64) {
        let mut eta = std::mem::take(&mut self.eta);
        eta.iter_mut().enumerate().for_each(|(i, eta)| *eta = self.next(minimised, i));
        self.eta = eta;
        let log_step = step.ln();
        for (zeta, d) in self.zeta.iter_mut().zip(&self.excess) {
            // Where the weight is tiny e^d may be huge, and the step is as small then.
            *zeta -= if *d > 1.0 { (d + log_step).exp() - step } else { step * d.exp_m1() };
        }
    }

    /// Goes on from the best trial without momentum.
    fn restart(&mut self) {
        self.eta.copy_from_slice(&self.best);
        self.zeta.copy_from_slice(&self.best);
    }

    /// Products must have logarithms.
    fn check(&self, cloud: Side) -> Result<()> {
        match self.sums.iter().position(|s| !s.is_finite()) {
            None => Ok(()),
            Some(i) => Err(Error::Breakdown {
                iteration: 0,
                cloud,
                row: i + 1,
                value: self.sums[i].exp(),
                remedy: "use a larger epsilon",
            }),
        }
    }
}

/// Accelerated Sinkhorn on a kernel, from `log u = start`. Marginals are kept.
pub(crate) fn solve(
    kernel: &mut dyn Between,
    goal: Goal<'_>,
    start: &[f64],
    run: Run,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let [a, b] = goal.targets();
    let arranged = kernel.arrange([a, b]);
    let [to_x, to_y] = [arranged[0].ordered(), arranged[1].ordered()];
    let mut blocks = [Block::new(goal.a, goal.spans[0]), Block::new(goal.b, goal.spans[1])];
    in_pool(|| {
        let begun = Instant::now();
        kernel.start(start)?;
        kernel.update_y(to_y)?;
        observer.phase(Phase::Iterations);
        let [x, y] = &mut blocks;
        kernel.potentials(&mut x.best, &mut y.best);
        x.restart();
        y.restart();
        let lightest = goal.spans[0].min(|i| goal.a[i]).min(goal.spans[1].min(|j| goal.b[j]));
        let certain = (1.0 / lightest).min(LARGEST_CONSTANT);
        // Half of what the curvature is where marginals are right.
        let mut constant: f64 = 0.5;
        let (mut sum, mut iterations, mut deep) = (0.0, 0, true);
        let (mut best_value, mut best_error) = (f64::NEG_INFINITY, f64::INFINITY);
        let (stop, left_out) = loop {
            let half = 0.5 / constant;
            let step = half + half.hypot((sum / constant).sqrt());
            let [x, y] = &mut blocks;
            x.mix(1.0 / (step * constant));
            y.mix(1.0 / (step * constant));
            let (miss_x, miss_y) =
                measure(kernel, x, y, &mut deep).map_err(|e| at_iteration(e, iterations + 1))?;
            iterations += 1;
            let total = miss_x + miss_y;
            let first = miss_x.square >= miss_y.square;
            let decrease = if first { miss_x } else { miss_y }.divergence;
            let value = x.value(first) + y.value(!first);
            let same = SAME * value.abs();
            let better = value > best_value + same
                || (value >= best_value - same && total.error < best_error);
            best_value = best_value.max(value);
            let mut dual = || run.epsilon * best_value + run.offset;
            let verdict =
                run.check(iterations, total.error, begun, &mut dual, (observer, goal.spans[0]));
            if better || verdict.converged {
                best_error = total.error;
                x.keep(first);
                y.keep(!first);
            }
            if verdict.converged || verdict.limit.is_some() {
                // A whole iteration, so that both sides have heard of each other.
                kernel.start(&x.best)?;
                kernel.update_y(to_y)?;
                kernel.update_x(to_x)?;
                kernel.update_y(to_y)?;
                let end = conclude(kernel, goal, [to_x, to_y], run, verdict)?;
                kernel.potentials(&mut x.best, &mut y.best);
                if let Some(end) = end {
                    break end;
                }
                // It has taken in more of itself, and is another one now.
                x.restart();
                y.restart();
                (sum, deep) = (0.0, true);
                (best_value, best_error) = (f64::NEG_INFINITY, f64::INFINITY);
            } else if constant >= certain || decrease >= total.square / (2.0 * constant) {
                x.accept(first, step);
                y.accept(!first, step);
                sum += step;
                constant = (0.5 * constant).max(SMALLEST);
            } else {
                constant *= 2.0;
            }
        };
        let [marginal_x, marginal_y] =
            kernel.marginals(a, b).map_err(|e| at_iteration(e, iterations))?;
        let [x, y] = blocks.each_mut().map(|block| std::mem::take(&mut block.best));
        Ok(Outcome { f: x, g: y, x: marginal_x, y: marginal_y, iterations, stop, left_out })
    })
}

/// The gradient at `lambda`, and what goes with it. `deep` is whether quick products would not do here, as far as the
/// last trial tells; and then whether this one does.
fn measure(
    kernel: &mut dyn Between,
    x: &mut Block<'_>,
    y: &mut Block<'_>,
    deep: &mut bool,
) -> Result<(Miss, Miss)> {
    let depth = kernel.depth();
    let mut whole = *deep || x.moved().max(y.moved()) > 0.5 * depth;
    loop {
        kernel.products(&x.lambda, &y.lambda, whole, &mut x.sums, &mut y.sums)?;
        x.check(Side::X)?;
        y.check(Side::Y)?;
        let (miss_x, miss_y) = (x.measure(), y.measure());
        *deep = miss_x.depth.max(miss_y.depth) > depth;
        if whole {
            x.whole.copy_from_slice(&x.lambda);
            y.whole.copy_from_slice(&y.lambda);
        }
        if whole || !*deep {
            return Ok((miss_x, miss_y));
        }
        whole = true;
    }
}
