//! The passes over a lattice of features: small matrix products with a point in every lane.
//!
//! A *table* holds, for one axis, a row of numbers for each node of a window: `table[j][i]` belongs
//! to node `j` and point `i` of a block. Rows are `points` apart, a padded number.

use pulp::{Simd, WithSimd};

use super::{Float, dispatch, fused};

/// `table[j][i] = base_i^(j - centre)`, where `base_i = exp(exponents_i)`.
///
/// From the centre outwards, so that rounding grows with the distance from it only. `scratch` has
/// room for two rows.
pub(crate) fn powers<T: Float>(
    exponents: &[T],
    nodes: usize,
    centre: usize,
    table: &mut [T],
    scratch: &mut [T],
) {
    dispatch(Powers { exponents, nodes, centre, table, scratch });
}

struct Powers<'a, T> {
    exponents: &'a [T],
    nodes: usize,
    centre: usize,
    table: &'a mut [T],
    scratch: &'a mut [T],
}

impl<T: Float> WithSimd for Powers<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Powers { exponents, nodes, centre, table, scratch } = self;
        let points = exponents.len();
        let (up, down) = scratch[..2 * points].split_at_mut(points);
        if fused::<S>() {
            bases::<T, true>(exponents, up, down);
        } else {
            bases::<T, false>(exponents, up, down);
        }
        table[centre * points..(centre + 1) * points].fill(T::from_f64(1.0));
        for j in centre + 1..nodes {
            let (before, row) = table.split_at_mut(j * points);
            times(simd, &before[(j - 1) * points..], up, &mut row[..points]);
        }
        for j in (0..centre).rev() {
            let (row, after) = table.split_at_mut((j + 1) * points);
            times(simd, &after[..points], down, &mut row[j * points..]);
        }
    }
}

#[inline(always)]
fn bases<T: Float, const FMA: bool>(exponents: &[T], up: &mut [T], down: &mut [T]) {
    for ((up, down), g) in up.iter_mut().zip(down.iter_mut()).zip(exponents) {
        *up = T::exp_near::<FMA>(*g);
        *down = T::exp_near::<FMA>(-*g);
    }
}

/// `out_i = a_i b_i`.
#[inline(always)]
fn times<S: Simd, T: Float>(simd: S, a: &[T], b: &[T], out: &mut [T]) {
    let (a, b) = (T::vectors::<S>(a), T::vectors::<S>(b));
    for ((out, a), b) in T::vectors_mut::<S>(out).iter_mut().zip(a).zip(b) {
        *out = T::mul(simd, *a, *b);
    }
}

/// `out_i = a_i b_i` for whole rows.
pub(crate) fn multiply<T: Float>(a: &[T], b: &[T], out: &mut [T]) {
    dispatch(Multiply { a, b, out });
}

struct Multiply<'a, T> {
    a: &'a [T],
    b: &'a [T],
    out: &'a mut [T],
}

impl<T: Float> WithSimd for Multiply<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let points = self.b.len();
        for (a, out) in self.a.chunks_exact(points).zip(self.out.chunks_exact_mut(points)) {
            times(simd, a, self.b, out);
        }
    }
}

/// `out_i += weight_i sum_jk z[j][k] first[j][i] last[k][i]`, the weight 1 if there is none.
///
/// `z` has a row for each node of the first axis, `z_stride` apart, and as many columns as `last`
/// has rows.
pub(crate) fn gather<T: Float>(
    z: &[T],
    z_stride: usize,
    first: &[T],
    last: &[T],
    weight: Option<&[T]>,
    out: &mut [T],
) {
    dispatch(Gather { z, z_stride, first, last, weight, out });
}

struct Gather<'a, T> {
    z: &'a [T],
    z_stride: usize,
    first: &'a [T],
    last: &'a [T],
    weight: Option<&'a [T]>,
    out: &'a mut [T],
}

impl<T: Float> WithSimd for Gather<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Gather { z, z_stride, first, last, weight, out } = self;
        let out = T::vectors_mut::<S>(out);
        let width = out.len();
        let mut v = 0;
        while v < width {
            let height = if v + 4 <= width { 4 } else { 1 };
            let out = &mut out[v..v + height];
            if height == 4 {
                gather_points::<S, T, 4>(simd, z, z_stride, first, last, weight, width, v, out);
            } else {
                gather_points::<S, T, 1>(simd, z, z_stride, first, last, weight, width, v, out);
            }
            v += height;
        }
    }
}

/// [`gather`] for `V` vectors of points from vector `v` of `width`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a kernel: inlined, not called")]
fn gather_points<S: Simd, T: Float, const V: usize>(
    simd: S,
    z: &[T],
    z_stride: usize,
    first: &[T],
    last: &[T],
    weight: Option<&[T]>,
    width: usize,
    v: usize,
    out: &mut [T::Vector<S>],
) {
    let (first, last) = (T::vectors::<S>(first), T::vectors::<S>(last));
    let columns = last.len() / width;
    let mut sum = [T::splat(simd, T::ZERO); V];
    let mut k = 0;
    while k < columns {
        if k + 3 <= columns {
            gather_tile::<S, T, V, 3>(simd, z, z_stride, first, last, width, v, k, &mut sum);
            k += 3;
        } else {
            gather_tile::<S, T, V, 1>(simd, z, z_stride, first, last, width, v, k, &mut sum);
            k += 1;
        }
    }
    match weight {
        None => {
            for p in 0..V {
                out[p] = T::add(simd, sum[p], out[p]);
            }
        }
        Some(weight) => {
            let weight = &T::vectors::<S>(weight)[v..v + V];
            for p in 0..V {
                out[p] = T::mul_add(simd, sum[p], weight[p], out[p]);
            }
        }
    }
}

/// The part of columns `k..k + C` of `z`: twelve sums in registers for `V = 4`, `C = 3`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a kernel: inlined, not called")]
fn gather_tile<S: Simd, T: Float, const V: usize, const C: usize>(
    simd: S,
    z: &[T],
    z_stride: usize,
    first: &[T::Vector<S>],
    last: &[T::Vector<S>],
    width: usize,
    v: usize,
    k: usize,
    sum: &mut [T::Vector<S>; V],
) {
    let mut acc = [[T::splat(simd, T::ZERO); V]; C];
    for (t, z) in first.chunks_exact(width).zip(z.chunks(z_stride)) {
        let t = &t[v..v + V];
        let z = &z[k..k + C];
        for c in 0..C {
            let zc = T::splat(simd, z[c]);
            for p in 0..V {
                acc[c][p] = T::mul_add(simd, zc, t[p], acc[c][p]);
            }
        }
    }
    for c in 0..C {
        let row = &last[(k + c) * width + v..(k + c) * width + v + V];
        for p in 0..V {
            sum[p] = T::mul_add(simd, acc[c][p], row[p], sum[p]);
        }
    }
}

/// `sums[j][k] += sum_i first[j][i] last[k][i]`, over the points of a block in the precision of the
/// tables, then in double precision. Rows of `sums` are `stride` apart.
pub(crate) fn scatter<T: Float>(
    first: &[T],
    last: &[T],
    points: usize,
    sums: &mut [f64],
    stride: usize,
) {
    dispatch(Scatter { first, last, points, sums, stride });
}

struct Scatter<'a, T> {
    first: &'a [T],
    last: &'a [T],
    points: usize,
    sums: &'a mut [f64],
    stride: usize,
}

impl<T: Float> WithSimd for Scatter<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Scatter { first, last, points, sums, stride } = self;
        let rows = first.len() / points;
        let columns = last.len() / points;
        let (first, last) = (T::vectors::<S>(first), T::vectors::<S>(last));
        let width = first.len() / rows;
        let mut j = 0;
        while j < rows {
            let height = if j + 3 <= rows { 3 } else { 1 };
            let a = &first[j * width..(j + height) * width];
            let mut k = 0;
            while k < columns {
                let wide = if k + 4 <= columns { 4 } else { 1 };
                let b = &last[k * width..(k + wide) * width];
                let sums = &mut sums[j * stride + k..];
                match (height, wide) {
                    (3, 4) => scatter_tile::<S, T, 3, 4>(simd, a, b, width, sums, stride),
                    (3, _) => scatter_tile::<S, T, 3, 1>(simd, a, b, width, sums, stride),
                    (_, 4) => scatter_tile::<S, T, 1, 4>(simd, a, b, width, sums, stride),
                    _ => scatter_tile::<S, T, 1, 1>(simd, a, b, width, sums, stride),
                }
                k += wide;
            }
            j += height;
        }
    }
}

/// `R` rows and `C` columns of [`scatter`].
#[inline(always)]
fn scatter_tile<S: Simd, T: Float, const R: usize, const C: usize>(
    simd: S,
    a: &[T::Vector<S>],
    b: &[T::Vector<S>],
    width: usize,
    sums: &mut [f64],
    stride: usize,
) {
    let mut acc = [[T::splat(simd, T::ZERO); C]; R];
    let (a, b) = (&a[..R * width], &b[..C * width]);
    for v in 0..width {
        for r in 0..R {
            let ar = a[r * width + v];
            for c in 0..C {
                acc[r][c] = T::mul_add(simd, ar, b[c * width + v], acc[r][c]);
            }
        }
    }
    for r in 0..R {
        for c in 0..C {
            sums[r * stride + c] += T::sum(simd, acc[r][c]).to_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::simd::run_baseline;

    fn numbers<T: Float>(len: usize, phase: f64) -> Vec<T> {
        (0..len).map(|i| T::from_f64((i as f64 * 0.37 + phase).sin() + 1.1)).collect()
    }

    fn check<T: Float>(tolerance: f64) {
        let close = |x: f64, y: f64| assert!((x - y).abs() <= tolerance * y.abs(), "{x} {y}");
        for (rows, columns, points) in [(1, 1, 8), (3, 4, 16), (5, 7, 24), (12, 13, 64)] {
            let first: Vec<T> = numbers(rows * points, 0.0);
            let last: Vec<T> = numbers(columns * points, 1.0);
            let weight: Vec<T> = numbers(points, 2.0);
            let stride = columns + 2;
            let z: Vec<T> = numbers(rows * stride, 3.0);
            let start: Vec<T> = numbers(points, 4.0);
            let at = |v: &[T], i: usize| v[i].to_f64();
            for weight in [None, Some(&weight[..])] {
                let (mut fast, mut baseline) = (start.clone(), start.clone());
                gather(&z, stride, &first, &last, weight, &mut fast);
                run_baseline(Gather {
                    z: &z,
                    z_stride: stride,
                    first: &first,
                    last: &last,
                    weight,
                    out: &mut baseline,
                });
                for i in 0..points {
                    let sum: f64 = (0..rows * columns)
                        .map(|n| (n / columns, n % columns))
                        .map(|(j, k)| {
                            at(&z, j * stride + k)
                                * at(&first, j * points + i)
                                * at(&last, k * points + i)
                        })
                        .sum();
                    let exact = at(&start, i) + sum * weight.map_or(1.0, |w| at(w, i));
                    close(fast[i].to_f64(), exact);
                    close(baseline[i].to_f64(), exact);
                }
            }
            let (mut fast, mut baseline) = (vec![1.0; rows * stride], vec![1.0; rows * stride]);
            scatter(&first, &last, points, &mut fast, stride);
            run_baseline(Scatter {
                first: &first,
                last: &last,
                points,
                sums: &mut baseline,
                stride,
            });
            for j in 0..rows {
                for k in 0..stride {
                    let sum: f64 = if k < columns {
                        (0..points)
                            .map(|i| at(&first, j * points + i) * at(&last, k * points + i))
                            .sum()
                    } else {
                        0.0
                    };
                    close(fast[j * stride + k], 1.0 + sum);
                    close(baseline[j * stride + k], 1.0 + sum);
                }
            }
            let exponents: Vec<T> =
                (0..points).map(|i| T::from_f64((i as f64 * 0.7).sin())).collect();
            let mut scratch = vec![T::ZERO; 2 * points];
            for centre in [0, rows / 2, rows - 1] {
                let mut table = vec![T::ZERO; rows * points];
                powers(&exponents, rows, centre, &mut table, &mut scratch);
                for j in 0..rows {
                    for i in 0..points {
                        let power = at(&exponents, i) * (j as f64 - centre as f64);
                        close(at(&table, j * points + i), power.exp());
                    }
                }
            }
            let mut product = vec![T::ZERO; rows * points];
            multiply(&first, &weight, &mut product);
            for (n, p) in product.iter().enumerate() {
                close(p.to_f64(), at(&first, n) * at(&weight, n % points));
            }
        }
    }

    #[test]
    fn the_passes_agree_with_scalar_loops_in_double_precision() {
        check::<f64>(1e-13);
    }

    #[test]
    fn the_passes_agree_with_scalar_loops_in_single_precision() {
        check::<f32>(5e-6);
    }
}
