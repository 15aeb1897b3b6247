//! The `orthant` command: optimal transport on files.

mod alloc;
mod args;
mod barycenter;
mod bench;
mod compare;
mod demo;
mod figures;
mod flow;
mod input;
mod json;
mod map;
mod numbers;
mod output;
mod outputs;
mod progress;
mod report;
mod result;
mod settings;
mod solve;
mod table;
mod two_sample;
mod view;
mod watch;

use std::process::ExitCode;

use orthant_support::{Failure, failure, stdout};

use args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::read();
    watch::signals();
    failure::end("orthant", run(cli))
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Rot(arguments) => solve::rot(&arguments),
        Command::Divergence(arguments) => solve::divergence(&arguments),
        Command::Map(arguments) => map::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Flow(arguments) => flow::run(&arguments),
        Command::Barycenter(arguments) => barycenter::run(&arguments),
        Command::Test(arguments) => two_sample::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Bench { arguments } => bench::run(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::described(), "orthant", &mut script);
            stdout::write(|out| out.write_all(&script))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { page } => {
            let mut command = Cli::described();
            // Sets the names under which subcommands are called.
            command.build();
            let page = match &page {
                None => command,
                Some(name) => command
                    .find_subcommand(name)
                    .ok_or_else(|| {
                        Failure::input(format!("{name}: no such subcommand; see orthant --help"))
                    })?
                    .clone(),
            };
            stdout::write(|out| clap_mangen::Man::new(page).render(out))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
