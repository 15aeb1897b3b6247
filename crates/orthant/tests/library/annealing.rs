//! Small epsilon by way of larger ones.

use std::time::Duration;

use crate::common::{Kernel, relative, shapes::Shape};
use orthant::{
    CostMatrix, Measure, Method, Options, Points, Solver, Stop,
    control::{Next, Progress},
    divergence, mean_squared_distance,
    options::{Algorithm, OptionsBuilder},
    rot,
};

fn clouds(shape: Shape, n: usize, dim: usize, seed: u64) -> [Measure<'static>; 2] {
    shape.pair(n, n - n / 10, dim, seed).map(|p| Measure::uniform(Points::new(p, dim).unwrap()))
}

fn options(epsilon: f64, algorithm: Algorithm, method: Method) -> OptionsBuilder {
    Options::builder(epsilon).algorithm(algorithm).method(method).max_iterations(1000)
}

/// The same solutions, in far fewer iterations.
#[test]
fn annealing_pays_where_it_is_chosen() {
    let (mut all, mut cold, mut compared) = (0, 0, 0);
    for (shape, dim) in [
        (Shape::Ring, 1),
        (Shape::Ring, 2),
        (Shape::Clusters, 1),
        (Shape::Clusters, 2),
        (Shape::Heavy, 1),
    ] {
        let [mu, nu] = clouds(shape, 300, dim, 3);
        let epsilon = 1e-3 * mean_squared_distance(&mu, &nu).unwrap();
        for method in [Method::online(), Method::lattice()] {
            let solve = |algorithm| {
                let options = options(epsilon, algorithm, method.clone()).build().unwrap();
                rot(&mu, &nu, &options).unwrap()
            };
            let (found, other) = (solve(Algorithm::Auto), solve(Algorithm::Anderson));
            assert!(found.stages > 3 && other.stages == 1);
            all += found.iterations;
            cold += other.iterations;
            assert!(found.converged(), "{shape:?} {dim} {method:?}");
            // Many of the cold ones end at the limit.
            if other.converged() {
                compared += 1;
                let apart = relative(found.value_kl, other.value_kl);
                assert!(apart < 1e-3, "{shape:?} {dim} {method:?}: {apart:e}");
            }
        }
    }
    assert!(compared >= 3, "{compared} of 10 cold starts converged");
    assert!(2 * all < cold, "{all} iterations, {cold} from a cold start");
}

#[test]
fn there_are_no_stages_where_they_do_not_pay() {
    let [mu, nu] = clouds(Shape::Gaussian, 200, 2, 1);
    let cost = mean_squared_distance(&mu, &nu).unwrap();
    for (epsilon, algorithm) in [
        (0.1 * cost, Algorithm::Auto),
        (1e-3 * cost, Algorithm::Plain),
        (1e-3 * cost, Algorithm::Anderson),
    ] {
        let options = options(epsilon, algorithm, Method::online()).build().unwrap();
        assert_eq!(rot(&mu, &nu, &options).unwrap().stages, 1);
    }
    // Costs that are a function of epsilon have no others.
    let linear = Method::Factored(orthant::options::Features::ArcCosine {
        order: 1,
        kappa: 0.1,
        sigma: 1.5,
    });
    let tiny = options(1e-6, Algorithm::Auto, linear).build().unwrap();
    assert_eq!(rot(&mu, &nu, &tiny).unwrap().stages, 1);
    // Who has potentials needs no others.
    let options = options(1e-3 * cost, Algorithm::Auto, Method::online()).build().unwrap();
    let first = rot(&mu, &nu, &options).unwrap();
    let again = Solver::new(&options).warm_start(&first).rot(&mu, &nu).unwrap();
    assert!(first.stages > 1 && again.stages == 1);
    assert!(10 * again.iterations < first.iterations);
}

#[test]
fn matrices_weights_divergences_and_relaxed_marginals_have_stages_too() {
    let [x, y] = Shape::Clusters.pair(120, 90, 2, 7);
    let cost: Vec<f64> = x
        .chunks(2)
        .flat_map(|p| y.chunks(2).map(|q| (p[0] - q[0]).powi(2) + (p[1] - q[1]).powi(2) + 3.0))
        .collect();
    let matrix = CostMatrix::new(cost, 120, 90).unwrap();
    let weights = |n: usize| -> Vec<f64> { (0..n).map(|i| (i % 7) as f64).collect() };
    let [mu, nu] = [x, y].map(|p| {
        let n = p.len() / 2;
        Measure::weighted(Points::new(p, 2).unwrap(), &weights(n)).unwrap()
    });
    let epsilon = 2e-3 * mean_squared_distance(&mu, &nu).unwrap();
    let (by_matrix, by_points) = (Kernel::costs(Method::dense(), matrix), Method::dense());
    let solve = |algorithm, kernel: Kernel<'_>| {
        let options = options(epsilon, algorithm, kernel.method.clone()).build().unwrap();
        let s = kernel.solver(&options).rot(&mu, &nu).unwrap();
        assert!(s.converged(), "{}", s.iterations);
        s
    };
    let one = solve(Algorithm::Auto, by_matrix.clone());
    let two = solve(Algorithm::Auto, by_points.clone().into());
    let cold = solve(Algorithm::Anderson, by_matrix);
    assert!(one.stages > 1 && two.stages > 1);
    assert!(relative(one.value, cold.value) < 1e-6);
    assert!((one.value - two.value - 3.0).abs() < 1e-6);
    for algorithm in [Algorithm::Auto, Algorithm::Anderson] {
        let relaxed = options(epsilon, algorithm, by_points.clone()).reach(0.5).build().unwrap();
        let s = rot(&mu, &nu, &relaxed).unwrap();
        assert_eq!(s.stages > 1, algorithm == Algorithm::Auto);
        let d = options(epsilon, algorithm, by_points.clone()).build().unwrap();
        let d = divergence(&mu, &nu, &d).unwrap();
        assert_eq!(d.cross.stages > 1, algorithm == Algorithm::Auto);
        assert_eq!(d.self_x.stages, 1);
    }
}

#[test]
fn limits_and_observers_hold_over_all_stages() {
    let [mu, nu] = clouds(Shape::Ring, 300, 2, 2);
    let epsilon = 3e-4 * mean_squared_distance(&mu, &nu).unwrap();
    for most in [1, 2, 20] {
        let o = options(epsilon, Algorithm::Auto, Method::online()).max_iterations(most);
        let s = rot(&mu, &nu, &o.build().unwrap()).unwrap();
        assert_eq!(s.stop, Stop::IterationLimit);
        assert_eq!(s.iterations, most);
    }
    let o = options(epsilon, Algorithm::Auto, Method::online()).time_limit(Duration::ZERO);
    assert_eq!(rot(&mu, &nu, &o.build().unwrap()).unwrap().stop, Stop::TimeLimit);
    let mut seen = Vec::new();
    let mut observer = |p: &mut Progress<'_>| {
        seen.push(p.epsilon);
        if p.iteration == 3 { Next::Stop } else { Next::Continue }
    };
    let o = options(epsilon, Algorithm::Auto, Method::online()).build().unwrap();
    let s = Solver::new(&o).observer(&mut observer).rot(&mu, &nu).unwrap();
    assert_eq!(s.stop, Stop::Requested);
    assert!(seen.len() == s.iterations && seen[0] > seen[seen.len() - 1], "{seen:?}");
    assert!((seen[seen.len() - 1] - epsilon).abs() < 1e-15);
}
