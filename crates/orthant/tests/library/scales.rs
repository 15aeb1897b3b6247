//! The scale of the costs that epsilon is chosen by, and how concentrated plans are.

use orthant::{
    CostMatrix, Error, Measure, Method, Options, Points, Solution, Solver, cost_deviation,
    squared_distance_deviation,
};

use crate::common::{normal, normal_measure, wide_weights};

fn options(epsilon: f64, method: Method) -> Options {
    Options::builder(epsilon).method(method).tolerance(1e-12).build().unwrap()
}

/// The standard deviation over all pairs, pair by pair.
fn over_pairs(x: &[(Vec<f64>, f64)], y: &[(Vec<f64>, f64)]) -> f64 {
    let square = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
    let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
        let row = |(x, a): &(Vec<f64>, f64)| -> f64 {
            y.iter().map(|(y, b)| a * b * of(square(x, y))).sum()
        };
        x.iter().map(row).sum()
    };
    let mean = sum(&|c| c);
    sum(&|c| (c - mean).powi(2)).sqrt()
}

fn listed(measure: &Measure<'_>, share: f64) -> Vec<(Vec<f64>, f64)> {
    let points = measure.points();
    let at = |i: usize| (0..points.dim()).map(|k| points.coordinate(i, k)).collect();
    (0..points.len()).map(|i| (at(i), share * measure.weights()[i])).collect()
}

fn weighted(n: usize, mean: &[f64], deviation: f64, seed: u64) -> Measure<'static> {
    let points = Points::new(normal(n, mean, deviation, seed), mean.len()).unwrap();
    Measure::weighted(points, &wide_weights(n, seed + 50)).unwrap()
}

#[test]
fn the_deviation_of_the_cost_is_that_of_all_pairs() {
    for dim in [1, 3, 7] {
        let (near, far) = (vec![0.5; dim], vec![1e3; dim]);
        for (x, y) in [
            (normal_measure(60, &near, 1.0, 1), normal_measure(50, &near, 0.1, 2)),
            (weighted(60, &near, 1.0, 3), weighted(40, &near, 2.0, 4)),
            // Far from each other beside their extent, and far from the origin.
            (weighted(60, &near, 0.5, 5), normal_measure(40, &far, 0.2, 6)),
            (weighted(60, &far, 1e-3, 7), weighted(40, &far, 2e-3, 8)),
        ] {
            let expected = over_pairs(&listed(&x, 1.0), &listed(&y, 1.0));
            let found = squared_distance_deviation(&x, &y).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-9, "{dim}: {found} {expected}");
        }
    }
}

#[test]
fn the_deviation_of_all_clouds_does_not_know_which_cloud_a_point_is_of() {
    let [x, y] = [normal(30, &[0.0, 3.0], 1.0, 1), normal(50, &[2.0, -1.0], 0.5, 2)];
    let uniform = |v: Vec<f64>| Measure::uniform(Points::new(v, 2).unwrap());
    let all = uniform([x.clone(), y.clone()].concat());
    let expected = over_pairs(&listed(&all, 1.0), &listed(&all, 1.0));
    for clouds in [vec![all], vec![uniform(x), uniform(y)]] {
        let found = cost_deviation(&clouds).unwrap();
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
    }
}

#[test]
fn the_deviation_has_the_units_of_the_cost_at_any_scale() {
    let plain = normal(40, &[0.0, 1.0], 1.0, 3);
    let at = |scale: f64| {
        let points = Points::new(plain.iter().map(|x| scale * x).collect::<Vec<_>>(), 2).unwrap();
        let measure = Measure::uniform(points);
        squared_distance_deviation(&measure, &measure)
    };
    let one = at(1.0).unwrap();
    for scale in [1e-140, 1e-3, 1e70, 1e140] {
        assert!((at(scale).unwrap() / scale / scale / one - 1.0).abs() < 1e-12, "{scale}");
    }
    assert!(matches!(at(1e200), Err(Error::TooWide { .. } | Error::Overflow { .. })));
    assert_eq!(at(0.0).unwrap(), 0.0);
    let other = Measure::uniform(Points::new(vec![1.0; 3], 1).unwrap());
    let two = normal_measure(4, &[0.0, 0.0], 1.0, 1);
    assert!(matches!(
        squared_distance_deviation(&two, &other),
        Err(Error::Dimensions { x: 2, y: 1 })
    ));
}

#[test]
fn a_cost_matrix_has_the_mean_and_the_deviation_of_its_entries() {
    let (x, y) = (weighted(20, &[0.0, 1.0], 1.0, 1), weighted(30, &[2.0, 0.0], 0.3, 2));
    let costs = CostMatrix::new(costs(&x, &y), 20, 30).unwrap();
    let [mean, deviation] = costs.mean_and_deviation(&x, &y).unwrap();
    assert!((mean / orthant::mean_squared_distance(&x, &y).unwrap() - 1.0).abs() < 1e-12);
    assert!((deviation / squared_distance_deviation(&x, &y).unwrap() - 1.0).abs() < 1e-12);
    assert!(matches!(costs.mean_and_deviation(&y, &x), Err(Error::Shape { .. })));
}

fn costs(x: &Measure<'_>, y: &Measure<'_>) -> Vec<f64> {
    let (x, y) = (listed(x, 1.0), listed(y, 1.0));
    let square =
        |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum() };
    x.iter().flat_map(|(x, _)| y.iter().map(|(y, _)| square(x, y))).collect()
}

/// `KL(P | p q^T) / log min(n, m)` of the plan of mass 1 and its marginals, entry by entry.
fn concentration(solver: Solver<'_, '_>, mu: &Measure<'_>, nu: &Measure<'_>) -> (Solution, f64) {
    let plan = solver.plan(mu, nu).unwrap();
    let entries = plan.to_dense().unwrap();
    let (n, m) = (mu.weights().len(), nu.weights().len());
    let mass: f64 = entries.iter().sum();
    let p: Vec<f64> = (0..n).map(|i| entries[i * m..][..m].iter().sum::<f64>() / mass).collect();
    let q: Vec<f64> =
        (0..m).map(|j| (0..n).map(|i| entries[i * m + j]).sum::<f64>() / mass).collect();
    let mut kl = 0.0;
    for i in 0..n {
        for j in 0..m {
            let entry = entries[i * m + j] / mass;
            if entry > 0.0 {
                kl += entry * (entry / (p[i] * q[j])).ln();
            }
        }
    }
    let positive = |w: &[f64]| w.iter().filter(|w| **w > 0.0).count();
    let fewest = positive(mu.weights()).min(positive(nu.weights()));
    (plan.into_solution(), kl / (fewest as f64).ln())
}

#[test]
fn the_concentration_is_the_relative_entropy_of_the_plan() {
    let (x, y) = (weighted(50, &[0.0, 1.0], 1.0, 1), normal_measure(40, &[1.0, 0.0], 0.5, 2));
    let mut some = y.weights().to_vec();
    some[3..20].fill(0.0);
    let holes = Measure::weighted(y.points().clone(), &some).unwrap();
    // Lattices are accurate to a part of 1e-3 of the value.
    let methods = [(Method::dense(), 1e-9), (Method::online(), 1e-9), (Method::lattice(), 1e-2)];
    for (nu, epsilon) in [(&y, 0.02), (&y, 1.0), (&y, 50.0), (&holes, 0.3)] {
        for (method, within) in methods.clone() {
            let options = options(epsilon, method.clone());
            let (solution, expected) = concentration(Solver::new(&options), &x, nu);
            let found = solution.plan_concentration.unwrap();
            assert!((found - expected).abs() < within, "{epsilon} {method:?}: {found} {expected}");
            let by_values = (solution.value_kl - solution.transport_cost.unwrap()) / epsilon;
            let positive = nu.weights().iter().filter(|w| **w > 0.0).count() as f64;
            assert!((found - by_values / positive.ln()).abs() < 1e-9, "{epsilon} {method:?}");
        }
    }
    // Where marginals are relaxed: of the marginals that the plan has.
    let relaxed =
        Options::builder(0.3).method(Method::dense()).rho_x(0.7).rho_y(0.7).tolerance(1e-12);
    let (solution, expected) = concentration(Solver::new(&relaxed.build().unwrap()), &x, &y);
    let found = solution.plan_concentration.unwrap();
    assert!(
        (solution.mass - 1.0).abs() > 0.01 && (found - expected).abs() < 1e-9,
        "{found} {expected}"
    );
}

#[test]
fn the_concentration_is_0_of_independent_points_and_1_of_a_permutation() {
    let x = normal_measure(50, &[0.0, 0.0], 1.0, 1);
    let at = |epsilon: f64| {
        let solution = Solver::new(&options(epsilon, Method::dense())).rot(&x, &x).unwrap();
        solution.plan_concentration.unwrap()
    };
    assert!(at(1e9) < 1e-9 && at(1e-5) > 1.0 - 1e-9, "{} {}", at(1e9), at(1e-5));
    assert!(at(1.0) > at(10.0) && at(0.1) > at(1.0));
    // Nothing can be said of a single point.
    let point = Measure::uniform(Points::new(vec![0.0, 0.0], 2).unwrap());
    let solution = Solver::new(&options(1.0, Method::dense())).rot(&x, &point).unwrap();
    assert_eq!(solution.plan_concentration, None);
    // Of the terms of a divergence.
    let y = normal_measure(30, &[1.0, 0.0], 1.0, 2);
    let divergence = Solver::new(&options(0.5, Method::dense())).divergence(&x, &y).unwrap();
    assert!(divergence.terms().iter().all(|t| t.plan_concentration.is_some()));
    let alone = Solver::new(&options(0.5, Method::dense())).rot(&x, &x).unwrap();
    let own = [&alone, &divergence.self_x].map(|s| s.plan_concentration.unwrap());
    assert!((own[0] - own[1]).abs() < 1e-9, "{own:?}");
}
