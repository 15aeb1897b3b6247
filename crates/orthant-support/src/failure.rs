//! What went wrong, and the exit code that says so: one rule for all commands.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// Exit code for a solve that ended at a limit: the result is printed all the same.
pub const NOT_CONVERGED: u8 = 3;

/// An error on its way to the person, with what they can do about it.
#[derive(Debug)]
pub enum Failure {
    /// Bad usage or bad input: exit code 2.
    Input(anyhow::Error),
    /// The time was up before there was a result: exit code 3.
    TimeUp(anyhow::Error),
    /// Anything else: exit code 1.
    Other(anyhow::Error),
}

impl Failure {
    /// Bad usage or bad input, in words.
    pub fn input(message: impl fmt::Display) -> Self {
        Failure::Input(anyhow::anyhow!("{message}"))
    }

    /// A file or folder that a person named, and that cannot be used.
    pub fn at(path: &Path, error: impl fmt::Display) -> Self {
        Failure::input(format!("{}: {error}", path.display()))
    }

    /// Whatever it was about, it is no fault of the input: exit code 1.
    pub fn other(error: impl Into<anyhow::Error>) -> Self {
        Failure::Other(error.into())
    }

    /// Puts the name of a file before the message.
    #[must_use]
    pub fn of_file(self, name: &str) -> Self {
        let (error, again) = self.into_parts();
        again(error.context(name.to_owned()))
    }

    /// Puts a name before the message, and nothing is left to be named. A limit of time is about no file.
    #[must_use]
    pub fn spelled_out(self, name: &str) -> Self {
        match self {
            Failure::TimeUp(error) => Failure::TimeUp(error),
            other => {
                let (error, again) = other.into_parts();
                again(anyhow::anyhow!("{name}: {error:#}"))
            }
        }
    }

    /// The error, and what makes the same kind of failure out of another one.
    pub fn into_parts(self) -> (anyhow::Error, fn(anyhow::Error) -> Failure) {
        match self {
            Failure::Input(error) => (error, Failure::Input),
            Failure::TimeUp(error) => (error, Failure::TimeUp),
            Failure::Other(error) => (error, Failure::Other),
        }
    }

    /// The exit code of a command that ends with this.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => 2,
            Failure::TimeUp(_) => NOT_CONVERGED,
            Failure::Other(_) => 1,
        }
    }
}

/// Ends a command: prints the failure, if there is one, behind the name of the program.
pub fn end(program: &str, done: Result<ExitCode, Failure>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(failure) => {
            #[expect(clippy::print_stderr, reason = "the one place where errors are printed")]
            {
                eprintln!("{program}: {failure}");
            }
            ExitCode::from(failure.code())
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Input(error) | Failure::TimeUp(error) | Failure::Other(error)) = self;
        // Contexts from the outside in, on one line: `x.csv: the weight of point 3 is -1; ...`.
        let text = format!("{error:#}");
        if text.contains('\n') {
            // Whatever a library below had to say.
            return f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        f.write_str(&text)
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

/// Errors of reading; those of writing are [`Failure::other`].
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

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::Other(error.into())
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

#[cfg(test)]
mod tests {
    use orthant::{Measure, Method, Options, Points, rot};

    use super::*;

    /// What the library says of two points, one of them at `at`.
    fn solved(at: f64, options: orthant::options::OptionsBuilder) -> Failure {
        let cloud = |at: f64| -> orthant::Result<_> {
            Ok(Measure::uniform(Points::new(vec![0.0, at], 1)?))
        };
        let solve = || rot(&cloud(1.0)?, &cloud(at)?, &options.build()?);
        Failure::from(solve().unwrap_err())
    }

    #[test]
    fn exit_codes_say_whose_fault_it_is() {
        // What was given cannot be solved.
        assert_eq!(solved(f64::NAN, Options::builder(1.0)).code(), 2);
        assert_eq!(solved(2.0, Options::builder(-1.0)).code(), 2);
        // The kernel of the paper's features is too coarse for so small an epsilon, or the memory is too small.
        let dense = Options::builder(1.0).method(Method::dense());
        assert_eq!(solved(2.0, dense.max_memory(1)).code(), 1);
        let coarse = Options::builder(1e-3).method(Method::nystrom()).rank(1).gauge(false);
        assert_eq!(solved(30.0, coarse).code(), 1);
        // Files: what is in them is input, and so is a picture that nobody can draw; the rest is not.
        let read = |file: &str| {
            Failure::from(orthant_io::read(file, &orthant_io::ReadOptions::default()).unwrap_err())
        };
        assert_eq!(read("there-is-no-such-file.csv").code(), 2);
        assert_eq!(Failure::from(orthant_draw::Error::Empty).code(), 2);
        assert_eq!(Failure::from(std::io::Error::other("full")).code(), 1);
        let json = serde_json::from_str::<u8>("x").unwrap_err();
        assert_eq!(Failure::from(json).code(), 1);
        assert_eq!(Failure::TimeUp(anyhow::anyhow!("late")).code(), 3);
    }

    #[test]
    fn messages_are_one_line_that_names_the_place() {
        let failure =
            Failure::from(std::io::Error::from_raw_os_error(2)).of_file("standard output");
        assert_eq!(failure.to_string(), "standard output: No such file or directory");
        let failure = Failure::input("two  blanks").spelled_out("x.csv");
        assert_eq!(failure.to_string(), "x.csv: two  blanks");
        assert_eq!(Failure::input("a\n  | b\n").to_string(), "a | b");
        assert_eq!(Failure::at(Path::new("run"), "no such run").to_string(), "run: no such run");
    }
}
