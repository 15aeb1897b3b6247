//! `orthant rot` and `orthant divergence`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;
use comfy_table::{ColumnConstraint, ContentArrangement};
use orthant::design::Draw;
use orthant::{
    Algorithm, Anchors, Features, Landmarks, Measure, Method, Options, Precision, Solution, Solver,
    Used, mean_squared_distance,
};

use crate::args::{
    AnchorsName, LandmarksName, MethodName, Pairs, PrecisionName, Rot, Solve, SolverName,
    Unbalanced,
};
use crate::failure::{Failure, NOT_CONVERGED};
use crate::input::{self, Clouds};
use crate::memory;
use crate::output::{self, Report, Sizes, count, number, rough};
use crate::progress::Bar;

/// Error of a value, as a part of `value_kl`, where none is given.
const DEFAULT_ACCURACY: f64 = 1e-3;
/// Columns of the answer for people.
const WIDTH: u16 = 100;
/// Epsilon, as a part of the mean squared distance, where none is given.
const DEFAULT_EPSILON: f64 = 0.05;

pub(crate) fn rot(arguments: &Rot) -> Result<ExitCode, Failure> {
    let Rot { solve, pairs: Pairs { pairs, count } } = arguments;
    check_pairs(solve, pairs.as_deref(), "--pairs")?;
    command(solve, |options, bar, measures| {
        let [mu, nu] = measures;
        let plan = Solver::new(options).observer(bar).plan(mu, nu)?;
        if let Some(path) = pairs {
            output::write_pairs(path, &plan.sample(*count, solve.seed)?)?;
        }
        let solution = plan.into_solution();
        let report = Report::of_solution(&solution, sizes(measures));
        let masses = [mu.mass(), nu.mass()];
        Ok(Answer { report, cross: solution, selves: None, masses })
    })
}

/// Checks, before any work, that what a plan couples can be written to a file.
pub(crate) fn check_pairs(
    arguments: &Solve,
    path: Option<&Path>,
    option: &str,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    output::check_table(path, option)?;
    if arguments.method == MethodName::Nystrom && !arguments.polish {
        return Err(Failure::input(format!(
            "{option} are those of positive plans, that of nystrom need not be; add --polish or use another method",
        )));
    }
    Ok(())
}

pub(crate) fn divergence(arguments: &Solve) -> Result<ExitCode, Failure> {
    command(arguments, |options, bar, measures| {
        let [mu, nu] = measures;
        let divergence = Solver::new(options).observer(bar).divergence(mu, nu)?;
        let report = Report::of_divergence(&divergence, sizes(measures));
        Ok(Answer {
            report,
            cross: divergence.cross,
            selves: Some([divergence.self_x, divergence.self_y]),
            masses: [mu.mass(), nu.mass()],
        })
    })
}

/// What either command computes.
pub(crate) struct Answer {
    pub(crate) report: Report,
    pub(crate) cross: Solution,
    pub(crate) selves: Option<[Solution; 2]>,
    /// Sums of the weights.
    pub(crate) masses: [f64; 2],
}

impl Answer {
    /// Whether an automatic choice did not reach the accuracy.
    fn falls_short(&self, arguments: &Solve) -> bool {
        let mut terms = std::iter::once(&self.cross).chain(self.selves.iter().flatten());
        is_automatic(arguments) && !terms.all(|t| t.keeps(accuracy(arguments)))
    }
}

pub(crate) fn sizes([mu, nu]: &[Measure<'_>; 2]) -> Sizes {
    Sizes { n: mu.points().len(), m: nu.points().len(), dim: mu.dim() }
}

/// Reads, solves, writes potentials and prints.
fn command(
    arguments: &Solve,
    solve: impl FnOnce(&Options<'_>, &mut Bar, &[Measure<'_>; 2]) -> Result<Answer, Failure> + Send,
) -> Result<ExitCode, Failure> {
    if let Some(path) = &arguments.output {
        output::check_writable(path, "--output")?;
    }
    let read = || Clouds::read(arguments);
    command_with(arguments, read, Channel::Output, |options, bar, _, measures| {
        let answer = solve(options, bar, measures)?;
        if let Some(path) = &arguments.output {
            let selves = answer.selves.as_ref().map(|[x, y]| [x, y]);
            output::write_potentials(path, measures, &answer.cross, selves)?;
        }
        Ok((answer, None))
    })
}

/// Where the answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Output,
    /// The output is for something else.
    Error,
}

/// Reads, solves and prints. What is done with the clouds and their measures is an answer, and perhaps a row more for
/// people.
pub(crate) fn command_with(
    arguments: &Solve,
    read: impl FnOnce() -> Result<Clouds, Failure>,
    channel: Channel,
    solve: impl FnOnce(
        &Options<'_>,
        &mut Bar,
        &Clouds,
        &[Measure<'_>; 2],
    ) -> Result<(Answer, Option<Row>), Failure>
    + Send,
) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let method = method(arguments)?;
    if let Some(path) = &arguments.trace {
        output::check_writable(path, "--trace")?;
    }
    let clouds = read()?;
    let measures = clouds.measures(arguments)?;
    let read = begun.elapsed().as_secs_f64();

    let epsilon = arguments.threads.run(|| Epsilon::choose(arguments, &measures))?;
    let options = options(arguments, method, epsilon.value)?;
    let mut bar = Bar::new(arguments.tol, arguments.trace.is_some());
    let answer = arguments.threads.run(|| solve(&options, &mut bar, &clouds, &measures));
    bar.finish();
    let (mut answer, more) =
        answer.map_err(|failure| failure.name_cloud([&arguments.x, &arguments.y]))?;
    if let Some(path) = &arguments.trace {
        bar.write_trace(path)?;
    }
    answer.report.seconds.read = read;
    answer.report.seconds.total = begun.elapsed().as_secs_f64();
    let print = |out: &mut dyn io::Write| {
        if arguments.json {
            serde_json::to_writer(&mut *out, &answer.report)?;
            writeln!(out)
        } else {
            writeln!(out, "{}", text(arguments, &epsilon, &answer, clouds.dropped(), more))
        }
    };
    match channel {
        Channel::Output => output::to_stdout(print)?,
        // Nobody need read it.
        Channel::Error => drop(print(&mut io::stderr().lock())),
    }
    let report = &answer.report;
    let moved = report.flow.as_ref().is_none_or(|flow| flow.done);
    let done = report.converged && moved && !answer.falls_short(arguments);
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// The regularisation, and where it comes from.
pub(crate) struct Epsilon {
    pub(crate) value: f64,
    origin: Option<String>,
}

impl Epsilon {
    fn choose(arguments: &Solve, [mu, nu]: &[Measure<'_>; 2]) -> Result<Self, Failure> {
        Epsilon::or_from(arguments, "both", || Ok(mean_squared_distance(mu, nu)?))
    }

    /// What is given, or a part of a mean squared distance of `clouds`.
    pub(crate) fn or_from(
        arguments: &Solve,
        clouds: &str,
        mean: impl FnOnce() -> Result<f64, Failure>,
    ) -> Result<Self, Failure> {
        if let Some(value) = arguments.eps {
            return Ok(Epsilon { value, origin: None });
        }
        if matches!(arguments.method, MethodName::Arccos | MethodName::Linear) {
            let origin =
                Some("the default for a kernel that is not a function of epsilon".to_owned());
            return Ok(Epsilon { value: 1.0, origin });
        }
        let mean = mean()?;
        if mean == 0.0 {
            return Err(Failure::input(format!(
                "all points of {clouds} clouds coincide, so there is no scale to choose epsilon from; give --eps"
            )));
        }
        let origin = format!("{DEFAULT_EPSILON} x the mean squared distance, {}", number(mean));
        Ok(Epsilon { value: DEFAULT_EPSILON * mean, origin: Some(origin) })
    }

    /// `epsilon = 0.1 (0.05 x the mean squared distance, 2)`.
    pub(crate) fn text(&self) -> String {
        let origin = self.origin.as_ref().map_or_else(String::new, |origin| format!(" ({origin})"));
        format!("epsilon = {}{origin}", number(self.value))
    }
}

/// Refuses options of other commands.
pub(crate) fn refuse(command: &str, given: &[(bool, &str)]) -> Result<(), Failure> {
    match given.iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => {
            Err(Failure::input(format!("{option} has no meaning for {command}; leave it out")))
        }
    }
}

/// Whether the method goes by the accuracy; others promise nothing.
pub(crate) fn is_automatic(arguments: &Solve) -> bool {
    let Solve { method, anchors, rank, .. } = arguments;
    *method == MethodName::Auto && anchors.is_none() && rank.is_none()
}

/// The method asked for, if the options go together.
pub(crate) fn method(arguments: &Solve) -> Result<Method<'static>, Failure> {
    let Solve { method, anchors, rank, .. } = arguments;
    let automatic = is_automatic(arguments);
    let (method, anchors) = match (*method, *anchors) {
        (MethodName::Auto, anchors) if !automatic => (MethodName::Gaussian, anchors),
        (MethodName::Lattice, None) => (MethodName::Gaussian, Some(AnchorsName::Lattice)),
        (method, anchors) => (method, anchors),
    };
    let name = name_of(&method);
    if anchors.is_some() && method != MethodName::Gaussian {
        return Err(Failure::input(format!(
            "--anchors are those of --method gaussian, {name} has none; leave one of the two out"
        )));
    }
    let ranked = [MethodName::Gaussian, MethodName::Arccos, MethodName::Nystrom];
    if rank.is_some() && !ranked.contains(&method) {
        return Err(Failure::input(format!(
            "--rank is a number of features of --method gaussian or arccos, or of landmarks of \
             nystrom, {name} has no such number; leave one of the two out"
        )));
    }
    if arguments.landmarks.is_some() && method != MethodName::Nystrom {
        return Err(Failure::input("--landmarks are those of nystrom; add --method nystrom"));
    }
    let lattice = anchors == Some(AnchorsName::Lattice);
    if arguments.accuracy.is_some() && ranked.contains(&method) && !lattice {
        return Err(Failure::input(
            "--accuracy is for --method auto and --anchors lattice; how good random features and \
             landmarks are depends on their number, --rank",
        ));
    }
    if arguments.uncentred && anchors != Some(AnchorsName::Paper) {
        return Err(Failure::input("--uncentred is for the paper's anchors; add --anchors paper"));
    }
    Ok(match method {
        MethodName::Auto => Method::Auto,
        // With anchors, which was refused above.
        MethodName::Lattice => Method::lattice(),
        MethodName::Gaussian => {
            Method::Factored(Features::Gaussian(match anchors.unwrap_or(AnchorsName::Sobol) {
                AnchorsName::Sobol => Anchors::Random(Draw::Sobol),
                AnchorsName::Adaptive => Anchors::Adaptive,
                AnchorsName::Iid => Anchors::Random(Draw::Iid),
                AnchorsName::Orthogonal => Anchors::Random(Draw::Orthogonal),
                AnchorsName::Lattice => Anchors::Lattice { stored: false },
                AnchorsName::Paper => Anchors::Paper { centred: !arguments.uncentred },
            }))
        }
        MethodName::Arccos => Method::Factored(Features::ArcCosine {
            order: arguments.order,
            kappa: arguments.kappa,
            sigma: arguments.sigma,
        }),
        MethodName::Linear => Method::Factored(Features::Linear),
        MethodName::Dense => Method::dense(),
        MethodName::Online => Method::online(),
        MethodName::Nystrom => Method::Nystrom(match arguments.landmarks {
            Some(LandmarksName::Uniform) => Landmarks::Uniform,
            Some(LandmarksName::Leverage) | None => Landmarks::Leverage,
        }),
    })
}

/// How a choice is called on the command line.
fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
}

pub(crate) fn options(
    arguments: &Solve,
    method: Method<'static>,
    epsilon: f64,
) -> Result<Options<'static>, Failure> {
    let mut builder = Options::builder(epsilon)
        .method(method)
        .gauge(!arguments.no_gauge)
        .accuracy(accuracy(arguments))
        .seed(arguments.seed)
        .certify(arguments.certify)
        .polish(arguments.polish)
        .algorithm(match arguments.solver {
            SolverName::Auto => Algorithm::Auto,
            SolverName::Plain => Algorithm::Plain,
            SolverName::Anderson => Algorithm::Anderson,
            SolverName::Accelerated => Algorithm::Accelerated,
        })
        .tolerance(arguments.tol)
        .max_iterations(arguments.max_iter)
        .precision(match arguments.precision {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::F64 => Precision::F64,
        });
    let [rho_x, rho_y] = penalties(arguments.unbalanced)?;
    builder = builder.rho_x(rho_x).rho_y(rho_y);
    if let Some(rank) = arguments.rank {
        builder = builder.rank(rank);
    }
    if let Some(rank) = arguments.max_rank {
        builder = builder.max_rank(rank);
    }
    if let Some(limit) = arguments.time_limit {
        builder = builder.time_limit(limit);
    }
    if let Some(bytes) = arguments.memory.or_else(memory::available) {
        builder = builder.max_memory(bytes);
    }
    Ok(builder.build()?)
}

/// What it costs to change the marginals: `2 reach^2`.
fn penalties(arguments: Unbalanced) -> Result<[f64; 2], Failure> {
    let Unbalanced { reach, reach_x, reach_y, normalize } = arguments;
    let reach =
        [("--reach", [reach; 2]), ("--reach-x", [reach_x, None]), ("--reach-y", [None, reach_y])];
    if normalize && reach.iter().all(|(_, reach)| *reach == [None; 2]) {
        return Err(Failure::input(
            "--normalize is for unbalanced transport, other weights are always normalised; add --reach",
        ));
    }
    let mut rho = [f64::INFINITY; 2];
    for (name, reach) in reach {
        for (rho, reach) in rho.iter_mut().zip(reach) {
            let Some(reach) = reach else { continue };
            if reach.is_nan() || reach <= 0.0 {
                let expected = "a positive distance";
                return Err(orthant::Error::Option { name, expected, value: reach }.into());
            }
            *rho = 2.0 * reach * reach;
        }
    }
    Ok(rho)
}

fn accuracy(arguments: &Solve) -> f64 {
    arguments.accuracy.unwrap_or(DEFAULT_ACCURACY)
}

/// The answer for people.
fn text(
    arguments: &Solve,
    epsilon: &Epsilon,
    answer: &Answer,
    dropped: [usize; 2],
    more: Option<Row>,
) -> String {
    let Answer { report, cross, .. } = answer;
    let mut rows = values(report, cross.method);
    rows.extend(more);
    rows.extend(mass(report, answer.masses));
    rows.push([
        "method".to_owned(),
        used(arguments, report, cross),
        report.reason.clone().unwrap_or_default(),
    ]);
    rows.extend(kernels(report, cross.method));
    rows.extend(error(arguments, report, cross.method));
    let converged = if report.converged {
        "yes".to_owned()
    } else {
        format!("NO: {}", report.stop.replace('_', " "))
    };
    let errors = format!(
        "{} iterations, marginal errors {} and {}",
        count(report.iterations),
        rough(report.marginal_error_x, 1),
        rough(report.marginal_error_y, 1)
    );
    rows.push(["converged".to_owned(), converged, errors]);
    rows.push(time_row(report.seconds));
    let tail = if !report.converged {
        "\n\nNot converged: raise --max-iter or --time-limit, or use a larger --eps or --tol."
    } else if report.flow.as_ref().is_some_and(|flow| !flow.done) {
        "\n\nThe flow did not get where it should: raise --steps or --time-limit, lower --still, or use a smaller \
         --tol and --accuracy."
    } else if answer.falls_short(arguments) {
        "\n\nThe accuracy was not reached: raise --memory, --max-rank or --time-limit, use a smaller --tol or a \
         larger --accuracy."
    } else {
        ""
    };
    format!("{}\n\n{}{tail}", head(arguments, epsilon, report, dropped), lines(rows))
}

/// Where the time went.
pub(crate) fn time_row(s: output::Seconds) -> Row {
    let phases = format!(
        "read {}, features {}, solve {}",
        output::seconds(s.read),
        output::seconds(s.features),
        output::seconds(s.solve)
    );
    ["time".to_owned(), output::seconds(s.total), phases]
}

/// Rows as lines.
pub(crate) fn lines(rows: Vec<Row>) -> String {
    let mut table = output::table();
    table.add_rows(rows);
    // Notes are wrapped, numbers are not.
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    for column in table.column_iter_mut().take(2) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    output::lines(&table)
}

/// Which clouds, and which epsilon.
fn head(arguments: &Solve, epsilon: &Epsilon, report: &Report, dropped: [usize; 2]) -> String {
    let mut head = format!(
        "{} ({} points) and {} ({} points), {} coordinates\n",
        input::name(&arguments.x),
        count(report.n),
        input::name(&arguments.y),
        count(report.m),
        report.dim
    );
    for (file, dropped) in [&arguments.x, &arguments.y].into_iter().zip(dropped) {
        if dropped > 0 {
            let _ = writeln!(
                head,
                "{}: {} rows with missing values dropped",
                input::name(file),
                count(dropped)
            );
        }
    }
    head += &epsilon.text();
    if report.is_unbalanced() {
        let rho = |rho: Option<f64>| rho.map_or("infinite".to_owned(), number);
        let _ = write!(head, "\nrho = {} and {}", rho(report.rho_x), rho(report.rho_y));
    }
    head
}

/// The mass of a plan that need not have that of the clouds.
fn mass(report: &Report, [x, y]: [f64; 2]) -> Option<Row> {
    let note = format!(
        "of the plan{}; the clouds have {} and {}, its marginals are {} and {} off",
        if report.terms.is_some() { " of W(x,y)" } else { "" },
        number(x),
        number(y),
        rough(report.marginal_gap_x, 1),
        rough(report.marginal_gap_y, 1)
    );
    report.is_unbalanced().then(|| ["mass".to_owned(), number(report.mass), note])
}

/// A row of the answer: name, value, note.
pub(crate) type Row = [String; 3];

fn values(report: &Report, used: Used) -> Vec<Row> {
    let row = |name: &str, value: String, note: &str| -> Row {
        [name.to_owned(), value, note.to_owned()]
    };
    let values = [(report.value, report.interval), (report.value_kl, report.interval_kl)].map(
        |(value, interval)| {
            interval.map_or_else(|| number(value), |interval| interval.around(value))
        },
    );
    let Some(terms) = &report.terms else {
        let cost = match report.transport_cost {
            Some(cost) => row("transport cost", number(cost), "<P,C>"),
            None => {
                row("transport cost", "-".to_owned(), "needs all pairs for this kernel: too many")
            }
        };
        let notes = if report.is_unbalanced() {
            [
                "<P,C> + eps sum P log P, and the prices of the marginals",
                "<P,C> + eps KL(P|ab) + rho_x KL(P1|a) + rho_y KL(P'1|b)",
            ]
        } else {
            [
                "W = <P,C> + eps sum P log P, as the paper has it",
                "W + eps (H(a) + H(b)): POT \"KL\", OTT",
            ]
        };
        return vec![
            row("value", values[0].clone(), notes[0]),
            row("value_kl", values[1].clone(), notes[1]),
            cost,
        ];
    };
    let note = if report.is_unbalanced() {
        "W(x,y) - (W(x,x) + W(y,y)) / 2 + eps/2 (difference of masses)^2"
    } else {
        "W(x,y) - (W(x,x) + W(y,y)) / 2"
    };
    let mut rows = vec![row("divergence", values[0].clone(), note)];
    for (name, term) in
        [("  W(x,y)", &terms.cross), ("  W(x,x)", &terms.self_x), ("  W(y,y)", &terms.self_y)]
    {
        let mut note =
            format!("value_kl {}, {} iterations", number(term.value_kl), count(term.iterations));
        if used == Used::Lattice {
            let _ = write!(note, ", {} nodes", count(term.rank));
        }
        rows.push(row(name, number(term.value), &note));
    }
    rows
}

/// What was used: `lattice, 1,260 nodes, f64`.
fn used(arguments: &Solve, report: &Report, cross: &Solution) -> String {
    let format = match (cross.method, arguments.precision) {
        (Used::Online, _) | (_, PrecisionName::F64) => "f64",
        (_, PrecisionName::F32) => "f32",
    };
    let rank = count(report.rank);
    let size = match cross.method {
        Used::Dense | Used::Online => "exact".to_owned(),
        // The terms of a divergence have lattices of their own.
        Used::Lattice if report.terms.is_some() => return format!("lattice, {format}"),
        Used::Lattice => format!("{rank} nodes"),
        Used::Nystrom => format!("{rank} landmarks"),
        Used::Gaussian => {
            let anchors = arguments.anchors.unwrap_or(AnchorsName::Sobol);
            return format!("{}, {rank} anchors, {format}", name_of(&anchors));
        }
        _ => format!("{rank} features"),
    };
    format!("{}, {size}, {format}", report.method)
}

/// Whether the terms of a divergence share their approximation of the kernel.
fn kernels(report: &Report, used: Used) -> Option<Row> {
    let (value, note) = match report.kernels? {
        "shared" if used == Used::Nystrom => ("one for all terms", "the same landmarks"),
        "shared" => ("one for all terms", "a divergence that is never negative, but for rounding"),
        "per_term" => ("one for each term", "with an error bound each"),
        _ => return None,
    };
    Some(["kernels".to_owned(), value.to_owned(), note.to_owned()])
}

/// How far the value is from that of the exact kernel.
fn error(arguments: &Solve, report: &Report, used: Used) -> Option<Row> {
    let whole = if report.terms.is_some() { "the divergence" } else { "value_kl" };
    let value = report.value_kl.abs();
    let part = |error: f64| {
        if error < value {
            format!("{} of {whole}", rough(error / value, 0))
        } else {
            format!("more than {whole} itself")
        }
    };
    let sampled = report.interval_kl.filter(|i| i.kind == "sampled");
    if let Some(i) = sampled {
        let about = report.value_kl;
        let farthest = (i.high - about).max(about - i.low);
        let mut note =
            format!("from samples of the plan, three standard errors; {}", part(farthest));
        if let Some(corrected) = report.corrected_kl.filter(|c| (c - about).abs() > 1e-9 * value) {
            let _ = write!(note, "; corrected {}", number(corrected));
        }
        return Some(["error".to_owned(), format!("at most {}", rough(farthest, 1)), note]);
    }
    let (value, note) = match (used, report.error_bound) {
        (Used::Lattice, Some(bound)) => {
            let when = if report.converged { "" } else { " at convergence" };
            let mut note = format!("bound on the distance from exact{when}, {}", part(bound));
            match arguments.rank {
                Some(_) if missed(arguments, report) => note += "; a larger --rank lowers it",
                // The accuracy is that of the terms, which can be much larger.
                None if bound >= value && report.terms.is_some() => {
                    note += "; a smaller --accuracy lowers it";
                }
                None if bound < value && report.converged && missed(arguments, report) => {
                    note += "; no lattice is finer here";
                }
                _ => {}
            }
            (format!("at most {}", rough(bound, 1)), note)
        }
        (Used::Lattice, None) => (
            "no bound".to_owned(),
            "too few nodes for these clouds: use a larger --rank".to_owned(),
        ),
        (Used::Gaussian, _) => {
            ("not known".to_owned(), "--certify bounds it; or let --method auto choose".to_owned())
        }
        (Used::Nystrom, _) => (
            "not known".to_owned(),
            "compare with twice the --rank, or let --method auto choose".to_owned(),
        ),
        _ => return None,
    };
    Some(["error".to_owned(), value, note])
}

/// Whether a term has a larger error, perhaps, than was asked for.
fn missed(arguments: &Solve, report: &Report) -> bool {
    match &report.terms {
        Some(t) => [&t.cross, &t.self_x, &t.self_y].into_iter().any(|t| missed(arguments, t)),
        None => report.error_bound.is_none_or(|b| b > accuracy(arguments) * report.value_kl.abs()),
    }
}
