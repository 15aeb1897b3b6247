//! `orthant map`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use orthant::{Cloud, MOST_LABELS, Measure, Plan, Points, Solver, Vote};
use orthant_io::{Cells, Other, Others, Series, TableFormat};

use crate::args::{Map, Pairs, Solve};
use crate::failure::Failure;
use crate::input::{self, Clouds};
use crate::output::{self, Report, count, number};
use crate::solve::{self, Answer, Channel, Row};
use crate::table::{Owned, Table, title};

pub(crate) fn run(arguments: &Map) -> Result<ExitCode, Failure> {
    let Map { solve, pairs: Pairs { pairs, .. }, partners, .. } = arguments;
    let format = match &solve.output {
        Some(path) => output::check_table(path, "--output")?,
        None => TableFormat::Csv,
    };
    solve::check_pairs(solve, pairs.as_deref(), "--pairs")?;
    solve::check_pairs(solve, partners.as_deref(), "--partners")?;
    check_outputs(arguments)?;
    // Read before the clouds: the same rules, and no solve if there is something wrong with it.
    let new = match &arguments.at {
        None => None,
        Some(file) => Some((file.as_str(), read_new(arguments, file)?)),
    };
    let read = || {
        let clouds = Clouds::read_with(solve, |cloud, options| {
            options.skip = carried_names(arguments);
            if cloud == mapped(arguments).other() {
                options.others = Others::These(carried_names(arguments));
            } else if new.is_none() {
                options.others = Others::All;
            }
        })?;
        if let Some((file, new)) = &new {
            let known = if arguments.back { &solve.y } else { &solve.x };
            input::same_dimension([file, known], [new.dim, clouds.get(Cloud::X).dim])?;
        }
        check_carried(arguments, &clouds, format)?;
        Ok(clouds)
    };
    let channel = if solve.output.is_some() { Channel::Output } else { Channel::Error };
    solve::command_with(solve, read, channel, |options, bar, clouds, measures| {
        let [mu, nu] = measures;
        let plan = Solver::new(options).observer(bar).plan(mu, nu)?;
        let source = match &new {
            None => Source { file: None, cloud: clouds.get(mapped(arguments)), points: None },
            Some((file, cloud)) => {
                let points = Some(input::points(cloud, input::name(file))?);
                Source { file: Some(file), cloud, points }
            }
        };
        let row = write(arguments, format, &plan, clouds, measures, &source)?;
        let solution = plan.into_solution();
        let report = Report::of_solution(&solution, solve::sizes(measures));
        let masses = [mu.mass(), nu.mass()];
        Ok((Answer { report, cross: solution, selves: None, masses }, Some(row)))
    })
}

/// The cloud that is mapped.
fn mapped(arguments: &Map) -> Cloud {
    if arguments.back { Cloud::Y } else { Cloud::X }
}

fn carried_names(arguments: &Map) -> Vec<String> {
    [&arguments.carry[..], &arguments.vote].concat()
}

/// Checks that nothing is written over something else.
fn check_outputs(arguments: &Map) -> Result<(), Failure> {
    let Solve { output, trace, json, .. } = &arguments.solve;
    if *json && output.is_none() {
        return Err(Failure::input(
            "--json goes to standard output, where the moved points would be; give these a file with --output",
        ));
    }
    output::check_different(&[
        ("--output", output.as_deref()),
        ("--trace", trace.as_deref()),
        ("--partners", arguments.partners.as_deref()),
        ("--pairs", arguments.pairs.pairs.as_deref()),
    ])
}

/// New points, with all that stands beside them.
fn read_new(arguments: &Map, file: &str) -> Result<orthant_io::Cloud, Failure> {
    let solve = &arguments.solve;
    if file == "-" && (solve.x == "-" || solve.y == "-") {
        return Err(Failure::input(
            "only one file can come from standard input; give --at or the cloud a file name",
        ));
    }
    let mut options = input::read_options(solve);
    options.others = Others::All;
    options.skip = carried_names(arguments);
    let own = if arguments.back { &solve.weights_y } else { &solve.weights_x };
    options.skip.extend(own.iter().chain(&solve.weights).cloned());
    Ok(orthant_io::read(file, &options)?)
}

/// The points that are mapped.
struct Source<'a> {
    /// The file, if they are not a cloud of the problem.
    file: Option<&'a str>,
    cloud: &'a orthant_io::Cloud,
    points: Option<Points<'a>>,
}

impl Source<'_> {
    /// Puts the name of the file before what is wrong with its points.
    fn named<T>(&self, result: orthant::Result<T>) -> Result<T, Failure> {
        result.map_err(|error| match self.file {
            Some(file) => Failure::from(error).of_file(input::name(file)),
            None => error.into(),
        })
    }
}

/// What a column of the other cloud becomes.
enum Carried<'a> {
    Mean(Vec<f64>),
    /// The different values, and which one each point has.
    Vote(Vec<&'a str>, Vec<usize>),
}

impl<'a> Carried<'a> {
    /// The column at a place of the arguments.
    fn of(arguments: &Map, column: &'a Other, place: usize) -> Self {
        let numbers = if place < arguments.carry.len() { column.numbers() } else { None };
        if let Some(numbers) = numbers {
            return Carried::Mean(numbers);
        }
        let mut places: BTreeMap<&str, usize> =
            column.cells.iter().map(|cell| (cell.as_str(), 0)).collect();
        // In the order of the alphabet, so that a tie does not depend on the order of the rows.
        places.values_mut().enumerate().for_each(|(k, place)| *place = k);
        let labels = column.cells.iter().map(|cell| places[cell.as_str()]).collect();
        Carried::Vote(places.into_keys().collect(), labels)
    }
}

/// Checks that the columns to be carried can be, before anything is solved.
fn check_carried(arguments: &Map, clouds: &Clouds, format: TableFormat) -> Result<(), Failure> {
    let other = mapped(arguments).other();
    let file = if other == Cloud::X { &arguments.solve.x } else { &arguments.solve.y };
    for (place, column) in clouds.get(other).others.iter().enumerate() {
        let Carried::Vote(values, _) = Carried::of(arguments, column, place) else { continue };
        let (file, name) = (input::name(file), title(column));
        if values.len() > MOST_LABELS {
            return Err(Failure::input(format!(
                "{file}: column \"{name}\" has {} different values; a vote is on {} at most",
                count(values.len()),
                count(MOST_LABELS)
            )));
        }
        if format == TableFormat::Npy {
            return Err(Failure::input(format!(
                "{file}: column \"{name}\" is carried as text, which an array cannot hold; write .csv or .tsv"
            )));
        }
    }
    Ok(())
}

/// Computes everything, then writes everything.
fn write(
    arguments: &Map,
    format: TableFormat,
    plan: &Plan<'_>,
    clouds: &Clouds,
    measures: &[Measure<'_>; 2],
    source: &Source<'_>,
) -> Result<Row, Failure> {
    let (cloud, dim) = (mapped(arguments), measures[0].dim());
    let moved = source.named(match &source.points {
        None => plan.barycentric(cloud),
        Some(points) => plan.map_at(cloud, points),
    })?;
    let mut table = Table::new(source.cloud, &moved, format);
    for (place, column) in clouds.get(cloud.other()).others.iter().enumerate() {
        let name = title(column);
        match Carried::of(arguments, column, place) {
            Carried::Mean(values) => {
                let means = source.named(match &source.points {
                    None => plan.conditional_mean(cloud, &values, 1),
                    Some(points) => plan.conditional_mean_at(cloud, points, &values, 1),
                })?;
                table.add(&name, Owned::Numbers(means));
            }
            Carried::Vote(values, labels) => {
                let votes: Vec<Vote> = source.named(match &source.points {
                    None => plan.vote(cloud, &labels),
                    Some(points) => plan.vote_at(cloud, points, &labels),
                })?;
                let winners = votes.iter().map(|vote| values[vote.label].to_owned()).collect();
                let name = table.add(&name, Owned::Text(winners));
                let shares = votes.iter().map(|vote| vote.probability).collect();
                table.add(&format!("{name}_probability"), Owned::Numbers(shares));
            }
        }
    }
    let partners = match &arguments.partners {
        None => None,
        Some(path) => Some((
            path.as_path(),
            source.named(match &source.points {
                None => plan.partners(cloud, arguments.top_k),
                Some(points) => plan.partners_at(cloud, points, arguments.top_k),
            })?,
        )),
    };
    let Pairs { pairs, count: wanted } = &arguments.pairs;
    let pairs = match pairs {
        None => None,
        Some(path) => Some((path.as_path(), plan.sample(*wanted, arguments.solve.seed)?)),
    };

    table.write(arguments.solve.output.as_deref(), format)?;
    if let Some((path, partners)) = partners {
        write_partners(path, &partners)?;
    }
    if let Some((path, pairs)) = pairs {
        output::write_pairs(path, &pairs)?;
    }
    let points = moved.len() / dim;
    let own = source.points.as_ref().unwrap_or(measures[cloud as usize].points());
    let square = |i: usize| (moved[i] - own.coordinate(i / dim, i % dim)).powi(2);
    let distance = ((0..moved.len()).map(square).sum::<f64>() / points as f64).sqrt();
    let note = format!(
        "points moved by {} in the root mean square{}",
        number(distance),
        arguments.solve.output.as_ref().map_or_else(String::new, |p| format!(": {}", p.display()))
    );
    Ok(["map".to_owned(), count(points), note])
}

/// Partners as a table: the point that is mapped, its partner, the probability.
fn write_partners(path: &Path, partners: &[Vec<(usize, f64)>]) -> Result<(), Failure> {
    let format = TableFormat::of(path)?;
    let all =
        || partners.iter().enumerate().flat_map(|(i, found)| found.iter().map(move |f| (i, f)));
    let columns = [
        output::indices("i", all().map(|(i, _)| i), format),
        output::indices("j", all().map(|(_, (j, _))| *j), format),
        Series {
            name: "probability".to_owned(),
            cells: Cells::Numbers(all().map(|(_, (_, p))| *p).collect()),
        },
    ];
    output::write_table(path, format, &columns, true)
}
