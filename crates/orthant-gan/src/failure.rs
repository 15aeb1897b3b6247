//! What went wrong, and the exit code that says so.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use orthant_gan::Error;

/// An error on its way to the person, with what they can do about it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad usage or bad input: exit code 2.
    Input(anyhow::Error),
    /// Anything else: exit code 1.
    Other(anyhow::Error),
}

impl Failure {
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Failure::Input(anyhow::anyhow!("{message}"))
    }

    /// A file or folder that the operating system does not give.
    pub(crate) fn at(path: &Path, error: impl fmt::Display) -> Self {
        Failure::input(format!("{}: {error}", path.display()))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Input(_) => ExitCode::from(2),
            Failure::Other(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Input(error) | Failure::Other(error)) = self;
        // On one line, whatever a library below had to say.
        let text = format!("{error:#}");
        f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // Numbers that ran away, and solves that could not be done, are nobody's input.
            Error::Diverged { .. } | Error::Divergence(_) => Failure::Other(error.into()),
            _ => Failure::Input(error.into()),
        }
    }
}

impl From<orthant_gan::data::Error> for Failure {
    fn from(error: orthant_gan::data::Error) -> Self {
        Failure::Input(error.into())
    }
}

impl From<orthant_io::Error> for Failure {
    fn from(error: orthant_io::Error) -> Self {
        Failure::Input(error.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Other(error.into())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::Other(error.into())
    }
}
