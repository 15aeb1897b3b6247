//! What an accuracy promises, against the exact kernel.

use crate::common::{Kernel, shapes::Shape};
use orthant::{
    Certainty, CostMatrix, Divergence, Error, Measure, Method, Options, Points, Precision,
    compare::compare, divergence, mean_squared_distance, rot,
};

fn uniform(points: Vec<f64>, dim: usize) -> Measure<'static> {
    Measure::uniform(Points::new(points, dim).unwrap())
}

/// Two clouds of one shape, the second moved by `shift` along every axis.
fn near(shape: Shape, n: usize, m: usize, dim: usize, shift: f64) -> [Measure<'static>; 2] {
    let x = shape.draw(n, dim, 5);
    let y = shape.draw(m, dim, 6).into_iter().map(|y| y + shift).collect();
    [uniform(x, dim), uniform(y, dim)]
}

fn exact(mu: &Measure<'_>, nu: &Measure<'_>, epsilon: f64) -> Divergence {
    let options = Options::builder(epsilon).method(Method::dense()).tolerance(1e-11);
    divergence(mu, nu, &options.build().unwrap()).unwrap()
}

/// What an accuracy of a divergence is relative to.
fn relative(d: &Divergence) -> f64 {
    d.value.abs().max(0.01 * d.cross.value_kl)
}

#[test]
fn a_divergence_is_accurate_relative_to_itself() {
    let mut small = 0;
    for (dim, shape, shift, scale, accuracy) in [
        (1, Shape::Gaussian, 0.3, 0.05, 1e-3),
        (2, Shape::Gaussian, 0.2, 0.05, 1e-2),
        (2, Shape::Ring, 0.1, 0.05, 1e-3),
        (2, Shape::Heavy, 0.1, 0.3, 1e-2),
        (3, Shape::Clusters, 0.1, 0.3, 1e-2),
        (6, Shape::Gaussian, 0.3, 0.5, 3e-2),
    ] {
        let [mu, nu] = near(shape, 700, 600, dim, shift);
        let epsilon = scale * mean_squared_distance(&mu, &nu).unwrap();
        let truth = exact(&mu, &nu, epsilon);
        small += usize::from(truth.value < 0.2 * truth.cross.value_kl);
        for method in [Method::Auto, Method::lattice()] {
            if dim > 4 && !matches!(method, Method::Auto) {
                continue;
            }
            let name = format!("{dim} {shape:?} {method:?}");
            let options = Options::builder(epsilon).method(method).accuracy(accuracy);
            let d = divergence(&mu, &nu, &options.build().unwrap()).unwrap();
            let interval = d.interval().unwrap();
            assert!(d.meets_accuracy(accuracy), "{name}: {} {interval:?}", d.value);
            assert!(interval.contains(truth.value), "{name}: {} {interval:?}", truth.value);
            assert!(interval.farthest(d.value) <= accuracy * relative(&d), "{name}");
            assert!((d.value - truth.value).abs() <= accuracy * relative(&truth), "{name}");
            assert!(!d.meets_accuracy(0.0), "{name}");
        }
    }
    assert!(small >= 4, "of {small} the divergence is much smaller than its terms");
}

#[test]
fn clouds_that_all_but_coincide_have_a_floor() {
    let [mu, _] = near(Shape::Gaussian, 1200, 1, 2, 0.0);
    let nu = uniform(Shape::Gaussian.draw(1200, 2, 5).iter().map(|x| x + 1e-5).collect(), 2);
    let epsilon = 0.1 * mean_squared_distance(&mu, &nu).unwrap();
    let d = divergence(&mu, &nu, &Options::builder(epsilon).build().unwrap()).unwrap();
    assert!(d.value.abs() < 1e-4 * d.cross.value_kl, "{}", d.value);
    assert!(d.meets_accuracy(1e-3), "{:?}", d.interval());
    let allowed = 1e-3 * 0.01 * d.cross.value_kl;
    assert!(d.interval().unwrap().farthest(d.value) <= allowed, "{:?}", d.interval());
}

#[test]
fn lattices_are_as_accurate_as_asked() {
    for (dim, shape) in [(1, Shape::Gaussian), (2, Shape::Outlier), (2, Shape::Clusters)] {
        let [x, y] = shape.pair(400, 300, dim, 3);
        let (mu, nu) = (uniform(x, dim), uniform(y, dim));
        let epsilon = 0.2 * mean_squared_distance(&mu, &nu).unwrap();
        let solve = |method, accuracy, tolerance, precision| {
            let options = Options::builder(epsilon).method(method).accuracy(accuracy);
            let options = options.tolerance(tolerance).precision(precision).build().unwrap();
            rot(&mu, &nu, &options).unwrap()
        };
        let truth = solve(Method::dense(), 1e-3, 1e-13, Precision::F64);
        for accuracy in [1e-4, 1e-7, 1e-9] {
            let s = solve(Method::lattice(), accuracy, 1e-6, Precision::F64);
            let interval = s.interval_kl.unwrap();
            assert!(
                s.meets_accuracy(accuracy),
                "{dim} {shape:?} {accuracy}: {} {interval:?}",
                s.value_kl
            );
            assert!(interval.farthest(s.value_kl) <= accuracy * s.value_kl);
            assert!(interval.contains(truth.value_kl), "{} {interval:?}", truth.value_kl);
        }
        // What cannot be had is not said to be there.
        let single = solve(Method::lattice(), 1e-9, 1e-6, Precision::F32);
        assert!(!single.meets_accuracy(1e-9) && single.meets_accuracy(1e-2));
        let ranked = Options::builder(epsilon).method(Method::lattice()).rank(30);
        let ranked = rot(&mu, &nu, &ranked.accuracy(1e-9).build().unwrap()).unwrap();
        assert!(!ranked.meets_accuracy(1e-9));
    }
}

#[test]
fn pairs_of_a_comparison_are_accurate_relative_to_their_divergence() {
    let dim = 2;
    let clouds: Vec<Measure<'_>> = [0.0, 0.05, 0.3, 2.0]
        .into_iter()
        .map(|shift| {
            let points = Shape::Gaussian.draw(1100, dim, 9);
            uniform(points.into_iter().map(|x| x + shift).collect(), dim)
        })
        .collect();
    let epsilon = 0.05 * mean_squared_distance(&clouds[0], &clouds[1]).unwrap();
    let accuracy = 1e-3;
    let options = Options::builder(epsilon).accuracy(accuracy).build().unwrap();
    let found = compare(&clouds, &options).unwrap();
    for pair in &found.pairs {
        let truth = exact(&clouds[pair.first], &clouds[pair.second], epsilon);
        let interval = pair.interval.unwrap();
        assert_eq!(interval.kind, Certainty::Bound, "{pair:?}");
        assert!(pair.accurate, "{pair:?}");
        assert!(interval.contains(truth.value), "{pair:?} {}", truth.value);
        assert!(interval.farthest(pair.value) <= accuracy * relative(&truth) * 1.001, "{pair:?}");
    }
    // Random features have no interval, and nothing is promised.
    let options = Options::builder(epsilon).method(Method::gaussian()).rank(50).build().unwrap();
    assert!(compare(&clouds[..2], &options).unwrap().pairs.iter().all(|pair| !pair.accurate));
}

/// With an epsilon far above all costs the plan is that of independent points, and `value_kl` their mean cost.
#[test]
fn a_huge_epsilon_leaves_the_mean_cost() {
    for dim in [1, 2, 6] {
        let [x, y] = Shape::Gaussian.pair(40, 30, dim, 2);
        let costs: Vec<f64> = x
            .chunks(dim)
            .flat_map(|x| y.chunks(dim).map(move |y| (x, y)))
            .map(|(x, y)| x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum())
            .collect();
        let range = costs.iter().copied().fold(0.0, f64::max);
        let (mu, nu) = (uniform(x, dim), uniform(y, dim));
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        let matrix = || CostMatrix::new(&costs, 40, 30).unwrap();
        for epsilon in [1e6, 1e12, 1e100, 1e300] {
            let entropy = epsilon * (40.0_f64.ln() + 30.0_f64.ln());
            for kernel in [
                Method::Auto.into(),
                Method::online().into(),
                Method::dense().into(),
                Kernel::costs(Method::online(), matrix()),
            ] {
                let Kernel { method, .. } = &kernel;
                let name = format!("{dim} {epsilon:e} {method:?}");
                let options = Options::builder(epsilon).method(method.clone()).build().unwrap();
                let s = kernel.solver(&options).rot(&mu, &nu).unwrap();
                // The mean cost but for range^2 / (8 eps), and rounding; the solve knows a bound of the range only, from
                // norms, that may be four times as large.
                let most = 16.0 * range * range / (8.0 * epsilon) + 1e-12 * mean;
                assert!((s.value_kl - mean).abs() <= most, "{name}: {} {mean}", s.value_kl);
                let interval = s.interval_kl.unwrap();
                assert!(interval.contains(s.value_kl), "{name}: {interval:?}");
                assert!(interval.width() <= 4.0 * most, "{name}: {interval:?}");
                assert!(s.meets_accuracy(1e-3), "{name}: {interval:?}");
                let apart = s.value_kl - s.value;
                assert!((apart - entropy).abs() <= 1e-12 * entropy, "{name}: {}", s.value);
            }
        }
        let options = Options::builder(1e300).build().unwrap();
        let d = divergence(&mu, &nu, &options).unwrap();
        assert!(
            d.value > 0.0 && d.value < mean && d.meets_accuracy(1e-3),
            "{} {:?}",
            d.value,
            d.interval()
        );
        // Where a value is beyond the numbers, that is said.
        let options = Options::builder(1e308).build().unwrap();
        let error = rot(&mu, &nu, &options).unwrap_err();
        assert!(matches!(error, Error::Overflow { .. }), "{error}");
    }
}
