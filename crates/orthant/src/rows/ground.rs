//! Rows of the kernel of a cost that has no squared distance: evaluated pair by pair.

use super::{LogRows, Tiles, fill_by_tiles, scratch_of_tiles};
use crate::comm::Span;
use crate::ground::{GroundCost, direction};
use crate::measure::Points;
use crate::numerics::simd::{BothPanels, Float, In, Norm, TILE_ROWS};

/// `-c(x_i, y_j) / eps` over the points `y_j` of the other cloud.
pub(crate) struct GroundRows<'a> {
    cost: GroundCost,
    epsilon: f64,
    points: Points<'a>,
    others: Points<'a>,
    /// For distances by a norm, which do not depend on where the origin is.
    distances: Option<Box<Distances>>,
    /// Otherwise coordinates of the columns, one coordinate of all after the other, so that loops over columns are loops
    /// over vectors.
    columns: Vec<f64>,
}

/// Rows that are asked for together: the other cloud is read for every group.
const GROUP: usize = 8;

/// The columns of a distance by a norm, in tiles.
struct Distances {
    norm: Norm,
    /// What coordinates are multiplied with, what is taken away from them, and what they are multiplied with then: with both,
    /// no coordinate is larger than 1, so that squares stay in range, and single precision keeps its digits far from the
    /// origin.
    unit: f64,
    centre: Vec<f64>,
    zoom: f64,
    /// The columns in these coordinates.
    panels: BothPanels,
    /// What distances are multiplied with.
    scale: f64,
}

impl Distances {
    fn new(norm: Norm, epsilon: f64, [points, others]: [&Points<'_>; 2]) -> Self {
        let dim = others.dim();
        let largest = |p: &Points<'_>, size: &(dyn Fn(f64, usize) -> f64 + Sync)| {
            let of = |i| (0..dim).map(|k| size(p.coordinate(i, k), k)).fold(0.0, f64::max);
            p.span().max(of)
        };
        let of_both = |size: &(dyn Fn(f64, usize) -> f64 + Sync)| {
            power_of_two_below(1.0 / largest(points, size).max(largest(others, size)).max(1e-300))
        };
        let unit = of_both(&|x, _| x.abs());
        let count = others.span().total() as f64;
        let mean = |k: usize| others.span().sum(|j| others.coordinate(j, k) * unit / count);
        let centre: Vec<f64> = (0..dim).map(mean).collect();
        let zoom = of_both(&|x, k| (x * unit - centre[k]).abs());
        let entry = |j, k| (others.coordinate(j, k) * unit - centre[k]) * zoom;
        let panels = BothPanels::new(dim, others.len(), entry);
        let scale = -1.0 / unit / zoom / epsilon;
        Distances { norm, unit, centre, zoom, panels, scale }
    }

    /// Packs the coordinates of some points, a few at a time.
    fn pack<T: Float>(&self, points: &Points<'_>, first: usize, rows: usize, packed: &mut [T]) {
        let group = points.dim() * TILE_ROWS;
        for i in 0..rows {
            let packed = &mut packed[i / TILE_ROWS * group..][..group];
            for (k, packed) in packed.chunks_exact_mut(TILE_ROWS).enumerate() {
                let x = points.coordinate(first + i, k) * self.unit - self.centre[k];
                packed[i % TILE_ROWS] = T::from_f64(x * self.zoom);
            }
        }
    }
}

impl<'a> GroundRows<'a> {
    /// Points and others in the coordinates of the user.
    pub(crate) fn new(
        cost: &GroundCost,
        epsilon: f64,
        points: Points<'a>,
        others: Points<'a>,
    ) -> Self {
        let [points, others] = [points, others].map(|p| cost.image(&p).unwrap_or(p));
        let norm = match cost {
            GroundCost::L1 => Some(Norm::L1),
            GroundCost::Euclidean => Some(Norm::L2),
            GroundCost::Lp(p) => Some(Norm::Lp(*p)),
            _ => None,
        };
        let distances =
            norm.map(|norm| Box::new(Distances::new(norm, epsilon, [&points, &others])));
        let mut columns = Vec::new();
        if let GroundCost::Geodesic = cost {
            let count = others.len();
            columns.resize(others.dim() * count, 0.0);
            for (k, column) in columns.chunks_exact_mut(count).enumerate() {
                for (j, y) in column.iter_mut().enumerate() {
                    *y = others.coordinate(j, k);
                }
            }
        }
        GroundRows { cost: cost.clone(), epsilon, points, others, distances, columns }
    }

    /// Whether the cost has a derivative.
    pub(crate) fn has_slopes(&self) -> bool {
        !matches!(self.cost, GroundCost::Function(_))
    }

    /// `out_i = sum_j w_ij d log k(x_i, y_j) / d x_i` of some rows; `points` are the points before they were mapped.
    pub(crate) fn slopes(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let dim = self.points.dim();
        let (mut own, mut x, mut y) = (vec![0.0; dim], vec![0.0; dim], vec![0.0; dim]);
        let rows = out.chunks_exact_mut(dim).zip(weights.chunks_exact(stride));
        for (i, (out, weights)) in (first..).zip(rows) {
            points.copy_coordinates(i, 0, &mut own);
            let length = direction(&mut own);
            self.points.copy_coordinates(i, 0, &mut x);
            out.fill(0.0);
            for (j, w) in weights[..self.others.len()].iter().enumerate() {
                self.others.copy_coordinates(j, 0, &mut y);
                self.cost.add_slope((&x, length), &y, -w / self.epsilon, out);
            }
        }
    }
}

fn power_of_two_below(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0x7ff0_0000_0000_0000)
}

impl LogRows for GroundRows<'_> {
    fn span(&self) -> &Span {
        self.points.span()
    }

    fn rank(&self) -> usize {
        self.others.len()
    }

    fn scratch(&self) -> usize {
        let dim = self.points.dim();
        match self.tiles() {
            Some(tiles) => scratch_of_tiles(tiles, self.rank()),
            // A point, and a second number for each pair.
            None if matches!(self.cost, GroundCost::Geodesic) => dim + self.others.len(),
            None => 2 * dim,
        }
    }

    fn group(&self) -> usize {
        if self.distances.is_some() { GROUP } else { 1 }
    }

    fn fill(&self, first: usize, stride: usize, out: &mut [f64], scratch: &mut [f64]) {
        if let Some(tiles) = self.tiles() {
            return fill_by_tiles(tiles, self.rank(), first, stride, out, scratch);
        }
        let (dim, count) = (self.points.dim(), self.others.len());
        let (x, rest) = scratch.split_at_mut(dim);
        for (i, row) in (first..).zip(out.chunks_exact_mut(stride)) {
            let row = &mut row[..count];
            self.points.copy_coordinates(i, 0, x);
            if let GroundCost::Geodesic = self.cost {
                let sums = &mut rest[..count];
                row.fill(0.0);
                sums.fill(0.0);
                add_squares(row, x, &self.columns);
                for x in &mut *x {
                    *x = -*x;
                }
                add_squares(sums, x, &self.columns);
                for (l, sum) in row.iter_mut().zip(sums) {
                    *l = -2.0 / self.epsilon * l.sqrt().atan2(sum.sqrt());
                }
            } else {
                let y = &mut rest[..dim];
                for (j, l) in row.iter_mut().enumerate() {
                    self.others.copy_coordinates(j, 0, y);
                    *l = -self.cost.of_pair(x, y) / self.epsilon;
                }
            }
        }
    }

    fn tiles(&self) -> Option<&dyn Tiles<f64>> {
        self.distances.as_ref().map(|_| self as &dyn Tiles<f64>)
    }

    fn tiles_f32(&self) -> Option<&dyn Tiles<f32>> {
        self.distances.as_ref().map(|distances| {
            distances.panels.prepare_single();
            self as &dyn Tiles<f32>
        })
    }
}

impl<T: Float> Tiles<T> for GroundRows<'_>
where
    BothPanels: In<T>,
{
    fn block(&self, rows: usize) -> [usize; 2] {
        [rows.next_multiple_of(TILE_ROWS) * self.points.dim(), 0]
    }

    fn load(&self, first: usize, common: &mut [f64], (packed, _): (&mut [T], &mut [f64])) {
        let distances = self.distances.as_ref().expect("tiles are of distances");
        distances.pack(&self.points, first, common.len(), packed);
        common.fill(0.0);
    }

    fn tile(
        &self,
        (packed, _): (&[T], &[f64]),
        row: usize,
        panel: usize,
        start: &[T],
        out: &mut [T],
    ) {
        let distances = self.distances.as_ref().expect("tiles are of distances");
        let dim = self.points.dim();
        let x = &packed[row * dim..(row + TILE_ROWS) * dim];
        let by = (distances.norm, distances.scale);
        distances.panels.panels().distances(by, x, panel, start, out);
    }
}

/// Adds the squared distances of a point from all columns to a row, one coordinate after the other.
fn add_squares(row: &mut [f64], x: &[f64], columns: &[f64]) {
    for (x, column) in x.iter().zip(columns.chunks_exact(row.len())) {
        for (l, y) in row.iter_mut().zip(column) {
            *l += (x - y) * (x - y);
        }
    }
}
