//! How the time of the loss grows with the batch: forward and backward, with features and with a stored kernel.

use std::sync::Arc;
use std::time::Instant;

use burn::Tensor;
use burn::tensor::{Device, TensorData};
use orthant::features::Gaussian;
use orthant::{
    Measure, Method, Options, Points, Side,
    options::{Cost, Features},
    plans,
};
use serde::Serialize;

use crate::error::Result;
use crate::kernel::Solve;
use crate::loss::{numbers, of_latents};
use crate::random::{Purpose, normals, stream};

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// Sizes of batches.
    pub sizes: Vec<usize>,
    /// Number of features.
    pub rank: usize,
    /// Coordinates of latents.
    pub latent: usize,
    /// Regularisation.
    pub epsilon: f64,
    /// What latents and anchors are drawn from.
    pub seed: u64,
    /// The largest batch that the dense kernel is tried with.
    pub dense_limit: usize,
    /// Each time is the least of so many.
    pub repeats: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            sizes: vec![500, 1000, 2000, 4000, 7000],
            rank: 600,
            latent: 64,
            epsilon: 1.0,
            seed: 0,
            dense_limit: 7000,
            repeats: 3,
        }
    }
}

/// One size of batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Images, and as many samples.
    pub size: usize,
    /// Seconds of the divergence.
    pub forward: f64,
    /// Seconds of its derivatives by latents and anchors.
    pub backward: f64,
    /// Iterations of the three terms.
    pub iterations: usize,
    /// The divergence.
    pub value: f64,
    /// The same with the kernel of the same features as a matrix.
    pub dense: Option<DenseRow>,
}

/// The same loss with a stored kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DenseRow {
    /// Seconds of the divergence and of its derivatives by latents.
    pub seconds: f64,
    /// The divergence.
    pub value: f64,
    /// Largest difference of a derivative from that of the linear one, as a part of the largest derivative.
    pub gradient_error: f64,
}

/// All sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bench {
    /// What was measured.
    pub settings: Settings,
    /// Size by size.
    pub rows: Vec<Row>,
    /// The power of the batch that the time of forward and backward grows with, by least squares.
    pub exponent: f64,
    /// The same of the dense kernel, if it was tried with two sizes.
    pub dense_exponent: Option<f64>,
}

/// Measures size after size, and tells of each.
pub fn run(settings: &Settings, mut progress: impl FnMut(&Row)) -> Result<Bench> {
    let mut rows = Vec::new();
    for &size in &settings.sizes {
        let row = measure(settings, size)?;
        progress(&row);
        rows.push(row);
    }
    let linear: Vec<_> = rows.iter().map(|r| (r.size, r.forward + r.backward)).collect();
    let dense: Vec<_> =
        rows.iter().filter_map(|r| Some((r.size, r.dense.as_ref()?.seconds))).collect();
    let dense_exponent = (dense.len() > 1).then(|| exponent(&dense));
    Ok(Bench { settings: settings.clone(), exponent: exponent(&linear), rows, dense_exponent })
}

/// The slope of logarithms of times over those of sizes.
fn exponent(times: &[(usize, f64)]) -> f64 {
    let logs: Vec<[f64; 2]> =
        times.iter().map(|(size, time)| [(*size as f64).ln(), time.ln()]).collect();
    let mean = |k: usize| logs.iter().map(|l| l[k]).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(0), mean(1));
    let (over, under) = logs.iter().fold((0.0, 0.0), |(over, under), l| {
        (over + (l[0] - x) * (l[1] - y), under + (l[0] - x).powi(2))
    });
    over / under
}

/// Two batches of latents on the unit sphere, one of them moved, and anchors of Lemma 1.
struct Problem {
    x: Vec<f32>,
    y: Vec<f32>,
    anchors: Vec<f32>,
    q: f64,
}

impl Problem {
    fn new(settings: &Settings, size: usize) -> Self {
        let Settings { rank, latent, epsilon, seed, .. } = *settings;
        let mut rng = stream(seed, Purpose::Bench, size as u64, 0);
        let q = orthant::theory::paper_q(1.0, epsilon, latent);
        #[expect(clippy::cast_possible_truncation, reason = "latents are in single precision")]
        let deviation = (q * epsilon / 4.0).sqrt() as f32;
        let mut sphere = |shift: f32| -> Vec<f32> {
            let mut rows = normals(&mut rng, size * latent);
            for row in rows.chunks_exact_mut(latent) {
                row[0] += shift;
                let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
                for v in row {
                    *v /= norm;
                }
            }
            rows
        };
        let (x, y) = (sphere(0.0), sphere(1.0));
        let anchors = normals(&mut rng, rank * latent).into_iter().map(|z| deviation * z).collect();
        Problem { x, y, anchors, q }
    }
}

fn measure(settings: &Settings, size: usize) -> Result<Row> {
    let problem = Problem::new(settings, size);
    let solve = Solve { epsilon: settings.epsilon, ..Solve::default() };
    let (latent, device) = (settings.latent, Device::flex().autodiff());
    let tensor = |values: &[f32]| {
        let shape = [values.len() / latent, latent];
        Tensor::<2>::from_data(TensorData::new(values.to_vec(), shape), &device).require_grad()
    };
    let mut row = Row {
        size,
        forward: f64::INFINITY,
        backward: f64::INFINITY,
        iterations: 0,
        value: 0.0,
        dense: None,
    };
    let mut gradient = Vec::new();
    for _ in 0..settings.repeats.max(1) {
        let (x, y) = (tensor(&problem.x), tensor(&problem.y));
        let anchors = tensor(&problem.anchors);
        let begun = Instant::now();
        let loss = of_latents(x, y.clone(), anchors, problem.q, solve)?;
        let forward = begun.elapsed().as_secs_f64();
        let gradients = loss.tensor.backward();
        let both = begun.elapsed().as_secs_f64();
        if both < row.forward + row.backward {
            (row.forward, row.backward) = (forward, both - forward);
        }
        (row.iterations, row.value) = (loss.iterations, loss.value);
        gradient = numbers(y.grad(&gradients).expect("the divergence depends on it"));
    }
    if size <= settings.dense_limit {
        row.dense = Some(dense(&problem, settings, &gradient)?);
    }
    Ok(row)
}

/// The same divergence with matrices of the kernel.
fn dense(problem: &Problem, settings: &Settings, linear: &[f32]) -> Result<DenseRow> {
    let Settings { latent, epsilon, .. } = *settings;
    let Solve { tolerance, max_iterations, .. } = Solve::default();
    let begun = Instant::now();
    let anchors = Points::new(&problem.anchors, latent)?;
    let map = Arc::new(Gaussian::with_anchors(&anchors, problem.q, epsilon)?);
    let options = Options::builder(epsilon)
        .method(Method::Dense(Cost::Features(Features::Map(map))))
        .tolerance(tolerance)
        .max_iterations(max_iterations)
        .build()?;
    let [mu, nu] =
        [&problem.x, &problem.y].map(|values| Points::new(values, latent).map(Measure::uniform));
    let (mu, nu) = (mu?, nu?);
    let plans = plans(&mu, &nu, &options)?;
    let gradient = plans.gradient();
    gradient.points(Side::X)?;
    let by = gradient.points(Side::Y)?;
    gradient.anchors()?;
    let seconds = begun.elapsed().as_secs_f64();
    let pairs = || by.iter().zip(linear).map(|(a, b)| (a - f64::from(*b)).abs());
    let largest = by.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let gradient_error = pairs().fold(0.0, f64::max) / largest;
    Ok(DenseRow { seconds, value: plans.divergence().value, gradient_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_of_a_power() {
        let times: Vec<_> = [500, 1000, 7000].map(|n| (n, 3e-6 * (n as f64).powf(1.7))).to_vec();
        assert!((exponent(&times) - 1.7).abs() < 1e-12);
    }

    #[test]
    fn both_kernels_have_the_same_divergence_and_gradient() {
        let sizes = vec![40, 60];
        let settings = Settings { sizes, rank: 30, latent: 5, repeats: 1, ..Settings::default() };
        let bench = run(&settings, |_| ()).unwrap();
        for row in &bench.rows {
            let dense = row.dense.as_ref().unwrap();
            assert!((dense.value - row.value).abs() < 1e-6 * row.value.abs(), "{row:?}");
            assert!(dense.gradient_error < 1e-5, "{row:?}");
        }
        assert!(bench.dense_exponent.is_some());
    }
}
