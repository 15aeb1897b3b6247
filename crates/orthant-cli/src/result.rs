//! The result of a problem of two clouds: for programs, and as rows for people.

use std::fmt::Write as _;

use orthant::{Divergence, Solution, Stop, results::MethodUsed};
use orthant_support::number::{count, number, rough, seconds};
use serde::Serialize;

use crate::args::PrecisionName;
use crate::json::{Ends, EstimateJson, MethodJson, Moves, SamplingJson, Seconds};
use crate::numbers::{as_known_as, known, with_interval};
use crate::output::Row;
use crate::settings::Settings;

/// One transport problem: `W` of two clouds.
#[derive(Debug, Serialize)]
pub(crate) struct Term {
    pub(crate) value: f64,
    pub(crate) value_kl: f64,
    /// Where the value of the exact kernel is.
    pub(crate) interval: Option<Ends>,
    /// The same of `value_kl`.
    pub(crate) interval_kl: Option<Ends>,
    pub(crate) corrected: Option<f64>,
    /// What was sampled, if the clouds were.
    pub(crate) sampling: Option<SamplingJson>,
    /// Of the distance from the value of the exact kernel: 0 if that is what was used.
    pub(crate) error_bound: Option<f64>,
    pub(crate) transport_cost: Option<f64>,
    /// Of a divergence, that of its cross term.
    pub(crate) plan_concentration: Option<f64>,
    pub(crate) mass: f64,
    pub(crate) converged: bool,
    pub(crate) stop: &'static str,
    pub(crate) iterations: usize,
    pub(crate) stages: usize,
    pub(crate) polished: Option<usize>,
    pub(crate) marginal_error_x: f64,
    pub(crate) marginal_error_y: f64,
    pub(crate) marginal_gap_x: f64,
    pub(crate) marginal_gap_y: f64,
    pub(crate) method: MethodJson,
    pub(crate) seconds: Seconds,
}

/// The terms of a divergence.
#[derive(Debug, Serialize)]
pub(crate) struct Terms {
    /// Whether the terms share their approximation of the kernel.
    pub(crate) kernels: &'static str,
    pub(crate) cross: Term,
    pub(crate) self_x: Term,
    pub(crate) self_y: Term,
}

/// What a command about two clouds found.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) n: usize,
    pub(crate) m: usize,
    pub(crate) dim: usize,
    /// Whether the accuracy was reached; nothing if none was promised.
    pub(crate) accurate: Option<bool>,
    #[serde(flatten)]
    pub(crate) whole: Term,
    /// Of a divergence.
    #[serde(flatten)]
    pub(crate) terms: Option<Box<Terms>>,
    /// How points moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flow: Option<Moves>,
    /// Sums of the weights.
    #[serde(skip)]
    pub(crate) masses: [f64; 2],
}

impl Term {
    fn of(s: &Solution) -> Self {
        Term {
            value: s.value,
            value_kl: s.value_kl,
            interval: s.interval.map(Ends::of),
            interval_kl: s.interval_kl.map(Ends::of),
            corrected: s.corrected,
            sampling: s.sampling.map(SamplingJson::of),
            error_bound: if is_exact(s) { Some(0.0) } else { s.bound.filter(|b| b.is_finite()) },
            transport_cost: s.transport_cost,
            plan_concentration: s.plan_concentration,
            mass: s.mass,
            converged: s.converged(),
            stop: s.stop.as_str(),
            iterations: s.iterations,
            stages: s.stages,
            polished: s.polished,
            marginal_error_x: s.marginal_error_x,
            marginal_error_y: s.marginal_error_y,
            marginal_gap_x: s.marginal_gap_x,
            marginal_gap_y: s.marginal_gap_y,
            method: MethodJson::of(s),
            seconds: Seconds::of(s.times),
        }
    }
}

impl Outcome {
    pub(crate) fn of_solution(
        settings: &Settings<'_>,
        measures: &[orthant::Measure<'_>; 2],
        s: &Solution,
    ) -> Self {
        let [mu, nu] = measures;
        Outcome {
            n: mu.points().len(),
            m: nu.points().len(),
            dim: mu.dim(),
            accurate: settings.promises().then(|| s.meets_accuracy(settings.accuracy)),
            whole: Term::of(s),
            terms: None,
            flow: None,
            masses: [mu.mass(), nu.mass()],
        }
    }

    /// Of a divergence: the worst of its terms where there is one number for all.
    pub(crate) fn of_divergence(
        settings: &Settings<'_>,
        measures: &[orthant::Measure<'_>; 2],
        d: &Divergence,
    ) -> Self {
        let [mu, nu] = measures;
        let [cross, self_x, self_y] = d.terms().map(Term::of);
        let all = [&cross, &self_x, &self_y];
        let transport_cost = match all.map(|t| t.transport_cost) {
            [Some(c), Some(x), Some(y)] => Some(c - 0.5 * (x + y)),
            _ => None,
        };
        let stop = d
            .terms()
            .iter()
            .map(|t| t.stop)
            .find(|s| *s != Stop::Converged)
            .unwrap_or(Stop::Converged);
        let sum = |part: fn(&Seconds) -> f64| all.iter().map(|t| part(&t.seconds)).sum();
        let worst = |part: fn(&Term) -> f64| all.iter().map(|t| part(t)).fold(0.0, f64::max);
        let interval = d.interval().map(Ends::of);
        let bound = d.bound().filter(|b| b.is_finite());
        let whole = Term {
            value: d.value,
            // The entropies cancel.
            value_kl: d.value,
            interval,
            interval_kl: interval,
            corrected: d.corrected(),
            sampling: None,
            error_bound: if is_exact(&d.cross) { Some(0.0) } else { bound },
            transport_cost,
            plan_concentration: cross.plan_concentration,
            mass: cross.mass,
            converged: d.converged(),
            stop: stop.as_str(),
            iterations: all.iter().map(|t| t.iterations).sum(),
            stages: cross.stages,
            polished: d.terms().iter().filter_map(|t| t.polished).max(),
            marginal_error_x: worst(|t| t.marginal_error_x),
            marginal_error_y: worst(|t| t.marginal_error_y),
            marginal_gap_x: cross.marginal_gap_x,
            marginal_gap_y: cross.marginal_gap_y,
            method: cross.method.clone(),
            seconds: Seconds {
                read: 0.0,
                features: sum(|s| s.features),
                solve: sum(|s| s.solve),
                total: sum(|s| s.total),
            },
        };
        Outcome {
            n: mu.points().len(),
            m: nu.points().len(),
            dim: mu.dim(),
            accurate: settings.promises().then(|| d.meets_accuracy(settings.accuracy)),
            whole,
            terms: Some(Box::new(Terms { kernels: d.kernels.as_str(), cross, self_x, self_y })),
            flow: None,
            masses: [mu.mass(), nu.mass()],
        }
    }

    /// Whether everything is as it was asked for.
    pub(crate) fn is_done(&self) -> bool {
        let moved = self.flow.as_ref().is_none_or(|flow| flow.done);
        self.whole.converged && moved && self.accurate != Some(false)
    }

    /// The rows of the answer, with those of a command between values and method.
    pub(crate) fn rows(
        &self,
        settings: &Settings<'_>,
        unbalanced: bool,
        more: Vec<Row>,
    ) -> Vec<Row> {
        let whole = &self.whole;
        let mut rows = self.values(unbalanced);
        rows.extend(more);
        rows.extend(unbalanced.then(|| self.mass()));
        rows.extend(self.concentration());
        rows.push([
            "method".to_owned(),
            self.method(settings),
            whole.method.reason.clone().unwrap_or_default(),
        ]);
        rows.extend(self.kernels());
        rows.extend(self.error(settings));
        rows.extend(self.estimate());
        let converged = if whole.converged {
            "yes".to_owned()
        } else {
            format!("NO: {}", whole.stop.replace('_', " "))
        };
        let errors = format!(
            "{} iterations, marginal errors {} and {}",
            count(whole.iterations),
            rough(whole.marginal_error_x, 1),
            rough(whole.marginal_error_y, 1)
        );
        rows.push(["converged".to_owned(), converged, errors]);
        rows.push(time_row(whole.seconds));
        rows
    }

    /// What to do about a result that is not as it should be.
    pub(crate) fn advice(&self) -> &'static str {
        if !self.whole.converged {
            "\n\nNot converged: raise --max-iter or --time-limit, or use a larger --eps or --tol."
        } else if self.flow.as_ref().is_some_and(|flow| !flow.done) {
            "\n\nThe flow did not get where it should: raise --steps or --time-limit, lower --still, or use a smaller \
             --tol and --accuracy."
        } else if self.accurate == Some(false) {
            "\n\nThe accuracy was not reached: raise --memory, --max-rank or --time-limit, use a smaller --tol or a \
             larger --accuracy."
        } else {
            ""
        }
    }

    fn values(&self, unbalanced: bool) -> Vec<Row> {
        let row = |name: &str, value: String, note: &str| -> Row {
            [name.to_owned(), value, note.to_owned()]
        };
        let whole = &self.whole;
        let Some(terms) = &self.terms else {
            let cost = match whole.transport_cost {
                Some(cost) => row("transport cost", as_known_as(cost, whole.interval_kl), "<P,C>"),
                None => row(
                    "transport cost",
                    "-".to_owned(),
                    "needs all pairs for this kernel: too many",
                ),
            };
            let notes = if unbalanced {
                [
                    "<P,C> + eps sum P log P, and the prices of the marginals",
                    "<P,C> + eps KL(P|ab) + rho_x KL(P1|a) + rho_y KL(P'1|b)",
                ]
            } else {
                [
                    "W = <P,C> + eps sum P log P, as the paper has it",
                    "W + eps (H(a) + H(b)): POT \"KL\", OTT",
                ]
            };
            return vec![
                row("value", with_interval(whole.value, whole.interval), notes[0]),
                row("value_kl", with_interval(whole.value_kl, whole.interval_kl), notes[1]),
                cost,
            ];
        };
        let note = if unbalanced {
            "W(x,y) - (W(x,x) + W(y,y)) / 2 + eps/2 (difference of masses)^2"
        } else {
            "W(x,y) - (W(x,x) + W(y,y)) / 2"
        };
        let value = with_interval(whole.value, whole.interval);
        let mut rows = vec![row("divergence", value, note)];
        for (name, term) in
            [("  W(x,y)", &terms.cross), ("  W(x,x)", &terms.self_x), ("  W(y,y)", &terms.self_y)]
        {
            let mut note = format!(
                "value_kl {}, {} iterations",
                known(term.value_kl, term.interval_kl),
                count(term.iterations)
            );
            if term.method.name == MethodUsed::Lattice.as_str() {
                let _ = write!(note, ", {} nodes", count(term.method.rank));
            }
            let value = match term.interval {
                Some(_) => known(term.value, term.interval),
                None => as_known_as(term.value, term.interval_kl),
            };
            rows.push(row(name, value, &note));
        }
        rows
    }

    /// How far the plan is from that of independent points.
    fn concentration(&self) -> Option<Row> {
        let of = if self.terms.is_some() { " of W(x,y)" } else { "" };
        let concentration = self.whole.plan_concentration?;
        let note = format!("KL(P|ab) / log min(n,m){of}, from 0 to 1");
        Some(["plan".to_owned(), format!("concentration {concentration:.3}"), note])
    }

    /// The mass of a plan that need not have that of the clouds.
    fn mass(&self) -> Row {
        let note = format!(
            "of the plan{}; the clouds have {} and {}, its marginals are {} and {} off",
            if self.terms.is_some() { " of W(x,y)" } else { "" },
            number(self.masses[0]),
            number(self.masses[1]),
            rough(self.whole.marginal_gap_x, 1),
            rough(self.whole.marginal_gap_y, 1)
        );
        ["mass".to_owned(), number(self.whole.mass), note]
    }

    /// What was used: `lattice, 1,260 nodes, f64`.
    fn method(&self, settings: &Settings<'_>) -> String {
        let MethodJson { name, anchors, rank, .. } = &self.whole.method;
        let used = MethodUsed::from_name(name);
        let format = match (used, settings.common.kernel.precision) {
            (Some(MethodUsed::Online), _) | (_, PrecisionName::F64) => "f64",
            (_, PrecisionName::F32) => "f32",
        };
        let rank = count(*rank);
        let size = match used {
            Some(MethodUsed::Dense | MethodUsed::Online) => "exact".to_owned(),
            // The terms of a divergence have lattices of their own.
            Some(MethodUsed::Lattice) if self.terms.is_some() => {
                return format!("lattice, {format}");
            }
            Some(MethodUsed::Lattice) => format!("{rank} nodes"),
            Some(MethodUsed::Nystrom) => format!("{rank} landmarks"),
            Some(MethodUsed::Sampled) => return self.sampled(),
            Some(MethodUsed::Gaussian) => {
                let anchors = anchors.unwrap_or("gaussian");
                return format!("{anchors}, {rank} anchors, {format}");
            }
            _ => format!("{rank} features"),
        };
        format!("{name}, {size}, {format}")
    }

    /// How much of the clouds was sampled: `sampled, 8 samples of 4,096 points`.
    fn sampled(&self) -> String {
        let all = self.terms.as_ref().map_or_else(
            || vec![self.whole.sampling],
            |t| [&t.cross, &t.self_x, &t.self_y].map(|t| t.sampling).to_vec(),
        );
        let sizes: Vec<SamplingJson> = all.into_iter().flatten().collect();
        let largest = sizes.iter().map(|s| s.size).max().unwrap_or_default();
        let samples = sizes.first().map_or(0, |s| s.samples);
        format!("sampled, {samples} samples of {} points", count(largest))
    }

    /// What samples of the clouds say of the value, without a bound.
    fn estimate(&self) -> Option<Row> {
        let EstimateJson { value, stderr } = self.whole.sampling?.estimate;
        let note = format!("of the value, standard error {}; no bound", rough(stderr, 1));
        Some(["estimate".to_owned(), number(value), note])
    }

    /// Whether the terms of a divergence share their approximation of the kernel.
    fn kernels(&self) -> Option<Row> {
        let (value, note) = match self.terms.as_ref()?.kernels {
            "shared" if self.whole.method.name == MethodUsed::Nystrom.as_str() => {
                ("one for all terms", "the same landmarks")
            }
            "shared" => {
                ("one for all terms", "a divergence that is never negative, but for rounding")
            }
            "per_term" if self.whole.method.name == MethodUsed::Sampled.as_str() => return None,
            "per_term" => ("one for each term", "with an error bound each"),
            _ => return None,
        };
        Some(["kernels".to_owned(), value.to_owned(), note.to_owned()])
    }

    /// How far the value is from that of the exact kernel.
    fn error(&self, settings: &Settings<'_>) -> Option<Row> {
        let whole = &self.whole;
        let about = if self.terms.is_some() { "the divergence" } else { "value_kl" };
        let value = whole.value_kl.abs();
        let part = |error: f64| {
            if error < value {
                format!("{} of {about}", rough(error / value, 0))
            } else {
                format!("more than {about} itself")
            }
        };
        let row = |value: String, note: String| Some(["error".to_owned(), value, note]);
        let at_most = |error: f64| format!("at most {}", rough(error, 1));
        let farthest = whole.interval_kl.map(|i| i.farthest(whole.value_kl));
        match (whole.interval_kl, farthest) {
            (Some(Ends { kind: "sampled", .. }), Some(farthest)) => {
                let of = if whole.method.name == MethodUsed::Sampled.as_str() {
                    "the clouds"
                } else {
                    "the plan"
                };
                let note =
                    format!("from samples of {of}, three standard errors; {}", part(farthest));
                row(at_most(farthest), note)
            }
            (Some(Ends { kind: "bound", .. }), Some(farthest)) => {
                let mut note = format!("bound on the distance from exact, {}", part(farthest));
                if settings.common.kernel.rank.is_some() {
                    note += "; a larger --rank lowers it";
                } else if self.accurate == Some(false) && whole.converged {
                    note += "; no lattice is finer here";
                }
                row(at_most(farthest), note)
            }
            (Some(_), _) => None,
            (None, _) => match MethodUsed::from_name(whole.method.name) {
                Some(MethodUsed::Lattice) => row(
                    "no bound".to_owned(),
                    "too few nodes for these clouds: use a larger --rank".to_owned(),
                ),
                Some(MethodUsed::Gaussian) => row(
                    "not known".to_owned(),
                    "--certify bounds it; or let --method auto choose".to_owned(),
                ),
                Some(MethodUsed::Nystrom) => row(
                    "not known".to_owned(),
                    "compare with twice the --rank, or let --method auto choose".to_owned(),
                ),
                Some(MethodUsed::Dense | MethodUsed::Online) => row(
                    "not known".to_owned(),
                    "the numbers are too large for an interval: use a smaller --eps".to_owned(),
                ),
                _ => None,
            },
        }
    }
}

/// Whether the kernel was that of the squared Euclidean cost itself.
pub(crate) fn is_exact(solution: &Solution) -> bool {
    matches!(solution.method, MethodUsed::Dense | MethodUsed::Online)
}

/// Where the time went.
pub(crate) fn time_row(s: Seconds) -> Row {
    let phases = format!(
        "read {}, features {}, solve {}",
        seconds(s.read),
        seconds(s.features),
        seconds(s.solve)
    );
    ["time".to_owned(), seconds(s.total), phases]
}
