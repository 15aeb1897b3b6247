//! The HIGGS data set: events with 28 numbers each, and whether they are signal.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use orthant_io::{ReadOptions, Values};
use orthant_support::Failure;
use orthant_support::clouds::Clouds;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Numbers of an event.
const AXES: usize = 28;
/// Names under which the data come, the first that is there is taken.
const FILES: [&str; 3] = ["HIGGS.csv", "HIGGS.csv.gz", "higgs_10984x28.csv.gz"];
/// Of the whole file, 11 million events, so many are looked at for each that is used.
const EVENTS: usize = 20;

/// `n` events of signal and of background, drawn by the seed.
pub(crate) fn read(folder: Option<&Path>, n: usize, seed: u64) -> Result<Clouds, Failure> {
    let Some(folder) = folder else {
        return Err(absent("higgs needs the HIGGS data set"));
    };
    let Some(path) = FILES.iter().map(|file| folder.join(file)).find(|path| path.is_file()) else {
        let names = FILES.join(", ");
        return Err(absent(&format!("{}: none of {names} is there", folder.display())));
    };
    let name = path.display().to_string();
    let head =
        head(&path, EVENTS * n + 1).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let cloud = orthant_io::read_bytes("HIGGS.csv", &head, &ReadOptions::default())
        .map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let values = match cloud.values {
        Values::F64(values) => values,
        Values::F32(values) => values.into_iter().map(f64::from).collect(),
    };
    if cloud.dim != AXES + 1 {
        let message =
            format!("{name}: {} columns where there should be a label and {AXES}", cloud.dim);
        return Err(Failure::input(message));
    }
    // The label is the first column of the file of UCI, and has a name where there are names.
    let label = cloud.columns.and_then(|c| c.iter().position(|c| c == "label")).unwrap_or(0);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut chosen = |wanted: f64| -> Result<Vec<f64>, Failure> {
        let mut rows: Vec<&[f64]> =
            values.chunks_exact(AXES + 1).filter(|row| row[label] == wanted).collect();
        if rows.len() < n {
            return Err(Failure::input(format!(
                "{name}: {} events have label {wanted}, and the experiment takes {n}",
                rows.len()
            )));
        }
        rows.shuffle(&mut rng);
        let axes = |row: &[f64]| [&row[..label], &row[label + 1..]].concat();
        Ok(rows[..n].iter().flat_map(|row| axes(row)).collect())
    };
    Ok(Clouds { x: chosen(1.0)?, y: chosen(0.0)?, dim: AXES })
}

/// The files are not there: bad input to this experiment, and no obstacle to the others.
#[derive(Debug)]
pub(crate) struct Absent(String);

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Absent {}

fn absent(why: &str) -> Failure {
    let message = format!(
        "{why}; get HIGGS.csv.gz (2.6 GB) from https://archive.ics.uci.edu/dataset/280/higgs and name its folder: \
         --data DIR"
    );
    Failure::Input(Absent(message).into())
}

/// The first lines of a file.
fn head(path: &Path, lines: usize) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    let packed = path.extension().is_some_and(|e| e == "gz");
    let reader: Box<dyn Read> =
        if packed { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(file) };
    let (mut reader, mut out) = (BufReader::new(reader), Vec::new());
    for _ in 0..lines {
        if reader.read_until(b'\n', &mut out)? == 0 {
            break;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Events whose first number tells the label and the row.
    fn events(rows: usize, header: bool) -> String {
        let mut text = String::new();
        if header {
            let names: Vec<String> = (0..AXES).map(|k| format!("axis{k}")).collect();
            let _ = writeln!(text, "{},label", names.join(","));
        }
        for row in 0..rows {
            let label = row % 2;
            let rest = vec!["0.5"; AXES - 1].join(",");
            let event = format!("{}.25,{rest}", 10 * row + label);
            let _ = if header {
                writeln!(text, "{event},{label}")
            } else {
                writeln!(text, "{label},{event}")
            };
        }
        text
    }

    #[test]
    fn both_kinds_of_files() {
        for (file, header) in [("HIGGS.csv", false), ("higgs_10984x28.csv.gz", true)] {
            let folder = tempfile::tempdir().unwrap();
            let text = events(40, header).into_bytes();
            let bytes = if header {
                let mut packed = Vec::new();
                flate2::read::GzEncoder::new(&text[..], flate2::Compression::fast())
                    .read_to_end(&mut packed)
                    .unwrap();
                packed
            } else {
                text
            };
            std::fs::write(folder.path().join(file), bytes).unwrap();
            let clouds = read(Some(folder.path()), 5, 1).unwrap();
            assert_eq!((clouds.x.len(), clouds.y.len(), clouds.dim), (5 * 28, 5 * 28, 28));
            // Signal is odd here, background even.
            assert!(clouds.x.chunks(28).all(|event| event[0] % 2.0 == 1.25));
            assert!(clouds.y.chunks(28).all(|event| event[0] % 2.0 == 0.25));
            let error = read(Some(folder.path()), 30, 1).unwrap_err().to_string();
            assert!(error.contains("20 events have label 1"), "{error}");
        }
    }

    #[test]
    fn absence_says_where_to_get_it() {
        let folder = tempfile::tempdir().unwrap();
        for folder in [None, Some(folder.path())] {
            let failure = read(folder, 5, 1).unwrap_err();
            assert!(failure.to_string().contains("archive.ics.uci.edu"), "{failure}");
            assert_eq!(failure.code(), 2);
            assert!(failure.into_parts().0.is::<Absent>());
        }
    }
}
