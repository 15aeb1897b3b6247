//! Feature maps against the kernels that they stand for.

use std::f64::consts::PI;
use std::sync::Arc;

use crate::common::{normal, relative};
use orthant::features::{self, ArcCosine, FeatureMap, FeatureMatrix, Gaussian, Linear};
use orthant::theory;
use orthant::{
    CostMatrix, Error, Measure, Method, Options, Points, Shape, Side, Solver, divergence,
    options::Features, results::MethodUsed, rot,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// `log phi_k(x_i)`, one vector a point.
fn logs(map: &dyn FeatureMap, points: &Points<'_>) -> Vec<Vec<f64>> {
    let stride = map.rank().next_multiple_of(8);
    let mut out = vec![0.0; points.len() * stride];
    map.log_features(points, 0, stride, &mut out);
    out.chunks(stride).map(|row| row[..map.rank()].to_vec()).collect()
}

/// `k_theta(x_i, y_j)` of all pairs, row-major.
fn kernel(map: &dyn FeatureMap, x: &Points<'_>, y: &Points<'_>) -> Vec<f64> {
    let (lx, ly) = (logs(map, x), logs(map, y));
    lx.iter()
        .flat_map(|a| ly.iter().map(|b| a.iter().zip(b).map(|(a, b)| (a + b).exp()).sum()))
        .collect()
}

fn squared_distances(x: &Points<'_>, y: &Points<'_>) -> Vec<f64> {
    (0..x.len())
        .flat_map(|i| (0..y.len()).map(move |j| (i, j)))
        .map(|(i, j)| (0..x.dim()).map(|k| (x.coordinate(i, k) - y.coordinate(j, k)).powi(2)).sum())
        .collect()
}

/// Mean and standard error over seeds of a vector of numbers.
fn statistics(seeds: u64, of: impl Fn(u64) -> Vec<f64>) -> Vec<(f64, f64)> {
    let draws: Vec<Vec<f64>> = (0..seeds).map(of).collect();
    let count = seeds as f64;
    (0..draws[0].len())
        .map(|p| {
            let mean = draws.iter().map(|d| d[p]).sum::<f64>() / count;
            let variance = draws.iter().map(|d| (d[p] - mean).powi(2)).sum::<f64>() / (count - 1.0);
            (mean, (variance / count).sqrt())
        })
        .collect()
}

/// Asserts that every mean is within 4 standard errors of its oracle: a chance of 6e-5 each to fail
/// by accident, decided once and for all by the seeds.
fn assert_unbiased(name: &str, statistics: &[(f64, f64)], exact: &[f64]) {
    assert_eq!(statistics.len(), exact.len());
    for ((mean, error), exact) in statistics.iter().zip(exact) {
        // The test has power: five percent would be seen.
        assert!(*error < 0.0125 * exact, "{name}: {mean} +- {error}");
        assert!((mean - exact).abs() < 4.0 * error, "{name}: {mean} +- {error}, not {exact}");
    }
}

fn two_clouds(centre: [f64; 2]) -> (Measure<'static>, Measure<'static>) {
    let cloud = |n, seed| Measure::uniform(Points::new(normal(n, &centre, 0.5, seed), 2).unwrap());
    (cloud(3, 1), cloud(4, 2))
}

#[test]
fn gaussian_features_are_unbiased_for_the_gaussian_kernel() {
    // Centred features do not care where the clouds are; the paper's do, through R, so they get
    // clouds near the origin.
    for (centred, centre) in [(true, [0.0, 0.0]), (true, [7.0, -3.0]), (false, [0.1, 0.2])] {
        let (mu, nu) = two_clouds(centre);
        for epsilon in [1.0, 5.0] {
            let exact: Vec<f64> = squared_distances(mu.points(), nu.points())
                .iter()
                .map(|c| (-c / epsilon).exp())
                .collect();
            let found = statistics(2000, |seed| {
                let map = Gaussian::paper(&mu, &nu, epsilon, 200, seed, centred).unwrap();
                kernel(&map, mu.points(), nu.points())
            });
            assert_unbiased(&format!("centred {centred}, epsilon {epsilon}"), &found, &exact);
        }
    }
}

/// What the map should hold: the common centre, the radius, the paper's `q` and the anchors, all in
/// plain double precision from the same draws.
struct Plain {
    centre: Vec<f64>,
    radius: f64,
    q: f64,
    anchors: Vec<Vec<f64>>,
    epsilon: f64,
}

impl Plain {
    fn new(
        mu: &Measure<'_>,
        nu: &Measure<'_>,
        epsilon: f64,
        rank: usize,
        seed: u64,
        centred: bool,
    ) -> Self {
        let dim = mu.dim();
        let centre: Vec<f64> = mu
            .mean()
            .iter()
            .zip(nu.mean())
            .map(|(x, y)| if centred { 0.5 * (x + y) } else { 0.0 })
            .collect();
        let mut radius = 0.0_f64;
        for p in [mu.points(), nu.points()] {
            for i in 0..p.len() {
                let square: f64 = (0..dim).map(|k| (p.coordinate(i, k) - centre[k]).powi(2)).sum();
                radius = radius.max(square.sqrt());
            }
        }
        let q = theory::paper_q(radius, epsilon, dim);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let anchors = (0..rank)
            .map(|_| (0..dim).map(|_| (q * epsilon / 4.0).sqrt() * normal()).collect())
            .collect();
        Plain { centre, radius, q, anchors, epsilon }
    }

    /// `phi_theta(x_i)`, with `||u||^2/(eps divisor)` in the last exponent.
    fn features(&self, p: &Points<'_>, i: usize, divisor: f64) -> Vec<f64> {
        let (dim, rank) = (p.dim() as f64, self.anchors.len() as f64);
        self.anchors
            .iter()
            .map(|u| {
                let mut exponent = 0.0;
                for (k, u) in u.iter().enumerate() {
                    let away = p.coordinate(i, k) - self.centre[k] - u;
                    exponent +=
                        -2.0 * away * away / self.epsilon + u * u / (self.epsilon * divisor);
                }
                (2.0 * self.q).powf(dim / 4.0) * exponent.exp() / rank.sqrt()
            })
            .collect()
    }
}

#[test]
fn gaussian_features_agree_with_lemma_1_entry_by_entry() {
    let (mu, nu) = two_clouds([1.0, 2.0]);
    for centred in [true, false] {
        for epsilon in [0.1, 0.7, 30.0] {
            let map = Gaussian::paper(&mu, &nu, epsilon, 37, 5, centred).unwrap();
            let plain = Plain::new(&mu, &nu, epsilon, 37, 5, centred);
            assert!(relative(map.q()[0], plain.q) < 1e-14);
            for p in [mu.points(), nu.points()] {
                for (i, row) in logs(&map, p).iter().enumerate() {
                    let expected = plain.features(p, i, plain.q);
                    for (log, phi) in row.iter().zip(&expected) {
                        // Exponents reach 300: each is off by its rounding, 300 * 1e-16 a few times.
                        assert!((log - phi.ln()).abs() < 1e-12, "{epsilon}: {log} {}", phi.ln());
                    }
                }
            }
        }
    }
}

#[test]
fn the_exponent_printed_in_lemma_1_is_biased() {
    // ||u||^2/eps/(1/2 + R^2/eps) in place of ||u||^2/(eps q), all else equal.
    let (mu, nu) = two_clouds([0.0, 0.0]);
    let epsilon = 1.0;
    let exact = (-squared_distances(mu.points(), nu.points())[0] / epsilon).exp();
    let estimate = |printed: bool| {
        statistics(2000, |seed| {
            let plain = Plain::new(&mu, &nu, epsilon, 200, seed, true);
            let divisor = if printed { 0.5 + plain.radius.powi(2) / epsilon } else { plain.q };
            let x = plain.features(mu.points(), 0, divisor);
            let y = plain.features(nu.points(), 0, divisor);
            vec![x.iter().zip(&y).map(|(x, y)| x * y).sum()]
        })[0]
    };
    let (mean, error) = estimate(false);
    assert!((mean - exact).abs() < 4.0 * error, "{mean} +- {error}, not {exact}");
    let (mean, error) = estimate(true);
    assert!((mean - exact).abs() > 50.0 * error, "{mean} +- {error}, not {exact}");
    assert!(mean < 0.9 * exact, "{mean} {exact}");
}

#[test]
fn the_error_of_gaussian_features_has_the_variance_of_the_theory_and_falls_as_one_over_sqrt_rank() {
    let (mu, nu) = two_clouds([0.0, 0.0]);
    let (x, y, epsilon, seeds) = (mu.points(), nu.points(), 2.0, 300);
    let exact: Vec<f64> = squared_distances(x, y).iter().map(|c| (-c / epsilon).exp()).collect();
    let ranks: Vec<usize> = (0..7).map(|k| 50 << k).collect();
    let mut points = Vec::new();
    for &rank in &ranks {
        let mut sum = 0.0;
        for seed in 0..seeds {
            let map = Gaussian::paper(&mu, &nu, epsilon, rank, 1000 + seed, true).unwrap();
            sum += kernel(&map, x, y)
                .iter()
                .zip(&exact)
                .map(|(k, e)| (k / e - 1.0).powi(2))
                .sum::<f64>();
        }
        let rms = (sum / seeds as f64 / exact.len() as f64).sqrt();
        // Variance (prod over axes of the second moment - 1) / r of each pair, averaged.
        let plain = Plain::new(&mu, &nu, epsilon, 1, 0, true);
        let mut variance = 0.0;
        for i in 0..x.len() {
            for j in 0..y.len() {
                let moment: f64 = (0..2)
                    .map(|k| {
                        let m = 0.5 * (x.coordinate(i, k) + y.coordinate(j, k)) - plain.centre[k];
                        theory::second_moment(plain.q, m, epsilon)
                    })
                    .product();
                variance += (moment - 1.0) / rank as f64 / exact.len() as f64;
            }
        }
        // 300 seeds give an RMS to 4%, or twice that for heavy tails and pairs that share anchors.
        assert!(relative(rms, variance.sqrt()) < 0.15, "{rank}: {rms} {}", variance.sqrt());
        points.push(((rank as f64).ln(), rms.ln()));
    }
    let slope = slope(&points);
    assert!((slope + 0.5).abs() < 0.1, "{slope}");
    // Measured: -0.4994.
    assert!((slope + 0.5).abs() < 0.05, "{slope}");
}

/// Least-squares slope.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let covariance: f64 = points.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    covariance / points.iter().map(|(x, _)| (x - mx).powi(2)).sum::<f64>()
}

/// `k_s(x, y) = |x|^s |y|^s J_s(angle) / pi` (Cho & Saul 2009).
fn arc_cosine(order: u8, x: &[f64], y: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let norms = (dot(x, x) * dot(y, y)).sqrt();
    let t = (dot(x, y) / norms).clamp(-1.0, 1.0).acos();
    let j = match order {
        0 => PI - t,
        1 => t.sin() + (PI - t) * t.cos(),
        _ => 3.0 * t.sin() * t.cos() + (PI - t) * (1.0 + 2.0 * t.cos().powi(2)),
    };
    norms.powi(i32::from(order)) * j / PI
}

#[test]
fn arc_cosine_features_are_unbiased_for_cho_and_saul() {
    // Equal, close, orthogonal and nearly opposite points.
    let x = [[1.0, 0.0, 0.0], [0.5, -0.5, 1.0]];
    let y = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.2], [-0.6, 0.5, -0.7]];
    let (px, py) = (Points::new(x.concat(), 3).unwrap(), Points::new(y.concat(), 3).unwrap());
    let kappa = 0.3;
    for order in [0, 1, 2] {
        let exact: Vec<f64> =
            x.iter().flat_map(|x| y.iter().map(move |y| kappa + arc_cosine(order, x, y))).collect();
        for sigma in [1.0, 1.5, 2.0] {
            let found = statistics(2000, |seed| {
                let map = ArcCosine::new(3, order, kappa, sigma, 201, seed).unwrap();
                kernel(&map, &px, &py)
            });
            assert_unbiased(&format!("order {order}, sigma {sigma}"), &found, &exact);
        }
    }
}

#[test]
fn arc_cosine_kernels_are_at_least_kappa_and_equal_it_at_the_origin() {
    let points = Points::new(vec![0.0, 0.0, 1.0, -1.0, -1.0, 1.0], 2).unwrap();
    for order in [0, 1, 2] {
        for sigma in [1.0, 1.7] {
            let map = ArcCosine::new(2, order, 0.01, sigma, 50, 3).unwrap();
            let k = kernel(&map, &points, &points);
            // u.0 = 0 is not positive: all features but the constant vanish. Rounding of exp(log).
            assert!((k[0] - 0.01).abs() < 1e-16);
            // Opposite points share no half-space.
            assert!((k[5] - 0.01).abs() < 1e-16, "{}", k[5]);
            assert!(k.iter().all(|k| *k > 0.01 * (1.0 - 1e-12)));
        }
    }
}

#[test]
fn all_gaussian_kernels_are_positive() {
    let (mu, nu) = two_clouds([0.0, 0.0]);
    for epsilon in [0.01, 0.1, 1.0, 100.0] {
        for seed in 0..20 {
            let map = Gaussian::paper(&mu, &nu, epsilon, 5, seed, true).unwrap();
            assert!(kernel(&map, mu.points(), nu.points()).iter().all(|k| *k > 0.0));
        }
    }
}

#[test]
fn log_features_are_finite_over_twelve_decades_of_epsilon() {
    for dim in [1, 3, 28] {
        let cloud = |n, seed| {
            Measure::uniform(Points::new(normal(n, &vec![0.5; dim], 1.0, seed), dim).unwrap())
        };
        let (mu, nu) = (cloud(9, 1), cloud(11, 2));
        let plain = Plain::new(&mu, &nu, 1.0, 1, 0, true);
        let square = plain.radius.powi(2);
        for power in -6..=6 {
            let epsilon = 10f64.powi(power) * square;
            for centred in [true, false] {
                let map = Gaussian::paper(&mu, &nu, epsilon, 64, 9, centred).unwrap();
                assert!(map.q().iter().all(|q| q.is_finite() && *q >= 0.5));
                for (a, b) in logs(&map, mu.points()).iter().zip(&logs(&map, nu.points())) {
                    assert!(a.iter().chain(b).all(|l| l.is_finite()), "{power}");
                    let top = a.iter().zip(b).map(|(a, b)| a + b).fold(f64::NEG_INFINITY, f64::max);
                    // Nothing that could overflow: a kernel estimate of e^700 would be absurd.
                    assert!(top < 700.0, "{power}: {top}");
                }
            }
        }
    }
}

#[test]
fn linear_features_give_inner_products() {
    let x = vec![1.0, 2.0, 0.5, 1e-200, 3.0, 1e-3];
    let y = vec![4.0, 0.25, 1e-9, 7.0];
    let (px, py) = (Points::new(x.clone(), 2).unwrap(), Points::new(y.clone(), 2).unwrap());
    let map = Linear::new(2).unwrap();
    assert_eq!((map.dim(), map.rank()), (2, 2));
    let found = kernel(&map, &px, &py);
    for (i, x) in x.chunks(2).enumerate() {
        for (j, y) in y.chunks(2).enumerate() {
            let exact = x[0] * y[0] + x[1] * y[1];
            // Logarithms up to 460: exp(log) is off by 460 * 1e-16.
            assert!(relative(found[2 * i + j], exact) < 1e-13);
        }
    }
    // And the cost is -eps log x.y: one point each, W = c.
    let (mu, nu) = (
        Measure::uniform(Points::new(vec![1.0, 2.0], 2).unwrap()),
        Measure::uniform(Points::new(vec![4.0, 0.25], 2).unwrap()),
    );
    let o = Options::builder(0.5).method(Method::Factored(Features::Linear)).build().unwrap();
    assert!((rot(&mu, &nu, &o).unwrap().value + 0.5 * 4.5_f64.ln()).abs() < 1e-14);
}

#[test]
fn an_explicit_matrix_stands_for_its_product() {
    // Xi Zeta^T against the same product as a cost matrix.
    let (xi, zeta) = (vec![1.0, 2.0, 0.5, 3.0, 1.0, 1.0], vec![0.3, 0.7, 2.0, 0.1]);
    let epsilon = 0.7;
    let costs: Vec<f64> = xi
        .chunks(2)
        .flat_map(|x| zeta.chunks(2).map(move |z| -epsilon * f64::ln(x[0] * z[0] + x[1] * z[1])))
        .collect();
    let points = |n: usize| Measure::uniform(Points::new(vec![0.0; n], 1).unwrap());
    let (mu, nu) = (points(3), points(2));
    let options = Options::builder(epsilon).tolerance(1e-13).build().unwrap();
    let costs = CostMatrix::new(costs, 3, 2).unwrap();
    let (xi, zeta) =
        (FeatureMatrix::new(&xi, 3, 2).unwrap(), FeatureMatrix::new(&zeta, 2, 2).unwrap());
    let exact = Solver::new(&options).costs(costs).rot(&mu, &nu).unwrap();
    let found = Solver::new(&options).features(xi, zeta).rot(&mu, &nu).unwrap();
    assert_eq!((exact.method, found.method), (MethodUsed::Dense, MethodUsed::Explicit));
    assert!(relative(found.value, exact.value) < 1e-12);
    assert!(relative(found.transport_cost.unwrap(), exact.transport_cost.unwrap()) < 1e-12);
}

/// A map into an orthant of the wrong size.
fn arc(dim: usize, rank: usize) -> Arc<dyn FeatureMap> {
    Arc::new(ArcCosine::new(dim, 0, 1.0, 1.0, rank, 0).unwrap())
}

#[test]
fn bad_arguments_have_their_error_and_message() {
    let (mu, nu) = two_clouds([0.0, 0.0]);
    let gaussian = |epsilon, rank| Gaussian::paper(&mu, &nu, epsilon, rank, 0, true).map(|_| ());
    let arc_cosine = |dim, order, kappa, sigma, rank| {
        ArcCosine::new(dim, order, kappa, sigma, rank, 0).map(|_| ())
    };
    let matrix = |v: Vec<f64>, n, r| FeatureMatrix::new(v, n, r).map(|_| ());
    let linear = |v: Vec<f64>| Linear::new(2).unwrap().check(&Points::new(v, 2).unwrap());
    let method = |features: Features| {
        let o = Options::builder(1.0).method(Method::Factored(features)).build().unwrap();
        rot(&mu, &nu, &o).map(|_| ())
    };
    let cases: Vec<(orthant::Result<()>, &str)> = vec![
        (gaussian(1.0, 0), "rank must be at least 1, got 0"),
        (gaussian(0.0, 9), "epsilon must be positive and finite, got 0"),
        (gaussian(f64::NAN, 9), "epsilon must be positive and finite, got NaN"),
        (
            arc_cosine(2, 3, 1.0, 1.0, 9),
            "the order of the arc-cosine kernel must be 0, 1 or 2, got 3",
        ),
        (arc_cosine(2, 1, 0.0, 1.0, 9), "kappa must be positive and finite, got 0"),
        (arc_cosine(2, 1, f64::INFINITY, 1.0, 9), "kappa must be positive and finite, got inf"),
        (arc_cosine(2, 1, 1.0, 0.5, 9), "sigma must be at least 1 and finite, got 0.5"),
        (arc_cosine(2, 1, 1.0, f64::NAN, 9), "sigma must be at least 1 and finite, got NaN"),
        (arc_cosine(2, 1, 1.0, 1.0, 1), "rank must be at least 2 for the arc-cosine kernel, got 1"),
        (
            linear(vec![1.0, 2.0, 3.0, 0.0]),
            "feature 2 of point 2 is 0; positive features must be positive and finite",
        ),
        (
            linear(vec![-1.5, 2.0]),
            "feature 1 of point 1 is -1.5; positive features must be positive and finite",
        ),
        (
            matrix(vec![1.0, 1.0, 1.0, 0.0, 1.0, 1.0], 2, 3),
            "feature 1 of point 2 is 0; positive features must be positive and finite",
        ),
        (
            matrix(vec![1.0, f64::NAN], 1, 2),
            "feature 2 of point 1 is NaN; positive features must be positive and finite",
        ),
        (
            matrix(vec![1.0, 1.0, f64::INFINITY], 3, 1),
            "feature 1 of point 3 is inf; positive features must be positive and finite",
        ),
        (matrix(vec![1.0; 5], 2, 3), "the feature matrix must be 2 x 3, got 1 x 5"),
        (matrix(vec![], 0, 3), "the cloud has no points; at least one is needed"),
        (matrix(vec![], 3, 0), "rank must be at least 1, got 0"),
        (
            method(Features::Map(arc(3, 8))),
            "first cloud: the feature map takes points of 3 coordinates, the cloud has 2",
        ),
        (
            method(Features::Pair(arc(2, 8), arc(2, 9))),
            "the two feature maps have ranks 8 and 9; both need the same rank",
        ),
        (
            Solver::new(&Options::builder(1.0).build().unwrap())
                .features(
                    FeatureMatrix::new(vec![1.0; 6], 3, 2).unwrap(),
                    FeatureMatrix::new(vec![1.0; 12], 4, 3).unwrap(),
                )
                .rot(&mu, &nu)
                .map(|_| ()),
            "the two feature maps have ranks 2 and 3; both need the same rank",
        ),
        (
            method(Features::ArcCosine { order: 3, kappa: 1.0, sigma: 1.0 }),
            "the order of the arc-cosine kernel must be 0, 1 or 2, got 3",
        ),
    ];
    for (result, message) in cases {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
    assert_eq!(ArcCosine::new(0, 1, 1.0, 1.0, 9, 0).unwrap_err(), Error::NoCoordinates);
    assert_eq!(Linear::new(0).unwrap_err(), Error::NoCoordinates);
}

#[test]
fn errors_carry_what_their_message_says() {
    let (mu, nu) = two_clouds([0.0, 0.0]);
    let ones = |n, r| FeatureMatrix::new(vec![1.0; n * r], n, r).unwrap();
    let options = Options::builder(1.0).build().unwrap();
    let given = |x, y| Solver::new(&options).features(x, y).rot(&mu, &nu).unwrap_err();
    assert_eq!(
        given(ones(2, 3), ones(4, 3)),
        Error::Shape {
            what: "the first feature matrix",
            expected: Shape { rows: 3, columns: 3 },
            got: Shape { rows: 2, columns: 3 },
        }
    );
    assert_eq!(
        given(ones(3, 3), ones(5, 3)),
        Error::Shape {
            what: "the second feature matrix",
            expected: Shape { rows: 4, columns: 3 },
            got: Shape { rows: 5, columns: 3 },
        }
    );
    // Which cloud, then which point and coordinate.
    let positive = Measure::uniform(Points::new(vec![1.0, 2.0, 3.0, 4.0], 2).unwrap());
    let mixed = Measure::uniform(Points::new(vec![1.0, 2.0, 3.0, -4.0], 2).unwrap());
    let o = Options::builder(1.0).method(Method::Factored(Features::Linear)).build().unwrap();
    let feature = |row, column, value| Box::new(Error::Feature { row, column, value });
    assert_eq!(
        rot(&positive, &mixed, &o).unwrap_err(),
        Error::InCloud { cloud: Side::Y, source: feature(2, 2, -4.0) }
    );
    // Counted among all points, also where others have no weight. A point of weight zero needs a
    // potential too, so the map must be defined there.
    for (x, row, column, value) in [
        (vec![1.0, 2.0, 3.0, 4.0, 0.0, 5.0], 3, 1, 0.0),
        (vec![1.0, 2.0, 3.0, -4.0, 6.0, 5.0], 2, 2, -4.0),
    ] {
        let weighted = Measure::weighted(Points::new(x, 2).unwrap(), &[0.0, 0.0, 1.0]).unwrap();
        assert_eq!(
            rot(&weighted, &positive, &o).unwrap_err(),
            Error::InCloud { cloud: Side::X, source: feature(row, column, value) }
        );
    }
    // A pair of maps may take clouds of different dimensions; each is checked against its own.
    let line = Measure::uniform(Points::new(vec![0.5, 1.0], 1).unwrap());
    let pair = |x, y| {
        let o =
            Options::builder(1.0).method(Method::Factored(Features::Pair(x, y))).build().unwrap();
        rot(&mu, &line, &o)
    };
    assert!(pair(arc(2, 8), arc(1, 8)).unwrap().converged());
    assert_eq!(
        pair(arc(1, 8), arc(1, 8)).unwrap_err(),
        Error::InCloud {
            cloud: Side::X,
            source: Box::new(Error::MapDimension { map: 1, points: 2 }),
        }
    );
    // A divergence of two measures on one line, for good measure.
    let o =
        Options::builder(1.0).method(Method::Factored(Features::Map(arc(1, 8)))).build().unwrap();
    assert!(divergence(&line, &line, &o).unwrap().value.abs() < 1e-9);
}

#[test]
fn a_function_is_the_map_that_it_writes() {
    let (n, m) = (30, 20);
    let (x, y) = (normal(n, &[0.3, 0.1], 0.7, 1), normal(m, &[0.0, 0.5], 0.5, 2));
    let features = |x: &[f64], out: &mut [f64]| {
        out.copy_from_slice(&[1.0, x[0].exp(), (x[0] - x[1]).exp(), 0.1 + x[1] * x[1]]);
    };
    let map: Arc<dyn FeatureMap> = Arc::new(features::from_fn(2, 4, features).unwrap());
    let matrix = |points: &[f64], n: usize| {
        let mut rows = vec![0.0; 4 * n];
        points.chunks(2).zip(rows.chunks_mut(4)).for_each(|(x, out)| features(x, out));
        FeatureMatrix::new(rows, n, 4).unwrap()
    };
    let solve = |features, x: Points<'_>, y: Points<'_>| {
        let method = Method::Factored(features);
        let options = Options::builder(0.5).method(method).tolerance(1e-10).build().unwrap();
        divergence(&Measure::uniform(x), &Measure::uniform(y), &options).unwrap().value
    };
    let double = || (Points::new(&x, 2).unwrap(), Points::new(&y, 2).unwrap());
    let options = Options::builder(0.5).tolerance(1e-10).build().unwrap();
    let (mu, nu) = (Measure::uniform(double().0), Measure::uniform(double().1));
    let given = Solver::new(&options).features(matrix(&x, n), matrix(&y, m));
    let expected = given.divergence(&mu, &nu).unwrap().value;
    let found = solve(Features::Map(map.clone()), double().0, double().1);
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    // Points in single precision are what they are in double precision.
    #[expect(clippy::cast_possible_truncation, reason = "digits are lost before the comparison")]
    let single = |x: &[f64]| -> Vec<f32> { x.iter().map(|x| *x as f32).collect() };
    let wide = |x: &[f32]| -> Vec<f64> { x.iter().map(|x| f64::from(*x)).collect() };
    let (x, y) = (single(&x), single(&y));
    let found =
        solve(Features::Map(map.clone()), Points::new(&x, 2).unwrap(), Points::new(&y, 2).unwrap());
    let expected = solve(
        Features::Map(map),
        Points::new(wide(&x), 2).unwrap(),
        Points::new(wide(&y), 2).unwrap(),
    );
    assert_eq!(found, expected);
}

#[test]
fn a_function_has_to_write_positive_features() {
    let points = Points::new(vec![1.0, 2.0, 3.0], 1).unwrap();
    let fails = |map: &dyn FeatureMap| map.check(&points).unwrap_err();
    let zero = features::from_fn(1, 2, |x, out| out.copy_from_slice(&[1.0, 2.0 - x[0]])).unwrap();
    assert_eq!(fails(&zero), Error::Feature { row: 2, column: 2, value: 0.0 });
    let huge = features::from_fn(1, 1, |x, out| out[0] = (1e3 * (x[0] - 2.0)).exp()).unwrap();
    assert_eq!(fails(&huge), Error::Feature { row: 1, column: 1, value: 0.0 });
    // One that is not written.
    let missing = features::from_fn(1, 2, |_, out| out[0] = 1.0).unwrap();
    assert!(
        matches!(fails(&missing), Error::Feature { row: 1, column: 2, value } if value.is_nan())
    );
    let plane = features::from_fn(2, 1, |_, out| out[0] = 1.0).unwrap();
    assert_eq!(fails(&plane), Error::MapDimension { map: 2, points: 1 });
    assert_eq!(features::from_fn(0, 1, |_, _| ()).unwrap_err(), Error::NoCoordinates);
    assert!(matches!(features::from_fn(1, 0, |_, _| ()).unwrap_err(), Error::Option { .. }));
}
