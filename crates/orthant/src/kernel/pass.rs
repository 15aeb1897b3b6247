//! The exact kernel as corrections see it.

use super::Target;
use crate::error::Result;

/// The exact kernel, pass by pass. `z` is the potential of the second cloud, or of the only one.
pub(crate) trait Pass: Send {
    /// The first `z`, out of the potential of the first cloud.
    fn begin(&mut self, f: &[f64], b: Target<'_>, z: &mut [f64]) -> Result<()>;

    /// With the potential `z`, the logarithms `y` such that the marginal is `exp(z + y)`.
    fn pass(&mut self, z: &[f64], a: Target<'_>) -> Result<&[f64]>;

    /// The part of the residual that a plain step adds.
    fn share(&self) -> f64;

    /// The potentials of the last pass, and what is added to the dual value in units of epsilon. `f` is scratch space
    /// for the first cloud.
    fn potentials<'k>(&'k self, f: &'k mut [f64]) -> (&'k [f64], &'k [f64], f64);

    /// Does a plain step, after which both potentials are final.
    fn finish(&mut self, b: Target<'_>) -> Result<()>;
}
