//! Anderson acceleration of a fixed-point iteration, safeguarded.
//!
//! An iteration of Sinkhorn's algorithm is a function `G` of one message `z`, a few thousand numbers
//! however many points there are. With the residual `R(z) = G(z) - z` and the differences of the last few
//! residuals and images, the next message is
//!
//! ```text
//! G(z) - sum_i gamma_i dG_i,      gamma = argmin || R(z) - sum_i gamma_i dR_i ||
//! ```
//!
//! in the norm that weighs a feature by the mass of the plan that passes through it. That costs no pass over
//! the points.
//!
//! *How good is a message?* `z` need not be the message of any `v`, but with `u` the answer to it, `y` that of
//! `u`, and `v` the answer to `y`, the plan of `u` and `v` has the right second marginal, and its first is off
//! by at most
//!
//! ```text
//! sum_k |exp(y_k + G(z)_k) - exp(y_k + z_k)|
//! ```
//!
//! since rows of features, divided by their sums, are distributions. For exact kernels, where features are the
//! points of the second cloud, it is the error of the second marginal of `u` and `z` itself.
//!
//! *The safeguard.* A message that is much worse than the best one so far, or has a lower dual value as long as
//! errors are large, is thrown away, with all the differences. The iteration goes on from the image of the best
//! one, and stays closer to images after that.

use rayon::prelude::*;

/// Differences that are kept.
const DEPTH: usize = 10;
/// Messages that are this many times worse than the best are thrown away.
const WORSE: f64 = 2.0;
/// Errors above this say little: of most of the mass it is not known yet where it goes.
const FAR_ERROR: f64 = 0.1;
/// How far a message may be from an image at first, and how that changes.
const TRUST: f64 = 2.0;
const GROW: f64 = 2.0;
const SHRINK: f64 = 0.25;
/// Features below this logarithm of the mass do not matter.
const FAINT_MASS: f64 = -25.0;
/// A difference of residuals is left out if less than this part of it, squared, is new.
const NEW: f64 = 1e-10;
/// Entries that are summed together.
const CHUNK: usize = 1 << 14;
/// Products of residuals: among the differences, and with the last one.
const PRODUCTS: usize = DEPTH * (DEPTH + 1) / 2 + DEPTH;

/// What is remembered of the iterations so far.
#[derive(Debug)]
pub(crate) struct Anderson {
    /// The message that was last sent, its image and residual.
    sent: Vec<f64>,
    image: Vec<f64>,
    residual: Vec<f64>,
    /// The image of the best message, and its error.
    best: Vec<f64>,
    best_error: f64,
    best_value: f64,
    /// Whether the last message is to be kept.
    good: bool,
    /// Differences of images and of residuals; the newest at `newest`.
    images: Vec<Vec<f64>>,
    residuals: Vec<Vec<f64>>,
    newest: usize,
    count: usize,
    /// Whether the last image and residual belong to the chain.
    chained: bool,
    /// How far a message may be from an image, and whether the last one had to be pulled in.
    trust: f64,
    clipped: bool,
    sums: Vec<[f64; PRODUCTS]>,
}

impl Anderson {
    /// For messages of so many numbers.
    pub(crate) fn new(len: usize) -> Self {
        let zeros = || vec![0.0; len];
        Anderson {
            sent: zeros(),
            image: zeros(),
            residual: zeros(),
            best: zeros(),
            best_error: f64::INFINITY,
            best_value: f64::NEG_INFINITY,
            good: true,
            images: (0..DEPTH).map(|_| zeros()).collect(),
            residuals: (0..DEPTH).map(|_| zeros()).collect(),
            newest: 0,
            count: 0,
            chained: false,
            trust: TRUST,
            clipped: false,
            sums: vec![[0.0; PRODUCTS]; len.div_ceil(CHUNK)],
        }
    }

    /// Numbers that are kept for each number of a message.
    pub(crate) const MEMORY: usize = 2 * DEPTH + 4;

    /// Forgets all differences.
    pub(crate) fn restart(&mut self) {
        self.count = 0;
        self.chained = false;
        self.best_error = f64::INFINITY;
        self.best_value = f64::NEG_INFINITY;
        self.good = true;
    }

    /// Notes the message that an iteration starts from, which is not the proposed one if the kernel had to make
    /// it anew.
    pub(crate) fn sent(&mut self, z: &[f64]) {
        self.clipped &= self.sent == z;
        self.sent.copy_from_slice(z);
    }

    /// Error of the plan after an iteration: see the [module](self).
    pub(crate) fn error(&self, (image, back): (&mut [f64], &[f64])) -> f64 {
        let (mut error, mut mass) = (0.0, 0.0);
        for ((z, image), y) in self.sent.iter().zip(image).zip(back) {
            let after = (y + *image).exp();
            error += (after - (y + z).exp()).abs();
            mass += after;
        }
        // Features that lost their messages have lost their mass.
        error.max((1.0 - mass).abs())
    }

    /// Whether an error says so little that messages are judged by the dual value, which plain iterations never
    /// lower.
    pub(crate) fn is_far(&self, error: f64) -> bool {
        self.best_error > FAR_ERROR && error > FAR_ERROR
    }

    /// Judges the message that was sent, by its error or by the value; the last of all must be the best.
    pub(crate) fn judge(&mut self, image: &[f64], error: f64, value: Option<f64>, last: bool) {
        let better = if let Some(value) = value {
            self.good = value >= self.best_value;
            if self.good {
                self.best_value = value;
            }
            self.good
        } else {
            self.good = error <= if last { 1.0 } else { WORSE } * self.best_error;
            error <= self.best_error
        };
        if better {
            self.best_error = error;
            self.best.copy_from_slice(image);
        }
    }

    /// Replaces `z`, the image of the message that was sent, by the message to send next. `back` is the one
    /// in the other direction.
    pub(crate) fn mix(&mut self, (z, back): (&mut [f64], &[f64])) {
        if self.clipped {
            self.trust *= GROW;
        }
        if self.chained {
            self.newest = (self.newest + 1) % DEPTH;
            self.count = (self.count + 1).min(DEPTH);
        }
        let (images, residuals) = (&mut self.images[self.newest], &mut self.residuals[self.newest]);
        for (k, new) in z.iter().enumerate() {
            let residual = new - self.sent[k];
            // What carries no mass has no message, minus infinity, and no part in this.
            let residual = if residual.is_finite() { residual } else { 0.0 };
            if self.chained {
                let image = new - self.image[k];
                let known = image.is_finite();
                images[k] = if known { image } else { 0.0 };
                residuals[k] = if known { residual - self.residual[k] } else { 0.0 };
            }
            self.image[k] = *new;
            self.residual[k] = residual;
        }
        self.chained = true;
        self.clipped = false;
        if self.count == 0 {
            return;
        }
        let gamma = self.coefficients(back);
        for (i, gamma) in gamma.iter().enumerate().take(self.count) {
            if *gamma != 0.0 {
                for (z, image) in z.iter_mut().zip(&self.images[self.slot(i)]) {
                    *z -= gamma * image;
                }
            }
        }
        // No further from the image, where there is mass, than what went well before.
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for ((z, image), y) in z.iter_mut().zip(&self.image).zip(back) {
            if y + image > FAINT_MASS {
                low = low.min(*z - image);
                high = high.max(*z - image);
            } else {
                *z = *image;
            }
        }
        if high - low > self.trust {
            self.clipped = true;
            let part = self.trust / (high - low);
            for (z, image) in z.iter_mut().zip(&self.image) {
                let step = part * (*z - image);
                *z = if step.is_finite() { image + step } else { *image };
            }
        }
        self.sent.copy_from_slice(z);
    }

    /// The image of the best message, if the last one is to be thrown away. What follows is a plain iteration, good
    /// by definition.
    pub(crate) fn better(&mut self) -> Option<&[f64]> {
        if self.good {
            return None;
        }
        self.restart();
        self.trust *= SHRINK;
        Some(&self.best)
    }

    /// Where the difference is that has `age` newer ones.
    fn slot(&self, age: usize) -> usize {
        (self.newest + DEPTH - age) % DEPTH
    }

    /// `gamma`, the newest first, by the normal equations. A difference that the newer ones all but contain
    /// gets none.
    fn coefficients(&mut self, back: &[f64]) -> [f64; DEPTH] {
        let count = self.count;
        let products = self.products(back);
        let (gram, right) = products.split_at(DEPTH * (DEPTH + 1) / 2);
        let at = |i: usize, j: usize| gram[i * (i + 1) / 2 + j];
        // Cholesky's factor, with the rows of the differences that are left out empty.
        let mut lower = [[0.0; DEPTH]; DEPTH];
        let mut known = [0.0; DEPTH];
        for i in 0..count {
            let mut row = [0.0; DEPTH];
            for j in 0..i {
                if lower[j][j] > 0.0 {
                    let done: f64 = (0..j).map(|l| row[l] * lower[j][l]).sum();
                    row[j] = (at(i, j) - done) / lower[j][j];
                }
            }
            let rest = at(i, i) - row.iter().map(|x| x * x).sum::<f64>();
            if rest > NEW * at(i, i) {
                row[i] = rest.sqrt();
                lower[i] = row;
                let done: f64 = (0..i).map(|l| row[l] * known[l]).sum();
                known[i] = (right[i] - done) / row[i];
            }
        }
        let mut gamma = [0.0; DEPTH];
        for i in (0..count).rev().filter(|i| lower[*i][*i] > 0.0) {
            let done: f64 = (i + 1..count).map(|l| lower[l][i] * gamma[l]).sum();
            gamma[i] = (known[i] - done) / lower[i][i];
        }
        if gamma.iter().all(|g| g.is_finite()) { gamma } else { [0.0; DEPTH] }
    }

    /// Weighted products of the differences of residuals, a triangle of them row by row, and of each with the
    /// last residual.
    fn products(&mut self, back: &[f64]) -> [f64; PRODUCTS] {
        let (count, newest) = (self.count, self.newest);
        let (residuals, residual, sent) = (&self.residuals, &self.residual, &self.sent);
        self.sums.par_iter_mut().enumerate().for_each(|(chunk, sums)| {
            *sums = [0.0; PRODUCTS];
            let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(back.len());
            for k in range {
                let weight = (back[k] + sent[k]).exp();
                if weight == 0.0 || !weight.is_finite() {
                    continue;
                }
                let mut row = [0.0; DEPTH];
                for (i, x) in row.iter_mut().enumerate().take(count) {
                    *x = residuals[(newest + DEPTH - i) % DEPTH][k];
                }
                let (triangle, right) = sums.split_at_mut(DEPTH * (DEPTH + 1) / 2);
                let mut at = 0;
                for i in 0..count {
                    let x = weight * row[i];
                    for y in &row[..=i] {
                        triangle[at] += x * y;
                        at += 1;
                    }
                    right[i] += x * residual[k];
                }
            }
        });
        let mut total = [0.0; PRODUCTS];
        for sums in &self.sums {
            for (total, sum) in total.iter_mut().zip(sums) {
                *total += sum;
            }
        }
        total
    }
}
