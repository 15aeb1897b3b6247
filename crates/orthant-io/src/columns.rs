//! Coordinates that are read column after column.

use crate::Values;
use crate::budget::Budget;
use crate::error::Error;

/// The coordinates and weights of a table whose columns are read one by one, a group of rows after the other.
pub(crate) struct Columns<'a> {
    dim: usize,
    values: Values,
    weights: Option<Vec<f64>>,
    budget: &'a Budget,
}

impl<'a> Columns<'a> {
    /// `narrow` says that all coordinates are 32-bit floats.
    pub(crate) fn new(dim: usize, narrow: bool, weighted: bool, budget: &'a Budget) -> Self {
        let values = if narrow { Values::F32(Vec::new()) } else { Values::F64(Vec::new()) };
        Columns { dim, values, weights: weighted.then(Vec::new), budget }
    }

    /// Adds the numbers of a column in a group of rows: the coordinates in their order, the first of which makes room
    /// for all, and then the weights. The memory of the column itself is free after it.
    pub(crate) fn add(&mut self, column: usize, numbers: &[f64]) -> Result<(), Error> {
        let place = Place { column, dim: self.dim, budget: self.budget };
        match (&mut self.weights, &mut self.values) {
            (Some(weights), _) if column == self.dim => {
                self.budget.reserve(weights, numbers.len())?;
                weights.extend(numbers);
            }
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the numbers were read as 32-bit floats, so nothing is lost"
            )]
            (_, Values::F32(values)) => place.fill(values, numbers, |x| x as f32)?,
            (_, Values::F64(values)) => place.fill(values, numbers, |x| x)?,
        }
        self.budget.give(size_of_val(numbers));
        Ok(())
    }

    pub(crate) fn finish(self) -> (Values, Option<Vec<f64>>) {
        (self.values, self.weights)
    }
}

/// Where a column goes.
struct Place<'a> {
    column: usize,
    dim: usize,
    budget: &'a Budget,
}

impl Place<'_> {
    fn fill<T: Copy + Default>(
        &self,
        values: &mut Vec<T>,
        numbers: &[f64],
        convert: impl Fn(f64) -> T,
    ) -> Result<(), Error> {
        let all = numbers.len().checked_mul(self.dim).ok_or_else(|| self.budget.exceeded())?;
        if self.column == 0 {
            self.budget.reserve(values, all)?;
            values.resize(values.len() + all, T::default());
        }
        let start = values.len() - all;
        let places = values[start..].iter_mut().skip(self.column).step_by(self.dim);
        for (value, &number) in places.zip(numbers) {
            *value = convert(number);
        }
        Ok(())
    }
}
