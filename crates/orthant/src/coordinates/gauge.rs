//! The affine gauge of the squared Euclidean cost: an exact change of variables.
//!
//! Only `x.y` matters to a plan; terms in `x` or `y` alone move into the potentials. With
//! `x = mx + s`, `y = my + t`, `s' = A s`, `t' = A^{-T} t` and `D = mx - my`,
//!
//! ```text
//! ||x - y||^2 = ||s' - t'||^2 + p(x) + q(y) + |D|^2
//! p = ||s||^2 - ||s'||^2 + 2 D.s,      q = ||t||^2 - ||t'||^2 - 2 D.t
//! ```
//!
//! so `W = W' + a.p + b.q + |D|^2` and `alpha = alpha' + p`, `beta = beta' + q`: no approximation. With
//! `A = T^{1/2}`, `T` the Monge map between Gaussians of the clouds' covariances, both clouds get the same
//! mean and covariance, few features serve both, and zero potentials are the Gaussian solution.
//!
//! Lengths are also divided by a power of two, so that squares stay in the range of the numbers.

use rayon::prelude::*;

use super::Frame;
use super::frame::{self, LARGEST_EXPONENT, WIDEST};
use crate::error::{Error, Result};
use crate::ground::GroundCost;
use crate::measure::{Measure, Points, Support};
use crate::numerics::linalg;

/// The coordinates of one cloud.
#[derive(Debug, Clone)]
struct Chart {
    centre: Vec<f64>,
    linear: Linear,
}

#[derive(Debug, Clone)]
enum Linear {
    Identity,
    Diagonal(Vec<f64>),
    /// Row-major.
    Full(Vec<f64>),
}

/// The coordinates of two clouds; see the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct Gauge {
    charts: [Chart; 2],
    /// `D`, in the units of the gauge.
    shift: Vec<f64>,
    /// Units of the gauge in one of the user's: a power of two.
    shrink: f64,
    /// In the units of the gauge.
    epsilon: f64,
    spread: Option<Spread>,
    /// What points are mapped by first.
    ground: GroundCost,
}

/// What the covariances say about a cross term.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    /// Traces of the two covariances, added.
    trace: f64,
    /// Eigenvalues of `(Sx^{1/2} Sy Sx^{1/2})^{1/2}`.
    common: Vec<f64>,
}

/// A cloud in the coordinates of a gauge.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) points: Points<'static>,
    /// `p` or `q` of every point, in the user's units; nothing where it is zero.
    pub(crate) offsets: Option<Vec<f64>>,
}

/// More axes than this have their covariances taken one by one.
const MOST_TURNED_AXES: usize = 128;
/// Added to variances, in units of epsilon: what is flatter than this needs no stretching.
const RIDGE: f64 = 1e-3;
/// Coordinates whose squares are finite, stretched or not.
const FARTHEST: f64 = 1e140;
/// Bounds of the stretching of an axis.
const STRETCH: f64 = 1e6;

impl Gauge {
    /// The gauge for two clouds.
    pub(crate) fn cross(mu: &Measure<'_>, nu: &Measure<'_>, epsilon: f64) -> Result<Self> {
        frame::same_dimension(mu, nu)?;
        let centres = [centre(&mu.support()), centre(&nu.support())];
        let mut gauge = Gauge::centred(centres, [mu, nu], epsilon)?;
        let (x, y) = (mu.support(), nu.support());
        let dim = mu.dim();
        // Between what rounding leaves of the largest variance and more than that.
        let ridge = (RIDGE * gauge.epsilon).clamp(1e-24, 1e3);
        if dim > MOST_TURNED_AXES {
            let (sx, sy) = (gauge.variances(&x, 0), gauge.variances(&y, 1));
            let stretch: Vec<f64> = (sx.iter().zip(&sy))
                .map(|(x, y)| ((y + ridge) / (x + ridge)).clamp(1.0 / STRETCH, STRETCH).powf(0.25))
                .collect();
            gauge.spread = Some(Spread {
                trace: sx.iter().chain(&sy).sum(),
                common: sx.iter().zip(&sy).map(|(x, y)| (x * y).sqrt()).collect(),
            });
            gauge.charts[1].linear = Linear::Diagonal(stretch.iter().map(|a| 1.0 / a).collect());
            gauge.charts[0].linear = Linear::Diagonal(stretch);
        } else {
            let (mut sx, mut sy) = (gauge.covariance(&x, 0), gauge.covariance(&y, 1));
            let trace = (0..dim).map(|k| sx[k * dim + k] + sy[k * dim + k]).sum();
            for k in 0..dim {
                sx[k * dim + k] += ridge;
                sy[k * dim + k] += ridge;
            }
            let ex = linalg::eigen(&sx, dim);
            let positive = |v: f64| v.max(ridge);
            let root = linalg::function(&ex, |v| positive(v).sqrt());
            let back = linalg::function(&ex, |v| 1.0 / positive(v).sqrt());
            let inner = linalg::product(&linalg::product(&root, &sy, dim), &root, dim);
            let inner = linalg::eigen(&symmetric(inner, dim), dim);
            let common = inner.0.iter().map(|v| v.max(0.0).sqrt()).collect();
            let middle = linalg::function(&inner, |v| v.max(ridge * ridge).sqrt());
            let map = linalg::product(&linalg::product(&back, &middle, dim), &back, dim);
            let map = linalg::eigen(&symmetric(map, dim), dim);
            let stretch = |v: f64| v.clamp(1.0 / STRETCH, STRETCH).sqrt();
            gauge.spread = Some(Spread { trace, common });
            gauge.charts[0].linear = Linear::Full(linalg::function(&map, stretch));
            gauge.charts[1].linear = Linear::Full(linalg::function(&map, |v| 1.0 / stretch(v)));
        }
        Ok(gauge)
    }

    /// No change but a common centre.
    pub(crate) fn common(mu: &Measure<'_>, nu: &Measure<'_>, epsilon: f64) -> Result<Self> {
        let centre = frame::common_centre(mu, nu)?;
        let mut gauge = Gauge::centred([centre.clone(), centre], [mu, nu], epsilon)?;
        // Variances around the common centre: the distance of the means is in them.
        let [x, y] = [gauge.variances(&mu.support(), 0), gauge.variances(&nu.support(), 1)];
        let common = x.iter().zip(&y).map(|(x, y)| (x * y).sqrt()).collect();
        gauge.spread = Some(Spread { trace: x.iter().chain(&y).sum(), common });
        Ok(gauge)
    }

    /// No change but the centre of the cloud, for a term of it with itself.
    pub(crate) fn own(mu: &Measure<'_>, epsilon: f64) -> Result<Self> {
        let centre = centre(&mu.support());
        let mut gauge = Gauge::centred([centre.clone(), centre], [mu, mu], epsilon)?;
        let variances = gauge.variances(&mu.support(), 0);
        gauge.spread =
            Some(Spread { trace: 2.0 * variances.iter().sum::<f64>(), common: variances });
        Ok(gauge)
    }

    fn centred(centres: [Vec<f64>; 2], clouds: [&Measure<'_>; 2], epsilon: f64) -> Result<Self> {
        let mut extent: f64 =
            centres[0].iter().zip(&centres[1]).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        for (measure, centre) in clouds.iter().zip(&centres) {
            for points in [Some(measure.support().points), measure.outside()].into_iter().flatten()
            {
                extent = extent.max(points.span().max(|i| {
                    let apart = |k| (points.coordinate(i, k) - centre[k]).abs();
                    (0..points.dim()).map(apart).fold(0.0, f64::max)
                }));
            }
        }
        if extent > WIDEST {
            return Err(Error::TooWide { extent });
        }
        let shrink =
            if extent > 0.0 { frame::power_of_two_below(1.0 / extent.max(1e-300)) } else { 1.0 };
        let shift = centres[0].iter().zip(&centres[1]).map(|(x, y)| (x - y) * shrink).collect();
        let scaled = epsilon * shrink * shrink;
        // Exponents are divided by it.
        if !(scaled.is_finite() && (4.0 / scaled).is_finite()) {
            return Err(Error::Option {
                name: "epsilon",
                expected: "comparable to the squared extent of the data",
                value: epsilon,
            });
        }
        let charts = centres.map(|centre| Chart { centre, linear: Linear::Identity });
        let ground = GroundCost::SquaredEuclidean;
        Ok(Gauge { charts, shift, shrink, epsilon: scaled, spread: None, ground })
    }

    /// This gauge of points that were mapped to where a cost is the squared Euclidean one, as one of the points that they
    /// were mapped from.
    pub(crate) fn after(self, ground: &GroundCost) -> Self {
        Gauge { ground: ground.clone(), ..self }
    }

    fn dim(&self) -> usize {
        self.shift.len()
    }

    /// Epsilon in the units of the gauge.
    pub(crate) fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// A cost in the user's units.
    pub(crate) fn to_user(&self, cost: f64) -> f64 {
        cost / self.shrink / self.shrink
    }

    /// `|D|^2`, in the user's units.
    pub(crate) fn constant(&self) -> f64 {
        self.to_user(self.shift.iter().map(|d| d * d).sum())
    }

    /// The centred coordinates of a point, before the linear map.
    fn centred_point(&self, cloud: usize, points: &Points<'_>, i: usize, out: &mut [f64]) {
        points.copy_coordinates(i, 0, out);
        for (x, c) in out.iter_mut().zip(&self.charts[cloud].centre) {
            *x = (*x - c) * self.shrink;
        }
    }

    /// Points of a cloud (0 or 1) in these coordinates.
    pub(crate) fn place(&self, cloud: usize, points: &Points<'_>) -> Placed {
        const PLACED_ROWS: usize = 1024;
        let (user, points) = (points, &self.ground.mapped(points));
        let dim = self.dim();
        let mut values = vec![0.0; points.len() * dim];
        let moved = self.shift.iter().any(|d| *d != 0.0);
        let marginal = self.ground.has_offsets();
        let plain = matches!(self.charts[cloud].linear, Linear::Identity) && !moved && !marginal;
        let sign = if cloud == 0 { 2.0 } else { -2.0 };
        let mut offsets = if plain { Vec::new() } else { vec![0.0; points.len()] };
        let row = |i: usize, out: &mut [f64], s: &mut [f64]| {
            self.centred_point(cloud, points, i, s);
            match &self.charts[cloud].linear {
                Linear::Identity => out.copy_from_slice(s),
                Linear::Diagonal(stretch) => {
                    for ((o, s), a) in out.iter_mut().zip(&*s).zip(stretch) {
                        *o = a * s;
                    }
                }
                Linear::Full(matrix) => {
                    for (o, row) in out.iter_mut().zip(matrix.chunks_exact(dim)) {
                        *o = row.iter().zip(&*s).map(|(a, s)| a * s).sum();
                    }
                }
            }
        };
        if plain {
            values.par_chunks_mut(PLACED_ROWS * dim).enumerate().for_each(|(c, values)| {
                let mut s = vec![0.0; dim];
                for (i, out) in values.chunks_exact_mut(dim).enumerate() {
                    row(c * PLACED_ROWS + i, out, &mut s);
                }
            });
        } else {
            values
                .par_chunks_mut(PLACED_ROWS * dim)
                .zip(offsets.par_chunks_mut(PLACED_ROWS))
                .enumerate()
                .for_each(|(c, (values, offsets))| {
                    let mut s = vec![0.0; dim];
                    for (i, (out, p)) in values.chunks_exact_mut(dim).zip(offsets).enumerate() {
                        row(c * PLACED_ROWS + i, out, &mut s);
                        let parts = s.iter().zip(&*out).zip(&self.shift);
                        let sum = parts.map(|((s, o), d)| (s - o) * (s + o) + sign * d * s);
                        *p = self.to_user(sum.sum());
                        if marginal {
                            *p += self.ground.offset(user, c * PLACED_ROWS + i);
                        }
                    }
                });
        }
        let placed = Points::new(values, dim).expect("finite coordinates stay finite");
        Placed { points: placed.in_place_of(points), offsets: (!plain).then_some(offsets) }
    }

    /// Further points of a cloud in these coordinates, if they are not too far away.
    pub(crate) fn place_new(&self, cloud: usize, points: &Points<'_>) -> Result<Placed> {
        self.ground.check(points)?;
        let mapped = self.ground.mapped(points);
        let mut s = vec![0.0; self.dim()];
        for i in 0..points.len() {
            self.centred_point(cloud, &mapped, i, &mut s);
            if s.iter().any(|s| s.is_nan() || s.abs() > FARTHEST) {
                return Err(Error::FarPoint { point: i + 1, ratio: f64::INFINITY });
            }
        }
        let placed = self.place(cloud, points);
        let (unit, all) = (Frame::unit(self.dim()), 0..points.len());
        frame::check_reach(&unit, &placed.points, all, self.epsilon)?;
        Ok(placed)
    }

    /// What points are mapped by first.
    pub(crate) fn ground(&self) -> &GroundCost {
        &self.ground
    }

    /// The gradient of a value by a mapped point of a cloud (0 or 1), in the user's units. `gradient` is that
    /// in these coordinates `placed`, and the value has the offset of the point too, `mass` times.
    ///
    /// ```text
    /// d p / d x = 2 s - 2 A^T s' + 2 D
    /// ```
    pub(crate) fn pull_back(
        &self,
        cloud: usize,
        (points, i): (&Points<'_>, usize),
        placed: &[f64],
        mass: f64,
        gradient: &mut [f64],
        scratch: &mut [f64],
    ) {
        let sign = if cloud == 0 { 2.0 } else { -2.0 };
        let moved = gradient.iter_mut().zip(placed);
        match &self.charts[cloud].linear {
            Linear::Identity => {}
            Linear::Diagonal(stretch) => {
                self.centred_point(cloud, points, i, scratch);
                for (((g, x), a), s) in moved.zip(stretch).zip(scratch) {
                    *g = a * (*g - 2.0 * mass * x) + 2.0 * mass * *s;
                }
            }
            Linear::Full(matrix) => {
                moved.for_each(|(g, x)| *g -= 2.0 * mass * x);
                self.centred_point(cloud, points, i, scratch);
                for s in &mut *scratch {
                    *s *= 2.0 * mass;
                }
                for (row, g) in matrix.chunks_exact(self.dim()).zip(&*gradient) {
                    scratch.iter_mut().zip(row).for_each(|(s, a)| *s += a * g);
                }
                gradient.copy_from_slice(scratch);
            }
        }
        for (g, d) in gradient.iter_mut().zip(&self.shift) {
            *g = (*g + sign * mass * d) / self.shrink;
        }
    }

    /// The same coordinates for another epsilon.
    #[cfg(test)]
    pub(crate) fn at(&self, ratio: f64) -> Self {
        Gauge { epsilon: ratio * self.epsilon, ..self.clone() }
    }

    /// Units of these coordinates in one of the user's.
    pub(crate) fn shrink(&self) -> f64 {
        self.shrink
    }

    /// Checks that exponents of the kernel between these points keep enough digits.
    pub(crate) fn check_radius<'p>(
        &self,
        points: impl Iterator<Item = &'p Points<'p>>,
    ) -> Result<()> {
        let square = points
            .map(|p| p.span().max(|i| (0..p.dim()).map(|k| p.coordinate(i, k).powi(2)).sum()))
            .fold(0.0, f64::max);
        if square <= LARGEST_EXPONENT * self.epsilon {
            return Ok(());
        }
        let radius = square.sqrt() / self.shrink;
        Err(Error::EpsilonTooSmall {
            epsilon: self.to_user(self.epsilon),
            radius,
            ratio: square / self.epsilon,
            least: radius / LARGEST_EXPONENT * radius,
        })
    }

    /// The value in the KL form, in the user's units, if the clouds were Gaussian:
    /// `|D|^2 + tr Sx + tr Sy - 2 sum c - eps/2 sum log(1 - c^2 / l^2)`, `c = sqrt(eps^2/16 + l^2) - eps/4`
    /// the covariance of the optimal plan along each common axis.
    pub(crate) fn gaussian_value(&self) -> Option<f64> {
        let spread = self.spread.as_ref()?;
        let quarter = 0.25 * self.epsilon;
        let gain: f64 = spread
            .common
            .iter()
            .filter(|l| **l > 0.0)
            .map(|l| {
                let c = l * l / (quarter.hypot(*l) + quarter);
                // 1 - c^2/l^2 = c eps / (2 l^2)
                2.0 * c + 0.5 * self.epsilon * (2.0 * quarter * c / (l * l)).ln()
            })
            .sum();
        Some(self.constant() + self.to_user(spread.trace - gain))
    }

    /// Variances of the centred coordinates.
    fn variances(&self, cloud: &Support<'_>, which: usize) -> Vec<f64> {
        self.moments(cloud, which, self.dim(), |s, w, sums| {
            for (sum, s) in sums.iter_mut().zip(s) {
                *sum += w * s * s;
            }
        })
    }

    /// Covariance of the centred coordinates.
    fn covariance(&self, cloud: &Support<'_>, which: usize) -> Vec<f64> {
        self.moments(cloud, which, self.dim() * self.dim(), |s, w, sums| {
            for (row, si) in sums.chunks_exact_mut(s.len()).zip(s) {
                for (sum, sj) in row.iter_mut().zip(s) {
                    *sum += w * si * sj;
                }
            }
        })
    }

    fn moments(
        &self,
        cloud: &Support<'_>,
        which: usize,
        len: usize,
        add: impl Fn(&[f64], f64, &mut [f64]) + Sync,
    ) -> Vec<f64> {
        sum_over(cloud, len, |i, s, sums| {
            self.centred_point(which, cloud.points, i, s);
            add(s, cloud.weights[i], sums);
        })
    }
}

/// Covariance matrix of weighted points around the origin.
pub(crate) fn second_moments(points: &Points<'_>, weights: &[f64]) -> Vec<f64> {
    let cloud = Support { points, weights };
    sum_over(&cloud, points.dim() * points.dim(), |i, s, sums| {
        points.copy_coordinates(i, 0, s);
        for (row, si) in sums.chunks_exact_mut(s.len()).zip(&*s) {
            for (sum, sj) in row.iter_mut().zip(&*s) {
                *sum += weights[i] * si * sj;
            }
        }
    })
}

/// Sums over points, the same on any number of threads; `add` gets scratch space for a point.
fn sum_over(
    cloud: &Support<'_>,
    len: usize,
    add: impl Fn(usize, &mut [f64], &mut [f64]) + Sync,
) -> Vec<f64> {
    let mut total = vec![0.0; len];
    cloud.points.span().sum_each_with(cloud.points.dim(), &mut total, add);
    total
}

/// The mean of a cloud; a mean is rounded, that of equal points should be the point.
fn centre(cloud: &Support<'_>) -> Vec<f64> {
    let mut mean = cloud.mean();
    frame::clamp_to(&mut mean, &[cloud.points]);
    mean
}

/// The mean of a matrix and its transpose.
fn symmetric(mut matrix: Vec<f64>, dim: usize) -> Vec<f64> {
    for i in 0..dim {
        for j in 0..i {
            let mean = 0.5 * (matrix[i * dim + j] + matrix[j * dim + i]);
            matrix[i * dim + j] = mean;
            matrix[j * dim + i] = mean;
        }
    }
    matrix
}
