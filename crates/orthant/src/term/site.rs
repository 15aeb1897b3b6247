//! Where a term is solved: its two measures, the coordinates in which the kernel takes their points, and the cost there.

use super::gauged::{Gauged, GaugedTerm};
use super::lattices;
use super::view::Seat;
use crate::anchors::Lattice;
use crate::comm::Span;
use crate::control::Cancel;
use crate::coordinates::{Frame, check_reach};
use crate::error::{Error, Result};
use crate::features::SquaredEuclidean;
use crate::ground::GroundCost;
use crate::kernel::Moments;
use crate::measure::{Measure, Points, coordinates, extremes};
use crate::numerics::dot;
use crate::options::Options;
use crate::rows::{CostMatrix, CostRows, GroundRows, LogRows};
use crate::sinkhorn::unbalanced::{Margin, Unbalanced};
use crate::words::{Part, Shape, Side, Term, clouds};

/// The site of a term.
#[derive(Debug)]
pub(crate) struct Site<'p> {
    term: Term,
    /// The first measure of the problem and the second, whichever of them the term is of.
    measures: [Measure<'p>; 2],
    options: Options,
    /// Ends passes over the points.
    cancel: Cancel,
    space: Space<'p>,
}

/// The coordinates of the points, and the cost.
#[derive(Debug)]
pub(crate) enum Space<'p> {
    /// The squared Euclidean cost, in the coordinates of a gauge.
    Gauged(Box<Gauged>),
    /// The squared Euclidean cost of points in the coordinates of the user, which a frame brings into range.
    Framed(Frame),
    /// Costs that are given one by one.
    Matrix(CostMatrix<'p>),
    /// A cost that is no squared distance, of points in the coordinates of the user.
    Pairs(PairCost),
    /// The cost is what the features say: points are in the coordinates of the user.
    Features,
}

/// A cost that is evaluated pair by pair.
#[derive(Debug, Clone)]
pub(crate) struct PairCost {
    pub(crate) cost: GroundCost,
    /// At most how much the costs of the term differ.
    pub(crate) range: f64,
}

impl Space<'_> {
    pub(crate) fn gauged(gauged: Gauged) -> Self {
        Space::Gauged(Box::new(gauged))
    }
}

/// Points of a cloud, or at places where the cloud has none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'c> {
    cloud: Side,
    points: Which<'c>,
}

#[derive(Debug, Clone, Copy)]
enum Which<'c> {
    Seen(Seat<'c>),
    /// Some of the support.
    Some(&'c [usize]),
}

impl<'c> Chosen<'c> {
    /// The support.
    pub(super) fn all(cloud: Side) -> Self {
        Chosen::seat(cloud, Seat::Part(Part::Support))
    }

    pub(super) fn seat(cloud: Side, seat: Seat<'c>) -> Self {
        Chosen { cloud, points: Which::Seen(seat) }
    }

    /// Some of the support.
    pub(super) fn some(cloud: Side, points: &'c [usize]) -> Self {
        Chosen { cloud, points: Which::Some(points) }
    }
}

/// New points in the coordinates of the kernel.
pub(super) struct Arrival<'a> {
    pub(super) points: Points<'a>,
    /// What the gauge adds to the potential, in the user's units; nothing where it is zero.
    pub(super) offsets: Option<Vec<f64>>,
}

/// Costs that are not given are functions of the points, and new points do not arrive where they are given.
pub(super) const OF_POINTS: &str =
    "costs that are not given are functions of points in coordinates that are in range";

impl<'p> Site<'p> {
    pub(crate) fn new(
        term: Term,
        measures: [&Measure<'p>; 2],
        options: &Options,
        cancel: &Cancel,
        space: Space<'p>,
    ) -> Self {
        let (measures, options) = (measures.map(Measure::clone), options.clone());
        Site { term, measures, options, cancel: cancel.clone(), space }
    }

    /// The site of a term of other measures, in the same coordinates.
    pub(crate) fn moved<'q>(
        &self,
        term: Term,
        measures: [&Measure<'q>; 2],
        options: &Options,
        cancel: &Cancel,
    ) -> Result<Site<'q>>
    where
        'p: 'q,
    {
        let space = match &self.space {
            Space::Gauged(gauged) => {
                Space::gauged(Gauged::new(gauged.gauge.clone(), term, measures)?)
            }
            Space::Framed(frame) => Space::Framed(frame.clone()),
            Space::Matrix(matrix) => Space::Matrix(matrix.clone()),
            Space::Pairs(pairs) => Space::Pairs(pairs.clone()),
            Space::Features => Space::Features,
        };
        Ok(Site::new(term, measures, options, cancel, space))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The two clouds of the term.
    pub(crate) fn clouds(&self) -> [Side; 2] {
        clouds(self.term)
    }

    pub(crate) fn is_self(&self) -> bool {
        self.term != Term::Cross
    }

    /// The cloud on the other side of the term.
    pub(crate) fn opposite(&self, cloud: Side) -> Side {
        if self.is_self() { cloud } else { cloud.other() }
    }

    pub(crate) fn measure(&self, cloud: Side) -> &Measure<'p> {
        &self.measures[cloud as usize]
    }

    /// The points of positive weight of a cloud, among those of all processes.
    pub(crate) fn span(&self, cloud: Side) -> &Span {
        self.measure(cloud).support().points.span()
    }

    /// The weights of the two supports of the term.
    pub(crate) fn weights(&self) -> [&[f64]; 2] {
        self.clouds().map(|cloud| self.measure(cloud).support().weights)
    }

    /// The points of a cloud where the kernel takes them.
    pub(crate) fn points(&self, cloud: Side, part: Part) -> Points<'_> {
        if let Space::Gauged(gauged) = &self.space {
            return gauged.points(cloud, part).borrowed();
        }
        let measure = self.measure(cloud);
        match part {
            Part::Support => measure.support().points.borrowed(),
            Part::Outside => measure.outside().expect("points outside the support").borrowed(),
        }
    }

    /// What the coordinates add to potentials, point by point; nothing where that is zero.
    pub(crate) fn offsets(&self, cloud: Side, part: Part) -> Option<&[f64]> {
        match &self.space {
            Space::Gauged(gauged) => gauged.offsets(cloud, part),
            _ => None,
        }
    }

    /// What the coordinates add to the cost of all pairs.
    pub(crate) fn constant(&self) -> f64 {
        match &self.space {
            Space::Gauged(gauged) => gauged.gauge.constant(),
            Space::Matrix(cost) => cost.least(),
            Space::Framed(_) | Space::Pairs(_) | Space::Features => 0.0,
        }
    }

    /// What the coordinates add to the cost of a plan with these marginals, but for the constant.
    pub(crate) fn moved_cost(&self, marginals: [&[f64]; 2]) -> f64 {
        let of = |(cloud, marginal): (Side, &[f64])| {
            let span = self.span(cloud);
            self.offsets(cloud, Part::Support).map_or(0.0, |p| span.sum(|i| p[i] * marginal[i]))
        };
        self.clouds().into_iter().zip(marginals).map(of).sum()
    }

    /// What the coordinates add to the value.
    pub(crate) fn offset(&self) -> f64 {
        self.moved_cost(self.weights()) + self.constant()
    }

    /// The marginals, if they are relaxed.
    pub(crate) fn unbalanced(&self) -> Option<Unbalanced> {
        let Options { epsilon, rho, .. } = self.options;
        if !self.options.is_unbalanced() {
            return None;
        }
        let margin = |cloud: Side, constant: f64| {
            let measure = self.measure(cloud);
            let offsets = self.offsets(cloud, Part::Support);
            let weights = measure.support().weights;
            let (mass, rho) = (measure.mass(), rho[cloud as usize]);
            Margin::new((weights, self.span(cloud)), mass, rho, epsilon, offsets, constant)
        };
        let sides = match self.clouds() {
            [x, y] if x == y => vec![margin(x, 0.0)],
            // As potentials have it: the constant is the second cloud's.
            [x, y] => vec![margin(x, 0.0), margin(y, self.constant())],
        };
        Some(Unbalanced::new(epsilon, sides))
    }

    /// The frame in which the kernel of the points is `exp(-||x - y||^2 / eps)`, and that epsilon. None of other costs.
    pub(super) fn metric(&self) -> Result<Option<(Frame, f64)>> {
        Ok(match &self.space {
            Space::Gauged(gauged) => {
                let dim = self.measure(self.clouds()[0]).dim();
                Some((Frame::unit(dim), gauged.gauge.epsilon()))
            }
            Space::Framed(frame) => Some((frame.clone(), frame.epsilon(self.options.epsilon)?)),
            Space::Matrix(_) | Space::Pairs(_) | Space::Features => None,
        })
    }

    /// Whether the cost is the squared Euclidean one.
    pub(super) fn is_euclidean(&self) -> bool {
        matches!(self.space, Space::Gauged(_) | Space::Framed(_))
    }

    /// Whether the coordinates are those of a gauge.
    pub(super) fn is_gauged(&self) -> bool {
        matches!(self.space, Space::Gauged(_))
    }

    /// The site of a term of other measures, in the same coordinates as they would be for an epsilon that is `ratio` times
    /// as large.
    #[cfg(test)]
    pub(crate) fn redone<'q>(
        &self,
        term: Term,
        measures: [&Measure<'q>; 2],
        options: &Options,
        ratio: f64,
    ) -> Site<'q> {
        let Space::Gauged(gauged) = &self.space else { panic!("only gauges can be scaled") };
        let gauged = Gauged::new(gauged.gauge.at(ratio), term, measures).unwrap();
        Site::new(term, measures, options, &options.cancel, Space::gauged(gauged))
    }

    /// The kernel of the squared Euclidean cost at points where the kernel takes them, over the support of the opposite
    /// cloud; none of other costs.
    pub(super) fn exact_rows<'a>(
        &'a self,
        cloud: Side,
        points: Points<'a>,
    ) -> Result<Option<Box<dyn LogRows + 'a>>> {
        let others = self.points(self.opposite(cloud), Part::Support);
        let rows = self
            .metric()?
            .map(|(frame, epsilon)| SquaredEuclidean::new(&frame, epsilon, points, &others));
        Ok(rows.map(|rows| Box::new(self.cancel.guard(rows)) as Box<dyn LogRows>))
    }

    /// The kernel of a cost that is no squared distance at some points over others.
    pub(super) fn pair_rows<'a>(
        &self,
        points: Points<'a>,
        others: Points<'a>,
    ) -> Option<GroundRows<'a>> {
        let Space::Pairs(pairs) = &self.space else { return None };
        Some(GroundRows::new(&pairs.cost, self.options.epsilon, points, others))
    }

    /// The mean cost of independent points of the supports, of a cost that is no squared distance.
    fn mean_of_pairs(&self) -> Option<f64> {
        let [x, y] = self.clouds();
        let [of_x, of_y] = [x, y].map(|cloud| self.points(cloud, Part::Support));
        let rows = self.pair_rows(of_x, of_y)?;
        let [a, b] = [x, y].map(|cloud| self.measure(cloud).support().weights);
        let mean = self.span(x).sum(|i| {
            let (mut row, mut scratch) = (vec![0.0; b.len()], vec![0.0; rows.scratch()]);
            rows.fill(i, b.len(), &mut row, &mut scratch);
            a[i] * dot(&row, b)
        });
        Some(-self.options.epsilon * mean)
    }

    /// The kernel of the cost between points of the two clouds of the term, where there is one.
    pub(super) fn between<'a>(
        &'a self,
        rows: Chosen<'a>,
        columns: Chosen<'a>,
    ) -> Box<dyn LogRows + 'a> {
        if let Space::Matrix(cost) = &self.space {
            let indices = |Chosen { cloud, points }: Chosen<'_>| -> Vec<usize> {
                let measure = self.measure(cloud);
                match points {
                    Which::Some(points) => {
                        let kept = measure.indices(true);
                        points.iter().map(|&i| kept.map_or(i, |kept| kept[i])).collect()
                    }
                    Which::Seen(Seat::Part(part)) => match measure.indices(part == Part::Support) {
                        None => (0..measure.weights().len()).collect(),
                        Some(indices) => indices.to_vec(),
                    },
                    Which::Seen(Seat::At(_)) => unreachable!("new points have no given costs"),
                }
            };
            let transposed = rows.cloud == Side::Y && !self.is_self();
            let (rows, columns) = (indices(rows), indices(columns));
            let entries = CostRows::new(cost, rows, columns, transposed, self.options.epsilon);
            return Box::new(self.cancel.guard(entries));
        }
        let points = |Chosen { cloud, points }: Chosen<'a>| match points {
            Which::Some(some) => self.points(cloud, Part::Support).select(some),
            Which::Seen(Seat::Part(part)) => self.points(cloud, part),
            Which::Seen(Seat::At(points)) => points.borrowed(),
        };
        let (rows, columns) = (points(rows), points(columns));
        if let Space::Pairs(_) = &self.space {
            let rows = self.pair_rows(rows, columns).expect("a cost of pairs");
            return Box::new(self.cancel.guard(rows));
        }
        let (frame, epsilon) = self.metric().ok().flatten().expect(OF_POINTS);
        let rows = SquaredEuclidean::new(&frame, epsilon, rows, &columns);
        Box::new(self.cancel.guard(rows))
    }

    /// The error that the kernel may have, in units of the cost, if it is not what the accuracy says of the term.
    pub(super) fn kernel_error(&self) -> Option<f64> {
        match &self.space {
            Space::Gauged(gauged) => gauged.error,
            _ => None,
        }
    }

    /// Whether costs are given one by one.
    pub(super) fn has_given_costs(&self) -> bool {
        matches!(self.space, Space::Matrix(_))
    }

    /// The logarithm of the kernel of the cost, entry by entry of the supports. None of costs that features define.
    pub(super) fn log_entry(&self) -> Option<Box<dyn Fn(usize, usize) -> f64 + Sync + '_>> {
        let [x, y] = self.clouds();
        match &self.space {
            Space::Matrix(cost) => {
                let index = [x, y].map(|cloud| self.measure(cloud).indices(true));
                let of = move |c: usize, i: usize| index[c].map_or(i, |kept| kept[i]);
                let epsilon = self.options.epsilon;
                Some(Box::new(move |i, j| (cost.least() - cost.cost(of(0, i), of(1, j))) / epsilon))
            }
            Space::Gauged(gauged) => {
                let [x, y] = [x, y].map(|c| gauged.points(c, Part::Support));
                let epsilon = gauged.gauge.epsilon();
                Some(Box::new(move |i, j| {
                    let away = |a| x.coordinate(i, a) - y.coordinate(j, a);
                    let square: f64 = (0..x.dim()).map(|a| away(a).powi(2)).sum();
                    -square / epsilon
                }))
            }
            Space::Pairs(pairs) => {
                let [x, y] = [x, y].map(|cloud| {
                    coordinates(&pairs.cost.mapped(self.measure(cloud).support().points))
                });
                let (dim, epsilon) = (self.measure(self.clouds()[0]).dim(), self.options.epsilon);
                Some(Box::new(move |i, j| {
                    let (x, y) = (&x[i * dim..][..dim], &y[j * dim..][..dim]);
                    -pairs.cost.of_pair(x, y) / epsilon
                }))
            }
            Space::Framed(_) | Space::Features => None,
        }
    }

    /// The transport cost of a plan of this mass by its moments, but for what the coordinates add. None of costs that
    /// are no squared distance.
    pub(super) fn cost_of(&self, plan: &mut dyn Moments, mass: f64) -> Result<Option<f64>> {
        let Some((frame, _)) = self.metric()? else { return Ok(None) };
        let [x, y] = self.clouds().map(|cloud| self.points(cloud, Part::Support));
        let squared = plan.squared_distance(
            frame.dim(),
            &|i, out| frame.copy_coordinates(&x, i, 0, out),
            &|j, out| frame.copy_coordinates(&y, j, 0, out),
        );
        self.cost_to_user(squared / mass).map(Some)
    }

    /// A squared distance of the coordinates as a cost of the user's.
    pub(super) fn cost_to_user(&self, squared: f64) -> Result<f64> {
        match &self.space {
            Space::Gauged(gauged) => Ok(gauged.gauge.to_user(squared)),
            Space::Framed(frame) => frame.cost_to_user(squared),
            Space::Matrix(_) | Space::Pairs(_) | Space::Features => Ok(squared),
        }
    }

    /// Lengths of the coordinates in those of the user.
    pub(super) fn shrink(&self) -> f64 {
        match &self.space {
            Space::Gauged(gauged) => gauged.gauge.shrink(),
            _ => 1.0,
        }
    }

    /// The mean cost of all pairs of the clouds, where the cost is a function of the points alone: that of independent
    /// points around their centres.
    pub(crate) fn mean_cost(&self) -> Option<f64> {
        match &self.space {
            Space::Gauged(gauged) => {
                let square = |cloud: Side| -> f64 {
                    let (points, weights) = (
                        gauged.points(cloud, Part::Support),
                        self.measure(cloud).support().weights,
                    );
                    let norm = |i| -> f64 {
                        (0..points.dim()).map(|c| points.coordinate(i, c).powi(2)).sum()
                    };
                    points.span().sum(|i| weights[i] * norm(i))
                };
                Some(gauged.gauge.to_user(self.clouds().map(square).into_iter().sum()))
            }
            Space::Matrix(matrix) => Some(matrix.mean()),
            Space::Pairs(_) => self.mean_of_pairs(),
            Space::Framed(_) | Space::Features => None,
        }
    }

    /// The mean cost of independent points in the coordinates of the term, in the user's units, where the cost is a
    /// function of the points.
    pub(crate) fn product_cost(&self) -> Option<f64> {
        let gauged = match &self.space {
            Space::Gauged(gauged) => gauged,
            // Over the smallest cost, which is the offset of the term.
            Space::Matrix(matrix) => {
                let [a, b] = self.clouds().map(|cloud| self.measure(cloud).weights());
                return Some(matrix.weighted_mean(a, b));
            }
            Space::Pairs(_) => return self.mean_of_pairs(),
            Space::Framed(_) | Space::Features => return None,
        };
        let [(mean_x, square_x), (mean_y, square_y)] = self.clouds().map(|cloud| {
            let points = gauged.points(cloud, Part::Support);
            let weights = self.measure(cloud).support().weights;
            // The mean, and after it the mean square.
            let mut mean = vec![0.0; points.dim() + 1];
            points.span().sum_each(&mut mean, |i, sums| {
                for c in 0..points.dim() {
                    let x = points.coordinate(i, c);
                    sums[c] += weights[i] * x;
                    sums[points.dim()] += weights[i] * x * x;
                }
            });
            let square = mean.pop().unwrap_or(0.0);
            (mean, square)
        });
        Some(gauged.gauge.to_user(square_x + square_y - 2.0 * dot(&mean_x, &mean_y)))
    }

    /// At most how much the costs of the term differ; infinite where that is not known.
    pub(crate) fn cost_range(&self) -> f64 {
        let scaled = |reach: f64, unit: f64| reach * reach * self.options.epsilon / unit;
        match &self.space {
            Space::Gauged(gauged) => {
                let reach = self.clouds().map(|cloud| {
                    let points = gauged.points(cloud, Part::Support);
                    let square = |i: usize| {
                        (0..points.dim()).map(|c| points.coordinate(i, c).powi(2)).sum::<f64>()
                    };
                    points.span().max(square).sqrt()
                });
                scaled(reach[0] + reach[1], gauged.gauge.epsilon())
            }
            Space::Matrix(matrix) => matrix.spread(),
            Space::Pairs(pairs) => pairs.range,
            Space::Framed(frame) => frame
                .epsilon(self.options.epsilon)
                .map_or(f64::INFINITY, |unit| scaled(2.0 * frame.radius(), unit)),
            Space::Features => f64::INFINITY,
        }
    }

    /// The box of a cloud: the smallest and the largest coordinate along each axis.
    pub(super) fn ends(&self, cloud: Side) -> Vec<[f64; 2]> {
        match &self.space {
            Space::Gauged(gauged) => gauged.ends(cloud),
            _ => extremes(self.measure(cloud).points()),
        }
    }

    /// The box of all midpoints of pairs, one of each cloud.
    pub(super) fn midpoints(&self) -> [Vec<f64>; 2] {
        let [x, y] = self.clouds().map(|cloud| self.ends(cloud));
        [0, 1].map(|end| x.iter().zip(&y).map(|(x, y)| 0.5 * (x[end] + y[end])).collect())
    }

    /// The finest lattice that is quick beside the exact kernel, if there is one.
    pub(super) fn near_lattice(&self) -> Option<Lattice> {
        lattices::near(&self.gauged_term()?, &self.options)
    }

    /// Whether lattices of the term whose errors are at most this can be had, where the cost has lattices.
    pub(crate) fn has_lattice(&self, error: f64) -> bool {
        self.gauged_term().is_none_or(|term| term.lattice_for(error, &self.options).is_some())
    }

    fn gauged_term(&self) -> Option<GaugedTerm<'_>> {
        let Space::Gauged(gauged) = &self.space else { return None };
        let clouds = self.clouds();
        Some(GaugedTerm { gauged, clouds, measures: clouds.map(|cloud| self.measure(cloud)) })
    }

    /// Brings new points of a cloud into the coordinates of the kernel.
    pub(super) fn arrive<'a>(&self, cloud: Side, points: &'a Points<'_>) -> Result<Arrival<'a>> {
        let dim = self.measure(cloud).dim();
        if points.dim() != dim {
            return Err(Error::Dimensions { x: points.dim(), y: dim });
        }
        match &self.space {
            Space::Matrix(_) => Err(Error::NoNewPoints { given: "a cost matrix" }),
            Space::Gauged(gauged) => {
                let placed = gauged.gauge.place_new(cloud as usize, points)?;
                Ok(Arrival { points: placed.points, offsets: placed.offsets })
            }
            Space::Framed(frame) => {
                let epsilon = frame.epsilon(self.options.epsilon)?;
                check_reach(frame, points, 0..points.len(), epsilon)?;
                Ok(Arrival { points: points.borrowed(), offsets: None })
            }
            Space::Pairs(pairs) => {
                pairs.cost.check(points)?;
                Ok(Arrival { points: points.borrowed(), offsets: None })
            }
            Space::Features => Ok(Arrival { points: points.borrowed(), offsets: None }),
        }
    }

    /// Turns `sum_k w_ik d L_ik / d x_i` of the points of a cloud, `w_ik` their masses, into the gradient of the value in
    /// the user's coordinates.
    pub(super) fn to_user_gradient(&self, cloud: Side, masses: &[f64], out: &mut [f64]) {
        match &self.space {
            Space::Gauged(gauged) => {
                let points = self.measure(cloud).support().points;
                gauged.to_user_gradient(cloud, points, masses, out);
            }
            _ => {
                for g in out {
                    *g *= -self.options.epsilon;
                }
            }
        }
    }

    /// A potential of the user's problem as logarithms, in the coordinates of the term.
    pub(crate) fn logs(&self, cloud: Side, potential: &[f64]) -> Result<Vec<f64>> {
        let mut f = self.similar_logs(cloud, potential)?;
        if let Some(offsets) = self.offsets(cloud, Part::Support) {
            f.iter_mut().zip(offsets).for_each(|(f, p)| *f -= p / self.options.epsilon);
        }
        Ok(f)
    }

    /// A potential in the coordinates of some term as logarithms.
    pub(crate) fn similar_logs(&self, cloud: Side, potential: &[f64]) -> Result<Vec<f64>> {
        let measure = self.measure(cloud);
        let rows = measure.weights().len();
        if potential.len() == rows {
            let epsilon = self.options.epsilon;
            return Ok(measure.gather(potential).iter().map(|f| f / epsilon).collect());
        }
        Err(Error::Shape {
            what: "the potential to start from",
            expected: Shape { rows, columns: 1 },
            got: Shape { rows: potential.len(), columns: 1 },
        })
    }

    /// Kernels count the points of a part of a cloud: an error of theirs in the user's count. `clouds` are those that the
    /// kernel calls the first and the second.
    pub(crate) fn in_user_rows(&self, mut error: Error, part: Part, clouds: [Side; 2]) -> Error {
        if let Error::Breakdown { cloud, row, .. } | Error::NotPositive { cloud, row, .. } =
            &mut error
        {
            *cloud = clouds[*cloud as usize];
            if let Some(indices) = self.measure(*cloud).indices(part == Part::Support) {
                *row = indices[*row - 1] + 1;
            }
        }
        error
    }
}
