//! The paper's Table 1: the learned kernel on images and on noise.

use std::path::Path;

use burn::tensor::Device;
use rand::RngExt;
use serde::Serialize;

use crate::checkpoint;
use crate::config::{Config, Kind};
use crate::data::Images;
use crate::error::{Error, Result};
use crate::kernel::Rows;
use crate::loss::numbers;
use crate::network::Normalise;
use crate::random::{Purpose, stream};
use crate::train::{State, q};

/// Means of the learned kernel over all pairs of some images and as many images of noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Number of images, and of images of noise.
    pub count: usize,
    /// Images with images.
    pub image_image: Cell,
    /// Images with noise.
    pub image_noise: Cell,
    /// Noise with noise.
    pub noise_noise: Cell,
}

/// A mean of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cell {
    /// The mean; infinite where it is beyond the range of numbers.
    pub mean: f64,
    /// Its logarithm.
    pub log_mean: f64,
}

/// The table of a run's last checkpoint, for these images and as many whose pixels are independent and uniform on
/// `[-1, 1]`.
pub fn kernel_table(run: &Path, images: &Images, seed: u64) -> Result<Table> {
    let (config, state) = checkpoint::load(run)?;
    of_state(&config, &state, images, seed)
}

/// The same of a state.
pub(crate) fn of_state(
    config: &Config,
    state: &State,
    images: &Images,
    seed: u64,
) -> Result<Table> {
    let (is, should) = ((images.channels, images.side), (config.data.channels, config.data.side));
    if config.data.kind != Kind::Images || is != should || images.count == 0 {
        return Err(Error::Data(format!(
            "the run learned from images of {} channels and a side of {}; got {} of {} and {}",
            should.0, should.1, images.count, is.0, is.1
        )));
    }
    let mut rng = stream(seed, Purpose::Table, 0, 0);
    let noise: Vec<f32> =
        (0..images.pixels.len()).map(|_| rng.random_range(-1.0_f32..=1.0)).collect();
    let device = Device::flex();
    let leaves = state.embedding.leaves(&device, false);
    let latents = |pixels: &[f32]| {
        let input = state.embedding.tensor(pixels, &device);
        numbers(state.embedding.forward(&leaves, input, &mut Normalise::Running))
    };
    let (x, y) = (latents(&images.pixels), latents(&noise));
    let anchors = &state.anchors.values;
    let rows = Rows::Latents { x: &x, y: &y, dim: config.model.latent, anchors, q: q(config) };
    let cell = |log: f64| Cell { mean: log.exp(), log_mean: log };
    let [image_image, image_noise, noise_noise] =
        rows.log_mean_kernels(config.kernel.epsilon)?.map(cell);
    Ok(Table { count: images.count, image_image, image_noise, noise_noise })
}
