//! `compare`: all pairs, kept and drawn.

use std::fmt::Write as _;

use serde_json::Value;

use crate::common::{Sandbox, cloud, keys, text};

/// The clouds of [`Sandbox`] and a third one.
fn three() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("z.csv", &cloud(50, -0.4, 1.3));
    sandbox
}

#[test]
fn compare_gives_the_divergences_of_all_pairs() {
    let sandbox = three();
    let rest = "--columns a,b --eps 0.1";
    let report = sandbox.json(&format!(
        "compare x.csv y.csv z.csv {rest} --output matrix.csv --intervals pairs.csv"
    ));
    assert_eq!(report["names"], serde_json::json!(["x", "y", "z"]));
    assert_eq!(report["points"], serde_json::json!([60, 45, 50]));
    assert_eq!((&report["pairs"], &report["finished"]), (&3.into(), &3.into()));
    assert_eq!((&report["converged"], &report["accurate"]), (&true.into(), &true.into()));
    assert_eq!(report["sharing"], "self_terms");
    let matrix = std::fs::read_to_string(sandbox.path("matrix.csv")).unwrap();
    let rows: Vec<Vec<&str>> = matrix.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows[0], ["name", "x", "y", "z"]);
    let pairs = std::fs::read_to_string(sandbox.path("pairs.csv")).unwrap();
    assert_eq!(pairs.lines().count(), 4);
    assert!(pairs.starts_with("first,second,divergence,low,high,converged\nx,y,"), "{pairs}");
    for (k, (i, j)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
        let name = ["x", "y", "z"];
        let alone = sandbox.json(&format!("divergence {}.csv {}.csv {rest}", name[i], name[j]));
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

    let shown = text(&sandbox.orthant(&format!("compare x.csv y.csv z.csv {rest}")).stdout);
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
        sandbox.json("compare x.csv y.csv --columns a,b")["settings"]["epsilon"].as_f64().unwrap();
    let alone = sandbox.json("divergence x.csv y.csv --columns a,b")["settings"]["epsilon"]
        .as_f64()
        .unwrap();
    assert!((two / alone - 1.0).abs() < 1e-14);
}

#[test]
fn compare_splits_a_file_by_a_column() {
    let sandbox = three();
    // The rows of all three, one after the other, and a text that is quoted.
    let mut all = String::from("kind,a,b,w,year\n");
    let tables =
        ["x.csv", "y.csv", "z.csv"].map(|f| std::fs::read_to_string(sandbox.path(f)).unwrap());
    for row in 1..=60 {
        let names = ["\"the, x\"", "y", "z"];
        for (k, (table, name)) in tables.iter().zip(names).enumerate() {
            if let Some(line) = table.lines().nth(row) {
                writeln!(all, "{name},{line},{}", 2000 + k).unwrap();
            }
        }
    }
    sandbox.write("all.csv", &all);
    let rest = "--columns a,b --weights w --eps 0.1";
    let files = sandbox.json(&format!("compare x.csv y.csv z.csv {rest}"));
    let groups = sandbox.json(&format!("compare all.csv --group kind {rest} --output m.csv"));
    assert_eq!(groups["names"], serde_json::json!(["the, x", "y", "z"]));
    assert_eq!((&groups["values"], &groups["points"]), (&files["values"], &files["points"]));
    let matrix = std::fs::read_to_string(sandbox.path("m.csv")).unwrap();
    assert!(matrix.starts_with("name,\"the, x\",y,z\n\"the, x\",0,"), "{matrix}");
    let years = sandbox.json(&format!("compare all.csv --group 5 {rest}"));
    assert_eq!(years["names"], serde_json::json!(["2000", "2001", "2002"]));
    assert_eq!(years["values"], files["values"]);
    // All columns but the group, if none are named.
    sandbox.write("few.csv", "g,a\nu,0\nu,1\nv,2\nv,3\n");
    let few = sandbox.json("compare few.csv --group g --eps 0.001");
    assert_eq!((&few["dim"], &few["points"]), (&1.into(), &serde_json::json!([2, 2])));
    assert!((few["values"][0][1].as_f64().unwrap() - 4.0).abs() < 1e-6);
    sandbox.write("gap.csv", "g,a\nu,0\n,1\nv,2\nv,3\n");
    assert!(sandbox.fails("compare gap.csv --group g", 2).contains("row 2"));
    let dropped = sandbox.json("compare gap.csv --group g --missing drop --eps 1");
    assert_eq!(dropped["points"], serde_json::json!([1, 2]));
}

#[test]
fn a_comparison_goes_on_where_it_was_stopped() {
    let sandbox = three();
    sandbox.write("v.csv", &cloud(40, 1.0, 0.3));
    for method in ["--method online", "--rank 200 --precision f32 --certify"] {
        let command = format!("compare x.csv y.csv z.csv v.csv --columns a,b --eps 0.1 {method}");
        let whole = sandbox.json(&command);
        let kept = sandbox.json(&format!("{command} --keep pairs.jsonl"));
        assert_eq!((&kept["values"], &kept["intervals"]), (&whole["values"], &whole["intervals"]));
        let lines = std::fs::read_to_string(sandbox.path("pairs.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), 7);
        // After the header, some pairs and a part of another; after a part of the header; after everything.
        let ends: Vec<usize> = lines.match_indices('\n').map(|(at, _)| at + 1).collect();
        for end in [ends[0], ends[2], ends[3] + 20, ends[4] - 1, 30, 0, lines.len()] {
            sandbox.write("pairs.jsonl", &lines[..end]);
            let resumed = sandbox.json(&format!("{command} --keep pairs.jsonl --threads 1"));
            for key in ["values", "intervals", "tree", "order", "embedding"] {
                assert_eq!(resumed[key], whole[key], "{key}");
            }
            assert_eq!(std::fs::read_to_string(sandbox.path("pairs.jsonl")).unwrap(), lines);
        }
        let text = text(&sandbox.orthant(&format!("{command} --keep pairs.jsonl")).stdout);
        assert!(text.contains("6 of 6 pairs, 6 from earlier, "), "{text}");
        // Other settings, other data, another file.
        let other = |command: &str, part: &str| {
            let message = sandbox.fails(&format!("{command} --keep pairs.jsonl"), 2);
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
        sandbox.write("pairs.jsonl", &lines.replace("{\"first\":0,\"second\":2", "{\"second\":2"));
        other(&command, "line 3 is damaged");
        sandbox.write("pairs.jsonl", "a,b\n1,2\n");
        other(&command, "line 1 is damaged");
        std::fs::remove_file(sandbox.path("pairs.jsonl")).unwrap();
    }
    // At a time limit: what is finished is kept, and no other files are written.
    let command = "compare x.csv y.csv z.csv --columns a,b --eps 0.1 --keep late.jsonl";
    let output = sandbox.orthant(&format!("{command} --time-limit 0 --output late.csv --json"));
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["finished"], &report["converged"]), (&0.into(), &false.into()));
    assert_eq!((&report["values"][0][1], &report["tree"]), (&Value::Null, &Value::Null));
    assert!(!sandbox.path("late.csv").exists());
    let shown = text(&sandbox.orthant(&format!("{command} --time-limit 0")).stdout);
    assert!(shown.contains("the same command goes on where this one ended"), "{shown}");
    assert_eq!(sandbox.json(command)["finished"], 3);
}

#[test]
fn compare_draws_what_it_found() {
    let sandbox = three();
    for (name, start) in [("c.svg", &b"<"[..]), ("c.png", b"\x89PNG")] {
        let command = format!("compare x.csv y.csv z.csv --eps 0.1 --picture {name}");
        assert!(sandbox.orthant(&command).status.success());
        assert!(std::fs::read(sandbox.path(name)).unwrap().starts_with(start));
    }
    let svg = std::fs::read_to_string(sandbox.path("c.svg")).unwrap();
    assert!(svg.contains("All pairs") && svg.contains("The clouds in the plane"));
    let message = sandbox.fails("compare x.csv y.csv --picture c.pdf", 2);
    assert!(message.contains("c.pdf: pictures are .svg or .png"), "{message}");
}

#[test]
fn compare_says_what_is_wrong() {
    let sandbox = three();
    sandbox.write("line.csv", "1\n2\n");
    sandbox.write("zero.csv", "a,b,w\n1,2,0\n");
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
        let found = sandbox.fails(arguments, 2);
        assert!(
            found.starts_with(&format!("orthant: {message}")) || found.contains(message),
            "{found}"
        );
    }
    sandbox.write("one.csv", "g,a\nu,0\nu,1\n");
    assert!(sandbox.fails("compare one.csv --group g", 2).contains("has one value, \"u\""));
    // Not converged: the matrix so far, with marks.
    let output = sandbox.orthant("compare x.csv y.csv z.csv --columns a,b --eps 0.01 --max-iter 1");
    assert_eq!(output.status.code(), Some(3));
    let shown = text(&output.stdout);
    assert!(
        shown.contains('*') && shown.contains("Not converged (*): raise --max-iter"),
        "{shown}"
    );
    // Too many for a matrix: the closest pairs.
    let many = vec!["x.csv"; 14].join(" ");
    let shown =
        text(&sandbox.orthant(&format!("compare {many} y.csv --columns a,b --eps 1")).stdout);
    assert!(shown.contains("The 10 closest pairs"), "{shown}");
}
