//! The command `orthant-gan`.

mod args;
mod commands;
mod output;

use std::process::ExitCode;

use clap::Parser;
use orthant_support::{Failure, failure};

use args::{Cli, Command};

fn main() -> ExitCode {
    let done = run(&Cli::parse());
    failure::end("orthant-gan", done.map(|()| ExitCode::SUCCESS))
}

fn run(cli: &Cli) -> Result<(), Failure> {
    if let Some(threads) = cli.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().map_err(Failure::other)?;
    }
    match &cli.command {
        Command::Train(arguments) => commands::train::run(arguments),
        Command::Sample(arguments) => commands::sample::run(arguments),
        Command::KernelTable(arguments) => commands::kernel_table::run(arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Config(arguments) => commands::config::run(arguments),
    }
}
