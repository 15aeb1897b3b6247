//! Methods that classes have in common.

/// The `#[pymethods]` of a class: its own, and those of the groups in brackets.
///
/// - `shown`: how a result is printed, of a class with `lines`.
/// - `solved`: what is known of a solve, of a class whose `inner` result has it.
/// - `moved`: how points came to rest, of a class with the fields `rest` and `times`.
///
/// It is one macro because `PyO3` takes one block of methods for a class, and no macros within.
macro_rules! methods {
    ($class:ident [] { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            $($own)*
        }
    };
    ($class:ident [shown $($more:ident)*] { $($own:tt)* }) => {
        methods! {
            $class [$($more)*] {
                $($own)*

                fn __repr__(&self) -> String {
                    self.lines().text(stringify!($class))
                }

                /// The same as a table for notebooks.
                fn _repr_html_(&self) -> String {
                    self.lines().html(stringify!($class))
                }
            }
        }
    };
    ($class:ident [solved $($more:ident)*] { $($own:tt)* }) => {
        methods! {
            $class [$($more)*] {
                $($own)*

                /// The regularisation, in units of the cost.
                #[getter]
                fn epsilon(&self) -> f64 {
                    self.inner.epsilon
                }

                /// Why it ended: `converged`, `iteration_limit`, `time_limit` or `requested`.
                #[getter]
                fn stop(&self) -> &'static str {
                    self.inner.stop.as_str()
                }

                /// The method that was used: `gaussian`, `lattice`, `arccos`, `linear`, `map`, `explicit`, `dense`, `online`,
                /// `nystrom` or `sampled`.
                #[getter]
                fn method(&self) -> &'static str {
                    self.inner.method.as_str()
                }

                /// Number of features or landmarks; of exact methods the number of columns of the kernel.
                #[getter]
                fn rank(&self) -> usize {
                    self.inner.rank
                }

                /// Why this method, in words, if it was chosen automatically; otherwise `None`.
                #[getter]
                fn reason(&self) -> Option<&str> {
                    self.inner.reason.as_deref()
                }

                /// Seconds for storing features or kernels, and for all else.
                #[getter]
                fn times(&self) -> (f64, f64) {
                    seconds(&self.inner.times)
                }
            }
        }
    };
    ($class:ident [moved $($more:ident)*] { $($own:tt)* }) => {
        methods! {
            $class [$($more)*] {
                $($own)*

                /// Why the points came to rest: `reached`, `still`, `stalled`, `step_limit`, `time_limit`, `requested` or
                /// `iteration_limit`.
                #[getter]
                fn rest(&self) -> &'static str {
                    self.rest.as_str()
                }

                /// Seconds for storing features or kernels, and for all else.
                #[getter]
                fn times(&self) -> (f64, f64) {
                    seconds(&self.times)
                }
            }
        }
    };
}

pub(crate) use methods;
