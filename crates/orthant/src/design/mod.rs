//! Designs: where the anchors of features are put.

mod orthogonal;
mod quantile;
mod random;
mod sobol;

pub use random::Draw;
pub(crate) use random::normals;
