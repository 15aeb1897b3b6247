//! The comparison for programs.

use orthant::compare::{Merge, Pair};
use serde::Serialize;

use super::{Answer, Arrangement, pairs_of};
use crate::input::Cloud;

/// The JSON object.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    names: &'a [String],
    points: Vec<usize>,
    dim: usize,
    sharing: &'static str,
    pairs: usize,
    finished: usize,
    converged: bool,
    /// Whether the accuracy was reached for all pairs; nothing if none was promised.
    accurate: Option<bool>,
    /// The matrix, row by row.
    values: Vec<Vec<Option<f64>>>,
    intervals: Vec<Line<'a>>,
    order: Option<Vec<usize>>,
    tree: Option<Vec<Step>>,
    embedding: Option<Vec<Place<'a>>>,
    embedding_share: Option<f64>,
    seconds: Seconds,
}

/// A pair in a report.
#[derive(Debug, Serialize)]
struct Line<'a> {
    first: &'a str,
    second: &'a str,
    divergence: f64,
    low: Option<f64>,
    high: Option<f64>,
    kind: Option<&'static str>,
    converged: bool,
    method: &'static str,
    iterations: usize,
}

#[derive(Debug, Serialize)]
struct Step {
    left: usize,
    right: usize,
    height: f64,
    size: usize,
}

#[derive(Debug, Serialize)]
struct Place<'a> {
    name: &'a str,
    x: f64,
    y: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Seconds {
    pub(super) read: f64,
    pub(super) total: f64,
}

impl<'a> Answer<'a> {
    pub(super) fn report(&self, arrangement: Option<&Arrangement>, seconds: Seconds) -> Report<'a> {
        let Answer { inputs, names, comparison, accurate, .. } = *self;
        let row = |i| (0..comparison.count).map(|j| comparison.value(i, j)).collect();
        let line = |p: &Pair| Line {
            first: &names[p.first],
            second: &names[p.second],
            divergence: p.value,
            low: p.interval.map(|i| i.low),
            high: p.interval.map(|i| i.high),
            kind: p.interval.map(|i| i.kind.as_str()),
            converged: p.converged,
            method: p.method.as_str(),
            iterations: p.iterations,
        };
        let step =
            |m: &Merge| Step { left: m.left, right: m.right, height: m.height, size: m.size };
        let place = |(name, [x, y]): (&'a String, &[f64; 2])| Place { name, x: *x, y: *y };
        Report {
            names,
            points: inputs.clouds.iter().map(Cloud::len).collect(),
            dim: inputs.clouds[0].points().map_or(0, |points| points.dim()),
            sharing: comparison.sharing.as_str(),
            pairs: pairs_of(comparison),
            finished: comparison.pairs.len(),
            converged: comparison.converged(),
            accurate,
            values: (0..comparison.count).map(row).collect(),
            intervals: comparison.pairs.iter().map(line).collect(),
            order: arrangement.map(|a| a.order.clone()),
            tree: arrangement.map(|a| a.tree.iter().map(step).collect()),
            embedding: arrangement.map(|a| names.iter().zip(&a.points).map(place).collect()),
            embedding_share: arrangement.map(|a| a.share),
            seconds,
        }
    }
}
