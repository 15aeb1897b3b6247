//! Columns beside the coordinates.

use crate::common::*;
use orthant_io::{Cloud, Others, ReadOptions};

fn with(mut options: ReadOptions, others: Others) -> ReadOptions {
    options.others = others;
    options
}

fn these(names: &str) -> Others {
    Others::These(names.split(' ').map(ToOwned::to_owned).collect())
}

/// Name, position and cells of each.
fn cells(cloud: &Cloud) -> Vec<(Option<&str>, usize, Vec<&str>)> {
    let of = |o: &orthant_io::Other| o.cells.iter().map(String::as_str).collect::<Vec<_>>().len();
    assert!(cloud.others.iter().all(|o| of(o) == cloud.len()));
    (cloud.others.iter())
        .map(|o| (o.name.as_deref(), o.position, o.cells.iter().map(String::as_str).collect()))
        .collect()
}

const CITIES: &str =
    "city,lat,lon,people\n\"Oslo, NO\",59.9,10.7,709000\n Rome ,41.9,12.5,2750000\n";

#[test]
fn all_columns_of_a_text_come_along() {
    let cloud = get("a.csv", CITIES, &plain_with_columns());
    assert_eq!(cloud.positions, [2, 1]);
    assert_eq!(cloud.others, []);
    let cloud = get("a.csv", CITIES, &with(plain_with_columns(), Others::All));
    assert_eq!(
        cells(&cloud),
        [
            (Some("city"), 0, vec!["Oslo, NO", "Rome"]),
            (Some("people"), 3, vec!["709000", "2750000"])
        ]
    );
    assert_eq!(cloud.others[0].numbers(), None);
    assert_eq!(cloud.others[1].numbers(), Some(vec![709_000.0, 2_750_000.0]));
    // The weights too.
    let mut options = with(plain_with_columns(), Others::All);
    options.weights = Some("people".to_owned());
    let weighted = get("a.csv", CITIES, &options);
    assert_eq!(cells(&weighted), cells(&cloud));
    assert_eq!(weighted.weights, Some(vec![709_000.0, 2_750_000.0]));
    // Without a header they have places only.
    let cloud = get("a.csv", "a,1,2\nb,3,4\n", &with(columns("2-3"), Others::All));
    assert_eq!(cells(&cloud), [(None, 0, vec!["a", "b"])]);
    assert_eq!(cloud.positions, [1, 2]);
}

fn plain_with_columns() -> ReadOptions {
    columns("lon lat")
}

#[test]
fn chosen_columns_are_no_coordinates() {
    let cloud = get("a.csv", CITIES, &with(weights("people"), these("city")));
    assert_eq!((cloud.dim, f64s(&cloud)), (2, &[59.9, 10.7, 41.9, 12.5][..]));
    assert_eq!(cells(&cloud), [(Some("city"), 0, vec!["Oslo, NO", "Rome"])]);
    let cloud = get("a.csv", "1,2,a\n3,4,b\n", &with(plain(), these("3 1")));
    assert_eq!(f64s(&cloud), [2.0, 4.0]);
    assert_eq!(cells(&cloud), [(None, 2, vec!["a", "b"]), (None, 0, vec!["1", "3"])]);
    // Evenly spaced numbers above others are names.
    let cloud = get("a.csv", "2019,2020,2021\n1.5,2.5,3.5\n", &with(plain(), these("2021")));
    assert_eq!(
        (f64s(&cloud), cells(&cloud)),
        (&[1.5, 2.5][..], vec![(Some("2021"), 2, vec!["3.5"])])
    );
    assert_eq!(
        error("a.csv", CITIES, &with(plain(), these("town"))),
        "a.csv: no column \"town\"; the columns are \"city\", \"lat\", \"lon\", \"people\""
    );
    let both = error("a.csv", CITIES, &with(plain_with_columns(), these("lat")));
    assert!(both.starts_with("a.csv: column \"lat\" is selected twice"), "{both}");
    // What is to be passed over need not be there.
    let mut options = plain();
    options.skip = vec!["city".to_owned(), "nope".to_owned(), "9".to_owned()];
    assert_eq!(get("a.csv", CITIES, &options).dim, 3);
}

#[test]
fn missing_values_count_in_chosen_columns_alone() {
    let text = "x,k\n1,a\n2,\n3,NA\n4,b\n";
    assert_eq!(
        error("a.csv", text, &with(plain(), these("k"))),
        "a.csv: row 2 (line 3), column \"k\": the value is missing (empty); \
         use --missing drop to skip such rows"
    );
    let cloud = get("a.csv", text, &with(dropping(), these("k")));
    assert_eq!((f64s(&cloud), cloud.dropped), (&[1.0, 4.0][..], 2));
    assert_eq!(cells(&cloud), [(Some("k"), 1, vec!["a", "b"])]);
    let cloud = get("a.csv", text, &with(columns("x"), Others::All));
    assert_eq!(cells(&cloud), [(Some("k"), 1, vec!["a", "", "NA", "b"])]);
    let gap = get("a.csv", "x,k\n1,a\n,b\n3,c\n", &{
        let mut options = with(columns("x"), Others::All);
        options.missing = orthant_io::Missing::Drop;
        options
    });
    assert_eq!(cells(&gap), [(Some("k"), 1, vec!["a", "c"])]);
}

#[test]
fn columns_of_arrays_come_along_as_text() {
    let cloud = load("f8.npy", &with(columns("2"), Others::All));
    let numbers: Vec<Vec<f64>> = cloud.others.iter().map(|o| o.numbers().unwrap()).collect();
    for (c, found) in [0, 2].into_iter().zip(&numbers) {
        let expected: Vec<f64> = POINTS.iter().skip(c).step_by(3).copied().collect();
        assert_bits(found, &expected);
    }
    assert_eq!(cloud.others.iter().map(|o| o.position).collect::<Vec<_>>(), [0, 2]);
    let cloud = load("f4.npy", &with(columns("1"), Others::All));
    assert_eq!(cells(&cloud), [(None, 1, vec!["1", "2", "60"])]);
    let missing = load_error("nan.npy", &with(columns("1"), these("2")));
    assert!(missing.contains("the value is missing (NaN)"), "{missing}");
}

#[test]
fn text_and_numbers_of_parquet_come_along() {
    for codec in ["snappy", "gzip", "lz4", "none"] {
        let mut options = with(columns("x"), Others::All);
        options.weights = Some("w".to_owned());
        let cloud = load(&format!("{codec}.parquet"), &options);
        let expected: Vec<f64> = POINTS.iter().skip(1).step_by(3).copied().collect();
        assert_bits(&cloud.others[0].numbers().unwrap(), &expected);
        assert_eq!(
            cells(&cloud)[1..],
            [(Some("name"), 2, vec!["a", "b", "c", "d"]), (Some("w"), 3, vec!["1", "2", "3", "4"])]
        );
    }
    let cloud = load("none.parquet", &with(weights("w"), these("name")));
    assert_eq!((cloud.dim, cells(&cloud).len()), (2, 1));
    // Lists and dates are left behind, and cannot be chosen.
    let all = load("types.parquet", &with(columns("u32"), Others::All));
    let found = |name: &str| all.others.iter().find(|o| o.name.as_deref() == Some(name));
    assert_eq!(found("flag").unwrap().cells, ["true", "false"]);
    assert_eq!(found("small").unwrap().cells, ["-1.25", "2.5"]);
    assert!(found("point.x").is_some() && found("day").is_none() && found("list").is_none());
    let day = load_error("types.parquet", &with(columns("u32"), these("day")));
    assert!(day.contains("column \"day\" holds dates or times"), "{day}");
    let text = load("none.parquet", &with(columns("x"), these("name")));
    assert_eq!(cells(&text), [(Some("name"), 2, vec!["a", "b", "c", "d"])]);
    let null = load_error("nulls.parquet", &with(columns("x"), these("n")));
    assert!(null.contains("row 2, column \"x\""), "{null}");
    let mut options = with(columns("x"), these("n"));
    options.missing = orthant_io::Missing::Drop;
    assert_eq!(cells(&load("nulls.parquet", &options)), [(Some("n"), 1, vec!["1", "3", "6"])]);
}

#[test]
fn properties_of_ply_come_along() {
    let text = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\n\
                property uchar red\nproperty list uchar int near\nproperty float q\nend_header\n\
                0.1 1 255 2 7 8 0.3\n2 3 0 0 nan\n";
    let mut options = with(plain(), Others::All);
    options.weights = Some("red".to_owned());
    let cloud = get("a.ply", text, &options);
    assert_eq!(f32s(&cloud), [0.1, 1.0, 2.0, 3.0]);
    assert_eq!(cloud.weights, Some(vec![255.0, 0.0]));
    assert_eq!(
        cells(&cloud),
        [(Some("red"), 2, vec!["255", "0"]), (Some("q"), 4, vec!["0.3", "NaN"])]
    );
    let cloud = get("a.ply", text, &with(dropping(), these("q")));
    assert_eq!((cloud.len(), cloud.dropped), (1, 1));
    let twice = get("a.ply", text, &with(plain(), these("red red")));
    let red = || (Some("red"), 2, vec!["255", "0"]);
    assert_eq!(cells(&twice), [red(), red()]);
    let list = error("a.ply", text, &with(plain(), these("near")));
    assert!(list.contains("holds lists, not numbers"), "{list}");
}
