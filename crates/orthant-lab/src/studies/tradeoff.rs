//! Figures 1, 3 and 5: the deviation from the truth against time, for several epsilons.

use std::path::Path;

use orthant::Measure;
use orthant_draw::{Panel, Picture};
use serde::{Deserialize, Serialize};

use crate::clouds::{self, Clouds};
use crate::config::{counts, positive};
use crate::failure::Failure;
use crate::higgs;
use crate::page::{Figure, Mark, Section, Table, curve};
use crate::solve::{self, Entrant, Request, Solved, Truth};
use crate::spread::{Spread, digits, duration, listed, short};
use crate::study::Study;

/// Between which clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Problem {
    Gaussians,
    Sphere,
    Higgs,
}

/// The settings.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tradeoff {
    problem: Problem,
    /// Points of each cloud.
    n: usize,
    /// Of the clouds; they are the same in all repeats, in which features are drawn anew.
    data_seed: u64,
    eps: Vec<f64>,
    /// For every epsilon: of random features, and of ours.
    repeats: Vec<usize>,
    /// Of the Nystrom approximation.
    repeats_nys: usize,
    /// Of Sinkhorn's algorithm, in which nothing is random but the time.
    repeats_sin: usize,
    ranks: Vec<usize>,
    /// What ours is asked for, in place of ranks.
    accuracies: Vec<f64>,
    /// L1 error of the marginal at which Algorithm 1 stops.
    tolerance: f64,
    /// Seconds after which a solve has failed.
    limit: f64,
    truth: Truth,
}

/// A run: the problem, and what is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Case {
    problem: Problem,
    n: usize,
    data_seed: u64,
    #[serde(flatten)]
    request: Request,
}

impl Study for Tradeoff {
    type Case = Case;
    type Outcome = Solved;
    type Data = [Measure<'static>; 2];

    fn check(&self) -> Result<(), String> {
        positive("eps", &self.eps)?;
        positive("accuracies", &self.accuracies)?;
        positive("tolerance and limit", &[self.tolerance, self.limit])?;
        counts("ranks", &self.ranks)?;
        counts("n", &[self.n])?;
        counts("repeats", &self.repeats)?;
        if self.repeats.len() == self.eps.len() {
            Ok(())
        } else {
            Err(format!(
                "{} repeats for {} eps; give one for each",
                self.repeats.len(),
                self.eps.len()
            ))
        }
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (&eps, &repeats) in self.eps.iter().zip(&self.repeats) {
            let mut requests = vec![Request::truth(eps, self.truth)];
            for (entrant, repeats) in [
                (Entrant::Ours, repeats),
                (Entrant::Sin, self.repeats_sin),
                (Entrant::Nys, self.repeats_nys),
                (Entrant::Rf, repeats),
            ] {
                for seed in 0..repeats as u64 {
                    requests.extend(self.requests(entrant, eps, seed));
                }
            }
            let case = |request| {
                let (problem, n, data_seed) = (self.problem, self.n, self.data_seed);
                Case { problem, n, data_seed, request }
            };
            cases.extend(requests.into_iter().map(case));
        }
        cases
    }

    fn seconds(&self, case: &Case) -> f64 {
        let Case { n, request, .. } = case;
        let n = *n as f64;
        let r = request.rank.unwrap_or(0) as f64;
        let reach = match self.problem {
            Problem::Gaussians => 5.0,
            Problem::Sphere => 2.0,
            Problem::Higgs => 50.0,
        };
        let iterations = 3.0 + reach / request.eps;
        let time = match request.entrant {
            Entrant::Rf => 2.0 * n * r * (20e-9 + 0.7e-9 * iterations),
            Entrant::Nys => 0.25e-9 * 2.0 * n * r * r,
            Entrant::Sin => n * n * (30e-9 + 0.5e-9 * iterations),
            Entrant::Truth if self.truth == Truth::Exact => n * n * 5e-9 * (20.0 + iterations),
            Entrant::Truth => n * 1e-5 * iterations.sqrt(),
            Entrant::Ours if self.problem == Problem::Higgs => n * n * 2e-7,
            Entrant::Ours => n * 2e-6 * iterations.sqrt(),
        };
        time.min(request.limit).max(1e-3)
    }

    fn words(&self, case: &Case) -> String {
        let Request { entrant, eps, .. } = case.request;
        format!("eps = {eps}, {}, {}", entrant.name(), case.request.setting())
    }

    fn data(&self, folder: Option<&Path>) -> Result<Self::Data, Failure> {
        let clouds = match self.problem {
            Problem::Higgs => higgs::read(folder, self.n, self.data_seed)?,
            _ => self.clouds(),
        };
        clouds.measures(self.n)
    }

    fn run(&self, data: &Self::Data, case: &Case) -> Result<Solved, Failure> {
        solve::solve(&case.request, data)
    }

    fn section(&self, done: &[(Case, Solved)]) -> Result<Section, Failure> {
        let groups: Vec<Group<'_>> =
            self.eps.iter().filter_map(|&eps| Group::new(eps, done)).collect();
        let mut figures = Vec::new();
        if self.problem == Problem::Sphere {
            figures.push(self.picture_of_clouds()?);
        }
        if !groups.is_empty() {
            figures.push(self.deviations(&groups)?);
            figures.push(self.errors(&groups)?);
        }
        let mut seen: Vec<String> = groups.iter().map(Group::sentence).collect();
        seen.push(self.about_truth(&groups));
        Ok(Section { figures, table: table(&groups), seen })
    }
}

impl Tradeoff {
    /// From seeds.
    fn clouds(&self) -> Clouds {
        match self.problem {
            Problem::Gaussians | Problem::Higgs => clouds::gaussians(self.n, self.data_seed),
            Problem::Sphere => clouds::caps(self.n, self.data_seed),
        }
    }

    /// What an entrant is asked for in one repeat.
    fn requests(&self, entrant: Entrant, eps: f64, seed: u64) -> Vec<Request> {
        let &Tradeoff { tolerance, limit, .. } = self;
        let request =
            |rank, accuracy| Request { entrant, eps, rank, accuracy, seed, tolerance, limit };
        match entrant {
            Entrant::Rf | Entrant::Nys => {
                self.ranks.iter().map(|&rank| request(Some(rank), None)).collect()
            }
            Entrant::Ours => self.accuracies.iter().map(|&a| request(None, Some(a))).collect(),
            Entrant::Sin | Entrant::Truth => vec![request(None, None)],
        }
    }

    /// Figure 2: the sphere, seen from above both caps.
    fn picture_of_clouds(&self) -> Result<Figure, Failure> {
        let clouds = self.clouds();
        // Along z: the caps are around (-1/2, 0, .87) and (1/2, 0, .87). A little from below, to look round.
        let tilt = 0.35_f64;
        let seen = |x: &[f64]| [x[0], x[1] * tilt.cos() + x[2] * tilt.sin()];
        let cloud = |values: &[f64]| values.chunks_exact(3).map(seen).collect::<Vec<_>>();
        let mut panel = Panel::new()
            .title("Two clouds on the unit sphere")
            .axes("axis 1", "axis 2, tilted towards axis 3")
            .equal()
            .size(620.0, 620.0);
        let circle = |k: u32| f64::from(k) * std::f64::consts::TAU / 180.0;
        let outline: Vec<[f64; 2]> =
            (0..=180).map(|k| [circle(k).cos(), circle(k).sin()]).collect();
        panel.line("outline of the sphere", &outline, 7)?;
        panel.cloud("first cloud", &cloud(&clouds.x), 0)?;
        panel.cloud("second cloud", &cloud(&clouds.y), 1)?;
        let caption = format!(
            "Figure 2. {} points each, uniform on two caps of half-angle 50 degrees whose centres are 60 degrees apart. The \
             paper shows its clouds and does not say how they were drawn.",
            self.n
        );
        Ok(Figure { suffix: "-clouds", picture: panel.into(), caption })
    }

    /// As the paper has it: D against time.
    fn deviations(&self, groups: &[Group<'_>]) -> Result<Figure, Failure> {
        let mut panels = Vec::new();
        for group in groups {
            let curves = group.curves(self, |d| d);
            let ways = group.way(|d| d);
            let heights = curves.iter().flat_map(|c| &c.marks).flat_map(|m| [m.y.low, m.y.high]);
            let range = Spread::of(heights.chain([100.0])).unwrap_or(NOTHING);
            let margin = 0.1 * (range.high - range.low).max(0.1);
            let y = [range.low - margin, range.high + margin];
            let mut panel = group.panel(&curves, &ways, y);
            panel.level("", 100.0)?;
            group.fill(&mut panel, &curves, &ways, y)?;
            panels.push(panel.axes("time in seconds", "deviation D in %"));
        }
        let caption = format!(
            "Deviation from the truth, D = 100 (W - W_hat) / |W| + 100 in percent (100 is right), against the time of features \
             and iterations until the L1 error of the marginal is below {}. Marks are ranks {} (RF, Nys) or \
             accuracies {} (ours), means over repeats; bands go from the lowest to the highest. Sin is drawn along its \
             iterations. Crosses are failures, at the lower edge where there is no value at all.",
            short(self.tolerance),
            listed(&self.ranks.iter().map(ToString::to_string).collect::<Vec<_>>()),
            listed(&self.accuracies.iter().map(|a| format!("{a:e}")).collect::<Vec<_>>()),
        );
        let picture = Picture::multiples("Deviation from the truth", 3, panels)?;
        Ok(Figure { suffix: "", picture, caption })
    }

    /// The same on a logarithmic scale, so that small errors can be told apart.
    fn errors(&self, groups: &[Group<'_>]) -> Result<Figure, Failure> {
        let error = |d: f64| (d - 100.0).abs().max(LEAST);
        let mut panels = Vec::new();
        for group in groups {
            let curves = group.curves(self, error);
            let ways = group.way(error);
            let heights = curves.iter().flat_map(|c| &c.marks).flat_map(|m| [m.y.low, m.y.high]);
            let range = Spread::of(heights.chain(ways.iter().map(|p| p[1]))).unwrap_or(NOTHING);
            let y = [0.3 * range.low, 3.0 * range.high];
            let mut panel = group.panel(&curves, &ways, y).logarithmic(true, true);
            group.fill(&mut panel, &curves, &ways, y)?;
            panels.push(panel.axes("time in seconds", "error |D - 100| in %"));
        }
        let caption = format!(
            "The same as an error, |D - 100| in percent, on logarithmic axes. Errors below {LEAST:e} % are drawn there."
        );
        let picture = Picture::multiples("Error of the value", 3, panels)?;
        Ok(Figure { suffix: "-error", picture, caption })
    }

    fn about_truth(&self, groups: &[Group<'_>]) -> String {
        let worst = groups.iter().filter_map(|g| Some(100.0 * g.truth_bound? / g.truth.abs()));
        match (self.truth, Spread::of(worst)) {
            (Truth::Lattice, Some(worst)) => format!(
                "The truth W is that of features on a lattice, whose distance from the exact kernel is proven to be at most \
                 {} % of W at every epsilon, converged to an L1 error of the marginals of 1e-9.",
                short(worst.high)
            ),
            _ => "The truth W is that of the exact kernel, all pairs, converged to an L1 error of the marginals of 1e-9."
                .to_owned(),
        }
    }
}

/// In percent; what is below is drawn here.
const LEAST: f64 = 1e-9;

/// A range where there is nothing to see.
const NOTHING: Spread = Spread { mean: 100.0, low: 99.0, high: 101.0 };

/// The runs of one epsilon.
struct Group<'a> {
    eps: f64,
    truth: f64,
    truth_bound: Option<f64>,
    runs: Vec<(&'a Request, &'a Solved)>,
}

/// The runs of one entrant at one rank or accuracy.
struct Setting {
    words: String,
    runs: usize,
    failures: Vec<String>,
    deviation: Option<Spread>,
    /// Mean of `|D - 100|`.
    error: Option<f64>,
    seconds: Spread,
    iterations: f64,
    rank: f64,
}

/// A curve of a panel.
struct Curve {
    entrant: Entrant,
    name: String,
    marks: Vec<Mark>,
    /// Where failures are: time, and the value that there was, if any.
    failures: Vec<(f64, Option<f64>, String)>,
}

impl<'a> Group<'a> {
    /// If there is a truth to compare with.
    fn new(eps: f64, done: &'a [(Case, Solved)]) -> Option<Self> {
        let all = done.iter().filter(|(case, _)| case.request.eps == eps);
        let all: Vec<_> = all.map(|(case, solved)| (&case.request, solved)).collect();
        let truth = all.iter().find(|(request, _)| request.entrant == Entrant::Truth)?.1;
        let runs = all.iter().filter(|(r, _)| r.entrant != Entrant::Truth).copied().collect();
        Some(Group { eps, truth: truth.value?, truth_bound: truth.bound, runs })
    }

    fn deviation(&self, value: f64) -> f64 {
        100.0 * (self.truth - value) / self.truth.abs() + 100.0
    }

    /// What an entrant did, by rank or accuracy.
    fn settings(&self, entrant: Entrant) -> Vec<Setting> {
        let of = || self.runs.iter().filter(move |(request, _)| request.entrant == entrant);
        let mut names: Vec<String> = Vec::new();
        for (request, _) in of() {
            if !names.contains(&request.setting()) {
                names.push(request.setting());
            }
        }
        let setting = |words: String| {
            let runs: Vec<&Solved> =
                of().filter(|(r, _)| r.setting() == words).map(|(_, solved)| *solved).collect();
            let good = || runs.iter().filter(|s| s.failure.is_none()).filter_map(|s| s.value);
            let all = |f: fn(&Solved) -> f64| Spread::of(runs.iter().map(|s| f(s)));
            let error = Spread::of(good().map(|v| (self.deviation(v) - 100.0).abs()));
            Some(Setting {
                runs: runs.len(),
                failures: runs.iter().filter_map(|s| s.failure.clone()).collect(),
                deviation: Spread::of(good().map(|v| self.deviation(v))),
                error: error.map(|e| e.mean),
                seconds: all(|s| s.seconds)?,
                iterations: all(|s| s.iterations as f64)?.mean,
                rank: all(|s| s.rank as f64)?.mean,
                words,
            })
        };
        names.into_iter().filter_map(setting).collect()
    }

    /// The curves of a panel, with heights as a function of the deviation.
    fn curves(&self, study: &Tradeoff, height: fn(f64) -> f64) -> Vec<Curve> {
        let mut curves = Vec::new();
        for entrant in Entrant::ALL {
            let requests = study.requests(entrant, self.eps, 0);
            let (mut marks, mut failures) = (Vec::new(), Vec::new());
            for words in requests.iter().map(Request::setting) {
                let same =
                    |(r, _): &&(&Request, &Solved)| r.entrant == entrant && r.setting() == words;
                let runs = || self.runs.iter().filter(same).map(|(_, solved)| *solved);
                let good = || runs().filter(|s| s.failure.is_none());
                let heights = good().filter_map(|s| Some(height(self.deviation(s.value?))));
                let times = Spread::of(good().map(|s| s.seconds));
                if let (Some(y), Some(x)) = (Spread::of(heights), times) {
                    marks.push(Mark { x: x.mean, y });
                }
                let bad = runs().filter(|s| s.failure.is_some());
                failures.extend(bad.map(|s| {
                    let why = s.failure.clone().unwrap_or_default();
                    (s.seconds, s.value.map(|v| height(self.deviation(v))), why)
                }));
            }
            let name = match entrant {
                Entrant::Rf => "RF: the paper's random features",
                Entrant::Nys => "Nys: Nystrom, ridge leverage scores",
                Entrant::Sin => "Sin: Sinkhorn with the stored kernel",
                _ => "ours: automatic, for an accuracy",
            };
            curves.push(Curve { entrant, name: name.to_owned(), marks, failures });
        }
        curves
    }

    /// Sinkhorn along its iterations.
    fn way(&self, height: fn(f64) -> f64) -> Vec<[f64; 2]> {
        let sin = self.runs.iter().find(|(request, _)| request.entrant == Entrant::Sin);
        let way = sin.into_iter().flat_map(|(_, solved)| &solved.way);
        way.map(|[seconds, value, _]| [*seconds, height(self.deviation(*value))]).collect()
    }

    /// Empty axes that hold all curves.
    fn panel(&self, curves: &[Curve], way: &[[f64; 2]], y: [f64; 2]) -> Panel {
        let marks = curves.iter().flat_map(|c| &c.marks).map(|m| m.x);
        let failures = curves.iter().flat_map(|c| &c.failures).map(|f| f.0);
        let times = marks.chain(failures).chain(way.iter().map(|p| p[0]));
        let x = Spread::of(times).unwrap_or(Spread { mean: 1.0, low: 0.5, high: 2.0 });
        Panel::new()
            .title(format!("eps = {}", self.eps))
            .logarithmic(true, false)
            .between([0.7 * x.low, 1.4 * x.high], y)
            .size(430.0, 330.0)
    }

    /// Draws curves and failures inside these heights.
    fn fill(
        &self,
        panel: &mut Panel,
        curves: &[Curve],
        way: &[[f64; 2]],
        [low, high]: [f64; 2],
    ) -> Result<(), Failure> {
        for c in curves {
            let colour = c.entrant.colour();
            if c.entrant == Entrant::Sin && way.len() > 1 {
                let inside: Vec<[f64; 2]> =
                    way.iter().filter(|p| (low..=high).contains(&p[1])).copied().collect();
                if inside.len() > 1 {
                    panel.line(&c.name, &inside, colour)?;
                }
                let ends: Vec<[f64; 2]> = c.marks.iter().map(|m| [m.x, m.y.mean]).collect();
                if !ends.is_empty() {
                    panel.marks("", &ends, colour)?;
                }
            } else {
                curve(panel, &c.name, &c.marks, colour)?;
            }
            let mut reasons: Vec<&String> = c.failures.iter().map(|f| &f.2).collect();
            reasons.sort();
            reasons.dedup();
            for reason in reasons {
                let edge = |y: Option<f64>| y.unwrap_or(low).clamp(low, high);
                let places = c.failures.iter().filter(|f| f.2 == *reason);
                let places: Vec<[f64; 2]> = places.map(|f| [f.0, edge(f.1)]).collect();
                panel.crosses(
                    &format!("{} failed: {reason}", c.entrant.name()),
                    &places,
                    colour,
                )?;
            }
        }
        Ok(())
    }

    /// What is seen at this epsilon.
    fn sentence(&self) -> String {
        let mut parts = Vec::new();
        let best = |settings: &[Setting]| {
            let good =
                settings.iter().filter_map(|s| Some((s.error?, s.seconds.mean, s.words.clone())));
            good.min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let settings = Entrant::ALL.map(|entrant| (entrant, self.settings(entrant)));
        let ours = self.settings(Entrant::Ours);
        for (entrant, settings) in &settings {
            let runs: usize = settings.iter().map(|s| s.runs).sum();
            let failures: Vec<&String> = settings.iter().flat_map(|s| &s.failures).collect();
            let mut text = match best(settings) {
                Some((error, seconds, words)) => {
                    let with = if *entrant == Entrant::Sin {
                        String::new()
                    } else {
                        format!(" ({words})")
                    };
                    format!(
                        "{}{with} is off by {} % in {}",
                        entrant.name(),
                        short(error),
                        duration(seconds)
                    )
                }
                None if runs == 0 => continue,
                None => format!("{} has no result", entrant.name()),
            };
            if let Some(first) = failures.first() {
                text += &format!(", {} of {runs} runs failed ({first})", failures.len());
            }
            parts.push(text);
        }
        let mut sentence = format!("eps = {}: at best {}.", self.eps, listed(&parts));
        // The quickest of ours that is as good as the best of the paper's features.
        let rf = best(&settings[0].1);
        if let Some((error, seconds, _)) = rf {
            let as_good = ours.iter().filter(|s| s.error.is_some_and(|e| e <= error));
            let quickest = as_good.min_by(|a, b| a.seconds.mean.total_cmp(&b.seconds.mean));
            if let Some(s) = quickest {
                sentence += &format!(
                    " Ours at {} is at least as accurate as the best RF, in {}: {} times its speed.",
                    s.words,
                    duration(s.seconds.mean),
                    digits(seconds / s.seconds.mean, 2)
                );
            }
        }
        sentence
    }
}

fn table(groups: &[Group<'_>]) -> Table {
    let mut table = Table::new(&[
        "eps",
        "method",
        "setting",
        "rank",
        "runs",
        "failed",
        "D mean (%)",
        "D lowest",
        "D highest",
        "|D - 100| (%)",
        "seconds",
        "iterations",
        "why failed",
    ]);
    for group in groups {
        for entrant in Entrant::ALL {
            for s in group.settings(entrant) {
                let spread = |f: fn(Spread) -> f64| {
                    s.deviation.map_or_else(String::new, |d| digits(f(d), 6))
                };
                table.row(vec![
                    group.eps.to_string(),
                    entrant.name().to_owned(),
                    s.words.clone(),
                    format!("{:.0}", s.rank),
                    s.runs.to_string(),
                    s.failures.len().to_string(),
                    spread(|d| d.mean),
                    spread(|d| d.low),
                    spread(|d| d.high),
                    s.error.map_or_else(String::new, short),
                    short(s.seconds.mean),
                    short(s.iterations),
                    s.failures.first().cloned().unwrap_or_default(),
                ]);
            }
        }
    }
    table
}
