//! `--cost`: other costs than the squared Euclidean one.

use serde_json::Value;

use crate::common::{Sandbox, text};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Two points each: the plan of two by two points is known in closed form.
fn two_by_two(cost: &str, sandbox: &Sandbox) -> f64 {
    number(
        &sandbox.json(&format!("rot p.csv q.csv --eps 0.7 --tol 1e-12 --cost {cost}"))["value_kl"],
    )
}

/// `-eps log (sum exp)` form of the value: with equal costs `c` on the diagonal and `d` off it, and uniform weights, the plan
/// is `1 / (2 (1 + r))` on the diagonal, `r = exp((c - d) / eps)`.
fn symmetric_value(c: f64, d: f64, epsilon: f64) -> f64 {
    let r = ((c - d) / epsilon).exp();
    let p = 1.0 / (1.0 + r);
    let q = 1.0 - p;
    p * c + q * d + epsilon * (p * (2.0 * p).ln() + q * (2.0 * q).ln())
}

#[test]
fn costs_have_the_values_of_their_formulas() {
    let sandbox = Sandbox::new();
    sandbox.write("p.csv", "x,y\n1,0\n0,1\n");
    sandbox.write("q.csv", "x,y\n2,0\n0,2\n");
    sandbox.write("a.csv", "2,0\n0,2\n");
    let (near, far) = (1.0, 5f64.sqrt());
    for (cost, c, d) in [
        ("sqeuclidean", near, far * far),
        ("euclidean", near, far),
        ("cosine", 0.0, 1.0),
        ("dot", -2.0, 0.0),
        ("l1", 1.0, 3.0),
        ("lp:3", 1.0, 9f64.cbrt()),
        ("geodesic", 0.0, std::f64::consts::FRAC_PI_2),
        ("mahalanobis:a.csv", 2.0, 10.0),
    ] {
        let found = two_by_two(cost, &sandbox);
        let expected = symmetric_value(c, d, 0.7);
        assert!((found - expected).abs() < 1e-9, "{cost}: {found} {expected}");
    }
}

#[test]
fn costs_go_with_all_commands_and_are_part_of_the_settings() {
    let sandbox = Sandbox::new();
    let xy = "x.csv y.csv --columns a,b";
    for cost in ["cosine", "dot", "euclidean", "l1", "lp:1.5", "geodesic"] {
        let all = ["rot", "divergence", "compare", "test --permutations 9", "barycenter"];
        for command in all.into_iter().take(if cost == "dot" { 4 } else { 5 }) {
            let report = sandbox.json(&format!("{command} {xy} --cost {cost}"));
            assert_eq!(report["settings"]["cost"], cost, "{command}");
            assert!(number(&report["settings"]["mean_cost"]) > 0.0);
        }
        let map = sandbox.orthant(&format!("map {xy} --cost {cost} -o {}.csv", &cost[..2]));
        assert!(map.status.success(), "{}", text(&map.stderr));
    }
    let lattice = sandbox.json(&format!("rot {xy} --cost cosine --anchors lattice"));
    let exact = sandbox.json(&format!("rot {xy} --cost cosine --method online"));
    let off = (number(&lattice["value_kl"]) - number(&exact["value_kl"])).abs();
    assert!(off < 1e-3 * number(&exact["value_kl"]), "{off}");
    // What is kept is of a cost.
    let kept = |cost: &str| {
        sandbox.orthant(&format!("compare {xy} --cost {cost} --eps 0.1 --keep kept.jsonl --json"))
    };
    assert!(kept("euclidean").status.success());
    assert!(!kept("l1").status.success());
}

#[test]
fn bad_costs_name_the_row_and_the_remedy() {
    let sandbox = Sandbox::new();
    sandbox.write("zero.csv", "a,b\n1,2\n3,4\n0,0\n");
    for cost in ["cosine", "geodesic"] {
        let error = sandbox.fails(&format!("rot x.csv zero.csv --columns a,b --cost {cost}"), 2);
        assert!(error.contains("zero.csv: point 3 is zero"), "{error}");
    }
    let xy = "x.csv y.csv --columns a,b";
    for (arguments, message) in [
        ("--cost l1 --anchors sobol", "use --method auto, dense or online"),
        ("--cost euclidean --method nystrom", "use --method auto, dense or online"),
        ("--cost cosine --method linear", "leave out --cost"),
        ("--cost cosine --anchors paper", "use other --anchors"),
        ("--cost mahalanobis:none.csv", "none.csv"),
    ] {
        let error = sandbox.fails(&format!("rot {xy} {arguments}"), 2);
        assert!(error.contains(message), "{error}");
    }
    let dot = sandbox.fails(&format!("barycenter {xy} --cost dot"), 2);
    assert!(dot.contains("use the squared Euclidean cost at twice the epsilon"), "{dot}");
    for (matrix, message) in [
        ("1,2,3\n4,5,6\n", "2 rows of 3 numbers"),
        ("1,0.5\n0.2,1\n", "row 2, column 1"),
        ("1,2\n2,1\n", "negative eigenvalue -1"),
        ("1,0,0\n0,1,0\n0,0,1\n", "must be 2 x 2, got 3 x 3"),
    ] {
        sandbox.write("a.csv", matrix);
        let error = sandbox.fails(&format!("rot {xy} --cost mahalanobis:a.csv"), 2);
        assert!(error.contains(message), "{error}");
    }
    for cost in ["cos", "lp", "lp:0.5", "mahalanobis"] {
        let output = sandbox.orthant(&format!("rot {xy} --cost {cost}"));
        assert_eq!(output.status.code(), Some(2), "{cost}");
    }
}
