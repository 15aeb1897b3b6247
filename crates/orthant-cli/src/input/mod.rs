//! From files to clouds: one way for all commands.
//!
//! Files are read, split into groups, matched by the names of their columns, sampled and scaled; points keep the numbers of
//! their rows in the file all the way to the output.

mod cloud;
mod group;
mod naming;
mod prepare;

use std::ffi::OsStr;
use std::fmt::Write as _;

use orthant::Measure;
use orthant_io::{Header, Missing, Others, ReadOptions, match_columns, match_positions};
use orthant_support::Failure;
use orthant_support::number::{count, counted};

pub(crate) use cloud::Cloud;
pub(crate) use prepare::{Axes, Preparation};

use crate::args::{
    DecimalName, HeaderName, ManyClouds, MissingName, Reading, ScaleName, TwoClouds,
};
use crate::json::FileJson;
use crate::settings::Settings;

/// The standard input, as a file.
const PIPE: &str = "-";

/// A file to be read.
#[derive(Debug, Clone)]
pub(crate) struct Source<'a> {
    spec: &'a OsStr,
    weights: Option<String>,
    others: Others,
    /// Columns that are no coordinates, if they are there.
    skip: Vec<String>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(spec: &'a OsStr, weights: Option<&str>) -> Self {
        let weights = weights.map(str::to_owned);
        Source { spec, weights, others: Others::None, skip: Vec::new() }
    }

    /// With other columns, as text.
    pub(crate) fn others(mut self, others: Others) -> Self {
        self.others = others;
        self
    }

    /// Without these columns among the coordinates.
    pub(crate) fn skip(mut self, columns: &[String]) -> Self {
        self.skip.extend_from_slice(columns);
        self
    }

    pub(crate) fn change(self, change: impl FnOnce(Self) -> Self) -> Self {
        change(self)
    }
}

/// What a command works on.
pub(crate) struct Inputs {
    pub(crate) clouds: Vec<Cloud>,
    /// What was read, file by file.
    pub(crate) files: Vec<FileJson>,
    /// What happened to the points before anything else.
    pub(crate) preparation: Preparation,
    /// For people: what was dropped, sampled, scaled.
    remarks: Vec<String>,
}

impl Inputs {
    /// The two clouds of a command: two files, or two groups of one.
    pub(crate) fn two(
        clouds: &TwoClouds,
        settings: &Settings<'_>,
        change: impl Fn(orthant::Side, Source<'_>) -> Source<'_>,
    ) -> Result<Self, Failure> {
        let both = settings.common.basic.weights.as_deref();
        let [x, y] = [&clouds.weights_x, &clouds.weights_y].map(|own| own.as_deref().or(both));
        let first = Source::new(&clouds.x, x);
        match (&clouds.y, &clouds.group) {
            (Some(second), None) => {
                let second = Source::new(second, y);
                let sources = [change(orthant::Side::X, first), change(orthant::Side::Y, second)];
                Reader::new(settings).files(&sources)
            }
            (None, Some(column)) => {
                if clouds.weights_x.is_some() || clouds.weights_y.is_some() {
                    return Err(Failure::input(
                        "--weights-x and --weights-y are for two files; with --group give --weights",
                    ));
                }
                // Whatever is wanted of either cloud comes from the one file.
                let source = change(orthant::Side::Y, change(orthant::Side::X, first));
                let between = group::Wanted::Two(clouds.between.as_deref());
                Reader::new(settings).groups(source, column, between)
            }
            (Some(_), Some(_)) => Err(Failure::input(
                "--group splits one file into two clouds; give one file, or leave --group out",
            )),
            (None, None) => Err(Failure::input(format!(
                "{}: one cloud cannot be compared; give a second file, or --group COLUMN to split this one",
                name(&clouds.x)
            ))),
        }
    }

    /// Several clouds: files, or the groups of one.
    pub(crate) fn many(clouds: &ManyClouds, settings: &Settings<'_>) -> Result<Self, Failure> {
        let weights = settings.common.basic.weights.as_deref();
        let sources: Vec<Source<'_>> =
            clouds.files.iter().map(|file| Source::new(file, weights)).collect();
        match (&clouds.group, &sources[..]) {
            (Some(column), [source]) => {
                Reader::new(settings).groups(source.clone(), column, group::Wanted::All)
            }
            (Some(_), _) => Err(Failure::input(
                "--group splits one file into clouds; give one file, or leave --group out to compare files",
            )),
            (None, [only]) => Err(Failure::input(format!(
                "{}: one cloud cannot be compared; give more files, or --group COLUMN to split this one",
                name(only.spec)
            ))),
            (None, sources) => Reader::new(settings).files(sources),
        }
    }

    /// Reads another file like those that are there: the same columns, prepared in the same way, all of its rows.
    pub(crate) fn read_like(
        &self,
        source: &Source<'_>,
        settings: &Settings<'_>,
    ) -> Result<Cloud, Failure> {
        let mut reader = Reader::new(settings);
        let mut read = reader.read(source)?;
        reader.note_all();
        let reference = &self.clouds[0];
        reference.match_with(&mut read, settings.common.reading.by_position)?;
        let mut cloud = Cloud::of_file(read, name(source.spec));
        self.preparation.apply(&mut cloud);
        Ok(cloud)
    }

    /// The measures of the clouds.
    pub(crate) fn measures(&self, settings: &Settings<'_>) -> Result<Vec<Measure<'_>>, Failure> {
        self.clouds.iter().map(|cloud| cloud.measure(settings.normalize)).collect()
    }

    /// Those of two clouds.
    pub(crate) fn pair(&self, settings: &Settings<'_>) -> Result<[Measure<'_>; 2], Failure> {
        Ok([
            self.clouds[0].measure(settings.normalize)?,
            self.clouds[1].measure(settings.normalize)?,
        ])
    }

    /// One of two clouds.
    pub(crate) fn get(&self, cloud: orthant::Side) -> &Cloud {
        &self.clouds[cloud as usize]
    }

    /// Names of two clouds.
    pub(crate) fn names(&self) -> [&str; 2] {
        [&self.clouds[0].name, &self.clouds[1].name]
    }

    /// The coordinates, the weights, and what was done to the rows and the points: lines for people.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![self.columns_text()];
        lines.extend(self.remarks.iter().cloned());
        lines.join("\n")
    }

    /// `coordinates: east, north; weights: count`.
    fn columns_text(&self) -> String {
        const SHOWN: usize = 8;
        let Some(first) = self.files.first() else { return String::new() };
        let list = |columns: &[String]| {
            let shown: Vec<&str> = columns.iter().take(SHOWN).map(String::as_str).collect();
            match columns.len() - shown.len() {
                0 => shown.join(", "),
                more => format!("{} and {more} more", shown.join(", ")),
            }
        };
        let noun =
            if self.clouds[0].columns.is_some() { "coordinates" } else { "coordinates in columns" };
        let mut text = format!("{noun}: {}", list(&first.columns));
        if let Some(other) = self.files.iter().find(|file| file.columns != first.columns) {
            let _ = write!(text, " (in {}: {})", other.path, list(&other.columns));
        }
        let mut weights: Vec<&str> = Vec::new();
        for name in self.files.iter().filter_map(|file| file.weights.as_deref()) {
            if !weights.contains(&name) {
                weights.push(name);
            }
        }
        if !weights.is_empty() {
            let _ = write!(text, "; weights: {}", weights.join(", "));
        }
        text
    }
}

/// Reads files, one after the other, within the memory that there is.
struct Reader<'a> {
    settings: &'a Settings<'a>,
    memory: Option<u64>,
    files: Vec<FileJson>,
    remarks: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(settings: &'a Settings<'a>) -> Self {
        let memory = settings.memory();
        Reader { settings, memory, files: Vec::new(), remarks: Vec::new() }
    }

    fn files(mut self, sources: &[Source<'_>]) -> Result<Inputs, Failure> {
        let by_position = self.settings.common.reading.by_position;
        let names = names_of(sources.iter().map(|source| source.spec));
        let mut clouds: Vec<orthant_io::Cloud> = Vec::with_capacity(sources.len());
        for source in sources {
            let mut cloud = self.read(source)?;
            if let Some(first) = clouds.first() {
                if by_position {
                    match_positions(first, &cloud)?;
                } else {
                    match_columns(first, &mut cloud)?;
                }
                // In the order in which they are used.
                if let Some(file) = self.files.last_mut() {
                    file.columns = column_names(&cloud);
                }
            }
            clouds.push(cloud);
        }
        let clouds = clouds
            .into_iter()
            .zip(sources.iter().zip(names))
            .map(|(cloud, (source, short))| Cloud::of_file(cloud, name(source.spec)).called(short))
            .collect();
        self.finish(clouds)
    }

    fn groups(
        mut self,
        source: Source<'_>,
        column: &str,
        wanted: group::Wanted<'_>,
    ) -> Result<Inputs, Failure> {
        let source = source.change(|source| group::with_column(source, column));
        let file = self.read(&source)?;
        let clouds = group::split(file, column, wanted, self.settings.common.reading.missing)?;
        self.finish(clouds)
    }

    fn finish(mut self, mut clouds: Vec<Cloud>) -> Result<Inputs, Failure> {
        let Reading { scale, pca, sample, .. } = self.settings.common.reading;
        if let Some(sample) = sample {
            let seed = self.settings.common.kernel.seed;
            let most = usize::try_from(sample).unwrap_or(usize::MAX);
            for (k, cloud) in clouds.iter_mut().enumerate() {
                let before = cloud.len();
                if cloud.sample(most, seed, k as u64) {
                    self.remarks.push(format!(
                        "{}: a sample of {} of {} rows (seed {seed})",
                        cloud.name,
                        count(most),
                        count(before)
                    ));
                }
            }
        }
        let pca = pca.map(|k| k as usize);
        let preparation = Preparation::fit(&clouds, scale, pca)?;
        if scale == ScaleName::None
            && let Some(warning) = prepare::uneven(&clouds)
        {
            self.note(&warning);
        }
        for cloud in &mut clouds {
            preparation.apply(cloud);
        }
        self.remarks.extend(preparation.text());
        self.note_all();
        let Reader { files, remarks, .. } = self;
        Ok(Inputs { clouds, files, preparation, remarks })
    }

    /// Reads one file.
    fn read(&mut self, source: &Source<'_>) -> Result<orthant_io::Cloud, Failure> {
        let mut options = self.options();
        options.weights.clone_from(&source.weights);
        options.others.clone_from(&source.others);
        options.skip.clone_from(&source.skip);
        options.max_bytes = self.memory;
        let cloud = orthant_io::read(source.spec, &options)?;
        self.memory = self.memory.map(|left| left.saturating_sub(bytes_of(&cloud)));
        if cloud.dropped > 0 {
            self.remarks.push(format!(
                "{}: {} with missing values dropped",
                cloud.path,
                counted(cloud.dropped, "row")
            ));
        }
        self.files.push(FileJson {
            path: cloud.path.clone(),
            columns: column_names(&cloud),
            weights: cloud.weights_name.clone(),
            rows: cloud.total_rows(),
            dropped: cloud.dropped,
            notes: cloud.notes.iter().map(ToString::to_string).collect(),
        });
        Ok(cloud)
    }

    /// What is said of all files.
    fn options(&self) -> ReadOptions {
        let reading = &self.settings.common.reading;
        let mut options = ReadOptions::default();
        options.columns.clone_from(&self.settings.common.basic.columns);
        options.missing = match reading.missing {
            MissingName::Error => Missing::Error,
            MissingName::Drop => Missing::Drop,
        };
        options.header = match reading.header {
            HeaderName::Auto => Header::Auto,
            HeaderName::Yes => Header::Yes,
            HeaderName::No => Header::No,
        };
        options.separator = reading.separator;
        options.decimal_comma = reading.decimal == DecimalName::Comma;
        options
    }

    /// Says on standard error what was decided while files were read.
    fn note_all(&self) {
        let mut said: Vec<&String> = Vec::new();
        for note in self.files.iter().flat_map(|file| &file.notes) {
            // A file may be read twice.
            if !said.contains(&note) {
                self.note(note);
                said.push(note);
            }
        }
    }

    fn note(&self, note: &str) {
        if !self.settings.common.basic.quiet {
            #[expect(clippy::print_stderr, reason = "the place where notes are printed")]
            {
                eprintln!("orthant: note: {note}");
            }
        }
    }
}

/// What a cloud takes, about.
fn bytes_of(cloud: &orthant_io::Cloud) -> u64 {
    let others: usize =
        cloud.others.iter().flat_map(|other| &other.cells).map(|cell| 24 + cell.len()).sum();
    (8 * (cloud.values.len() + cloud.weights.as_ref().map_or(0, Vec::len)) + others) as u64
}

/// The coordinates by name, or by position from 1.
fn column_names(cloud: &orthant_io::Cloud) -> Vec<String> {
    let name = |(c, position): (usize, &usize)| match &cloud.columns {
        Some(names) if !names[c].is_empty() => names[c].clone(),
        _ => (position + 1).to_string(),
    };
    cloud.positions.iter().enumerate().map(name).collect()
}

/// How messages call a file.
pub(crate) fn name(spec: &OsStr) -> String {
    if spec == PIPE { "standard input".to_owned() } else { spec.to_string_lossy().into_owned() }
}

/// Files without folder and extension, unless that would leave two of them the same name.
fn names_of<'a>(files: impl Iterator<Item = &'a OsStr>) -> Vec<String> {
    let files: Vec<String> = files.map(name).collect();
    let stem = |file: &String| -> String {
        if file == "standard input" {
            return file.clone();
        }
        let name = file.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(file);
        // An array of an archive keeps its key.
        let lower = name.to_ascii_lowercase();
        let key = [".npz:", ".h5:", ".hdf5:", ".h5ad:"]
            .iter()
            .find_map(|mark| lower.find(mark).map(|at| at + mark.len() - 1));
        let (name, key) = key.map_or((name, ""), |at| name.split_at(at));
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let stem =
            std::path::Path::new(name).file_stem().map_or(name.into(), |s| s.to_string_lossy());
        format!("{stem}{key}")
    };
    let stems: Vec<String> = files.iter().map(stem).collect();
    let mut names: Vec<String> = Vec::new();
    for (file, stem) in files.iter().zip(&stems) {
        let alone = stems.iter().filter(|s| *s == stem).count() == 1;
        let base = if alone { stem } else { file };
        let mut name = base.clone();
        let mut copy = 1;
        while names.contains(&name) {
            copy += 1;
            name = format!("{base} ({copy})");
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stems_and_unique() {
        let names_of = |files: &[&str]| names_of(files.iter().map(OsStr::new));
        assert_eq!(names_of(&["a.csv", "data/b.csv.gz", "c"]), ["a", "b", "c"]);
        assert_eq!(
            names_of(&["x/a.csv", "y/a.csv", "-"]),
            ["x/a.csv", "y/a.csv", "standard input"]
        );
        assert_eq!(names_of(&["a.csv", "a.csv", "a.csv"]), ["a.csv", "a.csv (2)", "a.csv (3)"]);
        assert_eq!(names_of(&["d/a.npz:x", "d/a.npz:y"]), ["a:x", "a:y"]);
        assert_eq!(names_of(&["a.1.csv", "a.2.csv", ".csv"]), ["a.1", "a.2", ".csv"]);
    }
}
