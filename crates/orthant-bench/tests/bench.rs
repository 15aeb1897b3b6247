//! The benchmarks, as a person runs them.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orthant-bench"));
    command.args(arguments.split_whitespace()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_benchmark_prints_json_lines_with_ratios() {
    let output = bench("--quick");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |name: &str| lines.iter().filter(|l| l["bench"] == name).collect::<Vec<_>>();
    for name in ["read", "sweep", "four_products", "features"] {
        assert_eq!(of(name).len(), 4, "{name}");
        for line in of(name) {
            for key in ["ratio_to_read", "speedup_over_gemv", "ns_per_point", "gb_per_s"] {
                assert!(line[key].as_f64().unwrap() > 0.0, "{line}");
            }
        }
    }
    assert!(of("features").iter().all(|l| l["sweeps"].as_f64().unwrap() > 0.0));
    assert_eq!(of("threads").len(), 1);
    let memory = of("memory");
    assert_eq!(
        memory.iter().map(|l| &l["method"]).collect::<Vec<_>>(),
        ["gaussian", "lattice", "dense", "online"]
    );
    for (line, key) in memory.iter().zip([
        "ratio_to_stored",
        "bytes_per_point",
        "ratio_to_stored",
        "bytes_per_point",
    ]) {
        assert!(line[key].as_f64().unwrap() > 1.0, "{line}");
    }
    assert_eq!(of("lattice").len(), 2);
    assert!(of("lattice_growth")[0]["exponent"].as_f64().unwrap().is_finite());
    for line in of("accuracy") {
        assert!(line["relative_error"].as_f64() <= line["relative_bound"].as_f64(), "{line}");
        assert!(line["relative_error"].as_f64().unwrap() < 1e-5, "{line}");
    }
    assert_eq!(of("accuracy_divergence").len(), 1);
    assert_eq!(of("gradients").len(), 6);
    assert!(of("gradients").iter().all(|l| l["by_points_in_iterations"].as_f64().unwrap() > 0.0));
    assert_eq!(of("pairs").len(), 3);
    assert!(of("pairs").iter().all(|l| l["ns_per_pair"].as_f64().unwrap() > 0.0));
    assert!(of("linear")[0]["exponent"].as_f64().unwrap().is_finite());
}

#[test]
fn files_race_against_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, shift: f64| {
        let place = |i: usize, step: f64| shift + (i as f64 * step).fract();
        let row = |i| format!("{},{}\n", place(i, 0.754_877_666), place(i, 0.569_840_29));
        let path = folder.path().join(name);
        std::fs::write(&path, (1..=80).map(row).collect::<String>()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (x, y) = (write("x.csv", 0.0), write("y.csv", 0.5));
    let output = bench(&format!("--quick --data {x} {y} --eps 0.5"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["bench"], line["n"].as_u64()), (&Value::from("race"), Some(80)));
    assert!(line["relative_error"].as_f64().unwrap() <= 1e-3, "{line}");

    let output = bench(&format!("--data {x} none.csv --eps 0.5"));
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.starts_with("orthant-bench: none.csv: ") && message.lines().count() == 1);
}

#[test]
fn help_is_that_of_the_command_that_runs_it() {
    let help = text(&bench("--help").stdout);
    assert!(help.contains("Usage: orthant bench [OPTIONS]"), "{help}");
    assert!(help.contains("Examples:") && help.lines().all(|l| l.chars().count() <= 100), "{help}");
    assert_eq!(bench("--suite none").status.code(), Some(2));
}
