//! Anchors around the pairs of a plan, and exact iterations after features.

use crate::common::{relative, shapes::Shape};
use orthant::anchors::Draw;
use orthant::{
    Certainty, Measure, Method, Options, Points, Solution, divergence, mean_squared_distance,
    options::{Anchors, Features, OptionsBuilder},
    results::MethodUsed,
    rot,
};

fn clouds(shape: Shape, n: usize, dim: usize, seed: u64) -> [Measure<'static>; 2] {
    shape.pair(n, n - 100, dim, seed).map(|p| Measure::uniform(Points::new(p, dim).unwrap()))
}

fn gaussian(epsilon: f64, anchors: Anchors, rank: usize, seed: u64) -> OptionsBuilder {
    let method = Method::Factored(Features::Gaussian(anchors));
    Options::builder(epsilon).method(method).rank(rank).seed(seed).max_iterations(2000)
}

fn exact(mu: &Measure<'_>, nu: &Measure<'_>, epsilon: f64) -> Solution {
    let options = Options::builder(epsilon).method(Method::dense()).max_iterations(2000);
    rot(mu, nu, &options.build().unwrap()).unwrap()
}

#[test]
fn far_more_accurate_than_one_normal_law_where_clouds_are_not_of_one() {
    let mut gains = Vec::new();
    for shape in [Shape::Clusters, Shape::Heavy, Shape::Ring] {
        for dim in [5, 8] {
            for scale in [0.03, 0.1, 0.5] {
                let [mu, nu] = clouds(shape, 900, dim, 3);
                let epsilon = scale * mean_squared_distance(&mu, &nu).unwrap();
                let truth = exact(&mu, &nu, epsilon);
                let error = |anchors| {
                    let options = gaussian(epsilon, anchors, 800, 5).build().unwrap();
                    let s = rot(&mu, &nu, &options).unwrap();
                    assert_eq!((s.rank, s.method), (800, MethodUsed::Gaussian));
                    if anchors == Anchors::Adaptive {
                        let interval = s.interval.unwrap();
                        assert_eq!(interval.kind, Certainty::Sampled);
                        let inside = interval.contains(truth.value);
                        assert!(inside, "{shape:?} {dim} {scale}: {interval:?} {}", truth.value);
                    }
                    (s.value - truth.value).abs() / truth.value_kl
                };
                let sobol = error(Anchors::Random(Draw::Sobol));
                let adaptive = error(Anchors::Adaptive);
                // Where there is something to gain.
                if sobol > 5e-4 {
                    gains.push(sobol / adaptive);
                }
            }
        }
    }
    gains.sort_by(f64::total_cmp);
    assert!(gains.len() >= 8 && gains[0] > 1.5, "{gains:?}");
    assert!(gains[gains.len() / 2] > 5.0, "{gains:?}");
}

#[test]
fn divergences_share_one_adaptive_map() {
    let [mu, nu] = clouds(Shape::Clusters, 600, 5, 4);
    let epsilon = 0.1 * mean_squared_distance(&mu, &nu).unwrap();
    let options = gaussian(epsilon, Anchors::Adaptive, 1000, 1).build().unwrap();
    let truth = Options::builder(epsilon).method(Method::dense()).build().unwrap();
    let (found, truth) =
        (divergence(&mu, &nu, &options).unwrap(), divergence(&mu, &nu, &truth).unwrap());
    assert!(found.interval().unwrap().contains(truth.value));
    assert!(relative(found.value, truth.value) < 0.05, "{} {}", found.value, truth.value);
    // Equal clouds have one plan three times, and all but one certificate.
    let none = divergence(&mu, &mu, &options).unwrap();
    assert!(none.value.abs() < 1e-4 * none.cross.value_kl, "{}", none.value);
}

#[test]
fn few_points_and_points_that_coincide_are_no_trouble() {
    for (n, m) in [(1, 1), (1, 3), (4, 2)] {
        let cloud = |n: usize, at: f64| Measure::uniform(Points::new(vec![at; 5 * n], 5).unwrap());
        let options = gaussian(0.5, Anchors::Adaptive, 300, 2).build().unwrap();
        let s = rot(&cloud(n, 0.0), &cloud(m, 1.0), &options).unwrap();
        assert!(relative(s.value_kl, 5.0) < 1e-9, "{}", s.value_kl);
    }
}

#[test]
fn polished_solutions_are_those_of_the_exact_kernel() {
    for shape in [Shape::Gaussian, Shape::Clusters] {
        let [mu, nu] = clouds(shape, 500, 3, 8);
        let epsilon = 0.1 * mean_squared_distance(&mu, &nu).unwrap();
        let truth = exact(&mu, &nu, epsilon);
        for method in [
            Method::lattice(),
            Method::gaussian(),
            Method::adaptive(),
            Method::paper(),
            Method::nystrom(),
            Method::online(),
            Method::Auto,
        ] {
            let options = Options::builder(epsilon).method(method.clone()).polish(true);
            let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
            // Few pairs are stored where the choice is automatic.
            let automatic = matches!(method, Method::Auto);
            let exact = if automatic { MethodUsed::Dense } else { MethodUsed::Online };
            assert!(s.converged() && s.method == exact, "{method:?}: {:?}", s.method);
            assert!(relative(s.value, truth.value) < 1e-6, "{} {}", s.value, truth.value);
            assert_eq!(s.interval.unwrap().kind, Certainty::Exact);
            // Those that were exact from the beginning are not polished.
            let polished = !matches!(method, Method::Online(_) | Method::Auto);
            assert_eq!(s.polished.is_some(), polished, "{method:?}");
            assert!(s.polished.is_none_or(|p| p <= s.iterations));
        }
        // Where features are the cost, they are exact.
        let arc = Method::Factored(Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 });
        let options = Options::builder(epsilon).method(arc).polish(true).build().unwrap();
        assert_eq!(rot(&mu, &nu, &options).unwrap().polished, None);
    }
}
