//! Which points become the landmarks of a Nystrom approximation.
//!
//! The ridge leverage score `l_i = (K (K + lambda I)^{-1})_ii` of a point says how much of the kernel
//! only it can explain; landmarks drawn by their scores serve all points, also small clusters that
//! uniform draws miss. Scores are estimated by recursion (Musco & Musco, *Recursive Sampling for the
//! Nystrom Method*, 2017): landmarks of a random half of the points, found the same way, give those of
//! all of them,
//!
//! ```text
//! l_i ~ (1 - K(x_i, S) (K(S, S) + lambda W^-2)^{-1} K(S, x_i)) / lambda
//! ```
//!
//! with `W^2` the reciprocal probabilities by which `S` was drawn. All levels together cost
//! `O(N s^2)`, `s` the number of landmarks.

use std::cmp::Ordering;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};
use rayon::prelude::*;

use super::Spectrum;
use crate::control::Cancel;
use crate::measure::Points;

/// How the landmarks of the Nystrom approximation are drawn from the points of both clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Landmarks {
    /// By approximate ridge leverage scores: they reach small clusters too (Musco & Musco, *Recursive
    /// Sampling for the Nystrom Method*, 2017).
    #[default]
    Leverage,
    /// All points alike, without replacement.
    Uniform,
}

/// Landmarks for each eigenvalue above `lambda`, about: enough that most of these directions are found,
/// and few enough that small clusters count as directions.
const RANK: usize = 5;
/// The least `lambda`, as a part of the trace of the kernel: below it scores are made of rounding.
const LEAST_RIDGE: f64 = 1e-10;

/// `count` of the points, or all distinct ones if they are fewer; epsilon in their units.
///
/// Neither the order of the points nor how often each is there matters.
pub(crate) fn choose(
    clouds: &[&Points<'_>],
    epsilon: f64,
    count: usize,
    landmarks: Landmarks,
    seed: u64,
    cancel: &Cancel,
) -> Points<'static> {
    let points = distinct(clouds);
    if count >= points.len() {
        return points;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let chosen = match landmarks {
        Landmarks::Uniform => weighted_sample(&vec![1.0; points.len()], count, &mut rng),
        Landmarks::Leverage => {
            let (scores, _) = recursive_scores(&points, epsilon, count, &mut rng, cancel);
            weighted_sample(&scores, count, &mut rng)
        }
    };
    points.select(&chosen)
}

/// The points of all clouds, each once, sorted.
fn distinct(clouds: &[&Points<'_>]) -> Points<'static> {
    let dim = clouds[0].dim();
    let mut values = Vec::with_capacity(clouds.iter().map(|c| c.len() * dim).sum());
    for cloud in clouds {
        // Adding zero makes the two zeros one.
        values.extend(
            (0..cloud.len()).flat_map(|i| (0..dim).map(move |k| cloud.coordinate(i, k) + 0.0)),
        );
    }
    let point = |i: usize| &values[i * dim..(i + 1) * dim];
    let compare = |i: &usize, j: &usize| {
        let pairs = point(*i).iter().zip(point(*j));
        pairs.map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..values.len() / dim).collect();
    order.par_sort_unstable_by(compare);
    order.dedup_by(|i, j| compare(i, j).is_eq());
    let sorted: Vec<f64> = order.iter().flat_map(|&i| point(i)).copied().collect();
    Points::new(sorted, dim).expect("points that were points")
}

/// `count` numbers drawn one after the other without replacement, each in proportion to its weight;
/// those of weight zero come last, in any order.
///
/// By the keys of Efraimidis & Spirakis (*Weighted random sampling with a reservoir*, 2006).
fn weighted_sample(weights: &[f64], count: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut keys: Vec<([f64; 2], usize)> = Vec::with_capacity(weights.len());
    for (i, w) in weights.iter().enumerate() {
        let draw: f64 = Open01.sample(rng);
        keys.push(([-draw.ln() / w, draw], i));
    }
    keys.sort_unstable_by(|(a, i), (b, j)| {
        a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])).then(i.cmp(j))
    });
    keys.truncate(count);
    keys.into_iter().map(|(_, i)| i).collect()
}

/// Landmarks with the probabilities of their draws, which estimate scores.
struct Sample {
    points: Vec<usize>,
    /// Square roots of the reciprocal probabilities.
    weights: Vec<f64>,
}

/// Scores of all points, for `count` landmarks, by recursion; and the `lambda` that they are for.
fn recursive_scores(
    points: &Points<'_>,
    epsilon: f64,
    count: usize,
    rng: &mut ChaCha8Rng,
    cancel: &Cancel,
) -> (Vec<f64>, f64) {
    // A random half of a random half ...: the first points of one random order.
    let order = weighted_sample(&vec![1.0; points.len()], points.len(), rng);
    let mut sizes = vec![points.len()];
    while sizes[sizes.len() - 1] > count {
        sizes.push(sizes[sizes.len() - 1].div_ceil(2));
    }
    let smallest = sizes.pop().unwrap_or(count);
    let mut sample = Sample { points: order[..smallest].to_vec(), weights: vec![1.0; smallest] };
    let rank = count.div_ceil(RANK);
    for &size in sizes.iter().skip(1).rev() {
        let level = &order[..size];
        let (scores, _) = scores(points, epsilon, &sample, rank, level, cancel);
        sample = draw(level, &scores, count, rng);
    }
    let all: Vec<usize> = (0..points.len()).collect();
    scores(points, epsilon, &sample, rank, &all, cancel)
}

/// Draws about `count` points, each by itself, with a probability in proportion to its score.
fn draw(level: &[usize], scores: &[f64], count: usize, rng: &mut ChaCha8Rng) -> Sample {
    let factor = count as f64 / scores.iter().sum::<f64>();
    let mut sample = Sample { points: Vec::new(), weights: Vec::new() };
    for (&i, score) in level.iter().zip(scores) {
        let probability = (factor * score).min(1.0);
        let draw: f64 = Open01.sample(rng);
        if draw < probability {
            sample.points.push(i);
            sample.weights.push(1.0 / probability.sqrt());
        }
    }
    if sample.points.is_empty() {
        // Scores of nothing but rounding, or bad luck: the first of the points, which are in random
        // order.
        let len = count.min(level.len());
        sample.points.extend(&level[..len]);
        sample.weights.resize(len, (level.len() as f64 / len as f64).sqrt());
    }
    sample
}

/// Estimated ridge leverage scores of the points at `level`, at most 1, and `lambda`: with that of the
/// eigenvalues after the first `rank`, `sum_{k > rank} value_k / rank`, the scores of all points add up
/// to `2 rank` at most.
fn scores(
    points: &Points<'_>,
    epsilon: f64,
    sample: &Sample,
    rank: usize,
    level: &[usize],
    cancel: &Cancel,
) -> (Vec<f64>, f64) {
    let landmarks = points.select(&sample.points);
    let spectrum = Spectrum::new(landmarks, epsilon, sample.weights.clone(), cancel);
    let trace: f64 = sample.weights.iter().map(|w| w * w).sum();
    let rest = sample.points.len().saturating_sub(rank);
    let tail: f64 = spectrum.values()[..rest].iter().sum();
    let ridge = (tail / rank as f64).max(LEAST_RIDGE * trace);
    let basis = spectrum.basis(|value| 1.0 / (value + ridge).sqrt());
    let explained = basis.squared_norms(&points.select(level));
    // The difference is not negative, but for rounding.
    let scores = explained.iter().map(|e| ((1.0 - e) / ridge).clamp(0.0, 1.0)).collect();
    (scores, ridge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::linalg;

    /// A dense cloud of 360 points, two sparse ones and five points far away.
    fn clusters() -> Points<'static> {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut values = Vec::new();
        for (n, x, y, radius) in
            [(360, 0.0, 0.0, 1.0), (25, 4.0, 0.0, 1.0), (10, 0.0, 5.0, 2.0), (5, -9.0, -9.0, 0.5)]
        {
            for _ in 0..n {
                let [u, v]: [f64; 2] = [Open01.sample(&mut rng), Open01.sample(&mut rng)];
                values.extend([x + radius * (2.0 * u - 1.0), y + radius * (2.0 * v - 1.0)]);
            }
        }
        Points::new(values, 2).unwrap()
    }

    /// `(K (K + lambda I)^{-1})_ii`.
    fn exact_scores(points: &Points<'_>, epsilon: f64, lambda: f64) -> Vec<f64> {
        let n = points.len();
        let kernel = |i: usize, j: usize| {
            let square = |k| (points.coordinate(i, k) - points.coordinate(j, k)).powi(2);
            (-(0..points.dim()).map(square).sum::<f64>() / epsilon).exp()
        };
        let matrix: Vec<f64> = (0..n * n).map(|e| kernel(e / n, e % n)).collect();
        let eigen = linalg::eigen(&matrix, n);
        let smoother = linalg::function(&eigen, |v| v.max(0.0) / (v.max(0.0) + lambda));
        smoother.into_iter().step_by(n + 1).collect()
    }

    #[test]
    fn recursive_scores_are_the_exact_ones_up_to_a_factor() {
        let points = clusters();
        for epsilon in [0.3, 1.0, 3.0] {
            for seed in 0..5 {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let (found, lambda) =
                    recursive_scores(&points, epsilon, 80, &mut rng, &Cancel::default());
                let exact = exact_scores(&points, epsilon, lambda);
                let ratios: Vec<f64> = found.iter().zip(&exact).map(|(f, e)| f / e).collect();
                let within = |low, high| ratios.iter().filter(|r| **r > low && **r < high).count();
                // Measured: all from 0.56 to 6.9, nine in ten from 0.9 to 4.5.
                assert_eq!(within(0.4, 10.0), points.len(), "{epsilon} {seed}: {ratios:?}");
                assert!(20 * within(0.8, 6.0) >= 19 * points.len(), "{epsilon} {seed}: {ratios:?}");
            }
        }
    }

    #[test]
    fn draws_are_in_proportion_to_the_weights_and_zeros_come_last() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let weights = [1.0, 0.0, 3.0, 4.0, 0.0];
        let (mut first, mut second) = ([0; 5], [0; 5]);
        let rounds = 40_000;
        for _ in 0..rounds {
            let drawn = weighted_sample(&weights, 5, &mut rng);
            first[drawn[0]] += 1;
            second[drawn[1]] += 1;
            assert!(drawn[3..] == [1, 4] || drawn[3..] == [4, 1], "{drawn:?}");
        }
        for (i, w) in weights.iter().enumerate() {
            // One after the other: 1/8, 3/8, 4/8, and then of what is left. Four standard errors.
            let of =
                |j: usize| if j == i { 0.0 } else { weights[j] / 8.0 * w / (8.0 - weights[j]) };
            let then: f64 = (0..5).map(of).sum();
            for (count, p) in [(first[i], w / 8.0), (second[i], then)] {
                let error = 4.0 * (p * (1.0 - p) / f64::from(rounds)).sqrt();
                assert!((f64::from(count) / f64::from(rounds) - p).abs() <= error, "{i}: {count}");
            }
        }
    }

    #[test]
    fn landmarks_are_distinct_points_whatever_their_order() {
        let none = Cancel::default();
        let points = clusters();
        let turned = points.select(&(0..points.len()).rev().collect::<Vec<_>>());
        for landmarks in [Landmarks::Leverage, Landmarks::Uniform] {
            for count in [1, 2, 7, 200, 399] {
                let of = |clouds: &[&Points<'_>]| {
                    let chosen = choose(clouds, 1.0, count, landmarks, 5, &none);
                    (0..chosen.len())
                        .map(|i| [chosen.coordinate(i, 0), chosen.coordinate(i, 1)])
                        .collect::<Vec<_>>()
                };
                let chosen = of(&[&points, &turned]);
                assert_eq!(chosen.len(), count);
                assert_eq!(chosen, of(&[&turned]));
                let mut sorted = chosen.clone();
                sorted.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
                sorted.dedup();
                assert_eq!(sorted.len(), count);
            }
            // All of them, however many are asked for, and zeros have no sign.
            assert_eq!(choose(&[&points, &turned], 1.0, 1000, landmarks, 5, &none).len(), 400);
            let zeros = Points::new(vec![0.0, -0.0, 0.0, 1.0], 1).unwrap();
            assert_eq!(choose(&[&zeros], 1.0, 1000, landmarks, 5, &none).len(), 2);
        }
    }
}
