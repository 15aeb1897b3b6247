//! Where points, cells and windows are to each other, and the exponents of features between them.

use super::cells::Cell;
use super::window::Window;
use crate::anchors::{Lattice, MOST_AXES};
use crate::kernel::LOST;

/// The same for every cell: what turns points and nodes into numbers.
#[derive(Clone, Copy)]
pub(super) struct Geometry<'a> {
    pub(super) lattice: &'a Lattice,
    pub(super) dim: usize,
    /// `2 / eps`.
    pub(super) square: f64,
}

impl<'g> Geometry<'g> {
    pub(super) fn new(lattice: &'g Lattice) -> Self {
        Geometry { lattice, dim: lattice.dim(), square: 2.0 / lattice.epsilon() }
    }

    /// Centre `w` of a window.
    pub(super) fn centre(&self, window: &Window) -> [f64; MOST_AXES] {
        let mut centre = [0.0; MOST_AXES];
        for (a, c) in centre.iter_mut().enumerate().take(self.dim) {
            *c = self.lattice.coordinate(a, window.low[a] + window.middle(a));
        }
        centre
    }

    /// `E_x`, where `t(a)` are the offsets of the point.
    pub(super) fn point_exponent(
        &self,
        cell: &Cell,
        centre: &[f64; MOST_AXES],
        t: impl Fn(usize) -> f64,
    ) -> f64 {
        let mut sum = 0.0;
        for (a, centre) in centre.iter().enumerate().take(self.dim) {
            let t = t(a);
            sum += t * (t + 2.0 * (cell.centre[a] - centre));
        }
        -self.square * sum
    }

    /// Number of node `low + j` in the whole lattice, for the first node of a row along the last axis.
    pub(super) fn row_start(&self, window: &Window, row: usize) -> usize {
        let counts = self.lattice.counts();
        let (mut index, mut stride, mut rest) = (0, 1, row);
        for a in (0..self.dim).rev() {
            if a + 1 == self.dim {
                index += window.low[a] * stride;
            } else {
                index += (window.low[a] + rest % window.len[a]) * stride;
                rest /= window.len[a];
            }
            stride *= counts[a];
        }
        index
    }

    /// Largest exponent of the powers of a cell's points, all axes together.
    pub(super) fn power_range(&self, spot: &CellState, half: f64) -> f64 {
        let nodes: usize = spot.window.len[..self.dim].iter().map(|len| len / 2).sum();
        2.0 * self.square * half * self.lattice.spacing() * nodes as f64
    }

    /// The smallest entry of the message `log mass - z` at the nodes of a window.
    pub(super) fn least_sent(&self, window: &Window, mass: &[f64], z: &[f64]) -> f64 {
        let width = window.len[self.dim - 1];
        let mut least = f64::INFINITY;
        for row in 0..window.nodes() / width {
            let start = self.row_start(window, row);
            for (mass, z) in mass[start..start + width].iter().zip(&z[start..]) {
                least = least.min(if *mass > LOST { mass.ln() - z } else { f64::NEG_INFINITY });
            }
        }
        least
    }

    /// Nodes an axis of a window whose powers stay within `exp(range)`.
    pub(super) fn widest(&self, half: f64, range: f64) -> usize {
        let nodes = range / (self.dim as f64 * self.square * half * self.lattice.spacing());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let nodes = nodes.clamp(2.0, 4096.0) as usize;
        nodes
    }

    /// Smallest and largest squared distance between a point of a cell and a node of a window.
    pub(super) fn distances(&self, cell: &Cell, half: f64, window: &Window) -> [f64; 2] {
        let (mut near, mut far) = (0.0, 0.0);
        for a in 0..self.dim {
            let low = self.lattice.coordinate(a, window.low[a]);
            let high = self.lattice.coordinate(a, window.low[a] + window.len[a] - 1);
            let apart = (low - cell.centre[a]).max(cell.centre[a] - high);
            near += (apart - half).max(0.0).powi(2);
            let across = (high - cell.centre[a]).max(cell.centre[a] - low);
            far += (across + half).powi(2);
        }
        [near, far]
    }

    /// Fills the tables of `N_u` for a window, the constant with the first axis.
    pub(super) fn load_exponents(
        &self,
        cell: &Cell,
        window: &Window,
        tables: &mut [Vec<f64>; MOST_AXES],
    ) {
        for (a, table) in tables.iter_mut().enumerate().take(self.dim) {
            let constant = if a == 0 { self.lattice.log_norm() } else { 0.0 };
            table.clear();
            table.extend((0..window.len[a]).map(|j| {
                let distance = cell.centre[a] - self.lattice.coordinate(a, window.low[a] + j);
                constant - self.square * distance * distance
            }));
        }
    }

    /// Sum of the exponents of the outer axes for a row of the window.
    pub(super) fn outer_exponent(
        &self,
        window: &Window,
        row: usize,
        tables: &[Vec<f64>; MOST_AXES],
    ) -> f64 {
        let (mut sum, mut rest) = (0.0, row);
        for a in (0..self.dim - 1).rev() {
            sum += tables[a][rest % window.len[a]];
            rest /= window.len[a];
        }
        sum
    }
}

/// A cell and its state.
#[derive(Debug)]
pub(super) struct CellState {
    pub(super) cell: Cell,
    pub(super) window: Window,
    /// `s`.
    pub(super) scale: f64,
    /// The factors `q` are kept as logarithms.
    pub(super) logs: bool,
    /// The largest potential of its points, while a message is completed.
    pub(super) summit: f64,
}

impl CellState {
    /// `E_x` of point `i`; zero before there is a window.
    pub(super) fn exponent(&self, geometry: &Geometry<'_>, offsets: &[f64], i: usize) -> f64 {
        if self.window.len[0] == 0 {
            return 0.0;
        }
        let centre = geometry.centre(&self.window);
        geometry.point_exponent(&self.cell, &centre, |a| offsets[a * self.cell.len + i])
    }

    /// The box of all tiles where its points may matter, as far as `faint` below what the nodes of a tile have at least.
    pub(super) fn reach(
        &self,
        geometry: &Geometry<'_>,
        half: f64,
        tiles: &[Window],
        least: &[f64],
        faint: f64,
    ) -> Option<Window> {
        let most = self.summit + (self.cell.len as f64).ln() + faint;
        let mut reach: Option<Window> = None;
        for (tile, least) in tiles.iter().zip(least) {
            if most - geometry.square * geometry.distances(&self.cell, half, tile)[0] >= *least {
                reach = Some(reach.map_or(*tile, |reach| reach.with(tile)));
            }
        }
        reach
    }
}
