//! What a folder holds, by the names of its files.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::photos;

/// The files of a folder that matter, in the order of their names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    Cifar { train: Vec<PathBuf>, test: Vec<PathBuf> },
    Idx { train: Vec<PathBuf>, test: Vec<PathBuf> },
    Photos(Vec<PathBuf>),
}

impl Listing {
    pub(crate) fn of(folder: &Path) -> Result<Self, Error> {
        let path = folder.to_owned();
        match fs::metadata(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NotFound { path });
            }
            Err(source) => return Err(Error::Read { path, source }),
            Ok(metadata) if !metadata.is_dir() => return Err(Error::NotAFolder { path }),
            Ok(_) => {}
        }
        let (files, folders) = entries(folder)?;
        let cifar = select(&files, is_cifar);
        let idx = select(&files, |name| name.contains("idx3-ubyte"));
        let mut photos = Vec::new();
        collect_photos(files.clone(), folders.clone(), &mut photos)?;

        let kinds = [
            ("CIFAR-10 batches", cifar.first()),
            ("IDX files", idx.first()),
            ("image files", photos.first()),
        ];
        let mut there = kinds.iter().filter_map(|(kind, file)| {
            let file = (*file)?;
            let file = file.strip_prefix(folder).unwrap_or(file);
            Some(format!("{kind} ({})", file.display()))
        });
        if let (Some(first), Some(second)) = (there.next(), there.next()) {
            return Err(Error::Mixed { path, first, second });
        }
        if !cifar.is_empty() {
            let (test, train) = divide(cifar, |name| name.starts_with("test_batch"));
            require(folder, &train, &test, "data_batch_1.bin to data_batch_5.bin")?;
            return Ok(Listing::Cifar { train, test });
        }
        if !idx.is_empty() {
            let (test, train) = divide(idx, |name| name.contains("t10k") || name.contains("test"));
            require(folder, &train, &test, "train-images-idx3-ubyte.gz")?;
            only(folder, &train, "training")?;
            only(folder, &test, "test")?;
            return Ok(Listing::Idx { train, test });
        }
        if photos.is_empty() {
            return Err(Error::Nothing { path, hint: hint(&files, &folders) });
        }
        Ok(Listing::Photos(photos))
    }
}

/// Files and folders of a folder, without those that are hidden, sorted.
fn entries(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    let fail = |source| Error::Read { path: folder.to_owned(), source };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if name(&path).starts_with('.') {
            continue;
        }
        if path.is_dir() { folders.push(path) } else { files.push(path) }
    }
    files.sort_unstable();
    folders.sort_unstable();
    Ok((files, folders))
}

fn collect_photos(
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    photos: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    photos.extend(files.into_iter().filter(|path| photos::is_named_so(path)));
    for folder in folders {
        // A link may lead back to where it is from.
        if folder.is_symlink() {
            continue;
        }
        let (files, folders) = entries(&folder)?;
        collect_photos(files, folders, photos)?;
    }
    Ok(())
}

/// Files whose names are good; of one that is there twice, compressed and not, the latter.
fn select(files: &[PathBuf], good: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let good: Vec<&PathBuf> = files.iter().filter(|path| good(&name(path))).collect();
    let twice = |path: &Path| {
        path.extension().is_some_and(|e| e == "gz")
            && good.iter().any(|p| **p == path.with_extension(""))
    };
    good.iter().filter(|path| !twice(path)).map(|path| (*path).clone()).collect()
}

fn is_cifar(name: &str) -> bool {
    let known = name.starts_with("data_batch") || name.starts_with("test_batch");
    let mut ends = name.rsplit('.');
    let last = ends.next();
    known && (last == Some("bin") || (last == Some("gz") && ends.next() == Some("bin")))
}

fn divide(files: Vec<PathBuf>, is_first: impl Fn(&str) -> bool) -> (Vec<PathBuf>, Vec<PathBuf>) {
    files.into_iter().partition(|path| is_first(&name(path)))
}

fn require(
    folder: &Path,
    train: &[PathBuf],
    test: &[PathBuf],
    expected: &'static str,
) -> Result<(), Error> {
    match (train.first(), test.first()) {
        (None, Some(test)) => {
            Err(Error::OnlyTest { path: folder.to_owned(), found: name(test), expected })
        }
        _ => Ok(()),
    }
}

fn only(folder: &Path, files: &[PathBuf], part: &'static str) -> Result<(), Error> {
    match files {
        [first, second, ..] => Err(Error::Several {
            path: folder.to_owned(),
            part,
            first: name(first),
            second: name(second),
        }),
        _ => Ok(()),
    }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// What a person can do with what is there instead.
fn hint(files: &[PathBuf], folders: &[PathBuf]) -> String {
    let archive = files
        .iter()
        .map(|path| name(path))
        .find(|name| [".tar.gz", ".tgz", ".tar", ".zip"].iter().any(|end| name.ends_with(end)));
    if let Some(archive) = archive {
        return format!("; unpack {archive}, and give the folder that comes out");
    }
    if files.iter().any(|path| name(path).starts_with("data_batch")) {
        return "; these look like CIFAR-10 for Python, get the binary version".to_owned();
    }
    let good = |folder: &&PathBuf| {
        entries(folder).is_ok_and(|(files, _)| {
            files.iter().any(|path| is_cifar(&name(path)) || name(path).contains("idx3-ubyte"))
        })
    };
    match folders.iter().find(good) {
        Some(folder) => format!("; there are some in {}", folder.display()),
        None => String::new(),
    }
}
