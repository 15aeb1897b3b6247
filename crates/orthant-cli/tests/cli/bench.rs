//! `bench`, which is a program of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Sandbox, text};

/// A program that tells its arguments, and ends with a code of its own.
const PROGRAM: &str = "#!/bin/sh\necho \"$0\" \"$@\"\nexit 7\n";

/// Puts it into a folder.
fn install(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join("orthant-bench");
    fs::write(&path, PROGRAM).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The command alone in a folder, so that what stands beside it is known.
fn alone(sandbox: &Sandbox, folders: &str, arguments: &str) -> Output {
    let orthant = sandbox.path("bin/orthant");
    if !orthant.exists() {
        fs::create_dir_all(sandbox.path("bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_orthant"), &orthant).unwrap();
    }
    let mut command = Command::new(orthant);
    command.args(arguments.split_whitespace()).current_dir(sandbox.folder.path());
    command.env("PATH", folders).output().unwrap()
}

#[test]
fn the_program_beside_orthant_or_on_the_path_runs() {
    let sandbox = Sandbox::new();
    let folder = |name: &str| sandbox.path(name).to_str().unwrap().to_owned();
    let output = alone(&sandbox, &folder("path"), "bench --quick");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "orthant: orthant-bench is neither beside orthant nor on the PATH; build it with cargo build --release -p \
         orthant-bench\n"
    );
    assert_eq!(text(&output.stdout), "");

    // Options that orthant has too are not its own here.
    let arguments = "--quick --suite sweep --threads 2 --help -V";
    install(&sandbox.path("path"));
    let output = alone(&sandbox, &folder("path"), &format!("bench {arguments}"));
    let told = format!("{}/orthant-bench {arguments}\n", folder("path"));
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), told));

    install(&sandbox.path("bin"));
    let output = alone(&sandbox, &folder("path"), "bench");
    let told = format!("{}/orthant-bench\n", folder("bin"));
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), told));
    assert_eq!(text(&output.stderr), "");
}
