//! `orthant map`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;

use orthant::{
    Plan, Side, Solver,
    plan::{MOST_LABELS, Vote},
};
use orthant_draw::Picture;
use orthant_io::{Cells, Other, Others, Series, TableFormat};
use orthant_support::Failure;
use orthant_support::number::{count, number};

use crate::args::{Map, Pairs};
use crate::figures;
use crate::input::{Cloud, Inputs, Source};
use crate::output::{self, Row};
use crate::outputs::{Outputs, TableFile};
use crate::result::Outcome;
use crate::settings::Settings;
use crate::solve::{self, Channel, Run, Task};
use crate::table::{Owned, Table, title};

pub(crate) fn run(arguments: &Map) -> Result<ExitCode, Failure> {
    let Map { problem, sides, refining, .. } = arguments;
    let settings = solve::settings(problem, Some(refining), *sides)?;
    let files = Files::check(arguments, &settings)?;
    if problem.common.basic.json && files.output.is_none() {
        return Err(Failure::input(
            "--json goes to standard output, where the moved points would be; give these a file with --output",
        ));
    }
    let read = || {
        let carried = carried_names(arguments);
        let inputs = Inputs::two(&problem.clouds, &settings, |side, source| {
            let source = source.skip(&carried);
            // Of one file both clouds have all columns.
            if problem.clouds.group.is_some()
                || (side == mapped(arguments) && arguments.at.is_none())
            {
                source.others(Others::All)
            } else if side == mapped(arguments).other() {
                source.others(Others::These(carried.clone()))
            } else {
                source
            }
        })?;
        let format = files.output.map_or(TableFormat::Csv, |file| file.format);
        check_carried(arguments, &inputs, format)?;
        Ok(inputs)
    };
    let channel = if files.output.is_some() { Channel::Output } else { Channel::Error };
    let trace = files.trace;
    let run = Run { command: "map", settings: &settings, trace, channel };
    run.run(read, |task| {
        let new = match &arguments.at {
            None => None,
            Some(file) => {
                let carried = carried_names(arguments);
                let source = Source::new(file, None).others(Others::All).skip(&carried);
                let own = [&problem.clouds.weights_x, &problem.clouds.weights_y]
                    [mapped(arguments) as usize];
                let weights = own.iter().chain(&problem.common.basic.weights);
                let group = problem.clouds.group.iter();
                let source = source.skip(&weights.chain(group).cloned().collect::<Vec<_>>());
                Some(task.inputs.read_like(&source, &settings)?)
            }
        };
        let [mu, nu] = task.measures;
        let Task { options, bar, inputs, measures } = task;
        let plan = Solver::new(options).observer(bar).plan(mu, nu)?;
        let source = match &new {
            None => Mapped { cloud: inputs.get(mapped(arguments)), new: None },
            Some(cloud) => Mapped { cloud, new: Some(cloud.points()?) },
        };
        let picture = match files.picture {
            Some(path) => Some((path, figures::map(&plan, inputs, measures)?)),
            None => None,
        };
        let row = write(arguments, &files, &plan, inputs, &source, picture)?;
        let solution = plan.into_solution();
        Ok((Outcome::of_solution(&settings, measures, &solution), vec![row]))
    })
}

/// Where everything goes.
struct Files<'a> {
    output: Option<TableFile<'a>>,
    partners: Option<TableFile<'a>>,
    pairs: Option<TableFile<'a>>,
    picture: Option<&'a std::path::Path>,
    trace: Option<&'a std::path::Path>,
}

impl<'a> Files<'a> {
    fn check(arguments: &'a Map, settings: &Settings<'_>) -> Result<Self, Failure> {
        let clouds = &arguments.problem.clouds;
        let inputs = [&clouds.x].into_iter().chain(&clouds.y).chain(&arguments.at);
        let mut outputs = Outputs::beside(inputs.map(OsString::as_os_str))?;
        let files = Files {
            output: outputs.table("--output", arguments.output.as_ref())?,
            partners: outputs.table("--partners", arguments.partners.as_ref())?,
            pairs: outputs.table("--pairs", arguments.pairs.pairs.as_ref())?,
            picture: outputs.picture("--picture", arguments.picture.as_ref())?,
            trace: outputs.lines("--trace", arguments.problem.tracing.trace.as_ref())?,
        };
        solve::check_positive_plan(settings, files.pairs.is_some(), "--pairs")?;
        solve::check_positive_plan(settings, files.partners.is_some(), "--partners")?;
        Ok(files)
    }
}

/// The cloud that is mapped.
fn mapped(arguments: &Map) -> Side {
    if arguments.back { Side::Y } else { Side::X }
}

fn carried_names(arguments: &Map) -> Vec<String> {
    [&arguments.carry[..], &arguments.vote].concat()
}

/// The columns of the other cloud that are carried, in the order of the arguments.
fn carried<'c>(arguments: &Map, inputs: &'c Inputs) -> Vec<&'c Other> {
    let others = &inputs.get(mapped(arguments).other()).others;
    let find = |name: &String| {
        let name = name.trim();
        let position = |other: &&Other| name.parse() == Ok(other.position + 1);
        let named = others.iter().find(|other| other.name.as_deref() == Some(name));
        named.or_else(|| others.iter().find(position))
    };
    carried_names(arguments).iter().filter_map(find).collect()
}

/// The points that are mapped.
struct Mapped<'a> {
    cloud: &'a Cloud,
    /// Those of a file of their own, in the coordinates that are solved in.
    new: Option<orthant::Points<'a>>,
}

impl Mapped<'_> {
    /// Calls points of a file of their own by its name and their rows.
    fn named<T>(&self, result: orthant::Result<T>) -> Result<T, Failure> {
        result.map_err(|error| match self.new {
            Some(_) => self.cloud.explain(error),
            None => error.into(),
        })
    }

    /// For each point the mean of some values over its partners.
    fn means(
        &self,
        plan: &Plan<'_>,
        side: Side,
        values: &[f64],
        columns: usize,
    ) -> Result<Vec<f64>, Failure> {
        self.named(match &self.new {
            None => plan.conditional_mean(side, values, columns),
            Some(points) => plan.conditional_mean_at(side, points, values, columns),
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
fn check_carried(arguments: &Map, inputs: &Inputs, format: TableFormat) -> Result<(), Failure> {
    let other = inputs.get(mapped(arguments).other());
    let columns = carried(arguments, inputs);
    if let Some(name) = carried_names(arguments).get(columns.len()) {
        return Err(Failure::input(format!(
            "{}: no column {name:?} to carry; see --carry and --vote",
            other.name
        )));
    }
    for (place, column) in columns.into_iter().enumerate() {
        let Carried::Vote(values, _) = Carried::of(arguments, column, place) else { continue };
        let (file, name) = (&other.name, title(column));
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
    files: &Files<'_>,
    plan: &Plan<'_>,
    inputs: &Inputs,
    source: &Mapped<'_>,
    picture: Option<(&std::path::Path, Picture)>,
) -> Result<Row, Failure> {
    let side = mapped(arguments);
    let target = inputs.get(side.other());
    let dim = target.dim;
    let moved = if inputs.preparation.is_none() {
        source.named(match &source.new {
            None => plan.barycentric(side),
            Some(points) => plan.map_at(side, points),
        })?
    } else {
        // Partners are those of the prepared points; their mean is taken in the coordinates of the file.
        source.means(plan, side, &target.coordinates(), dim)?
    };
    let format = files.output.map_or(TableFormat::Csv, |file| file.format);
    let mut table = Table::new(source.cloud, &moved, format);
    for (place, column) in carried(arguments, inputs).into_iter().enumerate() {
        let name = title(column);
        match Carried::of(arguments, column, place) {
            Carried::Mean(values) => {
                table.add(&name, Owned::Numbers(source.means(plan, side, &values, 1)?));
            }
            Carried::Vote(values, labels) => {
                let votes: Vec<Vote> = source.named(match &source.new {
                    None => plan.vote(side, &labels),
                    Some(points) => plan.vote_at(side, points, &labels),
                })?;
                let winners = votes.iter().map(|vote| values[vote.label].to_owned()).collect();
                let name = table.add(&name, Owned::Text(winners));
                let shares = votes.iter().map(|vote| vote.probability).collect();
                table.add(&format!("{name}_probability"), Owned::Numbers(shares));
            }
        }
    }
    let partners = match files.partners {
        None => None,
        Some(file) => Some((
            file,
            source.named(match &source.new {
                None => plan.partners(side, arguments.top_k),
                Some(points) => plan.partners_at(side, points, arguments.top_k),
            })?,
        )),
    };
    let Pairs { count: wanted, .. } = &arguments.pairs;
    let pairs = match files.pairs {
        None => None,
        Some(file) => Some((file, plan.sample(*wanted, arguments.problem.common.kernel.seed)?)),
    };

    table.write(files.output)?;
    if let Some((file, partners)) = partners {
        write_partners(file, &partners, source.cloud, target)?;
    }
    if let Some((file, pairs)) = pairs {
        output::write_pairs(file, &pairs, [&inputs.clouds[0], &inputs.clouds[1]])?;
    }
    if let Some((path, picture)) = picture {
        output::write_picture(path, &picture)?;
    }
    let points = moved.len() / dim;
    let square = |i: usize| (moved[i] - source.cloud.coordinate(i / dim, i % dim)).powi(2);
    let distance = ((0..moved.len()).map(square).sum::<f64>() / points as f64).sqrt();
    let note = format!(
        "points moved by {} in the root mean square{}",
        number(distance),
        files.output.map_or_else(String::new, |file| format!(": {}", file.path.display()))
    );
    Ok(["map".to_owned(), count(points), note])
}

/// Partners as a table: the row of the point that is mapped, that of its partner, the probability.
fn write_partners(
    file: TableFile<'_>,
    partners: &[Vec<(usize, f64)>],
    mapped: &Cloud,
    target: &Cloud,
) -> Result<(), Failure> {
    let all =
        || partners.iter().enumerate().flat_map(|(i, found)| found.iter().map(move |f| (i, f)));
    let columns = [
        output::row_column("row", all().map(|(i, _)| mapped.row(i)), file.format),
        output::row_column("partner_row", all().map(|(_, (j, _))| target.row(*j)), file.format),
        Series {
            name: "probability".to_owned(),
            cells: Cells::Numbers(all().map(|(_, (_, p))| *p).collect()),
        },
    ];
    output::write_table(file, &columns, true)
}
