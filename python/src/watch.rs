//! Solves without the interpreter's lock, that hear Ctrl-C and tell how they go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use orthant::control::{Cancel, Next, Observer, Phase, Progress as Iteration, Term};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::settings::shown;

/// How often the interpreter is asked for signals.
const PULSE: Duration = Duration::from_millis(50);

/// How a call wants to be run.
pub(crate) struct Watch {
    pub(crate) threads: Option<usize>,
    /// What is called, and how much time lies between calls at least.
    pub(crate) listeners: Vec<(Py<PyAny>, Duration)>,
    /// That of the options.
    pub(crate) cancel: Cancel,
}

/// What the solve and the thread that waits for it have in common.
pub(crate) struct Shared {
    stop: AtomicBool,
    cancel: Cancel,
    failure: Mutex<Option<PyErr>>,
    listeners: Vec<Listener>,
    /// Where nobody waits and looks for signals, because the calling thread does the work itself: when it last looked.
    alone: Mutex<Option<Instant>>,
    begun: Instant,
}

struct Listener {
    call: Py<PyAny>,
    pause: Duration,
    /// When it last heard of an iteration and of a phase: one is no reason not to hear of the other.
    last: [Mutex<Option<Instant>>; 2],
}

impl Shared {
    /// Tells the listeners that are due; any of them may end the solve, by an answer that is true or by an exception.
    pub(crate) fn tell<P>(&self, event: impl FnMut() -> P) -> Next
    where
        P: for<'py> IntoPyObject<'py>,
    {
        self.tell_of(0, event)
    }

    /// The same of one of the two kinds of events.
    fn tell_of<P>(&self, kind: usize, mut event: impl FnMut() -> P) -> Next
    where
        P: for<'py> IntoPyObject<'py>,
    {
        for listener in &self.listeners {
            let mut last = listener.last[kind].lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_some_and(|last| last.elapsed() < listener.pause) {
                continue;
            }
            let answer = Python::attach(|py| -> PyResult<bool> {
                listener.call.bind(py).call1((event(),))?.is_truthy()
            });
            match answer {
                Ok(true) => self.stop.store(true, Ordering::Relaxed),
                Ok(false) => {}
                Err(error) => self.fail(error),
            }
            *last = Some(Instant::now());
        }
        self.next()
    }

    /// Whether to go on.
    fn next(&self) -> Next {
        self.look();
        if self.stop.load(Ordering::Relaxed) { Next::Stop } else { Next::Continue }
    }

    /// Looks for signals, if nobody else does.
    fn look(&self) {
        let mut last = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() >= PULSE) {
            *last = Some(Instant::now());
            self.hear();
        }
    }

    /// Asks the interpreter for signals; Ctrl-C ends the work.
    fn hear(&self) {
        let heard = Python::attach(|py: Python<'_>| -> PyResult<()> { py.check_signals() });
        if let Err(error) = heard {
            self.fail(error);
        }
    }

    /// The work will end at once, and the call with this error.
    fn fail(&self, error: PyErr) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
        self.cancel.cancel();
    }
}

/// Hears of every phase and of every iteration.
pub(crate) struct Ear<'s> {
    shared: &'s Shared,
    epsilon: f64,
    interval: Option<(f64, f64)>,
}

impl<'s> Ear<'s> {
    /// Of a solve with this epsilon.
    pub(crate) fn new(shared: &'s Shared, epsilon: f64) -> Self {
        Ear { shared, epsilon, interval: None }
    }
}

impl Observer for Ear<'_> {
    fn observe(&mut self, iteration: &mut Iteration<'_>) -> Next {
        self.shared.tell(|| Progress {
            phase: Phase::Iterations.as_str(),
            term: match iteration.term {
                Term::Cross => "cross",
                Term::SelfX => "self_x",
                Term::SelfY => "self_y",
            },
            epsilon: iteration.epsilon,
            iteration: iteration.iteration,
            marginal_error: iteration.marginal_error,
            value: iteration.value(),
            interval: self.interval,
            elapsed: self.shared.begun.elapsed().as_secs_f64(),
        })
    }

    fn narrowed(&mut self, _: Term, [low, high]: [f64; 2]) {
        self.interval = Some((low, high));
    }

    fn phase(&mut self, phase: Phase) -> Next {
        self.shared.tell_of(1, || Progress {
            phase: phase.as_str(),
            term: "",
            epsilon: self.epsilon,
            iteration: 0,
            marginal_error: f64::INFINITY,
            value: f64::NEG_INFINITY,
            interval: self.interval,
            elapsed: self.shared.begun.elapsed().as_secs_f64(),
        })
    }
}

/// The same for flows and comparisons, where steps are told and iterations only asked whether to go on.
pub(crate) struct Deaf<'s>(pub(crate) &'s Shared);

impl Observer for Deaf<'_> {
    fn observe(&mut self, _: &mut Iteration<'_>) -> Next {
        self.0.next()
    }

    fn phase(&mut self, _: Phase) -> Next {
        self.0.next()
    }
}

/// How a solve goes on, as callbacks get it: when a phase begins, now and then while a method is chosen, and after every
/// iteration.
#[pyclass(frozen, get_all, module = "orthant")]
pub(crate) struct Progress {
    /// What is being done: `choosing a method`, `storing features`, `iterating`, `bounding the error` or `improving`.
    phase: &'static str,
    /// Which problem is being solved: `cross`, `self_x` or `self_y`; empty between iterations.
    term: &'static str,
    /// Its regularisation, which may be larger on the way to a small one.
    epsilon: f64,
    /// Iterations done, from 1; 0 where a phase begins.
    iteration: usize,
    /// L1 error of the marginal; infinite where a phase begins.
    marginal_error: f64,
    /// The dual value: a lower bound of the `value` of the result, once the plan has mass 1; minus infinity where a phase
    /// begins.
    value: f64,
    /// Where samples of the clouds (`method="sampled"`) have told that `value_kl` of the term is, which narrows; otherwise `None`.
    interval: Option<(f64, f64)>,
    /// Seconds since the call began.
    elapsed: f64,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        let Progress { phase, term, epsilon, iteration, marginal_error, value, elapsed, .. } = self;
        format!(
            "Progress(phase='{phase}', term='{term}', epsilon={epsilon}, iteration={iteration}, \
             marginal_error={marginal_error:.3e}, value={value}, elapsed={elapsed:.3})"
        )
    }
}

/// How much of a task of many parts is done: pairs of a comparison, permutations, steps of a flow.
#[pyclass(frozen, get_all, module = "orthant", name = "Done")]
pub(crate) struct Advance {
    /// What is counted: `pairs`, `permutations` or `steps`.
    pub(crate) what: &'static str,
    /// How many are done.
    pub(crate) done: usize,
    /// How many there are, or may be.
    pub(crate) total: usize,
    /// The divergence of the last one, if it has one.
    pub(crate) value: Option<f64>,
}

#[pymethods]
impl Advance {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Advance { what, done, total, value } = self;
        let value = value.into_pyobject(py)?.repr()?;
        Ok(format!("Done(what='{what}', done={done}, total={total}, value={value})"))
    }
}

/// Runs `work` on a pool of threads, without the interpreter's lock.
///
/// Solves run on workers of the pool, and signals are for the main thread alone: so the thread that called waits, looks
/// for signals meanwhile, and cancels the work. Where no thread can be started, the thread that called does the work, and
/// looks for signals between iterations.
pub(crate) fn run<R: Send>(
    py: Python<'_>,
    watch: Watch,
    work: impl FnOnce(&Shared) -> R + Send,
) -> PyResult<R> {
    let pool = pool(watch.threads);
    let listener = |(call, pause)| Listener { call, pause, last: Default::default() };
    let shared = Shared {
        stop: AtomicBool::new(false),
        cancel: watch.cancel,
        failure: Mutex::new(None),
        listeners: watch.listeners.into_iter().map(listener).collect(),
        alone: Mutex::new(None),
        begun: Instant::now(),
    };
    // Plans keep theirs.
    shared.cancel.reset();
    let result = py.detach(|| watched(&shared, pool.as_deref(), || work(&shared)));
    let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (result, failure) {
        (Err(panic), _) => std::panic::resume_unwind(panic),
        (Ok(_), Some(error)) => Err(error),
        (Ok(Ok(result)), None) => Ok(result),
        // By another thread that works with the same plan.
        (Ok(Err(_)), None) => Err(PyKeyboardInterrupt::new_err(())),
    }
}

/// What some work came to, or its panic.
type Ended<R> = std::thread::Result<orthant::Result<R>>;

/// Does some work on a thread of its own, or on this one if there is none to be had.
fn watched<R: Send>(
    shared: &Shared,
    pool: Option<&ThreadPool>,
    work: impl FnOnce() -> R + Send,
) -> Ended<R> {
    // Whoever does the work takes it: the closure of a thread that could not be started is gone.
    let work = Mutex::new(Some(work));
    let done = || {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = work.expect("done once");
        shared.cancel.run(|| install(pool, work))
    };
    let (ended, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let elsewhere = pool.and_then(|_| {
        std::thread::scope(|scope| {
            let solve = std::thread::Builder::new().spawn_scoped(scope, || {
                // Gone at the end, whatever the end is.
                let _ended = ended;
                done()
            });
            let solve = solve.ok()?;
            let wait = wait.lock().unwrap_or_else(PoisonError::into_inner);
            while wait.recv_timeout(PULSE) == Err(mpsc::RecvTimeoutError::Timeout) {
                shared.hear();
            }
            Some(solve.join())
        })
    });
    elsewhere.unwrap_or_else(|| {
        *shared.alone.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(done())
    })
}

/// Does some work on a pool, or on this thread alone.
fn install<R: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> R + Send) -> R {
    thread_local! {
        /// A pool of this thread and no other. A thread is in one pool for good, so there is one.
        static ALONE: Option<ThreadPool> =
            ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok();
    }
    match pool {
        Some(pool) => pool.install(work),
        // A thread that is in another pool works there.
        None => ALONE.with(|alone| match alone {
            Some(pool) => pool.install(work),
            None => work(),
        }),
    }
}

/// Runs what takes no observer.
pub(crate) fn quietly<R: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    let cancel = cancel.clone();
    run(py, Watch { threads: None, listeners: Vec::new(), cancel }, |_| work())
}

/// Runs what is quick, but not on the threads of rayon that a fork leaves behind.
pub(crate) fn on_pool<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    let pool = pool(None);
    // Without the lock: the workers may be waiting for it.
    py.detach(|| install(pool.as_deref(), work))
}

/// A pool of the process with this identifier.
struct Pool {
    process: u32,
    threads: Option<usize>,
    workers: Arc<ThreadPool>,
}

static POOLS: Mutex<Vec<Pool>> = Mutex::new(Vec::new());

/// Threads at most.
const MOST_THREADS: usize = 1024;

/// A pool of so many threads, or as many as there are cores; none if they cannot be started.
///
/// Threads do not survive a fork: the child of `multiprocessing` would wait for workers of its parent forever. So pools
/// belong to a process, and are not the global one.
fn pool(threads: Option<usize>) -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = pools.iter().find(|p| p.process == process && p.threads == threads) {
        return Some(found.workers.clone());
    }
    // Those of the parent: ending them would wait too.
    pools.extract_if(.., |p| p.process != process).for_each(std::mem::forget);
    let made = ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .thread_name(|i| format!("orthant-{i}"))
        .build();
    let workers = Arc::new(made.ok()?);
    pools.push(Pool { process, threads, workers: workers.clone() });
    Some(workers)
}

/// A number of threads that may be asked for.
pub(crate) fn check_threads(threads: Option<usize>) -> PyResult<()> {
    match threads.filter(|n| !(1..=MOST_THREADS).contains(n)) {
        Some(threads) => Err(PyValueError::new_err(format!(
            "threads must be between 1 and {MOST_THREADS}, got {threads}"
        ))),
        None => Ok(()),
    }
}

/// What a listener is, for error messages.
pub(crate) fn callable(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if object.is_callable() {
        return Ok(object.clone().unbind());
    }
    let got = shown(object);
    let message = format!("{name} must be a function of one argument, or None; got {got}");
    Err(pyo3::exceptions::PyTypeError::new_err(message))
}
