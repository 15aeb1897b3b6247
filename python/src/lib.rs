//! The extension module of the Python package `orthant`: arrays in, arrays out, the library in between.
//!
//! What users see is in `package/orthant`; its functions hand their arguments to those here, which check them.
#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments of functions that Python calls are what it hands over"
)]

mod arrays;
mod barycenter;
mod clouds;
mod compare;
mod descent;
mod errors;
mod features;
mod methods;
mod pickle;
mod plan;
mod results;
mod settings;
mod solve;
mod two_sample;
mod watch;

/// The module.
#[pyo3::pymodule]
mod _orthant {
    #[pymodule_export]
    use crate::barycenter::{Barycenter, barycenter};
    #[pymodule_export]
    use crate::compare::{Compared, Comparison, compare};
    #[pymodule_export]
    use crate::descent::{Flow, FreeBarycenter, Step, flow, free_barycenter};
    #[pymodule_export]
    use crate::features::{FeatureMap, paper_q};
    #[pymodule_export]
    use crate::pickle::restored;
    #[pymodule_export]
    use crate::plan::{Plan, plan};
    #[pymodule_export]
    use crate::results::{Divergence, Interval, Solution};
    #[pymodule_export]
    use crate::solve::{Gradient, checked, divergence, gradient, rot};
    #[pymodule_export]
    use crate::two_sample::{TwoSample, two_sample_test};
    #[pymodule_export]
    use crate::watch::{Advance, Progress};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
