//! `orthant compare`: all pairs of many clouds.

mod keep;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use orthant::{
    Comparer, Comparison, Interval, Measure, Merge, Next, Options, Pair, Sharing, embedding,
    leaves, linkage, mean_squared_distances,
};
use orthant_draw::{Panel, Picture};
use orthant_io::{Cells, Others, ReadOptions, Series, TableFormat, Values};
use serde::Serialize;

use crate::args::Compare;
use crate::failure::{Failure, NOT_CONVERGED};
use crate::input;
use crate::output::{self, count, rough};
use crate::progress;
use crate::solve::{self, Epsilon};
use keep::{Header, Keep};

/// Columns of the answer for people.
const WIDTH: usize = 100;
/// Pairs that are listed where a matrix would be too wide.
const LISTED: usize = 10;

pub(crate) fn run(arguments: &Compare) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let solve = &arguments.solve;
    let method = solve::method(solve)?;
    check(arguments)?;
    let clouds = Clouds::read(arguments)?;
    let measures = clouds.measures(arguments)?;
    let read = begun.elapsed().as_secs_f64();

    let epsilon = solve.threads.run(|| {
        Epsilon::or_from(solve, "all", || Ok(mean_squared_distances(&measures)?))
            .map_err(|failure| clouds.named(failure))
    })?;
    let options = solve::options(solve, method, epsilon.value)?;
    let mut keep = match &arguments.keep {
        Some(path) => {
            Some(Keep::open(path, &Header::new(solve, &epsilon, &measures), &clouds.names)?)
        }
        None => None,
    };
    let earlier = keep.as_mut().map_or_else(Vec::new, Keep::take_pairs);
    let resumed = earlier.len();
    let comparison = solve
        .threads
        .run(|| all_pairs(&measures, &options, &clouds.names, earlier, &mut keep))
        .map_err(|failure| clouds.named(failure))?;

    let result = Arrangement::new(&comparison)?;
    if comparison.is_complete() {
        if let Some(path) = &solve.output {
            write_matrix(path, &clouds.names, &comparison)?;
        }
        if let Some(path) = &arguments.intervals {
            write_intervals(path, &clouds.names, &comparison)?;
        }
        if let (Some(path), Some(result)) = (&arguments.picture, &result) {
            let matrix = comparison.matrix().unwrap_or_default();
            output::write_picture(path, &result.picture(&clouds.names, &matrix)?)?;
        }
    }
    let short = solve::is_automatic(solve) && !comparison.pairs.iter().all(|p| p.accurate);
    let answer = Answer { arguments, clouds: &clouds, epsilon: &epsilon, comparison: &comparison };
    let seconds = Seconds { read, total: begun.elapsed().as_secs_f64() };
    output::to_stdout(|out| {
        if solve.json {
            serde_json::to_writer(&mut *out, &answer.report(result.as_ref(), short, seconds))?;
            writeln!(out)
        } else {
            writeln!(out, "{}", answer.text(result.as_ref(), resumed, short, seconds))
        }
    })?;
    let done = comparison.converged() && !short;
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::from(NOT_CONVERGED) })
}

/// Options that do not go together, before any work.
fn check(arguments: &Compare) -> Result<(), Failure> {
    let solve = &arguments.solve;
    for (given, option) in [
        (solve.weights_x.is_some(), "--weights-x"),
        (solve.weights_y.is_some(), "--weights-y"),
        (solve.unbalanced.reach_x.is_some(), "--reach-x"),
        (solve.unbalanced.reach_y.is_some(), "--reach-y"),
        (solve.trace.is_some(), "--trace"),
    ] {
        if given {
            return Err(Failure::input(format!(
                "{option} is for two clouds, compare treats all alike; leave it out"
            )));
        }
    }
    if let Some(path) = &arguments.picture {
        output::check_picture(path, "--picture")?;
    }
    output::check_different(&[
        ("--output", solve.output.as_deref()),
        ("--intervals", arguments.intervals.as_deref()),
        ("--picture", arguments.picture.as_deref()),
        ("--keep", arguments.keep.as_deref()),
    ])?;
    if let Some(path) = &solve.output {
        output::check_table(path, "--output")?;
    }
    if let Some(path) = &arguments.intervals
        && output::check_table(path, "--intervals")? == TableFormat::Npy
    {
        return Err(Failure::input(format!(
            "{}: pairs have names, which an array cannot hold; write .csv or .tsv",
            path.display()
        )));
    }
    if let Some(path) = &arguments.keep {
        output::check_writable(path, "--keep")?;
    }
    Ok(())
}

/// Solves what is left to do, with a bar over the pairs.
fn all_pairs(
    measures: &[Measure<'_>],
    options: &Options<'_>,
    names: &[String],
    earlier: Vec<Pair>,
    keep: &mut Option<Keep>,
) -> Result<Comparison, Failure> {
    let total = (measures.len() * (measures.len() - 1) / 2) as u64;
    let bar = progress::line(total, "{pos} of {len} pairs [{bar:30}] {elapsed} {msg}");
    bar.set_position(earlier.len() as u64);
    let mut failed: Option<Failure> = None;
    let mut each = |pair: &Pair| {
        bar.inc(1);
        bar.set_message(format!("{} and {}", names[pair.first], names[pair.second]));
        if let Some(keep) = keep
            && let Err(failure) = keep.add(pair)
        {
            failed = Some(failure);
            return Next::Stop;
        }
        Next::Continue
    };
    let comparison = Comparer::new(options).finished(earlier).each(&mut each).compare(measures);
    bar.finish_and_clear();
    match failed {
        Some(failure) => Err(failure),
        None => Ok(comparison?),
    }
}

/// The clouds of a command, as read.
struct Clouds {
    names: Vec<String>,
    parts: Vec<Part>,
    dim: usize,
    /// Files with rows that were skipped, and how many.
    dropped: Vec<(String, usize)>,
}

struct Part {
    values: Values,
    weights: Option<Vec<f64>>,
}

impl Part {
    fn len(&self, dim: usize) -> usize {
        self.values.len() / dim
    }
}

impl Clouds {
    fn read(arguments: &Compare) -> Result<Self, Failure> {
        let solve = &arguments.solve;
        let files: Vec<&str> = [&solve.x, &solve.y]
            .into_iter()
            .filter(|f| !f.is_empty())
            .chain(&arguments.more)
            .map(String::as_str)
            .collect();
        let mut options = input::read_options(solve);
        options.weights.clone_from(&solve.weights);
        match (&arguments.group, &files[..]) {
            (Some(column), [file]) => Clouds::grouped(file, column, options),
            (Some(_), _) => Err(Failure::input(
                "--group splits one file into clouds; give one file, or leave --group out to compare files",
            )),
            (None, [file]) => Err(Failure::input(format!(
                "{}: one cloud cannot be compared; give more files, or --group COLUMN to split this one",
                input::name(file)
            ))),
            (None, files) => Clouds::of_files(files, &options),
        }
    }

    fn of_files(files: &[&str], options: &ReadOptions) -> Result<Self, Failure> {
        if files.iter().filter(|f| **f == "-").count() > 1 {
            return Err(Failure::input(
                "only one of the clouds can come from standard input; give files for the others",
            ));
        }
        let (mut parts, mut dropped, mut dim) = (Vec::new(), Vec::new(), 0);
        for file in files {
            let cloud = orthant_io::read(file, options)?;
            if parts.is_empty() {
                dim = cloud.dim;
            } else if cloud.dim != dim {
                return Err(Failure::input(format!(
                    "{} has {} coordinates and {} has {dim}; use --columns to choose the same ones",
                    input::name(file),
                    cloud.dim,
                    input::name(files[0])
                )));
            }
            if cloud.dropped > 0 {
                dropped.push((input::name(file).to_owned(), cloud.dropped));
            }
            parts.push(Part { values: cloud.values, weights: cloud.weights });
        }
        Ok(Clouds { names: names_of(files), parts, dim, dropped })
    }

    /// One file, a cloud for each value of a column, in the order in which they appear.
    fn grouped(file: &str, column: &str, mut options: ReadOptions) -> Result<Self, Failure> {
        options.others = Others::These(vec![column.to_owned()]);
        let mut cloud = orthant_io::read(file, &options)?;
        let labels = cloud.others.pop().map_or_else(Vec::new, |other| other.cells);
        let mut names: Vec<String> = Vec::new();
        let mut numbers = std::collections::HashMap::new();
        let rows: Vec<usize> = labels
            .iter()
            .map(|label| {
                *numbers.entry(label.as_str()).or_insert_with(|| {
                    names.push(label.clone());
                    names.len() - 1
                })
            })
            .collect();
        if let [only] = &names[..] {
            return Err(Failure::input(format!(
                "{}: column {column:?} has one value, {only:?}, for all points; one cloud cannot be compared",
                input::name(file)
            )));
        }
        let dim = cloud.dim;
        let parts = (0..names.len())
            .map(|group| Part {
                values: match &cloud.values {
                    Values::F32(values) => Values::F32(points_of(values, dim, &rows, group)),
                    Values::F64(values) => Values::F64(points_of(values, dim, &rows, group)),
                },
                weights: cloud.weights.as_ref().map(|w| points_of(w, 1, &rows, group)),
            })
            .collect();
        let dropped = if cloud.dropped > 0 {
            vec![(input::name(file).to_owned(), cloud.dropped)]
        } else {
            Vec::new()
        };
        Ok(Clouds { names, parts, dim, dropped })
    }

    fn measures(&self, arguments: &Compare) -> Result<Vec<Measure<'_>>, Failure> {
        let normalize = arguments.solve.unbalanced.normalize;
        let mut measures = Vec::with_capacity(self.parts.len());
        for (part, name) in self.parts.iter().zip(&self.names) {
            let measure = input::measure_of(&part.values, self.dim, part.weights.as_deref(), name)?;
            measures.push(if normalize { measure.with_mass(1.0)? } else { measure });
        }
        Ok(measures)
    }

    /// Calls clouds by their names.
    fn named(&self, failure: Failure) -> Failure {
        let Failure::Input(error) = failure else { return failure };
        match error.downcast::<orthant::Error>() {
            Ok(orthant::Error::InClouds { clouds: [i, j], source }) => {
                let names = if i == j {
                    self.names[i].clone()
                } else {
                    format!("{} and {}", self.names[i], self.names[j])
                };
                Failure::from(*source).of_file(&names)
            }
            Ok(error) => Failure::from(error),
            Err(error) => Failure::Input(error),
        }
    }
}

/// The rows of one group.
fn points_of<T: Copy>(values: &[T], dim: usize, rows: &[usize], group: usize) -> Vec<T> {
    let own = values.chunks_exact(dim).zip(rows).filter(|(_, row)| **row == group);
    own.flat_map(|(point, _)| point).copied().collect()
}

/// Files without folder and extension, unless that would leave two of them the same name.
fn names_of(files: &[&str]) -> Vec<String> {
    let stem = |file: &str| -> String {
        if file == "-" {
            return input::name(file).to_owned();
        }
        let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
        // An array of an archive keeps its key.
        let (name, key) = match name.to_ascii_lowercase().find(".npz:") {
            Some(at) => (&name[..at], &name[at + 4..]),
            None => (name, ""),
        };
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let stem = Path::new(name).file_stem().map_or(name.into(), |s| s.to_string_lossy());
        format!("{stem}{key}")
    };
    let stems: Vec<String> = files.iter().map(|f| stem(f)).collect();
    let mut names: Vec<String> = Vec::new();
    for (file, stem) in files.iter().zip(&stems) {
        let alone = stems.iter().filter(|s| *s == stem).count() == 1;
        let base = if alone { stem.clone() } else { input::name(file).to_owned() };
        let mut name = base.clone();
        let mut copy = 1;
        while names.contains(&name) {
            copy += 1;
            name = format!("{base} ({copy})");
        }
        names.push(name);
    }
    names
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
    epsilon: f64,
    rho: Option<f64>,
    sharing: &'static str,
    pairs: usize,
    finished: usize,
    converged: bool,
    /// Whether an automatic choice reached it for all pairs; others promise none.
    accuracy_reached: Option<bool>,
    matrix: Vec<Vec<Option<f64>>>,
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
    clouds: &'a Clouds,
    epsilon: &'a Epsilon,
    comparison: &'a Comparison,
}

impl<'a> Answer<'a> {
    fn report(
        &self,
        arrangement: Option<&Arrangement>,
        short: bool,
        seconds: Seconds,
    ) -> Report<'a> {
        let Answer { arguments, clouds, comparison, epsilon } = *self;
        let names = &clouds.names;
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
            points: clouds.parts.iter().map(|p| p.len(clouds.dim)).collect(),
            dim: clouds.dim,
            epsilon: epsilon.value,
            rho: arguments.solve.unbalanced.reach.map(|reach| 2.0 * reach * reach),
            sharing: comparison.sharing.as_str(),
            pairs: pairs_of(comparison),
            finished: comparison.pairs.len(),
            converged: comparison.converged(),
            accuracy_reached: solve::is_automatic(&arguments.solve)
                .then_some(comparison.is_complete() && !short),
            matrix: (0..comparison.count).map(row).collect(),
            intervals: comparison.pairs.iter().map(line).collect(),
            order: arrangement.map(|a| a.order.clone()),
            tree: arrangement.map(|a| a.tree.iter().map(step).collect()),
            embedding: arrangement.map(|a| names.iter().zip(&a.points).map(place).collect()),
            embedding_share: arrangement.map(|a| a.share),
            seconds,
        }
    }

    /// The answer for people.
    fn text(
        &self,
        arrangement: Option<&Arrangement>,
        resumed: usize,
        short: bool,
        seconds: Seconds,
    ) -> String {
        let Answer { clouds, comparison, epsilon, .. } = *self;
        let names = &clouds.names;
        let total: usize = clouds.parts.iter().map(|p| p.len(clouds.dim)).sum();
        let mut text = format!(
            "{} clouds, {} points, {} coordinates\n",
            count(comparison.count),
            count(total),
            clouds.dim
        );
        for (file, dropped) in &clouds.dropped {
            let _ = writeln!(text, "{file}: {} rows with missing values dropped", count(*dropped));
        }
        text += &epsilon.text();
        text += "\n\n";
        text += &matrix_text(names, comparison).unwrap_or_else(|| list_text(names, comparison));
        text += "\n";
        if let Some(arrangement) = arrangement {
            let order: Vec<&str> = arrangement.order.iter().map(|k| names[*k].as_str()).collect();
            let line = format!("order of the tree: {}", order.join(", "));
            if line.chars().count() <= WIDTH {
                let _ = writeln!(text, "\n{line}");
            }
        }
        let _ = writeln!(text, "{}", self.method_text());
        let _ = write!(
            text,
            "{} of {} pairs{}, {}",
            count(comparison.pairs.len()),
            count(pairs_of(comparison)),
            if resumed > 0 { format!(", {} from earlier", count(resumed)) } else { String::new() },
            output::seconds(seconds.total)
        );
        text += self.tail(short);
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
        let error = |p: &Pair| p.interval.map(|i| farthest(i, p.value));
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

    fn tail(&self, short: bool) -> &'static str {
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
            _ if short => {
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

fn farthest(interval: Interval, value: f64) -> f64 {
    (interval.high - value).max(value - interval.low)
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

/// A divergence, with a mark if it is not what it should be.
fn cell(comparison: &Comparison, i: usize, j: usize) -> String {
    let Some(value) = comparison.value(i, j) else { return "-".to_owned() };
    let good = comparison.pair(i, j).is_none_or(|p| p.converged);
    format!("{}{}", brief(value), if good { "" } else { "*" })
}

/// The matrix, if it is not too wide.
fn matrix_text(names: &[String], comparison: &Comparison) -> Option<String> {
    let mut table = output::table();
    table.set_header(std::iter::once("").chain(names.iter().map(String::as_str)));
    for (i, name) in names.iter().enumerate() {
        let cells = (0..comparison.count).map(|j| cell(comparison, i, j));
        table.add_row(std::iter::once(name.clone()).chain(cells));
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
fn write_matrix(path: &Path, names: &[String], comparison: &Comparison) -> Result<(), Failure> {
    let format = TableFormat::of(path)?;
    let matrix = comparison.matrix().unwrap_or_default();
    let column = |(j, name): (usize, &String)| Series {
        name: name.clone(),
        cells: Cells::Numbers(matrix.iter().skip(j).step_by(comparison.count).copied().collect()),
    };
    let mut columns: Vec<Series<'_>> = names.iter().enumerate().map(column).collect();
    if format != TableFormat::Npy {
        columns.insert(0, Series { name: "name".to_owned(), cells: Cells::Text(names) });
    }
    output::write_table(path, format, &columns, true)
}

/// A row a pair; ends of intervals that are not known are empty.
fn write_intervals(path: &Path, names: &[String], comparison: &Comparison) -> Result<(), Failure> {
    let format = TableFormat::of(path)?;
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
    output::write_table(path, format, &columns, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stems_and_unique() {
        assert_eq!(names_of(&["a.csv", "data/b.csv.gz", "c"]), ["a", "b", "c"]);
        assert_eq!(
            names_of(&["x/a.csv", "y/a.csv", "-"]),
            ["x/a.csv", "y/a.csv", "standard input"]
        );
        assert_eq!(names_of(&["a.csv", "a.csv", "a.csv"]), ["a.csv", "a.csv (2)", "a.csv (3)"]);
        assert_eq!(names_of(&["d/a.npz:x", "d/a.npz:y"]), ["a:x", "a:y"]);
        assert_eq!(names_of(&["a.1.csv", "a.2.csv", ".csv"]), ["a.1", "a.2", ".csv"]);
    }

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
