//! The matrix of a Mahalanobis cost.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::numerics::linalg;
use crate::words::Shape;

/// A symmetric matrix without negative eigenvalues, as that of the cost `(x - y)' A (x - y)`. Clones share its entries.
///
/// ```
/// use orthant::{GroundCost, Mahalanobis};
/// let cost = GroundCost::Mahalanobis(Mahalanobis::new(&[2.0, 0.5, 0.5, 1.0], 2)?);
/// // A matrix with a negative eigenvalue is none.
/// assert!(Mahalanobis::new(&[1.0, 2.0, 2.0, 1.0], 2).is_err());
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mahalanobis {
    /// The symmetric square root, row-major.
    root: Arc<[f64]>,
    dim: usize,
}

/// Differences and eigenvalues that rounding leaves, relative to the largest entry or eigenvalue.
const ROUNDING: f64 = 1e-10;

impl Mahalanobis {
    /// The matrix with these entries, row-major, for points of `dim` coordinates.
    pub fn new(entries: &[f64], dim: usize) -> Result<Self> {
        if dim == 0 {
            return Err(Error::NoCoordinates);
        }
        if dim.checked_mul(dim) != Some(entries.len()) {
            return Err(Error::Shape {
                what: "the matrix of the Mahalanobis cost",
                expected: Shape { rows: dim, columns: dim },
                got: Shape { rows: entries.len() / dim, columns: dim },
            });
        }
        if let Some(i) = entries.iter().position(|a| !a.is_finite()) {
            let (row, column) = (i / dim + 1, i % dim + 1);
            return Err(Error::MatrixEntry { row, column, value: entries[i] });
        }
        let largest = entries.iter().fold(0.0_f64, |most, a| most.max(a.abs()));
        let mut scaled: Vec<f64> = entries.iter().map(|a| a / largest.max(1e-300)).collect();
        for i in 0..dim {
            for j in 0..i {
                let (one, other) = (scaled[i * dim + j], scaled[j * dim + i]);
                if (one - other).abs() > ROUNDING {
                    return Err(Error::MatrixNotSymmetric { row: i + 1, column: j + 1 });
                }
                scaled[i * dim + j] = 0.5 * (one + other);
                scaled[j * dim + i] = 0.5 * (one + other);
            }
        }
        let eigen = linalg::eigen(&scaled, dim);
        let most = eigen.0.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        let least = eigen.0.iter().copied().fold(f64::INFINITY, f64::min);
        if least < -ROUNDING * most {
            return Err(Error::MatrixNotPositive { eigenvalue: least * largest });
        }
        let root = linalg::function(&eigen, |v| v.max(0.0).sqrt() * largest.sqrt());
        Ok(Mahalanobis { root: root.into(), dim })
    }

    /// Number of rows and columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The square root times a vector.
    pub(super) fn root_times(&self, x: &[f64], out: &mut [f64]) {
        for (o, row) in out.iter_mut().zip(self.root.chunks_exact(self.dim)) {
            *o = row.iter().zip(x).map(|(a, x)| a * x).sum();
        }
    }
}
