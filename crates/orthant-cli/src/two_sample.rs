//! `orthant test`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use orthant::{Next, Stop, TwoSample, TwoSampleTest};
use orthant_io::{Cells, Series, TableFormat};
use serde::Serialize;

use crate::args::Test;
use crate::failure::{Failure, NOT_CONVERGED};
use crate::input::{self, Clouds};
use crate::output::{self, Seconds, count, number};
use crate::progress;
use crate::solve::{self, Epsilon};

/// Error of the terms of a divergence, as a part of their `value_kl`, where none is given: it costs no validity.
const DEFAULT_ACCURACY: f64 = 1e-2;

/// The JSON object.
#[derive(Debug, Serialize)]
struct Report {
    p_value: f64,
    resolution: f64,
    statistic: f64,
    permutations: usize,
    exceeding: usize,
    /// Quantiles of the divergences of permutations.
    null: Null,
    unconverged: usize,
    epsilon: f64,
    n: usize,
    m: usize,
    dim: usize,
    method: &'static str,
    rank: usize,
    reason: Option<String>,
    seed: u64,
    stop: &'static str,
    seconds: Seconds,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Null {
    median: f64,
    q90: f64,
    q95: f64,
    q99: f64,
}

pub(crate) fn run(arguments: &Test) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let solve = &arguments.solve;
    let method = solve::method(solve)?;
    solve::refuse(
        "test",
        &[
            (solve.certify, "--certify"),
            (solve.polish, "--polish"),
            (solve.no_gauge, "--no-gauge"),
            (solve.trace.is_some(), "--trace"),
            (solve.unbalanced.is_given(), "--reach"),
        ],
    )?;
    if let Some(path) = &solve.output {
        output::check_table(path, "--output")?;
    }
    let clouds = Clouds::read(solve)?;
    let [mu, nu] = clouds.measures(solve)?;
    let read = begun.elapsed().as_secs_f64();

    let epsilon = solve.threads.run(|| {
        // The clouds must not be told apart here.
        Epsilon::or_from(solve, "both", || Ok(TwoSampleTest::mean_squared_distance(&mu, &nu)?))
    })?;
    let mut rough = solve.clone();
    rough.accuracy = solve.accuracy.or(Some(DEFAULT_ACCURACY));
    let options = solve::options(&rough, method, epsilon.value)?;
    let bar = progress::line(
        arguments.permutations as u64,
        "{pos} of {len} permutations [{bar:30}] {elapsed}",
    );
    let mut observer = |done: usize, _: usize| {
        bar.set_position(done as u64);
        Next::Continue
    };
    let found = solve.threads.run(|| {
        let test = TwoSampleTest::new(&options).permutations(arguments.permutations);
        test.observer(&mut observer).run(&mu, &nu)
    });
    bar.finish_and_clear();
    let found = found.map_err(|error| Failure::from(error).name_cloud([&solve.x, &solve.y]))?;
    if let Some(path) = &solve.output {
        let values: Vec<f64> = std::iter::once(found.statistic).chain(found.null.clone()).collect();
        let numbers = Cells::Indices((0..values.len() as u64).collect());
        let columns = [
            Series { name: "permutation".to_owned(), cells: numbers },
            Series { name: "divergence".to_owned(), cells: Cells::Numbers(values) },
        ];
        output::write_table(path, TableFormat::of(path)?, &columns, true)?;
    }
    let report = Report {
        p_value: found.p_value,
        resolution: found.resolution,
        statistic: found.statistic,
        permutations: found.permutations(),
        exceeding: found.exceeding,
        null: Null {
            median: found.quantile(0.5),
            q90: found.quantile(0.9),
            q95: found.quantile(0.95),
            q99: found.quantile(0.99),
        },
        unconverged: found.unconverged,
        epsilon: found.epsilon,
        n: mu.points().len(),
        m: nu.points().len(),
        dim: mu.dim(),
        method: found.method.as_str(),
        rank: found.rank,
        reason: found.reason.clone(),
        seed: solve.seed,
        stop: found.stop.as_str(),
        seconds: Seconds { read, total: begun.elapsed().as_secs_f64(), ..Seconds::of(found.times) },
    };
    output::to_stdout(|out| {
        if solve.json {
            serde_json::to_writer(&mut *out, &report)?;
            writeln!(out)
        } else {
            writeln!(out, "{}", text(arguments, &clouds, &epsilon, &report, &found))
        }
    })?;
    let done = found.stop == Stop::Converged;
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// The answer for people.
fn text(
    arguments: &Test,
    clouds: &Clouds,
    epsilon: &Epsilon,
    report: &Report,
    found: &TwoSample,
) -> String {
    let solve = &arguments.solve;
    let mut head = format!(
        "{} ({} points) and {} ({} points), {} coordinates\n",
        input::name(&solve.x),
        count(report.n),
        input::name(&solve.y),
        count(report.m),
        report.dim
    );
    for (file, dropped) in [&solve.x, &solve.y].into_iter().zip(clouds.dropped()) {
        if dropped > 0 {
            let name = input::name(file);
            let _ = writeln!(head, "{name}: {} rows with missing values dropped", count(dropped));
        }
    }
    head += &epsilon.text();
    let verdict = if report.p_value <= 0.05 {
        "one distribution is unlikely to give clouds this different"
    } else {
        "no evidence of a difference"
    };
    let tested = format!(
        "{} of {} permutations are at least as far apart; steps of {}",
        count(report.exceeding),
        count(report.permutations),
        number(report.resolution)
    );
    let Null { median, q90, q95, q99 } = report.null;
    let quantiles = format!("90 %: {}, 95 %: {}, 99 %: {}", number(q90), number(q95), number(q99));
    let method = format!("{}, rank {}", report.method, count(report.rank));
    let rows = vec![
        ["p-value".to_owned(), number(report.p_value), tested],
        [String::new(), String::new(), verdict.to_owned()],
        ["divergence".to_owned(), number(report.statistic), "of the clouds".to_owned()],
        ["  permuted".to_owned(), number(median), format!("median; {quantiles}")],
        ["method".to_owned(), method, report.reason.clone().unwrap_or_default()],
        solve::time_row(report.seconds),
    ];
    let mut tail = String::new();
    if found.stop != Stop::Converged {
        let _ = write!(
            tail,
            "\n\nEnded at the time limit, with {} of {} permutations.",
            count(report.permutations),
            count(arguments.permutations)
        );
    }
    if report.unconverged > 0 {
        let _ = write!(
            tail,
            "\n\n{} divergences did not converge: the p-value is valid, --max-iter or a larger --eps may give it \
             more power.",
            count(report.unconverged)
        );
    }
    format!("{head}\n\n{}{tail}", solve::lines(rows))
}
