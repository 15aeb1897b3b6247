//! Many clouds: the divergences of all pairs, with what pairs have in common computed once.

mod arrange;

use std::time::Instant;

pub use arrange::{Embedding, Merge, embedding, leaves, linkage};

use crate::control::{Clock, Next, Observer, Stop};
use crate::coordinates::Gauge;
use crate::error::{Error, Result, in_clouds};
use crate::measure::{Measure, Points};
use crate::numerics::simd::Float;
use crate::options::{Anchors, Cost, Features, Method, Options, Precision};
use crate::problem::{Aim, Left, Places, Pool, Problem, Shelf, Start, Terms};
use crate::results::{
    Certainty, Divergence, Interval, Kernels, Solution, Used, debiased, divergence_scale,
};
use crate::solver::Solver;
use crate::term::Scaling;
use crate::words::Term;

/// The Sinkhorn divergences of all pairs of some measures of one dimension.
///
/// What pairs have in common is computed once; what that is depends on the method ([`Sharing`]):
///
/// | method | kernel of a term | shared |
/// |---|---|---|
/// | exact, lattices, [`Method::Auto`] | its own: that of the cost, or an approximation in its own coordinates, with a bound | self terms |
/// | random anchors, the paper's features, arc-cosine, linear, a map | one map for all clouds, with anchors for all of them | self terms, and the features of each cloud: stored once, used in all of its terms |
/// | the same, if all features together need more than [`max_memory`](crate::OptionsBuilder::max_memory) | the same | self terms; features are evaluated again for every pair, to the same result |
/// | adaptive anchors, Nystrom | one for the pair | nothing |
///
/// [`Method::Auto`] chooses for each term, as [`rot`](crate::rot()) does: values are certified term by term, with an
/// accuracy that is relative to the divergence ([`Divergence::keeps`]). Self terms that are not accurate enough for a
/// pair of clouds that are close are solved again, once, with that of the smallest divergences. Where epsilon is small and cross terms are solved by way of larger ones, features of these are the pair's own.
/// A pair has the same number in both directions, and a cloud is at distance 0 of itself.
///
/// ```
/// use orthant::{Measure, Options, Points, compare, leaves, linkage};
/// // Four translates of a cloud: the divergence is the squared length of the translation.
/// let clouds: Vec<Measure> = [0.0, 5.0, 1.0, 6.5]
///     .iter()
///     .map(|t| Ok(Measure::uniform(Points::new(vec![*t, t + 0.3, t + 0.4], 1)?)))
///     .collect::<Result<_, orthant::Error>>()?;
/// let comparison = compare(&clouds, &Options::builder(0.1).tolerance(1e-9).build()?)?;
/// let matrix = comparison.matrix().unwrap();
/// assert!((matrix[1] - 25.0).abs() < 1e-6);
/// assert_eq!(leaves(&linkage(&matrix, 4)?), [0, 2, 1, 3]);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn compare(measures: &[Measure<'_>], options: &Options<'_>) -> Result<Comparison> {
    Comparer::new(options).compare(measures)
}

/// Two of many clouds, by their numbers from 0, and how far apart they are.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pair {
    /// The cloud with the smaller number.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// The divergence.
    pub value: f64,
    /// Where that of the exact kernel is, if it is known: see [`Divergence::interval`].
    pub interval: Option<Interval>,
    /// Whether all terms converged.
    pub converged: bool,
    /// Whether the divergence is known to be as close to that of the exact kernel as the options ask for: see
    /// [`Divergence::keeps`].
    pub accurate: bool,
    /// What the cross term used.
    pub method: Used,
    /// Iterations of the cross term.
    pub iterations: usize,
}

/// What pairs have in common: see [`compare`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Sharing {
    /// The term of each cloud with itself.
    SelfTerms,
    /// That, and the features of each cloud.
    Features,
    /// That and the feature map; features do not fit into the memory all together.
    Map,
    /// Kernels depend on the pair.
    Nothing,
}

impl Sharing {
    /// A word for programs: `self_terms`, `features`, `map`, `nothing`.
    pub fn as_str(self) -> &'static str {
        match self {
            Sharing::SelfTerms => "self_terms",
            Sharing::Features => "features",
            Sharing::Map => "map",
            Sharing::Nothing => "nothing",
        }
    }
}

/// The divergences of all pairs of some clouds, or of those that were finished.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Comparison {
    /// Number of clouds.
    pub count: usize,
    /// The pairs that are finished: (0, 1), (0, 2), ..., (1, 2), ...
    pub pairs: Vec<Pair>,
    /// What they share.
    pub sharing: Sharing,
}

impl Comparison {
    /// Whether no pair is missing.
    pub fn is_complete(&self) -> bool {
        self.pairs.len() == pairs_of(self.count)
    }

    /// The pair of two different clouds, in either order, if it is finished.
    pub fn pair(&self, i: usize, j: usize) -> Option<&Pair> {
        let key = (i.min(j), i.max(j));
        let at = self.pairs.binary_search_by(|p| (p.first, p.second).cmp(&key)).ok()?;
        Some(&self.pairs[at])
    }

    /// The divergence of two clouds, if it is finished; 0 of a cloud and itself.
    pub fn value(&self, i: usize, j: usize) -> Option<f64> {
        if i == j && i < self.count { Some(0.0) } else { self.pair(i, j).map(|p| p.value) }
    }

    /// Where the divergence of the exact kernel is, if that is known.
    pub fn interval(&self, i: usize, j: usize) -> Option<Interval> {
        if i == j && i < self.count {
            return Some(Interval::new(0.0, 0.0, Certainty::Exact));
        }
        self.pair(i, j)?.interval
    }

    /// All divergences, row-major, if no pair is missing.
    pub fn matrix(&self) -> Option<Vec<f64>> {
        let each = |i| (0..self.count).map(move |j| self.value(i, j));
        (0..self.count).flat_map(each).collect()
    }

    /// Whether all pairs are there and converged.
    pub fn converged(&self) -> bool {
        self.is_complete() && self.pairs.iter().all(|p| p.converged)
    }
}

fn pairs_of(count: usize) -> usize {
    count * count.saturating_sub(1) / 2
}

/// Told of every pair when it is finished.
type Each<'s> = dyn FnMut(&Pair) -> Next + 's;

/// A comparison that is watched, or goes on from an earlier one.
///
/// ```
/// use orthant::{Comparer, Measure, Next, Options, Points, compare};
/// let cloud = |t: f64| Ok(Measure::uniform(Points::new(vec![t, 2.0 * t + 1.0], 1)?));
/// let clouds: Vec<Measure> = [0.0, 0.5, 2.0].map(cloud).into_iter().collect::<orthant::Result<_>>()?;
/// let options = Options::builder(0.1).build()?;
/// // Stopped after the first pair, and continued.
/// let part = Comparer::new(&options).each(&mut |_| Next::Stop).compare(&clouds)?;
/// assert_eq!((part.pairs.len(), part.is_complete()), (1, false));
/// let all = Comparer::new(&options).finished(part.pairs).compare(&clouds)?;
/// assert_eq!(all, compare(&clouds, &options)?);
/// # Ok::<(), orthant::Error>(())
/// ```
pub struct Comparer<'s, 'o> {
    options: &'o Options<'o>,
    observer: Option<&'s mut dyn Observer>,
    each: Option<&'s mut Each<'s>>,
    finished: Vec<Pair>,
}

impl<'s, 'o> Comparer<'s, 'o> {
    /// A comparison with these options. A [`time_limit`](crate::OptionsBuilder::time_limit) is that of the whole
    /// comparison: a pair that it interrupts is not finished.
    pub fn new(options: &'o Options<'o>) -> Self {
        Comparer { options, observer: None, each: None, finished: Vec::new() }
    }

    /// Calls `observer` after every iteration of every term. If it asks to stop, the pair is not finished.
    #[must_use]
    pub fn observer(mut self, observer: &'s mut dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Calls `each` with every pair when it is finished, but not with those that were before. It may stop the
    /// comparison.
    #[must_use]
    pub fn each(mut self, each: &'s mut Each<'s>) -> Self {
        self.each = Some(each);
        self
    }

    /// Pairs of an earlier comparison of the same measures with the same options, in any order: they are not computed
    /// again. The result is the same, to the last bit, as if all were computed now.
    #[must_use]
    pub fn finished(mut self, pairs: Vec<Pair>) -> Self {
        self.finished = pairs;
        self
    }

    /// Compares.
    pub fn compare(self, measures: &[Measure<'_>]) -> Result<Comparison> {
        // Whatever is done looks at the time of the whole.
        let clock = self.options.clock();
        let options = self.options.timed(&clock);
        Comparer { options: &options, ..self }.compare_within(measures, &clock)
    }

    fn compare_within(mut self, measures: &[Measure<'_>], clock: &Clock) -> Result<Comparison> {
        let begun = Instant::now();
        let count = measures.len();
        check_clouds(measures)?;
        self.check_options()?;
        let mut pairs = std::mem::take(&mut self.finished);
        check_finished(&mut pairs, count)?;
        let all: Vec<&Measure<'_>> = measures.iter().collect();
        let pool = clock.run(|| common_pool(&all, self.options))?;
        let places;
        let (way, sharing) = match &pool {
            None if is_of_pair(&self.options.method) => (None, Sharing::Nothing),
            None => (Some(Way::Apart), Sharing::SelfTerms),
            Some(pool) if !pool.has_features() => {
                (Some(Way::Pooled { pool, source: Box::new(Fresh) }), Sharing::SelfTerms)
            }
            Some(pool) => {
                let limit = self.options.max_memory.map_or(f64::INFINITY, |limit| limit as f64);
                let keeps = pool.bytes(measures, self.options) <= limit;
                let cancel = &self.options.cancel;
                places = Places::new(pool, measures);
                let source: Box<dyn Source + '_> = match self.options.precision {
                    Precision::F32 => Box::new(Shelf::<f32>::new(pool, &places, keeps, cancel)),
                    Precision::F64 => Box::new(Shelf::<f64>::new(pool, &places, keeps, cancel)),
                };
                let sharing = if keeps { Sharing::Features } else { Sharing::Map };
                (Some(Way::Pooled { pool, source }), sharing)
            }
        };
        let mut terms = Turns { measures, begun, selves: vec![[None, None]; count], way };
        let before = pairs.clone();
        'all: for i in 0..count {
            for j in i + 1..count {
                if before.binary_search_by(|p| (p.first, p.second).cmp(&(i, j))).is_ok() {
                    continue;
                }
                let pair = clock.try_run(|| self.pair(&mut terms, [i, j]))?.flatten();
                let Some(pair) = pair else { break 'all };
                pairs.push(pair);
                if let Some(each) = &mut self.each
                    && each(&pair) == Next::Stop
                {
                    break 'all;
                }
            }
        }
        pairs.sort_unstable_by_key(|p| (p.first, p.second));
        Ok(Comparison { count, pairs, sharing })
    }

    /// One pair, unless a limit or an observer comes in between.
    fn pair(&mut self, terms: &mut Turns<'_>, clouds: [usize; 2]) -> Result<Option<Pair>> {
        let [first, second] = clouds;
        let Some(divergence) = terms.divergence(clouds, self.options, &mut self.observer)? else {
            return Ok(None);
        };
        let accuracy = self.options.accuracy;
        let interval = divergence.interval().filter(|i| i.low.is_finite() && i.high.is_finite());
        Ok(Some(Pair {
            first,
            second,
            value: divergence.value,
            interval,
            converged: divergence.converged(),
            accurate: divergence.keeps(accuracy),
            method: divergence.cross.method,
            iterations: divergence.cross.iterations,
        }))
    }

    fn check_options(&self) -> Result<()> {
        let [x, y] = self.options.rho;
        if x != y {
            return Err(Error::UnequalRho { x, y });
        }
        let given = match &self.options.method {
            Method::Dense(Cost::Matrix(_)) | Method::Online(Cost::Matrix(_)) => "a cost matrix",
            method => match features_of(method) {
                Some(Features::Pair(..)) => "a pair of feature maps",
                Some(Features::Explicit(..)) => "matrices of features",
                _ => return Ok(()),
            },
        };
        let remedy = "use one feature map for all clouds, or the squared Euclidean cost";
        Err(Error::TwoClouds { given, remedy })
    }
}

impl std::fmt::Debug for Comparer<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparer").field("options", self.options).finish_non_exhaustive()
    }
}

fn features_of<'m>(method: &'m Method<'_>) -> Option<&'m Features<'m>> {
    match method {
        Method::Factored(features)
        | Method::Dense(Cost::Features(features))
        | Method::Online(Cost::Features(features)) => Some(features),
        _ => None,
    }
}

/// Whether the kernel depends on which two clouds meet.
pub(crate) fn is_of_pair(method: &Method<'_>) -> bool {
    let adaptive = matches!(features_of(method), Some(Features::Gaussian(Anchors::Adaptive)));
    adaptive || matches!(method, Method::Nystrom(_))
}

/// Whether one map may serve all clouds.
fn needs_pool(method: &Method<'_>) -> bool {
    let lattice = matches!(features_of(method), Some(Features::Gaussian(Anchors::Lattice { .. })));
    features_of(method).is_some() && !lattice && !is_of_pair(method)
}

/// One map for all clouds, if theirs may be one.
pub(crate) fn common_pool(
    measures: &[&Measure<'_>],
    options: &Options<'_>,
) -> Result<Option<Pool>> {
    if needs_pool(&options.method) { Pool::new(&together(measures)?, options) } else { Ok(None) }
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

fn check_clouds(measures: &[Measure<'_>]) -> Result<()> {
    let count = measures.len();
    if count < 2 {
        return Err(Error::FewClouds { count });
    }
    let x = measures[0].dim();
    match measures.iter().position(|m| m.dim() != x) {
        None => Ok(()),
        Some(k) => in_clouds([0, k], Err(Error::Dimensions { x, y: measures[k].dim() })),
    }
}

/// Sorts pairs that are there already.
fn check_finished(pairs: &mut [Pair], count: usize) -> Result<()> {
    pairs.sort_unstable_by_key(|p| (p.first, p.second));
    let twice = |w: &[Pair]| (w[0].first, w[0].second) == (w[1].first, w[1].second);
    let known = |p: &&Pair| p.first < p.second && p.second < count && p.value.is_finite();
    let bad = pairs.iter().find(|p| !known(p));
    match bad.or_else(|| pairs.windows(2).find(|w| twice(w)).map(|w| &w[0])) {
        None => Ok(()),
        Some(p) => Err(Error::FinishedPair { first: p.first, second: p.second, count }),
    }
}

/// How terms are solved, one by one.
enum Way<'f> {
    /// With a kernel of its own each.
    Apart,
    /// With one map.
    Pooled { pool: &'f Pool, source: Box<dyn Source + 'f> },
}

/// Where the features of a term come from.
trait Source {
    fn solve(
        &mut self,
        problem: &Problem<'_>,
        clouds: [usize; 2],
        term: Term,
        start: Start<'_>,
        left: &Left,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)>;
}

/// From nowhere: the kernel is computed from the map.
struct Fresh;

impl Source for Fresh {
    fn solve(
        &mut self,
        problem: &Problem<'_>,
        _: [usize; 2],
        term: Term,
        start: Start<'_>,
        left: &Left,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)> {
        problem.solve(term, start, left, observer)
    }
}

impl<T: Float> Source for Shelf<'_, T> {
    fn solve(
        &mut self,
        problem: &Problem<'_>,
        clouds: [usize; 2],
        term: Term,
        start: Start<'_>,
        left: &Left,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)> {
        problem.solve_from(self, clouds, (term, start), left, observer)
    }
}

/// The terms, one after the other.
struct Turns<'f> {
    measures: &'f [Measure<'f>],
    begun: Instant,
    /// Clouds with themselves: with the accuracy of their own value, and with that of the smallest divergences.
    selves: Vec<[Option<Solution>; 2]>,
    /// None where the terms of a pair have nothing to do with those of another.
    way: Option<Way<'f>>,
}

/// Whether a limit that has nothing to do with the pair, or an observer, ended a solve.
pub(crate) fn is_interrupted(solution: &Solution) -> bool {
    matches!(solution.stop, Stop::TimeLimit | Stop::Requested)
}

/// How accurate self terms are.
#[derive(Debug, Clone, Copy)]
enum Level {
    Usual,
    /// For divergences that are as small as accuracies count.
    Finest,
}

impl Turns<'_> {
    /// The divergence of two clouds, unless it is interrupted.
    fn divergence(
        &mut self,
        clouds: [usize; 2],
        options: &Options<'_>,
        observer: &mut Option<&mut dyn Observer>,
    ) -> Result<Option<Divergence>> {
        let [mu, nu] = clouds.map(|k| &self.measures[k]);
        let Some([self_x, self_y]) = self.selves(clouds, Level::Usual, options, observer)? else {
            let Some(options) = options.since(self.begun).filter(|_| self.way.is_none()) else {
                return Ok(None);
            };
            let divergence = in_clouds(clouds, solver(&options, observer).divergence(mu, nu))?;
            return Ok(Some(divergence).filter(|d| !d.terms().into_iter().any(is_interrupted)));
        };
        let Some(left) = options.since(self.begun) else { return Ok(None) };
        let way = self.way.as_mut().expect("self terms are shared");
        let first = {
            let mut solver = solver(&left, observer);
            let own = [&self_x, &self_y];
            in_clouds(clouds, way.cross(clouds, [mu, nu], own, &mut solver, &left))?
        };
        let Cross { mut problem, first, kernels } = first;
        let mut own = [self_x, self_y];
        let mass_term = problem.mass_term();
        if problem.is_aimed() && !is_interrupted(&first.0) {
            // Whether their errors leave enough of what the divergence may have.
            let value = debiased([&first.0, &own[0], &own[1]], mass_term)?;
            let allowed = options.accuracy * divergence_scale(value, first.0.scale());
            if self_error(&own) > 0.5 * allowed {
                let finest = self.selves(clouds, Level::Finest, options, observer)?;
                let Some(finest) = finest else { return Ok(None) };
                own = finest;
            }
            let selves = 0.5 * (own[0].value_kl + own[1].value_kl) - mass_term;
            problem = problem.aimed_at(Aim::Divergence { selves, error: self_error(&own) });
        }
        let mut solver = solver(&left, observer);
        let (_, cross, _) = in_clouds(clouds, solver.improve(problem, Terms::Cross, first))?;
        let [self_x, self_y] = own;
        let value = in_clouds(clouds, debiased([&cross, &self_x, &self_y], mass_term))?;
        let divergence = Divergence { value, kernels, cross, self_x, self_y };
        Ok(Some(divergence).filter(|d| !d.terms().into_iter().any(is_interrupted)))
    }

    /// Two clouds with themselves, if that is shared and nothing comes in between.
    fn selves(
        &mut self,
        clouds: [usize; 2],
        level: Level,
        options: &Options<'_>,
        observer: &mut Option<&mut dyn Observer>,
    ) -> Result<Option<[Solution; 2]>> {
        if self.way.is_none() {
            return Ok(None);
        }
        for k in clouds {
            if self.selves[k][level as usize].is_none() {
                let Some(options) = options.since(self.begun) else { return Ok(None) };
                let own = self.own(k, level, &mut solver(&options, observer));
                let own = in_clouds([k; 2], own)?;
                if is_interrupted(&own) {
                    return Ok(None);
                }
                self.selves[k][level as usize] = Some(own);
            }
        }
        Ok(Some(clouds.map(|k| self.selves[k][level as usize].clone().expect("solved above"))))
    }

    /// A cloud with itself.
    fn own(&mut self, k: usize, level: Level, solver: &mut Solver<'_, '_>) -> Result<Solution> {
        let (mu, options) = (&self.measures[k], solver.options());
        let (problem, first) = match (&mut self.way, level) {
            (Some(Way::Pooled { pool, source }), _) => {
                let problem = Problem::pooled(pool, mu, mu, options, Terms::Own)?;
                let left = problem.all_left();
                let first = solver.watched(|observer| {
                    source.solve(&problem, [k; 2], Term::SelfX, Start::Flat, &left, observer)
                })?;
                (problem, first)
            }
            (_, Level::Usual) => {
                let problem = Problem::new(mu, mu, options, Terms::Own)?;
                let first = solver.solve(&problem, Term::SelfX, Start::Flat)?;
                (problem, first)
            }
            (_, Level::Finest) => {
                let problem = Problem::aimed(mu, mu, options, Terms::Own, Aim::Smallest)?;
                let usual = self.selves[k][0].as_ref().expect("the usual ones come first");
                let start = Start::Potential(&usual.potential_x);
                let first = solver.solve(&problem, Term::SelfX, start)?;
                (problem, first)
            }
        };
        Ok(solver.improve(problem, Terms::Own, first)?.1)
    }
}

/// The error that self terms may bring into a divergence.
fn self_error(own: &[Solution; 2]) -> f64 {
    0.5 * (own[0].error_kl() + own[1].error_kl())
}

/// A solver, watched by the observer that there is.
pub(crate) fn solver<'s, 'o>(
    options: &'o Options<'o>,
    observer: &'s mut Option<&mut dyn Observer>,
) -> Solver<'s, 'o> {
    let solver = Solver::new(options);
    match observer {
        Some(observer) => solver.observer(&mut **observer),
        None => solver,
    }
}

/// A cross term as it was solved first.
struct Cross<'p> {
    problem: Problem<'p>,
    first: (Solution, Scaling),
    kernels: Kernels,
}

impl Way<'_> {
    /// The cross term of two clouds whose self terms there are.
    fn cross<'p>(
        &mut self,
        clouds: [usize; 2],
        [mu, nu]: [&'p Measure<'p>; 2],
        [self_x, _]: [&Solution; 2],
        solver: &mut Solver<'_, '_>,
        options: &'p Options<'p>,
    ) -> Result<Cross<'p>> {
        // As for a divergence of two.
        let similar = Start::Similar(&self_x.potential_x);
        Ok(match self {
            Way::Apart => {
                let aim = estimate([mu, nu], options);
                let problem = Problem::aimed(mu, nu, options, Terms::Cross, aim)?;
                let first = solver.cross(&problem, mu, nu, similar)?;
                Cross { problem, first, kernels: Kernels::PerTerm }
            }
            Way::Pooled { pool, source } => {
                let problem = Problem::pooled(pool, mu, nu, options, Terms::Cross)?;
                let last = |solver: &mut Solver<'_, '_>, start: Start<'_>, left: &Left| {
                    solver.watched(|observer| {
                        source.solve(&problem, clouds, Term::Cross, start, left, observer)
                    })
                };
                let first = solver.cross_by(&problem, mu, nu, similar, last)?;
                Cross { problem, first, kernels: Kernels::Shared }
            }
        })
    }
}

/// What the accuracy of a cross term is relative to, before anything is solved: the divergence of Gaussians.
fn estimate(clouds: [&Measure<'_>; 2], options: &Options<'_>) -> Aim {
    let values = clouds.map(|cloud| Gauge::own(cloud, options.epsilon).ok()?.gaussian_value());
    match values {
        [Some(x), Some(y)] => Aim::Divergence { selves: 0.5 * (x + y), error: 0.0 },
        _ => Aim::Own,
    }
}
