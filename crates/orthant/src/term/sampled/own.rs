//! A sample of a cloud with itself.

use super::draws::Draws;
use crate::comm::Span;
use crate::rows::LogRows;

/// Rows over draws of the cloud that they are of, without those of the point itself.
pub(super) struct Apart<'a> {
    rows: Box<dyn LogRows + 'a>,
    /// The points of the rows, and of the columns, in order: draws of one point are next to each other.
    points: &'a [usize],
    draws: &'a [usize],
}

impl<'a> Apart<'a> {
    pub(super) fn new(
        rows: Box<dyn LogRows + 'a>,
        points: &'a [usize],
        draws: &'a [usize],
    ) -> Self {
        Apart { rows, points, draws }
    }
}

impl LogRows for Apart<'_> {
    fn span(&self) -> &Span {
        self.rows.span()
    }

    fn rank(&self) -> usize {
        self.rows.rank()
    }

    fn scratch(&self) -> usize {
        self.rows.scratch()
    }

    fn group(&self) -> usize {
        self.rows.group()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
        self.rows.fill(first, stride, out, scratch);
        for (i, row) in self.points[first..].iter().zip(out.chunks_exact_mut(stride)) {
            let begin = self.draws.partition_point(|j| j < i);
            let same = self.draws[begin..].iter().take_while(|j| *j == i).count();
            row[begin..begin + same].fill(f64::NEG_INFINITY);
        }
    }
}

/// Rows of a kernel between the points of a sample, such that the sums of the sample have the means of the cloud: of two
/// different points more than once, of a point with itself as often as its weight says, of two draws of one point never.
pub(super) struct OwnRows<'a> {
    rows: Apart<'a>,
    /// Logarithms, of a point with itself, and of others.
    diagonal: Vec<f64>,
    others: f64,
}

impl<'a> OwnRows<'a> {
    pub(super) fn new(rows: Box<dyn LogRows + 'a>, draws: &'a Draws, weights: &[f64]) -> Self {
        let others = draws.pairs().ln();
        let draws = draws.of(0);
        let size = (draws.len() as f64).ln();
        let diagonal = draws.iter().map(|&i| size + weights[i].ln()).collect();
        OwnRows { rows: Apart::new(rows, draws, draws), diagonal, others }
    }
}

impl LogRows for OwnRows<'_> {
    fn span(&self) -> &Span {
        self.rows.span()
    }

    fn rank(&self) -> usize {
        self.rows.rank()
    }

    fn scratch(&self) -> usize {
        self.rows.scratch()
    }

    fn group(&self) -> usize {
        self.rows.group()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
        self.rows.fill(first, stride, out, scratch);
        for (i, row) in (first..).zip(out.chunks_exact_mut(stride)) {
            for log in &mut *row {
                *log += self.others;
            }
            row[i] = self.diagonal[i];
        }
    }
}
