//! Errors of features against the exact kernel.

use std::time::Instant;

use orthant::{
    Measure, Method, Options, Solution, Solver, divergence,
    options::{Anchors, Features},
    rot,
};
use orthant_support::Failure;
use orthant_support::clouds::{caps, figure_1};
use serde_json::json;

use crate::measure::line;
use crate::race;

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
pub(crate) const SEEDS: u64 = 5;

pub(crate) fn run(quick: bool) -> Result<(), Failure> {
    let n = if quick { 1_000 } else { 10_000 };
    let clouds = figure_1(n, 0);
    let plane = clouds.measures(n)?;
    problem("figure_1", &plane, &FIGURE_1[usize::from(quick)..])?;
    whole_divergence(&plane)?;
    problem("caps", &caps(n, 0).measures(n)?, &CAPS[usize::from(quick)..])?;
    race::run(if quick { 1_000 } else { 20_000 }, quick)
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
    let of = |method: Method| -> Result<_, Failure> {
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
