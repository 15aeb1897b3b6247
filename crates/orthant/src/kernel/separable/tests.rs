use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::features::{Mapped, lattice_map};
use crate::kernel::{Between, Factored, FactoredSelf, Kernel, Stored};

fn cloud(n: usize, dim: usize, shift: f64, seed: u64) -> Points<'static> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f64> = (0..n * dim)
        .map(|_| {
            let z: f64 = StandardNormal.sample(&mut rng);
            0.4 * z + shift
        })
        .collect();
    Points::new(values, dim).unwrap()
}

fn lattice(x: &Points<'_>, y: &Points<'_>, epsilon: f64, ratio: f64) -> Lattice {
    let ends = |a: usize| {
        let all = |p: &Points<'_>| -> [f64; 2] {
            let v: Vec<f64> = (0..p.len()).map(|i| p.coordinate(i, a)).collect();
            [
                v.iter().copied().fold(f64::INFINITY, f64::min),
                v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ]
        };
        let (x, y) = (all(x), all(y));
        [0.5 * (x[0] + y[0]), 0.5 * (x[1] + y[1])]
    };
    let low: Vec<f64> = (0..x.dim()).map(|a| ends(a)[0]).collect();
    let high: Vec<f64> = (0..x.dim()).map(|a| ends(a)[1]).collect();
    Lattice::covering(&low, &high, epsilon, ratio, 1e7).unwrap()
}

fn check<T: Float>(cutoff: f64, tolerance: f64) {
    for (dim, n, m, epsilon, shift) in [
        (1, 400, 300, 0.05, 0.3),
        (1, 50, 60, 1e-3, 1.5),
        (2, 700, 500, 0.2, 0.2),
        (2, 300, 200, 0.02, 0.6),
        (3, 300, 400, 0.3, 0.1),
        (3, 100, 90, 0.1, 0.5),
        (4, 120, 100, 1.0, 0.2),
    ] {
        let (x, y) = (cloud(n, dim, 0.0, 1), cloud(m, dim, shift, 2));
        let lattice = lattice(&x, &y, epsilon, 0.05);
        let map = lattice_map(&lattice);
        let (a, b) = (vec![1.0 / n as f64; n], vec![1.0 / m as f64; m]);
        let start: Vec<f64> = a.iter().map(|a: &f64| a.ln()).collect();
        let side = |p: &Points<'static>| Stored::<f64>::new(Box::new(Mapped::new(&map, p.clone())));
        let mut stored = Factored::new(side(&x), side(&y));
        let mut separable = Factored::new(
            Separable::<T>::new(&x, &lattice, cutoff),
            Separable::<T>::new(&y, &lattice, cutoff),
        );
        stored.start(&start).unwrap();
        separable.start(&start).unwrap();
        let targets = [Target::fixed(&a), Target::fixed(&b)];
        let (to, other_to) = (stored.arrange(targets), separable.arrange(targets));
        stored.update_y(to[1].ordered()).unwrap();
        separable.update_y(other_to[1].ordered()).unwrap();
        for iteration in 0..30 {
            stored.update_x(to[0].ordered()).unwrap();
            separable.update_x(other_to[0].ordered()).unwrap();
            let e = stored.update_y(to[1].ordered()).unwrap();
            let other = separable.update_y(other_to[1].ordered()).unwrap();
            assert!(
                (e - other).abs() <= 10.0 * tolerance,
                "{dim} {epsilon}: {iteration}: {e} {other}"
            );
            let (mut f, mut g) = (vec![0.0; n], vec![0.0; m]);
            stored.potentials(&mut f, &mut g);
            let (mut fs, mut gs) = (vec![0.0; n], vec![0.0; m]);
            separable.potentials(&mut fs, &mut gs);
            for (exact, found) in f.iter().zip(&fs).chain(g.iter().zip(&gs)) {
                assert!(
                    (exact - found).abs() <= tolerance * exact.abs().max(1.0),
                    "{dim} {epsilon} {iteration}: {exact} {found}"
                );
            }
        }
        let [ma, mb] = stored.marginals(Target::fixed(&a), Target::fixed(&b)).unwrap();
        let [sa, sb] = separable.marginals(Target::fixed(&a), Target::fixed(&b)).unwrap();
        assert!((ma.error - sa.error).abs() <= 10.0 * tolerance);
        assert!((mb.error - sb.error).abs() <= 10.0 * tolerance);
        check_products(&mut stored, &mut separable, tolerance);

        let mut stored = FactoredSelf::new(side(&x));
        let mut separable = FactoredSelf::new(Separable::<T>::new(&x, &lattice, cutoff));
        stored.start(&start).unwrap();
        separable.start(&start).unwrap();
        for _ in 0..10 {
            let targets = [Target::fixed(&a); 2];
            stored.update_y(stored.arrange(targets)[1].ordered()).unwrap();
            separable.update_y(separable.arrange(targets)[1].ordered()).unwrap();
        }
        let (mut f, mut fs, mut same) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        stored.potentials(&mut f, &mut same);
        separable.potentials(&mut fs, &mut same);
        for (exact, found) in f.iter().zip(&fs) {
            assert!((exact - found).abs() <= tolerance * exact.abs().max(1.0));
        }
    }
}

/// Products of plans of any mass.
fn check_products(stored: &mut dyn Between, separable: &mut dyn Between, tolerance: f64) {
    let (n, m) = (stored.rows(), stored.columns());
    let products = |kernel: &mut dyn Between, f: &[f64], g: &[f64], whole| {
        let (mut rows, mut columns) = (vec![0.0; n], vec![0.0; m]);
        kernel.products(f, g, whole, &mut rows, &mut columns).unwrap();
        [rows, columns]
    };
    let (mut start, mut g) = (vec![0.0; n], vec![0.0; m]);
    stored.potentials(&mut start, &mut g);
    for shift in [0.0, 300.0, -300.0] {
        let f: Vec<f64> = start.iter().map(|f| f + shift).collect();
        let exact = products(stored, &f, &g, true);
        let near = |found: [Vec<f64>; 2], tolerance: f64| {
            for (exact, found) in exact.iter().flatten().zip(found.iter().flatten()) {
                let apart = (exact - found).abs();
                assert!(apart <= tolerance * exact.abs().max(1.0), "{shift}: {exact} {found}");
            }
        };
        near(products(stored, &f, &g, false), 1e-12);
        for whole in [true, false] {
            near(products(separable, &f, &g, whole), tolerance);
        }
    }
}

#[test]
fn the_separable_lattice_is_the_stored_lattice_in_double_precision() {
    check::<f64>(40.0, 1e-12);
}

#[test]
fn the_separable_lattice_is_the_stored_lattice_in_single_precision() {
    check::<f32>(18.0, 2e-5);
}

#[test]
fn whole_messages_are_those_of_the_stored_lattice() {
    for (dim, epsilon, shift) in [(1, 1e-4, 3.0), (2, 0.01, 1.0), (3, 0.2, 0.3)] {
        let (x, y) = (cloud(200, dim, 0.0, 3), cloud(200, dim, shift, 4));
        let lattice = lattice(&x, &y, epsilon, 0.1);
        let map = lattice_map(&lattice);
        let f: Vec<f64> = (0..200).map(|i| f64::from(i).sin() * 3.0 / epsilon.sqrt()).collect();
        let mut stored = Stored::<f64>::new(Box::new(Mapped::new(&map, x.clone())));
        let mut separable = Separable::<f32>::new(&x, &lattice, 20.0);
        let (mut y, mut other) = (vec![0.0; lattice.rank()], vec![0.0; lattice.nodes()]);
        stored.message(&f, &mut y);
        separable.message(&f, &mut other);
        for (exact, found) in y.iter().zip(&other) {
            assert!((exact - found).abs() <= 1e-11 * exact.abs().max(1.0), "{exact} {found}");
        }
    }
}
