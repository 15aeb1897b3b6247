//! `rot` and `divergence`: values, errors, potentials, pairs.

use std::path::Path;

use serde_json::Value;

use crate::common::{Sandbox, TERM, cloud, keys, problem_keys, text};

#[test]
fn json_has_the_documented_keys() {
    let sandbox = Sandbox::new();
    let rot = sandbox.json("rot x.csv y.csv --columns a,b --eps 0.1");
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

    let divergence = sandbox.json("divergence x.csv y.csv --columns a,b --eps 0.1");
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
    let sandbox = Sandbox::new();
    sandbox.write("p.csv", "0,0\n2,0\n");
    sandbox.write("q.csv", "0,3\n0,1\n");
    // Squared distances between the four points, every pair twice, and four zeros: 2 (4 + 4 + 1 + 9 + 5 + 13) / 16.
    let epsilon = sandbox.json("rot p.csv q.csv")["settings"]["epsilon"].as_f64().unwrap();
    assert!((epsilon - 0.05 * 4.5).abs() < 1e-15, "{epsilon}");
    let output = text(&sandbox.orthant("rot p.csv q.csv").stdout);
    assert!(output.contains("epsilon = 0.225000 (5 % of the mean cost, 4.50000)"), "{output}");
    sandbox.write("one.csv", "1,1\n");
    assert_eq!(
        sandbox.fails("rot one.csv one.csv", 2),
        "orthant: all points of all clouds coincide, so there is no scale to choose epsilon from; give --eps a number"
    );
    assert_eq!(sandbox.json("rot one.csv one.csv --eps 1")["value"], 0.0);
}

#[test]
fn every_method_runs_and_exact_ones_agree() {
    let sandbox = Sandbox::new();
    let value = |method: &str| {
        let arguments =
            format!("rot x.csv y.csv --columns a,b --eps 0.2 --tol 1e-9 --method {method}");
        sandbox.json(&arguments)["value"].as_f64().unwrap()
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
    sandbox.write("p.csv", "0.6,0.8\n0.8,0.6\n");
    sandbox.write("q.csv", "1,0.1\n");
    let linear = sandbox.json("rot p.csv q.csv --method linear");
    assert_eq!(linear["method"]["rank"], 2);
    assert_eq!(linear["settings"]["epsilon"], 1.0);
    // Against one point the plan is the product.
    let cost = -0.5 * (0.68_f64.ln() + 0.86_f64.ln());
    assert!((linear["transport_cost"].as_f64().unwrap() - cost).abs() < 1e-12);
}

#[test]
fn all_anchors_approach_the_exact_value() {
    let sandbox = Sandbox::new();
    let problem = "rot x.csv y.csv --columns a,b --eps 0.2 --tol 1e-9";
    let exact = sandbox.json(&format!("{problem} --method dense"))["value_kl"].as_f64().unwrap();
    // Random features of rank 2000: their error is some part of 1/sqrt(rank), relative to epsilon.
    for anchors in ["sobol", "iid", "orthogonal", "paper"] {
        let report = sandbox.json(&format!("{problem} --anchors {anchors} --rank 2000"));
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
    let default = sandbox.json(&format!("{problem} --method gaussian"));
    assert_eq!(default["method"]["rank"], 1000);
    let sobol = sandbox.json(&format!("{problem} --method gaussian --anchors sobol --rank 1000"));
    assert_eq!(default["value"], sobol["value"]);

    // A lattice keeps to the accuracy and to its bound.
    for (options, accuracy) in
        [("", 1e-3), ("--accuracy 1e-8", 1e-8), ("--no-gauge --accuracy 1e-6", 1e-6)]
    {
        let report = sandbox.json(&format!("{problem} --anchors lattice {options}"));
        assert_eq!(report["method"]["name"], "lattice");
        let bound = report["error_bound"].as_f64().unwrap();
        assert!(bound <= accuracy * exact, "{options}: {bound}");
        let error = (report["value_kl"].as_f64().unwrap() - exact).abs();
        assert!(error <= bound, "{options}: {error} {bound}");
    }
    let few = sandbox.json(&format!("{problem} --anchors lattice --rank 40"));
    assert!(few["method"]["rank"].as_u64().unwrap() <= 40, "{few}");
}

#[test]
fn people_are_told_what_was_chosen_and_how_good_it_is() {
    let sandbox = Sandbox::new();
    let row = |arguments: &str, name: &str| -> Option<String> {
        let output = sandbox.orthant(arguments);
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
    let nodes = sandbox.json(&lattice)["method"]["rank"].to_string();
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
    let sandbox = Sandbox::new();
    let problem = "rot x.csv y.csv --columns a,b --eps 0.5 --tol 1e-10";
    let exact = sandbox.json(&format!("{problem} --method dense"))["value_kl"].as_f64().unwrap();
    for (options, rank, error) in [
        ("", 105, 1e-9),
        ("--rank 40 --seed 3", 40, 1e-4),
        ("--rank 40 --landmarks uniform", 40, 1e-3),
    ] {
        let report = sandbox.json(&format!("{problem} --method nystrom {options}"));
        assert_eq!(
            (&report["method"]["name"], &report["method"]["rank"]),
            (&"nystrom".into(), &rank.into())
        );
        let value = report["value_kl"].as_f64().unwrap();
        assert!((value - exact).abs() < error, "{options}: {value} {exact}");
        assert_eq!((&report["error_bound"], &report["interval"]), (&Value::Null, &Value::Null));
    }
    let divergence = "divergence x.csv y.csv --columns a,b --eps 0.5 --method nystrom";
    assert_eq!(sandbox.json(divergence)["kernels"], "shared");
    let output = text(&sandbox.orthant(&format!("{divergence} --rank 40")).stdout);
    for part in ["nystrom, 40 landmarks, f64", "the same landmarks", "not known"] {
        assert!(output.contains(part), "{output}");
    }
    // The failure that the paper describes is no bad input: exit code 1.
    let message = sandbox.fails(
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
    let sandbox = Sandbox::new();
    sandbox.write("x.csv", &cloud(2000, 0.0, 1.0));
    sandbox.write("y.csv", &cloud(2000, 0.5, 0.6));
    let report = |options: &str| {
        sandbox.json(&format!("divergence x.csv y.csv --columns a,b --eps 0.1 {options}"))
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
    let sandbox = Sandbox::new();
    let cloud = |n: usize, scale: f64| {
        let point = |i: usize| {
            let c = [0.885, 0.783, 0.693, 0.613, 0.543, 0.48]
                .map(|p| (scale * (i as f64 * p).fract()).to_string());
            c.join(",") + "\n"
        };
        (1..=n).map(point).collect::<String>()
    };
    sandbox.write("x.csv", &cloud(1500, 1.0));
    sandbox.write("y.csv", &cloud(1500, 0.8));
    let problem = "rot x.csv y.csv --eps 2 --accuracy 5e-3";
    let report = sandbox.json(problem);
    assert_eq!(report["method"]["name"], "gaussian");
    assert_eq!(report["error_bound"], Value::Null);
    let number = |report: &Value, key: &str| report[key].as_f64().unwrap();
    let [low, high] = ["low", "high"].map(|end| number(&report["interval"], end));
    assert_eq!(report["interval"]["kind"], "sampled");
    assert!(high - low <= 2.0 * 5e-3 * number(&report, "value_kl"), "{report}");
    let exact = number(&sandbox.json("rot x.csv y.csv --eps 2 --method online"), "value");
    assert!(low <= exact && exact <= high, "{low} {exact} {high}");
    let output = text(&sandbox.orthant(problem).stdout);
    assert!(output.contains(" in [") && output.contains("samples of the plan"), "{output}");
    // What cannot be reached is said, by the exit code too.
    let short = sandbox.orthant("rot x.csv y.csv --eps 2 --accuracy 1e-9 --max-iter 2");
    assert_eq!(short.status.code(), Some(3), "{}", text(&short.stdout));
}

#[test]
fn a_limit_is_exit_code_3_with_the_result_so_far() {
    let sandbox = Sandbox::new();
    for (limit, stop) in [("--max-iter 2", "iteration_limit"), ("--time-limit 0s", "time_limit")] {
        let output = sandbox.orthant(&format!("rot x.csv y.csv --eps 0.001 {limit} --json"));
        assert_eq!(output.status.code(), Some(3));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["converged"], false);
        assert_eq!(report["stop"], stop);
        assert!(report["value"].as_f64().unwrap().is_finite());
        assert!(report["marginal_error_x"].as_f64().unwrap() > 1e-6);
        let output = sandbox.orthant(&format!("divergence x.csv y.csv --eps 0.001 {limit}"));
        assert_eq!(output.status.code(), Some(3));
        assert!(text(&output.stdout).contains("NO: "), "{}", text(&output.stdout));
    }
}

#[test]
fn potentials_are_written_whole_or_not_at_all() {
    let sandbox = Sandbox::new();
    sandbox.fails("rot x.csv nope.csv --output p.csv", 2);
    sandbox.fails("rot x.csv y.csv --eps -1 --output p.csv", 2);
    let files = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    assert_eq!(files(sandbox.folder.path()), 2);

    let report = sandbox.json("rot x.csv y.csv --weights w --eps 0.1 --output p.csv");
    assert_eq!(files(sandbox.folder.path()), 3);
    let table = std::fs::read_to_string(sandbox.path("p.csv")).unwrap();
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

    sandbox.json("divergence x.csv y.csv --weights w --eps 0.1 --output p.csv");
    let table = std::fs::read_to_string(sandbox.path("p.csv")).unwrap();
    assert!(
        table.starts_with(
            "cloud,row,weight,potential,potential_kl,self_potential,self_potential_kl\n"
        )
    );
}

#[test]
fn pairs_are_written_whole_or_not_at_all() {
    let sandbox = Sandbox::new();
    sandbox.fails("rot x.csv nope.csv --pairs p.csv", 2);
    let message = sandbox.fails("rot x.csv y.csv --method nystrom --pairs p.csv", 2);
    assert!(message.contains("--pairs"), "{message}");
    sandbox.fails("rot x.csv y.csv --pairs missing/p.csv", 2);
    for usage in ["rot x.csv y.csv --count 5", "divergence x.csv y.csv --pairs p.csv"] {
        assert_eq!(sandbox.orthant(usage).status.code(), Some(2), "{usage}");
    }
    sandbox.fails("rot x.csv y.csv --pairs p.csv --count 1000000000000 --memory 1G", 1);
    assert!(!sandbox.path("p.csv").exists());

    let pairs = |arguments: &str| -> Vec<[usize; 2]> {
        let report = sandbox.json(&format!("rot x.csv y.csv {arguments} --pairs p.csv"));
        assert_eq!(keys(&report), problem_keys());
        let table = std::fs::read_to_string(sandbox.path("p.csv")).unwrap();
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
    let shown = sandbox.orthant("rot x.csv y.csv --eps 0.1 --pairs p.csv");
    assert!(!text(&shown.stdout).contains("p.csv"));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let sandbox = Sandbox::new();
    sandbox.write("x.csv", &cloud(1500, 0.0, 1.0));
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
                serde_json::from_slice(&sandbox.orthant(&arguments).stdout).unwrap();
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
fn unbalanced_transport_takes_weights_as_given() {
    let sandbox = Sandbox::new();
    sandbox.write("p.csv", "x,w\n0,400\n");
    sandbox.write("q.csv", "x,w\n1,300\n");
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
    let report = sandbox.json(&format!("{problem} --reach 1.5"));
    let exact = mass(400.0, 300.0, 1.5);
    close(&report, "mass", exact);
    close(&report, "transport_cost", exact);
    close(&report["settings"], "rho_x", 4.5);
    close(&report, "marginal_gap_x", (exact - 400.0).abs());
    close(&report, "marginal_gap_y", (exact - 300.0).abs());
    let report = sandbox.json(&format!("{problem} --reach 1.5 --normalize"));
    close(&report, "mass", mass(1.0, 1.0, 1.5));
    let report = sandbox.json(&format!("{problem} --reach-x 1.5"));
    close(&report, "mass", 300.0);
    assert_eq!(report["settings"]["rho_y"], Value::Null);
    let report = sandbox.json(problem);
    assert_eq!((&report["mass"], &report["settings"]["rho_x"]), (&1.0.into(), &Value::Null));

    let shown = text(&sandbox.orthant(&format!("{problem} --reach 1.5")).stdout);
    assert!(shown.contains("rho = 4.5"), "{shown}");
    assert!(shown.contains("the clouds have 400"), "{shown}");
    let same = sandbox.json("divergence x.csv x.csv --weights w --eps 0.1 --reach 0.3 --tol 1e-12");
    assert!(
        same["value"].as_f64().unwrap().abs() < 1e-10 * same["cross"]["value_kl"].as_f64().unwrap()
    );
    // Intervals are about value_kl, which is where they are shown.
    let certified =
        "rot x.csv y.csv --columns a,b --eps 0.1 --reach 0.3 --anchors sobol --rank 300 --certify";
    let report = sandbox.json(certified);
    let exact = sandbox.json("rot x.csv y.csv --columns a,b --eps 0.1 --reach 0.3 --method online");
    let of = |key: &str| report["interval_kl"][key].as_f64().unwrap();
    let value = exact["value_kl"].as_f64().unwrap();
    assert!(of("low") < value && value < of("high"), "{report} {exact}");
    assert_eq!(
        (&report["interval_kl"]["kind"], &report["interval"]),
        (&"sampled".into(), &Value::Null)
    );
    let shown = text(&sandbox.orthant(certified).stdout);
    let line = |name: &str| shown.lines().find(|l| l.trim_start().starts_with(name)).unwrap();
    assert!(line("value_kl ").contains(" in ["), "{shown}");
    assert!(!line("value ").contains(" in ["), "{shown}");
    sandbox.json("rot p.csv q.csv --weights w --eps 0.5 --reach 1 --output potentials.csv");
    let table = std::fs::read_to_string(sandbox.path("potentials.csv")).unwrap();
    assert!(table.lines().nth(1).unwrap().starts_with("x,1,400,"), "{table}");
}

#[test]
fn a_trace_has_a_line_for_each_iteration() {
    let sandbox = Sandbox::new();
    let problem = "divergence x.csv y.csv --columns a,b --eps 0.1 --trace trace.jsonl";
    for solver in ["plain", "anderson", "accelerated"] {
        let report = sandbox.json(&format!("{problem} --solver {solver}"));
        let trace = std::fs::read_to_string(sandbox.path("trace.jsonl")).unwrap();
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
    let relaxed = sandbox.orthant("rot x.csv y.csv --eps 0.1 --reach 1 --solver accelerated");
    assert_eq!(relaxed.status.code(), Some(2));
    assert!(text(&relaxed.stderr).contains("use the solver anderson or plain"));
    let none = sandbox.orthant("rot x.csv y.csv --eps 0.1 --trace missing/trace.jsonl");
    assert_eq!(none.status.code(), Some(2));
}
