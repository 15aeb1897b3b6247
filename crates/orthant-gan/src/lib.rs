//! Generative models trained with linear-time Sinkhorn divergences, under a kernel that is learned against them.
//!
//! The paper's section 4: a generator `g` is trained to bring samples near data, in the divergence of a kernel that an
//! adversary makes as telling as it can,
//!
//! ```text
//! min_g max_{f, u} S(phi_u(f(x)), phi_u(f(g(z)))),   k(x, y) = phi_u(f(x)) . phi_u(f(y)),
//! ```
//!
//! with `f` an embedding of images and `phi_u` the Gaussian features of Lemma 1 with anchors `u`, which are learned too.
//! A divergence is linear in the batch, so that batches can be large; its gradient comes from the potentials alone, by
//! the envelope theorem.

pub mod bench;
mod checkpoint;
pub mod config;
pub mod data;
mod error;
pub mod evaluate;
pub mod grid;
mod kernel;
pub mod loss;
mod network;
mod optim;
mod passes;
mod random;
pub mod ring;
mod sample;
mod spectral;
mod table;
mod train;

pub use config::Config;
pub use error::{Error, Result};
pub use sample::{Generator, load_generator};
pub use table::{Cell, Table, kernel_table};
pub use train::{Data, KernelStats, Report, Trainer};

/// The examples of the README of the repository: crates that are published cannot see it.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
