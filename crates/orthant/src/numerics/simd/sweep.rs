//! The fused pass of a Sinkhorn half-iteration over stored features.

use pulp::{Simd, WithSimd};

use super::{Float, LANES, dispatch, fused};

/// Rows whose factors are computed together, so that their divisions overlap.
const GROUP: usize = 4;

/// One block of rows of `u_i = update(i, A_i . w)`, `sums_k += u_i A_ik`.
///
/// `update` gets the number of the row in the block and the inner product, and returns the factor.
pub(crate) fn fused_block<T: Float>(
    features: &[T],
    w: &[T],
    sums: &mut [T],
    update: impl FnMut(usize, f64) -> T,
) {
    dispatch(Fused { features, w, sums, update });
}

struct Fused<'a, T, U> {
    features: &'a [T],
    w: &'a [T],
    sums: &'a mut [T],
    update: U,
}

impl<T: Float, U: FnMut(usize, f64) -> T> WithSimd for Fused<'_, T, U> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Fused { features, w, sums, mut update } = self;
        let stride = w.len();
        let mut products = [0.0; GROUP];
        let mut factors = [T::ZERO; GROUP];
        let mut groups = features.chunks_exact(GROUP * stride);
        let mut i = 0;
        if let Some(mut group) = groups.next() {
            for (product, row) in products.iter_mut().zip(group.chunks_exact(stride)) {
                *product = dot_row(simd, row, w);
            }
            // While the inner product of a row is read from memory, a row of the group before, which
            // is in the cache, is added to the sums: memory is read in order and waits for nothing.
            for next in groups.by_ref() {
                for (r, factor) in factors.iter_mut().enumerate() {
                    *factor = update(i + r, products[r]);
                }
                for (r, (row, next)) in
                    group.chunks_exact(stride).zip(next.chunks_exact(stride)).enumerate()
                {
                    products[r] = add_and_dot(simd, row, factors[r], sums, next, w);
                }
                group = next;
                i += GROUP;
            }
            for (row, product) in group.chunks_exact(stride).zip(products) {
                add_row(simd, row, update(i, product), sums);
                i += 1;
            }
        }
        for row in groups.remainder().chunks_exact(stride) {
            add_row(simd, row, update(i, dot_row(simd, row, w)), sums);
            i += 1;
        }
    }
}

/// `A_i . w` of one row.
pub(crate) fn dot<T: Float>(row: &[T], w: &[T]) -> f64 {
    dispatch(Dot { row, w })
}

struct Dot<'a, T> {
    row: &'a [T],
    w: &'a [T],
}

impl<T: Float> WithSimd for Dot<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        dot_row(simd, self.row, self.w)
    }
}

/// `sums_k += factor * row_k` in double precision.
pub(crate) fn accumulate<T: Float>(row: &[T], factor: f64, sums: &mut [f64]) {
    dispatch(Accumulate { row, factor, sums });
}

struct Accumulate<'a, T> {
    row: &'a [T],
    factor: f64,
    sums: &'a mut [f64],
}

impl<T: Float> WithSimd for Accumulate<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Accumulate { row, factor, sums } = self;
        if fused::<S>() {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum = x.to_f64().mul_add(factor, *sum);
            }
        } else {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += x.to_f64() * factor;
            }
        }
    }
}

/// `out_k = values_k w_k / s` with `s` the largest product, which is returned; zero below `exp(FLUSH)`. The values are
/// overwritten.
pub(crate) fn scale_row<T: Float>(values: &mut [f64], w: &[f64], out: &mut [T]) -> f64 {
    dispatch(ScaleRow { values, w, out })
}

struct ScaleRow<'a, T> {
    values: &'a mut [f64],
    w: &'a [f64],
    out: &'a mut [T],
}

impl<T: Float> WithSimd for ScaleRow<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let ScaleRow { values, w, out } = self;
        let mut most = [0.0; 2 * LANES];
        for (values, w) in values.chunks_mut(most.len()).zip(w.chunks(most.len())) {
            for ((most, value), w) in most.iter_mut().zip(values).zip(w) {
                *value *= w;
                *most = if *value > *most { *value } else { *most };
            }
        }
        let most = most.into_iter().fold(0.0, f64::max);
        let (factor, least) = (1.0 / most, T::FLUSH.exp());
        for (out, value) in out.iter_mut().zip(values) {
            let scaled = *value * factor;
            *out = T::from_f64(if scaled < least { 0.0 } else { scaled });
        }
        most
    }
}

/// Independent partial sums of an inner product, so that additions need not wait for each other.
const PARTS: usize = 4;

#[inline(always)]
fn dot_row<S: Simd, T: Float>(simd: S, row: &[T], w: &[T]) -> f64 {
    let (row, w) = (T::vectors::<S>(row), T::vectors::<S>(w));
    let mut acc = [T::splat(simd, T::ZERO); PARTS];
    for (row, w) in row.chunks(PARTS).zip(w.chunks(PARTS)) {
        for ((acc, row), w) in acc.iter_mut().zip(row).zip(w) {
            *acc = T::mul_add(simd, *row, *w, *acc);
        }
    }
    sum_parts::<S, T>(simd, acc)
}

#[inline(always)]
fn add_row<S: Simd, T: Float>(simd: S, row: &[T], factor: T, sums: &mut [T]) {
    let factor = T::splat(simd, factor);
    for (sum, row) in T::vectors_mut::<S>(sums).iter_mut().zip(T::vectors::<S>(row)) {
        *sum = T::mul_add(simd, *row, factor, *sum);
    }
}

/// [`add_row`] of one row and [`dot_row`] of the next, in one loop.
#[inline(always)]
fn add_and_dot<S: Simd, T: Float>(
    simd: S,
    row: &[T],
    factor: T,
    sums: &mut [T],
    next: &[T],
    w: &[T],
) -> f64 {
    let factor = T::splat(simd, factor);
    let (row, row_rest) = T::vectors::<S>(row).as_chunks::<PARTS>();
    let (sums, sums_rest) = T::vectors_mut::<S>(sums).as_chunks_mut::<PARTS>();
    let (next, next_rest) = T::vectors::<S>(next).as_chunks::<PARTS>();
    let (w, w_rest) = T::vectors::<S>(w).as_chunks::<PARTS>();
    let mut acc = [T::splat(simd, T::ZERO); PARTS];
    for (((row, sums), next), w) in row.iter().zip(sums).zip(next).zip(w) {
        for p in 0..PARTS {
            acc[p] = T::mul_add(simd, next[p], w[p], acc[p]);
            sums[p] = T::mul_add(simd, row[p], factor, sums[p]);
        }
    }
    for (((row, sums), next), w) in row_rest.iter().zip(sums_rest).zip(next_rest).zip(w_rest) {
        acc[0] = T::mul_add(simd, *next, *w, acc[0]);
        *sums = T::mul_add(simd, *row, factor, *sums);
    }
    sum_parts::<S, T>(simd, acc)
}

#[inline(always)]
fn sum_parts<S: Simd, T: Float>(simd: S, acc: [T::Vector<S>; PARTS]) -> f64 {
    let [a, b, c, d] = acc;
    T::sum(simd, T::add(simd, T::add(simd, a, b), T::add(simd, c, d))).to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::simd::run_baseline;

    fn check<T: Float>(tolerance: f64) {
        for (rows, stride) in [(1, 8), (3, 16), (4, 8), (9, 40), (130, 24)] {
            let a: Vec<T> =
                (0..rows * stride).map(|i| T::from_f64((i as f64).sin().abs() + 0.01)).collect();
            let w: Vec<T> = (0..stride).map(|k| T::from_f64(1.0 / (k + 1) as f64)).collect();
            let mut exact = vec![0.0; stride];
            let mut factors = vec![0.0; rows];
            for i in 0..rows {
                let row = &a[i * stride..(i + 1) * stride];
                let s: f64 = row.iter().zip(&w).map(|(a, w)| a.to_f64() * w.to_f64()).sum();
                assert!((dot(row, &w) / s - 1.0).abs() < tolerance);
                factors[i] = (i + 1) as f64 / s;
                for (e, x) in exact.iter_mut().zip(row) {
                    *e += factors[i] * x.to_f64();
                }
            }
            let update = |i: usize, s: f64| T::from_f64((i + 1) as f64 / s);
            let (mut fast, mut baseline) = (vec![T::ZERO; stride], vec![T::ZERO; stride]);
            fused_block(&a, &w, &mut fast, update);
            run_baseline(Fused { features: &a, w: &w, sums: &mut baseline, update });
            let mut double = vec![0.0; stride];
            for (row, &f) in a.chunks(stride).zip(&factors) {
                accumulate(row, f, &mut double);
            }
            for k in 0..stride {
                assert!((fast[k].to_f64() / exact[k] - 1.0).abs() < tolerance);
                assert!((baseline[k].to_f64() / exact[k] - 1.0).abs() < tolerance);
                assert!((double[k] / exact[k] - 1.0).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn a_scaled_row_agrees_with_a_scalar_loop() {
        for len in [1, 7, 16, 41] {
            let values: Vec<f64> = (0..len).map(|k| 2.0 + f64::from(k).sin()).collect();
            let w: Vec<f64> = (0..len).map(|k| (-3.0 * f64::from(k % 30)).exp()).collect();
            let products: Vec<f64> = values.iter().zip(&w).map(|(v, w)| v * w).collect();
            let most = products.iter().copied().fold(0.0, f64::max);
            let mut single = vec![1.0_f32; products.len()];
            assert_eq!(scale_row(&mut values.clone(), &w, &mut single).to_bits(), most.to_bits());
            let mut double = vec![1.0_f64; products.len()];
            run_baseline(ScaleRow { values: &mut values.clone(), w: &w, out: &mut double });
            for ((p, s), d) in products.iter().zip(&single).zip(&double) {
                let exact = p / most;
                assert!((d / exact - 1.0).abs() < 1e-14);
                let kept = if exact < f32::FLUSH.exp() { 0.0 } else { exact };
                assert!((f64::from(*s) - kept).abs() <= 1e-7 * kept);
            }
        }
    }

    #[test]
    fn the_fused_pass_agrees_with_scalar_loops_in_double_precision() {
        check::<f64>(1e-13);
    }

    #[test]
    fn the_fused_pass_agrees_with_scalar_loops_in_single_precision() {
        check::<f32>(2e-6);
    }
}
