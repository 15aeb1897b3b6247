//! Errors of the library as exceptions: `ValueError` for what was given, `BreakdownError` for a kernel that broke down.

use orthant::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTimeoutError, PyValueError};

pyo3::import_exception!(orthant._errors, BreakdownError);

/// The exception for an error.
pub(crate) fn raised(error: Error) -> PyErr {
    let message = message(&error);
    match innermost(error) {
        Error::Breakdown { .. } | Error::NotPositive { .. } => BreakdownError::new_err(message),
        Error::Memory { .. } => PyMemoryError::new_err(message),
        Error::Index { .. } => PyIndexError::new_err(message),
        Error::TimeLimit { .. } => PyTimeoutError::new_err(message),
        // Exceptions and Ctrl-C are raised by themselves.
        Error::Cancelled => PyRuntimeError::new_err(
            "the callback ended the solve before there was anything to return; let it go on until an iteration is done",
        ),
        _ => PyValueError::new_err(message),
    }
}

/// The same about an argument.
pub(crate) fn raised_by(argument: &str) -> impl Fn(Error) -> PyErr {
    move |error| PyValueError::new_err(format!("{argument}: {}", message(&error)))
}

/// What it says; the library counts rows as spreadsheets do, Python does not.
fn message(error: &Error) -> String {
    let text = error.to_string();
    if is_counted(error) { format!("{text} (counted from 1)") } else { text }
}

fn is_counted(error: &Error) -> bool {
    match error {
        Error::InCloud { source, .. } => is_counted(source),
        Error::Coordinate { .. }
        | Error::Weight { .. }
        | Error::Feature { .. }
        | Error::Cost { .. }
        | Error::NotSymmetric { .. }
        | Error::InClouds { .. }
        | Error::Asymmetric { .. }
        | Error::Value { .. }
        | Error::FarPoint { .. }
        | Error::NoPartners { .. }
        | Error::Breakdown { .. }
        | Error::NotPositive { .. } => true,
        _ => false,
    }
}

fn innermost(error: Error) -> Error {
    match error {
        Error::InCloud { source, .. } | Error::InClouds { source, .. } => innermost(*source),
        other => other,
    }
}
