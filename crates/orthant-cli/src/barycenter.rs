//! `orthant barycenter`.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use orthant::{Barycenters, Measure, Next, Options, Points, Rest, Step, mean_squared_distance};
use orthant_io::{Cells, Cloud, Series, TableFormat};
use serde::Serialize;

use crate::args::Barycenter;
use crate::failure::{Failure, NOT_CONVERGED};
use crate::flow;
use crate::input;
use crate::output::{self, Moves, Seconds, count, number, rough};
use crate::progress::Bar;
use crate::solve::{self, Epsilon};

/// The JSON object.
#[derive(Debug, Serialize)]
struct Report {
    value: f64,
    debiased: bool,
    /// Of the clouds.
    weights: Vec<f64>,
    distances: Vec<f64>,
    epsilon: f64,
    points: Vec<usize>,
    support: usize,
    dim: usize,
    method: &'static str,
    rank: usize,
    reason: Option<String>,
    converged: bool,
    stop: &'static str,
    iterations: usize,
    marginal_error: f64,
    /// How points moved that were free.
    free: Option<Moves>,
    seconds: Seconds,
}

pub(crate) fn run(arguments: &Barycenter) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let solve = &arguments.solve;
    let method = solve::method(solve)?;
    refuse(arguments)?;
    if let Some(path) = &solve.output {
        output::check_table(path, "--output")?;
    }
    if let Some(path) = &solve.trace {
        output::check_writable(path, "--trace")?;
    }
    let shares = shares(arguments)?;
    let files = Files::read(arguments)?;
    let measures = files.measures()?;
    let read = begun.elapsed().as_secs_f64();

    let epsilon = solve.threads.run(|| {
        Epsilon::or_from(solve, "all", || {
            let mut mean = 0.0;
            for (mu, a) in measures.iter().zip(&shares) {
                for (nu, b) in measures.iter().zip(&shares) {
                    mean += a * b * mean_squared_distance(mu, nu)?;
                }
            }
            Ok(mean)
        })
    })?;
    let options = solve::options(solve, method, epsilon.value)?;
    let mut bar = Bar::new(solve.tol, solve.trace.is_some());
    let found = solve.threads.run(|| {
        if arguments.is_free() {
            free(arguments, &files, &measures, &shares, &options, &mut bar)
        } else {
            fixed(arguments, &files, &measures, &shares, &options, &mut bar)
        }
    });
    bar.finish();
    let Found { points, weights, peaks, mut report } = found?;
    if let Some(path) = &solve.output {
        write(path, &files, &points, &weights, peaks.as_deref())?;
    }
    if let Some(path) = &solve.trace {
        bar.write_trace(path)?;
    }
    report.weights = shares;
    report.seconds.read = read;
    report.seconds.total = begun.elapsed().as_secs_f64();
    output::to_stdout(|out| {
        if solve.json {
            serde_json::to_writer(&mut *out, &report)?;
            writeln!(out)
        } else {
            writeln!(out, "{}", text(arguments, &files, &epsilon, &report))
        }
    })?;
    Ok(if report.converged { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// A barycentre, to be written and told of.
struct Found {
    points: Points<'static>,
    weights: Vec<f64>,
    /// The softmax of the weights.
    peaks: Option<Vec<f64>>,
    report: Report,
}

/// Weights on given points.
fn fixed(
    arguments: &Barycenter,
    files: &Files,
    measures: &[Measure<'_>],
    shares: &[f64],
    options: &Options<'_>,
    bar: &mut Bar,
) -> Result<Found, Failure> {
    let support = files.support()?;
    let barycenters = Barycenters::new(options).debiased(arguments.debiased).observer(bar);
    let found = barycenters.fixed(measures, shares, &support).map_err(|error| files.name(error))?;
    let peaks = arguments.softmax.map(|temperature| found.softmax(temperature)).transpose()?;
    let report = Report {
        value: found.value,
        debiased: found.debiased,
        weights: Vec::new(),
        distances: found.distances.clone(),
        epsilon: found.epsilon,
        points: files.clouds.iter().map(Cloud::len).collect(),
        support: support.len(),
        dim: support.dim(),
        method: found.method.as_str(),
        rank: found.rank,
        reason: found.reason.clone(),
        converged: found.converged(),
        stop: found.stop.as_str(),
        iterations: found.iterations,
        marginal_error: found.marginal_error,
        free: None,
        seconds: Seconds::of(found.times),
    };
    Ok(Found { points: support, weights: found.weights, peaks, report })
}

/// Points that are free.
fn free(
    arguments: &Barycenter,
    files: &Files,
    measures: &[Measure<'_>],
    shares: &[f64],
    options: &Options<'_>,
    bar: &mut Bar,
) -> Result<Found, Failure> {
    let descent = || flow::descent(options, arguments.moving).debiased(arguments.debiased);
    let start = if let (Some(cloud), Some(file)) = (&files.support, &arguments.start) {
        input::measure(cloud, input::name(file))?
    } else {
        let count = arguments.free.unwrap_or_default() as usize;
        let points = descent().start(measures, shares, count);
        Measure::uniform(points.map_err(|error| files.name(error))?)
    };
    let line = bar.steps(arguments.moving.steps);
    let mut each = |step: &Step<'_>| {
        line.show(step, "value");
        Next::Continue
    };
    let descent = descent().observer(bar).each(&mut each);
    let found = descent.barycenter(measures, shares, &start).map_err(|error| files.name(error))?;
    let solution = &found.solution;
    let converged = matches!(found.rest, Rest::Still | Rest::Stalled);
    let report = Report {
        value: found.value,
        debiased: found.debiased,
        weights: Vec::new(),
        distances: found.distances.clone(),
        epsilon: solution.epsilon,
        points: files.clouds.iter().map(Cloud::len).collect(),
        support: start.points().len(),
        dim: start.dim(),
        method: solution.method.as_str(),
        rank: solution.rank,
        reason: solution.reason.clone(),
        converged,
        stop: if converged { "converged" } else { found.rest.as_str() },
        iterations: solution.iterations,
        marginal_error: solution.marginal_error_x.max(solution.marginal_error_y),
        free: Some(Moves {
            first: found.first,
            steps: found.steps,
            gradients: found.gradients,
            moved: flow::distance(&start, &found.points),
            stop: found.rest.as_str(),
            done: converged,
        }),
        seconds: Seconds::of(found.times),
    };
    let weights = start.weights().to_vec();
    let points = Points::new(found.points, start.dim())?;
    Ok(Found { points, weights, peaks: None, report })
}

/// Options that have no meaning here.
fn refuse(arguments: &Barycenter) -> Result<(), Failure> {
    let solve = &arguments.solve;
    solve::refuse(
        "barycenter",
        &[
            (solve.certify, "--certify"),
            (solve.polish, "--polish"),
            (solve.no_gauge, "--no-gauge"),
            (solve.weights_x.is_some(), "--weights-x"),
            (solve.weights_y.is_some(), "--weights-y"),
            (solve.unbalanced.is_given(), "--reach"),
        ],
    )?;
    if arguments.is_free() {
        solve::refuse(
            "points that are free",
            &[
                (arguments.softmax.is_some(), "--softmax"),
                (arguments.support.is_some(), "--support"),
            ],
        )?;
    }
    if arguments.softmax.is_some() && solve.output.is_none() {
        return Err(Failure::input("--softmax is a column of the output; add --output FILE"));
    }
    match arguments.softmax {
        Some(value) if !value.is_finite() => {
            let (name, expected) = ("--softmax", "finite");
            Err(orthant::Error::Option { name, expected, value }.into())
        }
        _ => Ok(()),
    }
}

/// The weights of the clouds, of sum 1.
fn shares(arguments: &Barycenter) -> Result<Vec<f64>, Failure> {
    let clouds = 2 + arguments.more.len();
    let Some(list) = &arguments.solve.weights else {
        return Ok(vec![1.0 / clouds as f64; clouds]);
    };
    let mut shares = Vec::new();
    for text in list.split(',') {
        let share: f64 = text.trim().parse().map_err(|_| {
            Failure::input(format!(
                "--weights are numbers, one for each file, as in 0.2,0.3,0.5: cannot read {text:?} \
                 (a column of weights of the points is --weights-column)"
            ))
        })?;
        if !(share.is_finite() && share >= 0.0) {
            return Err(Failure::input(format!(
                "--weights must be finite and not negative, got {share}"
            )));
        }
        shares.push(share);
    }
    if shares.len() != clouds {
        return Err(Failure::input(format!(
            "--weights has {} numbers for {clouds} files; give one for each",
            shares.len()
        )));
    }
    let sum: f64 = shares.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(Failure::input("--weights must have a positive and finite sum"));
    }
    Ok(shares.iter().map(|share| share / sum).collect())
}

/// The clouds, and the support, or the points to start from, if these have a file of their own.
struct Files {
    names: Vec<String>,
    clouds: Vec<Cloud>,
    support: Option<Cloud>,
}

impl Files {
    fn read(arguments: &Barycenter) -> Result<Self, Failure> {
        let solve = &arguments.solve;
        let mut names = vec![solve.x.clone(), solve.y.clone()];
        names.extend(arguments.more.iter().cloned());
        let given = arguments.support.as_ref().or(arguments.start.as_ref());
        let piped = names.iter().chain(given).filter(|name| *name == "-").count();
        if piped > 1 {
            return Err(Failure::input(
                "only one of the files can come from standard input; give files for the others",
            ));
        }
        let options = |weights: Option<&String>| {
            let mut options = input::read_options(solve);
            options.weights = weights.cloned();
            options
        };
        let clouds = names
            .iter()
            .map(|name| orthant_io::read(name, &options(arguments.weights_column.as_ref())))
            .collect::<Result<Vec<_>, _>>()?;
        // Points of a start keep their weights.
        let column = arguments.weights_column.as_ref().filter(|_| arguments.start.is_some());
        let support = match given {
            Some(name) => Some(orthant_io::read(name, &options(column))?),
            None => None,
        };
        let first = clouds[0].dim;
        let others = clouds.iter().chain(&support);
        let names_of = names.iter().chain(given);
        if let Some((other, name)) = others.zip(names_of).find(|(c, _)| c.dim != first) {
            return Err(Failure::input(format!(
                "{} has {first} coordinates and {} has {}; use --columns to choose the same ones",
                input::name(&names[0]),
                input::name(name),
                other.dim
            )));
        }
        Ok(Files { names, clouds, support })
    }

    fn measures(&self) -> Result<Vec<Measure<'_>>, Failure> {
        let measure = |(cloud, name): (_, &String)| input::measure(cloud, input::name(name));
        self.clouds.iter().zip(&self.names).map(measure).collect()
    }

    /// The points of a file of their own, or all points of the clouds, each once.
    fn support(&self) -> Result<Points<'static>, Failure> {
        let clouds = match &self.support {
            Some(support) => std::slice::from_ref(support),
            None => &self.clouds,
        };
        let (dim, mut seen, mut values) = (clouds[0].dim, HashSet::new(), Vec::<f64>::new());
        for cloud in clouds {
            let all: Vec<f64> = match &cloud.values {
                orthant_io::Values::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
                orthant_io::Values::F64(v) => v.clone(),
            };
            for point in all.chunks_exact(dim) {
                // Zero has two signs.
                let bits: Vec<u64> = point.iter().map(|x| (x + 0.0).to_bits()).collect();
                if seen.insert(bits) {
                    values.extend(point);
                }
            }
        }
        Ok(Points::new(values, dim)?)
    }

    /// Calls a measure by its file.
    fn name(&self, error: orthant::Error) -> Failure {
        let orthant::Error::InClouds { clouds: [k, _], source } = error else {
            return error.into();
        };
        let of_file = |error| Failure::from(error).of_file(input::name(&self.names[k]));
        match *source {
            orthant::Error::InCloud { cloud: orthant::Cloud::X, source } => of_file(*source),
            orthant::Error::InCloud { source, .. } => Failure::from(*source).of_file("the support"),
            other => of_file(other),
        }
    }
}

/// Writes the points and their weights as a table.
fn write(
    path: &Path,
    files: &Files,
    support: &Points<'_>,
    weights: &[f64],
    peaks: Option<&[f64]>,
) -> Result<(), Failure> {
    let named = files.support.iter().chain(&files.clouds).find_map(|c| c.columns.clone());
    let names = named.unwrap_or_else(|| (1..=support.dim()).map(|k| format!("x{k}")).collect());
    let coordinates = names
        .into_iter()
        .enumerate()
        .map(|(c, name)| (name, (0..support.len()).map(|i| support.coordinate(i, c)).collect()));
    let beside = [("weight", Some(weights)), ("softmax", peaks)];
    let beside = beside.into_iter().filter_map(|(name, of)| Some((name.to_owned(), of?.to_vec())));
    let columns: Vec<Series<'_>> = coordinates
        .chain(beside)
        .map(|(name, numbers)| Series { name, cells: Cells::Numbers(numbers) })
        .collect();
    output::write_table(path, TableFormat::of(path)?, &columns, true)
}

/// The answer for people.
fn text(arguments: &Barycenter, files: &Files, epsilon: &Epsilon, report: &Report) -> String {
    let mut head = format!(
        "{} clouds, {} coordinates, on {} points{}\n{}",
        files.clouds.len(),
        report.dim,
        count(report.support),
        if report.free.is_some() { " that are free" } else { "" },
        epsilon.text()
    );
    for (name, cloud) in files.names.iter().zip(&files.clouds).filter(|(_, c)| c.dropped > 0) {
        let _ = write!(
            head,
            "\n{}: {} rows with missing values dropped",
            input::name(name),
            count(cloud.dropped)
        );
    }
    let note = if report.debiased { "sum of l S(a,p)" } else { "sum of l W(a,p)" };
    let mut rows = vec![["value".to_owned(), number(report.value), note.to_owned()]];
    for (k, name) in files.names.iter().enumerate() {
        let distance =
            if report.weights[k] > 0.0 { number(report.distances[k]) } else { "-".to_owned() };
        let note = format!(
            "{} ({} points), weight {}",
            input::name(name),
            count(report.points[k]),
            number(report.weights[k])
        );
        rows.push([
            format!("  {}(a{},p)", if report.debiased { 'S' } else { 'W' }, k + 1),
            distance,
            note,
        ]);
    }
    rows.extend(report.free.as_ref().map(|moves| flow::row(moves, None)));
    let method = format!("{}, rank {}", report.method, count(report.rank));
    rows.push(["method".to_owned(), method, report.reason.clone().unwrap_or_default()]);
    let converged = if report.converged {
        "yes".to_owned()
    } else {
        format!("NO: {}", report.stop.replace('_', " "))
    };
    let errors = format!(
        "{} iterations, marginal error {}",
        count(report.iterations),
        rough(report.marginal_error, 1)
    );
    rows.push(["converged".to_owned(), converged, errors]);
    rows.push(solve::time_row(report.seconds));
    let tail = match (report.converged, &arguments.solve.output) {
        (false, _) if report.stop == "step_limit" => {
            "\n\nNot converged: raise --steps or --still, or lower --momentum."
        }
        (false, _) => {
            "\n\nNot converged: raise --max-iter or --time-limit, or use a larger --eps or --tol."
        }
        (true, None) => "\n\nAdd --output FILE to write the barycentre.",
        (true, Some(_)) => "",
    };
    format!("{head}\n\n{}{tail}", solve::lines(rows))
}
