//! Words that every layer uses: which cloud, which term, which phase of a solve.

use std::fmt;

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::X => Side::Y,
            Side::Y => Side::X,
        }
    }
}

/// One of the two clouds of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    X,
    /// The second.
    Y,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::X => "first",
            Side::Y => "second",
        })
    }
}

/// Rows by columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.rows, self.columns)
    }
}

/// Which of the problems of a divergence is being solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// Between the two clouds.
    Cross,
    /// The first cloud with itself.
    SelfX,
    /// The second cloud with itself.
    SelfY,
}

/// The two clouds of a term.
pub(crate) fn clouds(term: Term) -> [Side; 2] {
    match term {
        Term::Cross => [Side::X, Side::Y],
        Term::SelfX => [Side::X, Side::X],
        Term::SelfY => [Side::Y, Side::Y],
    }
}

/// Which points of a cloud: those of positive weight, or those of weight zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Support,
    Outside,
}

/// What a solve is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Looking at the clouds, choosing a method and its anchors.
    Choosing,
    /// Storing features or kernels, before the first iteration.
    Features,
    /// Iterations.
    Iterations,
    /// Bounding the distance from the exact kernel.
    Certificate,
    /// More iterations, a finer lattice, more anchors or the exact kernel, after a first solution.
    Improving,
}

impl Phase {
    pub(crate) const ALL: [Phase; 5] =
        [Phase::Choosing, Phase::Features, Phase::Iterations, Phase::Certificate, Phase::Improving];

    /// Words for people: `choosing a method`, `storing features`, `iterating`, `bounding the error`, `improving`.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Choosing => "choosing a method",
            Phase::Features => "storing features",
            Phase::Iterations => "iterating",
            Phase::Certificate => "bounding the error",
            Phase::Improving => "improving",
        }
    }
}
