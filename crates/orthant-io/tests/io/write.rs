//! Files written completely or not at all.

use std::fs;
use std::io;
use std::path::Path;

use crate::common::message;
use orthant_io::write_atomic;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_replaced_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    write_atomic(&path, |out| writeln!(out, "old")).unwrap();
    write_atomic(&path, |out| {
        out.write_all(b"ne")?;
        assert_eq!(fs::read_to_string(&path)?, "old\n");
        out.write_all(b"w\n")
    })
    .unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    assert_eq!(names(directory.path()), ["a.csv"]);
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    let fail = || {
        write_atomic(&path, |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        })
    };
    let expected = format!("{}: cannot write the file: no storage space", path.display());
    assert_eq!(message(&fail().unwrap_err()), expected);
    assert!(names(directory.path()).is_empty());
    fs::write(&path, "old").unwrap();
    fail().unwrap_err();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(directory.path()), ["a.csv"]);
}

#[test]
fn places_that_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &Path| message(&write_atomic(path, |_| Ok(())).unwrap_err());
    assert_eq!(
        write(directory.path()),
        format!("{}: this is a directory; give a file", directory.path().display())
    );
    let missing = directory.path().join("no/a.csv");
    assert_eq!(
        write(&missing),
        format!("{}: cannot write the file: there is no such directory", missing.display())
    );
}

#[cfg(unix)]
#[test]
fn permissions_links_and_devices() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    let link = directory.path().join("link.csv");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;

    // A new file has the permissions of any new file.
    let other = directory.path().join("other");
    fs::write(&other, "").unwrap();
    write_atomic(&path, |out| out.write_all(b"1")).unwrap();
    assert_eq!(mode(&path), mode(&other));

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, &link).unwrap();
    write_atomic(&link, |out| out.write_all(b"2")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "2");
    assert_eq!(mode(&path), 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

    write_atomic(Path::new("/dev/null"), |out| out.write_all(b"3")).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}
