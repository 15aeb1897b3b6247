//! Plans against dense references: rows, columns, sums, costs and samples, for every kernel.

use std::sync::Arc;

use crate::common::{Kernel, normal, relative, shapes};
use orthant::features::{ArcCosine, FeatureMap, FeatureMatrix, Gaussian, Linear, stride};
use orthant::{
    CostMatrix, Error, Measure, Method, Options, Plan, Points, Precision, Shape, Side, Solution,
    Solver,
    anchors::Draw,
    control::Term,
    mean_squared_distance,
    measure::Values,
    options::{Anchors, Features, Landmarks, OptionsBuilder},
    plan,
    results::MethodUsed,
};
use rayon::ThreadPoolBuilder;

const EPSILON: f64 = 0.5;

/// A cloud with weights that differ, some of them zero.
fn cloud(n: usize, dim: usize, mean: f64, seed: u64) -> Measure<'static> {
    let points = Points::new(normal(n, &vec![mean; dim], 0.6, seed), dim).unwrap();
    let weights: Vec<f64> = (0..n).map(|i| ((i * 7919 + 3) % 11) as f64).collect();
    Measure::weighted(points, &weights).unwrap()
}

fn clouds(n: usize, m: usize, dim: usize) -> (Measure<'static>, Measure<'static>) {
    (cloud(n, dim, 0.0, 1), cloud(m, dim, 0.4, 2))
}

/// The same with positive coordinates.
fn positive(n: usize, m: usize, dim: usize) -> (Measure<'static>, Measure<'static>) {
    let of = |n: usize, seed| {
        let values: Vec<f64> =
            normal(n, &vec![0.0; dim], 1.0, seed).iter().map(|x| x.abs() + 0.1).collect();
        let weights: Vec<f64> = (0..n).map(|i| ((i * 13 + 1) % 7) as f64).collect();
        Measure::weighted(Points::new(values, dim).unwrap(), &weights).unwrap()
    };
    (of(n, 3), of(m, 4))
}

fn squared(mu: &Measure<'_>, nu: &Measure<'_>, i: usize, j: usize) -> f64 {
    let (x, y) = (mu.points(), nu.points());
    (0..mu.dim()).map(|c| (x.coordinate(i, c) - y.coordinate(j, c)).powi(2)).sum()
}

/// `-eps log sum_k phi_k(x_i) psi_k(y_j)`.
fn feature_cost(
    maps: [&dyn FeatureMap; 2],
    measures: [&Measure<'_>; 2],
) -> impl Fn(usize, usize) -> f64 {
    let width = stride(maps[0].rank());
    let rows = [0, 1].map(|c| {
        let points = measures[c].points();
        let mut logs = vec![0.0; points.len() * width];
        maps[c].log_features(points, 0, width, &mut logs);
        logs
    });
    let rank = maps[0].rank();
    move |i, j| {
        let [x, y] = &rows;
        let sum: f64 = (0..rank).map(|k| (x[i * width + k] + y[j * width + k]).exp()).sum();
        -EPSILON * sum.ln()
    }
}

/// `exp((alpha_i + beta_j - c_ij) / eps)`, and zero where a weight is.
fn reference(
    plan: &Plan<'_>,
    [mu, nu]: [&Measure<'_>; 2],
    cost: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let Solution { potential_x: alpha, potential_y: beta, epsilon, .. } = plan.solution();
    let mut out = Vec::new();
    for (i, a) in mu.weights().iter().enumerate() {
        for (j, b) in nu.weights().iter().enumerate() {
            let log = (alpha[i] + beta[j] - cost(i, j)) / epsilon;
            out.push(if *a > 0.0 && *b > 0.0 { log.exp() } else { 0.0 });
        }
    }
    out
}

fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (k, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * e.abs() + 1e-300, "{what}, {k}: {f} and not {e}");
    }
}

fn sums(dense: &[f64], columns: usize) -> [Vec<f64>; 2] {
    let rows = dense.chunks_exact(columns).map(|row| row.iter().sum()).collect();
    let of = |j: usize| dense.iter().skip(j).step_by(columns).sum();
    [rows, (0..columns).map(of).collect()]
}

/// Everything that a plan says agrees with its dense form; returns that.
fn consistent(what: &str, plan: &Plan<'_>, measures: [&Measure<'_>; 2]) -> Vec<f64> {
    let [mu, nu] = measures;
    let Shape { rows, columns } = plan.shape();
    assert_eq!([rows, columns], measures.map(|m| m.weights().len()), "{what}");
    let dense = plan.to_dense().unwrap();
    assert_eq!(dense.len(), rows * columns, "{what}");
    for i in (0..rows).step_by(5) {
        let row = plan.row(i).unwrap();
        assert_close(what, &row, &dense[i * columns..(i + 1) * columns], 1e-10);
        if mu.weights()[i] == 0.0 {
            assert!(row.iter().all(|p| *p == 0.0), "{what}: row {i}");
            assert!(plan.top(i, 3).unwrap().is_empty());
        }
        for j in (0..columns).step_by(7) {
            let entry = plan.entry(i, j).unwrap();
            assert_close(what, &[entry], &[dense[i * columns + j]], 1e-10);
        }
    }
    for j in (0..columns).step_by(3) {
        let column = plan.column(j).unwrap();
        let expected: Vec<f64> = dense.iter().skip(j).step_by(columns).copied().collect();
        assert_close(what, &column, &expected, 1e-10);
        assert!(nu.weights()[j] > 0.0 || column.iter().all(|p| *p == 0.0), "{what}: {j}");
    }
    let [x, y] = sums(&dense, columns);
    let [r, c] = plan.marginals().unwrap();
    assert_close(what, &r, &x, 1e-10);
    assert_close(what, &c, &y, 1e-10);
    let mass: f64 = dense.iter().sum();
    assert!((plan.mass().unwrap() / mass - 1.0).abs() < 1e-10, "{what}");
    // The solver's own account of the mass and the marginals.
    let s = plan.solution();
    assert!(relative(s.mass, mass) < 1e-6, "{what}: {mass} and not {}", s.mass);
    for (sums, measure, gap) in [(x, mu, s.marginal_gap_x), (y, nu, s.marginal_gap_y)] {
        let given = if s.rho.iter().all(|rho| rho.is_infinite()) { 1.0 } else { measure.mass() };
        let apart: f64 =
            sums.iter().zip(measure.weights()).map(|(r, a)| (r - given * a).abs()).sum();
        assert!((apart - gap).abs() < 1e-6 * mass.max(given), "{what}: {apart} and not {gap}");
    }
    dense
}

/// `<P, C>`.
fn total_cost(dense: &[f64], columns: usize, cost: impl Fn(usize, usize) -> f64) -> f64 {
    dense.iter().enumerate().map(|(k, p)| p * cost(k / columns, k % columns)).sum()
}

fn builder(method: Method) -> OptionsBuilder {
    Options::builder(EPSILON).method(method).tolerance(1e-9)
}

/// The plan of a method has the entries that potentials and costs give, and their cost.
fn check<'d>(
    what: &str,
    kernel: impl Into<Kernel<'d>>,
    measures: [&Measure<'_>; 2],
    cost: impl Fn(usize, usize) -> f64,
    tolerance: f64,
) {
    let ([mu, nu], kernel) = (measures, kernel.into());
    let options = builder(kernel.method.clone()).rank(40).build().unwrap();
    let plan = kernel.solver(&options).plan(mu, nu).unwrap();
    let dense = consistent(what, &plan, measures);
    let columns = nu.weights().len();
    assert_close(what, &dense, &reference(&plan, measures, &cost), tolerance);
    let total = total_cost(&dense, columns, &cost);
    let found = plan.transport_cost();
    assert!((found - total).abs() < 1e-8 * total.abs().max(1.0), "{what}: {found} and not {total}");
    // The same solution as without a plan.
    let solution = kernel.solver(&options).rot(mu, nu).unwrap();
    assert_eq!(plan.solution().potential_x, solution.potential_x, "{what}");
    let largest = plan.top(2, 4).unwrap();
    let mut row: Vec<(usize, f64)> = plan.row(2).unwrap().into_iter().enumerate().collect();
    row.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    assert_eq!(largest, row[..4], "{what}");
    assert_eq!(plan.into_solution().value, solution.value);
}

#[test]
fn exact_plans_are_those_of_potentials_and_costs() {
    let (mu, nu) = clouds(31, 24, 3);
    let both = [&mu, &nu];
    let cost = |i, j| squared(&mu, &nu, i, j);
    check("online", Method::online(), both, cost, 1e-11);
    check("dense", Method::dense(), both, cost, 1e-11);
    check("auto", Method::Auto, both, cost, 1e-11);
    let values: Vec<f64> = (0..31 * 24).map(|k| 3.0 + f64::from((k * 37) % 101) / 50.0).collect();
    let matrix = CostMatrix::new(values.clone(), 31, 24).unwrap();
    for method in [Method::Auto, Method::dense(), Method::online()] {
        let kernel = Kernel::costs(method, matrix.clone());
        check("matrix", kernel, both, |i, j| values[i * 24 + j], 1e-11);
    }
}

#[test]
fn factored_plans_are_those_of_potentials_and_features() {
    let (mu, nu) = clouds(31, 24, 3);
    let both = [&mu, &nu];
    let explicit = |n: usize, seed| -> Vec<f64> {
        normal(n, &[0.0; 6], 1.0, seed).iter().map(|x| x.exp()).collect()
    };
    let (xi, zeta) = (explicit(31, 5), explicit(24, 6));
    let cost = |i: usize, j: usize| {
        let sum: f64 = (0..6).map(|k| xi[i * 6 + k] * zeta[j * 6 + k]).sum();
        -EPSILON * sum.ln()
    };
    let (a, b) =
        (FeatureMatrix::new(&xi, 31, 6).unwrap(), FeatureMatrix::new(&zeta, 24, 6).unwrap());
    for method in [Method::Auto, Method::gaussian(), Method::dense(), Method::online()] {
        let what = format!("explicit, {method:?}");
        check(&what, Kernel::features(method, a.clone(), b.clone()), both, cost, 1e-11);
    }

    let arc = ArcCosine::new(3, 1, 0.1, 1.5, 40, 0).unwrap();
    let method = Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 };
    let cost = feature_cost([&arc, &arc], both);
    check("arccos", Method::Factored(method), both, cost, 1e-11);

    let (one, two) = positive(31, 24, 5);
    let linear = Linear::new(5).unwrap();
    let cost = feature_cost([&linear, &linear], [&one, &two]);
    check("linear", Method::Factored(Features::Linear), [&one, &two], cost, 1e-11);
    let pair = Features::Pair(Arc::new(Linear::new(5).unwrap()), Arc::new(linear));
    let cost = feature_cost([&linear, &linear], [&one, &two]);
    check("pair", Method::Factored(pair), [&one, &two], cost, 1e-11);
    let map = Gaussian::paper(&mu, &nu, EPSILON, 40, 0, true).unwrap();
    let method = Method::Factored(Features::Map(Arc::new(map.clone())));
    check("map", method, both, feature_cost([&map, &map], both), 1e-10);
}

/// Features of the squared Euclidean cost: their own kernel is not public, but the paper's is, and `<P, C>` is of
/// the squared Euclidean cost.
#[test]
fn plans_of_gaussian_features_agree_with_themselves() {
    let (mu, nu) = clouds(37, 29, 2);
    let both = [&mu, &nu];
    let gaussian = |anchors| Method::Factored(Features::Gaussian(anchors));
    for (what, method, certify) in [
        ("paper", Method::paper(), false),
        ("sobol", Method::gaussian(), false),
        ("certified", Method::gaussian(), true),
        ("iid", gaussian(Anchors::Random(Draw::Iid)), false),
        ("lattice", Method::lattice(), false),
        ("stored lattice", gaussian(Anchors::Lattice { stored: true }), false),
        ("nystrom", Method::Nystrom(Landmarks::Leverage), false),
    ] {
        let options = builder(method).rank(50).certify(certify).build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        let dense = consistent(what, &plan, both);
        let cost = total_cost(&dense, 29, |i, j| squared(&mu, &nu, i, j));
        assert!((plan.transport_cost() - cost).abs() < 1e-9, "{what}");
        if what == "paper" {
            let map = Gaussian::paper(&mu, &nu, EPSILON, 50, 0, true).unwrap();
            let expected = reference(&plan, both, feature_cost([&map, &map], both));
            assert_close(what, &dense, &expected, 1e-10);
        }
    }
}

/// A fine lattice has the exact plan, in one to four dimensions, whole or of a given rank.
#[test]
fn plans_of_lattices_are_near_the_exact_ones() {
    for (dim, rank) in [(1, None), (2, None), (2, Some(300)), (3, None), (4, None)] {
        let (mu, nu) = clouds(40, 30, dim);
        let (epsilon, accuracy) = if dim == 4 { (3.0, 1e-3) } else { (EPSILON, 1e-8) };
        let mut builder = Options::builder(epsilon).method(Method::lattice()).accuracy(accuracy);
        if let Some(rank) = rank {
            builder = builder.rank(rank);
        }
        let options = builder.build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        let dense = consistent(&format!("{dim}"), &plan, [&mu, &nu]);
        let exact = reference(&plan, [&mu, &nu], |i, j| squared(&mu, &nu, i, j));
        let apart: f64 = dense.iter().zip(&exact).map(|(a, b)| (a - b).abs()).sum();
        assert!(apart < if dim == 4 { 1e-2 } else { 1e-5 }, "{dim}: {apart}");
    }
}

/// An automatic choice of random anchors shifts its potentials to the best estimate, and not the plan.
#[test]
fn automatic_anchors_have_a_plan_of_mass_one() {
    let (mu, nu) = clouds(600, 500, 6);
    let options = Options::builder(20.0).allow_exact(false).accuracy(0.1).build().unwrap();
    let plan = plan(&mu, &nu, &options).unwrap();
    assert!(plan.solution().method == MethodUsed::Gaussian && plan.solution().converged());
    assert!((plan.mass().unwrap() - 1.0).abs() < 1e-9);
    let [rows, _] = plan.marginals().unwrap();
    let error: f64 = rows.iter().zip(mu.weights()).map(|(r, a)| (r - a).abs()).sum();
    assert!(error < 1e-5, "{error}");
}

/// The plan of relaxed marginals by plain alternation, in logarithms: `log u = log a - tau_x log K v`, and so for `v`.
fn relaxed(
    [mu, nu]: [&Measure<'_>; 2],
    rho: [f64; 2],
    cost: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let log = |m: &Measure<'_>| m.weights().iter().map(|w| (m.mass() * w).ln()).collect::<Vec<_>>();
    let (a, b) = (log(mu), log(nu));
    let [tau_x, tau_y] = rho.map(|rho| 1.0 / (1.0 + EPSILON / rho));
    let kernel = |i: usize, j: usize| -cost(i, j) / EPSILON;
    let (mut f, mut g) = (a.clone(), b.clone());
    for _ in 0..400 {
        for (i, f) in f.iter_mut().enumerate() {
            let sum: f64 = g.iter().enumerate().map(|(j, g)| (kernel(i, j) + g).exp()).sum();
            *f = a[i] - tau_x * sum.ln();
        }
        for (j, g) in g.iter_mut().enumerate() {
            let sum: f64 = f.iter().enumerate().map(|(i, f)| (kernel(i, j) + f).exp()).sum();
            *g = b[j] - tau_y * sum.ln();
        }
    }
    let entry =
        |k: usize| (f[k / b.len()] + g[k % b.len()] + kernel(k / b.len(), k % b.len())).exp();
    (0..a.len() * b.len()).map(entry).collect()
}

/// Unequal masses, and marginals relaxed in different ways.
fn relaxed_clouds(dim: usize) -> (Measure<'static>, Measure<'static>) {
    let (mu, nu) = clouds(31, 24, dim);
    (mu.with_mass(1.7).unwrap(), nu.with_mass(0.6).unwrap())
}

const RHO: [[f64; 2]; 4] = [[1.0, 0.3], [0.4, f64::INFINITY], [f64::INFINITY, 0.8], [1.28, 1.28]];

/// The plan of a method agrees with a dense solver of the relaxed problem: in each entry, or (where the kernel is
/// near that of the cost only) as a whole.
fn check_relaxed(
    what: &str,
    options: &OptionsBuilder,
    measures: [&Measure<'_>; 2],
    cost: impl Fn(usize, usize) -> f64,
    near: Option<f64>,
) {
    check_relaxed_of(what, (options, &Method::Auto.into()), measures, cost, near);
}

/// The same of a kernel that may be given by matrices.
fn check_relaxed_of(
    what: &str,
    (options, kernel): (&OptionsBuilder, &Kernel<'_>),
    measures: [&Measure<'_>; 2],
    cost: impl Fn(usize, usize) -> f64,
    near: Option<f64>,
) {
    let columns = measures[1].weights().len();
    for rho in RHO {
        let what = format!("{what}, rho {rho:?}");
        let options = options.clone().tolerance(1e-12);
        let options =
            if rho[0] == rho[1] { options.reach(0.8) } else { options.rho_x(rho[0]).rho_y(rho[1]) };
        let options = options.build().unwrap();
        let plan = kernel.solver(&options).plan(measures[0], measures[1]).unwrap();
        let dense = consistent(&what, &plan, measures);
        let expected = relaxed(measures, rho, &cost);
        let mass: f64 = expected.iter().sum();
        assert!((mass - 1.0).abs() > 1e-3, "{what}: a mass that says nothing, {mass}");
        let (found, own) = (plan.transport_cost(), total_cost(&dense, columns, &cost));
        if let Some(near) = near {
            let apart: f64 = dense.iter().zip(&expected).map(|(p, e)| (p - e).abs()).sum();
            assert!(apart < near * mass, "{what}: {apart} of {mass}");
        } else {
            assert_close(&what, &dense, &expected, 1e-9);
        }
        assert!((found - own).abs() < 1e-9 * mass, "{what}: {found} and not {own}");
        if plan.solution().method != MethodUsed::Nystrom {
            assert_samples(&what, &plan, 20_000);
        }
    }
}

#[test]
fn relaxed_plans_of_exact_kernels_are_those_of_a_dense_solver() {
    let (mu, nu) = relaxed_clouds(3);
    let both = [&mu, &nu];
    let cost = |i, j| squared(&mu, &nu, i, j);
    check_relaxed("online", &builder(Method::online()), both, cost, None);
    check_relaxed("dense", &builder(Method::dense()), both, cost, None);
    check_relaxed("no gauge", &builder(Method::online()).gauge(false), both, cost, None);
    let values: Vec<f64> = (0..31 * 24).map(|k| 0.5 + f64::from((k * 37) % 101) / 50.0).collect();
    let kernel = Kernel::costs(Method::dense(), CostMatrix::new(&values, 31, 24).unwrap());
    let asked = (&builder(Method::dense()), &kernel);
    check_relaxed_of("matrix", asked, both, |i, j| values[i * 24 + j], None);
    // All points are landmarks.
    let nystrom = builder(Method::nystrom()).rank(55);
    check_relaxed("nystrom", &nystrom, both, cost, Some(1e-6));
}

#[test]
fn relaxed_plans_of_features_are_those_of_a_dense_solver() {
    let (mu, nu) = relaxed_clouds(2);
    let both = [&mu, &nu];
    let arc = ArcCosine::new(2, 1, 0.1, 1.5, 40, 0).unwrap();
    let method = Method::Factored(Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 });
    let cost = feature_cost([&arc, &arc], both);
    check_relaxed("arccos", &builder(method).rank(40), both, cost, None);
    let map = Gaussian::paper(&mu, &nu, EPSILON, 40, 0, true).unwrap();
    let method = Method::Factored(Features::Map(Arc::new(map.clone())));
    check_relaxed("map", &builder(method), both, feature_cost([&map, &map], both), None);

    let cost = |i, j| squared(&mu, &nu, i, j);
    let stored = Method::Factored(Features::Gaussian(Anchors::Lattice { stored: true }));
    for (what, options, near) in [
        ("lattice", builder(Method::lattice()).accuracy(1e-9), 1e-7),
        ("lattice of given rank", builder(Method::lattice()).rank(400), 1e-3),
        ("stored lattice", builder(stored).accuracy(1e-9), 1e-7),
        ("paper", builder(Method::paper()).rank(4000), 0.3),
        ("sobol", builder(Method::gaussian()).rank(2000), 0.03),
        ("certified", builder(Method::gaussian()).rank(2000).certify(true), 0.03),
        ("adaptive", builder(Method::adaptive()).rank(2000), 0.03),
        ("polished", builder(Method::adaptive()).rank(100).polish(true), 1e-9),
        ("polished nystrom", builder(Method::nystrom()).rank(50).polish(true), 1e-9),
    ] {
        check_relaxed(what, &options, both, cost, Some(near));
    }
}

/// Larger epsilons on the way leave nothing in the plan.
#[test]
fn plans_of_annealed_solutions_are_those_of_the_last_epsilon() {
    let (mu, nu) = clouds(60, 50, 2);
    for (method, rho) in
        [(Method::online(), f64::INFINITY), (Method::online(), 0.5), (Method::lattice(), 0.5)]
    {
        let what = format!("{method:?} {rho}");
        let options = Options::builder(4e-3).method(method).rho_x(rho).rho_y(rho).tolerance(1e-8);
        let options = options.max_iterations(100_000).build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        assert!(plan.solution().stages > 1 && plan.solution().converged(), "{what}");
        check_round(&what, &plan, [&mu, &nu]);
    }
}

/// Where features are the cost and all pairs were too many for the solve, their plan knows its cost still:
/// `c_ij = alpha_i + beta_j - eps log P_ij`.
#[test]
fn costs_over_many_pairs_have_the_mass_of_the_plan() {
    let (mu, nu) = (cloud(1500, 2, 0.0, 1), cloud(1400, 2, 0.4, 2));
    let (mu, nu) = (mu.with_mass(1.7).unwrap(), nu.with_mass(0.6).unwrap());
    let method = Method::Factored(Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 });
    let options = builder(method).rank(1200).reach(0.8).build().unwrap();
    let plan = plan(&mu, &nu, &options).unwrap();
    let s = plan.solution();
    assert!(s.transport_cost.is_none() && (s.mass - 1.0).abs() > 0.01);
    let dense = plan.to_dense().unwrap();
    let log = |k: usize| if dense[k] > 0.0 { dense[k].ln() } else { 0.0 };
    let cost = total_cost(&dense, 1400, |i, j| {
        s.potential_x[i] + s.potential_y[j] - EPSILON * log(i * 1400 + j)
    });
    assert!(relative(plan.transport_cost(), cost) < 1e-9, "{} {cost}", plan.transport_cost());
}

/// A plan whose mass is too small for a number has samples all the same.
#[test]
fn plans_of_no_mass_have_samples() {
    let x = Measure::uniform(Points::new(vec![0.0, 0.02, 0.03], 1).unwrap());
    let y = Measure::uniform(Points::new(vec![100.0, 100.01], 1).unwrap());
    for method in [Method::online(), Method::lattice(), Method::gaussian()] {
        let what = format!("{method:?}");
        let options = Options::builder(1.0).method(method).rho_x(1.0).rho_y(1.0).build().unwrap();
        let plan = plan(&x, &y, &options).unwrap();
        assert_eq!((plan.mass().unwrap(), plan.solution().mass), (0.0, 0.0), "{what}");
        assert_eq!(plan.to_dense().unwrap(), [0.0; 6], "{what}");
        let s = plan.solution();
        let log =
            |k: usize| s.potential_x[k / 2] + s.potential_y[k % 2] - squared(&x, &y, k / 2, k % 2);
        let expected: Vec<f64> = (0..6).map(|k| (log(k) - log(0)).exp()).collect();
        let mut found = [0.0; 6];
        for [i, j] in plan.sample(20_000, 1).unwrap() {
            found[i * 2 + j] += 1.0;
        }
        assert_chi_squared(&what, &found, &expected);
    }
}

/// Sums, mass and cost of a plan are those that the solver noted, so plan and solution are of one round.
fn check_round(what: &str, plan: &Plan<'_>, measures: [&Measure<'_>; 2]) {
    let dense = consistent(what, plan, measures);
    let [mu, nu] = measures;
    let cost = total_cost(&dense, nu.weights().len(), |i, j| squared(mu, nu, i, j));
    let noted = plan.solution().transport_cost.unwrap();
    assert!(relative(cost, noted) < 1e-9, "{what}: {cost} and not {noted}");
}

/// Of the two rounds of adaptive anchors either may have the narrower certificate.
#[test]
fn adaptive_plans_are_those_of_the_round_that_is_kept() {
    let mut rounds = [0, 0];
    for shape in shapes::Shape::ALL {
        for (seed, rho) in [(1, f64::INFINITY), (2, f64::INFINITY), (3, 2.0)] {
            let [mu, nu] =
                shape.pair(300, 200, 5, seed).map(|p| Measure::uniform(Points::new(p, 5).unwrap()));
            let epsilon = 0.2 * mean_squared_distance(&mu, &nu).unwrap();
            let options = Options::builder(epsilon).method(Method::adaptive()).rank(300);
            let options = options.rho_x(rho).rho_y(rho).tolerance(1e-10).build().unwrap();
            let plan = plan(&mu, &nu, &options).unwrap();
            let what = format!("{shape:?} {seed}, {:?}", plan.solution().reason);
            check_round(&what, &plan, [&mu, &nu]);
            // The first one gives no reason.
            rounds[usize::from(plan.solution().reason.is_some())] += 1;
        }
    }
    assert!(rounds[0] > 0 && rounds[1] > 0, "{rounds:?}");
}

/// An automatic rank that was raised, and the exact kernel after features.
#[test]
fn plans_of_further_rounds_are_those_of_the_last() {
    let [mu, nu] = shapes::Shape::Clusters
        .pair(700, 600, 6, 4)
        .map(|p| Measure::uniform(Points::new(p, 6).unwrap()));
    let epsilon = 0.3 * mean_squared_distance(&mu, &nu).unwrap();
    for rho in [f64::INFINITY, 1.0] {
        let options = || Options::builder(epsilon).rho_x(rho).rho_y(rho).tolerance(1e-10);
        let raised = options().allow_exact(false).accuracy(5e-4).build().unwrap();
        let raised = plan(&mu, &nu, &raised).unwrap();
        let reason = raised.solution().reason.clone().unwrap();
        assert!(reason.contains("were too few"), "{reason}");
        check_round(&reason, &raised, [&mu, &nu]);
        for method in [Method::gaussian(), Method::adaptive(), Method::nystrom()] {
            let what = format!("polished {method:?}");
            let options = options().method(method).rank(300).polish(true).build().unwrap();
            let plan = plan(&mu, &nu, &options).unwrap();
            assert!(plan.solution().polished.is_some(), "{what}");
            check_round(&what, &plan, [&mu, &nu]);
            let exact = reference(&plan, [&mu, &nu], |i, j| squared(&mu, &nu, i, j));
            assert_close(&what, &plan.to_dense().unwrap(), &exact, 1e-9);
            assert!(plan.sample(10, 0).is_ok());
        }
    }
}

/// Single precision and few iterations: the plan is what the potentials say, whatever its marginals.
#[test]
fn plans_that_did_not_converge_are_plans() {
    let (mu, nu) = clouds(300, 280, 2);
    for method in [Method::gaussian(), Method::lattice(), Method::online()] {
        let options = Options::builder(0.05)
            .method(method)
            .max_iterations(2)
            .precision(Precision::F32)
            .build()
            .unwrap();
        let plan = Solver::new(&options).plan(&mu, &nu).unwrap();
        assert!(!plan.solution().converged());
        let dense = plan.to_dense().unwrap();
        let [rows, columns] = sums(&dense, 280);
        let [r, c] = plan.marginals().unwrap();
        assert_close("rows", &r, &rows, 1e-9);
        assert_close("columns", &c, &columns, 1e-9);
        let error: f64 = rows.iter().zip(mu.weights()).map(|(r, a)| (r - a).abs()).sum();
        assert!((error / plan.solution().marginal_error_x - 1.0).abs() < 1e-3, "{error}");
    }
}

/// Chi squared of some counts against probabilities; bins that expect fewer than ten are put together.
fn assert_chi_squared(what: &str, found: &[f64], expected: &[f64]) {
    let (count, mass): (f64, f64) = (found.iter().sum(), expected.iter().sum());
    let (mut chi, mut bins, mut rest) = (0.0, 0.0, [0.0, 0.0]);
    for (f, p) in found.iter().zip(expected) {
        let e = count * p / mass;
        assert!(e > 0.0 || *f == 0.0, "{what}: a pair without mass");
        rest = [rest[0] + f, rest[1] + e];
        if rest[1] >= 10.0 {
            chi += (rest[0] - rest[1]).powi(2) / rest[1];
            bins += 1.0;
            rest = [0.0, 0.0];
        }
    }
    let degrees = bins - 1.0;
    assert!((chi - degrees).abs() < 5.0 * (2.0 * degrees).sqrt(), "{what}: {chi} for {degrees}");
}

fn assert_samples(what: &str, plan: &Plan<'_>, count: usize) {
    let Shape { rows, columns } = plan.shape();
    let dense = plan.to_dense().unwrap();
    let pairs = plan.sample(count, 7).unwrap();
    assert_eq!(pairs.len(), count);
    let mut found = vec![0.0; rows * columns];
    for &[i, j] in &pairs {
        found[i * columns + j] += 1.0;
    }
    assert_chi_squared(what, &found, &dense);
    let [x, y] = sums(&dense, columns);
    let [fx, fy] = sums(&found, columns);
    assert_chi_squared(what, &fx, &x);
    assert_chi_squared(what, &fy, &y);
    // Independent: what comes next does not know what came before. And the first are no others.
    let (half, mid) = (columns / 2, rows / 2);
    let side = |[i, j]: [usize; 2]| usize::from(i < mid) * 2 + usize::from(j < half);
    let mut expected = [0.0; 4];
    for (k, p) in dense.iter().enumerate() {
        expected[side([k / columns, k % columns])] += p;
    }
    let mut steps = [0.0; 16];
    for two in pairs.chunks_exact(2) {
        steps[side(two[0]) * 4 + side(two[1])] += 1.0;
    }
    let product: Vec<f64> = (0..16).map(|k| expected[k / 4] * expected[k % 4]).collect();
    assert_chi_squared(what, &steps, &product);
    assert_eq!(plan.sample(100, 7).unwrap(), pairs[..100], "{what}");
    assert_ne!(plan.sample(100, 8).unwrap(), pairs[..100], "{what}");
    assert!(plan.sample(0, 7).unwrap().is_empty());
}

#[test]
fn samples_are_those_of_the_plan() {
    let (mu, nu) = clouds(41, 33, 2);
    let xi: Vec<f64> = (0..41 * 5).map(|k| 0.1 + f64::from((k * 13) % 17)).collect();
    let zeta: Vec<f64> = (0..33 * 5).map(|k| 0.1 + f64::from((k * 5) % 19)).collect();
    let (xi, zeta) =
        (FeatureMatrix::new(&xi, 41, 5).unwrap(), FeatureMatrix::new(&zeta, 33, 5).unwrap());
    let explicit = |method| Kernel::features(method, xi.clone(), zeta.clone());
    let costs: Vec<f64> = (0..41 * 33).map(|k| f64::from((k * 37) % 101) / 30.0).collect();
    let matrix = CostMatrix::new(&costs, 41, 33).unwrap();
    let arccos = Features::ArcCosine { order: 0, kappa: 0.1, sigma: 1.5 };
    let stored = Features::Gaussian(Anchors::Lattice { stored: true });
    for (what, kernel) in [
        ("online", Method::online().into()),
        ("dense", Method::dense().into()),
        ("matrix", Kernel::costs(Method::online(), matrix)),
        ("features, exact", explicit(Method::dense())),
        ("explicit", explicit(Method::Auto)),
        ("paper", Method::paper().into()),
        ("sobol", Method::gaussian().into()),
        ("arccos", Method::Factored(arccos).into()),
        ("stored lattice", Method::Factored(stored).into()),
        ("thinned lattice", Method::lattice().into()),
    ] {
        let method = kernel.method.clone();
        let options = Options::builder(EPSILON).method(method).rank(60).build().unwrap();
        assert_samples(what, &kernel.solver(&options).plan(&mu, &nu).unwrap(), 60_000);
    }
    let (one, two) = positive(41, 33, 4);
    let options =
        Options::builder(EPSILON).method(Method::Factored(Features::Linear)).build().unwrap();
    assert_samples("linear", &plan(&one, &two, &options).unwrap(), 60_000);
}

/// Lattices with several cells, tiles and chunks, wide and narrow kernels.
#[test]
fn samples_of_lattices_are_those_of_the_plan() {
    for (dim, n, m, epsilon) in [
        (1, 60, 50, 0.5),
        (1, 2600, 300, 1e-3),
        (2, 2500, 1100, 0.02),
        (3, 40, 2300, 0.3),
        (4, 60, 50, 1.5),
    ] {
        let (mu, nu) = clouds(n, m, dim);
        let options =
            Options::builder(epsilon).method(Method::lattice()).accuracy(1e-2).build().unwrap();
        assert_samples(&format!("{dim}"), &plan(&mu, &nu, &options).unwrap(), 200_000);
    }
}

/// Features over several chunks of points.
#[test]
fn samples_of_large_clouds_are_those_of_the_plan() {
    let (mu, nu) = clouds(1300, 900, 3);
    let options = Options::builder(EPSILON).method(Method::gaussian()).rank(100).build().unwrap();
    assert_samples("sobol", &plan(&mu, &nu, &options).unwrap(), 300_000);
}

#[test]
fn samples_do_not_depend_on_the_number_of_threads() {
    let (mu, nu) = clouds(2500, 1300, 2);
    for method in [Method::gaussian(), Method::lattice(), Method::online()] {
        let options = Options::builder(EPSILON).method(method).build().unwrap();
        let on = |threads| {
            ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
                let plan = plan(&mu, &nu, &options).unwrap();
                let row = plan.row(1).unwrap();
                let bits: Vec<u64> = row.iter().map(|p| p.to_bits()).collect();
                (plan.sample(5000, 3).unwrap(), bits, plan.mass().unwrap().to_bits())
            })
        };
        let one = on(1);
        assert!(one == on(2) && one == on(3));
    }
}

/// Both supports in one point each, far from any other, at an epsilon that is small for them.
#[test]
fn extreme_plans_have_rows_and_samples() {
    let x = Measure::uniform(Points::new(vec![0.0, 1.0, 1e3], 1).unwrap());
    let y = Measure::uniform(Points::new(vec![0.0, 1e3 + 1.0], 1).unwrap());
    for method in [Method::online(), Method::lattice(), Method::gaussian()] {
        let options = Options::builder(1.0).method(method.clone()).accuracy(1e-2).build().unwrap();
        let found = plan(&x, &y, &options);
        if matches!(method, Method::Factored(Features::Gaussian(Anchors::Lattice { .. }))) {
            // Powers over half of this lattice leave the range of the numbers.
            assert!(matches!(found, Err(Error::Breakdown { .. })), "{:?}", found.err());
            continue;
        }
        let plan = found.unwrap_or_else(|error| panic!("{method:?}: {error}"));
        let pairs = plan.sample(1000, 0).unwrap();
        assert!(pairs.iter().all(|[i, j]| plan.entry(*i, *j).unwrap() > 0.0), "{method:?}");
        assert!(plan.row(0).unwrap().iter().all(|p| p.is_finite()));
    }
}

#[test]
fn bad_requests_are_errors() {
    let (mu, nu) = clouds(20, 10, 2);
    let options = Options::builder(EPSILON).max_memory(1500).allow_exact(true).build().unwrap();
    let small = plan(&mu, &nu, &options).unwrap();
    for (error, what, index, len) in [
        (small.row(20).unwrap_err(), "row", 20, 20),
        (small.column(10).unwrap_err(), "column", 10, 10),
        (small.entry(0, usize::MAX).unwrap_err(), "column", usize::MAX, 10),
        (small.entry(99, 0).unwrap_err(), "row", 99, 20),
        (small.top(20, 1).unwrap_err(), "row", 20, 20),
    ] {
        assert_eq!(error, Error::Index { what, index, len });
        assert!(error.to_string().contains(&format!("no {what} {index}")), "{error}");
    }
    // 1600 bytes of a plan.
    let error = small.to_dense().unwrap_err();
    assert!(matches!(error, Error::Memory { what: "the plan", bytes: 1600.0, .. }), "{error}");
    assert!(error.to_string().contains("rows, columns or samples"), "{error}");
    for count in [usize::MAX, usize::MAX / 16, 1 << 40] {
        assert!(matches!(small.sample(count, 0), Err(Error::Memory { what: "the pairs", .. })));
    }
    assert_eq!(small.top(1, usize::MAX).unwrap().len(), 9);

    let options = Options::builder(EPSILON).method(Method::nystrom()).rank(25).build().unwrap();
    let signed = plan(&mu, &nu, &options).unwrap();
    assert_eq!(signed.sample(10, 0).unwrap_err(), Error::SignedPlan);
    assert!(signed.row(3).is_ok() && signed.to_dense().is_ok());
    assert!(plan(&mu, &nu, &Options::builder(1e-300).build().unwrap()).is_err());
}

/// Large plans are refused as matrices, and not by chance.
#[test]
fn large_plans_are_never_dense() {
    let (mu, nu) = clouds(20_000, 10_000, 1);
    let options = Options::builder(EPSILON).method(Method::lattice()).build().unwrap();
    let plan = plan(&mu, &nu, &options).unwrap();
    let error = plan.to_dense().unwrap_err();
    assert!(error.to_string().contains("1.5 GiB"), "{error}");
    assert_eq!(plan.row(1).unwrap().len(), 10_000);
    assert_eq!(plan.column(1).unwrap().len(), 20_000);
    assert_eq!(plan.sample(1000, 1).unwrap().len(), 1000);
}

/// An observer of the solve is free once there is a plan.
#[test]
fn plans_do_not_keep_observers() {
    let (mu, nu) = clouds(20, 10, 2);
    let options = Options::builder(EPSILON).build().unwrap();
    let mut seen = 0;
    let mut observer = |progress: &mut orthant::control::Progress<'_>| {
        assert_eq!(progress.term, Term::Cross);
        seen += 1;
        orthant::control::Next::Continue
    };
    let plan = Solver::new(&options).observer(&mut observer).plan(&mu, &nu).unwrap();
    assert_eq!(seen, plan.solution().iterations);
}

/// A plan that outlives its measures, its options and its matrices.
fn returned(method: Method, given: Option<&CostMatrix<'static>>) -> Plan<'static> {
    let (mu, nu) = clouds(31, 24, 2);
    let options = builder(method).build().unwrap();
    let solver = Solver::new(&options);
    let solver = match given {
        None => solver,
        Some(matrix) => solver.costs(matrix.clone()),
    };
    solver.plan(&mu, &nu).unwrap()
}

#[test]
fn plans_of_owned_points_can_be_returned() {
    let (mu, nu) = clouds(31, 24, 2);
    for method in [Method::Auto, Method::gaussian(), Method::lattice(), Method::nystrom()] {
        let options = builder(method.clone()).build().unwrap();
        let here = plan(&mu, &nu, &options).unwrap();
        let there = returned(method, None);
        assert_eq!(there.to_dense().unwrap(), here.to_dense().unwrap());
        let gradient = |plan: &Plan<'_>| plan.gradient().weights(Side::X).unwrap();
        assert_eq!(gradient(&there), gradient(&here));
    }
    let values: Vec<f64> = (0..31 * 24).map(|k| f64::from((k * 37) % 101) / 50.0).collect();
    let matrix = CostMatrix::new(values, 31, 24).unwrap();
    let plan = returned(Method::online(), Some(&matrix));
    drop(matrix);
    consistent("returned", &plan, [&mu, &nu]);
    // On a thread of its own.
    let mass = std::thread::spawn(move || plan.mass().unwrap()).join().unwrap();
    assert!((mass - 1.0).abs() < 1e-8);
}

#[test]
fn clones_of_measures_and_matrices_share_their_numbers() {
    let at = |values: &Values<'_>| match values {
        Values::F32(values) => values.as_ptr() as usize,
        Values::F64(values) => values.as_ptr() as usize,
    };
    let (mu, _) = clouds(31, 24, 2);
    let moved = mu.clone().with_mass(3.0).unwrap();
    assert_eq!(at(mu.points().values()), at(moved.points().values()));
    assert_eq!(mu.weights().as_ptr(), moved.weights().as_ptr());
    assert_eq!((mu.mass() == moved.mass(), moved.mass()), (false, 3.0));
    let costs = CostMatrix::new(vec![1.0_f32; 12], 3, 4).unwrap();
    assert_eq!(at(costs.values()), at(costs.clone().values()));
    let features = FeatureMatrix::new(vec![1.0; 12], 3, 4).unwrap();
    assert_eq!(at(features.values()), at(features.clone().values()));
}
