//! What can be wrong with the input.

use crate::words::{Shape, Side};

/// A result whose error is [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bad input, or a kernel that broke down.
///
/// Not converging is not an error: it is a [`Stop`](crate::Stop) inside the
/// [`Solution`](crate::Solution). Every message states the value, the place and the remedy. Rows,
/// columns and points are counted from 1, as people and spreadsheets do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A [`Cancel`](crate::control::Cancel) ended it.
    #[error("the computation was cancelled")]
    Cancelled,

    /// The time was up before there was anything to return.
    #[error(
        "the time limit of {} was over while {}, before there was a result; allow more time, or use fewer points, \
         a larger epsilon or less accuracy",
        seconds(*limit),
        phase.as_str()
    )]
    TimeLimit {
        /// The limit.
        limit: std::time::Duration,
        /// What was done.
        phase: crate::words::Phase,
    },

    /// A cloud without points.
    #[error("the cloud has no points; at least one is needed")]
    NoPoints,

    /// Points without coordinates.
    #[error("the points have no coordinates; the dimension must be at least 1")]
    NoCoordinates,

    /// A flat array whose length is not a multiple of the dimension.
    #[error("{len} numbers do not divide into points of {dim} coordinates")]
    Ragged {
        /// Length of the array.
        len: usize,
        /// Number of coordinates of a point.
        dim: usize,
    },

    /// A coordinate that is NaN or infinite.
    #[error(
        "point {point}, coordinate {coordinate} is {}; remove or impute such points",
        short(*value)
    )]
    Coordinate {
        /// The point, from 1.
        point: usize,
        /// The coordinate, from 1.
        coordinate: usize,
        /// The value found.
        value: f64,
    },

    /// A negative, infinite or NaN weight.
    #[error(
        "the weight of point {point} is {}; weights must be finite and not negative",
        short(*value)
    )]
    Weight {
        /// The point, from 1.
        point: usize,
        /// The value found.
        value: f64,
    },

    /// As many weights as points are needed.
    #[error("{weights} weights for {points} points; give one weight a point")]
    WeightCount {
        /// Number of weights.
        weights: usize,
        /// Number of points.
        points: usize,
    },

    /// All weights are zero.
    #[error("all weights are zero; at least one must be positive")]
    NoMass,

    /// The two clouds live in different spaces.
    #[error(
        "the clouds have {x} and {y} coordinates; both need the same number (choose the columns to compare)"
    )]
    Dimensions {
        /// Coordinates of the first cloud.
        x: usize,
        /// Coordinates of the second cloud.
        y: usize,
    },

    /// A feature map that was made for points of another dimension.
    #[error("the feature map takes points of {map} coordinates, the cloud has {points}")]
    MapDimension {
        /// Dimension that the map takes.
        map: usize,
        /// Dimension of the points.
        points: usize,
    },

    /// Two feature maps that land in different orthants.
    #[error("the two feature maps have ranks {x} and {y}; both need the same rank")]
    Ranks {
        /// Rank of the first map.
        x: usize,
        /// Rank of the second map.
        y: usize,
    },

    /// An option outside its range.
    #[error("{name} must be {expected}, got {}", short(*value))]
    Option {
        /// The option.
        name: &'static str,
        /// The values that it takes.
        expected: &'static str,
        /// The value found.
        value: f64,
    },

    /// A feature that is not positive and finite.
    #[error(
        "feature {column} of point {row} is {}; positive features must be positive and finite",
        short(*value)
    )]
    Feature {
        /// The point, from 1.
        row: usize,
        /// The feature, from 1.
        column: usize,
        /// The value found.
        value: f64,
    },

    /// A cost that is NaN or infinite.
    #[error(
        "the cost of the pair ({row}, {column}) is {}; costs must be finite",
        short(*value)
    )]
    Cost {
        /// Row of the cost matrix, from 1.
        row: usize,
        /// Column of the cost matrix, from 1.
        column: usize,
        /// The value found.
        value: f64,
    },

    /// A point without a direction, where the cost needs one.
    #[error("point {point} is zero, and {cost} is a function of directions; remove such points")]
    NoDirection {
        /// The point, from 1.
        point: usize,
        /// The cost.
        cost: &'static str,
    },

    /// An entry of the matrix of a Mahalanobis cost that is NaN or infinite.
    #[error(
        "the entry in row {row}, column {column} of the matrix of the Mahalanobis cost is {}; entries must be finite",
        short(*value)
    )]
    MatrixEntry {
        /// The row, from 1.
        row: usize,
        /// The column, from 1.
        column: usize,
        /// The value found.
        value: f64,
    },

    /// A matrix of a Mahalanobis cost that is not symmetric.
    #[error(
        "the matrix of the Mahalanobis cost is not symmetric: its entry in row {row}, column {column} is not that in row \
         {column}, column {row}; use (A + A') / 2"
    )]
    MatrixNotSymmetric {
        /// The row, from 1.
        row: usize,
        /// The column, from 1.
        column: usize,
    },

    /// A matrix of a Mahalanobis cost with a negative eigenvalue.
    #[error(
        "the matrix of the Mahalanobis cost has the negative eigenvalue {}, so that some costs would be negative; use a \
         positive semidefinite matrix, such as the inverse of a covariance",
        short(*eigenvalue)
    )]
    MatrixNotPositive {
        /// The smallest eigenvalue.
        eigenvalue: f64,
    },

    /// A matrix of the wrong shape.
    #[error("{what} must be {expected}, got {got}")]
    Shape {
        /// The matrix.
        what: &'static str,
        /// The shape needed.
        expected: Shape,
        /// The shape found.
        got: Shape,
    },

    /// Epsilon is too small for the extent of the data.
    #[error(
        "epsilon = {epsilon:e} is too small for clouds of radius {radius:.1e}: double precision cannot resolve \
         exponents of {ratio:.1e}; use epsilon of at least {least:.1e}"
    )]
    EpsilonTooSmall {
        /// The epsilon asked for.
        epsilon: f64,
        /// Largest distance from the common centre.
        radius: f64,
        /// `radius^2 / epsilon`.
        ratio: f64,
        /// The smallest epsilon that works.
        least: f64,
    },

    /// Lattices are for few axes.
    #[error(
        "a lattice has at most {most} axes, the points have {dim}: use sobol anchors or the online method"
    )]
    LatticeDimension {
        /// Coordinates of a point.
        dim: usize,
        /// The largest number of axes.
        most: usize,
    },

    /// A lattice would have too many nodes.
    #[error(
        "a lattice for these clouds would have more than {most:.0e} nodes: ask for less \
         accuracy, use a larger epsilon, sobol anchors or the online method"
    )]
    LatticeSize {
        /// The largest number of nodes.
        most: f64,
    },

    /// No lattice of so few nodes reaches all points.
    #[error(
        "no lattice of {rank} nodes reaches all points: use a larger rank or epsilon, or leave the rank to \
         the accuracy"
    )]
    LatticeRank {
        /// Nodes asked for.
        rank: usize,
    },

    /// Epsilon is too small for the costs.
    #[error(
        "epsilon = {epsilon:e} is too small for costs that differ by {spread:e}: double precision cannot \
         resolve their ratio; use epsilon of at least a billionth of the difference"
    )]
    CostsTooWide {
        /// The epsilon asked for.
        epsilon: f64,
        /// Largest minus smallest cost.
        spread: f64,
    },

    /// Coordinates or values beyond the range of double precision.
    #[error(
        "the clouds extend over {extent:e}: their squared distances overflow; divide the coordinates by a constant"
    )]
    TooWide {
        /// Largest absolute coordinate after centring.
        extent: f64,
    },

    /// A stored matrix that would not fit.
    #[error(
        "storing {what} needs {} of memory, more than the {} allowed; {remedy}",
        size(*bytes),
        size(*limit)
    )]
    Memory {
        /// The matrix.
        what: &'static str,
        /// What it needs.
        bytes: f64,
        /// What is allowed.
        limit: f64,
        /// What to do instead.
        remedy: &'static str,
    },

    /// A result beyond the range of double precision.
    #[error(
        "{what} overflows double precision; divide the costs (or the coordinates) and epsilon by a constant"
    )]
    Overflow {
        /// The result.
        what: &'static str,
    },

    /// Two clouds cannot be compared by a divergence with this kernel.
    #[error(
        "a divergence needs one kernel for its three terms, {given} gives only the cross term; {remedy}"
    )]
    NoSelfTerms {
        /// The kernel given.
        given: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },

    /// Marginals that are relaxed differently, in a divergence.
    #[error(
        "a divergence needs the same rho (reach) for both marginals, got {} and {}: with different ones it \
         would not vanish for equal clouds",
        short(*x),
        short(*y)
    )]
    UnequalRho {
        /// Of the first marginal.
        x: f64,
        /// Of the second.
        y: f64,
    },

    /// Masses whose product is beyond the range of double precision.
    #[error(
        "the weights sum to {} and {}: their product overflows; divide the weights by a constant",
        short(*x),
        short(*y)
    )]
    Masses {
        /// Of the first cloud.
        x: f64,
        /// Of the second.
        y: f64,
    },

    /// Signed features cancel in every product: double precision or nothing.
    #[error(
        "the Nystrom method needs double precision: its features have signs, and their sums cancel; use f64"
    )]
    SinglePrecision,

    /// Momentum for the dual of kept marginals.
    #[error(
        "the accelerated solver is for marginals that are kept, and rho (reach) relaxes them: use the solver \
         anderson or plain"
    )]
    AcceleratedUnbalanced,

    /// Something that is wrong with one of the clouds.
    #[error("{cloud} cloud: {source}")]
    InCloud {
        /// Which.
        cloud: Side,
        /// What.
        source: Box<Error>,
    },

    /// A limit that leaves no time for the first gradient.
    #[error(
        "there is no gradient to move points along: {reason} before the first one; raise the limit"
    )]
    NoGradient {
        /// What came in between.
        reason: &'static str,
    },

    /// As many weights as measures are needed.
    #[error(
        "{weights} weights for {measures} measures; give one weight a measure, at least one of each"
    )]
    ShareCount {
        /// Number of weights.
        weights: usize,
        /// Number of measures.
        measures: usize,
    },

    /// A setting that a task has no use for.
    #[error("{what} cannot be had for {task}; {remedy}")]
    NotFor {
        /// The setting.
        what: &'static str,
        /// The task.
        task: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },

    /// A kernel of a cloud with itself that is not symmetric.
    #[error(
        "the cost of the pair ({row}, {column}) is not that of ({column}, {row}); a cloud with itself needs a \
         symmetric cost matrix"
    )]
    NotSymmetric {
        /// Row of the cost matrix, from 1.
        row: usize,
        /// Column of the cost matrix, from 1.
        column: usize,
    },

    /// Something that is wrong with one of many clouds, or with two of them.
    #[error("{}: {source}", numbered(*clouds))]
    InClouds {
        /// Which, from 0; twice the same if it is one.
        clouds: [usize; 2],
        /// What.
        source: Box<Error>,
    },

    /// Nothing to compare.
    #[error("{count} clouds cannot be compared; give at least two")]
    FewClouds {
        /// How many there are.
        count: usize,
    },

    /// A cost or features that are those of two clouds alone.
    #[error("many clouds cannot be compared with {given}, which is that of two of them; {remedy}")]
    TwoClouds {
        /// The kernel given.
        given: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },

    /// A finished pair that does not belong to the clouds.
    #[error(
        "the finished pair ({first}, {second}) is none of {count} clouds, counted from 0, or is there twice; pairs \
         have their smaller number first and a finite value"
    )]
    FinishedPair {
        /// Its first cloud, from 0.
        first: usize,
        /// Its second cloud, from 0.
        second: usize,
        /// How many clouds there are.
        count: usize,
    },

    /// A matrix of divergences that is none.
    #[error(
        "the matrix of divergences must be finite and symmetric: its entries ({row}, {column}) and ({column}, {row}) \
         are {} and {}",
        short(*value),
        short(*other)
    )]
    Asymmetric {
        /// Row, from 1.
        row: usize,
        /// Column, from 1.
        column: usize,
        /// The entry.
        value: f64,
        /// The one on the other side of the diagonal.
        other: f64,
    },

    /// A row or a column that a plan does not have.
    #[error("the plan has {len} {what}s, counted from 0: there is no {what} {index}")]
    Index {
        /// `row` or `column`.
        what: &'static str,
        /// The index asked for, from 0.
        index: usize,
        /// How many there are.
        len: usize,
    },

    /// A value at a point that is NaN or infinite.
    #[error(
        "value {column} of point {row} is {}; values must be finite",
        short(*value)
    )]
    Value {
        /// The point, from 1.
        row: usize,
        /// The column of values, from 1.
        column: usize,
        /// The value found.
        value: f64,
    },

    /// A plan whose kernel is given for the points of the clouds alone.
    #[error(
        "{given} says nothing of other points than those of the clouds; use a cost or a feature map that is a \
         function of the points"
    )]
    NoNewPoints {
        /// What the kernel is given by.
        given: &'static str,
    },

    /// A point that is too far from the clouds for its kernel to be resolved.
    #[error(
        "point {point} is too far from the clouds: double precision cannot resolve exponents of {ratio:.1e}; \
         leave it out, or use a larger epsilon"
    )]
    FarPoint {
        /// The point, from 1.
        point: usize,
        /// The square of its distance from the centre over epsilon.
        ratio: f64,
    },

    /// A point whose kernel with all points of the other cloud is zero.
    #[error(
        "the kernel of point {point} and every point of the {other} cloud is zero, so that it has no partners; \
         use features that are positive there, or an exact method"
    )]
    NoPartners {
        /// The point, from 1.
        point: usize,
        /// The cloud that it would be mapped to.
        other: Side,
    },

    /// Signed features have no samples.
    #[error(
        "a plan of the Nystrom approximation has entries of either sign, which are no probabilities; use positive features or an exact method"
    )]
    SignedPlan,

    /// A derivative that does not exist, or that nobody offers.
    #[error("there is no derivative by {by}: {reason}; {remedy}")]
    NoDerivative {
        /// What should be differentiated by.
        by: &'static str,
        /// Why there is none.
        reason: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },

    /// A product with the kernel was not positive.
    #[error(
        "iteration {iteration}: the kernel product of point {row} of the {cloud} cloud is {}, not a positive \
         number; {remedy}",
        short(*value)
    )]
    Breakdown {
        /// Iteration, from 1 (0: before the first).
        iteration: usize,
        /// The cloud.
        cloud: Side,
        /// The point, from 1.
        row: usize,
        /// The product.
        value: f64,
        /// What to do.
        remedy: &'static str,
    },

    /// A product with a Nystrom approximation was not positive, which ends Sinkhorn's algorithm: the
    /// failure that the paper reports for this method at small epsilon.
    #[error(
        "iteration {iteration}: the Nystrom approximation of the kernel is not positive: its product at \
         point {row} of the {cloud} cloud is {value:.1e}; use a larger epsilon, more landmarks (a larger \
         rank) or positive features"
    )]
    NotPositive {
        /// Iteration, from 1 (0: before the first).
        iteration: usize,
        /// The cloud.
        cloud: Side,
        /// The point, from 1.
        row: usize,
        /// The product `(K v)_i` or `(K^T u)_j`.
        value: f64,
    },
}

impl Error {
    /// Numbers the points of an error otherwise: for callers whose points are rows of something larger.
    ///
    /// ```
    /// use orthant::{Measure, Points};
    /// // Rows 1 and 4 of a table.
    /// let points = Points::new(vec![0.5, 2.5], 1)?;
    /// let error = Measure::weighted(points, &[1.0, -1.0]).unwrap_err();
    /// let error = error.renumbered(|point| [1, 4][point - 1]);
    /// assert!(error.to_string().starts_with("the weight of point 4 is -1"));
    /// # Ok::<(), orthant::Error>(())
    /// ```
    #[must_use]
    pub fn renumbered(mut self, number: impl Fn(usize) -> usize) -> Self {
        match &mut self {
            Error::Coordinate { point, .. }
            | Error::Weight { point, .. }
            | Error::FarPoint { point, .. }
            | Error::NoPartners { point, .. }
            | Error::NoDirection { point, .. }
            | Error::Feature { row: point, .. }
            | Error::Value { row: point, .. }
            | Error::Breakdown { row: point, .. }
            | Error::NotPositive { row: point, .. } => *point = number(*point),
            _ => {}
        }
        self
    }
}

/// One cloud or two, from 1.
fn numbered([first, second]: [usize; 2]) -> String {
    if first == second {
        format!("cloud {}", first + 1)
    } else {
        format!("clouds {} and {}", first + 1, second + 1)
    }
}

/// A time as people write it.
fn seconds(time: std::time::Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// A number without hundreds of zeros.
fn short(x: f64) -> String {
    if x == 0.0 || !x.is_finite() || (1e-5..1e15).contains(&x.abs()) {
        format!("{x}")
    } else {
        format!("{x:e}")
    }
}

/// A number of bytes with its unit.
fn size(bytes: f64) -> String {
    let mut amount = bytes;
    for unit in ["bytes", "KiB", "MiB"] {
        if amount < 1000.0 {
            return format!("{amount:.3} {unit}").replace(".000 ", " ");
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} GiB")
}

/// Says which clouds an error is about.
pub(crate) fn in_clouds<R>(clouds: [usize; 2], result: Result<R>) -> Result<R> {
    result.map_err(|error| match error {
        // Has nothing to do with them.
        Error::TimeLimit { .. } | Error::Cancelled => error,
        Error::InCloud { cloud, source } => {
            let number = clouds[usize::from(cloud == Side::Y)];
            Error::InClouds { clouds: [number; 2], source }
        }
        source => Error::InClouds { clouds, source: Box::new(source) },
    })
}
