//! Rows in fixed chunks, and sums across rows: the same bits on any number of threads.

/// Rows cut into chunks whose size depends on the number of rows only.
///
/// Each chunk has its own accumulator, and accumulators are added in the order of the chunks, so
/// results do not depend on who computed what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partition {
    rows: usize,
    chunk: usize,
}

/// Rows that are summed in the precision of the storage before their sum goes to double precision.
pub(crate) const BLOCK: usize = 256;

impl Partition {
    /// At most `most` chunks of whole blocks.
    pub(crate) fn new(rows: usize, most: usize) -> Self {
        let chunk = rows.div_ceil(most).next_multiple_of(BLOCK);
        Partition { rows, chunk }
    }

    /// At most `most` chunks of any size, where rows are few and each takes long.
    pub(crate) fn of_few(rows: usize, most: usize) -> Self {
        Partition { rows, chunk: rows.div_ceil(most) }
    }

    /// Rows of a chunk (the last may have fewer).
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Number of chunks.
    pub(crate) fn count(&self) -> usize {
        self.rows.div_ceil(self.chunk)
    }
}

/// Sums over all rows of a cloud: the one place where rows meet.
///
/// A solve on one machine uses [`Local`]. A cloud that is spread over several processes would add
/// theirs here; a factored half-iteration exchanges `r` numbers.
pub(crate) trait Reduce: Send + Sync {
    /// `total_k = sum_c partial[c][k]`, where `partial` has `total.len()` columns.
    fn sum(&self, partial: &[f64], total: &mut [f64]);

    /// `total_k = max_c partial[c][k]`.
    fn max(&self, partial: &[f64], total: &mut [f64]);
}

/// Sums over the chunks of this process, in their order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Local;

impl Reduce for Local {
    fn sum(&self, partial: &[f64], total: &mut [f64]) {
        total.fill(0.0);
        for chunk in partial.chunks_exact(total.len()) {
            for (t, p) in total.iter_mut().zip(chunk) {
                *t += p;
            }
        }
    }

    fn max(&self, partial: &[f64], total: &mut [f64]) {
        total.fill(f64::NEG_INFINITY);
        for chunk in partial.chunks_exact(total.len()) {
            for (t, p) in total.iter_mut().zip(chunk) {
                *t = t.max(*p);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_whole_blocks_and_cover_the_rows() {
        for rows in [1, 255, 256, 257, 5_000, 20_000, 1_000_003] {
            for most in [1, 16, 64] {
                let p = Partition::new(rows, most);
                assert_eq!(p.chunk() % BLOCK, 0);
                assert!(p.count() <= most && p.count() * p.chunk() >= rows);
                assert!((p.count() - 1) * p.chunk() < rows);
            }
        }
    }

    #[test]
    fn sums_add_chunk_after_chunk() {
        let mut total = [9.0; 2];
        Local.sum(&[1.0, 2.0, 10.0, 20.0, 100.0, 200.0], &mut total);
        assert_eq!(total, [111.0, 222.0]);
        Local.max(&[1.0, 2.0, 10.0, -20.0], &mut total);
        assert_eq!(total, [10.0, 2.0]);
    }
}
