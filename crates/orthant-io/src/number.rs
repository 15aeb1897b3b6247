//! Numbers and missing values in text.

/// What a field of a table in text holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Field {
    /// A number; infinite if the text says so or if the number is too large.
    Number(f64),
    Missing,
    Text,
}

/// How missing values are written, in any case. `nan` is a number to Rust and needs no entry.
const MARKERS: [&str; 7] = ["", "na", "n/a", "<na>", "null", "none", "?"];

impl Field {
    pub(crate) fn parse(bytes: &[u8]) -> Field {
        let Ok(text) = str::from_utf8(bytes.trim_ascii()) else {
            return Field::Text;
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_nan() => Field::Missing,
            Ok(number) => Field::Number(number),
            Err(_) if MARKERS.iter().any(|m| m.eq_ignore_ascii_case(text)) => Field::Missing,
            Err(_) => Field::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        assert_eq!(Field::parse(b" 1.5e3\r"), Field::Number(1500.0));
        assert_eq!(Field::parse(b"+.5"), Field::Number(0.5));
        assert_eq!(Field::parse(b"1e999"), Field::Number(f64::INFINITY));
        assert_eq!(Field::parse(b"-Inf"), Field::Number(f64::NEG_INFINITY));
        for missing in ["", "  ", "NA", "n/a", "NaN", "-nan", "NULL", "None", "?", "<NA>"] {
            assert_eq!(Field::parse(missing.as_bytes()), Field::Missing, "{missing}");
        }
        for text in ["x", "1,5", "1 2", "0x10", "1_000", "\u{ff11}"] {
            assert_eq!(Field::parse(text.as_bytes()), Field::Text, "{text}");
        }
        assert_eq!(Field::parse(b"\xff"), Field::Text);
    }
}
