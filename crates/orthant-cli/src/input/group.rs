//! One file, a cloud for each value of a column.

use std::collections::HashMap;

use orthant_io::{Other, Others};
use orthant_support::Failure;
use orthant_support::number::count;

use super::{Cloud, Source};
use crate::args::MissingName;

/// Groups that are listed in a message.
const LISTED: usize = 10;

/// Which groups of a file are wanted.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    All,
    /// Two of them, named if there are more.
    Two(Option<&'a [String]>),
}

/// The file with the column of the groups beside the coordinates.
pub(super) fn with_column<'a>(source: Source<'a>, column: &str) -> Source<'a> {
    let source = source.skip(&[column.to_owned()]);
    let others = match source.others.clone() {
        Others::All => Others::All,
        Others::None => Others::These(vec![column.to_owned()]),
        Others::These(mut columns) => {
            if !columns.iter().any(|other| other == column) {
                columns.push(column.to_owned());
            }
            Others::These(columns)
        }
    };
    source.others(others)
}

/// Splits a file, in the order in which the values appear.
pub(super) fn split(
    file: orthant_io::Cloud,
    column: &str,
    wanted: Wanted<'_>,
    missing: MissingName,
) -> Result<Vec<Cloud>, Failure> {
    let path = file.path.clone();
    let is_it = |other: &Other| {
        other.name.as_deref() == Some(column.trim())
            || (column.trim().parse() == Ok(other.position + 1))
    };
    let labels = file
        .others
        .iter()
        .find(|other| other.name.as_deref() == Some(column.trim()))
        .or_else(|| file.others.iter().find(|other| is_it(other)))
        .or_else(|| file.others.last())
        .map_or_else(Vec::new, |other| other.cells.clone());
    let all = Cloud::of_file(file, path.clone());
    let mut names: Vec<&str> = Vec::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for (i, label) in labels.iter().enumerate() {
        if label.trim().is_empty() {
            if missing == MissingName::Drop {
                continue;
            }
            return Err(Failure::input(format!(
                "{path}: row {}: the value of the group column {column:?} is missing; use --missing drop to skip such \
                 rows",
                all.row(i)
            )));
        }
        let number = *numbers.entry(label).or_insert_with(|| {
            names.push(label);
            members.push(Vec::new());
            names.len() - 1
        });
        members[number].push(i);
    }
    let listed = || {
        let shown: Vec<String> = names.iter().take(LISTED).map(|n| format!("{n:?}")).collect();
        let more = names.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {} more", count(more)) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    let chosen: Vec<usize> = match wanted {
        Wanted::Two(None) if names.len() > 2 => {
            return Err(Failure::input(format!(
                "{path}: column {column:?} has {} values, {}; choose two with --between A,B",
                count(names.len()),
                listed()
            )));
        }
        Wanted::All | Wanted::Two(None) => (0..names.len()).collect(),
        Wanted::Two(Some(between)) => {
            let [a, b] = between else {
                return Err(Failure::input(format!(
                    "--between takes two values of the column, as in --between A,B, got {}",
                    count(between.len())
                )));
            };
            if a == b {
                return Err(Failure::input(format!(
                    "--between takes two different values, got {a:?} twice"
                )));
            }
            let find = |value: &String| {
                numbers.get(value.as_str()).copied().ok_or_else(|| {
                    Failure::input(format!(
                        "{path}: column {column:?} has no value {value:?}; it has {}",
                        listed()
                    ))
                })
            };
            vec![find(a)?, find(b)?]
        }
    };
    if let [only] = &chosen[..] {
        return Err(Failure::input(format!(
            "{path}: column {column:?} has one value, {:?}, for all points; one cloud cannot be compared",
            names[*only]
        )));
    }
    let cloud = |&k: &usize| {
        let mut cloud = all.select(&members[k]).called(names[k].to_owned());
        cloud.name = format!("{path}, group {:?}", names[k]);
        cloud
    };
    Ok(chosen.iter().map(cloud).collect())
}
