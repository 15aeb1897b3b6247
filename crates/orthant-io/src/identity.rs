//! When two names are of one file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whether two paths are the same regular file, or would be if it were written: links, `.` and `..` are resolved.
///
/// Devices and pipes are never the same, as writing to one replaces nothing.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("a.csv");
/// # std::fs::write(&path, "")?;
/// let detour = directory.path().join("./a.csv");
/// assert!(orthant_io::same_file(&path, &detour));
/// assert!(!orthant_io::same_file(&path, &directory.path().join("b.csv")));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(first), Ok(second)) => {
            first.is_file() && second.is_file() && same_existing((a, &first), (b, &second))
        }
        (Err(_), Err(_)) => match (resolve(a), resolve(b)) {
            (Ok(first), Ok(second)) => first == second,
            _ => a == b,
        },
        _ => false,
    }
}

#[cfg(unix)]
fn same_existing((_, a): (&Path, &fs::Metadata), (_, b): (&Path, &fs::Metadata)) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_existing((a, _): (&Path, &fs::Metadata), (b, _): (&Path, &fs::Metadata)) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// The path without links, `.` and `..`; the file itself need not be there, and a link may lead to nothing yet.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    // As many links as systems follow.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let Some(name) = path.file_name() else { return fs::canonicalize(&path) };
        let parent = match fs::canonicalize(parent) {
            Ok(parent) => parent,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::new(error.kind(), "there is no such directory"));
            }
            Err(error) => return Err(error),
        };
        let here = parent.join(name);
        match fs::read_link(&here) {
            Ok(target) => path = parent.join(target),
            Err(_) => return Ok(here),
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}
