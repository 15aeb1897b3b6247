//! Exact passes over all pairs that need no whole row at once: sums over rows and over columns, tile by tile.
//!
//! A block of rows is visited panel by panel. The logarithms of a tile, a few rows over a [panel](PANEL), are turned into
//! exponentials relative to the largest of each row while they are in the first-level cache. Where sums over columns
//! depend on those over rows, the exponentials of a block are kept until its rows are known. So the other cloud is read
//! once a block, and every exponential is computed once.

use std::ops::Range;

use rayon::prelude::*;

use super::LOST;
use super::logs::{Chunk, LogPass, Scratch};
use super::target::{Step, Tally};
use crate::numerics::simd::{self, ColumnSums, Float, PANEL, PANEL_STEP, TILE_ROWS};
use crate::rows::{LogRows, TileFloat, Tiles, WholeRows};

/// Rows of a block: so many that reading the other cloud for each takes little time beside them. More gain nothing.
const BLOCK_ROWS: usize = 32;

/// A block of rows that is ready, and what its tiles start from.
struct Block<'b, T> {
    tiles: &'b dyn Tiles<T>,
    loaded: (&'b [T], &'b [f64]),
    start: &'b [T],
    /// What the entries of each row have in common.
    common: &'b [f64],
}

impl<T: Float> Block<'_, T> {
    fn rows(&self) -> usize {
        self.common.len()
    }

    /// The columns of each panel.
    fn panels(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let columns = self.start.len();
        (0..columns).step_by(PANEL).map(move |first| first..columns.min(first + PANEL))
    }

    /// The rows of each tile.
    fn groups(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let rows = self.rows();
        (0..rows).step_by(TILE_ROWS).map(move |first| first..rows.min(first + TILE_ROWS))
    }

    /// The logarithms of a tile, but for what its rows have in common.
    fn tile<'o>(&self, rows: &Range<usize>, columns: &Range<usize>, out: &'o mut [T]) -> &'o [T] {
        let (start, panel) = (&self.start[columns.clone()], columns.start / PANEL);
        self.tiles.tile(self.loaded, rows.start, panel, start, out);
        &out[..rows.len() * start.len()]
    }
}

/// The sums of a row: its largest term, and the sum of all relative to it.
#[derive(Clone, Copy)]
struct RowSum {
    top: f64,
    sum: f64,
}

impl RowSum {
    fn log(self) -> f64 {
        if self.top > f64::NEG_INFINITY { self.top + self.sum.ln() } else { self.top }
    }
}

impl LogPass {
    /// Makes what passes over tiles need, and keep if they do.
    pub(super) fn prepare_tiles<T: TileFloat>(&mut self, source: &dyn LogRows, keep: bool) {
        let whole = WholeRows(source);
        let tiles = T::tiles(source).unwrap_or(&whole);
        let columns = self.rank.next_multiple_of(PANEL_STEP);
        let rows = BLOCK_ROWS.min(self.partition.chunk());
        let [packed, whole] = tiles.block(rows);
        let panels = columns.div_ceil(PANEL).max(PANEL);
        self.start.reserve(columns);
        self.rounded.reserve(columns);
        self.scratch.prepare(|scratch| {
            numbers::<T>(&mut scratch.packed, packed);
            sized(&mut scratch.whole, whole);
            sized(&mut scratch.common, rows);
            numbers::<T>(&mut scratch.tile, 2 * TILE_ROWS * PANEL);
            sized(&mut scratch.tops, rows * panels);
            sized(&mut scratch.parts, rows * panels);
            if keep {
                aligned::<T>(&mut scratch.kept, rows * columns);
            }
        });
    }

    /// Calls `each` for blocks of rows, in parallel over the chunks, with the chunk's share of whatever is cut along with
    /// the rows, and the rows of the block (in the chunk).
    fn blocks<T: TileFloat, S: Send>(
        &mut self,
        source: &dyn LogRows,
        z: Option<&[f64]>,
        shares: impl IndexedParallelIterator<Item = S>,
        each: impl Fn(&mut S, Range<usize>, &Block<'_, T>, Buffers<'_, T>, &mut Chunk<'_>) + Sync,
    ) {
        let whole = WholeRows(source);
        let tiles = T::tiles(source).unwrap_or(&whole);
        let columns = self.rank.next_multiple_of(PANEL_STEP);
        self.start.clear();
        match z {
            Some(z) => self.start.extend_from_slice(&z[..self.rank]),
            None => self.start.resize(self.rank, 0.0),
        }
        tiles.start(&mut self.start);
        self.start.resize(columns, f64::NEG_INFINITY);
        // The same in the precision of the tiles.
        self.rounded.clear();
        self.rounded.resize(columns, 0.0);
        let rounded: &mut [T] = &mut bytemuck::cast_slice_mut(&mut self.rounded)[..columns];
        for (rounded, start) in rounded.iter_mut().zip(&self.start) {
            *rounded = T::from_f64(*start);
        }
        let start: &[T] = rounded;
        let (stride, chunk) = (self.stride, self.partition.chunk());
        let rows = self.partition.span().len();
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
                let mut totals = Chunk { first, sums, most, error };
                let len = chunk.min(rows - first);
                scratch.with(|scratch| {
                    for begin in (0..len).step_by(BLOCK_ROWS) {
                        let here = begin..len.min(begin + BLOCK_ROWS);
                        let [packed, whole] = tiles.block(here.len());
                        let Scratch {
                            packed: p, whole: w, common, tile, kept, tops, parts, ..
                        } = scratch;
                        let loaded = (numbers::<T>(p, packed), sized(w, whole));
                        let common = sized(common, here.len());
                        tiles.load(first + begin, common, (&mut *loaded.0, &mut *loaded.1));
                        let block = Block {
                            tiles,
                            loaded: (&*loaded.0, &*loaded.1),
                            start,
                            common: &*common,
                        };
                        let tile = numbers::<T>(tile, 2 * TILE_ROWS * PANEL);
                        each(
                            &mut share,
                            here,
                            &block,
                            Buffers { tile, kept, tops, parts },
                            &mut totals,
                        );
                    }
                });
            });
    }

    /// Visits all rows with their sums. `row` gets the number of the row in the chunk, the number in the source, and its
    /// sums, and returns the factor by which its exponentials, relative to its largest term, are added to the columns.
    fn sweep<T: TileFloat, S: Send>(
        &mut self,
        source: &dyn LogRows,
        z: &[f64],
        shares: impl IndexedParallelIterator<Item = S>,
        keep: bool,
        row: impl Fn(&mut S, usize, usize, RowSum, &mut f64) -> f64 + Sync,
    ) {
        self.prepare_tiles::<T>(source, keep);
        self.blocks::<T, _>(source, Some(z), shares, |share, here, block, buffers, totals| {
            let Buffers { tile, kept, tops, parts } = buffers;
            let columns = block.start.len();
            let panels = columns.div_ceil(PANEL);
            let (logs, exps) = tile.split_at_mut(TILE_ROWS * PANEL);
            let kept: &mut [T] = aligned(kept, if keep { block.rows() * columns } else { 0 });
            // A row of panels a row: the largest terms, and the sums.
            let tops = sized(tops, panels * block.rows());
            let parts = sized(parts, panels * block.rows());
            for (p, panel) in block.panels().enumerate() {
                let first = panel.start * block.rows();
                for rows in block.groups() {
                    let logs = block.tile(&rows, &panel, logs);
                    let out = if keep {
                        &mut kept[first + rows.start * panel.len()..][..logs.len()]
                    } else {
                        &mut exps[..logs.len()]
                    };
                    let (mut most, mut sums) = ([0.0; TILE_ROWS], [0.0; TILE_ROWS]);
                    let count = rows.len();
                    simd::exp_tile(logs, out, &mut most[..count], &mut sums[..count]);
                    for ((row, most), sum) in rows.zip(most).zip(sums) {
                        tops[row * panels + p] = most;
                        parts[row * panels + p] = sum;
                    }
                }
            }
            for (i, at) in here.enumerate() {
                let own = i * panels..(i + 1) * panels;
                let (shares, parts) = (&mut tops[own.clone()], &parts[own]);
                let (top, sum) = simd::join_panels(shares, parts);
                let found = RowSum { top: top + block.common[i], sum };
                let factor = row(share, at, totals.first + at, found, totals.error);
                for share in shares {
                    *share *= factor;
                }
            }
            if keep {
                let mut weights = [0.0; BLOCK_ROWS];
                for (p, panel) in block.panels().enumerate() {
                    for (weight, shares) in weights.iter_mut().zip(tops.chunks_exact(panels)) {
                        *weight = shares[p];
                    }
                    let weights = &weights[..block.rows()];
                    let kept = &kept[panel.start * block.rows()..panel.end * block.rows()];
                    let end = panel.end.min(totals.sums.len());
                    simd::add_rows(kept, panel.len(), weights, &mut totals.sums[panel.start..end]);
                }
            }
        });
    }

    /// The message of the sums over columns that a sweep left.
    fn send(&mut self, z: &[f64], y: &mut [f64]) {
        self.partition.span().sum_afresh(&mut self.exact, &self.sums, &mut self.total);
        for ((y, sum), z) in y.iter_mut().zip(&self.total).zip(z) {
            let told = *sum > LOST && *sum < f64::INFINITY;
            *y = if told { sum.ln() - z } else { f64::NEG_INFINITY };
        }
    }

    /// `out_i = log sum_k exp(L_ik + z_k)`, in tiles of the precision `T` where rows have such; `z` padded.
    pub(crate) fn row_sums<T: TileFloat>(
        &mut self,
        source: &dyn LogRows,
        z: &[f64],
        out: &mut [f64],
    ) {
        if T::tiles(source).is_none() {
            return self.sums_of_rows(source, z, out);
        }
        let shares = out.par_chunks_mut(self.partition.chunk());
        self.sweep::<T, _>(source, z, shares, false, |out, at, _, found, _| {
            out[at] = found.log();
            0.0
        });
    }

    /// One half-iteration with rows evaluated on the way. `f` holds `log u`, and `next(i, f_i, s_i)`
    /// is its new value, where `s_i = log sum_k exp(L_ik + z_k)`. The message of the new `u` goes to
    /// `y`; returns the L1 error `sum_i |exp(f_i + s_i) - a_i|` of the old.
    pub(crate) fn half_step<T: TileFloat>(
        &mut self,
        source: &dyn LogRows,
        z: &[f64],
        a: &[f64],
        f: &mut [f64],
        y: &mut [f64],
        next: impl Fn(usize, f64, f64) -> f64 + Sync,
    ) -> f64 {
        let shares = f.par_chunks_mut(self.partition.chunk());
        self.sweep::<T, _>(source, z, shares, true, |f, at, i, found, error| {
            let (f, s) = (&mut f[at], found.log());
            *error += ((*f + s).exp() - a[i]).abs();
            *f = next(i, *f, s);
            (*f + found.top).exp()
        });
        self.send(z, y);
        self.error()
    }

    /// `out_i = log sum_k exp(L_ik + z_k)` and `y_k = log sum_i exp(L_ik + f_i)` in one pass. Where sums leave the
    /// range of the numbers, `y` is minus infinity.
    pub(crate) fn exchange<T: TileFloat>(
        &mut self,
        source: &dyn LogRows,
        z: &[f64],
        f: &[f64],
        out: &mut [f64],
        y: &mut [f64],
    ) {
        let chunk = self.partition.chunk();
        let shares = (f.par_chunks(chunk), out.par_chunks_mut(chunk)).into_par_iter();
        self.sweep::<T, _>(source, z, shares, true, |(f, out), at, _, found, _| {
            out[at] = found.log();
            (f[at] + found.top).exp()
        });
        self.send(z, y);
    }

    /// [`LogPass::half_step`] where the marginal is relaxed; also returns what else was added up.
    pub(crate) fn relaxed_step<T: TileFloat>(
        &mut self,
        source: &dyn LogRows,
        z: &[f64],
        step: Step<'_>,
        f: &mut [f64],
        y: &mut [f64],
    ) -> Tally {
        let mut tallies = std::mem::take(&mut self.tallies);
        tallies.fill(0.0);
        let chunk = self.partition.chunk();
        let shares = (f.par_chunks_mut(chunk), tallies.par_chunks_mut(Tally::LEN)).into_par_iter();
        self.sweep::<T, _>(source, z, shares, true, |(f, share), at, i, RowSum { top, sum }, _| {
            let mut tally = Tally::load(share);
            let (factor, new) = step.row(i, f[at] + top, sum, top, &mut tally);
            f[at] = new - top;
            tally.store(share);
            factor
        });
        let tally = Tally::total(&tallies, self.partition.span());
        self.tallies = tallies;
        self.send(z, y);
        tally
    }

    /// `out_k = log sum_i exp(L_ik + f_i)`.
    pub(crate) fn column_sums(&mut self, source: &dyn LogRows, f: &[f64], out: &mut [f64]) {
        if self.plain_column_sums(source, f, out) {
            return;
        }
        if source.tiles().is_none() {
            self.add_whole_rows(source, f);
            return self.add_columns(out);
        }
        let shares = f.par_chunks(self.partition.chunk());
        self.blocks::<f64, _>(source, None, shares, |f, here, block, buffers, totals| {
            // As much of a panel as there are rows.
            let logs = sized(buffers.parts, block.rows() * PANEL);
            let shifts = sized(buffers.tops, block.rows());
            for ((shift, f), common) in shifts.iter_mut().zip(&f[here]).zip(block.common) {
                *shift = f + common;
            }
            for panel in block.panels() {
                let end = panel.end.min(totals.sums.len());
                let width = end - panel.start;
                for rows in block.groups() {
                    let tile = block.tile(&rows, &panel, buffers.tile);
                    let logs = &mut logs[rows.start * width..rows.end * width];
                    for (log, tile) in
                        logs.chunks_exact_mut(width).zip(tile.chunks_exact(panel.len()))
                    {
                        log.copy_from_slice(&tile[..width]);
                    }
                }
                let (most, sum) =
                    (&mut totals.most[panel.start..end], &mut totals.sums[panel.start..end]);
                ColumnSums { most, sum }.add(&logs[..block.rows() * width], shifts);
            }
        });
        self.add_columns(out);
    }

    /// `sum_ik exp(f_i + L_ik + z_k) L_ik`.
    pub(crate) fn expected_log(&mut self, source: &dyn LogRows, f: &[f64], z: &[f64]) -> f64 {
        let shares = f.par_chunks(self.partition.chunk());
        self.blocks::<f64, _>(source, Some(z), shares, |f, here, block, buffers, totals| {
            let (logs, exps) = buffers.tile.split_at_mut(TILE_ROWS * PANEL);
            let f = &f[here];
            for panel in block.panels() {
                // Padding has no exponential, whatever is subtracted.
                let message = &z[panel.start..panel.end.min(z.len())];
                for rows in block.groups() {
                    let logs = block.tile(&rows, &panel, logs);
                    let exps = &mut exps[..logs.len()];
                    let (mut tops, mut sums) = ([0.0; TILE_ROWS], [0.0; TILE_ROWS]);
                    let count = rows.len();
                    simd::exp_tile(logs, exps, &mut tops[..count], &mut sums[..count]);
                    for (r, i) in rows.enumerate().filter(|(r, _)| tops[*r] > f64::NEG_INFINITY) {
                        let own = r * panel.len()..(r + 1) * panel.len();
                        let (exps, logs) = (&exps[own.clone()], &logs[own]);
                        let mean = simd::mean_log(exps, logs, message) + block.common[i] * sums[r];
                        *totals.error += (f[i] + block.common[i] + tops[r]).exp() * mean;
                    }
                }
            }
        });
        self.error()
    }
}

/// Buffers of a thread beside those of a block.
struct Buffers<'a, T> {
    /// Two tiles.
    tile: &'a mut [T],
    kept: &'a mut simd::Aligned<f64>,
    tops: &'a mut Vec<f64>,
    parts: &'a mut Vec<f64>,
}

/// The first numbers of a buffer, which grows if it must.
pub(super) fn sized(buffer: &mut Vec<f64>, len: usize) -> &mut [f64] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

/// The same in another precision.
fn numbers<T: Float>(buffer: &mut Vec<f64>, len: usize) -> &mut [T] {
    let doubles = (len * size_of::<T>()).div_ceil(size_of::<f64>());
    &mut bytemuck::cast_slice_mut(sized(buffer, doubles))[..len]
}

/// The same of a buffer that begins at a cache line.
pub(super) fn aligned<T: Float>(buffer: &mut simd::Aligned<f64>, len: usize) -> &mut [T] {
    let doubles = (len * size_of::<T>()).div_ceil(size_of::<f64>());
    if buffer.len() < doubles {
        *buffer = simd::Aligned::zeros(doubles);
    }
    &mut bytemuck::cast_slice_mut(buffer)[..len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::{Partition, Span};
    use crate::coordinates::Frame;
    use crate::features::SquaredEuclidean;
    use crate::measure::Points;

    /// Rows that can only be had one by one.
    struct OneByOne<'a>(&'a dyn LogRows);

    impl LogRows for OneByOne<'_> {
        fn span(&self) -> &Span {
            self.0.span()
        }

        fn rank(&self) -> usize {
            self.0.rank()
        }

        fn scratch(&self) -> usize {
            self.0.scratch()
        }

        fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
            self.0.fill(first, stride, out, scratch);
        }
    }

    fn cloud(count: usize, dim: usize, phase: f64) -> Vec<f64> {
        (0..count * dim).map(|i| ((i as f64 + phase) * 12.9898).sin()).collect()
    }

    fn near(found: &[f64], exact: &[f64], tolerance: f64) {
        for (found, exact) in found.iter().zip(exact) {
            assert!((found - exact).abs() < tolerance, "{found} is not {exact}");
        }
    }

    /// All passes against loops over all pairs.
    fn check<T: TileFloat>(n: usize, m: usize, dim: usize, tolerance: f64) {
        let (x, y) = (cloud(n, dim, 0.3), cloud(m, dim, 7.9));
        let cost = |i: usize, k: usize| -> f64 {
            (0..dim).map(|c| (x[i * dim + c] - y[k * dim + c]).powi(2)).sum()
        };
        let epsilon = 0.3;
        let log = |i: usize, k: usize| -cost(i, k) / epsilon;
        let points = |x: &[f64]| Points::new(x.to_vec(), dim).unwrap();
        let rows = SquaredEuclidean::new(&Frame::unit(dim), epsilon, points(&x), &points(&y));
        let z: Vec<f64> = (0..simd::padded(m)).map(|k| (k as f64 * 0.9).sin()).collect();
        let f: Vec<f64> = (0..n).map(|i| (i as f64 * 0.4).cos() - 8.0).collect();
        let row_sums: Vec<f64> =
            (0..n).map(|i| (0..m).map(|k| (log(i, k) + z[k]).exp()).sum::<f64>().ln()).collect();
        let column_sums = |f: &[f64]| -> Vec<f64> {
            (0..m).map(|k| (0..n).map(|i| (log(i, k) + f[i]).exp()).sum::<f64>().ln()).collect()
        };
        let one_by_one = OneByOne(&rows);
        for rows in [&rows as &dyn LogRows, &one_by_one] {
            let mut pass = LogPass::new(rows, Partition::new(rows.span(), 3));
            let (mut out, mut y) = (vec![0.0; n], vec![0.0; m]);
            pass.row_sums::<T>(rows, &z, &mut out);
            near(&out, &row_sums, tolerance);
            pass.column_sums(rows, &f, &mut y);
            near(&y, &column_sums(&f), 1e-12);
            pass.exchange::<T>(rows, &z, &f, &mut out, &mut y);
            near(&out, &row_sums, tolerance);
            near(&y, &column_sums(&f), tolerance);
            let exact: f64 = (0..n)
                .flat_map(|i| (0..m).map(move |k| (i, k)))
                .map(|(i, k)| (f[i] + log(i, k) + z[k]).exp() * log(i, k))
                .sum();
            let mean = pass.expected_log(rows, &f, &z);
            assert!((mean / exact - 1.0).abs() < 1e-12, "{mean} is not {exact}");
            let weights = vec![1.0 / n as f64; n];
            let mut new = f.clone();
            let next = |i: usize, _: f64, s: f64| weights[i].ln() - s;
            let error = pass.half_step::<T>(rows, &z, &weights, &mut new, &mut y, next);
            let exact: f64 = (0..n).map(|i| ((f[i] + row_sums[i]).exp() - weights[i]).abs()).sum();
            assert!((error / exact - 1.0).abs() < tolerance, "{error} is not {exact}");
            let updated: Vec<f64> = (0..n).map(|i| weights[i].ln() - row_sums[i]).collect();
            near(&new, &updated, tolerance);
            near(&y, &column_sums(&updated), tolerance);
        }
    }

    #[test]
    fn passes_over_tiles_agree_with_loops_over_all_pairs() {
        for (n, m, dim) in [(1, 1, 1), (3, 5, 2), (70, 64, 3), (130, 201, 7), (33, 150, 50)] {
            check::<f64>(n, m, dim, 1e-12);
            check::<f32>(n, m, dim, 3e-5);
        }
    }
}
