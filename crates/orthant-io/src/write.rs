//! Files that are written completely or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::Builder;

use crate::error::Error;

/// Writes a file through a temporary one in the same directory, which takes its place when all is
/// written and on the disk.
///
/// If anything fails, `write` included, the file is as it was before. An existing file keeps its
/// permissions, and a symbolic link stays one. What is not a regular file, such as `/dev/stdout`,
/// cannot be replaced and is written to directly.
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
    replace(path, write).map_err(|source| {
        let path = path.display().to_string();
        match source.kind() {
            io::ErrorKind::IsADirectory => Error::Directory { path },
            _ => Error::Write { path, source },
        }
    })
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let existing = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(metadata) = &existing {
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
            write(&mut out)?;
            return out.flush();
        }
    }
    // A link is followed, so that the file it leads to is replaced and not the link.
    let target = match &existing {
        Some(_) => fs::canonicalize(path)?,
        None => path.to_owned(),
    };
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };

    let mut builder = Builder::new();
    builder.prefix(".orthant-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private by default; what is written here is an ordinary file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    if !directory.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such directory"));
    }
    let mut file = builder
        .tempfile_in(directory)
        // The full error names the temporary file, which means nothing to the reader.
        .map_err(|error| io::Error::from(error.kind()))?;
    let mut out = BufWriter::new(file.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    if let Some(metadata) = existing {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&target)?;
    Ok(())
}
