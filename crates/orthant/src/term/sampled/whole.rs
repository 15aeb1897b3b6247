//! The two clouds of a term with their marginals, and potentials at all of their points.
//!
//! Everything is in units of epsilon, for weights of sum 1 and masses `m_a`, `m_b`, and with `k = eps / rho`, zero where a
//! marginal is kept. Potentials are relative to the weights and in the coordinates of the kernel; the price `F` of a point
//! has what these coordinates add to it. The dual function is
//!
//! ```text
//! m_a a.h(F) + m_b b.h(G) + m_a m_b (1 - sum_ij a_i b_j exp(F_i + G_j - C_ij)),     h(F) = (1 - exp(-k F)) / k
//! ```
//!
//! (see [`crate::sinkhorn::unbalanced`]); `h(F) = F` where `k` is zero. It is linear in each measure.

use super::draws::Draws;
use crate::comm::Span;
use crate::kernel::Marginal;
use crate::sinkhorn::unbalanced::Unbalanced;

/// A cloud of a term.
pub(super) struct Cloud<'t> {
    pub(super) weights: &'t [f64],
    pub(super) span: &'t Span,
    /// Of the weights as given, where the marginal is relaxed or the other one is; otherwise 1.
    pub(super) mass: f64,
    /// `eps / rho`.
    k: f64,
    /// What the coordinates add to prices, where that is not a constant of the value.
    moved: Option<Vec<f64>>,
}

impl<'t> Cloud<'t> {
    pub(super) fn new(
        (weights, span): (&'t [f64], &'t Span),
        unbalanced: Option<&Unbalanced>,
        slot: usize,
    ) -> Self {
        let Some(unbalanced) = unbalanced else {
            return Cloud { weights, span, mass: 1.0, k: 0.0, moved: None };
        };
        let (mass, k) = (unbalanced.mass(slot), unbalanced.ratio(slot));
        Cloud { weights, span, mass, k, moved: Some(unbalanced.moved(slot)) }
    }

    fn moved(&self, i: usize) -> f64 {
        self.moved.as_ref().map_or(0.0, |moved| moved[i])
    }

    /// `h(F)`.
    fn prize(&self, i: usize, f: f64) -> f64 {
        let price = f + self.moved(i);
        if self.k == 0.0 { price } else { -(-self.k * price).exp_m1() / self.k }
    }

    /// `h(F) + 1 - exp(-k F)`: what a point adds to the dual function, but for a constant, at the best price of it or where
    /// its derivative by the weight is asked for.
    pub(super) fn worth(&self, i: usize, f: f64) -> f64 {
        (1.0 + self.k) * self.prize(i, f)
    }

    /// The best potential of a point, of sums `exp(s)` over the other cloud.
    pub(super) fn best(&self, i: usize, s: f64, other: &Cloud<'_>) -> f64 {
        let moved = self.moved(i);
        // exp(-k F) = m exp(F) S.
        (-(s + other.mass.ln()) - self.k * moved) / (1.0 + self.k)
    }

    /// The best potential of a cloud with itself at a point of weight `a`, of sums `exp(s)` over all others:
    /// `exp(-k F) = m (a t^2 + S t)` with `t = exp(f)`.
    pub(super) fn best_own(&self, i: usize, s: f64, a: f64) -> f64 {
        // Where k is zero and m is 1, t = 2 / (S + sqrt(S^2 + 4 a)).
        let root = 0.5 * (1.0 + 4.0 * (a.ln() - 2.0 * s).exp()).sqrt();
        let mut f = -(s + (0.5 + root).ln());
        if self.k == 0.0 && self.mass == 1.0 {
            return f;
        }
        let (moved, mass) = (self.moved(i), self.mass.ln());
        // Newton's method for a function whose slope is between 1 + k and 2 + k.
        for _ in 0..50 {
            let (own, others) = (a.ln() + 2.0 * f, s + f);
            let top = own.max(others);
            let sum = (own - top).exp() + (others - top).exp();
            let slope = 1.0 + (own - top).exp() / sum + self.k;
            let step = (mass + top + sum.ln() + self.k * (f + moved)) / slope;
            f -= step;
            if step.abs() <= 1e-14 * (1.0 + f.abs()) {
                break;
            }
        }
        f
    }

    /// The mean of a function of the points.
    pub(super) fn mean(&self, value: impl Fn(usize) -> f64 + Sync) -> f64 {
        self.span.sum(|i| self.weights[i] * value(i))
    }

    /// The logarithm of what the mass of a point is at this price, relative to its weight.
    pub(super) fn kept(&self, i: usize, f: f64) -> f64 {
        -self.k * (f + self.moved(i))
    }
}

/// The clouds of a term, which of a cloud with itself are one.
pub(super) struct Whole<'t> {
    pub(super) clouds: [Cloud<'t>; 2],
    pub(super) is_self: bool,
}

impl Whole<'_> {
    /// How many clouds that are.
    pub(super) fn count(&self) -> usize {
        if self.is_self { 1 } else { 2 }
    }

    /// The dual function of a second potential and the best first one, whose mean [`Cloud::worth`] is known.
    pub(super) fn semi_dual(&self, worth: f64, g: &[f64]) -> f64 {
        let [x, y] = &self.clouds;
        x.mass * (worth + (y.mass - 1.0)) + y.mass * y.mean(|j| y.prize(j, g[j]))
    }

    /// The mass of the first cloud: what means over it count for.
    pub(super) fn mass(&self) -> f64 {
        self.clouds[0].mass
    }

    /// The marginal of a cloud at a potential, of mass 1.
    pub(super) fn marginal(&self, slot: usize, f: &[f64], error: f64) -> Marginal {
        let cloud = &self.clouds[slot];
        let kept = |i: usize| cloud.kept(i, f[i]).exp();
        let mass = cloud.mean(kept);
        let sums = cloud.weights.iter().enumerate().map(|(i, a)| a * kept(i) / mass).collect();
        Marginal { sums, error, log_mass: 0.0 }
    }

    /// What the value of a sample has more than that of the clouds, to first order, by potentials that do not know the
    /// sample: its expectation is zero.
    pub(super) fn noise(&self, draws: &Draws, potentials: &Extended) -> f64 {
        let part = |slot: usize, value: &(dyn Fn(usize) -> f64 + Sync)| {
            let (cloud, drawn) = (&self.clouds[slot], draws.of(slot));
            let mean: f64 = drawn.iter().map(|&i| value(i)).sum::<f64>() / drawn.len() as f64;
            cloud.mass * (mean - cloud.mean(value))
        };
        let Extended { f, g } = potentials;
        let [x, y] = &self.clouds;
        if self.is_self {
            // Its own entry of the plan is known for each point.
            let own = |i: usize| x.mass * (2.0 * f[i] + x.weights[i].ln()).exp();
            return part(0, &|i| 2.0 * x.worth(i, f[i]) + own(i));
        }
        part(0, &|i| x.worth(i, f[i])) + part(1, &|j| y.worth(j, g[j]))
    }
}

/// Potentials at all points, in units of epsilon, relative to the weights and in the coordinates of the kernel.
#[derive(Debug, Clone)]
pub(super) struct Extended {
    pub(super) f: Vec<f64>,
    pub(super) g: Vec<f64>,
}

impl Extended {
    /// The mean of some.
    pub(super) fn mean(all: &[Extended]) -> Self {
        let count = all.len() as f64;
        let mean = |of: fn(&Extended) -> &[f64]| {
            let mut out: Vec<f64> = Vec::new();
            for part in all.iter().map(of) {
                out.resize(part.len(), 0.0);
                out.iter_mut().zip(part).for_each(|(out, f)| *out += f / count);
            }
            out
        };
        Extended { f: mean(|e| &e.f), g: mean(|e| &e.g) }
    }

    /// This mean of `count` potentials, without one of them.
    pub(super) fn without(&self, one: &Extended, count: usize) -> Self {
        let count = count as f64;
        let rest = |mean: &[f64], one: &[f64]| {
            let left = |(mean, one): (&f64, &f64)| mean + (mean - one) / (count - 1.0);
            mean.iter().zip(one).map(left).collect()
        };
        Extended { f: rest(&self.f, &one.f), g: rest(&self.g, &one.g) }
    }
}
