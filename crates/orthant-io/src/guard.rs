//! A fence around code of others that panics on damaged files.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

thread_local! {
    /// A panic on this thread is about to be turned into an error.
    static FENCED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function; returns nothing if it panics, of which nothing is printed.
///
/// The hook that would do so is wrapped in one that passes on all panics but these.
pub(crate) fn fence<T>(run: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    // The hook may not be changed while a panic is under way.
    if !thread::panicking() {
        HOOK.call_once(|| {
            let previous = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                // The flag is gone while a thread ends.
                if !FENCED.try_with(Cell::get).unwrap_or(false) {
                    previous(info);
                }
            }));
        });
    }
    let outer = FENCED.replace(true);
    // Whatever was left half done belongs to the function and is gone with it.
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    FENCED.set(outer);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        assert_eq!(fence(|| 3), Some(3));
        assert_eq!(fence(|| panic!("oh")), None::<()>);
        assert_eq!(fence(|| fence(|| panic!("in")).map(|()| 1)), Some(None));
    }
}
