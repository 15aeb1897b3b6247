//! The networks: layers over weights that are plain numbers, so that optimisers and checkpoints are simple and exact.
//!
//! Images pass through as `n x channels x height x width`, points as images of one pixel.

use burn::Tensor;
use burn::tensor::activation::{leaky_relu, relu, tanh};
use burn::tensor::module::{batch_norm, batch_norm_train, conv_transpose2d, conv2d};
use burn::tensor::ops::{ConvOptions, ConvTransposeOptions};
use burn::tensor::{Device, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::config::{Bound, Config, Kind, Norm};
use crate::loss::numbers;
use crate::random::normals;

/// Added to variances.
const EPSILON: f64 = 1e-5;
/// What a batch counts in running statistics.
const MOMENTUM: f32 = 0.1;
/// Slope of leaky rectifiers, as in DCGAN.
const SLOPE: f64 = 0.2;

/// An array that is trained.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weight {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// Running mean and variance of the channels of a batch norm.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Running {
    pub(crate) name: String,
    pub(crate) mean: Vec<f32>,
    pub(crate) variance: Vec<f32>,
}

/// Channels, height and width.
type Size = [usize; 3];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Layer {
    /// 4x4 convolution of stride 2: half the side.
    Down {
        bias: bool,
    },
    /// 4x4 transposed convolution of stride 2: twice the side.
    Up {
        bias: bool,
    },
    /// From all to all: the 4x4 convolution of a 4x4 image, the transposed one of a pixel, and layers of perceptrons.
    Dense {
        bias: bool,
        to: Size,
    },
    BatchNorm,
    LeakyRelu,
    Relu,
    Tanh,
    /// Latents on a sphere, or in a box, of this radius.
    Sphere(f64),
    Box(f64),
}

/// A network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Network {
    layers: Vec<Layer>,
    pub(crate) weights: Vec<Weight>,
    pub(crate) running: Vec<Running>,
    input: Size,
    output: Size,
}

/// What batch norms normalise with.
#[derive(Debug)]
pub(crate) enum Normalise<'a> {
    /// The statistics of the batch, added to these.
    Batch(Option<&'a mut Statistics>),
    /// Running statistics.
    Running,
}

/// Means over slices of the statistics of all batch norms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Statistics {
    layers: Vec<[Vec<f32>; 2]>,
    count: f32,
}

impl Statistics {
    /// Rows that were seen.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> f32 {
        self.count
    }

    /// Adds those of one slice at a batch norm, `[mean, variance]`.
    fn add(&mut self, layer: usize, rows: f32, of: [Vec<f32>; 2]) {
        if layer == 0 {
            self.count += rows;
        }
        match self.layers.get_mut(layer) {
            Some(sums) => {
                for (sums, of) in sums.iter_mut().zip(of) {
                    sums.iter_mut().zip(of).for_each(|(s, v)| *s += (v - *s) * rows / self.count);
                }
            }
            None => self.layers.push(of),
        }
    }
}

/// Makes the layers of a network one by one.
struct Builder<'r> {
    network: Network,
    rng: &'r mut ChaCha8Rng,
    deviation: Deviation,
}

/// The deviation of weights at the start.
#[derive(Clone, Copy)]
enum Deviation {
    /// As in DCGAN.
    Fixed(f32),
    /// `sqrt(2 / inputs)`, which keeps the scale of what passes through rectifiers.
    He,
}

impl<'r> Builder<'r> {
    fn new(input: Size, rng: &'r mut ChaCha8Rng, deviation: Deviation) -> Self {
        let network =
            Network { layers: vec![], weights: vec![], running: vec![], input, output: input };
        Builder { network, rng, deviation }
    }

    fn weight(&mut self, what: &str, shape: &[usize], inputs: usize) {
        let name = format!("{}.{what}", self.network.layers.len());
        let deviation = match self.deviation {
            Deviation::Fixed(deviation) => deviation,
            Deviation::He => (2.0 / inputs as f32).sqrt(),
        };
        let values = normals(self.rng, shape.iter().product());
        let values = values.into_iter().map(|z| deviation * z).collect();
        self.network.weights.push(Weight { name, shape: shape.to_vec(), values });
    }

    fn constant(&mut self, what: &str, count: usize, value: f32) {
        let name = format!("{}.{what}", self.network.layers.len());
        self.network.weights.push(Weight { name, shape: vec![count], values: vec![value; count] });
    }

    fn down(&mut self, to: usize, bias: bool) {
        let [from, height, width] = self.network.output;
        self.weight("weight", &[to, from, 4, 4], 16 * from);
        if bias {
            self.constant("bias", to, 0.0);
        }
        self.network.layers.push(Layer::Down { bias });
        self.network.output = [to, height / 2, width / 2];
    }

    fn up(&mut self, to: usize, bias: bool) {
        let [from, height, width] = self.network.output;
        self.weight("weight", &[from, to, 4, 4], 4 * from);
        if bias {
            self.constant("bias", to, 0.0);
        }
        self.network.layers.push(Layer::Up { bias });
        self.network.output = [to, 2 * height, 2 * width];
    }

    fn dense(&mut self, to: Size, bias: bool) {
        let from = self.network.output.iter().product();
        let units = to.iter().product();
        self.weight("weight", &[from, units], from);
        if bias {
            self.constant("bias", units, 0.0);
        }
        self.network.layers.push(Layer::Dense { bias, to });
        self.network.output = to;
    }

    fn batch_norm(&mut self) {
        let channels = self.network.output[0];
        self.constant("scale", channels, 1.0);
        self.constant("shift", channels, 0.0);
        let name = self.network.layers.len().to_string();
        let (mean, variance) = (vec![0.0; channels], vec![1.0; channels]);
        self.network.running.push(Running { name, mean, variance });
        self.network.layers.push(Layer::BatchNorm);
    }

    fn then(&mut self, layer: Layer) {
        self.network.layers.push(layer);
    }
}

impl Network {
    /// The embedding of the settings, with random weights.
    pub(crate) fn embedding(config: &Config, rng: &mut ChaCha8Rng) -> Self {
        let model = &config.model;
        let mut builder = match config.data.kind {
            Kind::Images => {
                let size = [config.data.channels, config.data.side, config.data.side];
                let deviation = match model.norm {
                    Norm::Batch => Deviation::Fixed(0.02),
                    Norm::None => Deviation::He,
                };
                let mut builder = Builder::new(size, rng, deviation);
                let mut channels = model.width;
                while builder.network.output[1] > 4 {
                    // The first has no batch norm, as in DCGAN.
                    let norm = model.norm == Norm::Batch && channels > model.width;
                    builder.down(channels, !norm);
                    if norm {
                        builder.batch_norm();
                    }
                    builder.then(Layer::LeakyRelu);
                    channels *= 2;
                }
                builder
            }
            Kind::Ring => {
                let mut builder = Builder::new([2, 1, 1], rng, Deviation::He);
                for _ in 0..2 {
                    builder.dense([model.width, 1, 1], true);
                    builder.then(Layer::LeakyRelu);
                }
                builder
            }
        };
        builder.dense([model.latent, 1, 1], true);
        match model.bound {
            Bound::None => {}
            Bound::Tanh => builder.then(Layer::Box(model.radius)),
            Bound::Sphere => builder.then(Layer::Sphere(model.radius)),
        }
        builder.network
    }

    /// The generator of the settings, with random weights.
    pub(crate) fn generator(config: &Config, rng: &mut ChaCha8Rng) -> Self {
        let model = &config.model;
        let noise = [model.noise, 1, 1];
        match config.data.kind {
            Kind::Images => {
                let mut builder = Builder::new(noise, rng, Deviation::Fixed(0.02));
                // As many as the last convolution of the embedding makes.
                let mut channels = model.width * config.data.side / 8;
                builder.dense([channels, 4, 4], false);
                builder.batch_norm();
                builder.then(Layer::Relu);
                while channels > model.width {
                    channels /= 2;
                    builder.up(channels, false);
                    builder.batch_norm();
                    builder.then(Layer::Relu);
                }
                builder.up(config.data.channels, true);
                builder.then(Layer::Tanh);
                builder.network
            }
            Kind::Ring => {
                let mut builder = Builder::new(noise, rng, Deviation::He);
                // Deep, for samples that jump from one Gaussian to the next.
                for _ in 0..4 {
                    builder.dense([model.width, 1, 1], true);
                    builder.then(Layer::Relu);
                }
                builder.dense([2, 1, 1], true);
                builder.network
            }
        }
    }

    /// Numbers of an input.
    pub(crate) fn input(&self) -> usize {
        self.input.iter().product()
    }

    /// Numbers of an output.
    pub(crate) fn output(&self) -> usize {
        self.output.iter().product()
    }

    /// The weights as tensors; on a device with autodiff gradients reach them if they should be `trained`.
    pub(crate) fn leaves(&self, device: &Device, trained: bool) -> Vec<Tensor<1>> {
        let leaf = |weight: &Weight| {
            let data = TensorData::new(weight.values.clone(), [weight.values.len()]);
            let tensor = Tensor::from_data(data, device);
            if trained { tensor.require_grad() } else { tensor }
        };
        self.weights.iter().map(leaf).collect()
    }

    /// Rows of inputs as a tensor.
    pub(crate) fn tensor(&self, rows: &[f32], device: &Device) -> Tensor<4> {
        let [channels, height, width] = self.input;
        let shape = [rows.len() / self.input(), channels, height, width];
        Tensor::from_data(TensorData::new(rows.to_vec(), shape), device)
    }

    /// What the network makes of its input.
    pub(crate) fn forward(
        &self,
        leaves: &[Tensor<1>],
        input: Tensor<4>,
        normalise: &mut Normalise<'_>,
    ) -> Tensor<4> {
        let rows = input.dims()[0];
        let mut leaves = leaves.iter().zip(&self.weights);
        let mut next = || leaves.next().expect("a leaf for each weight");
        let mut norms = self.running.iter().enumerate();
        let mut x = input;
        for layer in &self.layers {
            x = match *layer {
                Layer::Down { bias } => {
                    let weight = convolution(next());
                    let bias = bias.then(|| next().0.clone());
                    conv2d(x, weight, bias, ConvOptions::new([2, 2], [1, 1], [1, 1], 1))
                }
                Layer::Up { bias } => {
                    let weight = convolution(next());
                    let bias = bias.then(|| next().0.clone());
                    let options = ConvTransposeOptions::new([2, 2], [1, 1], [0, 0], [1, 1], 1);
                    conv_transpose2d(x, weight, bias, options)
                }
                Layer::Dense { bias, to: [channels, height, width] } => {
                    let (weight, Weight { shape, .. }) = next();
                    let weight = weight.clone().reshape([shape[0], shape[1]]);
                    let mut y = x.reshape([rows, shape[0]]).matmul(weight);
                    if bias {
                        y = y + next().0.clone().unsqueeze::<2>();
                    }
                    y.reshape([rows, channels, height, width])
                }
                Layer::BatchNorm => {
                    let (scale, shift) = (next().0.clone(), next().0.clone());
                    let (number, running) = norms.next().expect("statistics of each batch norm");
                    match normalise {
                        Normalise::Batch(statistics) => {
                            let of = batch_norm_train(x, scale, shift, EPSILON);
                            if let Some(statistics) = statistics {
                                let both = [numbers(of.mean), numbers(of.variance)];
                                statistics.add(number, rows as f32, both);
                            }
                            of.output
                        }
                        Normalise::Running => {
                            let device = x.device();
                            let tensor = |values: &[f32]| {
                                Tensor::from_data(
                                    TensorData::new(values.to_vec(), [values.len()]),
                                    &device,
                                )
                            };
                            let (mean, variance) =
                                (tensor(&running.mean), tensor(&running.variance));
                            batch_norm(x, scale, shift, mean, variance, EPSILON)
                        }
                    }
                }
                Layer::LeakyRelu => leaky_relu(x, SLOPE),
                Layer::Relu => relu(x),
                Layer::Tanh => tanh(x),
                Layer::Sphere(radius) => {
                    let norm = (x.clone() * x.clone()).sum_dim(1).add_scalar(1e-12).sqrt();
                    (x / norm).mul_scalar(radius)
                }
                Layer::Box(radius) => {
                    let half = radius / (self.output() as f64).sqrt();
                    tanh(x).mul_scalar(half)
                }
            };
        }
        x
    }

    /// Moves the running statistics toward those of a batch.
    pub(crate) fn update_running(&mut self, batch: &Statistics) {
        for (running, [mean, variance]) in self.running.iter_mut().zip(&batch.layers) {
            for (running, batch) in [(&mut running.mean, mean), (&mut running.variance, variance)] {
                running.iter_mut().zip(batch).for_each(|(r, b)| *r += MOMENTUM * (b - *r));
            }
        }
    }

    /// Takes statistics as the running ones.
    pub(crate) fn set_running(&mut self, statistics: Statistics) {
        for (running, [mean, variance]) in self.running.iter_mut().zip(statistics.layers) {
            (running.mean, running.variance) = (mean, variance);
        }
    }
}

fn convolution((leaf, weight): (&Tensor<1>, &Weight)) -> Tensor<4> {
    let [a, b, c, d] = weight.shape[..] else { unreachable!("convolutions have four axes") };
    leaf.clone().reshape([a, b, c, d])
}
