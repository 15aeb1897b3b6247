//! HDF5 files and annotated matrices.

use std::fs;

use crate::common::*;
use orthant_io::{Others, ReadOptions, read};

fn points() -> Vec<f64> {
    (0..40).map(|i| f64::from(i) / 4.0).collect()
}

fn failed(name: &str, options: &ReadOptions) -> String {
    message(&read(data(name), options).unwrap_err()).replace("tests/data/", "")
}

#[test]
fn chunks_and_filters() {
    for name in
        ["plain.h5", "gzip.h5", "lzf.h5", "checked.h5", "plain.h5:points", "plain.h5:/points"]
    {
        let cloud = read(data(name), &plain()).unwrap();
        assert_eq!((f64s(&cloud), cloud.dim), (&points()[..], 2), "{name}");
        assert_eq!(cloud.columns, None);
    }
    let cloud = read(data("latest.h5"), &plain()).unwrap();
    assert!(f32s(&cloud).iter().zip(points()).all(|(a, b)| f64::from(*a) == b));
    // From memory, and by the content.
    let bytes = fs::read(data("lzf.h5")).unwrap();
    assert_eq!(f64s(&get("-", &bytes, &plain())), points());
}

#[test]
fn arrays_are_chosen() {
    assert_eq!(
        failed("several.h5", &plain()),
        "several.h5: the file holds several arrays; choose one of \"/x\", \"/group/mass\", \"/group/y\" \
         as several.h5:NAME"
    );
    assert_eq!(
        failed("several.h5:z", &plain()),
        "several.h5: no array \"z\"; the file holds \"/x\", \"/group/mass\", \"/group/y\""
    );
    assert_eq!(
        failed("several.h5:cube", &plain()),
        "several.h5:cube: an array of 3 axes is not supported; \
         give one of one or two axes, with the points in its rows"
    );
    assert_eq!(
        failed("empty.h5", &plain()),
        "empty.h5: not a valid HDF5 file: it holds no arrays of numbers; get a complete copy"
    );
    let cloud = read(data("several.h5:/group/y"), &plain()).unwrap();
    assert_eq!(f64s(&cloud)[..6], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn columns_beside_an_array() {
    let mut options = weights("mass");
    options.others = Others::These(["kind", "fixed"].map(ToOwned::to_owned).to_vec());
    let cloud = read(data("several.h5:group/y"), &options).unwrap();
    assert_eq!(cloud.weights.unwrap()[..3], [1.0, 2.0, 3.0]);
    assert_eq!(cloud.weights_name.as_deref(), Some("mass"));
    assert_eq!(cloud.others[0].cells[..2], ["even", "odd"]);
    assert_eq!(cloud.others[1].cells[..2], ["ab", "c"]);
    let cloud = read(data("several.h5:x"), &weights("/group/mass")).unwrap();
    assert_eq!(cloud.weights.unwrap()[19], 20.0);
    // Columns of the array itself.
    let cloud = read(data("several.h5:x"), &weights("2")).unwrap();
    assert_eq!((cloud.dim, cloud.weights.unwrap()[0]), (1, 0.25));
    assert!(failed("several.h5:x", &weights("/group/kind")).contains("holds text, not numbers"));
}

#[test]
fn annotated_matrices() {
    let cloud = read(data("cells.h5ad"), &plain()).unwrap();
    assert_eq!(f64s(&cloud), points());
    let cloud = read(data("cells.h5ad:obsm/X_umap"), &plain()).unwrap();
    assert_eq!(f64s(&cloud)[..2], [0.25, 0.0]);
    let cloud = read(data("cells.h5ad:X"), &plain()).unwrap();
    assert_eq!(f32s(&cloud)[..2], [0.0, 0.25]);
    assert_eq!(cloud.columns.unwrap(), ["CD4", "CD8"]);

    let mut options = weights("mass");
    let names = ["kind", "donor", "good", "age"];
    options.others = Others::These(names.map(ToOwned::to_owned).to_vec());
    assert_eq!(
        failed("cells.h5ad", &options),
        "cells.h5ad: row 5, column \"age\": the value is missing (NaN); \
         use --missing drop to skip such rows"
    );
    options.missing = orthant_io::Missing::Drop;
    let cloud = read(data("cells.h5ad"), &options).unwrap();
    assert_eq!((cloud.len(), cloud.dropped, cloud.row(4)), (18, 2, 7));
    assert_eq!(cloud.weights.as_ref().unwrap()[3..6], [4.0, 7.0, 8.0]);
    let cells = |c: usize| cloud.others[c].cells[..5].to_vec();
    assert_eq!(cells(0), ["T", "B", "B", "T", "T"]);
    assert_eq!(cells(1), ["d0", "d1", "d0", "d1", "d0"]);
    assert_eq!(cells(2), ["true", "false", "true", "false", "true"]);
    assert_eq!(cells(3), ["0", "1", "2", "3", "6"]);
    let mut options = plain();
    options.others = Others::All;
    let all = read(data("cells.h5ad"), &options).unwrap();
    let names: Vec<_> = all.others.iter().map(|o| o.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["age", "donor", "good", "kind", "mass"]);
    assert_eq!(all.others[3].cells[4..6], ["B", ""]);
}

#[test]
fn annotated_matrices_without_components() {
    assert_eq!(
        failed("umap.h5ad", &plain()),
        "umap.h5ad: there is no obsm/X_pca; choose one of \"obsm/X_umap\" as umap.h5ad:NAME"
    );
    assert_eq!(
        failed("sparse.h5ad", &plain()),
        "sparse.h5ad: there is no obsm/X_pca; the file holds no dense matrices, \
         so compute principal components first (scanpy.pp.pca)"
    );
    assert_eq!(
        failed("sparse.h5ad:X", &plain()),
        "sparse.h5ad: X as a sparse matrix is not supported; give a dense matrix such as principal \
         components (scanpy.pp.pca); the file holds none"
    );
    let unknown = failed("cells.h5ad", &weights("nope"));
    assert!(unknown.starts_with("cells.h5ad: no column \"nope\""), "{unknown}");
}
