//! `orthant bench`: another program, `orthant-bench`, so that what only measures is no part of the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use orthant_support::Failure;

/// The program, as it is called.
const PROGRAM: &str = "orthant-bench";

/// Runs the program with these arguments; its exit code is that of the command.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    // Of the same build, if it is there; otherwise whatever the PATH has.
    let program = beside().unwrap_or_else(|| PathBuf::from(PROGRAM));
    match become_program(Command::new(&program).args(arguments)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::Other(anyhow::anyhow!(
                "{PROGRAM} is neither beside orthant nor on the PATH; build it with cargo build --release -p {PROGRAM}"
            )))
        }
        done => done.map_err(|error| Failure::from(error).of_file(&program.display().to_string())),
    }
}

/// The program in the folder of this one.
fn beside() -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    here.parent().map(|folder: &Path| folder.join(name)).filter(|path| path.is_file())
}

/// This process becomes the program, so that signals reach it.
#[cfg(unix)]
fn become_program(command: &mut Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn become_program(command: &mut Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
