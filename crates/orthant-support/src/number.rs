//! Numbers as people read them.

/// A number with about six significant digits.
pub fn number(x: f64) -> String {
    significant(x, 6, 1e-3..1e6, 5)
}

/// A number with about five significant digits, where there is little room.
pub fn brief(x: f64) -> String {
    significant(x, 5, 1e-3..1e5, 3)
}

/// A number with so many significant digits: plain where its size is within `plain`, and elsewhere as a power of ten with
/// so many `decimals`.
fn significant(x: f64, digits: i32, plain: std::ops::Range<f64>, decimals: usize) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    if !plain.contains(&x.abs()) {
        return format!("{x:.decimals$e}");
    }
    let decimals = decimals_of(x, digits);
    format!("{x:.decimals$}")
}

/// Decimals of a number that is not zero, if it is to have so many significant digits.
fn decimals_of(x: f64, digits: i32) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a float")]
    let power = x.abs().log10().floor() as i32;
    usize::try_from(digits - 1 - power).unwrap_or(0)
}

/// A number with so many significant digits at most, without zeros that say nothing.
pub fn digits(x: f64, digits: usize) -> String {
    let most = i32::try_from(digits).unwrap_or(i32::MAX);
    if x == 0.0 || (1e-4..1e6).contains(&x.abs()) {
        trimmed(&significant(x, most, 1e-4..1e6, 0))
    } else {
        format!("{x:.*e}", digits.saturating_sub(2))
    }
}

/// A number with three digits.
pub fn short(x: f64) -> String {
    digits(x, 3)
}

/// A probability: a fraction of two counts, without zeros at its end.
pub fn probability(x: f64) -> String {
    trimmed(&number(x))
}

/// A number without zeros at the end of its decimals.
fn trimmed(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').map_or((text, None), |(d, e)| (d, Some(e)));
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    exponent.map_or_else(|| digits.to_owned(), |exponent| format!("{digits}e{exponent}"))
}

/// The order of magnitude of an error, with this many decimals.
pub fn rough(x: f64, decimals: usize) -> String {
    if x == 0.0 { "0".to_owned() } else { format!("{x:.decimals$e}") }
}

/// A count with commas between thousands.
pub fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A count and its noun: `1 row`, `2,000 rows`.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// The time that a command took.
pub fn seconds(s: f64) -> String {
    if s < 0.0995 { format!("{:.0} ms", s * 1e3) } else { format!("{s:.2} s") }
}

/// A time of any length, from microseconds to hours.
pub fn duration(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{} us", short(1e6 * seconds))
    } else if seconds < 1.0 {
        format!("{} ms", short(1e3 * seconds))
    } else if seconds < 120.0 {
        format!("{} s", short(seconds))
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_counts_have_commas() {
        for (x, text) in [
            (0.0, "0"),
            (2.265_012_3, "2.26501"),
            (-0.012_345_678, "-0.0123457"),
            (1e-3, "0.00100000"),
            (123_456.7, "123457"),
            (1.5e-7, "1.50000e-7"),
            (2e9, "2.00000e9"),
        ] {
            assert_eq!(number(x), text);
        }
        for (x, text) in [
            (0.0, "0"),
            (1.234_567, "1.2346"),
            (-0.012_345_6, "-0.012346"),
            (12_345.6, "12346"),
            (2e-7, "2.000e-7"),
        ] {
            assert_eq!(brief(x), text);
        }
        for (x, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (100.0, "100"),
            (1234.5, "1234"),
            (0.01234, "0.0123"),
            (1e-4, "0.0001"),
            (1e-5, "1.0e-5"),
            (1e6, "1.0e6"),
            (-2.0, "-2"),
        ] {
            assert_eq!(short(x), text);
        }
        assert_eq!((rough(0.0, 1), rough(2.44e-4, 1)), ("0".to_owned(), "2.4e-4".to_owned()));
        for (n, text) in [(7, "7"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), text);
        }
        assert_eq!(
            (counted(1, "row"), counted(2, "row")),
            ("1 row".to_owned(), "2 rows".to_owned())
        );
        assert_eq!([duration(3e-5), duration(0.25)], ["30 us", "250 ms"]);
        assert_eq!([duration(90.0), duration(600.0)], ["90 s", "10 min"]);
    }

    #[test]
    fn probabilities_have_no_zeros_at_their_end() {
        let shown = [0.005, 1.0, 1.0 / 3.0, 1e-5, 0.04, 0.0].map(probability);
        assert_eq!(shown, ["0.005", "1", "0.333333", "1e-5", "0.04", "0"]);
    }
}
