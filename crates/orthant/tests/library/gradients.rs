//! Gradients against central differences of the converged value, closed forms and identities.
//!
//! What is chosen from the data (anchors, coordinates) must stay where it is while points move, so features are maps
//! that are made once. Lattices, Sobol and adaptive anchors, with and without the gauge, are tested in the same way inside
//! the library.

use std::sync::Arc;

use crate::common::{Kernel, normal, normal_measure};
use orthant::features::{
    ArcCosine, Derivative, FeatureMap, FeatureMatrix, Gaussian, Linear, stride,
};
use orthant::{
    CostMatrix, Error, Gradient, Measure, Method, Options, Points, Precision, Side, Solver,
    anchors::Draw,
    options::{Anchors, Cost, Features, OptionsBuilder},
    plan, plans, rot,
};
use rayon::ThreadPoolBuilder;

const EPSILON: f64 = 0.5;
const BOTH: [Side; 2] = [Side::X, Side::Y];

/// A derivative by four values, whose error is of the fourth order.
fn central(h: f64, value: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h)
}

/// Points and weights that differ, some of them zero.
#[derive(Clone)]
struct Cloudy {
    points: Vec<f64>,
    weights: Vec<f64>,
    dim: usize,
}

impl Cloudy {
    fn measure(&self) -> Measure<'static> {
        let points = Points::new(self.points.clone(), self.dim).unwrap();
        Measure::weighted(points, &self.weights).unwrap()
    }
}

/// Weights of mass 1.3 and 0.7, about: balanced problems do not see that.
fn clouds(dim: usize) -> [Cloudy; 2] {
    [(9, 0.0, 1.3, 1), (11, 0.4, 0.7, 2)].map(|(n, mean, mass, seed)| {
        let weights: Vec<f64> = (0..n)
            .map(|i| if i % 5 == 3 { 0.0 } else { ((i * 7 + 3) % 11) as f64 + 1.0 })
            .collect();
        let total: f64 = weights.iter().sum();
        Cloudy {
            points: normal(n, &vec![mean; dim], 0.6, seed),
            weights: weights.iter().map(|w| mass * w / total).collect(),
            dim,
        }
    })
}

/// The same in the positive orthant.
fn positive(dim: usize) -> [Cloudy; 2] {
    clouds(dim).map(|mut cloud| {
        cloud.points.iter_mut().for_each(|x| *x = x.abs() + 0.2);
        cloud
    })
}

/// What is differentiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    ValueKl,
    Value,
    Divergence,
}

impl Of {
    fn value(self, clouds: &[Cloudy; 2], options: &Options) -> f64 {
        self.value_by(clouds, Solver::new(options))
    }

    fn value_by(self, clouds: &[Cloudy; 2], solver: Solver<'_, '_>) -> f64 {
        let [mu, nu] = [clouds[0].measure(), clouds[1].measure()];
        if self == Of::Divergence {
            let found = solver.divergence(&mu, &nu).unwrap();
            assert!(found.converged());
            return found.value;
        }
        let found = solver.rot(&mu, &nu).unwrap();
        assert!(found.converged());
        if self == Of::Value { found.value } else { found.value_kl }
    }

    /// Works with the gradient.
    fn gradient<R>(
        self,
        clouds: &[Cloudy; 2],
        options: &Options,
        work: impl FnOnce(Gradient<'_>) -> R,
    ) -> R {
        self.gradient_by(clouds, Solver::new(options), work)
    }

    fn gradient_by<R>(
        self,
        clouds: &[Cloudy; 2],
        solver: Solver<'_, '_>,
        work: impl FnOnce(Gradient<'_>) -> R,
    ) -> R {
        let [mu, nu] = [clouds[0].measure(), clouds[1].measure()];
        match self {
            Of::Divergence => work(solver.plans(&mu, &nu).unwrap().gradient()),
            Of::ValueKl => work(solver.plan(&mu, &nu).unwrap().gradient()),
            Of::Value => work(solver.plan(&mu, &nu).unwrap().gradient().of_value().unwrap()),
        }
    }
}

/// Converged as far as double precision goes.
fn settings(epsilon: f64, method: Method) -> OptionsBuilder {
    Options::builder(epsilon).method(method).tolerance(1e-12).max_iterations(100_000)
}

/// Kept marginals, both relaxed, one relaxed (which divergences do not have).
fn relaxations(of: Of) -> Vec<[f64; 2]> {
    let inf = f64::INFINITY;
    match of {
        Of::Value => vec![[inf, inf]],
        Of::Divergence => vec![[inf, inf], [0.8, 0.8]],
        Of::ValueKl => vec![[inf, inf], [0.8, 1.7], [inf, 0.6], [0.9, inf]],
    }
}

/// `found` and `expected` differ by at most `tolerance` of the largest of `expected`.
fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0_f64, |most, e| most.max(e.abs()));
    for (k, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * scale, "{what}, {k}: {f} and not {e} ({scale})");
    }
}

const TOLERANCE: f64 = 1e-7;

/// The gradient by all points of both clouds.
fn check_points(what: &str, of: Of, clouds: &[Cloudy; 2], options: &Options) {
    // Arc-cosine features have edges, where derivatives jump.
    let step = if what.contains("arc-cosine") { 1e-5 } else { 1e-3 };
    for cloud in BOTH {
        let found = of.gradient(clouds, options, |g| g.points(cloud)).unwrap();
        let own = &clouds[cloud as usize];
        let expected: Vec<f64> = (0..own.points.len())
            .map(|k| {
                central(step, |h| {
                    let mut moved = clouds.clone();
                    moved[cloud as usize].points[k] += h;
                    of.value(&moved, options)
                })
            })
            .collect();
        assert_close(&format!("{what}, {of:?}, {cloud}"), &found, &expected, TOLERANCE);
        for (row, weight) in found.chunks_exact(own.dim).zip(&own.weights) {
            assert!(*weight > 0.0 || row.iter().all(|g| *g == 0.0), "{what}");
        }
    }
}

/// `check` for kept and relaxed marginals.
fn over_relaxations(
    of: Of,
    epsilon: f64,
    method: &Method,
    gauge: bool,
    check: impl Fn(&str, &Options),
) {
    for rho in relaxations(of) {
        let builder = settings(epsilon, method.clone()).gauge(gauge);
        let options = builder.rho_x(rho[0]).rho_y(rho[1]).build().unwrap();
        check(&format!("rho {rho:?}, gauge {gauge}"), &options);
    }
}

fn map(map: impl FeatureMap + 'static) -> Method {
    Method::Factored(Features::Map(Arc::new(map)))
}

fn own_anchors(dim: usize, rank: usize, seed: u64) -> Vec<f64> {
    normal(rank, &vec![0.1; dim], 0.7, seed)
}

fn gaussian(anchors: &[f64], dim: usize, epsilon: f64) -> Gaussian {
    Gaussian::with_anchors(&Points::new(anchors, dim).unwrap(), 1.3, epsilon).unwrap()
}

/// The paper's map for the clouds as they are.
fn paper(clouds: &[Cloudy; 2], rank: usize) -> Gaussian {
    let [mu, nu] = [clouds[0].measure(), clouds[1].measure()];
    Gaussian::paper(&mu, &nu, EPSILON, rank, 5, true).unwrap()
}

#[test]
fn points_of_exact_kernels_against_central_differences() {
    let clouds = clouds(2);
    for (name, method) in [("dense", Method::dense()), ("online", Method::online())] {
        for gauge in [true, false] {
            for of in [Of::ValueKl, Of::Value, Of::Divergence] {
                over_relaxations(of, EPSILON, &method, gauge, |what, options| {
                    check_points(&format!("{name} {what}"), of, &clouds, options);
                });
            }
        }
    }
}

#[test]
fn points_of_features_against_central_differences() {
    let (plane, space, cone) = (clouds(2), clouds(3), positive(3));
    let cases: Vec<(&str, &[Cloudy; 2], Method)> = vec![
        ("paper", &plane, map(paper(&plane, 40))),
        ("own anchors", &space, map(gaussian(&own_anchors(3, 30, 8), 3, EPSILON))),
        ("arc-cosine 1", &space, map(ArcCosine::new(3, 1, 0.3, 1.5, 60, 3).unwrap())),
        ("arc-cosine 2", &space, map(ArcCosine::new(3, 2, 0.3, 1.2, 60, 4).unwrap())),
        ("linear", &cone, map(Linear::new(3).unwrap())),
        ("own map", &plane, map(Bumps { derivative: true })),
        (
            "dense of features",
            &plane,
            Method::Dense(Cost::Features(Features::Map(Arc::new(paper(&plane, 40))))),
        ),
    ];
    for (name, clouds, method) in cases {
        for of in [Of::ValueKl, Of::Divergence] {
            over_relaxations(of, EPSILON, &method, true, |what, options| {
                check_points(&format!("{name} {what}"), of, clouds, options);
            });
        }
    }
    let pair = [1, 2].map(|seed| -> Arc<dyn FeatureMap> {
        Arc::new(gaussian(&own_anchors(2, 30, seed), 2, EPSILON))
    });
    let [x, y] = pair;
    let method = Method::Factored(Features::Pair(x, y));
    over_relaxations(Of::ValueKl, EPSILON, &method, true, |what, options| {
        check_points(&format!("pair {what}"), Of::ValueKl, &plane, options);
    });
}

#[test]
fn the_papers_method_has_the_gradient_of_its_map() {
    let clouds = clouds(2);
    let [mu, nu] = [clouds[0].measure(), clouds[1].measure()];
    let options = settings(EPSILON, Method::paper()).rank(40).seed(5).build().unwrap();
    let same = settings(EPSILON, map(paper(&clouds, 40))).build().unwrap();
    for of in [Of::ValueKl, Of::Divergence] {
        for cloud in BOTH {
            let [found, expected] =
                [&options, &same].map(|o| of.gradient(&clouds, o, |g| g.points(cloud)).unwrap());
            assert_close("points", &found, &expected, 1e-12);
        }
        let [found, expected] =
            [&options, &same].map(|o| of.gradient(&clouds, o, |g| g.anchors()).unwrap());
        assert_close("anchors", &found, &expected, 1e-12);
    }
    assert_eq!(rot(&mu, &nu, &options).unwrap().rank, 40);
}

#[test]
fn weights_against_central_differences() {
    let clouds = clouds(2);
    let methods = [
        Method::dense(),
        map(paper(&clouds, 40)),
        map(ArcCosine::new(2, 0, 0.3, 1.5, 60, 3).unwrap()),
        Method::lattice(),
    ];
    for method in &methods {
        // Weights move neither lattice nor gauge by more than the error of a fine lattice.
        for of in [Of::ValueKl, Of::Divergence] {
            for rho in relaxations(of) {
                let builder = settings(EPSILON, method.clone()).accuracy(1e-10);
                let options = builder.rho_x(rho[0]).rho_y(rho[1]).build().unwrap();
                for cloud in BOTH {
                    let what = format!("{method:?}, {of:?}, {rho:?}, {cloud}");
                    check_weights(&what, of, &clouds, &options, cloud);
                }
            }
        }
    }
    // Of the paper's value, where all weights are positive.
    let positive = clouds.map(|mut cloud| {
        cloud.weights.iter_mut().for_each(|w| *w += 0.05);
        cloud
    });
    let options = settings(EPSILON, Method::dense()).build().unwrap();
    check_weights("value", Of::Value, &positive, &options, Side::X);
}

fn check_weights(what: &str, of: Of, clouds: &[Cloudy; 2], options: &Options, cloud: Side) {
    let mut found = of.gradient(clouds, options, |g| g.weights(cloud)).unwrap();
    let weights = &clouds[cloud as usize].weights;
    if !options.is_unbalanced() {
        let total: f64 = weights.iter().sum();
        let mean: f64 = found.iter().zip(weights).map(|(g, w)| g * w / total).sum();
        assert!(mean.abs() < 1e-12, "{what}: {mean}");
        // By weights of any sum, which are normalised.
        for g in &mut found {
            *g /= total;
        }
    }
    let expected: Vec<f64> = (0..weights.len())
        .map(|k| {
            let value = |h: f64| {
                let mut moved = clouds.clone();
                moved[cloud as usize].weights[k] += h;
                of.value(&moved, options)
            };
            if weights[k] > 0.0 {
                return central(1e-4, value);
            }
            // From weight zero there is one way: five values, of the fourth order. A far point gets a potential of its
            // own soon.
            let h = 2e-7;
            let [a, b, c, d, e] = [0.0, 1.0, 2.0, 3.0, 4.0].map(|k| value(k * h));
            (-25.0 * a + 48.0 * b - 36.0 * c + 16.0 * d - 3.0 * e) / (12.0 * h)
        })
        .collect();
    assert_close(what, &found, &expected, 1e-6);
}

/// A kernel for every epsilon.
type Make<'m> = Box<dyn Fn(f64) -> Kernel<'static> + 'm>;

#[test]
fn epsilon_against_central_differences() {
    let (plane, cone) = (clouds(2), positive(2));
    let anchors = own_anchors(2, 30, 8);
    let costs = |clouds: &[Cloudy; 2]| {
        let values: Vec<f64> = clouds[0]
            .points
            .chunks(2)
            .flat_map(|x| {
                clouds[1].points.chunks(2).map(move |y| (x[0] - y[0]).abs() + x[1] * y[1])
            })
            .collect();
        CostMatrix::new(values, 9, 11).unwrap()
    };
    let matrix = Kernel::costs(Method::dense(), costs(&plane));
    let explicit = |clouds: &[Cloudy; 2]| {
        let [x, y] = [0, 1].map(|c| {
            let values = clouds[c].points.clone();
            FeatureMatrix::new(values, clouds[c].weights.len(), 2).unwrap()
        });
        Kernel::features(Method::Auto, x, y)
    };
    let arc_cosine = || ArcCosine::new(2, 0, 0.3, 1.5, 60, 3).unwrap();
    let cases: Vec<(&str, &[Cloudy; 2], Make<'_>)> = vec![
        ("dense", &plane, Box::new(|_| Method::dense().into())),
        ("online", &plane, Box::new(|_| Method::online().into())),
        ("own anchors", &plane, Box::new(|epsilon| map(gaussian(&anchors, 2, epsilon)).into())),
        ("linear", &cone, Box::new(|_| map(Linear::new(2).unwrap()).into())),
        ("arc-cosine", &plane, Box::new(|_| map(arc_cosine()).into())),
        ("explicit", &cone, Box::new(|_| explicit(&cone))),
        ("matrix", &plane, Box::new(|_| matrix.clone())),
        ("lattice", &plane, Box::new(|_| Method::lattice().into())),
    ];
    for (name, clouds, make) in &cases {
        for of in [Of::ValueKl, Of::Value, Of::Divergence] {
            if of == Of::Divergence && *name == "matrix" {
                continue;
            }
            for rho in relaxations(of) {
                for gauge in [true, false] {
                    let solver = |epsilon: f64| {
                        let kernel = make(epsilon);
                        let builder = settings(epsilon, kernel.method.clone()).accuracy(1e-10);
                        let builder = builder.gauge(gauge).rho_x(rho[0]).rho_y(rho[1]);
                        kernel.solver(&builder.build().unwrap())
                    };
                    let found = of.gradient_by(clouds, solver(EPSILON), |g| g.epsilon()).unwrap();
                    let expected = central(1e-3, |h| of.value_by(clouds, solver(EPSILON + h)));
                    let what = format!("{name}, {of:?}, {rho:?}, {gauge}");
                    assert_close(&what, &[found], &[expected], 1e-6);
                }
            }
        }
    }
}

#[test]
fn anchors_against_central_differences() {
    let clouds = clouds(2);
    let anchors = own_anchors(2, 12, 8);
    for of in [Of::ValueKl, Of::Divergence] {
        for rho in relaxations(of) {
            let options = |anchors: &[f64]| {
                let method = map(gaussian(anchors, 2, EPSILON));
                settings(EPSILON, method).rho_x(rho[0]).rho_y(rho[1]).build().unwrap()
            };
            let found = of.gradient(&clouds, &options(&anchors), |g| g.anchors()).unwrap();
            let expected: Vec<f64> = (0..anchors.len())
                .map(|k| {
                    central(1e-3, |h| {
                        let mut moved = anchors.clone();
                        moved[k] += h;
                        of.value(&clouds, &options(&moved))
                    })
                })
                .collect();
            assert_close(&format!("{of:?}, {rho:?}"), &found, &expected, TOLERANCE);
        }
    }
    // Two maps have their parameters each, and the features of one map count twice.
    let [x, y] = [1, 2].map(|seed| own_anchors(2, 12, seed));
    let options = |x: &[f64], y: &[f64]| {
        let [x, y] = [x, y].map(|u| -> Arc<dyn FeatureMap> { Arc::new(gaussian(u, 2, EPSILON)) });
        settings(EPSILON, Method::Factored(Features::Pair(x, y))).build().unwrap()
    };
    let found = Of::ValueKl.gradient(&clouds, &options(&x, &y), |g| g.parameters(Side::Y)).unwrap();
    let expected: Vec<f64> = (0..y.len())
        .map(|k| {
            central(1e-3, |h| {
                let mut moved = y.clone();
                moved[k] += h;
                Of::ValueKl.value(&clouds, &options(&x, &moved))
            })
        })
        .collect();
    assert_close("pair", &found, &expected, TOLERANCE);
}

#[test]
fn explicit_features_against_central_differences() {
    let clouds = clouds(2);
    let rank = 5;
    let features: Vec<Vec<f64>> = [(9, 3), (11, 4)]
        .map(|(n, seed)| normal(n * rank, &[0.0], 1.0, seed).iter().map(|x| x.exp()).collect())
        .to_vec();
    for of in [Of::ValueKl, Of::Divergence] {
        for rho in relaxations(of) {
            let options = settings(EPSILON, Method::Auto).rho_x(rho[0]).rho_y(rho[1]);
            let options = options.build().unwrap();
            let solver = |features: &[Vec<f64>]| {
                let matrix = |c: usize| {
                    let rows = features[c].len() / rank;
                    FeatureMatrix::new(features[c].clone(), rows, rank).unwrap()
                };
                Solver::new(&options).features(matrix(0), matrix(1))
            };
            for cloud in BOTH {
                let what = format!("{of:?}, {rho:?}, {cloud}");
                let own = &features[cloud as usize];
                let (low, logs) = of.gradient_by(&clouds, solver(&features), |g| {
                    (g.features(cloud).unwrap(), g.log_features(cloud).unwrap())
                });
                let found = low.to_dense().unwrap();
                let expected: Vec<f64> = (0..own.len())
                    .map(|k| {
                        central(1e-4 * own[k], |h| {
                            let mut moved = features.clone();
                            moved[cloud as usize][k] += h;
                            of.value_by(&clouds, solver(&moved))
                        })
                    })
                    .collect();
                assert_close(&what, &found, &expected, 1e-6);
                let expected: Vec<f64> = found.iter().zip(own).map(|(g, x)| g * x).collect();
                assert_close(&what, &logs, &expected, 1e-12);
                // The forms that are not dense.
                assert_eq!(low.entry(2, 3).unwrap(), found[2 * rank + 3]);
                let x = [0.3, -1.0, 2.0, 0.0, 0.7];
                let product: Vec<f64> = found
                    .chunks(rank)
                    .map(|row| row.iter().zip(x).map(|(g, x)| g * x).sum())
                    .collect();
                assert_close(&what, &low.times(&x).unwrap(), &product, 1e-12);
                let ones = vec![1.0; found.len() / rank];
                let columns: Vec<f64> =
                    (0..rank).map(|k| found.iter().skip(k).step_by(rank).sum()).collect();
                assert_close(&what, &low.transposed_times(&ones).unwrap(), &columns, 1e-12);
                assert!(matches!(low.entry(0, rank), Err(Error::Index { what: "column", .. })));
                assert!(matches!(low.times(&ones), Err(Error::Shape { .. })));
            }
        }
    }
}

#[test]
fn the_dense_kernel_against_central_differences() {
    let clouds = clouds(2);
    let kernel: Vec<f64> = normal(99, &[0.0], 0.8, 5).iter().map(|x| x.exp()).collect();
    for rho in relaxations(Of::ValueKl) {
        let options = settings(EPSILON, Method::dense()).rho_x(rho[0]).rho_y(rho[1]);
        let options = options.build().unwrap();
        let solver = |kernel: &[f64]| {
            let costs: Vec<f64> = kernel.iter().map(|k| -EPSILON * k.ln()).collect();
            Solver::new(&options).costs(CostMatrix::new(costs, 9, 11).unwrap())
        };
        let low = Of::ValueKl.gradient_by(&clouds, solver(&kernel), |g| g.kernel()).unwrap();
        let found = low.to_dense().unwrap();
        let expected: Vec<f64> = (0..kernel.len())
            .map(|k| {
                central(1e-4 * kernel[k], |h| {
                    let mut moved = kernel.clone();
                    moved[k] += h;
                    Of::ValueKl.value_by(&clouds, solver(&moved))
                })
            })
            .collect();
        assert_close(&format!("{rho:?}"), &found, &expected, 1e-6);
        // dW/dC = P.
        let [mu, nu] = [clouds[0].measure(), clouds[1].measure()];
        let dense = solver(&kernel).plan(&mu, &nu).unwrap().to_dense().unwrap();
        let by_cost: Vec<f64> = found.iter().zip(&kernel).map(|(g, k)| -g * k / EPSILON).collect();
        assert_close("the plan", &by_cost, &dense, 1e-12);
    }
}

#[test]
fn the_gradient_of_a_divergence_vanishes_at_equal_clouds() {
    let [x, _] = clouds(2);
    let dim = x.dim;
    let count = x.weights.len();
    // The same points in another order.
    let order: Vec<usize> = (0..count).map(|i| (4 * i + 2) % count).collect();
    let turned = Cloudy {
        points: order.iter().flat_map(|&i| x.points[i * dim..(i + 1) * dim].to_vec()).collect(),
        weights: order.iter().map(|&i| x.weights[i]).collect(),
        dim,
    };
    let methods: Vec<(&str, Method)> = vec![
        ("dense", Method::dense()),
        ("online", Method::online()),
        ("lattice", Method::lattice()),
        ("stored lattice", Method::Factored(Features::Gaussian(Anchors::Lattice { stored: true }))),
        ("sobol", Method::gaussian()),
        ("iid", Method::Factored(Features::Gaussian(Anchors::Random(Draw::Iid)))),
        ("paper", Method::paper()),
        ("arc-cosine", map(ArcCosine::new(2, 1, 0.3, 1.5, 60, 3).unwrap())),
    ];
    for (name, method) in methods {
        for rho in [f64::INFINITY, 0.7] {
            let builder = settings(0.2, method.clone()).accuracy(1e-9);
            let builder = if name.contains("lattice") { builder } else { builder.rank(100) };
            let options = builder.rho_x(rho).rho_y(rho).build().unwrap();
            for y in [&x, &turned] {
                let clouds = [x.clone(), y.clone()];
                Of::Divergence.gradient(&clouds, &options, |g| {
                    for cloud in BOTH {
                        let all = [g.points(cloud).unwrap(), g.weights(cloud).unwrap()];
                        for found in all.iter().flatten() {
                            assert!(found.abs() < 1e-10, "{name}, rho {rho}: {found}");
                        }
                    }
                    assert!(g.epsilon().unwrap().abs() < 1e-10, "{name}");
                });
            }
        }
    }
}

#[test]
fn one_point_each_is_the_squared_distance() {
    let (x, y) = (vec![0.3, -2.0, 5.0], vec![1.0, 1.5, 4.0]);
    let [mu, nu] = [&x, &y].map(|p| Measure::uniform(Points::new(p.clone(), 3).unwrap()));
    for method in [Method::dense(), Method::online(), Method::lattice()] {
        let options = settings(0.3, method).accuracy(1e-11).build().unwrap();
        let plan = plan(&mu, &nu, &options).unwrap();
        let expected: Vec<f64> = x.iter().zip(&y).map(|(x, y)| 2.0 * (x - y)).collect();
        assert_close("x", &plan.gradient().points(Side::X).unwrap(), &expected, 1e-9);
        let back: Vec<f64> = expected.iter().map(|g| -g).collect();
        assert_close("y", &plan.gradient().points(Side::Y).unwrap(), &back, 1e-9);
        // W = |x - y|^2 does not depend on epsilon.
        assert!(plan.gradient().epsilon().unwrap().abs() < 1e-8);
        assert_eq!(plan.gradient().weights(Side::X).unwrap(), [0.0]);
    }
    // Relaxed: the mass M = (m_a^(rho_x + eps) ...)^(1 / (rho_x + rho_y + eps)) moves the same way.
    let (ma, mb, rho, epsilon) = (2.0, 0.5, [0.7, 1.9], 0.3);
    let (mu, nu) = (mu.with_mass(ma).unwrap(), nu.with_mass(mb).unwrap());
    let options = settings(epsilon, Method::dense()).rho_x(rho[0]).rho_y(rho[1]).build().unwrap();
    let plan = plan(&mu, &nu, &options).unwrap();
    let square: f64 = x.iter().zip(&y).map(|(x, y)| (x - y).powi(2)).sum();
    let range = rho[0] + rho[1] + epsilon;
    let log_mass =
        ((rho[0] + epsilon) * f64::ln(ma) + (rho[1] + epsilon) * f64::ln(mb) - square) / range;
    let mass = log_mass.exp();
    let expected: Vec<f64> = x.iter().zip(&y).map(|(x, y)| 2.0 * mass * (x - y)).collect();
    assert_close("relaxed", &plan.gradient().points(Side::X).unwrap(), &expected, 1e-12);
    // U = rho_x m_a + rho_y m_b + eps m_a m_b - R M.
    let by_mass = rho[0] + epsilon * mb - (rho[0] + epsilon) * mass / ma;
    assert_close("mass", &plan.gradient().weights(Side::X).unwrap(), &[by_mass], 1e-12);
    let by_epsilon = ma * mb - mass - mass * (f64::ln(ma * mb) - log_mass);
    assert_close("eps", &[plan.gradient().epsilon().unwrap()], &[by_epsilon], 1e-10);
}

#[test]
fn a_translation_moves_the_value_by_the_distance_of_the_means() {
    // sum_i dW/dx_i = 2 (mean x - mean y), and for sum_i x_i . dW/dx_i the virial 2 sum_ij P_ij x_i.(x_i - y_j).
    let (mu, nu) = (normal_measure(60, &[0.0; 3], 1.0, 1), normal_measure(70, &[0.5; 3], 0.6, 2));
    let expected: Vec<f64> = mu.mean().iter().zip(nu.mean()).map(|(x, y)| 2.0 * (x - y)).collect();
    for method in [Method::dense(), Method::online(), Method::lattice()] {
        for gauge in [true, false] {
            let options =
                settings(0.5, method.clone()).accuracy(1e-8).gauge(gauge).build().unwrap();
            for of in 0..2 {
                let found = if of == 0 {
                    plan(&mu, &nu, &options).unwrap().gradient().points(Side::X).unwrap()
                } else {
                    plans(&mu, &nu, &options).unwrap().gradient().points(Side::X).unwrap()
                };
                let sum: Vec<f64> = (0..3).map(|c| found.iter().skip(c).step_by(3).sum()).collect();
                assert_close(&format!("{method:?} {gauge} {of}"), &sum, &expected, 1e-7);
            }
        }
    }
}

#[test]
fn lattices_and_single_precision_have_the_gradient_of_the_exact_kernel() {
    let (mu, nu) = (normal_measure(300, &[0.0; 2], 1.0, 1), normal_measure(250, &[0.5; 2], 0.6, 2));
    let gradients = |options: &Options| {
        let plans = plans(&mu, &nu, options).unwrap();
        let plan = plan(&mu, &nu, options).unwrap();
        [
            plan.gradient().points(Side::X).unwrap(),
            plan.gradient().points(Side::Y).unwrap(),
            plans.gradient().points(Side::X).unwrap(),
            vec![plan.gradient().epsilon().unwrap(), plans.gradient().epsilon().unwrap()],
        ]
    };
    let exact = gradients(&settings(0.3, Method::online()).build().unwrap());
    let lattice = settings(0.3, Method::lattice()).accuracy(1e-8).build().unwrap();
    let thin = settings(0.3, Method::lattice()).rank(400).build().unwrap();
    let single = Options::builder(0.3).method(Method::lattice()).accuracy(1e-6);
    let single = single.precision(Precision::F32).tolerance(1e-6).build().unwrap();
    let dense = Options::builder(0.3).method(Method::dense()).precision(Precision::F32);
    let dense = dense.tolerance(1e-6).build().unwrap();
    let automatic = settings(0.3, Method::Auto).accuracy(1e-7).build().unwrap();
    for (name, options, tolerance) in [
        ("lattice", &lattice, 1e-6),
        ("thinned lattice", &thin, 1e-2),
        ("single precision", &single, 1e-4),
        ("dense in single precision", &dense, 1e-4),
        ("auto", &automatic, 1e-5),
    ] {
        for (found, expected) in gradients(options).iter().zip(&exact) {
            assert_close(name, found, expected, tolerance);
        }
    }
}

#[test]
fn gradients_are_the_same_bits_on_any_number_of_threads() {
    let (mu, nu) =
        (normal_measure(3000, &[0.0; 2], 1.0, 1), normal_measure(2500, &[0.5; 2], 0.6, 2));
    for method in [Method::lattice(), Method::gaussian()] {
        let builder = Options::builder(0.3).method(method.clone());
        let builder = if matches!(method, Method::Factored(Features::Gaussian(Anchors::Random(_))))
        {
            builder.rank(50)
        } else {
            builder
        };
        let options = builder.build().unwrap();
        let run = |threads| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let plans = plans(&mu, &nu, &options).unwrap();
                let g = plans.gradient();
                let mut all = g.points(Side::X).unwrap();
                all.extend(g.points(Side::Y).unwrap());
                all.push(g.epsilon().unwrap());
                all.extend(g.anchors().unwrap_or_default());
                all
            })
        };
        assert_eq!(run(1), run(4), "{method:?}");
    }
}

#[test]
fn warm_starts_lead_to_the_same_gradient() {
    let (mu, nu) = (normal_measure(200, &[0.0; 2], 1.0, 1), normal_measure(150, &[0.5; 2], 0.6, 2));
    let options = settings(0.3, Method::lattice()).accuracy(1e-8).build().unwrap();
    let first = plans(&mu, &nu, &options).unwrap();
    let again =
        Solver::new(&options).warm_start_divergence(first.divergence()).plans(&mu, &nu).unwrap();
    let [a, b] = [&first, &again].map(|p| p.gradient().points(Side::X).unwrap());
    assert_close("warm", &a, &b, 1e-8);
    assert_eq!(format!("{first:?}").split(' ').next(), Some("Plans"));
    assert!(format!("{:?}", first.gradient()).contains("SelfX"));
}

#[test]
fn what_has_no_derivative_is_a_typed_error() {
    let clouds = clouds(2);
    let [mu, nu] = [clouds[0].measure(), clouds[1].measure()];
    let no = |result: Result<Vec<f64>, Error>, by: &str, word: &str| match result {
        Err(error @ Error::NoDerivative { .. }) => {
            let message = error.to_string();
            assert!(message.contains(by) && message.contains(word), "{message}");
        }
        other => panic!("{by}, {word}: {other:?}"),
    };
    let with = |method: Method, work: &dyn Fn(Gradient<'_>)| {
        let options = Options::builder(EPSILON).method(method).rank(60).build().unwrap();
        work(plan(&mu, &nu, &options).unwrap().gradient());
    };
    let costs = CostMatrix::new(normal(99, &[1.0], 0.1, 1), 9, 11).unwrap();
    let options = Options::builder(EPSILON).build().unwrap();
    let given = Solver::new(&options).costs(costs).plan(&mu, &nu).unwrap();
    let g = given.gradient();
    no(g.points(Side::X), "points", "plan");
    no(g.anchors(), "anchors", "features of points");
    no(g.log_features(Side::X), "features", "store");
    assert!(g.epsilon().is_ok() && g.weights(Side::Y).is_ok());
    with(map(ArcCosine::new(2, 0, 0.3, 1.5, 60, 3).unwrap()), &|g| {
        no(g.points(Side::Y), "points", "order 1 or 2");
        no(g.anchors(), "points", "order 1 or 2");
        assert!(g.log_features(Side::Y).is_ok());
    });
    with(map(Bumps { derivative: false }), &|g| {
        no(g.points(Side::X), "points", "implement");
        assert!(g.epsilon().is_ok());
    });
    with(Method::lattice(), &|g| {
        no(g.anchors(), "anchors", "lattice");
        no(g.log_features(Side::X), "features", "store");
    });
    with(Method::dense(), &|g| no(g.anchors(), "anchors", "has none"));
    with(Method::Nystrom(orthant::options::Landmarks::Leverage), &|g| {
        no(g.points(Side::X), "points", "landmarks");
        assert!(g.weights(Side::X).is_ok());
        // The paper's value falls without bound where weight comes to a point that had none.
        no(g.of_value().unwrap().weights(Side::X), "weights", "value_kl");
    });
    let [x, y]: [Arc<dyn FeatureMap>; 2] =
        [1, 2].map(|s| Arc::new(gaussian(&own_anchors(2, 12, s), 2, EPSILON)) as _);
    with(Method::Factored(Features::Pair(x, y)), &|g| {
        no(g.anchors(), "anchors", "either map");
        assert!(g.parameters(Side::X).is_ok());
    });
    let options = Options::builder(EPSILON).rho_x(1.0).rho_y(1.0).build().unwrap();
    let plan = plan(&mu, &nu, &options).unwrap();
    assert!(matches!(plan.gradient().of_value(), Err(Error::NoDerivative { .. })));
    let plans = plans(&mu, &nu, &options).unwrap();
    assert!(plans.gradient().of_value().is_ok());
    assert!(matches!(plans.gradient().kernel(), Err(Error::NoDerivative { by: "the kernel", .. })));
    // Memory is asked for before it is used.
    let small = Options::builder(EPSILON).max_memory(99 * 8 - 1).method(Method::online());
    let small = small.build().unwrap();
    let kernel = orthant::plan(&mu, &nu, &small).unwrap().gradient().kernel().unwrap();
    assert!(matches!(kernel.to_dense(), Err(Error::Memory { .. })));
    assert!(kernel.entry(0, 0).is_ok());
}

#[test]
fn anchors_of_ones_own_are_checked() {
    let anchors = Points::new(vec![0.0, 1.0], 1).unwrap();
    for (q, epsilon) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
        assert!(matches!(Gaussian::with_anchors(&anchors, q, epsilon), Err(Error::Option { .. })));
    }
    let far = Points::new(vec![1e200], 1).unwrap();
    assert!(matches!(Gaussian::with_anchors(&far, 1.0, 1.0), Err(Error::TooWide { .. })));
    let wide = Points::new(vec![1e150], 1).unwrap();
    assert!(Gaussian::with_anchors(&wide, 1.0, 1e-300).is_err());
    let map = Gaussian::with_anchors(&anchors, 1.0, 1.0).unwrap();
    assert!(map.check(&far).is_err());
    // The anchors of the paper's map are those that its features are around.
    let clouds = clouds(2);
    let map = paper(&clouds, 7);
    let found = map.anchors();
    let width = stride(7);
    for k in 0..7 {
        let u = &found[2 * k..2 * k + 2];
        // -2 |x - u|^2 / eps: the same logarithm at u + t and u - t.
        let around: Vec<f64> = [0.3, -0.3].iter().flat_map(|t| [u[0] + t, u[1] - t]).collect();
        let mut logs = vec![0.0; 2 * width];
        map.log_features(&Points::new(around, 2).unwrap(), 0, width, &mut logs);
        assert!((logs[k] - logs[width + k]).abs() < 1e-12);
    }
}

/// `log phi_k(x) = -k |x|^2 / 3 + sin(k x_0 + x_1)`: a map of a user's.
#[derive(Debug)]
struct Bumps {
    derivative: bool,
}

impl FeatureMap for Bumps {
    fn dim(&self) -> usize {
        2
    }

    fn rank(&self) -> usize {
        6
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        for (i, row) in out.chunks_exact_mut(stride).enumerate() {
            let [x, y] = [0, 1].map(|c| points.coordinate(first + i, c));
            for (k, out) in row[..6].iter_mut().enumerate() {
                let k = k as f64;
                *out = -k * (x * x + y * y) / 3.0 + (k * x + y).sin();
            }
        }
    }

    fn derivative(&self) -> Result<&dyn Derivative, Error> {
        if self.derivative {
            return Ok(self);
        }
        Err(Error::NoDerivative { by: "the points", reason: "none", remedy: "implement it" })
    }
}

impl Derivative for Bumps {
    fn points(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        for (i, (w, out)) in weights.chunks_exact(stride).zip(out.chunks_exact_mut(2)).enumerate() {
            let [x, y] = [0, 1].map(|c| points.coordinate(first + i, c));
            out.fill(0.0);
            for (k, w) in w[..6].iter().enumerate() {
                let k = k as f64;
                let slope = (k * x + y).cos();
                out[0] += w * (-2.0 * k * x / 3.0 + k * slope);
                out[1] += w * (-2.0 * k * y / 3.0 + slope);
            }
        }
    }
}
