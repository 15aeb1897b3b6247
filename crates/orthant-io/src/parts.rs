//! A table in several files: a folder of Parquet parts, or a pattern of their names.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::budget::Budget;
use crate::error::Error;
use crate::format::Format;
use crate::source::{self, Raw, Spec, label};
use crate::{Cloud, ReadOptions, Rows, Values};

/// What is to be read for a name.
pub(crate) enum Input<'a> {
    File(Spec<'a>),
    /// The parts of a table, in the order of their names.
    Parts(Vec<PathBuf>),
}

impl<'a> Input<'a> {
    pub(crate) fn of(spec: &'a OsStr) -> Self {
        let path = Path::new(spec);
        let parts = if path.is_dir() {
            parts_in(path, |_| true)
        } else if is_pattern(spec) && !fs::exists(path).unwrap_or(false) {
            let pattern = path.file_name().unwrap_or_default().as_encoded_bytes();
            parts_in(folder_of(path), |name| matches(pattern, name.as_encoded_bytes()))
        } else {
            Vec::new()
        };
        // A folder of other things is an error of the one who opens it.
        if parts.is_empty() { Input::File(Spec::of_file(spec)) } else { Input::Parts(parts) }
    }
}

/// The files that [`read`](crate::read) would open for a name: none for the standard input, all parts of a folder.
pub fn files_of(spec: impl AsRef<OsStr>) -> Vec<PathBuf> {
    let spec = spec.as_ref();
    match Input::of(spec) {
        _ if spec == "-" => Vec::new(),
        Input::File(spec) => vec![PathBuf::from(spec.file)],
        Input::Parts(parts) => parts,
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Patterns are for the names of files, not of folders.
fn is_pattern(spec: &OsStr) -> bool {
    let name = Path::new(spec).file_name().unwrap_or_default();
    name.as_encoded_bytes().iter().any(|b| matches!(b, b'*' | b'?'))
}

/// The Parquet files of a folder, in the order of their names; files that are hidden or begin with an underscore
/// belong to the tool that wrote the folder.
fn parts_in(folder: &Path, wanted: impl Fn(&OsStr) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_part = |name: &OsStr| {
        let bytes = name.as_encoded_bytes();
        let format = Format::of_name(&name.to_string_lossy());
        !bytes.starts_with(b".")
            && !bytes.starts_with(b"_")
            && format == (Some(Format::Parquet), false)
    };
    let mut names: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| is_part(&entry.file_name()) && wanted(&entry.file_name()))
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    let current = folder == Path::new(".");
    names.into_iter().map(|name| if current { name.into() } else { folder.join(name) }).collect()
}

/// Whether a name fits a pattern, in which `*` stands for any characters and `?` for one.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to go on if the last star stands for one character more.
    let mut retry = None;
    loop {
        match (pattern.get(p), name.get(n)) {
            (Some(b'*'), _) => {
                retry = Some((p, n));
                p += 1;
            }
            (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == found || *wanted == b'?' => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((star, from)) if from < name.len() => {
                    retry = Some((star, from + 1));
                    (p, n) = (star + 1, from + 1);
                }
                _ => return false,
            },
        }
    }
}

/// Reads all parts as one table, which `path` names.
pub(crate) fn read(
    path: &str,
    parts: &[PathBuf],
    options: &ReadOptions,
    budget: &Budget,
) -> Result<Cloud, Error> {
    let mut whole: Option<(String, Cloud)> = None;
    let mut rows = Rows::default();
    for part in parts {
        let spec = Spec { file: part.as_os_str(), key: None };
        let name = label(part.as_os_str());
        let cloud = match source::decode(&spec, Raw::open(&spec)?, options, budget) {
            Ok(cloud) => cloud,
            // Tools write parts without rows.
            Err(Error::NoRows { .. }) => continue,
            Err(Error::AllDropped { dropped, .. }) => {
                rows.skip_many(dropped as u64);
                continue;
            }
            Err(error) => return Err(error),
        };
        rows.extend(&cloud.rows);
        match &mut whole {
            None => whole = Some((name, cloud)),
            Some((first, whole)) => {
                if !whole.append(cloud, budget)? {
                    return Err(Error::DifferentParts {
                        path: path.to_owned(),
                        first: first.clone(),
                        part: name,
                    });
                }
            }
        }
    }
    let dropped = usize::try_from(rows.dropped()).unwrap_or(usize::MAX);
    match whole {
        Some((_, mut cloud)) => {
            path.clone_into(&mut cloud.path);
            cloud.notes.iter_mut().for_each(|note| note.set_path(path));
            Ok(Cloud { dropped, rows, ..cloud })
        }
        None if dropped > 0 => Err(Error::AllDropped { path: path.to_owned(), dropped }),
        None => Err(Error::NoRows { path: path.to_owned(), header: false }),
    }
}

impl Cloud {
    /// Adds the points of another part; returns whether it has the same columns.
    fn append(&mut self, part: Cloud, budget: &Budget) -> Result<bool, Error> {
        let same = self.columns == part.columns
            && self.positions == part.positions
            && self.weights_name == part.weights_name
            && self.others.len() == part.others.len();
        if !same {
            return Ok(false);
        }
        let taken = part.values.len() * part.values.size();
        match (&mut self.values, part.values) {
            (Values::F32(values), Values::F32(more)) => {
                budget.reserve(values, more.len())?;
                values.extend(more);
            }
            (Values::F64(values), Values::F64(more)) => {
                budget.reserve(values, more.len())?;
                values.extend(more);
            }
            _ => return Ok(false),
        }
        budget.give(taken);
        if let (Some(weights), Some(more)) = (&mut self.weights, part.weights) {
            budget.reserve(weights, more.len())?;
            weights.extend(more);
        }
        for (other, more) in self.others.iter_mut().zip(part.others) {
            if (&other.name, other.position) != (&more.name, more.position) {
                return Ok(false);
            }
            budget.reserve(&mut other.cells, more.cells.len())?;
            other.cells.extend(more.cells);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let fits = |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes());
        for (pattern, name) in [
            ("*", ""),
            ("*", "a"),
            ("a*b", "ab"),
            ("a*b", "axbxb"),
            ("?*.x", "a.x"),
            ("**", "q"),
            ("a", "a"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a*b", "axbx"), ("?", ""), ("a", "ab"), ("*.x", "x"), ("", "a")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        // No pattern takes exponential time.
        assert!(!fits(&"*a".repeat(50), &format!("{}b", "a".repeat(1000))));
    }
}
