//! What went wrong, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

use crate::input::Cloud;

/// Exit code for a solve that ended at a limit: the result is printed all the same.
pub(crate) const NOT_CONVERGED: u8 = 3;

/// An error on its way to the person, with what they can do about it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad usage or bad input: exit code 2.
    Input(anyhow::Error),
    /// The time was up before there was a result: exit code 3.
    TimeUp(anyhow::Error),
    /// Anything else: exit code 1.
    Other(anyhow::Error),
}

impl Failure {
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Failure::Input(anyhow::anyhow!("{message}"))
    }

    /// Puts the name of a file before the message.
    pub(crate) fn of_file(self, name: &str) -> Self {
        match self {
            Failure::Input(error) => Failure::Input(error.context(name.to_owned())),
            Failure::TimeUp(error) => Failure::TimeUp(error.context(name.to_owned())),
            Failure::Other(error) => Failure::Other(error.context(name.to_owned())),
        }
    }

    /// Puts a name before the message, and nothing is left to be named.
    pub(crate) fn spelled_out(self, name: &str) -> Self {
        match self {
            Failure::Input(error) => Failure::Input(anyhow::anyhow!("{name}: {error:#}")),
            Failure::TimeUp(error) => Failure::TimeUp(error),
            Failure::Other(error) => Failure::Other(anyhow::anyhow!("{name}: {error:#}")),
        }
    }

    /// Whatever it was about, it is no fault of the input: exit code 1.
    pub(crate) fn other(error: impl Into<anyhow::Error>) -> Self {
        Failure::Other(error.into())
    }

    /// Calls the clouds of a library error by their names, and points by their rows.
    pub(crate) fn name_clouds(self, clouds: &[Cloud]) -> Self {
        let (error, again): (_, fn(anyhow::Error) -> Failure) = match self {
            Failure::Input(error) => (error, Failure::Input),
            Failure::TimeUp(error) => (error, Failure::TimeUp),
            Failure::Other(error) => (error, Failure::Other),
        };
        match error.downcast::<orthant::Error>() {
            Ok(error) => named(error, clouds),
            // Others keep what was said of them.
            Err(error) => again(error),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Input(_) => ExitCode::from(2),
            Failure::TimeUp(_) => ExitCode::from(NOT_CONVERGED),
            Failure::Other(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Input(error) | Failure::TimeUp(error) | Failure::Other(error)) = self;
        // Contexts from the outside in, on one line: `x.csv: the weight of point 3 is -1; ...`.
        write!(f, "{error:#}")
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

impl From<orthant::Error> for Failure {
    fn from(error: orthant::Error) -> Self {
        match error {
            orthant::Error::TimeLimit { .. } | orthant::Error::NoGradient { .. } => {
                Failure::TimeUp(error.into())
            }
            orthant::Error::Breakdown { .. }
            | orthant::Error::NotPositive { .. }
            | orthant::Error::Memory { .. } => Failure::Other(error.into()),
            _ => Failure::Input(error.into()),
        }
    }
}

impl From<orthant_io::Error> for Failure {
    fn from(error: orthant_io::Error) -> Self {
        if error.is_resource() {
            Failure::Other(error.into())
        } else {
            Failure::Input(error.into())
        }
    }
}

impl From<orthant_draw::Error> for Failure {
    fn from(error: orthant_draw::Error) -> Self {
        Failure::Input(error.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        // The number says nothing that the words do not.
        let message = error.to_string();
        let words = message.split(" (os error").next().unwrap_or(&message);
        Failure::Other(anyhow::anyhow!("{words}"))
    }
}
