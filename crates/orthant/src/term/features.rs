//! Kernels of positive features, `k(x, y) = sum_k phi_k(x) psi_k(y)`.
//!
//! Solves store the features and take linear time, or, where the features define the cost, they visit all pairs, as those
//! of an exact kernel do. Plans use the features either way.

use std::sync::Arc;

use super::derivative::Operand;
use super::pairwise::{Pairwise, mean_log};
use super::view::{Partners, Seat, View, feature_view, partners};
use super::{KernelError, Scaling, Site, Solved, State, Task, TermKernel, Work, exact, polish};
use crate::anchors::{Lattice, value_bound};
use crate::control::{Next, Stop};
use crate::error::{Error, Result};
use crate::features::{FeatureMap, FeatureMatrix, Mapped};
use crate::kernel::{Conditional, Factored, FactoredSelf, Kernel, LogPass, Stored, StoredPlan};
use crate::measure::Points;
use crate::numerics::simd::{self, Float};
use crate::options::{Algorithm, Precision};
use crate::results::{MethodUsed, PAIRS_LIMIT};
use crate::rows::{FeatureCost, LogRows};
use crate::sampling::certificate::{Bounds, CertifiedSide, Claim};
use crate::sampling::{self, Listed, Pairs};
use crate::sinkhorn::Outcome;
use crate::words::{Part, Phase, Side};

/// Where the features of both clouds come from.
#[derive(Debug, Clone)]
pub(crate) enum FeatureSource<'p> {
    /// Maps of points, one for each cloud.
    Maps([Arc<dyn FeatureMap>; 2]),
    /// Matrices, a row for each point.
    Given([FeatureMatrix<'p>; 2]),
}

/// What a solve iterates over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Stored features.
    Features,
    /// All pairs, as the features define their kernel.
    Pairs { stored: bool },
}

impl Form {
    /// What a solve with features that are called so is called.
    pub(crate) fn used(self, features: MethodUsed) -> MethodUsed {
        match self {
            Form::Features => features,
            Form::Pairs { stored } => MethodUsed::over_pairs(stored),
        }
    }
}

impl FeatureSource<'_> {
    fn rank(&self) -> usize {
        match self {
            FeatureSource::Maps(maps) => maps[0].rank(),
            FeatureSource::Given(matrices) => matrices[0].rank(),
        }
    }
}

/// A kernel of features.
#[derive(Debug)]
pub(crate) struct FeatureKernel<'p> {
    site: Site<'p>,
    source: FeatureSource<'p>,
    form: Form,
    /// The lattice that the anchors are on, if they are.
    lattice: Option<Lattice>,
}

/// The stored features of a term: those of the second cloud too, if it is not the first.
pub(crate) type StoredSides<'f, T> = (Stored<'f, T>, Option<Stored<'f, T>>);

impl<'p> FeatureKernel<'p> {
    pub(crate) fn new(site: Site<'p>, source: FeatureSource<'p>, form: Form) -> Self {
        FeatureKernel { site, source, form, lattice: None }
    }

    /// With anchors on a lattice.
    pub(crate) fn on_lattice(
        site: Site<'p>,
        map: Arc<dyn FeatureMap>,
        lattice: Lattice,
        form: Form,
    ) -> FeatureKernel<'p> {
        let source = FeatureSource::Maps([map.clone(), map]);
        FeatureKernel { site, source, form, lattice: Some(lattice) }
    }

    /// Features of some points of a cloud.
    fn features(&self, cloud: Side, part: Part) -> Box<dyn LogRows + '_> {
        let cancel = self.site.cancel();
        match &self.source {
            FeatureSource::Maps(maps) => {
                let points = self.site.points(cloud, part);
                Box::new(cancel.guard(Mapped::new(&*maps[cloud as usize], points)))
            }
            FeatureSource::Given(matrices) => {
                let matrix = &matrices[cloud as usize];
                match self.site.measure(cloud).indices(part == Part::Support) {
                    None => Box::new(cancel.guard(matrix)),
                    Some(indices) => Box::new(cancel.guard(matrix.select(indices))),
                }
            }
        }
    }

    fn seen_from<'a>(&'a self, cloud: Side, seat: &'a Seat<'_>) -> Box<dyn LogRows + 'a> {
        match (seat, &self.source) {
            (Seat::Part(part), _) => self.features(cloud, *part),
            (Seat::At(points), FeatureSource::Maps(maps)) => {
                let rows = Mapped::new(&*maps[cloud as usize], points.borrowed());
                Box::new(self.site.cancel().guard(rows))
            }
            (Seat::At(_), FeatureSource::Given(_)) => {
                unreachable!("new points do not arrive where features are given")
            }
        }
    }

    /// The kernel of some points of a cloud over the support of the opposite one, entry by entry.
    fn entries(&self, cloud: Side, part: Part) -> Box<dyn LogRows + '_> {
        let others = self.features(self.site.opposite(cloud), Part::Support);
        Box::new(FeatureCost::new(self.features(cloud, part), others))
    }

    /// The features of the supports, stored.
    fn sides<T: Float>(&self) -> StoredSides<'_, T> {
        let side = |cloud| Stored::<T>::new(self.features(cloud, Part::Support));
        let [x, y] = self.site.clouds();
        (side(x), (!self.site.is_self()).then(|| side(y)))
    }

    fn iterated_in<T: Float>(&self) -> Box<dyn Kernel + '_> {
        plan_of(self.sides::<T>())
    }

    /// Solves with features that are stored; afterwards they go to `keep`.
    pub(crate) fn solve_on<'f, T: Float>(
        &self,
        task: &Task<'_>,
        work: &mut Work<'_>,
        sides: StoredSides<'f, T>,
        keep: impl FnOnce(StoredSides<'f, T>),
    ) -> Result<Solved> {
        let mut plan = plan_of(sides);
        let mut outcome = task.solve(&mut *plan, work.observer)?;
        let accelerated = !task.is_self() && task.run.algorithm == Algorithm::Accelerated;
        let mut messages = if accelerated { Vec::new() } else { plan.sent() };
        // Of the plan of mass 1, as the potentials: those of both clouds, or the first.
        let excess = match (task.is_self(), &task.unbalanced) {
            (true, _) => 0.5 * outcome.x.log_mass,
            (false, Some(_)) => outcome.x.log_mass,
            (false, None) => 0.0,
        };
        messages.iter_mut().take(1).flatten().for_each(|z| *z -= excess);
        let builds = plan.builds();
        // Of the plan of mass 1, as everything else.
        let by_moments = self.site.cost_of(&mut *plan, task.mass(&outcome))?;
        let transport_cost = by_moments.or_else(|| self.cost_over_pairs(&outcome));
        let (mut sampled, pairs) = self.certificate(task, work, &mut outcome, plan.second())?;
        keep(plan.into_sides());
        let mut shift = 0.0;
        if let (Some(found), true) = (&mut sampled, work.centred) {
            // A constant factor of the kernel moves potentials and values, and not the plan, but for its mass.
            shift = found.corrected;
            let potentials = outcome.f.iter_mut().chain(&mut outcome.g);
            potentials.chain(messages.iter_mut().flatten()).for_each(|f| *f += 0.5 * shift);
            *found = Bounds { low: found.low - shift, high: found.high - shift, corrected: 0.0 };
        }
        // What was dropped on the way to a rank is not known here.
        let whole = self.lattice.as_ref().filter(|lattice| lattice.kept().is_none());
        let bound = whole.map(|lattice| task.bound(&outcome, value_bound(1.0, lattice.ratio())));
        Ok(Solved {
            outcome,
            builds,
            transport_cost,
            error: KernelError::of_features(bound, sampled, T::ROUNDING),
            sampling: None,
            rank: self.source.rank(),
            state: State { shift, ..State::default() },
            pairs,
            messages,
        })
    }

    /// Bounds on the distance from the exact kernel, if they are asked for, and the pairs of the plan that they are from.
    /// A solution can do without: one that runs out of time here says so.
    fn certificate(
        &self,
        task: &Task<'_>,
        work: &mut Work<'_>,
        outcome: &mut Outcome,
        columns: &mut dyn Conditional,
    ) -> Result<(Option<Bounds>, Pairs)> {
        if !(self.site.options().certify || work.centred) {
            return Ok((None, Pairs::default()));
        }
        let clock = work.clock;
        let found = if clock.is_over() || work.observer.phase(Phase::Certificate) == Next::Stop {
            None
        } else {
            clock.try_run(|| self.certify(task, outcome, columns))?
        };
        if found.is_none() && outcome.stop == Stop::Converged {
            outcome.stop = if clock.is_over() { Stop::TimeLimit } else { Stop::Requested };
        }
        Ok(found.unwrap_or_default())
    }

    fn certify(
        &self,
        task: &Task<'_>,
        outcome: &Outcome,
        columns: &mut dyn Conditional,
    ) -> Result<(Option<Bounds>, Pairs)> {
        let Some((frame, epsilon)) = self.site.metric()? else {
            return Ok((None, Pairs::default()));
        };
        let clouds = self.site.clouds();
        let features = clouds.map(|cloud| self.features(cloud, Part::Support));
        let [points_x, points_y] = clouds.map(|cloud| self.site.points(cloud, Part::Support));
        let [a, b] = task.goal().targets();
        let claim = Claim {
            x: CertifiedSide::new(&*features[0], points_x, a, &outcome.f, &outcome.x.sums),
            y: CertifiedSide::new(&*features[1], points_y, b, &outcome.g, &outcome.y.sums),
            frame: &frame,
            epsilon,
            rows: &outcome.x.sums,
            seed: self.site.options().seed,
            cancel: self.site.cancel(),
        };
        Ok(claim.bounds(columns))
    }

    /// `<P, C>` for a cost that is defined by features, pair by pair, unless they are too many.
    fn cost_over_pairs(&self, outcome: &Outcome) -> Option<f64> {
        let Outcome { f, g, .. } = outcome;
        let work = f.len() as f64 * g.len() as f64 * self.rank() as f64;
        let options = self.site.options();
        (options.pair_costs && work <= PAIRS_LIMIT).then(|| {
            let entries = self.entries(self.site.clouds()[0], Part::Support);
            -options.epsilon * mean_log(entries, f, g)
        })
    }
}

/// Stored features as something to iterate.
fn plan_of<'f, T: Float>((x, y): StoredSides<'f, T>) -> Box<dyn StoredPlan<'f, T> + 'f> {
    match y {
        None => Box::new(FactoredSelf::new(x)),
        Some(y) => Box::new(Factored::new(x, y)),
    }
}

impl TermKernel for FeatureKernel<'_> {
    fn site(&self) -> &Site<'_> {
        &self.site
    }

    fn rank(&self) -> usize {
        match self.form {
            Form::Features => self.source.rank(),
            Form::Pairs { .. } => self.site.weights()[1].len(),
        }
    }

    fn is_exact(&self) -> bool {
        !self.site.is_euclidean() || self.form != Form::Features
    }

    fn solve(&self, task: &mut Task<'_>, work: &mut Work<'_>) -> Result<Solved> {
        let [x, _] = self.site.clouds();
        match (self.form, self.site.options().precision) {
            (Form::Features, Precision::F32) => {
                self.solve_on::<f32>(task, work, self.sides(), drop)
            }
            (Form::Features, Precision::F64) => {
                self.solve_on::<f64>(task, work, self.sides(), drop)
            }
            (Form::Pairs { stored }, _) => {
                let rows = self.entries(x, Part::Support);
                let held = exact::Held::new(stored, &self.site);
                exact::solve(rows, held, task, work.observer)
            }
        }
    }

    fn iterated(&self) -> Box<dyn Kernel + '_> {
        match (self.form, self.site.options().precision) {
            (Form::Features, Precision::F32) => self.iterated_in::<f32>(),
            (Form::Features, Precision::F64) => self.iterated_in::<f64>(),
            (Form::Pairs { stored }, _) => {
                let rows = self.entries(self.site.clouds()[0], Part::Support);
                exact::iterated(rows, exact::Held::new(stored, &self.site), self.site.is_self())
            }
        }
    }

    fn stored_features(&self) -> Option<&FeatureKernel<'_>> {
        (self.form == Form::Features).then_some(self)
    }

    fn near(&self) -> Option<(Box<dyn Kernel + '_>, f64)> {
        (self.form == Form::Features).then(|| (self.iterated(), polish::OF_FEATURES))
    }

    fn stored_numbers(&self, [n, m]: [f64; 2]) -> f64 {
        match self.form {
            Form::Features => (n + m) * self.source.rank() as f64,
            Form::Pairs { stored: true } => n * m,
            Form::Pairs { stored: false } => 0.0,
        }
    }

    fn rows(&self) -> Option<(Box<dyn LogRows + '_>, bool)> {
        let [x, _] = self.site.clouds();
        Some(match self.form {
            Form::Features => (self.features(x, Part::Support), false),
            Form::Pairs { .. } => (self.entries(x, Part::Support), true),
        })
    }

    fn log_sums(&self, _: &State, cloud: Side, part: Part, g: &[f64]) -> Result<Vec<f64>> {
        if self.form != Form::Features {
            return Ok(exact::log_sums(&*self.entries(cloud, part), g));
        }
        let source = self.features(self.site.opposite(cloud), Part::Support);
        let mut message = vec![0.0; simd::padded(source.rank())];
        LogPass::of(&*source).column_sums(&*source, g, &mut message[..source.rank()]);
        let rows = self.features(cloud, part);
        let mut out = vec![0.0; rows.rows()];
        LogPass::of(&*rows).row_sums::<f64>(&*rows, &message, &mut out);
        Ok(out)
    }

    fn pairwise<'a>(&'a self, _: &'a State) -> Pairwise<'a> {
        Pairwise::Features(self.site.clouds().map(|cloud| self.features(cloud, Part::Support)))
    }

    fn sample(&self, scaling: &Scaling, draws: &[[f64; 3]]) -> Result<Vec<[usize; 2]>> {
        let [x, y] = self.site.clouds().map(|cloud| self.features(cloud, Part::Support));
        let (mut x, mut y) = (Listed::new(&*x, &scaling.f), Listed::new(&*y, &scaling.g));
        Ok(sampling::pairs([&mut x, &mut y], draws))
    }

    fn check_new(&self, cloud: Side, points: &Points<'_>) -> Result<()> {
        match (&self.source, self.site.is_gauged()) {
            (FeatureSource::Given(_), _) => Err(Error::NoNewPoints { given: "a feature matrix" }),
            (FeatureSource::Maps(maps), false) => maps[cloud as usize].check(points),
            // Points of a gauge are checked when they are placed.
            (FeatureSource::Maps(_), true) => Ok(()),
        }
    }

    fn view(
        &self,
        state: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        columns: &[Vec<f64>],
    ) -> Result<View> {
        let others = self.features(self.site.opposite(cloud), Part::Support);
        let mut view = feature_view(&*self.seen_from(cloud, seat), &*others, g, columns);
        view.sums.iter_mut().for_each(|s| *s -= state.shift);
        Ok(view)
    }

    fn partners(
        &self,
        _: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        count: usize,
    ) -> Result<Vec<Partners>> {
        let others = self.features(self.site.opposite(cloud), Part::Support);
        let rows = FeatureCost::new(self.seen_from(cloud, seat), others);
        Ok(partners(&rows, g, count, None))
    }

    fn operand<'a>(&'a self, _: &'a State, cloud: Side) -> Result<Operand<'a>> {
        Ok(match &self.source {
            FeatureSource::Maps(maps) => {
                Operand::Map(&*maps[cloud as usize], self.site.points(cloud, Part::Support))
            }
            FeatureSource::Given(_) => Operand::Given(self.features(cloud, Part::Support)),
        })
    }

    fn on<'q>(&'q self, site: Site<'q>) -> Result<Box<dyn TermKernel + 'q>> {
        let (source, lattice) = (self.source.clone(), self.lattice.clone());
        Ok(Box::new(FeatureKernel { site, source, form: self.form, lattice }))
    }

    #[cfg(test)]
    fn scaled_on<'q>(&self, site: Site<'q>, ratio: f64) -> Box<dyn TermKernel + 'q> {
        if let Some(lattice) = &self.lattice {
            let lattice = lattice.at(ratio);
            let map = Arc::new(crate::features::lattice_map(&lattice));
            return Box::new(FeatureKernel::on_lattice(site, map, lattice, self.form));
        }
        let FeatureSource::Maps(maps) = &self.source else { panic!("given features stay") };
        Box::new(FeatureKernel::new(site, FeatureSource::Maps(maps.clone()), self.form))
    }
}
