//! One term of the squared Euclidean cost, in the coordinates in which it is solved.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};
use rayon::prelude::*;

use crate::design::{self, Draw, Lattice};
use crate::error::{Cloud, Result};
use crate::features::{self, FeatureMap, Gaussian, lattice_map};
use crate::frame::Frame;
use crate::gauge::{Gauge, Placed, second_moments};
use crate::kernel::{Factors, log_sum};
use crate::linalg;
use crate::measure::{Measure, Points};
use crate::sinkhorn::Term;
use crate::theory;

/// Which points of a cloud: those of positive weight, or those of weight zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Support,
    Outside,
}

/// The clouds of a term, and features for them.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) gauge: Gauge,
    clouds: [Option<Located>; 2],
    pub(crate) features: Placement,
    /// The lattice of features that are stored.
    pub(crate) lattice: Option<Lattice>,
}

/// What stands between the clouds.
#[derive(Debug, Clone)]
pub(crate) enum Placement {
    /// Nothing: the kernel itself.
    Exact,
    Map(Arc<dyn FeatureMap>),
    Lattice(Lattice),
    /// Signed features, stored: the same for all terms.
    Nystrom(Arc<Factors>),
}

#[derive(Debug)]
struct Located {
    support: Placed,
    outside: Option<Placed>,
}

/// More axes than this keep their directions.
const MOST_TURNED: usize = 256;

impl Stage {
    /// The clouds of a term in the coordinates of a gauge.
    pub(crate) fn new(
        gauge: Gauge,
        term: Term,
        mu: &Measure<'_>,
        nu: &Measure<'_>,
    ) -> Result<Self> {
        let locate = |chart: usize, measure: &Measure<'_>| Located {
            support: gauge.place(chart, measure.support().points),
            outside: measure.outside().map(|points| gauge.place(chart, points)),
        };
        let clouds = match term {
            Term::Cross => [Some(locate(0, mu)), Some(locate(1, nu))],
            Term::SelfX => [Some(locate(0, mu)), None],
            Term::SelfY => [None, Some(locate(1, nu))],
        };
        gauge.check_radius(clouds.iter().flatten().map(|c| &c.support.points))?;
        Ok(Stage { gauge, clouds, features: Placement::Exact, lattice: None })
    }

    fn placed(&self, cloud: Cloud, part: Part) -> &Placed {
        let located = self.clouds[cloud as usize].as_ref().expect("a cloud of this term");
        match part {
            Part::Support => &located.support,
            Part::Outside => located.outside.as_ref().expect("points of weight zero"),
        }
    }

    pub(crate) fn points(&self, cloud: Cloud, part: Part) -> &Points<'static> {
        &self.placed(cloud, part).points
    }

    /// What the gauge adds to the potential, in the user's units; nothing where it is zero.
    pub(crate) fn offsets(&self, cloud: Cloud, part: Part) -> Option<&[f64]> {
        self.placed(cloud, part).offsets.as_deref()
    }

    /// The box of all midpoints of pairs, one of each cloud.
    pub(crate) fn midpoints(&self, x: Cloud, y: Cloud) -> [Vec<f64>; 2] {
        let ends = |cloud: Cloud| {
            let located = self.clouds[cloud as usize].as_ref().expect("a cloud of this term");
            let mut ends = extremes(&located.support.points);
            if let Some(outside) = &located.outside {
                let more = extremes(&outside.points);
                for (e, m) in ends.iter_mut().zip(more) {
                    *e = [e[0].min(m[0]), e[1].max(m[1])];
                }
            }
            ends
        };
        let (x, y) = (ends(x), ends(y));
        [0, 1].map(|end| x.iter().zip(&y).map(|(x, y)| 0.5 * (x[end] + y[end])).collect())
    }

    /// The principal axes of clouds with these weights, widest first, as rows, and the variances along
    /// them.
    pub(crate) fn axes(&self, weights: [Option<&[f64]>; 2]) -> (Vec<f64>, Vec<f64>) {
        let clouds: Vec<(&Points<'_>, &[f64])> = self
            .clouds
            .iter()
            .zip(weights)
            .filter_map(|(c, w)| Some((&c.as_ref()?.support.points, w?)))
            .collect();
        let dim = clouds[0].0.dim();
        let share = 1.0 / clouds.len() as f64;
        if dim > MOST_TURNED {
            let mut variances = vec![0.0; dim];
            for (points, weights) in &clouds {
                for (i, w) in weights.iter().enumerate() {
                    for (a, v) in variances.iter_mut().enumerate() {
                        *v += share * w * points.coordinate(i, a).powi(2);
                    }
                }
            }
            let mut order: Vec<usize> = (0..dim).collect();
            order.sort_by(|a, b| variances[*b].total_cmp(&variances[*a]));
            let mut axes = vec![0.0; dim * dim];
            for (row, &a) in axes.chunks_exact_mut(dim).zip(&order) {
                row[a] = 1.0;
            }
            return (axes, order.iter().map(|&a| variances[a]).collect());
        }
        let mut covariance = vec![0.0; dim * dim];
        for (points, weights) in &clouds {
            for (c, s) in covariance.iter_mut().zip(second_moments(points, weights)) {
                *c += share * s;
            }
        }
        let (mut values, vectors) = linalg::eigen(&covariance, dim);
        values.reverse();
        let axes = vectors.chunks_exact(dim).rev().flatten().copied().collect();
        (axes, values.into_iter().map(|v| v.max(0.0)).collect())
    }

    /// Random anchors with the best variance on each axis.
    pub(crate) fn random(&self, spread: &Axes, draw: Draw, rank: usize, seed: u64) -> Gaussian {
        let dim = spread.q.len();
        let normals = design::normals(draw, rank, dim, seed);
        let epsilon = self.gauge.epsilon();
        Gaussian::anisotropic(Frame::unit(dim), epsilon, &spread.directions, &spread.q, &normals)
    }

    /// The features of a lattice, one by one.
    pub(crate) fn stored_lattice(lattice: &Lattice) -> Arc<dyn FeatureMap> {
        Arc::new(lattice_map(lattice))
    }
}

/// Points that random features are calibrated on, and partners of each.
const ROWS: usize = 10_000;
const PARTNERS: usize = 3;
/// Points of the second cloud that are candidates for the partners of one of the first.
const CANDIDATES: usize = 500;

impl Stage {
    /// Mean of `log(k_theta / k)` over pairs as a plan has them, for features of this stage.
    ///
    /// To first order a value is wrong by epsilon times this mean, so features are divided by it. The
    /// plan is not known yet: in the coordinates of the gauge flat potentials come near it.
    pub(crate) fn mean_log_ratio(&self, map: &Gaussian, weights: [&[f64]; 2], seed: u64) -> f64 {
        let [x, y] = [Cloud::X, Cloud::Y].map(|cloud| self.points(cloud, Part::Support));
        let rows: Vec<usize> = (0..x.len()).step_by(x.len().div_ceil(ROWS)).collect();
        let step = y.len().div_ceil(CANDIDATES);
        let epsilon = self.gauge.epsilon();
        let distance = |i: usize, j: usize| -> f64 {
            (0..x.dim()).map(|a| (x.coordinate(i, a) - y.coordinate(j, a)).powi(2)).sum()
        };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = || -> f64 { Open01.sample(&mut rng) };
        let draws: Vec<[f64; PARTNERS]> =
            rows.iter().map(|_| std::array::from_fn(|_| draw())).collect();
        let (width, rank) = (features::stride(map.rank()), map.rank());
        let sums: Vec<[f64; 2]> = rows
            .par_iter()
            .zip(draws)
            .enumerate()
            .flat_map_iter(|(row, (&i, draws))| {
                // Partners of `i`, drawn from the row of the plan; all points are candidates of some row.
                let columns: Vec<usize> = (row % step..y.len()).step_by(step).collect();
                let logs: Vec<f64> = columns
                    .iter()
                    .map(|&j| weights[1][j].ln() - distance(i, j) / epsilon)
                    .collect();
                let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = logs.iter().map(|l| (l - top).exp()).sum();
                let mut of_x = vec![0.0; width];
                map.log_features(x, i, width, &mut of_x);
                let mut of_y = vec![0.0; width];
                draws.map(|draw| {
                    let mut left = draw * total;
                    let found = logs.iter().position(|l| {
                        left -= (l - top).exp();
                        left <= 0.0
                    });
                    let j = columns[found.unwrap_or(columns.len() - 1)];
                    map.log_features(y, j, width, &mut of_y);
                    let log = log_sum(of_x[..rank].iter().zip(&of_y[..rank]).map(|(x, y)| x + y));
                    [weights[0][i], log + distance(i, j) / epsilon]
                })
            })
            .collect();
        let mass: f64 = sums.iter().map(|[w, _]| w).sum();
        let mean = sums.iter().map(|[w, log]| w * log).sum::<f64>() / mass;
        let log_mean = log_sum(sums.iter().map(|[w, log]| w.ln() + log)) - mass.ln();
        let found = 0.5 * (mean + log_mean);
        // What cannot be told from the noise of the sample is better left alone.
        let spread: f64 = sums.iter().map(|[w, log]| w * (log - mean).powi(2)).sum::<f64>() / mass;
        let noise = (spread / sums.len() as f64).sqrt();
        if found.abs() > 1.5 * noise { found } else { 0.0 }
    }
}

/// Principal axes and the best `q` for each.
#[derive(Debug)]
pub(crate) struct Axes {
    /// Rows.
    pub(crate) directions: Vec<f64>,
    pub(crate) q: Vec<f64>,
}

impl Axes {
    /// For the clouds of a stage. Along an axis of variance `l` the plan between Gaussians has the
    /// covariance `c = sqrt(eps^2/16 + l^2) - eps/4`, so that midpoints have the variance `(l + c) / 2`.
    pub(crate) fn new(stage: &Stage, weights: [Option<&[f64]>; 2]) -> Self {
        let epsilon = stage.gauge.epsilon();
        let (directions, variances) = stage.axes(weights);
        let q = variances
            .iter()
            .map(|l| {
                let c = (0.25 * epsilon).hypot(*l) - 0.25 * epsilon;
                theory::best_q(0.5 * (l + c) / epsilon)
            })
            .collect();
        Axes { directions, q }
    }
}

/// Smallest and largest coordinate of every axis.
fn extremes(points: &Points<'_>) -> Vec<[f64; 2]> {
    (0..points.dim())
        .map(|a| {
            (0..points.len())
                .into_par_iter()
                .with_min_len(4096)
                .map(|i| [points.coordinate(i, a); 2])
                .reduce(
                    || [f64::INFINITY, f64::NEG_INFINITY],
                    |p, q| [p[0].min(q[0]), p[1].max(q[1])],
                )
        })
        .collect()
}
