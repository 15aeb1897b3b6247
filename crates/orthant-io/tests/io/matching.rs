//! Columns of two files.

use crate::common::*;
use orthant_io::{Cloud, Error, match_columns};

fn pair(x: &str, y: &str) -> (Cloud, Cloud) {
    (get("x.csv", x, &plain()), get("y.csv", y, &plain()))
}

fn refused(x: &str, y: &str) -> String {
    let (x, mut y) = pair(x, y);
    let before = y.clone();
    let error = match_columns(&x, &mut y).unwrap_err();
    assert_eq!(y, before);
    message(&error)
}

#[test]
fn names_in_any_order() {
    let (x, mut y) = pair("a,b,c\n1,2,3\n4,5,6\n", "c,a,b\n30,10,20\n60,40,50\n");
    match_columns(&x, &mut y).unwrap();
    assert_eq!(f64s(&y), [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    assert_eq!(y.positions, [1, 2, 0]);
    assert_eq!(y.columns, x.columns);
    // Single precision too.
    let x = load("groups_f4.parquet", &columns("u v"));
    let mut y = load("groups_f4.parquet", &columns("v u"));
    match_columns(&x, &mut y).unwrap();
    assert_eq!((y.values, y.positions), (x.values, vec![0, 1]));
}

#[test]
fn other_names_are_an_error() {
    assert_eq!(
        refused("a,b\n1,2\n", "a,c\n1,2\n"),
        "y.csv has the columns \"a\", \"c\" and x.csv has \"a\", \"b\"; choose the same ones with \
         --columns, or match them by their order with --by-position"
    );
    // Also of another number.
    assert!(refused("a,b\n1,2\n", "a\n1\n").contains("y.csv has the columns \"a\" and"));
    // The same name twice tells nothing, unless all is in the same order.
    assert!(refused("a,a\n1,2\n", "a,b\n1,2\n").contains("--by-position"));
    assert!(refused("a,a,b\n1,2,3\n", "a,b,a\n1,2,3\n").contains("--by-position"));
    let (x, mut y) = pair("a,a\n1,2\n", "a,a\n3,4\n");
    match_columns(&x, &mut y).unwrap();
    assert_eq!(f64s(&y), [3.0, 4.0]);
}

#[test]
fn without_names_by_position() {
    let (x, mut y) = pair("a,b\n1,2\n", "5.5,6\n7,8\n");
    match_columns(&x, &mut y).unwrap();
    assert_eq!(f64s(&y), [5.5, 6.0, 7.0, 8.0]);
    assert_eq!(
        refused("a,b\n1,2\n", "5.5,6,7\n7,8,9\n"),
        "x.csv has 2 coordinates and y.csv has 3; use --columns to choose the same ones"
    );
    let (x, mut y) = pair("5.5\n6\n", "a,b\n1,2\n");
    let error = match_columns(&x, &mut y).unwrap_err();
    assert!(matches!(error, Error::DifferentDimensions { expected: 1, found: 2, .. }));
    assert!(message(&error).starts_with("x.csv has 1 coordinate and y.csv has 2;"));
}
