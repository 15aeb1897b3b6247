//! The command line.

use clap::{Parser, ValueEnum};
use orthant_support::Threads;

/// Measure this machine: JSON Lines with ratios to plain reading and to matrix-vector products
#[derive(Debug, Parser)]
#[command(
    name = "orthant-bench",
    bin_name = "orthant bench",
    version,
    max_term_width = 100,
    after_help = "Examples:
  orthant bench                     everything, several minutes
  orthant bench --quick             small sizes, some seconds
  orthant bench --suite sweep | jq -c 'select(.bench == \"sweep\")'

Every line is a JSON object. Times are the best of interleaved repetitions, in seconds; compare ratios inside one run, not \
times between runs."
)]
pub(crate) struct Args {
    /// Small sizes and few repetitions
    #[arg(long)]
    pub(crate) quick: bool,
    /// Which measurements
    #[arg(long, value_enum, default_value_t = Suite::All)]
    pub(crate) suite: Suite,
    /// Race on the clouds of these files instead of all that (suite accuracy)
    #[arg(long, num_args = 2, value_names = ["X", "Y"], requires = "eps")]
    pub(crate) data: Option<Vec<String>>,
    /// Regularisation for --data
    #[arg(long, value_name = "E", requires = "data")]
    pub(crate) eps: Option<f64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// All of them
    All,
    /// The fused pass against plain reading and matrix-vector products; storing features
    Sweep,
    /// One thread against several
    Threads,
    /// The lattice: its iteration against stored features, growth of the time to ten million points
    Lattice,
    /// The exact kernel: a pass over all pairs, on one thread, in 2 to 100 dimensions
    Exact,
    /// Many dimensions: samples of the clouds against the exact kernel, growth of the time to a million points
    High,
    /// Errors of features against the exact kernel, at the ranks of the README; the race to a certified 1e-3 against
    /// the method of the paper
    Accuracy,
    /// What certificates add to the time of a solve
    Certificates,
    /// Pairs of a plan: features, a lattice, the exact kernel
    Pairs,
    /// Gradients and maps of a plan, in iterations: features, a lattice, the exact kernel
    Gradients,
    /// Peak memory of a solve against its feature matrices
    Memory,
    /// Growth of the time with the number of points
    Linear,
}
