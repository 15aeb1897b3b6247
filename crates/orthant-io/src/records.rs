//! The records of a table in text, with the lines they stand on.

use std::io::{self, BufRead, BufReader, Chain, Read};

use csv::{ByteRecord, Terminator};

use crate::budget::{Budget, Limited};
use crate::delimiter::Delimiter;

const BUFFER: usize = 1 << 16;

/// The memory that a byte of a record may take: it may be a field, of which the end is kept, and buffers double.
const COST: u64 = 20;

/// Yields records, passing over blank lines and comments.
///
/// A record, with all that is passed over before it, may not take more memory than there is for it.
pub(crate) struct Records<'a, R: Read> {
    source: Source<R>,
    budget: &'a Budget,
}

enum Source<R: Read> {
    /// Fields between single characters, with quotes.
    Delimited {
        reader: csv::Reader<Chain<Limited<R>, &'static [u8]>>,
        /// The lines can be counted: the file does not end them the way old Macs did.
        lines: bool,
    },
    /// Fields between any amount of white space.
    Spaced { reader: BufReader<Limited<R>>, end: u8, line: u64, buffer: Vec<u8> },
}

impl<'a, R: Read> Records<'a, R> {
    /// `carriage` says that lines end with a carriage return alone.
    pub(crate) fn new(reader: R, delimiter: Delimiter, carriage: bool, budget: &'a Budget) -> Self {
        let reader = budget.limit(reader);
        let end = if carriage { b'\r' } else { b'\n' };
        let source = match delimiter {
            Delimiter::Byte(delimiter) => Source::Delimited {
                reader: csv::ReaderBuilder::new()
                    .delimiter(delimiter)
                    .has_headers(false)
                    .flexible(true)
                    .comment(Some(b'#'))
                    // With the usual terminator a record before CRLF ends between the two
                    // characters, and the lines are miscounted. The return stays in the last
                    // field, where white space does no harm.
                    .terminator(Terminator::Any(end))
                    .buffer_capacity(BUFFER)
                    // The last line is counted like all others if it ends like them.
                    .from_reader(reader.chain(b"\n")),
                lines: !carriage,
            },
            Delimiter::Spaces => Source::Spaced {
                reader: BufReader::with_capacity(BUFFER, reader),
                end,
                line: 0,
                buffer: Vec::new(),
            },
        };
        Records { source, budget }
    }

    /// The line on which the record last read begins, counted from 1, if lines can be counted.
    pub(crate) fn line(&self, record: &ByteRecord) -> Option<u64> {
        match &self.source {
            // The position of the record itself is before the comments and blank lines above it,
            // so count back from where the reader stands now.
            Source::Delimited { reader, lines } => lines.then(|| {
                let inside = record.as_slice().split(|&b| b == b'\n').count() as u64;
                reader.position().line().saturating_sub(inside)
            }),
            Source::Spaced { line, .. } => Some(*line),
        }
    }

    /// Reads the next record; returns whether there is one.
    pub(crate) fn next(&mut self, record: &mut ByteRecord) -> io::Result<bool> {
        let left = (self.budget.left() / COST).saturating_add(2 * BUFFER as u64);
        match &mut self.source {
            Source::Delimited { reader, .. } => reader.get_mut().get_mut().0.restart(left),
            Source::Spaced { reader, .. } => reader.get_mut().restart(left),
        }
        match &mut self.source {
            Source::Delimited { reader, .. } => loop {
                match reader.read_byte_record(record) {
                    Ok(true) if is_blank(record) => {}
                    Ok(more) => return Ok(more),
                    Err(error) => {
                        return Err(match error.into_kind() {
                            csv::ErrorKind::Io(source) => source,
                            // Nothing else can go wrong with records of bytes of any length.
                            _ => io::ErrorKind::InvalidData.into(),
                        });
                    }
                }
            },
            Source::Spaced { reader, end, line, buffer } => loop {
                buffer.clear();
                if reader.read_until(*end, buffer)? == 0 {
                    return Ok(false);
                }
                *line += 1;
                if buffer.first() == Some(&b'#') {
                    continue;
                }
                record.clear();
                spaced(buffer, |field| record.push_field(field));
                if !record.is_empty() {
                    return Ok(true);
                }
            },
        }
    }
}

/// A line of nothing but white space; an empty field in quotes is a missing value instead.
fn is_blank(record: &ByteRecord) -> bool {
    record.len() == 1 && !record.as_slice().is_empty() && record.as_slice().trim_ascii().is_empty()
}

/// Splits at white space, except between double quotes.
pub(crate) fn spaced<'a>(line: &'a [u8], mut each: impl FnMut(&'a [u8])) {
    let mut rest = line.trim_ascii_start();
    while let Some(&first) = rest.first() {
        let closing = (first == b'"').then(|| rest[1..].iter().position(|&b| b == b'"')).flatten();
        let (field, after) = if let Some(length) = closing {
            (&rest[1..=length], &rest[length + 2..])
        } else {
            let end = rest.iter().position(u8::is_ascii_whitespace);
            rest.split_at(end.unwrap_or(rest.len()))
        };
        each(field);
        rest = after.trim_ascii_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(
        text: &str,
        delimiter: Delimiter,
        carriage: bool,
    ) -> Vec<(Option<u64>, Vec<String>)> {
        let budget = Budget::new("", None);
        let mut records = Records::new(text.as_bytes(), delimiter, carriage, &budget);
        let mut record = ByteRecord::new();
        let mut all = Vec::new();
        while records.next(&mut record).unwrap() {
            let line = records.line(&record);
            let fields =
                record.iter().map(|f| String::from_utf8_lossy(f.trim_ascii()).into_owned());
            all.push((line, fields.collect()));
        }
        all
    }

    #[test]
    fn lines_are_counted_past_comments_blanks_and_quotes() {
        for end in ["\n", "\r\n"] {
            let text = "# c|a,b||1,2|  |# d|\"3|\",\"4\"|5,6".replace('|', end);
            let found: Vec<_> = records(&text, Delimiter::Byte(b','), false);
            let lines: Vec<_> = found.iter().map(|(line, _)| line.unwrap()).collect();
            assert_eq!(lines, [2, 4, 7, 9], "{end:?}");
            assert_eq!(found[2].1, ["3", "4"]);
            assert_eq!(found[3].1, ["5", "6"]);
        }
    }

    #[test]
    fn old_mac_lines() {
        let found = records("a,b\r1,2\r", Delimiter::Byte(b','), true);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], (None, vec!["1".to_owned(), "2".to_owned()]));
    }

    #[test]
    fn white_space() {
        let found = records("# c\n\n  \"a b\"\t c\r\n1   2\n \n\"3", Delimiter::Spaces, false);
        assert_eq!(found[0], (Some(3), vec!["a b".to_owned(), "c".to_owned()]));
        assert_eq!(found[1], (Some(4), vec!["1".to_owned(), "2".to_owned()]));
        assert_eq!(found[2], (Some(6), vec!["\"3".to_owned()]));
    }
}
