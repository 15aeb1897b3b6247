//! What the paper leaves out: the error of the whole divergence, with the terms of a cloud with itself.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use orthant::divergence;
use orthant_draw::{Panel, Picture};
use orthant_support::Failure;
use orthant_support::clouds::{self, Clouds};
use orthant_support::number::{digits, duration, short};
use serde::{Deserialize, Serialize};

use crate::config::{counts, positive};
use crate::page::{Figure, Mark, Section, Table, columns, curve};
use crate::solve::{Entrant, Request, Truth, not_converged, reason};
use crate::spread::{Spread, listed};
use crate::study::Study;

/// The settings: clouds are those of Figure 1.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Divergences {
    n: usize,
    data_seed: u64,
    eps: Vec<f64>,
    ranks: Vec<usize>,
    accuracies: Vec<f64>,
    repeats: usize,
    tolerance: f64,
    limit: f64,
    truth: Truth,
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Case {
    n: usize,
    data_seed: u64,
    #[serde(flatten)]
    request: Request,
}

/// What came of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Terms {
    divergence: Option<f64>,
    /// `W(mu, nu)`, `W(mu, mu)`, `W(nu, nu)`.
    values: Option<[f64; 3]>,
    bound: Option<f64>,
    seconds: f64,
    iterations: [usize; 3],
    method: String,
    failure: Option<String>,
}

impl Study for Divergences {
    type Case = Case;
    type Outcome = Terms;
    type Data = Clouds;

    fn check(&self) -> Result<(), String> {
        counts("n and repeats", &[self.n, self.repeats])?;
        counts("ranks", &self.ranks)?;
        positive("eps", &self.eps)?;
        positive("accuracies", &self.accuracies)?;
        positive("tolerance and limit", &[self.tolerance, self.limit])
    }

    fn cases(&self) -> Vec<Case> {
        let &Divergences { n, data_seed, tolerance, limit, .. } = self;
        let mut cases = Vec::new();
        for &eps in &self.eps {
            let mut requests = vec![Request::truth(eps, self.truth)];
            for seed in 0..self.repeats as u64 {
                let request = |entrant, rank, accuracy| Request {
                    entrant,
                    eps,
                    rank,
                    accuracy,
                    seed,
                    tolerance,
                    limit,
                };
                let ours = self.accuracies.iter().map(|&a| request(Entrant::Ours, None, Some(a)));
                requests.extend(ours);
                requests.extend(self.ranks.iter().map(|&r| request(Entrant::Rf, Some(r), None)));
            }
            cases.extend(requests.into_iter().map(|request| Case { n, data_seed, request }));
        }
        cases
    }

    fn seconds(&self, case: &Case) -> f64 {
        let (n, r) = (case.n as f64, case.request.rank.unwrap_or(0) as f64);
        let iterations = 10.0 + 7.0 / case.request.eps;
        let time = match case.request.entrant {
            Entrant::Rf => 2.0 * n * r * (40e-9 + 0.7e-9 * iterations),
            Entrant::Truth if self.truth == Truth::Exact => {
                3.0 * n * n * 5e-9 * (20.0 + iterations)
            }
            Entrant::Truth => 3e-5 * n * iterations.sqrt(),
            _ => 6e-6 * n * iterations.sqrt(),
        };
        time.min(case.request.limit).max(1e-3)
    }

    fn words(&self, case: &Case) -> String {
        let Request { entrant, eps, .. } = case.request;
        format!("eps = {eps}, {}, {}", entrant.name(), case.request.setting())
    }

    fn data(&self, _: Option<&Path>) -> Result<Self::Data, Failure> {
        Ok(clouds::figure_1(self.n, self.data_seed))
    }

    fn run(&self, clouds: &Clouds, case: &Case) -> Result<Terms, Failure> {
        let [mu, nu] = clouds.measures(case.n)?;
        let options = case.request.options()?;
        let begun = Instant::now();
        let solved = divergence(&mu, &nu, &options);
        let seconds = begun.elapsed().as_secs_f64();
        Ok(match solved {
            Ok(found) => {
                let terms = found.terms();
                let mut failures =
                    terms.iter().filter_map(|t| not_converged(t, case.request.limit));
                Terms {
                    divergence: Some(found.value),
                    values: Some(terms.map(|t| t.value)),
                    bound: found.bound(),
                    seconds,
                    iterations: terms.map(|t| t.iterations),
                    method: found.cross.method.as_str().to_owned(),
                    failure: failures.next(),
                }
            }
            Err(error) => Terms {
                divergence: None,
                values: None,
                bound: None,
                seconds,
                iterations: [0; 3],
                method: case.request.entrant.name().to_owned(),
                failure: Some(reason(&error)),
            },
        })
    }

    fn section(&self, done: &[(Case, Terms)]) -> Result<Section, Failure> {
        let groups: Vec<Group<'_>> =
            self.eps.iter().filter_map(|&eps| Group::new(eps, done)).collect();
        let mut figures = Vec::new();
        if !groups.is_empty() {
            figures.push(self.errors(&groups)?);
            figures.push(self.by_term(&groups)?);
        }
        let seen = groups.iter().filter_map(|group| group.sentence(self)).collect();
        Ok(Section { figures, table: self.table(&groups), seen })
    }
}

/// In percent; what is below is drawn here.
const LEAST: f64 = 1e-9;

/// The names of the parts of a divergence.
const PARTS: [&str; 4] = ["S", "W(mu, nu)", "W(mu, mu) / 2", "W(nu, nu) / 2"];

/// The runs of one epsilon.
struct Group<'a> {
    eps: f64,
    truth: &'a Terms,
    runs: Vec<(&'a Request, &'a Terms)>,
}

impl<'a> Group<'a> {
    fn new(eps: f64, done: &'a [(Case, Terms)]) -> Option<Self> {
        let all =
            || done.iter().filter(move |(c, _)| c.request.eps == eps).map(|(c, t)| (&c.request, t));
        let (_, truth) = all().find(|(r, _)| r.entrant == Entrant::Truth)?;
        truth.divergence?;
        let runs = all().filter(|(r, _)| r.entrant != Entrant::Truth).collect();
        Some(Group { eps, truth, runs })
    }

    /// Errors of the parts, in percent of the true divergence, with their signs.
    fn errors(&self, terms: &Terms) -> Option<[f64; 4]> {
        let (s, [xy, xx, yy]) = (self.truth.divergence?, self.truth.values?);
        let (t, [vxy, vxx, vyy]) = (terms.divergence?, terms.values?);
        let errors = [t - s, vxy - xy, 0.5 * (vxx - xx), 0.5 * (vyy - yy)];
        Some(errors.map(|e| 100.0 * e / s.abs()))
    }

    fn of(&self, entrant: Entrant, setting: &str) -> Vec<&Terms> {
        let same = |(r, _): &&(&Request, &Terms)| r.entrant == entrant && r.setting() == setting;
        self.runs.iter().filter(same).map(|(_, terms)| *terms).collect()
    }

    /// Absolute errors of a part, over the runs that did not fail.
    fn spread(&self, runs: &[&Terms], part: usize) -> Option<Spread> {
        let good = runs.iter().filter(|t| t.failure.is_none());
        Spread::of(good.filter_map(|t| Some(self.errors(t)?[part].abs())))
    }

    fn sentence(&self, study: &Divergences) -> Option<String> {
        let last = format!("r = {}", study.ranks.last()?);
        let rf = self.of(Entrant::Rf, &last);
        let parts: Vec<Spread> = (0..4).filter_map(|k| self.spread(&rf, k)).collect();
        let [s, xy, xx, yy] = parts[..] else { return None };
        let seconds = Spread::of(rf.iter().map(|t| t.seconds))?;
        let mut text = format!(
            "eps = {}: with {last} features S = {} is off by {} % in {}; its terms W(mu, nu), W(mu, mu)/2 and W(nu, nu)/2 by \
             {} % of S.",
            self.eps,
            short(self.truth.divergence?),
            short(s.mean),
            duration(seconds.mean),
            listed(&[xy, xx, yy].map(|e| short(e.mean))),
        );
        let ours = study.accuracies.iter().filter_map(|a| {
            let runs = self.of(Entrant::Ours, &format!("accuracy {a:e}"));
            Some((self.spread(&runs, 0)?.mean, Spread::of(runs.iter().map(|t| t.seconds))?.mean, a))
        });
        let ours: Vec<_> = ours.filter(|(error, ..)| *error <= s.mean).collect();
        if let Some((error, time, a)) = ours.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
            let _ = write!(
                text,
                " Ours at accuracy {a:e} is off by {} % in {}, {} times the speed.",
                short(*error),
                duration(*time),
                digits(seconds.mean / time, 2)
            );
        }
        Some(text)
    }
}

impl Divergences {
    fn settings(&self) -> Vec<(Entrant, String)> {
        let rf = self.ranks.iter().map(|r| (Entrant::Rf, format!("r = {r}")));
        rf.chain(self.accuracies.iter().map(|a| (Entrant::Ours, format!("accuracy {a:e}"))))
            .collect()
    }

    /// Of the divergence, against time.
    fn errors(&self, groups: &[Group<'_>]) -> Result<Figure, Failure> {
        let mut panels = Vec::new();
        for group in groups {
            let mut panel = Panel::new()
                .title(format!("eps = {}", group.eps))
                .axes("time in seconds", "error of S in %")
                .logarithmic(true, true)
                .snug()
                .size(430.0, 330.0);
            for (entrant, name) in [
                (Entrant::Rf, "RF: the paper's random features"),
                (Entrant::Ours, "ours: automatic, for an accuracy"),
            ] {
                let mark = |(_, setting): &(Entrant, String)| {
                    let runs = group.of(entrant, setting);
                    let y = group.spread(&runs, 0)?.at_least(LEAST);
                    let good = runs.iter().filter(|t| t.failure.is_none());
                    Some(Mark { x: Spread::of(good.map(|t| t.seconds))?.mean, y })
                };
                let settings = self.settings();
                let marks: Vec<Mark> =
                    settings.iter().filter(|s| s.0 == entrant).filter_map(mark).collect();
                curve(&mut panel, name, &marks, entrant.colour())?;
                let failed = group.runs.iter().filter(|(r, _)| r.entrant == entrant);
                let failed = failed.filter_map(|(_, t)| Some((t.seconds, t.failure.as_ref()?)));
                for (seconds, why) in failed {
                    let name = format!("{} failed: {why}", entrant.name());
                    panel.crosses(&name, &[[seconds, LEAST]], entrant.colour())?;
                }
            }
            panels.push(panel);
        }
        let caption = format!(
            "Error of the whole divergence S = W(mu, nu) - (W(mu, mu) + W(nu, nu)) / 2, in percent of it, against the time of \
             all three terms; clouds of Figure 1, {} points each. Marks are ranks (RF) or accuracies (ours), means over {} \
             repeats, bands from the lowest to the highest.",
            self.n, self.repeats
        );
        let picture = Picture::multiples("Error of the divergence", columns(panels.len()), panels)?;
        Ok(Figure { suffix: "", picture, caption })
    }

    /// Of the paper's features, term by term.
    fn by_term(&self, groups: &[Group<'_>]) -> Result<Figure, Failure> {
        let mut panels = Vec::new();
        for group in groups {
            let mut panel = Panel::new()
                .title(format!("eps = {}", group.eps))
                .axes("number of features r", "error in % of S")
                .logarithmic(true, true)
                .snug()
                .size(430.0, 330.0);
            for (part, name) in PARTS.into_iter().enumerate() {
                let mark = |&rank: &usize| {
                    let runs = group.of(Entrant::Rf, &format!("r = {rank}"));
                    Some(Mark { x: rank as f64, y: group.spread(&runs, part)?.at_least(LEAST) })
                };
                let marks: Vec<Mark> = self.ranks.iter().filter_map(mark).collect();
                curve(&mut panel, name, &marks, [7, 1, 0, 2][part])?;
            }
            panels.push(panel);
        }
        let caption = "The paper's features: errors of the divergence and of its terms, in percent of the divergence, \
                       means over repeats with bands from the lowest to the highest. All terms share their features."
            .to_owned();
        let picture = Picture::multiples(
            "Errors of the terms, random features",
            columns(panels.len()),
            panels,
        )?;
        Ok(Figure { suffix: "-terms", picture, caption })
    }

    fn table(&self, groups: &[Group<'_>]) -> Table {
        let mut table = Table::new(&[
            "eps",
            "method",
            "setting",
            "used",
            "runs",
            "failed",
            "S mean",
            "error of S (%)",
            "lowest",
            "highest",
            "W(mu, nu) (%)",
            "W(mu, mu)/2 (%)",
            "W(nu, nu)/2 (%)",
            "seconds",
        ]);
        for group in groups {
            let truth = group.truth;
            let mut row = vec![
                group.eps.to_string(),
                "truth".to_owned(),
                String::new(),
                truth.method.clone(),
                "1".to_owned(),
                "0".to_owned(),
                truth.divergence.map_or_else(String::new, |s| digits(s, 7)),
            ];
            row.extend(vec![String::new(); 6]);
            row.push(short(truth.seconds));
            table.row(row);
            for (entrant, setting) in self.settings() {
                let runs = group.of(entrant, &setting);
                let Some(first) = runs.first() else { continue };
                let errors: Vec<Option<Spread>> = (0..4).map(|k| group.spread(&runs, k)).collect();
                let number = |e: Option<f64>| e.map_or_else(String::new, short);
                let good = runs.iter().filter(|t| t.failure.is_none());
                let mean = Spread::of(good.filter_map(|t| t.divergence));
                let seconds = Spread::of(runs.iter().map(|t| t.seconds));
                table.row(vec![
                    group.eps.to_string(),
                    entrant.name().to_owned(),
                    setting,
                    first.method.clone(),
                    runs.len().to_string(),
                    runs.iter().filter(|t| t.failure.is_some()).count().to_string(),
                    mean.map_or_else(String::new, |s| digits(s.mean, 7)),
                    number(errors[0].map(|e| e.mean)),
                    number(errors[0].map(|e| e.low)),
                    number(errors[0].map(|e| e.high)),
                    number(errors[1].map(|e| e.mean)),
                    number(errors[2].map(|e| e.mean)),
                    number(errors[3].map(|e| e.mean)),
                    number(seconds.map(|s| s.mean)),
                ]);
            }
        }
        table
    }
}
