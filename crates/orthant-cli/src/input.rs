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
        Clouds::read_with(arguments, |_, _| {})
    }

    /// With changes to what is read of either file.
    pub(crate) fn read_with(
        arguments: &Solve,
        change: impl Fn(orthant::Cloud, &mut ReadOptions),
    ) -> Result<Self, Failure> {
        if arguments.x == "-" && arguments.y == "-" {
            return Err(Failure::input(
                "only one of the clouds can come from standard input; give a file for the other",
            ));
        }
        let read = |cloud| {
            let (file, weights) = match cloud {
                orthant::Cloud::X => (&arguments.x, &arguments.weights_x),
                orthant::Cloud::Y => (&arguments.y, &arguments.weights_y),
            };
            let mut options = read_options(arguments);
            options.weights = weights.clone().or_else(|| arguments.weights.clone());
            change(cloud, &mut options);
            orthant_io::read(file, &options)
        };
        let clouds = Clouds { x: read(orthant::Cloud::X)?, y: read(orthant::Cloud::Y)? };
        same_dimension([&arguments.x, &arguments.y], [clouds.x.dim, clouds.y.dim])?;
        Ok(clouds)
    }

    /// One of them.
    pub(crate) fn get(&self, cloud: orthant::Cloud) -> &Cloud {
        match cloud {
            orthant::Cloud::X => &self.x,
            orthant::Cloud::Y => &self.y,
        }
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

/// What the arguments say of all files.
pub(crate) fn read_options(arguments: &Solve) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.columns.clone_from(&arguments.columns);
    options.missing = match arguments.missing {
        MissingName::Error => Missing::Error,
        MissingName::Drop => Missing::Drop,
    };
    options
}

/// Checks that two files have points of the same space.
pub(crate) fn same_dimension(files: [&str; 2], dims: [usize; 2]) -> Result<(), Failure> {
    if dims[0] == dims[1] {
        return Ok(());
    }
    Err(Failure::input(format!(
        "{} has {} coordinates and {} has {}; use --columns to choose the same ones",
        name(files[0]),
        dims[0],
        name(files[1]),
        dims[1]
    )))
}

/// How messages call a file.
pub(crate) fn name(spec: &str) -> &str {
    if spec == "-" { "standard input" } else { spec }
}

/// How pictures call a file: without its folders.
pub(crate) fn short_name(spec: &str) -> &str {
    name(spec).rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or(spec)
}

pub(crate) fn points<'a>(cloud: &'a Cloud, name: &str) -> Result<Points<'a>, Failure> {
    points_of(&cloud.values, cloud.dim, name)
}

fn points_of<'a>(values: &'a Values, dim: usize, name: &str) -> Result<Points<'a>, Failure> {
    let points = match values {
        Values::F32(values) => Points::new(values, dim),
        Values::F64(values) => Points::new(values, dim),
    };
    points.map_err(|error| Failure::from(error).of_file(name))
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
    let points = points_of(values, dim, name)?;
    match weights {
        None => Ok(Measure::uniform(points)),
        Some(weights) => {
            Measure::weighted(points, weights).map_err(|error| Failure::from(error).of_file(name))
        }
    }
}
