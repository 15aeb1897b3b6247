//! Tasks of the repository: `cargo xtask test` does everything that must pass before a change lands.
//!
//! It sets up what it needs: Python packages go to a virtual environment in the target directory.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task tells what it does")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const CARGO: &str = "cargo";

const HELP: &str = "\
Usage: cargo xtask TASK

Tasks:
  test     formatting, lints, all tests, documentation, the README's first command, a comparison with
           other libraries through Python, and the Python package (sets up its own environment)
  rust     the same without Python
  python   the comparison with other libraries and the Python package only";

fn main() -> ExitCode {
    let task = env::args().nth(1).unwrap_or_default();
    let done = match task.as_str() {
        "test" => test(),
        "rust" => rust(),
        "python" => environment().and_then(|python| with_python(&python)),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => {
            println!("\nxtask {task}: all passed");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("\nxtask {task}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result<(), String> {
    std::thread::scope(|scope| {
        // Gigabytes, most of them PyTorch: they come while Rust compiles.
        let environment = scope.spawn(environment);
        rust()?;
        let python = environment.join().map_err(|_| "the Python environment: a panic")??;
        with_python(&python)
    })
}

fn rust() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    cargo(&["test", "--workspace", "--quiet"])?;
    run(Command::new(CARGO)
        .args(["doc", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .current_dir(root()))?;
    cargo(&["run", "--release", "--quiet", "--", "demo"])
}

/// An environment with all packages that the tests need; returns its Python. All of them or none: what cannot be
/// installed is an error, and no reason to skip tests.
fn environment() -> Result<PathBuf, String> {
    let requirements = root().join("tests").join("requirements.txt");
    let venv = target().join("python");
    // By module, not by script: scripts know their folder and break when it moves.
    let python = venv.join("bin").join("python");
    // The environment is good if it was made from these requirements.
    let wanted = std::fs::read_to_string(&requirements)
        .map_err(|e| format!("{}: {e}", requirements.display()))?;
    let stamp = venv.join("requirements.txt");
    if std::fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
        make_venv(&venv)?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(&requirements))?;
        std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    }
    Ok(python)
}

/// Results of the release build against POT, on files that NumPy, pandas and Arrow wrote; its pages in a browser; and
/// the Python package, as a wheel that is built and installed.
fn with_python(python: &Path) -> Result<(), String> {
    cargo(&["build", "--release", "--quiet"])?;
    let (target, folder) = (target(), root().join("tests"));
    if ["chromium-headless-shell", "chromium"].iter().all(|name| !is_there(name)) {
        // A package that is small beside the browser with its windows.
        run(Command::new("apt-get").args(["update", "-qq"]))?;
        let install = ["install", "-y", "-qq", "--no-install-recommends"];
        run(Command::new("apt-get").args(install).arg("chromium-headless-shell"))?;
    }
    run(Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .args([folder.join("compare.py"), folder.join("page.py")])
        .env("ORTHANT", target.join("release").join("orthant"))
        .env("PYTHONDONTWRITEBYTECODE", "1"))?;
    package(python)
}

/// Builds the wheel, installs it and tests it: what users get, and not the folder of its sources.
fn package(python: &Path) -> Result<(), String> {
    let folder = root().join("python");
    let wheels = target().join("wheels");
    // Those of before would be installed too.
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels).map_err(|e| format!("{}: {e}", wheels.display()))?;
    }
    run(Command::new(python)
        .args(["-m", "maturin", "build", "--release", "--quiet", "--locked"])
        .args(["--interpreter".as_ref(), python.as_os_str()])
        .args(["--out".as_ref(), wheels.as_os_str()])
        .current_dir(&folder))?;
    let wheel = std::fs::read_dir(&wheels)
        .map_err(|e| format!("{}: {e}", wheels.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
        .ok_or("maturin built no wheel")?;
    run(Command::new(python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--force-reinstall", "--no-deps"])
        .arg(&wheel))?;
    run(Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(folder.join("tests"))
        // Everything is installed, so a test that is skipped is one that fails.
        .env("ORTHANT_SKIP_NOTHING", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1"))
}

fn is_there(program: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|p| p.join(program).exists()))
}

fn make_venv(venv: &Path) -> Result<(), String> {
    let create = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv));
    if create().is_ok() {
        return Ok(());
    }
    // Debian ships Python without the module that makes environments.
    run(Command::new("apt-get").args(["install", "-y", "-qq", "python3-venv"]))?;
    create()
}

fn cargo(arguments: &[&str]) -> Result<(), String> {
    run(Command::new(CARGO).args(arguments).current_dir(root()))
}

fn run(command: &mut Command) -> Result<(), String> {
    println!("\n+ {}", shown(command));
    let begun = Instant::now();
    let status = command.status().map_err(|e| format!("{}: {e}", shown(command)))?;
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(format!("failed: {}", shown(command))) }
}

fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let mut words = vec![program.rsplit('/').next().unwrap_or_default().to_owned()];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

/// The folder of the checkout. Cargo tells it to the process: what it was when this was built may be that of
/// another checkout with the same target directory.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| "xtask".into(), PathBuf::from);
    package.join("..")
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
