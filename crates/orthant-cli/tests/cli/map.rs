//! `map`: points that are moved, and columns that come along.

use std::fmt::Write as _;
use std::path::Path;

use crate::common::{Sandbox, keys, problem_keys, text};

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
fn labelled(sandbox: &Sandbox) {
    let (mut x, mut y) = (String::from("id,b,a\n"), String::from("a,kind,b,age,w\n"));
    for i in 0..30_usize {
        let (cluster, k) = (i % 3, i as f64 * 0.01);
        let (a, b) = (cluster as f64 * 10.0 + k, k);
        writeln!(x, "\"p {i}\",{b},{a}").unwrap();
        let kind = ["ash", "beech", "cedar"][cluster];
        writeln!(y, "{},{kind},{},{},{}", a + 100.0, b - 50.0, 10 * cluster, 1 + i % 2).unwrap();
    }
    sandbox.write("p.csv", &x);
    sandbox.write("q.csv", &y);
}

#[test]
fn points_are_moved_and_columns_carried() {
    let sandbox = Sandbox::new();
    labelled(&sandbox);
    let map = "map p.csv q.csv --columns a,b --eps 0.5";
    let report =
        sandbox.json(&format!("{map} --carry kind --carry age --vote age --output moved.csv"));
    assert_eq!(keys(&report), problem_keys());
    let moved = table(&sandbox.path("moved.csv"));
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
    let printed = sandbox.orthant(&format!("{map} --carry kind --carry age --vote age"));
    assert_eq!(text(&printed.stdout), std::fs::read_to_string(sandbox.path("moved.csv")).unwrap());
    assert!(text(&printed.stderr).contains("value_kl"), "{}", text(&printed.stderr));
    let shown = text(&sandbox.orthant(&format!("{map} -o moved.tsv")).stdout);
    assert!(shown.contains("moved.tsv") && shown.contains(" 30 "), "{shown}");
    assert!(std::fs::read_to_string(sandbox.path("moved.tsv")).unwrap().starts_with("id\tb\ta\n"));

    // Back, with weights; new points, whose own columns stay; what is carried is no coordinate.
    sandbox.json(
        "map p.csv q.csv --columns a,b --eps 0.5 --weights-y w --back --carry id -o back.csv",
    );
    let back = table(&sandbox.path("back.csv"));
    assert_eq!(names(&back), ["a", "kind", "b", "age", "w", "id", "id_probability"]);
    assert!(near(numbers(&back[0])[4], 10.15) && near(numbers(&back[2])[4], 0.15));
    assert_eq!(back[1].1[4], "beech");
    sandbox.write("new.csv", "a,b,kind\n20.1,0.1,?\n-500,40,oak\n");
    let report = sandbox
        .json("map p.csv q.csv --columns a,b --eps 0.5 --at new.csv --carry kind -o new.out.csv");
    assert_eq!(report["n"], 30);
    let new = table(&sandbox.path("new.out.csv"));
    assert_eq!(names(&new), ["a", "b", "kind", "kind_carried", "kind_carried_probability"]);
    assert_eq!(
        (&new[2].1[..], &new[3].1[..]),
        (&["?".into(), "oak".into()][..], &["cedar".into(), "ash".into()][..])
    );
    let plain = "map p.csv q.csv --eps 0.5 --columns 2-3";
    sandbox.write("p.csv", "x,1,2\ny,3,4\n");
    sandbox.write("q.csv", "x,1,2\ny,3,4\n");
    let output = sandbox.orthant(plain);
    assert!(text(&output.stdout).starts_with("x,1"), "{}", text(&output.stdout));
    sandbox.write("q.csv", "1,2,k\n3,4,l\n");
    sandbox.write("p.csv", "1,2\n3,4\n");
    let output = text(&sandbox.orthant("map p.csv q.csv --eps 0.1 --carry 3").stdout);
    assert!(output.starts_with("c1,c2,c3,c3_probability\n"), "{output}");
}

#[test]
fn maps_of_every_method_and_their_tables() {
    let sandbox = Sandbox::new();
    let run = |options: &str| {
        let all = "--output m.npy --partners p.csv --top-k 2 --pairs s.npy --count 50";
        sandbox.json(&format!("map x.csv y.csv --columns a,b --eps 0.3 {options} {all}"));
        let m = std::fs::read(sandbox.path("m.npy")).unwrap();
        let (_, data) = m.split_at(128);
        let moved: Vec<f64> =
            data.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        assert_eq!(moved.len(), 120, "{options}");
        let partners = table(&sandbox.path("p.csv"));
        assert_eq!(
            (names(&partners), partners[0].1.len()),
            (vec!["row", "partner_row", "probability"], 120)
        );
        let [i, j, p] = [0, 1, 2].map(|c| numbers(&partners[c]));
        assert!(i[..2] == [1.0, 1.0] && j.iter().all(|j| (1.0..=45.0).contains(j)), "{options}");
        assert!(p.chunks(2).all(|p| p[0] >= p[1] && p[0] <= 1.0), "{options}");
        assert_eq!(std::fs::read(sandbox.path("s.npy")).unwrap().len(), 128 + 50 * 16, "{options}");
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
        sandbox.orthant("map x.csv y.csv --columns a,b --eps 0.5 --method nystrom -o n.csv");
    assert!(nystrom.status.success(), "{}", text(&nystrom.stderr));
    let limit =
        sandbox.orthant("map x.csv y.csv --columns a,b --eps 0.001 --max-iter 2 -o limit.csv");
    assert_eq!(limit.status.code(), Some(3));
    assert!(sandbox.path("limit.csv").exists());
}

#[test]
fn bad_maps_are_exit_code_2_and_leave_no_files() {
    let sandbox = Sandbox::new();
    labelled(&sandbox);
    sandbox.write("line.csv", "1\n2\n");
    sandbox.write("far.csv", "a,b\n0,0\n1e200,0\n");
    let mut ids = String::from("a,b,id\n");
    for i in 0..1500 {
        writeln!(ids, "{i},{},n{i}", 7 * i % 1500).unwrap();
    }
    sandbox.write("ids.csv", &ids);
    let before = std::fs::read_dir(sandbox.folder.path()).unwrap().count();
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
        let message = sandbox.fails(&format!("map {arguments}"), 2);
        assert!(message.starts_with(start), "{arguments}\n  {message}\n  {start}");
    }
    assert_eq!(sandbox.orthant("map x.csv y.csv --top-k 3").status.code(), Some(2));
    assert_eq!(std::fs::read_dir(sandbox.folder.path()).unwrap().count(), before);
    // A file that was there stays as it was.
    sandbox.write("m.csv", "old");
    sandbox.fails("map x.csv y.csv --columns a,b -o m.csv --at far.csv", 2);
    assert_eq!(std::fs::read_to_string(sandbox.path("m.csv")).unwrap(), "old");
}
