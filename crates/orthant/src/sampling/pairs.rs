//! Pairs of a plan.

/// Pairs of a plan, drawn by weight.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Pairs {
    pub(crate) pairs: Vec<[usize; 2]>,
    pub(crate) weights: Vec<f64>,
}
