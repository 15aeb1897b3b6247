//! Ends the program from outside of the work: when the time is up, and on signals.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::NOT_CONVERGED;

/// Ends the program when the time is up, while this is alive.
///
/// The library keeps to a time limit by itself and returns what it has. This is for what it does not see: a pipe that
/// delivers nothing, a disk that does not answer.
#[must_use = "the time is watched as long as this lives"]
pub(crate) struct TimeWatch {
    /// Dropping it wakes the thread.
    _alive: Option<Sender<()>>,
}

impl TimeWatch {
    /// Watches a limit, with some grace, for what goes on now.
    pub(crate) fn start(
        limit: Option<Duration>,
        begun: Instant,
        grace: Duration,
        doing: &str,
    ) -> Self {
        let Some(limit) = limit else { return TimeWatch { _alive: None } };
        let (alive, dropped) = channel::<()>();
        let left = (limit + grace).saturating_sub(begun.elapsed());
        let message = format!(
            "orthant: the time limit of {} s was reached while {doing}; raise --time-limit",
            limit.as_secs_f64()
        );
        let watch = move || {
            if dropped.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                end(&message);
            }
        };
        // Without a thread to watch it, the library's own limit has to do.
        let thread = thread::Builder::new().name("time limit".to_owned()).spawn(watch);
        TimeWatch { _alive: thread.is_ok().then_some(alive) }
    }
}

/// Time beyond a limit until the program is ended while something is solved: less than a second, or a tenth of it.
pub(crate) fn grace(limit: Option<Duration>) -> Duration {
    limit.map_or(Duration::ZERO, |limit| (limit / 12).max(Duration::from_millis(800)))
}

fn end(message: &str) -> ! {
    let _halted = orthant_io::remove_temporaries();
    #[expect(clippy::print_stderr, reason = "the program ends here")]
    {
        eprintln!("{message}");
    }
    std::process::exit(i32::from(NOT_CONVERGED))
}

/// Removes temporary files when a signal ends the program. Signals that the caller chose to ignore stay ignored.
#[cfg(unix)]
pub(crate) fn signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|s| ignored & (1 << (s - 1)) == 0);
    let Ok(mut signals) = Signals::new(wanted) else { return };
    let handle = signals.handle();
    let watch = move || {
        if let Some(signal) = signals.forever().next() {
            let _halted = orthant_io::remove_temporaries();
            // Ends the process as if nobody had watched.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    if thread::Builder::new().name("signals".to_owned()).spawn(watch).is_err() {
        // Nobody listens: signals do again what they always do.
        handle.close();
    }
}

#[cfg(not(unix))]
pub(crate) fn signals() {}

/// The signals that this process ignores, a bit each, as the kernel tells.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
