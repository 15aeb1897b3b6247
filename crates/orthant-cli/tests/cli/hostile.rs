//! Files, limits and signals that mean no good: nothing is overwritten, nothing aborts, nothing is left behind.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Sandbox, cloud, text};

/// All that is in the folder, with its content.
fn snapshot(sandbox: &Sandbox) -> Vec<(String, Option<Vec<u8>>)> {
    let mut all: Vec<_> = std::fs::read_dir(sandbox.folder.path())
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).ok())
        })
        .collect();
    all.sort();
    all
}

/// Runs a line of the shell in the folder; `orthant` is the command.
fn shell(sandbox: &Sandbox, line: &str) -> Output {
    Command::new("bash")
        .args(["-c", line])
        .env("orthant", env!("CARGO_BIN_EXE_orthant"))
        .current_dir(sandbox.folder.path())
        .output()
        .unwrap()
}

#[test]
fn outputs_do_not_replace_inputs_or_each_other() {
    let sandbox = Sandbox::new();
    sandbox.write("grid.csv", "a,b\n0,0\n1,1\n");
    std::fs::create_dir(sandbox.path("sub")).unwrap();
    symlink("x.csv", sandbox.path("link.csv")).unwrap();
    symlink(sandbox.path("y.csv"), sandbox.path("sub/far.csv")).unwrap();
    std::fs::hard_link(sandbox.path("x.csv"), sandbox.path("hard.csv")).unwrap();
    symlink("nothing.csv", sandbox.path("dangling.csv")).unwrap();
    let before = snapshot(&sandbox);
    let two = "x.csv y.csv --columns a,b";
    let absolute = sandbox.path("y.csv").display().to_string();
    for arguments in [
        format!("rot {two} -o x.csv"),
        format!("rot {two} -o y.csv"),
        format!("rot {two} -o ./x.csv"),
        format!("rot {two} -o sub/../x.csv"),
        format!("rot {two} -o link.csv"),
        format!("rot {two} -o hard.csv"),
        format!("rot {two} -o sub/far.csv"),
        format!("rot {two} -o {absolute}"),
        "rot link.csv y.csv --columns a,b -o x.csv".to_owned(),
        format!("rot {two} --pairs x.csv"),
        format!("rot {two} --output p.csv --pairs p.csv"),
        format!("rot {two} --output p.csv --pairs ./p.csv"),
        format!("rot {two} --output dangling.csv --pairs nothing.csv"),
        format!("divergence {two} -o y.csv"),
        format!("map {two} -o x.csv"),
        format!("map {two} --at grid.csv -o grid.csv"),
        format!("map {two} -o m.csv --partners y.csv"),
        format!("map {two} -o m.csv --partners m.csv"),
        format!("map {two} -o m.csv --pairs sub/../m.csv"),
        format!("flow {two} -o x.csv"),
        format!("flow {two} --path y.csv"),
        format!("flow {two} -o f.csv --path f.csv"),
        format!("flow {two} --picture f-000.png --frames f.png"),
        format!("flow {two} --picture sub/../f-000.png --frames f.png"),
        format!("barycenter {two} -o x.csv"),
        format!("barycenter {two} --support grid.csv -o grid.csv"),
        format!("barycenter {two} --start grid.csv -o grid.csv"),
        format!("test {two} -o y.csv"),
        format!("compare {two} -o x.csv"),
        format!("compare {two} --intervals y.csv"),
        format!("compare {two} -o m.csv --intervals m.csv"),
        format!("compare {two} --keep k.jsonl --picture k.jsonl"),
        "rot x.csv --group w --between 1,2 -o x.csv".to_owned(),
    ] {
        let message = sandbox.fails(&arguments, 2);
        assert!(
            message.contains("would replace")
                || message.contains("are the same file")
                || message.contains("will write a file of this name")
                || message.contains("pictures are .svg or .png"),
            "{arguments}: {message}"
        );
        assert_eq!(snapshot(&sandbox), before, "{arguments}");
    }
    // The standard input may be a file too.
    let output = shell(&sandbox, "\"$orthant\" rot - y.csv --columns a,b -o x.csv < x.csv");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(snapshot(&sandbox), before);
    // Another folder, the same name: that is allowed.
    assert!(sandbox.orthant(&format!("rot {two} -o sub/x.csv")).status.success());
}

#[test]
fn suffixes_are_honoured_or_refused() {
    let sandbox = Sandbox::new();
    let two = "x.csv y.csv --columns a,b --eps 0.1";
    sandbox.json(&format!("rot {two} -o p.npy"));
    assert!(std::fs::read(sandbox.path("p.npy")).unwrap().starts_with(b"\x93NUMPY"));
    sandbox.json(&format!("rot {two} -o p.tsv"));
    assert!(std::fs::read_to_string(sandbox.path("p.tsv")).unwrap().starts_with("cloud\trow\t"));
    for arguments in [
        format!("rot {two} -o p.parquet"),
        format!("rot {two} -o potentials"),
        format!("rot {two} --trace trace.csv"),
        format!("rot {two} --picture p.pdf"),
        format!("report {two} -o page.pdf"),
        format!("compare {two} --keep keep.csv"),
        format!("compare {two} --intervals pairs.npy"),
        format!("barycenter {two} -o mean.json"),
    ] {
        sandbox.fails(&arguments, 2);
    }
}

#[test]
fn what_cannot_be_written_is_found_before_the_work() {
    let sandbox = Sandbox::new();
    // A solve that would take minutes.
    sandbox.write("x.csv", &cloud(30_000, 0.0, 1.0));
    sandbox.write("y.csv", &cloud(30_000, 0.5, 0.6));
    let long = format!("{}.csv", "n".repeat(300));
    for path in ["missing/p.csv", "x.csv/p.csv", "/proc/p.csv", &long] {
        let begun = Instant::now();
        let message =
            sandbox.fails(&format!("rot x.csv y.csv --method online --eps 0.001 -o {path}"), 2);
        assert!(begun.elapsed() < Duration::from_secs(5), "{path}");
        assert!(!message.contains("os error"), "{message}");
    }
}

#[test]
fn full_disks_and_closed_outputs_are_one_line() {
    let sandbox = Sandbox::new();
    let run = |line: &str| shell(&sandbox, &format!("\"$orthant\" {line}"));
    let full = run("rot x.csv y.csv --eps 0.1 > /dev/full");
    assert_eq!(full.status.code(), Some(1));
    let message = text(&full.stderr);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(
        message.contains("o space left on device") && !message.contains("os error"),
        "{message}"
    );
    let full = run("rot x.csv y.csv --eps 0.1 -o /dev/full");
    assert_eq!(full.status.code(), Some(1), "{}", text(&full.stderr));
    assert_eq!(text(&full.stderr).lines().count(), 1, "{}", text(&full.stderr));
    assert!(!text(&full.stderr).contains("os error"), "{}", text(&full.stderr));
    let closed = run("rot x.csv y.csv --eps 0.1 >&-");
    assert!(closed.status.code().is_some_and(|code| code <= 1), "{closed:?}");
    // A reader that goes away early.
    let gone = run("map x.csv y.csv --columns a,b --eps 0.1 -q | head -1");
    assert!(gone.status.success());
    assert_eq!(run("rot x.csv y.csv --eps 0.1 -o /dev/null").status.code(), Some(0));
}

#[test]
fn journals_are_files_with_checksums() {
    let sandbox = Sandbox::new();
    symlink("/dev/null", sandbox.path("null.jsonl")).unwrap();
    for path in ["/dev/null", "null.jsonl"] {
        let message = sandbox.fails(&format!("compare x.csv y.csv --keep {path}"), 2);
        assert!(message.contains("device"), "{message}");
    }
    sandbox.json("compare x.csv y.csv --eps 0.1 --keep pairs.jsonl");
    let kept = std::fs::read_to_string(sandbox.path("pairs.jsonl")).unwrap();
    // A digit of the divergence.
    let at = kept.find("\"divergence\":0.").unwrap() + "\"divergence\":0.".len() + 2;
    let digit = if kept.as_bytes()[at] == b'9' { "8" } else { "9" };
    let mut changed = kept.clone();
    changed.replace_range(at..=at, digit);
    sandbox.write("pairs.jsonl", &changed);
    assert_eq!(
        sandbox.fails("compare x.csv y.csv --eps 0.1 --keep pairs.jsonl", 2),
        "orthant: pairs.jsonl: line 2 is damaged: its checksum is not that of its content; delete the line or the file"
    );
    assert_eq!(std::fs::read_to_string(sandbox.path("pairs.jsonl")).unwrap(), changed);
}

#[test]
fn memory_is_limited() {
    let sandbox = Sandbox::new();
    let mut gz = flate2::write::GzEncoder::new(
        std::fs::File::create(sandbox.path("bomb.csv.gz")).unwrap(),
        flate2::Compression::best(),
    );
    let block = "0.5,0.25\n".repeat(100_000);
    for _ in 0..400 {
        gz.write_all(block.as_bytes()).unwrap();
    }
    gz.finish().unwrap();
    assert!(std::fs::metadata(sandbox.path("bomb.csv.gz")).unwrap().len() < 3_000_000);
    for (arguments, part) in [
        ("rot bomb.csv.gz y.csv --memory 100M", "bomb.csv.gz: "),
        ("test x.csv y.csv --permutations 1000000000000 --memory 1G", "permutations"),
        ("test x.csv y.csv --permutations 1000000000000", "permutations"),
        ("rot x.csv y.csv --pairs p.csv --count 1000000000000", "pairs"),
        ("rot x.csv y.csv --method dense --memory 20K", "kernel matrix"),
    ] {
        let begun = Instant::now();
        let message = sandbox.fails(arguments, 1);
        assert!(message.contains(part), "{arguments}: {message}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{arguments}");
    }
    // A pipe without end.
    let output =
        shell(&sandbox, "yes 0.5,0.25,1 | timeout 60 \"$orthant\" rot - y.csv --memory 50M");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--memory"), "{}", text(&output.stderr));
    // One line without end.
    let output = shell(
        &sandbox,
        "tr '\\0' '7' < /dev/zero | timeout 60 \"$orthant\" rot - y.csv --memory 50M",
    );
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    // Limits of the address space: whatever happens, it is one line and no abort.
    sandbox.write("big.csv", &cloud(200_000, 0.0, 1.0));
    for limit in [150_000, 200_000, 300_000, 400_000] {
        for command in
            ["rot big.csv y.csv --eps 0.01 --columns a,b", "rot x.csv y.csv --eps 0.1 --threads 64"]
        {
            let line =
                format!("ulimit -v {limit}; timeout 120 \"$orthant\" {command} -q > /dev/null");
            let output = shell(&sandbox, &line);
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 1)),
                "{limit}: {command}: {code:?} {}",
                text(&output.stderr)
            );
            if code == Some(1) {
                assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
            }
        }
    }
}

#[test]
fn signals_leave_nothing_behind() {
    let sandbox = Sandbox::new();
    sandbox.write("x.csv", &cloud(40_000, 0.0, 1.0));
    for signal in ["TERM", "INT", "HUP"] {
        let before = snapshot(&sandbox).len();
        // Long enough to be found while it writes: ten million pairs.
        let mut child = sandbox
            .command(
                "rot x.csv y.csv --columns a,b --eps 0.1 --pairs pairs.csv --count 10000000 -q",
            )
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(match signal {
            "TERM" => 300,
            "INT" => 1200,
            _ => 2500,
        }));
        let killed =
            Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        if killed.success() && !status.success() {
            use std::os::unix::process::ExitStatusExt;
            assert!(status.signal().is_some(), "{signal}: {status:?}");
            assert_eq!(snapshot(&sandbox).len(), before, "{signal}");
        }
        let _ = std::fs::remove_file(sandbox.path("pairs.csv"));
        let hidden = std::fs::read_dir(sandbox.folder.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("tmp"))
            .count();
        assert_eq!(hidden, 0, "{signal}");
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    let sandbox = Sandbox::new();
    sandbox.write("x.csv", &cloud(20_000, 0.0, 1.0));
    // As under nohup.
    let line = "trap '' HUP; \"$orthant\" rot x.csv y.csv --columns a,b --eps 0.1 --pairs p.csv --count 3000000 -q & \
                sleep 0.3; kill -s HUP $!; wait $!";
    let output = shell(&sandbox, line);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn time_limits_hold_in_every_phase() {
    let sandbox = Sandbox::new();
    let points = |n: usize, dim: usize, step: f64| -> String {
        (1..=n)
            .map(|i| {
                let c: Vec<String> = (0..dim)
                    .map(|k| {
                        format!("{:.4}", ((i as f64) * (0.618 + step * (k + 1) as f64)).fract())
                    })
                    .collect();
                c.join(",") + "\n"
            })
            .collect()
    };
    sandbox.write("p.csv", &points(6_000, 30, 0.0371));
    sandbox.write("q.csv", &points(6_000, 30, 0.0419));
    for (arguments, limit) in [
        ("rot p.csv q.csv --eps 0.05", 1.0),
        ("divergence p.csv q.csv --eps 0.05", 1.5),
        ("rot p.csv q.csv --eps 0.02 --method online", 1.0),
        ("rot p.csv q.csv --eps 0.05 --anchors adaptive --rank 4000 --certify", 1.0),
        ("test p.csv q.csv --eps 0.5 --permutations 100000", 1.5),
        ("flow p.csv q.csv --eps 0.5 --method online", 1.5),
        ("barycenter p.csv q.csv --eps 0.5", 1.5),
        ("compare p.csv q.csv --eps 0.02 --method online", 1.0),
    ] {
        let begun = Instant::now();
        let output = sandbox.orthant(&format!("{arguments} --time-limit {limit} -q"));
        let took = begun.elapsed().as_secs_f64();
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 3)), "{arguments}: {code:?} {}", text(&output.stderr));
        assert!(took < limit + 1.5, "{arguments}: {took:.2} s");
    }
    // While files are read: a pipe that says nothing.
    let begun = Instant::now();
    let mut child = sandbox
        .command("rot - q.csv --time-limit 1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.stdin.take();
    let status = child.wait().unwrap();
    drop(output);
    assert_eq!(status.code(), Some(3));
    assert!(begun.elapsed() < Duration::from_secs(4));
}

#[test]
fn progress_is_told_where_there_is_no_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("x.csv", &cloud(9_000, 0.0, 1.0));
    sandbox.write("y.csv", &cloud(9_000, 0.5, 0.6));
    let solve =
        "rot x.csv y.csv --columns a,b --eps 0.0005 --method online --solver plain --time-limit 14";
    let output = sandbox.orthant(solve);
    let lines = text(&output.stderr);
    assert!(lines.contains("so far"), "{lines}");
    assert!(lines.lines().count() < 5, "{lines}");
    assert_eq!(text(&sandbox.orthant(&format!("{solve} -q --max-iter 3")).stderr), "");
}
