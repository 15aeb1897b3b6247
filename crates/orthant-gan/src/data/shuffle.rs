//! Batches in random order, without anything to remember.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The places of batch `number` (counted from 0) of `size`, out of `len` things.
///
/// Batches are cut from an endless row of permutations, one an epoch, so that everything comes once an epoch. The
/// permutation of an epoch follows from the seed and its number: a training that goes on from a checkpoint sees what it
/// would have seen. A batch may be larger than an epoch.
///
/// ```
/// use orthant_gan::data::batch_indices;
///
/// let mut places = batch_indices(10, 5, 6, 42);
/// places.extend(batch_indices(10, 5, 7, 42));
/// places.sort();
/// assert!(places.into_iter().eq(0..10)); // the fourth epoch
/// ```
///
/// # Panics
///
/// If there is nothing to choose from.
pub fn batch_indices(len: usize, size: usize, number: u64, seed: u64) -> Vec<usize> {
    assert!(len > 0, "no batch of nothing");
    let first = u128::from(number) * size as u128;
    let mut places = Vec::with_capacity(size);
    while places.len() < size {
        let at = first + places.len() as u128;
        // An epoch that is not reached in the life of this universe.
        let epoch = u64::try_from(at / len as u128).unwrap_or(u64::MAX);
        let skip = usize::try_from(at % len as u128).unwrap_or_default();
        let order = permutation(len, epoch, seed);
        places.extend(order.into_iter().skip(skip).take(size - places.len()));
    }
    places
}

fn permutation(len: usize, epoch: u64, seed: u64) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(epoch);
    let mut order: Vec<usize> = (0..len).collect();
    order.shuffle(&mut rng);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_once_an_epoch_whatever_the_size() {
        for size in [1, 3, 7, 10, 13, 25] {
            let row: Vec<usize> = (0..70).flat_map(|b| batch_indices(10, size, b, 5)).collect();
            assert!((0..70).all(|b| batch_indices(10, size, b, 5).len() == size));
            let epochs: Vec<&[usize]> = row.chunks_exact(10).collect();
            for epoch in &epochs {
                let mut sorted = epoch.to_vec();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..10));
            }
            assert!(epochs.windows(2).any(|w| w[0] != w[1]));
        }
        // The seed matters, and nothing else does.
        assert_eq!(batch_indices(100, 50, 3, 1), batch_indices(100, 50, 3, 1));
        assert_ne!(batch_indices(100, 50, 3, 1), batch_indices(100, 50, 3, 2));
    }
}
