//! Columns of one file matched with those of another.

use std::collections::HashMap;

use crate::error::Error;
use crate::{Cloud, Values};

/// Brings the coordinates of a cloud into the order of another.
///
/// Where both files name their columns, these are matched by name: the same names in another order are reordered,
/// and other names are [`Error::DifferentColumns`]. Where one has no names, or both have the same ones several times
/// over in the same order, the order of the columns decides; clouds of different dimensions are
/// [`Error::DifferentDimensions`].
///
/// ```
/// use orthant_io::{ReadOptions, Values, match_columns, read_bytes};
/// let x = read_bytes("x.csv", b"a,b\n1,2\n", &ReadOptions::default())?;
/// let mut y = read_bytes("y.csv", b"b,a\n3,4\n", &ReadOptions::default())?;
/// match_columns(&x, &mut y)?;
/// assert_eq!(y.values, Values::F64(vec![4.0, 3.0]));
/// assert_eq!(y.positions, [1, 0]);
/// # Ok::<(), orthant_io::Error>(())
/// ```
pub fn match_columns(reference: &Cloud, cloud: &mut Cloud) -> Result<(), Error> {
    let names = reference.columns.as_deref();
    match_columns_with(&reference.path, names, reference.dim, cloud)
}

/// Brings the coordinates of a cloud into an order that is given by names, as [`match_columns`] does: the file that the
/// names come from, the names, if it has any, and their number.
pub fn match_columns_with(
    path: &str,
    names: Option<&[String]>,
    dim: usize,
    cloud: &mut Cloud,
) -> Result<(), Error> {
    let (Some(expected), Some(columns)) = (names, &cloud.columns) else {
        return same_dimension(path, dim, cloud);
    };
    if expected == columns {
        return Ok(());
    }
    let Some(order) = order(expected, columns) else {
        return Err(Error::DifferentColumns {
            reference: path.to_owned(),
            expected: expected.to_vec(),
            cloud: cloud.path.clone(),
            columns: columns.clone(),
        });
    };
    match &mut cloud.values {
        Values::F32(values) => reorder(values, &order),
        Values::F64(values) => reorder(values, &order),
    }
    cloud.positions = order.iter().map(|&i| cloud.positions[i]).collect();
    cloud.columns = Some(expected.to_vec());
    Ok(())
}

/// Checks that clouds whose columns are matched by their order have the same dimension.
pub fn match_positions(reference: &Cloud, cloud: &Cloud) -> Result<(), Error> {
    same_dimension(&reference.path, reference.dim, cloud)
}

fn same_dimension(path: &str, dim: usize, cloud: &Cloud) -> Result<(), Error> {
    if dim == cloud.dim {
        return Ok(());
    }
    Err(Error::DifferentDimensions {
        reference: path.to_owned(),
        expected: dim,
        cloud: cloud.path.clone(),
        found: cloud.dim,
    })
}

/// Where each expected name stands among the columns, if both have the same names and none twice.
fn order(expected: &[String], columns: &[String]) -> Option<Vec<usize>> {
    let mut places: HashMap<&str, usize> =
        columns.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    if expected.len() != columns.len() || places.len() != columns.len() {
        return None;
    }
    expected.iter().map(|name| places.remove(name.as_str())).collect()
}

/// Puts the coordinates of all points into a new order.
fn reorder<T: Copy>(values: &mut [T], order: &[usize]) {
    let mut point = Vec::with_capacity(order.len());
    for values in values.chunks_exact_mut(order.len()) {
        point.clear();
        point.extend_from_slice(values);
        for (value, &from) in values.iter_mut().zip(order) {
            *value = point[from];
        }
    }
}
