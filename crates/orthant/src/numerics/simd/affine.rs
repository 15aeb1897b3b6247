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
    // Divisions and the bounds of rows are for all tiles: in few axes they would take as long as these.
    let width = matrix.len() / dim;
    let out = f64::vectors_mut::<S>(out);
    let mut constants = [simd.splat_f64s(0.0); R];
    let bias = match start {
        Start::Out => None,
        Start::Bias { bias, constant } => {
            for (splat, constant) in constants.iter_mut().zip(constant) {
                *splat = simd.splat_f64s(*constant);
            }
            Some(&f64::vectors::<S>(bias)[..width])
        }
    };
    let group = Group::<S, R> { x, dim, matrix, width, bias, constants };
    // Loops of a few steps end where processors do not expect it, unless the compiler knows how many there are.
    match dim {
        1 => group.tiles::<1>(simd, out),
        2 => group.tiles::<2>(simd, out),
        3 => group.tiles::<3>(simd, out),
        4 => group.tiles::<4>(simd, out),
        5 => group.tiles::<5>(simd, out),
        _ => group.tiles::<ANY>(simd, out),
    }
}

/// In place of a number of coordinates that the compiler knows.
const ANY: usize = 0;

/// `R` rows.
struct Group<'a, S: Simd, const R: usize> {
    x: &'a [f64],
    dim: usize,
    matrix: &'a [S::f64s],
    /// Vectors of a row.
    width: usize,
    /// Where the output is not what it starts from.
    bias: Option<&'a [S::f64s]>,
    constants: [S::f64s; R],
}

impl<S: Simd, const R: usize> Group<'_, S, R> {
    /// All vectors of the rows, of `D` coordinates.
    #[inline(always)]
    fn tiles<const D: usize>(&self, simd: S, out: &mut [S::f64s]) {
        let mut k = 0;
        while k + WIDTH <= self.width {
            self.tile::<D, WIDTH>(simd, k, out);
            k += WIDTH;
        }
        while k < self.width {
            self.tile::<D, 1>(simd, k, out);
            k += 1;
        }
    }

    /// `W` vectors of each row, from vector `k` on.
    #[inline(always)]
    fn tile<const D: usize, const W: usize>(&self, simd: S, k: usize, out: &mut [S::f64s]) {
        let Group { x, dim, matrix, width, bias, constants } = *self;
        let dim = if D == ANY { dim } else { D };
        // No closures here: they would not inherit the instruction set.
        let mut acc = [[simd.splat_f64s(0.0); W]; R];
        if let Some(bias) = bias {
            let bias = &bias[k..k + W];
            for r in 0..R {
                for v in 0..W {
                    acc[r][v] = simd.add_f64s(bias[v], constants[r]);
                }
            }
        } else {
            for r in 0..R {
                acc[r].copy_from_slice(&out[r * width + k..r * width + k + W]);
            }
        }
        for c in 0..dim {
            let m = &matrix[c * width + k..c * width + k + W];
            for r in 0..R {
                let xr = simd.splat_f64s(x[r * dim + c]);
                for v in 0..W {
                    acc[r][v] = simd.mul_add_e_f64s(xr, m[v], acc[r][v]);
                }
            }
        }
        for r in 0..R {
            out[r * width + k..r * width + k + W].copy_from_slice(&acc[r]);
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
