//! Small products of a few rows with many columns, and their exponentials while they are in the first-level cache: what
//! sums over all pairs of points are made of.

use std::sync::OnceLock;

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::log::ln_f64;
use super::{Aligned, Float, dispatch, dispatch_wide, fused};

/// Columns of a tile: a panel. With [`TILE_ROWS`] rows it stays in the first-level cache in any number of axes.
pub(crate) const PANEL: usize = 64;
/// Rows of a tile: with two vectors of each, what fits in the registers.
pub(crate) const TILE_ROWS: usize = 4;
/// Widths of panels are multiples of this, the numbers in two vectors of single precision.
pub(crate) const PANEL_STEP: usize = 16;

/// Columns that are packed together, a cache line of them.
const fn line<T>() -> usize {
    64 / size_of::<T>()
}

/// The columns of a matrix, packed for products with a few rows at a time: for each line of columns, coordinate by
/// coordinate.
#[derive(Debug)]
pub(crate) struct Panels<T> {
    dim: usize,
    columns: usize,
    data: Aligned<T>,
}

impl<T: Float> Panels<T> {
    /// With `entry(k, c)` as coordinate `c` of column `k`.
    pub(crate) fn new(
        dim: usize,
        columns: usize,
        entry: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Self {
        let padded = columns.next_multiple_of(PANEL_STEP);
        let mut data = Aligned::zeros(dim * padded);
        data.par_chunks_mut(dim * line::<T>()).enumerate().for_each(|(l, packed)| {
            for (c, packed) in packed.chunks_exact_mut(line::<T>()).enumerate() {
                let columns = l * line::<T>()..columns;
                for (out, k) in packed.iter_mut().zip(columns) {
                    *out = T::from_f64(entry(k, c));
                }
            }
        });
        Panels { dim, columns, data }
    }

    /// `out[r][k] = start[k] + sum_c x[c][r] M[c][k]` for the columns of a panel, as many as `start` has, and
    /// [`TILE_ROWS`] rows, packed coordinate by coordinate.
    pub(crate) fn products(&self, x: &[T], panel: usize, start: &[T], out: &mut [T]) {
        let columns = panel * PANEL * self.dim..(panel * PANEL + start.len()) * self.dim;
        let (panel, scale) = (&self.data[columns], T::ZERO);
        dispatch_wide(Sums::<T, PRODUCTS> { x, dim: self.dim, panel, start, scale, out });
    }

    /// `out[r][k] = start[k] + scale ||x_r - M_k||`, otherwise as [`Panels::products`].
    pub(crate) fn distances(
        &self,
        (norm, scale): (Norm, f64),
        x: &[T],
        panel: usize,
        start: &[T],
        out: &mut [T],
    ) {
        let columns = panel * PANEL * self.dim..(panel * PANEL + start.len()) * self.dim;
        let (dim, panel, one) = (self.dim, &self.data[columns], T::from_f64(scale));
        match norm {
            Norm::L1 => {
                dispatch_wide(Sums::<T, LENGTHS> { x, dim, panel, start, scale: one, out });
            }
            Norm::L2 => {
                dispatch_wide(Sums::<T, SQUARES> { x, dim, panel, start, scale: one, out });
            }
            Norm::Lp(p) => dispatch_wide(Powers { x, dim, panel, start, p, scale, out }),
        }
    }
}

/// Columns in double precision, and in single precision once somebody asks for that.
#[derive(Debug)]
pub(crate) struct BothPanels {
    double: Panels<f64>,
    single: OnceLock<Panels<f32>>,
}

impl BothPanels {
    pub(crate) fn new(
        dim: usize,
        columns: usize,
        entry: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Self {
        BothPanels { double: Panels::new(dim, columns, entry), single: OnceLock::new() }
    }

    /// Makes the panels in single precision. To be called before a pass: threads of one must not wait for each other.
    pub(crate) fn prepare_single(&self) {
        let _: &Panels<f32> = self.panels();
    }
}

/// The panels of a precision.
pub(crate) trait In<T> {
    fn panels(&self) -> &Panels<T>;
}

impl In<f64> for BothPanels {
    fn panels(&self) -> &Panels<f64> {
        &self.double
    }
}

impl In<f32> for BothPanels {
    fn panels(&self) -> &Panels<f32> {
        self.single.get_or_init(|| self.double.rounded())
    }
}

/// A distance that is no squared one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Norm {
    L1,
    L2,
    /// With an exponent of at least 1.
    Lp(f64),
}

impl Panels<f64> {
    /// The same columns in single precision.
    fn rounded(&self) -> Panels<f32> {
        let dim = self.dim;
        let line = line::<f64>();
        let entry = |k: usize, c: usize| self.data[(k / line * dim + c) * line + k % line];
        Panels::new(dim, self.columns, entry)
    }
}

/// What is summed over coordinates: products, lengths of differences, or their squares.
const PRODUCTS: u8 = 0;
const LENGTHS: u8 = 1;
const SQUARES: u8 = 2;

struct Sums<'a, T, const OF: u8> {
    x: &'a [T],
    dim: usize,
    panel: &'a [T],
    start: &'a [T],
    /// Of distances.
    scale: T,
    out: &'a mut [T],
}

impl<T: Float, const OF: u8> WithSimd for Sums<'_, T, OF> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Vectors of a line, those of it that are computed together, and lines of which that is done.
        match 64 / size_of::<T::Vector<S>>() {
            1 => self.run::<S, 1, 1, 4>(simd),
            2 => self.run::<S, 2, 2, 1>(simd),
            4 => self.run::<S, 4, 4, 1>(simd),
            8 => self.run::<S, 8, 4, 1>(simd),
            _ => self.run::<S, 16, 4, 1>(simd),
        }
    }
}

impl<T: Float, const OF: u8> Sums<'_, T, OF> {
    #[inline(always)]
    fn run<S: Simd, const LINE: usize, const W: usize, const G: usize>(mut self, simd: S) {
        let lines = T::vectors::<S>(self.start).len() / LINE;
        let mut l = 0;
        while l + G <= lines {
            self.lines::<S, LINE, W, G>(simd, l);
            l += G;
        }
        while l < lines {
            self.lines::<S, LINE, W, 1>(simd, l);
            l += 1;
        }
    }

    /// The columns of some lines, from the one of a number on.
    #[inline(always)]
    fn lines<S: Simd, const LINE: usize, const W: usize, const G: usize>(
        &mut self,
        simd: S,
        first: usize,
    ) {
        let dim = self.dim;
        let start = T::vectors::<S>(self.start);
        let out = T::vectors_mut::<S>(self.out);
        let width = start.len();
        let (x, _) = self.x.as_chunks::<TILE_ROWS>();
        let (panel, _) = T::vectors::<S>(self.panel).as_chunks::<LINE>();
        let lines = &panel[first * dim..(first + G) * dim];
        for v0 in (0..LINE).step_by(W) {
            // No closures here: they would not inherit the instruction set.
            let mut acc = [[[T::splat(simd, T::ZERO); W]; G]; TILE_ROWS];
            if OF == PRODUCTS {
                for acc in &mut acc {
                    for (g, acc) in acc.iter_mut().enumerate() {
                        let k = (first + g) * LINE + v0;
                        acc.copy_from_slice(&start[k..k + W]);
                    }
                }
            }
            for (c, x) in x.iter().enumerate().take(dim) {
                for g in 0..G {
                    let m = &lines[g * dim + c];
                    for r in 0..TILE_ROWS {
                        let x = T::splat(simd, x[r]);
                        for v in 0..W {
                            let (m, sum) = (m[v0 + v], acc[r][g][v]);
                            acc[r][g][v] = if OF == PRODUCTS {
                                T::mul_add(simd, x, m, sum)
                            } else {
                                let apart = T::sub(simd, x, m);
                                if OF == LENGTHS {
                                    T::add(simd, T::abs(simd, apart), sum)
                                } else {
                                    T::mul_add(simd, apart, apart, sum)
                                }
                            };
                        }
                    }
                }
            }
            if OF != PRODUCTS {
                let scale = T::splat(simd, self.scale);
                for acc in &mut acc {
                    for (g, acc) in acc.iter_mut().enumerate() {
                        let start = &start[(first + g) * LINE + v0..];
                        for v in 0..W {
                            let sum = acc[v];
                            let length = if OF == SQUARES { T::sqrt(simd, sum) } else { sum };
                            acc[v] = T::mul_add(simd, scale, length, start[v]);
                        }
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                for (g, acc) in acc.iter().enumerate() {
                    let k = r * width + (first + g) * LINE + v0;
                    out[k..k + W].copy_from_slice(acc);
                }
            }
        }
    }
}

/// Distances by powers of differences, relative to the largest of them, so that none leaves the range of the numbers.
struct Powers<'a, T> {
    x: &'a [T],
    dim: usize,
    panel: &'a [T],
    start: &'a [T],
    p: f64,
    scale: f64,
    out: &'a mut [T],
}

impl<T: Float> WithSimd for Powers<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match (fused::<S>(), line::<T>()) {
            (true, 8) => self.run::<true, 8>(),
            (true, _) => self.run::<true, 16>(),
            (false, 8) => self.run::<false, 8>(),
            (false, _) => self.run::<false, 16>(),
        }
    }
}

impl<T: Float> Powers<'_, T> {
    #[inline(always)]
    fn run<const FMA: bool, const LINE: usize>(self) {
        let Powers { x, dim, panel, start, p, scale, out } = self;
        let width = start.len();
        for (l, (panel, start)) in
            panel.chunks_exact(dim * LINE).zip(start.chunks_exact(LINE)).enumerate()
        {
            let (columns, _) = panel.as_chunks::<LINE>();
            for r in 0..TILE_ROWS {
                let mut tops = [0.0_f64; LINE];
                for (x, column) in x.chunks_exact(TILE_ROWS).zip(columns) {
                    let x = x[r].to_f64();
                    for (top, y) in tops.iter_mut().zip(column) {
                        *top = top.max((x - y.to_f64()).abs());
                    }
                }
                let mut logs = [0.0_f64; LINE];
                for (log, top) in logs.iter_mut().zip(&tops) {
                    *log = ln_f64::<FMA>(if *top > 0.0 { *top } else { 1.0 });
                }
                let mut sums = [0.0_f64; LINE];
                for (x, column) in x.chunks_exact(TILE_ROWS).zip(columns) {
                    let x = x[r].to_f64();
                    for ((sum, log), y) in sums.iter_mut().zip(&logs).zip(column) {
                        let apart = (x - y.to_f64()).abs();
                        let is_zero = apart == 0.0;
                        let ratio = ln_f64::<FMA>(if is_zero { 1.0 } else { apart }) - log;
                        let power = f64::exp_nonpositive::<FMA>((p * ratio).min(0.0));
                        *sum += if is_zero { 0.0 } else { power };
                    }
                }
                let out = &mut out[r * width + l * LINE..][..LINE];
                for ((out, start), (sum, top)) in
                    out.iter_mut().zip(start).zip(sums.iter().zip(&tops))
                {
                    // The largest of the terms is 1.
                    let root = f64::exp_near::<FMA>(ln_f64::<FMA>(sum.max(1.0)) / p);
                    *out = T::from_f64(start.to_f64() + scale * top * root);
                }
            }
        }
    }
}

/// The largest entry of each row of a tile, and the sum of the exponentials relative to it, which go to `out`. Rows are
/// `out.len() / tops.len()` numbers. A row of minus infinities has no exponentials.
pub(crate) fn exp_tile<T: Float>(logs: &[T], out: &mut [T], tops: &mut [f64], sums: &mut [f64]) {
    dispatch_wide(ExpTile { logs, out, tops, sums });
}

struct ExpTile<'a, T> {
    logs: &'a [T],
    out: &'a mut [T],
    tops: &'a mut [f64],
    sums: &'a mut [f64],
}

impl<T: Float> WithSimd for ExpTile<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if fused::<S>() { self.run::<S, true>(simd) } else { self.run::<S, false>(simd) }
    }
}

impl<T: Float> ExpTile<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const FMA: bool>(self, simd: S) {
        let ExpTile { logs, out, tops, sums } = self;
        let width = out.len() / tops.len();
        let rows = logs.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for (((logs, out), top), sum) in rows.zip(tops).zip(sums) {
            // Loops of a length that the compiler knows, where that is the usual one.
            if let Ok(logs) = <&[T; PANEL]>::try_from(logs)
                && let Ok(out) = <&mut [T; PANEL]>::try_from(&mut *out)
            {
                (*top, *sum) = exp_row_of_tile::<S, T, FMA>(simd, logs, out);
            } else {
                (*top, *sum) = exp_row_of_tile::<S, T, FMA>(simd, logs, out);
            }
        }
    }
}

/// The largest entry, and the sum of the exponentials relative to it.
#[inline(always)]
fn exp_row_of_tile<S: Simd, T: Float, const FMA: bool>(
    simd: S,
    logs: &[T],
    out: &mut [T],
) -> (f64, f64) {
    let vectors = T::vectors::<S>(logs);
    let mut most = [vectors[0]; 2];
    for pair in vectors.chunks(2) {
        for (most, v) in most.iter_mut().zip(pair) {
            *most = T::max(simd, *most, *v);
        }
    }
    let largest = T::reduce_max(simd, T::max(simd, most[0], most[1]));
    let top = largest.to_f64();
    if top == f64::NEG_INFINITY {
        out.fill(T::ZERO);
        return (top, 0.0);
    }
    for (out, log) in out.iter_mut().zip(logs) {
        *out = T::exp_nonpositive::<FMA>(T::minus(*log, largest));
    }
    // As many sums at a time on every instruction set, a cache line of them, so that bits do not depend on it.
    let together = (64 / size_of::<T::Vector<S>>()).min(2);
    let mut parts = [T::splat(simd, T::ZERO); 2];
    for pair in T::vectors::<S>(out).chunks(together) {
        for (part, v) in parts.iter_mut().zip(pair) {
            *part = T::add(simd, *part, *v);
        }
    }
    (top, T::sum(simd, T::add(simd, parts[0], parts[1])).to_f64())
}

/// Puts the panels of a row together, each with its largest term and the sum of the exponentials relative to it: the largest
/// term of all, and the sum relative to that. Terms become the factors by which the sums count.
pub(crate) fn join_panels(tops: &mut [f64], sums: &[f64]) -> (f64, f64) {
    let top = tops.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        tops.fill(0.0);
        return (top, 0.0);
    }
    dispatch(Join { tops, top });
    (top, tops.iter().zip(sums).map(|(factor, sum)| factor * sum).sum())
}

struct Join<'a> {
    tops: &'a mut [f64],
    top: f64,
}

impl WithSimd for Join<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if fused::<S>() { self.run::<true>() } else { self.run::<false>() }
    }
}

impl Join<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for t in self.tops {
            *t = f64::exp_nonpositive::<FMA>(*t - self.top);
        }
    }
}

/// `sums_k += sum_r weights_r rows[r][k]`, of rows that are `width` numbers apart.
pub(crate) fn add_rows<T: Float>(rows: &[T], width: usize, weights: &[f64], sums: &mut [f64]) {
    dispatch_wide(AddWeighted { rows, width, weights, sums });
}

struct AddWeighted<'a, T> {
    rows: &'a [T],
    width: usize,
    weights: &'a [f64],
    sums: &'a mut [f64],
}

impl<T: Float> WithSimd for AddWeighted<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if fused::<S>() { self.run::<true>() } else { self.run::<false>() }
    }
}

impl<T: Float> AddWeighted<'_, T> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        // So many columns at a time that their sums stay in registers.
        const STEP: usize = 16;
        let AddWeighted { rows, width, weights, sums } = self;
        for (start, sums) in (0..width).step_by(STEP).zip(sums.chunks_mut(STEP)) {
            let mut total = [0.0; STEP];
            for (row, w) in rows.chunks_exact(width).zip(weights) {
                let row = &row[start..start + STEP];
                for (total, x) in total.iter_mut().zip(row) {
                    let x = x.to_f64();
                    *total = if FMA { x.mul_add(*w, *total) } else { *total + x * w };
                }
            }
            for (sum, total) in sums.iter_mut().zip(total) {
                *sum += total;
            }
        }
    }
}

/// `sum_k exps_k (logs_k - z_k)` over the entries that carry mass.
pub(crate) fn mean_log<T: Float>(exps: &[T], logs: &[T], z: &[f64]) -> f64 {
    let of = |((e, l), z): ((&T, &T), &f64)| {
        let e = e.to_f64();
        // A zero of the kernel carries no mass.
        if e > 0.0 { e * (l.to_f64() - z) } else { 0.0 }
    };
    exps.iter().zip(logs).zip(z).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::simd::run_baseline;

    /// Distances against their formulas, where points are equal, and where powers leave the range of the numbers.
    fn check_distances<T: Float>(tolerance: f64) {
        for (dim, columns) in [(1, 3), (3, 64), (28, 150)] {
            let entry = |k: usize, c: usize| {
                let far = if k == 1 { 1e-3 } else { 1.0 };
                T::from_f64(far * ((k * 7 + c * 3) as f64 * 0.37).sin()).to_f64()
            };
            let panels = Panels::<T>::new(dim, columns, entry);
            // The first row is the first column.
            let x: Vec<T> = (0..dim * TILE_ROWS)
                .map(|i| match i % TILE_ROWS {
                    0 => T::from_f64(entry(0, i / TILE_ROWS)),
                    _ => T::from_f64((i as f64 * 0.7).cos()),
                })
                .collect();
            for (norm, p) in [
                (Norm::L1, 1.0),
                (Norm::L2, 2.0),
                (Norm::Lp(1.0), 1.0),
                (Norm::Lp(2.5), 2.5),
                (Norm::Lp(400.0), 400.0),
            ] {
                for panel in 0..columns.div_ceil(PANEL) {
                    let first = panel * PANEL;
                    let width = PANEL.min(columns.next_multiple_of(PANEL_STEP) - first);
                    let mut start = Aligned::zeros(width);
                    for (k, s) in start.iter_mut().enumerate() {
                        *s = T::from_f64(k as f64 * 0.1);
                    }
                    let (mut fast, mut baseline) =
                        (Aligned::zeros(TILE_ROWS * width), Aligned::zeros(TILE_ROWS * width));
                    panels.distances((norm, -0.75), &x, panel, &start, &mut fast);
                    let (x, start) = (&x[..], &start[..]);
                    let (out, scale) = (&mut baseline[..], T::from_f64(-0.75));
                    let panel = &panels.data[first * dim..(first + width) * dim];
                    match norm {
                        Norm::L1 => {
                            run_baseline(Sums::<T, LENGTHS> { x, dim, panel, start, scale, out });
                        }
                        Norm::L2 => {
                            run_baseline(Sums::<T, SQUARES> { x, dim, panel, start, scale, out });
                        }
                        Norm::Lp(p) => {
                            run_baseline(Powers { x, dim, panel, start, p, scale: -0.75, out });
                        }
                    }
                    for (r, k) in (0..TILE_ROWS).flat_map(|r| (0..width).map(move |k| (r, k))) {
                        if first + k >= columns {
                            continue;
                        }
                        let apart = (0..dim)
                            .map(|c| (x[c * TILE_ROWS + r].to_f64() - entry(first + k, c)).abs());
                        let top = apart.clone().fold(0.0, f64::max);
                        let sum: f64 = apart.map(|d| (d / top).powf(p)).sum();
                        let length = if top > 0.0 { top * sum.powf(1.0 / p) } else { 0.0 };
                        let exact = start[k].to_f64() - 0.75 * length;
                        for out in [&fast, &baseline] {
                            let out = out[r * width + k].to_f64();
                            let off = (out - exact).abs();
                            assert!(off <= tolerance * (1.0 + length), "{norm:?}: {out} {exact}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn distances_are_those_of_their_formulas() {
        check_distances::<f64>(1e-14);
        check_distances::<f32>(1e-6);
    }

    fn check<T: Float>(tolerance: f64) {
        for (dim, columns) in [(1, 3), (2, 64), (5, 100), (28, 150), (50, 16)] {
            let entry = |k: usize, c: usize| ((k * 7 + c * 3) as f64 * 0.37).sin();
            let panels = Panels::<T>::new(dim, columns, entry);
            let x: Vec<T> =
                (0..dim * TILE_ROWS).map(|i| T::from_f64((i as f64 * 0.7).cos())).collect();
            let padded = columns.next_multiple_of(PANEL_STEP);
            let mut sums = vec![0.5; padded];
            let mut exact_sums = vec![0.5; padded];
            for panel in 0..padded.div_ceil(PANEL) {
                let first = panel * PANEL;
                let width = PANEL.min(padded - first);
                let mut start = Aligned::zeros(width);
                for (k, s) in start.iter_mut().enumerate() {
                    let inside = first + k < columns;
                    *s = T::from_f64(if inside { k as f64 * 0.1 } else { f64::NEG_INFINITY });
                }
                let (mut fast, mut baseline) =
                    (Aligned::zeros(TILE_ROWS * width), Aligned::zeros(TILE_ROWS * width));
                panels.products(&x, panel, &start, &mut fast);
                let own = first * dim..(first + width) * dim;
                let panel = &panels.data[own];
                run_baseline(Sums::<T, PRODUCTS> {
                    x: &x,
                    dim,
                    panel,
                    start: &start,
                    scale: T::ZERO,
                    out: &mut baseline,
                });
                for (r, k) in (0..TILE_ROWS).flat_map(|r| (0..width).map(move |k| (r, k))) {
                    let exact = start[k].to_f64()
                        + (0..dim)
                            .map(|c| x[c * TILE_ROWS + r].to_f64() * entry(first + k, c))
                            .sum::<f64>();
                    for out in [&fast, &baseline] {
                        let out = out[r * width + k].to_f64();
                        assert!(out == exact || (out - exact).abs() < tolerance, "{out} {exact}");
                    }
                }
                let mut exps = Aligned::zeros(TILE_ROWS * width);
                let (mut tops, mut totals) = ([0.0; TILE_ROWS], [0.0; TILE_ROWS]);
                exp_tile(&fast, &mut exps, &mut tops, &mut totals);
                let (mut again, mut tops_again, mut totals_again) =
                    (Aligned::zeros(TILE_ROWS * width), [0.0; TILE_ROWS], [0.0; TILE_ROWS]);
                run_baseline(ExpTile {
                    logs: &fast,
                    out: &mut again,
                    tops: &mut tops_again,
                    sums: &mut totals_again,
                });
                let weights = [0.3, 1e-3, 2.0, 0.7];
                for r in 0..TILE_ROWS {
                    let row = &fast[r * width..(r + 1) * width];
                    let top = row.iter().map(|v| v.to_f64()).fold(f64::NEG_INFINITY, f64::max);
                    assert_eq!([tops[r], tops_again[r]], [top; 2]);
                    let mut sum = 0.0;
                    for (k, log) in row.iter().enumerate() {
                        let e = (log.to_f64() - top).exp();
                        sum += e;
                        exact_sums[first + k] += weights[r] * e;
                        assert!((exps[r * width + k].to_f64() - e).abs() < tolerance);
                        assert!((again[r * width + k].to_f64() - e).abs() < tolerance);
                    }
                    assert!((totals[r] / sum - 1.0).abs() < tolerance);
                    assert!((totals_again[r] / sum - 1.0).abs() < tolerance);
                }
                add_rows(&exps, width, &weights, &mut sums[first..first + width]);
            }
            for (sum, exact) in sums.iter().zip(&exact_sums) {
                assert!((sum / exact - 1.0).abs() < tolerance);
            }
        }
    }

    #[test]
    fn tiles_agree_with_scalar_loops_in_double_precision() {
        check::<f64>(1e-12);
    }

    #[test]
    fn tiles_agree_with_scalar_loops_in_single_precision() {
        check::<f32>(2e-5);
    }

    #[test]
    fn panels_are_put_together() {
        let (tops, sums) = ([-3.0, f64::NEG_INFINITY, 2.0, 1.5], [1.0, 0.0, 4.0, 2.0]);
        let mut factors = tops;
        let (top, sum) = join_panels(&mut factors, &sums);
        assert_eq!(top, 2.0);
        let exact: f64 = tops.iter().zip(sums).map(|(t, s)| (t - 2.0_f64).exp() * s).sum();
        assert!((sum / exact - 1.0).abs() < 1e-15);
        for (factor, t) in factors.iter().zip(tops) {
            assert!((factor - (t - 2.0_f64).exp()).abs() < 1e-15);
        }
        let mut nothing = [f64::NEG_INFINITY; 3];
        assert_eq!(join_panels(&mut nothing, &[0.0; 3]), (f64::NEG_INFINITY, 0.0));
        assert_eq!(nothing, [0.0; 3]);
    }

    #[test]
    fn rows_of_nothing_have_no_exponentials() {
        let logs = [f64::NEG_INFINITY; PANEL_STEP];
        let (mut out, mut top, mut sum) = ([1.0; PANEL_STEP], [0.0], [1.0]);
        exp_tile(&logs, &mut out, &mut top, &mut sum);
        assert_eq!((top[0], sum[0], out), (f64::NEG_INFINITY, 0.0, [0.0; PANEL_STEP]));
    }
}
