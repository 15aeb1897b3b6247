//! The plan of a solve: its kernel pair by pair, its sums, and samples of it.

use rayon::prelude::*;

use super::plan::{Scaling, TermPlan};
use crate::control::Cancel;
use crate::error::Result;
use crate::kernel::{ExactHalf, HalfKernel, LogPass, Recomputed};
use crate::numerics::simd;
use crate::rows::{FeatureCost, LogRows};
use crate::sampling::{self, Wheel};
use crate::words::{Part, Side};

/// A kernel between two supports, pair by pair.
pub(crate) enum Pairwise<'a> {
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
    fn strip(&self, scaling: &Scaling, cloud: Side, i: usize) -> Vec<f64> {
        let (own, others) = match cloud {
            Side::X => (scaling.f[i], &scaling.g),
            Side::Y => (scaling.g[i], &scaling.f),
        };
        let own = own + scaling.level;
        let mut out = vec![0.0; others.len()];
        match self {
            Pairwise::Each(entry) => {
                out.par_iter_mut().zip(others).enumerate().with_min_len(1024).for_each(
                    |(j, (out, other))| {
                        let [i, j] = if cloud == Side::X { [i, j] } else { [j, i] };
                        *out = entry(i, j, own + other);
                    },
                );
            }
            Pairwise::Features(both) => {
                let (this, other) = match cloud {
                    Side::X => (&*both[0], &*both[1]),
                    Side::Y => (&*both[1], &*both[0]),
                };
                let mut features = vec![0.0; simd::padded(this.rank())];
                sampling::row(this, i, &mut features, &mut vec![0.0; this.scratch()]);
                LogPass::of(other).row_sums::<f64>(other, &features, &mut out);
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

/// Mean of `log k` under the plan with these potentials, of rows over the points of the second cloud.
pub(super) fn mean_log(rows: Box<dyn LogRows + '_>, f: &[f64], g: &[f64]) -> f64 {
    let mut rows = Recomputed::<f64>::new(rows);
    rows.set_potential(f);
    rows.expected_log(g)
}

/// A pair of the plan for each three numbers between 0 and 1, of rows over the points of the second cloud, with the
/// logarithms of `u` and `v`, and those of the sums of the rows with `v`: a row, and a column in it.
pub(super) fn sample_rows(
    rows: &dyn LogRows,
    sums: &[f64],
    (f, g): (&[f64], &[f64]),
    draws: &[[f64; 3]],
) -> Vec<[usize; 2]> {
    let wheel = Wheel::new(sums.iter().zip(f).map(|(s, f)| (s + f).exp()));
    let mut order: Vec<(usize, usize)> =
        draws.iter().enumerate().map(|(draw, d)| (wheel.at(d[0]), draw)).collect();
    order.par_sort_unstable();
    let chosen: Vec<usize> = order.iter().map(|(i, _)| *i).collect();
    let mut z = g.to_vec();
    z.resize(simd::padded(g.len()), f64::NEG_INFINITY);
    let columns = sampling::along_rows(rows, &z, &chosen, |at| draws[order[at].1][1]);
    let mut pairs = vec![[0; 2]; draws.len()];
    for ((i, draw), j) in order.into_iter().zip(columns) {
        pairs[draw] = [i, j];
    }
    pairs
}

impl TermPlan<'_> {
    fn pairwise(&self) -> Pairwise<'_> {
        self.kernel.pairwise(&self.scaling.state)
    }

    /// One entry; points are those of the supports here and below.
    pub(crate) fn entry(&self, i: usize, j: usize) -> f64 {
        self.pairwise().entry(self.scaling, i, j)
    }

    /// The entries with point `i` of a cloud.
    pub(crate) fn strip(&self, cloud: Side, i: usize) -> Vec<f64> {
        self.pairwise().strip(self.scaling, cloud, i)
    }

    /// All entries.
    pub(crate) fn dense(&self) -> Vec<f64> {
        self.pairwise().dense(self.scaling, self.cancel())
    }

    /// The sums of the rows, or those of the columns.
    pub(crate) fn sums(&self, cloud: Side) -> Result<Vec<f64>> {
        let Scaling { level, state, .. } = self.scaling;
        let own = self.scaling.potential(cloud as usize);
        let sums = self.kernel.log_sums(state, cloud, Part::Support, self.opposite(cloud))?;
        Ok(sums.iter().zip(own).map(|(s, f)| (s + f + level).exp()).collect())
    }

    /// `<P, C>` pair by pair, where features define the cost.
    pub(crate) fn cost(&self) -> f64 {
        let Scaling { f, g, level, .. } = self.scaling;
        let mean = match self.pairwise() {
            Pairwise::Features([x, y]) => mean_log(Box::new(FeatureCost::new(x, y)), f, g),
            Pairwise::Each(entry) => (0..f.len())
                .into_par_iter()
                .map(|i| {
                    let of = |j: usize| entry(i, j, f[i] + g[j]) * entry(i, j, 0.0).ln();
                    (0..g.len()).map(of).sum::<f64>()
                })
                .collect::<Vec<f64>>()
                .iter()
                .sum(),
        };
        -self.kernel.site().options().epsilon * level.exp() * mean
    }

    /// A pair for each three numbers between 0 and 1.
    pub(crate) fn sample(&self, draws: &[[f64; 3]]) -> Result<Vec<[usize; 2]>> {
        self.kernel.sample(self.scaling, draws)
    }
}
