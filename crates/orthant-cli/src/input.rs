//! From files to measures.

use orthant::{Measure, Points};
use orthant_io::{Cloud, Missing, ReadOptions, Values};

use crate::args::{MissingName, Solve};
use crate::failure::Failure;

/// The two clouds of a command, as read.
pub(crate) struct Clouds {
    x: Cloud,
    y: Cloud,
}

impl Clouds {
    pub(crate) fn read(arguments: &Solve) -> Result<Self, Failure> {
        if arguments.x == "-" && arguments.y == "-" {
            return Err(Failure::input(
                "only one of the clouds can come from standard input; give a file for the other",
            ));
        }
        let options = |weights: &Option<String>| {
            let mut options = ReadOptions::default();
            options.columns.clone_from(&arguments.columns);
            options.weights = weights.clone().or_else(|| arguments.weights.clone());
            options.missing = match arguments.missing {
                MissingName::Error => Missing::Error,
                MissingName::Drop => Missing::Drop,
            };
            options
        };
        let clouds = Clouds {
            x: orthant_io::read(&arguments.x, &options(&arguments.weights_x))?,
            y: orthant_io::read(&arguments.y, &options(&arguments.weights_y))?,
        };
        if clouds.x.dim != clouds.y.dim {
            return Err(Failure::input(format!(
                "{} has {} coordinates and {} has {}; use --columns to choose the same ones",
                name(&arguments.x),
                clouds.x.dim,
                name(&arguments.y),
                clouds.y.dim
            )));
        }
        Ok(clouds)
    }

    /// The measures, and how many rows were dropped.
    pub(crate) fn measures(&self, arguments: &Solve) -> Result<[Measure<'_>; 2], Failure> {
        let measure = |cloud, file| -> Result<_, Failure> {
            let measure = measure(cloud, name(file))?;
            Ok(if arguments.unbalanced.normalize { measure.with_mass(1.0)? } else { measure })
        };
        Ok([measure(&self.x, &arguments.x)?, measure(&self.y, &arguments.y)?])
    }

    /// Rows that were skipped because of missing values, in both files.
    pub(crate) fn dropped(&self) -> [usize; 2] {
        [self.x.dropped, self.y.dropped]
    }
}

/// How messages call a file.
pub(crate) fn name(spec: &str) -> &str {
    if spec == "-" { "standard input" } else { spec }
}

pub(crate) fn measure<'a>(cloud: &'a Cloud, name: &str) -> Result<Measure<'a>, Failure> {
    measure_of(&cloud.values, cloud.dim, cloud.weights.as_deref(), name)
}

/// The measure of these points.
pub(crate) fn measure_of<'a>(
    values: &'a Values,
    dim: usize,
    weights: Option<&[f64]>,
    name: &str,
) -> Result<Measure<'a>, Failure> {
    let points = match values {
        Values::F32(values) => Points::new(values, dim),
        Values::F64(values) => Points::new(values, dim),
    };
    let of_file = |error: orthant::Error| Failure::from(error).of_file(name);
    let points = points.map_err(of_file)?;
    match weights {
        None => Ok(Measure::uniform(points)),
        Some(weights) => Measure::weighted(points, weights).map_err(of_file),
    }
}
