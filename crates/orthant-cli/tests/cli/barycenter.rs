//! `barycenter`, on given points and on points that move.

use std::fmt::Write as _;

use crate::common::{Sandbox, cloud, keys, table_of, text};

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

#[test]
fn a_barycentre_lies_between_the_clouds() {
    let sandbox = Sandbox::new();
    for (name, at) in [("a.csv", 1.0), ("b.csv", 2.0), ("c.csv", 3.5)] {
        sandbox.write(name, &bump(at, 0));
    }
    let command = "barycenter a.csv b.csv c.csv --columns x --weights mass --eps 0.05";
    let report = sandbox.json(&format!("{command} --shares 2,3,5 --output p.csv --softmax 10"));
    assert_eq!(report["shares"], serde_json::json!([0.2, 0.3, 0.5]));
    assert_eq!(
        (&report["support"], &report["points"]),
        (&41.into(), &serde_json::json!([41, 41, 41]))
    );
    let (header, rows) = table_of(&sandbox.path("p.csv"));
    assert_eq!((header.as_str(), rows.len()), ("x,weight,softmax", 41));
    let mean = |rows: &[Vec<f64>]| rows.iter().map(|r| r[0] * r[1]).sum::<f64>();
    assert!((mean(&rows) - 2.55).abs() < 0.01, "{}", mean(&rows));
    assert!((rows.iter().map(|r| r[2]).sum::<f64>() - 1.0).abs() < 1e-12);
    // On other points, debiased, and with the points of a file in another order.
    sandbox.write("b.csv", &bump(2.0, 7));
    let mut grid = String::from("x\n");
    (0..80).for_each(|i| writeln!(grid, "{}", 0.1 + f64::from(i) / 20.0).unwrap());
    sandbox.write("grid.csv", &grid);
    let blurred = sandbox.json(&format!("{command} --support grid.csv --output p.csv"));
    let (_, wide) = table_of(&sandbox.path("p.csv"));
    let sharp = sandbox.json(&format!("{command} --support grid.csv --output q.csv --debiased"));
    let (_, narrow) = table_of(&sandbox.path("q.csv"));
    assert_eq!((blurred["support"].as_u64(), sharp["debiased"].as_bool()), (Some(80), Some(true)));
    let variance = |rows: &[Vec<f64>]| {
        let mean = mean(rows);
        rows.iter().map(|r| r[1] * (r[0] - mean).powi(2)).sum::<f64>()
    };
    assert!((mean(&narrow) - 13.0 / 6.0).abs() < 0.01);
    // The kernel's blur is eps / 2.
    assert!((variance(&wide) - variance(&narrow) - 0.025).abs() < 2e-3);
    // The same points in any order are the same support.
    assert_eq!(sandbox.json(command)["support"], 41);
    let shown = text(&sandbox.orthant(command).stdout);
    assert!(shown.contains("W(a3,p)") && shown.contains("--output FILE"), "{shown}");
    // A limit: what there is, and exit code 3.
    let output =
        sandbox.orthant(&format!("{command} --eps 0.001 --tol 1e-12 --max-iter 2 --output r.csv"));
    assert_eq!(output.status.code(), Some(2), "eps twice");
    let command = "barycenter a.csv b.csv c.csv --columns x --weights mass";
    let output =
        sandbox.orthant(&format!("{command} --eps 0.001 --tol 1e-12 --max-iter 2 --output r.csv"));
    assert_eq!(output.status.code(), Some(3));
    assert!(sandbox.path("r.csv").exists());
}

#[test]
fn the_paper_s_linear_kernel_has_barycentres() {
    let sandbox = Sandbox::new();
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
        sandbox.write(name, &corner(k));
    }
    let report = sandbox.json(
        "barycenter a.csv b.csv c.csv --columns x,y,z --weights w --method linear \
         --softmax 1000 --output p.csv",
    );
    assert_eq!(
        (&report["method"]["rank"], &report["settings"]["epsilon"]),
        (&3.into(), &1.0.into())
    );
    let (_, rows) = table_of(&sandbox.path("p.csv"));
    assert_eq!(rows.len(), 210);
    let peak = rows.iter().max_by(|p, q| p[4].total_cmp(&q[4])).unwrap();
    assert!(peak[..3].iter().all(|x| (x - 1.0 / 3f64.sqrt()).abs() < 0.07), "{peak:?}");
}

#[test]
fn a_barycentre_may_have_points_that_move() {
    let sandbox = Sandbox::new();
    // A translate: the barycentre is in the middle.
    let moved: String = std::iter::once("a,b,w\n".to_owned())
        .chain(cloud(60, 0.0, 1.0).lines().skip(1).map(|line| {
            let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
            format!("{},{},{}\n", cells[0] + 4.0, cells[1] - 2.0, cells[2])
        }))
        .collect();
    sandbox.write("z.csv", &moved);
    let command = "barycenter x.csv z.csv --columns a,b --eps 0.05 --debiased";
    let json = sandbox.json(&format!("{command} --free 50 --shares 3,1 --output mean.csv"));
    assert_eq!(json["support"], 50);
    assert_eq!(keys(&json["free"]), ["first", "steps", "gradients", "moved", "stop", "done"]);
    // l (1 - l) |t|^2 is what is left.
    let value = json["value"].as_f64().unwrap();
    assert!((value - 0.1875 * 20.0).abs() < 0.01, "{value}");
    let mean = std::fs::read_to_string(sandbox.path("mean.csv")).unwrap();
    assert_eq!(mean.lines().next(), Some("a,b,weight"));
    assert_eq!(mean.lines().count(), 51);
    let sums = mean.lines().skip(1).fold([0.0; 3], |sums, line| {
        let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
        [sums[0] + cells[0] * cells[2], sums[1] + cells[1] * cells[2], sums[2] + cells[2]]
    });
    assert!((sums[2] - 1.0).abs() < 1e-12 && (sums[0] - 1.5).abs() < 0.05, "{sums:?}");
    assert!((sums[1] - 0.0).abs() < 0.05, "{sums:?}");
    // From points of a file, with its weights.
    let json = sandbox.json(&format!("{command} --start y.csv --weights w --output m.csv"));
    assert_eq!((&json["support"], &json["converged"]), (&45.into(), &true.into()));
    let written = std::fs::read_to_string(sandbox.path("m.csv")).unwrap();
    let weights: Vec<f64> = written
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    assert!((weights[1] / weights[2] - 3.0).abs() < 1e-9, "{weights:?}");
    let output = sandbox.orthant(&format!("{command} --free 20"));
    assert!(text(&output.stdout).contains("on 20 points that are free"));
    for (options, message) in [
        ("--momentum 0.1", "--momentum is for points that move"),
        ("--steps 5", "add --free N or --start FILE, or leave --steps out"),
        (
            "--free 20 --softmax 2 --output p.csv",
            "--softmax has no meaning for points that are free",
        ),
        ("--free 20 --support y.csv", "--support has no meaning for points that are free"),
        ("--free 20 --step -1", "the step must be positive"),
        ("--free 20 --method nystrom", "there is no derivative by the points"),
    ] {
        let found = sandbox.fails(&format!("{command} {options}"), 2);
        assert!(found.contains(message), "{options}: {found}");
    }
    let output = sandbox.orthant(&format!("{command} --free 20 --steps 1"));
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn bad_barycentres_are_refused_and_leave_no_files() {
    let sandbox = Sandbox::new();
    sandbox.write("flat.csv", "1\n2\n");
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
        assert_eq!(sandbox.fails(&arguments, 2), format!("orthant: {message}"));
        assert!(!sandbox.path("p.csv").exists());
    }
    sandbox.fails("barycenter x.csv missing.csv --output p.csv", 2);
    sandbox.fails("barycenter x.csv y.csv --output nowhere/p.csv", 2);
    assert!(!sandbox.path("p.csv").exists());
}
