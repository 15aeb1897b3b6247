//! Whether the modules of the library point one way.
//!
//! Every top-level module of `crates/orthant` is a layer, and a layer may use only those that come before it in
//! [`LAYERS`]. Tests of a module may use anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::run::root;

/// The layers of the library, the lowest first.
const LAYERS: [&str; 24] = [
    "words",
    "error",
    "numerics",
    "comm",
    "control",
    "measure",
    "ground",
    "rows",
    "coordinates",
    "anchors",
    "features",
    "options",
    "kernel",
    "sampling",
    "sinkhorn",
    "results",
    "term",
    "problem",
    "gradient",
    "plan",
    "solver",
    "tasks",
    "theory",
    "bench",
];

pub(crate) fn check() -> Result<(), String> {
    println!("\n+ layers of the library");
    let folder = root().join("crates").join("orthant").join("src");
    let wrong = wrong(&folder, &LAYERS)?;
    if wrong.is_empty() {
        println!("  {} layers, none uses a later one", LAYERS.len());
        return Ok(());
    }
    Err(format!(
        "modules use layers that come after them (LAYERS in xtask/src/layers.rs has the order):\n  {}",
        wrong.join("\n  ")
    ))
}

/// What is wrong with the modules of a crate, a line for each.
fn wrong(folder: &Path, layers: &[&str]) -> Result<Vec<String>, String> {
    let place = |name: &str| layers.iter().position(|layer| *layer == name);
    let mut wrong = Vec::new();
    let mut there = BTreeSet::new();
    for file in files(folder)? {
        let module = module(file.strip_prefix(folder).unwrap_or(&file));
        let Some(own) = module.first() else { continue };
        there.insert(own.clone());
        let Some(at) = place(own) else {
            wrong.push(format!("{own} is no layer: add it where it belongs"));
            continue;
        };
        let text =
            std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        for used in used(&text, module.len()) {
            match place(&used) {
                Some(layer) if layer <= at => {}
                Some(_) => wrong.push(format!("{} uses {used}", file.display())),
                None => wrong.push(format!("{} uses {used}, which is no layer", file.display())),
            }
        }
    }
    let missing = layers.iter().filter(|layer| !there.contains(**layer));
    wrong.extend(missing.map(|layer| format!("there is no module {layer}")));
    wrong.dedup();
    Ok(wrong)
}

/// All files of a crate but its root and those that are tests.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs")
            && !(path.ends_with("lib.rs") || path.ends_with("tests.rs"))
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The path of the module in a file: `kernel/mod.rs` is `kernel`.
fn module(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// The top-level modules that a module at some depth names.
fn used(text: &str, depth: usize) -> BTreeSet<String> {
    let code: Vec<&str> = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default()
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let root = format!("{}::", ["super"; 16][..depth.min(16)].join("::"));
    ["crate::", &root].iter().flat_map(|start| after(&code, start)).collect()
}

/// The names that follow a path, one or several in braces.
fn after(code: &str, start: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$';
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = Vec::new();
    for (at, _) in code.match_indices(start) {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let rest = &code[at + start.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.push(name(rest));
            continue;
        };
        let (mut deep, mut begun) = (0, 0);
        for (i, c) in group.char_indices() {
            match c {
                '{' => deep += 1,
                '}' if deep > 0 => deep -= 1,
                ',' | '}' if deep == 0 => {
                    names.push(name(&group[begun..i]));
                    begun = i + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_wherever_they_are() {
        let text = "use crate::a::B;\nuse crate::{c::{D, e}, f, self};\nfn g() { crate::h::i(); super::super::j::k() }\n\
                    // crate::l\nuse super::m;\n#[cfg(test)]\nmod tests { use crate::n; }";
        let found: Vec<String> = used(text, 2).into_iter().collect();
        assert_eq!(found, ["a", "c", "f", "h", "j", "self"]);
        assert_eq!(used("use super::m;", 1).into_iter().collect::<Vec<_>>(), ["m"]);
    }

    #[test]
    fn a_layer_that_uses_a_later_one_is_told() {
        let folder = std::env::temp_dir().join(format!("xtask-layers-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("low")).unwrap();
        std::fs::write(folder.join("lib.rs"), "mod low; mod high; pub use high::H;").unwrap();
        std::fs::write(folder.join("low/mod.rs"), "pub struct L;").unwrap();
        std::fs::write(folder.join("high.rs"), "use crate::low::L; pub struct H(L);").unwrap();
        let layers = ["low", "high"];
        assert_eq!(wrong(&folder, &layers), Ok(vec![]));
        assert_eq!(wrong(&folder, &["low", "high", "top"]).unwrap(), ["there is no module top"]);
        assert_eq!(
            wrong(&folder, &["low"]).unwrap(),
            ["high is no layer: add it where it belongs"]
        );
        std::fs::write(folder.join("low/inner.rs"), "use super::super::high::H;").unwrap();
        let told = wrong(&folder, &layers).unwrap();
        assert!(told.len() == 1 && told[0].ends_with("low/inner.rs uses high"), "{told:?}");
        std::fs::write(folder.join("low/inner.rs"), "use crate::H;").unwrap();
        assert!(wrong(&folder, &layers).unwrap()[0].ends_with("uses H, which is no layer"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
