//! What is done with several clouds, one after the other or all together.

pub(crate) mod barycenter;
pub(crate) mod compare;
pub(crate) mod descent;
mod terms;
pub(crate) mod two_sample;
