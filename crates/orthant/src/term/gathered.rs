//! A first solve on a lattice with few points that stand for many.
//!
//! Messages are numbers at the nodes, and points that are close to each other send nearly the same. So where there are
//! many points to a node, their means in small cubes find the messages first, in a fraction of the time of an iteration,
//! and the solve of all points starts from these. Nothing else depends on them.

use super::Task;
use crate::anchors::Lattice;
use crate::control::{Next, Progress};
use crate::error::Result;
use crate::kernel::{CoarseMessages, Factored, FactoredSelf, LatticePlan, Separable};
use crate::measure::Points;
use crate::numerics::simd::Float;
use crate::options::Algorithm;
use crate::sinkhorn::unbalanced::Goal;
use crate::sinkhorn::{self, Run};

/// How far the means are worth an iteration.
const TOLERANCE: f64 = 1e-3;
const MOST_ITERATIONS: usize = 100;

/// A cloud that may be gathered.
pub(super) struct DenseCloud<'c, T> {
    pub(super) side: &'c Separable<'c, T>,
    pub(super) points: &'c Points<'c>,
    pub(super) weights: &'c [f64],
}

/// The points to solve with first, and their weights.
type Representatives<'c> = (Points<'c>, Vec<f64>);

/// What the gathered clouds send each other in the end, if there is reason to ask; with one cloud, what it sends itself.
///
/// That they come to no end is no reason to fail.
pub(super) fn coarse_messages<T: Float>(
    task: &Task<'_>,
    lattice: &Lattice,
    cutoff: f64,
    clouds: &[DenseCloud<'_, T>],
) -> Option<CoarseMessages> {
    if !task.flat || task.unbalanced.is_some() || task.run.algorithm != Algorithm::Auto {
        return None;
    }
    let gathered: Vec<_> =
        clouds.iter().map(|c| c.side.representatives(c.points, c.weights)).collect();
    if gathered.iter().all(Option::is_none) {
        return None;
    }
    let few: Vec<Representatives<'_>> = gathered
        .into_iter()
        .zip(clouds)
        .map(|(gathered, crowd)| {
            gathered.unwrap_or_else(|| (crowd.points.borrowed(), crowd.weights.to_vec()))
        })
        .collect();
    let run = Run {
        tolerance: task.run.tolerance.max(TOLERANCE),
        max_iterations: task.run.max_iterations.min(MOST_ITERATIONS),
        ..task.run
    };
    exchanged::<T>(lattice, cutoff, &few, run).ok()
}

fn exchanged<T: Float>(
    lattice: &Lattice,
    cutoff: f64,
    few: &[Representatives<'_>],
    run: Run,
) -> Result<CoarseMessages> {
    let mut silent = |_: &mut Progress<'_>| Next::Continue;
    let ((x, a), (y, b)) = (&few[0], few.last().expect("one or two"));
    let goal = Goal { a, b, spans: [x.span(), y.span()], unbalanced: None };
    let side = |points| Separable::<T>::new(points, lattice, cutoff);
    // u = a: the plan of a constant cost.
    let start: Vec<f64> = a.iter().map(|a| a.ln()).collect();
    let mut kernel: Box<dyn LatticePlan> = if few.len() == 1 {
        Box::new(FactoredSelf::new(side(x)))
    } else {
        Box::new(Factored::new(side(x), side(y)))
    };
    sinkhorn::solve(&mut *kernel, goal, Some(&start), run, &mut silent)?;
    Ok(kernel.into_messages())
}
