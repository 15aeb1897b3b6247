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

use super::stage::Placement;
use super::{Ground, Problem, Scaling, log_pass};
use crate::anchors::Lattice;
use crate::control::Cancel;
use crate::coordinates::Frame;
use crate::error::{Error, Result};
use crate::features::{Affine, Derivative, FeatureMap, Mapped, SquaredEuclidean};
use crate::kernel::{LogPass, Separable, Side};
use crate::measure::Points;
use crate::numerics::simd::{self, Float};
use crate::numerics::{Local, Partition, Reduce, dot};
use crate::rows::LogRows;
use crate::words::{Part, Term, clouds};

/// What stands between one cloud of a term and the other, as derivatives see it.
enum Half<'a> {
    /// Features of points, in the coordinates of the map.
    Map(&'a dyn FeatureMap, Points<'a>),
    /// The kernel itself.
    Exact(Affine, Points<'a>),
    Lattice(&'a Lattice),
    /// Features that the caller has computed.
    Given(Box<dyn LogRows + 'a>),
    /// Costs that the caller has computed.
    Costs(Box<dyn LogRows + 'a>),
}

impl Half<'_> {
    /// The map and its points.
    fn map(&self) -> Option<(&dyn FeatureMap, &Points<'_>)> {
        match self {
            Half::Map(map, points) => Some((*map, points)),
            Half::Exact(map, points) => Some((map, points)),
            _ => None,
        }
    }

    /// Rows of logarithms; lattices have none.
    fn rows<'r>(&'r self, cancel: &'r Cancel) -> Option<Box<dyn LogRows + 'r>> {
        match self {
            Half::Lattice(_) => None,
            Half::Given(rows) | Half::Costs(rows) => Some(Box::new(&**rows)),
            Half::Map(..) | Half::Exact(..) => {
                let (map, points) = self.map()?;
                Some(Box::new(cancel.guard(Mapped::new(map, points.borrowed()))))
            }
        }
    }

    /// Why there is no derivative by the points, or by the anchors.
    fn derivative(&self) -> Result<(&dyn Derivative, &Points<'_>)> {
        match (self, self.map()) {
            (_, Some((map, points))) => Ok((map.derivative()?, points)),
            (Half::Costs(_), _) => Err(Error::NoDerivative {
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
    /// What the coordinates add to the cost of the plan.
    pub(crate) moved: f64,
}

/// Chunks of a cloud at most, and numbers in all sums over chunks.
const CHUNKS: usize = 64;
const SUMS: usize = 1 << 24;

impl Problem<'_> {
    /// One cloud (the first or the second) of a term.
    fn half<'a>(&'a self, term: Term, scaling: &'a Scaling, slot: usize) -> Result<Half<'a>> {
        let [own, other] = [clouds(term)[slot], clouds(term)[1 - slot]];
        match &self.ground {
            Ground::Matrix(_) => Ok(Half::Costs(self.entries(term, own, Part::Support, other))),
            Ground::Explicit(..) => Ok(Half::Given(self.features(term, own, Part::Support))),
            Ground::Maps { maps, .. } => {
                Ok(Half::Map(&*maps[own as usize], self.points(own, Part::Support)))
            }
            Ground::Euclidean { .. } => {
                let stage = self.stage(term).expect("a term that is solved");
                let points = |cloud| stage.points(cloud, Part::Support);
                match &stage.features {
                    Placement::Map(map) => Ok(Half::Map(&**map, points(own).borrowed())),
                    Placement::Lattice(first) => {
                        Ok(Half::Lattice(scaling.lattice.as_ref().unwrap_or(first)))
                    }
                    Placement::Exact => {
                        let frame = Frame::unit(points(own).dim());
                        let map =
                            SquaredEuclidean::map(&frame, stage.gauge.epsilon(), points(other));
                        Ok(Half::Exact(map, points(own).borrowed()))
                    }
                    Placement::Nystrom(_) => Err(Error::NoDerivative {
                        by: "the points",
                        reason: "the Nystrom approximation depends on them through its landmarks too",
                        remedy: "use positive features or an exact method",
                    }),
                }
            }
        }
    }

    /// The logarithms of `u` on the support of one cloud of a term.
    fn potential(scaling: &Scaling, slot: usize) -> &[f64] {
        if slot == 0 { &scaling.f } else { &scaling.g }
    }

    /// The same, with the mass of the plan.
    pub(crate) fn plan_logs(scaling: &Scaling, slot: usize) -> Vec<f64> {
        Self::potential(scaling, slot).iter().map(|f| f + scaling.level).collect()
    }

    /// What one cloud of a term sends to the other, padded: the logarithms of its sums over features, or its potential.
    pub(crate) fn plan_message(
        &self,
        term: Term,
        scaling: &Scaling,
        slot: usize,
    ) -> Result<Vec<f64>> {
        let f = Self::potential(scaling, slot);
        let half = self.half(term, scaling, slot)?;
        if let (Half::Lattice(lattice), Some(stage)) = (&half, self.stage(term)) {
            let points = stage.points(clouds(term)[slot], Part::Support);
            let mut message = vec![0.0; lattice.nodes()];
            Separable::<f64>::new(points, lattice, f64::CUTOFF).message(f, &mut message);
            return Ok(message);
        }
        // What the solve ended with needs no pass.
        let known = scaling.messages.get(slot).or(scaling.messages.first());
        let mut message = known.map_or(f, |known| known).to_vec();
        message.resize(simd::padded(message.len()), 0.0);
        if known.is_some() {
            return Ok(message);
        }
        if let (Half::Map(..) | Half::Given(_), Some(rows)) =
            (&half, half.rows(&self.options.cancel))
        {
            message = vec![0.0; simd::padded(rows.rank())];
            log_pass(&*rows).column_sums(&*rows, f, &mut message[..rows.rank()]);
        }
        Ok(message)
    }

    /// How the points of one cloud of a term see the nodes of a lattice: see [`Separable::views`].
    fn views(
        &self,
        term: Term,
        lattice: &Lattice,
        slot: usize,
        message: &[f64],
        squares: bool,
    ) -> Result<Vec<f64>> {
        let pair = clouds(term);
        let stage = self.stage(term).expect("lattices are for squared Euclidean costs");
        let points = stage.points(pair[slot], Part::Support);
        Separable::<f64>::new(points, lattice, f64::CUTOFF)
            .views(message, squares)
            .map_err(|e| self.in_user_rows(e, Part::Support, [pair[slot], pair[1 - slot]]))
    }

    /// The gradient of the value of a term by the points of one of its clouds, on the support, row by row. `message` is
    /// that of the other cloud.
    pub(crate) fn plan_point_gradient(
        &self,
        term: Term,
        scaling: &Scaling,
        slot: usize,
        message: &[f64],
    ) -> Result<Vec<f64>> {
        let cloud = clouds(term)[slot];
        let f = Self::plan_logs(scaling, slot);
        let dim = self.measure(cloud).dim();
        let half = self.half(term, scaling, slot)?;
        let (mut out, mut masses) = (vec![0.0; f.len() * dim], vec![0.0; f.len()]);
        if let Half::Lattice(lattice) = &half {
            let views = self.views(term, lattice, slot, message, false)?;
            let pull = 4.0 / lattice.epsilon();
            let rows = out.chunks_exact_mut(dim).zip(&mut masses).zip(&f);
            for (((out, mass), f), view) in rows.zip(views.chunks_exact(dim + 2)) {
                *mass = (f + view[dim + 1]).exp();
                out.iter_mut().zip(view).for_each(|(o, away)| *o = pull * *mass * away);
            }
        } else if let Some(rows) = half.rows(&self.options.cancel) {
            let (derivative, points) = half.derivative()?;
            let partition = Partition::new(rows.rows(), CHUNKS);
            let mut pass = LogPass::new(&*rows, partition);
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
        self.to_user_gradient(term, slot, &masses, &mut out);
        Ok(out)
    }

    /// Turns `sum_k w_ik d L_ik / d x_i` of all points into the gradient of the value in the user's coordinates.
    fn to_user_gradient(&self, term: Term, slot: usize, masses: &[f64], out: &mut [f64]) {
        const ROWS: usize = 1024;
        let Some(stage) = self.stage(term) else {
            for g in &mut *out {
                *g *= -self.options.epsilon;
            }
            return;
        };
        let (cloud, gauge) = (clouds(term)[slot], &stage.gauge);
        let (placed, points) =
            (stage.points(cloud, Part::Support), self.measure(cloud).support().points);
        let (dim, epsilon) = (placed.dim(), gauge.epsilon());
        out.par_chunks_mut(ROWS * dim).enumerate().for_each(|(c, out)| {
            let (mut at, mut scratch) = (vec![0.0; dim], vec![0.0; dim]);
            for (i, gradient) in (c * ROWS..).zip(out.chunks_exact_mut(dim)) {
                for g in &mut *gradient {
                    *g *= -epsilon;
                }
                placed.copy_coordinates(i, 0, &mut at);
                gauge.pull_back(
                    cloud as usize,
                    (points, i),
                    &at,
                    masses[i],
                    gradient,
                    &mut scratch,
                );
            }
        });
    }

    /// The gradient of the value of a term by the parameters of the map of one of its clouds, in the user's units.
    pub(crate) fn plan_parameter_gradient(
        &self,
        term: Term,
        scaling: &Scaling,
        slot: usize,
        message: &[f64],
    ) -> Result<Vec<f64>> {
        let none = |reason, remedy| Err(Error::NoDerivative { by: "the anchors", reason, remedy });
        let half = self.half(term, scaling, slot)?;
        let (derivative, points) = match &half {
            Half::Lattice(_) => {
                return none(
                    "a lattice stays where it is",
                    "use random anchors, or a map of your own",
                );
            }
            Half::Exact(..) | Half::Given(_) | Half::Costs(_) => {
                return none("the kernel has none", "use features of points");
            }
            Half::Map(..) => half.derivative()?,
        };
        let count = derivative.parameters();
        if count == 0 {
            return none("the map has no parameters", "use random anchors, or a map of your own");
        }
        let Some(rows) = half.rows(&self.options.cancel) else { unreachable!("maps have rows") };
        let f = Self::plan_logs(scaling, slot);
        let partition = Partition::new(rows.rows(), (SUMS / count).clamp(1, CHUNKS));
        let mut pass = LogPass::new(&*rows, partition);
        let stride = pass.stride();
        let mut sums = vec![0.0; partition.count() * count];
        pass.masses(&*rows, &f, message, sums.par_chunks_mut(count), |sums, _, first, w| {
            derivative.add_parameters(points, first, stride, w, sums);
        });
        let mut total = vec![0.0; count];
        Local.sum(&sums, &mut total);
        let unit = self.stage(term).map_or(1.0, |stage| stage.gauge.shrink());
        for t in &mut total {
            *t *= -self.options.epsilon * unit;
        }
        Ok(total)
    }

    /// What the derivative of the value of a term by epsilon is made of; `messages` are those that the clouds sent.
    pub(crate) fn plan_by_epsilon(
        &self,
        term: Term,
        scaling: &Scaling,
        messages: [&[f64]; 2],
    ) -> Result<ByEpsilon> {
        let mut kernel = 0.0;
        let mut marginals = [Vec::new(), Vec::new()];
        for slot in [0, 1] {
            let f = Self::plan_logs(scaling, slot);
            let half = self.half(term, scaling, slot)?;
            let message = messages[1 - slot];
            let mut masses = vec![0.0; f.len()];
            if let Half::Lattice(lattice) = &half {
                let (views, dim) = (self.views(term, lattice, slot, message, true)?, lattice.dim());
                for ((mass, f), view) in masses.iter_mut().zip(&f).zip(views.chunks_exact(dim + 2))
                {
                    *mass = (f + view[dim + 1]).exp();
                    // log phi = (d/4) log(1 / eps) - 2 |x - u|^2 / eps + constant
                    kernel += *mass * (2.0 * view[dim] / lattice.epsilon() - 0.25 * dim as f64);
                }
            } else if let Some(rows) = half.rows(&self.options.cancel) {
                let partition = Partition::new(rows.rows(), CHUNKS);
                let mut pass = LogPass::new(&*rows, partition);
                // Where nothing else depends on epsilon, or not even the features do.
                let derivative =
                    half.map().and_then(|(m, points)| Some((m.derivative().ok()?, points)));
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
                match &half {
                    // One kernel, not one for each cloud.
                    Half::Exact(..) | Half::Costs(_) if slot == 1 => {}
                    Half::Costs(_) => kernel -= pass.expected_log(&*rows, &f, message),
                    _ => kernel += sums.iter().sum::<f64>(),
                }
            }
            marginals[slot] = masses;
        }
        let mass: f64 = marginals[0].iter().sum();
        let moved = self.moved(term, [&marginals[0], &marginals[1]]) + mass * self.constant(term);
        Ok(ByEpsilon { kernel, marginals, moved })
    }

    /// `w_ik`, `scale` times, of one cloud of a term, added to the rows of `out`.
    pub(crate) fn add_feature_masses(
        &self,
        term: Term,
        scaling: &Scaling,
        slot: usize,
        message: &[f64],
        scale: f64,
        out: &mut [f64],
    ) -> Result<()> {
        let half = self.half(term, scaling, slot)?;
        let (Half::Map(..) | Half::Given(_), Some(rows)) = (&half, half.rows(&self.options.cancel))
        else {
            return Err(NO_FEATURES);
        };
        let partition = Partition::new(rows.rows(), CHUNKS);
        let mut pass = LogPass::new(&*rows, partition);
        let (rank, stride) = (rows.rank(), pass.stride());
        let f = Self::plan_logs(scaling, slot);
        let shares = out.par_chunks_mut(partition.chunk() * rank);
        pass.masses(&*rows, &f, message, shares, |out, rows, _, w| {
            let own = out[rows.start * rank..rows.end * rank].chunks_exact_mut(rank);
            for (out, w) in own.zip(w.chunks_exact(stride)) {
                out.iter_mut().zip(w).for_each(|(o, w)| *o += scale * w);
            }
        });
        Ok(())
    }

    /// Number of features of a term, if it has any that are one by one.
    pub(crate) fn feature_rank(&self, term: Term, scaling: &Scaling) -> Result<usize> {
        match self.half(term, scaling, 0)? {
            Half::Map(map, _) => Ok(map.rank()),
            Half::Given(rows) => Ok(rows.rank()),
            _ => Err(NO_FEATURES),
        }
    }

    /// Whether one map serves both clouds.
    pub(crate) fn has_one_map(&self) -> bool {
        !matches!(self.ground, Ground::Maps { shared: false, .. })
    }

    /// `sum_ij P_ij (phi_i + psi_j)` of potentials on all points and marginals on the supports.
    pub(crate) fn plan_prices(
        &self,
        term: Term,
        marginals: &[Vec<f64>; 2],
        potentials: [&[f64]; 2],
    ) -> f64 {
        (0..2)
            .map(|slot| {
                let measure = self.measure(clouds(term)[slot]);
                dot(&marginals[slot], &measure.gather(potentials[slot]))
            })
            .sum()
    }

    /// The masses of the two clouds of a term, as far as they matter.
    pub(crate) fn masses(&self, term: Term) -> [f64; 2] {
        let of = |cloud| if self.is_relaxed() { self.measure(cloud).mass() } else { 1.0 };
        clouds(term).map(of)
    }

    /// Whether a marginal is relaxed.
    pub(crate) fn is_relaxed(&self) -> bool {
        self.options.is_unbalanced()
    }
}

const NO_FEATURES: Error = Error::NoDerivative {
    by: "the features",
    reason: "the kernel has none, or has them as products over the axes",
    remedy: "take that by the points, or store the features",
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::anchors::{self, Draw};
    use crate::control::{Next, Progress};
    use crate::features::lattice_map;
    use crate::gradient::Gradient;
    use crate::measure::Measure;
    use crate::options::{Algorithm, Anchors, Features, Method, Options};
    use crate::problem::stage::Stage;
    use crate::problem::{Aim, Ground, Start, Terms};
    use crate::results::Solution;
    use crate::words::Cloud;

    impl Problem<'_> {
        /// The same coordinates, anchors and nodes for other points, weights or another epsilon.
        fn redone<'q>(
            &self,
            [mu, nu]: [&'q Measure<'q>; 2],
            options: &'q Options<'q>,
        ) -> Problem<'q> {
            let Ground::Euclidean { stages, used } = &self.ground else {
                panic!("only terms of the squared Euclidean cost have stages")
            };
            let ratio = options.epsilon / self.options.epsilon;
            let stages = [Term::Cross, Term::SelfX, Term::SelfY].map(|term| {
                let old = stages[term as usize].as_ref()?;
                let gauge = old.gauge.at(ratio);
                let mut stage = Stage::new(gauge, term, mu, nu).unwrap();
                stage.lattice = old.lattice.as_ref().map(|l| l.at(ratio));
                stage.features = match (&old.features, &stage.lattice) {
                    (Placement::Map(_), Some(lattice)) => {
                        Placement::Map(Arc::new(lattice_map(lattice)))
                    }
                    (Placement::Lattice(lattice), _) => Placement::Lattice(lattice.at(ratio)),
                    (other, _) => other.clone(),
                };
                Some(stage)
            });
            Problem {
                mu,
                nu,
                options,
                ground: Ground::Euclidean { stages: Box::new(stages), used: *used },
                storage: self.storage,
                reason: None,
                // Values are not corrected by samples.
                pick: None,
                aim: Aim::Own,
                tight: None,
                polishes: false,
                round: 0,
                spent: 0,
                clock: options.clock(),
                prepared: Duration::ZERO,
            }
        }
    }

    /// Cross term and self terms with their factors in a value or a divergence.
    const TERMS: [(Term, f64); 3] = [(Term::Cross, 1.0), (Term::SelfX, -0.5), (Term::SelfY, -0.5)];

    fn solved(problem: &Problem<'_>, terms: &[(Term, f64)]) -> Vec<(Solution, Scaling)> {
        let mut silent = |_: &mut Progress<'_>| Next::Continue;
        let solve = |(term, _): &(Term, f64)| problem.solve(*term, Start::Flat, &mut silent);
        let solved: Vec<(Solution, Scaling)> =
            terms.iter().map(solve).map(Result::unwrap).collect();
        assert!(solved.iter().all(|(s, _)| s.converged()));
        solved
    }

    struct Example {
        points: [Vec<f64>; 2],
        weights: [Vec<f64>; 2],
        dim: usize,
    }

    impl Example {
        fn new(dim: usize) -> Self {
            let cloud = |n: usize, scale: f64, shift: f64, seed| -> Vec<f64> {
                let z = anchors::normals(Draw::Iid, n, dim, seed);
                z.iter()
                    .enumerate()
                    .map(|(k, z)| scale * z * (1.0 + (k % dim) as f64) + shift)
                    .collect()
            };
            let weights = |n: usize| (0..n).map(|i| 0.1 + (i * 7 % 5) as f64).collect();
            Example {
                points: [cloud(13, 0.5, 3.0, 1), cloud(17, 0.3, 3.4, 2)],
                weights: [weights(13), weights(17)],
                dim,
            }
        }

        /// The measures with one coordinate moved.
        fn moved(&self, cloud: usize, k: usize, by: f64) -> [Measure<'static>; 2] {
            let mut points = self.points.clone();
            points[cloud][k] += by;
            let mut weights = self.weights.iter();
            points.map(|p| {
                Measure::weighted(Points::new(p, self.dim).unwrap(), weights.next().unwrap())
                    .unwrap()
            })
        }
    }

    fn central(h: f64, value: impl Fn(f64) -> f64) -> f64 {
        (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h)
    }

    fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
        let scale = expected.iter().fold(0.0_f64, |most, e| most.max(e.abs()));
        for (k, (f, e)) in found.iter().zip(expected).enumerate() {
            assert!((f - e).abs() <= tolerance * scale, "{what}, {k}: {f} and not {e} ({scale})");
        }
    }

    /// Gradients by points (every `step`-th coordinate), and by epsilon where `by_epsilon`, of the terms of a method.
    fn check(
        what: &str,
        example: &Example,
        options: &Options<'_>,
        terms: Terms,
        step: usize,
        by_epsilon: bool,
    ) {
        let [mu, nu] = example.moved(0, 0, 0.0);
        let first = Problem::new(&mu, &nu, options, terms).unwrap();
        let design = first.redone([&mu, &nu], options);
        let terms = &TERMS[..terms.list().len()];
        let value = |problem: &Problem<'_>| -> f64 {
            let all = solved(problem, terms);
            all.iter().zip(terms).map(|((s, _), (_, factor))| factor * s.value_kl).sum::<f64>()
                + if terms.len() > 1 { problem.mass_term() } else { 0.0 }
        };
        let all = solved(&design, terms);
        let parts = all.iter().zip(terms).map(|((s, scaling), (t, f))| (*t, *f, scaling, s));
        let gradient = Gradient::new(&design, parts);
        for cloud in [Cloud::X, Cloud::Y] {
            let c = cloud as usize;
            let found = gradient.points(cloud).unwrap();
            let places: Vec<usize> = (0..found.len()).step_by(step).collect();
            let expected: Vec<f64> = places
                .iter()
                .map(|&k| {
                    central(1e-3, |h| {
                        let [mu, nu] = example.moved(c, k, h);
                        value(&design.redone([&mu, &nu], options))
                    })
                })
                .collect();
            let found: Vec<f64> = places.iter().map(|&k| found[k]).collect();
            assert_close(&format!("{what}, {cloud}"), &found, &expected, 1e-7);
        }
        if by_epsilon {
            let expected = central(1e-3 * options.epsilon, |h| {
                let options = Options { epsilon: options.epsilon + h, ..options.clone() };
                value(&design.redone([&mu, &nu], &options))
            });
            let found = gradient.epsilon().unwrap();
            assert_close(&format!("{what}, epsilon"), &[found], &[expected], 1e-6);
        }
    }

    #[test]
    fn central_differences_where_anchors_and_coordinates_stay() {
        let stored = Method::Factored(Features::Gaussian(Anchors::Lattice { stored: true }));
        let example = Example::new(2);
        let methods = [
            ("sobol", Method::gaussian(), Some(60), 1e-3),
            ("adaptive", Method::adaptive(), Some(60), 1e-3),
            // So coarse that the kernel is another one.
            ("stored lattice", stored.clone(), None, 0.3),
            ("stored thin lattice", stored, Some(60), 1e-3),
            ("lattice", Method::lattice(), None, 1e-9),
            ("online", Method::online(), None, 1e-3),
        ];
        for (name, method, rank, accuracy) in methods {
            for gauge in [true, false] {
                for rho in [f64::INFINITY, 1.5] {
                    for terms in [Terms::Cross, Terms::All] {
                        let builder = Options::builder(0.6).method(method.clone());
                        let builder = builder.gauge(gauge).rho_x(rho).rho_y(rho);
                        let builder = builder.accuracy(accuracy).tolerance(1e-12);
                        let builder = match rank {
                            Some(rank) => builder.rank(rank),
                            None => builder,
                        };
                        let what = format!("{name}, gauge {gauge}, rho {rho}, {terms:?}");
                        let options = builder.build().unwrap();
                        let by_epsilon = !matches!(name, "sobol" | "adaptive");
                        check(&what, &example, &options, terms, 5, by_epsilon);
                    }
                }
            }
        }
    }

    #[test]
    fn messages_of_a_solve_are_those_of_its_potentials() {
        let example = Example::new(2);
        let [mu, nu] = example.moved(0, 0, 0.0);
        for rho in [f64::INFINITY, 1.5] {
            for method in [Method::gaussian(), Method::adaptive(), Method::paper()] {
                for algorithm in [Algorithm::Auto, Algorithm::Plain] {
                    for epsilon in [0.6, 0.01] {
                        let builder = Options::builder(epsilon).method(method.clone()).rank(60);
                        let builder = builder.algorithm(algorithm).rho_x(rho).rho_y(rho);
                        let options = builder.max_iterations(200).build().unwrap();
                        let problem = Problem::new(&mu, &nu, &options, Terms::All).unwrap();
                        let mut silent = |_: &mut Progress<'_>| Next::Continue;
                        for (term, _) in TERMS {
                            let (_, mut scaling) =
                                problem.solve(term, Start::Flat, &mut silent).unwrap();
                            assert!(!scaling.messages.is_empty());
                            let of = |scaling: &Scaling| {
                                [0, 1].map(|s| problem.plan_message(term, scaling, s).unwrap())
                            };
                            let known = of(&scaling);
                            scaling.messages.clear();
                            let anew = of(&scaling);
                            // As far as they have mass.
                            for slot in [0, 1] {
                                for k in 0..60 {
                                    let mass = anew[0][k] + anew[1][k];
                                    let off = (known[slot][k] - anew[slot][k]).abs();
                                    assert!(
                                        off < 1e-10 || mass < -35.0,
                                        "{method:?} {term:?} {rho} {epsilon}: {off} at {mass}"
                                    );
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn gauges_of_one_and_of_very_many_axes() {
        for (dim, step, method) in [
            (1, 3, Method::lattice()),
            (1, 3, Method::gaussian()),
            (3, 7, Method::lattice()),
            (130, 401, Method::gaussian()),
            (130, 401, Method::dense()),
        ] {
            let mut example = Example::new(dim);
            if dim > 100 {
                example.points.iter_mut().flatten().for_each(|x| *x *= 0.01);
            }
            let builder = Options::builder(1.0).accuracy(1e-9).tolerance(1e-12);
            let lattice =
                matches!(method, Method::Factored(Features::Gaussian(Anchors::Lattice { .. })));
            let builder = if lattice { builder } else { builder.rank(40) };
            let options = builder.method(method).build().unwrap();
            check(&format!("{dim} axes"), &example, &options, Terms::Cross, step, false);
        }
    }

    #[test]
    fn lattices_stored_or_not_have_one_gradient() {
        let example = Example::new(2);
        let [mu, nu] = example.moved(0, 0, 0.0);
        let mut found = Vec::new();
        for stored in [true, false] {
            let method = Method::Factored(Features::Gaussian(Anchors::Lattice { stored }));
            let builder = Options::builder(0.6).method(method).accuracy(1e-9).tolerance(1e-12);
            let options = builder.build().unwrap();
            let plans = crate::plans(&mu, &nu, &options).unwrap();
            let g = plans.gradient();
            let mut all = g.points(Cloud::X).unwrap();
            all.extend(g.points(Cloud::Y).unwrap());
            all.push(g.epsilon().unwrap());
            found.push(all);
        }
        assert_close("lattices", &found[0], &found[1], 1e-9);
    }
}
