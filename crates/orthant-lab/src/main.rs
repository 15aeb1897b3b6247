//! The paper's figures and tables, from one command.
//!
//! Experiments are TOML files (`experiments/NAME.toml`). Their runs are appended to JSON Lines, one line a run, so that a
//! lab that was stopped goes on where it was. Figures, tables and the page are drawn from these lines alone.

mod args;
mod clouds;
mod config;
mod failure;
mod higgs;
mod journal;
mod lab;
mod page;
mod solve;
mod spread;
mod studies;
mod study;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match lab::run(&args::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            #[expect(clippy::print_stderr, reason = "the one place where errors are printed")]
            {
                eprintln!("orthant-lab: {failure}");
            }
            failure.exit_code()
        }
    }
}
