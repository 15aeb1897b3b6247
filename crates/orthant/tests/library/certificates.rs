//! Intervals against the exact kernel.

use crate::common::shapes::Shape;
use orthant::anchors::Draw;
use orthant::{
    Certainty, Measure, Method, Options, Points, Precision, Solution, divergence,
    mean_squared_distance,
    options::{Anchors, Features},
    rot,
};

fn uniform(points: Vec<f64>, dim: usize) -> Measure<'static> {
    Measure::uniform(Points::new(points, dim).unwrap())
}

fn gaussian(anchors: Anchors) -> Method {
    Method::Factored(Features::Gaussian(anchors))
}

fn exact(mu: &Measure<'_>, nu: &Measure<'_>, epsilon: f64) -> Solution {
    let options = Options::builder(epsilon).method(Method::dense()).tolerance(1e-8);
    rot(mu, nu, &options.max_iterations(3000).build().unwrap()).unwrap()
}

/// One in a hundred may lie outside.
#[test]
fn the_exact_value_is_inside() {
    let (mut all, mut outside) = (0, Vec::new());
    let (mut raw, mut corrected) = (Vec::new(), Vec::new());
    let mut astray = 0;
    for dim in [2, 5, 10, 30] {
        for shape in Shape::ALL {
            for (scale, seed) in [(0.05, 1), (0.2, 2), (1.0, 3)] {
                let [x, y] = shape.pair(900, 700, dim, seed);
                let (mu, nu) = (uniform(x, dim), uniform(y, dim));
                let epsilon = scale * mean_squared_distance(&mu, &nu).unwrap();
                let exact = exact(&mu, &nu, epsilon);
                let sobol = Anchors::Random(Draw::Sobol);
                let iid = Anchors::Random(Draw::Iid);
                for (anchors, rank) in [
                    (sobol, 80),
                    (sobol, 600),
                    (iid, 300),
                    (Anchors::Paper { centred: true }, 400),
                    (Anchors::Adaptive, 300),
                ] {
                    let options = Options::builder(epsilon)
                        .method(gaussian(anchors))
                        .rank(rank)
                        .seed(seed)
                        .max_iterations(3000);
                    let certified = options.clone().certify(true).build().unwrap();
                    let s = rot(&mu, &nu, &certified).unwrap();
                    // Features may not know a pair at all: then there is no interval.
                    let (Some(interval), true) = (s.interval, s.converged()) else { continue };
                    assert_eq!(interval.kind, Certainty::Sampled);
                    all += 1;
                    if !interval.contains(exact.value) {
                        outside.push(format!(
                            "{shape:?}, {dim} axes, {scale}, {anchors:?}, {rank}: {} {interval:?}",
                            exact.value
                        ));
                    }
                    if anchors == Anchors::Adaptive {
                        // Corrected already.
                        continue;
                    }
                    // The value is the corrected one, and in its interval; that of the features alone need not be.
                    assert!(interval.contains(s.value), "{interval:?} {}", s.value);
                    assert!((s.corrected.unwrap() - s.value).abs() < 1e-12 * s.value.abs());
                    let features = rot(&mu, &nu, &options.build().unwrap()).unwrap();
                    raw.push((features.value - exact.value).abs());
                    astray += usize::from(!interval.contains(features.value));
                    corrected.push((s.value - exact.value).abs() / raw[raw.len() - 1]);
                }
            }
        }
    }
    assert!(all >= 200, "{all}");
    assert!(astray > 0, "so that the above says something");
    assert!(100 * outside.len() <= all, "{} of {all}: {outside:#?}", outside.len());
    corrected.sort_by(f64::total_cmp);
    // The corrected value is closer: 0.49 of the error in the median.
    assert!(corrected[corrected.len() / 2] < 0.6, "{}", corrected[corrected.len() / 2]);
}

#[test]
fn every_method_has_its_kind_of_interval() {
    let [x, y] = Shape::Gaussian.pair(300, 200, 2, 4);
    let (mu, nu) = (uniform(x, 2), uniform(y, 2));
    let exact = exact(&mu, &nu, 0.3);
    let linear = Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 };
    for (method, precision, kind) in [
        (Method::dense(), Precision::F64, Some(Certainty::Exact)),
        (Method::dense(), Precision::F32, Some(Certainty::Exact)),
        (Method::online(), Precision::F64, Some(Certainty::Exact)),
        (Method::lattice(), Precision::F64, Some(Certainty::Bound)),
        (Method::lattice(), Precision::F32, Some(Certainty::Bound)),
        (Method::Factored(linear), Precision::F64, Some(Certainty::Exact)),
        (Method::gaussian(), Precision::F64, None),
        (Method::Auto, Precision::F64, Some(Certainty::Exact)),
    ] {
        let options = Options::builder(0.3).method(method.clone()).precision(precision);
        let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
        assert_eq!(s.interval.map(|i| i.kind), kind, "{method:?}");
        if let (Some(i), false) = (s.interval, matches!(method, Method::Factored(_))) {
            assert!(i.contains(exact.value), "{method:?} {precision:?}: {i:?} {}", exact.value);
            assert!(i.width() < 1e-3 * exact.value_kl, "{method:?}: {i:?}");
        }
    }
}

#[test]
fn unconverged_values_are_inside_too() {
    let [x, y] = Shape::Ring.pair(200, 200, 2, 5);
    let (mu, nu) = (uniform(x, 2), uniform(y, 2));
    let exact = exact(&mu, &nu, 0.02);
    for iterations in [1, 3, 10] {
        for method in [Method::online(), Method::lattice()] {
            let options = Options::builder(0.02).method(method.clone()).max_iterations(iterations);
            let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
            assert!(!s.converged());
            let i = s.interval.unwrap();
            assert!(i.contains(exact.value), "{method:?}, {iterations}: {i:?} {}", exact.value);
        }
    }
}

#[test]
fn divergences_add_up_the_intervals_of_their_terms() {
    let [x, y] = Shape::Gaussian.pair(500, 400, 6, 4);
    let (mu, nu) = (uniform(x, 6), uniform(y, 6));
    let of = |method, certify| {
        let options = Options::builder(2.0).method(method).rank(400).certify(certify);
        divergence(&mu, &nu, &options.build().unwrap()).unwrap()
    };
    let exact = of(Method::dense(), false);
    let d = of(Method::gaussian(), true);
    let interval = d.interval().unwrap();
    assert!(interval.contains(exact.value), "{interval:?} {}", exact.value);
    assert_eq!(interval.kind, Certainty::Sampled);
    assert!((d.corrected().unwrap() - exact.value).abs() < interval.width());
    assert!(of(Method::gaussian(), false).interval().is_none());
    assert_eq!(exact.interval().unwrap().kind, Certainty::Exact);
}

#[test]
fn corrected_potentials_are_corrected_at_points_of_weight_zero_too() {
    let [mut x, y] = Shape::Gaussian.pair(1200, 1100, 6, 6);
    x.extend_from_within(..6);
    let weights: Vec<f64> = (0..=1200).map(|i| f64::from(i < 1200)).collect();
    let mu = Measure::weighted(Points::new(x, 6).unwrap(), &weights).unwrap();
    let nu = uniform(y, 6);
    for rho in [f64::INFINITY, 5.0] {
        let options = Options::builder(2.0).rho_x(rho).rho_y(rho).accuracy(1e-2);
        let options = options.allow_exact(false).tolerance(1e-10).build().unwrap();
        let s = rot(&mu, &nu, &options).unwrap();
        assert!(s.corrected_kl.is_some(), "{:?}", s.reason);
        assert_eq!(s.corrected.is_some(), rho.is_infinite());
        let potential = s.potential_kl_x();
        assert!((potential[0] - potential[1200]).abs() < 1e-7, "{rho}: {potential:?}");
    }
}

/// The rank grows, or the exact kernel ends it, until the promise is kept.
#[test]
fn an_accuracy_is_a_promise() {
    for (dim, scale, accuracy) in [(5, 0.3, 3e-3), (8, 0.1, 2e-2), (12, 1.0, 1e-3)] {
        let [x, y] = Shape::Gaussian.pair(1200, 1100, dim, 6);
        let (mu, nu) = (uniform(x, dim), uniform(y, dim));
        let epsilon = scale * mean_squared_distance(&mu, &nu).unwrap();
        let exact = exact(&mu, &nu, epsilon);
        for allow in [true, false] {
            let options = Options::builder(epsilon).accuracy(accuracy).allow_exact(allow);
            let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
            let error = (s.value - exact.value).abs() / exact.value_kl;
            assert!(s.meets_accuracy(accuracy) || !allow, "{dim}: {:?}", s.reason);
            assert!(
                !s.meets_accuracy(accuracy) || error <= accuracy,
                "{dim}: {error} {:?}",
                s.reason
            );
            assert!(s.interval.unwrap().contains(exact.value), "{dim} {:?}", s.interval);
        }
    }
}

/// Each interval is of the value that it is named after: they differ by the entropies of the weights, as the values do.
#[test]
fn each_value_has_its_own_interval() {
    let entropy = |m: &Measure<'_>| -> f64 { -m.weights().iter().map(|w| w * w.ln()).sum::<f64>() };
    for dim in [2, 5] {
        let [x, y] = Shape::ALL[0].pair(300, 200, dim, 7);
        let weights: Vec<f64> = (0..300).map(|i| 1.0 + f64::from(i % 7)).collect();
        let mu = Measure::weighted(Points::new(x, dim).unwrap(), &weights).unwrap();
        let nu = uniform(y, dim);
        let epsilon = 0.3 * mean_squared_distance(&mu, &nu).unwrap();
        let apart = epsilon * (entropy(&mu) + entropy(&nu));
        let exact = exact(&mu, &nu, epsilon);
        let anchors = if dim == 2 { Method::lattice() } else { Method::gaussian() };
        for method in [Method::online(), Method::Auto, anchors] {
            let options = Options::builder(epsilon).method(method).certify(true).build().unwrap();
            let s = rot(&mu, &nu, &options).unwrap();
            let (of_value, of_kl) = (s.interval.unwrap(), s.interval_kl.unwrap());
            assert!(of_value.contains(exact.value), "{of_value:?} {}", exact.value);
            assert!(of_kl.contains(exact.value_kl), "{of_kl:?} {}", exact.value_kl);
            assert_eq!(of_value.kind, of_kl.kind);
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * apart.abs(), "{a} {b}");
            close(of_kl.low - of_value.low, apart);
            close(of_kl.high - of_value.high, apart);
            assert_eq!(s.corrected.is_some(), s.corrected_kl.is_some());
            if let (Some(one), Some(two)) = (s.corrected, s.corrected_kl) {
                close(two - one, apart);
            }
            // What is farthest is an error.
            assert_eq!(of_kl.farthest(of_kl.low), of_kl.width());
        }
    }
}
