//! The paper's features of the Gaussian kernel (Lemma 1).
//!
//! ```text
//! k(x, y)   = exp(-||x - y||^2 / eps) = E[phi(x, u) phi(y, u)],   u ~ N(0, (q eps / 4) I)
//! phi(x, u) = (2q)^{d/4} exp(-2 ||x - u||^2 / eps) exp(||u||^2 / (eps q))
//! ```
//!
//! The paper's main text prints `||u||^2 / (eps (1/2 + R^2/eps))` in the last factor; its proof and
//! the identity need `||u||^2 / (eps q)`, and a test shows that the printed one is biased.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Affine, FeatureMap};
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::measure::{Measure, Points};
use crate::theory;

/// Random features of the Gaussian kernel, with the paper's anchors: independent normal draws.
///
/// ```
/// use orthant::{Measure, Points, features::{FeatureMap, Gaussian}};
/// let mu = Measure::uniform(Points::new(vec![0.0, 0.0, 1.0, 1.0], 2)?);
/// let map = Gaussian::paper(&mu, &mu, 0.5, 200, 7, true)?;
/// assert_eq!((map.dim(), map.rank()), (2, 200));
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Gaussian {
    affine: Affine,
    q: f64,
}

impl Gaussian {
    /// The map for two clouds: `rank` anchors drawn with `seed`, `q` by the Lambert function from
    /// the largest norm `R` of a point.
    ///
    /// `centred`: norms are taken from the common centre of the clouds, which makes `R`, and with it
    /// the variance of the features, smaller. The paper takes them from the origin.
    pub fn paper(
        mu: &Measure<'_>,
        nu: &Measure<'_>,
        epsilon: f64,
        rank: usize,
        seed: u64,
        centred: bool,
    ) -> Result<Self> {
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            return Err(Error::Option {
                name: "epsilon",
                expected: "positive and finite",
                value: epsilon,
            });
        }
        if rank == 0 {
            return Err(Error::Option { name: "rank", expected: "at least 1", value: 0.0 });
        }
        let frame = if centred { Frame::around(mu, nu)? } else { Frame::at_origin(mu, nu)? };
        let epsilon = frame.epsilon(epsilon)?;
        let q = theory::paper_q(frame.radius(), epsilon, frame.dim());
        let sigma = (q * epsilon / 4.0).sqrt();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let anchors: Vec<f64> = (0..rank * frame.dim())
            .map(|_| {
                let normal: f64 = StandardNormal.sample(&mut rng);
                sigma * normal
            })
            .collect();
        Ok(Self::with_anchors(frame, epsilon, q, &anchors))
    }

    /// The map with these anchors (row-major, in coordinates of the frame).
    fn with_anchors(frame: Frame, epsilon: f64, q: f64, anchors: &[f64]) -> Self {
        let dim = frame.dim();
        let rank = anchors.len() / dim;
        let constant = 0.25 * dim as f64 * (2.0 * q).ln() - 0.5 * (rank as f64).ln();
        let affine = Affine::new(
            frame,
            rank,
            -2.0 / epsilon,
            4.0 / epsilon,
            |k, c| anchors[k * dim + c],
            |k| {
                let norm: f64 = anchors[k * dim..(k + 1) * dim].iter().map(|u| u * u).sum();
                constant + norm * (1.0 / q - 2.0) / epsilon
            },
        );
        Gaussian { affine, q }
    }

    /// The coordinates that it works in.
    pub(crate) fn frame(&self) -> &Frame {
        self.affine.frame()
    }

    /// The paper's `q`: the anchors have variance `q eps / 4` on every axis.
    pub fn q(&self) -> f64 {
        self.q
    }
}

impl FeatureMap for Gaussian {
    fn dim(&self) -> usize {
        self.affine.dim()
    }

    fn rank(&self) -> usize {
        self.affine.rank()
    }

    fn log_features(&self, points: &Points<'_>, first: usize, stride: usize, out: &mut [f64]) {
        self.affine.fill(points, first, stride, out);
    }
}
