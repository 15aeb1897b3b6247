//! Costs of pairs of points, other than the squared Euclidean one too.
//!
//! Cosine, dot product and Mahalanobis costs are squared Euclidean costs of other coordinates, but for terms of one point
//! each:
//!
//! ```text
//! c(x, y) = ||T(x) - T(y)||^2 + h(x) + h(y)
//! ```
//!
//! so everything that there is for the squared Euclidean cost is there for them. The other costs have all pairs.

mod mahalanobis;

pub use mahalanobis::Mahalanobis;

use std::f64::consts::FRAC_1_SQRT_2;
use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::measure::{Measure, Points};
use crate::words::Shape;

/// The cost of moving mass from a point to another.
///
/// | cost | formula | `SciPy`'s `cdist`, POT's `ot.dist` | `ott.geometry.costs` |
/// |---|---|---|---|
/// | `SquaredEuclidean` | `sum_k (x_k - y_k)^2` | `sqeuclidean` | `SqEuclidean` |
/// | `Cosine` | `1 - x.y / (\|x\| \|y\|)` | `cosine` | `Cosine` |
/// | `Dot` | `-x.y` | | `NegDotProduct` |
/// | `Mahalanobis` | `(x - y)' A (x - y)` | the square of `mahalanobis` with `VI = A` | `SqEuclidean` of `A^(1/2) x` |
/// | `Euclidean` | `\|x - y\|`, not squared | `euclidean` | `Euclidean` |
/// | `L1` | `sum_k \|x_k - y_k\|` | `cityblock` | `PNormP(1)` |
/// | `Lp(p)` | `(sum_k \|x_k - y_k\|^p)^(1/p)` | `minkowski` | the `p`-th root of `p` times `PNormP(p)` |
/// | `Geodesic` | the angle between `x` and `y`, from 0 to pi | `arccos(1 - cosine)` | |
/// | `Function` | a function of two points | `cdist(x, y, f)` | a `CostFn` |
///
/// The first four have all methods. The others are computed pair by pair: [`Method::Auto`](crate::Method::Auto),
/// [`Method::dense`](crate::Method::dense) and [`Method::online`](crate::Method::online). They have gradients by points but for
/// `Function`; where points or coordinates coincide and a cost has a kink, the gradient is that of the symmetric side, 0.
/// Sinkhorn divergences are never negative where the kernel `exp(-c / eps)` is positive definite: for the named costs, but for
/// `Lp` with an exponent above 2. A function must be symmetric to have one.
///
/// ```
/// use orthant::{GroundCost, Measure, Options, Points, rot};
/// let mu = Measure::uniform(Points::new(vec![1.0, 0.0, 0.0, 2.0], 2)?);
/// let nu = Measure::uniform(Points::new(vec![0.0, 3.0, 5.0, 0.0], 2)?);
/// let options = Options::builder(0.01).cost(GroundCost::Cosine).build()?;
/// // Both directions have a partner in the other cloud.
/// assert!(rot(&mu, &nu, &options)?.transport_cost.unwrap() < 1e-12);
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum GroundCost {
    /// `||x - y||^2`.
    #[default]
    SquaredEuclidean,
    /// `1 - x.y / (|x| |y|)`, so half the squared distance of the directions. No point may be zero.
    Cosine,
    /// `-x.y`. It is half the squared distance less `|x|^2 / 2` and `|y|^2 / 2`, so plans are those of the squared Euclidean
    /// cost at twice the epsilon.
    Dot,
    /// `(x - y)' A (x - y)` of a symmetric matrix without negative eigenvalues.
    Mahalanobis(Mahalanobis),
    /// `||x - y||`, not squared.
    Euclidean,
    /// The sum of the distances along the axes.
    L1,
    /// `(sum_k |x_k - y_k|^p)^(1/p)`, `p` at least 1.
    Lp(f64),
    /// The angle between two points as seen from the origin: the distance on the sphere. No point may be zero.
    Geodesic,
    /// A function of two points: see [`GroundCost::function`].
    Function(CostFunction),
}

/// A function of the coordinates of two points. Clones share it.
#[derive(Clone)]
pub struct CostFunction(Arc<OfTwo>);

type OfTwo = dyn Fn(&[f64], &[f64]) -> f64 + Send + Sync;

impl fmt::Debug for CostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CostFunction")
    }
}

impl GroundCost {
    /// The cost that a function of two points has; all values must be finite.
    ///
    /// ```
    /// use orthant::{GroundCost, Measure, Options, Points, rot};
    /// // Nobody is paid for going left.
    /// let cost = GroundCost::function(|x, y| (y[0] - x[0]).max(0.0));
    /// let mu = Measure::uniform(Points::new(vec![2.0, 3.0], 1)?);
    /// let nu = Measure::uniform(Points::new(vec![0.0, 1.0], 1)?);
    /// let options = Options::builder(0.1).cost(cost).build()?;
    /// assert!(rot(&mu, &nu, &options)?.transport_cost.unwrap().abs() < 1e-12);
    /// # Ok::<(), orthant::Error>(())
    /// ```
    pub fn function(cost: impl Fn(&[f64], &[f64]) -> f64 + Send + Sync + 'static) -> Self {
        GroundCost::Function(CostFunction(Arc::new(cost)))
    }

    /// The word for it on the command line.
    pub fn as_str(&self) -> &'static str {
        match self {
            GroundCost::SquaredEuclidean => "sqeuclidean",
            GroundCost::Cosine => "cosine",
            GroundCost::Dot => "dot",
            GroundCost::Mahalanobis(_) => "mahalanobis",
            GroundCost::Euclidean => "euclidean",
            GroundCost::L1 => "l1",
            GroundCost::Lp(_) => "lp",
            GroundCost::Geodesic => "geodesic",
            GroundCost::Function(_) => "function",
        }
    }

    /// How messages call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            GroundCost::SquaredEuclidean => "the squared Euclidean cost",
            GroundCost::Cosine => "the cosine cost",
            GroundCost::Dot => "the dot product cost",
            GroundCost::Mahalanobis(_) => "the Mahalanobis cost",
            GroundCost::Euclidean => "the Euclidean cost",
            GroundCost::L1 => "the l1 cost",
            GroundCost::Lp(_) => "the lp cost",
            GroundCost::Geodesic => "the geodesic cost",
            GroundCost::Function(_) => "a cost function",
        }
    }

    /// Whether it is the squared Euclidean cost of the points as they are.
    pub(crate) fn is_default(&self) -> bool {
        matches!(self, GroundCost::SquaredEuclidean)
    }

    /// Whether it is a squared Euclidean cost in other coordinates, but for terms of one point each.
    pub fn is_squared_distance(&self) -> bool {
        matches!(
            self,
            GroundCost::SquaredEuclidean
                | GroundCost::Cosine
                | GroundCost::Dot
                | GroundCost::Mahalanobis(_)
        )
    }

    /// Refuses what is no cost.
    pub(crate) fn check_setting(&self) -> Result<()> {
        match self {
            GroundCost::Lp(p) if !(*p >= 1.0 && p.is_finite()) => Err(Error::Option {
                name: "the exponent of the lp cost",
                expected: "at least 1 and finite",
                value: *p,
            }),
            _ => Ok(()),
        }
    }

    /// Refuses points that it is not defined at.
    pub(crate) fn check(&self, points: &Points<'_>) -> Result<()> {
        match self {
            GroundCost::Cosine | GroundCost::Geodesic => {
                let zero = |i: &usize| (0..points.dim()).all(|k| points.coordinate(*i, k) == 0.0);
                match (0..points.len()).find(zero) {
                    Some(i) => Err(Error::NoDirection { point: i + 1, cost: self.name() }),
                    None => Ok(()),
                }
            }
            GroundCost::Mahalanobis(matrix) if matrix.dim() != points.dim() => Err(Error::Shape {
                what: "the matrix of the Mahalanobis cost",
                expected: Shape { rows: points.dim(), columns: points.dim() },
                got: Shape { rows: matrix.dim(), columns: matrix.dim() },
            }),
            GroundCost::Mahalanobis(matrix) => {
                let (mut x, mut out) = (vec![0.0; points.dim()], vec![0.0; points.dim()]);
                for i in 0..points.len() {
                    points.copy_coordinates(i, 0, &mut x);
                    matrix.root_times(&x, &mut out);
                    if out.iter().any(|x| !x.is_finite()) {
                        return Err(Error::Overflow { what: "the Mahalanobis cost" });
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `T(x)`: points in the coordinates in which it is a squared Euclidean cost, or, of the geodesic cost, their
    /// directions. Those that are as they should be are borrowed.
    pub(crate) fn mapped<'m>(&self, points: &'m Points<'_>) -> Points<'m> {
        self.image(points).unwrap_or_else(|| points.borrowed())
    }

    /// The same, if they change.
    pub(crate) fn image(&self, points: &Points<'_>) -> Option<Points<'static>> {
        const MAPPED_ROWS: usize = 1024;
        if matches!(
            self,
            GroundCost::SquaredEuclidean
                | GroundCost::Euclidean
                | GroundCost::L1
                | GroundCost::Lp(_)
                | GroundCost::Function(_)
        ) {
            return None;
        }
        let dim = points.dim();
        let mut values = vec![0.0; points.len() * dim];
        values.par_chunks_mut(MAPPED_ROWS * dim).enumerate().for_each(|(c, values)| {
            let mut x = vec![0.0; dim];
            for (i, out) in (c * MAPPED_ROWS..).zip(values.chunks_exact_mut(dim)) {
                points.copy_coordinates(i, 0, &mut x);
                match self {
                    GroundCost::Cosine => {
                        direction(&mut x);
                        out.iter_mut().zip(&x).for_each(|(o, x)| *o = FRAC_1_SQRT_2 * x);
                    }
                    GroundCost::Dot => {
                        out.iter_mut().zip(&x).for_each(|(o, x)| *o = FRAC_1_SQRT_2 * x);
                    }
                    GroundCost::Mahalanobis(matrix) => matrix.root_times(&x, out),
                    _ => {
                        direction(&mut x);
                        out.copy_from_slice(&x);
                    }
                }
            }
        });
        let image = Points::new(values, dim).expect("points that were checked");
        Some(image.in_place_of(points))
    }

    /// `T` of the points of a measure.
    pub(crate) fn mapped_measure<'m>(&self, measure: &'m Measure<'_>) -> Measure<'m> {
        measure.with_points(self.mapped(measure.points()))
    }

    /// Whether it has terms of one point each.
    pub(crate) fn has_offsets(&self) -> bool {
        matches!(self, GroundCost::Dot)
    }

    /// `h(x)`.
    pub(crate) fn offset(&self, points: &Points<'_>, i: usize) -> f64 {
        match self {
            GroundCost::Dot => {
                -0.5 * (0..points.dim()).map(|k| points.coordinate(i, k).powi(2)).sum::<f64>()
            }
            _ => 0.0,
        }
    }

    /// The gradient of a value by a point, out of that by `T(x)`, if the value has `h(x)` too, `mass` times.
    pub(crate) fn pull_back(
        &self,
        (points, i): (&Points<'_>, usize),
        mass: f64,
        gradient: &mut [f64],
        scratch: &mut [f64],
    ) {
        match self {
            GroundCost::Cosine => {
                points.copy_coordinates(i, 0, scratch);
                let length = direction(scratch);
                let along: f64 = gradient.iter().zip(&*scratch).map(|(g, x)| g * x).sum();
                for (g, x) in gradient.iter_mut().zip(&*scratch) {
                    *g = FRAC_1_SQRT_2 * (*g - along * x) / length;
                }
            }
            GroundCost::Dot => {
                for (k, g) in gradient.iter_mut().enumerate() {
                    *g = FRAC_1_SQRT_2 * *g - mass * points.coordinate(i, k);
                }
            }
            GroundCost::Mahalanobis(matrix) => {
                scratch.copy_from_slice(gradient);
                matrix.root_times(scratch, gradient);
            }
            _ => {}
        }
    }

    /// The cost of a pair that has no squared distance, from mapped coordinates.
    pub(crate) fn of_pair(&self, x: &[f64], y: &[f64]) -> f64 {
        let apart = || x.iter().zip(y).map(|(x, y)| (x - y).abs());
        let top = || apart().fold(0.0, f64::max);
        match self {
            GroundCost::L1 => apart().sum(),
            GroundCost::Function(CostFunction(cost)) => cost(x, y),
            GroundCost::Geodesic => {
                let length = |sign: f64| -> f64 {
                    x.iter().zip(y).map(|(x, y)| (x + sign * y).powi(2)).sum::<f64>().sqrt()
                };
                2.0 * length(-1.0).atan2(length(1.0))
            }
            // Divided by the largest first, so that no power leaves the range of the numbers.
            GroundCost::Lp(p) => match top() {
                0.0 => 0.0,
                top => top * apart().map(|d| (d / top).powf(*p)).sum::<f64>().powf(1.0 / p),
            },
            _ => match top() {
                0.0 => 0.0,
                top => top * apart().map(|d| (d / top).powi(2)).sum::<f64>().sqrt(),
            },
        }
    }

    /// Adds `scale` times the derivative of the cost of a pair by the first point, from mapped coordinates; `length` is
    /// that of the point before it was mapped.
    pub(crate) fn add_slope(
        &self,
        (x, length): (&[f64], f64),
        y: &[f64],
        scale: f64,
        out: &mut [f64],
    ) {
        let pairs = || x.iter().zip(y);
        match self {
            GroundCost::L1 => {
                for (o, (x, y)) in out.iter_mut().zip(pairs()) {
                    *o += scale * sign(x - y);
                }
            }
            GroundCost::Geodesic => {
                let cosine: f64 = pairs().map(|(x, y)| x * y).sum();
                let across: f64 =
                    pairs().map(|(x, y)| (y - cosine * x).powi(2)).sum::<f64>().sqrt();
                // At the same direction and at the opposite one there is a kink.
                if across > 0.0 {
                    for (o, (x, y)) in out.iter_mut().zip(pairs()) {
                        *o -= scale * (y - cosine * x) / across / length;
                    }
                }
            }
            GroundCost::Function(_) => unreachable!("a function has no derivative"),
            _ => {
                let p = if let GroundCost::Lp(p) = self { *p } else { 2.0 };
                let cost = self.of_pair(x, y);
                if cost > 0.0 {
                    for (o, (x, y)) in out.iter_mut().zip(pairs()) {
                        *o += scale * sign(x - y) * ((x - y).abs() / cost).powf(p - 1.0);
                    }
                }
            }
        }
    }

    /// At most how much the costs of pairs of two clouds differ, of costs that are no squared distance; infinite where that
    /// is not known.
    pub(crate) fn range(&self, clouds: [&Points<'_>; 2]) -> f64 {
        match self {
            GroundCost::Geodesic => std::f64::consts::PI,
            GroundCost::Function(_) => f64::INFINITY,
            // Costs are lengths, and no two points are farther from each other than from a third one.
            _ => {
                let [x, y] = clouds;
                let (mut third, mut at) = (vec![0.0; x.dim()], vec![0.0; x.dim()]);
                x.copy_coordinates(0, 0, &mut third);
                let mut farthest = |points: &Points<'_>| {
                    let mut most: f64 = 0.0;
                    for i in 0..points.len() {
                        points.copy_coordinates(i, 0, &mut at);
                        most = most.max(self.of_pair(&at, &third));
                    }
                    most
                };
                farthest(x) + farthest(y)
            }
        }
    }
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// Divides a vector by its length, which it returns.
pub(crate) fn direction(x: &mut [f64]) -> f64 {
    let top = x.iter().fold(0.0_f64, |top, x| top.max(x.abs()));
    for x in &mut *x {
        *x /= top;
    }
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    for x in &mut *x {
        *x /= length;
    }
    top * length
}
