//! What must hold of whatever a reader returns.

use orthant_io::{Cloud, Values};

/// Numbers of points, of columns and of weights agree, and all coordinates are numbers.
pub(crate) fn sound(cloud: &Cloud) {
    assert!(cloud.dim > 0 && !cloud.is_empty());
    assert_eq!(cloud.len() * cloud.dim, cloud.values.len());
    assert_eq!((cloud.rows.len(), cloud.positions.len()), (cloud.len(), cloud.dim));
    assert!(cloud.row(cloud.len() - 1) <= cloud.total_rows());
    assert!(cloud.columns.as_ref().is_none_or(|columns| columns.len() == cloud.dim));
    assert!(cloud.weights.as_ref().is_none_or(|w| w.len() == cloud.len()));
    assert!(cloud.others.iter().all(|other| other.cells.len() == cloud.len()));
    assert!(match &cloud.values {
        Values::F32(values) => values.iter().all(|x| x.is_finite()),
        Values::F64(values) => values.iter().all(|x| x.is_finite()),
    });
    cloud.notes.iter().for_each(|note| one_line(&note.to_string()));
}

/// A message is one line, and not that of the operating system's numbers.
pub(crate) fn one_line(text: &str) {
    assert!(!text.contains('\n') && !text.contains("os error"), "{text}");
    assert!(text.len() < 2000, "{text}");
}
