//! Matrices of costs or of features that a call gives in place of a function of the points.

use crate::error::{Error, Result};
use crate::features::FeatureMatrix;
use crate::options::Method;
use crate::rows::CostMatrix;
use crate::term::Form;

/// The kernel as data of a call. Without either matrix it is what the method of the options says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given<'d> {
    /// A row for each point of the first cloud, a column for each point of the second.
    pub(crate) costs: Option<CostMatrix<'d>>,
    /// Features of the first cloud and of the second, a row for each point.
    pub(crate) features: Option<[FeatureMatrix<'d>; 2]>,
}

impl Given<'_> {
    /// Whether the kernel is left to the method.
    pub(crate) fn is_empty(&self) -> bool {
        self.costs.is_none() && self.features.is_none()
    }

    /// Refuses matrices that a method has no use for.
    pub(crate) fn check(&self, method: &Method) -> Result<()> {
        let refused = |what, task, remedy| Err(Error::NotFor { what, task, remedy });
        let costs = "a cost matrix";
        let exact = "leave the method to Method::Auto, or use Method::dense() or Method::online()";
        match (&self.costs, &self.features, method) {
            (Some(_), Some(_), _) => refused(
                "a cost matrix and matrices of features",
                "one problem",
                "each of them says what the kernel is: give one",
            ),
            (Some(_), None, Method::Factored(_)) => refused("positive features", costs, exact),
            (Some(_), None, Method::Nystrom(_)) => {
                refused("the Nystrom approximation", costs, exact)
            }
            (None, Some(_), Method::Sampled(_)) => {
                refused("a sample of the clouds", "matrices of features", exact)
            }
            (None, Some(_), Method::Nystrom(_)) => {
                refused("the Nystrom approximation", "matrices of features", exact)
            }
            _ => Ok(()),
        }
    }
}

/// What a solve iterates over where features define the kernel.
pub(super) fn form_of(method: &Method) -> Form {
    match method {
        Method::Dense(_) => Form::Pairs { stored: true },
        Method::Online(_) => Form::Pairs { stored: false },
        _ => Form::Features,
    }
}
