//! Random streams that are derived from the seed and a place, and so need no state: a run that goes on from a
//! checkpoint draws what it would have drawn.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// What a stream is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Embedding = 1,
    Generator,
    Anchors,
    Noise,
    Points,
    Samples,
    Calibration,
    Table,
    Bench,
}

/// The stream of a purpose, at a step and a part of it.
pub(crate) fn stream(seed: u64, purpose: Purpose, step: u64, part: u64) -> ChaCha8Rng {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip([seed, purpose as u64, step, part]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(bytes)
}

/// Standard normal numbers.
pub(crate) fn normals(rng: &mut ChaCha8Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| StandardNormal.sample(rng)).collect()
}
