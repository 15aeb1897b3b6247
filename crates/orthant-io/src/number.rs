//! Numbers and missing values in text.

use std::borrow::Cow;

/// What a field of a table in text holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Field {
    /// A number; infinite if the text says so or if the number is too large.
    Number(f64),
    Missing,
    Text,
}

/// What stands before the decimals of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decimal {
    Point,
    Comma,
}

/// How missing values are written, in any case. `nan` is a number to Rust and needs no entry.
const MARKERS: [&str; 7] = ["", "na", "n/a", "<na>", "null", "none", "?"];

impl Field {
    pub(crate) fn parse(bytes: &[u8], decimal: Decimal) -> Field {
        let Ok(text) = str::from_utf8(bytes.trim_ascii()) else {
            return Field::Text;
        };
        let number = match decimal {
            Decimal::Point => text.parse::<f64>().ok(),
            Decimal::Comma => with_point(text).and_then(|text| text.parse().ok()),
        };
        match number {
            Some(number) if number.is_nan() => Field::Missing,
            Some(number) => Field::Number(number),
            None if MARKERS.iter().any(|m| m.eq_ignore_ascii_case(text)) => Field::Missing,
            None => Field::Text,
        }
    }
}

/// A number with a decimal comma as Rust writes it; one with a point is no such number, as that may separate thousands.
fn with_point(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('.') {
        return None;
    }
    match text.split_once(',') {
        Some((_, rest)) if rest.contains(',') => None,
        Some((whole, rest)) => Some(Cow::Owned(format!("{whole}.{rest}"))),
        None => Some(Cow::Borrowed(text)),
    }
}

/// Whether text is a number if its other decimal mark is the right one.
pub(crate) fn has_other_mark(text: &str, decimal: Decimal) -> bool {
    let other = match decimal {
        Decimal::Point => Decimal::Comma,
        Decimal::Comma => Decimal::Point,
    };
    matches!(Field::parse(text.as_bytes(), other), Field::Number(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        let parse = |bytes: &[u8]| Field::parse(bytes, Decimal::Point);
        assert_eq!(parse(b" 1.5e3\r"), Field::Number(1500.0));
        assert_eq!(parse(b"+.5"), Field::Number(0.5));
        assert_eq!(parse(b"1e999"), Field::Number(f64::INFINITY));
        assert_eq!(parse(b"-Inf"), Field::Number(f64::NEG_INFINITY));
        for missing in ["", "  ", "NA", "n/a", "NaN", "-nan", "NULL", "None", "?", "<NA>"] {
            assert_eq!(parse(missing.as_bytes()), Field::Missing, "{missing}");
        }
        for text in ["x", "1,5", "1 2", "0x10", "1_000", "\u{ff11}"] {
            assert_eq!(parse(text.as_bytes()), Field::Text, "{text}");
        }
        assert_eq!(parse(b"\xff"), Field::Text);
    }

    #[test]
    fn decimals_after_a_comma() {
        let parse = |bytes: &[u8]| Field::parse(bytes, Decimal::Comma);
        assert_eq!(parse(b"-1,5e3"), Field::Number(-1500.0));
        assert_eq!(parse(b"7"), Field::Number(7.0));
        assert_eq!(parse(b"NA"), Field::Missing);
        for text in ["1.5", "1.234,5", "1,2,3", "x"] {
            assert_eq!(parse(text.as_bytes()), Field::Text, "{text}");
        }
        assert!(has_other_mark("1.5", Decimal::Comma) && has_other_mark("1,5", Decimal::Point));
        assert!(
            !has_other_mark("a,5", Decimal::Point) && !has_other_mark("1,234,567", Decimal::Point)
        );
    }
}
