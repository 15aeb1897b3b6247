//! Designs: where the anchors of Gaussian features are put.

mod lattice;
mod local;
mod orthogonal;
mod quantile;
mod random;
mod sobol;
pub(crate) mod variance;

pub(crate) use lattice::value_bound;
pub use lattice::{Lattice, MOST_AXES, poisson_error};
pub(crate) use local::Clusters;
pub use random::Draw;
pub(crate) use random::normals;
pub(crate) use variance::{best_q, paper_q};
