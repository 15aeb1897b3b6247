//! `orthant demo`: the paper's Figure 1 problem, with features and exactly.

use std::process::ExitCode;
use std::time::Instant;

use orthant::{Divergence, Measure, Method, Options, divergence};

use crate::args::Demo;
use crate::data;
use crate::failure::Failure;
use crate::memory;
use crate::output::{self, count, number, seconds};

/// Regularisations of the demonstration; the paper's Figure 1 has these among others.
const EPSILONS: [f64; 5] = [0.05, 0.1, 0.5, 1.0, 2.5];
/// Points of each cloud at which the exact values are computed.
const EXACT: usize = 2000;

pub(crate) fn run(arguments: &Demo) -> Result<ExitCode, Failure> {
    arguments.threads.run(|| demo(arguments))
}

fn demo(arguments: &Demo) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let n = arguments.points as usize;
    let small = n.min(EXACT);
    let [x, y] = data::figure_1(n, arguments.seed);
    let full = [data::uniform(&x, n)?, data::uniform(&y, n)?];
    let part = [data::uniform(&x, small)?, data::uniform(&y, small)?];
    output::to_stdout(|out| {
        writeln!(
            out,
            "Two clouds of {} points in the plane, N((1,1), I) and N(0, 0.1 I) (the paper's Figure 1).\n\
             Regularised transport W and Sinkhorn divergence S with {} random positive features,\n\
             and, for {} points of each cloud, beside the exact values. W is in the KL form.\n",
            count(n),
            count(arguments.rank),
            count(small)
        )
    })?;

    let mut table = output::table();
    table.add_row(["", &count(n), "", "", &count(small), "", "", "", "", "", "", ""]);
    table.add_row([
        "eps", "W", "S", "time", "W", "exact", "error", "S", "exact", "error", "time", "exact",
    ]);
    for epsilon in EPSILONS {
        let features = |m: &[Measure<'_>; 2]| solve(m, Method::paper(), epsilon, arguments);
        let (large, large_time) = features(&full)?;
        let (rough, time) = features(&part)?;
        let (exact, exact_time) = solve(&part, Method::online(), epsilon, arguments)?;
        let error =
            |rough: f64, exact: f64| format!("{:.1} %", 100.0 * (rough / exact - 1.0).abs());
        table.add_row([
            format!("{epsilon}"),
            number(large.cross.value_kl),
            number(large.value),
            seconds(large_time),
            number(rough.cross.value_kl),
            number(exact.cross.value_kl),
            error(rough.cross.value_kl, exact.cross.value_kl),
            number(rough.value),
            number(exact.value),
            error(rough.value, exact.value),
            seconds(time),
            seconds(exact_time),
        ]);
    }
    let table = table.to_string();
    let lines: Vec<&str> = table.lines().map(str::trim_end).collect();
    output::to_stdout(|out| {
        writeln!(
            out,
            "{}\n\nTimes are for the whole divergence, three solves to a marginal error of 1e-6. Random\n\
             features have an error that falls as 1/sqrt(rank) and grows as epsilon shrinks; the exact\n\
             method has none and takes time n x n.\n\nDone in {}. With files of your own:\n  \
             orthant divergence x.csv y.csv",
            lines.join("\n"),
            seconds(begun.elapsed().as_secs_f64())
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

fn solve(
    [mu, nu]: &[Measure<'_>; 2],
    method: Method<'_>,
    epsilon: f64,
    arguments: &Demo,
) -> Result<(Divergence, f64), Failure> {
    let mut builder =
        Options::builder(epsilon).method(method).rank(arguments.rank).seed(arguments.seed);
    if let Some(bytes) = memory::available() {
        builder = builder.max_memory(bytes);
    }
    let options = builder.build()?;
    let begun = Instant::now();
    let solved = divergence(mu, nu, &options)?;
    Ok((solved, begun.elapsed().as_secs_f64()))
}
