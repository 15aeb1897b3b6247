//! Folders of images: .png and .jpg files, also in folders within.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use image::ImageReader;
use rayon::prelude::*;

use super::error::Error;
use super::fit::Fit;

const EXPECTED: &str = "an image that can be read";

/// Whether the name is that of an image.
pub(crate) fn is_named_so(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["png", "jpg", "jpeg"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// Reads images, several at once. Of the files that are bad, the first is reported, whichever thread had it.
pub(crate) fn read(
    paths: &[PathBuf],
    fit: &Fit,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<u8>, Error> {
    let size = fit.size();
    let mut bytes = vec![0; paths.len() * size];
    let done = AtomicUsize::new(0);
    let mut failures: Vec<(usize, Error)> = bytes
        .par_chunks_exact_mut(size)
        .zip(paths)
        .enumerate()
        .filter_map(|(k, (place, path))| {
            let read = one(path, fit, place);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, paths.len());
            read.err().map(|error| (k, error))
        })
        .collect();
    failures.sort_by_key(|(k, _)| *k);
    match failures.into_iter().next() {
        None => Ok(bytes),
        Some((_, error)) => Err(error),
    }
}

fn one(path: &Path, fit: &Fit, place: &mut [u8]) -> Result<(), Error> {
    let mut file = Vec::new();
    File::open(path)
        .and_then(|mut f| f.read_to_end(&mut file))
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if file.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    if is_cut_jpeg(&file) {
        let detail = "there is no end of the image".to_owned();
        return Err(Error::Truncated { path: path.to_owned(), detail });
    }
    let decoded = ImageReader::new(Cursor::new(&file)).with_guessed_format();
    let decoded = decoded.map_err(image::ImageError::IoError).and_then(ImageReader::decode);
    let image = decoded.map_err(|error| Error::Foreign {
        path: path.to_owned(),
        expected: EXPECTED,
        detail: error.to_string().replace('\n', " "),
    })?;
    fit.put(&image, path, place)
}

/// Whether a JPEG ends before its end. Decoders fill up what is missing with grey and say nothing.
fn is_cut_jpeg(file: &[u8]) -> bool {
    if !file.starts_with(&[0xff, 0xd8]) {
        return false;
    }
    // Data of an image never have these two bytes, so the last start is that of the image itself.
    let last = |marker: u8| file.windows(2).rposition(|w| w == [0xff, marker]);
    match (last(0xda), last(0xd9)) {
        (Some(start), Some(end)) => end < start,
        _ => true,
    }
}
