//! Kernels `K = Xi Zeta^T` of positive features: an iteration costs `r (n + m)`.

use super::{
    Arranged, Between, Builds, Conditional, Coordinates, HalfKernel, Kernel, Marginal, Mixed,
    Ordered, Separable, Stored, Target,
};
use crate::comm::Span;
use crate::error::{Error, Result};
use crate::numerics::log_sum;
use crate::numerics::simd::Float;
use crate::words::Side;

/// Two sides that exchange messages of `r` numbers.
pub(crate) struct Factored<S> {
    x: S,
    y: S,
    /// `log Zeta^T v`: from the second cloud to the first.
    z_message: Vec<f64>,
    /// `log Xi^T u`: from the first cloud to the second.
    y_message: Vec<f64>,
}

impl<S: HalfKernel> Factored<S> {
    pub(crate) fn new(x: S, y: S) -> Self {
        let rank = x.rank();
        assert_eq!(rank, y.rank(), "both sides have the same rank");
        Factored { x, y, z_message: vec![0.0; rank], y_message: vec![0.0; rank] }
    }

    /// The two sides, the message to the first and the one to the second.
    pub(crate) fn parts(&mut self) -> (&mut S, &mut S, &mut [f64], &mut [f64]) {
        (&mut self.x, &mut self.y, &mut self.z_message, &mut self.y_message)
    }
}

/// What two clouds last sent, over all features, and in how many passes.
#[derive(Debug)]
pub(crate) struct CoarseMessages {
    /// From the second cloud to the first, and the other way; of a cloud with itself, one.
    messages: Vec<Vec<f64>>,
    passes: usize,
}

/// A plan on a lattice.
pub(crate) trait LatticePlan: Kernel + Moments {
    /// Starts from what other points of the same clouds have sent; of a cloud with itself, with the scaling that
    /// answers it with the marginal `a`.
    fn resume(&mut self, coarse: &CoarseMessages, a: Target<'_>) -> Result<()>;

    fn into_messages(self: Box<Self>) -> CoarseMessages;
}

impl<T: Float> LatticePlan for Factored<Separable<'_, T>> {
    fn resume(&mut self, coarse: &CoarseMessages, _: Target<'_>) -> Result<()> {
        let [z, y] = &coarse.messages[..] else { unreachable!("of two clouds") };
        self.x.resume(z, coarse.passes)?;
        self.y.resume(y, coarse.passes).map_err(of_second)?;
        self.z_message.copy_from_slice(z);
        self.y_message.copy_from_slice(y);
        Ok(())
    }

    fn into_messages(mut self: Box<Self>) -> CoarseMessages {
        let passes = self.x.passes();
        let Factored { x, y, z_message, y_message } = &mut *self;
        x.whole_message(y_message);
        y.whole_message(z_message);
        CoarseMessages { messages: vec![self.z_message, self.y_message], passes }
    }
}

impl<T: Float> LatticePlan for FactoredSelf<Separable<'_, T>> {
    fn resume(&mut self, coarse: &CoarseMessages, a: Target<'_>) -> Result<()> {
        let [z] = &coarse.messages[..] else { unreachable!("of one cloud") };
        self.side.resume(z, coarse.passes)?;
        let a = self.side.arrange(a);
        self.side.update(z, a.ordered(), &mut self.message)?;
        Ok(())
    }

    fn into_messages(mut self: Box<Self>) -> CoarseMessages {
        let passes = self.side.passes();
        let FactoredSelf { side, message, .. } = &mut *self;
        side.whole_message(message);
        CoarseMessages { messages: vec![self.message], passes }
    }
}

/// Makes sure that `side` can work with the message that `sender` sent.
fn prepare<S: HalfKernel>(side: &mut S, sender: &mut S, message: &mut [f64]) -> Result<()> {
    if side.needs_rebuild(message) {
        side.note_absent(message);
        sender.complete(message);
        side.rebuild(message)?;
    }
    Ok(())
}

/// The same for a message that lacks nothing.
fn prepare_whole<S: HalfKernel>(side: &mut S, message: &[f64]) -> Result<()> {
    if side.needs_rebuild(message) {
        side.note_absent(message);
        side.rebuild(message)?;
    }
    Ok(())
}

/// Sides do not know which cloud they are.
fn of_second(error: Error) -> Error {
    match error {
        Error::Breakdown { iteration, row, value, remedy, .. } => {
            Error::Breakdown { iteration, cloud: Side::Y, row, value, remedy }
        }
        other => other,
    }
}

impl<S: HalfKernel> Kernel for Factored<S> {
    fn spans(&self) -> [&Span; 2] {
        [self.x.span(), self.y.span()]
    }

    fn arrange<'t>(&self, [a, b]: [Target<'t>; 2]) -> [Arranged<'t>; 2] {
        [self.x.arrange(a), self.y.arrange(b)]
    }

    fn start(&mut self, f: &[f64]) -> Result<()> {
        self.x.set_potential(f);
        self.x.first_message(f, &mut self.y_message);
        Ok(())
    }

    fn update_y(&mut self, b: Ordered<'_>) -> Result<f64> {
        prepare(&mut self.y, &mut self.x, &mut self.y_message)
            .and_then(|()| self.y.update(&self.y_message, b, &mut self.z_message))
            .map_err(of_second)
    }

    fn update_x(&mut self, a: Ordered<'_>) -> Result<f64> {
        prepare(&mut self.x, &mut self.y, &mut self.z_message)?;
        self.x.update(&self.z_message, a, &mut self.y_message)
    }

    fn refresh(&mut self, a: Ordered<'_>, b: Ordered<'_>) -> Result<f64> {
        let mut z = self.z_message.clone();
        let windows = self.y.whole_message(&mut z);
        let lost = |message: &[f64]| message.contains(&f64::NEG_INFINITY);
        if !(windows || lost(&self.z_message) || lost(&self.y_message)) {
            return Ok(0.0);
        }
        let (mut f, mut g) = (vec![0.0; self.rows()], vec![0.0; self.columns()]);
        if !windows {
            self.y.potential(&mut g);
            self.y.message(&g, &mut z);
        }
        self.x.rebuild(&z)?;
        self.z_message = z;
        self.x.update(&self.z_message, a, &mut self.y_message)?;
        if !self.x.whole_message(&mut self.y_message) {
            self.x.potential(&mut f);
            self.x.message(&f, &mut self.y_message);
        }
        self.y.rebuild(&self.y_message).map_err(of_second)?;
        self.y.update(&self.y_message, b, &mut self.z_message).map_err(of_second)
    }

    fn messages(&mut self) -> (&mut [f64], &[f64]) {
        (&mut self.z_message, &self.y_message)
    }

    fn go_back(&mut self, z: &[f64]) {
        self.z_message.copy_from_slice(z);
        if self.x.needs_rebuild(z) {
            // What it lacks is not in the present `v`. If it lacks too much, that is seen again at once.
            self.x.note_absent(z);
            let _ = self.x.rebuild(z);
        }
    }

    fn between(&mut self) -> Option<&mut dyn Between> {
        Some(self)
    }

    fn potentials(&self, f: &mut [f64], g: &mut [f64]) {
        self.x.potential(f);
        self.y.potential(g);
    }

    fn settle(&mut self, allowed: f64) -> Result<f64> {
        let (mut z, mut y) = (self.z_message.clone(), self.y_message.clone());
        if !(self.x.whole_message(&mut y) && self.y.whole_message(&mut z)) {
            return Ok(0.0);
        }
        let mass = |y: &[f64], z: &[f64]| log_sum(y.iter().zip(z).map(|(y, z)| y + z));
        let lost = mass(&y, &z) - mass(&self.y_message, &self.z_message);
        if lost > allowed {
            self.x.rebuild(&z)?;
            self.y.rebuild(&y).map_err(of_second)?;
            (self.z_message, self.y_message) = (z, y);
        }
        Ok(lost.max(0.0))
    }

    fn marginals(&mut self, a: Target<'_>, b: Target<'_>) -> Result<[Marginal; 2]> {
        let of = |side: &mut S, message: &[f64], target: Target<'_>| {
            let (mut f, mut s) = (vec![0.0; side.rows()], vec![0.0; side.rows()]);
            side.potential(&mut f);
            side.log_apply(message, &mut s)?;
            Ok(Marginal::of(&f, &s, target, side.span()))
        };
        prepare(&mut self.x, &mut self.y, &mut self.z_message)?;
        prepare(&mut self.y, &mut self.x, &mut self.y_message).map_err(of_second)?;
        Ok([of(&mut self.x, &self.z_message, a)?, of(&mut self.y, &self.y_message, b)?])
    }

    fn builds(&self) -> Builds {
        self.x.builds() + self.y.builds()
    }
}

impl<S: HalfKernel> Between for Factored<S> {
    fn products(
        &mut self,
        f: &[f64],
        g: &[f64],
        whole: bool,
        rows: &mut [f64],
        columns: &mut [f64],
    ) -> Result<()> {
        let Factored { x, y, z_message, y_message } = self;
        x.set_potential(f);
        y.set_potential(g);
        if whole {
            x.message(f, y_message);
            y.message(g, z_message);
            prepare_whole(x, z_message)?;
            x.log_apply(z_message, rows)?;
            return prepare_whole(y, y_message)
                .and_then(|()| y.log_apply(y_message, columns))
                .map_err(of_second);
        }
        // Three passes: with the message of before, for the one that `g` sends, and with those of now.
        y.exchange(y_message, columns, z_message).map_err(of_second)?;
        prepare(x, y, z_message)?;
        x.exchange(z_message, rows, y_message)?;
        prepare(y, x, y_message).and_then(|()| y.log_apply(y_message, columns)).map_err(of_second)
    }

    fn depth(&self) -> f64 {
        self.x.depth()
    }

    fn column_sums(&mut self, out: &mut [f64]) -> Result<()> {
        let Factored { x, y, y_message, .. } = self;
        prepare(y, x, y_message).and_then(|()| y.log_apply(y_message, out)).map_err(of_second)
    }
}

/// One side that sends messages to itself.
pub(crate) struct FactoredSelf<S> {
    side: S,
    message: Vec<f64>,
    next: Vec<f64>,
}

impl<S: HalfKernel> FactoredSelf<S> {
    pub(crate) fn new(side: S) -> Self {
        let rank = side.rank();
        FactoredSelf { side, message: vec![0.0; rank], next: vec![0.0; rank] }
    }

    fn prepare(&mut self) -> Result<()> {
        if self.side.needs_rebuild(&self.message) {
            self.side.note_absent(&self.message);
            self.side.complete(&mut self.message);
            self.side.rebuild(&self.message)?;
        }
        Ok(())
    }
}

impl<S: HalfKernel> Kernel for FactoredSelf<S> {
    fn spans(&self) -> [&Span; 2] {
        [self.side.span(); 2]
    }

    fn arrange<'t>(&self, targets: [Target<'t>; 2]) -> [Arranged<'t>; 2] {
        targets.map(|target| self.side.arrange(target))
    }

    fn start(&mut self, f: &[f64]) -> Result<()> {
        self.side.message(f, &mut self.message);
        // A plan of mass 1: the mean with the next scaling is then of a sane size.
        let half_mass = 0.5 * log_sum(self.message.iter().map(|y| 2.0 * y));
        for y in &mut self.message {
            *y -= half_mass;
        }
        let f: Vec<f64> = f.iter().map(|f| f - half_mass).collect();
        self.side.set_potential(&f);
        Ok(())
    }

    fn update_x(&mut self, _: Ordered<'_>) -> Result<f64> {
        Ok(0.0)
    }

    fn update_y(&mut self, a: Ordered<'_>) -> Result<f64> {
        self.prepare()?;
        let error = self.side.average(&self.message, a, &mut self.next)?;
        std::mem::swap(&mut self.message, &mut self.next);
        Ok(error)
    }

    fn potentials(&self, f: &mut [f64], g: &mut [f64]) {
        self.side.potential(f);
        g.copy_from_slice(f);
    }

    fn settle(&mut self, allowed: f64) -> Result<f64> {
        let mut y = self.message.clone();
        if !self.side.whole_message(&mut y) {
            return Ok(0.0);
        }
        let mass = |y: &[f64]| log_sum(y.iter().map(|y| 2.0 * y));
        let lost = mass(&y) - mass(&self.message);
        if lost > allowed {
            self.side.rebuild(&y)?;
            self.message = y;
        }
        Ok(lost.max(0.0))
    }

    fn marginals(&mut self, a: Target<'_>, _: Target<'_>) -> Result<[Marginal; 2]> {
        self.prepare()?;
        let (mut f, mut s) = (vec![0.0; self.rows()], vec![0.0; self.rows()]);
        self.side.potential(&mut f);
        self.side.log_apply(&self.message, &mut s)?;
        let marginal = Marginal::of(&f, &s, a, self.side.span());
        Ok([marginal.clone(), marginal])
    }

    fn builds(&self) -> Builds {
        self.side.builds()
    }
}

/// Mass, mean and second moment of the points of one cloud under each feature of the plan.
///
/// A factored plan is a mixture over `k` of products of two distributions, one on each cloud.
struct Mixture {
    /// `dim + 2` rows of `stride`: the coordinates, the squared norm and 1, weighted.
    sums: Vec<f64>,
    stride: usize,
}

impl Mixture {
    fn mean(&self, k: usize, c: usize, dim: usize) -> f64 {
        self.sums[c * self.stride + k] / self.sums[(dim + 1) * self.stride + k]
    }
}

/// Moments of a plan.
pub(crate) trait Moments {
    /// `sum_ij P_ij ||x_i - y_j||^2` of the plan, where `x(i, ..)` and `y(j, ..)` write coordinates.
    ///
    /// In linear time: under feature `k` the points `x` and `y` are independent, so the mean squared
    /// distance is the squared distance of two means plus two variances.
    fn squared_distance(&mut self, dim: usize, x: &Coordinates<'_>, y: &Coordinates<'_>) -> f64;
}

/// A plan of stored features.
pub(crate) trait StoredPlan<'f, T>: Kernel + Moments {
    /// What the first cloud and the second last sent, `log Xi^T u` and `log Zeta^T v`; of a cloud with itself, one.
    fn sent(&self) -> Vec<Vec<f64>>;

    /// The points of the second cloud, given a feature.
    fn second(&mut self) -> &mut dyn Conditional;

    /// Its sides.
    fn into_sides(self: Box<Self>) -> (Stored<'f, T>, Option<Stored<'f, T>>);
}

impl<'f, T: Float> StoredPlan<'f, T> for Factored<Stored<'f, T>> {
    fn sent(&self) -> Vec<Vec<f64>> {
        vec![self.y_message.clone(), self.z_message.clone()]
    }

    fn second(&mut self) -> &mut dyn Conditional {
        &mut self.y
    }

    fn into_sides(self: Box<Self>) -> (Stored<'f, T>, Option<Stored<'f, T>>) {
        (self.x, Some(self.y))
    }
}

impl<'f, T: Float> StoredPlan<'f, T> for FactoredSelf<Stored<'f, T>> {
    fn sent(&self) -> Vec<Vec<f64>> {
        vec![self.message.clone()]
    }

    fn second(&mut self) -> &mut dyn Conditional {
        &mut self.side
    }

    fn into_sides(self: Box<Self>) -> (Stored<'f, T>, Option<Stored<'f, T>>) {
        (self.side, None)
    }
}

/// Moments of a side under each feature.
fn mixture<S: Mixed>(side: &mut S, dim: usize, point: &Coordinates<'_>) -> Mixture {
    let sums = side.contract(dim + 2, &|i, row: &mut [f64]| {
        point(i, &mut row[..dim]);
        row[dim] = row[..dim].iter().map(|x| x * x).sum();
        row[dim + 1] = 1.0;
    });
    Mixture { sums, stride: side.stride() }
}

fn mixture_distance(
    x: &Mixture,
    y: &Mixture,
    dim: usize,
    reference: impl Fn(usize) -> f64,
    rank: usize,
) -> f64 {
    let mut total = 0.0;
    for k in 0..rank {
        let mass = |m: &Mixture| m.sums[(dim + 1) * m.stride + k];
        let (mx, my) = (mass(x), mass(y));
        if mx == 0.0 || my == 0.0 {
            continue;
        }
        let weight = (mx.ln() + my.ln() - reference(k)).exp();
        let second = x.mean(k, dim, dim) + y.mean(k, dim, dim);
        let cross: f64 = (0..dim).map(|c| x.mean(k, c, dim) * y.mean(k, c, dim)).sum();
        total += weight * (second - 2.0 * cross);
    }
    total
}

impl<S: Mixed> Moments for Factored<S> {
    fn squared_distance(&mut self, dim: usize, x: &Coordinates<'_>, y: &Coordinates<'_>) -> f64 {
        let (mx, my) = (mixture(&mut self.x, dim, x), mixture(&mut self.y, dim, y));
        let (z0, y0) = (self.x.reference(), self.y.reference());
        mixture_distance(&mx, &my, dim, |k| z0[k] + y0[k], self.x.rank())
    }
}

impl<S: Mixed> Moments for FactoredSelf<S> {
    fn squared_distance(&mut self, dim: usize, x: &Coordinates<'_>, _: &Coordinates<'_>) -> f64 {
        let m = mixture(&mut self.side, dim, x);
        let z0 = self.side.reference();
        mixture_distance(&m, &m, dim, |k| 2.0 * z0[k], self.side.rank())
    }
}
