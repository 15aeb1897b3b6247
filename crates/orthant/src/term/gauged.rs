//! The clouds of a term of the squared Euclidean cost in the coordinates of a gauge, and anchors that suit them.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};
use rayon::prelude::*;

use crate::anchors::{self, Clusters, Draw, best_q};
use crate::control::Cancel;
use crate::coordinates::{Frame, Gauge, Placed, second_moments};
use crate::error::Result;
use crate::features::{Gaussian, Mapped};
use crate::measure::{Measure, Points, extremes};
use crate::numerics::{linalg, log_sum};
use crate::sampling::{Pairs, log_kernel, stratified};
use crate::words::{Part, Side, Term};

/// The clouds of a term in the coordinates of a gauge.
#[derive(Debug)]
pub(crate) struct Gauged {
    pub(crate) gauge: Gauge,
    clouds: [Option<Located>; 2],
    /// The error that the kernel may have, in units of the cost, if it is not what the accuracy says of the term.
    pub(crate) error: Option<f64>,
}

/// A term of two measures in the coordinates of a gauge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GaugedTerm<'s> {
    pub(crate) gauged: &'s Gauged,
    pub(crate) clouds: [Side; 2],
    pub(crate) measures: [&'s Measure<'s>; 2],
}

#[derive(Debug)]
struct Located {
    support: Placed,
    outside: Option<Placed>,
}

/// More axes than this keep their directions.
const MOST_PRINCIPAL_AXES: usize = 256;

impl Gauged {
    /// The clouds of a term in the coordinates of a gauge.
    pub(crate) fn new(gauge: Gauge, term: Term, [mu, nu]: [&Measure<'_>; 2]) -> Result<Self> {
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
        Ok(Gauged { gauge, clouds, error: None })
    }

    fn placed(&self, cloud: Side, part: Part) -> &Placed {
        let located = self.clouds[cloud as usize].as_ref().expect("a cloud of this term");
        match part {
            Part::Support => &located.support,
            Part::Outside => located.outside.as_ref().expect("points of weight zero"),
        }
    }

    pub(crate) fn points(&self, cloud: Side, part: Part) -> &Points<'static> {
        &self.placed(cloud, part).points
    }

    /// What the gauge adds to the potential, in the user's units; nothing where it is zero.
    pub(crate) fn offsets(&self, cloud: Side, part: Part) -> Option<&[f64]> {
        self.placed(cloud, part).offsets.as_deref()
    }

    /// The box of a cloud: the smallest and the largest coordinate along each axis.
    pub(crate) fn ends(&self, cloud: Side) -> Vec<[f64; 2]> {
        let located = self.clouds[cloud as usize].as_ref().expect("a cloud of this term");
        let mut ends = extremes(&located.support.points);
        if let Some(outside) = &located.outside {
            let more = extremes(&outside.points);
            for (e, m) in ends.iter_mut().zip(more) {
                *e = [e[0].min(m[0]), e[1].max(m[1])];
            }
        }
        ends
    }

    /// The box of all midpoints of pairs, one of each cloud.
    pub(crate) fn midpoints(&self, x: Side, y: Side) -> [Vec<f64>; 2] {
        let (x, y) = (self.ends(x), self.ends(y));
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
        if dim > MOST_PRINCIPAL_AXES {
            let mut variances = vec![0.0; dim];
            for (points, weights) in &clouds {
                let mut squares = vec![0.0; dim];
                points.span().sum_each(&mut squares, |i, sums| {
                    for (a, sum) in sums.iter_mut().enumerate() {
                        *sum += weights[i] * points.coordinate(i, a).powi(2);
                    }
                });
                variances.iter_mut().zip(squares).for_each(|(v, square)| *v += share * square);
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
        let normals = anchors::normals(draw, rank, dim, seed);
        let epsilon = self.gauge.epsilon();
        Gaussian::anisotropic(Frame::unit(dim), epsilon, &spread.directions, &spread.q, &normals)
    }

    /// Turns `sum_k w_ik d L_ik / d x_i` of the points of a cloud, `w_ik` their masses, into the gradient of the value in
    /// the user's coordinates. `points` are the same in these.
    pub(super) fn to_user_gradient(
        &self,
        cloud: Side,
        points: &Points<'_>,
        masses: &[f64],
        out: &mut [f64],
    ) {
        const PULLED_ROWS: usize = 1024;
        let placed = self.points(cloud, Part::Support);
        let (dim, epsilon) = (placed.dim(), self.gauge.epsilon());
        let mapped = &self.gauge.ground().mapped(points);
        out.par_chunks_mut(PULLED_ROWS * dim).enumerate().for_each(|(c, out)| {
            let (mut at, mut scratch) = (vec![0.0; dim], vec![0.0; dim]);
            for (i, gradient) in (c * PULLED_ROWS..).zip(out.chunks_exact_mut(dim)) {
                for g in &mut *gradient {
                    *g *= -epsilon;
                }
                placed.copy_coordinates(i, 0, &mut at);
                let (from, mass) = ((mapped, i), masses[i]);
                self.gauge.pull_back(cloud as usize, from, &at, mass, gradient, &mut scratch);
                self.gauge.ground().pull_back((points, i), mass, gradient, &mut scratch);
            }
        });
    }
}

/// Midpoints of pairs, row by row, and their weights.
#[derive(Debug, Clone, Default)]
pub(crate) struct Midpoints {
    pub(crate) points: Vec<f64>,
    pub(crate) weights: Vec<f64>,
}

/// Points that random features are calibrated on, and partners of each.
const CALIBRATION_ROWS: usize = 10_000;
const PARTNERS: usize = 3;
/// Points of the second cloud that are candidates for the partners of one of the first.
const CANDIDATES: usize = 500;
/// Midpoints that anchors are fitted to.
const MIDPOINTS: usize = 8192;

impl Gauged {
    /// Pairs of two clouds about as a plan has them, `PARTNERS` for each of `rows` points of the first. The plan is
    /// not known yet: in the coordinates of the gauge flat potentials come near it.
    fn likely_pairs(
        &self,
        clouds: [Side; 2],
        weights: [&[f64]; 2],
        rows: usize,
        seed: u64,
    ) -> Vec<[usize; 2]> {
        let [x, y] = clouds.map(|cloud| self.points(cloud, Part::Support));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let all: Vec<usize> = (0..x.len()).collect();
        let rows = if x.len() <= rows && weights[0].iter().all(|w| *w == weights[0][0]) {
            all
        } else {
            stratified(&all, weights[0], rows, &mut rng)
        };
        let step = y.len().div_ceil(CANDIDATES);
        let epsilon = self.gauge.epsilon();
        let mut draw = || -> f64 { Open01.sample(&mut rng) };
        let draws: Vec<[f64; PARTNERS]> =
            rows.iter().map(|_| std::array::from_fn(|_| draw())).collect();
        rows.par_iter()
            .zip(draws)
            .enumerate()
            .flat_map_iter(|(row, (&i, draws))| {
                // All points are candidates of some row.
                let columns: Vec<usize> = (row % step..y.len()).step_by(step).collect();
                let logs: Vec<f64> = columns
                    .iter()
                    .map(|&j| weights[1][j].ln() - square(x, i, y, j) / epsilon)
                    .collect();
                let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = logs.iter().map(|l| (l - top).exp()).sum();
                draws.map(|draw| {
                    let mut left = draw * total;
                    let found = logs.iter().position(|l| {
                        left -= (l - top).exp();
                        left <= 0.0
                    });
                    [i, columns[found.unwrap_or(columns.len() - 1)]]
                })
            })
            .collect()
    }

    /// Mean of `log(k_theta / k)` over pairs about as a plan has them, for features in these coordinates.
    ///
    /// To first order a value is wrong by epsilon times this mean, so features are divided by it.
    pub(crate) fn mean_log_ratio(
        &self,
        map: &Gaussian,
        weights: [&[f64]; 2],
        seed: u64,
        cancel: &Cancel,
    ) -> f64 {
        let [x, y] = [Side::X, Side::Y].map(|cloud| self.points(cloud, Part::Support));
        let pairs = self.likely_pairs([Side::X, Side::Y], weights, CALIBRATION_ROWS, seed);
        let [of_x, of_y] = [x, y].map(|points| cancel.guard(Mapped::new(map, points.borrowed())));
        let mut logs = log_kernel([&of_x, &of_y], &pairs);
        for (log, [i, j]) in logs.iter_mut().zip(&pairs) {
            *log += square(x, *i, y, *j) / self.gauge.epsilon();
        }
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let log_mean = log_sum(logs.iter().copied()) - count.ln();
        let found = 0.5 * (mean + log_mean);
        // What cannot be told from the noise of the sample is better left alone.
        let spread = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / count;
        let noise = (spread / count).sqrt();
        if found.abs() > 1.5 * noise { found } else { 0.0 }
    }

    /// Midpoints of pairs of some terms, in equal parts, about as their plans have them.
    pub(crate) fn likely_midpoints(
        &self,
        terms: &[[Side; 2]],
        weights: [&[f64]; 2],
        seed: u64,
    ) -> Midpoints {
        let rows = MIDPOINTS / (PARTNERS * terms.len());
        let mut all = Midpoints::default();
        for clouds in terms {
            let weights = clouds.map(|cloud| weights[cloud as usize]);
            let pairs = self.likely_pairs(*clouds, weights, rows, seed);
            let weights = vec![1.0 / pairs.len() as f64; pairs.len()];
            self.add_midpoints(*clouds, &Pairs { pairs, weights }, &mut all);
        }
        all
    }

    /// Midpoints of pairs of the plans of some terms, in equal parts.
    pub(crate) fn midpoints_of(&self, plans: &[([Side; 2], &Pairs)]) -> Midpoints {
        let most = MIDPOINTS / plans.len();
        let mut all = Midpoints::default();
        for (clouds, drawn) in plans {
            let step = drawn.pairs.len().div_ceil(most).max(1);
            let some = Pairs {
                pairs: drawn.pairs.iter().copied().step_by(step).collect(),
                weights: drawn.weights.iter().copied().step_by(step).collect(),
            };
            self.add_midpoints(*clouds, &some, &mut all);
        }
        all
    }

    fn add_midpoints(&self, clouds: [Side; 2], drawn: &Pairs, to: &mut Midpoints) {
        let [x, y] = clouds.map(|cloud| self.points(cloud, Part::Support));
        for [i, j] in &drawn.pairs {
            let middle = |c| 0.5 * (x.coordinate(*i, c) + y.coordinate(*j, c));
            to.points.extend((0..x.dim()).map(middle));
        }
        to.weights.extend(&drawn.weights);
    }

    /// Anchors around midpoints.
    pub(crate) fn adaptive(&self, midpoints: &Midpoints, rank: usize, seed: u64) -> Gaussian {
        let dim = midpoints.points.len() / midpoints.weights.len();
        let epsilon = self.gauge.epsilon();
        let Midpoints { points, weights } = midpoints;
        let clusters = Clusters::fit(points, weights, dim, epsilon, rank, seed);
        let drawn = clusters.draw(rank, seed);
        Gaussian::of_density(Frame::unit(dim), epsilon, &drawn.anchors, &drawn.log_density)
    }
}

/// Squared distance of a point of each cloud.
fn square(x: &Points<'_>, i: usize, y: &Points<'_>, j: usize) -> f64 {
    (0..x.dim()).map(|c| (x.coordinate(i, c) - y.coordinate(j, c)).powi(2)).sum()
}

/// Principal axes and the best `q` for each.
#[derive(Debug)]
pub(crate) struct Axes {
    /// Rows.
    pub(crate) directions: Vec<f64>,
    pub(crate) q: Vec<f64>,
}

impl Axes {
    /// For these clouds. Along an axis of variance `l` the plan between Gaussians has the
    /// covariance `c = sqrt(eps^2/16 + l^2) - eps/4`, so that midpoints have the variance `(l + c) / 2`.
    pub(crate) fn new(gauged: &Gauged, weights: [Option<&[f64]>; 2]) -> Self {
        let epsilon = gauged.gauge.epsilon();
        let (directions, variances) = gauged.axes(weights);
        let q = variances
            .iter()
            .map(|l| {
                let c = (0.25 * epsilon).hypot(*l) - 0.25 * epsilon;
                best_q(0.5 * (l + c) / epsilon)
            })
            .collect();
        Axes { directions, q }
    }
}
