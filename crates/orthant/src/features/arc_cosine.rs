//! Features of the arc-cosine kernels (Cho & Saul 2009; the paper's Lemma 3).
//!
//! ```text
//! k_s(x, y) = E[Theta_s(u.x) Theta_s(u.y)],  u ~ N(0, I),  Theta_s(w) = sqrt(2) max(0, w)^s
//!           = |x|^s |y|^s J_s(angle) / pi
//! k         = k_s + kappa
//! phi(x, u) = sigma^{d/2} sqrt(2) max(0, u.x)^s exp(-|u|^2/4 (1 - 1/sigma^2)),  u ~ N(0, sigma^2 I)
//! ```
//!
//! and one constant feature `sqrt(kappa)` (not `kappa`), which keeps the kernel positive.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Derivative, FeatureMap, check_dimension};
use crate::error::{Error, Result};
use crate::measure::Points;
use crate::numerics::simd;

/// Random features of the perturbed arc-cosine kernel of order 0, 1 or 2.
#[derive(Debug, Clone)]
pub struct ArcCosine {
    order: u8,
    dim: usize,
    /// `dim x stride`: coordinate `c` of every anchor; the last anchor is the constant feature.
    anchors: Vec<f64>,
    /// Logarithm of what multiplies `max(0, u.x)^s`.
    bias: Vec<f64>,
    /// `(1 - 1/sigma^2) / 2`: features fall with `exp(-narrow |u|^2 / 2)`.
    narrow: f64,
    rank: usize,
}

impl ArcCosine {
    /// The map for points of `dim` coordinates: `rank - 1` anchors drawn with `seed`, and the
    /// constant feature.
    ///
    /// `order` is 0, 1 or 2; `kappa > 0` is added to the kernel; `sigma >= 1` widens the anchors.
    pub fn new(
        dim: usize,
        order: u8,
        kappa: f64,
        sigma: f64,
        rank: usize,
        seed: u64,
    ) -> Result<Self> {
        let option = |name, expected, value| Err(Error::Option { name, expected, value });
        if dim == 0 {
            return Err(Error::NoCoordinates);
        }
        if order > 2 {
            return option("the order of the arc-cosine kernel", "0, 1 or 2", f64::from(order));
        }
        if !(kappa > 0.0 && kappa.is_finite()) {
            return option("kappa", "positive and finite", kappa);
        }
        if !(sigma >= 1.0 && sigma.is_finite()) {
            return option("sigma", "at least 1 and finite", sigma);
        }
        if rank < 2 {
            return option("rank", "at least 2 for the arc-cosine kernel", rank as f64);
        }
        let draws = rank - 1;
        let stride = simd::padded(rank);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut anchors = vec![0.0; dim * stride];
        let mut bias = vec![0.0; stride];
        let constant = 0.5 * (2.0 / draws as f64).ln() + 0.5 * dim as f64 * sigma.ln();
        for k in 0..draws {
            let mut norm = 0.0;
            for c in 0..dim {
                let normal: f64 = StandardNormal.sample(&mut rng);
                anchors[c * stride + k] = sigma * normal;
                norm += (sigma * normal).powi(2);
            }
            bias[k] = constant - 0.25 * norm * (1.0 - 1.0 / (sigma * sigma));
        }
        bias[draws] = 0.5 * kappa.ln();
        let narrow = 0.5 * (1.0 - 1.0 / (sigma * sigma));
        Ok(ArcCosine { order, dim, anchors, bias, narrow, rank })
    }

    /// The anchors, row by row, without the constant feature: the parameters of
    /// [`Gradient::anchors`](crate::Gradient::anchors).
    pub fn anchors(&self) -> Vec<f64> {
        let stride = self.bias.len();
        let of = |k: usize| (0..self.dim).map(move |c| self.anchors[c * stride + k]);
        (0..self.rank - 1).flat_map(of).collect()
    }

    /// `u_k . x_i` for every anchor, padded.
    fn products(&self, points: &Points<'_>, i: usize, out: &mut [f64]) {
        const TILE: usize = 64;
        let stride = self.bias.len();
        let mut tile = [0.0; TILE];
        out.fill(0.0);
        for c in (0..self.dim).step_by(TILE) {
            let width = TILE.min(self.dim - c);
            points.copy_coordinates(i, c, &mut tile[..width]);
            let anchors = &self.anchors[c * stride..(c + width) * stride];
            simd::affine(&tile[..width], width, anchors, simd::Start::Out, out);
        }
    }

    /// `s w_k / (u_k . x_i)`, where that feature has a weight.
    fn slopes(&self, points: &Points<'_>, i: usize, weights: &[f64], out: &mut [f64]) {
        self.products(points, i, out);
        for (o, w) in out[..self.rank - 1].iter_mut().zip(weights) {
            *o = if *w > 0.0 { f64::from(self.order) * w / *o } else { 0.0 };
        }
        out[self.rank - 1..].fill(0.0);
    }
}

impl FeatureMap for ArcCosine {
    fn dim(&self) -> usize {
        self.dim
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn check(&self, points: &Points<'_>) -> Result<()> {
        check_dimension(self.dim, points)?;
        let size =
            |i: usize| (0..self.dim).map(|k| points.coordinate(i, k).abs()).fold(0.0, f64::max);
        let extent = points.span().max(size);
        // Inner products with the anchors, and their squares, must not overflow.
        if extent > 1e150 { Err(Error::TooWide { extent }) } else { Ok(()) }
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        assert_eq!(stride, self.bias.len(), "the stride of features is their padded number");
        let order = f64::from(self.order);
        for (i, row) in out.chunks_exact_mut(stride).enumerate() {
            self.products(points, first + i, row);
            for (l, b) in row[..self.rank - 1].iter_mut().zip(&self.bias) {
                *l = match (*l > 0.0, self.order) {
                    (false, _) => f64::NEG_INFINITY,
                    (true, 0) => *b,
                    (true, _) => b + order * l.ln(),
                };
            }
            row[self.rank - 1] = self.bias[self.rank - 1];
        }
    }

    fn derivative(&self) -> Result<&dyn Derivative> {
        if self.order == 0 {
            return Err(Error::NoDerivative {
                by: "the points",
                reason: "features of the arc-cosine kernel of order 0 are steps",
                remedy: "use order 1 or 2",
            });
        }
        Ok(self)
    }
}

/// `d log phi_k / d x = s u_k / (u_k . x)`, and by the anchor `s x / (u_k . x) - narrow u_k`.
impl Derivative for ArcCosine {
    fn points(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let mut slopes = vec![0.0; stride];
        let rows = weights.chunks_exact(stride).zip(out.chunks_exact_mut(self.dim));
        for (i, (w, out)) in rows.enumerate() {
            self.slopes(points, first + i, w, &mut slopes);
            for (out, anchors) in out.iter_mut().zip(self.anchors.chunks_exact(stride)) {
                *out = simd::dot(&slopes, anchors);
            }
        }
    }

    fn parameters(&self) -> usize {
        (self.rank - 1) * self.dim
    }

    fn add_parameters(
        &self,
        points: &Points<'_>,
        first: usize,
        stride: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let (mut slopes, mut x) = (vec![0.0; stride], vec![0.0; self.dim]);
        for (i, w) in weights.chunks_exact(stride).enumerate() {
            self.slopes(points, first + i, w, &mut slopes);
            points.copy_coordinates(first + i, 0, &mut x);
            for (k, out) in out.chunks_exact_mut(self.dim).enumerate() {
                for (c, (out, x)) in out.iter_mut().zip(&x).enumerate() {
                    *out += slopes[k] * x - w[k] * self.narrow * self.anchors[c * stride + k];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::assert_derivatives;

    #[test]
    fn derivatives_against_central_differences() {
        let points = Points::new(vec![0.3, -0.2, 0.9, 1.5, 0.1, -0.7], 3).unwrap();
        for order in [1, 2] {
            let map = ArcCosine::new(3, order, 0.3, 1.4, 12, 5).unwrap();
            assert_derivatives(&map, &points, 1e-6, |p, h| {
                let mut moved = map.clone();
                let (k, c, stride) = (p / 3, p % 3, map.bias.len());
                let square = |map: &ArcCosine| -> f64 {
                    (0..3).map(|c| map.anchors[c * stride + k].powi(2)).sum()
                };
                moved.anchors[c * stride + k] += h;
                moved.bias[k] -= 0.25 * (square(&moved) - square(&map)) * (1.0 - 1.0 / (1.4 * 1.4));
                Box::new(moved)
            });
        }
        assert!(ArcCosine::new(3, 0, 0.3, 1.4, 12, 5).unwrap().derivative().is_err());
    }
}
