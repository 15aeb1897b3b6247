//! Plans that are put away and taken up again.

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::error::Result;
use crate::measure::Measure;
use crate::options::Options;
use crate::problem::{Drawing, Problem};
use crate::results::Solution;
use crate::term::Scaling;

/// All that a plan has beside its measures and its options, for files and other processes: the solution, the scalings, and
/// the kernel that was chosen. Of the feature `serde`.
///
/// ```
/// use orthant::{Measure, Options, Plan, Points, plan};
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
/// let nu = Measure::uniform(Points::new(vec![0.1, 1.1], 1)?);
/// let options = Options::builder(0.2).build()?;
/// let first = plan(&mu, &nu, &options)?;
/// let again = Plan::restored(&mu, &nu, &options, first.keep())?;
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
    /// What [`Plan::restored`] makes the same plan of.
    pub fn keep(&self) -> KeptPlan {
        KeptPlan {
            drawing: self.problem.drawing(),
            scaling: self.scaling.clone(),
            solution: self.solution.clone(),
        }
    }

    /// The plan again, of the measures and with the options that it was made of: nothing is chosen and nothing is
    /// solved, and all numbers have the same bits.
    pub fn restored(
        mu: &'p Measure<'p>,
        nu: &'p Measure<'p>,
        options: &'p Options<'p>,
        kept: KeptPlan,
    ) -> Result<Self> {
        let KeptPlan { drawing, scaling, solution } = kept;
        let sizes = [mu.support().len(), nu.support().len()];
        let scaling = scaling.woken(sizes, options)?;
        let fitted = scaling.fitted.as_ref();
        let problem = Problem::redrawn(mu, nu, options, drawing, fitted)?;
        Ok(Plan::new(problem, scaling, solution))
    }
}
