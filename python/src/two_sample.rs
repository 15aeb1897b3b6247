//! Two-sample tests.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raised;
use crate::methods::methods;
use crate::pickle::{Reduced, reduced};
use crate::results::{Interval, Lazy, Lines, interval, seconds, short};
use crate::settings::{ScaleOfTwo, extract};
use crate::solve::{Between, Object, scaled};
use crate::watch::{Advance, run};

#[pyfunction]
pub(crate) fn two_sample_test<'py>(
    py: Python<'py>,
    x: Option<Object<'py>>,
    y: Option<Object<'py>>,
    epsilon: Option<Object<'py>>,
    a: Option<Object<'py>>,
    b: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<TwoSample> {
    let permutations: usize = match settings.get_item("permutations")? {
        Some(count) => extract(&count, "permutations", "a positive integer")?,
        None => 999,
    };
    // Permutations must not change epsilon.
    let epsilon = (epsilon, (|scale, cost, both| scale.of_all(cost, both)) as ScaleOfTwo);
    scaled([x, y], [a, b], epsilon, settings, |given| {
        let Between { settings, mu, nu, options, matrices, .. } = given;
        let inner = run(py, settings.watch()?, |shared| {
            let mut each = |done: usize, total: usize| {
                shared.tell(|| Advance { what: "permutations", done, total, value: None })
            };
            let test = matrices.test(options).permutations(permutations);
            test.observer(&mut each).run(mu, nu)
        })?;
        Ok(TwoSample::new(inner.map_err(raised)?))
    })
}

/// The result of a test.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct TwoSample {
    inner: orthant::two_sample::TwoSample,
    null: Lazy,
}

methods! {
    TwoSample [solved shown] {
        /// `(1 + exceeding) / (1 + permutations)`: the probability of a divergence at least as large, if the clouds are
        /// from one distribution.
        #[getter]
        fn pvalue(&self) -> f64 {
            self.inner.p_value
        }

        /// The smallest p-value that there can be.
        #[getter]
        fn resolution(&self) -> f64 {
            self.inner.resolution
        }

        /// The divergence of the clouds under the kernel that all permutations share: what these are compared with.
        #[getter]
        fn statistic(&self) -> f64 {
            self.inner.statistic
        }

        /// The divergence of the clouds as `divergence` has it, solved for itself; the statistic where there was no time for
        /// that, and with a cost matrix.
        #[getter]
        fn value(&self) -> f64 {
            self.inner.value
        }

        /// Where the divergence of the exact kernel is, if that is known.
        #[getter]
        fn interval(&self) -> Option<Interval> {
            interval(self.inner.interval)
        }

        /// The divergences of the permutations, in the order in which they were drawn.
        #[getter]
        fn null<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
            self.null.get(py, || self.inner.null.clone())
        }

        /// How many permutations were done.
        #[getter]
        fn permutations(&self) -> usize {
            self.inner.permutations()
        }

        /// How many permutations have a divergence at least as large.
        #[getter]
        fn exceeding(&self) -> usize {
            self.inner.exceeding
        }

        /// How many of the divergences did not converge; the p-value is valid all the same.
        #[getter]
        fn unconverged(&self) -> usize {
            self.inner.unconverged
        }

        /// The smallest divergence of a permutation that this part of them does not exceed.
        fn quantile(&self, part: f64) -> PyResult<f64> {
            let part_of_one = Some(part).filter(|part| (0.0..=1.0).contains(part));
            part_of_one.and_then(|part| self.inner.quantile(part)).ok_or_else(|| {
                let message = format!(
                    "a quantile is for a part from 0 to 1 of at least one permutation, got {part}"
                );
                PyValueError::new_err(message)
            })
        }

        fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
            reduced(py, "TwoSample", &self.inner, ())
        }
    }
}

impl TwoSample {
    pub(crate) fn new(inner: orthant::two_sample::TwoSample) -> Self {
        TwoSample { inner, null: Lazy::default() }
    }

    fn lines(&self) -> Lines {
        let t = &self.inner;
        let remark = format!("{} of {} permutations", t.exceeding, t.permutations());
        Lines::new()
            .add("pvalue", short(t.p_value), format!("{remark} are at least as far apart"))
            .value("value", t.value, t.interval)
            .add("statistic", short(t.statistic), "with the kernel of the permutations")
            .value("epsilon", t.epsilon, None)
            .add("stop", t.stop.as_str(), format!("{} not converged", t.unconverged))
            .add(
                "method",
                format!("{}, rank {}", t.method.as_str(), t.rank),
                t.reason.clone().unwrap_or_default(),
            )
    }
}
