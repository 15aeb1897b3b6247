//! What the commands of Orthant share, and the library has no use for.
//!
//! `orthant`, `orthant-bench`, `orthant-lab` and `orthant-gan` end with the same exit codes ([`failure`]), write numbers and
//! tables in the same way ([`number`], [`table`]), and solve the same problems of the paper ([`clouds`]).

pub mod clouds;
pub mod failure;
pub mod html;
pub mod memory;
pub mod number;
pub mod progress;
pub mod stdout;
pub mod table;
mod threads;

pub use failure::Failure;
pub use threads::Threads;
