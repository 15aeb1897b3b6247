//! Why there is no picture, and the checks that find out.

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to draw.
    #[error("there is nothing to draw")]
    Empty,
    /// A number that has no place.
    #[error("{what}: {value} has no place in a picture")]
    NotFinite {
        /// Where it was.
        what: String,
        /// Which it was.
        value: f64,
    },
    /// Numbers and names that do not fit together.
    #[error("{what}: {got} where there should be {expected}")]
    Shape {
        /// What they are.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// Names on logarithmic axes.
    #[error("points with names need axes that are not logarithmic")]
    Logarithmic,
    /// Neither `.svg` nor `.png`.
    #[error("{0}: pictures are .svg or .png")]
    Format(String),
    /// The picture could not be drawn as pixels.
    #[error("the picture could not be drawn: {0}")]
    Render(String),
}

/// What came of it.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn check(what: &str, numbers: impl IntoIterator<Item = f64>) -> Result<()> {
    match numbers.into_iter().find(|x| !x.is_finite()) {
        None => Ok(()),
        Some(value) => Err(Error::NotFinite { what: what.to_owned(), value }),
    }
}

pub(crate) fn same(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { what, expected, got }) }
}
