//! From the name of a file to its decoded bytes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::budget::Budget;
use crate::error::Error;
use crate::format::{self, Format};
use crate::{Cloud, ReadOptions, arrow, hdf5, npz, numpy, parquet, ply, text};

/// Enough of a file to tell its format and the delimiter of a table.
const HEAD: u64 = 64 * 1024;

/// The file asked for and the array in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec<'a> {
    pub(crate) file: &'a OsStr,
    pub(crate) key: Option<String>,
}

impl<'a> Spec<'a> {
    /// Splits `file.npz:key`, unless a file of just that name exists.
    pub(crate) fn of_file(spec: &'a OsStr) -> Self {
        if fs::exists(spec).unwrap_or(false) {
            return Spec { file: spec, key: None };
        }
        Spec::of_name(spec)
    }

    /// Splits `file.npz:key`; a colon anywhere else belongs to the name.
    pub(crate) fn of_name(name: &'a OsStr) -> Self {
        const MARKS: [&[u8]; 4] = [b".npz:", b".h5:", b".hdf5:", b".h5ad:"];
        let bytes = name.as_encoded_bytes().to_ascii_lowercase();
        let last = |mark: &&[u8]| {
            let at = bytes.windows(mark.len()).rposition(|window| window == *mark)?;
            Some(at + mark.len() - 1)
        };
        match MARKS.iter().filter_map(last).max() {
            Some(colon) => {
                let (file, key) = split(name, colon);
                Spec { file, key: Some(key) }
            }
            None => Spec { file: name, key: None },
        }
    }

    /// The name as it stands in messages.
    pub(crate) fn label(&self) -> String {
        if self.file == "-" { "standard input".to_owned() } else { label(self.file) }
    }
}

/// What is before an ASCII character, and the text after it.
#[cfg(unix)]
fn split(name: &OsStr, at: usize) -> (&OsStr, String) {
    use std::os::unix::ffi::OsStrExt;
    let bytes = name.as_bytes();
    (OsStr::from_bytes(&bytes[..at]), String::from_utf8_lossy(&bytes[at + 1..]).into_owned())
}

#[cfg(not(unix))]
fn split(name: &OsStr, at: usize) -> (&OsStr, String) {
    match name.to_str() {
        Some(text) => (OsStr::new(&text[..at]), text[at + 1..].to_owned()),
        None => (name, String::new()),
    }
}

/// A name as it stands in messages: it may hold line breaks and bytes that are no text, a message may not.
pub(crate) fn label(name: &OsStr) -> String {
    let mut label = String::new();
    for c in name.to_string_lossy().chars() {
        if c.is_control() {
            label.extend(c.escape_default());
        } else {
            label.push(c);
        }
    }
    label
}

/// Bytes as they are stored.
pub(crate) enum Raw<'a> {
    /// A regular file, which can be read from any place.
    File(File),
    /// Anything else, which can be read once.
    Stream(Box<dyn Read + 'a>),
}

impl Raw<'_> {
    pub(crate) fn open(spec: &Spec<'_>) -> Result<Self, Error> {
        let open = || {
            let file = File::open(Path::new(spec.file))?;
            let kind = file.metadata()?.file_type();
            Ok((file, kind))
        };
        match open() {
            Ok((_, kind)) if kind.is_dir() => Err(Error::Directory { path: spec.label() }),
            // A pipe such as `/dev/stdin` has a name and cannot be rewound.
            Ok((file, kind)) if !kind.is_file() => Ok(Raw::Stream(Box::new(file))),
            Ok((file, _)) => Ok(Raw::File(file)),
            Err(source) => Err(Error::read(&spec.label(), source)),
        }
    }

    /// The first bytes, and the same source as if they had not been read.
    fn peek(self) -> io::Result<(Vec<u8>, Self)> {
        let mut head = Vec::new();
        match self {
            Raw::File(mut file) => {
                (&mut file).take(HEAD).read_to_end(&mut head)?;
                file.rewind()?;
                Ok((head, Raw::File(file)))
            }
            Raw::Stream(mut stream) => {
                (&mut stream).take(HEAD).read_to_end(&mut head)?;
                let again = Cursor::new(head.clone()).chain(stream);
                Ok((head, Raw::Stream(Box::new(again))))
            }
        }
    }
}

impl<'a> Raw<'a> {
    fn into_reader(self) -> Box<dyn Read + 'a> {
        match self {
            Raw::File(file) => Box::new(file),
            Raw::Stream(stream) => stream,
        }
    }
}

/// Decompresses, finds the format, and reads.
pub(crate) fn decode(
    spec: &Spec<'_>,
    raw: Raw<'_>,
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Error> {
    let path = spec.label();
    let name = spec.file.to_string_lossy();
    let (format, gzip) = Format::of_name(&name);
    let unreadable = |source| budget.error(source);

    let (mut head, mut raw) = raw.peek().map_err(unreadable)?;
    if head.is_empty() {
        return Err(Error::Empty { path });
    }
    let compressed = head.starts_with(format::GZIP);
    let refuse = |head: &[u8]| match format::refused(&name, head) {
        Some((what, remedy)) => Err(Error::Unsupported {
            path: path.clone(),
            what: what.to_owned(),
            remedy: remedy.to_owned(),
        }),
        None => Ok(()),
    };
    refuse(&head)?;
    if gzip && !compressed {
        return Err(Error::Foreign {
            path,
            expected: "a file compressed with gzip".to_owned(),
            found: format::describe(&head).to_owned(),
        });
    }
    if compressed && !gzip && format.is_some() {
        return Err(Error::Foreign {
            expected: "an uncompressed file".to_owned(),
            found: format!("compressed with gzip; rename it to {path}.gz"),
            path,
        });
    }
    if compressed {
        let decoder = MultiGzDecoder::new(BufReader::new(raw.into_reader()));
        (head, raw) = Raw::Stream(Box::new(decoder)).peek().map_err(unreadable)?;
        if head.is_empty() {
            return Err(Error::Empty { path });
        }
        refuse(&head)?;
    }

    let format = format.unwrap_or_else(|| Format::of_content(&head));
    format.check(&path, &head)?;
    match format {
        Format::Text { tabs } => {
            let sample = text::Sample { complete: (head.len() as u64) < HEAD, bytes: &head };
            text::read(&path, &sample, tabs, raw.into_reader(), options, budget)
        }
        Format::Npy => {
            // The length of the file tells at once whether the shape in the header is a lie.
            let length = match &raw {
                Raw::File(file) => Some(file.metadata().map_err(unreadable)?.len()),
                Raw::Stream(_) => None,
            };
            let reader = BufReader::new(raw.into_reader());
            numpy::read(&path, reader, length, options, budget)
        }
        Format::Ply => ply::read(&path, raw.into_reader(), options, budget),
        Format::Arrow => {
            let is_file = head.starts_with(format::ARROW);
            arrow::read(&path, BufReader::new(raw.into_reader()), is_file, options, budget)
        }
        Format::Npz => match raw {
            Raw::File(file) => {
                npz::read(&path, spec.key.as_deref(), BufReader::new(file), options, budget)
            }
            Raw::Stream(stream) => {
                let bytes = Cursor::new(budget.slurp(stream)?);
                npz::read(&path, spec.key.as_deref(), bytes, options, budget)
            }
        },
        Format::Parquet => match raw {
            Raw::File(file) => parquet::read(&path, file, options, budget),
            Raw::Stream(stream) => {
                let bytes = budget.slurp(stream)?;
                parquet::read(&path, bytes::Bytes::from(bytes), options, budget)
            }
        },
        Format::Hdf5 { annotated } => {
            let source = match raw {
                Raw::File(file) => hdf5::Source::File(file),
                Raw::Stream(stream) => hdf5::Source::Bytes(budget.slurp(stream)?),
            };
            hdf5::read(&path, source, spec.key.as_deref(), annotated, options, budget)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_archives_split_at_a_colon() {
        let split = |name: &str| {
            let spec = Spec::of_name(OsStr::new(name));
            (spec.file.to_str().unwrap().to_owned(), spec.key)
        };
        let pair = |file: &str, key: &str| (file.to_owned(), Some(key.to_owned()));
        let whole = |file: &str| (file.to_owned(), None);
        assert_eq!(split("a.npz:x"), pair("a.npz", "x"));
        assert_eq!(split("C:/b/a.NPZ:x:y"), pair("C:/b/a.NPZ", "x:y"));
        assert_eq!(split("a.h5:/b/c"), pair("a.h5", "/b/c"));
        assert_eq!(split("a.h5ad:obsm/X_pca"), pair("a.h5ad", "obsm/X_pca"));
        for name in ["10:30.csv", "a.npy:x", "a.npz"] {
            assert_eq!(split(name), whole(name));
        }
    }

    #[test]
    fn names_stay_on_one_line() {
        assert_eq!(Spec::of_name(OsStr::new("a\nb.csv")).label(), "a\\nb.csv");
    }
}
