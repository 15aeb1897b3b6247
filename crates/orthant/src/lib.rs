//! Optimal transport in linear time.

pub mod bench;
mod error;
pub mod features;
mod frame;
mod kernel;
mod measure;
mod options;
mod rot;
mod simd;
mod sinkhorn;
mod solution;
pub mod theory;

pub use error::{Cloud, Error, Result, Shape};
pub use kernel::CostMatrix;
pub use measure::{Measure, Points, Support, Values, mean_squared_distance};
pub use options::{Cost, Features, Method, Options, OptionsBuilder, Precision};
pub use rot::{Solver, divergence, rot};
pub use sinkhorn::{Next, Observer, Progress, Stop, Term};
pub use solution::{Divergence, PAIRS_LIMIT, Solution, Times, Used};
