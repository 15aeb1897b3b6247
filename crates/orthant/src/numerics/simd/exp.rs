//! Exponentials of whole rows, and the sums of exponentials that stable arithmetic is made of.

use pulp::{Simd, WithSimd};

use super::{Float, dispatch, fused};

const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// ln 2 in two parts: the product of the first with a whole number below 2^11 is exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fefa_3800);
const LN2_LOW: f64 = f64::from_bits(0x3d2e_f357_93c7_6730);
/// Adding it rounds to a whole number, which then stands in the lowest bits.
const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

/// Multiplication and addition, fused if `FMA`.
pub(super) trait Fma {
    fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self;
}

impl Fma for f32 {
    #[inline(always)]
    fn fma<const FMA: bool>(self, b: f32, c: f32) -> f32 {
        if FMA { self.mul_add(b, c) } else { self * b + c }
    }
}

impl Fma for f64 {
    #[inline(always)]
    fn fma<const FMA: bool>(self, b: f64, c: f64) -> f64 {
        if FMA { self.mul_add(b, c) } else { self * b + c }
    }
}

/// `exp(x)` to 2 units in the last place, for `-708 < x < 709`.
///
/// `x = k ln 2 + r`, `exp(x) = 2^k (1 + r + r^2 q(r))`, q the Chebyshev fit of degree 9 on
/// `|r| <= ln(2)/2` (truncation below 2e-17).
#[inline(always)]
pub(super) fn exp_f64<const FMA: bool>(x: f64) -> f64 {
    #[expect(clippy::unreadable_literal, clippy::excessive_precision, reason = "a fit")]
    const Q: [f64; 10] = [
        0.50000000000000010221,
        0.16666666666666667453,
        0.041666666666624127873,
        0.0083333333333300618325,
        0.0013888888917213716901,
        0.00019841269863053616878,
        0.000024801521295954375131,
        2.7557268459997064772e-6,
        2.7620088445409748161e-7,
        2.5100385495510319078e-8,
    ];
    let shifted = x.fma::<FMA>(LOG2_E, SHIFT);
    let k = shifted - SHIFT;
    let r = k.fma::<FMA>(-LN2_LOW, k.fma::<FMA>(-LN2_HIGH, x));
    // Estrin's scheme: short chains of dependent operations.
    let r2 = r * r;
    let r4 = r2 * r2;
    let q01 = Q[1].fma::<FMA>(r, Q[0]);
    let q23 = Q[3].fma::<FMA>(r, Q[2]);
    let q45 = Q[5].fma::<FMA>(r, Q[4]);
    let q67 = Q[7].fma::<FMA>(r, Q[6]);
    let q89 = Q[9].fma::<FMA>(r, Q[8]);
    let q = q89.fma::<FMA>(r4, q67.fma::<FMA>(r2, q45)).fma::<FMA>(r4, q23.fma::<FMA>(r2, q01));
    let p = 1.0 + q.fma::<FMA>(r2, r);
    p * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
}

/// `exp(x)` in single precision for `x <= 0`, zero below the flush limit.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a constant")]
pub(super) fn exp_f32<const FMA: bool>(x: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    #[expect(clippy::unreadable_literal, clippy::excessive_precision, reason = "a fit")]
    const Q: [f32; 5] = [
        0.5,
        0.16666576989698776,
        0.041666554617204574,
        0.0083631790527225774,
        0.0013926183587713495,
    ];
    let shifted = x.fma::<FMA>(std::f32::consts::LOG2_E, SHIFT);
    let k = shifted - SHIFT;
    let r = k.fma::<FMA>(-LN2_LOW, k.fma::<FMA>(-LN2_HIGH, x));
    let r2 = r * r;
    let q01 = Q[1].fma::<FMA>(r, Q[0]);
    let q23 = Q[3].fma::<FMA>(r, Q[2]);
    let q = Q[4].fma::<FMA>(r2, q23).fma::<FMA>(r2, q01);
    let p = 1.0 + q.fma::<FMA>(r2, r);
    let value = p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    if x < <f32 as Float>::FLUSH as f32 { 0.0 } else { value }
}

/// `out_k = exp(logs_k + reference_k - scale)`, which is at most about 1.
pub(crate) fn exp_row<T: Float>(logs: &[f64], reference: &[f64], scale: f64, out: &mut [T]) {
    dispatch(ExpRow { logs, reference, scale, out });
}

struct ExpRow<'a, T> {
    logs: &'a [f64],
    reference: &'a [f64],
    scale: f64,
    out: &'a mut [T],
}

impl<T: Float> WithSimd for ExpRow<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if fused::<S>() { self.run::<true>() } else { self.run::<false>() }
    }
}

impl<T: Float> ExpRow<'_, T> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        // The arguments are computed in double precision; in tiles, so that either loop is about one
        // type and fills whole vectors.
        const TILE: usize = 64;
        let mut arguments = [T::ZERO; TILE];
        for ((out, logs), reference) in
            self.out.chunks_mut(TILE).zip(self.logs.chunks(TILE)).zip(self.reference.chunks(TILE))
        {
            let arguments = &mut arguments[..out.len()];
            for ((t, l), z) in arguments.iter_mut().zip(logs).zip(reference) {
                *t = T::from_f64(l + z - self.scale);
            }
            for (o, t) in out.iter_mut().zip(arguments) {
                *o = T::exp_nonpositive::<FMA>(*t);
            }
        }
    }
}

/// `values_k <- exp(values_k + reference_k - scale)` in place; the sum of the results.
pub(crate) fn exp_slice(values: &mut [f64], reference: &[f64], scale: f64) -> f64 {
    dispatch(ExpSlice { values, reference, scale })
}

struct ExpSlice<'a> {
    values: &'a mut [f64],
    reference: &'a [f64],
    scale: f64,
}

impl WithSimd for ExpSlice<'_> {
    type Output = f64;
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> f64 {
        if fused::<S>() {
            self.run::<true>();
        } else {
            self.run::<false>();
        }
        let mut sum = simd.splat_f64s(0.0);
        for v in f64::vectors::<S>(self.values) {
            sum = simd.add_f64s(sum, *v);
        }
        simd.reduce_sum_f64s(sum)
    }
}

impl ExpSlice<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(&mut self) {
        for (v, z) in self.values.iter_mut().zip(self.reference) {
            *v = f64::exp_nonpositive::<FMA>(*v + z - self.scale);
        }
    }
}

/// `max_k (logs_k + reference_k)`.
pub(crate) fn max_sum(logs: &[f64], reference: &[f64]) -> f64 {
    dispatch(MaxSum { logs, reference })
}

struct MaxSum<'a> {
    logs: &'a [f64],
    reference: &'a [f64],
}

impl WithSimd for MaxSum<'_> {
    type Output = f64;
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let mut most = [simd.splat_f64s(f64::NEG_INFINITY); 4];
        let (logs, logs_rest) = f64::vectors::<S>(self.logs).as_chunks::<4>();
        let (reference, reference_rest) = f64::vectors::<S>(self.reference).as_chunks::<4>();
        for (l, z) in logs.iter().zip(reference) {
            for p in 0..4 {
                most[p] = simd.max_f64s(most[p], simd.add_f64s(l[p], z[p]));
            }
        }
        for (l, z) in logs_rest.iter().zip(reference_rest) {
            most[0] = simd.max_f64s(most[0], simd.add_f64s(*l, *z));
        }
        let [a, b, c, d] = most;
        simd.reduce_max_f64s(simd.max_f64s(simd.max_f64s(a, b), simd.max_f64s(c, d)))
    }
}

/// Running `log sum exp` of every column of a matrix that is seen row by row.
pub(crate) struct ColumnSums<'a> {
    /// Largest term of each column so far; minus infinity at the start.
    pub(crate) most: &'a mut [f64],
    /// Sum of `exp(term - most)`; zero at the start.
    pub(crate) sum: &'a mut [f64],
}

impl ColumnSums<'_> {
    /// Adds the rows `logs` (each as long as a column index runs), row `i` shifted by `shift[i]`.
    pub(crate) fn add(&mut self, logs: &[f64], shift: &[f64]) {
        dispatch(AddRows { most: self.most, sum: self.sum, logs, shift });
    }
}

struct AddRows<'a> {
    most: &'a mut [f64],
    sum: &'a mut [f64],
    logs: &'a [f64],
    shift: &'a [f64],
}

impl WithSimd for AddRows<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if fused::<S>() { self.run::<true>() } else { self.run::<false>() }
    }
}

impl AddRows<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        // Tiles of columns, so that the maxima and sums of a tile stay in registers or nearby.
        const TILE: usize = 64;
        let stride = self.most.len();
        let mut top = [0.0; TILE];
        for start in (0..stride).step_by(TILE) {
            let columns = start..stride.min(start + TILE);
            let (most, sum) = (&mut self.most[columns.clone()], &mut self.sum[columns.clone()]);
            let top = &mut top[..columns.len()];
            top.copy_from_slice(most);
            for (row, &f) in self.logs.chunks_exact(stride).zip(self.shift) {
                for (t, l) in top.iter_mut().zip(&row[columns.clone()]) {
                    let term = l + f;
                    *t = if term > *t { term } else { *t };
                }
            }
            for ((s, m), t) in sum.iter_mut().zip(most).zip(&mut *top) {
                let old = *m;
                *m = *t;
                // A column of zeros only has no largest term; any finite one will do.
                *t = if *t == f64::NEG_INFINITY { 0.0 } else { *t };
                *s *= f64::exp_nonpositive::<FMA>(old - *t);
            }
            for (row, &f) in self.logs.chunks_exact(stride).zip(self.shift) {
                for ((s, l), t) in sum.iter_mut().zip(&row[columns.clone()]).zip(&*top) {
                    *s += f64::exp_nonpositive::<FMA>(l + f - t);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::simd::run_baseline;

    fn grid(low: f64, high: f64, n: usize) -> Vec<f64> {
        (0..n).map(|i| low + (high - low) * i as f64 / (n - 1) as f64).collect()
    }

    #[test]
    fn exp_f64_agrees_with_the_standard_library() {
        let zero = vec![0.0; 4096];
        for (low, high) in [(-1e-9, 0.0), (-1.0, 0.0), (-40.0, 0.0), (-664.9, 0.0), (-3.0, 3.0)] {
            let x = grid(low, high, 4096);
            let (mut fast, mut baseline) = (vec![0.0; 4096], vec![0.0; 4096]);
            exp_row::<f64>(&x, &zero, 0.0, &mut fast);
            run_baseline(ExpRow { logs: &x, reference: &zero, scale: 0.0, out: &mut baseline });
            for i in 0..x.len() {
                let exact = x[i].exp();
                assert!((fast[i] / exact - 1.0).abs() < 1e-15, "exp({}) = {}", x[i], fast[i]);
                assert!((baseline[i] / exact - 1.0).abs() < 1e-15, "exp({})", x[i]);
            }
        }
    }

    #[test]
    fn exp_f32_agrees_with_the_standard_library() {
        let zero = vec![0.0; 4096];
        for (low, high) in [(-1e-9, 0.0), (-1.0, 0.0), (-16.0, 0.0)] {
            let x = grid(low, high, 4096);
            let mut fast = vec![0.0_f32; 4096];
            let mut baseline = vec![0.0_f32; 4096];
            exp_row::<f32>(&x, &zero, 0.0, &mut fast);
            run_baseline(ExpRow { logs: &x, reference: &zero, scale: 0.0, out: &mut baseline });
            for i in 0..x.len() {
                // The argument itself is rounded to single precision: |x| 2^-24 on top.
                let bound = 1.2e-7 + x[i].abs() * 6e-8;
                let exact = x[i].exp();
                assert!((f64::from(fast[i]) / exact - 1.0).abs() < bound, "exp({})", x[i]);
                assert!((f64::from(baseline[i]) / exact - 1.0).abs() < bound, "exp({})", x[i]);
            }
        }
    }

    #[test]
    fn exponentials_flush_to_zero_and_keep_minus_infinity() {
        let x = [-64.0, -68.9, -69.1, -664.0, -666.0, -1e6, f64::MIN, f64::NEG_INFINITY];
        let zero = [0.0; 8];
        let (mut single, mut double) = ([1.0_f32; 8], [1.0_f64; 8]);
        exp_row(&x, &zero, 0.0, &mut single);
        exp_row(&x, &zero, 0.0, &mut double);
        assert!(single[..2].iter().all(|v| *v > 0.0));
        assert!(single[2..].iter().all(|v| *v == 0.0));
        assert!(double[..4].iter().all(|v| *v > 0.0));
        assert!(double[4..].iter().all(|v| *v == 0.0));
    }

    #[test]
    fn column_sums_agree_with_a_scalar_log_sum_exp() {
        let (rows, cols) = (11, 16);
        let logs: Vec<f64> =
            (0..rows * cols)
                .map(|i| {
                    if i % 7 == 0 {
                        f64::NEG_INFINITY
                    } else {
                        ((i * 37) % 101) as f64 * 9.0 - 500.0
                    }
                })
                .collect();
        let shift: Vec<f64> = (0..rows).map(|i| 40.0 * (i as f64).sin()).collect();
        let (mut most, mut sum) = (vec![f64::NEG_INFINITY; cols], vec![0.0; cols]);
        let mut columns = ColumnSums { most: &mut most, sum: &mut sum };
        columns.add(&logs[..3 * cols], &shift[..3]);
        columns.add(&logs[3 * cols..], &shift[3..]);
        for k in 0..cols {
            let terms: Vec<f64> = (0..rows).map(|i| logs[i * cols + k] + shift[i]).collect();
            let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let exact = top + terms.iter().map(|t| (t - top).exp()).sum::<f64>().ln();
            assert!((most[k] + sum[k].ln() - exact).abs() < 1e-13 * exact.abs().max(1.0));
        }
    }

    #[test]
    fn sums_and_maxima_agree_with_scalar_loops() {
        let x: Vec<f64> = (0..40).map(|i| f64::from((i * 17) % 23)).collect();
        let z: Vec<f64> = (0..40).map(|i| f64::from((i * 5) % 11) * 0.3).collect();
        let top = x.iter().zip(&z).map(|(a, b)| a + b).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(max_sum(&x, &z), top);
        let mut e = x.clone();
        let sum = exp_slice(&mut e, &z, top);
        let exact: f64 = x.iter().zip(&z).map(|(a, b)| (a + b - top).exp()).sum();
        assert!((sum / exact - 1.0).abs() < 1e-14);
    }
}
