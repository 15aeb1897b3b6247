//! Positive features that the caller has computed.

use crate::error::{Error, Result, Shape};
use crate::kernel::LogRows;
use crate::measure::Values;

/// An `n x r` matrix of positive features, row-major, in single or double precision.
///
/// An entry that is not positive and finite is an error that names its row and column.
#[derive(Debug, Clone)]
pub struct FeatureMatrix<'a> {
    values: Values<'a>,
    rows: usize,
    rank: usize,
}

impl<'a> FeatureMatrix<'a> {
    /// The matrix with these entries.
    pub fn new(values: impl Into<Values<'a>>, rows: usize, rank: usize) -> Result<Self> {
        let values = values.into();
        if rows == 0 {
            return Err(Error::NoPoints);
        }
        if rank == 0 {
            return Err(Error::Option { name: "rank", expected: "at least 1", value: 0.0 });
        }
        if rows.checked_mul(rank) != Some(values.len()) {
            return Err(Error::Shape {
                what: "the feature matrix",
                expected: Shape { rows, columns: rank },
                got: Shape { rows: 1, columns: values.len() },
            });
        }
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if let Some(i) = (0..values.len()).find(|&i| !positive(values.get(i))) {
            let (row, column) = (i / rank + 1, i % rank + 1);
            return Err(Error::Feature { row, column, value: values.get(i) });
        }
        Ok(FeatureMatrix { values, rows, rank })
    }

    /// The rows of one matrix and then those of another, of the same rank.
    pub(crate) fn stacked(xi: &Self, zeta: &FeatureMatrix<'_>) -> Result<FeatureMatrix<'static>> {
        let all = |matrix: &FeatureMatrix<'_>| -> Vec<f64> {
            (0..matrix.values.len()).map(|i| matrix.values.get(i)).collect()
        };
        let values = [all(xi), all(zeta)].concat();
        FeatureMatrix::new(values, xi.rows + zeta.rows, xi.rank)
    }

    /// Number of points.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of features.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The rows at `indices`.
    pub(crate) fn select<'s>(&'s self, indices: &'s [usize]) -> Selected<'s> {
        Selected { matrix: self, indices }
    }

    fn fill_row(&self, i: usize, row: &mut [f64]) {
        for (k, l) in row[..self.rank].iter_mut().enumerate() {
            *l = self.values.get(i * self.rank + k).ln();
        }
    }
}

/// Some rows of a matrix of features.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selected<'a> {
    matrix: &'a FeatureMatrix<'a>,
    indices: &'a [usize],
}

impl LogRows for Selected<'_> {
    fn rows(&self) -> usize {
        self.indices.len()
    }

    fn rank(&self) -> usize {
        self.matrix.rank
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        for (&i, row) in self.indices[first..].iter().zip(out.chunks_exact_mut(stride)) {
            self.matrix.fill_row(i, row);
        }
    }
}

impl LogRows for FeatureMatrix<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        for (i, row) in out.chunks_exact_mut(stride).enumerate() {
            self.fill_row(first + i, row);
        }
    }
}
