//! Measures and options, put together: which kernel, in which coordinates, and what a solve leaves.

mod aim;
mod auto;
mod gathered;
mod gradient;
#[cfg(feature = "serde")]
mod kept;
mod maps;
mod pairs;
mod polish;
mod pool;
mod shared;
pub(crate) mod stage;
mod thinned;

pub(crate) use aim::Aim;
#[cfg(feature = "serde")]
pub(crate) use kept::Drawing;
pub(crate) use maps::At;
pub(crate) use pool::{Places, Pool, Shelf};
pub(crate) use shared::Described;

use gathered::Crowd;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::anchors::{Draw, Lattice, MOST_AXES, value_bound};
use crate::control::{Clock, Clocked, Next, Observer, Stop, Watched, begin, memory};
use crate::coordinates::{Frame, Gauge};
use crate::error::{Error, Result};
use crate::features::{
    Affine, ArcCosine, Basis, FeatureMap, FeatureMatrix, Gaussian, Landmarks, Linear, Mapped,
    SquaredEuclidean, landmarks, lattice_map,
};
use crate::kernel::{
    self, Builds, Conditional, Coordinates, ExactSide, Factored, FactoredSelf, Factors, Kernel,
    LatticePlan, LogPass, PlanSide, Recomputed, Separable, Side, Stored, StoredPlan,
};
use crate::measure::{Measure, Points};
use crate::numerics::simd::{self, Float};
use crate::numerics::{Partition, dot, log_sum};
use crate::options::{Algorithm, Anchors, Cost, Features, Method, Options, Precision};
use crate::problem::stage::{Axes, Placement, Stage};
use crate::results::{Certainty, Interval, Kernels, PAIRS_LIMIT, Solution, Times, Used, scale};
use crate::rows::{CostMatrix, CostRows, FeatureCost, LogRows};
use crate::sampling::Pairs;
use crate::sampling::certificate::{Bounds, Claim, Half};
use crate::sinkhorn::unbalanced::{Dual, Goal, Margin, Unbalanced};
use crate::sinkhorn::{self, Outcome, Run, anneal};
use crate::words::{Cloud, Part, Phase, Shape, Term, clouds};

/// The kernel, once the options have met the data.
#[derive(Debug)]
enum Ground<'p> {
    /// The squared Euclidean cost, a stage for each term.
    Euclidean {
        stages: Box<[Option<Stage>; 3]>,
        used: Used,
    },
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

/// What is asked.
#[derive(Debug, Clone, Copy)]
struct Setting<'s, 'p> {
    mu: &'s Measure<'s>,
    nu: &'s Measure<'s>,
    options: &'s Options<'p>,
    terms: Terms,
    aim: Aim,
    /// Of kernels, if it is not what that says.
    error: Option<f64>,
    clock: &'s Clock,
}

impl<'s> Setting<'s, '_> {
    fn measures(&self, clouds: [Cloud; 2]) -> [&'s Measure<'s>; 2] {
        clouds.map(|cloud| if cloud == Cloud::X { self.mu } else { self.nu })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Factored,
    Separable,
    Dense,
    Online,
    Nystrom,
}

pub(crate) struct Problem<'p> {
    mu: &'p Measure<'p>,
    nu: &'p Measure<'p>,
    options: &'p Options<'p>,
    ground: Ground<'p>,
    storage: Storage,
    reason: Option<String>,
    /// What was chosen automatically, or is fitted to the plan.
    pick: Option<Pick>,
    /// What the accuracy is relative to.
    aim: Aim,
    /// L1 error of marginals, if it is smaller than usual.
    tight: Option<f64>,
    /// Whether potentials of an approximation come before the exact kernel.
    polishes: bool,
    /// How often it was improved.
    round: usize,
    /// Iterations of earlier solves of a term, at most.
    spent: usize,
    clock: Clock,
    /// The time that it took to get here.
    prepared: Duration,
}

/// Epsilon relative to the range of costs above which the plan is all but that of independent points.
const FLAT: f64 = 1e4;
/// Random features, where nobody says how many.
pub(crate) const DEFAULT_RANK: usize = 1000;
/// Nodes of a lattice for clouds of so many points at most: with more, all pairs are quicker.
pub(crate) fn most_nodes(points: usize) -> f64 {
    (1000.0 * points as f64).clamp(1e4, 4e6)
}

/// Nodes that a lattice may have, if the options say so; an automatic choice goes by accuracy.
fn lattice_rank(options: &Options<'_>) -> Option<usize> {
    options.rank.filter(|_| !matches!(options.method, Method::Auto))
}

/// What stands between the clouds, of the squared Euclidean cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Pick {
    /// All pairs.
    Exact {
        stored: bool,
    },
    Random {
        draw: Draw,
        rank: usize,
    },
    /// Around the midpoints of coupled pairs.
    Adaptive {
        rank: usize,
    },
    Lattice {
        stored: bool,
    },
    Nystrom {
        landmarks: Landmarks,
        count: usize,
    },
}

impl Pick {
    fn storage(self) -> Storage {
        match self {
            Pick::Exact { stored: false } => Storage::Online,
            Pick::Exact { stored: true } => Storage::Dense,
            Pick::Random { .. } | Pick::Adaptive { .. } | Pick::Lattice { stored: true } => {
                Storage::Factored
            }
            Pick::Lattice { stored: false } => Storage::Separable,
            Pick::Nystrom { .. } => Storage::Nystrom,
        }
    }
}

impl<'p> Problem<'p> {
    /// The same problem with what [`Problem::improvement`] found.
    pub(crate) fn improved(
        &self,
        next: auto::Choice,
        terms: Terms,
        solutions: &[&Solution],
    ) -> Result<Self> {
        let begun = Instant::now();
        let Problem { mu, nu, options, .. } = *self;
        let storage = next.pick.storage();
        let (aim, error) = (self.aim, next.error);
        let setting = Setting { mu, nu, options, terms, aim, error, clock: &self.clock };
        let plans: Vec<([Cloud; 2], &Pairs)> = terms
            .list()
            .iter()
            .map(|t| clouds(*t))
            .zip(solutions.iter().map(|s| &s.pairs))
            .collect();
        let ground = furnish(next.pick, gauged(setting)?, storage, setting, Some(&plans))?;
        let spent = solutions.iter().map(|s| s.iterations).max().unwrap_or(0);
        Ok(Problem {
            mu,
            nu,
            options,
            ground,
            storage,
            reason: Some(next.reason).filter(|reason| !reason.is_empty()),
            pick: Some(next.pick),
            aim,
            tight: next.tolerance.or(self.tight),
            polishes: storage == Storage::Online && (self.polishes || !self.is_exact()),
            round: self.round + 1,
            spent,
            clock: self.clock.clone(),
            prepared: begun.elapsed(),
        })
    }

    pub(crate) fn new(
        mu: &'p Measure<'p>,
        nu: &'p Measure<'p>,
        options: &'p Options<'p>,
        terms: Terms,
    ) -> Result<Self> {
        Problem::aimed(mu, nu, options, terms, Aim::Own)
    }

    /// The same with an accuracy that is relative to something else.
    pub(crate) fn aimed(
        mu: &'p Measure<'p>,
        nu: &'p Measure<'p>,
        options: &'p Options<'p>,
        terms: Terms,
        aim: Aim,
    ) -> Result<Self> {
        let mut silent = Watched { cancel: &options.cancel, observer: None };
        Problem::watched(mu, nu, options, (terms, aim), options.clock(), &mut silent)
    }

    /// The same with an observer, within a time that has begun.
    pub(crate) fn watched(
        mu: &'p Measure<'p>,
        nu: &'p Measure<'p>,
        options: &'p Options<'p>,
        (terms, aim): (Terms, Aim),
        clock: Clock,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let mut observer = Clocked { clock: &clock, observer, stopped: false };
        let made = clock.run(|| {
            begin(&mut observer, Phase::Choosing)?;
            Problem::chosen(mu, nu, options, (terms, aim), &clock, &mut observer)
        })?;
        Ok(Problem { clock, ..made })
    }

    fn chosen(
        mu: &'p Measure<'p>,
        nu: &'p Measure<'p>,
        options: &'p Options<'p>,
        (terms, aim): (Terms, Aim),
        clock: &Clock,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let begun = Instant::now();
        check_rho(mu, nu, options, terms)?;
        let setting = Setting { mu, nu, options, terms, aim, error: None, clock };
        let (n, m) = (mu.support().len() as f64, nu.support().len() as f64);
        // Of the largest problem to be solved.
        let pairs = if terms == Terms::All { n.max(m) * n.max(m) } else { n * m };
        let (mut reason, mut pick) = (None, None);
        let rank = options.rank.unwrap_or(DEFAULT_RANK);
        let (storage, ground) = match &options.method {
            Method::Auto => {
                let stages = gauged(setting)?;
                let list: Vec<auto::TermStage<'_>> = terms
                    .list()
                    .iter()
                    .map(|&term| auto::TermStage {
                        stage: stages[term as usize].as_ref().expect("of every term"),
                        clouds: clouds(term),
                        measures: setting.measures(clouds(term)),
                    })
                    .collect();
                let shared = || {
                    Ok(match terms {
                        Terms::Cross | Terms::Own => None,
                        Terms::All => Some(common(Term::Cross, setting)?),
                    })
                };
                let choice = auto::choose(&list, options, shared, clock, observer)?;
                reason = Some(choice.reason);
                pick = Some(choice.pick);
                let storage = choice.pick.storage();
                (storage, furnish(choice.pick, stages, storage, setting, None)?)
            }
            Method::Dense(cost) => {
                check_memory(Storage::Dense, pairs, options)?;
                (Storage::Dense, cost_ground(cost, Storage::Dense, setting)?)
            }
            Method::Online(cost) => (Storage::Online, cost_ground(cost, Storage::Online, setting)?),
            Method::Factored(features) => {
                let separable =
                    matches!(features, Features::Gaussian(Anchors::Lattice { stored: false }));
                let storage = if separable { Storage::Separable } else { Storage::Factored };
                if !matches!(features, Features::Gaussian(Anchors::Lattice { .. })) {
                    let rank = features.rank(mu.dim(), rank) as f64;
                    check_memory(storage, (n + m) * rank, options)?;
                    let anchors = 8.0 * rank * mu.dim() as f64;
                    check_bytes("the anchors", anchors, "use a smaller rank", options)?;
                }
                pick = match features {
                    Features::Gaussian(Anchors::Adaptive) => Some(Pick::Adaptive { rank }),
                    Features::Gaussian(Anchors::Lattice { stored }) => {
                        Some(Pick::Lattice { stored: *stored })
                    }
                    _ => None,
                };
                (storage, feature_ground(features, storage, setting)?)
            }
            Method::Nystrom(landmarks) => {
                let count = rank.min(mu.support().len() + nu.support().len());
                check_nystrom(n + m, count as f64, options)?;
                let pick = Pick::Nystrom { landmarks: *landmarks, count };
                (Storage::Nystrom, euclidean(pick, Storage::Nystrom, setting)?)
            }
        };
        check_maps(&ground, mu, nu)?;
        let prepared = begun.elapsed();
        Ok(Problem {
            mu,
            nu,
            options,
            ground,
            storage,
            reason,
            pick,
            aim,
            tight: None,
            polishes: false,
            round: 0,
            spent: 0,
            clock: clock.clone(),
            prepared,
        })
    }

    /// What would bring values closer to those of the exact kernel: more anchors or that kernel itself, if an
    /// automatic choice did not bring all of these as close as was asked for; anchors that know the plan; the exact
    /// kernel, if the options ask for it.
    pub(crate) fn improvement(&self, solutions: &[&Solution]) -> Option<auto::Choice> {
        let spent = solutions.iter().any(|s| s.iterations >= self.options.max_iterations);
        if spent || !solutions.iter().all(|s| s.converged()) {
            return None;
        }
        // Anchors that are asked for are fitted to their plan once.
        if let (Some(Pick::Adaptive { rank }), false, 0) =
            (self.pick, self.is_automatic(), self.round)
        {
            let reason = "anchors around pairs of the plan".to_owned();
            return Some(auto::Choice::new(Pick::Adaptive { rank }, reason));
        }
        if self.options.polish && !self.is_exact() {
            let reason = format!("polished, after {}", self.used().as_str());
            return Some(auto::Choice::new(Pick::Exact { stored: false }, reason));
        }
        self.closer(solutions)
    }

    /// The mean cost of all pairs of the clouds, in the coordinates of the cross term, where the cost is a function of
    /// the points alone.
    fn mean_cost(&self) -> Option<f64> {
        match &self.ground {
            Ground::Euclidean { .. } => {
                let stage = self.stage(Term::Cross)?;
                let square = |cloud: Cloud| -> f64 {
                    let (points, weights) =
                        (stage.points(cloud, Part::Support), self.measure(cloud).support().weights);
                    let norm = |i| -> f64 {
                        (0..points.dim()).map(|c| points.coordinate(i, c).powi(2)).sum()
                    };
                    weights.iter().enumerate().map(|(i, w)| w * norm(i)).sum()
                };
                Some(stage.gauge.to_user(square(Cloud::X) + square(Cloud::Y)))
            }
            Ground::Matrix(matrix) => Some(matrix.mean()),
            Ground::Maps { .. } | Ground::Explicit(..) => None,
        }
    }

    /// Larger epsilons to go through first, falling; none if that does not pay.
    pub(crate) fn stages(&self) -> Vec<f64> {
        match self.options.algorithm {
            Algorithm::Auto => {
                self.mean_cost().map_or_else(Vec::new, |c| anneal::stages(self.options.epsilon, c))
            }
            _ => Vec::new(),
        }
    }

    /// Goes on where other solves ended, within the same limits; some iterations must be left.
    pub(crate) fn resume(&mut self, clock: Clock, spent: usize) {
        self.clock = clock;
        self.spent = spent;
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn is_automatic(&self) -> bool {
        matches!(self.options.method, Method::Auto)
    }

    /// Whether the kernel is that of the cost. Other costs than the squared Euclidean one are what their features say.
    fn is_exact(&self) -> bool {
        match &self.ground {
            Ground::Euclidean { used, .. } => *used == Used::Online,
            Ground::Matrix(_) | Ground::Explicit(..) => true,
            Ground::Maps { frame, .. } => {
                frame.is_none() || matches!(self.storage, Storage::Dense | Storage::Online)
            }
        }
    }

    /// Whether values are those in the middle of what samples of the plan say: with a certificate, so that a value is in
    /// its interval. (That of features alone need not be: the interval is where the exact kernel is.)
    fn is_centred(&self) -> bool {
        let chosen = matches!(self.pick, Some(Pick::Random { .. } | Pick::Adaptive { .. }));
        chosen || (self.options.certify && !matches!(self.pick, Some(Pick::Lattice { .. })))
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

    /// Whether the terms of a divergence have one kernel or an approximation of it each.
    pub(crate) fn kernels(&self) -> Kernels {
        match (&self.ground, self.storage) {
            (Ground::Euclidean { .. }, Storage::Dense | Storage::Online) => Kernels::Exact,
            (Ground::Euclidean { used: Used::Lattice, .. }, _) => Kernels::PerTerm,
            _ => Kernels::Shared,
        }
    }

    fn stage(&self, term: Term) -> Option<&Stage> {
        match &self.ground {
            Ground::Euclidean { stages, .. } => stages[term as usize].as_ref(),
            _ => None,
        }
    }

    fn points(&self, cloud: Cloud, part: Part) -> Points<'_> {
        let measure = self.measure(cloud);
        match part {
            Part::Support => measure.support().points.borrowed(),
            Part::Outside => measure.outside().expect("points outside the support").borrowed(),
        }
    }

    /// Number of features, or of columns for exact kernels.
    fn rank(&self, term: Term) -> usize {
        let [_, columns] = clouds(term);
        let columns = self.measure(columns).support().len();
        if matches!(self.storage, Storage::Dense | Storage::Online) {
            return columns;
        }
        match &self.ground {
            Ground::Maps { maps, .. } => maps[0].rank(),
            Ground::Explicit(xi, _) => xi.rank(),
            Ground::Euclidean { .. } => match self.stage(term).map(|stage| &stage.features) {
                Some(Placement::Map(map)) => map.rank(),
                Some(Placement::Lattice(lattice)) => lattice.rank(),
                Some(Placement::Nystrom(factors)) => factors.landmarks(),
                _ => columns,
            },
            Ground::Matrix(_) => columns,
        }
    }

    fn used(&self) -> Used {
        match (self.storage, &self.ground) {
            (Storage::Dense, _) => Used::Dense,
            (Storage::Online, _) => Used::Online,
            (_, Ground::Maps { used, .. } | Ground::Euclidean { used, .. }) => *used,
            _ => Used::Explicit,
        }
    }

    /// Where the anchors are, of features that have such.
    pub(super) fn anchors(&self) -> Option<Anchors> {
        let features = match (self.used(), &self.options.method) {
            (Used::Gaussian | Used::Lattice, Method::Factored(features)) => Some(features),
            _ => None,
        };
        match (self.pick, features) {
            (Some(Pick::Random { draw, .. }), _) => Some(Anchors::Random(draw)),
            (Some(Pick::Adaptive { .. }), _) => Some(Anchors::Adaptive),
            (Some(Pick::Lattice { stored }), _) => Some(Anchors::Lattice { stored }),
            (_, Some(Features::Gaussian(anchors))) => Some(*anchors),
            _ => None,
        }
    }

    /// Features of some points of a cloud.
    fn features(&self, term: Term, cloud: Cloud, part: Part) -> Box<dyn LogRows + '_> {
        let cancel = self.clock.cancel();
        match &self.ground {
            Ground::Maps { maps, .. } => {
                let map = &*maps[cloud as usize];
                Box::new(cancel.guard(Mapped::new(map, self.points(cloud, part))))
            }
            Ground::Explicit(xi, zeta) => {
                let matrix = if cloud == Cloud::X { *xi } else { *zeta };
                match self.measure(cloud).indices(part == Part::Support) {
                    None => Box::new(cancel.guard(matrix)),
                    Some(indices) => Box::new(cancel.guard(matrix.select(indices))),
                }
            }
            Ground::Euclidean { .. } => {
                let stage = self.stage(term).expect("a term that is solved");
                let Placement::Map(map) = &stage.features else {
                    unreachable!("an exact cost has no features, a lattice does not store them")
                };
                Box::new(cancel.guard(Mapped::new(&**map, stage.points(cloud, part).borrowed())))
            }
            Ground::Matrix(_) => unreachable!("a cost matrix has no features"),
        }
    }

    /// The kernel of some points of one cloud over the support of another, entry by entry.
    fn entries(
        &self,
        term: Term,
        rows: Cloud,
        part: Part,
        columns: Cloud,
    ) -> Box<dyn LogRows + '_> {
        let cancel = self.clock.cancel();
        match &self.ground {
            Ground::Euclidean { stages, .. } => {
                let stage = stages[term as usize].as_ref().expect("a term that is solved");
                if let Placement::Exact = stage.features {
                    let (rows, columns) =
                        (stage.points(rows, part), stage.points(columns, Part::Support));
                    let frame = Frame::unit(rows.dim());
                    let epsilon = stage.gauge.epsilon();
                    let entries = SquaredEuclidean::new(&frame, epsilon, rows.borrowed(), columns);
                    return Box::new(cancel.guard(entries));
                }
            }
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
                let epsilon = self.options.epsilon;
                let entries = CostRows::new(cost, rows, columns, transposed, epsilon);
                return Box::new(cancel.guard(entries));
            }
            _ => {}
        }
        Box::new(FeatureCost::new(
            self.features(term, rows, part),
            self.features(term, columns, Part::Support),
        ))
    }

    /// What the coordinates of a term add to potentials, costs and values.
    fn offsets(&self, term: Term, cloud: Cloud, part: Part) -> Option<&[f64]> {
        self.stage(term)?.offsets(cloud, part)
    }

    /// The same for all pairs.
    fn constant(&self, term: Term) -> f64 {
        match &self.ground {
            Ground::Matrix(cost) => cost.least(),
            Ground::Euclidean { .. } => self.stage(term).map_or(0.0, |s| s.gauge.constant()),
            _ => 0.0,
        }
    }

    /// What the coordinates add to the cost of a plan with these marginals, but for the constant.
    fn moved(&self, term: Term, marginals: [&[f64]; 2]) -> f64 {
        let of = |(cloud, marginal): (Cloud, &[f64])| {
            self.offsets(term, cloud, Part::Support).map_or(0.0, |p| dot(p, marginal))
        };
        clouds(term).into_iter().zip(marginals).map(of).sum()
    }

    /// What the coordinates add to the value.
    fn offset(&self, term: Term) -> f64 {
        let weights = clouds(term).map(|cloud| self.measure(cloud).support().weights);
        self.moved(term, weights) + self.constant(term)
    }

    /// The marginals of a term, if they are relaxed.
    fn unbalanced(&self, term: Term) -> Option<Unbalanced> {
        let Options { epsilon, rho, .. } = *self.options;
        if !self.options.is_unbalanced() {
            return None;
        }
        let margin = |cloud: Cloud, constant: f64| {
            let measure = self.measure(cloud);
            let offsets = self.offsets(term, cloud, Part::Support);
            let weights = measure.support().weights;
            Margin::new(weights, measure.mass(), rho[cloud as usize], epsilon, offsets, constant)
        };
        let sides = match clouds(term) {
            [x, y] if x == y => vec![margin(x, 0.0)],
            // As potentials have it: the constant is the second cloud's.
            [x, y] => vec![margin(x, 0.0), margin(y, self.constant(term))],
        };
        Some(Unbalanced::new(epsilon, sides))
    }

    /// What a divergence has beside its terms: `eps/2 (m_a - m_b)^2`, if marginals are relaxed.
    pub(crate) fn mass_term(&self) -> f64 {
        if self.options.is_unbalanced() {
            0.5 * self.options.epsilon * (self.mu.mass() - self.nu.mass()).powi(2)
        } else {
            0.0
        }
    }

    pub(crate) fn solve(
        &self,
        term: Term,
        start: Start<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)> {
        let mut observer = Clocked { clock: &self.clock, observer, stopped: false };
        self.clock.run(|| {
            begin(&mut observer, Phase::Features)?;
            self.solve_by(term, start, |task, rough| self.solved(task, rough, &mut observer))
        })
    }

    /// The same with `work` of the caller's.
    fn solve_by(
        &self,
        term: Term,
        start: Start<'_>,
        work: impl FnOnce(&mut Task, Rough<'_>) -> Result<Solved>,
    ) -> Result<(Solution, Scaling)> {
        let begun = Instant::now();
        let [x, y] = clouds(term);
        let epsilon = self.options.epsilon;
        let mu = self.measure(x);
        let flat = matches!(start, Start::Flat);
        let (start, rough) = match start {
            // u = a: the plan of a constant cost.
            Start::Flat => (mu.support().weights.iter().map(|a| a.ln()).collect(), None),
            Start::Potential(potential) => (self.logs(term, x, potential)?, None),
            Start::Similar(potential) => (self.similar_logs(x, potential)?, None),
            Start::After(rough, potential) => {
                let mixes = matches!(self.options.algorithm, Algorithm::Auto | Algorithm::Anderson);
                let polish = mixes
                    && self.storage == Storage::Online
                    && !rough.is_exact()
                    && !self.options.is_unbalanced();
                (self.logs(term, x, potential)?, polish.then_some((rough, potential)))
            }
        };
        let mut task = Task {
            term,
            x,
            y,
            start,
            flat,
            unbalanced: self.unbalanced(term),
            run: Run {
                term,
                epsilon,
                offset: self.offset(term),
                tolerance: self.tolerance(),
                max_iterations: self.options.max_iterations - self.spent,
                // All terms together; each does at least one iteration.
                time: self.clock.left(),
                leave_out: 0.0,
                algorithm: self.options.algorithm,
            },
        };
        let mut solved = work(&mut task, rough)
            .map_err(|error| self.in_user_rows(error, Part::Support, [x, y]))?;
        // Errors at points of weight zero are told apart from those at the others.
        match (self.storage, &solved.kernel.lattice) {
            (Storage::Nystrom, _) => {
                solved.outside = self.extended_nystrom(&task, &solved.outcome)?;
            }
            (Storage::Separable, Some(lattice)) => {
                solved.outside = self.extended_on_lattice(&task, &solved.outcome, lattice)?;
            }
            _ => {}
        }
        let (solution, scaling) = self.finish(&task, solved, begun);
        check_finite(&solution)?;
        Ok((solution, scaling))
    }

    /// With the kernel that there is.
    fn solved(
        &self,
        task: &mut Task,
        rough: Rough<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Solved> {
        let rows = || self.entries(task.term, task.x, Part::Support, task.y);
        match (self.storage, self.options.precision) {
            (Storage::Factored, Precision::F32) => self.factored::<f32>(task, observer),
            (Storage::Factored, Precision::F64) => self.factored::<f64>(task, observer),
            (Storage::Separable, Precision::F32) => self.separable::<f32>(task, observer),
            (Storage::Separable, Precision::F64) => self.separable::<f64>(task, observer),
            (Storage::Dense, Precision::F32) => {
                self.exact(task, Stored::<f32>::new(rows()), observer)
            }
            (Storage::Dense, Precision::F64) => {
                self.exact(task, Stored::<f64>::new(rows()), observer)
            }
            (Storage::Online, _) => match rough {
                Some((rough, potential)) => self.polished(task, rough, potential, observer),
                None => self.exact(task, Recomputed::new(rows()), observer),
            },
            (Storage::Nystrom, _) => self.nystrom(task, observer),
        }
    }

    /// The solution of the user's problem, out of that in the coordinates of the term, and its plan.
    fn finish(&self, task: &Task, solved: Solved, begun: Instant) -> (Solution, Scaling) {
        let around = self.around(task, &solved);
        let Solved { outcome, builds, transport_cost, distance, rank, outside, mut kernel } =
            solved;
        let (term, x, y) = (task.term, task.x, task.y);
        let epsilon = self.options.epsilon;
        let (mu, nu) = (self.measure(x), self.measure(y));
        let (a, b) = (mu.support().weights, nu.support().weights);
        let constant = self.constant(term);
        let sums = [&outcome.x.sums[..], &outcome.y.sums];
        let Finished { value, value_kl, mass, shifts, gaps } = task.finished(&outcome, a, b);
        let (value, value_kl, around) = self.limited(task, value, value_kl, around);
        let pairs = std::mem::take(&mut kernel.pairs);
        let scaling = Scaling::new(&outcome, shifts, kernel);
        // Of the marginals that the plan has.
        let transport_cost =
            transport_cost.map(|cost| mass * (cost + self.moved(term, sums) + constant));
        let to_user = |cloud: Cloud, part: Part, f: &mut Vec<f64>, constant: f64| {
            for f in f.iter_mut() {
                *f = epsilon * *f + constant;
            }
            if let (false, Some(p)) = (f.is_empty(), self.offsets(term, cloud, part)) {
                f.iter_mut().zip(p).for_each(|(f, p)| *f += p);
            }
        };
        let [mut outside_x, mut outside_y] = outside;
        let Outcome { mut f, mut g, .. } = outcome;
        let [shift_x, shift_y] = shifts.map(|shift| epsilon * shift);
        // -eps tau log K v at points of weight zero: what shifts one potential shifts the sums of the other.
        if self.measure(x).outside().is_some() {
            to_user(x, Part::Outside, &mut outside_x, -shift_y);
            task.relax(0, &mut outside_x);
        }
        if self.measure(y).outside().is_some() {
            to_user(y, Part::Outside, &mut outside_y, constant - shift_x);
            task.relax(1, &mut outside_y);
        }
        to_user(x, Part::Support, &mut f, shift_x);
        to_user(y, Part::Support, &mut g, constant + shift_y);
        let given = |measure: &Measure<'_>| {
            let mass = if task.unbalanced.is_some() { measure.mass() } else { 1.0 };
            measure.weights().iter().map(|w| mass * w).collect()
        };
        // The two values of an unbalanced problem differ by a function of the plan, about which nothing is known.
        let unbalanced = task.unbalanced.is_some();
        let solution = Solution {
            value,
            value_kl,
            transport_cost,
            mass,
            epsilon,
            rho: [x, y].map(|cloud| self.options.rho[cloud as usize]),
            potential_x: mu.scatter(f, &outside_x),
            potential_y: nu.scatter(g, &outside_y),
            marginal_error_x: outcome.x.error,
            marginal_error_y: outcome.y.error,
            marginal_gap_x: gaps[0],
            marginal_gap_y: gaps[1],
            iterations: outcome.iterations,
            stop: outcome.stop,
            rank,
            method: self.used(),
            anchors: self.anchors(),
            reason: self.reason.clone(),
            bound: distance.bound,
            interval: if unbalanced { None } else { around.interval(value) },
            interval_kl: around.interval(value_kl),
            corrected: around.corrected.map(|c| value + c).filter(|_| !unbalanced),
            corrected_kl: around.corrected.map(|c| value_kl + c),
            stages: 1,
            polished: self.polishes.then_some(outcome.iterations),
            builds: builds.count,
            times: Times {
                features: if term == Term::Cross {
                    self.prepared + builds.time
                } else {
                    builds.time
                },
                solve: begun.elapsed().saturating_sub(builds.time),
            },
            slack: around.slack,
            weights_x: given(mu),
            weights_y: given(nu),
            pairs,
        };
        (solution, scaling)
    }

    /// Where the value of the exact kernel is, at convergence, relative to that of the solve, as far as that is known;
    /// and the best guess.
    fn around(&self, task: &Task, solved: &Solved) -> Around {
        let (outcome, epsilon) = (&solved.outcome, self.options.epsilon);
        let Distance { bound, bounds, rounding } = solved.distance;
        let (a, b) = self.weights(task);
        let dual = task.unbalanced.as_ref().map(|u| (u, u.dual(&outcome.f, &outcome.g, 0.0)));
        let value = dual.map_or_else(|| value(outcome, a, b, task.run), |(_, dual)| dual.value);
        // A dual value is a lower bound at any time, and that of a plan of other marginals is too low by at most what
        // it takes to move the difference, at the prices of the final potentials. Those at the end of a solve tell
        // these; before, no price differs by more than costs do.
        let range = |f: &[f64], a: &[f64]| {
            let prices = f.iter().zip(a).map(|(f, a)| f - a.ln());
            let (low, high) =
                prices.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| (l.min(p), h.max(p)));
            high - low
        };
        let ranges = if outcome.stop == Stop::Converged {
            [epsilon * range(&outcome.f, a), epsilon * range(&outcome.g, b)]
        } else {
            [self.cost_range(task); 2]
        };
        let potentials = [&outcome.f[..], &outcome.g];
        let marginals = [&outcome.x.sums[..], &outcome.y.sums];
        let slack = match dual {
            None => 0.5 * (outcome.x.error * ranges[0] + outcome.y.error * ranges[1]),
            Some((unbalanced, dual)) => unbalanced.shortfall(&dual, potentials, marginals, ranges),
        };
        // What it changes that the logarithms of the kernel fall by a constant.
        let change = |log: f64| dual.map_or(epsilon * log, |(_, dual)| -dual.bound(-log));
        let size = dual.map_or(value.abs(), |(_, dual)| dual.size);
        let rounding = 1e-14 * size - change(-rounding);
        let within = |low: f64, high: f64, kind| Interval {
            low: low - rounding,
            high: high + slack + rounding,
            kind,
        };
        let bound = bound.map(|b| within(-b, b, Certainty::Bound));
        let sampled = bounds.map(|s| within(change(s.low), change(s.high), Certainty::Sampled));
        let corrected = bounds.map(|s| change(s.corrected));
        let interval = match (bound, sampled) {
            _ if self.is_exact() => Some(within(0.0, 0.0, Certainty::Exact)),
            (Some(one), Some(two)) => {
                let narrower = two.width() < one.width() && two.contains(0.0);
                Some(if narrower { two } else { one })
            }
            (one, two) => one.or(two),
        };
        Around { interval, corrected, slack }
    }

    /// What is known where epsilon is far above all costs, and takes all digits of a dual value: the plan is all but
    /// that of independent points, whose mean cost is an upper bound of `value_kl`, and by Hoeffding's lemma
    ///
    /// ```text
    /// value_kl >= -eps log E[exp(-c / eps)] >= E[c] - range(c)^2 / (8 eps)
    /// ```
    ///
    /// Values and intervals are moved there.
    fn limited(
        &self,
        task: &Task,
        value: f64,
        value_kl: f64,
        around: Around,
    ) -> (f64, f64, Around) {
        let epsilon = self.options.epsilon;
        let unknown = (value, value_kl, around);
        let (Some(interval), None) = (around.interval, &task.unbalanced) else { return unknown };
        let range = self.cost_range(task);
        if !range.is_finite() || epsilon < FLAT * range {
            return unknown;
        }
        let Some(mean) = self.product_cost(task) else { return unknown };
        let high = mean + task.run.offset;
        let rounding = 1e-13 * (mean.abs() + task.run.offset.abs());
        let low = high - range * (range / (8.0 * epsilon));
        let (least, most) = (low - rounding, high + rounding);
        let found = value_kl.clamp(low, high);
        // Of a value that is as it should be, but for rounding.
        let interval = Interval {
            low: (value_kl + interval.low).max(least).min(found) - found,
            high: (value_kl + interval.high).min(most).max(found) - found,
            ..interval
        };
        let corrected = around.corrected.map(|c| (value_kl + c).clamp(low, high) - found);
        let slack = around.slack.min(interval.high);
        let around = Around { interval: Some(interval), corrected, slack };
        (value + (found - value_kl), found, around)
    }

    /// The mean cost of independent points in the coordinates of a term, in the user's units, where the cost is a
    /// function of the points.
    fn product_cost(&self, task: &Task) -> Option<f64> {
        let Some(stage) = self.stage(task.term) else {
            return match &self.ground {
                // Over the smallest cost, which is the offset of the term.
                Ground::Matrix(matrix) => {
                    let [a, b] = [task.x, task.y].map(|cloud| self.measure(cloud).weights());
                    Some(matrix.weighted_mean(a, b))
                }
                _ => None,
            };
        };
        let [(mean_x, square_x), (mean_y, square_y)] = [task.x, task.y].map(|cloud| {
            let points = stage.points(cloud, Part::Support);
            let weights = self.measure(cloud).support().weights;
            let mut mean = vec![0.0; points.dim()];
            let mut square = 0.0;
            for (i, w) in weights.iter().enumerate() {
                for (c, mean) in mean.iter_mut().enumerate() {
                    let x = points.coordinate(i, c);
                    *mean += w * x;
                    square += w * x * x;
                }
            }
            (mean, square)
        });
        Some(stage.gauge.to_user(square_x + square_y - 2.0 * dot(&mean_x, &mean_y)))
    }

    /// At most how much the costs of a term differ; infinite where that is not known.
    fn cost_range(&self, task: &Task) -> f64 {
        let norm = |dim: usize, points: &Points<'_>, at: &dyn Fn(usize, usize) -> f64| -> f64 {
            let square = |i: usize| (0..dim).map(|c| at(i, c).powi(2)).sum::<f64>();
            (0..points.len()).map(square).fold(0.0, f64::max).sqrt()
        };
        let scaled = |reach: f64, unit: f64| reach * reach * self.options.epsilon / unit;
        match (&self.ground, self.stage(task.term)) {
            (_, Some(stage)) => {
                let reach = [task.x, task.y].map(|cloud| {
                    let points = stage.points(cloud, Part::Support);
                    norm(points.dim(), points, &|i, c| points.coordinate(i, c))
                });
                scaled(reach[0] + reach[1], stage.gauge.epsilon())
            }
            (Ground::Matrix(matrix), _) => matrix.spread(),
            (Ground::Maps { frame: Some(frame), .. }, _) => frame
                .epsilon(self.options.epsilon)
                .map_or(f64::INFINITY, |unit| scaled(2.0 * frame.radius(), unit)),
            _ => f64::INFINITY,
        }
    }

    /// Kernels count the points of a part of a cloud.
    fn in_user_rows(&self, mut error: Error, part: Part, clouds: [Cloud; 2]) -> Error {
        if let Error::Breakdown { cloud, row, .. } | Error::NotPositive { cloud, row, .. } =
            &mut error
        {
            *cloud = clouds[*cloud as usize];
            if let Some(indices) = self.measure(*cloud).indices(part == Part::Support) {
                *row = indices[*row - 1] + 1;
            }
        }
        error
    }

    fn factored<T: Float>(&self, task: &Task, observer: &mut dyn Observer) -> Result<Solved> {
        let side = |cloud| Stored::<T>::new(self.features(task.term, cloud, Part::Support));
        let y = (!task.is_self()).then(|| side(task.y));
        self.factored_on(task, (side(task.x), y), drop, observer)
    }

    /// On sides that there are, the second where there is a second cloud; afterwards they go to `keep`.
    fn factored_on<'f, T: Float>(
        &self,
        task: &Task,
        sides: (Stored<'f, T>, Option<Stored<'f, T>>),
        keep: impl FnOnce((Stored<'f, T>, Option<Stored<'f, T>>)),
        observer: &mut dyn Observer,
    ) -> Result<Solved> {
        let goal = self.goal(task);
        let mut plan: Box<dyn StoredPlan<'f, T> + 'f> = match sides {
            (side, None) => Box::new(FactoredSelf::new(side)),
            (x, Some(y)) => Box::new(Factored::new(x, y)),
        };
        let outcome = task.solve(&mut *plan, goal, observer)?;
        let accelerated = !task.is_self() && task.run.algorithm == Algorithm::Accelerated;
        let mut messages = if accelerated { Vec::new() } else { plan.sent() };
        let builds = plan.builds();
        // Of the plan of mass 1, as the potentials: those of both clouds, or the first.
        let excess = match (task.is_self(), &task.unbalanced) {
            (true, _) => 0.5 * outcome.x.log_mass,
            (false, Some(_)) => outcome.x.log_mass,
            (false, None) => 0.0,
        };
        messages.iter_mut().take(1).flatten().for_each(|z| *z -= excess);
        // Of the plan of mass 1, as everything else.
        let mass = task.mass(&outcome);
        let transport_cost = if let Ground::Maps { frame: Some(frame), .. } = &self.ground {
            let (x, y) = (self.points(task.x, Part::Support), self.points(task.y, Part::Support));
            let squared = plan.squared_distance(
                frame.dim(),
                &|i, out| frame.copy_coordinates(&x, i, 0, out),
                &|j, out| frame.copy_coordinates(&y, j, 0, out),
            );
            Some(frame.cost_to_user(squared / mass)?)
        } else if let Some(stage) = self.stage(task.term) {
            let points = |cloud| stage.points(cloud, Part::Support);
            let (x, y) = (points(task.x), points(task.y));
            let squared = plan.squared_distance(
                x.dim(),
                &|i, out| x.copy_coordinates(i, 0, out),
                &|j, out| y.copy_coordinates(j, 0, out),
            );
            Some(stage.gauge.to_user(squared / mass))
        } else {
            self.cost_over_pairs(task, &outcome)
        };
        let mut outcome = outcome;
        let (mut bounds, pairs) = if self.options.certify || self.is_centred() {
            // A solution can do without.
            let found = if self.clock.is_over() || observer.phase(Phase::Certificate) == Next::Stop
            {
                None
            } else {
                self.clock.try_run(|| self.certify(task, &outcome, plan.second()))?
            };
            if found.is_none() && outcome.stop == Stop::Converged {
                outcome.stop = if self.clock.is_over() { Stop::TimeLimit } else { Stop::Requested };
            }
            found.unwrap_or_default()
        } else {
            (None, Pairs::default())
        };
        keep(plan.into_sides());
        let mut outside = self.extended(task, &outcome);
        let mut shift = 0.0;
        if let (Some(found), true) = (&mut bounds, self.is_centred()) {
            // A constant factor of the kernel moves potentials and values, and not the plan, but for its mass.
            shift = found.corrected;
            let potentials = outcome.f.iter_mut().chain(&mut outcome.g);
            let messages = messages.iter_mut().flatten();
            let all = potentials.chain(outside.iter_mut().flatten()).chain(messages);
            all.for_each(|f| *f += 0.5 * shift);
            *found = Bounds { low: found.low - shift, high: found.high - shift, corrected: 0.0 };
        }
        let bound = match self.stage(task.term) {
            Some(Stage { lattice: Some(lattice), .. }) => {
                // What was dropped on the way to a rank is not known here.
                let whole = lattice.kept().is_none();
                whole.then(|| task.bound(&outcome, value_bound(1.0, lattice.ratio())))
            }
            _ => None,
        };
        let rank = self.rank(task.term);
        let distance = Distance { bound, bounds, rounding: T::ROUNDING };
        let kernel = Seen { shift, pairs, messages, ..Seen::default() };
        Ok(Solved { outcome, builds, transport_cost, distance, rank, outside, kernel })
    }

    /// Bounds on the distance from the exact kernel, for features of one, and the pairs of the plan that they are from.
    fn certify(
        &self,
        task: &Task,
        outcome: &Outcome,
        columns: &mut dyn Conditional,
    ) -> Result<(Option<Bounds>, Pairs)> {
        let clouds = [task.x, task.y];
        let (frame, epsilon, points) = match (&self.ground, self.stage(task.term)) {
            (_, Some(stage)) => {
                let points = clouds.map(|c| stage.points(c, Part::Support).borrowed());
                (Frame::unit(points[0].dim()), stage.gauge.epsilon(), points)
            }
            (Ground::Maps { frame: Some(frame), .. }, _) => {
                let epsilon = frame.epsilon(self.options.epsilon)?;
                (frame.clone(), epsilon, clouds.map(|c| self.points(c, Part::Support)))
            }
            _ => return Ok((None, Pairs::default())),
        };
        let features = clouds.map(|c| self.features(task.term, c, Part::Support));
        let [a, b] = self.goal(task).targets();
        let [points_x, points_y] = points;
        let claim = Claim {
            x: Half::new(&*features[0], points_x, a, &outcome.f, &outcome.x.sums),
            y: Half::new(&*features[1], points_y, b, &outcome.g, &outcome.y.sums),
            frame: &frame,
            epsilon,
            rows: &outcome.x.sums,
            seed: self.options.seed,
            cancel: self.clock.cancel(),
        };
        Ok(claim.bounds(columns))
    }

    /// The weights of the two supports of a task.
    fn weights(&self, task: &Task) -> (&'p [f64], &'p [f64]) {
        (self.measure(task.x).support().weights, self.measure(task.y).support().weights)
    }

    /// The marginals that the plan of a task should have.
    fn goal<'t>(&'t self, task: &'t Task) -> Goal<'t> {
        let (a, b) = self.weights(task);
        Goal { a, b, unbalanced: task.unbalanced.as_ref() }
    }

    /// On a lattice, by its product structure; finer ones until the bound is as asked for.
    fn separable<T: Float>(&self, task: &mut Task, observer: &mut dyn Observer) -> Result<Solved> {
        let stage = self.stage(task.term).expect("lattices are for squared Euclidean costs");
        let Placement::Lattice(lattice) = &stage.features else {
            unreachable!("only lattices are separable")
        };
        let (a, b) = self.weights(task);
        let epsilon = self.options.epsilon;
        let (mut refined, mut thinned): (Option<Lattice>, bool) = (None, false);
        let (mut iterations, mut builds) = (0, Builds::default());
        loop {
            let lattice = refined.as_ref().unwrap_or(lattice);
            let mut solved = self.on_lattice::<T>(task, stage, lattice, observer)?;
            iterations += solved.outcome.iterations;
            builds = builds + solved.builds;
            let outcome = &solved.outcome;
            let Finished { value_kl, mass, .. } = task.finished(outcome, a, b);
            let usual = self.options.accuracy * scale(value_kl, epsilon * mass);
            let wanted = stage.error.unwrap_or(usual);
            let good = solved.distance.bound.is_some_and(|bound| bound <= wanted);
            // Below the rounding of the kernel no lattice is finer.
            let finest = lattice.ratio() <= T::ROUNDING.max(1e-11);
            let most_iterations = self.options.max_iterations - self.spent;
            let ended = outcome.stop != Stop::Converged || iterations >= most_iterations;
            let finer = if good || finest || ended {
                None
            } else if let Some(rank) = lattice_rank(self.options) {
                // The plan knows better which nodes it needs.
                let once = std::mem::replace(&mut thinned, true);
                match solved.kernel.worth.take() {
                    Some(worth) if !once => Some(thinned::thin(&lattice.whole(), &worth, rank)),
                    _ => None,
                }
            } else {
                let finer = 0.5 * auto::ratio_for(wanted / mass, epsilon);
                let ratio = finer.min(0.5 * lattice.ratio());
                let [low, high] = stage.midpoints(task.x, task.y);
                let most = most_nodes(a.len() + b.len());
                Lattice::covering(&low, &high, stage.gauge.epsilon(), ratio, most)
                    .map(|lattice| lattice.guarded(self.clock.cancel()))
            };
            let Some(finer) = finer else {
                solved.outcome.iterations = iterations;
                solved.builds = builds;
                return Ok(solved);
            };
            task.start.clone_from(&solved.outcome.f);
            task.flat = false;
            task.run.max_iterations = most_iterations - iterations;
            refined = Some(finer);
        }
    }

    fn on_lattice<T: Float>(
        &self,
        task: &mut Task,
        stage: &Stage,
        lattice: &Lattice,
        observer: &mut dyn Observer,
    ) -> Result<Solved> {
        let cutoff = lattice.cutoff::<T>();
        task.run.leave_out = (0.1 * lattice.ratio()).max(T::ROUNDING);
        let points = |cloud| stage.points(cloud, Part::Support);
        let (x, y) = (points(task.x), points(task.y));
        let (a, b) = self.weights(task);
        let side_x = Separable::<T>::new(x, lattice, cutoff);
        let of_x: &Coordinates<'_> = &|i, out| x.copy_coordinates(i, 0, out);
        let goal = self.goal(task);
        let of_y: &Coordinates<'_> = &|j, out| y.copy_coordinates(j, 0, out);
        let (heard, mut kernel): (_, Box<dyn LatticePlan>) = if task.is_self() {
            let crowds = [Crowd { side: &side_x, points: x, weights: a }];
            let heard = gathered::heard::<T>(task, lattice, cutoff, &crowds);
            (heard, Box::new(FactoredSelf::new(side_x)))
        } else {
            let side_y = Separable::<T>::new(y, lattice, cutoff);
            let crowds = [
                Crowd { side: &side_x, points: x, weights: a },
                Crowd { side: &side_y, points: y, weights: b },
            ];
            let heard = gathered::heard::<T>(task, lattice, cutoff, &crowds);
            (heard, Box::new(Factored::new(side_x, side_y)))
        };
        let resumed = heard.is_some_and(|h| kernel.resume(&h, goal.targets()[0]).is_ok());
        let start = (!resumed).then_some(&task.start[..]);
        let outcome = sinkhorn::solve(&mut *kernel, goal, start, task.run, observer)?;
        let squared = kernel.squared_distance(x.dim(), of_x, of_y);
        let builds = kernel.builds();
        drop(kernel);
        let (dropped, worth) = self.with_all_nodes(lattice, [x, y], &outcome, goal)?;
        let logs = value_bound(1.0, lattice.ratio()) + outcome.left_out + T::ROUNDING;
        let bound = task.bound(&outcome, logs) + dropped;
        Ok(Solved {
            transport_cost: Some(stage.gauge.to_user(squared / task.mass(&outcome))),
            builds,
            distance: Distance {
                bound: Some(bound).filter(|b| b.is_finite()),
                bounds: None,
                rounding: T::ROUNDING,
            },
            rank: lattice.rank(),
            outside: [Vec::new(), Vec::new()],
            kernel: Seen { lattice: Some(lattice.clone()), worth, ..Seen::default() },
            outcome,
        })
    }

    /// What the nodes that a lattice has dropped would change, by one exact half-step with them; and the mass at each
    /// node, as a logarithm. Nothing if it has all of them.
    fn with_all_nodes(
        &self,
        lattice: &Lattice,
        [x, y]: [&Points<'_>; 2],
        outcome: &Outcome,
        goal: Goal<'_>,
    ) -> Result<(f64, Option<Vec<f64>>)> {
        if lattice.kept().is_none() {
            return Ok((0.0, None));
        }
        let all = lattice.whole();
        let (mut message, mut back) = (vec![0.0; all.nodes()], vec![0.0; all.nodes()]);
        let mut sums = vec![0.0; goal.b.len()];
        Separable::<f64>::new(x, &all, f64::CUTOFF).message(&outcome.f, &mut message);
        let mut side = Separable::<f64>::new(y, &all, f64::CUTOFF);
        side.message(&outcome.g, &mut back);
        side.log_apply(&message, &mut sums)?;
        let dropped = dropped_value(outcome, &sums, goal, self.options.epsilon);
        message.iter_mut().zip(back).for_each(|(message, back)| *message += back);
        Ok((dropped, Some(message)))
    }

    /// [`Problem::extended`] on a lattice.
    fn extended_on_lattice(
        &self,
        task: &Task,
        outcome: &Outcome,
        lattice: &Lattice,
    ) -> Result<[Vec<f64>; 2]> {
        let stage = self.stage(task.term).expect("lattices are for squared Euclidean costs");
        let extend = |cloud: Cloud, other: Cloud, g: &[f64]| -> Result<Vec<f64>> {
            if self.measure(cloud).outside().is_none() {
                return Ok(Vec::new());
            }
            let points = stage.points(cloud, Part::Outside);
            let sums = lattice_sums(lattice, points, stage.points(other, Part::Support), g)
                .map_err(|e| sinkhorn::at_iteration(e, outcome.iterations))
                .map_err(|e| self.in_user_rows(e, Part::Outside, [cloud, other]))?;
            Ok(sums.into_iter().map(|s| -s).collect())
        };
        Ok([extend(task.x, task.y, &outcome.g)?, extend(task.y, task.x, &outcome.f)?])
    }

    /// `<P, C>` for a cost that is defined by features, pair by pair, unless they are too many.
    fn cost_over_pairs(&self, task: &Task, outcome: &Outcome) -> Option<f64> {
        let Outcome { f, g, .. } = outcome;
        let work = f.len() as f64 * g.len() as f64 * self.rank(task.term) as f64;
        (self.options.pair_costs && work <= PAIRS_LIMIT)
            .then(|| self.cost_over_all_pairs(task.term, f, g))
    }

    /// The same, however many they are.
    fn cost_over_all_pairs(&self, term: Term, f: &[f64], g: &[f64]) -> f64 {
        let [x, y] = clouds(term);
        let mut rows = Recomputed::new(self.entries(term, x, Part::Support, y));
        rows.set_potential(f);
        -self.options.epsilon * rows.expected_log(g)
    }

    fn exact<S: ExactSide>(
        &self,
        task: &Task,
        side: S,
        observer: &mut dyn Observer,
    ) -> Result<Solved> {
        let mut kernel = kernel::exact(side, task.is_self());
        let outcome = task.solve(&mut *kernel, self.goal(task), observer)?;
        let (log, builds) = (kernel.expected_log(), kernel.builds());
        drop(kernel);
        Ok(self.solved_exactly(task, outcome, log, builds))
    }

    /// With the mean `log` of the logarithm of the kernel under the plan.
    fn solved_exactly(&self, task: &Task, outcome: Outcome, log: f64, builds: Builds) -> Solved {
        let transport_cost = Some(-self.options.epsilon * log / task.mass(&outcome));
        let rank = self.rank(task.term);
        let outside = self.extended(task, &outcome);
        let rounding = match (self.storage, self.options.precision) {
            (Storage::Dense, Precision::F32) => f32::ROUNDING,
            _ => f64::ROUNDING,
        };
        let distance = Distance { bound: None, bounds: None, rounding };
        let kernel = Seen::default();
        Solved { outcome, builds, transport_cost, distance, rank, outside, kernel }
    }

    /// With signed features, whose products must turn out positive.
    fn nystrom(&self, task: &Task, observer: &mut dyn Observer) -> Result<Solved> {
        let (stage, factors) = self.factors(task.term);
        let mut kernel = factors.kernel([task.x, task.y]);
        let outcome = task.solve(&mut *kernel, self.goal(task), observer)?;
        let builds = kernel.builds();
        let side = |cloud, potential, sums| {
            let points = stage.points(cloud, Part::Support);
            PlanSide { cloud, points, potential, sums }
        };
        let squared = factors.squared_distance(&[
            side(task.x, &outcome.f, &outcome.x.sums),
            side(task.y, &outcome.g, &outcome.y.sums),
        ]);
        let transport_cost = Some(stage.gauge.to_user(squared));
        let rank = factors.landmarks();
        let outside = [Vec::new(), Vec::new()];
        let distance = Distance { bound: None, bounds: None, rounding: f64::ROUNDING };
        let kernel = Seen::default();
        Ok(Solved { outcome, builds, transport_cost, distance, rank, outside, kernel })
    }

    fn factors(&self, term: Term) -> (&Stage, &Factors) {
        let stage = self.stage(term).expect("landmarks are for squared Euclidean costs");
        let Placement::Nystrom(factors) = &stage.features else {
            unreachable!("only landmarks have signed features")
        };
        (stage, factors)
    }

    /// [`Problem::extend`] of both clouds by signed features, which need not be positive there.
    fn extended_nystrom(&self, task: &Task, outcome: &Outcome) -> Result<[Vec<f64>; 2]> {
        let (stage, factors) = self.factors(task.term);
        let extend = |cloud: Cloud, other: Cloud, g: &[f64]| -> Result<Vec<f64>> {
            if self.measure(cloud).outside().is_none() {
                return Ok(Vec::new());
            }
            let logs = factors
                .extend(other, g, stage.points(cloud, Part::Outside))
                .map_err(|e| sinkhorn::at_iteration(e, outcome.iterations))
                .map_err(|e| self.in_user_rows(e, Part::Outside, [cloud, other]))?;
            Ok(logs.into_iter().map(|s| -s).collect())
        };
        Ok([extend(task.x, task.y, &outcome.g)?, extend(task.y, task.x, &outcome.f)?])
    }

    /// [`Problem::extend`] of both clouds.
    fn extended(&self, task: &Task, outcome: &Outcome) -> [Vec<f64>; 2] {
        [
            self.extend(task.term, task.x, task.y, &outcome.g),
            self.extend(task.term, task.y, task.x, &outcome.f),
        ]
    }

    /// `-log sum_j k(x, y_j) v_j` at the points of weight zero.
    fn extend(&self, term: Term, cloud: Cloud, other: Cloud, g: &[f64]) -> Vec<f64> {
        if self.measure(cloud).outside().is_none() {
            return Vec::new();
        }
        let sums = self.log_sums(term, cloud, Part::Outside, other, g);
        sums.into_iter().map(|s| -s).collect()
    }

    /// `log sum_j k(x, y_j) v_j` at some points of a cloud.
    fn log_sums(&self, term: Term, cloud: Cloud, part: Part, other: Cloud, g: &[f64]) -> Vec<f64> {
        let (rows, message) = if self.storage == Storage::Factored {
            let source = self.features(term, other, Part::Support);
            let mut message = vec![0.0; simd::padded(source.rank())];
            log_pass(&*source).column_sums(&*source, g, &mut message[..source.rank()]);
            (self.features(term, cloud, part), message)
        } else {
            let mut message = vec![0.0; simd::padded(g.len())];
            message[..g.len()].copy_from_slice(g);
            (self.entries(term, cloud, part, other), message)
        };
        let mut out = vec![0.0; rows.rows()];
        log_pass(&*rows).row_sums(&*rows, &message, &mut out);
        out
    }
}

/// `log sum_j k(x, y_j) v_j` at some points, on a lattice.
fn lattice_sums(
    lattice: &Lattice,
    points: &Points<'_>,
    others: &Points<'_>,
    g: &[f64],
) -> Result<Vec<f64>> {
    let mut message = vec![0.0; lattice.nodes()];
    // Nothing is cut off: the points may be anywhere.
    Separable::<f64>::new(others, lattice, f64::CUTOFF).message(g, &mut message);
    let mut out = vec![0.0; points.len()];
    Separable::<f64>::new(points, lattice, f64::CUTOFF).log_apply(&message, &mut out)?;
    Ok(out)
}

/// The dual value, out of logarithms of potentials.
fn value(outcome: &Outcome, a: &[f64], b: &[f64], run: Run) -> f64 {
    run.epsilon * (dot(a, &outcome.f) + dot(b, &outcome.g)) + run.offset
}

/// The value in the KL form, out of logarithms of potentials.
fn value_kl(outcome: &Outcome, a: &[f64], b: &[f64], run: Run) -> f64 {
    let kl = |f: &[f64], a: &[f64]| -> f64 { f.iter().zip(a).map(|(f, a)| a * (f - a.ln())).sum() };
    run.epsilon * (kl(&outcome.f, a) + kl(&outcome.g, b)) + run.offset
}

/// What the value would lose with a larger kernel of which `log K^T u = sums`, by weak duality: the best
/// second potential for it has no larger value than the problem.
fn dropped_value(outcome: &Outcome, sums: &[f64], goal: Goal<'_>, epsilon: f64) -> f64 {
    let lost = match goal.unbalanced {
        None => {
            let parts = sums.iter().zip(&outcome.g).zip(goal.b);
            epsilon * parts.map(|((s, g), b)| b * (g + s - b.ln())).sum::<f64>()
        }
        Some(unbalanced) => {
            let g = unbalanced.transform(sums);
            let log_mass = log_sum(g.iter().zip(sums).map(|(g, s)| g + s));
            let less = unbalanced.dual(&outcome.f, &g, log_mass).value;
            unbalanced.dual(&outcome.f, &outcome.g, 0.0).value - less
        }
    };
    lost.max(0.0)
}

/// Numbers beyond the range of double precision are no result.
fn check_finite(solution: &Solution) -> Result<()> {
    let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
    let what = if !finite(&[solution.value, solution.value_kl]) {
        "the value"
    } else if !finite(&[solution.mass, solution.marginal_gap_x, solution.marginal_gap_y]) {
        "the mass of the plan"
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

/// What solved the problem before with features, and the potential that it found.
type Rough<'s> = Option<(&'s Problem<'s>, &'s [f64])>;

/// One of the up to three solves of a problem.
struct Task {
    term: Term,
    x: Cloud,
    y: Cloud,
    start: Vec<f64>,
    /// Whether that is where solves start that know nothing.
    flat: bool,
    /// Where marginals are relaxed.
    unbalanced: Option<Unbalanced>,
    run: Run,
}

/// What the potentials of a task say.
struct Finished {
    value: f64,
    value_kl: f64,
    mass: f64,
    /// To be added to the logarithms of the potentials.
    shifts: [f64; 2],
    /// L1 distances of the marginals from the weights.
    gaps: [f64; 2],
}

/// How far the value is from that of the exact kernel.
#[derive(Debug, Clone, Copy)]
struct Distance {
    /// At most this, in units of the cost.
    bound: Option<f64>,
    /// The same from samples of the plan, as logarithms of a constant factor of the kernel.
    bounds: Option<Bounds>,
    /// Of sums in the precision of the kernel.
    rounding: f64,
}

/// Where the value of the exact kernel is, relative to the value of a solve.
#[derive(Debug, Clone, Copy)]
struct Around {
    interval: Option<Interval>,
    corrected: Option<f64>,
    /// What the iterations that were not done may have to do with the upper end.
    slack: f64,
}

impl Around {
    /// The interval of a value, unless its ends are beyond the range of the numbers.
    fn interval(&self, value: f64) -> Option<Interval> {
        self.interval
            .map(|interval| interval.shifted(value))
            .filter(|i| i.low.is_finite() && i.high.is_finite())
    }
}

/// What the kernels leave.
struct Solved {
    outcome: Outcome,
    builds: Builds,
    transport_cost: Option<f64>,
    distance: Distance,
    rank: usize,
    /// Logarithms at the points of weight zero.
    outside: [Vec<f64>; 2],
    kernel: Seen,
}

/// What a solve found out about its kernel.
#[derive(Default)]
struct Seen {
    /// The potentials are those of a kernel that is smaller by this, as a logarithm.
    shift: f64,
    /// The lattice in the end.
    lattice: Option<Lattice>,
    /// Logarithms of the mass of its nodes, also of those that it lacks.
    worth: Option<Vec<f64>>,
    /// Pairs of the plan, if any were drawn.
    pairs: Pairs,
    /// What the clouds last sent over stored features.
    messages: Vec<Vec<f64>>,
}

/// The plan `exp(level) u_i k(x_i, y_j) v_j` of a solve: logarithms of `u` and `v` on the supports, in the coordinates of
/// the term, and the lattice that the solve ended with.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Scaling {
    pub(crate) f: Vec<f64>,
    pub(crate) g: Vec<f64>,
    /// Where marginals are relaxed, the mass is in here: it may be too small for a number.
    level: f64,
    /// What the potentials of the solution have beside these.
    shifts: [f64; 2],
    /// The potentials are those of a kernel that is smaller by this, as a logarithm.
    shift: f64,
    lattice: Option<Lattice>,
    /// Its nodes one by one, if they are not all of a box.
    #[cfg_attr(feature = "serde", serde(skip))]
    listed: Option<Affine>,
    /// What the first cloud and the second send over their features, if that is known; of one with itself, one.
    messages: Vec<Vec<f64>>,
    /// Pairs of an earlier plan that the anchors of the kernel were placed around, if any were.
    pub(crate) fitted: Option<Pairs>,
}

impl Scaling {
    fn new(outcome: &Outcome, shifts: [f64; 2], seen: Seen) -> Self {
        let (f, g) = (outcome.f.clone(), outcome.g.clone());
        let Seen { shift, lattice, messages, .. } = seen;
        let level = shifts[0] + shifts[1] - shift;
        let listed = Self::listed(lattice.as_ref());
        Scaling { f, g, level, shifts, shift, lattice, listed, messages, fitted: None }
    }

    fn listed(lattice: Option<&Lattice>) -> Option<Affine> {
        lattice.filter(|l| l.kept().is_some()).map(lattice_map)
    }
}

impl Task {
    fn is_self(&self) -> bool {
        self.x == self.y
    }

    /// Mass of the plan that the kernel holds: 1 for cross terms, and at convergence.
    fn mass(&self, outcome: &Outcome) -> f64 {
        if self.is_self() || self.unbalanced.is_some() { outcome.x.log_mass.exp() } else { 1.0 }
    }

    fn finished(&self, outcome: &Outcome, a: &[f64], b: &[f64]) -> Finished {
        let Run { epsilon, offset, .. } = self.run;
        let Some(unbalanced) = &self.unbalanced else {
            return Finished {
                value: epsilon * (dot(a, &outcome.f) + dot(b, &outcome.g)) + offset,
                value_kl: value_kl(outcome, a, b, self.run),
                mass: 1.0,
                shifts: [0.0; 2],
                gaps: [outcome.x.error, outcome.y.error],
            };
        };
        let Dual { value, mass, shifts, .. } = unbalanced.dual(&outcome.f, &outcome.g, 0.0);
        let sums = [&outcome.x.sums, &outcome.y.sums];
        // eps sum P log P instead of eps KL(P | a b^T).
        let logs: f64 = [0, 1].map(|side| unbalanced.log_weights(side, sums[side])).iter().sum();
        Finished {
            value: value + epsilon * (mass * (logs + 1.0) - unbalanced.mass_product()),
            value_kl: value,
            mass,
            shifts,
            gaps: [0, 1].map(|side| unbalanced.gap(side, sums[side], mass)),
        }
    }

    /// How far the value moves when the logarithms of all entries of the kernel move by at most `logs`.
    fn bound(&self, outcome: &Outcome, logs: f64) -> f64 {
        match &self.unbalanced {
            None => self.run.epsilon * logs,
            Some(unbalanced) => unbalanced.dual(&outcome.f, &outcome.g, 0.0).bound(logs),
        }
    }

    /// Turns `-eps log K v` into the potential of a relaxed marginal, where the weight is zero.
    fn relax(&self, side: usize, potential: &mut [f64]) {
        if let Some(unbalanced) = &self.unbalanced {
            let tau = unbalanced.tau(side);
            for p in potential {
                *p *= tau;
            }
        }
    }

    fn solve(
        &self,
        kernel: &mut dyn Kernel,
        goal: Goal<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome> {
        sinkhorn::solve(kernel, goal, Some(&self.start), self.run, observer)
    }
}

/// Whether the maps are defined at all points.
fn check_maps(ground: &Ground<'_>, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<()> {
    let Ground::Maps { maps, frame, .. } = ground else { return Ok(()) };
    if let Some(frame) = frame {
        // They need potentials too.
        for outside in [mu.outside(), nu.outside()].into_iter().flatten() {
            frame.check_extent(outside)?;
        }
    }
    for (cloud, measure) in [(Cloud::X, mu), (Cloud::Y, nu)] {
        maps[cloud as usize]
            .check(measure.points())
            .map_err(|error| Error::InCloud { cloud, source: Box::new(error) })?;
    }
    Ok(())
}

/// Whether relaxed marginals go with the clouds and the terms.
fn check_rho(
    mu: &Measure<'_>,
    nu: &Measure<'_>,
    options: &Options<'_>,
    terms: Terms,
) -> Result<()> {
    let [x, y] = options.rho;
    if terms == Terms::All && x != y {
        return Err(Error::UnequalRho { x, y });
    }
    let masses = [mu.mass(), nu.mass()];
    let largest = masses[0].max(masses[1]);
    let product = if terms == Terms::All { largest * largest } else { masses[0] * masses[1] };
    if options.is_unbalanced() && !product.is_finite() {
        return Err(Error::Masses { x: masses[0], y: masses[1] });
    }
    Ok(())
}

/// Refuses to store so many numbers, if that is more than is allowed.
fn check_memory(storage: Storage, numbers: f64, options: &Options<'_>) -> Result<()> {
    let width = match options.precision {
        Precision::F32 => 4.0,
        Precision::F64 => 8.0,
    };
    let (what, remedy) = match storage {
        Storage::Factored | Storage::Separable => {
            ("the feature matrices", "use a smaller rank or single precision")
        }
        _ => ("the kernel matrix", "use the online method, or features (gaussian)"),
    };
    check_bytes(what, numbers * width, remedy, options)
}

/// Refuses a lattice that needs more memory than is allowed.
fn check_lattice(
    lattice: &Lattice,
    measures: [&Measure<'_>; 2],
    options: &Options<'_>,
) -> Result<()> {
    let points: usize = measures.iter().map(|m| m.support().len()).sum();
    let bytes = auto::lattice_bytes(lattice, points as f64);
    check_bytes("a lattice", bytes, "ask for less accuracy or a smaller rank", options)
}

/// Refuses signed features, and the eigenvectors that they come from, that need more memory than is
/// allowed.
fn check_nystrom(points: f64, landmarks: f64, options: &Options<'_>) -> Result<()> {
    let bytes = 8.0 * landmarks * (points + 4.0 * landmarks);
    check_bytes("the features of landmarks", bytes, "use a smaller rank", options)
}

fn check_bytes(
    what: &'static str,
    bytes: f64,
    remedy: &'static str,
    options: &Options<'_>,
) -> Result<()> {
    memory::check(what, bytes, options.max_memory, remedy)
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

fn cost_ground<'p>(
    cost: &'p Cost<'p>,
    storage: Storage,
    setting: Setting<'_, '_>,
) -> Result<Ground<'p>> {
    match cost {
        Cost::SquaredEuclidean => {
            euclidean(Pick::Exact { stored: storage == Storage::Dense }, storage, setting)
        }
        Cost::Matrix(matrix) => {
            matrix_ground(matrix, setting.mu, setting.nu, setting.options.epsilon)
        }
        Cost::Features(features) => feature_ground(features, storage, setting),
    }
}

/// A term in coordinates that all terms can share.
fn common(term: Term, setting: Setting<'_, '_>) -> Result<Stage> {
    let Setting { mu, nu, options, .. } = setting;
    Stage::new(Gauge::common(mu, nu, options.epsilon)?, term, mu, nu)
}

/// The terms of a squared Euclidean cost, each in its best coordinates.
fn gauged(setting: Setting<'_, '_>) -> Result<[Option<Stage>; 3]> {
    let Setting { mu, nu, options, terms, .. } = setting;
    let epsilon = options.epsilon;
    let mut stages = [None, None, None];
    for &term in terms.list() {
        let gauge = match term {
            Term::Cross if options.gauge => Gauge::cross(mu, nu, epsilon)?,
            Term::Cross => Gauge::common(mu, nu, epsilon)?,
            Term::SelfX => Gauge::own(mu, epsilon)?,
            Term::SelfY => Gauge::own(nu, epsilon)?,
        };
        stages[term as usize] = Some(Stage::new(gauge, term, mu, nu)?);
    }
    let errors = match setting.error {
        Some(error) => [Some(error); 3],
        None => setting.aim.kernel_errors(&stages, options.accuracy, epsilon),
    };
    for (stage, error) in stages.iter_mut().zip(errors) {
        if let Some(stage) = stage {
            stage.error = error;
        }
    }
    Ok(stages)
}

/// The ground of a squared Euclidean cost.
fn euclidean<'p>(pick: Pick, storage: Storage, setting: Setting<'_, '_>) -> Result<Ground<'p>> {
    furnish(pick, gauged(setting)?, storage, setting, None)
}

/// Puts features on the stages, with pairs of the plans of all terms if there are any.
fn furnish<'p>(
    pick: Pick,
    mut stages: [Option<Stage>; 3],
    storage: Storage,
    setting: Setting<'_, '_>,
    plans: Option<&[([Cloud; 2], &Pairs)]>,
) -> Result<Ground<'p>> {
    let Setting { mu, nu, options, terms, clock, .. } = setting;
    let per_term = matches!(pick, Pick::Exact { .. } | Pick::Lattice { .. });
    if !per_term && terms == Terms::All {
        // One map serves all terms of a divergence, so they must share their coordinates.
        for &term in terms.list() {
            stages[term as usize] = Some(common(term, setting)?);
        }
    }
    let used = match pick {
        Pick::Exact { .. } => Used::Online,
        Pick::Random { draw, rank } => {
            let stage = stages[terms.list()[0] as usize].as_ref().expect("always solved");
            let weights = [mu, nu].map(|m| Some(m.support().weights));
            let mut map = stage.random(&Axes::new(stage, weights), draw, rank, options.seed);
            if terms == Terms::Cross && !matches!(options.method, Method::Auto) {
                // A common factor cancels in a divergence, but not in a term alone. (Certificates find a better one.)
                let weights = [mu, nu].map(|m| m.support().weights);
                let log = stage.mean_log_ratio(&map, weights, options.seed, clock.cancel());
                if log.is_finite() {
                    map.scale(-0.5 * log);
                }
            }
            let map: Arc<dyn FeatureMap> = Arc::new(map);
            for stage in stages.iter_mut().flatten() {
                stage.features = Placement::Map(map.clone());
            }
            Used::Gaussian
        }
        Pick::Adaptive { rank } => {
            let stage = stages[terms.list()[0] as usize].as_ref().expect("always solved");
            let midpoints = if let Some(plans) = plans {
                stage.midpoints_of(plans)
            } else {
                let list: Vec<[Cloud; 2]> = terms.list().iter().map(|t| clouds(*t)).collect();
                let weights = [mu, nu].map(|m| m.support().weights);
                stage.likely_midpoints(&list, weights, options.seed)
            };
            let map: Arc<dyn FeatureMap> = Arc::new(stage.adaptive(&midpoints, rank, options.seed));
            for stage in stages.iter_mut().flatten() {
                stage.features = Placement::Map(map.clone());
            }
            Used::Gaussian
        }
        Pick::Lattice { stored } => {
            for &term in terms.list() {
                let stage = stages[term as usize].as_mut().expect("made above");
                let [x, y] = clouds(term);
                let measures = [x, y].map(|c| if c == Cloud::X { mu } else { nu });
                let lattice =
                    lattice(&auto::TermStage { stage, clouds: [x, y], measures }, options)?
                        .guarded(clock.cancel());
                stage.features = if stored || storage != Storage::Separable {
                    let numbers = lattice.rank() as f64
                        * (measures[0].support().len() + measures[1].support().len()) as f64;
                    check_memory(storage, numbers, options)?;
                    stage.lattice = Some(lattice.clone());
                    Placement::Map(Stage::stored_lattice(&lattice))
                } else {
                    check_lattice(&lattice, measures, options)?;
                    Placement::Lattice(lattice)
                };
            }
            Used::Lattice
        }
        Pick::Nystrom { landmarks, count } => {
            let stage = stages[Term::Cross as usize].as_ref().expect("always solved");
            let epsilon = stage.gauge.epsilon();
            let clouds = [Cloud::X, Cloud::Y].map(|cloud| stage.points(cloud, Part::Support));
            let cancel = clock.cancel();
            let chosen =
                landmarks::choose(&clouds, epsilon, count, landmarks, options.seed, cancel);
            let basis = Basis::nystrom(chosen, epsilon, cancel);
            let factors = Arc::new(Factors::new(basis, clouds));
            for stage in stages.iter_mut().flatten() {
                stage.features = Placement::Nystrom(factors.clone());
            }
            Used::Nystrom
        }
    };
    Ok(Ground::Euclidean { stages: Box::new(stages), used })
}

/// The lattice for a term: of the rank asked for, or of the accuracy.
fn lattice(term: &auto::TermStage<'_>, options: &Options<'_>) -> Result<Lattice> {
    let dim = term.measures[0].dim();
    if dim > MOST_AXES {
        return Err(Error::LatticeDimension { dim, most: MOST_AXES });
    }
    let most = most_nodes(term.measures.iter().map(|m| m.support().len()).sum());
    match lattice_rank(options) {
        None => term.lattice(options).ok_or(Error::LatticeSize { most }),
        Some(rank) => {
            let [low, high] = term.stage.midpoints(term.clouds[0], term.clouds[1]);
            let weighted = |k: usize| thinned::Weighted {
                points: term.stage.points(term.clouds[k], Part::Support),
                weights: term.measures[k].support().weights,
            };
            let clouds = [weighted(0), weighted(1)];
            thinned::of_rank(&low, &high, term.stage.gauge.epsilon(), rank, most, clouds)
                .ok_or(Error::LatticeRank { rank })
        }
    }
}

fn feature_ground<'p>(
    features: &'p Features<'p>,
    storage: Storage,
    setting: Setting<'_, '_>,
) -> Result<Ground<'p>> {
    let Setting { mu, nu, options, .. } = setting;
    let shared = |map: Arc<dyn FeatureMap>, used, frame| {
        if mu.dim() != nu.dim() {
            return Err(Error::Dimensions { x: mu.dim(), y: nu.dim() });
        }
        Ok(Ground::Maps { maps: [map.clone(), map], shared: true, used, frame })
    };
    let Options { epsilon, seed, .. } = *options;
    let rank = options.rank.unwrap_or(DEFAULT_RANK);
    match features {
        Features::Gaussian(Anchors::Random(draw)) => {
            euclidean(Pick::Random { draw: *draw, rank }, storage, setting)
        }
        Features::Gaussian(Anchors::Lattice { stored }) => {
            euclidean(Pick::Lattice { stored: *stored }, storage, setting)
        }
        Features::Gaussian(Anchors::Adaptive) => {
            euclidean(Pick::Adaptive { rank }, storage, setting)
        }
        Features::Gaussian(Anchors::Paper { centred }) => {
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
