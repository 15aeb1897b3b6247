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
//! known: see [`Side::needs_rebuild`] and [`Separable::mass`].

mod means;

use std::ops::Range;
use std::time::Instant;

use rayon::prelude::*;

use super::cells::{Cell, Cells};
use super::target::{Step, Tally};
use super::{Builds, Coordinates, Local, Mixed, Reduce, Relaxed, Side, Target, log_sum};
use crate::design::{Lattice, MOST_AXES};
use crate::error::{Cloud, Error, Result};
use crate::measure::Points;
use crate::mixture::{Open, ROUNDS, Waiting};
use crate::simd::{self, Float};

/// Half-iterations after which messages are completed: these, and then each time four times as many.
const FIRST_REFRESH: usize = 4;
/// Windows are chosen anew when a message has moved by more than this.
const DRIFT: f64 = 2.0;
/// Messages are completed when they have moved by more than this since they were.
const FORGETFUL: f64 = 10.0;
/// Where a node has at least this part of its share of the mass.
const HEAVY: f64 = 1e-3;
/// Sums of mass below this may have lost terms.
const LOST: f64 = 1e-280;
/// Terms of a message below `exp(-cutoff - FAINT)` of it are left out: together they are less than what windows leave out.
const FAINT: f64 = 12.0;
/// Messages are completed in the precision of the tables if what the windows leave out, `exp(-cutoff)`, is coarser than that by far.
const ROUGH: f64 = 18.5;
/// What a window leaves out is `exp(-cutoff)` of what the plan has at a point, and of the other cloud's points that much
/// of the whole mass: as long as no point has less than `exp(-DEPTH)` of its weight, nearly the same.
const DEPTH: f64 = 5.0;
/// Nodes along an axis that are judged together when a message is completed: on lattices of few nodes, and of many.
const TILES: [usize; 2] = [2, 4];
const FEW_NODES: usize = 4096;
/// Points of a chunk at least, chunks at most, and numbers in all their sums at most.
const ROWS: usize = 1024;
const CHUNKS: usize = 64;
const SUMS: usize = 1 << 25;

/// A box of nodes; empty before the first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Window {
    low: [usize; MOST_AXES],
    len: [usize; MOST_AXES],
}

impl Window {
    fn nodes(&self) -> usize {
        self.len.iter().product()
    }

    /// Where the table of axis `a` is, for so many points.
    fn table(&self, a: usize, points: usize) -> Range<usize> {
        let start = self.len[..a].iter().sum::<usize>() * points;
        start..start + self.len[a] * points
    }

    /// The smallest box with both.
    fn with(mut self, other: &Window) -> Window {
        for a in 0..MOST_AXES {
            let end = (self.low[a] + self.len[a]).max(other.low[a] + other.len[a]);
            self.low[a] = self.low[a].min(other.low[a]);
            self.len[a] = end - self.low[a];
        }
        self
    }

    /// The box in pieces of at most `most` nodes an axis.
    fn pieces(self, most: usize) -> impl Iterator<Item = Window> {
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
    fn inner(&self, dim: usize) -> usize {
        self.len[1..dim - 1].iter().product()
    }

    /// Node of axis `a` whose table entry is 1.
    fn middle(&self, a: usize) -> usize {
        self.len[a] / 2
    }
}

/// A cell and its state.
#[derive(Debug)]
struct Spot {
    cell: Cell,
    window: Window,
    /// `s`.
    scale: f64,
    /// The factors `q` are kept as logarithms.
    logs: bool,
    /// The largest potential of its points, while a message is completed.
    summit: f64,
}

impl Spot {
    /// `E_x` of point `i`; zero before there is a window.
    fn exponent(&self, geometry: &Geometry<'_>, offsets: &[f64], i: usize) -> f64 {
        if self.window.len[0] == 0 {
            return 0.0;
        }
        let centre = geometry.centre(&self.window);
        geometry.point_exponent(&self.cell, &centre, |a| offsets[a * self.cell.len + i])
    }

    /// The box of all tiles where its points may matter, as far as `faint` below what the nodes of a tile have at least.
    fn reach(
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

/// Some cells, the state of their points, and scratch space.
#[derive(Debug, Default)]
struct Chunk<T> {
    /// Its first point.
    first: usize,
    spots: Vec<Spot>,
    /// `t` of every point: for each cell, its points axis by axis.
    offsets: Vec<f64>,
    /// `q` of every point, or its logarithm.
    factors: Vec<f64>,
    /// Logarithms of the sums of every point, where these are asked for.
    products: Vec<f64>,
    error: f64,
    work: Work<T>,
    exact: Work<f64>,
}

/// Scratch space for one cell at a time.
#[derive(Debug, Default)]
struct Work<T> {
    /// `Z` of the window.
    z: Vec<T>,
    /// `sum_x q_x T_u(x)` of the window.
    sums: Vec<f64>,
    /// Tables, one axis after the other, and their exponents.
    tables: Vec<T>,
    exponents: Vec<T>,
    /// A table with a factor for each point.
    product: Vec<T>,
    weighted: Vec<T>,
    /// A row of products over the inner axes.
    inner: Vec<T>,
    factors: Vec<T>,
    out: Vec<T>,
    scratch: Vec<T>,
    /// `N_u`, axis by axis.
    exponent_tables: [Vec<f64>; MOST_AXES],
    logs: Vec<f64>,
    zero: Vec<f64>,
    /// Values of a block of points, row by row.
    values: Vec<f64>,
}

/// One cloud on a lattice. See the [module](self).
pub(crate) struct Separable<'a, T> {
    lattice: &'a Lattice,
    cells: &'a Cells,
    rows: usize,
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

/// The same for every cell: what turns points and nodes into numbers.
#[derive(Clone, Copy)]
struct Geometry<'a> {
    lattice: &'a Lattice,
    dim: usize,
    /// `2 / eps`.
    square: f64,
}

/// A buffer of at least this length.
fn room<T: Float>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        // More than asked for: windows that grow a little should not allocate each time.
        buffer.resize(len.next_power_of_two(), T::ZERO);
    }
    &mut buffer[..len]
}

impl<'g> Geometry<'g> {
    fn new(lattice: &'g Lattice) -> Self {
        Geometry { lattice, dim: lattice.dim(), square: 2.0 / lattice.epsilon() }
    }

    /// Centre `w` of a window.
    fn centre(&self, window: &Window) -> [f64; MOST_AXES] {
        let mut centre = [0.0; MOST_AXES];
        for (a, c) in centre.iter_mut().enumerate().take(self.dim) {
            *c = self.lattice.coordinate(a, window.low[a] + window.middle(a));
        }
        centre
    }

    /// `E_x`, where `t(a)` are the offsets of the point.
    fn point_exponent(
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
    fn row_start(&self, window: &Window, row: usize) -> usize {
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
    fn power_range(&self, spot: &Spot, half: f64) -> f64 {
        let nodes: usize = spot.window.len[..self.dim].iter().map(|len| len / 2).sum();
        2.0 * self.square * half * self.lattice.spacing() * nodes as f64
    }

    /// The smallest entry of the message `log mass - z` at the nodes of a window.
    fn least_sent(&self, window: &Window, mass: &[f64], z: &[f64]) -> f64 {
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
    fn widest(&self, half: f64, range: f64) -> usize {
        let nodes = range / (self.dim as f64 * self.square * half * self.lattice.spacing());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let nodes = nodes.clamp(2.0, 4096.0) as usize;
        nodes
    }

    /// Smallest and largest squared distance between a point of a cell and a node of a window.
    fn distances(&self, cell: &Cell, half: f64, window: &Window) -> [f64; 2] {
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
    fn load_exponents(&self, cell: &Cell, window: &Window, tables: &mut [Vec<f64>; MOST_AXES]) {
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
    fn outer_exponent(&self, window: &Window, row: usize, tables: &[Vec<f64>; MOST_AXES]) -> f64 {
        let (mut sum, mut rest) = (0.0, row);
        for a in (0..self.dim - 1).rev() {
            sum += tables[a][rest % window.len[a]];
            rest /= window.len[a];
        }
        sum
    }
}

/// Points that are treated together: as many as fill a few cache lines a row.
fn block<T>() -> usize {
    512 / size_of::<T>()
}

impl<T: Float> Work<T> {
    /// Loads `Z` of a window; returns `s`, or minus infinity if no node of the window has a message.
    fn load(&mut self, geometry: &Geometry<'_>, cell: &Cell, window: &Window, z: &[f64]) -> f64 {
        geometry.load_exponents(cell, window, &mut self.exponent_tables);
        let width = window.len[geometry.dim - 1];
        let logs = room(&mut self.logs, window.nodes());
        let mut scale = f64::NEG_INFINITY;
        for (row, logs) in logs.chunks_exact_mut(width).enumerate() {
            let start = geometry.row_start(window, row);
            let outer = geometry.outer_exponent(window, row, &self.exponent_tables);
            let inner = &self.exponent_tables[geometry.dim - 1];
            // The first axis carries the constant; where it is also the last, `outer` is zero.
            for ((l, n), z) in logs.iter_mut().zip(inner).zip(&z[start..]) {
                *l = outer + n + z;
                scale = scale.max(*l);
            }
        }
        let nodes = window.nodes();
        let z = room(&mut self.z, nodes);
        if scale > f64::NEG_INFINITY {
            if self.zero.len() < nodes {
                self.zero.resize(nodes.next_power_of_two(), 0.0);
            }
            simd::exp_row(logs, &self.zero[..nodes], scale, z);
        } else {
            z.fill(T::ZERO);
        }
        scale
    }

    /// Adds `factor Z_u sums_u` of a window to the sums over the lattice: mass of the plan. Of several columns, those of
    /// one after those of the other.
    fn add_mass(&self, geometry: &Geometry<'_>, window: &Window, factor: f64, total: &mut [f64]) {
        let width = window.len[geometry.dim - 1];
        let nodes = window.nodes();
        let columns = total.chunks_exact_mut(geometry.lattice.nodes());
        for (total, sums) in columns.zip(self.sums.chunks_exact(nodes)) {
            let rows = self.z[..nodes].chunks_exact(width).zip(sums.chunks_exact(width));
            for (row, (z, sums)) in rows.enumerate() {
                let start = geometry.row_start(window, row);
                for ((total, z), sum) in total[start..].iter_mut().zip(z).zip(sums) {
                    *total += factor * z.to_f64() * sum;
                }
            }
        }
    }

    /// Clears the sums of a window, so many columns.
    fn clear(&mut self, window: &Window, columns: usize) {
        room(&mut self.sums, columns * window.nodes()).fill(0.0);
    }

    /// Fills the tables for points `from..from + len` of a cell, whose offsets are `offsets`; returns
    /// the padded number of points.
    fn tabulate(
        &mut self,
        geometry: &Geometry<'_>,
        window: &Window,
        offsets: &[f64],
        from: usize,
        len: usize,
    ) -> usize {
        geometry.lattice.check_cancelled();
        let points = simd::padded(len);
        let in_cell = offsets.len() / geometry.dim;
        let step = 2.0 * geometry.square * geometry.lattice.spacing();
        let total: usize = window.len[..geometry.dim].iter().sum();
        room(&mut self.tables, total * points);
        room(&mut self.exponents, points);
        room(&mut self.scratch, 2 * points);
        let mut at = 0;
        for a in 0..geometry.dim {
            let t = &offsets[a * in_cell + from..a * in_cell + from + len];
            let exponents = &mut self.exponents[..points];
            exponents[len..].fill(T::ZERO);
            for (e, t) in exponents.iter_mut().zip(t) {
                *e = T::from_f64(step * t);
            }
            let size = window.len[a] * points;
            simd::powers(
                exponents,
                window.len[a],
                window.middle(a),
                &mut self.tables[at..at + size],
                &mut self.scratch,
            );
            at += size;
        }
        points
    }

    /// `out_x = sum_u T_u(x) Z_u` for the points of the tables.
    fn gather(&mut self, geometry: &Geometry<'_>, window: &Window, points: usize) {
        let out = room(&mut self.out, points);
        out.fill(T::ZERO);
        let z = &self.z[..window.nodes()];
        let table = |a: usize| &self.tables[window.table(a, points)];
        let (last, width) = (geometry.dim - 1, window.len[geometry.dim - 1]);
        if last == 0 {
            let one = room(&mut self.inner, points);
            one.fill(T::from_f64(1.0));
            simd::gather(z, width, one, table(0), None, out);
        } else if last == 1 {
            simd::gather(z, width, table(0), table(1), None, out);
        } else {
            let inner = window.inner(geometry.dim);
            for m in 0..inner {
                let row = room(&mut self.inner, points);
                let weight = inner_row(&self.tables, window, geometry.dim, points, m, row);
                let z = &z[m * width..];
                simd::gather(z, inner * width, table(0), table(last), Some(weight), out);
            }
        }
    }

    /// `sums_u += sum_x factor_x T_u(x)` for the points of the tables, in a column of the sums.
    fn scatter(&mut self, geometry: &Geometry<'_>, window: &Window, points: usize, column: usize) {
        let factors = &self.factors[..points];
        let nodes = window.nodes();
        let sums = &mut self.sums[column * nodes..(column + 1) * nodes];
        let table = |a: usize| &self.tables[window.table(a, points)];
        let (last, width) = (geometry.dim - 1, window.len[geometry.dim - 1]);
        if last == 0 {
            simd::scatter(factors, table(0), points, sums, width);
            return;
        }
        let product = room(&mut self.product, window.len[0] * points);
        simd::multiply(table(0), factors, product);
        if last == 1 {
            simd::scatter(product, table(1), points, sums, width);
            return;
        }
        let inner = window.inner(geometry.dim);
        for m in 0..inner {
            let row = room(&mut self.inner, points);
            let weight = inner_row(&self.tables, window, geometry.dim, points, m, row);
            let weighted = room(&mut self.weighted, product.len());
            simd::multiply(product, weight, weighted);
            simd::scatter(weighted, table(last), points, &mut sums[m * width..], inner * width);
        }
    }
}

/// A factor as it is kept.
#[derive(Clone, Copy)]
enum Factor {
    Plain(f64),
    Log(f64),
}

impl<T: Float> Work<T> {
    /// One half of an iteration for the points of a cell; returns the error of their old factors. See
    /// [`Separable::half_step`].
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    fn advance(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &mut Spot,
        offsets: &[f64],
        factors: &mut [f64],
        a: &[f64],
        z: &[f64],
        next: &impl Fn(Factor, f64, f64) -> f64,
        total: &mut [f64],
    ) -> f64 {
        let scale = self.load(geometry, &spot.cell, &spot.window, z);
        let shift = scale - spot.scale;
        if !spot.logs && shift.abs() > FAR {
            for q in factors.iter_mut() {
                *q = q.ln();
            }
            spot.logs = true;
        }
        let (logs, grow) = (spot.logs, shift.exp());
        // Relative to the largest weight, so that small weights keep their digits in single precision.
        let top = simd::largest(a).max(1e-280);
        let per_top = 1.0 / top;
        let mut error = 0.0;
        self.clear(&spot.window, 1);
        for from in (0..factors.len()).step_by(block::<T>()) {
            let len = block::<T>().min(factors.len() - from);
            let points = self.tabulate(geometry, &spot.window, offsets, from, len);
            self.gather(geometry, &spot.window, points);
            let scaled = room(&mut self.factors, points);
            scaled[len..].fill(T::ZERO);
            for (((q, a), s), scaled) in
                factors[from..from + len].iter_mut().zip(&a[from..]).zip(&self.out).zip(scaled)
            {
                let s = s.to_f64();
                let (old, factor) = if logs {
                    let log = *q + shift;
                    (log.exp(), Factor::Log(log))
                } else {
                    (*q * grow, Factor::Plain(*q * grow))
                };
                error += (old * s - a).abs();
                *q = next(factor, *a, s);
                *scaled = T::from_f64(*q * per_top);
            }
            self.scatter(geometry, &spot.window, points, 0);
        }
        spot.logs = false;
        spot.scale = scale;
        self.add_mass(geometry, &spot.window, top, total);
        error
    }
}

impl<T: Float> Work<T> {
    /// [`Work::advance`] where the marginal is relaxed: factors stay logarithms, because points may be as
    /// faint as they like.
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    fn advance_relaxed(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &mut Spot,
        offsets: &[f64],
        factors: &mut [f64],
        first: usize,
        z: &[f64],
        step: &Step<'_>,
        tally: &mut Tally,
        total: &mut [f64],
    ) {
        let scale = self.load(geometry, &spot.cell, &spot.window, z);
        let shift = scale - spot.scale;
        let centre = geometry.centre(&spot.window);
        self.clear(&spot.window, 1);
        for from in (0..factors.len()).step_by(block::<T>()) {
            let len = block::<T>().min(factors.len() - from);
            let points = self.tabulate(geometry, &spot.window, offsets, from, len);
            self.gather(geometry, &spot.window, points);
            let scaled = room(&mut self.factors, points);
            scaled[len..].fill(T::ZERO);
            for (i, scaled) in scaled[..len].iter_mut().enumerate() {
                let q = &mut factors[from + i];
                let old = if spot.logs { *q } else { q.ln() } + shift;
                let t = |a: usize| offsets[a * spot.cell.len + from + i];
                let exponent = geometry.point_exponent(&spot.cell, &centre, t);
                let sum = self.out[i].to_f64();
                let (factor, new) = step.row(first + from + i, old, sum, scale + exponent, tally);
                *q = new;
                *scaled = T::from_f64(factor);
            }
            self.scatter(geometry, &spot.window, points, 0);
        }
        spot.logs = true;
        spot.scale = scale;
        self.add_mass(geometry, &spot.window, 1.0, total);
    }
}

impl<T: Float> Work<T> {
    /// Sums of the points of a cell, as logarithms, and what their factors, times `exp(level)`, send: the factors
    /// stay what they are.
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    fn exchange(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &mut Spot,
        offsets: &[f64],
        factors: &mut [f64],
        level: f64,
        z: &[f64],
        out: &mut [f64],
        total: &mut [f64],
    ) {
        let scale = self.load(geometry, &spot.cell, &spot.window, z);
        let shift = scale - spot.scale;
        let mut top = f64::NEG_INFINITY;
        for q in factors.iter_mut() {
            *q = if spot.logs { *q } else { q.ln() } + shift;
            top = top.max(*q);
        }
        let centre = geometry.centre(&spot.window);
        self.clear(&spot.window, 1);
        for from in (0..factors.len()).step_by(block::<T>()) {
            let len = block::<T>().min(factors.len() - from);
            let points = self.tabulate(geometry, &spot.window, offsets, from, len);
            self.gather(geometry, &spot.window, points);
            let scaled = room(&mut self.factors, points);
            scaled[len..].fill(T::ZERO);
            for (i, scaled) in scaled[..len].iter_mut().enumerate() {
                let t = |a: usize| offsets[a * spot.cell.len + from + i];
                let exponent = geometry.point_exponent(&spot.cell, &centre, t);
                out[from + i] = scale + exponent + self.out[i].to_f64().ln();
                *scaled = T::from_f64((factors[from + i] - top).exp());
            }
            self.scatter(geometry, &spot.window, points, 0);
        }
        spot.logs = true;
        spot.scale = scale;
        self.add_mass(geometry, &spot.window, (top + level).exp(), total);
    }
}

impl<T: Float> Work<T> {
    /// Adds what the points of a cell send, each times its values, to the sums: some columns of all
    /// `of` them.
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    fn contract(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &Spot,
        offsets: &[f64],
        factors: &[f64],
        z: &[f64],
        columns: Range<usize>,
        of: usize,
        value: impl Fn(usize, &mut [f64]),
        total: &mut [f64],
    ) {
        let shift = self.load(geometry, &spot.cell, &spot.window, z) - spot.scale;
        // Relative to the largest factor, so that small ones keep their digits in single precision.
        let top = factors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let per_top = 1.0 / top;
        self.clear(&spot.window, columns.len());
        for from in (0..factors.len()).step_by(block::<T>()) {
            let len = block::<T>().min(factors.len() - from);
            let points = self.tabulate(geometry, &spot.window, offsets, from, len);
            let scaled = |q: f64| if spot.logs { (q - top).exp() } else { q * per_top };
            let values = room(&mut self.values, of * len);
            for (i, row) in values.chunks_exact_mut(of).enumerate() {
                value(from + i, row);
                let q = scaled(factors[from + i]);
                for value in row {
                    *value *= q;
                }
            }
            for (place, column) in columns.clone().enumerate() {
                let factors = room(&mut self.factors, points);
                factors[len..].fill(T::ZERO);
                let rows = self.values[..of * len].chunks_exact(of);
                for (factor, row) in factors.iter_mut().zip(rows) {
                    *factor = T::from_f64(row[column]);
                }
                self.scatter(geometry, &spot.window, points, place);
            }
        }
        let top = if spot.logs { top } else { top.ln() };
        self.add_mass(geometry, &spot.window, (top + shift).exp(), total);
    }
}

impl<T: Float> Work<T> {
    /// `f + E` of the points of a cell, seen from a tile, to `logs`; returns the largest.
    fn tile_exponents(
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
    fn tile_block(
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
    fn tile(
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

    /// See [`Separable::views`]: for the points of a cell.
    fn views(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &Spot,
        offsets: &[f64],
        z: &[f64],
        squares: bool,
        out: &mut [f64],
    ) {
        let (cell, window, dim) = (&spot.cell, &spot.window, geometry.dim);
        let scale = self.load(geometry, cell, window, z);
        let centre = geometry.centre(window);
        // Numbers of nodes are counted from the middle of the window.
        let step = |a: usize, node: usize| {
            let behind: usize = window.len[a + 1..dim].iter().product();
            (node / behind % window.len[a]) as f64 - window.middle(a) as f64
        };
        let terms = &self.z[..window.nodes()];
        let weighted = |weight: &dyn Fn(usize) -> f64| -> Vec<f64> {
            terms.iter().enumerate().map(|(node, z)| z * weight(node)).collect()
        };
        let mut moments: Vec<Vec<f64>> =
            (0..dim).map(|a| weighted(&|node| step(a, node))).collect();
        if squares {
            let square = |node| (0..dim).map(|a| step(a, node).powi(2)).sum();
            moments.push(weighted(&square));
        }
        let h = geometry.lattice.spacing();
        for from in (0..cell.len).step_by(block::<f64>()) {
            let len = block::<f64>().min(cell.len - from);
            let points = self.tabulate(geometry, window, offsets, from, len);
            let out = &mut out[from * (dim + 2)..(from + len) * (dim + 2)];
            self.gather(geometry, window, points);
            for (row, sum) in out.chunks_exact_mut(dim + 2).zip(&self.out) {
                row[dim + 1] = *sum;
            }
            for (m, moment) in moments.iter_mut().enumerate() {
                std::mem::swap(&mut self.z, moment);
                self.gather(geometry, window, points);
                std::mem::swap(&mut self.z, moment);
                for (row, sum) in out.chunks_exact_mut(dim + 2).zip(&self.out) {
                    row[m] = sum / row[dim + 1];
                }
            }
            for (i, row) in out.chunks_exact_mut(dim + 2).enumerate() {
                let t = |a: usize| offsets[a * cell.len + from + i];
                row[dim] *= h * h;
                for a in 0..dim {
                    // From the point to the middle of the window.
                    let away = centre[a] - cell.centre[a] - t(a);
                    if squares {
                        row[dim] += away * (2.0 * h * row[a] + away);
                    }
                    row[a] = h * row[a] + away;
                }
                row[dim + 1] =
                    scale + geometry.point_exponent(cell, &centre, t) + row[dim + 1].ln();
            }
        }
    }
}

/// Product of the tables of the axes between the first and the last (one or two) at their node `m`.
fn inner_row<'r, T: Float>(
    tables: &'r [T],
    window: &Window,
    dim: usize,
    points: usize,
    m: usize,
    product: &'r mut [T],
) -> &'r [T] {
    let row = |a: usize, j: usize| {
        let start = window.table(a, points).start + j * points;
        &tables[start..start + points]
    };
    if dim == 3 {
        row(1, m)
    } else {
        simd::multiply(row(1, m / window.len[2]), row(2, m % window.len[2]), product);
        product
    }
}

impl<'a, T: Float> Separable<'a, T> {
    /// The points, in the coordinates of the lattice and sorted as `cells` says. Nodes that carry less
    /// than `exp(-cutoff)` of the largest term of every point of a cell are not visited.
    pub(crate) fn new(
        points: &Points<'_>,
        lattice: &'a Lattice,
        cells: &'a Cells,
        cutoff: f64,
    ) -> Self {
        let (rows, nodes) = (points.len(), lattice.nodes());
        let count = (rows / ROWS).min(SUMS / nodes).clamp(1, CHUNKS);
        let share = rows.div_ceil(count);
        let dim = lattice.dim();
        let mut chunks: Vec<Chunk<T>> = Vec::new();
        for cell in &cells.list {
            if chunks.last().is_none_or(|chunk| chunk.factors.len() >= share) {
                chunks.push(Chunk { first: cell.first, ..Chunk::default() });
            }
            let chunk = chunks.last_mut().expect("just made");
            for a in 0..dim {
                chunk.offsets.extend(
                    cells.order[cell.first..cell.first + cell.len]
                        .iter()
                        .map(|&i| points.coordinate(i as usize, a) - cell.centre[a]),
                );
            }
            chunk.factors.resize(chunk.factors.len() + cell.len, f64::NEG_INFINITY);
            chunk.products.resize(chunk.factors.len(), 0.0);
            let cell = Cell { first: cell.first - chunk.first, ..cell.clone() };
            chunk.spots.push(Spot {
                cell,
                window: Window::default(),
                scale: 0.0,
                logs: true,
                summit: 0.0,
            });
        }
        let (parts, tiles) = (chunks.len(), tiles(lattice));
        Separable {
            least: vec![0.0; tiles.len()],
            tiles,
            lattice,
            cells,
            rows,
            cutoff,
            chunks,
            z: vec![f64::NEG_INFINITY; nodes],
            aimed: Vec::new(),
            hold: false,
            completed: Vec::new(),
            mass: vec![0.0; nodes],
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

    /// Keeps a message, as far as it is one.
    fn hear(&mut self, z: &[f64]) {
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

    /// Whether a message has moved far, or the windows, chosen anew where it has moved, have no node of it.
    fn lacks(&mut self, z: &[f64]) -> bool {
        // Where there was mass in the last pass: elsewhere windows know little of a message.
        let heavy = HEAVY / z.len() as f64;
        let heavy = z.iter().zip(&self.completed).zip(&self.mass).filter(|(_, m)| **m > heavy);
        if drift(heavy.map(|(pair, _)| pair)) > FORGETFUL {
            return true;
        }
        if drift(z.iter().zip(&self.aimed)) > DRIFT { !self.aim(z) } else { self.blind(z) }
    }

    /// Chooses the windows for a message. Returns whether every cell has a node with a message.
    fn aim(&mut self, z: &[f64]) -> bool {
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
        let alive = self
            .chunks
            .par_iter_mut()
            .with_max_len(1)
            .map(|chunk| {
                let mut alive = true;
                for spot in &mut chunk.spots {
                    geometry.lattice.check_cancelled();
                    let range = spot.cell.first..spot.cell.first + spot.cell.len;
                    let aim = Aim { geometry, z, best, half, cutoff };
                    let Some(window) = aim.window(&spot.cell, &mut chunk.exact) else {
                        alive = false;
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
                alive
            })
            .reduce(|| true, |a, b| a && b);
        self.aimed.clear();
        self.aimed.extend_from_slice(z);
        alive
    }

    /// Whether some window has no node with a message.
    fn blind(&self, z: &[f64]) -> bool {
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

    /// One pass. The new factor of a point is `next(old factor, a_i, sum_u T_u Z_u)`.
    fn half_step(
        &mut self,
        z: &[f64],
        a: &[f64],
        y: &mut [f64],
        next: impl Fn(Factor, f64, f64) -> f64 + Sync,
    ) -> Result<f64> {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        self.z.copy_from_slice(z);
        let z = &self.z[..];
        self.chunks.par_iter_mut().zip(self.sums.par_chunks_mut(z.len())).with_max_len(1).for_each(
            |(chunk, sums)| {
                sums.fill(0.0);
                chunk.error = 0.0;
                let Chunk { first, spots, offsets, factors, error, work, exact, .. } = chunk;
                for spot in spots {
                    let range = spot.cell.first..spot.cell.first + spot.cell.len;
                    let a = &a[*first + range.start..*first + range.end];
                    let offsets = &offsets[range.start * geometry.dim..range.end * geometry.dim];
                    let factors = &mut factors[range];
                    // Powers must stay in the range of the numbers.
                    let range = geometry.power_range(spot, half);
                    *error += if size_of::<T>() == 8 || range > NARROW {
                        exact.advance(&geometry, spot, offsets, factors, a, z, &next, sums)
                    } else {
                        work.advance(&geometry, spot, offsets, factors, a, z, &next, sums)
                    };
                }
            },
        );
        self.send(y)?;
        Ok(self.chunks.iter().map(|chunk| chunk.error).sum())
    }

    /// Adds the sums of all chunks and turns them into a message.
    fn send(&mut self, y: &mut [f64]) -> Result<()> {
        self.told = false;
        Local.sum(&self.sums, &mut self.mass);
        for ((y, sum), z) in y.iter_mut().zip(&self.mass).zip(&self.z) {
            *y = if *sum > LOST { sum.ln() - z } else { f64::NEG_INFINITY };
        }
        if let Some(sum) = self.mass.iter().find(|s| !s.is_finite()) {
            let sum = *sum;
            return Err(self.breakdown(sum));
        }
        self.passes += 1;
        // The constant of relaxed updates changes after the pass.
        self.sent = !self.hold;
        Ok(())
    }

    /// One pass where the marginal is relaxed.
    fn relaxed_step(
        &mut self,
        z: &[f64],
        relaxed: Relaxed<'_>,
        y: &mut [f64],
        average: bool,
    ) -> Result<f64> {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        let step = Step { relaxed, level: self.level, average };
        self.hear(z);
        self.hold = true;
        let z = &self.z[..];
        self.chunks
            .par_iter_mut()
            .zip(self.sums.par_chunks_mut(z.len()))
            .zip(self.tallies.par_chunks_mut(Tally::LEN))
            .with_max_len(1)
            .for_each(|((chunk, sums), share)| {
                sums.fill(0.0);
                let Chunk { first, spots, offsets, factors, work, exact, .. } = chunk;
                let mut tally = Tally::default();
                for spot in spots {
                    let range = spot.cell.first..spot.cell.first + spot.cell.len;
                    let first = *first + range.start;
                    let offsets = &offsets[range.start * geometry.dim..range.end * geometry.dim];
                    let (q, t) = (&mut factors[range], &mut tally);
                    // Powers must stay in the range of the numbers.
                    if size_of::<T>() == 8 || geometry.power_range(spot, half) > NARROW {
                        exact
                            .advance_relaxed(&geometry, spot, offsets, q, first, z, &step, t, sums);
                    } else {
                        work.advance_relaxed(&geometry, spot, offsets, q, first, z, &step, t, sums);
                    }
                }
                tally.store(share);
            });
        let sent = self.send(y);
        let tally = Tally::total(&self.tallies);
        let near = tally.log_mass(T::DRIFT).filter(|_| sent.is_ok());
        let log_mass = match near {
            Some(log_mass) => log_mass,
            None => self.relaxed_mass(relaxed)?,
        };
        self.level -= log_mass;
        let change = step.share() * log_mass;
        for spot in self.chunks.iter_mut().flat_map(|chunk| &mut chunk.spots) {
            // What makes a potential of the factors.
            spot.scale += change;
        }
        if near.is_some() {
            for y in y {
                *y -= change;
            }
        } else {
            self.whole_message(y);
        }
        Ok(tally.error())
    }

    /// [`Side::log_apply`] of a message without gaps.
    fn apply(&mut self, z: &[f64], out: &mut [f64]) -> Result<()> {
        if (self.aimed.is_empty() || drift(z.iter().zip(&self.aimed)) > DRIFT) && !self.aim(z) {
            return Err(self.breakdown(0.0));
        }
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
        self.write_products(out);
        Ok(())
    }

    fn write_products(&self, out: &mut [f64]) {
        for chunk in &self.chunks {
            out[chunk.first..chunk.first + chunk.products.len()].copy_from_slice(&chunk.products);
        }
    }

    /// [`Side::exchange`], with factors times `exp(level)`.
    fn exchange_at(&mut self, level: f64) {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        let z = &self.z[..];
        self.chunks.par_iter_mut().zip(self.sums.par_chunks_mut(z.len())).with_max_len(1).for_each(
            |(chunk, sums)| {
                sums.fill(0.0);
                let Chunk { spots, offsets, factors, products, work, exact, .. } = chunk;
                for spot in spots {
                    let range = spot.cell.first..spot.cell.first + spot.cell.len;
                    let offsets = &offsets[range.start * geometry.dim..range.end * geometry.dim];
                    let (q, out) = (&mut factors[range.clone()], &mut products[range]);
                    // Powers must stay in the range of the numbers.
                    if size_of::<T>() == 8 || geometry.power_range(spot, half) > NARROW {
                        exact.exchange(&geometry, spot, offsets, q, level, z, out, sums);
                    } else {
                        work.exchange(&geometry, spot, offsets, q, level, z, out, sums);
                    }
                }
            },
        );
    }

    /// The logarithm of the mass that a relaxed marginal gets, where it is out of range.
    fn relaxed_mass(&mut self, relaxed: Relaxed<'_>) -> Result<f64> {
        if self.chunks.iter().flat_map(|chunk| &chunk.factors).any(|q| !q.is_finite()) {
            return Err(self.breakdown(f64::NAN));
        }
        let mut s = std::mem::take(&mut self.f);
        let applied = self.with_heard(|side, z| side.apply(z, &mut s));
        let log_mass = relaxed.log_mass(&s) + self.level;
        self.f = s;
        applied.map(|()| log_mass)
    }

    fn breakdown(&self, value: f64) -> Error {
        let mut factors = self.chunks.iter().flat_map(|chunk| &chunk.factors);
        let place = factors.position(|q| !q.is_finite()).unwrap_or(0);
        Error::Breakdown {
            iteration: 0,
            row: self.cells.order[place] as usize + 1,
            value,
            remedy: T::REMEDY,
            cloud: Cloud::X,
        }
    }

    /// The message of the potential `f` over the whole lattice.
    fn whole(&mut self, f: &[f64], y: &mut [f64]) {
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
            let far = |spot: &Spot| geometry.distances(&spot.cell, half, tile)[1];
            *least = spots
                .map(|spot| spot.summit - geometry.square * far(spot))
                .fold(f64::NEG_INFINITY, f64::max);
            if let Some((mass, z)) = sent {
                *least = least.max(geometry.least_sent(tile, mass, z));
            }
        });
        let least = &self.least;
        let nodes = self.lattice.nodes();
        let (faint, rough) = (self.cutoff + FAINT, self.cutoff < ROUGH);
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
        Local.max(&self.tops, &mut self.top);
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
        Local.sum(&self.sums, &mut self.total);
        self.tell(y);
    }

    /// Writes the last message that was computed whole.
    fn tell(&self, y: &mut [f64]) {
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

impl Separable<'_, f64> {
    /// After [`Side::message`]: for each chunk, its part of the sum at every node, relative to the largest; and the
    /// number of nodes.
    pub(crate) fn chunk_sums(&self) -> (&[f64], usize) {
        (&self.sums, self.lattice.nodes())
    }

    /// How every point sees the nodes by the terms `phi_u(x) exp(z_u)` of a message, in the order of the cells: the mean of
    /// `u - x`, if asked for that of `|u - x|^2` (or else zero), and the logarithm of the sum of the terms.
    pub(crate) fn views(&mut self, z: &[f64], squares: bool) -> Result<Vec<f64>> {
        if !self.aim(z) {
            return Err(self.breakdown(0.0));
        }
        let geometry = Geometry::new(self.lattice);
        let width = geometry.dim + 2;
        let mut out = vec![0.0; self.rows * width];
        let (mut shares, mut rest) = (Vec::new(), &mut out[..]);
        for chunk in &self.chunks {
            let (share, behind) = rest.split_at_mut(chunk.factors.len() * width);
            shares.push(share);
            rest = behind;
        }
        self.chunks.par_iter_mut().zip(shares).with_max_len(1).for_each(|(chunk, out)| {
            for spot in &chunk.spots {
                let range = spot.cell.first..spot.cell.first + spot.cell.len;
                let offsets = &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                let out = &mut out[range.start * width..range.end * width];
                chunk.exact.views(&geometry, spot, offsets, z, squares, out);
            }
        });
        Ok(out)
    }

    /// After [`Side::message`] of the same `f`: finds the points, in the order of the cells, at which sums at nodes
    /// reach what draws wait for, which are sorted, a list a chunk.
    pub(crate) fn find(&mut self, f: &[f64], waiting: &mut [Vec<Waiting>]) {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        let (tiles, least, tops) = (&self.tiles, &self.least, &self.top[..]);
        let (faint, most) = (self.cutoff + FAINT, geometry.widest(half, f64::POWERS));
        self.chunks.par_iter_mut().zip(waiting).with_max_len(1).for_each(|(chunk, waiting)| {
            let mut open = Open::all(waiting);
            for _ in 0..ROUNDS {
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

/// Largest exponent of a power in single precision.
const NARROW: f64 = 40.0;
/// Factors whose scale moves by more than this in one step are kept as logarithms.
const FAR: f64 = 300.0;

/// The whole lattice, cut into boxes.
fn tiles(lattice: &Lattice) -> Vec<Window> {
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

/// How windows are chosen.
struct Aim<'a> {
    geometry: Geometry<'a>,
    z: &'a [f64],
    best: &'a [f64],
    half: f64,
    cutoff: f64,
}

/// Corners of a cell, and of its projection along the last axis.
const CORNERS: usize = 1 << MOST_AXES;
const OUTER: usize = CORNERS / 2;

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

impl<T: Float> Side for Separable<'_, T> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn rank(&self) -> usize {
        self.lattice.nodes()
    }

    fn needs_rebuild(&mut self, z: &[f64]) -> bool {
        if self.aimed.is_empty() || self.passes >= self.refresh {
            return true;
        }
        if self.hold {
            self.hear(z);
            return self.with_heard(Self::lacks);
        }
        self.lacks(z)
    }

    fn note_absent(&mut self, _: &[f64]) {}

    fn rebuild(&mut self, z: &[f64]) -> Result<()> {
        let begun = Instant::now();
        self.refresh = (4 * self.passes).max(FIRST_REFRESH);
        let alive = self.aim(z);
        self.completed.clear();
        self.completed.extend_from_slice(z);
        self.builds.count += 1;
        self.builds.time += begun.elapsed();
        if alive { Ok(()) } else { Err(self.breakdown(0.0)) }
    }

    fn update(&mut self, z: &[f64], a: Target<'_>, y: &mut [f64]) -> Result<f64> {
        match a.relaxed {
            None => self.half_step(z, a.weights, y, |_, a, s| a / s),
            Some(relaxed) => self.relaxed_step(z, relaxed, y, false),
        }
    }

    fn average(&mut self, z: &[f64], a: Target<'_>, y: &mut [f64]) -> Result<f64> {
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
            self.hear(z);
            return self.with_heard(|side, z| side.apply(z, out));
        }
        self.apply(z, out)
    }

    fn exchange(&mut self, z: &[f64], out: &mut [f64], y: &mut [f64]) -> Result<()> {
        self.z.copy_from_slice(z);
        self.exchange_at(0.0);
        self.write_products(out);
        let (mut level, mut sent) = (0.0, self.send(y));
        if sent.is_err() || self.mass.iter().sum::<f64>().ln().abs() > T::DRIFT {
            // What is summed should be of mass 1, or terms leave the range of the numbers.
            let mut f = std::mem::take(&mut self.f);
            self.potential(&mut f);
            level = -log_sum(f.iter().zip(&*out).map(|(f, s)| f + s));
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
        self.whole(f, y);
        self.told = false;
    }

    fn first_message(&mut self, f: &[f64], y: &mut [f64]) {
        self.whole(f, y);
        self.told = true;
    }

    fn complete(&mut self, y: &mut [f64]) {
        self.whole_message(y);
    }

    fn whole_message(&mut self, y: &mut [f64]) -> bool {
        if self.told {
            self.tell(y);
            return true;
        }
        let begun = Instant::now();
        let mut f = std::mem::take(&mut self.f);
        self.potential(&mut f);
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
                let f = &f[chunk.first + range.start..chunk.first + range.end];
                let offsets = &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                for (i, q) in chunk.factors[range].iter_mut().enumerate() {
                    *q = f[i] + spot.scale + spot.exponent(&geometry, offsets, i);
                }
                spot.logs = true;
            }
        }
    }

    fn potential(&self, f: &mut [f64]) {
        let geometry = Geometry::new(self.lattice);
        for chunk in &self.chunks {
            for spot in &chunk.spots {
                let range = spot.cell.first..spot.cell.first + spot.cell.len;
                let f = &mut f[chunk.first + range.start..chunk.first + range.end];
                let offsets = &chunk.offsets[range.start * geometry.dim..range.end * geometry.dim];
                for (i, q) in chunk.factors[range].iter().enumerate() {
                    let log = if spot.logs { *q } else { q.ln() };
                    f[i] = log - spot.scale - spot.exponent(&geometry, offsets, i);
                }
            }
        }
    }

    fn builds(&self) -> Builds {
        self.builds
    }
}

impl<T: Float> Mixed for Separable<'_, T> {
    fn contract(&mut self, columns: usize, value: &Coordinates<'_>) -> Vec<f64> {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        let nodes = self.lattice.nodes();
        let z = &self.z[..];
        let mut out = vec![0.0; columns * nodes];
        // As many columns at a time as there is room for.
        let group = (SUMS / self.sums.len()).clamp(1, columns);
        let mut sums = vec![0.0; self.chunks.len() * group * nodes];
        for (part, out) in out.chunks_mut(group * nodes).enumerate() {
            let part = part * group..part * group + out.len() / nodes;
            let sums = &mut sums[..self.chunks.len() * out.len()];
            self.chunks
                .par_iter_mut()
                .zip(sums.par_chunks_mut(out.len()))
                .with_max_len(1)
                .for_each(|(chunk, sums)| {
                    sums.fill(0.0);
                    let Chunk { first, spots, offsets, factors, work, exact, .. } = chunk;
                    for spot in spots {
                        let range = spot.cell.first..spot.cell.first + spot.cell.len;
                        let first = *first + range.start;
                        let offsets =
                            &offsets[range.start * geometry.dim..range.end * geometry.dim];
                        let (q, part) = (&factors[range], part.clone());
                        let of = |i: usize, row: &mut [f64]| value(first + i, row);
                        // Powers must stay in the range of the numbers.
                        if size_of::<T>() == 8 || geometry.power_range(spot, half) > NARROW {
                            exact.contract(&geometry, spot, offsets, q, z, part, columns, of, sums);
                        } else {
                            work.contract(&geometry, spot, offsets, q, z, part, columns, of, sums);
                        }
                    }
                });
            Local.sum(sums, out);
        }
        out
    }

    fn reference(&self) -> &[f64] {
        &self.z
    }

    fn stride(&self) -> usize {
        self.lattice.nodes()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::features::{Mapped, lattice_map};
    use crate::kernel::{Factored, FactoredSelf, Kernel, SelfKernel, Stored};

    fn cloud(n: usize, dim: usize, shift: f64, seed: u64) -> Points<'static> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let values: Vec<f64> = (0..n * dim)
            .map(|_| {
                let z: f64 = StandardNormal.sample(&mut rng);
                0.4 * z + shift
            })
            .collect();
        Points::new(values, dim).unwrap()
    }

    fn lattice(x: &Points<'_>, y: &Points<'_>, epsilon: f64, ratio: f64) -> Lattice {
        let ends = |a: usize| {
            let all = |p: &Points<'_>| -> [f64; 2] {
                let v: Vec<f64> = (0..p.len()).map(|i| p.coordinate(i, a)).collect();
                [
                    v.iter().copied().fold(f64::INFINITY, f64::min),
                    v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ]
            };
            let (x, y) = (all(x), all(y));
            [0.5 * (x[0] + y[0]), 0.5 * (x[1] + y[1])]
        };
        let low: Vec<f64> = (0..x.dim()).map(|a| ends(a)[0]).collect();
        let high: Vec<f64> = (0..x.dim()).map(|a| ends(a)[1]).collect();
        Lattice::covering(&low, &high, epsilon, ratio, 1e7).unwrap()
    }

    fn check<T: Float>(cutoff: f64, tolerance: f64) {
        for (dim, n, m, epsilon, shift) in [
            (1, 400, 300, 0.05, 0.3),
            (1, 50, 60, 1e-3, 1.5),
            (2, 700, 500, 0.2, 0.2),
            (2, 300, 200, 0.02, 0.6),
            (3, 300, 400, 0.3, 0.1),
            (3, 100, 90, 0.1, 0.5),
            (4, 120, 100, 1.0, 0.2),
        ] {
            let (x, y) = (cloud(n, dim, 0.0, 1), cloud(m, dim, shift, 2));
            let lattice = lattice(&x, &y, epsilon, 0.05);
            let map = lattice_map(&lattice);
            let (cx, cy) = (Cells::new(&x, &lattice), Cells::new(&y, &lattice));
            let (a, b) = (vec![1.0 / n as f64; n], vec![1.0 / m as f64; m]);
            let start: Vec<f64> = a.iter().map(|a: &f64| a.ln()).collect();
            let side =
                |p: &Points<'static>| Stored::<f64>::new(Box::new(Mapped::new(&map, p.clone())));
            let mut stored = Factored::new(side(&x), side(&y));
            let mut separable = Factored::new(
                Separable::<T>::new(&x, &lattice, &cx, cutoff),
                Separable::<T>::new(&y, &lattice, &cy, cutoff),
            );
            stored.start(&start).unwrap();
            separable.start(&start).unwrap();
            stored.update_y(Target::fixed(&b)).unwrap();
            separable.update_y(Target::fixed(&b)).unwrap();
            for iteration in 0..30 {
                stored.update_x(Target::fixed(&a)).unwrap();
                separable.update_x(Target::fixed(&a)).unwrap();
                let e = stored.update_y(Target::fixed(&b)).unwrap();
                let other = separable.update_y(Target::fixed(&b)).unwrap();
                assert!(
                    (e - other).abs() <= 10.0 * tolerance,
                    "{dim} {epsilon}: {iteration}: {e} {other}"
                );
                let (mut f, mut g) = (vec![0.0; n], vec![0.0; m]);
                stored.potentials(&mut f, &mut g);
                let (mut fs, mut gs) = (vec![0.0; n], vec![0.0; m]);
                separable.potentials(&mut fs, &mut gs);
                for (exact, found) in
                    f.iter().zip(cx.unsorted(&fs)).chain(g.iter().zip(cy.unsorted(&gs)))
                {
                    assert!(
                        (exact - found).abs() <= tolerance * exact.abs().max(1.0),
                        "{dim} {epsilon} {iteration}: {exact} {found}"
                    );
                }
            }
            let [ma, mb] = stored.marginals(Target::fixed(&a), Target::fixed(&b)).unwrap();
            let [sa, sb] = separable.marginals(Target::fixed(&a), Target::fixed(&b)).unwrap();
            assert!((ma.error - sa.error).abs() <= 10.0 * tolerance);
            assert!((mb.error - sb.error).abs() <= 10.0 * tolerance);
            check_products(&mut stored, &mut separable, [&cx, &cy], tolerance);

            let mut stored = FactoredSelf::new(side(&x));
            let mut separable = FactoredSelf::new(Separable::<T>::new(&x, &lattice, &cx, cutoff));
            stored.start(&start).unwrap();
            separable.start(&start).unwrap();
            for _ in 0..10 {
                stored.update(Target::fixed(&a)).unwrap();
                separable.update(Target::fixed(&a)).unwrap();
            }
            let (mut f, mut fs) = (vec![0.0; n], vec![0.0; n]);
            stored.potential(&mut f);
            separable.potential(&mut fs);
            for (exact, found) in f.iter().zip(cx.unsorted(&fs)) {
                assert!((exact - found).abs() <= tolerance * exact.abs().max(1.0));
            }
        }
    }

    /// Products of plans of any mass.
    fn check_products(
        stored: &mut dyn Kernel,
        separable: &mut dyn Kernel,
        cells: [&Cells; 2],
        tolerance: f64,
    ) {
        let (n, m) = (stored.rows(), stored.columns());
        let products = |kernel: &mut dyn Kernel, f: &[f64], g: &[f64], whole| {
            let (mut rows, mut columns) = (vec![0.0; n], vec![0.0; m]);
            kernel.products(f, g, whole, &mut rows, &mut columns).unwrap();
            [rows, columns]
        };
        let (mut start, mut g) = (vec![0.0; n], vec![0.0; m]);
        stored.potentials(&mut start, &mut g);
        for shift in [0.0, 300.0, -300.0] {
            let f: Vec<f64> = start.iter().map(|f| f + shift).collect();
            let exact = products(stored, &f, &g, true);
            let near = |found: [Vec<f64>; 2], tolerance: f64| {
                for (exact, found) in exact.iter().flatten().zip(found.iter().flatten()) {
                    let apart = (exact - found).abs();
                    assert!(apart <= tolerance * exact.abs().max(1.0), "{shift}: {exact} {found}");
                }
            };
            near(products(stored, &f, &g, false), 1e-12);
            for whole in [true, false] {
                let (f, g) = (cells[0].sorted(&f), cells[1].sorted(&g));
                let [rows, columns] = products(separable, &f, &g, whole);
                near([cells[0].unsorted(&rows), cells[1].unsorted(&columns)], tolerance);
            }
        }
    }

    #[test]
    fn the_separable_lattice_is_the_stored_lattice_in_double_precision() {
        check::<f64>(40.0, 1e-12);
    }

    #[test]
    fn the_separable_lattice_is_the_stored_lattice_in_single_precision() {
        check::<f32>(18.0, 2e-5);
    }

    #[test]
    fn whole_messages_are_those_of_the_stored_lattice() {
        for (dim, epsilon, shift) in [(1, 1e-4, 3.0), (2, 0.01, 1.0), (3, 0.2, 0.3)] {
            let (x, y) = (cloud(200, dim, 0.0, 3), cloud(200, dim, shift, 4));
            let lattice = lattice(&x, &y, epsilon, 0.1);
            let map = lattice_map(&lattice);
            let cells = Cells::new(&x, &lattice);
            let f: Vec<f64> = (0..200).map(|i| f64::from(i).sin() * 3.0 / epsilon.sqrt()).collect();
            let mut stored = Stored::<f64>::new(Box::new(Mapped::new(&map, x.clone())));
            let mut separable = Separable::<f32>::new(&x, &lattice, &cells, 20.0);
            let (mut y, mut other) = (vec![0.0; lattice.rank()], vec![0.0; lattice.nodes()]);
            stored.message(&f, &mut y);
            separable.message(&cells.sorted(&f), &mut other);
            for (exact, found) in y.iter().zip(&other) {
                assert!((exact - found).abs() <= 1e-11 * exact.abs().max(1.0), "{exact} {found}");
            }
        }
    }
}
