//! What tests of the command share.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with two clouds, and the command to run in it.
pub(crate) struct Sandbox {
    pub(crate) folder: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox { folder: tempfile::tempdir().unwrap() };
        sandbox.write("x.csv", &cloud(60, 0.0, 1.0));
        sandbox.write("y.csv", &cloud(45, 0.5, 0.6));
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn orthant(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orthant"));
        command.args(arguments.split_whitespace()).current_dir(self.folder.path());
        command
    }

    /// The JSON of a command that must succeed.
    pub(crate) fn json(&self, arguments: &str) -> Value {
        let output = self.orthant(&format!("{arguments} --json"));
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The message of a command that must fail with this code: one line, and nothing printed.
    pub(crate) fn fails(&self, arguments: &str, code: i32) -> String {
        let output = self.orthant(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{arguments}");
        let message = text(&output.stderr);
        assert_eq!(message.lines().count(), 1, "{message}");
        message.trim_end().to_owned()
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Points of a low-discrepancy sequence, as CSV with a header.
pub(crate) fn cloud(n: usize, shift: f64, scale: f64) -> String {
    let mut out = String::from("a,b,w\n");
    for i in 1..=n {
        let x = shift + scale * (i as f64 * 0.754_877_666).fract();
        let y = shift + scale * (i as f64 * 0.569_840_29).fract();
        writeln!(out, "{x},{y},{}", 1 + i % 3).unwrap();
    }
    out
}

pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Rows of a CSV file of numbers, and its header.
pub(crate) fn table_of(path: &Path) -> (String, Vec<Vec<f64>>) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap().to_owned();
    (header, lines.map(|l| l.split(',').map(|x| x.parse().unwrap()).collect()).collect())
}

/// What every result has first.
pub(crate) const ENVELOPE: [&str; 5] = ["schema", "version", "command", "files", "settings"];

/// What a transport problem has.
pub(crate) const TERM: [&str; 21] = [
    "value",
    "value_kl",
    "interval",
    "interval_kl",
    "corrected",
    "sampling",
    "error_bound",
    "transport_cost",
    "plan_concentration",
    "mass",
    "converged",
    "stop",
    "iterations",
    "stages",
    "polished",
    "marginal_error_x",
    "marginal_error_y",
    "marginal_gap_x",
    "marginal_gap_y",
    "method",
    "seconds",
];

/// The keys of a command about two clouds.
pub(crate) fn problem_keys() -> Vec<&'static str> {
    [&ENVELOPE[..], &["n", "m", "dim", "accurate"], &TERM].concat()
}
