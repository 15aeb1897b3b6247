//! What the first lines of a table in text say of it: whether they begin with a header, and what the columns hold.

use csv::ByteRecord;

use crate::error::one_line;
use crate::note::Note;
use crate::number::{Decimal, Field, has_other_mark};
use crate::options::Header;

/// What a column of a table in text holds, as far as its first rows tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers, some of which may be missing; or nothing so far.
    Numbers,
    /// No number among values that are there.
    Text,
}

/// The shape of a table.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The names of the columns, if the first line has them.
    pub(crate) names: Option<Vec<String>>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) note: Option<Note>,
}

impl Layout {
    /// Decides by the first records of a file, of which there is at least one.
    pub(crate) fn of(path: &str, records: &[ByteRecord], header: Header, decimal: Decimal) -> Self {
        let (first, rest) = records.split_first().expect("there is a first record");
        let guess = match header {
            Header::Yes => Guess::sure(true),
            Header::No => Guess::sure(false),
            Header::Auto => guess(first, rest, decimal),
        };
        let text = |field: &[u8]| String::from_utf8_lossy(field.trim_ascii()).into_owned();
        let rows = if guess.header { rest } else { records };
        let note = guess.doubt.then(|| Note::AmbiguousHeader {
            path: path.to_owned(),
            line: one_line(&first.iter().map(text).collect::<Vec<_>>().join(", ")),
            header: guess.header,
        });
        Layout {
            names: guess.header.then(|| first.iter().map(text).collect()),
            kinds: (0..first.len()).map(|i| kind(rows, i, decimal)).collect(),
            note,
        }
    }
}

/// Whether the first line is a header, and whether that is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Guess {
    header: bool,
    doubt: bool,
}

impl Guess {
    fn sure(header: bool) -> Self {
        Guess { header, doubt: false }
    }
}

fn fields(rows: &[ByteRecord], column: usize) -> impl Iterator<Item = &[u8]> {
    rows.iter().filter_map(move |row| row.get(column))
}

fn kind(rows: &[ByteRecord], column: usize, decimal: Decimal) -> Kind {
    let mut text = false;
    for field in fields(rows, column) {
        match Field::parse(field, decimal) {
            Field::Number(_) => return Kind::Numbers,
            Field::Text if is_number_with_other_mark(field, decimal) => return Kind::Numbers,
            Field::Text => text = true,
            Field::Missing => {}
        }
    }
    if text { Kind::Text } else { Kind::Numbers }
}

fn is_number_with_other_mark(field: &[u8], decimal: Decimal) -> bool {
    str::from_utf8(field).is_ok_and(|text| has_other_mark(text, decimal))
}

/// A header stands above numbers and is none, or counts the columns; all columns are looked at, whichever are wanted.
fn guess(first: &ByteRecord, rest: &[ByteRecord], decimal: Decimal) -> Guess {
    let is = |field: &[u8], wanted: Field| Field::parse(field, decimal) == wanted;
    let has_numbers = |i: usize| {
        fields(rest, i).any(|field| matches!(Field::parse(field, decimal), Field::Number(_)))
    };
    let numeric: Vec<usize> = (0..first.len()).filter(|&i| has_numbers(i)).collect();
    let words = |i: &usize| is(&first[*i], Field::Text);
    if numeric.iter().any(words) {
        return Guess::sure(true);
    }
    if numeric.is_empty() {
        // Words alone: a header if nothing follows, or if what follows is no numbers either.
        return Guess::sure((0..first.len()).any(|i| words(&i)));
    }
    // What stands above text says nothing.
    let Some(numbers) = whole_numbers(numeric.iter().map(|&i| &first[i])) else {
        return Guess::sure(false);
    };
    let count = numbers.len();
    let beside_text = count < first.len();
    let fractions = numeric.iter().all(|&i| has_fractions(rest, i, decimal));
    let counts_from = |start: i64| (start..).zip(&numbers).all(|(i, &n)| i == n);
    if counts_from(0) {
        // As pandas names the columns of an array. Of a single column it may well be the first number.
        return match (count, fractions) {
            (1, _) => Guess { header: fractions, doubt: true },
            (_, true) => Guess::sure(true),
            (_, false) => Guess { header: true, doubt: true },
        };
    }
    if count == 1 {
        return Guess::sure(false);
    }
    if counts_from(1) {
        return Guess { header: fractions, doubt: fractions || !beside_text };
    }
    // Years, wavelengths: evenly spaced above numbers that are not whole.
    let step = numbers[1].checked_sub(numbers[0]);
    let even = numbers.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == step);
    let sequence = step != Some(0) && even && count > 2;
    Guess { header: sequence && fractions, doubt: fractions && all_different(&numbers) }
}

/// The numbers in fields that hold nothing but whole numbers, written as such.
fn whole_numbers<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Option<Vec<i64>> {
    let whole = |field: &[u8]| str::from_utf8(field.trim_ascii()).ok()?.parse().ok();
    fields.map(whole).collect()
}

fn all_different(numbers: &[i64]) -> bool {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Whether a column has numbers that are not whole, or not written so.
fn has_fractions(rows: &[ByteRecord], column: usize, decimal: Decimal) -> bool {
    fields(rows, column).any(|field| {
        matches!(Field::parse(field, decimal), Field::Number(_))
            && str::from_utf8(field.trim_ascii()).is_ok_and(|text| text.parse::<i64>().is_err())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(text: &str) -> (bool, bool) {
        let records: Vec<ByteRecord> = text
            .lines()
            .map(|line| ByteRecord::from(line.split(',').collect::<Vec<_>>()))
            .collect();
        let found = guess(&records[0], &records[1..], Decimal::Point);
        (found.header, found.doubt)
    }

    #[test]
    fn headers() {
        for text in [
            "x,y\n1,2",
            "x,y\nNA,2",
            "x,1\n1,2",
            "city,x\noslo,1",
            "x",
            "x,y",
            "0,1\n0.5,1.5",
            "0,1,2\n0.5,1.5,1",
            "1,b\n5,1.5",
        ] {
            assert!(guessed(text).0, "{text}");
        }
        assert_eq!(guessed("0,1\n0.5,1.5"), (true, false));
    }

    #[test]
    fn rows() {
        for text in [
            "1,2\n3,4",
            "1,\n3,4",
            "oslo,1\nrome,2",
            "oslo,1\nrome,2.5",
            "oslo,1,2\nrome,3,4",
            "5",
            "0,1",
            "1.0,2.0\n0.5,0.5",
            "0.5,1.5\n1,2",
            "7\n0.5",
            "3,4\n5,6",
        ] {
            assert!(!guessed(text).0, "{text}");
        }
        assert_eq!(guessed("3,4\n5,6"), (false, false));
    }

    #[test]
    fn doubt_is_said() {
        // (first lines, whether it is taken for a header)
        for (text, header) in [
            ("0,1\n2,3", true),
            ("1,2\n3,4", false),
            ("1,2,3\n0.5,0.5,0.5", true),
            ("2019,2020,2021\n0.5,1.5,2.5", true),
            ("1,0\n0.5,0.866", false),
            ("city,2019,2020,2021\noslo,0.5,1.5,2.5", true),
            ("city,1,2\noslo,0.5,1.5", true),
            ("0\n0.5", true),
            ("0\n1\n2", false),
        ] {
            assert_eq!(guessed(text), (header, true), "{text}");
        }
    }
}
