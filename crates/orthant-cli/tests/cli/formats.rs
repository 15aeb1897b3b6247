//! Formats of files, as the command meets them.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::common::{Sandbox, cloud, text};

/// A sandbox with the files that h5py, anndata and pyarrow wrote for the readers.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let data = Path::new("../orthant-io/tests/data");
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, sandbox.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    // The points of these files: twenty of the plane.
    let mut points = String::from("a,b\n");
    for i in 0..20 {
        writeln!(points, "{},{}", f64::from(i) / 2.0, f64::from(i) / 2.0 + 0.25).unwrap();
    }
    sandbox.write("points.csv", &points);
    sandbox
}

fn value(sandbox: &Sandbox, arguments: &str) -> Value {
    let output = sandbox.orthant(&format!("{arguments} --json -q"));
    assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["value"].clone()
}

#[test]
fn the_same_points_in_every_format() {
    let sandbox = sandbox();
    let expected = value(&sandbox, "rot points.csv points.csv --eps 0.5");
    for file in ["plain.h5", "gzip.h5", "lzf.h5", "several.h5:/x"] {
        assert_eq!(
            value(&sandbox, &format!("rot {file} points.csv --eps 0.5")),
            expected,
            "{file}"
        );
    }
    for file in ["lz4.feather", "zstd.feather", "uncompressed.feather", "stream.arrow"] {
        let found = value(&sandbox, &format!("rot {file} {file} --eps 0.5 --columns x,y"));
        assert_eq!(found, expected, "{file}");
    }
    // Files with several arrays say what there is.
    let message = sandbox.fails("rot several.h5 points.csv", 2);
    assert!(message.contains("several.h5") && message.contains("group/y"), "{message}");
    assert!(sandbox.fails("rot empty.h5 points.csv", 2).contains("empty.h5"), "no dataset");
}

#[test]
fn annotated_data_is_components_groups_and_weights() {
    let sandbox = sandbox();
    let report =
        sandbox.orthant("divergence cells.h5ad --group donor --weights mass --eps 5% --json");
    assert!(report.status.success(), "{}", text(&report.stderr));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!((&report["n"], &report["m"]), (&10.into(), &10.into()));
    assert_eq!(report["files"][0]["weights"], "mass");
    let shown = sandbox.orthant("compare cells.h5ad --group kind --missing drop");
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    // Where there are no components, what there is instead.
    let message = sandbox.fails("rot umap.h5ad umap.h5ad", 2);
    assert!(message.contains("X_umap"), "{message}");
    assert!(sandbox.orthant("rot umap.h5ad:obsm/X_umap umap.h5ad:obsm/X_umap -q").status.success());
    let message = sandbox.fails("rot sparse.h5ad:X sparse.h5ad:X", 2);
    assert!(message.contains("sparse"), "{message}");
}

#[test]
fn parts_of_a_table_are_one_cloud() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.path("parts")).unwrap();
    for name in ["a.parquet", "b.parquet"] {
        std::fs::copy(sandbox.path("delta.parquet"), sandbox.path("parts").join(name)).unwrap();
    }
    std::fs::write(sandbox.path("parts/_SUCCESS"), "").unwrap();
    let rows = |file: &str| {
        let output = sandbox.orthant(&format!("rot {file} {file} --eps 1 --json -q"));
        assert!(output.status.success(), "{file}: {}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["files"][0]["rows"].as_u64().unwrap()
    };
    let one = rows("delta.parquet");
    assert_eq!((rows("parts"), rows("parts/*.parquet")), (2 * one, 2 * one));
    // A part that is read is not written over.
    let message = sandbox
        .fails("rot parts parts --eps 1 --output parts/new/../a.csv --pairs parts/a.parquet", 2);
    assert!(message.contains("parts/"), "{message}");
}

#[test]
fn separators_and_decimals() {
    let sandbox = sandbox();
    let expected = value(&sandbox, "rot x.csv y.csv --eps 0.1");
    let plain = cloud(60, 0.0, 1.0);
    sandbox.write("pipes.csv", &plain.replace(',', "|"));
    sandbox.write("german.csv", &plain.replace(',', ";").replace('.', ","));
    sandbox.write("odd.csv", &plain.replace(',', "~"));
    assert_eq!(value(&sandbox, "rot pipes.csv y.csv --eps 0.1"), expected);
    assert_eq!(
        value(&sandbox, "rot pipes.csv pipes.csv --eps 0.1 --separator |"),
        value(&sandbox, "rot x.csv x.csv --eps 0.1")
    );
    assert_eq!(
        value(&sandbox, "rot german.csv german.csv --eps 0.1 --decimal ,"),
        value(&sandbox, "rot x.csv x.csv --eps 0.1")
    );
    assert_eq!(
        value(&sandbox, "rot odd.csv odd.csv --eps 0.1 --separator ~"),
        value(&sandbox, "rot x.csv x.csv --eps 0.1")
    );
    assert!(
        sandbox.fails("rot german.csv german.csv", 2).contains("decimal"),
        "no hint of --decimal"
    );
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let sandbox = sandbox();
    sandbox.write("rows.jsonl", "{\"a\":1,\"b\":2}\n{\"a\":2,\"b\":1}\n");
    sandbox.write("rows.json", "[{\"a\":1,\"b\":2}]\n");
    std::fs::write(sandbox.path("x.csv.bz2"), b"BZh91AY&SY\x00\x01\x02\x03").unwrap();
    for (file, word) in [("rows.jsonl", "JSON"), ("rows.json", "JSON"), ("x.csv.bz2", "bz")] {
        let message = sandbox.fails(&format!("rot {file} y.csv"), 2);
        assert!(message.starts_with(&format!("orthant: {file}: ")), "{message}");
        assert!(message.contains(word), "{message}");
    }
}
