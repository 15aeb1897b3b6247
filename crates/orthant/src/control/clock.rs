//! The time that a solve may take, whatever it is doing.
//!
//! A limit of time ends a solve in two ways. Iterations look at it after each, and end with what there is: early enough
//! for what comes after the last one, which takes as long as an iteration. Everything else, also the first iteration,
//! is ended by a [`Cancel`] whose time is up, and is lost: a choice that falls back on what it has found, a certificate
//! or an improvement that a solution does without, or, if there is nothing yet, an [`Error::TimeLimit`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use super::Cancel;
use crate::comm::Span;
use crate::error::{Error, Result};
use crate::words::Phase;

/// When a solve has to be at its end.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    begun: Instant,
    /// As it was asked for.
    limit: Option<Duration>,
    /// When iterations should end.
    soft: Option<Instant>,
    /// Ends everything a little after the limit.
    cancel: Cancel,
    phase: Arc<AtomicU8>,
    /// Whose clock counts, where several processes solve together.
    span: Option<Span>,
}

/// The part of the limit that looking for a method may take.
const CHOICE: f64 = 0.1;

impl Clock {
    /// Begins now.
    pub(crate) fn new(limit: Option<Duration>, outer: &Cancel) -> Self {
        let begun = Instant::now();
        // A limit beyond the range of the clock is none.
        let soft = limit.and_then(|limit| begun.checked_add(limit));
        let cancel = match (soft, limit) {
            (Some(soft), Some(limit)) => outer.until(soft + grace(limit)),
            _ => outer.clone(),
        };
        Clock { begun, limit, soft, cancel, phase: Arc::default(), span: None }
    }

    /// The clock of the first of the processes that hold some points, for all of them.
    pub(crate) fn of(self, span: &Span) -> Self {
        Clock { span: Some(span.clone()), ..self }
    }

    /// What the clock of the first process says.
    fn decided(&self, here: bool) -> bool {
        self.span.as_ref().map_or(here, |span| span.decided(usize::from(here)) > 0)
    }

    /// The same with iterations that end after this part of the time that is left.
    pub(crate) fn part(&self, part: f64) -> Self {
        let soft = self.soft.map(|soft| {
            let now = Instant::now();
            now + soft.saturating_duration_since(now).mul_f64(part)
        });
        Clock { soft, ..self.clone() }
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The time that iterations have, from now on.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.soft.map(|soft| soft.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.decided(self.left().is_some_and(|left| left.is_zero()))
    }

    /// Whether a choice should be made with what there is.
    pub(crate) fn is_time_to_choose(&self) -> bool {
        self.decided(self.limit.is_some_and(|limit| self.begun.elapsed() >= limit.mul_f64(CHOICE)))
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Does some work, unless the time is up before its end.
    pub(crate) fn run<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let Some(limit) = self.limit.filter(|_| self.soft.is_some()) else { return work() };
        self.cancel.run(work).unwrap_or_else(|_| {
            let phase = Phase::ALL[usize::from(self.phase.load(Ordering::Relaxed))];
            Err(Error::TimeLimit { limit, phase })
        })
    }

    /// The error of work that was ended before there was anything to return.
    pub(crate) fn too_late(&self, phase: Phase) -> Error {
        self.limit.map_or(Error::Cancelled, |limit| Error::TimeLimit { limit, phase })
    }

    /// Does some work that can be done without: nothing if the time is up before its end.
    pub(crate) fn try_run<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<Option<R>> {
        match self.run(work) {
            Ok(done) => Ok(Some(done)),
            Err(Error::TimeLimit { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// How much longer than its limit a solve may take before it is ended.
fn grace(limit: Duration) -> Duration {
    limit.mul_f64(0.05).max(Duration::from_millis(400))
}
