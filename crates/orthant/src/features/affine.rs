//! Logarithms that are affine in the point but for a square: `L_ik = bias_k + square |x_i|^2 + x_i . M_k`.
//!
//! Both the features of the Gaussian kernel (over anchors) and the kernel itself (over the other
//! cloud) have this form once their squares are written out. In coordinates centred on the data it
//! loses no more than the rounding of the largest squared norm.
//!
//! All of it but a constant of each feature is proportional to `1 / eps`, and the gradient by the point is
//! `2 square x_i + M_k`: that is all that derivatives need.

use super::{Derivative, FeatureMap};
use crate::comm::Span;
use crate::coordinates::Frame;
use crate::error::Result;
use crate::measure::Points;
use crate::numerics::simd;
use crate::rows::LogRows;

/// The affine form; see the module.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Affine {
    frame: Frame,
    /// `dim x stride`, row-major: coordinate `c` of every `M_k`.
    matrix: Vec<f64>,
    /// `stride` numbers.
    bias: Vec<f64>,
    /// The part of the bias that does not go with `1 / eps`.
    fixed: Vec<f64>,
    /// `d fixed / d log eps`.
    power: f64,
    square: f64,
    rank: usize,
}

/// Coordinates that are brought into the frame at a time, for up to [`ROWS`] points.
const TILE: usize = 16;
/// Points that are evaluated together.
const ROWS: usize = 8;

impl Affine {
    /// `L_ik = bias_k + square |x_i|^2 + factor x_i . centre_k`, in coordinates of the frame; a bias is the sum of a
    /// constant and of what goes with `1 / eps`, as the rest does.
    pub(crate) fn new(
        frame: Frame,
        rank: usize,
        square: f64,
        factor: f64,
        centre: impl Fn(usize, usize) -> f64,
        bias: impl Fn(usize) -> [f64; 2],
    ) -> Self {
        let stride = simd::padded(rank);
        let dim = frame.dim();
        let mut matrix = vec![0.0; dim * stride];
        for (c, row) in matrix.chunks_exact_mut(stride).enumerate() {
            for (k, m) in row[..rank].iter_mut().enumerate() {
                *m = factor * centre(k, c);
            }
        }
        let (mut sum, mut fixed) = (vec![0.0; stride], vec![0.0; stride]);
        for (k, (sum, fixed)) in sum[..rank].iter_mut().zip(&mut fixed).enumerate() {
            let [constant, scaled] = bias(k);
            (*sum, *fixed) = (constant + scaled, constant);
        }
        Affine { frame, matrix, bias: sum, fixed, power: 0.0, square, rank }
    }

    /// The same with constants that go with a power of epsilon.
    pub(crate) fn with_power(self, power: f64) -> Self {
        Affine { power, ..self }
    }

    /// Adds a constant to all logarithms.
    pub(crate) fn shift(&mut self, constant: f64) {
        let both = self.bias[..self.rank].iter_mut().zip(&mut self.fixed);
        both.for_each(|(b, fixed)| (*b, *fixed) = (*b + constant, *fixed + constant));
    }

    /// `square`, which is negative.
    pub(crate) fn square(&self) -> f64 {
        self.square
    }

    /// Coordinate `c` of all `M_k`.
    pub(crate) fn row(&self, c: usize) -> &[f64] {
        let stride = self.bias.len();
        &self.matrix[c * stride..(c + 1) * stride]
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Rows `first, first + 1, ...`, as many as fit in `out`.
    pub(crate) fn fill(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        assert_eq!(stride, self.bias.len(), "the stride of features is their padded number");
        let dim = self.dim();
        let mut tile = [0.0; ROWS * TILE];
        let mut constant = [0.0; ROWS];
        for (g, group) in out.chunks_mut(ROWS * stride).enumerate() {
            let start = first + g * ROWS;
            let rows = group.len() / stride;
            for (i, constant) in constant[..rows].iter_mut().enumerate() {
                let mut norm = 0.0;
                for c in (0..dim).step_by(TILE) {
                    let x = &mut tile[..TILE.min(dim - c)];
                    self.frame.copy_coordinates(points, start + i, c, x);
                    norm += x.iter().map(|x| x * x).sum::<f64>();
                }
                *constant = self.square * norm;
            }
            for c in (0..dim).step_by(TILE) {
                let width = TILE.min(dim - c);
                for (i, x) in tile.chunks_exact_mut(width).take(rows).enumerate() {
                    self.frame.copy_coordinates(points, start + i, c, x);
                }
                let matrix = &self.matrix[c * stride..(c + width) * stride];
                let from = match c {
                    0 => simd::Start::Bias { bias: &self.bias, constant: &constant },
                    _ => simd::Start::Out,
                };
                simd::affine(&tile[..rows * width], width, matrix, from, group);
            }
        }
    }
}

impl FeatureMap for Affine {
    fn dim(&self) -> usize {
        self.frame.dim()
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        self.fill(points, first, stride, out);
    }

    fn derivative(&self) -> Result<&dyn Derivative> {
        Ok(self)
    }
}

impl Derivative for Affine {
    fn points(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let rows = weights.chunks_exact(stride).zip(out.chunks_exact_mut(self.dim()));
        for (i, (w, out)) in rows.enumerate() {
            let total = 2.0 * self.square * simd::sum(w);
            self.frame.copy_coordinates(points, first + i, 0, out);
            for (c, x) in out.iter_mut().enumerate() {
                *x = (total * *x + simd::dot(w, self.row(c))) * self.frame.shrink();
            }
        }
    }

    fn log_epsilon(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
    ) -> f64 {
        let mut x = vec![0.0; self.dim()];
        let mut sum = 0.0;
        for (i, w) in weights.chunks_exact(stride).enumerate() {
            self.frame.copy_coordinates(points, first + i, 0, &mut x);
            let total = simd::sum(w);
            let square = self.square * x.iter().map(|x| x * x).sum::<f64>();
            let linear: f64 =
                x.iter().enumerate().map(|(c, x)| x * simd::dot(w, self.row(c))).sum();
            let bias = simd::dot(w, &self.bias) - simd::dot(w, &self.fixed);
            sum += (self.power - square) * total - linear - bias;
        }
        sum
    }
}

/// The exact kernel `exp(-||x - y||^2 / eps)` of one cloud over another.
#[derive(Debug)]
pub(crate) struct SquaredEuclidean<'a> {
    affine: Affine,
    points: Points<'a>,
}

impl<'a> SquaredEuclidean<'a> {
    /// Rows for `points`, columns for `others`; epsilon in units of the frame.
    pub(crate) fn new(
        frame: &Frame,
        epsilon: f64,
        points: Points<'a>,
        others: &Points<'_>,
    ) -> Self {
        SquaredEuclidean { affine: Self::map(frame, epsilon, others), points }
    }

    /// Rows of the kernel as features, with an anchor at each of the other points.
    pub(crate) fn map(frame: &Frame, epsilon: f64, others: &Points<'_>) -> Affine {
        let norm = |k: usize| -> f64 {
            (0..frame.dim()).map(|c| frame.coordinate(others, k, c).powi(2)).sum()
        };
        Affine::new(
            frame.clone(),
            others.len(),
            -1.0 / epsilon,
            2.0 / epsilon,
            |k, c| frame.coordinate(others, k, c),
            |k| [0.0, -norm(k) / epsilon],
        )
    }
}

impl LogRows for SquaredEuclidean<'_> {
    fn span(&self) -> &Span {
        self.points.span()
    }

    fn rank(&self) -> usize {
        self.affine.rank()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        self.affine.fill(&self.points, first, stride, out);
    }
}
