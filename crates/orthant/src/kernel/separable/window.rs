//! Boxes of nodes.

use std::ops::Range;

use crate::anchors::{Lattice, MOST_AXES};

/// Nodes along an axis that are judged together when a message is completed: on lattices of few nodes, and of many.
pub(super) const TILES: [usize; 2] = [2, 4];
pub(super) const FEW_NODES: usize = 4096;

/// A box of nodes; empty before the first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Window {
    pub(super) low: [usize; MOST_AXES],
    pub(super) len: [usize; MOST_AXES],
}

impl Window {
    pub(super) fn nodes(&self) -> usize {
        self.len.iter().product()
    }

    /// Where the table of axis `a` is, for so many points.
    pub(super) fn table(&self, a: usize, points: usize) -> Range<usize> {
        let start = self.len[..a].iter().sum::<usize>() * points;
        start..start + self.len[a] * points
    }

    /// The smallest box with both.
    pub(super) fn with(mut self, other: &Window) -> Window {
        for a in 0..MOST_AXES {
            let end = (self.low[a] + self.len[a]).max(other.low[a] + other.len[a]);
            self.low[a] = self.low[a].min(other.low[a]);
            self.len[a] = end - self.low[a];
        }
        self
    }

    /// The box in pieces of at most `most` nodes an axis.
    pub(super) fn pieces(self, most: usize) -> impl Iterator<Item = Window> {
        let counts = self.len.map(|len| len.div_ceil(most));
        (0..counts.iter().product()).map(move |piece| {
            let (mut window, mut rest) = (self, piece);
            for (a, count) in counts.iter().enumerate() {
                let first = rest % count * most;
                rest /= count;
                window.low[a] = self.low[a] + first;
                window.len[a] = most.min(self.len[a] - first);
            }
            window
        })
    }

    /// Nodes of the axes between the first and the last.
    pub(super) fn inner(&self, dim: usize) -> usize {
        self.len[1..dim - 1].iter().product()
    }

    /// Node of axis `a` whose table entry is 1.
    pub(super) fn middle(&self, a: usize) -> usize {
        self.len[a] / 2
    }
}

/// The whole lattice, cut into boxes.
pub(super) fn tiles(lattice: &Lattice) -> Vec<Window> {
    let side = TILES[usize::from(lattice.nodes() > FEW_NODES)];
    let mut tiles = vec![Window { low: [0; MOST_AXES], len: [1; MOST_AXES] }];
    for (a, &count) in lattice.counts().iter().enumerate() {
        tiles = tiles
            .iter()
            .flat_map(|tile| {
                (0..count).step_by(side).map(move |low| {
                    let mut tile = *tile;
                    (tile.low[a], tile.len[a]) = (low, side.min(count - low));
                    tile
                })
            })
            .collect();
    }
    tiles
}
