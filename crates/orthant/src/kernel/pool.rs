//! Scratch space that threads take and give back.

use std::sync::{Mutex, PoisonError};

/// Scratch spaces, as many as there are threads.
#[derive(Debug, Default)]
pub(super) struct Pool<S> {
    free: Mutex<Vec<S>>,
}

impl<S: Default> Pool<S> {
    /// Makes all of them as large as a pass needs: nothing is allocated if they are.
    pub(super) fn prepare(&mut self, grow: impl Fn(&mut S)) {
        let free = self.free.get_mut().unwrap_or_else(PoisonError::into_inner);
        let threads = rayon::current_num_threads();
        if free.len() < threads {
            free.resize_with(threads, S::default);
        }
        free.iter_mut().for_each(grow);
    }

    /// Calls `work` with one of them.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut S) -> R) -> R {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = free().pop();
        let mut scratch = taken.unwrap_or_default();
        let result = work(&mut scratch);
        free().push(scratch);
        result
    }
}
