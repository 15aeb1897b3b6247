//! Features on a lattice, as products over the axes: nothing is stored, and the error is bounded.

use super::derivative::Operand;
use super::gathered::{self, DenseCloud};
use super::lattices::{most_nodes, ratio_for};
use super::pairwise::Pairwise;
use super::view::{Partners, Seat, View, lattice_view, partners};
use super::{
    KernelError, Scaling, Site, Solved, State, Task, TermKernel, Values, Work, polish, thinned,
};
use crate::anchors::{Lattice, value_bound};
use crate::control::{Observer, Stop};
use crate::error::Result;
use crate::features::Mapped;
use crate::kernel::{
    Builds, Factored, FactoredSelf, HalfKernel, Kernel, LatticePlan, Nearly, Separable,
};
use crate::measure::Points;
use crate::numerics::simd::Float;
use crate::options::Precision;
use crate::results::scale;
use crate::rows::{FeatureCost, LogRows};
use crate::sampling::{self, OnLattice, Pairs};
use crate::sinkhorn::unbalanced::Goal;
use crate::sinkhorn::{self, Outcome};
use crate::words::{Part, Side};

/// The kernel of a lattice, which a solve makes finer if it has to.
#[derive(Debug)]
pub(crate) struct LatticeKernel<'p> {
    site: Site<'p>,
    lattice: Lattice,
    /// The error that it may have, in units of the cost, if it is not what the accuracy says of the term.
    error: Option<f64>,
}

impl<'p> LatticeKernel<'p> {
    pub(crate) fn new(site: Site<'p>, lattice: Lattice, error: Option<f64>) -> Self {
        LatticeKernel { site, lattice, error }
    }

    /// The lattice that a solve ended with.
    fn current<'a>(&'a self, state: &'a State) -> &'a Lattice {
        state.lattice.as_ref().unwrap_or(&self.lattice)
    }

    fn supports(&self) -> [Points<'_>; 2] {
        self.site.clouds().map(|cloud| self.site.points(cloud, Part::Support))
    }

    /// Finer lattices until the bound is as asked for.
    fn solve_in<T: Float>(&self, task: &mut Task<'_>, work: &mut Work<'_>) -> Result<Solved> {
        let options = self.site.options();
        let epsilon = options.epsilon;
        let most_iterations = task.run.max_iterations;
        let (mut refined, mut thinned): (Option<Lattice>, bool) = (None, false);
        let (mut iterations, mut builds) = (0, Builds::default());
        loop {
            let lattice = refined.as_ref().unwrap_or(&self.lattice);
            let (mut solved, worth) = self.solve_on::<T>(task, lattice, work.observer)?;
            iterations += solved.outcome.iterations;
            builds = builds + solved.builds;
            let outcome = &solved.outcome;
            let Values { value_kl, mass, .. } = task.values(outcome);
            let usual = options.accuracy * scale(value_kl, epsilon * mass);
            let wanted = self.error.unwrap_or(usual);
            let good = solved.error.bound.is_some_and(|bound| bound <= wanted);
            // Below the rounding of the kernel no lattice is finer.
            let finest = lattice.ratio() <= T::ROUNDING.max(1e-11);
            let ended = outcome.stop != Stop::Converged || iterations >= most_iterations;
            let finer = if good || finest || ended {
                None
            } else if let Some(rank) = options.lattice_rank() {
                // The plan knows better which nodes it needs.
                let once = std::mem::replace(&mut thinned, true);
                worth.filter(|_| !once).map(|worth| thinned::thin(&lattice.whole(), &worth, rank))
            } else {
                let finer = 0.5 * ratio_for(wanted / mass, epsilon);
                let ratio = finer.min(0.5 * lattice.ratio());
                let [low, high] = self.site.midpoints();
                let most = most_nodes(task.weights.iter().map(|w| w.len()).sum());
                Lattice::covering(&low, &high, lattice.epsilon(), ratio, most)
                    .map(|lattice| lattice.guarded(self.site.cancel()))
            };
            let Some(finer) = finer else {
                solved.outcome.iterations = iterations;
                solved.builds = builds;
                return Ok(solved);
            };
            task.start.clone_from(&solved.outcome.f);
            task.flat = false;
            task.run.max_iterations = most_iterations - iterations;
            refined = Some(finer);
        }
    }

    /// With one lattice. Also the mass at each node, as a logarithm, if some of them are not there.
    fn solve_on<T: Float>(
        &self,
        task: &mut Task<'_>,
        lattice: &Lattice,
        observer: &mut dyn Observer,
    ) -> Result<(Solved, Option<Vec<f64>>)> {
        let cutoff = lattice.cutoff::<T>();
        task.run.leave_out = leave_out::<T>(lattice);
        let supports = self.supports();
        let [x, y] = &supports;
        let [a, b] = task.weights;
        let side_x = Separable::<T>::new(x, lattice, cutoff);
        let (coarse, mut kernel): (_, Box<dyn LatticePlan + '_>) = if task.is_self() {
            let clouds = [DenseCloud { side: &side_x, points: x, weights: a }];
            let coarse = gathered::coarse_messages::<T>(task, lattice, cutoff, &clouds);
            (coarse, Box::new(FactoredSelf::new(side_x)))
        } else {
            let side_y = Separable::<T>::new(y, lattice, cutoff);
            let clouds = [
                DenseCloud { side: &side_x, points: x, weights: a },
                DenseCloud { side: &side_y, points: y, weights: b },
            ];
            let coarse = gathered::coarse_messages::<T>(task, lattice, cutoff, &clouds);
            (coarse, Box::new(Factored::new(side_x, side_y)))
        };
        let goal = task.goal();
        let resumed =
            coarse.is_some_and(|coarse| kernel.resume(&coarse, goal.targets()[0]).is_ok());
        let start = (!resumed).then_some(&task.start[..]);
        let outcome = sinkhorn::solve(&mut *kernel, goal, start, task.run, observer)?;
        let transport_cost = self.site.cost_of(&mut *kernel, task.mass(&outcome))?;
        let builds = kernel.builds();
        drop(kernel);
        let (dropped, worth) = self.with_all_nodes(lattice, [x, y], &outcome, goal)?;
        let logs = value_bound(1.0, lattice.ratio()) + outcome.left_out + T::ROUNDING;
        let bound = Some(task.bound(&outcome, logs) + dropped).filter(|b| b.is_finite());
        let solved = Solved {
            transport_cost,
            builds,
            error: KernelError::of_features(bound, None, T::ROUNDING),
            sampling: None,
            rank: lattice.rank(),
            state: State::of_lattice(lattice.clone()),
            pairs: Pairs::default(),
            messages: Vec::new(),
            outcome,
        };
        Ok((solved, worth))
    }

    /// What the nodes that a lattice has dropped would change, by one exact half-step with them; and the mass at each
    /// node, as a logarithm. Nothing if it has all of them.
    fn with_all_nodes(
        &self,
        lattice: &Lattice,
        [x, y]: [&Points<'_>; 2],
        outcome: &Outcome,
        goal: Goal<'_>,
    ) -> Result<(f64, Option<Vec<f64>>)> {
        if lattice.kept().is_none() {
            return Ok((0.0, None));
        }
        let all = lattice.whole();
        let (mut message, mut back) = (vec![0.0; all.nodes()], vec![0.0; all.nodes()]);
        let mut sums = vec![0.0; goal.b.len()];
        Separable::<f64>::new(x, &all, f64::CUTOFF).message(&outcome.f, &mut message);
        let mut side = Separable::<f64>::new(y, &all, f64::CUTOFF);
        side.message(&outcome.g, &mut back);
        side.log_apply(&message, &mut sums)?;
        let dropped = dropped_value(outcome, &sums, goal, self.site.options().epsilon);
        message.iter_mut().zip(back).for_each(|(message, back)| *message += back);
        Ok((dropped, Some(message)))
    }

    /// An error at points of a part of a cloud, in the user's count.
    fn in_user_rows<R>(&self, result: Result<R>, cloud: Side, part: Part) -> Result<R> {
        let clouds = [cloud, self.site.opposite(cloud)];
        result.map_err(|error| self.site.in_user_rows(error, part, clouds))
    }
}

/// A lattice as something to iterate, between points of both clouds or of one with itself.
pub(super) fn on_lattice<'k>(
    site: &Site<'_>,
    lattice: &'k Lattice,
    [x, y]: [&Points<'_>; 2],
) -> Box<dyn Kernel + 'k> {
    fn of<'k, T: Float>(
        is_self: bool,
        lattice: &'k Lattice,
        [x, y]: [&Points<'_>; 2],
    ) -> Box<dyn Kernel + 'k> {
        let side = |points| Separable::<T>::new(points, lattice, lattice.cutoff::<T>());
        if is_self {
            Box::new(FactoredSelf::new(side(x)))
        } else {
            Box::new(Factored::new(side(x), side(y)))
        }
    }
    match site.options().precision {
        Precision::F32 => of::<f32>(site.is_self(), lattice, [x, y]),
        Precision::F64 => of::<f64>(site.is_self(), lattice, [x, y]),
    }
}

/// Part of the mass that may be left out: less than the error of the lattice.
fn leave_out<T: Float>(lattice: &Lattice) -> f64 {
    (0.1 * lattice.ratio()).max(T::ROUNDING)
}

/// What the value would lose with a larger kernel of which `log K^T u = sums`, by weak duality: the best
/// second potential for it has no larger value than the problem.
fn dropped_value(outcome: &Outcome, sums: &[f64], goal: Goal<'_>, epsilon: f64) -> f64 {
    let lost = match goal.unbalanced {
        None => {
            let (g, b) = (&outcome.g, goal.b);
            epsilon * goal.spans[1].sum(|j| b[j] * (g[j] + sums[j] - b[j].ln()))
        }
        Some(unbalanced) => {
            let g = unbalanced.transform(sums);
            let log_mass = goal.spans[1].log_sum(|j| g[j] + sums[j]);
            let less = unbalanced.dual(&outcome.f, &g, log_mass).value;
            unbalanced.dual(&outcome.f, &outcome.g, 0.0).value - less
        }
    };
    lost.max(0.0)
}

impl TermKernel for LatticeKernel<'_> {
    fn site(&self) -> &Site<'_> {
        &self.site
    }

    fn rank(&self) -> usize {
        self.lattice.rank()
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn solve(&self, task: &mut Task<'_>, work: &mut Work<'_>) -> Result<Solved> {
        match self.site.options().precision {
            Precision::F32 => self.solve_in::<f32>(task, work),
            Precision::F64 => self.solve_in::<f64>(task, work),
        }
    }

    fn iterated(&self) -> Box<dyn Kernel + '_> {
        let [x, y] = self.supports();
        on_lattice(&self.site, &self.lattice, [&x, &y])
    }

    fn leave_out(&self) -> f64 {
        match self.site.options().precision {
            Precision::F32 => leave_out::<f32>(&self.lattice),
            Precision::F64 => leave_out::<f64>(&self.lattice),
        }
    }

    fn near(&self) -> Option<(Box<dyn Kernel + '_>, f64)> {
        Some((self.iterated(), polish::ON_LATTICE))
    }

    fn stored_numbers(&self, _: [f64; 2]) -> f64 {
        0.0
    }

    fn rows(&self) -> Option<(Box<dyn LogRows + '_>, bool)> {
        None
    }

    fn log_sums(&self, state: &State, cloud: Side, part: Part, g: &[f64]) -> Result<Vec<f64>> {
        let lattice = self.current(state);
        let points = self.site.points(cloud, part);
        let others = self.site.points(self.site.opposite(cloud), Part::Support);
        let mut message = vec![0.0; lattice.nodes()];
        // Nothing is cut off: the points may be anywhere.
        Separable::<f64>::new(&others, lattice, f64::CUTOFF).message(g, &mut message);
        let mut out = vec![0.0; points.len()];
        let applied =
            Separable::<f64>::new(&points, lattice, f64::CUTOFF).log_apply(&message, &mut out);
        self.in_user_rows(applied, cloud, part)?;
        Ok(out)
    }

    fn pairwise<'a>(&'a self, state: &'a State) -> Pairwise<'a> {
        let [x, y] = self.supports();
        if let Some(map) = &state.listed {
            let of = |points: Points<'a>| -> Box<dyn LogRows + 'a> {
                Box::new(self.site.cancel().guard(Mapped::new(map, points)))
            };
            return Pairwise::Features([of(x), of(y)]);
        }
        let lattice = self.current(state);
        Pairwise::Each(Box::new(move |i, j, shift| {
            let log = lattice.log_kernel(|a| x.coordinate(i, a), |a| y.coordinate(j, a));
            (log + shift).exp()
        }))
    }

    fn sample(&self, scaling: &Scaling, draws: &[[f64; 3]]) -> Result<Vec<[usize; 2]>> {
        let (lattice, [x, y]) = (self.current(&scaling.state), self.supports());
        let side = |points| Separable::new(points, lattice, f64::CUTOFF);
        let mut x = OnLattice::new(side(&x), &scaling.f);
        let mut y = OnLattice::new(side(&y), &scaling.g);
        Ok(sampling::pairs([&mut x, &mut y], draws))
    }

    fn view(
        &self,
        state: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        columns: &[Vec<f64>],
    ) -> Result<View> {
        let points = seat.points(&self.site, cloud);
        let others = self.site.points(self.site.opposite(cloud), Part::Support);
        let view = lattice_view(self.current(state), &points, &others, g, columns);
        match seat {
            Seat::Part(part) => self.in_user_rows(view, cloud, *part),
            Seat::At(_) => view,
        }
    }

    fn partners(
        &self,
        state: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        count: usize,
    ) -> Result<Vec<Partners>> {
        let points = seat.points(&self.site, cloud);
        let others = self.site.points(self.site.opposite(cloud), Part::Support);
        if let Some(map) = &state.listed {
            let of = |points| Box::new(self.site.cancel().guard(Mapped::new(map, points)));
            return Ok(partners(&FeatureCost::new(of(points), of(others)), g, count, None));
        }
        let lattice = self.current(state);
        let View { sums, .. } = lattice_view(lattice, &points, &others, g, &[])?;
        let log = |i: usize, j: usize| {
            lattice.log_kernel(|a| points.coordinate(i, a), |a| others.coordinate(j, a))
        };
        // Entries are within the ratio of those of the exact kernel, which are quick.
        let ratio = lattice.ratio();
        let slack = if ratio < 1.0 { ratio.ln_1p() - (-ratio).ln_1p() } else { f64::INFINITY };
        let nearly = Nearly { slack: slack + 1e-9, log: &log, sums: &sums };
        let rows = self.site.exact_rows(cloud, points.borrowed())?;
        let rows = rows.expect("lattices are for squared Euclidean costs");
        Ok(partners(&*rows, g, count, Some(&nearly)))
    }

    fn operand<'a>(&'a self, state: &'a State, cloud: Side) -> Result<Operand<'a>> {
        let points = self.site.points(cloud, Part::Support);
        Ok(Operand::Lattice(self.current(state), points))
    }

    fn on<'q>(&'q self, site: Site<'q>) -> Result<Box<dyn TermKernel + 'q>> {
        Ok(Box::new(LatticeKernel { site, lattice: self.lattice.clone(), error: None }))
    }

    #[cfg(test)]
    fn scaled_on<'q>(&self, site: Site<'q>, ratio: f64) -> Box<dyn TermKernel + 'q> {
        Box::new(LatticeKernel { site, lattice: self.lattice.at(ratio), error: None })
    }
}
