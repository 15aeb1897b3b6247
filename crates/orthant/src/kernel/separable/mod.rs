//! A side on a lattice: features that are products over the axes, and never stored.
//!
//! Points are sorted into cells. Seen from a cell with centre `c`, a point `x = c + t` and a node `u`
//! of a *window* of the lattice with centre `w` have
//!
//! ```text
//! log phi_u(x) = N_u + E_x + 4 t.(u - w) / eps
//! N_u = log_norm - 2 |c - u|^2 / eps,     E_x = -2 (|t|^2 + 2 t.(c - w)) / eps
//! ```
//!
//! The last term is a product of powers, one table an axis: all that a block of points needs. With the
//! message `z` a cell keeps `Z_u = exp(N_u + z_u - s)`, `s` the largest exponent, and one half of an
//! iteration is, for its points,
//!
//! ```text
//! sum_u phi_u(x) exp(z_u) = exp(s + E_x) sum_u T_u(x) Z_u,        y_u = log(Z_u sum_x q_x T_u(x)) - z_u
//! ```
//!
//! with `q = u exp(s + E)`: small matrix products, no exponential of an entry, and what is summed to
//! `y` is a part of the plan's mass, so that nothing leaves the range of the numbers.
//!
//! A window holds the nodes that matter to its cell: those within `exp(-cutoff)` of the largest term
//! of some point. It follows the message. Now and then, and before a solve may end, messages are
//! completed over the whole lattice, so that no node is forgotten and what the windows leave out is
//! known: see [`HalfKernel::needs_rebuild`] and [`Separable::mass`].

mod aim;
mod cells;
mod find;
mod geometry;
mod means;
mod passes;
#[cfg(test)]
mod tests;
mod views;
mod whole;
mod window;
mod work;

use std::time::Instant;

use rayon::prelude::*;

use self::cells::{Cell, Cells};
use self::geometry::{CellState, Geometry};
use self::passes::Factor;
use self::window::{Window, tiles};
use self::work::{Work, block};
use super::target::Tally;
use super::{Arranged, Builds, HalfKernel, Ordered, Target};
use crate::anchors::Lattice;
use crate::comm::Span;
use crate::error::{Error, Result};
use crate::measure::Points;
use crate::numerics::ExactSums;
use crate::numerics::simd::Float;
use crate::words::Side;

/// Half-iterations after which messages are completed: these, and then each time four times as many.
const FIRST_REFRESH: usize = 4;
/// What a window leaves out is `exp(-cutoff)` of what the plan has at a point, and of the other cloud's points that much
/// of the whole mass: as long as no point has less than `exp(-DEPTH)` of its weight, nearly the same.
const DEPTH: f64 = 5.0;
/// Points of a chunk at least, chunks at most, and numbers in all their sums at most.
const CHUNK_ROWS: u64 = 1024;
const LATTICE_CHUNKS: u64 = 64;
const SUMS: usize = 1 << 25;

/// Some cells, the state of their points, and scratch space.
#[derive(Debug, Default)]
struct Chunk<T> {
    /// Its first point.
    first: usize,
    spots: Vec<CellState>,
    /// `t` of every point: for each cell, its points axis by axis.
    offsets: Vec<f64>,
    /// `q` of every point, or its logarithm.
    factors: Vec<f64>,
    /// Logarithms of the sums of every point, where these are asked for.
    products: Vec<f64>,
    work: Work<T>,
    exact: Work<f64>,
}

impl<T: Float> Chunk<T> {
    /// The chunk of some cells that follow each other.
    fn new(cells: &[Cell], order: &[u32], points: &Points<'_>) -> Self {
        let first = cells[0].first;
        let mut offsets = Vec::new();
        let mut rows = 0;
        let mut spots = Vec::with_capacity(cells.len());
        for cell in cells {
            for a in 0..points.dim() {
                offsets.extend(
                    order[cell.first..cell.first + cell.len]
                        .iter()
                        .map(|&i| points.coordinate(i as usize, a) - cell.centre[a]),
                );
            }
            rows += cell.len;
            let cell = Cell { first: cell.first - first, ..cell.clone() };
            let window = Window::default();
            spots.push(CellState { cell, window, scale: 0.0, logs: true, summit: 0.0 });
        }
        let (factors, products) = (vec![f64::NEG_INFINITY; rows], vec![0.0; rows]);
        Chunk { first, spots, offsets, factors, products, ..Chunk::default() }
    }
}

/// One cloud on a lattice. See the [module](self).
pub(crate) struct Separable<'a, T> {
    lattice: &'a Lattice,
    cells: Cells,
    span: Span,
    cutoff: f64,
    chunks: Vec<Chunk<T>>,
    /// The message of the last pass, and the one that the windows were chosen for.
    z: Vec<f64>,
    aimed: Vec<f64>,
    /// Where the marginal is relaxed, points can be so faint that nothing is sent to their nodes. These
    /// then keep what was last heard: it matters to no other point, and is refreshed before the end.
    hold: bool,
    /// The last one that was complete.
    completed: Vec<f64>,
    /// What each node had of the mass in the last pass.
    mass: Vec<f64>,
    message_sums: ExactSums,
    whole_sums: ExactSums,
    /// Of each chunk, in the last pass.
    errors: Vec<f64>,
    /// Whether `total` and `top` are the whole message of the factors as they are; and whether the last pass sent a part of it.
    told: bool,
    sent: bool,
    /// For each chunk: sums and exponents over all nodes.
    sums: Vec<f64>,
    tops: Vec<f64>,
    total: Vec<f64>,
    top: Vec<f64>,
    /// The whole lattice in boxes, and what every node of each has at least.
    tiles: Vec<Window>,
    least: Vec<f64>,
    /// The largest entry of each row of nodes of a message.
    best: Vec<f64>,
    f: Vec<f64>,
    /// The constant of relaxed updates: see [`Step::level`].
    level: f64,
    tallies: Vec<f64>,
    passes: usize,
    refresh: usize,
    builds: Builds,
}

impl<'a, T: Float> Separable<'a, T> {
    /// The points, in the coordinates of the lattice. Nodes that carry less than `exp(-cutoff)` of the largest term of
    /// every point of a cell are not visited.
    pub(crate) fn new(points: &Points<'_>, lattice: &'a Lattice, cutoff: f64) -> Self {
        let cells = Cells::new(points, lattice);
        let (rows, nodes) = (points.span().total(), lattice.nodes());
        let count = (rows / CHUNK_ROWS).min((SUMS / nodes) as u64).clamp(1, LATTICE_CHUNKS);
        let enough = usize::try_from(rows.div_ceil(count)).unwrap_or(usize::MAX);
        let runs = cells.runs(enough);
        let chunks: Vec<Chunk<T>> =
            runs.par_iter().map(|run| Chunk::new(run, &cells.order, points)).collect();
        let rows = points.len();
        let (parts, tiles) = (chunks.len(), tiles(lattice));
        Separable {
            least: vec![0.0; tiles.len()],
            tiles,
            lattice,
            cells,
            span: points.span().clone(),
            cutoff,
            chunks,
            z: vec![f64::NEG_INFINITY; nodes],
            aimed: Vec::new(),
            hold: false,
            completed: Vec::new(),
            mass: vec![0.0; nodes],
            message_sums: ExactSums::new(nodes),
            whole_sums: ExactSums::new(nodes),
            errors: vec![0.0; parts],
            told: false,
            sent: false,
            sums: vec![0.0; parts * nodes],
            tops: vec![0.0; parts * nodes],
            total: vec![0.0; nodes],
            top: vec![0.0; nodes],
            best: Vec::new(),
            f: vec![0.0; rows],
            level: 0.0,
            tallies: vec![0.0; parts * Tally::LEN],
            passes: 0,
            refresh: 0,
            builds: Builds::default(),
        }
    }

    /// Chooses the windows for a whole message that other points of the cloud's partner have sent in so many passes.
    pub(super) fn resume(&mut self, z: &[f64], passes: usize) -> Result<()> {
        self.passes = passes;
        self.rebuild(z)
    }

    /// Number of passes so far.
    pub(super) fn passes(&self) -> usize {
        self.passes
    }

    /// Fewer points that stand for these, with the weights of all; none if they would not be few.
    pub(crate) fn representatives(
        &self,
        points: &Points<'_>,
        weights: &[f64],
    ) -> Option<(Points<'static>, Vec<f64>)> {
        self.cells.gathered(points, weights, self.lattice)
    }

    /// Keeps a message, as far as it is one.
    fn store_message(&mut self, z: &[f64]) {
        for (old, new) in self.z.iter_mut().zip(z) {
            if *new > f64::NEG_INFINITY || !self.hold {
                *old = *new;
            }
        }
    }

    /// Works with all that was heard as the message.
    fn with_heard<R>(&mut self, work: impl FnOnce(&mut Self, &[f64]) -> R) -> R {
        let z = std::mem::take(&mut self.z);
        let done = work(self, &z);
        self.z = z;
        done
    }

    /// Computes the products of [`HalfKernel::log_apply`], of a message without gaps.
    fn apply(&mut self, z: &[f64]) -> Result<()> {
        self.follow(z)?;
        let geometry = Geometry::new(self.lattice);
        self.chunks.par_iter_mut().with_max_len(1).for_each(|chunk| {
            for spot in &chunk.spots {
                let cell = &spot.cell;
                let range = cell.first..cell.first + cell.len;
                let offsets = &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                let out = &mut chunk.products[range];
                let work = &mut chunk.exact;
                let scale = work.load(&geometry, cell, &spot.window, z);
                let centre = geometry.centre(&spot.window);
                for from in (0..cell.len).step_by(block::<f64>()) {
                    let len = block::<f64>().min(cell.len - from);
                    let points = work.tabulate(&geometry, &spot.window, offsets, from, len);
                    work.gather(&geometry, &spot.window, points);
                    for (i, s) in work.out[..len].iter().enumerate() {
                        let t = |a: usize| offsets[a * cell.len + from + i];
                        out[from + i] = scale + geometry.point_exponent(cell, &centre, t) + s.ln();
                    }
                }
            }
        });
        Ok(())
    }

    /// Sums of all points, as logarithms, cell by cell.
    fn products(&self) -> impl Iterator<Item = &f64> + Clone {
        self.chunks.iter().flat_map(|chunk| &chunk.products)
    }

    /// The same in the order of the points.
    fn write_products(&self, out: &mut [f64]) {
        for (&i, product) in self.cells.order.iter().zip(self.products()) {
            out[i as usize] = *product;
        }
    }

    /// Writes `log u`, cell by cell.
    fn write_logs(&self, f: &mut [f64]) {
        self.each_log(|place, log| f[place] = log);
    }

    /// `log u` of all places, one after the other.
    fn each_log(&self, mut write: impl FnMut(usize, f64)) {
        let geometry = Geometry::new(self.lattice);
        for chunk in &self.chunks {
            for spot in &chunk.spots {
                let range = spot.cell.first..spot.cell.first + spot.cell.len;
                let first = chunk.first + range.start;
                let offsets = &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                for (i, q) in chunk.factors[range].iter().enumerate() {
                    let log = if spot.logs { *q } else { q.ln() };
                    write(first + i, log - spot.scale - spot.exponent(&geometry, offsets, i));
                }
            }
        }
    }

    /// Works with values of the points, put in the order of the cells.
    fn with_sorted<R>(&mut self, values: &[f64], work: impl FnOnce(&mut Self, &[f64]) -> R) -> R {
        let mut sorted = std::mem::take(&mut self.f);
        for (sorted, &i) in sorted.iter_mut().zip(&*self.cells.order) {
            *sorted = values[i as usize];
        }
        let done = work(self, &sorted);
        self.f = sorted;
        done
    }

    /// Something is wrong with the factors.
    fn breakdown(&self, value: f64) -> Error {
        let mut factors = self.chunks.iter().flat_map(|chunk| &chunk.factors);
        self.breakdown_at(factors.position(|q| !q.is_finite()).unwrap_or(0), value)
    }

    fn breakdown_at(&self, place: usize, value: f64) -> Error {
        Error::Breakdown {
            iteration: 0,
            row: self.cells.order[place] as usize + 1,
            value,
            remedy: "use the online method or a larger epsilon",
            cloud: Side::X,
        }
    }
}

impl<T: Float> HalfKernel for Separable<'_, T> {
    fn span(&self) -> &Span {
        &self.span
    }

    fn rank(&self) -> usize {
        self.lattice.nodes()
    }

    fn needs_rebuild(&mut self, z: &[f64]) -> bool {
        if self.aimed.is_empty() || self.passes >= self.refresh {
            return true;
        }
        if self.hold {
            self.store_message(z);
            return self.with_heard(Self::needs_completion);
        }
        self.needs_completion(z)
    }

    fn note_absent(&mut self, _: &[f64]) {}

    fn rebuild(&mut self, z: &[f64]) -> Result<()> {
        let begun = Instant::now();
        self.refresh = (4 * self.passes).max(FIRST_REFRESH);
        let aimed = self.choose_windows_for(z);
        self.completed.clear();
        self.completed.extend_from_slice(z);
        self.builds.count += 1;
        self.builds.time += begun.elapsed();
        aimed
    }

    fn arrange<'t>(&self, target: Target<'t>) -> Arranged<'t> {
        Arranged::sorted(target, &self.cells.order)
    }

    fn update(&mut self, z: &[f64], a: Ordered<'_>, y: &mut [f64]) -> Result<f64> {
        let a = a.get();
        match a.relaxed {
            None => self.half_step(z, a.weights, y, |_, a, s| a / s),
            Some(relaxed) => self.relaxed_step(z, relaxed, y, false),
        }
    }

    fn average(&mut self, z: &[f64], a: Ordered<'_>, y: &mut [f64]) -> Result<f64> {
        let a = a.get();
        if let Some(relaxed) = a.relaxed {
            return self.relaxed_step(z, relaxed, y, true);
        }
        self.half_step(z, a.weights, y, |old, a, s| match old {
            Factor::Plain(old) => old.sqrt() * (a / s).sqrt(),
            Factor::Log(old) => (0.5 * (old + (a / s).ln())).exp(),
        })
    }

    fn log_apply(&mut self, z: &[f64], out: &mut [f64]) -> Result<()> {
        if self.hold {
            self.store_message(z);
            self.with_heard(Self::apply)?;
        } else {
            self.apply(z)?;
        }
        self.write_products(out);
        Ok(())
    }

    fn exchange(&mut self, z: &[f64], out: &mut [f64], y: &mut [f64]) -> Result<()> {
        self.z.copy_from_slice(z);
        self.exchange_at(0.0);
        self.write_products(out);
        let (mut level, mut sent) = (0.0, self.send(y));
        if sent.is_err() || self.mass.iter().sum::<f64>().ln().abs() > T::DRIFT {
            // What is summed should be of mass 1, or terms leave the range of the numbers.
            let mut f = std::mem::take(&mut self.f);
            self.write_logs(&mut f);
            let sums: Vec<f64> = f.iter().zip(self.products()).map(|(f, s)| f + s).collect();
            level = -self.span.log_sum(|place| sums[place]);
            self.f = f;
            self.exchange_at(level);
            sent = self.send(y);
        }
        for y in y {
            *y -= level;
        }
        sent
    }

    fn depth(&self) -> f64 {
        DEPTH
    }

    fn message(&mut self, f: &[f64], y: &mut [f64]) {
        self.with_sorted(f, |side, f| side.whole(f, y));
        self.told = false;
    }

    fn first_message(&mut self, f: &[f64], y: &mut [f64]) {
        self.with_sorted(f, |side, f| side.whole(f, y));
        self.told = true;
    }

    fn complete(&mut self, y: &mut [f64]) {
        self.whole_message(y);
    }

    fn whole_message(&mut self, y: &mut [f64]) -> bool {
        if self.told {
            self.write_message(y);
            return true;
        }
        let begun = Instant::now();
        let mut f = std::mem::take(&mut self.f);
        self.write_logs(&mut f);
        self.whole(&f, y);
        self.told = true;
        self.f = f;
        self.builds.time += begun.elapsed();
        true
    }

    fn set_potential(&mut self, f: &[f64]) {
        (self.told, self.sent) = (false, false);
        let geometry = Geometry::new(self.lattice);
        for chunk in &mut self.chunks {
            for spot in &mut chunk.spots {
                let range = spot.cell.first..spot.cell.first + spot.cell.len;
                let points = &self.cells.order[chunk.first + range.start..chunk.first + range.end];
                let offsets = &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                for (i, q) in chunk.factors[range].iter_mut().enumerate() {
                    *q = f[points[i] as usize] + spot.scale + spot.exponent(&geometry, offsets, i);
                }
                spot.logs = true;
            }
        }
    }

    fn potential(&self, f: &mut [f64]) {
        self.each_log(|place, log| f[self.cells.order[place] as usize] = log);
    }

    fn builds(&self) -> Builds {
        self.builds
    }
}
