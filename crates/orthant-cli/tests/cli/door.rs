//! What stands between files and the library: columns, headers, rows, groups, scales, what may be written where.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Sandbox, cloud, text};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// A table without its header, as rows of text.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|l| l.split(',').map(str::to_owned).collect()).collect()
}

fn header(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap().lines().next().unwrap().to_owned()
}

/// The first file of [`Sandbox`] with its columns in another order.
fn swapped(sandbox: &Sandbox, name: &str, columns: &str) {
    let order: Vec<usize> =
        columns.split(',').map(|c| ["a", "b", "w"].iter().position(|n| *n == c).unwrap()).collect();
    let text = std::fs::read_to_string(sandbox.path("y.csv")).unwrap();
    let mut out = format!("{columns}\n");
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        writeln!(out, "{}", order.iter().map(|&c| cells[c]).collect::<Vec<_>>().join(",")).unwrap();
    }
    sandbox.write(name, &out);
}

#[test]
fn columns_are_matched_by_name() {
    let sandbox = Sandbox::new();
    swapped(&sandbox, "other.csv", "w,b,a");
    let value = |arguments: &str| number(&sandbox.json(arguments)["value"]);
    for rest in ["--eps 0.1", "--eps 0.1 --columns a,b", "--eps 0.1 --weights w"] {
        let expected = value(&format!("divergence x.csv y.csv {rest}"));
        assert_eq!(value(&format!("divergence x.csv other.csv {rest}")), expected, "{rest}");
    }
    // By position the columns are others.
    let expected = value("divergence x.csv y.csv --eps 0.1");
    assert_ne!(value("divergence x.csv other.csv --eps 0.1 --by-position"), expected);
    // All commands do it.
    let same = sandbox.json("test x.csv other.csv --permutations 19 --eps 0.1");
    assert_eq!(
        same["value"],
        sandbox.json("test x.csv y.csv --permutations 19 --eps 0.1")["value"]
    );
    let matrix =
        |files: &str| sandbox.json(&format!("compare {files} --eps 0.1"))["values"].clone();
    assert_eq!(matrix("x.csv other.csv"), matrix("x.csv y.csv"));
    let mean = |files: &str| {
        sandbox.json(&format!("barycenter {files} --eps 0.1 --output mean.csv"));
        std::fs::read_to_string(sandbox.path("mean.csv")).unwrap()
    };
    assert_eq!(mean("x.csv other.csv"), mean("x.csv y.csv"));
    let moved = |at: &str| {
        sandbox.json(&format!("map x.csv y.csv --columns a,b --eps 0.1 --at {at} -o m.csv"));
        let columns = header(&sandbox.path("m.csv"));
        let a = columns.split(',').position(|name| name == "a").unwrap();
        rows(&sandbox.path("m.csv")).into_iter().map(|row| row[a].clone()).collect::<Vec<_>>()
    };
    assert_eq!(moved("other.csv"), moved("y.csv"));

    // Other names are an error that lists both and says what to do.
    sandbox.write("foreign.csv", "lon,b,w\n1,2,3\n4,5,6\n");
    assert_eq!(
        sandbox.fails("rot x.csv foreign.csv", 2),
        "orthant: foreign.csv has the columns \"lon\", \"b\", \"w\" and x.csv has \"a\", \"b\", \"w\"; \
         choose the same ones with --columns, or match them by their order with --by-position"
    );
    assert!(sandbox.orthant("rot x.csv foreign.csv --by-position").status.success());
    assert!(sandbox.orthant("rot x.csv foreign.csv --columns b,w").status.success());
    // Positions are positions of columns that have the same names.
    let message = sandbox.fails("rot x.csv foreign.csv --columns 1,2", 2);
    assert!(message.contains("--by-position"), "{message}");
}

#[test]
fn every_run_says_which_columns_are_coordinates() {
    let sandbox = Sandbox::new();
    let shown = text(&sandbox.orthant("rot x.csv y.csv --weights w").stdout);
    assert!(shown.contains("\ncoordinates: a, b; weights: w\n"), "{shown}");
    let report = sandbox.json("rot x.csv y.csv --weights w");
    assert_eq!(
        report["files"][1],
        json!({
            "path": "y.csv", "columns": ["a", "b"], "weights": "w", "rows": 45, "dropped": 0, "notes": []
        })
    );
    sandbox.write("p.csv", "0.5,1\n2,3\n");
    let shown = text(&sandbox.orthant("rot p.csv p.csv --eps 1").stdout);
    assert!(shown.contains("\ncoordinates in columns: 1, 2\n"), "{shown}");
    for command in
        ["test x.csv y.csv --permutations 9", "compare x.csv y.csv", "flow x.csv y.csv --steps 1"]
    {
        let shown = text(&sandbox.orthant(command).stdout);
        assert!(shown.contains("\ncoordinates: a, b, w\n"), "{command}: {shown}");
    }
    let shown = text(&sandbox.orthant("barycenter x.csv y.csv --weights w").stdout);
    assert!(shown.contains("\ncoordinates: a, b; weights: w\n"), "{shown}");
}

#[test]
fn identifiers_are_warned_about_and_text_is_left_out() {
    let sandbox = Sandbox::new();
    let mut table = String::from("id,kind,a,b\n");
    for i in 0..30 {
        writeln!(
            table,
            "{},{},{},{}",
            100 + i,
            ["u", "v"][i % 2],
            (i * 7 % 30) as f64 / 10.0,
            i % 5
        )
        .unwrap();
    }
    sandbox.write("cells.csv", &table);
    let output = sandbox.orthant("rot cells.csv cells.csv --eps 1");
    assert!(output.status.success());
    let notes = text(&output.stderr);
    assert!(notes.contains("column \"id\" looks like an identifier"), "{notes}");
    assert!(notes.contains("column \"kind\" holds text and is left out"), "{notes}");
    assert!(text(&output.stdout).contains("coordinates: id, a, b\n"));
    // Whoever names columns knows them.
    assert_eq!(text(&sandbox.orthant("rot cells.csv cells.csv --eps 1 --columns id,a").stderr), "");
    assert_eq!(text(&sandbox.orthant("rot cells.csv cells.csv --eps 1 -q").stderr), "");
    let report: Value = serde_json::from_slice(
        &sandbox.orthant("rot cells.csv cells.csv --eps 1 -q --json").stdout,
    )
    .unwrap();
    assert_eq!(report["files"][0]["notes"].as_array().unwrap().len(), 2);
    // Columns that decide the cost alone.
    sandbox.write("uneven.csv", "a,b\n0.001,1000\n0.002,5000\n0.0015,9000\n");
    let notes = text(&sandbox.orthant("rot uneven.csv uneven.csv --eps 1e6").stderr);
    assert!(notes.contains("column \"b\" spreads"), "{notes}");
    let notes = text(&sandbox.orthant("rot uneven.csv uneven.csv --scale standard").stderr);
    assert!(!notes.contains("spreads"), "{notes}");
}

#[test]
fn a_header_of_numbers_is_a_header() {
    let sandbox = Sandbox::new();
    let body = "0.5,1.5\n2.5,3.5\n1.25,0.75\n";
    sandbox.write("plain.csv", body);
    sandbox.write("pandas.csv", &format!("0,1\n{body}"));
    let n = |arguments: &str| {
        let output = sandbox.orthant(&format!("rot {arguments} --eps 1 --json"));
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (number(&report["n"]), text(&output.stderr))
    };
    assert_eq!(n("pandas.csv plain.csv --columns 1").0, 3.0);
    assert_eq!(n("pandas.csv plain.csv").0, 3.0);
    assert_eq!(n("pandas.csv plain.csv --header no"), (4.0, String::new()));
    assert_eq!(n("plain.csv plain.csv --header yes"), (2.0, String::new()));
    // What may be either is said.
    sandbox.write("years.csv", "2019,2020\n0.5,1.5\n2.5,3.5\n");
    let (_, notes) = n("years.csv plain.csv --by-position");
    assert!(notes.contains("years.csv: the first line") && notes.contains("--header"), "{notes}");
    // How columns are chosen does not change what a header is: text beside the coordinates counts.
    sandbox.write("named.csv", "0.5,name\n1.5,2.5\n3.5,4.5\n");
    assert_eq!(n("named.csv named.csv --columns 1").0, 2.0);
    assert_eq!(n("named.csv named.csv --columns 1-2").0, 2.0);
}

#[test]
fn indices_are_rows_of_the_file() {
    let sandbox = Sandbox::new();
    let gaps: String = std::fs::read_to_string(sandbox.path("x.csv"))
        .unwrap()
        .lines()
        .enumerate()
        // Rows 2 and 5 have a gap.
        .map(|(i, line)| if i == 2 || i == 5 { ",1,1\n".to_owned() } else { format!("{line}\n") })
        .collect();
    sandbox.write("gaps.csv", &gaps);
    let rest = "--columns a,b --eps 0.1 --missing drop";
    let report = sandbox
        .json(&format!("rot gaps.csv y.csv {rest} --output p.csv --pairs s.csv --count 500"));
    assert_eq!((&report["n"], &report["files"][0]["rows"]), (&58.into(), &60.into()));
    assert_eq!(report["files"][0]["dropped"], 2);
    let shown = text(&sandbox.orthant(&format!("rot gaps.csv y.csv {rest}")).stdout);
    assert!(shown.contains("gaps.csv: 2 rows with missing values dropped"), "{shown}");
    let expected: Vec<String> =
        (1..=60).filter(|i| ![2, 5].contains(i)).map(|i| i.to_string()).collect();
    assert_eq!(header(&sandbox.path("p.csv")), "cloud,row,weight,potential,potential_kl");
    let found: Vec<String> = rows(&sandbox.path("p.csv"))
        .into_iter()
        .filter(|r| r[0] == "x")
        .map(|r| r[1].clone())
        .collect();
    assert_eq!(found, expected);
    assert_eq!(header(&sandbox.path("s.csv")), "row_x,row_y");
    let pairs = rows(&sandbox.path("s.csv"));
    assert!(pairs.iter().all(|r| expected.contains(&r[0])) && pairs.iter().any(|r| r[0] == "60"));

    sandbox.json(&format!("map gaps.csv y.csv {rest} -o m.csv --partners t.csv --top-k 1"));
    assert_eq!(header(&sandbox.path("m.csv")), "row,a,b,w");
    let found: Vec<String> =
        rows(&sandbox.path("m.csv")).into_iter().map(|r| r[0].clone()).collect();
    assert_eq!(found, expected);
    assert_eq!(header(&sandbox.path("t.csv")), "row,partner_row,probability");
    let found: Vec<String> =
        rows(&sandbox.path("t.csv")).into_iter().map(|r| r[0].clone()).collect();
    assert_eq!(found, expected);
    sandbox.json(&format!("flow gaps.csv y.csv {rest} --steps 1 --path w.csv"));
    assert!(rows(&sandbox.path("w.csv")).iter().all(|r| expected.contains(&r[1])));
    // Errors count rows too.
    sandbox.write("bad.csv", "a,b,w\n1,2,1\n,2,1\n3,4,-1\n");
    let message = sandbox.fails("rot bad.csv y.csv --weights w --missing drop", 2);
    assert!(message.starts_with("orthant: bad.csv: the weight of point 3 is -1"), "{message}");
    // Arrays count from 0.
    sandbox.json(&format!("rot gaps.csv y.csv {rest} --output p.npy"));
    let array = std::fs::read(sandbox.path("p.npy")).unwrap();
    let numbers: Vec<f64> = array[array.len() - 103 * 5 * 8..]
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| f64::from_le_bytes(*bytes))
        .collect();
    assert_eq!((numbers[0], numbers[1], numbers[5], numbers[6]), (0.0, 0.0, 0.0, 2.0));
    assert_eq!((numbers[58 * 5], numbers[58 * 5 + 1]), (1.0, 0.0));
}

/// Three groups in one file, the third far away.
fn groups(sandbox: &Sandbox) {
    let mut table = String::from("day,a,b,w\n");
    for i in 0..60_usize {
        let day = ["mon", "tue", "sun"][i % 3];
        let at = if i % 3 == 2 { 50.0 } else { 0.0 };
        let (a, b) = ((i as f64 * 0.754_877).fract() + at, (i as f64 * 0.569_84).fract());
        writeln!(table, "{day},{a},{b},{}", 1 + i % 2).unwrap();
    }
    sandbox.write("days.csv", &table);
    for day in ["mon", "tue", "sun"] {
        let part: Vec<&str> = table
            .lines()
            .filter(|line| line.starts_with(day) || line.starts_with("day"))
            .map(|line| line.split_once(',').unwrap().1)
            .collect();
        sandbox.write(&format!("{day}.csv"), &part.join("\n"));
    }
}

#[test]
fn two_groups_of_a_file_are_two_clouds() {
    let sandbox = Sandbox::new();
    groups(&sandbox);
    let rest = "--eps 0.1 --weights w";
    let split = "days.csv --group day --between mon,tue";
    let value = |arguments: String| sandbox.json(&arguments)["value"].clone();
    for command in ["rot", "divergence", "flow --steps 2", "test --permutations 19"] {
        assert_eq!(
            value(format!("{command} {split} {rest}")),
            value(format!("{command} mon.csv tue.csv {rest}")),
            "{command}"
        );
    }
    sandbox.json(&format!("report {split} {rest} --output page.html"));
    let page = std::fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.contains("days.csv, group &quot;mon&quot;"), "no group in the page");
    // Maps keep all columns, and the rows are those of the file.
    sandbox.json(&format!("map {split} --eps 0.1 --columns a,b --carry w -o m.csv"));
    assert_eq!(header(&sandbox.path("m.csv")), "row,day,a,b,w,w_carried");
    let moved = rows(&sandbox.path("m.csv"));
    assert_eq!((moved.len(), &moved[1][0][..], &moved[1][1][..]), (20, "4", "mon"));
    // By position, in another order, and with two values no choice.
    assert_eq!(
        value(format!("rot days.csv --group 1 --between tue,mon {rest}")),
        value(format!("rot tue.csv mon.csv {rest}"))
    );
    let days = std::fs::read_to_string(sandbox.path("days.csv")).unwrap();
    let two: Vec<&str> = days.lines().filter(|line| !line.starts_with("sun")).collect();
    sandbox.write("two.csv", &two.join("\n"));
    assert_eq!(
        value(format!("rot two.csv --group day {rest}")),
        value(format!("rot mon.csv tue.csv {rest}"))
    );
    for (arguments, message) in [
        (
            "rot days.csv --group day",
            "days.csv: column \"day\" has 3 values, \"mon\", \"tue\", \"sun\"; choose two with --between A,B",
        ),
        (
            "rot days.csv --group day --between mon,fri",
            "days.csv: column \"day\" has no value \"fri\"; it has \"mon\", \"tue\", \"sun\"",
        ),
        (
            "rot days.csv --group day --between mon,mon",
            "--between takes two different values, got \"mon\" twice",
        ),
        (
            "rot days.csv --group day --between mon",
            "--between takes two values of the column, as in --between A,B, got 1",
        ),
        (
            "rot mon.csv tue.csv --group day",
            "--group splits one file into two clouds; give one file, or leave --group out",
        ),
        (
            "rot days.csv",
            "days.csv: one cloud cannot be compared; give a second file, or --group COLUMN to split this one",
        ),
        (
            "rot days.csv --group kind",
            "days.csv: no column \"kind\"; the columns are \"day\", \"a\", \"b\", \"w\"",
        ),
    ] {
        assert_eq!(sandbox.fails(arguments, 2), format!("orthant: {message}"), "{arguments}");
    }
}

#[test]
fn one_scale_for_both_clouds() {
    let sandbox = Sandbox::new();
    // The same points in other units.
    let metres = |file: &str, out: &str| {
        let text = std::fs::read_to_string(sandbox.path(file)).unwrap();
        let mut scaled = String::from("a,b,w\n");
        for line in text.lines().skip(1) {
            let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
            writeln!(scaled, "{},{},{}", 1000.0 * cells[0] - 5.0, cells[1], cells[2]).unwrap();
        }
        sandbox.write(out, &scaled);
    };
    metres("x.csv", "xm.csv");
    metres("y.csv", "ym.csv");
    for scale in ["standard", "robust"] {
        let rest = format!("--columns a,b --eps 0.1 --scale {scale}");
        let value = number(&sandbox.json(&format!("divergence x.csv y.csv {rest}"))["value"]);
        let other = number(&sandbox.json(&format!("divergence xm.csv ym.csv {rest}"))["value"]);
        assert!((value / other - 1.0).abs() < 1e-9, "{scale}: {value} {other}");
        assert!(value > 0.1, "a scale for each cloud would hide that they differ: {value}");
        // Maps and flows are in the units of the file.
        sandbox.json(&format!("map xm.csv ym.csv {rest} -o m.csv"));
        let moved: Vec<f64> =
            rows(&sandbox.path("m.csv")).iter().map(|r| r[0].parse().unwrap()).collect();
        assert!(moved.iter().all(|a| (494.0..=1096.0).contains(a)), "{moved:?}");
        sandbox.json(&format!("flow xm.csv ym.csv {rest} --steps 30 -o f.csv"));
        let flown: Vec<f64> =
            rows(&sandbox.path("f.csv")).iter().map(|r| r[0].parse().unwrap()).collect();
        assert!(flown.iter().all(|a| (380.0..=1200.0).contains(a)), "{flown:?}");
    }
    // The standard deviation of all points is 1: the mean cost is twice the number of columns.
    let report = sandbox.json("rot x.csv y.csv --columns a,b --scale standard");
    assert!((number(&report["settings"]["mean_cost"]) - 4.0).abs() < 1e-12);
    assert_eq!(report["settings"]["scale"], "standard");
}

#[test]
fn principal_components_and_samples() {
    let sandbox = Sandbox::new();
    // A plane in five dimensions.
    let lift = |name: &str, out: &str| {
        let text = std::fs::read_to_string(sandbox.path(name)).unwrap();
        let mut lifted = String::from("p,q,r,s,t\n");
        for line in text.lines().skip(1) {
            let c: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
            let (u, v) = (c[0], c[1]);
            writeln!(lifted, "{},{},{},{},3", u + v, u - v, 2.0 * u, 0.5 * v).unwrap();
        }
        sandbox.write(out, &lifted);
    };
    lift("x.csv", "x5.csv");
    lift("y.csv", "y5.csv");
    let whole =
        number(&sandbox.json("divergence x5.csv y5.csv --eps 0.1 --method online")["value"]);
    let two = sandbox.json("divergence x5.csv y5.csv --eps 0.1 --pca 2 --method online");
    assert!((number(&two["value"]) / whole - 1.0).abs() < 1e-9);
    assert_eq!((&two["dim"], &two["settings"]["pca"]), (&2.into(), &2.into()));
    // Maps are in the coordinates of the file: those of the whole problem, whose plan is the same.
    let moved = |rest: &str| -> Vec<f64> {
        sandbox.json(&format!(
            "map x5.csv y5.csv --eps 0.1 --method online --tol 1e-10 {rest} -o m.csv"
        ));
        rows(&sandbox.path("m.csv")).iter().flatten().map(|c| c.parse().unwrap()).collect()
    };
    let all = moved("");
    assert!(moved("--pca 2").iter().zip(&all).all(|(a, b)| (a - b).abs() < 1e-6));
    assert_eq!(all.len(), 300);
    assert!(
        sandbox
            .fails("rot x5.csv y5.csv --pca 6", 2)
            .contains("--pca 6 is more than the 5 coordinates")
    );
    assert!(sandbox.fails("flow x5.csv y5.csv --pca 2 -o f.csv", 2).contains("--pca"));

    let sample = sandbox.json("rot x.csv y.csv --eps 0.1 --sample 20 --output p.csv");
    assert_eq!(
        (&sample["n"], &sample["m"], &sample["settings"]["sample"]),
        (&20.into(), &20.into(), &20.into())
    );
    let chosen: Vec<u64> =
        rows(&sandbox.path("p.csv")).iter().map(|r| r[1].parse().unwrap()).collect();
    assert!(
        chosen[..20].windows(2).all(|w| w[0] < w[1]) && chosen[..20].iter().any(|row| *row > 20)
    );
    let again = sandbox.json("rot x.csv y.csv --eps 0.1 --sample 20");
    assert_eq!(sample["value"], again["value"]);
    assert_ne!(
        sample["value"],
        sandbox.json("rot x.csv y.csv --eps 0.1 --sample 20 --seed 1")["value"]
    );
    let shown = text(&sandbox.orthant("rot x.csv y.csv --eps 0.1 --sample 20 --seed 7").stdout);
    assert!(shown.contains("x.csv: a sample of 20 of 60 rows (seed 7)"), "{shown}");
    // A sample larger than the cloud is the cloud.
    assert_eq!(
        sandbox.json("rot x.csv y.csv --eps 0.1 --sample 900")["value"],
        sandbox.json("rot x.csv y.csv --eps 0.1")["value"]
    );
}

#[test]
fn epsilon_is_a_number_or_a_part_of_the_mean_cost_and_one_for_all_commands() {
    let sandbox = Sandbox::new();
    let xy = "x.csv y.csv --columns a,b";
    let settings = |arguments: &str| sandbox.json(arguments)["settings"].clone();
    let default = settings(&format!("rot {xy}"));
    assert_eq!(default["epsilon_origin"], "default");
    assert!((number(&default["epsilon"]) / number(&default["mean_cost"]) - 0.05).abs() < 1e-15);
    for command in [
        "divergence",
        "map -o m.csv",
        "flow --steps 1",
        "report -o r.html",
        "test --permutations 9",
        "compare",
        "barycenter",
    ] {
        let found = settings(&format!("{command} {xy}"));
        let (found, expected) = (number(&found["epsilon"]), number(&default["epsilon"]));
        assert!((found / expected - 1.0).abs() < 1e-12, "{command}: {found} {expected}");
    }
    for (given, origin, value) in [
        ("--eps 5%", "percentage", number(&default["epsilon"])),
        ("--epsilon 20%", "percentage", 4.0 * number(&default["epsilon"])),
        ("--eps 0.3", "given", 0.3),
        ("--epsilon 0.3 --tolerance 1e-7", "given", 0.3),
    ] {
        let found = settings(&format!("rot {xy} {given}"));
        assert_eq!(found["epsilon_origin"], origin, "{given}");
        assert!((number(&found["epsilon"]) / value - 1.0).abs() < 1e-12, "{given}: {found}");
    }
    assert_eq!(settings(&format!("rot {xy} --tolerance 1e-7"))["tol"], 1e-7);
    assert_eq!(
        sandbox.fails(&format!("rot {xy} --eps 0%"), 2),
        "orthant: --eps must be a positive part of the mean cost, got 0%"
    );
    // Over pairs of a point of either file, and in the other commands over all points together.
    let spread = settings(&format!("rot {xy} --eps 5%std"));
    assert_eq!(spread["epsilon_origin"], "percentage");
    assert!(spread["mean_cost"].is_null());
    assert!((number(&spread["epsilon"]) / number(&spread["cost_deviation"]) - 0.05).abs() < 1e-15);
    assert_eq!(settings(&format!("divergence {xy} --eps 5%std"))["epsilon"], spread["epsilon"]);
    let all = settings(&format!("compare {xy} --eps 5%std"))["epsilon"].clone();
    assert_eq!(settings(&format!("test {xy} --permutations 9 --eps 5%std"))["epsilon"], all);
    assert_ne!(all, spread["epsilon"]);
    let unknown = sandbox.orthant(&format!("rot {xy} --eps 5%foo"));
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("such as 5%std"));
    std::fs::write(sandbox.path("one.csv"), "a,b\n1,2\n").unwrap();
    std::fs::write(sandbox.path("other.csv"), "a,b\n3,2\n").unwrap();
    let same = sandbox.fails("rot one.csv other.csv --eps 5%std", 2);
    assert!(same.contains("give --eps a number, or a part of the mean cost such as 5%"), "{same}");
    assert!(
        sandbox
            .fails(&format!("rot {xy} --method arccos --eps 5%"), 2)
            .contains("give --eps a number")
    );
}

#[test]
fn options_of_the_arc_cosine_kernel_need_it() {
    let sandbox = Sandbox::new();
    for option in ["--order 1", "--kappa 0.2", "--sigma 2"] {
        let name = option.split(' ').next().unwrap();
        assert_eq!(
            sandbox.fails(&format!("rot x.csv y.csv {option}"), 2),
            format!("orthant: {name} is for the arc-cosine kernel; add --method arccos")
        );
        assert!(
            sandbox.orthant(&format!("rot x.csv y.csv {option} --method arccos")).status.success()
        );
    }
}

#[test]
fn the_accuracy_is_that_of_the_divergence() {
    let sandbox = Sandbox::new();
    sandbox.write("x.csv", &cloud(1500, 0.0, 1.0));
    sandbox.write("y.csv", &cloud(1400, 0.01, 1.0));
    let rest = "--columns a,b --eps 0.05";
    for accuracy in [1e-2, 1e-4] {
        let output =
            sandbox.orthant(&format!("divergence x.csv y.csv {rest} --accuracy {accuracy} --json"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |key: &str| number(&report["interval"][key]);
        let value = number(&report["value"]);
        assert!(of("low") <= value && value <= of("high"), "{report}");
        let allowed = accuracy * value.abs().max(0.01 * number(&report["cross"]["value_kl"]));
        let farthest = (of("high") - value).max(value - of("low"));
        let kept = farthest <= allowed * (1.0 + 1e-12);
        assert_eq!(report["accurate"], kept, "{farthest} {allowed}");
        assert_eq!(output.status.code(), Some(if kept { 0 } else { 3 }));
        assert!(kept, "a lattice reaches {accuracy}: {farthest} {allowed}");
    }
    // A promise that cannot be kept is no success, whatever the method.
    for method in ["--anchors lattice", "--method lattice"] {
        let output =
            sandbox.orthant(&format!("rot x.csv y.csv {rest} {method} --accuracy 1e-9 --json"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |key: &str| number(&report["interval_kl"][key]);
        let value = number(&report["value_kl"]);
        let kept = (of("high") - value).max(value - of("low")) <= 1e-9 * value;
        assert_eq!(
            (&report["accurate"], output.status.code()),
            (&kept.into(), Some(if kept { 0 } else { 3 }))
        );
    }
    // Whatever is printed lies in its interval, also of certificates.
    let output = sandbox.orthant(&format!(
        "compare x.csv y.csv {rest} --anchors sobol --rank 300 --certify --json"
    ));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pair = &report["intervals"][0];
    assert!(
        number(&pair["low"]) <= number(&pair["divergence"])
            && number(&pair["divergence"]) <= number(&pair["high"]),
        "{pair}"
    );
    // The interval is shown at any size of the numbers.
    let shown = text(&sandbox.orthant("rot x.csv y.csv --columns a,b --eps 1e300").stdout);
    let line = |name: &str| {
        shown
            .lines()
            .find(|l| l.trim_start().starts_with(name))
            .unwrap_or_else(|| panic!("{shown}"))
    };
    assert!(line("value ").contains(" in ["), "{shown}");
    assert!(line("value_kl ").contains(" in ["), "{shown}");
}

#[test]
fn help_is_in_groups_and_not_wrapped_twice() {
    let sandbox = Sandbox::new();
    for width in [60, 80, 100, 140] {
        for command in [
            "rot",
            "divergence",
            "map",
            "report",
            "flow",
            "barycenter",
            "test",
            "compare",
            "demo",
            "bench",
        ] {
            let output = sandbox
                .command(&format!("help {command}"))
                .env("COLUMNS", width.to_string())
                .output()
                .unwrap();
            let help = text(&output.stdout);
            // A line that is wrapped twice ends early before one that is full.
            let prose = help.split("\n\n").last().unwrap().lines().collect::<Vec<_>>();
            let full = width.min(100);
            for pair in prose.windows(2).filter(|_| prose[0] != "Examples:" && width >= 80) {
                let room = full - pair[0].chars().count().min(full);
                let next = pair[1].split_whitespace().next().map_or(0, str::len);
                assert!(
                    next + 1 > room,
                    "{command} at {width}: {:?} before {:?}",
                    pair[0],
                    pair[1]
                );
            }
        }
    }
    let help = text(&sandbox.orthant("rot --help").stdout);
    for group in [
        "Options:",
        "Reading files:",
        "Preparing the points:",
        "Method:",
        "Kernels:",
        "Iterations and limits:",
        "Unbalanced transport:",
        "More output:",
    ] {
        assert!(help.contains(&format!("\n{group}\n")), "{group}");
    }
    let short = text(&sandbox.orthant("rot -h").stdout);
    for option in ["--eps", "--accuracy", "--columns", "--weights", "--json", "--output"] {
        assert!(short.contains(option), "{option}");
    }
    assert!(!short.contains("--landmarks") && short.lines().count() < 60, "{short}");
}

#[test]
fn pictures_where_they_make_sense() {
    let sandbox = Sandbox::new();
    for (command, part) in [
        ("rot x.csv y.csv", "What moves where"),
        ("divergence x.csv y.csv", "Where the clouds differ"),
        ("map x.csv y.csv -o m.csv", "What moves where"),
        ("test x.csv y.csv --permutations 19", "p = "),
        ("barycenter x.csv y.csv", "what lies between"),
        ("barycenter x.csv y.csv --free 20 --steps 2", "what lies between"),
        ("flow x.csv y.csv --steps 2", "on its way"),
        ("compare x.csv y.csv", "All pairs"),
    ] {
        let output = sandbox.orthant(&format!("{command} --columns a,b --eps 0.1 --picture p.svg"));
        assert!(
            output.status.code().is_some_and(|c| c == 0 || c == 3),
            "{command}: {}",
            text(&output.stderr)
        );
        let svg = std::fs::read_to_string(sandbox.path("p.svg")).unwrap();
        assert!(svg.contains(part), "{command}");
        std::fs::remove_file(sandbox.path("p.svg")).unwrap();
    }
}

#[test]
fn names_that_are_not_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.csv");
    std::fs::copy(sandbox.path("x.csv"), sandbox.folder.path().join(name)).unwrap();
    let run = |arguments: &[&std::ffi::OsStr]| {
        let mut command = sandbox.command("rot");
        command.args(arguments).args(["y.csv", "--eps", "0.1", "--json"]);
        command.output().unwrap()
    };
    let output = run(&[name]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["value"], sandbox.json("rot x.csv y.csv --eps 0.1")["value"]);
}
