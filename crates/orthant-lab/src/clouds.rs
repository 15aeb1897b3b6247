//! Clouds made from seeds.

use std::f64::consts::PI;

use orthant::{Measure, Points};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01, StandardNormal};

use crate::failure::Failure;

/// Two clouds of points, row by row.
#[derive(Debug)]
pub(crate) struct Clouds {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    pub(crate) dim: usize,
}

impl Clouds {
    /// The uniform measures on the first `n` points of each.
    pub(crate) fn measures(&self, n: usize) -> Result<[Measure<'static>; 2], Failure> {
        let of = |values: &[f64]| -> orthant::Result<Measure<'static>> {
            let count = values.len().min(n * self.dim);
            Ok(Measure::uniform(Points::new(values[..count].to_vec(), self.dim)?))
        };
        Ok([of(&self.x)?, of(&self.y)?])
    }
}

/// The problem of the paper's Figure 1: `N((1, 1), I)` against `N(0, 0.1 I)` in the plane.
pub(crate) fn gaussians(n: usize, seed: u64) -> Clouds {
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
pub(crate) fn caps(n: usize, seed: u64) -> Clouds {
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

/// About `side^2` points of the positive sphere, evenly: the centres of the triangles that the simplex is cut into, so that
/// the corners are alike and no coordinate is zero.
pub(crate) fn positive_sphere(side: usize) -> Vec<[f64; 3]> {
    let mut points = Vec::new();
    for (third, sum) in [(1.0, side.saturating_sub(1)), (2.0, side.saturating_sub(2))] {
        for i in 0..=sum {
            for j in 0..=sum - i {
                let x = [i, j, sum - i - j].map(|c| c as f64 + third / 3.0);
                let norm = x.iter().map(|c| c * c).sum::<f64>().sqrt();
                points.push(x.map(|c| c / norm));
            }
        }
    }
    points
}

/// A bump of this deviation, in radians, around a corner of the positive sphere.
pub(crate) fn bump(points: &[[f64; 3]], corner: usize, deviation: f64) -> Vec<f64> {
    let angle = |x: &[f64; 3]| x[corner].min(1.0).acos();
    points.iter().map(|x| (-0.5 * (angle(x) / deviation).powi(2)).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_are_where_they_should_be() {
        let clouds = gaussians(4000, 1);
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
        let sphere = positive_sphere(50);
        assert_eq!(sphere.len(), 2500);
        assert!(sphere.iter().flatten().all(|c| *c > 0.0));
        let bump = bump(&sphere, 2, 0.1);
        let peak = (0..2500).max_by(|i, j| bump[*i].total_cmp(&bump[*j])).unwrap();
        assert!(sphere[peak][2] > 0.999);
    }
}
