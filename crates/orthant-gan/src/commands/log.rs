//! The log of a run: a line of JSON a step.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use orthant_gan::Report;
use orthant_support::Failure;
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Since the command began.
    seconds: f64,
}

/// The part of a line that matters to a run that goes on.
#[derive(Deserialize)]
struct Number {
    step: u64,
}

/// An open log.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens a log after a step: what was written about later ones, which are done anew, and half a line are cut off.
    pub(crate) fn open(path: &Path, step: u64) -> Result<Self, Failure> {
        let open = || -> std::io::Result<File> {
            let text = match std::fs::read(path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(error),
            };
            let mut kept = 0;
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                let number = serde_json::from_slice::<Number>(line).ok();
                if !line.ends_with(b"\n") || number.is_none_or(|number| number.step > step) {
                    break;
                }
                kept += line.len() as u64;
            }
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            file.set_len(kept)?;
            Ok(file)
        };
        let file = open().map_err(|error| Failure::at(path, error))?;
        Ok(Log { path: path.to_owned(), file })
    }

    /// Adds a step.
    pub(crate) fn append(&mut self, report: &Report, elapsed: Duration) -> Result<(), Failure> {
        let mut line = serde_json::to_string(&Line { report, seconds: elapsed.as_secs_f64() })?;
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .map_err(|error| Failure::from(error).of_file(&self.path.display().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use orthant_gan::KernelStats;

    use super::*;

    #[test]
    fn later_steps_and_half_lines_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let kernel = KernelStats { real_real: 0.5, real_fake: 0.25, fake_fake: 0.125 };
        let report = |step| Report {
            step,
            divergence: 0.5,
            critic_divergence: 0.75,
            kernel,
            images: 10,
            iterations: 7,
        };
        let mut log = Log::open(&path, 0).unwrap();
        for step in 1..=5 {
            log.append(&report(step), Duration::from_secs(step)).unwrap();
        }
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let first: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!((first["step"].as_u64(), first["seconds"].as_f64()), (Some(1), Some(1.0)));
        assert_eq!(first["kernel"]["real_fake"].as_f64(), Some(0.25));
        // Stopped in the middle of the fifth line, with a checkpoint of step 3.
        std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();
        let mut log = Log::open(&path, 3).unwrap();
        log.append(&report(4), Duration::from_secs(4)).unwrap();
        let again = std::fs::read_to_string(&path).unwrap();
        assert!(again.lines().eq(lines[..4].iter().copied()));
    }
}
