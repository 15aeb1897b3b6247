//! Points drawn given a node.

use rayon::prelude::*;

use super::Separable;
use super::cells::Cell;
use super::geometry::Geometry;
use super::whole::FAINT_TILE;
use super::window::Window;
use super::work::{Work, block};
use crate::kernel::{DRAW_ROUNDS, Open, Waiting};
use crate::numerics::simd::Float;

impl Work<f64> {
    /// What point `i` of the last block sends to a node of the tile, as the block does.
    fn tile_point(
        &self,
        geometry: &Geometry<'_>,
        tile: &Window,
        points: usize,
        node: usize,
        i: usize,
    ) -> f64 {
        let (mut product, mut rest) = (self.factors[i], node);
        for a in (0..geometry.dim).rev() {
            let j = rest % tile.len[a];
            rest /= tile.len[a];
            product *= self.tables[tile.table(a, points).start + j * points + i];
        }
        product
    }

    /// Adds the points of a cell to the sums at nodes of a tile that draws wait for. `first` is the place of the
    /// first point of the cell, `tops` are the logarithms that sums are relative to.
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    fn find(
        &mut self,
        geometry: &Geometry<'_>,
        cell: &Cell,
        tile: &Window,
        offsets: &[f64],
        f: &[f64],
        first: usize,
        tops: &[f64],
        open: &mut [Open],
        waiting: &mut [Waiting],
    ) {
        let width = tile.len[geometry.dim - 1];
        let rows = tile.nodes() / width;
        // The nodes of a row follow each other, and draws are sorted by node.
        let of_row = |open: &[Open], row: usize| {
            let start = geometry.row_start(tile, row);
            let begin = open.partition_point(|o| o.feature < start);
            let len = open[begin..].partition_point(|o| o.feature < start + width);
            (start, begin..begin + len)
        };
        if (0..rows).all(|row| open[of_row(open, row).1].iter().all(Open::is_done)) {
            return;
        }
        let top = self.tile_exponents(geometry, cell, tile, offsets, f);
        let mut sought: Vec<(usize, usize, f64)> = Vec::new();
        for row in 0..rows {
            let (start, range) = of_row(open, row);
            let outer = top + geometry.outer_exponent(tile, row, &self.exponent_tables);
            for at in range.filter(|&at| !open[at].is_done()) {
                let column = open[at].feature - start;
                let log = outer + self.exponent_tables[geometry.dim - 1][column];
                let scale = (log - tops[open[at].feature]).exp();
                sought.push((at, row * width + column, scale));
            }
        }
        for from in (0..cell.len).step_by(block::<f64>()) {
            self.clear(tile, 1);
            let [len, points] = self.tile_block(geometry, cell, tile, offsets, from, top);
            for &(at, node, scale) in &sought {
                let open = &mut open[at];
                let sum = open.sum + scale * self.sums[node];
                if open.is_due(sum, waiting) {
                    for i in 0..len {
                        let mass = scale * self.tile_point(geometry, tile, points, node, i);
                        open.add(mass, first + from + i, waiting);
                    }
                }
                open.reach(sum, waiting);
            }
        }
    }
}

impl Separable<'_, f64> {
    /// After [`HalfKernel::message`]: for each chunk, its part of the sum at every node, relative to the largest; and the
    /// number of nodes.
    pub(crate) fn chunk_sums(&self) -> (&[f64], usize) {
        (&self.sums, self.lattice.nodes())
    }

    /// After [`HalfKernel::message`] of the same `f`: finds the points at which sums at nodes reach what draws wait for, which
    /// are sorted, a list a chunk.
    pub(crate) fn find(&mut self, f: &[f64], waiting: &mut [Vec<Waiting>]) {
        self.with_sorted(f, |side, f| side.find_places(f, waiting));
        for found in waiting.iter_mut().flatten() {
            found.place = self.cells.order[found.place] as usize;
        }
    }

    fn find_places(&mut self, f: &[f64], waiting: &mut [Vec<Waiting>]) {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        let (tiles, least, tops) = (&self.tiles, &self.least, &self.top[..]);
        let (faint, most) = (self.cutoff + FAINT_TILE, geometry.widest(half, f64::POWERS));
        self.chunks.par_iter_mut().zip(waiting).with_max_len(1).for_each(|(chunk, waiting)| {
            let mut open = Open::all(waiting);
            for _ in 0..DRAW_ROUNDS {
                for spot in &chunk.spots {
                    let cell = &spot.cell;
                    let range = cell.first..cell.first + cell.len;
                    let first = chunk.first + range.start;
                    let f = &f[first..first + cell.len];
                    let offsets =
                        &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                    let reach = spot.reach(&geometry, half, tiles, least, faint);
                    for tile in reach.into_iter().flat_map(|reach| reach.pieces(most)) {
                        let (open, waiting) = (&mut open, &mut *waiting);
                        chunk
                            .exact
                            .find(&geometry, cell, &tile, offsets, f, first, tops, open, waiting);
                    }
                    open.retain(|open| !open.is_done());
                }
                for open in &mut open {
                    open.restart(waiting);
                }
            }
        });
    }
}
