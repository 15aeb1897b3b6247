//! The affine gauge, lattices, random anchors and the automatic choice, against the exact kernel.

use crate::common::{normal, normal_measure, relative, shapes::Shape, wide_weights};
use orthant::anchors::Draw;
use orthant::{
    Certainty, Divergence, Error, Measure, Method, Options, Points, Precision, Solution, Solver,
    control::{Next, Progress},
    divergence, mean_squared_distance,
    options::{Algorithm, Anchors, Features, OptionsBuilder},
    results::{Kernels, MethodUsed},
    rot,
};

fn uniform(points: Vec<f64>, dim: usize) -> Measure<'static> {
    Measure::uniform(Points::new(points, dim).unwrap())
}

fn weighted(points: Vec<f64>, dim: usize, weights: &[f64]) -> Measure<'static> {
    Measure::weighted(Points::new(points, dim).unwrap(), weights).unwrap()
}

fn exact(epsilon: f64) -> OptionsBuilder {
    Options::builder(epsilon).method(Method::dense()).tolerance(1e-9).max_iterations(100_000)
}

fn solve(mu: &Measure<'_>, nu: &Measure<'_>, options: OptionsBuilder) -> Solution {
    let solution = rot(mu, nu, &options.build().unwrap()).unwrap();
    assert!(solution.converged(), "{} {:e}", solution.iterations, solution.marginal_error_y);
    solution
}

/// Largest distance of the potentials after the best common shift `alpha + c, beta - c`.
fn potentials_apart(one: &Solution, two: &Solution) -> f64 {
    let differences = |p: &[f64], q: &[f64]| -> Vec<f64> {
        assert_eq!(p.len(), q.len());
        p.iter().zip(q).map(|(p, q)| p - q).collect()
    };
    let x = differences(&one.potential_x, &two.potential_x);
    let y = differences(&one.potential_y, &two.potential_y);
    let c = x[0];
    let apart = x.iter().map(|d| d - c).chain(y.iter().map(|d| d + c));
    apart.fold(0.0, |most, d| d.abs().max(most))
}

/// All figures of two converged solutions are the same to `tolerance` of the largest of them.
fn assert_same(name: &str, one: &Solution, two: &Solution, tolerance: f64) {
    let (c1, c2) = (one.transport_cost.unwrap(), two.transport_cost.unwrap());
    let potentials = one.potential_x.iter().chain(&one.potential_y);
    let range = potentials.fold(one.epsilon, |most, p| p.abs().max(most));
    let scale = range.max(c1.abs()).max(one.value.abs());
    for (what, apart) in [
        ("value", one.value - two.value),
        ("value_kl", one.value_kl - two.value_kl),
        ("transport cost", c1 - c2),
        ("potentials", potentials_apart(one, two)),
    ] {
        assert!(apart.abs() <= tolerance * scale, "{name}, {what}: {apart:e} of {scale:e}");
    }
}

/// `A x + t` for a random matrix `A` and a random `t`.
fn affine_image(points: &[f64], dim: usize, seed: u64) -> Vec<f64> {
    let (matrix, shift) =
        (normal(dim * dim, &[0.0], 1.0, seed), normal(dim, &[0.0], 2.0, seed + 1));
    points
        .chunks_exact(dim)
        .flat_map(|x| {
            let rows = matrix.chunks_exact(dim).zip(&shift);
            rows.map(move |(row, t)| t + row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>())
        })
        .collect()
}

/// Points `o + sum_k s_k v_k` of a flat of few directions in three dimensions.
fn flat(n: usize, directions: &[[f64; 3]], origin: [f64; 3], seed: u64) -> Vec<f64> {
    let s = normal(n * directions.len(), &[0.0], 1.0, seed);
    s.chunks_exact(directions.len())
        .flat_map(|s| {
            let at = |k: usize| s.iter().zip(directions).map(|(s, v)| s * v[k]).sum::<f64>();
            [0, 1, 2].map(|k| origin[k] + at(k))
        })
        .collect()
}

/// Pairs of clouds that are awkward for a gauge, with their names.
fn awkward() -> Vec<(&'static str, Measure<'static>, Measure<'static>)> {
    let mut clouds = Vec::new();
    for (dim, name) in [(1, "affine 1"), (2, "affine 2"), (3, "affine 3"), (7, "affine 7")] {
        let x = normal(40, &vec![0.5; dim], 1.0, 10 + dim as u64);
        let y = affine_image(&x, dim, 20 + dim as u64);
        clouds.push((name, uniform(x, dim), uniform(y, dim)));
    }
    let (a, b, c) = ([1.0, 2.0, -1.0], [0.5, 0.0, 0.3], [-0.2, 1.0, 1.0]);
    let line = || uniform(flat(30, &[a], [0.0; 3], 1), 3);
    let plane = || uniform(flat(30, &[a, b], [1.0, 0.0, 0.0], 2), 3);
    clouds.push(("the same line", line(), uniform(flat(20, &[a], a, 3), 3)));
    clouds.push(("two lines", line(), uniform(flat(20, &[c], [0.0, 1.0, 0.0], 4), 3)));
    clouds.push(("line and plane", line(), plane()));
    clouds.push(("two planes", plane(), uniform(flat(25, &[b, c], [0.0; 3], 5), 3)));
    clouds.push(("plane and space", plane(), normal_measure(25, &[0.0; 3], 0.5, 6)));
    let point = || uniform(vec![1.0, -2.0, 3.0], 3);
    clouds.push(("point and point", point(), uniform(vec![0.5, 0.0, 3.0], 3)));
    clouds.push(("equal points", point(), uniform([1.0, -2.0, 3.0].repeat(5), 3)));
    clouds.push(("point and line", point(), line()));
    clouds.push(("space and point", normal_measure(25, &[0.0; 3], 2.0, 7), point()));
    // Eight decades of weights, and none at all for some points, far ones too.
    let mut w = wide_weights(35, 8);
    let mut v = wide_weights(50, 9);
    for (i, w) in w.iter_mut().chain(&mut v).enumerate() {
        if i % 5 == 0 {
            *w = 0.0;
        }
    }
    let mut x = normal(35, &[0.0, 3.0], 1.0, 11);
    x[0] = 4.0;
    let y = normal(50, &[1.0, 0.0], 0.2, 12);
    clouds.push(("weights", weighted(x, 2, &w), weighted(y, 2, &v)));
    // More axes than have their covariances taken together.
    let y: Vec<f64> = normal(15, &[0.1; 130], 0.1, 14)
        .iter()
        .enumerate()
        .map(|(i, y)| y * (1.0 + (i % 130) as f64 / 30.0))
        .collect();
    clouds.push(("130 axes", normal_measure(20, &[0.0; 130], 0.2, 13), uniform(y, 130)));
    clouds
}

#[test]
fn the_gauge_changes_nothing_of_the_exact_kernel() {
    for (name, mu, nu) in awkward() {
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        for epsilon in [0.2, 1.0].map(|e| if mean > 0.0 { e * mean } else { e }) {
            for method in [Method::dense(), Method::online()] {
                let with = |gauge| exact(epsilon).method(method.clone()).gauge(gauge);
                let with = |gauge| with(gauge).tolerance(1e-12);
                let (on, off) = (solve(&mu, &nu, with(true)), solve(&mu, &nu, with(false)));
                assert_same(name, &on, &off, 1e-10);
                assert_eq!(on.potential_x.len(), mu.weights().len());
            }
        }
    }
}

#[test]
fn clouds_far_apart_in_the_gauge_are_clouds_nearby() {
    // ||x + t - y||^2 = ||x - y||^2 + 2 t.(x - y) + |t|^2: linear in x and in y.
    let (n, m, epsilon) = (40, 60, 0.3);
    let (x, y) = (normal(n, &[0.0; 2], 1.0, 1), normal(m, &[0.0; 2], 0.5, 2));
    let nu = uniform(y.clone(), 2);
    // Powers of two, so that adding them to coordinates of 20 bits loses nothing.
    let rounded = |v: f64| (v * 1_048_576.0).round() / 1_048_576.0;
    let x: Vec<f64> = x.into_iter().map(rounded).collect();
    let near = solve(&uniform(x.clone(), 2), &nu, exact(epsilon).tolerance(1e-12));
    for t in [[1024.0, -512.0], [65_536.0, 1.0]] {
        let far: Vec<f64> = x.iter().enumerate().map(|(i, x)| x + t[i % 2]).collect();
        let mu = uniform(far, 2);
        let on = solve(&mu, &nu, exact(epsilon).tolerance(1e-12));
        let mean =
            |p: &[f64], k: usize| p.iter().skip(k).step_by(2).sum::<f64>() * 2.0 / p.len() as f64;
        let more: f64 =
            (0..2).map(|k| t[k] * t[k] + 2.0 * t[k] * (mean(&x, k) - mean(&y, k))).sum();
        assert!(relative(on.value, near.value + more) < 1e-13, "{t:?}: {}", on.value);
        assert!(relative(on.value_kl, near.value_kl + more) < 1e-13, "{t:?}");
        let cost = near.transport_cost.unwrap() + more;
        assert!(relative(on.transport_cost.unwrap(), cost) < 1e-13, "{t:?}");
        assert!(on.iterations <= 2 * near.iterations, "{} {}", on.iterations, near.iterations);
        let moved: Solution = {
            let mut moved = near.clone();
            for (i, p) in moved.potential_x.iter_mut().enumerate() {
                *p += (0..2).map(|k| t[k] * (2.0 * x[2 * i + k] + t[k])).sum::<f64>();
            }
            for (j, p) in moved.potential_y.iter_mut().enumerate() {
                *p -= (0..2).map(|k| 2.0 * t[k] * y[2 * j + k]).sum::<f64>();
            }
            moved
        };
        let scale = t[0] * t[0];
        assert!(potentials_apart(&on, &moved) < 1e-13 * scale, "{t:?}");
        // Without it the exponents lose as many digits as they have before the point: all, in the end.
        let off = rot(&mu, &nu, &exact(epsilon).gauge(false).tolerance(1e-6).build().unwrap());
        match off {
            Ok(off) => assert!(relative(on.value, off.value) < 1e-10, "{t:?}: {}", off.value),
            Err(Error::EpsilonTooSmall { .. }) => assert!(t[0] > 1e4),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_start_is_as_good_with_a_gauge_as_without() {
    let (x, weights) = (normal(50, &[0.0, 3.0], 1.0, 1), wide_weights(50, 2));
    let mu = weighted(x, 2, &weights);
    let nu = normal_measure(40, &[1.0, 0.0], 0.3, 3);
    for method in [Method::dense(), Method::online(), Method::lattice().clone()] {
        let options = |gauge: bool| {
            let method = method.clone();
            exact(0.5).method(method).gauge(gauge).accuracy(1e-9).tolerance(1e-11).build().unwrap()
        };
        for from in [false, true] {
            let (from, to) = (options(from), options(!from));
            let earlier = rot(&mu, &nu, &from).unwrap();
            let cold = rot(&mu, &nu, &to).unwrap();
            let warm = Solver::new(&to).warm_start(&earlier).rot(&mu, &nu).unwrap();
            assert!(earlier.converged() && cold.converged() && warm.converged());
            // Two lattices of accuracy 1e-9 are not the same.
            let few = if matches!(method, Method::Factored(_)) { 6 } else { 3 };
            assert!(warm.iterations <= few, "{method:?}: {}", warm.iterations);
            assert!(cold.iterations > 8, "{method:?}: {}", cold.iterations);
            assert_same("warm", &warm, &cold, 1e-9);
        }
    }
}

#[test]
fn observers_see_values_of_the_users_problem() {
    let mu = normal_measure(60, &[0.0, 30.0], 1.0, 1);
    let nu = normal_measure(40, &[1.0, 0.0], 0.3, 3);
    for method in [Method::dense(), Method::online(), Method::lattice(), Method::gaussian()] {
        for gauge in [false, true] {
            let name = format!("{method:?} {gauge}");
            // Without stages, whose values are those of other problems.
            let o = exact(0.5).method(method.clone()).algorithm(Algorithm::Anderson);
            let o = o.rank(2000).gauge(gauge).build().unwrap();
            let mut values = Vec::new();
            let mut observer = |p: &mut Progress<'_>| {
                values.push(p.value());
                Next::Continue
            };
            let s = Solver::new(&o).observer(&mut observer).rot(&mu, &nu).unwrap();
            assert!(s.converged(), "{name}");
            assert_eq!(values.len(), s.iterations, "{name}");
            let last = *values.last().unwrap();
            assert!(relative(last, s.value) < 1e-10, "{name}: {last} {}", s.value);
            // 900 apart: from the first iteration on most of that is the gauge's.
            assert!(relative(values[0], s.value) < 0.1, "{name}: {} {}", values[0], s.value);
        }
    }
}

fn lattice(epsilon: f64, accuracy: f64) -> OptionsBuilder {
    exact(epsilon).method(Method::lattice()).accuracy(accuracy)
}

/// Clouds of different sizes and weights, in few dimensions.
fn in_few_dimensions(dim: usize) -> (Measure<'static>, Measure<'static>) {
    let (n, m) = (60, 45);
    let [x, y] = Shape::Ring.pair(n, m, dim, 3);
    let weights: Vec<f64> = (0..n).map(|i| (i % 4) as f64).collect();
    (weighted(x, dim, &weights), weighted(y, dim, &wide_weights(m, 1)))
}

/// What two values that are converged to a marginal error of 1e-9 may differ by.
fn slack(solution: &Solution) -> f64 {
    let potentials = solution.potential_x.iter().chain(&solution.potential_y);
    1e-9 * potentials.fold(0.0, |most, p| p.abs().max(most))
}

#[test]
fn lattices_keep_their_bound_and_the_accuracy() {
    for dim in 1..=4 {
        let (mu, nu) = in_few_dimensions(dim);
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        for scale in if dim == 4 { &[0.5][..] } else { &[0.03, 0.2, 2.0][..] } {
            let epsilon = scale * mean;
            let reference = solve(&mu, &nu, exact(epsilon));
            for accuracy in if dim == 4 { &[1e-3][..] } else { &[0.1, 1e-3, 1e-6][..] } {
                let s = solve(&mu, &nu, lattice(epsilon, *accuracy));
                let name = format!("{dim} {scale} {accuracy}: {} nodes", s.rank);
                let (bound, slack) = (s.bound.unwrap(), slack(&reference));
                let error = (s.value - reference.value).abs();
                assert!(error <= bound + slack, "{name}: {error:e} {bound:e}");
                let kl = (s.value_kl - reference.value_kl).abs();
                assert!(kl <= bound + slack, "{name}: {kl:e} {bound:e}");
                assert!(bound <= accuracy * s.value_kl, "{name}: {bound:e} {}", s.value_kl);
                assert!(kl <= accuracy * reference.value_kl + slack, "{name}: {kl:e}");
                // The bound is one, but not an idle one: the Poisson error falls fast.
                assert!(bound >= 1e-4 * accuracy * s.value_kl, "{name}: {bound:e}");
                assert_eq!(s.method, MethodUsed::Lattice);
            }
        }
    }
}

#[test]
fn lattices_that_are_not_stored_are_those_that_are() {
    for dim in 1..=3 {
        let (mu, nu) = in_few_dimensions(dim);
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        for (scale, accuracy) in [(0.1, 1e-9), (1.0, 1e-9), (0.3, 1e-3)] {
            let stored = Method::Factored(Features::Gaussian(Anchors::Lattice { stored: true }));
            let build = |method| lattice(scale * mean, accuracy).method(method).tolerance(1e-12);
            let one = solve(&mu, &nu, build(stored));
            let two = solve(&mu, &nu, build(Method::lattice()));
            let name = format!("{dim} {scale} {accuracy}: {} {}", one.rank, two.rank);
            if one.rank == two.rank {
                // What is cut off goes with the accuracy.
                let same = if accuracy < 1e-6 { 1e-10 } else { 1e-5 };
                assert_same(&name, &one, &two, same);
            } else {
                // Only those that are not stored are refined if need be.
                assert!(one.rank < two.rank && one.bound > two.bound, "{name}");
                let apart = (one.value - two.value).abs();
                assert!(apart <= one.bound.unwrap() + two.bound.unwrap(), "{name}: {apart:e}");
            }
        }
    }
}

#[test]
fn lattices_of_a_rank_have_no_more_nodes_and_keep_their_bound() {
    for (dim, ranks) in [(1, [10, 40]), (2, [100, 400]), (3, [400, 3000])] {
        let (mu, nu) = in_few_dimensions(dim);
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        for scale in [0.1, 1.0] {
            let epsilon = scale * mean;
            let reference = solve(&mu, &nu, exact(epsilon));
            for rank in ranks {
                for stored in [false, true] {
                    let method = Method::Factored(Features::Gaussian(Anchors::Lattice { stored }));
                    let s = solve(&mu, &nu, exact(epsilon).method(method).rank(rank));
                    let name = format!("{dim} {scale} {rank} {stored}: {}", s.rank);
                    assert!(s.rank <= rank, "{name}");
                    let error = (s.value - reference.value).abs();
                    // Of those that are stored it is not known what was dropped.
                    let Some(bound) = s.bound else {
                        assert!(stored, "{name}");
                        continue;
                    };
                    assert!(error <= bound + slack(&reference), "{name}: {error:e} {bound:e}");
                }
            }
        }
    }
}

#[test]
fn divergences_on_lattices_keep_their_bound() {
    for dim in 1..=3 {
        let (mu, nu) = in_few_dimensions(dim);
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        for (scale, accuracy) in [(0.1, 1e-2), (1.0, 1e-3), (0.3, 1e-6)] {
            let of = |options: OptionsBuilder| -> Divergence {
                let d = divergence(&mu, &nu, &options.build().unwrap()).unwrap();
                assert!(d.converged());
                d
            };
            let (reference, d) = (of(exact(scale * mean)), of(lattice(scale * mean, accuracy)));
            assert_eq!((reference.kernels, d.kernels), (Kernels::Exact, Kernels::PerTerm));
            let (error, bound) = ((d.value - reference.value).abs(), d.bound().unwrap());
            let slack = 4.0 * slack(&reference.cross);
            assert!(error <= bound + slack, "{dim} {scale} {accuracy}: {error:e} {bound:e}");
            // Relative to the divergence, which may be larger than a term of a cloud with itself, or far smaller.
            assert!(d.meets_accuracy(accuracy), "{dim} {scale}: {} {:?}", d.value, d.interval());
        }
    }
}

#[test]
fn lattices_are_not_refined_beyond_the_rounding_or_the_iterations() {
    // Single precision has 1e-6 of epsilon, here twice what is asked for.
    let mu = uniform(vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0], 3);
    for (most, tolerance) in [(20, 1e-5), (1000, 1e-6), (1, 0.5)] {
        let o = Options::builder(1e3).method(Method::lattice()).precision(Precision::F32);
        let o = o.tolerance(tolerance).max_iterations(most).build().unwrap();
        let s = rot(&mu, &mu, &o).unwrap();
        assert!(s.iterations <= most.min(30), "{most}: {}", s.iterations);
        assert!(s.bound.unwrap() > 1e-3 * s.value_kl, "{most}: {:?}", s.bound);
    }
}

fn random(epsilon: f64, draw: Draw, rank: usize, seed: u64) -> OptionsBuilder {
    let features = Features::Gaussian(Anchors::Random(draw));
    exact(epsilon).method(Method::Factored(features)).rank(rank).seed(seed).tolerance(1e-8)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn random_anchors_converge_to_the_exact_value_and_sobol_points_fastest() {
    let [x, y] = Shape::Gaussian.pair(120, 90, 5, 2);
    let (mu, nu) = (uniform(x, 5), uniform(y, 5));
    let mean = mean_squared_distance(&mu, &nu).unwrap();
    for scale in [0.3, 1.0] {
        let epsilon = scale * mean;
        let reference = solve(&mu, &nu, exact(epsilon)).value_kl;
        let errors = |draw, rank| {
            let error = |seed| {
                relative(solve(&mu, &nu, random(epsilon, draw, rank, seed)).value_kl, reference)
            };
            median((0..9).map(error).collect())
        };
        let at = |draw| [128, 1024, 8192].map(|rank| errors(draw, rank));
        let (iid, orthogonal, sobol) = (at(Draw::Iid), at(Draw::Orthogonal), at(Draw::Sobol));
        for (draw, e) in [("iid", iid), ("orthogonal", orthogonal), ("Sobol", sobol)] {
            // 1/sqrt(64) without the calibration on pairs, which helps small ranks most.
            assert!(e[2] < 0.5 * e[0] && e[2] < 2e-3, "{scale} {draw}: {e:?}");
        }
        for k in 0..3 {
            assert!(sobol[k] < iid[k], "{scale}: {sobol:?} {iid:?}");
        }
        assert!(sobol[2] < 0.2 * iid[2], "{scale}: {sobol:?} {iid:?}");
    }
}

#[test]
fn divergences_of_one_random_map_are_zero_for_equal_clouds_and_never_negative() {
    for shape in Shape::ALL {
        let [x, y] = shape.pair(60, 50, 5, 4);
        let near: Vec<f64> = x.iter().map(|x| x + 1e-4).collect();
        let (mu, nu, near) = (uniform(x, 5), uniform(y, 5), uniform(near, 5));
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        for (draw, scale) in [(Draw::Sobol, 0.1), (Draw::Iid, 1.0), (Draw::Orthogonal, 0.5)] {
            let o = random(scale * mean, draw, 300, 1).tolerance(1e-11).build().unwrap();
            let of = |other: &Measure<'_>| {
                let d = divergence(&mu, other, &o).unwrap();
                assert!(d.converged(), "{shape:?} {draw:?} {scale}");
                assert_eq!(d.kernels, Kernels::Shared);
                d.value
            };
            let zero = 1e-9 * mean;
            let [same, near, other] = [of(&mu), of(&near), of(&nu)];
            assert!(same.abs() < zero, "{shape:?} {draw:?} {scale}: {same:e}");
            assert!(near > -zero, "{shape:?} {draw:?} {scale}: {near:e}");
            assert!(other > zero, "{shape:?} {draw:?} {scale}: {other:e}");
        }
    }
}

/// An automatic choice, what it should be, and the words for it.
struct Case {
    name: String,
    solution: Solution,
    /// True error.
    error: f64,
    value_kl: f64,
}

impl Case {
    fn new(shape: Shape, dim: usize, scale: f64, accuracy: f64) -> Self {
        let n = if dim > 3 { 300 } else { 400 };
        let [x, y] = shape.pair(n, n, dim, 7);
        let (mu, nu) = (uniform(x, dim), uniform(y, dim));
        let epsilon = scale * mean_squared_distance(&mu, &nu).unwrap();
        // Some converge slowly: then both do as many plain iterations from one start.
        let solver = exact(epsilon).max_iterations(2000).build().unwrap();
        let start = rot(&mu, &nu, &solver).unwrap();
        let plain =
            |builder: OptionsBuilder| builder.max_iterations(100).algorithm(Algorithm::Plain);
        let solver = plain(exact(epsilon)).build().unwrap();
        let reference = Solver::new(&solver).warm_start(&start).rot(&mu, &nu).unwrap();
        let mut auto = plain(Options::builder(epsilon).allow_exact(false).accuracy(accuracy));
        if dim > 3 {
            // 3072 anchors: enough for some cases and not for others.
            auto = auto.max_memory((2 * n * (8 * (3072 + dim) + 64)) as u64);
        }
        let auto = auto.build().unwrap();
        let solution = Solver::new(&auto).warm_start(&start).rot(&mu, &nu).unwrap();
        let reason = solution.reason.as_deref().unwrap();
        let name = format!("{shape:?}, {dim} axes, epsilon {scale}: {reason}");
        let error = (solution.value_kl - reference.value_kl).abs();
        Case { name, error, value_kl: reference.value_kl, solution }
    }
}

#[test]
fn the_automatic_choice_is_as_accurate_as_it_says() {
    let accuracy = 1e-2;
    let mut used = Vec::new();
    for dim in [1, 2, 3, 5, 10, 30] {
        for shape in Shape::ALL {
            for scale in [0.02, 0.1, 0.5, 2.0] {
                let Case { name, solution, error, value_kl } =
                    Case::new(shape, dim, scale, accuracy);
                let wanted = accuracy * value_kl;
                match solution.method {
                    MethodUsed::Lattice => {
                        assert!(dim <= 4, "{name}");
                        let bound = solution.bound.unwrap();
                        assert!(error <= bound && bound <= wanted, "{name}: {error} {bound}");
                    }
                    MethodUsed::Gaussian => {
                        let good = solution.meets_accuracy(accuracy);
                        assert!(!good || error <= wanted, "{name}: {}", error / value_kl);
                        let interval = solution.interval.unwrap();
                        assert_eq!(interval.kind, Certainty::Sampled);
                        let exact = value_kl + solution.value - solution.value_kl;
                        assert!(interval.contains(exact), "{name}: {exact} {interval:?}");
                        used.push((good, error / interval.width()));
                    }
                    other => assert_eq!(other, MethodUsed::Online, "{name}"),
                }
            }
        }
    }
    // It does choose random anchors in higher dimensions, and intervals are not wider than they need.
    let (good, ratios): (Vec<bool>, Vec<f64>) = used.into_iter().unzip();
    assert!(good.iter().filter(|g| **g).count() >= 20 && ratios.len() >= 50);
    assert!(median(ratios) > 0.02);
}

#[test]
fn automatic_divergences_are_as_accurate_as_they_say() {
    for (dim, shape, scale) in [
        (2, Shape::Ring, 0.1),
        (3, Shape::Heavy, 0.5),
        (5, Shape::Clusters, 0.1),
        (5, Shape::Ring, 0.5),
        (10, Shape::Gaussian, 2.0),
        (10, Shape::Heavy, 0.5),
        (30, Shape::Gaussian, 0.5),
    ] {
        let [x, y] = shape.pair(200, 150, dim, 5);
        let (mu, nu) = (uniform(x, dim), uniform(y, dim));
        let epsilon = scale * mean_squared_distance(&mu, &nu).unwrap();
        let reference = exact(epsilon).tolerance(1e-7).build().unwrap();
        let reference = divergence(&mu, &nu, &reference).unwrap();
        let auto = Options::builder(epsilon).allow_exact(false).accuracy(0.05);
        // At most 4096 anchors for the largest term.
        let auto = auto.max_memory((400 * (8 * (4096 + dim) + 64)) as u64).build().unwrap();
        let d = Solver::new(&auto).warm_start_divergence(&reference).divergence(&mu, &nu).unwrap();
        let reason = d.cross.reason.as_deref().unwrap();
        let error = (d.value - reference.value).abs();
        let wanted = 0.05 * reference.cross.value_kl;
        let name = format!("{shape:?}, {dim} axes, epsilon {scale}: {reason}: {}", error / wanted);
        if let Some(bound) = d.bound() {
            assert!(dim <= 4 && d.kernels == Kernels::PerTerm, "{name}");
            assert!(error <= bound && bound <= 2.0 * wanted, "{name}");
        } else {
            assert_eq!(d.kernels, Kernels::Shared, "{name}");
            let interval = d.interval().unwrap();
            assert!(interval.contains(reference.value), "{name}: {} {interval:?}", reference.value);
            let kept = d.terms().iter().all(|t| t.meets_accuracy(0.05));
            assert!(!kept || error <= 2.0 * wanted, "{name}");
        }
    }
}

#[test]
fn the_exact_kernel_is_chosen_where_it_is_quick_or_the_only_one() {
    let solve = |n: usize, dim: usize, scale: f64| {
        let [x, y] = Shape::Gaussian.pair(n, n, dim, 1);
        let (mu, nu) = (uniform(x, dim), uniform(y, dim));
        let epsilon = scale * mean_squared_distance(&mu, &nu).unwrap();
        let o = Options::builder(epsilon).accuracy(1e-2).build().unwrap();
        let s = rot(&mu, &nu, &o).unwrap();
        let reference = rot(&mu, &nu, &exact(epsilon).tolerance(1e-6).build().unwrap()).unwrap();
        assert!(s.converged());
        let error = relative(s.value_kl, reference.value_kl);
        assert!(
            error
                <= if matches!(s.method, MethodUsed::Online | MethodUsed::Dense) {
                    1e-6
                } else {
                    1e-2
                },
            "{n} {dim}: {error}"
        );
        (s.method, s.corrected.is_some(), s.bound.is_some())
    };
    // A million pairs take no time.
    assert_eq!(solve(700, 2, 0.1), (MethodUsed::Online, false, false));
    // Stored, if they stay in the caches or there are many axes.
    assert_eq!(solve(300, 2, 0.1), (MethodUsed::Dense, false, false));
    assert_eq!(solve(300, 10, 2.0), (MethodUsed::Dense, false, false));
    assert_eq!(solve(700, 10, 2.0), (MethodUsed::Dense, false, false));
    // More do, and there is something quicker.
    assert_eq!(solve(1100, 2, 0.1), (MethodUsed::Lattice, false, true));
    assert_eq!(solve(1100, 10, 2.0), (MethodUsed::Gaussian, true, false));
    // But for small epsilons in many dimensions.
    assert_eq!(solve(1100, 10, 0.1), (MethodUsed::Dense, false, false));
}

#[test]
fn memory_decides_whether_the_exact_kernel_is_stored() {
    let [x, y] = Shape::Gaussian.pair(300, 200, 10, 1);
    let (mu, nu) = (uniform(x, 10), uniform(y, 10));
    let method = |options: OptionsBuilder| {
        let solution = rot(&mu, &nu, &options.build().unwrap()).unwrap();
        assert!(solution.converged());
        solution.method
    };
    let with = || Options::builder(5.0);
    assert_eq!(method(with()), MethodUsed::Dense);
    assert_eq!(method(with().max_memory(8 * 300 * 200 - 1)), MethodUsed::Online);
    assert_eq!(method(with().precision(Precision::F32)), MethodUsed::Online);
    // Where nothing else fits, there is still the kernel that is not stored.
    assert_eq!(method(with().allow_exact(false).max_memory(1000)), MethodUsed::Online);
}
