//! Help, what cannot be asked for or read, and what the README says.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{Sandbox, cloud, text};

#[test]
fn weights_columns_and_missing_values() {
    let sandbox = Sandbox::new();
    let weighted = sandbox.json("rot x.csv y.csv --weights w --eps 0.1");
    assert_eq!(weighted["dim"], 2);
    let plain = sandbox.json("rot x.csv y.csv --columns 1-2 --eps 0.1");
    assert_ne!(weighted["value"], plain["value"]);
    let first = sandbox.json("rot x.csv y.csv --columns 1-2 --weights-x w --eps 0.1");
    assert_ne!(first["value"], plain["value"]);
    assert_ne!(first["value"], weighted["value"]);

    sandbox.write("gaps.csv", "a,b\n0,1\n,2\n3,4\n");
    let message = sandbox.fails("rot gaps.csv x.csv --columns a,b", 2);
    assert!(message.starts_with("orthant: gaps.csv: row 2"), "{message}");
    assert!(message.ends_with("use --missing drop to skip such rows"), "{message}");
    let output = text(&sandbox.orthant("rot gaps.csv x.csv --columns a,b --missing drop").stdout);
    assert!(output.contains("gaps.csv: 1 row with missing values dropped"), "{output}");
}

#[test]
fn compressed_files_and_standard_input() {
    let sandbox = Sandbox::new();
    let file = std::fs::File::create(sandbox.path("x.csv.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    gz.write_all(cloud(60, 0.0, 1.0).as_bytes()).unwrap();
    gz.finish().unwrap();
    let plain = sandbox.json("rot x.csv y.csv --columns a,b --eps 0.1")["value"].clone();
    assert_eq!(sandbox.json("rot x.csv.gz y.csv --columns a,b --eps 0.1")["value"], plain);

    let mut child = sandbox
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
        sandbox.fails("rot - -", 2),
        "orthant: only one of the files can come from standard input; give files for the others"
    );
}

#[test]
fn bad_input_is_exit_code_2_and_one_line() {
    let sandbox = Sandbox::new();
    sandbox.write("empty.csv", "");
    sandbox.write("ragged.csv", "1,2\n3\n");
    sandbox.write("text.csv", "a,b\n1,2\n3,four\n");
    sandbox.write("inf.csv", "1,2\ninf,4\n");
    sandbox.write("negative.csv", "a,b,w\n1,2,1\n3,4,-1\n");
    sandbox.write("zero.csv", "a,b,w\n1,2,0\n3,4,0\n");
    sandbox.write("line.csv", "1\n2\n");
    sandbox.write("fake.npy", "not an array");
    sandbox.write("wide.csv", "0,0\n1e200,0\n");
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
        let message = sandbox.fails(arguments, 2);
        assert!(message.starts_with(start), "{arguments}\n  {message}\n  {start}");
    }
    sandbox.write("signed.csv", "1,3,2\n1,-2,3\n");
    assert_eq!(
        sandbox.fails("rot x.csv signed.csv --method linear", 2),
        "orthant: signed.csv: feature 2 of point 2 is -2; positive features must be positive and finite"
    );
    for usage in [
        "rot x.csv",
        "rot x.csv y.csv --method nope",
        "rot x.csv y.csv --threads 0",
        "nope",
        "man nope",
    ] {
        assert_eq!(sandbox.orthant(usage).status.code(), Some(2), "{usage}");
    }
}

#[test]
fn options_that_do_not_go_together_are_exit_code_2() {
    let sandbox = Sandbox::new();
    sandbox.write("many.csv", "1,3,2,4,5\n2,1,2,1,2\n");
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
            "rot many.csv many.csv --anchors lattice",
            "orthant: a lattice has at most 4 axes, the points have 5: use sobol anchors",
        ),
    ] {
        let message = sandbox.fails(arguments, 2);
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
        let message = sandbox.fails(&format!("rot x.csv y.csv {arguments} --memory 20K"), 1);
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
        let output = sandbox.orthant(&format!("rot x.csv y.csv {usage}"));
        assert_eq!(output.status.code(), Some(2), "{usage}");
        assert!(text(&output.stderr).contains(message), "{usage}: {}", text(&output.stderr));
    }
    // A divergence has one reach: with two it would not vanish for equal clouds.
    for command in ["divergence", "report", "flow"] {
        let output = sandbox.orthant(&format!("{command} x.csv y.csv --reach-x 1"));
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(text(&output.stderr).contains("unexpected argument '--reach-x'"), "{command}");
    }
}

#[test]
fn help_manual_and_completions() {
    let sandbox = Sandbox::new();
    let help = text(&sandbox.orthant("--help").stdout);
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
    for command in ["rot", "divergence", "map", "demo", "bench", "completions", "man"] {
        let help = text(&sandbox.orthant(&format!("help {command}")).stdout);
        assert!(help.contains("Example"), "{command}: {help}");
        // Those of the benchmarks are another program's.
        if command != "bench" {
            assert_eq!(text(&sandbox.orthant(&format!("{command} --help")).stdout), help);
        }
        let page = text(&sandbox.orthant(&format!("man {command}")).stdout);
        assert!(page.contains(&format!("orthant\\-{command}")), "{command}");
    }
    assert!(text(&sandbox.orthant("man").stdout).contains(".TH orthant 1"));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&sandbox.orthant(&format!("completions {shell}")).stdout);
        assert!(script.contains("divergence"), "{shell}");
    }
    // A reader that goes away is no reason to fail.
    let mut child = sandbox.command("completions bash").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_commands_of_the_readme_run() {
    let root = Path::new("../..");
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("examples")).unwrap();
    for name in ["before.csv", "after.csv", "soil.csv", "sites.csv"] {
        std::fs::copy(root.join("examples").join(name), sandbox.path("examples").join(name))
            .unwrap();
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
        let output = sandbox.orthant(command);
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    }
    // What the README shows is what the command prints, but for times.
    let shown = text(&sandbox.orthant(commands[0]).stdout);
    for line in shown.lines().filter(|l| !l.trim_start().starts_with("time")) {
        assert!(readme.contains(line.trim_end()), "{line}");
    }
    for name in ["potentials.csv", "pairs.csv", "moved.csv", "partners.csv"] {
        assert!(sandbox.path(name).exists(), "{name}");
    }
    // So are the moved points, but for the last digits, which are the machine's.
    let moved = std::fs::read_to_string(sandbox.path("moved.csv")).unwrap();
    for line in moved.lines().take(3) {
        assert!(readme.contains(&line[..10]), "{line}");
    }
}
