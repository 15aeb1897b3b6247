//! A point cloud as it comes out of a file.

use crate::note::Note;
use crate::number::{Decimal, Field};
use crate::rows::Rows;

/// Coordinates, point after point: the coordinates of one point are next to each other.
///
/// Files of 32-bit floats stay so; everything else becomes 64-bit floats.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// 32-bit coordinates.
    F32(Vec<f32>),
    /// 64-bit coordinates.
    F64(Vec<f64>),
}

impl Values {
    /// The number of coordinates: points times dimensions.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
        }
    }

    /// The bytes that a number takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Values::F32(_) => size_of::<f32>(),
            Values::F64(_) => size_of::<f64>(),
        }
    }

    /// Whether there are no coordinates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column that is no coordinate, as text: a cell a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// Its name, if the file names it.
    pub name: Option<String>,
    /// Where it stands in the file, from 0.
    pub position: usize,
    /// Its cells; numbers are such that reading them again gives the same numbers.
    pub cells: Vec<String>,
}

impl Other {
    /// The numbers of the column, if all its cells are finite numbers.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let number = |cell: &String| match Field::parse(cell.as_bytes(), Decimal::Point) {
            Field::Number(x) if x.is_finite() => Some(x),
            _ => None,
        };
        self.cells.iter().map(number).collect()
    }
}

/// A point cloud: finite coordinates, at least one point and at least one dimension.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Cloud {
    /// The file, as messages call it.
    pub path: String,
    /// The coordinates, point after point.
    pub values: Values,
    /// The number of coordinates of a point.
    pub dim: usize,
    /// One finite weight per point, if weights were asked for; of any sign and sum.
    pub weights: Option<Vec<f64>>,
    /// The column of the weights: its name, or its position counted from 1 if it has none.
    pub weights_name: Option<String>,
    /// The names of the coordinate columns, if the file names them.
    pub columns: Option<Vec<String>>,
    /// Where the coordinates stand in the file, from 0.
    pub positions: Vec<usize>,
    /// The other columns that were asked for, in the order of the file or of the question.
    pub others: Vec<Other>,
    /// The number of rows skipped because of a missing value.
    pub dropped: usize,
    /// Which rows of the file the points are.
    pub rows: Rows,
    /// What was decided while reading and may not be what was meant.
    pub notes: Vec<Note>,
}

impl Cloud {
    /// The number of points.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.dim).unwrap_or(0)
    }

    /// The row of the file that point `i` stands in, counted from 1: see [`Rows::get`].
    pub fn row(&self, i: usize) -> u64 {
        self.rows.get(i)
    }

    /// The number of rows in the file, those that were dropped included.
    pub fn total_rows(&self) -> u64 {
        self.len() as u64 + self.dropped as u64
    }

    /// Whether there are no points. Never the case for a cloud that was read from a file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
