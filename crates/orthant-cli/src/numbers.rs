//! Numbers with their intervals: only the digits that are known.

use orthant_support::number::number;

use crate::json::Ends;

/// Digits of a value that are shown at most.
const MOST_DIGITS: i32 = 7;

/// A value with its interval, `2.2650 in [2.2648, 2.2653]`: two digits of the width of the interval, and its ends
/// rounded outward, so that what is printed holds. Without an interval, the value as it is.
pub(crate) fn with_interval(value: f64, interval: Option<Ends>) -> String {
    let Some(Ends { low, high, .. }) = interval else { return number(value) };
    let digits = Digits::of(value, low, high);
    let [value, low, high] = digits.show(value, low, high);
    format!("{value} in [{low}, {high}]")
}

/// A value with the digits that its interval leaves certain.
pub(crate) fn known(value: f64, interval: Option<Ends>) -> String {
    let Some(Ends { low, high, .. }) = interval else { return number(value) };
    let [value, ..] = Digits::of(value, low, high).show(value, low, high);
    value
}

/// A number that is as uncertain as something that has this interval.
pub(crate) fn as_known_as(x: f64, interval: Option<Ends>) -> String {
    let half = interval.map(|i| 0.5 * (i.high - i.low));
    let ends = half.map(|half| Ends { low: x - half, high: x + half, kind: "bound" });
    let [six, known] = [number(x), known(x, ends)];
    // What is beside the point is not shown with more digits than anything else.
    if known.len() < six.len() { known } else { six }
}

/// Where digits end, and how numbers are written.
struct Digits {
    /// The last digit stands for this power of ten.
    last: i32,
    /// The power of ten in front of which numbers are written, or none: plain decimals.
    exponent: Option<i32>,
}

impl Digits {
    fn of(value: f64, low: f64, high: f64) -> Self {
        let size = value.abs().max(low.abs()).max(high.abs());
        if size == 0.0 {
            return Digits { last: 0, exponent: None };
        }
        #[expect(clippy::cast_possible_truncation, reason = "exponents of floats")]
        let exponent_of = |x: f64| x.log10().floor() as i32;
        let first = exponent_of(size);
        let width = high - low;
        let last = if width > 0.0 && width.is_finite() {
            (exponent_of(width) - 1).clamp(first - MOST_DIGITS + 1, first)
        } else {
            first - MOST_DIGITS + 1
        };
        let plain = (1e-3..1e6).contains(&size) && last <= 0;
        Digits { last, exponent: (!plain).then_some(first) }
    }

    /// The value rounded, the ends rounded outward.
    fn show(&self, value: f64, low: f64, high: f64) -> [String; 3] {
        let shift = self.exponent.unwrap_or(0);
        #[expect(clippy::cast_sign_loss, reason = "not negative")]
        let decimals = (shift - self.last).max(0) as usize;
        let unit = 10_f64.powi(shift - self.last);
        let text = |x: f64, round: fn(f64) -> f64| {
            // Where a power of ten leaves the range of floats, another way of writing must do.
            let mantissa = if shift < -300 {
                x * 1e300 / 10_f64.powi(shift + 300)
            } else {
                x / 10_f64.powi(shift)
            };
            let scaled = mantissa * unit;
            // What is a whole number but for rounding is one.
            let near = scaled.round();
            let whole = if (scaled - near).abs() <= 1e-14 * near.abs().max(1.0) {
                near
            } else {
                round(scaled)
            };
            let rounded = whole / unit + 0.0;
            match self.exponent {
                None => format!("{rounded:.decimals$}"),
                Some(exponent) => format!("{rounded:.decimals$}e{exponent}"),
            }
        };
        [text(value, f64::round), text(low, f64::floor), text(high, f64::ceil)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(value: f64, low: f64, high: f64) -> String {
        with_interval(value, Some(Ends { low, high, kind: "bound" }))
    }

    #[test]
    fn intervals_show_what_is_known() {
        assert_eq!(interval(2.265_012, 2.264_83, 2.265_29), "2.26501 in [2.26483, 2.26529]");
        assert_eq!(interval(-1.7741, -1.7934, -1.7491), "-1.774 in [-1.794, -1.749]");
        assert_eq!(interval(0.4, -2.21, 2.64), "0.4 in [-2.3, 2.7]");
        assert_eq!(interval(1.0, 1.0, 1.0), "1.000000 in [1.000000, 1.000000]");
        assert_eq!(interval(0.0, 0.0, 0.0), "0 in [0, 0]");
        assert_eq!(interval(-8.9e284, -9.1e284, -8.8e284), "-8.90e284 in [-9.10e284, -8.80e284]");
        assert_eq!(interval(3.2e-7, 3.1e-7, 3.4e-7), "3.20e-7 in [3.10e-7, 3.40e-7]");
        assert_eq!(interval(123_456.0, 120_000.0, 130_000.0), "1.23e5 in [1.20e5, 1.30e5]");
        assert_eq!(
            known(2.265_012, Some(Ends { low: 2.264, high: 2.266, kind: "bound" })),
            "2.2650"
        );
        assert_eq!(as_known_as(5.0, Some(Ends { low: 1.0, high: 1.1, kind: "bound" })), "5.000");
        assert_eq!(as_known_as(5.0, None), "5.00000");
    }

    #[test]
    fn what_is_printed_contains_the_value_and_the_interval() {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..20_000 {
            let value = (random() - 0.5) * 10_f64.powf(600.0 * random() - 300.0);
            let width = value.abs() * 10_f64.powf(18.0 * random() - 16.0);
            let share = random();
            let (low, high) = (value - share * width, value + (1.0 - share) * width);
            let text = interval(value, low, high);
            let numbers: Vec<f64> =
                text.split(['[', ']', ',', ' ']).filter_map(|word| word.parse().ok()).collect();
            let [shown, left, right] = numbers[..] else { panic!("{text}") };
            let slack = 1e-14 * value.abs().max(low.abs()).max(high.abs());
            assert!(left <= shown && shown <= right, "{value} {low} {high}: {text}");
            assert!(left <= low + slack && high <= right + slack, "{value} {low} {high}: {text}");
        }
    }
}
