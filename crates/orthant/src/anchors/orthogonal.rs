//! Normal draws in orthogonal directions.
//!
//! A block of `d` rows is `diag(chi) Q`, with `Q` a uniformly distributed rotation (the orthogonal
//! factor of a matrix of normal draws) and independent lengths `chi` of the law of the norm of a normal
//! vector. A row of `Q` is uniform on the sphere, so a row of the block is a standard normal vector.

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::random;

/// Fills rows of `dim` numbers. Every block has a stream of its own.
pub(super) fn fill(out: &mut [f64], dim: usize, seed: u64) {
    out.par_chunks_mut(dim * dim).enumerate().for_each(|(block, rows)| {
        fill_block(rows, dim, &mut random::stream(seed, block as u64));
    });
}

/// Up to `dim` rows. A row takes `2 dim` draws and depends on the rows before it only: a cut block is
/// the beginning of the whole one.
fn fill_block(rows: &mut [f64], dim: usize, rng: &mut ChaCha8Rng) {
    let mut other = vec![0.0; dim];
    let mut lengths = Vec::with_capacity(dim);
    for start in (0..rows.len()).step_by(dim) {
        let (before, row) = rows.split_at_mut(start);
        let row = &mut row[..dim];
        random::fill(row, rng);
        random::fill(&mut other, rng);
        lengths.push(dot(&other, &other).sqrt());
        // Gram and Schmidt; twice is enough for orthogonality to rounding.
        for _ in 0..2 {
            for q in before.chunks_exact(dim) {
                let along = dot(q, row);
                row.iter_mut().zip(q).for_each(|(z, q)| *z -= along * q);
            }
        }
        scale(row, 1.0 / dot(row, row).sqrt());
    }
    for (row, length) in rows.chunks_exact_mut(dim).zip(lengths) {
        scale(row, length);
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn scale(row: &mut [f64], factor: f64) {
    for z in row {
        *z *= factor;
    }
}

#[cfg(test)]
mod tests {
    use super::dot;
    use crate::anchors::{Draw, normals};

    #[test]
    fn rows_of_a_block_are_orthogonal_and_blocks_are_not() {
        for dim in [1, 2, 5, 64] {
            let z = normals(Draw::Orthogonal, 2 * dim, dim, 1);
            let rows: Vec<&[f64]> = z.chunks(dim).collect();
            for (i, x) in rows.iter().enumerate() {
                for (j, y) in rows[..i].iter().enumerate() {
                    let cosine = dot(x, y) / (dot(x, x) * dot(y, y)).sqrt();
                    if i / dim == j / dim {
                        assert!(cosine.abs() < 1e-14, "{dim}: {i} {j}: {cosine}");
                    } else {
                        assert!(cosine.abs() > 1e-9, "{dim}: {i} {j}: {cosine}");
                    }
                }
            }
        }
    }

    #[test]
    fn squared_lengths_have_mean_d_and_variance_2d_and_are_independent() {
        // Chi-squared with d degrees of freedom.
        let (dim, blocks) = (4, 20_000);
        let z = normals(Draw::Orthogonal, dim * blocks, dim, 2);
        let squares: Vec<f64> = z.chunks(dim).map(|z| dot(z, z)).collect();
        let (count, d) = (squares.len() as f64, dim as f64);
        let mean = squares.iter().sum::<f64>() / count;
        assert!((mean - d).abs() < 4.0 * (2.0 * d / count).sqrt(), "{mean}");
        let variance = squares.iter().map(|s| (s - d).powi(2)).sum::<f64>() / count;
        // The fourth central moment is 12 d (d + 4), less the square of the second.
        let fourth = 12.0 * d * (d + 4.0) - 4.0 * d * d;
        assert!((variance - 2.0 * d).abs() < 4.0 * (fourth / count).sqrt(), "{variance}");
        let product: f64 = squares.chunks(2).map(|s| (s[0] - d) * (s[1] - d)).sum();
        let covariance = product / (0.5 * count);
        assert!(covariance.abs() < 4.0 * 2.0 * d / (0.5 * count).sqrt(), "{covariance}");
    }
}
