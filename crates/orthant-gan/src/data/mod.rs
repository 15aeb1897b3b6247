//! Images to learn from: CIFAR-10 batches, IDX files, folders of images.
//!
//! [`load`] finds out what a folder holds by the names in it:
//!
//! | names | what they are | held out |
//! |---|---|---|
//! | `data_batch_*.bin`, `test_batch.bin` | CIFAR-10, binary version | the test batch |
//! | `*train*idx3-ubyte*`, `*t10k*idx3-ubyte*` | IDX: MNIST, Fashion-MNIST | the file for tests |
//! | `.png`, `.jpg`, `.jpeg`, also in folders within | any images, such as `CelebA` | a part |
//!
//! Batches and IDX files may be compressed (`.gz`). Images become squares: the centre is cut out and resized. Where there
//! is nothing for tests, a part of the images is held out ([`Options::held_out`]).

mod bytes;
mod cifar;
mod error;
mod fit;
mod idx;
mod images;
mod listing;
mod photos;
mod shuffle;

use std::path::{Path, PathBuf};

pub use error::Error;
pub use images::{Images, Pictures};
pub use shuffle::batch_indices;

pub(crate) use images::byte;

use fit::Fit;
use listing::Listing;

/// How images are to be made of what is in a folder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// 1 for grey, 3 for colour.
    pub channels: usize,
    /// Width and height.
    pub side: usize,
    /// Side of the square that is cut out of the middle before images are resized; without it, as large as can be.
    pub crop: Option<usize>,
    /// Part of the images that is held out, where the data have none for tests.
    pub held_out: f64,
}

/// Images to train with, and images that training never sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// To train with.
    pub train: Pictures,
    /// To test with.
    pub held_out: Pictures,
}

/// Reads the images of a folder.
///
/// ```no_run
/// use orthant_gan::data::{Options, load};
///
/// let options = Options { channels: 1, side: 32, crop: None, held_out: 0.1 };
/// let split = load("/usr/share/datasets/fashion-mnist".as_ref(), &options)?;
/// println!("{} images to train with, {} to test with", split.train.len(), split.held_out.len());
/// # Ok::<(), orthant_gan::data::Error>(())
/// ```
pub fn load(folder: &Path, options: &Options) -> Result<Split, Error> {
    load_with(folder, options, &|_, _| ())
}

/// The same; of images in files of their own it tells how many of how many are read.
pub fn load_with(
    folder: &Path,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Split, Error> {
    let Options { channels, side, crop, .. } = *options;
    let fit = Fit { channels, side, crop };
    let (train, test) = match Listing::of(folder)? {
        Listing::Cifar { train, test } => {
            both(&train, &test, |path, out| cifar::append(path, &fit, out))?
        }
        Listing::Idx { train, test } => {
            both(&train, &test, |path, out| idx::append(path, &fit, out))?
        }
        Listing::Photos(paths) => (photos::read(&paths, &fit, progress)?, Vec::new()),
    };
    let train = Pictures::new(channels, side, train)?;
    if !test.is_empty() {
        return Ok(Split { train, held_out: Pictures::new(channels, side, test)? });
    }
    let count = train.len();
    let (train, held_out) = train.divided(options.held_out);
    if train.is_empty() || (held_out.is_empty() && options.held_out > 0.0) {
        let (path, held_out) = (folder.to_owned(), options.held_out);
        return Err(Error::TooFew { path, count, held_out });
    }
    Ok(Split { train, held_out })
}

fn both(
    train: &[PathBuf],
    test: &[PathBuf],
    append: impl Fn(&Path, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let part = |paths: &[PathBuf]| {
        let mut bytes = Vec::new();
        paths.iter().try_for_each(|path| append(path, &mut bytes)).map(|()| bytes)
    };
    Ok((part(train)?, part(test)?))
}
