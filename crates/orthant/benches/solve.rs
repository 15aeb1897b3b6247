//! Time of the pieces of a solve, with the accuracy that they reach beside it.
//!
//! Compare inside one run: machines are noisy. `orthant bench` has the ratios to plain reading and to
//! matrix-vector products.
#![allow(missing_docs, reason = "the macros make undocumented items")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use orthant::bench::Sweep;
use orthant::features::Gaussian;
use orthant::{Measure, Method, Options, Points, Precision, rot};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

fn normal(n: usize, mean: f64, deviation: f64, seed: u64) -> Measure<'static> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f64> = (0..2 * n)
        .map(|_| {
            let z: f64 = StandardNormal.sample(&mut rng);
            mean + deviation * z
        })
        .collect();
    Measure::uniform(Points::new(values, 2).expect("finite points"))
}

fn sweep(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sweep");
    let n = 20_000;
    let (mu, nu) = (normal(n, 1.0, 1.0, 0), normal(n, 0.0, 0.3, 1));
    for rank in [100, 600] {
        let map = Gaussian::paper(&mu, &nu, 0.5, rank, 0, true).expect("a map");
        group.throughput(Throughput::Elements(2 * n as u64));
        let mut single = Sweep::<f32>::new(&map, &mu, &nu).expect("features");
        group.bench_function(BenchmarkId::new("f32", rank), |b| {
            b.iter(|| black_box(single.iterate()));
        });
        let mut double = Sweep::<f64>::new(&map, &mu, &nu).expect("features");
        group.bench_function(BenchmarkId::new("f64", rank), |b| {
            b.iter(|| black_box(double.iterate()));
        });
        group.bench_function(BenchmarkId::new("store f32", rank), |b| {
            b.iter(|| black_box(single.build()));
        });
    }
    group.finish();
}

fn whole_solve(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rot");
    group.sample_size(10);
    let n = 2_000;
    let (mu, nu) = (normal(n, 1.0, 1.0, 0), normal(n, 0.0, 0.3, 1));
    let exact = Options::builder(0.5).method(Method::online()).build().expect("options");
    let truth = rot(&mu, &nu, &exact).expect("a solution").value_kl;
    for (name, method, precision) in [
        ("online", Method::online(), Precision::F64),
        ("dense f64", Method::dense(), Precision::F64),
        ("dense f32", Method::dense(), Precision::F32),
        ("gaussian f64", Method::paper(), Precision::F64),
        ("gaussian f32", Method::paper(), Precision::F32),
    ] {
        let options =
            Options::builder(0.5).method(method).precision(precision).build().expect("options");
        let error = (rot(&mu, &nu, &options).expect("a solution").value_kl / truth - 1.0).abs();
        group.bench_function(format!("{name} (relative error {error:.0e})"), |b| {
            b.iter(|| black_box(rot(&mu, &nu, &options)));
        });
    }
    group.finish();
}

criterion_group!(benches, sweep, whole_solve);
criterion_main!(benches);
