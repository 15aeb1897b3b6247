//! Plans that are put away and taken up again.

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::error::Result;
use crate::measure::Measure;
use crate::options::Options;
use crate::problem::{Drawing, Given, Problem};
use crate::results::Solution;
use crate::term::Scaling;

/// All that a plan has beside its measures and its options, for files and other processes: the solution, the scalings, and
/// the kernel that was chosen. Of the feature `serde`.
///
/// ```
/// use orthant::{Measure, Options, Points, Solver, plan};
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
/// let nu = Measure::uniform(Points::new(vec![0.1, 1.1], 1)?);
/// let options = Options::builder(0.2).build()?;
/// let first = plan(&mu, &nu, &options)?;
/// let again = Solver::new(&options).restore(&mu, &nu, first.keep())?;
/// assert_eq!(again.row(1)?, first.row(1)?);
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptPlan {
    drawing: Drawing,
    scaling: Scaling,
    solution: Solution,
}

impl KeptPlan {
    /// The solution that the plan belongs to.
    pub fn solution(&self) -> &Solution {
        &self.solution
    }
}

impl<'p> Plan<'p> {
    /// What [`Solver::restore`](crate::Solver::restore) makes the same plan of.
    pub fn keep(&self) -> KeptPlan {
        KeptPlan {
            drawing: self.problem.drawing(),
            scaling: self.scaling.clone(),
            solution: self.solution.clone(),
        }
    }

    /// See [`Solver::restore`](crate::Solver::restore).
    pub(crate) fn restored(
        mu: &Measure<'p>,
        nu: &Measure<'p>,
        (options, given): (&Options, &Given<'p>),
        kept: KeptPlan,
    ) -> Result<Self> {
        let KeptPlan { drawing, scaling, solution } = kept;
        let sizes = [mu.support().len(), nu.support().len()];
        let scaling = scaling.woken(sizes, options)?;
        let fitted = scaling.fitted.as_ref();
        let problem = Problem::redrawn(mu, nu, (options, given), drawing, fitted)?;
        Ok(Plan::new(problem, scaling, solution))
    }
}
