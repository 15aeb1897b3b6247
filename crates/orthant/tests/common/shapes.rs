//! Clouds that are hard for one method or another.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// What a cloud looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Deviations `1 / sqrt(k)` along the axes `k = 1, 2, ...`.
    Gaussian,
    /// A noisy circle in the first two axes (two points on a line), narrow in the others.
    Ring,
    /// Five tight clusters.
    Clusters,
    /// Gaussian, but for one point at 20 deviations.
    Outlier,
    /// Student's t with 3 degrees of freedom.
    Heavy,
}

impl Shape {
    pub(crate) const ALL: [Shape; 5] =
        [Shape::Gaussian, Shape::Ring, Shape::Clusters, Shape::Outlier, Shape::Heavy];

    /// `n` points in `d` dimensions.
    pub(crate) fn draw(self, n: usize, d: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let centres: Vec<f64> = (0..5 * d).map(|_| StandardNormal.sample(&mut rng)).collect();
        let mut points = Vec::with_capacity(n * d);
        for i in 0..n {
            let z: Vec<f64> = (0..d).map(|_| StandardNormal.sample(&mut rng)).collect();
            let angle = std::f64::consts::TAU * rng.random::<f64>();
            let chi: f64 = ChiSquared::new(3.0).unwrap().sample(&mut rng);
            for (k, z) in z.iter().enumerate() {
                let deviation = 1.0 / (k as f64 + 1.0).sqrt();
                points.push(match self {
                    Shape::Ring => match (d, k) {
                        (1, _) => angle.cos().signum() + 0.05 * z,
                        (_, 0) => angle.cos() + 0.05 * z,
                        (_, 1) => angle.sin() + 0.05 * z,
                        _ => 0.3 * deviation * z,
                    },
                    Shape::Clusters => centres[i % 5 * d + k] + 0.15 * z,
                    Shape::Outlier if i == 0 => 20.0 * deviation / (d as f64).sqrt(),
                    Shape::Heavy => deviation * z / (chi / 3.0).sqrt(),
                    Shape::Gaussian | Shape::Outlier => deviation * z,
                });
            }
        }
        points
    }

    /// A pair of such clouds: the second is turned, narrower and shifted.
    pub(crate) fn pair(self, n: usize, m: usize, d: usize, seed: u64) -> [Vec<f64>; 2] {
        let x = self.draw(n, d, 2 * seed);
        let mut y = self.draw(m, d, 2 * seed + 1);
        for y in y.chunks_exact_mut(d) {
            y.rotate_left(d / 2);
            for (k, y) in y.iter_mut().enumerate() {
                *y = 0.8 * *y + if k % 3 == 0 { 0.3 } else { 0.0 };
            }
        }
        [x, y]
    }
}
