//! Standard normal draws for anchors, in one of three ways.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{orthogonal, sobol};

/// How random anchors are drawn.
///
/// Each anchor by itself is a draw from the same normal law, so features are unbiased whichever is
/// taken; what differs is how the anchors stand to each other, and with it the error of their mean.
/// All three are *nested*: the first anchors of a larger rank are those of a smaller one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Draw {
    /// Independent draws, as in the paper: the error falls as `1/sqrt(r)`.
    Iid,
    /// Blocks of `d` anchors in orthogonal directions, with independent lengths (Yu, Suresh,
    /// Choromanski, Holtmann-Rice & Kumar, *Orthogonal Random Features*, 2016). A block costs
    /// `2 d^3` multiplications.
    Orthogonal,
    /// Points of the Sobol sequence with an Owen scramble (in the form of Burley, *Practical
    /// Hash-based Owen Scrambling*, 2020; directions of Joe & Kuo, 2008) through the inverse of the
    /// normal distribution: evenly spread in all axes at once.
    ///
    /// The sequence has 2^16 points on 256 axes. Anchors beyond go on with further scrambles, each
    /// independent of the ones before: from there on the error falls as `1/sqrt(r)`. Axes beyond,
    /// the narrowest if the widest come first, get independent draws. Good ranks are powers of two
    /// and multiples of large ones.
    #[default]
    Sobol,
}

/// `rank x dim` standard normal draws, row-major: a row is an anchor.
///
/// The first rows of a larger rank are those of a smaller one, bit for bit. Early columns are the best
/// of [`Draw::Sobol`] and should go to the widest axes.
pub(crate) fn normals(draw: Draw, rank: usize, dim: usize, seed: u64) -> Vec<f64> {
    let mut out = vec![0.0; rank * dim];
    match draw {
        Draw::Iid => fill(&mut out, &mut stream(seed, 0)),
        Draw::Orthogonal => orthogonal::fill(&mut out, dim, seed),
        Draw::Sobol => sobol::fill(&mut out, dim, seed),
    }
    out
}

/// One of 2^64 independent streams of random numbers.
pub(super) fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}

/// Independent standard normal draws.
pub(super) fn fill(out: &mut [f64], rng: &mut ChaCha8Rng) {
    for z in out {
        *z = StandardNormal.sample(rng);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Draw; 3] = [Draw::Iid, Draw::Orthogonal, Draw::Sobol];

    #[test]
    fn the_first_rows_of_a_larger_rank_are_those_of_a_smaller_one() {
        // Over and inside blocks of orthogonal rows, over the length of a Sobol sequence and over
        // the number of its axes.
        for (dim, ranks) in
            [(1, [1, 2, 70_000]), (3, [7, 14, 140_000]), (5, [5, 10, 64]), (300, [3, 6, 700])]
        {
            for draw in ALL {
                let most = normals(draw, ranks[2], dim, 11);
                assert_eq!(most.len(), ranks[2] * dim);
                for rank in [ranks[0], ranks[1], ranks[2] / 2] {
                    let few = normals(draw, rank, dim, 11);
                    let same = few.iter().zip(&most).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same && few.len() == rank * dim, "{draw:?}: {rank} x {dim}");
                }
                assert_ne!(most, normals(draw, ranks[2], dim, 12), "{draw:?}: the seed matters");
            }
        }
    }

    /// Means of `z`, `z^2`, `z^3`, `z^4`, each with its value under the normal law.
    fn moments(column: &[f64]) -> [(f64, f64); 4] {
        let mean = |power| column.iter().map(|z| z.powi(power)).sum::<f64>() / column.len() as f64;
        [(mean(1), 0.0), (mean(2), 1.0), (mean(3), 0.0), (mean(4), 3.0)]
    }

    #[test]
    fn moments_are_those_of_the_normal_law() {
        let (rank, dim) = (1 << 16, 6);
        for draw in ALL {
            let z = normals(draw, rank, dim, 3);
            for a in 0..dim {
                let column: Vec<f64> = z.iter().skip(a).step_by(dim).copied().collect();
                // Variances of z, z^2, z^3, z^4 are 1, 2, 15, 96: 4 standard errors. One Sobol point
                // in every cell of 2^-16 leaves of them only the cells at the ends.
                let errors = match draw {
                    Draw::Sobol => [2e-4, 1e-3, 5e-3, 3e-2],
                    _ => [1.0, 2.0, 15.0, 96.0].map(|v: f64| 4.0 * (v / rank as f64).sqrt()),
                };
                for ((found, exact), error) in moments(&column).into_iter().zip(errors) {
                    assert!((found - exact).abs() < error, "{draw:?} {a}: {found}, not {exact}");
                }
                for b in 0..a {
                    let product: f64 = z.chunks(dim).map(|z| z[a] * z[b]).sum();
                    let covariance = product / rank as f64;
                    assert!(covariance.abs() < 4.0 / 256.0, "{draw:?} {a} {b}: {covariance}");
                }
            }
        }
    }

    #[test]
    fn a_single_row_is_normal_over_seeds() {
        // Of a design, rows 0 and 5 over many seeds: what makes features unbiased.
        let (seeds, dim) = (40_000, 3);
        for draw in ALL {
            let designs: Vec<Vec<f64>> = (0..seeds).map(|s| normals(draw, 6, dim, s)).collect();
            for entry in [0, 1, 2, 5 * dim, 5 * dim + 1, 5 * dim + 2] {
                let errors = [1.0, 2.0, 15.0, 96.0].map(|v: f64| 4.0 * (v / seeds as f64).sqrt());
                let column: Vec<f64> = designs.iter().map(|d| d[entry]).collect();
                for ((found, exact), error) in moments(&column).into_iter().zip(errors) {
                    assert!((found - exact).abs() < error, "{draw:?} {entry}: {found}, {exact}");
                }
            }
        }
    }
}
