//! Many clouds: the divergences of all pairs, with what pairs have in common computed once.

mod arrange;

use std::time::Instant;

pub use arrange::{Embedding, Merge, embedding, leaves, linkage};

use super::terms::{KeptFeatures, TermSource, common_map, is_interrupted, is_of_pair, solver};
use crate::control::{Clock, Next, Observer};
use crate::coordinates::Gauge;
use crate::error::{Error, Result, in_clouds};
use crate::measure::Measure;
use crate::options::{Options, Precision, has_two_maps};
use crate::problem::{Aim, FeatureCache, Places, Start, Terms};
use crate::results::{
    Certainty, Divergence, Interval, Kernels, MethodUsed, Solution, debiased, divergence_scale,
};
use crate::solver::Solver;

/// The Sinkhorn divergences of all pairs of some measures of one dimension.
///
/// What pairs have in common is computed once; what that is depends on the method ([`Sharing`]):
///
/// | method | kernel of a term | shared |
/// |---|---|---|
/// | exact, lattices, [`Method::Auto`](crate::Method::Auto) | its own: that of the cost, or an approximation in its own coordinates, with a bound | self terms |
/// | random anchors, the paper's features, arc-cosine, linear, a map | one map for all clouds, with anchors for all of them | self terms, and the features of each cloud: stored once, used in all of its terms |
/// | the same, if all features together need more than [`max_memory`](crate::options::OptionsBuilder::max_memory) | the same | self terms; features are evaluated again for every pair, to the same result |
/// | adaptive anchors, Nystrom | one for the pair | nothing |
///
/// [`Method::Auto`](crate::Method::Auto) chooses for each term, as [`rot`](crate::rot()) does: values are certified term by
/// term, with an accuracy that is relative to the divergence ([`Divergence::meets_accuracy`]). Self terms that are not accurate enough for a
/// pair of clouds that are close are solved again, once, with that of the smallest divergences. Where epsilon is small and cross terms are solved by way of larger ones, features of these are the pair's own.
/// A pair has the same number in both directions, and a cloud is at distance 0 of itself.
///
/// ```
/// use orthant::{Measure, Options, Points, compare::{compare, leaves, linkage}};
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
pub fn compare(measures: &[Measure<'_>], options: &Options) -> Result<Comparison> {
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
    /// [`Divergence::meets_accuracy`].
    pub accurate: bool,
    /// What the cross term used.
    pub method: MethodUsed,
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
/// use orthant::{Measure, Options, Points, compare::{Comparer, compare}, control::Next};
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
pub struct Comparer<'s> {
    options: Options,
    observer: Option<&'s mut dyn Observer>,
    each: Option<&'s mut Each<'s>>,
    finished: Vec<Pair>,
}

impl<'s> Comparer<'s> {
    /// A comparison with these options. A [`time_limit`](crate::options::OptionsBuilder::time_limit) is that of the whole
    /// comparison: a pair that it interrupts is not finished.
    pub fn new(options: &Options) -> Self {
        let options = options.clone();
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
        Comparer { options, ..self }.compare_within(measures, &clock)
    }

    fn compare_within(mut self, measures: &[Measure<'_>], clock: &Clock) -> Result<Comparison> {
        let begun = Instant::now();
        let count = measures.len();
        check_clouds(measures)?;
        self.check_options()?;
        let mut pairs = std::mem::take(&mut self.finished);
        check_finished(&mut pairs, count)?;
        let all: Vec<&Measure<'_>> = measures.iter().collect();
        let map = clock.run(|| common_map(&all, &self.options))?;
        let places;
        let cancel = &self.options.cancel.clone();
        let (source, sharing) = match &map {
            None if is_of_pair(&self.options.method) => (None, Sharing::Nothing),
            None => (Some(TermSource::Apart), Sharing::SelfTerms),
            Some(map) if !map.has_features() => {
                (Some(TermSource::Shared { map, cache: None }), Sharing::SelfTerms)
            }
            Some(map) => {
                let limit = self.options.max_memory.map_or(f64::INFINITY, |limit| limit as f64);
                let keeps = map.bytes(measures, &self.options) <= limit;
                places = Places::new(map, measures);
                let cache: Box<dyn KeptFeatures + '_> = match self.options.precision {
                    Precision::F32 => {
                        Box::new(FeatureCache::<f32>::new(map, &places, keeps, cancel))
                    }
                    Precision::F64 => {
                        Box::new(FeatureCache::<f64>::new(map, &places, keeps, cancel))
                    }
                };
                let sharing = if keeps { Sharing::Features } else { Sharing::Map };
                (Some(TermSource::Shared { map, cache: Some(cache) }), sharing)
            }
        };
        let mut terms = PairSolver { measures, begun, selves: vec![[None, None]; count], source };
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
    fn pair(&mut self, terms: &mut PairSolver<'_>, clouds: [usize; 2]) -> Result<Option<Pair>> {
        let [first, second] = clouds;
        let Some(divergence) = terms.divergence(clouds, &self.options, &mut self.observer)? else {
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
            accurate: divergence.meets_accuracy(accuracy),
            method: divergence.cross.method,
            iterations: divergence.cross.iterations,
        }))
    }

    fn check_options(&self) -> Result<()> {
        let [x, y] = self.options.rho;
        if x != y {
            return Err(Error::UnequalRho { x, y });
        }
        if has_two_maps(&self.options.method) {
            let given = "a pair of feature maps";
            let remedy = "use one feature map for all clouds, or the squared Euclidean cost";
            return Err(Error::TwoClouds { given, remedy });
        }
        Ok(())
    }
}

impl std::fmt::Debug for Comparer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparer").field("options", &self.options).finish_non_exhaustive()
    }
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

/// The terms, one after the other.
struct PairSolver<'f> {
    measures: &'f [Measure<'f>],
    begun: Instant,
    /// Clouds with themselves: with the accuracy of their own value, and with that of the smallest divergences.
    selves: Vec<[Option<Solution>; 2]>,
    /// None where the terms of a pair have nothing to do with those of another.
    source: Option<TermSource<'f>>,
}

/// How accurate self terms are.
#[derive(Debug, Clone, Copy)]
enum Level {
    Usual,
    /// For divergences that are as small as accuracies count.
    Finest,
}

impl PairSolver<'_> {
    /// The divergence of two clouds, unless it is interrupted.
    fn divergence(
        &mut self,
        clouds: [usize; 2],
        options: &Options,
        observer: &mut Option<&mut dyn Observer>,
    ) -> Result<Option<Divergence>> {
        let [mu, nu] = clouds.map(|k| &self.measures[k]);
        let Some([self_x, self_y]) = self.selves(clouds, Level::Usual, options, observer)? else {
            let Some(options) = options.since(self.begun).filter(|_| self.source.is_none()) else {
                return Ok(None);
            };
            let divergence = in_clouds(clouds, solver(&options, observer).divergence(mu, nu))?;
            return Ok(Some(divergence).filter(|d| !d.terms().into_iter().any(is_interrupted)));
        };
        let Some(left) = options.since(self.begun) else { return Ok(None) };
        let source = self.source.as_mut().expect("self terms are shared");
        let aim = if source.is_shared() { Aim::Own } else { estimate([mu, nu], &left) };
        // As for a divergence of two.
        let start = Start::Similar(&self_x.potential_x);
        let kernels = if source.is_shared() { Kernels::Shared } else { Kernels::PerTerm };
        let cross = {
            let mut solver = solver(&left, observer);
            source.cross(clouds, [mu, nu], (start, aim), &mut solver)
        };
        let (mut problem, first) = in_clouds(clouds, cross)?;
        let mut own = [self_x, self_y];
        let mass_term = problem.mass_term();
        if problem.is_aimed() && !is_interrupted(&first.0) {
            // Whether their errors leave enough of what the divergence may have.
            let value = debiased([&first.0, &own[0], &own[1]], mass_term);
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
        let (_, [(cross, _)]) = in_clouds(clouds, solver.improve(problem, Terms::Cross, [first]))?;
        let [self_x, self_y] = own;
        let terms = [cross, self_x, self_y];
        let divergence = in_clouds(clouds, Divergence::of(terms, kernels, mass_term))?;
        Ok(Some(divergence).filter(|d| !d.terms().into_iter().any(is_interrupted)))
    }

    /// Two clouds with themselves, if that is shared and nothing comes in between.
    fn selves(
        &mut self,
        clouds: [usize; 2],
        level: Level,
        options: &Options,
        observer: &mut Option<&mut dyn Observer>,
    ) -> Result<Option<[Solution; 2]>> {
        if self.source.is_none() {
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
        let how = match (level, &self.selves[k][0]) {
            (Level::Finest, Some(usual)) => (Start::Potential(&usual.potential_x), Aim::Smallest),
            _ => (Start::Flat, Aim::Own),
        };
        let source = self.source.as_mut().expect("self terms are shared");
        let (problem, first) = source.own(k, &self.measures[k], how, solver)?;
        let (_, [(solution, _)]) = solver.improve(problem, Terms::Own, [first])?;
        Ok(solution)
    }
}

/// The error that self terms may bring into a divergence.
fn self_error(own: &[Solution; 2]) -> f64 {
    0.5 * (own[0].error_kl() + own[1].error_kl())
}

/// What the accuracy of a cross term is relative to, before anything is solved: the divergence of Gaussians.
fn estimate(clouds: [&Measure<'_>; 2], options: &Options) -> Aim {
    if !options.cost.is_squared_distance()
        || clouds.iter().any(|c| options.cost.check(c.points()).is_err())
    {
        return Aim::Own;
    }
    let values = clouds.map(|cloud| {
        Gauge::own(&options.cost.mapped_measure(cloud), options.epsilon).ok()?.gaussian_value()
    });
    match values {
        [Some(x), Some(y)] => Aim::Divergence { selves: 0.5 * (x + y), error: 0.0 },
        _ => Aim::Own,
    }
}
