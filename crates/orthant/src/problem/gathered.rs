//! A first solve on a lattice with few points that stand for many.
//!
//! Messages are numbers at the nodes, and points that are close to each other send nearly the same. So where there are
//! many points to a node, their means in small cubes find the messages first, in a fraction of the time of an iteration,
//! and the solve of all points starts from these. Nothing else depends on them.

use super::Task;
use crate::anchors::Lattice;
use crate::control::{Next, Progress};
use crate::error::Result;
use crate::kernel::{Factored, FactoredSelf, Heard, Separable};
use crate::measure::Points;
use crate::numerics::simd::Float;
use crate::options::Algorithm;
use crate::sinkhorn::unbalanced::Goal;
use crate::sinkhorn::{self, Run};

/// How far the means are worth an iteration.
const TOLERANCE: f64 = 1e-3;
const MOST_ITERATIONS: usize = 100;

/// A cloud that may be gathered: its points and weights, and those that stand for them, if they would be few.
pub(super) struct Crowd<'c> {
    points: &'c Points<'c>,
    weights: &'c [f64],
    gathered: Option<(Points<'static>, Vec<f64>)>,
}

impl<'c> Crowd<'c> {
    pub(super) fn new<T: Float>(
        side: &Separable<'_, T>,
        points: &'c Points<'c>,
        weights: &'c [f64],
    ) -> Self {
        Crowd { points, weights, gathered: side.representatives(points, weights) }
    }

    /// The points to solve with first, and their weights.
    fn few(&self) -> (&Points<'_>, &[f64]) {
        match &self.gathered {
            Some((points, weights)) => (points, weights),
            None => (self.points, self.weights),
        }
    }
}

/// What the gathered clouds send each other in the end, if there is reason to ask; with one cloud, what it sends itself.
///
/// That they come to no end is no reason to fail.
pub(super) fn heard<T: Float>(
    task: &Task,
    lattice: &Lattice,
    cutoff: f64,
    crowds: &[Crowd<'_>],
) -> Option<Heard> {
    if !task.flat || task.unbalanced.is_some() || task.run.algorithm != Algorithm::Auto {
        return None;
    }
    if crowds.iter().all(|crowd| crowd.gathered.is_none()) {
        return None;
    }
    let run = Run {
        tolerance: task.run.tolerance.max(TOLERANCE),
        max_iterations: task.run.max_iterations.min(MOST_ITERATIONS),
        ..task.run
    };
    exchanged::<T>(lattice, cutoff, crowds, run).ok()
}

fn exchanged<T: Float>(
    lattice: &Lattice,
    cutoff: f64,
    crowds: &[Crowd<'_>],
    run: Run,
) -> Result<Heard> {
    let mut silent = |_: &mut Progress<'_>| Next::Continue;
    let (x, a) = crowds[0].few();
    let (y, b) = crowds.last().expect("one or two").few();
    let goal = Goal { a, b, unbalanced: None };
    let side = |points| Separable::<T>::new(points, lattice, cutoff);
    // u = a: the plan of a constant cost.
    let start: Vec<f64> = a.iter().map(|a| a.ln()).collect();
    if crowds.len() == 1 {
        let mut kernel = FactoredSelf::new(side(x));
        sinkhorn::solve_self(&mut kernel, goal, Some(&start), run, &mut silent)?;
        return Ok(kernel.heard());
    }
    let mut kernel = Factored::new(side(x), side(y));
    sinkhorn::solve(&mut kernel, goal, Some(&start), run, &mut silent)?;
    Ok(kernel.heard())
}
