//! Standard output: a reader that has gone away is not an error.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes to standard output.
pub fn write(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::from(error).of_file("standard output"))
        }
        _ => Ok(()),
    }
}

/// Prints a line, or several.
pub fn print(text: impl std::fmt::Display) -> Result<(), Failure> {
    write(|out| writeln!(out, "{text}"))
}
