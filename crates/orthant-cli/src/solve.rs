//! `orthant rot` and `orthant divergence`.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Instant;

use orthant::{
    Anchors, Features, Measure, Method, Options, Precision, Solution, Solver, mean_squared_distance,
};

use crate::args::{MethodName, PrecisionName, Solve};
use crate::failure::{Failure, NOT_CONVERGED};
use crate::input::{self, Clouds};
use crate::memory;
use crate::output::{self, Report, Sizes, number};
use crate::progress::Bar;

/// Epsilon, as a part of the mean squared distance, where none is given.
const DEFAULT_EPSILON: f64 = 0.05;

pub(crate) fn rot(arguments: &Solve) -> Result<ExitCode, Failure> {
    command(arguments, |options, bar, measures| {
        let [mu, nu] = measures;
        let solution = Solver::new(options).observer(bar).rot(mu, nu)?;
        let report = Report::of_solution(&solution, sizes(measures));
        Ok(Answer { report, cross: solution, selves: None })
    })
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
        })
    })
}

/// What either command computes.
struct Answer {
    report: Report,
    cross: Solution,
    selves: Option<[Solution; 2]>,
}

fn sizes([mu, nu]: &[Measure<'_>; 2]) -> Sizes {
    Sizes { n: mu.points().len(), m: nu.points().len(), dim: mu.dim() }
}

/// Reads, solves and prints.
fn command(
    arguments: &Solve,
    solve: impl FnOnce(&Options<'_>, &mut Bar, &[Measure<'_>; 2]) -> Result<Answer, Failure> + Send,
) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    if let Some(path) = &arguments.output {
        output::check_writable(path)?;
    }
    let clouds = Clouds::read(arguments)?;
    let measures = clouds.measures(arguments)?;
    let read = begun.elapsed().as_secs_f64();

    let epsilon = arguments.threads.run(|| Epsilon::choose(arguments, &measures))?;
    let options = options(arguments, epsilon.value)?;
    let mut bar = Bar::new(arguments.tol);
    let answer = arguments.threads.run(|| solve(&options, &mut bar, &measures));
    bar.finish();
    let mut answer = answer.map_err(|failure| failure.name_cloud([&arguments.x, &arguments.y]))?;
    if let Some(path) = &arguments.output {
        let selves = answer.selves.as_ref().map(|[x, y]| [x, y]);
        output::write_potentials(path, &measures, &answer.cross, selves)?;
    }
    answer.report.seconds.read = read;
    answer.report.seconds.total = begun.elapsed().as_secs_f64();
    output::to_stdout(|out| {
        if arguments.json {
            serde_json::to_writer(&mut *out, &answer.report)?;
            writeln!(out)
        } else {
            writeln!(out, "{}", text(arguments, &epsilon, &answer, clouds.dropped()))
        }
    })?;
    Ok(if answer.report.converged { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// The regularisation, and where it comes from.
struct Epsilon {
    value: f64,
    origin: Option<String>,
}

impl Epsilon {
    fn choose(arguments: &Solve, [mu, nu]: &[Measure<'_>; 2]) -> Result<Self, Failure> {
        if let Some(value) = arguments.eps {
            return Ok(Epsilon { value, origin: None });
        }
        if matches!(arguments.method, MethodName::Arccos | MethodName::Linear) {
            let origin =
                Some("the default for a kernel that is not a function of epsilon".to_owned());
            return Ok(Epsilon { value: 1.0, origin });
        }
        let mean = mean_squared_distance(mu, nu)?;
        if mean == 0.0 {
            return Err(Failure::input(
                "all points of both clouds coincide, so there is no scale to choose epsilon from; give --eps",
            ));
        }
        let origin = format!("{DEFAULT_EPSILON} x the mean squared distance, {}", number(mean));
        Ok(Epsilon { value: DEFAULT_EPSILON * mean, origin: Some(origin) })
    }
}

fn options(arguments: &Solve, epsilon: f64) -> Result<Options<'static>, Failure> {
    let method = match arguments.method {
        MethodName::Auto => Method::Auto,
        MethodName::Gaussian => {
            Method::Factored(Features::Gaussian(Anchors::Paper { centred: !arguments.uncentred }))
        }
        MethodName::Arccos => Method::Factored(Features::ArcCosine {
            order: arguments.order,
            kappa: arguments.kappa,
            sigma: arguments.sigma,
        }),
        MethodName::Linear => Method::Factored(Features::Linear),
        MethodName::Dense => Method::dense(),
        MethodName::Online => Method::online(),
    };
    let mut builder = Options::builder(epsilon)
        .method(method)
        .rank(arguments.rank)
        .seed(arguments.seed)
        .tolerance(arguments.tol)
        .max_iterations(arguments.max_iter)
        .precision(match arguments.precision {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::F64 => Precision::F64,
        });
    if let Some(limit) = arguments.time_limit {
        builder = builder.time_limit(limit);
    }
    if let Some(bytes) = memory::available() {
        builder = builder.max_memory(bytes);
    }
    Ok(builder.build()?)
}

/// The answer for people.
fn text(arguments: &Solve, epsilon: &Epsilon, answer: &Answer, dropped: [usize; 2]) -> String {
    let Answer { report, cross, .. } = answer;
    let mut table = output::table();
    let mut row = |name: &str, value: String, note: &str| {
        table.add_row([name, &value, note]);
    };
    match &report.terms {
        None => {
            row("value", number(report.value), "W = <P,C> + eps sum P log P, as the paper has it");
            row("value_kl", number(report.value_kl), "W + eps (H(a) + H(b)): POT \"KL\", OTT");
            match report.transport_cost {
                Some(cost) => row("transport cost", number(cost), "<P,C>"),
                None => row(
                    "transport cost",
                    "-".to_owned(),
                    "needs all pairs for this kernel: too many",
                ),
            }
        }
        Some(terms) => {
            row("divergence", number(report.value), "W(x,y) - (W(x,x) + W(y,y)) / 2");
            for (name, term) in [
                ("  W(x,y)", &terms.cross),
                ("  W(x,x)", &terms.self_x),
                ("  W(y,y)", &terms.self_y),
            ] {
                let note =
                    format!("value_kl {}, {} iterations", number(term.value_kl), term.iterations);
                row(name, number(term.value), &note);
            }
        }
    }
    let format = match (cross.method, arguments.precision) {
        (orthant::Used::Online, _) | (_, PrecisionName::F64) => "f64",
        (_, PrecisionName::F32) => "f32",
    };
    let method = match cross.method {
        orthant::Used::Dense | orthant::Used::Online => {
            format!("{}, exact, {format}", report.method)
        }
        _ => format!("{}, rank {}, {format}", report.method, output::count(report.rank)),
    };
    row("method", method, cross.reason.as_deref().unwrap_or_default());
    let converged = if report.converged {
        "yes".to_owned()
    } else {
        format!("NO: {}", report.stop.replace('_', " "))
    };
    let errors = format!(
        "{} iterations, marginal errors {:.1e} (x) and {:.1e} (y)",
        report.iterations, report.marginal_error_x, report.marginal_error_y
    );
    row("converged", converged, &errors);
    let s = report.seconds;
    let phases = format!(
        "read {}, features {}, solve {}",
        output::seconds(s.read),
        output::seconds(s.features),
        output::seconds(s.solve)
    );
    row("time", output::seconds(s.total), &phases);

    let mut head = format!(
        "{} ({} points) and {} ({} points), {} coordinates\n",
        input::name(&arguments.x),
        output::count(report.n),
        input::name(&arguments.y),
        output::count(report.m),
        report.dim
    );
    for (file, dropped) in [&arguments.x, &arguments.y].into_iter().zip(dropped) {
        if dropped > 0 {
            let _ = writeln!(
                head,
                "{}: {} rows with missing values dropped",
                input::name(file),
                output::count(dropped)
            );
        }
    }
    let _ = write!(head, "epsilon = {}", number(epsilon.value));
    if let Some(origin) = &epsilon.origin {
        let _ = write!(head, " ({origin})");
    }
    let table = table.to_string();
    let table: Vec<&str> = table.lines().map(str::trim_end).collect();
    let tail = if report.converged {
        ""
    } else {
        "\n\nNot converged: raise --max-iter or --time-limit, or use a larger --eps or --tol."
    };
    format!("{head}\n\n{}{tail}", table.join("\n"))
}
