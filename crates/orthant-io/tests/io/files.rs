//! Paths, compression and the standard input.

use std::fs;
use std::io::{self, Read, Write};

use crate::common::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use orthant_io::{Error, read, read_from};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn failure(path: &str) -> String {
    message(&read(path, &plain()).unwrap_err())
}

#[test]
fn paths() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();

    let missing = path("missing.csv");
    assert_eq!(failure(&missing), format!("{missing}: no such file"));
    let missing = path("missing.npz");
    assert_eq!(failure(&format!("{missing}:x")), format!("{missing}: no such file"));
    let folder = path("folder.csv");
    fs::create_dir(&folder).unwrap();
    assert_eq!(failure(&folder), format!("{folder}: this is a directory; give a file"));
    let empty = path("empty.csv");
    fs::write(&empty, "").unwrap();
    assert_eq!(failure(&empty), format!("{empty}: the file is empty"));

    // Colons are ordinary characters, even after `.npz` if the file exists.
    let clock = path("10:30.csv");
    fs::write(&clock, "1,2\n").unwrap();
    assert_eq!(read(&clock, &plain()).unwrap().dim, 2);
    let odd = path("a.npz:b.csv");
    fs::write(&odd, "1,2\n").unwrap();
    assert_eq!(read(&odd, &plain()).unwrap().dim, 2);
}

#[cfg(unix)]
#[test]
fn unreadable_files() {
    use std::os::unix::fs::PermissionsExt;
    let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    fs::write(&file, "1,2\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let path = file.path().to_str().unwrap();
    // The superuser may read everything.
    if let Err(error) = read(path, &plain()) {
        let expected = format!("{path}: cannot read the file: Permission denied");
        assert_eq!(message(&error), expected);
    }
}

#[test]
fn compressed_files() {
    let table = gzip(b"x,y\n1,2\n");
    for name in ["a.csv.gz", "a.gz", "-", "a.CSV.GZ"] {
        assert_eq!(f64s(&get(name, &table, &plain())), [1.0, 2.0], "{name}");
    }
    // Members one after the other are one file.
    let two = [table.clone(), gzip(b"3,4\n")].concat();
    assert_eq!(get("a.csv.gz", &two, &plain()).len(), 2);

    assert_eq!(
        error("a.csv.gz", "1,2\n", &plain()),
        "a.csv.gz: expected a file compressed with gzip, but the content is text"
    );
    assert_eq!(error("a.csv.gz", gzip(b""), &plain()), "a.csv.gz: the file is empty");
    assert_eq!(
        error("a.csv.gz", &table[..table.len() - 3], &plain()),
        "a.csv.gz: the file is truncated: the data end too early; get a complete copy"
    );
    let mut corrupt = table;
    let checksum = corrupt.len() - 6;
    corrupt[checksum] ^= 1;
    assert!(
        error("a.csv.gz", &corrupt, &plain())
            .starts_with("a.csv.gz: not a valid compressed file: ")
    );
}

/// A reader that yields a byte at a time, as slow pipes do, and then fails.
struct Slow<'a>(&'a [u8], Option<io::ErrorKind>);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.0, self.1) {
            ([], None) => Ok(0),
            ([], Some(kind)) => Err(kind.into()),
            ([first, rest @ ..], _) => {
                buffer[0] = *first;
                self.0 = rest;
                Ok(1)
            }
        }
    }
}

#[test]
fn slow_and_failing_readers() {
    let cloud = read_from("-", Slow(b"x y\n1 2\n", None), &plain()).unwrap();
    assert_eq!(f64s(&cloud), [1.0, 2.0]);
    let broken = Slow(b"x y\n1 2\n", Some(io::ErrorKind::ConnectionReset));
    let error = read_from("a.csv", broken, &plain()).unwrap_err();
    assert!(matches!(error, Error::Read { ref path, .. } if path == "a.csv"), "{error}");
}
