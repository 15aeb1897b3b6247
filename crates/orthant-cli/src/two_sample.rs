//! `orthant test`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use orthant::{
    Stop,
    control::Next,
    two_sample::{TwoSample, TwoSampleTest},
};
use orthant_draw::{Panel, Picture};
use orthant_io::{Cells, Series};
use orthant_support::Failure;
use orthant_support::failure::NOT_CONVERGED;
use orthant_support::number::{count, number, probability};
use orthant_support::stdout;
use serde::Serialize;

use crate::args::Test;
use crate::input::Inputs;
use crate::json::{Ends, Envelope, MethodJson, Seconds};
use crate::numbers::with_interval;
use crate::output;
use crate::outputs::Outputs;
use crate::progress::Counter;
use crate::result::time_row;
use crate::settings::{Epsilon, Settings};
use crate::solve::{self, head};

/// Relative error of the divergence, where none is given: it costs no validity.
const DEFAULT_ACCURACY: f64 = 1e-2;

/// The JSON object.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    m: usize,
    dim: usize,
    /// The divergence of the clouds.
    value: f64,
    /// Where that of the exact kernel is.
    interval: Option<Ends>,
    /// Whether the accuracy that was asked for was reached; nothing if none was.
    accurate: Option<bool>,
    /// The divergence that the permutations are compared with.
    statistic: f64,
    p_value: f64,
    resolution: f64,
    permutations: usize,
    exceeding: usize,
    /// Quantiles of the divergences of permutations, if one was done.
    null: Option<Null>,
    unconverged: usize,
    converged: bool,
    stop: &'static str,
    method: MethodJson,
    seconds: Seconds,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Null {
    median: f64,
    q90: f64,
    q95: f64,
    q99: f64,
}

impl Null {
    fn of(found: &TwoSample) -> Option<Self> {
        let [median, q90, q95, q99] = [0.5, 0.9, 0.95, 0.99].map(|part| found.quantile(part));
        Some(Null { median: median?, q90: q90?, q95: q95?, q99: q99? })
    }
}

pub(crate) fn run(arguments: &Test) -> Result<ExitCode, Failure> {
    let Test { clouds, common, permutations, .. } = arguments;
    let mut settings = Settings::new(common);
    settings.accuracy = common.basic.accuracy.unwrap_or(DEFAULT_ACCURACY);
    settings.method()?;
    let files = [&clouds.x].into_iter().chain(&clouds.y);
    let mut outputs = Outputs::beside(files.map(OsString::as_os_str))?;
    let table = outputs.table("--output", arguments.output.as_ref())?;
    let picture = outputs.picture("--picture", arguments.picture.as_ref())?;
    let inputs = solve::reading(&settings, || Inputs::two(clouds, &settings, |_, source| source))?;
    let measures = inputs.pair(&settings)?;
    let [mu, nu] = &measures;
    let read = settings.elapsed();

    let epsilon = Epsilon::choose(&settings, &measures)?;
    let options = settings.options(&epsilon)?;
    let counter = Counter::new(&settings, *permutations as u64, "permutations");
    let mut observer = |done: usize, _: usize| {
        counter.set(done as u64);
        Next::Continue
    };
    let found = solve::solving(&settings, || {
        let test = TwoSampleTest::new(&options).permutations(*permutations);
        test.observer(&mut observer).run(mu, nu)
    });
    counter.finish();
    let found = found.map_err(|error| inputs.named(error))?;
    if let Some(file) = table {
        let values: Vec<f64> = std::iter::once(found.statistic).chain(found.null.clone()).collect();
        let numbers = Cells::Indices((0..values.len() as u64).collect());
        let columns = [
            Series { name: "permutation".to_owned(), cells: numbers },
            Series { name: "divergence".to_owned(), cells: Cells::Numbers(values) },
        ];
        output::write_table(file, &columns, true)?;
    }
    if let Some(path) = picture {
        output::write_picture(path, &drawn(&found)?)?;
    }
    // One that was not asked for costs no validity.
    let asked = common.basic.accuracy.filter(|_| settings.promises());
    let report = Report {
        n: mu.points().len(),
        m: nu.points().len(),
        dim: mu.dim(),
        value: found.value,
        interval: found.interval.map(Ends::of),
        accurate: asked.map(|accuracy| found.meets_accuracy(accuracy)),
        statistic: found.statistic,
        p_value: found.p_value,
        resolution: found.resolution,
        permutations: found.permutations(),
        exceeding: found.exceeding,
        null: Null::of(&found),
        unconverged: found.unconverged,
        converged: found.stop == Stop::Converged,
        stop: found.stop.as_str(),
        method: MethodJson {
            name: found.method.as_str(),
            anchors: None,
            rank: found.rank,
            reason: found.reason.clone(),
        },
        seconds: Seconds { read, total: settings.elapsed(), ..Seconds::of(found.times) },
    };
    stdout::write(|out| {
        if common.basic.json {
            let settings = settings.json(&epsilon);
            let json = Envelope::new("test", &inputs.files, &settings, &report);
            serde_json::to_writer(&mut *out, &json)?;
            writeln!(out)
        } else {
            writeln!(out, "{}", text(arguments, &inputs, &epsilon, &report, &found))
        }
    })?;
    let done = found.stop == Stop::Converged && report.accurate != Some(false);
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// The divergences of the permutations, and that of the clouds.
fn drawn(found: &TwoSample) -> Result<Picture, Failure> {
    let mut values = found.null.clone();
    values.sort_by(f64::total_cmp);
    let count = values.len().max(1) as f64;
    let steps: Vec<[f64; 2]> =
        values.iter().enumerate().map(|(k, value)| [*value, (k + 1) as f64 / count]).collect();
    let mut panel = Panel::new()
        .title(format!("p = {}", probability(found.p_value)))
        .axes("divergence", "part of the permutations below");
    if !steps.is_empty() {
        panel.line("permutations", &steps, 0)?;
    }
    panel.dashed("the clouds", &[[found.statistic, 0.0], [found.statistic, 1.0]], 1)?;
    Ok(panel.into())
}

/// The answer for people.
fn text(
    arguments: &Test,
    inputs: &Inputs,
    epsilon: &Epsilon,
    report: &Report,
    found: &TwoSample,
) -> String {
    let head = head(inputs, [report.n, report.m], report.dim) + &epsilon.text();
    let verdict = if report.p_value <= 0.05 {
        "one distribution is unlikely to give clouds this different"
    } else {
        "no evidence of a difference"
    };
    let tested = format!(
        "{} of {} permutations are at least as far apart; steps of {}",
        count(report.exceeding),
        count(report.permutations),
        probability(report.resolution)
    );
    let (median, quantiles) = match report.null {
        Some(Null { median, q90, q95, q99 }) => {
            let [q90, q95, q99] = [q90, q95, q99].map(number);
            (number(median), format!("median; 90 %: {q90}, 95 %: {q95}, 99 %: {q99}"))
        }
        None => ("-".to_owned(), "no permutation was done".to_owned()),
    };
    let distance = if report.interval.is_some() {
        "of the clouds"
    } else {
        "of the clouds; its error is not known"
    };
    let method = format!("{}, rank {}", report.method.name, count(report.method.rank));
    let rows = vec![
        ["p-value".to_owned(), probability(report.p_value), tested],
        [String::new(), String::new(), verdict.to_owned()],
        [
            "divergence".to_owned(),
            with_interval(report.value, report.interval),
            distance.to_owned(),
        ],
        [
            "  compared".to_owned(),
            number(report.statistic),
            "that of the clouds with the kernel that all permutations share".to_owned(),
        ],
        ["  permuted".to_owned(), median, quantiles],
        ["method".to_owned(), method, report.method.reason.clone().unwrap_or_default()],
        time_row(report.seconds),
    ];
    let mut tail = String::new();
    if found.stop != Stop::Converged {
        let _ = write!(
            tail,
            "\n\nEnded at the time limit, with {} of {} permutations.",
            count(report.permutations),
            count(arguments.permutations)
        );
    }
    if report.accurate == Some(false) {
        tail += "\n\nThe divergence does not have the accuracy asked for, the p-value is valid all the same: raise \
                 --memory, --max-rank, --max-iter or --time-limit, use a smaller --tol or a larger --accuracy.";
    }
    if report.unconverged > 0 {
        let _ = write!(
            tail,
            "\n\n{} divergences did not converge: the p-value is valid, --max-iter or a larger --eps may give it \
             more power.",
            count(report.unconverged)
        );
    }
    format!("{head}\n\n{}{tail}", output::answer(rows))
}
