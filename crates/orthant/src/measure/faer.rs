//! Points from and to matrices of `faer`.

use faer::{Mat, MatRef};

use super::Points;
use crate::error::{Error, Result};

macro_rules! points_of_matrices {
    ($($real:ty),*) => {$(
        /// A point in every row. Coordinates are copied: those of a point are next to each other here, and in most matrices
        /// of faer they are not.
        ///
        /// ```
        /// use faer::mat;
        /// use orthant::Points;
        /// let x = mat![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]];
        /// let points = Points::try_from(x.as_ref())?;
        /// assert_eq!((points.len(), points.dim(), points.coordinate(2, 0)), (3, 2, 4.0));
        /// # Ok::<(), orthant::Error>(())
        /// ```
        impl TryFrom<MatRef<'_, $real>> for Points<'static> {
            type Error = Error;

            fn try_from(rows: MatRef<'_, $real>) -> Result<Self> {
                let (n, dim) = (rows.nrows(), rows.ncols());
                let values: Vec<$real> =
                    (0..n).flat_map(|i| (0..dim).map(move |k| rows[(i, k)])).collect();
                Points::new(values, dim)
            }
        }
    )*};
}
points_of_matrices!(f32, f64);

/// A row for every point, in double precision: a shape for the row-major results of the library, as `Points::new(values,
/// dim)`.
impl From<&Points<'_>> for Mat<f64> {
    fn from(points: &Points<'_>) -> Self {
        Mat::from_fn(points.len(), points.dim(), |i, k| points.coordinate(i, k))
    }
}
