//! A problem again, without choosing its method and without solving it.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{
    Affine, Aim, Lattice, Pairs, Pick, Problem, Scaling, Setting, Terms, check_rho, furnish, gauged,
};
use crate::error::{Error, Result};
use crate::measure::Measure;
use crate::options::{Method, Options};
use crate::words::{Shape, Term, clouds};

/// What a problem decided that is not in its options.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Drawing {
    pick: Option<Pick>,
    round: usize,
    reason: Option<String>,
}

impl<'p> Problem<'p> {
    pub(crate) fn drawing(&self) -> Drawing {
        Drawing { pick: self.pick, round: self.round, reason: self.reason.clone() }
    }

    /// The problem of a cross term with the kernel that it had.
    pub(crate) fn redrawn(
        mu: &'p Measure<'p>,
        nu: &'p Measure<'p>,
        options: &'p Options<'p>,
        Drawing { pick, round, reason }: Drawing,
        fitted: Option<&Pairs>,
    ) -> Result<Self> {
        let (terms, aim) = (Terms::Cross, Aim::Own);
        let (begun, clock) = (Instant::now(), options.clock());
        let is_chosen = round > 0 || matches!(options.method, Method::Auto);
        let Some(pick) = pick.filter(|_| is_chosen) else {
            return Problem::new(mu, nu, options, terms);
        };
        check_rho(mu, nu, options, terms)?;
        // Lattices that were made finer are in the scaling.
        let setting = Setting { mu, nu, options, terms, aim, error: None, clock: &clock };
        let storage = pick.storage();
        let plans = fitted.map(|pairs| [(clouds(Term::Cross), pairs)]);
        let plans = plans.as_ref().map(<[_; 1]>::as_slice);
        let ground = furnish(pick, gauged(setting)?, storage, setting, plans)?;
        Ok(Problem {
            mu,
            nu,
            options,
            ground,
            storage,
            reason,
            pick: Some(pick),
            aim,
            tight: None,
            polishes: false,
            round,
            spent: 0,
            clock,
            prepared: begun.elapsed(),
        })
    }
}

impl Scaling {
    /// As it was, of clouds with these sizes and under these options.
    pub(crate) fn woken(mut self, sizes: [usize; 2], options: &Options<'_>) -> Result<Self> {
        let expected = Shape { rows: sizes[0], columns: sizes[1] };
        let got = Shape { rows: self.f.len(), columns: self.g.len() };
        if got != expected {
            return Err(Error::Shape { what: "the plan that was kept", expected, got });
        }
        self.lattice = self.lattice.map(|lattice: Lattice| lattice.guarded(&options.cancel));
        let listed: Option<Affine> = Self::listed(self.lattice.as_ref());
        self.listed = listed;
        Ok(self)
    }
}
