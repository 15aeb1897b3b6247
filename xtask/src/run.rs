//! Commands that are told, timed and ended if they take too long.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The longest that a command may take, unless it says otherwise: ten times what the longest took on two cores.
pub(crate) const LIMIT: Duration = Duration::from_hours(1);

/// Runs a command, tells what it is and how long it took.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    run_for(command, LIMIT)
}

/// The same with a time limit.
pub(crate) fn run_for(command: &mut Command, limit: Duration) -> Result<(), String> {
    println!("\n+ {}", shown(command));
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let child = command.spawn().map_err(|e| format!("{}: {e}", shown(command)))?;
    let status = wait(child, limit).map_err(|e| format!("{}: {e}", shown(command)))?;
    println!("  ({})", used(begun, cpu));
    if status.success() { Ok(()) } else { Err(format!("failed: {}", shown(command))) }
}

/// Waits for a process, and ends it with everything that it started when the time is over.
pub(crate) fn wait(mut child: Child, limit: Duration) -> Result<ExitStatus, String> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(status);
        }
        if Instant::now() >= end {
            kill(child.id());
            child.wait().map_err(|e| e.to_string())?;
            return Err(format!("ended after its time limit of {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends a process and its descendants. They keep the process group of this one, so that Ctrl-C reaches them.
fn kill(process: u32) {
    let mut doomed = vec![process];
    let parents = parents();
    let mut at = 0;
    while let Some(parent) = doomed.get(at).copied() {
        doomed.extend(parents.iter().filter(|(_, p)| **p == parent).map(|(child, _)| *child));
        at += 1;
    }
    let ids = doomed.iter().map(u32::to_string);
    // Nothing is lost if one of them ended in the meantime.
    let _ = Command::new("kill").arg("-KILL").args(ids).status();
}

/// The parents of all processes, where the system tells.
fn parents() -> HashMap<u32, u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|p| p.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter_map(|id| Some((id, stat(&id.to_string())?.get(1)?.parse().ok()?))).collect()
}

/// Fields of `/proc/ID/stat` after the name of the process, which may contain anything.
fn stat(process: &str) -> Option<Vec<String>> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(line.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// Seconds of all cores that ended children took, where the system tells.
pub(crate) fn cpu_seconds() -> f64 {
    let ticks = |fields: Vec<String>| -> Option<f64> {
        Some(fields.get(13)?.parse::<f64>().ok()? + fields.get(14)?.parse::<f64>().ok()?)
    };
    // A hundred ticks a second, for all programs of Linux.
    stat("self").and_then(ticks).unwrap_or(0.0) / 100.0
}

/// How long something took, and how long all cores together.
pub(crate) fn used(begun: Instant, cpu: f64) -> String {
    format!("{:.0} s, {:.0} s of CPU", begun.elapsed().as_secs_f64(), cpu_seconds() - cpu)
}

pub(crate) fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let mut words = vec![program.rsplit('/').next().unwrap_or_default().to_owned()];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Cargo in the folder of the checkout. What is built once is not built in steps: that would take longer.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    command
}

/// The folder of the checkout. Cargo tells it to the process: what it was when this was built may be that of
/// another checkout with the same target directory.
pub(crate) fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| "xtask".into(), PathBuf::from);
    package.parent().map_or_else(|| "..".into(), PathBuf::from)
}

pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

pub(crate) fn is_there(program: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|p| p.join(program).exists()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let begun = Instant::now();
        let mut command = Command::new("sh");
        // A child that outlives its shell, and tells its number.
        let file = env::temp_dir().join(format!("xtask-{}", std::process::id()));
        command.arg("-c").arg(format!("sleep 77 & echo $! > '{}'; wait", file.display()));
        let error = run_for(&mut command, Duration::from_secs(5)).unwrap_err();
        assert!(error.contains("time limit") && begun.elapsed() < Duration::from_mins(1));
        let sleeper = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        // Gone, or dead and not yet collected, a moment later.
        let lives = || stat(sleeper.trim()).is_some_and(|fields| fields[0] != "Z");
        let end = Instant::now() + Duration::from_secs(30);
        while lives() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!lives());
    }

    #[test]
    fn a_command_that_fails_is_an_error() {
        assert!(run(&mut Command::new("true")).is_ok());
        assert_eq!(run(&mut Command::new("false")).unwrap_err(), "failed: false");
    }
}
