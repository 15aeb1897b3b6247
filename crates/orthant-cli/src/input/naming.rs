//! Errors of the library, in the words of the files.

use orthant_support::Failure;

use super::{Cloud, Inputs};

impl Inputs {
    /// Calls the clouds of a library error by their names, and points by their rows.
    pub(crate) fn named(&self, failure: impl Into<Failure>) -> Failure {
        let (error, again) = failure.into().into_parts();
        match error.downcast::<orthant::Error>() {
            Ok(error) => named(error, &self.clouds),
            // Others keep what was said of them.
            Err(error) => again(error),
        }
    }
}

/// An error of the library about these clouds.
fn named(error: orthant::Error, clouds: &[Cloud]) -> Failure {
    match error {
        orthant::Error::InCloud { cloud, source } if (cloud as usize) < clouds.len() => {
            clouds[cloud as usize].explain(*source)
        }
        orthant::Error::InClouds { clouds: [i, j], source } if i.max(j) < clouds.len() => {
            let inner = match *source {
                orthant::Error::InCloud { cloud, source } => {
                    return clouds[[i, j][cloud as usize]].explain(*source);
                }
                source => source,
            };
            if i == j {
                return clouds[i].explain(inner);
            }
            let names = format!("{} and {}", clouds[i].short, clouds[j].short);
            Failure::from(inner).of_file(&names)
        }
        orthant::Error::Breakdown { cloud, .. } | orthant::Error::NotPositive { cloud, .. }
            if (cloud as usize) < clouds.len() =>
        {
            let own = &clouds[cloud as usize];
            Failure::from(error.renumbered(|point| own.point_row(point)))
        }
        error => Failure::from(error),
    }
}
