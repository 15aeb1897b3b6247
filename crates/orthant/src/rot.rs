//! From measures and options to solutions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Cloud, Error, Result, Shape};
use crate::features::{
    ArcCosine, FeatureMap, FeatureMatrix, Gaussian, Linear, Mapped, SquaredEuclidean,
};
use crate::frame::Frame;
use crate::kernel::{
    Builds, CostMatrix, CostRows, Exact, ExactSelf, Factored, FactoredSelf, FeatureCost, Kernel,
    LogPass, LogRows, Moments, Partition, Recomputed, SelfKernel, Side, Stored,
};
use crate::measure::{Measure, Points};
use crate::options::{Cost, Features, Method, Options, Precision};
use crate::simd::{self, Float};
use crate::sinkhorn::{self, Next, Observer, Outcome, Progress, Run, Term, dot};
use crate::solution::{Divergence, PAIRS_LIMIT, Solution, Times, Used};

/// Up to this many pairs `n m`, [`Method::Auto`] computes exactly.
const EXACT_PAIRS: f64 = 25e6;

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
pub fn rot(mu: &Measure<'_>, nu: &Measure<'_>, options: &Options<'_>) -> Result<Solution> {
    Solver::new(options).rot(mu, nu)
}

/// The Sinkhorn divergence of two measures: one kernel for its three terms, so that it is the
/// divergence of a positive-definite kernel and never negative beyond rounding.
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
pub fn divergence(mu: &Measure<'_>, nu: &Measure<'_>, options: &Options<'_>) -> Result<Divergence> {
    Solver::new(options).divergence(mu, nu)
}

/// A solve with an observer or a warm start.
pub struct Solver<'s, 'o> {
    options: &'s Options<'o>,
    observer: Option<&'s mut dyn Observer>,
    start: [Option<&'s [f64]>; 3],
}

impl<'s, 'o> Solver<'s, 'o> {
    /// A solve with these options.
    pub fn new(options: &'s Options<'o>) -> Self {
        Solver { options, observer: None, start: [None; 3] }
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

    /// Regularised optimal transport between two measures.
    pub fn rot(mut self, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Solution> {
        let problem = Problem::new(mu, nu, self.options, Terms::Cross)?;
        let [start, ..] = self.start;
        self.solve(&problem, Term::Cross, start)
    }

    /// The Sinkhorn divergence of two measures.
    pub fn divergence(mut self, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Divergence> {
        let problem = Problem::new(mu, nu, self.options, Terms::All)?;
        problem.check_shared()?;
        let [start_cross, start_x, start_y] = self.start;
        let self_x = self.solve(&problem, Term::SelfX, start_x)?;
        let self_y = self.solve(&problem, Term::SelfY, start_y)?;
        // For equal clouds the self potential is the solution, for similar ones a good start.
        let start_cross = start_cross.unwrap_or(&self_x.potential_x);
        let cross = self.solve(&problem, Term::Cross, Some(start_cross))?;
        // The entropies of the weights cancel; the KL form has fewer digits to lose.
        let value = cross.value_kl - 0.5 * self_x.value_kl - 0.5 * self_y.value_kl;
        if !value.is_finite() {
            return Err(Error::Overflow { what: "the divergence" });
        }
        Ok(Divergence { value, cross, self_x, self_y })
    }

    fn solve(
        &mut self,
        problem: &Problem<'_>,
        term: Term,
        start: Option<&[f64]>,
    ) -> Result<Solution> {
        let mut silent = |_: &mut Progress<'_>| Next::Continue;
        let observer: &mut dyn Observer = match &mut self.observer {
            Some(observer) => &mut **observer,
            None => &mut silent,
        };
        problem.solve(term, start, observer)
    }
}

impl std::fmt::Debug for Solver<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver").field("options", self.options).finish_non_exhaustive()
    }
}

/// Which points of a cloud: those of positive weight, or those of weight zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Support,
    Outside,
}

/// The kernel, once the options have met the data.
#[derive(Debug)]
enum Ground<'p> {
    /// `exp(-||x - y||^2 / eps)`, epsilon in units of the frame.
    SquaredEuclidean(Frame, f64),
    Matrix(&'p CostMatrix<'p>),
    /// For features of the squared Euclidean cost, `frame` is where to take that cost.
    Maps {
        maps: [Arc<dyn FeatureMap>; 2],
        shared: bool,
        used: Used,
        frame: Option<Frame>,
    },
    Explicit(&'p FeatureMatrix<'p>, &'p FeatureMatrix<'p>),
}

/// Which terms will be solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Terms {
    Cross,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Factored,
    Dense,
    Online,
}

struct Problem<'p> {
    mu: &'p Measure<'p>,
    nu: &'p Measure<'p>,
    options: &'p Options<'p>,
    ground: Ground<'p>,
    storage: Storage,
    reason: Option<String>,
    begun: Instant,
    /// The time that it took to get here.
    prepared: Duration,
}

const SQUARED_EUCLIDEAN: &Cost<'static> = &Cost::SquaredEuclidean;
const GAUSSIAN: &Features<'static> = &Features::Gaussian { centred: true };

impl<'p> Problem<'p> {
    fn new(
        mu: &'p Measure<'p>,
        nu: &'p Measure<'p>,
        options: &'p Options<'p>,
        terms: Terms,
    ) -> Result<Self> {
        let begun = Instant::now();
        let (n, m) = (mu.support().len() as f64, nu.support().len() as f64);
        // Of the largest problem to be solved.
        let pairs = if terms == Terms::All { n.max(m) * n.max(m) } else { n * m };
        let mut reason = None;
        let (storage, cost) = match &options.method {
            Method::Auto if pairs <= EXACT_PAIRS => {
                reason = Some(format!("{pairs:.1e} pairs are few enough to be exact"));
                (Storage::Online, Ok(SQUARED_EUCLIDEAN))
            }
            Method::Auto => {
                reason = Some(format!(
                    "{pairs:.1e} pairs are too many to be exact; random features have an error that \
                     falls as 1/sqrt(rank)"
                ));
                (Storage::Factored, Err(GAUSSIAN))
            }
            Method::Factored(features) => (Storage::Factored, Err(features)),
            Method::Dense(cost) => (Storage::Dense, Ok(cost)),
            Method::Online(cost) => (Storage::Online, Ok(cost)),
        };
        let numbers = match (storage, cost) {
            (Storage::Dense, _) => pairs,
            (Storage::Online, _) | (Storage::Factored, Ok(_)) => 0.0,
            (Storage::Factored, Err(features)) => {
                (n + m) * features.rank(mu.dim(), options.rank) as f64
            }
        };
        check_memory(storage, numbers, options)?;
        let ground = match cost {
            Ok(Cost::SquaredEuclidean) => {
                let frame = Frame::around(mu, nu)?;
                let epsilon = frame.epsilon(options.epsilon)?;
                Ground::SquaredEuclidean(frame, epsilon)
            }
            Ok(Cost::Matrix(matrix)) => matrix_ground(matrix, mu, nu, options.epsilon)?,
            Ok(Cost::Features(features)) | Err(features) => {
                feature_ground(features, mu, nu, options)?
            }
        };
        if let Ground::SquaredEuclidean(frame, _) | Ground::Maps { frame: Some(frame), .. } =
            &ground
        {
            // They need potentials too.
            for outside in [mu.outside(), nu.outside()].into_iter().flatten() {
                frame.check_extent(outside)?;
            }
        }
        if let Ground::Maps { maps, .. } = &ground {
            for (cloud, measure) in [(Cloud::X, mu), (Cloud::Y, nu)] {
                maps[cloud as usize]
                    .check(measure.points())
                    .map_err(|error| Error::InCloud { cloud, source: Box::new(error) })?;
            }
        }
        let prepared = begun.elapsed();
        Ok(Problem { mu, nu, options, ground, storage, reason, begun, prepared })
    }

    /// Whether the kernel is defined on each cloud alone.
    fn check_shared(&self) -> Result<()> {
        match self.ground {
            Ground::Matrix(_) => Err(Error::NoSelfTerms {
                given: "a cost matrix",
                remedy: "solve the three terms with a matrix each",
            }),
            Ground::Maps { shared: false, .. } => Err(Error::NoSelfTerms {
                given: "a pair of feature maps",
                remedy: "use one map for both clouds",
            }),
            _ => Ok(()),
        }
    }

    fn measure(&self, cloud: Cloud) -> &'p Measure<'p> {
        match cloud {
            Cloud::X => self.mu,
            Cloud::Y => self.nu,
        }
    }

    fn points(&self, cloud: Cloud, part: Part) -> Points<'_> {
        let measure = self.measure(cloud);
        match part {
            Part::Support => measure.support().points.borrowed(),
            Part::Outside => measure.outside().expect("points outside the support").borrowed(),
        }
    }

    /// Number of features, or of columns where the second cloud is `columns`.
    fn rank(&self, columns: Cloud) -> usize {
        match (&self.ground, self.storage) {
            (Ground::Maps { maps, .. }, Storage::Factored) => maps[0].rank(),
            (Ground::Explicit(xi, _), Storage::Factored) => xi.rank(),
            _ => self.measure(columns).support().len(),
        }
    }

    fn used(&self) -> Used {
        match (self.storage, &self.ground) {
            (Storage::Dense, _) => Used::Dense,
            (Storage::Online, _) => Used::Online,
            (Storage::Factored, Ground::Maps { used, .. }) => *used,
            (Storage::Factored, _) => Used::Explicit,
        }
    }

    /// Features of some points of a cloud.
    fn features(&self, cloud: Cloud, part: Part) -> Box<dyn LogRows + '_> {
        match &self.ground {
            Ground::Maps { maps, .. } => {
                let map = &*maps[cloud as usize];
                Box::new(Mapped::new(map, self.points(cloud, part)))
            }
            Ground::Explicit(xi, zeta) => {
                let matrix = if cloud == Cloud::X { *xi } else { *zeta };
                match self.measure(cloud).indices(part == Part::Support) {
                    None => Box::new(matrix),
                    Some(indices) => Box::new(matrix.select(indices)),
                }
            }
            Ground::SquaredEuclidean(..) | Ground::Matrix(_) => {
                unreachable!("an exact cost has no features")
            }
        }
    }

    /// The kernel of some points of one cloud over the support of another, entry by entry.
    fn entries(&self, rows: Cloud, part: Part, columns: Cloud) -> Box<dyn LogRows + '_> {
        match &self.ground {
            Ground::SquaredEuclidean(frame, epsilon) => Box::new(SquaredEuclidean::new(
                frame,
                *epsilon,
                self.points(rows, part),
                &self.points(columns, Part::Support),
            )),
            Ground::Matrix(cost) => {
                let of = |cloud: Cloud, part: Part| {
                    let measure = self.measure(cloud);
                    match measure.indices(part == Part::Support) {
                        None => (0..measure.weights().len()).collect(),
                        Some(indices) => indices.to_vec(),
                    }
                };
                let transposed = rows == Cloud::Y;
                let (rows, columns) = (of(rows, part), of(columns, Part::Support));
                Box::new(CostRows::new(cost, rows, columns, transposed, self.options.epsilon))
            }
            _ => Box::new(FeatureCost::new(
                self.features(rows, part),
                self.features(columns, Part::Support),
            )),
        }
    }

    fn solve(
        &self,
        term: Term,
        start: Option<&[f64]>,
        observer: &mut dyn Observer,
    ) -> Result<Solution> {
        let begun = Instant::now();
        let (x, y) = match term {
            Term::Cross => (Cloud::X, Cloud::Y),
            Term::SelfX => (Cloud::X, Cloud::X),
            Term::SelfY => (Cloud::Y, Cloud::Y),
        };
        let epsilon = self.options.epsilon;
        let (mu, nu) = (self.measure(x), self.measure(y));
        let offset = match self.ground {
            Ground::Matrix(cost) => cost.least(),
            _ => 0.0,
        };
        let start = match start {
            // u = a: the plan of a constant cost.
            None => mu.support().weights.iter().map(|a| a.ln()).collect(),
            Some(potential) if potential.len() == mu.weights().len() => {
                mu.gather(potential).iter().map(|p| p / epsilon).collect::<Vec<f64>>()
            }
            Some(potential) => {
                return Err(Error::Shape {
                    what: "the potential to start from",
                    expected: Shape { rows: mu.weights().len(), columns: 1 },
                    got: Shape { rows: potential.len(), columns: 1 },
                });
            }
        };
        let task = Task {
            x,
            y,
            start,
            run: Run {
                term,
                epsilon,
                tolerance: self.options.tolerance,
                max_iterations: self.options.max_iterations,
                // All terms together; each does at least one iteration.
                time: self.options.time_limit.map(|t| t.saturating_sub(self.begun.elapsed())),
            },
        };
        let solved = match (self.storage, self.options.precision) {
            (Storage::Factored, Precision::F32) => self.factored::<f32>(&task, observer),
            (Storage::Factored, Precision::F64) => self.factored::<f64>(&task, observer),
            (Storage::Dense, Precision::F32) => {
                let rows = self.entries(x, Part::Support, y);
                self.exact(&task, Stored::<f32>::new(rows), observer)
            }
            (Storage::Dense, Precision::F64) => {
                let rows = self.entries(x, Part::Support, y);
                self.exact(&task, Stored::<f64>::new(rows), observer)
            }
            (Storage::Online, _) => {
                let rows = self.entries(x, Part::Support, y);
                self.exact(&task, Recomputed::new(rows), observer)
            }
        }
        .map_err(|error| self.in_user_rows(error, x, y))?;
        let Solved { outcome, builds, transport_cost } = solved;

        let (a, b) = (mu.support().weights, nu.support().weights);
        let kl =
            |f: &[f64], a: &[f64]| -> f64 { f.iter().zip(a).map(|(f, a)| a * (f - a.ln())).sum() };
        let value = epsilon * (dot(a, &outcome.f) + dot(b, &outcome.g)) + offset;
        let value_kl = epsilon * (kl(&outcome.f, a) + kl(&outcome.g, b)) + offset;
        let outside_x = self.extend(x, y, &outcome.g);
        let outside_y = self.extend(y, x, &outcome.f);
        let to_potential = |f: Vec<f64>, offset: f64| -> Vec<f64> {
            f.into_iter().map(|f| epsilon * f + offset).collect()
        };
        let potential_x = to_potential(mu.scatter(outcome.f, &outside_x), 0.0);
        let potential_y = to_potential(nu.scatter(outcome.g, &outside_y), offset);
        let transport_cost = transport_cost.map(|cost| cost + offset);
        let solution = Solution {
            value,
            value_kl,
            transport_cost,
            epsilon,
            potential_x,
            potential_y,
            marginal_error_x: outcome.x.error,
            marginal_error_y: outcome.y.error,
            iterations: outcome.iterations,
            stop: outcome.stop,
            rank: self.rank(y),
            method: self.used(),
            reason: self.reason.clone(),
            builds: builds.count,
            times: Times {
                features: if term == Term::Cross {
                    self.prepared + builds.time
                } else {
                    builds.time
                },
                solve: begun.elapsed().saturating_sub(builds.time),
            },
            weights_x: mu.weights().to_vec(),
            weights_y: nu.weights().to_vec(),
        };
        check_finite(&solution)?;
        Ok(solution)
    }

    /// Kernels count the points of the support.
    fn in_user_rows(&self, error: Error, x: Cloud, y: Cloud) -> Error {
        match error {
            Error::Breakdown { iteration, cloud, row, value, remedy } => {
                let cloud = if cloud == Cloud::X { x } else { y };
                let row = match self.measure(cloud).indices(true) {
                    None => row,
                    Some(indices) => indices[row - 1] + 1,
                };
                Error::Breakdown { iteration, cloud, row, value, remedy }
            }
            other => other,
        }
    }

    fn factored<T: Float>(&self, task: &Task, observer: &mut dyn Observer) -> Result<Solved> {
        let side = |cloud| Stored::<T>::new(self.features(cloud, Part::Support));
        let (outcome, moments, builds): (Outcome, Box<dyn Moments + '_>, _) = if task.is_self() {
            let mut kernel = FactoredSelf::new(side(task.x));
            let outcome = task.solve_self(self, &mut kernel, observer)?;
            let builds = SelfKernel::builds(&kernel);
            (outcome, Box::new(kernel), builds)
        } else {
            let mut kernel = Factored::new(side(task.x), side(task.y));
            let outcome = task.solve(self, &mut kernel, observer)?;
            let builds = Kernel::builds(&kernel);
            (outcome, Box::new(kernel), builds)
        };
        let transport_cost = if let Ground::Maps { frame: Some(frame), .. } = &self.ground {
            let (x, y) = (self.points(task.x, Part::Support), self.points(task.y, Part::Support));
            let squared = moments.squared_distance(
                frame.dim(),
                &|i, out| frame.copy_coordinates(&x, i, 0, out),
                &|j, out| frame.copy_coordinates(&y, j, 0, out),
            );
            // Of the plan of mass 1, as everything else.
            Some(frame.cost_to_user(squared / task.mass(&outcome))?)
        } else {
            drop(moments);
            self.cost_over_pairs(task, &outcome)
        };
        Ok(Solved { outcome, builds, transport_cost })
    }

    /// `<P, C>` for a cost that is defined by features, pair by pair, unless they are too many.
    fn cost_over_pairs(&self, task: &Task, outcome: &Outcome) -> Option<f64> {
        let work = outcome.f.len() as f64 * outcome.g.len() as f64 * self.rank(task.y) as f64;
        if work > PAIRS_LIMIT {
            return None;
        }
        let mut rows = Recomputed::new(self.entries(task.x, Part::Support, task.y));
        rows.set_potential(&outcome.f);
        Some(-self.options.epsilon * rows.expected_log(&outcome.g))
    }

    fn exact<S: Side>(&self, task: &Task, side: S, observer: &mut dyn Observer) -> Result<Solved> {
        let (outcome, log, builds) = if task.is_self() {
            let mut kernel = ExactSelf::new(side);
            let outcome = task.solve_self(self, &mut kernel, observer)?;
            (outcome, kernel.expected_log(), SelfKernel::builds(&kernel))
        } else {
            let mut kernel = Exact::new(side);
            let outcome = task.solve(self, &mut kernel, observer)?;
            (outcome, kernel.expected_log(), Kernel::builds(&kernel))
        };
        let transport_cost = Some(-self.options.epsilon * log / task.mass(&outcome));
        Ok(Solved { outcome, builds, transport_cost })
    }

    /// `-log sum_j k(x, y_j) v_j` at the points of weight zero.
    fn extend(&self, cloud: Cloud, other: Cloud, g: &[f64]) -> Vec<f64> {
        if self.measure(cloud).outside().is_none() {
            return Vec::new();
        }
        let (rows, message) = if self.storage == Storage::Factored {
            let source = self.features(other, Part::Support);
            let mut message = vec![0.0; simd::padded(source.rank())];
            log_pass(&*source).column_sums(&*source, g, &mut message[..source.rank()]);
            (self.features(cloud, Part::Outside), message)
        } else {
            let mut message = vec![0.0; simd::padded(g.len())];
            message[..g.len()].copy_from_slice(g);
            (self.entries(cloud, Part::Outside, other), message)
        };
        let mut out = vec![0.0; rows.rows()];
        log_pass(&*rows).row_sums(&*rows, &message, &mut out);
        out.into_iter().map(|s| -s).collect()
    }
}

/// Numbers beyond the range of double precision are no result.
fn check_finite(solution: &Solution) -> Result<()> {
    let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
    let what = if !(solution.value.is_finite() && solution.value_kl.is_finite()) {
        "the value"
    } else if !solution.transport_cost.unwrap_or_default().is_finite() {
        "the transport cost"
    } else if !(finite(&solution.potential_x)
        && finite(&solution.potential_y)
        && finite(&solution.potential_kl_x())
        && finite(&solution.potential_kl_y()))
    {
        "a potential"
    } else {
        return Ok(());
    };
    Err(Error::Overflow { what })
}

fn log_pass(source: &dyn LogRows) -> LogPass {
    LogPass::new(source, Partition::new(source.rows(), 64))
}

/// One of the up to three solves of a problem.
struct Task {
    x: Cloud,
    y: Cloud,
    start: Vec<f64>,
    run: Run,
}

/// What the kernels leave.
struct Solved {
    outcome: Outcome,
    builds: Builds,
    transport_cost: Option<f64>,
}

impl Task {
    fn is_self(&self) -> bool {
        self.x == self.y
    }

    /// Mass of the plan that the kernel holds: 1 for cross terms, and at convergence.
    fn mass(&self, outcome: &Outcome) -> f64 {
        if self.is_self() { outcome.x.log_mass.exp() } else { 1.0 }
    }

    fn solve(
        &self,
        problem: &Problem<'_>,
        kernel: &mut dyn Kernel,
        observer: &mut dyn Observer,
    ) -> Result<Outcome> {
        let a = problem.measure(self.x).support().weights;
        let b = problem.measure(self.y).support().weights;
        sinkhorn::solve(kernel, a, b, &self.start, self.run, observer)
    }

    fn solve_self(
        &self,
        problem: &Problem<'_>,
        kernel: &mut dyn SelfKernel,
        observer: &mut dyn Observer,
    ) -> Result<Outcome> {
        let a = problem.measure(self.x).support().weights;
        sinkhorn::solve_self(kernel, a, &self.start, self.run, observer)
    }
}

/// Refuses to store so many numbers, if that is more than is allowed.
fn check_memory(storage: Storage, numbers: f64, options: &Options<'_>) -> Result<()> {
    let Some(limit) = options.max_memory else { return Ok(()) };
    let width = match options.precision {
        Precision::F32 => 4.0,
        Precision::F64 => 8.0,
    };
    let (bytes, limit) = (numbers * width, limit as f64);
    if bytes <= limit {
        return Ok(());
    }
    let (what, remedy) = match storage {
        Storage::Factored => ("the feature matrices", "use a smaller rank or single precision"),
        _ => ("the kernel matrix", "use the online method, or features (gaussian)"),
    };
    Err(Error::Memory { what, bytes, limit, remedy })
}

fn matrix_ground<'p>(
    matrix: &'p CostMatrix<'p>,
    mu: &Measure<'_>,
    nu: &Measure<'_>,
    epsilon: f64,
) -> Result<Ground<'p>> {
    let expected = Shape { rows: mu.weights().len(), columns: nu.weights().len() };
    if matrix.shape() != expected {
        return Err(Error::Shape { what: "the cost matrix", expected, got: matrix.shape() });
    }
    let spread = matrix.spread();
    if spread > 1e9 * epsilon || !spread.is_finite() {
        return Err(Error::CostsTooWide { epsilon, spread });
    }
    Ok(Ground::Matrix(matrix))
}

fn check_rank(map: &dyn FeatureMap) -> Result<()> {
    match map.rank() {
        0 => Err(Error::Option { name: "the rank of a map", expected: "at least 1", value: 0.0 }),
        _ => Ok(()),
    }
}

fn feature_ground<'p>(
    features: &'p Features<'p>,
    mu: &Measure<'_>,
    nu: &Measure<'_>,
    options: &Options<'_>,
) -> Result<Ground<'p>> {
    let shared = |map: Arc<dyn FeatureMap>, used, frame| {
        if mu.dim() != nu.dim() {
            return Err(Error::Dimensions { x: mu.dim(), y: nu.dim() });
        }
        Ok(Ground::Maps { maps: [map.clone(), map], shared: true, used, frame })
    };
    let Options { epsilon, rank, seed, .. } = *options;
    match features {
        Features::Gaussian { centred } => {
            let map = Gaussian::paper(mu, nu, epsilon, rank, seed, *centred)?;
            let frame = map.frame().clone();
            shared(Arc::new(map), Used::Gaussian, Some(frame))
        }
        Features::ArcCosine { order, kappa, sigma } => {
            let map = ArcCosine::new(mu.dim(), *order, *kappa, *sigma, rank, seed)?;
            shared(Arc::new(map), Used::ArcCosine, None)
        }
        Features::Linear => shared(Arc::new(Linear::new(mu.dim())?), Used::Linear, None),
        Features::Map(map) => {
            check_rank(&**map)?;
            shared(map.clone(), Used::Map, None)
        }
        Features::Pair(x, y) => {
            check_rank(&**x)?;
            if x.rank() != y.rank() {
                return Err(Error::Ranks { x: x.rank(), y: y.rank() });
            }
            let maps = [x.clone(), y.clone()];
            Ok(Ground::Maps { maps, shared: false, used: Used::Map, frame: None })
        }
        Features::Explicit(xi, zeta) => {
            if xi.rank() != zeta.rank() {
                return Err(Error::Ranks { x: xi.rank(), y: zeta.rank() });
            }
            for (what, matrix, measure) in
                [("the first feature matrix", xi, mu), ("the second feature matrix", zeta, nu)]
            {
                let (rows, columns) = (measure.weights().len(), matrix.rank());
                if matrix.rows() != rows {
                    return Err(Error::Shape {
                        what,
                        expected: Shape { rows, columns },
                        got: Shape { rows: matrix.rows(), columns },
                    });
                }
            }
            Ok(Ground::Explicit(xi, zeta))
        }
    }
}
