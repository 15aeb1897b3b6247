//! Unbalanced transport: closed forms, a convex solver of its own, and all operators against each other.

use std::sync::Arc;

use crate::common::{Kernel, figure_1, normal, relative};
use orthant::anchors::Draw;
use orthant::features::{FeatureMatrix, Gaussian};
use orthant::{
    Certainty, CostMatrix, Divergence, Error, Measure, Method, Options, Points, Precision,
    Solution, Solver, Stop,
    control::{Next, Progress},
    divergence, mean_squared_distance,
    options::{Algorithm, Anchors, Cost, Features, OptionsBuilder},
    results::MethodUsed,
    rot,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::ThreadPoolBuilder;

/// A measure of `n` points with weights that are not equal and sum to `mass`.
fn cloud(n: usize, mean: &[f64], deviation: f64, mass: f64, seed: u64) -> Measure<'static> {
    let points = Points::new(normal(n, mean, deviation, seed), mean.len()).unwrap();
    let raw: Vec<f64> = (0..n).map(|i| 1.0 + ((i * 7919) % 13) as f64).collect();
    let total: f64 = raw.iter().sum();
    let weights: Vec<f64> = raw.iter().map(|w| w * mass / total).collect();
    Measure::weighted(points, &weights).unwrap()
}

fn dirac(x: f64, mass: f64) -> Measure<'static> {
    Measure::weighted(Points::new(vec![x], 1).unwrap(), &[mass]).unwrap()
}

/// The weights as they were given.
fn given(m: &Measure<'_>) -> Vec<f64> {
    m.weights().iter().map(|w| w * m.mass()).collect()
}

fn costs(mu: &Measure<'_>, nu: &Measure<'_>) -> Vec<f64> {
    let (x, y) = (mu.points(), nu.points());
    (0..x.len())
        .flat_map(|i| (0..y.len()).map(move |j| (i, j)))
        .map(|(i, j)| (0..x.dim()).map(|k| (x.coordinate(i, k) - y.coordinate(j, k)).powi(2)).sum())
        .collect()
}

fn kl(p: f64, q: f64) -> f64 {
    if p == 0.0 { q } else { p * (p / q).ln() - p + q }
}

/// `rho KL(p | q)`; an infinite `rho` allows no difference.
fn price(rho: f64, p: &[f64], q: &[f64]) -> f64 {
    if rho.is_infinite() {
        return 0.0;
    }
    rho * p.iter().zip(q).map(|(p, q)| kl(*p, *q)).sum::<f64>()
}

/// What a plan costs: `<P, C>`, its mass, and the two forms of the value.
struct Primal {
    linear: f64,
    mass: f64,
    value_kl: f64,
    value: f64,
    rows: Vec<f64>,
    columns: Vec<f64>,
}

fn primal(plan: &[f64], cost: &[f64], a: &[f64], b: &[f64], epsilon: f64, rho: [f64; 2]) -> Primal {
    let m = b.len();
    let rows: Vec<f64> = plan.chunks(m).map(|r| r.iter().sum()).collect();
    let columns: Vec<f64> = (0..m).map(|j| plan.iter().skip(j).step_by(m).sum()).collect();
    let linear: f64 = plan.iter().zip(cost).map(|(p, c)| p * c).sum();
    let entropy: f64 = plan.iter().enumerate().map(|(k, p)| kl(*p, a[k / m] * b[k % m])).sum();
    let logs: f64 = plan.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum();
    let prices = price(rho[0], &rows, a) + price(rho[1], &columns, b);
    Primal {
        linear,
        mass: plan.iter().sum(),
        value_kl: linear + epsilon * entropy + prices,
        value: linear + epsilon * logs + prices,
        rows,
        columns,
    }
}

/// The plan of a solution, entry by entry, out of its potentials.
fn plan(s: &Solution, cost: &[f64]) -> Vec<f64> {
    let m = s.potential_y.len();
    cost.iter()
        .enumerate()
        .map(|(k, c)| ((s.potential_x[k / m] + s.potential_y[k % m] - c) / s.epsilon).exp())
        .collect()
}

/// Solves `A x = r` by elimination with pivots.
fn eliminate(mut a: Vec<f64>, mut r: Vec<f64>) -> Vec<f64> {
    let n = r.len();
    for k in 0..n {
        let pivot =
            (k..n).max_by(|i, j| a[i * n + k].abs().total_cmp(&a[j * n + k].abs())).unwrap();
        for c in 0..n {
            a.swap(k * n + c, pivot * n + c);
        }
        r.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i * n + k] / a[k * n + k];
            for c in k..n {
                a[i * n + c] -= factor * a[k * n + c];
            }
            r[i] -= factor * r[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|c| a[k * n + c] * r[c]).sum();
        r[k] = (r[k] - rest) / a[k * n + k];
    }
    r
}

/// Newton's method with backtracking on the dual, which is concave and smooth: nothing of Sinkhorn's
/// algorithm. Returns the plan.
fn newton(cost: &[f64], a: &[f64], b: &[f64], epsilon: f64, rho: [f64; 2]) -> Vec<f64> {
    let (n, m) = (a.len(), b.len());
    let weight = |k: usize| if k < n { a[k] } else { b[k - n] };
    let rho_of = |k: usize| rho[usize::from(k >= n)];
    let plan = |p: &[f64]| -> Vec<f64> {
        (0..n * m)
            .map(|k| a[k / m] * b[k % m] * ((p[k / m] + p[n + k % m] - cost[k]) / epsilon).exp())
            .collect()
    };
    let value = |p: &[f64]| -> f64 {
        let terms: f64 = (0..n + m)
            .map(|k| {
                let rho = rho_of(k);
                weight(k) * if rho.is_infinite() { p[k] } else { -rho * (-p[k] / rho).exp_m1() }
            })
            .sum();
        terms - epsilon * plan(p).iter().sum::<f64>()
    };
    let mut p = vec![0.0; n + m];
    for _ in 0..500 {
        let entries = plan(&p);
        let size = n + m;
        let (mut gradient, mut hessian) = (vec![0.0; size], vec![0.0; size * size]);
        for k in 0..size {
            let rho = rho_of(k);
            let wanted = if rho.is_infinite() { 1.0 } else { (-p[k] / rho).exp() } * weight(k);
            gradient[k] = wanted;
            hessian[k * size + k] = if rho.is_infinite() { 0.0 } else { wanted / rho };
        }
        for (k, e) in entries.iter().enumerate() {
            let (i, j) = (k / m, n + k % m);
            gradient[i] -= e;
            gradient[j] -= e;
            for (r, c) in [(i, i), (i, j), (j, i), (j, j)] {
                hessian[r * size + c] += e / epsilon;
            }
        }
        let step = eliminate(hessian, gradient.clone());
        let (mut length, before) = (1.0, value(&p));
        let slope: f64 = step.iter().zip(&gradient).map(|(s, g)| s * g).sum();
        let next = loop {
            let next: Vec<f64> = p.iter().zip(&step).map(|(p, s)| p + length * s).collect();
            if value(&next) >= before + 1e-4 * length * slope || length < 1e-12 {
                break next;
            }
            length *= 0.5;
        };
        p = next;
        if gradient.iter().all(|g| g.abs() < 1e-15) {
            break;
        }
    }
    plan(&p)
}

fn with(epsilon: f64, rho: [f64; 2]) -> OptionsBuilder {
    Options::builder(epsilon).rho_x(rho[0]).rho_y(rho[1]).tolerance(1e-12).max_iterations(100_000)
}

fn exact_methods() -> [Method; 3] {
    [Method::Auto, Method::dense(), Method::online()]
}

#[test]
fn two_points_in_closed_form() {
    // One entry P: c + eps log(P / ab) + rho_x log(P / a) + rho_y log(P / b) = 0.
    for (a, b) in [(1.0, 1.0), (2.0, 0.5), (1e-3, 1e3), (400.0, 300.0)] {
        for (epsilon, rho) in [
            (0.1, [1.0, 1.0]),
            (1.0, [0.3, 5.0]),
            (2.0, [1e3, f64::INFINITY]),
            (2.0, [f64::INFINITY, 0.5]),
            (1e-2, [0.05, 0.02]),
        ] {
            let (x, y) = (0.5, 1.25);
            let cost = 0.5625_f64;
            let mass = if rho[0].is_infinite() {
                a
            } else if rho[1].is_infinite() {
                b
            } else {
                let logs = (epsilon + rho[0]) * f64::ln(a) + (epsilon + rho[1]) * f64::ln(b) - cost;
                (logs / (epsilon + rho[0] + rho[1])).exp()
            };
            let exact = primal(&[mass], &[cost], &[a], &[b], epsilon, rho);
            for method in exact_methods() {
                let s = rot(
                    &dirac(x, a),
                    &dirac(y, b),
                    &with(epsilon, rho).method(method).build().unwrap(),
                )
                .unwrap();
                assert!(s.converged());
                assert!(relative(s.mass, mass) < 1e-12, "{} {mass}", s.mass);
                assert!(relative(s.value_kl, exact.value_kl) < 1e-11);
                assert!(relative(s.value, exact.value) < 1e-11, "{} {}", s.value, exact.value);
                assert!(relative(s.transport_cost.unwrap(), mass * cost) < 1e-11);
                assert!((s.marginal_gap_x - (mass - a).abs()).abs() < 1e-11 * a.max(mass));
                assert!((s.marginal_gap_y - (mass - b).abs()).abs() < 1e-11 * b.max(mass));
            }
        }
    }
}

#[test]
fn reach_is_that_of_geomloss() {
    // Two points of mass 1 at distance d, without entropy: half the squared distance and rho = reach^2
    // leave exp(-d^2 / (4 reach^2)) of the mass.
    let (d, reach) = (1.5, 0.8);
    let options = Options::builder(1e-9).reach(reach).build().unwrap();
    let s = rot(&dirac(0.0, 1.0), &dirac(d, 1.0), &options).unwrap();
    assert!(relative(s.mass, (-d * d / (4.0 * reach * reach)).exp()) < 1e-8);
    assert_eq!(s.rho, [2.0 * reach * reach; 2]);
}

#[test]
fn small_problems_are_those_of_newtons_method() {
    let (mu, nu) = (cloud(5, &[0.3, -0.2], 0.7, 1.7, 1), cloud(4, &[0.0, 0.0], 0.5, 0.6, 2));
    let (a, b, cost) = (given(&mu), given(&nu), costs(&mu, &nu));
    let matrix = CostMatrix::new(&cost, 5, 4).unwrap();
    for epsilon in [0.2, 1.0, 5.0] {
        for rho in [
            [1.0, 1.0],
            [0.1, 0.1],
            [0.3, 3.0],
            [30.0, 0.05],
            [f64::INFINITY, 0.7],
            [0.7, f64::INFINITY],
            [1e-3, 1e-3],
        ] {
            let exact = newton(&cost, &a, &b, epsilon, rho);
            let reference = primal(&exact, &cost, &a, &b, epsilon, rho);
            for kernel in [
                Method::dense().into(),
                Method::online().into(),
                Kernel::costs(Method::dense(), matrix.clone()),
                Kernel::costs(Method::online(), matrix.clone()),
            ] {
                for gauge in [true, false] {
                    let options = with(epsilon, rho).method(kernel.method.clone()).gauge(gauge);
                    let s = kernel.solver(&options.build().unwrap()).rot(&mu, &nu).unwrap();
                    let name = format!("{epsilon} {rho:?} {kernel:?} {gauge}");
                    assert!(s.converged(), "{name}");
                    agrees(&name, &s, &reference, &cost, [&a, &b], 1e-10);
                }
            }
        }
    }
}

/// Everything that a solution says against a plan that is known.
fn agrees(
    name: &str,
    s: &Solution,
    reference: &Primal,
    cost: &[f64],
    weights: [&[f64]; 2],
    tolerance: f64,
) {
    let close = |what: &str, x: f64, y: f64| {
        assert!(relative(x, y) < tolerance, "{name}: {what} {x} {y}");
    };
    close("value_kl", s.value_kl, reference.value_kl);
    close("value", s.value, reference.value);
    close("cost", s.transport_cost.unwrap(), reference.linear);
    close("mass", s.mass, reference.mass);
    let gap = |p: &[f64], q: &[f64]| p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>();
    let gaps = [gap(&reference.rows, weights[0]), gap(&reference.columns, weights[1])];
    assert!((s.marginal_gap_x - gaps[0]).abs() < tolerance * reference.mass, "{name}");
    assert!((s.marginal_gap_y - gaps[1]).abs() < tolerance * reference.mass, "{name}");
    // The potentials are those of the plan, and the plan is as good as the value says: no duality gap.
    let own = plan(s, cost);
    let own = primal(&own, cost, weights[0], weights[1], s.epsilon, s.rho);
    close("duality gap", s.value_kl, own.value_kl);
    close("mass of the plan", s.mass, own.mass);
    for (p, q) in own.rows.iter().zip(&reference.rows) {
        assert!((p - q).abs() < tolerance * reference.mass, "{name}");
    }
}

#[test]
fn a_large_rho_is_the_balanced_problem() {
    let (mu, nu) = (cloud(30, &[0.5, 0.0], 1.0, 1.0, 3), cloud(20, &[0.0, 0.2], 0.6, 1.0, 4));
    let epsilon = 0.3;
    for method in exact_methods() {
        let balanced = Options::builder(epsilon).tolerance(1e-12).method(method.clone());
        let balanced = rot(&mu, &nu, &balanced.build().unwrap()).unwrap();
        assert_eq!(balanced.mass, 1.0);
        assert_eq!(balanced.rho, [f64::INFINITY; 2]);
        assert_eq!(balanced.marginal_gap_x, balanced.marginal_error_x);
        for (rho, tolerance) in [(1e4, 1e-3), (1e8, 1e-7), (1e12, 1e-10), (1e200, 1e-10)] {
            for rho in [[rho, rho], [rho, f64::INFINITY], [f64::INFINITY, rho]] {
                let s = rot(&mu, &nu, &with(epsilon, rho).method(method.clone()).build().unwrap());
                let s = s.unwrap();
                assert!(s.converged());
                // The constants converge at once: not in rho / eps iterations.
                assert!(s.iterations <= 2 * balanced.iterations + 10, "{}", s.iterations);
                assert!(relative(s.value_kl, balanced.value_kl) < tolerance);
                let apart = (s.value - balanced.value).abs();
                assert!(apart < tolerance * balanced.value_kl, "{} {}", s.value, balanced.value);
                let costs = [&s, &balanced].map(|s| s.transport_cost.unwrap());
                assert!(relative(costs[0], costs[1]) < tolerance);
                assert!((s.mass - 1.0).abs() < tolerance);
                assert!(s.marginal_gap_x < 10.0 * tolerance && s.marginal_gap_y < 10.0 * tolerance);
            }
        }
    }
}

#[test]
fn a_tiny_rho_leaves_the_kernel_as_the_plan() {
    // Nothing holds the marginals: P = a b^T exp(-C / eps), U = eps sum (a b^T - P).
    let (mu, nu) = (cloud(12, &[0.5], 1.0, 2.0, 5), cloud(9, &[0.0], 0.6, 0.3, 6));
    let (a, b, cost, epsilon) = (given(&mu), given(&nu), costs(&mu, &nu), 0.4);
    let mass: f64 =
        cost.iter().enumerate().map(|(k, c)| a[k / 9] * b[k % 9] * (-c / epsilon).exp()).sum();
    for (rho, tolerance) in [(1e-5, 1e-3), (1e-8, 1e-6), (4.1e-11, 1e-9)] {
        for method in exact_methods() {
            let s =
                rot(&mu, &nu, &with(epsilon, [rho; 2]).method(method).build().unwrap()).unwrap();
            assert!(s.converged());
            assert!(relative(s.mass, mass) < tolerance, "{rho}: {} {mass}", s.mass);
            assert!(relative(s.value_kl, epsilon * (0.6 - mass)) < tolerance);
        }
    }
}

#[test]
fn masses_only_scale_the_plan() {
    // P(m_a, m_b) = m_a^x m_b^y P(1, 1), x = (1 - tau_y) / (1 - tau_x tau_y) and the same with x, y swapped.
    let epsilon = 0.5;
    let rho = [0.8, 2.5];
    let [tx, ty] = rho.map(|r: f64| r / (r + epsilon));
    let unit = [cloud(15, &[0.4], 1.0, 1.0, 7), cloud(11, &[0.0], 0.7, 1.0, 8)];
    let options = with(epsilon, rho).build().unwrap();
    let base = rot(&unit[0], &unit[1], &options).unwrap();
    for (ma, mb) in [(1e6, 1.0), (1.0, 1e-6), (1e-3, 1e3), (400.0, 300.0), (1e150, 1e150)] {
        let mu = unit[0].clone().with_mass(ma).unwrap();
        let nu = unit[1].clone().with_mass(mb).unwrap();
        let s = rot(&mu, &nu, &options).unwrap();
        let log = ((1.0 - ty) * f64::ln(ma) + (1.0 - tx) * f64::ln(mb)) / (1.0 - tx * ty);
        assert!(relative(s.mass, base.mass * log.exp()) < 1e-11, "{ma} {mb}");
        assert_eq!(s.iterations, base.iterations);
        if ma < 1e100 {
            let (a, b, cost) = (given(&mu), given(&nu), costs(&mu, &nu));
            let own = primal(&plan(&s, &cost), &cost, &a, &b, epsilon, rho);
            assert!(relative(s.value_kl, own.value_kl) < 1e-9, "{} {}", s.value_kl, own.value_kl);
            assert!(relative(s.value, own.value) < 1e-9);
        }
    }
    let heavy = unit[0].clone().with_mass(1e200).unwrap();
    assert!(matches!(rot(&heavy, &heavy, &options), Err(Error::Masses { .. })));
    for mass in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(unit[0].clone().with_mass(mass).is_err());
    }
}

/// Features of each kind for clouds in the plane: stored, and as the cost of the dense and of the online method.
fn features(
    mu: &Measure<'_>,
    nu: &Measure<'_>,
    epsilon: f64,
) -> Vec<(&'static str, [Kernel<'static>; 3])> {
    let explicit = |n: usize, seed: u64| {
        let logs = normal(n * 6, &[0.0], 1.0, seed);
        FeatureMatrix::new(logs.iter().map(|l| l.exp()).collect::<Vec<f64>>(), n, 6).unwrap()
    };
    let map = Gaussian::paper(mu, nu, epsilon, 40, 3, true).unwrap();
    let named = [
        ("paper", Features::Gaussian(Anchors::Paper { centred: true })),
        ("sobol", Features::Gaussian(Anchors::Random(Draw::Sobol))),
        ("arc-cosine", Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 }),
        ("linear", Features::Linear),
        ("map", Features::Map(Arc::new(map))),
        ("lattice", Features::Gaussian(Anchors::Lattice { stored: true })),
    ];
    let methods = |features: Features| {
        let cost = || Cost::Features(features.clone());
        [Method::Factored(features.clone()), Method::Dense(cost()), Method::Online(cost())]
    };
    let mut all: Vec<_> =
        named.map(|(name, features)| (name, methods(features).map(Kernel::from))).into();
    let [xi, zeta] = [explicit(mu.points().len(), 1), explicit(nu.points().len(), 2)];
    let given = |method| Kernel::features(method, xi.clone(), zeta.clone());
    all.push(("explicit", [Method::Auto, Method::dense(), Method::online()].map(given)));
    all
}

/// Two clouds with positive coordinates, masses that differ, and points of weight zero.
fn plane() -> (Measure<'static>, Measure<'static>) {
    let positive = |n, deviation, seed| -> Vec<f64> {
        normal(n, &[1.0, 1.2], deviation, seed).iter().map(|x| x.abs() + 0.01).collect()
    };
    let measure = |values: Vec<f64>, mass: f64| {
        let n = values.len() / 2;
        let weights: Vec<f64> = (0..n).map(|i| mass * ((i * 31) % 7) as f64).collect();
        Measure::weighted(Points::new(values, 2).unwrap(), &weights).unwrap()
    };
    (measure(positive(70, 0.5, 1), 0.02), measure(positive(50, 0.2, 2), 0.01))
}

fn compare(name: &str, s: &Solution, t: &Solution, tolerance: f64) {
    assert!(s.converged() && t.converged(), "{name}");
    for (what, x, y) in [
        ("value_kl", s.value_kl, t.value_kl),
        ("value", s.value, t.value),
        ("mass", s.mass, t.mass),
        ("cost", s.transport_cost.unwrap(), t.transport_cost.unwrap()),
        ("gap", s.marginal_gap_x, t.marginal_gap_x),
        ("gap", s.marginal_gap_y, t.marginal_gap_y),
    ] {
        assert!(
            (x - y).abs() <= tolerance * y.abs().max(t.value_kl.abs()),
            "{name}: {what} {x} {y}"
        );
    }
    let range = t.potential_x.iter().chain(&t.potential_y).fold(t.epsilon, |r, p| r.max(p.abs()));
    for (p, q) in [(&s.potential_x, &t.potential_x), (&s.potential_y, &t.potential_y)] {
        for (p, q) in p.iter().zip(q) {
            assert!((p - q).abs() <= 10.0 * tolerance * range, "{name}: potential {p} {q}");
        }
    }
}

const PENALTIES: [[f64; 2]; 4] =
    [[0.5, 0.5], [0.02, 0.3], [f64::INFINITY, 0.1], [0.1, f64::INFINITY]];

#[test]
fn features_are_the_dense_kernel_of_their_own_cost() {
    let (mu, nu) = plane();
    let epsilon = 0.3;
    for (name, [factored, dense, online]) in features(&mu, &nu, epsilon) {
        for rho in PENALTIES {
            let solve = |kernel: &Kernel<'_>, precision| {
                let tolerance = if precision == Precision::F32 { 1e-6 } else { 1e-12 };
                let options = with(epsilon, rho).method(kernel.method.clone());
                let options = options.precision(precision);
                let mut options = options.tolerance(tolerance).accuracy(1e-4);
                if name != "lattice" {
                    options = options.rank(60);
                }
                kernel.solver(&options.build().unwrap()).rot(&mu, &nu).unwrap()
            };
            let dense = solve(&dense, Precision::F64);
            let online = solve(&online, Precision::F64);
            let double = solve(&factored, Precision::F64);
            let single = solve(&factored, Precision::F32);
            let name = format!("{name} {rho:?}");
            compare(&format!("{name} online"), &online, &dense, 1e-9);
            // A lattice or Gaussian features report the squared Euclidean cost, costs of features theirs.
            let as_dense = |s: &Solution| {
                let mut s = s.clone();
                s.transport_cost = dense.transport_cost;
                s
            };
            compare(&format!("{name} f64"), &as_dense(&double), &dense, 1e-9);
            compare(&format!("{name} f32"), &as_dense(&single), &dense, 2e-5);
        }
    }
}

#[test]
fn lattices_and_many_anchors_are_the_exact_kernel_within_their_bound() {
    let (mu, nu) = plane();
    for epsilon in [0.05, 0.3] {
        for rho in PENALTIES {
            let exact =
                rot(&mu, &nu, &with(epsilon, rho).method(Method::online()).build().unwrap());
            let exact = exact.unwrap();
            for (stored, precision, accuracy) in [
                (false, Precision::F64, 1e-3),
                (false, Precision::F64, 1e-8),
                (true, Precision::F64, 1e-8),
                (false, Precision::F32, 1e-4),
                (true, Precision::F32, 1e-4),
            ] {
                let lattice = Method::Factored(Features::Gaussian(Anchors::Lattice { stored }));
                let single = precision == Precision::F32;
                let options = with(epsilon, rho)
                    .method(lattice)
                    .precision(precision)
                    .accuracy(accuracy)
                    .tolerance(if single { 1e-6 } else { 1e-12 });
                let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
                let name = format!("{epsilon} {rho:?} {stored} {precision:?} {accuracy}");
                assert!(s.converged(), "{name}");
                let (error, bound) = ((s.value_kl - exact.value_kl).abs(), s.bound.unwrap());
                // Single precision has rounding of its own, which only separable sides count.
                let rounding = if single { 1e-5 * epsilon * s.mass } else { 1e-12 };
                assert!(error <= bound + rounding, "{name}: {error} {bound}");
                if !stored {
                    assert!(bound <= accuracy * s.value_kl || single, "{name}: {bound}");
                }
                if accuracy < 1e-7 {
                    compare(&name, &s, &exact, 1e-6);
                }
            }
        }
    }
    let epsilon = 2.0;
    for rho in PENALTIES {
        let exact = rot(&mu, &nu, &with(epsilon, rho).method(Method::online()).build().unwrap());
        let options = with(epsilon, rho).method(Method::gaussian()).rank(4000);
        let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
        compare(&format!("{rho:?}"), &s, &exact.unwrap(), 1e-4);
    }
}

#[test]
fn a_kernel_times_a_constant_in_closed_form() {
    // What the bound of lattices rests on: K exp(l) has a plan of mass M exp(t l), and a value that is smaller
    // by R M (exp(t l) - 1), with R = rho_x + rho_y + eps and t = eps / R.
    let (mu, nu) = (cloud(20, &[0.4], 1.0, 2.0, 41), cloud(15, &[0.0], 0.7, 0.5, 42));
    let (epsilon, cost) = (0.3, costs(&mu, &nu));
    for rho in [[0.5, 0.5], [0.02, 3.0], [f64::INFINITY, 0.4], [0.4, f64::INFINITY]] {
        let solve = |l: f64| {
            let moved: Vec<f64> = cost.iter().map(|c| c - epsilon * l).collect();
            let matrix = CostMatrix::new(moved, 20, 15).unwrap();
            let options = with(epsilon, rho).method(Method::dense()).build().unwrap();
            Solver::new(&options).costs(matrix).rot(&mu, &nu).unwrap()
        };
        let base = solve(0.0);
        let range = rho[0] + rho[1] + epsilon;
        for l in [-3.0, -0.1, 1e-3, 2.0, 50.0] {
            let s = solve(l);
            let (mass, lost) = if range.is_finite() {
                let grown = (epsilon / range * l).exp();
                (base.mass * grown, range * base.mass * (grown - 1.0))
            } else {
                (base.mass, epsilon * base.mass * l)
            };
            assert!(relative(s.mass, mass) < 1e-10, "{rho:?} {l}");
            let scale = base.value_kl.abs().max(lost.abs());
            assert!((base.value_kl - lost - s.value_kl).abs() < 1e-10 * scale, "{rho:?} {l}");
        }
    }
}

#[test]
fn lattices_of_given_rank_keep_a_bound() {
    let (mu, nu) = plane();
    let (epsilon, rho) = (0.1, [0.2, 0.1]);
    let exact =
        rot(&mu, &nu, &with(epsilon, rho).method(Method::online()).build().unwrap()).unwrap();
    let mut last = f64::INFINITY;
    for rank in [40, 100, 400] {
        let options = with(epsilon, rho).method(Method::lattice()).rank(rank).build().unwrap();
        let s = rot(&mu, &nu, &options).unwrap();
        let (error, bound) = ((s.value_kl - exact.value_kl).abs(), s.bound.unwrap());
        assert!(error <= bound, "{rank}: {error} {bound}");
        assert!(bound < last, "{rank}: {bound} {last}");
        last = bound;
    }
}

#[test]
fn the_gauge_changes_nothing() {
    // Far apart, of different covariances and masses: the gauge has much to do.
    let mu = cloud(60, &[3.0, -1.0], 1.0, 2.0, 11);
    let nu = cloud(40, &[0.0, 0.5], 0.3, 0.7, 12);
    for epsilon in [0.1, 1.0, 20.0] {
        for rho in [[2.0, 2.0], [0.5, 10.0], [f64::INFINITY, 3.0], [1e6, 1e6]] {
            for method in [Method::dense(), Method::online()] {
                let solve = |gauge: bool| {
                    let options = with(epsilon, rho).method(method.clone()).gauge(gauge);
                    rot(&mu, &nu, &options.build().unwrap()).unwrap()
                };
                compare(&format!("{epsilon} {rho:?}"), &solve(true), &solve(false), 1e-9);
            }
        }
    }
}

#[test]
fn values_are_lower_bounds_before_convergence() {
    let (mu, nu) = plane();
    for rho in PENALTIES {
        let exact =
            rot(&mu, &nu, &with(0.02, rho).method(Method::online()).build().unwrap()).unwrap();
        let mut seen = Vec::new();
        let mut observer = |progress: &mut Progress<'_>| {
            seen.push(progress.value());
            Next::Continue
        };
        let options = with(0.02, rho).method(Method::online()).build().unwrap();
        let s = Solver::new(&options).observer(&mut observer).rot(&mu, &nu).unwrap();
        assert!(relative(*seen.last().unwrap(), s.value_kl) < 1e-10);
        for value in &seen {
            assert!(
                *value <= exact.value_kl * (1.0 + 1e-12),
                "{rho:?}: {value} {}",
                exact.value_kl
            );
        }
        let options = with(0.02, rho).method(Method::online()).max_iterations(2).build().unwrap();
        let early = rot(&mu, &nu, &options).unwrap();
        assert_eq!(early.stop, Stop::IterationLimit);
        assert!(early.value_kl < exact.value_kl);
    }
}

#[test]
fn points_far_beyond_reach_keep_finite_potentials() {
    // Two outliers, one in each cloud, whose mass is destroyed to below the range of the numbers.
    let (epsilon, rho) = (0.02, 0.01);
    let outlying = |n: usize, seed: u64, far: f64| {
        let mut values = normal(n, &[0.0, 0.0], 0.3, seed);
        values.extend([far, -far]);
        Measure::weighted(Points::new(values, 2).unwrap(), &vec![1.0; n + 1]).unwrap()
    };
    let (mu, nu) = (outlying(40, 1, 6.0), outlying(30, 2, -8.0));
    let (a, b, cost) = (given(&mu), given(&nu), costs(&mu, &nu));
    let exact = rot(&mu, &nu, &with(epsilon, [rho; 2]).method(Method::online()).build().unwrap());
    let exact = exact.unwrap();
    assert!(exact.converged() && exact.marginal_gap_x > 1.0);
    let own = primal(&plan(&exact, &cost), &cost, &a, &b, epsilon, [rho; 2]);
    assert!(relative(exact.value_kl, own.value_kl) < 1e-10);
    // phi = -eps tau log sum_j K_ij v_j, also where exp(-phi / rho) is nothing.
    let tau = rho / (rho + epsilon);
    let transform = |k: usize, s: &Solution| {
        let m = s.potential_y.len();
        let logs = (0..m).map(|j| (s.potential_y[j] - cost[k * m + j]) / epsilon);
        let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
        -epsilon * tau * (top + logs.map(|l| (l - top).exp()).sum::<f64>().ln())
    };
    for (name, method, precision, tolerance) in [
        ("online", Method::online(), Precision::F64, 1e-9),
        ("dense", Method::dense(), Precision::F64, 1e-9),
        ("dense f32", Method::dense(), Precision::F32, 1e-4),
        ("lattice", Method::lattice(), Precision::F64, 1e-5),
        ("lattice f32", Method::lattice(), Precision::F32, 1e-3),
        (
            "stored lattice",
            Method::Factored(Features::Gaussian(Anchors::Lattice { stored: true })),
            Precision::F64,
            1e-5,
        ),
    ] {
        let single = precision == Precision::F32;
        let options = with(epsilon, [rho; 2])
            .method(method)
            .precision(precision)
            .accuracy(1e-7)
            .tolerance(if single { 1e-6 } else { 1e-12 });
        let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
        assert!(s.converged(), "{name}");
        assert!(relative(s.value_kl, exact.value_kl) < tolerance, "{name}");
        assert!(relative(s.mass, exact.mass) < tolerance, "{name}");
        let kl = s.potential_kl_x();
        for k in [0, 17, 40] {
            let expected = transform(k, &s);
            assert!(
                (kl[k] - expected).abs() < 10.0 * tolerance * expected.abs().max(1.0),
                "{name} {k}: {} {expected}",
                kl[k]
            );
        }
        let (p, q) = (s.potential_y[30], exact.potential_y[30]);
        assert!((p - q).abs() < 10.0 * tolerance * q.abs(), "{name}: {p} {q}");
    }
}

#[test]
fn a_lattice_does_not_lose_faint_points_in_many_iterations() {
    // Ten points of either cloud are out of reach: no message is left of them, for hundreds of iterations.
    let outlying = |seed: u64, far: f64| {
        let mut values = normal(400, &[0.0], 0.3, seed);
        values[..10].iter_mut().for_each(|x| *x += far);
        Measure::uniform(Points::new(values, 1).unwrap())
    };
    let (mu, nu) = (outlying(1, 5.0), outlying(2, -5.0));
    let options = with(1e-3, [0.02; 2]).tolerance(1e-8);
    let exact = rot(&mu, &nu, &options.clone().method(Method::online()).build().unwrap()).unwrap();
    let options = options.method(Method::lattice()).accuracy(1e-5);
    for algorithm in [Algorithm::Plain, Algorithm::Anderson] {
        let s = rot(&mu, &nu, &options.clone().algorithm(algorithm).build().unwrap()).unwrap();
        assert!(s.converged() && exact.converged());
        assert_eq!(s.iterations > 200, algorithm == Algorithm::Plain, "{}", s.iterations);
        assert!((s.value_kl - exact.value_kl).abs() < s.bound.unwrap());
        // Whole messages are few.
        assert!(s.builds < 100, "{}", s.builds);
        for (p, q) in s.potential_x.iter().zip(&exact.potential_x) {
            assert!((p - q).abs() < 1e-4, "{p} {q}");
        }
    }
}

#[test]
fn anderson_finds_what_plain_iterations_find() {
    let (mu, nu) = plane();
    let (mut accelerated, mut plain) = (0, 0);
    for epsilon in [0.01, 0.05, 0.3] {
        let mut kernels: Vec<(&str, Kernel<'_>)> = features(&mu, &nu, epsilon)
            .into_iter()
            .map(|(name, [factored, ..])| (name, factored))
            .collect();
        kernels.push(("dense", Method::dense().into()));
        kernels.push(("online", Method::online().into()));
        kernels.push(("separable", Method::lattice().into()));
        for (name, kernel) in kernels {
            for rho in PENALTIES.into_iter().chain([[30.0, 30.0], [1e-3, 1e-3]]) {
                let solve = |algorithm| {
                    let options = with(epsilon, rho).method(kernel.method.clone());
                    let mut options = options.algorithm(algorithm).tolerance(1e-11);
                    if !matches!(name, "lattice" | "separable") {
                        options = options.rank(300);
                    }
                    kernel.solver(&options.build().unwrap()).rot(&mu, &nu).unwrap()
                };
                let (one, two) = (solve(Algorithm::Anderson), solve(Algorithm::Plain));
                let name = format!("{name} {epsilon} {rho:?}");
                compare(&name, &one, &two, 1e-8);
                let counts = [one.iterations, two.iterations];
                assert!(counts[0] <= counts[1] + counts[1] / 10 + 3, "{name}: {counts:?}");
                accelerated += counts[0];
                plain += counts[1];
            }
        }
    }
    assert!(2 * accelerated < plain, "{accelerated} {plain}");
}

#[test]
fn landmarks_are_the_exact_kernel_where_they_are_many() {
    let (mu, nu) = plane();
    for epsilon in [0.5, 2.0] {
        for rho in PENALTIES.into_iter().chain([[30.0, 30.0], [1e-3, 1e-3], [1e6, 1e6]]) {
            let solve = |method, gauge| {
                let options = with(epsilon, rho).method(method).gauge(gauge).tolerance(1e-10);
                rot(&mu, &nu, &options.build().unwrap()).unwrap()
            };
            let exact = solve(Method::online(), true);
            for gauge in [true, false] {
                let name = format!("{epsilon} {rho:?} {gauge}");
                compare(&name, &solve(Method::nystrom(), gauge), &exact, 1e-8);
            }
        }
        let options = with(epsilon, [0.5; 2]).tolerance(1e-10);
        let of = |method| {
            divergence(&mu, &nu, &options.clone().method(method).build().unwrap()).unwrap()
        };
        let (landmarks, exact) = (of(Method::nystrom()), of(Method::online()));
        for (s, t) in landmarks.terms().into_iter().zip(exact.terms()) {
            compare(&format!("{epsilon}"), s, t, 1e-8);
            assert!(s.interval_kl.is_none());
        }
        assert!((landmarks.value - exact.value).abs() < 1e-8 * exact.cross.value_kl);
    }
    // And where they are few for an epsilon, that is an error.
    let options = with(2e-3, [0.5; 2]).method(Method::nystrom()).rank(20).build().unwrap();
    let error = rot(&mu, &nu, &options).unwrap_err();
    assert!(matches!(error, Error::NotPositive { .. }), "{error}");
}

#[test]
fn intervals_hold_the_exact_value() {
    let (mu, nu) = plane();
    for epsilon in [0.02, 0.3] {
        for rho in PENALTIES.into_iter().chain([[1e4, 1e4], [1e-4, 1e-4], [1e10, 0.1]]) {
            let exact =
                rot(&mu, &nu, &with(epsilon, rho).method(Method::online()).build().unwrap());
            let exact = exact.unwrap();
            for (method, precision, kind) in [
                (Method::online(), Precision::F64, Certainty::Exact),
                (Method::dense(), Precision::F32, Certainty::Exact),
                (Method::lattice(), Precision::F64, Certainty::Bound),
                (Method::lattice(), Precision::F32, Certainty::Bound),
            ] {
                for iterations in [1, 2, 5, 20, 100_000] {
                    let options = with(epsilon, rho)
                        .method(method.clone())
                        .precision(precision)
                        .tolerance(1e-6)
                        .max_iterations(iterations);
                    let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
                    let name = format!("{epsilon} {rho:?} {method:?} {precision:?} {iterations}");
                    let i = s.interval_kl.unwrap();
                    assert_eq!(i.kind, kind, "{name}");
                    assert!(i.contains(exact.value_kl), "{name}: {i:?} {}", exact.value_kl);
                    assert!(!s.converged() || i.width() < 4e-3 * exact.value_kl, "{name}: {i:?}");
                    assert_eq!((s.interval, s.corrected), (None, None), "{name}");
                }
            }
        }
    }
}

#[test]
fn certificates_hold_the_exact_value() {
    let (mut all, mut outside) = (0, Vec::new());
    let mut closer = Vec::new();
    for (dim, seed) in [(2, 1), (5, 2), (10, 3), (20, 4)] {
        for (mass, shift) in [([1.0, 1.0], 0.3), ([2.0, 0.3], 1.0), ([1e-3, 40.0], 0.1)] {
            let mu = cloud(900, &vec![shift; dim], 1.0, mass[0], seed);
            let nu = cloud(700, &vec![0.0; dim], 0.7, mass[1], seed + 10);
            let mean = mean_squared_distance(&mu, &nu).unwrap();
            for (scale, rho) in [
                (0.1, [0.3, 0.3]),
                (0.3, [0.02, 1.0]),
                (1.0, [f64::INFINITY, 0.1]),
                (0.3, [1e3; 2]),
            ] {
                let epsilon = scale * mean;
                let rho = rho.map(|r: f64| r * mean);
                let exact = with(epsilon, rho).method(Method::dense()).tolerance(1e-9);
                let exact = rot(&mu, &nu, &exact.build().unwrap()).unwrap();
                for (draw, rank) in [(Draw::Sobol, 100), (Draw::Sobol, 800), (Draw::Iid, 400)] {
                    let options = with(epsilon, rho)
                        .method(Method::Factored(Features::Gaussian(Anchors::Random(draw))))
                        .rank(rank)
                        .seed(seed)
                        .tolerance(1e-7);
                    let certified = options.clone().certify(true).build().unwrap();
                    let s = rot(&mu, &nu, &certified).unwrap();
                    let Some(i) = s.interval_kl else { continue };
                    assert_eq!(i.kind, Certainty::Sampled);
                    all += 1;
                    if !i.contains(exact.value_kl) {
                        let name = format!("{dim} {mass:?} {scale} {rho:?} {draw:?} {rank}");
                        outside.push(format!("{name}: {} {i:?}", exact.value_kl));
                    }
                    assert!(i.contains(s.value_kl), "{i:?} {}", s.value_kl);
                    let features = rot(&mu, &nu, &options.build().unwrap()).unwrap();
                    let [raw, corrected] =
                        [features.value_kl, s.value_kl].map(|v| (v - exact.value_kl).abs());
                    closer.push(corrected / raw);
                }
            }
        }
    }
    assert!(all >= 120, "{all}");
    assert!(100 * outside.len() <= all, "{} of {all}: {outside:#?}", outside.len());
    closer.sort_by(f64::total_cmp);
    assert!(closer[closer.len() / 2] < 0.7, "{}", closer[closer.len() / 2]);
}

#[test]
fn certificates_of_a_divergence_count_the_masses() {
    let dim = 5;
    let mu = cloud(500, &vec![0.4; dim], 1.0, 2.0, 51);
    let nu = cloud(400, &vec![0.0; dim], 0.7, 0.5, 52);
    let of = |method, certify| {
        let options = with(2.0, [3.0; 2]).method(method).rank(600).tolerance(1e-8).certify(certify);
        divergence(&mu, &nu, &options.build().unwrap()).unwrap()
    };
    let (exact, d) = (of(Method::dense(), false), of(Method::gaussian(), true));
    let interval = d.interval().unwrap();
    assert!(interval.contains(exact.value), "{interval:?} {}", exact.value);
    assert!(interval.contains(d.value), "{interval:?} {}", d.value);
    assert!((d.corrected().unwrap() - exact.value).abs() < 0.5 * interval.width());
    assert!(exact.interval().unwrap().contains(exact.value));
    assert!(of(Method::gaussian(), false).interval().is_none());
}

#[test]
fn an_accuracy_is_a_promise() {
    for (dim, scale, accuracy, rho) in [
        (5, 0.3, 3e-3, [0.5, 0.5]),
        (8, 0.2, 2e-2, [f64::INFINITY, 0.2]),
        (12, 1.0, 1e-3, [0.1, 2.0]),
    ] {
        let mu = cloud(1200, &vec![0.3; dim], 1.0, 3.0, 61);
        let nu = cloud(1100, &vec![0.0; dim], 0.8, 0.5, 62);
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        let epsilon = scale * mean;
        let rho = rho.map(|r: f64| r * mean);
        let exact = with(epsilon, rho).method(Method::dense()).tolerance(1e-9);
        let exact = rot(&mu, &nu, &exact.build().unwrap()).unwrap();
        for allow in [true, false] {
            let options = with(epsilon, rho).tolerance(1e-6).accuracy(accuracy).allow_exact(allow);
            let s = rot(&mu, &nu, &options.build().unwrap()).unwrap();
            let error = (s.value_kl - exact.value_kl).abs() / exact.value_kl;
            assert!(s.meets_accuracy(accuracy) || !allow, "{dim}: {:?}", s.reason);
            assert!(
                !s.meets_accuracy(accuracy) || error <= accuracy,
                "{dim}: {error} {:?}",
                s.reason
            );
            assert!(s.interval_kl.unwrap().contains(exact.value_kl), "{dim} {:?}", s.interval_kl);
        }
    }
}

#[test]
fn points_of_weight_zero_get_the_relaxed_transform() {
    let (mu, nu) = plane();
    let (epsilon, cost) = (0.3, costs(&mu, &nu));
    for rho in PENALTIES {
        for method in [Method::online(), Method::dense(), Method::lattice()] {
            let exact = !matches!(method, Method::Factored(_));
            let options = with(epsilon, rho).method(method).accuracy(1e-9).build().unwrap();
            let s = rot(&mu, &nu, &options).unwrap();
            let (kl_x, kl_y) = (s.potential_kl_x(), s.potential_kl_y());
            let [tx, ty] = rho.map(|r: f64| if r.is_finite() { r / (r + epsilon) } else { 1.0 });
            let (n, m) = (kl_x.len(), kl_y.len());
            let tolerance = if exact { 1e-9 } else { 1e-6 };
            for i in 0..n {
                let sum: f64 = (0..m)
                    .filter(|&j| nu.weights()[j] > 0.0)
                    .map(|j| ((s.potential_y[j] - cost[i * m + j]) / epsilon).exp())
                    .sum();
                assert!((kl_x[i] + epsilon * tx * sum.ln()).abs() < tolerance, "{rho:?} {i}");
            }
            for j in 0..m {
                let sum: f64 = (0..n)
                    .filter(|&i| mu.weights()[i] > 0.0)
                    .map(|i| ((s.potential_x[i] - cost[i * m + j]) / epsilon).exp())
                    .sum();
                assert!((kl_y[j] + epsilon * ty * sum.ln()).abs() < tolerance, "{rho:?} {j}");
            }
        }
    }
}

#[test]
fn the_divergence_is_positive_and_zero_for_equal_measures_only() {
    let mu = cloud(60, &[0.3, 0.0], 0.8, 1.3, 21);
    let others = [
        ("another cloud", cloud(50, &[0.0, 0.0], 0.5, 0.8, 22)),
        ("far away", cloud(50, &[9.0, 0.0], 0.5, 0.8, 23)),
        ("the same points", mu.clone().with_mass(1.4).unwrap()),
        ("nearly no mass", mu.clone().with_mass(1e-6).unwrap()),
    ];
    for epsilon in [0.05, 0.5, 10.0] {
        for rho in [1e-2, 1.0, 100.0] {
            for (method, precision) in [
                (Method::online(), Precision::F64),
                (Method::dense(), Precision::F64),
                (Method::dense(), Precision::F32),
                (Method::paper(), Precision::F64),
                (Method::lattice(), Precision::F64),
            ] {
                let single = precision == Precision::F32;
                let mut options = with(epsilon, [rho; 2])
                    .method(method.clone())
                    .precision(precision)
                    .tolerance(if single { 1e-6 } else { 1e-12 })
                    .accuracy(1e-9);
                if !matches!(method, Method::Factored(Features::Gaussian(Anchors::Lattice { .. })))
                {
                    options = options.rank(150);
                }
                let options = options.build().unwrap();
                let of = |m: &Measure<'_>, n: &Measure<'_>| divergence(m, n, &options).unwrap();
                let name = format!("{epsilon} {rho} {method:?} {precision:?}");
                let same = of(&mu, &mu);
                assert!(same.converged(), "{name}");
                let scale = same.cross.value_kl.abs().max(epsilon);
                let zero = if single { 1e-5 } else { 1e-9 };
                assert!(same.value.abs() < zero * scale, "{name}: {}", same.value);
                for (other, nu) in &others {
                    if *other == "far away" && matches!(method, Method::Factored(_)) {
                        // So few anchors leave nothing of the kernel there.
                        continue;
                    }
                    let (there, back) = (of(&mu, nu), of(nu, &mu));
                    assert!(there.value > 0.0, "{name} {other}: {}", there.value);
                    let apart = (there.value - back.value).abs();
                    assert!(apart < 20.0 * zero * scale, "{name} {other}: {apart}");
                    let terms = there.cross.value_kl
                        - 0.5 * there.self_x.value_kl
                        - 0.5 * there.self_y.value_kl;
                    let masses = 0.5 * epsilon * (mu.mass() - nu.mass()).powi(2);
                    assert!((there.value - terms - masses).abs() <= 1e-12 * scale);
                }
            }
        }
    }
}

#[test]
fn a_divergence_of_differently_relaxed_marginals_is_refused() {
    let (mu, nu) = figure_1(5, 5, 1);
    let options = with(0.5, [1.0, f64::INFINITY]).build().unwrap();
    assert!(rot(&mu, &nu, &options).is_ok());
    let error = divergence(&mu, &nu, &options).unwrap_err();
    assert_eq!(error, Error::UnequalRho { x: 1.0, y: f64::INFINITY });
    assert!(error.to_string().contains("got 1 and inf"), "{error}");
}

#[test]
fn automatic_choices_keep_their_promise() {
    let with = |epsilon| with(epsilon, [0.5, 1.0]).tolerance(1e-8);
    let mu = cloud(3000, &[0.5, 0.0], 1.0, 2.0, 31);
    let nu = cloud(2500, &[0.0, 0.3], 0.4, 1.0, 32);
    let exact = rot(&mu, &nu, &with(0.3).method(Method::online()).build().unwrap()).unwrap();
    let s = rot(&mu, &nu, &with(0.3).build().unwrap()).unwrap();
    assert_eq!(s.method, MethodUsed::Lattice);
    let error = (s.value_kl - exact.value_kl).abs();
    assert!(error <= s.bound.unwrap() && s.bound.unwrap() <= 1e-3 * s.value_kl);

    let dim = 6;
    let mu = cloud(500, &vec![0.2; dim], 1.0, 2.0, 33);
    let nu = cloud(400, &vec![0.0; dim], 0.7, 1.0, 34);
    let exact = rot(&mu, &nu, &with(6.0).method(Method::online()).build().unwrap()).unwrap();
    let options = with(6.0).allow_exact(false).accuracy(1e-2).build().unwrap();
    let s = rot(&mu, &nu, &options).unwrap();
    assert_eq!(s.method, MethodUsed::Gaussian);
    let error = (s.value_kl - exact.value_kl).abs();
    assert!(error <= 1e-2 * s.value_kl || !s.meets_accuracy(1e-2), "{error} {:?}", s.interval_kl);
    assert!(
        s.interval_kl.unwrap().contains(exact.value_kl),
        "{:?} {}",
        s.interval_kl,
        exact.value_kl
    );
}

#[test]
fn warm_starts_need_few_iterations() {
    let (mu, nu) = plane();
    let options = with(0.05, [0.3, 0.2]).build().unwrap();
    let cold = rot(&mu, &nu, &options).unwrap();
    let warm = Solver::new(&options).warm_start(&cold).rot(&mu, &nu).unwrap();
    assert!(
        warm.iterations <= 2 && cold.iterations > 10,
        "{} {}",
        warm.iterations,
        cold.iterations
    );
    assert!(relative(warm.value_kl, cold.value_kl) < 1e-11);
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let weighted = |n: usize, mean: f64, seed: u64| {
        let points = Points::new(normal(n, &[mean, mean], 1.0, seed), 2).unwrap();
        let weights: Vec<f64> = (0..n).map(|i| ((i * 7919) % 101) as f64).collect();
        Measure::weighted(points, &weights).unwrap()
    };
    let (mu, nu) = (weighted(1500, 0.5, 1), weighted(700, 0.0, 2));
    let numbers = |d: &Divergence| -> Vec<u64> {
        let of = |s: &Solution| {
            let numbers = [s.value, s.value_kl, s.mass, s.marginal_gap_x, s.marginal_error_y];
            let all = numbers.into_iter().chain(s.transport_cost);
            all.chain(s.potential_x.clone()).chain(s.potential_y.clone()).map(f64::to_bits)
        };
        d.terms().into_iter().flat_map(of).chain([d.value.to_bits()]).collect()
    };
    for (method, precision) in [
        (Method::online(), Precision::F64),
        (Method::dense(), Precision::F32),
        (Method::gaussian(), Precision::F32),
        (Method::gaussian(), Precision::F64),
        (Method::lattice(), Precision::F32),
        (Method::lattice(), Precision::F64),
        (Method::nystrom(), Precision::F64),
    ] {
        let epsilon = if matches!(method, Method::Nystrom(_)) { 2.0 } else { 0.1 };
        let mut options = Options::builder(epsilon).rho_x(0.3).rho_y(0.3).method(method.clone());
        options = options.precision(precision).max_iterations(12);
        if matches!(method, Method::Factored(Features::Gaussian(Anchors::Random(_)))) {
            options = options.rank(150);
        }
        let options = options.build().unwrap();
        let on = |threads| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| numbers(&divergence(&mu, &nu, &options).unwrap()))
        };
        assert!(on(1) == on(4), "{method:?} {precision:?}");
    }
}

#[test]
fn all_operators_agree_on_random_problems() {
    // Clouds side by side and far apart, narrow and wide, with and without an outlier; epsilon from 1/300 of
    // the mean cost, rho from 1/1000 to 30 times: from all mass destroyed to nearly balanced.
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut power = |low: f64, high: f64| 10_f64.powf(low + (high - low) * rng.random::<f64>());
    for case in 0..60 {
        let dim = 1 + case % 2;
        let seed = case as u64;
        let shift = if case % 3 == 0 { power(0.0, 1.5) } else { 0.3 };
        let mut x = normal(20 + case, &vec![shift; dim], 1.0, seed);
        let y = normal(100 - case, &vec![0.0; dim], power(-1.5, 0.5), 100 + seed);
        if case % 4 == 0 {
            x[..dim].fill(25.0);
        }
        let measure = |values: Vec<f64>| Measure::uniform(Points::new(values, dim).unwrap());
        let (mu, nu) = (measure(x), measure(y));
        let mean = mean_squared_distance(&mu, &nu).unwrap();
        let epsilon = mean * power(-2.5, 0.0);
        let rho_x = mean * power(-3.0, 1.5);
        let rho_y = if case % 5 == 0 { f64::INFINITY } else { mean * power(-3.0, 1.5) };
        let solve = |method: Method, precision: Precision| {
            let options = with(epsilon, [rho_x, rho_y])
                .method(method)
                .precision(precision)
                .accuracy(1e-5)
                .tolerance(if precision == Precision::F32 { 1e-6 } else { 1e-9 });
            rot(&mu, &nu, &options.build().unwrap()).unwrap()
        };
        let exact = solve(Method::online(), Precision::F64);
        let range = exact.potential_x.iter().fold(epsilon, |r, p| r.max(p.abs()));
        for precision in [Precision::F64, Precision::F32] {
            let rounding = if precision == Precision::F32 { 1e-5 } else { 1e-7 };
            for method in [
                Method::dense(),
                Method::lattice(),
                Method::Factored(Features::Gaussian(Anchors::Lattice { stored: true })),
            ] {
                let name = format!("{case} {method:?} {precision:?}");
                let s = solve(method, precision);
                assert!(s.converged() && exact.converged(), "{name}");
                let error = (s.value_kl - exact.value_kl).abs();
                let bound = s.bound.unwrap_or(0.0) + rounding * exact.value_kl;
                assert!(error <= bound, "{name}: {error} {bound}");
                for (p, q) in s.potential_x.iter().zip(&exact.potential_x) {
                    assert!((p - q).abs() < 1e-3 * range, "{name}: {p} {q}");
                }
            }
        }
    }
}
