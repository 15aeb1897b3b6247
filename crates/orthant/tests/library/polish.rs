//! Exact iterations after features: the result of the exact kernel, in a fraction of its iterations.

use std::time::Duration;

use crate::common::{relative, shapes::Shape};
use orthant::anchors::Draw;
use orthant::{
    Measure, Method, Options, Points, Precision, Solution, Solver, Stop,
    control::{Next, Progress, Term},
    divergence, mean_squared_distance,
    options::{Anchors, Features, OptionsBuilder},
    results::{Kernels, MethodUsed},
    rot,
};

const SCALES: [f64; 3] = [0.03, 0.1, 0.5];

fn clouds(shape: Shape, n: usize, dim: usize) -> [Measure<'static>; 2] {
    shape.pair(n, n - 100, dim, 3).map(|p| Measure::uniform(Points::new(p, dim).unwrap()))
}

fn with(method: Method, epsilon: f64) -> OptionsBuilder {
    Options::builder(epsilon).method(method)
}

fn sobol() -> Method {
    Method::Factored(Features::Gaussian(Anchors::Random(Draw::Sobol)))
}

/// Iterations of the exact kernel: from nothing, from the potentials of features, polished.
fn iterations(
    [mu, nu]: &[Measure<'static>; 2],
    scale: f64,
    method: &Method,
    rank: Option<usize>,
) -> [usize; 3] {
    let epsilon = scale * mean_squared_distance(mu, nu).unwrap();
    let features = || {
        let options = with(method.clone(), epsilon);
        if let Some(rank) = rank { options.rank(rank) } else { options }
    };
    let exact = with(Method::online(), epsilon).build().unwrap();
    let cold = rot(mu, nu, &exact).unwrap();
    let rough = rot(mu, nu, &features().build().unwrap()).unwrap();
    let warm = Solver::new(&exact).warm_start(&rough).rot(mu, nu).unwrap();
    let s = rot(mu, nu, &features().polish(true).build().unwrap()).unwrap();
    assert!(s.converged() && s.method == MethodUsed::Online);
    assert!(s.marginal_error_x < 1e-6 && s.marginal_error_y < 1e-6);
    assert!((s.value - cold.value).abs() < 1e-6 * cold.value_kl, "{} {}", s.value, cold.value);
    [cold.iterations, warm.iterations, s.polished.unwrap()]
}

fn total(all: &[[usize; 3]]) -> [usize; 3] {
    [0, 1, 2].map(|k| all.iter().map(|i| i[k]).sum())
}

#[test]
fn a_third_of_the_iterations_where_lattices_are_quick() {
    let mut all = Vec::new();
    for shape in [Shape::Gaussian, Shape::Ring, Shape::Clusters, Shape::Heavy] {
        let pair = clouds(shape, 600, 2);
        for scale in SCALES {
            for method in [Method::lattice(), Method::adaptive(), Method::paper()] {
                let found @ [cold, warm, polished] = iterations(&pair, scale, &method, None);
                let hopeless = shape == Shape::Heavy && warm > cold;
                assert!(
                    hopeless || 3 * polished <= cold,
                    "{shape:?} {scale} {method:?}: {polished} of {cold}"
                );
                all.push(found);
            }
        }
    }
    let [cold, warm, polished] = total(&all);
    assert!(6 * polished <= cold && 6 * polished <= warm, "{polished} {warm} {cold}");
}

#[test]
fn fewer_iterations_with_random_features_and_hardly_ever_more() {
    let (mut easy, mut hard) = (Vec::new(), Vec::new());
    for shape in Shape::ALL {
        for dim in [3, 5, 8] {
            let pair = clouds(shape, 500, dim);
            for scale in SCALES {
                if shape == Shape::Outlier && scale < 0.1 {
                    // Thousands of iterations.
                    continue;
                }
                for method in [Method::adaptive(), sobol()] {
                    let found @ [cold, warm, polished] =
                        iterations(&pair, scale, &method, Some(1500));
                    // Experiments that fail cost a few.
                    let most = 5 + cold.max(warm) * 6 / 5;
                    assert!(polished <= most, "{shape:?} {dim} {scale}: {polished} {warm} {cold}");
                    let near = scale >= 0.1 && !matches!(shape, Shape::Heavy | Shape::Outlier);
                    if near { &mut easy } else { &mut hard }.push(found);
                }
            }
        }
    }
    // Where features are near the kernel: half, and there are but a few to begin with. Elsewhere a fraction too.
    let [cold, warm, polished] = total(&easy);
    assert!(9 * polished <= 5 * cold && 3 * polished <= 2 * warm, "{polished} {warm} {cold}");
    let [cold, warm, polished] = total(&hard);
    assert!(10 * polished <= 9 * cold && 4 * polished <= 3 * warm, "{polished} {warm} {cold}");
}

#[test]
fn terms_of_a_divergence_are_those_of_the_exact_kernel() {
    for dim in [2, 5] {
        let [mu, nu] = clouds(Shape::Clusters, 500, dim);
        let epsilon = 0.1 * mean_squared_distance(&mu, &nu).unwrap();
        let exact = with(Method::online(), epsilon).tolerance(1e-9).build().unwrap();
        let truth = divergence(&mu, &nu, &exact).unwrap();
        for precision in [Precision::F64, Precision::F32] {
            let tolerance = if precision == Precision::F64 { 1e-9 } else { 1e-6 };
            let options = with(Method::adaptive(), epsilon).precision(precision).polish(true);
            let options = options.tolerance(tolerance).build().unwrap();
            let found = divergence(&mu, &nu, &options).unwrap();
            assert!(found.converged() && found.kernels == Kernels::Exact);
            assert!(relative(found.value, truth.value) < 1e3 * tolerance);
            for (s, t) in found.terms().into_iter().zip(truth.terms()) {
                assert!(3 * s.polished.unwrap() <= 2 * t.iterations);
                let apart = s.potential_kl_x().into_iter().zip(t.potential_kl_x());
                let apart = apart.map(|(p, q)| p - q).collect::<Vec<_>>();
                let spread = apart.iter().map(|d| (d - apart[0]).abs()).fold(0.0, f64::max);
                assert!(spread < 1e4 * tolerance * epsilon, "{spread}");
            }
        }
    }
}

/// Weights, some of them zero.
#[test]
fn points_without_weight_have_the_potentials_of_the_exact_kernel() {
    let [x, y] = Shape::Gaussian.pair(300, 250, 4, 1);
    let weights = |n: usize| (0..n).map(|i| if i % 7 == 0 { 0.0 } else { 1.0 + (i % 5) as f64 });
    let measure = |p: Vec<f64>, n| {
        Measure::weighted(Points::new(p, 4).unwrap(), &weights(n).collect::<Vec<_>>()).unwrap()
    };
    let (mu, nu) = (measure(x, 300), measure(y, 250));
    let epsilon = 0.2 * mean_squared_distance(&mu, &nu).unwrap();
    let solve = |options: OptionsBuilder| -> Solution {
        rot(&mu, &nu, &options.tolerance(1e-9).build().unwrap()).unwrap()
    };
    let truth = solve(with(Method::online(), epsilon));
    let found = solve(with(Method::paper(), epsilon).polish(true));
    assert!(found.polished.is_some());
    let shift = found.potential_y[1] - truth.potential_y[1];
    for (p, q) in found.potential_x.iter().zip(&truth.potential_x) {
        assert!((p - q + shift).abs() < 1e-6 * epsilon, "{p} {q}");
    }
    for (p, q) in found.potential_y.iter().zip(&truth.potential_y) {
        assert!((p - q - shift).abs() < 1e-6 * epsilon, "{p} {q}");
    }
}

#[test]
fn limits_and_observers_see_every_exact_iteration() {
    let [mu, nu] = clouds(Shape::Gaussian, 500, 5);
    let epsilon = 0.03 * mean_squared_distance(&mu, &nu).unwrap();
    let options = |most: usize| {
        let options = with(sobol(), epsilon).rank(1500).polish(true).max_iterations(most);
        options.build().unwrap()
    };
    let mut seen: Vec<(usize, f64)> = Vec::new();
    let mut observer = |p: &mut Progress<'_>| {
        assert_eq!(p.term, Term::Cross);
        seen.push((p.iteration, p.value()));
        Next::Continue
    };
    let free = Solver::new(&options(1000)).observer(&mut observer).rot(&mu, &nu).unwrap();
    assert_eq!(seen.len(), free.iterations);
    let exact = &seen[free.iterations - free.polished.unwrap()..];
    assert!(exact.iter().enumerate().all(|(k, (iteration, _))| *iteration == k + 1));
    // Dual values are lower bounds.
    assert!(exact.iter().all(|(_, v)| *v <= free.value + 1e-9 * free.value_kl.abs()));

    let few = rot(&mu, &nu, &options(free.iterations - 2)).unwrap();
    assert_eq!((few.stop, few.iterations), (Stop::IterationLimit, free.iterations - 2));
    assert!(few.value <= free.value + 1e-9 && relative(few.value, free.value) < 1e-3);

    let rough = free.iterations - free.polished.unwrap();
    let mut count = 0;
    let mut stop = |_: &mut Progress<'_>| {
        count += 1;
        if count == rough + 2 { Next::Stop } else { Next::Continue }
    };
    let stopped = Solver::new(&options(1000)).observer(&mut stop).rot(&mu, &nu).unwrap();
    assert_eq!((stopped.stop, stopped.polished), (Stop::Requested, Some(2)));

    let late = with(sobol(), epsilon).polish(true).time_limit(Duration::from_micros(1));
    assert_eq!(rot(&mu, &nu, &late.build().unwrap()).unwrap().stop, Stop::TimeLimit);
}
