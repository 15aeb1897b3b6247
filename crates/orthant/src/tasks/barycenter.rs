//! Barycentres of measures on a given support, by iterative Bregman projections.
//!
//! The barycentre of measures `a_1, ..., a_K` with weights `l_1, ..., l_K` of sum 1 is the histogram `p` on the support
//! that minimises `sum_k l_k W(a_k, p)`. Plans `P_k = diag(u_k) K_k diag(v_k)` are optimal where the rows of `P_k` sum to
//! `a_k`, the columns of all of them to one `p`, and `prod_k v_k^{l_k} = 1`. Projections in turn (Benamou, Carlier,
//! Cuturi, Nenna & Peyre, *Iterative Bregman Projections for Regularized Transportation Problems*, 2015):
//!
//! ```text
//! s_k = K_k^T u_k,      p = prod_k s_k^{l_k},      v_k = p / s_k,      u_k = a_k / K_k v_k
//! ```
//!
//! Everything is in logarithms, as messages of kernels are: the second step is a half-iteration of Sinkhorn's
//! algorithm whose marginal is given as `log p` (a relaxed one with `tau = 1`). A common factor of `p`
//! only moves into the `u_k`, so `p` is divided by its sum, and no epsilon is too small.
//!
//! `W` blurs: of one measure the barycentre is `K^T (a / K 1)`, wider than `a` by `eps / 2` in the variance. Without
//! that, the barycentre of the divergence minimises `sum_k l_k S(a_k, p)` (Janati, Cuturi & Gramfort, *Debiased Sinkhorn
//! barycenters*, 2020):
//!
//! ```text
//! p = d prod_k s_k^{l_k},      d = sqrt(d p / K d)
//! ```
//!
//! with `K` the kernel of the support with itself. The second equation is the averaged update of `W(p, p)`. Undoing a
//! blur is ill-posed: what the kernel does not see of `p` converges slowly, and matters as little to the value.

use std::time::{Duration, Instant};

use crate::control::{Clock, Observer, Stop, Watched, begin};
use crate::error::{Error, Result, in_clouds};
use crate::features::FeatureMatrix;
use crate::ground::GroundCost;
use crate::kernel::{Arranged, Kernel, Relaxed, Target};
use crate::measure::{Measure, Points, coordinates};
use crate::numerics::{dot, log_sum};
use crate::options::{
    Algorithm, Anchors, Options, has_two_maps, is_euclidean, of_one_solve, without_gauge,
};
use crate::problem::{Described, Given, Problem, Start, Terms};
use crate::results::{MethodUsed, Times};
use crate::rows::CostMatrix;
use crate::sinkhorn::{Run, at_iteration, in_pool};
use crate::solver::Solver;
use crate::words::{Phase, Side, Term};

/// The barycentre of measures on a given support: `p` with the smallest `sum_k l_k W(a_k, p)`.
///
/// The kernel is that of the options: of the squared Euclidean cost, or of features. For matrices of costs or of features
/// see [`Barycenters`].
///
/// ```
/// use orthant::{Measure, Options, Points, barycenter::barycenter};
/// // Two bumps on a grid, at 2 and at 6: between them is one at 4.
/// let grid: Vec<f64> = (0..81).map(|i| f64::from(i) / 10.0).collect();
/// let bump = |at: f64| -> Vec<f64> { grid.iter().map(|x| (-2.0 * (x - at).powi(2)).exp()).collect() };
/// let support = Points::new(&grid, 1)?;
/// let a = Measure::weighted(support.borrowed(), &bump(2.0))?;
/// let b = Measure::weighted(support.borrowed(), &bump(6.0))?;
/// let found = barycenter(&[a, b], &[0.5, 0.5], &support, &Options::builder(0.1).build()?)?;
/// assert!(found.converged());
/// let mean: f64 = grid.iter().zip(&found.weights).map(|(x, p)| x * p).sum();
/// assert!((mean - 4.0).abs() < 1e-4);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn barycenter(
    measures: &[Measure<'_>],
    weights: &[f64],
    support: &Points<'_>,
    options: &Options,
) -> Result<Barycenter> {
    Barycenters::new(options).fixed(measures, weights, support)
}

/// Barycentres with an observer, of the divergence, or with a kernel that is given by matrices.
pub struct Barycenters<'s, 'd> {
    options: Options,
    given: Given<'d>,
    observer: Option<&'s mut dyn Observer>,
    debiased: bool,
}

/// A barycentre, how it was obtained and how good it is.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Barycenter {
    /// Weights of the points of the support, of sum 1.
    pub weights: Vec<f64>,
    /// `sum_k l_k W(a_k, p)`, or of a debiased one `sum_k l_k S(a_k, p)`: the smallest that there is on the support.
    pub value: f64,
    /// `W(a_k, p)` or `S(a_k, p)`, one for each measure; 0 for measures of weight zero, which are left out.
    pub distances: Vec<f64>,
    /// Whether it is that of the divergence.
    pub debiased: bool,
    /// The regularisation.
    pub epsilon: f64,
    /// Largest L1 distance of the first marginal of a plan from its measure; the second ones are the barycentre. Of
    /// a debiased one also that of the plan of `W(p, p)` from `p`.
    pub marginal_error: f64,
    /// Iterations done.
    pub iterations: usize,
    /// Why it ended.
    pub stop: Stop,
    /// Number of features; for exact methods the number of columns of the kernel.
    pub rank: usize,
    /// What was used.
    pub method: MethodUsed,
    /// Where the anchors of Gaussian features really were; None of other kernels.
    pub anchors: Option<Anchors>,
    /// Why, if the choice was automatic.
    pub reason: Option<String>,
    /// Where the time went.
    pub times: Times,
}

impl Barycenter {
    /// Whether the marginal error fell below the tolerance.
    pub fn converged(&self) -> bool {
        self.stop == Stop::Converged
    }

    /// `exp(temperature p_i / max p)`, divided by the sum: a picture of the peaks, whatever the number of points. The
    /// paper's Figure 6 (e) has temperature 1000.
    ///
    /// ```
    /// # use orthant::{Measure, Options, Points, barycenter::barycenter};
    /// let support = Points::new(vec![0.0, 1.0, 2.0], 1)?;
    /// let a = Measure::weighted(support.borrowed(), &[1.0, 2.0, 1.0])?;
    /// let found = barycenter(&[a], &[1.0], &support, &Options::builder(0.01).build()?)?;
    /// let peaks = found.softmax(1000.0)?;
    /// assert!(peaks[1] > 0.999 && found.softmax(f64::NAN).is_err());
    /// # Ok::<(), orthant::Error>(())
    /// ```
    pub fn softmax(&self, temperature: f64) -> Result<Vec<f64>> {
        if !temperature.is_finite() {
            let (name, expected) = ("the temperature of the softmax", "finite");
            return Err(Error::Option { name, expected, value: temperature });
        }
        let largest = self.weights.iter().copied().fold(0.0, f64::max);
        let logs = self.weights.iter().map(|p| temperature * (p / largest));
        let sum = log_sum(logs.clone());
        Ok(logs.map(|log| (log - sum).exp()).collect())
    }
}

impl<'s, 'd> Barycenters<'s, 'd> {
    /// Barycentres with these options.
    ///
    /// Marginals are kept, iterations are not accelerated, and lattices are as fine as the accuracy says for clouds
    /// like these: what the options say of that is ignored, but for `rho` and the Nystrom approximation, which are
    /// errors.
    pub fn new(options: &Options) -> Self {
        let (options, given) = (options.clone(), Given::default());
        Barycenters { options, given, observer: None, debiased: false }
    }

    /// Takes the cost of every pair from a matrix, a row for each point of a measure and a column for each point of the
    /// support: all measures are histograms on as many points. See [`Solver::costs`]. A debiased barycentre needs the
    /// matrix of the support with itself, which is symmetric.
    #[must_use]
    pub fn costs(mut self, matrix: CostMatrix<'d>) -> Self {
        self.given.costs = Some(matrix);
        self
    }

    /// Takes positive features from matrices, a row for each point of a measure and for each point of the support: all
    /// measures are histograms on as many points. See [`Solver::features`].
    #[must_use]
    pub fn features(mut self, x: FeatureMatrix<'d>, support: FeatureMatrix<'d>) -> Self {
        self.given.features = Some([x, support]);
        self
    }

    /// Calls `observer` after every iteration. Its value is `sum_k l_k W(a_k, p)`.
    #[must_use]
    pub fn observer(mut self, observer: &'s mut dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Whether to take the divergence in place of `W`, which blurs. Default: no.
    ///
    /// Plain barycentres converge like Sinkhorn's algorithm. These take far longer, because details that are finer than
    /// the kernel hardly matter to the divergence: a tolerance of 1e-3 has about four digits of the value.
    #[must_use]
    pub fn debiased(mut self, debiased: bool) -> Self {
        self.debiased = debiased;
        self
    }

    /// The barycentre on a given support. Weights are divided by their sum; measures of weight zero are left out.
    pub fn fixed(
        self,
        measures: &[Measure<'_>],
        weights: &[f64],
        support: &Points<'_>,
    ) -> Result<Barycenter> {
        // Whatever is done looks at the time of the whole.
        let clock = self.options.clock();
        let options = self.options.timed(&clock);
        let timed = Barycenters { options, ..self };
        clock.run(|| timed.fixed_within(measures, weights, support, &clock))
    }

    fn fixed_within(
        self,
        measures: &[Measure<'_>],
        weights: &[f64],
        support: &Points<'_>,
        clock: &Clock,
    ) -> Result<Barycenter> {
        let begun = Instant::now();
        let Barycenters { options, given, mut observer, debiased } = self;
        let shares = shares(measures, weights)?;
        check((&options, &given), measures, support, debiased)?;
        let nu = Measure::uniform(support.borrowed());
        // Approximations of one kernel are the same for all; others are what they are.
        let common = (given.is_empty() && is_euclidean(&options.method))
            .then(|| -> Result<_> {
                Ok((pool(measures, &shares, support)?, without_gauge(&options)))
            })
            .transpose()?;
        let whole = match &common {
            Some((pool, options)) => {
                Some(Problem::new(pool, pool, (options, &given), Terms::Cross)?)
            }
            None => None,
        };
        let between = |mu, nu, terms| match (&whole, &common) {
            (Some(whole), Some((_, options))) => whole.between(mu, nu, options, terms),
            _ => Problem::new(mu, nu, (&options, &given), terms),
        };
        let of =
            |k: usize| move |error| Error::InClouds { clouds: [k; 2], source: Box::new(error) };
        let kept: Vec<usize> = (0..measures.len()).filter(|&k| shares[k] > 0.0).collect();
        let problems = kept
            .iter()
            .map(|&k| between(&measures[k], &nu, Terms::Cross).map_err(of(k)))
            .collect::<Result<Vec<_>>>()?;
        let own = if debiased { Some(between(&nu, &nu, Terms::All)?) } else { None };
        let sizes = kept.iter().map(|&k| [measures[k].support().len(), support.len()]);
        let sizes: Vec<_> =
            sizes.chain(own.iter().map(|_| [support.len(), support.len()])).collect();
        problems[0].check_storage(&sizes, &options)?;
        let legs = kept
            .iter()
            .zip(&problems)
            .map(|(&k, problem)| Leg::new(k, shares[k], &measures[k], problem));
        let mut iteration = Iteration {
            legs: legs.collect(),
            own: own.as_ref().map(|p| Own::new(p, support.len())),
            log_p: vec![0.0; support.len()],
            epsilon: options.epsilon,
        };
        let prepared = begun.elapsed();
        let run = Run {
            term: Term::Cross,
            epsilon: options.epsilon,
            offset: 0.0,
            tolerance: options.tolerance,
            max_iterations: options.max_iterations,
            time: clock.left(),
            leave_out: problems[0].kernel(Term::Cross).leave_out(),
            algorithm: Algorithm::Plain,
        };
        let observer = observer.as_mut().map(|observer| &mut **observer as &mut dyn Observer);
        let mut watch = Watched { cancel: &options.cancel, observer };
        clock.enter(Phase::Iterations);
        begin(&mut watch, Phase::Iterations)?;
        let (iterations, stop, marginal_error) = in_pool(|| iteration.run(run, &mut watch))?;

        let mut distances = vec![0.0; measures.len()];
        for leg in &mut iteration.legs {
            distances[leg.measure] = leg.value(options.epsilon);
        }
        if let Some(own) = &mut iteration.own {
            let self_p = own.value(&iteration.log_p, options.epsilon)?;
            for &k in &kept {
                let problem = between(&measures[k], &measures[k], Terms::All).map_err(of(k))?;
                let mut solver = Solver::new(&options);
                let (own, _) = solver.solve(&problem, Term::SelfX, Start::Flat).map_err(of(k))?;
                distances[k] -= 0.5 * (own.value + self_p);
            }
        }
        let value = dot(&shares, &distances);
        if !value.is_finite() {
            return Err(Error::Overflow { what: "the value of the barycentre" });
        }
        let weights: Vec<f64> = iteration.log_p.iter().map(|log| log.exp()).collect();
        let Described { method, anchors, rank, reason } = problems[0].described();
        let built: Duration = iteration.legs.iter().map(|leg| leg.kernel.builds().time).sum();
        let times = Times {
            features: prepared + built,
            solve: begun.elapsed().saturating_sub(prepared + built),
        };
        Ok(Barycenter {
            weights,
            value,
            distances,
            debiased,
            epsilon: options.epsilon,
            marginal_error,
            iterations,
            stop,
            rank,
            method,
            anchors,
            reason,
            times,
        })
    }
}

impl std::fmt::Debug for Barycenters<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Barycenters")
            .field("options", &self.options)
            .field("debiased", &self.debiased)
            .finish_non_exhaustive()
    }
}

/// The weights, of sum 1.
pub(crate) fn shares(measures: &[Measure<'_>], weights: &[f64]) -> Result<Vec<f64>> {
    if measures.is_empty() || weights.len() != measures.len() {
        return Err(Error::ShareCount { weights: weights.len(), measures: measures.len() });
    }
    let option =
        |expected, value| Err(Error::Option { name: "the weight of a measure", expected, value });
    if let Some(bad) = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
        return option("finite and not negative", *bad);
    }
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return option("positive for at least one", 0.0);
    }
    // Divided by the largest first, so that the sum neither overflows nor underflows.
    let sum: f64 = weights.iter().map(|w| w / largest).sum();
    Ok(weights.iter().map(|w| w / largest / sum).collect())
}

/// Whether the options and the measures go together.
fn check(
    (options, given): (&Options, &Given<'_>),
    measures: &[Measure<'_>],
    support: &Points<'_>,
    debiased: bool,
) -> Result<()> {
    let task = "a barycentre";
    if options.is_unbalanced() {
        let (what, remedy) = ("a relaxed marginal (rho, reach)", "leave it out");
        return Err(Error::NotFor { what, task, remedy });
    }
    if let Some(what) = of_one_solve(&options.method) {
        let remedy = "use positive features or an exact method";
        return Err(Error::NotFor { what, task, remedy });
    }
    if options.cost.has_offsets() {
        // What it has of each point of the support alone would be a price of having mass there.
        let remedy = "use the squared Euclidean cost at twice the epsilon, or let the points move";
        return Err(Error::NotFor { what: options.cost.name(), task, remedy });
    }
    given.check(&options.method)?;
    if debiased {
        check_own((options, given), support.len())?;
    }
    let of_points = given.is_empty() && !has_two_maps(&options.method);
    for (k, measure) in measures.iter().enumerate() {
        if of_points && measure.dim() != support.dim() {
            let source = Error::Dimensions { x: measure.dim(), y: support.dim() };
            return Err(Error::InClouds { clouds: [k; 2], source: Box::new(source) });
        }
        if of_points {
            in_clouds([k; 2], options.cost.check(measure.points()))?;
        }
    }
    if of_points {
        options.cost.check(support)?;
    }
    if debiased && matches!(options.cost, GroundCost::Function(_)) {
        // It has to be symmetric.
        let own = Measure::uniform(support.borrowed());
        Problem::new(&own, &own, (options, given), Terms::Own)?;
    }
    Ok(())
}

/// Whether the support has a kernel with itself.
fn check_own((options, given): (&Options, &Given<'_>), points: usize) -> Result<()> {
    let no_self = |given, remedy| Err(Error::NoSelfTerms { given, remedy });
    if let Some(matrix) = &given.costs {
        let shape = matrix.shape();
        if shape.rows != points || shape.columns != points {
            return no_self("a cost matrix", "give that of the support with itself");
        }
        return matrix.check_symmetric();
    }
    if given.is_empty() && has_two_maps(&options.method) {
        return no_self("a pair of feature maps", "use one map for both clouds");
    }
    Ok(())
}

/// All points that there are, by weight: half of it on the support.
fn pool(
    measures: &[Measure<'_>],
    shares: &[f64],
    support: &Points<'_>,
) -> Result<Measure<'static>> {
    let mut values = coordinates(support);
    let mut weights = vec![0.5 / support.len() as f64; support.len()];
    for (measure, share) in measures.iter().zip(shares) {
        let own = measure.weights().iter().map(|w| 0.5 * share * w);
        let points = coordinates(measure.points());
        // Histograms on the support add no points.
        if points == values[..support.len() * support.dim()] {
            weights.iter_mut().zip(own).for_each(|(weight, own)| *weight += own);
        } else {
            values.extend(points);
            weights.extend(own);
        }
    }
    Measure::weighted(Points::new(values, support.dim())?, &weights)
}

/// A marginal by its logarithms.
fn target(log_p: &[f64]) -> Target<'_> {
    Target { weights: &[], relaxed: Some(Relaxed { slack: 0.0, logs: log_p }) }
}

/// One of the measures, and its plan.
struct Leg<'k> {
    measure: usize,
    share: f64,
    problem: &'k Problem<'k>,
    kernel: Box<dyn Kernel + 'k>,
    weights: &'k [f64],
    /// What the marginals should be: the weights, and `p`.
    targets: [Arranged<'static>; 2],
    sums: Vec<f64>,
    log_p: Vec<f64>,
    f: Vec<f64>,
    g: Vec<f64>,
    error: f64,
}

impl<'k> Leg<'k> {
    fn new(measure: usize, share: f64, mu: &'k Measure<'k>, problem: &'k Problem<'k>) -> Self {
        let kernel = problem.kernel(Term::Cross).iterated();
        let weights = mu.support().weights;
        let log_p = vec![0.0; kernel.columns()];
        let targets = kernel.arrange([Target::fixed(weights), target(&log_p)]);
        Leg {
            measure,
            share,
            problem,
            f: vec![0.0; weights.len()],
            weights,
            targets: targets.map(Arranged::into_owned),
            sums: log_p.clone(),
            g: log_p.clone(),
            log_p,
            error: f64::INFINITY,
            kernel,
        }
    }

    /// From `u = a`.
    fn start(&mut self) -> Result<()> {
        for (f, a) in self.f.iter_mut().zip(self.weights) {
            *f = a.ln();
        }
        self.kernel.start(&self.f)
    }

    /// Adds `l_k log K^T u` to `total`.
    fn add_sums(&mut self, total: &mut [f64]) -> Result<()> {
        let kernel = self.kernel.between().expect("a cross term is between two clouds");
        kernel.column_sums(&mut self.sums)?;
        if let Some(j) = self.sums.iter().position(|s| !s.is_finite()) {
            return Err(Error::Breakdown {
                iteration: 0,
                cloud: Side::Y,
                row: j + 1,
                value: self.sums[j].exp(),
                remedy: "the kernel must be positive",
            });
        }
        total.iter_mut().zip(&self.sums).for_each(|(t, s)| *t += self.share * s);
        Ok(())
    }

    /// `v <- p / K^T u`, `u <- a / K v`.
    fn step(&mut self, log_p: &[f64]) -> Result<()> {
        self.log_p.copy_from_slice(log_p);
        let [a, p] = &mut self.targets;
        p.set(target(log_p));
        self.kernel.update_y(p.ordered())?;
        self.error = self.kernel.update_x(a.ordered())?;
        Ok(())
    }

    /// Takes in what the kernel left out; returns how much that was, as the error of a marginal, and whether it is
    /// little enough.
    fn settle(&mut self, run: Run) -> Result<bool> {
        let left_out = self.kernel.settle(run.leave_out)?;
        let [a, p] = &self.targets;
        let found = self.kernel.refresh(a.ordered(), p.ordered())?;
        Ok(left_out <= run.leave_out && found <= 10.0 * run.tolerance.max(run.leave_out))
    }

    /// `W(a_k, p)`, as its dual value.
    fn value(&mut self, epsilon: f64) -> f64 {
        self.kernel.potentials(&mut self.f, &mut self.g);
        let p = self.log_p.iter().zip(&self.g).map(|(log, g)| log.exp() * g).sum::<f64>();
        epsilon * (dot(self.weights, &self.f) + p)
            + self.problem.kernel(Term::Cross).site().offset()
    }

    fn name(&self, error: Error) -> Error {
        let source = Box::new(self.problem.in_cross(error));
        Error::InClouds { clouds: [self.measure; 2], source }
    }
}

/// The support with itself.
struct Own<'k> {
    problem: &'k Problem<'k>,
    kernel: Box<dyn Kernel + 'k>,
    /// What the marginal should be.
    target: Arranged<'static>,
    log_d: Vec<f64>,
    /// Space for the potential of the second cloud, which is the first.
    same: Vec<f64>,
    error: f64,
}

impl<'k> Own<'k> {
    fn new(problem: &'k Problem<'k>, points: usize) -> Self {
        let (kernel, log_d) = (problem.kernel(Term::SelfX).iterated(), vec![0.0; points]);
        let [target, _] = kernel.arrange([target(&log_d); 2]);
        let (target, same) = (target.into_owned(), log_d.clone());
        Own { problem, kernel, target, log_d, same, error: f64::INFINITY }
    }

    fn start(&mut self) -> Result<()> {
        self.kernel.start(&self.log_d)?;
        self.kernel.potentials(&mut self.log_d, &mut self.same);
        Ok(())
    }

    /// Adds `log d`.
    fn add_to(&self, total: &mut [f64]) {
        total.iter_mut().zip(&self.log_d).for_each(|(t, d)| *t += d);
    }

    /// `d <- sqrt(d p / K d)`.
    fn step(&mut self, log_p: &[f64]) -> Result<()> {
        self.target.set(target(log_p));
        self.error = self.kernel.update_y(self.target.ordered())?;
        self.kernel.potentials(&mut self.log_d, &mut self.same);
        Ok(())
    }

    /// `W(p, p)`, as its dual value.
    fn value(&mut self, log_p: &[f64], epsilon: f64) -> Result<f64> {
        let [marginal, _] = self.kernel.marginals(target(log_p), target(log_p))?;
        self.kernel.potentials(&mut self.log_d, &mut self.same);
        let p = log_p.iter().zip(&self.log_d).map(|(log, d)| log.exp() * d).sum::<f64>();
        Ok(epsilon * (2.0 * p - marginal.log_mass)
            + self.problem.kernel(Term::SelfX).site().constant())
    }
}

/// The projections.
struct Iteration<'k> {
    legs: Vec<Leg<'k>>,
    own: Option<Own<'k>>,
    log_p: Vec<f64>,
    epsilon: f64,
}

impl Iteration<'_> {
    /// Iterations, why they ended and the error of the marginals.
    fn run(&mut self, run: Run, observer: &mut dyn Observer) -> Result<(usize, Stop, f64)> {
        let begun = Instant::now();
        for leg in &mut self.legs {
            leg.start().map_err(|e| leg.name(e))?;
        }
        if let Some(own) = &mut self.own {
            own.start()?;
        }
        let mut iterations = 0;
        let span = self.legs[0].kernel.spans()[0].clone();
        loop {
            iterations += 1;
            self.project(iterations)?;
            let error = self.error();
            let mut value = || {
                let legs = self.legs.iter_mut();
                legs.map(|leg| leg.share * leg.value(self.epsilon)).sum::<f64>()
            };
            let verdict = run.check(iterations, error, begun, &mut value, (observer, &span));
            if !verdict.converged && verdict.limit.is_none() {
                continue;
            }
            let settled = self.settle(run)?;
            if let Some(stop) = verdict.stop(settled) {
                return Ok((iterations, stop, error));
            }
        }
    }

    /// All projections once.
    fn project(&mut self, iteration: usize) -> Result<()> {
        let log_p = &mut self.log_p;
        log_p.fill(0.0);
        for leg in &mut self.legs {
            leg.add_sums(log_p).map_err(|e| leg.name(at_iteration(e, iteration)))?;
        }
        if let Some(own) = &self.own {
            own.add_to(log_p);
        }
        let mass = log_sum(log_p.iter().copied());
        for log in log_p.iter_mut() {
            *log -= mass;
        }
        for leg in &mut self.legs {
            leg.step(log_p).map_err(|e| leg.name(at_iteration(e, iteration)))?;
        }
        match &mut self.own {
            Some(own) => own.step(log_p).map_err(|e| at_iteration(e, iteration)),
            None => Ok(()),
        }
    }

    fn error(&self) -> f64 {
        let own = self.own.as_ref().map_or(0.0, |own| own.error);
        self.legs.iter().map(|leg| leg.error).fold(own, f64::max)
    }

    /// Completes what kernels left out; returns whether a solve may end so.
    fn settle(&mut self, run: Run) -> Result<bool> {
        let mut settled = true;
        for leg in &mut self.legs {
            settled &= leg.settle(run).map_err(|e| leg.name(e))?;
        }
        if let Some(own) = &mut self.own {
            settled &= own.kernel.settle(run.leave_out)? <= run.leave_out;
        }
        Ok(settled)
    }
}
