//! Who watches a solve and what ends it: observers, tokens, limits of time and memory.

mod cancel;
mod clock;
pub(crate) mod memory;
mod observer;

pub use cancel::Cancel;
pub(crate) use clock::Clock;
pub(crate) use observer::{Clocked, Watched, begin};
pub use observer::{Next, Observer, Progress, Stop};

pub use crate::words::{Phase, Term};
