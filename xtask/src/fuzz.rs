//! The readers with files that were mutated at random, by cargo-fuzz.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::run::{root, run, run_for, target};

const VERSION: &str = "0.13.2";

/// Every target, or those that are named.
pub(crate) fn all(arguments: &[String]) -> Result<(), String> {
    let (seconds, named) = match arguments {
        [option, seconds, named @ ..] if option == "--seconds" => {
            let seconds = seconds.parse::<u64>();
            (seconds.map_err(|_| "--seconds needs a whole number".to_owned())?, named)
        }
        named => (60, named),
    };
    let known = targets()?;
    if let Some(wrong) = named.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no target {wrong:?}; there are {}", known.join(", ")));
    }
    let tool = tool()?;
    for name in if named.is_empty() { &known } else { named } {
        fuzz(&tool, name, seconds)?;
    }
    Ok(())
}

fn folder() -> PathBuf {
    root().join("fuzz")
}

/// Programs of the package of targets.
fn targets() -> Result<Vec<String>, String> {
    let folder = folder().join("fuzz_targets");
    let files = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let sources = paths.filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let mut names: Vec<String> =
        sources.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// Installs what is missing, in the target directory.
fn tool() -> Result<PathBuf, String> {
    let tools = target().join("tools");
    let tool = tools.join("bin").join("cargo-fuzz");
    if !tool.exists() {
        run(Command::new("cargo")
            .args(["install", "cargo-fuzz", "--version", VERSION, "--locked", "--quiet", "--root"])
            .arg(&tools))?;
    }
    Ok(tool)
}

/// Mutates the seeds of a target for so long. What it finds on the way is kept in the target directory, an input that
/// fails where cargo-fuzz says.
fn fuzz(tool: &Path, name: &str, seconds: u64) -> Result<(), String> {
    let found = target().join("fuzz-corpus").join(name);
    std::fs::create_dir_all(&found).map_err(|e| format!("{}: {e}", found.display()))?;
    let seeds = folder().join("seeds").join(name);
    let mut command = Command::new(tool);
    command
        // Sanitizers are not in stable compilers; without `unsafe` there is little for them to find.
        .args(["run", "--sanitizer", "none", "--fuzz-dir"])
        .arg(folder())
        .args(["--target-dir".as_ref(), target().join("fuzz").as_os_str()])
        .arg(name)
        .arg(&found);
    if seeds.exists() {
        command.arg(&seeds);
    }
    // A mutated file may ask for much memory, and must be refused; none may take long.
    command
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .env_remove("CARGO")
        .current_dir(root());
    // Half an hour to compile.
    run_for(&mut command, Duration::from_secs(seconds + 1_800))
}
