//! The format of a file, by its name and by its first bytes.

use crate::error::Error;

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A table in text; the delimiter is a tab if the extension says so, and found otherwise.
    Text {
        tabs: bool,
    },
    Npy,
    Npz,
    Parquet,
    Ply,
}

pub(crate) const GZIP: &[u8] = b"\x1f\x8b";
pub(crate) const NPY: &[u8] = b"\x93NUMPY";
const ZIP: &[u8] = b"PK\x03\x04";
const EMPTY_ZIP: &[u8] = b"PK\x05\x06";
const PARQUET: &[u8] = b"PAR1";

/// The beginnings of files that are often mistaken for data.
const FOREIGN: [(&[u8], &str); 9] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard"),
    (b"BZh", "compressed with bzip2"),
    (b"\xff\xfe", "text in UTF-16; save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16; save it as UTF-8"),
];

impl Format {
    /// The format that an extension stands for, and whether the name ends in `.gz`.
    pub(crate) fn of_name(name: &str) -> (Option<Format>, bool) {
        let name = name.to_ascii_lowercase();
        let (name, gzip) = match name.strip_suffix(".gz") {
            Some(inner) => (inner, true),
            None => (name.as_str(), false),
        };
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let format = match file.rsplit_once('.').map(|(_, extension)| extension) {
            Some("csv" | "txt" | "dat") => Some(Format::Text { tabs: false }),
            Some("tsv") => Some(Format::Text { tabs: true }),
            Some("npy") => Some(Format::Npy),
            Some("npz") => Some(Format::Npz),
            Some("parquet" | "pq") => Some(Format::Parquet),
            Some("ply") => Some(Format::Ply),
            _ => None,
        };
        (format, gzip)
    }

    /// The format of some content; what is not recognised is text.
    pub(crate) fn of_content(head: &[u8]) -> Format {
        binary_format(head).unwrap_or(Format::Text { tabs: false })
    }

    /// Refuses content that is plainly of another format.
    pub(crate) fn check(self, path: &str, head: &[u8]) -> Result<(), Error> {
        let magics: &[&[u8]] = match self {
            Format::Text { .. } if looks_like_text(head) => return Ok(()),
            Format::Text { .. } => &[],
            Format::Npy => &[NPY],
            Format::Npz => &[ZIP, EMPTY_ZIP],
            Format::Parquet => &[PARQUET],
            Format::Ply => &[b"ply\n", b"ply\r", b"ply "],
        };
        if magics.iter().any(|magic| head.starts_with(magic)) {
            return Ok(());
        }
        if magics.iter().any(|magic| magic.starts_with(head)) {
            return Err(Error::Truncated {
                path: path.to_owned(),
                detail: "it ends in its first few bytes".to_owned(),
            });
        }
        Err(Error::Foreign {
            path: path.to_owned(),
            expected: self.describe().to_owned(),
            found: describe(head).to_owned(),
        })
    }

    fn describe(self) -> &'static str {
        match self {
            Format::Text { .. } => "a table in text",
            Format::Npy => "a NumPy array",
            Format::Npz => "an archive of NumPy arrays",
            Format::Parquet => "a Parquet file",
            Format::Ply => "a PLY file",
        }
    }
}

/// The format, if the content is certainly not a table in text.
fn binary_format(head: &[u8]) -> Option<Format> {
    if head.starts_with(NPY) {
        Some(Format::Npy)
    } else if head.starts_with(ZIP) || head.starts_with(EMPTY_ZIP) {
        Some(Format::Npz)
    } else if head.starts_with(PARQUET) && is_binary(head) {
        // A header of a table in text may well begin with PAR1.
        Some(Format::Parquet)
    } else if is_ply(head) {
        Some(Format::Ply)
    } else {
        None
    }
}

/// A column of a table may be named `ply`, so there must be more of a header.
fn is_ply(head: &[u8]) -> bool {
    let first = head.starts_with(b"ply\n") || head.starts_with(b"ply\r\n");
    first && head.windows(8).any(|line| line == b"\nformat ")
}

/// What the content is, in words.
pub(crate) fn describe(head: &[u8]) -> &'static str {
    let known = FOREIGN.iter().find(|(magic, _)| head.starts_with(magic));
    match (binary_format(head), known) {
        (Some(Format::Npz), _) => "a zip archive",
        (Some(format), _) => format.describe(),
        (None, Some((_, name))) => name,
        (None, None) if head.starts_with(GZIP) => "compressed with gzip",
        (None, None) if is_markup(head) => "an HTML or XML page",
        (None, None) if is_binary(head) => "binary data",
        (None, None) => "text",
    }
}

fn looks_like_text(head: &[u8]) -> bool {
    describe(head) == "text"
}

/// No table begins with an angle bracket.
fn is_markup(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let tag = head.trim_ascii_start();
    tag.starts_with(b"<!") || tag.starts_with(b"<?") || tag.starts_with(b"<html")
}

/// Text has no zero bytes, and next to no control characters but those that move the cursor.
fn is_binary(head: &[u8]) -> bool {
    let head = &head[..head.len().min(8192)];
    let control = |&&b: &&u8| b < b' ' && !(9..=13).contains(&b);
    head.contains(&0) || head.iter().filter(control).count() * 50 > head.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions() {
        let text = Some(Format::Text { tabs: false });
        assert_eq!(Format::of_name("a/b.CSV"), (text, false));
        assert_eq!(Format::of_name("b.txt.gz"), (text, true));
        assert_eq!(Format::of_name("b.tsv").0, Some(Format::Text { tabs: true }));
        assert_eq!(Format::of_name("b.pq").0, Some(Format::Parquet));
        assert_eq!(Format::of_name("a.csv/b"), (None, false));
        assert_eq!(Format::of_name("csv"), (None, false));
        assert_eq!(Format::of_name("-"), (None, false));
    }

    #[test]
    fn a_header_that_begins_like_parquet_is_text() {
        assert_eq!(Format::of_content(b"PAR1,PAR2\n1,2\n"), Format::Text { tabs: false });
        assert_eq!(Format::of_content(b"PAR1\x15\x04\x15\0"), Format::Parquet);
    }

    #[test]
    fn a_column_named_ply_is_text() {
        let text = Format::Text { tabs: false };
        assert_eq!(Format::of_content(b"ply\n1\n2\n"), text);
        let header = b"ply\r\ncomment c\r\nformat ascii 1.0\r\n";
        assert_eq!(Format::of_content(header), Format::Ply);
    }
}
