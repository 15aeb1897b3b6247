//! The exact kernel after features: which model of it, and in which coordinates.

use std::time::Instant;

use super::stage::{Placement, Stage};
use super::{Problem, Solved, Storage, Task, auto};
use crate::anchors::Lattice;
use crate::control::{Observer, Stop};
use crate::error::{Error, Result};
use crate::kernel::{self, Builds, Factored, FactoredSelf, Kernel, Recomputed, Separable, Stored};
use crate::numerics::simd::Float;
use crate::options::Precision;
use crate::sinkhorn;
use crate::sinkhorn::polish::{self, Care, Model};
use crate::words::{Cloud, Part, Shape, Term};

/// Errors of solves with a model relative to what is asked of it: about those of random features, and of a lattice.
const PARTS: [f64; 2] = [0.02, 1e-3];
/// Changes of marginals in single and in double precision, at least.
const LEAST: [f64; 2] = [1e-3, 1e-4];

/// What is done with a model and the potential to start from, if these are better than those of the features.
type Work<'w> = dyn FnMut(Option<Model<'_>>, Option<Vec<f64>>) -> Result<()> + 'w;

impl Problem<'_> {
    /// Solves, with the exact kernel, what `rough` has solved with features. `potential` is that of the first cloud.
    pub(super) fn polished(
        &self,
        task: &Task,
        rough: &Problem<'_>,
        potential: &[f64],
        observer: &mut dyn Observer,
    ) -> Result<Solved> {
        let (goal, run) = (self.goal(task), task.run);
        let side = Recomputed::new(self.entries(task.term, task.x, Part::Support, task.y));
        let mut kernel = kernel::exact(side, task.is_self());
        let mut ended = (0, Stop::Converged);
        self.with_model(task, rough, potential, &mut |model, start| {
            let start = start.as_ref().unwrap_or(&task.start);
            ended = polish::solve(&mut *kernel, model, goal, start, run, observer)?;
            Ok(())
        })?;
        let (iterations, stop) = ended;
        let outcome = sinkhorn::outcome(&mut *kernel, goal, iterations, (stop, 0.0))?;
        let log = kernel.expected_log();
        drop(kernel);
        Ok(self.solved_exactly(task, outcome, log, Builds::default()))
    }

    /// Calls `work` with the best model of the exact kernel that is quick enough: a lattice, or the features that there
    /// were.
    fn with_model(
        &self,
        task: &Task,
        rough: &Problem<'_>,
        potential: &[f64],
        work: &mut Work<'_>,
    ) -> Result<()> {
        match self.options.precision {
            Precision::F32 => self.with_model_of::<f32>(task, rough, potential, LEAST[0], work),
            Precision::F64 => self.with_model_of::<f64>(task, rough, potential, LEAST[1], work),
        }
    }

    fn with_model_of<T: Float>(
        &self,
        task: &Task,
        rough: &Problem<'_>,
        potential: &[f64],
        least: f64,
        work: &mut Work<'_>,
    ) -> Result<()> {
        let Task { term, x, y, .. } = *task;
        let (a, b) = self.weights(task);
        let deadline = task.run.time.map(|time| Instant::now() + time);
        let care = |part| Care { part, least, deadline };
        let stage = self.stage(term).expect("exact costs are squared Euclidean here");
        let measures = [x, y].map(|cloud| self.measure(cloud));
        let own =
            auto::near_lattice(&auto::TermStage { stage, clouds: [x, y], measures }, self.options);
        if let Some(lattice) = &own {
            return on_lattice::<T>(task, stage, lattice, (a, b), care(PARTS[1]), &mut |model| {
                let start = model.as_mut().map(|model| model.first());
                work(model.take(), start)
            });
        }
        match rough.storage {
            Storage::Factored => {
                let f = rough.logs(term, x, potential)?;
                let side = |cloud| Stored::<T>::new(rough.features(term, cloud, Part::Support));
                let kernel: Box<dyn Kernel> = if task.is_self() {
                    Box::new(FactoredSelf::new(side(x)))
                } else {
                    Box::new(Factored::new(side(x), side(y)))
                };
                work(Model::new(kernel, &f, [a, b], care(PARTS[0])).ok(), None)
            }
            Storage::Separable => {
                let stage = rough.stage(term).expect("lattices are for squared Euclidean costs");
                let Placement::Lattice(lattice) = &stage.features else {
                    unreachable!("only lattices are separable")
                };
                let sub =
                    Task { start: rough.logs(term, x, potential)?, unbalanced: None, ..*task };
                on_lattice::<T>(&sub, stage, lattice, (a, b), care(PARTS[1]), &mut |model| {
                    work(model.take(), None)
                })
            }
            Storage::Nystrom | Storage::Dense | Storage::Online => work(None, None),
        }
    }

    /// A potential of the user's problem as logarithms, in the coordinates of a term.
    pub(super) fn logs(&self, term: Term, cloud: Cloud, potential: &[f64]) -> Result<Vec<f64>> {
        let mut f = self.similar_logs(cloud, potential)?;
        if let Some(offsets) = self.offsets(term, cloud, Part::Support) {
            f.iter_mut().zip(offsets).for_each(|(f, p)| *f -= p / self.options.epsilon);
        }
        Ok(f)
    }

    /// A potential in the coordinates of some term as logarithms.
    pub(super) fn similar_logs(&self, cloud: Cloud, potential: &[f64]) -> Result<Vec<f64>> {
        let measure = self.measure(cloud);
        let rows = measure.weights().len();
        if potential.len() == rows {
            let epsilon = self.options.epsilon;
            return Ok(measure.gather(potential).iter().map(|f| f / epsilon).collect());
        }
        Err(Error::Shape {
            what: "the potential to start from",
            expected: Shape { rows, columns: 1 },
            got: Shape { rows: potential.len(), columns: 1 },
        })
    }
}

/// Calls `work` with a model on a lattice.
fn on_lattice<T: Float>(
    task: &Task,
    stage: &Stage,
    lattice: &Lattice,
    (a, b): (&[f64], &[f64]),
    care: Care,
    work: &mut dyn FnMut(&mut Option<Model<'_>>) -> Result<()>,
) -> Result<()> {
    let cutoff = lattice.cutoff::<T>();
    let points = |cloud| stage.points(cloud, Part::Support);
    let side = |cloud| Separable::<T>::new(points(cloud), lattice, cutoff);
    let kernel: Box<dyn Kernel + '_> = if task.is_self() {
        Box::new(FactoredSelf::new(side(task.x)))
    } else {
        Box::new(Factored::new(side(task.x), side(task.y)))
    };
    work(&mut Model::new(kernel, &task.start, [a, b], care).ok())
}
