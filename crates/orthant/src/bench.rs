//! The parts of a solve one at a time, for benchmarks.

use crate::anchors::Lattice;
use crate::coordinates::{Frame, Gauge};
use crate::error::{Error, Result};
use crate::features::{FeatureMap, Gaussian, Mapped, SquaredEuclidean};
use crate::kernel::{
    self, AllPairs, Arranged, Factored, HalfKernel, Kernel, Mixed, Recomputed, Separable, Stored,
    Target,
};
use crate::measure::Measure;
use crate::rows::TileFloat;
use crate::term::gauged::Gauged;
use crate::words::{Part, Side, Term};

/// Stored Gaussian features of two clouds, with the steps of a solve as methods.
///
/// ```
/// use orthant::{Measure, Points, bench::Sweep, features::Gaussian};
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
/// let map = Gaussian::paper(&mu, &mu, 0.5, 20, 0, true)?;
/// let mut sweep = Sweep::<f32>::new(&map, &mu, &mu)?;
/// let errors: Vec<f64> = (0..50).map(|_| sweep.iterate()).collect::<Result<_, _>>()?;
/// assert!(errors[49] < 1e-5 * errors[0]);
/// # Ok::<(), orthant::Error>(())
/// ```
pub struct Sweep<'a, T> {
    kernel: Factored<Stored<'a, T>>,
    a: &'a [f64],
    b: &'a [f64],
}

/// Number formats that features can be stored in: `f32` and `f64`.
#[expect(private_bounds, reason = "the trait is sealed by being private")]
pub trait Storage: TileFloat {}
impl Storage for f32 {}
impl Storage for f64 {}

impl<'a, T: Storage> Sweep<'a, T> {
    /// Evaluates and stores the features of both clouds, around the start of a solve.
    pub fn new(map: &'a Gaussian, mu: &'a Measure<'a>, nu: &'a Measure<'a>) -> Result<Self> {
        let side = |m: &'a Measure<'a>| -> Result<Stored<'a, T>> {
            map.check(m.points())?;
            let rows = Mapped::new(map as &dyn FeatureMap, m.support().points.borrowed());
            Ok(Stored::new(Box::new(rows)))
        };
        let (a, b) = (mu.support().weights, nu.support().weights);
        let mut kernel = Factored::new(side(mu)?, side(nu)?);
        let start: Vec<f64> = a.iter().map(|a| a.ln()).collect();
        kernel.start(&start)?;
        kernel.update_y(Arranged::same(Target::fixed(b)).ordered())?;
        kernel.update_x(Arranged::same(Target::fixed(a)).ordered())?;
        Ok(Sweep { kernel, a, b })
    }

    /// Evaluates and stores the features of both clouds anew, in place.
    pub fn build(&mut self) -> Result<()> {
        let (x, y, z_message, y_message) = self.kernel.parts();
        x.note_absent(z_message);
        y.complete(z_message);
        x.rebuild(z_message)?;
        y.note_absent(y_message);
        x.complete(y_message);
        y.rebuild(y_message)
    }

    /// One iteration: a fused pass over the features of either cloud. Returns the marginal error.
    pub fn iterate(&mut self) -> Result<f64> {
        let error = self.kernel.update_y(Arranged::same(Target::fixed(self.b)).ordered())?;
        self.kernel.update_x(Arranged::same(Target::fixed(self.a)).ordered())?;
        Ok(error)
    }

    /// The stored features of both clouds, row-major.
    pub fn features(&mut self) -> [&[T]; 2] {
        let (x, y, ..) = self.kernel.parts();
        [x.features(), y.features()]
    }

    /// Length of a stored row: the rank, rounded up.
    pub fn stride(&mut self) -> usize {
        self.kernel.parts().0.stride()
    }
}

impl<T> std::fmt::Debug for Sweep<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweep").finish_non_exhaustive()
    }
}

/// Two clouds on a lattice, ready to iterate; see [`on_lattice`].
pub struct LatticeSweep<'a, T> {
    kernel: Factored<Separable<'a, T>>,
    targets: [Arranged<'a>; 2],
    rank: usize,
}

impl<T: Storage> LatticeSweep<'_, T> {
    /// One iteration: a pass over either cloud. Returns the marginal error.
    pub fn iterate(&mut self) -> Result<f64> {
        let [a, b] = &self.targets;
        let error = self.kernel.update_y(b.ordered())?;
        self.kernel.update_x(a.ordered())?;
        Ok(error)
    }

    /// Number of nodes.
    pub fn rank(&self) -> usize {
        self.rank
    }
}

impl<T> std::fmt::Debug for LatticeSweep<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LatticeSweep").field("rank", &self.rank).finish_non_exhaustive()
    }
}

/// Puts two clouds on a lattice whose kernel is right to `ratio`, as a solve does, does some iterations
/// and lets `work` go on.
///
/// ```
/// use orthant::{Measure, Points, bench::on_lattice};
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
/// let error = on_lattice::<f64, _>(&mu, &mu, 0.5, 1e-3, |sweep| sweep.iterate())??;
/// assert!(error < 1e-3);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn on_lattice<T: Storage, R>(
    mu: &Measure<'_>,
    nu: &Measure<'_>,
    epsilon: f64,
    ratio: f64,
    work: impl FnOnce(&mut LatticeSweep<'_, T>) -> R,
) -> Result<R> {
    const MOST: f64 = 4e6;
    let gauged = Gauged::new(Gauge::cross(mu, nu, epsilon)?, Term::Cross, [mu, nu])?;
    let [low, high] = gauged.midpoints(Side::X, Side::Y);
    let lattice = Lattice::covering(&low, &high, gauged.gauge.epsilon(), ratio, MOST)
        .ok_or(Error::LatticeSize { most: MOST })?;
    let [x, y] = [Side::X, Side::Y].map(|cloud| gauged.points(cloud, Part::Support));
    let cutoff = lattice.cutoff::<T>();
    let side = |points| Separable::<T>::new(points, &lattice, cutoff);
    let kernel = Factored::new(side(x), side(y));
    let targets = kernel.arrange([mu, nu].map(|m| Target::fixed(m.support().weights)));
    let mut sweep = LatticeSweep { kernel, targets, rank: lattice.rank() };
    let start: Vec<f64> = mu.support().weights.iter().map(|a| a.ln()).collect();
    sweep.kernel.start(&start)?;
    // Past the first times that messages are completed.
    for _ in 0..20 {
        sweep.iterate()?;
    }
    Ok(work(&mut sweep))
}

/// The exact kernel between two clouds, whose entries are evaluated on the way; see [`over_all_pairs`].
pub struct PairSweep<'a> {
    kernel: Box<dyn AllPairs + 'a>,
    targets: [Arranged<'a>; 2],
}

impl PairSweep<'_> {
    /// One iteration: a pass over all pairs. Returns the marginal error.
    pub fn iterate(&mut self) -> Result<f64> {
        let [a, b] = &self.targets;
        let error = self.kernel.update_y(b.ordered())?;
        self.kernel.update_x(a.ordered())?;
        Ok(error)
    }
}

impl std::fmt::Debug for PairSweep<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairSweep").finish_non_exhaustive()
    }
}

/// Begins a solve with the exact kernel of two clouds, in tiles of the precision `T`, and lets `work` go on.
///
/// ```
/// use orthant::{Measure, Points, bench::over_all_pairs};
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
/// let error = over_all_pairs::<f32, _>(&mu, &mu, 0.5, |sweep| {
///     sweep.iterate()?;
///     sweep.iterate()
/// })??;
/// assert!(error < 0.1);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn over_all_pairs<T: Storage, R>(
    mu: &Measure<'_>,
    nu: &Measure<'_>,
    epsilon: f64,
    work: impl FnOnce(&mut PairSweep<'_>) -> R,
) -> Result<R> {
    let gauged = Gauged::new(Gauge::cross(mu, nu, epsilon)?, Term::Cross, [mu, nu])?;
    let [x, y] = [Side::X, Side::Y].map(|cloud| gauged.points(cloud, Part::Support));
    let frame = Frame::unit(x.dim());
    let rows = SquaredEuclidean::new(&frame, gauged.gauge.epsilon(), x.borrowed(), y);
    let mut kernel = kernel::exact(Recomputed::<T>::new(Box::new(rows)), false);
    let start: Vec<f64> = mu.support().weights.iter().map(|a| a.ln()).collect();
    kernel.start(&start)?;
    let targets = [mu, nu].map(|m| Arranged::same(Target::fixed(m.support().weights)));
    Ok(work(&mut PairSweep { kernel, targets }))
}
