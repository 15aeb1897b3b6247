//! `orthant bench --suite accuracy`: errors of features against the exact kernel.

use std::f64::consts::PI;
use std::io::Write;
use std::time::Instant;

use comfy_table::Table;
use orthant::{
    Algorithm, Anchors, Features, Measure, Method, Options, Points, Precision, Solution, Solver,
    divergence, rot,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};
use serde_json::json;

use crate::bench::line;
use crate::data;
use crate::failure::Failure;
use crate::input::Cloud;
use crate::numbers::{count, rough};
use crate::output;

/// Ranks for each epsilon, on the problem of the paper's Figure 1.
const FIGURE_1: [(f64, &[usize]); 5] = [
    (0.01, &[2500]),
    (0.05, &[350, 1200]),
    (0.1, &[350, 1200]),
    (0.5, &[125, 350]),
    (2.5, &[125, 350]),
];
/// The same for two caps of the unit sphere.
const CAPS: [(f64, &[usize]); 3] = [(0.01, &[2500]), (0.05, &[2500]), (0.1, &[2500])];
/// Draws of the paper's features.
const SEEDS: u64 = 5;

/// Two caps of the unit sphere of half-angle 50 degrees, 60 degrees apart.
fn caps(n: usize, seed: u64) -> [Vec<f64>; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = || -> f64 { Open01.sample(&mut rng) };
    [0.0, PI / 3.0].map(|turn: f64| {
        (0..n)
            .flat_map(|_| {
                let z = 1.0 - uniform() * (1.0 - (PI / 3.6).cos());
                let (s, angle) = ((1.0 - z * z).sqrt(), 2.0 * PI * uniform());
                let (x, y) = (s * angle.cos(), s * angle.sin());
                [turn.cos() * x + turn.sin() * z, y, turn.cos() * z - turn.sin() * x]
            })
            .collect()
    })
}

pub(crate) fn run(quick: bool) -> Result<(), Failure> {
    let n = if quick { 1_000 } else { 10_000 };
    let [x, y] = data::figure_1(n, 0);
    let plane = [data::uniform(&x, n)?, data::uniform(&y, n)?];
    problem("figure_1", &plane, &FIGURE_1[usize::from(quick)..])?;
    whole_divergence(&plane)?;
    let [x, y] = caps(n, 0);
    let measure = |v: Vec<f64>| -> orthant::Result<_> { Ok(Measure::uniform(Points::new(v, 3)?)) };
    problem("caps", &[measure(x)?, measure(y)?], &CAPS[usize::from(quick)..])?;
    races(if quick { 1_000 } else { 20_000 }, quick)
}

/// Accuracy that both run to.
const GOAL: f64 = 1e-3;
/// The first rank of the paper's features. It is doubled until they reach the goal, or would be too many numbers.
const FIRST_RANK: usize = 500;
const NUMBERS: [usize; 2] = [10_000_000, 700_000_000];

fn races(n: usize, quick: bool) -> Result<(), Failure> {
    let [x, y] = data::figure_1(n, 1);
    let plane = [data::uniform(&x, n)?, data::uniform(&y, n)?];
    let numbers = NUMBERS[usize::from(!quick)];
    let mut table = race_table();
    for epsilon in [0.05, 0.1, 0.5] {
        race("figure_1", &plane, epsilon, numbers, &mut table)?;
    }
    let [x, y] = caps(n, 1);
    let measure = |v: Vec<f64>| -> orthant::Result<_> { Ok(Measure::uniform(Points::new(v, 3)?)) };
    let sphere = [measure(x)?, measure(y)?];
    for epsilon in [0.05, 0.1] {
        race("caps", &sphere, epsilon, numbers, &mut table)?;
    }
    show(&table)
}

/// [`race`] on two files.
pub(crate) fn race_on(files: &[String], epsilon: f64) -> Result<(), Failure> {
    let read = |file: &String| -> Result<Cloud, Failure> {
        let cloud = orthant_io::read(file, &orthant_io::ReadOptions::default())?;
        Ok(Cloud::of_file(cloud, file.clone()))
    };
    let clouds = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let [x, y] = &clouds[..] else { return Err(Failure::input("--data takes two files")) };
    let measures = [x.measure(false)?, y.measure(false)?];
    let mut table = race_table();
    race("data", &measures, epsilon, NUMBERS[1], &mut table)?;
    show(&table)
}

fn race_table() -> Table {
    let mut table = output::table();
    let paper = ["paper's rank", "error", "iterations", "seconds"];
    let ours = ["", "eps", "method", "rank", "certified", "error", "iterations", "seconds"];
    table.set_header(ours.into_iter().chain(paper).chain(["times as fast"]));
    table
}

/// For people; programs read the lines.
fn show(table: &Table) -> Result<(), Failure> {
    Ok(writeln!(std::io::stderr(), "{}", output::lines(table))?)
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
        "relative_half_width": half, "kept": ours.keeps(GOAL), "method": ours.method.as_str(),
        "rank": ours.rank, "iterations": ours.iterations, "paper_rank": paper.rank,
        "paper_relative_error": paper.error, "paper_reaches": reaches,
        "paper_iterations": paper.iterations, "paper_seconds": paper.seconds,
        "times_as_fast": times,
    }))
}

/// What a certificate adds to a solve with random features.
pub(crate) fn certificates(quick: bool) -> Result<(), Failure> {
    let n = if quick { 2_000 } else { 100_000 };
    for dim in [5, 20] {
        let [mu, nu] = data::gaussians(n, dim, 2)?;
        let epsilon = 0.1 * orthant::mean_squared_distance(&mu, &nu)?;
        for (rank, precision) in [(1_000, Precision::F32), (1_000, Precision::F64)] {
            let mut best = [f64::INFINITY; 2];
            let mut iterations = 0;
            for _ in 0..5 {
                for (certify, best) in [false, true].into_iter().zip(&mut best) {
                    let options = Options::builder(epsilon).method(Method::gaussian()).rank(rank);
                    let options = options.precision(precision).certify(certify).build()?;
                    let begun = Instant::now();
                    iterations = rot(&mu, &nu, &options)?.iterations;
                    *best = best.min(begun.elapsed().as_secs_f64());
                }
            }
            let [without, with] = best;
            line(&json!({
                "bench": "certificate", "n": n, "dim": dim, "rank": rank,
                "precision": if precision == Precision::F32 { "f32" } else { "f64" },
                "iterations": iterations, "seconds": without, "seconds_certified": with,
                "cost": with / without - 1.0,
            }))?;
        }
    }
    Ok(())
}

/// Errors of a lattice and of the paper's features, each against the exact kernel.
fn problem(
    name: &str,
    clouds: &[Measure<'_>; 2],
    cases: &[(f64, &[usize])],
) -> Result<(), Failure> {
    let [mu, nu] = clouds;
    for &(epsilon, ranks) in cases {
        let options = || Options::builder(epsilon).max_iterations(200_000);
        // The exact solve starts near its end; where that is, its own marginal errors say.
        let near = options().method(Method::lattice()).accuracy(1e-9).tolerance(1e-9).build()?;
        let begun = Instant::now();
        let near = rot(mu, nu, &near)?;
        let online = options().method(Method::online()).tolerance(1e-9).build()?;
        let exact = Solver::new(&online).warm_start(&near).rot(mu, nu)?;
        let exact_seconds = begun.elapsed().as_secs_f64();
        let error = |s: &Solution| (s.value_kl / exact.value_kl - 1.0).abs();
        for &rank in ranks {
            let begun = Instant::now();
            let method = options().method(Method::lattice()).rank(rank).tolerance(1e-9);
            let lattice = rot(mu, nu, &method.build()?)?;
            let seconds = begun.elapsed().as_secs_f64();
            let mut errors = Vec::new();
            for seed in 0..SEEDS {
                let paper = Method::Factored(Features::Gaussian(Anchors::Paper { centred: false }));
                // Their error is of the order of a percent, so that more iterations change nothing.
                let method = Options::builder(epsilon).method(paper).rank(rank).seed(seed);
                let method = method.tolerance(1e-5).max_iterations(2_000).build()?;
                errors.push(error(&rot(mu, nu, &method)?));
            }
            errors.sort_by(f64::total_cmp);
            line(&json!({
                "bench": "accuracy", "problem": name, "n": mu.points().len(), "epsilon": epsilon,
                "rank": rank, "nodes": lattice.rank, "relative_error": error(&lattice),
                "relative_bound": lattice.bound.map(|b| b / lattice.value_kl),
                "seconds": seconds, "paper_relative_error": errors[errors.len() / 2],
                "exact_value_kl": exact.value_kl, "exact_converged": exact.converged(),
                "exact_marginal_error": exact.marginal_error_x.max(exact.marginal_error_y),
                "exact_seconds": exact_seconds,
            }))?;
        }
    }
    Ok(())
}

/// The divergence at small epsilon, where the self terms of random features fail.
fn whole_divergence([mu, nu]: &[Measure<'_>; 2]) -> Result<(), Failure> {
    let epsilon = 0.05;
    let of = |method: Method<'static>| -> Result<_, Failure> {
        let options = Options::builder(epsilon).method(method).tolerance(1e-8).build()?;
        let begun = Instant::now();
        let found = divergence(mu, nu, &options)?;
        Ok((found, begun.elapsed().as_secs_f64()))
    };
    let (exact, exact_seconds) = of(Method::online())?;
    let (lattice, seconds) = of(Method::lattice())?;
    let (paper, _) = of(Method::paper())?;
    let error = |value: f64| (value / exact.value - 1.0).abs();
    line(&json!({
        "bench": "accuracy_divergence", "problem": "figure_1", "n": mu.points().len(),
        "epsilon": epsilon, "relative_error": error(lattice.value),
        "relative_bound": lattice.bound().map(|b| b / lattice.value), "seconds": seconds,
        "paper_relative_error": error(paper.value), "exact_value": exact.value,
        "exact_seconds": exact_seconds,
    }))
}
