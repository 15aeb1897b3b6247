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

use super::{FeatureMap, check_dimension};
use crate::error::{Error, Result};
use crate::measure::Points;
use crate::simd;

/// Random features of the perturbed arc-cosine kernel of order 0, 1 or 2.
#[derive(Debug, Clone)]
pub struct ArcCosine {
    order: u8,
    dim: usize,
    /// `dim x stride`: coordinate `c` of every anchor; the last anchor is the constant feature.
    anchors: Vec<f64>,
    /// Logarithm of what multiplies `max(0, u.x)^s`.
    bias: Vec<f64>,
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
        Ok(ArcCosine { order, dim, anchors, bias, rank })
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
        let extent = (0..points.len() * self.dim)
            .map(|i| points.coordinate(i / self.dim, i % self.dim).abs())
            .fold(0.0, f64::max);
        // Inner products with the anchors, and their squares, must not overflow.
        if extent > 1e150 { Err(Error::TooWide { extent }) } else { Ok(()) }
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        const TILE: usize = 64;
        assert_eq!(stride, self.bias.len(), "the stride of features is their padded number");
        let order = f64::from(self.order);
        let mut tile = [0.0; TILE];
        for (i, row) in out.chunks_exact_mut(stride).enumerate() {
            row.fill(0.0);
            for c in (0..self.dim).step_by(TILE) {
                let width = TILE.min(self.dim - c);
                points.copy_coordinates(first + i, c, &mut tile[..width]);
                let anchors = &self.anchors[c * stride..(c + width) * stride];
                simd::affine(&tile[..width], width, anchors, simd::Start::Out, row);
            }
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
}
