//! Arrow files and streams, and Feather.

use std::fs;
use std::sync::Arc;

use crate::common::*;
use arrow_array::{ArrayRef, Decimal128Array, Float32Array, RecordBatch, StringArray, UInt64Array};
use orthant_io::{Others, read, read_bytes};

const FILES: [&str; 4] = ["uncompressed.feather", "lz4.feather", "zstd.feather", "stream.arrow"];

#[test]
fn files_and_streams_of_pyarrow() {
    let x: Vec<f64> = (0..20).map(|i| f64::from(i) / 2.0).collect();
    for name in FILES {
        let cloud = read(data(name), &columns("x y")).unwrap();
        let expected: Vec<f64> = x.iter().flat_map(|x| [*x, x + 0.25]).collect();
        assert_eq!(f64s(&cloud), expected, "{name}");
        let cloud = read(data(name), &columns("y")).unwrap();
        assert_eq!(f32s(&cloud).len(), 20);
        // By its content too.
        let bytes = fs::read(data(name)).unwrap();
        assert_eq!(f64s(&get("-", &bytes, &columns("x"))), x);

        let all = read(data(name), &dropping()).unwrap();
        assert_eq!(all.columns.as_ref().unwrap(), &["x", "y", "n"]);
        assert_eq!((all.len(), all.dropped, all.row(3)), (19, 1, 5));
        let left_out = notes(&all);
        assert_eq!(left_out[0], "columns \"name\", \"kind\" hold text and are left out");
        assert_eq!(left_out[1], "column \"day\" holds dates or times and is left out");
        assert_eq!(left_out[2], "column \"flag\" holds booleans and is left out");

        let mut options = columns("x");
        options.others = Others::These(["kind", "name", "flag"].map(ToOwned::to_owned).to_vec());
        let cloud = read(data(name), &options).unwrap();
        assert_eq!(cloud.others[0].cells[..3], ["b", "a", "b"]);
        assert_eq!(cloud.others[1].cells[19], "n19");
        assert_eq!(cloud.others[2].cells[..2], ["true", "false"]);
        options.others = Others::All;
        let cloud = read(data(name), &options).unwrap();
        let names: Vec<_> = cloud.others.iter().map(|o| o.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["name", "y", "kind", "n", "flag"]);
        assert_eq!(cloud.others[3].cells[2..5], ["2", "", "4"]);
        let text = message(&read(data(name), &columns("day")).unwrap_err());
        assert!(text.contains("column \"day\" holds dates or times, not numbers"), "{text}");
        let null = message(&read(data(name), &columns("n")).unwrap_err());
        assert!(null.contains("row 4, column \"n\": the value is missing (null or NaN)"), "{null}");
    }
}

fn written(columns: Vec<(&str, ArrayRef)>, stream: bool) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    if stream {
        let mut writer =
            arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    } else {
        let mut writer =
            arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }
    bytes
}

#[test]
fn types() {
    let decimal = Decimal128Array::from(vec![-125, 250]).with_precision_and_scale(10, 2).unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("u", Arc::new(UInt64Array::from(vec![1, u64::MAX]))),
        ("d", Arc::new(decimal)),
        ("f", Arc::new(Float32Array::from(vec![0.1, f32::NAN]))),
    ];
    for stream in [false, true] {
        let bytes = written(columns.clone(), stream);
        let one =
            |name: &str| f64s(&get("a.arrow", &bytes, &crate::common::columns(name))).to_vec();
        assert_eq!(one("u"), [1.0, 18_446_744_073_709_551_615.0]);
        assert_eq!(one("d"), [-1.25, 2.5]);
        let cloud = get("a.arrow", &bytes, &{
            let mut options = crate::common::columns("f");
            options.missing = orthant_io::Missing::Drop;
            options
        });
        assert_eq!((f32s(&cloud), cloud.dropped), (&[0.1][..], 1));
    }
}

#[test]
fn nothing_to_read() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let error = |bytes: &[u8]| message(&read_bytes("a.arrow", bytes, &plain()).unwrap_err());
    assert_eq!(
        error(&written(vec![("t", text)], true)),
        "a.arrow: none of the columns holds numbers; the columns are \"t\"; \
         if another character separates the fields of a table, name it with --separator"
    );
    let empty: ArrayRef = Arc::new(Float32Array::from(Vec::<f32>::new()));
    assert_eq!(error(&written(vec![("x", empty)], true)), "a.arrow: no rows of data");
    assert_eq!(error(b"x,y\n"), "a.arrow: expected an Arrow file, but the content is text");
    let whole = fs::read(data("stream.arrow")).unwrap();
    for end in [9, 100, whole.len() - 8] {
        assert_eq!(
            error(&whole[..end]),
            "a.arrow: the file is truncated: the data end too early; get a complete copy"
        );
    }
}
