//! Training: steps of the critic up the divergence, then one of the generator down.

use serde::Serialize;

use crate::config::{Anchors, Config, Critic, Kind, Training};
use crate::data::{Pictures, batch_indices};
use crate::error::{Error, Result};
use crate::kernel::{Rows, Solve};
use crate::network::{Network, Statistics, Weight};
use crate::optim::Stepper;
use crate::passes::{CriticPass, Game, GeneratorPass};
use crate::random::{Purpose, normals, stream};
use crate::ring;
use crate::sample::Generator;
use crate::spectral::project;

/// What is learned from.
#[derive(Debug)]
pub enum Data {
    /// Images.
    Images(Pictures),
    /// Eight Gaussians on a ring, drawn afresh for each batch.
    Ring,
}

impl Data {
    /// A batch by its number, row by row.
    fn batch(&self, size: usize, number: u64, seed: u64) -> Vec<f32> {
        match self {
            Data::Images(images) => {
                images.batch(&batch_indices(images.len(), size, number, seed)).pixels
            }
            Data::Ring => ring::draw(size, seed, number),
        }
    }
}

/// The number of the batch that anchors may begin at: one that training does not come to.
const FIRST_LATENTS: u64 = 1 << 32;

/// What a step found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Steps of the generator that are done, this one included.
    pub step: u64,
    /// The divergence of the generator's batch, under the kernel of this step.
    pub divergence: f64,
    /// That of the critic's last batch, before its last step.
    pub critic_divergence: f64,
    /// The kernel on the generator's batch.
    pub kernel: KernelStats,
    /// Real images that were seen in this step.
    pub images: u64,
    /// Sinkhorn iterations of all divergences of this step.
    pub iterations: usize,
}

/// Logarithms of the mean of the learned kernel over all pairs of two batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KernelStats {
    /// Real images with each other.
    pub real_real: f64,
    /// Real ones with generated ones.
    pub real_fake: f64,
    /// Generated ones with each other.
    pub fake_fake: f64,
}

/// A run: networks, anchors, and the state of their training.
#[derive(Debug)]
pub struct Trainer {
    pub(crate) config: Config,
    data: Data,
    pub(crate) state: State,
}

/// All that changes in training, and so all that a checkpoint has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) embedding: Network,
    pub(crate) generator: Network,
    pub(crate) anchors: Weight,
    /// The weights of the generator, averaged over steps.
    pub(crate) average: Vec<Weight>,
    /// Of the embedding, and after it of the anchors.
    pub(crate) critic_stepper: Stepper,
    pub(crate) generator_stepper: Stepper,
    /// Steps of the generator done.
    pub(crate) step: u64,
    /// Batches seen.
    pub(crate) batches: u64,
}

impl State {
    /// Where every run begins.
    pub(crate) fn new(config: &Config) -> Self {
        let seed = config.training.seed;
        let embedding = Network::embedding(config, &mut stream(seed, Purpose::Embedding, 0, 0));
        let generator = Network::generator(config, &mut stream(seed, Purpose::Generator, 0, 0));
        // Anchors of Lemma 1: N(0, q eps / 4).
        let (rank, latent) = (config.kernel.rank, config.model.latent);
        let deviation = (q(config) * config.kernel.epsilon / 4.0).sqrt();
        let draws = normals(&mut stream(seed, Purpose::Anchors, 0, 0), rank * latent);
        #[expect(clippy::cast_possible_truncation, reason = "weights are in single precision")]
        let values = draws.into_iter().map(|z| deviation as f32 * z).collect();
        let anchors = Weight { name: "anchors".into(), shape: vec![rank, latent], values };
        let sizes =
            |weights: &[Weight]| -> Vec<usize> { weights.iter().map(|w| w.values.len()).collect() };
        let critic = sizes(&embedding.weights).into_iter().chain([anchors.values.len()]);
        let (of_critic, of_generator) = (&config.critic, &config.generator);
        let critic_stepper =
            Stepper::new(of_critic.optimiser, [of_critic.beta1, of_critic.beta2], critic);
        let generator_stepper = Stepper::new(
            of_generator.optimiser,
            [of_generator.beta1, of_generator.beta2],
            sizes(&generator.weights).into_iter(),
        );
        let average = generator.weights.clone();
        State {
            embedding,
            generator,
            anchors,
            average,
            critic_stepper,
            generator_stepper,
            step: 0,
            batches: 0,
        }
    }
}

/// The constant of Lemma 1, by the paper's formula from the radius of the settings.
pub(crate) fn q(config: &Config) -> f64 {
    orthant::theory::paper_q(config.kernel.radius, config.kernel.epsilon, config.model.latent)
}

/// Keeps a weight of the embedding within the limits of the settings.
fn limit(weight: &mut Weight, critic: &Critic) {
    if let Some(clip) = critic.clip {
        #[expect(clippy::cast_possible_truncation, reason = "as weights are")]
        let clip = clip as f32;
        weight.values.iter_mut().for_each(|w| *w = w.clamp(-clip, clip));
    }
    if let (Some(most), [rows, _, ..]) = (critic.spectral, &weight.shape[..]) {
        project(&mut weight.values, *rows, most);
    }
}

impl Trainer {
    /// A run from the start.
    pub fn new(config: Config, data: Data) -> Result<Self> {
        config.check().map_err(|message| Error::Config { place: "config".into(), message })?;
        let mut state = State::new(&config);
        for weight in &mut state.embedding.weights {
            limit(weight, &config.critic);
        }
        let mut trainer = Trainer::with_state(config, data, state)?;
        if trainer.config.kernel.anchors == Anchors::Latents {
            trainer.state.anchors.values = trainer.first_latents();
        }
        Ok(trainer)
    }

    /// As many latents as there are anchors: of data, and of samples.
    fn first_latents(&self) -> Vec<f32> {
        let Config { kernel, training, model, .. } = &self.config;
        let of_samples = kernel.rank / 2;
        let game = self.game();
        let mut latents = game.latents(
            &self.data.batch(kernel.rank - of_samples, FIRST_LATENTS, training.seed),
            &mut Statistics::default(),
        );
        if of_samples > 0 {
            let mut rng = stream(training.seed, Purpose::Anchors, 0, 1);
            let samples = game.generate(&normals(&mut rng, of_samples * model.noise));
            latents.extend(game.latents(&samples, &mut Statistics::default()));
        }
        latents
    }

    pub(crate) fn with_state(config: Config, data: Data, state: State) -> Result<Self> {
        match (&data, config.data.kind) {
            (Data::Images(images), Kind::Images) => {
                let is = (images.channels(), images.side());
                let should = (config.data.channels, config.data.side);
                if is != should {
                    return Err(Error::Data(format!(
                        "images have {} channels and a side of {}, and the config says {} and {}",
                        is.0, is.1, should.0, should.1
                    )));
                }
                if images.is_empty() {
                    return Err(Error::Data("there are no images to learn from".into()));
                }
            }
            (Data::Ring, Kind::Ring) => {}
            (Data::Images(_), Kind::Ring) => {
                return Err(Error::Data("data.kind is \"ring\", which needs no images".into()));
            }
            (Data::Ring, Kind::Images) => {
                return Err(Error::Data("data.kind is \"images\", and none are given".into()));
            }
        }
        Ok(Trainer { config, data, state })
    }

    /// The settings of the run.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Steps of the generator that are done.
    pub fn steps_done(&self) -> u64 {
        self.state.step
    }

    /// The generator as it is, with averaged weights if the settings ask for them.
    pub fn generator(&self) -> Generator {
        Generator::of(&self.config, &self.state)
    }

    /// One step of the generator, with the critic's before it.
    pub fn step(&mut self) -> Result<Report> {
        let steps = self.critic_steps();
        let (mut iterations, mut critic_divergence) = (0, 0.0);
        for part in 0..steps {
            let pass = self.critic_step(part)?;
            (iterations, critic_divergence) = (iterations + pass.iterations, pass.divergence);
        }
        let (pass, kernel) = self.generator_step(steps)?;
        self.state.step += 1;
        Ok(Report {
            step: self.state.step,
            divergence: pass.divergence,
            critic_divergence,
            kernel,
            images: (steps + 1) * self.config.training.batch as u64,
            iterations: iterations + pass.iterations,
        })
    }

    /// Steps of the critic before the next one of the generator.
    fn critic_steps(&self) -> u64 {
        let (critic, step) = (&self.config.critic, self.state.step);
        let warm = step < critic.warm_up
            || (critic.warm_up_every > 0 && step > 0 && step % critic.warm_up_every == 0);
        (if warm { critic.warm_up_steps } else { critic.steps }) as u64
    }

    /// The next batch of the data, row by row.
    fn real(&mut self) -> Vec<f32> {
        let (number, seed) = (self.state.batches, self.config.training.seed);
        self.state.batches += 1;
        self.data.batch(self.config.training.batch, number, seed)
    }

    /// What the generator takes, at a part of a step.
    fn noise(&self, part: u64) -> Vec<f32> {
        let Config { training, model, .. } = &self.config;
        let mut rng = stream(training.seed, Purpose::Noise, self.state.step, part);
        normals(&mut rng, training.batch * model.noise)
    }

    fn game(&self) -> Game<'_> {
        let Config { kernel, critic, training, .. } = &self.config;
        let slice = self.config.slice();
        Game {
            embedding: &self.state.embedding,
            generator: &self.state.generator,
            anchors: &self.state.anchors.values,
            q: q(&self.config),
            solve: Solve {
                epsilon: kernel.epsilon,
                tolerance: kernel.tolerance,
                max_iterations: kernel.max_iterations,
            },
            centre: critic.centre,
            slice: (slice < training.batch).then_some(slice),
        }
    }

    /// What is left of the rates at this step.
    fn pace(&self) -> f64 {
        let Training { steps, decay, .. } = self.config.training;
        let (left, slow) = (steps.saturating_sub(self.state.step), decay * steps as f64);
        if (left as f64) < slow { left as f64 / slow } else { 1.0 }
    }

    fn critic_step(&mut self, part: u64) -> Result<CriticPass> {
        let (real, noise) = (self.real(), self.noise(part));
        let game = self.game();
        let mut pass: CriticPass = game.critic(&real, &game.generate(&noise))?;
        self.finite("the critic", &pass.embedding, &[&pass.anchors])?;
        let pace = self.pace();
        let (critic, state) = (&self.config.critic, &mut self.state);
        for statistics in &pass.statistics {
            state.embedding.update_running(statistics);
        }
        // Up: against the gradient of the negative.
        let up = pass.embedding.iter_mut().chain([&mut pass.anchors]);
        up.flatten().for_each(|g| *g = -*g);
        state.critic_stepper.begin();
        for (i, (weight, gradient)) in
            state.embedding.weights.iter_mut().zip(&pass.embedding).enumerate()
        {
            state.critic_stepper.descend(i, pace * critic.rate, &mut weight.values, gradient);
            limit(weight, critic);
        }
        let (last, rate) = (pass.embedding.len(), critic.anchor_rate.unwrap_or(critic.rate));
        state.critic_stepper.descend(last, pace * rate, &mut state.anchors.values, &pass.anchors);
        Ok(pass)
    }

    fn generator_step(&mut self, part: u64) -> Result<(GeneratorPass, KernelStats)> {
        let (real, noise) = (self.real(), self.noise(part));
        let pass = self.game().generator(&real, &noise)?;
        self.finite("the generator", &pass.generator, &[])?;
        let rows = Rows::Latents {
            x: &pass.latents[0],
            y: &pass.latents[1],
            dim: self.config.model.latent,
            anchors: &self.state.anchors.values,
            q: q(&self.config),
        };
        let [real_real, real_fake, fake_fake] =
            rows.log_mean_kernels(self.config.kernel.epsilon)?;
        let pace = self.pace();
        let (player, state) = (&self.config.generator, &mut self.state);
        state.generator.update_running(&pass.statistics);
        state.generator_stepper.begin();
        // At first the average forgets quickly, so that the start is not in it for long.
        let done = state.step as f64;
        #[expect(clippy::cast_possible_truncation, reason = "as weights are")]
        let keep = player.average.min((1.0 + done) / (10.0 + done)) as f32;
        let weights = state.generator.weights.iter_mut().zip(&mut state.average);
        for (i, ((weight, average), gradient)) in weights.zip(&pass.generator).enumerate() {
            state.generator_stepper.descend(i, pace * player.rate, &mut weight.values, gradient);
            for (average, weight) in average.values.iter_mut().zip(&weight.values) {
                *average = if player.average > 0.0 {
                    keep * *average + (1.0 - keep) * weight
                } else {
                    *weight
                };
            }
        }
        Ok((pass, KernelStats { real_real, real_fake, fake_fake }))
    }

    /// Gradients must be numbers.
    fn finite(&self, what: &str, gradients: &[Vec<f32>], more: &[&Vec<f32>]) -> Result<()> {
        if gradients.iter().chain(more.iter().copied()).flatten().all(|g| g.is_finite()) {
            return Ok(());
        }
        let what = format!("the gradient of {what}");
        Err(Error::Diverged { step: self.state.step + 1, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trainer(more: &str) -> Trainer {
        let text =
            format!("[data]\nkind = \"ring\"\n[model]\nwidth = 16\nlatent = 4\nnoise = 2\n{more}");
        Trainer::new(Config::parse("test", &text).unwrap(), Data::Ring).unwrap()
    }

    #[test]
    fn limits_hold_before_the_first_step() {
        let trainer = trainer("[critic]\nspectral = 0.5\nclip = 0.1\n");
        for weight in &trainer.state.embedding.weights {
            assert!(weight.values.iter().all(|w| w.abs() <= 0.1), "{}", weight.name);
            if let [rows, _, ..] = weight.shape[..] {
                let mut within = weight.values.clone();
                project(&mut within, rows, 0.5001);
                assert_eq!(within, weight.values, "{}", weight.name);
            }
        }
    }

    /// A new point of the ring has an anchor nearby, which draws of Lemma 1 far from it are not.
    #[test]
    fn anchors_may_begin_at_latents() {
        let farthest = |anchors: &str| {
            let trainer =
                trainer(&format!("[kernel]\nrank = 201\nradius = 40.0\nanchors = \"{anchors}\"\n"));
            let rows = trainer.data.batch(64, 7, 1);
            let latents = trainer.game().latents(&rows, &mut Statistics::default());
            let anchors = &trainer.state.anchors.values;
            assert_eq!(anchors.len(), 201 * 4);
            let squared = |z: &[f32], u: &[f32]| -> f32 {
                z.iter().zip(u).map(|(z, u)| (z - u) * (z - u)).sum()
            };
            let nearest = |z: &[f32]| {
                anchors.chunks_exact(4).map(|u| squared(z, u)).fold(f32::INFINITY, f32::min)
            };
            latents.chunks_exact(4).map(nearest).fold(0.0, f32::max)
        };
        let (latents, lemma) = (farthest("latents"), farthest("lemma"));
        assert!(latents < 0.2 && lemma > 5.0 * latents, "{latents} {lemma}");
    }

    #[test]
    fn rates_fall_to_zero_over_the_last_part_of_the_steps() {
        let mut trainer = trainer("[training]\nsteps = 100\nbatch = 8\ndecay = 0.4\n");
        for (step, pace) in [(0, 1.0), (60, 1.0), (80, 0.5), (99, 0.025), (100, 0.0), (120, 0.0)] {
            trainer.state.step = step;
            assert!((trainer.pace() - pace).abs() < 1e-12, "{step}: {}", trainer.pace());
        }
    }
}
