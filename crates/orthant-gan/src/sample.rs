//! Samples of a generator.

use std::path::Path;

use burn::tensor::Device;

use crate::checkpoint;
use crate::config::{Config, Kind};
use crate::data::Images;
use crate::error::{Error, Result};
use crate::loss::numbers;
use crate::network::{Network, Normalise, Statistics};
use crate::random::{Purpose, normals, stream};
use crate::train::State;

/// Samples that are made at once.
const AT_ONCE: usize = 256;
/// How often as many are drawn to find the statistics of batch norms.
const CALIBRATIONS: u64 = 8;

/// A generator that is done learning, or done so far.
#[derive(Debug)]
pub struct Generator {
    network: Network,
    kind: Kind,
    channels: usize,
    side: usize,
    steps: u64,
}

/// The generator of a run's last checkpoint.
pub fn load_generator(run: &Path) -> Result<Generator> {
    let (config, state) = checkpoint::load(run)?;
    Ok(Generator::of(&config, &state))
}

impl Generator {
    /// With averaged weights. Batch norms have the statistics of these weights, which nothing in training has seen:
    /// they are found here, from noise that is always the same, so that a sample depends on its seed alone.
    pub(crate) fn of(config: &Config, state: &State) -> Self {
        let mut network = state.generator.clone();
        network.weights.clone_from(&state.average);
        if !network.running.is_empty() {
            let device = Device::flex();
            let (leaves, mut statistics) = (network.leaves(&device, false), Statistics::default());
            for part in 0..CALIBRATIONS {
                let mut rng = stream(config.training.seed, Purpose::Calibration, 0, part);
                let noise = normals(&mut rng, AT_ONCE * network.input());
                let noise = network.tensor(&noise, &device);
                network.forward(&leaves, noise, &mut Normalise::Batch(Some(&mut statistics)));
            }
            network.set_running(statistics);
        }
        let (kind, channels, side) = (config.data.kind, config.data.channels, config.data.side);
        Generator { network, kind, channels, side, steps: state.step }
    }

    /// The generator that a run of these settings begins with.
    pub fn untrained(config: &Config) -> Result<Self> {
        config.check().map_err(|message| Error::Config { place: "config".into(), message })?;
        Ok(Generator::of(config, &State::new(config)))
    }

    /// Steps that it was trained for.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Images: the same for the same seed, and the first ones do not depend on how many there are.
    pub fn sample(&self, count: usize, seed: u64) -> Result<Images> {
        if self.kind != Kind::Images {
            return Err(Error::Data("this run makes points of the plane, not images".into()));
        }
        let pixels = self.rows(count, seed);
        Images::new(self.channels, self.side, pixels).map_err(|e| Error::Data(e.to_string()))
    }

    /// Points of the plane, for the ring.
    pub fn points(&self, count: usize, seed: u64) -> Result<Vec<[f32; 2]>> {
        if self.kind != Kind::Ring {
            return Err(Error::Data("this run makes images, not points of the plane".into()));
        }
        Ok(self.rows(count, seed).chunks_exact(2).map(|p| [p[0], p[1]]).collect())
    }

    fn rows(&self, count: usize, seed: u64) -> Vec<f32> {
        let device = Device::flex();
        let leaves = self.network.leaves(&device, false);
        let noise =
            normals(&mut stream(seed, Purpose::Samples, 0, 0), count * self.network.input());
        let slice = |noise: &[f32]| {
            let noise = self.network.tensor(noise, &device);
            numbers(self.network.forward(&leaves, noise, &mut Normalise::Running))
        };
        noise.chunks(AT_ONCE * self.network.input()).flat_map(slice).collect()
    }
}
