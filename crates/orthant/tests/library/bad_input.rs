//! The door: whatever comes in, an answer or an error, and never a panic.

use std::sync::Arc;

use crate::common::{Kernel, figure_1, relative};
use orthant::anchors::Draw;
use orthant::features::{ArcCosine, FeatureMap, FeatureMatrix};
use orthant::{
    CostMatrix, Error, Measure, Method, Options, Points, Precision, Result, Side, Solution, Solver,
    barycenter::Barycenters,
    compare::compare,
    divergence, mean_squared_distance,
    options::{Algorithm, Anchors, Cost, Features, Landmarks},
    results::MethodUsed,
    rot,
    two_sample::TwoSampleTest,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

// ---------------------------------------------------------------------------------------------
// Anything at all.

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(20_201_206),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    }
}

/// Numbers that have broken programs before.
const AWKWARD: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.0 + f64::EPSILON,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    5e-324,
    -5e-324,
    1e-310,
    f64::MIN_POSITIVE,
    1e-150,
    -1e-150,
    1e-160,
    1e150,
    -1e150,
    1e153,
    1e160,
    1e308,
    -1e308,
    f64::MAX,
];

fn ordinary() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -2.0..2.0_f64, 1 => 0.0..1e-3_f64, 1 => -1e6..1e6_f64]
}

/// Mostly ordinary numbers, so that many inputs get past the first check.
fn anything() -> impl Strategy<Value = f64> {
    prop_oneof![
        12 => ordinary(),
        2 => prop::sample::select(AWKWARD.to_vec()),
        1 => any::<f64>(),
    ]
}

/// Finite numbers over the whole range of double precision, often all of one size.
fn coordinates(len: usize) -> impl Strategy<Value = Vec<f64>> {
    let scales = [1.0, 1.0, 1e-3, 1e-150, 1e-160, 1e-300, 1e150, 1e152, 1e10];
    let scale = prop::sample::select(scales.to_vec());
    let awkward: Vec<f64> = AWKWARD.iter().copied().filter(|x| x.is_finite()).collect();
    let entry = prop_oneof![30 => ordinary(), 1 => prop::sample::select(awkward)];
    (prop::collection::vec(entry, len), scale)
        .prop_map(|(v, s)| v.into_iter().map(|x| (x * s).clamp(f64::MIN, f64::MAX)).collect())
}

fn weights(len: usize) -> impl Strategy<Value = Vec<f64>> {
    let entry = prop_oneof![
        8 => 0.0..1.0_f64,
        2 => Just(0.0),
        2 => prop::sample::select(vec![1e-300, 5e-324, 1e-20, 1e300, f64::MAX]),
    ];
    prop::collection::vec(entry, len)
}

fn anchors() -> impl Strategy<Value = Anchors> {
    let draws = vec![Draw::Iid, Draw::Orthogonal, Draw::Sobol];
    prop_oneof![
        any::<bool>().prop_map(|centred| Anchors::Paper { centred }),
        prop::sample::select(draws).prop_map(Anchors::Random),
        any::<bool>().prop_map(|stored| Anchors::Lattice { stored }),
    ]
}

fn method() -> impl Strategy<Value = Method> {
    let features = || {
        prop_oneof![
            anchors().prop_map(Features::Gaussian),
            (0_u8..4, anything(), 0.5..3.0_f64).prop_map(|(order, kappa, sigma)| {
                Features::ArcCosine { order, kappa: kappa.abs(), sigma }
            }),
            Just(Features::Linear),
        ]
    };
    prop_oneof![
        Just(Method::Auto),
        features().prop_map(Method::Factored),
        Just(Method::dense()),
        Just(Method::online()),
        features().prop_map(|f| Method::Dense(Cost::Features(f))),
        features().prop_map(|f| Method::Online(Cost::Features(f))),
        Just(Method::nystrom()),
        Just(Method::Nystrom(Landmarks::Uniform)),
    ]
}

fn epsilon() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-8..4).prop_map(|p| 10f64.powi(p)),
        2 => prop::sample::select(vec![1e-300, 1e-310, 1e-302, 1e300, 1e302, 1e-20, 1e20, 1e308]),
        1 => anything(),
    ]
}

/// What relaxing the marginals costs: mostly nothing is relaxed, or both are, alike.
fn rho() -> impl Strategy<Value = [f64; 2]> {
    let one = || {
        prop_oneof![
            4 => (-6..6).prop_map(|p| 10f64.powi(p)),
            2 => Just(f64::INFINITY),
            1 => prop::sample::select(vec![1e-300, 1e-30, 1e30, 1e300, f64::MAX]),
            1 => anything(),
        ]
    };
    prop_oneof![
        4 => Just([f64::INFINITY; 2]),
        3 => one().prop_map(|rho| [rho; 2]),
        2 => [one(), one()],
    ]
}

fn options() -> impl Strategy<Value = Result<Options>> {
    let tolerance = prop_oneof![4 => Just(1e-6), 1 => anything()];
    let accuracy = prop_oneof![4 => Just(1e-3), 1 => anything()];
    let rank = prop_oneof![2 => (0_usize..40).prop_map(Some), 1 => Just(None)];
    let kernel = (method(), rank, accuracy, any::<bool>(), any::<bool>());
    (epsilon(), kernel, rho(), any::<u64>(), tolerance, any::<bool>()).prop_map(
        |(epsilon, (method, rank, accuracy, gauge, exact), rho, seed, tolerance, single)| {
            let mut builder = Options::builder(epsilon);
            if let Some(rank) = rank {
                builder = builder.rank(rank);
            }
            builder
                .method(method)
                .accuracy(accuracy)
                .gauge(gauge)
                .allow_exact(exact)
                .rho_x(rho[0])
                .rho_y(rho[1])
                .seed(seed)
                .tolerance(tolerance)
                .precision(if single { Precision::F32 } else { Precision::F64 })
                .max_iterations(20)
                .build()
        },
    )
}

/// An error has a message of one line.
fn speaks(error: &Error) {
    let message = error.to_string();
    assert!(!message.is_empty() && !message.contains('\n'), "{message}");
}

/// A solution has numbers in it.
fn finite(s: &Solution) {
    let all = [s.value, s.value_kl, s.marginal_error_x, s.marginal_error_y, s.epsilon];
    let all = [&all[..], &[s.mass, s.marginal_gap_x, s.marginal_gap_y]].concat();
    let potentials = [&s.potential_x, &s.potential_y];
    assert!(
        all.iter()
            .chain(&s.transport_cost)
            .chain(potentials.into_iter().flatten())
            .chain(&s.potential_kl_x())
            .chain(&s.potential_kl_y())
            .all(|x| x.is_finite()),
        "{s:?}"
    );
    assert!(s.iterations >= 1 && s.iterations <= 20 && s.rank >= 1, "{s:?}");
}

fn solve(mu: &Measure<'_>, nu: &Measure<'_>, options: &Options, kernel: &Kernel<'_>) {
    match kernel.solver(options).rot(mu, nu) {
        Ok(s) => {
            finite(&s);
            assert_eq!(s.potential_x.len(), mu.points().len());
            assert_eq!(s.potential_y.len(), nu.points().len());
        }
        Err(error) => speaks(&error),
    }
    match kernel.solver(options).divergence(mu, nu) {
        Ok(d) => {
            assert!(d.value.is_finite(), "{d:?}");
            d.terms().into_iter().for_each(finite);
        }
        Err(error) => speaks(&error),
    }
}

fn measure(
    largest: usize,
    dim: usize,
) -> impl Strategy<Value = (Vec<f64>, usize, Option<Vec<f64>>)> {
    (1..=largest)
        .prop_flat_map(move |n| (coordinates(n * dim), Just(dim), proptest::option::of(weights(n))))
}

fn build((values, dim, weights): (Vec<f64>, usize, Option<Vec<f64>>)) -> Result<Measure<'static>> {
    let points = Points::new(values, dim)?;
    match weights {
        None => Ok(Measure::uniform(points)),
        Some(weights) => Measure::weighted(points, &weights),
    }
}

proptest! {
    #![proptest_config(config(20_000))]

    #[test]
    fn any_array_is_points_or_an_error(values in prop::collection::vec(anything(), 0..12), dim in 0_usize..5) {
        let good = dim > 0 && !values.is_empty() && values.len().is_multiple_of(dim)
            && values.iter().all(|x| x.is_finite());
        match Points::new(values.clone(), dim) {
            Ok(points) => {
                prop_assert!(good);
                prop_assert_eq!(points.len() * points.dim(), values.len());
            }
            Err(error) => {
                prop_assert!(!good);
                speaks(&error);
            }
        }
        // In single precision what overflows is infinite, and rejected.
        #[expect(clippy::cast_possible_truncation, reason = "overflow is what is tried")]
        let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        if let Err(error) = Points::new(single, dim) {
            speaks(&error);
        }
    }

    #[test]
    fn any_weights_are_a_measure_or_an_error(weights in prop::collection::vec(anything(), 0..6), n in 1_usize..5) {
        let points = Points::new(vec![0.5; n], 1).unwrap();
        let good = weights.len() == n && weights.iter().all(|w| w.is_finite() && *w >= 0.0)
            && weights.iter().any(|w| *w > 0.0);
        match Measure::weighted(points, &weights) {
            Ok(measure) => {
                prop_assert!(good);
                let total: f64 = measure.weights().iter().sum();
                prop_assert!((total - 1.0).abs() < 1e-15 * 5.0);
                prop_assert!(measure.support().weights.iter().all(|w| *w > 0.0));
                prop_assert!(measure.entropy().is_finite() && measure.mean()[0].is_finite());
            }
            Err(error) => {
                prop_assert!(!good);
                speaks(&error);
            }
        }
    }

    #[test]
    fn any_setting_is_an_option_or_an_error(epsilon in anything(), rank in 0_usize..3, iterations in 0_usize..3, tolerance in anything(), single in any::<bool>()) {
        let precision = if single { Precision::F32 } else { Precision::F64 };
        let least = if single { 1e-6 } else { 1e-13 };
        let built = Options::builder(epsilon).rank(rank).max_iterations(iterations)
            .tolerance(tolerance).precision(precision).build();
        let good = epsilon > 0.0 && epsilon.is_finite() && rank > 0 && iterations > 0
            && tolerance >= least && tolerance < 1.0;
        prop_assert_eq!(built.is_ok(), good);
        if let Err(error) = built {
            speaks(&error);
        }
    }
}

proptest! {
    #![proptest_config(config(6000))]

    #[test]
    fn any_two_clouds_have_numbers_or_an_error(
        (x, y) in (1_usize..4, 0_usize..8).prop_flat_map(|(dim, other)| {
            // One time in eight the dimensions are drawn apart.
            let other = if other == 0 { dim % 3 + 1 } else { dim };
            (measure(7, dim), measure(6, other))
        }),
        options in options(),
    ) {
        match (build(x), build(y), options) {
            (Ok(mu), Ok(nu), Ok(options)) => {
                if let Err(error) = mean_squared_distance(&mu, &nu) {
                    speaks(&error);
                }
                let kernel = options.method().clone().into();
                solve(&mu, &nu, &options, &kernel);
            }
            (mu, nu, options) => {
                for error in [mu.err(), nu.err(), options.err()].into_iter().flatten() {
                    speaks(&error);
                }
            }
        }
    }

    #[test]
    fn any_matrices_have_numbers_or_an_error(
        (n, m, r) in (1_usize..5, 1_usize..5, 1_usize..4),
        entries in prop::collection::vec(anything(), 16),
        positive in prop::collection::vec(prop_oneof![8 => 0.1..2.0_f64, 1 => anything()], 32),
        weights in weights(4),
        (epsilon, rho) in (epsilon(), rho()),
        (kind, single) in (0..4, any::<bool>()),
    ) {
        let points = |n: usize| Points::new(vec![0.0; n], 1).unwrap();
        let mu = Measure::weighted(points(n), &weights[..n]).unwrap_or(Measure::uniform(points(n)));
        let nu = Measure::uniform(points(m));
        let kernel = if kind < 2 {
            let method = if kind == 0 { Method::dense() } else { Method::online() };
            CostMatrix::new(&entries[..n * m], n, m).map(|costs| Kernel::costs(method, costs))
        } else {
            let method = if kind == 2 { Method::Auto } else { Method::online() };
            FeatureMatrix::new(&positive[..n * r], n, r).and_then(|xi| {
                let zeta = FeatureMatrix::new(&positive[16..16 + m * r], m, r)?;
                Ok(Kernel::features(method, xi, zeta))
            })
        };
        let precision = if single { Precision::F32 } else { Precision::F64 };
        let asked = kernel.and_then(|kernel| {
            let options = Options::builder(epsilon).method(kernel.method.clone())
                .precision(precision).max_iterations(20).rho_x(rho[0]).rho_y(rho[1]).build()?;
            Ok((options, kernel))
        });
        match asked {
            Ok((options, kernel)) => solve(&mu, &nu, &options, &kernel),
            Err(error) => speaks(&error),
        }
    }
}

// ---------------------------------------------------------------------------------------------
// One of each.

fn points(v: &[f64], dim: usize) -> Result<Points<'static>> {
    Points::new(v.to_vec(), dim)
}

fn line(v: &[f64]) -> Measure<'static> {
    Measure::uniform(points(v, 1).unwrap())
}

fn with(epsilon: f64, method: Method) -> Options {
    Options::builder(epsilon).method(method).build().unwrap()
}

/// Asserts the message of an error.
fn says<T: std::fmt::Debug>(result: Result<T>, message: &str) {
    assert_eq!(result.unwrap_err().to_string(), message);
}

#[test]
fn clouds_say_what_is_wrong_and_where() {
    says(points(&[], 2), "the cloud has no points; at least one is needed");
    says(points(&[1.0], 0), "the points have no coordinates; the dimension must be at least 1");
    says(points(&[1.0, 2.0, 3.0], 2), "3 numbers do not divide into points of 2 coordinates");
    says(
        points(&[0.0, 1.0, 2.0, f64::NAN], 2),
        "point 2, coordinate 2 is NaN; remove or impute such points",
    );
    says(
        points(&[0.0, 1.0, f64::NEG_INFINITY, 3.0], 2),
        "point 2, coordinate 1 is -inf; remove or impute such points",
    );
    says(
        Points::new(vec![0.0_f32, f32::INFINITY], 1),
        "point 2, coordinate 1 is inf; remove or impute such points",
    );
}

#[test]
fn weights_say_what_is_wrong_and_where() {
    let weighted = |w: &[f64]| Measure::weighted(points(&[0.0, 1.0, 2.0], 1).unwrap(), w);
    says(
        weighted(&[1.0, -0.5, 1.0]),
        "the weight of point 2 is -0.5; weights must be finite and not negative",
    );
    says(
        weighted(&[1.0, 1.0, f64::NAN]),
        "the weight of point 3 is NaN; weights must be finite and not negative",
    );
    says(
        weighted(&[f64::INFINITY, 1.0, 1.0]),
        "the weight of point 1 is inf; weights must be finite and not negative",
    );
    says(weighted(&[0.0, 0.0, 0.0]), "all weights are zero; at least one must be positive");
    says(weighted(&[1.0, 1.0]), "2 weights for 3 points; give one weight a point");
}

#[test]
fn epsilons_say_what_is_wrong() {
    for (epsilon, got) in [(0.0, "0"), (-0.5, "-0.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        says(
            Options::builder(epsilon).build(),
            &format!("epsilon must be positive and finite, got {got}"),
        );
    }
    let mu = line(&[-1.0, 1.0]);
    let message = "epsilon = 1e-12 is too small for clouds of radius 1.0e0: double precision cannot \
                   resolve exponents of 1.0e12; use epsilon of at least 1.0e-9";
    for method in
        [Method::Auto, Method::dense(), Method::online(), Method::paper(), Method::nystrom()]
    {
        says(rot(&mu, &mu, &with(1e-12, method.clone())), message);
        says(divergence(&mu, &mu, &with(1e-12, method)), message);
    }
    // What the message recommends is accepted.
    assert!(rot(&mu, &mu, &with(1e-9, Method::Auto)).is_ok());
    let matrix = CostMatrix::new(vec![0.0, 1.0, 2.0, 3.0], 2, 2).unwrap();
    says(
        Solver::new(&with(1e-10, Method::dense())).costs(matrix).rot(&mu, &mu),
        "epsilon = 1e-10 is too small for costs that differ by 3e0: double precision cannot resolve \
         their ratio; use epsilon of at least a billionth of the difference",
    );
}

#[test]
fn clouds_that_are_too_wide_say_so() {
    let wide = line(&[-1e160, 1e160]);
    let message = "the clouds extend over 1e160: their squared distances overflow; divide the \
                   coordinates by a constant";
    for method in [Method::Auto, Method::dense(), Method::paper(), Method::nystrom()] {
        says(rot(&wide, &wide, &with(1.0, method)), message);
    }
    says(mean_squared_distance(&wide, &wide), message);
    // Even where the centre itself would overflow.
    let wider = line(&[f64::MAX, f64::MAX, f64::MIN]);
    assert!(matches!(rot(&wider, &wider, &with(1.0, Method::Auto)), Err(Error::TooWide { .. })));
}

#[test]
fn clouds_of_different_dimensions_say_so() {
    let (one, two) = (line(&[0.0, 1.0]), Measure::uniform(points(&[0.0, 1.0], 2).unwrap()));
    let arc_cosine = Features::ArcCosine { order: 1, kappa: 1.0, sigma: 1.0 };
    for method in [
        Method::Auto,
        Method::dense(),
        Method::online(),
        Method::paper(),
        Method::nystrom(),
        Method::Factored(arc_cosine),
        Method::Factored(Features::Linear),
    ] {
        for (x, y, counts) in [(&one, &two, "1 and 2"), (&two, &one, "2 and 1")] {
            says(
                rot(x, y, &with(1.0, method.clone())),
                &format!(
                    "the clouds have {counts} coordinates; both need the same number (choose the columns to compare)"
                ),
            );
        }
    }
    says(
        mean_squared_distance(&one, &two),
        "the clouds have 1 and 2 coordinates; both need the same number (choose the columns to compare)",
    );
}

#[test]
fn matrices_of_the_wrong_shape_or_with_nan_say_so() {
    let (mu, nu) = (line(&[0.0, 1.0, 2.0]), line(&[0.0, 1.0]));
    says(CostMatrix::new(vec![0.0; 5], 3, 2), "the cost matrix must be 3 x 2, got 1 x 5");
    says(
        CostMatrix::new(Vec::<f64>::new(), 0, 2),
        "the cloud has no points; at least one is needed",
    );
    says(
        CostMatrix::new(vec![0.0, 1.0, 2.0, f64::NAN, 4.0, 5.0], 3, 2),
        "the cost of the pair (2, 2) is NaN; costs must be finite",
    );
    says(
        CostMatrix::new(vec![0.0, 1.0, 2.0, 3.0, f64::INFINITY, 5.0], 3, 2),
        "the cost of the pair (3, 1) is inf; costs must be finite",
    );
    let transposed = CostMatrix::new(vec![0.0; 6], 2, 3).unwrap();
    for method in [Method::Auto, Method::dense(), Method::online()] {
        says(
            Solver::new(&with(1.0, method)).costs(transposed.clone()).rot(&mu, &nu),
            "the cost matrix must be 3 x 2, got 2 x 3",
        );
    }
    let ones = |n, r| FeatureMatrix::new(vec![1.0; n * r], n, r).unwrap();
    let given = |x, y| Solver::new(&with(1.0, Method::gaussian())).features(x, y).rot(&mu, &nu);
    says(given(ones(3, 2), ones(3, 2)), "the second feature matrix must be 2 x 2, got 3 x 2");
    says(
        given(ones(3, 2), ones(2, 5)),
        "the two feature maps have ranks 2 and 5; both need the same rank",
    );
}

#[test]
fn matrices_and_methods_that_do_not_go_together_say_so() {
    let mu = line(&[0.0, 1.0]);
    let costs = CostMatrix::new(vec![0.0, 1.0, 1.0, 0.0], 2, 2).unwrap();
    let ones = FeatureMatrix::new(vec![1.0; 4], 2, 2).unwrap();
    let remedy = "leave the method to Method::Auto, or use Method::dense() or Method::online()";
    for (method, name) in [
        (Method::gaussian(), "positive features"),
        (Method::lattice(), "positive features"),
        (Method::nystrom(), "the Nystrom approximation"),
    ] {
        let options = with(1.0, method);
        let message = format!("{name} cannot be had for a cost matrix; {remedy}");
        says(Solver::new(&options).costs(costs.clone()).rot(&mu, &mu), &message);
        let points = mu.points();
        let barycenters = Barycenters::new(&options).costs(costs.clone());
        let found = barycenters.fixed(std::slice::from_ref(&mu), &[1.0], points);
        assert!(matches!(found, Err(Error::NotFor { .. })), "{found:?}");
        let test = TwoSampleTest::new(&options).costs(costs.clone()).run(&mu, &mu);
        assert!(matches!(test, Err(Error::NotFor { .. })), "{test:?}");
    }
    let nystrom = with(1.0, Method::nystrom());
    says(
        Solver::new(&nystrom).features(ones.clone(), ones.clone()).rot(&mu, &mu),
        &format!("the Nystrom approximation cannot be had for matrices of features; {remedy}"),
    );
    let both = with(1.0, Method::Auto);
    says(
        Solver::new(&both).costs(costs).features(ones.clone(), ones).plan(&mu, &mu),
        "a cost matrix and matrices of features cannot be had for one problem; each of them says what the kernel is: \
         give one",
    );
}

#[test]
fn divergences_without_self_terms_say_so() {
    let mu = line(&[0.5, 1.0]);
    let matrix = CostMatrix::new(vec![0.0, 1.0, 1.0, 0.0], 2, 2).unwrap();
    says(
        Solver::new(&with(1.0, Method::dense())).costs(matrix).divergence(&mu, &mu),
        "a divergence needs one kernel for its three terms, a cost matrix gives only the cross term; \
         solve the three terms with a matrix each",
    );
    let map = |seed| -> Arc<dyn FeatureMap> {
        Arc::new(ArcCosine::new(1, 1, 1.0, 1.0, 8, seed).unwrap())
    };
    let message = "a divergence needs one kernel for its three terms, a pair of feature maps gives \
                   only the cross term; use one map for both clouds";
    let pair = || Features::Pair(map(1), map(2));
    says(divergence(&mu, &mu, &with(1.0, Method::Factored(pair()))), message);
    says(divergence(&mu, &mu, &with(1.0, Method::Online(Cost::Features(pair())))), message);
    assert!(rot(&mu, &mu, &with(1.0, Method::Factored(pair()))).is_ok());
}

#[test]
fn memory_beyond_the_limit_is_refused_with_its_size() {
    let (mu, nu) = figure_1(1000, 1000, 1);
    let solve = |method, precision, limit: u64| {
        let o = Options::builder(1.0).method(method).precision(precision).rank(1000);
        rot(&mu, &nu, &o.max_memory(limit).max_iterations(1).build().unwrap()).map(|_| ())
    };
    let (mb, half) = (1_000_000, 1 << 19);
    let error = solve(Method::dense(), Precision::F64, half).unwrap_err();
    assert!(
        matches!(error, Error::Memory { what: "the kernel matrix", bytes, .. } if (bytes - 8e6).abs() < 1.0)
    );
    speaks(&error);
    let error = solve(Method::paper(), Precision::F32, half).unwrap_err();
    assert!(
        matches!(error, Error::Memory { what: "the feature matrices", bytes, .. } if (bytes - 8e6).abs() < 1.0)
    );
    speaks(&error);
    // Half of it in single precision, and nothing for the online method.
    assert!(solve(Method::dense(), Precision::F64, 7 * mb).is_err());
    assert!(solve(Method::dense(), Precision::F32, 7 * mb).is_ok());
    assert!(solve(Method::online(), Precision::F64, 1).is_ok());
    assert!(solve(Method::paper(), Precision::F64, 17 * mb).is_ok());
}

#[test]
fn a_small_memory_limit_is_told_in_a_unit_that_shows_it() {
    // "0.0 GiB of memory, more than the 0.0 GiB allowed" helps nobody.
    let (mu, nu) = figure_1(1000, 1000, 1);
    let o = Options::builder(1.0).method(Method::dense()).max_memory(1 << 20).build().unwrap();
    let message = rot(&mu, &nu, &o).unwrap_err().to_string();
    assert!(!message.contains("0.0 GiB"), "{message}");
}

#[test]
fn a_warm_start_of_the_wrong_length_says_so() {
    let (mu, nu) = (line(&[0.0, 1.0, 2.0]), line(&[0.0, 1.0]));
    let o = with(1.0, Method::Auto);
    let earlier = rot(&nu, &mu, &o).unwrap();
    says(
        Solver::new(&o).warm_start(&earlier).rot(&mu, &nu),
        "the potential to start from must be 3 x 1, got 2 x 1",
    );
    let earlier = divergence(&nu, &mu, &o).unwrap();
    says(
        Solver::new(&o).warm_start_divergence(&earlier).divergence(&mu, &nu),
        "the potential to start from must be 3 x 1, got 2 x 1",
    );
}

#[test]
fn messages_about_tiny_and_huge_numbers_stay_short() {
    // Not 300 zeros: "got -4e-301".
    let linear = with(1.0, Method::Factored(Features::Linear));
    let errors = [
        Options::builder(-4e-301).build().unwrap_err(),
        Options::builder(1.0).tolerance(1e300).build().unwrap_err(),
        Measure::weighted(points(&[0.0], 1).unwrap(), &[-1e300]).unwrap_err(),
        rot(&line(&[-4e-301]), &line(&[1.0]), &linear).unwrap_err(),
        rot(&line(&[-1.0, 1.0]), &line(&[0.0]), &with(1e-300, Method::Auto)).unwrap_err(),
        rot(&line(&[-1e300, 1.0]), &line(&[0.0]), &with(1.0, Method::Auto)).unwrap_err(),
    ];
    for error in errors {
        let message = error.to_string();
        assert!(message.len() < 200, "{message}");
    }
}

// ---------------------------------------------------------------------------------------------
// Right answers at the edges.

fn exact_methods() -> [Method; 3] {
    [Method::Auto, Method::dense(), Method::online()]
}

#[test]
fn one_point_and_equal_points_in_closed_form() {
    // All points of a cloud equal: every plan costs the same, W = c and no entropy but the weights'.
    for n in [1, 2, 7] {
        let (mu, nu) = (line(&vec![3.0; n]), line(&[5.0; 4]));
        for epsilon in [1e-3, 1.0, 1e6] {
            for method in exact_methods() {
                let s = rot(&mu, &nu, &with(epsilon, method)).unwrap();
                assert!(s.converged() && s.iterations <= 2);
                // Potentials of order epsilon log n cancel.
                assert!(
                    (s.value_kl - 4.0).abs() < 1e-14 * epsilon.max(1000.0),
                    "{epsilon}: {}",
                    s.value_kl
                );
                assert!((s.transport_cost.unwrap() - 4.0).abs() < 1e-12);
                let entropy = (n as f64).ln() + 4.0_f64.ln();
                assert!(relative(s.value, 4.0 - epsilon * entropy) < 1e-11);
            }
            // Features of the very kernel: k_theta(x, x) of one point each is one number.
            let s = rot(&mu, &nu, &with(epsilon, Method::paper())).unwrap();
            assert!(s.converged() && s.value.is_finite());
            assert!((s.transport_cost.unwrap() - 4.0).abs() < 1e-9);
        }
    }
}

#[test]
fn scales_of_1e150_and_1e_minus_150_are_the_same_problem() {
    let (x, y) = ([0.0, 1.0, 2.5], [0.5, 3.0]);
    let scaled = |v: &[f64], s: f64| line(&v.iter().map(|v| v * s).collect::<Vec<_>>());
    let methods = [Method::Auto, Method::dense(), Method::paper()];
    for method in methods {
        let solve = |s: f64, precision| {
            let o = Options::builder(0.3 * s * s)
                .method(method.clone())
                .precision(precision)
                .rank(50)
                .tolerance(if precision == Precision::F32 { 1e-6 } else { 1e-12 })
                .build()
                .unwrap();
            divergence(&scaled(&x, s), &scaled(&y, s), &o).unwrap()
        };
        for (precision, tolerance) in [(Precision::F64, 1e-10), (Precision::F32, 1e-4)] {
            let base = solve(1.0, precision);
            for s in [1e-150, 1e150] {
                let d = solve(s, precision);
                assert!(d.converged());
                assert!(relative(d.value / s / s, base.value) < tolerance, "{s} {method:?}");
                assert!(relative(d.cross.value / s / s, base.cross.value) < tolerance);
                let (c, b) = (d.cross.transport_cost.unwrap(), base.cross.transport_cost.unwrap());
                assert!(relative(c / s / s, b) < tolerance, "{s} {method:?}: {c} {b}");
            }
        }
    }
}

#[test]
fn weights_over_300_decades_are_those_of_their_large_points() {
    // A point of weight 1e-300 moves nothing but gets its potential.
    let x = [0.0, 1.0, 2.0, 3.0];
    let nu = line(&[0.5, 2.5]);
    let weighted = |w: &[f64], x: &[f64]| Measure::weighted(points(x, 1).unwrap(), w).unwrap();
    let all = weighted(&[1.0, 1e-300, 0.5, 1e-150], &x);
    let some = weighted(&[1.0, 0.5], &[0.0, 2.0]);
    for method in exact_methods() {
        let o = Options::builder(0.2).method(method).tolerance(1e-12).build().unwrap();
        let (s, t) = (rot(&all, &nu, &o).unwrap(), rot(&some, &nu, &o).unwrap());
        assert!(s.converged() && relative(s.value, t.value) < 1e-11);
        finite_any(&s);
        // As a function of position the potential is the same, whatever the weight.
        let zero = weighted(&[1.0, 0.0, 0.5, 0.0], &x);
        let z = rot(&zero, &nu, &o).unwrap();
        for (p, q) in s.potential_kl_x().iter().zip(z.potential_kl_x()) {
            // Potentials of -0.2 * 690 have lost 1e-14 of that.
            assert!((p - q).abs() < 1e-10, "{p} {q}");
        }
        let d = divergence(&all, &nu, &o).unwrap();
        assert!(
            d.converged() && relative(d.value, divergence(&some, &nu, &o).unwrap().value) < 1e-9
        );
    }
    let o = Options::builder(0.2).method(Method::paper()).rank(100).tolerance(1e-12);
    let o = o.build().unwrap();
    let s = divergence(&all, &nu, &o).unwrap();
    assert!(s.converged());
    s.terms().into_iter().for_each(finite_any);
}

fn finite_any(s: &Solution) {
    assert!(s.potential_x.iter().chain(&s.potential_y).all(|p| p.is_finite()), "{s:?}");
}

#[test]
fn duplicates_share_the_weight_of_one_point_whatever_the_method() {
    let once = Measure::weighted(points(&[0.0, 1.0], 1).unwrap(), &[3.0, 1.0]).unwrap();
    let often = line(&[0.0, 1.0, 0.0, 0.0]);
    let nu = line(&[0.3, 0.3, 2.0]);
    for method in [Method::Auto, Method::dense(), Method::paper()] {
        let o = Options::builder(0.2).method(method).rank(60).tolerance(1e-12).build().unwrap();
        let (s, t) = (divergence(&once, &nu, &o).unwrap(), divergence(&often, &nu, &o).unwrap());
        // The centre of the two is the same, so the features are too.
        assert!((s.value - t.value).abs() < 1e-10, "{} {}", s.value, t.value);
        let kl = t.cross.potential_kl_x();
        assert!((kl[0] - kl[2]).abs() < 1e-12 && (kl[0] - kl[3]).abs() < 1e-12);
    }
}

#[test]
fn swapping_clouds_of_different_sizes_swaps_the_potentials() {
    let (mu, nu) = figure_1(23, 41, 5);
    for method in [Method::Auto, Method::dense(), Method::paper(), Method::nystrom()] {
        let o = Options::builder(0.3).method(method).rank(70).tolerance(1e-12).build().unwrap();
        let (s, t) = (rot(&mu, &nu, &o).unwrap(), rot(&nu, &mu, &o).unwrap());
        assert!(relative(s.value, t.value) < 1e-11);
        // Potentials are defined up to a constant.
        let shift = s.potential_x[0] - t.potential_y[0];
        for (p, q) in s.potential_x.iter().zip(&t.potential_y) {
            assert!((p - q - shift).abs() < 1e-9);
        }
        for (p, q) in s.potential_y.iter().zip(&t.potential_x) {
            assert!((p - q + shift).abs() < 1e-9);
        }
    }
}

#[test]
fn a_far_point_of_weight_zero_does_no_harm() {
    // Its potential is what double precision makes of it, or an error; never an infinity.
    let nu = line(&[0.0, 1.0]);
    for far in [1e3, 1e10, 1e100, 1e200, 1e308] {
        let mu = Measure::weighted(points(&[0.0, 1.0, far], 1).unwrap(), &[1.0, 1.0, 0.0]).unwrap();
        for method in [Method::online(), Method::dense(), Method::paper(), Method::nystrom()] {
            match rot(&mu, &nu, &with(1.0, method.clone())) {
                Ok(s) => {
                    finite_any(&s);
                    let near = rot(&nu, &nu, &with(1.0, Method::online())).unwrap();
                    if !matches!(method, Method::Factored(_)) {
                        assert!(relative(s.value, near.value) < 1e-12);
                    }
                }
                Err(error) => speaks(&error),
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Breakdowns.

/// Clouds that a lattice cannot serve at this epsilon, because much has to go far: the error names the same point,
/// wherever it is in its cloud.
#[test]
fn breakdowns_on_lattices_name_the_point() {
    let y = Measure::uniform(Points::new(vec![0.0, 1001.0], 1).unwrap());
    for algorithm in [Algorithm::Auto, Algorithm::Accelerated] {
        let options = Options::builder(1.0).method(Method::lattice()).algorithm(algorithm);
        let options = options.build().unwrap();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let x = order.map(|i: usize| [0.0, 1.0, 1000.0][i]);
            let x = Measure::uniform(Points::new(x.to_vec(), 1).unwrap());
            let error = rot(&x, &y, &options).unwrap_err();
            let Error::Breakdown { cloud: Side::X, row, .. } = error else { panic!("{error}") };
            assert_eq!(order[row - 1], 0, "{algorithm:?} {order:?}: row {row}");
        }
    }
}

/// Clouds with far outliers that no lattice can serve: an automatic choice goes on with the exact kernel.
#[test]
fn automatic_choices_that_break_down_go_on_exactly() {
    let cloud = |near: usize, far: usize, at: f64, phase: f64| -> Vec<f64> {
        let near = (0..near).map(|i| 0.5 + 0.5 * (i as f64 * 0.37 + phase).sin());
        near.chain((0..far).map(|i| at + 1e-3 * i as f64)).collect()
    };
    let points = [cloud(1_100, 30, 1000.0, 0.0), cloud(900, 200, 1001.0, 1.0)];
    let [mu, nu] = points.each_ref().map(|p| Measure::uniform(Points::new(p, 1).unwrap()));
    let options = Options::builder(1.0).build().unwrap();
    let lattice = Options::builder(1.0).method(Method::lattice()).build().unwrap();
    let error = rot(&mu, &nu, &lattice).unwrap_err();
    assert!(matches!(error, Error::Breakdown { .. }), "{error}");
    assert!(error.to_string().contains("use the online method"), "{error}");

    // Without regularisation, by sorting: what is left over at 1000 comes from near 0.
    let mut sorted = points.clone();
    for p in &mut sorted {
        p.sort_by(f64::total_cmp);
    }
    let (mut cost, mut i, mut j) = (0.0, 0, 0);
    let (n, m) = (sorted[0].len(), sorted[1].len());
    let mut at = 0.0;
    while i < n && j < m {
        let [next_x, next_y] = [(i + 1) as f64 / n as f64, (j + 1) as f64 / m as f64];
        let next = next_x.min(next_y);
        cost += (next - at) * (sorted[0][i] - sorted[1][j]).powi(2);
        at = next;
        i += usize::from(next_x <= next_y);
        j += usize::from(next_y <= next_x);
    }
    let found = rot(&mu, &nu, &options).unwrap();
    assert!(found.converged() && found.method == MethodUsed::Online, "{:?}", found.method);
    assert!(found.reason.as_ref().unwrap().contains("break down"), "{:?}", found.reason);
    assert!(found.polished.is_none());
    assert!(relative(found.transport_cost.unwrap(), cost) < 1e-5, "{cost}: {found:?}");
    let online = Options::builder(1.0).method(Method::online()).build().unwrap();
    assert!(relative(found.value_kl, rot(&mu, &nu, &online).unwrap().value_kl) < 1e-9);
    let whole = divergence(&mu, &nu, &options).unwrap();
    assert!(relative(whole.value, divergence(&mu, &nu, &online).unwrap().value) < 1e-6);
    let many = compare(&[mu, nu], &options).unwrap();
    assert!(relative(many.pairs[0].value, whole.value) < 1e-6);
}
