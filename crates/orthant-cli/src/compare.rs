//! `orthant compare`: all pairs of many clouds.

mod arrangement;
mod files;
mod keep;
mod report;
mod text;

use std::ffi::OsString;
use std::process::ExitCode;

use orthant::{
    Measure, Options,
    compare::{Comparer, Comparison, Pair},
    control::Next,
};
use orthant_io::TableFormat;
use orthant_support::Failure;
use orthant_support::failure::NOT_CONVERGED;
use orthant_support::stdout;

use crate::args::{Compare, ReachSides};
use crate::input::Inputs;
use crate::json::Envelope;
use crate::output;
use crate::outputs::{Outputs, TableFile};
use crate::progress::Counter;
use crate::settings::{Epsilon, Settings};
use crate::solve;
use arrangement::Arrangement;
use files::{write_intervals, write_matrix};
use keep::{Header, Keep};
use report::Seconds;

pub(crate) fn run(arguments: &Compare) -> Result<ExitCode, Failure> {
    let Compare { clouds, common, solving, refining, reach, .. } = arguments;
    let settings = Settings::new(common).solving(solving).refining(refining);
    let settings = settings.reach(*reach, ReachSides::default())?;
    settings.method()?;
    let mut outputs = Outputs::beside(clouds.files.iter().map(OsString::as_os_str))?;
    let matrix = outputs.table("--output", arguments.output.as_ref())?;
    let intervals = outputs.table("--intervals", arguments.intervals.as_ref())?;
    if let Some(TableFile { path, format: TableFormat::Npy }) = intervals {
        return Err(Failure::input(format!(
            "{}: pairs have names, which an array cannot hold; write .csv or .tsv",
            path.display()
        )));
    }
    let picture = outputs.picture("--picture", arguments.picture.as_ref())?;
    let kept = outputs.journal("--keep", arguments.keep.as_ref())?;
    let inputs = solve::reading(&settings, || Inputs::many(clouds, &settings))?;
    let measures = inputs.measures(&settings)?;
    let names: Vec<String> = inputs.clouds.iter().map(|cloud| cloud.short.clone()).collect();
    let read = settings.elapsed();

    let epsilon = Epsilon::choose(&settings, &measures).map_err(|failure| inputs.named(failure))?;
    let options = settings.options(&epsilon)?;
    let mut keep = match kept {
        Some(path) => {
            Some(Keep::open(path, &Header::new(&settings, &epsilon, &measures)?, &names)?)
        }
        None => None,
    };
    let earlier = keep.as_mut().map_or_else(Vec::new, Keep::take_pairs);
    let resumed = earlier.len();
    let comparison = solve::solving(&settings, || {
        all_pairs(&settings, &measures, &options, &names, earlier, &mut keep)
    })
    .map_err(|failure| inputs.named(failure))?;

    let result = Arrangement::new(&comparison)?;
    if comparison.is_complete() {
        if let Some(file) = matrix {
            write_matrix(file, &names, &comparison)?;
        }
        if let Some(file) = intervals {
            write_intervals(file, &names, &comparison)?;
        }
        if let (Some(path), Some(result)) = (picture, &result) {
            let matrix = comparison.matrix().unwrap_or_default();
            output::write_picture(path, &result.picture(&names, &matrix)?)?;
        }
    }
    let accurate = settings
        .promises()
        .then(|| comparison.is_complete() && comparison.pairs.iter().all(|p| p.accurate));
    let answer = Answer {
        arguments,
        inputs: &inputs,
        names: &names,
        epsilon: &epsilon,
        comparison: &comparison,
        accurate,
    };
    let seconds = Seconds { read, total: settings.elapsed() };
    stdout::write(|out| {
        if common.basic.json {
            let report = answer.report(result.as_ref(), seconds);
            let settings = settings.json(&epsilon);
            let json = Envelope::new("compare", &inputs.files, &settings, &report);
            serde_json::to_writer(&mut *out, &json)?;
            writeln!(out)
        } else {
            writeln!(out, "{}", answer.text(result.as_ref(), resumed, seconds))
        }
    })?;
    let done = comparison.converged() && accurate != Some(false);
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// Solves what is left to do, and tells of every pair.
fn all_pairs(
    settings: &Settings<'_>,
    measures: &[Measure<'_>],
    options: &Options,
    names: &[String],
    earlier: Vec<Pair>,
    keep: &mut Option<Keep>,
) -> Result<Comparison, Failure> {
    let total = (measures.len() * (measures.len() - 1) / 2) as u64;
    let counter = Counter::new(settings, total, "pairs");
    let mut done = earlier.len() as u64;
    let mut failed: Option<Failure> = None;
    let mut each = |pair: &Pair| {
        done += 1;
        counter.tell(done, &format!(": {} and {}", names[pair.first], names[pair.second]));
        if let Some(keep) = keep
            && let Err(failure) = keep.add(pair)
        {
            failed = Some(failure);
            return Next::Stop;
        }
        Next::Continue
    };
    let comparison = Comparer::new(options).finished(earlier).each(&mut each).compare(measures);
    counter.finish();
    match failed {
        Some(failure) => Err(failure),
        None => Ok(comparison?),
    }
}

/// What is told of a comparison, to people and to programs.
struct Answer<'a> {
    arguments: &'a Compare,
    inputs: &'a Inputs,
    names: &'a [String],
    epsilon: &'a Epsilon,
    comparison: &'a Comparison,
    accurate: Option<bool>,
}

fn pairs_of(comparison: &Comparison) -> usize {
    comparison.count * (comparison.count - 1) / 2
}
