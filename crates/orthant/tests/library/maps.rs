//! Maps along plans: against dense plans, closed forms and identities, for every kernel.

use std::sync::Arc;

use crate::common::{Kernel, normal};
use orthant::features::{FeatureMap, FeatureMatrix, Gaussian, Linear};
use orthant::{
    CostMatrix, Error, Measure, Method, Options, Plan, Points, Precision, Side, Solution,
    anchors::Draw,
    options::{Anchors, Cost, Features, Landmarks, OptionsBuilder},
    plan,
    plan::MOST_LABELS,
};
use rayon::ThreadPoolBuilder;

const EPSILON: f64 = 0.5;
const BOTH: [Side; 2] = [Side::X, Side::Y];

/// A cloud with weights that differ, some of them zero; coordinates are positive if asked for.
fn cloud(n: usize, dim: usize, mean: f64, seed: u64, positive: bool) -> Measure<'static> {
    let mut values = normal(n, &vec![mean; dim], 0.6, seed);
    if positive {
        for x in &mut values {
            *x = x.abs() + 0.1;
        }
    }
    let weights: Vec<f64> = (0..n).map(|i| ((i * 7919 + 3) % 11) as f64).collect();
    Measure::weighted(Points::new(values, dim).unwrap(), &weights).unwrap()
}

fn clouds(n: usize, m: usize, dim: usize) -> [Measure<'static>; 2] {
    [cloud(n, dim, 0.0, 1, false), cloud(m, dim, 0.4, 2, false)]
}

fn builder(method: Method) -> OptionsBuilder {
    Options::builder(EPSILON).method(method).tolerance(1e-11)
}

fn gaussian(anchors: Anchors) -> Method {
    Method::Factored(Features::Gaussian(anchors))
}

/// Methods of the squared Euclidean cost: their name, the options, and how exact their sums are.
fn euclidean() -> Vec<(&'static str, OptionsBuilder, f64)> {
    let f32 = |method| builder(method).precision(Precision::F32).tolerance(1e-6);
    vec![
        ("online", builder(Method::online()), 1e-11),
        ("dense", builder(Method::dense()), 1e-11),
        ("dense f32", f32(Method::dense()), 1e-11),
        ("auto", builder(Method::Auto), 1e-11),
        ("paper", builder(Method::paper()).rank(60), 1e-11),
        ("sobol", builder(Method::gaussian()).rank(60), 1e-11),
        ("sobol f32", f32(Method::gaussian()).rank(60), 1e-11),
        ("certified", builder(Method::gaussian()).rank(60).certify(true), 1e-11),
        ("iid", builder(gaussian(Anchors::Random(Draw::Iid))).rank(60), 1e-11),
        ("adaptive", builder(Method::adaptive()).rank(60), 1e-11),
        ("lattice", builder(Method::lattice()), 1e-10),
        ("lattice f32", f32(Method::lattice()), 1e-10),
        ("lattice of rank", builder(Method::lattice()).rank(60), 1e-10),
        ("stored lattice", builder(gaussian(Anchors::Lattice { stored: true })), 1e-10),
        ("nystrom", builder(Method::Nystrom(Landmarks::Leverage)).rank(60), 1e-9),
    ]
}

/// Columns of values of `rows` points: more than are treated together, equal ones, huge ones and far ones.
const COLUMNS: usize = 19;

fn values(rows: usize) -> Vec<f64> {
    let mut out = normal(rows, &[0.0; COLUMNS], 1.0, 77);
    for row in out.chunks_exact_mut(COLUMNS) {
        row[1] = 0.1;
        row[2] += 5e6;
        row[3] *= 1e-200;
        row[4] = if row[4] > 0.0 { 1.5e308 } else { -1.5e308 };
    }
    out
}

/// The rows of a dense plan, or its columns, divided by their sums; none at points without mass.
fn conditional(plan: &Plan<'_>, cloud: Side) -> Vec<Option<Vec<f64>>> {
    let dense = plan.to_dense().unwrap();
    let columns = plan.shape().columns;
    let strips: Vec<Vec<f64>> = match cloud {
        Side::X => dense.chunks_exact(columns).map(<[f64]>::to_vec).collect(),
        Side::Y => {
            (0..columns).map(|j| dense.iter().skip(j).step_by(columns).copied().collect()).collect()
        }
    };
    let share = |strip: Vec<f64>| {
        let sum: f64 = strip.iter().sum();
        (sum != 0.0).then(|| strip.iter().map(|p| p / sum).collect())
    };
    strips.into_iter().map(share).collect()
}

/// What a plan says of maps is what its dense form says.
fn check(what: &str, plan: &Plan<'_>, measures: [&Measure<'_>; 2], tolerance: f64) {
    let signed = what.starts_with("nystrom");
    for cloud in BOTH {
        let other = measures[cloud.other() as usize];
        let rows = other.weights().len();
        let shares = conditional(plan, cloud);
        let values = values(rows);
        let labels: Vec<usize> = (0..rows).map(|j| [7, 2, 999, 2, 30][j % 5]).collect();
        let means = plan.conditional_mean(cloud, &values, COLUMNS).unwrap();
        let moved = plan.barycentric(cloud).unwrap();
        let votes = plan.vote(cloud, &labels).unwrap();
        assert_eq!(means.len(), shares.len() * COLUMNS, "{what}");
        for (i, share) in shares.iter().enumerate() {
            let means = &means[i * COLUMNS..(i + 1) * COLUMNS];
            assert_eq!(means[1], 0.1, "{what}: a column of equal values is exact");
            let Some(share) = share else { continue };
            let check = |found: f64, value: &dyn Fn(usize) -> f64, name: &str| {
                let all = (0..rows).map(value);
                let [low, high] = all
                    .clone()
                    .fold([f64::MAX, f64::MIN], |[low, high], v| [low.min(v), high.max(v)]);
                if low == high {
                    return assert_eq!(found, low, "{what}, {name}, {i}");
                }
                // By shares of the span, so that the reference does not overflow either.
                let part = |v: f64| (0.5 * v - 0.5 * low) / (0.5 * high - 0.5 * low);
                let expected: f64 = all.zip(share).map(|(v, p)| p * part(v)).sum();
                let slack = 4.0 * f64::EPSILON * low.abs().max(high.abs());
                let apart = (part(found) - expected).abs();
                let rounding = slack / (0.5 * high - 0.5 * low);
                assert!(apart < tolerance + rounding, "{what}, {name}, {i}: {found}");
                assert!(signed || (found >= low - slack && found <= high + slack), "{what}");
            };
            for (c, mean) in means.iter().enumerate().filter(|(c, _)| *c != 1) {
                check(*mean, &|j| values[j * COLUMNS + c], &format!("column {c}"));
            }
            for (c, moved) in moved[i * other.dim()..][..other.dim()].iter().enumerate() {
                check(*moved, &|j| other.points().coordinate(j, c), "barycentric");
            }
            let mut best = (0, f64::NEG_INFINITY);
            for label in [2, 7, 30, 999] {
                let sum: f64 =
                    labels.iter().zip(share).filter(|(l, _)| **l == label).map(|(_, p)| p).sum();
                if sum > best.1 {
                    best = (label, sum);
                }
            }
            assert_eq!(votes[i].label, best.0, "{what}");
            assert!((votes[i].probability - best.1).abs() < tolerance, "{what}");
        }
        if signed {
            assert!(matches!(plan.partners(cloud, 3), Err(Error::SignedPlan)), "{what}");
            continue;
        }
        for count in [0, 1, 4, 1000] {
            let partners = plan.partners(cloud, count).unwrap();
            for (found, share) in partners.iter().zip(&shares) {
                let Some(share) = share else { continue };
                let mut expected: Vec<(usize, f64)> =
                    share.iter().copied().enumerate().filter(|(_, p)| *p > 0.0).collect();
                expected.sort_by(|a, b| b.1.total_cmp(&a.1));
                expected.truncate(count);
                assert_eq!(found.len(), expected.len(), "{what}");
                for (found, expected) in found.iter().zip(expected) {
                    assert!((found.1 / expected.1 - 1.0).abs() < 1e-8, "{what}");
                    assert!((share[found.0] / found.1 - 1.0).abs() < 1e-8, "{what}");
                }
            }
        }
    }
}

#[test]
fn maps_of_squared_euclidean_plans_are_those_of_the_dense_plan() {
    let [mu, nu] = clouds(37, 29, 2);
    for (what, options, tolerance) in euclidean() {
        let options = options.build().unwrap();
        check(what, &plan(&mu, &nu, &options).unwrap(), [&mu, &nu], tolerance);
    }
    let [mu, nu] = clouds(41, 60, 4);
    for method in [Method::online(), Method::gaussian(), Method::adaptive()] {
        let options = builder(method).rank(100).build().unwrap();
        check("four axes", &plan(&mu, &nu, &options).unwrap(), [&mu, &nu], 1e-10);
    }
    for dim in [1, 3] {
        let [mu, nu] = clouds(700, 300, dim);
        let options = builder(Method::lattice()).build().unwrap();
        check("lattices", &plan(&mu, &nu, &options).unwrap(), [&mu, &nu], 1e-10);
    }
}

#[test]
fn maps_of_other_costs_are_those_of_the_dense_plan() {
    let [mu, nu] = clouds(31, 24, 3);
    let values: Vec<f64> = (0..31 * 24).map(|k| 3.0 + f64::from((k * 37) % 101) / 50.0).collect();
    let matrix = CostMatrix::new(values, 31, 24).unwrap();
    let positive = |n: usize, seed| -> Vec<f64> {
        normal(n, &[0.0; 6], 1.0, seed).iter().map(|x| x.exp()).collect()
    };
    let explicit = |method| {
        let xi = FeatureMatrix::new(positive(31, 5), 31, 6).unwrap();
        Kernel::features(method, xi, FeatureMatrix::new(positive(24, 6), 24, 6).unwrap())
    };
    let arccos = Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 };
    let map = Gaussian::paper(&mu, &nu, EPSILON, 40, 0, true).unwrap();
    for (what, kernel) in [
        ("matrix", Kernel::costs(Method::dense(), matrix.clone())),
        ("matrix, online", Kernel::costs(Method::online(), matrix)),
        ("explicit", explicit(Method::Auto)),
        ("explicit, exact", explicit(Method::online())),
        ("arccos", Method::Factored(arccos.clone()).into()),
        ("arccos, exact", Method::Dense(Cost::Features(arccos)).into()),
        ("map", Method::Factored(Features::Map(Arc::new(map))).into()),
    ] {
        let options = builder(kernel.method.clone()).rank(40).build().unwrap();
        check(what, &kernel.solver(&options).plan(&mu, &nu).unwrap(), [&mu, &nu], 1e-11);
    }
    let [one, two] = [cloud(31, 5, 0.0, 3, true), cloud(24, 5, 0.0, 4, true)];
    let linear = || Arc::new(Linear::new(5).unwrap());
    for features in [Features::Linear, Features::Pair(linear(), linear())] {
        let options = builder(Method::Factored(features)).build().unwrap();
        check("linear", &plan(&one, &two, &options).unwrap(), [&one, &two], 1e-11);
    }
}

#[test]
fn maps_of_relaxed_plans_are_those_of_the_dense_plan() {
    let [mu, nu] = clouds(31, 24, 2);
    let (mu, nu) = (mu.with_mass(1.7).unwrap(), nu.with_mass(0.6).unwrap());
    for (rho_x, rho_y) in [(1.0, 0.3), (0.4, f64::INFINITY), (f64::INFINITY, 0.8)] {
        for (what, options, tolerance) in euclidean() {
            let options = options.rho_x(rho_x).rho_y(rho_y).build().unwrap();
            check(what, &plan(&mu, &nu, &options).unwrap(), [&mu, &nu], tolerance);
        }
    }
}

/// Before convergence too, with the marginals that the plan has.
#[test]
fn means_are_those_of_the_plan_as_it_is() {
    let [mu, nu] = clouds(31, 24, 2);
    for method in [Method::online(), Method::lattice(), Method::gaussian()] {
        let options = builder(method).max_iterations(1).rank(100).build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        assert!(!plan.solution().converged());
        check("an iteration", &plan, [&mu, &nu], 1e-10);
    }
}

/// The potential at the points of the clouds is the potential, and the map there the barycentric projection.
fn check_own(what: &str, plan: &Plan<'_>, measures: [&Measure<'_>; 2], tolerance: f64) {
    let Solution { epsilon, .. } = plan.solution();
    for cloud in BOTH {
        let points = measures[cloud as usize].points();
        let known = match cloud {
            Side::X => plan.solution().potential_kl_x(),
            Side::Y => plan.solution().potential_kl_y(),
        };
        let found = plan.potential_at(cloud, points).unwrap();
        for (i, (found, known)) in found.iter().zip(&known).enumerate() {
            let apart = (found - known).abs();
            assert!(apart < tolerance * epsilon, "{what}, {cloud} {i}: {found} and not {known}");
        }
        let moved = plan.barycentric(cloud).unwrap();
        let again = plan.map_at(cloud, points).unwrap();
        for (found, known) in again.iter().zip(&moved) {
            assert!((found - known).abs() < 1e-9, "{what}: {found} and not {known}");
        }
        let rows = measures[cloud.other() as usize].weights().len();
        let labels: Vec<usize> = (0..rows).map(|j| j % 3).collect();
        let votes = plan.vote(cloud, &labels).unwrap();
        for (a, b) in votes.iter().zip(plan.vote_at(cloud, points, &labels).unwrap()) {
            assert!(a.label == b.label && (a.probability - b.probability).abs() < 1e-9, "{what}");
        }
        let values = values(rows);
        let means = plan.conditional_mean(cloud, &values, COLUMNS).unwrap();
        let again = plan.conditional_mean_at(cloud, points, &values, COLUMNS).unwrap();
        assert!((means[0] - again[0]).abs() < 1e-9, "{what}");
        if let Ok(partners) = plan.partners(cloud, 3) {
            let again = plan.partners_at(cloud, points, 3).unwrap();
            for (a, b) in partners.iter().flatten().zip(again.iter().flatten()) {
                assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-9, "{what}");
            }
        }
    }
}

#[test]
fn potentials_at_the_points_of_the_clouds_are_the_potentials() {
    let [mu, nu] = clouds(37, 29, 2);
    let relaxed = [mu.clone().with_mass(1.7).unwrap(), nu.clone().with_mass(0.6).unwrap()];
    for (what, options, _) in euclidean() {
        // A marginal error of 1e-11 over weights of 1e-3; sums in single precision.
        let tolerance = if what.ends_with("f32") { 1e-3 } else { 1e-7 };
        let balanced = options.clone().build().unwrap();
        check_own(what, &plan(&mu, &nu, &balanced).unwrap(), [&mu, &nu], tolerance);
        for (rho_x, rho_y) in [(1.0, 0.3), (0.4, f64::INFINITY), (f64::INFINITY, 0.8)] {
            let options = options.clone().rho_x(rho_x).rho_y(rho_y).build().unwrap();
            let plan = plan(&relaxed[0], &relaxed[1], &options).unwrap();
            check_own(what, &plan, [&relaxed[0], &relaxed[1]], tolerance);
        }
    }
    let arccos = Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 };
    for method in [Method::Factored(arccos.clone()), Method::Online(Cost::Features(arccos))] {
        let options = builder(method).rank(40).build().unwrap();
        check_own("arccos", &plan(&mu, &nu, &options).unwrap(), [&mu, &nu], 1e-7);
    }
    // Centred by samples of the plan, with a gauge that differs from the plane of the points.
    let [mu, nu] = [cloud(600, 6, 100.0, 1, false), cloud(500, 6, -50.0, 2, false)];
    let options = Options::builder(20.0).allow_exact(false).accuracy(0.1).tolerance(1e-10);
    let options = options.build().unwrap();
    check_own("auto", &plan(&mu, &nu, &options).unwrap(), [&mu, &nu], 1e-6);
}

/// A product of grids with Gaussian weights: sums over it are integrals, to many digits.
fn gaussian_grid(means: &[f64], variances: &[f64], steps: i32) -> Measure<'static> {
    let (mut points, mut weights) = (vec![Vec::new()], vec![1.0]);
    for (mean, variance) in means.iter().zip(variances) {
        let axis: Vec<f64> =
            (-steps..=steps).map(|k| 7.5 * f64::from(k) / f64::from(steps)).collect();
        let grow = |(p, w): (&Vec<f64>, &f64)| -> Vec<(Vec<f64>, f64)> {
            let next = |t: &f64| {
                ([&p[..], &[mean + variance.sqrt() * t]].concat(), w * (-0.5 * t * t).exp())
            };
            axis.iter().map(next).collect()
        };
        (points, weights) = points.iter().zip(&weights).flat_map(grow).unzip();
    }
    Measure::weighted(Points::new(points.concat(), means.len()).unwrap(), &weights).unwrap()
}

/// Between Gaussians with common axes the plan is Gaussian: along an axis of variances `a` and `b` its covariance is
/// `c = sqrt(eps^2 / 16 + a b) - eps / 4`, the map is `E[y | x] = m_y + c / a (x - m_x)`, and the potentials are
/// quadratic.
#[test]
fn the_entropic_map_between_gaussians_is_affine() {
    let (epsilon, means) = (1.0, [[1.0, -2.0], [0.5, 3.0]]);
    let variances = [[1.0, 0.8], [0.5, 1.5]];
    for dim in [1, 2] {
        let mu = gaussian_grid(&means[0][..dim], &variances[0][..dim], 24);
        let nu = gaussian_grid(&means[1][..dim], &variances[1][..dim], 25);
        let base = |method| Options::builder(epsilon).method(method).tolerance(1e-12);
        for (what, options, tolerance) in [
            ("online", base(Method::online()), 1e-8),
            ("lattice", base(Method::lattice()).accuracy(1e-9), 1e-7),
            ("rough", base(Method::lattice()).accuracy(1e-3), 1e-2),
            ("f32", base(Method::lattice()).precision(Precision::F32).tolerance(1e-6), 1e-2),
        ] {
            let options = options.build().unwrap();
            let plan = plan(&mu, &nu, &options).unwrap();
            assert!(plan.solution().converged());
            for cloud in BOTH {
                let (own, other) = (cloud as usize, cloud.other() as usize);
                // Off the grid.
                let at: Vec<f64> = (0..20 * dim)
                    .map(|k| means[own][k % dim] + 2.0 * f64::from(u32::try_from(k).unwrap()).sin())
                    .chain(means[own][..dim].iter().copied())
                    .collect();
                let points = Points::new(at.clone(), dim).unwrap();
                let found = plan.map_at(cloud, &points).unwrap();
                let potential = plan.potential_at(cloud, &points).unwrap();
                for (i, x) in at.chunks_exact(dim).enumerate() {
                    let mut quadratic = 0.0;
                    for axis in 0..dim {
                        let (a, b) = (variances[own][axis], variances[other][axis]);
                        let c = (epsilon * epsilon / 16.0 + a * b).sqrt() - epsilon / 4.0;
                        let away = x[axis] - means[own][axis];
                        let expected = means[other][axis] + c / a * away;
                        let apart = (found[i * dim + axis] - expected).abs();
                        assert!(apart < tolerance, "{what} {dim}: {apart}");
                        // |x - y|^2 + eps log p(x, y) / p(x) p(y), in x alone.
                        let square = c * c / (a * b);
                        let across = 2.0 * (means[own][axis] - means[other][axis]) * away;
                        quadratic +=
                            away * away * (1.0 - epsilon * square / (1.0 - square) / (2.0 * a))
                                + across;
                    }
                    let found = potential[i] - potential[20];
                    assert!(
                        (found - quadratic).abs() < 10.0 * tolerance,
                        "{what} {dim}: {found} {quadratic}"
                    );
                }
            }
        }
    }
}

#[test]
fn with_one_target_everything_goes_there() {
    let mu = cloud(40, 2, 0.0, 1, false);
    let nu = Measure::uniform(Points::new(vec![3.0, 0.1], 2).unwrap());
    let new = Points::new(vec![0.0, 0.0, 50.0, -70.0], 2).unwrap();
    for method in [Method::online(), Method::lattice(), Method::gaussian(), Method::paper()] {
        let options = builder(method).build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        for moved in [plan.barycentric(Side::X).unwrap(), plan.map_at(Side::X, &new).unwrap()] {
            assert!(moved.chunks_exact(2).all(|m| m == [3.0, 0.1]));
        }
        for partners in plan.partners(Side::X, 2).unwrap() {
            assert!(partners.len() == 1 && partners[0].0 == 0);
            assert!((partners[0].1 - 1.0).abs() < 1e-9);
        }
        assert!(plan.vote(Side::X, &[5]).unwrap().iter().all(|v| v.label == 5));
        // And back it comes from the mean.
        let back = plan.barycentric(Side::Y).unwrap();
        for (back, mean) in back.iter().zip(mu.mean()) {
            assert!((back - mean).abs() < 1e-8);
        }
    }
}

#[test]
fn a_translation_adds_to_the_map() {
    let values = normal(200, &[0.0, 0.0], 1.0, 5);
    let moved: Vec<f64> = values.chunks_exact(2).flat_map(|p| [p[0] + 16.0, p[1] - 8.0]).collect();
    let mu = Measure::uniform(Points::new(values, 2).unwrap());
    let nu = Measure::uniform(Points::new(moved, 2).unwrap());
    for method in [Method::online(), Method::lattice()] {
        let options = Options::builder(0.2).method(method).accuracy(1e-11).tolerance(1e-12);
        let options = options.build().unwrap();
        let (own, far) = (plan(&mu, &mu, &options).unwrap(), plan(&mu, &nu, &options).unwrap());
        let own = own.barycentric(Side::X).unwrap();
        let far = far.barycentric(Side::X).unwrap();
        for (own, far) in own.chunks_exact(2).zip(far.chunks_exact(2)) {
            assert!((far[0] - 16.0 - own[0]).abs() < 1e-6, "{own:?} {far:?}");
            assert!((far[1] + 8.0 - own[1]).abs() < 1e-6, "{own:?} {far:?}");
        }
    }
}

/// Outside the box of the clouds features are worth nothing: the exact kernel takes over, with the potentials that
/// there are.
#[test]
fn far_points_are_mapped_by_the_exact_kernel() {
    let [mu, nu] = clouds(60, 50, 2);
    let at = [-30.0, 4.0, 0.0, 0.1, 500.0, 500.0, 0.0, 8.0];
    let new = Points::new(at.to_vec(), 2).unwrap();
    for (what, options, _) in euclidean() {
        let options = options.build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        let beta = &plan.solution().potential_y;
        let potential = plan.potential_at(Side::X, &new).unwrap();
        let moved = plan.map_at(Side::X, &new).unwrap();
        let partners = plan.partners_at(Side::X, &new, 2);
        assert_eq!(partners.is_err(), what == "nystrom");
        for i in [0, 2, 3] {
            let logs: Vec<f64> = (0..50)
                .map(|j| {
                    let square = |c: usize| (at[2 * i + c] - nu.points().coordinate(j, c)).powi(2);
                    let log = (beta[j] - square(0) - square(1)) / EPSILON;
                    if nu.weights()[j] > 0.0 { log } else { f64::NEG_INFINITY }
                })
                .collect();
            let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = logs.iter().map(|l| (l - top).exp()).sum();
            let expected = -EPSILON * (top + sum.ln());
            assert!((potential[i] / expected - 1.0).abs() < 1e-9, "{what} {i}");
            for c in 0..2 {
                let mean = |(j, l): (usize, &f64)| (l - top).exp() * nu.points().coordinate(j, c);
                let expected = logs.iter().enumerate().map(mean).sum::<f64>() / sum;
                assert!((moved[2 * i + c] - expected).abs() < 1e-7, "{what} {i}");
            }
            if let Ok(partners) = &partners {
                let (j, probability) = partners[i][0];
                assert!((logs[j] - top).abs() < 1e-9, "{what}");
                assert!((probability * sum - 1.0).abs() < 1e-6, "{what}");
            }
        }
    }
    // A lattice agrees with the exact method inside and outside, as far as its accuracy goes.
    let by = |method| {
        let options = builder(method).accuracy(1e-9).build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        // Potentials are known up to a constant.
        let potential = plan.potential_at(Side::X, &new).unwrap();
        let potential = potential.iter().map(|p| p - potential[1]).collect();
        [potential, plan.map_at(Side::X, &new).unwrap()].concat()
    };
    for (a, b) in by(Method::lattice()).iter().zip(by(Method::online())) {
        assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} {b}");
    }
}

/// A plan of no mass to speak of has maps all the same.
#[test]
fn relaxed_plans_of_tiny_mass_have_maps() {
    let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1).unwrap());
    let nu = Measure::uniform(Points::new(vec![1000.0, 1000.01], 1).unwrap());
    for method in [Method::online(), Method::lattice(), Method::gaussian()] {
        let options = Options::builder(1.0).method(method).rho_x(1.0).rho_y(1.0).build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        assert_eq!(plan.mass().unwrap(), 0.0);
        let s = plan.solution();
        let y = [1000.0, 1000.01];
        let moved = plan.barycentric(Side::X).unwrap();
        for (i, moved) in moved.iter().enumerate() {
            let log = |j: usize| s.potential_y[j] - (mu.points().coordinate(i, 0) - y[j]).powi(2);
            let odds = (log(1) - log(0)).exp();
            let expected = (y[0] + odds * y[1]) / (1.0 + odds);
            assert!((moved - expected).abs() < 1e-6, "{moved} {expected}");
        }
        assert!(plan.partners(Side::Y, 1).unwrap().iter().all(|p| p.len() == 1));
    }
}

/// Features that vanish outside their cell.
#[derive(Debug)]
struct Boxes;

impl FeatureMap for Boxes {
    fn dim(&self) -> usize {
        1
    }

    fn rank(&self) -> usize {
        3
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        for (i, row) in out.chunks_exact_mut(stride).enumerate() {
            let x = points.coordinate(first + i, 0);
            for (k, log) in row[..3].iter_mut().enumerate() {
                let inside = (k as f64..k as f64 + 1.0).contains(&x);
                *log = if inside { x } else { f64::NEG_INFINITY };
            }
        }
    }
}

#[test]
fn bad_input_is_an_error() {
    let [mu, nu] = clouds(12, 9, 2);
    let options = builder(Method::lattice()).build().unwrap();
    let made = plan(&mu, &nu, &options).unwrap();
    let (x, y) = (Side::X, Side::Y);
    for (values, columns) in [(vec![0.0; 8], 1), (vec![0.0; 9], 0), (vec![], 1), (vec![0.0; 9], 2)]
    {
        assert!(matches!(made.conditional_mean(x, &values, columns), Err(Error::Shape { .. })));
    }
    assert!(made.conditional_mean(y, &[0.0; 24], 2).is_ok());
    let mut values = vec![0.0; 18];
    values[5] = f64::NAN;
    let error = made.conditional_mean(x, &values, 2).unwrap_err();
    assert!(matches!(error, Error::Value { row: 3, column: 2, .. }), "{error}");
    assert!(error.to_string().ends_with("is NaN; values must be finite"));
    assert!(matches!(made.vote(x, &[0; 8]), Err(Error::Shape { .. })));
    assert!(matches!(made.vote(x, &[MOST_LABELS; 9]), Err(Error::Option { .. })));
    assert!(matches!(made.vote(x, &[usize::MAX; 9]), Err(Error::Option { .. })));
    let line = Points::new(vec![0.0, 1.0], 1).unwrap();
    assert!(matches!(made.map_at(x, &line), Err(Error::Dimensions { x: 1, y: 2 })));
    assert!(matches!(made.potential_at(x, &line), Err(Error::Dimensions { .. })));
    for far in [1e6, 1e100, 1e200, 1.7e308] {
        let points = Points::new(vec![0.0, 0.0, -far, far], 2).unwrap();
        for (what, options, _) in euclidean() {
            let options = options.build().unwrap();
            let plan = plan(&mu, &nu, &options).unwrap();
            let error = plan.potential_at(x, &points).unwrap_err();
            assert!(matches!(error, Error::FarPoint { point: 2, .. }), "{what} {far}: {error}");
            assert!(
                plan.map_at(y, &points).is_err() && plan.vote_at(y, &points, &[0; 12]).is_err()
            );
            assert!(plan.partners_at(y, &points, 1).is_err());
        }
    }

    let matrix = CostMatrix::new(vec![1.0; 108], 12, 9).unwrap();
    let ones = |n: usize| FeatureMatrix::new(vec![1.0; n], n, 1).unwrap();
    for kernel in
        [Kernel::costs(Method::dense(), matrix), Kernel::features(Method::Auto, ones(12), ones(9))]
    {
        let options = builder(kernel.method.clone()).build().unwrap();
        let plan = kernel.solver(&options).plan(&mu, &nu).unwrap();
        let points = Points::new(vec![0.0, 0.0], 2).unwrap();
        assert!(matches!(plan.map_at(x, &points), Err(Error::NoNewPoints { .. })));
        assert!(matches!(plan.potential_at(x, &points), Err(Error::NoNewPoints { .. })));
        assert!(matches!(plan.partners_at(x, &points, 1), Err(Error::NoNewPoints { .. })));
    }

    let of = |values: Vec<f64>| Measure::uniform(Points::new(values, 1).unwrap());
    let (one, two) = (of(vec![0.2, 1.5, 0.4]), of(vec![0.1, 1.1]));
    let options = builder(Method::Factored(Features::Map(Arc::new(Boxes)))).rho_x(1.0);
    let options = options.build().unwrap();
    let boxes = plan(&one, &two, &options).unwrap();
    check("boxes", &boxes, [&one, &two], 1e-11);
    let new = Points::new(vec![0.3, 2.5], 1).unwrap();
    let error = boxes.map_at(x, &new).unwrap_err();
    assert!(matches!(error, Error::NoPartners { point: 2, other: Side::Y }), "{error}");
    assert!(boxes.potential_at(y, &new).is_err());
}

#[test]
fn maps_do_not_depend_on_the_number_of_threads() {
    let [mu, nu] = clouds(3000, 2500, 2);
    for method in [Method::lattice(), Method::gaussian(), Method::online()] {
        let options = Options::builder(EPSILON).method(method).rank(100).build().unwrap();
        let run = |threads: usize| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let plan = plan(&mu, &nu, &options).unwrap();
                let moved = plan.barycentric(Side::X).unwrap();
                let new = Points::new(normal(700, &[0.0, 0.0], 2.0, 9), 2).unwrap();
                let at = plan.map_at(Side::Y, &new).unwrap();
                let potential = plan.potential_at(Side::X, &new).unwrap();
                [moved, at, potential].concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            })
        };
        assert!(run(1) == run(3));
    }
}

/// Small epsilon, weights of all sizes, coordinates far from the origin: a lattice against the exact kernel.
#[test]
fn lattices_map_like_the_exact_kernel_at_small_epsilon() {
    let of = |n: usize, shift: f64, seed| {
        let values: Vec<f64> =
            normal(n, &[0.0, 0.0], 0.3, seed).iter().map(|x| x + shift + 4.5e6).collect();
        Measure::weighted(Points::new(values, 2).unwrap(), &crate::common::wide_weights(n, seed))
            .unwrap()
    };
    let (mu, nu) = (of(500, 0.0, 1), of(400, 0.5, 2));
    let moved = |method| {
        let options = Options::builder(0.003).method(method).accuracy(1e-8).tolerance(1e-9);
        let options = options.build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        assert!(plan.solution().converged());
        plan.barycentric(Side::X).unwrap()
    };
    for (a, b) in moved(Method::lattice()).iter().zip(moved(Method::online())) {
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
}
