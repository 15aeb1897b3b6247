//! A pass over all pairs of the exact kernel, a pair.

use std::hint::black_box;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use orthant::bench::{PairSweep, over_all_pairs};
use orthant::{Measure, Points};
use orthant_support::Failure;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::ThreadPoolBuilder;
use serde_json::json;

use crate::measure::{interleaved, line};

/// On one thread, beside the matrix product of the same inner products, which has no exponentials.
pub(crate) fn run(quick: bool) -> Result<(), Failure> {
    let (sizes, repeats) = if quick { ([512, 2_000], 3) } else { ([1_024, 20_000], 15) };
    let pool = ThreadPoolBuilder::new().num_threads(1).build().map_err(Failure::other)?;
    for dim in [2, 3, 4, 10, 28, 50, 100] {
        pool.install(|| measure(sizes, dim, repeats))?;
    }
    Ok(())
}

fn measure([n, m]: [usize; 2], dim: usize, repeats: usize) -> Result<(), Failure> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut cloud = |count: usize| -> Vec<f64> {
        (0..count * dim).map(|_| StandardNormal.sample(&mut rng)).collect()
    };
    let (x, y) = (cloud(n), cloud(m));
    let measure = |x: &[f64]| Points::new(x.to_vec(), dim).map(Measure::uniform);
    let (mu, nu) = (measure(&x)?, measure(&y)?);
    // A twentieth of the mean cost.
    let epsilon = 0.1 * dim as f64;
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
    let single = |x: &[f64]| x.iter().map(|x| *x as f32).collect::<Vec<f32>>();
    let (x32, y32) = (single(&x), single(&y));
    let (mut product, mut product32) = (Mat::<f64>::zeros(n, m), Mat::<f32>::zeros(n, m));
    let mut timed = |f64s: &mut PairSweep<'_>, f32s: &mut PairSweep<'_>| -> [f64; 4] {
        interleaved(repeats, |k| match k {
            0 => drop(black_box(f64s.iterate())),
            1 => drop(black_box(f32s.iterate())),
            2 => matmul(
                product.as_mut(),
                Accum::Replace,
                MatRef::from_row_major_slice(&x, n, dim),
                MatRef::from_column_major_slice(&y, dim, m),
                1.0,
                Par::Seq,
            ),
            _ => matmul(
                product32.as_mut(),
                Accum::Replace,
                MatRef::from_row_major_slice(&x32, n, dim),
                MatRef::from_column_major_slice(&y32, dim, m),
                1.0,
                Par::Seq,
            ),
        })
    };
    let times = over_all_pairs::<f64, _>(&mu, &nu, epsilon, |f64s| {
        over_all_pairs::<f32, _>(&mu, &nu, epsilon, |f32s| timed(f64s, f32s))
    })??;
    let [f64s, f32s, product_f64, product_f32] = times.map(|t| t * 1e9 / (n * m) as f64);
    line(&json!({
        "bench": "exact",
        "dim": dim,
        "rows": n,
        "columns": m,
        "threads": 1,
        "ns_a_pair": { "f64": f64s, "f32": f32s },
        "matrix_product_ns_a_pair": { "f64": product_f64, "f32": product_f32 },
    }))
}
