//! A fence around code of others that panics on damaged files.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

thread_local! {
    /// A panic on this thread is about to be turned into an error.
    static FENCED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function; if it panics, returns the message of the panic.
///
/// The message is not printed: the hook that would do so is wrapped in one that passes on all
/// panics but these.
pub(crate) fn fence<T>(run: impl FnOnce() -> T) -> Result<T, String> {
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
    result.map_err(|panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "the data are inconsistent".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        assert_eq!(fence(|| 3), Ok(3));
        assert_eq!(fence(|| panic!("oh")), Err::<(), _>("oh".to_owned()));
        let n = 7;
        assert_eq!(fence(|| panic!("oh {n}")), Err::<(), _>("oh 7".to_owned()));
        let inner = || fence(|| panic!("in")).unwrap_err();
        assert_eq!(fence(inner), Ok("in".to_owned()));
    }
}
