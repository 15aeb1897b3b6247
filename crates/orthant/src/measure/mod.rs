//! Weighted point clouds, validated once, at the door.

#[cfg(feature = "faer")]
mod faer;
mod moments;
#[cfg(feature = "ndarray")]
mod ndarray;

pub(crate) use moments::extremes;

use std::borrow::Cow;
use std::sync::Arc;

use crate::comm::Span;
use crate::error::{Error, Result};

/// `n` points of `d` coordinates, row-major, in single or double precision; borrowed or owned.
///
/// With the features `ndarray` and `faer` there are conversions from and to the matrices of these crates, a point in every
/// row.
///
/// ```
/// use orthant::Points;
/// let points = Points::new(vec![0.0, 0.0, 1.0, 0.0], 2)?;
/// assert_eq!((points.len(), points.dim()), (2, 2));
/// assert!(Points::new(vec![0.0, f64::NAN], 2).is_err());
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Points<'a> {
    values: Values<'a>,
    dim: usize,
    /// Which rows these are of those that all processes hold.
    span: Span,
}

/// Row-major coordinates in either precision.
#[derive(Debug, Clone)]
pub enum Values<'a> {
    /// Single precision.
    F32(Cow<'a, [f32]>),
    /// Double precision.
    F64(Cow<'a, [f64]>),
}

macro_rules! values_from {
    ($($variant:ident $real:ty),*) => {$(
        impl From<Vec<$real>> for Values<'_> {
            fn from(values: Vec<$real>) -> Self { Values::$variant(Cow::Owned(values)) }
        }
        impl<'a> From<&'a [$real]> for Values<'a> {
            fn from(values: &'a [$real]) -> Self { Values::$variant(Cow::Borrowed(values)) }
        }
        impl<'a> From<&'a Vec<$real>> for Values<'a> {
            fn from(values: &'a Vec<$real>) -> Self { Values::$variant(Cow::Borrowed(values)) }
        }
    )*};
}
values_from!(F32 f32, F64 f64);

impl Values<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::F32(v) => v.len(),
            Values::F64(v) => v.len(),
        }
    }

    pub(crate) fn get(&self, i: usize) -> f64 {
        match self {
            Values::F32(v) => f64::from(v[i]),
            Values::F64(v) => v[i],
        }
    }
}

impl<'a> Points<'a> {
    /// Points from their row-major coordinates, `dim` a point.
    ///
    /// An empty array, a length that is no multiple of `dim`, and NaN or infinite coordinates are
    /// errors.
    pub fn new(values: impl Into<Values<'a>>, dim: usize) -> Result<Self> {
        let values = values.into();
        if dim == 0 {
            return Err(Error::NoCoordinates);
        }
        if values.len() == 0 {
            return Err(Error::NoPoints);
        }
        if !values.len().is_multiple_of(dim) {
            return Err(Error::Ragged { len: values.len(), dim });
        }
        let bad = match &values {
            Values::F32(v) => v.iter().position(|x| !x.is_finite()),
            Values::F64(v) => v.iter().position(|x| !x.is_finite()),
        };
        if let Some(i) = bad {
            return Err(Error::Coordinate {
                point: i / dim + 1,
                coordinate: i % dim + 1,
                value: values.get(i),
            });
        }
        let span = Span::alone(values.len() / dim);
        Ok(Points { values, dim, span })
    }

    /// Number of points; at least one.
    #[expect(clippy::len_without_is_empty, reason = "there is always at least one point")]
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Number of coordinates of a point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The coordinates, row-major.
    pub fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// Coordinate `k` of point `i`.
    pub fn coordinate(&self, i: usize, k: usize) -> f64 {
        self.values.get(i * self.dim + k)
    }

    /// Copies the coordinates of point `i` to `out`, which has room for all of them.
    ///
    /// ```
    /// use orthant::Points;
    /// let points = Points::new(vec![0.0_f32, 1.0, 2.0, 3.0], 2)?;
    /// let mut point = [0.0; 2];
    /// points.point(1, &mut point);
    /// assert_eq!(point, [2.0, 3.0]);
    /// # Ok::<(), orthant::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such point, or `out` is not as long as a point.
    pub fn point(&self, i: usize, out: &mut [f64]) {
        assert_eq!(out.len(), self.dim, "a point has {} coordinates", self.dim);
        self.copy_coordinates(i, 0, out);
    }

    /// Copies coordinates `first..first + out.len()` of point `i`.
    pub(crate) fn copy_coordinates(&self, i: usize, first: usize, out: &mut [f64]) {
        let start = i * self.dim + first;
        match &self.values {
            Values::F32(v) => {
                for (o, &x) in out.iter_mut().zip(&v[start..]) {
                    *o = f64::from(x);
                }
            }
            Values::F64(v) => out.copy_from_slice(&v[start..start + out.len()]),
        }
    }

    /// Borrows the points, without a copy of their coordinates.
    pub fn borrowed(&self) -> Points<'_> {
        let values = match &self.values {
            Values::F32(v) => Values::F32(Cow::Borrowed(v)),
            Values::F64(v) => Values::F64(Cow::Borrowed(v)),
        };
        Points { values, dim: self.dim, span: self.span.clone() }
    }

    /// Which rows these are of those that all processes hold.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// These points, with those of other processes.
    #[cfg(test)]
    pub(crate) fn spread(self, comm: Arc<dyn crate::comm::Comm>) -> Self {
        Points { span: Span::new(comm, self.len()), ..self }
    }

    /// These points, held by the processes that hold others.
    pub(crate) fn among(self, others: &Points<'_>) -> Self {
        Points { span: others.span.of(self.len()), ..self }
    }

    /// These points, which take the places of others, point by point.
    pub(crate) fn in_place_of(self, others: &Points<'_>) -> Self {
        debug_assert_eq!(self.len(), others.len(), "a point for a point");
        Points { span: others.span.clone(), ..self }
    }

    /// The points at `indices`, in that order.
    pub(crate) fn select(&self, indices: &[usize]) -> Points<'static> {
        fn rows<T: Copy>(values: &[T], dim: usize, indices: &[usize]) -> Vec<T> {
            indices.iter().flat_map(|&i| &values[i * dim..(i + 1) * dim]).copied().collect()
        }
        let values = match &self.values {
            Values::F32(v) => Values::from(rows(v, self.dim, indices)),
            Values::F64(v) => Values::from(rows(v, self.dim, indices)),
        };
        Points { values, dim: self.dim, span: self.span.of(indices.len()) }
    }
}

/// A probability measure `sum_i a_i delta(x_i)`: points and weights.
///
/// Weights may sum to anything positive; they are normalised, and their sum is kept as the
/// [`Measure::mass`], which matters to unbalanced transport alone. Points of weight zero are kept apart:
/// they take no part in a solve, and get their potentials by extension. Duplicate points are fine. Clones share their
/// points and weights.
///
/// ```
/// use orthant::{Measure, Points};
/// let points = Points::new(vec![0.0_f32, 1.0, 2.0], 1)?;
/// let measure = Measure::weighted(points, &[1.0, 0.0, 3.0])?;
/// assert_eq!(measure.weights(), [0.25, 0.0, 0.75]);
/// assert_eq!(measure.mass(), 4.0);
/// assert_eq!(measure.support().len(), 2);
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Measure<'a> {
    shared: Arc<Shared<'a>>,
    mass: f64,
}

/// All of a measure that is large.
#[derive(Debug)]
struct Shared<'a> {
    points: Points<'a>,
    weights: Vec<f64>,
    parts: Option<Parts>,
}

/// Where a measure has points of weight zero: the others, and these.
#[derive(Debug)]
struct Parts {
    kept: Vec<usize>,
    support: Points<'static>,
    support_weights: Vec<f64>,
    dropped: Vec<usize>,
    outside: Points<'static>,
}

/// Points of positive weight, as a solver sees them.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Support<'m> {
    /// The points.
    pub points: &'m Points<'m>,
    /// Their weights, all positive, of sum 1.
    pub weights: &'m [f64],
}

impl Support<'_> {
    /// Number of points; at least one.
    #[expect(clippy::len_without_is_empty, reason = "there is always at least one point")]
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Mean of the points under the weights.
    pub(crate) fn mean(&self) -> Vec<f64> {
        let Support { points, weights } = *self;
        let mut mean = vec![0.0; points.dim()];
        points.span().sum_each(&mut mean, |i, sums| {
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum += weights[i] * points.coordinate(i, k);
            }
        });
        mean
    }
}

impl<'a> Measure<'a> {
    /// The uniform measure on `points`, of mass 1.
    pub fn uniform(points: Points<'a>) -> Self {
        let weight = 1.0 / points.span().total() as f64;
        let shared = Shared { weights: vec![weight; points.len()], points, parts: None };
        Measure { shared: Arc::new(shared), mass: 1.0 }
    }

    /// The measure that gives `points` these weights, normalised to sum 1.
    ///
    /// Negative, infinite or NaN weights, and weights that are all zero, are errors.
    pub fn weighted(points: Points<'a>, weights: &[f64]) -> Result<Self> {
        if weights.len() != points.len() {
            return Err(Error::WeightCount { weights: weights.len(), points: points.len() });
        }
        if let Some(i) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            return Err(Error::Weight { point: i + 1, value: weights[i] });
        }
        let largest = points.span().max(|i| weights[i]);
        if largest == 0.0 {
            return Err(Error::NoMass);
        }
        // Divided by the largest first, so that the sum neither overflows nor underflows.
        let relative: Vec<f64> = weights.iter().map(|w| w / largest).collect();
        let total = points.span().sum(|i| relative[i]);
        let weights: Vec<f64> = relative.iter().map(|w| w / total).collect();

        let parts = points.span().any(weights.contains(&0.0)).then(|| {
            let (kept, dropped): (Vec<usize>, Vec<usize>) =
                (0..weights.len()).partition(|&i| weights[i] > 0.0);
            Parts {
                support: points.select(&kept),
                support_weights: kept.iter().map(|&i| weights[i]).collect(),
                outside: points.select(&dropped),
                kept,
                dropped,
            }
        });
        let shared = Arc::new(Shared { points, weights, parts });
        Ok(Measure { shared, mass: largest * total })
    }

    /// The measure with the same weights on other points, one for each.
    pub(crate) fn with_points<'b>(&self, points: Points<'b>) -> Measure<'b> {
        let parts = self.shared.parts.as_ref().map(|parts| Parts {
            support: points.select(&parts.kept).among(&parts.support),
            support_weights: parts.support_weights.clone(),
            outside: points.select(&parts.dropped),
            kept: parts.kept.clone(),
            dropped: parts.dropped.clone(),
        });
        let shared = Shared { points, weights: self.shared.weights.clone(), parts };
        Measure { shared: Arc::new(shared), mass: self.mass }
    }

    /// All points, also those of weight zero.
    pub fn points(&self) -> &Points<'a> {
        &self.shared.points
    }

    /// The weights of all points, of sum 1.
    pub fn weights(&self) -> &[f64] {
        &self.shared.weights
    }

    /// The sum of the weights as they were given. Balanced transport is between the normalised weights; if
    /// a marginal is relaxed ([`rho_x`](crate::options::OptionsBuilder::rho_x)), it is between the weights as given.
    pub fn mass(&self) -> f64 {
        self.mass
    }

    /// Replaces the mass of the measure by another one, positive and finite.
    pub fn with_mass(self, mass: f64) -> Result<Self> {
        if mass > 0.0 && mass.is_finite() {
            Ok(Measure { mass, ..self })
        } else {
            let expected = "positive and finite";
            Err(Error::Option { name: "the mass of a measure", expected, value: mass })
        }
    }

    /// Number of coordinates of a point.
    pub fn dim(&self) -> usize {
        self.shared.points.dim()
    }

    /// The points of positive weight.
    pub fn support(&self) -> Support<'_> {
        match &self.shared.parts {
            None => Support { points: &self.shared.points, weights: &self.shared.weights },
            Some(parts) => Support { points: &parts.support, weights: &parts.support_weights },
        }
    }

    /// The points of weight zero, if there are any.
    pub(crate) fn outside(&self) -> Option<&Points<'static>> {
        self.shared.parts.as_ref().map(|parts| &parts.outside)
    }

    /// The points of positive weight, or those of weight zero, by their indices; `None` if there are
    /// no points of weight zero.
    pub(crate) fn indices(&self, support: bool) -> Option<&[usize]> {
        self.shared
            .parts
            .as_ref()
            .map(|parts| if support { &parts.kept[..] } else { &parts.dropped })
    }

    /// Puts values on the support and on the points outside back in the order of the points.
    pub(crate) fn scatter(&self, support: Vec<f64>, outside: &[f64]) -> Vec<f64> {
        let Some(parts) = &self.shared.parts else { return support };
        let mut all = vec![0.0; self.shared.weights.len()];
        for (&i, v) in parts.kept.iter().zip(support) {
            all[i] = v;
        }
        for (&i, &v) in parts.dropped.iter().zip(outside) {
            all[i] = v;
        }
        all
    }

    /// The values of the support, out of values for all points.
    pub(crate) fn gather<'v>(&self, all: &'v [f64]) -> Cow<'v, [f64]> {
        match &self.shared.parts {
            None => Cow::Borrowed(all),
            Some(parts) => parts.kept.iter().map(|&i| all[i]).collect(),
        }
    }

    /// Entropy `-sum a log a` of the weights.
    pub fn entropy(&self) -> f64 {
        let support = self.support();
        -support.points.span().sum(|i| support.weights[i] * support.weights[i].ln())
    }

    /// Mean of the points under the weights.
    pub fn mean(&self) -> Vec<f64> {
        self.support().mean()
    }
}

/// Whose points count one each where points of several measures are put together, the others by their weights as given.
///
/// Those without weights do, which are of mass 1 with equal weights; and all of them, where every measure has equal weights:
/// their masses say nothing about single points then.
pub(crate) fn are_counted(measures: &[&Measure<'_>]) -> Vec<bool> {
    let equal: Vec<bool> =
        measures.iter().map(|m| m.weights().iter().all(|w| *w == m.weights()[0])).collect();
    let all = equal.iter().all(|equal| *equal);
    measures.iter().zip(equal).map(|(m, equal)| all || (equal && m.mass() == 1.0)).collect()
}

/// Row-major coordinates in double precision.
pub(crate) fn coordinates(points: &Points<'_>) -> Vec<f64> {
    match points.values() {
        Values::F32(values) => values.iter().map(|x| f64::from(*x)).collect(),
        Values::F64(values) => values.to_vec(),
    }
}
