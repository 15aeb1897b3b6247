//! What went wrong, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

/// Exit code for a solve that ended at a limit: the result is printed all the same.
pub(crate) const NOT_CONVERGED: u8 = 3;

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

    /// Puts the name of a file before the message.
    pub(crate) fn of_file(self, name: &str) -> Self {
        match self {
            Failure::Input(error) => Failure::Input(error.context(name.to_owned())),
            Failure::Other(error) => Failure::Other(error.context(name.to_owned())),
        }
    }

    /// Calls a cloud by its file.
    pub(crate) fn name_cloud(self, files: [&str; 2]) -> Self {
        let Failure::Input(error) = self else { return self };
        // Others keep what was said of them.
        if !matches!(error.downcast_ref(), Some(orthant::Error::InCloud { .. })) {
            return Failure::Input(error);
        }
        match error.downcast::<orthant::Error>() {
            Ok(orthant::Error::InCloud { cloud, source }) => {
                Failure::from(*source).of_file(crate::input::name(files[cloud as usize]))
            }
            Ok(error) => Failure::Input(error.into()),
            Err(error) => Failure::Input(error),
        }
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
        // Contexts from the outside in, on one line: `x.csv: the weight of point 3 is -1; ...`.
        write!(f, "{error:#}")
    }
}

impl From<orthant::Error> for Failure {
    fn from(error: orthant::Error) -> Self {
        match error {
            orthant::Error::Breakdown { .. } | orthant::Error::NotPositive { .. } => {
                Failure::Other(error.into())
            }
            _ => Failure::Input(error.into()),
        }
    }
}

impl From<orthant_io::Error> for Failure {
    fn from(error: orthant_io::Error) -> Self {
        Failure::Input(error.into())
    }
}

impl From<orthant_draw::Error> for Failure {
    fn from(error: orthant_draw::Error) -> Self {
        Failure::Input(error.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Other(error.into())
    }
}
