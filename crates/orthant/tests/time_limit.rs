//! A limit of time holds in every phase, and what there is by then is returned.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use orthant::{
    Error, Measure, Method, Options, Points, Solver, Stop,
    barycenter::Barycenters,
    compare::Comparer,
    control::{Cancel, Next, Observer, Phase, Progress},
    descent::{Descent, Rest},
    divergence,
    options::{Algorithm, OptionsBuilder},
    rot,
    two_sample::TwoSampleTest,
};

/// One at a time: what one waits for is no fault of another.
static ALONE: Mutex<()> = Mutex::new(());

/// A time, and how long the threads of this process had been ready to run by then, and were not run.
struct Watch {
    begun: Instant,
    starved: Duration,
    _alone: MutexGuard<'static, ()>,
}

impl Watch {
    fn start() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Watch { begun: Instant::now(), starved: starved(), _alone: alone }
    }

    /// Time that others took from this process, where the system tells.
    fn lost(&self) -> Duration {
        starved().saturating_sub(self.starved)
    }

    /// What is promised: a tenth or a second more, on a machine that does nothing else.
    fn holds(&self, limit: Duration) {
        let (took, lost) = (self.begun.elapsed(), self.lost());
        let most = limit + limit.mul_f64(0.1).max(Duration::from_secs(1));
        assert!(
            took <= most + lost,
            "{took:?} for a limit of {limit:?}, {lost:?} of it lost to others"
        );
    }
}

/// Time that the threads of this process have waited for a processor.
fn starved() -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let waited = |thread: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    };
    Duration::from_nanos(threads.flatten().filter_map(waited).sum())
}

fn cloud(n: usize, dim: usize, seed: u64) -> Measure<'static> {
    common::normal_measure(n, &vec![0.0; dim], 1.0, seed)
}

fn clouds(n: usize, dim: usize) -> [Measure<'static>; 2] {
    [cloud(n, dim, 1), cloud(n, dim, 2)]
}

/// Hears of everything.
#[derive(Default)]
struct Ear {
    phases: Vec<Phase>,
    iterations: usize,
    stop_at: Option<Phase>,
}

impl Observer for Ear {
    fn observe(&mut self, _: &mut Progress<'_>) -> Next {
        self.iterations += 1;
        Next::Continue
    }

    fn phase(&mut self, phase: Phase) -> Next {
        self.phases.push(phase);
        if self.stop_at == Some(phase) { Next::Stop } else { Next::Continue }
    }
}

fn builder(epsilon: f64, limit: Duration) -> OptionsBuilder {
    Options::builder(epsilon).time_limit(limit)
}

#[test]
fn an_iteration_that_takes_too_long_is_ended() {
    let limit = Duration::from_millis(300);
    let [mu, nu] = clouds(30_000, 20);
    for method in [Method::online(), Method::Auto] {
        let watch = Watch::start();
        let found = rot(&mu, &nu, &builder(1.0, limit).method(method).build().unwrap());
        watch.holds(limit);
        drop(watch);
        match found {
            Ok(solution) => assert_eq!(solution.stop, Stop::TimeLimit),
            Err(Error::TimeLimit { limit: said, phase }) => {
                assert_eq!(said, limit);
                let message = Error::TimeLimit { limit, phase }.to_string();
                assert!(message.contains("0.3 s") && message.contains(phase.as_str()), "{message}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    // The same for the three terms of a divergence, one after the other.
    let watch = Watch::start();
    let found = divergence(&mu, &nu, &builder(1.0, limit).build().unwrap());
    watch.holds(limit);
    drop(watch);
    assert!(found.is_err() || !found.unwrap().converged());
}

#[test]
fn a_choice_takes_a_small_part_of_the_time() {
    let limit = Duration::from_secs(2);
    let [mu, nu] = clouds(20_000, 50);
    let mut ear = Ear::default();
    let options = builder(5.0, limit).allow_exact(false).build().unwrap();
    let watch = Watch::start();
    let found = Solver::new(&options).observer(&mut ear).rot(&mu, &nu);
    watch.holds(limit);
    let starved = watch.lost() > limit.mul_f64(0.5);
    assert_eq!(ear.phases[0], Phase::Choosing);
    assert!(starved || ear.phases.contains(&Phase::Features), "{:?}", ear.phases);
    assert!(matches!(found, Ok(_) | Err(Error::TimeLimit { .. })), "{found:?}");
}

#[test]
fn what_there_is_is_returned() {
    // Many quick iterations: the last one in time counts.
    let limit = Duration::from_millis(500);
    let [mu, nu] = clouds(600, 2);
    let hard = builder(1e-4, limit).method(Method::online()).tolerance(1e-13);
    let options = hard.max_iterations(10_000_000).build().unwrap();
    let watch = Watch::start();
    let found = rot(&mu, &nu, &options);
    watch.holds(limit);
    // On a machine that does nothing else an iteration takes a few milliseconds.
    let late = |error: &Error| matches!(error, Error::TimeLimit { .. }) && watch.lost() > limit;
    match found {
        Ok(s) => {
            assert_eq!(s.stop, Stop::TimeLimit);
            assert!(s.iterations > 1 && s.interval_kl.unwrap().contains(s.value_kl));
        }
        Err(error) => assert!(late(&error), "{error}"),
    }
    drop(watch);
    // A divergence has all three terms.
    let watch = Watch::start();
    let found = divergence(&mu, &nu, &options);
    watch.holds(limit);
    let late = |error: &Error| matches!(error, Error::TimeLimit { .. }) && watch.lost() > limit;
    match found {
        Ok(d) => assert!(d.terms().iter().all(|t| t.iterations > 0) && !d.converged()),
        Err(error) => assert!(late(&error), "{error}"),
    }
}

#[test]
fn a_test_does_without_its_interval_rather_than_being_late() {
    // The permutations take a moment, and the divergence to this accuracy minutes.
    let [mu, nu] = clouds(3000, 8);
    let limit = Duration::from_secs(4);
    let hard = builder(0.05, limit).method(Method::online()).tolerance(1e-12).accuracy(1e-9);
    let options = hard.max_iterations(1_000_000).build().unwrap();
    let watch = Watch::start();
    let found = TwoSampleTest::new(&options).permutations(1).run(&mu, &nu);
    watch.holds(limit);
    match found {
        Ok(test) => assert!(!test.meets_accuracy(1e-9), "{test:?}"),
        Err(error) => assert!(matches!(error, Error::TimeLimit { .. }), "{error}"),
    }
    // No time at all: the statistic alone.
    let options = builder(0.5, Duration::ZERO).build().unwrap();
    let [mu, nu] = clouds(20, 1);
    let found = TwoSampleTest::new(&options).permutations(99).run(&mu, &nu).unwrap();
    assert_eq!((found.value, found.interval), (found.statistic, None));
}

#[test]
fn many_things_within_one_limit() {
    let limit = Duration::from_millis(400);
    let measures: Vec<Measure<'_>> = (0..30).map(|k| cloud(1500, 3, k)).collect();
    let options = builder(0.05, limit).tolerance(1e-9).build().unwrap();
    let watch = Watch::start();
    let part = Comparer::new(&options).compare(&measures).unwrap();
    watch.holds(limit);
    drop(watch);
    assert!(!part.is_complete());

    let watch = Watch::start();
    let found =
        TwoSampleTest::new(&options).permutations(1_000_000).run(&measures[0], &measures[1]);
    watch.holds(limit);
    drop(watch);
    match found {
        Ok(test) => assert_eq!(test.stop, Stop::TimeLimit),
        Err(error) => assert!(matches!(error, Error::TimeLimit { .. }), "{error}"),
    }

    let watch = Watch::start();
    let found =
        Descent::new(&options).max_steps(100_000).still(0.0).flow(&measures[0], &measures[1]);
    watch.holds(limit);
    drop(watch);
    match found {
        Ok(flow) => {
            assert!(matches!(flow.rest, Rest::TimeLimit | Rest::Stalled), "{:?}", flow.rest);
        }
        Err(error) => assert_eq!(error, Error::NoGradient { reason: "time_limit" }),
    }

    let watch = Watch::start();
    let support = Points::new(common::normal(2000, &[0.0; 3], 1.0, 7), 3).unwrap();
    let found = Barycenters::new(&options).debiased(true).fixed(&measures, &[1.0; 30], &support);
    watch.holds(limit);
    drop(watch);
    match found {
        Ok(barycenter) => assert_eq!(barycenter.stop, Stop::TimeLimit),
        Err(error) => assert!(matches!(error, Error::TimeLimit { .. }), "{error}"),
    }
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let [mu, nu] = clouds(300, 2);
    let solve = |options: OptionsBuilder| rot(&mu, &nu, &options.build().unwrap()).unwrap();
    let free = solve(Options::builder(0.1));
    let limited = solve(builder(0.1, Duration::from_secs(3600)));
    assert_eq!(free.value.to_bits(), limited.value.to_bits());
    assert_eq!((free.potential_x, free.iterations), (limited.potential_x, limited.iterations));
    // Beyond the range of any clock.
    let endless = solve(builder(0.1, Duration::MAX));
    assert_eq!(free.value.to_bits(), endless.value.to_bits());
}

#[test]
fn an_observer_hears_of_phases_and_may_stop_there() {
    let [mu, nu] = clouds(1500, 6);
    let options = Options::builder(2.0).allow_exact(false).accuracy(1e-6).max_rank(2000);
    let options = options.build().unwrap();
    let solve = |ear: &mut Ear| Solver::new(&options).observer(ear).rot(&mu, &nu);
    let mut ear = Ear::default();
    let all = solve(&mut ear).unwrap();
    for phase in [Phase::Choosing, Phase::Features, Phase::Iterations, Phase::Certificate] {
        assert!(ear.phases.contains(&phase), "{phase:?}: {:?}", ear.phases);
    }
    assert!(ear.iterations >= all.iterations);
    for phase in [Phase::Choosing, Phase::Features] {
        let mut ear = Ear { stop_at: Some(phase), ..Ear::default() };
        assert_eq!(solve(&mut ear).unwrap_err(), Error::Cancelled);
        assert_eq!(ear.iterations, 0);
    }
    let mut ear = Ear { stop_at: Some(Phase::Iterations), ..Ear::default() };
    let found = solve(&mut ear).unwrap();
    assert_eq!((found.stop, found.iterations), (Stop::Requested, 1));
    let mut ear = Ear { stop_at: Some(Phase::Certificate), ..Ear::default() };
    let found = solve(&mut ear).unwrap();
    assert_eq!((found.stop, found.interval_kl), (Stop::Requested, None));
}

#[test]
fn a_token_with_a_point_in_time_ends_maps_too() {
    let [mu, nu] = clouds(3000, 10);
    let cancel = Cancel::default().until(Instant::now() + Duration::from_millis(500));
    let options = Options::builder(1.0).method(Method::online()).cancel(cancel.clone());
    let options = options.max_iterations(2).build().unwrap();
    let watch = Watch::start();
    let ended = cancel.run(|| {
        let plan = Solver::new(&options).plan(&mu, &nu).unwrap();
        loop {
            plan.marginals().unwrap();
        }
    });
    assert_eq!(ended, Err::<(), _>(Error::Cancelled));
    watch.holds(Duration::from_millis(500));
}

#[test]
fn accelerated_solves_do_an_iteration_whatever_the_limit() {
    let mu = common::normal_measure(80, &[0.0, 0.0], 1.0, 1);
    let nu = common::normal_measure(60, &[0.5, 0.2], 0.7, 2);
    let watch = Watch::start();
    for (name, method) in [
        ("paper", Method::paper()),
        ("sobol", Method::gaussian()),
        ("adaptive", Method::adaptive()),
        ("lattice", Method::lattice()),
        ("dense", Method::dense()),
        ("online", Method::online()),
    ] {
        let options = Options::builder(0.02)
            .method(method)
            .algorithm(Algorithm::Accelerated)
            .max_iterations(200_000)
            .time_limit(Duration::ZERO);
        let options = if name == "lattice" { options } else { options.rank(60) };
        let solution = rot(&mu, &nu, &options.build().unwrap()).unwrap();
        assert_eq!((solution.stop, solution.iterations), (Stop::TimeLimit, 1), "{name}");
    }
    drop(watch);
}
