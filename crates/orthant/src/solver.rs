//! From measures and options to solutions.

use std::time::Instant;

use crate::control::{Next, Observer, Stop, Watched};
use crate::error::{Error, Result};
use crate::features::FeatureMatrix;
use crate::measure::Measure;
use crate::options::Options;
#[cfg(feature = "serde")]
use crate::plan::KeptPlan;
use crate::plan::{Plan, Plans};
use crate::problem::{Aim, Given, Left, Problem, Start, Terms};
use crate::results::{Divergence, Solution};
use crate::rows::CostMatrix;
use crate::term::Scaling;
use crate::words::{Phase, Term};

/// Parts of the time that is left that the terms of a cloud with itself may take.
const SHARES: [f64; 2] = [0.25, 0.33];
/// And a stage on the way to a small epsilon.
const STAGES: f64 = 0.5;

/// Regularised optimal transport between two measures.
///
/// ```
/// use orthant::{Measure, Options, Points, rot};
/// // Two points each, at distance 0 and 1: the plan is known in closed form.
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0], 1)?);
/// let solution = rot(&mu, &mu, &Options::builder(1.0).tolerance(1e-12).build()?)?;
/// assert!(solution.converged());
/// let off_diagonal = 0.13447071068499756;
/// assert!((solution.transport_cost.unwrap() - 2.0 * off_diagonal).abs() < 1e-10);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn rot(mu: &Measure<'_>, nu: &Measure<'_>, options: &Options) -> Result<Solution> {
    Solver::new(options).rot(mu, nu)
}

/// The plan of regularised optimal transport between two measures: the coupling, which says how much mass moves from
/// `x_i` to `y_j`.
///
/// ```
/// use orthant::{Measure, Options, Points, plan};
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
/// let nu = Measure::uniform(Points::new(vec![2.1, 0.1, 1.1], 1)?);
/// let options = Options::builder(0.1).build()?;
/// let plan = plan(&mu, &nu, &options)?;
/// assert!(plan.solution().converged());
/// // The first point goes to the second, for the most part.
/// assert_eq!(plan.top(0, 1)?[0].0, 1);
/// // A hundred coupled pairs.
/// let pairs = plan.sample(100, 0)?;
/// assert!(pairs.iter().filter(|[i, j]| *i == 0 && *j == 1).count() > 10);
/// # Ok::<(), orthant::Error>(())
/// ```
///
/// A plan shares the points with its measures, and needs neither these nor the options. So a function can return the plan
/// of points that it owns; only points that are borrowed have to outlive it.
///
/// ```
/// use orthant::{Measure, Options, Plan, Points, plan};
/// fn pairing() -> orthant::Result<Plan<'static>> {
///     let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
///     let nu = Measure::uniform(Points::new(vec![2.1, 0.1, 1.1], 1)?);
///     plan(&mu, &nu, &Options::builder(0.1).build()?)
/// }
/// assert_eq!(pairing()?.top(0, 1)?[0].0, 1);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn plan<'d>(mu: &Measure<'d>, nu: &Measure<'d>, options: &Options) -> Result<Plan<'d>> {
    Solver::new(options).plan(mu, nu)
}

/// The Sinkhorn divergence of two measures, `W(mu, nu) - (W(mu, mu) + W(nu, nu)) / 2`.
///
/// The divergence of exact kernels, and of one positive feature map for all three terms, is never negative beyond
/// rounding. Automatic choices approximate the terms one by one, each with an error bar, on lattices or with anchors of
/// their own: there the divergence may be negative, within [`Divergence::interval`]. [`Divergence::kernels`] tells which
/// it was.
///
/// ```
/// use orthant::{Measure, Options, Points, divergence};
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0], 1)?);
/// let nu = Measure::uniform(Points::new(vec![0.5, 1.5], 1)?);
/// let options = Options::builder(0.1).tolerance(1e-10).build()?;
/// assert!(divergence(&mu, &mu, &options)?.value.abs() < 1e-9);
/// assert!((divergence(&mu, &nu, &options)?.value - 0.25).abs() < 0.01);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn divergence(mu: &Measure<'_>, nu: &Measure<'_>, options: &Options) -> Result<Divergence> {
    Solver::new(options).divergence(mu, nu)
}

/// The Sinkhorn divergence of two measures with the plans of its terms: what its gradient is made of.
///
/// ```
/// use orthant::{Side, Measure, Options, Points, Solver, divergence, plans};
/// // A gradient flow: a few steps of size 1/2 along the gradient, a point of weight 1/3 each.
/// let nu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
/// let options = Options::builder(0.1).tolerance(1e-9).build()?;
/// let mut x = vec![0.2, 0.3, 0.9];
/// let mut last = None;
/// for _ in 0..20 {
///     let mu = Measure::uniform(Points::new(&x, 1)?);
///     let solver = Solver::new(&options);
///     let solver = match &last { None => solver, Some(d) => solver.warm_start_divergence(d) };
///     let plans = solver.plans(&mu, &nu)?;
///     let gradient = plans.gradient().points(Side::X)?;
///     last = Some(plans.into_divergence());
///     x.iter_mut().zip(gradient).for_each(|(x, g)| *x -= 0.5 * 3.0 * 0.5 * g);
/// }
/// let mu = Measure::uniform(Points::new(x, 1)?);
/// assert!(divergence(&mu, &nu, &options)?.value < 1e-4);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn plans<'d>(mu: &Measure<'d>, nu: &Measure<'d>, options: &Options) -> Result<Plans<'d>> {
    Solver::new(options).plans(mu, nu)
}

/// A solve with an observer, a warm start, or a kernel that is given by matrices.
pub struct Solver<'s, 'd> {
    options: Options,
    given: Given<'d>,
    observer: Option<&'s mut dyn Observer>,
    start: [Option<&'s [f64]>; 3],
    /// What the accuracy of a divergence is relative to.
    aim: Aim,
}

impl<'s, 'd> Solver<'s, 'd> {
    /// A solve with these options.
    pub fn new(options: &Options) -> Self {
        let (options, given) = (options.clone(), Given::default());
        Solver { options, given, observer: None, start: [None; 3], aim: Aim::Own }
    }

    /// Takes the cost of every pair from a matrix, a row for each point of the first measure and a column for each of the
    /// second, in place of the cost of the options. The points do not matter then, but for their number and weights.
    ///
    /// For [`Method::Dense`](crate::Method::Dense), which [`Method::Auto`](crate::Method::Auto) is here, and
    /// [`Method::Online`](crate::Method::Online); other methods are [`Error::NotFor`]. A divergence has three matrices, so it
    /// is refused: solve its terms one by one.
    ///
    /// ```
    /// use orthant::{CostMatrix, Measure, Options, Points, Solver};
    /// let mu = Measure::uniform(Points::new(vec![0.0, 1.0], 1)?);
    /// let nu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
    /// // Shipping to the second place is free. A matrix of a slice borrows it.
    /// let costs = [3.0, 0.0, 4.0, 3.0, 0.0, 4.0];
    /// let costs = CostMatrix::new(&costs[..], 2, 3)?;
    /// let options = Options::builder(0.1).build()?;
    /// let plan = Solver::new(&options).costs(costs).plan(&mu, &nu)?;
    /// assert!((plan.transport_cost() - 7.0 / 3.0).abs() < 1e-9);
    /// # Ok::<(), orthant::Error>(())
    /// ```
    #[must_use]
    pub fn costs(mut self, matrix: CostMatrix<'d>) -> Self {
        self.given.costs = Some(matrix);
        self
    }

    /// Takes positive features of the points from matrices, a row for each point of the first measure and of the second, in
    /// place of the features or the cost of the options: the kernel is `k(x_i, y_j) = sum_k x_ik y_jk`, the cost
    /// `-eps log k(x_i, y_j)`. The points do not matter then, but for their number and weights.
    ///
    /// [`Method::Auto`](crate::Method::Auto) and [`Method::Factored`](crate::Method::Factored) take linear time, whatever
    /// features the latter names. [`Method::Dense`](crate::Method::Dense) and [`Method::Online`](crate::Method::Online) visit
    /// all pairs of the same kernel, to check against. [`Method::Nystrom`](crate::Method::Nystrom) is [`Error::NotFor`].
    ///
    /// ```
    /// use orthant::{Measure, Method, Options, Points, Solver, features::FeatureMatrix};
    /// let mu = Measure::uniform(Points::new(vec![0.0, 1.0], 1)?);
    /// let nu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
    /// let xi = FeatureMatrix::new(vec![1.0, 0.1, 0.2, 2.0], 2, 2)?;
    /// let zeta = FeatureMatrix::new(vec![1.0, 0.5, 0.5, 1.0, 0.1, 3.0], 3, 2)?;
    /// let value = |method| -> orthant::Result<f64> {
    ///     let options = Options::builder(1.0).method(method).tolerance(1e-9).build()?;
    ///     // Clones share their entries.
    ///     Ok(Solver::new(&options).features(xi.clone(), zeta.clone()).rot(&mu, &nu)?.value)
    /// };
    /// assert!((value(Method::Auto)? - value(Method::dense())?).abs() < 1e-8);
    /// # Ok::<(), orthant::Error>(())
    /// ```
    #[must_use]
    pub fn features(mut self, x: FeatureMatrix<'d>, y: FeatureMatrix<'d>) -> Self {
        self.given.features = Some([x, y]);
        self
    }

    /// With the matrices of another call.
    pub(crate) fn given(mut self, given: &Given<'d>) -> Self {
        self.given = given.clone();
        self
    }

    /// Calls `observer` after every iteration.
    #[must_use]
    pub fn observer(mut self, observer: &'s mut dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Starts from the potentials of an earlier solution between clouds of the same sizes.
    #[must_use]
    pub fn warm_start(mut self, earlier: &'s Solution) -> Self {
        self.start[0] = Some(&earlier.potential_x);
        self
    }

    /// Starts all three terms from those of an earlier divergence.
    #[must_use]
    pub fn warm_start_divergence(mut self, earlier: &'s Divergence) -> Self {
        self.start = earlier.terms().map(|t| Some(&t.potential_x[..]));
        self
    }

    /// Makes the accuracy of a divergence that of each of its terms.
    pub(crate) fn term_by_term(mut self) -> Self {
        self.aim = Aim::Terms;
        self
    }

    /// Regularised optimal transport between two measures.
    pub fn rot(self, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Solution> {
        let begun = Instant::now();
        let mut solution = self.plan(mu, nu)?.into_solution();
        // Memory is free by now, which takes its time too.
        solution.times.solve = begun.elapsed().saturating_sub(solution.times.features);
        Ok(solution)
    }

    /// Solves regularised optimal transport between two measures, and returns the plan: the coupling, which says how much
    /// mass moves from `x_i` to `y_j`, with its [`Solution`].
    pub fn plan(mut self, mu: &Measure<'d>, nu: &Measure<'d>) -> Result<Plan<'d>> {
        let problem = self.problem(mu, nu, Terms::Cross, Aim::Own)?;
        let (problem, first) = self.or_exactly(problem, Terms::Cross, |solver, problem| {
            solver.cross(problem, Start::Flat)
        })?;
        let (problem, [(solution, scaling)]) = self.improve(problem, Terms::Cross, [first])?;
        Ok(Plan::new(problem, scaling, solution))
    }

    /// Takes up a plan again that was put away ([`Plan::keep`]), of the measures, the options and the matrices that it was
    /// made of: nothing is chosen and nothing is solved, and all numbers have the same bits. Of the feature `serde`.
    #[cfg(feature = "serde")]
    pub fn restore(self, mu: &Measure<'d>, nu: &Measure<'d>, kept: KeptPlan) -> Result<Plan<'d>> {
        Plan::restored(mu, nu, (&self.options, &self.given), kept)
    }

    /// A problem of these options, whose time begins now.
    fn problem(
        &mut self,
        mu: &Measure<'d>,
        nu: &Measure<'d>,
        terms: Terms,
        aim: Aim,
    ) -> Result<Problem<'d>> {
        let (options, given) = (self.options.clone(), self.given.clone());
        let clock = options.clock().of(mu.points().span());
        let asked = (&options, &given);
        self.watched(|watch| Problem::watched(mu, nu, asked, (terms, aim), clock, watch))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Goes on with solved terms until they are as good as the options ask for, or nothing makes them better: with the
    /// problem that they are of.
    pub(crate) fn improve<'p, const N: usize>(
        &mut self,
        mut problem: Problem<'p>,
        terms: Terms,
        mut solved: [(Solution, Scaling); N],
    ) -> Result<(Problem<'p>, [(Solution, Scaling); N])> {
        // The problem of the solutions, if it is not the last one.
        let mut earlier = None;
        loop {
            let solutions: [&Solution; N] = solved.each_ref().map(|(solution, _)| solution);
            let Some(next) = problem.improvement(&solutions) else { break };
            let done = self.round(&problem, |solver| {
                let improved = problem.improved(next, terms, &solutions)?;
                let left = problem.left_after(&solutions);
                let again = terms.list().iter().zip(solutions).map(|(&term, solution)| {
                    let start = Start::After(&problem, &solution.potential_x);
                    solver.solve_within(&improved, term, start, &left)
                });
                let again = again.collect::<Result<Vec<_>>>()?;
                Ok((improved, again))
            })?;
            let (improved, mut again) = match done {
                Ok(done) => done,
                Err(stop) => {
                    solved[0].0.stop = stop;
                    break;
                }
            };
            let before = std::mem::replace(&mut problem, improved);
            // All terms or none: they have one kernel.
            let better = again[0].0.polished.is_some() || width(&again) <= width(&solved);
            for (new, old) in again.iter_mut().zip(&mut solved) {
                if better {
                    std::mem::swap(new, old);
                    old.1.fitted = Some(std::mem::take(&mut new.0.pairs));
                }
                old.0.add_work_of(&new.0);
            }
            earlier = if better { None } else { earlier.or(Some(before)) };
        }
        Ok((earlier.unwrap_or(problem), solved))
    }

    /// Does some work with a problem, or, where a kernel that was chosen automatically breaks down, with the exact one in its
    /// place.
    pub(crate) fn or_exactly<'p, R>(
        &mut self,
        problem: Problem<'p>,
        terms: Terms,
        mut work: impl FnMut(&mut Self, &Problem<'p>) -> Result<R>,
    ) -> Result<(Problem<'p>, R)> {
        let error = match work(self, &problem) {
            Ok(done) => return Ok((problem, done)),
            Err(error) => error,
        };
        let exact = match error {
            Error::Breakdown { .. } => problem.exact_instead(terms)?,
            _ => None,
        };
        match exact {
            Some(exact) => {
                let done = work(self, &exact)?;
                Ok((exact, done))
            }
            None => Err(error),
        }
    }

    /// A round of improvement, which a solution can do without: or why there is none.
    fn round<R>(
        &mut self,
        problem: &Problem<'_>,
        work: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<Result<R, Stop>> {
        let clock = problem.clock();
        if clock.is_over() {
            return Ok(Err(Stop::TimeLimit));
        }
        if self.watched(|watch| watch.phase(Phase::Improving)) == Next::Stop {
            return Ok(Err(Stop::Requested));
        }
        clock.enter(Phase::Improving);
        match clock.try_run(|| work(self)) {
            Ok(done) => Ok(done.ok_or(Stop::TimeLimit)),
            // Asked for at the beginning of a phase.
            Err(Error::Cancelled) => Ok(Err(Stop::Requested)),
            Err(error) => Err(error),
        }
    }

    /// The Sinkhorn divergence of two measures.
    pub fn divergence(self, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Divergence> {
        Ok(self.plans(mu, nu)?.into_divergence())
    }

    /// Computes the Sinkhorn divergence of two measures, and returns the plans of its three terms with it.
    pub fn plans(mut self, mu: &Measure<'d>, nu: &Measure<'d>) -> Result<Plans<'d>> {
        let problem = self.problem(mu, nu, Terms::All, self.aim)?;
        problem.check_shared()?;
        let [_, start_x, start_y] = self.start.map(|s| s.map(Start::Potential));
        let flat = Start::Flat;
        // All three have to be there in the end, so each has a part of the time that is left.
        let (problem, solved) = self.or_exactly(problem, Terms::All, |solver, problem| {
            let part = |share| Left { clock: problem.clock().part(share), spent: 0 };
            let start_x = start_x.unwrap_or(flat);
            let self_x = solver.solve_within(problem, Term::SelfX, start_x, &part(SHARES[0]))?;
            let start_y = start_y.unwrap_or(flat);
            let self_y = solver.solve_within(problem, Term::SelfY, start_y, &part(SHARES[1]))?;
            // For equal clouds the self potential is the solution; for others it is a good start in
            // coordinates in which they have the same covariance.
            let similar = Start::Similar(&self_x.0.potential_x);
            let cross = solver.cross(problem, similar)?;
            Ok([cross, self_x, self_y])
        })?;
        let (problem, solved) = self.improve(problem, Terms::All, solved)?;
        let [(cross, of_cross), (self_x, of_x), (self_y, of_y)] = solved;
        let terms = [cross, self_x, self_y];
        let divergence = Divergence::of(terms, problem.kernels(), problem.mass_term())?;
        Ok(Plans::new(problem, [of_cross, of_x, of_y], divergence))
    }

    /// The cross term: from the start that was given, by way of larger epsilons, or from the start that there is
    /// otherwise.
    pub(crate) fn cross(
        &mut self,
        problem: &Problem<'_>,
        otherwise: Start<'_>,
    ) -> Result<(Solution, Scaling)> {
        self.cross_by(problem, otherwise, |solver, start, left| {
            solver.solve_within(problem, Term::Cross, start, left)
        })
    }

    /// The same with a `last` solve of the caller's.
    pub(crate) fn cross_by(
        &mut self,
        problem: &Problem<'_>,
        otherwise: Start<'_>,
        last: impl FnOnce(&mut Self, Start<'_>, &Left) -> Result<(Solution, Scaling)>,
    ) -> Result<(Solution, Scaling)> {
        let mut left = problem.all_left();
        if let Some(start) = self.start[0] {
            return last(self, Start::Potential(start), &left);
        }
        let Some(earlier) = self.descend(problem) else {
            return last(self, otherwise, &left);
        };
        left.spent = earlier.iterations;
        let (mut solution, scaling) = last(self, Start::Potential(&earlier.potential_x), &left)?;
        solution.add_work_of(&earlier);
        solution.stages += earlier.stages;
        Ok((solution, scaling))
    }

    /// Solves with larger epsilons, if that pays: a solution whose potentials are those to start from. A stage that
    /// fails is no reason to fail: the one before it will do.
    fn descend(&mut self, problem: &Problem<'_>) -> Option<Solution> {
        let [mu, _] = problem.measures();
        let mut last: Option<Solution> = None;
        let stages = problem.annealing_schedule();
        let next = stages.iter().skip(1).copied().chain([self.options.epsilon()]);
        for (&epsilon, next) in stages.iter().zip(next) {
            let spent = last.as_ref().map_or(0, |s| s.iterations);
            let options = self.options.annealed(epsilon);
            if spent >= options.max_iterations {
                break;
            }
            let mut solve = |last: Option<&Solution>| -> Result<Solution> {
                // Some time is for the last one.
                let clock = problem.clock().part(STAGES);
                let stage = self.watched(|watch| problem.stage(&options, clock.clone(), watch))?;
                let start = last.map_or(Start::Flat, |s| Start::Potential(&s.potential_x));
                let left = Left { clock, spent };
                Ok(self.solve_within(&stage, Term::Cross, start, &left)?.0)
            };
            let Ok(mut solution) = solve(last.as_ref()) else { break };
            // As functions of position potentials are about the same.
            let weights = mu.weights().iter();
            solution.potential_x = (solution.potential_kl_x().into_iter().zip(weights))
                .map(|(p, w)| if *w > 0.0 { p + next * w.ln() } else { p })
                .collect();
            if let Some(earlier) = &last {
                solution.add_work_of(earlier);
                solution.stages += earlier.stages;
            }
            let converged = solution.converged();
            last = Some(solution);
            if !converged {
                // Some limit.
                break;
            }
        }
        last
    }

    /// Solves a term of a problem, with all that it has left.
    pub(crate) fn solve(
        &mut self,
        problem: &Problem<'_>,
        term: Term,
        start: Start<'_>,
    ) -> Result<(Solution, Scaling)> {
        self.solve_within(problem, term, start, &problem.all_left())
    }

    fn solve_within(
        &mut self,
        problem: &Problem<'_>,
        term: Term,
        start: Start<'_>,
        left: &Left,
    ) -> Result<(Solution, Scaling)> {
        self.watched(|observer| problem.solve(term, start, left, observer))
    }

    /// With the observer that there is, or none.
    pub(crate) fn watched<R>(&mut self, work: impl FnOnce(&mut dyn Observer) -> R) -> R {
        let observer = self.observer.as_mut().map(|observer| &mut **observer as &mut dyn Observer);
        work(&mut Watched { cancel: &self.options.cancel, observer })
    }
}

/// How wide the interval of a value, or of a divergence of three terms, is.
fn width(solved: &[(Solution, Scaling)]) -> f64 {
    let selves: f64 = solved[1..].iter().map(|(solution, _)| solution.width()).sum();
    solved[0].0.width() + 0.5 * selves
}

impl std::fmt::Debug for Solver<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver").field("options", &self.options).finish_non_exhaustive()
    }
}
