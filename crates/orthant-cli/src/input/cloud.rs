//! A cloud of a command: points that know their rows in the file.

use orthant::{Measure, Points};
use orthant_io::{Other, Rows, Values};
use orthant_support::Failure;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Points of a file, or of a group of it.
#[derive(Debug, Clone)]
pub(crate) struct Cloud {
    /// How messages call it: the file, or the group.
    pub(crate) name: String,
    /// How pictures and tables call it.
    pub(crate) short: String,
    /// The file, as messages call it.
    path: String,
    /// Coordinates as they stand in the file.
    pub(crate) values: Values,
    /// Their number, for a point.
    pub(crate) dim: usize,
    pub(crate) weights: Option<Vec<f64>>,
    /// The names of the coordinates, if the file has them.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) positions: Vec<usize>,
    pub(crate) others: Vec<Other>,
    rows: RowNumbers,
    /// The coordinates that are solved in, and their number, if these are others.
    prepared: Option<(Vec<f64>, usize)>,
}

/// Which rows of the file the points are.
#[derive(Debug, Clone)]
enum RowNumbers {
    OfFile(Rows),
    Chosen(Vec<u64>),
}

impl Cloud {
    pub(crate) fn of_file(cloud: orthant_io::Cloud, name: String) -> Self {
        Cloud {
            short: name.rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or(&name).to_owned(),
            name,
            path: cloud.path,
            values: cloud.values,
            dim: cloud.dim,
            weights: cloud.weights,
            columns: cloud.columns,
            positions: cloud.positions,
            others: cloud.others,
            rows: RowNumbers::OfFile(cloud.rows),
            prepared: None,
        }
    }

    /// Under another name in tables and pictures.
    pub(crate) fn called(mut self, short: String) -> Self {
        self.short = short;
        self
    }

    /// Some points of it, in this order.
    pub(crate) fn select(&self, points: &[usize]) -> Self {
        let values = match &self.values {
            Values::F32(values) => Values::F32(pick(values, self.dim, points)),
            Values::F64(values) => Values::F64(pick(values, self.dim, points)),
        };
        let other = |other: &Other| Other {
            cells: points.iter().map(|&i| other.cells[i].clone()).collect(),
            ..other.clone()
        };
        Cloud {
            values,
            weights: self.weights.as_ref().map(|weights| pick(weights, 1, points)),
            others: self.others.iter().map(other).collect(),
            rows: RowNumbers::Chosen(points.iter().map(|&i| self.row(i)).collect()),
            prepared: None,
            name: self.name.clone(),
            short: self.short.clone(),
            path: self.path.clone(),
            columns: self.columns.clone(),
            positions: self.positions.clone(),
            ..*self
        }
    }

    /// Keeps so many points at most, drawn at random; whether any were left out.
    pub(super) fn sample(&mut self, most: usize, seed: u64, stream: u64) -> bool {
        if self.len() <= most {
            return false;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let mut points = rand::seq::index::sample(&mut rng, self.len(), most).into_vec();
        points.sort_unstable();
        *self = self.select(&points);
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// The row of the file that a point is, from 1.
    pub(crate) fn row(&self, point: usize) -> u64 {
        match &self.rows {
            RowNumbers::OfFile(rows) => rows.get(point),
            RowNumbers::Chosen(rows) => rows[point],
        }
    }

    /// Whether the points are all rows of the file.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.rows {
            RowNumbers::OfFile(rows) => rows.dropped() == 0,
            RowNumbers::Chosen(_) => false,
        }
    }

    /// A coordinate as it stands in the file.
    pub(crate) fn coordinate(&self, point: usize, column: usize) -> f64 {
        let at = point * self.dim + column;
        match &self.values {
            Values::F32(values) => f64::from(values[at]),
            Values::F64(values) => values[at],
        }
    }

    /// All of them.
    pub(crate) fn coordinates(&self) -> Vec<f64> {
        match &self.values {
            Values::F32(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Values::F64(values) => values.clone(),
        }
    }

    pub(super) fn prepare(&mut self, values: Vec<f64>, dim: usize) {
        self.prepared = Some((values, dim));
    }

    /// The points in the coordinates that are solved in.
    pub(crate) fn points(&self) -> Result<Points<'_>, Failure> {
        let points = match (&self.prepared, &self.values) {
            (Some((values, dim)), _) => Points::new(values, *dim),
            (None, Values::F32(values)) => Points::new(values, self.dim),
            (None, Values::F64(values)) => Points::new(values, self.dim),
        };
        points.map_err(|error| self.explain(error))
    }

    /// The points with their weights.
    pub(crate) fn measure(&self, normalize: bool) -> Result<Measure<'_>, Failure> {
        let points = self.points()?;
        let measure = match &self.weights {
            None => Measure::uniform(points),
            Some(weights) => {
                Measure::weighted(points, weights).map_err(|error| self.explain(error))?
            }
        };
        Ok(if normalize { measure.with_mass(1.0)? } else { measure })
    }

    /// An error about points of this cloud, by their rows and with its name.
    pub(crate) fn explain(&self, error: orthant::Error) -> Failure {
        Failure::from(error.renumbered(|point| self.point_row(point))).spelled_out(&self.name)
    }

    /// The row of a point that an error counts from 1.
    pub(crate) fn point_row(&self, point: usize) -> usize {
        if (1..=self.len()).contains(&point) {
            usize::try_from(self.row(point - 1)).unwrap_or(point)
        } else {
            point
        }
    }

    /// Brings the coordinates of another file into the order of these.
    pub(super) fn match_with(
        &self,
        other: &mut orthant_io::Cloud,
        by_position: bool,
    ) -> Result<(), Failure> {
        let names = if by_position { None } else { self.columns.as_deref() };
        orthant_io::match_columns_with(&self.path, names, self.dim, other)?;
        Ok(())
    }
}

/// Rows of a table with `dim` columns.
fn pick<T: Copy>(values: &[T], dim: usize, rows: &[usize]) -> Vec<T> {
    rows.iter().flat_map(|&i| &values[i * dim..(i + 1) * dim]).copied().collect()
}
