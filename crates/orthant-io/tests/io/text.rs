//! Tables in text.

use crate::common::*;

#[test]
fn with_a_header() {
    let cloud = get("a.csv", "x,y\n1,2\n3,4\n", &plain());
    assert_eq!(f64s(&cloud), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!((cloud.len(), cloud.dim, cloud.dropped), (2, 2, 0));
    assert_eq!(cloud.columns, Some(vec!["x".to_owned(), "y".to_owned()]));
    assert_eq!(cloud.weights, None);
    assert!(!cloud.is_empty());
}

#[test]
fn without_a_header() {
    let cloud = get("a.csv", "1,2\n3,4", &plain());
    assert_eq!(f64s(&cloud), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(cloud.columns, None);
}

#[test]
fn a_first_row_with_a_gap_is_a_row() {
    let text = "1,\n3,4\n";
    let cloud = get("a.csv", text, &dropping());
    assert_eq!((f64s(&cloud), cloud.dropped), (&[3.0, 4.0][..], 1));
    assert_eq!(
        error("a.csv", text, &plain()),
        "a.csv: row 1 (line 1), column 2: the value is missing (empty); \
         use --missing drop to skip such rows"
    );
}

#[test]
fn text_beside_the_selected_columns_does_not_make_a_header() {
    let text = "oslo,1,2\nrome,3,4\n";
    assert_eq!(get("a.csv", text, &columns("2-3")).len(), 2);
    let cloud = get("a.csv", "city,lat,lon\noslo,1,2\n", &columns("2-3"));
    assert_eq!(cloud.len(), 1);
    assert_eq!(cloud.columns, Some(vec!["lat".to_owned(), "lon".to_owned()]));
}

#[test]
fn names_that_are_asked_for_do_not_make_a_header() {
    let text = "2020,2021\n1,2\n";
    assert_eq!(
        error("a.csv", text, &columns("2021")),
        "a.csv: no column \"2021\"; the columns have no names; give positions from 1 to 2, \
         or use --header yes as the first line has that name"
    );
    let mut options = columns("2021");
    options.header = orthant_io::Header::Yes;
    assert_eq!(f64s(&get("a.csv", text, &options)), [2.0]);
}

#[test]
fn line_ends_blank_lines_comments_and_marks() {
    for text in [
        "x,y\n1,2\n3,4",
        "x,y\r\n1,2\r\n3,4\r\n",
        "x,y\r1,2\r3,4\r",
        "\u{feff}x,y\n1,2\n3,4\n\n\n",
        "\u{feff}# c\n\n\"x\",\"y\"\n1,2\n  \n# d\n\"3\",\" 4 \"\n",
    ] {
        let cloud = get("a.csv", text, &plain());
        assert_eq!(f64s(&cloud), [1.0, 2.0, 3.0, 4.0], "{text:?}");
        assert_eq!(cloud.columns.unwrap(), ["x", "y"], "{text:?}");
    }
}

#[test]
fn delimiters() {
    for (name, text) in [
        ("a.tsv", "x y\tz\n1\t2\n"),
        ("a.txt", "x y\tz\n1\t2\n"),
        ("a.csv", "x y;z\n1;2\n"),
        ("a.dat", "\"x y\"   z\n  1 \t 2\n"),
        ("a.csv", "x y, z\n1, 2\n"),
        ("-", "x y,z\n1,2\n"),
        ("a.unknown", "x y,z\n1,2\n"),
    ] {
        let cloud = get(name, text, &plain());
        assert_eq!(f64s(&cloud), [1.0, 2.0], "{text:?}");
        assert_eq!(cloud.columns.unwrap(), ["x y", "z"], "{text:?}");
    }
}

#[test]
fn one_column_one_point_and_equal_points() {
    let cloud = get("a.csv", "5\n", &plain());
    assert_eq!((f64s(&cloud), cloud.dim), (&[5.0][..], 1));
    let cloud = get("a.csv", "1,2\n", &plain());
    assert_eq!((cloud.len(), cloud.dim), (1, 2));
    let cloud = get("a.csv", "1,2\n1,2\n1,2\n", &plain());
    assert_eq!(cloud.len(), 3);
    let cloud = get("a.csv", "1\n\"\"\n2\n", &dropping());
    assert_eq!((f64s(&cloud), cloud.dropped), (&[1.0, 2.0][..], 1));
}

#[test]
fn weights_by_name_and_position() {
    for option in ["w", "2"] {
        let cloud = get("a.csv", "x,w,y\n1,10,2\n3,20,4\n", &weights(option));
        assert_eq!(f64s(&cloud), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(cloud.weights, Some(vec![10.0, 20.0]));
        assert_eq!(cloud.columns.unwrap(), ["x", "y"]);
    }
    let mut options = dropping();
    options.weights = Some("w".to_owned());
    let cloud = get("a.csv", "x,w\n1,\n2,20\nNA,30\n4,-1\n", &options);
    assert_eq!(f64s(&cloud), [2.0, 4.0]);
    assert_eq!((cloud.weights, cloud.dropped), (Some(vec![20.0, -1.0]), 2));
}

#[test]
fn every_marker_of_a_missing_value() {
    let text = "x,y\n1,\n2,NA\n3,n/a\n4,NaN\n5,null\n6,None\n7,?\n8,-nan\n9,<NA>\n0,1\n";
    let cloud = get("a.csv", text, &dropping());
    assert_eq!((f64s(&cloud), cloud.dropped), (&[0.0, 1.0][..], 9));
    assert_eq!(
        error("a.csv", "x,age\n\n1,2\n3,n/a\n", &plain()),
        "a.csv: row 2 (line 4), column \"age\": the value is missing (n/a); \
         use --missing drop to skip such rows"
    );
    assert_eq!(
        error("a.csv", "x,y\n1,\n,2\n", &dropping()),
        "a.csv: no rows are left: each of the 2 rows has a missing value; \
         leave out the columns with gaps using --columns"
    );
}

#[test]
fn infinite_values() {
    for value in ["inf", "-Infinity", "1e999"] {
        let text = format!("x,y\n1,2\n3,{value}\n");
        for options in [plain(), dropping()] {
            assert_eq!(
                error("a.csv", &text, &options),
                format!(
                    "a.csv: row 2 (line 3), column \"y\": {value} is not finite; \
                     remove the row or replace the value"
                )
            );
        }
    }
}

#[test]
fn words_where_numbers_belong() {
    assert_eq!(
        error("a.csv", "x,y\n1,2\n3,four\n", &dropping()),
        "a.csv: row 2 (line 3), column \"y\": cannot read \"four\" as a number; \
         correct it, or select the numeric columns with --columns"
    );
    assert_eq!(
        error("a.csv", "1,2\n3,four\n", &plain()),
        "a.csv: row 2 (line 2), column 2: cannot read \"four\" as a number; \
         correct it, or select the numeric columns with --columns"
    );
    assert_eq!(
        error("a.csv", "x;y\n1,5;2\n", &plain()),
        "a.csv: row 1 (line 2), column \"x\": cannot read \"1,5\" as a number; \
         write decimals with a point, or use --decimal ,"
    );
    let long = error("a.csv", format!("x\n\"{}\n\"", "ab\ncd".repeat(99)), &plain());
    assert!(long.len() < 200, "{long}");
}

#[test]
fn ragged_rows() {
    assert_eq!(
        error("a.csv", "x,y\n1,2\n3\n", &plain()),
        "a.csv: row 2 (line 3) has 1 field, but the first line has 2; \
         every row needs the same number of fields"
    );
    assert_eq!(
        error("a.txt", "1 2\n3 4 5\n", &dropping()),
        "a.txt: row 2 (line 2) has 3 fields, but the first line has 2; \
         every row needs the same number of fields"
    );
}

#[test]
fn nothing_to_read() {
    assert_eq!(error("a.csv", "", &plain()), "a.csv: the file is empty");
    assert_eq!(error("-", "", &plain()), "standard input: the file is empty");
    assert_eq!(
        error("a.csv", "x,y\n", &plain()),
        "a.csv: no rows of data; the only line is the header"
    );
    assert_eq!(error("a.csv", "\n# c\n\n", &plain()), "a.csv: no rows of data");
}

#[test]
fn columns_that_are_not_there() {
    let text = "x,y\n1,2\n";
    assert_eq!(
        error("a.csv", text, &columns("x z")),
        "a.csv: no column \"z\"; the columns are \"x\", \"y\""
    );
    assert_eq!(
        error("a.csv", text, &columns("3")),
        "a.csv: no column \"3\"; the columns are \"x\", \"y\""
    );
    assert_eq!(
        error("a.csv", "1,2\n3,4\n", &columns("x")),
        "a.csv: no column \"x\"; the columns have no names; give positions from 1 to 2"
    );
    assert_eq!(
        error("a.csv", text, &weights("mass")),
        "a.csv: no column \"mass\"; the columns are \"x\", \"y\""
    );
    assert_eq!(
        error("a.csv", "1\n2\n", &weights("1")),
        "a.csv: no columns are left for the coordinates; select at least one with --columns"
    );
}

#[test]
fn an_index_without_a_name_is_not_taken_for_a_coordinate() {
    let cloud = load("pandas_index.csv", &weights("w"));
    assert_eq!(cloud.columns.as_ref().unwrap(), &["x", "y"]);
    assert_eq!(cloud.positions, [1, 2]);
    let notes: Vec<String> = cloud.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "tests/fixtures/pandas_index.csv: column \"name\" holds text and is left out",
            "tests/fixtures/pandas_index.csv: column 1 numbers the rows and is left out; \
             name it in --columns to use it as a coordinate"
        ]
    );
    for text in [",x\n5,1\n7,2\n", "Unnamed: 0,x\n5,1\n7,2\n", "x,\n1,0\n2,1\n"] {
        assert!(
            error("a.csv", text, &plain()).ends_with(
                "has no name and may be a row index; say which columns are coordinates with --columns"
            ),
            "{text}"
        );
    }
    // Rows that were dropped count; pandas calls the column so when it reads it again.
    for (text, dropped) in [("Unnamed: 0,x\n1,5\n2,\n3,6\n", 1), (",x\n0,5\n1,6\n", 0)] {
        let cloud = get("a.csv", text, &dropping());
        assert_eq!((f64s(&cloud), cloud.dropped), (&[5.0, 6.0][..], dropped));
        assert_eq!(cloud.notes.len(), 1);
    }
    assert_eq!(load("pandas_index.csv", &columns("x y")).len(), 4);
}

#[test]
fn written_by_others() {
    for name in ["pandas.csv", "pandas.csv.gz", "pandas.tsv"] {
        let mut options = columns("x y");
        options.weights = Some("w".to_owned());
        let cloud = load(name, &options);
        let expected: Vec<f64> = POINTS.chunks(3).flat_map(|p| [p[0], p[1]]).collect();
        assert_bits(f64s(&cloud), &expected);
        assert_eq!(cloud.weights, Some(vec![1.0, 2.0, 3.0, 4.0]), "{name}");
        let cloud = load(name, &plain());
        assert_eq!(cloud.columns.unwrap(), ["x", "y", "w"], "{name}");
        assert!(cloud.notes[0].to_string().ends_with("column \"name\" holds text and is left out"));
    }
    assert_bits(f64s(&load("savetxt.txt", &plain())), &POINTS);
}

#[test]
fn foreign_content() {
    let error = |bytes: &[u8]| error("a.csv", bytes, &plain());
    let start = "a.csv: expected a table in text, but the content is ";
    for (bytes, found) in [
        (&b"\x89PNG\r\n\x1a\n\0\0"[..], "a PNG image"),
        (b"<!DOCTYPE html>\n<p>", "an HTML or XML page"),
        (b"\n<html>", "an HTML or XML page"),
        (b"\xff\xfe1\0,\0", "text in UTF-16; save it as UTF-8"),
        (b"%PDF-1.7", "a PDF document"),
        (b"PK\x03\x04", "a zip archive"),
        (b"1,2\n\0\x01\x02", "binary data"),
        (b"\x93NUMPY\x01\0", "a NumPy array"),
        (b"ply\nformat ascii 1.0\n", "a PLY file"),
    ] {
        assert_eq!(error(bytes), format!("{start}{found}"));
    }
    assert_eq!(
        error(b"\x1f\x8b\x08\0"),
        "a.csv: expected an uncompressed file, but the content is compressed with gzip; \
         rename it to a.csv.gz"
    );
}

/// A file of many rows, larger than the sample by which the delimiter is found.
#[test]
fn many_rows() {
    let lines: Vec<_> = (0..40_000).map(|i| format!("{i};{}", -i)).collect();
    let text = lines.join("\n");
    let cloud = get("a.txt", text, &plain());
    assert_eq!((cloud.len(), cloud.dim), (40_000, 2));
    assert!(f64s(&cloud).chunks(2).enumerate().all(|(i, p)| p == [i as f64, -(i as f64)]));
}

#[test]
fn columns_of_text_come_along() {
    let mut options = plain();
    options.others = orthant_io::Others::These(vec!["kind".to_owned()]);
    let text = "kind,x\n\" a, b\",1\nNA,2\nc,3\n7,\n";
    let mut skipping = options.clone();
    skipping.missing = orthant_io::Missing::Drop;
    let cloud = get("a.csv", text, &skipping);
    assert_eq!((f64s(&cloud), cloud.dim, cloud.dropped), (&[1.0, 3.0][..], 1, 2));
    assert_eq!(cloud.others[0].cells, ["a, b", "c"]);
    assert_eq!((cloud.others[0].name.as_deref(), cloud.others[0].position), (Some("kind"), 0));
    // A label that is missing is missing.
    assert!(error("a.csv", text, &options).contains(r#"row 2 (line 3), column "kind""#));
    options.columns = Some(vec!["kind".to_owned()]);
    assert!(error("a.csv", text, &options).contains(r#"column "kind" is selected twice"#));
    options.columns = None;
    options.others = orthant_io::Others::These(vec!["2".to_owned()]);
    let cloud = get("a.csv", "1,u\n2,v\n", &options);
    assert_eq!(
        (f64s(&cloud), &cloud.others[0].cells[..]),
        (&[1.0, 2.0][..], &["u".into(), "v".into()][..])
    );
}
