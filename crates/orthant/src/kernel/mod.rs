//! The operators that Sinkhorn iterates.
//!
//! A kernel matrix is made of *sides*. A [`HalfKernel`] holds, for the points of one cloud, rows of
//! logarithms `L_ik`, and does one half of an iteration in a single pass:
//!
//! ```text
//! u_i = a_i / sum_k exp(L_ik + z_k),      y_k = log sum_i u_i exp(L_ik)
//! ```
//!
//! `z` is the *message* that comes from the other cloud, `y` the one that goes back. With features
//! on both sides ([`Factored`]) a message has `r` numbers; for an exact kernel ([`Exact`]) the rows
//! are `log k(x_i, y_j)` over the points `j` themselves and a message is a potential. Stored or
//! recomputed rows, single or double precision are the business of the side alone.
//!
//! Where a marginal is relaxed ([`Target::relaxed`]), `a_i` becomes `exp(w_i + (1 - tau) s_i)` with `s_i` the
//! logarithm of the sum, divided by its sum over the points: plans have mass 1 here, whatever mass
//! they should have ([`crate::sinkhorn::unbalanced`] knows).

mod draw;
mod exact;
mod factored;
mod logs;
mod nystrom;
mod pass;
mod pool;
mod recomputed;
mod separable;
mod stored;
mod target;
mod tiles;

pub(crate) use draw::{Conditional, DRAW_ROUNDS, Open, Waiting};
pub(crate) use exact::{AllPairs, exact};
pub(crate) use factored::{
    CoarseMessages, Factored, FactoredSelf, LatticePlan, Moments, StoredPlan,
};
pub(crate) use logs::{LogPass, Nearly};
pub(crate) use nystrom::{Factors, PlanSide};
pub(crate) use pass::Pass;
pub(crate) use recomputed::Recomputed;
pub(crate) use separable::Separable;
pub(crate) use stored::{ReferenceMessage, Stored};
pub(crate) use target::{Arranged, Ordered, Relaxed, Target};

use std::time::Duration;

use crate::comm::Span;
use crate::error::Result;

/// Sums of mass below this may have lost terms to the range of the numbers.
const LOST: f64 = 1e-280;

/// One cloud's half of a kernel. See the [module](self).
pub(crate) trait HalfKernel: Send {
    /// Its points, among those of all processes.
    fn span(&self) -> &Span;

    fn rows(&self) -> usize {
        self.span().len()
    }

    fn rank(&self) -> usize;

    /// A target in the order in which this side keeps its points, as updates take it. Everything else is in the order
    /// of the points.
    fn arrange<'t>(&self, target: Target<'t>) -> Arranged<'t> {
        Arranged::same(target)
    }

    /// Whether the stored rows are too far from what the message `z` needs.
    fn needs_rebuild(&mut self, z: &[f64]) -> bool;

    /// Tells, before a message is completed and the rows are stored anew around it, which of its
    /// entries cannot be told from zero: these carry no mass that could be missed.
    fn note_absent(&mut self, z: &[f64]);

    /// Stores the rows anew around the message `z`, which must be complete.
    fn rebuild(&mut self, z: &[f64]) -> Result<()>;

    /// `u_i <- a_i / sum_k exp(L_ik + z_k)` and the message `y` of the new `u`; returns the L1 error
    /// `sum_i |u_i sum_k exp(L_ik + z_k) - a_i|` of the `u` before.
    ///
    /// An entry of `y` that cannot be told from zero is minus infinity: see [`HalfKernel::complete`].
    fn update(&mut self, z: &[f64], a: Ordered<'_>, y: &mut [f64]) -> Result<f64>;

    /// The same with the geometric mean of the old and the new `u`, for symmetric problems.
    fn average(&mut self, z: &[f64], a: Ordered<'_>, y: &mut [f64]) -> Result<f64>;

    /// `out_i = log sum_k exp(L_ik + z_k)`.
    fn log_apply(&mut self, z: &[f64], out: &mut [f64]) -> Result<()>;

    /// The same, and the message `y` of `u` as it is, in one pass. The plan of `u` and `z` may have any mass.
    ///
    /// As in [`HalfKernel::update`], an entry of `y` that cannot be told from zero is minus infinity. See [`HalfKernel::depth`].
    fn exchange(&mut self, z: &[f64], out: &mut [f64], y: &mut [f64]) -> Result<()>;

    /// How faint the plan may be at a point, as minus the logarithm of its part of what the point should have, before
    /// what [`HalfKernel::exchange`] leaves out could matter to the point. [`HalfKernel::message`] leaves out nothing.
    fn depth(&self) -> f64;

    /// The message of the potential `f`, exactly.
    fn message(&mut self, f: &[f64], y: &mut [f64]);

    /// The message of the potential `f`, which `u` has been set to, to start from. It need not be exact: as in
    /// [`HalfKernel::update`], an entry that cannot be told from zero may be minus infinity.
    fn first_message(&mut self, f: &[f64], y: &mut [f64]) {
        self.message(f, y);
    }

    /// Fills in, exactly, the entries of the message `y` that are minus infinity.
    fn complete(&mut self, y: &mut [f64]);

    /// The message of `u` over all features, also those that [`HalfKernel::update`] leaves out as too faint.
    /// Returns false, and does nothing, if it leaves out none.
    fn whole_message(&mut self, _: &mut [f64]) -> bool {
        false
    }

    /// Sets `log u`.
    fn set_potential(&mut self, f: &[f64]);

    /// Writes `log u`.
    fn potential(&self, f: &mut [f64]);

    /// How often rows were stored, and how long that took.
    fn builds(&self) -> Builds;
}

/// Coordinates of a point, written to a slice.
pub(crate) type Coordinates<'a> = dyn Fn(usize, &mut [f64]) + Sync + 'a;

/// A side that can sum values of its points under each feature of the plan.
pub(crate) trait Mixed: HalfKernel {
    /// `sum_i u_i exp(L_ik + r_k) value_ic` for every feature `k` and column `c` of some values of the
    /// points, with `r` the [`Mixed::reference`]: `columns` rows, [`Mixed::stride`] apart.
    fn contract(&mut self, columns: usize, value: &Coordinates<'_>) -> Vec<f64>;

    /// A recent message.
    fn reference(&self) -> &[f64];

    fn stride(&self) -> usize;
}

/// A side whose rows are the logarithms of an exact kernel.
pub(crate) trait ExactHalf: HalfKernel {
    /// `sum_ik u_i exp(L_ik + z_k) L_ik`.
    fn expected_log(&mut self, z: &[f64]) -> f64;
}

/// The work of storing features.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Builds {
    pub(crate) count: usize,
    pub(crate) time: Duration,
}

impl std::ops::Add for Builds {
    type Output = Builds;
    fn add(self, other: Builds) -> Builds {
        Builds { count: self.count + other.count, time: self.time + other.time }
    }
}

/// What a plan's row or column sums look like.
#[derive(Debug, Clone)]
pub(crate) struct Marginal {
    /// The sums, of the plan divided by its mass.
    pub(crate) sums: Vec<f64>,
    /// L1 distance from what an update would make of it (the weights, if these are given), of the plan
    /// divided by its mass.
    pub(crate) error: f64,
    /// Logarithm of the mass of the plan.
    pub(crate) log_mass: f64,
}

impl Marginal {
    /// Of the plan with potential `f` (logarithms) and `log (K v)_i = s_i` at the points of a span.
    pub(crate) fn of(f: &[f64], s: &[f64], a: Target<'_>, span: &Span) -> Self {
        let log_mass = span.log_sum(|i| f[i] + s[i]);
        let sums: Vec<f64> = f.iter().zip(s).map(|(f, s)| (f + s - log_mass).exp()).collect();
        let error = match a.relaxed {
            None => span.sum(|i| (sums[i] - a.weights[i]).abs()),
            Some(relaxed) => {
                let mass = relaxed.log_mass(s, span);
                span.sum(|i| (sums[i] - (relaxed.log_marginal(i, s[i]) - mass).exp()).abs())
            }
        };
        Marginal { sums, error, log_mass }
    }
}

/// A positive kernel matrix `K` with scalings `u` and `v`, between two clouds or of a cloud with itself.
///
/// The potentials are logarithms here: `f = log u = alpha / eps`, `g = log v = beta / eps`.
///
/// Of a cloud with itself `K` is symmetric and `u` is `v`: an iteration is the averaged update
/// `u <- sqrt(u * (a / K u))`, which is [`Kernel::update_y`], and [`Kernel::update_x`] does nothing. Such a kernel is not
/// [`Kernel::between`] two clouds.
pub(crate) trait Kernel: Send {
    /// The points of both clouds, among those of all processes.
    fn spans(&self) -> [&Span; 2];

    fn rows(&self) -> usize {
        self.spans()[0].len()
    }

    fn columns(&self) -> usize {
        self.spans()[1].len()
    }

    /// What both marginals should be, as updates take it: see [`HalfKernel::arrange`].
    fn arrange<'t>(&self, targets: [Target<'t>; 2]) -> [Arranged<'t>; 2] {
        targets.map(Arranged::same)
    }

    /// Sets `u` (by its logarithm).
    fn start(&mut self, f: &[f64]) -> Result<()>;

    /// `v <- b / K^T u`; returns the error `||v * K^T u - b||_1` of the `v` before.
    fn update_y(&mut self, b: Ordered<'_>) -> Result<f64>;

    /// `u <- a / K v`; returns the error `||u * K v - a||_1` of the `u` before.
    fn update_x(&mut self, a: Ordered<'_>) -> Result<f64>;

    /// One iteration without anything that was left out as too faint; returns the error of the `v` before.
    /// Where marginals are relaxed, points can be so faint that no message reaches them: these get
    /// their potentials here.
    fn refresh(&mut self, _a: Ordered<'_>, _b: Ordered<'_>) -> Result<f64> {
        Ok(0.0)
    }

    /// The message that [`Kernel::update_x`] takes from the second cloud and [`Kernel::update_y`] makes anew, of
    /// which an iteration is a function, and the one in the other direction. Their sum is the logarithm of the
    /// mass of the plan, feature by feature. Empty for kernels whose messages are no logarithms.
    fn messages(&mut self) -> (&mut [f64], &[f64]) {
        (&mut [], &[])
    }

    /// Goes back to an earlier message, whatever `v` is now.
    fn go_back(&mut self, _z: &[f64]) {}

    /// The kernel as one between two clouds, unless it is that of a cloud with itself.
    fn between(&mut self) -> Option<&mut dyn Between> {
        None
    }

    /// Writes `log u` and `log v`.
    fn potentials(&self, f: &mut [f64], g: &mut [f64]);

    /// What part of the plan's mass is in features that were left out as too faint (as the logarithm
    /// of the whole over the rest). If that is more than `allowed`, they are taken in again.
    fn settle(&mut self, _allowed: f64) -> Result<f64> {
        Ok(0.0)
    }

    /// The row and the column marginal of the plan.
    fn marginals(&mut self, a: Target<'_>, b: Target<'_>) -> Result<[Marginal; 2]>;

    fn builds(&self) -> Builds;
}

/// A kernel between two clouds.
pub(crate) trait Between: Kernel {
    /// `log K e^g` and `log K^T e^f` of any potentials. What `u` and `v` are afterwards is the kernel's business:
    /// [`Kernel::start`] comes before the next update.
    ///
    /// Quick products are right where potentials have moved by less than half of [`Between::depth`] since the last
    /// `whole` ones, and no point is deeper than that.
    fn products(
        &mut self,
        f: &[f64],
        g: &[f64],
        whole: bool,
        rows: &mut [f64],
        columns: &mut [f64],
    ) -> Result<()>;

    /// See [`HalfKernel::depth`].
    fn depth(&self) -> f64;

    /// `log K^T u`: what the columns get.
    fn column_sums(&mut self, out: &mut [f64]) -> Result<()>;
}
