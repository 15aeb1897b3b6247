//! Missing and infinite values in arrays, where `NaN` stands for missing.

use crate::error::{Column, Error, Place};
use crate::{Cloud, Missing, Values};

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
}

impl Screen<'_> {
    /// Checks the numbers, and drops rows if asked to.
    pub(crate) fn finish(
        self,
        mut values: Values,
        mut weights: Option<Vec<f64>>,
    ) -> Result<Cloud, Error> {
        let path = || self.path.to_owned();
        if values.is_empty() {
            return Err(Error::NoRows { path: path(), header: false });
        }
        let dropped = match &mut values {
            Values::F32(values) => self.screen(values, weights.as_mut())?,
            Values::F64(values) => self.screen(values, weights.as_mut())?,
        };
        if values.is_empty() {
            return Err(Error::AllDropped { path: path(), dropped });
        }
        Ok(Cloud {
            values,
            dim: self.labels.len(),
            weights,
            columns: self.names,
            others: Vec::new(),
            dropped,
        })
    }

    fn screen<T: Copy + Into<f64>>(
        &self,
        values: &mut Vec<T>,
        mut weights: Option<&mut Vec<f64>>,
    ) -> Result<usize, Error> {
        let dim = self.labels.len();
        let rows = values.len() / dim;
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
            if !complete {
                continue;
            }
            if kept < row {
                values.copy_within(at, kept * dim);
                if let Some(weights) = &mut weights {
                    weights[kept] = weights[row];
                }
            }
            kept += 1;
        }
        values.truncate(kept * dim);
        if let Some(weights) = weights {
            weights.truncate(kept);
        }
        Ok(rows - kept)
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
