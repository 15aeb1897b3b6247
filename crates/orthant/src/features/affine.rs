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
use crate::numerics::simd::{self, BothPanels, Float, In, TILE_ROWS};
use crate::rows::{LogRows, Tiles, fill_by_tiles, scratch_of_tiles};

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
    frame: Frame,
    points: Points<'a>,
    epsilon: f64,
    /// `2 y / eps`.
    panels: BothPanels,
    /// `-|y|^2 / eps`.
    bias: Vec<f64>,
}

impl<'a> SquaredEuclidean<'a> {
    /// Rows for `points`, columns for `others`; epsilon in units of the frame.
    pub(crate) fn new(
        frame: &Frame,
        epsilon: f64,
        points: Points<'a>,
        others: &Points<'_>,
    ) -> Self {
        let entry = |k, c| 2.0 / epsilon * frame.coordinate(others, k, c);
        SquaredEuclidean {
            frame: frame.clone(),
            points,
            epsilon,
            panels: BothPanels::new(frame.dim(), others.len(), entry),
            bias: (0..others.len()).map(|k| -norm(frame, others, k) / epsilon).collect(),
        }
    }

    /// Rows of the kernel as features, with an anchor at each of the other points.
    pub(crate) fn map(frame: &Frame, epsilon: f64, others: &Points<'_>) -> Affine {
        Affine::new(
            frame.clone(),
            others.len(),
            -1.0 / epsilon,
            2.0 / epsilon,
            |k, c| frame.coordinate(others, k, c),
            |k| [0.0, -norm(frame, others, k) / epsilon],
        )
    }

    /// Packs the coordinates of some points, a few at a time, and writes `-|x|^2 / eps`.
    fn pack<T: Float>(&self, first: usize, common: &mut [f64], packed: &mut [T]) {
        let dim = self.frame.dim();
        let groups = common.chunks_mut(TILE_ROWS).zip(packed.chunks_mut(dim * TILE_ROWS));
        let mut tile = [0.0; TILE];
        for (g, (common, packed)) in groups.enumerate() {
            common.fill(0.0);
            for c in (0..dim).step_by(TILE) {
                let x = &mut tile[..TILE.min(dim - c)];
                for (r, common) in common.iter_mut().enumerate() {
                    let i = first + g * TILE_ROWS + r;
                    self.frame.copy_coordinates(&self.points, i, c, x);
                    *common -= x.iter().map(|x| x * x).sum::<f64>();
                    for (x, packed) in
                        x.iter().zip(packed[c * TILE_ROWS + r..].iter_mut().step_by(TILE_ROWS))
                    {
                        *packed = T::from_f64(*x);
                    }
                }
            }
            for common in common {
                *common /= self.epsilon;
            }
        }
    }
}

/// Squared distance of a point from the origin of the frame.
fn norm(frame: &Frame, points: &Points<'_>, k: usize) -> f64 {
    (0..frame.dim()).map(|c| frame.coordinate(points, k, c).powi(2)).sum()
}

impl LogRows for SquaredEuclidean<'_> {
    fn span(&self) -> &Span {
        self.points.span()
    }

    fn rank(&self) -> usize {
        self.bias.len()
    }

    fn scratch(&self) -> usize {
        scratch_of_tiles(self, self.rank())
    }

    fn group(&self) -> usize {
        // The other cloud is read for every group.
        ROWS
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
        fill_by_tiles(self, self.rank(), first, stride, out, scratch);
    }

    fn tiles(&self) -> Option<&dyn Tiles<f64>> {
        Some(self)
    }

    fn tiles_f32(&self) -> Option<&dyn Tiles<f32>> {
        self.panels.prepare_single();
        Some(self)
    }
}

impl<T: Float> Tiles<T> for SquaredEuclidean<'_>
where
    BothPanels: In<T>,
{
    fn start(&self, message: &mut [f64]) {
        for (z, bias) in message.iter_mut().zip(&self.bias) {
            *z += bias;
        }
    }

    fn block(&self, rows: usize) -> [usize; 2] {
        [rows.next_multiple_of(TILE_ROWS) * self.frame.dim(), 0]
    }

    fn load(&self, first: usize, common: &mut [f64], (packed, _): (&mut [T], &mut [f64])) {
        self.pack(first, common, packed);
    }

    fn tile(
        &self,
        (packed, _): (&[T], &[f64]),
        row: usize,
        panel: usize,
        start: &[T],
        out: &mut [T],
    ) {
        let dim = self.frame.dim();
        let x = &packed[row * dim..(row + TILE_ROWS) * dim];
        self.panels.panels().products(x, panel, start, out);
    }
}
