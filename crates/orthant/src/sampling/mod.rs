//! Exact samples of a factored plan.
//!
//! The plan `P_ij = sum_k u_i Xi_ik Zeta_jk v_j` is a mixture of `r` products of two distributions, one on each
//! cloud. So a pair is drawn in three steps: a feature `k` by its mass, a row `i` given the feature, and a column `j`
//! given the feature; or, where rows are given, a feature given its row and then a column. A point given a feature
//! needs sums over all points for each feature: with two passes over a cloud they serve any number of draws.

pub(crate) mod certificate;
mod pairs;

pub(crate) use pairs::Pairs;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};
use rayon::prelude::*;

use crate::comm::Partition;
use crate::kernel::{Conditional, HalfKernel, LogPass, Separable, Waiting};
use crate::numerics::simd;
use crate::rows::LogRows;

/// Points whose features are listed one by one, with `log u`.
pub(crate) struct Listed<'a> {
    source: &'a dyn LogRows,
    potential: &'a [f64],
    pass: LogPass,
}

impl<'a> Listed<'a> {
    pub(crate) fn new(source: &'a dyn LogRows, potential: &'a [f64]) -> Self {
        let pass = LogPass::new(source, Partition::new(source.span(), PASS_CHUNKS));
        Listed { source, potential, pass }
    }
}

impl Conditional for Listed<'_> {
    fn message(&mut self) -> Vec<f64> {
        let mut z = vec![f64::NEG_INFINITY; self.source.rank()];
        self.pass.column_sums(self.source, self.potential, &mut z);
        z
    }

    fn chunk_sums(&self) -> (&[f64], usize) {
        self.pass.chunk_sums()
    }

    fn find(&mut self, waiting: &mut [Vec<Waiting>]) {
        self.pass.find(self.source, self.potential, waiting);
    }
}

/// Points on a lattice, with `log u`.
pub(crate) struct OnLattice<'a> {
    side: Separable<'a, f64>,
    potential: &'a [f64],
}

impl<'a> OnLattice<'a> {
    pub(crate) fn new(side: Separable<'a, f64>, potential: &'a [f64]) -> Self {
        OnLattice { side, potential }
    }
}

impl Conditional for OnLattice<'_> {
    fn message(&mut self) -> Vec<f64> {
        let mut z = vec![f64::NEG_INFINITY; self.side.rank()];
        self.side.message(self.potential, &mut z);
        z
    }

    fn chunk_sums(&self) -> (&[f64], usize) {
        self.side.chunk_sums()
    }

    fn find(&mut self, waiting: &mut [Vec<Waiting>]) {
        self.side.find(self.potential, waiting);
    }
}

/// Chunks of a cloud at most.
const PASS_CHUNKS: usize = 64;

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

/// A place for each draw: the first at which the sum of some masses reaches a part of the whole.
pub(crate) struct Wheel {
    sums: Vec<f64>,
}

impl Wheel {
    pub(crate) fn new(masses: impl Iterator<Item = f64>) -> Self {
        let mut wheel = Wheel { sums: Vec::new() };
        wheel.refill(masses);
        wheel
    }

    fn refill(&mut self, masses: impl Iterator<Item = f64>) {
        self.sums.clear();
        let mut sum = 0.0;
        self.sums.extend(masses.map(|mass| {
            sum += mass;
            sum
        }));
    }

    pub(crate) fn at(&self, part: f64) -> usize {
        let target = part * self.sums.last().expect("something to draw from");
        self.sums.partition_point(|sum| *sum < target).min(self.sums.len() - 1)
    }
}

/// Pairs of the plan, each from three numbers between 0 and 1: a feature, and a point of either cloud given it.
pub(crate) fn pairs(halves: [&mut dyn Conditional; 2], draws: &[[f64; 3]]) -> Vec<[usize; 2]> {
    let [x, y] = halves;
    let masses: Vec<f64> = x.message().iter().zip(y.message()).map(|(x, y)| x + y).collect();
    let top = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let wheel = Wheel::new(masses.iter().map(|mass| (mass - top).exp()));
    let features: Vec<usize> = draws.par_iter().map(|draw| wheel.at(draw[0])).collect();
    let rows = points(x, &features, |draw| draws[draw][1]);
    let columns = points(y, &features, |draw| draws[draw][2]);
    rows.into_iter().zip(columns).map(|(i, j)| [i, j]).collect()
}

/// A point for each draw, given its feature; `part` are numbers between 0 and 1.
fn points(
    half: &mut dyn Conditional,
    features: &[usize],
    part: impl Fn(usize) -> f64,
) -> Vec<usize> {
    let mut waiting = sorted(half.chunk_sums(), features, part);
    half.find(&mut waiting);
    let mut points = vec![0; features.len()];
    for found in waiting.iter().flatten() {
        points[found.draw] = found.place;
    }
    points
}

/// The draws by chunk of the points, and in each by feature and by what is left to reach.
fn sorted(
    (sums, stride): (&[f64], usize),
    features: &[usize],
    part: impl Fn(usize) -> f64,
) -> Vec<Vec<Waiting>> {
    let chunks = sums.len() / stride;
    let mut keys: Vec<(usize, f64, usize)> =
        features.iter().enumerate().map(|(draw, &feature)| (feature, part(draw), draw)).collect();
    keys.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut waiting = vec![Vec::new(); chunks];
    for same in keys.chunk_by(|a, b| a.0 == b.0) {
        let feature = same[0].0;
        let of = |chunk: usize| sums[chunk * stride + feature];
        // Never one without mass, whatever rounding leaves.
        let next = |from: usize| (from..chunks).find(|chunk| of(*chunk) > 0.0);
        let total: f64 = (0..chunks).map(of).sum();
        let (mut chunk, mut before) = (next(0).unwrap_or(0), 0.0);
        for &(_, part, draw) in same {
            while part * total > before + of(chunk) {
                let Some(after) = next(chunk + 1) else { break };
                before += of(chunk);
                chunk = after;
            }
            let left = (part * total - before).min(of(chunk));
            waiting[chunk].push(Waiting { draw, feature, left, place: 0 });
        }
    }
    waiting
}

/// A place in its row for each draw, by the masses `exp(L_ik + z_k)`, `z` padded; rows that are equal should
/// follow each other. Features given rows, or columns where the source is an exact kernel.
pub(crate) fn along_rows(
    source: &dyn LogRows,
    z: &[f64],
    rows: &[usize],
    part: impl Fn(usize) -> f64 + Sync,
) -> Vec<usize> {
    let rank = source.rank();
    let mut places = vec![0; rows.len()];
    (places.par_chunks_mut(GROUP), rows.par_chunks(GROUP)).into_par_iter().enumerate().for_each(
        |(group, (places, rows))| {
            let mut scratch = vec![0.0; source.scratch()];
            let mut masses = vec![0.0; z.len()];
            let mut wheel = Wheel { sums: Vec::new() };
            let mut of = usize::MAX;
            for (at, (place, &i)) in places.iter_mut().zip(rows).enumerate() {
                if i != of {
                    of = i;
                    row(source, i, &mut masses, &mut scratch);
                    let top = simd::max_sum(&masses, z);
                    simd::exp_slice(&mut masses, z, top);
                    wheel.refill(masses[..rank].iter().copied());
                }
                *place = wheel.at(part(group * GROUP + at));
            }
        },
    );
    places
}

/// Draws that are treated together.
const GROUP: usize = 256;

/// One row of logarithms, padded.
pub(crate) fn row(source: &dyn LogRows, i: usize, out: &mut [f64], scratch: &mut [f64]) {
    source.fill(i, out.len(), out, scratch);
    out[source.rank()..].fill(f64::NEG_INFINITY);
}

/// Partners for given rows of a factored plan.
pub(crate) fn partners(
    x: &dyn LogRows,
    half: &mut dyn Conditional,
    rows: Vec<usize>,
    rng: &mut ChaCha8Rng,
) -> Vec<[usize; 2]> {
    let mut uniform = || -> f64 { Open01.sample(rng) };
    let draws: Vec<[f64; 2]> = rows.iter().map(|_| [uniform(), uniform()]).collect();
    let mut z = half.message();
    z.resize(simd::padded(z.len()), f64::NEG_INFINITY);
    let features = along_rows(x, &z, &rows, |draw| draws[draw][0]);
    let columns = points(half, &features, |draw| draws[draw][1]);
    rows.into_iter().zip(columns).map(|(i, j)| [i, j]).collect()
}

/// `log k_theta(x_i, y_j)` of pairs; those that are ordered by their rows take less time.
pub(crate) fn log_kernel([x, y]: [&dyn LogRows; 2], pairs: &[[usize; 2]]) -> Vec<f64> {
    let stride = simd::padded(x.rank());
    let mut logs = vec![0.0; pairs.len()];
    logs.par_chunks_mut(64).zip(pairs.par_chunks(64)).for_each(|(logs, pairs)| {
        let mut scratch = vec![0.0; x.scratch().max(y.scratch())];
        let (mut of_x, mut of_y) = (vec![0.0; stride], vec![0.0; stride]);
        let mut last = usize::MAX;
        for (log, [i, j]) in logs.iter_mut().zip(pairs) {
            if *i != last {
                row(x, *i, &mut of_x, &mut scratch);
                last = *i;
            }
            row(y, *j, &mut of_y, &mut scratch);
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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::anchors::Lattice;
    use crate::features::FeatureMatrix;
    use crate::measure::Points;

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
        let features: [&dyn LogRows; 2] = [&xi, &zeta];
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
            let mut half = Listed::new(&zeta, &g);
            for [row, j] in partners(&xi, &mut half, vec![i; count], &mut rng) {
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
        let logs = log_kernel(features, &[[1, 2], [1, 600]]);
        for (log, j) in logs.iter().zip([2, 600]) {
            let kernel: f64 = (0..rank).map(|k| entry(1, k) * entry(j, k)).sum();
            assert!((log - kernel.ln()).abs() < 1e-12);
        }
    }

    /// A draw that waits for more than there is, as by rounding, is found at the last point that there is.
    #[test]
    fn draws_beyond_the_sum_are_at_the_last_point() {
        let n = 700;
        let late = |half: &mut dyn Conditional, feature: usize| {
            half.message();
            let (sums, stride) = half.chunk_sums();
            let lists = (0..sums.len() / stride).map(|chunk| {
                let left = sums[chunk * stride + feature] * (1.0 + 1e-9);
                vec![Waiting { draw: 0, feature, left, place: usize::MAX }]
            });
            let mut waiting: Vec<Vec<Waiting>> = lists.collect();
            half.find(&mut waiting);
            waiting.iter().map(|list| list[0].place).collect::<Vec<_>>()
        };
        let potential: Vec<f64> = (0..n).map(|i| f64::from(i).sin()).collect();
        let values: Vec<f64> = (0..n).flat_map(|i| [0.5, f64::from(1 + i % 3)]).collect();
        let xi = FeatureMatrix::new(values, 700, 2).unwrap();
        let found = late(&mut Listed::new(&xi, &potential), 1);
        assert_eq!(found, [255, 511, 699]);

        let lattice = Lattice::covering(&[0.0], &[1.0], 0.05, 0.01, 1e4).unwrap();
        let values: Vec<f64> = (0..n).map(|i| f64::from(i) / f64::from(n - 1)).collect();
        let points = Points::new(values, 1).unwrap();
        let side = Separable::new(&points, &lattice, 40.0);
        let found = late(&mut OnLattice::new(side, &potential), lattice.nodes() / 2);
        assert_eq!(found, [699]);
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
