//! Measures, options and matrices of a call, put together: which kernels, how good they have to be, and what a solve leaves.

mod aim;
mod build;
mod choose;
mod finish;
mod given;
#[cfg(feature = "serde")]
mod kept;
mod limits;
mod other_measures;
mod shared_map;

pub(crate) use aim::Aim;
pub(crate) use build::KernelChoice;
pub(crate) use given::Given;
#[cfg(feature = "serde")]
pub(crate) use kept::Drawing;
pub(crate) use other_measures::Described;
pub(crate) use shared_map::{FeatureCache, Places, SharedMap};

use std::time::{Duration, Instant};

use build::{Setting, TermKernels};

use crate::control::{Clock, Clocked, Observer, Watched, begin};
use crate::error::Result;
use crate::measure::Measure;
use crate::options::{Algorithm, Anchors, Features, Method, Options};
use crate::results::{Kernels, MethodUsed, Solution};
use crate::sampling::Pairs;
use crate::sinkhorn::{Run, anneal};
use crate::term::{Form, Scaling, Solved, Task, TermKernel, TermPlan, Work};
use crate::words::{Part, Phase, Side, Term, clouds};

/// Which terms will be solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terms {
    Cross,
    /// The first cloud with itself, which is the second too.
    Own,
    All,
}

impl Terms {
    pub(crate) fn list(self) -> &'static [Term] {
        match self {
            Terms::Cross => &[Term::Cross],
            Terms::Own => &[Term::SelfX],
            Terms::All => &[Term::Cross, Term::SelfX, Term::SelfY],
        }
    }
}

/// Where a solve starts.
#[derive(Clone, Copy)]
pub(crate) enum Start<'s> {
    Flat,
    /// From potentials of this problem.
    Potential(&'s [f64]),
    /// From potentials of this problem, as another kernel has them.
    After(&'s Problem<'s>, &'s [f64]),
    /// From potentials of another, taken as they are in the coordinates of the term.
    Similar(&'s [f64]),
}

/// What is left for a solve: time, and iterations besides those that earlier solves of its term have spent.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    pub(crate) clock: Clock,
    pub(crate) spent: usize,
}

/// Two measures and the kernels of their terms. Solves leave it as it is.
pub(crate) struct Problem<'p> {
    mu: Measure<'p>,
    nu: Measure<'p>,
    options: Options,
    given: Given<'p>,
    kernels: TermKernels<'p>,
    reason: Option<String>,
    /// What was chosen automatically, or is fitted to the plan.
    choice: Option<KernelChoice>,
    /// What the accuracy is relative to.
    aim: Aim,
    /// L1 error of marginals, if it is smaller than usual.
    tight: Option<f64>,
    /// Whether potentials of an approximation come before the exact kernel.
    polishes: bool,
    /// How often it was improved.
    round: usize,
    /// The time that it has, since it was begun.
    clock: Clock,
    /// The time that it took to get here.
    prepared: Duration,
}

impl<'p> Problem<'p> {
    pub(crate) fn new(
        mu: &Measure<'p>,
        nu: &Measure<'p>,
        (options, given): (&Options, &Given<'p>),
        terms: Terms,
    ) -> Result<Self> {
        Problem::aimed(mu, nu, (options, given), terms, Aim::Own)
    }

    /// A problem with an accuracy that is relative to something else.
    pub(crate) fn aimed(
        mu: &Measure<'p>,
        nu: &Measure<'p>,
        (options, given): (&Options, &Given<'p>),
        terms: Terms,
        aim: Aim,
    ) -> Result<Self> {
        let mut silent = Watched { cancel: &options.cancel, observer: None };
        Problem::watched(mu, nu, (options, given), (terms, aim), options.clock(), &mut silent)
    }

    /// A problem with an observer, within a time that has begun.
    pub(crate) fn watched(
        mu: &Measure<'p>,
        nu: &Measure<'p>,
        (options, given): (&Options, &Given<'p>),
        (terms, aim): (Terms, Aim),
        clock: Clock,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let begun = Instant::now();
        let mut observer = Clocked { clock: &clock, observer, stopped: false };
        let (kernels, choice, reason) = clock.run(|| {
            begin(&mut observer, Phase::Choosing)?;
            limits::check_rho(mu, nu, options, terms)?;
            let (error, clock) = (None, &clock);
            let setting = Setting { mu, nu, options, given, terms, aim, error, clock };
            build::check_cost(setting)?;
            if let Some(kernels) = build::of_given(setting)? {
                return Ok((kernels, None, None));
            }
            if !options.cost.is_squared_distance() {
                let (kernels, reason) = build::of_pairs(setting)?;
                return Ok((kernels, None, reason));
            }
            if !matches!(options.method, Method::Auto) {
                let (kernels, choice) = build::named(setting)?;
                return Ok((kernels, choice, None));
            }
            let gauged = setting.gauged()?;
            let shared = || match terms {
                Terms::Cross | Terms::Own => Ok(None),
                Terms::All => setting.common(Term::Cross).map(Some),
            };
            let list = setting.list(&gauged);
            let found = choose::choose(&list, options, shared, clock, &mut observer)?;
            let kernels = build::chosen(found.kernel, Form::Features, gauged, setting, None)?;
            Ok((kernels, Some(found.kernel), Some(found.reason)))
        })?;
        let problem = Problem::of(mu, nu, options, kernels, clock);
        let (given, prepared) = (given.clone(), begun.elapsed());
        Ok(Problem { given, reason, choice, aim, prepared, ..problem })
    }

    /// A problem of these kernels, about which nothing is known.
    fn of(
        mu: &Measure<'p>,
        nu: &Measure<'p>,
        options: &Options,
        kernels: TermKernels<'p>,
        clock: Clock,
    ) -> Self {
        Problem {
            mu: mu.clone(),
            nu: nu.clone(),
            options: options.clone(),
            given: Given::default(),
            kernels,
            reason: None,
            choice: None,
            aim: Aim::Own,
            tight: None,
            polishes: false,
            round: 0,
            clock,
            prepared: Duration::ZERO,
        }
    }

    /// This problem with what [`Problem::improvement`] found.
    pub(crate) fn improved(
        &self,
        next: choose::Choice,
        terms: Terms,
        solutions: &[&Solution],
    ) -> Result<Self> {
        let begun = Instant::now();
        let Problem { mu, nu, options, given, aim, clock, .. } = self;
        let (error, aim) = (next.error, *aim);
        let setting = Setting { mu, nu, options, given, terms, aim, error, clock };
        let plans: Vec<([Side; 2], &Pairs)> = terms
            .list()
            .iter()
            .map(|t| clouds(*t))
            .zip(solutions.iter().map(|s| &s.pairs))
            .collect();
        let gauged = setting.gauged()?;
        let kernels = build::chosen(next.kernel, Form::Features, gauged, setting, Some(&plans))?;
        let online = next.kernel == KernelChoice::Exact { stored: false };
        Ok(Problem {
            reason: Some(next.reason).filter(|reason| !reason.is_empty()),
            choice: Some(next.kernel),
            aim,
            tight: next.tolerance.or(self.tight),
            polishes: online && (self.polishes || !self.is_exact()),
            round: self.round + 1,
            prepared: begun.elapsed(),
            ..Problem::of(mu, nu, options, kernels, self.clock.clone())
        })
    }

    /// What would bring values closer to those of the exact kernel: more anchors or that kernel itself, if an
    /// automatic choice did not bring all of these as close as was asked for; anchors that know the plan; the exact
    /// kernel, if the options ask for it.
    pub(crate) fn improvement(&self, solutions: &[&Solution]) -> Option<choose::Choice> {
        let spent = solutions.iter().any(|s| s.iterations >= self.options.max_iterations);
        if spent || !solutions.iter().all(|s| s.converged()) {
            return None;
        }
        // Anchors that are asked for are fitted to their plan once.
        if let (Some(KernelChoice::Adaptive { rank }), false, 0) =
            (self.choice, self.is_automatic(), self.round)
        {
            let reason = "anchors around pairs of the plan".to_owned();
            return Some(choose::Choice::new(KernelChoice::Adaptive { rank }, reason));
        }
        if self.options.polish && !self.is_exact() {
            let reason = format!("polished, after {}", self.kernels.used.as_str());
            return Some(choose::Choice::new(KernelChoice::Exact { stored: false }, reason));
        }
        self.closer(solutions)
    }

    /// This problem with the exact kernel, where the kernel that was chosen automatically breaks down; None if it was not
    /// chosen, or all pairs would take hours.
    pub(crate) fn exact_instead(&self, terms: Terms) -> Result<Option<Self>> {
        let name = self.kernels.used.as_str();
        let reason =
            format!("the exact kernel: {name} features break down where points are so far apart");
        let Some(exact) = choose::exact_because(reason, &self.sizes(terms), &self.options)
            .filter(|_| self.is_automatic() && !self.is_exact())
        else {
            return Ok(None);
        };
        // There are no potentials to start from.
        self.improved(exact, terms, &[]).map(|exact| Some(Problem { polishes: false, ..exact }))
    }

    /// Larger epsilons to go through first, falling; none if that does not pay.
    pub(crate) fn annealing_schedule(&self) -> Vec<f64> {
        let mean = match (self.options.algorithm, self.kernels.used) {
            // Samples start from those before them.
            (_, MethodUsed::Sampled) => None,
            (Algorithm::Auto, _) => self.kernel(Term::Cross).site().mean_cost(),
            _ => None,
        };
        mean.map_or_else(Vec::new, |mean| anneal::schedule(self.options.epsilon, mean))
    }

    /// The cross term with the options of a larger epsilon.
    pub(crate) fn stage(
        &self,
        options: &Options,
        clock: Clock,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let (asked, what) = ((options, &self.given), (Terms::Cross, Aim::Own));
        Problem::watched(&self.mu, &self.nu, asked, what, clock, observer)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// All of the time that it has, and all iterations.
    pub(crate) fn all_left(&self) -> Left {
        Left { clock: self.clock.clone(), spent: 0 }
    }

    /// What is left after solves of its terms.
    pub(crate) fn left_after(&self, solutions: &[&Solution]) -> Left {
        let spent = solutions.iter().map(|s| s.iterations).max().unwrap_or(0);
        Left { clock: self.clock.clone(), spent }
    }

    fn is_automatic(&self) -> bool {
        matches!(self.options.method, Method::Auto) && self.given.is_empty()
    }

    /// The kernel of a term.
    pub(crate) fn kernel(&self, term: Term) -> &(dyn TermKernel + 'p) {
        self.kernels.get(term)
    }

    /// The plan of a term.
    pub(crate) fn plan<'k>(&'k self, term: Term, scaling: &'k Scaling) -> TermPlan<'k> {
        TermPlan { kernel: self.kernel(term), scaling }
    }

    /// Whether the kernel is that of the cost. Other costs than the squared Euclidean one are what their features say.
    fn is_exact(&self) -> bool {
        self.kernels.first().is_exact()
    }

    /// See [`Work::centred`].
    fn is_centred(&self) -> bool {
        match self.choice {
            Some(KernelChoice::Random { .. } | KernelChoice::Adaptive { .. }) => true,
            Some(KernelChoice::Lattice { .. }) => false,
            _ => self.options.certify,
        }
    }

    /// Errors of the marginals count in the distance from the converged value, so what is chosen for an accuracy
    /// must converge to a part of it.
    fn tolerance(&self) -> f64 {
        let asked = self.options.tolerance;
        let usual = if self.is_aimed() {
            asked.min((0.02 * self.options.accuracy).max(self.smallest_tolerance()))
        } else {
            asked
        };
        self.tight.map_or(usual, |tight| tight.min(usual))
    }

    /// Whether the kernel is defined on each cloud alone.
    pub(crate) fn check_shared(&self) -> Result<()> {
        self.kernels.check_shared()
    }

    /// Points of positive weight of the two clouds of each term.
    fn sizes(&self, terms: Terms) -> Vec<[f64; 2]> {
        let size = |cloud| self.measure(cloud).support().len() as f64;
        terms.list().iter().map(|&term| clouds(term).map(size)).collect()
    }

    fn measure(&self, cloud: Side) -> &Measure<'p> {
        match cloud {
            Side::X => &self.mu,
            Side::Y => &self.nu,
        }
    }

    /// The two measures.
    pub(crate) fn measures(&self) -> [&Measure<'p>; 2] {
        [&self.mu, &self.nu]
    }

    pub(crate) fn max_memory(&self) -> Option<u64> {
        self.options.max_memory
    }

    /// Whether a marginal is relaxed.
    pub(crate) fn is_relaxed(&self) -> bool {
        self.options.is_unbalanced()
    }

    /// Whether one map serves both clouds.
    pub(crate) fn has_one_map(&self) -> bool {
        self.kernels.one_map
    }

    /// Whether the terms of a divergence have one kernel or an approximation of it each.
    pub(crate) fn kernels(&self) -> Kernels {
        self.kernels.kernels
    }

    /// Where the anchors are, of features that have such.
    fn anchors(&self) -> Option<Anchors> {
        let features = match (self.kernels.used, &self.options.method) {
            (MethodUsed::Gaussian | MethodUsed::Lattice, Method::Factored(features)) => {
                Some(features)
            }
            _ => None,
        };
        match (self.choice, features) {
            (Some(KernelChoice::Random { draw, .. }), _) => Some(Anchors::Random(draw)),
            (Some(KernelChoice::Adaptive { .. }), _) => Some(Anchors::Adaptive),
            (Some(KernelChoice::Lattice { stored }), _) => Some(Anchors::Lattice { stored }),
            (_, Some(Features::Gaussian(anchors))) => Some(*anchors),
            _ => None,
        }
    }

    /// What a divergence has beside its terms: `eps/2 (m_a - m_b)^2`, if marginals are relaxed.
    pub(crate) fn mass_term(&self) -> f64 {
        if self.options.is_unbalanced() {
            0.5 * self.options.epsilon * (self.mu.mass() - self.nu.mass()).powi(2)
        } else {
            0.0
        }
    }

    /// Solves a term.
    pub(crate) fn solve(
        &self,
        term: Term,
        start: Start<'_>,
        left: &Left,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)> {
        self.solve_by(term, start, left, observer, |task, work| self.kernel(term).solve(task, work))
    }

    /// Solves a term with `work` of the caller's.
    fn solve_by(
        &self,
        term: Term,
        start: Start<'_>,
        left: &Left,
        observer: &mut dyn Observer,
        work: impl FnOnce(&mut Task<'_>, &mut Work<'_>) -> Result<Solved>,
    ) -> Result<(Solution, Scaling)> {
        let clock = &left.clock;
        let mut observer = Clocked { clock, observer, stopped: false };
        clock.run(|| {
            begin(&mut observer, Phase::Features)?;
            let begun = Instant::now();
            let (kernel, mut task) = (self.kernel(term), self.task(term, start, left)?);
            let site = kernel.site();
            let [x, y] = site.clouds();
            let centred = self.is_centred();
            let solved = work(&mut task, &mut Work { clock, observer: &mut observer, centred })
                .map_err(|error| site.in_user_rows(error, Part::Support, [x, y]))?;
            // Errors at points of weight zero are told apart from those at the others.
            let outside = [
                kernel.outside(&solved, x, &solved.outcome.g)?,
                kernel.outside(&solved, y, &solved.outcome.f)?,
            ];
            let (solution, scaling) = self.finish(&task, solved, outside, begun);
            finish::check_finite(&solution)?;
            Ok((solution, scaling))
        })
    }

    /// What there is to do for a term.
    fn task<'t>(&'t self, term: Term, start: Start<'t>, left: &Left) -> Result<Task<'t>> {
        let site = self.kernel(term).site();
        let [x, _] = site.clouds();
        let weights = site.weights();
        let flat = matches!(start, Start::Flat);
        let mut rough = None;
        let start = match start {
            // u = a: the plan of a constant cost.
            Start::Flat => weights[0].iter().map(|a| a.ln()).collect(),
            Start::Potential(potential) => site.logs(x, potential)?,
            Start::Similar(potential) => site.similar_logs(x, potential)?,
            Start::After(before, potential) => {
                let mixes = matches!(self.options.algorithm, Algorithm::Auto | Algorithm::Anderson);
                let online = self.choice == Some(KernelChoice::Exact { stored: false });
                if mixes && online && !before.is_exact() && !self.options.is_unbalanced() {
                    let kernel = before.kernel(term);
                    rough = Some((kernel as _, kernel.site().logs(x, potential)?));
                }
                site.logs(x, potential)?
            }
        };
        let run = Run {
            term,
            epsilon: self.options.epsilon,
            offset: site.offset(),
            tolerance: self.tolerance(),
            max_iterations: self.options.max_iterations - left.spent,
            // All terms together; each does at least one iteration.
            time: left.clock.left(),
            leave_out: 0.0,
            algorithm: self.options.algorithm,
        };
        let spans = site.clouds().map(|cloud| site.span(cloud));
        Ok(Task { start, flat, rough, weights, spans, unbalanced: site.unbalanced(), run })
    }
}

#[cfg(test)]
mod tests;
