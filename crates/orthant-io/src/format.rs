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
    Arrow,
    Hdf5 {
        /// The file is an annotated matrix: see `AnnData`.
        annotated: bool,
    },
}

pub(crate) const GZIP: &[u8] = b"\x1f\x8b";
pub(crate) const NPY: &[u8] = b"\x93NUMPY";
const ZIP: &[u8] = b"PK\x03\x04";
const EMPTY_ZIP: &[u8] = b"PK\x05\x06";
const PARQUET: &[u8] = b"PAR1";
pub(crate) const ARROW: &[u8] = b"ARROW1";
/// What a message of an Arrow stream begins with.
pub(crate) const ARROW_MESSAGE: &[u8] = b"\xff\xff\xff\xff";
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The beginnings of files that are often mistaken for data.
const FOREIGN: [(&[u8], &str); 6] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"\xff\xfe", "text in UTF-16; save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16; save it as UTF-8"),
];

/// A format that is known and not read: the endings of its names, its first bytes, what it is and what to do.
struct Refused {
    extensions: &'static [&'static str],
    magic: &'static [&'static [u8]],
    what: &'static str,
    remedy: &'static str,
}

const REFUSED: [Refused; 12] = [
    Refused {
        extensions: &["bz2", "tbz2"],
        magic: &[b"BZh1", b"BZh2", b"BZh3", b"BZh4", b"BZh5", b"BZh6", b"BZh7", b"BZh8", b"BZh9"],
        what: "a file compressed with bzip2",
        remedy: "unpack it with bunzip2, or compress it with gzip",
    },
    Refused {
        extensions: &["xz", "lzma", "txz"],
        magic: &[b"\xfd7zXZ\0"],
        what: "a file compressed with xz",
        remedy: "unpack it with unxz, or compress it with gzip",
    },
    Refused {
        extensions: &["zst"],
        magic: &[b"\x28\xb5\x2f\xfd"],
        what: "a file compressed with Zstandard",
        remedy: "unpack it with unzstd, or compress it with gzip",
    },
    Refused {
        extensions: &["7z", "rar", "tar", "tgz"],
        magic: &[b"7z\xbc\xaf\x27\x1c", b"Rar!"],
        what: "an archive of files",
        remedy: "unpack it and give the file inside",
    },
    Refused {
        extensions: &["jsonl", "ndjson"],
        magic: &[],
        what: "JSON Lines",
        remedy: "write the points as CSV, for example with pandas.read_json(..., lines=True).to_csv(..., index=False)",
    },
    Refused {
        extensions: &["json"],
        magic: &[],
        what: "JSON",
        remedy: "write the points as CSV, for example with pandas.read_json(...).to_csv(..., index=False)",
    },
    Refused {
        extensions: &["xlsx", "xls", "xlsm", "xlsb", "ods"],
        magic: &[b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"],
        what: "a spreadsheet",
        remedy: "save the sheet as CSV",
    },
    Refused {
        extensions: &["rds", "rda", "rdata"],
        magic: &[b"RDX2\n", b"RDX3\n", b"X\n\0\0\0\x02", b"X\n\0\0\0\x03"],
        what: "a file of R objects",
        remedy: "write the table as CSV with write.csv(..., row.names = FALSE)",
    },
    Refused {
        extensions: &["pkl", "pickle", "pt", "pth", "joblib"],
        magic: &[b"\x80\x02}", b"\x80\x03c", b"\x80\x03}", b"\x80\x04\x95", b"\x80\x05\x95"],
        what: "a pickle, which runs code when it is read,",
        remedy: "save the array with numpy.save",
    },
    Refused {
        extensions: &["mat"],
        magic: &[b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"],
        what: "a MATLAB file",
        remedy: "write the matrix as CSV with writematrix, or convert it with scipy.io.loadmat and numpy.save",
    },
    Refused {
        extensions: &["db", "sqlite", "sqlite3", "duckdb"],
        magic: &[b"SQLite format 3\0"],
        what: "a database",
        remedy: "export the table as CSV or Parquet",
    },
    Refused {
        extensions: &[],
        magic: &[b"FEA1"],
        what: "version 1 of Feather",
        remedy: "write it anew with pyarrow.feather.write_feather",
    },
];

/// What a file is, and what to do instead, if its name or its content is of a format that is not read.
pub(crate) fn refused(name: &str, head: &[u8]) -> Option<(&'static str, &'static str)> {
    let extension = extension(&name.to_ascii_lowercase()).map(ToOwned::to_owned);
    let by_name = |r: &&Refused| extension.as_deref().is_some_and(|e| r.extensions.contains(&e));
    let by_content = |r: &&Refused| r.magic.iter().any(|magic| head.starts_with(magic));
    let (rows, object) = (head.starts_with(b"{\"") || head.starts_with(b"{}"), is_json(head));
    let by_words = |r: &&Refused| match r.what {
        "JSON Lines" => rows,
        "JSON" => object,
        _ => false,
    };
    let find = |which: &dyn Fn(&&Refused) -> bool| REFUSED.iter().find(|r| which(r));
    let found = find(&by_name).or_else(|| find(&by_content)).or_else(|| find(&by_words))?;
    Some((found.what, found.remedy))
}

/// Whether content begins like an object or a list; one that begins so is no table.
fn is_json(head: &[u8]) -> bool {
    let inside =
        |open: u8| head.trim_ascii_start().strip_prefix(&[open]).map(<[u8]>::trim_ascii_start);
    let object = inside(b'{').is_some_and(|rest| matches!(rest.first(), Some(b'"' | b'}')));
    let list = inside(b'[').is_some_and(|rest| matches!(rest.first(), Some(b'{' | b'[' | b']')));
    object || list
}

/// The last ending of a file name, without folders and `.gz`.
fn extension(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.rsplit_once('.').map(|(_, extension)| extension)
}

impl Format {
    /// The format that an extension stands for, and whether the name ends in `.gz`.
    pub(crate) fn of_name(name: &str) -> (Option<Format>, bool) {
        let name = name.to_ascii_lowercase();
        let gzip = name.strip_suffix(".gz").is_some();
        let format = match extension(&name) {
            Some("csv" | "txt" | "dat") => Some(Format::Text { tabs: false }),
            Some("tsv") => Some(Format::Text { tabs: true }),
            Some("npy") => Some(Format::Npy),
            Some("npz") => Some(Format::Npz),
            Some("parquet" | "pq") => Some(Format::Parquet),
            Some("ply") => Some(Format::Ply),
            Some("arrow" | "feather" | "ipc" | "arrows") => Some(Format::Arrow),
            Some("h5" | "hdf5") => Some(Format::Hdf5 { annotated: false }),
            Some("h5ad") => Some(Format::Hdf5 { annotated: true }),
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
            Format::Arrow => &[ARROW, ARROW_MESSAGE],
            Format::Hdf5 { .. } => &[HDF5],
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
            Format::Arrow => "an Arrow file",
            Format::Hdf5 { .. } => "an HDF5 file",
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
    } else if head.starts_with(HDF5) {
        Some(Format::Hdf5 { annotated: false })
    } else if (head.starts_with(ARROW) && is_binary(head)) || head.starts_with(ARROW_MESSAGE) {
        Some(Format::Arrow)
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
    fn what_is_refused() {
        let refused = |name: &str, head: &[u8]| refused(name, head).map(|(what, _)| what);
        assert_eq!(refused("a.json", b"1,2\n"), Some("JSON"));
        assert_eq!(refused("a.jsonl.gz", b"1"), Some("JSON Lines"));
        assert_eq!(refused("a.CSV.BZ2", b"1"), Some("a file compressed with bzip2"));
        assert_eq!(refused("-", b"BZh91AY&SY"), Some("a file compressed with bzip2"));
        assert_eq!(refused("-", b"{\"x\": 1}\n{\"x\": 2}\n"), Some("JSON Lines"));
        assert_eq!(refused("a.txt", b" [[1, 2],"), Some("JSON"));
        assert_eq!(refused("a.csv", b"[x],[y]\n1,2"), None);
        assert_eq!(refused("a.csv", b"BZhx,y\n1,2"), None);
        assert_eq!(refused("json", b"1,2"), None);
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
