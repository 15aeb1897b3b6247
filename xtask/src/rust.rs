//! Formatting, lints, tests and documentation of the Rust crates, and what is asked of the release build.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::layers;
use crate::run::{LIMIT, cargo, cpu_seconds, root, run, shown, target, used, wait};

/// The longest that the tests of one program may take. The longest took four minutes on two cores.
const TEST_LIMIT: Duration = Duration::from_mins(20);
/// The longest of `quick`.
const QUICK_LIMIT: Duration = Duration::from_mins(2);

/// Tests that take minutes on one core and look at no clock: they run beside all that comes after the other tests, with what
/// that leaves of the cores.
const BESIDE: &str = "orthant-gan ring";

/// Bytes of the command as it is released, at most.
const MOST_BYTES: u64 = 25_000_000;

/// All crates with all their features, so that what is built for one task is there for the others.
const EVERYTHING: [&str; 2] = ["--workspace", "--all-features"];

/// Crates whose documentation is read outside of the repository.
const DOCUMENTED: [&str; 3] = ["orthant", "orthant-io", "orthant-draw"];

/// Everything but the networks and the Python package, which take minutes to compile.
const QUICK: [&str; 6] =
    ["--workspace", "--all-features", "--exclude", "orthant-gan", "--exclude", "orthant-python"];

/// One case of each kind: programs of integration tests, with what the names of their tests contain.
const CASES: [(&str, &[&str]); 5] = [
    (
        "library",
        &[
            "oracles::two_by_two_in_closed_form",
            "oracles::gaussians_in_closed_form",
            "oracles::pot_0_9_5_agrees",
            "gradients::epsilon_against_central_differences",
            "bad_input::clouds_say_what_is_wrong_and_where",
            "threads::dense",
        ],
    ),
    ("io", &["agrees_with", "every_supported_compression"]),
    ("pictures", &[""]),
    ("cli", &["json_has_the_documented_keys", "bad_input_is_exit_code_2_and_one_line"]),
    ("lab", &["what_is_wrong_is_one_line"]),
];

/// All of that, and then something more.
pub(crate) fn all(more: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    layers::check()?;
    let programs = programs(linted(&["test", "--all-targets"])?.args(EVERYTHING))?;
    let (beside, others): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.name == BESIDE);
    if beside.is_empty() {
        return Err(format!("there is no {BESIDE} among the tests; change BESIDE in xtask"));
    }
    test_all(&others, TEST_LIMIT)?;
    std::thread::scope(|scope| {
        let tests = scope.spawn(|| test_all(&beside, LIMIT));
        let rest = documentation_and_release().and_then(|()| more());
        let tested = tests.join().map_err(|_| format!("{BESIDE}: a panic"))?;
        tested.and(rest)
    })
}

/// All of them, so that one run shows everything that fails.
fn test_all(programs: &[&Program], limit: Duration) -> Result<(), String> {
    let failed: Vec<String> = programs
        .iter()
        .filter_map(|program| program.test(&[], limit).err())
        .inspect(|message| println!("{message}"))
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n  ")) }
}

fn documentation_and_release() -> Result<(), String> {
    run(linted(&["test", "--doc", "--quiet"])?.args(EVERYTHING))?;
    let mut pages = once(&["doc", "--no-deps", "--quiet", "--all-features"]);
    let documented = DOCUMENTED.iter().flat_map(|package| ["--package", package]);
    run(pages.args(documented).env("RUSTDOCFLAGS", "-D warnings"))?;
    run(&mut release())?;
    size()?;
    run(Command::new(command()).arg("demo").current_dir(root()))
}

/// What is quick enough to be run after every change.
pub(crate) fn quick() -> Result<(), String> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    layers::check()?;
    let mut clippy = cargo(&["clippy"]);
    run(clippy.args(QUICK).args(["--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    let mut tests = cargo(&["test", "--lib", "--bins"]);
    tests.args(QUICK).args(CASES.iter().flat_map(|(file, _)| ["--test", file]));
    for program in programs(&mut tests)? {
        let cases = CASES.iter().find(|(file, _)| program.file.as_deref() == Some(file));
        let passed = program.test(cases.map_or(&[], |(_, names)| names), QUICK_LIMIT)?;
        if cases.is_some() && passed == 0 {
            return Err(format!("no test of {} has a name of CASES in xtask", program.name));
        }
    }
    Ok(())
}

/// Cargo for what is built once, and not again after every change.
fn once(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    command.env("CARGO_INCREMENTAL", "0");
    command
}

/// Cargo for what is built once, with the lints of Clippy, each of which is an error: as `cargo clippy -- -D warnings` does,
/// which only checks, so that everything would be compiled twice.
fn linted(arguments: &[&str]) -> Result<Command, String> {
    let rustc = Command::new("rustc").args(["--print", "sysroot"]).output();
    let rustc = rustc.map_err(|e| format!("rustc: {e}"))?;
    let sysroot = String::from_utf8_lossy(&rustc.stdout);
    let driver = Path::new(sysroot.trim()).join("bin").join("clippy-driver");
    if !driver.exists() {
        let driver = driver.display();
        return Err(format!("{driver} is not there; run `rustup component add clippy`"));
    }
    let mut command = once(arguments);
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    Ok(command)
}

/// Builds the command as it is released, together with the Python package: its wheel shares what they depend on.
pub(crate) fn release() -> Command {
    cargo(&["build", "--release", "--quiet", "--package=orthant-cli", "--package=orthant-python"])
}

pub(crate) fn command() -> PathBuf {
    target().join("release").join("orthant")
}

/// Users download it.
fn size() -> Result<(), String> {
    let path = command();
    let bytes = path.metadata().map_err(|e| format!("{}: {e}", path.display()))?.len();
    println!("\nthe release build has {:.1} MB", bytes as f64 / 1e6);
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(format!(
        "{} has {bytes} bytes, more than the {MOST_BYTES} that it may have: find the dependency that is too large, or change \
         profile.release in Cargo.toml",
        path.display()
    ))
}

/// A program of tests.
struct Program {
    /// Its package and, of integration tests, their file.
    name: String,
    file: Option<String>,
    path: PathBuf,
    /// Where tests expect to run.
    folder: PathBuf,
}

/// Builds the tests of a command of cargo.
fn programs(command: &mut Command) -> Result<Vec<Program>, String> {
    command.args(["--no-run", "--message-format=json-render-diagnostics", "--quiet"]);
    println!("\n+ {}", shown(command));
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let told = std::env::temp_dir().join(format!("xtask-{}.json", std::process::id()));
    let file = File::create(&told).map_err(|e| format!("{}: {e}", told.display()))?;
    let child = command.stdout(file).spawn().map_err(|e| e.to_string())?;
    let status = wait(child, LIMIT)?;
    println!("  ({})", used(begun, cpu));
    if !status.success() {
        return Err(format!("failed: {}", shown(command)));
    }
    let lines = std::fs::read_to_string(&told).map_err(|e| format!("{}: {e}", told.display()))?;
    std::fs::remove_file(&told).map_err(|e| format!("{}: {e}", told.display()))?;
    Ok(lines.lines().filter_map(Program::from_message).collect())
}

impl Program {
    /// What cargo tells of something that it built; none if that is no program of tests.
    fn from_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["profile"]["test"] != Value::Bool(true) {
            return None;
        }
        let path = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let package = folder.file_name()?.to_str()?;
        let target = &message["target"];
        // Benchmarks are built, and not run.
        if target["kind"][0] == "bench" {
            return None;
        }
        let file = if target["kind"][0] == "test" { target["name"].as_str() } else { None };
        let name = [Some(package), file].into_iter().flatten().collect::<Vec<_>>().join(" ");
        Some(Program { name, file: file.map(str::to_owned), path, folder })
    }

    /// Runs its tests, or those with one of the names; returns how many passed. What they print is shown if one of them
    /// fails.
    fn test(&self, names: &[&str], limit: Duration) -> Result<usize, String> {
        // Of this run alone: others may share the target directory.
        let log = format!("xtask-{}-{}.log", std::process::id(), self.name.replace(' ', "-"));
        let log = std::env::temp_dir().join(log);
        let file = File::create(&log).and_then(|file| Ok([file.try_clone()?, file]));
        let [file, errors] = file.map_err(|e| format!("{}: {e}", log.display()))?;
        let (begun, cpu) = (Instant::now(), cpu_seconds());
        let mut command = if self.name == BESIDE {
            let mut command = Command::new("nice");
            command.args(["-n", "19"]).arg(&self.path);
            command
        } else {
            Command::new(&self.path)
        };
        let child = command
            .args(names)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("{}: {e}", self.path.display()))?;
        let status = wait(child, limit);
        let said = std::fs::read(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        std::fs::remove_file(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let said = String::from_utf8_lossy(&said);
        let passed = said.lines().filter(|line| line.ends_with("... ok")).count();
        if matches!(&status, Ok(status) if status.success()) {
            println!("  {}: {passed} tests ({})", self.name, used(begun, cpu));
            return Ok(passed);
        }
        println!("{said}");
        Err(match status {
            Ok(_) => format!("a test of {} failed", self.name),
            Err(error) => format!("the tests of {}: {error}; {}", self.name, unfinished(&said)),
        })
    }
}

/// Which tests took long, as the program of the tests said before it was ended.
fn unfinished(said: &str) -> String {
    let done = |name: &str| said.lines().any(|line| line.starts_with(&format!("test {name} ... ")));
    let slow: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" has been running for over"))
        .map(|(name, _)| name)
        .filter(|name| !done(name))
        .collect();
    if slow.is_empty() {
        "none of them said that it takes long".to_owned()
    } else {
        slow.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that says so and goes on as told.
    fn program(name: &str, script: &str) -> Program {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("xtask-{}-{name}", std::process::id()));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Program { name: name.to_owned(), file: None, path, folder }
    }

    #[test]
    fn programs_are_those_that_cargo_tells_of() {
        let told = |kind: &str, test: bool| {
            format!(
                r#"{{"manifest_path":"/p/orthant-io/Cargo.toml","target":{{"kind":["{kind}"],"name":"files"}},
                "profile":{{"test":{test}}},"executable":"/t/files-1"}}"#
            )
        };
        let read = |kind: &str, test: bool| Program::from_message(&told(kind, test));
        let integration = read("test", true).unwrap();
        assert_eq!(integration.name, "orthant-io files");
        assert_eq!(integration.file.as_deref(), Some("files"));
        assert_eq!(integration.folder, Path::new("/p/orthant-io"));
        let unit = read("lib", true).unwrap();
        assert_eq!((unit.name.as_str(), unit.file), ("orthant-io", None));
        assert!(read("bin", false).is_none() && read("bench", true).is_none());
        assert!(Program::from_message("no JSON").is_none());
    }

    #[test]
    fn tests_pass_fail_and_hang() {
        let minute = Duration::from_mins(1);
        let passes = program("passes", "echo 'test a ... ok'; echo 'test b ... ok'");
        assert_eq!(passes.test(&[], minute), Ok(2));
        let fails = program("fails", "echo 'test a ... FAILED'; exit 101");
        assert_eq!(fails.test(&[], minute).unwrap_err(), "a test of fails failed");
        let slow = "test b has been running for over 60 seconds";
        let hangs = program("hangs", &format!("echo 'test a ... ok'; echo '{slow}'; sleep 99"));
        let begun = Instant::now();
        let error = hangs.test(&[], Duration::from_secs(5)).unwrap_err();
        assert_eq!(error, "the tests of hangs: ended after its time limit of 5 s; b");
        assert!(begun.elapsed() < minute);
        for program in [passes, fails, hangs] {
            std::fs::remove_file(program.path).unwrap();
        }
    }

    #[test]
    fn the_test_that_hangs_is_named() {
        let said = "test a has been running for over 60 seconds\ntest b ... ok\n\
                    test c has been running for over 60 seconds\ntest a ... ok\n";
        assert_eq!(unfinished(said), "c");
    }
}
