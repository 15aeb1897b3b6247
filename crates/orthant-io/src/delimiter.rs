//! What separates the fields of a table in text.

use csv::ByteRecord;

use crate::number::Field;
use crate::records::Records;

/// A single character, or any amount of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Byte(u8),
    Spaces,
}

/// In the order of preference: `1, 2` is split at the comma although white space would do as well.
const CANDIDATES: [Delimiter; 4] =
    [Delimiter::Byte(b','), Delimiter::Byte(b'\t'), Delimiter::Byte(b';'), Delimiter::Spaces];

/// Finds the delimiter in the first bytes of a file.
///
/// It is the one that gives all lines the same number of fields, and if several do, the one that
/// gives the most numbers. If none does the table is ragged, and the one that gives the most
/// numbers makes the best message. One that splits nothing is not considered, as a ragged table
/// would otherwise pass for a single column with a strange name.
pub(crate) fn sniff(sample: &[u8], complete: bool, carriage: bool) -> Delimiter {
    let sample = if complete {
        sample
    } else {
        // The last line may be cut in the middle.
        let end = sample.iter().rposition(|&b| b == b'\n' || b == b'\r');
        &sample[..end.unwrap_or(sample.len())]
    };
    let mut best = (None, CANDIDATES[0]);
    for delimiter in CANDIDATES {
        let score = score(sample, delimiter, carriage);
        if score > best.0 {
            best = (score, delimiter);
        }
    }
    best.1
}

/// Whether the lines have equally many fields, and how many fields are numbers or missing.
fn score(sample: &[u8], delimiter: Delimiter, carriage: bool) -> Option<(bool, usize)> {
    const LINES: usize = 50;
    let mut records = Records::new(sample, delimiter, carriage);
    let mut record = ByteRecord::new();
    let mut lengths = Vec::new();
    let mut numbers = 0;
    while lengths.len() < LINES
        && let Ok(true) = records.next(&mut record)
    {
        lengths.push(record.len());
        numbers += record.iter().filter(|field| Field::parse(field) != Field::Text).count();
    }
    let splits = lengths.iter().any(|&n| n > 1);
    let even = lengths.windows(2).all(|pair| pair[0] == pair[1]);
    splits.then_some((even, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Delimiter {
        sniff(text.as_bytes(), true, false)
    }

    #[test]
    fn delimiters() {
        assert_eq!(found("1,2\n3,4\n"), Delimiter::Byte(b','));
        assert_eq!(found("1, 2\n3, 4\n"), Delimiter::Byte(b','));
        assert_eq!(found("a b\tc\n3\t4\n"), Delimiter::Byte(b'\t'));
        assert_eq!(found("x;y\n1,5;2,5\n"), Delimiter::Byte(b';'));
        assert_eq!(found("  1   2\n3 4\n"), Delimiter::Spaces);
        assert_eq!(found("\"a, b\";c\n1;2\n"), Delimiter::Byte(b';'));
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
        assert_eq!(sniff(text.as_bytes(), false, false), Delimiter::Byte(b';'));
    }
}
