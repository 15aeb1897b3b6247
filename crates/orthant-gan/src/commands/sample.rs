//! `orthant-gan sample`.

use std::path::Path;

use orthant_gan::config::Kind;
use orthant_gan::{grid, load_generator, ring};
use orthant_io::{Cells, Series, TableFormat};
use orthant_support::Failure;
use orthant_support::number;
use orthant_support::stdout::print;

use crate::args::Sample;
use crate::commands::run::Run;

pub(crate) fn run(arguments: &Sample) -> Result<(), Failure> {
    let Sample { count, seed, out, .. } = arguments;
    let picture = check(out)?;
    if arguments.columns.is_some() && !picture {
        return Err(Failure::input("--columns are those of a picture; give --out FILE.png"));
    }
    let run = Run::at(&arguments.run);
    let config = run.config()?;
    let generator = load_generator(run.folder())?;
    match (config.data.kind, picture) {
        (Kind::Images, true) => {
            grid::write(out, &generator.sample(*count, *seed)?, arguments.columns)?;
        }
        (Kind::Images, false) => {
            let images = generator.sample(*count, *seed)?;
            write(out, &images.pixels, images.size())?;
        }
        (Kind::Ring, true) => {
            let points = generator.points(*count, *seed)?;
            grid::write_points(out, &ring::points(*count, *seed), &points)?;
        }
        (Kind::Ring, false) => {
            let points = generator.points(*count, *seed)?;
            write(out, points.as_flattened(), 2)?;
        }
    }
    let what = if config.data.kind == Kind::Ring { "points" } else { "images" };
    print(format_args!("{}: {} {what}", out.display(), number::count(*count)))
}

/// Checks, before any work, that the file can be written; whether it is a picture.
fn check(path: &Path) -> Result<bool, Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::at(folder, "no such folder; make it, or choose another --out"));
    }
    if path.is_dir() {
        return Err(Failure::at(path, "this is a folder; name a file in it with --out"));
    }
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
        return Ok(true);
    }
    match TableFormat::of(path) {
        Ok(_) => Ok(false),
        Err(_) => Err(Failure::at(path, "samples are written as .png, .npy, .csv or .tsv")),
    }
}

/// A sample a row.
fn write(path: &Path, numbers: &[f32], width: usize) -> Result<(), Failure> {
    let columns: Vec<Series<'_>> = (0..width)
        .map(|k| {
            let cells = numbers.iter().skip(k).step_by(width).map(|x| f64::from(*x)).collect();
            Series { name: format!("c{}", k + 1), cells: Cells::Numbers(cells) }
        })
        .collect();
    let format = TableFormat::of(path)?;
    orthant_io::write_table(path, format, &columns, true).map_err(Failure::other)
}
