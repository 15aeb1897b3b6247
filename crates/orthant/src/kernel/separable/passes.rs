//! The passes over all points: half-iterations, products, sums of values.

use std::ops::Range;

use rayon::prelude::*;

use super::geometry::{CellState, Geometry};
use super::work::{Block, Work, room};
use super::{Chunk, SUMS, Separable};
use crate::error::Result;
use crate::kernel::target::{Step, Tally};
use crate::kernel::{Coordinates, HalfKernel, LOST, Mixed, Relaxed};
use crate::numerics::simd::{self, Float};

/// Largest exponent of a power in single precision.
const NARROW: f64 = 40.0;
/// Factors whose scale moves by more than this in one step are kept as logarithms.
const FAR_POWERS: f64 = 300.0;

/// A factor as it is kept.
#[derive(Clone, Copy)]
pub(super) enum Factor {
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
        spot: &mut CellState,
        offsets: &[f64],
        factors: &mut [f64],
        a: &[f64],
        z: &[f64],
        next: &impl Fn(Factor, f64, f64) -> f64,
        total: &mut [f64],
    ) -> f64 {
        let scale = self.load(geometry, &spot.cell, &spot.window, z);
        let shift = scale - spot.scale;
        if !spot.logs && shift.abs() > FAR_POWERS {
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
        let next = |q: &mut f64, a: f64, s: f64| {
            let (old, factor) = if logs {
                let log = *q + shift;
                (log.exp(), Factor::Log(log))
            } else {
                (*q * grow, Factor::Plain(*q * grow))
            };
            *q = next(factor, a, s);
            (old * s - a).abs()
        };
        self.for_blocks(geometry, spot, offsets, 1, |work, block| {
            let (factors, a) = (&mut factors[block.from..], &a[block.from..]);
            work.answer(geometry, &spot.window, block, |sums, scaled| {
                for (((q, a), s), scaled) in factors.iter_mut().zip(a).zip(sums).zip(scaled) {
                    error += next(q, *a, s.to_f64());
                    *scaled = T::from_f64(*q * per_top);
                }
            });
        });
        spot.logs = false;
        spot.scale = scale;
        self.add_mass(geometry, &spot.window, top, total);
        error
    }

    /// [`Work::advance`] where the marginal is relaxed: factors stay logarithms, because points may be as
    /// faint as they like.
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    fn advance_relaxed(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &mut CellState,
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
        self.for_blocks(geometry, spot, offsets, 1, |work, block| {
            work.answer(geometry, &spot.window, block, |sums, scaled| {
                for (i, (scaled, sum)) in scaled.iter_mut().zip(sums).enumerate() {
                    let i = block.from + i;
                    let old = if spot.logs { factors[i] } else { factors[i].ln() } + shift;
                    let t = |a: usize| offsets[a * spot.cell.len + i];
                    let exponent = geometry.point_exponent(&spot.cell, &centre, t);
                    let (factor, new) =
                        step.row(first + i, old, sum.to_f64(), scale + exponent, tally);
                    factors[i] = new;
                    *scaled = T::from_f64(factor);
                }
            });
        });
        spot.logs = true;
        spot.scale = scale;
        self.add_mass(geometry, &spot.window, 1.0, total);
    }

    /// Sums of the points of a cell, as logarithms, and what their factors, times `exp(level)`, send: the factors
    /// stay what they are.
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    fn exchange(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &mut CellState,
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
        self.for_blocks(geometry, spot, offsets, 1, |work, block| {
            work.answer(geometry, &spot.window, block, |sums, scaled| {
                for (i, (scaled, sum)) in scaled.iter_mut().zip(sums).enumerate() {
                    let i = block.from + i;
                    let t = |a: usize| offsets[a * spot.cell.len + i];
                    let exponent = geometry.point_exponent(&spot.cell, &centre, t);
                    out[i] = scale + exponent + sum.to_f64().ln();
                    *scaled = T::from_f64((factors[i] - top).exp());
                }
            });
        });
        spot.logs = true;
        spot.scale = scale;
        self.add_mass(geometry, &spot.window, (top + level).exp(), total);
    }

    /// Adds what the points of a cell send, each times its values, to the sums: some columns of all
    /// `of` them.
    #[expect(clippy::too_many_arguments, reason = "parts of one chunk")]
    fn contract(
        &mut self,
        geometry: &Geometry<'_>,
        spot: &CellState,
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
        let scaled = |q: f64| if spot.logs { (q - top).exp() } else { q * per_top };
        self.for_blocks(geometry, spot, offsets, columns.len(), |work, block| {
            let Block { from, len, points } = block;
            let values = room(&mut work.values, of * len);
            for (i, row) in values.chunks_exact_mut(of).enumerate() {
                value(from + i, row);
                let q = scaled(factors[from + i]);
                for value in row {
                    *value *= q;
                }
            }
            for (place, column) in columns.clone().enumerate() {
                let factors = room(&mut work.factors, points);
                factors[len..].fill(T::ZERO);
                let rows = work.values[..of * len].chunks_exact(of);
                for (factor, row) in factors.iter_mut().zip(rows) {
                    *factor = T::from_f64(row[column]);
                }
                work.scatter(geometry, &spot.window, points, place);
            }
        });
        let top = if spot.logs { top } else { top.ln() };
        self.add_mass(geometry, &spot.window, (top + shift).exp(), total);
    }
}

impl<T: Float> Separable<'_, T> {
    /// One pass. The new factor of a point is `next(old factor, a_i, sum_u T_u Z_u)`.
    pub(super) fn half_step(
        &mut self,
        z: &[f64],
        a: &[f64],
        y: &mut [f64],
        next: impl Fn(Factor, f64, f64) -> f64 + Sync,
    ) -> Result<f64> {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        self.z.copy_from_slice(z);
        let z = &self.z[..];
        self.chunks
            .par_iter_mut()
            .zip(self.sums.par_chunks_mut(z.len()))
            .zip(&mut self.errors)
            .with_max_len(1)
            .for_each(|((chunk, sums), error)| {
                sums.fill(0.0);
                *error = 0.0;
                let Chunk { first, spots, offsets, factors, work, exact, .. } = chunk;
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
            });
        self.send(y)?;
        Ok(self.span.sum_few::<1>(&self.errors)[0])
    }

    /// Adds the sums of all chunks and turns them into a message.
    pub(super) fn send(&mut self, y: &mut [f64]) -> Result<()> {
        self.told = false;
        self.span.sum_again(&mut self.message_sums, &self.sums, &mut self.mass);
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
    pub(super) fn relaxed_step(
        &mut self,
        z: &[f64],
        relaxed: Relaxed<'_>,
        y: &mut [f64],
        average: bool,
    ) -> Result<f64> {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        let step = Step { relaxed, level: self.level, average };
        self.store_message(z);
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
        let tally = Tally::total(&self.tallies, &self.span);
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

    /// [`HalfKernel::exchange`], with factors times `exp(level)`.
    pub(super) fn exchange_at(&mut self, level: f64) {
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
    pub(super) fn relaxed_mass(&mut self, relaxed: Relaxed<'_>) -> Result<f64> {
        if self.chunks.iter().flat_map(|chunk| &chunk.factors).any(|q| !q.is_finite()) {
            return Err(self.breakdown(f64::NAN));
        }
        self.with_heard(Self::apply)?;
        let mut s = std::mem::take(&mut self.f);
        s.iter_mut().zip(self.products()).for_each(|(s, product)| *s = *product);
        let log_mass = relaxed.log_mass(&s, &self.span) + self.level;
        self.f = s;
        Ok(log_mass)
    }
}

impl<T: Float> Mixed for Separable<'_, T> {
    fn contract(&mut self, columns: usize, value: &Coordinates<'_>) -> Vec<f64> {
        let (geometry, half) = (Geometry::new(self.lattice), self.cells.half);
        let nodes = self.lattice.nodes();
        let (z, order) = (&self.z[..], &self.cells.order[..]);
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
                        let of = |i: usize, row: &mut [f64]| value(order[first + i] as usize, row);
                        // Powers must stay in the range of the numbers.
                        if size_of::<T>() == 8 || geometry.power_range(spot, half) > NARROW {
                            exact.contract(&geometry, spot, offsets, q, z, part, columns, of, sums);
                        } else {
                            work.contract(&geometry, spot, offsets, q, z, part, columns, of, sums);
                        }
                    }
                });
            self.span.sum_chunks(sums, out);
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
