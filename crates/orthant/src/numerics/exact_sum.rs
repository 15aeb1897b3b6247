//! Sums whose last bit does not depend on the order in which their terms are added.
//!
//! A term `v` with `|v| < 2^c` is cut into two parts, multiples of `2^(c - 40)` and of `2^(c - 80)`:
//!
//! ```text
//! high = (v + A) - A,    low = ((v - high) + B) - B,    A = 1.5 2^(c + 12),    B = 1.5 2^(c - 28)
//! ```
//!
//! Parts of a kind are integers on a common grid, and sums of them are exact as long as they stay below `2^53` units of
//! the grid: their order does not matter, nor who adds which of them. The sum of both is rounded once. What is cut off is
//! less than `2^(c - 81)` a term, which is nothing beside a sum of about `2^c`.
//!
//! All processes that add terms must know the same *capacity* `c` beforehand. Sums of positive terms that are formed again
//! and again, as those of an iteration are, change little from one time to the next, so the last sum tells:
//! [`ExactSums`] remembers it. Where it tells wrongly, everybody finds out by the sums themselves, the largest term is
//! asked for, and the terms are added again.

use rayon::prelude::*;

/// Grids: bits of a part.
const PART: i32 = 40;
/// Terms that can be added before a part may leave the integers.
const BATCH: usize = 1 << 12;
/// A sum may grow by this power of two, or shrink by the other, before its capacity is found anew.
const GROWTH: i32 = 10;
const SHRINKAGE: i32 = 17;
/// The capacity of terms that are infinite or no numbers, and the largest and smallest that have grids.
const NOT_FINITE: i32 = 1 << 12;
const MOST: i32 = 1010;
const LEAST: i32 = -990;
/// By which power of two larger terms are divided.
const DOWN: i32 = 64;
/// The capacity of terms that are all zero.
const NOTHING: i32 = i32::MIN;

/// What several processes do to add up: see [`crate::comm::Comm`].
pub(crate) trait Add: Sync {
    /// Adds the integers of all processes.
    fn add(&self, sums: &mut [i64]);

    /// Takes the largest numbers of all processes. None of them is NaN.
    fn largest(&self, most: &mut [f64]);

    /// Whether there is no other process.
    fn is_alone(&self) -> bool;
}

/// Sums over the rows of a table, column by column, that do not depend on the order of the rows.
#[derive(Debug, Clone)]
pub(crate) struct ExactSums {
    /// The capacity of every column, as far as the last sums tell.
    capacities: Vec<i32>,
    parts: Vec<Parts>,
    largest: Vec<f64>,
}

/// The sum of a column.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    high: f64,
    low: f64,
}

/// Columns that are added up at a time.
const TILE: usize = 256;
/// Numbers that are worth a second thread.
const WORTH_A_THREAD: usize = 1 << 16;

impl ExactSums {
    /// Sums of so many columns. Nothing is allocated after this.
    pub(crate) fn new(columns: usize) -> Self {
        ExactSums {
            capacities: vec![LEAST; columns],
            parts: vec![Parts::default(); columns],
            largest: vec![0.0; columns],
        }
    }

    /// Forgets how large the last sums were.
    pub(crate) fn forget(&mut self) {
        self.capacities.fill(LEAST);
    }

    /// `total_k = sum_c rows[c][k]`, where the rows have `total.len()` columns: over the rows of all processes. A sum with a
    /// term that is not finite is NaN.
    ///
    /// Sums are expected to be about as large as they were when this was called last.
    pub(crate) fn sum(&mut self, rows: &[f64], total: &mut [f64], with: &dyn Add) {
        let mut columns = self.columns();
        if !columns.try_sum(rows, total, with) {
            columns.sum(rows, total, with);
        }
        for (capacity, total) in self.capacities.iter_mut().zip(total) {
            *capacity = match exponent(*total) {
                NOTHING => NOTHING,
                // Whatever comes next is asked for.
                NOT_FINITE => LEAST,
                exponent => (exponent + GROWTH).min(MOST),
            };
        }
    }

    /// The same whatever the sums were before.
    pub(crate) fn sum_afresh(&mut self, rows: &[f64], total: &mut [f64], with: &dyn Add) {
        self.columns().sum(rows, total, with);
    }

    fn columns(&mut self) -> Columns<'_> {
        let ExactSums { capacities, parts, largest } = self;
        Columns { capacities, parts, largest }
    }
}

/// `sum_c rows[c][k]` of a few columns.
pub(crate) fn sum_few<const K: usize>(rows: &[f64], with: &dyn Add) -> [f64; K] {
    let (mut total, mut largest) = ([0.0; K], [0.0; K]);
    let (mut capacities, mut parts) = ([LEAST; K], [Parts::default(); K]);
    let (capacities, parts, largest) = (&mut capacities[..], &mut parts[..], &mut largest[..]);
    Columns { capacities, parts, largest }.sum(rows, &mut total, with);
    total
}

/// Space for the sums of some columns.
struct Columns<'a> {
    capacities: &'a mut [i32],
    parts: &'a mut [Parts],
    largest: &'a mut [f64],
}

impl Columns<'_> {
    fn sum(&mut self, rows: &[f64], total: &mut [f64], with: &dyn Add) {
        if total.is_empty() {
            return;
        }
        self.find_capacities(rows, with);
        if self.capacities.iter().any(|capacity| is_huge(*capacity)) {
            self.sum_huge(rows, total, with);
        } else {
            self.try_sum(rows, total, with);
        }
    }

    /// The smallest capacities for the columns of all processes.
    fn find_capacities(&mut self, rows: &[f64], with: &dyn Add) {
        self.largest.fill(0.0);
        for row in rows.chunks_exact(self.largest.len()) {
            for (largest, v) in self.largest.iter_mut().zip(row) {
                let size = if v.is_nan() { f64::INFINITY } else { v.abs() };
                *largest = largest.max(size);
            }
        }
        with.largest(self.largest);
        for (capacity, largest) in self.capacities.iter_mut().zip(&*self.largest) {
            *capacity = exponent(*largest);
        }
    }

    /// Adds up where some terms are so large that their grids are beyond the range of the numbers.
    fn sum_huge(&mut self, rows: &[f64], total: &mut [f64], with: &dyn Add) {
        let huge: Vec<bool> = self.capacities.iter().map(|capacity| is_huge(*capacity)).collect();
        for (capacity, _) in self.capacities.iter_mut().zip(&huge).filter(|(_, huge)| **huge) {
            *capacity -= DOWN;
        }
        let down = |(k, v): (usize, &f64)| if huge[k] { v * power(-DOWN) } else { *v };
        let rows = rows.chunks_exact(huge.len()).flat_map(|row| row.iter().enumerate().map(down));
        self.try_sum(&rows.collect::<Vec<f64>>(), total, with);
        for (total, _) in total.iter_mut().zip(huge).filter(|(_, huge)| *huge) {
            *total *= power(DOWN);
        }
    }

    /// Adds up with the capacities as they are. Returns whether they were right.
    fn try_sum(&mut self, rows: &[f64], total: &mut [f64], with: &dyn Add) -> bool {
        let columns = total.len();
        let mut fits = true;
        if rows.len() <= BATCH * columns && with.is_alone() {
            fits &= add_batch(rows, self.capacities, self.parts);
            for ((total, part), capacity) in
                total.iter_mut().zip(&*self.parts).zip(&*self.capacities)
            {
                *total = if *capacity == NOT_FINITE { f64::NAN } else { part.high + part.low };
            }
        } else {
            // In units of the grids, and the number of processes whose terms do not fit.
            let mut units = vec![0_i64; 2 * columns + 1];
            for batch in rows.chunks(BATCH * columns) {
                fits &= add_batch(batch, self.capacities, self.parts);
                let parts = self.parts.iter().zip(&*self.capacities);
                for (units, (part, capacity)) in units.chunks_exact_mut(2).zip(parts) {
                    for (units, new) in units.iter_mut().zip(part.units(*capacity)) {
                        // Terms that do not fit may leave any range: their sums are not used.
                        *units = units.wrapping_add(new);
                    }
                }
            }
            units[2 * columns] = i64::from(!fits);
            with.add(&mut units);
            fits = units[2 * columns] == 0;
            let units = units.chunks_exact(2).zip(&*self.capacities);
            for (total, (units, capacity)) in total.iter_mut().zip(units) {
                *total = from_units(units[0], units[1], *capacity);
            }
        }
        // Nor may the sums be much smaller than they were.
        fits && total.iter().zip(&*self.capacities).all(|(total, capacity)| match *capacity {
            NOT_FINITE => true,
            capacity => capacity <= LEAST || power(capacity - GROWTH - SHRINKAGE) <= total.abs(),
        })
    }
}

/// The parts of the sums of some rows; returns whether all terms are within the capacities.
fn add_batch(rows: &[f64], capacities: &[i32], parts: &mut [Parts]) -> bool {
    let columns = capacities.len();
    let add = |tile: usize, capacities: &[i32], parts: &mut [Parts]| {
        pulp::Arch::new().dispatch(Tile { rows, columns, first: tile * TILE, capacities, parts })
    };
    if rows.len() < WORTH_A_THREAD {
        let tiles = capacities.chunks(TILE).zip(parts.chunks_mut(TILE)).enumerate();
        tiles.fold(true, |all, (tile, (capacities, parts))| all & add(tile, capacities, parts))
    } else {
        (capacities.par_chunks(TILE).zip(parts.par_chunks_mut(TILE)))
            .enumerate()
            .map(|(tile, (capacities, parts))| add(tile, capacities, parts))
            .reduce(|| true, |a, b| a & b)
    }
}

/// Some columns that are added up.
struct Tile<'a> {
    rows: &'a [f64],
    columns: usize,
    first: usize,
    capacities: &'a [i32],
    parts: &'a mut [Parts],
}

impl pulp::WithSimd for Tile<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> bool {
        let len = self.capacities.len();
        let mut scales = [[0.0; TILE]; 3];
        let [most, coarse, fine] = &mut scales;
        for (k, capacity) in self.capacities.iter().enumerate() {
            (most[k], coarse[k], fine[k]) = match *capacity {
                // There is nothing to cut.
                NOTHING => (0.0, 0.0, 0.0),
                NOT_FINITE => (f64::INFINITY, 0.0, 0.0),
                capacity => (
                    power(capacity),
                    1.5 * power(capacity + 52 - PART),
                    1.5 * power(capacity + 52 - 2 * PART),
                ),
            };
        }
        let (most, coarse, fine) = (&most[..len], &coarse[..len], &fine[..len]);
        let (mut high, mut low) = ([0.0; TILE], [0.0; TILE]);
        let (high, low) = (&mut high[..len], &mut low[..len]);
        let mut outside = 0_u64;
        for row in self.rows.chunks_exact(self.columns) {
            let row = &row[self.first..self.first + len];
            let scales = most.iter().zip(coarse).zip(fine);
            let sums = high.iter_mut().zip(low.iter_mut());
            for ((v, ((most, coarse), fine)), (high, low)) in row.iter().zip(scales).zip(sums) {
                let upper = (v + coarse) - coarse;
                *high += upper;
                *low += ((v - upper) + fine) - fine;
                outside |= u64::from(v.abs() > *most) | u64::from(v.is_nan());
            }
        }
        for ((part, high), low) in self.parts.iter_mut().zip(high).zip(low) {
            *part = Parts { high: *high, low: *low };
        }
        outside == 0
    }
}

impl Parts {
    /// Both parts in units of their grids.
    #[expect(clippy::cast_possible_truncation, reason = "they are integers of less than 2^53")]
    fn units(self, capacity: i32) -> [i64; 2] {
        if let NOTHING | NOT_FINITE = capacity {
            return [0; 2];
        }
        let unit =
            |part: f64, grid: i32| (part * power(-grid / 2) * power(-(grid - grid / 2))) as i64;
        [unit(self.high, capacity - PART), unit(self.low, capacity - 2 * PART)]
    }
}

/// The number with these parts, rounded once.
fn from_units(high: i64, low: i64, capacity: i32) -> f64 {
    match capacity {
        NOTHING => 0.0,
        NOT_FINITE => f64::NAN,
        capacity => {
            let units = (i128::from(high) << PART) + i128::from(low);
            let grid = capacity - 2 * PART;
            units as f64 * power(grid / 2) * power(grid - grid / 2)
        }
    }
}

/// The smallest capacity that a number fits in: above its size.
fn exponent(x: f64) -> i32 {
    if x == 0.0 {
        NOTHING
    } else {
        let bits = (x.abs().to_bits() >> 52) as i32;
        // The smallest numbers lose digits that only numbers below the normal ones have.
        if x.is_finite() { (bits - 1022).max(LEAST) } else { NOT_FINITE }
    }
}

/// Whether terms of a capacity must be divided by something before they are cut.
fn is_huge(capacity: i32) -> bool {
    (MOST + 1..NOT_FINITE).contains(&capacity)
}

/// `2^n` of a normal number.
fn power(n: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&n), "a power of two out of range: {n}");
    f64::from_bits(u64::from((n + 1023).unsigned_abs()) << 52)
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// A process that has all rows, and knows that or adds as one of several would.
    struct Process {
        alone: bool,
    }

    const ALONE: Process = Process { alone: true };
    const ONE_OF_MANY: Process = Process { alone: false };

    impl Add for Process {
        fn add(&self, _: &mut [i64]) {}
        fn largest(&self, _: &mut [f64]) {}
        fn is_alone(&self) -> bool {
            self.alone
        }
    }

    /// Terms of many sizes, `rows` times 3.
    fn terms(rows: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..3 * rows)
            .map(|_| rng.random_range(-60.0..1.0_f64).exp() * rng.random::<f64>())
            .collect()
    }

    fn bits(sums: &mut ExactSums, rows: &[f64], with: &dyn Add) -> Vec<u64> {
        let mut total = [0.0; 3];
        sums.sum(rows, &mut total, with);
        total.map(f64::to_bits).to_vec()
    }

    /// The sum in integers of 128 bits, of terms between 2^-90 and 2^3.
    fn exact(rows: &[f64]) -> Vec<f64> {
        let unit = 2.0_f64.powi(-115);
        #[expect(clippy::cast_possible_truncation, reason = "they are integers")]
        let units = |x: f64| (x / unit) as i128;
        let sum = |k: usize| rows.chunks_exact(3).map(|row| units(row[k])).sum::<i128>();
        (0..3).map(|k| sum(k) as f64 * unit).collect()
    }

    #[test]
    fn sums_are_rounded_once() {
        for seed in 0..50 {
            let rows = terms(64, seed);
            let mut total = [0.0; 3];
            ExactSums::new(3).sum(&rows, &mut total, &ALONE);
            for (total, exact) in total.iter().zip(exact(&rows)) {
                assert!((total - exact).abs() <= 2.0_f64.powi(-53) * exact, "{total:e} {exact:e}");
            }
        }
    }

    #[test]
    fn neither_order_nor_processes_change_a_bit() {
        for seed in 0..50 {
            let rows = terms(100, seed);
            let wanted = bits(&mut ExactSums::new(3), &rows, &ALONE);
            let turned: Vec<f64> = rows.chunks_exact(3).rev().flatten().copied().collect();
            assert_eq!(bits(&mut ExactSums::new(3), &turned, &ALONE), wanted);
            assert_eq!(bits(&mut ExactSums::new(3), &rows, &ONE_OF_MANY), wanted);
            let plain = |rows: &[f64]| rows.chunks_exact(3).map(|row| row[0]).sum::<f64>();
            if seed == 0 {
                assert_ne!(plain(&rows).to_bits(), plain(&turned).to_bits(), "a test of nothing");
            }
        }
    }

    #[test]
    fn sums_that_change_are_as_right_as_the_first() {
        let mut sums = ExactSums::new(3);
        let mut scale = 1.0;
        for (step, factor) in
            [1.0, 3.0, 1e-3, 1e6, 1e-9, 0.0, 1.0, 1e-200, 1e250, 1.0].iter().enumerate()
        {
            scale = if scale == 0.0 { 1.0 } else { scale * factor };
            let rows: Vec<f64> = terms(64, step as u64).iter().map(|v| v * scale).collect();
            let mut total = [0.0; 3];
            sums.sum(&rows, &mut total, &ALONE);
            let (mut fresh, mut other) = ([0.0; 3], [0.0; 3]);
            ExactSums::new(3).sum(&rows, &mut fresh, &ALONE);
            for (a, b) in total.iter().zip(fresh) {
                assert!((a - b).abs() <= 1e-15 * b, "{a:e} {b:e}");
            }
            let mut again = sums.clone();
            again.sum(&rows, &mut other, &ALONE);
            sums.sum(&rows, &mut total, &ONE_OF_MANY);
            assert_eq!(total, other);
        }
    }

    #[test]
    fn many_rows_do_not_leave_the_integers() {
        let rows = vec![1.0 - f64::EPSILON; 3 * (2 * BATCH + 5)];
        let mut total = [0.0; 3];
        ExactSums::new(3).sum(&rows, &mut total, &ALONE);
        let count = (2 * BATCH + 5) as f64;
        assert_eq!(total, [count * (1.0 - f64::EPSILON); 3]);
    }

    #[test]
    fn what_is_not_finite_is_seen_and_forgotten() {
        let mut sums = ExactSums::new(2);
        let mut total = [0.0; 2];
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            sums.sum(&[1.0, 2.0, bad, 3.0, 1.0, 2.0], &mut total, &ALONE);
            assert!(total[0].is_nan() && total[1] == 7.0);
            sums.sum(&[1.0, 2.0, 5.0, 3.0], &mut total, &ONE_OF_MANY);
            assert_eq!(total, [6.0, 5.0]);
        }
        sums.sum(&[0.0, -2.0, 0.0, 2.0], &mut total, &ALONE);
        assert_eq!(total, [0.0; 2]);
        sums.sum(&[5e-324, 1e300, 1e-310, 1e300], &mut total, &ALONE);
        // The grid of the smallest numbers has units of 2^-1070.
        assert!((total[0] - 1e-310).abs() < 2e-322 && total[1] == 2e300, "{total:?}");
        sums.sum(&[1e-300, 1e307, 1e-300, -3e306, 1e-300, 1e290], &mut total, &ONE_OF_MANY);
        assert_eq!(total, [3e-300, 7e306]);
        sums.sum(&[1.0, 1e308, 2.0, 1.5e308], &mut total, &ALONE);
        assert_eq!(total, [3.0, f64::INFINITY]);
    }

    #[test]
    fn many_columns_are_added_by_several_threads() {
        let columns = 1000;
        let rows: Vec<f64> = (0..100 * columns).map(|i| (i % 977) as f64).collect();
        let mut total = vec![0.0; columns];
        ExactSums::new(columns).sum(&rows, &mut total, &ALONE);
        for (k, total) in total.iter().enumerate() {
            let sum: f64 = rows.iter().skip(k).step_by(columns).sum();
            assert_eq!(*total, sum);
        }
    }
}
