//! Finished pairs in a file of JSON Lines, to go on from.
//!
//! The first line says what they are pairs of: the settings, and a fingerprint of every cloud. Each other line is a
//! pair. A line counts when it has its end; what a run that was stopped has left of one is cut off.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use orthant::{Certainty, Interval, Measure, Pair, Used, Values};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::args::Solve;
use crate::failure::Failure;
use crate::solve::Epsilon;

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
    pub(super) fn new(solve: &Solve, epsilon: &Epsilon, measures: &[Measure<'_>]) -> Self {
        // Not what a result does not depend on: threads, the time limit, and the memory, with which only the choice
        // of what is accurate enough can change.
        let settings = json!({
            "epsilon": epsilon.value,
            "method": format!("{:?}", solve.method).to_lowercase(),
            "anchors": solve.anchors.map(|a| format!("{a:?}").to_lowercase()),
            "rank": solve.rank,
            "accuracy": solve.accuracy,
            "certify": solve.certify,
            "polish": solve.polish,
            "max-rank": solve.max_rank,
            "seed": solve.seed,
            "precision": format!("{:?}", solve.precision).to_lowercase(),
            "solver": format!("{:?}", solve.solver).to_lowercase(),
            "tol": solve.tol,
            "max-iter": solve.max_iter,
            "reach": solve.unbalanced.reach,
            "uncentred": solve.uncentred,
            "landmarks": solve.landmarks.map(|l| format!("{l:?}").to_lowercase()),
            "no-gauge": solve.no_gauge,
            "order": solve.order,
            "kappa": solve.kappa,
            "sigma": solve.sigma,
        });
        let settings = match settings {
            Value::Object(settings) => settings,
            _ => Map::new(),
        };
        let clouds = measures.iter().map(Fingerprint::new).collect();
        Header { orthant: env!("CARGO_PKG_VERSION").to_owned(), settings, clouds }
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
        let mut hash = Hash::new();
        hash.add(points.dim() as u64);
        match points.values() {
            Values::F32(values) => values.iter().for_each(|x| hash.add(f64::from(*x).to_bits())),
            Values::F64(values) => values.iter().for_each(|x| hash.add(x.to_bits())),
        }
        measure.weights().iter().for_each(|w| hash.add(w.to_bits()));
        hash.add(measure.mass().to_bits());
        Fingerprint { points: points.len(), hash: format!("{:016x}", hash.0) }
    }
}

/// FNV-1a, on words: the same on all machines and for all time.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
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
            method: Used::from_name(&self.method)?,
            iterations: self.iterations,
        })
    }
}

/// The file of finished pairs.
pub(super) struct Keep {
    path: PathBuf,
    file: File,
    pairs: Vec<Pair>,
}

impl Keep {
    /// Opens a file, or makes it, and reads what is there.
    pub(super) fn open(path: &Path, header: &Header, names: &[String]) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let io = |error: std::io::Error| Failure::from(error).of_file(&name);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let first = serde_json::to_string(header).map_err(|e| Failure::Other(e.into()))? + "\n";
        let mut keep = Keep { path: path.to_owned(), file, pairs: Vec::new() };
        if first.as_bytes().starts_with(&bytes) {
            // New, or stopped in the first line.
            keep.file.set_len(0).map_err(io)?;
            keep.file.seek(SeekFrom::Start(0)).map_err(io)?;
            keep.write(&first)?;
            return Ok(keep);
        }
        // What comes after the last end of a line is not finished.
        let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let mut lines = bytes[..end].split(|b| *b == b'\n');
        let earlier = lines.next().and_then(|line| serde_json::from_slice::<Header>(line).ok());
        let Some(earlier) = earlier else {
            return Err(Failure::input(format!(
                "{name}: is no file of --keep; give --keep another file name"
            )));
        };
        if let Some(difference) = earlier.difference(header, names) {
            return Err(Failure::input(format!(
                "{name}: {difference}; use the same files and options, or another --keep file"
            )));
        }
        for (number, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            let pair = serde_json::from_slice::<Line>(line).ok().and_then(Line::pair);
            let Some(pair) = pair else {
                return Err(Failure::input(format!(
                    "{name}: line {} is no pair; delete the line or the file",
                    number + 2
                )));
            };
            keep.pairs.push(pair);
        }
        let length = end as u64;
        keep.file.set_len(length).map_err(io)?;
        keep.file.seek(SeekFrom::Start(length)).map_err(io)?;
        Ok(keep)
    }

    /// The pairs that were there.
    pub(super) fn take_pairs(&mut self) -> Vec<Pair> {
        std::mem::take(&mut self.pairs)
    }

    /// Adds a pair, and does not come back before it is with the system.
    pub(super) fn add(&mut self, pair: &Pair) -> Result<(), Failure> {
        let line = serde_json::to_string(&Line::of(pair)).map_err(|e| Failure::Other(e.into()))?;
        self.write(&(line + "\n"))
    }

    fn write(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(|error| Failure::from(error).of_file(&self.path.display().to_string()))
    }
}
