//! The fused pass of a Sinkhorn half-iteration over stored features.

use super::{Float, LANES, Op, chunks, chunks_mut, dispatch};

/// Rows that go through the pass together: each stays in the first-level cache between its inner
/// product and its contribution to the sums.
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

impl<T: Float, U: FnMut(usize, f64) -> T> Op for Fused<'_, T, U> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Fused { features, w, sums, mut update } = self;
        let stride = w.len();
        let rows = features.len() / stride;
        let mut i = 0;
        while i + GROUP <= rows {
            let group: [&[T]; GROUP] =
                std::array::from_fn(|r| &features[(i + r) * stride..(i + r + 1) * stride]);
            let dots = dots::<FMA, T, GROUP>(group, w);
            let factors = std::array::from_fn(|r| update(i + r, dots[r]));
            add_rows::<FMA, T, GROUP>(group, factors, sums);
            i += GROUP;
        }
        while i < rows {
            let row = [&features[i * stride..(i + 1) * stride]];
            let [s] = dots::<FMA, T, 1>(row, w);
            add_rows::<FMA, T, 1>(row, [update(i, s)], sums);
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

impl<T: Float> Op for Dot<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let [s] = dots::<FMA, T, 1>([self.row], self.w);
        s
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

impl<T: Float> Op for Accumulate<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let factor = self.factor;
        for (sum, row) in chunks_mut(self.sums).iter_mut().zip(chunks(self.row)) {
            for l in 0..LANES {
                sum[l] = row[l].to_f64().fma::<FMA>(factor, sum[l]);
            }
        }
    }
}

#[inline(always)]
fn dots<const FMA: bool, T: Float, const R: usize>(rows: [&[T]; R], w: &[T]) -> [f64; R] {
    let w = chunks(w);
    // The same length for all, so that no bound is checked in the loop.
    let rows = rows.map(|row| &chunks(row)[..w.len()]);
    let mut acc = [[T::ZERO; LANES]; R];
    for k in 0..w.len() {
        for r in 0..R {
            for l in 0..LANES {
                acc[r][l] = rows[r][k][l].fma::<FMA>(w[k][l], acc[r][l]);
            }
        }
    }
    acc.map(|a| {
        let a = a.map(T::to_f64);
        ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]))
    })
}

#[inline(always)]
fn add_rows<const FMA: bool, T: Float, const R: usize>(
    rows: [&[T]; R],
    factors: [T; R],
    sums: &mut [T],
) {
    let sums = chunks_mut(sums);
    let rows = rows.map(|row| &chunks(row)[..sums.len()]);
    for k in 0..sums.len() {
        let mut s = sums[k];
        for r in 0..R {
            for l in 0..LANES {
                s[l] = rows[r][k][l].fma::<FMA>(factors[r], s[l]);
            }
        }
        sums[k] = s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::run_baseline;

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
    fn the_fused_pass_agrees_with_scalar_loops_in_double_precision() {
        check::<f64>(1e-13);
    }

    #[test]
    fn the_fused_pass_agrees_with_scalar_loops_in_single_precision() {
        check::<f32>(2e-6);
    }
}
