//! Experiments as TOML: what the paper shows, and the settings of a full and a quick run.

use std::path::Path;

use orthant_support::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::args::{Args, Name};
use crate::study::Study;

/// The file of an experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<S> {
    title: String,
    figure: String,
    paper: String,
    full: S,
    quick: S,
}

/// What an experiment is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) title: String,
    /// Where it is in the paper.
    pub(crate) figure: String,
    /// What the paper says of it.
    pub(crate) paper: String,
}

/// The settings that come with the command.
fn built_in(name: Name) -> &'static str {
    match name {
        Name::Gaussians => include_str!("../experiments/gaussians.toml"),
        Name::Sphere => include_str!("../experiments/sphere.toml"),
        Name::Higgs => include_str!("../experiments/higgs.toml"),
        Name::Barycenter => include_str!("../experiments/barycenter.toml"),
        Name::Ratio => include_str!("../experiments/ratio.toml"),
        Name::Complexity => include_str!("../experiments/complexity.toml"),
        Name::Divergence => include_str!("../experiments/divergence.toml"),
    }
}

/// The settings of an experiment, checked.
pub(crate) fn load<S: Study>(name: Name, args: &Args) -> Result<(About, S), Failure> {
    let file = format!("{}.toml", name.as_str());
    let (place, text) = match &args.experiments {
        None => (file, built_in(name).to_owned()),
        Some(folder) => {
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
            (path.display().to_string(), text)
        }
    };
    let file: File<S> = parse(&place, &text)?;
    let settings = if args.quick { file.quick } else { file.full };
    settings.check().map_err(|error| Failure::input(format!("{place}: {error}")))?;
    let about = About { title: file.title, figure: file.figure, paper: file.paper };
    Ok((about, settings))
}

/// Reads TOML; an error is one line that names the place.
fn parse<T: DeserializeOwned>(place: &str, text: &str) -> Result<T, Failure> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or(text));
        let line = 1 + before.matches('\n').count();
        let message = error.message().replace('\n', " ");
        Failure::input(format!("{place}: line {line}: {message}"))
    })
}

/// Rejects what no run can be made from.
pub(crate) fn positive(what: &str, numbers: &[f64]) -> Result<(), String> {
    if numbers.is_empty() {
        return Err(format!("{what} is empty; give at least one number"));
    }
    match numbers.iter().find(|x| !(**x > 0.0 && x.is_finite())) {
        None => Ok(()),
        Some(bad) => Err(format!("{what} has {bad}; all must be positive and finite")),
    }
}

/// The same of counts.
pub(crate) fn counts(what: &str, numbers: &[usize]) -> Result<(), String> {
    positive(what, &numbers.iter().map(|n| *n as f64).collect::<Vec<_>>())
}

/// A folder that files can be written to.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::input(format!("{}: {error}; --out takes another folder", folder.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::{Barycentre, Complexity, Divergences, Ratio, Tradeoff};

    fn both<S: Study>(name: Name) {
        let file: File<S> = parse(name.as_str(), built_in(name)).unwrap();
        for settings in [file.full, file.quick] {
            settings.check().unwrap();
            let cases = settings.cases();
            assert!(!cases.is_empty());
            // Every run has a key of its own.
            let keys = cases.iter().map(|case| serde_json::to_string(case).unwrap());
            assert_eq!(keys.collect::<std::collections::HashSet<_>>().len(), cases.len());
            assert!(cases.iter().all(|case| settings.seconds(case) > 0.0));
        }
    }

    #[test]
    fn the_settings_that_come_with_the_command() {
        both::<Tradeoff>(Name::Gaussians);
        both::<Tradeoff>(Name::Sphere);
        both::<Tradeoff>(Name::Higgs);
        both::<Barycentre>(Name::Barycenter);
        both::<Ratio>(Name::Ratio);
        both::<Complexity>(Name::Complexity);
        both::<Divergences>(Name::Divergence);
    }

    #[test]
    fn errors_are_one_line_with_a_place() {
        let bad = "title = \"t\"\nfigure = 3\n";
        let error = parse::<File<Ratio>>("ratio.toml", bad).unwrap_err().to_string();
        assert!(error.starts_with("ratio.toml: line 2: ") && !error.contains('\n'), "{error}");
        assert!(positive("eps", &[]).unwrap_err().contains("empty"));
        assert!(positive("eps", &[1.0, -1.0]).unwrap_err().contains("-1"));
    }
}
