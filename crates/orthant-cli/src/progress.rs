//! A progress line on a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use orthant::{Next, Observer, Progress, Term};

/// Shows iterations and the marginal error on standard error, if that is a terminal.
pub(crate) struct Bar {
    line: ProgressBar,
    tolerance: f64,
    first: Option<f64>,
    drawn: Instant,
}

/// Steps of the bar: it shows the way that the error has gone to the tolerance, in decimals.
const STEPS: u64 = 1000;

impl Bar {
    pub(crate) fn new(tolerance: f64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg:<44} [{bar:30}] {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        bar.set_style(style);
        Bar { line: bar, tolerance, first: None, drawn: Instant::now() }
    }

    pub(crate) fn finish(&self) {
        self.line.finish_and_clear();
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
        let error = progress.marginal_error.max(f64::MIN_POSITIVE);
        let first = *self.first.get_or_insert(error);
        if self.drawn.elapsed() > Duration::from_millis(100) && !self.line.is_hidden() {
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
