//! Exact samples of a factored plan.
//!
//! The plan `P_ij = sum_k u_i Xi_ik Zeta_jk v_j` is a mixture of `r` products of two distributions, one on each
//! cloud. So a pair is drawn in three steps: a row `i` from the first marginal, a feature `k` given the row, and a
//! column `j` given the feature. The last needs sums over all points for each feature; with two passes over the
//! second cloud they serve any number of pairs.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};
use rayon::prelude::*;

use crate::kernel::{LogPass, LogRows, Partition};
use crate::simd;

/// A factored plan with potentials `f = log u`, `g = log v`.
pub(crate) struct Mixture<'a> {
    pub(crate) x: &'a dyn LogRows,
    pub(crate) y: &'a dyn LogRows,
    pub(crate) g: &'a [f64],
}

/// A draw that waits for its column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// Which draw it is.
    pub(crate) draw: usize,
    pub(crate) feature: usize,
    /// What the sum over the columns has to reach.
    pub(crate) left: f64,
    /// The column, once it is found.
    pub(crate) column: usize,
}

/// Chunks of the second cloud at most.
const CHUNKS: usize = 64;

/// `count` of some points, drawn by weight, one in each of as many equal parts of their sum.
pub(crate) fn stratified(
    points: &[usize],
    weights: &[f64],
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<usize> {
    let total: f64 = points.iter().map(|&i| weights[i]).sum();
    let (mut at, mut sum) = (0, weights[points[0]]);
    (0..count)
        .map(|s| {
            let offset: f64 = Open01.sample(rng);
            let part = (s as f64 + offset) / count as f64;
            while sum < part * total && at + 1 < points.len() {
                at += 1;
                sum += weights[points[at]];
            }
            points[at]
        })
        .collect()
}

impl Mixture<'_> {
    /// Draws a partner for each of some rows.
    pub(crate) fn sample(&self, rows: Vec<usize>, rng: &mut ChaCha8Rng) -> Vec<[usize; 2]> {
        let mut uniform = || -> f64 { Open01.sample(rng) };
        let draws: Vec<[f64; 2]> = rows.iter().map(|_| [uniform(), uniform()]).collect();
        let mut pass = LogPass::new(self.y, Partition::new(self.y.rows(), CHUNKS));
        let mut z = vec![f64::NEG_INFINITY; pass.stride()];
        pass.column_sums(self.y, self.g, &mut z[..self.y.rank()]);
        let features = self.features(&rows, &draws, &z);
        let mut waiting = sorted(&pass, &features, &draws);
        pass.find(self.y, self.g, &mut waiting);
        let mut pairs: Vec<[usize; 2]> = rows.into_iter().map(|i| [i, 0]).collect();
        for found in waiting.iter().flatten() {
            pairs[found.draw][1] = found.column;
        }
        pairs
    }

    /// A feature for each draw, given its row.
    fn features(&self, rows: &[usize], draws: &[[f64; 2]], z: &[f64]) -> Vec<usize> {
        let stride = z.len();
        let mut features = vec![0; rows.len()];
        (features.par_chunks_mut(256), rows.par_chunks(256), draws.par_chunks(256))
            .into_par_iter()
            .for_each(|(features, rows, draws)| {
                let mut scratch = vec![0.0; self.x.scratch()];
                let mut masses = vec![0.0; stride];
                let mut of = usize::MAX;
                for ((feature, &i), draw) in features.iter_mut().zip(rows).zip(draws) {
                    if i != of {
                        of = i;
                        row(self.x, i, &mut masses, &mut scratch);
                        let top = simd::max_sum(&masses, z);
                        simd::exp_slice(&mut masses, z, top);
                        let mut sum = 0.0;
                        for mass in &mut masses {
                            sum += *mass;
                            *mass = sum;
                        }
                    }
                    let total = masses[stride - 1];
                    *feature =
                        masses.partition_point(|sum| *sum < draw[0] * total).min(self.x.rank() - 1);
                }
            });
        features
    }

    /// `log k_theta(x_i, y_j)` of pairs that are ordered by their rows.
    pub(crate) fn log_kernel(&self, pairs: &[[usize; 2]]) -> Vec<f64> {
        let stride = simd::padded(self.x.rank());
        let mut logs = vec![0.0; pairs.len()];
        logs.par_chunks_mut(64).zip(pairs.par_chunks(64)).for_each(|(logs, pairs)| {
            let mut scratch = vec![0.0; self.x.scratch().max(self.y.scratch())];
            let (mut of_x, mut of_y) = (vec![0.0; stride], vec![0.0; stride]);
            let mut last = usize::MAX;
            for (log, [i, j]) in logs.iter_mut().zip(pairs) {
                if *i != last {
                    row(self.x, *i, &mut of_x, &mut scratch);
                    last = *i;
                }
                row(self.y, *j, &mut of_y, &mut scratch);
                let top = simd::max_sum(&of_y, &of_x);
                *log = if top > f64::NEG_INFINITY {
                    top + simd::exp_slice(&mut of_y, &of_x, top).ln()
                } else {
                    top
                };
            }
        });
        logs
    }
}

/// One row of logarithms, padded.
fn row(source: &dyn LogRows, i: usize, out: &mut [f64], scratch: &mut [f64]) {
    source.fill(i, out.len(), out, scratch);
    out[source.rank()..].fill(f64::NEG_INFINITY);
}

/// The draws by chunk of the second cloud, and in each by feature and by what is left to reach.
fn sorted(pass: &LogPass, features: &[usize], draws: &[[f64; 2]]) -> Vec<Vec<Waiting>> {
    let (sums, stride) = pass.chunk_sums();
    let chunks = sums.len() / stride;
    let mut waiting = vec![Vec::new(); chunks];
    for (draw, (&feature, [_, part])) in features.iter().zip(draws).enumerate() {
        let of = |c: usize| sums[c * stride + feature];
        let total: f64 = (0..chunks).map(of).sum();
        let mut left = part * total;
        let mut chunk = 0;
        while chunk + 1 < chunks && left > of(chunk) {
            left -= of(chunk);
            chunk += 1;
        }
        waiting[chunk].push(Waiting { draw, feature, left, column: 0 });
    }
    for list in &mut waiting {
        list.sort_by(|a, b| a.feature.cmp(&b.feature).then(a.left.total_cmp(&b.left)));
    }
    waiting
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::features::FeatureMatrix;

    /// Draws have the frequencies of the plan, over several chunks of the second cloud.
    #[test]
    fn pairs_are_those_of_the_plan() {
        let (n, m, rank) = (3, 700, 5);
        let entry = |i: usize, k: usize| 0.05 + ((i * 7 + k * 13) % 11) as f64;
        let of = |rows: usize| {
            let values = (0..rows * rank).map(|at| entry(at / rank, at % rank));
            FeatureMatrix::new(values.collect::<Vec<f64>>(), rows, rank).unwrap()
        };
        let (xi, zeta) = (of(n), of(m));
        let g: Vec<f64> =
            (0..m).map(|j| ((j % 17) as f64 / 3.0).sin() + j as f64 / 200.0).collect();
        let mixture = Mixture { x: &&xi, y: &&zeta, g: &g };
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let count = 200_000;
        for i in 0..n {
            let plan: Vec<f64> = (0..m)
                .map(|j| {
                    let kernel: f64 = (0..rank).map(|k| entry(i, k) * entry(j, k)).sum();
                    kernel * g[j].exp()
                })
                .collect();
            let total: f64 = plan.iter().sum();
            let mut found = vec![0.0; m];
            for [row, j] in mixture.sample(vec![i; count], &mut rng) {
                assert_eq!(row, i);
                found[j] += 1.0;
            }
            // Chi squared, with m - 1 degrees of freedom.
            let chi: f64 = (plan.iter().zip(&found))
                .map(|(p, f)| (f - count as f64 * p / total).powi(2) / (count as f64 * p / total))
                .sum();
            let degrees = (m - 1) as f64;
            assert!((chi - degrees).abs() < 5.0 * (2.0 * degrees).sqrt(), "{chi} for {degrees}");
        }
        let logs = mixture.log_kernel(&[[1, 2], [1, 600]]);
        for (log, j) in logs.iter().zip([2, 600]) {
            let kernel: f64 = (0..rank).map(|k| entry(1, k) * entry(j, k)).sum();
            assert!((log - kernel.ln()).abs() < 1e-12);
        }
    }

    #[test]
    fn stratified_draws_have_the_weights() {
        let weights = [0.1, 0.0, 0.4, 0.25, 0.25];
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let drawn = stratified(&[0, 1, 2, 4], &weights, 1000, &mut rng);
        let times = |i: usize| drawn.iter().filter(|d| **d == i).count() as f64;
        for (i, expected) in [(0, 133.3), (1, 0.0), (2, 533.3), (3, 0.0), (4, 333.3)] {
            assert!((times(i) - expected).abs() < 2.0, "{i}: {}", times(i));
        }
    }
}
