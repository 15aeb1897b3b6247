//! `orthant bench`: what this machine does, as ratios inside one run.

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use faer::linalg::matmul::matmul;
use faer::{Accum, ColMut, ColRef, MatRef, Par};
use orthant::bench::{Storage, Sweep, on_lattice};
use orthant::features::Gaussian;
use orthant::{Cloud, Method, Options, Precision, plan, rot};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::accuracy;
use crate::args::{Bench, Suite};
use crate::data;
use crate::failure::Failure;
use crate::memory;
use crate::output;

/// Regularisation of all measurements, on the problem of the paper's Figure 1.
const EPSILON: f64 = 0.5;
/// Set in the process that measures the memory of a solve.
const CHILD: &str = "ORTHANT_BENCH_MEMORY_CHILD";

pub(crate) fn run(arguments: &Bench) -> Result<ExitCode, Failure> {
    if let Ok(case) = std::env::var(CHILD) {
        return arguments.threads.run(|| memory_child(&case, arguments.quick));
    }
    if let (Some(files), Some(epsilon)) = (&arguments.data, arguments.eps) {
        return arguments.threads.run(|| {
            accuracy::race_on(files, epsilon)?;
            Ok(ExitCode::SUCCESS)
        });
    }
    let wants = |suite| arguments.suite == Suite::All || arguments.suite == suite;
    arguments.threads.run(|| {
        let (sizes, repeats) = if arguments.quick {
            (vec![(2_000, 104), (5_000, 600)], 5)
        } else {
            (vec![(20_000, 104), (20_000, 600), (100_000, 104), (100_000, 600)], 20)
        };
        for (n, rank) in sizes {
            // As much time for small sizes as for large ones.
            let repeats = if arguments.quick { repeats } else { repeats * 100_000 / n };
            if wants(Suite::Sweep) {
                sweep::<f32>(n, rank, repeats, "f32")?;
                sweep::<f64>(n, rank, repeats, "f64")?;
            }
            if wants(Suite::Threads) && rank == 600 {
                threads(n, rank, repeats)?;
            }
        }
        if wants(Suite::Lattice) {
            lattice(arguments.quick)?;
        }
        if wants(Suite::Accuracy) {
            accuracy::run(arguments.quick)?;
        }
        if wants(Suite::Certificates) {
            accuracy::certificates(arguments.quick)?;
        }
        if wants(Suite::Pairs) {
            pairs(arguments.quick)?;
        }
        if wants(Suite::Gradients) {
            gradients(arguments.quick)?;
        }
        if wants(Suite::Memory) {
            peak_memory(arguments)?;
        }
        if wants(Suite::Linear) {
            linear(arguments.quick)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Prints one line.
pub(crate) fn line(value: &Value) -> Result<(), Failure> {
    output::to_stdout(|out| writeln!(out, "{value}"))
}

/// The best times of several pieces of work, done in turn so that all see the same machine. Each is
/// done twice and the second time counts, so that each finds the caches as it left them.
fn interleaved<const K: usize>(repeats: usize, mut work: impl FnMut(usize)) -> [f64; K] {
    let mut best = [f64::INFINITY; K];
    for _ in 0..repeats {
        for (k, best) in best.iter_mut().enumerate() {
            work(k);
            let begun = Instant::now();
            work(k);
            *best = best.min(begun.elapsed().as_secs_f64());
        }
    }
    best
}

/// Number formats of the benchmarks.
trait Number: Storage + faer::traits::ComplexField + Copy {
    const ONE: Self;
}
impl Number for f32 {
    const ONE: f32 = 1.0;
}
impl Number for f64 {
    const ONE: f64 = 1.0;
}

/// Reads every number once, with independent sums so that additions do not hold up the reading.
fn read<T: Number>(numbers: &[T]) -> T {
    let partial: Vec<T> = numbers
        .par_chunks(1 << 16)
        .map(|chunk| {
            let mut sums = [T::ONE; 64];
            for part in chunk.as_chunks::<64>().0 {
                for (sum, x) in sums.iter_mut().zip(part) {
                    *sum += *x;
                }
            }
            sums.into_iter().fold(T::ONE, |a, b| a + b)
        })
        .collect();
    partial.into_iter().fold(T::ONE, |a, b| a + b)
}

/// The iteration as four matrix-vector products: `K v = Xi (Zeta^T v)` and its mirror.
struct Products<T> {
    n: usize,
    u: Vec<T>,
    z: Vec<T>,
}

impl<T: Number> Products<T> {
    fn iterate(&mut self, features: [&[T]; 2], stride: usize) {
        let par = Par::rayon(rayon::current_num_threads());
        for matrix in features {
            let m = MatRef::from_row_major_slice(matrix, self.n, stride);
            let (u, z) = (&mut self.u, &mut self.z);
            matmul(
                ColMut::from_slice_mut(u).as_mat_mut(),
                Accum::Replace,
                m,
                ColRef::from_slice(z).as_mat(),
                T::ONE,
                par,
            );
            matmul(
                ColMut::from_slice_mut(z).as_mat_mut(),
                Accum::Replace,
                m.transpose(),
                ColRef::from_slice(u).as_mat(),
                T::ONE,
                par,
            );
            // Kept in range; costs nothing beside the products.
            z.fill(T::ONE);
        }
    }
}

fn sweep<T: Number>(n: usize, rank: usize, repeats: usize, precision: &str) -> Result<(), Failure> {
    let [x, y] = data::figure_1(n, 0);
    let [mu, nu] = [data::uniform(&x, n)?, data::uniform(&y, n)?];
    let map = Gaussian::paper(&mu, &nu, EPSILON, rank, 0, true)?;
    let mut sweep = Sweep::<T>::new(&map, &mu, &nu)?;
    let stride = sweep.stride();
    let mut products = Products { n, u: vec![T::ONE; n], z: vec![T::ONE; stride] };
    let mut failure = None;
    let mut error = f64::NAN;
    let [fused, plain, gemv, build] = interleaved(repeats, |k| match k {
        0 => match sweep.iterate() {
            Ok(e) => error = e,
            Err(e) => failure = Some(e),
        },
        1 => sweep.features().iter().for_each(|f| {
            black_box(read(f));
        }),
        2 => products.iterate(sweep.features(), stride),
        _ => failure = sweep.build().err().or(failure.take()),
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    let bytes = (2 * n * stride * size_of::<T>()) as f64;
    let entry = |bench: &str, time: f64| {
        json!({
            "bench": bench, "precision": precision, "n": n, "m": n, "rank": rank,
            "threads": rayon::current_num_threads(), "seconds": time,
            "ns_per_point": 1e9 * time / (2 * n) as f64, "gb_per_s": 1e-9 * bytes / time,
            "ratio_to_read": plain / time, "speedup_over_gemv": gemv / time,
        })
    };
    line(&entry("read", plain))?;
    let mut fused_line = entry("sweep", fused);
    fused_line["marginal_error"] = json!(error);
    line(&fused_line)?;
    let mut products_line = entry("four_products", gemv);
    products_line["gb_per_s"] = json!(2e-9 * bytes / gemv);
    line(&products_line)?;
    let mut build_line = entry("features", build);
    build_line["sweeps"] = json!(build / fused);
    line(&build_line)
}

fn threads(n: usize, rank: usize, repeats: usize) -> Result<(), Failure> {
    let [x, y] = data::figure_1(n, 0);
    let [mu, nu] = [data::uniform(&x, n)?, data::uniform(&y, n)?];
    let map = Gaussian::paper(&mu, &nu, EPSILON, rank, 0, true)?;
    let mut sweep = Sweep::<f32>::new(&map, &mu, &nu)?;
    let many = rayon::current_num_threads();
    let pool = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|e| Failure::Other(anyhow::Error::new(e)))
    };
    let pools = [pool(1)?, pool(many)?];
    let mut failure = None;
    let [one, all] = interleaved(repeats, |k| {
        failure = pools[k].install(|| sweep.iterate()).err().or(failure.take());
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    line(&json!({
        "bench": "threads", "precision": "f32", "n": n, "m": n, "rank": rank, "threads": many,
        "seconds_one": one, "seconds": all, "speedup_over_one": one / all,
    }))
}

/// Epsilon and error of the kernel for a lattice of about 576 nodes.
const LATTICE: [f64; 2] = [0.25, 1e-3];

/// An iteration on a lattice, whose features are never stored, against one over as many stored ones.
fn lattice(quick: bool) -> Result<(), Failure> {
    let (n, repeats) = if quick { (20_000, 5) } else { (100_000, 20) };
    let [x, y] = data::figure_1(n, 0);
    let [mu, nu] = [data::uniform(&x, n)?, data::uniform(&y, n)?];
    let many = rayon::current_num_threads();
    let one = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(|e| Failure::Other(anyhow::Error::new(e)))?;
    let [epsilon, ratio] = LATTICE;
    on_lattice::<f64, _>(&mu, &nu, epsilon, ratio, |double| {
        on_lattice::<f32, _>(&mu, &nu, epsilon, ratio, |single| {
            let rank = single.rank();
            let map = Gaussian::paper(&mu, &nu, EPSILON, rank, 0, true)?;
            let mut stored = Sweep::<f32>::new(&map, &mu, &nu)?;
            let mut failure = None;
            let mut errors = [f64::NAN; 2];
            let times: [f64; 4] = interleaved(repeats, |k| {
                let done = match k {
                    0 => stored.iterate(),
                    1 => single.iterate(),
                    2 => double.iterate(),
                    _ => one.install(|| single.iterate()),
                };
                match done {
                    Ok(e) if k == 1 || k == 2 => errors[k - 1] = e,
                    Ok(_) => {}
                    Err(e) => failure = Some(e),
                }
            });
            if let Some(error) = failure {
                return Err(Failure::from(error));
            }
            for (k, precision) in [(1, "f32"), (2, "f64")] {
                let mut entry = json!({
                    "bench": "lattice", "precision": precision, "n": n, "m": n, "rank": rank,
                    "threads": many, "seconds": times[k],
                    "ns_per_point": 1e9 * times[k] / (2 * n) as f64,
                    "speedup_over_stored_f32": times[0] / times[k],
                    "marginal_error": errors[k - 1],
                });
                if k == 1 {
                    entry["speedup_over_one_thread"] = json!(times[3] / times[1]);
                }
                line(&entry)?;
            }
            Ok(())
        })
    })???;
    growth(quick)
}

/// Growth of the time of whole solves on a lattice with the number of points.
fn growth(quick: bool) -> Result<(), Failure> {
    let sizes: &[usize] =
        if quick { &[10_000, 100_000] } else { &[100_000, 1_000_000, 10_000_000] };
    let most = sizes[sizes.len() - 1];
    let [x, y] = data::figure_1(most, 0);
    let mut times = Vec::new();
    let mut iterations = Vec::new();
    let mut bounds = Vec::new();
    for &n in sizes {
        let [mu, nu] = [data::uniform(&x, n)?, data::uniform(&y, n)?];
        let options = Options::builder(0.05).method(Method::lattice()).accuracy(1e-4).build()?;
        let mut best = f64::INFINITY;
        let repeats = if n > 1_000_000 { 1 } else { 3 };
        for repeat in 0..repeats {
            let begun = Instant::now();
            let solution = rot(&mu, &nu, &options)?;
            best = best.min(begun.elapsed().as_secs_f64());
            if repeat == 0 {
                iterations.push(solution.iterations);
                bounds.push(solution.bound.map(|bound| bound / solution.value_kl));
            }
        }
        times.push(best);
    }
    let last = times.len() - 1;
    let exponent = (times[last] / times[0]).ln() / (most as f64 / sizes[0] as f64).ln();
    line(&json!({
        "bench": "lattice_growth", "precision": "f64", "epsilon": 0.05, "accuracy": 1e-4, "n": sizes,
        "seconds": times, "iterations": iterations, "relative_bound": bounds, "exponent": exponent,
        "peak_bytes": memory::peak(),
    }))
}

/// Pairs of a plan: what one takes when many are drawn, and what a few take.
fn pairs(quick: bool) -> Result<(), Failure> {
    let count = if quick { 100_000 } else { 1_000_000 };
    for (name, method, n) in [
        ("sobol", Method::gaussian(), if quick { 10_000 } else { 100_000 }),
        ("lattice", Method::lattice(), if quick { 100_000 } else { 1_000_000 }),
        ("online", Method::online(), if quick { 2_000 } else { 20_000 }),
    ] {
        let [x, y] = data::figure_1(n, 0);
        let [mu, nu] = [data::uniform(&x, n)?, data::uniform(&y, n)?];
        let mut builder = Options::builder(0.05).method(method).accuracy(1e-4).max_iterations(100);
        if name == "sobol" {
            builder = builder.rank(if quick { 200 } else { 1000 });
        }
        let options = builder.build()?;
        let begun = Instant::now();
        let plan = plan(&mu, &nu, &options)?;
        let solve = begun.elapsed().as_secs_f64();
        let seconds = |count: usize| -> Result<f64, Failure> {
            let begun = Instant::now();
            black_box(plan.sample(count, 0)?);
            Ok(begun.elapsed().as_secs_f64())
        };
        let (few, many, more) = (seconds(1)?, seconds(count)?, seconds(4 * count)?);
        line(&json!({
            "bench": "pairs", "method": name, "n": n, "m": n, "rank": plan.solution().rank, "pairs": count,
            "threads": rayon::current_num_threads(), "seconds_solve": solve, "seconds_one_pair": few,
            "seconds": many, "ns_per_pair": 1e9 * many / count as f64,
            "ns_per_further_pair": 1e9 * (more - many) / (3 * count) as f64,
            "marginal_error": plan.solution().marginal_error_x,
        }))?;
    }
    Ok(())
}

/// What a plan is good for, in units of an iteration: gradients and maps, at two sizes.
fn gradients(quick: bool) -> Result<(), Failure> {
    for (name, method, sizes) in [
        ("sobol", Method::gaussian(), if quick { [1_000, 2_000] } else { [25_000, 100_000] }),
        ("lattice", Method::lattice(), if quick { [5_000, 10_000] } else { [250_000, 1_000_000] }),
        ("online", Method::online(), if quick { [500, 1_000] } else { [5_000, 20_000] }),
    ] {
        let mut before: Option<[f64; 2]> = None;
        for n in sizes {
            let [x, y] = data::figure_1(n, 0);
            let [mu, nu] = [data::uniform(&x, n)?, data::uniform(&y, n)?];
            let mut builder = Options::builder(EPSILON).method(method.clone()).accuracy(1e-4);
            if name == "sobol" {
                builder = builder.rank(if quick { 200 } else { 600 });
            }
            let options = builder.build()?;
            let plan = plan(&mu, &nu, &options)?;
            let solution = plan.solution();
            let iteration = solution.times.solve.as_secs_f64() / solution.iterations as f64;
            let mut failure = None;
            let [points, epsilon, map] = interleaved(if quick { 1 } else { 3 }, |k| {
                let gradient = plan.gradient();
                let done = match k {
                    0 => gradient.points(Cloud::X).map(|g| g.len()),
                    1 => gradient.epsilon().map(|_| 1),
                    _ => plan.barycentric(Cloud::X).map(|m| m.len()),
                };
                failure = black_box(done).err().or(failure.take());
            });
            if let Some(error) = failure {
                return Err(error.into());
            }
            let ratio = n as f64 / sizes[0] as f64;
            let exponent = |k: usize, now: f64| before.map(|b| (now / b[k]).ln() / ratio.ln());
            line(&json!({
                "bench": "gradients", "method": name, "n": n, "m": n, "rank": solution.rank,
                "threads": rayon::current_num_threads(), "iterations": solution.iterations,
                "seconds_iteration": iteration, "seconds_by_points": points,
                "seconds_by_epsilon": epsilon, "seconds_map": map,
                "by_points_in_iterations": points / iteration, "map_in_iterations": map / iteration,
                "exponent_by_points": exponent(0, points), "exponent_map": exponent(1, map),
                "marginal_error": solution.marginal_error_x,
            }))?;
            before = Some([points, map]);
        }
    }
    Ok(())
}

/// The methods whose memory is measured.
const MEMORY_CASES: [&str; 4] = ["gaussian", "lattice", "dense", "online"];

/// Peak memory of whole solves, each in a process of its own.
fn peak_memory(arguments: &Bench) -> Result<(), Failure> {
    let exe = std::env::current_exe()?;
    for case in MEMORY_CASES {
        let mut command = Command::new(&exe);
        command.args(["bench", "--suite", "memory"]).env(CHILD, case);
        if arguments.quick {
            command.arg("--quick");
        }
        let output = command.output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::Other(anyhow::anyhow!("measuring memory: {text}")));
        }
        output::to_stdout(|out| out.write_all(&output.stdout))?;
    }
    Ok(())
}

/// One solve, and the memory that it took beyond what was there before.
fn memory_child(case: &str, quick: bool) -> Result<ExitCode, Failure> {
    let rank = if quick { 200 } else { 600 };
    let (method, precision, n) = match case {
        "dense" => (Method::dense(), Precision::F64, if quick { 2_000 } else { 8_000 }),
        "online" => (Method::online(), Precision::F64, if quick { 4_000 } else { 20_000 }),
        "lattice" => (Method::lattice(), Precision::F64, if quick { 100_000 } else { 1_000_000 }),
        _ => (Method::paper(), Precision::F32, if quick { 10_000 } else { 100_000 }),
    };
    let [x, y] = data::figure_1(n, 0);
    let [mu, nu] = [data::uniform(&x, n)?, data::uniform(&y, n)?];
    // What is told is what is stored: features, the kernel, or nothing but a few rows.
    let (stored, per_point) = match case {
        "dense" => (Some((n * n * 8) as f64), None),
        "online" | "lattice" => (None, Some(2 * n)),
        _ => (Some((2 * n * rank * 4) as f64), None),
    };
    let before = memory::peak();
    let epsilon = if case == "lattice" { 0.05 } else { EPSILON };
    let mut builder = Options::builder(epsilon)
        .method(method)
        .accuracy(1e-4)
        .precision(precision)
        .max_iterations(if case == "online" { 2 } else { 1000 });
    if case == "gaussian" {
        builder = builder.rank(rank);
    }
    let options = builder.build()?;
    let solution = rot(&mu, &nu, &options)?;
    let (Some(before), Some(peak)) = (before, memory::peak()) else {
        return Err(Failure::Other(anyhow::anyhow!("this system does not tell the peak memory")));
    };
    let mut entry = json!({
        "bench": "memory", "method": case, "n": n, "m": n, "rank": solution.rank,
        "peak_bytes": peak, "marginal_error": solution.marginal_error_x,
    });
    if let Some(stored) = stored {
        entry["stored_bytes"] = json!(stored);
        entry["ratio_to_stored"] = json!(peak as f64 / stored);
    }
    if let Some(points) = per_point {
        entry["bytes_per_point"] = json!((peak - before) as f64 / points as f64);
    }
    line(&entry)?;
    Ok(ExitCode::SUCCESS)
}

/// Growth of the time of a solve with the number of points.
fn linear(quick: bool) -> Result<(), Failure> {
    let (sizes, repeats) = if quick { ([20_000, 200_000], 2) } else { ([200_000, 2_000_000], 5) };
    let rank = 100;
    let [x, y] = data::figure_1(sizes[1], 0);
    let measures =
        |n: usize| -> orthant::Result<_> { Ok([data::uniform(&x, n)?, data::uniform(&y, n)?]) };
    let clouds = [measures(sizes[0])?, measures(sizes[1])?];
    let options = Options::builder(EPSILON)
        .method(Method::paper())
        .rank(rank)
        .precision(Precision::F32)
        .max_iterations(10)
        .time_limit(Duration::from_secs(600))
        .build()?;
    let mut failure = None;
    let mut iterations = [0; 2];
    let times: [f64; 2] =
        interleaved(repeats, |k| match rot(&clouds[k][0], &clouds[k][1], &options) {
            Ok(solution) => iterations[k] = solution.iterations,
            Err(error) => failure = Some(error),
        });
    if let Some(error) = failure {
        return Err(error.into());
    }
    let exponent = (times[1] / times[0]).ln() / (sizes[1] as f64 / sizes[0] as f64).ln();
    line(&json!({
        "bench": "linear", "precision": "f32", "rank": rank, "n": sizes, "seconds": times,
        "iterations": iterations, "exponent": exponent,
    }))
}
