//! Points that move down the gradient of divergences: flows, and barycentres whose points are free.
//!
//! The points `x_i` of a measure `mu` with weights `w_i` move so that `F(x) = sum_k l_k S(mu, nu_k)` falls. The
//! gradient by a point over twice its weight is, for the squared Euclidean cost, the difference of two conditional
//! means,
//!
//! ```text
//! d_i = sum_k l_k E[y | x_i] - E[x | x_i],
//! ```
//!
//! the first along the plans to the `nu_k`, the second along that of `mu` with itself. A step of size 1 goes there.
//! That is right at once for a translate; what is finer than `sqrt(eps)` changes the plans with it and takes many
//! steps, which momentum shortens. A step that does not lower `F` is not taken: first the momentum is dropped, then
//! the step is halved.

use std::time::Instant;

use super::barycenter::shares;
use super::terms::{First, TermSource, common_map, is_interrupted, is_of_pair, solver};
use crate::anchors::{Draw, normals};
use crate::control::{Clock, Next, Observer, Stop, memory};
use crate::error::{Error, Result};
use crate::gradient::Gradient;
use crate::measure::{Measure, Points, coordinates};
use crate::numerics::dot;
use crate::options::{Method, Options};
use crate::problem::{Aim, Given, Problem, SharedMap, Start, Terms};
use crate::results::{Divergence, Kernels, Solution, Times};
use crate::solver::Solver;
use crate::term::Scaling;
use crate::words::{Side, Term};

/// Moves the points of a measure along the gradient of its Sinkhorn divergence from another, until that is as small as
/// it gets in a hundred steps.
///
/// ```
/// use orthant::{Measure, Options, Points, descent::flow};
/// let mu = Measure::uniform(Points::new(vec![0.2, 0.3, 0.9], 1)?);
/// let nu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
/// let flow = flow(&mu, &nu, &Options::builder(0.1).tolerance(1e-9).build()?)?;
/// assert!(flow.divergence.value < 1e-4 * flow.first);
/// assert!(flow.points.iter().zip([0.0, 1.0, 2.0]).all(|(x, y)| (x - y).abs() < 0.02));
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn flow(mu: &Measure<'_>, nu: &Measure<'_>, options: &Options) -> Result<Flow> {
    Descent::new(options).flow(mu, nu)
}

/// Told of every step.
type Each<'s> = dyn FnMut(&Step<'_>) -> Next + Send + 's;

/// How points move: flows and barycentres of free points, with their step rule.
///
/// ```
/// use orthant::{Measure, Options, Points, control::Next, descent::{Descent, Rest}};
/// // The barycentre of two translates of a triangle is one in the middle.
/// let at = |t: f64| Measure::uniform(Points::new(vec![t, 0.0, t + 1.0, 0.0, t, 1.0], 2).unwrap());
/// let options = Options::builder(0.1).tolerance(1e-9).build()?;
/// let mut values = Vec::new();
/// let found = Descent::new(&options)
///     .debiased(true)
///     .each(&mut |step| {
///         values.push(step.value);
///         Next::Continue
///     })
///     .barycenter(&[at(0.0), at(4.0)], &[0.5, 0.5], &at(0.3))?;
/// assert!((found.points[0] - 2.0).abs() < 1e-3 && found.points[1].abs() < 1e-3);
/// assert!(found.rest == Rest::Still && values.is_sorted_by(|a, b| a >= b));
/// # Ok::<(), orthant::Error>(())
/// ```
pub struct Descent<'s> {
    options: Options,
    step: f64,
    momentum: f64,
    max_steps: usize,
    until: f64,
    still: f64,
    debiased: bool,
    observer: Option<&'s mut dyn Observer>,
    each: Option<&'s mut Each<'s>>,
}

/// Where the points are after a step.
#[derive(Debug)]
#[non_exhaustive]
pub struct Step<'a> {
    /// Steps done; 0 before the first.
    pub number: usize,
    /// What is minimised: of a flow the divergence, of a barycentre the weighted sum.
    pub value: f64,
    /// The points, row-major.
    pub points: &'a [f64],
    /// How far the gradient leads, in the root mean square over the points.
    pub pull: f64,
    /// How far the points have moved in this step, in the root mean square.
    pub moved: f64,
    /// The size of the step.
    pub size: f64,
    /// Trials so far that were not taken.
    pub rejected: usize,
}

/// Why points came to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Rest {
    /// The value fell to the part of the first one that was asked for.
    Reached,
    /// The gradient has become a small part of the first one.
    Still,
    /// No step makes the value smaller: what is left is the error of the solves.
    Stalled,
    /// The largest number of steps was done.
    StepLimit,
    /// The time was up.
    TimeLimit,
    /// An observer asked for it.
    Requested,
    /// A solve did not converge within its iterations.
    IterationLimit,
}

impl Rest {
    /// A word for programs: `reached`, `still`, `stalled`, `step_limit`, `time_limit`, `requested`, `iteration_limit`.
    pub fn as_str(self) -> &'static str {
        match self {
            Rest::Reached => "reached",
            Rest::Still => "still",
            Rest::Stalled => "stalled",
            Rest::StepLimit => "step_limit",
            Rest::TimeLimit => "time_limit",
            Rest::Requested => "requested",
            Rest::IterationLimit => "iteration_limit",
        }
    }
}

/// Where a flow ended.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Flow {
    /// The points, row-major, in the order of those that were given. Points of weight zero have not moved.
    pub points: Vec<f64>,
    /// The divergence there.
    pub divergence: Divergence,
    /// The divergence before the first step.
    pub first: f64,
    /// Steps done.
    pub steps: usize,
    /// Gradients computed: steps, the start, and trials that were not taken.
    pub gradients: usize,
    /// Why it ended.
    pub rest: Rest,
    /// Where the time of all solves went.
    pub times: Times,
}

/// A barycentre whose points were free to move.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FreeBarycenter {
    /// The points, row-major; their weights are those of the start.
    pub points: Vec<f64>,
    /// `sum_k l_k W(a_k, p)`, or of a debiased one `sum_k l_k S(a_k, p)`.
    pub value: f64,
    /// What [`FreeBarycenter::value`] was before the first step.
    pub first: f64,
    /// `W(a_k, p)` or `S(a_k, p)`, one for each measure; 0 for measures of weight zero, which are left out.
    pub distances: Vec<f64>,
    /// Whether it is that of the divergence.
    pub debiased: bool,
    /// The term with the first measure that counts: epsilon, method, rank.
    pub solution: Solution,
    /// Steps done.
    pub steps: usize,
    /// Gradients computed: steps, the start, and trials that were not taken.
    pub gradients: usize,
    /// Why it ended.
    pub rest: Rest,
    /// Where the time of all solves went.
    pub times: Times,
}

impl<'s> Descent<'s> {
    /// Steps of size 1 at most, momentum 0.5, a hundred steps, or until the gradient is a thousandth of the first one.
    ///
    /// A [`time_limit`](crate::options::OptionsBuilder::time_limit) is that of all steps together. Each solve starts from the
    /// potentials of the step before.
    pub fn new(options: &Options) -> Self {
        Descent {
            options: options.clone(),
            step: 1.0,
            momentum: 0.5,
            max_steps: 100,
            until: 0.0,
            still: 1e-3,
            debiased: false,
            observer: None,
            each: None,
        }
    }

    /// The size of a step, positive: 1 goes where the gradient of the squared Euclidean cost leads. It is halved where
    /// the value would rise, and grows again to this. Features that define a cost of their own have other units.
    #[must_use]
    pub fn step(mut self, size: f64) -> Self {
        self.step = size;
        self
    }

    /// The part of the last step that is added to the next, from 0 to less than 1.
    #[must_use]
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// The largest number of steps.
    #[must_use]
    pub fn max_steps(mut self, steps: usize) -> Self {
        self.max_steps = steps;
        self
    }

    /// Ends when the value is at most this part of the first one. Default: 0, never. For flows
    /// and debiased barycentres: `W` may be negative.
    #[must_use]
    pub fn until(mut self, part: f64) -> Self {
        self.until = part;
        self
    }

    /// Ends when the gradient ([`Step::pull`]) is at most this part of the first one.
    #[must_use]
    pub fn still(mut self, part: f64) -> Self {
        self.still = part;
        self
    }

    /// Whether barycentres are those of the divergence. Flows always are; with `W` in its place points shrink towards
    /// each other, by `eps / 2` in the variance.
    #[must_use]
    pub fn debiased(mut self, debiased: bool) -> Self {
        self.debiased = debiased;
        self
    }

    /// Calls `observer` after every iteration of every solve. If it asks to stop, the last step that was finished is
    /// the end.
    #[must_use]
    pub fn observer(mut self, observer: &'s mut dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Calls `each` before the first step and after every step. It may end the descent.
    #[must_use]
    pub fn each(mut self, each: &'s mut Each<'s>) -> Self {
        self.each = Some(each);
        self
    }

    /// Moves the points of `mu` down the gradient of its divergence from `nu`.
    pub fn flow(mut self, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Flow> {
        self.debiased = true;
        let ended = self.run(mu, &[nu], &[1.0]).map_err(|error| match error {
            Error::InClouds { source, .. } if matches!(*source, Error::Dimensions { .. }) => {
                *source
            }
            Error::InClouds { source, .. } => Error::InCloud { cloud: Side::Y, source },
            other => other,
        })?;
        let Ended { points, state, first, steps, gradients, rest, times } = ended;
        let Some(TargetValue::Divergence(divergence)) = state.parts.into_iter().next() else {
            unreachable!("one debiased part")
        };
        Ok(Flow { points, divergence: *divergence, first, steps, gradients, rest, times })
    }

    /// The barycentre of measures on as many points as `start` has, with its weights: moves the points until `sum_k l_k
    /// W(a_k, p)`, or of [debiased](Descent::debiased) ones `sum_k l_k S(a_k, p)`, does not fall any more. Weights of
    /// the measures are divided by their sum.
    ///
    /// The sum has more than one minimum. [`Descent::start`] is a start that is not far from any measure.
    pub fn barycenter(
        self,
        measures: &[Measure<'_>],
        weights: &[f64],
        start: &Measure<'_>,
    ) -> Result<FreeBarycenter> {
        let all = shares(measures, weights)?;
        let kept: Vec<usize> = (0..measures.len()).filter(|&k| all[k] > 0.0).collect();
        let targets: Vec<&Measure<'_>> = kept.iter().map(|&k| &measures[k]).collect();
        let weights: Vec<f64> = kept.iter().map(|&k| all[k]).collect();
        let debiased = self.debiased;
        let ended = self.run(start, &targets, &weights).map_err(|error| match error {
            Error::InClouds { clouds, source } => {
                Error::InClouds { clouds: clouds.map(|k| kept[k]), source }
            }
            other => other,
        })?;
        let Ended { points, state, first, steps, gradients, rest, times } = ended;
        let mut distances = vec![0.0; measures.len()];
        for (&k, part) in kept.iter().zip(&state.parts) {
            distances[k] = part.value();
        }
        let value = state.value;
        let solution = match state.parts.into_iter().next() {
            Some(TargetValue::Divergence(divergence)) => divergence.cross,
            Some(TargetValue::Value(cross)) => *cross,
            None => unreachable!("a measure has positive weight"),
        };
        Ok(FreeBarycenter {
            points,
            value,
            first,
            distances,
            debiased,
            solution,
            steps,
            gradients,
            rest,
            times,
        })
    }

    /// Points drawn from several measures, to start a [barycentre](Descent::barycenter) from: of each in proportion to
    /// its weight, and moved a little at random, by a hundredth of `sqrt(eps)`, since points that coincide never part.
    pub fn start(
        &self,
        measures: &[Measure<'_>],
        weights: &[f64],
        count: usize,
    ) -> Result<Points<'static>> {
        let shares = shares(measures, weights)?;
        let dim = measures[0].dim();
        if let Some(k) = measures.iter().position(|m| m.dim() != dim) {
            let source = Error::Dimensions { x: dim, y: measures[k].dim() };
            return Err(Error::InClouds { clouds: [0, k], source: Box::new(source) });
        }
        let bytes = 8.0 * count as f64 * dim as f64;
        memory::check("the points", bytes, self.options.max_memory, "ask for fewer points")?;
        let nudge = NUDGE * self.options.epsilon.sqrt();
        let mut values = normals(Draw::Iid, count, dim, self.options.seed);
        let mut rows = values.chunks_exact_mut(dim);
        let mut put = |(k, i): (usize, usize)| {
            let row = rows.next().into_iter().flatten().enumerate();
            row.for_each(|(c, x)| *x = measures[k].points().coordinate(i, c) + nudge * *x);
        };
        // Equal steps along all weights in a row.
        let mut places = (0..count).map(|i| (i as f64 + 0.5) / count as f64).peekable();
        let (mut sum, mut last) = (0.0, (0, 0));
        for (k, (measure, share)) in measures.iter().zip(&shares).enumerate() {
            for (i, weight) in measure.weights().iter().enumerate() {
                let part = share * weight;
                if part > 0.0 {
                    sum += part;
                    last = (k, i);
                    while places.next_if(|place| *place < sum).is_some() {
                        put(last);
                    }
                }
            }
        }
        // What rounding has left.
        places.for_each(|_| put(last));
        Points::new(values, dim)
    }

    fn check(&self, start: &Measure<'_>, targets: &[&Measure<'_>]) -> Result<()> {
        let settings = [
            (
                "the step",
                self.step,
                "positive and finite",
                self.step > 0.0 && self.step.is_finite(),
            ),
            (
                "the momentum",
                self.momentum,
                "at least 0 and below 1",
                (0.0..1.0).contains(&self.momentum),
            ),
            ("until", self.until, "at least 0 and below 1", (0.0..1.0).contains(&self.until)),
            ("still", self.still, "at least 0 and below 1", (0.0..1.0).contains(&self.still)),
        ];
        for (name, value, expected, right) in settings {
            if !right {
                return Err(Error::Option { name, expected, value });
            }
        }
        for (k, target) in targets.iter().enumerate() {
            if target.dim() != start.dim() {
                let source = Error::Dimensions { x: start.dim(), y: target.dim() };
                return Err(Error::InClouds { clouds: [k; 2], source: Box::new(source) });
            }
        }
        let remedy = "use positive features or an exact method";
        let by = "the points";
        if let Method::Nystrom(_) = self.options.method {
            let reason = "the Nystrom approximation depends on them through its landmarks too";
            return Err(Error::NoDerivative { by, reason, remedy });
        }
        if let Method::Sampled(_) = self.options.method {
            let reason = "samples of the clouds would be others for other points";
            return Err(Error::NoDerivative { by, reason, remedy });
        }
        Ok(())
    }

    fn run(
        mut self,
        start: &Measure<'_>,
        targets: &[&Measure<'_>],
        shares: &[f64],
    ) -> Result<Ended> {
        self.check(start, targets)?;
        let mut observer = self.observer.take();
        // Whatever is done looks at the time of the whole.
        let clock = self.options.clock();
        let options = self.options.timed(&clock);
        let begun = Instant::now();
        let (map, of_pair) = clock.run(|| kernels_of(start, targets, &options))?;
        let source = match &map {
            Some(map) => TermSource::Shared { map, cache: None },
            None => TermSource::Apart,
        };
        let mut objective = Objective {
            targets,
            shares,
            options: &options,
            debiased: self.debiased,
            source,
            of_pair,
            begun,
            clock: &clock,
            selves: vec![None; targets.len()],
            times: Times::default(),
        };
        let state = match objective.at(start, None, &mut observer) {
            Ok(state) => state,
            Err(Halt::Error(error)) => return Err(error),
            // Nothing to return.
            Err(Halt::Rest(rest)) => return Err(Error::NoGradient { reason: rest.as_str() }),
        };
        let mut walk = Walk {
            start,
            mass: if self.options.is_unbalanced() { start.mass() } else { 1.0 },
            points: coordinates(start.points()),
            velocity: vec![0.0; start.points().len() * start.dim()],
            state,
            size: self.step,
            moved: 0.0,
            steps: 0,
            gradients: 1,
            rejected: 0,
        };
        let (first, first_pull) = (walk.state.value, walk.pull());
        let rest = loop {
            let pull = walk.pull();
            if let Some(each) = &mut self.each
                && each(&walk.seen(pull)) == Next::Stop
            {
                break Rest::Requested;
            }
            if !walk.state.converged() {
                break Rest::IterationLimit;
            } else if self.until > 0.0 && walk.state.value <= self.until * first {
                break Rest::Reached;
            } else if pull <= self.still * first_pull {
                break Rest::Still;
            } else if walk.steps >= self.max_steps {
                break Rest::StepLimit;
            }
            match walk.step(&mut objective, [self.step, self.momentum], pull, &mut observer) {
                Ok(()) => {}
                Err(Halt::Rest(rest)) => break rest,
                Err(Halt::Error(error)) => return Err(error),
            }
        };
        let Walk { points, state, steps, gradients, .. } = walk;
        Ok(Ended { points, state, first, steps, gradients, rest, times: objective.times })
    }
}

/// Points on their way.
struct Walk<'w> {
    start: &'w Measure<'w>,
    mass: f64,
    points: Vec<f64>,
    /// The last step, or zero.
    velocity: Vec<f64>,
    state: State,
    size: f64,
    moved: f64,
    steps: usize,
    gradients: usize,
    rejected: usize,
}

impl Walk<'_> {
    /// The weights as the problem has them.
    fn masses(&self) -> impl Iterator<Item = f64> {
        self.start.weights().iter().map(|w| w * self.mass)
    }

    /// How far the gradient leads: the root of the mean of `|g / 2w|^2`.
    fn pull(&self) -> f64 {
        let (dim, weights) = (self.start.dim(), self.start.weights());
        let square = |i: usize| {
            let gradient = &self.state.gradient[i * dim..(i + 1) * dim];
            let square: f64 = gradient.iter().map(|g| 0.25 * g * g).sum();
            if weights[i] > 0.0 { square / (weights[i] * self.mass) } else { 0.0 }
        };
        (self.start.points().span().sum(square) / self.mass).sqrt()
    }

    fn seen(&self, pull: f64) -> Step<'_> {
        Step {
            number: self.steps,
            value: self.state.value,
            points: &self.points,
            pull,
            moved: self.moved,
            size: self.size,
            rejected: self.rejected,
        }
    }

    /// One step, to a lower value.
    fn step(
        &mut self,
        objective: &mut Objective<'_>,
        [largest, momentum]: [f64; 2],
        pull: f64,
        observer: &mut Option<&mut dyn Observer>,
    ) -> Trial<()> {
        // Far faster than such a gradient makes them in the long run: what led there is done.
        if self.moved * (1.0 - momentum) > 2.0 * self.size * pull {
            self.velocity.fill(0.0);
        }
        // The first step may be far too long.
        let least = self.size * if self.steps == 0 { SMALLEST_FIRST } else { SMALLEST_NEXT };
        loop {
            let velocity = self.faster(momentum);
            let there: Vec<f64> = self.points.iter().zip(&velocity).map(|(x, v)| x + v).collect();
            self.gradients += 1;
            let found = moved_to(self.start, &there)
                .map_err(Halt::from)
                .and_then(|measure| objective.at(&measure, Some(&self.state), observer));
            let failure = match found {
                Ok(next) if next.value < self.state.value => {
                    (self.points, self.velocity, self.state) = (there, velocity, next);
                    break;
                }
                Ok(_) => Halt::Rest(Rest::Stalled),
                Err(Halt::Rest(rest)) => return Err(Halt::Rest(rest)),
                // Too far: out of range, or where features are not defined.
                Err(error) => error,
            };
            self.rejected += 1;
            if self.velocity.iter().any(|v| *v != 0.0) {
                self.velocity.fill(0.0);
            } else if self.size > least {
                self.size *= 0.5;
            } else {
                return Err(failure);
            }
        }
        let (dim, weights) = (self.start.dim(), self.start.weights());
        let (velocity, gradient) = (&self.velocity, &self.state.gradient);
        let [square, uphill] = self.start.points().span().sums(|i| {
            let own = i * dim..(i + 1) * dim;
            let v = &velocity[own.clone()];
            [weights[i] * dot(v, v), dot(v, &gradient[own])]
        });
        self.moved = square.sqrt();
        if uphill > 0.0 {
            self.velocity.fill(0.0);
        }
        self.size = (1.5 * self.size).min(largest);
        self.steps += 1;
        Ok(())
    }

    /// The velocity with the gradient.
    fn faster(&self, momentum: f64) -> Vec<f64> {
        let dim = self.start.dim();
        let rows = self.velocity.chunks_exact(dim).zip(self.state.gradient.chunks_exact(dim));
        rows.zip(self.masses())
            .flat_map(|((v, g), w)| {
                let scale = if w > 0.0 { 0.5 * self.size / w } else { 0.0 };
                v.iter().zip(g).map(move |(v, g)| momentum * v - scale * g)
            })
            .collect()
    }
}

impl std::fmt::Debug for Descent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Descent")
            .field("options", &self.options)
            .field("step", &self.step)
            .field("momentum", &self.momentum)
            .field("max_steps", &self.max_steps)
            .finish_non_exhaustive()
    }
}

/// How far points of a start are moved, in units of `sqrt(eps)`.
const NUDGE: f64 = 0.01;
/// Steps are not made smaller than this part of what was asked for, and later of the one before.
const SMALLEST_FIRST: f64 = 1e-12;
const SMALLEST_NEXT: f64 = 1e-3;

/// What a descent leaves.
struct Ended {
    points: Vec<f64>,
    state: State,
    first: f64,
    steps: usize,
    gradients: usize,
    rest: Rest,
    times: Times,
}

/// The measure with its points elsewhere.
fn moved_to<'a>(measure: &Measure<'_>, points: &'a [f64]) -> Result<Measure<'a>> {
    let points = Points::new(points, measure.dim())?;
    Measure::weighted(points, measure.weights())?.with_mass(measure.mass())
}

/// The map that serves all points, as the start has them, if one does; and whether there is one kernel for the three
/// terms of each pair instead.
fn kernels_of(
    start: &Measure<'_>,
    targets: &[&Measure<'_>],
    options: &Options,
) -> Result<(Option<SharedMap>, bool)> {
    if is_of_pair(&options.method) {
        return Ok((None, true));
    }
    if matches!(options.method, Method::Auto) {
        // Random features of a divergence are those of its three terms, so that their errors cancel.
        let asked = (options, &Given::default());
        let problem = Problem::aimed(start, targets[0], asked, Terms::All, Aim::Terms)?;
        return Ok((None, problem.kernels() == Kernels::Shared));
    }
    let all: Vec<&Measure<'_>> = std::iter::once(start).chain(targets.iter().copied()).collect();
    Ok((common_map(&all, options)?, false))
}

/// What is minimised.
struct Objective<'t> {
    targets: &'t [&'t Measure<'t>],
    shares: &'t [f64],
    options: &'t Options,
    debiased: bool,
    source: TermSource<'t>,
    /// Whether the three terms of a pair have one kernel.
    of_pair: bool,
    clock: &'t Clock,
    begun: Instant,
    /// The targets with themselves, once solved.
    selves: Vec<Option<Solution>>,
    times: Times,
}

/// The value somewhere, with what is needed to go on.
struct State {
    value: f64,
    gradient: Vec<f64>,
    parts: Vec<TargetValue>,
}

impl State {
    fn converged(&self) -> bool {
        self.parts.iter().all(TargetValue::converged)
    }
}

/// The part of a target.
enum TargetValue {
    Divergence(Box<Divergence>),
    /// The cross term alone, as the barycentres on a given support have it.
    Value(Box<Solution>),
}

impl TargetValue {
    fn value(&self) -> f64 {
        match self {
            TargetValue::Divergence(divergence) => divergence.value,
            TargetValue::Value(cross) => cross.value,
        }
    }

    fn cross(&self) -> &Solution {
        match self {
            TargetValue::Divergence(divergence) => &divergence.cross,
            TargetValue::Value(cross) => cross,
        }
    }

    fn divergence(&self) -> Option<&Divergence> {
        match self {
            TargetValue::Divergence(divergence) => Some(divergence),
            TargetValue::Value(_) => None,
        }
    }

    fn converged(&self) -> bool {
        match self {
            TargetValue::Divergence(divergence) => divergence.converged(),
            TargetValue::Value(cross) => cross.converged(),
        }
    }
}

/// Why there is no value.
enum Halt {
    Error(Error),
    /// Some limit came in between.
    Rest(Rest),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        match error {
            Error::TimeLimit { .. } => Halt::Rest(Rest::TimeLimit),
            error => Halt::Error(error),
        }
    }
}

type Trial<T> = std::result::Result<T, Halt>;

impl Objective<'_> {
    /// The value and the gradient where `mu` is.
    fn at(
        &mut self,
        mu: &Measure<'_>,
        last: Option<&State>,
        observer: &mut Option<&mut dyn Observer>,
    ) -> Trial<State> {
        let mut state = State {
            value: 0.0,
            gradient: vec![0.0; mu.points().len() * mu.dim()],
            parts: Vec::with_capacity(self.targets.len()),
        };
        let clock = self.clock;
        let done = clock.try_run(|| {
            Ok(if self.of_pair && self.debiased {
                self.pairs(&mut state, mu, last, observer)
            } else {
                self.terms(&mut state, mu, last, observer)
            })
        });
        done?.unwrap_or(Err(Halt::Rest(Rest::TimeLimit)))?;
        state.value = self.shares.iter().zip(&state.parts).map(|(l, part)| l * part.value()).sum();
        if state.value.is_finite() {
            Ok(state)
        } else {
            Err(Error::Overflow { what: "the value of a step" }.into())
        }
    }

    /// The options with the time that is left.
    fn options(&self) -> Trial<Options> {
        self.options.since(self.begun).ok_or(Halt::Rest(Rest::TimeLimit))
    }

    /// Counts the time of a solve, and goes on unless it was interrupted.
    fn done(&mut self, solution: &Solution) -> Trial<()> {
        self.times.features += solution.times.features;
        self.times.solve += solution.times.solve;
        match solution.stop {
            _ if !is_interrupted(solution) => Ok(()),
            Stop::TimeLimit => Err(Halt::Rest(Rest::TimeLimit)),
            _ => Err(Halt::Rest(Rest::Requested)),
        }
    }

    /// Divergences with a kernel each.
    fn pairs(
        &mut self,
        state: &mut State,
        mu: &Measure<'_>,
        last: Option<&State>,
        observer: &mut Option<&mut dyn Observer>,
    ) -> Trial<()> {
        for (k, (target, share)) in self.targets.iter().zip(self.shares).enumerate() {
            let options = self.options()?;
            let mut solver = solver(&options, observer).term_by_term();
            if let Some(before) = last.and_then(|last| last.parts[k].divergence()) {
                solver = solver.warm_start_divergence(before);
            }
            let plans = in_target(k, solver.plans(mu, target))?;
            plans.divergence().terms().into_iter().try_for_each(|term| self.done(term))?;
            add(&mut state.gradient, *share, &plans.gradient().points(Side::X)?);
            state.parts.push(TargetValue::Divergence(Box::new(plans.into_divergence())));
        }
        Ok(())
    }

    /// Term by term, the points with themselves once, and the targets with themselves once for all steps.
    fn terms(
        &mut self,
        state: &mut State,
        mu: &Measure<'_>,
        last: Option<&State>,
        observer: &mut Option<&mut dyn Observer>,
    ) -> Trial<()> {
        let mut own = None;
        if self.debiased {
            let options = self.options()?;
            let before = last.and_then(|last| last.parts[0].divergence());
            let start = before.map_or(Start::Flat, |d| Start::Potential(&d.self_x.potential_x));
            let solved = self.own(mu, start, &mut solver(&options, observer))?;
            self.done(&solved.solution)?;
            add(&mut state.gradient, -0.5, &solved.gradient()?);
            own = Some(solved.solution);
        }
        for k in 0..self.targets.len() {
            if self.debiased && self.selves[k].is_none() {
                let options = self.options()?;
                let mut solver = solver(&options, observer);
                let solved = self.own(self.targets[k], Start::Flat, &mut solver);
                let solution = in_target(k, solved)?.solution;
                self.done(&solution)?;
                self.selves[k] = Some(solution);
            }
            let options = self.options()?;
            let mut solver = solver(&options, observer);
            if let Some(last) = last {
                solver = solver.warm_start(last.parts[k].cross());
            }
            let otherwise = own.as_ref().map_or(Start::Flat, |x| Start::Similar(&x.potential_x));
            let how = (otherwise, Aim::Own);
            let clouds = [mu, self.targets[k]];
            let first = self.source.cross([0, k + 1], clouds, how, &mut solver);
            let solved = first.and_then(|first| SolvedTerm::new(Term::Cross, first, &mut solver));
            let solved = in_target(k, solved)?;
            self.done(&solved.solution)?;
            add(&mut state.gradient, self.shares[k], &solved.gradient()?);
            let shared = self.of_pair || self.source.is_shared();
            let kernels = if shared { Kernels::Shared } else { solved.problem.kernels() };
            let (mass_term, cross) = (solved.problem.mass_term(), solved.solution);
            state.parts.push(match (&own, &self.selves[k]) {
                (Some(x), Some(y)) => {
                    let terms = [cross, x.clone(), y.clone()];
                    TargetValue::Divergence(Box::new(Divergence::of(terms, kernels, mass_term)?))
                }
                _ => TargetValue::Value(Box::new(cross)),
            });
        }
        Ok(())
    }

    /// A measure with itself.
    fn own<'p>(
        &mut self,
        mu: &Measure<'p>,
        start: Start<'_>,
        solver: &mut Solver<'_, '_>,
    ) -> Result<SolvedTerm<'p>> {
        let first = self.source.own(0, mu, (start, Aim::Own), solver)?;
        SolvedTerm::new(Term::SelfX, first, solver)
    }
}

/// A term with its plan.
struct SolvedTerm<'p> {
    term: Term,
    problem: Problem<'p>,
    scaling: Scaling,
    solution: Solution,
}

impl<'p> SolvedTerm<'p> {
    /// Goes on with a first solution.
    fn new(term: Term, first: First<'p>, solver: &mut Solver<'_, '_>) -> Result<Self> {
        let (problem, first) = first;
        let terms = if term == Term::Cross { Terms::Cross } else { Terms::Own };
        let (problem, [(solution, scaling)]) = solver.improve(problem, terms, [first])?;
        Ok(SolvedTerm { term, problem, scaling, solution })
    }

    /// The derivative by the points of the first cloud.
    fn gradient(&self) -> Result<Vec<f64>> {
        let SolvedTerm { term, problem, scaling, solution } = self;
        Gradient::new(problem, [(*term, 1.0, scaling, solution)]).points(Side::X)
    }
}

fn add(sum: &mut [f64], factor: f64, more: &[f64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += factor * more);
}

/// Says which target an error is about, if it is not about the points that move.
fn in_target<R>(k: usize, result: Result<R>) -> Result<R> {
    result.map_err(|error| match error {
        Error::InCloud { cloud: Side::Y, source } => Error::InClouds { clouds: [k; 2], source },
        other => other,
    })
}
