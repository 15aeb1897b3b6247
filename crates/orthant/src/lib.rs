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
//! a half, unless the options have another [`GroundCost`]. The plan is `P = diag(u) K diag(v)` with `K = exp(-C / eps)`; potentials are
//! `alpha = eps log u`, `beta = eps log v`; and
//!
//! | field | formula | elsewhere |
//! |---|---|---|
//! | [`Solution::value`] | `W = <P, C> + eps sum P log P` | the paper |
//! | [`Solution::value_kl`] | `W + eps (H(a) + H(b))` | OTT `reg_ot_cost`; POT `reg_type="KL"`; twice GeomLoss (p = 2) at `blur^2 = eps / 2` |
//! | [`Solution::transport_cost`] | `<P, C>` | POT `value_linear` |
//! | [`Solution::plan_concentration`] | `KL(P \| a b^T) / log min(n, m)` | |
//! | [`Plan`] | `P` itself, never stored; maps along it | |
//! | [`Gradient`] | derivatives of `value_kl` and of divergences | |
//! | [`Divergence::value`] | `W(mu, nu) - (W(mu, mu) + W(nu, nu)) / 2` | the same in all of them |
//!
//! # Unbalanced transport
//!
//! With [`rho_x`](options::OptionsBuilder::rho_x), [`rho_y`](options::OptionsBuilder::rho_y) or
//! [`reach`](options::OptionsBuilder::reach) the marginals of the plan may differ from the weights, which then count as
//! given and need not have the same sum:
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
//! [`Descent::barycenter`](descent::Descent::barycenter) points that are free; [`flow`](descent::flow()) moves a cloud to
//! another along the gradient of the divergence; [`compare`] has the divergences of all pairs of many clouds;
//! [`two_sample`] tests whether two clouds are draws from one distribution, by permutations of their points.
//!
//! # Where things are
//!
//! The root has what most programs need: clouds ([`Points`], [`Measure`]), [`Options`] with a [`Method`], the functions
//! [`rot`], [`divergence`] and [`plan`](plan()) or a [`Solver`] with an observer, a warm start, or matrices of costs or of
//! features ([`Solver::costs`], [`Solver::features`]), and their results. Options have no lifetime and plans do not borrow
//! them; measures and plans of points that they own are `'static`. The rest is in modules:
//!
//! | module | what it has |
//! |---|---|
//! | [`options`] | which costs, features, anchors and algorithms, and the builder of options |
//! | [`features`], [`anchors`] | feature maps, also of your own; where anchors are |
//! | [`control`] | observers, tokens that end a computation |
//! | [`measure`](mod@measure), [`results`], [`plan`](mod@plan), [`gradient`] | what the types of the root consist of |
//! | [`barycenter`], [`compare`], [`descent`], [`two_sample`] | several clouds |
//! | [`theory`] | the statements of the paper as functions |
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
#[doc(hidden)]
pub mod bench;
mod comm;
pub mod control;
mod coordinates;
mod error;
pub mod features;
pub mod gradient;
mod ground;
mod kernel;
pub mod measure;
mod numerics;
pub mod options;
pub mod plan;
mod problem;
pub mod results;
mod rows;
mod sampling;
mod sinkhorn;
mod solver;
mod tasks;
mod term;
pub mod theory;
mod words;

pub use control::Stop;
pub use coordinates::{
    cost_deviation, mean_cost, mean_squared_distance, squared_distance_deviation,
};
pub use error::{Error, Result};
pub use gradient::Gradient;
pub use ground::{CostFunction, GroundCost, Mahalanobis};
pub use measure::{Measure, Points};
pub use options::{Method, Options, Precision};
pub use plan::{Plan, Plans};
pub use results::{Certainty, Divergence, Interval, Solution};
pub use rows::CostMatrix;
pub use solver::{Solver, divergence, plan, plans, rot};
pub use tasks::{barycenter, compare, descent, two_sample};
pub use words::{Shape, Side};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
