//! Nothing is allocated inside the loop of a solve.
//!
//! A file of its own, with one test: the counter sees the threads of the pools, and not that of the test harness,
//! which writes a line of its own when a test takes long.
#![allow(unsafe_code, reason = "a global allocator that counts is unsafe to implement")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::normal_measure;
use orthant::{
    Measure, Method, Options, Precision, Solution, Solver,
    barycenter::Barycenters,
    control::{Next, Progress, Term},
    options::{Algorithm, Anchors, Cost, Features},
};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Counts calls that hand out memory.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread is one of those that solve.
    static SOLVES: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if SOLVES.get() {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Warm after this iteration, counted up to that one.
const FIRST: usize = 3;
const LAST: usize = 40;

/// What the counter read after each iteration of each of the three terms.
#[derive(Debug)]
struct Counts([[usize; LAST + 1]; 3]);

impl Counts {
    /// Solves a divergence, with `value` asked for at every iteration or not.
    fn of(
        mu: &Measure<'_>,
        nu: &Measure<'_>,
        options: &Options,
        value: bool,
    ) -> (Self, [Solution; 3]) {
        let mut counts = Counts([[0; LAST + 1]; 3]);
        let mut observer = |progress: &mut Progress<'_>| {
            if value {
                assert!(progress.value().is_finite());
            }
            let term = match progress.term {
                Term::Cross => 0,
                Term::SelfX => 1,
                Term::SelfY => 2,
            };
            counts.0[term][progress.iteration] = ALLOCATIONS.load(Ordering::SeqCst);
            if progress.iteration == LAST { Next::Stop } else { Next::Continue }
        };
        let d = Solver::new(options).observer(&mut observer).divergence(mu, nu).unwrap();
        (counts, [d.cross, d.self_x, d.self_y])
    }

    fn assert_none(&self, name: &str, solutions: &[Solution; 3], first: usize) {
        for (term, (counts, solution)) in self.0.iter().zip(solutions).enumerate() {
            // Self terms and easy kernels converge in fewer: their window is what there is.
            let last = solution.iterations;
            let enough = if name.starts_with("arc-cosine") { FIRST } else { 10 };
            let done = solution.converged() && last > enough;
            assert!(last == LAST || done, "{name}, {term}: {last}");
            assert!(counts[FIRST] > 0, "the counter counts");
            let made = counts[last] - counts[first.min(last)];
            assert_eq!(made, 0, "{name}, term {term}: allocations in iterations {first} to {last}");
        }
        if !(name.starts_with("arc-cosine") || name.starts_with("nystrom")) {
            assert_eq!(solutions[0].iterations, LAST, "{name}");
        }
    }
}

/// A pool whose threads have all worked, stolen and slept: each allocates a little when it first
/// does, which is rayon's business and none of the loop's.
fn warm_pool(threads: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(threads).start_handler(|_| SOLVES.set(true));
    let pool = pool.build().unwrap();
    for _ in 0..3 {
        pool.broadcast(|_| ());
        pool.install(|| {
            (0..10_000_u32).into_par_iter().for_each(|i| assert!(std::hint::black_box(i) < 10_000));
        });
        std::thread::sleep(Duration::from_millis(30));
    }
    pool
}

#[test]
fn iterations_do_not_allocate() {
    // Several chunks of rows on either side.
    let mu = normal_measure(400, &[1.0, 1.0], 1.0, 1);
    let nu = normal_measure(300, &[0.0, 0.0], 0.3, 2);
    let arc_cosine = Features::ArcCosine { order: 1, kappa: 0.1, sigma: 1.5 };
    let gaussian = || Features::Gaussian(Anchors::Paper { centred: true });
    let cases = [
        ("gaussian f32", Method::paper(), Precision::F32),
        ("gaussian f64", Method::paper(), Precision::F64),
        ("Sobol", Method::gaussian(), Precision::F64),
        ("lattice f32", Method::lattice(), Precision::F32),
        ("lattice f64", Method::lattice(), Precision::F64),
        ("arc-cosine", Method::Factored(arc_cosine), Precision::F64),
        ("dense f32", Method::dense(), Precision::F32),
        ("dense f64", Method::dense(), Precision::F64),
        ("online", Method::online(), Precision::F64),
        ("online features", Method::Online(Cost::Features(gaussian())), Precision::F64),
        ("nystrom", Method::nystrom(), Precision::F64),
    ];
    for threads in [1, 2] {
        let pool = warm_pool(threads);
        for (name, method, precision) in &cases {
            let epsilon = match *name {
                "arc-cosine" => 0.05,
                // Smaller ones end with products that are not positive.
                "nystrom" => 2.0,
                _ => 0.01,
            };
            let mut options = Options::builder(epsilon)
                .algorithm(Algorithm::Anderson)
                .method(method.clone())
                .precision(*precision)
                .tolerance(if *precision == Precision::F32 { 1e-6 } else { 1e-13 });
            if !name.starts_with("lattice") {
                options = options.rank(64);
            }
            let relaxed = options.clone().reach(3.0).build().unwrap();
            let momentum = options.clone().algorithm(Algorithm::Accelerated).build().unwrap();
            let options = options.build().unwrap();
            // With momentum potentials go further at first, and the windows of lattices take longer to be as large as
            // they ever are.
            let later = if name.starts_with("lattice") { 13 } else { FIRST };
            for (value, options, first) in [
                (false, &options, FIRST),
                (true, &options, FIRST),
                (true, &relaxed, FIRST),
                (true, &momentum, later),
            ] {
                let name = format!("{name}, {threads} threads, value {value}");
                let (counts, solutions) = pool.install(|| Counts::of(&mu, &nu, options, value));
                counts.assert_none(&name, &solutions, first);
            }
        }
    }
    absorption_does_not_allocate();
    barycentres_do_not_allocate(&mu, &nu);
    the_counter_sees_an_allocation(&mu, &nu);
}

/// Small epsilon: potentials travel, and features are stored anew inside the window.
fn absorption_does_not_allocate() {
    let mu = normal_measure(400, &[1.0, 1.0], 1.0, 1);
    let nu = normal_measure(300, &[0.0, 0.0], 0.3, 2);
    for threads in [1, 2] {
        let pool = warm_pool(threads);
        for method in [Method::paper(), Method::dense()] {
            let solve = |iterations: usize| {
                let options = Options::builder(1e-3)
                    .algorithm(Algorithm::Anderson)
                    .method(method.clone())
                    .precision(Precision::F32)
                    .max_iterations(iterations)
                    .rank(64)
                    .build()
                    .unwrap();
                let mut counts = [0; LAST + 1];
                let mut observer = |progress: &mut Progress<'_>| {
                    counts[progress.iteration] = ALLOCATIONS.load(Ordering::SeqCst);
                    Next::Continue
                };
                let solution = pool.install(|| {
                    Solver::new(&options).observer(&mut observer).rot(&mu, &nu).unwrap()
                });
                (solution, counts)
            };
            let (early, _) = solve(FIRST);
            let (late, counts) = solve(LAST);
            assert_eq!(late.iterations, LAST);
            let window = late.builds - early.builds;
            assert!(late.builds > 2 && window > 0, "{method:?}: {} {}", early.builds, late.builds);
            assert_eq!(counts[LAST] - counts[FIRST], 0, "{method:?}, {threads} threads");
        }
    }
}

/// Projections, and the debiasing factor.
fn barycentres_do_not_allocate(mu: &Measure<'_>, nu: &Measure<'_>) {
    let support = normal_measure(350, &[0.5, 0.5], 0.8, 3);
    let measures = [mu.clone(), nu.clone()];
    for threads in [1, 2] {
        let pool = warm_pool(threads);
        for method in [Method::gaussian(), Method::lattice(), Method::dense(), Method::online()] {
            for debiased in [false, true] {
                let options = Options::builder(0.1).method(method.clone()).tolerance(1e-13);
                let options = options.max_iterations(LAST).build().unwrap();
                let mut counts = [0; LAST + 1];
                let mut observer = |progress: &mut Progress<'_>| {
                    assert!(progress.value().is_finite());
                    counts[progress.iteration] = ALLOCATIONS.load(Ordering::SeqCst);
                    Next::Continue
                };
                let solver = Barycenters::new(&options).debiased(debiased).observer(&mut observer);
                let found = pool.install(|| solver.fixed(&measures, &[0.5, 0.5], support.points()));
                assert_eq!(found.unwrap().iterations, LAST);
                // The windows of lattices take some iterations to be as large as they ever are.
                let made = counts[LAST] - counts[20];
                assert_eq!(made, 0, "{method:?}, {threads} threads, debiased: {debiased}");
            }
        }
    }
}

/// The test can fail: an observer that allocates is caught.
fn the_counter_sees_an_allocation(mu: &Measure<'_>, nu: &Measure<'_>) {
    let options = Options::builder(0.05).max_iterations(5).build().unwrap();
    let mut counts = [0; 6];
    let mut observer = |progress: &mut Progress<'_>| {
        counts[progress.iteration] = ALLOCATIONS.load(Ordering::SeqCst);
        std::hint::black_box(Vec::<u8>::with_capacity(1));
        Next::Continue
    };
    let solver = Solver::new(&options).observer(&mut observer);
    warm_pool(1).install(|| solver.rot(mu, nu)).unwrap();
    assert_eq!(counts[5] - counts[3], 2);
}
