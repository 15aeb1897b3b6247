//! `orthant-gan config`: settings that come with the command.

use std::path::Path;

use orthant_gan::Config;
use orthant_support::Failure;
use orthant_support::stdout::print;

use crate::args;

/// Names and files.
const BUILT_IN: [(&str, &str); 5] = [
    ("ring", include_str!("../../configs/ring.toml")),
    ("fashion-small", include_str!("../../configs/fashion-small.toml")),
    ("cifar-small", include_str!("../../configs/cifar-small.toml")),
    ("cifar", include_str!("../../configs/cifar.toml")),
    ("celeba", include_str!("../../configs/celeba.toml")),
];

pub(crate) fn run(arguments: &args::Config) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        let rows = BUILT_IN.map(|(name, text)| format!(" {name:<13}  {}", about(text)));
        return print(rows.join("\n"));
    };
    match find(name) {
        Some(text) => print(text.trim_end()),
        None => Err(unknown(name)),
    }
}

/// The settings of a file, or those of this name.
pub(crate) fn load(path: &Path) -> Result<Config, Failure> {
    let name = path.to_string_lossy();
    // Runs are often called as their settings are: a folder does not hide these.
    let folder = path.is_dir();
    match find(&name) {
        Some(text) if folder || !path.exists() => Ok(Config::parse(&name, text)?),
        _ if folder => Err(Failure::at(path, "this is a folder; give a TOML file")),
        None if !path.exists() => Err(unknown(&name)),
        _ => Ok(Config::read(path)?),
    }
}

fn find(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

fn unknown(name: &str) -> Failure {
    let names = BUILT_IN.map(|(name, _)| name).join(", ");
    Failure::input(format!("{name}: no such file, and no settings of this name; there are {names}"))
}

/// The first line, which is a comment.
fn about(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_be_read_and_say_what_they_are() {
        for (name, text) in BUILT_IN {
            Config::parse(name, text).unwrap();
            assert!(text.starts_with("# ") && about(text).len() > 20, "{name}");
        }
    }

    #[test]
    fn the_paper_s_are_those_of_the_paper() {
        // Figure 4 and section 4: s = 7000, r = 600, eps = 1; the code of its authors: RMSprop 5e-5, weights within 0.01.
        for name in ["cifar", "celeba"] {
            let config = Config::parse(name, find(name).unwrap()).unwrap();
            assert_eq!(config.training.batch, 7000);
            assert_eq!((config.kernel.rank, config.kernel.epsilon), (600, 1.0));
            assert_eq!((config.critic.rate, config.generator.rate), (5e-5, 5e-5));
            assert_eq!(config.critic.clip, Some(0.01));
        }
    }
}
