//! A first solve on a lattice with few points that stand for many.
//!
//! Messages are numbers at the nodes, and points that are close to each other send nearly the same. So where there are
//! many points to a node, their means in small cubes find the messages first, in a fraction of the time of an iteration,
//! and the solve of all points starts from these. Nothing else depends on them.

use super::Task;
use crate::design::Lattice;
use crate::error::Result;
use crate::kernel::{Cells, Factored, FactoredSelf, Heard, Separable};
use crate::measure::Points;
use crate::options::Algorithm;
use crate::simd::Float;
use crate::sinkhorn::{self, Next, Progress, Run};
use crate::unbalanced::Goal;

/// How far the means are worth an iteration.
const TOLERANCE: f64 = 1e-3;
const MOST_ITERATIONS: usize = 100;

/// A cloud that may be gathered.
pub(super) struct Crowd<'c> {
    pub(super) points: &'c Points<'c>,
    pub(super) weights: &'c [f64],
    pub(super) cells: &'c Cells,
    /// The weights in the order of the cells.
    pub(super) sorted: &'c [f64],
}

/// Points in the order of cells of their own.
struct Few<'p> {
    cells: Cells,
    points: Points<'p>,
    weights: Vec<f64>,
}

impl<'p> Few<'p> {
    fn new(points: Points<'p>, weights: &[f64], lattice: &Lattice) -> Self {
        let cells = Cells::new(&points, lattice);
        let weights = cells.sorted(weights);
        Few { cells, points, weights }
    }

    fn side<'s, T: Float>(&'s self, lattice: &'s Lattice, cutoff: f64) -> Separable<'s, T> {
        Separable::new(&self.points, lattice, &self.cells, cutoff)
    }

    /// `u = a`: the plan of a constant cost.
    fn start(&self) -> Vec<f64> {
        self.weights.iter().map(|a| a.ln()).collect()
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
    let gathered: Vec<_> =
        crowds.iter().map(|c| c.cells.gathered(c.points, c.sorted, lattice)).collect();
    if gathered.iter().all(Option::is_none) {
        return None;
    }
    let few: Vec<Few<'_>> = gathered
        .into_iter()
        .zip(crowds)
        .map(|(gathered, crowd)| {
            let (points, weights) =
                gathered.unwrap_or_else(|| (crowd.points.borrowed(), crowd.weights.to_vec()));
            Few::new(points, &weights, lattice)
        })
        .collect();
    let run = Run {
        tolerance: task.run.tolerance.max(TOLERANCE),
        max_iterations: task.run.max_iterations.min(MOST_ITERATIONS),
        ..task.run
    };
    exchanged::<T>(lattice, cutoff, &few, run).ok()
}

fn exchanged<T: Float>(lattice: &Lattice, cutoff: f64, few: &[Few<'_>], run: Run) -> Result<Heard> {
    let mut silent = |_: &mut Progress<'_>| Next::Continue;
    let (x, y) = (&few[0], few.last().expect("one or two"));
    let goal = Goal { a: &x.weights, b: &y.weights, unbalanced: None };
    let (side_x, start) = (x.side::<T>(lattice, cutoff), x.start());
    if few.len() == 1 {
        let mut kernel = FactoredSelf::new(side_x);
        sinkhorn::solve_self(&mut kernel, goal, Some(&start), run, &mut silent)?;
        return Ok(kernel.heard());
    }
    let mut kernel = Factored::new(side_x, y.side::<T>(lattice, cutoff));
    sinkhorn::solve(&mut kernel, goal, Some(&start), run, &mut silent)?;
    Ok(kernel.heard())
}
