//! Scrambled Sobol points through the inverse of the normal distribution.
//!
//! Scrambled as `sobol_burley::sample` does it: the order of the points is shuffled in a way that
//! keeps every beginning of `2^k` points a net, and every axis has an Owen scramble of its own. Made
//! from the parts of that crate for two reasons: its seeds and points have 32 and 23 bits, ours 64
//! and 32.

use rand::Rng;
use rayon::prelude::*;
use sobol_burley::NUM_DIMENSIONS;
use sobol_burley::parts::{owen_scramble_rev, sobol_rev};

use super::{quantile, random};

/// Points of one sequence.
const LENGTH: usize = 1 << 16;

/// Cells that the unit interval is cut into.
const CELLS: f64 = 4_294_967_296.0;

/// The stream of random numbers for axes beyond those of the sequence; the others are numbers of
/// sequences.
const REST: u64 = u64::MAX;

/// Fills rows of `dim` numbers.
pub(super) fn fill(out: &mut [f64], dim: usize, seed: u64) {
    let covered = dim.min(NUM_DIMENSIONS as usize);
    for (number, rows) in (0_u64..).zip(out.chunks_mut(LENGTH * dim)) {
        let scramble = Scramble::new(covered, seed, number);
        rows.par_chunks_mut(dim).with_min_len(64).enumerate().for_each(|(i, row)| {
            scramble.point(i, &mut row[..covered]);
        });
    }
    if covered < dim {
        let mut rng = random::stream(seed, REST);
        for row in out.chunks_exact_mut(dim) {
            random::fill(&mut row[covered..], &mut rng);
        }
    }
}

/// One scrambled sequence.
struct Scramble {
    order: u32,
    axes: Vec<u32>,
}

impl Scramble {
    fn new(dim: usize, seed: u64, number: u64) -> Self {
        let mut rng = random::stream(seed, number);
        let order = rng.next_u32();
        Scramble { order, axes: (0..dim).map(|_| rng.next_u32()).collect() }
    }

    /// Normal quantiles of point `i`, which must be below [`LENGTH`].
    fn point(&self, i: usize, out: &mut [f64]) {
        let i = u32::try_from(i).expect("below 2^16");
        let index = owen_scramble_rev(i.reverse_bits(), self.order);
        for ((axis, scramble), z) in (0..).zip(&self.axes).zip(out) {
            let bits = owen_scramble_rev(sobol_rev(index, axis), *scramble).reverse_bits();
            // The middle of the cell: neither 0 nor 1.
            *z = quantile::normal((f64::from(bits) + 0.5) / CELLS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anchors::{Draw, normals};

    #[test]
    fn every_cell_of_a_net_has_one_point() {
        // The first 2^k points: one in every interval of 2^-k of every axis; on the first two axes, a
        // net with t = 0, one in every dyadic box of area 2^-k.
        let (dim, most) = (NUM_DIMENSIONS as usize, 8);
        let z = normals(Draw::Sobol, 1 << most, dim, 5);
        let edges = |k: u32| -> Vec<f64> {
            (1..1 << k).map(|i| quantile::normal(f64::from(i) / f64::from(1 << k))).collect()
        };
        for k in 1..=most {
            let count = 1 << k;
            let rows = &z[..count * dim];
            let cell = |z: f64, edges: &[f64]| edges.partition_point(|e| *e < z);
            for axis in 0..dim {
                let edges = edges(k);
                let mut seen = vec![false; count];
                rows.iter().skip(axis).step_by(dim).for_each(|z| seen[cell(*z, &edges)] = true);
                assert!(seen.iter().all(|s| *s), "{count} points, axis {axis}");
            }
            for across in 0..=k {
                let (first, second) = (edges(across), edges(k - across));
                let mut seen = vec![false; count];
                for row in rows.chunks(dim) {
                    seen[(cell(row[0], &first) << (k - across)) + cell(row[1], &second)] = true;
                }
                assert!(seen.iter().all(|s| *s), "{count} points, 2^{across} across");
            }
        }
    }

    #[test]
    fn all_points_of_a_sequence_are_finite_and_different_on_every_axis() {
        for (dim, seed) in [(3, 0), (2, u64::MAX)] {
            let z = normals(Draw::Sobol, LENGTH, dim, seed);
            for axis in 0..dim {
                let mut column: Vec<f64> = z.iter().skip(axis).step_by(dim).copied().collect();
                column.sort_by(f64::total_cmp);
                assert!(column.windows(2).all(|w| w[0] < w[1]));
                // The quantiles of 2^-33 and 2^-16: the first cell has its point.
                assert!((-6.338..-4.1).contains(&column[0]), "{}", column[0]);
                assert!((4.1..6.338).contains(&column[LENGTH - 1]), "{}", column[LENGTH - 1]);
            }
        }
    }

    #[test]
    fn further_sequences_and_further_axes_are_other_draws() {
        let dim = NUM_DIMENSIONS as usize + 3;
        let z = normals(Draw::Sobol, LENGTH + 4, dim, 1);
        let row = |i: usize| &z[i * dim..(i + 1) * dim];
        for k in 0..4 {
            assert!(row(k).iter().zip(row(LENGTH + k)).all(|(a, b)| a != b));
        }
        // Variance 1 on the axes that are not of the sequence: 4 standard errors.
        let squares: f64 =
            z.chunks(dim).flat_map(|z| &z[NUM_DIMENSIONS as usize..]).map(|z| z * z).sum();
        let count = (3 * (LENGTH + 4)) as f64;
        assert!((squares / count - 1.0).abs() < 4.0 * (2.0 / count).sqrt());
    }
}
