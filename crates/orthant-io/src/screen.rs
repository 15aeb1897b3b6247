//! Missing and infinite values in arrays, where `NaN` stands for missing.

use crate::error::{Column, Error, Place};
use crate::number::{Decimal, Field};
use crate::rows::Rows;
use crate::select::{Selection, Table};
use crate::{Cloud, Missing, Other, Others, ReadOptions, Values};

/// A table as numbers, before the missing values are dealt with.
pub(crate) struct Screen<'a> {
    pub(crate) path: &'a str,
    /// What missing values are called in this format.
    pub(crate) marker: &'a str,
    pub(crate) missing: Missing,
    /// How messages name the coordinates; there is at least one.
    pub(crate) labels: Vec<Column>,
    /// How messages name the weights.
    pub(crate) weights_label: Option<Column>,
    /// The names of the coordinates.
    pub(crate) names: Option<Vec<String>>,
    /// Where they stand in the file.
    pub(crate) positions: Vec<usize>,
    /// The other columns, and whether missing values in them count.
    pub(crate) others: Vec<Other>,
    pub(crate) checked: bool,
}

impl<'a> Screen<'a> {
    /// The checks for a table whose missing values are called `marker`.
    pub(crate) fn new(
        table: &Table<'a>,
        selection: &Selection,
        options: &ReadOptions,
        marker: &'a str,
        others: Vec<Other>,
    ) -> Self {
        Screen {
            path: table.path,
            marker,
            missing: options.missing,
            labels: selection.coordinates.iter().map(|&i| table.label(i)).collect(),
            weights_label: selection.weights.map(|i| table.label(i)),
            names: table.names_of(selection),
            positions: selection.coordinates.clone(),
            others,
            checked: matches!(options.others, Others::These(_)),
        }
    }
}

impl Screen<'_> {
    /// Checks the numbers, and drops rows if asked to.
    pub(crate) fn finish(
        mut self,
        mut values: Values,
        mut weights: Option<Vec<f64>>,
    ) -> Result<Cloud, Error> {
        if values.is_empty() {
            return Err(Error::NoRows { path: self.path.to_owned(), header: false });
        }
        let mut others = std::mem::take(&mut self.others);
        let rows = match &mut values {
            Values::F32(values) => self.screen(values, weights.as_mut(), &mut others)?,
            Values::F64(values) => self.screen(values, weights.as_mut(), &mut others)?,
        };
        let dropped = usize::try_from(rows.dropped()).unwrap_or(usize::MAX);
        if values.is_empty() {
            return Err(Error::AllDropped { path: self.path.to_owned(), dropped });
        }
        Ok(Cloud {
            path: self.path.to_owned(),
            weights_name: self.weights_label.as_ref().map(Column::name),
            rows,
            notes: Vec::new(),
            values,
            dim: self.labels.len(),
            weights,
            columns: self.names,
            positions: self.positions,
            others,
            dropped,
        })
    }

    fn screen<T: Copy + Into<f64>>(
        &self,
        values: &mut Vec<T>,
        mut weights: Option<&mut Vec<f64>>,
        others: &mut [Other],
    ) -> Result<Rows, Error> {
        let dim = self.labels.len();
        let rows = values.len() / dim;
        let mut found = Rows::default();
        let mut kept = 0;
        for row in 0..rows {
            let at = row * dim..(row + 1) * dim;
            let mut complete = true;
            for (&value, label) in values[at.clone()].iter().zip(&self.labels) {
                complete &= self.check(value.into(), row, label)?;
            }
            if let (Some(weights), Some(label)) = (&weights, &self.weights_label) {
                complete &= self.check(weights[row], row, label)?;
            }
            if self.checked {
                for other in &*others {
                    complete &= self.is_there(other, row)?;
                }
            }
            if !complete {
                found.skip();
                continue;
            }
            if kept < row {
                values.copy_within(at, kept * dim);
                if let Some(weights) = &mut weights {
                    weights[kept] = weights[row];
                }
                for other in &mut *others {
                    other.cells.swap(kept, row);
                }
            }
            kept += 1;
            found.keep();
        }
        values.truncate(kept * dim);
        if let Some(weights) = weights {
            weights.truncate(kept);
        }
        for other in others {
            other.cells.truncate(kept);
        }
        Ok(found)
    }

    /// Whether a cell of another column is there.
    fn is_there(&self, other: &Other, row: usize) -> Result<bool, Error> {
        if Field::parse(other.cells[row].as_bytes(), Decimal::Point) != Field::Missing {
            return Ok(true);
        }
        let label = match &other.name {
            Some(name) => Column::Name(name.clone()),
            None => Column::Position(other.position + 1),
        };
        self.check(f64::NAN, row, &label)
    }

    /// Whether a value is there.
    fn check(&self, value: f64, row: usize, label: &Column) -> Result<bool, Error> {
        if value.is_finite() {
            return Ok(true);
        }
        if value.is_nan() && self.missing == Missing::Drop {
            return Ok(false);
        }
        let path = self.path.to_owned();
        let place = Place { row: row as u64 + 1, line: None, column: label.clone() };
        Err(if value.is_nan() {
            let value = self.marker.to_owned();
            Error::MissingValue { path, place, value }
        } else {
            let value = value.to_string();
            Error::Infinite { path, place, value }
        })
    }
}
