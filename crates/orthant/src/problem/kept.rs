//! A problem again, without choosing its method and without solving it.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::build::{self, KernelChoice, Setting};
use super::{Aim, Given, Problem, Terms, limits};
use crate::error::{Error, Result};
use crate::measure::Measure;
use crate::options::{Method, Options};
use crate::sampling::Pairs;
use crate::term::{Form, Scaling, State};
use crate::words::{Shape, Term, clouds};

/// What a problem decided that is not in its options.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Drawing {
    choice: Option<KernelChoice>,
    round: usize,
    reason: Option<String>,
}

impl<'p> Problem<'p> {
    pub(crate) fn drawing(&self) -> Drawing {
        Drawing { choice: self.choice, round: self.round, reason: self.reason.clone() }
    }

    /// The problem of a cross term with the kernel that it had.
    pub(crate) fn redrawn(
        mu: &Measure<'p>,
        nu: &Measure<'p>,
        (options, given): (&Options, &Given<'p>),
        Drawing { choice, round, reason }: Drawing,
        fitted: Option<&Pairs>,
    ) -> Result<Self> {
        let (terms, aim) = (Terms::Cross, Aim::Own);
        let (begun, clock) = (Instant::now(), options.clock());
        let is_chosen = round > 0 || matches!(options.method, Method::Auto);
        let Some(choice) = choice.filter(|_| is_chosen) else {
            return Problem::new(mu, nu, (options, given), terms);
        };
        limits::check_rho(mu, nu, options, terms)?;
        // Lattices that were made finer are in the scaling.
        let error = None;
        let setting = Setting { mu, nu, options, given, terms, aim, error, clock: &clock };
        let plans = fitted.map(|pairs| [(clouds(Term::Cross), pairs)]);
        let plans = plans.as_ref().map(<[_; 1]>::as_slice);
        let kernels = build::chosen(choice, Form::Features, setting.gauged()?, setting, plans)?;
        let problem = Problem::of(mu, nu, options, kernels, clock);
        let prepared = begun.elapsed();
        Ok(Problem { reason, choice: Some(choice), round, prepared, ..problem })
    }
}

impl Scaling {
    /// As it was, of clouds with these sizes and under these options.
    pub(crate) fn woken(mut self, sizes: [usize; 2], options: &Options) -> Result<Self> {
        let expected = Shape { rows: sizes[0], columns: sizes[1] };
        let got = Shape { rows: self.f.len(), columns: self.g.len() };
        if got != expected {
            return Err(Error::Shape { what: "the plan that was kept", expected, got });
        }
        if let Some(lattice) = self.state.lattice.take() {
            self.state = State::of_lattice(lattice.guarded(&options.cancel));
        }
        Ok(self)
    }
}
