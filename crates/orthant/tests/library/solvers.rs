//! Accelerated iterations against plain ones.

use crate::common::{normal, shapes::Shape};
use orthant::{
    Measure, Method, Options, Points, Solution, divergence, mean_squared_distance,
    options::{Algorithm, OptionsBuilder},
    rot,
};

fn uniform(points: Vec<f64>, dim: usize) -> Measure<'static> {
    Measure::uniform(Points::new(points, dim).unwrap())
}

/// The larger of the marginal errors.
fn error(solution: &Solution) -> f64 {
    solution.marginal_error_x.max(solution.marginal_error_y)
}

#[test]
fn anderson_needs_a_fraction_of_the_iterations() {
    // The problem of the paper's Figure 1.
    let n = 10_000;
    let mu = uniform(normal(n, &[1.0, 1.0], 1.0, 1), 2);
    let nu = uniform(normal(n, &[0.0, 0.0], 0.1_f64.sqrt(), 2), 2);
    for (epsilon, part) in [(0.01, 5), (0.05, 4), (0.1, 3)] {
        let of = |algorithm| {
            let options = Options::builder(epsilon).method(Method::lattice()).tolerance(1e-7);
            rot(&mu, &nu, &options.algorithm(algorithm).build().unwrap()).unwrap()
        };
        let (plain, anderson) = (of(Algorithm::Plain), of(Algorithm::Anderson));
        assert!(plain.converged() && anderson.converged());
        assert!(error(&anderson) < 1e-7, "{:e}", error(&anderson));
        assert!((plain.value - anderson.value).abs() < 1e-9 * plain.value_kl);
        assert!(
            part * anderson.iterations <= plain.iterations,
            "eps {epsilon}: {} of {}",
            anderson.iterations,
            plain.iterations
        );
    }
}

#[test]
fn many_points_to_a_node_start_from_what_their_means_say() {
    // Anderson's iterations start from nothing; what is chosen automatically starts from means of the points.
    let n = 20_000;
    for (dim, epsilon, far) in [(1, 0.1, 1.0), (2, 0.2, 1.0), (3, 1.0, 0.5)] {
        let mu = uniform(normal(n, &vec![far; dim], 1.0, 1), dim);
        let weights: Vec<f64> = (0..n / 2).map(|i| 1.0 + (i % 7) as f64).collect();
        let y = normal(n / 2, &vec![0.0; dim], 0.1_f64.sqrt(), 2);
        let nu = Measure::weighted(Points::new(y, dim).unwrap(), &weights).unwrap();
        let of = |mu: &Measure<'_>, nu: &Measure<'_>, algorithm, tolerance: f64| {
            let options = Options::builder(epsilon).method(Method::lattice()).tolerance(tolerance);
            divergence(mu, nu, &options.algorithm(algorithm).build().unwrap()).unwrap()
        };
        let (mut counts, fine) = ([0; 2], of(&mu, &nu, Algorithm::Anderson, 1e-10));
        for (count, algorithm) in counts.iter_mut().zip([Algorithm::Anderson, Algorithm::Auto]) {
            let found = of(&mu, &nu, algorithm, 1e-7);
            assert!(found.converged());
            for (term, fine) in [
                (&found.cross, &fine.cross),
                (&found.self_x, &fine.self_x),
                (&found.self_y, &fine.self_y),
            ] {
                assert!(error(term) < 2e-7, "{dim} {algorithm:?}: {:e}", error(term));
                // At the same lattice: what is left is convergence.
                let apart = (term.value - fine.value).abs();
                assert!(apart < 1e-7 * fine.value_kl, "{dim} {algorithm:?}: {apart:e}");
            }
            *count = found.self_x.iterations + found.self_y.iterations;
        }
        // How many are saved depends on how fine the cubes of the means can be: least in space.
        assert!(counts[1] < counts[0], "{dim}: {counts:?}");
    }
}

#[test]
fn anderson_never_ends_worse_than_plain_iterations() {
    let mut ratios = Vec::new();
    for shape in Shape::ALL {
        for d in [1, 2, 5] {
            let [x, y] = shape.pair(150, 110, d, 3);
            let (mu, nu) = (uniform(x, d), uniform(y, d));
            let mean = mean_squared_distance(&mu, &nu).unwrap();
            let lattice = (Method::lattice(), None);
            let features = if d < 3 { lattice } else { (Method::gaussian(), Some(200)) };
            let methods = [(Method::dense(), None), (Method::paper(), Some(200)), features];
            for (part, (method, rank)) in
                [0.001, 0.01, 0.1, 1.0].iter().flat_map(|p| methods.clone().map(|m| (p, m)))
            {
                let of = |algorithm, iterations| {
                    let options = Options::builder(part * mean).method(method.clone());
                    let options = options.tolerance(1e-9).max_iterations(iterations);
                    let options = options.algorithm(algorithm);
                    let options = rank.into_iter().fold(options, OptionsBuilder::rank);
                    rot(&mu, &nu, &options.build().unwrap()).unwrap()
                };
                for iterations in [6, 25, 100] {
                    let plain = of(Algorithm::Plain, iterations);
                    let anderson = of(Algorithm::Anderson, iterations);
                    assert!(!anderson.converged() || error(&anderson) < 1e-9);
                    if error(&plain) < 1e-9 {
                        assert!(anderson.converged(), "{shape:?} {d} {part} {method:?}");
                        break;
                    }
                    let ratio = error(&anderson) / error(&plain);
                    // As long as errors are large, the value tells how far a solve is.
                    let better = error(&anderson) > 0.1 && anderson.value >= plain.value;
                    assert!(
                        ratio < 1.1 || better,
                        "{shape:?}, {d} axes, {part}, {method:?}, {iterations} iterations: {:e} for {:e}",
                        error(&anderson),
                        error(&plain)
                    );
                    ratios.push(ratio);
                }
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    assert!(ratios.len() > 100, "{}", ratios.len());
    assert!(ratios[ratios.len() / 2] < 0.8, "{}", ratios[ratios.len() / 2]);
}
