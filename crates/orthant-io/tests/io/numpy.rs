//! `NumPy` arrays and archives of them.

use crate::common::*;
use npyz::WriterBuilder;

const COUNTS: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 120.0];

#[test]
fn doubles_in_any_layout() {
    for name in [
        "f8.npy",
        "f8_fortran.npy",
        "f8_big.npy",
        "version2.npy",
        "f8.npy.gz",
        "one.npz",
        "one.npz:arr_0",
        "several.npz:points",
        "several.npz:points.npy",
    ] {
        let cloud = load(name, &plain());
        assert_eq!((cloud.len(), cloud.dim), (4, 3), "{name}");
        assert_eq!(cloud.columns, None);
        assert_bits(f64s(&cloud), &POINTS);
    }
}

#[test]
fn floats_stay_floats() {
    for name in ["f4.npy", "f4_fortran_big.npy"] {
        assert_eq!(f32s(&load(name, &plain())), [0.5, 1.0, 1.5, 2.0, 2.5, 60.0], "{name}");
    }
    assert_eq!(f64s(&load("f2.npy", &plain())), [0.5, 1.0, 1.5, 2.0, 2.5, 60.0]);
}

#[test]
fn integers() {
    for kind in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"] {
        let cloud = load(&format!("{kind}.npy"), &plain());
        assert_eq!((f64s(&cloud), cloud.dim), (&COUNTS[..], 2), "{kind}");
    }
}

#[test]
fn a_vector_is_a_cloud_in_one_dimension() {
    let cloud = load("vector.npy", &plain());
    assert_eq!((f64s(&cloud), cloud.dim), (&[1.0, 2.0, 4.0][..], 1));
}

#[test]
fn columns_and_weights_by_position() {
    for name in ["f8.npy", "f8_fortran.npy"] {
        let mut options = columns("3 1");
        options.weights = Some("2".to_owned());
        let cloud = load(name, &options);
        assert_bits(f64s(&cloud), &[3.0, 0.5, -0.0, 2.25, 7.0, 1e150, 6.0, 4.0]);
        assert_eq!(cloud.weights, Some(vec![-1.0, 1e-150, 5e-324, 5.0]));
        assert_eq!(load(name, &weights("3")).dim, 2);
    }
    assert_eq!(
        load_error("f8.npy", &columns("x")),
        "f8.npy: no column \"x\"; the columns have no names; give positions from 1 to 3"
    );
}

#[test]
fn weights_from_another_array() {
    let cloud = load("several.npz:points", &weights("mass"));
    assert_eq!(cloud.dim, 3);
    assert_eq!(cloud.weights, Some(vec![1.0, 2.0, 3.0, 4.0]));
    assert_eq!(load("several.npz:points", &weights("2")).dim, 2);
    assert_eq!(
        load_error("several.npz:points", &weights("short")),
        "several.npz: \"short\" has 3 weights, but there are 4 points; they must agree"
    );
    assert_eq!(
        load_error("several.npz:mass", &weights("points")),
        "several.npz: \"points\" as weights: an array of two axes is not supported; \
         save one weight per point"
    );
}

#[test]
fn choosing_an_array() {
    assert_eq!(
        load_error("several.npz", &plain()),
        "several.npz: the file holds several arrays; choose one of \"points\", \"mass\", \"short\" \
         as several.npz:NAME"
    );
    assert_eq!(
        load_error("several.npz:cloud", &plain()),
        "several.npz: no array \"cloud\"; the file holds \"points\", \"mass\", \"short\""
    );
}

#[test]
fn missing_and_infinite_values() {
    let cloud = load("nan.npy", &dropping());
    assert_eq!((f64s(&cloud), cloud.dropped), (&[1.0, 2.0, 5.0, 6.0][..], 1));
    assert_eq!(
        load_error("nan.npy", &plain()),
        "nan.npy: row 2, column 2: the value is missing (NaN); \
         use --missing drop to skip such rows"
    );
    assert_eq!(load("nan.npy", &columns("1")).len(), 3);
    let mut options = dropping();
    options.weights = Some("2".to_owned());
    assert_eq!(load("nan.npy", &options).weights, Some(vec![2.0, 6.0]));
    assert_eq!(
        load_error("inf.npy", &dropping()),
        "inf.npy: row 3, column 1: -inf is not finite; remove the row or replace the value"
    );
}

#[test]
fn arrays_that_are_no_clouds() {
    let shapes = "save an array of one or two axes, with the points in its rows";
    let types = "convert it with .astype(float) before saving";
    for (name, what, remedy) in [
        ("scalar.npy", "an array of shape ()", shapes),
        ("cube.npy", "an array of shape (2, 2, 2)", shapes),
        ("bool.npy", "an array of boolean type \"|b1\"", types),
        ("complex.npy", "an array of complex type \"<c16\"", types),
        ("string.npy", "an array of string type \"<U1\"", types),
        ("object.npy", "an array of object type \"|O\"", types),
    ] {
        assert_eq!(
            load_error(name, &plain()),
            format!("{name}: {what} is not supported; {remedy}")
        );
    }
    assert!(
        load_error("structured.npy", &plain()).starts_with(
            "structured.npy: an array of structured type \"[('x', '<f8'), ('n', '<i4')]"
        )
    );
    assert_eq!(load_error("empty.npy", &plain()), "empty.npy: no rows of data");
}

/// An array with a header of our own making.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(header.len()).unwrap();
    [b"\x93NUMPY\x01\0", &length.to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn shaped(shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
    npy(&header, data)
}

#[test]
fn shapes_that_lie() {
    let path = tempfile::Builder::new().suffix(".npy").tempfile().unwrap();
    for (shape, expected) in [
        (
            "(2, 2)",
            "the file is truncated: its shape (2, 2) takes 32 bytes, and 16 are there; \
             get a complete copy",
        ),
        (
            "(100000000000, 2)",
            "the file is truncated: its shape (100000000000, 2) takes 1600000000000 bytes, \
             and 16 are there; get a complete copy",
        ),
        (
            "(4611686018427387904, 4)",
            "not a valid NumPy file: the shape (4611686018427387904, 4) is too large",
        ),
        (
            "(2305843009213693952,)",
            "not a valid NumPy file: the shape (2305843009213693952,) is too large",
        ),
        ("(1,)", "not a valid NumPy file: more data follow than the shape (1,) takes"),
        (
            "(1000000000000, 0)",
            "not a valid NumPy file: more data follow than the shape (1000000000000, 0) takes",
        ),
    ] {
        let bytes = shaped(shape, &[0; 16]);
        assert_eq!(error("a.npy", &bytes, &plain()), format!("a.npy: {expected}"));
        std::fs::write(&path, &bytes).unwrap();
        let name = path.path().to_str().unwrap();
        let found = orthant_io::read(name, &plain()).unwrap_err();
        assert_eq!(message(&found), format!("{name}: {expected}"));
    }
    assert_eq!(
        error("a.npy", shaped("(5, 0)", b""), &plain()),
        "a.npy: no columns are left for the coordinates; select at least one with --columns"
    );
}

#[test]
fn headers_that_lie() {
    assert_eq!(
        error("a.npy", npy("{'descr': 3}\n", b""), &plain()),
        "a.npy: not a valid NumPy file: cannot make sense of the header {'descr': 3}"
    );
    assert_eq!(
        error("a.npy", b"\x93NUMPY\x02\0\xff\xff\xff\xff{", &plain()),
        "a.npy: not a valid NumPy file: the header has 4294967295 bytes"
    );
    assert_eq!(
        error("a.npy", b"\x93NUMPY\x09\0\0\0", &plain()),
        "a.npy: not a valid NumPy file: the header is of an unknown version"
    );
    // Nesting that would overflow the stack of a recursive parser.
    let deep = "[".repeat(60_000);
    assert!(
        error("a.npy", npy(&format!("{{'descr': {deep}"), b""), &plain()).contains("structured")
    );
    assert_eq!(
        error("a.npy", "1,2\n", &plain()),
        "a.npy: expected a NumPy array, but the content is text"
    );
    assert_eq!(
        error("a.npz", "\u{93}NUMPY", &plain()),
        "a.npz: expected an archive of NumPy arrays, but the content is text"
    );
    assert_eq!(
        error("a.npy", b"\x93NUM", &plain()),
        "a.npy: the file is truncated: it ends in its first few bytes; get a complete copy"
    );
}

#[test]
fn arrays_are_recognised_without_an_extension() {
    let bytes = std::fs::read(fixture("f8.npy")).unwrap();
    assert_bits(f64s(&get("-", &bytes, &plain())), &POINTS);
    let bytes = std::fs::read(fixture("f8.npy.gz")).unwrap();
    assert_bits(f64s(&get("-", &bytes, &plain())), &POINTS);
    let bytes = std::fs::read(fixture("one.npz")).unwrap();
    assert_bits(f64s(&get("-", &bytes, &plain())), &POINTS);
}

/// What another implementation writes.
#[test]
fn agrees_with_npyz() {
    for order in [npyz::Order::C, npyz::Order::Fortran] {
        let mut bytes = Vec::new();
        let mut writer = npyz::WriteOptions::new()
            .default_dtype()
            .shape(&[2, 3])
            .order(order)
            .writer(&mut bytes)
            .begin_nd()
            .unwrap();
        writer.extend([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        writer.finish().unwrap();
        let expected = match order {
            npyz::Order::C => [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            npyz::Order::Fortran => [1.0, 3.0, 5.0, 2.0, 4.0, 6.0],
        };
        assert_eq!(f32s(&get("a.npy", &bytes, &plain())), expected);
    }
}

#[test]
fn checksums_are_verified() {
    let mut bytes = std::fs::read(fixture("one.npz")).unwrap();
    let at = bytes.windows(8).position(|w| w == 2.25_f64.to_le_bytes());
    bytes[at.unwrap()] ^= 1;
    assert!(
        error("a.npz", &bytes, &plain()).starts_with("a.npz:arr_0: not a valid compressed file")
    );
}
