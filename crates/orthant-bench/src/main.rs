//! `orthant-bench`, which `orthant bench` runs: what this machine does, as ratios inside one run.

mod accuracy;
mod args;
mod certificates;
mod exact;
mod high;
mod lattice;
mod linear;
mod measure;
mod peak;
mod plans;
mod race;
mod sweep;

use std::process::ExitCode;

use clap::Parser;
use orthant_support::{Failure, failure};

use args::{Args, Suite};

fn main() -> ExitCode {
    let arguments = Args::parse();
    let done = arguments.threads.run(|| run(&arguments));
    failure::end("orthant-bench", done.map(|()| ExitCode::SUCCESS))
}

fn run(arguments: &Args) -> Result<(), Failure> {
    let quick = arguments.quick;
    if let Ok(case) = std::env::var(peak::CHILD) {
        return peak::child(&case, quick);
    }
    if let (Some(files), Some(epsilon)) = (&arguments.data, arguments.eps) {
        return race::on_files(files, epsilon, quick);
    }
    let wants = |suite| arguments.suite == Suite::All || arguments.suite == suite;
    if wants(Suite::Sweep) || wants(Suite::Threads) {
        sweep::run(quick, wants(Suite::Sweep), wants(Suite::Threads))?;
    }
    if wants(Suite::Lattice) {
        lattice::run(quick)?;
    }
    if wants(Suite::Exact) {
        exact::run(quick)?;
    }
    if wants(Suite::High) {
        high::run(quick)?;
    }
    if wants(Suite::Accuracy) {
        accuracy::run(quick)?;
    }
    if wants(Suite::Certificates) {
        certificates::run(quick)?;
    }
    if wants(Suite::Pairs) {
        plans::pairs(quick)?;
    }
    if wants(Suite::Gradients) {
        plans::gradients(quick)?;
    }
    if wants(Suite::Memory) {
        peak::run(quick)?;
    }
    if wants(Suite::Linear) {
        linear::run(quick)?;
    }
    Ok(())
}
