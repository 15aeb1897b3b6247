//! `orthant-gan train`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use orthant_gan::{Config, Data, KernelStats, Report, Trainer, grid, ring};
use orthant_support::Failure;
use orthant_support::number::{count, number};
use orthant_support::progress::ticking;
use orthant_support::stdout::print;
use serde::Serialize;

use crate::args::Train;
use crate::commands::config;
use crate::commands::log::Log;
use crate::commands::run::{self, Run};
use crate::output;

/// Samples of a picture.
const IMAGES: usize = 64;
const POINTS: usize = 1000;
/// The seed of these: pictures of a run show the same noise as it becomes better.
const SEED: u64 = 0;
/// Pictures of a run, where nobody says how many.
const PICTURES: u64 = 20;

/// The JSON object.
#[derive(Debug, Serialize)]
struct Outcome {
    run: PathBuf,
    /// Steps of the generator, of the run and of this command.
    step: u64,
    steps_now: u64,
    divergence: Option<f64>,
    kernel: Option<KernelStats>,
    images_per_second: f64,
    seconds: f64,
    picture: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Train) -> Result<(), Failure> {
    let run = Run::at(&arguments.out);
    let config = if arguments.resume { resumed(arguments, &run)? } else { fresh(arguments, &run)? };
    let steps = arguments.steps.unwrap_or(config.training.steps);
    let data = match run::folder_for(&config, arguments.data.as_deref())? {
        Some(folder) => Data::Images(run::load(folder, &config)?.train),
        None => Data::Ring,
    };
    let trainer = if arguments.resume {
        Trainer::resume(run.folder(), data)?
    } else {
        Trainer::new(config, data)?
    };
    if trainer.steps_done() >= steps {
        return Err(Failure::input(format!(
            "{}: {} steps are done already; --steps N goes on to more",
            run.folder().display(),
            count(usize::try_from(trainer.steps_done()).unwrap_or(usize::MAX))
        )));
    }
    fs::create_dir_all(run.samples()).map_err(|error| Failure::at(&run.samples(), error))?;
    let log = Log::open(&run.log(), trainer.steps_done())?;
    let pictures = arguments.grid_every.unwrap_or((steps / PICTURES).max(1));
    let session = Session {
        trainer,
        run,
        log,
        bar: bar(steps),
        pictures,
        save: Duration::from_secs(arguments.save_every),
        begun: Instant::now(),
        images: 0,
    };
    let outcome = session.train(steps)?;
    if arguments.json { output::print_json(&outcome) } else { print(text(&outcome)) }
}

/// The settings of a new run, in a folder that is not there or is empty.
fn fresh(arguments: &Train, run: &Run) -> Result<Config, Failure> {
    let folder = run.folder();
    if run.checkpoint().exists() {
        return Err(Failure::at(
            folder,
            "there is a run already; go on with it by --resume, or choose another --out",
        ));
    }
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(Failure::at(folder, "the folder is not empty; choose another --out"));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::at(folder, format!("{error}; choose another --out"))),
    }
    let Some(path) = &arguments.config else {
        return Err(Failure::input("--config FILE is needed for a new run"));
    };
    let mut config = config::load(path)?;
    config.training.steps = arguments.steps.unwrap_or(config.training.steps);
    config.training.seed = arguments.seed.unwrap_or(config.training.seed);
    Ok(config)
}

/// The settings of the run that is there.
fn resumed(arguments: &Train, run: &Run) -> Result<Config, Failure> {
    let config = run.config()?;
    if let Some(path) = &arguments.config {
        let mut given = config::load(path)?;
        // What a run may be asked for anew, and what it was asked for when it began.
        given.training.steps = config.training.steps;
        given.training.seed = config.training.seed;
        if given != config {
            return Err(Failure::input(format!(
                "{}: other settings than those of {}; leave out --config to go on with these, or --resume to begin \
                 anew elsewhere",
                path.display(),
                run.folder().join("config.toml").display()
            )));
        }
    }
    Ok(config)
}

fn bar(steps: u64) -> ProgressBar {
    ticking(steps, "[{bar:8}] {pos}/{len} {eta} left: {wide_msg}")
}

/// A training from where it is to its last step.
struct Session {
    trainer: Trainer,
    run: Run,
    log: Log,
    bar: ProgressBar,
    /// Steps from one picture to the next.
    pictures: u64,
    /// Time from one checkpoint to the next.
    save: Duration,
    begun: Instant,
    /// Seen in this session.
    images: u64,
}

impl Session {
    fn train(mut self, steps: u64) -> Result<Outcome, Failure> {
        let first = self.trainer.steps_done();
        self.bar.set_position(first);
        self.bar.reset_eta();
        // From now on the folder is a run, whenever it is stopped.
        self.trainer.save(self.run.folder())?;
        let mut saved = Instant::now();
        if first == 0 {
            self.picture()?;
        }
        let (mut last, mut picture) = (None, None);
        while self.trainer.steps_done() < steps {
            let report = self.trainer.step()?;
            self.images += report.images;
            self.log.append(&report, self.begun.elapsed())?;
            self.show(&report);
            if report.step.is_multiple_of(self.pictures) || report.step == steps {
                picture = Some(self.picture()?);
            }
            if saved.elapsed() >= self.save || report.step == steps {
                self.trainer.save(self.run.folder())?;
                saved = Instant::now();
            }
            last = Some(report);
        }
        self.bar.finish_and_clear();
        let images_per_second = self.rate();
        Ok(Outcome {
            step: self.trainer.steps_done(),
            steps_now: self.trainer.steps_done() - first,
            divergence: last.as_ref().map(|report| report.divergence),
            kernel: last.map(|report| report.kernel),
            images_per_second,
            seconds: self.begun.elapsed().as_secs_f64(),
            picture,
            run: self.run.folder().to_owned(),
        })
    }

    fn rate(&self) -> f64 {
        self.images as f64 / self.begun.elapsed().as_secs_f64().max(1e-9)
    }

    fn show(&self, report: &Report) {
        let KernelStats { real_real, real_fake, fake_fake } = report.kernel;
        self.bar.set_position(report.step);
        // Real pairs, mixed ones, pairs of samples; 80 columns have place for all.
        self.bar.set_message(format!(
            "divergence {:.3}, log kernel {real_real:.1} {real_fake:.1} {fake_fake:.1}, {:.0} images/s",
            report.divergence,
            self.rate()
        ));
    }

    /// Draws samples as they are now.
    fn picture(&self) -> Result<PathBuf, Failure> {
        let path = self.run.samples().join(format!("step-{:06}.png", self.trainer.steps_done()));
        draw(&self.trainer, &path)?;
        Ok(path)
    }
}

fn draw(trainer: &Trainer, path: &Path) -> Result<(), Failure> {
    let generator = trainer.generator();
    match trainer.config().data.kind {
        orthant_gan::config::Kind::Images => {
            grid::write(path, &generator.sample(IMAGES, SEED)?, None)?;
        }
        orthant_gan::config::Kind::Ring => {
            let samples = generator.points(POINTS, SEED)?;
            grid::write_points(path, &ring::points(POINTS, SEED), &samples)?;
        }
    }
    Ok(())
}

fn text(outcome: &Outcome) -> String {
    let whole = |steps: u64| count(usize::try_from(steps).unwrap_or(usize::MAX));
    let mut rows = vec![
        [
            "steps".to_owned(),
            format!("{}, {} of them now", whole(outcome.step), whole(outcome.steps_now)),
        ],
        [
            "time".to_owned(),
            format!("{:.0} s, {:.0} images a second", outcome.seconds, outcome.images_per_second),
        ],
    ];
    if let (Some(divergence), Some(kernel)) = (outcome.divergence, outcome.kernel) {
        let KernelStats { real_real, real_fake, fake_fake } = kernel;
        rows.push(["divergence".to_owned(), format!("{} (of the last batch)", number(divergence))]);
        rows.push([
            "log kernel".to_owned(),
            format!("{real_real:.3} real, {real_fake:.3} mixed, {fake_fake:.3} samples"),
        ]);
    }
    if let Some(picture) = &outcome.picture {
        rows.push(["picture".to_owned(), picture.display().to_string()]);
    }
    let lines = rows.iter().map(|[name, value]| format!(" {name:<10}  {value}"));
    format!("{}\n\n{}", outcome.run.display(), lines.collect::<Vec<_>>().join("\n"))
}
