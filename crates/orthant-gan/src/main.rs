//! The command `orthant-gan`.

mod args;
mod commands;
mod failure;
mod output;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            #[expect(clippy::print_stderr, reason = "the one place where errors are printed")]
            {
                eprintln!("orthant-gan: {failure}");
            }
            failure.exit_code()
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    if let Some(threads) = cli.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().map_err(|error| Failure::Other(error.into()))?;
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
