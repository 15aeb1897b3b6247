//! Columns that say which row it is, among the coordinates that nobody chose.

use crate::error::{Column, Error};
use crate::note::Note;
use crate::{Cloud, Values};

/// So many rows before sorted numbers are suspicious by themselves.
const ROWS: usize = 5;

/// Takes a column without a name out of the coordinates if it numbers the rows, and notes others that look like it.
///
/// To be called where all columns became coordinates because none were chosen.
pub(crate) fn examine(cloud: &mut Cloud) -> Result<(), Error> {
    if cloud.positions.first() == Some(&0) && name(cloud, 0).is_some_and(is_unnamed) {
        take_out_row_numbers(cloud)?;
    }
    // A file of text may have more of them.
    if let Some(i) = (0..cloud.dim).find(|&i| name(cloud, i) == Some("")) {
        return Err(unnamed(cloud, i));
    }
    let mut found: Vec<usize> = (0..cloud.dim).filter(|&i| looks_like_an_id(cloud, i)).collect();
    if found.len() == cloud.dim {
        // Where all columns are sorted, they are not ids but a curve.
        found.retain(|&i| name(cloud, i).is_some_and(is_id_name));
    }
    for i in found {
        let note = Note::IdColumn { path: cloud.path.clone(), column: label(cloud, i) };
        cloud.notes.push(note);
    }
    Ok(())
}

fn name(cloud: &Cloud, i: usize) -> Option<&str> {
    cloud.columns.as_ref().map(|columns| columns[i].as_str())
}

fn label(cloud: &Cloud, i: usize) -> Column {
    match name(cloud, i) {
        Some(name) if !name.is_empty() => Column::Name(name.to_owned()),
        _ => Column::Position(cloud.positions[i] + 1),
    }
}

fn unnamed(cloud: &Cloud, i: usize) -> Error {
    Error::UnnamedColumn { path: cloud.path.clone(), position: cloud.positions[i] + 1 }
}

/// As pandas and R write row numbers, and as pandas calls them when it reads them again.
fn is_unnamed(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.is_empty()
        || name.strip_prefix("unnamed:").is_some_and(|n| n.trim().parse::<u32>().is_ok())
}

/// A column in which pandas keeps the index of the rows of a table with types.
pub(crate) fn is_index_of_pandas(name: &str) -> bool {
    name.starts_with("__index_level_") && name.ends_with("__")
}

/// The numbers of a column.
fn column(cloud: &Cloud, i: usize) -> impl Iterator<Item = f64> + '_ {
    let (narrow, wide): (&[f32], &[f64]) = match &cloud.values {
        Values::F32(values) => (values, &[]),
        Values::F64(values) => (&[], values),
    };
    let narrow = narrow.iter().skip(i).step_by(cloud.dim).map(|&x| f64::from(x));
    narrow.chain(wide.iter().skip(i).step_by(cloud.dim).copied())
}

/// The first column, if it counts the rows from 0 or 1.
fn take_out_row_numbers(cloud: &mut Cloud) -> Result<(), Error> {
    let counts_from = |start: u64| {
        (0..).zip(column(cloud, 0)).all(|(i, x)| x == (cloud.row(i) - 1 + start) as f64)
    };
    if !counts_from(0) && !counts_from(1) {
        return Err(unnamed(cloud, 0));
    }
    if cloud.dim == 1 {
        return Err(Error::NoColumns { path: cloud.path.clone() });
    }
    let note = Note::RowNumbers { path: cloud.path.clone(), column: label(cloud, 0) };
    cloud.notes.push(note);
    match &mut cloud.values {
        Values::F32(values) => remove_first(values, cloud.dim),
        Values::F64(values) => remove_first(values, cloud.dim),
    }
    cloud.dim -= 1;
    cloud.positions.remove(0);
    if let Some(columns) = &mut cloud.columns {
        columns.remove(0);
    }
    Ok(())
}

/// Removes the first of every `dim` values.
fn remove_first<T>(values: &mut Vec<T>, dim: usize) {
    let mut at = 0;
    values.retain(|_| {
        at += 1;
        (at - 1) % dim != 0
    });
}

/// Integers, all different, and either sorted or with a telling name.
fn looks_like_an_id(cloud: &Cloud, i: usize) -> bool {
    let rows = cloud.len();
    let named = name(cloud, i).is_some_and(is_id_name);
    let suspicious = named || (cloud.dim > 1 && rows >= ROWS);
    if rows < 2 || !suspicious || !column(cloud, i).all(|x| x.fract() == 0.0) {
        return false;
    }
    let ascending = column(cloud, i).zip(column(cloud, i).skip(1)).all(|(a, b)| a < b);
    let descending = || column(cloud, i).zip(column(cloud, i).skip(1)).all(|(a, b)| a > b);
    ascending || descending() || (named && all_different(cloud, i))
}

fn all_different(cloud: &Cloud, i: usize) -> bool {
    let mut sorted: Vec<f64> = column(cloud, i).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// `id`, `index` and the like, in any case: `user_id`, `cellID`, `Row Number`.
fn is_id_name(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "id",
        "ids",
        "index",
        "idx",
        "row",
        "rows",
        "rowid",
        "rownum",
        "rownumber",
        "rowname",
        "nr",
        "no",
        "#",
    ];
    let plain: String = name
        .chars()
        .filter(|c| !matches!(c, ' ' | '_' | '.' | '-'))
        .flat_map(char::to_lowercase)
        .collect();
    let lower = name.to_lowercase();
    let ends = ["_id", " id", ".id", "-id"].iter().any(|end| lower.ends_with(end));
    let camel = ["Id", "ID"].iter().any(|end| {
        name.strip_suffix(end).is_some_and(|rest| rest.ends_with(|c: char| c.is_lowercase()))
    });
    NAMES.contains(&plain.as_str()) || ends || camel || is_unnamed(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_identifiers() {
        for name in
            ["id", "ID", "Index", "Unnamed: 0", "user_id", "cellID", "Row Number", "row.names.id"]
        {
            assert!(is_id_name(name), "{name}");
        }
        for name in ["x", "width", "humid", "grid", "PID", "node", "Unnamed", "indexed"] {
            assert!(!is_id_name(name), "{name}");
        }
    }
}
