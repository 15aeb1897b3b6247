//! Values of options that need more than a number: times, sizes, epsilon, separators.

use std::fmt;
use std::time::Duration;

use orthant::GroundCost;

/// A regularisation as it is given: an absolute number, or a part of the scale of the costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum EpsilonSpec {
    /// In units of the cost.
    Absolute(f64),
    /// As a part of the mean cost, or of the standard deviation of the cost: 0.05 for `5%` or `5%std`.
    Relative(f64, CostScale),
}

/// What a percentage is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostScale {
    Mean,
    /// The standard deviation.
    Deviation,
}

impl CostScale {
    /// How messages call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CostScale::Mean => "the mean cost",
            CostScale::Deviation => "the standard deviation of the cost",
        }
    }

    /// What follows the number on the command line.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            CostScale::Mean => "%",
            CostScale::Deviation => "%std",
        }
    }
}

/// `0.1`, `5%` of the mean cost, or `5%std` of the standard deviation of the cost.
pub(crate) fn epsilon(text: &str) -> Result<EpsilonSpec, String> {
    let text = text.trim();
    let (number, scale) = match text.split_once('%') {
        None => (text, None),
        Some((number, unit)) => {
            let scale = match unit.trim() {
                "" => CostScale::Mean,
                "std" => CostScale::Deviation,
                _ => {
                    return Err("a percentage is of the mean cost, such as 5%, or of the standard deviation of the cost, \
                                such as 5%std"
                        .to_owned());
                }
            };
            (number.trim(), Some(scale))
        }
    };
    let number: f64 = number.parse().map_err(|_| {
        "expected a number, or a part of the mean cost such as 5%, or of the standard deviation of the cost such as 5%std"
            .to_owned()
    })?;
    Ok(match scale {
        Some(scale) => EpsilonSpec::Relative(number / 100.0, scale),
        None => EpsilonSpec::Absolute(number),
    })
}

/// The cost of two points as it is given.
#[derive(Debug, Clone)]
pub(crate) enum CostSpec {
    Named(GroundCost),
    /// That of the matrix in a file.
    Mahalanobis(String),
}

impl fmt::Display for CostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostSpec::Named(GroundCost::Lp(p)) => write!(f, "lp:{p}"),
            CostSpec::Named(cost) => f.write_str(cost.as_str()),
            CostSpec::Mahalanobis(file) => write!(f, "mahalanobis:{file}"),
        }
    }
}

/// `cosine`, `lp:3` or `mahalanobis:matrix.csv`.
pub(crate) fn cost(text: &str) -> Result<CostSpec, String> {
    let all =
        "expected sqeuclidean, cosine, dot, mahalanobis:FILE, euclidean, l1, lp:P or geodesic";
    Ok(CostSpec::Named(match text.split_once(':') {
        None => match text {
            "sqeuclidean" => GroundCost::SquaredEuclidean,
            "cosine" => GroundCost::Cosine,
            "dot" => GroundCost::Dot,
            "euclidean" => GroundCost::Euclidean,
            "l1" => GroundCost::L1,
            "geodesic" => GroundCost::Geodesic,
            "lp" => return Err("lp needs its exponent, such as lp:3".to_owned()),
            "mahalanobis" => {
                return Err(
                    "mahalanobis needs the file of its matrix, such as mahalanobis:matrix.csv"
                        .to_owned(),
                );
            }
            _ => return Err(all.to_owned()),
        },
        Some(("lp", p)) => match p.parse() {
            Ok(p) if p >= 1.0 && f64::is_finite(p) => GroundCost::Lp(p),
            _ => {
                return Err(format!(
                    "the exponent of lp must be a number of at least 1, got {p:?}"
                ));
            }
        },
        Some(("mahalanobis", file)) if !file.is_empty() => {
            return Ok(CostSpec::Mahalanobis(file.to_owned()));
        }
        Some(_) => return Err(all.to_owned()),
    }))
}

/// The character between the fields of a table: itself, or a word for it.
pub(crate) fn separator(text: &str) -> Result<u8, String> {
    let byte = match text {
        "comma" => b',',
        "semicolon" => b';',
        "tab" | "\\t" => b'\t',
        "space" => b' ',
        "pipe" => b'|',
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() => *byte,
            _ => {
                return Err(
                    "expected one character, or comma, semicolon, tab, space or pipe".to_owned()
                );
            }
        },
    };
    if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'"' | b'\n' | b'\r') {
        return Err(format!("{text:?} stands inside of fields and cannot separate them"));
    }
    Ok(byte)
}

/// A time such as `30`, `1.5`, `500ms`, `30s`, `5m` or `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("the unit {unit:?} is not one of ms, s, m, h")),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| "expected a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number * scale)
        .map_err(|_| format!("{text} is not a time; give a positive number of seconds"))
}

/// A number of bytes such as `1000000`, `500M`, `1.5G`, `8GiB` or `500MB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_error =
        || format!("the unit {unit:?} is not one of B, K, M, G, T, KiB to TiB, KB to TB");
    let letters = unit.to_ascii_lowercase();
    // As for `sort` or `head`: a lone letter is a power of 1024, with a B one of 1000.
    let (prefix, base) = match letters.strip_suffix('b') {
        None => (letters.as_str(), 1024_f64),
        Some(prefix) => match prefix.strip_suffix('i') {
            Some("") => return Err(unit_error()),
            Some(prefix) => (prefix, 1024.0),
            None => (prefix, 1000.0),
        },
    };
    let power = match prefix {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(unit_error()),
    };
    let number: f64 = number
        .trim()
        .parse()
        .map_err(|_| "expected a number of bytes, such as 500M, 2G or 8GiB".to_owned())?;
    let bytes = number * base.powi(power);
    if !(1.0..=2f64.powi(63)).contains(&bytes) {
        return Err(format!("{text} is not a size; give at least one byte, and fewer than 2^63"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epsilons_are_absolute_or_parts_of_a_scale_of_the_costs() {
        assert_eq!(epsilon("0.1"), Ok(EpsilonSpec::Absolute(0.1)));
        assert_eq!(epsilon("1e-3"), Ok(EpsilonSpec::Absolute(1e-3)));
        assert_eq!(epsilon("5%"), Ok(EpsilonSpec::Relative(0.05, CostScale::Mean)));
        assert_eq!(epsilon("0.5 %"), Ok(EpsilonSpec::Relative(0.005, CostScale::Mean)));
        assert_eq!(epsilon("5%std"), Ok(EpsilonSpec::Relative(0.05, CostScale::Deviation)));
        assert_eq!(epsilon(" 20 % std"), Ok(EpsilonSpec::Relative(0.2, CostScale::Deviation)));
        // Whether it makes sense is for the settings to say.
        assert_eq!(epsilon("-1"), Ok(EpsilonSpec::Absolute(-1.0)));
        for bad in ["", "%", "x", "5%%", "%5", "1,5", "5%foo", "%std", "5std"] {
            assert!(epsilon(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn costs_are_words_with_what_they_need() {
        for text in ["sqeuclidean", "cosine", "dot", "euclidean", "l1", "lp:2.5", "geodesic"] {
            assert_eq!(cost(text).unwrap().to_string(), text);
        }
        assert!(
            matches!(cost("mahalanobis:a:b.csv"), Ok(CostSpec::Mahalanobis(f)) if f == "a:b.csv")
        );
        for bad in [
            "",
            "cos",
            "lp",
            "lp:",
            "lp:0.5",
            "lp:nan",
            "lp:inf",
            "mahalanobis",
            "mahalanobis:",
            "l1:2",
        ] {
            assert!(cost(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn separators_are_one_character() {
        for (text, byte) in [(",", b','), (";", b';'), ("|", b'|'), ("tab", b'\t'), ("\t", b'\t')] {
            assert_eq!(separator(text), Ok(byte));
        }
        for bad in ["", "ab", "1", ".", "-", "\"", "é", "e"] {
            assert!(separator(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, seconds) in
            [("30", 30.0), ("1.5", 1.5), ("500ms", 0.5), ("5m", 300.0), ("2h", 7200.0)]
        {
            assert_eq!(duration(text).unwrap().as_secs_f64(), seconds);
        }
        for bad in ["", "x", "-1", "3d", "nan", "1e400", "inf"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("1000000", 1_000_000),
            ("7B", 7),
            ("64k", 64 << 10),
            ("500M", 500 << 20),
            ("500MB", 500_000_000),
            ("1.5G", 3 << 29),
            ("2 G", 2 << 30),
            ("8GiB", 8 << 30),
            ("8gib", 8 << 30),
            ("2T", 2 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in
            ["", "G", "x", "0", "0.5", "-1G", "5X", "5iB", "5GiBs", "nan", "inf", "1e30", "9e9T"]
        {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
