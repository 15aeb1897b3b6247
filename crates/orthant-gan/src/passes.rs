//! Gradients of the divergence of whole batches, of which the networks see slices.
//!
//! If all fits, there is one pass and the operation of [`crate::loss`]. If not, a first pass without derivatives collects the latents of
//! all slices; their divergence is that of the whole batch, and gives the derivatives by every latent; a second pass
//! takes slice after slice back from there, `d(latent . derivative)`. Sums of exact derivatives are exact: nothing
//! is approximated, and memory is that of one slice. Batch norms see slices, in both passes the same ones.

use burn::Tensor;
use burn::tensor::{Device, Gradients, TensorData};

use crate::error::Result;
use crate::kernel::{Rows, Solve};
use crate::loss::{iterations, numbers, of_latents};
use crate::network::{Network, Normalise, Statistics};

/// What a divergence depends on beside the batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Game<'a> {
    pub(crate) embedding: &'a Network,
    pub(crate) generator: &'a Network,
    /// `r x latent`.
    pub(crate) anchors: &'a [f32],
    pub(crate) q: f64,
    pub(crate) solve: Solve,
    /// What the critic pays for the squared distance of the mean latent from the mean anchor.
    pub(crate) centre: f64,
    /// Rows that a network sees at once; all if there is none.
    pub(crate) slice: Option<usize>,
}

/// The divergence of a batch and its derivatives by the weights of the critic.
#[derive(Debug)]
pub(crate) struct CriticPass {
    pub(crate) divergence: f64,
    pub(crate) iterations: usize,
    pub(crate) embedding: Vec<Vec<f32>>,
    pub(crate) anchors: Vec<f32>,
    /// Of real and of generated batches.
    pub(crate) statistics: [Statistics; 2],
}

/// The divergence of a batch and its derivatives by the weights of the generator.
#[derive(Debug)]
pub(crate) struct GeneratorPass {
    pub(crate) divergence: f64,
    pub(crate) iterations: usize,
    pub(crate) generator: Vec<Vec<f32>>,
    /// Latents of the real and of the generated batch.
    pub(crate) latents: [Vec<f32>; 2],
    pub(crate) statistics: Statistics,
}

fn plain() -> Device {
    Device::flex()
}

fn tracked() -> Device {
    Device::flex().autodiff()
}

impl Game<'_> {
    fn dim(&self) -> usize {
        self.embedding.output()
    }

    /// Rows of `width` numbers, slice by slice.
    fn slices<'r>(
        &self,
        rows: &'r [f32],
        width: usize,
    ) -> impl Iterator<Item = &'r [f32]> + use<'r> {
        rows.chunks(self.slice.map_or(rows.len(), |slice| slice * width))
    }

    /// What the generator makes of noise, without derivatives.
    pub(crate) fn generate(&self, noise: &[f32]) -> Vec<f32> {
        let leaves = self.generator.leaves(&plain(), false);
        let mut all = Vec::new();
        for slice in self.slices(noise, self.generator.input()) {
            let input = self.generator.tensor(slice, &plain());
            all.extend(numbers(self.generator.forward(
                &leaves,
                input,
                &mut Normalise::Batch(None),
            )));
        }
        all
    }

    /// Latents of images, as a tensor.
    fn embed(
        &self,
        leaves: &[Tensor<1>],
        images: Tensor<4>,
        statistics: Option<&mut Statistics>,
    ) -> Tensor<2> {
        let rows = images.dims()[0];
        let latents = self.embedding.forward(leaves, images, &mut Normalise::Batch(statistics));
        latents.reshape([rows, self.dim()])
    }

    /// The same without derivatives, slice by slice.
    pub(crate) fn latents(&self, images: &[f32], statistics: &mut Statistics) -> Vec<f32> {
        let leaves = self.embedding.leaves(&plain(), false);
        let mut all = Vec::new();
        for slice in self.slices(images, self.embedding.input()) {
            let input = self.embedding.tensor(slice, &plain());
            all.extend(numbers(self.embed(&leaves, input, Some(statistics))));
        }
        all
    }

    fn rows<'l>(&'l self, x: &'l [f32], y: &'l [f32]) -> Rows<'l> {
        Rows::Latents { x, y, dim: self.dim(), anchors: self.anchors, q: self.q }
    }

    fn anchor_tensor(&self, device: &Device) -> Tensor<2> {
        let shape = [self.anchors.len() / self.dim(), self.dim()];
        Tensor::from_data(TensorData::new(self.anchors.to_vec(), shape), device)
    }

    /// How far the mean latent is from the mean anchor.
    fn away(&self, x: &[f32], y: &[f32]) -> Vec<f64> {
        let mut away = vec![0.0; self.dim()];
        for (rows, part) in [(x, 0.5), (y, 0.5), (self.anchors, -1.0)] {
            let part = part / (rows.len() / self.dim()) as f64;
            for row in rows.chunks_exact(self.dim()) {
                away.iter_mut().zip(row).for_each(|(away, z)| *away += part * f64::from(*z));
            }
        }
        away
    }

    /// For a step of the critic.
    pub(crate) fn critic(&self, real: &[f32], fake: &[f32]) -> Result<CriticPass> {
        let device = tracked();
        let leaves = self.embedding.leaves(&device, true);
        let mut statistics = [Statistics::default(), Statistics::default()];
        let [of_real, of_fake] = &mut statistics;
        if self.slice.is_none() {
            let anchors = self.anchor_tensor(&device).require_grad();
            let x = self.embed(&leaves, self.embedding.tensor(real, &device), Some(of_real));
            let y = self.embed(&leaves, self.embedding.tensor(fake, &device), Some(of_fake));
            let away =
                (x.clone().mean_dim(0) + y.clone().mean_dim(0)) * 0.5 - anchors.clone().mean_dim(0);
            let loss = of_latents(x, y, anchors.clone(), self.q, self.solve)?;
            let gradients = (loss.tensor - away.square().sum() * self.centre).backward();
            return Ok(CriticPass {
                divergence: loss.value,
                iterations: loss.iterations,
                embedding: of_leaves(&leaves, &gradients),
                anchors: numbers(anchors.grad(&gradients).expect("the divergence depends on them")),
                statistics,
            });
        }
        let (x, y) = (self.latents(real, of_real), self.latents(fake, of_fake));
        let (divergence, mut by) = self.rows(&x, &y).with_derivatives(self.solve)?;
        let away = self.away(&x, &y);
        for (by, part) in [(&mut by.x, 0.5), (&mut by.y, 0.5), (&mut by.anchors, -1.0)] {
            let count = by.len() / self.dim();
            let factor = 2.0 * self.centre * part / count as f64;
            for (by, away) in by.iter_mut().zip(away.iter().cycle()) {
                #[expect(clippy::cast_possible_truncation, reason = "as weights are")]
                let change = (factor * away) as f32;
                *by -= change;
            }
        }
        let mut embedding: Vec<Vec<f32>> = Vec::new();
        let width = self.embedding.input();
        for (images, by) in [(real, &by.x), (fake, &by.y)] {
            for (images, by) in self.slices(images, width).zip(self.slices(by, self.dim())) {
                let latents = self.embed(&leaves, self.embedding.tensor(images, &device), None);
                add(&mut embedding, of_leaves(&leaves, &along(latents, by).backward()));
            }
        }
        Ok(CriticPass {
            divergence: divergence.value,
            iterations: iterations(&divergence),
            embedding,
            anchors: by.anchors,
            statistics,
        })
    }

    /// For a step of the generator.
    pub(crate) fn generator(&self, real: &[f32], noise: &[f32]) -> Result<GeneratorPass> {
        let device = tracked();
        let leaves = self.generator.leaves(&device, true);
        let fixed = self.embedding.leaves(&device, false);
        let mut statistics = Statistics::default();
        let x = self.latents(real, &mut Statistics::default());
        if self.slice.is_none() {
            let noise = self.generator.tensor(noise, &device);
            let fake = self.generator.forward(
                &leaves,
                noise,
                &mut Normalise::Batch(Some(&mut statistics)),
            );
            let y = self.embed(&fixed, fake, None);
            let x_tensor = TensorData::new(x.clone(), [x.len() / self.dim(), self.dim()]);
            let x_tensor = Tensor::from_data(x_tensor, &device);
            let anchors = self.anchor_tensor(&device);
            let loss = of_latents(x_tensor, y.clone(), anchors, self.q, self.solve)?;
            let gradients = loss.tensor.backward();
            return Ok(GeneratorPass {
                divergence: loss.value,
                iterations: loss.iterations,
                generator: of_leaves(&leaves, &gradients),
                latents: [x, numbers(y)],
                statistics,
            });
        }
        let width = self.generator.input();
        let mut y = Vec::new();
        let (frozen, critic) =
            (self.generator.leaves(&plain(), false), self.embedding.leaves(&plain(), false));
        for noise in self.slices(noise, width) {
            let noise = self.generator.tensor(noise, &plain());
            let fake = self.generator.forward(
                &frozen,
                noise,
                &mut Normalise::Batch(Some(&mut statistics)),
            );
            y.extend(numbers(self.embed(&critic, fake, None)));
        }
        let (divergence, by) = self.rows(&x, &y).with_derivatives(self.solve)?;
        let mut generator = Vec::new();
        for (noise, by) in self.slices(noise, width).zip(self.slices(&by.y, self.dim())) {
            let noise = self.generator.tensor(noise, &device);
            let fake = self.generator.forward(&leaves, noise, &mut Normalise::Batch(None));
            let latents = self.embed(&fixed, fake, None);
            add(&mut generator, of_leaves(&leaves, &along(latents, by).backward()));
        }
        Ok(GeneratorPass {
            divergence: divergence.value,
            iterations: iterations(&divergence),
            generator,
            latents: [x, y],
            statistics,
        })
    }
}

/// The sum of latents times what the divergence changes by with them.
fn along(latents: Tensor<2>, by: &[f32]) -> Tensor<1> {
    let by = TensorData::new(by.to_vec(), latents.dims());
    let by = Tensor::from_data(by, &latents.device());
    (latents * by).sum()
}

/// Gradients of all leaves.
fn of_leaves(leaves: &[Tensor<1>], gradients: &Gradients) -> Vec<Vec<f32>> {
    let of = |leaf: &Tensor<1>| match leaf.grad(gradients) {
        Some(gradient) => numbers(gradient),
        None => vec![0.0; leaf.dims()[0]],
    };
    leaves.iter().map(of).collect()
}

fn add(sums: &mut Vec<Vec<f32>>, more: Vec<Vec<f32>>) {
    if sums.is_empty() {
        *sums = more;
        return;
    }
    for (sums, more) in sums.iter_mut().zip(more) {
        sums.iter_mut().zip(more).for_each(|(s, m)| *s += m);
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "steps of weights")]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::random::{Purpose, normals, stream};
    use crate::train::{State, q};

    const BATCH: usize = 12;

    fn config(norm: &str) -> Config {
        let text = format!(
            "[data]\nkind = \"images\"\nside = 16\n[model]\nwidth = 3\nlatent = 4\nnoise = 5\nnorm = \"{norm}\"\n\
             bound = \"sphere\"\nradius = 2.0\n[kernel]\nrank = 9\n[training]\nbatch = {BATCH}\n"
        );
        Config::parse("test", &text).unwrap()
    }

    fn game<'s>(state: &'s State, config: &Config, slice: Option<usize>) -> Game<'s> {
        Game {
            embedding: &state.embedding,
            generator: &state.generator,
            anchors: &state.anchors.values,
            q: q(config),
            solve: Solve { tolerance: 1e-10, ..Solve::default() },
            centre: config.critic.centre,
            slice,
        }
    }

    fn draw(part: u64, count: usize) -> Vec<f32> {
        normals(&mut stream(1, Purpose::Noise, 0, part), count)
    }

    fn passes(state: &State, config: &Config, slice: Option<usize>) -> (CriticPass, GeneratorPass) {
        let game = game(state, config, slice);
        let real = draw(0, BATCH * state.embedding.input());
        // The same images whatever the slices are: the generator has batch norms.
        let fake = draw(1, BATCH * state.embedding.input());
        let noise = draw(2, BATCH * state.generator.input());
        (game.critic(&real, &fake).unwrap(), game.generator(&real, &noise).unwrap())
    }

    fn assert_close(a: &[Vec<f32>], b: &[Vec<f32>], what: &str) {
        assert_eq!(a.len(), b.len());
        for (k, (a, b)) in a.iter().zip(b).enumerate() {
            let scale = a.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
            assert!(scale > 0.0, "{what}: array {k} has no gradient");
            for (a, b) in a.iter().zip(b) {
                assert!((a - b).abs() <= 2e-4 * scale, "{what}: array {k}: {a} {b} of {scale}");
            }
        }
    }

    #[test]
    fn two_passes_over_one_slice_are_the_pass_of_the_operation() {
        let mut config = config("batch");
        config.critic.centre = 30.0;
        let state = State::new(&config);
        let (critic, generator) = passes(&state, &config, None);
        let (sliced_critic, sliced_generator) = passes(&state, &config, Some(BATCH));
        assert!((critic.divergence - sliced_critic.divergence).abs() < 1e-9);
        assert!((generator.divergence - sliced_generator.divergence).abs() < 1e-9);
        assert_close(&critic.embedding, &sliced_critic.embedding, "embedding");
        assert_close(&[critic.anchors], &[sliced_critic.anchors], "anchors");
        assert_close(&generator.generator, &sliced_generator.generator, "generator");
    }

    #[test]
    fn slices_change_nothing_where_no_batch_norm_sees_them() {
        let mut config = config("none");
        config.critic.centre = 30.0;
        let state = State::new(&config);
        let (whole, _) = passes(&state, &config, None);
        for slice in [5, 6] {
            let (sliced, _) = passes(&state, &config, Some(slice));
            assert!((whole.divergence - sliced.divergence).abs() < 1e-6 * whole.divergence);
            assert_close(&whole.embedding, &sliced.embedding, "embedding");
            assert_close(std::slice::from_ref(&whole.anchors), &[sliced.anchors], "anchors");
        }
    }

    /// It is a term of what the critic climbs, and none of the divergence.
    #[test]
    fn the_critic_pays_for_latents_away_from_the_anchors() {
        let mut config = config("none");
        let state = State::new(&config);
        let (free, _) = passes(&state, &config, None);
        config.critic.centre = 30.0;
        let (paid, _) = passes(&state, &config, None);
        assert_eq!(free.divergence.to_bits(), paid.divergence.to_bits());
        // A step along the difference of the gradients brings the means together.
        let apart = |state: &State| -> f64 {
            let game = game(state, &config, None);
            let [x, y] = [0, 1].map(|part| {
                let rows = draw(part, BATCH * state.embedding.input());
                game.latents(&rows, &mut Statistics::default())
            });
            game.away(&x, &y).iter().map(|a| a * a).sum()
        };
        let mut moved = state.clone();
        let (mut length, h) = (0.0, 1e-4);
        let arrays = moved.embedding.weights.iter_mut().zip(&paid.embedding).zip(&free.embedding);
        let anchors = [((&mut moved.anchors, &paid.anchors), &free.anchors)];
        for ((weight, paid), free) in arrays.chain(anchors) {
            for ((w, paid), free) in weight.values.iter_mut().zip(paid).zip(free) {
                // The gradient of -30 times the squared distance.
                let slope = paid - free;
                length += f64::from(slope).powi(2);
                *w += h * slope;
            }
        }
        let (before, after) = (apart(&state), apart(&moved));
        let expected = -f64::from(h) * length / 30.0;
        assert!(((after - before) / expected - 1.0).abs() < 0.1, "{before} {after} {expected}");
    }

    /// The second pass is the derivative of the first with the batch norms of slices: against central differences of the
    /// whole batch's divergence.
    #[test]
    fn gradients_of_slices_are_those_of_the_whole_batch() {
        let config = config("batch");
        let state = State::new(&config);
        let (critic, generator) = passes(&state, &config, Some(4));
        // Along the gradient of an array, where the derivative is its length.
        let check = |found: &[f32], weights: &[f32], value: &dyn Fn(Vec<f32>) -> f64| {
            let length = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            let slope = length(found);
            let at = |h: f64| {
                let step =
                    |(w, g): (&f32, &f32)| (f64::from(*w) + h * f64::from(*g) / slope) as f32;
                value(weights.iter().zip(found).map(step).collect())
            };
            // Rectifiers have kinks and numbers are in single precision: what is a good step differs from array to array.
            let errors = [0.01, 0.003, 0.001, 0.0003].map(|part| {
                let h = part * length(weights).max(0.1);
                let [near, far] = [h, 2.0 * h].map(|h| at(h) - at(-h));
                ((8.0 * near - far) / (12.0 * h) / slope - 1.0).abs()
            });
            assert!(errors.iter().any(|error| *error < 4e-2), "{slope}: {errors:?}");
        };
        for array in 0..state.embedding.weights.len() {
            let weights = &state.embedding.weights[array].values;
            check(&critic.embedding[array], weights, &|moved| {
                let mut state = state.clone();
                state.embedding.weights[array].values = moved;
                passes(&state, &config, Some(4)).0.divergence
            });
        }
        for array in 0..state.generator.weights.len() {
            let weights = &state.generator.weights[array].values;
            check(&generator.generator[array], weights, &|moved| {
                let mut state = state.clone();
                state.generator.weights[array].values = moved;
                passes(&state, &config, Some(4)).1.divergence
            });
        }
        check(&critic.anchors, &state.anchors.values, &|moved| {
            let mut state = state.clone();
            state.anchors.values = moved;
            passes(&state, &config, Some(4)).0.divergence
        });
    }

    #[test]
    fn every_row_counts_once_in_the_statistics() {
        let config = config("batch");
        let state = State::new(&config);
        for slice in [None, Some(4)] {
            let (critic, generator) = passes(&state, &config, slice);
            let [real, fake] = &critic.statistics;
            for statistics in [real, fake, &generator.statistics] {
                assert_eq!(statistics.rows(), BATCH as f32, "{slice:?}");
            }
        }
    }
}
