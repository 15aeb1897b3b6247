//! The linear kernel on the positive orthant: `phi(x) = x`, cost `-eps log x.y`.
//!
//! On the positive sphere this is Oliker's cost (the paper's Remark 1), exactly and at rank `d`.

use super::{Derivative, FeatureMap, check_dimension};
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

    fn derivative(&self) -> Result<&dyn Derivative> {
        Ok(self)
    }
}

impl Derivative for Linear {
    fn points(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let rows = weights.chunks_exact(stride).zip(out.chunks_exact_mut(self.dim));
        for (i, (w, out)) in rows.enumerate() {
            points.copy_coordinates(first + i, 0, out);
            out.iter_mut().zip(w).for_each(|(x, w)| *x = w / *x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_against_central_differences() {
        let points = Points::new(vec![0.3, 1.2, 0.9, 1.5, 0.1, 0.7], 3).unwrap();
        let map = Linear::new(3).unwrap();
        crate::features::assert_derivatives(&map, &points, 1e-6, |_, _| Box::new(map));
    }
}
