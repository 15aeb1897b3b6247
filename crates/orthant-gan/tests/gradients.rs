//! The derivatives of the loss against central differences, through a small network.

use burn::Tensor;
use burn::tensor::activation::tanh;
use burn::tensor::{Device, TensorData};
use orthant_gan::Error;
use orthant_gan::loss::{Loss, Solve, of_latents, of_log_features};

const DATA: usize = 3;
const LATENT: usize = 2;
const RANK: usize = 7;

fn solve() -> Solve {
    Solve { epsilon: 0.7, tolerance: 1e-11, max_iterations: 10_000 }
}

/// Numbers in (-1, 1) that look random.
#[expect(clippy::cast_possible_truncation, reason = "inputs are in single precision")]
fn numbers(count: usize, seed: f64) -> Vec<f32> {
    (0..count)
        .map(|i| (((i as f64 + 1.0) * 12.9898 + seed * 78.233).sin() * 43_758.545_3).fract() as f32)
        .collect()
}

fn tensor(values: &[f32], columns: usize) -> Tensor<2> {
    let shape = [values.len() / columns, columns];
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex().autodiff())
}

fn list<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

/// What is differentiated by: a "generator" that makes the second batch from noise, an embedding of both, anchors.
#[derive(Clone)]
struct Parameters {
    generator: Vec<f32>,
    embedding: Vec<f32>,
    anchors: Vec<f32>,
}

impl Parameters {
    fn new() -> Self {
        Parameters {
            generator: numbers(DATA * DATA, 1.0),
            embedding: numbers(DATA * LATENT, 2.0),
            anchors: numbers(RANK * LATENT, 3.0),
        }
    }

    fn arrays(&mut self) -> [&mut Vec<f32>; 3] {
        [&mut self.generator, &mut self.embedding, &mut self.anchors]
    }
}

/// The loss of latents that a network makes, `S(f(x), f(g(z)))`, and the leaves of the parameters.
fn by_latents(p: &Parameters) -> (Loss, [Tensor<2>; 3]) {
    let (x, z) = (tensor(&numbers(9 * DATA, 4.0), DATA), tensor(&numbers(6 * DATA, 5.0), DATA));
    let generator = tensor(&p.generator, DATA).require_grad();
    let embedding = tensor(&p.embedding, LATENT).require_grad();
    let anchors = tensor(&p.anchors, LATENT).require_grad();
    let fake = tanh(z.matmul(generator.clone())).mul_scalar(1.5);
    let embed = |images: Tensor<2>| tanh(images.matmul(embedding.clone()));
    let loss = of_latents(embed(x), embed(fake), anchors.clone(), 0.8, solve()).unwrap();
    (loss, [generator, embedding, anchors])
}

/// The same with features that are made here, and given as logarithms.
fn by_log_features(p: &Parameters) -> (Loss, [Tensor<2>; 3]) {
    let (x, z) = (tensor(&numbers(9 * DATA, 4.0), DATA), tensor(&numbers(6 * DATA, 5.0), DATA));
    let generator = tensor(&p.generator, DATA).require_grad();
    let embedding = tensor(&p.embedding, LATENT).require_grad();
    let anchors = tensor(&p.anchors, LATENT).require_grad();
    let fake = tanh(z.matmul(generator.clone())).mul_scalar(1.5);
    let logs = |images: Tensor<2>| {
        // log phi = -2 |x - u|^2 / eps + |u|^2 / (eps q), up to a constant.
        let latents = tanh(images.matmul(embedding.clone()));
        let square = |t: Tensor<2>| (t.clone() * t).sum_dim(1);
        let cross = latents.clone().matmul(anchors.clone().transpose()).mul_scalar(4.0);
        let of_anchors = square(anchors.clone()).transpose().mul_scalar(1.0 / 0.8 - 2.0);
        (cross - square(latents).mul_scalar(2.0) + of_anchors).div_scalar(0.7)
    };
    let loss = of_log_features(logs(x), logs(fake), solve()).unwrap();
    (loss, [generator, embedding, anchors])
}

/// Values are in double precision, of latents in single: differences of fourth order over a step of 0.02 have about
/// four digits.
fn assert_derivatives(loss: impl Fn(&Parameters) -> (Loss, [Tensor<2>; 3])) {
    let parameters = Parameters::new();
    let (found, leaves) = loss(&parameters);
    assert!(found.value > 1e-3, "batches that differ: {}", found.value);
    // The chain rule goes on: three times the loss has three times the gradient.
    let gradients = found.tensor.mul_scalar(3.0).backward();
    for (k, leaf) in leaves.iter().enumerate() {
        let gradient = list(leaf.grad(&gradients).expect("gradients reach it"));
        let scale = gradient.iter().fold(0.0_f32, |m, g| m.max(g.abs()));
        assert!(scale > 1e-3, "array {k} matters: {gradient:?}");
        for (i, found) in gradient.iter().enumerate() {
            let value = |h: f32| {
                let mut moved = parameters.clone();
                moved.arrays()[k][i] += h;
                loss(&moved).0.value
            };
            let h = 0.02;
            let [near, far] = [h, 2.0 * h].map(|h| value(h) - value(-h));
            let expected = 3.0 * (8.0 * near - far) / (12.0 * f64::from(h));
            let error = (f64::from(*found) - expected).abs();
            assert!(error < 1e-3 * f64::from(scale), "{k}, {i}: {found} {expected}");
        }
    }
}

#[test]
fn latents_and_anchors_against_central_differences() {
    assert_derivatives(by_latents);
}

#[test]
fn log_features_against_central_differences() {
    assert_derivatives(by_log_features);
}

#[test]
fn both_operations_are_one_divergence() {
    let (a, b) = (by_latents(&Parameters::new()).0, by_log_features(&Parameters::new()).0);
    assert!((a.value - b.value).abs() < 1e-5 * a.value, "{} {}", a.value, b.value);
    assert!((f64::from(list(a.tensor)[0]) - a.value).abs() < 1e-6);
}

/// All latents are as far from all anchors, along an axis that anchors do not have: kernels are `exp(-20000)` times what they
/// were, no number in either precision, and the divergence is what it was.
#[test]
fn latents_far_from_all_anchors_have_the_divergence_of_near_ones() {
    let with_axis = |values: &[f32], last: f32| -> Vec<f32> {
        values.chunks_exact(LATENT).flat_map(|v| [v[0], v[1], last]).collect()
    };
    let of = |last: f32| {
        let [x, y] = [numbers(20, 1.0), numbers(20, 2.0)]
            .map(|v| tensor(&with_axis(&v, last), LATENT + 1).require_grad());
        let anchors = with_axis(&numbers(RANK * LATENT, 3.0), 0.0);
        let anchors = tensor(&anchors, LATENT + 1).require_grad();
        let loss = of_latents(x.clone(), y, anchors.clone(), 0.8, solve()).unwrap();
        let gradients = loss.tensor.backward();
        (loss.value, [x, anchors].map(|leaf| list(leaf.grad(&gradients).unwrap())))
    };
    let ((near, near_gradients), (far, far_gradients)) = (of(0.0), of(60.0));
    assert!(near > 1e-3 && (near - far).abs() < 1e-6 * near, "{near} {far}");
    // But along that axis.
    for (near, far) in near_gradients.iter().zip(&far_gradients) {
        for (i, (near, far)) in near.iter().zip(far).enumerate() {
            assert!(i % 3 == 2 || (near - far).abs() < 1e-5, "{i}: {near} {far}");
        }
    }
}

#[test]
fn equal_batches_have_divergence_zero_and_no_gradient() {
    let x = tensor(&numbers(20, 1.0), LATENT).require_grad();
    let anchors = tensor(&numbers(RANK * LATENT, 3.0), LATENT);
    let loss = of_latents(x.clone(), x.clone(), anchors, 0.8, solve()).unwrap();
    assert!(loss.value.abs() < 1e-9, "{}", loss.value);
    let gradient = list(x.grad(&loss.tensor.backward()).unwrap());
    assert!(gradient.iter().all(|g| g.abs() < 1e-6), "{gradient:?}");
}

#[test]
fn bad_inputs_are_errors() {
    let (x, wide) = (tensor(&numbers(6, 1.0), 2), tensor(&numbers(6, 1.0), 3));
    let error = of_log_features(x.clone(), wide.clone(), solve()).unwrap_err();
    assert!(matches!(error, Error::Data(_)), "{error}");
    let error = of_latents(x.clone(), x.clone(), wide, 0.8, solve()).unwrap_err();
    assert!(error.to_string().contains("coordinates"), "{error}");
    let nan = tensor(&[f32::NAN, 0.0], 2);
    let error = of_log_features(x.clone(), nan.clone(), solve()).unwrap_err();
    assert!(matches!(error, Error::Divergence(_)), "{error}");
    let error = of_latents(x, nan, tensor(&[0.0, 0.0], 2), 0.8, solve()).unwrap_err();
    assert!(matches!(error, Error::Divergence(_)), "{error}");
}
