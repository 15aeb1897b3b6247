//! The plan of a solve: its kernel pair by pair, its sums, and samples of it.

use rayon::prelude::*;

use super::stage::Placement;
use super::{Ground, Problem, Scaling, Storage, lattice_sums, log_pass};
use crate::control::Cancel;
use crate::error::{Error, Result};
use crate::features::Mapped;
use crate::kernel::Separable;
use crate::measure::{Measure, Points};
use crate::numerics::simd::{self, Float};
use crate::rows::{FeatureCost, LogRows};
use crate::sampling::{self, Listed, OnLattice, Wheel};
use crate::words::{Cloud, Part, Term};

/// A kernel between two supports, pair by pair.
enum Pairwise<'a> {
    /// `sum_k phi_k(x_i) psi_k(y_j)`.
    Features([Box<dyn LogRows + 'a>; 2]),
    /// `k(x_i, y_j) exp(s)` for any `i`, `j`, `s`.
    Each(Box<dyn Fn(usize, usize, f64) -> f64 + Sync + 'a>),
}

impl Pairwise<'_> {
    /// One entry of the plan.
    fn entry(&self, scaling: &Scaling, i: usize, j: usize) -> f64 {
        let shift = scaling.f[i] + scaling.g[j] + scaling.level;
        match self {
            Pairwise::Each(entry) => entry(i, j, shift),
            Pairwise::Features([x, y]) => {
                (sampling::log_kernel([&**x, &**y], &[[i, j]])[0] + shift).exp()
            }
        }
    }

    /// A row of the plan, or a column: all entries with point `i` of a cloud.
    fn strip(&self, scaling: &Scaling, cloud: Cloud, i: usize) -> Vec<f64> {
        let (own, others) = match cloud {
            Cloud::X => (scaling.f[i], &scaling.g),
            Cloud::Y => (scaling.g[i], &scaling.f),
        };
        let own = own + scaling.level;
        let mut out = vec![0.0; others.len()];
        match self {
            Pairwise::Each(entry) => {
                out.par_iter_mut().zip(others).enumerate().with_min_len(1024).for_each(
                    |(j, (out, other))| {
                        let [i, j] = if cloud == Cloud::X { [i, j] } else { [j, i] };
                        *out = entry(i, j, own + other);
                    },
                );
            }
            Pairwise::Features(both) => {
                let (this, other) = match cloud {
                    Cloud::X => (&*both[0], &*both[1]),
                    Cloud::Y => (&*both[1], &*both[0]),
                };
                let mut features = vec![0.0; simd::padded(this.rank())];
                sampling::row(this, i, &mut features, &mut vec![0.0; this.scratch()]);
                log_pass(other).row_sums(other, &features, &mut out);
                out.iter_mut().zip(others).for_each(|(out, g)| *out = (*out + own + g).exp());
            }
        }
        out
    }

    /// All entries, row-major.
    fn dense(self, scaling: &Scaling, cancel: &Cancel) -> Vec<f64> {
        let (columns, level) = (scaling.g.len(), scaling.level);
        let mut out = vec![0.0; scaling.f.len() * columns];
        match self {
            Pairwise::Each(entry) => {
                out.par_chunks_mut(columns).zip(&scaling.f).enumerate().for_each(
                    |(i, (row, f))| {
                        cancel.check();
                        for (j, (out, g)) in row.iter_mut().zip(&scaling.g).enumerate() {
                            *out = entry(i, j, f + g + level);
                        }
                    },
                );
            }
            Pairwise::Features([x, y]) => {
                let rows = FeatureCost::new(x, y);
                let group = rows.group();
                out.par_chunks_mut(group * columns).enumerate().for_each(|(c, out)| {
                    rows.fill(c * group, columns, out, &mut vec![0.0; rows.scratch()]);
                    for (row, f) in out.chunks_exact_mut(columns).zip(&scaling.f[c * group..]) {
                        let own = f + level;
                        row.iter_mut().zip(&scaling.g).for_each(|(p, g)| *p = (*p + own + g).exp());
                    }
                });
            }
        }
        out
    }
}

/// The one term that has a plan of two clouds.
const TERM: Term = Term::Cross;

impl<'p> Problem<'p> {
    /// The two measures.
    pub(crate) fn measures(&self) -> [&'p Measure<'p>; 2] {
        [self.mu, self.nu]
    }

    pub(crate) fn max_memory(&self) -> Option<u64> {
        self.options.max_memory
    }

    fn pairwise<'a>(&'a self, scaling: &'a Scaling) -> Pairwise<'a> {
        let features = || {
            Pairwise::Features([Cloud::X, Cloud::Y].map(|c| self.features(TERM, c, Part::Support)))
        };
        match &self.ground {
            Ground::Maps { .. } | Ground::Explicit(..) => features(),
            Ground::Matrix(cost) => {
                let index = [self.mu, self.nu].map(|measure| measure.indices(true));
                let of = move |c: usize, i: usize| index[c].map_or(i, |kept| kept[i]);
                let epsilon = self.options.epsilon;
                Pairwise::Each(Box::new(move |i, j, shift| {
                    ((cost.least() - cost.cost(of(0, i), of(1, j))) / epsilon + shift).exp()
                }))
            }
            Ground::Euclidean { .. } => {
                let stage = self.stage(TERM).expect("always solved");
                let [x, y] = [Cloud::X, Cloud::Y].map(|c| stage.points(c, Part::Support));
                let epsilon = stage.gauge.epsilon();
                match &stage.features {
                    Placement::Map(_) => features(),
                    Placement::Lattice(first) => {
                        let lattice = scaling.lattice.as_ref().unwrap_or(first);
                        if let Some(map) = &scaling.listed {
                            let of = |points: &'a Points<'_>| -> Box<dyn LogRows + 'a> {
                                let rows = Mapped::new(map, points.borrowed());
                                Box::new(self.options.cancel.guard(rows))
                            };
                            return Pairwise::Features([of(x), of(y)]);
                        }
                        Pairwise::Each(Box::new(move |i, j, shift| {
                            let log =
                                lattice.log_kernel(|a| x.coordinate(i, a), |a| y.coordinate(j, a));
                            (log + shift).exp()
                        }))
                    }
                    Placement::Nystrom(factors) => Pairwise::Each(Box::new(move |i, j, shift| {
                        let entry = factors.entry(i, j);
                        entry.signum() * (entry.abs().ln() + shift).exp()
                    })),
                    Placement::Exact => Pairwise::Each(Box::new(move |i, j, shift| {
                        let away = |a| x.coordinate(i, a) - y.coordinate(j, a);
                        let square: f64 = (0..x.dim()).map(|a| away(a).powi(2)).sum();
                        (shift - square / epsilon).exp()
                    })),
                }
            }
        }
    }

    /// One entry of the plan; points are those of the supports here and below.
    pub(crate) fn plan_entry(&self, scaling: &Scaling, i: usize, j: usize) -> f64 {
        self.pairwise(scaling).entry(scaling, i, j)
    }

    /// The entries of the plan with point `i` of a cloud.
    pub(crate) fn plan_strip(&self, scaling: &Scaling, cloud: Cloud, i: usize) -> Vec<f64> {
        self.pairwise(scaling).strip(scaling, cloud, i)
    }

    /// All entries of the plan.
    pub(crate) fn plan_dense(&self, scaling: &Scaling) -> Vec<f64> {
        self.pairwise(scaling).dense(scaling, &self.options.cancel)
    }

    /// The sums of the rows of the plan, or those of its columns.
    pub(crate) fn plan_sums(&self, scaling: &Scaling, cloud: Cloud) -> Result<Vec<f64>> {
        let logs = self.log_plan_sums(scaling, cloud)?;
        Ok(logs.into_iter().map(|log| (log + scaling.level).exp()).collect())
    }

    /// Their logarithms, without the level.
    fn log_plan_sums(&self, scaling: &Scaling, cloud: Cloud) -> Result<Vec<f64>> {
        let (other, own, g) = match cloud {
            Cloud::X => (Cloud::Y, &scaling.f, &scaling.g),
            Cloud::Y => (Cloud::X, &scaling.g, &scaling.f),
        };
        let sums = match (self.storage, &scaling.lattice) {
            (Storage::Separable, Some(lattice)) => {
                let stage = self.stage(TERM).expect("lattices are for squared Euclidean costs");
                let points = |cloud| stage.points(cloud, Part::Support);
                lattice_sums(lattice, points(cloud), points(other), g)
                    .map_err(|error| self.in_user_rows(error, Part::Support, [cloud, other]))?
            }
            (Storage::Nystrom, _) => {
                let (_, factors) = self.factors(TERM);
                factors.log_sums(cloud, other, g).map_err(|error| {
                    self.in_user_rows(error, Part::Support, [Cloud::X, Cloud::Y])
                })?
            }
            _ => self.log_sums(TERM, cloud, Part::Support, other, g),
        };
        Ok(sums.iter().zip(own).map(|(s, f)| s + f).collect())
    }

    /// `<P, C>` pair by pair, where features define the cost.
    pub(crate) fn plan_cost(&self, scaling: &Scaling) -> f64 {
        scaling.level.exp() * self.cost_over_all_pairs(TERM, &scaling.f, &scaling.g)
    }

    /// A pair of the plan for each three numbers between 0 and 1.
    pub(crate) fn plan_sample(
        &self,
        scaling: &Scaling,
        draws: &[[f64; 3]],
    ) -> Result<Vec<[usize; 2]>> {
        let Scaling { f, g, lattice, .. } = scaling;
        if let (Storage::Separable, Some(lattice)) = (self.storage, lattice) {
            let stage = self.stage(TERM).expect("lattices are for squared Euclidean costs");
            let [x, y] = [Cloud::X, Cloud::Y].map(|c| stage.points(c, Part::Support));
            let side = |points| Separable::new(points, lattice, f64::CUTOFF);
            let (mut x, mut y) = (OnLattice::new(side(x), f), OnLattice::new(side(y), g));
            return Ok(sampling::pairs([&mut x, &mut y], draws));
        }
        if self.storage == Storage::Nystrom {
            return Err(Error::SignedPlan);
        }
        if let Pairwise::Features([x, y]) = self.pairwise(scaling) {
            let (mut x, mut y) = (Listed::new(&*x, f), Listed::new(&*y, g));
            return Ok(sampling::pairs([&mut x, &mut y], draws));
        }
        // An exact kernel: a row, and a column in it.
        let rows = self.log_plan_sums(scaling, Cloud::X)?;
        let wheel = Wheel::new(rows.into_iter().map(f64::exp));
        let mut order: Vec<(usize, usize)> =
            draws.iter().enumerate().map(|(draw, d)| (wheel.at(d[0]), draw)).collect();
        order.par_sort_unstable();
        let rows: Vec<usize> = order.iter().map(|(i, _)| *i).collect();
        let entries = self.entries(TERM, Cloud::X, Part::Support, Cloud::Y);
        let mut z = g.clone();
        z.resize(simd::padded(g.len()), f64::NEG_INFINITY);
        let columns = sampling::along_rows(&*entries, &z, &rows, |at| draws[order[at].1][1]);
        let mut pairs = vec![[0; 2]; draws.len()];
        for ((i, draw), j) in order.into_iter().zip(columns) {
            pairs[draw] = [i, j];
        }
        Ok(pairs)
    }
}
