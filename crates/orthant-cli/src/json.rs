//! Results for programs: one schema for all commands, which `docs/schema.json` describes.

use orthant::results::{Sampling, Times};
use orthant::{Interval, Solution};
use serde::Serialize;

use crate::settings::SettingsJson;

/// The name of the schema, with its version: a key that changes its meaning or goes away makes a new one.
const SCHEMA: &str = "orthant/1";

/// What every result says, and then its own.
#[derive(Debug, Serialize)]
pub(crate) struct Envelope<'a, T> {
    schema: &'static str,
    version: &'static str,
    command: &'static str,
    files: &'a [FileJson],
    settings: &'a SettingsJson,
    #[serde(flatten)]
    result: &'a T,
}

impl<'a, T> Envelope<'a, T> {
    pub(crate) fn new(
        command: &'static str,
        files: &'a [FileJson],
        settings: &'a SettingsJson,
        result: &'a T,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Envelope { schema: SCHEMA, version, command, files, settings, result }
    }
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FileJson {
    pub(crate) path: String,
    /// The coordinates, by name, or by position where the file has no names.
    pub(crate) columns: Vec<String>,
    /// The column of weights.
    pub(crate) weights: Option<String>,
    /// Rows of data in the file, with those that were dropped.
    pub(crate) rows: u64,
    /// Rows that were dropped because of missing values.
    pub(crate) dropped: usize,
    /// What there is to know about how it was read.
    pub(crate) notes: Vec<String>,
}

/// An interval, and what it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Ends {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) kind: &'static str,
}

impl Ends {
    pub(crate) fn of(interval: Interval) -> Self {
        Ends { low: interval.low, high: interval.high, kind: interval.kind.as_str() }
    }

    /// The distance of the farther end.
    pub(crate) fn farthest(self, from: f64) -> f64 {
        (self.high - from).max(from - self.low)
    }
}

/// How much of the clouds was sampled, and what that says of the value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct SamplingJson {
    pub(crate) size: usize,
    pub(crate) samples: usize,
    pub(crate) rows: usize,
    pub(crate) upper_size: usize,
    pub(crate) estimate: EstimateJson,
}

/// An estimate, and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct EstimateJson {
    pub(crate) value: f64,
    pub(crate) stderr: f64,
}

impl SamplingJson {
    pub(crate) fn of(sampling: Sampling) -> Self {
        let Sampling { size, samples, rows, upper_size, estimate, .. } = sampling;
        let estimate = EstimateJson { value: estimate.value, stderr: estimate.stderr };
        SamplingJson { size, samples, rows, upper_size, estimate }
    }
}

/// What was used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MethodJson {
    pub(crate) name: &'static str,
    /// Where the anchors of Gaussian features were.
    pub(crate) anchors: Option<&'static str>,
    pub(crate) rank: usize,
    /// Why, if the choice was automatic.
    pub(crate) reason: Option<String>,
}

impl MethodJson {
    pub(crate) fn of(solution: &Solution) -> Self {
        MethodJson {
            name: solution.method.as_str(),
            anchors: solution.anchors.map(orthant::options::Anchors::as_str),
            rank: solution.rank,
            reason: solution.reason.clone(),
        }
    }
}

/// Where the time went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Seconds {
    pub(crate) read: f64,
    pub(crate) features: f64,
    pub(crate) solve: f64,
    pub(crate) total: f64,
}

impl Seconds {
    /// Of a solve alone.
    pub(crate) fn of(times: Times) -> Self {
        let (features, solve) = (times.features.as_secs_f64(), times.solve.as_secs_f64());
        Seconds { read: 0.0, features, solve, total: features + solve }
    }
}

/// How points moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Moves {
    pub(crate) first: f64,
    pub(crate) steps: usize,
    pub(crate) gradients: usize,
    /// In the root mean square.
    pub(crate) moved: f64,
    pub(crate) stop: &'static str,
    /// Whether it ended as it should.
    pub(crate) done: bool,
}
