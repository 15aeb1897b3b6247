//! Divergences of batches, and their gradients by latents, anchors and logarithms of features: numbers in, numbers out.

use std::sync::Arc;

use orthant::features::{FeatureMap, Gaussian, stride};
use orthant::{
    Divergence, Measure, Method, Options, Plans, Points, Side, Solver, options::Features,
};

use crate::error::Result;

/// How a divergence is solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solve {
    /// The regularisation; and, with anchors, the width of the kernel.
    pub epsilon: f64,
    /// L1 error of the marginals at which Sinkhorn stops.
    pub tolerance: f64,
    /// Iterations after which it stops anyway.
    pub max_iterations: usize,
}

impl Default for Solve {
    fn default() -> Self {
        Solve { epsilon: 1.0, tolerance: 1e-6, max_iterations: 1000 }
    }
}

/// Where the features of two batches come from, row by row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// Logarithms of features.
    Logs { x: &'a [f32], y: &'a [f32], rank: usize },
    /// Latents and the anchors of Lemma 1.
    Latents { x: &'a [f32], y: &'a [f32], dim: usize, anchors: &'a [f32], q: f64 },
}

/// Derivatives of a divergence by what its features come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Derivatives {
    pub(crate) x: Vec<f32>,
    pub(crate) y: Vec<f32>,
    /// Empty for logarithms of features.
    pub(crate) anchors: Vec<f32>,
}

impl Rows<'_> {
    /// The divergence, solved from `start`, and what `read` makes of its plans.
    fn solve<T>(
        self,
        solve: Solve,
        start: Option<&Divergence>,
        read: impl FnOnce(&Plans<'_>) -> Result<T>,
    ) -> Result<(Divergence, T)> {
        let map = self.map(solve.epsilon)?;
        let options = Options::builder(solve.epsilon)
            .method(Method::Factored(Features::Map(map)))
            .tolerance(solve.tolerance)
            .max_iterations(solve.max_iterations)
            .pair_costs(false)
            .build()?;
        let [x, y] = self.points()?;
        let (mu, nu) = (Measure::uniform(x), Measure::uniform(y));
        let solver = Solver::new(&options);
        let solver = match start {
            Some(start) => solver.warm_start_divergence(start),
            None => solver,
        };
        let plans = solver.plans(&mu, &nu)?;
        let read = read(&plans)?;
        Ok((plans.into_divergence(), read))
    }

    /// The divergence alone.
    pub(crate) fn divergence(self, solve: Solve) -> Result<Divergence> {
        Ok(self.solve(solve, None, |_| Ok(()))?.0)
    }

    /// The divergence and its derivatives.
    pub(crate) fn with_derivatives(self, solve: Solve) -> Result<(Divergence, Derivatives)> {
        self.solve(solve, None, |plans| self.derivatives_of(plans))
    }

    /// The derivatives of a divergence that is solved already: only its potentials are needed, all else is made again.
    pub(crate) fn derivatives(self, solve: Solve, solved: &Divergence) -> Result<Derivatives> {
        let solve = Solve { max_iterations: 1, ..solve };
        Ok(self.solve(solve, Some(solved), |plans| self.derivatives_of(plans))?.1)
    }

    fn derivatives_of(self, plans: &Plans<'_>) -> Result<Derivatives> {
        let gradient = plans.gradient();
        Ok(match self {
            Rows::Logs { .. } => Derivatives {
                x: single(&gradient.log_features(Side::X)?),
                y: single(&gradient.log_features(Side::Y)?),
                anchors: Vec::new(),
            },
            Rows::Latents { .. } => Derivatives {
                x: single(&gradient.points(Side::X)?),
                y: single(&gradient.points(Side::Y)?),
                anchors: single(&gradient.anchors()?),
            },
        })
    }

    /// The map that makes the features.
    fn map(self, epsilon: f64) -> Result<Arc<dyn FeatureMap>> {
        Ok(match self {
            Rows::Logs { x, y, rank } => Arc::new(Stacked { logs: [x, y].concat(), rank }),
            Rows::Latents { dim, anchors, q, .. } => {
                Arc::new(Gaussian::with_anchors(&Points::new(anchors, dim)?, q, epsilon)?)
            }
        })
    }

    /// The points that the map takes: latents, or the numbers of rows.
    fn points(&self) -> Result<[Points<'_>; 2]> {
        Ok(match self {
            Rows::Logs { x, y, rank } => {
                let (n, m) = (x.len() / rank, y.len() / rank);
                let numbers = |range: std::ops::Range<usize>| -> Vec<f64> {
                    range.map(|i| i as f64).collect()
                };
                [Points::new(numbers(0..n), 1)?, Points::new(numbers(n..n + m), 1)?]
            }
            Rows::Latents { x, y, dim, .. } => [Points::new(*x, *dim)?, Points::new(*y, *dim)?],
        })
    }

    /// Logarithms of the mean kernel of all pairs: of the first batch, between both, of the second. In linear time, as
    /// the mean of products is that of sums: `mean_ij phi(x_i) . phi(y_j) = mean_i phi(x_i) . mean_j phi(y_j)`.
    pub(crate) fn log_mean_kernels(self, epsilon: f64) -> Result<[f64; 3]> {
        let map = self.map(epsilon)?;
        let [x, y] = self.points()?;
        let (x, y) = (log_mean_features(&*map, &x)?, log_mean_features(&*map, &y)?);
        Ok([log_dot(&x, &x), log_dot(&x, &y), log_dot(&y, &y)])
    }
}

/// Logarithms of the means of the features of some points.
fn log_mean_features(map: &dyn FeatureMap, points: &Points<'_>) -> Result<Vec<f64>> {
    map.check(points)?;
    let (rank, width) = (map.rank(), stride(map.rank()));
    let mut row = vec![0.0; width];
    let (mut top, mut sums) = (vec![f64::NEG_INFINITY; rank], vec![0.0; rank]);
    for i in 0..points.len() {
        map.log_features(points, i, width, &mut row);
        for ((top, sum), log) in top.iter_mut().zip(&mut sums).zip(&row) {
            if *log > *top {
                *sum = *sum * (*top - log).exp() + 1.0;
                *top = *log;
            } else if *log > f64::NEG_INFINITY {
                *sum += (log - *top).exp();
            }
        }
    }
    let count = (points.len() as f64).ln();
    Ok(top.iter().zip(&sums).map(|(top, sum)| top + f64::ln(*sum) - count).collect())
}

/// `log sum_k exp(x_k + y_k)`.
fn log_dot(x: &[f64], y: &[f64]) -> f64 {
    let sums = || x.iter().zip(y).map(|(x, y)| x + y);
    let top = sums().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + sums().map(|s| (s - top).exp()).sum::<f64>().ln()
}

#[expect(clippy::cast_possible_truncation, reason = "networks are in single precision")]
fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|v| *v as f32).collect()
}

/// Rows of logarithms of features; a point is the number of its row.
#[derive(Debug)]
struct Stacked {
    logs: Vec<f32>,
    rank: usize,
}

impl FeatureMap for Stacked {
    fn dim(&self) -> usize {
        1
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn check(&self, _: &Points<'_>) -> orthant::Result<()> {
        match self.logs.iter().position(|log| log.is_nan() || *log == f32::INFINITY) {
            None => Ok(()),
            Some(i) => {
                let (row, column) = (i / self.rank + 1, i % self.rank + 1);
                let value = f64::from(self.logs[i]).exp();
                Err(orthant::Error::Feature { row, column, value })
            }
        }
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        for (i, out) in out.chunks_exact_mut(stride).enumerate() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole numbers, made from counts"
            )]
            let row = points.coordinate(first + i, 0) as usize;
            let logs = &self.logs[row * self.rank..(row + 1) * self.rank];
            out.iter_mut().zip(logs).for_each(|(out, log)| *out = f64::from(*log));
        }
    }
}
