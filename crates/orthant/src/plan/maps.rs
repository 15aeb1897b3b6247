//! Maps along a plan: means, votes, partners and potentials, at the points of a cloud and anywhere else.

use super::Plan;
use crate::error::{Error, Result};
use crate::measure::Points;
use crate::term::At;
use crate::words::{Part, Shape, Side};

/// The label that most of the mass of a point goes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vote {
    /// The label; of several with the same probability the smallest.
    pub label: usize,
    /// The part of the mass that goes there.
    pub probability: f64,
}

/// Number of labels at most: each is a column of values.
pub const MOST_LABELS: usize = 1000;

/// Columns of values that are treated together.
const TILE: usize = 16;

/// A column of values of the support of a cloud, between 0 and 1, and what these stand for.
struct Column {
    ends: [f64; 2],
    shares: Vec<f64>,
}

impl Column {
    fn new(values: Vec<f64>) -> Self {
        let ends = values
            .iter()
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(*v), high.max(*v)]);
        // By halves, so that the difference of two numbers is one.
        let [low, high] = ends.map(|e| 0.5 * e);
        let shares = values.into_iter().map(|v| (0.5 * v - low) / (high - low)).collect();
        Column { ends, shares }
    }

    /// The mean of the values from that of their shares: never outside the values but for rounding.
    fn mean(&self, share: f64) -> f64 {
        let [low, high] = self.ends;
        low * (1.0 - share) + high * share
    }
}

impl Plan<'_> {
    /// For every point of a cloud the mean of values of the other cloud's points, with the plan's conditional
    /// probabilities: `sum_j P_ij w_j / sum_j P_ij`.
    ///
    /// `values` has a row of `columns` numbers for each point of the other cloud, all finite; the result has a row for
    /// each point of this one. Means are taken with the plan's own marginals, converged or not, so they lie within what
    /// the values span, up to rounding, and a column of equal values is returned as it is. (Plans of the Nystrom
    /// approximation have entries of either sign, and promise nothing of the kind.) A point of weight zero has no mass
    /// to send; it gets what any other point at its place would: see [`Plan::conditional_mean_at`].
    ///
    /// ```
    /// use orthant::{Side, Measure, Options, Points, plan};
    /// let mu = Measure::uniform(Points::new(vec![0.0, 1.0, 2.0], 1)?);
    /// let nu = Measure::uniform(Points::new(vec![2.1, 0.1, 1.1], 1)?);
    /// let options = Options::builder(0.01).build()?;
    /// let plan = plan(&mu, &nu, &options)?;
    /// // The ages of the second cloud's points, brought to the first.
    /// let ages = plan.conditional_mean(Side::X, &[30.0, 10.0, 20.0], 1)?;
    /// assert!(ages.iter().zip([10.0, 20.0, 30.0]).all(|(a, b)| (a - b).abs() < 1e-6));
    /// # Ok::<(), orthant::Error>(())
    /// ```
    pub fn conditional_mean(
        &self,
        cloud: Side,
        values: &[f64],
        columns: usize,
    ) -> Result<Vec<f64>> {
        self.check_values(cloud, values, columns)?;
        self.means(cloud, None, columns, |j, c| values[j * columns + c])
    }

    /// [`Plan::conditional_mean`] at points of your own: what a point of the cloud would get if it were there, of
    /// however little weight. Rows of new points are no rows of the plan, but all that it takes is the other cloud's
    /// potential.
    ///
    /// Features of the squared Euclidean cost stand for it where the clouds are. Beyond the box of the cloud
    /// (in the coordinates of the solve) the exact kernel is used, which takes all points of the other cloud.
    /// Costs that are given pair by pair say nothing of new points: [`Error::NoNewPoints`].
    pub fn conditional_mean_at(
        &self,
        cloud: Side,
        points: &Points<'_>,
        values: &[f64],
        columns: usize,
    ) -> Result<Vec<f64>> {
        self.check_values(cloud, values, columns)?;
        self.means(cloud, Some(points), columns, |j, c| values[j * columns + c])
    }

    /// Where the plan sends the points of a cloud, in the mean: the barycentric projection onto the other cloud, a row
    /// of coordinates a point. See [`Plan::conditional_mean`].
    ///
    /// ```
    /// use orthant::{Side, Measure, Options, Points, plan};
    /// // A cloud and the same moved by (3, 4).
    /// let mu = Measure::uniform(Points::new(vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0], 2)?);
    /// let nu = Measure::uniform(Points::new(vec![3.0, 4.0, 4.0, 4.0, 3.0, 5.0], 2)?);
    /// let options = Options::builder(0.01).build()?;
    /// let plan = plan(&mu, &nu, &options)?;
    /// let moved = plan.barycentric(Side::X)?;
    /// assert!((moved[0] - 3.0).abs() < 1e-6 && (moved[1] - 4.0).abs() < 1e-6);
    /// let back = plan.barycentric(Side::Y)?;
    /// assert!((back[4] - 0.0).abs() < 1e-6 && (back[5] - 1.0).abs() < 1e-6);
    /// # Ok::<(), orthant::Error>(())
    /// ```
    pub fn barycentric(&self, cloud: Side) -> Result<Vec<f64>> {
        let others = self.measure(cloud.other()).points();
        self.means(cloud, None, others.dim(), |j, c| others.coordinate(j, c))
    }

    /// The barycentric projection as a map: where points of your own would go if they belonged to the cloud. For the
    /// squared Euclidean cost it is the *entropic map*, the gradient of a convex function. See
    /// [`Plan::conditional_mean_at`].
    pub fn map_at(&self, cloud: Side, points: &Points<'_>) -> Result<Vec<f64>> {
        let others = self.measure(cloud.other()).points();
        self.means(cloud, Some(points), others.dim(), |j, c| others.coordinate(j, c))
    }

    /// For every point of a cloud the label that most of its mass goes to, and how much of it. `labels` has one for
    /// each point of the other cloud, below [`MOST_LABELS`]. Every label takes as long as a column of
    /// [`Plan::conditional_mean`].
    pub fn vote(&self, cloud: Side, labels: &[usize]) -> Result<Vec<Vote>> {
        self.votes(cloud, None, labels)
    }

    /// [`Plan::vote`] at points of your own: see [`Plan::conditional_mean_at`].
    pub fn vote_at(&self, cloud: Side, points: &Points<'_>, labels: &[usize]) -> Result<Vec<Vote>> {
        self.votes(cloud, Some(points), labels)
    }

    /// The potential of a cloud as a function of position, `-eps log sum_j k(x, y_j) v_j` (the soft c-transform of the
    /// other cloud's), at points of your own. At the points of the cloud it is
    /// [`Solution::potential_kl_x`](crate::Solution::potential_kl_x) (or `_y`), at convergence; a point of weight
    /// `a` has that and `eps log a` as its [`potential_x`](crate::Solution::potential_x). Where the marginal is relaxed
    /// it is multiplied by `tau`, as there. See [`Plan::conditional_mean_at`] for the kernel that is used.
    pub fn potential_at(&self, cloud: Side, points: &Points<'_>) -> Result<Vec<f64>> {
        self.coupling().potential_at(cloud, points)
    }

    /// For every point of a cloud its `count` largest partners in the other, the largest first, with their conditional
    /// probabilities `P_ij / sum_j P_ij`: one pass over all pairs. Fewer if fewer are positive. Points of weight zero
    /// have those of any other point at their place.
    ///
    /// Plans of the Nystrom approximation have no probabilities: [`Error::SignedPlan`].
    pub fn partners(&self, cloud: Side, count: usize) -> Result<Vec<Vec<(usize, f64)>>> {
        let measure = self.measure(cloud);
        let mut all = vec![Vec::new(); measure.weights().len()];
        for (part, places) in self.parts(cloud) {
            let found = self.partners_from(cloud, At::Part(part), count)?;
            for (k, found) in found.into_iter().enumerate() {
                all[places.map_or(k, |places| places[k])] = found;
            }
        }
        Ok(all)
    }

    /// [`Plan::partners`] of points of your own: see [`Plan::conditional_mean_at`].
    pub fn partners_at(
        &self,
        cloud: Side,
        points: &Points<'_>,
        count: usize,
    ) -> Result<Vec<Vec<(usize, f64)>>> {
        self.partners_from(cloud, At::New(points), count)
    }

    fn partners_from(
        &self,
        cloud: Side,
        at: At<'_>,
        count: usize,
    ) -> Result<Vec<Vec<(usize, f64)>>> {
        let mut found = self.coupling().partners(cloud, at, count)?;
        if let Some(kept) = self.measure(cloud.other()).indices(true) {
            for (j, _) in found.iter_mut().flatten() {
                *j = kept[*j];
            }
        }
        Ok(found)
    }

    /// The parts of a cloud, and where their points are among all.
    fn parts(&self, cloud: Side) -> impl Iterator<Item = (Part, Option<&[usize]>)> {
        let measure = self.measure(cloud);
        let outside = measure.indices(false).map(|places| (Part::Outside, Some(places)));
        std::iter::once((Part::Support, measure.indices(true))).chain(outside)
    }

    fn check_values(&self, cloud: Side, values: &[f64], columns: usize) -> Result<()> {
        let rows = self.measure(cloud.other()).weights().len();
        let expected = Shape { rows, columns };
        if columns == 0 || rows.checked_mul(columns) != Some(values.len()) {
            let got = Shape { rows: values.len() / columns.max(1), columns };
            return Err(Error::Shape { what: "the values", expected, got });
        }
        match values.iter().position(|v| !v.is_finite()) {
            None => Ok(()),
            Some(i) => Err(Error::Value {
                row: i / columns + 1,
                column: i % columns + 1,
                value: values[i],
            }),
        }
    }

    /// The values of a column on the support of the other cloud.
    fn gathered<T>(&self, cloud: Side, value: impl Fn(usize) -> T) -> Vec<T> {
        let other = self.measure(cloud.other());
        match other.indices(true) {
            None => (0..other.weights().len()).map(value).collect(),
            Some(kept) => kept.iter().map(|&j| value(j)).collect(),
        }
    }

    /// Means of columns of values at the points of a cloud or at others, a row a point.
    fn means(
        &self,
        cloud: Side,
        at: Option<&Points<'_>>,
        count: usize,
        value: impl Fn(usize, usize) -> f64,
    ) -> Result<Vec<f64>> {
        let rows = at.map_or(self.measure(cloud).weights().len(), Points::len);
        let mut out = vec![0.0; rows * count];
        for start in (0..count).step_by(TILE) {
            let tile: Vec<Column> = (start..count.min(start + TILE))
                .map(|c| Column::new(self.gathered(cloud, |j| value(j, c))))
                .collect();
            self.shares(cloud, at, &tile, |i, c, share| {
                out[i * count + start + c] = tile[c].mean(share);
            })?;
        }
        Ok(out)
    }

    /// The mean share of each column of a tile, for every point.
    fn shares(
        &self,
        cloud: Side,
        at: Option<&Points<'_>>,
        tile: &[Column],
        mut each: impl FnMut(usize, usize, f64),
    ) -> Result<()> {
        // A column of equal values is its own mean.
        let varied: Vec<usize> =
            (0..tile.len()).filter(|&c| tile[c].ends[0] < tile[c].ends[1]).collect();
        let columns: Vec<Vec<f64>> = varied.iter().map(|&c| tile[c].shares.clone()).collect();
        let mut look = |at: At<'_>, places: Option<&[usize]>| -> Result<()> {
            let view = self.coupling().view(cloud, at, &columns)?;
            for k in 0..view.points() {
                let i = places.map_or(k, |places| places[k]);
                (0..tile.len()).filter(|c| !varied.contains(c)).for_each(|c| each(i, c, 0.0));
                let means = &view.means[k * varied.len()..(k + 1) * varied.len()];
                varied.iter().zip(means).for_each(|(&c, mean)| each(i, c, *mean));
            }
            Ok(())
        };
        match at {
            Some(points) => look(At::New(points), None),
            None => self.parts(cloud).try_for_each(|(part, places)| look(At::Part(part), places)),
        }
    }

    fn votes(&self, cloud: Side, at: Option<&Points<'_>>, labels: &[usize]) -> Result<Vec<Vote>> {
        let others = self.measure(cloud.other()).weights().len();
        if labels.len() != others {
            return Err(Error::Shape {
                what: "the labels",
                expected: Shape { rows: others, columns: 1 },
                got: Shape { rows: labels.len(), columns: 1 },
            });
        }
        let most = labels.iter().copied().max().unwrap_or(0);
        if most >= MOST_LABELS {
            let (name, expected) = ("a label", "below 1000");
            return Err(Error::Option { name, expected, value: most as f64 });
        }
        let rows = at.map_or(self.measure(cloud).weights().len(), Points::len);
        let mut votes = vec![Vote { label: 0, probability: f64::NEG_INFINITY }; rows];
        // Labels that nobody has get no votes.
        let mut found = self.gathered(cloud, |j| labels[j]);
        found.sort_unstable();
        found.dedup();
        for tile in found.chunks(TILE) {
            let columns: Vec<Column> = tile
                .iter()
                .map(|label| {
                    let has = |j: usize| if labels[j] == *label { 1.0 } else { 0.0 };
                    Column::new(self.gathered(cloud, has))
                })
                .collect();
            self.shares(cloud, at, &columns, |i, c, share| {
                let probability = columns[c].mean(share);
                if probability > votes[i].probability {
                    votes[i] = Vote { label: tile[c], probability };
                }
            })?;
        }
        Ok(votes)
    }
}
