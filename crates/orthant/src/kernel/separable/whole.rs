//! Messages over the whole lattice, by boxes of nodes.

use rayon::prelude::*;

use super::Separable;
use super::cells::Cell;
use super::geometry::{CellState, Geometry};
use super::window::Window;
use super::work::{Work, block, room};
use crate::numerics::Add as _;
use crate::numerics::simd::{self, Float};

/// Terms of a message below `exp(-cutoff - FAINT_TILE)` of it are left out: together they are less than what windows leave out.
pub(super) const FAINT_TILE: f64 = 12.0;
/// Messages are completed in the precision of the tables if what the windows leave out, `exp(-cutoff)`, is coarser than that by far.
const ROUGH: f64 = 18.5;

impl<T: Float> Work<T> {
    /// `f + E` of the points of a cell, seen from a tile, to `logs`; returns the largest.
    pub(super) fn tile_exponents(
        &mut self,
        geometry: &Geometry<'_>,
        cell: &Cell,
        tile: &Window,
        offsets: &[f64],
        f: &[f64],
    ) -> f64 {
        let centre = geometry.centre(tile);
        let exponents = room(&mut self.logs, cell.len);
        let mut top = f64::NEG_INFINITY;
        for (i, (e, f)) in exponents.iter_mut().zip(f).enumerate() {
            *e = f + geometry.point_exponent(cell, &centre, |a| offsets[a * cell.len + i]);
            top = top.max(*e);
        }
        if self.zero.len() < block::<T>() {
            self.zero.resize(block::<T>(), 0.0);
        }
        geometry.load_exponents(cell, tile, &mut self.exponent_tables);
        top
    }

    /// Adds what a block of points sends to the nodes of a tile to `sums`, relative to `exp(top)` and to the
    /// factors of the nodes. Returns the number of points and their padded number.
    pub(super) fn tile_block(
        &mut self,
        geometry: &Geometry<'_>,
        cell: &Cell,
        tile: &Window,
        offsets: &[f64],
        from: usize,
        top: f64,
    ) -> [usize; 2] {
        let len = block::<T>().min(cell.len - from);
        let points = self.tabulate(geometry, tile, offsets, from, len);
        let factors = room(&mut self.factors, points);
        factors[len..].fill(T::ZERO);
        let logs = &self.logs[from..from + len];
        simd::exp_row(logs, &self.zero[..len], top, &mut factors[..len]);
        self.scatter(geometry, tile, points, 0);
        [len, points]
    }

    /// Adds what the points of a cell, of potential `f`, send to the nodes of a tile: `sums exp(tops)`.
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    pub(super) fn tile(
        &mut self,
        geometry: &Geometry<'_>,
        cell: &Cell,
        tile: &Window,
        offsets: &[f64],
        f: &[f64],
        sums: &mut [f64],
        tops: &mut [f64],
    ) {
        geometry.lattice.check_cancelled();
        let top = self.tile_exponents(geometry, cell, tile, offsets, f);
        self.clear(tile, 1);
        for from in (0..cell.len).step_by(block::<T>()) {
            self.tile_block(geometry, cell, tile, offsets, from, top);
        }
        let width = tile.len[geometry.dim - 1];
        for (row, new) in self.sums[..tile.nodes()].chunks_exact(width).enumerate() {
            let start = geometry.row_start(tile, row);
            let outer = top + geometry.outer_exponent(tile, row, &self.exponent_tables);
            let inner = &self.exponent_tables[geometry.dim - 1];
            for (((sum, most), new), n) in
                sums[start..].iter_mut().zip(&mut tops[start..]).zip(new).zip(inner)
            {
                let log = outer + n;
                if log > *most {
                    *sum = *sum * (*most - log).exp() + new;
                    *most = log;
                } else {
                    *sum += new * (log - *most).exp();
                }
            }
        }
    }
}

impl<T: Float> Separable<'_, T> {
    /// The message of the potential `f` over the whole lattice.
    pub(super) fn whole(&mut self, f: &[f64], y: &mut [f64]) {
        let geometry = Geometry::new(self.lattice);
        let half = self.cells.half;
        self.chunks.par_iter_mut().for_each(|chunk| {
            for spot in &mut chunk.spots {
                let first = chunk.first + spot.cell.first;
                let f = &f[first..first + spot.cell.len];
                spot.summit = f.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            }
        });
        let (chunks, tiles) = (&self.chunks, &self.tiles);
        // What windows have sent is a part of the message.
        let sent = self.sent.then_some((&self.mass[..], &self.z[..]));
        tiles.par_iter().zip(&mut self.least).for_each(|(tile, least)| {
            geometry.lattice.check_cancelled();
            let spots = chunks.iter().flat_map(|chunk| &chunk.spots);
            let far = |spot: &CellState| geometry.distances(&spot.cell, half, tile)[1];
            *least = spots
                .map(|spot| spot.summit - geometry.square * far(spot))
                .fold(f64::NEG_INFINITY, f64::max);
            if let Some((mass, z)) = sent {
                *least = least.max(geometry.least_sent(tile, mass, z));
            }
        });
        self.span.largest(&mut self.least);
        let least = &self.least;
        let nodes = self.lattice.nodes();
        let (faint, rough) = (self.cutoff + FAINT_TILE, self.cutoff < ROUGH);
        let most = geometry.widest(half, if rough { T::POWERS } else { f64::POWERS });
        self.chunks
            .par_iter_mut()
            .zip(self.sums.par_chunks_mut(nodes))
            .zip(self.tops.par_chunks_mut(nodes))
            .with_max_len(1)
            .for_each(|((chunk, sums), tops)| {
                sums.fill(0.0);
                tops.fill(f64::NEG_INFINITY);
                for spot in &chunk.spots {
                    let cell = &spot.cell;
                    let range = cell.first..cell.first + cell.len;
                    let f = &f[chunk.first + range.start..chunk.first + range.end];
                    let offsets =
                        &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                    let reach = spot.reach(&geometry, half, tiles, least, faint);
                    for tile in reach.into_iter().flat_map(|reach| reach.pieces(most)) {
                        if rough {
                            chunk.work.tile(&geometry, cell, &tile, offsets, f, sums, tops);
                        } else {
                            chunk.exact.tile(&geometry, cell, &tile, offsets, f, sums, tops);
                        }
                    }
                }
            });
        self.span.max_chunks(&self.tops, &mut self.top);
        let top = &self.top[..];
        self.sums.par_chunks_mut(nodes).zip(self.tops.par_chunks(nodes)).for_each(
            |(sums, tops)| {
                for ((sum, most), top) in sums.iter_mut().zip(tops).zip(top) {
                    if *most > f64::NEG_INFINITY {
                        *sum *= (most - top).exp();
                    }
                }
            },
        );
        self.span.sum_afresh(&mut self.whole_sums, &self.sums, &mut self.total);
        self.write_message(y);
    }

    /// Writes the last message that was computed whole.
    pub(super) fn write_message(&self, y: &mut [f64]) {
        for ((y, sum), top) in y.iter_mut().zip(&self.total).zip(&self.top) {
            *y = if *top > f64::NEG_INFINITY { top + sum.ln() } else { *top };
        }
        if let Some(kept) = self.lattice.kept() {
            for (y, kept) in y.iter_mut().zip(kept) {
                if !kept {
                    *y = f64::NEG_INFINITY;
                }
            }
        }
    }
}
