//! Files that a command will write: checked before any work.
//!
//! Nothing may replace a file that is read, nor what the same command writes elsewhere; folders must be there and writable;
//! and the suffix of a name says what is written, or is refused.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use orthant_io::{TableFormat, files_of, same_file};
use orthant_support::Failure;

use crate::input;

/// A table to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) format: TableFormat,
}

/// What is read and what will be written.
#[derive(Debug, Default)]
pub(crate) struct Outputs<'a> {
    inputs: Vec<(String, Vec<PathBuf>)>,
    written: Vec<(&'static str, &'a Path)>,
    /// A name that stands for many.
    frames: Option<&'a Path>,
}

impl<'a> Outputs<'a> {
    /// Of a command that reads these files.
    pub(crate) fn beside<'s>(inputs: impl IntoIterator<Item = &'s OsStr>) -> Result<Self, Failure> {
        let input = |spec: &OsStr| {
            // What the standard input is connected with may be a file.
            let files = if spec == "-" { vec!["/dev/stdin".into()] } else { files_of(spec) };
            (input::name(spec), files)
        };
        let inputs: Vec<&OsStr> = inputs.into_iter().collect();
        if inputs.iter().filter(|spec| **spec == "-").count() > 1 {
            return Err(Failure::input(
                "only one of the files can come from standard input; give files for the others",
            ));
        }
        let inputs = inputs.into_iter().map(input).collect();
        Ok(Outputs { inputs, ..Outputs::default() })
    }

    /// A table in a format of its name.
    pub(crate) fn table(
        &mut self,
        option: &'static str,
        path: Option<&'a PathBuf>,
    ) -> Result<Option<TableFile<'a>>, Failure> {
        let Some(path) = path else { return Ok(None) };
        let format = if is_special(path) { TableFormat::Csv } else { TableFormat::of(path)? };
        self.add(option, path)?;
        Ok(Some(TableFile { path, format }))
    }

    /// A picture.
    pub(crate) fn picture(
        &mut self,
        option: &'static str,
        path: Option<&'a PathBuf>,
    ) -> Result<Option<&'a Path>, Failure> {
        let Some(path) = path else { return Ok(None) };
        if !has_suffix(path, &["svg", "png"]) {
            return Err(orthant_draw::Error::Format(path.display().to_string()).into());
        }
        if let Some(frames) = self.frames
            && is_frame_of(path, frames)
        {
            return Err(Failure::input(format!(
                "{}: --frames will write a file of this name; give {option} another",
                path.display()
            )));
        }
        self.add(option, path)?;
        Ok(Some(path))
    }

    /// A name for many pictures: `frame.png` stands for `frame-000.png`, `frame-001.png` and so on.
    pub(crate) fn frames(
        &mut self,
        option: &'static str,
        path: Option<&'a PathBuf>,
    ) -> Result<Option<&'a Path>, Failure> {
        let path = self.picture(option, path)?;
        self.frames = path;
        // The name itself is not written.
        self.written.retain(|(other, _)| *other != option);
        if let Some(path) = path {
            let clash = self.written.iter().find(|(_, other)| is_frame_of(other, path));
            if let Some((other, file)) = clash {
                return Err(Failure::input(format!(
                    "{}: {option} will write a file of this name; give {other} another",
                    file.display()
                )));
            }
        }
        Ok(path)
    }

    /// JSON Lines.
    pub(crate) fn lines(
        &mut self,
        option: &'static str,
        path: Option<&'a PathBuf>,
    ) -> Result<Option<&'a Path>, Failure> {
        self.named(option, path, &["jsonl", "ndjson", "json"], ".jsonl")
    }

    /// A page.
    pub(crate) fn page(
        &mut self,
        option: &'static str,
        path: Option<&'a PathBuf>,
    ) -> Result<Option<&'a Path>, Failure> {
        self.named(option, path, &["html", "htm"], ".html")
    }

    /// A file that is read and added to.
    pub(crate) fn journal(
        &mut self,
        option: &'static str,
        path: Option<&'a PathBuf>,
    ) -> Result<Option<&'a Path>, Failure> {
        if let Some(path) = path
            && is_special(path)
        {
            return Err(Failure::input(format!(
                "{}: is a device or a pipe, which keeps nothing; give {option} a file name",
                path.display()
            )));
        }
        self.lines(option, path)
    }

    fn named(
        &mut self,
        option: &'static str,
        path: Option<&'a PathBuf>,
        suffixes: &[&str],
        usual: &str,
    ) -> Result<Option<&'a Path>, Failure> {
        let Some(path) = path else { return Ok(None) };
        if !has_suffix(path, suffixes) && !is_special(path) {
            return Err(Failure::input(format!(
                "{}: {option} writes no such file; name it {usual}",
                path.display()
            )));
        }
        self.add(option, path)?;
        Ok(Some(path))
    }

    /// Checks one more file against those that there are.
    fn add(&mut self, option: &'static str, path: &'a Path) -> Result<(), Failure> {
        for (name, files) in &self.inputs {
            if files.iter().any(|file| same_file(file, path)) {
                return Err(Failure::input(format!(
                    "{}: {option} would replace {name}, which is read; give {option} another name",
                    path.display()
                )));
            }
        }
        if let Some((other, _)) = self.written.iter().find(|(_, file)| same_file(file, path)) {
            return Err(Failure::input(format!(
                "{other} and {option} are the same file; give each a name of its own"
            )));
        }
        orthant_io::check_writable(path)?;
        self.written.push((option, path));
        Ok(())
    }
}

/// `frame.png` as `frame-007.png`.
pub(crate) fn frame(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number:03}."));
    name.push(path.extension().unwrap_or_default());
    path.with_file_name(name)
}

/// Whether a name may be that of a frame.
fn is_frame_of(path: &Path, frames: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = frames.file_stem().unwrap_or_default().to_string_lossy();
    let digits = name.strip_prefix(&*stem).and_then(|rest| rest.strip_prefix('-'));
    let digits = digits.and_then(|rest| rest.split('.').next());
    let number =
        digits.filter(|digits| digits.len() >= 3).and_then(|digits| digits.parse::<usize>().ok());
    number.is_some_and(|number| same_file(path, &frame(frames, number)))
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    path.extension().is_some_and(|e| suffixes.iter().any(|suffix| e.eq_ignore_ascii_case(suffix)))
}

/// Whether a path is there and no regular file: a device, a pipe.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered() {
        assert_eq!(frame(Path::new("a/f.png"), 7), Path::new("a/f-007.png"));
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(is_frame_of(&at("f-012.png"), &at("f.png")));
        assert!(is_frame_of(&at("f-1234.png"), &at("f.png")));
        for other in ["f.png", "f-12.png", "f-012.svg", "g-012.png", "f-x12.png"] {
            assert!(!is_frame_of(&at(other), &at("f.png")), "{other}");
        }
    }
}
