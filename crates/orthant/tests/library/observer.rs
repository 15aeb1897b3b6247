//! Watching, stopping and starting solves.

use crate::common::{figure_1, normal_measure, relative};
use orthant::{
    Error, Measure, Method, Options, Points, Precision, Solver, Stop,
    control::{Next, Progress, Term},
    divergence, mean_squared_distance,
    options::{Algorithm, Anchors, Cost, Features},
    rot,
};

/// What an observer sees of an iteration.
#[derive(Debug, Clone, Copy)]
struct Seen {
    term: Term,
    iteration: usize,
    error: f64,
    value: f64,
}

fn methods() -> [(&'static str, Method); 4] {
    let features = || Features::Gaussian(Anchors::Paper { centred: true });
    [
        ("gaussian", Method::paper()),
        ("dense", Method::dense()),
        ("online", Method::online()),
        ("online features", Method::Online(Cost::Features(features()))),
    ]
}

fn options(epsilon: f64, method: Method) -> Options {
    Options::builder(epsilon).method(method).rank(200).tolerance(1e-9).build().unwrap()
}

#[test]
fn every_iteration_is_seen_in_order_with_falling_errors_and_rising_values() {
    let (mu, nu) = figure_1(80, 60, 1);
    for (name, method) in methods() {
        let o = options(0.3, method);
        let mut seen: Vec<Seen> = Vec::new();
        let mut observer = |p: &mut Progress<'_>| {
            let value = p.value();
            seen.push(Seen {
                term: p.term,
                iteration: p.iteration,
                error: p.marginal_error,
                value,
            });
            Next::Continue
        };
        let s = Solver::new(&o).observer(&mut observer).rot(&mu, &nu).unwrap();
        assert!(s.converged(), "{name}");
        assert_eq!(seen.len(), s.iterations, "{name}");
        for (k, seen) in seen.iter().enumerate() {
            assert_eq!((seen.term, seen.iteration), (Term::Cross, k + 1), "{name}");
        }
        for pair in seen.windows(2) {
            // A half-step applies a stochastic matrix to the difference of the marginals, which
            // cannot make its L1 norm larger; and it maximises the dual in one of its potentials.
            assert!(pair[1].error <= pair[0].error + 1e-12, "{name}: {pair:?}");
            assert!(pair[1].value >= pair[0].value - 1e-12, "{name}: {pair:?}");
        }
        let last = seen[seen.len() - 1];
        assert!(last.error < 1e-9 && seen[seen.len() - 2].error >= 1e-9);
        assert!((last.value - s.value).abs() < 1e-12, "{name}: {} {}", last.value, s.value);
        // The column marginal was just made exact; the other is at most what was tested.
        assert!(s.marginal_error_y < 1e-13, "{name}: {}", s.marginal_error_y);
        assert!(s.marginal_error_x <= last.error + 1e-13, "{name}");
    }
}

#[test]
fn a_divergence_is_seen_term_by_term() {
    let (mu, nu) = figure_1(50, 40, 2);
    for (name, method) in methods() {
        let o = options(0.5, method);
        let mut seen = Vec::new();
        let mut observer = |p: &mut Progress<'_>| {
            seen.push((p.term, p.iteration, p.value()));
            Next::Continue
        };
        let d = Solver::new(&o).observer(&mut observer).divergence(&mu, &nu).unwrap();
        for (term, solution) in [Term::Cross, Term::SelfX, Term::SelfY].into_iter().zip(d.terms()) {
            let iterations: Vec<usize> = seen.iter().filter(|s| s.0 == term).map(|s| s.1).collect();
            assert_eq!(iterations, (1..=solution.iterations).collect::<Vec<_>>(), "{name}");
            let last = seen.iter().rfind(|s| s.0 == term).unwrap().2;
            // A plan of mass 1 up to the tolerance of 1e-9.
            assert!(
                (last - solution.value).abs() < 1e-9,
                "{name} {term:?}: {last} {}",
                solution.value
            );
        }
        assert_eq!(seen.len(), d.terms().iter().map(|t| t.iterations).sum::<usize>());
    }
}

#[test]
fn a_request_to_stop_is_met_after_that_iteration() {
    let (mu, nu) = figure_1(50, 40, 3);
    for (name, method) in methods() {
        let o = options(0.01, method.clone());
        for at in [1, 2, 7] {
            let mut called = 0;
            let mut observer = |p: &mut Progress<'_>| {
                called += 1;
                if p.iteration == at { Next::Stop } else { Next::Continue }
            };
            let s = Solver::new(&o).observer(&mut observer).rot(&mu, &nu).unwrap();
            assert_eq!((s.stop, s.iterations, called), (Stop::Requested, at, at), "{name}");
            assert!(!s.converged() && s.value.is_finite() && s.marginal_error_x > 0.0);
            // The same as a limit on the iterations.
            let limited = Options::builder(0.01)
                .method(method.clone())
                .rank(200)
                .tolerance(1e-9)
                .max_iterations(at)
                .build()
                .unwrap();
            let t = rot(&mu, &nu, &limited).unwrap();
            assert_eq!(t.stop, Stop::IterationLimit);
            assert_eq!(t.value.to_bits(), s.value.to_bits(), "{name}");
        }
    }
}

#[test]
fn watching_does_not_change_the_result() {
    let (mu, nu) = figure_1(70, 90, 4);
    for (name, method) in methods() {
        let o = options(0.05, method);
        let mut observer = |p: &mut Progress<'_>| {
            p.value();
            Next::Continue
        };
        let watched = Solver::new(&o).observer(&mut observer).rot(&mu, &nu).unwrap();
        let alone = rot(&mu, &nu, &o).unwrap();
        assert_eq!(watched.value.to_bits(), alone.value.to_bits(), "{name}");
        assert_eq!(watched.potential_x, alone.potential_x, "{name}");
    }
}

#[test]
fn a_start_from_the_solution_converges_at_once_and_from_near_it_sooner() {
    let (mu, nu) = figure_1(120, 100, 5);
    let moved = |m: &Measure<'_>| {
        let p = m.points();
        let v: Vec<f64> = (0..p.len() * 2)
            .map(|i| p.coordinate(i / 2, i % 2) + 1e-3 * (i as f64).sin())
            .collect();
        Measure::uniform(Points::new(v, 2).unwrap())
    };
    let near = moved(&mu);
    for (name, method) in methods() {
        let o = options(0.1, method);
        let cold = rot(&mu, &nu, &o).unwrap();
        assert!(cold.converged() && cold.iterations > 10, "{name}: {}", cold.iterations);
        let again = Solver::new(&o).warm_start(&cold).rot(&mu, &nu).unwrap();
        assert!(again.converged() && again.iterations <= 2, "{name}: {}", again.iterations);
        assert!(relative(again.value, cold.value) < 1e-9, "{name}");
        let cold_near = rot(&near, &nu, &o).unwrap();
        let warm_near = Solver::new(&o).warm_start(&cold).rot(&near, &nu).unwrap();
        assert!(warm_near.converged());
        assert!(
            warm_near.iterations < cold_near.iterations,
            "{name}: {} {}",
            warm_near.iterations,
            cold_near.iterations
        );
        // Both within the tolerance of the same solution.
        assert!(relative(warm_near.value, cold_near.value) < 1e-8, "{name}");

        let d = divergence(&mu, &nu, &o).unwrap();
        let again = Solver::new(&o).warm_start_divergence(&d).divergence(&mu, &nu).unwrap();
        assert!(again.terms().iter().all(|t| t.converged() && t.iterations <= 2), "{name}");
        assert!((again.value - d.value).abs() < 1e-8, "{name}");
    }
}

#[test]
fn a_start_of_the_wrong_length_is_an_error() {
    let (mu, nu) = figure_1(12, 10, 6);
    let o = options(0.5, Method::online());
    let other = rot(&nu, &mu, &o).unwrap();
    let error = Solver::new(&o).warm_start(&other).rot(&mu, &nu).unwrap_err();
    assert!(matches!(error, Error::Shape { what: "the potential to start from", .. }));
    assert_eq!(error.to_string(), "the potential to start from must be 12 x 1, got 10 x 1");
}

#[test]
fn single_precision_agrees_with_double() {
    let (mu, nu) = figure_1(300, 200, 7);
    let wide =
        Measure::weighted(mu.points().borrowed(), &crate::common::wide_weights(300, 8)).unwrap();
    for mu in [&mu, &wide] {
        for epsilon in [0.02, 0.3, 10.0] {
            for method in [Method::paper(), Method::dense()] {
                let solve = |precision| {
                    let o = Options::builder(epsilon)
                        .method(method.clone())
                        .precision(precision)
                        .rank(300)
                        .tolerance(1e-6)
                        .max_iterations(3000)
                        .build()
                        .unwrap();
                    rot(mu, &nu, &o).unwrap()
                };
                let (single, double) = (solve(Precision::F32), solve(Precision::F64));
                // Rounding of 6e-8 an entry; a solve to 1e-6 moves the value by that much of
                // the range of the potentials.
                assert!(
                    relative(single.value_kl, double.value_kl) < 1e-5,
                    "{epsilon} {method:?}: {} {}",
                    single.value_kl,
                    double.value_kl
                );
            }
        }
    }
}

#[test]
fn absorption_agrees_with_logarithms_at_small_epsilon() {
    let mu = normal_measure(60, &[1.0, 1.0], 1.0, 9);
    let nu = normal_measure(50, &[0.0, 0.0], 0.3, 10);
    let epsilon = 1e-4 * mean_squared_distance(&mu, &nu).unwrap();
    let solve = |method, precision| {
        let o = Options::builder(epsilon)
            .method(method)
            .precision(precision)
            .rank(150)
            .seed(11)
            .max_iterations(300)
            // Not converged, so that acceleration would make rounding visible.
            .algorithm(Algorithm::Plain)
            .build()
            .unwrap();
        rot(&mu, &nu, &o).unwrap()
    };
    let features = Features::Gaussian(Anchors::Paper { centred: true });
    let online = solve(Method::Online(Cost::Features(features)), Precision::F64);
    for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::F64, 1e-9)] {
        let factored = solve(Method::paper(), precision);
        assert!(factored.builds > 2, "{precision:?}: {}", factored.builds);
        assert_eq!(factored.iterations, online.iterations);
        assert!(
            relative(factored.value, online.value) < tolerance,
            "{precision:?}: {} {}",
            factored.value,
            online.value
        );
        let range = online.potential_x.iter().fold(0.0_f64, |r, p| r.max(p.abs()));
        for (p, q) in factored.potential_x.iter().zip(&online.potential_x) {
            assert!((p - q).abs() < tolerance * range, "{precision:?}: {p} {q}");
        }
    }
}

#[test]
fn absorption_agrees_with_logarithms_for_self_terms_at_small_epsilon() {
    let mu = normal_measure(60, &[1.0, 1.0], 1.0, 12);
    for scale in [1e-2, 1e-3, 1e-4] {
        let epsilon = scale * mean_squared_distance(&mu, &mu).unwrap();
        let solve = |method, precision| {
            let o = Options::builder(epsilon)
                .method(method)
                .precision(precision)
                .rank(150)
                .seed(13)
                .max_iterations(100)
                .build()
                .unwrap();
            divergence(&mu, &mu, &o)
        };
        let features = Features::Gaussian(Anchors::Paper { centred: true });
        let online = solve(Method::Online(Cost::Features(features)), Precision::F64).unwrap();
        for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::F64, 1e-9)] {
            let factored = solve(Method::paper(), precision)
                .unwrap_or_else(|error| panic!("{scale} {precision:?}: {error}"));
            let (found, exact) = (factored.self_x.value, online.self_x.value);
            assert!(relative(found, exact) < tolerance, "{scale} {precision:?}: {found} {exact}");
        }
    }
}
