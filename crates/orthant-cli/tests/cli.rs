//! The command as people and programs meet it.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

mod common;
use common::{Bench, cloud, keys, text};

/// What every result has first.
const ENVELOPE: [&str; 5] = ["schema", "version", "command", "files", "settings"];
/// What a transport problem has.
const TERM: [&str; 19] = [
    "value",
    "value_kl",
    "interval",
    "interval_kl",
    "corrected",
    "error_bound",
    "transport_cost",
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
fn problem_keys() -> Vec<&'static str> {
    [&ENVELOPE[..], &["n", "m", "dim", "accurate"], &TERM].concat()
}

#[test]
fn json_has_the_documented_keys() {
    let bench = Bench::new();
    let rot = bench.json("rot x.csv y.csv --columns a,b --eps 0.1");
    assert_eq!(keys(&rot), problem_keys());
    assert_eq!(keys(&rot["seconds"]), ["read", "features", "solve", "total"]);
    assert_eq!(keys(&rot["method"]), ["name", "anchors", "rank", "reason"]);
    assert_eq!((&rot["n"], &rot["m"], &rot["dim"]), (&60.into(), &45.into(), &2.into()));
    assert!(["online", "dense"].contains(&rot["method"]["name"].as_str().unwrap()));
    assert_eq!(rot["stop"], "converged");
    assert_eq!((&rot["error_bound"], &rot["corrected"]), (&0.0.into(), &Value::Null));
    for interval in ["interval", "interval_kl"] {
        assert_eq!(keys(&rot[interval]), ["low", "high", "kind"]);
        assert_eq!(rot[interval]["kind"], "exact");
    }
    assert!(rot["method"]["reason"].as_str().unwrap().contains("exact"), "{rot}");

    let divergence = bench.json("divergence x.csv y.csv --columns a,b --eps 0.1");
    let mut expected = problem_keys();
    expected.extend(["kernels", "cross", "self_x", "self_y"]);
    assert_eq!(keys(&divergence), expected);
    assert_eq!(divergence["kernels"], "exact");
    for term in ["cross", "self_x", "self_y"] {
        assert_eq!(keys(&divergence[term]), TERM);
    }
    let value = |term: &str| divergence[term]["value_kl"].as_f64().unwrap();
    let combined = value("cross") - 0.5 * (value("self_x") + value("self_y"));
    assert!((divergence["value"].as_f64().unwrap() - combined).abs() < 1e-15);
    // The cross term of a divergence starts elsewhere than that of rot: equal to the tolerance.
    assert!((value("cross") - rot["value_kl"].as_f64().unwrap()).abs() < 1e-7);
}

#[test]
fn the_default_epsilon_is_a_twentieth_of_the_mean_squared_distance() {
    let bench = Bench::new();
    bench.write("p.csv", "0,0\n2,0\n");
    bench.write("q.csv", "0,3\n0,1\n");
    // Squared distances between the four points, every pair twice, and four zeros: 2 (4 + 4 + 1 + 9 + 5 + 13) / 16.
    let epsilon = bench.json("rot p.csv q.csv")["settings"]["epsilon"].as_f64().unwrap();
    assert!((epsilon - 0.05 * 4.5).abs() < 1e-15, "{epsilon}");
    let output = text(&bench.orthant("rot p.csv q.csv").stdout);
    assert!(output.contains("epsilon = 0.225000 (5 % of the mean cost, 4.50000)"), "{output}");
    bench.write("one.csv", "1,1\n");
    assert_eq!(
        bench.fails("rot one.csv one.csv", 2),
        "orthant: all points of all clouds coincide, so there is no scale to choose epsilon from; give --eps a number"
    );
    assert_eq!(bench.json("rot one.csv one.csv --eps 1")["value"], 0.0);
}

#[test]
fn every_method_runs_and_exact_ones_agree() {
    let bench = Bench::new();
    let value = |method: &str| {
        let arguments =
            format!("rot x.csv y.csv --columns a,b --eps 0.2 --tol 1e-9 --method {method}");
        bench.json(&arguments)["value"].as_f64().unwrap()
    };
    let exact = value("online");
    assert!((value("dense") - exact).abs() < 1e-12);
    assert!((value("auto") - exact).abs() < 1e-12);
    let features = value("gaussian --rank 4000");
    assert!((features / exact - 1.0).abs() < 0.02, "{features} {exact}");
    assert!(value("gaussian --anchors paper --uncentred --rank 50").is_finite());
    assert!(value("arccos --order 2 --kappa 0.5 --sigma 2").is_finite());
    // Two draws differ, one draw does not.
    assert_ne!(value("gaussian --seed 1"), value("gaussian --seed 2"));
    assert_eq!(value("gaussian --seed 1"), value("gaussian --seed 1"));
    assert_eq!(value("gaussian --threads 1"), value("gaussian --threads 3"));
    bench.write("p.csv", "0.6,0.8\n0.8,0.6\n");
    bench.write("q.csv", "1,0.1\n");
    let linear = bench.json("rot p.csv q.csv --method linear");
    assert_eq!(linear["method"]["rank"], 2);
    assert_eq!(linear["settings"]["epsilon"], 1.0);
    // Against one point the plan is the product.
    let cost = -0.5 * (0.68_f64.ln() + 0.86_f64.ln());
    assert!((linear["transport_cost"].as_f64().unwrap() - cost).abs() < 1e-12);
}

#[test]
fn all_anchors_approach_the_exact_value() {
    let bench = Bench::new();
    let problem = "rot x.csv y.csv --columns a,b --eps 0.2 --tol 1e-9";
    let exact = bench.json(&format!("{problem} --method dense"))["value_kl"].as_f64().unwrap();
    // Random features of rank 2000: their error is some part of 1/sqrt(rank), relative to epsilon.
    for anchors in ["sobol", "iid", "orthogonal", "paper"] {
        let report = bench.json(&format!("{problem} --anchors {anchors} --rank 2000"));
        assert_eq!(
            (&report["method"]["name"], &report["method"]["rank"]),
            (&"gaussian".into(), &2000.into())
        );
        let value = report["value_kl"].as_f64().unwrap();
        assert!((value - exact).abs() < 0.2 * 0.05, "{anchors}: {value} {exact}");
        assert_eq!(report["error_bound"], Value::Null, "{anchors}");
        assert_eq!(report["method"]["reason"], Value::Null, "{anchors}");
        assert_eq!(report["method"]["anchors"], anchors);
    }
    let default = bench.json(&format!("{problem} --method gaussian"));
    assert_eq!(default["method"]["rank"], 1000);
    let sobol = bench.json(&format!("{problem} --method gaussian --anchors sobol --rank 1000"));
    assert_eq!(default["value"], sobol["value"]);

    // A lattice keeps to the accuracy and to its bound.
    for (options, accuracy) in
        [("", 1e-3), ("--accuracy 1e-8", 1e-8), ("--no-gauge --accuracy 1e-6", 1e-6)]
    {
        let report = bench.json(&format!("{problem} --anchors lattice {options}"));
        assert_eq!(report["method"]["name"], "lattice");
        let bound = report["error_bound"].as_f64().unwrap();
        assert!(bound <= accuracy * exact, "{options}: {bound}");
        let error = (report["value_kl"].as_f64().unwrap() - exact).abs();
        assert!(error <= bound, "{options}: {error} {bound}");
    }
    let few = bench.json(&format!("{problem} --anchors lattice --rank 40"));
    assert!(few["method"]["rank"].as_u64().unwrap() <= 40, "{few}");
}

#[test]
fn people_are_told_what_was_chosen_and_how_good_it_is() {
    let bench = Bench::new();
    let row = |arguments: &str, name: &str| -> Option<String> {
        let output = bench.orthant(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        let text = text(&output.stdout);
        assert!(text.lines().all(|l| l.len() <= 100), "{text}");
        // Notes go on below where they began.
        let mut rows: Vec<String> = Vec::new();
        for line in text.lines() {
            let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
            match rows.last_mut() {
                Some(row) if line.starts_with("          ") => {
                    row.push(' ');
                    row.push_str(&words);
                }
                _ => rows.push(words),
            }
        }
        rows.into_iter().find(|row| row.starts_with(&format!("{name} ")))
    };
    let starts = |arguments: &str, name: &str, start: &str| {
        let row = row(arguments, name).unwrap_or_default();
        assert!(row.starts_with(start), "{arguments}: {row}");
    };
    let rot = "rot x.csv y.csv --columns a,b --eps 0.2";
    let divergence = "divergence x.csv y.csv --columns a,b --eps 0.2";
    starts(rot, "method", "method dense, exact, f64 2,700 pairs are few enough to be exact");
    for exact in [rot, divergence] {
        assert_eq!(row(exact, "error"), None);
        assert_eq!(row(exact, "kernels"), None);
    }
    let lattice = format!("{rot} --anchors lattice --precision f32");
    let nodes = bench.json(&lattice)["method"]["rank"].to_string();
    starts(&lattice, "method", &format!("method lattice, {nodes} nodes, f32"));
    starts(&lattice, "error", "error at most ");
    assert!(row(&lattice, "error").unwrap().contains(" bound on the distance from exact, "));
    let lattices = format!("{divergence} --anchors lattice");
    starts(&lattices, "kernels", "kernels one for each term with an error bound each");
    starts(&lattices, "error", "error at most ");
    assert!(row(&lattices, "W(x,y)").unwrap().ends_with(" nodes"));
    starts("divergence x.csv x.csv --columns a,b --anchors lattice", "error", "error at most ");
    let same = row("divergence x.csv x.csv --columns a,b --anchors lattice", "error").unwrap();
    assert!(same.contains("more than the divergence itself"), "{same}");
    let few = "rot x.csv y.csv --columns a,b --eps 0.01 --anchors lattice --rank 30";
    starts(few, "method", "method lattice, 30 nodes, f64");
    let sobol = format!("{divergence} --rank 1200");
    starts(&sobol, "method", "method sobol, 1,200 anchors, f64");
    starts(&sobol, "kernels", "kernels one for all terms ");
    starts(&sobol, "error", "error not known --certify bounds it");
    // The anchors are those that were used.
    for anchors in ["adaptive", "iid", "orthogonal", "paper"] {
        let rot = format!("{rot} --anchors {anchors} --rank 100");
        starts(&rot, "method", &format!("method {anchors}, 100 anchors, f64"));
    }
    starts(&format!("{rot} --method arccos"), "method", "method arccos, 1,000 features, f64");
    assert_eq!(row(&format!("{rot} --method arccos"), "error"), None);
}

#[test]
fn nystrom_agrees_with_exact_and_fails_at_small_epsilon() {
    let bench = Bench::new();
    let problem = "rot x.csv y.csv --columns a,b --eps 0.5 --tol 1e-10";
    let exact = bench.json(&format!("{problem} --method dense"))["value_kl"].as_f64().unwrap();
    for (options, rank, error) in [
        ("", 105, 1e-9),
        ("--rank 40 --seed 3", 40, 1e-4),
        ("--rank 40 --landmarks uniform", 40, 1e-3),
    ] {
        let report = bench.json(&format!("{problem} --method nystrom {options}"));
        assert_eq!(
            (&report["method"]["name"], &report["method"]["rank"]),
            (&"nystrom".into(), &rank.into())
        );
        let value = report["value_kl"].as_f64().unwrap();
        assert!((value - exact).abs() < error, "{options}: {value} {exact}");
        assert_eq!((&report["error_bound"], &report["interval"]), (&Value::Null, &Value::Null));
    }
    let divergence = "divergence x.csv y.csv --columns a,b --eps 0.5 --method nystrom";
    assert_eq!(bench.json(divergence)["kernels"], "shared");
    let output = text(&bench.orthant(&format!("{divergence} --rank 40")).stdout);
    for part in ["nystrom, 40 landmarks, f64", "the same landmarks", "not known"] {
        assert!(output.contains(part), "{output}");
    }
    // The failure that the paper describes is no bad input: exit code 1.
    let message = bench.fails(
        "rot x.csv y.csv --columns a,b --eps 0.001 --method nystrom --rank 20 --no-gauge",
        1,
    );
    assert!(message.starts_with("orthant: iteration "), "{message}");
    assert!(
        message.contains("the Nystrom approximation of the kernel is not positive"),
        "{message}"
    );
    assert!(message.contains("use a larger epsilon, more landmarks"), "{message}");
}

#[test]
fn auto_goes_by_accuracy_and_memory() {
    let bench = Bench::new();
    bench.write("x.csv", &cloud(2000, 0.0, 1.0));
    bench.write("y.csv", &cloud(2000, 0.5, 0.6));
    let report = |options: &str| {
        bench.json(&format!("divergence x.csv y.csv --columns a,b --eps 0.1 {options}"))
    };
    let [rough, fine] = [report(""), report("--accuracy 1e-7 --memory 1GiB")];
    for (report, accuracy) in [(&rough, 1e-3), (&fine, 1e-7)] {
        assert_eq!(
            (&report["method"]["name"], &report["kernels"]),
            (&"lattice".into(), &"per_term".into())
        );
        assert!(report["method"]["reason"].as_str().unwrap().contains("lattice"), "{report}");
        let number = |value: &Value| value.as_f64().unwrap();
        let mut bound = 0.0;
        for (term, weight) in [("cross", 1.0), ("self_x", 0.5), ("self_y", 0.5)] {
            let term = &report[term];
            assert!(number(&term["error_bound"]) <= accuracy * number(&term["value_kl"]), "{term}");
            bound += weight * number(&term["error_bound"]);
        }
        assert!((number(&report["error_bound"]) / bound - 1.0).abs() < 1e-12);
    }
    assert!(fine["method"]["rank"].as_u64() > rough["method"]["rank"].as_u64());
    let difference = rough["value"].as_f64().unwrap() - fine["value"].as_f64().unwrap();
    assert!(difference.abs() < rough["error_bound"].as_f64().unwrap());
    // Nothing can be stored: all pairs, on the way.
    let online = report("--memory 300K --max-iter 3000");
    assert_eq!(
        (&online["method"]["name"], &online["kernels"]),
        (&"online".into(), &"exact".into())
    );
    assert_eq!(report("--anchors sobol --rank 100")["kernels"], "shared");
}

#[test]
fn auto_certifies_random_anchors() {
    let bench = Bench::new();
    let cloud = |n: usize, scale: f64| {
        let point = |i: usize| {
            let c = [0.885, 0.783, 0.693, 0.613, 0.543, 0.48]
                .map(|p| (scale * (i as f64 * p).fract()).to_string());
            c.join(",") + "\n"
        };
        (1..=n).map(point).collect::<String>()
    };
    bench.write("x.csv", &cloud(1500, 1.0));
    bench.write("y.csv", &cloud(1500, 0.8));
    let problem = "rot x.csv y.csv --eps 2 --accuracy 5e-3";
    let report = bench.json(problem);
    assert_eq!(report["method"]["name"], "gaussian");
    assert_eq!(report["error_bound"], Value::Null);
    let number = |report: &Value, key: &str| report[key].as_f64().unwrap();
    let [low, high] = ["low", "high"].map(|end| number(&report["interval"], end));
    assert_eq!(report["interval"]["kind"], "sampled");
    assert!(high - low <= 2.0 * 5e-3 * number(&report, "value_kl"), "{report}");
    let exact = number(&bench.json("rot x.csv y.csv --eps 2 --method online"), "value");
    assert!(low <= exact && exact <= high, "{low} {exact} {high}");
    let output = text(&bench.orthant(problem).stdout);
    assert!(output.contains(" in [") && output.contains("samples of the plan"), "{output}");
    // What cannot be reached is said, by the exit code too.
    let short = bench.orthant("rot x.csv y.csv --eps 2 --accuracy 1e-9 --max-iter 2");
    assert_eq!(short.status.code(), Some(3), "{}", text(&short.stdout));
}

#[test]
fn weights_columns_and_missing_values() {
    let bench = Bench::new();
    let weighted = bench.json("rot x.csv y.csv --weights w --eps 0.1");
    assert_eq!(weighted["dim"], 2);
    let plain = bench.json("rot x.csv y.csv --columns 1-2 --eps 0.1");
    assert_ne!(weighted["value"], plain["value"]);
    let first = bench.json("rot x.csv y.csv --columns 1-2 --weights-x w --eps 0.1");
    assert_ne!(first["value"], plain["value"]);
    assert_ne!(first["value"], weighted["value"]);

    bench.write("gaps.csv", "a,b\n0,1\n,2\n3,4\n");
    let message = bench.fails("rot gaps.csv x.csv --columns a,b", 2);
    assert!(message.starts_with("orthant: gaps.csv: row 2"), "{message}");
    assert!(message.ends_with("use --missing drop to skip such rows"), "{message}");
    let output = text(&bench.orthant("rot gaps.csv x.csv --columns a,b --missing drop").stdout);
    assert!(output.contains("gaps.csv: 1 row with missing values dropped"), "{output}");
}

#[test]
fn compressed_files_and_standard_input() {
    let bench = Bench::new();
    let file = std::fs::File::create(bench.path("x.csv.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    gz.write_all(cloud(60, 0.0, 1.0).as_bytes()).unwrap();
    gz.finish().unwrap();
    let plain = bench.json("rot x.csv y.csv --columns a,b --eps 0.1")["value"].clone();
    assert_eq!(bench.json("rot x.csv.gz y.csv --columns a,b --eps 0.1")["value"], plain);

    let mut child = bench
        .command("rot - y.csv --columns a,b --eps 0.1 --json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(cloud(60, 0.0, 1.0).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let piped: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(piped["value"], plain);
    assert_eq!(
        bench.fails("rot - -", 2),
        "orthant: only one of the files can come from standard input; give files for the others"
    );
}

#[test]
fn bad_input_is_exit_code_2_and_one_line() {
    let bench = Bench::new();
    bench.write("empty.csv", "");
    bench.write("ragged.csv", "1,2\n3\n");
    bench.write("text.csv", "a,b\n1,2\n3,four\n");
    bench.write("inf.csv", "1,2\ninf,4\n");
    bench.write("negative.csv", "a,b,w\n1,2,1\n3,4,-1\n");
    bench.write("zero.csv", "a,b,w\n1,2,0\n3,4,0\n");
    bench.write("line.csv", "1\n2\n");
    bench.write("fake.npy", "not an array");
    bench.write("wide.csv", "0,0\n1e200,0\n");
    for (arguments, start) in [
        ("rot nope.csv x.csv", "orthant: nope.csv: "),
        ("rot . x.csv", "orthant: .: "),
        ("rot empty.csv x.csv", "orthant: empty.csv: the file is empty"),
        ("rot ragged.csv ragged.csv", "orthant: ragged.csv: "),
        (
            "rot text.csv text.csv",
            "orthant: text.csv: row 2 (line 3), column \"b\": cannot read \"four\" as a number",
        ),
        ("rot inf.csv inf.csv", "orthant: inf.csv: row 2"),
        (
            "rot negative.csv x.csv --weights w",
            "orthant: negative.csv: the weight of point 2 is -1",
        ),
        ("rot x.csv zero.csv --weights w", "orthant: zero.csv: all weights are zero"),
        ("rot line.csv y.csv", "orthant: line.csv has 1 coordinate and y.csv has 3; use --columns"),
        ("rot fake.npy x.csv", "orthant: fake.npy: "),
        ("rot wide.csv wide.csv --eps 1", "orthant: the clouds extend over"),
        ("rot x.csv y.csv --columns a,nope", "orthant: x.csv: "),
        ("rot x.csv y.csv --eps 0", "orthant: epsilon must be positive and finite, got 0"),
        ("rot x.csv y.csv --eps -1", "orthant: epsilon must be positive and finite, got -1"),
        ("rot x.csv y.csv --eps nan", "orthant: epsilon must be positive and finite, got NaN"),
        ("rot x.csv y.csv --eps 1e-30", "orthant: epsilon = 1e-30 is too small"),
        ("rot x.csv y.csv --tol 0", "orthant: tolerance must be between 0 and 1, got 0"),
        (
            "rot x.csv y.csv --tol 1e-9 --precision f32",
            "orthant: tolerance must be at least 1e-6 in single",
        ),
        ("rot x.csv y.csv --rank 0", "orthant: rank must be at least 1, got 0"),
        (
            "rot x.csv y.csv --max-iter 0",
            "orthant: the number of iterations must be at least 1, got 0",
        ),
        (
            "rot x.csv y.csv --method arccos --kappa 0",
            "orthant: kappa must be positive and finite, got 0",
        ),
        (
            "rot x.csv y.csv --method arccos --sigma 0.5",
            "orthant: sigma must be at least 1 and finite, got 0.5",
        ),
        ("rot y.csv inf.csv --method linear", "orthant: inf.csv: "),
        (
            "rot x.csv y.csv --output nope/p.csv",
            "orthant: nope/p.csv: cannot write the file: there is no such directory",
        ),
        ("rot x.csv y.csv --output .", "orthant: .: a table in a file without a suffix"),
    ] {
        let message = bench.fails(arguments, 2);
        assert!(message.starts_with(start), "{arguments}\n  {message}\n  {start}");
    }
    bench.write("signed.csv", "1,3,2\n1,-2,3\n");
    assert_eq!(
        bench.fails("rot x.csv signed.csv --method linear", 2),
        "orthant: signed.csv: feature 2 of point 2 is -2; positive features must be positive and finite"
    );
    for usage in [
        "rot x.csv",
        "rot x.csv y.csv --method nope",
        "rot x.csv y.csv --threads 0",
        "nope",
        "man nope",
    ] {
        assert_eq!(bench.orthant(usage).status.code(), Some(2), "{usage}");
    }
}

#[test]
fn options_that_do_not_go_together_are_exit_code_2() {
    let bench = Bench::new();
    bench.write("many.csv", "1,3,2,4,5\n2,1,2,1,2\n");
    for (arguments, start) in [
        (
            "rot x.csv y.csv --accuracy 0",
            "orthant: accuracy must be at least 1e-12 and below 1, got 0",
        ),
        (
            "rot x.csv y.csv --accuracy -1",
            "orthant: accuracy must be at least 1e-12 and below 1, got -1",
        ),
        (
            "rot x.csv y.csv --method gaussian --accuracy 1e-4",
            "orthant: --accuracy is for --method auto and --anchors lattice; ",
        ),
        ("rot x.csv y.csv --rank 9 --accuracy 1e-4", "orthant: --accuracy is for --method auto"),
        (
            "rot x.csv y.csv --method online --anchors sobol",
            "orthant: --anchors are those of --method gaussian, online has none; leave one",
        ),
        ("rot x.csv y.csv --method arccos --anchors paper", "orthant: --anchors are those of"),
        (
            "rot x.csv y.csv --method dense --rank 10",
            "orthant: --rank is a number of features of --method gaussian or arccos, or of landmarks of \
             nystrom, dense has no",
        ),
        (
            "rot x.csv y.csv --method nystrom --accuracy 1e-4",
            "orthant: --accuracy is for --method auto and --anchors lattice; ",
        ),
        (
            "rot x.csv y.csv --method nystrom --anchors paper",
            "orthant: --anchors are those of --method gaussian, nystrom has none; leave one",
        ),
        (
            "rot x.csv y.csv --landmarks uniform",
            "orthant: --landmarks are those of nystrom; add --method nystrom",
        ),
        (
            "rot x.csv y.csv --method nystrom --precision f32",
            "orthant: the Nystrom method needs double precision: ",
        ),
        (
            "rot x.csv y.csv --uncentred",
            "orthant: --uncentred is for the paper's anchors; add --anchors paper",
        ),
        ("rot x.csv y.csv --anchors iid --uncentred", "orthant: --uncentred is for the paper's"),
        ("rot x.csv y.csv --reach 0", "orthant: --reach must be a positive distance, got 0"),
        ("rot x.csv y.csv --reach-x -1", "orthant: --reach-x must be a positive distance, got -1"),
        (
            "rot x.csv y.csv --reach-y nan",
            "orthant: --reach-y must be a positive distance, got NaN",
        ),
        ("rot x.csv y.csv --reach 1e-9", "orthant: rho_x must be at least 1e-10 of epsilon, got"),
        ("rot x.csv y.csv --normalize", "orthant: --normalize is for unbalanced transport"),
        (
            "divergence x.csv y.csv --reach-x 1",
            "orthant: a divergence needs the same rho (reach) for both marginals, got 2 and inf",
        ),
        (
            "rot many.csv many.csv --anchors lattice",
            "orthant: a lattice has at most 4 axes, the points have 5: use sobol anchors",
        ),
    ] {
        let message = bench.fails(arguments, 2);
        assert!(message.starts_with(start), "{arguments}\n  {message}\n  {start}");
    }
    // What the memory does not suffice for is no fault of the input.
    for (arguments, start) in [
        ("--method nystrom", "storing the features of landmarks needs "),
        (
            "--method dense",
            "storing the kernel matrix needs 21.094 KiB of memory, more than the 20 KiB",
        ),
        (
            "--anchors iid",
            "storing the feature matrices needs 820.312 KiB of memory, more than the",
        ),
    ] {
        let message = bench.fails(&format!("rot x.csv y.csv {arguments} --memory 20K"), 1);
        assert!(message.starts_with(&format!("orthant: {start}")), "{message}");
    }
    for (usage, message) in [
        ("--reach 1 --reach-x 1", "the argument '--reach <R>' cannot be used with '--reach-x <R>'"),
        ("--anchors nope", "invalid value 'nope' for '--anchors"),
        ("--rank many", "invalid value 'many' for '--rank"),
        ("--accuracy high", "invalid value 'high' for '--accuracy"),
        ("--memory", "a value is required for '--memory"),
        ("--memory 0", "0 is not a size; give at least one byte"),
        ("--memory 5X", "the unit \"X\" is not one of B, K, M, G, T"),
        ("--memory=-1G", "-1G is not a size"),
        ("--memory much", "the unit \"much\" is not one of"),
        ("--memory 1.2.3G", "expected a number of bytes, such as 500M, 2G or 8GiB"),
    ] {
        let output = bench.orthant(&format!("rot x.csv y.csv {usage}"));
        assert_eq!(output.status.code(), Some(2), "{usage}");
        assert!(text(&output.stderr).contains(message), "{usage}: {}", text(&output.stderr));
    }
}

#[test]
fn a_limit_is_exit_code_3_with_the_result_so_far() {
    let bench = Bench::new();
    for (limit, stop) in [("--max-iter 2", "iteration_limit"), ("--time-limit 0s", "time_limit")] {
        let output = bench.orthant(&format!("rot x.csv y.csv --eps 0.001 {limit} --json"));
        assert_eq!(output.status.code(), Some(3));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["converged"], false);
        assert_eq!(report["stop"], stop);
        assert!(report["value"].as_f64().unwrap().is_finite());
        assert!(report["marginal_error_x"].as_f64().unwrap() > 1e-6);
        let output = bench.orthant(&format!("divergence x.csv y.csv --eps 0.001 {limit}"));
        assert_eq!(output.status.code(), Some(3));
        assert!(text(&output.stdout).contains("NO: "), "{}", text(&output.stdout));
    }
}

#[test]
fn potentials_are_written_whole_or_not_at_all() {
    let bench = Bench::new();
    bench.fails("rot x.csv nope.csv --output p.csv", 2);
    bench.fails("rot x.csv y.csv --eps -1 --output p.csv", 2);
    let files = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    assert_eq!(files(bench.folder.path()), 2);

    let report = bench.json("rot x.csv y.csv --weights w --eps 0.1 --output p.csv");
    assert_eq!(files(bench.folder.path()), 3);
    let table = std::fs::read_to_string(bench.path("p.csv")).unwrap();
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("cloud,row,weight,potential,potential_kl"));
    let rows: Vec<Vec<&str>> = lines.map(|l| l.split(',').collect()).collect();
    assert_eq!(rows.len(), 105);
    assert_eq!((rows[0][0], rows[0][1], rows[60][0], rows[60][1]), ("x", "1", "y", "1"));
    // The two dual values, from the potentials alone.
    let sum = |column: usize| -> f64 {
        rows.iter().map(|r| r[2].parse::<f64>().unwrap() * r[column].parse::<f64>().unwrap()).sum()
    };
    assert!((sum(3) - report["value"].as_f64().unwrap()).abs() < 1e-12);
    assert!((sum(4) - report["value_kl"].as_f64().unwrap()).abs() < 1e-12);

    bench.json("divergence x.csv y.csv --weights w --eps 0.1 --output p.csv");
    let table = std::fs::read_to_string(bench.path("p.csv")).unwrap();
    assert!(
        table.starts_with(
            "cloud,row,weight,potential,potential_kl,self_potential,self_potential_kl\n"
        )
    );
}

#[test]
fn pairs_are_written_whole_or_not_at_all() {
    let bench = Bench::new();
    bench.fails("rot x.csv nope.csv --pairs p.csv", 2);
    let message = bench.fails("rot x.csv y.csv --method nystrom --pairs p.csv", 2);
    assert!(message.contains("--pairs"), "{message}");
    bench.fails("rot x.csv y.csv --pairs missing/p.csv", 2);
    for usage in ["rot x.csv y.csv --count 5", "divergence x.csv y.csv --pairs p.csv"] {
        assert_eq!(bench.orthant(usage).status.code(), Some(2), "{usage}");
    }
    bench.fails("rot x.csv y.csv --pairs p.csv --count 1000000000000 --memory 1G", 1);
    assert!(!bench.path("p.csv").exists());

    let pairs = |arguments: &str| -> Vec<[usize; 2]> {
        let report = bench.json(&format!("rot x.csv y.csv {arguments} --pairs p.csv"));
        assert_eq!(keys(&report), problem_keys());
        let table = std::fs::read_to_string(bench.path("p.csv")).unwrap();
        let mut lines = table.lines();
        assert_eq!(lines.next(), Some("row_x,row_y"));
        lines
            .map(|l| l.split_once(',').unwrap())
            .map(|(i, j)| [i, j].map(|k| k.parse().unwrap()))
            .collect()
    };
    // As many as there are points to couple, all counted from 1.
    let drawn = pairs("--eps 0.1 --count 20000");
    assert_eq!(drawn.len(), 20_000);
    assert!(drawn.iter().all(|[i, j]| (1..=60).contains(i) && (1..=45).contains(j)));
    let mut times = [0; 60];
    for [i, _] in &drawn {
        times[i - 1] += 1;
    }
    // A uniform marginal: 333 each, give or take five deviations.
    assert!(times.iter().all(|t| (240..=430).contains(t)), "{times:?}");
    assert_eq!(pairs("--eps 0.1").len(), 1000);
    assert_eq!(pairs("--eps 0.1 --threads 1"), drawn[..1000]);
    assert_ne!(pairs("--eps 0.1 --seed 1"), drawn[..1000]);
    assert!(pairs("--eps 0.1 --count 0").is_empty());
    for method in [
        "--method lattice",
        "--method lattice --reach 0.3",
        "--anchors sobol --rank 50",
        "--anchors adaptive --rank 50",
        "--method arccos",
        "--method nystrom --polish",
    ] {
        assert_eq!(pairs(&format!("--eps 0.5 {method} --count 7")).len(), 7, "{method}");
    }
    // Without a report of its own it says nothing.
    let shown = bench.orthant("rot x.csv y.csv --eps 0.1 --pairs p.csv");
    assert!(!text(&shown.stdout).contains("p.csv"));
}

/// A table with a header, by columns.
fn table(path: &Path) -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').map(ToOwned::to_owned));
    let mut columns: Vec<(String, Vec<String>)> =
        lines.next().unwrap().map(|name| (name, Vec::new())).collect();
    for line in lines {
        let cells: Vec<String> = line.collect();
        assert_eq!(cells.len(), columns.len());
        columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
    }
    columns
}

fn numbers(column: &(String, Vec<String>)) -> Vec<f64> {
    column.1.iter().map(|cell| cell.parse().unwrap()).collect()
}

fn names(columns: &[(String, Vec<String>)]) -> Vec<&str> {
    columns.iter().map(|(name, _)| name.as_str()).collect()
}

/// Three clusters far apart and their copies moved by (100, -50), with labels and numbers beside them.
fn labelled(bench: &Bench) {
    let (mut x, mut y) = (String::from("id,b,a\n"), String::from("a,kind,b,age,w\n"));
    for i in 0..30_usize {
        let (cluster, k) = (i % 3, i as f64 * 0.01);
        let (a, b) = (cluster as f64 * 10.0 + k, k);
        writeln!(x, "\"p {i}\",{b},{a}").unwrap();
        let kind = ["ash", "beech", "cedar"][cluster];
        writeln!(y, "{},{kind},{},{},{}", a + 100.0, b - 50.0, 10 * cluster, 1 + i % 2).unwrap();
    }
    bench.write("p.csv", &x);
    bench.write("q.csv", &y);
}

#[test]
fn points_are_moved_and_columns_carried() {
    let bench = Bench::new();
    labelled(&bench);
    let map = "map p.csv q.csv --columns a,b --eps 0.5";
    let report =
        bench.json(&format!("{map} --carry kind --carry age --vote age --output moved.csv"));
    assert_eq!(keys(&report), problem_keys());
    let moved = table(&bench.path("moved.csv"));
    // In the order of the file.
    assert_eq!(
        names(&moved),
        [
            "id",
            "b",
            "a",
            "kind",
            "kind_probability",
            "age",
            "age_carried",
            "age_carried_probability"
        ]
    );
    assert_eq!(moved[0].1[7], "p 7");
    let near = |a: f64, b: f64| (a - b).abs() < 0.3;
    for i in 0..30 {
        let cluster = (i % 3) as f64;
        assert!(near(numbers(&moved[2])[i], 10.0 * cluster + 100.15), "{i}");
        assert!(near(numbers(&moved[1])[i], -49.85), "{i}");
        assert_eq!(moved[3].1[i], ["ash", "beech", "cedar"][i % 3]);
        assert!(near(numbers(&moved[4])[i], 1.0) && near(numbers(&moved[5])[i], 10.0 * cluster));
        assert_eq!(moved[6].1[i], (10 * (i % 3)).to_string());
    }
    // Standard output has the same table, and standard error the answer.
    let printed = bench.orthant(&format!("{map} --carry kind --carry age --vote age"));
    assert_eq!(text(&printed.stdout), std::fs::read_to_string(bench.path("moved.csv")).unwrap());
    assert!(text(&printed.stderr).contains("value_kl"), "{}", text(&printed.stderr));
    let shown = text(&bench.orthant(&format!("{map} -o moved.tsv")).stdout);
    assert!(shown.contains("moved.tsv") && shown.contains(" 30 "), "{shown}");
    assert!(std::fs::read_to_string(bench.path("moved.tsv")).unwrap().starts_with("id\tb\ta\n"));

    // Back, with weights; new points, whose own columns stay; what is carried is no coordinate.
    bench.json(
        "map p.csv q.csv --columns a,b --eps 0.5 --weights-y w --back --carry id -o back.csv",
    );
    let back = table(&bench.path("back.csv"));
    assert_eq!(names(&back), ["a", "kind", "b", "age", "w", "id", "id_probability"]);
    assert!(near(numbers(&back[0])[4], 10.15) && near(numbers(&back[2])[4], 0.15));
    assert_eq!(back[1].1[4], "beech");
    bench.write("new.csv", "a,b,kind\n20.1,0.1,?\n-500,40,oak\n");
    let report = bench
        .json("map p.csv q.csv --columns a,b --eps 0.5 --at new.csv --carry kind -o new.out.csv");
    assert_eq!(report["n"], 30);
    let new = table(&bench.path("new.out.csv"));
    assert_eq!(names(&new), ["a", "b", "kind", "kind_carried", "kind_carried_probability"]);
    assert_eq!(
        (&new[2].1[..], &new[3].1[..]),
        (&["?".into(), "oak".into()][..], &["cedar".into(), "ash".into()][..])
    );
    let plain = "map p.csv q.csv --eps 0.5 --columns 2-3";
    bench.write("p.csv", "x,1,2\ny,3,4\n");
    bench.write("q.csv", "x,1,2\ny,3,4\n");
    let output = bench.orthant(plain);
    assert!(text(&output.stdout).starts_with("x,1"), "{}", text(&output.stdout));
    bench.write("q.csv", "1,2,k\n3,4,l\n");
    bench.write("p.csv", "1,2\n3,4\n");
    let output = text(&bench.orthant("map p.csv q.csv --eps 0.1 --carry 3").stdout);
    assert!(output.starts_with("c1,c2,c3,c3_probability\n"), "{output}");
}

#[test]
fn maps_of_every_method_and_their_tables() {
    let bench = Bench::new();
    let run = |options: &str| {
        let all = "--output m.npy --partners p.csv --top-k 2 --pairs s.npy --count 50";
        bench.json(&format!("map x.csv y.csv --columns a,b --eps 0.3 {options} {all}"));
        let m = std::fs::read(bench.path("m.npy")).unwrap();
        let (_, data) = m.split_at(128);
        let moved: Vec<f64> =
            data.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        assert_eq!(moved.len(), 120, "{options}");
        let partners = table(&bench.path("p.csv"));
        assert_eq!(
            (names(&partners), partners[0].1.len()),
            (vec!["row", "partner_row", "probability"], 120)
        );
        let [i, j, p] = [0, 1, 2].map(|c| numbers(&partners[c]));
        assert!(i[..2] == [1.0, 1.0] && j.iter().all(|j| (1.0..=45.0).contains(j)), "{options}");
        assert!(p.chunks(2).all(|p| p[0] >= p[1] && p[0] <= 1.0), "{options}");
        assert_eq!(std::fs::read(bench.path("s.npy")).unwrap().len(), 128 + 50 * 16, "{options}");
        moved
    };
    let exact = run("--method online");
    for options in [
        "--method lattice",
        "--method dense --precision f32",
        "--anchors sobol --rank 3000",
        "--method nystrom --polish",
    ] {
        for (found, exact) in run(options).iter().zip(&exact) {
            assert!((found - exact).abs() < 0.02, "{options}: {found} {exact}");
        }
    }
    run("--method arccos");
    run("--reach 0.5");
    assert_eq!(run("--method lattice --threads 1"), run("--method lattice --threads 3"));
    // Without positive probabilities there are means all the same.
    let nystrom =
        bench.orthant("map x.csv y.csv --columns a,b --eps 0.5 --method nystrom -o n.csv");
    assert!(nystrom.status.success(), "{}", text(&nystrom.stderr));
    let limit =
        bench.orthant("map x.csv y.csv --columns a,b --eps 0.001 --max-iter 2 -o limit.csv");
    assert_eq!(limit.status.code(), Some(3));
    assert!(bench.path("limit.csv").exists());
}

#[test]
fn bad_maps_are_exit_code_2_and_leave_no_files() {
    let bench = Bench::new();
    labelled(&bench);
    bench.write("line.csv", "1\n2\n");
    bench.write("far.csv", "a,b\n0,0\n1e200,0\n");
    let mut ids = String::from("a,b,id\n");
    for i in 0..1500 {
        writeln!(ids, "{i},{},n{i}", 7 * i % 1500).unwrap();
    }
    bench.write("ids.csv", &ids);
    let before = std::fs::read_dir(bench.folder.path()).unwrap().count();
    for (arguments, start) in [
        ("x.csv nope.csv -o m.csv", "orthant: nope.csv: no such file"),
        ("x.csv y.csv -o m.parquet", "orthant: m.parquet: a table in a file with the suffix"),
        ("x.csv y.csv --pairs 100 -o m.csv", "orthant: 100: a table in a file without a suffix"),
        (
            "x.csv y.csv -o nope/m.csv",
            "orthant: nope/m.csv: cannot write the file: there is no such",
        ),
        ("x.csv y.csv -o m.csv --pairs nope/p.csv", "orthant: nope/p.csv: cannot write the file"),
        ("x.csv y.csv -o m.csv --partners m.csv", "orthant: --output and --partners are the same"),
        ("x.csv y.csv --json", "orthant: --json goes to standard output, where the moved points"),
        ("x.csv y.csv -o m.csv --at nope.csv", "orthant: nope.csv: no such file"),
        (
            "x.csv y.csv -o m.csv --at line.csv",
            "orthant: x.csv has 3 coordinates and line.csv has 1",
        ),
        (
            "x.csv y.csv --columns a,b -o m.csv --at far.csv",
            "orthant: far.csv: point 2 is too far from the clouds",
        ),
        ("x.csv - -o m.csv --at -", "orthant: only one of the files can come from standard input"),
        ("x.csv y.csv -o m.csv --carry nope", "orthant: y.csv: no column \"nope\""),
        (
            "x.csv y.csv --columns a,b -o m.csv --carry a",
            "orthant: y.csv: column \"a\" is selected",
        ),
        (
            "p.csv q.csv --columns a,b -o m.npy --carry kind",
            "orthant: q.csv: column \"kind\" is carried as text, which an array cannot hold",
        ),
        (
            "x.csv ids.csv --columns a,b -o m.csv --carry id",
            "orthant: ids.csv: column \"id\" has 1,500 different values; a vote is on 1,000 at most",
        ),
        (
            "x.csv y.csv -o m.csv --method nystrom --partners p.csv",
            "orthant: --partners needs a positive plan",
        ),
        ("x.csv y.csv -o m.csv --eps -1", "orthant: epsilon must be positive"),
    ] {
        let message = bench.fails(&format!("map {arguments}"), 2);
        assert!(message.starts_with(start), "{arguments}\n  {message}\n  {start}");
    }
    assert_eq!(bench.orthant("map x.csv y.csv --top-k 3").status.code(), Some(2));
    assert_eq!(std::fs::read_dir(bench.folder.path()).unwrap().count(), before);
    // A file that was there stays as it was.
    bench.write("m.csv", "old");
    bench.fails("map x.csv y.csv --columns a,b -o m.csv --at far.csv", 2);
    assert_eq!(std::fs::read_to_string(bench.path("m.csv")).unwrap(), "old");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let bench = Bench::new();
    bench.write("x.csv", &cloud(1500, 0.0, 1.0));
    for method in [
        "gaussian --rank 40",
        "gaussian --rank 40 --precision f32",
        "gaussian --anchors lattice",
        "online",
        "dense",
    ] {
        let run = |threads: usize| {
            let arguments = format!(
                "divergence x.csv y.csv --eps 0.05 --max-iter 30 --method {method} --threads {threads} --json"
            );
            let mut report: Value =
                serde_json::from_slice(&bench.orthant(&arguments).stdout).unwrap();
            for term in ["cross", "self_x", "self_y"] {
                report[term]["seconds"] = Value::Null;
            }
            report["seconds"] = Value::Null;
            report.to_string()
        };
        let one = run(1);
        assert_eq!(one, run(2), "{method}");
        assert_eq!(one, run(3), "{method}");
    }
}

#[test]
fn help_manual_and_completions() {
    let bench = Bench::new();
    let help = text(&bench.orthant("--help").stdout);
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
    for command in ["rot", "divergence", "map", "demo", "bench", "completions", "man"] {
        let help = text(&bench.orthant(&format!("{command} --help")).stdout);
        assert!(help.contains("Example"), "{command}: {help}");
        let page = text(&bench.orthant(&format!("man {command}")).stdout);
        assert!(page.contains(&format!("orthant\\-{command}")), "{command}");
    }
    assert!(text(&bench.orthant("man").stdout).contains(".TH orthant 1"));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&bench.orthant(&format!("completions {shell}")).stdout);
        assert!(script.contains("divergence"), "{shell}");
    }
    // A reader that goes away is no reason to fail.
    let mut child = bench.command("completions bash").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_demonstration_shows_features_beside_exact_values() {
    let bench = Bench::new();
    let output = bench.orthant("demo --points 1500 --rank 300");
    assert!(output.status.success());
    let shown = text(&output.stdout);
    assert!(shown.lines().all(|l| l.len() <= 100), "{shown}");
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .filter(|w| w.first().is_some_and(|f| f.parse::<f64>().is_ok()) && w.len() > 7)
        .collect();
    let epsilons = ["0.05", "0.1", "0.5", "1", "2.5"];
    assert_eq!(rows.iter().map(|r| r[0]).collect::<Vec<_>>(), [epsilons, epsilons].concat());
    let number = |word: &str| word.parse::<f64>().unwrap_or_else(|_| panic!("{word}: {shown}"));
    for (chosen, compared) in rows[..5].iter().zip(&rows[5..]) {
        // eps, W, error at most, S, error at most, ...; all points are solved exactly too.
        for (value, bound, exact) in [(1, 2, 1), (3, 4, 2)] {
            let error = (number(chosen[value]) - number(compared[exact])).abs();
            assert!(error <= number(chosen[bound]) + 1e-5, "{shown}");
        }
        // eps, exact W, S, time and its unit, then the errors of the lattice, which are tiny,
        assert!(number(compared[5]) < 1e-4 && number(compared[6]) < 1e-3, "{shown}");
        // and those of random features in percent, which are not.
        assert!(number(compared[9]) < 10.0 && number(compared[11]) < 50.0, "{shown}");
        assert_eq!((compared[10], compared[12]), ("%", "%"), "{shown}");
    }
}

#[test]
fn the_benchmark_prints_json_lines_with_ratios() {
    let bench = Bench::new();
    let output = bench.orthant("bench --quick");
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
fn unbalanced_transport_takes_weights_as_given() {
    let bench = Bench::new();
    bench.write("p.csv", "x,w\n0,400\n");
    bench.write("q.csv", "x,w\n1,300\n");
    // One entry P: c + eps log(P / ab) + rho log(P / a) + rho log(P / b) = 0, rho = 2 reach^2.
    let mass = |a: f64, b: f64, reach: f64| {
        let (epsilon, rho) = (0.5, 2.0 * reach * reach);
        (((epsilon + rho) * (a * b).ln() - 1.0) / (epsilon + 2.0 * rho)).exp()
    };
    let close = |report: &Value, key: &str, exact: f64| {
        let found = report[key].as_f64().unwrap();
        assert!((found / exact - 1.0).abs() < 1e-10, "{key}: {found} {exact}");
    };
    let problem = "rot p.csv q.csv --weights w --eps 0.5";
    let report = bench.json(&format!("{problem} --reach 1.5"));
    let exact = mass(400.0, 300.0, 1.5);
    close(&report, "mass", exact);
    close(&report, "transport_cost", exact);
    close(&report["settings"], "rho_x", 4.5);
    close(&report, "marginal_gap_x", (exact - 400.0).abs());
    close(&report, "marginal_gap_y", (exact - 300.0).abs());
    let report = bench.json(&format!("{problem} --reach 1.5 --normalize"));
    close(&report, "mass", mass(1.0, 1.0, 1.5));
    let report = bench.json(&format!("{problem} --reach-x 1.5"));
    close(&report, "mass", 300.0);
    assert_eq!(report["settings"]["rho_y"], Value::Null);
    let report = bench.json(problem);
    assert_eq!((&report["mass"], &report["settings"]["rho_x"]), (&1.0.into(), &Value::Null));

    let shown = text(&bench.orthant(&format!("{problem} --reach 1.5")).stdout);
    assert!(shown.contains("rho = 4.5"), "{shown}");
    assert!(shown.contains("the clouds have 400"), "{shown}");
    let same = bench.json("divergence x.csv x.csv --weights w --eps 0.1 --reach 0.3 --tol 1e-12");
    assert!(
        same["value"].as_f64().unwrap().abs() < 1e-10 * same["cross"]["value_kl"].as_f64().unwrap()
    );
    // Intervals are about value_kl, which is where they are shown.
    let certified =
        "rot x.csv y.csv --columns a,b --eps 0.1 --reach 0.3 --anchors sobol --rank 300 --certify";
    let report = bench.json(certified);
    let exact = bench.json("rot x.csv y.csv --columns a,b --eps 0.1 --reach 0.3 --method online");
    let of = |key: &str| report["interval_kl"][key].as_f64().unwrap();
    let value = exact["value_kl"].as_f64().unwrap();
    assert!(of("low") < value && value < of("high"), "{report} {exact}");
    assert_eq!(
        (&report["interval_kl"]["kind"], &report["interval"]),
        (&"sampled".into(), &Value::Null)
    );
    let shown = text(&bench.orthant(certified).stdout);
    let line = |name: &str| shown.lines().find(|l| l.trim_start().starts_with(name)).unwrap();
    assert!(line("value_kl ").contains(" in ["), "{shown}");
    assert!(!line("value ").contains(" in ["), "{shown}");
    bench.json("rot p.csv q.csv --weights w --eps 0.5 --reach 1 --output potentials.csv");
    let table = std::fs::read_to_string(bench.path("potentials.csv")).unwrap();
    assert!(table.lines().nth(1).unwrap().starts_with("x,1,400,"), "{table}");
}

#[test]
fn a_trace_has_a_line_for_each_iteration() {
    let bench = Bench::new();
    let problem = "divergence x.csv y.csv --columns a,b --eps 0.1 --trace trace.jsonl";
    for solver in ["plain", "anderson", "accelerated"] {
        let report = bench.json(&format!("{problem} --solver {solver}"));
        let trace = std::fs::read_to_string(bench.path("trace.jsonl")).unwrap();
        let steps: Vec<Value> = trace.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(steps.len() as u64, report["iterations"].as_u64().unwrap());
        for term in ["cross", "self_x", "self_y"] {
            let of: Vec<&Value> = steps.iter().filter(|s| s["term"] == term).collect();
            let last = of[of.len() - 1];
            assert_eq!(
                keys(last),
                ["term", "epsilon", "iteration", "seconds", "value", "marginal_error"]
            );
            assert_eq!(last["iteration"], report[term]["iterations"]);
            assert!(last["marginal_error"].as_f64().unwrap() < 1e-6);
            let value = report[term]["value"].as_f64().unwrap();
            assert!((last["value"].as_f64().unwrap() - value).abs() < 1e-6 * value.abs());
            // Plain iterations never lower the dual value, and momentum tells the best one.
            if solver != "anderson" && term == "cross" {
                let value = |s: &Value| s["value"].as_f64().unwrap();
                assert!(of.windows(2).all(|w| value(w[1]) >= value(w[0]) - 1e-12));
            }
        }
    }
    let relaxed = bench.orthant("rot x.csv y.csv --eps 0.1 --reach 1 --solver accelerated");
    assert_eq!(relaxed.status.code(), Some(2));
    assert!(text(&relaxed.stderr).contains("use the solver anderson or plain"));
    let none = bench.orthant("rot x.csv y.csv --eps 0.1 --trace missing/trace.jsonl");
    assert_eq!(none.status.code(), Some(2));
}

/// A histogram on a grid of the line: a bump.
fn bump(at: f64, shift: usize) -> String {
    let mut out = String::from("x,mass\n");
    for i in 0..41 {
        let i = (i + shift) % 41;
        let x = i as f64 / 10.0;
        writeln!(out, "{x},{}", (-8.0 * (x - at).powi(2)).exp()).unwrap();
    }
    out
}

/// Rows of a CSV file of numbers, and its header.
fn table_of(path: &Path) -> (String, Vec<Vec<f64>>) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap().to_owned();
    (header, lines.map(|l| l.split(',').map(|x| x.parse().unwrap()).collect()).collect())
}

#[test]
fn a_barycentre_lies_between_the_clouds() {
    let bench = Bench::new();
    for (name, at) in [("a.csv", 1.0), ("b.csv", 2.0), ("c.csv", 3.5)] {
        bench.write(name, &bump(at, 0));
    }
    let command = "barycenter a.csv b.csv c.csv --columns x --weights mass --eps 0.05";
    let report = bench.json(&format!("{command} --shares 2,3,5 --output p.csv --softmax 10"));
    assert_eq!(report["shares"], serde_json::json!([0.2, 0.3, 0.5]));
    assert_eq!(
        (&report["support"], &report["points"]),
        (&41.into(), &serde_json::json!([41, 41, 41]))
    );
    let (header, rows) = table_of(&bench.path("p.csv"));
    assert_eq!((header.as_str(), rows.len()), ("x,weight,softmax", 41));
    let mean = |rows: &[Vec<f64>]| rows.iter().map(|r| r[0] * r[1]).sum::<f64>();
    assert!((mean(&rows) - 2.55).abs() < 0.01, "{}", mean(&rows));
    assert!((rows.iter().map(|r| r[2]).sum::<f64>() - 1.0).abs() < 1e-12);
    // On other points, debiased, and with the points of a file in another order.
    bench.write("b.csv", &bump(2.0, 7));
    let mut grid = String::from("x\n");
    (0..80).for_each(|i| writeln!(grid, "{}", 0.1 + f64::from(i) / 20.0).unwrap());
    bench.write("grid.csv", &grid);
    let blurred = bench.json(&format!("{command} --support grid.csv --output p.csv"));
    let (_, wide) = table_of(&bench.path("p.csv"));
    let sharp = bench.json(&format!("{command} --support grid.csv --output q.csv --debiased"));
    let (_, narrow) = table_of(&bench.path("q.csv"));
    assert_eq!((blurred["support"].as_u64(), sharp["debiased"].as_bool()), (Some(80), Some(true)));
    let variance = |rows: &[Vec<f64>]| {
        let mean = mean(rows);
        rows.iter().map(|r| r[1] * (r[0] - mean).powi(2)).sum::<f64>()
    };
    assert!((mean(&narrow) - 13.0 / 6.0).abs() < 0.01);
    // The kernel's blur is eps / 2.
    assert!((variance(&wide) - variance(&narrow) - 0.025).abs() < 2e-3);
    // The same points in any order are the same support.
    assert_eq!(bench.json(command)["support"], 41);
    let shown = text(&bench.orthant(command).stdout);
    assert!(shown.contains("W(a3,p)") && shown.contains("--output FILE"), "{shown}");
    // A limit: what there is, and exit code 3.
    let output =
        bench.orthant(&format!("{command} --eps 0.001 --tol 1e-12 --max-iter 2 --output r.csv"));
    assert_eq!(output.status.code(), Some(2), "eps twice");
    let command = "barycenter a.csv b.csv c.csv --columns x --weights mass";
    let output =
        bench.orthant(&format!("{command} --eps 0.001 --tol 1e-12 --max-iter 2 --output r.csv"));
    assert_eq!(output.status.code(), Some(3));
    assert!(bench.path("r.csv").exists());
}

#[test]
fn the_paper_s_linear_kernel_has_barycentres() {
    let bench = Bench::new();
    let corner = |k: usize| {
        let mut out = String::from("x,y,z,w\n");
        for i in 0..20 {
            for j in 0..20 - i {
                let p = [i, j, 19 - i - j].map(|c| f64::from(c) + 0.5);
                let norm = p.iter().map(|c| c * c).sum::<f64>().sqrt();
                let weight = (-50.0 * (p[k] / norm).acos().powi(2)).exp();
                writeln!(out, "{},{},{},{weight}", p[0] / norm, p[1] / norm, p[2] / norm).unwrap();
            }
        }
        out
    };
    for (k, name) in ["a.csv", "b.csv", "c.csv"].into_iter().enumerate() {
        bench.write(name, &corner(k));
    }
    let report = bench.json(
        "barycenter a.csv b.csv c.csv --columns x,y,z --weights w --method linear \
         --softmax 1000 --output p.csv",
    );
    assert_eq!(
        (&report["method"]["rank"], &report["settings"]["epsilon"]),
        (&3.into(), &1.0.into())
    );
    let (_, rows) = table_of(&bench.path("p.csv"));
    assert_eq!(rows.len(), 210);
    let peak = rows.iter().max_by(|p, q| p[4].total_cmp(&q[4])).unwrap();
    assert!(peak[..3].iter().all(|x| (x - 1.0 / 3f64.sqrt()).abs() < 0.07), "{peak:?}");
}

#[test]
fn bad_barycentres_are_refused_and_leave_no_files() {
    let bench = Bench::new();
    bench.write("flat.csv", "1\n2\n");
    let xy = "barycenter x.csv y.csv --columns a,b --output p.csv";
    for (arguments, message) in [
        (format!("{xy} --shares 1"), "--shares has 1 numbers for 2 clouds; give one for each"),
        (format!("{xy} --shares 1,-2"), "--shares must be finite and not negative, got -2"),
        (format!("{xy} --shares 0,0"), "--shares must have a positive and finite sum"),
        (
            format!("{xy} --shares w"),
            "--shares are numbers, one for each cloud, as in 0.2,0.3,0.5: cannot read \"w\" (a column of \
             weights of the points is --weights)",
        ),
        (
            format!("{xy} --method nystrom"),
            "the Nystrom approximation cannot be had for a barycentre; use positive features or an exact method",
        ),
        (
            "barycenter x.csv y.csv --softmax 3".to_owned(),
            "--softmax is a column of the output; add --output FILE",
        ),
        (
            "barycenter x.csv flat.csv --output p.csv".to_owned(),
            "x.csv has 3 coordinates and flat.csv has 1; use --columns to choose the same ones",
        ),
        (
            "barycenter flat.csv flat.csv --eps -1 --output p.csv".to_owned(),
            "epsilon must be positive and finite, got -1",
        ),
    ] {
        assert_eq!(bench.fails(&arguments, 2), format!("orthant: {message}"));
        assert!(!bench.path("p.csv").exists());
    }
    bench.fails("barycenter x.csv missing.csv --output p.csv", 2);
    bench.fails("barycenter x.csv y.csv --output nowhere/p.csv", 2);
    assert!(!bench.path("p.csv").exists());
}

#[test]
fn a_test_tells_different_clouds_from_equal_ones() {
    let bench = Bench::new();
    let command = "test x.csv y.csv --columns a,b --permutations 199";
    let report = bench.json(&format!("{command} --output null.csv"));
    assert_eq!(keys(&report["null"]), ["median", "q90", "q95", "q99"]);
    assert_eq!((&report["p_value"], &report["resolution"]), (&0.005.into(), &0.005.into()));
    assert_eq!((&report["permutations"], &report["stop"]), (&199.into(), &"converged".into()));
    let (header, rows) = table_of(&bench.path("null.csv"));
    assert_eq!((header.as_str(), rows.len()), ("permutation,divergence", 200));
    assert_eq!(rows[0][1], report["value"].as_f64().unwrap());
    let shown = text(&bench.orthant(command).stdout);
    assert!(shown.contains("0 of 199 permutations are at least as far apart"), "{shown}");
    // The statistic is the divergence; the default epsilon does not know which cloud a point is from.
    let epsilon = report["settings"]["epsilon"].as_f64().unwrap();
    let divergence = bench.json(&format!("divergence x.csv y.csv --columns a,b --eps {epsilon}"));
    let value = divergence["value"].as_f64().unwrap();
    assert!((report["value"].as_f64().unwrap() - value).abs() < 1e-6);
    bench.write("y.csv", &cloud(61, 0.0, 1.0));
    let same = bench.json("test x.csv y.csv --columns a,b --permutations 99 --seed 3");
    assert!(same["p_value"].as_f64().unwrap() > 0.2, "{same}");
    for method in ["lattice", "gaussian --rank 50", "online", "arccos --rank 50"] {
        let arguments =
            format!("test x.csv y.csv --columns a,b --permutations 19 --method {method}");
        assert!(bench.json(&arguments)["p_value"].as_f64().unwrap() > 0.1, "{method}");
    }
    assert_eq!(
        bench.fails("test x.csv y.csv --permutations 0", 2),
        "orthant: the number of permutations must be at least 1, got 0"
    );
}

#[test]
fn a_report_is_a_page_of_its_own() {
    let bench = Bench::new();
    let found = bench.json("report x.csv y.csv --output page.html");
    assert_eq!(found["value"], bench.json("rot x.csv y.csv")["value"]);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 3);
    let divergence = bench.json("divergence x.csv y.csv")["value"].as_f64().unwrap();
    for text in [
        "Sinkhorn divergence",
        &divergence.to_string()[..6],
        "report x.csv y.csv --output page.html",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<script") && !page.contains("src="));
    assert!(bench.fails("report x.csv y.csv", 2).contains("--output"));
    assert!(bench.fails("report x.csv y.csv -o no/such/page.html", 2).contains("no/such"));
    assert!(bench.fails("report x.csv none.csv -o other.html", 2).contains("none.csv"));
    assert!(!bench.path("other.html").exists());
    // One point, all points at one place.
    bench.write("one.csv", "1,2,3\n");
    bench.write("same.csv", "4,5,6\n4,5,6\n");
    bench.json("report one.csv same.csv --eps 1 -o one.html");
}

/// The clouds of [`Bench`] and a third one.
fn three() -> Bench {
    let bench = Bench::new();
    bench.write("z.csv", &cloud(50, -0.4, 1.3));
    bench
}

#[test]
fn compare_gives_the_divergences_of_all_pairs() {
    let bench = three();
    let rest = "--columns a,b --eps 0.1";
    let report = bench.json(&format!(
        "compare x.csv y.csv z.csv {rest} --output matrix.csv --intervals pairs.csv"
    ));
    assert_eq!(report["names"], serde_json::json!(["x", "y", "z"]));
    assert_eq!(report["points"], serde_json::json!([60, 45, 50]));
    assert_eq!((&report["pairs"], &report["finished"]), (&3.into(), &3.into()));
    assert_eq!((&report["converged"], &report["accurate"]), (&true.into(), &true.into()));
    assert_eq!(report["sharing"], "self_terms");
    let matrix = std::fs::read_to_string(bench.path("matrix.csv")).unwrap();
    let rows: Vec<Vec<&str>> = matrix.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows[0], ["name", "x", "y", "z"]);
    let pairs = std::fs::read_to_string(bench.path("pairs.csv")).unwrap();
    assert_eq!(pairs.lines().count(), 4);
    assert!(pairs.starts_with("first,second,divergence,low,high,converged\nx,y,"), "{pairs}");
    for (k, (i, j)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
        let name = ["x", "y", "z"];
        let alone = bench.json(&format!("divergence {}.csv {}.csv {rest}", name[i], name[j]));
        let value = &alone["value"];
        assert_eq!(&report["values"][i][j], value);
        assert_eq!(&report["values"][j][i], value);
        let line = &report["intervals"][k];
        assert_eq!((&line["first"], &line["second"]), (&name[i].into(), &name[j].into()));
        assert_eq!(
            (&line["low"], &line["high"]),
            (&alone["interval"]["low"], &alone["interval"]["high"])
        );
        assert_eq!(rows[i + 1][j + 1].parse::<f64>().unwrap(), value.as_f64().unwrap());
        assert!(pairs.lines().nth(k + 1).unwrap().ends_with(",true"));
    }
    for i in 0..3 {
        assert_eq!(report["values"][i][i], 0.0);
    }
    assert_eq!(report["tree"].as_array().unwrap().len(), 2);
    assert_eq!(keys(&report["tree"][0]), ["left", "right", "height", "size"]);
    assert_eq!(keys(&report["embedding"][0]), ["name", "x", "y"]);
    // Three points are a plane, if the square roots are distances.
    let place = |k: usize, axis: &str| report["embedding"][k][axis].as_f64().unwrap();
    let square = (place(0, "x") - place(1, "x")).powi(2) + (place(0, "y") - place(1, "y")).powi(2);
    assert!((square - report["values"][0][1].as_f64().unwrap()).abs() < 1e-9);

    let shown = text(&bench.orthant(&format!("compare x.csv y.csv z.csv {rest}")).stdout);
    assert!(
        shown.starts_with(
            "3 clouds, 155 points, 2 dimensions\ncoordinates: a, b\nepsilon = 0.100000\n"
        ),
        "{shown}"
    );
    assert!(shown.contains("dense: self terms solved once a cloud\nerrors at most"), "{shown}");
    assert!(shown.contains("3 of 3 pairs, "), "{shown}");
    // The clouds are in the order of the tree, as in the picture.
    let order: Vec<&str> = report["order"]
        .as_array()
        .unwrap()
        .iter()
        .map(|k| ["x", "y", "z"][usize::try_from(k.as_u64().unwrap()).unwrap()])
        .collect();
    let row = shown.lines().find(|l| l.split_whitespace().eq(order.iter().copied()));
    assert!(row.is_some(), "{order:?}: {shown}");
    assert!(shown.lines().all(|l| l.chars().count() <= 100), "{shown}");
    // For two clouds epsilon is that of divergence.
    let two =
        bench.json("compare x.csv y.csv --columns a,b")["settings"]["epsilon"].as_f64().unwrap();
    let alone =
        bench.json("divergence x.csv y.csv --columns a,b")["settings"]["epsilon"].as_f64().unwrap();
    assert!((two / alone - 1.0).abs() < 1e-14);
}

#[test]
fn compare_splits_a_file_by_a_column() {
    let bench = three();
    // The rows of all three, one after the other, and a text that is quoted.
    let mut all = String::from("kind,a,b,w,year\n");
    let tables =
        ["x.csv", "y.csv", "z.csv"].map(|f| std::fs::read_to_string(bench.path(f)).unwrap());
    for row in 1..=60 {
        let names = ["\"the, x\"", "y", "z"];
        for (k, (table, name)) in tables.iter().zip(names).enumerate() {
            if let Some(line) = table.lines().nth(row) {
                writeln!(all, "{name},{line},{}", 2000 + k).unwrap();
            }
        }
    }
    bench.write("all.csv", &all);
    let rest = "--columns a,b --weights w --eps 0.1";
    let files = bench.json(&format!("compare x.csv y.csv z.csv {rest}"));
    let groups = bench.json(&format!("compare all.csv --group kind {rest} --output m.csv"));
    assert_eq!(groups["names"], serde_json::json!(["the, x", "y", "z"]));
    assert_eq!((&groups["values"], &groups["points"]), (&files["values"], &files["points"]));
    let matrix = std::fs::read_to_string(bench.path("m.csv")).unwrap();
    assert!(matrix.starts_with("name,\"the, x\",y,z\n\"the, x\",0,"), "{matrix}");
    let years = bench.json(&format!("compare all.csv --group 5 {rest}"));
    assert_eq!(years["names"], serde_json::json!(["2000", "2001", "2002"]));
    assert_eq!(years["values"], files["values"]);
    // All columns but the group, if none are named.
    bench.write("few.csv", "g,a\nu,0\nu,1\nv,2\nv,3\n");
    let few = bench.json("compare few.csv --group g --eps 0.001");
    assert_eq!((&few["dim"], &few["points"]), (&1.into(), &serde_json::json!([2, 2])));
    assert!((few["values"][0][1].as_f64().unwrap() - 4.0).abs() < 1e-6);
    bench.write("gap.csv", "g,a\nu,0\n,1\nv,2\nv,3\n");
    assert!(bench.fails("compare gap.csv --group g", 2).contains("row 2"));
    let dropped = bench.json("compare gap.csv --group g --missing drop --eps 1");
    assert_eq!(dropped["points"], serde_json::json!([1, 2]));
}

#[test]
fn a_comparison_goes_on_where_it_was_stopped() {
    let bench = three();
    bench.write("v.csv", &cloud(40, 1.0, 0.3));
    for method in ["--method online", "--rank 200 --precision f32 --certify"] {
        let command = format!("compare x.csv y.csv z.csv v.csv --columns a,b --eps 0.1 {method}");
        let whole = bench.json(&command);
        let kept = bench.json(&format!("{command} --keep pairs.jsonl"));
        assert_eq!((&kept["values"], &kept["intervals"]), (&whole["values"], &whole["intervals"]));
        let lines = std::fs::read_to_string(bench.path("pairs.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), 7);
        // After the header, some pairs and a part of another; after a part of the header; after everything.
        let ends: Vec<usize> = lines.match_indices('\n').map(|(at, _)| at + 1).collect();
        for end in [ends[0], ends[2], ends[3] + 20, ends[4] - 1, 30, 0, lines.len()] {
            bench.write("pairs.jsonl", &lines[..end]);
            let resumed = bench.json(&format!("{command} --keep pairs.jsonl --threads 1"));
            for key in ["values", "intervals", "tree", "order", "embedding"] {
                assert_eq!(resumed[key], whole[key], "{key}");
            }
            assert_eq!(std::fs::read_to_string(bench.path("pairs.jsonl")).unwrap(), lines);
        }
        let text = text(&bench.orthant(&format!("{command} --keep pairs.jsonl")).stdout);
        assert!(text.contains("6 of 6 pairs, 6 from earlier, "), "{text}");
        // Other settings, other data, another file.
        let other = |command: &str, part: &str| {
            let message = bench.fails(&format!("{command} --keep pairs.jsonl"), 2);
            assert!(message.starts_with("orthant: pairs.jsonl: "), "{message}");
            assert!(message.contains(part), "{message}");
        };
        other(
            &command.replace("0.1", "0.2"),
            "was made with eps 0.1, this run has 0.2; use the same",
        );
        other(&command.replace(" v.csv", ""), "was made with 4 clouds, this run has 3");
        other(&command.replace("z.csv", "x.csv"), "other points or weights of \"x.csv (2)\"");
        other(&format!("{command} --weights w"), "other points or weights of \"x\"");
        bench.write("pairs.jsonl", &lines.replace("{\"first\":0,\"second\":2", "{\"second\":2"));
        other(&command, "line 3 is damaged");
        bench.write("pairs.jsonl", "a,b\n1,2\n");
        other(&command, "line 1 is damaged");
        std::fs::remove_file(bench.path("pairs.jsonl")).unwrap();
    }
    // At a time limit: what is finished is kept, and no other files are written.
    let command = "compare x.csv y.csv z.csv --columns a,b --eps 0.1 --keep late.jsonl";
    let output = bench.orthant(&format!("{command} --time-limit 0 --output late.csv --json"));
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["finished"], &report["converged"]), (&0.into(), &false.into()));
    assert_eq!((&report["values"][0][1], &report["tree"]), (&Value::Null, &Value::Null));
    assert!(!bench.path("late.csv").exists());
    let shown = text(&bench.orthant(&format!("{command} --time-limit 0")).stdout);
    assert!(shown.contains("the same command goes on where this one ended"), "{shown}");
    assert_eq!(bench.json(command)["finished"], 3);
}

#[test]
fn compare_draws_what_it_found() {
    let bench = three();
    for (name, start) in [("c.svg", &b"<"[..]), ("c.png", b"\x89PNG")] {
        let command = format!("compare x.csv y.csv z.csv --eps 0.1 --picture {name}");
        assert!(bench.orthant(&command).status.success());
        assert!(std::fs::read(bench.path(name)).unwrap().starts_with(start));
    }
    let svg = std::fs::read_to_string(bench.path("c.svg")).unwrap();
    assert!(svg.contains("All pairs") && svg.contains("The clouds in the plane"));
    let message = bench.fails("compare x.csv y.csv --picture c.pdf", 2);
    assert!(message.contains("c.pdf: pictures are .svg or .png"), "{message}");
}

#[test]
fn compare_says_what_is_wrong() {
    let bench = three();
    bench.write("line.csv", "1\n2\n");
    bench.write("zero.csv", "a,b,w\n1,2,0\n");
    for (arguments, message) in [
        (
            "compare x.csv",
            "x.csv: one cloud cannot be compared; give more files, or --group COLUMN",
        ),
        ("compare x.csv y.csv --group a", "--group splits one file into clouds; give one file"),
        ("compare x.csv --group kind", "x.csv: no column \"kind\""),
        (
            "compare x.csv y.csv line.csv",
            "x.csv has 3 coordinates and line.csv has 1; use --columns",
        ),
        ("compare x.csv y.csv missing.csv", "missing.csv: "),
        ("compare x.csv zero.csv --columns a,b --weights w", "zero.csv: all weights are zero"),
        ("compare x.csv y.csv --output .", ".: a table in a file without a suffix"),
        ("compare x.csv y.csv --keep no/k.jsonl", "there is no such directory"),
        (
            "compare line.csv line.csv --method lattice --rank 5 --anchors sobol",
            "--anchors are those",
        ),
        ("compare zero.csv zero.csv --columns a,b", "all points of all clouds coincide"),
        (
            "compare x.csv y.csv z.csv --columns a,b --eps 1e-12",
            "x.csv: epsilon = 1e-12 is too small",
        ),
        ("compare x.csv - -", "only one of the files can come from standard input"),
    ] {
        let found = bench.fails(arguments, 2);
        assert!(
            found.starts_with(&format!("orthant: {message}")) || found.contains(message),
            "{found}"
        );
    }
    bench.write("one.csv", "g,a\nu,0\nu,1\n");
    assert!(bench.fails("compare one.csv --group g", 2).contains("has one value, \"u\""));
    // Not converged: the matrix so far, with marks.
    let output = bench.orthant("compare x.csv y.csv z.csv --columns a,b --eps 0.01 --max-iter 1");
    assert_eq!(output.status.code(), Some(3));
    let shown = text(&output.stdout);
    assert!(
        shown.contains('*') && shown.contains("Not converged (*): raise --max-iter"),
        "{shown}"
    );
    // Too many for a matrix: the closest pairs.
    let many = vec!["x.csv"; 14].join(" ");
    let shown = text(&bench.orthant(&format!("compare {many} y.csv --columns a,b --eps 1")).stdout);
    assert!(shown.contains("The 10 closest pairs"), "{shown}");
}

#[test]
fn the_commands_of_the_readme_run() {
    let root = Path::new("../..");
    let bench = Bench::new();
    std::fs::create_dir(bench.path("examples")).unwrap();
    for name in ["before.csv", "after.csv", "soil.csv", "sites.csv"] {
        std::fs::copy(root.join("examples").join(name), bench.path("examples").join(name)).unwrap();
    }
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let commands: Vec<&str> = readme
        .split("```sh\n")
        .skip(1)
        .flat_map(|block| block.split("```").next().unwrap().lines())
        .filter_map(|l| l.strip_prefix("cargo run --release -- ").or(l.strip_prefix("orthant ")))
        // The demonstration is run in full by the test task.
        .filter(|c| *c != "demo")
        .collect();
    assert_eq!(commands.len(), 20, "{commands:?}");
    for command in &commands {
        let output = bench.orthant(command);
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    }
    // What the README shows is what the command prints, but for times.
    let shown = text(&bench.orthant(commands[0]).stdout);
    for line in shown.lines().filter(|l| !l.trim_start().starts_with("time")) {
        assert!(readme.contains(line.trim_end()), "{line}");
    }
    for name in ["potentials.csv", "pairs.csv", "moved.csv", "partners.csv"] {
        assert!(bench.path(name).exists(), "{name}");
    }
    // So are the moved points, but for the last digits, which are the machine's.
    let moved = std::fs::read_to_string(bench.path("moved.csv")).unwrap();
    for line in moved.lines().take(3) {
        assert!(readme.contains(&line[..10]), "{line}");
    }
}

#[test]
fn a_flow_writes_where_points_went_and_draws_it() {
    let bench = Bench::new();
    let flow = "flow x.csv y.csv --columns a,b --eps 0.05 --accuracy 1e-6";
    let files = "--output moved.csv --path path.csv --picture p.svg --frames f.svg --trace t.jsonl";
    let json = bench.json(&format!("{flow} {files}"));
    let moves = &json["flow"];
    assert_eq!(keys(moves), ["first", "steps", "gradients", "moved", "stop", "done"]);
    assert_eq!((&moves["stop"], &moves["done"]), (&"still".into(), &true.into()));
    let [first, last] = [&moves["first"], &json["value"]].map(|v| v.as_f64().unwrap());
    assert!(last < 1e-3 * first, "{first} to {last}");
    // What was written is what was said; the column that is no coordinate stays.
    let apart = "--columns a,b --eps 0.05 --accuracy 1e-6";
    let again = bench.json(&format!("divergence moved.csv y.csv {apart}"));
    assert!((again["value"].as_f64().unwrap() - last).abs() < 1e-6 * first);
    let at_start = bench.json(&format!("divergence x.csv y.csv {apart}"));
    assert!((at_start["value"].as_f64().unwrap() - first).abs() < 1e-6);
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    let weights = |name: &str| -> Vec<String> {
        read(name).lines().map(|l| l.rsplit(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(weights("moved.csv"), weights("x.csv"));
    // Snapshots: the first is the start, the last the end, and each has a frame.
    let path = read("path.csv");
    let rows: Vec<Vec<f64>> = path
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert_eq!(path.lines().next(), Some("step,row,a,b"));
    let shots = rows.len() / 60;
    assert_eq!(rows.len(), 60 * shots);
    assert!((10..=22).contains(&shots) || moves["steps"] == shots - 1, "{shots}");
    let row = |name: &str, line: usize| -> Vec<f64> {
        let text = read(name);
        text.lines().nth(line).unwrap().split(',').take(2).map(|c| c.parse().unwrap()).collect()
    };
    assert_eq!((rows[4][..2].to_vec(), rows[4][2..].to_vec()), (vec![0.0, 5.0], row("x.csv", 5)));
    let end = rows.last().unwrap();
    assert_eq!(end[..2], [moves["steps"].as_f64().unwrap(), 60.0]);
    assert_eq!(end[2..], row("moved.csv", 60));
    for k in 0..shots {
        assert!(read(&format!("f-{k:03}.svg")).contains("<svg"));
    }
    assert!(!bench.path(&format!("f-{shots:03}.svg")).exists());
    assert!(read("f-000.svg").contains("step 0: divergence"));
    let picture = read("p.svg");
    assert!(picture.contains("x on its way") && picture.contains("ways of some points"));
    assert!(read("t.jsonl").lines().count() > shots);
    // For people.
    let output = bench.orthant(&format!("{flow} --steps 3 --every 2 --path p.npy -o m.npy"));
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("3 steps"), "{}", text(&output.stdout));
    let words = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("times as large"), "{words}");
    // Steps 0, 2 and 3 of 60 points, and four columns.
    let array = std::fs::read(bench.path("p.npy")).unwrap();
    assert!(String::from_utf8_lossy(&array[..128]).contains("(180, 4)"));
}

#[test]
fn a_flow_that_does_not_get_there_says_so() {
    let bench = Bench::new();
    let flow = "flow x.csv y.csv --columns a,b --eps 0.05";
    assert!(bench.orthant(&format!("{flow} --until 0.1")).status.success());
    let output = bench.orthant(&format!("{flow} --until 1e-6 --steps 2 --output moved.csv"));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("raise --steps"), "{}", text(&output.stdout));
    assert!(bench.path("moved.csv").exists());
    for (options, message) in [
        ("--step 0", "the step must be positive and finite, got 0"),
        ("--momentum 1", "the momentum must be at least 0 and below 1, got 1"),
        ("--until -1", "until must be at least 0 and below 1, got -1"),
        ("--method nystrom", "there is no derivative by the points"),
        ("--picture p.pdf", "p.pdf: pictures are .svg or .png"),
        ("--frames nowhere/f.png", "there is no such directory"),
        ("--path p.csv", "--output and --path are the same file"),
        ("--path t.xyz", "t.xyz"),
    ] {
        let found = bench.fails(&format!("{flow} --output p.csv {options}"), 2);
        assert!(found.contains(message), "{options}: {found}");
        assert!(!bench.path("p.csv").exists(), "{options}");
    }
    bench.write("line.csv", "a\n1\n2\n");
    let message = bench.fails("flow x.csv line.csv --output p.csv", 2);
    assert!(
        message.contains("line.csv has the columns \"a\" and x.csv has \"a\", \"b\", \"w\""),
        "{message}"
    );
}

#[test]
fn a_barycentre_may_have_points_that_move() {
    let bench = Bench::new();
    // A translate: the barycentre is in the middle.
    let moved: String = std::iter::once("a,b,w\n".to_owned())
        .chain(cloud(60, 0.0, 1.0).lines().skip(1).map(|line| {
            let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
            format!("{},{},{}\n", cells[0] + 4.0, cells[1] - 2.0, cells[2])
        }))
        .collect();
    bench.write("z.csv", &moved);
    let command = "barycenter x.csv z.csv --columns a,b --eps 0.05 --debiased";
    let json = bench.json(&format!("{command} --free 50 --shares 3,1 --output mean.csv"));
    assert_eq!(json["support"], 50);
    assert_eq!(keys(&json["free"]), ["first", "steps", "gradients", "moved", "stop", "done"]);
    // l (1 - l) |t|^2 is what is left.
    let value = json["value"].as_f64().unwrap();
    assert!((value - 0.1875 * 20.0).abs() < 0.01, "{value}");
    let mean = std::fs::read_to_string(bench.path("mean.csv")).unwrap();
    assert_eq!(mean.lines().next(), Some("a,b,weight"));
    assert_eq!(mean.lines().count(), 51);
    let sums = mean.lines().skip(1).fold([0.0; 3], |sums, line| {
        let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
        [sums[0] + cells[0] * cells[2], sums[1] + cells[1] * cells[2], sums[2] + cells[2]]
    });
    assert!((sums[2] - 1.0).abs() < 1e-12 && (sums[0] - 1.5).abs() < 0.05, "{sums:?}");
    assert!((sums[1] - 0.0).abs() < 0.05, "{sums:?}");
    // From points of a file, with its weights.
    let json = bench.json(&format!("{command} --start y.csv --weights w --output m.csv"));
    assert_eq!((&json["support"], &json["converged"]), (&45.into(), &true.into()));
    let written = std::fs::read_to_string(bench.path("m.csv")).unwrap();
    let weights: Vec<f64> = written
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    assert!((weights[1] / weights[2] - 3.0).abs() < 1e-9, "{weights:?}");
    let output = bench.orthant(&format!("{command} --free 20"));
    assert!(text(&output.stdout).contains("on 20 points that are free"));
    for (options, message) in [
        (
            "--free 20 --softmax 2 --output p.csv",
            "--softmax has no meaning for points that are free",
        ),
        ("--free 20 --support y.csv", "--support has no meaning for points that are free"),
        ("--free 20 --step -1", "the step must be positive"),
        ("--free 20 --method nystrom", "there is no derivative by the points"),
    ] {
        let found = bench.fails(&format!("{command} {options}"), 2);
        assert!(found.contains(message), "{options}: {found}");
    }
    let output = bench.orthant(&format!("{command} --free 20 --steps 1"));
    assert_eq!(output.status.code(), Some(3));
}
