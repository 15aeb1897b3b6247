//! `orthant compare`: all pairs of many clouds.

mod keep;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use orthant::{
    Comparer, Comparison, Measure, Merge, Next, Options, Pair, Sharing, embedding, leaves, linkage,
};
use orthant_draw::{Panel, Picture};
use orthant_io::{Cells, Series, TableFormat};
use serde::Serialize;

use crate::args::Compare;
use crate::failure::{Failure, NOT_CONVERGED};
use crate::input::{Cloud, Inputs};
use crate::json::{Ends, Envelope};
use crate::numbers::{count, known, rough, seconds};
use crate::output;
use crate::outputs::{Outputs, TableFile};
use crate::progress::Counter;
use crate::settings::{Epsilon, Settings};
use crate::solve;
use keep::{Header, Keep};

/// Columns of the answer for people.
const WIDTH: usize = output::WIDTH as usize;
/// Pairs that are listed where a matrix would be too wide.
const LISTED: usize = 10;

pub(crate) fn run(arguments: &Compare) -> Result<ExitCode, Failure> {
    let Compare { clouds, common, solving, refining, reach, .. } = arguments;
    let settings = Settings::new(common).solving(solving).refining(refining);
    let settings = settings.reach(*reach, crate::args::ReachSides::default())?;
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

    let epsilon = Epsilon::choose(&settings, &measures)
        .map_err(|failure| failure.name_clouds(&inputs.clouds))?;
    let options = settings.options(&epsilon)?;
    let mut keep = match kept {
        Some(path) => Some(Keep::open(path, &Header::new(&settings, &epsilon, &measures), &names)?),
        None => None,
    };
    let earlier = keep.as_mut().map_or_else(Vec::new, Keep::take_pairs);
    let resumed = earlier.len();
    let comparison = solve::solving(&settings, || {
        all_pairs(&settings, &measures, &options, &names, earlier, &mut keep)
    })
    .map_err(|failure| failure.name_clouds(&inputs.clouds))?;

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
    output::to_stdout(|out| {
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
    options: &Options<'_>,
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

/// What a complete matrix looks like.
struct Arrangement {
    tree: Vec<Merge>,
    order: Vec<usize>,
    points: Vec<[f64; 2]>,
    share: f64,
}

impl Arrangement {
    fn new(comparison: &Comparison) -> Result<Option<Self>, Failure> {
        let Some(matrix) = comparison.matrix() else { return Ok(None) };
        let tree = linkage(&matrix, comparison.count)?;
        let order = leaves(&tree);
        let plane = embedding(&matrix, comparison.count)?;
        Ok(Some(Arrangement { tree, order, points: plane.points, share: plane.share }))
    }

    /// The matrix, its tree, and the clouds in the plane.
    fn picture(&self, names: &[String], matrix: &[f64]) -> Result<Picture, Failure> {
        let merges: Vec<[f64; 4]> = self
            .tree
            .iter()
            .map(|m| [m.left as f64, m.right as f64, m.height, m.size as f64])
            .collect();
        let map = Panel::clustered(names, matrix, &merges, "divergence")?.title("All pairs");
        let share = format!("{:.0} % of the squared distances", 100.0 * self.share);
        let mut plane = Panel::new().title("The clouds in the plane").equal();
        plane = plane.axes(format!("root of the divergence ({share})"), "");
        plane.named(&self.points, names, 0)?;
        let tree = Panel::tree(names, &merges, "mean divergence of two clusters")?;
        Ok(Picture::grid("", 3, vec![map, tree.title("Average linkage"), plane])?)
    }
}

/// The JSON object.
#[derive(Debug, Serialize)]
struct Report<'a> {
    names: &'a [String],
    points: Vec<usize>,
    dim: usize,
    sharing: &'static str,
    pairs: usize,
    finished: usize,
    converged: bool,
    /// Whether the accuracy was reached for all pairs; nothing if none was promised.
    accurate: Option<bool>,
    /// The matrix, row by row.
    values: Vec<Vec<Option<f64>>>,
    intervals: Vec<Line<'a>>,
    order: Option<Vec<usize>>,
    tree: Option<Vec<Step>>,
    embedding: Option<Vec<Place<'a>>>,
    embedding_share: Option<f64>,
    seconds: Seconds,
}

/// A pair in a report.
#[derive(Debug, Serialize)]
struct Line<'a> {
    first: &'a str,
    second: &'a str,
    divergence: f64,
    low: Option<f64>,
    high: Option<f64>,
    kind: Option<&'static str>,
    converged: bool,
    method: &'static str,
    iterations: usize,
}

#[derive(Debug, Serialize)]
struct Step {
    left: usize,
    right: usize,
    height: f64,
    size: usize,
}

#[derive(Debug, Serialize)]
struct Place<'a> {
    name: &'a str,
    x: f64,
    y: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Seconds {
    read: f64,
    total: f64,
}

struct Answer<'a> {
    arguments: &'a Compare,
    inputs: &'a Inputs,
    names: &'a [String],
    epsilon: &'a Epsilon,
    comparison: &'a Comparison,
    accurate: Option<bool>,
}

impl<'a> Answer<'a> {
    fn report(&self, arrangement: Option<&Arrangement>, seconds: Seconds) -> Report<'a> {
        let Answer { inputs, names, comparison, accurate, .. } = *self;
        let row = |i| (0..comparison.count).map(|j| comparison.value(i, j)).collect();
        let line = |p: &Pair| Line {
            first: &names[p.first],
            second: &names[p.second],
            divergence: p.value,
            low: p.interval.map(|i| i.low),
            high: p.interval.map(|i| i.high),
            kind: p.interval.map(|i| i.kind.as_str()),
            converged: p.converged,
            method: p.method.as_str(),
            iterations: p.iterations,
        };
        let step =
            |m: &Merge| Step { left: m.left, right: m.right, height: m.height, size: m.size };
        let place = |(name, [x, y]): (&'a String, &[f64; 2])| Place { name, x: *x, y: *y };
        Report {
            names,
            points: inputs.clouds.iter().map(Cloud::len).collect(),
            dim: inputs.clouds[0].points().map_or(0, |points| points.dim()),
            sharing: comparison.sharing.as_str(),
            pairs: pairs_of(comparison),
            finished: comparison.pairs.len(),
            converged: comparison.converged(),
            accurate,
            values: (0..comparison.count).map(row).collect(),
            intervals: comparison.pairs.iter().map(line).collect(),
            order: arrangement.map(|a| a.order.clone()),
            tree: arrangement.map(|a| a.tree.iter().map(step).collect()),
            embedding: arrangement.map(|a| names.iter().zip(&a.points).map(place).collect()),
            embedding_share: arrangement.map(|a| a.share),
            seconds,
        }
    }

    /// The answer for people.
    fn text(&self, arrangement: Option<&Arrangement>, resumed: usize, times: Seconds) -> String {
        let Answer { inputs, names, comparison, epsilon, .. } = *self;
        let total: usize = inputs.clouds.iter().map(Cloud::len).sum();
        let mut text = format!(
            "{} clouds, {} points, {} dimensions\n{}\n{}\n\n",
            count(comparison.count),
            count(total),
            inputs.clouds[0].points().map_or(0, |points| points.dim()),
            inputs.text(),
            epsilon.text()
        );
        // The picture has the same order.
        let order =
            arrangement.map_or_else(|| (0..comparison.count).collect(), |a| a.order.clone());
        text +=
            &matrix_text(names, comparison, &order).unwrap_or_else(|| list_text(names, comparison));
        text += "\n";
        if arrangement.is_some() {
            text += "\nClouds are in the order of the tree of average linkage.\n";
        }
        let _ = writeln!(text, "{}", self.method_text());
        let _ = write!(
            text,
            "{} of {} pairs{}, {}",
            count(comparison.pairs.len()),
            count(pairs_of(comparison)),
            if resumed > 0 { format!(", {} from earlier", count(resumed)) } else { String::new() },
            seconds(times.total)
        );
        text += self.tail();
        text
    }

    /// What was used and how certain the values are.
    fn method_text(&self) -> String {
        let Answer { comparison, .. } = *self;
        let mut methods: Vec<&str> = Vec::new();
        for pair in &comparison.pairs {
            if !methods.contains(&pair.method.as_str()) {
                methods.push(pair.method.as_str());
            }
        }
        let shared = match comparison.sharing {
            Sharing::SelfTerms => "self terms solved once a cloud",
            Sharing::Features => "features and self terms computed once a cloud",
            Sharing::Map => {
                "one map for all; its features do not fit into --memory and are evaluated for every pair"
            }
            _ => "kernels of the pair: nothing shared",
        };
        let error = |p: &Pair| p.interval.map(|i| i.farthest(p.value));
        let errors: Option<Vec<f64>> = comparison.pairs.iter().map(error).collect();
        let error = match errors {
            Some(errors) if !errors.is_empty() => {
                let worst = errors.into_iter().fold(0.0, f64::max);
                let sampled = comparison
                    .pairs
                    .iter()
                    .any(|p| p.interval.is_some_and(|i| i.kind == orthant::Certainty::Sampled));
                let how = if sampled { " (from samples, three standard errors)" } else { "" };
                format!("\nerrors at most {}{how}", rough(worst, 1))
            }
            Some(_) => String::new(),
            None => "\nerrors not known: --certify bounds those of random features".to_owned(),
        };
        format!("{}: {shared}{error}", methods.join(", "))
    }

    fn tail(&self) -> &'static str {
        let complete = self.comparison.is_complete();
        match (&self.arguments.keep, complete) {
            (Some(_), false) => {
                "\n\nThe time was up: the same command goes on where this one ended. No files were written."
            }
            (None, false) => {
                "\n\nThe time was up: raise --time-limit, or use --keep to go on later. No files were written."
            }
            _ if !self.comparison.converged() => {
                "\n\nNot converged (*): raise --max-iter, or use a larger --eps or --tol."
            }
            _ if self.accurate == Some(false) => {
                "\n\nThe accuracy was not reached (*): raise --memory or --max-rank, use a smaller --tol or a \
                 larger --accuracy."
            }
            _ => "",
        }
    }
}

fn pairs_of(comparison: &Comparison) -> usize {
    comparison.count * (comparison.count - 1) / 2
}

/// A divergence with the digits that are known, and a mark if it is not what it should be.
fn cell(comparison: &Comparison, i: usize, j: usize) -> String {
    let Some(value) = comparison.value(i, j) else { return "-".to_owned() };
    let Some(pair) = comparison.pair(i, j) else { return brief(value) };
    let interval = pair.interval.map(Ends::of);
    let [few, all] = [brief(value), known(value, interval)];
    let good = pair.converged && pair.accurate;
    // No more digits than fit beside each other.
    let shown = if interval.is_some() && all.len() < few.len() { all } else { few };
    format!("{shown}{}", if good { "" } else { "*" })
}

/// A number with about five significant digits.
fn brief(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e5).contains(&x.abs()) {
        return format!("{x:.3e}");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 7")]
    let decimals = (4.0 - x.abs().log10().floor()).clamp(0.0, 7.0) as usize;
    format!("{x:.decimals$}")
}

/// The matrix in this order, if it is not too wide.
fn matrix_text(names: &[String], comparison: &Comparison, order: &[usize]) -> Option<String> {
    let mut table = output::table();
    let header = order.iter().map(|&k| names[k].as_str());
    table.set_header(std::iter::once("").chain(header));
    for &i in order {
        let cells = order.iter().map(|&j| cell(comparison, i, j));
        table.add_row(std::iter::once(names[i].clone()).chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    let text = output::lines(&table);
    text.lines().all(|line| line.chars().count() <= WIDTH).then_some(text)
}

/// The closest pairs.
fn list_text(names: &[String], comparison: &Comparison) -> String {
    let mut pairs: Vec<&Pair> = comparison.pairs.iter().collect();
    pairs.sort_by(|a, b| a.value.total_cmp(&b.value));
    let mut table = output::table();
    for pair in pairs.iter().take(LISTED) {
        let value = cell(comparison, pair.first, pair.second);
        table.add_row([names[pair.first].clone(), names[pair.second].clone(), value]);
    }
    format!(
        "The {} closest pairs (--output or --json for all):\n{}",
        count(pairs.len().min(LISTED)),
        output::lines(&table)
    )
}

/// The square matrix with names, or in an array without.
fn write_matrix(
    file: TableFile<'_>,
    names: &[String],
    comparison: &Comparison,
) -> Result<(), Failure> {
    let matrix = comparison.matrix().unwrap_or_default();
    let column = |(j, name): (usize, &String)| Series {
        name: name.clone(),
        cells: Cells::Numbers(matrix.iter().skip(j).step_by(comparison.count).copied().collect()),
    };
    let mut columns: Vec<Series<'_>> = names.iter().enumerate().map(column).collect();
    if file.format != TableFormat::Npy {
        columns.insert(0, Series { name: "name".to_owned(), cells: Cells::Text(names) });
    }
    output::write_table(file, &columns, true)
}

/// A row a pair; ends of intervals that are not known are empty.
fn write_intervals(
    file: TableFile<'_>,
    names: &[String],
    comparison: &Comparison,
) -> Result<(), Failure> {
    let text = |cell: &dyn Fn(&Pair) -> String| -> Vec<String> {
        comparison.pairs.iter().map(cell).collect()
    };
    let end = |end: Option<f64>| end.map_or_else(String::new, |x| x.to_string());
    let cells = [
        ("first", text(&|p| names[p.first].clone())),
        ("second", text(&|p| names[p.second].clone())),
        ("divergence", text(&|p| p.value.to_string())),
        ("low", text(&|p| end(p.interval.map(|i| i.low)))),
        ("high", text(&|p| end(p.interval.map(|i| i.high)))),
        ("converged", text(&|p| p.converged.to_string())),
    ];
    let columns: Vec<Series<'_>> = cells
        .iter()
        .map(|(name, cells)| Series { name: (*name).to_owned(), cells: Cells::Text(cells) })
        .collect();
    output::write_table(file, &columns, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_brief() {
        for (x, text) in [
            (0.0, "0"),
            (1.234_567, "1.2346"),
            (-0.012_345_6, "-0.012346"),
            (12_345.6, "12346"),
            (2e-7, "2.000e-7"),
        ] {
            assert_eq!(brief(x), text);
        }
    }
}
