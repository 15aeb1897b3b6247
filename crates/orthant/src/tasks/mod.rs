//! What is done with several clouds, one after the other or all together.

pub mod barycenter;
pub mod compare;
pub mod descent;
mod terms;
pub mod two_sample;
