//! The paper's figures and tables, from one command.
//!
//! Experiments are TOML files (`experiments/NAME.toml`). Their runs are appended to JSON Lines, one line a run, so that a
//! lab that was stopped goes on where it was. Figures, tables and the page are drawn from these lines alone.

mod args;
mod config;
mod higgs;
mod journal;
mod lab;
mod page;
mod solve;
mod sphere;
mod spread;
mod studies;
mod study;

use std::process::ExitCode;

use clap::Parser;
use orthant_support::failure;

fn main() -> ExitCode {
    let done = lab::run(&args::Args::parse());
    failure::end("orthant-lab", done.map(|()| ExitCode::SUCCESS))
}
