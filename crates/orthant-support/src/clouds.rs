//! The paper's clouds, made from seeds, so that demonstrations, benchmarks and experiments need no files.

use std::f64::consts::PI;

use orthant::{Measure, Points};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01, StandardNormal};

/// Two clouds of points, row by row.
#[derive(Debug)]
pub struct Clouds {
    /// Coordinates of the first.
    pub x: Vec<f64>,
    /// Coordinates of the second.
    pub y: Vec<f64>,
    /// Coordinates of a point.
    pub dim: usize,
}

impl Clouds {
    /// The uniform measures on the first `n` points of each, or on all if there are fewer.
    pub fn measures(&self, n: usize) -> orthant::Result<[Measure<'_>; 2]> {
        let of = |values: &'_ [f64]| values.len().min(n * self.dim);
        let (x, y) = (&self.x[..of(&self.x)], &self.y[..of(&self.y)]);
        Ok([
            Measure::uniform(Points::new(x, self.dim)?),
            Measure::uniform(Points::new(y, self.dim)?),
        ])
    }
}

/// The problem of the paper's Figure 1: `N((1, 1), I)` against `N(0, 0.1 I)` in the plane.
pub fn figure_1(n: usize, seed: u64) -> Clouds {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut cloud = |mean: f64, variance: f64| -> Vec<f64> {
        let normal = |_| -> f64 {
            let z: f64 = StandardNormal.sample(&mut rng);
            mean + variance.sqrt() * z
        };
        (0..2 * n).map(normal).collect()
    };
    let [x, y] = [cloud(1.0, 1.0), cloud(0.0, 0.1)];
    Clouds { x, y, dim: 2 }
}

/// Two caps of the unit sphere of half-angle 50 degrees, 60 degrees apart. (The paper shows its clouds and does not say
/// how they were drawn.)
pub fn caps(n: usize, seed: u64) -> Clouds {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = || -> f64 { Open01.sample(&mut rng) };
    let [x, y] = [-PI / 6.0, PI / 6.0].map(|turn: f64| -> Vec<f64> {
        (0..n)
            .flat_map(|_| {
                let z = 1.0 - uniform() * (1.0 - (PI / 3.6).cos());
                let (s, angle) = ((1.0 - z * z).sqrt(), 2.0 * PI * uniform());
                let (x, y) = (s * angle.cos(), s * angle.sin());
                [turn.cos() * x + turn.sin() * z, y, turn.cos() * z - turn.sin() * x]
            })
            .collect()
    });
    Clouds { x, y, dim: 3 }
}

/// Two clouds in many dimensions that are like measured ones: the same twelve clusters with other shares, a spectrum that
/// decays like that of principal axes, and one cloud a little aside.
pub fn clusters(n: usize, dim: usize, seed: u64) -> Clouds {
    const CLUSTERS: usize = 12;
    let axis = |c: usize| 1.0 / (1.0 + c as f64).sqrt();
    // The clusters are those of the dimension, whatever the seed of the points.
    let mut rng = ChaCha8Rng::seed_from_u64(dim as u64);
    let mut normal = |axis: f64| -> f64 {
        let z: f64 = StandardNormal.sample(&mut rng);
        axis * z
    };
    let centres: Vec<f64> = (0..CLUSTERS * dim).map(|i| normal(2.0 * axis(i % dim))).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let [x, y] = [0.0, 0.3].map(|aside: f64| {
        let mut points = Vec::with_capacity(n * dim);
        for _ in 0..n {
            let uniform: f64 = Open01.sample(&mut rng);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 12")]
            let cluster = (uniform.powf(1.0 + aside) * CLUSTERS as f64) as usize;
            for c in 0..dim {
                let z: f64 = StandardNormal.sample(&mut rng);
                let centre = centres[cluster * dim + c];
                points.push(centre + axis(c) * (z + aside * (0.7 * c as f64).sin()));
            }
        }
        points
    });
    Clouds { x, y, dim }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_are_where_they_should_be() {
        let clouds = figure_1(4000, 1);
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        // Four standard errors of 8,000 numbers.
        assert!((mean(&clouds.x) - 1.0).abs() < 0.045 && mean(&clouds.y).abs() < 0.015);
        let variance = clouds.y.iter().map(|y| y * y).sum::<f64>() / 8000.0;
        assert!((variance - 0.1).abs() < 0.007);
        let caps = caps(500, 1);
        for (cloud, turn) in [(&caps.x, -PI / 6.0), (&caps.y, PI / 6.0)] {
            for p in cloud.chunks_exact(3) {
                assert!((p.iter().map(|c| c * c).sum::<f64>() - 1.0).abs() < 1e-12);
                assert!(p[0] * turn.sin() + p[2] * turn.cos() > (PI / 3.6).cos() - 1e-12);
            }
        }
    }

    #[test]
    fn measures_have_the_first_points() {
        let clouds = figure_1(20, 3);
        let [mu, nu] = clouds.measures(5).unwrap();
        assert_eq!((mu.points().len(), nu.points().len()), (5, 5));
        assert_eq!(nu.points().coordinate(4, 1), clouds.y[9]);
        assert_eq!(clouds.measures(100).unwrap()[0].points().len(), 20);
    }
}
