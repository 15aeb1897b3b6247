//! Barycentres against closed forms, a naive dense implementation, and the definition.

use orthant::features::FeatureMatrix;
use orthant::{
    CostMatrix, Error, Measure, Method, Options, Points, Precision, Solver, Stop,
    barycenter::{Barycenter, Barycenters, barycenter},
    control::{Next, Progress},
    divergence,
    options::{Anchors, Cost, Features, OptionsBuilder},
    rot,
};

use crate::common::normal;

/// `n` points from `low` to `high`.
fn grid(low: f64, high: f64, n: usize) -> Vec<f64> {
    (0..n).map(|i| low + (high - low) * i as f64 / (n - 1) as f64).collect()
}

fn line(values: &[f64]) -> Points<'_> {
    Points::new(values, 1).unwrap()
}

fn histogram<'p>(support: &'p Points<'_>, weights: &[f64]) -> Measure<'p> {
    Measure::weighted(support.borrowed(), weights).unwrap()
}

/// The normal density on a grid.
fn bell(grid: &[f64], mean: f64, variance: f64) -> Vec<f64> {
    grid.iter().map(|x| (-(x - mean).powi(2) / (2.0 * variance)).exp()).collect()
}

fn tight(epsilon: f64) -> OptionsBuilder {
    Options::builder(epsilon).tolerance(1e-12).max_iterations(100_000)
}

fn debiased(
    measures: &[Measure<'_>],
    weights: &[f64],
    support: &Points<'_>,
    options: &Options,
) -> Barycenter {
    Barycenters::new(options).debiased(true).fixed(measures, weights, support).unwrap()
}

fn apart(p: &[f64], q: &[f64]) -> f64 {
    assert_eq!(p.len(), q.len());
    p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum()
}

/// Mean and variance of weights on a grid.
fn moments(grid: &[f64], p: &[f64]) -> (f64, f64) {
    let mean: f64 = grid.iter().zip(p).map(|(x, p)| x * p).sum();
    (mean, grid.iter().zip(p).map(|(x, p)| p * (x - mean).powi(2)).sum())
}

fn squared_distances(x: &Points<'_>, y: &Points<'_>) -> Vec<f64> {
    let square =
        |i, j| (0..x.dim()).map(|c| (x.coordinate(i, c) - y.coordinate(j, c)).powi(2)).sum::<f64>();
    (0..x.len())
        .flat_map(|i| (0..y.len()).map(move |j| (i, j)))
        .map(|(i, j)| square(i, j))
        .collect()
}

/// Iterative Bregman projections as the papers print them, on kernels `n_k x N`, row-major.
fn naive(
    kernels: &[Vec<f64>],
    own: Option<&[f64]>,
    a: &[Vec<f64>],
    shares: &[f64],
    points: usize,
    iterations: usize,
) -> Vec<f64> {
    let mut u = a.to_vec();
    let (mut p, mut d) = (vec![0.0; points], vec![1.0; points]);
    for _ in 0..iterations {
        let mut sums = Vec::new();
        for (kernel, u) in kernels.iter().zip(&u) {
            let rows = kernel.chunks_exact(points);
            let mut sum = vec![0.0; points];
            for (row, u) in rows.zip(u) {
                sum.iter_mut().zip(row).for_each(|(s, k)| *s += k * u);
            }
            sums.push(sum);
        }
        for j in 0..points {
            p[j] = sums.iter().zip(shares).map(|(s, l)| s[j].powf(*l)).product::<f64>() * d[j];
        }
        let mass: f64 = p.iter().sum();
        for p in &mut p {
            *p /= mass;
        }
        for (((u, kernel), a), s) in u.iter_mut().zip(kernels).zip(a).zip(&sums) {
            let v: Vec<f64> = p.iter().zip(s).map(|(p, s)| p / s).collect();
            for ((u, row), a) in u.iter_mut().zip(kernel.chunks_exact(points)).zip(a) {
                *u = a / row.iter().zip(&v).map(|(k, v)| k * v).sum::<f64>();
            }
        }
        if let Some(own) = own {
            let rows = own.chunks_exact(points);
            let kd: Vec<f64> =
                rows.map(|row| row.iter().zip(&d).map(|(k, d)| k * d).sum()).collect();
            for j in 0..points {
                d[j] = (d[j] * p[j] / kd[j]).sqrt();
            }
        }
    }
    p
}

#[test]
fn of_one_histogram_it_is_the_blurred_one() {
    // v = 1 solves the problem: p = K^T (a / K 1).
    let grid = grid(0.0, 3.0, 40);
    let support = line(&grid);
    let mut a: Vec<f64> = grid.iter().map(|x| 0.2 + (3.0 * x).sin().powi(2)).collect();
    a[7] = 0.0;
    let sum: f64 = a.iter().sum();
    let epsilon = 0.05;
    let k = |x: f64, y: f64| (-(x - y).powi(2) / epsilon).exp();
    let row: Vec<f64> = grid.iter().map(|x| grid.iter().map(|y| k(*x, *y)).sum()).collect();
    let expected: Vec<f64> = (grid.iter())
        .map(|y| grid.iter().enumerate().map(|(i, x)| a[i] / sum / row[i] * k(*x, *y)).sum())
        .collect();
    let one = histogram(&support, &a);
    let options = tight(epsilon).build().unwrap();
    let found = barycenter(std::slice::from_ref(&one), &[2.0], &support, &options).unwrap();
    assert!(found.converged() && found.marginal_error < 1e-12);
    assert!(apart(&found.weights, &expected) < 1e-12);
    assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-13);
    // Equal histograms, and others of weight zero, change nothing.
    let other = histogram(&support, &bell(&grid, 1.0, 0.1));
    for (measures, weights) in [
        (vec![one.clone(), one.clone(), one.clone()], vec![0.2, 0.3, 0.5]),
        (vec![one.clone(), other.clone(), other.clone()], vec![1.0, 0.0, 0.0]),
    ] {
        let again = barycenter(&measures, &weights, &support, &options).unwrap();
        assert!(apart(&again.weights, &expected) < 1e-12);
        assert!((again.value - found.value).abs() < 1e-12);
        assert_eq!(again.distances.len(), 3);
    }
}

#[test]
fn debiased_of_one_histogram_it_is_that_histogram() {
    let grid = grid(0.0, 3.0, 40);
    let support = line(&grid);
    let a: Vec<f64> = grid.iter().map(|x| 0.2 + (3.0 * x).sin().powi(2)).collect();
    let one = histogram(&support, &a);
    // The kernel is narrow enough to see every point.
    let options = tight(0.01).build().unwrap();
    let found = debiased(&[one.clone(), one.clone()], &[0.5, 0.5], &support, &options);
    assert!(found.converged() && found.debiased);
    assert!(
        apart(&found.weights, one.weights()) < 1e-6,
        "{}",
        apart(&found.weights, one.weights())
    );
    assert!(found.value.abs() < 1e-9, "{}", found.value);
}

#[test]
fn zeros_of_histograms_are_no_numbers_to_take_logarithms_of() {
    let grid = grid(0.0, 1.0, 60);
    let support = line(&grid);
    let step = |low: f64, high: f64| -> Vec<f64> {
        grid.iter().map(|x| f64::from(u8::from((low..=high).contains(x)))).collect()
    };
    let measures = [histogram(&support, &step(0.0, 0.2)), histogram(&support, &step(0.7, 0.9))];
    for epsilon in [1.0, 1e-2, 1e-4] {
        for debias in [false, true] {
            let options = Options::builder(epsilon).max_iterations(300).build().unwrap();
            let found = Barycenters::new(&options)
                .debiased(debias)
                .fixed(&measures, &[1.0, 1.0], &support)
                .unwrap();
            assert!(found.weights.iter().all(|p| p.is_finite() && *p >= 0.0));
            assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let (mean, _) = moments(&grid, &found.weights);
            assert!(
                (mean - 0.45).abs() < if epsilon < 0.1 { 0.01 } else { 0.05 },
                "{epsilon} {debias}: {mean}"
            );
        }
    }
}

/// The variance of the barycentre of centred normals, by bisection. Between variances `s` and `t` the plan has the
/// covariance `c` with `c^2 + c eps / 2 = s t` (the precision of the pair has `-2 / eps` off its diagonal), and the
/// scaling of `t` is `exp(-(s / c - 1) y^2 / eps)`; their product, by weight, is 1, or that of `W(p, p)`.
fn normal_variance(variances: &[f64], shares: &[f64], epsilon: f64, debiased: bool) -> f64 {
    let c = |s: f64, t: f64| (epsilon * epsilon / 16.0 + s * t).sqrt() - epsilon / 4.0;
    let excess = |t: f64| {
        let sum: f64 = variances.iter().zip(shares).map(|(s, l)| l * s / c(*s, t)).sum();
        sum - if debiased { t / c(t, t) } else { 1.0 }
    };
    let (mut low, mut high) = (1e-6, 1e3);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

#[test]
fn of_normals_it_is_the_normal_of_the_closed_form() {
    let grid = grid(-8.0, 9.0, 500);
    let support = line(&grid);
    let epsilon = 0.4;
    // Equal variances: the plain one gains eps / 2, the debiased one nothing.
    assert!((normal_variance(&[0.5, 0.5], &[0.3, 0.7], epsilon, false) - 0.7).abs() < 1e-12);
    assert!((normal_variance(&[0.5, 0.5], &[0.3, 0.7], epsilon, true) - 0.5).abs() < 1e-12);
    for variances in [[0.5, 0.5], [0.3, 0.8]] {
        let measures = [
            histogram(&support, &bell(&grid, -1.0, variances[0])),
            histogram(&support, &bell(&grid, 2.0, variances[1])),
        ];
        let shares = [0.3, 0.7];
        for method in [Method::dense(), Method::lattice()] {
            let options = Options::builder(epsilon)
                .method(method)
                .accuracy(1e-9)
                .tolerance(1e-9)
                .build()
                .unwrap();
            for debias in [false, true] {
                let found = Barycenters::new(&options)
                    .debiased(debias)
                    .fixed(&measures, &shares, &support)
                    .unwrap();
                assert!(found.converged());
                let (mean, variance) = moments(&grid, &found.weights);
                let expected = normal_variance(&variances, &shares, epsilon, debias);
                assert!((mean - 1.1).abs() < 1e-6, "{mean}");
                assert!((variance - expected).abs() < 1e-6, "{debias}: {variance} {expected}");
            }
        }
    }
}

#[test]
fn it_is_that_of_the_naive_projections() {
    let support = Points::new(normal(60, &[0.2, 0.1], 0.8, 1), 2).unwrap();
    let clouds = [normal(30, &[0.0, 0.0], 0.5, 2), normal(41, &[1.0, 0.3], 0.4, 3)];
    let points = clouds.map(|c| Points::new(c, 2).unwrap());
    let weights: Vec<Vec<f64>> =
        points.iter().map(|p| (0..p.len()).map(|i| 1.0 + (i % 3) as f64).collect()).collect();
    let measures: Vec<Measure<'_>> =
        points.iter().zip(&weights).map(|(p, w)| histogram(p, w)).collect();
    let (shares, epsilon) = ([0.4, 0.6], 0.7);
    let kernel = |x: &Points<'_>, y: &Points<'_>| -> Vec<f64> {
        squared_distances(x, y).iter().map(|c| (-c / epsilon).exp()).collect()
    };
    let kernels: Vec<Vec<f64>> = points.iter().map(|p| kernel(p, &support)).collect();
    let own = kernel(&support, &support);
    let a: Vec<Vec<f64>> = measures.iter().map(|m| m.weights().to_vec()).collect();
    for debias in [false, true] {
        let own = debias.then_some(&own[..]);
        // Debiased, the same iterations are compared: the limit is far.
        let most = if debias { 300 } else { 3000 };
        let expected = naive(&kernels, own, &a, &shares, support.len(), most);
        for method in [Method::dense(), Method::online(), Method::lattice()] {
            let options = tight(epsilon).method(method).accuracy(1e-11).tolerance(1e-11);
            let options = options.max_iterations(most).build().unwrap();
            let found = Barycenters::new(&options)
                .debiased(debias)
                .fixed(&measures, &shares, &support)
                .unwrap();
            assert!(debias || found.converged());
            let error = apart(&found.weights, &expected);
            assert!(error < 1e-8, "{debias} {:?}: {error}", found.method);
        }
    }
}

#[test]
fn kernels_that_are_equal_give_equal_barycentres() {
    // Features of rank 7, and the matrix of their costs.
    let (points, rank, epsilon) = (50, 7, 0.3);
    let xi: Vec<f64> =
        (0..points * rank).map(|i| 0.05 + ((i * i) as f64 * 0.37).sin().powi(2)).collect();
    let cost: Vec<f64> = (0..points * points)
        .map(|ij| {
            let (i, j) = (ij / points, ij % points);
            let product: f64 = (0..rank).map(|k| xi[i * rank + k] * xi[j * rank + k]).sum();
            -epsilon * product.ln()
        })
        .collect();
    let matrix = FeatureMatrix::new(&xi, points, rank).unwrap();
    let costs = CostMatrix::new(&cost, points, points).unwrap();
    let values = grid(0.0, 1.0, points);
    let support = line(&values);
    let mut a = bell(&values, 0.2, 0.01);
    a[40..].fill(0.0);
    let measures = [histogram(&support, &a), histogram(&support, &bell(&values, 0.7, 0.02))];
    for debias in [false, true] {
        let with = |method| {
            let most = if debias { 200 } else { 10_000 };
            let options = tight(epsilon).method(method).tolerance(1e-11).max_iterations(most);
            Barycenters::new(&options.build().unwrap()).debiased(debias)
        };
        let by_costs = |method| with(method).costs(costs.clone());
        let by_features = |method| with(method).features(matrix.clone(), matrix.clone());
        let solve =
            |asked: Barycenters<'_, '_>| asked.fixed(&measures, &[1.0, 3.0], &support).unwrap();
        let first = solve(by_features(Method::Auto));
        assert!(debias || first.converged());
        assert_eq!(first.rank, rank);
        for asked in [
            by_costs(Method::Auto),
            by_costs(Method::dense()),
            by_costs(Method::online()),
            by_features(Method::dense()),
        ] {
            let other = solve(asked);
            assert!(apart(&first.weights, &other.weights) < 1e-8, "{debias} {:?}", other.method);
            assert!((first.value - other.value).abs() < 1e-8, "{} {}", first.value, other.value);
        }
    }
}

#[test]
fn stored_lattices_windows_and_single_precision_agree() {
    let support = Points::new(normal(400, &[0.0, 0.0], 1.0, 1), 2).unwrap();
    let measures = [
        Measure::uniform(Points::new(normal(300, &[-1.0, 0.0], 0.4, 2), 2).unwrap()),
        Measure::uniform(Points::new(normal(200, &[1.0, 1.0], 0.3, 3), 2).unwrap()),
    ];
    let lattice = |stored| Method::Factored(Features::Gaussian(Anchors::Lattice { stored }));
    for debias in [false, true] {
        let solve = |method, tolerance, precision| {
            let options = Options::builder(0.1).method(method).accuracy(1e-9);
            let options = options.tolerance(tolerance).precision(precision);
            let options = options.max_iterations(if debias { 100 } else { 5000 }).build().unwrap();
            let found = Barycenters::new(&options)
                .debiased(debias)
                .fixed(&measures, &[1.0, 1.0], &support)
                .unwrap();
            assert!(debias || found.converged());
            found
        };
        let exact = solve(Method::online(), 1e-9, Precision::F64);
        let stored = solve(lattice(true), 1e-9, Precision::F64);
        let windows = solve(lattice(false), 1e-9, Precision::F64);
        let single = solve(Method::dense(), 1e-5, Precision::F32);
        assert!(apart(&exact.weights, &stored.weights) < 1e-7);
        assert!(apart(&exact.weights, &windows.weights) < 1e-7);
        let error = apart(&exact.weights, &single.weights);
        assert!(error < 1e-3, "{error}");
        assert!((exact.value - windows.value).abs() < 1e-7);
    }
}

#[test]
fn no_other_histogram_is_closer() {
    let grid = grid(0.0, 2.0, 30);
    let support = line(&grid);
    let measures = [
        histogram(&support, &bell(&grid, 0.4, 0.02)),
        histogram(&support, &bell(&grid, 1.5, 0.05)),
    ];
    let shares = [0.35, 0.65];
    for debias in [false, true] {
        let options = if debias { tight(0.02) } else { tight(0.1) }.build().unwrap();
        let found = Barycenters::new(&options)
            .debiased(debias)
            .fixed(&measures, &shares, &support)
            .unwrap();
        let objective = |p: &[f64]| -> (f64, Vec<f64>) {
            let p = histogram(&support, p);
            let terms: Vec<f64> = (measures.iter())
                .map(|a| {
                    if debias {
                        divergence(a, &p, &options).unwrap().value
                    } else {
                        rot(a, &p, &options).unwrap().value
                    }
                })
                .collect();
            (terms.iter().zip(shares).map(|(t, l)| l * t).sum(), terms)
        };
        let (best, terms) = objective(&found.weights);
        assert!((best - found.value).abs() < 1e-9, "{best} {}", found.value);
        for (term, distance) in terms.iter().zip(&found.distances) {
            assert!((term - distance).abs() < 1e-8, "{term} {distance}");
        }
        for mode in 1..8_u8 {
            for size in [-0.1, 0.1] {
                let p: Vec<f64> = (grid.iter().zip(&found.weights))
                    .map(|(x, p)| p * (1.0 + size * (f64::from(mode) * x * 1.5).sin()))
                    .collect();
                let other = objective(&p).0;
                assert!(other > best + 1e-8, "{debias} {mode} {size}: {other} {best}");
            }
        }
    }
}

/// The positive sphere as the paper's figure has it: 50 x 50 points, here the centres of the 2,500 triangles into
/// which the simplex is cut, so that the corners are alike; and bumps around the corners.
fn sphere() -> (Vec<f64>, [Vec<f64>; 3]) {
    let side = 50;
    let mut points = Vec::new();
    for (third, sum) in [(1.0, side - 1), (2.0, side - 2)] {
        for i in 0..=sum {
            for j in 0..=sum - i {
                let x = [i, j, sum - i - j].map(|c| f64::from(c) + third / 3.0);
                let norm = x.iter().map(|c| c * c).sum::<f64>().sqrt();
                points.extend(x.map(|c| c / norm));
            }
        }
    }
    let bump = |corner: usize| -> Vec<f64> {
        let angles = points.chunks_exact(3).map(|x| x[corner].acos());
        angles.map(|angle| (-0.5 * (angle / 0.1).powi(2)).exp()).collect()
    };
    let bumps = [bump(0), bump(1), bump(2)];
    (points, bumps)
}

#[test]
fn the_positive_sphere_of_the_paper() {
    let (points, bumps) = sphere();
    let support = Points::new(&points, 3).unwrap();
    assert_eq!(support.len(), 2500);
    let corners = bumps.map(|b| histogram(&support, &b));
    let options = Options::builder(1.0)
        .method(Method::Factored(Features::Linear))
        .tolerance(1e-10)
        .build()
        .unwrap();
    let found = barycenter(&corners, &[1.0, 1.0, 1.0], &support, &options).unwrap();
    assert!(found.converged());
    assert_eq!(found.rank, 3);
    let peaks = found.softmax(1000.0).unwrap();
    let peak = |p: &[f64]| (0..p.len()).max_by(|i, j| p[*i].total_cmp(&p[*j])).unwrap();
    // The largest weights are in the middle, the smallest in the corners.
    let middle = 1.0 / 3.0_f64.sqrt();
    for p in [&found.weights, &peaks] {
        let at = &points[3 * peak(p)..3 * peak(p) + 3];
        assert!(at.iter().all(|x| (x - middle).abs() < 0.02), "{at:?}");
        let lowest = (0..p.len()).min_by(|i, j| p[*i].total_cmp(&p[*j])).unwrap();
        assert!(points[3 * lowest..3 * lowest + 3].iter().any(|x| *x > 0.999));
    }
    // The softmax makes the peak stand out.
    let near = |p: &[f64]| -> f64 {
        let angle = |x: &[f64]| (middle * x.iter().sum::<f64>()).min(1.0).acos();
        points.chunks_exact(3).zip(p).filter(|(x, _)| angle(x) < 0.15).map(|(_, p)| p).sum()
    };
    assert!(
        near(&found.weights) < 0.1 && near(&peaks) > 0.99,
        "{} {}",
        near(&found.weights),
        near(&peaks)
    );
    // The corners are alike: turning the coordinates changes nothing.
    let place = |x: [f64; 3]| {
        let far = |i: usize| (0..3).map(|c| (points[3 * i + c] - x[c]).abs()).sum::<f64>();
        (0..2500).min_by(|i, j| far(*i).total_cmp(&far(*j))).unwrap()
    };
    for i in (0..2500).step_by(17) {
        let x = [points[3 * i], points[3 * i + 1], points[3 * i + 2]];
        for turned in [[x[1], x[2], x[0]], [x[1], x[0], x[2]]] {
            let j = place(turned);
            assert!((found.weights[i] - found.weights[j]).abs() < 1e-11);
        }
    }
    // A heavier corner attracts the peak.
    let heavy = barycenter(&corners, &[4.0, 1.0, 1.0], &support, &options).unwrap();
    let at = &points[3 * peak(&heavy.weights)..];
    assert!(at[0] > middle + 0.1 && (at[1] - at[2]).abs() < 0.02, "{:?}", &at[..3]);
    // The same with the kernel stored.
    let dense = tight(1.0).method(Method::Dense(Cost::Features(Features::Linear)));
    let dense = dense.tolerance(1e-10).build().unwrap();
    let dense = barycenter(&corners, &[1.0, 1.0, 1.0], &support, &dense).unwrap();
    assert!(apart(&dense.weights, &found.weights) < 1e-8);
}

#[test]
fn random_features_share_one_kernel() {
    // With a kernel for each pair the debiased barycentre of one cloud would not be that cloud.
    let points = normal(200, &[0.0; 5], 1.0, 4);
    let support = Points::new(&points, 5).unwrap();
    let weights: Vec<f64> = (0..200).map(|i| 1.0 + f64::from(i % 4)).collect();
    let one = histogram(&support, &weights);
    for method in [Method::gaussian(), Method::paper(), Method::adaptive()] {
        let options = Options::builder(4.0).method(method).rank(300).tolerance(1e-3);
        let options = options.max_iterations(2000).build().unwrap();
        let found = debiased(std::slice::from_ref(&one), &[1.0], &support, &options);
        assert!(found.converged() && found.value > -1e-6 && found.value < 2e-3, "{}", found.value);
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let support = Points::new(normal(700, &[0.0, 0.0], 1.0, 1), 2).unwrap();
    let measures = [
        Measure::uniform(Points::new(normal(900, &[-1.0, 0.0], 0.4, 2), 2).unwrap()),
        Measure::uniform(Points::new(normal(800, &[1.0, 1.0], 0.3, 3), 2).unwrap()),
    ];
    for method in [Method::lattice(), Method::gaussian(), Method::dense()] {
        let options = Options::builder(0.5).method(method).rank(100).max_iterations(20).build();
        let options = options.unwrap();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let found = Barycenters::new(&options).debiased(true);
                found.fixed(&measures, &[1.0, 2.0], &support).unwrap()
            })
        };
        let (one, three) = (run(1), run(3));
        assert_eq!(one.weights, three.weights);
        assert_eq!(one.value, three.value);
    }
}

#[test]
fn limits_and_observers_end_it_with_what_there_is() {
    let grid = grid(0.0, 1.0, 50);
    let support = line(&grid);
    let measures = [
        histogram(&support, &bell(&grid, 0.2, 0.001)),
        histogram(&support, &bell(&grid, 0.8, 0.003)),
    ];
    let options = Options::builder(0.003).tolerance(1e-12).max_iterations(7).build().unwrap();
    let found = barycenter(&measures, &[0.5, 0.5], &support, &options).unwrap();
    assert_eq!((found.stop, found.iterations), (Stop::IterationLimit, 7));
    assert!(found.marginal_error > 1e-12 && !found.converged());
    let mut values = Vec::new();
    let mut observer = |progress: &mut Progress<'_>| {
        values.push(progress.value());
        if progress.iteration == 3 { Next::Stop } else { Next::Continue }
    };
    let found = Barycenters::new(&options).observer(&mut observer);
    let found = found.fixed(&measures, &[0.5, 0.5], &support).unwrap();
    assert_eq!((found.stop, found.iterations), (Stop::Requested, 3));
    // A dual value only rises.
    assert!(values.windows(2).all(|v| v[0] <= v[1] + 1e-12), "{values:?}");
    let options = Options::builder(0.003).tolerance(1e-12).time_limit(std::time::Duration::ZERO);
    let found = barycenter(&measures, &[0.5, 0.5], &support, &options.build().unwrap()).unwrap();
    assert_eq!((found.stop, found.iterations), (Stop::TimeLimit, 1));
}

#[test]
fn bad_input_is_an_error_that_says_so() {
    let values = grid(0.0, 1.0, 5);
    let support = line(&values);
    let one = Measure::uniform(support.borrowed());
    let flat = Measure::uniform(Points::new(vec![0.0; 6], 2).unwrap());
    let options = Options::builder(0.1).build().unwrap();
    let fails = |measures: &[Measure<'_>], weights: &[f64]| {
        barycenter(measures, weights, &support, &options).unwrap_err()
    };
    let two = [one.clone(), one.clone()];
    assert_eq!(fails(&[], &[]), Error::ShareCount { weights: 0, measures: 0 });
    assert_eq!(fails(&two, &[1.0]), Error::ShareCount { weights: 1, measures: 2 });
    for bad in [[-1.0, 1.0], [f64::NAN, 1.0], [f64::INFINITY, 1.0], [0.0, 0.0]] {
        assert!(matches!(fails(&two, &bad), Error::Option { name: "the weight of a measure", .. }));
    }
    let message = fails(&[one.clone(), flat], &[1.0, 1.0]).to_string();
    assert!(message.starts_with("cloud 2: the clouds have 2 and 1 coordinates"), "{message}");
    let fails_with = |options: OptionsBuilder, debias| {
        let options = options.build().unwrap();
        Barycenters::new(&options).debiased(debias).fixed(&two, &[1.0, 1.0], &support).unwrap_err()
    };
    let with = || Options::builder(0.1);
    assert!(matches!(fails_with(with().reach(1.0), false), Error::NotFor { .. }));
    assert!(matches!(fails_with(with().method(Method::nystrom()), false), Error::NotFor { .. }));
    let mut cost = vec![1.0; 25];
    cost[3] = 2.0;
    let fails_on = |matrix: &CostMatrix<'_>, debias| {
        let barycenters = Barycenters::new(&options).costs(matrix.clone()).debiased(debias);
        barycenters.fixed(&two, &[1.0, 1.0], &support).unwrap_err()
    };
    let matrix = CostMatrix::new(&cost, 5, 5).unwrap();
    assert_eq!(fails_on(&matrix, true), Error::NotSymmetric { row: 4, column: 1 });
    let matrix = CostMatrix::new(vec![1.0; 20], 5, 4).unwrap();
    assert!(matches!(fails_on(&matrix, true), Error::NoSelfTerms { .. }));
    let error = fails_on(&matrix, false);
    assert!(matches!(error, Error::InClouds { clouds: [0, 0], .. }), "{error}");
    let error = fails_with(with().method(Method::dense()).max_memory(100), false);
    assert!(matches!(error, Error::Memory { .. }), "{error}");
    let error = fails_with(with().method(Method::Factored(Features::Linear)), false);
    assert!(matches!(error, Error::InCloud { .. } | Error::InClouds { .. }), "{error}");
}

#[test]
fn a_plan_to_the_barycentre_has_it_as_its_marginal() {
    let grid = grid(0.0, 1.0, 40);
    let support = line(&grid);
    let measures = [
        histogram(&support, &bell(&grid, 0.3, 0.01)),
        histogram(&support, &bell(&grid, 0.6, 0.02)),
    ];
    let options = tight(0.05).build().unwrap();
    let found = barycenter(&measures, &[0.5, 0.5], &support, &options).unwrap();
    // At the optimum the potentials of p cancel, by weight, up to a constant.
    let p = histogram(&support, &found.weights);
    let potentials: Vec<Vec<f64>> =
        (measures.iter()).map(|a| Solver::new(&options).rot(a, &p).unwrap().potential_y).collect();
    let sums: Vec<f64> = potentials[0].iter().zip(&potentials[1]).map(|(a, b)| a + b).collect();
    for (sum, p) in sums.iter().zip(&found.weights).filter(|(_, p)| **p > 1e-9) {
        assert!((sum - sums[18]).abs() < 1e-6, "{sum} {} {p}", sums[18]);
    }
}
