//! The folder of a run, and the images that belong to it.

use std::path::{Path, PathBuf};

use orthant_gan::Config;
use orthant_gan::config::Kind;
use orthant_gan::data::{self, Split};
use orthant_support::Failure;
use orthant_support::progress::ticking;

/// Where the parts of a run are.
#[derive(Debug, Clone)]
pub(crate) struct Run(PathBuf);

impl Run {
    pub(crate) fn at(folder: &Path) -> Self {
        Run(folder.to_owned())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.0.join("checkpoint.safetensors")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("log.jsonl")
    }

    pub(crate) fn samples(&self) -> PathBuf {
        self.0.join("samples")
    }

    /// The settings of a run that must be there.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let shown = self.0.display();
        if !self.0.is_dir() {
            return Err(Failure::input(format!(
                "{shown}: no such run; make one with orthant-gan train --out {shown}"
            )));
        }
        let config = self.0.join("config.toml");
        if !config.exists() || !self.checkpoint().exists() {
            let missing = if config.exists() { "checkpoint.safetensors" } else { "config.toml" };
            return Err(Failure::input(format!(
                "{shown}: not a run, there is no {missing}; give the folder that train --out made"
            )));
        }
        Ok(Config::read(&config)?)
    }
}

/// Reads the images that a run is about.
pub(crate) fn load(folder: &Path, config: &Config) -> Result<Split, Failure> {
    let source = &config.data;
    let options = data::Options {
        channels: source.channels,
        side: source.side,
        crop: source.crop,
        held_out: source.held_out,
    };
    let bar = ticking(0, "reading images [{bar:30}] {pos} of {len}, {eta} left");
    let split = data::load_with(folder, &options, &|done, all| {
        // A lock a thousand times a second would cost more than it shows.
        if done.is_multiple_of(64) || done == all {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        }
    });
    bar.finish_and_clear();
    Ok(split?)
}

/// The folder of images that a command needs, or none for the ring.
pub(crate) fn folder_for<'a>(
    config: &Config,
    data: Option<&'a Path>,
) -> Result<Option<&'a Path>, Failure> {
    match (config.data.kind, data) {
        (Kind::Images, None) => Err(Failure::input(
            "data.kind is \"images\", and there are none; name their folder with --data DIR",
        )),
        (Kind::Ring, Some(folder)) => Err(Failure::input(format!(
            "data.kind is \"ring\", which needs no files; leave out --data {}",
            folder.display()
        ))),
        (_, data) => Ok(data),
    }
}
