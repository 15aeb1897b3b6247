//! Finished pairs in a journal, to go on from.
//!
//! The first line says what they are pairs of: the settings, and a fingerprint of every cloud. Each other line is a
//! pair. All lines have checksums.

use std::path::Path;

use orthant::{Certainty, Interval, Measure, compare::Pair, measure::Values, results::MethodUsed};
use orthant_io::{Checksum, Journal};
use orthant_support::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::settings::{Epsilon, Settings};

/// What the pairs of a file belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The version that made it.
    orthant: String,
    /// What results depend on.
    settings: Map<String, Value>,
    clouds: Vec<Fingerprint>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Fingerprint {
    points: usize,
    hash: String,
}

impl Header {
    pub(super) fn new(
        settings: &Settings<'_>,
        epsilon: &Epsilon,
        measures: &[Measure<'_>],
    ) -> Result<Self, Failure> {
        let clouds = measures.iter().map(Fingerprint::new).collect();
        let settings = serde_json::to_value(settings.kept(epsilon))?;
        let settings = serde_json::from_value(settings)?;
        Ok(Header { orthant: env!("CARGO_PKG_VERSION").to_owned(), settings, clouds })
    }

    /// Why pairs of this header are not those of another, which is what is wanted now.
    fn difference(&self, now: &Header, names: &[String]) -> Option<String> {
        if self.orthant != now.orthant {
            return Some(format!("was made by version {}, this is {}", self.orthant, now.orthant));
        }
        let keys = now.settings.keys().chain(self.settings.keys());
        for key in keys {
            let [then, now] = [&self.settings, &now.settings].map(|s| s.get(key));
            let (then, now) = (then.unwrap_or(&Value::Null), now.unwrap_or(&Value::Null));
            if then != now {
                return Some(format!("was made with {key} {then}, this run has {now}"));
            }
        }
        if self.clouds.len() != now.clouds.len() {
            return Some(format!(
                "was made with {} clouds, this run has {}",
                self.clouds.len(),
                now.clouds.len()
            ));
        }
        let other = self.clouds.iter().zip(&now.clouds).position(|(then, now)| then != now)?;
        Some(format!("was made with other points or weights of {:?}", names[other]))
    }
}

impl Fingerprint {
    fn new(measure: &Measure<'_>) -> Self {
        let points = measure.points();
        let mut hash = Checksum::default();
        let mut add = |word: u64| hash.add(&word.to_le_bytes());
        add(points.dim() as u64);
        match points.values() {
            Values::F32(values) => values.iter().for_each(|x| add(f64::from(*x).to_bits())),
            Values::F64(values) => values.iter().for_each(|x| add(x.to_bits())),
        }
        measure.weights().iter().for_each(|w| add(w.to_bits()));
        add(measure.mass().to_bits());
        Fingerprint { points: points.len(), hash: hash.to_string() }
    }
}

/// A pair as a line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    first: usize,
    second: usize,
    divergence: f64,
    interval: Option<Ends>,
    converged: bool,
    accurate: bool,
    method: String,
    iterations: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Ends {
    low: f64,
    high: f64,
    kind: String,
}

impl Line {
    fn of(pair: &Pair) -> Self {
        Line {
            first: pair.first,
            second: pair.second,
            divergence: pair.value,
            interval: pair.interval.map(|i| Ends {
                low: i.low,
                high: i.high,
                kind: i.kind.as_str().to_owned(),
            }),
            converged: pair.converged,
            accurate: pair.accurate,
            method: pair.method.as_str().to_owned(),
            iterations: pair.iterations,
        }
    }

    fn pair(self) -> Option<Pair> {
        let interval = match self.interval {
            None => None,
            Some(i) => Some(Interval::new(i.low, i.high, Certainty::from_name(&i.kind)?)),
        };
        Some(Pair {
            first: self.first,
            second: self.second,
            value: self.divergence,
            interval,
            converged: self.converged,
            accurate: self.accurate,
            method: MethodUsed::from_name(&self.method)?,
            iterations: self.iterations,
        })
    }
}

/// The file of finished pairs.
pub(super) struct Keep {
    journal: Journal,
    pairs: Vec<Pair>,
}

impl Keep {
    /// Opens a file, or makes it, and reads what is there.
    pub(super) fn open(path: &Path, header: &Header, names: &[String]) -> Result<Self, Failure> {
        let name = path.display();
        let first = serde_json::to_string(header)?;
        let (journal, lines) = Journal::open(path)?;
        let mut keep = Keep { journal, pairs: Vec::new() };
        let Some((earlier, lines)) = lines.split_first() else {
            keep.journal.add(&first).map_err(Failure::other)?;
            return Ok(keep);
        };
        let Ok(earlier) = serde_json::from_str::<Header>(earlier) else {
            return Err(Failure::input(format!(
                "{name}: is no file of --keep; give --keep another file name"
            )));
        };
        if let Some(difference) = earlier.difference(header, names) {
            return Err(Failure::input(format!(
                "{name}: {difference}; use the same files and options, or another --keep file"
            )));
        }
        for (number, line) in lines.iter().enumerate() {
            let pair = serde_json::from_str::<Line>(line).ok().and_then(Line::pair);
            let Some(pair) = pair else {
                return Err(Failure::input(format!(
                    "{name}: line {} is no pair; delete the line or the file",
                    number + 2
                )));
            };
            keep.pairs.push(pair);
        }
        Ok(keep)
    }

    /// The pairs that were there.
    pub(super) fn take_pairs(&mut self) -> Vec<Pair> {
        std::mem::take(&mut self.pairs)
    }

    /// Adds a pair, and does not come back before it is with the system.
    pub(super) fn add(&mut self, pair: &Pair) -> Result<(), Failure> {
        let line = serde_json::to_string(&Line::of(pair))?;
        self.journal.add(&line).map_err(Failure::other)
    }
}
