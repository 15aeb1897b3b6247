//! The race to a certified accuracy, against the method of the paper.

use std::io::Write;
use std::time::Instant;

use orthant::{
    Measure, Method, Options, Points, Precision, Solution,
    options::{Algorithm, Anchors, Features},
    rot,
};
use orthant_io::{Cloud, ReadOptions, Values};
use orthant_support::Failure;
use orthant_support::clouds::{caps, figure_1};
use orthant_support::number::{count, rough};
use orthant_support::table::{Table, lines, table};
use serde_json::json;

use crate::accuracy::SEEDS;
use crate::measure::line;

/// Accuracy that both run to.
const GOAL: f64 = 1e-3;
/// The first rank of the paper's features. It is doubled until they reach the goal, or would be too many numbers.
const FIRST_RANK: usize = 500;
const NUMBERS: [usize; 2] = [10_000_000, 700_000_000];

/// Both problems of the paper that need no files.
pub(crate) fn run(n: usize, quick: bool) -> Result<(), Failure> {
    let clouds = figure_1(n, 1);
    let plane = clouds.measures(n)?;
    let numbers = NUMBERS[usize::from(!quick)];
    let mut table = race_table();
    for epsilon in [0.05, 0.1, 0.5] {
        race("figure_1", &plane, epsilon, numbers, &mut table)?;
    }
    let clouds = caps(n, 1);
    let sphere = clouds.measures(n)?;
    for epsilon in [0.05, 0.1] {
        race("caps", &sphere, epsilon, numbers, &mut table)?;
    }
    show(&table)
}

/// The race on the points of two files.
pub(crate) fn on_files(files: &[String], epsilon: f64, quick: bool) -> Result<(), Failure> {
    let read = |file: &String| orthant_io::read(file, &ReadOptions::default());
    let clouds = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let [x, y] = &clouds[..] else { return Err(Failure::input("--data takes two files")) };
    let measures = [measure(x, &files[0])?, measure(y, &files[1])?];
    let mut table = race_table();
    race("data", &measures, epsilon, NUMBERS[usize::from(!quick)], &mut table)?;
    show(&table)
}

/// All points of a file, alike.
fn measure<'c>(cloud: &'c Cloud, file: &str) -> Result<Measure<'c>, Failure> {
    let points = match &cloud.values {
        Values::F32(values) => Points::new(values, cloud.dim),
        Values::F64(values) => Points::new(values, cloud.dim),
    };
    let named = |error: orthant::Error| Failure::from(error).spelled_out(file);
    Ok(Measure::uniform(points.map_err(named)?))
}

fn race_table() -> Table {
    let mut table = table();
    let paper = ["paper's rank", "error", "iterations", "seconds"];
    let ours = ["", "eps", "method", "rank", "certified", "error", "iterations", "seconds"];
    table.set_header(ours.into_iter().chain(paper).chain(["times as fast"]));
    table
}

/// For people; programs read the lines.
fn show(table: &Table) -> Result<(), Failure> {
    Ok(writeln!(std::io::stderr(), "{}", lines(table))?)
}

/// What the method of the paper does at some rank.
struct Paper {
    rank: usize,
    /// Root mean square over draws, or the one that was already too large.
    error: f64,
    iterations: usize,
    seconds: f64,
}

/// The paper's own features and iterations, in our pass over them.
fn paper(
    [mu, nu]: &[Measure<'_>; 2],
    epsilon: f64,
    rank: usize,
    error: &dyn Fn(&Solution) -> f64,
) -> Result<Paper, Failure> {
    let mut found = Paper { rank, error: 0.0, iterations: 0, seconds: f64::INFINITY };
    let (mut squares, mut draws) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let method = Method::Factored(Features::Gaussian(Anchors::Paper { centred: false }));
        let options = Options::builder(epsilon).method(method).rank(rank).seed(seed);
        let options = options.precision(Precision::F32).algorithm(Algorithm::Plain);
        let options = options.tolerance(0.02 * GOAL).max_iterations(2_000).build()?;
        let begun = Instant::now();
        let solution = rot(mu, nu, &options)?;
        found.seconds = found.seconds.min(begun.elapsed().as_secs_f64());
        found.iterations = solution.iterations;
        squares += error(&solution).powi(2);
        draws += 1.0;
        if squares > SEEDS as f64 * GOAL * GOAL {
            break;
        }
    }
    found.error = f64::sqrt(squares / draws);
    Ok(found)
}

/// Time to a certified error, and that of the paper's method at the rank that it needs for the same error.
fn race(
    name: &str,
    clouds: &[Measure<'_>; 2],
    epsilon: f64,
    numbers: usize,
    table: &mut Table,
) -> Result<(), Failure> {
    let [mu, nu] = clouds;
    let options = || Options::builder(epsilon);
    let truth = if mu.dim() <= 3 {
        options().method(Method::lattice()).accuracy(1e-8).tolerance(1e-9)
    } else {
        options().method(Method::online()).tolerance(1e-8)
    };
    let truth = rot(mu, nu, &truth.build()?)?;
    let error = |s: &Solution| (s.value_kl / truth.value_kl - 1.0).abs();
    let automatic = options().accuracy(GOAL).build()?;
    let solve = || -> orthant::Result<_> {
        let begun = Instant::now();
        let solution = rot(mu, nu, &automatic)?;
        Ok((solution, begun.elapsed().as_secs_f64()))
    };
    let (ours, mut seconds) = solve()?;
    for _ in 1..3 {
        seconds = seconds.min(solve()?.1);
    }
    let points = mu.points().len() + nu.points().len();
    let mut rank = FIRST_RANK;
    let paper = loop {
        let paper = paper(clouds, epsilon, rank, &error)?;
        if paper.error <= GOAL || 2 * rank * points > numbers {
            break paper;
        }
        rank *= 2;
    };
    let half = ours.interval.map(|i| 0.5 * i.width() / ours.value_kl);
    let (reaches, times) = (paper.error <= GOAL, paper.seconds / seconds);
    table.add_row([
        name.to_owned(),
        epsilon.to_string(),
        ours.method.as_str().to_owned(),
        count(ours.rank),
        half.map_or_else(String::new, |half| rough(half, 1)),
        rough(error(&ours), 1),
        ours.iterations.to_string(),
        format!("{seconds:.3}"),
        count(paper.rank),
        rough(paper.error, 1),
        paper.iterations.to_string(),
        format!("{:.3}", paper.seconds),
        if reaches {
            format!("{times:.0}")
        } else {
            format!("not reached in {times:.0} times the time")
        },
    ]);
    line(&json!({
        "bench": "race", "problem": name, "n": mu.points().len(), "m": nu.points().len(), "dim": mu.dim(),
        "epsilon": epsilon, "accuracy": GOAL, "seconds": seconds, "relative_error": error(&ours),
        "relative_half_width": half, "kept": ours.meets_accuracy(GOAL), "method": ours.method.as_str(),
        "rank": ours.rank, "iterations": ours.iterations, "paper_rank": paper.rank,
        "paper_relative_error": paper.error, "paper_reaches": reaches,
        "paper_iterations": paper.iterations, "paper_seconds": paper.seconds,
        "times_as_fast": times,
    }))
}
