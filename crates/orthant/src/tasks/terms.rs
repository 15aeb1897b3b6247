//! Terms of many clouds, one after the other: with kernels of their own, or one map for all.

use crate::control::{Observer, Stop};
use crate::error::Result;
use crate::measure::{Measure, Points};
use crate::numerics::simd::Float;
use crate::options::{Anchors, Features, Method, Options, features_of};
use crate::problem::{Aim, FeatureCache, Given, Left, Problem, SharedMap, Start, Terms};
use crate::results::Solution;
use crate::solver::Solver;
use crate::term::Scaling;
use crate::words::Term;

/// Whether the kernel depends on which two clouds meet.
pub(super) fn is_of_pair(method: &Method) -> bool {
    let adaptive = matches!(features_of(method), Some(Features::Gaussian(Anchors::Adaptive)));
    adaptive || matches!(method, Method::Nystrom(_))
}

/// Whether one map may serve all clouds.
fn may_share_map(method: &Method) -> bool {
    let lattice = matches!(features_of(method), Some(Features::Gaussian(Anchors::Lattice { .. })));
    features_of(method).is_some() && !lattice && !is_of_pair(method)
}

/// One map for all clouds, if theirs may be one.
pub(super) fn common_map(
    measures: &[&Measure<'_>],
    options: &Options,
) -> Result<Option<SharedMap>> {
    if may_share_map(&options.method) {
        SharedMap::new(&together(measures)?, options)
    } else {
        Ok(None)
    }
}

/// All clouds as one, each with the same mass.
fn together(measures: &[&Measure<'_>]) -> Result<Measure<'static>> {
    let share = 1.0 / measures.len() as f64;
    let (mut values, mut weights) = (Vec::new(), Vec::new());
    for measure in measures {
        let support = measure.support();
        let first = values.len();
        values.resize(first + support.len() * measure.dim(), 0.0);
        for (i, point) in values[first..].chunks_exact_mut(measure.dim()).enumerate() {
            support.points.copy_coordinates(i, 0, point);
        }
        weights.extend(support.weights.iter().map(|w| share * w));
    }
    Measure::weighted(Points::new(values, measures[0].dim())?, &weights)
}

/// Whether a limit that has nothing to do with the pair, or an observer, ended a solve.
pub(super) fn is_interrupted(solution: &Solution) -> bool {
    matches!(solution.stop, Stop::TimeLimit | Stop::Requested)
}

/// A solver, watched by the observer that there is.
pub(super) fn solver<'s, 'd>(
    options: &Options,
    observer: &'s mut Option<&mut dyn Observer>,
) -> Solver<'s, 'd> {
    let solver = Solver::new(options);
    match observer {
        Some(observer) => solver.observer(&mut **observer),
        None => solver,
    }
}

/// The kernels of the terms of some clouds.
pub(super) enum TermSource<'f> {
    /// Each term has its own.
    Apart,
    /// One map for all points, and where its features are kept, if they are.
    Shared { map: &'f SharedMap, cache: Option<Box<dyn KeptFeatures + 'f>> },
}

/// Features of the clouds, kept from one term to the next.
pub(super) trait KeptFeatures {
    /// Solves a term of the clouds with these numbers.
    fn solve(
        &mut self,
        problem: &Problem<'_>,
        numbers: [usize; 2],
        term: (Term, Start<'_>),
        left: &Left,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)>;
}

impl<T: Float> KeptFeatures for FeatureCache<'_, T> {
    fn solve(
        &mut self,
        problem: &Problem<'_>,
        numbers: [usize; 2],
        term: (Term, Start<'_>),
        left: &Left,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)> {
        problem.solve_from(self, numbers, term, left, observer)
    }
}

/// A problem, and a first solution of its one term.
pub(super) type First<'p> = (Problem<'p>, (Solution, Scaling));

impl TermSource<'_> {
    /// Whether one map serves all terms.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, TermSource::Shared { .. })
    }

    fn problem<'p>(
        &self,
        [mu, nu]: [&Measure<'p>; 2],
        options: &Options,
        terms: Terms,
        aim: Aim,
    ) -> Result<Problem<'p>> {
        match self {
            TermSource::Apart => Problem::aimed(mu, nu, (options, &Given::default()), terms, aim),
            TermSource::Shared { map, .. } => Problem::with_map(map, mu, nu, options, terms),
        }
    }

    /// The cloud of a number with itself.
    pub(super) fn own<'p>(
        &mut self,
        number: usize,
        mu: &Measure<'p>,
        (start, aim): (Start<'_>, Aim),
        solver: &mut Solver<'_, '_>,
    ) -> Result<First<'p>> {
        let problem = self.problem([mu, mu], solver.options(), Terms::Own, aim)?;
        solver.or_exactly(problem, Terms::Own, |solver, problem| {
            let left = problem.all_left();
            self.solve(problem, [number; 2], (Term::SelfX, start), &left, solver)
        })
    }

    /// The cross term of the clouds of two numbers: from the start of the solver, or from another.
    pub(super) fn cross<'p>(
        &mut self,
        numbers: [usize; 2],
        clouds: [&Measure<'p>; 2],
        (otherwise, aim): (Start<'_>, Aim),
        solver: &mut Solver<'_, '_>,
    ) -> Result<First<'p>> {
        let problem = self.problem(clouds, solver.options(), Terms::Cross, aim)?;
        solver.or_exactly(problem, Terms::Cross, |solver, problem| {
            solver.cross_by(problem, otherwise, |solver, start, left| {
                self.solve(problem, numbers, (Term::Cross, start), left, solver)
            })
        })
    }

    fn solve(
        &mut self,
        problem: &Problem<'_>,
        numbers: [usize; 2],
        (term, start): (Term, Start<'_>),
        left: &Left,
        solver: &mut Solver<'_, '_>,
    ) -> Result<(Solution, Scaling)> {
        solver.watched(|observer| match self {
            TermSource::Shared { cache: Some(cache), .. } => {
                cache.solve(problem, numbers, (term, start), left, observer)
            }
            _ => problem.solve(term, start, left, observer),
        })
    }
}
