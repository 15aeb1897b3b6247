//! Processes that hold parts of the points of a cloud: the one place where rows of a cloud meet.
//!
//! A solve adds, compares and decides over *all* points of a cloud. Everything that does so asks a [`Span`], which knows
//! what part of the rows this process holds and, by its [`Comm`], the others: sums, largest values, decisions. Rows are cut
//! into [chunks](Partition) by their number in the whole cloud, and sums of chunks do not depend on their order
//! ([`crate::numerics::ExactSums`]), so neither the number of threads nor that of processes changes a bit.
//!
//! [`Alone`] is a process that holds all points, and asks nobody.

mod span;
#[cfg(test)]
mod threads;

pub(crate) use span::{BLOCK, LARGEST_CHUNK, Partition, Span};
#[cfg(test)]
pub(crate) use threads::Threads;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

/// Processes that each hold some rows of the clouds. All of them call the same functions in the same order.
pub(crate) trait Comm: Debug + Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// Adds the integers of all processes. Sums wrap and are exact, so their order does not matter.
    fn all_sum(&self, values: &mut [i64]);

    /// Takes the largest numbers of all processes. NaN is never sent.
    fn all_max(&self, values: &mut [f64]);

    /// What every process has, in the order of their numbers: few bytes, and seldom.
    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>>;
}

/// A process that holds all rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alone;

impl Comm for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_sum(&self, _: &mut [i64]) {}

    fn all_max(&self, _: &mut [f64]) {}

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        vec![bytes.to_vec()]
    }
}

/// [`Alone`], which all spans share.
fn alone() -> Arc<dyn Comm> {
    static ALONE: OnceLock<Arc<dyn Comm>> = OnceLock::new();
    ALONE.get_or_init(|| Arc::new(Alone)).clone()
}
