//! `orthant flow`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use orthant::{Cloud, Descent, Measure, Next, Options, Rest, Step};
use orthant_draw::{MOST_ARROWS, MOST_POINTS, Panel, Picture, thinned};
use orthant_io::{Cells, Others, Series, TableFormat};

use crate::args::{Flow, Moving};
use crate::failure::Failure;
use crate::input::{self, Clouds};
use crate::output::{self, Moves, Report, Seconds, count, number, rough};
use crate::solve::{self, Answer, Channel, Row};
use crate::table::{Table, coordinate_names};
use crate::view::View;

pub(crate) fn run(arguments: &Flow) -> Result<ExitCode, Failure> {
    let solve = &arguments.solve;
    let given = [(solve.certify, "--certify"), (solve.polish, "--polish")];
    solve::refuse("flow", &given)?;
    let files = Files::check(arguments)?;
    let read = || {
        Clouds::read_with(solve, |cloud, options| {
            if cloud == Cloud::X && files.output.is_some() {
                options.others = Others::All;
            }
        })
    };
    solve::command_with(solve, read, Channel::Output, |options, bar, clouds, measures| {
        let [mu, nu] = measures;
        let line = bar.steps(arguments.moving.steps);
        let mut film = Film::new(arguments);
        let mut each = |step: &Step<'_>| {
            line.show(step, "divergence");
            film.see(step);
            Next::Continue
        };
        let descent = descent(options, arguments.moving)
            .until(arguments.until.unwrap_or(0.0))
            .observer(bar)
            .each(&mut each);
        let flow = descent.flow(mu, nu)?;
        film.end(flow.steps, &flow.points);

        let moves = Moves {
            first: flow.first,
            steps: flow.steps,
            gradients: flow.gradients,
            moved: distance(mu, &flow.points),
            stop: flow.rest.as_str(),
            done: match flow.rest {
                Rest::Reached => true,
                Rest::Still | Rest::Stalled | Rest::StepLimit => arguments.until.is_none(),
                _ => false,
            },
        };
        files.write(&film, clouds, measures, [&solve.x, &solve.y], &flow.points)?;
        let row = row(&moves, Some(flow.divergence.value));
        let mut report = Report::of_divergence(&flow.divergence, solve::sizes(measures));
        report.seconds = Seconds::of(flow.times);
        report.flow = Some(moves);
        let divergence = flow.divergence;
        let selves = Some([divergence.self_x, divergence.self_y]);
        let masses = [mu.mass(), nu.mass()];
        Ok((Answer { report, cross: divergence.cross, selves, masses }, Some(row)))
    })
}

/// The step rule of the arguments.
pub(crate) fn descent<'s, 'o>(options: &'o Options<'o>, moving: Moving) -> Descent<'s, 'o> {
    Descent::new(options)
        .max_steps(moving.steps)
        .step(moving.step)
        .momentum(moving.momentum)
        .still(moving.still)
}

/// How far points are from where they were, in the root mean square.
pub(crate) fn distance(mu: &Measure<'_>, points: &[f64]) -> f64 {
    let dim = mu.dim();
    let square = |(i, x): (usize, &f64)| {
        mu.weights()[i / dim] * (x - mu.points().coordinate(i / dim, i % dim)).powi(2)
    };
    points.iter().enumerate().map(square).sum::<f64>().sqrt()
}

/// How points moved, for people: of a flow with the divergence at the end.
pub(crate) fn row(moves: &Moves, divergence: Option<f64>) -> Row {
    let smaller = match divergence {
        Some(value) if value > 0.0 => format!(", {} times as large", number(moves.first / value)),
        _ => String::new(),
    };
    let ended = match moves.stop {
        "reached" => "as small as asked for".to_owned(),
        "still" => "the points hardly move any more".to_owned(),
        "stalled" => "no step makes it smaller: what is left is of --tol and --accuracy".to_owned(),
        other => other.replace('_', " "),
    };
    let note = format!(
        "from {}{smaller}, {} gradients; moved by {} in the root mean square; {ended}",
        number(moves.first),
        count(moves.gradients),
        number(moves.moved)
    );
    ["moved".to_owned(), format!("{} steps", count(moves.steps)), note]
}

/// Snapshots, where nobody says how many.
const MOST_SHOTS: usize = 20;

/// Snapshots of points on their way.
struct Film {
    /// Steps between two snapshots.
    every: usize,
    /// Of snapshots that were not asked for one by one every other is dropped when there are so many.
    most: usize,
    shots: Vec<Shot>,
    /// Step, value.
    values: Vec<[f64; 2]>,
    wanted: bool,
}

struct Shot {
    step: usize,
    points: Vec<f64>,
}

impl Film {
    fn new(arguments: &Flow) -> Self {
        let Flow { path, picture, frames, every, .. } = arguments;
        let (every, most) = every.map_or((1, MOST_SHOTS), |every| (every as usize, usize::MAX));
        let wanted = path.is_some() || picture.is_some() || frames.is_some();
        Film { every, most, shots: Vec::new(), values: Vec::new(), wanted }
    }

    fn see(&mut self, step: &Step<'_>) {
        self.values.push([step.number as f64, step.value]);
        if self.wanted && step.number.is_multiple_of(self.every) {
            self.shots.push(Shot { step: step.number, points: step.points.to_vec() });
        }
        if self.shots.len() > self.most {
            self.every *= 2;
            self.shots.retain(|shot| shot.step.is_multiple_of(self.every));
        }
    }

    fn end(&mut self, step: usize, points: &[f64]) {
        if self.wanted && self.shots.last().is_none_or(|shot| shot.step < step) {
            self.shots.push(Shot { step, points: points.to_vec() });
        }
    }
}

/// Where everything goes.
struct Files<'a> {
    output: Option<(&'a Path, TableFormat)>,
    path: Option<(&'a Path, TableFormat)>,
    picture: Option<&'a Path>,
    frames: Option<&'a Path>,
}

impl<'a> Files<'a> {
    /// Checks before any work that all can be written.
    fn check(arguments: &'a Flow) -> Result<Self, Failure> {
        let Flow { solve, path, picture, frames, .. } = arguments;
        output::check_different(&[
            ("--output", solve.output.as_deref()),
            ("--trace", solve.trace.as_deref()),
            ("--path", path.as_deref()),
            ("--picture", picture.as_deref()),
        ])?;
        let table = |path: &'a Option<PathBuf>, option| -> Result<_, Failure> {
            let Some(path) = path.as_deref() else { return Ok(None) };
            Ok(Some((path, output::check_table(path, option)?)))
        };
        for (picture, option) in [(picture, "--picture"), (frames, "--frames")] {
            if let Some(path) = picture {
                output::check_picture(path, option)?;
            }
        }
        Ok(Files {
            output: table(&solve.output, "--output")?,
            path: table(path, "--path")?,
            picture: picture.as_deref(),
            frames: frames.as_deref(),
        })
    }

    /// Computes everything, then writes everything.
    fn write(
        &self,
        film: &Film,
        clouds: &Clouds,
        measures: &[Measure<'_>; 2],
        names: [&str; 2],
        points: &[f64],
    ) -> Result<(), Failure> {
        let cloud = clouds.get(Cloud::X);
        let mut pictures = Vec::new();
        if self.frames.is_some() || self.picture.is_some() {
            let view = View::new(&[&measures[0], &measures[1]], cloud.columns.as_deref())?;
            let drawing = Drawing { film, measures, names: names.map(input::short_name), view };
            if let Some(path) = self.frames {
                pictures = drawing.frames(path)?;
            }
            if let Some(path) = self.picture {
                pictures.push((path.to_owned(), drawing.picture()?));
            }
        }
        if let Some((path, format)) = self.output {
            Table::new(cloud, points, format).write(Some(path), format)?;
        }
        if let Some((path, format)) = self.path {
            let names = coordinate_names(cloud);
            write_path(path, format, film, names, measures[0].dim())?;
        }
        for (path, picture) in &pictures {
            output::write_picture(path, picture)?;
        }
        Ok(())
    }
}

/// A row for each point of each snapshot.
fn write_path(
    path: &Path,
    format: TableFormat,
    film: &Film,
    names: Vec<String>,
    dim: usize,
) -> Result<(), Failure> {
    let rows =
        || film.shots.iter().flat_map(|shot| shot.points.chunks_exact(dim).map(move |p| (shot, p)));
    let step = Cells::Indices(rows().map(|(shot, _)| shot.step as u64).collect());
    let numbers = film.shots.iter().flat_map(|shot| 0..shot.points.len() / dim);
    let mut columns = vec![
        Series { name: "step".to_owned(), cells: step },
        output::indices("i", numbers, format),
    ];
    for (c, name) in names.into_iter().enumerate() {
        let cells = Cells::Numbers(rows().map(|(_, point)| point[c]).collect());
        columns.push(Series { name, cells });
    }
    output::write_table(path, format, &columns, true)
}

struct Drawing<'a> {
    film: &'a Film,
    measures: &'a [Measure<'a>; 2],
    names: [&'a str; 2],
    view: View,
}

impl Drawing<'_> {
    /// Chosen points of a snapshot.
    fn places(&self, shot: &Shot, chosen: &[usize]) -> Vec<[f64; 2]> {
        let dim = self.measures[0].dim();
        self.view.map(chosen.len(), 0, |row, c| shot.points[chosen[row] * dim + c])
    }

    fn target(&self) -> Vec<[f64; 2]> {
        let points = self.measures[1].points();
        self.view.places(points, &thinned(points.len(), MOST_POINTS), 1)
    }

    fn chosen(&self, most: usize) -> Vec<usize> {
        thinned(self.measures[0].points().len(), most)
    }

    /// Axes, for clouds.
    fn panel(&self) -> Panel {
        let [x, y] = &self.view.axes;
        let panel = Panel::new().axes(x, y).size(640.0, 560.0);
        if self.view.is_plane() { panel.equal() } else { panel }
    }

    /// From start to end, and how the divergence fell.
    fn picture(&self) -> Result<Picture, Failure> {
        let shots = &self.film.shots;
        let (Some(start), Some(end)) = (shots.first(), shots.last()) else {
            return Err(orthant_draw::Error::Empty.into());
        };
        let few = self.chosen(MOST_ARROWS);
        let ways: Vec<Vec<[f64; 2]>> = shots.iter().map(|shot| self.places(shot, &few)).collect();
        let ways: Vec<Vec<[f64; 2]>> =
            (0..few.len()).map(|i| ways.iter().map(|places| places[i]).collect()).collect();
        let many = self.chosen(MOST_POINTS);
        let mut clouds = self.panel().title(format!("{} on its way", self.names[0]));
        clouds.cloud("start", &self.places(start, &many), 0)?;
        clouds.cloud(self.names[1], &self.target(), 1)?;
        clouds.paths("ways of some points", &ways)?;
        clouds.cloud(&format!("after {} steps", end.step), &self.places(end, &many), 2)?;
        let values: Vec<[f64; 2]> =
            self.film.values.iter().copied().filter(|[_, value]| *value > 0.0).collect();
        let mut panels = vec![clouds];
        if !values.is_empty() {
            let panel = Panel::new().title("Divergence").axes("step", "divergence");
            let mut panel = panel.logarithmic(false, true);
            panel.line("divergence", &values, 0)?;
            panel.marks("", &values, 0)?;
            panels.push(panel);
        }
        Ok(Picture::grid("", 2, panels)?)
    }

    /// A picture for each snapshot, all on the same axes.
    fn frames(&self, path: &Path) -> Result<Vec<(PathBuf, Picture)>, Failure> {
        let many = self.chosen(MOST_POINTS);
        let places: Vec<_> = self.film.shots.iter().map(|shot| self.places(shot, &many)).collect();
        let target = self.target();
        let all: Vec<[f64; 2]> = places.iter().chain([&target]).flatten().copied().collect();
        let mut frames = Vec::new();
        for (k, (shot, places)) in self.film.shots.iter().zip(&places).enumerate() {
            let value = self.film.values.get(shot.step).map_or(f64::NAN, |[_, value]| *value);
            let title = format!("step {}: divergence {}", shot.step, rough(value, 2));
            let mut panel = self.panel().title(title).showing(&all);
            panel.cloud(self.names[1], &target, 1)?;
            panel.cloud(self.names[0], places, 0)?;
            frames.push((numbered(path, k), panel.into()));
        }
        Ok(frames)
    }
}

/// `frame.png` as `frame-007.png`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let part = |part: Option<&std::ffi::OsStr>| {
        part.map_or_else(String::new, |part| part.to_string_lossy().into_owned())
    };
    let (stem, extension) = (part(path.file_stem()), part(path.extension()));
    path.with_file_name(format!("{stem}-{number:03}.{extension}"))
}
