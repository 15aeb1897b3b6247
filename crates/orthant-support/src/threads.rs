//! How many threads do the work.

use clap::Args;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Threads for each core, at most: more only wait for each other.
const PER_CORE: usize = 4;

/// How many threads.
#[derive(Debug, Clone, Copy, Args)]
pub struct Threads {
    /// Number of threads [default: all cores; at most four for each]; results do not depend on it
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Iterations and limits"
    )]
    threads: Option<u32>,
}

impl Threads {
    /// Runs `work` on that many threads, or on as many as the system grants: on that of the caller, if there are no
    /// others.
    pub fn run<R: Send>(self, work: impl FnOnce() -> R + Send) -> R {
        match pool(self.count()) {
            Some(pool) => pool.install(work),
            // Then every parallel loop runs on this thread, or fails as it would anyway.
            None => work(),
        }
    }

    fn count(self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.map_or(cores, |n| (n as usize).min(PER_CORE * cores))
    }
}

/// A pool of so many threads, or of fewer where the system refuses them.
fn pool(mut count: usize) -> Option<ThreadPool> {
    while count > 1 {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(count).build() {
            return Some(pool);
        }
        count /= 2;
    }
    let one = || ThreadPoolBuilder::new().num_threads(1);
    // The thread of the caller, if no other can be started.
    one().build().or_else(|_| one().use_current_thread().build()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_threads_is_capped() {
        let cores = std::thread::available_parallelism().unwrap().get();
        let count = |threads| Threads { threads }.count();
        assert_eq!(count(None), cores);
        assert_eq!(count(Some(1)), 1);
        assert_eq!(count(Some(1_000_000)), PER_CORE * cores);
        assert_eq!(Threads { threads: Some(1) }.run(rayon::current_num_threads), 1);
    }
}
