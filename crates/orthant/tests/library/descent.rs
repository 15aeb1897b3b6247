//! Flows and barycentres of free points against closed forms, the gradient, and the exact divergence.

use std::time::Duration;

use orthant::{
    Error, Measure, Method, Options, Points, Side,
    anchors::Draw,
    control::{Next, Progress},
    descent::{Descent, Rest, flow},
    divergence,
    options::{Anchors, Features, OptionsBuilder},
    plans,
};

use crate::common::{normal, normal_measure};

fn tight(epsilon: f64) -> OptionsBuilder {
    Options::builder(epsilon).tolerance(1e-11).max_iterations(100_000)
}

fn moments(points: &[f64]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = points.iter().sum::<f64>() / n;
    (mean, points.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
}

/// `n` quantiles of a normal distribution, of this variance exactly.
fn bell(n: usize, mean: f64, deviation: f64) -> Vec<f64> {
    let raw: Vec<f64> = (0..n).map(|i| quantile((i as f64 + 0.5) / n as f64)).collect();
    let (_, variance) = moments(&raw);
    raw.iter().map(|x| mean + deviation * x / variance.sqrt()).collect()
}

/// The standard normal quantile, by bisection of a series for the distribution function.
fn quantile(p: f64) -> f64 {
    // Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + ...)
    let distribution = |x: f64| {
        let (mut term, mut sum, mut k) = (x, x, 1.0);
        while term.abs() > 1e-17 * sum.abs() {
            k += 2.0;
            term *= x * x / k;
            sum += term;
        }
        0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
    };
    let (mut low, mut high) = (-7.0, 7.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if distribution(middle) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn uniform(points: &[f64], dim: usize) -> Measure<'_> {
    Measure::uniform(Points::new(points, dim).unwrap())
}

/// The covariance of the plan of two centred normal distributions.
fn covariance(epsilon: f64, s: f64, t: f64) -> f64 {
    0.25 * ((epsilon * epsilon + 16.0 * (s * t).powi(2)).sqrt() - epsilon)
}

#[test]
fn a_translate_comes_home_in_one_step() {
    let y = normal(60, &[1.0, -2.0], 1.0, 1);
    let x: Vec<f64> = y.chunks(2).flat_map(|p| [p[0] + 3.0, p[1] - 4.0]).collect();
    for method in [Method::dense(), Method::online(), Method::Auto] {
        let options = tight(0.3).method(method).build().unwrap();
        let found =
            Descent::new(&options).max_steps(1).flow(&uniform(&x, 2), &uniform(&y, 2)).unwrap();
        assert!((found.first - 25.0).abs() < 1e-7, "{}", found.first);
        assert!(found.divergence.value.abs() < 1e-7, "{}", found.divergence.value);
        assert!(found.points.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-4));
        assert_eq!((found.steps, found.gradients), (1, 2));
    }
}

#[test]
fn a_step_follows_the_gradient_of_the_divergence() {
    let weights = [1.0, 0.0, 2.0, 3.0, 0.5, 1.5, 2.5];
    let nu = normal_measure(9, &[0.5, 0.2], 1.0, 3);
    let x = normal(7, &[0.0, 0.0], 0.7, 2);
    let mu = Measure::weighted(Points::new(&x, 2).unwrap(), &weights).unwrap();
    let gaussian = |anchors| Method::Factored(Features::Gaussian(anchors));
    let arc_cosine = Method::Factored(Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 });
    let methods = [
        (Method::dense(), 1.0),
        (arc_cosine, 0.05),
        (gaussian(Anchors::Lattice { stored: false }), 1.0),
        (gaussian(Anchors::Adaptive), 1.0),
    ];
    for (method, size) in methods {
        for reach in [None, Some(1.0)] {
            let mut builder = tight(0.4).method(method.clone()).accuracy(1e-9);
            if let Some(reach) = reach {
                builder = builder.reach(reach);
            }
            let options = builder.build().unwrap();
            let plans = plans(&mu, &nu, &options).unwrap();
            let gradient = plans.gradient().points(Side::X).unwrap();
            let found = Descent::new(&options).max_steps(1).step(size).flow(&mu, &nu).unwrap();
            assert_eq!(found.gradients, 2, "{method:?}");
            assert!((found.first - plans.divergence().value).abs() < 1e-9, "{method:?}");
            for (k, moved) in found.points.iter().enumerate() {
                let weight = weights[k / 2];
                let scale = if weight > 0.0 { 0.5 * size / weight } else { 0.0 };
                let scale = if reach.is_some() { scale } else { scale * mu.mass() };
                let off = (moved - (x[k] - scale * gradient[k])).abs();
                assert!(off < 1e-7, "{method:?} {reach:?}: {k} is off by {off:e}");
            }
        }
    }
}

#[test]
fn flows_end_where_the_other_cloud_is() {
    let mu = normal_measure(120, &[0.0, 0.0], 0.5, 4);
    let nu = normal_measure(150, &[2.0, 1.0], 1.0, 5);
    let exact = Options::builder(0.2).method(Method::dense()).build().unwrap();
    let before = divergence(&mu, &nu, &exact).unwrap().value;
    let gaussian = |anchors| Method::Factored(Features::Gaussian(anchors));
    let methods = [
        Method::Auto,
        Method::online(),
        gaussian(Anchors::Lattice { stored: false }),
        gaussian(Anchors::Random(Draw::Sobol)),
    ];
    for method in methods {
        let options = Options::builder(0.2).method(method.clone());
        let options = options.accuracy(1e-5).build().unwrap();
        let mut values = Vec::new();
        let found = Descent::new(&options)
            .each(&mut |step| {
                assert_eq!(step.number, values.len());
                values.push(step.value);
                Next::Continue
            })
            .flow(&mu, &nu)
            .unwrap();
        assert!(values.is_sorted_by(|a, b| a > b), "{method:?}: {values:?}");
        assert_eq!(values.len(), found.steps + 1);
        assert_eq!(*values.last().unwrap(), found.divergence.value);
        // As the exact kernel sees it.
        let after = divergence(&uniform(&found.points, 2), &nu, &exact).unwrap().value;
        // Random features see less of it.
        let part = if matches!(method, Method::Factored(Features::Gaussian(Anchors::Random(_)))) {
            1e-2
        } else {
            1e-3
        };
        assert!(after < part * before, "{method:?}: {before} to {after}");
    }
}

#[test]
fn momentum_shortens_the_way() {
    let mu = normal_measure(80, &[0.0, 0.0], 0.5, 6);
    let nu = normal_measure(80, &[1.0, 1.0], 1.0, 7);
    let options = Options::builder(0.5).tolerance(1e-8).build().unwrap();
    let steps = |momentum| {
        let descent =
            Descent::new(&options).momentum(momentum).until(1e-6).still(0.0).max_steps(1000);
        let found = descent.flow(&mu, &nu).unwrap();
        assert_eq!(found.rest, Rest::Reached);
        assert!(found.divergence.value <= 1e-6 * found.first);
        found.gradients
    };
    let (without, with) = (steps(0.0), steps(0.8));
    assert!(3 * with < 2 * without, "{with} and {without}");
}

#[test]
fn a_step_that_is_too_long_is_made_shorter() {
    let mu = normal_measure(40, &[0.0], 0.5, 8);
    let nu = normal_measure(50, &[1.0], 1.0, 9);
    let options = Options::builder(0.2).build().unwrap();
    let mut sizes = Vec::new();
    let found = Descent::new(&options)
        .step(20.0)
        .each(&mut |step| {
            sizes.push((step.size, step.rejected));
            Next::Continue
        })
        .flow(&mu, &nu)
        .unwrap();
    assert!(sizes[1].0 < 5.0 && sizes[1].1 > 2, "{sizes:?}");
    assert!(found.divergence.value < 1e-2 * found.first, "{found:?}");
    assert!(found.gradients > found.steps + 3);
    // However far it would be.
    let found = Descent::new(&options).step(1e9).max_steps(50).flow(&mu, &nu).unwrap();
    assert!(found.divergence.value < 1e-2 * found.first, "{found:?}");
}

#[test]
fn flows_say_why_they_ended() {
    let mu = normal_measure(40, &[0.0], 0.5, 8);
    let nu = normal_measure(50, &[1.0], 1.0, 9);
    let options = Options::builder(0.2).build().unwrap();
    let rest = |descent: Descent<'_>| descent.flow(&mu, &nu).unwrap().rest;
    assert_eq!(rest(Descent::new(&options).max_steps(0)), Rest::StepLimit);
    assert_eq!(rest(Descent::new(&options).max_steps(2)), Rest::StepLimit);
    assert_eq!(rest(Descent::new(&options).until(0.5)), Rest::Reached);
    assert_eq!(rest(Descent::new(&options).still(0.1)), Rest::Still);
    assert_eq!(rest(Descent::new(&options).each(&mut |_| Next::Stop)), Rest::Requested);
    // Nothing is better than nothing.
    let same = flow(&mu, &mu, &options).unwrap();
    assert!(same.rest == Rest::Stalled || same.rest == Rest::Still, "{:?}", same.rest);
    assert!(same.divergence.value.abs() < 1e-8);
    // Solves that do not converge end it with what there is.
    let few = Options::builder(0.001).max_iterations(2).build().unwrap();
    assert_eq!(rest(Descent::new(&few)), Rest::IterationLimit);
    // An observer ends the step, and the one before is the answer.
    let mut count = 0;
    let mut observer = |_: &mut Progress<'_>| {
        count += 1;
        if count > 200 { Next::Stop } else { Next::Continue }
    };
    let found = Descent::new(&options).observer(&mut observer).flow(&mu, &nu).unwrap();
    assert_eq!(found.rest, Rest::Requested);
    assert!(found.steps > 0 && found.divergence.value < found.first);
    // No time for a single gradient.
    let hasty = Options::builder(0.2).time_limit(Duration::from_nanos(1)).build().unwrap();
    let error = flow(&mu, &nu, &hasty).unwrap_err();
    assert_eq!(error, Error::NoGradient { reason: "time_limit" });
    assert!(error.to_string().contains("raise the limit"));
}

#[test]
fn unbalanced_flows_fetch_what_is_in_reach() {
    // Half of the target is far away: it is not worth the way.
    let mu = normal_measure(40, &[0.0], 0.3, 8);
    let mut y = normal(40, &[1.0], 0.3, 9);
    y.extend(normal(40, &[100.0], 0.3, 10));
    let nu = uniform(&y, 1);
    let options = tight(0.1).reach(3.0).build().unwrap();
    let found = flow(&mu, &nu, &options).unwrap();
    let (mean, _) = moments(&found.points);
    let near = moments(&y[..40]).0;
    assert!((mean - near).abs() < 0.1, "{mean} and not {near}");
    assert!(found.divergence.value < found.first);
}

#[test]
fn one_measure_has_the_flow_as_its_barycentre() {
    let mu = normal_measure(30, &[0.0, 0.0], 0.5, 8);
    let nu = normal_measure(40, &[1.0, 1.0], 1.0, 9);
    let options = Options::builder(0.2).build().unwrap();
    let moved = flow(&mu, &nu, &options).unwrap();
    // Measures of weight zero do not matter.
    let far = normal_measure(5, &[50.0, 50.0], 1.0, 9);
    let descent = Descent::new(&options).debiased(true);
    let found = descent.barycenter(&[far, nu], &[0.0, 3.0], &mu).unwrap();
    assert_eq!(found.points, moved.points);
    assert_eq!(found.distances, [0.0, moved.divergence.value]);
    assert_eq!((found.value, found.first), (moved.divergence.value, moved.first));
}

#[test]
fn barycentres_of_normal_distributions_have_the_variance_of_theory() {
    let (epsilon, n) = (0.5, 200);
    let (s, t) = (0.6, 1.4);
    let clouds = [bell(n, -1.0, s), bell(n, 3.0, t)];
    let measures = clouds.each_ref().map(|x| uniform(x, 1));
    let options = Options::builder(epsilon).tolerance(1e-9).build().unwrap();
    let start = bell(n, 0.0, 1.0);
    let (a, b) = (0.25, 0.75);
    for debiased in [true, false] {
        let descent = Descent::new(&options).debiased(debiased).still(3e-4).max_steps(1000);
        let found = descent.barycenter(&measures, &[a, b], &uniform(&start, 1)).unwrap();
        assert_eq!(found.rest, Rest::Still, "{debiased} {}", found.steps);
        // Points are where the means of their partners are: sum l c(r, s) = c(r, r), or r^2 if blurred.
        let own = |r: f64| if debiased { covariance(epsilon, r, r) } else { r * r };
        let excess =
            |r: f64| a * covariance(epsilon, r, s) + b * covariance(epsilon, r, t) - own(r);
        let (mut low, mut high) = (0.1, 3.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if excess(middle) > 0.0 { low = middle } else { high = middle }
        }
        let (mean, variance) = moments(&found.points);
        assert!((mean - (-a + 3.0 * b)).abs() < 1e-4, "{mean}");
        // As far as 200 points are normal distributions.
        let off = variance / (low * low) - 1.0;
        assert!(off.abs() < 0.01, "debiased {debiased}: {variance} and not {}", low * low);
        let sum = a * found.distances[0] + b * found.distances[1];
        assert!((sum - found.value).abs() < 1e-12);
    }
}

#[test]
fn without_blur_points_of_a_line_are_means_of_quantiles() {
    // The barycentre in one dimension has the mean of the quantile functions.
    let n = 60;
    let (x, y) = (bell(n, 0.0, 1.0), bell(n, 6.0, 2.0));
    let options = Options::builder(0.05).build().unwrap();
    let measures = [uniform(&x, 1), uniform(&y, 1)];
    let descent = || Descent::new(&options).debiased(true).max_steps(300).still(1e-4);
    let start = descent().start(&measures, &[1.0, 1.0], n).unwrap();
    let found = descent().barycenter(&measures, &[1.0, 1.0], &Measure::uniform(start)).unwrap();
    let mut points = found.points.clone();
    points.sort_by(f64::total_cmp);
    let off = points.iter().zip(x.iter().zip(&y)).map(|(p, (x, y))| p - 0.5 * (x + y));
    let worst = off.map(f64::abs).fold(0.0, f64::max);
    assert!(worst < 0.05, "{worst}");
}

#[test]
fn a_start_is_a_draw_from_all_measures() {
    let measures = [normal_measure(50, &[0.0], 0.1, 1), normal_measure(7, &[10.0], 0.1, 2)];
    let options = Options::builder(0.01).build().unwrap();
    let start = |weights: &[f64], n| Descent::new(&options).start(&measures, weights, n).unwrap();
    let of_second =
        |points: &Points<'_>| (0..points.len()).filter(|&i| points.coordinate(i, 0) > 5.0).count();
    let points = start(&[3.0, 1.0], 40);
    assert_eq!((points.len(), of_second(&points)), (40, 10));
    assert_eq!(of_second(&start(&[0.0, 1.0], 11)), 11);
    // Ten points out of seven are ten places.
    let mut all: Vec<f64> = (0..40).map(|i| points.coordinate(i, 0)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    assert_eq!(all.len(), 40);
    let again = start(&[3.0, 1.0], 40);
    assert!((0..40).all(|i| again.coordinate(i, 0) == points.coordinate(i, 0)));
}

#[test]
fn bad_settings_are_errors() {
    let mu = normal_measure(5, &[0.0], 0.5, 8);
    let nu = normal_measure(6, &[1.0], 1.0, 9);
    let options = Options::builder(0.2).build().unwrap();
    let of = |descent: Descent<'_>| descent.flow(&mu, &nu).unwrap_err().to_string();
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(of(Descent::new(&options).step(bad)).contains("the step must be positive"));
    }
    for bad in [-0.1, 1.0, f64::NAN] {
        assert!(of(Descent::new(&options).momentum(bad)).contains("the momentum must be"));
        assert!(of(Descent::new(&options).until(bad)).contains("until must be"));
        assert!(of(Descent::new(&options).still(bad)).contains("still must be"));
    }
    let wide = normal_measure(6, &[1.0, 1.0], 1.0, 9);
    let error = flow(&mu, &wide, &options).unwrap_err();
    assert_eq!(error, Error::Dimensions { x: 1, y: 2 });
    let error = Descent::new(&options).barycenter(&[nu.clone(), wide], &[1.0, 1.0], &mu);
    assert!(matches!(error.unwrap_err(), Error::InClouds { clouds: [1, 1], .. }));
    let error = Descent::new(&options).barycenter(&[], &[], &mu).unwrap_err();
    assert!(matches!(error, Error::ShareCount { .. }));
    let nystrom = Options::builder(0.2).method(Method::nystrom()).build().unwrap();
    assert!(matches!(flow(&mu, &nu, &nystrom).unwrap_err(), Error::NoDerivative { .. }));
}

#[test]
fn single_points_and_points_that_coincide_move() {
    let one = Measure::uniform(Points::new(vec![5.0, 5.0], 2).unwrap());
    let same = Measure::uniform(Points::new(vec![1.0, 2.0, 1.0, 2.0, 1.0, 2.0], 2).unwrap());
    let options = tight(0.1).build().unwrap();
    let found = flow(&one, &same, &options).unwrap();
    assert!((found.points[0] - 1.0).abs() < 1e-6 && (found.points[1] - 2.0).abs() < 1e-6);
    let found = flow(&same, &one, &options).unwrap();
    assert!(found.points.iter().all(|x| (x - 5.0).abs() < 1e-6), "{:?}", found.points);
    // Scales that are far from one.
    for scale in [1e-150, 1e100] {
        let x: Vec<f64> = [0.0, 1.0, 3.0].map(|x| scale * x).to_vec();
        let y: Vec<f64> = [2.0, 3.5, 4.0].map(|x| scale * x).to_vec();
        let options = tight(0.1 * scale * scale).build().unwrap();
        let found = flow(&uniform(&x, 1), &uniform(&y, 1), &options).unwrap();
        let worst = found.points.iter().zip(&y).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(worst < 0.1 * scale, "{:?}", found.points);
    }
}
