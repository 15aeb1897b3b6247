//! The parts of a factored solve one at a time, for benchmarks.

use crate::error::Result;
use crate::features::{FeatureMap, Gaussian, Mapped};
use crate::kernel::{Factored, Kernel, Mixed, Side, Stored};
use crate::measure::Measure;
use crate::simd::Float;

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
pub trait Storage: Float {}
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
        kernel.update_y(b)?;
        kernel.update_x(a)?;
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
        let error = self.kernel.update_y(self.b)?;
        self.kernel.update_x(self.a)?;
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
