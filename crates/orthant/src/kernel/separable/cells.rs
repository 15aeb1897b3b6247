//! Points of a cloud sorted into the cells of a lattice.

use std::sync::Arc;

use rayon::prelude::*;

use crate::anchors::{Lattice, MOST_AXES};
use crate::comm::LARGEST_CHUNK;
use crate::measure::{Points, extremes};

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
    pub(crate) order: Arc<[u32]>,
    /// The cells, those of each [`LARGEST_CHUNK`] points of the cloud one after the other: points are put in order within
    /// these parts alone, so that the order does not depend on who has the other parts.
    pub(crate) list: Vec<Cell>,
    /// Half the side of a cell.
    pub(crate) half: f64,
}

/// Points that a cell should have on average, so that the work on its window is shared.
const CROWD: u64 = 48;
/// Points of a cell at most: larger ones are cut, so that threads can share them.
const MOST_POINTS: usize = 4096;
/// Side of a cell in nodes: the first that gives crowded cells.
const SIDES: [f64; 3] = [2.0, 4.0, 8.0];

/// Points that one should stand for on average, at least, where some stand for all.
const STANDS_FOR: u64 = 8;
/// Parts of a cell along an axis, at most, of which each has one such point.
const MOST_PARTS: usize = 16;

/// Largest exponent of a power, as far as the choice of cells goes.
const WIDEST: f64 = 300.0;

impl Cells {
    /// Sorts the points, which are in the coordinates of the lattice.
    pub(crate) fn new(points: &Points<'_>, lattice: &Lattice) -> Self {
        let widest = lattice.counts().iter().max().copied().unwrap_or(0) as f64;
        let ends = extremes(points);
        let mut grid = Grid::default();
        let mut keys: Vec<(u64, u32)> = Vec::new();
        for nodes in SIDES {
            // Powers over a window as wide as the lattice should stay in the range of the numbers.
            let exponent = nodes * widest * lattice.spacing().powi(2) / lattice.epsilon();
            if grid.side > 0.0 && exponent > WIDEST {
                break;
            }
            grid = Grid::new(&ends, nodes * lattice.spacing());
            grid.sort(points, &mut keys);
            let count = |keys: &[(u64, u32)]| keys.chunk_by(|a, b| a.0 == b.0).count();
            let occupied = keys.par_chunks(LARGEST_CHUNK).map(count).sum();
            if points.span().total() >= CROWD * points.span().count(occupied) {
                break;
            }
        }
        let mut list = Vec::new();
        let mut first = 0;
        for keys in keys.chunks(LARGEST_CHUNK) {
            for same in keys.chunk_by(|a, b| a.0 == b.0) {
                let centre = grid.centre(same[0].0);
                for part in same.chunks(MOST_POINTS) {
                    list.push(Cell { first, len: part.len(), centre });
                    first += part.len();
                }
            }
        }
        let order = keys.iter().map(|k| k.1).collect();
        Cells { order, list, half: 0.5 * grid.side }
    }

    /// The cells in runs of so many points, at least, each of one part of the cloud. See [`Cells::list`].
    pub(crate) fn runs(&self, points: usize) -> Vec<&[Cell]> {
        let one_part = |a: &Cell, b: &Cell| a.first / LARGEST_CHUNK == b.first / LARGEST_CHUNK;
        let mut runs = Vec::new();
        for mut cells in self.list.chunk_by(one_part) {
            let count = |cells: &[Cell]| cells.iter().map(|cell| cell.len).sum::<usize>();
            let all = count(cells);
            // As equal as they can be.
            let enough = all.div_ceil(all.div_ceil(points));
            while !cells.is_empty() {
                let mut sum = 0;
                let end = cells.iter().position(|cell| {
                    sum += cell.len;
                    sum >= enough
                });
                let (run, rest) = cells.split_at(end.map_or(cells.len(), |end| end + 1));
                runs.push(run);
                cells = rest;
            }
        }
        runs
    }

    /// Fewer points that stand for these, with the weights of all: in every cube of a grid that is finer than the lattice,
    /// the mean. None if they would not be few.
    pub(crate) fn gathered(
        &self,
        points: &Points<'_>,
        weights: &[f64],
        lattice: &Lattice,
    ) -> Option<(Points<'static>, Vec<f64>)> {
        let dim = points.dim();
        let cubes = |parts: usize| -> usize { (0..dim).map(|_| parts).product() };
        let (cells, all) = (points.span().count(self.list.len()), points.span().total());
        let few = |parts: &usize| cells * cubes(*parts) as u64 * STANDS_FOR <= all;
        let parts = (1..=MOST_PARTS).take_while(few).last()?;
        if 2.0 * self.half > parts as f64 * lattice.spacing() {
            return None;
        }
        let found: Vec<Vec<f64>> = self
            .list
            .par_iter()
            .map(|cell| {
                // Mass and mass times offset.
                let mut sums = vec![0.0; cubes(parts) * (dim + 1)];
                for &i in &self.order[cell.first..cell.first + cell.len] {
                    let i = i as usize;
                    let weight = weights[i];
                    let mut offset = [0.0; MOST_AXES];
                    let mut part = 0;
                    for (a, offset) in offset.iter_mut().enumerate().take(dim) {
                        *offset = points.coordinate(i, a) - cell.centre[a];
                        let along = (*offset / self.half + 1.0) * 0.5 * parts as f64;
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "a part"
                        )]
                        let along = along.max(0.0) as usize;
                        part = part * parts + along.min(parts - 1);
                    }
                    let sums = &mut sums[part * (dim + 1)..(part + 1) * (dim + 1)];
                    sums[dim] += weight;
                    for (sum, offset) in sums.iter_mut().zip(&offset[..dim]) {
                        *sum += weight * offset;
                    }
                }
                sums.chunks_exact(dim + 1)
                    .filter(|sums| sums[dim] > 0.0)
                    .flat_map(|sums| {
                        let mean = |a: usize| cell.centre[a] + sums[a] / sums[dim];
                        (0..dim).map(mean).chain([sums[dim]]).collect::<Vec<f64>>()
                    })
                    .collect()
            })
            .collect();
        let found = found.concat();
        let coordinates = found.chunks_exact(dim + 1).flat_map(|p| p[..dim].iter().copied());
        let coordinates: Vec<f64> = coordinates.collect();
        let weights = found.chunks_exact(dim + 1).map(|p| p[dim]).collect();
        Some((Points::new(coordinates, dim).ok()?.among(points), weights))
    }
}

/// Cubes that cover a cloud, numbered along the last axis first.
#[derive(Debug, Default)]
struct Grid {
    side: f64,
    low: [f64; MOST_AXES],
    counts: [u64; MOST_AXES],
    dim: usize,
}

impl Grid {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn new(ends: &[[f64; 2]], side: f64) -> Self {
        let mut grid = Grid { side, dim: ends.len(), ..Grid::default() };
        for (a, [low, high]) in ends.iter().enumerate() {
            grid.low[a] = *low;
            grid.counts[a] = (((high - low) / side) as u64).saturating_add(1);
        }
        grid
    }

    /// Numbers of the cubes of all points, in order, with the points.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "lattices are small"
    )]
    fn sort(&self, points: &Points<'_>, keys: &mut Vec<(u64, u32)>) {
        (0..points.len() as u32)
            .into_par_iter()
            .map(|i| {
                let mut key = 0_u64;
                for a in 0..self.dim {
                    let along = (points.coordinate(i as usize, a) - self.low[a]) / self.side;
                    let along = (along as u64).min(self.counts[a] - 1);
                    key = key.wrapping_mul(self.counts[a]).wrapping_add(along);
                }
                (key, i)
            })
            .collect_into_vec(keys);
        keys.par_chunks_mut(LARGEST_CHUNK).for_each(ParallelSliceMut::par_sort_unstable);
    }

    fn centre(&self, mut key: u64) -> [f64; MOST_AXES] {
        let mut centre = [0.0; MOST_AXES];
        for a in (0..self.dim).rev() {
            centre[a] = self.low[a] + self.side * ((key % self.counts[a]) as f64 + 0.5);
            key /= self.counts[a];
        }
        centre
    }
}
