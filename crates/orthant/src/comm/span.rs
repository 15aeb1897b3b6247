//! The rows of a cloud that this process holds, and what is asked about all of them.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Comm, alone};
use crate::numerics::{Add, ExactSums, sum_few};

/// Rows that are summed in the precision of the storage before their sum goes to double precision.
pub(crate) const BLOCK: usize = 256;

/// Rows of a chunk at most: fewer in unit tests, whose clouds are small. Points that are put in an order are put in one order
/// for each so many rows.
pub(crate) const LARGEST_CHUNK: usize = if cfg!(test) { 1 << 10 } else { 1 << 19 };

/// Chunks of rows whose sums are few.
const FEW_CHUNKS: usize = 64;

/// Rows of a cloud that this process holds, of those that all processes hold together.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    comm: Arc<dyn Comm>,
    /// Its first row, its number of rows, and that of all processes.
    first: u64,
    len: usize,
    total: u64,
}

impl Span {
    /// All rows of a cloud.
    pub(crate) fn alone(len: usize) -> Self {
        Span { comm: alone(), first: 0, len, total: len as u64 }
    }

    /// The rows of this process, which follow those of the processes before it.
    pub(crate) fn new(comm: Arc<dyn Comm>, len: usize) -> Self {
        let counts: Vec<u64> = comm
            .all_gather(&(len as u64).to_le_bytes())
            .iter()
            .map(|bytes| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
            .collect();
        let first = counts[..comm.rank()].iter().sum();
        Span { first, len, total: counts.iter().sum(), comm }
    }

    /// Other rows of the same processes: so many of this one.
    pub(crate) fn of(&self, len: usize) -> Self {
        Span::new(self.comm.clone(), len)
    }

    /// Number of rows of this process.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of rows of all processes.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Sums over all rows of some values of a row.
    pub(crate) fn sums<const K: usize>(
        &self,
        values: impl Fn(usize) -> [f64; K] + Sync,
    ) -> [f64; K] {
        let partition = Partition::new(self, FEW_CHUNKS);
        let add = |c: usize, sums: &mut [f64; K]| {
            for i in partition.rows(c) {
                for (sum, value) in sums.iter_mut().zip(values(i)) {
                    *sum += value;
                }
            }
        };
        let count = partition.count();
        // Usually nothing has to be allocated.
        let (mut few, mut many) = ([[0.0; K]; FEW_CHUNKS], Vec::new());
        let sums = if count <= FEW_CHUNKS {
            &mut few[..count]
        } else {
            many.resize(count, [0.0; K]);
            &mut many[..]
        };
        if count == 1 {
            add(0, &mut sums[0]);
        } else {
            sums.par_iter_mut().enumerate().for_each(|(c, sums)| add(c, sums));
        }
        sum_few(sums.as_flattened(), self)
    }

    /// The sum over all rows of a value of a row.
    pub(crate) fn sum(&self, value: impl Fn(usize) -> f64 + Sync) -> f64 {
        self.sums(|i| [value(i)])[0]
    }

    /// Sums over all rows where `add` adds what a row has to some sums.
    pub(crate) fn sum_each(&self, total: &mut [f64], add: impl Fn(usize, &mut [f64]) + Sync) {
        self.sum_each_with(0, total, |i, _, sums| add(i, sums));
    }

    /// The same, where `add` gets scratch space for so many numbers between the row and the sums.
    pub(crate) fn sum_each_with(
        &self,
        scratch: usize,
        total: &mut [f64],
        add: impl Fn(usize, &mut [f64], &mut [f64]) + Sync,
    ) {
        let partition = Partition::new(self, FEW_CHUNKS);
        let mut sums = vec![0.0; partition.count() * total.len()];
        sums.par_chunks_mut(total.len().max(1)).enumerate().for_each(|(c, sums)| {
            let mut scratch = vec![0.0; scratch];
            for i in partition.rows(c) {
                add(i, &mut scratch, sums);
            }
        });
        partition.sum(&sums, total);
    }

    /// `total_k = sum_c chunks[c][k]` over the chunks of all processes, which have `total.len()` columns.
    pub(crate) fn sum_chunks(&self, chunks: &[f64], total: &mut [f64]) {
        ExactSums::new(total.len()).sum_afresh(chunks, total, self);
    }

    /// The same for a few columns.
    pub(crate) fn sum_few<const K: usize>(&self, chunks: &[f64]) -> [f64; K] {
        sum_few(chunks, self)
    }

    /// The same with space for it that was used before.
    pub(crate) fn sum_afresh(&self, sums: &mut ExactSums, chunks: &[f64], total: &mut [f64]) {
        sums.sum_afresh(chunks, total, self);
    }

    /// The same for positive numbers that are about as large as they were when they were last added.
    pub(crate) fn sum_again(&self, sums: &mut ExactSums, chunks: &[f64], total: &mut [f64]) {
        sums.sum(chunks, total, self);
    }

    /// `total_k = max_c chunks[c][k]` over the chunks of all processes.
    pub(crate) fn max_chunks(&self, chunks: &[f64], total: &mut [f64]) {
        total.fill(f64::NEG_INFINITY);
        for chunk in chunks.chunks_exact(total.len()) {
            for (t, p) in total.iter_mut().zip(chunk) {
                *t = t.max(*p);
            }
        }
        self.comm.all_max(total);
    }

    /// The largest of a value of all rows; minus infinity if there are none. Rows whose value is NaN do not count.
    pub(crate) fn max(&self, value: impl Fn(usize) -> f64 + Sync) -> f64 {
        self.maxima(|i| [value(i)])[0]
    }

    /// The smallest of a value of all rows; infinity if there are none. Rows whose value is NaN do not count.
    pub(crate) fn min(&self, value: impl Fn(usize) -> f64 + Sync) -> f64 {
        -self.max(|i| -value(i))
    }

    /// The largest of each of some values of all rows.
    pub(crate) fn maxima<const K: usize>(
        &self,
        values: impl Fn(usize) -> [f64; K] + Sync,
    ) -> [f64; K] {
        let most = |a: [f64; K], b: [f64; K]| std::array::from_fn(|k| a[k].max(b[k]));
        let nothing = || [f64::NEG_INFINITY; K];
        let mut found = (0..self.len)
            .into_par_iter()
            .with_min_len(4096)
            .fold(nothing, |found, i| most(found, values(i)))
            .reduce(nothing, most);
        self.comm.all_max(&mut found);
        found
    }

    /// `log sum exp` of a logarithm of all rows.
    pub(crate) fn log_sum(&self, log: impl Fn(usize) -> f64 + Sync) -> f64 {
        let top = self.max(&log);
        if top.is_finite() { top + self.sum(|i| (log(i) - top).exp()).ln() } else { top }
    }

    /// Whether something holds in some process.
    pub(crate) fn any(&self, here: bool) -> bool {
        let mut found = [f64::from(u8::from(here))];
        self.comm.all_max(&mut found);
        found[0] > 0.0
    }

    /// The sum of a number of each process.
    pub(crate) fn count(&self, here: usize) -> u64 {
        let mut sum = [i64::try_from(here).expect("a number of rows")];
        self.comm.all_sum(&mut sum);
        sum[0].unsigned_abs()
    }

    /// What the first process says.
    pub(crate) fn decided(&self, here: usize) -> usize {
        // The others add nothing.
        let here = if self.comm.rank() == 0 { here } else { 0 };
        let mut sum = [i64::try_from(here).expect("a small number")];
        self.comm.all_sum(&mut sum);
        usize::try_from(sum[0]).expect("what the first process said")
    }
}

impl Add for Span {
    fn add(&self, sums: &mut [i64]) {
        self.comm.all_sum(sums);
    }

    fn largest(&self, most: &mut [f64]) {
        self.comm.all_max(most);
    }

    fn is_alone(&self) -> bool {
        self.comm.size() == 1
    }
}

/// Rows cut into chunks, whose size depends on the number of rows of all processes only.
///
/// Each chunk has its own accumulator, and sums of chunks do not depend on their order, so results do not depend on who
/// computed what. Sizes are powers of two: a cloud that is cut between processes where one of its larger chunks ends is cut
/// right for all smaller ones.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    span: Span,
    chunk: usize,
}

impl Partition {
    /// At most `most` chunks of whole blocks, or more where they would be larger than [`LARGEST_CHUNK`].
    pub(crate) fn new(span: &Span, most: usize) -> Self {
        let enough = span.total.div_ceil(most as u64).min(LARGEST_CHUNK as u64);
        let chunk = enough.next_power_of_two().max(BLOCK as u64);
        debug_assert!(span.first.is_multiple_of(chunk), "a chunk lies in one process");
        #[expect(clippy::cast_possible_truncation, reason = "at most the largest chunk")]
        let chunk = chunk as usize;
        Partition { span: span.clone(), chunk }
    }

    /// At most `most` chunks of any size of rows that this process alone knows, where rows are few and each takes long.
    pub(crate) fn of_few(rows: usize, most: usize) -> Self {
        Partition { span: Span::alone(rows), chunk: rows.div_ceil(most) }
    }

    /// Rows of a chunk (the last may have fewer).
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Number of chunks of this process.
    pub(crate) fn count(&self) -> usize {
        self.span.len.div_ceil(self.chunk)
    }

    /// The rows of a chunk.
    pub(crate) fn rows(&self, chunk: usize) -> std::ops::Range<usize> {
        let first = chunk * self.chunk;
        first..self.span.len.min(first + self.chunk)
    }

    /// The rows that are cut.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// See [`Span::sum_chunks`].
    pub(crate) fn sum(&self, chunks: &[f64], total: &mut [f64]) {
        self.span.sum_chunks(chunks, total);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Threads;
    use super::*;

    #[test]
    fn chunks_are_whole_blocks_and_cover_the_rows() {
        for rows in [1, 255, 256, 257, 5_000, 20_000, 1_000_003] {
            for most in [16, 64, 128] {
                let p = Partition::new(&Span::alone(rows), most);
                assert_eq!(p.chunk() % BLOCK, 0);
                assert!(p.count() <= most || p.chunk() == LARGEST_CHUNK);
                assert!(p.count() * p.chunk() >= rows);
                assert!((p.count() - 1) * p.chunk() < rows);
                assert_eq!((0..p.count()).map(|c| p.rows(c).len()).sum::<usize>(), rows);
            }
        }
    }

    /// A number of every row: no sum of them is exact in double precision.
    fn value(row: u64) -> f64 {
        (row as f64 * 0.7).sin() * (1.0 + row as f64).powi(-3)
    }

    #[test]
    fn neither_threads_nor_processes_change_a_bit() {
        let rows = 3 * LARGEST_CHUNK + 77;
        // All of it, and parts that end where a chunk does; one of them has none.
        let parts: [&[usize]; 4] = [
            &[rows],
            &[LARGEST_CHUNK, 2 * LARGEST_CHUNK + 77],
            &[2 * LARGEST_CHUNK, 0, LARGEST_CHUNK + 77],
            &[LARGEST_CHUNK, LARGEST_CHUNK, LARGEST_CHUNK, 77],
        ];
        let found = parts.map(|lens| {
            let each = Threads::run(lens.len(), |comm| {
                let span = Span::new(comm.clone(), lens[comm.rank()]);
                assert_eq!((span.len(), span.total()), (lens[comm.rank()], rows as u64));
                let value = |i: usize| value(span.first + i as u64);
                let numbers = [
                    span.sum(value),
                    span.max(value),
                    span.min(value),
                    span.log_sum(|i| 300.0 * value(i)),
                    f64::from(u8::from(span.any(span.len() == 0))),
                    span.count(span.len()) as f64,
                    span.decided(comm.rank() + 7) as f64,
                ];
                numbers.map(f64::to_bits)
            });
            assert!(each.iter().all(|numbers| *numbers == each[0]), "{lens:?}");
            each[0]
        });
        // Whether some process has no rows is the one thing that differs.
        let numbers = found.map(|mut numbers| (std::mem::take(&mut numbers[4]), numbers));
        assert!(numbers.iter().all(|(_, rest)| *rest == numbers[0].1));
        assert_eq!(numbers.map(|(some, _)| f64::from_bits(some)), [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(numbers[0].1[5..].to_vec(), [rows as f64, 7.0].map(f64::to_bits));
        let exact: f64 = (0..rows as u64).rev().map(value).sum();
        assert!((f64::from_bits(numbers[0].1[0]) - exact).abs() < 1e-15);
    }
}
