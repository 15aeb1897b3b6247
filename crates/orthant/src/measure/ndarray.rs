//! Points from and to arrays of `ndarray`.

use std::borrow::Cow;

use ndarray::{Array2, ArrayView2};

use super::{Points, Values, coordinates};
use crate::error::{Error, Result};

macro_rules! points_of_arrays {
    ($($real:ty),*) => {$(
        /// A point in every row. Rows that follow each other in memory are borrowed, others are copied.
        ///
        /// ```
        /// use ndarray::array;
        /// use orthant::Points;
        /// let x = array![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]];
        /// let points = Points::try_from(x.view())?;
        /// assert_eq!((points.len(), points.dim()), (3, 2));
        /// // The transposed matrix has points of three coordinates.
        /// assert_eq!(Points::try_from(x.t())?.dim(), 3);
        /// # Ok::<(), orthant::Error>(())
        /// ```
        impl<'a> TryFrom<ArrayView2<'a, $real>> for Points<'a> {
            type Error = Error;

            fn try_from(rows: ArrayView2<'a, $real>) -> Result<Self> {
                let dim = rows.ncols();
                match rows.to_slice() {
                    Some(values) => Points::new(values, dim),
                    None => Points::new(rows.iter().copied().collect::<Vec<_>>(), dim),
                }
            }
        }

        /// A point in every row. Rows that follow each other in memory are borrowed, others are copied.
        impl<'a> TryFrom<&'a Array2<$real>> for Points<'a> {
            type Error = Error;

            fn try_from(rows: &'a Array2<$real>) -> Result<Self> {
                Points::try_from(rows.view())
            }
        }
    )*};
}
points_of_arrays!(f32, f64);

/// A row for every point, in double precision. Owned coordinates are not copied if they are in double precision already.
///
/// Results of the library are row-major too: this gives them a shape.
///
/// ```
/// use ndarray::Array2;
/// use orthant::{Side, Measure, Options, Points, plan};
/// let mu = Measure::uniform(Points::new(vec![0.0, 0.0, 1.0, 0.0], 2)?);
/// let nu = Measure::uniform(Points::new(vec![0.0, 1.0, 1.0, 1.0, 2.0, 1.0], 2)?);
/// let options = Options::builder(0.1).build()?;
/// let plan = plan(&mu, &nu, &options)?;
/// let moved = Array2::from(Points::new(plan.barycentric(Side::X)?, 2)?);
/// assert_eq!(moved.dim(), (2, 2));
/// assert!((moved[[0, 1]] - 1.0).abs() < 1e-6);
/// # Ok::<(), orthant::Error>(())
/// ```
impl From<Points<'_>> for Array2<f64> {
    fn from(points: Points<'_>) -> Self {
        let (rows, columns) = (points.len(), points.dim());
        let values = match points.values {
            Values::F64(Cow::Owned(values)) => values,
            _ => coordinates(&points),
        };
        Array2::from_shape_vec((rows, columns), values).expect("points have all their coordinates")
    }
}
