//! The linear kernel on the positive orthant: `phi(x) = x`, cost `-eps log x.y`.
//!
//! On the positive sphere this is Oliker's cost (the paper's Remark 1), exactly and at rank `d`.

use super::{FeatureMap, check_dimension};
use crate::error::{Error, Result};
use crate::measure::Points;

/// The identity map; every coordinate must be positive.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    dim: usize,
}

impl Linear {
    /// The map for points of `dim` coordinates.
    pub fn new(dim: usize) -> Result<Self> {
        if dim == 0 { Err(Error::NoCoordinates) } else { Ok(Linear { dim }) }
    }
}

impl FeatureMap for Linear {
    fn dim(&self) -> usize {
        self.dim
    }

    fn rank(&self) -> usize {
        self.dim
    }

    fn check(&self, points: &Points<'_>) -> Result<()> {
        check_dimension(self.dim, points)?;
        for row in 0..points.len() {
            for column in 0..self.dim {
                let value = points.coordinate(row, column);
                if value <= 0.0 {
                    return Err(Error::Feature { row: row + 1, column: column + 1, value });
                }
            }
        }
        Ok(())
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        for (i, row) in out.chunks_exact_mut(stride).enumerate() {
            points.copy_coordinates(first + i, 0, &mut row[..self.dim]);
            for l in &mut row[..self.dim] {
                *l = l.ln();
            }
        }
    }
}
