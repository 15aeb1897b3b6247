//! Anchors where they are needed: a mixture of normal laws, fitted to the midpoints of coupled pairs.
//!
//! Over the kernel, the product of two features is a bump around the midpoint of the two points:
//!
//! ```text
//! phi(x, u) phi(y, u) / k(x, y) = N(u; (x + y) / 2, eps / 8) / rho(u)
//! ```
//!
//! with `rho` the density of the anchors. So only midpoints of pairs that the plan couples matter, and the mean
//! square error is least for `rho` as the square root of their density, once it is smoothed by `eps / 16`. The
//! midpoints are cut into clusters, each with a covariance `S`, a normal law as wide as
//! [`theory::best_q`](crate::anchors::best_q) makes it, and a share of the anchors `sqrt(w) det(S + eps / 16)^{1/4}`:
//! the square root of that cluster. Inside a cluster anchors are Sobol points. The density of the whole mixture
//! stands in the features, so they are unbiased however good the fit is.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};
use rayon::prelude::*;

use super::best_q;
use super::random::{Draw, normals, stream};
use crate::numerics::linalg;

/// A mixture of normal laws.
#[derive(Debug)]
pub(crate) struct Clusters {
    dim: usize,
    parts: Vec<Cluster>,
}

#[derive(Debug)]
struct Cluster {
    /// Of the anchors; their sum is 1.
    share: f64,
    centre: Vec<f64>,
    /// Rows, the widest first, and the deviations along them.
    axes: Vec<f64>,
    deviations: Vec<f64>,
}

/// Anchors, row by row, and the logarithm of their density.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) anchors: Vec<f64>,
    pub(crate) log_density: Vec<f64>,
}

/// Anchors of a cluster, on average, and clusters at most.
const ANCHORS: usize = 32;
const MOST_CLUSTERS: usize = 128;
/// Steps of Lloyd's algorithm: after these few centres hardly move.
const STEPS: usize = 8;

impl Clusters {
    /// For `rank` anchors; `midpoints` has rows of `dim` numbers with a positive weight each.
    pub(crate) fn fit(
        midpoints: &[f64],
        weights: &[f64],
        dim: usize,
        epsilon: f64,
        rank: usize,
        seed: u64,
    ) -> Self {
        let count = (rank / ANCHORS).clamp(1, MOST_CLUSTERS);
        let mut rng = stream(seed, u64::MAX - 1);
        let centres = k_means(midpoints, weights, dim, count, &mut rng);
        let mut sums = Sums::new(dim, centres.len() / dim);
        let nearest = nearest(midpoints, dim, &centres);
        for ((z, weight), &c) in midpoints.chunks_exact(dim).zip(weights).zip(&nearest) {
            sums.add(c, *weight, z, &centres[c * dim..(c + 1) * dim]);
        }
        Clusters { dim, parts: sums.clusters(&centres, epsilon) }
    }

    /// Draws `rank` anchors, at least one from every cluster.
    pub(crate) fn draw(&self, rank: usize, seed: u64) -> Drawn {
        let dim = self.dim;
        let parts = &self.parts[..self.parts.len().min(rank)];
        let total: f64 = parts.iter().map(|c| c.share).sum();
        // One for every cluster, and the rest by their shares.
        let spare = (rank - parts.len()) as f64;
        let (mut sum, mut extra) = (0.0, 0);
        let counts: Vec<usize> = parts
            .iter()
            .map(|cluster| {
                sum += cluster.share;
                let before = extra;
                while extra < rank - parts.len() && extra as f64 + 0.5 < spare * sum / total {
                    extra += 1;
                }
                1 + extra - before
            })
            .collect();
        let mut anchors = Vec::with_capacity(rank * dim);
        for (number, (cluster, count)) in (0..).zip(parts.iter().zip(&counts)) {
            // A sequence of its own for every cluster.
            let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number));
            for z in normals(Draw::Sobol, *count, dim, seed).chunks_exact(dim) {
                anchors.extend(cluster.place(z));
            }
        }
        let constants: Vec<f64> =
            parts.iter().zip(&counts).map(|(c, n)| c.log_peak(*n as f64 / rank as f64)).collect();
        let log_density = anchors
            .par_chunks_exact(dim)
            .map(|u| {
                let logs: Vec<f64> =
                    parts.iter().zip(&constants).map(|(p, c)| c - 0.5 * p.square(u)).collect();
                let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                top + logs.iter().map(|l| (l - top).exp()).sum::<f64>().ln()
            })
            .collect();
        Drawn { anchors, log_density }
    }
}

impl Cluster {
    /// The anchor of standard normals.
    fn place(&self, z: &[f64]) -> Vec<f64> {
        let mut u = self.centre.clone();
        for ((axis, deviation), z) in self.axes.chunks_exact(u.len()).zip(&self.deviations).zip(z) {
            u.iter_mut().zip(axis).for_each(|(u, axis)| *u += deviation * z * axis);
        }
        u
    }

    /// Logarithm of the density at the centre, times a share.
    fn log_peak(&self, share: f64) -> f64 {
        let normal = |s: &f64| s.ln() + 0.5 * std::f64::consts::TAU.ln();
        share.ln() - self.deviations.iter().map(normal).sum::<f64>()
    }

    /// Squared distance from the centre, in deviations.
    fn square(&self, u: &[f64]) -> f64 {
        let from = |axis: &[f64]| -> f64 {
            axis.iter().zip(u).zip(&self.centre).map(|((a, u), c)| a * (u - c)).sum()
        };
        (self.axes.chunks_exact(u.len()).zip(&self.deviations))
            .map(|(axis, deviation)| (from(axis) / deviation).powi(2))
            .sum()
    }
}

/// Second moments of clusters.
struct Sums {
    dim: usize,
    weights: Vec<f64>,
    /// Upper triangles are enough, but squares are simpler.
    squares: Vec<Vec<f64>>,
    counts: Vec<f64>,
}

impl Sums {
    fn new(dim: usize, count: usize) -> Self {
        Sums {
            dim,
            weights: vec![0.0; count],
            squares: vec![vec![0.0; dim * dim]; count],
            counts: vec![0.0; count],
        }
    }

    fn add(&mut self, c: usize, weight: f64, z: &[f64], centre: &[f64]) {
        let from: Vec<f64> = z.iter().zip(centre).map(|(z, c)| z - c).collect();
        for (row, x) in self.squares[c].chunks_exact_mut(self.dim).zip(&from) {
            row.iter_mut().zip(&from).for_each(|(s, y)| *s += weight * x * y);
        }
        self.weights[c] += weight;
        self.counts[c] += 1.0;
    }

    /// The normal laws. Covariances of few points lean on that of all, as if `dim` more points had it.
    fn clusters(self, centres: &[f64], epsilon: f64) -> Vec<Cluster> {
        let dim = self.dim;
        let total: f64 = self.weights.iter().sum();
        let mut within = vec![0.0; dim * dim];
        for square in &self.squares {
            within.iter_mut().zip(square).for_each(|(w, s)| *w += s / total);
        }
        let mut parts: Vec<(f64, Cluster)> = (0..self.weights.len())
            .into_par_iter()
            .filter(|c| self.weights[*c] > 0.0)
            .map(|c| {
                let own = self.counts[c] / (self.counts[c] + dim as f64);
                let covariance: Vec<f64> = (self.squares[c].iter().zip(&within))
                    .map(|(s, w)| own * s / self.weights[c] + (1.0 - own) * w)
                    .collect();
                let (values, vectors) = linalg::eigen(&covariance, dim);
                let variances: Vec<f64> = values.iter().rev().map(|v| v.max(0.0)).collect();
                let root = 0.5 * (self.weights[c] / total).ln()
                    + 0.25 * variances.iter().map(|v| (v + epsilon / 16.0).ln()).sum::<f64>();
                let deviation = |v: &f64| (0.25 * epsilon * best_q(v / epsilon)).sqrt();
                let cluster = Cluster {
                    share: 0.0,
                    centre: centres[c * dim..(c + 1) * dim].to_vec(),
                    axes: vectors.chunks_exact(dim).rev().flatten().copied().collect(),
                    deviations: variances.iter().map(deviation).collect(),
                };
                (root, cluster)
            })
            .collect();
        let top = parts.iter().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = parts.iter().map(|p| (p.0 - top).exp()).sum();
        for (root, cluster) in &mut parts {
            cluster.share = (*root - top).exp() / sum;
        }
        parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        parts.into_iter().map(|(_, cluster)| cluster).collect()
    }
}

/// Centres of at most `count` clusters, row by row: Lloyd's algorithm from the start of Arthur & Vassilvitskii,
/// *k-means++* (2007).
fn k_means(
    points: &[f64],
    weights: &[f64],
    dim: usize,
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<f64> {
    let mut uniform = || -> f64 { Open01.sample(rng) };
    let mut centres: Vec<f64> = Vec::with_capacity(count * dim);
    // Weight times the squared distance from the centres so far.
    let mut far = weights.to_vec();
    let mut squares = vec![f64::INFINITY; weights.len()];
    while centres.len() < count * dim {
        let total: f64 = far.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            // Fewer distinct points than clusters.
            break;
        }
        let mut left = uniform() * total;
        let found = far.iter().position(|f| {
            left -= f;
            left <= 0.0
        });
        let chosen = found.unwrap_or(far.len() - 1);
        let centre = points[chosen * dim..(chosen + 1) * dim].to_vec();
        for ((z, s), (f, w)) in
            points.chunks_exact(dim).zip(&mut squares).zip(far.iter_mut().zip(weights))
        {
            *s = s.min(square(z, &centre));
            *f = w * *s;
        }
        centres.extend(centre);
    }
    for _ in 0..STEPS {
        let nearest = nearest(points, dim, &centres);
        let mut sums = vec![0.0; centres.len()];
        let mut masses = vec![0.0; centres.len() / dim];
        for ((z, w), &c) in points.chunks_exact(dim).zip(weights).zip(&nearest) {
            masses[c] += w;
            sums[c * dim..(c + 1) * dim].iter_mut().zip(z).for_each(|(s, z)| *s += w * z);
        }
        for (c, mass) in masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            for (centre, sum) in centres[c * dim..].iter_mut().zip(&sums[c * dim..(c + 1) * dim]) {
                *centre = sum / mass;
            }
        }
    }
    centres
}

/// The nearest of the centres for each point.
fn nearest(points: &[f64], dim: usize, centres: &[f64]) -> Vec<usize> {
    let find = |z: &[f64]| {
        let squares = centres.chunks_exact(dim).map(|c| square(z, c)).enumerate();
        squares.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(c, _)| c)
    };
    points.par_chunks_exact(dim).with_min_len(64).map(find).collect()
}

fn square(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of three clusters, one of them flat.
    fn example(dim: usize) -> (Vec<f64>, Vec<f64>) {
        let z = normals(Draw::Iid, 900, dim, 4);
        let mut points = z.clone();
        for (i, z) in points.chunks_exact_mut(dim).enumerate() {
            z[0] = [0.0, 6.0, -4.0][i % 3] + [1.0, 0.2, 0.5][i % 3] * z[0];
            z[1] *= [1.0, 0.0, 2.0][i % 3];
        }
        let weights = (0..900).map(|i| 1.0 + f64::from(i % 5)).collect();
        (points, weights)
    }

    #[test]
    fn the_density_is_that_of_the_draws() {
        // E_rho[N(u; m, s) / rho(u)] = 1 for every m: over many draws of all clusters.
        let (dim, epsilon) = (3, 0.7);
        let (points, weights) = example(dim);
        let clusters = Clusters::fit(&points, &weights, dim, epsilon, 2000, 3);
        assert!(clusters.parts.len() > 30);
        let shares: f64 = clusters.parts.iter().map(|c| c.share).sum();
        assert!((shares - 1.0).abs() < 1e-12);
        for at in [0, 1, 2, 500] {
            let m = &points[at * dim..(at + 1) * dim];
            let runs: Vec<f64> = (0..40)
                .map(|seed| {
                    let drawn = clusters.draw(2000, seed);
                    assert_eq!(drawn.log_density.len(), 2000);
                    let peak = 0.5 * dim as f64 * (4.0 / (std::f64::consts::PI * epsilon)).ln();
                    let each = drawn.anchors.chunks_exact(dim).zip(&drawn.log_density);
                    each.map(|(u, l)| (peak - 4.0 * square(u, m) / epsilon - l).exp()).sum::<f64>()
                        / 2000.0
                })
                .collect();
            let mean = runs.iter().sum::<f64>() / 40.0;
            let error = (runs.iter().map(|r| (r - mean).powi(2)).sum::<f64>()).sqrt() / 40.0;
            assert!(error < 0.03 && (mean - 1.0).abs() < 4.0 * error, "{mean} +- {error}");
        }
    }

    #[test]
    fn few_distinct_points_and_few_anchors_are_no_trouble() {
        let points = [1.0, 2.0].repeat(50);
        let clusters = Clusters::fit(&points, &[1.0; 50], 2, 0.1, 4096, 0);
        assert_eq!(clusters.parts.len(), 1);
        for rank in [1, 2, 5] {
            let drawn = clusters.draw(rank, 1);
            assert_eq!(drawn.anchors.len(), 2 * rank);
            assert!(drawn.log_density.iter().all(|l| l.is_finite()));
        }
        let (points, weights) = example(2);
        let clusters = Clusters::fit(&points, &weights, 2, 0.1, 4096, 0);
        let drawn = clusters.draw(3, 1);
        assert_eq!((drawn.anchors.len(), drawn.log_density.len()), (6, 3));
    }
}
