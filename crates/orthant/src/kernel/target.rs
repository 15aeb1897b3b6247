//! What a half-iteration aims at: a marginal that is given, or one that may differ from it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::comm::Span;

/// The marginal that one side of a plan should have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// Weights of the points, of sum 1.
    pub(crate) weights: &'a [f64],
    /// How the marginal may differ from them, if it may.
    pub(crate) relaxed: Option<Relaxed<'a>>,
}

/// A marginal that costs `rho` times its divergence from the weights: see [`crate::sinkhorn::unbalanced`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relaxed<'a> {
    /// `1 - tau = eps / (rho + eps)`, between 0 and 1.
    pub(crate) slack: f64,
    /// `w`: the update is `log u_i = w_i - tau s_i`, up to a constant, with `s = log K v`.
    pub(crate) logs: &'a [f64],
}

impl<'a> Target<'a> {
    /// A marginal that is given.
    pub(crate) fn fixed(weights: &'a [f64]) -> Self {
        Target { weights, relaxed: None }
    }
}

/// A target in the order in which a side keeps its points. See [`Arranged`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ordered<'a>(Target<'a>);

impl<'a> Ordered<'a> {
    pub(super) fn get(self) -> Target<'a> {
        self.0
    }
}

/// A target, kept in the order of a side: what [`HalfKernel::arrange`](super::HalfKernel::arrange) returns.
///
/// Sides may keep their points in an order of their own, and a target is asked for in every pass, so it is put in order
/// once.
#[derive(Debug, Clone)]
pub(crate) struct Arranged<'a> {
    /// The number of the point at each place; nothing if that is its place.
    order: Option<Arc<[u32]>>,
    weights: Cow<'a, [f64]>,
    relaxed: Option<(f64, Cow<'a, [f64]>)>,
}

impl<'a> Arranged<'a> {
    /// In the order of the points.
    pub(crate) fn same(target: Target<'a>) -> Self {
        Arranged {
            order: None,
            weights: target.weights.into(),
            relaxed: target.relaxed.map(|r| (r.slack, r.logs.into())),
        }
    }

    /// In this order.
    pub(super) fn sorted(target: Target<'_>, order: &Arc<[u32]>) -> Self {
        let mut arranged =
            Arranged { order: Some(order.clone()), weights: Cow::default(), relaxed: None };
        arranged.set(target);
        arranged
    }

    pub(crate) fn ordered(&self) -> Ordered<'_> {
        let relaxed = self.relaxed.as_ref().map(|(slack, logs)| Relaxed { slack: *slack, logs });
        Ordered(Target { weights: &self.weights, relaxed })
    }

    pub(crate) fn into_owned(self) -> Arranged<'static> {
        Arranged {
            order: self.order,
            weights: self.weights.into_owned().into(),
            relaxed: self.relaxed.map(|(slack, logs)| (slack, logs.into_owned().into())),
        }
    }

    /// Another target for the same points, in the place of this one.
    pub(crate) fn set(&mut self, target: Target<'_>) {
        let order = self.order.as_deref();
        fill(self.weights.to_mut(), target.weights, order);
        match target.relaxed {
            None => self.relaxed = None,
            Some(relaxed) => {
                let (slack, logs) = self.relaxed.get_or_insert_default();
                *slack = relaxed.slack;
                fill(logs.to_mut(), relaxed.logs, order);
            }
        }
    }
}

/// Values of the points, in an order. There may be none.
fn fill(out: &mut Vec<f64>, values: &[f64], order: Option<&[u32]>) {
    out.clear();
    match order {
        Some(order) if !values.is_empty() => {
            out.extend(order.iter().map(|&i| values[i as usize]));
        }
        _ => out.extend_from_slice(values),
    }
}

impl Relaxed<'_> {
    /// Logarithm of the marginal of point `i` after an update, up to a constant: `w_i + (1 - tau) s_i`.
    pub(crate) fn log_marginal(&self, i: usize, s: f64) -> f64 {
        self.logs[i] + self.slack * s
    }

    /// Logarithm of the sum of these over the points, which are those of the span.
    pub(crate) fn log_mass(&self, s: &[f64], span: &Span) -> f64 {
        span.log_sum(|i| self.log_marginal(i, s[i]))
    }
}

/// What a pass over relaxed rows adds up, beside its message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// L1 distance of the old marginal from the new one.
    pub(crate) error: f64,
    /// Mass of the new marginal.
    pub(crate) mass: f64,
    /// Mass of the plan that was summed to the message: the same, but for averages.
    pub(crate) sent: f64,
}

/// How a relaxed update goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) relaxed: Relaxed<'a>,
    /// The constant of the update: such that the mass is near 1.
    pub(crate) level: f64,
    /// Take the mean of the old and the new logarithms.
    pub(crate) average: bool,
}

impl Step<'_> {
    /// One row: its old factor (as a logarithm), the logarithm of its sum without scale and the scale.
    /// Returns the new factor and its logarithm, both without scale.
    #[inline(always)]
    pub(crate) fn row(
        &self,
        i: usize,
        old: f64,
        sum: f64,
        scale: f64,
        tally: &mut Tally,
    ) -> (f64, f64) {
        let log = sum.ln();
        let marginal = self.relaxed.log_marginal(i, scale + log) + self.level;
        let (was, is) = (old.exp() * sum, marginal.exp());
        let (factor, new) = if self.average {
            let new = 0.5 * (old + marginal - log);
            (new.exp(), new)
        } else {
            (is / sum, marginal - log)
        };
        tally.error += (was - is).abs();
        tally.mass += is;
        tally.sent += factor * sum;
        (factor, new)
    }

    /// Which part of a change of the constant the new logarithms take.
    pub(crate) fn share(&self) -> f64 {
        if self.average { 0.5 } else { 1.0 }
    }
}

impl Tally {
    /// Numbers that a chunk of rows keeps.
    pub(crate) const LEN: usize = 3;

    pub(crate) fn store(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.error, self.mass, self.sent]);
    }

    pub(crate) fn load(numbers: &[f64]) -> Self {
        Tally { error: numbers[0], mass: numbers[1], sent: numbers[2] }
    }

    /// The sum of those of all chunks.
    pub(crate) fn total(chunks: &[f64], span: &Span) -> Self {
        Tally::load(&span.sum_few::<{ Tally::LEN }>(chunks))
    }

    /// The logarithm of the mass of the new marginal, if the message that goes with it lost nothing to
    /// the range of the numbers.
    pub(crate) fn log_mass(&self, range: f64) -> Option<f64> {
        let near = |mass: f64| mass.ln().abs() <= range;
        (near(self.mass) && near(self.sent)).then(|| self.mass.ln())
    }

    /// The error, where distributions are compared: 2 at most.
    pub(crate) fn error(&self) -> f64 {
        self.error.min(2.0)
    }
}
