//! How close to the value of the exact kernel a term has to come, and what brings it closer.

use super::build::KernelChoice;
use super::{Problem, Terms, choose};
use crate::numerics::simd::Float;
use crate::options::{Anchors, Features, Method, Precision};
use crate::results::{Solution, divergence_scale, scale};
use crate::term::gauged::Gauged;

/// What the accuracy of the options is relative to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Aim {
    /// The value of the term, or, of three terms, their divergence.
    Own,
    /// The value of each term, also where they are those of a divergence.
    Terms,
    /// The divergence that this is the cross term of.
    Divergence {
        /// Half of the sum of the values of the self terms.
        selves: f64,
        /// The error that these may bring into the divergence.
        error: f64,
    },
    /// A divergence that may be as small as accuracies count: see [`divergence_scale`].
    Smallest,
}

/// The part of an allowed error that the kernel may have; iterations and rounding have the rest.
const KERNEL: f64 = 0.8;

impl Aim {
    /// The largest error of a term with this value, in units of the cost; `unit` is epsilon for each unit of mass.
    pub(crate) fn allowed(self, accuracy: f64, value_kl: f64, unit: f64) -> f64 {
        let own = scale(value_kl, unit);
        match self {
            Aim::Own | Aim::Terms => accuracy * own,
            Aim::Divergence { selves, error } => {
                let all = accuracy * divergence_scale(value_kl - selves, own);
                // Self terms that take more than half of it are to be solved again.
                (all - error).max(0.5 * all)
            }
            // Of a self term half counts, and there are two.
            Aim::Smallest => 0.5 * accuracy * divergence_scale(0.0, own),
        }
    }

    /// The errors that the kernels of these terms may have, judged by the values of Gaussians; nothing if it is what
    /// the accuracy says of each term.
    pub(super) fn kernel_errors(
        self,
        terms: &[Option<Gauged>; 3],
        accuracy: f64,
        epsilon: f64,
    ) -> [Option<f64>; 3] {
        let values =
            [0, 1, 2].map(|k| terms[k].as_ref().and_then(|gauged| gauged.gauge.gaussian_value()));
        match (self, values) {
            (Aim::Own, [Some(cross), Some(x), Some(y)]) => {
                let all = accuracy * divergence_scale(cross - 0.5 * (x + y), scale(cross, epsilon));
                [Some(0.5 * KERNEL * all); 3]
            }
            (Aim::Own | Aim::Terms, _) => [None; 3],
            (aim, values) => {
                values.map(|value| Some(KERNEL * aim.allowed(accuracy, value?, epsilon)))
            }
        }
    }
}

/// How far values are from what is asked for.
struct Miss {
    /// The largest error that they may have.
    error: f64,
    /// What iterations have to do with it.
    slack: f64,
    allowed: f64,
}

/// Relative errors of lattices, at least.
const FINEST: f64 = 1e-11;
/// Rounds of making lattices finer and iterations longer.
const MOST_ROUNDS: usize = 8;

impl Problem<'_> {
    /// This problem with an accuracy that is relative to something else.
    pub(crate) fn aimed_at(self, aim: Aim) -> Self {
        Problem { aim, ..self }
    }

    /// Whether the method is one that an accuracy is asked of.
    pub(crate) fn is_aimed(&self) -> bool {
        let lattice = matches!(
            self.options.method,
            Method::Factored(Features::Gaussian(Anchors::Lattice { .. }))
        );
        if let Method::Sampled(sizes) = self.options.method {
            return sizes.size.is_none();
        }
        let named = lattice && self.given.is_empty() && self.options.lattice_rank().is_none();
        self.is_automatic() || named
    }

    fn miss(&self, solutions: &[&Solution]) -> Miss {
        let accuracy = self.options.accuracy;
        let error = |s: &Solution| s.error_kl();
        match (self.aim, solutions) {
            (Aim::Own | Aim::Divergence { .. } | Aim::Smallest, [cross, x, y]) => {
                let value = cross.value_kl - 0.5 * (x.value_kl + y.value_kl) + self.mass_term();
                Miss {
                    error: error(cross) + 0.5 * (error(x) + error(y)),
                    slack: cross.slack + 0.5 * (x.slack + y.slack),
                    allowed: accuracy * divergence_scale(value, cross.scale()),
                }
            }
            (aim, solutions) => solutions
                .iter()
                .map(|s| Miss {
                    error: error(s),
                    slack: s.slack,
                    allowed: aim.allowed(accuracy, s.value_kl, s.epsilon * s.mass),
                })
                .max_by(|a, b| (a.error / a.allowed).total_cmp(&(b.error / b.allowed)))
                .expect("a term"),
        }
    }

    /// What would bring values to the accuracy that is asked for, if they are not there yet: more iterations, a finer
    /// lattice, more anchors, the exact kernel.
    pub(super) fn closer(&self, solutions: &[&Solution]) -> Option<choose::Choice> {
        let choice = self.choice?;
        let Miss { error, slack, allowed } = self.miss(solutions);
        if !self.is_aimed() || error <= allowed || self.round >= MOST_ROUNDS {
            return None;
        }
        let smallest = self.smallest_tolerance();
        let now = self.tolerance();
        // Errors are proportional to it.
        let wanted = (now * 0.1 * allowed / slack).max(smallest);
        let tolerance = (slack > 0.2 * allowed && wanted <= 0.5 * now).then_some(wanted);
        let same = |error| choose::Choice {
            error,
            tolerance,
            ..choose::Choice::new(choice, self.reason.clone().unwrap_or_default())
        };
        let kernel = error - slack;
        let each = KERNEL * allowed / if solutions.len() > 1 { 2.0 } else { 1.0 };
        if kernel <= 0.8 * allowed {
            // More iterations are all that it takes, if they help.
            return tolerance.map(|_| same(Some(each)));
        }
        // A cloud is both clouds of its term with itself.
        let terms = if solutions.len() > 1 { Terms::All } else { Terms::Cross };
        let sizes = self.sizes(terms);
        let dim = self.mu.dim();
        let (kind, rank) = match choice {
            KernelChoice::Lattice { .. } => {
                let reached = solutions.iter().map(|s| s.bound.unwrap_or(f64::INFINITY));
                if each < 0.9 * reached.fold(0.0, f64::max) && self.has_lattice(each) {
                    return Some(same(Some(each)));
                }
                // No lattice is finer.
                let nodes = solutions.iter().map(|s| s.rank).max().unwrap_or(0);
                let nodes = choose::commas(nodes);
                let reason =
                    format!("the exact kernel, from the potentials of a lattice of {nodes} nodes");
                return if self.is_automatic() {
                    choose::exact_because(reason, &sizes, &self.options)
                        .map(|choice| choose::Choice { tolerance, ..choice })
                } else {
                    tolerance.map(|_| same(Some(each)))
                };
            }
            KernelChoice::Random { rank, .. } => (choose::Kind::Sobol, rank),
            KernelChoice::Adaptive { rank } => (choose::Kind::Adaptive, rank),
            KernelChoice::Sampled(_) => {
                // Terms that are not as good as they may be were limited by time or size.
                let reached = solutions.iter().map(|s| s.error_kl()).fold(0.0, f64::max);
                return (each < 0.9 * reached).then(|| same(Some(each)));
            }
            KernelChoice::Exact { .. } | KernelChoice::Nystrom { .. } => {
                return tolerance.map(|_| same(None));
            }
        };
        let choice = choose::improve(kind, rank, error / allowed, &sizes, dim, &self.options);
        choice.map(|choice| choose::Choice { tolerance, ..choice })
    }

    /// Whether lattices whose errors are at most this can be had for all terms.
    fn has_lattice(&self, error: f64) -> bool {
        let finest = match self.options.precision {
            Precision::F32 => f32::ROUNDING,
            Precision::F64 => FINEST,
        };
        error > 1.5 * finest * self.options.epsilon
            && self.kernels.iter().all(|kernel| kernel.site().has_lattice(error))
    }

    /// Smaller tolerances cannot be told from rounding.
    pub(super) fn smallest_tolerance(&self) -> f64 {
        match self.options.precision {
            Precision::F32 => 1e-6,
            Precision::F64 => 1e-12,
        }
    }
}
