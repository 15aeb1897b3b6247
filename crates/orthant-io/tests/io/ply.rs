//! PLY files.

use crate::common::*;
use ply_rs_bw::ply::{
    Addable, DefaultElement, ElementDef, Encoding, Ply, Property, PropertyDef, PropertyType,
    ScalarType,
};
use ply_rs_bw::writer::Writer;

const TEXT: &str = "\
ply
format ascii 1.0
comment a triangle
element vertex 3
property float x
property float y
property float z
property uchar red
property double mass
element face 1
property list uchar int vertex_index
end_header
0 0.1 -1 255 0.5
1 .5 2 0 0.25

3 4e0 5 128 0.125
3 0 1 2
";

#[test]
fn text() {
    for text in [TEXT.to_owned(), TEXT.replace('\n', "\r\n")] {
        let cloud = get("a.ply", &text, &plain());
        assert_eq!(f32s(&cloud), [0.0, 0.1, -1.0, 1.0, 0.5, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(cloud.columns.unwrap(), ["x", "y", "z"]);
        assert_eq!(get("-", &text, &plain()).dim, 3);
    }
}

#[test]
fn properties() {
    let mut options = columns("red x");
    options.weights = Some("mass".to_owned());
    let cloud = get("a.ply", TEXT, &options);
    assert_eq!(f64s(&cloud), [255.0, 0.0, 0.0, 1.0, 128.0, 3.0]);
    assert_eq!(cloud.weights, Some(vec![0.5, 0.25, 0.125]));
    assert_eq!(get("a.ply", TEXT, &weights("z")).dim, 2);
    assert_eq!(
        error("a.ply", TEXT, &columns("blue")),
        "a.ply: no column \"blue\"; the columns are \"x\", \"y\", \"z\", \"red\", \"mass\""
    );
    assert_eq!(
        error("a.ply", TEXT.replace("float y", "float q"), &plain()),
        "a.ply: no column \"y\"; the columns are \"x\", \"q\", \"z\", \"red\", \"mass\""
    );
    assert_eq!(get("a.ply", TEXT.replace("float z", "float q"), &plain()).dim, 2);
}

#[test]
fn values_that_are_no_coordinates() {
    let nan = TEXT.replace("1 .5 2", "1 nan 2");
    let cloud = get("a.ply", &nan, &dropping());
    assert_eq!((cloud.len(), cloud.dropped), (2, 1));
    assert_eq!(
        error("a.ply", &nan, &plain()),
        "a.ply: row 2, column \"y\": the value is missing (NaN); \
         use --missing drop to skip such rows"
    );
    assert_eq!(
        error("a.ply", TEXT.replace("4e0", "4e99"), &dropping()),
        "a.ply: row 3, column \"y\": inf is not finite; remove the row or replace the value"
    );
    assert_eq!(
        error("a.ply", TEXT.replace("4e0", "four"), &plain()),
        "a.ply: row 3, column \"y\": cannot read \"four\" as a number; \
         correct it, or select the numeric columns with --columns"
    );
}

#[test]
fn broken_files() {
    let at = |mark: &str| TEXT.find(mark).unwrap();
    assert_eq!(
        error("a.ply", &TEXT[..at("3 4e0")], &plain()),
        "a.ply: the file is truncated: the header promises 3 rows of vertex, and 2 are there; \
         get a complete copy"
    );
    assert_eq!(
        error("a.ply", &TEXT[..at("end_header")], &plain()),
        "a.ply: the file is truncated: the header has no end; get a complete copy"
    );
    for (from, to, detail) in [
        ("1 .5 2 0 0.25", "1 .5 2 0", "row 2 of vertex has too few values"),
        ("1 .5 2 0 0.25", "1 .5 2 0 1 1", "row 2 of vertex has too many values"),
        ("element vertex", "element point", "there is no element vertex"),
        (
            "property float x",
            "property real x",
            "cannot make sense of line 5 of the header, \"property real x\"",
        ),
        ("format ascii 1.0\n", "", "the header has no format"),
    ] {
        assert_eq!(
            error("a.ply", TEXT.replace(from, to), &plain()),
            format!("a.ply: not a valid PLY file: {detail}")
        );
    }
    assert_eq!(
        error("a.ply", TEXT.replace("vertex 3", "vertex 99999999999999999"), &plain()),
        "a.ply: not a valid PLY file: row 4 of vertex has too few values"
    );
    assert_eq!(
        error("a.ply", "x,y\n1,2\n", &plain()),
        "a.ply: expected a PLY file, but the content is text"
    );
    assert_eq!(
        error("a.ply", TEXT.replace("element vertex 3", "element vertex 0"), &plain()),
        "a.ply: no rows of data"
    );
}

/// A list before the vertices and one within them, in both byte orders.
#[test]
fn lists_are_passed_over() {
    for (format, big) in [("binary_little_endian", false), ("binary_big_endian", true)] {
        let mut bytes = format!(
            "ply\nformat {format} 1.0\nelement strip 2\nproperty list ushort short i\n\
             element vertex 2\nproperty double x\nproperty list uchar float l\n\
             property double y\nproperty double y\nend_header\n"
        )
        .into_bytes();
        let mut put = |number: &[u8]| {
            let mut number = number.to_vec();
            if big {
                number.reverse();
            }
            bytes.extend(number);
        };
        put(&2_u16.to_le_bytes());
        put(&7_i16.to_le_bytes());
        put(&8_i16.to_le_bytes());
        put(&0_u16.to_le_bytes());
        for row in 0..2 {
            put(&f64::from(row).to_le_bytes());
            put(&[1]);
            put(&9.0_f32.to_le_bytes());
            put(&0.5_f64.to_le_bytes());
            put(&1.5_f64.to_le_bytes());
        }
        let cloud = get("a.ply", &bytes, &columns("1 3 4"));
        assert_eq!(f64s(&cloud), [0.0, 0.5, 1.5, 1.0, 0.5, 1.5]);
        assert_eq!(
            error("a.ply", &bytes, &columns("l")),
            "a.ply: column \"l\" holds lists, not numbers; \
             select the numeric columns with --columns"
        );
        assert_eq!(
            error("a.ply", &bytes[..bytes.len() - 1], &columns("1")),
            "a.ply: the file is truncated: the header promises 2 rows of vertex, and 1 are there; \
             get a complete copy"
        );
    }
}

/// What another implementation writes.
#[test]
fn agrees_with_ply_rs() {
    for encoding in [Encoding::Ascii, Encoding::BinaryLittleEndian, Encoding::BinaryBigEndian] {
        let mut ply = Ply::<DefaultElement>::new();
        ply.header.encoding = encoding;
        let mut vertex = ElementDef::new("vertex".to_owned());
        for (name, kind) in [
            ("x", ScalarType::Float),
            ("y", ScalarType::Float),
            ("n", ScalarType::Short),
            ("w", ScalarType::Double),
        ] {
            let kind = PropertyType::Scalar(kind);
            vertex.properties.add(PropertyDef::new(name.to_owned(), kind));
        }
        ply.header.elements.add(vertex);
        let rows = [(0.5, -1.25, -3, 1e-150), (1e-3, 7.0, 300, 0.1)];
        let elements = rows.map(|(x, y, n, w)| {
            let mut element = DefaultElement::new();
            element.insert("x".to_owned(), Property::Float(x));
            element.insert("y".to_owned(), Property::Float(y));
            element.insert("n".to_owned(), Property::Short(n));
            element.insert("w".to_owned(), Property::Double(w));
            element
        });
        ply.payload.insert("vertex".to_owned(), elements.to_vec());
        let mut bytes = Vec::new();
        Writer::new().write_ply(&mut bytes, &mut ply).unwrap();

        let cloud = get("a.ply", &bytes, &weights("w"));
        assert_eq!(f32s(&cloud), [0.5, -1.25, 1e-3, 7.0], "{encoding:?}");
        assert_eq!(cloud.weights, Some(vec![1e-150, 0.1]));
        assert_eq!(f64s(&get("a.ply", &bytes, &columns("n"))), [-3.0, 300.0]);
    }
}
