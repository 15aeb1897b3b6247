//! Tasks of the repository: `cargo xtask test` does everything that must pass before a change lands.
//!
//! Tasks set up what they need: Python packages go to a virtual environment in the target directory, tools beside it. No
//! task waits for ever: every command has a time limit.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task tells what it does")]

mod fuzz;
mod layers;
mod python;
mod run;
mod rust;

use std::env;
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
Usage: cargo xtask TASK

Tasks:
  test     formatting, lints, all tests, documentation, the size of the release build, the README's first command,
           a comparison with other libraries through Python, and the Python package (sets up its own environment)
  rust     the same without Python
  python   the comparison with other libraries and the Python package only
  quick    for daily work: formatting, lints and unit tests of everything but the networks and the Python package, and
           one case of each kind of test
  layers   whether the modules of the library use only those below them
  fuzz     the readers with mutated files, 60 seconds for each target (sets up cargo-fuzz);
           cargo xtask fuzz [--seconds N] [TARGET...] for some of them";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (task, rest) = match arguments.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("", &[][..]),
    };
    let begun = Instant::now();
    let done = match (task, rest) {
        ("test", []) => test(),
        ("rust", []) => rust::all(|| Ok(())),
        ("python", []) => python::environment().and_then(|python| python::all(&python)),
        ("quick", []) => rust::quick(),
        ("layers", []) => layers::check(),
        ("fuzz", rest) => fuzz::all(rest),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    let used = run::used(begun, 0.0);
    match done {
        Ok(()) => {
            println!("\nxtask {task}: all passed ({used})");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("\nxtask {task}: {message} ({used})");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result<(), String> {
    std::thread::scope(|scope| {
        // Gigabytes, most of them PyTorch: they come while Rust compiles.
        let environment = scope.spawn(python::environment);
        rust::all(|| {
            let python = environment.join().map_err(|_| "the Python environment: a panic")??;
            python::all(&python)
        })
    })
}
