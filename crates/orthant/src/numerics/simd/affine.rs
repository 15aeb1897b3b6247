//! Affine functions of points: the inner products with anchors that features are made of.

use pulp::{Simd, WithSimd};

use super::{Float, dispatch};

/// What an affine function starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// What is in the output.
    Out,
    /// `bias[k] + constant[i]`.
    Bias { bias: &'a [f64], constant: &'a [f64] },
}

/// `out[i][k] = start + sum_c coordinates[i][c] * matrix[c][k]` for a few rows `i`.
///
/// `matrix` is `dim x stride` row-major, `out` is `rows x stride`, `stride` a padded length.
pub(crate) fn affine(
    coordinates: &[f64],
    dim: usize,
    matrix: &[f64],
    start: Start<'_>,
    out: &mut [f64],
) {
    dispatch(Affine { coordinates, dim, matrix, start, out });
}

struct Affine<'a> {
    coordinates: &'a [f64],
    dim: usize,
    matrix: &'a [f64],
    start: Start<'a>,
    out: &'a mut [f64],
}

/// Rows that are computed together, and vectors of a row: what fits in the registers.
const ROWS: usize = 4;
const WIDTH: usize = 2;

impl WithSimd for Affine<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Affine { coordinates, dim, matrix, start, out } = self;
        let stride = matrix.len() / dim;
        let rows = out.len() / stride;
        let from = |i: usize| match start {
            Start::Out => Start::Out,
            Start::Bias { bias, constant } => Start::Bias { bias, constant: &constant[i..] },
        };
        let mut i = 0;
        while i < rows {
            let height = if i + ROWS <= rows { ROWS } else { 1 };
            let x = &coordinates[i * dim..(i + height) * dim];
            let out = &mut out[i * stride..(i + height) * stride];
            if height == ROWS {
                group::<S, ROWS>(simd, x, dim, matrix, from(i), out);
            } else {
                group::<S, 1>(simd, x, dim, matrix, from(i), out);
            }
            i += height;
        }
    }
}

/// The same for exactly `R` rows.
#[inline(always)]
fn group<S: Simd, const R: usize>(
    simd: S,
    x: &[f64],
    dim: usize,
    matrix: &[f64],
    start: Start<'_>,
    out: &mut [f64],
) {
    let matrix = f64::vectors::<S>(matrix);
    let width = matrix.len() / dim;
    let mut k = 0;
    while k + WIDTH <= width {
        tile::<S, R, WIDTH>(simd, x, dim, matrix, start, k, out);
        k += WIDTH;
    }
    while k < width {
        tile::<S, R, 1>(simd, x, dim, matrix, start, k, out);
        k += 1;
    }
}

/// The same for `W` vectors from vector `k`.
#[inline(always)]
fn tile<S: Simd, const R: usize, const W: usize>(
    simd: S,
    x: &[f64],
    dim: usize,
    matrix: &[S::f64s],
    start: Start<'_>,
    k: usize,
    out: &mut [f64],
) {
    let out = f64::vectors_mut::<S>(out);
    let width = matrix.len() / dim;
    // No closures here: they would not inherit the instruction set.
    let mut acc = [[simd.splat_f64s(0.0); W]; R];
    match start {
        Start::Out => {
            for r in 0..R {
                acc[r].copy_from_slice(&out[r * width + k..r * width + k + W]);
            }
        }
        Start::Bias { bias, constant } => {
            let bias = &f64::vectors::<S>(bias)[k..k + W];
            for r in 0..R {
                let constant = simd.splat_f64s(constant[r]);
                for v in 0..W {
                    acc[r][v] = simd.add_f64s(bias[v], constant);
                }
            }
        }
    }
    for (c, row) in matrix.chunks_exact(width).enumerate() {
        let m = &row[k..k + W];
        for r in 0..R {
            let xr = simd.splat_f64s(x[r * dim + c]);
            for v in 0..W {
                acc[r][v] = simd.mul_add_e_f64s(xr, m[v], acc[r][v]);
            }
        }
    }
    for r in 0..R {
        for v in 0..W {
            out[r * width + k + v] = acc[r][v];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::simd::run_baseline;

    #[test]
    fn affine_agrees_with_a_scalar_loop() {
        for (rows, dim, stride) in [(1, 1, 8), (4, 3, 16), (7, 5, 24), (9, 28, 40)] {
            let x: Vec<f64> = (0..rows * dim).map(|i| (i as f64 * 0.7).sin()).collect();
            let m: Vec<f64> = (0..dim * stride).map(|i| (i as f64 * 0.3).cos()).collect();
            let start: Vec<f64> = (0..rows * stride).map(|i| i as f64).collect();
            let (mut fast, mut baseline) = (start.clone(), start.clone());
            affine(&x, dim, &m, Start::Out, &mut fast);
            let (bias, constant): (Vec<f64>, Vec<f64>) = (
                (0..stride).map(|k| k as f64).collect(),
                (0..rows).map(|i| (i * stride) as f64).collect(),
            );
            run_baseline(Affine {
                coordinates: &x,
                dim,
                matrix: &m,
                start: Start::Bias { bias: &bias, constant: &constant },
                out: &mut baseline,
            });
            for i in 0..rows {
                for k in 0..stride {
                    let exact = start[i * stride + k]
                        + (0..dim).map(|c| x[i * dim + c] * m[c * stride + k]).sum::<f64>();
                    assert!((fast[i * stride + k] - exact).abs() < 1e-12);
                    assert!((baseline[i * stride + k] - exact).abs() < 1e-12);
                }
            }
        }
    }
}
