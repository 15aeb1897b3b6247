//! The runs of one epsilon, and what is drawn and said of them.

use std::fmt::Write as _;

use orthant_draw::Panel;
use orthant_support::Failure;
use orthant_support::number::{digits, duration, short};

use super::{Case, Tradeoff};
use crate::page::{Mark, Table, curve};
use crate::solve::{Entrant, Request, Solved};
use crate::spread::{Spread, listed};

/// The runs of one epsilon.
pub(super) struct Group<'a> {
    eps: f64,
    pub(super) truth: f64,
    pub(super) truth_bound: Option<f64>,
    runs: Vec<(&'a Request, &'a Solved)>,
}

/// The runs of one entrant at one rank or accuracy.
pub(super) struct Setting {
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
pub(super) struct Curve {
    entrant: Entrant,
    name: String,
    pub(super) marks: Vec<Mark>,
    /// Where failures are: time, and the value that there was, if any.
    failures: Vec<(f64, Option<f64>, String)>,
}

impl<'a> Group<'a> {
    /// If there is a truth to compare with.
    pub(super) fn new(eps: f64, done: &'a [(Case, Solved)]) -> Option<Self> {
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
    pub(super) fn settings(&self, entrant: Entrant) -> Vec<Setting> {
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
    pub(super) fn curves(&self, study: &Tradeoff, height: fn(f64) -> f64) -> Vec<Curve> {
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
    pub(super) fn way(&self, height: fn(f64) -> f64) -> Vec<[f64; 2]> {
        let sin = self.runs.iter().find(|(request, _)| request.entrant == Entrant::Sin);
        let Some((_, solved)) = sin else { return Vec::new() };
        let way = solved.way.iter().map(|[seconds, value, _]| [*seconds, *value]);
        let end = solved.value.map(|value| [solved.seconds, value]);
        way.chain(end).map(|[seconds, value]| [seconds, height(self.deviation(value))]).collect()
    }

    /// Empty axes that hold all curves.
    pub(super) fn panel(&self, curves: &[Curve], way: &[[f64; 2]], y: [f64; 2]) -> Panel {
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
    pub(super) fn fill(
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
    pub(super) fn sentence(&self) -> String {
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
                None => format!("{} has no converged result", entrant.name()),
            };
            if let Some(first) = failures.first() {
                let _ = write!(text, ", {} of {runs} runs failed ({first})", failures.len());
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
                let _ = write!(
                    sentence,
                    " Ours at {} is at least as accurate as the best RF, in {}, {} times its speed.",
                    s.words,
                    duration(s.seconds.mean),
                    digits(seconds / s.seconds.mean, 2)
                );
            }
        }
        sentence
    }
}

pub(super) fn table(groups: &[Group<'_>]) -> Table {
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
