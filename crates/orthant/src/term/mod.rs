//! The kernel of a term: everything that solves, plans, maps and derivatives ask of it.
//!
//! A term has a [`Site`], the two measures in the coordinates in which it is solved, and a [`TermKernel`] on it:
//!
//! | kernel | what it is | file |
//! |---|---|---|
//! | exact | the kernel of the cost, all pairs | `exact.rs` |
//! | features | products of positive features, stored or over all pairs | `features.rs` |
//! | lattice | features on a lattice, as products over the axes | `lattice.rs` |
//! | Nystrom | products of signed features | `nystrom.rs` |
//! | sampled | the kernel of the cost, between samples of the clouds | `sampled/` |
//!
//! Nobody outside of these files asks which one it is. A solve ends with a [`Scaling`], and both together are the
//! [`TermPlan`]: entries, sums, samples, conditional means and derivatives of the plan.

mod derivative;
mod exact;
mod features;
mod gathered;
pub(crate) mod gauged;
mod lattice;
pub(crate) mod lattices;
mod nystrom;
mod pairwise;
mod plan;
mod polish;
mod sampled;
mod site;
pub(crate) mod thinned;
mod view;

pub(crate) use derivative::Operand;
pub(crate) use exact::ExactKernel;
pub(crate) use features::{FeatureKernel, FeatureSource, Form};
pub(crate) use lattice::LatticeKernel;
pub(crate) use nystrom::NystromKernel;
pub(crate) use pairwise::Pairwise;
pub(crate) use plan::{Scaling, TermPlan};
pub(crate) use sampled::{Drawn, SampledKernel};
pub(crate) use site::{PairCost, Site, Space};
pub(crate) use view::{At, Partners, Seat, View};

use std::fmt;

use crate::anchors::Lattice;
use crate::comm::Span;
use crate::control::{Clock, Observer};
use crate::error::Result;
use crate::features::{Affine, lattice_map};
use crate::kernel::{Builds, Kernel};
use crate::measure::Points;
use crate::results::Sampling;
use crate::rows::LogRows;
use crate::sampling::Pairs;
use crate::sampling::certificate::Bounds;
use crate::sinkhorn::unbalanced::{Dual, Goal, Unbalanced};
use crate::sinkhorn::{self, Outcome, Run};
use crate::words::{Part, Side, Term};

/// The kernel of a term. See the [module](self).
///
/// `state` is what a solve left of the kernel. Points count from zero in the part of the cloud that is asked for.
pub(crate) trait TermKernel: fmt::Debug + Send + Sync {
    fn site(&self) -> &Site<'_>;

    /// Number of features, of landmarks, or of columns of a kernel without any.
    fn rank(&self) -> usize;

    /// Whether it is the kernel of the cost. Costs that features define are what these say.
    fn is_exact(&self) -> bool;

    /// Whether it is right at new points wherever they are. Features are made for pairs of the clouds.
    fn reaches_everywhere(&self) -> bool {
        self.is_exact()
    }

    /// Solves the term.
    fn solve(&self, task: &mut Task<'_>, work: &mut Work<'_>) -> Result<Solved>;

    /// What Sinkhorn's loop iterates.
    fn iterated(&self) -> Box<dyn Kernel + '_>;

    /// Part of the mass that what is iterated may leave out: see [`Kernel::settle`].
    fn leave_out(&self) -> f64 {
        0.0
    }

    /// The kernel as one of features that solves store, and that may be kept from one solve to the next.
    fn stored_features(&self) -> Option<&FeatureKernel<'_>> {
        None
    }

    /// A kernel near the exact one that takes linear time, and its relative error: see [`crate::sinkhorn::polish`].
    fn near(&self) -> Option<(Box<dyn Kernel + '_>, f64)> {
        None
    }

    /// Numbers that solves store, for clouds of these sizes.
    fn stored_numbers(&self, sizes: [f64; 2]) -> f64;

    /// Rows of the kernel of the first cloud of the term, to be stored: its features, or, `true`, the entries themselves.
    /// None of kernels that are better not stored.
    fn rows(&self) -> Option<(Box<dyn LogRows + '_>, bool)>;

    /// `log sum_j k(x, y_j) v_j` at some points of a cloud, with the potential of the opposite one.
    fn log_sums(&self, state: &State, cloud: Side, part: Part, g: &[f64]) -> Result<Vec<f64>>;

    /// The kernel between the supports, pair by pair.
    fn pairwise<'a>(&'a self, state: &'a State) -> Pairwise<'a>;

    /// A pair of the plan for each three numbers between 0 and 1.
    fn sample(&self, scaling: &Scaling, draws: &[[f64; 3]]) -> Result<Vec<[usize; 2]>>;

    /// Whether the kernel is defined at new points of a cloud, which are in the coordinates of the user.
    fn check_new(&self, _cloud: Side, _points: &Points<'_>) -> Result<()> {
        Ok(())
    }

    /// What points of a cloud see of the opposite one, of potential `g`: sums, and means of columns of values.
    fn view(
        &self,
        state: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        columns: &[Vec<f64>],
    ) -> Result<View>;

    /// The largest partners of points of a cloud in the support of the opposite one, with their probabilities.
    fn partners(
        &self,
        state: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        count: usize,
    ) -> Result<Vec<Partners>>;

    /// What the rows of [`TermKernel::operand`] are to be multiplied with, in place of the scaling, where these rows are of
    /// a part of the points only.
    fn row_scaling(&self, _: &Scaling, _slot: usize) -> Option<RowScaling> {
        None
    }

    /// What stands between a cloud and the opposite one, as derivatives see it.
    fn operand<'a>(&'a self, state: &'a State, cloud: Side) -> Result<Operand<'a>>;

    /// The kernel on another site with the same coordinates: anchors and nodes stay where they are.
    fn on<'q>(&'q self, site: Site<'q>) -> Result<Box<dyn TermKernel + 'q>>;

    /// The kernel on another site, with anchors and nodes as they would be for an epsilon that is `ratio` times as large.
    #[cfg(test)]
    fn scaled_on<'q>(&self, site: Site<'q>, ratio: f64) -> Box<dyn TermKernel + 'q>;
}

/// See [`TermKernel::row_scaling`].
pub(crate) struct RowScaling {
    /// Logarithms.
    pub(crate) logs: Vec<f64>,
    /// Mass that points have beside their rows, which does not move: that of points with themselves.
    pub(crate) own: Vec<f64>,
}

/// What a solve needs beside the kernel and its task.
pub(crate) struct Work<'w> {
    pub(crate) clock: &'w Clock,
    pub(crate) observer: &'w mut dyn Observer,
    /// Whether values are those in the middle of what samples of the plan say: with a certificate, so that a value is in
    /// its interval. (That of features alone need not be: the interval is where the exact kernel is.)
    pub(crate) centred: bool,
}

/// A solve of a term.
pub(crate) struct Task<'t> {
    /// Logarithms of the first potential to start from.
    pub(crate) start: Vec<f64>,
    /// Whether that is where solves start that know nothing.
    pub(crate) flat: bool,
    /// What solved the term before with features, and the potential that it found in its own coordinates.
    pub(crate) rough: Option<(&'t (dyn TermKernel + 't), Vec<f64>)>,
    /// The weights of the two supports.
    pub(crate) weights: [&'t [f64]; 2],
    /// Their points, among those of all processes.
    pub(crate) spans: [&'t Span; 2],
    /// Where marginals are relaxed.
    pub(crate) unbalanced: Option<Unbalanced>,
    pub(crate) run: Run,
}

/// What the potentials of a task say.
pub(crate) struct Values {
    pub(crate) value: f64,
    pub(crate) value_kl: f64,
    pub(crate) mass: f64,
    /// To be added to the logarithms of the potentials.
    pub(crate) shifts: [f64; 2],
    /// L1 distances of the marginals from the weights.
    pub(crate) gaps: [f64; 2],
}

/// How far the value is from that of the exact kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelError {
    /// At most this, in units of the cost.
    pub(crate) bound: Option<f64>,
    /// The same from samples of the plan, as logarithms of a constant factor of the kernel.
    pub(crate) sampled: Option<Bounds>,
    /// Of sums in the precision of the kernel.
    pub(crate) rounding: f64,
    /// Whether the kernel is that of the cost: its iterations are all that counts.
    pub(crate) exact: bool,
    /// Whether iterations have nothing to do with it.
    pub(crate) settled: bool,
}

impl KernelError {
    /// Of a kernel of features.
    fn of_features(bound: Option<f64>, sampled: Option<Bounds>, rounding: f64) -> Self {
        KernelError { bound, sampled, rounding, exact: false, settled: false }
    }
}

/// What the kernel of a term leaves after a solve.
pub(crate) struct Solved {
    pub(crate) outcome: Outcome,
    pub(crate) builds: Builds,
    /// In the coordinates of the term.
    pub(crate) transport_cost: Option<f64>,
    pub(crate) error: KernelError,
    pub(crate) rank: usize,
    pub(crate) state: State,
    /// Pairs of the plan, if any were drawn.
    pub(crate) pairs: Pairs,
    /// What the clouds last sent over stored features.
    pub(crate) messages: Vec<Vec<f64>>,
    /// What was sampled, if the measures were.
    pub(crate) sampling: Option<Sampling>,
}

/// What a solve changed of its kernel.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct State {
    /// The potentials are those of a kernel that is smaller by this, as a logarithm.
    pub(crate) shift: f64,
    /// The lattice that it ended with.
    pub(crate) lattice: Option<Lattice>,
    /// What was drawn of the clouds of the term, if they were sampled; of one with itself, one.
    drawn: Vec<Drawn>,
    /// Its nodes one by one, if they are not all of a box.
    #[cfg_attr(feature = "serde", serde(skip))]
    listed: Option<Affine>,
}

impl State {
    /// With a lattice.
    pub(crate) fn of_lattice(lattice: Lattice) -> Self {
        let listed = lattice.kept().is_some().then(|| lattice_map(&lattice));
        State { lattice: Some(lattice), listed, ..State::default() }
    }
}

impl Task<'_> {
    pub(crate) fn is_self(&self) -> bool {
        self.run.term != Term::Cross
    }

    /// The marginals that the plan should have.
    pub(crate) fn goal(&self) -> Goal<'_> {
        let [a, b] = self.weights;
        Goal { a, b, spans: self.spans, unbalanced: self.unbalanced.as_ref() }
    }

    /// Mass of the plan that the kernel holds: 1 for cross terms, and at convergence.
    pub(crate) fn mass(&self, outcome: &Outcome) -> f64 {
        if self.is_self() || self.unbalanced.is_some() { outcome.x.log_mass.exp() } else { 1.0 }
    }

    pub(crate) fn values(&self, outcome: &Outcome) -> Values {
        let Run { epsilon, offset, .. } = self.run;
        let Some(unbalanced) = &self.unbalanced else {
            let prices = |side: usize, f: &[f64]| {
                let a = self.weights[side];
                self.spans[side].sums(|i| [a[i] * f[i], a[i] * (f[i] - a[i].ln())])
            };
            let ([x, kl_x], [y, kl_y]) = (prices(0, &outcome.f), prices(1, &outcome.g));
            return Values {
                value: epsilon * (x + y) + offset,
                value_kl: epsilon * (kl_x + kl_y) + offset,
                mass: 1.0,
                shifts: [0.0; 2],
                gaps: [outcome.x.error, outcome.y.error],
            };
        };
        let Dual { value, mass, shifts, .. } = unbalanced.dual(&outcome.f, &outcome.g, 0.0);
        let sums = [&outcome.x.sums, &outcome.y.sums];
        // eps sum P log P instead of eps KL(P | a b^T).
        let logs: f64 = [0, 1].map(|side| unbalanced.log_weights(side, sums[side])).iter().sum();
        Values {
            value: value + epsilon * (mass * (logs + 1.0) - unbalanced.mass_product()),
            value_kl: value,
            mass,
            shifts,
            gaps: [0, 1].map(|side| unbalanced.gap(side, sums[side], mass)),
        }
    }

    /// How far the value moves when the logarithms of all entries of the kernel move by at most `logs`.
    pub(crate) fn bound(&self, outcome: &Outcome, logs: f64) -> f64 {
        match &self.unbalanced {
            None => self.run.epsilon * logs,
            Some(unbalanced) => unbalanced.dual(&outcome.f, &outcome.g, 0.0).bound(logs),
        }
    }

    /// Turns `-eps log K v` into the potential of a relaxed marginal, where the weight is zero.
    pub(crate) fn relax(&self, side: usize, potential: &mut [f64]) {
        if let Some(unbalanced) = &self.unbalanced {
            let tau = unbalanced.tau(side);
            for p in potential {
                *p *= tau;
            }
        }
    }

    fn solve(&self, kernel: &mut dyn Kernel, observer: &mut dyn Observer) -> Result<Outcome> {
        sinkhorn::solve(kernel, self.goal(), Some(&self.start), self.run, observer)
    }
}

impl dyn TermKernel + '_ {
    /// `-log sum_j k(x, y_j) v_j` at the points of weight zero, with the potential of the opposite cloud.
    pub(crate) fn outside(&self, solved: &Solved, cloud: Side, g: &[f64]) -> Result<Vec<f64>> {
        let site = self.site();
        if site.measure(cloud).outside().is_none() {
            return Ok(Vec::new());
        }
        let sums = self
            .log_sums(&solved.state, cloud, Part::Outside, g)
            .map_err(|error| sinkhorn::at_iteration(error, solved.outcome.iterations))?;
        Ok(sums.into_iter().map(|s| solved.state.shift - s).collect())
    }
}
