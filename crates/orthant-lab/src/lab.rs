//! What happens: settings, an estimate, runs, figures, the page.

use std::path::Path;
use std::time::Instant;

use indicatif::ProgressBar;
use orthant::{Method, Options, options::Algorithm, rot};
use orthant_support::Failure;
use orthant_support::clouds;
use orthant_support::number::duration;
use orthant_support::progress::ticking;
use orthant_support::stdout::print;
use serde_json::Value;

use crate::args::{Args, Name};
use crate::config;
use crate::higgs::Absent;
use crate::journal::{Header, Journal, Machine};
use crate::page::{self, Part};
use crate::studies::{Barycentre, Complexity, Divergences, Ratio, Tradeoff};
use crate::study::Study;

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let wanted = args.names()?;
    let folder = args.folder();
    // Bad settings are found before anything runs.
    let mut jobs = Vec::new();
    for name in Name::ALL {
        let fresh = wanted.contains(&name) && !args.draw;
        jobs.extend(load(name, args, &folder, fresh)?);
    }
    if jobs.is_empty() {
        let message = format!("{}: there are no runs to draw; leave out --draw", folder.display());
        return Err(Failure::input(message));
    }
    config::make_folder(&folder)?;
    let absent = if args.draw { Vec::new() } else { run_all(args, &wanted, &mut jobs)? };
    let mut parts = Vec::new();
    for job in &jobs {
        if let Some(part) = job.part()? {
            page::write(&folder, job.name().as_str(), &part.section)?;
            parts.push(part);
        }
    }
    let path = folder.join("report.html");
    let page = page::html(args.quick, &parts, &absent)?;
    orthant_io::write_atomic(&path, |out| out.write_all(page.as_bytes()))
        .map_err(Failure::other)?;
    print(format_args!("{}: figures and tables are beside it", path.display()))
}

/// Runs what was asked for and is not there; what cannot be run for want of files is told.
fn run_all(
    args: &Args,
    wanted: &[Name],
    jobs: &mut [Box<dyn Experiment>],
) -> Result<Vec<String>, Failure> {
    let wanted = |job: &dyn Experiment| wanted.contains(&job.name());
    let left = || jobs.iter().filter(|job| wanted(&***job)).map(|job| job.left());
    let (runs, seconds) = left().fold((0, 0.0), |(r, s), (runs, sec)| (r + runs, s + sec));
    if runs == 0 {
        print("all runs are there already")?;
        return Ok(Vec::new());
    }
    let speed = speed()?;
    let about = duration(seconds * speed);
    let threads = rayon::current_num_threads();
    print(format_args!("{runs} runs, about {about} on {threads} threads"))?;
    let bar = ticking(steps(seconds), "[{bar:30}] {percent}% {elapsed}, {eta} left: {msg}");
    let mut absent = Vec::new();
    for job in jobs.iter_mut().filter(|job| wanted(&***job)) {
        match job.run(args.data.as_deref(), &bar) {
            Err(Failure::Input(error)) if args.name == "all" && error.is::<Absent>() => {
                let message = error.to_string();
                bar.suspend(|| print(format_args!("left out: {message}")))?;
                absent.push(message);
            }
            done => done?,
        }
    }
    bar.finish_and_clear();
    Ok(absent)
}

/// Steps of the line that shows the progress: milliseconds of estimated work.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds")]
fn steps(seconds: f64) -> u64 {
    (1e3 * seconds).max(1.0) as u64
}

/// Seconds of the solve below, on the machine that the guesses of times were made on.
const REFERENCE: f64 = 0.17;

/// How many times as long as there it takes here.
fn speed() -> Result<f64, Failure> {
    let clouds = clouds::figure_1(5_000, 0);
    let [mu, nu] = clouds.measures(5_000)?;
    let options = Options::builder(0.5).method(Method::paper()).rank(500);
    let options = options.algorithm(Algorithm::Plain).tolerance(1e-13).max_iterations(20);
    let options = options.build()?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let begun = Instant::now();
        rot(&mu, &nu, &options)?;
        best = best.min(begun.elapsed().as_secs_f64());
    }
    Ok(best / REFERENCE)
}

/// An experiment with its journal, whatever its settings are.
trait Experiment {
    fn name(&self) -> Name;
    /// Runs that are left, and a guess of their seconds.
    fn left(&self) -> (usize, f64);
    /// Runs them.
    fn run(&mut self, data: Option<&Path>, bar: &ProgressBar) -> Result<(), Failure>;
    /// What there is to show, if there is anything.
    fn part(&self) -> Result<Option<Part>, Failure>;
}

struct Job<S: Study> {
    name: Name,
    header: Header,
    settings: S,
    journal: Journal,
    /// Cases with their keys.
    cases: Vec<(S::Case, Value)>,
}

/// With fresh settings, or with those of the journal, if there is one.
fn load(
    name: Name,
    args: &Args,
    folder: &Path,
    fresh: bool,
) -> Result<Option<Box<dyn Experiment>>, Failure> {
    fn job<S: Study + 'static>(
        name: Name,
        args: &Args,
        folder: &Path,
        fresh: bool,
    ) -> Result<Option<Box<dyn Experiment>>, Failure> {
        let path = folder.join(format!("{}.jsonl", name.as_str()));
        let journal = Journal::open(&path)?;
        let (header, settings) = if fresh {
            let (about, settings) = config::load::<S>(name, args)?;
            let value = serde_json::to_value(&settings)?;
            let experiment = name.as_str().to_owned();
            (Header { experiment, about, settings: value, machine: Machine::here() }, settings)
        } else {
            let Some(header) = journal.header() else { return Ok(None) };
            let settings = serde_json::from_value(header.settings.clone()).map_err(|error| {
                Failure::input(format!(
                    "{}: settings of another version ({error}); delete the file, or choose another --out",
                    path.display()
                ))
            })?;
            (header.clone(), settings)
        };
        let cases = S::cases(&settings).into_iter();
        let cases = cases.map(|case| Ok((serde_json::to_value(&case)?, case)));
        let cases = cases.map(|pair: Result<_, Failure>| pair.map(|(key, case)| (case, key)));
        let cases = cases.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Box::new(Job { name, header, settings, journal, cases })))
    }
    match name {
        Name::Gaussians | Name::Sphere | Name::Higgs => job::<Tradeoff>(name, args, folder, fresh),
        Name::Barycenter => job::<Barycentre>(name, args, folder, fresh),
        Name::Ratio => job::<Ratio>(name, args, folder, fresh),
        Name::Complexity => job::<Complexity>(name, args, folder, fresh),
        Name::Divergence => job::<Divergences>(name, args, folder, fresh),
    }
}

impl<S: Study> Experiment for Job<S> {
    fn name(&self) -> Name {
        self.name
    }

    fn left(&self) -> (usize, f64) {
        let left = self.cases.iter().filter(|(_, key)| self.journal.outcome(key).is_none());
        left.fold((0, 0.0), |(n, s), (case, _)| (n + 1, s + self.settings.seconds(case)))
    }

    fn run(&mut self, data: Option<&Path>, bar: &ProgressBar) -> Result<(), Failure> {
        let same = |header: &Header| header.settings == self.header.settings;
        if self.left().0 == 0 && self.journal.header().is_some_and(same) {
            return Ok(());
        }
        let data = self.settings.data(data)?;
        self.journal.begin(self.header.clone())?;
        for (case, key) in &self.cases {
            if self.journal.outcome(key).is_some() {
                continue;
            }
            bar.set_message(format!("{}: {}", self.name.as_str(), self.settings.words(case)));
            let outcome = self.settings.run(&data, case)?;
            self.journal.keep(key.clone(), serde_json::to_value(&outcome)?)?;
            bar.inc(steps(self.settings.seconds(case)));
        }
        Ok(())
    }

    fn part(&self) -> Result<Option<Part>, Failure> {
        let mut done = Vec::new();
        for (_, key) in &self.cases {
            if let Some(outcome) = self.journal.outcome(key) {
                let case = serde_json::from_value(key.clone())?;
                done.push((case, serde_json::from_value(outcome.clone())?));
            }
        }
        if done.is_empty() {
            return Ok(None);
        }
        let runs = [done.len(), self.cases.len()];
        let section = self.settings.section(&done)?;
        // That of the machine that ran them.
        let header = self.journal.header().unwrap_or(&self.header).clone();
        Ok(Some(Part { header, section, runs }))
    }
}
