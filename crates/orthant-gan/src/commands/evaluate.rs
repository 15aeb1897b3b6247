//! `orthant-gan evaluate`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use orthant_gan::data::{Images, batch_indices};
use orthant_gan::evaluate::{Clouds, DEFAULT_EPSILON, Evaluation, Pca, Settings, Value, evaluate};
use orthant_gan::{Config, Generator, load_generator, ring};
use orthant_support::Failure;
use orthant_support::number::{count, number};
use orthant_support::stdout::print;
use serde::Serialize;

use crate::args::Evaluate;
use crate::commands::run::{self, Run};
use crate::output;

/// The JSON object.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    found: Evaluation,
    /// Part of the variance of training images that the components have.
    #[serde(skip_serializing_if = "Option::is_none")]
    explained: Option<f64>,
    /// Modes of the ring that samples reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    modes: Option<usize>,
    /// Steps of the generator.
    step: u64,
    seed: u64,
    seconds: f64,
}

pub(crate) fn run(arguments: &Evaluate) -> Result<(), Failure> {
    let begun = Instant::now();
    if let Some(eps) = arguments.eps.filter(|eps| !(*eps > 0.0 && eps.is_finite())) {
        return Err(Failure::input(format!("--eps must be positive and finite, got {eps}")));
    }
    let run = Run::at(&arguments.run);
    let config = run.config()?;
    let folder = run::folder_for(&config, arguments.data.as_deref())?;
    let generators = [load_generator(run.folder())?, Generator::untrained(&config)?];
    let step = generators[0].steps();
    let (clouds, explained, modes) = match folder {
        Some(folder) => images(arguments, &config, folder, &generators)?,
        None => points(arguments, &generators)?,
    };
    let bar = output::doing("comparing");
    let settings = Settings { neighbours: arguments.neighbours, epsilon: arguments.eps };
    let found = evaluate(&clouds, &settings);
    bar.finish_and_clear();
    let seconds = begun.elapsed().as_secs_f64();
    let report = Report { found: found?, explained, modes, step, seed: arguments.seed, seconds };
    if arguments.json {
        return output::print_json(&report);
    }
    print(text(&report, folder.is_some()))
}

type Prepared = (Clouds, Option<f64>, Option<usize>);

/// Clouds of images, in the components of training images.
fn images(
    arguments: &Evaluate,
    config: &Config,
    folder: &Path,
    generators: &[Generator; 2],
) -> Result<Prepared, Failure> {
    let Evaluate { seed, dims, .. } = *arguments;
    let split = run::load(folder, config)?;
    if split.held_out.is_empty() {
        return Err(Failure::input(format!(
            "{}: no held-out images to compare with; set data.held_out in {}",
            folder.display(),
            arguments.run.join("config.toml").display()
        )));
    }
    let size = arguments.count.min(split.held_out.len()).min(split.train.len());
    let bar = output::doing("principal components");
    let pca = Pca::fit(&split.train, dims);
    bar.finish_and_clear();
    let real = |pictures: &orthant_gan::data::Pictures| {
        pca.project(&pictures.batch(&batch_indices(pictures.len(), size, 0, seed)))
    };
    let bar = output::doing("samples");
    let fake = |generator: &Generator| -> Result<Vec<f32>, Failure> {
        let images: Images = generator.sample(size, seed)?;
        Ok(pca.project(&images))
    };
    let clouds = Clouds {
        dims: pca.dims(),
        held_out: real(&split.held_out),
        training: real(&split.train),
        samples: fake(&generators[0])?,
        initial: fake(&generators[1])?,
    };
    bar.finish_and_clear();
    Ok((clouds, Some(pca.explained()), None))
}

/// Clouds of points of the plane.
fn points(arguments: &Evaluate, generators: &[Generator; 2]) -> Result<Prepared, Failure> {
    let Evaluate { seed, count, .. } = *arguments;
    let samples = generators[0].points(count, seed)?;
    let modes = ring::modes(&samples);
    // Draws of the ring that no training has seen, and others.
    let flat = |points: Vec<[f32; 2]>| points.into_flattened();
    let clouds = Clouds {
        dims: 2,
        held_out: flat(ring::points(count, seed.wrapping_add(1))),
        training: flat(ring::points(count, seed.wrapping_add(2))),
        samples: flat(samples),
        initial: flat(generators[1].points(count, seed)?),
    };
    Ok((clouds, None, Some(modes)))
}

fn text(report: &Report, images: bool) -> String {
    let found = &report.found;
    let Evaluation { dims, epsilon, .. } = found;
    let things = if images { "images" } else { "points" };
    let mut head = format!(
        "{} samples after {} steps, against {} held-out {things}",
        count(found.count),
        count(usize::try_from(report.step).unwrap_or(usize::MAX)),
        count(found.count)
    );
    if let Some(explained) = report.explained {
        let part = 100.0 * explained;
        let _ = write!(head, ", {dims} principal components ({part:.0} % of the variance)");
    }
    let mean = found.mean_squared_distance;
    let _ = write!(head, "\nepsilon = {}", number(*epsilon));
    if (epsilon - DEFAULT_EPSILON * mean).abs() < 1e-9 * epsilon {
        let _ = write!(
            head,
            " ({DEFAULT_EPSILON} x the mean squared distance of held-out {things}, {})",
            number(mean)
        );
    }
    let value = |v: &Value| {
        let mut interval = format!("[{}, {}]", number(v.low), number(v.high));
        if !v.converged {
            interval += ", not converged";
        }
        [number(v.value), interval]
    };
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let row = |name: &str, v: &Value, pr: [String; 2]| {
        let ([value, interval], [precision, recall]) = (value(v), pr);
        [name.to_owned(), value, interval, precision, recall]
    };
    let both =
        |pr: &orthant_gan::evaluate::PrecisionRecall| [percent(pr.precision), percent(pr.recall)];
    let none = || [String::new(), String::new()];
    let head_row = ["", "divergence", "interval", "precision", "recall"].map(str::to_owned);
    let rows = [
        head_row,
        row("samples", &found.divergence, both(&found.precision_recall)),
        row(&format!("training {things}"), &found.training, both(&found.training_precision_recall)),
        row("before training", &found.initial, none()),
    ];
    let mut tail =
        format!("The divergence is {:.1} times smaller than before training.", found.times_smaller);
    if let Some(modes) = report.modes {
        let _ = write!(tail, " Samples reach {modes} of the {} modes.", ring::MODES);
    }
    format!("{head}\n\n{}\n\n{tail}", output::table(&rows))
}
