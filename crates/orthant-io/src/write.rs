//! Files that are written completely or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::Builder;

use crate::error::Error;
use crate::identity::resolve;
use crate::source::label;

/// Writes a file through another one in the same directory, which takes its place when all is
/// written and on the disk.
///
/// If anything fails, `write` included, the file is as it was before. An existing file keeps its
/// permissions, and a symbolic link stays one. What is not a regular file, such as `/dev/stdout`,
/// cannot be replaced and is written to directly.
///
/// Until the end the new file has no name where the file system allows for that, so that nothing is left of it
/// however the process ends. Elsewhere its name is known to [`remove_temporaries`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("plan.csv");
/// orthant_io::write_atomic(&path, |out| writeln!(out, "x,y"))?;
/// assert_eq!(std::fs::read_to_string(&path)?, "x,y\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomic(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    replace(path, write).map_err(|reason| failure(path, reason))
}

/// Checks that a file can be written by [`write_atomic`], without leaving or changing anything.
///
/// It finds folders that are missing or read-only, files that are read-only, and names that are too long or no names
/// of files. A disk may still be full.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let check = || {
        let Some(target) = Target::of(path)? else { return Ok(()) };
        match target.unnamed()? {
            Some(_) => Ok(()),
            None => target.named().map(drop),
        }
    };
    check().map_err(|reason| failure(path, reason))
}

fn failure(path: &Path, reason: io::Error) -> Error {
    let path = label(path.as_os_str());
    match reason.kind() {
        io::ErrorKind::IsADirectory => Error::Directory { path },
        _ => Error::Write { path, reason },
    }
}

/// Temporary files that have names.
static TEMPORARIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn temporaries() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this lives, no file of [`write_atomic`] appears under its name, and no new temporary file is made.
#[derive(Debug)]
#[must_use = "files may be written again as soon as it is dropped"]
pub struct Halted(
    #[expect(dead_code, reason = "held, not used")] MutexGuard<'static, Vec<PathBuf>>,
);

/// Removes all temporary files, for a process that is about to end on a signal.
///
/// Files that are being written stay as they were. Call it from a thread, not from inside a signal handler, and keep
/// what it returns until the process has ended.
pub fn remove_temporaries() -> Halted {
    let mut names = temporaries();
    for name in names.drain(..) {
        // There is nobody left to tell.
        let _ = fs::remove_file(name);
    }
    Halted(names)
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let Some(target) = Target::of(path)? else {
        let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    };
    let mut file = match target.unnamed()? {
        Some(file) => Temporary::Unnamed(file),
        None => Temporary::Named(target.named()?),
    };
    let mut out = BufWriter::new(file.file());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    if let Some(permissions) = &target.permissions {
        file.file().set_permissions(permissions.clone())?;
    }
    file.file().sync_all()?;
    file.persist(&target)
}

/// A regular file that is to be written, there or not.
struct Target {
    /// Links resolved, so that the file that they lead to is replaced and not they.
    path: PathBuf,
    directory: PathBuf,
    permissions: Option<fs::Permissions>,
}

impl Target {
    /// Nothing if there is something other than a regular file in its place.
    fn of(path: &Path) -> io::Result<Option<Self>> {
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) || names_a_folder(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let permissions = match existing {
            Some(metadata) if !metadata.is_file() => return Ok(None),
            Some(metadata) => {
                writable(path)?;
                Some(metadata.permissions())
            }
            None => None,
        };
        let path = resolve(path)?;
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        if !directory.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such directory"));
        }
        Ok(Some(Target { path, directory, permissions }))
    }

    /// A file in the directory that has no name, if there can be one.
    #[cfg(target_os = "linux")]
    fn unnamed(&self) -> io::Result<Option<fs::File>> {
        use rustix::fs::{Mode, OFlags};
        use rustix::io::Errno;
        // It gets its name through this, so it must be there.
        if !Path::new("/proc/self/fd").is_dir() {
            return Ok(None);
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(&self.directory, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn unnamed(&self) -> io::Result<Option<fs::File>> {
        Ok(None)
    }

    fn named(&self) -> io::Result<Named> {
        let mut builder = Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary files are private by default; what is written here is an ordinary file.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let mut names = temporaries();
        let file = builder
            .tempfile_in(&self.directory)
            // The full error names the temporary file, which means nothing to the reader.
            .map_err(|error| io::Error::from(error.kind()))?;
        names.push(file.path().to_owned());
        Ok(Named(Some(file)))
    }
}

const PREFIX: &str = ".orthant-";
const SUFFIX: &str = ".tmp";

/// A name that ends in a separator or in dots is no name of a file.
fn names_a_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.file_name().is_none() || bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

/// An error if the existing file may not be written to, although it could be replaced.
#[cfg(unix)]
fn writable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?)
}

#[cfg(not(unix))]
fn writable(path: &Path) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path).map(drop)
}

/// A new file on its way to its name.
enum Temporary {
    Unnamed(fs::File),
    Named(Named),
}

/// A temporary file whose name is known to [`remove_temporaries`] as long as it has it.
struct Named(Option<tempfile::NamedTempFile>);

impl Temporary {
    fn file(&mut self) -> &mut fs::File {
        match self {
            Temporary::Unnamed(file) => file,
            Temporary::Named(Named(file)) => {
                file.as_mut().expect("kept until the end").as_file_mut()
            }
        }
    }

    /// Gives the file its name, in place of what has it now.
    fn persist(self, target: &Target) -> io::Result<()> {
        match self {
            Temporary::Unnamed(file) => link(&file, target),
            Temporary::Named(mut named) => {
                let file = named.0.take().expect("kept until the end");
                let mut names = temporaries();
                names.retain(|name| name != file.path());
                file.persist(&target.path).map(drop).map_err(|error| error.error)
            }
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            let mut names = temporaries();
            let path = file.path().to_owned();
            drop(file);
            names.retain(|name| *name != path);
        }
    }
}

/// Links a file without a name. A link replaces nothing, so another name has to do for a moment, during which the
/// process cannot end on a signal: [`remove_temporaries`] waits for it.
#[cfg(target_os = "linux")]
fn link(file: &fs::File, target: &Target) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    use std::os::fd::AsRawFd;

    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let names = temporaries();
    let mut number = u64::from(std::process::id()) << 16;
    let temporary = loop {
        let name = target.directory.join(format!("{PREFIX}{number:x}{SUFFIX}"));
        match rustix::fs::linkat(CWD, own.as_str(), CWD, &name, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => break name,
            Err(rustix::io::Errno::EXIST) => number += 1,
            Err(error) => return Err(error.into()),
        }
    };
    let renamed = fs::rename(&temporary, &target.path);
    if renamed.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    drop(names);
    renamed
}

#[cfg(not(target_os = "linux"))]
fn link(_: &fs::File, _: &Target) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where there are no files without names.
    #[test]
    fn temporary_names_are_forgotten_or_removed() {
        let directory = tempfile::tempdir().unwrap();
        let there = || fs::read_dir(directory.path()).unwrap().count();
        let target = Target::of(&directory.path().join("a.csv")).unwrap().unwrap();
        let known = || {
            let names = temporaries();
            names.iter().filter(|name| name.starts_with(directory.path())).count()
        };
        drop(target.named().unwrap());
        assert_eq!((there(), known()), (0, 0));
        Temporary::Named(target.named().unwrap()).persist(&target).unwrap();
        assert_eq!((there(), known()), (1, 0));
        assert!(target.path.exists());
        let half = target.named().unwrap();
        assert_eq!((there(), known()), (2, 1));
        drop(remove_temporaries());
        assert_eq!((there(), known()), (1, 0));
        assert!(Temporary::Named(half).persist(&target).is_err());
        assert_eq!(there(), 1);
    }
}
