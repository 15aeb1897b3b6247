//! Rows of an exact kernel that is not the Gaussian: a cost matrix, or the cost of a feature map.

use std::sync::Arc;

use super::LogRows;
use crate::comm::Span;
use crate::error::{Error, Result};
use crate::measure::{Measure, Values};
use crate::numerics::simd;
use crate::words::Shape;

/// An `n x m` matrix of costs, row-major, in single or double precision; all finite.
///
/// It is data of a call, see [`Solver::costs`](crate::Solver::costs). Clones share their entries.
#[derive(Debug, Clone)]
pub struct CostMatrix<'a> {
    values: Arc<Values<'a>>,
    rows: usize,
    columns: usize,
    least: f64,
    most: f64,
}

impl<'a> CostMatrix<'a> {
    /// The matrix with these entries.
    pub fn new(values: impl Into<Values<'a>>, rows: usize, columns: usize) -> Result<Self> {
        let values = values.into();
        if rows == 0 || columns == 0 {
            return Err(Error::NoPoints);
        }
        if rows.checked_mul(columns) != Some(values.len()) {
            return Err(Error::Shape {
                what: "the cost matrix",
                expected: Shape { rows, columns },
                got: Shape { rows: 1, columns: values.len() },
            });
        }
        if let Some(i) = (0..values.len()).find(|&i| !values.get(i).is_finite()) {
            let (row, column) = (i / columns + 1, i % columns + 1);
            return Err(Error::Cost { row, column, value: values.get(i) });
        }
        let all = (0..values.len()).map(|i| values.get(i));
        let (least, most) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), c| {
            (least.min(c), most.max(c))
        });
        Ok(CostMatrix { values: Arc::new(values), rows, columns, least, most })
    }

    /// Rows by columns.
    pub fn shape(&self) -> Shape {
        Shape { rows: self.rows, columns: self.columns }
    }

    /// The entries, row-major.
    pub fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// How much more than the smallest cost the mean cost is.
    pub(crate) fn mean(&self) -> f64 {
        let count = self.values.len();
        let over = |i| (self.values.get(i) - self.least) / count as f64;
        (0..count).map(over).sum()
    }

    /// The same with these weights of rows and columns.
    pub(crate) fn weighted_mean(&self, a: &[f64], b: &[f64]) -> f64 {
        let over = |i: usize, j: usize| self.values.get(i * b.len() + j) - self.least;
        let row = |i: usize| b.iter().enumerate().map(|(j, b)| b * over(i, j)).sum::<f64>();
        a.iter().enumerate().map(|(i, a)| a * row(i)).sum()
    }

    /// The mean cost `sum_ij a_i b_j C_ij` of independent points of two measures, and the standard deviation around it.
    pub fn mean_and_deviation(&self, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<[f64; 2]> {
        let (a, b) = (mu.weights(), nu.weights());
        let expected = Shape { rows: a.len(), columns: b.len() };
        if self.shape() != expected {
            return Err(Error::Shape { what: "the cost matrix", expected, got: self.shape() });
        }
        let over = self.weighted_mean(a, b);
        let square = |i: usize, j: usize| (self.cost(i, j) - self.least - over).powi(2);
        let row = |i: usize| b.iter().enumerate().map(|(j, b)| b * square(i, j)).sum::<f64>();
        let variance: f64 = a.iter().enumerate().map(|(i, a)| a * row(i)).sum();
        let found = [self.least + over, variance.sqrt()];
        if found.iter().all(|x| x.is_finite()) {
            Ok(found)
        } else {
            Err(Error::Overflow { what: "the scale of the costs" })
        }
    }

    /// The smallest cost.
    pub(crate) fn least(&self) -> f64 {
        self.least
    }

    /// Difference of the largest and the smallest cost.
    pub(crate) fn spread(&self) -> f64 {
        self.most - self.least
    }

    /// Refuses a square matrix that differs from its transpose by more than rounding.
    pub(crate) fn check_symmetric(&self) -> Result<()> {
        let most = 1e-12 * self.most.abs().max(self.least.abs());
        for i in 0..self.rows {
            for j in 0..i {
                if (self.cost(i, j) - self.cost(j, i)).abs() > most {
                    return Err(Error::NotSymmetric { row: i + 1, column: j + 1 });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn cost(&self, i: usize, j: usize) -> f64 {
        self.values.get(i * self.columns + j)
    }
}

/// `-(C_ij - least) / eps` for chosen rows and columns of a cost matrix: an offset of all costs moves
/// into the potentials, where it costs no digits.
pub(crate) struct CostRows<'a> {
    cost: &'a CostMatrix<'a>,
    rows: Vec<usize>,
    span: Span,
    columns: Vec<usize>,
    /// Rows of the source are columns of the matrix.
    transposed: bool,
    epsilon: f64,
}

impl<'a> CostRows<'a> {
    pub(crate) fn new(
        cost: &'a CostMatrix<'a>,
        rows: Vec<usize>,
        columns: Vec<usize>,
        transposed: bool,
        epsilon: f64,
    ) -> Self {
        CostRows { cost, span: Span::alone(rows.len()), rows, columns, transposed, epsilon }
    }
}

impl LogRows for CostRows<'_> {
    fn span(&self) -> &Span {
        &self.span
    }

    fn rank(&self) -> usize {
        self.columns.len()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        for (&i, row) in self.rows[first..].iter().zip(out.chunks_exact_mut(stride)) {
            for (l, &j) in row.iter_mut().zip(&self.columns) {
                let cost =
                    if self.transposed { self.cost.cost(j, i) } else { self.cost.cost(i, j) };
                *l = (self.cost.least() - cost) / self.epsilon;
            }
        }
    }
}

/// `log sum_k phi_k(x_i) psi_k(y_j)`: the kernel of two sets of features, entry by entry.
pub(crate) struct FeatureCost<'a> {
    x: Box<dyn LogRows + 'a>,
    y: Box<dyn LogRows + 'a>,
}

/// Rows of `y` that are evaluated together.
const GROUP: usize = 8;

impl<'a> FeatureCost<'a> {
    pub(crate) fn new(x: Box<dyn LogRows + 'a>, y: Box<dyn LogRows + 'a>) -> Self {
        FeatureCost { x, y }
    }
}

/// Largest entry of a row; the row becomes `exp(row - largest)`.
fn scale_row(logs: &[f64], zero: &[f64], out: &mut [f64]) -> f64 {
    let top = simd::max_sum(logs, zero);
    if top > f64::NEG_INFINITY {
        simd::exp_row(logs, zero, top, out);
    } else {
        out.fill(0.0);
    }
    top
}

impl LogRows for FeatureCost<'_> {
    fn span(&self) -> &Span {
        self.x.span()
    }

    fn rank(&self) -> usize {
        self.y.rows()
    }

    fn scratch(&self) -> usize {
        // Logarithms and scaled features of a group of either cloud, a row of zeros, and what the
        // sources want for themselves.
        let stride = simd::padded(self.x.rank());
        (4 * GROUP + 1) * stride + 2 * GROUP + self.x.scratch() + self.y.scratch()
    }

    fn group(&self) -> usize {
        // The other cloud's features are evaluated for every group.
        GROUP
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
        let rank = self.x.rank();
        let width = simd::padded(rank);
        let (x_logs, rest) = scratch.split_at_mut(GROUP * width);
        let (x_scaled, rest) = rest.split_at_mut(GROUP * width);
        let (y_logs, rest) = rest.split_at_mut(GROUP * width);
        let (y_scaled, rest) = rest.split_at_mut(GROUP * width);
        let (zero, rest) = rest.split_at_mut(width);
        let (x_top, rest) = rest.split_at_mut(GROUP);
        let (y_top, rest) = rest.split_at_mut(GROUP);
        let (x_own, y_own) = rest.split_at_mut(self.x.scratch());
        zero.fill(0.0);
        let load = |source: &dyn LogRows,
                    first: usize,
                    count: usize,
                    logs: &mut [f64],
                    scaled: &mut [f64],
                    top: &mut [f64],
                    own: &mut [f64]| {
            source.fill(first, width, &mut logs[..count * width], own);
            for i in 0..count {
                let row = &mut logs[i * width..(i + 1) * width];
                row[rank..].fill(f64::NEG_INFINITY);
                top[i] = scale_row(row, zero, &mut scaled[i * width..(i + 1) * width]);
            }
        };
        for (g, out) in out.chunks_mut(GROUP * stride).enumerate() {
            let rows = out.len() / stride;
            load(&*self.x, first + g * GROUP, rows, x_logs, x_scaled, x_top, x_own);
            for start in (0..self.y.rows()).step_by(GROUP) {
                let count = GROUP.min(self.y.rows() - start);
                load(&*self.y, start, count, y_logs, y_scaled, y_top, y_own);
                for i in 0..rows {
                    for j in 0..count {
                        let xi = i * width..(i + 1) * width;
                        let yj = j * width..(j + 1) * width;
                        let product = simd::dot(&x_scaled[xi.clone()], &y_scaled[yj.clone()]);
                        // Far apart, the largest features of either point are not those of the pair.
                        out[i * stride + start + j] = if product > 1e-200 {
                            x_top[i] + y_top[j] + product.ln()
                        } else {
                            log_sum_pair(&x_logs[xi], &y_logs[yj])
                        };
                    }
                }
            }
        }
    }
}

/// `log sum_k exp(x_k + y_k)`.
fn log_sum_pair(x: &[f64], y: &[f64]) -> f64 {
    let top = simd::max_sum(x, y);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + x.iter().zip(y).map(|(x, y)| (x + y - top).exp()).sum::<f64>().ln()
}
