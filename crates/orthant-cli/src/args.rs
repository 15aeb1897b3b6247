//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Optimal transport in linear time.
///
/// Compares two clouds of points: how far apart they are (regularised optimal transport and Sinkhorn
/// divergences), with positive features, whose iterations cost r (n + m), to an accuracy that you
/// choose, or exactly.
#[derive(Debug, Parser)]
#[command(
    name = "orthant",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  \
        orthant demo                              see it work, no files needed\n  \
        orthant divergence before.csv after.csv   how far apart are two clouds?\n  \
        orthant rot x.npy y.npy --accuracy 1e-5   how much does it cost to move one to the other?\n  \
        orthant rot x.npy y.npy --eps 0.1 --json  the same for programs\n  \
        orthant map x.csv y.csv -o moved.csv      where does every point go?\n  \
        orthant flow x.csv y.csv --picture f.png  one cloud becomes the other, step by step\n  \
        orthant report x.csv y.csv -o page.html   all of it on a page, with pictures\n  \
        orthant test before.csv after.csv         is the difference more than chance?\n  \
        orthant barycenter a.csv b.csv c.csv --output mean.csv   what lies between them?\n  \
        orthant compare a.csv b.csv c.csv         which of many clouds are alike?\n\n\
        Exit codes: 0 done, 2 bad usage or bad input, 3 did not converge, or did not reach the accuracy,\n\
        within the limits (the result so far is printed), 1 anything else."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Regularised optimal transport (ROT) between two clouds
    #[command(after_help = SOLVE_EXAMPLES_ROT)]
    Rot(Rot),
    /// Sinkhorn divergence of two clouds: zero if they are equal, positive if not
    #[command(after_help = SOLVE_EXAMPLES_DIVERGENCE)]
    Divergence(Solve),
    /// Move one cloud to the other along the plan, bring columns of it back, or list what goes where
    #[command(after_help = MAP_EXAMPLES)]
    Map(Map),
    /// One page about two clouds for a browser: the clouds, the map, potentials, convergence, values
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Report),
    /// Move one cloud to the other along the gradient of the divergence, step by step
    #[command(
        after_help = FLOW_EXAMPLES,
        mut_arg("output", |a| a.help_heading(FLOW)
            .help("Write the points at the end to a table, .csv, .tsv or .npy, with the other columns of the file")),
        mut_arg("trace", |a| a.help("Write the steps to a file of JSON Lines")),
        mut_arg("time_limit", |a| a.help("Stop after this time, all steps together: seconds, or with a unit (500ms, 30s, 5m, 2h)")),
        mut_arg("certify", |a| a.hide(true)),
        mut_arg("polish", |a| a.hide(true)),
        mut_arg("landmarks", |a| a.hide(true))
    )]
    Flow(Flow),
    /// Barycentre of several clouds: weights on given points, or points that are free, as close as can be to all of them
    #[command(
        after_help = BARYCENTER_EXAMPLES,
        mut_arg("eps", |a| a.help("Regularisation [default: 0.05 times the mean squared distance of the clouds; 1 for arccos and linear]")),
        mut_arg("weights", |a| a.value_name("LIST").help_heading(BARYCENTER)
            .help("Weights of the clouds, one for each, as in 0.2,0.3,0.5 [default: equal]")),
        mut_arg("output", |a| a.help_heading(BARYCENTER)
            .help("Write the points and their weights to a table, .csv, .tsv or .npy")),
        mut_arg("trace", |a| a.help("Write the iterations to a file of JSON Lines")),
        mut_arg("tol", |a| a.help("Stop when the L1 error of the marginals is below this [default: 1e-6, with --debiased on given points 1e-3]")
            .hide_default_value(true)
            .default_value_ifs([
                ("free", clap::builder::ArgPredicate::IsPresent, "1e-6"),
                ("start", clap::builder::ArgPredicate::IsPresent, "1e-6"),
                ("debiased", clap::builder::ArgPredicate::IsPresent, "1e-3"),
            ])),
        mut_arg("certify", |a| a.hide(true)),
        mut_arg("polish", |a| a.hide(true)),
        mut_arg("solver", |a| a.hide(true)),
        mut_arg("landmarks", |a| a.hide(true)),
        mut_arg("no_gauge", |a| a.hide(true)),
        mut_arg("weights_x", |a| a.hide(true)),
        mut_arg("weights_y", |a| a.hide(true)),
        mut_arg("reach", |a| a.hide(true)),
        mut_arg("reach_x", |a| a.hide(true)),
        mut_arg("reach_y", |a| a.hide(true)),
        mut_arg("normalize", |a| a.hide(true))
    )]
    Barycenter(Barycenter),
    /// Two-sample test: the probability that one distribution gives clouds so different
    #[command(
        after_help = TEST_EXAMPLES,
        mut_arg("eps", |a| a.help("Regularisation [default: 0.05 times the mean squared distance of all points; 1 for arccos and linear]")),
        mut_arg("accuracy", |a| a.help("Largest error of the terms of the divergence that auto and lattices may make; the p-value is valid with any [default: 1e-2]")),
        mut_arg("seed", |a| a.help("Seed of the permutations, and of random features")),
        mut_arg("output", |a| a.help("Write the divergences of the clouds (0) and of the permutations to a table, .csv, .tsv or .npy")),
        mut_arg("certify", |a| a.hide(true)),
        mut_arg("polish", |a| a.hide(true)),
        mut_arg("solver", |a| a.hide(true)),
        mut_arg("landmarks", |a| a.hide(true)),
        mut_arg("no_gauge", |a| a.hide(true)),
        mut_arg("trace", |a| a.hide(true)),
        mut_arg("reach", |a| a.hide(true)),
        mut_arg("reach_x", |a| a.hide(true)),
        mut_arg("reach_y", |a| a.hide(true)),
        mut_arg("normalize", |a| a.hide(true))
    )]
    Test(Test),
    /// Many clouds: the Sinkhorn divergences of all pairs, with intervals
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Compare),
    /// The problem of the paper's Figure 1, on lattices, with random features and exactly; no files
    /// needed
    Demo(Demo),
    /// Measure this machine: JSON Lines with ratios to plain reading and to matrix-vector products
    Bench(Bench),
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

const SOLVE_EXAMPLES_ROT: &str = "Examples:\n  \
    orthant rot x.csv y.csv                          epsilon from the data, method by accuracy\n  \
    orthant rot x.csv y.csv --accuracy 1e-6          to a millionth of value_kl\n  \
    orthant rot x.csv y.csv --eps 0.1 --columns lon,lat --weights population\n  \
    orthant rot x.csv y.csv --weights count --reach 0.5    unbalanced: mass moves about 0.5 at most\n  \
    orthant rot x.npy y.npy --memory 2G              with matrices of 2 GiB at most\n  \
    orthant rot x.npy y.npy --anchors lattice --rank 500   as well as 500 nodes allow\n  \
    orthant rot x.npy y.npz:samples --anchors sobol --rank 2000 --precision f32\n  \
    orthant rot x.npy y.npy --anchors adaptive --rank 2000    where the plan needs them\n  \
    orthant rot x.csv y.csv --anchors paper --uncentred    exactly the features of the paper\n  \
    orthant rot x.csv y.csv --method nystrom --no-gauge    and its baseline\n  \
    orthant rot x.csv y.csv --pairs pairs.csv --count 10000   what goes where: coupled points\n  \
    zcat x.csv.gz | orthant rot - y.parquet --eps 0.5 --json\n\n\
    Files: CSV or TSV (header or not, .gz too), .npy, .npz (file.npz:key), Parquet, PLY; - reads\n\
    standard input. JSON: value, value_kl, transport_cost, mass (of the plan: 1 without --reach),\n\
    epsilon, rho_x, rho_y (null without --reach), n, m, dim, method, rank, error_bound (0 if exact,\n\
    null if not known), interval{low,high,kind} of the value of the exact kernel (kind exact, bound or\n\
    sampled; null if not known, as with --reach), interval_kl (the same of value_kl), corrected,\n\
    corrected_kl, stages (epsilons gone\n\
    through), polished (iterations of the exact kernel at the end, or null), reason (null if there is\n\
    none), converged, stop, iterations, marginal_error_x, marginal_error_y (of the convergence),\n\
    marginal_gap_x, marginal_gap_y (L1 distance of the plan's marginals from the weights),\n\
    seconds{read,features,solve,total}.";

const SOLVE_EXAMPLES_DIVERGENCE: &str = "Examples:\n  \
    orthant divergence x.csv y.csv                   epsilon from the data, method by accuracy\n  \
    orthant divergence x.csv y.csv --accuracy 1e-6   its terms to a millionth of their value_kl\n  \
    orthant divergence x.csv y.csv --eps 0.1 --json | jq .value\n  \
    orthant divergence x.csv y.csv --anchors sobol   one kernel for all terms: never negative\n  \
    orthant divergence x.csv y.csv --method online   exact, in linear memory\n  \
    orthant divergence x.csv y.csv --reach 0.5       unbalanced: the clouds may differ in mass\n\n\
    S(x, y) = W(x, y) - (W(x, x) + W(y, y)) / 2, with --reach also eps/2 times the square of the\n\
    difference of the masses. JSON as for rot, and after reason the key kernels\n\
    (exact; shared: one feature map for all terms; per_term: a lattice for each, with a bound each),\n\
    and at the end the terms as cross, self_x, self_y, each an object as of rot; value_kl equals\n\
    value (the entropies cancel), transport_cost and error_bound are combined like value, mass and\n\
    marginal_gap_x and _y are those of the cross term.";

const COMPARE_EXAMPLES: &str = "Examples:\n  \
    orthant compare a.csv b.csv c.csv                      three pairs, one epsilon for all\n  \
    orthant compare cells.csv --group sample --columns 2-11   a cloud for each value of a column\n  \
    orthant compare *.npy --output matrix.csv --intervals pairs.csv\n  \
    orthant compare *.npy --keep pairs.jsonl --time-limit 1h  once more to go on\n  \
    orthant compare *.npy --rank 2000 --certify            one feature map for all clouds\n\n\
    S(x, y) = W(x, y) - (W(x, x) + W(y, y)) / 2 for every pair, the self terms solved once a cloud.\n\
    Features of random anchors, arccos and linear are evaluated once a cloud, if they fit into --memory\n\
    all together. Epsilon is one for all pairs [default: 0.05 times the mean squared distance over all\n\
    pairs of clouds]. JSON: names, points (of each cloud), dim, epsilon, rho, sharing (self_terms,\n\
    features, map, nothing), pairs (how many there are), finished, converged, accuracy_reached (null if\n\
    none was promised), matrix (rows; null where a pair is not finished), intervals (a list of first,\n\
    second, divergence, low, high, kind, converged, method, iterations), order and tree (average linkage\n\
    of the matrix; clusters are numbered as in SciPy: left, right, height, size), embedding (a list of\n\
    name, x, y: classical scaling of the square roots of the divergences, which behave like distances),\n\
    embedding_share (what the plane has of it), seconds{read,total}. Exit code 3 also if the time was up;\n\
    then no files but that of --keep are written.";

/// What `compare` takes.
#[derive(Debug, Args)]
#[command(
    mut_arg("x", |a| a.index(1).value_name("FILE").help("Clouds: files, or - for standard input; with --group one file")),
    mut_arg("y", |a| a.index(2).required(false).default_value("").hide(true)),
    mut_arg("eps", |a| a.help("Regularisation [default: 0.05 times the mean squared distance over all pairs of clouds; 1 for arccos and linear]")),
    mut_arg("weights", |a| a.help("Column of weights, in all files (name or position); for .npz also another array")),
    mut_arg("time_limit", |a| a.help("Stop after this time, all pairs together: seconds, or with a unit (500ms, 30s, 5m, 2h); see --keep")),
    mut_arg("output", |a| a.help("Write the matrix to a table, .csv or .tsv with names, .npy without")),
    mut_arg("weights_x", |a| a.hide(true)),
    mut_arg("weights_y", |a| a.hide(true)),
    mut_arg("reach_x", |a| a.hide(true)),
    mut_arg("reach_y", |a| a.hide(true)),
    mut_arg("trace", |a| a.hide(true))
)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) solve: Solve,
    /// Further clouds
    #[arg(value_name = "FILES", index = 3)]
    pub(crate) more: Vec<String>,
    /// Split one file into clouds by the values of a column, text or numbers (name or position)
    #[arg(long, value_name = "COLUMN", help_heading = "Reading files")]
    pub(crate) group: Option<String>,
    /// Write all pairs to a table, .csv or .tsv: first, second, divergence, low, high, converged
    #[arg(long, value_name = "FILE")]
    pub(crate) intervals: Option<PathBuf>,
    /// Draw the matrix with its tree, and the clouds in the plane, to a file, .svg or .png
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// Keep finished pairs in a file of JSON Lines, and go on from those that are there already
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
}

const MAP_EXAMPLES: &str = "Examples:\n  \
    orthant map x.csv y.csv --eps 0.1 > moved.csv    every point of x, where y is\n  \
    orthant map x.csv y.csv --output moved.npy --back      from y to x, as an array\n  \
    orthant map x.csv y.csv -o moved.csv --at new.csv      points that were not there before\n  \
    orthant map x.csv y.csv -o moved.csv --columns lon,lat --carry kind --carry height\n  \
    orthant map x.csv y.csv -o moved.csv --partners partners.csv --top-k 3 --pairs pairs.npy\n\n\
    A point goes to the mean of its partners in the other cloud, with the probabilities of the plan. The\n\
    output has the columns of the file whose points are mapped, with other coordinates; columns that\n\
    are no coordinates stay as they are. --carry adds columns of the other file: means of numbers, and\n\
    for text the value that most of the mass goes to, with its part of the mass as NAME_probability\n\
    (--vote does that with numbers too). Without --output the table goes to standard output, and the\n\
    answer for people to standard error. Tables are .csv, .tsv or .npy: arrays have the coordinates\n\
    and carried numbers only. Points are counted from 1, in arrays from 0. JSON as for rot.";

/// What `map` takes.
#[derive(Debug, Args)]
#[command(mut_arg("output", |output| output.help(
    "Write the moved points to a table, .csv, .tsv or .npy [default: CSV to standard output]"
)))]
pub(crate) struct Map {
    #[command(flatten)]
    pub(crate) solve: Solve,
    /// Map the points of this file, and not those of the first cloud (with --back: of the second)
    #[arg(long, value_name = "FILE", help_heading = "Maps")]
    pub(crate) at: Option<String>,
    /// Map the second cloud to the first
    #[arg(long, help_heading = "Maps")]
    pub(crate) back: bool,
    /// Bring along a column of the cloud that is mapped to (name or position): the mean of numbers, a vote
    /// on text; may be repeated
    #[arg(long, value_name = "COLUMN", help_heading = "Maps")]
    pub(crate) carry: Vec<String>,
    /// The same, by vote also where the column holds numbers
    #[arg(long, value_name = "COLUMN", help_heading = "Maps")]
    pub(crate) vote: Vec<String>,
    /// Write the largest partners of every point to a table: i of the points that are mapped, j of the
    /// other cloud, and the probability; takes all pairs
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

const REPORT_EXAMPLES: &str = "Examples:\n  \
    orthant report x.csv y.csv --output report.html\n  \
    orthant report x.npy y.npy --eps 0.1 --accuracy 1e-5 -o report.html\n\n\
    The page needs nothing but itself: pictures are part of it, and it has no scripts. Clouds of more than two\n\
    dimensions are drawn on the first two principal axes of both together. What is printed is what rot\n\
    prints.";

/// What `report` takes.
#[derive(Debug, Args)]
#[command(mut_arg("output", |output| output.help("The page to write, .html")))]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) solve: Solve,
}

/// What `rot` takes.
#[derive(Debug, Args)]
pub(crate) struct Rot {
    #[command(flatten)]
    pub(crate) solve: Solve,
    #[command(flatten)]
    pub(crate) pairs: Pairs,
}

/// Samples of the plan.
#[derive(Debug, Args)]
pub(crate) struct Pairs {
    /// Write pairs of points that the plan couples to a table, .csv, .tsv or .npy: i of the first cloud and j of the
    /// second, counted from 1 (in arrays from 0), drawn independently with the probabilities of the plan; --seed is
    /// theirs too
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

const FLOW_EXAMPLES: &str = "Examples:\n  \
    orthant flow x.csv y.csv --output moved.csv           until the points hardly move\n  \
    orthant flow x.csv y.csv --until 0.01 -o moved.npy    until the divergence is a hundredth\n  \
    orthant flow x.csv y.csv --picture flow.png --path path.csv --steps 20 --every 1\n  \
    orthant flow x.ply y.ply --step 0.1 --momentum 0 --frames frame.png   slowly, for a film\n\n\
    A step of size 1 takes every point from the mean of its partners in its own cloud to that of its\n\
    partners in the other. A step that would raise the divergence is not taken: momentum is dropped, then\n\
    the step is halved. Points of weight zero stay. Snapshots are taken before the first step, every\n\
    --every steps and at the end; clouds of more than two dimensions are drawn on principal axes. JSON\n\
    as for divergence, of the points at the end, and flow{first (the divergence at the start), steps,\n\
    gradients (with those of steps that were not taken), moved (root mean square distance from start to\n\
    end), stop (reached: --until; still: the gradient is --still of the first; stalled: no step lowers\n\
    the divergence, what is left is the tolerance and the accuracy; step_limit, time_limit,\n\
    iteration_limit), done}. Exit code 3 also if --until was given and not reached.";

/// What `flow` takes.
#[derive(Debug, Args)]
pub(crate) struct Flow {
    #[command(flatten)]
    pub(crate) solve: Solve,
    #[command(flatten)]
    pub(crate) moving: Moving,
    /// Stop when the divergence is at most this part of the first one; not to get there is exit code 3
    #[arg(long, value_name = "PART", allow_negative_numbers = true, help_heading = STEPS)]
    pub(crate) until: Option<f64>,
    /// Write the snapshots to a table, .csv, .tsv or .npy: step, i, and the coordinates of point i
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
    /// Number of steps, at most
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = STEPS)]
    pub(crate) steps: usize,
    /// Size of a step: 1 is all the way that the gradient of the squared Euclidean cost leads
    #[arg(long, value_name = "S", default_value_t = 1.0, allow_negative_numbers = true, help_heading = STEPS)]
    pub(crate) step: f64,
    /// Part of the last step that is added to the next
    #[arg(long, value_name = "B", default_value_t = 0.5, allow_negative_numbers = true, help_heading = STEPS)]
    pub(crate) momentum: f64,
    /// Stop when the gradient is at most this part of the first one
    #[arg(long, value_name = "PART", default_value_t = 1e-3, allow_negative_numbers = true, help_heading = STEPS)]
    pub(crate) still: f64,
}

const BARYCENTER: &str = "Barycentre";

const BARYCENTER_EXAMPLES: &str = "Examples:\n  \
    orthant barycenter a.csv b.csv c.csv --output mean.csv     on all points of the clouds\n  \
    orthant barycenter a.csv b.csv --weights 0.2,0.8 --eps 0.01 --support grid.csv --output mean.csv\n  \
    orthant barycenter a.csv b.csv --weights-column count --debiased --output mean.csv\n  \
    orthant barycenter a.csv b.csv c.csv --method linear --softmax 1000 --output mean.csv\n  \
    orthant barycenter a.csv b.csv --free 1000 --debiased --output mean.csv   1000 points that move\n\n\
    The barycentre p has the smallest sum of l W(a,p) over the clouds a, with weights l; with --debiased\n\
    the smallest sum of l S(a,p), which does not blur. It lives on the points of --support, or on all\n\
    points of the clouds, each once: clouds with the same points are histograms on them. With --free or\n\
    --start its points move instead, down the gradient of that sum (see flow), and keep their weights.\n\
    JSON: value (that sum), debiased, weights (of the clouds), distances (W or S of each cloud), epsilon,\n\
    points (of each cloud), support (number of its points), dim, method, rank, reason, converged, stop,\n\
    iterations, marginal_error, free (null, or how the points moved: first, steps, gradients, moved, stop,\n\
    done as for flow; iterations and marginal_error are then those of the last solve with the first\n\
    cloud), seconds{read,features,solve,total}.";

const TEST_EXAMPLES: &str = "Examples:\n  \
    orthant test x.csv y.csv                           999 permutations\n  \
    orthant test x.csv y.csv --permutations 9999       p-values in steps of 1/10000\n  \
    orthant test x.csv y.csv --eps 0.1 --json | jq .p_value\n  \
    orthant test x.csv y.csv --output divergences.csv  also those of the permutations\n\n\
    Null hypothesis: points (with their weights) are exchangeable, as independent draws from one\n\
    distribution are. The statistic is the Sinkhorn divergence, p = (1 + those of permutations that are\n\
    at least as large) / (1 + permutations), ties counted. That is valid for any epsilon and any kernel:\n\
    approximations may cost power only. JSON: p_value, resolution (the smallest p-value that there can\n\
    be), statistic, permutations, exceeding, null{median,q90,q95,q99}, unconverged, epsilon, n, m, dim,\n\
    method, rank, reason, seed, stop, seconds{read,features,solve,total}.";

/// What `barycenter` takes.
#[derive(Debug, Args)]
pub(crate) struct Barycenter {
    #[command(flatten)]
    pub(crate) solve: Solve,
    /// Further clouds
    pub(crate) more: Vec<String>,
    /// Points that the barycentre may have [default: all points of the clouds, each once]
    #[arg(long, value_name = "FILE", help_heading = BARYCENTER)]
    pub(crate) support: Option<String>,
    /// Move N points freely, of equal weights, drawn from the clouds, and do not only weigh given ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = BARYCENTER)]
    pub(crate) free: Option<u32>,
    /// Move the points of this file freely, with their weights if there is --weights-column
    #[arg(long, value_name = "FILE", conflicts_with = "free", help_heading = BARYCENTER)]
    pub(crate) start: Option<String>,
    #[command(flatten)]
    pub(crate) moving: Moving,
    /// The barycentre of the divergence, which is not blurred (of points that are free: not shrunk)
    #[arg(long, help_heading = BARYCENTER)]
    pub(crate) debiased: bool,
    /// Also write exp(T weight / largest weight), divided by the sum: a picture of the peaks
    #[arg(long, value_name = "T", allow_negative_numbers = true, help_heading = BARYCENTER)]
    pub(crate) softmax: Option<f64>,
    /// Column of weights of the points, in all files (name or position); for .npz also another array
    #[arg(long, value_name = "COLUMN", help_heading = "Reading files")]
    pub(crate) weights_column: Option<String>,
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
    pub(crate) solve: Solve,
    /// Number of random permutations
    #[arg(long, value_name = "N", default_value_t = 999)]
    pub(crate) permutations: usize,
}

/// What `rot` and `divergence` take.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags")]
pub(crate) struct Solve {
    /// First cloud: a file, or - for standard input
    pub(crate) x: String,
    /// Second cloud: a file, or - for standard input
    pub(crate) y: String,

    /// Regularisation [default: 0.05 times the mean squared distance of the clouds; 1 for arccos and
    /// linear]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) eps: Option<f64>,
    /// How the kernel is applied
    #[arg(long, value_enum, default_value_t = MethodName::Auto)]
    pub(crate) method: MethodName,
    /// Where the anchors of gaussian features are [default: sobol]; auto becomes gaussian
    #[arg(long, value_enum, value_name = "ANCHORS")]
    pub(crate) anchors: Option<AnchorsName>,
    /// Number of random features or landmarks [default: 1000], or of lattice nodes at most [default: as
    /// the accuracy needs]; auto becomes gaussian
    #[arg(long, value_name = "R")]
    pub(crate) rank: Option<usize>,
    #[arg(
        long,
        value_name = "A",
        allow_negative_numbers = true,
        help = "Largest error of the value that auto and lattices may make, relative to value_kl \
                [default: 1e-3]"
    )]
    pub(crate) accuracy: Option<f64>,
    #[arg(
        long,
        help = "Bound the distance from the exact kernel (of value_kl with --reach) by samples of the \
                plan, for random features of any kind; what auto chooses always has such bounds"
    )]
    pub(crate) certify: bool,
    /// Go on from the potentials that features gave with the exact kernel: its solution in a few iterations of
    /// quadratic time
    #[arg(long)]
    pub(crate) polish: bool,
    /// Largest number of random features that auto may use [default: as many as the memory allows]
    #[arg(long, value_name = "R")]
    pub(crate) max_rank: Option<usize>,
    /// Seed of the random features or landmarks
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number format of stored features and kernels; sums across points are always in f64
    #[arg(long, value_enum, default_value_t = PrecisionName::F64)]
    pub(crate) precision: PrecisionName,

    /// How the iterations go on
    #[arg(long, value_enum, default_value_t = SolverName::Auto)]
    pub(crate) solver: SolverName,
    /// Stop when the L1 error of the marginal is below this
    #[arg(long, value_name = "T", default_value_t = 1e-6, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// Stop after so many iterations
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_iter: usize,
    /// Stop after this time: seconds, or with a unit (500ms, 30s, 5m, 2h)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) time_limit: Option<Duration>,
    /// Largest matrices to store: bytes, or with a unit (500M, 2G, 8GiB are powers of 1024, 500MB of
    /// 1000) [default: the memory that the system has available]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,

    #[command(flatten)]
    pub(crate) unbalanced: Unbalanced,

    /// Columns that are coordinates: names or positions from 1, ranges as 2-5
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Reading files")]
    pub(crate) columns: Option<Vec<String>>,
    /// Column of weights, in both files (name or position); for .npz also another array
    #[arg(long, value_name = "COLUMN", help_heading = "Reading files")]
    pub(crate) weights: Option<String>,
    /// Column of weights of the first file only
    #[arg(long, value_name = "COLUMN", conflicts_with = "weights", help_heading = "Reading files")]
    pub(crate) weights_x: Option<String>,
    /// Column of weights of the second file only
    #[arg(long, value_name = "COLUMN", conflicts_with = "weights", help_heading = "Reading files")]
    pub(crate) weights_y: Option<String>,
    /// What to do with rows that have missing values
    #[arg(long, value_enum, default_value_t = MissingName::Error, help_heading = "Reading files")]
    pub(crate) missing: MissingName,

    /// The paper's anchors around the origin, as it has them, and not around the clouds
    #[arg(long, help_heading = "Kernels")]
    pub(crate) uncentred: bool,
    /// How nystrom draws its landmarks [default: leverage]
    #[arg(long, value_enum, value_name = "LANDMARKS", help_heading = "Kernels")]
    pub(crate) landmarks: Option<LandmarksName>,
    /// Solve in the coordinates given, and not in those in which both clouds have the same mean and
    /// covariance: the same result, with more features
    #[arg(long, help_heading = "Kernels")]
    pub(crate) no_gauge: bool,
    /// Order of the arc-cosine kernel: 0, 1 or 2
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2), help_heading = "Kernels")]
    pub(crate) order: u8,
    /// Added to the arc-cosine kernel to keep it positive
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true, help_heading = "Kernels")]
    pub(crate) kappa: f64,
    /// Spread of the anchors of the arc-cosine kernel, at least 1
    #[arg(long, default_value_t = 1.5, allow_negative_numbers = true, help_heading = "Kernels")]
    pub(crate) sigma: f64,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the iterations to a file of JSON Lines: term, iteration, time, dual value, marginal error
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the potentials of all points to a CSV file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// How far marginals may differ from the weights.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Unbalanced {
    #[arg(
        long,
        value_name = "R",
        allow_negative_numbers = true,
        help_heading = UNBALANCED,
        help = "Let mass appear or vanish where it would have to move much further than R: the marginals \
                may differ from the weights at a price of 2 R^2 KL (in units of the cost; GeomLoss's \
                reach). Weights then count as given, also their sums"
    )]
    pub(crate) reach: Option<f64>,
    /// The same for the first cloud only; the other keeps its weights
    #[arg(long, value_name = "R", allow_negative_numbers = true, conflicts_with = "reach", help_heading = UNBALANCED)]
    pub(crate) reach_x: Option<f64>,
    /// The same for the second cloud
    #[arg(long, value_name = "R", allow_negative_numbers = true, conflicts_with = "reach", help_heading = UNBALANCED)]
    pub(crate) reach_y: Option<f64>,
    /// Divide the weights of each cloud by their sum (as is always done without --reach)
    #[arg(long, help_heading = UNBALANCED)]
    pub(crate) normalize: bool,
}

impl Unbalanced {
    /// Whether any of it is.
    pub(crate) fn is_given(&self) -> bool {
        self.reach.is_some() || self.reach_x.is_some() || self.reach_y.is_some() || self.normalize
    }
}

const UNBALANCED: &str = "Unbalanced transport";

/// How many threads.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Threads {
    /// Number of threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl Threads {
    /// Runs `work` on that many threads.
    pub(crate) fn run<R: Send>(self, work: impl FnOnce() -> R + Send) -> R {
        match self.threads {
            // Inside the pool, where parallel loops start without waking another thread.
            None => rayon::join(work, || ()).0,
            Some(n) => match rayon::ThreadPoolBuilder::new().num_threads(n.into()).build() {
                Ok(pool) => pool.install(work),
                // No more threads to be had: the results are the same on those there are.
                Err(_) => work(),
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// The quickest for the accuracy: a lattice, Sobol anchors, or exact
    Auto,
    /// Features of the squared Euclidean cost, linear time; see --anchors
    Gaussian,
    /// The same as gaussian with --anchors lattice: an error bound, up to four coordinates
    Lattice,
    /// Random features of the arc-cosine kernel, linear time
    Arccos,
    /// Cost -eps log x.y of positive coordinates, linear time
    Linear,
    /// Exact, squared Euclidean cost, the kernel stored
    Dense,
    /// Exact, squared Euclidean cost, the kernel recomputed: linear memory
    Online,
    /// The kernel of the squared Euclidean cost from its columns at landmarks, linear time: precise for
    /// large epsilon, fails at small; see --landmarks and --rank
    Nystrom,
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

/// What `demo` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    orthant demo                     20,000 points a cloud, some seconds\n  \
    orthant demo --rank 4000         four times the random features, half their error\n  \
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

/// What `bench` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    orthant bench                     everything, several minutes\n  \
    orthant bench --quick             small sizes, some seconds\n  \
    orthant bench --suite sweep | jq -c 'select(.bench == \"sweep\")'\n\n\
    Every line is a JSON object. Times are the best of interleaved repetitions, in seconds; compare\n\
    ratios inside one run, not times between runs.")]
pub(crate) struct Bench {
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

/// A time such as `30`, `1.5`, `500ms`, `30s`, `5m` or `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("the unit {unit:?} is not one of ms, s, m, h")),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| "expected a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number * scale)
        .map_err(|_| format!("{text} is not a time; give a positive number of seconds"))
}

/// A number of bytes such as `1000000`, `500M`, `1.5G`, `8GiB` or `500MB`.
fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_error =
        || format!("the unit {unit:?} is not one of B, K, M, G, T, KiB to TiB, KB to TB");
    let letters = unit.to_ascii_lowercase();
    // As for `sort` or `head`: a lone letter is a power of 1024, with a B one of 1000.
    let (prefix, base) = match letters.strip_suffix('b') {
        None => (letters.as_str(), 1024_f64),
        Some(prefix) => match prefix.strip_suffix('i') {
            Some("") => return Err(unit_error()),
            Some(prefix) => (prefix, 1024.0),
            None => (prefix, 1000.0),
        },
    };
    let power = match prefix {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(unit_error()),
    };
    let number: f64 = number
        .trim()
        .parse()
        .map_err(|_| "expected a number of bytes, such as 500M, 2G or 8GiB".to_owned())?;
    let bytes = number * base.powi(power);
    if !(1.0..=2f64.powi(63)).contains(&bytes) {
        return Err(format!("{text} is not a size; give at least one byte, and fewer than 2^63"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_have_units() {
        for (text, seconds) in
            [("30", 30.0), ("1.5", 1.5), ("500ms", 0.5), ("5m", 300.0), ("2h", 7200.0)]
        {
            assert_eq!(duration(text).unwrap().as_secs_f64(), seconds);
        }
        for bad in ["", "x", "-1", "3d", "nan", "1e400", "inf"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("1000000", 1_000_000),
            ("7B", 7),
            ("64k", 64 << 10),
            ("500M", 500 << 20),
            ("500MB", 500_000_000),
            ("1.5G", 3 << 29),
            ("2 G", 2 << 30),
            ("8GiB", 8 << 30),
            ("8gib", 8 << 30),
            ("2T", 2 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in
            ["", "G", "x", "0", "0.5", "-1G", "5X", "5iB", "5GiBs", "nan", "inf", "1e30", "9e9T"]
        {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
