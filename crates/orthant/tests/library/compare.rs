//! Many clouds: every pair as a divergence of two, what pairs share, stopping and going on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{normal, normal_measure, wide_weights};
use orthant::anchors::Draw;
use orthant::features::{FeatureMap, Gaussian, Linear};
use orthant::{
    Certainty, Error, Measure, Method, Options, Points, Precision,
    compare::{Comparer, Comparison, Pair, Sharing, compare, embedding, linkage},
    control::{Next, Progress, Term},
    divergence, mean_cost,
    options::{Anchors, Cost, Features, OptionsBuilder},
};

/// Four clouds of different sizes and shapes in the plane, one with weights and points of weight zero.
fn clouds() -> Vec<Measure<'static>> {
    let mut weights = wide_weights(40, 3);
    weights[7] = 0.0;
    let points = Points::new(normal(40, &[0.5, 1.0], 0.7, 4), 2).unwrap();
    vec![
        normal_measure(50, &[0.0, 0.0], 1.0, 1),
        normal_measure(30, &[1.0, 0.0], 0.5, 2),
        Measure::weighted(points, &weights).unwrap(),
        normal_measure(35, &[2.0, 2.0], 1.5, 5),
    ]
}

fn builder(method: Method) -> OptionsBuilder {
    Options::builder(0.5).method(method).tolerance(1e-9)
}

fn options(method: Method) -> Options {
    builder(method).rank(60).build().unwrap()
}

fn each(comparison: &Comparison, clouds: &[Measure<'_>], mut check: impl FnMut(&Pair)) {
    let pairs = clouds.len() * (clouds.len() - 1) / 2;
    assert!(comparison.is_complete() && comparison.pairs.len() == pairs);
    comparison.pairs.iter().for_each(&mut check);
}

#[test]
fn exact_kernels_and_lattices_give_the_divergences_of_two() {
    let clouds = clouds();
    let stored = Method::Factored(Features::Gaussian(Anchors::Lattice { stored: true }));
    for (method, kind) in [
        (Method::online(), Certainty::Exact),
        (Method::dense(), Certainty::Exact),
        (Method::Auto, Certainty::Exact),
        (Method::lattice(), Certainty::Bound),
        (stored, Certainty::Bound),
    ] {
        let o = builder(method).build().unwrap();
        let comparison = compare(&clouds, &o).unwrap();
        assert_eq!(comparison.sharing, Sharing::SelfTerms);
        each(&comparison, &clouds, |p| {
            let alone = divergence(&clouds[p.first], &clouds[p.second], &o).unwrap();
            let (interval, of_two) = (p.interval.unwrap(), alone.interval().unwrap());
            assert_eq!((interval.kind, of_two.kind), (kind, kind));
            assert_eq!((p.converged, p.method), (true, alone.cross.method));
            if kind == Certainty::Exact {
                // The same work, so the same bits.
                assert_eq!((p.value, interval), (alone.value, of_two), "{o:?}");
                assert_eq!(p.iterations, alone.cross.iterations);
            } else {
                // Self terms are those of all pairs, so lattices may be others: as good, and around the same value.
                assert!(p.accurate && alone.meets_accuracy(1e-3), "{p:?} {of_two:?}");
                assert!(interval.low <= of_two.high && of_two.low <= interval.high, "{p:?}");
            }
        });
    }
}

#[test]
fn maps_that_know_no_clouds_give_the_divergences_of_two() {
    let clouds: Vec<Measure<'_>> = [(40, 0.2), (25, 0.8), (30, 0.5)]
        .into_iter()
        .enumerate()
        .map(|(k, (n, spread))| {
            let values = normal(n, &[0.0; 3], spread, k as u64);
            let positive = values.into_iter().map(f64::exp).collect::<Vec<_>>();
            Measure::uniform(Points::new(positive, 3).unwrap())
        })
        .collect();
    let arc = || Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 };
    for method in [
        Method::Factored(arc()),
        Method::Factored(Features::Linear),
        Method::Dense(Cost::Features(arc())),
        Method::Online(Cost::Features(Features::Linear)),
    ] {
        let stored = matches!(method, Method::Factored(_));
        let o = options(method);
        let comparison = compare(&clouds, &o).unwrap();
        let sharing = if stored { Sharing::Features } else { Sharing::SelfTerms };
        assert_eq!(comparison.sharing, sharing);
        each(&comparison, &clouds, |p| {
            let alone = divergence(&clouds[p.first], &clouds[p.second], &o).unwrap();
            // Features are stored around another message: rounding, and the tolerance.
            assert!((p.value - alone.value).abs() < 1e-9, "{o:?}: {} {}", p.value, alone.value);
            assert!(p.converged && p.value > 0.0);
        });
    }
}

/// All clouds as one, each with the same mass.
fn together(clouds: &[Measure<'_>]) -> Measure<'static> {
    let (mut values, mut weights) = (Vec::new(), Vec::new());
    for cloud in clouds {
        let support = cloud.support();
        for (i, w) in support.weights.iter().enumerate() {
            values.extend((0..cloud.dim()).map(|k| support.points.coordinate(i, k)));
            weights.push(w / clouds.len() as f64);
        }
    }
    Measure::weighted(Points::new(values, clouds[0].dim()).unwrap(), &weights).unwrap()
}

#[test]
fn the_papers_map_is_that_of_all_clouds() {
    let clouds = clouds();
    let all = together(&clouds);
    for centred in [true, false] {
        let features = Features::Gaussian(Anchors::Paper { centred });
        let o = options(Method::Factored(features));
        let map = Gaussian::paper(&all, &all, 0.5, 60, 0, centred).unwrap();
        let with_map = options(Method::Factored(Features::Map(Arc::new(map))));
        let comparison = compare(&clouds, &o).unwrap();
        assert_eq!(comparison.sharing, Sharing::Features);
        each(&comparison, &clouds, |p| {
            let alone = divergence(&clouds[p.first], &clouds[p.second], &with_map).unwrap();
            assert!((p.value - alone.value).abs() < 1e-9, "{} {}", p.value, alone.value);
        });
    }
}

#[test]
fn two_clouds_with_random_anchors_are_a_divergence() {
    let clouds = &clouds()[..2];
    for draw in [Draw::Sobol, Draw::Iid, Draw::Orthogonal] {
        let features = Features::Gaussian(Anchors::Random(draw));
        let o = builder(Method::Factored(features)).rank(60).certify(true).build().unwrap();
        let pair = compare(clouds, &o).unwrap().pairs[0];
        let alone = divergence(&clouds[0], &clouds[1], &o).unwrap();
        assert!((pair.value - alone.value).abs() < 1e-8, "{} {}", pair.value, alone.value);
        let (found, expected) = (pair.interval.unwrap(), alone.interval().unwrap());
        assert!((found.low - expected.low).abs() < 1e-6, "{found:?} {expected:?}");
        assert!((found.high - expected.high).abs() < 1e-6, "{found:?} {expected:?}");
    }
}

#[test]
fn certificates_hold_the_exact_divergence() {
    let clouds = clouds();
    let exact = compare(&clouds, &options(Method::online())).unwrap();
    for method in [Method::gaussian(), Method::paper()] {
        let o = builder(method).rank(500).certify(true).build().unwrap();
        let comparison = compare(&clouds, &o).unwrap();
        each(&comparison, &clouds, |p| {
            let value = exact.value(p.first, p.second).unwrap();
            let interval = p.interval.unwrap();
            assert_eq!(interval.kind, Certainty::Sampled);
            assert!(interval.contains(value), "{interval:?} {value}");
            // One kernel for all: never negative.
            assert!(p.value > -1e-9);
        });
    }
    // Random anchors, chosen for an accuracy, are better than that.
    let clouds: Vec<Measure<'_>> =
        (0..3).map(|k| normal_measure(120, &[0.3 * f64::from(k); 6], 1.0, 9)).collect();
    let few = Options::builder(6.0).accuracy(1e-2).allow_exact(false).build().unwrap();
    let exact = Options::builder(6.0).method(Method::online()).tolerance(1e-9).build().unwrap();
    let exact = compare(&clouds, &exact).unwrap();
    let comparison = compare(&clouds, &few).unwrap();
    each(&comparison, &clouds, |p| {
        let interval = p.interval.unwrap();
        assert!(p.accurate && p.converged, "{p:?}");
        let value = exact.value(p.first, p.second).unwrap();
        assert!(interval.contains(value), "{p:?} {value}");
    });
}

#[test]
fn kernels_of_a_pair_are_those_of_the_pair() {
    let clouds = clouds();
    for method in [Method::adaptive(), Method::nystrom()] {
        let o = Options::builder(2.0).method(method).rank(90).build().unwrap();
        let comparison = compare(&clouds, &o).unwrap();
        assert_eq!(comparison.sharing, Sharing::Nothing);
        each(&comparison, &clouds, |p| {
            let alone = divergence(&clouds[p.first], &clouds[p.second], &o).unwrap();
            assert_eq!((p.value, p.interval), (alone.value, alone.interval()));
        });
    }
}

#[test]
fn the_matrix_is_symmetric_with_a_diagonal_of_zeros() {
    let clouds = clouds();
    for method in [Method::online(), Method::gaussian()] {
        let comparison = compare(&clouds, &options(method)).unwrap();
        let matrix = comparison.matrix().unwrap();
        for i in 0..4 {
            for j in 0..4 {
                assert_eq!(matrix[i * 4 + j], matrix[j * 4 + i]);
                assert_eq!(comparison.value(i, j), Some(matrix[i * 4 + j]));
                assert_eq!(comparison.interval(i, j), comparison.interval(j, i));
            }
            let own = comparison.interval(i, i).unwrap();
            assert_eq!((matrix[i * 5], own.low, own.high), (0.0, 0.0, 0.0));
        }
        assert_eq!((comparison.value(4, 4), comparison.value(0, 4)), (None, None));
        assert!(linkage(&matrix, 4).is_ok());
    }
    // A cloud and its copy.
    let twice = vec![clouds[0].clone(), clouds[0].clone()];
    let value = compare(&twice, &options(Method::online())).unwrap().pairs[0].value;
    assert!(value.abs() < 1e-9, "{value}");
}

#[test]
fn every_self_term_is_solved_once() {
    let clouds = clouds();
    // (Of a lattice that is refined on the way a solve begins anew.)
    for method in [Method::online(), Method::dense(), Method::gaussian(), Method::Auto] {
        let o = builder(method).build().unwrap();
        let mut solves = [0; 3];
        let mut observer = |p: &mut Progress<'_>| {
            solves[p.term as usize] += usize::from(p.iteration == 1);
            Next::Continue
        };
        Comparer::new(&o).observer(&mut observer).compare(&clouds).unwrap();
        let [cross, own, other] = solves;
        assert_eq!((cross, own, other), (6, 4, 0), "{o:?}");
    }
}

/// Counts the points whose features it is asked for.
#[derive(Debug)]
struct Counted {
    map: Gaussian,
    points: AtomicUsize,
}

impl FeatureMap for Counted {
    fn dim(&self) -> usize {
        self.map.dim()
    }

    fn rank(&self) -> usize {
        self.map.rank()
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        self.points.fetch_add(out.len() / stride, Ordering::Relaxed);
        self.map.log_features(points, first, stride, out);
    }
}

#[test]
fn features_are_evaluated_once_whatever_the_number_of_pairs() {
    let clouds: Vec<Measure<'_>> =
        (0..7_u32).map(|k| normal_measure(64, &[0.2 * f64::from(k), 0.0], 1.0, k.into())).collect();
    let all = together(&clouds);
    let count = |clouds: &[Measure<'_>], memory: u64| {
        let map = Gaussian::paper(&all, &all, 0.5, 64, 0, true).unwrap();
        let map = Arc::new(Counted { map, points: AtomicUsize::new(0) });
        // The transport cost of a map would visit all pairs.
        let features = Features::Map(map.clone());
        let o = builder(Method::Factored(features)).max_memory(memory).build().unwrap();
        let mut cost = Vec::new();
        let mut each = |p: &Pair| {
            cost.push((p.value, map.points.load(Ordering::Relaxed)));
            Next::Continue
        };
        let comparison = Comparer::new(&o).each(&mut each).compare(clouds).unwrap();
        let sharing = if memory == u64::MAX { Sharing::Features } else { Sharing::Map };
        assert_eq!(comparison.sharing, sharing);
        (comparison, cost)
    };
    let (kept, with) = count(&clouds, u64::MAX);
    let (again, without) = count(&clouds, 2 * 64 * 64 * 8);
    // The same to the last bit.
    assert_eq!(kept.pairs, again.pairs);
    // The last pairs: all self terms are there, and features are kept. What is left is the transport cost of a
    // cost that features define, pair by pair.
    let last = |cost: &[(f64, usize)]| cost[20].1 - cost[19].1;
    let pairwise = last(&with);
    assert_eq!(last(&without), pairwise + 2 * 64, "two clouds are stored again");
}

fn with_all_bits(comparison: &Comparison) -> Vec<(usize, usize, u64, Option<[u64; 2]>)> {
    let bits = |p: &Pair| {
        let ends = p.interval.map(|i| [i.low.to_bits(), i.high.to_bits()]);
        (p.first, p.second, p.value.to_bits(), ends)
    };
    comparison.pairs.iter().map(bits).collect()
}

#[test]
fn stopped_and_continued_is_the_same_to_the_last_bit() {
    let clouds = clouds();
    let single = || builder(Method::gaussian()).precision(Precision::F32).tolerance(1e-6);
    // In single precision and at small epsilon features are stored anew on the way.
    let small = Options::builder(0.02).method(Method::gaussian()).precision(Precision::F32);
    for o in [
        builder(Method::online()),
        builder(Method::lattice()),
        builder(Method::gaussian()).rank(100).certify(true),
        builder(Method::gaussian()).rank(100).max_memory(100 * 8 * 2 * 104),
        single().rank(100),
        small.rank(300).tolerance(1e-3).max_iterations(60),
        builder(Method::adaptive()).rank(60),
        builder(Method::gaussian()).rank(100).polish(true),
        builder(Method::gaussian()).rank(100).reach(1.0),
    ] {
        let o = o.build().unwrap();
        let whole = compare(&clouds, &o).unwrap();
        for stop in [1, 3, 5] {
            let mut left = stop;
            let mut each = |_: &Pair| {
                left -= 1;
                if left == 0 { Next::Stop } else { Next::Continue }
            };
            let part = Comparer::new(&o).each(&mut each).compare(&clouds).unwrap();
            assert_eq!(part.pairs, whole.pairs[..stop]);
            assert!(!part.is_complete() && !part.converged() && part.matrix().is_none());
            // In any order, and not only the first ones.
            let mut finished = part.pairs;
            finished.reverse();
            let mut seen = 0;
            let mut count = |_: &Pair| {
                seen += 1;
                Next::Continue
            };
            let rest =
                Comparer::new(&o).finished(finished).each(&mut count).compare(&clouds).unwrap();
            assert_eq!(with_all_bits(&rest), with_all_bits(&whole), "{o:?}");
            assert_eq!(seen, 6 - stop);
            let last = whole.pairs[stop..].to_vec();
            let rest = Comparer::new(&o).finished(last).compare(&clouds).unwrap();
            assert_eq!(with_all_bits(&rest), with_all_bits(&whole), "{o:?}");
        }
        // Nothing is left to do.
        let done = Comparer::new(&o).finished(whole.pairs.clone()).compare(&clouds).unwrap();
        assert_eq!(done, whole);
    }
}

#[test]
fn limits_and_observers_leave_finished_pairs() {
    let clouds = clouds();
    let o = builder(Method::online()).build().unwrap();
    let whole = compare(&clouds, &o).unwrap();
    // In the middle of the third cross term.
    let (mut terms, mut iterations) = (0, 0);
    let mut observer = |p: &mut Progress<'_>| {
        terms += usize::from(p.term == Term::Cross && p.iteration == 1);
        iterations += 1;
        if terms == 3 { Next::Stop } else { Next::Continue }
    };
    let part = Comparer::new(&o).observer(&mut observer).compare(&clouds).unwrap();
    assert_eq!(part.pairs, whole.pairs[..2]);
    let none = builder(Method::online()).time_limit(Duration::ZERO).build().unwrap();
    assert_eq!(compare(&clouds, &none).unwrap().pairs, []);
    let few = builder(Method::online()).max_iterations(1).build().unwrap();
    let rough = compare(&clouds, &few).unwrap();
    assert!(rough.is_complete() && !rough.converged());
}

#[test]
fn translates_are_points_on_a_line() {
    let at = [0.0, 3.0, -1.0, 0.5, 7.0];
    let clouds: Vec<Measure<'_>> = at
        .iter()
        .map(|t| {
            let points = normal(40, &[0.0, 0.0], 1.0, 8);
            let moved =
                points.chunks(2).flat_map(|p| [p[0] + 0.6 * t, p[1] + 0.8 * t]).collect::<Vec<_>>();
            Measure::uniform(Points::new(moved, 2).unwrap())
        })
        .collect();
    let comparison = compare(&clouds, &builder(Method::online()).build().unwrap()).unwrap();
    let found = embedding(&comparison.matrix().unwrap(), 5).unwrap();
    let mean = at.iter().sum::<f64>() / 5.0;
    for (point, t) in found.points.iter().zip(at) {
        assert!((point[0] - (t - mean)).abs() < 1e-6, "{point:?} {t}");
        assert!(point[1].abs() < 1e-3, "{point:?}");
    }
    assert!(found.share > 0.999_999);
}

#[test]
fn the_mean_cost_is_that_of_all_points_whatever_cloud_they_are_of() {
    let clouds = clouds();
    // Every point with its weight as given, one after the other.
    let plain = clouds.iter().all(|c| c.weights().iter().all(|w| *w == c.weights()[0]));
    let points: Vec<(Vec<f64>, f64)> = clouds
        .iter()
        .flat_map(|cloud| {
            let uniform = cloud.weights().iter().all(|w| *w == cloud.weights()[0]);
            (0..cloud.points().len()).map(move |i| {
                let weight = cloud.mass() * cloud.weights()[i];
                let alone = plain || (uniform && cloud.mass() == 1.0);
                let at = (0..2).map(|c| cloud.points().coordinate(i, c)).collect();
                (at, if alone { 1.0 } else { weight })
            })
        })
        .collect();
    let total: f64 = points.iter().map(|(_, w)| w).sum();
    let mut mean = 0.0;
    for (x, v) in &points {
        for (y, w) in &points {
            let square: f64 = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum();
            mean += v * w * square / (total * total);
        }
    }
    assert!((mean_cost(&clouds).unwrap() / mean - 1.0).abs() < 1e-12);
    // Another division of the same points: uniform clouds and all of their points in one.
    let [x, y] = [&clouds[0], &clouds[1]].map(|c| {
        let at = |i: usize| (0..2).map(move |k| c.points().coordinate(i, k));
        (0..c.points().len()).flat_map(at).collect::<Vec<f64>>()
    });
    let uniform = |v: Vec<f64>| Measure::uniform(Points::new(v, 2).unwrap());
    let apart = mean_cost(&[uniform(x.clone()), uniform(y.clone())]).unwrap();
    let together = mean_cost(&[uniform([x, y].concat())]).unwrap();
    assert!((apart / together - 1.0).abs() < 1e-12);
}

#[test]
fn bad_input_names_the_clouds() {
    let clouds = clouds();
    let o = options(Method::online());
    let message = |clouds: &[Measure<'_>], o: &Options| compare(clouds, o).unwrap_err();
    for few in [&clouds[..0], &clouds[..1]] {
        assert_eq!(message(few, &o), Error::FewClouds { count: few.len() });
    }
    let other = [clouds[0].clone(), clouds[1].clone(), normal_measure(5, &[0.0; 3], 1.0, 0)];
    assert_eq!(
        message(&other, &o).to_string(),
        "clouds 1 and 3: the clouds have 2 and 3 coordinates; both need the same number (choose the columns to \
         compare)"
    );
    let linear = message(&clouds, &options(Method::Factored(Features::Linear)));
    assert!(linear.to_string().starts_with("cloud 1: "), "{linear}");
    let map = || Arc::new(Linear::new(2).unwrap());
    for method in [
        Method::Factored(Features::Pair(map(), map())),
        Method::Online(Cost::Features(Features::Pair(map(), map()))),
    ] {
        assert!(matches!(message(&clouds, &options(method)), Error::TwoClouds { .. }));
    }
    let unequal = builder(Method::online()).rho_x(1.0).build().unwrap();
    assert!(matches!(message(&clouds, &unequal), Error::UnequalRho { .. }));
    let pair = compare(&clouds[..2], &o).unwrap().pairs[0];
    for bad in [
        vec![Pair { second: 4, ..pair }],
        vec![Pair { first: 1, second: 0, ..pair }],
        vec![Pair { second: 0, ..pair }],
        vec![Pair { value: f64::NAN, ..pair }],
        vec![pair, pair],
    ] {
        let error = Comparer::new(&o).finished(bad).compare(&clouds).unwrap_err();
        assert!(matches!(error, Error::FinishedPair { count: 4, .. }), "{error}");
    }
    // A pair for which features do not fit.
    let tight = builder(Method::gaussian()).rank(100).max_memory(1000).build().unwrap();
    assert!(
        message(&clouds, &tight).to_string().starts_with("cloud 1: storing the feature matrices")
    );
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let clouds = clouds();
    for method in [Method::gaussian(), Method::lattice()] {
        let o = builder(method).build().unwrap();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| compare(&clouds, &o).unwrap())
        };
        assert_eq!(with_all_bits(&on(1)), with_all_bits(&on(3)));
    }
}
