//! Progress on standard error: a line that changes on a terminal, a line now and then elsewhere; and a trace of the
//! iterations.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget};
use orthant::control::{Next, Observer, Phase, Progress, Term};
use orthant_support::number::rough;
use orthant_support::{Failure, progress};
use serde::Serialize;

use crate::settings::Settings;

/// Steps of the bar: it shows the way that the error has gone to the tolerance, in decimals.
const STEPS: u64 = 1000;
/// Where standard error is no terminal: the time until the first line, and how much longer each takes than the last.
const FIRST: Duration = Duration::from_secs(10);
const LONGER: f64 = 1.5;
const LONGEST: Duration = Duration::from_secs(600);

/// A line on a terminal, or lines now and then.
#[derive(Clone)]
struct Line {
    bar: ProgressBar,
    plain: Option<Arc<Mutex<Plain>>>,
}

/// When the next line is due.
struct Plain {
    begun: Instant,
    due: Instant,
    wait: Duration,
}

impl Line {
    fn new(settings: &Settings<'_>, steps: u64, template: &str) -> Self {
        let quiet = settings.common.basic.quiet;
        let terminal = std::io::stderr().is_terminal();
        let bar = progress::bar(steps, template);
        if quiet || !terminal {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let begun = Instant::now();
        let plain = Plain { begun, due: begun + FIRST, wait: FIRST };
        let plain = (!quiet && !terminal).then(|| Arc::new(Mutex::new(plain)));
        Line { bar, plain }
    }

    /// Whether it is time to say something.
    fn is_due(&self) -> bool {
        match &self.plain {
            None => !self.bar.is_hidden(),
            Some(plain) => plain.lock().is_ok_and(|plain| Instant::now() >= plain.due),
        }
    }

    /// How far it is, `part` of all, and in words.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of the steps"
    )]
    fn show(&self, part: f64, words: &str) {
        let part = part.clamp(0.0, 1.0);
        let length = self.bar.length().unwrap_or(STEPS);
        self.bar.set_position((part * length as f64) as u64);
        self.bar.set_message(words.to_owned());
        if let Some(plain) = &self.plain
            && let Ok(mut plain) = plain.lock()
            && Instant::now() >= plain.due
        {
            let elapsed = plain.begun.elapsed();
            let left = if part > 0.02 {
                let left = elapsed.mul_f64((1.0 - part) / part);
                format!(", about {} left", HumanDuration(left))
            } else {
                String::new()
            };
            #[expect(clippy::print_stderr, reason = "progress where there is no terminal")]
            {
                eprintln!("orthant: {words} ({} so far{left})", HumanDuration(elapsed));
            }
            plain.wait = plain.wait.mul_f64(LONGER).min(LONGEST);
            plain.due = Instant::now() + plain.wait;
        }
    }
}

/// Progress of a work of so many equal parts.
pub(crate) struct Counter {
    line: Line,
    total: u64,
    what: &'static str,
}

impl Counter {
    pub(crate) fn new(settings: &Settings<'_>, total: u64, what: &'static str) -> Self {
        let template = "{msg} [{bar:30}] {elapsed}, {eta} left";
        Counter { line: Line::new(settings, total, template), total, what }
    }

    pub(crate) fn set(&self, done: u64) {
        self.tell(done, "");
    }

    /// With a word about the last one.
    pub(crate) fn tell(&self, done: u64, last: &str) {
        let words = format!("{done} of {} {}{last}", self.total, self.what);
        self.line.show(done as f64 / self.total.max(1) as f64, &words);
    }

    pub(crate) fn finish(&self) {
        self.line.bar.finish_and_clear();
    }
}

/// Progress of iterations.
pub(crate) struct Bar {
    line: Line,
    /// Whether it shows steps, and not iterations.
    stepwise: bool,
    tolerance: f64,
    first: Option<f64>,
    drawn: Instant,
    /// Where samples have told that the value of a term is.
    interval: Option<(Term, [f64; 2])>,
    /// The iterations so far, if they are to be kept.
    trace: Option<Vec<Step>>,
}

/// The same line, for a work of several steps.
pub(crate) struct StepBar {
    line: Line,
    steps: usize,
}

impl StepBar {
    pub(crate) fn show(&self, step: &orthant::descent::Step<'_>, what: &str) {
        let words = format!(
            "step {} of {} at most: {what} {}",
            step.number,
            self.steps,
            rough(step.value, 2)
        );
        self.line.show(step.number as f64 / self.steps.max(1) as f64, &words);
    }
}

/// A line of a trace.
#[derive(Debug, Clone, Copy, Serialize)]
struct Step {
    term: &'static str,
    /// On the way to a small epsilon, a larger one.
    epsilon: f64,
    iteration: usize,
    /// Since the solve of the term began.
    seconds: f64,
    value: f64,
    marginal_error: f64,
}

impl Bar {
    pub(crate) fn new(settings: &Settings<'_>, trace: bool) -> Self {
        Bar {
            line: Line::new(settings, STEPS, "{msg:<44} [{bar:30}] {elapsed}"),
            stepwise: false,
            tolerance: settings.tolerance,
            first: None,
            drawn: Instant::now(),
            interval: None,
            trace: trace.then(Vec::new),
        }
    }

    /// Keeps the iterations from now on.
    pub(crate) fn keep_steps(&mut self) {
        self.trace.get_or_insert_default();
    }

    /// Shows how many of some steps are done, from now on.
    pub(crate) fn steps(&mut self, steps: usize) -> StepBar {
        self.stepwise = true;
        if !self.line.bar.is_hidden() {
            self.line.bar.enable_steady_tick(Duration::from_millis(200));
        }
        StepBar { line: self.line.clone(), steps }
    }

    /// The marginal errors of the iterations that were kept.
    pub(crate) fn errors(&self) -> Vec<f64> {
        self.trace.iter().flatten().map(|step| step.marginal_error).collect()
    }

    pub(crate) fn finish(&self) {
        self.line.bar.finish_and_clear();
    }

    /// Writes the trace as JSON Lines.
    pub(crate) fn write_trace(&self, path: &Path) -> Result<(), Failure> {
        let written = orthant_io::write_atomic(path, |out| {
            for step in self.trace.iter().flatten() {
                serde_json::to_writer(&mut *out, step)?;
                writeln!(out)?;
            }
            Ok(())
        });
        written.map_err(Failure::other)
    }
}

impl Observer for Bar {
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next {
        if progress.iteration == 1 {
            self.first = None;
        }
        if let Some(trace) = &mut self.trace {
            trace.push(Step {
                term: match progress.term {
                    Term::Cross => "cross",
                    Term::SelfX => "self_x",
                    Term::SelfY => "self_y",
                },
                epsilon: progress.epsilon,
                iteration: progress.iteration,
                seconds: progress.elapsed.as_secs_f64(),
                value: progress.value(),
                marginal_error: progress.marginal_error,
            });
        }
        let error = progress.marginal_error.max(f64::MIN_POSITIVE);
        let first = *self.first.get_or_insert(error);
        let due = !self.stepwise && self.drawn.elapsed() > Duration::from_millis(100);
        if due && self.line.is_due() {
            self.drawn = Instant::now();
            let term = match progress.term {
                Term::Cross => "W(x, y)",
                Term::SelfX => "W(x, x)",
                Term::SelfY => "W(y, y)",
            };
            match self.interval {
                // Samples that follow make it narrower, nobody knows how many.
                Some((of, [low, high])) if of == progress.term => {
                    let [low, high] = [low, high].map(|end| format!("{end:.4}"));
                    self.line.show(0.0, &format!("{term}: value_kl in [{low}, {high}]"));
                }
                _ => {
                    let way = (first / error).ln() / (first / self.tolerance).ln();
                    let iteration = progress.iteration;
                    let words = format!("{term}: iteration {iteration}, error {error:.1e}");
                    self.line.show(way, &words);
                }
            }
        }
        Next::Continue
    }

    fn narrowed(&mut self, term: Term, [low, high]: [f64; 2]) {
        self.interval = Some((term, [low, high]));
    }

    fn phase(&mut self, phase: Phase) -> Next {
        if !self.stepwise && phase != Phase::Iterations && self.line.is_due() {
            self.line.show(0.0, phase.as_str());
        }
        Next::Continue
    }
}
