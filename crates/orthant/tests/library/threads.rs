//! The same bits on any number of threads.

use crate::common::normal;
use orthant::{
    Divergence, Measure, Method, Options, Points, Precision, Solution, divergence,
    options::{Anchors, Cost, Features, Landmarks},
    rot,
};
use rayon::ThreadPoolBuilder;

/// Rows and columns that make several chunks of blocks of 256 rows, the last ones ragged.
const ROWS: usize = 1500;
const COLUMNS: usize = 700;
/// Chunks of lattices have at least 1,024 points: several of these too.
const LATTICE_ROWS: usize = 4500;
const LATTICE_COLUMNS: usize = 3300;

fn clouds(rows: usize, columns: usize) -> (Measure<'static>, Measure<'static>) {
    let dim = 3;
    let cloud = |n, mean, seed| {
        let points = Points::new(normal(n, &vec![mean; dim], 1.0, seed), dim).unwrap();
        // Weights that are not equal, and a few that are zero.
        let weights: Vec<f64> = (0..n).map(|i| ((i * 7919) % 101) as f64).collect();
        Measure::weighted(points, &weights).unwrap()
    };
    (cloud(rows, 0.5, 1), cloud(columns, 0.0, 2))
}

/// Everything that a solution says, as bits.
fn bits(s: &Solution) -> Vec<u64> {
    let numbers = [
        s.value,
        s.value_kl,
        s.transport_cost.unwrap(),
        s.marginal_error_x,
        s.marginal_error_y,
        s.iterations as f64,
        s.builds as f64,
    ];
    numbers
        .iter()
        .chain(&s.potential_x)
        .chain(&s.potential_y)
        .map(|x| {
            assert!(x.is_finite());
            x.to_bits()
        })
        .collect()
}

fn divergence_bits(d: &Divergence) -> Vec<u64> {
    std::iter::once(d.value.to_bits()).chain(d.terms().iter().flat_map(|t| bits(t))).collect()
}

/// Runs `work` on pools of 1, 2 and 3 threads and compares.
fn assert_same(name: &str, work: impl Fn() -> Vec<u64> + Sync) {
    let on =
        |threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(&work);
    let one = on(1);
    for threads in [2, 3] {
        let other = on(threads);
        assert_eq!(one.len(), other.len(), "{name}");
        let differ = one.iter().zip(&other).position(|(a, b)| a != b);
        assert_eq!(differ, None, "{name}: number {differ:?} on {threads} threads");
    }
}

fn check(name: &str, epsilon: f64, rank: usize, method: &Method, precision: Precision) {
    let lattice = format!("{method:?}") == format!("{:?}", Method::lattice());
    let (mu, nu) =
        if lattice { clouds(LATTICE_ROWS, LATTICE_COLUMNS) } else { clouds(ROWS, COLUMNS) };
    let options = Options::builder(epsilon)
        .method(method.clone())
        .precision(precision)
        .rank(rank)
        .seed(3)
        .max_iterations(6)
        .build()
        .unwrap();
    // Of lattices, each of which takes its time to find, the cross term of the divergence is as good.
    if !lattice {
        assert_same(&format!("{name} rot"), || bits(&rot(&mu, &nu, &options).unwrap()));
    }
    assert_same(&format!("{name} divergence"), || {
        divergence_bits(&divergence(&mu, &nu, &options).unwrap())
    });
}

#[test]
fn gaussian_features() {
    for (precision, name) in [(Precision::F32, "f32"), (Precision::F64, "f64")] {
        check(name, 0.5, 150, &Method::paper(), precision);
        // At small epsilon features are stored anew on the way.
        check(&format!("{name} absorbed"), 0.005, 150, &Method::paper(), precision);
    }
}

#[test]
fn lattices_and_sobol_anchors() {
    for (precision, name) in [(Precision::F32, "f32"), (Precision::F64, "f64")] {
        check(&format!("{name} Sobol"), 0.5, 150, &Method::gaussian(), precision);
        check(&format!("{name} lattice"), 3.0, 1500, &Method::lattice(), precision);
    }
    check("thinned", 3.0, 200, &Method::lattice(), Precision::F64);
}

#[test]
fn dense() {
    for (precision, name) in [(Precision::F32, "f32"), (Precision::F64, "f64")] {
        check(name, 0.5, 1, &Method::dense(), precision);
    }
}

#[test]
fn online() {
    check("squared Euclidean", 0.5, 1, &Method::online(), Precision::F64);
    let features = Features::Gaussian(Anchors::Paper { centred: true });
    check("features", 0.5, 9, &Method::Online(Cost::Features(features)), Precision::F64);
}

#[test]
fn arc_cosine() {
    let features = Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 };
    for (precision, name) in [(Precision::F32, "f32"), (Precision::F64, "f64")] {
        check(name, 0.5, 40, &Method::Factored(features.clone()), precision);
    }
}

#[test]
fn nystrom() {
    for (name, landmarks) in [("leverage", Landmarks::Leverage), ("uniform", Landmarks::Uniform)] {
        check(name, 8.0, 130, &Method::Nystrom(landmarks), Precision::F64);
    }
}
