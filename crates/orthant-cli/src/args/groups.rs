//! Groups of options, which commands put together: what has no meaning for a command is not offered there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use orthant_support::Threads;

use super::values::{CostSpec, EpsilonSpec, cost, duration, epsilon, separator, size};

const READING: &str = "Reading files";
const TRANSFORM: &str = "Preparing the points";
const METHOD: &str = "Method";
const KERNELS: &str = "Kernels";
const ITERATIONS: &str = "Iterations and limits";
const UNBALANCED: &str = "Unbalanced transport";
const MORE: &str = "More output";

/// What every command that solves something takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) basic: Basic,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) kernel: Kernel,
    #[command(flatten)]
    pub(crate) iterating: Iterating,
}

/// The options to know first.
#[derive(Debug, Clone, Args)]
pub(crate) struct Basic {
    /// Regularisation: a number in units of the cost, a part of the mean cost such as 5%, or of the standard deviation
    /// of the cost such as 5%std [default: 5%; 1 for arccos and linear]
    #[arg(
        long,
        alias = "epsilon",
        value_name = "E",
        value_parser = epsilon,
        allow_hyphen_values = true
    )]
    pub(crate) eps: Option<EpsilonSpec>,
    #[arg(
        long,
        value_name = "A",
        allow_negative_numbers = true,
        help = "Largest relative error that auto and lattices may make: of value_kl, and of a divergence relative to \
                itself (or to 1 % of value_kl, if that is more) [default: 1e-3, for test 1e-2]"
    )]
    pub(crate) accuracy: Option<f64>,
    /// Columns that are coordinates: names or positions from 1, ranges as 2-5 [default: all that hold numbers, but
    /// for weights and groups]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// Column of weights of the points, in all files (name or position); for .npz also another array
    #[arg(long, value_name = "COLUMN")]
    pub(crate) weights: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// No notes, warnings or progress on standard error
    #[arg(long, short, help_heading = MORE)]
    pub(crate) quiet: bool,
}

/// How files are read, and what is done to the points before anything else.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reading {
    /// Match the columns of files by their position, and not by their names
    #[arg(long, help_heading = READING)]
    pub(crate) by_position: bool,
    /// What to do with rows that have missing values
    #[arg(long, value_enum, default_value_t = MissingName::Error, help_heading = READING)]
    pub(crate) missing: MissingName,
    /// Whether the first line of a text file names the columns
    #[arg(long, value_enum, default_value_t = HeaderName::Auto, help_heading = READING)]
    pub(crate) header: HeaderName,
    /// Character between the fields of a text file, or comma, semicolon, tab, space, pipe [default: found]
    #[arg(long, value_name = "C", value_parser = separator, help_heading = READING)]
    pub(crate) separator: Option<u8>,
    /// Character before the decimals of numbers in text files
    #[arg(long, value_enum, value_name = "C", default_value_t = DecimalName::Point, help_heading = READING)]
    pub(crate) decimal: DecimalName,

    /// Give all columns one spread, the same for all clouds: by mean and standard deviation, or by median and
    /// quartiles
    #[arg(long, value_enum, default_value_t = ScaleName::None, help_heading = TRANSFORM)]
    pub(crate) scale: ScaleName,
    /// Use the first K principal components of all clouds together (after --scale)
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), help_heading = TRANSFORM)]
    pub(crate) pca: Option<u32>,
    /// Use N rows of each cloud, drawn at random with --seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = TRANSFORM)]
    pub(crate) sample: Option<u64>,
}

/// The kernel and its approximation.
#[derive(Debug, Clone, Args)]
pub(crate) struct Kernel {
    /// Cost of two points: sqeuclidean, |x - y|^2; cosine, 1 - x.y of directions; dot, -x.y; mahalanobis:FILE, (x - y)'
    /// A (x - y) with A from a file; and, exact or sampled: euclidean, |x - y|; l1; lp:P; geodesic, the angle [default: sqeuclidean]
    #[arg(long, value_name = "COST", value_parser = cost, help_heading = METHOD)]
    pub(crate) cost: Option<CostSpec>,
    /// How the kernel is applied
    #[arg(long, value_enum, default_value_t = MethodName::Auto, help_heading = METHOD)]
    pub(crate) method: MethodName,
    /// Where the anchors of gaussian features are [default: sobol]; auto becomes gaussian
    #[arg(long, value_enum, value_name = "ANCHORS", help_heading = METHOD)]
    pub(crate) anchors: Option<AnchorsName>,
    /// Number of random features or landmarks [default: 1000], or of lattice nodes at most [default: as the accuracy
    /// needs]; auto becomes gaussian
    #[arg(long, value_name = "R", help_heading = METHOD)]
    pub(crate) rank: Option<usize>,
    /// Largest number of random features that auto may use [default: as many as the memory allows]
    #[arg(long, value_name = "R", help_heading = METHOD)]
    pub(crate) max_rank: Option<usize>,
    /// Seed of everything random: features, landmarks, samples, pairs, permutations
    #[arg(long, default_value_t = 0, help_heading = METHOD)]
    pub(crate) seed: u64,
    /// Number format of stored features and kernels; sums across points are always in f64
    #[arg(long, value_enum, default_value_t = PrecisionName::F64, help_heading = METHOD)]
    pub(crate) precision: PrecisionName,

    /// The paper's anchors around the origin, as it has them, and not around the clouds
    #[arg(long, help_heading = KERNELS)]
    pub(crate) uncentred: bool,
    /// Order of the arc-cosine kernel: 0, 1 or 2 [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=2), help_heading = KERNELS)]
    pub(crate) order: Option<u8>,
    /// Added to the arc-cosine kernel to keep it positive [default: 0.1]
    #[arg(long, allow_negative_numbers = true, help_heading = KERNELS)]
    pub(crate) kappa: Option<f64>,
    /// Spread of the anchors of the arc-cosine kernel, at least 1 [default: 1.5]
    #[arg(long, allow_negative_numbers = true, help_heading = KERNELS)]
    pub(crate) sigma: Option<f64>,
}

/// When to stop, and what may be used.
#[derive(Debug, Clone, Args)]
pub(crate) struct Iterating {
    /// Stop when the L1 error of the marginal is below this [default: 1e-6; for a debiased barycentre on given points
    /// 1e-3]
    #[arg(
        long,
        alias = "tolerance",
        value_name = "T",
        allow_negative_numbers = true,
        help_heading = ITERATIONS
    )]
    pub(crate) tol: Option<f64>,
    /// Stop after so many iterations
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = ITERATIONS)]
    pub(crate) max_iter: usize,
    /// Stop after this time, everything included: seconds, or with a unit (500ms, 30s, 5m, 2h)
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = ITERATIONS)]
    pub(crate) time_limit: Option<Duration>,
    /// Memory to use: bytes, or with a unit (500M, 2G, 8GiB are powers of 1024, 500MB of 1000) [default: what is
    /// free, within the limits of the process]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = ITERATIONS)]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// How iterations go on, where there is a choice.
#[derive(Debug, Clone, Args)]
pub(crate) struct Solving {
    /// How the iterations go on
    #[arg(long, value_enum, default_value_t = SolverName::Auto, help_heading = ITERATIONS)]
    pub(crate) solver: SolverName,
    /// Solve in the coordinates given, and not in those in which both clouds have the same mean and covariance: the
    /// same result, with more features
    #[arg(long, help_heading = KERNELS)]
    pub(crate) no_gauge: bool,
}

/// What is known of the exact kernel beyond the method.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Refining {
    /// Bound the distance from the exact kernel by samples of the plan, for random features of any kind; what auto
    /// chooses always has such bounds
    #[arg(long, help_heading = METHOD)]
    pub(crate) certify: bool,
    /// Go on from the potentials that features gave with the exact kernel: its solution in a few iterations of
    /// quadratic time
    #[arg(long, help_heading = METHOD)]
    pub(crate) polish: bool,
    /// How nystrom draws its landmarks [default: leverage]
    #[arg(long, value_enum, value_name = "LANDMARKS", help_heading = KERNELS)]
    pub(crate) landmarks: Option<LandmarksName>,
    /// Points of each cloud in a sample of --method sampled [default: as the accuracy needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..), help_heading = KERNELS)]
    pub(crate) sample_size: Option<u64>,
    /// Independent samples of --method sampled [default: 8]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(2..), help_heading = KERNELS)]
    pub(crate) samples: Option<u64>,
}

/// The two clouds of a command: two files, or two groups of one file.
#[derive(Debug, Clone, Args)]
pub(crate) struct TwoClouds {
    /// First cloud: a file, or - for standard input; with --group the only file
    pub(crate) x: OsString,
    /// Second cloud: a file, or - for standard input
    pub(crate) y: Option<OsString>,
    /// Split one file into two clouds by the values of a column, text or numbers (name or position)
    #[arg(long, value_name = "COLUMN", help_heading = READING)]
    pub(crate) group: Option<String>,
    /// The two values of the --group column to compare, where there are more
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "group", help_heading = READING)]
    pub(crate) between: Option<Vec<String>>,
    /// Column of weights of the first file only
    #[arg(long, value_name = "COLUMN", conflicts_with = "weights", help_heading = READING)]
    pub(crate) weights_x: Option<String>,
    /// Column of weights of the second file only
    #[arg(long, value_name = "COLUMN", conflicts_with = "weights", help_heading = READING)]
    pub(crate) weights_y: Option<String>,
}

/// Several clouds: files, or the groups of one file.
#[derive(Debug, Clone, Args)]
pub(crate) struct ManyClouds {
    /// Clouds: files, or - for standard input; with --group one file
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<OsString>,
    /// Split one file into clouds by the values of a column, text or numbers (name or position)
    #[arg(long, value_name = "COLUMN", help_heading = READING)]
    pub(crate) group: Option<String>,
}

/// How far marginals may differ from the weights.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Reach {
    /// Let mass appear or vanish where it would have to move much further than R: the marginals may differ from the
    /// weights at a price of 2 R^2 KL (in units of the cost; GeomLoss's reach). Weights then count as given, also
    /// their sums
    #[arg(long, value_name = "R", allow_negative_numbers = true, help_heading = UNBALANCED)]
    pub(crate) reach: Option<f64>,
    /// Divide the weights of each cloud by their sum (as is always done without --reach)
    #[arg(long, help_heading = UNBALANCED)]
    pub(crate) normalize: bool,
}

/// How far one of two marginals may differ from the weights, where that need not be the same for both.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ReachSides {
    /// --reach for the first cloud only; the other keeps its weights
    #[arg(long, value_name = "R", allow_negative_numbers = true, conflicts_with = "reach", help_heading = UNBALANCED)]
    pub(crate) reach_x: Option<f64>,
    /// --reach for the second cloud only
    #[arg(long, value_name = "R", allow_negative_numbers = true, conflicts_with = "reach", help_heading = UNBALANCED)]
    pub(crate) reach_y: Option<f64>,
}

/// A file of the iterations.
#[derive(Debug, Clone, Args)]
pub(crate) struct Tracing {
    /// Write the iterations to a file of JSON Lines, .jsonl: term, iteration, time, dual value, marginal error
    #[arg(long, value_name = "FILE", help_heading = MORE)]
    pub(crate) trace: Option<PathBuf>,
}

/// What commands about a problem of two clouds take.
#[derive(Debug, Clone, Args)]
pub(crate) struct Problem {
    #[command(flatten)]
    pub(crate) clouds: TwoClouds,
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) solving: Solving,
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(flatten)]
    pub(crate) tracing: Tracing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// The quickest for the accuracy: a lattice, Sobol anchors, samples of the clouds, or exact
    Auto,
    /// Features of the squared Euclidean cost, linear time; see --anchors
    Gaussian,
    /// The same as gaussian with --anchors lattice: an error bound, up to four coordinates
    Lattice,
    /// Random features of the arc-cosine kernel, linear time
    Arccos,
    /// Cost -eps log x.y of positive coordinates, linear time
    Linear,
    /// Exact, the kernel stored
    Dense,
    /// Exact, the kernel recomputed: linear memory
    Online,
    /// The kernel of the squared Euclidean cost from its columns at landmarks, linear time: precise for
    /// large epsilon, fails at small; see --landmarks and --rank
    Nystrom,
    /// Samples of the clouds, solved exactly: any cost in any number of coordinates, linear time, with an interval; see
    /// --sample-size
    Sampled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LandmarksName {
    /// By ridge leverage scores: small clusters too
    Leverage,
    /// All points alike
    Uniform,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnchorsName {
    /// Random, from Sobol points: any number of coordinates
    Sobol,
    /// Around the pairs that the plan couples: for clouds of several pieces, and small epsilon
    Adaptive,
    /// Random, independent
    Iid,
    /// Random, in orthogonal directions
    Orthogonal,
    /// The nodes of a lattice: an error bound, up to four coordinates
    Lattice,
    /// Random, as the paper has them: one variance for all directions
    Paper,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SolverName {
    /// What needs the fewest iterations: anderson, and small epsilon by way of larger ones
    Auto,
    /// Sinkhorn's algorithm as it is
    Plain,
    /// Each iteration extrapolates from the last few: a fraction of their number
    Anderson,
    /// The paper's Algorithm 2: momentum on the dual, with a proven rate
    Accelerated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionName {
    /// Single precision: half the memory, twice the speed
    F32,
    /// Double precision
    F64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MissingName {
    /// Refuse the file
    Error,
    /// Skip such rows
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderName {
    /// Found from the content
    Auto,
    /// It does
    Yes,
    /// It is the first row
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecimalName {
    /// 1.5
    #[value(name = ".", alias = "point")]
    Point,
    /// 1,5
    #[value(name = ",", alias = "comma")]
    Comma,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScaleName {
    /// As the files have them
    None,
    /// By mean and standard deviation
    Standard,
    /// By median and distance of the quartiles
    Robust,
}
