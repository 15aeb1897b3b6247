//! What is refused before any work: masses that cannot be, and more memory than is allowed.

use crate::anchors::Lattice;
use crate::control::memory;
use crate::error::{Error, Result};
use crate::measure::Measure;
use crate::options::{Options, Precision};
use crate::problem::Terms;
use crate::term::lattices;

/// Whether relaxed marginals go with the clouds and the terms.
pub(super) fn check_rho(
    mu: &Measure<'_>,
    nu: &Measure<'_>,
    options: &Options,
    terms: Terms,
) -> Result<()> {
    let [x, y] = options.rho;
    if terms == Terms::All && x != y {
        return Err(Error::UnequalRho { x, y });
    }
    let masses = [mu.mass(), nu.mass()];
    let largest = masses[0].max(masses[1]);
    let product = if terms == Terms::All { largest * largest } else { masses[0] * masses[1] };
    if options.is_unbalanced() && !product.is_finite() {
        return Err(Error::Masses { x: masses[0], y: masses[1] });
    }
    Ok(())
}

/// What is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matrices {
    Features,
    Kernel,
}

/// Refuses to store so many numbers, if that is more than is allowed.
pub(super) fn check_memory(what: Matrices, numbers: f64, options: &Options) -> Result<()> {
    let width = match options.precision {
        Precision::F32 => 4.0,
        Precision::F64 => 8.0,
    };
    let (what, remedy) = match what {
        Matrices::Features => ("the feature matrices", "use a smaller rank or single precision"),
        Matrices::Kernel => ("the kernel matrix", "use the online method, or features (gaussian)"),
    };
    check_bytes(what, numbers * width, remedy, options)
}

/// Refuses a lattice that needs more memory than is allowed.
pub(super) fn check_lattice(lattice: &Lattice, points: usize, options: &Options) -> Result<()> {
    let bytes = lattices::bytes(lattice, points as f64);
    check_bytes("a lattice", bytes, "ask for less accuracy or a smaller rank", options)
}

/// Refuses features of points, and their anchors, that need more memory than is allowed.
pub(super) fn check_features(points: f64, rank: f64, dim: usize, options: &Options) -> Result<()> {
    check_memory(Matrices::Features, points * rank, options)?;
    check_bytes("the anchors", 8.0 * rank * dim as f64, "use a smaller rank", options)
}

/// Refuses signed features, and the eigenvectors that they come from, that need more memory than is
/// allowed.
pub(super) fn check_nystrom(points: f64, landmarks: f64, options: &Options) -> Result<()> {
    let bytes = 8.0 * landmarks * (points + 4.0 * landmarks);
    check_bytes("the features of landmarks", bytes, "use a smaller rank", options)
}

fn check_bytes(
    what: &'static str,
    bytes: f64,
    remedy: &'static str,
    options: &Options,
) -> Result<()> {
    memory::check(what, bytes, options.max_memory, remedy)
}
