//! From what a kernel leaves to the solution of the user's problem.

use std::time::Instant;

use super::Problem;
use super::choose::SAMPLED_NEARLY_ALL;
use crate::comm::Span;
use crate::control::Stop;
use crate::error::{Error, Result};
use crate::measure::Measure;
use crate::results::{Certainty, Interval, MethodUsed, Solution, Times};
use crate::sinkhorn::Outcome;
use crate::term::{KernelError, Scaling, Solved, Task, Values};
use crate::words::{Part, Side, Term};

/// Epsilon relative to the range of costs above which the plan is all but that of independent points.
const FLAT: f64 = 1e4;

/// Where the value of the exact kernel is, relative to the value of a solve.
#[derive(Debug, Clone, Copy)]
struct Around {
    interval: Option<Interval>,
    corrected: Option<f64>,
    /// What the iterations that were not done may have to do with the upper end.
    slack: f64,
}

impl Around {
    /// The interval of a value, unless its ends are beyond the range of the numbers.
    fn interval(&self, value: f64) -> Option<Interval> {
        self.interval
            .map(|interval| interval.shifted(value))
            .filter(|i| i.low.is_finite() && i.high.is_finite())
    }
}

impl Problem<'_> {
    /// The solution of the user's problem, out of that in the coordinates of the term, and its plan. `outside` are the
    /// logarithms at the points of weight zero.
    pub(super) fn finish(
        &self,
        task: &Task<'_>,
        solved: Solved,
        outside: [Vec<f64>; 2],
        begun: Instant,
    ) -> (Solution, Scaling) {
        let around = self.around(task, &solved);
        let Solved {
            outcome,
            builds,
            transport_cost,
            error,
            rank,
            state,
            pairs,
            messages,
            sampling,
        } = solved;
        let site = self.kernel(task.run.term).site();
        let [x, y] = site.clouds();
        let epsilon = self.options.epsilon;
        let (mu, nu) = (site.measure(x), site.measure(y));
        let constant = site.constant();
        let sums = [&outcome.x.sums[..], &outcome.y.sums];
        let Values { value, value_kl, mass, shifts, gaps } = task.values(&outcome);
        let (value, value_kl, around) = self.limited(task, value, value_kl, around);
        let scaling = Scaling::new(&outcome, shifts, state, messages);
        let plan_concentration =
            transport_cost.and_then(|cost| concentration(task, &outcome, cost));
        // Of the marginals that the plan has.
        let transport_cost =
            transport_cost.map(|cost| mass * (cost + site.moved_cost(sums) + constant));
        let to_user = |cloud: Side, part: Part, f: &mut Vec<f64>, constant: f64| {
            for f in f.iter_mut() {
                *f = epsilon * *f + constant;
            }
            if let (false, Some(p)) = (f.is_empty(), site.offsets(cloud, part)) {
                f.iter_mut().zip(p).for_each(|(f, p)| *f += p);
            }
        };
        let [mut outside_x, mut outside_y] = outside;
        let Outcome { mut f, mut g, .. } = outcome;
        let [shift_x, shift_y] = shifts.map(|shift| epsilon * shift);
        // -eps tau log K v at points of weight zero: what shifts one potential shifts the sums of the other.
        if mu.outside().is_some() {
            to_user(x, Part::Outside, &mut outside_x, -shift_y);
            task.relax(0, &mut outside_x);
        }
        if nu.outside().is_some() {
            to_user(y, Part::Outside, &mut outside_y, constant - shift_x);
            task.relax(1, &mut outside_y);
        }
        to_user(x, Part::Support, &mut f, shift_x);
        to_user(y, Part::Support, &mut g, constant + shift_y);
        let given = |measure: &Measure<'_>| {
            let mass = if task.unbalanced.is_some() { measure.mass() } else { 1.0 };
            measure.weights().iter().map(|w| mass * w).collect()
        };
        // The two values of an unbalanced problem differ by a function of the plan, about which nothing is known.
        let unbalanced = task.unbalanced.is_some();
        let features = match task.run.term {
            Term::Cross => self.prepared + builds.time,
            Term::SelfX | Term::SelfY => builds.time,
        };
        // Samples that would have been nearly all of the clouds.
        let taken_over = self.kernels.used == MethodUsed::Sampled && sampling.is_none();
        let solution = Solution {
            value,
            value_kl,
            transport_cost,
            plan_concentration,
            mass,
            epsilon,
            rho: [x, y].map(|cloud| self.options.rho[cloud as usize]),
            potential_x: mu.scatter(f, &outside_x),
            potential_y: nu.scatter(g, &outside_y),
            marginal_error_x: outcome.x.error,
            marginal_error_y: outcome.y.error,
            marginal_gap_x: gaps[0],
            marginal_gap_y: gaps[1],
            iterations: outcome.iterations,
            stop: outcome.stop,
            rank,
            method: if taken_over { MethodUsed::Online } else { self.kernels.used },
            anchors: self.anchors(),
            reason: match &self.reason {
                Some(_) if taken_over => Some(SAMPLED_NEARLY_ALL.to_owned()),
                reason => reason.clone(),
            },
            bound: error.bound,
            interval: if unbalanced { None } else { around.interval(value) },
            interval_kl: around.interval(value_kl),
            corrected: around.corrected.map(|c| value + c).filter(|_| !unbalanced),
            corrected_kl: around.corrected.map(|c| value_kl + c),
            sampling: sampling.map(|sampling| sampling.shifted(value - value_kl)),
            stages: 1,
            polished: self.polishes.then_some(outcome.iterations),
            builds: builds.count,
            times: Times { features, solve: begun.elapsed().saturating_sub(builds.time) },
            slack: around.slack,
            weights_x: given(mu),
            weights_y: given(nu),
            pairs,
        };
        (solution, scaling)
    }

    /// Where the value of the exact kernel is, at convergence, relative to that of the solve, as far as that is known;
    /// and the best guess.
    fn around(&self, task: &Task<'_>, solved: &Solved) -> Around {
        let (outcome, epsilon) = (&solved.outcome, self.options.epsilon);
        let KernelError { bound, sampled: bounds, rounding, exact, settled } = solved.error;
        let dual = task.unbalanced.as_ref().map(|u| (u, u.dual(&outcome.f, &outcome.g, 0.0)));
        let value = dual.map_or_else(|| task.values(outcome).value, |(_, dual)| dual.value);
        // A dual value is a lower bound at any time, and that of a plan of other marginals is too low by at most what
        // it takes to move the difference, at the prices of the final potentials. Those at the end of a solve tell
        // these; before, no price differs by more than costs do.
        let range = |side: usize, f: &[f64]| {
            let price = |i: usize| f[i] - task.weights[side][i].ln();
            let [low, high] = task.spans[side].maxima(|i| [-price(i), price(i)]);
            high + low
        };
        let ranges = if outcome.stop == Stop::Converged {
            [epsilon * range(0, &outcome.f), epsilon * range(1, &outcome.g)]
        } else {
            [self.kernel(task.run.term).site().cost_range(); 2]
        };
        let potentials = [&outcome.f[..], &outcome.g];
        let marginals = [&outcome.x.sums[..], &outcome.y.sums];
        let slack = match dual {
            _ if settled => 0.0,
            None => 0.5 * (outcome.x.error * ranges[0] + outcome.y.error * ranges[1]),
            Some((unbalanced, dual)) => unbalanced.shortfall(&dual, potentials, marginals, ranges),
        };
        // What it changes that the logarithms of the kernel fall by a constant.
        let change = |log: f64| dual.map_or(epsilon * log, |(_, dual)| -dual.bound(-log));
        let size = dual.map_or(value.abs(), |(_, dual)| dual.size);
        let rounding = 1e-14 * size - change(-rounding);
        let within = |low: f64, high: f64, kind| Interval {
            low: low - rounding,
            high: high + slack + rounding,
            kind,
        };
        let bound = bound.map(|b| within(-b, b, Certainty::Bound));
        let sampled = bounds.map(|s| within(change(s.low), change(s.high), Certainty::Sampled));
        let corrected = bounds.map(|s| change(s.corrected));
        let interval = match (bound, sampled) {
            _ if exact || self.is_exact() => Some(within(0.0, 0.0, Certainty::Exact)),
            (Some(one), Some(two)) => {
                let narrower = two.width() < one.width() && two.contains(0.0);
                Some(if narrower { two } else { one })
            }
            (one, two) => one.or(two),
        };
        Around { interval, corrected, slack }
    }

    /// What is known where epsilon is far above all costs, and takes all digits of a dual value: the plan is all but
    /// that of independent points, whose mean cost is an upper bound of `value_kl`, and by Hoeffding's lemma
    ///
    /// ```text
    /// value_kl >= -eps log E[exp(-c / eps)] >= E[c] - range(c)^2 / (8 eps)
    /// ```
    ///
    /// Values and intervals are moved there.
    fn limited(
        &self,
        task: &Task<'_>,
        value: f64,
        value_kl: f64,
        around: Around,
    ) -> (f64, f64, Around) {
        let epsilon = self.options.epsilon;
        let unknown = (value, value_kl, around);
        let (Some(interval), None) = (around.interval, &task.unbalanced) else { return unknown };
        let site = self.kernel(task.run.term).site();
        let range = site.cost_range();
        if !range.is_finite() || epsilon < FLAT * range {
            return unknown;
        }
        let Some(mean) = site.product_cost() else { return unknown };
        let high = mean + task.run.offset;
        let rounding = 1e-13 * (mean.abs() + task.run.offset.abs());
        let low = high - range * (range / (8.0 * epsilon));
        let (least, most) = (low - rounding, high + rounding);
        let found = value_kl.clamp(low, high);
        // Of a value that is as it should be, but for rounding.
        let interval = Interval {
            low: (value_kl + interval.low).max(least).min(found) - found,
            high: (value_kl + interval.high).min(most).max(found) - found,
            ..interval
        };
        let corrected = around.corrected.map(|c| (value_kl + c).clamp(low, high) - found);
        let slack = around.slack.min(interval.high);
        let around = Around { interval: Some(interval), corrected, slack };
        (value + (found - value_kl), found, around)
    }
}

/// See [`Solution::plan_concentration`]. The entropy of the plan of mass 1 relative to the product of its marginals `p` and
/// `q`, which at convergence are the weights or what these were relaxed to: `p.(f - log p) + q.(g - log q) - <P, C> / eps`, in
/// the coordinates of the term, whose offsets cancel.
fn concentration(task: &Task<'_>, outcome: &Outcome, cost: f64) -> Option<f64> {
    let fewest = task.spans.map(Span::total).into_iter().min().filter(|n| *n > 1)?;
    let share = |side: usize, f: &[f64], sums: &[f64]| {
        task.spans[side].sum(|i| if sums[i] > 0.0 { sums[i] * (f[i] - sums[i].ln()) } else { 0.0 })
    };
    let shares = share(0, &outcome.f, &outcome.x.sums) + share(1, &outcome.g, &outcome.y.sums);
    let relative = (shares - cost / task.run.epsilon) / (fewest as f64).ln();
    // Beyond the ends by rounding, or by the error of the kernel.
    relative.is_finite().then(|| relative.clamp(0.0, 1.0))
}

/// Numbers beyond the range of double precision are no result.
pub(super) fn check_finite(solution: &Solution) -> Result<()> {
    let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
    let what = if !finite(&[solution.value, solution.value_kl]) {
        "the value"
    } else if !finite(&[solution.mass, solution.marginal_gap_x, solution.marginal_gap_y]) {
        "the mass of the plan"
    } else if !solution.transport_cost.unwrap_or_default().is_finite() {
        "the transport cost"
    } else if !(finite(&solution.potential_x)
        && finite(&solution.potential_y)
        && finite(&solution.potential_kl_x())
        && finite(&solution.potential_kl_y()))
    {
        "a potential"
    } else {
        return Ok(());
    };
    Err(Error::Overflow { what })
}
