//! `orthant bench`: what this machine does, as ratios inside one run.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use faer::linalg::matmul::matmul;
use faer::{Accum, ColMut, ColRef, MatRef, Par};
use orthant::bench::{Storage, Sweep};
use orthant::features::Gaussian;
use orthant::{Measure, Points};
use rayon::prelude::*;

fn cloud(n: usize, mean: f64, s: f64, seed: u64) -> Measure<'static> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let v: Vec<f64> = (0..n * 2)
        .map(|_| mean + s * ((-2.0 * (next() + 1e-300).ln()).sqrt() * (6.283185307 * next()).cos()))
        .collect();
    Measure::uniform(Points::new(v, 2).unwrap())
}

fn read(bytes: &[f32]) -> f32 {
    bytes
        .par_chunks(1 << 16)
        .map(|c| {
            let mut acc = [0f32; 64];
            for x in c.as_chunks::<64>().0 {
                for l in 0..64 {
                    acc[l] += x[l];
                }
            }
            acc.iter().sum::<f32>()
        })
        .sum()
}

fn best(mut f: impl FnMut()) -> f64 {
    let mut b = f64::INFINITY;
    for _ in 0..7 {
        let t = Instant::now();
        f();
        b = b.min(t.elapsed().as_secs_f64());
    }
    b
}

pub fn run() -> Result<()> {
    let threads: usize = std::env::args().nth(1).map_or(2, |s| s.parse().unwrap());
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    for n in [1000usize, 20_000usize, 100_000] {
        let r = 600;
        let (mu, nu) = (cloud(n, 1.0, 1.0, 1), cloud(n, 0.0, 0.3, 2));
        let t = Instant::now();
        let map = Gaussian::paper(&mu, &nu, 0.5, r, 0, true)?;
        println!("map {:?}", t.elapsed());
        let t = Instant::now();
        let mut s = Sweep::<f32>::new(&map, &mu, &nu)?;
        println!("new {:?}", t.elapsed());
        let (mut sweep, mut readt, mut build, mut gemv) = (f64::INFINITY, f64::INFINITY, f64::INFINITY, f64::INFINITY);
        let stride = s.stride();
        let mut z = vec![1f32; r];
        let mut u = vec![1f32; n];
        for _ in 0..3 {
            sweep = sweep.min(best(|| { s.iterate().unwrap(); }));
            build = build.min(best(|| s.build().unwrap()));
            let [x, y] = s.features();
            readt = readt.min(best(|| { black_box(read(x)); black_box(read(y)); }));
            gemv = gemv.min(best(|| {
                for f in [x, y] {
                    let m = MatRef::from_row_major_slice_with_stride(f, n, r, stride);
                    let par = Par::rayon(threads);
                    matmul(ColMut::from_slice_mut(&mut u).as_mat_mut(), Accum::Replace, m, ColRef::from_slice(&z).as_mat(), 1.0, par);
                    matmul(ColMut::from_slice_mut(&mut z).as_mat_mut(), Accum::Replace, m.transpose(), ColRef::from_slice(&u).as_mat(), 1.0, par);
                    z.iter_mut().for_each(|z| *z = 1.0);
                }
            }));
        }
        let bytes = 2.0 * n as f64 * stride as f64 * 4.0;
        println!("n {n} sweep {:.2} ms {:.1} GB/s; read {:.2} ms {:.1} GB/s ratio {:.2}; gemv {:.2} ms x{:.2}; build {:.2} ms = {:.2} sweeps",
          sweep*1e3, bytes/sweep/1e9, readt*1e3, bytes/readt/1e9, readt/sweep, gemv*1e3, gemv/sweep, build*1e3, build/sweep);
    }
    Ok(())
}
