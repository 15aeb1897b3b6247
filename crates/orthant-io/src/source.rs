//! From the name of a file to its decoded bytes.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::Error;
use crate::format::{self, Format};
use crate::{Cloud, ReadOptions, npz, numpy, parquet, ply, text};

/// Enough of a file to tell its format and the delimiter of a table.
const HEAD: u64 = 64 * 1024;

/// The file asked for and the array in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec<'a> {
    pub(crate) file: &'a str,
    pub(crate) key: Option<&'a str>,
}

impl<'a> Spec<'a> {
    /// Splits `file.npz:key`, unless a file of just that name exists.
    pub(crate) fn of_file(spec: &'a str) -> Self {
        if fs::exists(spec).unwrap_or(false) {
            return Spec { file: spec, key: None };
        }
        Spec::of_name(spec)
    }

    /// Splits `file.npz:key`; a colon anywhere else belongs to the name.
    pub(crate) fn of_name(name: &'a str) -> Self {
        const MARK: &str = ".npz:";
        match name.to_ascii_lowercase().rfind(MARK) {
            Some(at) => {
                Spec { file: &name[..at + MARK.len() - 1], key: Some(&name[at + MARK.len()..]) }
            }
            None => Spec { file: name, key: None },
        }
    }

    /// The name as it stands in messages.
    fn label(&self) -> String {
        if self.file == "-" {
            "standard input".to_owned()
        } else {
            // A file name may hold line breaks, a message may not.
            self.file
                .chars()
                .flat_map(|c| {
                    let escape = c.is_control().then(|| c.escape_default());
                    let plain = escape.is_none().then_some(c);
                    escape.into_iter().flatten().chain(plain)
                })
                .collect()
        }
    }
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
pub(crate) fn decode(spec: &Spec<'_>, raw: Raw<'_>, options: &ReadOptions) -> Result<Cloud, Error> {
    let path = spec.label();
    let (format, gzip) = Format::of_name(spec.file);
    let unreadable = |source| Error::read(&path, source);

    let (mut head, mut raw) = raw.peek().map_err(unreadable)?;
    if head.is_empty() {
        return Err(Error::Empty { path });
    }
    let compressed = head.starts_with(format::GZIP);
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
    }

    let format = format.unwrap_or_else(|| Format::of_content(&head));
    format.check(&path, &head)?;
    match format {
        Format::Text { tabs } => {
            let sample = text::Sample { complete: (head.len() as u64) < HEAD, bytes: &head };
            text::read(&path, &sample, tabs, raw.into_reader(), options)
        }
        Format::Npy => {
            // The length of the file tells at once whether the shape in the header is a lie.
            let length = match &raw {
                Raw::File(file) => Some(file.metadata().map_err(unreadable)?.len()),
                Raw::Stream(_) => None,
            };
            let reader = BufReader::new(raw.into_reader());
            numpy::read(&path, reader, length, options)
        }
        Format::Ply => ply::read(&path, BufReader::new(raw.into_reader()), options),
        Format::Npz => match raw {
            Raw::File(file) => npz::read(&path, spec.key, BufReader::new(file), options),
            Raw::Stream(stream) => {
                let bytes = slurp(stream).map_err(unreadable)?;
                npz::read(&path, spec.key, Cursor::new(bytes), options)
            }
        },
        Format::Parquet => match raw {
            Raw::File(file) => parquet::read(&path, file, options),
            Raw::Stream(stream) => {
                let bytes = slurp(stream).map_err(unreadable)?;
                parquet::read(&path, bytes::Bytes::from(bytes), options)
            }
        },
    }
}

fn slurp(mut stream: Box<dyn Read + '_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_npz_names_split_at_a_colon() {
        let split = |name| {
            let spec = Spec::of_name(name);
            (spec.file, spec.key)
        };
        assert_eq!(split("a.npz:x"), ("a.npz", Some("x")));
        assert_eq!(split("C:/b/a.NPZ:x:y"), ("C:/b/a.NPZ", Some("x:y")));
        assert_eq!(split("10:30.csv"), ("10:30.csv", None));
        assert_eq!(split("a.npy:x"), ("a.npy:x", None));
        assert_eq!(split("a.npz"), ("a.npz", None));
    }

    #[test]
    fn names_stay_on_one_line() {
        assert_eq!(Spec::of_name("a\nb.csv").label(), "a\\nb.csv");
    }
}
