//! Clouds that several processes hold: the same bits as those of one.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::unbalanced::{Margin, Unbalanced};
use super::*;
use crate::anchors::Lattice;
use crate::comm::{Comm, LARGEST_CHUNK, Threads};
use crate::features::{Affine, Mapped, lattice_map};
use crate::kernel::{Factored, FactoredSelf, Separable, Stored};
use crate::measure::{Measure, Points};
use crate::numerics::simd::Float;

const DIM: usize = 2;
const EPSILON: f64 = 0.2;

/// Points and weights.
fn cloud(n: usize, shift: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let points = (0..n * DIM).map(|_| 0.4 * normal() + shift).collect();
    (points, (0..n).map(|_| normal().abs() + 0.1).collect())
}

/// The share of a process, which ends where a chunk does.
fn part(cloud: &(Vec<f64>, Vec<f64>), comm: &Arc<dyn Comm>) -> Measure<'static> {
    let n = cloud.1.len();
    let chunks = n.div_ceil(LARGEST_CHUNK);
    let end = |rank: usize| n.min(rank * chunks / comm.size() * LARGEST_CHUNK);
    let last = comm.rank() + 1 == comm.size();
    let rows = end(comm.rank())..if last { n } else { end(comm.rank() + 1) };
    let points = Points::new(cloud.0[rows.start * DIM..rows.end * DIM].to_vec(), DIM).unwrap();
    Measure::weighted(points.spread(comm.clone()), &cloud.1[rows]).unwrap()
}

/// Numbers of all processes and of the points of each.
struct Found {
    all: Vec<u64>,
    points: Vec<Vec<u64>>,
}

fn solve_on(kernel: &mut dyn Kernel, mu: &Measure<'_>, nu: &Measure<'_>, rho: f64) -> Found {
    let (x, y) = (mu.support(), nu.support());
    let margin = |m: &Measure<'_>| {
        let support = m.support();
        Margin::new((support.weights, support.points.span()), m.mass(), rho, EPSILON, None, 0.0)
    };
    let sides =
        if kernel.between().is_some() { vec![margin(mu), margin(nu)] } else { vec![margin(mu)] };
    let unbalanced = rho.is_finite().then(|| Unbalanced::new(EPSILON, sides));
    let goal = Goal {
        a: x.weights,
        b: y.weights,
        spans: [x.points.span(), y.points.span()],
        unbalanced: unbalanced.as_ref(),
    };
    let run = Run {
        term: Term::Cross,
        epsilon: EPSILON,
        offset: 0.0,
        tolerance: 1e-10,
        max_iterations: 40,
        time: None,
        leave_out: 1e-12,
        algorithm: Algorithm::Auto,
    };
    let start: Vec<f64> = x.weights.iter().map(|a| a.ln()).collect();
    let mut observer = |progress: &mut Progress<'_>| {
        assert!(progress.value().is_finite());
        Next::Continue
    };
    let found = solve(kernel, goal, Some(&start), run, &mut observer).unwrap();
    let value = goal.value(&found.f, &found.g, EPSILON, 0.0);
    let all = [value, found.x.error, found.y.error, found.x.log_mass, found.left_out];
    let mut all: Vec<u64> = all.map(f64::to_bits).to_vec();
    all.push(found.iterations as u64);
    let bits = |f: Vec<f64>| f.into_iter().map(f64::to_bits).collect();
    Found { all, points: vec![bits(found.f), bits(found.g)] }
}

fn same_bits(kernel: impl Fn(&Lattice, &Measure<'_>, &Measure<'_>, f64) -> Found + Sync) {
    let clouds = [cloud(4 * LARGEST_CHUNK + 100, 0.0, 1), cloud(3 * LARGEST_CHUNK + 1, 0.3, 2)];
    let lattice = Lattice::covering(&[-2.0; DIM], &[2.3; DIM], EPSILON, 0.05, 1e7).unwrap();
    for rho in [f64::INFINITY, 0.7] {
        let on = |size: usize| {
            let each = Threads::run(size, |comm| {
                let [mu, nu] = [0, 1].map(|k: usize| part(&clouds[k], &comm));
                kernel(&lattice, &mu, &nu, rho)
            });
            assert!(each.iter().all(|found| found.all == each[0].all));
            let points = [0, 1, 2, 3].map(|k: usize| -> Vec<u64> {
                each.iter().flat_map(|found| found.points[k].clone()).collect()
            });
            (each[0].all.clone(), points)
        };
        let alone = on(1);
        for size in [2, 3] {
            assert!(on(size) == alone, "{size} processes, rho {rho}");
        }
    }
}

fn stored<T: Float>(lattice: &Lattice, mu: &Measure<'_>, nu: &Measure<'_>, rho: f64) -> Found {
    fn side<'a, T: Float>(map: &'a Affine, m: &'a Measure<'a>) -> Stored<'a, T> {
        Stored::new(Box::new(Mapped::new(map, m.support().points.borrowed())))
    }
    let map = lattice_map(lattice);
    let cross = solve_on(&mut Factored::new(side::<T>(&map, mu), side(&map, nu)), mu, nu, rho);
    let own = solve_on(&mut FactoredSelf::new(side::<T>(&map, mu)), mu, mu, rho);
    Found { all: [cross.all, own.all].concat(), points: [cross.points, own.points].concat() }
}

fn separable<T: Float>(lattice: &Lattice, mu: &Measure<'_>, nu: &Measure<'_>, rho: f64) -> Found {
    let side = |m: &Measure<'_>| Separable::<T>::new(m.support().points, lattice, T::CUTOFF);
    let cross = solve_on(&mut Factored::new(side(mu), side(nu)), mu, nu, rho);
    let own = solve_on(&mut FactoredSelf::new(side(mu)), mu, mu, rho);
    Found { all: [cross.all, own.all].concat(), points: [cross.points, own.points].concat() }
}

#[test]
fn stored_features_are_the_same_on_any_number_of_processes() {
    same_bits(stored::<f64>);
    same_bits(stored::<f32>);
}

#[test]
fn lattices_are_the_same_on_any_number_of_processes() {
    same_bits(separable::<f64>);
    same_bits(separable::<f32>);
}
