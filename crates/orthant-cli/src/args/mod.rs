//! The command line.

mod examples;
mod groups;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub(crate) use groups::{
    AnchorsName, Common, DecimalName, HeaderName, LandmarksName, ManyClouds, MethodName,
    MissingName, PrecisionName, Problem, Reach, ReachSides, Reading, Refining, ScaleName,
    SolverName, Solving, Tracing, TwoClouds,
};
pub(crate) use orthant_support::Threads;
pub(crate) use values::{CostScale, CostSpec, EpsilonSpec};

/// Optimal transport in linear time, with an error bar.
///
/// Compares clouds of points: how far apart they are, what moves where, and whether the difference is more than chance,
/// to an accuracy that you choose.
#[derive(Debug, Parser)]
#[command(
    name = "orthant",
    version,
    max_term_width = 100,
    after_help = "Examples:
  orthant demo                              see it work, no files needed
  orthant divergence before.csv after.csv   how far apart are two clouds?
  orthant divergence cells.csv --group day --between 1,7   two groups of a file
  orthant rot x.npy y.npy --eps 5% --json   the cost of moving one to the other
  orthant map x.csv y.csv -o moved.csv      where does every point go?
  orthant flow x.csv y.csv --picture f.png  one becomes the other, step by step
  orthant report x.csv y.csv -o page.html   all of it on a page, with pictures
  orthant test before.csv after.csv         is the difference more than chance?
  orthant barycenter a.csv b.csv -o m.csv   what lies between them?
  orthant compare a.csv b.csv c.csv         which of many clouds are alike?

-h after a command shows the options to know first, --help all of them.

Exit codes: 0 done; 2 bad usage or bad input; 3 not converged, or not as accurate as asked for, within the limits (the \
result so far is printed); 1 anything else."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line as it was given; ends the program where it makes no sense.
    pub(crate) fn read() -> Self {
        let matches = Cli::described().get_matches();
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The commands, with short help that shows the options to know first.
    pub(crate) fn described() -> clap::Command {
        let beginners_first = |arg: clap::Arg| {
            let advanced = arg.get_help_heading().is_some();
            arg.hide_short_help(advanced)
        };
        Cli::command().mut_subcommands(|command| command.mut_args(beginners_first))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Regularised optimal transport (ROT) between two clouds
    #[command(after_help = examples::ROT)]
    Rot(Rot),
    /// Sinkhorn divergence of two clouds: zero if they are equal, positive if not
    #[command(after_help = examples::DIVERGENCE)]
    Divergence(Divergence),
    /// Move one cloud to the other along the plan, bring columns of it back, or list which points are coupled
    #[command(after_help = examples::MAP)]
    Map(Map),
    /// One page about two clouds for a browser: the clouds, the map, potentials, convergence, values
    #[command(after_help = examples::REPORT)]
    Report(Report),
    /// Move one cloud to the other along the gradient of the divergence, step by step
    #[command(after_help = examples::FLOW)]
    Flow(Flow),
    /// Barycentre of several clouds: weights on given points, or points that are free
    #[command(after_help = examples::BARYCENTER)]
    Barycenter(Barycenter),
    /// Two-sample test: the probability that one distribution gives clouds so different
    #[command(after_help = examples::TEST)]
    Test(Test),
    /// Many clouds: the Sinkhorn divergences of all pairs, with intervals
    #[command(after_help = examples::COMPARE)]
    Compare(Compare),
    /// The problem of the paper's Figure 1, on lattices, with random features and exactly; no files needed
    Demo(Demo),
    /// Measure this machine: JSON Lines with ratios to plain reading and to matrix-vector products
    #[command(disable_help_flag = true, after_help = examples::BENCH)]
    Bench {
        /// What orthant-bench takes; --help shows it
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  orthant completions bash > ~/.local/share/bash-completion/completions/orthant"
    )]
    Completions {
        /// bash, elvish, fish, powershell or zsh
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    #[command(
        after_help = "Examples:\n  orthant man > orthant.1 && man ./orthant.1\n  orthant man rot > orthant-rot.1"
    )]
    Man {
        /// Of a subcommand [default: of orthant itself]
        page: Option<String>,
    },
}

/// What `rot` takes.
#[derive(Debug, Args)]
pub(crate) struct Rot {
    #[command(flatten)]
    pub(crate) problem: Problem,
    #[command(flatten)]
    pub(crate) sides: ReachSides,
    #[command(flatten)]
    pub(crate) refining: Refining,
    /// Write the potentials of all points to a table, .csv, .tsv or .npy
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw both clouds and where points go, .svg or .png
    #[arg(long, value_name = "FILE", help_heading = "More output")]
    pub(crate) picture: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pairs: Pairs,
}

/// What `divergence` takes.
#[derive(Debug, Args)]
pub(crate) struct Divergence {
    #[command(flatten)]
    pub(crate) problem: Problem,
    #[command(flatten)]
    pub(crate) refining: Refining,
    /// Write the potentials of all points to a table, .csv, .tsv or .npy, with those of the clouds with themselves
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw both clouds, and which points take part in the difference, .svg or .png
    #[arg(long, value_name = "FILE", help_heading = "More output")]
    pub(crate) picture: Option<PathBuf>,
}

/// What `map` takes.
#[derive(Debug, Args)]
pub(crate) struct Map {
    #[command(flatten)]
    pub(crate) problem: Problem,
    #[command(flatten)]
    pub(crate) sides: ReachSides,
    #[command(flatten)]
    pub(crate) refining: Refining,
    /// Write the moved points to a table, .csv, .tsv or .npy [default: CSV to standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw both clouds and where points go, .svg or .png
    #[arg(long, value_name = "FILE", help_heading = "More output")]
    pub(crate) picture: Option<PathBuf>,
    /// Map the points of this file, and not those of the first cloud (with --back: of the second)
    #[arg(long, value_name = "FILE", help_heading = "Maps")]
    pub(crate) at: Option<OsString>,
    /// Map the second cloud to the first
    #[arg(long, help_heading = "Maps")]
    pub(crate) back: bool,
    /// Bring along a column of the cloud that is mapped to (name or position): the mean of numbers, a vote on text;
    /// may be repeated
    #[arg(long, value_name = "COLUMN", help_heading = "Maps")]
    pub(crate) carry: Vec<String>,
    /// The same, by vote also where the column holds numbers
    #[arg(long, value_name = "COLUMN", help_heading = "Maps")]
    pub(crate) vote: Vec<String>,
    /// Write the largest partners of every point to a table: the row of the point, the row of the partner, and the
    /// probability; takes all pairs
    #[arg(long, value_name = "FILE", help_heading = "Maps")]
    pub(crate) partners: Option<PathBuf>,
    /// Number of partners of a point
    #[arg(
        long,
        value_name = "K",
        default_value_t = 5,
        requires = "partners",
        help_heading = "Maps"
    )]
    pub(crate) top_k: usize,
    #[command(flatten)]
    pub(crate) pairs: Pairs,
}

/// What `report` takes.
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) problem: Problem,
    #[command(flatten)]
    pub(crate) refining: Refining,
    /// The page to write, .html
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Samples of the plan.
#[derive(Debug, Args)]
pub(crate) struct Pairs {
    /// Write pairs of points that the plan couples to a table, .csv, .tsv or .npy: their rows in the first and the
    /// second file, from 1 (in arrays from 0), drawn independently with the probabilities of the plan
    #[arg(long, value_name = "FILE", help_heading = "Pairs")]
    pub(crate) pairs: Option<PathBuf>,
    /// Number of pairs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        requires = "pairs",
        help_heading = "Pairs"
    )]
    pub(crate) count: usize,
}

const FLOW: &str = "Flow";
const STEPS: &str = "Steps";

/// What `flow` takes.
#[derive(Debug, Args)]
pub(crate) struct Flow {
    #[command(flatten)]
    pub(crate) problem: Problem,
    /// Write the points at the end to a table, .csv, .tsv or .npy, with the other columns of the file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) moving: Moving,
    /// Stop when the divergence is at most this part of the first one; not to get there is exit code 3
    #[arg(long, value_name = "PART", allow_negative_numbers = true, help_heading = STEPS)]
    pub(crate) until: Option<f64>,
    /// Write the snapshots to a table, .csv, .tsv or .npy: step, row of the point, and its coordinates
    #[arg(long, value_name = "FILE", help_heading = FLOW)]
    pub(crate) path: Option<PathBuf>,
    /// Draw the clouds with the ways of some points, and the divergence, to a file, .svg or .png
    #[arg(long, value_name = "FILE", help_heading = FLOW)]
    pub(crate) picture: Option<PathBuf>,
    /// Draw every snapshot to a file of its own: frame.png becomes frame-000.png, frame-001.png, ...
    #[arg(long, value_name = "FILE", help_heading = FLOW)]
    pub(crate) frames: Option<PathBuf>,
    /// Steps between two snapshots [default: so many that there are ten to twenty, or all steps]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), help_heading = FLOW)]
    pub(crate) every: Option<u32>,
}

/// How points move.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Moving {
    /// Number of steps, at most [default: 100]
    #[arg(long, value_name = "N", help_heading = STEPS)]
    steps: Option<usize>,
    /// Size of a step: 1 is all the way that the gradient of the squared Euclidean cost leads [default: 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true, help_heading = STEPS)]
    step: Option<f64>,
    /// Part of the last step that is added to the next [default: 0.5]
    #[arg(long, value_name = "B", allow_negative_numbers = true, help_heading = STEPS)]
    momentum: Option<f64>,
    /// Stop when the gradient is at most this part of the first one [default: 1e-3]
    #[arg(long, value_name = "PART", allow_negative_numbers = true, help_heading = STEPS)]
    still: Option<f64>,
}

impl Moving {
    /// Number of steps, at most.
    pub(crate) fn steps(self) -> usize {
        self.steps.unwrap_or(100)
    }

    pub(crate) fn step(self) -> f64 {
        self.step.unwrap_or(1.0)
    }

    pub(crate) fn momentum(self) -> f64 {
        self.momentum.unwrap_or(0.5)
    }

    pub(crate) fn still(self) -> f64 {
        self.still.unwrap_or(1e-3)
    }

    /// The first of these options that was given, if one was.
    pub(crate) fn given(self) -> Option<&'static str> {
        let options = [
            (self.steps.is_some(), "--steps"),
            (self.step.is_some(), "--step"),
            (self.momentum.is_some(), "--momentum"),
            (self.still.is_some(), "--still"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

const BARYCENTER: &str = "Barycentre";

/// What `barycenter` takes.
#[derive(Debug, Args)]
pub(crate) struct Barycenter {
    #[command(flatten)]
    pub(crate) clouds: ManyClouds,
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
    /// Write the points and their weights to a table, .csv, .tsv or .npy
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw the clouds and their barycentre, .svg or .png
    #[arg(long, value_name = "FILE", help_heading = BARYCENTER)]
    pub(crate) picture: Option<PathBuf>,
    /// How much each cloud counts, one number for each, as in 0.2,0.3,0.5 [default: equal]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, help_heading = BARYCENTER)]
    pub(crate) shares: Option<String>,
    /// Points that the barycentre may have [default: all points of the clouds, each once]
    #[arg(long, value_name = "FILE", help_heading = BARYCENTER)]
    pub(crate) support: Option<OsString>,
    /// Move N points freely, of equal weights, drawn from the clouds, and do not only weigh given ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = BARYCENTER)]
    pub(crate) free: Option<u32>,
    /// Move the points of this file freely, with their weights if there is --weights
    #[arg(long, value_name = "FILE", conflicts_with = "free", help_heading = BARYCENTER)]
    pub(crate) start: Option<OsString>,
    #[command(flatten)]
    pub(crate) moving: Moving,
    /// The barycentre of the divergence, which is not blurred (of points that are free: not shrunk)
    #[arg(long, help_heading = BARYCENTER)]
    pub(crate) debiased: bool,
    /// Also write exp(T weight / largest weight), divided by the sum: a picture of the peaks
    #[arg(long, value_name = "T", allow_negative_numbers = true, help_heading = BARYCENTER)]
    pub(crate) softmax: Option<f64>,
}

impl Barycenter {
    /// Whether its points move.
    pub(crate) fn is_free(&self) -> bool {
        self.free.is_some() || self.start.is_some()
    }
}

/// What `test` takes.
#[derive(Debug, Args)]
pub(crate) struct Test {
    #[command(flatten)]
    pub(crate) clouds: TwoClouds,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Number of random permutations
    #[arg(long, value_name = "N", default_value_t = 999)]
    pub(crate) permutations: usize,
    /// Write the divergences of the clouds (0) and of the permutations to a table, .csv, .tsv or .npy
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw the divergences of the permutations beside that of the clouds, .svg or .png
    #[arg(long, value_name = "FILE", help_heading = "More output")]
    pub(crate) picture: Option<PathBuf>,
}

/// What `compare` takes.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) clouds: ManyClouds,
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) solving: Solving,
    #[command(flatten)]
    pub(crate) refining: Refining,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Write the matrix to a table, .csv or .tsv with names, .npy without
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw the matrix with its tree, and the clouds in the plane, to a file, .svg or .png
    #[arg(long, value_name = "FILE", help_heading = "More output")]
    pub(crate) picture: Option<PathBuf>,
    /// Write all pairs to a table, .csv or .tsv: first, second, divergence, low, high, converged
    #[arg(long, value_name = "FILE", help_heading = "More output")]
    pub(crate) intervals: Option<PathBuf>,
    /// Keep finished pairs in a file of JSON Lines, .jsonl, and go on from those that are there already
    #[arg(long, value_name = "FILE", help_heading = "More output")]
    pub(crate) keep: Option<PathBuf>,
}

/// What `demo` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  orthant demo                     20,000 points a cloud, some seconds
  orthant demo --rank 4000         four times the random features, half their error
  orthant demo --points 1000000    a million points a cloud")]
pub(crate) struct Demo {
    /// Points of each cloud
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub(crate) points: u32,
    /// Number of random features, to compare with
    #[arg(long, value_name = "R", default_value_t = 1000)]
    pub(crate) rank: usize,
    /// Seed of the clouds and of the features
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::described().debug_assert();
    }

    #[test]
    fn beginners_see_few_options_first() {
        let help = |name: &str| {
            let mut command = Cli::described();
            command.build();
            command.find_subcommand_mut(name).unwrap().render_help().to_string()
        };
        for name in ["rot", "divergence", "map", "compare", "flow"] {
            let help = help(name);
            let options = help.lines().filter(|line| line.trim_start().starts_with('-')).count();
            // Six, and the help itself.
            assert_eq!(options, 7, "{name}: {help}");
        }
    }
}
