//! Which nodes matter to a cell: its window, chosen for a message.

use rayon::prelude::*;

use super::Separable;
use super::cells::Cell;
use super::geometry::Geometry;
use super::window::Window;
use super::work::Work;
use crate::anchors::MOST_AXES;
use crate::error::Result;
use crate::numerics::simd::Float;

/// Windows are chosen anew when a message has moved by more than this.
const WINDOW_DRIFT: f64 = 2.0;
/// Messages are completed when they have moved by more than this since they were.
const FORGETFUL: f64 = 10.0;
/// Where a node has at least this part of its share of the mass.
const HEAVY: f64 = 1e-3;
/// Corners of a cell, and of its projection along the last axis.
const CORNERS: usize = 1 << MOST_AXES;
const OUTER: usize = CORNERS / 2;

impl<T: Float> Separable<'_, T> {
    /// Whether a message has moved far, or the windows, chosen anew where it has moved, have no node of it.
    pub(super) fn needs_completion(&mut self, z: &[f64]) -> bool {
        // Where there was mass in the last pass: elsewhere windows know little of a message.
        let heavy = HEAVY / z.len() as f64;
        let heavy = z.iter().zip(&self.completed).zip(&self.mass).filter(|(_, m)| **m > heavy);
        if drift(heavy.map(|(pair, _)| pair)) > FORGETFUL {
            return true;
        }
        if drift(z.iter().zip(&self.aimed)) > WINDOW_DRIFT {
            let empty = self.choose_windows(z).is_some();
            self.span.any(empty)
        } else {
            self.span.any(self.has_empty_window(z))
        }
    }

    /// Chooses the windows for a message. Returns the place of a point whose cell has no node with a message, if there is
    /// one.
    pub(super) fn choose_windows(&mut self, z: &[f64]) -> Option<usize> {
        let geometry = Geometry::new(self.lattice);
        let width = self.lattice.counts()[geometry.dim - 1];
        // The largest entry of every row of nodes.
        self.best.clear();
        self.best.extend(
            z.chunks_exact(width).map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        );
        let (best, half) = (&self.best[..], self.cells.half);
        // Terms are compared at the corners of a cell; between them they may be larger by this.
        let slack = 0.5 + geometry.dim as f64 * geometry.square * half * half;
        let cutoff = self.cutoff + slack;
        let has_empty_window = self
            .chunks
            .par_iter_mut()
            .with_max_len(1)
            .map(|chunk| {
                let mut has_empty_window = None;
                for spot in &mut chunk.spots {
                    geometry.lattice.check_cancelled();
                    let range = spot.cell.first..spot.cell.first + spot.cell.len;
                    let aim = Aim { geometry, z, best, half, cutoff };
                    let Some(window) = aim.window(&spot.cell, &mut chunk.exact) else {
                        has_empty_window = has_empty_window.or(Some(chunk.first + range.start));
                        continue;
                    };
                    if window == spot.window {
                        continue;
                    }
                    // The factors are relative to the centre of the window.
                    let factors = &mut chunk.factors[range.clone()];
                    let offsets =
                        &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                    let len = spot.cell.len;
                    let new = geometry.centre(&window);
                    for (i, q) in factors.iter_mut().enumerate() {
                        let log = if spot.logs { *q } else { q.ln() };
                        let t = |a: usize| offsets[a * len + i];
                        *q = log - spot.exponent(&geometry, offsets, i)
                            + geometry.point_exponent(&spot.cell, &new, t);
                    }
                    spot.logs = true;
                    spot.window = window;
                }
                has_empty_window
            })
            // The first of them all, whoever found it first.
            .reduce(|| None, |a, b| a.into_iter().chain(b).min());
        self.aimed.clear();
        self.aimed.extend_from_slice(z);
        has_empty_window
    }

    /// Whether some window has no node with a message.
    pub(super) fn has_empty_window(&self, z: &[f64]) -> bool {
        let geometry = Geometry::new(self.lattice);
        let width = |window: &Window| window.len[geometry.dim - 1];
        let heard = |window: &Window, row: usize| {
            let start = geometry.row_start(window, row);
            z[start..start + width(window)].iter().any(|z| *z > f64::NEG_INFINITY)
        };
        self.chunks.iter().flat_map(|chunk| &chunk.spots).any(|spot| {
            let rows = spot.window.nodes() / width(&spot.window);
            // The middle is where messages are.
            !heard(&spot.window, rows / 2) && !(0..rows).any(|row| heard(&spot.window, row))
        })
    }

    /// Chooses the windows for a message anew, if it has moved far from the one that they were chosen for.
    pub(super) fn follow(&mut self, z: &[f64]) -> Result<()> {
        if self.aimed.is_empty() || drift(z.iter().zip(&self.aimed)) > WINDOW_DRIFT {
            return self.choose_windows_for(z);
        }
        Ok(())
    }

    /// [`Separable::aim`] where every cell must have a node.
    pub(super) fn choose_windows_for(&mut self, z: &[f64]) -> Result<()> {
        match self.choose_windows(z) {
            Some(place) => Err(self.breakdown_at(place, 0.0)),
            None => Ok(()),
        }
    }
}

/// How far a message is from another, up to a constant.
fn drift<'z>(pairs: impl Iterator<Item = (&'z f64, &'z f64)>) -> f64 {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (z, from) in pairs {
        let moved = z - from;
        // Minus infinity is no message; the difference of two is NaN.
        if moved.is_finite() {
            low = low.min(moved);
            high = high.max(moved);
        }
    }
    high - low
}

/// How windows are chosen.
struct Aim<'a> {
    geometry: Geometry<'a>,
    z: &'a [f64],
    best: &'a [f64],
    half: f64,
    cutoff: f64,
}

/// A message as the corners of a cell see it.
struct View<'a> {
    aim: &'a Aim<'a>,
    counts: &'a [usize],
    last: usize,
    /// Exponents of every node of an axis at the lower and at the upper face of the cell.
    tables: &'a [Vec<f64>; MOST_AXES],
    /// The largest on the last axis, for each face.
    summits: [f64; 2],
}

impl View<'_> {
    /// Corners of the outer axes.
    fn outer_corners(&self) -> usize {
        1 << self.last
    }

    /// The faces of the last axis.
    fn faces(&self) -> [(usize, &[f64]); 2] {
        let (low, high) = self.tables[self.last].split_at(self.counts[self.last]);
        [(0, low), (1, high)]
    }

    /// Exponent of the outer axes of a row, for each corner of them.
    fn outer(&self, row: usize) -> [f64; OUTER] {
        let mut sums = [0.0; OUTER];
        let mut rest = row;
        for a in (0..self.last).rev() {
            let j = rest % self.counts[a];
            rest /= self.counts[a];
            for (corner, sum) in sums[..self.outer_corners()].iter_mut().enumerate() {
                *sum += self.tables[a][(corner >> a & 1) * self.counts[a] + j];
            }
        }
        sums
    }

    fn message(&self, row: usize) -> &[f64] {
        let width = self.counts[self.last];
        &self.aim.z[row * width..(row + 1) * width]
    }

    /// Raises the largest term of each corner to that of a row, if it is larger.
    fn raise(&self, row: usize, tops: &mut [f64; CORNERS]) {
        if self.aim.best[row] == f64::NEG_INFINITY {
            return;
        }
        let outer = self.outer(row);
        for (face, table) in self.faces() {
            for (corner, outer) in outer[..self.outer_corners()].iter().enumerate() {
                let top = &mut tops[face * OUTER + corner];
                if outer + self.aim.best[row] + self.summits[face] <= *top {
                    continue;
                }
                for (z, e) in self.message(row).iter().zip(table) {
                    *top = top.max(outer + z + e);
                }
            }
        }
    }

    /// First and last node of a row that matter to some corner.
    fn reach(&self, row: usize, tops: &[f64; CORNERS]) -> Option<[usize; 2]> {
        if self.aim.best[row] == f64::NEG_INFINITY {
            return None;
        }
        let (outer, z) = (self.outer(row), self.message(row));
        let mut ends: Option<[usize; 2]> = None;
        for (face, table) in self.faces() {
            for (corner, outer) in outer[..self.outer_corners()].iter().enumerate() {
                let least = tops[face * OUTER + corner] - self.aim.cutoff;
                if outer + self.aim.best[row] + self.summits[face] < least {
                    continue;
                }
                let enough = |&j: &usize| outer + z[j] + table[j] >= least;
                let Some(first) = (0..z.len()).find(enough) else { continue };
                let end = (first..z.len()).rev().find(enough).unwrap_or(first);
                ends = Some(match ends {
                    None => [first, end],
                    Some([low, high]) => [low.min(first), high.max(end)],
                });
            }
        }
        ends
    }
}

impl Aim<'_> {
    /// The smallest box with all nodes within `exp(-cutoff)` of the largest term of some corner.
    fn window(&self, cell: &Cell, work: &mut Work<f64>) -> Option<Window> {
        let Geometry { lattice, dim, square } = self.geometry;
        let (counts, last) = (lattice.counts(), dim - 1);
        for (a, table) in work.exponent_tables.iter_mut().enumerate().take(dim) {
            table.clear();
            for face in [-self.half, self.half] {
                table.extend((0..counts[a]).map(|j| {
                    let away = lattice.coordinate(a, j) - cell.centre[a];
                    square * away * (2.0 * face - away)
                }));
            }
        }
        let tables = &work.exponent_tables;
        let (low, high) = tables[last].split_at(counts[last]);
        let summits =
            [low, high].map(|face| face.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let view = View { aim: self, counts, last, tables, summits };
        // The row nearest to the cell first: most others then need no look.
        let mut nearest = 0;
        for (a, &count) in counts.iter().enumerate().take(last) {
            let step = (cell.centre[a] - lattice.coordinate(a, 0)) / lattice.spacing();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a node")]
            let j = step.round().clamp(0.0, (count - 1) as f64) as usize;
            nearest = nearest * count + j;
        }
        let mut tops = [f64::NEG_INFINITY; CORNERS];
        view.raise(nearest, &mut tops);
        for row in 0..self.best.len() {
            view.raise(row, &mut tops);
        }
        let (mut low, mut high) = ([usize::MAX; MOST_AXES], [0; MOST_AXES]);
        for row in 0..self.best.len() {
            let Some([first, end]) = view.reach(row, &tops) else { continue };
            let mut rest = row;
            for a in (0..last).rev() {
                let j = rest % counts[a];
                rest /= counts[a];
                low[a] = low[a].min(j);
                high[a] = high[a].max(j);
            }
            low[last] = low[last].min(first);
            high[last] = high[last].max(end);
        }
        if low[last] == usize::MAX {
            return None;
        }
        let mut window = Window { low: [0; MOST_AXES], len: [1; MOST_AXES] };
        for a in 0..dim {
            (window.low[a], window.len[a]) = (low[a], high[a] + 1 - low[a]);
        }
        Some(window)
    }
}
