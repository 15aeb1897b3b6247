//! Principal components of images.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::data::Images;
use crate::data::{Pictures, batch_indices};

/// Images that components are computed from, at most.
const MOST: usize = 5_000;
/// Directions beside those that are wanted, so that the last of these converge too.
const SPARE: usize = 16;
/// Rounds of the iteration. Pixels of images have variances that fall quickly.
const ROUNDS: usize = 12;

/// A fixed space for images: their mean, and the directions in which they vary most.
#[derive(Debug, Clone)]
pub struct Pca {
    mean: Vec<f32>,
    /// Orthonormal rows.
    components: Mat<f32>,
    explained: f64,
}

impl Pca {
    /// The first `dims` components of images (of at most 5,000 of them, or as many as there are pixels or images).
    ///
    /// By subspace iteration: nothing as large as pixels times pixels. On one thread, so that the bits do not depend on how
    /// many there are.
    ///
    /// # Panics
    ///
    /// If there are no images.
    pub fn fit(images: &Pictures, dims: usize) -> Self {
        let count = images.len().min(MOST);
        let mut rows = images.batch(&batch_indices(images.len(), count, 0, 0)).pixels;
        let pixels = rows.len() / count;
        let mean = centre(&mut rows, pixels);
        let rows = MatRef::from_row_major_slice(&rows, count, pixels);
        let total: f64 = rows.row_iter().map(|row| squares(row.iter())).sum();

        let most = pixels.min(count);
        let dims = dims.min(most);
        let width = (dims + SPARE).min(most);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut basis = Mat::from_fn(pixels, width, |_, _| StandardNormal.sample(&mut rng));
        let mut scores = Mat::<f32>::zeros(count, width);
        for _ in 0..ROUNDS {
            basis = orthonormal(&basis);
            matmul(scores.as_mut(), Accum::Replace, rows, basis.as_ref(), 1.0, Par::Seq);
            matmul(
                basis.as_mut(),
                Accum::Replace,
                rows.transpose(),
                scores.as_ref(),
                1.0,
                Par::Seq,
            );
        }
        basis = orthonormal(&basis);
        matmul(scores.as_mut(), Accum::Replace, rows, basis.as_ref(), 1.0, Par::Seq);
        // Within the subspace, the directions themselves.
        let wide = Mat::from_fn(count, width, |i, j| f64::from(scores[(i, j)]));
        let svd = (wide.transpose() * &wide).self_adjoint_eigen(faer::Side::Lower);
        let svd = svd.expect("a finite symmetric matrix has eigenvalues");
        let (vectors, values) = (svd.U(), svd.S());
        // Ascending: the last ones are the largest.
        #[expect(clippy::cast_possible_truncation, reason = "numbers below one")]
        let turn = Mat::from_fn(dims, width, |k, j| vectors[(j, width - 1 - k)] as f32);
        let mut components = Mat::zeros(dims, pixels);
        matmul(
            components.as_mut(),
            Accum::Replace,
            turn.as_ref(),
            basis.transpose(),
            1.0,
            Par::Seq,
        );
        let kept: f64 = (0..dims).map(|k| values[width - 1 - k].max(0.0)).sum();
        let explained = if total > 0.0 { (kept / total).min(1.0) } else { 1.0 };
        Pca { mean, components, explained }
    }

    /// Number of coordinates.
    pub fn dims(&self) -> usize {
        self.components.nrows()
    }

    /// Part of the variance of the images that the components have.
    pub fn explained(&self) -> f64 {
        self.explained
    }

    /// Coordinates of images, a row each.
    ///
    /// # Panics
    ///
    /// If the images are of another size than those that it was computed from.
    pub fn project(&self, images: &Images) -> Vec<f32> {
        let pixels = self.mean.len();
        assert_eq!(pixels, images.size(), "images of another size");
        let mut rows = images.pixels.clone();
        for row in rows.chunks_exact_mut(pixels) {
            row.iter_mut().zip(&self.mean).for_each(|(x, mean)| *x -= mean);
        }
        let mut out = vec![0.0; images.count * self.dims()];
        matmul(
            MatMut::from_row_major_slice_mut(&mut out, images.count, self.dims()),
            Accum::Replace,
            MatRef::from_row_major_slice(&rows, images.count, pixels),
            self.components.transpose(),
            1.0,
            Par::Seq,
        );
        out
    }
}

/// Subtracts the mean row, and returns it.
fn centre(rows: &mut [f32], pixels: usize) -> Vec<f32> {
    let mut sums = vec![0.0_f64; pixels];
    for row in rows.chunks_exact(pixels) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let count = (rows.len() / pixels) as f64;
    #[expect(clippy::cast_possible_truncation, reason = "the precision of pixels")]
    let mean: Vec<f32> = sums.iter().map(|sum| (sum / count) as f32).collect();
    for row in rows.chunks_exact_mut(pixels) {
        row.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean);
    }
    mean
}

fn squares<'a>(row: impl Iterator<Item = &'a f32>) -> f64 {
    row.map(|x| f64::from(*x).powi(2)).sum()
}

/// An orthonormal basis of the columns, in double precision on the way.
#[expect(clippy::cast_possible_truncation, reason = "back to the precision that it came in")]
fn orthonormal(columns: &Mat<f32>) -> Mat<f32> {
    // Of order one: squares of pixels grow from round to round.
    let largest = columns.norm_max().max(f32::MIN_POSITIVE);
    let (rows, width) = (columns.nrows(), columns.ncols());
    let scaled = Mat::from_fn(rows, width, |i, j| f64::from(columns[(i, j)] / largest));
    let thin = scaled.qr().compute_thin_Q();
    Mat::from_fn(rows, width, |i, j| thin[(i, j)] as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Images of 16 pixels that vary along known orthonormal directions with falling amplitudes.
    fn images() -> (Pictures, Vec<Vec<f64>>) {
        let direction = |k: usize| -> Vec<f64> {
            let cosine =
                |i: usize| (std::f64::consts::PI * (k + 1) as f64 * (i as f64 + 0.5) / 16.0).cos();
            (0..16).map(|i| cosine(i) * (2.0_f64 / 16.0).sqrt()).collect()
        };
        let directions: Vec<Vec<f64>> = (0..3).map(direction).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut bytes = Vec::new();
        for _ in 0..2000 {
            let scores: Vec<f64> = [80.0, 40.0, 20.0]
                .iter()
                .map(|size| size * Distribution::<f64>::sample(&StandardNormal, &mut rng))
                .collect();
            for i in 0..16 {
                let value: f64 = directions.iter().zip(&scores).map(|(d, s)| d[i] * s).sum();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped"
                )]
                bytes.push((128.0 + value).round().clamp(0.0, 255.0) as u8);
            }
        }
        (Pictures::new(1, 4, bytes).unwrap(), directions)
    }

    #[test]
    fn components_are_those_that_the_images_were_made_with() {
        let (pictures, directions) = images();
        let pca = Pca::fit(&pictures, 3);
        assert_eq!(pca.dims(), 3);
        // What is left is the rounding to bytes: 13 axes with 1/12 each, beside 8400.
        assert!(pca.explained() > 0.999, "{}", pca.explained());
        for (k, direction) in directions.iter().enumerate() {
            let found = pca.components.row(k);
            let cosine: f64 = found.iter().zip(direction).map(|(a, b)| f64::from(*a) * b).sum();
            assert!(cosine.abs() > 0.998, "{k}: {cosine}");
        }
        // Few components are the first of many, and distances are those of pixels when all are there.
        let few = Pca::fit(&pictures, 1);
        let same: f32 = few
            .components
            .row(0)
            .iter()
            .zip(pca.components.row(0).iter())
            .map(|(a, b)| a * b)
            .sum();
        assert!((same.abs() - 1.0).abs() < 1e-4);
        let all = Pca::fit(&pictures, 100);
        assert_eq!(all.dims(), 16);
        let images = pictures.batch(&[3, 77]);
        let coordinates = all.project(&images);
        let distance = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).map(|(x, y)| f64::from(x - y).powi(2)).sum::<f64>()
        };
        let (near, pixels) = coordinates.split_at(16);
        let expected = distance(images.image(0), images.image(1));
        assert!((distance(near, pixels) / expected - 1.0).abs() < 1e-5);
    }

    #[test]
    fn the_iteration_finds_what_a_decomposition_finds() {
        // Images of noise have nearly equal variances: the hardest case. What it explains must come close.
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let bytes = (0..400 * 64).map(|_| {
            let x: f64 = StandardNormal.sample(&mut rng);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            {
                (128.0 + 40.0 * x).clamp(0.0, 255.0) as u8
            }
        });
        let pictures = Pictures::new(1, 8, bytes.collect()).unwrap();
        let found = Pca::fit(&pictures, 10).explained();
        let mut rows = pictures.images().pixels;
        centre(&mut rows, 64);
        let rows = Mat::from_fn(400, 64, |i, j| f64::from(rows[i * 64 + j]));
        let values =
            (rows.transpose() * &rows).self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        let expected = values.iter().rev().take(10).sum::<f64>() / values.iter().sum::<f64>();
        assert!(found <= expected + 1e-5 && found > 0.98 * expected, "{found} {expected}");
    }
}
