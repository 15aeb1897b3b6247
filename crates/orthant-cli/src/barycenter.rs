//! `orthant barycenter`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::process::ExitCode;

use orthant::{
    Measure, Options, Points,
    barycenter::Barycenters,
    control::Next,
    descent::{Rest, Step},
};
use orthant_draw::{MOST_POINTS, Picture, thinned};
use orthant_io::{Cells, Series};
use orthant_support::Failure;
use orthant_support::failure::NOT_CONVERGED;
use orthant_support::number::{count, counted, number, rough};
use orthant_support::stdout;
use serde::Serialize;

use crate::args::Barycenter;
use crate::flow;
use crate::input::{Cloud, Inputs, Source};
use crate::json::{Envelope, MethodJson, Moves, Seconds};
use crate::output;
use crate::outputs::{Outputs, TableFile};
use crate::progress::Bar;
use crate::result::time_row;
use crate::settings::{Epsilon, Settings};
use crate::solve;
use crate::view::View;

/// The L1 error of the marginals of a debiased barycentre on given points, where none is given: it converges slowly.
const DEBIASED_TOLERANCE: f64 = 1e-3;

/// The JSON object.
#[derive(Debug, Serialize)]
struct Report {
    /// How many points the clouds have.
    points: Vec<usize>,
    dim: usize,
    /// How many points the barycentre may have.
    support: usize,
    value: f64,
    debiased: bool,
    /// How much the clouds count.
    shares: Vec<f64>,
    distances: Vec<f64>,
    converged: bool,
    stop: &'static str,
    iterations: usize,
    marginal_error: f64,
    /// How points moved that were free.
    free: Option<Moves>,
    method: MethodJson,
    seconds: Seconds,
}

pub(crate) fn run(arguments: &Barycenter) -> Result<ExitCode, Failure> {
    let Barycenter { clouds, common, .. } = arguments;
    let mut settings = Settings::new(common);
    if arguments.debiased && !arguments.is_free() && common.iterating.tol.is_none() {
        settings.tolerance = DEBIASED_TOLERANCE;
    }
    settings.method()?;
    check(arguments)?;
    let given = arguments.support.as_ref().or(arguments.start.as_ref());
    let read_files = clouds.files.iter().chain(given);
    let mut outputs = Outputs::beside(read_files.map(OsString::as_os_str))?;
    let table = outputs.table("--output", arguments.output.as_ref())?;
    let picture = outputs.picture("--picture", arguments.picture.as_ref())?;
    let trace = outputs.lines("--trace", arguments.tracing.trace.as_ref())?;
    let (inputs, given) = solve::reading(&settings, || -> Result<_, Failure> {
        let inputs = Inputs::many(clouds, &settings)?;
        // Points of a start keep their weights.
        let weights = common.basic.weights.as_deref();
        let given = given.map(|file| {
            let source = Source::new(file, weights.filter(|_| arguments.start.is_some()));
            let skip = weights.map(str::to_owned).into_iter().chain(clouds.group.clone());
            inputs.read_like(&source.skip(&skip.collect::<Vec<_>>()), &settings)
        });
        Ok((inputs, given.transpose()?))
    })?;
    let shares = shares(arguments, inputs.clouds.len())?;
    let measures = inputs.measures(&settings)?;
    let read = settings.elapsed();

    let epsilon = Epsilon::choose(&settings, &measures)?;
    let options = settings.options(&epsilon)?;
    let mut bar = Bar::new(&settings, trace.is_some());
    let problem = Task {
        arguments,
        inputs: &inputs,
        given: given.as_ref(),
        measures: &measures,
        shares: &shares,
    };
    let found = solve::solving(&settings, || {
        if arguments.is_free() {
            problem.free(&options, &mut bar)
        } else {
            problem.fixed(&options, &mut bar)
        }
    });
    bar.finish();
    let Found { points, weights, peaks, mut report } =
        found.map_err(|failure| inputs.named(failure))?;
    if let Some(file) = table {
        write(file, &problem, &points, &weights, peaks.as_deref())?;
    }
    if let Some(path) = picture {
        output::write_picture(path, &problem.drawn(&points, &weights)?)?;
    }
    if let Some(path) = trace {
        bar.write_trace(path)?;
    }
    report.seconds.read = read;
    report.seconds.total = settings.elapsed();
    stdout::write(|out| {
        if common.basic.json {
            let settings = settings.json(&epsilon);
            let json = Envelope::new("barycenter", &inputs.files, &settings, &report);
            serde_json::to_writer(&mut *out, &json)?;
            writeln!(out)
        } else {
            writeln!(out, "{}", text(arguments, &inputs, &epsilon, &report))
        }
    })?;
    Ok(if report.converged { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// What there is to be solved.
struct Task<'a> {
    arguments: &'a Barycenter,
    inputs: &'a Inputs,
    /// The support, or the points to start from, if these have a file of their own.
    given: Option<&'a Cloud>,
    measures: &'a [Measure<'a>],
    shares: &'a [f64],
}

/// A barycentre, to be written and told of.
struct Found {
    points: Points<'static>,
    weights: Vec<f64>,
    /// The softmax of the weights.
    peaks: Option<Vec<f64>>,
    report: Report,
}

impl Task<'_> {
    /// Weights on given points.
    fn fixed(&self, options: &Options, bar: &mut Bar) -> Result<Found, Failure> {
        let support = self.support()?;
        let barycenters = Barycenters::new(options).debiased(self.arguments.debiased).observer(bar);
        let found = barycenters
            .fixed(self.measures, self.shares, &support)
            .map_err(|error| self.name(error))?;
        let softmax = self.arguments.softmax;
        let peaks = softmax.map(|temperature| found.softmax(temperature)).transpose()?;
        let report = Report {
            points: self.inputs.clouds.iter().map(Cloud::len).collect(),
            dim: support.dim(),
            support: support.len(),
            value: found.value,
            debiased: found.debiased,
            shares: self.shares.to_vec(),
            distances: found.distances.clone(),
            converged: found.converged(),
            stop: found.stop.as_str(),
            iterations: found.iterations,
            marginal_error: found.marginal_error,
            free: None,
            method: MethodJson {
                name: found.method.as_str(),
                anchors: None,
                rank: found.rank,
                reason: found.reason.clone(),
            },
            seconds: Seconds::of(found.times),
        };
        Ok(Found { points: support, weights: found.weights, peaks, report })
    }

    /// Points that are free.
    fn free(&self, options: &Options, bar: &mut Bar) -> Result<Found, Failure> {
        let Task { arguments, measures, shares, .. } = self;
        let descent = || flow::descent(options, arguments.moving).debiased(arguments.debiased);
        let start = if let Some(cloud) = self.given {
            cloud.measure(false)?
        } else {
            let count = arguments.free.unwrap_or_default() as usize;
            let points = descent().start(measures, shares, count);
            Measure::uniform(points.map_err(|error| self.name(error))?)
        };
        let line = bar.steps(arguments.moving.steps());
        let mut each = |step: &Step<'_>| {
            line.show(step, "value");
            Next::Continue
        };
        let descent = descent().observer(bar).each(&mut each);
        let found =
            descent.barycenter(measures, shares, &start).map_err(|error| self.name(error))?;
        let solution = &found.solution;
        let converged = matches!(found.rest, Rest::Still | Rest::Stalled);
        let report = Report {
            points: self.inputs.clouds.iter().map(Cloud::len).collect(),
            dim: start.dim(),
            support: start.points().len(),
            value: found.value,
            debiased: found.debiased,
            shares: shares.to_vec(),
            distances: found.distances.clone(),
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
            method: MethodJson::of(solution),
            seconds: Seconds::of(found.times),
        };
        let weights = start.weights().to_vec();
        let points = Points::new(found.points, start.dim())?;
        Ok(Found { points, weights, peaks: None, report })
    }

    /// The points of a file of their own, or all points of the clouds, each once.
    fn support(&self) -> Result<Points<'static>, Failure> {
        let one: Vec<&Cloud> = self.given.into_iter().collect();
        let clouds = if one.is_empty() { self.inputs.clouds.iter().collect() } else { one };
        let (mut seen, mut values, mut dim) = (HashSet::new(), Vec::<f64>::new(), 1);
        for cloud in clouds {
            let points = cloud.points()?;
            dim = points.dim();
            for i in 0..points.len() {
                let point: Vec<f64> = (0..dim).map(|c| points.coordinate(i, c)).collect();
                // Zero has two signs.
                let bits: Vec<u64> = point.iter().map(|x| (x + 0.0).to_bits()).collect();
                if seen.insert(bits) {
                    values.extend(point);
                }
            }
        }
        Ok(Points::new(values, dim)?)
    }

    /// Calls a measure by its cloud, and the support by its name.
    fn name(&self, error: orthant::Error) -> Failure {
        match error {
            orthant::Error::InClouds { clouds: [k, _], source } => match *source {
                orthant::Error::InCloud { cloud: orthant::Side::X, source } => {
                    self.inputs.clouds[k].explain(*source)
                }
                orthant::Error::InCloud { source, .. } => {
                    Failure::from(*source).of_file("the support")
                }
                other => self.inputs.clouds[k].explain(other),
            },
            error => error.into(),
        }
    }

    /// The clouds, and the barycentre: free points, or given ones coloured by their weights.
    fn drawn(&self, points: &Points<'_>, weights: &[f64]) -> Result<Picture, Failure> {
        let measures: Vec<&Measure<'_>> = self.measures.iter().collect();
        let view = View::of(self.inputs, &measures)?;
        let mut panel = view.panel("The clouds and what lies between them");
        for (k, (cloud, measure)) in self.inputs.clouds.iter().zip(self.measures).enumerate() {
            let chosen = thinned(measure.points().len(), MOST_POINTS);
            panel.cloud(&cloud.short, &view.places(measure.points(), &chosen, k), k)?;
        }
        let level = self.measures.len();
        if self.arguments.is_free() {
            let chosen = thinned(points.len(), MOST_POINTS);
            panel.cloud("barycentre", &view.places(points, &chosen, level), level)?;
        } else {
            // Points without weight are not part of it.
            let largest = weights.iter().copied().fold(0.0, f64::max);
            let heavy: Vec<usize> =
                (0..weights.len()).filter(|&i| weights[i] > 1e-3 * largest).collect();
            let chosen: Vec<usize> =
                thinned(heavy.len(), MOST_POINTS).into_iter().map(|k| heavy[k]).collect();
            let shades: Vec<f64> = chosen.iter().map(|&i| weights[i]).collect();
            panel.coloured(
                "weight of the barycentre",
                &view.places(points, &chosen, level),
                &shades,
            )?;
        }
        Ok(panel.into())
    }
}

/// Options that do not go together, before any work.
fn check(arguments: &Barycenter) -> Result<(), Failure> {
    let refuse = |given: bool, option: &str| {
        if given {
            return Err(Failure::input(format!(
                "{option} has no meaning for points that are free; leave it out"
            )));
        }
        Ok(())
    };
    if arguments.is_free() {
        refuse(arguments.softmax.is_some(), "--softmax")?;
        refuse(arguments.support.is_some(), "--support")?;
    } else if let Some(option) = arguments.moving.given() {
        return Err(Failure::input(format!(
            "{option} is for points that move, and only weights are looked for here; add --free N or --start FILE, or leave \
             {option} out"
        )));
    }
    if arguments.common.reading.pca.is_some() && arguments.output.is_some() {
        return Err(Failure::input(
            "--pca loses the coordinates of the files, so that the barycentre cannot be written; leave --pca or --output out",
        ));
    }
    if arguments.softmax.is_some() && arguments.output.is_none() {
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

/// How much the clouds count, of sum 1.
fn shares(arguments: &Barycenter, clouds: usize) -> Result<Vec<f64>, Failure> {
    let Some(list) = &arguments.shares else {
        return Ok(vec![1.0 / clouds as f64; clouds]);
    };
    let mut shares = Vec::new();
    for text in list.split(',') {
        let share: f64 = text.trim().parse().map_err(|_| {
            Failure::input(format!(
                "--shares are numbers, one for each cloud, as in 0.2,0.3,0.5: cannot read {text:?} \
                 (a column of weights of the points is --weights)"
            ))
        })?;
        if !(share.is_finite() && share >= 0.0) {
            return Err(Failure::input(format!(
                "--shares must be finite and not negative, got {share}"
            )));
        }
        shares.push(share);
    }
    if shares.len() != clouds {
        return Err(Failure::input(format!(
            "--shares has {} numbers for {clouds} clouds; give one for each",
            shares.len()
        )));
    }
    let sum: f64 = shares.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(Failure::input("--shares must have a positive and finite sum"));
    }
    Ok(shares.iter().map(|share| share / sum).collect())
}

/// Writes the points and their weights as a table.
fn write(
    file: TableFile<'_>,
    task: &Task<'_>,
    support: &Points<'_>,
    weights: &[f64],
    peaks: Option<&[f64]>,
) -> Result<(), Failure> {
    let named = task.given.into_iter().chain(&task.inputs.clouds).find_map(|c| c.columns.clone());
    let names = named.unwrap_or_else(|| (1..=support.dim()).map(|k| format!("x{k}")).collect());
    let dim = support.dim();
    let flat: Vec<f64> =
        (0..support.len() * dim).map(|at| support.coordinate(at / dim, at % dim)).collect();
    let flat = task.inputs.preparation.undo(&flat);
    let coordinates = names
        .into_iter()
        .enumerate()
        .map(|(c, name)| (name, flat.iter().skip(c).step_by(dim).copied().collect()));
    let beside = [("weight", Some(weights)), ("softmax", peaks)];
    let beside = beside.into_iter().filter_map(|(name, of)| Some((name.to_owned(), of?.to_vec())));
    let columns: Vec<Series<'_>> = coordinates
        .chain(beside)
        .map(|(name, numbers)| Series { name, cells: Cells::Numbers(numbers) })
        .collect();
    output::write_table(file, &columns, true)
}

/// The answer for people.
fn text(arguments: &Barycenter, inputs: &Inputs, epsilon: &Epsilon, report: &Report) -> String {
    let head = format!(
        "{} clouds, {} dimensions, on {}{}\n{}\n{}",
        inputs.clouds.len(),
        report.dim,
        counted(report.support, "point"),
        if report.free.is_some() { " that are free" } else { "" },
        inputs.text(),
        epsilon.text()
    );
    let note = if report.debiased { "sum of l S(a,p)" } else { "sum of l W(a,p)" };
    let mut rows = vec![["value".to_owned(), number(report.value), note.to_owned()]];
    for (k, cloud) in inputs.clouds.iter().enumerate() {
        let distance =
            if report.shares[k] > 0.0 { number(report.distances[k]) } else { "-".to_owned() };
        let note = format!(
            "{} ({}), share {}",
            cloud.name,
            counted(report.points[k], "point"),
            number(report.shares[k])
        );
        rows.push([
            format!("  {}(a{},p)", if report.debiased { 'S' } else { 'W' }, k + 1),
            distance,
            note,
        ]);
    }
    rows.extend(report.free.as_ref().map(|moves| flow::row(moves, None)));
    let MethodJson { name, rank, reason, .. } = &report.method;
    let method = format!("{name}, rank {}", count(*rank));
    rows.push(["method".to_owned(), method, reason.clone().unwrap_or_default()]);
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
    rows.push(time_row(report.seconds));
    let tail = match (report.converged, &arguments.output) {
        (false, _) if report.stop == "step_limit" => {
            "\n\nNot converged: raise --steps or --still, or lower --momentum."
        }
        (false, _) => {
            "\n\nNot converged: raise --max-iter or --time-limit, or use a larger --eps or --tol."
        }
        (true, None) => "\n\nAdd --output FILE to write the barycentre.",
        (true, Some(_)) => "",
    };
    format!("{head}\n\n{}{tail}", output::answer(rows))
}
