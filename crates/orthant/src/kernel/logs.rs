//! Exact passes over rows of logarithms, without any stored matrix.

use std::cmp::Ordering;
use std::ops::Range;

use rayon::prelude::*;

use super::pool::Pool;
use super::target::Tally;
use super::tiles::{aligned, sized};
use super::{DRAW_ROUNDS, Open, Waiting};
use crate::comm::{Partition, Span};
use crate::numerics::ExactSums;
use crate::numerics::simd::{self, Aligned, ColumnSums, Float};
use crate::rows::{LEAST, LogRows};

/// The passes over one source, with their scratch space: nothing is allocated after `new`.
#[derive(Debug)]
pub(crate) struct LogPass {
    pub(super) partition: Partition,
    pub(super) stride: usize,
    /// Rows that are evaluated together.
    group: usize,
    pub(super) rank: usize,
    /// What tiles start from, and the same in their precision.
    pub(super) start: Vec<f64>,
    pub(super) rounded: Vec<f64>,
    pub(super) scratch: Pool<Scratch>,
    /// For each chunk: sums and maxima of the columns.
    pub(super) sums: Vec<f64>,
    pub(super) most: Vec<f64>,
    pub(super) errors: Vec<f64>,
    pub(super) tallies: Vec<f64>,
    /// Sums and maxima over all chunks.
    pub(super) exact: ExactSums,
    pub(super) total: Vec<f64>,
    top: Vec<f64>,
}

/// What a thread needs for a pass.
#[derive(Debug)]
pub(super) struct Scratch {
    /// A group of rows, and what their source needs.
    logs: Aligned<f64>,
    own: Vec<f64>,
    /// A block of rows, as its tiles want it: see [`crate::rows::Tiles::load`].
    pub(super) packed: Vec<f64>,
    pub(super) whole: Vec<f64>,
    pub(super) common: Vec<f64>,
    /// Two tiles.
    pub(super) tile: Vec<f64>,
    /// The exponentials of a block.
    pub(super) kept: Aligned<f64>,
    /// For every row of a block and every panel: the largest term, and the sum relative to it.
    pub(super) tops: Vec<f64>,
    pub(super) parts: Vec<f64>,
}

impl Default for Scratch {
    fn default() -> Self {
        let [own, packed, whole, common, tile, tops, parts] = [const { Vec::new() }; 7];
        let [logs, kept] = [Aligned::zeros(0), Aligned::zeros(0)];
        Scratch { logs, own, packed, whole, common, tile, kept, tops, parts }
    }
}

/// Rows that differ a little from those that are meant: the logarithms of two entries of a row by no more than
/// `slack`.
pub(crate) struct Nearly<'a> {
    pub(crate) slack: f64,
    /// The entry that is meant, of a row and a column.
    pub(crate) log: &'a (dyn Fn(usize, usize) -> f64 + Sync),
    /// `log sum_k exp(L_ik + z_k)` of these.
    pub(crate) sums: &'a [f64],
}

/// The accumulators of one chunk.
pub(super) struct Chunk<'a> {
    /// Its first row.
    pub(super) first: usize,
    pub(super) sums: &'a mut [f64],
    pub(super) most: &'a mut [f64],
    pub(super) error: &'a mut f64,
}

impl LogPass {
    /// Scratch space for passes over `source`, cut as `partition` says.
    /// For rows of features, in a usual number of chunks.
    pub(crate) fn of(source: &dyn LogRows) -> Self {
        LogPass::new(source, Partition::new(source.span(), 64))
    }

    pub(crate) fn new(source: &dyn LogRows, partition: Partition) -> Self {
        let stride = simd::padded(source.rank());
        // A group of rows should stay in the second-level cache.
        let group = (8192 / stride).clamp(source.group(), 8);
        let chunks = partition.count();
        let mut pass = LogPass {
            partition,
            stride,
            group,
            rank: source.rank(),
            start: Vec::new(),
            rounded: Vec::new(),
            scratch: Pool::default(),
            sums: vec![0.0; chunks * stride],
            most: vec![0.0; chunks * stride],
            errors: vec![0.0; chunks],
            tallies: vec![0.0; chunks * Tally::LEN],
            exact: ExactSums::new(stride),
            total: vec![0.0; stride],
            top: vec![0.0; stride],
        };
        pass.prepare_tiles::<f64>(source, false);
        pass
    }

    /// Length of a padded row.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Calls `each` for groups of rows, in parallel over the chunks. It gets the chunk's share of
    /// whatever is cut along with the rows, the numbers of the rows (in the chunk), their logarithms
    /// (which may be overwritten), and the accumulators of the chunk.
    fn run<S: Send>(
        &mut self,
        source: &dyn LogRows,
        shares: impl IndexedParallelIterator<Item = S>,
        each: impl Fn(&mut S, Range<usize>, &mut [f64], &mut Chunk<'_>) + Sync,
    ) {
        let (stride, group, chunk) = (self.stride, self.group, self.partition.chunk());
        let (rows, rank, own) = (source.rows(), source.rank(), source.scratch());
        self.scratch.prepare(|scratch| {
            aligned::<f64>(&mut scratch.logs, group * stride);
            sized(&mut scratch.own, own);
        });
        let scratch = &self.scratch;
        self.sums.fill(0.0);
        self.most.fill(f64::NEG_INFINITY);
        self.errors.fill(0.0);
        (
            shares,
            self.sums.par_chunks_mut(stride),
            self.most.par_chunks_mut(stride),
            self.errors.par_iter_mut(),
        )
            .into_par_iter()
            .enumerate()
            .with_max_len(1)
            .for_each(|(c, (mut share, sums, most, error))| {
                let first = c * chunk;
                let mut accumulators = Chunk { first, sums, most, error };
                let len = chunk.min(rows - first);
                scratch.with(|Scratch { logs, own: of_source, .. }| {
                    let logs = aligned::<f64>(logs, group * stride);
                    let own = sized(of_source, own);
                    for start in (0..len).step_by(group) {
                        let range = start..len.min(start + group);
                        let logs = &mut logs[..range.len() * stride];
                        source.fill(first + start, stride, logs, own);
                        for row in logs.chunks_exact_mut(stride) {
                            row[rank..].fill(f64::NEG_INFINITY);
                        }
                        each(&mut share, range, logs, &mut accumulators);
                    }
                });
            });
    }

    /// `A_ik = exp(L_ik + z_k - s_i)` with `s_i = max_k (L_ik + z_k)`; `z` and `features` padded.
    pub(crate) fn scaled_exp<T: Float>(
        &mut self,
        source: &dyn LogRows,
        z: &[f64],
        features: &mut [T],
        scale: &mut [f64],
    ) {
        let (stride, chunk) = (self.stride, self.partition.chunk());
        let shares = (features.par_chunks_mut(chunk * stride), scale.par_chunks_mut(chunk));
        let rank = source.rank();
        let ends = || {
            let z = z[..rank].iter();
            z.fold([f64::NEG_INFINITY; 2], |[high, low], z| [z.max(high), (-z).max(low)])
        };
        if let Some(top) = plain_top(source, ends) {
            let mut w = std::mem::take(&mut self.total);
            w.iter_mut().zip(z).for_each(|(w, z)| *w = (z - top).exp());
            self.run(
                &Plain(source),
                shares.into_par_iter(),
                |(features, scale), rows, values, _| {
                    let features = &mut features[rows.start * stride..rows.end * stride];
                    for ((out, s), row) in features
                        .chunks_exact_mut(stride)
                        .zip(&mut scale[rows])
                        .zip(values.chunks_exact_mut(stride))
                    {
                        *s = top + simd::scale_row(&mut row[..rank], &w, &mut out[..rank]).ln();
                    }
                },
            );
            self.total = w;
            return;
        }
        self.run(source, shares.into_par_iter(), |(features, scale), rows, logs, _| {
            let features = &mut features[rows.start * stride..rows.end * stride];
            for ((out, s), row) in features
                .chunks_exact_mut(stride)
                .zip(&mut scale[rows])
                .zip(logs.chunks_exact(stride))
            {
                *s = simd::max_sum(row, z);
                simd::exp_row(row, z, *s, out);
            }
        });
    }

    /// [`LogPass::column_sums`] of rows that are there as numbers, if they are and that loses nothing.
    pub(super) fn plain_column_sums(
        &mut self,
        source: &dyn LogRows,
        f: &[f64],
        out: &mut [f64],
    ) -> bool {
        let ends = || self.partition.span().maxima(|i| [f[i], -f[i]]);
        let Some(top) = plain_top(source, ends) else { return false };
        let (stride, rank) = (self.stride, source.rank());
        let shares = f.par_chunks(self.partition.chunk());
        self.run(&Plain(source), shares, |f, rows, values, chunk| {
            for (row, f) in values.chunks_exact(stride).zip(&f[rows]) {
                simd::accumulate(&row[..rank], (f - top).exp(), chunk.sums);
            }
        });
        self.top.fill(top);
        self.partition.span().sum_afresh(&mut self.exact, &self.sums, &mut self.total);
        for (out, sum) in out.iter_mut().zip(&self.total) {
            *out = top + sum.ln();
        }
        true
    }

    /// [`LogPass::row_sums`] of rows without tiles: those of features, which are short.
    pub(super) fn sums_of_rows(&mut self, source: &dyn LogRows, z: &[f64], out: &mut [f64]) {
        let stride = self.stride;
        let shares = out.par_chunks_mut(self.partition.chunk());
        self.run(source, shares, |out, rows, logs, _| {
            for (out, row) in out[rows].iter_mut().zip(logs.chunks_exact_mut(stride)) {
                let top = simd::max_sum(row, z);
                *out = if top > f64::NEG_INFINITY {
                    top + simd::exp_slice(row, z, top).ln()
                } else {
                    top
                };
            }
        });
    }

    /// Adds the rows of such a source to the columns of their chunks.
    pub(super) fn add_whole_rows(&mut self, source: &dyn LogRows, f: &[f64]) {
        let shares = f.par_chunks(self.partition.chunk());
        self.run(source, shares, |f, rows, logs, chunk| {
            ColumnSums { most: chunk.most, sum: chunk.sums }.add(logs, &f[rows]);
        });
    }

    /// Adds the columns of all chunks, each relative to its largest term.
    pub(super) fn add_columns(&mut self, out: &mut [f64]) {
        self.partition.span().max_chunks(&self.most, &mut self.top);
        for (sums, most) in
            self.sums.chunks_exact_mut(self.stride).zip(self.most.chunks_exact(self.stride))
        {
            for ((sum, most), top) in sums.iter_mut().zip(most).zip(&self.top) {
                if *most > f64::NEG_INFINITY {
                    *sum *= (most - top).exp();
                }
            }
        }
        self.partition.span().sum_afresh(&mut self.exact, &self.sums, &mut self.total);
        for ((out, sum), top) in out.iter_mut().zip(&self.total).zip(&self.top) {
            *out = if *top > f64::NEG_INFINITY { top + sum.ln() } else { *top };
        }
    }

    /// After [`LogPass::column_sums`]: for each chunk, its part of every column, all of a column relative to one number;
    /// and the length of a row of them.
    pub(crate) fn chunk_sums(&self) -> (&[f64], usize) {
        (&self.sums, self.stride)
    }

    /// After [`LogPass::column_sums`] of the same `f`: finds the rows at which sums along columns reach what draws
    /// wait for, which are sorted, a list a chunk.
    pub(crate) fn find(&mut self, source: &dyn LogRows, f: &[f64], waiting: &mut [Vec<Waiting>]) {
        let mut open: Vec<Vec<Open>> = waiting.iter().map(|list| Open::all(list)).collect();
        // A column without entries has no draws.
        let low: Vec<f64> =
            self.top.iter().map(|top| if top.is_finite() { -top } else { 0.0 }).collect();
        for _ in 0..DRAW_ROUNDS {
            if open.iter().all(Vec::is_empty) {
                return;
            }
            self.find_once(source, f, &low, &mut open, waiting);
            for (open, waiting) in open.iter_mut().zip(&mut *waiting) {
                for open in open {
                    open.restart(waiting);
                }
            }
        }
    }

    /// `low` are minus the logarithms that sums are relative to.
    fn find_once(
        &mut self,
        source: &dyn LogRows,
        f: &[f64],
        low: &[f64],
        open: &mut [Vec<Open>],
        waiting: &mut [Vec<Waiting>],
    ) {
        let stride = self.stride;
        let shares = (f.par_chunks(self.partition.chunk()), open, waiting).into_par_iter();
        self.run(source, shares, |(f, open, waiting), rows, logs, chunk| {
            // Many exponentials are quicker together.
            let together = 8 * open.len() > stride;
            if together {
                chunk.sums.fill(0.0);
                for (row, f) in logs.chunks_exact_mut(stride).zip(&f[rows.clone()]) {
                    simd::exp_slice(row, low, -f);
                    simd::accumulate(row, 1.0, chunk.sums);
                }
            }
            for open in open.iter_mut() {
                let k = open.feature;
                let sum = open.sum + chunk.sums[k];
                if !together || open.is_due(sum, waiting) {
                    for (j, row) in rows.clone().zip(logs.chunks_exact(stride)) {
                        let mass = if together { row[k] } else { (row[k] + f[j] + low[k]).exp() };
                        open.add(mass, chunk.first + j, waiting);
                    }
                }
                if together {
                    open.reach(sum, waiting);
                }
            }
            open.retain(|open| !open.is_done());
        });
    }

    /// Calls `each` with the masses `exp(f_i + L_ik + z_k)` of groups of rows, `z` padded, in parallel over the chunks.
    /// It gets the chunk's share of whatever is cut along with the rows, their numbers (in the chunk), and the number
    /// of the first of them (in the source).
    pub(crate) fn masses<S: Send>(
        &mut self,
        source: &dyn LogRows,
        f: &[f64],
        z: &[f64],
        shares: impl IndexedParallelIterator<Item = S>,
        each: impl Fn(&mut S, Range<usize>, usize, &[f64]) + Sync,
    ) {
        let stride = self.stride;
        self.run(source, shares, |share, rows, logs, chunk| {
            let first = chunk.first + rows.start;
            for (row, f) in logs.chunks_exact_mut(stride).zip(&f[first..]) {
                let top = simd::max_sum(row, z);
                if top > f64::NEG_INFINITY {
                    simd::exp_slice(row, z, top);
                    let factor = (f + top).exp();
                    for p in &mut *row {
                        *p *= factor;
                    }
                } else {
                    row.fill(0.0);
                }
            }
            each(share, rows, first, logs);
        });
    }

    /// The means of some columns of values under every feature, with weights `exp(L_ik + f_i)`: a padded row a
    /// column. `z` is what [`LogPass::column_sums`] has for `f`.
    pub(crate) fn column_means(
        &mut self,
        source: &dyn LogRows,
        f: &[f64],
        z: &[f64],
        columns: &[Vec<f64>],
    ) -> Vec<f64> {
        let (stride, chunk) = (self.stride, self.partition.chunk());
        let width = (1 + columns.len()) * stride;
        let mut low = vec![0.0; stride];
        for (low, z) in low.iter_mut().zip(z).filter(|(_, z)| z.is_finite()) {
            *low = -z;
        }
        let mut sums = vec![0.0; self.partition.count() * width];
        let shares = (f.par_chunks(chunk), sums.par_chunks_mut(width)).into_par_iter();
        self.run(source, shares, |(f, sums), rows, logs, chunk| {
            let (ones, sums) = sums.split_at_mut(stride);
            for (row, logs) in rows.zip(logs.chunks_exact_mut(stride)) {
                simd::exp_slice(logs, &low, -f[row]);
                simd::accumulate(logs, 1.0, ones);
                for (sums, column) in sums.chunks_exact_mut(stride).zip(columns) {
                    simd::accumulate(logs, column[chunk.first + row], sums);
                }
            }
        });
        let mut ones = vec![0.0; width];
        self.partition.sum(&sums, &mut ones);
        let mut means = ones.split_off(stride);
        for means in means.chunks_exact_mut(stride) {
            // A feature that no point has takes part in nothing.
            for (mean, one) in means.iter_mut().zip(&ones).filter(|(_, one)| **one > 0.0) {
                *mean /= one;
            }
        }
        means
    }

    /// `sums_i = log sum_k exp(L_ik + z_k)`, and the means of some columns of values of the features with the weights
    /// `exp(L_ik + z_k)`, a row a point; `z` and the columns are padded.
    pub(crate) fn row_means(
        &mut self,
        source: &dyn LogRows,
        z: &[f64],
        columns: &[f64],
        sums: &mut [f64],
        means: &mut [f64],
    ) {
        let (stride, chunk) = (self.stride, self.partition.chunk());
        let count = columns.len() / stride;
        let shares = (sums.par_chunks_mut(chunk), means.par_chunks_mut(chunk * count));
        self.run(source, shares.into_par_iter(), |(sums, means), rows, logs, _| {
            for (row, logs) in rows.zip(logs.chunks_exact_mut(stride)) {
                let top = simd::max_sum(logs, z);
                sums[row] = top;
                if top == f64::NEG_INFINITY {
                    continue;
                }
                let sum = simd::exp_slice(logs, z, top);
                sums[row] += sum.ln();
                let means = &mut means[row * count..(row + 1) * count];
                for (mean, column) in means.iter_mut().zip(columns.chunks_exact(stride)) {
                    *mean = simd::dot(logs, column) / sum;
                }
            }
        });
    }

    /// The `count` largest of the weights `exp(L_ik + z_k)` of every row, over their sum, with their columns; `z` is
    /// padded. See [`Nearly`] for rows that are not quite those that are meant.
    pub(crate) fn partners(
        &mut self,
        source: &dyn LogRows,
        z: &[f64],
        count: usize,
        nearly: Option<&Nearly<'_>>,
        out: &mut [Vec<(usize, f64)>],
    ) {
        let (stride, rank) = (self.stride, source.rank());
        let shares = out.par_chunks_mut(self.partition.chunk());
        self.run(source, shares, |out, rows, logs, chunk| {
            for (row, logs) in rows.zip(logs.chunks_exact_mut(stride)) {
                let top = simd::max_sum(logs, z);
                if count == 0 || top == f64::NEG_INFINITY {
                    continue;
                }
                let entries = logs[..rank].iter().zip(z).map(|(l, z)| l + z);
                let mut found = largest(entries, count, nearly.map_or(0.0, |n| n.slack));
                let sum = match nearly {
                    None => top + simd::exp_slice(logs, z, top).ln(),
                    Some(nearly) => {
                        let i = chunk.first + row;
                        for (k, log) in &mut found {
                            *log = (nearly.log)(i, *k) + z[*k];
                        }
                        nearly.sums[i]
                    }
                };
                found.sort_unstable_by(falling);
                found.truncate(count);
                for (_, log) in &mut found {
                    *log = (*log - sum).exp();
                }
                found.retain(|(_, share)| *share > 0.0);
                out[row] = found;
            }
        });
    }

    pub(super) fn error(&self) -> f64 {
        self.partition.span().sum_few::<1>(&self.errors)[0]
    }
}

/// Rows as they are, in place of their logarithms.
struct Plain<'a>(&'a dyn LogRows);

impl LogRows for Plain<'_> {
    fn span(&self) -> &Span {
        self.0.span()
    }

    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn scratch(&self) -> usize {
        self.0.scratch()
    }

    fn group(&self) -> usize {
        self.0.group()
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], _: &mut [f64]) {
        self.0.fill_plain(first, stride, out);
    }
}

/// The largest of some logarithms, if products of the numbers of the source with exponentials relative to it lose
/// nothing. `ends` are the largest of them and the largest of their negatives.
fn plain_top(source: &dyn LogRows, ends: impl FnOnce() -> [f64; 2]) -> Option<f64> {
    if !source.is_plain() {
        return None;
    }
    let [top, negative] = ends();
    (top + negative <= -LEAST.ln()).then_some(top)
}

/// The largest first; of equal ones the first.
fn falling(a: &(usize, f64), b: &(usize, f64)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

/// The `count` largest of some values, and all that are less than the last of them by `slack` at most.
fn largest(values: impl Iterator<Item = f64>, count: usize, slack: f64) -> Vec<(usize, f64)> {
    let (mut found, mut least): (Vec<(usize, f64)>, f64) = (Vec::new(), f64::NEG_INFINITY);
    let sieve = |found: &mut Vec<(usize, f64)>| {
        let least = found.select_nth_unstable_by(count - 1, falling).1.1 - slack;
        found.retain(|(_, value)| *value >= least);
        least
    };
    let mut most = 2 * count.min(1 << 20) + 64;
    for entry in values.enumerate() {
        if entry.1 >= least {
            found.push(entry);
            if found.len() >= most && found.len() > count {
                least = sieve(&mut found);
                most = most.max(2 * found.len());
            }
        }
    }
    if found.len() > count {
        sieve(&mut found);
    }
    found
}
