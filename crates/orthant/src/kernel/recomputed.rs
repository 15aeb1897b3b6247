//! A side whose rows are never stored: exact, and linear in memory.

use std::marker::PhantomData;

use super::target::Step;
use super::{Builds, ExactHalf, HalfKernel, LogPass, Ordered, Relaxed, Target};
use crate::comm::{Partition, Span};
use crate::error::{Error, Result};
use crate::rows::{LogRows, TileFloat};
use crate::words::Side;

/// Rows evaluated anew in every pass, in logarithms: in tiles of the precision `T`, with sums in double precision.
///
/// Memory: a few numbers a row and, for each of at most [`ONLINE_CHUNKS`] chunks, a few rows.
pub(crate) struct Recomputed<'a, T = f64> {
    source: Box<dyn LogRows + 'a>,
    pass: LogPass,
    /// `log u`.
    f: Vec<f64>,
    sums: Vec<f64>,
    /// A message, padded.
    z: Vec<f64>,
    exact: Vec<f64>,
    /// The constant of relaxed updates: see [`Step::level`].
    level: f64,
    precision: PhantomData<T>,
}

/// Chunks at most; each owns a few rows of scratch space, which may be as long as the other cloud.
const ONLINE_CHUNKS: usize = 32;
/// Messages of plans whose mass is further from 1 than this (as a logarithm) may have lost terms.
const RANGE: f64 = 50.0;

impl<'a, T: TileFloat> Recomputed<'a, T> {
    pub(crate) fn new(source: Box<dyn LogRows + 'a>) -> Self {
        let rows = source.rows();
        let pass = LogPass::new(&*source, Partition::new(source.span(), ONLINE_CHUNKS));
        let stride = pass.stride();
        Recomputed {
            f: vec![f64::NEG_INFINITY; rows],
            sums: vec![0.0; rows],
            z: vec![0.0; stride],
            exact: vec![0.0; stride],
            level: 0.0,
            precision: PhantomData,
            pass,
            source,
        }
    }

    fn load(&mut self, z: &[f64]) {
        self.z[..z.len()].copy_from_slice(z);
    }

    fn half_step(
        &mut self,
        z: &[f64],
        a: &[f64],
        y: &mut [f64],
        next: impl Fn(usize, f64, f64) -> f64 + Sync,
    ) -> Result<f64> {
        self.load(z);
        let error = self.pass.half_step::<T>(&*self.source, &self.z, a, &mut self.f, y, next);
        match self.f.iter().position(|f| !f.is_finite()) {
            None => Ok(error),
            Some(i) => Err(Self::breakdown(i, (a[i].ln() - self.f[i]).exp())),
        }
    }

    /// One half of an iteration where the marginal is relaxed.
    fn relaxed_step(
        &mut self,
        z: &[f64],
        relaxed: Relaxed<'_>,
        y: &mut [f64],
        average: bool,
    ) -> Result<f64> {
        self.load(z);
        let step = Step { relaxed, level: self.level, average };
        let tally = self.pass.relaxed_step::<T>(&*self.source, &self.z, step, &mut self.f, y);
        if let Some(i) = self.f.iter().position(|f| !f.is_finite()) {
            return Err(Self::breakdown(i, self.f[i]));
        }
        let near = tally.log_mass(RANGE);
        let log_mass = near.unwrap_or_else(|| {
            self.pass.row_sums::<f64>(&*self.source, &self.z, &mut self.sums);
            relaxed.log_mass(&self.sums, self.source.span()) + self.level
        });
        self.level -= log_mass;
        let change = step.share() * log_mass;
        for f in &mut self.f {
            *f -= change;
        }
        if near.is_some() {
            for y in y {
                *y -= change;
            }
        } else {
            self.pass.column_sums(&*self.source, &self.f, y);
        }
        Ok(tally.error())
    }

    fn breakdown(row: usize, value: f64) -> Error {
        Error::Breakdown {
            iteration: 0,
            cloud: Side::X,
            row: row + 1,
            value,
            remedy: "epsilon is too small for this kernel",
        }
    }
}

impl<T: TileFloat> HalfKernel for Recomputed<'_, T> {
    fn span(&self) -> &Span {
        self.source.span()
    }

    fn rank(&self) -> usize {
        self.source.rank()
    }

    fn needs_rebuild(&mut self, _: &[f64]) -> bool {
        false
    }

    fn note_absent(&mut self, _: &[f64]) {}

    fn rebuild(&mut self, _: &[f64]) -> Result<()> {
        Ok(())
    }

    fn update(&mut self, z: &[f64], a: Ordered<'_>, y: &mut [f64]) -> Result<f64> {
        let a = a.get();
        let Target { weights: a, relaxed } = a;
        match relaxed {
            None => self.half_step(z, a, y, |i, _, s| a[i].ln() - s),
            Some(relaxed) => self.relaxed_step(z, relaxed, y, false),
        }
    }

    fn average(&mut self, z: &[f64], a: Ordered<'_>, y: &mut [f64]) -> Result<f64> {
        let a = a.get();
        let Target { weights: a, relaxed } = a;
        match relaxed {
            None => self.half_step(z, a, y, |i, f, s| 0.5 * (f + a[i].ln() - s)),
            Some(relaxed) => self.relaxed_step(z, relaxed, y, true),
        }
    }

    fn log_apply(&mut self, z: &[f64], out: &mut [f64]) -> Result<()> {
        self.load(z);
        self.pass.row_sums::<f64>(&*self.source, &self.z, out);
        Ok(())
    }

    fn exchange(&mut self, z: &[f64], out: &mut [f64], y: &mut [f64]) -> Result<()> {
        self.load(z);
        self.pass.exchange::<T>(&*self.source, &self.z, &self.f, out, y);
        Ok(())
    }

    fn depth(&self) -> f64 {
        // What the sums do not reach is lost as a whole, and completed.
        f64::INFINITY
    }

    fn message(&mut self, f: &[f64], y: &mut [f64]) {
        self.pass.column_sums(&*self.source, f, y);
    }

    fn complete(&mut self, y: &mut [f64]) {
        if y.contains(&f64::NEG_INFINITY) {
            self.pass.column_sums(&*self.source, &self.f, &mut self.exact[..y.len()]);
            fill_lost(y, &self.exact);
        }
    }

    fn set_potential(&mut self, f: &[f64]) {
        self.f.copy_from_slice(f);
    }

    fn potential(&self, f: &mut [f64]) {
        f.copy_from_slice(&self.f);
    }

    fn builds(&self) -> Builds {
        Builds::default()
    }
}

impl<T: TileFloat> ExactHalf for Recomputed<'_, T> {
    fn expected_log(&mut self, z: &[f64]) -> f64 {
        self.load(z);
        self.pass.expected_log(&*self.source, &self.f, &self.z)
    }
}

/// Takes the entries of `exact` where those of `y` are minus infinity.
pub(super) fn fill_lost(y: &mut [f64], exact: &[f64]) {
    for (y, exact) in y.iter_mut().zip(exact).filter(|(y, _)| **y == f64::NEG_INFINITY) {
        *y = *exact;
    }
}
