//! Derivatives of values against central differences, where coordinates, anchors and nodes stay as they are.

use super::*;
use crate::anchors::{self, Draw};
use crate::control::{Next, Progress};
use crate::gradient::Gradient;
use crate::measure::Points;

impl Problem<'_> {
    /// The same coordinates, anchors and nodes for other points, weights or another epsilon.
    fn redone<'q>(&self, measures: [&Measure<'q>; 2], options: &Options) -> Problem<'q> {
        let ratio = options.epsilon / self.options.epsilon;
        let kernels = self.kernels.redone(measures, options, ratio);
        let [mu, nu] = measures;
        // Values are not corrected by samples.
        Problem::of(mu, nu, options, kernels, options.clock())
    }
}

/// Cross term and self terms with their factors in a value or a divergence.
const TERMS: [(Term, f64); 3] = [(Term::Cross, 1.0), (Term::SelfX, -0.5), (Term::SelfY, -0.5)];

fn solved(problem: &Problem<'_>, terms: &[(Term, f64)]) -> Vec<(Solution, Scaling)> {
    let mut silent = |_: &mut Progress<'_>| Next::Continue;
    let solve = |(term, _): &(Term, f64)| {
        problem.solve(*term, Start::Flat, &problem.all_left(), &mut silent)
    };
    let solved: Vec<(Solution, Scaling)> = terms.iter().map(solve).map(Result::unwrap).collect();
    assert!(solved.iter().all(|(s, _)| s.converged()));
    solved
}

struct Example {
    points: [Vec<f64>; 2],
    weights: [Vec<f64>; 2],
    dim: usize,
}

impl Example {
    fn new(dim: usize) -> Self {
        let cloud = |n: usize, scale: f64, shift: f64, seed| -> Vec<f64> {
            let z = anchors::normals(Draw::Iid, n, dim, seed);
            z.iter()
                .enumerate()
                .map(|(k, z)| scale * z * (1.0 + (k % dim) as f64) + shift)
                .collect()
        };
        let weights = |n: usize| (0..n).map(|i| 0.1 + (i * 7 % 5) as f64).collect();
        Example {
            points: [cloud(13, 0.5, 3.0, 1), cloud(17, 0.3, 3.4, 2)],
            weights: [weights(13), weights(17)],
            dim,
        }
    }

    /// The measures with one coordinate moved.
    fn moved(&self, cloud: usize, k: usize, by: f64) -> [Measure<'static>; 2] {
        let mut points = self.points.clone();
        points[cloud][k] += by;
        let mut weights = self.weights.iter();
        points.map(|p| {
            Measure::weighted(Points::new(p, self.dim).unwrap(), weights.next().unwrap()).unwrap()
        })
    }
}

fn central(h: f64, value: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h)
}

fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    let scale = expected.iter().fold(0.0_f64, |most, e| most.max(e.abs()));
    for (k, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * scale, "{what}, {k}: {f} and not {e} ({scale})");
    }
}

/// Gradients by points (every `step`-th coordinate), and by epsilon where `by_epsilon`, of the terms of a method.
fn check(
    what: &str,
    example: &Example,
    options: &Options,
    terms: Terms,
    step: usize,
    by_epsilon: bool,
) {
    let [mu, nu] = example.moved(0, 0, 0.0);
    let asked = (options, &Given::default());
    let first = Problem::new(&mu, &nu, asked, terms).unwrap();
    let design = first.redone([&mu, &nu], options);
    let terms = &TERMS[..terms.list().len()];
    let value = |problem: &Problem<'_>| -> f64 {
        let all = solved(problem, terms);
        all.iter().zip(terms).map(|((s, _), (_, factor))| factor * s.value_kl).sum::<f64>()
            + if terms.len() > 1 { problem.mass_term() } else { 0.0 }
    };
    let all = solved(&design, terms);
    let parts = all.iter().zip(terms).map(|((s, scaling), (t, f))| (*t, *f, scaling, s));
    let gradient = Gradient::new(&design, parts);
    for cloud in [Side::X, Side::Y] {
        let c = cloud as usize;
        let found = gradient.points(cloud).unwrap();
        let places: Vec<usize> = (0..found.len()).step_by(step).collect();
        let expected: Vec<f64> = places
            .iter()
            .map(|&k| {
                central(1e-3, |h| {
                    let [mu, nu] = example.moved(c, k, h);
                    value(&design.redone([&mu, &nu], options))
                })
            })
            .collect();
        let found: Vec<f64> = places.iter().map(|&k| found[k]).collect();
        assert_close(&format!("{what}, {cloud}"), &found, &expected, 1e-7);
    }
    if by_epsilon {
        let expected = central(1e-3 * options.epsilon, |h| {
            let options = Options { epsilon: options.epsilon + h, ..options.clone() };
            value(&design.redone([&mu, &nu], &options))
        });
        let found = gradient.epsilon().unwrap();
        assert_close(&format!("{what}, epsilon"), &[found], &[expected], 1e-6);
    }
}

#[test]
fn central_differences_where_anchors_and_coordinates_stay() {
    let stored = Method::Factored(Features::Gaussian(Anchors::Lattice { stored: true }));
    let example = Example::new(2);
    let methods = [
        ("sobol", Method::gaussian(), Some(60), 1e-3),
        ("adaptive", Method::adaptive(), Some(60), 1e-3),
        // So coarse that the kernel is another one.
        ("stored lattice", stored.clone(), None, 0.3),
        ("stored thin lattice", stored, Some(60), 1e-3),
        ("lattice", Method::lattice(), None, 1e-9),
        ("online", Method::online(), None, 1e-3),
    ];
    for (name, method, rank, accuracy) in methods {
        for gauge in [true, false] {
            for rho in [f64::INFINITY, 1.5] {
                for terms in [Terms::Cross, Terms::All] {
                    let builder = Options::builder(0.6).method(method.clone());
                    let builder = builder.gauge(gauge).rho_x(rho).rho_y(rho);
                    let builder = builder.accuracy(accuracy).tolerance(1e-12);
                    let builder = match rank {
                        Some(rank) => builder.rank(rank),
                        None => builder,
                    };
                    let what = format!("{name}, gauge {gauge}, rho {rho}, {terms:?}");
                    let options = builder.build().unwrap();
                    let by_epsilon = !matches!(name, "sobol" | "adaptive");
                    check(&what, &example, &options, terms, 5, by_epsilon);
                }
            }
        }
    }
}

#[test]
fn messages_of_a_solve_are_those_of_its_potentials() {
    let example = Example::new(2);
    let [mu, nu] = example.moved(0, 0, 0.0);
    for rho in [f64::INFINITY, 1.5] {
        for method in [Method::gaussian(), Method::adaptive(), Method::paper()] {
            for algorithm in [Algorithm::Auto, Algorithm::Plain] {
                for epsilon in [0.6, 0.01] {
                    let builder = Options::builder(epsilon).method(method.clone()).rank(60);
                    let builder = builder.algorithm(algorithm).rho_x(rho).rho_y(rho);
                    let options = builder.max_iterations(200).build().unwrap();
                    let asked = (&options, &Given::default());
                    let problem = Problem::new(&mu, &nu, asked, Terms::All).unwrap();
                    let mut silent = |_: &mut Progress<'_>| Next::Continue;
                    for (term, _) in TERMS {
                        let (_, mut scaling) = problem
                            .solve(term, Start::Flat, &problem.all_left(), &mut silent)
                            .unwrap();
                        assert!(!scaling.messages.is_empty());
                        let of = |scaling: &Scaling| {
                            [0, 1].map(|s| problem.plan(term, scaling).message(s).unwrap())
                        };
                        let known = of(&scaling);
                        scaling.messages.clear();
                        let anew = of(&scaling);
                        // As far as they have mass.
                        for slot in [0, 1] {
                            for k in 0..60 {
                                let mass = anew[0][k] + anew[1][k];
                                let off = (known[slot][k] - anew[slot][k]).abs();
                                assert!(
                                    off < 1e-10 || mass < -35.0,
                                    "{method:?} {term:?} {rho} {epsilon}: {off} at {mass}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn gauges_of_one_and_of_very_many_axes() {
    for (dim, step, method) in [
        (1, 3, Method::lattice()),
        (1, 3, Method::gaussian()),
        (3, 7, Method::lattice()),
        (130, 401, Method::gaussian()),
        (130, 401, Method::dense()),
    ] {
        let mut example = Example::new(dim);
        if dim > 100 {
            example.points.iter_mut().flatten().for_each(|x| *x *= 0.01);
        }
        let builder = Options::builder(1.0).accuracy(1e-9).tolerance(1e-12);
        let lattice =
            matches!(method, Method::Factored(Features::Gaussian(Anchors::Lattice { .. })));
        let builder = if lattice { builder } else { builder.rank(40) };
        let options = builder.method(method).build().unwrap();
        check(&format!("{dim} axes"), &example, &options, Terms::Cross, step, false);
    }
}

#[test]
fn lattices_stored_or_not_have_one_gradient() {
    let example = Example::new(2);
    let [mu, nu] = example.moved(0, 0, 0.0);
    let mut found = Vec::new();
    for stored in [true, false] {
        let method = Method::Factored(Features::Gaussian(Anchors::Lattice { stored }));
        let builder = Options::builder(0.6).method(method).accuracy(1e-9).tolerance(1e-12);
        let options = builder.build().unwrap();
        let plans = crate::plans(&mu, &nu, &options).unwrap();
        let g = plans.gradient();
        let mut all = g.points(Side::X).unwrap();
        all.extend(g.points(Side::Y).unwrap());
        all.push(g.epsilon().unwrap());
        found.push(all);
    }
    assert_close("lattices", &found[0], &found[1], 1e-9);
}
