//! The experiments.

mod barycentre;
mod complexity;
mod divergences;
mod ratio;
mod tradeoff;

pub(crate) use barycentre::Barycentre;
pub(crate) use complexity::Complexity;
pub(crate) use divergences::Divergences;
pub(crate) use ratio::Ratio;
pub(crate) use tradeoff::Tradeoff;
