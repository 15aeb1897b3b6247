//! The command line.

use std::path::PathBuf;

use clap::Parser;
use orthant_support::Failure;

/// Runs the experiments of the paper, draws their figures and tables, and gathers them in report.html.
///
/// What was run already is not run again: results are kept as JSON Lines in the folder of --out, and everything is
/// drawn from these.
#[derive(Debug, Parser)]
#[command(name = "orthant-lab", version)]
pub(crate) struct Args {
    /// gaussians, sphere, higgs, barycenter, ratio, complexity, divergence, or all
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Small settings, for a look: minutes and not hours
    #[arg(long)]
    pub(crate) quick: bool,

    /// Folder with HIGGS.csv or HIGGS.csv.gz (or an extract of it, `higgs_10984x28.csv.gz`)
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Folder for results: DIR/quick with --quick, otherwise DIR/full
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) out: PathBuf,

    /// Only draw what there is; run nothing
    #[arg(long)]
    pub(crate) draw: bool,

    /// Take NAME.toml from this folder, and not the settings that come with the command
    #[arg(long, value_name = "DIR", conflicts_with = "draw")]
    pub(crate) experiments: Option<PathBuf>,
}

impl Args {
    /// The experiments that are asked for.
    pub(crate) fn names(&self) -> Result<Vec<Name>, Failure> {
        if self.name == "all" {
            return Ok(Name::ALL.to_vec());
        }
        let found = Name::ALL.into_iter().find(|name| name.as_str() == self.name);
        found.map(|name| vec![name]).ok_or_else(|| {
            let names = Name::ALL.map(Name::as_str).join(", ");
            Failure::input(format!("no experiment {:?}; there are {names}, and all", self.name))
        })
    }

    /// The folder of the results.
    pub(crate) fn folder(&self) -> PathBuf {
        self.out.join(if self.quick { "quick" } else { "full" })
    }
}

/// An experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Gaussians,
    Sphere,
    Higgs,
    Barycenter,
    Ratio,
    Complexity,
    Divergence,
}

impl Name {
    /// In the order of the page.
    pub(crate) const ALL: [Name; 7] = [
        Name::Gaussians,
        Name::Sphere,
        Name::Higgs,
        Name::Barycenter,
        Name::Ratio,
        Name::Complexity,
        Name::Divergence,
    ];

    /// On the command line and in names of files.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Name::Gaussians => "gaussians",
            Name::Sphere => "sphere",
            Name::Higgs => "higgs",
            Name::Barycenter => "barycenter",
            Name::Ratio => "ratio",
            Name::Complexity => "complexity",
            Name::Divergence => "divergence",
        }
    }
}
