//! Affine functions of points: the inner products with anchors that features are made of.

use super::{Float, LANES, Op, chunks, chunks_mut, dispatch};

/// `out[i][k] += sum_c coordinates[i][c] * matrix[c][k]` for a few rows `i`.
///
/// `matrix` is `dim x stride` row-major, `out` is `rows x stride`, `stride` a padded length.
pub(crate) fn affine(coordinates: &[f64], dim: usize, matrix: &[f64], out: &mut [f64]) {
    dispatch(Affine { coordinates, dim, matrix, out });
}

struct Affine<'a> {
    coordinates: &'a [f64],
    dim: usize,
    matrix: &'a [f64],
    out: &'a mut [f64],
}

impl Op for Affine<'_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Affine { coordinates, dim, matrix, out } = self;
        let stride = matrix.len() / dim;
        let mut groups = out.chunks_exact_mut(4 * stride);
        let mut points = coordinates.chunks_exact(4 * dim);
        for (group, x) in groups.by_ref().zip(points.by_ref()) {
            rows::<FMA, 4>(x, dim, matrix, stride, group);
        }
        for (row, x) in
            groups.into_remainder().chunks_exact_mut(stride).zip(points.remainder().chunks_exact(dim))
        {
            rows::<FMA, 1>(x, dim, matrix, stride, row);
        }
    }
}

/// The same for exactly `R` rows, whose partial sums stay in registers.
#[inline(always)]
fn rows<const FMA: bool, const R: usize>(
    x: &[f64],
    dim: usize,
    matrix: &[f64],
    stride: usize,
    out: &mut [f64],
) {
    let matrix = chunks(matrix);
    let out = chunks_mut(out);
    let width = stride / LANES;
    for k in 0..width {
        let mut acc = [[0.0; LANES]; R];
        for r in 0..R {
            acc[r] = out[r * width + k];
        }
        for c in 0..dim {
            let m = &matrix[c * width + k];
            for r in 0..R {
                let xr = x[r * dim + c];
                for l in 0..LANES {
                    acc[r][l] = xr.fma::<FMA>(m[l], acc[r][l]);
                }
            }
        }
        for r in 0..R {
            out[r * width + k] = acc[r];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::run_baseline;

    #[test]
    fn affine_agrees_with_a_scalar_loop() {
        for (rows, dim, stride) in [(1, 1, 8), (4, 3, 16), (7, 5, 24), (9, 28, 40)] {
            let x: Vec<f64> = (0..rows * dim).map(|i| (i as f64 * 0.7).sin()).collect();
            let m: Vec<f64> = (0..dim * stride).map(|i| (i as f64 * 0.3).cos()).collect();
            let start: Vec<f64> = (0..rows * stride).map(|i| i as f64).collect();
            let (mut fast, mut baseline) = (start.clone(), start.clone());
            affine(&x, dim, &m, &mut fast);
            run_baseline(Affine { coordinates: &x, dim, matrix: &m, out: &mut baseline });
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
