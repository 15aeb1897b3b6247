//! Rows of the kernel of a cost that has no squared distance: evaluated pair by pair.

use super::LogRows;
use crate::comm::Span;
use crate::ground::{GroundCost, direction};
use crate::measure::Points;

/// `-c(x_i, y_j) / eps` over the points `y_j` of the other cloud.
pub(crate) struct GroundRows<'a> {
    cost: GroundCost,
    epsilon: f64,
    points: Points<'a>,
    /// Coordinates of the columns, one coordinate of all after the other, so that loops over columns are loops over
    /// vectors.
    columns: Vec<f64>,
    /// The same, one column after the other.
    others: Points<'a>,
    /// Units of the columns in one of the points: a power of two, so that squares stay in range.
    unit: f64,
}

impl<'a> GroundRows<'a> {
    /// Points and others in the coordinates of the user.
    pub(crate) fn new(
        cost: &GroundCost,
        epsilon: f64,
        points: Points<'a>,
        others: Points<'a>,
    ) -> Self {
        let [points, others] = [points, others].map(|p| cost.image(&p).unwrap_or(p));
        let unit = if let GroundCost::Function(_) = cost {
            1.0
        } else {
            let largest = |p: &Points<'_>| {
                let of = |i| (0..p.dim()).map(|k| p.coordinate(i, k).abs()).fold(0.0, f64::max);
                p.span().max(of)
            };
            power_of_two_below(1.0 / largest(&points).max(largest(&others)).max(1e-300))
        };
        let (dim, count) = (others.dim(), others.len());
        let mut columns = vec![0.0; dim * count];
        for (k, column) in columns.chunks_exact_mut(count).enumerate() {
            for (j, y) in column.iter_mut().enumerate() {
                *y = others.coordinate(j, k) * unit;
            }
        }
        GroundRows { cost: cost.clone(), epsilon, points, columns, others, unit }
    }

    /// Whether the cost has a derivative.
    pub(crate) fn has_slopes(&self) -> bool {
        !matches!(self.cost, GroundCost::Function(_))
    }

    /// `out_i = sum_j w_ij d log k(x_i, y_j) / d x_i` of some rows; `points` are the points before they were mapped.
    pub(crate) fn slopes(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let dim = self.points.dim();
        let (mut own, mut x, mut y) = (vec![0.0; dim], vec![0.0; dim], vec![0.0; dim]);
        let rows = out.chunks_exact_mut(dim).zip(weights.chunks_exact(stride));
        for (i, (out, weights)) in (first..).zip(rows) {
            points.copy_coordinates(i, 0, &mut own);
            let length = direction(&mut own);
            self.points.copy_coordinates(i, 0, &mut x);
            out.fill(0.0);
            for (j, w) in weights[..self.others.len()].iter().enumerate() {
                self.others.copy_coordinates(j, 0, &mut y);
                self.cost.add_slope((&x, length), &y, -w / self.epsilon, out);
            }
        }
    }
}

fn power_of_two_below(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0x7ff0_0000_0000_0000)
}

impl LogRows for GroundRows<'_> {
    fn span(&self) -> &Span {
        self.points.span()
    }

    fn rank(&self) -> usize {
        self.others.len()
    }

    fn scratch(&self) -> usize {
        // Two points, and a second number for each pair.
        let second = matches!(self.cost, GroundCost::Geodesic | GroundCost::Lp(_));
        2 * self.points.dim() + if second { self.others.len() } else { 0 }
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
        let (dim, count) = (self.points.dim(), self.others.len());
        let (x, rest) = scratch.split_at_mut(dim);
        let (y, sums) = rest.split_at_mut(dim);
        let scale = -1.0 / self.unit / self.epsilon;
        for (i, row) in (first..).zip(out.chunks_exact_mut(stride)) {
            let row = &mut row[..count];
            self.points.copy_coordinates(i, 0, x);
            if let GroundCost::Function(_) = self.cost {
                for (j, l) in row.iter_mut().enumerate() {
                    self.others.copy_coordinates(j, 0, y);
                    *l = -self.cost.of_pair(x, y) / self.epsilon;
                }
                continue;
            }
            for x in &mut *x {
                *x *= self.unit;
            }
            row.fill(0.0);
            match &self.cost {
                GroundCost::L1 => {
                    sum_along(row, x, &self.columns, |l, d| *l += d.abs());
                    for l in &mut *row {
                        *l *= scale;
                    }
                }
                GroundCost::Lp(p) => {
                    // Divided by the largest first, so that no power leaves the range of the numbers.
                    let tops = &mut sums[..count];
                    tops.fill(0.0);
                    sum_along(tops, x, &self.columns, |top, d| *top = top.max(d.abs()));
                    for (x, column) in x.iter().zip(self.columns.chunks_exact(count)) {
                        for ((l, y), top) in row.iter_mut().zip(column).zip(&*tops) {
                            *l += ((x - y).abs() / top).powf(*p);
                        }
                    }
                    for (l, top) in row.iter_mut().zip(&*tops) {
                        *l = if *top > 0.0 { scale * top * l.powf(1.0 / p) } else { 0.0 };
                    }
                }
                GroundCost::Geodesic => {
                    sums[..count].fill(0.0);
                    sum_along(row, x, &self.columns, |l, d| *l += d * d);
                    for x in &mut *x {
                        *x = -*x;
                    }
                    sum_along(&mut sums[..count], x, &self.columns, |l, d| *l += d * d);
                    for (l, sum) in row.iter_mut().zip(&*sums) {
                        *l = -2.0 / self.epsilon * l.sqrt().atan2(sum.sqrt());
                    }
                }
                _ => {
                    sum_along(row, x, &self.columns, |l, d| *l += d * d);
                    for l in &mut *row {
                        *l = scale * l.sqrt();
                    }
                }
            }
        }
    }
}

/// Adds what the differences of a point to all columns add to a row, one coordinate after the other.
fn sum_along(row: &mut [f64], x: &[f64], columns: &[f64], add: impl Fn(&mut f64, f64)) {
    for (x, column) in x.iter().zip(columns.chunks_exact(row.len())) {
        for (l, y) in row.iter_mut().zip(column) {
            add(l, x - y);
        }
    }
}
