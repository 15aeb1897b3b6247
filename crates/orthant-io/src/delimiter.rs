//! What separates the fields of a table in text.

use csv::ByteRecord;

use crate::budget::Budget;
use crate::error::{Error, quote};
use crate::number::{Decimal, Field};
use crate::records::Records;
use crate::text::Sample;

/// A single character, or any amount of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Byte(u8),
    Spaces,
}

/// In the order of preference: `1, 2` is split at the comma although white space would do as well.
const CANDIDATES: [Delimiter; 5] = [
    Delimiter::Byte(b','),
    Delimiter::Byte(b'\t'),
    Delimiter::Byte(b';'),
    Delimiter::Byte(b'|'),
    Delimiter::Spaces,
];

impl Delimiter {
    /// The one that was asked for.
    pub(crate) fn chosen(path: &str, byte: u8, decimal: Decimal) -> Result<Self, Error> {
        let unfit = |why: &str| Error::Unsupported {
            path: path.to_owned(),
            what: format!("the separator {}", quote(&char::from(byte).to_string())),
            remedy: format!("{why}; give --separator another character"),
        };
        match byte {
            b' ' => Ok(Delimiter::Spaces),
            b',' if decimal == Decimal::Comma => Err(unfit("it stands before decimals")),
            b'\t' => Ok(Delimiter::Byte(byte)),
            b'"' | b'#' | b'.' | b'+' | b'-' => Err(unfit("it means something else in tables")),
            byte if byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() => {
                Ok(Delimiter::Byte(byte))
            }
            _ => Err(unfit("fields are separated by a punctuation mark, a tab or blanks")),
        }
    }

    /// Finds the delimiter in the first bytes of a file.
    ///
    /// It is the one that gives all lines the same number of fields, and if several do, the one that
    /// gives the most numbers. If none does the table is ragged, and the one that gives the most
    /// numbers makes the best message. One that splits nothing is not considered, as a ragged table
    /// would otherwise pass for a single column with a strange name.
    pub(crate) fn sniff(sample: &Sample<'_>, carriage: bool, decimal: Decimal) -> Self {
        let bytes = if sample.complete {
            sample.bytes
        } else {
            // The last line may be cut in the middle.
            let end = sample.bytes.iter().rposition(|&b| b == b'\n' || b == b'\r');
            &sample.bytes[..end.unwrap_or(sample.bytes.len())]
        };
        let candidates =
            CANDIDATES.iter().filter(|&&d| decimal == Decimal::Point || d != Delimiter::Byte(b','));
        let mut best = (None, CANDIDATES[usize::from(decimal == Decimal::Comma)]);
        for &delimiter in candidates {
            let score = score(bytes, delimiter, carriage, decimal);
            if score > best.0 {
                best = (score, delimiter);
            }
        }
        best.1
    }
}

/// Whether the lines have equally many fields, and how many fields are numbers or missing.
fn score(
    sample: &[u8],
    delimiter: Delimiter,
    carriage: bool,
    decimal: Decimal,
) -> Option<(bool, usize)> {
    const LINES: usize = 50;
    let budget = Budget::new("", None);
    let mut records = Records::new(sample, delimiter, carriage, &budget);
    let mut record = ByteRecord::new();
    let mut lengths = Vec::new();
    let mut numbers = 0;
    while lengths.len() < LINES
        && let Ok(true) = records.next(&mut record)
    {
        lengths.push(record.len());
        numbers += record.iter().filter(|f| Field::parse(f, decimal) != Field::Text).count();
    }
    let splits = lengths.iter().any(|&n| n > 1);
    let even = lengths.windows(2).all(|pair| pair[0] == pair[1]);
    splits.then_some((even, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Delimiter {
        let sample = Sample { bytes: text.as_bytes(), complete: true };
        Delimiter::sniff(&sample, false, Decimal::Point)
    }

    #[test]
    fn delimiters() {
        assert_eq!(found("1,2\n3,4\n"), Delimiter::Byte(b','));
        assert_eq!(found("1, 2\n3, 4\n"), Delimiter::Byte(b','));
        assert_eq!(found("a b\tc\n3\t4\n"), Delimiter::Byte(b'\t'));
        assert_eq!(found("x;y\n1,5;2,5\n"), Delimiter::Byte(b';'));
        assert_eq!(found("  1   2\n3 4\n"), Delimiter::Spaces);
        assert_eq!(found("\"a, b\";c\n1;2\n"), Delimiter::Byte(b';'));
        assert_eq!(found("a|b c\n1|2\n"), Delimiter::Byte(b'|'));
    }

    #[test]
    fn a_comma_before_decimals_separates_nothing() {
        let found = |text: &str| {
            let sample = Sample { bytes: text.as_bytes(), complete: true };
            Delimiter::sniff(&sample, false, Decimal::Comma)
        };
        assert_eq!(found("1,5 2,5\n3,5 4,5\n"), Delimiter::Spaces);
        assert_eq!(found("1,5;2\n3,5;4\n"), Delimiter::Byte(b';'));
        assert_eq!(found("1,5\n3,5\n"), Delimiter::Byte(b'\t'));
    }

    #[test]
    fn separators_that_cannot_be() {
        for byte in b"\"#.+-a0\n\r\0\x80" {
            assert!(Delimiter::chosen("a.csv", *byte, Decimal::Point).is_err(), "{byte}");
        }
        assert!(Delimiter::chosen("a.csv", b',', Decimal::Comma).is_err());
        for byte in b",;|:\t/&^~!" {
            let chosen = Delimiter::chosen("a.csv", *byte, Decimal::Point).unwrap();
            assert_eq!(chosen, Delimiter::Byte(*byte));
        }
    }

    #[test]
    fn ragged_tables_keep_their_delimiter() {
        assert_eq!(found("1,2\n3\n"), Delimiter::Byte(b','));
        assert_eq!(found("1 2\n3\n"), Delimiter::Spaces);
    }

    #[test]
    fn a_single_column() {
        assert_eq!(found("x\n1\n2"), Delimiter::Byte(b','));
    }

    #[test]
    fn a_cut_line_is_not_counted() {
        let text = "1;2;3\n4;5;6\n7;8";
        let sample = Sample { bytes: text.as_bytes(), complete: false };
        assert_eq!(Delimiter::sniff(&sample, false, Decimal::Point), Delimiter::Byte(b';'));
    }
}
