//! Positive features that the caller has computed.

use std::sync::Arc;

use rayon::prelude::*;

use crate::comm::Span;
use crate::error::{Error, Result};
use crate::measure::Values;
use crate::numerics::simd::{Float, ln_row};
use crate::rows::{LEAST, LogRows, MOST};
use crate::words::Shape;

/// An `n x r` matrix of positive features, row-major, in single or double precision.
///
/// An entry that is not positive and finite is an error that names its row and column. It is data of a call, see
/// [`Solver::features`](crate::Solver::features). Clones share their entries.
#[derive(Debug, Clone)]
pub struct FeatureMatrix<'a> {
    values: Arc<Values<'a>>,
    span: Span,
    rank: usize,
    /// See [`LogRows::is_plain`].
    is_plain: bool,
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
        let outside = |low: f64, high: f64| match &values {
            Values::F32(values) => first_outside(values, low, high),
            Values::F64(values) => first_outside(values, low, high),
        };
        let is_plain = outside(LEAST, MOST).is_none();
        // The smallest positive number, and the largest.
        if let (false, Some(i)) = (is_plain, outside(f64::from_bits(1), f64::MAX)) {
            let (row, column) = (i / rank + 1, i % rank + 1);
            return Err(Error::Feature { row, column, value: values.get(i) });
        }
        Ok(FeatureMatrix { values: Arc::new(values), span: Span::alone(rows), rank, is_plain })
    }

    /// The rows of one matrix and then those of another, of the same rank.
    pub(crate) fn stacked(xi: &Self, zeta: &FeatureMatrix<'_>) -> Result<FeatureMatrix<'static>> {
        let all = |matrix: &FeatureMatrix<'_>| -> Vec<f64> {
            (0..matrix.values.len()).map(|i| matrix.values.get(i)).collect()
        };
        let values = [all(xi), all(zeta)].concat();
        FeatureMatrix::new(values, xi.rows() + zeta.rows(), xi.rank)
    }

    /// The entries, row-major.
    pub fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// Number of points.
    pub fn rows(&self) -> usize {
        self.span.len()
    }

    /// Number of features.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The rows at `indices`.
    pub(crate) fn select<'s>(&'s self, indices: &'s [usize]) -> Selected<'s> {
        Selected { matrix: self, indices, span: self.span.of(indices.len()) }
    }

    fn fill_row(&self, i: usize, row: &mut [f64]) {
        let (range, row) = (i * self.rank..(i + 1) * self.rank, &mut row[..self.rank]);
        match &*self.values {
            Values::F32(values) => ln_row(&values[range], row),
            Values::F64(values) => ln_row(&values[range], row),
        }
    }

    fn copy_row(&self, i: usize, row: &mut [f64]) {
        let (range, row) = (i * self.rank..(i + 1) * self.rank, &mut row[..self.rank]);
        match &*self.values {
            Values::F32(values) => {
                row.iter_mut().zip(&values[range]).for_each(|(out, x)| *out = f64::from(*x));
            }
            Values::F64(values) => row.copy_from_slice(&values[range]),
        }
    }
}

/// Where the first number is that is not between two others.
fn first_outside<T: Float>(values: &[T], low: f64, high: f64) -> Option<usize> {
    const PART: usize = 1 << 14;
    let inside = |x: &T| x.to_f64() >= low && x.to_f64() <= high;
    values.par_chunks(PART).enumerate().find_map_first(|(part, values)| {
        // Without an end in sight, so that the loop is one of vectors.
        if values.iter().fold(true, |all, x| all & inside(x)) {
            return None;
        }
        values.iter().position(|x| !inside(x)).map(|i| part * PART + i)
    })
}

/// Some rows of a matrix of features.
#[derive(Debug, Clone)]
pub(crate) struct Selected<'a> {
    matrix: &'a FeatureMatrix<'a>,
    indices: &'a [usize],
    span: Span,
}

impl LogRows for Selected<'_> {
    fn span(&self) -> &Span {
        &self.span
    }

    fn rank(&self) -> usize {
        self.matrix.rank
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        for (&i, row) in self.indices[first..].iter().zip(out.chunks_exact_mut(stride)) {
            self.matrix.fill_row(i, row);
        }
    }

    fn is_plain(&self) -> bool {
        self.matrix.is_plain
    }

    fn fill_plain(&self, first: usize, stride: usize, out: &mut [f64]) {
        for (&i, row) in self.indices[first..].iter().zip(out.chunks_exact_mut(stride)) {
            self.matrix.copy_row(i, row);
        }
    }
}

impl LogRows for FeatureMatrix<'_> {
    fn span(&self) -> &Span {
        &self.span
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        for (i, row) in out.chunks_exact_mut(stride).enumerate() {
            self.fill_row(first + i, row);
        }
    }

    fn is_plain(&self) -> bool {
        self.is_plain
    }

    fn fill_plain(&self, first: usize, stride: usize, out: &mut [f64]) {
        for (i, row) in out.chunks_exact_mut(stride).enumerate() {
            self.copy_row(first + i, row);
        }
    }
}
