//! Pictures of point clouds, curves and matrices, as SVG and PNG.
//!
//! Everything that draws is here: a [`Panel`] is one pair of axes, one matrix or one tree, a [`Picture`] is one panel or
//! several side by side. A picture says nothing that its numbers do not: points that are not finite are an error, and
//! clouds that are too large to be seen point by point are thinned evenly. What colours mean is told by a bar, numbers
//! that count have no fractions beside them, and names are shortened so that they can still be told apart.

mod bar;
mod canvas;
mod error;
mod marks;
mod matrix;
mod names;
mod panel;
mod picture;
mod text;
mod tree;

pub use error::{Error, Result};
pub use panel::Panel;
pub use picture::Picture;
pub use text::shortened;

/// Colours that can be told apart, also by the colour-blind: blue, orange, green, pink, sky, brown, yellow, black.
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8c510a", "#e69f00", "#000000"];

/// Points that are drawn of a cloud, at most.
pub const MOST_POINTS: usize = 4_000;
/// Arrows that are drawn, at most.
pub const MOST_ARROWS: usize = 150;
/// Letters of a name of a row, a leaf or a point, at most.
pub const MOST_LETTERS: usize = 32;

/// Places of at most `most` of `count` things, evenly.
pub fn thinned(count: usize, most: usize) -> Vec<usize> {
    let kept = count.min(most);
    (0..kept).map(|k| k * count / kept.max(1)).collect()
}
