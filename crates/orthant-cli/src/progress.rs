//! A progress line on a terminal, and a trace of the iterations.

use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use orthant::{Next, Observer, Progress, Term};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::rough;

/// Shows iterations and the marginal error on standard error, if that is a terminal.
pub(crate) struct Bar {
    line: ProgressBar,
    /// Whether it shows steps, and not iterations.
    stepwise: bool,
    tolerance: f64,
    first: Option<f64>,
    drawn: Instant,
    /// The iterations so far, if they are to be kept.
    trace: Option<Vec<Step>>,
}

/// The same line, for a work of several steps.
pub(crate) struct StepBar(ProgressBar);

impl StepBar {
    pub(crate) fn show(&self, step: &orthant::Step<'_>, what: &str) {
        self.0.set_position(step.number as u64);
        self.0.set_message(format!("step {}: {what} {}", step.number, rough(step.value, 2)));
    }
}

/// A line on standard error, if that is a terminal.
pub(crate) fn line(steps: u64, template: &str) -> ProgressBar {
    let line = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    line.set_style(style.progress_chars("=> "));
    line
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

/// Steps of the bar: it shows the way that the error has gone to the tolerance, in decimals.
const STEPS: u64 = 1000;

impl Bar {
    pub(crate) fn new(tolerance: f64, trace: bool) -> Self {
        Bar {
            line: line(STEPS, "{msg:<44} [{bar:30}] {elapsed}"),
            stepwise: false,
            tolerance,
            first: None,
            drawn: Instant::now(),
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
        self.line.set_length(steps as u64);
        self.line.enable_steady_tick(Duration::from_millis(200));
        StepBar(self.line.clone())
    }

    /// The marginal errors of the iterations that were kept.
    pub(crate) fn errors(&self) -> Vec<f64> {
        self.trace.iter().flatten().map(|step| step.marginal_error).collect()
    }

    pub(crate) fn finish(&self) {
        self.line.finish_and_clear();
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
        written.map_err(|error| Failure::Other(error.into()))
    }
}

impl Observer for Bar {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 1000"
    )]
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
        if due && !self.line.is_hidden() {
            self.drawn = Instant::now();
            let term = match progress.term {
                Term::Cross => "W(x, y)",
                Term::SelfX => "W(x, x)",
                Term::SelfY => "W(y, y)",
            };
            let way = (first / error).ln() / (first / self.tolerance).ln();
            self.line.set_position((way.clamp(0.0, 1.0) * STEPS as f64) as u64);
            self.line.set_message(format!(
                "{term}: iteration {}, error {error:.1e}",
                progress.iteration
            ));
        }
        Next::Continue
    }
}
