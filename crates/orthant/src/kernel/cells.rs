//! Points of a cloud sorted into the cells of a lattice.

use rayon::prelude::*;

use crate::design::{Lattice, MOST_AXES};
use crate::measure::Points;

/// The points of one cube of the lattice, or a part of them.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// Its points in the sorted order: `first..first + len`.
    pub(crate) first: usize,
    pub(crate) len: usize,
    pub(crate) centre: [f64; MOST_AXES],
}

/// A cloud in the order of its cells.
#[derive(Debug)]
pub(crate) struct Cells {
    /// `order[k]` is the number of the point at place `k`.
    pub(crate) order: Vec<u32>,
    pub(crate) list: Vec<Cell>,
    /// Half the side of a cell.
    pub(crate) half: f64,
}

/// Points that a cell should have on average, so that the work on its window is shared.
const CROWD: usize = 48;
/// Points of a cell at most: larger ones are cut, so that threads can share them.
const MOST_POINTS: usize = 4096;
/// Side of a cell in nodes: the first that gives crowded cells.
const SIDES: [f64; 3] = [2.0, 4.0, 8.0];

/// Largest exponent of a power, as far as the choice of cells goes.
const WIDEST: f64 = 300.0;

impl Cells {
    /// Sorts the points, which are in the coordinates of the lattice.
    pub(crate) fn new(points: &Points<'_>, lattice: &Lattice) -> Self {
        let mut low = [f64::INFINITY; MOST_AXES];
        for i in 0..points.len() {
            for (a, low) in low.iter_mut().enumerate().take(points.dim()) {
                *low = low.min(points.coordinate(i, a));
            }
        }
        let mut keys: Vec<([u32; MOST_AXES], u32)> = Vec::new();
        let mut side = 0.0;
        let widest = lattice.counts().iter().max().copied().unwrap_or(0) as f64;
        for nodes in SIDES {
            // Powers over a window as wide as the lattice should stay in the range of the numbers.
            let exponent = nodes * widest * lattice.spacing().powi(2) / lattice.epsilon();
            if side > 0.0 && exponent > WIDEST {
                break;
            }
            side = nodes * lattice.spacing();
            sort(points, &low, side, &mut keys);
            let occupied = 1 + keys.windows(2).filter(|w| w[0].0 != w[1].0).count();
            if points.len() >= CROWD * occupied {
                break;
            }
        }
        let mut list = Vec::new();
        let mut first = 0;
        for same in keys.chunk_by(|a, b| a.0 == b.0) {
            let mut centre = [0.0; MOST_AXES];
            for a in 0..points.dim() {
                centre[a] = low[a] + side * (f64::from(same[0].0[a]) + 0.5);
            }
            for part in same.chunks(MOST_POINTS) {
                list.push(Cell { first, len: part.len(), centre });
                first += part.len();
            }
        }
        let order = keys.iter().map(|k| k.1).collect();
        Cells { order, list, half: 0.5 * side }
    }

    /// Values in the order of the points, sorted.
    pub(crate) fn sorted(&self, values: &[f64]) -> Vec<f64> {
        self.order.iter().map(|&i| values[i as usize]).collect()
    }

    /// Sorted values, in the order of the points.
    pub(crate) fn unsorted(&self, values: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; values.len()];
        for (&i, v) in self.order.iter().zip(values) {
            out[i as usize] = *v;
        }
        out
    }
}

/// Cells of all points, in order.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lattices are small")]
fn sort(
    points: &Points<'_>,
    low: &[f64; MOST_AXES],
    side: f64,
    keys: &mut Vec<([u32; MOST_AXES], u32)>,
) {
    (0..points.len() as u32)
        .into_par_iter()
        .map(|i| {
            let mut key = [0; MOST_AXES];
            for (a, key) in key.iter_mut().enumerate().take(points.dim()) {
                *key = ((points.coordinate(i as usize, a) - low[a]) / side) as u32;
            }
            (key, i)
        })
        .collect_into_vec(keys);
    keys.par_sort_unstable();
}
