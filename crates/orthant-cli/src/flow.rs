//! `orthant flow`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use orthant::{
    Measure, Options, Side,
    control::Next,
    descent::{Descent, Rest, Step},
};
use orthant_draw::{MOST_ARROWS, MOST_POINTS, Panel, Picture, thinned};
use orthant_io::{Cells, Others, Series};
use orthant_support::Failure;
use orthant_support::number::{count, number, rough};

use crate::args::{Flow, Moving, ReachSides};
use crate::input::Inputs;
use crate::json::{Moves, Seconds};
use crate::output::{self, Row};
use crate::outputs::{TableFile, frame};
use crate::result::Outcome;
use crate::solve::{self, Channel, Run, Task};
use crate::table::{Table, coordinate_names};
use crate::view::View;

pub(crate) fn run(arguments: &Flow) -> Result<ExitCode, Failure> {
    let problem = &arguments.problem;
    let settings = solve::settings(problem, None, ReachSides::default())?;
    let files = Files::check(arguments)?;
    if problem.common.reading.pca.is_some() && (files.output.is_some() || files.path.is_some()) {
        return Err(Failure::input(
            "--pca loses the coordinates of the file, so that moved points cannot be written; leave --pca out, or --output \
             and --path",
        ));
    }
    let read = || {
        Inputs::two(&problem.clouds, &settings, |side, source| {
            if side == Side::X && files.output.is_some() {
                source.others(Others::All)
            } else {
                source
            }
        })
    };
    let trace = files.trace;
    let run = Run { command: "flow", settings: &settings, trace, channel: Channel::Output };
    run.run(read, |Task { options, bar, inputs, measures }| {
        let [mu, nu] = measures;
        let line = bar.steps(arguments.moving.steps());
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
        files.write(&film, inputs, measures, &flow.points)?;
        let row = row(&moves, Some(flow.divergence.value));
        let mut outcome = Outcome::of_divergence(&settings, measures, &flow.divergence);
        outcome.whole.seconds = Seconds::of(flow.times);
        outcome.flow = Some(moves);
        Ok((outcome, vec![row]))
    })
}

/// The step rule of the arguments.
pub(crate) fn descent<'s>(options: &Options, moving: Moving) -> Descent<'s> {
    Descent::new(options)
        .max_steps(moving.steps())
        .step(moving.step())
        .momentum(moving.momentum())
        .still(moving.still())
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
        Some(value) if value > 0.0 => {
            format!(", which was {} times as large", number(moves.first / value))
        }
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
    output: Option<TableFile<'a>>,
    path: Option<TableFile<'a>>,
    picture: Option<&'a Path>,
    frames: Option<&'a Path>,
    trace: Option<&'a Path>,
}

impl<'a> Files<'a> {
    /// Checks before any work that all can be written.
    fn check(arguments: &'a Flow) -> Result<Self, Failure> {
        let Flow { problem, output, path, picture, frames, .. } = arguments;
        let mut outputs = solve::outputs(problem)?;
        Ok(Files {
            output: outputs.table("--output", output.as_ref())?,
            path: outputs.table("--path", path.as_ref())?,
            picture: outputs.picture("--picture", picture.as_ref())?,
            frames: outputs.frames("--frames", frames.as_ref())?,
            trace: outputs.lines("--trace", problem.tracing.trace.as_ref())?,
        })
    }

    /// Computes everything, then writes everything.
    fn write(
        &self,
        film: &Film,
        inputs: &Inputs,
        measures: &[Measure<'_>; 2],
        points: &[f64],
    ) -> Result<(), Failure> {
        let cloud = inputs.get(Side::X);
        let mut pictures = Vec::new();
        if self.frames.is_some() || self.picture.is_some() {
            let view = View::of(inputs, &[&measures[0], &measures[1]])?;
            let names = [&inputs.clouds[0].short[..], &inputs.clouds[1].short];
            let drawing = Drawing { film, measures, names, view };
            if let Some(path) = self.frames {
                pictures = drawing.frames(path)?;
            }
            if let Some(path) = self.picture {
                pictures.push((path.to_owned(), drawing.picture()?));
            }
        }
        if let Some(file) = self.output {
            let points = inputs.preparation.undo(points);
            Table::new(cloud, &points, file.format).write(Some(file))?;
        }
        if let Some(file) = self.path {
            write_path(file, film, inputs)?;
        }
        for (path, picture) in &pictures {
            output::write_picture(path, picture)?;
        }
        Ok(())
    }
}

/// A row for each point of each snapshot.
fn write_path(file: TableFile<'_>, film: &Film, inputs: &Inputs) -> Result<(), Failure> {
    let cloud = inputs.get(Side::X);
    let dim = cloud.dim;
    let shots: Vec<(usize, Vec<f64>)> = (film.shots.iter())
        .map(|shot| (shot.step, inputs.preparation.undo(&shot.points)))
        .collect();
    let rows = || {
        shots.iter().flat_map(|(step, points)| points.chunks_exact(dim).map(move |p| (*step, p)))
    };
    let step = Cells::Indices(rows().map(|(step, _)| step as u64).collect());
    let numbers = shots.iter().flat_map(|_| (0..cloud.len()).map(|i| cloud.row(i)));
    let mut columns = vec![
        Series { name: "step".to_owned(), cells: step },
        output::row_column("row", numbers, file.format),
    ];
    for (c, name) in coordinate_names(cloud).into_iter().enumerate() {
        let cells = Cells::Numbers(rows().map(|(_, point)| point[c]).collect());
        columns.push(Series { name, cells });
    }
    output::write_table(file, &columns, true)
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
            frames.push((frame(path, k), panel.into()));
        }
        Ok(frames)
    }
}
