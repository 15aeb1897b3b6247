//! The plan of a term: its kernel, and the scaling that a solve found.

use super::{State, TermKernel};
use crate::control::Cancel;
use crate::sampling::Pairs;
use crate::sinkhorn::Outcome;
use crate::words::Side;

/// The plan `exp(level) u_i k(x_i, y_j) v_j` of a solve: logarithms of `u` and `v` on the supports, in the coordinates of
/// the term.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Scaling {
    pub(crate) f: Vec<f64>,
    pub(crate) g: Vec<f64>,
    /// Where marginals are relaxed, the mass is in here: it may be too small for a number.
    pub(crate) level: f64,
    /// What the potentials of the solution have beside these.
    pub(super) shifts: [f64; 2],
    /// What the solve changed of the kernel.
    pub(crate) state: State,
    /// What the first cloud and the second send over their features, if that is known; of one with itself, one.
    pub(crate) messages: Vec<Vec<f64>>,
    /// Pairs of an earlier plan that the anchors of the kernel were placed around, if any were.
    pub(crate) fitted: Option<Pairs>,
}

impl Scaling {
    pub(crate) fn new(
        outcome: &Outcome,
        shifts: [f64; 2],
        state: State,
        messages: Vec<Vec<f64>>,
    ) -> Self {
        let (f, g) = (outcome.f.clone(), outcome.g.clone());
        let level = shifts[0] + shifts[1] - state.shift;
        Scaling { f, g, level, shifts, state, messages, fitted: None }
    }

    /// The logarithms of `u` or `v`, of the first cloud of the term or of the second.
    pub(crate) fn potential(&self, slot: usize) -> &[f64] {
        if slot == 0 { &self.f } else { &self.g }
    }

    /// The same, with the mass of the plan.
    pub(crate) fn plan_logs(&self, slot: usize) -> Vec<f64> {
        self.potential(slot).iter().map(|f| f + self.level).collect()
    }
}

/// The plan of a term.
#[derive(Clone, Copy)]
pub(crate) struct TermPlan<'k> {
    pub(crate) kernel: &'k (dyn TermKernel + 'k),
    pub(crate) scaling: &'k Scaling,
}

impl<'k> TermPlan<'k> {
    /// What ends the passes of those who use a plan, long after the solve.
    pub(super) fn cancel(&self) -> &'k Cancel {
        &self.kernel.site().options().cancel
    }

    /// The potential of the cloud opposite to one of a cross term.
    pub(super) fn opposite(&self, cloud: Side) -> &'k [f64] {
        self.scaling.potential(cloud.other() as usize)
    }
}
