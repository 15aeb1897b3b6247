//! `orthant demo`: the paper's Figure 1 problem on lattices, with random features and exactly.

use std::process::ExitCode;
use std::time::Instant;

use orthant::{Divergence, Measure, Method, Options, divergence};
use orthant_support::Failure;
use orthant_support::clouds::figure_1;
use orthant_support::memory;
use orthant_support::number::{count, number, rough, seconds};
use orthant_support::stdout;
use orthant_support::table::Table;
use orthant_support::table::{lines, table};

use crate::args::Demo;
use crate::result::is_exact;

/// Regularisations of the demonstration; the paper's Figure 1 has these among others.
const EPSILONS: [f64; 5] = [0.05, 0.1, 0.5, 1.0, 2.5];
/// Points of each cloud at which the exact values are computed.
const EXACT: usize = 2000;
/// Error of the values, relative to them, that is asked for.
const ACCURACY: f64 = 1e-4;

pub(crate) fn run(arguments: &Demo) -> Result<ExitCode, Failure> {
    arguments.threads.run(|| demo(arguments))
}

fn demo(arguments: &Demo) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let n = arguments.points as usize;
    let small = n.min(EXACT);
    let clouds = figure_1(n, arguments.seed);
    let (full, part) = (clouds.measures(n)?, clouds.measures(small)?);
    stdout::write(|out| {
        writeln!(
            out,
            "Two clouds of {} points in the plane, N((1,1), I) and N(0, 0.1 I) (the paper's Figure 1):\n\
             regularised transport W (in the KL form) and Sinkhorn divergence S, by the method that\n\
             orthant chooses for an accuracy of {ACCURACY:.0e}, with bounds of their errors.\n",
            count(n),
        )
    })?;
    let table = chosen(&full, arguments)?;
    stdout::write(|out| {
        writeln!(
            out,
            "{}\n\nThe first {} points of each cloud exactly, and how far off a lattice (accuracy {ACCURACY:.0e}) and\n\
             the paper's {} random features are:\n",
            lines(&table),
            count(small),
            count(arguments.rank)
        )
    })?;
    let table = compared(&part, arguments)?;
    stdout::write(|out| {
        writeln!(
            out,
            "{}\n\nTimes are for the whole divergence, three solves to a marginal error of 1e-6. Features cost\n\
             time in proportion to the points, all pairs to their square. The error of random features\n\
             falls as 1/sqrt(rank) and grows as epsilon shrinks; a lattice is as fine as is asked for.\n\n\
             Done in {}. With files of your own:\n  orthant divergence x.csv y.csv",
            lines(&table),
            seconds(begun.elapsed().as_secs_f64())
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Values with bounds, by the method of the library's choice.
fn chosen(clouds: &[Measure<'_>; 2], arguments: &Demo) -> Result<Table, Failure> {
    let mut table = table();
    table.add_row(["eps", "W", "error at most", "S", "error at most", "method", "time"]);
    for epsilon in EPSILONS {
        let (solved, time) = solve(clouds, Method::Auto, None, epsilon, arguments.seed)?;
        let exact = is_exact(&solved.cross);
        let error = |bound: Option<f64>| match bound {
            Some(bound) => rough(bound, 1),
            None if exact => "0".to_owned(),
            None => "-".to_owned(),
        };
        let nodes = solved.terms().iter().map(|t| t.rank).max().unwrap_or_default();
        let method = match solved.cross.method.as_str() {
            "lattice" => format!("lattice, {} nodes", count(nodes)),
            name => name.to_owned(),
        };
        table.add_row([
            format!("{epsilon}"),
            number(solved.cross.value_kl),
            error(solved.cross.bound),
            number(solved.value),
            error(solved.bound()),
            method,
            seconds(time),
        ]);
    }
    Ok(table)
}

/// Exact values, the errors of a lattice and of random features, and what each of them takes.
fn compared(clouds: &[Measure<'_>; 2], arguments: &Demo) -> Result<Table, Failure> {
    let mut table = table();
    table.add_row(["", "exact", "", "", "lattice", "", "", "random", "", ""]);
    table.add_row(["eps", "W", "S", "time", "W off", "S off", "time", "W off", "S off", "time"]);
    for epsilon in EPSILONS {
        let solve = |method, rank| solve(clouds, method, rank, epsilon, arguments.seed);
        let (exact, exact_time) = solve(Method::online(), None)?;
        let (lattice, lattice_time) = solve(Method::lattice(), None)?;
        let (random, random_time) = solve(Method::paper(), Some(arguments.rank))?;
        let errors = |solved: &Divergence| {
            let relative = |value: f64, exact: f64| (value / exact - 1.0).abs();
            [
                relative(solved.cross.value_kl, exact.cross.value_kl),
                relative(solved.value, exact.value),
            ]
        };
        let [lattice_w, lattice_s] = errors(&lattice).map(|e| rough(e, 1));
        let [random_w, random_s] = errors(&random).map(|e| format!("{:.1} %", 100.0 * e));
        table.add_row([
            format!("{epsilon}"),
            number(exact.cross.value_kl),
            number(exact.value),
            seconds(exact_time),
            lattice_w,
            lattice_s,
            seconds(lattice_time),
            random_w,
            random_s,
            seconds(random_time),
        ]);
    }
    Ok(table)
}

fn solve(
    [mu, nu]: &[Measure<'_>; 2],
    method: Method,
    rank: Option<usize>,
    epsilon: f64,
    seed: u64,
) -> Result<(Divergence, f64), Failure> {
    let mut builder = Options::builder(epsilon).method(method).accuracy(ACCURACY).seed(seed);
    if let Some(rank) = rank {
        builder = builder.rank(rank);
    }
    if let Some(bytes) = memory::available() {
        builder = builder.max_memory(bytes);
    }
    let options = builder.build()?;
    let begun = Instant::now();
    let solved = divergence(mu, nu, &options)?;
    Ok((solved, begun.elapsed().as_secs_f64()))
}
