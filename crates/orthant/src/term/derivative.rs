//! Derivatives of the value of a term, by the envelope theorem: potentials need no derivatives, they are optimal.
//!
//! Whatever moves the logarithms of the kernel moves the value by `dW = -eps sum_ij P_ij d log K_ij`. With features
//! `L_ik = log phi_k(x_i)` and the message `z` of the other cloud the masses `w_ik = u_i exp(L_ik + z_k)` of points
//! and features take the place of the plan, one cloud after the other:
//!
//! ```text
//! dW = -eps sum_ik w_ik d L_ik     (points, anchors, epsilon)
//! ```
//!
//! An exact kernel is a map with an anchor at each point of the other cloud. In the coordinates of a gauge the cost has
//! the offsets `p_i + q_j` too, which add `sum_j P_ij d p_i`. Coordinates, anchors and lattices are taken as they are:
//! they stay where they were put.

use rayon::prelude::*;

use super::RowScaling;
use super::plan::TermPlan;
use crate::anchors::Lattice;
use crate::comm::Partition;
use crate::control::Cancel;
use crate::error::{Error, Result};
use crate::features::{Affine, Derivative, FeatureMap, Mapped};
use crate::kernel::{HalfKernel, LogPass, Separable};
use crate::measure::Points;
use crate::numerics::simd::{self, Float};
use crate::rows::{GroundRows, LogRows};
use crate::words::Part;

/// What stands between one cloud of a term and the other, as derivatives see it.
pub(crate) enum Operand<'a> {
    /// Features of points, in the coordinates of the map.
    Map(&'a dyn FeatureMap, Points<'a>),
    /// The kernel itself.
    Exact(Affine, Points<'a>),
    /// Nodes of a lattice, and the points.
    Lattice(&'a Lattice, Points<'a>),
    /// Features that the caller has computed.
    Given(Box<dyn LogRows + 'a>),
    /// Costs that the caller has computed.
    Costs(Box<dyn LogRows + 'a>),
    /// A cost that is no squared distance, and the points in the coordinates of the user.
    Pairs(GroundRows<'a>, Points<'a>),
}

impl Operand<'_> {
    /// The map and its points.
    fn map(&self) -> Option<(&dyn FeatureMap, &Points<'_>)> {
        match self {
            Operand::Map(map, points) => Some((*map, points)),
            Operand::Exact(map, points) => Some((map, points)),
            _ => None,
        }
    }

    /// Rows of logarithms; lattices have none.
    fn rows<'r>(&'r self, cancel: &'r Cancel) -> Option<Box<dyn LogRows + 'r>> {
        match self {
            Operand::Lattice(..) => None,
            Operand::Given(rows) | Operand::Costs(rows) => Some(Box::new(&**rows)),
            Operand::Map(..) | Operand::Exact(..) => {
                let (map, points) = self.map()?;
                Some(Box::new(cancel.guard(Mapped::new(map, points.borrowed()))))
            }
            Operand::Pairs(rows, _) => Some(Box::new(cancel.guard(rows))),
        }
    }

    /// Why there is no derivative by the points, or by the anchors.
    fn derivative(&self) -> Result<(&dyn Derivative, &Points<'_>)> {
        match (self, self.map()) {
            (_, Some((map, points))) => Ok((map.derivative()?, points)),
            (Operand::Pairs(rows, points), _) if rows.has_slopes() => Ok((rows, points)),
            (Operand::Pairs(..), _) => Err(Error::NoDerivative {
                by: "the points",
                reason: "the cost is a function without a derivative",
                remedy: "use a cost that has a name",
            }),
            (Operand::Costs(_), _) => Err(Error::NoDerivative {
                by: "the points",
                reason: "the costs are given as a matrix",
                remedy: "that by the costs is the plan",
            }),
            _ => Err(Error::NoDerivative {
                by: "the points",
                reason: "the features are given as matrices",
                remedy: "take that by the features",
            }),
        }
    }
}

/// What a derivative by epsilon is made of.
pub(crate) struct ByEpsilon {
    /// `sum_ij P_ij d log K_ij / d log eps` in the coordinates of the term.
    pub(crate) kernel: f64,
    /// The marginals of the plan on the supports.
    pub(crate) marginals: [Vec<f64>; 2],
    /// That of the plan.
    pub(crate) mass: f64,
    /// What the coordinates add to the cost of the plan.
    pub(crate) moved: f64,
}

/// Chunks of a cloud at most, and numbers in all sums over chunks.
const MASS_CHUNKS: usize = 64;
const SUMS: usize = 1 << 24;

impl TermPlan<'_> {
    /// One cloud, the first or the second.
    fn operand(&self, slot: usize) -> Result<Operand<'_>> {
        self.kernel.operand(&self.scaling.state, self.kernel.site().clouds()[slot])
    }

    /// The logarithms of what the rows of the operand of one cloud are multiplied with, and the masses that its points have
    /// beside these rows.
    fn row_scaling(&self, slot: usize) -> (Vec<f64>, Vec<f64>) {
        if let Some(RowScaling { logs, own }) = self.kernel.row_scaling(self.scaling, slot) {
            return (logs, own);
        }
        let logs = self.scaling.plan_logs(slot);
        let own = vec![0.0; logs.len()];
        (logs, own)
    }

    /// What one cloud sends to the other, padded: the logarithms of its sums over features, or its potential.
    pub(crate) fn message(&self, slot: usize) -> Result<Vec<f64>> {
        let f = self.scaling.potential(slot);
        let operand = self.operand(slot)?;
        if let Operand::Lattice(lattice, points) = &operand {
            let mut message = vec![0.0; lattice.nodes()];
            Separable::<f64>::new(points, lattice, f64::CUTOFF).message(f, &mut message);
            return Ok(message);
        }
        // What the solve ended with needs no pass.
        let messages = &self.scaling.messages;
        let known = messages.get(slot).or(messages.first());
        let mut message = known.map_or(f, |known| known).to_vec();
        message.resize(simd::padded(message.len()), 0.0);
        if known.is_some() {
            return Ok(message);
        }
        if let (Operand::Map(..) | Operand::Given(_), Some(rows)) =
            (&operand, operand.rows(self.cancel()))
        {
            message = vec![0.0; simd::padded(rows.rank())];
            LogPass::of(&*rows).column_sums(&*rows, f, &mut message[..rows.rank()]);
        }
        Ok(message)
    }

    /// How the points of one cloud see the nodes of a lattice: see [`Separable::views`].
    fn views(
        &self,
        (lattice, points): (&Lattice, &Points<'_>),
        slot: usize,
        message: &[f64],
        squares: bool,
    ) -> Result<Vec<f64>> {
        let site = self.kernel.site();
        let pair = site.clouds();
        Separable::<f64>::new(points, lattice, f64::CUTOFF)
            .views(message, squares)
            .map_err(|e| site.in_user_rows(e, Part::Support, [pair[slot], pair[1 - slot]]))
    }

    /// The gradient of the value of a term by the points of one of its clouds, on the support, row by row. `message` is
    /// that of the other cloud.
    pub(crate) fn point_gradient(&self, slot: usize, message: &[f64]) -> Result<Vec<f64>> {
        let site = self.kernel.site();
        let cloud = site.clouds()[slot];
        let (f, own) = self.row_scaling(slot);
        let dim = site.measure(cloud).dim();
        let operand = self.operand(slot)?;
        let (mut out, mut masses) = (vec![0.0; f.len() * dim], vec![0.0; f.len()]);
        if let Operand::Lattice(lattice, points) = &operand {
            let views = self.views((lattice, points), slot, message, false)?;
            let pull = 4.0 / lattice.epsilon();
            let rows = out.chunks_exact_mut(dim).zip(&mut masses).zip(&f);
            for (((out, mass), f), view) in rows.zip(views.chunks_exact(dim + 2)) {
                *mass = (f + view[dim + 1]).exp();
                out.iter_mut().zip(view).for_each(|(o, away)| *o = pull * *mass * away);
            }
        } else if let Some(rows) = operand.rows(self.cancel()) {
            let (derivative, points) = operand.derivative()?;
            let partition = Partition::new(rows.span(), MASS_CHUNKS);
            let mut pass = LogPass::new(&*rows, partition.clone());
            let (chunk, stride) = (partition.chunk(), pass.stride());
            let shares = (out.par_chunks_mut(chunk * dim), masses.par_chunks_mut(chunk));
            pass.masses(
                &*rows,
                &f,
                message,
                shares.into_par_iter(),
                |(out, masses), rows, first, w| {
                    let own = &mut out[rows.start * dim..rows.end * dim];
                    derivative.points(points, first, stride, w, own);
                    for (mass, w) in masses[rows].iter_mut().zip(w.chunks_exact(stride)) {
                        *mass = simd::sum(w);
                    }
                },
            );
        }
        masses.iter_mut().zip(own).for_each(|(mass, own)| *mass += own);
        site.to_user_gradient(cloud, &masses, &mut out);
        Ok(out)
    }

    /// The gradient of the value of a term by the parameters of the map of one of its clouds, in the user's units.
    pub(crate) fn parameter_gradient(&self, slot: usize, message: &[f64]) -> Result<Vec<f64>> {
        let none = |reason, remedy| Err(Error::NoDerivative { by: "the anchors", reason, remedy });
        let operand = self.operand(slot)?;
        let (derivative, points) = match &operand {
            Operand::Lattice(..) => {
                return none(
                    "a lattice stays where it is",
                    "use random anchors, or a map of your own",
                );
            }
            Operand::Exact(..) | Operand::Given(_) | Operand::Costs(_) | Operand::Pairs(..) => {
                return none("the kernel has none", "use features of points");
            }
            Operand::Map(..) => operand.derivative()?,
        };
        let count = derivative.parameters();
        if count == 0 {
            return none("the map has no parameters", "use random anchors, or a map of your own");
        }
        let Some(rows) = operand.rows(self.cancel()) else { unreachable!("maps have rows") };
        let f = self.scaling.plan_logs(slot);
        let partition = Partition::new(rows.span(), (SUMS / count).clamp(1, MASS_CHUNKS));
        let mut pass = LogPass::new(&*rows, partition.clone());
        let stride = pass.stride();
        let mut sums = vec![0.0; partition.count() * count];
        pass.masses(&*rows, &f, message, sums.par_chunks_mut(count), |sums, _, first, w| {
            derivative.add_parameters(points, first, stride, w, sums);
        });
        let mut total = vec![0.0; count];
        partition.sum(&sums, &mut total);
        let site = self.kernel.site();
        for t in &mut total {
            *t *= -site.options().epsilon * site.shrink();
        }
        Ok(total)
    }

    /// What the derivative of the value of a term by epsilon is made of; `messages` are those that the clouds sent.
    pub(crate) fn by_epsilon(&self, messages: [&[f64]; 2]) -> Result<ByEpsilon> {
        let mut kernel = 0.0;
        let mut marginals = [Vec::new(), Vec::new()];
        for slot in [0, 1] {
            let (f, own) = self.row_scaling(slot);
            let operand = self.operand(slot)?;
            let message = messages[1 - slot];
            let mut masses = vec![0.0; f.len()];
            if let Operand::Lattice(lattice, points) = &operand {
                let views = self.views((lattice, points), slot, message, true)?;
                let dim = lattice.dim();
                for ((mass, f), view) in masses.iter_mut().zip(&f).zip(views.chunks_exact(dim + 2))
                {
                    *mass = (f + view[dim + 1]).exp();
                }
                // log phi = (d/4) log(1 / eps) - 2 |x - u|^2 / eps + constant
                let square = |i: usize| views[i * (dim + 2) + dim];
                kernel += points
                    .span()
                    .sum(|i| masses[i] * (2.0 * square(i) / lattice.epsilon() - 0.25 * dim as f64));
            } else if let Some(rows) = operand.rows(self.cancel()) {
                let partition = Partition::new(rows.span(), MASS_CHUNKS);
                let mut pass = LogPass::new(&*rows, partition.clone());
                // Where nothing else depends on epsilon, or not even the features do.
                let derivative =
                    operand.map().and_then(|(m, points)| Some((m.derivative().ok()?, points)));
                let (chunk, stride) = (partition.chunk(), pass.stride());
                let mut sums = vec![0.0; partition.count()];
                let shares = (sums.par_iter_mut(), masses.par_chunks_mut(chunk)).into_par_iter();
                pass.masses(&*rows, &f, message, shares, |(sum, masses), rows, first, w| {
                    for (mass, w) in masses[rows].iter_mut().zip(w.chunks_exact(stride)) {
                        *mass = simd::sum(w);
                    }
                    if let Some((derivative, points)) = derivative {
                        **sum += derivative.log_epsilon(points, first, stride, w);
                    }
                });
                match &operand {
                    // One kernel, not one for each cloud.
                    Operand::Exact(..) | Operand::Costs(_) | Operand::Pairs(..) if slot == 1 => {}
                    Operand::Costs(_) | Operand::Pairs(..) => {
                        kernel -= pass.expected_log(&*rows, &f, message);
                    }
                    _ => {
                        let mut sum = [0.0];
                        partition.sum(&sums, &mut sum);
                        kernel += sum[0];
                    }
                }
            }
            masses.iter_mut().zip(own).for_each(|(mass, own)| *mass += own);
            marginals[slot] = masses;
        }
        let site = self.kernel.site();
        let mass = site.span(site.clouds()[0]).sum(|i| marginals[0][i]);
        let moved = site.moved_cost([&marginals[0], &marginals[1]]) + mass * site.constant();
        Ok(ByEpsilon { kernel, marginals, mass, moved })
    }

    /// `w_ik`, `scale` times, of one cloud of a term, added to the rows of `out`.
    pub(crate) fn add_feature_masses(
        &self,
        slot: usize,
        message: &[f64],
        scale: f64,
        out: &mut [f64],
    ) -> Result<()> {
        let operand = self.operand(slot)?;
        let (Operand::Map(..) | Operand::Given(_), Some(rows)) =
            (&operand, operand.rows(self.cancel()))
        else {
            return Err(NO_FEATURES);
        };
        let partition = Partition::new(rows.span(), MASS_CHUNKS);
        let mut pass = LogPass::new(&*rows, partition.clone());
        let (rank, stride) = (rows.rank(), pass.stride());
        let f = self.scaling.plan_logs(slot);
        let shares = out.par_chunks_mut(partition.chunk() * rank);
        pass.masses(&*rows, &f, message, shares, |out, rows, _, w| {
            let own = out[rows.start * rank..rows.end * rank].chunks_exact_mut(rank);
            for (out, w) in own.zip(w.chunks_exact(stride)) {
                out.iter_mut().zip(w).for_each(|(o, w)| *o += scale * w);
            }
        });
        Ok(())
    }

    /// Number of features, if there are any that are one by one.
    pub(crate) fn feature_rank(&self) -> Result<usize> {
        match self.operand(0)? {
            Operand::Map(map, _) => Ok(map.rank()),
            Operand::Given(rows) => Ok(rows.rank()),
            _ => Err(NO_FEATURES),
        }
    }

    /// `sum_ij P_ij (phi_i + psi_j)` of potentials on all points and marginals on the supports.
    pub(crate) fn prices(&self, marginals: &[Vec<f64>; 2], potentials: [&[f64]; 2]) -> f64 {
        let site = self.kernel.site();
        let of = |slot: usize| {
            let measure = site.measure(site.clouds()[slot]);
            let potential = measure.gather(potentials[slot]);
            measure.support().points.span().sum(|i| marginals[slot][i] * potential[i])
        };
        of(0) + of(1)
    }

    /// The masses of the two clouds, as far as they matter.
    pub(crate) fn masses(&self) -> [f64; 2] {
        let site = self.kernel.site();
        let relaxed = site.options().is_unbalanced();
        site.clouds().map(|cloud| if relaxed { site.measure(cloud).mass() } else { 1.0 })
    }
}

const NO_FEATURES: Error = Error::NoDerivative {
    by: "the features",
    reason: "the kernel has none, or has them as products over the axes",
    remedy: "take that by the points, or store the features",
};
