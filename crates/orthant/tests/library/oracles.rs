//! Values that are known without this library.

use crate::common::{Kernel, figure_1, normal_measure, relative, wide_weights};
use orthant::features::FeatureMatrix;
use orthant::{
    CostMatrix, Error, Measure, Method, Options, Points, Precision, Solution, Solver, Stop,
    divergence, mean_squared_distance, rot,
};

fn options(epsilon: f64, method: Method) -> Options {
    Options::builder(epsilon).method(method).tolerance(1e-12).build().unwrap()
}

/// The squared Euclidean cost of two clouds, entry by entry.
fn costs(mu: &Measure<'_>, nu: &Measure<'_>) -> CostMatrix<'static> {
    let (x, y) = (mu.points(), nu.points());
    let c: Vec<f64> = (0..x.len())
        .flat_map(|i| (0..y.len()).map(move |j| (i, j)))
        .map(|(i, j)| (0..x.dim()).map(|k| (x.coordinate(i, k) - y.coordinate(j, k)).powi(2)).sum())
        .collect();
    CostMatrix::new(c, x.len(), y.len()).unwrap()
}

#[test]
fn one_point_each_in_closed_form() {
    // P = 1: W = c, whatever epsilon is.
    let mu = Measure::uniform(Points::new(vec![1.0, 2.0], 2).unwrap());
    let nu = Measure::uniform(Points::new(vec![4.0, 6.0], 2).unwrap());
    for epsilon in [1e-3, 1.0, 1e3] {
        for method in [Method::Auto, Method::dense(), Method::online()] {
            let s = rot(&mu, &nu, &options(epsilon, method)).unwrap();
            assert!(s.converged());
            assert!((s.value - 25.0).abs() < 1e-9, "{epsilon}: {}", s.value);
            assert!((s.value_kl - 25.0).abs() < 1e-9);
            assert!((s.transport_cost.unwrap() - 25.0).abs() < 1e-9);
        }
    }
}

#[test]
fn two_by_two_in_closed_form() {
    // a = b = (.5, .5), M = [[0,1],[1,0]], eps = 1: P = 1/2 [[p, 1-p], [1-p, p]], p = e/(1+e).
    let two = Measure::uniform(Points::new(vec![0.0, 1.0], 1).unwrap());
    let (on, off) = (0.365_529_29, 0.134_470_71);
    let matrix = CostMatrix::new(vec![0.0, 1.0, 1.0, 0.0], 2, 2).unwrap();
    for kernel in [
        Kernel::costs(Method::Auto, matrix.clone()),
        Kernel::costs(Method::dense(), matrix.clone()),
        Kernel::costs(Method::online(), matrix),
        Method::dense().into(),
        Method::online().into(),
    ] {
        let s = kernel.solver(&options(1.0, kernel.method.clone())).rot(&two, &two).unwrap();
        let plan = |i: usize, j: usize| {
            (s.potential_x[i] + s.potential_y[j] - f64::from(u8::from(i != j))).exp()
        };
        for i in 0..2 {
            assert!((plan(i, i) - on).abs() < 5e-9);
            assert!((plan(i, 1 - i) - off).abs() < 5e-9);
        }
        let p_log_p = 2.0 * (on * on.ln() + off * off.ln());
        assert!((s.value - (2.0 * off + p_log_p)).abs() < 1e-7);
        assert!((s.transport_cost.unwrap() - 2.0 * off).abs() < 1e-7);
    }
}

#[test]
fn one_point_against_many_in_closed_form() {
    // The plan is the product: <P, C> and the entropy are sums.
    let mu = Measure::uniform(Points::new(vec![0.5], 1).unwrap());
    let nu =
        Measure::weighted(Points::new(vec![0.0, 1.0, 3.0], 1).unwrap(), &[1.0, 2.0, 5.0]).unwrap();
    let b = nu.weights();
    let cost: f64 = b.iter().zip([0.25, 0.25, 6.25]).map(|(b, c)| b * c).sum();
    for epsilon in [0.01, 1.0] {
        let s = rot(&mu, &nu, &options(epsilon, Method::Auto)).unwrap();
        assert!(relative(s.value_kl, cost) < 1e-12);
        assert!(relative(s.value, cost - epsilon * nu.entropy()) < 1e-12);
    }
}

/// Entropic transport between `N(m1, s1^2 I)` and `N(m2, s2^2 I)` in `d` dimensions with cost
/// `||x - y||^2` and the KL form of the regularisation (Janati et al. 2020; Mallasto et al. 2020):
/// derived here by minimising over the correlation of the Gaussian plan, one axis at a time.
fn gaussian_rot(d: f64, squared_distance: f64, s1: f64, s2: f64, epsilon: f64) -> f64 {
    // The plan is Gaussian with cross-covariance c per axis, 0 <= c < s1 s2:
    //   cost  s1^2 + s2^2 - 2c,   KL(P | a x b) = -1/2 log(1 - c^2/(s1 s2)^2).
    // Stationary: eps c / ((s1 s2)^2 - c^2) = 2, so 2c^2 + eps c - 2 (s1 s2)^2 = 0.
    let t = s1 * s2;
    let c = (-epsilon + (epsilon * epsilon + 16.0 * t * t).sqrt()) / 4.0;
    squared_distance
        + d * (s1 * s1 + s2 * s2 - 2.0 * c - 0.5 * epsilon * (1.0 - (c / t).powi(2)).ln())
}

#[test]
fn gaussians_in_closed_form() {
    // Empirical measures of n = 3000 points: the value fluctuates by about the standard error of the
    // mean cost, whose deviation is of order 3 here; 4 standard errors.
    let n = 3000;
    let (mu, nu) = figure_1(n, n, 11);
    for epsilon in [0.5, 1.0, 2.5] {
        let exact = gaussian_rot(2.0, 2.0, 1.0, 0.1_f64.sqrt(), epsilon);
        let o = Options::builder(epsilon).method(Method::online()).build().unwrap();
        let s = rot(&mu, &nu, &o).unwrap();
        let tolerance = 4.0 * 3.0 / (n as f64).sqrt();
        assert!((s.value_kl - exact).abs() < tolerance, "{epsilon}: {} {exact}", s.value_kl);
        // With the means and variances of the samples, axis by axis, little fluctuation is left.
        let sampled: f64 = (0..2)
            .map(|axis| {
                let [(m1, s1), (m2, s2)] = [&mu, &nu].map(|measure| moments(measure, axis));
                gaussian_rot(1.0, (m1 - m2).powi(2), s1, s2, epsilon)
            })
            .sum();
        assert!(
            (s.value_kl - sampled).abs() < tolerance / 10.0,
            "{epsilon}: {} {sampled}",
            s.value_kl
        );
    }
}

/// Mean and standard deviation of the points along an axis.
fn moments(measure: &Measure<'_>, axis: usize) -> (f64, f64) {
    let points = measure.points();
    let n = points.len() as f64;
    let along = || (0..points.len()).map(|i| points.coordinate(i, axis));
    let mean = along().sum::<f64>() / n;
    (mean, (along().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

#[test]
fn pot_0_9_5_agrees() {
    // ot.sinkhorn(a, b, M, reg, stopThr=1e-14): see `pot_reference.py` beside this file.
    let x = vec![0.0, 0.0, 1.0, 0.5, -0.5, 2.0, 0.25, -1.0];
    let y = vec![1.0, 1.0, -1.0, 0.0, 0.5, 0.25];
    let mu = Measure::weighted(Points::new(x, 2).unwrap(), &[0.1, 0.2, 0.3, 0.4]).unwrap();
    let nu = Measure::weighted(Points::new(y, 2).unwrap(), &[0.5, 0.25, 0.25]).unwrap();
    for (epsilon, kl, linear) in POT {
        let s = rot(&mu, &nu, &options(epsilon, Method::Auto)).unwrap();
        assert!(relative(s.value_kl, kl) < 1e-9, "{epsilon}: {} {kl}", s.value_kl);
        assert!(relative(s.transport_cost.unwrap(), linear) < 1e-9);
    }
}

#[expect(clippy::unreadable_literal, reason = "as the script printed them")]
const POT: [(f64, f64, f64); 3] = include!("pot_reference.txt");

#[test]
fn dense_online_and_explicit_features_agree() {
    // n != m, weights over eight decades, epsilon from 1e-4 to 1e3 times the mean cost.
    let (n, m) = (37, 53);
    let x = crate::common::normal(n, &[0.5, -0.5], 1.0, 1);
    let y = crate::common::normal(m, &[0.0, 0.0], 0.5, 2);
    let mu = Measure::weighted(Points::new(x, 2).unwrap(), &wide_weights(n, 3)).unwrap();
    let nu = Measure::weighted(Points::new(y, 2).unwrap(), &wide_weights(m, 4)).unwrap();
    let mean = mean_squared_distance(&mu, &nu).unwrap();
    let matrix = costs(&mu, &nu);
    for scale in [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3] {
        let epsilon = scale * mean;
        // At tiny epsilon convergence takes for ever: the iterates agree all the same.
        let solve = |kernel: Kernel<'_>| {
            let o = Options::builder(epsilon)
                .method(kernel.method.clone())
                .tolerance(1e-12)
                .max_iterations(if scale < 1e-2 { 300 } else { 20_000 })
                // Not all converge: they must start alike.
                .gauge(false)
                .algorithm(orthant::options::Algorithm::Plain)
                .build()
                .unwrap();
            kernel.solver(&o).rot(&mu, &nu).unwrap()
        };
        let dense = solve(Method::dense().into());
        for (name, other) in [
            ("online", solve(Method::online().into())),
            ("dense matrix", solve(Kernel::costs(Method::dense(), matrix.clone()))),
        ] {
            compare(name, scale, &dense, &other);
        }
        // Explicit features: K = Xi Zeta^T with Xi = K, Zeta = I is not positive; random positive
        // matrices of rank 7 define their own cost.
        let (xi, zeta) = (random_features(n, 7, scale, 5), random_features(m, 7, scale, 6));
        let given = |method| solve(Kernel::features(method, xi.clone(), zeta.clone()));
        let factored = given(Method::gaussian());
        compare("features dense", scale, &factored, &given(Method::dense()));
        compare("features online", scale, &factored, &given(Method::online()));
    }
}

/// Positive features whose logarithms spread like `1 / scale`, as those of a kernel do.
fn random_features(n: usize, r: usize, scale: f64, seed: u64) -> FeatureMatrix<'static> {
    let logs = crate::common::normal(n * r, &[0.0], (1.0 / scale).min(100.0), seed);
    FeatureMatrix::new(logs.iter().map(|l| l.exp()).collect::<Vec<f64>>(), n, r).unwrap()
}

fn compare(name: &str, scale: f64, one: &Solution, two: &Solution) {
    assert!(relative(one.value, two.value) < 1e-10, "{name}, {scale}: {} {}", one.value, two.value);
    assert!(relative(one.value_kl, two.value_kl) < 1e-10 * scale.max(1.0), "{name}, {scale}");
    let (c1, c2) = (one.transport_cost.unwrap(), two.transport_cost.unwrap());
    assert!((c1 - c2).abs() < 1e-10 * c1.abs().max(one.value.abs()), "{name}, {scale}: {c1} {c2}");
    assert_eq!(one.iterations, two.iterations, "{name}, {scale}");
    let range = one.potential_x.iter().fold(0.0_f64, |r, p| r.max(p.abs()));
    for (p, q) in one.potential_x.iter().zip(&two.potential_x) {
        assert!((p - q).abs() < 1e-9 * range, "{name}, {scale}: {p} {q}");
    }
}

#[test]
fn scaling_and_shifting_both_clouds() {
    let (mu, nu) = figure_1(60, 80, 5);
    let moved = |m: &Measure<'_>, scale: f64, shift: f64| {
        let p = m.points();
        let v: Vec<f64> =
            (0..p.len() * 2).map(|i| scale * p.coordinate(i / 2, i % 2) + shift).collect();
        Measure::uniform(Points::new(v, 2).unwrap())
    };
    for method in [Method::Auto, Method::dense(), Method::paper()] {
        let o = |epsilon| {
            Options::builder(epsilon)
                .method(method.clone())
                .tolerance(1e-11)
                .rank(64)
                .build()
                .unwrap()
        };
        let base = rot(&mu, &nu, &o(0.3)).unwrap();
        for scale in [1e-150, 1e-20, 1e-3, 7.0, 1e20, 1e150] {
            let s = rot(&moved(&mu, scale, 0.0), &moved(&nu, scale, 0.0), &o(0.3 * scale * scale))
                .unwrap();
            assert!(relative(s.value / scale / scale, base.value) < 1e-10, "{scale} {method:?}");
            let (c, d) = (s.transport_cost.unwrap(), base.transport_cost.unwrap());
            assert!(relative(c / scale / scale, d) < 1e-10, "{scale} {method:?}");
        }
        // Points near 1e6 keep ten decimals: coordinates are off by 1e-10, so is the value.
        let s = rot(&moved(&mu, 1.0, 1e6), &moved(&nu, 1.0, 1e6), &o(0.3)).unwrap();
        assert!(relative(s.value, base.value) < 1e-8, "{method:?}: {} {}", s.value, base.value);
    }
}

#[test]
fn divergence_is_zero_symmetric_and_positive() {
    let (mu, nu) = figure_1(150, 100, 9);
    let close = normal_measure(150, &[1.0, 1.0], 1.0, 77);
    let mean = mean_squared_distance(&mu, &nu).unwrap();
    for scale in [1e-2, 0.1, 1.0, 100.0] {
        let epsilon = scale * mean;
        for (precision, tolerance, zero) in
            [(Precision::F64, 1e-11, 1e-10), (Precision::F32, 1e-6, 2e-6)]
        {
            for method in [Method::online(), Method::dense(), Method::paper()] {
                let o = Options::builder(epsilon)
                    .method(method)
                    .tolerance(tolerance)
                    .precision(precision)
                    .max_iterations(100_000)
                    .rank(200)
                    .build()
                    .unwrap();
                let of = |m: &Measure<'_>, n: &Measure<'_>| divergence(m, n, &o).unwrap();
                let same = of(&mu, &mu);
                assert!(
                    same.converged(),
                    "{scale} {precision:?} {:?}",
                    same.terms().map(|t| (
                        t.method,
                        t.iterations,
                        t.marginal_error_x,
                        t.marginal_error_y
                    ))
                );
                assert!(same.value.abs() < zero * epsilon.max(mean), "{scale}: {}", same.value);
                let (there, back) = (of(&mu, &nu), of(&nu, &mu));
                assert!(there.value > 0.0, "{scale}: {}", there.value);
                assert!((there.value - back.value).abs() < 20.0 * zero * epsilon.max(mean));
                // Two samples of one distribution: small, and not negative.
                assert!(of(&mu, &close).value > -zero * epsilon, "{scale}");
            }
        }
    }
}

#[test]
fn points_of_weight_zero_take_no_part_and_get_a_potential() {
    let x = vec![0.0, 5.0, 1.0, -3.0];
    let with = Measure::weighted(Points::new(x, 1).unwrap(), &[1.0, 0.0, 3.0, 0.0]).unwrap();
    let without = Measure::weighted(Points::new(vec![0.0, 1.0], 1).unwrap(), &[1.0, 3.0]).unwrap();
    let nu =
        Measure::weighted(Points::new(vec![0.25, 2.0, 9.0], 1).unwrap(), &[2.0, 1.0, 0.0]).unwrap();
    let epsilon = 0.7;
    for method in [Method::online(), Method::dense(), Method::paper()] {
        let o = Options::builder(epsilon)
            .method(method.clone())
            .tolerance(1e-13)
            .rank(300)
            .build()
            .unwrap();
        let s = rot(&with, &nu, &o).unwrap();
        let t = rot(&without, &nu, &o).unwrap();
        assert!((s.value - t.value).abs() < 1e-12);
        assert_eq!([s.potential_x[0], s.potential_x[2]], t.potential_x[..]);
        assert_eq!(s.potential_x.len(), 4);
        assert_eq!(s.potential_y.len(), 3);
        if matches!(method, Method::Factored(_)) {
            continue;
        }
        // The extension is the c-transform of the other potential.
        let transform = |x: f64, y: &[f64], beta: &[f64]| {
            -epsilon
                * y.iter()
                    .zip(beta)
                    .map(|(y, b)| ((b - (x - y).powi(2)) / epsilon).exp())
                    .sum::<f64>()
                    .ln()
        };
        for (i, x) in [(1, 5.0), (3, -3.0)] {
            let exact = transform(x, &[0.25, 2.0], &s.potential_y[..2]);
            assert!((s.potential_x[i] - exact).abs() < 1e-10, "{} {exact}", s.potential_x[i]);
        }
        let exact = transform(9.0, &[0.0, 1.0], &[s.potential_x[0], s.potential_x[2]]);
        assert!((s.potential_y[2] - exact).abs() < 1e-10);
        // In the KL form every point is treated alike.
        let kl = s.potential_kl_x();
        let at = transform(0.0, &[0.25, 2.0], &s.potential_y[..2]);
        assert!((kl[0] - at).abs() < 1e-10);
    }
}

#[test]
fn duplicate_points_are_one_point_of_their_common_weight() {
    let once = Measure::weighted(Points::new(vec![0.0, 1.0], 1).unwrap(), &[2.0, 1.0]).unwrap();
    let twice = Measure::uniform(Points::new(vec![0.0, 1.0, 0.0], 1).unwrap());
    let nu = Measure::uniform(Points::new(vec![0.3, 0.3, 2.0], 1).unwrap());
    let o = options(0.2, Method::Auto);
    let (s, t) = (rot(&once, &nu, &o).unwrap(), rot(&twice, &nu, &o).unwrap());
    assert!(relative(s.value_kl, t.value_kl) < 1e-11);
}

#[test]
fn a_cloud_of_equal_points_has_zero_cost() {
    let same = Measure::uniform(Points::new(vec![3.0; 10], 2).unwrap());
    for method in [Method::online(), Method::dense(), Method::paper()] {
        let o = Options::builder(0.1).method(method).rank(16).build().unwrap();
        let d = divergence(&same, &same, &o).unwrap();
        assert!(d.converged() && d.value.abs() < 1e-12);
        assert!(d.cross.transport_cost.unwrap().abs() < 1e-12);
    }
}

#[test]
fn limits_are_statuses_and_not_errors() {
    let (mu, nu) = figure_1(50, 50, 1);
    let o = Options::builder(0.001).max_iterations(3).build().unwrap();
    let s = rot(&mu, &nu, &o).unwrap();
    assert_eq!((s.stop, s.iterations), (Stop::IterationLimit, 3));
    assert!(s.value.is_finite() && s.marginal_error_x > 0.0);
    let o = Options::builder(0.001).time_limit(std::time::Duration::ZERO).build().unwrap();
    assert_eq!(rot(&mu, &nu, &o).unwrap().stop, Stop::TimeLimit);
    assert!(matches!(
        rot(&mu, &nu, &Options::builder(1e-12).build().unwrap()),
        Err(Error::EpsilonTooSmall { .. })
    ));
}

#[test]
fn an_offset_of_all_costs_moves_the_value_and_one_potential() {
    let (mu, nu) = figure_1(20, 30, 4);
    let base = costs(&mu, &nu);
    let entries: Vec<f64> = (0..20 * 30).map(|k| costs_entry(&mu, &nu, k / 30, k % 30)).collect();
    let dense = options(0.5, Method::dense());
    let solve = |matrix| Solver::new(&dense).costs(matrix).rot(&mu, &nu).unwrap();
    let plain = solve(base);
    // A power of two, so that the costs lose no more than the digits that their size takes.
    let offset = 2_f64.powi(30);
    let moved = solve(
        CostMatrix::new(entries.iter().map(|c| c + offset).collect::<Vec<f64>>(), 20, 30).unwrap(),
    );
    assert!((moved.value - offset - plain.value).abs() < 1e-6);
    assert!((moved.transport_cost.unwrap() - offset - plain.transport_cost.unwrap()).abs() < 1e-6);
    assert!((moved.potential_y[3] - offset - plain.potential_y[3]).abs() < 1e-5);
    assert!((moved.potential_x[3] - plain.potential_x[3]).abs() < 1e-5);
    // One pair, whatever it costs.
    let one = Measure::uniform(Points::new(vec![0.0], 1).unwrap());
    let huge = CostMatrix::new(vec![1e300], 1, 1).unwrap();
    let tiny = options(1e-10, Method::dense());
    let s = Solver::new(&tiny).costs(huge).rot(&one, &one).unwrap();
    assert_eq!(s.value, 1e300);
}

fn costs_entry(mu: &Measure<'_>, nu: &Measure<'_>, i: usize, j: usize) -> f64 {
    (0..2).map(|k| (mu.points().coordinate(i, k) - nu.points().coordinate(j, k)).powi(2)).sum()
}

#[test]
fn equal_points_are_at_distance_zero_whatever_their_number() {
    for (x, n) in [(1.0, 10), (0.7, 10), (0.1, 10), (3.0, 49), (1e6 + 0.1, 7)] {
        let same = Measure::uniform(Points::new(vec![x; n], 1).unwrap());
        assert_eq!(mean_squared_distance(&same, &same).unwrap(), 0.0, "{x}, {n}");
    }
}

#[test]
fn a_divergence_of_few_against_many_points_is_not_exact_by_accident() {
    // 10 x 6000 pairs are few, 6000 x 6000 are not.
    let (few, many) = (figure_1(10, 1, 1).0, figure_1(1, 6000, 1).1);
    let o = Options::builder(1.0).max_iterations(2).build().unwrap();
    assert_eq!(rot(&few, &many, &o).unwrap().method, orthant::results::MethodUsed::Dense);
    assert_eq!(
        divergence(&few, &many, &o).unwrap().self_y.method,
        orthant::results::MethodUsed::Lattice
    );
    // The memory of the self terms counts too.
    let o = Options::builder(1.0).method(Method::dense()).max_memory(10 << 20).build().unwrap();
    assert!(rot(&few, &many, &o).is_ok());
    assert!(matches!(divergence(&few, &many, &o), Err(Error::Memory { .. })));
}
