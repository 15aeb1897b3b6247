//! The command against other libraries, its pages in a browser, and the Python package.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{is_there, root, run, target};
use crate::rust::{command, release};

/// What installs the packages.
const UV: &str = "uv==0.13.8";

/// An environment with all packages that the tests need; returns its Python. All of them or none: what cannot be
/// installed is an error, and no reason to skip tests.
pub(crate) fn environment() -> Result<PathBuf, String> {
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
        // Ten times as quick as pip with these packages; what it downloads is linked, and not copied, from its cache.
        run(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            UV,
        ]))?;
        run(Command::new(&python)
            .args(["-m", "uv", "pip", "install", "--quiet"])
            .args(["--python".as_ref(), python.as_os_str()])
            .args(["--cache-dir".as_ref(), target().join("uv").as_os_str()])
            .args(["-r".as_ref(), requirements.as_os_str()]))?;
        std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    }
    Ok(python)
}

/// Results of the release build against POT, on files that NumPy, pandas and Arrow wrote; its pages in a browser; and
/// the Python package, as a wheel that is built and installed.
pub(crate) fn all(python: &Path) -> Result<(), String> {
    run(&mut release())?;
    let folder = root().join("tests");
    if ["chromium-headless-shell", "chromium"].iter().all(|name| !is_there(name)) {
        // A package that is small beside the browser with its windows.
        run(Command::new("apt-get").args(["update", "-qq"]))?;
        let install = ["install", "-y", "-qq", "--no-install-recommends"];
        run(Command::new("apt-get").args(install).arg("chromium-headless-shell"))?;
    }
    run(pytest(python)
        .args(["compare.py", "schema.py", "page.py"].map(|file| folder.join(file)))
        .env("ORTHANT", command()))?;
    package(python)
}

/// Pytest; a test that takes longer than the seconds of the limit fails, with the lines where it hung.
fn pytest(python: &Path) -> Command {
    let mut command = Command::new(python);
    command
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=600", "--durations=15"])
        // Not beside the sources.
        .env("PYTHONPYCACHEPREFIX", target().join("pycache"));
    command
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
    run(pytest(python)
        .arg(folder.join("tests"))
        // Everything is installed, so a test that is skipped is one that fails.
        .env("ORTHANT_SKIP_NOTHING", "1"))
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
