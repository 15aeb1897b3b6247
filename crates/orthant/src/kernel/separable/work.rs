//! Scratch space for one cell at a time: tables of powers, and products with them.

use super::cells::Cell;
use super::geometry::{CellState, Geometry};
use super::window::Window;
use crate::anchors::MOST_AXES;
use crate::numerics::simd::{self, Float};

/// Scratch space for one cell at a time.
#[derive(Debug, Default)]
pub(super) struct Work<T> {
    /// `Z` of the window.
    pub(super) z: Vec<T>,
    /// `sum_x q_x T_u(x)` of the window.
    pub(super) sums: Vec<f64>,
    /// Tables, one axis after the other, and their exponents.
    pub(super) tables: Vec<T>,
    pub(super) exponents: Vec<T>,
    /// A table with a factor for each point.
    pub(super) product: Vec<T>,
    pub(super) weighted: Vec<T>,
    /// A row of products over the inner axes.
    pub(super) inner: Vec<T>,
    pub(super) factors: Vec<T>,
    pub(super) out: Vec<T>,
    pub(super) scratch: Vec<T>,
    /// `N_u`, axis by axis.
    pub(super) exponent_tables: [Vec<f64>; MOST_AXES],
    pub(super) logs: Vec<f64>,
    pub(super) zero: Vec<f64>,
    /// Values of a block of points, row by row.
    pub(super) values: Vec<f64>,
}

/// A buffer of at least this length.
pub(super) fn room<T: Float>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        // More than asked for: windows that grow a little should not allocate each time.
        buffer.resize(len.next_power_of_two(), T::ZERO);
    }
    &mut buffer[..len]
}

/// Points that are treated together: as many as fill a few cache lines a row.
pub(super) fn block<T>() -> usize {
    512 / size_of::<T>()
}

/// Some points of a cell, whose tables are filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) from: usize,
    pub(super) len: usize,
    /// Their number, padded.
    pub(super) points: usize,
}

impl<T: Float> Work<T> {
    /// Visits the points of a cell, block by block, with their tables. What they send is summed in so many columns.
    #[inline(always)]
    pub(super) fn for_blocks(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &CellState,
        offsets: &[f64],
        columns: usize,
        mut visit: impl FnMut(&mut Self, Block),
    ) {
        self.clear(&spot.window, columns);
        for from in (0..spot.cell.len).step_by(block::<T>()) {
            let len = block::<T>().min(spot.cell.len - from);
            let points = self.tabulate(geometry, &spot.window, offsets, from, len);
            visit(self, Block { from, len, points });
        }
    }

    /// The points of a block take the message and answer it: `answer` gets their sums and writes what they send.
    #[inline(always)]
    pub(super) fn answer(
        &mut self,
        geometry: &Geometry<'_>,
        window: &Window,
        block: Block,
        answer: impl FnOnce(&[T], &mut [T]),
    ) {
        self.gather(geometry, window, block.points);
        let scaled = room(&mut self.factors, block.points);
        scaled[block.len..].fill(T::ZERO);
        answer(&self.out[..block.len], &mut scaled[..block.len]);
        self.scatter(geometry, window, block.points, 0);
    }

    /// Loads `Z` of a window; returns `s`, or minus infinity if no node of the window has a message.
    pub(super) fn load(
        &mut self,
        geometry: &Geometry<'_>,
        cell: &Cell,
        window: &Window,
        z: &[f64],
    ) -> f64 {
        geometry.load_exponents(cell, window, &mut self.exponent_tables);
        let width = window.len[geometry.dim - 1];
        let logs = room(&mut self.logs, window.nodes());
        let mut scale = f64::NEG_INFINITY;
        for (row, logs) in logs.chunks_exact_mut(width).enumerate() {
            let start = geometry.row_start(window, row);
            let outer = geometry.outer_exponent(window, row, &self.exponent_tables);
            let inner = &self.exponent_tables[geometry.dim - 1];
            // The first axis carries the constant; where it is also the last, `outer` is zero.
            for ((l, n), z) in logs.iter_mut().zip(inner).zip(&z[start..]) {
                *l = outer + n + z;
                scale = scale.max(*l);
            }
        }
        let nodes = window.nodes();
        let z = room(&mut self.z, nodes);
        if scale > f64::NEG_INFINITY {
            if self.zero.len() < nodes {
                self.zero.resize(nodes.next_power_of_two(), 0.0);
            }
            simd::exp_row(logs, &self.zero[..nodes], scale, z);
        } else {
            z.fill(T::ZERO);
        }
        scale
    }

    /// Adds `factor Z_u sums_u` of a window to the sums over the lattice: mass of the plan. Of several columns, those of
    /// one after those of the other.
    pub(super) fn add_mass(
        &self,
        geometry: &Geometry<'_>,
        window: &Window,
        factor: f64,
        total: &mut [f64],
    ) {
        let width = window.len[geometry.dim - 1];
        let nodes = window.nodes();
        let columns = total.chunks_exact_mut(geometry.lattice.nodes());
        for (total, sums) in columns.zip(self.sums.chunks_exact(nodes)) {
            let rows = self.z[..nodes].chunks_exact(width).zip(sums.chunks_exact(width));
            for (row, (z, sums)) in rows.enumerate() {
                let start = geometry.row_start(window, row);
                for ((total, z), sum) in total[start..].iter_mut().zip(z).zip(sums) {
                    *total += factor * z.to_f64() * sum;
                }
            }
        }
    }

    /// Clears the sums of a window, so many columns.
    pub(super) fn clear(&mut self, window: &Window, columns: usize) {
        room(&mut self.sums, columns * window.nodes()).fill(0.0);
    }

    /// Fills the tables for points `from..from + len` of a cell, whose offsets are `offsets`; returns
    /// the padded number of points.
    pub(super) fn tabulate(
        &mut self,
        geometry: &Geometry<'_>,
        window: &Window,
        offsets: &[f64],
        from: usize,
        len: usize,
    ) -> usize {
        geometry.lattice.check_cancelled();
        let points = simd::padded(len);
        let in_cell = offsets.len() / geometry.dim;
        let step = 2.0 * geometry.square * geometry.lattice.spacing();
        let total: usize = window.len[..geometry.dim].iter().sum();
        room(&mut self.tables, total * points);
        room(&mut self.exponents, points);
        room(&mut self.scratch, 2 * points);
        let mut at = 0;
        for a in 0..geometry.dim {
            let t = &offsets[a * in_cell + from..a * in_cell + from + len];
            let exponents = &mut self.exponents[..points];
            exponents[len..].fill(T::ZERO);
            for (e, t) in exponents.iter_mut().zip(t) {
                *e = T::from_f64(step * t);
            }
            let size = window.len[a] * points;
            simd::powers(
                exponents,
                window.len[a],
                window.middle(a),
                &mut self.tables[at..at + size],
                &mut self.scratch,
            );
            at += size;
        }
        points
    }

    /// `out_x = sum_u T_u(x) Z_u` for the points of the tables.
    pub(super) fn gather(&mut self, geometry: &Geometry<'_>, window: &Window, points: usize) {
        let out = room(&mut self.out, points);
        out.fill(T::ZERO);
        let z = &self.z[..window.nodes()];
        let table = |a: usize| &self.tables[window.table(a, points)];
        let (last, width) = (geometry.dim - 1, window.len[geometry.dim - 1]);
        if last == 0 {
            let one = room(&mut self.inner, points);
            one.fill(T::from_f64(1.0));
            simd::gather(z, width, one, table(0), None, out);
        } else if last == 1 {
            simd::gather(z, width, table(0), table(1), None, out);
        } else {
            let inner = window.inner(geometry.dim);
            for m in 0..inner {
                let row = room(&mut self.inner, points);
                let weight = inner_row(&self.tables, window, geometry.dim, points, m, row);
                let z = &z[m * width..];
                simd::gather(z, inner * width, table(0), table(last), Some(weight), out);
            }
        }
    }

    /// `sums_u += sum_x factor_x T_u(x)` for the points of the tables, in a column of the sums.
    pub(super) fn scatter(
        &mut self,
        geometry: &Geometry<'_>,
        window: &Window,
        points: usize,
        column: usize,
    ) {
        let factors = &self.factors[..points];
        let nodes = window.nodes();
        let sums = &mut self.sums[column * nodes..(column + 1) * nodes];
        let table = |a: usize| &self.tables[window.table(a, points)];
        let (last, width) = (geometry.dim - 1, window.len[geometry.dim - 1]);
        if last == 0 {
            simd::scatter(factors, table(0), points, sums, width);
            return;
        }
        let product = room(&mut self.product, window.len[0] * points);
        simd::multiply(table(0), factors, product);
        if last == 1 {
            simd::scatter(product, table(1), points, sums, width);
            return;
        }
        let inner = window.inner(geometry.dim);
        for m in 0..inner {
            let row = room(&mut self.inner, points);
            let weight = inner_row(&self.tables, window, geometry.dim, points, m, row);
            let weighted = room(&mut self.weighted, product.len());
            simd::multiply(product, weight, weighted);
            simd::scatter(weighted, table(last), points, &mut sums[m * width..], inner * width);
        }
    }
}

/// Product of the tables of the axes between the first and the last (one or two) at their node `m`.
fn inner_row<'r, T: Float>(
    tables: &'r [T],
    window: &Window,
    dim: usize,
    points: usize,
    m: usize,
    product: &'r mut [T],
) -> &'r [T] {
    let row = |a: usize, j: usize| {
        let start = window.table(a, points).start + j * points;
        &tables[start..start + points]
    };
    if dim == 3 {
        row(1, m)
    } else {
        simd::multiply(row(1, m / window.len[2]), row(2, m % window.len[2]), product);
        product
    }
}
