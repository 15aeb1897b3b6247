//! Tables in several files, names that are no text, and formats that are refused.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use orthant_io::{files_of, read};
use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Writes a part with these columns; NaN is a number that is missing.
fn part(path: &Path, columns: &[(&str, &[f64])]) {
    let fields: Vec<String> =
        columns.iter().map(|(name, _)| format!("required double {name}; ")).collect();
    let fields = fields.concat();
    let schema = Arc::new(parse_message_type(&format!("message m {{ {fields} }}")).unwrap());
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (_, values) in columns {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn folders_and_patterns() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    part(&at("part-1.parquet"), &[("x", &[3.0, f64::NAN]), ("y", &[30.0, 40.0])]);
    part(&at("part-0.parquet"), &[("x", &[1.0, 2.0]), ("y", &[f64::NAN, 20.0])]);
    part(&at("part-2.parquet"), &[("x", &[]), ("y", &[])]);
    part(&at("part-3.parquet"), &[("x", &[f64::NAN]), ("y", &[1.0])]);
    part(&at("part-4.parquet"), &[("x", &[7.0]), ("y", &[70.0])]);
    for name in ["_SUCCESS", "_metadata", ".part-1.parquet.crc", "_old.parquet", "notes.txt"] {
        fs::write(at(name), "x").unwrap();
    }
    let text = folder.path().to_str().unwrap();
    for spec in [
        text.to_owned(),
        format!("{text}/"),
        format!("{text}/*.parquet"),
        format!("{text}/part-?.p*"),
    ] {
        let cloud = read(&spec, &dropping()).unwrap();
        assert_eq!(f64s(&cloud), [2.0, 20.0, 3.0, 30.0, 7.0, 70.0], "{spec}");
        assert_eq!((0..3).map(|i| cloud.row(i)).collect::<Vec<_>>(), [2, 3, 6]);
        assert_eq!((cloud.dropped, cloud.total_rows()), (3, 6));
        assert_eq!((cloud.path.as_str(), cloud.columns.unwrap().len()), (spec.as_str(), 2));
        assert_eq!(files_of(&spec).len(), 5, "{spec}");
    }
    let missing = message(&read(folder.path(), &plain()).unwrap_err());
    assert!(
        missing.contains("part-0.parquet: row 1, column \"y\": the value is missing"),
        "{missing}"
    );
    let one = read(format!("{text}/*4.parquet"), &plain()).unwrap();
    assert_eq!(f64s(&one), [7.0, 70.0]);
    let none = format!("{text}/q*.parquet");
    assert_eq!(message(&read(&none, &plain()).unwrap_err()), format!("{none}: no such file"));

    part(&at("part-5.parquet"), &[("x", &[7.0]), ("z", &[70.0])]);
    assert_eq!(
        message(&read(folder.path(), &dropping()).unwrap_err()),
        format!(
            "{text}: the parts {text}/part-0.parquet and {text}/part-5.parquet have different \
             columns or types; all parts of a table need the same schema"
        )
    );
    assert_eq!(files_of("-"), Vec::<std::path::PathBuf>::new());
    assert_eq!(files_of("a.npz:x"), [Path::new("a.npz")]);
    // All parts together have to fit.
    let mut options = dropping();
    options.columns = Some(vec!["x".to_owned()]);
    options.max_bytes = Some(100);
    assert!(read(folder.path(), &options).unwrap_err().is_resource());
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join(OsStr::from_bytes(b"caf\xe9\n.csv"));
    fs::write(&name, "x,y\n1,2\n").unwrap();
    let cloud = read(&name, &plain()).unwrap();
    assert_eq!(f64s(&cloud), [1.0, 2.0]);
    assert!(cloud.path.ends_with("caf\u{fffd}\\n.csv"), "{}", cloud.path);
    let text = message(&read(&name, &columns("z")).unwrap_err());
    assert!(text.contains("caf\u{fffd}\\n.csv: no column \"z\""), "{text}");
    // An array in such a file.
    let archive = folder.path().join(OsStr::from_bytes(b"\xff.npz"));
    fs::copy(fixture("several.npz"), &archive).unwrap();
    let mut spec = archive.into_os_string();
    spec.push(":points");
    assert_eq!(read(&spec, &plain()).unwrap().dim, 3);
    let gone = folder.path().join(OsStr::from_bytes(b"\xfe"));
    assert!(message(&read(&gone, &plain()).unwrap_err()).ends_with("\u{fffd}: no such file"));
}

#[test]
fn formats_that_are_refused() {
    for (name, bytes, what) in [
        ("a.json", &b"[[1, 2]]"[..], "JSON"),
        ("a.jsonl", b"{\"x\": 1}\n", "JSON Lines"),
        ("-", b"{\"x\": 1}\n{\"x\": 2}\n", "JSON Lines"),
        ("a.csv.bz2", b"BZh91AY&SY", "a file compressed with bzip2"),
        ("-", b"BZh91AY&SY", "a file compressed with bzip2"),
        ("a.csv.xz", b"\xfd7zXZ\0", "a file compressed with xz"),
        ("a.csv", b"\x28\xb5\x2f\xfd", "a file compressed with Zstandard"),
        ("a.xlsx", b"PK\x03\x04", "a spreadsheet"),
        ("a.rds", b"\x1f\x8b", "a file of R objects"),
        ("a.pkl", b"\x80\x04\x95", "a pickle, which runs code when it is read,"),
        ("a.mat", b"MATLAB 5.0 MAT-file", "a MATLAB file"),
        ("a.feather", b"FEA1", "version 1 of Feather"),
    ] {
        let name = if name == "-" { "standard input" } else { name };
        let given = if name == "standard input" { "-" } else { name };
        let text = error(given, bytes, &plain());
        assert!(text.starts_with(&format!("{name}: {what} is not supported; ")), "{text}");
    }
    // A zip archive that holds no arrays.
    for (inside, what) in [
        ("xl/workbook.xml", "an Excel workbook"),
        ("table.csv", "a zip archive without NumPy arrays"),
    ] {
        let mut bytes = std::io::Cursor::new(Vec::new());
        let mut archive = zip::ZipWriter::new(&mut bytes);
        archive.start_file(inside, zip::write::SimpleFileOptions::default()).unwrap();
        archive.finish().unwrap();
        let text = error("-", bytes.into_inner(), &plain());
        assert!(text.starts_with(&format!("standard input: {what} is not supported; ")), "{text}");
    }
}
