//! The kernel of the cost itself, over all pairs: stored (dense), or recomputed on the way (online).

use super::derivative::Operand;
use super::pairwise::{Pairwise, sample_rows};
use super::site::{Chosen, OF_POINTS};
use super::view::{Partners, Seat, View, exact_view, partners};
use super::{KernelError, Scaling, Site, Solved, State, Task, TermKernel, Work, polish};
use crate::control::Observer;
use crate::error::Result;
use crate::features::SquaredEuclidean;
use crate::kernel::{self, AllPairs, Builds, Kernel, LogPass, Recomputed, Stored};
use crate::numerics::simd::{self, Float};
use crate::options::Precision;
use crate::rows::LogRows;
use crate::sampling::Pairs;
use crate::sinkhorn::Outcome;
use crate::words::{Part, Side};

/// The kernel of a cost that is a function of the points, or is given pair by pair.
#[derive(Debug)]
pub(crate) struct ExactKernel<'p> {
    site: Site<'p>,
    stored: bool,
}

impl<'p> ExactKernel<'p> {
    pub(crate) fn new(site: Site<'p>, stored: bool) -> Self {
        ExactKernel { site, stored }
    }

    pub(super) fn site(&self) -> &Site<'p> {
        &self.site
    }

    /// Points of a cloud, or others, over the support of the opposite one.
    fn entries<'a>(&'a self, cloud: Side, seat: Seat<'a>) -> Box<dyn LogRows + 'a> {
        self.site.between(Chosen::seat(cloud, seat), Chosen::all(self.site.opposite(cloud)))
    }

    /// The first cloud of the term over the second.
    fn all_pairs(&self) -> Box<dyn LogRows + '_> {
        self.entries(self.site.clouds()[0], Seat::Part(Part::Support))
    }

    /// What stands between a cloud and points of the opposite one: some of them, or all.
    pub(super) fn operand_over<'a>(
        &'a self,
        cloud: Side,
        some: Option<&'a [usize]>,
    ) -> Operand<'a> {
        let (site, opposite) = (&self.site, self.site.opposite(cloud));
        if site.has_given_costs() {
            let columns = some.map_or(Chosen::all(opposite), |some| Chosen::some(opposite, some));
            return Operand::Costs(site.between(Chosen::all(cloud), columns));
        }
        let points = || site.points(cloud, Part::Support);
        let others = site.points(opposite, Part::Support);
        let others = match some {
            Some(some) => others.select(some),
            None => others,
        };
        let Some((frame, epsilon)) = site.metric().ok().flatten() else {
            return Operand::Pairs(site.pair_rows(points(), others).expect(OF_POINTS), points());
        };
        Operand::Exact(SquaredEuclidean::map(&frame, epsilon, &others), points())
    }
}

/// How the entries of a kernel are held while it is iterated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) stored: bool,
    pub(super) precision: Precision,
}

impl Held {
    /// As the options say. Entries that are evaluated on the way are in double precision.
    pub(super) fn new(stored: bool, site: &Site<'_>) -> Self {
        let precision = if stored { site.options().precision } else { Precision::F64 };
        Held { stored, precision }
    }

    /// Of sums of the entries.
    fn rounding(self) -> f64 {
        match self.precision {
            Precision::F32 => f32::ROUNDING,
            Precision::F64 => f64::ROUNDING,
        }
    }
}

/// Rows of the kernel, over the points of the other cloud, as something to iterate.
pub(super) fn iterated<'r>(
    rows: Box<dyn LogRows + 'r>,
    held: Held,
    is_self: bool,
) -> Box<dyn AllPairs + 'r> {
    match (held.stored, held.precision) {
        (false, Precision::F32) => kernel::exact(Recomputed::<f32>::new(rows), is_self),
        (false, Precision::F64) => kernel::exact(Recomputed::<f64>::new(rows), is_self),
        (true, Precision::F32) => kernel::exact(Stored::<f32>::new(rows), is_self),
        (true, Precision::F64) => kernel::exact(Stored::<f64>::new(rows), is_self),
    }
}

/// Solves a term with rows of its kernel over the points of the other cloud.
pub(super) fn solve(
    rows: Box<dyn LogRows + '_>,
    held: Held,
    task: &Task<'_>,
    observer: &mut dyn Observer,
) -> Result<Solved> {
    let mut kernel = iterated(rows, held, task.is_self());
    let outcome = task.solve(&mut *kernel, observer)?;
    let (log, builds) = (kernel.expected_log(), kernel.builds());
    Ok(solved(task, outcome, log, builds, held))
}

/// With the mean `log` of the logarithm of the kernel under the plan.
pub(super) fn solved(
    task: &Task<'_>,
    outcome: Outcome,
    log: f64,
    builds: Builds,
    held: Held,
) -> Solved {
    Solved {
        transport_cost: Some(-task.run.epsilon * log / task.mass(&outcome)),
        rank: outcome.g.len(),
        error: KernelError { exact: true, ..KernelError::of_features(None, None, held.rounding()) },
        sampling: None,
        state: State::default(),
        pairs: Pairs::default(),
        messages: Vec::new(),
        outcome,
        builds,
    }
}

/// `log sum_j k(x, y_j) v_j` for rows over the points `y_j`.
pub(super) fn log_sums(rows: &dyn LogRows, g: &[f64]) -> Vec<f64> {
    let mut message = vec![0.0; simd::padded(g.len())];
    message[..g.len()].copy_from_slice(g);
    let mut out = vec![0.0; rows.rows()];
    LogPass::of(rows).row_sums::<f64>(rows, &message, &mut out);
    out
}

impl TermKernel for ExactKernel<'_> {
    fn site(&self) -> &Site<'_> {
        &self.site
    }

    fn rank(&self) -> usize {
        self.site.weights()[1].len()
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn solve(&self, task: &mut Task<'_>, work: &mut Work<'_>) -> Result<Solved> {
        let rows = self.all_pairs();
        if let Some((rough, start)) = &task.rough {
            return polish::solve(rows, &self.site, task, (*rough, start), work.observer);
        }
        solve(rows, Held::new(self.stored, &self.site), task, work.observer)
    }

    fn iterated(&self) -> Box<dyn Kernel + '_> {
        let rows = self.all_pairs();
        iterated(rows, Held::new(self.stored, &self.site), self.site.is_self())
    }

    fn stored_numbers(&self, [n, m]: [f64; 2]) -> f64 {
        if self.stored { n * m } else { 0.0 }
    }

    fn rows(&self) -> Option<(Box<dyn LogRows + '_>, bool)> {
        Some((self.all_pairs(), true))
    }

    fn log_sums(&self, _: &State, cloud: Side, part: Part, g: &[f64]) -> Result<Vec<f64>> {
        Ok(log_sums(&*self.entries(cloud, Seat::Part(part)), g))
    }

    fn pairwise<'a>(&'a self, _: &'a State) -> Pairwise<'a> {
        let entry = self.site.log_entry().expect("the cost is a function of the points or given");
        Pairwise::Each(Box::new(move |i, j, shift| (entry(i, j) + shift).exp()))
    }

    fn sample(&self, scaling: &Scaling, draws: &[[f64; 3]]) -> Result<Vec<[usize; 2]>> {
        let entries = self.all_pairs();
        let Scaling { f, g, .. } = scaling;
        Ok(sample_rows(&*entries, &log_sums(&*entries, g), (f, g), draws))
    }

    fn view(
        &self,
        _: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        columns: &[Vec<f64>],
    ) -> Result<View> {
        Ok(exact_view(&*self.entries(cloud, *seat), g, columns))
    }

    fn partners(
        &self,
        _: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        count: usize,
    ) -> Result<Vec<Partners>> {
        Ok(partners(&*self.entries(cloud, *seat), g, count, None))
    }

    fn operand<'a>(&'a self, _: &'a State, cloud: Side) -> Result<Operand<'a>> {
        Ok(self.operand_over(cloud, None))
    }

    fn on<'q>(&'q self, site: Site<'q>) -> Result<Box<dyn TermKernel + 'q>> {
        Ok(Box::new(ExactKernel { site, stored: self.stored }))
    }

    #[cfg(test)]
    fn scaled_on<'q>(&self, site: Site<'q>, _: f64) -> Box<dyn TermKernel + 'q> {
        Box::new(ExactKernel { site, stored: self.stored })
    }
}
