//! Optimal transport in linear time, with positive features.
//!
//! Regularised optimal transport (ROT) between two weighted clouds of points costs `n m` a Sinkhorn
//! iteration. With a kernel `k(x, y) = phi(x) . phi(y)` whose `r` features are positive it costs
//! `r (n + m)`: Scetbon & Cuturi, *Linear Time Sinkhorn Divergences using Positive Features*, NeurIPS
//! 2020 ("the paper"). This crate has the paper's features (Gaussian, arc-cosine, linear), features
//! of your own, and the exact methods to check them against, all stable at any epsilon.
//!
//! ```
//! use orthant::{Measure, Method, Options, Points, divergence, plan, rot};
//!
//! // Points are row-major, f32 or f64, borrowed or owned; weights are optional.
//! let x: Vec<f64> = (0..200).map(|i| (f64::from(i) * 0.37).sin()).collect();
//! let y: Vec<f32> = (0..100).map(|i| 0.5 + (i as f32 * 0.73).cos()).collect();
//! let mu = Measure::uniform(Points::new(&x, 2)?);
//! let nu = Measure::uniform(Points::new(&y, 2)?);
//!
//! // Exact, because the clouds are small:
//! let options = Options::builder(0.5).build()?;
//! let exact = rot(&mu, &nu, &options)?;
//! assert!(exact.converged() && exact.marginal_error_x < 1e-6);
//!
//! // With random features of the same kernel, in linear time:
//! let options = Options::builder(0.5).method(Method::paper()).rank(2000).build()?;
//! let fast = rot(&mu, &nu, &options)?;
//! assert!((fast.value_kl / exact.value_kl - 1.0).abs() < 0.05);
//!
//! // The plan is the coupling: how much mass moves from x_i to y_j. Here are pairs drawn from it.
//! let plan = plan(&mu, &nu, &options)?;
//! assert_eq!(plan.sample(10, 0)?.len(), 10);
//!
//! // The divergence vanishes for equal clouds and is positive for different ones.
//! assert!(divergence(&mu, &nu, &options)?.value > 0.0);
//! # Ok::<(), orthant::Error>(())
//! ```
//!
//! # Conventions
//!
//! The paper's. The cost of the exact methods and of the Gaussian features is `||x - y||^2`, without
//! a half. The plan is `P = diag(u) K diag(v)` with `K = exp(-C / eps)`; potentials are
//! `alpha = eps log u`, `beta = eps log v`; and
//!
//! | field | formula | elsewhere |
//! |---|---|---|
//! | [`Solution::value`] | `W = <P, C> + eps sum P log P` | the paper |
//! | [`Solution::value_kl`] | `W + eps (H(a) + H(b))` | OTT `reg_ot_cost`; POT `reg_type="KL"`; twice GeomLoss (p = 2) at `blur^2 = eps / 2` |
//! | [`Solution::transport_cost`] | `<P, C>` | POT `value_linear` |
//! | [`Plan`] | `P` itself, never stored; maps along it | |
//! | [`Gradient`] | derivatives of `value_kl` and of divergences | |
//! | [`Divergence::value`] | `W(mu, nu) - (W(mu, mu) + W(nu, nu)) / 2` | the same in all of them |
//!
//! # Unbalanced transport
//!
//! With [`OptionsBuilder::rho_x`], [`OptionsBuilder::rho_y`] or [`OptionsBuilder::reach`] the marginals of the
//! plan may differ from the weights, which then count as given and need not have the same sum:
//!
//! ```text
//! value_kl = min_P <P, C> + eps KL(P | a b^T) + rho_x KL(P 1 | a) + rho_y KL(P^T 1 | b)
//! ```
//!
//! with `KL(p | q) = sum p log(p / q) - p + q`. Every method has it, and bounds and intervals hold, for `value_kl`
//! ([`Solution::interval_kl`]). [`Solution::mass`] is the mass of the plan.
//!
//! # Several clouds
//!
//! [`barycenter`] finds weights on given points that are as close as can be to several measures, and
//! [`Descent::barycenter`] points that are free; [`flow`] moves a cloud to another along the gradient of the
//! divergence; [`compare`] has the divergences of all pairs of many clouds; [`two_sample`] tests whether two clouds are draws from
//! one distribution, by permutations of their points.
//!
//! # Features
//!
//! `ndarray` and `faer` convert [`Points`] from and to the matrices of these crates; with `serde` results can be written and
//! read again.
//!
//! # Guarantees
//!
//! - Bad input is an [`enum@Error`] that says what to do; not converging is a [`Stop`] in the
//!   [`Solution`]; no result is NaN.
//! - The same bits on any number of threads; the current rayon pool is used.
//! - No allocation inside the iterations.

pub mod anchors;
pub mod bench;
mod control;
mod coordinates;
mod error;
pub mod features;
mod gradient;
mod kernel;
mod measure;
mod numerics;
mod options;
mod plan;
mod problem;
mod results;
mod rows;
mod sampling;
mod sinkhorn;
mod solver;
mod tasks;
mod term;
pub mod theory;
mod words;

pub use control::{Cancel, Next, Observer, Progress, Stop};
pub use coordinates::{mean_cost, mean_squared_distance};
pub use error::{Error, Result};
pub use features::Landmarks;
pub use gradient::{Gradient, LowRank};
pub use measure::{Measure, Points, Support, Values};
pub use options::{Algorithm, Anchors, Cost, Features, Method, Options, OptionsBuilder, Precision};
#[cfg(feature = "serde")]
pub use plan::KeptPlan;
pub use plan::{MOST_LABELS, Plan, Plans, Vote};
pub use results::{
    Certainty, DENSE_LIMIT, Divergence, Interval, Kernels, PAIRS_LIMIT, Solution, Times, Used,
};
pub use rows::CostMatrix;
pub use solver::{Solver, divergence, plan, plans, rot};
pub use tasks::barycenter::{Barycenter, Barycenters, barycenter};
pub use tasks::compare::{
    Comparer, Comparison, Embedding, Merge, Pair, Sharing, compare, embedding, leaves, linkage,
};
pub use tasks::descent::{Descent, Flow, FreeBarycenter, Rest, Step, flow};
pub use tasks::two_sample::{TwoSample, TwoSampleTest, two_sample};
pub use words::{Cloud, Phase, Shape, Term};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
