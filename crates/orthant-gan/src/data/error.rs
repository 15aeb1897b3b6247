//! What can be wrong with a folder of data, in one line each.

use std::io;
use std::path::{Path, PathBuf};

/// Why images could not be read. Every message names the place and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such folder.
    #[error("{}: no such folder", .path.display())]
    NotFound {
        /// The folder.
        path: PathBuf,
    },

    /// The path is a file.
    #[error("{}: this is a file; give the folder that it is in", .path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },

    /// The operating system refused to read.
    #[error("{}: cannot be read: {source}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },

    /// A folder without images.
    #[error(
        "{}: no images here; expected CIFAR-10 batches (data_batch_1.bin), IDX files \
         (train-images-idx3-ubyte.gz) or .png and .jpg files{hint}", .path.display()
    )]
    Nothing {
        /// The folder.
        path: PathBuf,
        /// What is there and can be made use of.
        hint: String,
    },

    /// A folder with images of several kinds.
    #[error("{}: {first} and {second} in one folder; put each kind into a folder of its own", .path.display())]
    Mixed {
        /// The folder.
        path: PathBuf,
        /// One kind, with the name of a file.
        first: String,
        /// The other.
        second: String,
    },

    /// Several files that each might be the training images.
    #[error("{}: both {first} and {second} could be the {part} images; leave one of them in the folder", .path.display())]
    Several {
        /// The folder.
        path: PathBuf,
        /// What they would be.
        part: &'static str,
        /// A file.
        first: String,
        /// Another one.
        second: String,
    },

    /// Images to test with and none to train with.
    #[error("{}: {found} is for testing, and there is nothing to train with; add {expected}", .path.display())]
    OnlyTest {
        /// The folder.
        path: PathBuf,
        /// The file that is there.
        found: String,
        /// What is missing.
        expected: &'static str,
    },

    /// A file without a byte, or without an image.
    #[error("{}: the file holds no images; get a complete copy", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },

    /// A file that ends too early.
    #[error("{}: the file is truncated: {detail}; get a complete copy", .path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What is missing.
        detail: String,
    },

    /// A file that is not what its name says.
    #[error("{}: not {expected}: {detail}; remove the file or get the right one", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
        /// What is wrong.
        detail: String,
    },

    /// An image that is smaller than what is to be cut out of it.
    #[error("{}: {width} x {height} pixels, but data.crop is {crop}; lower data.crop, or remove the image", .path.display())]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// Of the image.
        width: usize,
        /// Of the image.
        height: usize,
        /// What is to be cut out.
        crop: usize,
    },

    /// Images of another number of channels.
    #[error(
        "{}: {} images, but data.channels is {wanted}; set data.channels = {found}",
        .path.display(), if *.found == 1 { "grey" } else { "colour" }
    )]
    Channels {
        /// The file.
        path: PathBuf,
        /// What the file has.
        found: usize,
        /// What was asked for.
        wanted: usize,
    },

    /// So few images that none are left to train or to test with.
    #[error("{}: {count} image{}, too few to hold out {held_out} of them; add images, or change data.held_out", .path.display(), if *.count == 1 { "" } else { "s" })]
    TooFew {
        /// The folder.
        path: PathBuf,
        /// How many there are.
        count: usize,
        /// The part that is to be held out.
        held_out: f64,
    },

    /// Numbers that are not as many as images of this size have.
    #[error("{found} numbers are not a number of images of {channels} x {side} x {side}")]
    Shape {
        /// Channels of an image.
        channels: usize,
        /// Its width and height.
        side: usize,
        /// How many numbers there are.
        found: usize,
    },
}

impl Error {
    /// An error of the operating system, or of a decoder that met the end of a file.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::Truncated { path, detail: "the data end too early".to_owned() }
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Error::Foreign {
                path,
                expected: "a sound gzip file",
                detail: source.to_string().replace('\n', " "),
            },
            _ => Error::Read { path, source },
        }
    }
}
