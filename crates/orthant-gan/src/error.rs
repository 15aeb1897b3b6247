//! What can go wrong.

use std::io;

use orthant_support::Failure;

/// The result of most things here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong: bad settings, files that are not what they should be, numbers that ran away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Settings that no run can be made from.
    #[error("{place}: {message}")]
    Config {
        /// The file.
        place: String,
        /// What is wrong, and where.
        message: String,
    },
    /// The data are not what the settings say.
    #[error("{0}")]
    Data(String),
    /// Files of images that cannot be learned from.
    #[error(transparent)]
    Images(#[from] crate::data::Error),
    /// A checkpoint that is none, or one of other networks.
    #[error("{path}: {message}")]
    Checkpoint {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// The numbers of a step are not finite.
    #[error(
        "step {step}: {what} has numbers that are not finite; smaller rates, or a bound for the latents \
         (model.bound), keep them so"
    )]
    Diverged {
        /// The step of the generator.
        step: u64,
        /// Where they are.
        what: String,
    },
    /// The divergence could not be computed.
    #[error("the divergence: {0}")]
    Divergence(#[from] orthant::Error),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] orthant_io::Error),
}

/// What exit code a command that ends with an error has.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // Numbers that ran away, solves that could not be done with what the networks made, and files that could
            // not be written are nobody's input.
            Error::Diverged { .. } | Error::Divergence(_) | Error::Write(_) => {
                Failure::other(error)
            }
            _ => Failure::Input(error.into()),
        }
    }
}

impl From<crate::data::Error> for Failure {
    fn from(error: crate::data::Error) -> Self {
        Failure::Input(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_say_whose_fault_it_is() {
        let code = |error: Error| Failure::from(error).code();
        let (place, message) = ("run.toml".to_owned(), "no rank".to_owned());
        assert_eq!(code(Error::Config { place, message }), 2);
        assert_eq!(code(Error::Diverged { step: 1, what: "the gradient".to_owned() }), 1);
        // What networks made, and not a person.
        let error = orthant::Points::new(vec![f64::NAN], 1).unwrap_err();
        assert_eq!(code(Error::Divergence(error)), 1);
        let nowhere = std::path::Path::new("no-such-folder/file");
        let error = orthant_io::write_atomic(nowhere, |_| Ok(())).unwrap_err();
        assert_eq!(code(Error::Write(error)), 1);
    }
}
