//! The permutation test against its theory, full enumeration, and naive solves.

use orthant::features::FeatureMatrix;
use orthant::{
    CostMatrix, Error, Measure, Method, Options, Points, Stop,
    control::Next,
    divergence,
    options::{Features, OptionsBuilder},
    two_sample::{TwoSample, TwoSampleTest, two_sample},
};

use crate::common::{normal, normal_measure};

fn test(mu: &Measure<'_>, nu: &Measure<'_>, count: usize, options: OptionsBuilder) -> TwoSample {
    two_sample(mu, nu, count, &options.build().unwrap()).unwrap()
}

/// `W(x, y)` in the KL form by plain Sinkhorn on a kernel matrix, uniform weights.
fn naive_rot(cost: &dyn Fn(usize, usize) -> f64, x: &[usize], y: &[usize], epsilon: f64) -> f64 {
    let (n, m) = (x.len(), y.len());
    let table: Vec<f64> =
        x.iter().flat_map(|i| y.iter().map(move |j| (-cost(*i, *j) / epsilon).exp())).collect();
    let k = |i: usize, j: usize| table[i * m + j];
    let (mut u, mut v) = (vec![1.0; n], vec![1.0; m]);
    for _ in 0..20_000 {
        for (i, u) in u.iter_mut().enumerate() {
            *u = 1.0 / (0..m).map(|j| k(i, j) * v[j] / m as f64).sum::<f64>();
        }
        for (j, v) in v.iter_mut().enumerate() {
            *v = 1.0 / (0..n).map(|i| k(i, j) * u[i] / n as f64).sum::<f64>();
        }
    }
    let mean = |u: &[f64]| u.iter().map(|u| u.ln()).sum::<f64>() / u.len() as f64;
    epsilon * (mean(&u) + mean(&v))
}

#[test]
fn divergences_are_those_of_naive_solves_of_all_permutations() {
    // Three points of seven: 35 ways.
    let values = [0.0_f64, 0.7, 1.5, 0.2, 1.1, 2.4, 1.9];
    let epsilon = 1.0;
    let cost = |i: usize, j: usize| (values[i] - values[j]).powi(2);
    let mut all = Vec::new();
    for set in 0_u32..128 {
        if set.count_ones() == 3 {
            let part = |one| -> Vec<usize> { (0..7).filter(|i| (set >> i & 1) == one).collect() };
            let (x, y) = (part(1), part(0));
            let rot = |x: &[usize], y: &[usize]| naive_rot(&cost, x, y, epsilon);
            all.push(rot(&x, &y) - 0.5 * (rot(&x, &x) + rot(&y, &y)));
        }
    }
    // The first set is {0, 1, 2}.
    let observed = all[0];
    let (x, y) = values.split_at(3);
    let mu = Measure::uniform(Points::new(x, 1).unwrap());
    let nu = Measure::uniform(Points::new(y, 1).unwrap());
    let count = 3500;
    let found = test(&mu, &nu, count, Options::builder(epsilon).tolerance(1e-11));
    assert!((found.statistic - observed).abs() < 1e-9, "{} {observed}", found.statistic);
    let mut seen = [0_u32; 35];
    for d in &found.null {
        let near = (0..35).min_by(|i, j| (all[*i] - d).abs().total_cmp(&(all[*j] - d).abs()));
        let near = near.unwrap();
        assert!((all[near] - d).abs() < 1e-9, "{d} {}", all[near]);
        seen[near] += 1;
    }
    // All ways are equally likely: 100 each, give or take four standard deviations.
    assert!(seen.iter().all(|n| (60..=140).contains(n)), "{seen:?}");
    // Ties count: the way itself comes up too.
    let exact = all.iter().filter(|d| **d >= observed - 1e-9).count() as f64 / 35.0;
    assert!((found.p_value - exact).abs() < 0.03, "{} {exact}", found.p_value);
    assert_eq!(found.resolution, 1.0 / 3501.0);
    assert_eq!(found.permutations(), count);
    let above = found.null.iter().filter(|d| **d >= found.statistic - 1e-8).count();
    assert_eq!(found.exceeding, above);
}

/// Largest distance of the distribution of p-values from that of the multiples of `1 / cells`.
fn distance_from_uniform(p_values: &[f64], cells: usize) -> f64 {
    (1..=cells)
        .map(|c| {
            let at = c as f64 / cells as f64;
            let below = p_values.iter().filter(|p| **p <= at + 1e-12).count() as f64;
            (below / p_values.len() as f64 - at).abs()
        })
        .fold(0.0, f64::max)
}

#[test]
fn p_values_are_uniform_under_the_null() {
    // Exact kernels, features (rank 5 is a bad approximation, and no harm) and lattices; clouds of other sizes.
    for (method, rank, problems) in [
        (Method::Auto, None, 400),
        (Method::gaussian(), Some(5), 400),
        (Method::lattice(), None, 100),
    ] {
        let p_values: Vec<f64> = (0..problems)
            .map(|seed| {
                let mu = normal_measure(13, &[0.0, 0.0], 1.0, 10_000 + 2 * seed);
                let nu = normal_measure(8, &[0.0, 0.0], 1.0, 10_001 + 2 * seed);
                let mut options = Options::builder(0.5).tolerance(1e-4).seed(seed);
                options = options.method(method.clone());
                if let Some(rank) = rank {
                    options = options.rank(rank);
                }
                test(&mu, &nu, 19, options).p_value
            })
            .collect();
        // Kolmogorov's bound at one per cent.
        let distance = distance_from_uniform(&p_values, 20);
        assert!(distance < 1.63 / (problems as f64).sqrt(), "{method:?}: {distance}");
    }
}

#[test]
fn p_values_of_weighted_clouds_are_uniform_under_the_null() {
    let p_values: Vec<f64> = (0..300)
        .map(|seed| {
            let cloud = |n: usize, seed: u64| {
                // Weights that depend on the point.
                let x = normal(n, &[0.0], 1.0, seed);
                let weights: Vec<f64> = x.iter().map(|x| 1.0 + x * x).collect();
                Measure::weighted(Points::new(x, 1).unwrap(), &weights).unwrap()
            };
            let (mu, nu) = (cloud(7, 1000 + 2 * seed), cloud(15, 1001 + 2 * seed));
            test(&mu, &nu, 19, Options::builder(0.3).tolerance(1e-4).seed(seed)).p_value
        })
        .collect();
    let distance = distance_from_uniform(&p_values, 20);
    assert!(distance < 1.63 / 300f64.sqrt(), "{distance}");
}

#[test]
fn a_shift_is_found() {
    for dim in [1, 2, 6] {
        let mu = normal_measure(60, &vec![0.0; dim], 1.0, 1);
        let mut mean = vec![0.0; dim];
        mean[0] = 1.2;
        let nu = normal_measure(50, &mean, 1.0, 2);
        let found = test(&mu, &nu, 199, Options::builder(0.2 * dim as f64));
        assert_eq!((found.p_value, found.exceeding), (1.0 / 200.0, 0));
        assert_eq!(found.stop, Stop::Converged);
        assert_eq!(found.unconverged, 0);
        assert!(Some(found.statistic) > found.quantile(1.0));
        assert!(found.quantile(0.5) < found.quantile(0.95));
    }
}

#[test]
fn the_statistic_is_the_divergence_whatever_the_method() {
    let mu = normal_measure(80, &[0.0, 0.0], 1.0, 1);
    let nu = normal_measure(70, &[0.3, 0.0], 0.8, 2);
    let options = Options::builder(0.3).tolerance(1e-9).build().unwrap();
    let exact = divergence(&mu, &nu, &options).unwrap().value;
    let run = |method: Method| {
        test(&mu, &nu, 99, Options::builder(0.3).tolerance(1e-9).accuracy(1e-6).method(method))
    };
    let dense = run(Method::dense());
    assert!((dense.statistic - exact).abs() < 1e-9, "{} {exact}", dense.statistic);
    for (method, error) in
        [(Method::online(), 1e-9), (Method::lattice(), 1e-5), (Method::adaptive(), 0.02 * exact)]
    {
        let found = run(method);
        assert!((found.statistic - exact).abs() < error, "{:?}", found.method);
        // The same permutations.
        for (d, e) in found.null.iter().zip(&dense.null) {
            assert!((d - e).abs() < error.max(1e-5) + 0.05 * e, "{:?} {d} {e}", found.method);
        }
        assert!((found.p_value - dense.p_value).abs() <= 0.05);
    }
}

#[test]
fn the_interval_contains_the_divergence_of_a_dense_solve() {
    for dim in 1..=5 {
        let mut mean = vec![0.0; dim];
        for (n, m, shift, epsilon) in [(70, 60, 0.5, 0.3), (60, 80, 0.0, 1.0), (50, 50, 3.0, 0.1)] {
            mean[0] = shift;
            let mu = normal_measure(n, &vec![0.0; dim], 1.0, 1);
            let nu = normal_measure(m, &mean, 0.8, 2);
            let epsilon = epsilon * dim as f64;
            let options =
                Options::builder(epsilon).method(Method::dense()).tolerance(1e-10).build().unwrap();
            let dense = divergence(&mu, &nu, &options).unwrap();
            assert!(dense.converged());
            let mut methods = vec![Method::Auto, Method::dense(), Method::online()];
            if dim <= 3 {
                methods.push(Method::lattice());
            }
            for method in methods {
                let options = Options::builder(epsilon).accuracy(1e-2).method(method.clone());
                let found = test(&mu, &nu, 9, options.clone());
                let name = format!("{method:?} in {dim} dimensions, {n} and {m} points");
                let interval = found.interval.unwrap_or_else(|| panic!("{name}: no interval"));
                assert!(interval.contains(found.value), "{name}: {} {interval:?}", found.value);
                // What the tolerance of the dense solve leaves open.
                let slack = 1e-9 * epsilon;
                assert!(
                    interval.low - slack <= dense.value && dense.value <= interval.high + slack,
                    "{name}: {} {interval:?}",
                    dense.value
                );
                // As a divergence says it, and it is the same one.
                let own = divergence(&mu, &nu, &options.build().unwrap()).unwrap();
                assert_eq!((found.value, found.interval), (own.value, own.interval()), "{name}");
                for accuracy in [1e-1, 1e-2, 1e-4, 1e-12] {
                    assert_eq!(
                        found.meets_accuracy(accuracy),
                        own.meets_accuracy(accuracy),
                        "{name}"
                    );
                }
            }
        }
    }
}

#[test]
fn values_of_anchors_have_an_interval_if_they_are_certified() {
    let mu = normal_measure(80, &[0.0; 4], 1.0, 1);
    let nu = normal_measure(70, &[0.5; 4], 0.8, 2);
    let of = |certify| {
        test(&mu, &nu, 9, Options::builder(2.0).method(Method::gaussian()).certify(certify))
    };
    let exact = test(&mu, &nu, 9, Options::builder(2.0).method(Method::dense()).tolerance(1e-9));
    let (with, without) = (of(true), of(false));
    assert!(with.interval.unwrap().contains(exact.value) && without.interval.is_none());
    assert!(!without.meets_accuracy(1.0));
    // Whatever the divergence is known to, the test is the same.
    assert_eq!(
        (with.null, with.statistic, with.p_value),
        (without.null, without.statistic, without.p_value)
    );
}

#[test]
fn given_kernels_are_those_of_both_clouds() {
    let (x, y) = (normal(20, &[0.0], 1.0, 3), normal(30, &[0.5], 1.0, 4));
    let (mu, nu) = (
        Measure::uniform(Points::new(&x, 1).unwrap()),
        Measure::uniform(Points::new(&y, 1).unwrap()),
    );
    let epsilon = 0.5;
    let all: Vec<f64> = x.iter().chain(&y).copied().collect();
    let cost: Vec<f64> =
        all.iter().flat_map(|a| all.iter().map(move |b| (a - b).powi(2))).collect();
    let exact = test(&mu, &nu, 49, Options::builder(epsilon).tolerance(1e-10));
    let matrix = CostMatrix::new(&cost, 50, 50).unwrap();
    for method in [Method::Auto, Method::dense(), Method::online()] {
        let options = Options::builder(epsilon).tolerance(1e-10).method(method).build().unwrap();
        let given = TwoSampleTest::new(&options).permutations(49).costs(matrix.clone());
        let given = given.run(&mu, &nu).unwrap();
        assert!((given.statistic - exact.statistic).abs() < 1e-9);
        // A matrix of all points has no divergence but the statistic.
        assert_eq!((given.value, given.interval), (given.statistic, None));
    }
    // The linear kernel, by its map and by its matrices.
    let lift = |x: &[f64]| -> Vec<f64> { x.iter().flat_map(|x| [1.0, x.exp()]).collect() };
    let (lx, ly) = (lift(&x), lift(&y));
    let (mu, nu) = (
        Measure::uniform(Points::new(&lx, 2).unwrap()),
        Measure::uniform(Points::new(&ly, 2).unwrap()),
    );
    let (xi, zeta) =
        (FeatureMatrix::new(&lx, 20, 2).unwrap(), FeatureMatrix::new(&ly, 30, 2).unwrap());
    let options = || Options::builder(1.0).tolerance(1e-10);
    let map = test(&mu, &nu, 49, options().method(Method::Factored(Features::Linear)));
    let given = |method| {
        let options = options().method(method).build().unwrap();
        let given = TwoSampleTest::new(&options).permutations(49);
        given.features(xi.clone(), zeta.clone()).run(&mu, &nu).unwrap()
    };
    let [features, dense] = [given(Method::Auto), given(Method::dense())];
    assert_eq!((map.rank, features.rank, dense.rank), (2, 2, 50));
    for given in [features, dense] {
        assert!((given.statistic - map.statistic).abs() < 1e-10);
        assert!((given.value - map.value).abs() < 1e-9);
    }
    assert!(map.statistic > 0.0);
}

#[test]
fn points_of_weight_zero_are_no_points() {
    let (x, y) = (normal(20, &[0.0], 1.0, 3), normal(30, &[0.5], 1.0, 4));
    let mu = Measure::uniform(Points::new(&x, 1).unwrap());
    let nu = Measure::uniform(Points::new(&y, 1).unwrap());
    let mut more = x.clone();
    more.extend([100.0, -7.0]);
    let mut weights = vec![1.0; 20];
    weights.extend([0.0, 0.0]);
    let with_zeros = Measure::weighted(Points::new(&more, 1).unwrap(), &weights).unwrap();
    let options = || Options::builder(0.5);
    let (one, two) = (test(&mu, &nu, 49, options()), test(&with_zeros, &nu, 49, options()));
    assert_eq!((one.p_value, one.statistic), (two.p_value, two.statistic));
}

#[test]
fn clouds_far_apart_at_a_small_epsilon_leave_the_table_and_not_the_range() {
    let mu = normal_measure(12, &[0.0], 0.1, 1);
    let nu = normal_measure(9, &[100.0], 0.1, 2);
    // Squared distances of 10^4 are e^-100000 in the kernel.
    let found = test(&mu, &nu, 99, Options::builder(0.1));
    assert_eq!(found.p_value, 0.01);
    assert!((found.statistic / 1e4 - 1.0).abs() < 0.01, "{}", found.statistic);
    // Permuted, the clusters have other parts of each cloud, and only what must cross does. Values that did not
    // converge are lower bounds.
    assert!(found.null.iter().all(|d| d.is_finite() && *d < found.statistic));
}

#[test]
fn equal_clouds_have_the_largest_p_value() {
    let mu = normal_measure(15, &[0.0], 1.0, 1);
    let found = test(&mu, &mu, 99, Options::builder(0.5));
    assert!(found.p_value > 0.99, "{}", found.p_value);
    // All points in one place: nothing but ties.
    let point = Measure::uniform(Points::new(vec![1.0; 5], 1).unwrap());
    let found = test(&point, &point, 19, Options::builder(0.5));
    assert_eq!((found.p_value, found.statistic.abs() < 1e-12), (1.0, true));
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let mu = normal_measure(150, &[0.0, 0.0], 1.0, 1);
    let nu = normal_measure(130, &[0.1, 0.0], 1.0, 2);
    for method in [Method::dense(), Method::gaussian(), Method::lattice()] {
        let options = Options::builder(0.3).method(method).build().unwrap();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| two_sample(&mu, &nu, 40, &options).unwrap())
        };
        let (one, three) = (run(1), run(3));
        assert_eq!(one.null, three.null);
        assert_eq!((one.p_value, one.statistic), (three.p_value, three.statistic));
    }
    // Another seed, other permutations; the first ones of a longer test are those of a shorter one.
    let options = Options::builder(0.3).method(Method::dense());
    let short = two_sample(&mu, &nu, 20, &options.clone().build().unwrap()).unwrap();
    let long = two_sample(&mu, &nu, 40, &options.clone().build().unwrap()).unwrap();
    let other = two_sample(&mu, &nu, 20, &options.seed(1).build().unwrap()).unwrap();
    assert_eq!(short.null, long.null[..20]);
    assert_ne!(short.null, other.null);
}

#[test]
fn observers_and_limits_end_it_early() {
    let mu = normal_measure(20, &[0.0], 1.0, 1);
    let nu = normal_measure(25, &[0.0], 1.0, 2);
    let options = Options::builder(0.5).build().unwrap();
    let mut last = 0;
    let mut observer = |done: usize, all: usize| {
        assert_eq!(all, 5000);
        last = done;
        if done >= 500 { Next::Stop } else { Next::Continue }
    };
    let found =
        TwoSampleTest::new(&options).permutations(5000).observer(&mut observer).run(&mu, &nu);
    let found = found.unwrap();
    assert_eq!(found.stop, Stop::Requested);
    assert!((500..5000).contains(&found.permutations()));
    assert_eq!(found.resolution, 1.0 / (found.permutations() + 1) as f64);
    assert_eq!(last, found.permutations());
    // Before the first permutation.
    let mut calls = 0;
    let mut observer = |_: usize, _: usize| {
        calls += 1;
        Next::Stop
    };
    let found = TwoSampleTest::new(&options).observer(&mut observer).run(&mu, &nu).unwrap();
    assert_eq!((found.stop, found.permutations(), found.p_value), (Stop::Requested, 0, 1.0));
    assert!(found.statistic > 0.0 && (1..=2).contains(&calls));
    // There is nothing to take a quantile of, and nobody waits for the divergence.
    assert_eq!((found.quantile(0.5), found.interval), (None, None));
    assert_eq!(found.value, found.statistic);
    let options = Options::builder(0.5).time_limit(std::time::Duration::ZERO).build().unwrap();
    let found = two_sample(&mu, &nu, 5000, &options).unwrap();
    assert_eq!(found.stop, Stop::TimeLimit);
    // Too few iterations: said, and no harm.
    let found = test(&mu, &nu, 19, Options::builder(0.01).max_iterations(2).tolerance(1e-9));
    assert!(found.unconverged > 0);
}

#[test]
fn bad_input_is_an_error_that_says_so() {
    let mu = normal_measure(5, &[0.0], 1.0, 1);
    let plane = normal_measure(5, &[0.0, 0.0], 1.0, 1);
    let fails = |nu: &Measure<'_>, count, options: OptionsBuilder| {
        two_sample(&mu, nu, count, &options.build().unwrap()).unwrap_err()
    };
    let with = || Options::builder(0.1);
    assert!(matches!(fails(&mu, 0, with()), Error::Option { .. }));
    assert_eq!(fails(&plane, 9, with()), Error::Dimensions { x: 1, y: 2 });
    assert!(matches!(fails(&mu, 9, with().reach(1.0)), Error::NotFor { .. }));
    assert!(matches!(fails(&mu, 9, with().method(Method::nystrom())), Error::NotFor { .. }));
    let matrix = |n: usize| CostMatrix::new((0..n * n).map(|i| i as f64).collect::<Vec<_>>(), n, n);
    let fails_on = |n| {
        let test = TwoSampleTest::new(&with().build().unwrap()).permutations(9);
        test.costs(matrix(n).unwrap()).run(&mu, &mu).unwrap_err()
    };
    assert!(matches!(fails_on(5), Error::Shape { .. }));
    assert!(matches!(fails_on(10), Error::NotSymmetric { .. }));
    assert!(matches!(
        fails(&mu, 9, with().method(Method::Factored(Features::Linear))),
        Error::InCloud { .. }
    ));
}
