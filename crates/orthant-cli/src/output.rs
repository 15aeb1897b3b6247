//! Results for people, for programs and for files.

use std::io::{self, Write};
use std::path::Path;

use comfy_table::{Table, presets};
use orthant::{Divergence, Interval, Measure, Solution, Stop, Times, Used};
use orthant_draw::Picture;
use orthant_io::{Cells, Series, TableFormat};
use serde::Serialize;

use crate::failure::Failure;

/// The JSON object of a solve.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) value: f64,
    pub(crate) value_kl: f64,
    pub(crate) transport_cost: Option<f64>,
    pub(crate) mass: f64,
    pub(crate) epsilon: f64,
    /// Of relaxed marginals.
    pub(crate) rho_x: Option<f64>,
    pub(crate) rho_y: Option<f64>,
    pub(crate) n: usize,
    pub(crate) m: usize,
    pub(crate) dim: usize,
    pub(crate) method: &'static str,
    pub(crate) rank: usize,
    /// Of the distance from the value of the exact kernel: 0 if that is what was used.
    pub(crate) error_bound: Option<f64>,
    /// Where the value of the exact kernel is.
    pub(crate) interval: Option<Ends>,
    pub(crate) interval_kl: Option<Ends>,
    pub(crate) corrected: Option<f64>,
    pub(crate) corrected_kl: Option<f64>,
    pub(crate) stages: usize,
    pub(crate) polished: Option<usize>,
    pub(crate) reason: Option<String>,
    /// Of a divergence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kernels: Option<&'static str>,
    pub(crate) converged: bool,
    pub(crate) stop: &'static str,
    pub(crate) iterations: usize,
    pub(crate) marginal_error_x: f64,
    pub(crate) marginal_error_y: f64,
    pub(crate) marginal_gap_x: f64,
    pub(crate) marginal_gap_y: f64,
    pub(crate) seconds: Seconds,
    /// How points moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flow: Option<Moves>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) terms: Option<Box<Terms>>,
}

/// How points moved.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Moves {
    pub(crate) first: f64,
    pub(crate) steps: usize,
    pub(crate) gradients: usize,
    /// In the root mean square.
    pub(crate) moved: f64,
    pub(crate) stop: &'static str,
    /// Whether it ended as it should.
    pub(crate) done: bool,
}

/// An interval, and what it comes from.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Ends {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) kind: &'static str,
}

impl Ends {
    fn of(interval: Interval) -> Self {
        Ends { low: interval.low, high: interval.high, kind: interval.kind.as_str() }
    }

    /// `2.2650 in [2.2648, 2.2653]`, with two digits of what is not certain.
    pub(crate) fn around(self, value: f64) -> String {
        let width = self.high - self.low;
        let size = value.abs().max(width);
        if !(1e-3..1e6).contains(&size) || width.is_nan() || width <= 2e-6 * size {
            return number(value);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 12"
        )]
        let decimals = (1.0 - width.log10().floor()).clamp(0.0, 12.0) as usize;
        let (low, high) = (self.low, self.high);
        format!("{value:.decimals$} in [{low:.decimals$}, {high:.decimals$}]")
    }
}

/// The terms of a divergence.
#[derive(Debug, Serialize)]
pub(crate) struct Terms {
    pub(crate) cross: Report,
    pub(crate) self_x: Report,
    pub(crate) self_y: Report,
}

/// Where the time went.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Seconds {
    pub(crate) read: f64,
    pub(crate) features: f64,
    pub(crate) solve: f64,
    pub(crate) total: f64,
}

impl Seconds {
    /// Of a solve alone.
    pub(crate) fn of(times: Times) -> Self {
        let (features, solve) = (times.features.as_secs_f64(), times.solve.as_secs_f64());
        Seconds { read: 0.0, features, solve, total: features + solve }
    }
}

/// What a report says of the clouds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) n: usize,
    pub(crate) m: usize,
    pub(crate) dim: usize,
}

impl Report {
    pub(crate) fn is_unbalanced(&self) -> bool {
        self.rho_x.is_some() || self.rho_y.is_some()
    }

    /// Of one term; `read` and `total` are filled in by the command.
    pub(crate) fn of_solution(s: &Solution, sizes: Sizes) -> Self {
        let [rho_x, rho_y] = s.rho.map(|rho| Some(rho).filter(|r| r.is_finite()));
        Report {
            value: s.value,
            value_kl: s.value_kl,
            transport_cost: s.transport_cost,
            mass: s.mass,
            epsilon: s.epsilon,
            rho_x,
            rho_y,
            n: sizes.n,
            m: sizes.m,
            dim: sizes.dim,
            method: s.method.as_str(),
            rank: s.rank,
            error_bound: if is_exact(s) { Some(0.0) } else { s.bound.filter(|b| b.is_finite()) },
            interval: s.interval.map(Ends::of),
            interval_kl: s.interval_kl.map(Ends::of),
            corrected: s.corrected,
            corrected_kl: s.corrected_kl,
            stages: s.stages,
            polished: s.polished,
            reason: s.reason.clone(),
            kernels: None,
            converged: s.converged(),
            stop: s.stop.as_str(),
            iterations: s.iterations,
            marginal_error_x: s.marginal_error_x,
            marginal_error_y: s.marginal_error_y,
            marginal_gap_x: s.marginal_gap_x,
            marginal_gap_y: s.marginal_gap_y,
            seconds: Seconds::of(s.times),
            flow: None,
            terms: None,
        }
    }

    /// Of a divergence: the worst of its terms where there is one number for all.
    pub(crate) fn of_divergence(d: &Divergence, sizes: Sizes) -> Self {
        let Sizes { n, m, dim } = sizes;
        let cross = Report::of_solution(&d.cross, sizes);
        let self_x = Report::of_solution(&d.self_x, Sizes { n, m: n, dim });
        let self_y = Report::of_solution(&d.self_y, Sizes { n: m, m, dim });
        let all = [&cross, &self_x, &self_y];
        let transport_cost = match all.map(|t| t.transport_cost) {
            [Some(c), Some(x), Some(y)] => Some(c - 0.5 * (x + y)),
            _ => None,
        };
        let stop = d
            .terms()
            .iter()
            .map(|t| t.stop)
            .find(|s| *s != Stop::Converged)
            .unwrap_or(Stop::Converged);
        let sum = |part: fn(&Seconds) -> f64| all.iter().map(|t| part(&t.seconds)).sum();
        let worst = |part: fn(&Report) -> f64| all.iter().map(|t| part(t)).fold(0.0, f64::max);
        Report {
            value: d.value,
            value_kl: d.value,
            transport_cost,
            iterations: all.iter().map(|t| t.iterations).sum(),
            marginal_error_x: worst(|t| t.marginal_error_x),
            marginal_error_y: worst(|t| t.marginal_error_y),
            marginal_gap_x: cross.marginal_gap_x,
            marginal_gap_y: cross.marginal_gap_y,
            converged: d.converged(),
            stop: stop.as_str(),
            seconds: Seconds {
                read: 0.0,
                features: sum(|s| s.features),
                solve: sum(|s| s.solve),
                total: sum(|s| s.total),
            },
            mass: cross.mass,
            epsilon: cross.epsilon,
            rho_x: cross.rho_x,
            rho_y: cross.rho_y,
            method: cross.method,
            rank: cross.rank,
            error_bound: if is_exact(&d.cross) {
                Some(0.0)
            } else {
                d.bound().filter(|b| b.is_finite())
            },
            interval: d.interval().map(Ends::of),
            interval_kl: d.interval().map(Ends::of),
            corrected: d.corrected(),
            corrected_kl: d.corrected(),
            stages: d.cross.stages,
            polished: d.terms().iter().filter_map(|t| t.polished).max(),
            reason: cross.reason.clone(),
            kernels: Some(d.kernels.as_str()),
            n,
            m,
            dim,
            flow: None,
            terms: Some(Box::new(Terms { cross, self_x, self_y })),
        }
    }
}

/// Whether the kernel was that of the squared Euclidean cost itself.
pub(crate) fn is_exact(solution: &Solution) -> bool {
    matches!(solution.method, Used::Dense | Used::Online)
}

/// A table of two or more columns without lines.
pub(crate) fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// A number with about six significant digits.
pub(crate) fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e6).contains(&size) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 8"
        )]
        let decimals = (5.0 - size.log10().floor()).clamp(0.0, 8.0) as usize;
        format!("{x:.decimals$}")
    } else {
        format!("{x:.5e}")
    }
}

/// The order of magnitude of an error, with this many decimals.
pub(crate) fn rough(x: f64, decimals: usize) -> String {
    if x == 0.0 { "0".to_owned() } else { format!("{x:.decimals$e}") }
}

/// The lines of a table, without blanks at their ends.
pub(crate) fn lines(table: &Table) -> String {
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A count with commas between thousands.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Seconds, readable.
pub(crate) fn seconds(s: f64) -> String {
    if s < 0.0995 { format!("{:.0} ms", s * 1e3) } else { format!("{s:.2} s") }
}

/// Writes to standard output; a reader that has gone away is not an error.
pub(crate) fn to_stdout(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::from(error).of_file("standard output"))
        }
        _ => Ok(()),
    }
}

/// Checks, before any work, that a picture can be written.
pub(crate) fn check_picture(path: &Path, option: &str) -> Result<(), Failure> {
    let known = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("svg") || e.eq_ignore_ascii_case("png"));
    if !known {
        return Err(orthant_draw::Error::Format(path.display().to_string()).into());
    }
    check_writable(path, option)
}

pub(crate) fn write_picture(path: &Path, picture: &Picture) -> Result<(), Failure> {
    let bytes = picture.encode(path)?;
    orthant_io::write_atomic(path, |out| out.write_all(&bytes))
        .map_err(|error| Failure::Other(error.into()))
}

/// Writes potentials as CSV: a row a point of either cloud. With the self terms of a divergence,
/// theirs too.
pub(crate) fn write_potentials(
    path: &Path,
    measures: &[Measure<'_>; 2],
    cross: &Solution,
    selves: Option<[&Solution; 2]>,
) -> Result<(), Failure> {
    let written = orthant_io::write_atomic(path, |out| {
        write!(out, "cloud,index,weight,potential,potential_kl")?;
        writeln!(
            out,
            "{}",
            if selves.is_some() { ",self_potential,self_potential_kl" } else { "" }
        )?;
        let kl = [cross.potential_kl_x(), cross.potential_kl_y()];
        for (c, name) in ["x", "y"].into_iter().enumerate() {
            let potential = if c == 0 { &cross.potential_x } else { &cross.potential_y };
            let own = selves.map(|s| (&s[c].potential_x, s[c].potential_kl_x()));
            // As they were given, if that matters.
            let unbalanced = cross.rho.iter().any(|rho| rho.is_finite());
            let mass = if unbalanced { measures[c].mass() } else { 1.0 };
            for (i, weight) in measures[c].weights().iter().enumerate() {
                let weight = mass * weight;
                write!(out, "{name},{},{weight},{},{}", i + 1, potential[i], kl[c][i])?;
                if let Some((own, own_kl)) = &own {
                    write!(out, ",{},{}", own[i], own_kl[i])?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    });
    written.map_err(|error| Failure::Other(error.into()))
}

/// Writes pairs of points as a table.
pub(crate) fn write_pairs(path: &Path, pairs: &[[usize; 2]]) -> Result<(), Failure> {
    let format = TableFormat::of(path)?;
    let column = |c: usize, name: &str| indices(name, pairs.iter().map(|pair| pair[c]), format);
    write_table(path, format, &[column(0, "i"), column(1, "j")], true)
}

/// A column of points by their numbers: from 1 as people count, from 0 in arrays.
pub(crate) fn indices(
    name: &str,
    points: impl Iterator<Item = usize>,
    format: TableFormat,
) -> Series<'static> {
    let first = u64::from(format != TableFormat::Npy);
    Series {
        name: name.to_owned(),
        cells: Cells::Indices(points.map(|i| i as u64 + first).collect()),
    }
}

/// Writes a table, whole or not at all.
pub(crate) fn write_table(
    path: &Path,
    format: TableFormat,
    columns: &[Series<'_>],
    header: bool,
) -> Result<(), Failure> {
    orthant_io::write_table(path, format, columns, header)
        .map_err(|error| Failure::Other(error.into()))
}

/// Checks, before any work, that a table can be written to a file.
pub(crate) fn check_table(path: &Path, option: &str) -> Result<TableFormat, Failure> {
    check_writable(path, option)?;
    Ok(TableFormat::of(path)?)
}

/// Checks that nothing is written over something else.
pub(crate) fn check_different(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    for (k, (option, file)) in files.iter().enumerate().filter(|(_, (_, file))| file.is_some()) {
        if let Some((other, _)) = files[..k].iter().find(|(_, earlier)| earlier == file) {
            return Err(Failure::input(format!(
                "{other} and {option} are the same file; give each a name of its own"
            )));
        }
    }
    Ok(())
}

/// Checks, before any work, that a file can be written to.
pub(crate) fn check_writable(path: &Path, option: &str) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err(Failure::input(format!(
            "{}: is a folder; give {option} a file name",
            path.display()
        )));
    }
    if !folder.is_dir() {
        return Err(Failure::input(format!(
            "{}: the folder {} does not exist; create it first",
            path.display(),
            folder.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_counts_have_commas() {
        for (x, text) in [
            (0.0, "0"),
            (2.265_012_3, "2.26501"),
            (-0.012_345_678, "-0.0123457"),
            (123_456.7, "123457"),
            (1.5e-7, "1.50000e-7"),
            (2e9, "2.00000e9"),
        ] {
            assert_eq!(number(x), text);
        }
        assert_eq!((rough(0.0, 1), rough(2.44e-4, 1)), ("0".to_owned(), "2.4e-4".to_owned()));
        for (n, text) in [(7, "7"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), text);
        }
    }
}
