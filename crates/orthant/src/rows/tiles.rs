//! Rows of logarithms in tiles of a few rows and a [panel](PANEL) of columns, for passes that need no whole row at once.

use super::LogRows;
use crate::numerics::simd::{Float, PANEL, PANEL_STEP, TILE_ROWS, padded};

/// Rows in tiles, in the precision `T`.
///
/// An entry is `common_i + per_column_k + rest_ik`: tiles are of `start_k + rest_ik`, where `start` has what is per column,
/// and a message.
pub(crate) trait Tiles<T>: Send + Sync {
    /// Adds what the entries of every column have in common to a message.
    fn start(&self, _message: &mut [f64]) {}

    /// Numbers that [`Tiles::load`] needs for some rows: in the precision of the tiles, and in double precision.
    fn block(&self, rows: usize) -> [usize; 2];

    /// Makes the rows `first, first + 1, ...` ready; `common` is as long as there are rows, and gets what the entries of
    /// each have in common.
    fn load(&self, first: usize, common: &mut [f64], block: (&mut [T], &mut [f64]));

    /// [`TILE_ROWS`] rows of a block from `row` on, a multiple of that, over the columns of a panel, as many as `start`
    /// has. Rows that were not loaded may be anything.
    fn tile(&self, block: (&[T], &[f64]), row: usize, panel: usize, start: &[T], out: &mut [T]);
}

/// Length of the scratch space that [`fill_by_tiles`] needs.
pub(crate) fn scratch_of_tiles(tiles: &dyn Tiles<f64>, columns: usize) -> usize {
    let [packed, whole] = tiles.block(TILE_ROWS);
    packed + whole + TILE_ROWS * PANEL + columns.next_multiple_of(PANEL_STEP)
}

/// [`LogRows::fill`] of rows that have tiles and so many columns.
pub(crate) fn fill_by_tiles(
    tiles: &dyn Tiles<f64>,
    columns: usize,
    first: usize,
    stride: usize,
    out: &mut [f64],
    scratch: &mut [f64],
) {
    let [packed, whole] = tiles.block(TILE_ROWS);
    let (packed, rest) = scratch.split_at_mut(packed);
    let (whole, rest) = rest.split_at_mut(whole);
    let (tile, start) = rest.split_at_mut(TILE_ROWS * PANEL);
    let start = &mut start[..columns.next_multiple_of(PANEL_STEP)];
    start.fill(0.0);
    tiles.start(&mut start[..columns]);
    let mut common = [0.0; TILE_ROWS];
    for (g, out) in out.chunks_mut(TILE_ROWS * stride).enumerate() {
        let common = &mut common[..out.len() / stride];
        tiles.load(first + g * TILE_ROWS, common, (&mut *packed, &mut *whole));
        for (panel, start) in start.chunks(PANEL).enumerate() {
            let (begin, width) = (panel * PANEL, start.len());
            let tile = &mut tile[..TILE_ROWS * width];
            tiles.tile((&*packed, &*whole), 0, panel, start, tile);
            let rows = out.chunks_exact_mut(stride).zip(tile.chunks_exact(width));
            for ((out, tile), common) in rows.zip(&*common) {
                for (out, log) in out[begin..columns].iter_mut().zip(tile) {
                    *out = log + common;
                }
            }
        }
    }
}

/// A precision of tiles.
pub(crate) trait TileFloat: Float {
    /// The tiles of some rows, if they have any of their own.
    fn tiles(rows: &dyn LogRows) -> Option<&dyn Tiles<Self>>;
}

impl TileFloat for f64 {
    fn tiles(rows: &dyn LogRows) -> Option<&dyn Tiles<f64>> {
        rows.tiles()
    }
}

impl TileFloat for f32 {
    fn tiles(rows: &dyn LogRows) -> Option<&dyn Tiles<f32>> {
        rows.tiles_f32()
    }
}

/// Tiles of rows that are evaluated one by one.
pub(crate) struct WholeRows<'a>(pub(crate) &'a dyn LogRows);

impl<T: Float> Tiles<T> for WholeRows<'_> {
    fn block(&self, rows: usize) -> [usize; 2] {
        [0, rows.next_multiple_of(TILE_ROWS) * padded(self.0.rank()) + self.0.scratch()]
    }

    fn load(&self, first: usize, common: &mut [f64], (_, block): (&mut [T], &mut [f64])) {
        let stride = padded(self.0.rank());
        let (rows, scratch) = block.split_at_mut(block.len() - self.0.scratch());
        self.0.fill(first, stride, &mut rows[..common.len() * stride], scratch);
        common.fill(0.0);
    }

    fn tile(
        &self,
        (_, block): (&[T], &[f64]),
        row: usize,
        panel: usize,
        start: &[T],
        out: &mut [T],
    ) {
        let (rank, stride) = (self.0.rank(), padded(self.0.rank()));
        let first = panel * PANEL;
        let inside = start.len().min(rank - first);
        for (r, out) in out.chunks_exact_mut(start.len()).take(TILE_ROWS).enumerate() {
            let logs = &block[(row + r) * stride + first..][..inside];
            let (out, rest) = out.split_at_mut(inside);
            for ((out, log), start) in out.iter_mut().zip(logs).zip(start) {
                *out = T::from_f64(log + start.to_f64());
            }
            rest.fill(T::from_f64(f64::NEG_INFINITY));
        }
    }
}
