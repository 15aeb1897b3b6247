//! Lattices of a given rank: how far apart the nodes are, and which of them are there.
//!
//! A finer lattice has a smaller Poisson error, but fewer of its nodes can be kept. A node is worth the
//! mass that one step of Sinkhorn's algorithm from flat potentials puts on it: each point has its own
//! weight to give, so that no outlier is voted out. What is lost with the others is measured by the
//! change of the row sums, and the spacing balances that with what is left of the Poisson error when
//! it is averaged over midpoints.

use std::f64::consts::PI;

use crate::anchors::Lattice;
use crate::error::Result;
use crate::kernel::{HalfKernel, Separable, Target};
use crate::measure::Points;
use crate::numerics::log_sum;

/// A cloud in the coordinates of the lattice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weighted<'a> {
    pub(crate) points: &'a Points<'a>,
    pub(crate) weights: &'a [f64],
}

/// Points that are looked at, at most.
const MOST_SAMPLED: usize = 100_000;
/// Spacings in units of `sqrt(eps)`, from the finest that double precision can tell from exact.
const SPACINGS: [f64; 2] = [0.3, 1.3];
/// Steps of the bisection.
const STEPS: usize = 7;
/// What is dropped should be so much less than the Poisson error.
const KAPPA: f64 = 100.0;
/// Error of the cut at the box, before anything is dropped.
const CUT: f64 = 1e-9;
/// Terms further down than this (in logarithms) play no part in the choice.
const CUTOFF: f64 = 40.0;

/// At most `rank` nodes for two clouds whose pairs have midpoints between `low` and `high`. `None` if
/// there is no lattice of so few nodes that reaches all points.
pub(crate) fn of_rank(
    low: &[f64],
    high: &[f64],
    epsilon: f64,
    rank: usize,
    most: f64,
    clouds: [Weighted<'_>; 2],
) -> Option<Lattice> {
    let samples = clouds.map(Sample::new);
    let variances = midpoint_variances(&samples, epsilon);
    let try_spacing = |spacing: f64| -> Option<(Lattice, f64)> {
        let lattice = Lattice::with_spacing(low, high, epsilon, spacing, CUT, most)?;
        if lattice.rank() <= rank {
            return Some((lattice, 0.0));
        }
        let worth = worth(&lattice, &samples).ok()?;
        let thin = thin(&lattice, &worth, rank);
        let lost = lost(&lattice, &thin, &samples).unwrap_or(f64::INFINITY);
        Some((thin, lost))
    };
    let poisson = |spacing: f64| {
        let q = (-(PI / (2.0 * spacing)).powi(2)).exp();
        let h2 = spacing * spacing * epsilon;
        let axes: f64 = variances.iter().map(|v| (-2.0 * PI * PI * v / h2).exp()).sum();
        variances.len() as f64 * q * q + 2.0 * q * axes
    };
    let [mut fine, mut coarse] = SPACINGS;
    let mut best = None;
    for _ in 0..STEPS {
        let spacing = (fine * coarse).sqrt();
        match try_spacing(spacing) {
            Some((lattice, lost)) if KAPPA * lost <= poisson(spacing) => {
                best = Some(lattice);
                coarse = spacing;
            }
            // Too many nodes to look at, or too many to drop.
            _ => fine = spacing,
        }
    }
    // Few nodes for wide clouds: as far apart as it takes to reach every point.
    let mut spacing = coarse;
    while best.is_none() && spacing < 1e3 {
        best =
            try_spacing(spacing).filter(|(_, lost)| lost.is_finite()).map(|(lattice, _)| lattice);
        spacing *= 1.25;
    }
    best
}

/// The `rank` nodes of most worth (logarithms).
pub(crate) fn thin(lattice: &Lattice, worth: &[f64], rank: usize) -> Lattice {
    let mut order: Vec<usize> = (0..worth.len()).collect();
    if rank < order.len() {
        // Ties by number, so that the choice is one.
        order.select_nth_unstable_by(rank, |a, b| worth[*b].total_cmp(&worth[*a]).then(a.cmp(b)));
        order.truncate(rank);
    }
    let mut kept = vec![false; worth.len()];
    for k in order {
        kept[k] = worth[k] > f64::NEG_INFINITY;
    }
    lattice.clone().keep(kept)
}

/// Some of the points of a cloud.
struct Sample {
    points: Points<'static>,
    weights: Vec<f64>,
}

impl Sample {
    fn new(cloud: Weighted<'_>) -> Self {
        let step = cloud.weights.len().div_ceil(MOST_SAMPLED);
        let indices: Vec<usize> = (0..cloud.weights.len()).step_by(step).collect();
        let weights: Vec<f64> = indices.iter().map(|&i| cloud.weights[i]).collect();
        let total: f64 = weights.iter().sum();
        Sample {
            points: cloud.points.select(&indices),
            weights: weights.into_iter().map(|w| w / total).collect(),
        }
    }
}

/// Variances of the midpoints of the plan between Gaussians, axis by axis.
fn midpoint_variances(samples: &[Sample; 2], epsilon: f64) -> Vec<f64> {
    let dim = samples[0].points.dim();
    (0..dim)
        .map(|a| {
            let of = |s: &Sample| -> f64 {
                let square = |(i, w): (usize, &f64)| w * s.points.coordinate(i, a).powi(2);
                s.weights.iter().enumerate().map(square).sum()
            };
            let l = 0.5 * (of(&samples[0]) + of(&samples[1]));
            0.5 * (l + (0.25 * epsilon).hypot(l) - 0.25 * epsilon)
        })
        .collect()
}

/// Logarithms of the mass that one half-step from flat potentials, of either cloud, puts on the nodes.
fn worth(lattice: &Lattice, samples: &[Sample; 2]) -> Result<Vec<f64>> {
    let messages = [0, 1].map(|s: usize| flat(lattice, &samples[s]));
    let mut worth = vec![f64::NEG_INFINITY; lattice.nodes()];
    for s in 0..2 {
        let (points, z) = (&samples[s].points, &messages[1 - s]);
        let mut side = Separable::<f64>::new(points, lattice, CUTOFF);
        side.rebuild(z)?;
        let mut y = vec![0.0; lattice.nodes()];
        let target = side.arrange(Target::fixed(&samples[s].weights));
        side.update(z, target.ordered(), &mut y)?;
        for ((worth, y), z) in worth.iter_mut().zip(&y).zip(z) {
            *worth = log_sum([*worth, y + z].into_iter());
        }
    }
    Ok(worth)
}

/// The message of a cloud with `u = a`.
fn flat(lattice: &Lattice, sample: &Sample) -> Vec<f64> {
    let f: Vec<f64> = sample.weights.iter().map(|w| w.ln()).collect();
    let mut message = vec![0.0; lattice.nodes()];
    Separable::<f64>::new(&sample.points, lattice, CUTOFF).message(&f, &mut message);
    message
}

/// Mean change of the logarithms of row sums (flat potentials) when only the nodes of `thin` are there.
fn lost(lattice: &Lattice, thin: &Lattice, samples: &[Sample; 2]) -> Result<f64> {
    let mut lost = 0.0;
    for s in 0..2 {
        let rows = samples[s].weights.len();
        let mut sums = [vec![0.0; rows], vec![0.0; rows]];
        for (lattice, sums) in [lattice, thin].into_iter().zip(&mut sums) {
            let z = flat(lattice, &samples[1 - s]);
            Separable::<f64>::new(&samples[s].points, lattice, CUTOFF).log_apply(&z, sums)?;
        }
        let weights = &samples[s].weights;
        let [all, some] = sums;
        lost += 0.5
            * weights.iter().zip(all.iter().zip(&some)).map(|(w, (a, s))| w * (a - s)).sum::<f64>();
    }
    Ok(lost)
}
