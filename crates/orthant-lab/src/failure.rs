//! What went wrong, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

/// An error on its way to the person, with what they can do about it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad usage or bad input: exit code 2.
    Input(anyhow::Error),
    /// Files that are not there, of an experiment that needs them: exit code 2, and no obstacle to the others.
    Absent(String),
    /// Anything else: exit code 1.
    Other(anyhow::Error),
}

impl Failure {
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Failure::Input(anyhow::anyhow!("{message}"))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Input(_) | Failure::Absent(_) => ExitCode::from(2),
            Failure::Other(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input(error) | Failure::Other(error) => write!(f, "{error:#}"),
            Failure::Absent(message) => f.write_str(message),
        }
    }
}

impl From<orthant::Error> for Failure {
    fn from(error: orthant::Error) -> Self {
        Failure::Input(error.into())
    }
}

impl From<orthant_io::Error> for Failure {
    fn from(error: orthant_io::Error) -> Self {
        Failure::Input(error.into())
    }
}

impl From<orthant_draw::Error> for Failure {
    fn from(error: orthant_draw::Error) -> Self {
        Failure::Other(error.into())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::Other(error.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Other(error.into())
    }
}
