//! What is left of the samples of a solve: what points see of the other cloud follows from it, in the time of the samples.

use super::below::Bagged;
use super::draws::Draws;
use super::own::Apart;
use super::whole::Extended;
use super::{SampledKernel, columns, sums};
use crate::rows::LogRows;
use crate::term::pairwise::sample_rows;
use crate::term::site::Chosen;
use crate::term::view::{Seat, View, exact_view};
use crate::term::{RowScaling, Scaling, State};
use crate::words::{Part, Side};

/// The points of a cloud that were drawn, all samples together and in order, with logarithms of `v` such that sums over
/// them have the sums over the cloud as their expectations.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Drawn {
    points: Vec<usize>,
    logs: Vec<f64>,
    /// What these have less than the potentials that they are of.
    shift: f64,
    /// Whether no sample had a point twice, and the part of pairs of the cloud that are of two different points.
    distinct: bool,
    apart: f64,
}

/// More draws than this part of a cloud, and all of its points take their place.
const MOST_DRAWN: f64 = 0.5;

impl Drawn {
    /// With the mean potential of the samples.
    pub(super) fn new(bagged: &Bagged, slot: usize, weights: &[f64], shift: f64) -> Self {
        let Extended { f, g } = &bagged.bag;
        let potential = if slot == 0 { f } else { g };
        let draws = || bagged.values.iter().map(|(_, draws)| draws);
        let mut points: Vec<usize> = draws().flat_map(|d| d.of(slot)).copied().collect();
        if points.len() as f64 > MOST_DRAWN * weights.len() as f64 {
            let logs = columns(potential, weights).map(|g| g - shift).collect();
            let points = (0..weights.len()).collect();
            return Drawn { points, logs, shift, distinct: false, apart: 1.0 };
        }
        points.sort_unstable();
        let size = (points.len() as f64).ln();
        let logs = points.iter().map(|&i| potential[i] - size - shift).collect();
        let Draws { distinct, apart, .. } = bagged.values[0].1;
        Drawn { points, logs, shift, distinct, apart }
    }

    /// The logarithms of `v`: what the cloud sends to the opposite one.
    pub(super) fn message(&self) -> Vec<f64> {
        self.logs.clone()
    }

    fn sums(&self, rows: &dyn LogRows) -> Vec<f64> {
        sums::<f64>(rows, self.logs.iter().copied())
    }

    /// What sums over the draws of other points are to be multiplied with at a point of the cloud that was drawn so many
    /// times, see [`Draws::others`].
    fn others(&self, times: usize) -> f64 {
        let count = self.points.len() as f64;
        if self.distinct { self.apart * count / (count - times as f64) } else { 1.0 }
    }
}

impl SampledKernel<'_> {
    /// What was drawn of the cloud opposite to one, if anything was.
    fn opposite<'s>(&self, state: &'s State, cloud: Side) -> Option<&'s Drawn> {
        let slot = if self.exact.site().is_self() { 0 } else { cloud.other() as usize };
        state.drawn.get(slot)
    }

    /// The points of it.
    pub(super) fn drawn_points<'s>(&self, state: &'s State, cloud: Side) -> Option<&'s [usize]> {
        self.opposite(state, cloud).map(|drawn| &drawn.points[..])
    }

    /// What was drawn of the opposite cloud, as points see it, and where it is in the cloud. None where that is not all that
    /// they see: points of a cloud see themselves by their weights, and not as often as they were drawn.
    fn seen<'a>(
        &'a self,
        state: &'a State,
        cloud: Side,
        seat: Seat<'a>,
    ) -> Option<(Box<dyn LogRows + 'a>, &'a Drawn)> {
        let site = self.exact.site();
        if site.is_self() && matches!(seat, Seat::Part(Part::Support)) {
            return None;
        }
        let drawn = self.opposite(state, cloud)?;
        let columns = Chosen::some(site.opposite(cloud), &drawn.points);
        Some((site.between(Chosen::seat(cloud, seat), columns), drawn))
    }

    /// `log sum_j k(x, y_j) v_j` at points of a cloud.
    pub(super) fn drawn_sums(&self, state: &State, cloud: Side, part: Part) -> Option<Vec<f64>> {
        let (rows, drawn) = self.seen(state, cloud, Seat::Part(part))?;
        Some(drawn.sums(&*rows))
    }

    /// See [`crate::term::TermKernel::view`].
    pub(super) fn drawn_view(
        &self,
        state: &State,
        cloud: Side,
        seat: Seat<'_>,
        columns: &[Vec<f64>],
    ) -> Option<View> {
        let (rows, drawn) = self.seen(state, cloud, seat)?;
        let of = |column: &Vec<f64>| drawn.points.iter().map(|&j| column[j]).collect();
        let columns: Vec<Vec<f64>> = columns.iter().map(of).collect();
        Some(exact_view(&*rows, &drawn.logs, &columns))
    }

    /// A pair for each three numbers between 0 and 1: a point of the first cloud by its mass, and one of the draws of the
    /// second as it sees them.
    pub(super) fn drawn_pairs(
        &self,
        scaling: &Scaling,
        draws: &[[f64; 3]],
    ) -> Option<Vec<[usize; 2]>> {
        let [x, _] = self.exact.site().clouds();
        let (rows, drawn) = self.seen(&scaling.state, x, Seat::Part(Part::Support))?;
        let sums = drawn.sums(&*rows);
        let logs = self.normalised(scaling, 0, &sums);
        let mut pairs = sample_rows(&*rows, &sums, (&logs, &drawn.logs), draws);
        for [_, j] in &mut pairs {
            *j = drawn.points[*j];
        }
        Some(pairs)
    }

    /// See [`crate::term::TermKernel::row_scaling`]: every point has the mass that goes with its potential.
    pub(super) fn drawn_scaling(&self, scaling: &Scaling, slot: usize) -> Option<RowScaling> {
        let (site, state) = (self.exact.site(), &scaling.state);
        let cloud = site.clouds()[slot];
        if site.is_self() {
            return self.opposite(state, cloud).map(|drawn| self.own_scaling(drawn, cloud));
        }
        let sums = self.drawn_sums(state, cloud, Part::Support)?;
        let logs = self.normalised(scaling, slot, &sums);
        let own = vec![0.0; logs.len()];
        Some(RowScaling { logs, own })
    }

    /// The logarithms of `u` with which rows of these sums have the masses of their points.
    fn normalised(&self, scaling: &Scaling, slot: usize, sums: &[f64]) -> Vec<f64> {
        let site = self.exact.site();
        let unbalanced = site.unbalanced();
        let cloud = self.cloud(unbalanced.as_ref(), slot);
        let shift = scaling.shifts[slot] - cloud.mass.ln();
        let mass = |i: usize| {
            let a = cloud.weights[i].ln();
            a + cloud.mass.ln() + cloud.kept(i, scaling.potential(slot)[i] - a + shift)
        };
        sums.iter().enumerate().map(|(i, s)| mass(i) - s).collect()
    }

    /// A half-step of a cloud with itself over the draws.
    fn own_scaling(&self, drawn: &Drawn, side: Side) -> RowScaling {
        let site = self.exact.site();
        let unbalanced = site.unbalanced();
        let cloud = self.cloud(unbalanced.as_ref(), 0);
        let columns = Chosen::some(side, &drawn.points);
        let all = drawn.sums(&*site.between(Chosen::all(side), columns));
        // Points that were drawn do not count for themselves.
        let mut others = all.clone();
        let mut found = drawn.points.clone();
        found.dedup();
        let rows = site.between(Chosen::some(side, &found), columns);
        let apart = drawn.sums(&Apart::new(rows, &found, &drawn.points));
        for (&i, sum) in found.iter().zip(apart) {
            others[i] = sum;
        }
        let mut times = vec![0; cloud.weights.len()];
        drawn.points.iter().for_each(|&i| times[i] += 1);
        let (mut logs, mut own) = (Vec::new(), Vec::new());
        for (i, a) in cloud.weights.iter().enumerate() {
            let s = others[i] + drawn.others(times[i]).ln() + drawn.shift;
            let f = cloud.best_own(i, s, *a);
            let mass = a.ln() + cloud.mass.ln() + cloud.kept(i, f);
            // The part of it that is elsewhere: S t / (a t^2 + S t).
            let moving = mass - (a.ln() + f - s).exp().ln_1p();
            let scaling = if others[i] > f64::NEG_INFINITY { moving - others[i] } else { moving };
            logs.push(scaling);
            own.push(mass.exp() - (scaling + all[i]).exp());
        }
        RowScaling { logs, own }
    }
}
