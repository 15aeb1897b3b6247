//! `orthant rot` and `orthant divergence`, and what all commands about two clouds share.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use orthant::{Measure, Options, Solution, Solver};
use orthant_support::Failure;
use orthant_support::failure::NOT_CONVERGED;
use orthant_support::number::{count, counted, number};
use orthant_support::stdout;

use crate::args::{self, MethodName, Problem, ReachSides, Refining, Rot};
use crate::figures;
use crate::input::Inputs;
use crate::json::Envelope;
use crate::output::{self, Row};
use crate::outputs::{Outputs, TableFile};
use crate::progress::Bar;
use crate::result::Outcome;
use crate::settings::{Epsilon, Settings};
use crate::watch::{TimeWatch, grace};

pub(crate) fn rot(arguments: &Rot) -> Result<ExitCode, Failure> {
    let Rot { problem, sides, refining, output, picture, pairs } = arguments;
    let settings = settings(problem, Some(refining), *sides)?;
    let mut outputs = outputs(problem)?;
    let potentials = outputs.table("--output", output.as_ref())?;
    let pairs_file = outputs.table("--pairs", pairs.pairs.as_ref())?;
    let picture = outputs.picture("--picture", picture.as_ref())?;
    let trace = outputs.lines("--trace", problem.tracing.trace.as_ref())?;
    check_positive_plan(&settings, pairs_file.is_some(), "--pairs")?;
    check_positive_plan(&settings, picture.is_some(), "--picture")?;
    let run = Run { command: "rot", settings: &settings, trace, channel: Channel::Output };
    let read = || Inputs::two(&problem.clouds, &settings, |_, source| source);
    run.run(read, |task| {
        let [mu, nu] = task.measures;
        let plan = Solver::new(task.options).observer(task.bar).plan(mu, nu)?;
        let drawn =
            picture.map(|path| Ok((path, figures::map(&plan, task.inputs, task.measures)?)));
        let drawn: Option<(_, _)> = drawn.transpose().map_err(|f: Failure| f)?;
        let pairs = pairs_file
            .map(|file| Ok::<_, Failure>((file, plan.sample(pairs.count, settings.seed())?)))
            .transpose()?;
        let solution = plan.into_solution();
        if let Some((file, pairs)) = pairs {
            output::write_pairs(file, &pairs, task.clouds())?;
        }
        write_potentials(potentials, &task, &solution, None)?;
        if let Some((path, picture)) = drawn {
            output::write_picture(path, &picture)?;
        }
        Ok((Outcome::of_solution(&settings, task.measures, &solution), Vec::new()))
    })
}

pub(crate) fn divergence(arguments: &args::Divergence) -> Result<ExitCode, Failure> {
    let args::Divergence { problem, refining, output, picture } = arguments;
    let settings = settings(problem, Some(refining), ReachSides::default())?;
    let mut outputs = outputs(problem)?;
    let potentials = outputs.table("--output", output.as_ref())?;
    let picture = outputs.picture("--picture", picture.as_ref())?;
    let trace = outputs.lines("--trace", problem.tracing.trace.as_ref())?;
    let run = Run { command: "divergence", settings: &settings, trace, channel: Channel::Output };
    let read = || Inputs::two(&problem.clouds, &settings, |_, source| source);
    run.run(read, |task| {
        let [mu, nu] = task.measures;
        let divergence = Solver::new(task.options).observer(task.bar).divergence(mu, nu)?;
        let selves = [&divergence.self_x, &divergence.self_y];
        write_potentials(potentials, &task, &divergence.cross, Some(selves))?;
        if let Some(path) = picture {
            let picture = figures::difference(&divergence, task.inputs, task.measures)?;
            output::write_picture(path, &picture)?;
        }
        Ok((Outcome::of_divergence(&settings, task.measures, &divergence), Vec::new()))
    })
}

fn write_potentials(
    file: Option<TableFile<'_>>,
    task: &Task<'_>,
    cross: &Solution,
    selves: Option<[&Solution; 2]>,
) -> Result<(), Failure> {
    match file {
        Some(file) => output::write_potentials(file, task.clouds(), task.measures, cross, selves),
        None => Ok(()),
    }
}

/// Checks, before any work, that what is wanted of a plan is that of a positive one.
pub(crate) fn check_positive_plan(
    settings: &Settings<'_>,
    wanted: bool,
    option: &str,
) -> Result<(), Failure> {
    if wanted && settings.method_name() == MethodName::Nystrom && !settings.polishes() {
        return Err(Failure::input(format!(
            "{option} needs a positive plan, that of nystrom need not be; add --polish or use another method",
        )));
    }
    Ok(())
}

/// The settings of a problem of two clouds, checked.
pub(crate) fn settings<'a>(
    problem: &'a Problem,
    refining: Option<&Refining>,
    sides: ReachSides,
) -> Result<Settings<'a>, Failure> {
    let mut settings = Settings::new(&problem.common).solving(&problem.solving);
    if let Some(refining) = refining {
        settings = settings.refining(refining);
    }
    let settings = settings.reach(problem.reach, sides)?;
    settings.method()?;
    Ok(settings)
}

/// What may be written beside the files of a problem.
pub(crate) fn outputs(problem: &Problem) -> Result<Outputs<'_>, Failure> {
    let clouds = &problem.clouds;
    Outputs::beside([&clouds.x].into_iter().chain(&clouds.y).map(OsString::as_os_str))
}

/// Where the answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Output,
    /// The output is for something else.
    Error,
}

/// A command about two clouds.
pub(crate) struct Run<'a> {
    pub(crate) command: &'static str,
    pub(crate) settings: &'a Settings<'a>,
    pub(crate) trace: Option<&'a Path>,
    pub(crate) channel: Channel,
}

/// What there is to be solved.
pub(crate) struct Task<'a> {
    pub(crate) options: &'a Options,
    pub(crate) bar: &'a mut Bar,
    pub(crate) inputs: &'a Inputs,
    pub(crate) measures: &'a [Measure<'a>; 2],
}

impl Task<'_> {
    pub(crate) fn clouds(&self) -> [&crate::input::Cloud; 2] {
        [&self.inputs.clouds[0], &self.inputs.clouds[1]]
    }
}

impl Run<'_> {
    /// Reads, solves and prints. What is done with the clouds is an outcome, and perhaps rows more for people.
    pub(crate) fn run(
        &self,
        read: impl FnOnce() -> Result<Inputs, Failure>,
        solve: impl FnOnce(Task<'_>) -> Result<(Outcome, Vec<Row>), Failure> + Send,
    ) -> Result<ExitCode, Failure> {
        let settings = self.settings;
        let inputs = reading(settings, read)?;
        let measures = inputs.pair(settings)?;
        let read = settings.elapsed();
        let epsilon =
            Epsilon::between(settings, &measures).map_err(|failure| inputs.named(failure))?;
        let options = settings.options(&epsilon)?;
        let mut bar = Bar::new(settings, self.trace.is_some());
        let solved = solving(settings, || {
            solve(Task { options: &options, bar: &mut bar, inputs: &inputs, measures: &measures })
        });
        bar.finish();
        let (mut outcome, more) = solved.map_err(|failure| inputs.named(failure))?;
        if let Some(path) = self.trace {
            bar.write_trace(path)?;
        }
        outcome.whole.seconds.read = read;
        outcome.whole.seconds.total = settings.elapsed();
        let print = |out: &mut dyn io::Write| {
            if settings.common.basic.json {
                let settings = settings.json(&epsilon);
                let json = Envelope::new(self.command, &inputs.files, &settings, &outcome);
                serde_json::to_writer(&mut *out, &json)?;
                writeln!(out)
            } else {
                writeln!(out, "{}", text(settings, &inputs, &epsilon, &outcome, more))
            }
        };
        match self.channel {
            Channel::Output => stdout::write(print)?,
            // Nobody need read it.
            Channel::Error => drop(print(&mut io::stderr().lock())),
        }
        Ok(if outcome.is_done() { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
    }
}

/// Reads files, within the time limit.
pub(crate) fn reading<R>(settings: &Settings<'_>, read: impl FnOnce() -> R) -> R {
    let limit = settings.common.iterating.time_limit;
    let _watch = TimeWatch::start(limit, settings.begun(), grace(limit), "files were read");
    read()
}

/// Does the work on the threads asked for, within the time limit and a little grace.
pub(crate) fn solving<R: Send>(settings: &Settings<'_>, solve: impl FnOnce() -> R + Send) -> R {
    let limit = settings.common.iterating.time_limit;
    let _watch = TimeWatch::start(limit, settings.begun(), grace(limit), "the problem was solved");
    settings.common.iterating.threads.run(solve)
}

/// The answer for people.
fn text(
    settings: &Settings<'_>,
    inputs: &Inputs,
    epsilon: &Epsilon,
    outcome: &Outcome,
    more: Vec<Row>,
) -> String {
    let mut head = head(inputs, [outcome.n, outcome.m], outcome.dim);
    let _ = write!(head, "{}", epsilon.text());
    let rho = settings.rho();
    let unbalanced = rho.iter().any(Option::is_some);
    if unbalanced {
        let [x, y] = rho.map(|rho| rho.map_or("infinite".to_owned(), number));
        let _ = write!(head, "\nrho = {x} and {y}");
    }
    let rows = outcome.rows(settings, unbalanced, more);
    format!("{head}\n\n{}{}", output::answer(rows), outcome.advice())
}

/// Which clouds, and which of their columns.
pub(crate) fn head(inputs: &Inputs, [n, m]: [usize; 2], dim: usize) -> String {
    let [x, y] = inputs.names();
    format!(
        "{x} ({}) and {y} ({}), {}\n{}\n",
        counted(n, "point"),
        counted(m, "point"),
        if dim == 1 { "1 dimension".to_owned() } else { format!("{} dimensions", count(dim)) },
        inputs.text()
    )
}
