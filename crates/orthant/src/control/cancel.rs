//! Ending a computation from outside, wherever it is, or when its time is up.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::error::{Error, Result};

/// Ends a computation from another thread, at any time: a handler of Ctrl-C, a button.
///
/// An [`Observer`](crate::control::Observer) ends a solve after an iteration, with what there is. This ends whatever goes on,
/// storing features, drawing certificates, maps, in a few milliseconds, and leaves nothing. Clones are the same token.
///
/// The passes over the points ask for it before every few rows, and unwind from there to [`Cancel::run`]: no number is
/// computed in another way because somebody may want to end it. Outside of `run`, and in programs whose panics abort,
/// nothing happens.
///
/// ```
/// use orthant::{Error, Measure, Method, Options, Points, rot, control::Cancel};
/// let cancel = Cancel::default();
/// let options = Options::builder(0.1).method(Method::online()).cancel(cancel.clone()).build()?;
/// let mu = Measure::uniform(Points::new(vec![0.0, 1.0], 1)?);
/// assert!(cancel.run(|| rot(&mu, &mu, &options))?.is_ok());
/// // Usually by another thread, while it runs.
/// cancel.cancel();
/// assert_eq!(cancel.run(|| rot(&mu, &mu, &options)).unwrap_err(), Error::Cancelled);
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<State>);

#[derive(Debug, Default)]
struct State {
    asked: AtomicBool,
    /// Calls of [`Cancel::run`] that have not returned.
    runs: AtomicUsize,
    deadline: Option<Instant>,
    /// A token that ends this one too.
    parent: Option<Cancel>,
}

/// What unwinds: the token that did it.
struct Unwound(Cancel);

impl Cancel {
    /// A token that ends with this one, and by itself at a point in time: what it [runs](Cancel::run) is
    /// [`Error::Cancelled`] then. A [`time_limit`](crate::options::OptionsBuilder::time_limit) ends a solve with what there is;
    /// this ends whatever comes after it too, maps and samples of its plan.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use orthant::{Error, Measure, Method, Options, Points, rot, control::Cancel};
    /// let cancel = Cancel::default().until(Instant::now() + Duration::from_millis(5));
    /// let options = Options::builder(0.1).method(Method::online()).cancel(cancel.clone()).build()?;
    /// let mu = Measure::uniform(Points::new(vec![0.0, 1.0], 1)?);
    /// let ended = cancel.run(|| loop {
    ///     rot(&mu, &mu, &options).unwrap();
    /// });
    /// assert_eq!(ended, Err::<(), _>(Error::Cancelled));
    /// # Ok::<(), orthant::Error>(())
    /// ```
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Self {
        let (deadline, parent) = (Some(deadline), Some(self.clone()));
        Cancel(Arc::new(State { deadline, parent, ..State::default() }))
    }

    /// Ends what [`Cancel::run`] runs, now or later.
    pub fn cancel(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Whether somebody called [`Cancel::cancel`], of this token or of one that it ends with, or its time is up.
    pub fn is_cancelled(&self) -> bool {
        let late = self.0.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.is_asked() || late || self.0.parent.as_ref().is_some_and(Cancel::is_cancelled)
    }

    fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Takes it back, for the next run. A point in time stays what it is.
    pub fn reset(&self) {
        self.0.asked.store(false, Ordering::Relaxed);
    }

    /// Does some work whose options have this token: its result, or [`Error::Cancelled`].
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        self.0.runs.fetch_add(1, Ordering::Relaxed);
        // What the work has changed is its own, and is dropped on the way.
        let done = catch_unwind(AssertUnwindSafe(work));
        self.0.runs.fetch_sub(1, Ordering::Relaxed);
        done.map_err(|payload| match payload.downcast_ref() {
            Some(Unwound(token)) if Arc::ptr_eq(&token.0, &self.0) => Error::Cancelled,
            _ => resume_unwind(payload),
        })
    }

    /// Unwinds if that is wanted.
    pub(crate) fn check(&self) {
        if let Some(parent) = &self.0.parent {
            parent.check();
        }
        // The clock is looked at where there is a point in time only, and somebody to go back to.
        let runs = || self.0.runs.load(Ordering::Relaxed) > 0;
        let late = || self.0.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let wanted = runs() && (self.is_asked() || late());
        if wanted && cfg!(panic = "unwind") {
            // Not a panic: no hook is called, nothing is printed.
            resume_unwind(Box::new(Unwound(self.clone())) as Box<dyn Any + Send>);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_ended_by_its_own_token_only() {
        let (one, two) = (Cancel::default(), Cancel::default());
        two.cancel();
        assert_eq!(one.run(|| two.run(|| two.check())), Ok(Err(Error::Cancelled)));
        one.cancel();
        assert_eq!(one.run(|| two.run(|| one.check())), Err(Error::Cancelled));
        one.reset();
        assert_eq!(one.run(|| one.check()), Ok(()));
    }

    #[test]
    fn a_point_in_time_ends_a_run_and_so_does_the_parent() {
        let parent = Cancel::default();
        let past = parent.until(Instant::now());
        assert!(past.is_cancelled() && !parent.is_cancelled());
        past.check();
        assert_eq!(past.run(|| past.check()), Err(Error::Cancelled));
        let future = parent.until(Instant::now() + std::time::Duration::from_secs(3600));
        assert_eq!(future.run(|| future.check()), Ok(()));
        parent.cancel();
        assert_eq!(parent.run(|| future.run(|| future.check())), Err(Error::Cancelled));
        assert!(future.is_cancelled());
    }

    #[test]
    fn nothing_happens_outside_of_a_run() {
        let cancel = Cancel::default();
        cancel.cancel();
        cancel.check();
    }

    #[test]
    #[should_panic(expected = "another reason")]
    fn other_panics_go_on() {
        let _ = Cancel::default().run(|| panic!("another reason"));
    }
}
