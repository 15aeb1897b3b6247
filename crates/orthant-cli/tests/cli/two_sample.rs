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
    assert_eq!(rows[0][1], report["value"].as_f64().unwrap());
    let shown = text(&sandbox.orthant(command).stdout);
    assert!(shown.contains("0 of 199 permutations are at least as far apart"), "{shown}");
    // The statistic is the divergence; the default epsilon does not know which cloud a point is from.
    let epsilon = report["settings"]["epsilon"].as_f64().unwrap();
    let divergence = sandbox.json(&format!("divergence x.csv y.csv --columns a,b --eps {epsilon}"));
    let value = divergence["value"].as_f64().unwrap();
    assert!((report["value"].as_f64().unwrap() - value).abs() < 1e-6);
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
