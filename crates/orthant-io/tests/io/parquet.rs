//! Parquet tables.

use crate::common::*;

#[test]
fn every_supported_compression() {
    for codec in ["snappy", "gzip", "lz4", "none", "zstd", "brotli"] {
        let mut options = columns("x y");
        options.weights = Some("w".to_owned());
        let cloud = load(&format!("{codec}.parquet"), &options);
        let expected: Vec<f64> = POINTS.chunks(3).flat_map(|p| [p[0], p[1]]).collect();
        assert_bits(f64s(&cloud), &expected);
        assert_eq!(cloud.weights, Some(vec![1.0, 2.0, 3.0, 4.0]));
        assert_eq!(cloud.columns.unwrap(), ["x", "y"]);
    }
}

#[test]
fn text_is_left_out_and_an_error_if_it_is_selected() {
    let cloud = load("snappy.parquet", &plain());
    assert_eq!(cloud.columns.unwrap(), ["x", "y", "w"]);
    assert_eq!(
        cloud.notes[0].to_string(),
        "tests/fixtures/snappy.parquet: column \"name\" holds text and is left out"
    );
    assert_eq!(
        load_error("snappy.parquet", &columns("name")),
        "snappy.parquet: column \"name\" holds text, not numbers; \
         select the numeric columns with --columns"
    );
    assert_eq!(load("snappy.parquet", &columns("1-2")).dim, 2);
    assert_eq!(
        load_error("snappy.parquet", &columns("z")),
        "snappy.parquet: no column \"z\"; the columns are \"x\", \"y\", \"name\", \"w\""
    );
}

#[test]
fn the_index_of_pandas_is_not_a_coordinate() {
    assert_eq!(load("index.parquet", &weights("w")).columns.unwrap(), ["x", "y"]);
    assert_eq!(f64s(&load("index.parquet", &columns("__index_level_0__"))), [9.0, 3.0, 7.0, 6.0]);
}

#[test]
fn nulls_are_missing() {
    let cloud = load("nulls.parquet", &dropping());
    assert_eq!(f64s(&cloud), [1.0, 1.0, 3.0, 3.0, 6.0, 6.0]);
    assert_eq!(cloud.dropped, 3);
    assert_eq!(
        load_error("nulls.parquet", &plain()),
        "nulls.parquet: row 2, column \"x\": the value is missing (null or NaN); \
         use --missing drop to skip such rows"
    );
    assert_eq!(
        load_error("nulls.parquet", &columns("n")),
        "nulls.parquet: row 5, column \"n\": the value is missing (null or NaN); \
         use --missing drop to skip such rows"
    );
}

#[test]
fn floats_in_several_row_groups_stay_floats() {
    let cloud = load("groups_f4.parquet", &plain());
    assert_eq!((cloud.len(), cloud.dim), (300, 2));
    let expected: Vec<f32> = (0_u16..600).map(|i| f32::from(i) / 4.0).collect();
    assert_eq!(f32s(&cloud), expected);
}

#[test]
fn types() {
    let one = |name: &str| f64s(&load("types.parquet", &columns(name))).to_vec();
    assert_eq!(one("u64"), [1.0, 18_446_744_073_709_551_615.0]);
    assert_eq!(one("u32"), [1.0, 4_294_967_295.0]);
    assert_eq!(one("i8"), [-1.0, 127.0]);
    assert_eq!(one("f16"), [0.5, -2.0]);
    assert_eq!(one("small"), [-1.25, 2.5]);
    assert_eq!(one("large"), [-1.25, 1e20]);
    assert_eq!(one("point.y"), [2.0, 4.0]);
    for (name, kind) in [("flag", "booleans"), ("day", "dates or times")] {
        assert_eq!(
            load_error("types.parquet", &columns(name)),
            format!(
                "types.parquet: column \"{name}\" holds {kind}, not numbers; \
                 select the numeric columns with --columns"
            )
        );
    }
    assert!(load_error("types.parquet", &columns("9")).contains("holds lists, not numbers"));
}

#[test]
fn from_memory_and_without_an_extension() {
    let bytes = std::fs::read(fixture("groups_f4.parquet")).unwrap();
    for name in ["-", "a.pq"] {
        let (found, expected) = (get(name, &bytes, &plain()), load("groups_f4.parquet", &plain()));
        assert_eq!((found.values, found.columns), (expected.values, expected.columns));
    }
}

#[test]
fn foreign_and_truncated() {
    assert_eq!(
        error("a.parquet", "1,2\n", &plain()),
        "a.parquet: expected a Parquet file, but the content is text"
    );
    let bytes = std::fs::read(fixture("groups_f4.parquet")).unwrap();
    assert!(
        error("a.parquet", &bytes[..bytes.len() / 2], &plain())
            .starts_with("a.parquet: not a valid Parquet file: ")
    );
}

/// Numbers and texts stored by their differences, in pages of the second version.
#[test]
fn encodings_by_differences() {
    let mut options = columns("i x");
    options.others = orthant_io::Others::All;
    let cloud = orthant_io::read(data("delta.parquet"), &options).unwrap();
    let expected: Vec<f64> = (0..200).flat_map(|i| [f64::from(i), f64::from(i) / 4.0]).collect();
    assert_eq!(f64s(&cloud), expected);
    assert_eq!(cloud.others[0].cells[199], "value number 199");
    assert_eq!(cloud.others[1].cells[..2], ["t0", "t1"]);
}
