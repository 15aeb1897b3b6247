//! The toy: eight Gaussians on a ring in the plane.

use rand::RngExt;

use crate::random::{Purpose, normals, stream};

/// Number of Gaussians.
pub const MODES: usize = 8;
/// The deviation of each, on a ring of radius 1.
pub const SIGMA: f32 = 0.05;

/// Draws points, `x` and `y` in turn: of the Gaussians one after the other, so that a batch has as many of each.
pub(crate) fn draw(count: usize, seed: u64, number: u64) -> Vec<f32> {
    let mut rng = stream(seed, Purpose::Points, number, 0);
    let first = rng.random_range(0..MODES);
    let modes = (0..count).map(|i| (first + i) % MODES);
    let noise = normals(&mut rng, 2 * count);
    let point = |(mode, z): (usize, &[f32])| {
        let [x, y] = centre(mode);
        [x + SIGMA * z[0], y + SIGMA * z[1]]
    };
    modes.zip(noise.chunks_exact(2)).flat_map(point).collect()
}

/// The centre of a Gaussian.
pub fn centre(mode: usize) -> [f32; 2] {
    let angle = std::f32::consts::TAU * mode as f32 / MODES as f32;
    [angle.cos(), angle.sin()]
}

/// Points of the ring, as they are learned from.
pub fn points(count: usize, seed: u64) -> Vec<[f32; 2]> {
    draw(count, seed, 0).chunks_exact(2).map(|p| [p[0], p[1]]).collect()
}

/// How samples cover the ring.
#[derive(Debug, Clone, PartialEq)]
pub struct Coverage {
    /// The part of all samples that is within three deviations of each centre.
    pub modes: [f64; MODES],
    /// The part that is within three deviations of some centre.
    pub near: f64,
}

impl Coverage {
    /// The number of Gaussians that are covered: that have 5% of all samples, of the 12.5% that are their part.
    pub fn covered(&self) -> usize {
        self.modes.iter().filter(|part| **part >= 0.05).count()
    }
}

/// The number of Gaussians that samples cover, see [`Coverage::covered`].
pub fn modes(samples: &[[f32; 2]]) -> usize {
    coverage(samples).covered()
}

/// Counts the samples near each Gaussian.
pub fn coverage(samples: &[[f32; 2]]) -> Coverage {
    let mut counts = [0_usize; MODES];
    for [x, y] in samples {
        for (mode, count) in counts.iter_mut().enumerate() {
            let [cx, cy] = centre(mode);
            *count += usize::from((x - cx).hypot(y - cy) <= 3.0 * SIGMA);
        }
    }
    let modes = counts.map(|count| count as f64 / samples.len() as f64);
    Coverage { modes, near: modes.iter().sum() }
}
