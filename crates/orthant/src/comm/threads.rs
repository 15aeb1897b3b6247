//! Processes that are threads, for tests.

use std::sync::{Arc, Barrier, Mutex};

use super::Comm;

/// One of several threads that hold parts of a cloud.
#[derive(Debug)]
pub(crate) struct Threads {
    rank: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    barrier: Barrier,
    /// What each thread has to say.
    slots: Mutex<Vec<Vec<u8>>>,
}

impl Threads {
    /// Runs some work in so many threads, which know each other; what they return, in their order.
    ///
    /// Each has workers of its own: one that waits for the others must not keep them from working.
    pub(crate) fn run<R: Send>(size: usize, work: impl Fn(Arc<dyn Comm>) -> R + Sync) -> Vec<R> {
        let slots = Mutex::new(vec![Vec::new(); size]);
        let shared = Arc::new(Shared { barrier: Barrier::new(size), slots });
        std::thread::scope(|scope| {
            let run = |rank| {
                let comm = Arc::new(Threads { rank, shared: shared.clone() });
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + rank % 2).build();
                let work = &work;
                scope.spawn(move || pool.unwrap().install(|| work(comm)))
            };
            let handles: Vec<_> = (0..size).map(run).collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).collect()
        })
    }

    fn gather<const N: usize>(&self, words: impl Iterator<Item = [u8; N]>) -> Vec<Vec<[u8; N]>> {
        let bytes: Vec<u8> = words.flatten().collect();
        let words = |bytes: Vec<u8>| bytes.as_chunks::<N>().0.to_vec();
        self.all_gather(&bytes).into_iter().map(words).collect()
    }
}

impl Comm for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.slots.lock().unwrap().len()
    }

    fn all_sum(&self, values: &mut [i64]) {
        let all = self.gather(values.iter().map(|v| v.to_le_bytes()));
        for (k, value) in values.iter_mut().enumerate() {
            // Not in the order of the others: sums must not depend on it.
            let from = |other: usize| i64::from_le_bytes(all[(other + self.rank) % all.len()][k]);
            *value = (0..all.len()).map(from).fold(0, i64::wrapping_add);
        }
    }

    fn all_max(&self, values: &mut [f64]) {
        assert!(values.iter().all(|v| !v.is_nan()), "NaN is never sent");
        let all = self.gather(values.iter().map(|v| v.to_le_bytes()));
        for (k, value) in values.iter_mut().enumerate() {
            let each = all.iter().map(|words| f64::from_le_bytes(words[k]));
            *value = each.fold(f64::NEG_INFINITY, f64::max);
        }
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.shared.slots.lock().unwrap()[self.rank] = bytes.to_vec();
        self.shared.barrier.wait();
        let all = self.shared.slots.lock().unwrap().clone();
        self.shared.barrier.wait();
        all
    }
}
