//! What is a header, and what columns hold.

use crate::common::*;
use orthant_io::{Header, Note, ReadOptions};

fn with_header(header: Header) -> ReadOptions {
    let mut options = plain();
    options.header = header;
    options
}

/// `pandas.DataFrame(array).to_csv(index=False)`.
#[test]
fn names_from_zero_are_a_header() {
    for options in [plain(), columns("1-2"), columns("1"), columns("2"), columns("0")] {
        let cloud = get("a.csv", "0,1\n0.5,1.5\n2.5,3.5\n", &options);
        assert_eq!(cloud.len(), 2, "{options:?}");
        assert_eq!(notes(&cloud), [""; 0]);
    }
    let cloud = get("a.csv", "0,1\n0.5,1.5\n", &plain());
    assert_eq!(cloud.columns.unwrap(), ["0", "1"]);
    // A name wins over a position.
    assert_eq!(f64s(&get("a.csv", "0,1\n0.5,1.5\n", &columns("1"))), [1.5]);
}

/// The same first line whichever columns are wanted, and however they are called.
#[test]
fn all_columns_decide() {
    for (text, rows) in [
        ("1,x,3\n4,5,6\n", 1),
        ("2,b\n4,5\n", 1),
        ("oslo,1,2\nrome,3,4\n", 2),
        ("city,1,2\noslo,3,4\n", 2),
        ("NA,x\n1,2\n", 1),
    ] {
        for option in ["1", "2", "1-2"] {
            let asked = columns(option);
            let Ok(cloud) = orthant_io::read_bytes("a.csv", text.as_bytes(), &asked) else {
                continue;
            };
            assert_eq!(cloud.len(), rows, "{text:?} {option}");
        }
        assert_eq!(get("a.csv", text, &plain()).len(), rows, "{text:?}");
    }
}

#[test]
fn doubt_is_noted_and_can_be_settled() {
    let text = "1,2\n0.5,1.5\n";
    let cloud = get("a.csv", text, &plain());
    assert_eq!(cloud.len(), 1);
    assert_eq!(
        notes(&cloud),
        ["the first line \"1, 2\" is taken for a header; use --header no if it is not"]
    );
    assert!(matches!(cloud.notes[0], Note::AmbiguousHeader { header: true, .. }));
    let cloud = get("a.csv", "1,2\n3,4\n", &plain());
    assert_eq!(cloud.len(), 2);
    assert_eq!(
        notes(&cloud),
        ["the first line \"1, 2\" is taken for a row; use --header yes if it is not"]
    );
    for (header, rows) in [(Header::Yes, 1), (Header::No, 2)] {
        for text in [text, "1,2\n3,4\n", "0,1\n3,4\n"] {
            let cloud = get("a.csv", text, &with_header(header));
            assert_eq!((cloud.len(), notes(&cloud)), (rows, vec![]), "{text:?}");
            assert_eq!(cloud.columns.is_some(), header == Header::Yes);
        }
    }
    // A header that is denied is a row of words.
    assert!(error("a.csv", "x,y\n1,2\n", &with_header(Header::No)).contains("row 1 (line 1)"));
}

#[test]
fn text_columns_are_left_out() {
    let text = "city,lat,lon,country\noslo,59.9,10.7,NO\nrome,41.9,12.5,IT\n";
    let cloud = get("a.csv", text, &plain());
    assert_eq!(cloud.columns.as_ref().unwrap(), &["lat", "lon"]);
    assert_eq!(cloud.positions, [1, 2]);
    assert_eq!(notes(&cloud), ["columns \"city\", \"country\" hold text and are left out"]);
    // Nothing to say where the columns were chosen, or the text is asked for.
    assert_eq!(notes(&get("a.csv", text, &columns("lat lon"))), [""; 0]);
    let mut options = plain();
    options.others = orthant_io::Others::These(vec!["city".to_owned()]);
    options.skip = vec!["country".to_owned()];
    assert_eq!(notes(&get("a.csv", text, &options)), [""; 0]);
    // Without names.
    let cloud = get("a.csv", "a,1,2\nb,3,4\n", &plain());
    assert_eq!(notes(&cloud), ["column \"1\" holds text and is left out"]);
    assert_eq!(cloud.positions, [1, 2]);
    // Gaps are no text, and a number among words is a column of numbers.
    assert_eq!(get("a.csv", "x,y\nNA,1\nNA,2\n3,4\n", &dropping()).len(), 1);
    assert!(error("a.csv", "x,y\nfoo,1\n2,2\n", &plain()).contains("row 1 (line 2), column \"x\""));
    assert_eq!(
        error("a.csv", "a,b\nu,v\nw,z\n", &plain()),
        "a.csv: none of the columns holds numbers; the columns are \"a\", \"b\"; \
         if another character separates the fields of a table, name it with --separator"
    );
    // Asked for by name it must be numbers.
    assert!(error("a.csv", text, &columns("city")).contains("cannot read \"oslo\" as a number"));
    assert!(error("a.csv", text, &weights("city")).contains("cannot read \"oslo\" as a number"));
}

#[test]
fn identifiers_are_noted() {
    let rows = |name: &str, ids: &[i32]| {
        let lines: Vec<String> = ids.iter().map(|i| format!("{i},{}.5\n", i % 3)).collect();
        format!("{name},x\n{}", lines.concat())
    };
    let warned = |text: &str| {
        let cloud = get("a.csv", text, &plain());
        assert_eq!(cloud.dim, 2);
        notes(&cloud)
    };
    let note = |name: &str| {
        format!(
            "column \"{name}\" looks like an identifier of the rows and is used as a coordinate; \
             choose the coordinates with --columns if it is none"
        )
    };
    for name in ["id", "ID", "Index", "user_id", "cellID"] {
        assert_eq!(warned(&rows(name, &[7, 3, 5])), [note(name)]);
        assert_eq!(warned(&rows(name, &[7, 3, 7])), [""; 0]);
    }
    assert_eq!(warned(&rows("k", &[1, 2, 3, 5, 9])), [note("k")]);
    assert_eq!(warned(&rows("k", &[9, 8, 3, 2, 1])), [note("k")]);
    assert_eq!(warned(&rows("k", &[1, 2, 3, 9, 5])), [""; 0]);
    let text = rows("id", &[1, 2, 3, 4, 5]);
    assert_eq!(notes(&get("a.csv", &text, &columns("id x"))), [""; 0]);
    assert_eq!(notes(&get("a.csv", &text, &weights("id"))), [""; 0]);
    // A single column is the data, and so are several that are all sorted.
    let curve: Vec<String> = (0..9).map(|i| format!("{i},{}\n", i * i)).collect();
    assert_eq!(notes(&get("a.csv", curve.concat(), &plain())), [""; 0]);
    assert_eq!(notes(&get("a.csv", "1\n2\n3\n4\n5\n6\n", &plain())), [""; 0]);
}

#[test]
fn separators_and_decimals() {
    let with = |separator: Option<u8>, comma: bool| {
        let mut options = plain();
        options.separator = separator;
        options.decimal_comma = comma;
        options
    };
    for (text, options) in [
        ("x|y\n1.5|2\n", plain()),
        ("x:y\n1.5:2\n", with(Some(b':'), false)),
        ("x;y\n1,5;2\n", with(None, true)),
        ("x;y\n1,5;2\n", with(Some(b';'), true)),
        ("x\ty\n1,5\t2\n", with(None, true)),
        ("x y\n1,5  2\n", with(None, true)),
        (" x   y\n1.5 2\n", with(Some(b' '), false)),
        ("x|y\n1,5|2\n", with(None, true)),
    ] {
        for name in ["a.csv", "a.txt"] {
            let cloud = get(name, text, &options);
            assert_eq!(f64s(&cloud), [1.5, 2.0], "{text:?}");
            assert_eq!(cloud.columns.unwrap(), ["x", "y"], "{text:?}");
        }
    }
    assert_eq!(f64s(&get("a.tsv", "1;2\n3;4\n", &with(Some(b';'), false))).len(), 4);
    assert_eq!(
        error("a.csv", "x;y\n1.5;2\n", &with(None, true)),
        "a.csv: row 1 (line 2), column \"x\": cannot read \"1.5\" as a number; \
         write decimals with a comma, or leave out --decimal"
    );
    assert_eq!(
        error("a.csv", "1,2\n", &with(Some(b','), true)),
        "a.csv: the separator \",\" is not supported; it stands before decimals; \
         give --separator another character"
    );
    let mut options = with(None, true);
    options.others = orthant_io::Others::All;
    options.columns = Some(vec!["x".to_owned()]);
    let cloud = get("a.csv", "x;y\n1,5;2,25\n", &options);
    assert_eq!(cloud.others[0].numbers(), Some(vec![2.25]));
}

#[test]
fn rows_are_those_of_the_file() {
    let text = "# c\nx,y\n1,2\n\n,3\nNA,4\n5,6\n7,\n8,9\n";
    let cloud = get("a.csv", text, &dropping());
    assert_eq!((0..cloud.len()).map(|i| cloud.row(i)).collect::<Vec<_>>(), [1, 4, 6]);
    assert_eq!((cloud.dropped, cloud.total_rows(), cloud.rows.dropped()), (3, 6, 3));
    let cloud = load("nulls.parquet", &dropping());
    assert_eq!((0..3).map(|i| cloud.row(i)).collect::<Vec<_>>(), [1, 3, 6]);
    let cloud = load("nan.npy", &dropping());
    assert_eq!((cloud.row(0), cloud.row(1), cloud.total_rows()), (1, 3, 3));
    let cloud = get("a.csv", "1,2\n3,4\n", &plain());
    assert_eq!((cloud.row(1), cloud.total_rows()), (2, 2));
}

#[test]
fn the_weights_have_a_name() {
    let name = |options: &ReadOptions| get("a.csv", "x,w\n1,2\n", options).weights_name;
    assert_eq!(name(&weights("w")).as_deref(), Some("w"));
    assert_eq!(name(&weights("2")).as_deref(), Some("w"));
    assert_eq!(name(&plain()), None);
    let cloud = get("a.csv", "5,2\n6,7\n", &weights("2"));
    assert_eq!(cloud.weights_name.as_deref(), Some("2"));
}
