//! Points drawn from the distribution that a feature has on a cloud.

use std::ops::Range;

/// The points of one cloud of a factored plan: a distribution of them for each feature.
pub(crate) trait Conditional {
    /// `log sum_i u_i exp(L_ik)` for every feature `k`. Comes before all else.
    fn message(&mut self) -> Vec<f64>;

    /// For each chunk of the points, its part of every sum, relative to the largest term of the sum (or of its
    /// parts); and the length of a row of them.
    fn chunk_sums(&self) -> (&[f64], usize);

    /// Finds the points at which sums along the points reach what draws wait for: a list a chunk, sorted.
    fn find(&mut self, waiting: &mut [Vec<Waiting>]);
}

/// A draw that waits for its point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// Which draw it is.
    pub(crate) draw: usize,
    pub(crate) feature: usize,
    /// What the sum over the points of its chunk has to reach.
    pub(crate) left: f64,
    /// Where the point is, once it is found.
    pub(crate) place: usize,
}

/// The draws of one feature in a list of those that wait, and the sum so far.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) feature: usize,
    range: Range<usize>,
    pub(crate) sum: f64,
    /// The last place that had a part of the sum.
    last: usize,
}

impl Open {
    /// The draws of a list, by feature.
    pub(crate) fn all(waiting: &[Waiting]) -> Vec<Open> {
        let mut start = 0;
        waiting
            .chunk_by(|a, b| a.feature == b.feature)
            .map(|same| {
                let range = start..start + same.len();
                start = range.end;
                Open { feature: same[0].feature, range, sum: 0.0, last: 0 }
            })
            .collect()
    }

    /// Whether all its draws are found.
    pub(crate) fn is_done(&self) -> bool {
        self.range.is_empty()
    }

    /// Whether one of them waits for no more than `sum`.
    pub(crate) fn is_due(&self, sum: f64, waiting: &[Waiting]) -> bool {
        waiting[self.range.clone()].first().is_some_and(|w| w.left <= sum)
    }

    /// The next place, with its part of the sum.
    pub(crate) fn add(&mut self, mass: f64, place: usize, waiting: &mut [Waiting]) {
        if mass > 0.0 {
            self.last = place;
            self.reach(self.sum + mass, waiting);
        }
    }

    /// The sum of several places is known to be this; what their parts did not reach by rounding is at the last.
    pub(crate) fn reach(&mut self, sum: f64, waiting: &mut [Waiting]) {
        self.sum = sum;
        while self.is_due(sum, waiting) {
            waiting[self.range.start].place = self.last;
            self.range.start += 1;
        }
    }

    /// Starts from the beginning for draws that wait for more than there is: see [`DRAW_ROUNDS`].
    pub(crate) fn restart(&mut self, waiting: &mut [Waiting]) {
        for w in &mut waiting[self.range.clone()] {
            w.left = self.sum;
        }
        self.sum = 0.0;
    }
}

/// Sums that are taken another way than those that draws were told differ by rounding. A draw that waits for more
/// than there is waits for just that much in a second round, and is found at the last point.
pub(crate) const DRAW_ROUNDS: usize = 2;
