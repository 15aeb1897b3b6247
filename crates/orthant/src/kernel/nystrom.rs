//! Kernels `K = Phi_X Phi_Y^T` whose features have signs: the Nystrom approximation.
//!
//! Sums of signed numbers have no logarithms, so scalings and messages are plain numbers here, with a
//! common factor kept apart:
//!
//! ```text
//! u_i = a_i / (phi_i . z)  (times e^{-scale}),      y = sum_i u_i phi_i / largest
//! ```
//!
//! where `z e^{scale}` is the message of the other cloud, its largest entry 1. The range of double
//! precision is far wider than that of the products: the approximation has errors of 1e-16 of the
//! kernel's largest entries at least, and a product below that may have any sign. A product that is not
//! positive is [`Error::NotPositive`]; nothing is added to it.
//!
//! Where a marginal is relaxed, points may be as faint as they like, so scalings are logarithms there.

use rayon::prelude::*;

use super::stored::contract;
use super::target::{Step, Tally};
use super::{Between, Builds, Kernel, Marginal, Ordered, Relaxed, Target};
use crate::comm::{Partition, Span};
use crate::error::{Error, Result};
use crate::features::Basis;
use crate::measure::Points;
use crate::numerics::ExactSums;
use crate::numerics::simd::{self, Aligned};
use crate::words::Side;

/// The features of both clouds.
#[derive(Debug)]
pub(crate) struct Factors {
    basis: Basis,
    clouds: [Aligned<f64>; 2],
    spans: [Span; 2],
}

/// Chunks at most: enough to keep many cores busy.
const SIGNED_CHUNKS: usize = 128;
/// Messages of plans whose mass is further from 1 than this (as a logarithm) may have lost terms.
const RANGE: f64 = 50.0;

impl Factors {
    pub(crate) fn new(basis: Basis, clouds: [&Points<'_>; 2]) -> Self {
        let spans = clouds.map(|points| points.span().clone());
        let clouds = clouds.map(|points| basis.features(points));
        Factors { basis, clouds, spans }
    }

    /// Number of landmarks.
    pub(crate) fn landmarks(&self) -> usize {
        self.basis.landmarks()
    }

    /// The kernel between the two clouds, or that of one with itself.
    pub(crate) fn kernel(&self, clouds: [Side; 2]) -> Box<dyn Kernel + '_> {
        let stride = self.basis.stride();
        let half = |cloud: Side, called| {
            let (features, span) = (&self.clouds[cloud as usize], &self.spans[cloud as usize]);
            SignedSide::new(features, stride, span, called)
        };
        let [x, y] = clouds;
        if x != y {
            return Box::new(Nystrom { x: half(x, Side::X), y: half(y, Side::Y) });
        }
        // A term of a cloud with itself has but one.
        let half = SignedSide { logs: true, ..half(x, Side::X) };
        let received = Message { values: Aligned::zeros(stride), scale: 0.0 };
        Box::new(NystromSelf { half, received })
    }

    /// `sum_ij P_ij ||x_i - y_j||^2` of a plan, in linear time:
    ///
    /// ```text
    /// sum_i r_i |x_i|^2 + sum_j c_j |y_j|^2 - 2 sum_k (Phi_X^T diag(u) X)_k . (Phi_Y^T diag(v) Y)_k
    /// ```
    ///
    /// with `r` and `c` the marginals of the plan.
    pub(crate) fn squared_distance(&self, plan: &[PlanSide<'_>; 2]) -> f64 {
        let dim = plan[0].points.dim();
        let (mut moments, mut scale, mut squares) = ([Vec::new(), Vec::new()], 0.0, 0.0);
        for (side, moments) in plan.iter().zip(&mut moments) {
            let PlanSide { cloud, points, potential, sums } = *side;
            let features = &self.clouds[cloud as usize];
            let span = points.span();
            let top = span.max(|i| potential[i]);
            let partition = Partition::new(span, SIGNED_CHUNKS);
            let factor = |i: usize| (potential[i] - top).exp();
            let value = |i: usize, out: &mut [f64]| points.copy_coordinates(i, 0, out);
            *moments = contract(features, self.basis.stride(), &partition, factor, dim, &value);
            scale += top + normalise(moments);
            let norm = |i| (0..dim).map(|k| points.coordinate(i, k).powi(2)).sum::<f64>();
            squares += span.sum(|i| sums[i] * norm(i));
        }
        let [x, y] = moments;
        let inner: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        squares - 2.0 * inner * scale.exp()
    }

    /// `log sum_j k(x, y_j) v_j` at further points `x`, where `log v = g` is that of a cloud.
    ///
    /// Errors have the number of the point for a row, and speak of the first cloud.
    pub(crate) fn extend(&self, cloud: Side, g: &[f64], points: &Points<'_>) -> Result<Vec<f64>> {
        self.products(cloud, g, &self.basis.features(points), Side::X)
    }

    /// The same at the points of a cloud.
    pub(crate) fn log_sums(&self, at: Side, cloud: Side, g: &[f64]) -> Result<Vec<f64>> {
        self.products(cloud, g, &self.clouds[at as usize], at)
    }

    /// `log sum_j k(x, y_j) v_j` at some points `x`, and the means of columns of values of a cloud with these weights,
    /// which may have signs: a row a point. Errors as of [`Factors::extend`].
    pub(crate) fn means(
        &self,
        points: &Points<'_>,
        cloud: Side,
        g: &[f64],
        columns: &[Vec<f64>],
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let (stride, count) = (self.basis.stride(), columns.len());
        let features = self.basis.features(points);
        let sums = self.products(cloud, g, &features, Side::X)?;
        let span = &self.spans[cloud as usize];
        let partition = Partition::new(span, SIGNED_CHUNKS);
        let top = span.max(|j| g[j]);
        let value = |j: usize, out: &mut [f64]| {
            for (out, column) in out.iter_mut().zip(columns) {
                *out = column[j];
            }
        };
        let factor = |j: usize| (g[j] - top).exp();
        let mut means = vec![0.0; sums.len() * count];
        if count > 0 {
            let all = &self.clouds[cloud as usize];
            let tables = contract(all, stride, &partition, factor, count, &value);
            let rows = features.par_chunks(stride).zip(&sums);
            means.par_chunks_mut(count).zip(rows).for_each(|(means, (row, sum))| {
                for (mean, table) in means.iter_mut().zip(tables.chunks_exact(stride)) {
                    *mean = simd::dot(row, table) * (top - sum).exp();
                }
            });
        }
        Ok((sums, means))
    }

    fn products(&self, cloud: Side, g: &[f64], features: &[f64], at: Side) -> Result<Vec<f64>> {
        let stride = self.basis.stride();
        let mut sender = SignedSide::new(
            &self.clouds[cloud as usize],
            stride,
            &self.spans[cloud as usize],
            cloud,
        );
        sender.send(g);
        let span = Span::alone(features.len() / stride);
        SignedSide::new(features, stride, &span, at).log_products(&sender.message)
    }

    /// `k(x_i, y_j)`, of either sign.
    pub(crate) fn entry(&self, i: usize, j: usize) -> f64 {
        let row = |cloud: Side, i: usize| {
            let stride = self.basis.stride();
            &self.clouds[cloud as usize][i * stride..(i + 1) * stride]
        };
        simd::dot(row(Side::X, i), row(Side::Y, j))
    }
}

/// A cloud and what a plan has there: `log u` and the sums of its rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanSide<'a> {
    pub(crate) cloud: Side,
    pub(crate) points: &'a Points<'a>,
    pub(crate) potential: &'a [f64],
    pub(crate) sums: &'a [f64],
}

/// A vector of feature space, `values e^{scale}`, the largest of the values 1 in size.
struct Message {
    values: Aligned<f64>,
    scale: f64,
}

/// Divides by the largest in size, and returns its logarithm. Zeros stay: products with them will tell.
fn normalise(values: &mut [f64]) -> f64 {
    let largest = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    for v in values {
        *v /= largest;
    }
    largest.ln()
}

/// What a pass makes of a row: the new state, and the factor of the row in the message.
struct Row {
    state: f64,
    factor: f64,
}

/// The features of one cloud, its scaling and the message that it sends.
struct SignedSide<'a> {
    /// `Phi`, padded rows.
    features: &'a [f64],
    stride: usize,
    partition: Partition,
    cloud: Side,
    /// One number a row: `u_i e^{-shift}`, or `log u_i` (in self terms, and where the marginal is relaxed).
    state: Vec<f64>,
    shift: f64,
    logs: bool,
    /// The constant of relaxed updates: see [`Step::level`].
    level: f64,
    /// `Phi^T u`.
    message: Message,
    /// For each chunk: its part of the message, what else it adds up, and the first row that failed.
    sums: Vec<f64>,
    tallies: Vec<f64>,
    failed: Vec<Option<(usize, f64)>>,
    message_sums: ExactSums,
}

impl<'a> SignedSide<'a> {
    fn new(features: &'a [f64], stride: usize, span: &Span, cloud: Side) -> Self {
        let rows = span.len();
        let partition = Partition::new(span, SIGNED_CHUNKS);
        let chunks = partition.count();
        SignedSide {
            features,
            stride,
            partition,
            cloud,
            state: vec![0.0; rows],
            shift: 0.0,
            logs: false,
            level: 0.0,
            message: Message { values: Aligned::zeros(stride), scale: 0.0 },
            sums: vec![0.0; chunks * stride],
            tallies: vec![0.0; chunks * Tally::LEN],
            failed: vec![None; chunks],
            message_sums: ExactSums::new(stride),
        }
    }

    fn rows(&self) -> usize {
        self.state.len()
    }

    /// One pass: `next(i, state_i, phi_i . z)` for every row, and the message of the new factors, which
    /// are `u_i e^{-shift}`. Returns what `next` added up.
    fn pass(
        &mut self,
        z: &Message,
        shift: f64,
        next: impl Fn(usize, f64, f64, &mut Tally) -> Row + Sync,
    ) -> Result<Tally> {
        let (stride, chunk) = (self.stride, self.partition.chunk());
        (
            self.features.par_chunks(chunk * stride),
            self.state.par_chunks_mut(chunk),
            self.sums.par_chunks_mut(stride),
            self.tallies.par_chunks_mut(Tally::LEN),
            self.failed.par_iter_mut(),
        )
            .into_par_iter()
            .enumerate()
            .with_max_len(1)
            .for_each(|(c, (features, state, sums, share, failed))| {
                sums.fill(0.0);
                *failed = None;
                let mut tally = Tally::default();
                simd::fused_block(features, &z.values, sums, |k, s| {
                    let i = c * chunk + k;
                    let row = next(i, state[k], s, &mut tally);
                    if !(s > 0.0 && s.is_finite() && row.factor.is_finite()) {
                        failed.get_or_insert((i, s));
                        return 0.0;
                    }
                    state[k] = row.state;
                    row.factor
                });
                tally.store(share);
            });
        if let Some((i, s)) = self.failed.iter().flatten().next() {
            return Err(self.not_positive(*i, s * z.scale.exp()));
        }
        self.shift = shift;
        self.gather(shift);
        Ok(Tally::total(&self.tallies, self.partition.span()))
    }

    fn not_positive(&self, i: usize, value: f64) -> Error {
        Error::NotPositive { iteration: 0, cloud: self.cloud, row: i + 1, value }
    }

    /// The message out of the sums of the chunks, of factors `u_i e^{-shift}`.
    fn gather(&mut self, shift: f64) {
        let Message { values, scale } = &mut self.message;
        self.partition.span().sum_afresh(&mut self.message_sums, &self.sums, values);
        *scale = shift + normalise(values);
    }

    /// Sends the message of `log u = f`.
    fn send(&mut self, f: &[f64]) {
        let top = self.partition.span().max(|i| f[i]);
        let (stride, chunk) = (self.stride, self.partition.chunk());
        (
            self.features.par_chunks(chunk * stride),
            f.par_chunks(chunk),
            self.sums.par_chunks_mut(stride),
        )
            .into_par_iter()
            .for_each(|(features, f, sums)| {
                sums.fill(0.0);
                for (row, f) in features.chunks_exact(stride).zip(f) {
                    simd::accumulate(row, (f - top).exp(), sums);
                }
            });
        self.gather(top);
    }

    /// `log (phi_i . z)`.
    fn log_products(&self, z: &Message) -> Result<Vec<f64>> {
        let mut out = vec![0.0; self.rows()];
        self.write_log_products(z, &mut out)?;
        Ok(out)
    }

    fn write_log_products(&self, z: &Message, out: &mut [f64]) -> Result<()> {
        (self.features.par_chunks(self.stride), &mut *out)
            .into_par_iter()
            .for_each(|(row, out)| *out = simd::dot(row, &z.values));
        if let Some(i) = out.iter().position(|s| !(*s > 0.0 && s.is_finite())) {
            return Err(self.not_positive(i, out[i] * z.scale.exp()));
        }
        for s in out {
            *s = s.ln() + z.scale;
        }
        Ok(())
    }

    /// `u <- a / s`; returns the L1 error of the plan before.
    fn update(&mut self, z: &Message, a: Ordered<'_>) -> Result<f64> {
        let Target { weights: a, relaxed } = a.get();
        if let Some(relaxed) = relaxed {
            self.take_logs();
            return self.relaxed_step(z, relaxed, false);
        }
        // The scales of messages hardly change from one iteration to the next.
        let ratio = (self.shift + z.scale).exp();
        let tally = self.pass(z, -z.scale, |i, u, s, tally| {
            let new = a[i] / s;
            tally.error += (u * s * ratio - a[i]).abs();
            Row { state: new, factor: new }
        })?;
        Ok(tally.error)
    }

    /// Keeps `log u` from now on.
    fn take_logs(&mut self) {
        if !self.logs {
            for u in &mut self.state {
                *u = u.ln() + self.shift;
            }
            self.logs = true;
        }
    }

    /// One half of an iteration where the marginal is relaxed.
    fn relaxed_step(&mut self, z: &Message, relaxed: Relaxed<'_>, average: bool) -> Result<f64> {
        let step = Step { relaxed, level: self.level, average };
        let tally = self.pass(z, -z.scale, |i, f, s, tally| {
            let (factor, new) = step.row(i, f + z.scale, s, z.scale, tally);
            // Out of range, as the mass is then: the message is sent anew.
            Row { state: new - z.scale, factor: if factor == f64::INFINITY { 0.0 } else { factor } }
        })?;
        let near = tally.log_mass(RANGE);
        let log_mass = match near {
            Some(log_mass) => log_mass,
            None => relaxed.log_mass(&self.log_products(z)?, self.partition.span()) + self.level,
        };
        self.level -= log_mass;
        let change = step.share() * log_mass;
        for f in &mut self.state {
            *f -= change;
        }
        if near.is_some() {
            self.message.scale -= change;
        } else {
            let f = std::mem::take(&mut self.state);
            self.send(&f);
            self.state = f;
        }
        Ok(tally.error())
    }

    /// `log u`.
    fn potential(&self, f: &mut [f64]) {
        if self.logs {
            return f.copy_from_slice(&self.state);
        }
        for (f, u) in f.iter_mut().zip(&self.state) {
            *f = u.ln() + self.shift;
        }
    }
}

/// The kernel between two clouds.
struct Nystrom<'a> {
    x: SignedSide<'a>,
    y: SignedSide<'a>,
}

impl Kernel for Nystrom<'_> {
    fn spans(&self) -> [&Span; 2] {
        [self.x.partition.span(), self.y.partition.span()]
    }

    fn start(&mut self, f: &[f64]) -> Result<()> {
        self.x.send(f);
        // In the scale of the message; what leaves the range is too faint to be seen in it, and the
        // first iteration computes it anew.
        self.x.shift = self.x.message.scale;
        for (u, f) in self.x.state.iter_mut().zip(f) {
            *u = (f - self.x.shift).exp();
        }
        self.y.state.fill(0.0);
        self.y.shift = -self.x.message.scale;
        (self.x.logs, self.y.logs) = (false, false);
        Ok(())
    }

    fn update_y(&mut self, b: Ordered<'_>) -> Result<f64> {
        self.y.update(&self.x.message, b)
    }

    fn update_x(&mut self, a: Ordered<'_>) -> Result<f64> {
        self.x.update(&self.y.message, a)
    }

    fn between(&mut self) -> Option<&mut dyn Between> {
        Some(self)
    }

    fn potentials(&self, f: &mut [f64], g: &mut [f64]) {
        self.x.potential(f);
        self.y.potential(g);
    }

    fn marginals(&mut self, a: Target<'_>, b: Target<'_>) -> Result<[Marginal; 2]> {
        let of = |half: &SignedSide<'_>, z: &Message, a: Target<'_>| {
            let mut f = vec![0.0; half.rows()];
            half.potential(&mut f);
            Ok(Marginal::of(&f, &half.log_products(z)?, a, half.partition.span()))
        };
        Ok([of(&self.x, &self.y.message, a)?, of(&self.y, &self.x.message, b)?])
    }

    fn builds(&self) -> Builds {
        // The features of both clouds; those of other terms are the same.
        Builds { count: 2, ..Builds::default() }
    }
}

impl Between for Nystrom<'_> {
    fn products(
        &mut self,
        f: &[f64],
        g: &[f64],
        _: bool,
        rows: &mut [f64],
        columns: &mut [f64],
    ) -> Result<()> {
        self.x.send(f);
        self.y.send(g);
        self.x.write_log_products(&self.y.message, rows)?;
        self.y.write_log_products(&self.x.message, columns)
    }

    fn depth(&self) -> f64 {
        f64::INFINITY
    }

    fn column_sums(&mut self, out: &mut [f64]) -> Result<()> {
        self.y.write_log_products(&self.x.message, out)
    }
}

/// The kernel of a cloud with itself: positive-definite, at least.
struct NystromSelf<'a> {
    half: SignedSide<'a>,
    /// The message that the side sent to itself.
    received: Message,
}

impl Kernel for NystromSelf<'_> {
    fn spans(&self) -> [&Span; 2] {
        [self.half.partition.span(); 2]
    }

    fn start(&mut self, f: &[f64]) -> Result<()> {
        self.half.send(f);
        // A plan of mass 1: the mean with the next scaling is then of a sane size.
        let Message { values, scale } = &mut self.half.message;
        let half_mass = *scale + 0.5 * values.iter().map(|v| v * v).sum::<f64>().ln();
        let half_mass = if half_mass.is_finite() { half_mass } else { 0.0 };
        *scale -= half_mass;
        for (state, f) in self.half.state.iter_mut().zip(f) {
            *state = f - half_mass;
        }
        Ok(())
    }

    fn update_x(&mut self, _: Ordered<'_>) -> Result<f64> {
        Ok(0.0)
    }

    fn update_y(&mut self, a: Ordered<'_>) -> Result<f64> {
        std::mem::swap(&mut self.half.message, &mut self.received);
        let z = &self.received;
        let Target { weights: a, relaxed } = a.get();
        if let Some(relaxed) = relaxed {
            return self.half.relaxed_step(z, relaxed, true);
        }
        let tally = self.half.pass(z, 0.0, |i, f, s, tally| {
            let log = s.ln() + z.scale;
            let state = 0.5 * (f + a[i].ln() - log);
            tally.error += ((f + log).exp() - a[i]).abs();
            Row { state, factor: state.exp() }
        })?;
        Ok(tally.error)
    }

    fn potentials(&self, f: &mut [f64], g: &mut [f64]) {
        f.copy_from_slice(&self.half.state);
        g.copy_from_slice(&self.half.state);
    }

    fn marginals(&mut self, a: Target<'_>, _: Target<'_>) -> Result<[Marginal; 2]> {
        let sums = self.half.log_products(&self.half.message)?;
        let marginal = Marginal::of(&self.half.state, &sums, a, self.half.partition.span());
        Ok([marginal.clone(), marginal])
    }

    fn builds(&self) -> Builds {
        Builds::default()
    }
}
