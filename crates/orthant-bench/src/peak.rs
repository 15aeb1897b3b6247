//! Peak memory of whole solves, each in a process of its own.

use std::process::Command;

use orthant::{Method, Options, Precision, rot};
use orthant_support::clouds::figure_1;
use orthant_support::{Failure, memory, stdout};
use serde_json::json;

use crate::measure::{EPSILON, line};

/// Set in the process that measures the memory of a solve: which one.
pub(crate) const CHILD: &str = "ORTHANT_BENCH_MEMORY_CHILD";

/// The methods whose memory is measured.
const MEMORY_CASES: [&str; 4] = ["gaussian", "lattice", "dense", "online"];

/// Peak memory of whole solves, each in a process of its own.
pub(crate) fn run(quick: bool) -> Result<(), Failure> {
    let exe = std::env::current_exe()?;
    for case in MEMORY_CASES {
        let mut command = Command::new(&exe);
        command.args(["--suite", "memory"]).env(CHILD, case);
        if quick {
            command.arg("--quick");
        }
        let output = command.output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::Other(anyhow::anyhow!("measuring memory: {text}")));
        }
        stdout::write(|out| out.write_all(&output.stdout))?;
    }
    Ok(())
}

/// One solve, and the memory that it took beyond what was there before.
pub(crate) fn child(case: &str, quick: bool) -> Result<(), Failure> {
    let rank = if quick { 200 } else { 600 };
    let (method, precision, n) = match case {
        "dense" => (Method::dense(), Precision::F64, if quick { 2_000 } else { 8_000 }),
        "online" => (Method::online(), Precision::F64, if quick { 4_000 } else { 20_000 }),
        "lattice" => (Method::lattice(), Precision::F64, if quick { 100_000 } else { 1_000_000 }),
        _ => (Method::paper(), Precision::F32, if quick { 10_000 } else { 100_000 }),
    };
    let clouds = figure_1(n, 0);
    let [mu, nu] = clouds.measures(n)?;
    // What is told is what is stored: features, the kernel, or nothing but a few rows.
    let (stored, per_point) = match case {
        "dense" => (Some((n * n * 8) as f64), None),
        "online" | "lattice" => (None, Some(2 * n)),
        _ => (Some((2 * n * rank * 4) as f64), None),
    };
    let before = memory::peak();
    let epsilon = if case == "lattice" { 0.05 } else { EPSILON };
    let mut builder = Options::builder(epsilon)
        .method(method)
        .accuracy(1e-4)
        .precision(precision)
        .max_iterations(if case == "online" { 2 } else { 1000 });
    if case == "gaussian" {
        builder = builder.rank(rank);
    }
    let options = builder.build()?;
    let solution = rot(&mu, &nu, &options)?;
    let (Some(before), Some(peak)) = (before, memory::peak()) else {
        return Err(Failure::Other(anyhow::anyhow!("this system does not tell the peak memory")));
    };
    let mut entry = json!({
        "bench": "memory", "method": case, "n": n, "m": n, "rank": solution.rank,
        "peak_bytes": peak, "marginal_error": solution.marginal_error_x,
    });
    if let Some(stored) = stored {
        entry["stored_bytes"] = json!(stored);
        entry["ratio_to_stored"] = json!(peak as f64 / stored);
    }
    if let Some(points) = per_point {
        entry["bytes_per_point"] = json!((peak - before) as f64 / points as f64);
    }
    line(&entry)
}
