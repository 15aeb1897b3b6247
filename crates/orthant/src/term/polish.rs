//! The exact kernel after features: which model of it, and in which coordinates.

use std::time::Instant;

use super::exact::{Held, iterated, solved};
use super::lattice::on_lattice;
use super::{Site, Solved, Task, TermKernel};
use crate::control::Observer;
use crate::error::Result;
use crate::kernel::Builds;
use crate::options::Precision;
use crate::rows::LogRows;
use crate::sinkhorn;
use crate::sinkhorn::polish::{self, Care, Model};
use crate::words::Part;

/// Changes of marginals in single and in double precision, at least.
const LEAST_CHANGE: [f64; 2] = [1e-3, 1e-4];
/// Errors of solves with a lattice that was made for the exact kernel, relative to what is asked of it.
pub(super) const ON_LATTICE: f64 = 1e-3;
/// The same of random features.
pub(super) const OF_FEATURES: f64 = 0.02;

/// Solves, with rows of the exact kernel, what `rough` has solved with features; `potential` is that of the first cloud in
/// the coordinates of `rough`.
pub(super) fn solve(
    rows: Box<dyn LogRows + '_>,
    site: &Site<'_>,
    task: &Task<'_>,
    (rough, potential): (&dyn TermKernel, &[f64]),
    observer: &mut dyn Observer,
) -> Result<Solved> {
    let (goal, run) = (task.goal(), task.run);
    let held = Held::new(false, site);
    let mut kernel = iterated(rows, held, site.is_self());
    let deadline = run.time.and_then(|time| Instant::now().checked_add(time));
    let least = match site.options().precision {
        Precision::F32 => LEAST_CHANGE[0],
        Precision::F64 => LEAST_CHANGE[1],
    };
    let care = |part: f64| Care { part, least, deadline };
    // The best model that is quick enough: a lattice, or the features that there were.
    let lattice = site.near_lattice();
    let [x, y] = site.clouds().map(|cloud| site.points(cloud, Part::Support));
    let ended = if let Some(lattice) = &lattice {
        let near = on_lattice(site, lattice, [&x, &y]);
        let model = Model::new(near, &task.start, task.weights, care(ON_LATTICE)).ok();
        let start = model.as_ref().map(Model::first);
        let start = start.as_ref().unwrap_or(&task.start);
        polish::solve(&mut *kernel, model, goal, start, run, observer)?
    } else {
        let model = rough
            .near()
            .and_then(|(near, part)| Model::new(near, potential, task.weights, care(part)).ok());
        polish::solve(&mut *kernel, model, goal, &task.start, run, observer)?
    };
    let (iterations, stop) = ended;
    let outcome = sinkhorn::outcome(&mut *kernel, goal, iterations, (stop, 0.0))?;
    let log = kernel.expected_log();
    Ok(solved(task, outcome, log, Builds::default(), held))
}
