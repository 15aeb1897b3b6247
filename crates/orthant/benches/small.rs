//! The exact kernel of small problems, stored and recomputed: what the automatic choice goes by.
//!
//! `cargo bench -p orthant --bench small` prints a table of times of a solve, the best of some, over a grid of points and
//! axes. Ratios of one run are what counts.

#![allow(clippy::print_stdout, reason = "the table")]

use std::time::{Duration, Instant};

use orthant::{Measure, Method, Options, Points, rot};

fn cloud(n: usize, dim: usize, seed: u32) -> Measure<'static> {
    // The fractional parts of multiples of an irrational number: evenly spread, and no generator is needed.
    let values = (0..n * dim).map(|i| (f64::from(seed) + 0.618_033_988_75 * i as f64).fract());
    Measure::uniform(Points::new(values.collect::<Vec<f64>>(), dim).expect("finite points"))
}

fn best(mu: &Measure<'_>, nu: &Measure<'_>, epsilon: f64, method: Method) -> Duration {
    let options = Options::builder(epsilon).method(method).build().expect("valid options");
    let time = || {
        let begun = Instant::now();
        assert!(rot(mu, nu, &options).expect("a solution").converged());
        begun.elapsed()
    };
    (0..9).map(|_| time()).min().expect("some")
}

fn main() {
    println!("{:>6} {:>4} {:>12} {:>12} {:>8}", "points", "axes", "stored", "recomputed", "ratio");
    for dim in [1, 2, 3, 4, 6, 10] {
        for n in [30, 100, 200, 400, 600, 800, 1000] {
            let (mu, nu) = (cloud(n, dim, 0), cloud(n, dim, 1));
            let epsilon = 0.05 * orthant::mean_squared_distance(&mu, &nu).expect("one dimension");
            let [stored, recomputed] =
                [Method::dense(), Method::online()].map(|method| best(&mu, &nu, epsilon, method));
            let ratio = recomputed.as_secs_f64() / stored.as_secs_f64();
            println!("{n:>6} {dim:>4} {stored:>12.1?} {recomputed:>12.1?} {ratio:>8.2}");
        }
    }
}
