//! The inverse of the standard normal distribution function.
#![expect(clippy::excessive_precision, reason = "coefficients as printed, to compare them")]

/// `z` with `P(Z <= z) = p`, for `0 < p < 1`: algorithm AS 241 (PPND16) of Wichura, *Applied
/// Statistics* 37 (1988), of relative accuracy `1e-16` before rounding.
///
/// Three quotients of polynomials: in `(p - 1/2)^2` for the middle, in `sqrt(-log min(p, 1-p))` for
/// the tails and the far tails.
pub(super) fn normal(p: f64) -> f64 {
    let away = p - 0.5;
    if away.abs() <= 0.425 {
        return away * quotient(&MIDDLE, 0.180_625 - away * away);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let z = if r <= 5.0 { quotient(&TAIL, r - 1.6) } else { quotient(&FAR_TAIL, r - 5.0) };
    z.copysign(away)
}

/// Numerator and denominator, from the constant upwards.
type Quotient = [[f64; 8]; 2];

fn quotient(coefficients: &Quotient, x: f64) -> f64 {
    let [above, below] = coefficients.map(|c| c.iter().rev().fold(0.0, |sum, c| sum * x + c));
    above / below
}

const MIDDLE: Quotient = [
    [
        3.387_132_872_796_366_608,
        1.331_416_678_917_843_774_5e2,
        1.971_590_950_306_551_442_7e3,
        1.373_169_376_550_946_112_5e4,
        4.592_195_393_154_987_145_7e4,
        6.726_577_092_700_870_085_3e4,
        3.343_057_558_358_812_810_5e4,
        2.509_080_928_730_122_672_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091_125_2e1,
        6.871_870_074_920_579_083e2,
        5.394_196_021_424_751_107_7e3,
        2.121_379_430_158_659_586_7e4,
        3.930_789_580_009_271_061e4,
        2.872_908_573_572_194_267_4e4,
        5.226_495_278_852_854_561e3,
    ],
];

const TAIL: Quotient = [
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_9,
        5.769_497_221_460_691_405_5,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_7e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_4e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_4,
        6.897_673_349_851_000_045_5e-1,
        1.481_039_764_274_800_745_9e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
];

const FAR_TAIL: Quotient = [
    [
        6.657_904_643_501_103_777_2,
        5.463_784_911_164_114_369_9,
        1.784_826_539_917_291_335_8,
        2.965_605_718_285_048_912_3e-1,
        2.653_218_952_657_612_309_3e-2,
        1.242_660_947_388_078_438_6e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_9e-1,
        1.369_298_809_227_358_053_1e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591e-4,
        1.846_318_317_510_054_681_8e-5,
        1.421_511_758_316_445_888_7e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_mpmath() {
        // mpmath 1.3 with 50 digits, at the doubles nearest to these p.
        for (p, z) in [
            (0.499_999, -2.506_628_274_566_559_377_9e-6),
            (0.49, -0.025_068_908_258_711_058_033),
            (0.4, -0.253_347_103_135_799_741_32),
            (0.25, -0.674_489_750_196_081_743_2),
            (0.1, -1.281_551_565_544_600_435_3),
            (0.075, -1.439_531_470_938_455_934_95),
            (0.05, -1.644_853_626_951_472_687_95),
            (0.025, -1.959_963_984_540_054_211_8),
            (0.01, -2.326_347_874_040_841_093_1),
            (1e-3, -3.090_232_306_167_813_535_4),
            (1e-5, -4.264_890_793_922_824_610_2),
            (1e-8, -5.612_001_244_174_788_727_9),
            (1.4e-11, -6.656_723_091_518_183_635_6),
            (1.3e-11, -6.667_611_456_510_740_834_7),
            (1e-12, -7.034_483_825_301_131_932_6),
            (1e-20, -9.262_340_089_798_407_579_6),
            (1e-100, -21.273_453_560_965_324_294),
            (1e-300, -37.047_096_299_361_199_237),
            (0.9, 1.281_551_565_544_600_593_5),
            (0.975, 1.959_963_984_540_053_855_6),
            (0.999, 3.090_232_306_167_813_277_8),
            // The first and the last cell of 2^-32.
            (0.5 / 4_294_967_296.0, -6.337_957_754_553_789_252_5),
            (1.0 - 0.5 / 4_294_967_296.0, 6.337_957_754_553_789_252_5),
        ] {
            let found: f64 = normal(p);
            assert!((found / z - 1.0).abs() < 1e-14, "{p}: {found}, not {z}");
        }
        assert_eq!(normal(0.5), 0.0);
    }

    #[test]
    fn the_density_between_two_quantiles_integrates_to_their_difference() {
        // Over all of the range, in steps that cross the seams of the three quotients.
        let density = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
        let mut p = 1e-13;
        while p < 0.49 {
            let next = 1.01 * p;
            let (a, b) = (normal(p), normal(next));
            let middle = density(0.5 * (a + b));
            let integral = (b - a) / 6.0 * (density(a) + 4.0 * middle + density(b));
            // Simpson's rule on intervals of 0.03 at most: 1e-9. A quantile of 7 that is off by its
            // rounding moves an integral of 1 % by 1e-12 of it.
            assert!((integral / (next - p) - 1.0).abs() < 1e-9, "{p}: {integral}");
            assert!(b > a);
            p = next;
        }
    }

    #[test]
    fn antisymmetric_around_one_half() {
        for k in 1..1024 {
            // Both p and 1 - p are doubles.
            let p = f64::from(k) / 1024.0;
            assert_eq!(normal(p), -normal(1.0 - p));
        }
    }
}
