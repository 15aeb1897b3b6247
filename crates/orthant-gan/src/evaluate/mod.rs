//! How good samples are: the Sinkhorn divergence from held-out images, in a space that no training changes, and precision
//! and recall.

mod neighbours;
mod pca;

use orthant::{Measure, Options, Points, divergence, mean_squared_distance};
use serde::Serialize;

pub use neighbours::{PrecisionRecall, precision_recall};
pub use pca::Pca;

use crate::error::{Error, Result};

/// Epsilon, as a part of the mean squared distance of held-out data from each other, where none is given.
pub const DEFAULT_EPSILON: f64 = 0.05;
/// Error of the terms of a divergence, as a part of them.
const ACCURACY: f64 = 1e-4;

/// How to compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Neighbours whose distance is the radius of a ball.
    pub neighbours: usize,
    /// Regularisation; without it, [`DEFAULT_EPSILON`] times the mean squared distance of the held-out data.
    pub epsilon: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { neighbours: 3, epsilon: None }
    }
}

/// A divergence, and where that of the exact kernel is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Value {
    /// The divergence.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Where the interval is from: exact, bound or sampled.
    pub kind: &'static str,
    /// Whether all its terms converged.
    pub converged: bool,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Divergence of the samples from the held-out data.
    pub divergence: Value,
    /// The same of training data in place of samples: what samples of the true distribution would have.
    pub training: Value,
    /// The same of samples before any training.
    pub initial: Value,
    /// How many times smaller the divergence is than before training.
    pub times_smaller: f64,
    /// Of the samples.
    #[serde(flatten)]
    pub precision_recall: PrecisionRecall,
    /// The same of training data.
    pub training_precision_recall: PrecisionRecall,
    /// Neighbours whose distance is the radius of a ball.
    pub neighbours: usize,
    /// The regularisation.
    pub epsilon: f64,
    /// Mean squared distance of the held-out data from each other.
    pub mean_squared_distance: f64,
    /// Points of each cloud.
    pub count: usize,
    /// Their coordinates.
    pub dims: usize,
}

/// Clouds of points to compare, all in rows of `dims` coordinates, and of as many points.
#[derive(Debug, Clone, PartialEq)]
pub struct Clouds {
    /// Coordinates of a point.
    pub dims: usize,
    /// What training never saw.
    pub held_out: Vec<f32>,
    /// What it saw.
    pub training: Vec<f32>,
    /// Of the trained generator.
    pub samples: Vec<f32>,
    /// Of the generator before training.
    pub initial: Vec<f32>,
}

/// Compares samples with held-out data, beside training data and samples before training.
pub fn evaluate(clouds: &Clouds, settings: &Settings) -> Result<Evaluation> {
    let Settings { neighbours, epsilon } = *settings;
    let dims = clouds.dims;
    let count = clouds.held_out.len() / dims;
    if neighbours == 0 || count <= neighbours {
        return Err(Error::Data(format!(
            "{count} points and {neighbours} neighbours: there must be at least one neighbour, and more points than \
             neighbours; hold out more, or change --neighbours"
        )));
    }
    let held_out = measure(&clouds.held_out, dims)?;
    let mean = mean_squared_distance(&held_out, &held_out)?;
    let epsilon = match epsilon {
        Some(epsilon) => epsilon,
        None if mean > 0.0 => DEFAULT_EPSILON * mean,
        None => {
            let message = "all held-out points coincide, so there is no scale to choose epsilon from; give --eps";
            return Err(Error::Data(message.to_owned()));
        }
    };
    let options = Options::builder(epsilon).accuracy(ACCURACY).build()?;
    let value = |cloud: &[f32]| -> Result<Value> {
        let found = divergence(&held_out, &measure(cloud, dims)?, &options)?;
        // The method is the library's choice, which goes with an interval.
        let interval = found.interval();
        let (low, high) = interval.map_or((f64::NEG_INFINITY, f64::INFINITY), |i| (i.low, i.high));
        let kind = interval.map_or("none", |i| i.kind.as_str());
        Ok(Value { value: found.value, low, high, kind, converged: found.converged() })
    };
    let of = |cloud: &[f32]| precision_recall(&clouds.held_out, cloud, dims, neighbours);
    let (divergence, initial) = (value(&clouds.samples)?, value(&clouds.initial)?);
    Ok(Evaluation {
        divergence,
        training: value(&clouds.training)?,
        initial,
        times_smaller: initial.value / divergence.value,
        precision_recall: of(&clouds.samples),
        training_precision_recall: of(&clouds.training),
        neighbours,
        epsilon,
        mean_squared_distance: mean,
        count,
        dims,
    })
}

fn measure(rows: &[f32], dims: usize) -> Result<Measure<'_>> {
    Ok(Measure::uniform(Points::new(rows, dims)?))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    fn normal(count: usize, at: f32, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..2 * count)
            .map(|_| at + Distribution::<f32>::sample(&StandardNormal, &mut rng))
            .collect()
    }

    #[test]
    fn a_shift_has_the_divergence_of_its_square() {
        // For equal covariances the divergence is the squared distance of the means, at any epsilon.
        let clouds = Clouds {
            dims: 2,
            held_out: normal(800, 0.0, 1),
            training: normal(800, 0.0, 2),
            samples: normal(800, 1.0, 3),
            initial: normal(800, 5.0, 4),
        };
        let found = evaluate(&clouds, &Settings::default()).unwrap();
        assert!((found.divergence.value - 2.0).abs() < 0.25, "{found:?}");
        assert!((found.initial.value - 50.0).abs() < 1.5, "{found:?}");
        assert!(found.training.value < 0.05 && found.training.value > -1e-6, "{found:?}");
        assert!(found.times_smaller > 20.0 && found.divergence.converged);
        let Value { value, low, high, .. } = found.divergence;
        assert!(low <= value && value <= high && high - low < 0.01, "{found:?}");
        // The mean squared distance of a normal law in the plane from itself is 4.
        assert!((found.mean_squared_distance - 4.0).abs() < 0.3);
        assert!((found.epsilon / found.mean_squared_distance - DEFAULT_EPSILON).abs() < 1e-12);
        assert!(found.training_precision_recall.recall > found.precision_recall.recall);
        let given = Settings { epsilon: Some(0.7), neighbours: 1 };
        assert_eq!(evaluate(&clouds, &given).unwrap().epsilon, 0.7);
    }

    #[test]
    fn too_few_points_are_an_error_with_a_remedy() {
        let few = normal(3, 0.0, 1);
        let clouds = Clouds {
            dims: 2,
            held_out: few.clone(),
            training: few.clone(),
            samples: few.clone(),
            initial: few,
        };
        let error = evaluate(&clouds, &Settings::default()).unwrap_err().to_string();
        assert!(
            error.contains("3 points and 3 neighbours") && error.contains("hold out more"),
            "{error}"
        );
        let alike = Clouds { held_out: vec![1.0; 20], ..clouds };
        let error = evaluate(&alike, &Settings::default()).unwrap_err().to_string();
        assert!(error.contains("coincide") && error.contains("--eps"), "{error}");
    }
}
