//! `test`.

use crate::common::{Sandbox, cloud, keys, table_of, text};

#[test]
fn a_test_tells_different_clouds_from_equal_ones() {
    let sandbox = Sandbox::new();
    let command = "test x.csv y.csv --columns a,b --permutations 199";
    let report = sandbox.json(&format!("{command} --output null.csv"));
    assert_eq!(keys(&report["null"]), ["median", "q90", "q95", "q99"]);
    assert_eq!((&report["p_value"], &report["resolution"]), (&0.005.into(), &0.005.into()));
    assert_eq!((&report["permutations"], &report["stop"]), (&199.into(), &"converged".into()));
    let (header, rows) = table_of(&sandbox.path("null.csv"));
    assert_eq!((header.as_str(), rows.len()), ("permutation,divergence", 200));
    assert_eq!(rows[0][1], report["statistic"].as_f64().unwrap());
    let shown = text(&sandbox.orthant(command).stdout);
    assert!(shown.contains("0 of 199 permutations are at least as far apart"), "{shown}");
    // The statistic is the divergence; the default epsilon does not know which cloud a point is from.
    let epsilon = report["settings"]["epsilon"].as_f64().unwrap();
    let divergence = sandbox.json(&format!("divergence x.csv y.csv --columns a,b --eps {epsilon}"));
    let value = divergence["value"].as_f64().unwrap();
    for name in ["value", "statistic"] {
        assert!((report[name].as_f64().unwrap() - value).abs() < 1e-6, "{name}");
    }
    sandbox.write("y.csv", &cloud(61, 0.0, 1.0));
    let same = sandbox.json("test x.csv y.csv --columns a,b --permutations 99 --seed 3");
    assert!(same["p_value"].as_f64().unwrap() > 0.2, "{same}");
    for method in ["lattice", "gaussian --rank 50", "online", "arccos --rank 50"] {
        let arguments =
            format!("test x.csv y.csv --columns a,b --permutations 19 --method {method}");
        assert!(sandbox.json(&arguments)["p_value"].as_f64().unwrap() > 0.1, "{method}");
    }
    assert_eq!(
        sandbox.fails("test x.csv y.csv --permutations 0", 2),
        "orthant: the number of permutations must be at least 1, got 0"
    );
}

#[test]
fn a_test_shows_where_the_divergence_is_and_keeps_an_accuracy_that_was_asked_for() {
    let sandbox = Sandbox::new();
    let command = "test x.csv y.csv --columns a,b --permutations 19";
    // The numbers that are printed: the value is in its interval.
    let shown = text(&sandbox.orthant(command).stdout);
    let line = shown.lines().find(|line| line.trim_start().starts_with("divergence")).unwrap();
    let numbers: Vec<f64> =
        line.split(['[', ']', ',', ' ']).filter_map(|word| word.parse().ok()).collect();
    let [value, low, high] = numbers[..] else { panic!("{line}") };
    assert!(low <= value && value <= high && low < high, "{line}");
    let report = sandbox.json(command);
    let ends = &report["interval"];
    let [from, to] = ["low", "high"].map(|end| ends[end].as_f64().unwrap());
    assert!(low <= from && to <= high && ends["kind"] == "exact", "{line}: {ends}");
    // Nobody asked for an accuracy.
    assert!(report["accurate"].is_null());
    let kept = sandbox.json(&format!("{command} --accuracy 1e-3"));
    assert_eq!(kept["accurate"], true);
    // Two iterations are not enough for any, and the p-value is there all the same.
    for (accuracy, code) in [("", 0), ("--accuracy 1e-6", 3)] {
        let output = sandbox.orthant(&format!("{command} --max-iter 2 --eps 0.01 {accuracy}"));
        assert_eq!(output.status.code(), Some(code), "{accuracy}");
        let shown = text(&output.stdout);
        assert!(shown.contains("p-value"), "{shown}");
        assert_eq!(shown.contains("does not have the accuracy asked for"), code == 3, "{shown}");
    }
    // Where nothing bounds the error, nothing is shown of it.
    let anchors = sandbox.json(&format!("{command} --method gaussian --rank 50"));
    assert!(anchors["interval"].is_null() && anchors["accurate"].is_null());
    let shown = text(&sandbox.orthant(&format!("{command} --method gaussian --rank 50")).stdout);
    assert!(shown.contains("its error is not known"), "{shown}");
}
