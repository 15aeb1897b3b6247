//! Runs as JSON Lines: a line is written when a run has ended, and what has a line is not run again.
//!
//! The file begins with a line of settings, and has another one wherever they changed; the last one counts.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use orthant_support::Failure;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::About;

/// A line that says what the following ones are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) experiment: String,
    pub(crate) about: About,
    pub(crate) settings: Value,
    pub(crate) machine: Machine,
}

/// Where the runs were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Of the crates.
    pub(crate) version: String,
    pub(crate) threads: usize,
    pub(crate) system: String,
}

impl Machine {
    /// This one.
    pub(crate) fn here() -> Self {
        Machine {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            threads: rayon::current_num_threads(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Run { case: Value, outcome: Value },
    Header(Header),
}

/// The file and what it holds.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    header: Option<Header>,
    done: HashMap<String, Value>,
    /// Bytes that are whole lines.
    whole: usize,
}

impl Journal {
    /// Reads a journal, or starts one if there is none. A last line that was cut off, by a stop in the middle of a
    /// write, does not count.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Failure::input(format!("{}: {error}", path.display()))),
        };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut journal =
            Journal { path: path.to_owned(), header: None, done: HashMap::new(), whole };
        for (k, line) in text[..whole].split(|byte| *byte == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let line = serde_json::from_slice(line).map_err(|_| {
                Failure::input(format!(
                    "{}: line {} is neither a run nor settings; delete it, and what it was is run again",
                    path.display(),
                    k + 1
                ))
            })?;
            match line {
                Line::Header(header) => journal.header = Some(header),
                Line::Run { case, outcome } => {
                    journal.done.insert(case.to_string(), outcome);
                }
            }
        }
        Ok(journal)
    }

    /// The settings.
    pub(crate) fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// What came of a case, if it was run.
    pub(crate) fn outcome(&self, case: &Value) -> Option<&Value> {
        self.done.get(&case.to_string())
    }

    /// Settings for what comes now, unless they are those of the last line.
    pub(crate) fn begin(&mut self, header: Header) -> Result<(), Failure> {
        if self.header.as_ref() == Some(&header) {
            return Ok(());
        }
        self.append(&Line::Header(header.clone()))?;
        self.header = Some(header);
        Ok(())
    }

    /// Keeps what came of a case.
    pub(crate) fn keep(&mut self, case: Value, outcome: Value) -> Result<(), Failure> {
        let key = case.to_string();
        self.append(&Line::Run { case, outcome: outcome.clone() })?;
        self.done.insert(key, outcome);
        Ok(())
    }

    fn append(&mut self, line: &Line) -> Result<(), Failure> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let write = || -> std::io::Result<()> {
            let mut file: File =
                OpenOptions::new().create(true).append(true).truncate(false).open(&self.path)?;
            // Half a line goes before the first whole one comes.
            file.set_len(self.whole as u64)?;
            file.write_all(text.as_bytes())
        };
        write()
            .map_err(|error| Failure::Other(anyhow::anyhow!("{}: {error}", self.path.display())))?;
        self.whole += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn header(n: usize) -> Header {
        let about = About { title: "t".into(), figure: "f".into(), paper: "p".into() };
        let settings = json!({ "n": n });
        Header { experiment: "e".into(), about, settings, machine: Machine::here() }
    }

    #[test]
    fn lines_come_back_and_half_a_line_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        assert!(journal.header().is_none());
        journal.begin(header(1)).unwrap();
        let case = |k: usize| json!({ "eps": 0.1 + 0.2, "k": k });
        for k in 0..3 {
            journal.keep(case(k), json!({ "value": k })).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        // Wherever the last write was cut off, the others are there, and the next line is a line.
        let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        for cut in last..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path).unwrap();
            assert_eq!(journal.outcome(&case(1)), Some(&json!({ "value": 1 })));
            assert_eq!(journal.outcome(&case(2)), None);
            journal.begin(header(1)).unwrap();
            journal.keep(case(2), json!({ "value": 2 })).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
        // Other settings are one line more, and the last ones count.
        let mut journal = Journal::open(&path).unwrap();
        journal.begin(header(2)).unwrap();
        let journal = Journal::open(&path).unwrap();
        assert_eq!(journal.header(), Some(&header(2)));
        assert_eq!(journal.outcome(&case(0)), Some(&json!({ "value": 0 })));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e.jsonl");
        std::fs::write(&path, "{\"case\":1,\"outcome\":2}\nnonsense\n").unwrap();
        let error = Journal::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("delete it"), "{error}");
    }
}
