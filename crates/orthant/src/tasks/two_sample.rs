//! Are two clouds draws from one distribution? A permutation test with the Sinkhorn divergence.
//!
//! Under the null hypothesis that all points (with their weights) are exchangeable, every way of calling `n` of the
//! `n + m` points the first cloud is equally likely. So the divergence `D` of the clouds as they are is compared with
//! those of `B` random such ways, and
//!
//! ```text
//! p = (1 + #{D_b >= D}) / (1 + B)
//! ```
//!
//! is at most `t` with probability at most `t`, exactly, for any `B` and any statistic. That holds for the divergence
//! of an approximate kernel, or one that has not quite converged, as well as for that of the exact one: the
//! approximation may cost power, never validity. It must not know which cloud a point came from, though: the
//! kernel is made for all points together, in an order of their own.
//!
//! **All permutations share one kernel.** With `h` the potential of all points with themselves, `K~ = diag(e^h) K
//! diag(e^h)` is a plan, and the scalings of a part of the points are near constants, `1 / w(part)`. So there are no
//! logarithms in the products, and few iterations: the averaged update for the self terms, Sinkhorn's with Anderson
//! acceleration for the cross term, four products a permutation, those of several permutations together as
//! products of matrices. In the divergence `h` cancels:
//!
//! ```text
//! D = eps sum_i a_i log(cross_i / self_i) + eps (log M_xx + log M_yy) / 2
//! ```
//!
//! over the points of both clouds, with `M` the masses of the plans of the self terms (1 at convergence; with them each
//! term is the best dual value along a common shift of its potentials).
//!
//! How far the clouds are apart is another question than whether they differ: the statistic is a divergence under a kernel
//! that suits all permutations. So the divergence of the clouds is solved once more at the end, as
//! [`divergence`](crate::divergence) does it, and has an interval.
//!
//! On a lattice nothing is stored; there, and where `K~` leaves the range of the numbers (clouds far apart at a small
//! epsilon), a permutation is a solve of its own with the same kernel, in logarithms.

use std::time::Instant;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::control::{Clock, Next, Observer, Progress, Stop, memory};
use crate::error::{Error, Result};
use crate::features::FeatureMatrix;
use crate::ground::GroundCost;
use crate::measure::{Measure, Points, are_counted, coordinates};
use crate::numerics::simd;
use crate::options::{
    Anchors, Method, Options, has_two_maps, is_euclidean, of_one_solve, without_gauge,
};
use crate::problem::{Aim, Described, Given, Problem, Start, Terms};
use crate::results::{Divergence, Interval, MethodUsed, Times};
use crate::rows::{CostMatrix, LogRows};
use crate::sinkhorn::anderson::Anderson;
use crate::solver::Solver;
use crate::words::{Phase, Shape, Side, Term};

/// Tests whether two clouds are draws from one distribution, with this many random permutations.
///
/// ```
/// use orthant::{Measure, Options, Points, two_sample::two_sample};
/// let x: Vec<f64> = (0..40).map(|i| (f64::from(i) * 0.37).sin()).collect();
/// let y: Vec<f64> = (0..60).map(|i| 1.0 + (f64::from(i) * 0.73).sin()).collect();
/// let (mu, nu) = (Measure::uniform(Points::new(&x, 1)?), Measure::uniform(Points::new(&y, 1)?));
/// let options = Options::builder(0.1).build()?;
/// let test = two_sample(&mu, &nu, 199, &options)?;
/// assert_eq!(test.p_value, 1.0 / 200.0);
/// assert!(Some(test.statistic) > test.quantile(0.95));
/// // How far the clouds are apart.
/// assert!(test.interval.unwrap().contains(test.value));
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn two_sample(
    mu: &Measure<'_>,
    nu: &Measure<'_>,
    permutations: usize,
    options: &Options,
) -> Result<TwoSample> {
    TwoSampleTest::new(options).permutations(permutations).run(mu, nu)
}

/// A test with an observer, or with a kernel that is given by matrices.
pub struct TwoSampleTest<'s, 'd> {
    options: Options,
    given: Given<'d>,
    permutations: usize,
    observer: Option<&'s mut Watch<'s>>,
}

/// Hears how many permutations are done and how many there will be.
type Watch<'s> = dyn FnMut(usize, usize) -> Next + Send + 's;

/// The result of a test.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TwoSample {
    /// The probability, under the null hypothesis, of a divergence at least as large:
    /// `(1 + exceeding) / (1 + permutations)`.
    pub p_value: f64,
    /// The smallest p-value that there can be: `1 / (1 + permutations)`.
    pub resolution: f64,
    /// The divergence of the clouds under the kernel of all permutations: what these are compared with.
    pub statistic: f64,
    /// The divergence of the clouds, solved for itself with the same options, as [`divergence`](crate::divergence) does
    /// it. The statistic where that was not done: with a cost matrix, when somebody ended the test, when the time was over
    /// before, and where its kernels cannot be had.
    pub value: f64,
    /// Where the divergence of the exact kernel is, if that is known: see
    /// [`Divergence::interval`](crate::Divergence::interval).
    pub interval: Option<Interval>,
    /// What an accuracy of the value is relative to.
    pub(crate) scale: f64,
    /// Those of the permutations, in the order in which they were drawn.
    pub null: Vec<f64>,
    /// How many of them are at least as large, ties counted (also those to a billionth).
    pub exceeding: usize,
    /// How many of the divergences, that of the clouds included, did not converge within the limit of iterations. The
    /// p-value is valid all the same.
    pub unconverged: usize,
    /// Why it ended: converged, if all permutations were done.
    pub stop: Stop,
    /// The regularisation.
    pub epsilon: f64,
    /// Number of features; for exact methods the number of points of both clouds.
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

impl TwoSample {
    /// Number of permutations done.
    pub fn permutations(&self) -> usize {
        self.null.len()
    }

    /// The smallest divergence of a permutation that this part of them does not exceed, `part` from 0 to 1; None if no
    /// permutation was done.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let mut sorted = self.null.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of the length"
        )]
        let rank = (part.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }

    /// Whether `value` is known to be within this part of itself from the divergence of the exact kernel: see
    /// [`Divergence::meets_accuracy`](crate::Divergence::meets_accuracy).
    pub fn meets_accuracy(&self, accuracy: f64) -> bool {
        self.interval.is_some_and(|interval| interval.farthest(self.value) <= accuracy * self.scale)
    }
}

impl<'s, 'd> TwoSampleTest<'s, 'd> {
    /// A test with these options, whose seed is that of the permutations too.
    ///
    /// Marginals are kept: of such options `rho` is an error, as is the Nystrom approximation. A time limit ends the test
    /// with the permutations done by then.
    pub fn new(options: &Options) -> Self {
        let (options, given) = (options.clone(), Given::default());
        TwoSampleTest { options, given, permutations: 999, observer: None }
    }

    /// Takes the cost of every pair from a matrix: that of the points of both clouds, those of the first before those of
    /// the second, with themselves. It is symmetric. See [`Solver::costs`].
    #[must_use]
    pub fn costs(mut self, matrix: CostMatrix<'d>) -> Self {
        self.given.costs = Some(matrix);
        self
    }

    /// Takes positive features from matrices, a row for each point of the first cloud and of the second. See
    /// [`Solver::features`].
    #[must_use]
    pub fn features(mut self, x: FeatureMatrix<'d>, y: FeatureMatrix<'d>) -> Self {
        self.given.features = Some([x, y]);
        self
    }

    /// Number of random permutations. Default: 999.
    #[must_use]
    pub fn permutations(mut self, permutations: usize) -> Self {
        self.permutations = permutations;
        self
    }

    /// Calls `observer` with the number of permutations done and their number, every now and then; none are done while
    /// the points of both clouds are solved together, which comes first.
    #[must_use]
    pub fn observer(mut self, observer: &'s mut Watch<'s>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Runs the test.
    ///
    /// Weights go with their points, as given ([`Measure::mass`] times the weights; a measure of mass 1 with equal
    /// weights gives every point weight 1), and are divided by their sum for each cloud of a permutation. Points of
    /// weight zero are left out.
    pub fn run(self, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<TwoSample> {
        let begun = Instant::now();
        let TwoSampleTest { options, given, permutations, mut observer } = self;
        // Whatever is done looks at the time of the whole.
        let clock = options.clock();
        let options = &options.timed(&clock);
        check((options, &given), permutations, [mu, nu])?;
        let pool = Pool::new([mu, nu], !given.is_empty())?;
        let common = pooled_options(options, &given);
        let whole = pooled_problem(&pool.measure, (&common, &pooled_matrices(&given)?))?;
        let own = whole.between(&pool.measure, &pool.measure, &common, Terms::All)?;
        let single = single_options(&common);
        let own_single = whole.between(&pool.measure, &pool.measure, &single, Terms::All)?;
        // Nothing is done yet, but somebody may want to stop.
        let mut none_yet = |_: &mut Progress<'_>| {
            options.cancel.check();
            observer.as_mut().map_or(Next::Continue, |o| o(0, permutations))
        };
        clock.enter(Phase::Iterations);
        let (solution, _) = clock.run(|| {
            let left = own_single.all_left();
            own_single.solve(Term::SelfX, Start::Flat, &left, &mut none_yet)
        })?;
        // Then there is still the divergence of the clouds, but no more time for it than was spent.
        let stopped = solution.stop == Stop::Requested;
        let most = if stopped { solution.iterations } else { single.max_iterations };
        let each = Options { max_iterations: most, ..single.clone() };
        let h: Vec<f64> = pool.measure.gather(&solution.potential_x).to_vec();
        clock.enter(Phase::Features);
        let table = clock.run(|| Table::new(&own, &h, options))?;
        clock.enter(Phase::Iterations);
        let test = Test {
            pool: &pool,
            whole: &whole,
            single: &each,
            h: &h,
            table,
            given: !given.is_empty(),
            seed: options.seed,
        };
        let prepared = begun.elapsed();

        let total = if stopped { 1 } else { permutations + 1 };
        // As they come: there may be a limit of time.
        let mut results: Vec<Drawn> = Vec::new();
        let mut stop = if stopped { Stop::Requested } else { Stop::Converged };
        while results.len() < total {
            let limited = options.time_limit.is_some();
            let end = total.min(results.len() + if limited { LIMITED } else { test.wave() });
            let (from, work) = (results.len(), |from| test.divergences(from, end));
            // Without the divergence of the clouds there is nothing to return.
            let wave = if from == 0 {
                Some(clock.run(|| work(from))?)
            } else {
                clock.try_run(|| work(from))?
            };
            let Some(wave) = wave else {
                stop = Stop::TimeLimit;
                break;
            };
            results.extend(wave);
            let done = results.len() - 1;
            let next = observer.as_mut().map_or(Next::Continue, |o| o(done, permutations));
            if results.len() < total {
                if next == Next::Stop {
                    stop = Stop::Requested;
                } else if clock.is_over() {
                    stop = Stop::TimeLimit;
                } else {
                    continue;
                }
                break;
            }
        }
        let statistic = results[0].value;
        let done = results.len() - 1;
        let mut still = |_: &mut Progress<'_>| {
            observer.as_mut().map_or(Next::Continue, |o| o(done, permutations))
        };
        let own = match stop {
            Stop::Requested => None,
            _ => own_divergence([mu, nu], (options, &given), &clock, &mut still)?,
        };
        let Described { method, anchors, rank, reason } = whole.described();
        let null: Vec<f64> = results[1..].iter().map(|r| r.value).collect();
        // What is equal but for rounding counts as a tie.
        let least = statistic - 1e-9 * (statistic.abs() + options.epsilon);
        let exceeding = null.iter().filter(|d| **d >= least).count();
        let resolution = 1.0 / (1 + null.len()) as f64;
        Ok(TwoSample {
            p_value: (1 + exceeding) as f64 * resolution,
            resolution,
            statistic,
            value: own.as_ref().map_or(statistic, |d| d.value),
            interval: own.as_ref().and_then(Divergence::interval),
            scale: own.as_ref().map_or(0.0, Divergence::scale),
            exceeding,
            unconverged: results.iter().filter(|r| !r.converged).count(),
            null,
            stop,
            epsilon: options.epsilon,
            rank,
            method,
            anchors,
            reason,
            times: Times { features: prepared, solve: begun.elapsed().saturating_sub(prepared) },
        })
    }
}

impl std::fmt::Debug for TwoSampleTest<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TwoSampleTest")
            .field("options", &self.options)
            .field("permutations", &self.permutations)
            .finish_non_exhaustive()
    }
}

/// The divergence of the clouds in the time that is left; nothing where there is no time, or it cannot be had: the p-value
/// does not need it.
fn own_divergence(
    [mu, nu]: [&Measure<'_>; 2],
    (options, given): (&Options, &Given<'_>),
    clock: &Clock,
    observer: &mut dyn Observer,
) -> Result<Option<Divergence>> {
    // A cost matrix is that of the points of both clouds: it has no terms.
    if given.costs.is_some() || clock.is_over() {
        return Ok(None);
    }
    let options = Options { time_limit: clock.left(), ..options.clone() };
    match clock.try_run(|| Solver::new(&options).given(given).observer(observer).divergence(mu, nu))
    {
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(_) => Ok(None),
        solved => solved,
    }
}

/// Bytes of the divergence of a permutation, on the way to the result.
const DIVERGENCE: f64 = 32.0;

/// Whether the options go with the test.
fn check(
    (options, given): (&Options, &Given<'_>),
    permutations: usize,
    clouds: [&Measure<'_>; 2],
) -> Result<()> {
    let task = "a two-sample test";
    if permutations == 0 {
        let (name, expected) = ("the number of permutations", "at least 1");
        return Err(Error::Option { name, expected, value: 0.0 });
    }
    if options.is_unbalanced() {
        let (what, remedy) = ("a relaxed marginal (rho, reach)", "leave it out");
        return Err(Error::NotFor { what, task, remedy });
    }
    let bytes = DIVERGENCE * permutations as f64;
    let remedy = "ask for fewer permutations";
    memory::check("the divergences of the permutations", bytes, options.max_memory, remedy)?;
    let [x, y] = clouds.map(Measure::mass);
    if !(x.is_finite() && y.is_finite()) {
        return Err(Error::Masses { x, y });
    }
    let method = &options.method;
    if let Some(what) = of_one_solve(method) {
        let remedy = "use positive features or an exact method";
        return Err(Error::NotFor { what, task, remedy });
    }
    given.check(method)?;
    if let Some(matrix) = &given.costs {
        let (got, all) = (matrix.shape(), clouds.map(|c| c.weights().len()).iter().sum());
        if got.rows != all || got.columns != all {
            let expected = Shape { rows: all, columns: all };
            return Err(Error::Shape { what: "the cost matrix of both clouds", expected, got });
        }
        return matrix.check_symmetric();
    }
    if given.is_empty() {
        if has_two_maps(method) {
            let (given, remedy) = ("a pair of feature maps", "use one map for both clouds");
            return Err(Error::NoSelfTerms { given, remedy });
        }
        if clouds[0].dim() != clouds[1].dim() {
            return Err(Error::Dimensions { x: clouds[0].dim(), y: clouds[1].dim() });
        }
        // In the order of the clouds, not in that of all points.
        for (cloud, measure) in [Side::X, Side::Y].into_iter().zip(clouds) {
            let checked = options.cost.check(measure.points());
            checked.map_err(|error| Error::InCloud { cloud, source: Box::new(error) })?;
        }
        // A function has to be symmetric, which the terms of the clouds with themselves say.
        if is_euclidean(method) && !matches!(options.cost, GroundCost::Function(_)) {
            return Ok(());
        }
    }
    // Maps say which point of which cloud they do not take, and matrices whether they have a row for each.
    Problem::new(clouds[0], clouds[1], (options, given), Terms::All).map(|_| ())
}

/// The options for all points together.
fn pooled_options(options: &Options, given: &Given<'_>) -> Options {
    let common = without_gauge(options);
    // What is stored of matrices that are given is checked where it is known, as for methods that are named.
    Options { max_memory: common.max_memory.filter(|_| given.is_empty()), ..common }
}

/// The matrices for all points together: features that were given for each cloud are stacked.
fn pooled_matrices<'d>(given: &Given<'d>) -> Result<Given<'d>> {
    let Some([xi, zeta]) = &given.features else { return Ok(given.clone()) };
    let all = FeatureMatrix::stacked(xi, zeta)?;
    Ok(Given { features: Some([all.clone(), all]), ..Given::default() })
}

/// The kernel of all points. A lattice is as fine as the smallest divergences need, which costs little; the anchors of
/// random features are as many as for the value of all points with themselves, since a permutation has the errors of the
/// others.
fn pooled_problem<'p>(all: &Measure<'p>, asked: (&Options, &Given<'p>)) -> Result<Problem<'p>> {
    let whole = Problem::new(all, all, asked, Terms::Cross)?;
    if whole.is_aimed() && whole.is_lattice() {
        let finer = Problem::aimed(all, all, asked, Terms::Cross, Aim::Smallest);
        return Ok(finer.ok().filter(Problem::is_lattice).unwrap_or(whole));
    }
    Ok(whole)
}

/// The options for solves one by one, on the kernel that there is: no lattice is made finer, nothing is chosen.
fn single_options(common: &Options) -> Options {
    let method = match &common.method {
        Method::Auto => Method::gaussian(),
        other => other.clone(),
    };
    Options { method, accuracy: 0.999, rank: None, time_limit: None, ..common.clone() }
}

/// The points of both clouds, in an order that does not tell which is which.
struct Pool {
    measure: Measure<'static>,
    /// Weights as given, of the points of positive weight.
    weights: Vec<f64>,
    /// Which of these belong to the first cloud.
    first: Vec<bool>,
}

impl Pool {
    /// `given`: the kernel is a matrix in the order of the points.
    fn new(clouds: [&Measure<'_>; 2], given: bool) -> Result<Self> {
        let dim = if given { 1 } else { clouds[0].dim() };
        let n = clouds[0].weights().len();
        let weights: Vec<f64> = masses(clouds).concat();
        let mut values = if given {
            // Of no use.
            (0..weights.len()).map(|i| i as f64).collect()
        } else {
            clouds.map(|c| coordinates(c.points())).concat()
        };
        let mut order: Vec<usize> = (0..weights.len()).collect();
        if !given {
            order.retain(|&i| weights[i] > 0.0);
            let point = |i: usize| &values[i * dim..(i + 1) * dim];
            order.sort_by(|&i, &j| {
                let coordinates = point(i).iter().zip(point(j)).map(|(x, y)| x.total_cmp(y));
                let first = coordinates.into_iter().find(|o| o.is_ne());
                first.unwrap_or_else(|| weights[i].total_cmp(&weights[j]))
            });
            values = order.iter().flat_map(|&i| point(i).to_vec()).collect();
        }
        let all: Vec<f64> = order.iter().map(|&i| weights[i]).collect();
        let measure = Measure::weighted(Points::new(values, dim)?, &all)?;
        let kept = order.iter().filter(|&&i| weights[i] > 0.0);
        let (weights, first) = kept.map(|&i| (weights[i], i < n)).unzip();
        Ok(Pool { measure, weights, first })
    }

    fn len(&self) -> usize {
        self.weights.len()
    }
}

/// Weights of the points of both clouds that can be compared.
fn masses(clouds: [&Measure<'_>; 2]) -> [Vec<f64>; 2] {
    let counted = are_counted(&clouds);
    let masses = |k: usize| {
        let cloud = clouds[k];
        if counted[k] {
            return vec![1.0; cloud.weights().len()];
        }
        cloud.weights().iter().map(|w| w * cloud.mass()).collect()
    };
    [masses(0), masses(1)]
}

/// `K~` of all points: its entries, or features of it. See the [module](self).
struct Table {
    values: Vec<f64>,
    columns: usize,
    entries: bool,
}

/// Memory for a table, where nobody says how much.
const DEFAULT_MEMORY: f64 = 4e9;

impl Table {
    /// Nothing for lattices, and where the memory does not suffice.
    fn new(own: &Problem<'_>, h: &[f64], options: &Options) -> Result<Option<Self>> {
        let Some((source, entries)) = own.kernel(Term::SelfX).rows() else { return Ok(None) };
        let (rows, columns) = (source.rows(), source.rank());
        let bytes = 8.0 * rows as f64 * columns as f64;
        let limit = options.max_memory.map_or(DEFAULT_MEMORY, |limit| limit as f64);
        if bytes > limit {
            if !entries {
                own.check_storage(&[[rows, 0]], options)?;
            }
            return Ok(None);
        }
        let logs: Vec<f64> = h.iter().map(|h| h / options.epsilon).collect();
        let mut values = vec![0.0; rows * columns];
        fill(&*source, &logs, entries, &mut values);
        Ok(Some(Table { values, columns, entries }))
    }

    /// `K~ U` for `width` columns; `middle` is scratch space.
    fn apply(&self, u: &[f64], width: usize, middle: &mut [f64], out: &mut [f64]) {
        let rows = u.len() / width;
        let table = MatRef::from_row_major_slice(&self.values, rows, self.columns);
        let u = MatRef::from_row_major_slice(u, rows, width);
        let out = MatMut::from_row_major_slice_mut(out, rows, width);
        if self.entries {
            matmul(out, Accum::Replace, table, u, 1.0, Par::Seq);
            return;
        }
        let mut middle = MatMut::from_row_major_slice_mut(middle, self.columns, width);
        matmul(middle.as_mut(), Accum::Replace, table.transpose(), u, 1.0, Par::Seq);
        matmul(out, Accum::Replace, table, middle.as_ref(), 1.0, Par::Seq);
    }
}

/// `exp(L_ik + h_i)`, or `exp(L_ij + h_i + h_j)`.
fn fill(source: &dyn LogRows, h: &[f64], entries: bool, values: &mut [f64]) {
    const ROWS: usize = 64;
    let columns = source.rank();
    let stride = simd::padded(columns);
    let mut reference = vec![0.0; stride];
    if entries {
        reference[..columns].copy_from_slice(h);
    }
    let scratch = || {
        (vec![0.0; source.group() * stride], vec![0.0; source.scratch().max(1)], vec![0.0; stride])
    };
    values.par_chunks_mut(ROWS * columns).enumerate().for_each_init(
        scratch,
        |(logs, own, exps), (c, values)| {
            let group = source.group();
            for (g, values) in values.chunks_mut(group * columns).enumerate() {
                let first = c * ROWS + g * group;
                let count = values.len() / columns;
                source.fill(first, stride, &mut logs[..count * stride], own);
                for (i, (row, out)) in
                    logs.chunks_exact_mut(stride).zip(values.chunks_exact_mut(columns)).enumerate()
                {
                    row[columns..].fill(f64::NEG_INFINITY);
                    simd::exp_row(row, &reference, -h[first + i], exps);
                    out.copy_from_slice(&exps[..columns]);
                }
            }
        },
    );
}

/// What all permutations share.
struct Test<'t> {
    pool: &'t Pool,
    whole: &'t Problem<'t>,
    single: &'t Options,
    /// Potential of all points with themselves.
    h: &'t [f64],
    table: Option<Table>,
    /// The kernel is no function of points.
    given: bool,
    seed: u64,
}

/// The divergence of a permutation.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    value: f64,
    converged: bool,
}

/// Permutations whose products are taken together.
const BATCH: usize = 8;
/// Permutations between two looks at the clock, if there is a limit: what is lost when it is over.
const LIMITED: usize = 4 * BATCH;
/// Products below this may have lost terms.
const FAINT: f64 = 1e-250;

impl Test<'_> {
    /// Permutations between two looks at the clock.
    fn wave(&self) -> usize {
        let columns = self.table.as_ref().map_or(1000, |table| table.columns);
        match self.pool.len() as f64 * columns as f64 {
            numbers if numbers < 1e7 => 32 * BATCH,
            numbers if numbers < 1e9 => 4 * BATCH,
            _ => BATCH,
        }
    }

    /// The divergences of some permutations; number 0 is that of the clouds.
    fn divergences(&self, from: usize, to: usize) -> Result<Vec<Drawn>> {
        let starts: Vec<usize> = (from..to).step_by(BATCH).collect();
        let batches = starts
            .into_par_iter()
            .map(|start| self.batch(start, to.min(start + BATCH)))
            .collect::<Result<Vec<_>>>()?;
        Ok(batches.concat())
    }

    /// Which points are of the first cloud.
    fn labels(&self, permutation: usize) -> Vec<bool> {
        let mut labels = self.pool.first.clone();
        if permutation > 0 {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            // A stream for each: results do not depend on who draws them.
            rng.set_stream(permutation as u64);
            labels.shuffle(&mut rng);
        }
        labels
    }

    fn batch(&self, from: usize, to: usize) -> Result<Vec<Drawn>> {
        let mut parts: Vec<Part> =
            (from..to).map(|p| Part::new(self.labels(p), self.pool)).collect();
        if let Some(table) = &self.table {
            iterate(table, &mut parts, self.single);
        }
        (parts.into_par_iter())
            .map(|part| match part.found {
                Some(found) => Ok(found),
                None => self.alone(&part),
            })
            .collect()
    }

    /// A permutation by solves of its own.
    fn alone(&self, part: &Part) -> Result<Drawn> {
        if self.given {
            return Err(Error::Breakdown {
                iteration: 0,
                cloud: Side::X,
                row: 1,
                value: 0.0,
                remedy: "use a larger epsilon",
            });
        }
        let select = |first: bool| -> Result<(Measure<'static>, Vec<f64>)> {
            let indices: Vec<usize> =
                (0..part.labels.len()).filter(|&i| part.labels[i] == first).collect();
            let weights: Vec<f64> = indices.iter().map(|&i| part.weights[i]).collect();
            let measure = Measure::weighted(self.pool.measure.points().select(&indices), &weights)?;
            let shift = self.single.epsilon * part.start(first).ln();
            let potential = indices.iter().map(|&i| self.h[i] + shift).collect();
            Ok((measure, potential))
        };
        let ((mu, x), (nu, y)) = (select(true)?, select(false)?);
        let problem = self.whole.between(&mu, &nu, self.single, Terms::All)?;
        let mut silent = |_: &mut Progress<'_>| Next::Continue;
        let left = problem.all_left();
        let mut term =
            |term, start| problem.solve(term, Start::Potential(start), &left, &mut silent);
        let (self_x, _) = term(Term::SelfX, &x)?;
        let (self_y, _) = term(Term::SelfY, &y)?;
        let (cross, _) = term(Term::Cross, &x)?;
        let value = cross.value_kl - 0.5 * (self_x.value_kl + self_y.value_kl);
        if !value.is_finite() {
            return Err(Error::Overflow { what: "the divergence" });
        }
        Ok(Drawn {
            value,
            converged: cross.converged() && self_x.converged() && self_y.converged(),
        })
    }
}

/// The two clouds of a permutation, and the scalings of its terms.
struct Part {
    labels: Vec<bool>,
    /// Of sum 1 for each cloud.
    weights: Vec<f64>,
    /// Sums of the weights of all points, of sum 1, for the second and the first cloud.
    shares: [f64; 2],
    /// Points of the second and of the first cloud.
    members: [Vec<usize>; 2],
    /// Scalings of the self terms.
    own: Vec<f64>,
    /// The cross term: the scaling of the first cloud, the logarithm of that of the second, and of what it gets.
    u: Vec<f64>,
    g: Vec<f64>,
    back: Vec<f64>,
    anderson: Anderson,
    /// Of the self terms.
    own_error: f64,
    own_value: f64,
    found: Option<Drawn>,
    /// Beyond the range of the numbers.
    lost: bool,
}

impl Part {
    fn new(labels: Vec<bool>, pool: &Pool) -> Self {
        let mut sums = [0.0; 2];
        for (first, w) in labels.iter().zip(&pool.weights) {
            sums[usize::from(*first)] += w;
        }
        let total = sums[0] + sums[1];
        let shares = sums.map(|s| s / total);
        let weights = labels.iter().zip(&pool.weights).map(|(&f, w)| w / sums[usize::from(f)]);
        let members =
            [false, true].map(|f| (0..labels.len()).filter(|&i| labels[i] == f).collect());
        let [m, n] = [&members[0], &members[1]].map(Vec::<usize>::len);
        Part {
            weights: weights.collect(),
            own: labels.iter().map(|&f| 1.0 / shares[usize::from(f)]).collect(),
            u: vec![0.0; n],
            g: vec![-shares[0].ln(); m],
            back: vec![0.0; m],
            anderson: Anderson::new(m),
            own_error: f64::INFINITY,
            own_value: 0.0,
            found: None,
            lost: false,
            labels,
            shares,
            members,
        }
    }

    /// The scaling of a cloud to start from.
    fn start(&self, first: bool) -> f64 {
        1.0 / self.shares[usize::from(first)]
    }

    fn is_done(&self) -> bool {
        self.lost || self.found.is_some()
    }

    /// The scalings of the self terms, of the first and of the second cloud, and that of the second in the cross term:
    /// a column each.
    fn load(&self, columns: &mut [f64], width: usize) {
        for (i, &first) in self.labels.iter().enumerate() {
            columns[i * width + usize::from(!first)] = self.own[i];
        }
        for (&j, g) in self.members[0].iter().zip(&self.g) {
            columns[j * width + 2] = g.exp();
        }
    }

    /// That of the first cloud in the cross term.
    fn load_first(&self, columns: &mut [f64], width: usize) {
        for (&i, u) in self.members[1].iter().zip(&self.u) {
            columns[i * width] = *u;
        }
    }

    /// The averaged update of the self terms.
    fn advance_own(&mut self, products: &[f64], width: usize) {
        let (mut errors, mut masses, mut value) = ([0.0; 2], [0.0; 2], 0.0);
        for (i, &first) in self.labels.iter().enumerate() {
            let (a, k) = (self.weights[i], usize::from(first));
            let product = products[i * width + usize::from(!first)];
            if !in_range(product) {
                self.lost = true;
                return;
            }
            let u = &mut self.own[i];
            let marginal = *u * product;
            errors[k] += (marginal - a).abs();
            masses[k] += marginal;
            value += a * u.ln();
            *u = (*u * (a / product)).sqrt();
        }
        self.own_error = errors[0].max(errors[1]);
        self.own_value = value - 0.5 * (masses[0].ln() + masses[1].ln());
    }

    /// `u <- a / K~ v` of the cross term.
    fn advance_first(&mut self, products: &[f64], width: usize) {
        for (u, &i) in self.u.iter_mut().zip(&self.members[1]) {
            let product = products[i * width + 2];
            self.lost |= !in_range(product);
            *u = self.weights[i] / product;
        }
    }

    /// `v <- b / K~ u`, and what follows.
    fn advance_second(&mut self, products: &[f64], width: usize, options: &Options, last: bool) {
        self.anderson.sent(&self.g);
        for ((g, back), &j) in self.g.iter_mut().zip(&mut self.back).zip(&self.members[0]) {
            let product = products[j * width];
            self.lost |= !in_range(product);
            *back = product.ln();
            *g = self.weights[j].ln() - *back;
        }
        if self.lost {
            return;
        }
        let error = self.anderson.error((&mut self.g, &self.back));
        let value: f64 =
            (self.members[1].iter().zip(&self.u).map(|(&i, u)| self.weights[i] * u.ln()))
                .chain(self.members[0].iter().zip(&self.g).map(|(&j, g)| self.weights[j] * g))
                .sum();
        let converged = error < options.tolerance && self.own_error < options.tolerance;
        if converged || last {
            let value = options.epsilon * (value - self.own_value);
            self.found = Some(Drawn { value, converged });
            self.lost = !value.is_finite();
            return;
        }
        let far = self.anderson.is_far(error).then_some(value);
        self.anderson.judge(&self.g, error, far, false);
        match self.anderson.better() {
            Some(best) => self.g.copy_from_slice(best),
            None => self.anderson.mix((&mut self.g, &self.back)),
        }
    }
}

/// Whether a product has lost nothing that matters.
fn in_range(product: f64) -> bool {
    product > FAINT && product < f64::INFINITY
}

/// The terms of some permutations together, until all have converged.
fn iterate(table: &Table, parts: &mut [Part], options: &Options) {
    let (points, count) = (parts[0].labels.len(), parts.len());
    let (wide, narrow) = (3 * count, count);
    let (mut u, mut out) = (vec![0.0; points * wide], vec![0.0; points * wide]);
    let mut v = vec![0.0; points * narrow];
    let mut middle = vec![0.0; if table.entries { 0 } else { table.columns * wide }];
    for iteration in 1..=options.max_iterations {
        for (b, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_done()) {
            part.load(&mut u[3 * b..], wide);
        }
        options.cancel.check();
        table.apply(&u, wide, &mut middle, &mut out);
        for (b, part) in parts.iter_mut().enumerate().filter(|(_, part)| !part.is_done()) {
            part.advance_own(&out[3 * b..], wide);
            part.advance_first(&out[3 * b..], wide);
            part.load_first(&mut v[b..], narrow);
        }
        let (middle, out) = (&mut middle[..], &mut out[..points * narrow]);
        let middle_len = if table.entries { 0 } else { table.columns * narrow };
        table.apply(&v, narrow, &mut middle[..middle_len], out);
        let last = iteration == options.max_iterations;
        for (b, part) in parts.iter_mut().enumerate().filter(|(_, part)| !part.is_done()) {
            part.advance_second(&out[b..], narrow, options, last);
        }
        if parts.iter().all(Part::is_done) {
            break;
        }
    }
    for part in parts.iter_mut().filter(|part| part.lost) {
        part.found = None;
    }
}
