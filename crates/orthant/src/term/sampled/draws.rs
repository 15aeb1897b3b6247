//! Samples of the clouds.

use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};

use super::whole::Whole;
use crate::sampling::Wheel;

/// A sample of both clouds of a term, or of the one that both are; in order.
///
/// Points of equal weight are drawn without replacement, others by their weights and independently, so a point may be
/// there more than once. Either way the mean of a function over the sample has the mean over the cloud as its expectation.
#[derive(Debug)]
pub(super) struct Draws {
    clouds: Vec<Vec<usize>>,
    /// Whether no point is there twice.
    pub(super) distinct: bool,
    /// The expected part of independent pairs that are of two different points.
    pub(super) apart: f64,
}

impl Draws {
    pub(super) fn new(whole: &Whole<'_>, size: usize, rng: &mut ChaCha8Rng) -> Self {
        let weights = whole.clouds[..whole.count()].iter().map(|cloud| cloud.weights);
        let weights: Vec<&[f64]> = weights.collect();
        let distinct = weights.iter().all(|weights| are_equal(weights));
        let clouds = weights.iter().map(|weights| draw(weights, size, rng)).collect();
        let apart = 1.0 - weights[0].iter().map(|a| a * a).sum::<f64>();
        Draws { clouds, distinct, apart }
    }

    /// The points of the first cloud of the term, or of the second.
    pub(super) fn of(&self, slot: usize) -> &[usize] {
        &self.clouds[slot.min(self.clouds.len() - 1)]
    }

    /// What the mean over the sample of a function of another point has to be multiplied with, for a point outside of it.
    pub(super) fn others(&self) -> f64 {
        if self.distinct { self.apart } else { 1.0 }
    }

    /// The same for a pair of two draws, among all pairs of the sample: those of a draw with itself are left out.
    pub(super) fn pairs(&self) -> f64 {
        let size = self.of(0).len() as f64;
        self.others() * size / (size - 1.0)
    }
}

/// Whether weights differ by rounding only.
fn are_equal(weights: &[f64]) -> bool {
    let [low, high] =
        weights.iter().fold([f64::INFINITY, 0.0_f64], |[low, high], w| [low.min(*w), high.max(*w)]);
    high - low <= 1e-12 * high
}

fn draw(weights: &[f64], size: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut drawn = if are_equal(weights) {
        index::sample(rng, weights.len(), size.min(weights.len())).into_vec()
    } else {
        let wheel = Wheel::new(weights.iter().copied());
        (0..size).map(|_| wheel.at(Open01.sample(rng))).collect()
    };
    drawn.sort_unstable();
    drawn
}
