//! Products of signed features of landmarks, which must turn out positive: the Nystrom approximation.

use std::sync::Arc;

use super::derivative::Operand;
use super::pairwise::Pairwise;
use super::view::{Partners, Seat, View};
use super::{KernelError, Scaling, Site, Solved, State, Task, TermKernel, Work};
use crate::error::{Error, Result};
use crate::kernel::{Factors, Kernel, PlanSide};
use crate::numerics::simd::Float;
use crate::rows::LogRows;
use crate::sampling::Pairs;
use crate::words::{Part, Side};

/// The kernel of landmarks.
#[derive(Debug)]
pub(crate) struct NystromKernel<'p> {
    site: Site<'p>,
    /// Those of both clouds: the same for all terms.
    factors: Arc<Factors>,
}

impl<'p> NystromKernel<'p> {
    pub(crate) fn new(site: Site<'p>, factors: Arc<Factors>) -> Self {
        NystromKernel { site, factors }
    }
}

/// What the Nystrom approximation cannot do.
fn refused(task: &'static str) -> Error {
    let (what, remedy) = ("the Nystrom approximation", "use positive features or an exact method");
    Error::NotFor { what, task, remedy }
}

impl TermKernel for NystromKernel<'_> {
    fn site(&self) -> &Site<'_> {
        &self.site
    }

    fn rank(&self) -> usize {
        self.factors.landmarks()
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn solve(&self, task: &mut Task<'_>, work: &mut Work<'_>) -> Result<Solved> {
        let clouds = self.site.clouds();
        let mut kernel = self.factors.kernel(clouds);
        let outcome = task.solve(&mut *kernel, work.observer)?;
        let builds = kernel.builds();
        let points = clouds.map(|cloud| self.site.points(cloud, Part::Support));
        let side = |slot: usize, potential, sums| {
            let (cloud, points) = (clouds[slot], &points[slot]);
            PlanSide { cloud, points, potential, sums }
        };
        let squared = self.factors.squared_distance(&[
            side(0, &outcome.f[..], &outcome.x.sums[..]),
            side(1, &outcome.g[..], &outcome.y.sums[..]),
        ]);
        Ok(Solved {
            transport_cost: Some(self.site.cost_to_user(squared)?),
            builds,
            error: KernelError::of_features(None, None, f64::ROUNDING),
            sampling: None,
            rank: self.factors.landmarks(),
            state: State::default(),
            pairs: Pairs::default(),
            messages: Vec::new(),
            outcome,
        })
    }

    fn iterated(&self) -> Box<dyn Kernel + '_> {
        self.factors.kernel(self.site.clouds())
    }

    fn stored_numbers(&self, _: [f64; 2]) -> f64 {
        0.0
    }

    fn rows(&self) -> Option<(Box<dyn LogRows + '_>, bool)> {
        None
    }

    fn log_sums(&self, _: &State, cloud: Side, part: Part, g: &[f64]) -> Result<Vec<f64>> {
        let other = self.site.opposite(cloud);
        let (sums, clouds) = match part {
            Part::Support => (self.factors.log_sums(cloud, other, g), self.site.clouds()),
            Part::Outside => {
                let points = self.site.points(cloud, part);
                (self.factors.extend(other, g, &points), [cloud, other])
            }
        };
        sums.map_err(|error| self.site.in_user_rows(error, part, clouds))
    }

    fn pairwise<'a>(&'a self, _: &'a State) -> Pairwise<'a> {
        Pairwise::Each(Box::new(move |i, j, shift| {
            let entry = self.factors.entry(i, j);
            entry.signum() * (entry.abs().ln() + shift).exp()
        }))
    }

    fn sample(&self, _: &Scaling, _: &[[f64; 3]]) -> Result<Vec<[usize; 2]>> {
        Err(Error::SignedPlan)
    }

    fn view(
        &self,
        _: &State,
        cloud: Side,
        seat: &Seat<'_>,
        g: &[f64],
        columns: &[Vec<f64>],
    ) -> Result<View> {
        let other = self.site.opposite(cloud);
        let points = seat.points(&self.site, cloud);
        let (sums, means) =
            self.factors.means(&points, other, g, columns).map_err(|error| match seat {
                Seat::Part(part) => self.site.in_user_rows(error, *part, [cloud, other]),
                Seat::At(_) => error,
            })?;
        Ok(View { sums, means })
    }

    fn partners(
        &self,
        _: &State,
        _: Side,
        _: &Seat<'_>,
        _: &[f64],
        _: usize,
    ) -> Result<Vec<Partners>> {
        Err(Error::SignedPlan)
    }

    fn operand<'a>(&'a self, _: &'a State, _: Side) -> Result<Operand<'a>> {
        Err(Error::NoDerivative {
            by: "the points",
            reason: "the Nystrom approximation depends on them through its landmarks too",
            remedy: "use positive features or an exact method",
        })
    }

    fn on<'q>(&'q self, _: Site<'q>) -> Result<Box<dyn TermKernel + 'q>> {
        Err(refused("one kernel for other points"))
    }

    #[cfg(test)]
    fn scaled_on<'q>(&self, _: Site<'q>, _: f64) -> Box<dyn TermKernel + 'q> {
        panic!("landmarks depend on the points")
    }
}
