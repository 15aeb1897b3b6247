//! Samples of the clouds, solved exactly: the exact value is in the interval, in any number of axes.

use orthant::features::FeatureMatrix;
use orthant::options::SampleSizes;
use orthant::results::{Certainty, MethodUsed};
use orthant::{
    CostMatrix, Error, GroundCost, Interval, Measure, Method, Options, Points, Side, Solver,
    mean_squared_distance, plan, plans, rot,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

fn sampled(size: usize) -> Method {
    Method::Sampled(SampleSizes { size: Some(size), samples: None })
}

/// Points around some centres, with a spectrum that decays; the heavier the tails, the smaller `freedom`.
fn clusters(n: usize, dim: usize, shift: f64, freedom: f64, seed: u64) -> Vec<f64> {
    const CENTRES: usize = 7;
    let axis = |c: usize| 1.0 / (1.0 + c as f64).sqrt();
    let mut rng = ChaCha8Rng::seed_from_u64(99);
    let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
    let centres: Vec<f64> =
        (0..CENTRES * dim).map(|i| 1.5 * axis(i % dim) * normal(&mut rng)).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut out = Vec::with_capacity(n * dim);
    for _ in 0..n {
        let centre = rng.random_range(0..CENTRES);
        let wide = if freedom.is_finite() {
            rng.random::<f64>().powf(-1.0 / freedom).min(1e3)
        } else {
            1.0
        };
        for c in 0..dim {
            out.push(
                centres[centre * dim + c] + shift * axis(c) + wide * axis(c) * normal(&mut rng),
            );
        }
    }
    out
}

fn weights(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| rng.random::<f64>().powi(3) + 1e-4).collect()
}

fn measure(points: Vec<f64>, dim: usize, weights: Option<Vec<f64>>) -> Measure<'static> {
    let points = Points::new(points, dim).unwrap();
    match weights {
        None => Measure::uniform(points),
        Some(weights) => Measure::weighted(points, &weights).unwrap(),
    }
}

/// Whether the exact value is inside, and how far it is from the value, in half-widths.
fn inside(interval: Interval, value: f64, exact: f64) -> (bool, f64) {
    assert_eq!(interval.kind, Certainty::Sampled);
    assert!(interval.contains(value), "{value} is not in {interval:?}");
    (interval.contains(exact), (value - exact).abs() / (0.5 * interval.width()))
}

#[test]
fn the_exact_value_is_inside() {
    let (mut held, mut distances) = (0, Vec::new());
    let mut problems = 0;
    for (p, dim) in [5, 7, 10, 28, 50, 100, 300].into_iter().cycle().take(42).enumerate() {
        let seed = 1000 + p as u64;
        let part = [0.02, 0.05, 0.1, 0.2, 0.5][p % 5];
        let (n, m) = [(900, 900), (700, 1100), (1000, 600)][p % 3];
        let freedom = if p % 4 == 1 { 3.0 } else { f64::INFINITY };
        let mut x = clusters(n, dim, 0.0, freedom, seed);
        let y = clusters(m, dim, 0.4, freedom, seed + 500);
        match p % 6 {
            // Every fourth point many times.
            2 => {
                for i in 0..n {
                    x.copy_within(i / 4 * 4 * dim..(i / 4 * 4 + 1) * dim, i * dim);
                }
            }
            // One point far away.
            4 => x[..dim].iter_mut().for_each(|x| *x += 20.0),
            _ => {}
        }
        let weighted = p % 4 == 3;
        let mu = measure(x, dim, weighted.then(|| weights(n, seed)));
        let nu = measure(y, dim, weighted.then(|| weights(m, seed + 1)));
        let epsilon = part * mean_squared_distance(&mu, &nu).unwrap();
        let options = |method| {
            Options::builder(epsilon).method(method).tolerance(1e-7).seed(seed).build().unwrap()
        };
        let exact = rot(&mu, &nu, &options(Method::dense())).unwrap();
        let s = rot(&mu, &nu, &options(sampled(150))).unwrap();
        assert_eq!(s.method, MethodUsed::Sampled);
        let (is_inside, distance) = inside(s.interval_kl.unwrap(), s.value_kl, exact.value_kl);
        assert!(is_inside, "{dim} axes, problem {p}: {:?}, {}", s.interval_kl, exact.value_kl);
        assert!(s.interval.unwrap().contains(exact.value));
        let estimate = s.sampling.unwrap().estimate;
        held += usize::from((estimate.value - exact.value).abs() <= 3.0 * estimate.stderr);
        distances.push(distance);
        problems += 1;
    }
    distances.sort_by(f64::total_cmp);
    assert!(distances[problems / 2] <= 1.0 / 3.0, "{distances:?}");
    assert!(100 * held >= 97 * problems, "{held} of {problems} estimates");
}

#[test]
fn self_terms_and_divergences_are_inside() {
    for (p, dim) in [5, 10, 28, 50].into_iter().enumerate() {
        let weighted = p % 2 == 1;
        let x = clusters(900, dim, 0.0, f64::INFINITY, 7 + p as u64);
        let y = clusters(800, dim, 0.8, f64::INFINITY, 70 + p as u64);
        let mu = measure(x, dim, weighted.then(|| weights(900, 5)));
        let nu = measure(y, dim, weighted.then(|| weights(800, 6)));
        for part in [0.05, 0.3] {
            let epsilon = part * mean_squared_distance(&mu, &nu).unwrap();
            let options =
                |method| Options::builder(epsilon).method(method).tolerance(1e-7).build().unwrap();
            let of = |method| Solver::new(&options(method)).divergence(&mu, &nu).unwrap();
            let (exact, s) = (of(Method::dense()), of(sampled(200)));
            for (s, exact) in s.terms().into_iter().zip(exact.terms()) {
                let (is_inside, _) = inside(s.interval_kl.unwrap(), s.value_kl, exact.value_kl);
                assert!(is_inside, "{dim} axes: {:?}, {}", s.interval_kl, exact.value_kl);
            }
            assert!(s.interval().unwrap().contains(exact.value));
        }
    }
}

#[test]
fn unbalanced_values_are_inside() {
    for (p, dim) in [5, 7, 10, 28, 50, 100].into_iter().cycle().take(18).enumerate() {
        let seed = 3000 + p as u64;
        let (n, m) = [(900, 900), (700, 1000)][p % 2];
        let x = clusters(n, dim, 0.0, f64::INFINITY, seed);
        let y = clusters(m, dim, 0.8, f64::INFINITY, seed + 500);
        // Weights of any sum.
        let heavy = |n: usize, times: f64| -> Vec<f64> {
            weights(n, seed + n as u64).iter().map(|w| times * w / n as f64).collect()
        };
        let weighted = p % 3 == 0;
        let mu = measure(x, dim, weighted.then(|| heavy(n, 6.0)));
        let nu = measure(y, dim, weighted.then(|| heavy(m, 2.0)));
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        let epsilon = [0.05, 0.1, 0.3][p % 3] * mean;
        let options = |method| {
            let builder = Options::builder(epsilon).method(method).tolerance(1e-7).seed(seed);
            let builder = match p % 4 {
                // Both marginals, or one of them.
                0 => builder.rho_x(0.5 * mean),
                1 => builder.rho_x(0.2 * mean).rho_y(3.0 * mean),
                _ => builder.rho_x(mean).rho_y(mean),
            };
            builder.build().unwrap()
        };
        let exact = rot(&mu, &nu, &options(Method::dense())).unwrap();
        let s = rot(&mu, &nu, &options(sampled(150))).unwrap();
        assert_eq!(s.method, MethodUsed::Sampled);
        let (is_inside, distance) = inside(s.interval_kl.unwrap(), s.value_kl, exact.value_kl);
        assert!(is_inside, "problem {p}: {:?}, {}", s.interval_kl, exact.value_kl);
        assert!(distance < 1.0 && s.interval_kl.unwrap().width() < 0.3 * exact.value_kl.abs());
        let near = |found: f64, exact: f64| (found / exact - 1.0).abs() < 0.1;
        assert!(near(s.mass, exact.mass), "{} {}", s.mass, exact.mass);
        let cost = [s.transport_cost.unwrap(), exact.transport_cost.unwrap()];
        assert!(near(cost[0], cost[1]), "problem {p}: {cost:?}");
        if p % 4 > 1 {
            let of = |method| Solver::new(&options(method)).divergence(&mu, &nu).unwrap();
            let (exact, s) = (of(Method::dense()), of(sampled(150)));
            for (s, exact) in s.terms().into_iter().zip(exact.terms()) {
                let (is_inside, _) = inside(s.interval_kl.unwrap(), s.value_kl, exact.value_kl);
                assert!(is_inside, "{dim} axes: {:?}, {}", s.interval_kl, exact.value_kl);
            }
            assert!(s.interval().unwrap().contains(exact.value));
        }
    }
}

#[test]
fn larger_samples_come_closer_and_the_exact_kernel_takes_over() {
    let mu = measure(clusters(4000, 10, 0.0, f64::INFINITY, 3), 10, None);
    let nu = measure(clusters(4000, 10, 0.5, f64::INFINITY, 4), 10, None);
    let epsilon = 0.2 * mean_squared_distance(&mu, &nu).unwrap();
    let builder = |method| Options::builder(epsilon).method(method);
    let widths = [100, 400].map(|size| {
        let s = rot(&mu, &nu, &builder(sampled(size)).build().unwrap()).unwrap();
        assert_eq!(s.sampling.unwrap().size, size);
        s.interval_kl.unwrap().width()
    });
    assert!(widths[1] < 0.5 * widths[0], "{widths:?}");
    // A per cent takes a part of the points, and is met.
    let options = builder(Method::sampled()).accuracy(2e-2).build().unwrap();
    let s = rot(&mu, &nu, &options).unwrap();
    assert!(s.meets_accuracy(2e-2) && s.sampling.is_some_and(|s| s.size <= 1000), "{s:?}");
    // Much more takes all of them.
    let options = builder(Method::sampled()).accuracy(1e-5).build().unwrap();
    let s = rot(&mu, &nu, &options).unwrap();
    assert_eq!((s.method, s.sampling), (MethodUsed::Online, None));
    assert_eq!(s.interval_kl.unwrap().kind, Certainty::Exact);
    assert!(s.meets_accuracy(1e-5));
}

#[test]
fn automatic_choices_take_samples_where_a_pilot_says_so() {
    let n = 9000;
    let mu = measure(clusters(n, 6, 0.0, f64::INFINITY, 61), 6, None);
    let nu = measure(clusters(n, 6, 0.5, f64::INFINITY, 62), 6, None);
    let mean = mean_squared_distance(&mu, &nu).unwrap();
    let solved = |part: f64, accuracy: f64| {
        let options = Options::builder(part * mean).accuracy(accuracy).build().unwrap();
        rot(&mu, &nu, &options).unwrap()
    };
    let s = solved(0.1, 1e-2);
    assert_eq!(s.method, MethodUsed::Sampled);
    assert!(s.meets_accuracy(1e-2) && s.reason.unwrap().contains("samples"));
    // The accuracy of a divergence is relative to it.
    let options = Options::builder(0.5 * mean).accuracy(0.05).build().unwrap();
    let divergence = Solver::new(&options).divergence(&mu, &nu).unwrap();
    assert!(divergence.meets_accuracy(0.05), "{:?}", divergence.interval());
    let s = solved(0.02, 1e-3);
    assert_eq!(s.method, MethodUsed::Online);
    assert!(s.meets_accuracy(1e-3) && s.reason.unwrap().contains("a pilot says"));
}

#[test]
fn noise_in_many_axes_has_a_wide_interval_that_is_true() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut noise =
        || -> Vec<f64> { (0..1000 * 20).map(|_| StandardNormal.sample(&mut rng)).collect() };
    let (mu, nu) = (measure(noise(), 20, None), measure(noise(), 20, None));
    let epsilon = 0.03 * mean_squared_distance(&mu, &nu).unwrap();
    let options = |method| Options::builder(epsilon).method(method).build().unwrap();
    let exact = rot(&mu, &nu, &options(Method::dense())).unwrap().value_kl;
    let s = rot(&mu, &nu, &options(sampled(100))).unwrap();
    let interval = s.interval_kl.unwrap();
    assert!(interval.contains(exact) && interval.width() > 0.05 * exact, "{interval:?}, {exact}");
    assert!(!s.meets_accuracy(1e-2));
}

#[test]
fn any_cost_can_be_sampled() {
    let (n, m, dim) = (700, 600, 6);
    let x = clusters(n, dim, 0.0, f64::INFINITY, 11);
    let y = clusters(m, dim, 0.5, f64::INFINITY, 12);
    let at = |x: &[f64], i: usize| x[i * dim..(i + 1) * dim].to_vec();
    let l1 = |i: usize, j: usize| -> f64 {
        at(&x, i).iter().zip(at(&y, j)).map(|(x, y)| (x - y).abs()).sum()
    };
    let costs: Vec<f64> = (0..n * m).map(|k| l1(k / m, k % m)).collect();
    let (mu, nu) = (measure(x.clone(), dim, None), measure(y.clone(), dim, None));
    let epsilon = 0.1 * costs.iter().sum::<f64>() / (n * m) as f64;
    let function = GroundCost::function(|x, y| x.iter().zip(y).map(|(x, y)| (x - y).abs()).sum());
    let builder = |method| Options::builder(epsilon).method(method);
    let dense = builder(Method::dense()).cost(GroundCost::L1).build().unwrap();
    let exact = rot(&mu, &nu, &dense).unwrap();
    let of_points = |cost| {
        let options = builder(sampled(150)).cost(cost).build().unwrap();
        rot(&mu, &nu, &options).unwrap()
    };
    let matrix = CostMatrix::new(costs.clone(), n, m).unwrap();
    let options = builder(sampled(150)).build().unwrap();
    let of_matrix = Solver::new(&options).costs(matrix).rot(&mu, &nu).unwrap();
    for s in [of_points(GroundCost::L1), of_points(function), of_matrix] {
        assert_eq!(s.method, MethodUsed::Sampled);
        let (is_inside, _) = inside(s.interval_kl.unwrap(), s.value_kl, exact.value_kl);
        assert!(is_inside, "{:?}, {}", s.interval_kl, exact.value_kl);
    }
}

/// `|found - exact| / |exact|`, both less a mean.
fn distance(found: &[f64], exact: &[f64], mean: f64) -> f64 {
    let norm = |of: &dyn Fn(usize) -> f64| (0..exact.len()).map(|i| of(i).powi(2)).sum::<f64>();
    (norm(&|i| found[i] - exact[i]) / norm(&|i| exact[i] - mean)).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn plans_of_samples_come_near_those_of_all_points() {
    const N: usize = 1600;
    let dim = 6;
    let weighted = measure(clusters(N, dim, 0.0, f64::INFINITY, 41), dim, Some(weights(N, 3)));
    let even = measure(clusters(N, dim, 0.0, f64::INFINITY, 41), dim, None);
    let nu = measure(clusters(N + 100, dim, 0.6, f64::INFINITY, 42), dim, None);
    for (mu, cost) in [
        (&even, GroundCost::SquaredEuclidean),
        (&weighted, GroundCost::SquaredEuclidean),
        (&even, GroundCost::Dot),
        (&even, GroundCost::L1),
    ] {
        let epsilon = 0.15 * cost.mean([mu, &nu]).unwrap().abs().max(1.0);
        let options = |method| {
            let builder = Options::builder(epsilon).method(method).cost(cost.clone());
            builder.tolerance(1e-8).build().unwrap()
        };
        let exact = plan(mu, &nu, &options(Method::dense())).unwrap();
        let widths = [25, 90, 400].map(|size| {
            let found = plan(mu, &nu, &options(sampled(size))).unwrap();
            let elsewhere = Points::new(clusters(50, dim, 1.0, f64::INFINITY, 43), dim).unwrap();
            let mut errors = Vec::new();
            for side in [Side::X, Side::Y] {
                let of = |p: &orthant::Plan<'_>| p.barycentric(side).unwrap();
                errors.push(distance(&of(&found), &of(&exact), mean(&of(&exact))));
                let of = |p: &orthant::Plan<'_>| p.map_at(side, &elsewhere).unwrap();
                errors.push(distance(&of(&found), &of(&exact), mean(&of(&exact))));
                let of = |p: &orthant::Plan<'_>| p.potential_at(side, &elsewhere).unwrap();
                errors.push(distance(&of(&found), &of(&exact), mean(&of(&exact))));
                let of = |p: &orthant::Plan<'_>| p.gradient().points(side).unwrap();
                errors.push(distance(&of(&found), &of(&exact), 0.0));
                let of = |p: &orthant::Plan<'_>| p.gradient().weights(side).unwrap();
                errors.push(distance(&of(&found), &of(&exact), 0.0));
            }
            let of = |p: &orthant::Plan<'_>| p.solution().transport_cost.unwrap();
            errors.push((of(&found) - of(&exact)).abs() / epsilon);
            let of = |p: &orthant::Plan<'_>| p.gradient().epsilon().unwrap();
            errors.push((of(&found) / of(&exact) - 1.0).abs());
            let of = |p: &orthant::Plan<'_>| p.solution().plan_concentration.unwrap();
            errors.push((of(&found) - of(&exact)).abs());
            // Pairs have the weights of their first points, and the mean cost of the plan.
            let pairs = found.sample(20_000, 5).unwrap();
            let mut counts = vec![0.0; N];
            for [i, _] in &pairs {
                counts[*i] += 1.0 / 20_000.0;
            }
            let chi2: f64 =
                (0..N).map(|i| (counts[i] - mu.weights()[i]).powi(2) / mu.weights()[i]).sum();
            assert!(chi2 * 20_000.0 < N as f64 + 6.0 * (2.0 * N as f64).sqrt(), "{chi2}");
            errors.iter().copied().fold(0.0, f64::max)
        });
        let name = cost.as_str();
        assert!(widths[0] < 1.0 && widths[1] < 0.5 && widths[2] < 0.15, "{name}: {widths:?}");
    }
}

#[test]
fn gradients_of_divergences_come_near_those_of_all_points() {
    for (dim, weighted) in [(5, false), (10, true)] {
        let mu = measure(
            clusters(700, dim, 0.0, f64::INFINITY, 51),
            dim,
            weighted.then(|| weights(700, 8)),
        );
        let nu = measure(clusters(800, dim, 0.7, f64::INFINITY, 52), dim, None);
        let epsilon = 0.1 * mean_squared_distance(&mu, &nu).unwrap();
        let options =
            |method| Options::builder(epsilon).method(method).tolerance(1e-8).build().unwrap();
        let exact = plans(&mu, &nu, &options(Method::dense())).unwrap();
        let found = plans(&mu, &nu, &options(sampled(350))).unwrap();
        for side in [Side::X, Side::Y] {
            let of = |p: &orthant::Plans<'_>| p.gradient().points(side).unwrap();
            let error = distance(&of(&found), &of(&exact), 0.0);
            assert!(error < 0.15, "{dim} axes: {error}");
            let of = |p: &orthant::Plans<'_>| p.gradient().weights(side).unwrap();
            let error = distance(&of(&found), &of(&exact), 0.0);
            assert!(error < 0.25, "weights in {dim} axes: {error}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let mu = measure(clusters(900, 8, 0.0, f64::INFINITY, 21), 8, None);
    let nu = measure(clusters(900, 8, 0.5, f64::INFINITY, 22), 8, None);
    let epsilon = 0.1 * mean_squared_distance(&mu, &nu).unwrap();
    let options = Options::builder(epsilon).method(sampled(120)).build().unwrap();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let s = pool.install(|| rot(&mu, &nu, &options)).unwrap();
        let interval = s.interval_kl.unwrap();
        [s.value, interval.low, interval.high, s.potential_x[3], s.potential_y[5]].map(f64::to_bits)
    };
    assert_eq!(on(1), on(2));
    assert_eq!(on(1), on(3));
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let mu = measure(clusters(50, 5, 0.0, f64::INFINITY, 31), 5, None);
    let builder = |sizes| Options::builder(1.0).method(Method::Sampled(sizes));
    for (size, samples) in [(Some(1), None), (Some(0), None), (None, Some(1))] {
        let built = builder(SampleSizes { size, samples }).build();
        assert!(matches!(built, Err(Error::Option { .. })), "{built:?}");
    }
    let options = builder(SampleSizes::default()).build().unwrap();
    let features = || FeatureMatrix::new(vec![1.0; 100], 50, 2).unwrap();
    let given = Solver::new(&options).features(features(), features()).rot(&mu, &mu);
    assert!(matches!(given, Err(Error::NotFor { what: "a sample of the clouds", .. })));
}
