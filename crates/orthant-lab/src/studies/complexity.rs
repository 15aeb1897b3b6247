//! Theorem 3.1: time and iterations against the number of points, of features, epsilon and delta.

use std::path::Path;
use std::time::{Duration, Instant};

use orthant::features::Gaussian;
use orthant::theory::{iterations_order, q_theta};
use orthant::{
    Method, Options, Solver,
    control::{Next, Progress},
    options::Algorithm,
    rot,
};
use orthant_draw::{Panel, Picture};
use orthant_support::Failure;
use orthant_support::clouds::{self, Clouds};
use orthant_support::number::{digits, short};
use serde::{Deserialize, Serialize};

use crate::config::{counts, positive};
use crate::page::{Figure, Mark, Section, Table, curve};
use crate::solve::{not_converged, reason};
use crate::spread::{Spread, listed, slope};
use crate::study::Study;

/// The settings: clouds are those of Figure 1, and one thing varies at a time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complexity {
    data_seed: u64,
    /// What the others are while one varies.
    n: usize,
    rank: usize,
    eps: f64,
    /// L1 error of the marginal at which Algorithm 1 stops.
    tolerance: f64,
    ns: Vec<usize>,
    /// All pairs up to here.
    n_sin: usize,
    ranks: Vec<usize>,
    /// Points while epsilon varies: `Q_theta` takes all pairs.
    n_eps: usize,
    epsilons: Vec<f64>,
    /// Errors of the value.
    deltas: Vec<f64>,
    repeats: usize,
    limit: f64,
}

/// Who iterates how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// The paper's features with its Algorithm 1.
    Plain,
    /// With its Algorithm 2.
    Accelerated,
    /// With Anderson acceleration.
    Anderson,
    /// All pairs, Algorithm 1.
    Sin,
    /// The automatic choice.
    Ours,
}

impl Way {
    const ALL: [Way; 5] = [Way::Plain, Way::Accelerated, Way::Anderson, Way::Sin, Way::Ours];

    fn name(self) -> &'static str {
        match self {
            Way::Plain => "RF, Algorithm 1",
            Way::Accelerated => "RF, Algorithm 2 (accelerated)",
            Way::Anderson => "RF, Anderson",
            Way::Sin => "Sin, all pairs",
            Way::Ours => "ours, accuracy 1e-3",
        }
    }

    /// In a subtitle.
    fn short(self) -> &'static str {
        match self {
            Way::Plain => "RF",
            Way::Accelerated => "accelerated",
            Way::Anderson => "Anderson",
            Way::Sin => "Sin",
            Way::Ours => "ours",
        }
    }

    fn colour(self) -> usize {
        match self {
            Way::Ours => 0,
            Way::Plain => 1,
            Way::Accelerated => 2,
            Way::Sin => 3,
            Way::Anderson => 4,
        }
    }
}

/// What varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Vary {
    N,
    Rank,
    Eps,
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Case {
    data_seed: u64,
    vary: Vary,
    way: Way,
    n: usize,
    rank: usize,
    eps: f64,
    tolerance: f64,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    deltas: Vec<f64>,
    seed: u64,
    limit: f64,
}

/// What came of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    seconds: f64,
    /// Until the error of the marginal was below the tolerance.
    iterations: Option<usize>,
    /// Until the value was within half of delta, for each delta.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    within: Vec<Option<usize>>,
    /// The theorem's order of that number, for each delta.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    order: Vec<f64>,
    failure: Option<String>,
}

impl Study for Complexity {
    type Case = Case;
    type Outcome = Cost;
    type Data = Clouds;

    fn check(&self) -> Result<(), String> {
        counts("n, rank, n_eps and repeats", &[self.n, self.rank, self.n_eps, self.repeats])?;
        counts("ns", &self.ns)?;
        counts("ranks", &self.ranks)?;
        positive("epsilons", &self.epsilons)?;
        positive("deltas", &self.deltas)?;
        positive("eps, tolerance and limit", &[self.eps, self.tolerance, self.limit])?;
        if self.epsilons.contains(&self.eps) {
            Ok(())
        } else {
            Err(format!("epsilons must have eps = {} among them: deltas vary there", self.eps))
        }
    }

    fn cases(&self) -> Vec<Case> {
        let case = |vary, way, n, rank, eps, seed| Case {
            data_seed: self.data_seed,
            vary,
            way,
            n,
            rank,
            eps,
            tolerance: self.tolerance,
            deltas: if vary == Vary::Eps { self.deltas.clone() } else { Vec::new() },
            seed,
            limit: self.limit,
        };
        let &Complexity { n, rank, eps, n_eps, .. } = self;
        let mut cases = Vec::new();
        for seed in 0..self.repeats as u64 {
            for &n in &self.ns {
                for way in [Way::Plain, Way::Accelerated, Way::Ours] {
                    cases.push(case(Vary::N, way, n, rank, eps, seed));
                }
                if n <= self.n_sin {
                    cases.push(case(Vary::N, Way::Sin, n, rank, eps, seed));
                }
            }
            for &rank in &self.ranks {
                for way in [Way::Plain, Way::Accelerated] {
                    cases.push(case(Vary::Rank, way, n, rank, eps, seed));
                }
            }
            for &eps in &self.epsilons {
                for way in [Way::Plain, Way::Accelerated, Way::Anderson] {
                    cases.push(case(Vary::Eps, way, n_eps, rank, eps, seed));
                }
            }
        }
        cases
    }

    fn seconds(&self, case: &Case) -> f64 {
        let (n, r) = (case.n as f64, case.rank as f64);
        let iterations = (3.0 + 5.0 / case.eps) * if case.vary == Vary::Eps { 10.0 } else { 1.0 };
        let time = match case.way {
            Way::Plain | Way::Anderson => 2.0 * n * r * (20e-9 + 0.7e-9 * iterations),
            Way::Accelerated => 2.0 * n * r * (20e-9 + 5e-9 * iterations),
            Way::Sin => n * n * (30e-9 + 0.5e-9 * iterations),
            Way::Ours => 2e-6 * n,
        };
        time.min(case.limit).max(1e-3)
    }

    fn words(&self, case: &Case) -> String {
        let Case { way, n, rank, eps, .. } = case;
        format!("{}, n = {n}, r = {rank}, eps = {eps}", way.name())
    }

    fn data(&self, _: Option<&Path>) -> Result<Clouds, Failure> {
        let most = self.ns.iter().copied().fold(self.n.max(self.n_eps), usize::max);
        Ok(clouds::figure_1(most, self.data_seed))
    }

    fn run(&self, clouds: &Clouds, case: &Case) -> Result<Cost, Failure> {
        match case.vary {
            Vary::N | Vary::Rank => timed(clouds, case),
            Vary::Eps => counted(clouds, case),
        }
    }

    fn section(&self, done: &[(Case, Cost)]) -> Result<Section, Failure> {
        let mut seen = Vec::new();
        let seconds = |cost: &Cost| (cost.failure.is_none()).then_some(cost.seconds);
        let by_n = Self::time_panel(done, Vary::N, "points of each cloud n", &seconds, &mut seen)?;
        let by_rank =
            Self::time_panel(done, Vary::Rank, "number of features r", &seconds, &mut seen)?;
        let panels =
            vec![by_n, by_rank, Self::by_eps(done, &mut seen)?, self.by_delta(done, &mut seen)?];
        let caption = format!(
            "Above: time until the L1 error of the marginal is below {}, features included, against the number of points \
             (r = {}, eps = {}) and of features (n = {}). Below: iterations until then against epsilon (n = {}), and \
             iterations until the value is within delta/2 of its limit against delta (eps = {}), with the theorem's order \
             (eps/delta) (Q_theta - log min(a, b))^2, constant 1. An iteration of Algorithm 2 is a trial of a step. Means \
             over {} repeats, bands from the lowest to the highest; crosses are failures.",
            short(self.tolerance),
            self.rank,
            self.eps,
            self.n,
            self.n_eps,
            self.eps,
            self.repeats
        );
        let picture = Picture::multiples("Time and iterations", 2, panels)?;
        let figures = vec![Figure { suffix: "", picture, caption }];
        Ok(Section { figures, table: self.table(done), seen })
    }
}

fn options(case: &Case, tolerance: f64) -> Result<Options, Failure> {
    let options = Options::builder(case.eps)
        .tolerance(tolerance)
        .max_iterations(1_000_000)
        .seed(case.seed)
        .time_limit(Duration::from_secs_f64(case.limit));
    let features = |algorithm| {
        options.clone().method(Method::paper()).rank(case.rank).algorithm(algorithm).gauge(false)
    };
    let options = match case.way {
        Way::Plain => features(Algorithm::Plain),
        Way::Accelerated => features(Algorithm::Accelerated),
        Way::Anderson => features(Algorithm::Anderson),
        Way::Sin => options.method(Method::dense()).algorithm(Algorithm::Plain).gauge(false),
        Way::Ours => options.method(Method::Auto).accuracy(1e-3),
    };
    Ok(options.build()?)
}

/// The time until the tolerance.
fn timed(clouds: &Clouds, case: &Case) -> Result<Cost, Failure> {
    let [mu, nu] = clouds.measures(case.n)?;
    let options = options(case, case.tolerance)?;
    let begun = Instant::now();
    let solved = rot(&mu, &nu, &options);
    let seconds = begun.elapsed().as_secs_f64();
    let (iterations, failure) = match solved {
        Ok(solution) => (Some(solution.iterations), not_converged(&solution, case.limit)),
        Err(error) => (None, Some(reason(&error))),
    };
    Ok(Cost { seconds, iterations, within: Vec::new(), order: Vec::new(), failure })
}

/// The error of the marginal at which a value counts as the limit.
const CONVERGED: f64 = 1e-10;

/// The iterations until several goals, from one solve that goes on to the end.
fn counted(clouds: &Clouds, case: &Case) -> Result<Cost, Failure> {
    let [mu, nu] = clouds.measures(case.n)?;
    let options = options(case, CONVERGED)?;
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    let mut watch = |progress: &mut Progress<'_>| {
        values.push(progress.value());
        errors.push(progress.marginal_error);
        Next::Continue
    };
    let begun = Instant::now();
    let solved = Solver::new(&options).observer(&mut watch).rot(&mu, &nu);
    let seconds = begun.elapsed().as_secs_f64();
    let iterations = errors.iter().position(|error| *error < case.tolerance).map(|k| k + 1);
    let solution = match solved {
        Ok(solution) => solution,
        Err(error) => {
            let failure = Some(reason(&error));
            return Ok(Cost {
                seconds,
                iterations,
                within: Vec::new(),
                order: Vec::new(),
                failure,
            });
        }
    };
    let short = |delta: f64| values.iter().position(|v| (solution.value - v).abs() <= 0.5 * delta);
    // Of a limit that was not reached nothing is known.
    let failure = not_converged(&solution, case.limit);
    let within = |delta: &f64| short(*delta).filter(|_| failure.is_none()).map(|k| k + 1);
    let map = Gaussian::paper(&mu, &nu, case.eps, case.rank, case.seed, true)?;
    let q = q_theta(&map, mu.points(), nu.points())?;
    let order = |delta: &f64| iterations_order(q, 1.0 / case.n as f64, case.eps, *delta);
    Ok(Cost {
        seconds,
        iterations,
        within: case.deltas.iter().map(within).collect(),
        order: case.deltas.iter().map(order).collect(),
        failure: failure.filter(|_| iterations.is_none()),
    })
}

impl Complexity {
    /// What an algorithm took, as what varies does.
    fn marks(
        done: &[(Case, Cost)],
        vary: Vary,
        way: Way,
        of: &dyn Fn(&Cost) -> Option<f64>,
    ) -> Vec<Mark> {
        let place = |case: &Case| match vary {
            Vary::N => case.n as f64,
            Vary::Rank => case.rank as f64,
            Vary::Eps => case.eps,
        };
        let runs = || done.iter().filter(|(case, _)| case.vary == vary && case.way == way);
        let mut places: Vec<f64> = runs().map(|(case, _)| place(case)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mark = |x: f64| {
            let here = runs().filter(|(case, _)| place(case) == x);
            Some(Mark { x, y: Spread::of(here.filter_map(|(_, cost)| of(cost)))? })
        };
        places.into_iter().filter_map(mark).collect()
    }

    /// Time, with slopes in the legend.
    fn time_panel(
        done: &[(Case, Cost)],
        vary: Vary,
        axis: &str,
        of: &dyn Fn(&Cost) -> Option<f64>,
        seen: &mut Vec<String>,
    ) -> Result<Panel, Failure> {
        let mut panel = Panel::new()
            .title(if vary == Vary::N { "Time against points" } else { "Time against features" })
            .axes(axis, "time in seconds")
            .logarithmic(true, true)
            .snug()
            .size(560.0, 420.0);
        let mut told = Vec::new();
        for way in Way::ALL {
            let marks = Self::marks(done, vary, way, of);
            let points: Vec<[f64; 2]> = marks.iter().map(|m| [m.x, m.y.mean]).collect();
            if let Some(slope) = slope(&points) {
                told.push((way, digits(slope, 2)));
            }
            curve(&mut panel, way.name(), &marks, way.colour())?;
            crosses(&mut panel, done, vary, way)?;
        }
        if !told.is_empty() {
            let what = if vary == Vary::N { "n" } else { "r" };
            let short: Vec<String> =
                told.iter().map(|(way, slope)| format!("{} {slope}", way.short())).collect();
            panel = panel.subtitle(format!("slopes: {}", short.join(", ")));
            let long: Vec<String> =
                told.iter().map(|(way, slope)| format!("{slope} ({})", way.name())).collect();
            let list = listed(&long);
            seen.push(format!(
                "Time grows as {what} to the power of {list}, fitted to logarithms."
            ));
        }
        Ok(panel)
    }

    fn by_eps(done: &[(Case, Cost)], seen: &mut Vec<String>) -> Result<Panel, Failure> {
        let mut panel = Panel::new()
            .title("Iterations against epsilon")
            .axes("epsilon", "iterations")
            .logarithmic(true, true)
            .snug()
            .size(560.0, 420.0);
        let mut least = Vec::new();
        for way in Way::ALL {
            let marks =
                Self::marks(done, Vary::Eps, way, &|cost| cost.iterations.map(|k| k as f64));
            curve(&mut panel, way.name(), &marks, way.colour())?;
            if let Some(first) = marks.first() {
                least.push((way.name(), first.x, first.y.mean));
            }
        }
        if let Some((_, eps, _)) = least.first() {
            let all: Vec<String> =
                least.iter().map(|(name, _, k)| format!("{} ({name})", digits(*k, 3))).collect();
            seen.push(format!("Iterations at eps = {eps}: {}.", listed(&all)));
        }
        Ok(panel)
    }

    fn by_delta(&self, done: &[(Case, Cost)], seen: &mut Vec<String>) -> Result<Panel, Failure> {
        let mut panel = Panel::new()
            .title("Iterations against the error of the value")
            .axes("delta, in units of the cost", "iterations")
            .logarithmic(true, true)
            .snug()
            .size(560.0, 420.0);
        let here = |way: Way| {
            let runs =
                done.iter().filter(|(case, _)| case.vary == Vary::Eps && case.eps == self.eps);
            runs.filter(move |(case, _)| case.way == way).map(|(_, cost)| cost)
        };
        for way in Way::ALL {
            let mark = |(k, &x): (usize, &f64)| {
                let all = here(way).filter_map(|cost| *cost.within.get(k)?);
                Some(Mark { x, y: Spread::of(all.map(|k| k as f64))? })
            };
            let marks: Vec<Mark> = self.deltas.iter().enumerate().filter_map(mark).collect();
            curve(&mut panel, way.name(), &marks, way.colour())?;
        }
        if let Some(cost) = here(Way::Plain).find(|cost| cost.order.len() == self.deltas.len()) {
            let line: Vec<[f64; 2]> =
                self.deltas.iter().zip(&cost.order).map(|(d, k)| [*d, *k]).collect();
            panel.dashed("order of Theorem 3.1", &line, 7)?;
            if let (Some(Some(took)), Some(order)) = (cost.within.last(), cost.order.last()) {
                let delta = self.deltas.last().copied().unwrap_or_default();
                seen.push(format!(
                    "At eps = {} Algorithm 1 has the value within {delta:e}/2 after {took} iterations; the order of the theorem \
                     is {} of them.",
                    self.eps,
                    short(*order)
                ));
            }
        }
        Ok(panel)
    }

    fn table(&self, done: &[(Case, Cost)]) -> Table {
        let within: Vec<String> = self.deltas.iter().map(|d| format!("within {d:e}/2")).collect();
        let mut header =
            vec!["varies", "method", "n", "r", "eps", "repeat", "seconds", "iterations", "failed"];
        header.extend(within.iter().map(String::as_str));
        let mut table = Table::new(&header);
        for (case, cost) in done {
            let count = |k: &Option<usize>| k.map_or_else(String::new, |k| k.to_string());
            let varies = match case.vary {
                Vary::N => "n",
                Vary::Rank => "r",
                Vary::Eps => "eps",
            };
            let mut row = vec![
                varies.to_owned(),
                case.way.name().to_owned(),
                case.n.to_string(),
                case.rank.to_string(),
                case.eps.to_string(),
                case.seed.to_string(),
                short(cost.seconds),
                count(&cost.iterations),
                cost.failure.clone().unwrap_or_default(),
            ];
            row.extend(
                (0..self.deltas.len()).map(|k| cost.within.get(k).map_or_else(String::new, count)),
            );
            table.row(row);
        }
        table
    }
}

/// Failures, at the time that they took.
fn crosses(panel: &mut Panel, done: &[(Case, Cost)], vary: Vary, way: Way) -> Result<(), Failure> {
    let failed = |(case, cost): &&(Case, Cost)| {
        case.vary == vary && case.way == way && cost.failure.is_some()
    };
    let place = |(case, cost): &(Case, Cost)| {
        let x = if vary == Vary::N { case.n } else { case.rank };
        [x as f64, cost.seconds]
    };
    let places: Vec<[f64; 2]> = done.iter().filter(failed).map(place).collect();
    let why = done.iter().find(|run| failed(run)).and_then(|(_, cost)| cost.failure.clone());
    if let Some(why) = why {
        panel.crosses(&format!("{} failed: {why}", way.name()), &places, way.colour())?;
    }
    Ok(())
}
