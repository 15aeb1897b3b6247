//! Files written completely or not at all.

use std::fs;
use std::io;
use std::path::Path;

use crate::common::{f64s, message, plain};
use orthant_io::{
    Cells, Series, TableFormat, check_writable, read, same_file, write_atomic, write_table,
};

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

#[test]
fn places_are_checked_before() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let checked = |path: &Path| check_writable(path).map_err(|error| message(&error));
    // Neither made nor changed.
    checked(&at("new.csv")).unwrap();
    fs::write(at("old.csv"), "old").unwrap();
    checked(&at("old.csv")).unwrap();
    assert_eq!(fs::read_to_string(at("old.csv")).unwrap(), "old");
    assert_eq!(names(directory.path()), ["old.csv"]);
    for (path, reason) in [
        (at("no/a.csv"), "there is no such directory"),
        (at("old.csv/a.csv"), "Not a directory"),
        (at(&"x".repeat(300)), "File name too long"),
    ] {
        let expected = format!("{}: cannot write the file: {reason}", path.display());
        assert_eq!(checked(&path), Err(expected.clone()));
        assert_eq!(message(&write_atomic(&path, |_| Ok(())).unwrap_err()), expected);
    }
    for path in [directory.path().to_owned(), at("new/"), at("."), at("..")] {
        let expected = format!("{}: this is a directory; give a file", path.display());
        assert_eq!(checked(&path), Err(expected));
    }
    assert_eq!(names(directory.path()), ["old.csv"]);
    checked(Path::new("/dev/null")).unwrap();
}

/// The superuser may write to all of them but those of a file system that cannot be written to.
#[cfg(target_os = "linux")]
#[test]
fn read_only_places() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.csv");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let superuser = fs::write(directory.path().join("probe"), "").is_ok();
    for path in [file.clone(), directory.path().join("b.csv")] {
        match check_writable(&path) {
            Ok(()) => assert!(superuser),
            Err(error) => assert_eq!(
                message(&error),
                format!("{}: cannot write the file: Permission denied", path.display())
            ),
        }
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    let error = message(&check_writable(Path::new("/proc/orthant.csv")).unwrap_err());
    assert!(error.starts_with("/proc/orthant.csv: cannot write the file: "), "{error}");
    assert!(!error.contains("os error"), "{error}");
}

/// What a process that ends now would leave behind.
#[cfg(target_os = "linux")]
#[test]
fn nothing_has_a_name_while_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    write_atomic(&path, |out| {
        out.write_all(&vec![b'x'; 1 << 20])?;
        assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
        Ok(())
    })
    .unwrap();
    assert_eq!(names(directory.path()), ["a.csv"]);
    drop(orthant_io::remove_temporaries());
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
}

#[test]
fn reasons_are_told_once() {
    let error = write_atomic(Path::new("/dev/full"), |out| out.write_all(&vec![0; 1 << 20]));
    if Path::new("/dev/full").exists() {
        let error = error.unwrap_err();
        let expected = "/dev/full: cannot write the file: No space left on device";
        assert_eq!(message(&error), expected);
        assert!(error.is_resource());
        // Nothing is repeated where the causes of an error are shown with it.
        assert!(std::error::Error::source(&error).is_none());
    }
}

#[cfg(unix)]
#[test]
fn names_of_one_file() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("a"), "").unwrap();
    fs::write(at("b"), "").unwrap();
    fs::hard_link(at("a"), at("hard")).unwrap();
    symlink(at("a"), at("soft")).unwrap();
    symlink("soft", at("twice")).unwrap();
    symlink(at("sub"), at("folder")).unwrap();
    symlink(at("sub/new"), at("dangling")).unwrap();
    for (a, b) in [
        ("a", "a"),
        ("a", "./a"),
        ("a", "sub/../a"),
        ("a", "hard"),
        ("a", "soft"),
        ("a", "twice"),
        ("a", "folder/../a"),
        ("new", "./new"),
        ("new", "sub/../new"),
        ("folder/new", "sub/new"),
        ("dangling", "sub/new"),
    ] {
        assert!(same_file(&at(a), &at(b)) && same_file(&at(b), &at(a)), "{a} {b}");
    }
    for (a, b) in
        [("a", "b"), ("a", "new"), ("new", "sub/new"), ("no/x", "sub/x"), ("new", "newer")]
    {
        assert!(!same_file(&at(a), &at(b)), "{a} {b}");
    }
    let null = Path::new("/dev/null");
    assert!(!same_file(null, null));
    // A link that leads nowhere yet stays one.
    write_atomic(&at("dangling"), |out| out.write_all(b"1")).unwrap();
    assert!(fs::symlink_metadata(at("dangling")).unwrap().is_symlink());
    assert_eq!(fs::read(at("sub/new")).unwrap(), b"1");
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

fn series<'a>(name: &str, cells: Cells<'a>) -> Series<'a> {
    Series { name: name.to_owned(), cells }
}

#[test]
fn tables_are_read_as_they_were_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let numbers = [vec![0.1, -1e300, 5e-324], vec![3.0, 0.0, f64::MAX]];
    let columns = [
        series("x", Cells::Numbers(numbers[0].clone())),
        series("y", Cells::Numbers(numbers[1].clone())),
    ];
    for (name, header) in [("a.csv", true), ("a.csv", false), ("a.tsv", true), ("a.NPY", true)] {
        write_table(&path(name), TableFormat::of(&path(name)).unwrap(), &columns, header).unwrap();
        let cloud = read(path(name).to_str().unwrap(), &plain()).unwrap();
        let expected: Vec<f64> = (0..3).flat_map(|i| [numbers[0][i], numbers[1][i]]).collect();
        assert_eq!(f64s(&cloud), expected, "{name}");
        assert_eq!(cloud.columns.is_some(), header && name != "a.NPY", "{name}");
    }
    // Another reader of arrays.
    let file = npyz::NpyFile::new(fs::File::open(path("a.NPY")).unwrap()).unwrap();
    assert_eq!((file.shape(), file.order()), (&[3, 2][..], npyz::Order::C));
    assert_eq!(file.into_vec::<f64>().unwrap()[4], 5e-324);
    let pairs = [series("i", Cells::Indices(vec![0, 7])), series("j", Cells::Indices(vec![3, 2]))];
    write_table(&path("p.npy"), TableFormat::Npy, &pairs, true).unwrap();
    let file = npyz::NpyFile::new(fs::File::open(path("p.npy")).unwrap()).unwrap();
    assert_eq!(file.into_vec::<i64>().unwrap(), [0, 3, 7, 2]);
    let mixed =
        [series("i", Cells::Indices(vec![0, 7])), series("p", Cells::Numbers(vec![0.5, 1.0]))];
    write_table(&path("p.npy"), TableFormat::Npy, &mixed, true).unwrap();
    let cloud = read(path("p.npy").to_str().unwrap(), &plain()).unwrap();
    assert_eq!(f64s(&cloud), [0.0, 0.5, 7.0, 1.0]);
}

#[test]
fn text_is_quoted_where_it_has_to_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tsv");
    let text = ["a\tb", "c,d", "\"e\"\nf", ""].map(ToOwned::to_owned);
    let columns = [series("t", Cells::Text(&text)), series("n", Cells::Indices(vec![1, 2, 3, 4]))];
    write_table(&path, TableFormat::Tsv, &columns, true).unwrap();
    let expected = "t\tn\n\"a\tb\"\t1\nc,d\t2\n\"\"\"e\"\"\nf\"\t3\n\t4\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);

    let array = directory.path().join("a.npy");
    let error = write_table(&array, TableFormat::Npy, &columns, true).unwrap_err();
    assert!(
        message(&error)
            .ends_with("the text of column \"t\" in an array is not supported; write .csv or .tsv")
    );
    for name in ["a.parquet", "a", "100", ".csv", "a.csv.gz"] {
        let error = TableFormat::of(Path::new(name)).unwrap_err();
        assert!(
            message(&error).ends_with("is not supported; name it .csv, .tsv or .npy"),
            "{name}"
        );
    }
    assert_eq!(names(directory.path()), ["a.tsv"]);
}
