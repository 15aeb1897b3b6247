//! What a matrix of divergences looks like: a tree, an order of its leaves, points in the plane.

use crate::error::{Error, Result};
use crate::numerics::linalg;
use crate::words::Shape;

/// Two clusters that become one: a step of [`linkage`].
///
/// Clusters are numbered as in `SciPy`: those below the number of clouds are the clouds themselves, and the step
/// `k` (from 0) makes the cluster `clouds + k`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Merge {
    /// The cluster with the smaller number.
    pub left: usize,
    /// The other.
    pub right: usize,
    /// Mean of the entries between the two.
    pub height: f64,
    /// Clouds in the new cluster.
    pub size: usize,
}

/// Average linkage of a symmetric matrix (row-major, `count x count`): the two clusters with the smallest mean entry
/// between them become one, until one is left. Of equal means the first counts.
///
/// ```
/// use orthant::compare::linkage;
/// let at = [0.0_f64, 1.0, 5.0];
/// let matrix: Vec<f64> = at.iter().flat_map(|x| at.map(|y| (x - y).abs())).collect();
/// let tree = linkage(&matrix, 3)?;
/// assert_eq!((tree[0].left, tree[0].right, tree[0].height), (0, 1, 1.0));
/// assert_eq!((tree[1].left, tree[1].right, tree[1].height), (2, 3, 4.5));
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn linkage(matrix: &[f64], count: usize) -> Result<Vec<Merge>> {
    check(matrix, count)?;
    let mut means = matrix.to_vec();
    // Number and size of the cluster in each row that is still there.
    let mut clusters: Vec<Option<(usize, usize)>> = (0..count).map(|i| Some((i, 1))).collect();
    let mut merges = Vec::with_capacity(count.saturating_sub(1));
    for step in 0..count.saturating_sub(1) {
        let there: Vec<(usize, usize, usize)> = clusters
            .iter()
            .enumerate()
            .filter_map(|(row, cluster)| cluster.map(|(number, size)| (row, number, size)))
            .collect();
        let mut closest = (f64::INFINITY, there[0], there[1]);
        for (k, &a) in there.iter().enumerate() {
            for &b in &there[k + 1..] {
                let mean = means[a.0 * count + b.0];
                if mean < closest.0 {
                    closest = (mean, a, b);
                }
            }
        }
        let (height, (row, left, size), (gone, right, other)) = closest;
        for &(k, ..) in &there {
            // The mean over both parts, by their sizes.
            let parts =
                size as f64 * means[row * count + k] + other as f64 * means[gone * count + k];
            let mean = parts / (size + other) as f64;
            means[row * count + k] = mean;
            means[k * count + row] = mean;
        }
        clusters[gone] = None;
        clusters[row] = Some((count + step, size + other));
        merges.push(Merge {
            left: left.min(right),
            right: left.max(right),
            height,
            size: size + other,
        });
    }
    Ok(merges)
}

/// The clouds in an order in which no two branches of the tree cross: of two branches the one with the first cloud
/// comes first.
pub fn leaves(tree: &[Merge]) -> Vec<usize> {
    let count = tree.len() + 1;
    let mut first: Vec<usize> = (0..count).collect();
    for merge in tree {
        first.push(first[merge.left].min(first[merge.right]));
    }
    let mut order = Vec::with_capacity(count);
    let mut open = vec![first.len() - 1];
    while let Some(cluster) = open.pop() {
        match cluster.checked_sub(count) {
            None => order.push(cluster),
            Some(step) => {
                let Merge { left, right, .. } = tree[step];
                let ordered = first[left] < first[right];
                open.extend(if ordered { [right, left] } else { [left, right] });
            }
        }
    }
    order
}

/// Points in the plane whose squared distances are about the entries of a matrix: see [`embedding`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Embedding {
    /// Coordinates of every cloud, around the origin; the first axis is the longest.
    pub points: Vec<[f64; 2]>,
    /// The part of the positive eigenvalues that the two axes have: 1 if the plane is all there is.
    pub share: f64,
}

/// Classical multidimensional scaling of a symmetric matrix (row-major, `count x count`) of *squared* distances, into
/// the plane.
///
/// Square roots of divergences behave like distances: that of two translates of one measure is the length of the
/// translation. So the entries are divergences as they are. An axis without a positive eigenvalue, beyond rounding, has
/// the coordinates 0. Signs are such that the largest coordinate on an axis is positive.
///
/// ```
/// use orthant::compare::embedding;
/// let at = [-1.0_f64, 0.0, 4.0];
/// let matrix: Vec<f64> = at.iter().flat_map(|x| at.map(|y| (x - y).powi(2))).collect();
/// let points = embedding(&matrix, 3)?.points;
/// assert!(points.iter().zip(at).all(|([x, y], at)| (x - (at - 1.0)).abs() < 1e-12 && *y == 0.0));
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn embedding(matrix: &[f64], count: usize) -> Result<Embedding> {
    check(matrix, count)?;
    let means: Vec<f64> =
        matrix.chunks_exact(count).map(|row| row.iter().map(|x| x / count as f64).sum()).collect();
    let mean = means.iter().map(|x| x / count as f64).sum::<f64>();
    // The products of points around their mean.
    let mut products = vec![0.0; count * count];
    for i in 0..count {
        for j in 0..=i {
            let product = -0.5 * (matrix[i * count + j] - means[i] - means[j] + mean);
            products[i * count + j] = product;
            products[j * count + i] = product;
        }
    }
    if products.iter().any(|x| !x.is_finite()) {
        return Err(Error::Overflow { what: "the embedding" });
    }
    let (values, vectors) = linalg::eigen(&products, count);
    let largest = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let rounding = 1e-14 * count as f64 * largest;
    let positive = |value: f64| if value > rounding { value } else { 0.0 };
    let total: f64 = values.iter().map(|v| positive(*v)).sum();
    let mut points = vec![[0.0; 2]; count];
    let mut kept = 0.0;
    let longest = values.iter().zip(vectors.chunks_exact(count)).rev().take(2);
    for (axis, (value, vector)) in longest.enumerate() {
        let value = positive(*value);
        kept += value;
        let top = vector.iter().fold(0.0, |top: f64, v| if v.abs() > top.abs() { *v } else { top });
        let scale = if top < 0.0 { -value.sqrt() } else { value.sqrt() };
        for (point, v) in points.iter_mut().zip(vector) {
            // A negative number times zero is a negative zero.
            point[axis] = if value > 0.0 { scale * v } else { 0.0 };
        }
    }
    let share = if total > 0.0 { kept / total } else { 1.0 };
    Ok(Embedding { points, share })
}

/// Whether a matrix is square, finite and symmetric.
fn check(matrix: &[f64], count: usize) -> Result<()> {
    const WHAT: &str = "the matrix of divergences";
    if count == 0 {
        return Err(Error::FewClouds { count });
    }
    if count.checked_mul(count) != Some(matrix.len()) {
        let expected = Shape { rows: count, columns: count };
        let got = Shape { rows: 1, columns: matrix.len() };
        return Err(Error::Shape { what: WHAT, expected, got });
    }
    for i in 0..count {
        for j in 0..=i {
            let (one, other) = (matrix[i * count + j], matrix[j * count + i]);
            if !one.is_finite() || one != other {
                return Err(Error::Asymmetric { row: i + 1, column: j + 1, value: one, other });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(at: &[[f64; 2]]) -> Vec<f64> {
        let square = |x: &[f64; 2], y: &[f64; 2]| (x[0] - y[0]).powi(2) + (x[1] - y[1]).powi(2);
        at.iter().flat_map(|x| at.iter().map(move |y| square(x, y))).collect()
    }

    /// By the definition: the mean over all entries between two sets of clouds, whatever came before.
    #[test]
    fn heights_are_means_between_the_clouds_of_two_clusters() {
        for count in [2, 3, 7, 20] {
            let at: Vec<[f64; 2]> = (0..count)
                .map(|i| [(i as f64 * 1.7).sin(), 3.0 * (i as f64 * 0.9).cos()])
                .collect();
            let matrix = squares(&at);
            let tree = linkage(&matrix, count).unwrap();
            assert_eq!(tree.len(), count - 1);
            let mut clusters: Vec<Vec<usize>> = (0..count).map(|i| vec![i]).collect();
            let mut there: Vec<usize> = (0..count).collect();
            let mean = |a: &[usize], b: &[usize]| {
                let sum: f64 =
                    a.iter().map(|i| b.iter().map(|j| matrix[i * count + j]).sum::<f64>()).sum();
                sum / (a.len() * b.len()) as f64
            };
            for merge in &tree {
                let smallest = there
                    .iter()
                    .flat_map(|a| there.iter().map(move |b| (*a, *b)))
                    .filter(|(a, b)| a < b)
                    .map(|(a, b)| mean(&clusters[a], &clusters[b]))
                    .fold(f64::INFINITY, f64::min);
                assert!(merge.left < merge.right);
                let here = mean(&clusters[merge.left], &clusters[merge.right]);
                assert!((merge.height - here).abs() < 1e-12 * (1.0 + here));
                assert!((merge.height - smallest).abs() < 1e-12 * (1.0 + here));
                let both = [&clusters[merge.left][..], &clusters[merge.right]].concat();
                assert_eq!(merge.size, both.len());
                there.retain(|c| ![merge.left, merge.right].contains(c));
                there.push(clusters.len());
                clusters.push(both);
            }
            let mut order = leaves(&tree);
            assert!(
                tree.windows(2).all(|w| w[0].height <= w[1].height),
                "average linkage is monotone"
            );
            // Clusters are next to each other.
            for cluster in &clusters {
                let mut places: Vec<usize> =
                    cluster.iter().map(|c| order.iter().position(|o| o == c).unwrap()).collect();
                places.sort_unstable();
                assert_eq!(places.last().unwrap() - places[0] + 1, cluster.len());
            }
            assert_eq!(order[0], 0);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..count));
        }
        assert_eq!(linkage(&[0.0], 1).unwrap(), []);
        assert_eq!(leaves(&[]), [0]);
    }

    #[test]
    fn an_embedding_keeps_the_distances_of_the_plane() {
        let at: Vec<[f64; 2]> = (0..9)
            .map(|i| [5.0 + (f64::from(i) * 2.1).sin(), (f64::from(i) * 1.3).cos()])
            .collect();
        let matrix = squares(&at);
        let Embedding { points, share } = embedding(&matrix, 9).unwrap();
        assert!((share - 1.0).abs() < 1e-12);
        for (found, expected) in squares(&points).iter().zip(&matrix) {
            assert!((found - expected).abs() < 1e-12);
        }
        for axis in [0, 1] {
            let mean: f64 = points.iter().map(|p| p[axis]).sum();
            assert!(mean.abs() < 1e-12);
        }
        let length = |axis: usize| points.iter().map(|p| p[axis].powi(2)).sum::<f64>();
        assert!(length(0) >= length(1));
        // One cloud, and clouds that coincide.
        assert_eq!(embedding(&[0.0], 1).unwrap().points, [[0.0; 2]]);
        assert_eq!(
            embedding(&[0.0; 4], 2).unwrap(),
            Embedding { points: vec![[0.0; 2]; 2], share: 1.0 }
        );
        // Divergences may be a little below zero.
        assert_eq!(embedding(&[0.0, -1e-9, -1e-9, 0.0], 2).unwrap().points, [[0.0; 2]; 2]);
    }

    #[test]
    fn bad_matrices_are_refused() {
        for (matrix, count) in [
            (vec![0.0; 5], 2),
            (vec![0.0, 1.0, 2.0, 0.0], 2),
            (vec![0.0, f64::NAN, f64::NAN, 0.0], 2),
            (vec![0.0, f64::INFINITY, f64::INFINITY, 0.0], 2),
            (vec![], 0),
            (vec![0.0], usize::MAX),
        ] {
            assert!(linkage(&matrix, count).is_err(), "{matrix:?}");
            assert!(embedding(&matrix, count).is_err(), "{matrix:?}");
        }
        assert_eq!(
            linkage(&[0.0, 1.0, 2.0, 0.0], 2).unwrap_err().to_string(),
            "the matrix of divergences must be finite and symmetric: its entries (2, 1) and (1, 2) are 2 and 1"
        );
    }
}
