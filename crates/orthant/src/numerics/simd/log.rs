//! Logarithms of whole rows.

use pulp::{Simd, WithSimd};

use super::exp::Fma;
use super::{Float, dispatch, fused};

/// `out_k = ln(values_k)` of positive, finite values, to a unit in the last place.
pub(crate) fn ln_row<T: Float>(values: &[T], out: &mut [f64]) {
    dispatch(LnRow { values, out });
}

struct LnRow<'a, T> {
    values: &'a [T],
    out: &'a mut [f64],
}

impl<T: Float> WithSimd for LnRow<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if fused::<S>() { self.run::<true>() } else { self.run::<false>() }
    }
}

impl<T: Float> LnRow<'_, T> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (out, x) in self.out.iter_mut().zip(self.values) {
            *out = ln_f64::<FMA>(x.to_f64());
        }
    }
}

/// `x = 2^k m` with `m` between the root of a half and that of two, `f = m - 1`, `s = f / (2 + f)`, and
/// `ln m = f - f^2/2 + s (f^2/2 + R(s^2))`, `R` the minimax polynomial of fdlibm.
#[inline(always)]
pub(super) fn ln_f64<const FMA: bool>(x: f64) -> f64 {
    #[expect(clippy::unreadable_literal, clippy::excessive_precision, reason = "a fit")]
    const R: [f64; 7] = [
        0.6666666666666735130,
        0.3999999999940941908,
        0.2857142874366239149,
        0.2222219843214978396,
        0.1818357216161805012,
        0.1531383769920937332,
        0.1479819860511658591,
    ];
    /// ln 2 in two parts: the product of the first with a whole number below 2^11 is exact.
    const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    const BIAS: u64 = 1023 << 52;
    /// 2^54, for numbers that are not normal.
    const UP: f64 = 18_014_398_509_481_984.0;
    /// 2^52: a whole number below it, in its lowest bits, is a number.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let tiny = x < f64::MIN_POSITIVE;
    let bits = (if tiny { x * UP } else { x }).to_bits();
    let exponent =
        bits.wrapping_sub(std::f64::consts::FRAC_1_SQRT_2.to_bits()).wrapping_add(BIAS) >> 52;
    let k = f64::from_bits(exponent | WHOLE.to_bits())
        - (WHOLE + if tiny { 1023.0 + 54.0 } else { 1023.0 });
    let f = f64::from_bits(bits.wrapping_sub(exponent << 52).wrapping_add(BIAS)) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * R[5].fma::<FMA>(w, R[3]).fma::<FMA>(w, R[1]);
    let odd = z * R[6].fma::<FMA>(w, R[4]).fma::<FMA>(w, R[2]).fma::<FMA>(w, R[0]);
    let half = 0.5 * f * f;
    let rest = s.fma::<FMA>(half + (even + odd), k * LN2_LOW);
    k.fma::<FMA>(LN2_HIGH, f - (half - rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all sizes, and close to 1.
    fn numbers() -> Vec<f64> {
        let mut values: Vec<f64> = (0..100_000)
            .map(|i| {
                let t = f64::from(i) * 0.618_033_988_749_895;
                (1.0 + t.fract()) * 2.0_f64.powi((i * 37) % 2046 - 1022)
            })
            .collect();
        values.extend((-2000..2000).map(|i| 1.0 + f64::from(i) * 1.7e-5));
        values.extend((-2000..2000).map(|i| 1.0 + f64::from(i) * f64::EPSILON));
        values.extend([f64::MIN_POSITIVE, f64::MAX, 5e-324, 3e-310, 2.0, 0.5, 1.0]);
        values.extend([2.0_f64.sqrt(), 0.5_f64.sqrt()]);
        values
    }

    fn check(found: &[f64], values: &[f64]) {
        for (found, x) in found.iter().zip(values) {
            let expected = x.ln();
            let unit = f64::EPSILON * expected.abs();
            assert!((found - expected).abs() <= unit, "ln {x:e}: {found:e}, not {expected:e}");
        }
    }

    #[test]
    fn logarithms_are_right_to_a_unit_in_the_last_place() {
        let values = numbers();
        let mut out = vec![0.0; values.len()];
        ln_row(&values, &mut out);
        check(&out, &values);
        LnRow { values: &values, out: &mut out }.run::<false>();
        check(&out, &values);
        let single: Vec<f32> = values
            .iter()
            .map(|x| f32::from_f64(*x))
            .filter(|x| *x > 0.0 && x.is_finite())
            .collect();
        let double: Vec<f64> = single.iter().map(|x| f64::from(*x)).collect();
        let mut out = vec![0.0; single.len()];
        ln_row(&single, &mut out);
        check(&out, &double);
        assert!(single.len() > 10_000);
    }
}
