//! Checkpoints: all of the state of a run in one safetensors file, from which it goes on bit for bit.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::network::{Network, Weight};
use crate::optim::Stepper;
use crate::train::{Data, State, Trainer};

/// The settings of a run, in its folder.
const CONFIG: &str = "config.toml";
/// Its state.
const CHECKPOINT: &str = "checkpoint.safetensors";
/// Where the counters are in the file's metadata: one entry, so that equal states are equal files.
const KEY: &str = "orthant-gan";
/// The counters.
const COUNTERS: [&str; 4] = ["step", "batches", "critic.count", "generator.count"];

impl Trainer {
    /// Writes the run to its folder: a file each for settings and state, either complete or not at all.
    #[expect(clippy::missing_panics_doc, reason = "what is written was made here")]
    pub fn save(&self, run: &Path) -> Result<()> {
        std::fs::create_dir_all(run).map_err(|source| read_error(run, source))?;
        let text = self.config.to_toml();
        orthant_io::write_atomic(&run.join(CONFIG), |out| out.write_all(text.as_bytes()))?;
        let mut state = self.state.clone();
        let counters: BTreeMap<_, _> = COUNTERS.into_iter().zip(state.counters()).collect();
        let counters = serde_json::to_string(&counters).expect("names and numbers");
        let arrays = state.arrays();
        let view = |(name, shape, values): &(String, Vec<usize>, &mut Vec<f32>)| {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            (name.clone(), shape.clone(), bytes)
        };
        let arrays: Vec<_> = arrays.iter().map(view).collect();
        let views = arrays.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (name, view.expect("as many bytes as the shape has"))
        });
        let file = safetensors::serialize(views, Some(HashMap::from([(KEY.to_owned(), counters)])))
            .expect("names and shapes are those of arrays");
        orthant_io::write_atomic(&run.join(CHECKPOINT), |out| out.write_all(&file))?;
        Ok(())
    }

    /// A run from its last checkpoint, which goes on as if it had never stopped.
    pub fn resume(run: &Path, data: Data) -> Result<Self> {
        let (config, state) = load(run)?;
        Trainer::with_state(config, data, state)
    }
}

/// The settings and the state of a run.
pub(crate) fn load(run: &Path) -> Result<(Config, State)> {
    let config = Config::read(&run.join(CONFIG))?;
    let path = run.join(CHECKPOINT);
    let bytes = std::fs::read(&path).map_err(|source| read_error(&path, source))?;
    let mut state = State::new(&config);
    read(&mut state, &bytes)
        .map_err(|message| Error::Checkpoint { path: path.display().to_string(), message })?;
    Ok((config, state))
}

fn read_error(path: &Path, source: std::io::Error) -> Error {
    Error::Read { path: PathBuf::from(path).display().to_string(), source }
}

/// Fills a state that has the shapes of the settings.
fn read(state: &mut State, bytes: &[u8]) -> Result<(), String> {
    let damaged = |error| format!("not a complete safetensors file: {error}");
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let words = metadata.metadata().as_ref().and_then(|words| words.get(KEY));
    let words =
        words.ok_or("there are no counters of a run; is it the file of another program?")?;
    let counters: BTreeMap<String, u64> =
        serde_json::from_str(words).map_err(|error| format!("counters: {error}"))?;
    for (name, counter) in COUNTERS.into_iter().zip(state.counters()) {
        *counter = *counters.get(name).ok_or_else(|| format!("there is no counter \"{name}\""))?;
    }
    let mut arrays = state.arrays();
    if let Some(name) = file.names().into_iter().find(|n| arrays.iter().all(|(own, ..)| own != n)) {
        return Err(format!(
            "array \"{name}\" is not one of the networks in {CONFIG}; was that changed?"
        ));
    }
    for (name, shape, values) in &mut arrays {
        let view = file.tensor(name).map_err(|_| {
            format!("no array \"{name}\", which the networks in {CONFIG} have; was that changed?")
        })?;
        if view.shape() != shape || view.dtype() != Dtype::F32 {
            return Err(format!(
                "array \"{name}\" is {:?}, and the networks in {CONFIG} need {shape:?}; was that changed?",
                view.shape()
            ));
        }
        let numbers = view.data().chunks_exact(4);
        **values = numbers.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    }
    Ok(())
}

/// A name, a shape and numbers.
type Array<'s> = (String, Vec<usize>, &'s mut Vec<f32>);

impl State {
    /// As [`COUNTERS`].
    fn counters(&mut self) -> [&mut u64; 4] {
        [
            &mut self.step,
            &mut self.batches,
            &mut self.critic_stepper.count,
            &mut self.generator_stepper.count,
        ]
    }

    /// All numbers of the state.
    fn arrays(&mut self) -> Vec<Array<'_>> {
        let mut arrays = Vec::new();
        network("embedding", &mut self.embedding, &mut arrays);
        network("generator", &mut self.generator, &mut arrays);
        weights("average", &mut self.average, &mut arrays);
        weights("kernel", std::slice::from_mut(&mut self.anchors), &mut arrays);
        stepper("critic", &mut self.critic_stepper, &mut arrays);
        stepper("generator", &mut self.generator_stepper, &mut arrays);
        arrays
    }
}

fn weights<'s>(prefix: &str, weights: &'s mut [Weight], arrays: &mut Vec<Array<'s>>) {
    for Weight { name, shape, values } in weights {
        arrays.push((format!("{prefix}.{name}"), shape.clone(), values));
    }
}

fn network<'s>(prefix: &str, network: &'s mut Network, arrays: &mut Vec<Array<'s>>) {
    weights(prefix, &mut network.weights, arrays);
    for running in &mut network.running {
        let name = format!("{prefix}.{}", running.name);
        let shape = vec![running.mean.len()];
        arrays.push((format!("{name}.running_mean"), shape.clone(), &mut running.mean));
        arrays.push((format!("{name}.running_variance"), shape, &mut running.variance));
    }
}

fn stepper<'s>(prefix: &str, stepper: &'s mut Stepper, arrays: &mut Vec<Array<'s>>) {
    for (i, moments) in stepper.moments.iter_mut().enumerate() {
        for (what, values) in ["first", "second"].into_iter().zip(moments) {
            // RMSprop has no first one.
            if !values.is_empty() {
                arrays.push((format!("{prefix}.optimiser.{i}.{what}"), vec![values.len()], values));
            }
        }
    }
}
