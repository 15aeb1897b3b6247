//! Costs of points other than the squared Euclidean one, against cost matrices of the same cost.

use orthant::barycenter::Barycenters;
use orthant::two_sample::TwoSampleTest;
use orthant::{
    CostMatrix, Error, GroundCost, Mahalanobis, Measure, Method, Options, Points, Side, Solution,
    Solver, divergence, plan, rot,
};

use crate::common::{normal, relative, wide_weights};

const DIM: usize = 3;

fn mahalanobis() -> Mahalanobis {
    Mahalanobis::new(&[2.0, 0.5, 0.0, 0.5, 1.0, -0.3, 0.0, -0.3, 0.7], DIM).unwrap()
}

type Formula = fn(&[f64], &[f64]) -> f64;

/// All costs, with the formula of each, written plainly.
fn costs() -> Vec<(GroundCost, Formula)> {
    fn dot(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| x * y).sum()
    }
    fn away(x: &[f64], y: &[f64]) -> Vec<f64> {
        x.iter().zip(y).map(|(x, y)| x - y).collect()
    }
    fn cosine(x: &[f64], y: &[f64]) -> f64 {
        dot(x, y) / (dot(x, x) * dot(y, y)).sqrt()
    }
    vec![
        (GroundCost::SquaredEuclidean, |x, y| away(x, y).iter().map(|d| d * d).sum()),
        (GroundCost::Cosine, |x, y| 1.0 - cosine(x, y)),
        (GroundCost::Dot, |x, y| -dot(x, y)),
        (GroundCost::Mahalanobis(mahalanobis()), |x, y| {
            let d = away(x, y);
            2.0 * d[0] * d[0] + d[1] * d[1] + 0.7 * d[2] * d[2] + d[0] * d[1] - 0.6 * d[1] * d[2]
        }),
        (GroundCost::Euclidean, |x, y| away(x, y).iter().map(|d| d * d).sum::<f64>().sqrt()),
        (GroundCost::L1, |x, y| away(x, y).iter().map(|d| d.abs()).sum()),
        (GroundCost::Lp(3.5), |x, y| {
            away(x, y).iter().map(|d| d.abs().powf(3.5)).sum::<f64>().powf(1.0 / 3.5)
        }),
        (GroundCost::Geodesic, |x, y| cosine(x, y).clamp(-1.0, 1.0).acos()),
        (GroundCost::function(|x, y| (x[0] * y[0]).sin() + (x[1] - y[1]).abs()), |x, y| {
            (x[0] * y[0]).sin() + (x[1] - y[1]).abs()
        }),
    ]
}

fn clouds() -> [Measure<'static>; 2] {
    let cloud = |n: usize, mean: &[f64], seed: u64| {
        let points = Points::new(normal(n, mean, 0.8, seed), DIM).unwrap();
        let mut weights = wide_weights(n, seed + 9);
        weights[4] = 0.0;
        Measure::weighted(points, &weights).unwrap()
    };
    [cloud(30, &[0.4, 1.0, -0.6], 1), cloud(25, &[1.0, 0.2, 0.5], 2)]
}

fn matrix(x: &Measure<'_>, y: &Measure<'_>, cost: Formula) -> CostMatrix<'static> {
    let rows = |m: &Measure<'_>| -> Vec<Vec<f64>> {
        let at = |i: usize| (0..DIM).map(|k| m.points().coordinate(i, k)).collect();
        (0..m.weights().len()).map(at).collect()
    };
    let (x, y) = (rows(x), rows(y));
    let costs: Vec<f64> = x.iter().flat_map(|x| y.iter().map(|y| cost(x, y))).collect();
    CostMatrix::new(costs, x.len(), y.len()).unwrap()
}

fn options(cost: &GroundCost, method: Method) -> Options {
    let options = Options::builder(0.3).method(method).cost(cost.clone());
    options.tolerance(1e-12).max_iterations(100_000).build().unwrap()
}

fn by_matrix(x: &Measure<'_>, y: &Measure<'_>, cost: Formula) -> Solution {
    let options = options(&GroundCost::SquaredEuclidean, Method::dense());
    Solver::new(&options).costs(matrix(x, y, cost)).rot(x, y).unwrap()
}

/// Largest difference of potentials, whose sum of constants is free, and of those of all points.
fn apart(one: &Solution, two: &Solution) -> f64 {
    let of = |s: &Solution| -> [Vec<f64>; 2] { [s.potential_kl_x(), s.potential_kl_y()] };
    let ([x, y], [u, v]) = (of(one), of(two));
    let shift = x[0] - u[0];
    let first = x.iter().zip(&u).map(|(x, u)| (x - u - shift).abs());
    let second = y.iter().zip(&v).map(|(y, v)| (y - v + shift).abs());
    first.chain(second).fold(0.0, f64::max)
}

#[test]
fn every_cost_is_that_of_its_matrix() {
    let [x, y] = clouds();
    for (cost, formula) in costs() {
        let expected = by_matrix(&x, &y, formula);
        for method in [Method::Auto, Method::dense(), Method::online()] {
            let found = rot(&x, &y, &options(&cost, method.clone())).unwrap();
            let what = format!("{cost:?} {method:?}");
            assert!((found.value - expected.value).abs() < 1e-9, "{what}");
            assert!((found.value_kl - expected.value_kl).abs() < 1e-9, "{what}");
            let costs = [&found, &expected].map(|s| s.transport_cost.unwrap());
            assert!((costs[0] - costs[1]).abs() < 1e-9, "{what}: {costs:?}");
            assert!(apart(&found, &expected) < 1e-7, "{what}: {}", apart(&found, &expected));
            assert!(found.interval_kl.unwrap().contains(expected.value_kl), "{what}");
            assert!(
                (found.plan_concentration.unwrap() - expected.plan_concentration.unwrap()).abs()
                    < 1e-8
            );
        }
    }
}

#[test]
fn divergences_are_made_of_the_terms_of_matrices() {
    let [x, y] = clouds();
    for (cost, formula) in costs() {
        if let GroundCost::Function(_) = cost {
            continue;
        }
        let [cross, own_x, own_y] =
            [(&x, &y), (&x, &x), (&y, &y)].map(|(x, y)| by_matrix(x, y, formula).value_kl);
        let expected = cross - 0.5 * (own_x + own_y);
        let found = divergence(&x, &y, &options(&cost, Method::dense())).unwrap();
        assert!((found.value - expected).abs() < 1e-8, "{cost:?}: {} {expected}", found.value);
        assert!(found.value >= 0.0, "{cost:?}");
        let same = divergence(&x, &x, &options(&cost, Method::dense())).unwrap();
        assert!(same.value.abs() < 1e-10, "{cost:?}: {}", same.value);
    }
}

#[test]
fn costs_that_are_squared_distances_have_all_methods() {
    let [x, y] = clouds();
    for (cost, formula) in costs().into_iter().take(4) {
        // Where the Nystrom approximation is positive.
        let epsilon = 3.0;
        let plain = Options::builder(epsilon).method(Method::dense()).tolerance(1e-12).build();
        let plain = Solver::new(&plain.unwrap()).costs(matrix(&x, &y, formula));
        let expected = plain.rot(&x, &y).unwrap();
        for method in [Method::lattice(), Method::nystrom(), Method::gaussian(), Method::adaptive()]
        {
            let options = Options::builder(epsilon).cost(cost.clone()).method(method.clone());
            let options = options.certify(true).build().unwrap();
            let found = rot(&x, &y, &options).unwrap();
            let what = format!("{cost:?} {method:?}");
            match found.interval_kl {
                Some(interval) => assert!(interval.contains(expected.value_kl), "{what}"),
                None => assert!((found.value_kl - expected.value_kl).abs() < 1e-3, "{what}"),
            }
            let costs = [&found, &expected].map(|s| s.transport_cost.unwrap());
            assert!((costs[0] - costs[1]).abs() < 0.05, "{what}: {costs:?}");
        }
    }
}

/// Finite differences of the value of a matrix.
#[test]
fn gradients_by_points_are_finite_differences() {
    let [x, y] = clouds();
    let all = normal(30, &[0.4, 1.0, -0.6], 0.8, 1);
    for (cost, formula) in costs() {
        let moved = |step: f64, i: usize, k: usize| {
            let mut points = all.clone();
            points[i * DIM + k] += step;
            let at = Points::new(points, DIM).unwrap();
            let weights: Vec<f64> = x.weights().to_vec();
            by_matrix(&Measure::weighted(at, &weights).unwrap(), &y, formula).value_kl
        };
        for method in [Method::dense(), Method::lattice()] {
            let named = format!("{cost:?} {method:?}");
            let lattice = !matches!(method, Method::Dense(_));
            if lattice && !cost.is_squared_distance() {
                continue;
            }
            let solved = plan(&x, &y, &options(&cost, method)).unwrap();
            let gradient = solved.gradient().points(Side::X);
            if let GroundCost::Function(_) = cost {
                assert!(matches!(gradient, Err(Error::NoDerivative { .. })));
                continue;
            }
            let gradient = gradient.unwrap();
            for (i, k) in [(0, 0), (7, 1), (20, 2)] {
                let difference = (moved(1e-5, i, k) - moved(-1e-5, i, k)) / 2e-5;
                let found = gradient[i * DIM + k];
                let within = if lattice { 1e-3 } else { 1e-6 };
                assert!((found - difference).abs() < within, "{named}: {found} {difference}");
            }
        }
    }
}

#[test]
fn maps_average_the_points_of_the_user() {
    let [x, y] = clouds();
    for (cost, _) in costs() {
        let exact = plan(&x, &y, &options(&cost, Method::online())).unwrap();
        let dense = exact.to_dense().unwrap();
        let columns = y.weights().len();
        let found = exact.barycentric(Side::X).unwrap();
        for i in (0..30).filter(|&i| x.weights()[i] > 0.0) {
            let row = &dense[i * columns..][..columns];
            let mass: f64 = row.iter().sum();
            for k in 0..DIM {
                let at = |(j, p): (usize, &f64)| p * y.points().coordinate(j, k);
                let mean = row.iter().enumerate().map(at).sum::<f64>() / mass;
                assert!((found[i * DIM + k] - mean).abs() < 1e-8, "{cost:?}");
            }
        }
        // New points at the places of old ones see the same.
        let again = exact.potential_at(Side::X, x.points()).unwrap();
        let own = exact.solution().potential_kl_x();
        let off = again.iter().zip(&own).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-7, "{cost:?}: {off}");
    }
}

/// `<P, C>` and plans of the dot product are those of the squared distance at twice the epsilon.
#[test]
fn the_dot_product_has_the_plan_of_the_squared_distance_at_twice_the_epsilon() {
    let [x, y] = clouds();
    let dot = plan(&x, &y, &options(&GroundCost::Dot, Method::dense())).unwrap();
    let twice = Options::builder(0.6).method(Method::dense()).tolerance(1e-12).build().unwrap();
    let square = plan(&x, &y, &twice).unwrap();
    let (one, two) = (dot.to_dense().unwrap(), square.to_dense().unwrap());
    assert!(one.iter().zip(&two).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn relaxed_marginals_go_with_every_cost() {
    let [x, y] = clouds();
    for (cost, formula) in costs() {
        let with = |cost: GroundCost| {
            let options = Options::builder(0.3).method(Method::dense()).cost(cost);
            options.rho_x(0.8).rho_y(0.8).tolerance(1e-12).build().unwrap()
        };
        let plain = with(GroundCost::SquaredEuclidean);
        let expected = Solver::new(&plain).costs(matrix(&x, &y, formula)).rot(&x, &y).unwrap();
        let found = rot(&x, &y, &with(cost.clone())).unwrap();
        assert!(relative(found.mass, expected.mass) < 1e-8, "{cost:?}");
        assert!(relative(found.value_kl, expected.value_kl) < 1e-8, "{cost:?}");
    }
}

#[test]
fn what_costs_are_not_for_is_refused_with_a_remedy() {
    let [x, y] = clouds();
    for (cost, _) in costs().into_iter().skip(4) {
        for method in [Method::lattice(), Method::gaussian(), Method::nystrom(), Method::paper()] {
            let error = rot(&x, &y, &options(&cost, method)).unwrap_err();
            assert!(matches!(error, Error::NotFor { .. }), "{error}");
            assert!(error.to_string().contains("Method::online()"), "{error}");
        }
    }
    let paper = options(&GroundCost::Cosine, Method::paper());
    assert!(matches!(rot(&x, &y, &paper), Err(Error::NotFor { .. })));
    let cosine = options(&GroundCost::Cosine, Method::Auto);
    let given = matrix(&x, &y, |_, _| 1.0);
    assert!(matches!(Solver::new(&cosine).costs(given).rot(&x, &y), Err(Error::NotFor { .. })));
    for p in [0.5, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            Options::builder(1.0).cost(GroundCost::Lp(p)).build(),
            Err(Error::Option { .. })
        ));
    }
    assert!(Options::builder(1.0).cost(GroundCost::Lp(1.0)).build().is_ok());
}

#[test]
fn points_and_matrices_that_a_cost_is_not_defined_at_are_named() {
    let [x, y] = clouds();
    let mut zero = normal(25, &[1.0, 0.2, 0.5], 0.8, 2);
    zero[6 * DIM..7 * DIM].fill(0.0);
    let zero = Measure::uniform(Points::new(zero, DIM).unwrap());
    for cost in [GroundCost::Cosine, GroundCost::Geodesic] {
        let error = rot(&x, &zero, &options(&cost, Method::Auto)).unwrap_err();
        assert!(error.to_string().contains("point 7 is zero"), "{error}");
        let solved = plan(&x, &y, &options(&cost, Method::Auto)).unwrap();
        let error = solved.potential_at(Side::Y, zero.points()).unwrap_err();
        assert!(error.to_string().contains("point 7 is zero"), "{error}");
    }
    let small = GroundCost::Mahalanobis(Mahalanobis::new(&[1.0, 0.0, 0.0, 1.0], 2).unwrap());
    let error = rot(&x, &y, &options(&small, Method::Auto)).unwrap_err();
    assert!(error.to_string().contains("must be 3 x 3, got 2 x 2"), "{error}");
    let of = |entries: &[f64]| Mahalanobis::new(entries, 2).unwrap_err();
    assert!(matches!(of(&[1.0, 0.0, 0.0]), Error::Shape { .. }));
    assert!(matches!(of(&[1.0, f64::NAN, 0.0, 1.0]), Error::MatrixEntry { row: 1, column: 2, .. }));
    assert_eq!(of(&[1.0, 0.5, 0.4, 1.0]), Error::MatrixNotSymmetric { row: 2, column: 1 });
    let Error::MatrixNotPositive { eigenvalue } = of(&[1.0, 2.0, 2.0, 1.0]) else { panic!() };
    assert!((eigenvalue + 1.0).abs() < 1e-12);
    // A function of points that are not equal, and one that has no value.
    let bad = GroundCost::function(|x, _| if x[0] > 0.0 { f64::NAN } else { 1.0 });
    assert!(matches!(rot(&x, &y, &options(&bad, Method::Auto)), Err(Error::Cost { .. })));
    let one_way = GroundCost::function(|x, y| (x[0] - y[0]).max(0.0));
    let error = divergence(&x, &y, &options(&one_way, Method::Auto)).unwrap_err();
    assert!(matches!(error, Error::NotSymmetric { .. }), "{error}");
}

#[test]
fn tiny_and_huge_coordinates_are_the_same_problem() {
    let [x, y] = clouds();
    let scaled = |m: &Measure<'_>, scale: f64| {
        let at = |i: usize| (0..DIM).map(move |k| (i, k));
        let all = (0..m.weights().len()).flat_map(at);
        let points = all.map(|(i, k)| scale * m.points().coordinate(i, k)).collect::<Vec<_>>();
        Measure::weighted(Points::new(points, DIM).unwrap(), m.weights()).unwrap()
    };
    for cost in [GroundCost::Euclidean, GroundCost::L1, GroundCost::Lp(40.0)] {
        let value = |scale: f64| {
            let options = Options::builder(0.3 * scale).cost(cost.clone()).build().unwrap();
            rot(&scaled(&x, scale), &scaled(&y, scale), &options).unwrap().value_kl / scale
        };
        for scale in [1e-180, 1e180] {
            assert!(relative(value(scale), value(1.0)) < 1e-9, "{cost:?} {scale}");
        }
    }
    // Directions do not have a scale.
    for cost in [GroundCost::Cosine, GroundCost::Geodesic] {
        let value = |scale: f64| {
            let options = options(&cost, Method::dense());
            rot(&scaled(&x, scale), &y, &options).unwrap().value_kl
        };
        for scale in [1e-180, 1e180] {
            assert!(relative(value(scale), value(1.0)) < 1e-9, "{cost:?} {scale}");
        }
    }
}

#[test]
fn the_scale_of_a_cost_is_that_of_all_pairs() {
    let [x, y] = clouds();
    for (cost, formula) in costs() {
        let matrix = matrix(&x, &y, formula);
        let [_, deviation] = matrix.mean_and_deviation(&x, &y).unwrap();
        let found = cost.deviation_between(&x, &y).unwrap();
        if !matches!(cost, GroundCost::Dot) {
            assert!(relative(found, deviation) < 1e-10, "{cost:?}: {found} {deviation}");
        }
        // Two clouds of the same points, all pairs of which are those of one cloud with itself.
        let own = self::matrix(&x, &x, formula);
        let [of_own, spread] = own.mean_and_deviation(&x, &x).unwrap();
        if !matches!(cost, GroundCost::Dot) {
            assert!(relative(cost.mean([&x, &x]).unwrap(), of_own) < 1e-10, "{cost:?}");
            assert!(relative(cost.deviation([&x]).unwrap(), spread) < 1e-10, "{cost:?}");
        }
    }
    // The scale of the dot product is that of half the squared distance.
    let half = 0.5 * orthant::mean_cost([&x, &y]).unwrap();
    assert!(relative(GroundCost::Dot.mean([&x, &y]).unwrap(), half) < 1e-12);
}

#[test]
fn tasks_of_many_clouds_name_the_points_that_a_cost_is_not_defined_at() {
    let [x, _] = clouds();
    let mut zero = normal(25, &[1.0, 0.2, 0.5], 0.8, 2);
    zero[6 * DIM..7 * DIM].fill(0.0);
    let zero = Measure::uniform(Points::new(zero, DIM).unwrap());
    let cosine = options(&GroundCost::Cosine, Method::Auto);
    let test = |cost: &Options, y: &Measure<'_>| {
        TwoSampleTest::new(cost).permutations(9).run(&x, y).map(|test| test.p_value)
    };
    let error = test(&cosine, &zero).unwrap_err();
    assert!(matches!(error, Error::InCloud { cloud: Side::Y, .. }), "{error}");
    assert!(error.to_string().contains("point 7 is zero"), "{error}");
    let mean = |cost: &Options, debiased: bool| {
        let barycenters = Barycenters::new(cost).debiased(debiased);
        barycenters.fixed(&[x.clone(), zero.clone()], &[0.5, 0.5], x.points())
    };
    let error = mean(&cosine, false).unwrap_err();
    assert!(error.to_string().contains("cloud 2: point 7 is zero"), "{error}");
    // One way only.
    let one_way = GroundCost::function(|x, y| (x[0] - y[0]).max(0.0));
    let one_way = options(&one_way, Method::Auto);
    assert!(mean(&one_way, false).is_ok());
    for error in [test(&one_way, &zero).unwrap_err(), mean(&one_way, true).unwrap_err()] {
        assert!(error.to_string().contains("symmetric"), "{error}");
    }
}

#[test]
fn barycentres_are_those_of_matrices() {
    let [x, _] = clouds();
    let other = Measure::weighted(x.points().clone(), &wide_weights(30, 77)).unwrap();
    let measures = [x.clone(), other];
    for (cost, formula) in costs() {
        if let GroundCost::Dot = cost {
            let error = Barycenters::new(&options(&cost, Method::dense()))
                .fixed(&measures, &[0.4, 0.6], x.points())
                .unwrap_err();
            assert!(matches!(error, Error::NotFor { .. }), "{error}");
            continue;
        }
        for debiased in [false, true] {
            // A barycentre with a matrix has histograms on the points of the matrix.
            let plain = options(&GroundCost::SquaredEuclidean, Method::dense());
            let expected = Barycenters::new(&plain)
                .costs(matrix(&x, &x, formula))
                .debiased(debiased)
                .fixed(&measures, &[0.4, 0.6], x.points())
                .unwrap();
            let found = Barycenters::new(&options(&cost, Method::dense()))
                .debiased(debiased)
                .fixed(&measures, &[0.4, 0.6], x.points())
                .unwrap();
            let off = found.weights.iter().zip(&expected.weights).map(|(a, b)| (a - b).abs());
            let off = off.fold(0.0, f64::max);
            assert!(off < 1e-8, "{cost:?} {debiased}: {off}");
        }
    }
}

/// What a cost has of each point alone cancels in a divergence.
#[test]
fn a_test_by_the_dot_product_is_that_of_the_squared_distance_at_twice_the_epsilon() {
    let [x, y] = [(30, 1), (25, 2)].map(|(n, seed)| {
        Measure::uniform(Points::new(normal(n, &[0.4, 1.0, -0.6], 0.8, seed), DIM).unwrap())
    });
    let test = |cost: GroundCost, epsilon: f64| {
        let options = Options::builder(epsilon).method(Method::dense()).cost(cost);
        let options = options.tolerance(1e-10).build().unwrap();
        TwoSampleTest::new(&options).permutations(19).run(&x, &y).unwrap()
    };
    let dot = test(GroundCost::Dot, 0.5);
    let square = test(GroundCost::SquaredEuclidean, 1.0);
    assert!((dot.statistic - 0.5 * square.statistic).abs() < 1e-8);
    assert!((dot.value - 0.5 * square.value).abs() < 1e-8);
    assert_eq!(dot.p_value, square.p_value);
}
