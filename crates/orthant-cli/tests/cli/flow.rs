//! `flow`.

use crate::common::{Sandbox, keys, text};

#[test]
fn a_flow_writes_where_points_went_and_draws_it() {
    let sandbox = Sandbox::new();
    let flow = "flow x.csv y.csv --columns a,b --eps 0.05 --accuracy 1e-6";
    let files = "--output moved.csv --path path.csv --picture p.svg --frames f.svg --trace t.jsonl";
    let json = sandbox.json(&format!("{flow} {files}"));
    let moves = &json["flow"];
    assert_eq!(keys(moves), ["first", "steps", "gradients", "moved", "stop", "done"]);
    assert_eq!((&moves["stop"], &moves["done"]), (&"still".into(), &true.into()));
    let [first, last] = [&moves["first"], &json["value"]].map(|v| v.as_f64().unwrap());
    assert!(last < 1e-3 * first, "{first} to {last}");
    // What was written is what was said; the column that is no coordinate stays.
    let apart = "--columns a,b --eps 0.05 --accuracy 1e-6";
    let again = sandbox.json(&format!("divergence moved.csv y.csv {apart}"));
    assert!((again["value"].as_f64().unwrap() - last).abs() < 1e-6 * first);
    let at_start = sandbox.json(&format!("divergence x.csv y.csv {apart}"));
    assert!((at_start["value"].as_f64().unwrap() - first).abs() < 1e-6);
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
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
    assert!(!sandbox.path(&format!("f-{shots:03}.svg")).exists());
    assert!(read("f-000.svg").contains("step 0: divergence"));
    let picture = read("p.svg");
    assert!(picture.contains("x on its way") && picture.contains("ways of some points"));
    assert!(read("t.jsonl").lines().count() > shots);
    // For people.
    let output = sandbox.orthant(&format!("{flow} --steps 3 --every 2 --path p.npy -o m.npy"));
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("3 steps"), "{}", text(&output.stdout));
    let words = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("times as large"), "{words}");
    // Steps 0, 2 and 3 of 60 points, and four columns.
    let array = std::fs::read(sandbox.path("p.npy")).unwrap();
    assert!(String::from_utf8_lossy(&array[..128]).contains("(180, 4)"));
}

#[test]
fn a_flow_that_does_not_get_there_says_so() {
    let sandbox = Sandbox::new();
    let flow = "flow x.csv y.csv --columns a,b --eps 0.05";
    assert!(sandbox.orthant(&format!("{flow} --until 0.1")).status.success());
    let output = sandbox.orthant(&format!("{flow} --until 1e-6 --steps 2 --output moved.csv"));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("raise --steps"), "{}", text(&output.stdout));
    assert!(sandbox.path("moved.csv").exists());
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
        let found = sandbox.fails(&format!("{flow} --output p.csv {options}"), 2);
        assert!(found.contains(message), "{options}: {found}");
        assert!(!sandbox.path("p.csv").exists(), "{options}");
    }
    sandbox.write("line.csv", "a\n1\n2\n");
    let message = sandbox.fails("flow x.csv line.csv --output p.csv", 2);
    assert!(
        message.contains("line.csv has the columns \"a\" and x.csv has \"a\", \"b\", \"w\""),
        "{message}"
    );
}
