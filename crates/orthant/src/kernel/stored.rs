//! A side whose features are stored, scaled so that all arithmetic is of order one.
//!
//! With `z0` a recent message, the side keeps
//!
//! ```text
//! A_ik = exp(L_ik + z0_k - s_i),   s_i = max_k (L_ik + z0_k)
//! ```
//!
//! and works with the message `z` by `w_k = exp(z_k - z0_k)`:
//!
//! ```text
//! sum_k exp(L_ik + z_k) = e^{s_i} A_i . w
//! u_i = a_i / (A_i . w)  (times e^{-s_i}, kept apart),    y_k = log sum_i u_i A_ik - z0_k
//! ```
//!
//! which is one pass over `A` and no exponential in it. When `z` has drifted too far from `z0`, the
//! features are stored anew around it (absorption), so that this holds at any epsilon. An entry of
//! `A` that is flushed to zero could not have changed a sum. A feature `k` that is flushed for every
//! point sends no message (minus infinity): if that is new, the other side is stored anew around the
//! exact message; if its reference for `k` was as faint, it keeps it.

use std::time::Instant;

use rayon::prelude::*;

use super::recomputed::fill_lost;
use super::target::{Step, Tally};
use super::{
    Builds, Conditional, Coordinates, DRAW_ROUNDS, ExactHalf, HalfKernel, LogPass, Mixed, Open,
    Ordered, Relaxed, Waiting,
};
use crate::comm::{BLOCK, Partition, Span};
use crate::error::{Error, Result};
use crate::numerics::ExactSums;
use crate::numerics::simd::{self, Aligned, Float};
use crate::rows::LogRows;
use crate::words::Side;

/// Stored features of one cloud. See the [module](self).
pub(crate) struct Stored<'a, T> {
    source: Box<dyn LogRows + 'a>,
    partition: Partition,
    pass: LogPass,
    /// `A`, `rows x stride`; empty until the first message.
    features: Aligned<T>,
    /// `s_i`.
    scale: Vec<f64>,
    /// `u_i e^{s_i}`, or its logarithm where `logs` is set.
    factors: Vec<f64>,
    logs: bool,
    /// `z0`, padded.
    reference: Vec<f64>,
    /// Entries of the reference that carried no mass when they became it.
    absent: Vec<bool>,
    /// `w`, padded.
    w: Aligned<T>,
    /// For each chunk: sums of a block in storage precision, sums in double precision, the error.
    block: Aligned<T>,
    sums: Vec<f64>,
    errors: Vec<f64>,
    tallies: Vec<f64>,
    message_sums: ExactSums,
    total: Vec<f64>,
    f: Vec<f64>,
    /// The constant of relaxed updates: see [`Step::level`].
    level: f64,
    builds: Builds,
    /// Whether the features of an earlier solve are to be used as they are.
    rested: bool,
}

/// What the features of a side are stored around. They are a function of it, whatever came before.
#[derive(Debug, Clone)]
pub(crate) struct ReferenceMessage {
    reference: Vec<f64>,
    absent: Vec<bool>,
}

/// Chunks at most: enough to keep many cores busy.
const STORED_CHUNKS: usize = 128;

impl<'a, T: Float> Stored<'a, T> {
    pub(crate) fn new(source: Box<dyn LogRows + 'a>) -> Self {
        let rows = source.rows();
        let partition = Partition::new(source.span(), STORED_CHUNKS);
        let pass = LogPass::new(&*source, partition.clone());
        let (stride, chunks) = (pass.stride(), partition.count());
        Stored {
            partition,
            pass,
            features: Aligned::zeros(0),
            scale: vec![0.0; rows],
            factors: vec![f64::NEG_INFINITY; rows],
            logs: true,
            reference: vec![0.0; stride],
            absent: vec![false; stride],
            w: Aligned::zeros(stride),
            block: Aligned::zeros(chunks * stride),
            sums: vec![0.0; chunks * stride],
            errors: vec![0.0; chunks],
            tallies: vec![0.0; chunks * Tally::LEN],
            message_sums: ExactSums::new(stride),
            total: vec![0.0; stride],
            f: vec![0.0; rows],
            level: 0.0,
            builds: Builds::default(),
            rested: false,
            source,
        }
    }

    /// What the features are stored around now.
    pub(crate) fn reference_message(&self) -> ReferenceMessage {
        ReferenceMessage { reference: self.reference.clone(), absent: self.absent.clone() }
    }

    /// Makes the side one that has its features, stored around `rest`, and no other past: whether they are there
    /// already or not, what it does next is the same to the last bit.
    pub(crate) fn return_to(&mut self, rest: &ReferenceMessage) -> Result<()> {
        self.builds = Builds::default();
        if self.features.is_empty() || self.reference != rest.reference {
            self.rebuild(&rest.reference[..self.source.rank()])?;
        }
        self.absent.copy_from_slice(&rest.absent);
        self.factors.fill(f64::NEG_INFINITY);
        self.logs = true;
        self.level = 0.0;
        self.message_sums.forget();
        self.rested = true;
        Ok(())
    }

    /// Sets `w`; a feature that sends no message keeps its reference.
    fn load(&mut self, z: &[f64]) {
        for ((w, z), z0) in self.w.iter_mut().zip(z).zip(&self.reference) {
            *w = T::from_f64(if *z > f64::NEG_INFINITY { (z - z0).exp() } else { 1.0 });
        }
    }

    /// One pass. The new factor of a row is `next(old factor, a_i, A_i . w)`, or, where only its
    /// logarithm is known, `next_from_log(log of the old factor, a_i, A_i . w)`.
    fn half_step(
        &mut self,
        z: &[f64],
        a: &[f64],
        y: &mut [f64],
        next: impl Fn(f64, f64, f64) -> f64 + Sync,
        next_from_log: impl Fn(f64, f64, f64) -> f64 + Sync,
    ) -> Result<f64> {
        self.load(z);
        let (stride, chunk) = (self.pass.stride(), self.partition.chunk());
        let (w, logs) = (&self.w[..], self.logs);
        (
            self.features.par_chunks(chunk * stride),
            self.factors.par_chunks_mut(chunk),
            a.par_chunks(chunk),
            self.block.par_chunks_mut(stride),
            self.sums.par_chunks_mut(stride),
            self.errors.par_iter_mut(),
        )
            .into_par_iter()
            // Every chunk is up for grabs: two threads end together.
            .with_max_len(1)
            .for_each(|(features, factors, a, block, sums, error)| {
                sums.fill(0.0);
                *error = 0.0;
                for ((features, factors), a) in features
                    .chunks(BLOCK * stride)
                    .zip(factors.chunks_mut(BLOCK))
                    .zip(a.chunks(BLOCK))
                {
                    block.fill(T::ZERO);
                    // Relative to the largest weight, so that small weights keep their digits in
                    // single precision.
                    let top = simd::largest(a).max(1e-280);
                    let per_top = 1.0 / top;
                    simd::fused_block(features, w, block, |i, s| {
                        let (old, new) = if logs {
                            (factors[i].exp(), next_from_log(factors[i], a[i], s))
                        } else {
                            (factors[i], next(factors[i], a[i], s))
                        };
                        *error += (old * s - a[i]).abs();
                        factors[i] = new;
                        T::from_f64(new * per_top)
                    });
                    simd::accumulate(block, top, sums);
                }
            });
        self.logs = false;
        self.send(y);
        if let Some(sum) = self.total.iter().find(|s| !s.is_finite()) {
            let row = self.factors.iter().position(|u| !u.is_finite()).unwrap_or(0);
            return Err(Self::breakdown(row, *sum));
        }
        Ok(self.partition.span().sum_few::<1>(&self.errors)[0])
    }

    /// Adds the sums of all chunks and turns them into a message.
    fn send(&mut self, y: &mut [f64]) {
        self.partition.span().sum_again(&mut self.message_sums, &self.sums, &mut self.total);
        // Columns whose entries were all flushed, or might have been but for a few.
        let lost = (T::FLUSH + 6.0).exp();
        for ((y, sum), z0) in y.iter_mut().zip(&self.total).zip(&self.reference) {
            *y = if *sum > lost { sum.ln() - z0 } else { f64::NEG_INFINITY };
        }
    }

    /// One half of an iteration where the marginal is relaxed. Points may be as faint as they like, so
    /// factors stay logarithms here.
    fn relaxed_step(
        &mut self,
        z: &[f64],
        relaxed: Relaxed<'_>,
        y: &mut [f64],
        average: bool,
    ) -> Result<f64> {
        self.load(z);
        self.take_logs();
        let step = Step { relaxed, level: self.level, average };
        let (stride, chunk, w) = (self.pass.stride(), self.partition.chunk(), &self.w[..]);
        (
            self.features.par_chunks(chunk * stride),
            self.factors.par_chunks_mut(chunk),
            self.scale.par_chunks(chunk),
            self.block.par_chunks_mut(stride),
            self.sums.par_chunks_mut(stride),
            self.tallies.par_chunks_mut(Tally::LEN),
        )
            .into_par_iter()
            .enumerate()
            .with_max_len(1)
            .for_each(|(c, (features, factors, scale, block, sums, share))| {
                sums.fill(0.0);
                let mut tally = Tally::default();
                let mut first = c * chunk;
                for ((features, factors), scale) in features
                    .chunks(BLOCK * stride)
                    .zip(factors.chunks_mut(BLOCK))
                    .zip(scale.chunks(BLOCK))
                {
                    block.fill(T::ZERO);
                    simd::fused_block(features, w, block, |i, s| {
                        let (factor, new) =
                            step.row(first + i, factors[i], s, scale[i], &mut tally);
                        factors[i] = new;
                        T::from_f64(factor)
                    });
                    simd::accumulate(block, 1.0, sums);
                    first += BLOCK;
                }
                tally.store(share);
            });
        self.send(y);
        let tally = Tally::total(&self.tallies, self.partition.span());
        let near = tally.log_mass(T::DRIFT).filter(|_| self.total.iter().all(|s| s.is_finite()));
        let log_mass = match near {
            Some(log_mass) => log_mass,
            None => self.relaxed_mass(z, relaxed)?,
        };
        self.level -= log_mass;
        let change = step.share() * log_mass;
        for u in &mut self.factors {
            *u -= change;
        }
        if near.is_some() {
            for y in y {
                *y -= change;
            }
        } else {
            self.exact_message(y);
        }
        Ok(tally.error())
    }

    /// Keeps the factors as logarithms from now on.
    fn take_logs(&mut self) {
        if !self.logs {
            for u in &mut self.factors {
                *u = u.ln();
            }
            self.logs = true;
        }
    }

    /// The logarithm of the mass that a relaxed marginal gets, where it is out of range.
    fn relaxed_mass(&mut self, z: &[f64], relaxed: Relaxed<'_>) -> Result<f64> {
        if let Some(i) = self.factors.iter().position(|u| !u.is_finite()) {
            return Err(Self::breakdown(i, self.factors[i]));
        }
        let mut s = std::mem::take(&mut self.f);
        let applied = self.log_apply(z, &mut s);
        let log_mass = relaxed.log_mass(&s, self.source.span()) + self.level;
        self.f = s;
        applied.map(|()| log_mass)
    }

    /// The message of `u`, by an exact pass.
    fn exact_message(&mut self, y: &mut [f64]) {
        let begun = Instant::now();
        let mut f = std::mem::take(&mut self.f);
        self.potential(&mut f);
        self.pass.column_sums(&*self.source, &f, y);
        self.f = f;
        self.builds.count += 1;
        self.builds.time += begun.elapsed();
    }

    /// [`HalfKernel::average`] in logarithms, by exact passes.
    fn average_logs(&mut self, z: &[f64], a: &[f64], y: &mut [f64]) -> f64 {
        let mut f = std::mem::take(&mut self.f);
        self.potential(&mut f);
        self.total[..z.len()].copy_from_slice(z);
        self.pass.row_sums::<f64>(&*self.source, &self.total, &mut self.factors);
        let s = &self.factors;
        let error = self.source.span().sum(|i| ((f[i] + s[i]).exp() - a[i]).abs());
        for ((f, s), a) in f.iter_mut().zip(s).zip(a) {
            *f = 0.5 * (*f + a.ln() - s);
        }
        self.pass.column_sums(&*self.source, &f, y);
        self.set_potential(&f);
        self.f = f;
        error
    }

    fn breakdown(row: usize, value: f64) -> Error {
        Error::Breakdown { iteration: 0, row: row + 1, value, remedy: T::REMEDY, cloud: Side::X }
    }

    /// [`HalfKernel::exchange`], which never fails.
    fn exchange_sums(&mut self, z: &[f64], out: &mut [f64], y: &mut [f64]) {
        self.load(z);
        self.take_logs();
        // Factors of sum 1, whatever the mass of the plan.
        let level = self.source.span().log_sum(|i| self.factors[i]);
        let (stride, chunk, w) = (self.pass.stride(), self.partition.chunk(), &self.w[..]);
        (
            self.features.par_chunks(chunk * stride),
            self.factors.par_chunks(chunk),
            self.scale.par_chunks(chunk),
            out.par_chunks_mut(chunk),
            self.block.par_chunks_mut(stride),
            self.sums.par_chunks_mut(stride),
        )
            .into_par_iter()
            .with_max_len(1)
            .for_each(|(features, factors, scale, out, block, sums)| {
                sums.fill(0.0);
                for (((features, factors), scale), out) in features
                    .chunks(BLOCK * stride)
                    .zip(factors.chunks(BLOCK))
                    .zip(scale.chunks(BLOCK))
                    .zip(out.chunks_mut(BLOCK))
                {
                    block.fill(T::ZERO);
                    let top = factors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    simd::fused_block(features, w, block, |i, s| {
                        out[i] = scale[i] + s.ln();
                        T::from_f64((factors[i] - top).exp())
                    });
                    simd::accumulate(block, (top - level).exp(), sums);
                }
            });
        self.send(y);
        for y in y {
            *y += level;
        }
    }

    /// `A`, row-major.
    pub(crate) fn features(&self) -> &[T] {
        &self.features
    }
}

/// Of the points by their factors as they are, with features as precise as they are stored.
impl<T: Float> Conditional for Stored<'_, T> {
    fn message(&mut self) -> Vec<f64> {
        let z = self.reference[..self.source.rank()].to_vec();
        let (mut out, mut y) = (vec![0.0; self.scale.len()], z.clone());
        self.exchange_sums(&z, &mut out, &mut y);
        y
    }

    fn chunk_sums(&self) -> (&[f64], usize) {
        (&self.sums, self.pass.stride())
    }

    fn find(&mut self, waiting: &mut [Vec<Waiting>]) {
        self.take_logs();
        let level = self.source.span().log_sum(|i| self.factors[i]);
        let (stride, chunk) = (self.pass.stride(), self.partition.chunk());
        (self.features.par_chunks(chunk * stride), self.factors.par_chunks(chunk), waiting)
            .into_par_iter()
            .enumerate()
            .with_max_len(1)
            .for_each(|(c, (features, factors, waiting))| {
                let mut open = Open::all(waiting);
                for _ in 0..DRAW_ROUNDS {
                    for (j, (row, log)) in features.chunks_exact(stride).zip(factors).enumerate() {
                        let factor = (log - level).exp();
                        for open in &mut open {
                            let mass = factor * row[open.feature].to_f64();
                            open.add(mass, c * chunk + j, waiting);
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

impl<T: Float> HalfKernel for Stored<'_, T> {
    fn span(&self) -> &Span {
        self.source.span()
    }

    fn rank(&self) -> usize {
        self.source.rank()
    }

    fn needs_rebuild(&mut self, z: &[f64]) -> bool {
        self.features.is_empty()
            || z.iter().zip(&self.reference).zip(&self.absent).any(|((z, z0), absent)| {
                if *z > f64::NEG_INFINITY { (z - z0).abs() > T::DRIFT } else { !absent }
            })
    }

    fn note_absent(&mut self, z: &[f64]) {
        for (absent, z) in self.absent.iter_mut().zip(z) {
            *absent = *z == f64::NEG_INFINITY;
        }
    }

    fn rebuild(&mut self, z: &[f64]) -> Result<()> {
        let begun = Instant::now();
        let stride = self.pass.stride();
        if self.features.is_empty() {
            self.features = Aligned::zeros(self.scale.len() * stride);
        }
        self.reference[..z.len()].copy_from_slice(z);
        // The factors as logarithms, so that the change of scale cannot overflow.
        for (u, s) in self.factors.iter_mut().zip(&self.scale) {
            *u = if self.logs { *u } else { u.ln() } - s;
        }
        self.logs = true;
        self.pass.scaled_exp(&*self.source, &self.reference, &mut self.features, &mut self.scale);
        if let Some(i) = self.scale.iter().position(|s| !s.is_finite()) {
            return Err(Self::breakdown(i, self.scale[i].exp()));
        }
        for (u, s) in self.factors.iter_mut().zip(&self.scale) {
            *u += s;
        }
        self.builds.count += 1;
        self.builds.time += begun.elapsed();
        Ok(())
    }

    fn update(&mut self, z: &[f64], a: Ordered<'_>, y: &mut [f64]) -> Result<f64> {
        let a = a.get();
        match a.relaxed {
            None => self.half_step(z, a.weights, y, |_, a, s| a / s, |_, a, s| a / s),
            Some(relaxed) => self.relaxed_step(z, relaxed, y, false),
        }
    }

    fn average(&mut self, z: &[f64], a: Ordered<'_>, y: &mut [f64]) -> Result<f64> {
        let a = a.get();
        if let Some(relaxed) = a.relaxed {
            return self.relaxed_step(z, relaxed, y, true);
        }
        let a = a.weights;
        // Far from the solution the old and the new factors are: their mean is taken in logarithms.
        let far = |(u, a): (&f64, &f64)| (u - a.ln()).abs() > T::FAR;
        if self.logs && self.source.span().any(self.factors.iter().zip(a).any(far)) {
            return Ok(self.average_logs(z, a, y));
        }
        self.half_step(
            z,
            a,
            y,
            |old, a, s| old.sqrt() * (a / s).sqrt(),
            |old, a, s| (0.5 * (old + (a / s).ln())).exp(),
        )
    }

    fn log_apply(&mut self, z: &[f64], out: &mut [f64]) -> Result<()> {
        self.load(z);
        let (stride, w) = (self.pass.stride(), &self.w[..]);
        (self.features.par_chunks(stride), &self.scale, out).into_par_iter().for_each(
            |(row, scale, out)| {
                *out = scale + simd::dot(row, w).ln();
            },
        );
        Ok(())
    }

    fn exchange(&mut self, z: &[f64], out: &mut [f64], y: &mut [f64]) -> Result<()> {
        self.exchange_sums(z, out, y);
        Ok(())
    }

    fn depth(&self) -> f64 {
        // What was flushed, for the whole cloud, stays far below the rounding of what a point so faint has.
        -0.4 * T::FLUSH
    }

    fn message(&mut self, f: &[f64], y: &mut [f64]) {
        self.pass.column_sums(&*self.source, f, y);
    }

    fn first_message(&mut self, f: &[f64], y: &mut [f64]) {
        if std::mem::take(&mut self.rested) {
            y.copy_from_slice(&Conditional::message(self));
        } else {
            HalfKernel::message(self, f, y);
        }
    }

    fn complete(&mut self, y: &mut [f64]) {
        if y.contains(&f64::NEG_INFINITY) {
            let mut f = std::mem::take(&mut self.f);
            self.potential(&mut f);
            self.pass.column_sums(&*self.source, &f, &mut self.total[..y.len()]);
            self.f = f;
            self.builds.count += 1;
            fill_lost(y, &self.total);
        }
    }

    fn set_potential(&mut self, f: &[f64]) {
        for ((u, f), s) in self.factors.iter_mut().zip(f).zip(&self.scale) {
            *u = f + s;
        }
        self.logs = true;
    }

    fn potential(&self, f: &mut [f64]) {
        for ((f, u), s) in f.iter_mut().zip(&self.factors).zip(&self.scale) {
            *f = if self.logs { *u } else { u.ln() } - s;
        }
    }

    fn builds(&self) -> Builds {
        self.builds
    }
}

impl<T: Float> ExactHalf for Stored<'_, T> {
    fn expected_log(&mut self, z: &[f64]) -> f64 {
        let mut f = std::mem::take(&mut self.f);
        self.potential(&mut f);
        self.total[..z.len()].copy_from_slice(z);
        let log = self.pass.expected_log(&*self.source, &f, &self.total);
        self.f = f;
        log
    }
}

impl<T: Float> Mixed for Stored<'_, T> {
    fn contract(&mut self, columns: usize, value: &Coordinates<'_>) -> Vec<f64> {
        let factor = |i: usize| if self.logs { self.factors[i].exp() } else { self.factors[i] };
        contract(&self.features, self.pass.stride(), &self.partition, factor, columns, value)
    }

    fn reference(&self) -> &[f64] {
        &self.reference
    }

    fn stride(&self) -> usize {
        self.pass.stride()
    }
}

/// `sum_i factor(i) A_ik value_ic` for every column `k` of the padded rows `A` and every column `c` of
/// some values: `columns` rows, `stride` apart.
pub(super) fn contract<T: Float>(
    features: &[T],
    stride: usize,
    partition: &Partition,
    factor: impl Fn(usize) -> f64 + Sync,
    columns: usize,
    value: &Coordinates<'_>,
) -> Vec<f64> {
    const TILE: usize = 8;
    let (chunk, chunks) = (partition.chunk(), partition.count());
    let mut out = vec![0.0; columns * stride];
    let tile = TILE.min(columns);
    let mut sums = vec![0.0; chunks * tile * stride];
    let mut rows = vec![0.0; chunks * columns];
    for (t, out) in out.chunks_mut(tile * stride).enumerate() {
        let width = out.len() / stride;
        let sums = &mut sums[..chunks * out.len()];
        sums.fill(0.0);
        (
            features.par_chunks(chunk * stride),
            sums.par_chunks_mut(out.len()),
            rows.par_chunks_mut(columns),
        )
            .into_par_iter()
            .enumerate()
            .with_max_len(1)
            .for_each(|(c, (features, sums, row))| {
                for (i, feature) in features.chunks_exact(stride).enumerate() {
                    let (i, factor) = (c * chunk + i, factor(c * chunk + i));
                    value(i, row);
                    for (x, sums) in
                        row[t * tile..t * tile + width].iter().zip(sums.chunks_exact_mut(stride))
                    {
                        simd::accumulate(feature, factor * x, sums);
                    }
                }
            });
        partition.sum(sums, out);
    }
    out
}
