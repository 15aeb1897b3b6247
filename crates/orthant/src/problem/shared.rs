//! One kernel for several measures: what barycentres and permutations of points need.

use std::time::Duration;

use super::stage::{Placement, Stage};
use super::{Aim, Ground, Problem, Storage, Terms, check_memory};
use crate::anchors::Lattice;
use crate::error::{Error, Result};
use crate::kernel::{self, Columns, Factored, FactoredSelf, Kernel, Recomputed, Separable, Stored};
use crate::measure::Measure;
use crate::numerics::simd::Float;
use crate::options::{Anchors, Options, Precision};
use crate::results::Used;
use crate::rows::LogRows;
use crate::words::{Cloud, Part, Term};

/// The method of a problem: what it is, where its anchors are, how many features it has, and why.
pub(crate) struct Described {
    pub(crate) method: Used,
    pub(crate) anchors: Option<Anchors>,
    pub(crate) rank: usize,
    pub(crate) reason: Option<String>,
}

impl Problem<'_> {
    /// The same kernel between measures on other points: those of the clouds of this problem, or points near them.
    /// Coordinates, anchors and lattice are those of its cross term, so it must have no gauge.
    pub(crate) fn between<'q>(
        &'q self,
        mu: &'q Measure<'q>,
        nu: &'q Measure<'q>,
        options: &'q Options<'q>,
        terms: Terms,
    ) -> Result<Problem<'q>> {
        let ground = match &self.ground {
            Ground::Euclidean { stages, used } => {
                let own = stages[Term::Cross as usize].as_ref().expect("always there");
                let mut others = [None, None, None];
                for &term in terms.list() {
                    let mut stage = Stage::new(own.gauge.clone(), term, mu, nu)?;
                    stage.features = own.features.clone();
                    stage.lattice.clone_from(&own.lattice);
                    others[term as usize] = Some(stage);
                }
                Ground::Euclidean { stages: Box::new(others), used: *used }
            }
            Ground::Maps { maps, shared, used, frame } => Ground::Maps {
                maps: maps.clone(),
                shared: *shared,
                used: *used,
                frame: frame.clone(),
            },
            Ground::Matrix(matrix) => Ground::Matrix(matrix),
            Ground::Explicit(xi, zeta) => Ground::Explicit(xi, zeta),
        };
        Ok(Problem {
            mu,
            nu,
            options,
            ground,
            storage: self.storage,
            reason: self.reason.clone(),
            pick: None,
            aim: Aim::Own,
            tight: None,
            polishes: false,
            round: 0,
            spent: 0,
            clock: options.clock(),
            prepared: Duration::ZERO,
        })
    }

    /// Whether it is a lattice that is not stored.
    pub(crate) fn is_lattice(&self) -> bool {
        self.lattice_of(Term::Cross).is_some()
    }

    fn lattice_of(&self, term: Term) -> Option<(&Stage, &Lattice)> {
        let stage = self.stage(term)?;
        match &stage.features {
            Placement::Lattice(lattice) => Some((stage, lattice)),
            _ => None,
        }
    }

    /// Part of the mass that kernels may leave out: see [`Kernel::settle`](crate::kernel::Kernel::settle).
    pub(crate) fn leave_out(&self, term: Term) -> f64 {
        let rounding = match self.options.precision {
            Precision::F32 => f32::ROUNDING,
            Precision::F64 => f64::ROUNDING,
        };
        self.lattice_of(term).map_or(0.0, |(_, lattice)| (0.1 * lattice.ratio()).max(rounding))
    }

    /// The kernel of the cross term.
    pub(crate) fn cross_kernel(&self) -> Box<dyn Columns + '_> {
        match self.options.precision {
            Precision::F32 => self.cross_kernel_of::<f32>(),
            Precision::F64 => self.cross_kernel_of::<f64>(),
        }
    }

    fn cross_kernel_of<T: Float>(&self) -> Box<dyn Columns + '_> {
        let term = Term::Cross;
        let features = |cloud| Stored::<T>::new(self.features(term, cloud, Part::Support));
        let entries = || self.entries(term, Cloud::X, Part::Support, Cloud::Y);
        match (self.storage, self.lattice_of(term)) {
            (Storage::Separable, Some((stage, lattice))) => {
                let side = |cloud| {
                    let points = stage.points(cloud, Part::Support);
                    Separable::<T>::new(points, lattice, lattice.cutoff::<T>())
                };
                Box::new(Factored::new(side(Cloud::X), side(Cloud::Y)))
            }
            (Storage::Factored, ..) => {
                Box::new(Factored::new(features(Cloud::X), features(Cloud::Y)))
            }
            (Storage::Dense, ..) => kernel::exact_columns(Stored::<T>::new(entries())),
            _ => kernel::exact_columns(Recomputed::new(entries())),
        }
    }

    /// The kernel of the first cloud with itself, in the same way.
    pub(crate) fn self_kernel(&self) -> Box<dyn Kernel + '_> {
        match self.options.precision {
            Precision::F32 => self.self_kernel_of::<f32>(),
            Precision::F64 => self.self_kernel_of::<f64>(),
        }
    }

    fn self_kernel_of<T: Float>(&self) -> Box<dyn Kernel + '_> {
        let term = Term::SelfX;
        let entries = || self.entries(term, Cloud::X, Part::Support, Cloud::X);
        match (self.storage, self.lattice_of(term)) {
            (Storage::Separable, Some((stage, lattice))) => {
                let points = stage.points(Cloud::X, Part::Support);
                let side = Separable::<T>::new(points, lattice, lattice.cutoff::<T>());
                Box::new(FactoredSelf::new(side))
            }
            (Storage::Factored, ..) => {
                let features = self.features(term, Cloud::X, Part::Support);
                Box::new(FactoredSelf::new(Stored::<T>::new(features)))
            }
            (Storage::Dense, ..) => kernel::exact(Stored::<T>::new(entries()), true),
            _ => kernel::exact(Recomputed::new(entries()), true),
        }
    }

    /// Refuses to store features or kernels of several cross terms, as pairs of numbers of points, that need more
    /// memory than is allowed.
    pub(crate) fn check_storage(&self, sizes: &[[usize; 2]], options: &Options<'_>) -> Result<()> {
        let sum = |of: fn(f64, f64) -> f64| -> f64 {
            sizes.iter().map(|[n, m]| of(*n as f64, *m as f64)).sum()
        };
        let numbers = match self.storage {
            Storage::Dense => sum(|n, m| n * m),
            Storage::Factored => sum(|n, m| n + m) * self.rank(Term::Cross) as f64,
            Storage::Separable | Storage::Online | Storage::Nystrom => return Ok(()),
        };
        check_memory(self.storage, numbers, options)
    }

    /// What the coordinates of the cross term add to its value.
    pub(crate) fn cross_offset(&self) -> f64 {
        self.offset(Term::Cross)
    }

    /// The same for the first cloud with itself.
    pub(crate) fn self_constant(&self) -> f64 {
        self.constant(Term::SelfX)
    }

    /// Rows of a kernel of the first cloud with itself: its features, or, `true`, the entries themselves. Nothing for
    /// lattices, which are better not stored.
    pub(crate) fn self_rows(&self) -> Option<(Box<dyn LogRows + '_>, bool)> {
        let term = Term::SelfX;
        match self.storage {
            Storage::Factored => Some((self.features(term, Cloud::X, Part::Support), false)),
            Storage::Dense | Storage::Online => {
                Some((self.entries(term, Cloud::X, Part::Support, Cloud::X), true))
            }
            Storage::Separable | Storage::Nystrom => None,
        }
    }

    /// What was used.
    pub(crate) fn described(&self) -> Described {
        let (method, anchors) = (self.used(), self.anchors());
        Described { method, anchors, rank: self.rank(Term::Cross), reason: self.reason.clone() }
    }

    /// An error of the cross term, in the user's count of points.
    pub(crate) fn in_cross(&self, error: Error) -> Error {
        self.in_user_rows(error, Part::Support, [Cloud::X, Cloud::Y])
    }
}
