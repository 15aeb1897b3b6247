//! The fused pass over stored features, against plain reading and matrix-vector products; one thread against several.

use std::hint::black_box;

use faer::linalg::matmul::matmul;
use faer::{Accum, ColMut, ColRef, MatRef, Par};
use orthant::bench::{Storage, Sweep};
use orthant::features::Gaussian;
use orthant_support::Failure;
use orthant_support::clouds::figure_1;
use rayon::prelude::*;
use serde_json::json;

use crate::measure::{EPSILON, interleaved, line};

/// Sizes and repetitions, and the suites that are wanted.
pub(crate) fn run(quick: bool, sweeps: bool, several: bool) -> Result<(), Failure> {
    let (sizes, repeats) = if quick {
        (vec![(2_000, 104), (5_000, 600)], 5)
    } else {
        (vec![(20_000, 104), (20_000, 600), (100_000, 104), (100_000, 600)], 20)
    };
    for (n, rank) in sizes {
        // As much time for small sizes as for large ones.
        let repeats = if quick { repeats } else { repeats * 100_000 / n };
        if sweeps {
            sweep::<f32>(n, rank, repeats, "f32")?;
            sweep::<f64>(n, rank, repeats, "f64")?;
        }
        if several && rank == 600 {
            threads(n, rank, repeats)?;
        }
    }
    Ok(())
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
    let clouds = figure_1(n, 0);
    let [mu, nu] = clouds.measures(n)?;
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
    let clouds = figure_1(n, 0);
    let [mu, nu] = clouds.measures(n)?;
    let map = Gaussian::paper(&mu, &nu, EPSILON, rank, 0, true)?;
    let mut sweep = Sweep::<f32>::new(&map, &mu, &nu)?;
    let many = rayon::current_num_threads();
    let pool = |threads| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(Failure::other)
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
