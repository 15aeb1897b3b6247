//! What a run is made from, as TOML; every bad value is an error that names its key.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The settings of a run.
///
/// ```
/// let config = orthant_gan::Config::parse("ring.toml", "[data]\nkind = \"ring\"\n[training]\nbatch = 100\n")?;
/// assert_eq!((config.kernel.rank, config.kernel.epsilon), (600, 1.0));
/// let error = orthant_gan::Config::parse("bad.toml", "[data]\nkind = \"ring\"\n[kernel]\nepsilon = -1.0\n");
/// assert!(error.unwrap_err().to_string().contains("kernel.epsilon"));
/// # Ok::<(), orthant_gan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What is learned from.
    pub data: Source,
    /// The two networks.
    #[serde(default)]
    pub model: Model,
    /// The learned kernel on the latents.
    #[serde(default)]
    pub kernel: Kernel,
    /// How the embedding and the anchors are trained.
    #[serde(default)]
    pub critic: Critic,
    /// How the generator is trained.
    #[serde(default)]
    pub generator: Player,
    /// Batches and steps.
    #[serde(default)]
    pub training: Training,
}

/// What is learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Images, or a toy that needs no files.
    pub kind: Kind,
    /// 1 or 3.
    #[serde(default = "one")]
    pub channels: usize,
    /// Height and width of the images that the networks see: 16, 32 or 64.
    #[serde(default = "thirty_two")]
    pub side: usize,
    /// Side of the centre crop that is taken before resizing; for folders of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crop: Option<usize>,
    /// The part that is held out where the data has no test part of its own.
    #[serde(default = "tenth")]
    pub held_out: f64,
}

fn one() -> usize {
    1
}

fn thirty_two() -> usize {
    32
}

fn tenth() -> f64 {
    0.1
}

/// Images, or a toy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Images from files, and the DCGAN pair.
    Images,
    /// Eight Gaussians on a ring in the plane, and a pair of small perceptrons.
    Ring,
}

/// The two networks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Model {
    /// Channels of the first layer of the embedding and of the last of the generator, each of the other layers has
    /// twice as many as its neighbour; units of the hidden layers for points.
    pub width: usize,
    /// Coordinates of an embedded image.
    pub latent: usize,
    /// Coordinates of what the generator makes an image from.
    pub noise: usize,
    /// Where latents may be.
    pub bound: Bound,
    /// Radius of the ball or sphere of latents, if there is one.
    pub radius: f64,
    /// What follows the inner convolutions of the embedding.
    pub norm: Norm,
}

impl Default for Model {
    fn default() -> Self {
        let (bound, norm) = (Bound::None, Norm::Batch);
        Model { width: 64, latent: 64, noise: 64, bound, radius: 1.0, norm }
    }
}

/// Where latents may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Anywhere, as in the paper: weights are clipped instead.
    None,
    /// Each coordinate through `tanh`, in a box whose corners are at the radius.
    Tanh,
    /// On the sphere.
    Sphere,
}

/// What follows the inner convolutions of the embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// Batch norm, as in DCGAN.
    Batch,
    /// Nothing.
    None,
}

/// The learned kernel on the latents: Lemma 1's features with trained anchors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kernel {
    /// Number of features.
    pub rank: usize,
    /// Regularisation, and the width of the kernel.
    pub epsilon: f64,
    /// The radius from which the paper's formula has `q`.
    pub radius: f64,
    /// Where anchors begin.
    pub anchors: Anchors,
    /// L1 error of the marginals at which Sinkhorn stops.
    pub tolerance: f64,
    /// Iterations after which it stops anyway.
    pub max_iterations: usize,
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel {
            rank: 600,
            epsilon: 1.0,
            radius: 1.0,
            anchors: Anchors::Lemma,
            tolerance: 1e-5,
            max_iterations: 1000,
        }
    }
}

/// Where anchors begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Anchors {
    /// Drawn as in Lemma 1, from `N(0, q eps / 4)`.
    Lemma,
    /// At latents, one half of data and one half of samples: where the kernel is needed.
    Latents,
}

/// How a network is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Player {
    /// The rule of its steps.
    pub optimiser: Optimiser,
    /// Their size.
    pub rate: f64,
    /// Memory of the mean gradient; Adam only.
    pub beta1: f64,
    /// Memory of the mean squared gradient.
    pub beta2: f64,
    /// Memory of the average of its weights that samples are made with; 0 for none. Generator only.
    pub average: f64,
}

impl Default for Player {
    fn default() -> Self {
        let optimiser = Optimiser::RmsProp;
        Player { optimiser, rate: 5e-5, beta1: 0.5, beta2: 0.99, average: 0.0 }
    }
}

/// The rule of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimiser {
    /// As in the paper.
    RmsProp,
    /// With bias correction.
    Adam,
}

/// How the embedding and the anchors are trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Critic {
    /// The rule of its steps.
    pub optimiser: Optimiser,
    /// Their size.
    pub rate: f64,
    /// Memory of the mean gradient; Adam only.
    pub beta1: f64,
    /// Memory of the mean squared gradient.
    pub beta2: f64,
    /// The step size of the anchors; that of the embedding unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor_rate: Option<f64>,
    /// The weights of the embedding are clipped to plus and minus this; anchors never are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// The matrices of the embedding are kept at a spectral norm of at most this; better than clipping, with
    /// `model.norm = "none"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spectral: Option<f64>,
    /// What the critic pays for the squared distance of the mean latent from the mean anchor. Latents that drift away
    /// from all anchors come to see one of them alone, and then every divergence is zero.
    pub centre: f64,
    /// Steps for each of the generator.
    pub steps: usize,
    /// The same for the first steps of the generator.
    pub warm_up_steps: usize,
    /// The number of steps of the generator that are such.
    pub warm_up: u64,
    /// After the warm-up, every so many steps of the generator have as many critic steps as those of the warm-up; 0 for
    /// never.
    pub warm_up_every: u64,
}

impl Default for Critic {
    fn default() -> Self {
        Critic {
            optimiser: Optimiser::RmsProp,
            rate: 5e-5,
            beta1: 0.5,
            beta2: 0.99,
            anchor_rate: None,
            clip: None,
            spectral: None,
            centre: 0.0,
            steps: 5,
            warm_up_steps: 5,
            warm_up: 0,
            warm_up_every: 0,
        }
    }
}

/// Batches and steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Training {
    /// Steps of the generator.
    pub steps: u64,
    /// Images, and as many samples, that a divergence sees.
    pub batch: usize,
    /// How many of them a network sees at once; all unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<usize>,
    /// The part of the steps, at the end, over which all rates fall to zero.
    pub decay: f64,
    /// What everything random is derived from.
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Training { steps: 10_000, batch: 7000, slice: None, decay: 0.0, seed: 0 }
    }
}

impl Config {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Read { path: place.clone(), source })?;
        Config::parse(&place, &text)
    }

    /// The same of a text; `place` is where errors say that it is from.
    pub fn parse(place: &str, text: &str) -> Result<Self> {
        let error = |message| Error::Config { place: place.to_owned(), message };
        let config: Config = toml::from_str(text).map_err(|bad| {
            let before = bad.span().map_or("", |span| text.get(..span.start).unwrap_or(text));
            let line = 1 + before.matches('\n').count();
            error(format!("line {line}: {}", bad.message().replace('\n', " ")))
        })?;
        config.check().map_err(error)?;
        Ok(config)
    }

    /// As TOML.
    #[expect(clippy::missing_panics_doc, reason = "tables with string keys can be written")]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("tables with string keys")
    }

    /// The images or points that a network sees at once.
    pub fn slice(&self) -> usize {
        self.training.slice.unwrap_or(self.training.batch).min(self.training.batch)
    }

    /// What no run can be made from, in words that begin with the key.
    pub fn check(&self) -> Result<(), String> {
        let Config { data, model, kernel, critic, generator, training } = self;
        if data.kind == Kind::Images {
            one_of("data.channels", data.channels, &[1, 3])?;
            one_of("data.side", data.side, &[16, 32, 64])?;
        }
        if data.crop == Some(0) {
            return Err("data.crop must be at least 1, got 0".into());
        }
        inside("data.held_out", data.held_out, 0.0, 1.0)?;
        if !(critic.centre >= 0.0 && critic.centre.is_finite()) {
            return Err(format!("critic.centre must not be negative, got {}", critic.centre));
        }
        if !(0.0..=1.0).contains(&training.decay) {
            return Err(format!("training.decay must be from 0 to 1, got {}", training.decay));
        }
        for (key, count) in [
            ("model.width", model.width),
            ("model.latent", model.latent),
            ("model.noise", model.noise),
            ("kernel.rank", kernel.rank),
            ("kernel.max_iterations", kernel.max_iterations),
            ("critic.steps", critic.steps),
            ("critic.warm_up_steps", critic.warm_up_steps),
            ("training.slice", training.slice.unwrap_or(1)),
        ] {
            if count == 0 {
                return Err(format!("{key} must be at least 1, got 0"));
            }
        }
        if training.batch < 2 {
            return Err(format!("training.batch must be at least 2, got {}", training.batch));
        }
        if training.batch % self.slice() == 1 || self.slice() == 1 {
            return Err(format!(
                "training.slice must not leave a slice of one image, which has no batch statistics; got {} of a \
                 batch of {}",
                self.slice(),
                training.batch
            ));
        }
        for (key, value) in [
            ("model.radius", model.radius),
            ("kernel.epsilon", kernel.epsilon),
            ("kernel.radius", kernel.radius),
            ("kernel.tolerance", kernel.tolerance),
            ("critic.rate", critic.rate),
            ("critic.anchor_rate", critic.anchor_rate.unwrap_or(1.0)),
            ("critic.clip", critic.clip.unwrap_or(1.0)),
            ("critic.spectral", critic.spectral.unwrap_or(1.0)),
            ("generator.rate", generator.rate),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(format!("{key} must be positive and finite, got {value}"));
            }
        }
        for (key, value) in [
            ("critic.beta1", critic.beta1),
            ("critic.beta2", critic.beta2),
            ("generator.beta1", generator.beta1),
            ("generator.beta2", generator.beta2),
            ("generator.average", generator.average),
        ] {
            inside(key, value, 0.0, 1.0)?;
        }
        Ok(())
    }
}

fn one_of(key: &str, value: usize, allowed: &[usize]) -> Result<(), String> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    Err(format!("{key} must be one of {}, got {value}", allowed.join(", ")))
}

fn inside(key: &str, value: f64, low: f64, high: f64) -> Result<(), String> {
    if (low..high).contains(&value) {
        return Ok(());
    }
    Err(format!("{key} must be at least {low} and below {high}, got {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table and a line of it that is wrong, for every key.
    const BAD: [(&str, &str); 32] = [
        ("data", "channels = 2"),
        ("data", "side = 28"),
        ("data", "crop = 0"),
        ("data", "held_out = 1.0"),
        ("model", "width = 0"),
        ("model", "latent = 0"),
        ("model", "noise = 0"),
        ("model", "radius = 0.0"),
        ("kernel", "rank = 0"),
        ("kernel", "epsilon = -1.0"),
        ("kernel", "epsilon = nan"),
        ("kernel", "radius = inf"),
        ("kernel", "tolerance = 0.0"),
        ("kernel", "max_iterations = 0"),
        ("critic", "rate = -1e-3"),
        ("critic", "anchor_rate = 0.0"),
        ("critic", "clip = -0.01"),
        ("critic", "spectral = 0.0"),
        ("critic", "centre = -1.0"),
        ("critic", "steps = 0"),
        ("critic", "warm_up_steps = 0"),
        ("critic", "beta1 = 1.0"),
        ("critic", "beta2 = -0.1"),
        ("generator", "rate = 0.0"),
        ("generator", "beta1 = 2.0"),
        ("generator", "beta2 = 1.0"),
        ("generator", "average = 1.0"),
        ("training", "batch = 1"),
        ("training", "slice = 0"),
        ("training", "slice = 1"),
        ("training", "slice = 6999"),
        ("training", "decay = 1.5"),
    ];

    #[test]
    fn every_bad_value_is_an_error_that_names_its_key() {
        for (table, line) in BAD {
            let kind = "kind = \"images\"";
            let text = match table {
                "data" => format!("[data]\n{kind}\n{line}\n"),
                _ => format!("[data]\n{kind}\n[{table}]\n{line}\n"),
            };
            let error = Config::parse("run.toml", &text).unwrap_err().to_string();
            let key = format!("{table}.{}", line.split(' ').next().unwrap());
            assert!(error.starts_with("run.toml: ") && error.contains(&key), "{line}: {error}");
        }
    }

    #[test]
    fn unknown_keys_and_words_are_errors_with_a_line() {
        for (text, word) in [
            ("[data]\nkind = \"ring\"\nsize = 3\n", "size"),
            ("[data]\nkind = \"rings\"\n", "rings"),
            ("[data]\nkind = \"ring\"\n[critic]\noptimiser = \"sgd\"\n", "sgd"),
            ("[data]\nkind = \"ring\"\n[kernel]\nanchors = \"grid\"\n", "grid"),
        ] {
            let error = Config::parse("run.toml", text).unwrap_err().to_string();
            assert!(error.starts_with("run.toml: line ") && error.contains(word), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(Config::parse("run.toml", "").unwrap_err().to_string().contains("data"));
    }

    #[test]
    fn a_written_config_reads_as_the_same() {
        let text =
            "[data]\nkind = \"images\"\ncrop = 178\n[critic]\nclip = 0.01\nanchor_rate = 1e-3\n";
        let config = Config::parse("a", text).unwrap();
        assert_eq!(Config::parse("b", &config.to_toml()).unwrap(), config);
    }
}
