//! One kernel for several measures: what barycentres and permutations of points need.

use super::limits::{Matrices, check_memory};
use super::{KernelChoice, Problem, Terms};
use crate::error::{Error, Result};
use crate::measure::Measure;
use crate::options::{Anchors, Options};
use crate::results::MethodUsed;
use crate::words::{Part, Side, Term};

/// The method of a problem: what it is, where its anchors are, how many features it has, and why.
pub(crate) struct Described {
    pub(crate) method: MethodUsed,
    pub(crate) anchors: Option<Anchors>,
    pub(crate) rank: usize,
    pub(crate) reason: Option<String>,
}

impl Problem<'_> {
    /// The same kernel between measures on other points: those of the clouds of this problem, or points near them.
    /// Coordinates, anchors and lattice are those of its cross term, so it must have no gauge.
    pub(crate) fn between<'q>(
        &'q self,
        mu: &Measure<'q>,
        nu: &Measure<'q>,
        options: &Options,
        terms: Terms,
    ) -> Result<Problem<'q>> {
        let clock = options.clock();
        let kernels = self.kernels.between(terms, [mu, nu], options, &clock)?;
        let (given, reason) = (self.given.clone(), self.reason.clone());
        Ok(Problem { given, reason, ..Problem::of(mu, nu, options, kernels, clock) })
    }

    /// Whether it is a lattice that is not stored.
    pub(crate) fn is_lattice(&self) -> bool {
        self.choice == Some(KernelChoice::Lattice { stored: false })
    }

    /// Refuses to store features or kernels of several cross terms, as pairs of numbers of points, that need more
    /// memory than is allowed.
    pub(crate) fn check_storage(&self, sizes: &[[usize; 2]], options: &Options) -> Result<()> {
        let kernel = self.kernel(Term::Cross);
        let of = |sizes: &[usize; 2]| kernel.stored_numbers(sizes.map(|size| size as f64));
        let what = if self.kernels.used == MethodUsed::Dense {
            Matrices::Kernel
        } else {
            Matrices::Features
        };
        check_memory(what, sizes.iter().map(of).sum(), options)
    }

    /// What was used.
    pub(crate) fn described(&self) -> Described {
        let (method, anchors) = (self.kernels.used, self.anchors());
        let rank = self.kernel(Term::Cross).rank();
        Described { method, anchors, rank, reason: self.reason.clone() }
    }

    /// An error of the cross term, in the user's count of points.
    pub(crate) fn in_cross(&self, error: Error) -> Error {
        let site = self.kernel(Term::Cross).site();
        site.in_user_rows(error, Part::Support, [Side::X, Side::Y])
    }
}
