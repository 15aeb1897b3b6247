//! Which columns of a table are the coordinates and which one holds the weights.

use crate::error::{Column, Error};
use crate::note::Note;
use crate::{Other, Others, ReadOptions};

/// The columns of a file, before a choice is made.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub(crate) path: &'a str,
    pub(crate) count: usize,
    pub(crate) names: Option<&'a [String]>,
}

/// Columns by index from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) coordinates: Vec<usize>,
    pub(crate) weights: Option<usize>,
    pub(crate) others: Vec<usize>,
}

impl Selection {
    /// All columns to read: the coordinates, then the weights.
    pub(crate) fn all(&self) -> Vec<usize> {
        self.coordinates.iter().copied().chain(self.weights).collect()
    }
}

impl Table<'_> {
    /// The column as a message names it.
    pub(crate) fn label(&self, index: usize) -> Column {
        match self.names.and_then(|names| names.get(index)) {
            Some(name) if !name.is_empty() => Column::Name(name.clone()),
            _ => Column::Position(index + 1),
        }
    }

    /// The names of the coordinate columns.
    pub(crate) fn names_of(&self, selection: &Selection) -> Option<Vec<String>> {
        let names = self.names?;
        selection.coordinates.iter().map(|&i| names.get(i).cloned()).collect()
    }

    /// Resolves the options; `default` lists the coordinates if none are asked for.
    pub(crate) fn select(
        &self,
        options: &ReadOptions,
        default: impl FnOnce() -> Result<Vec<usize>, Error>,
    ) -> Result<Selection, Error> {
        let weights = match &options.weights {
            Some(name) => Some(self.find(name)?.ok_or_else(|| self.unknown(name))?),
            None => None,
        };
        let mut others = Vec::new();
        if let Others::These(columns) = &options.others {
            for name in columns {
                others.push(self.find(name)?.ok_or_else(|| self.unknown(name))?);
            }
        }
        let mut coordinates = Vec::new();
        if let Some(columns) = &options.columns {
            for column in columns {
                self.expand(column, &mut coordinates)?;
            }
        } else {
            coordinates = default()?;
            let mut skip = others.clone();
            for name in &options.skip {
                skip.extend(self.find(name)?);
            }
            coordinates.retain(|&i| Some(i) != weights && !skip.contains(&i));
        }
        let mut seen = vec![false; self.count];
        for &i in &coordinates {
            match seen.get_mut(i) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(self.duplicate(i)),
            }
        }
        if options.others == Others::All {
            others = (0..self.count).filter(|&i| !seen[i]).collect();
        }
        if let Some(&i) = others.iter().chain(&weights).find(|&&i| seen[i]) {
            return Err(self.duplicate(i));
        }
        if coordinates.is_empty() {
            return Err(Error::NoColumns { path: self.path.to_owned() });
        }
        Ok(Selection { coordinates, weights, others })
    }

    fn duplicate(&self, index: usize) -> Error {
        Error::DuplicateColumn { path: self.path.to_owned(), column: self.label(index) }
    }

    /// A column with these cells.
    pub(crate) fn other(&self, index: usize, cells: Vec<String>) -> Other {
        let name = self.names.and_then(|names| names.get(index)).filter(|name| !name.is_empty());
        Other { name: name.cloned(), position: index, cells }
    }

    /// One column by name or else by position.
    fn find(&self, column: &str) -> Result<Option<usize>, Error> {
        let column = column.trim();
        if let Some(names) = self.names {
            let mut hits = names.iter().enumerate().filter(|(_, name)| *name == column);
            if let Some((i, _)) = hits.next() {
                return match hits.next() {
                    None => Ok(Some(i)),
                    Some(_) => Err(Error::AmbiguousColumn {
                        path: self.path.to_owned(),
                        column: column.to_owned(),
                    }),
                };
            }
        }
        Ok(position(column, self.count))
    }

    /// One column or a range of columns. As names may contain a dash, every dash is tried.
    fn expand(&self, column: &str, chosen: &mut Vec<usize>) -> Result<(), Error> {
        if let Some(i) = self.find(column)? {
            chosen.push(i);
            return Ok(());
        }
        for (dash, _) in column.match_indices('-') {
            let ends = (self.find(&column[..dash])?, self.find(&column[dash + 1..])?);
            if let (Some(first), Some(last)) = ends
                && first <= last
            {
                chosen.extend(first..=last);
                return Ok(());
            }
        }
        Err(self.unknown(column))
    }

    fn unknown(&self, column: &str) -> Error {
        Error::UnknownColumn {
            path: self.path.to_owned(),
            column: column.trim().to_owned(),
            names: self.names.map(<[String]>::to_vec),
            count: self.count,
            in_first_line: false,
        }
    }

    /// All columns of numbers; `foreign` tells what the others hold.
    pub(crate) fn numeric<'k>(
        &self,
        foreign: impl Fn(usize) -> Option<&'k str>,
    ) -> Result<Vec<usize>, Error> {
        let numeric: Vec<usize> = (0..self.count).filter(|&i| foreign(i).is_none()).collect();
        if numeric.is_empty() && self.count > 0 {
            return Err(Error::NoNumbers {
                path: self.path.to_owned(),
                names: self.names.map(<[String]>::to_vec),
                count: self.count,
            });
        }
        Ok(numeric)
    }

    /// Says which columns are no coordinates because of what they hold, if nobody chose.
    pub(crate) fn left_out<'k>(
        &self,
        selection: &Selection,
        options: &ReadOptions,
        foreign: impl Fn(usize) -> Option<&'k str>,
    ) -> Vec<Note> {
        let mut notes: Vec<Note> = Vec::new();
        if options.columns.is_some() {
            return notes;
        }
        let chosen = |i: usize| {
            let carried = options.others != Others::All && selection.others.contains(&i);
            let label = self.label(i).name();
            carried || Some(i) == selection.weights || options.skip.contains(&label)
        };
        for i in (0..self.count).filter(|&i| !chosen(i)) {
            let Some(found) = foreign(i) else { continue };
            let same = notes.iter_mut().find_map(|note| match note {
                Note::LeftOut { kind, columns, .. } if kind == found => Some(columns),
                _ => None,
            });
            match same {
                Some(columns) => columns.push(self.label(i)),
                None => notes.push(Note::LeftOut {
                    path: self.path.to_owned(),
                    columns: vec![self.label(i)],
                    kind: found.to_owned(),
                }),
            }
        }
        notes
    }
}

/// A position counted from 1 as an index.
fn position(text: &str, count: usize) -> Option<usize> {
    let position: usize = text.parse().ok()?;
    (1..=count).contains(&position).then(|| position - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(
        names: &[&str],
        columns: Option<&[&str]>,
        weights: Option<&str>,
    ) -> Result<Selection, String> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let table = Table { path: "t.csv", count: names.len(), names: Some(&names) };
        let options = ReadOptions {
            columns: columns.map(|c| c.iter().map(ToString::to_string).collect()),
            weights: weights.map(ToOwned::to_owned),
            ..ReadOptions::default()
        };
        table.select(&options, || Ok((0..names.len()).collect())).map_err(|e| e.to_string())
    }

    fn coordinates(names: &[&str], columns: &[&str]) -> Result<Vec<usize>, String> {
        select(names, Some(columns), None).map(|s| s.coordinates)
    }

    #[test]
    fn names_positions_and_ranges() {
        let names = ["a", "b", "c", "d"];
        assert_eq!(coordinates(&names, &["c", "a"]), Ok(vec![2, 0]));
        assert_eq!(coordinates(&names, &["4", " b "]), Ok(vec![3, 1]));
        assert_eq!(coordinates(&names, &["2-4"]), Ok(vec![1, 2, 3]));
        assert_eq!(coordinates(&names, &["a-c"]), Ok(vec![0, 1, 2]));
        assert_eq!(coordinates(&names, &["b-3"]), Ok(vec![1, 2]));
    }

    #[test]
    fn names_with_dashes_win_over_ranges() {
        let names = ["a", "a-b", "b", "b-c"];
        assert_eq!(coordinates(&names, &["a-b"]), Ok(vec![1]));
        assert_eq!(coordinates(&names, &["a-b-b-c"]), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn names_that_look_like_positions_win() {
        assert_eq!(coordinates(&["x", "1"], &["1"]), Ok(vec![1]));
    }

    #[test]
    fn the_weights_are_not_a_coordinate() {
        let selection = select(&["x", "y", "w"], None, Some("w")).unwrap();
        assert_eq!(selection.coordinates, [0, 1]);
        assert_eq!(selection.weights, Some(2));
        assert_eq!(selection.all(), [0, 1, 2]);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |columns: &[&str]| coordinates(&["x", "y", "y"], columns).unwrap_err();
        assert_eq!(error(&["z"]), r#"t.csv: no column "z"; the columns are "x", "y", "y""#);
        assert_eq!(error(&["0"]), r#"t.csv: no column "0"; the columns are "x", "y", "y""#);
        assert_eq!(error(&["3-1"]), r#"t.csv: no column "3-1"; the columns are "x", "y", "y""#);
        assert_eq!(
            error(&["y"]),
            r#"t.csv: several columns are named "y"; select by position, counted from 1"#
        );
        assert_eq!(
            error(&["1-2", "x"]),
            r#"t.csv: column "x" is selected twice; name each column once in --columns and --weights"#
        );
        assert_eq!(
            error(&[]),
            "t.csv: no columns are left for the coordinates; select at least one with --columns"
        );
        assert_eq!(
            select(&["x", "w"], Some(&["x", "w"]), Some("w")).unwrap_err(),
            r#"t.csv: column "w" is selected twice; name each column once in --columns and --weights"#
        );
    }

    #[test]
    fn long_lists_of_names_are_shortened() {
        let names: Vec<String> = (0..30).map(|i| format!("c{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(coordinates(&names, &["z"]).unwrap_err().ends_with(r#""c9" and 20 more"#));
    }
}
