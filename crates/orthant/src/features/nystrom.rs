//! Signed features out of the kernel at landmarks: what the Nystrom approximation is made of.
//!
//! With landmarks `S` and a matrix `R`, the features of a point are `K(x, S) R`. For
//! `R R^T = K(S, S)^+` their products are the Nystrom approximation
//!
//! ```text
//! k(x, y) ~ K(x, S) K(S, S)^+ K(S, y) = phi(x) . phi(y)
//! ```
//!
//! of the Gaussian kernel. It is positive-definite but, unlike those of positive features, need not be
//! positive.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::SquaredEuclidean;
use crate::control::Cancel;
use crate::coordinates::Frame;
use crate::measure::Points;
use crate::numerics::linalg;
use crate::numerics::simd::{self, Aligned};
use crate::rows::LogRows;

/// The features `K(., S) R`.
#[derive(Debug)]
pub(crate) struct Basis {
    landmarks: Points<'static>,
    epsilon: f64,
    /// `R^T`, row-major: a row a feature.
    roots: Vec<f64>,
    rank: usize,
    cancel: Cancel,
}

/// The eigenvalues of a kernel of landmarks (ascending), and its eigenvectors as rows.
#[derive(Debug)]
pub(crate) struct Spectrum {
    landmarks: Points<'static>,
    epsilon: f64,
    weights: Vec<f64>,
    values: Vec<f64>,
    vectors: Vec<f64>,
    cancel: Cancel,
}

/// Points whose features are computed together.
const BLOCK: usize = 128;

impl Spectrum {
    /// Of the matrix `w_i k(s_i, s_j) w_j`; epsilon in the units of the points.
    pub(crate) fn new(
        landmarks: Points<'static>,
        epsilon: f64,
        weights: Vec<f64>,
        cancel: &Cancel,
    ) -> Self {
        let len = landmarks.len();
        let stride = simd::padded(len);
        let rows = kernel_rows(&landmarks, &landmarks, epsilon);
        let mut matrix = vec![0.0; len * len];
        matrix.par_chunks_mut(len).zip(&weights).enumerate().for_each_init(
            || vec![0.0; stride],
            |row, (i, (out, wi))| {
                kernel(&rows, i, stride, row);
                for ((out, k), wj) in out.iter_mut().zip(row).zip(&weights) {
                    *out = wi * *k * wj;
                }
            },
        );
        cancel.check();
        let (values, vectors) = linalg::eigen(&matrix, len);
        Spectrum { landmarks, epsilon, weights, values, vectors, cancel: cancel.clone() }
    }

    /// Ascending.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The features with `R = W V f(D)`, where `f` is not zero.
    pub(crate) fn basis(self, f: impl Fn(f64) -> f64) -> Basis {
        let Spectrum { landmarks, epsilon, weights, values, vectors, cancel } = self;
        let mut roots = Vec::new();
        for (value, vector) in values.iter().zip(vectors.chunks_exact(values.len())) {
            let factor = f(*value);
            if factor != 0.0 {
                roots.extend(vector.iter().zip(&weights).map(|(v, w)| factor * v * w));
            }
        }
        let rank = roots.len() / values.len();
        Basis { landmarks, epsilon, roots, rank, cancel }
    }
}

impl Basis {
    /// The features of the Nystrom approximation.
    ///
    /// Eigenvalues of `K(S, S)` up to the rounding of the largest, `len 2^-52` of it, say nothing
    /// about the kernel; their directions are left out.
    pub(crate) fn nystrom(landmarks: Points<'static>, epsilon: f64, cancel: &Cancel) -> Self {
        let len = landmarks.len();
        let spectrum = Spectrum::new(landmarks, epsilon, vec![1.0; len], cancel);
        let largest = spectrum.values().last().copied().unwrap_or_default();
        let least = len as f64 * f64::EPSILON * largest;
        spectrum.basis(|value| if value > least { 1.0 / value.sqrt() } else { 0.0 })
    }

    /// Number of landmarks.
    pub(crate) fn landmarks(&self) -> usize {
        self.landmarks.len()
    }

    /// Length of a padded row of features.
    pub(crate) fn stride(&self) -> usize {
        simd::padded(self.rank)
    }

    /// The features of some points, as padded rows.
    pub(crate) fn features(&self, points: &Points<'_>) -> Aligned<f64> {
        let stride = self.stride();
        let mut out = Aligned::zeros(points.len() * stride);
        let rows = kernel_rows(points, &self.landmarks, self.epsilon);
        out.par_chunks_mut(BLOCK * stride).enumerate().with_max_len(1).for_each_init(
            || self.scratch(),
            |scratch, (b, out)| self.block(&rows, b * BLOCK, scratch, out, stride),
        );
        out
    }

    /// `||phi(x)||^2` of some points.
    pub(crate) fn squared_norms(&self, points: &Points<'_>) -> Vec<f64> {
        let rows = kernel_rows(points, &self.landmarks, self.epsilon);
        let mut out = vec![0.0; points.len()];
        out.par_chunks_mut(BLOCK).enumerate().with_max_len(1).for_each_init(
            || (self.scratch(), vec![0.0; BLOCK * self.rank]),
            |(scratch, features), (b, out)| {
                let features = &mut features[..out.len() * self.rank];
                self.block(&rows, b * BLOCK, scratch, features, self.rank);
                for (out, row) in out.iter_mut().zip(features.chunks_exact(self.rank)) {
                    *out = row.iter().map(|x| x * x).sum();
                }
            },
        );
        out
    }

    /// Space for a block of rows of the kernel.
    fn scratch(&self) -> Vec<f64> {
        vec![0.0; BLOCK * simd::padded(self.landmarks())]
    }

    /// The features of the points `first, first + 1, ...`, in rows that are `stride` apart.
    ///
    /// On one thread: the bits do not depend on how many there are.
    fn block(
        &self,
        source: &SquaredEuclidean<'_>,
        first: usize,
        scratch: &mut [f64],
        out: &mut [f64],
        stride: usize,
    ) {
        self.cancel.check();
        let rows = out.len() / stride;
        let (len, width) = (self.landmarks(), scratch.len() / BLOCK);
        let scratch = &mut scratch[..rows * width];
        kernel(source, first, width, scratch);
        // Rows of ours are columns there.
        matmul(
            MatMut::from_column_major_slice_with_stride_mut(out, self.rank, rows, stride),
            Accum::Replace,
            MatRef::from_row_major_slice(&self.roots, self.rank, len),
            MatRef::from_column_major_slice_with_stride(scratch, len, rows, width),
            1.0,
            Par::Seq,
        );
    }
}

fn kernel_rows<'p>(
    points: &'p Points<'_>,
    landmarks: &Points<'_>,
    epsilon: f64,
) -> SquaredEuclidean<'p> {
    SquaredEuclidean::new(&Frame::unit(points.dim()), epsilon, points.borrowed(), landmarks)
}

/// `k(x_i, s_j)` for the points `first, first + 1, ...` and all landmarks.
fn kernel(source: &SquaredEuclidean<'_>, first: usize, stride: usize, out: &mut [f64]) {
    const ZERO: [f64; 512] = [0.0; 512];
    source.fill(first, stride, out, &mut vec![0.0; source.scratch()]);
    for logs in out.chunks_mut(ZERO.len()) {
        simd::exp_slice(logs, &ZERO[..logs.len()], 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points that are not on a line, from irrational multiples.
    fn points(n: usize, dim: usize, shift: f64) -> Points<'static> {
        let value = |e: usize| ((e as f64 + shift) * 0.754_877_666 * (1 + e % dim) as f64).fract();
        Points::new((0..n * dim).map(value).collect::<Vec<_>>(), dim).unwrap()
    }

    fn kernel_matrix(x: &Points<'_>, y: &Points<'_>, epsilon: f64) -> Vec<Vec<f64>> {
        let entry = |i: usize, j: usize| {
            let square = |k| (x.coordinate(i, k) - y.coordinate(j, k)).powi(2);
            (-(0..x.dim()).map(square).sum::<f64>() / epsilon).exp()
        };
        (0..x.len()).map(|i| (0..y.len()).map(|j| entry(i, j)).collect()).collect()
    }

    /// `A^{-1} B` by elimination with pivots.
    fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        let n = a.len();
        for c in 0..n {
            let pivot = (c..n).max_by(|i, j| a[*i][c].abs().total_cmp(&a[*j][c].abs())).unwrap();
            a.swap(c, pivot);
            b.swap(c, pivot);
            for i in (0..n).filter(|i| *i != c) {
                let factor = a[i][c] / a[c][c];
                let (row_a, row_b) = (a[c].clone(), b[c].clone());
                a[i].iter_mut().zip(&row_a).for_each(|(x, y)| *x -= factor * y);
                b[i].iter_mut().zip(&row_b).for_each(|(x, y)| *x -= factor * y);
            }
        }
        for (row, a) in b.iter_mut().zip(a.iter().enumerate().map(|(i, a)| a[i])) {
            for x in row {
                *x /= a;
            }
        }
        b
    }

    fn product(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn products_are_those_of_the_formula() {
        // More points than a block, and ranks that are and are not padded.
        for (n, m, landmarks, dim, epsilon) in
            [(300, 20, 8, 2, 0.1), (5, 7, 21, 3, 0.2), (3, 1, 1, 1, 0.5)]
        {
            let (x, y) = (points(n, dim, 0.3), points(m, dim, 2.9));
            let s = points(landmarks, dim, 7.7);
            let basis = Basis::nystrom(s.clone(), epsilon, &Cancel::default());
            assert_eq!(basis.rank, landmarks);
            let (phi, psi) = (basis.features(&x), basis.features(&y));
            let stride = basis.stride();
            let (xs, ss) = (kernel_matrix(&x, &s, epsilon), kernel_matrix(&s, &s, epsilon));
            let weights = solve(ss, kernel_matrix(&s, &y, epsilon));
            let norms = basis.squared_norms(&x);
            for i in 0..n {
                let phi = &phi[i * stride..(i + 1) * stride];
                assert!(phi[landmarks..].iter().all(|p| *p == 0.0));
                assert!((product(phi, phi) - norms[i]).abs() < 1e-14);
                // What is left of the kernel is positive-definite.
                assert!(norms[i] < 1.0 + 1e-12);
                for j in 0..m {
                    let column: Vec<f64> = weights.iter().map(|w| w[j]).collect();
                    let exact = product(&xs[i], &column);
                    let found = product(phi, &psi[j * stride..(j + 1) * stride]);
                    assert!((found - exact).abs() < 1e-10, "{i} {j}: {found} {exact}");
                }
            }
        }
    }

    #[test]
    fn the_kernel_is_exact_at_landmarks_also_if_they_coincide() {
        // Smooth enough that most eigenvalues are rounding, and every landmark twice.
        let s = points(30, 2, 0.0);
        let twice = s.select(&(0..60).map(|i| i % 30).collect::<Vec<_>>());
        for epsilon in [0.05, 1.0, 100.0] {
            let basis = Basis::nystrom(twice.clone(), epsilon, &Cancel::default());
            assert!(basis.rank <= 30, "{}", basis.rank);
            let (phi, stride) = (basis.features(&s), basis.stride());
            let exact = kernel_matrix(&s, &s, epsilon);
            for (i, row) in exact.iter().enumerate() {
                for (j, exact) in row.iter().enumerate() {
                    let row = |i: usize| &phi[i * stride..(i + 1) * stride];
                    let found = product(row(i), row(j));
                    // The directions that are left out have up to 60 2^-52 of an eigenvalue of 60.
                    assert!((found - exact).abs() < 1e-12, "{epsilon}: {found} {exact}");
                }
            }
        }
    }
}
