//! Watching a solve, and asking it to stop.

use std::time::Duration;

use super::{Cancel, Clock};
use crate::error::{Error, Result};
use crate::words::{Phase, Term};

/// Why a solve ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Stop {
    /// The marginal error fell below the tolerance.
    Converged,
    /// The largest number of iterations was reached.
    IterationLimit,
    /// The time was up.
    TimeLimit,
    /// An [`Observer`] asked for it.
    Requested,
}

impl Stop {
    /// A word for programs: `converged`, `iteration_limit`, `time_limit`, `requested`.
    pub fn as_str(self) -> &'static str {
        match self {
            Stop::Converged => "converged",
            Stop::IterationLimit => "iteration_limit",
            Stop::TimeLimit => "time_limit",
            Stop::Requested => "requested",
        }
    }
}

/// The state after an iteration.
pub struct Progress<'a> {
    /// Which problem is being solved.
    pub term: Term,
    /// The regularisation of the problem that is being solved. On the way to a small epsilon this is a larger one.
    pub epsilon: f64,
    /// Iterations done, from 1.
    pub iteration: usize,
    /// L1 error of the marginal that Algorithm 1 tests: its distance from what the iteration made of it,
    /// relative to the mass of the plan. With [`Algorithm::Accelerated`](crate::options::Algorithm::Accelerated) that of both marginals.
    pub marginal_error: f64,
    /// Time since the solve began.
    pub elapsed: Duration,
    pub(crate) value: &'a mut dyn FnMut() -> f64,
}

impl Progress<'_> {
    /// The dual value now: a lower bound of the value of the solve once the plan has mass 1. With
    /// [`Algorithm::Accelerated`](crate::options::Algorithm::Accelerated) the largest so far. For unbalanced problems that of [`Solution::value_kl`](crate::Solution::value_kl).
    ///
    /// Computed on request; costs a logarithm a point.
    pub fn value(&mut self) -> f64 {
        (self.value)()
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress")
            .field("term", &self.term)
            .field("iteration", &self.iteration)
            .field("marginal_error", &self.marginal_error)
            .field("elapsed", &self.elapsed)
            .finish_non_exhaustive()
    }
}

/// What an [`Observer`] wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Go on.
    Continue,
    /// End the solve with what there is.
    Stop,
}

/// Watches a solve: progress bars, traces, requests to stop.
///
/// Closures `FnMut(&mut Progress) -> Next` are observers.
pub trait Observer: Send {
    /// Called after every iteration.
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next;

    /// Called when a phase of a solve begins, and again now and then while a method is chosen. Asked to stop before
    /// there is a solution, a solve ends with [`Error::Cancelled`]; after that, with the solution that there is.
    /// Default: goes on.
    fn phase(&mut self, phase: Phase) -> Next {
        let _ = phase;
        Next::Continue
    }

    /// Called when samples of the clouds ([`Method::Sampled`](crate::Method::Sampled)) have told where the `value_kl` of a
    /// term is, and again when that interval has become narrower. Default: nothing.
    fn narrowed(&mut self, term: Term, interval: [f64; 2]) {
        let _ = (term, interval);
    }
}

/// The observer of a user, if there is one, and a token to end it all.
pub(crate) struct Watched<'w> {
    pub(crate) cancel: &'w Cancel,
    pub(crate) observer: Option<&'w mut dyn Observer>,
}

impl Observer for Watched<'_> {
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next {
        self.cancel.check();
        self.observer.as_mut().map_or(Next::Continue, |observer| observer.observe(progress))
    }

    fn phase(&mut self, phase: Phase) -> Next {
        self.cancel.check();
        self.observer.as_mut().map_or(Next::Continue, |observer| observer.phase(phase))
    }

    fn narrowed(&mut self, term: Term, interval: [f64; 2]) {
        if let Some(observer) = &mut self.observer {
            observer.narrowed(term, interval);
        }
    }
}

/// An observer whose solve has a clock, which hears of the phases too.
pub(crate) struct Clocked<'c> {
    pub(crate) clock: &'c Clock,
    pub(crate) observer: &'c mut dyn Observer,
    /// Whether a phase was asked to stop.
    pub(crate) stopped: bool,
}

impl Observer for Clocked<'_> {
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next {
        let next = self.observer.observe(progress);
        if self.stopped { Next::Stop } else { next }
    }

    fn phase(&mut self, phase: Phase) -> Next {
        self.clock.enter(phase);
        let next = self.observer.phase(phase);
        self.stopped |= next == Next::Stop;
        next
    }

    fn narrowed(&mut self, term: Term, interval: [f64; 2]) {
        self.observer.narrowed(term, interval);
    }
}

/// Hears of a phase; asked to stop, there is nothing to go on for.
pub(crate) fn begin(observer: &mut dyn Observer, phase: Phase) -> Result<()> {
    match observer.phase(phase) {
        Next::Continue => Ok(()),
        Next::Stop => Err(Error::Cancelled),
    }
}

impl<F: FnMut(&mut Progress<'_>) -> Next + Send> Observer for F {
    fn observe(&mut self, progress: &mut Progress<'_>) -> Next {
        self(progress)
    }
}
