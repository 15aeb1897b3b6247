//! Coordinates in which the clouds sit around the origin at a scale near 1.
//!
//! The squared Euclidean cost does not change when both clouds move together, and scales by `s^2`
//! when they grow by `s`. Arithmetic does care: far from the origin digits are lost, and squares of
//! `1e-170` or `1e170` leave the range of double precision. A [`Frame`] subtracts a common centre
//! and divides by a power of two, so that nothing is rounded that need not be.

use crate::error::{Error, Result};
use crate::measure::{Measure, Points, extremes};

/// An exact change of scale and a common centre: `x' = (x - centre) / 2^k`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Frame {
    centre: Vec<f64>,
    /// `2^-k`.
    shrink: f64,
    /// Largest norm of a point of either cloud, in frame coordinates.
    radius: f64,
}

/// Largest `radius^2 / epsilon` for which logarithms of the kernel keep about seven decimals.
pub(crate) const LARGEST_EXPONENT: f64 = 1e9;

/// Squares of user coordinates must be finite, and so must the reciprocal of the scale.
pub(crate) const WIDEST: f64 = 1e153;

impl Frame {
    /// The frame around the supports of two measures.
    pub(crate) fn around(mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Self> {
        let centre = common_centre(mu, nu)?;
        Frame::centred(centre, mu, nu)
    }

    /// The frame around the origin, for those who want anchors there as the paper has them.
    pub(crate) fn at_origin(mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Self> {
        Frame::centred(vec![0.0; mu.dim()], mu, nu)
    }

    /// The frame of points that are in their coordinates already.
    pub(crate) fn unit(dim: usize) -> Self {
        Frame { centre: vec![0.0; dim], shrink: 1.0, radius: 0.0 }
    }

    fn centred(centre: Vec<f64>, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Self> {
        same_dimension(mu, nu)?;
        let mut frame = Frame { centre, shrink: 1.0, radius: 0.0 };
        let extent = frame.largest(mu, nu, |x| x.fold(0.0, |most, x| x.abs().max(most)));
        if extent > WIDEST {
            return Err(Error::TooWide { extent });
        }
        if extent > 0.0 {
            frame.shrink = power_of_two_below(1.0 / extent.max(1e-300));
        }
        frame.radius = frame.largest(mu, nu, |x| x.map(|x| x * x).sum()).sqrt();
        Ok(frame)
    }

    /// The largest `size` of a point of either support, in frame coordinates.
    fn largest(
        &self,
        mu: &Measure<'_>,
        nu: &Measure<'_>,
        size: impl Fn(&mut dyn Iterator<Item = f64>) -> f64 + Sync,
    ) -> f64 {
        let of = |m: &Measure<'_>| {
            let points = m.support().points;
            let coordinate = |i: usize, k: usize| self.coordinate(points, i, k);
            points.span().max(|i| size(&mut (0..self.dim()).map(|k| coordinate(i, k))))
        };
        of(mu).max(of(nu))
    }

    pub(crate) fn dim(&self) -> usize {
        self.centre.len()
    }

    /// Largest norm of a point, in frame coordinates.
    pub(crate) fn radius(&self) -> f64 {
        self.radius
    }

    /// Units of the frame in one of the user's.
    pub(crate) fn shrink(&self) -> f64 {
        self.shrink
    }

    /// Where its origin is.
    pub(crate) fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// Coordinate `k` of point `i` in this frame.
    pub(crate) fn coordinate(&self, points: &Points<'_>, i: usize, k: usize) -> f64 {
        (points.coordinate(i, k) - self.centre[k]) * self.shrink
    }

    /// Coordinates `first..first + out.len()` of point `i` in this frame.
    pub(crate) fn copy_coordinates(
        &self,
        points: &Points<'_>,
        i: usize,
        first: usize,
        out: &mut [f64],
    ) {
        points.copy_coordinates(i, first, out);
        for (x, c) in out.iter_mut().zip(&self.centre[first..]) {
            *x = (*x - c) * self.shrink;
        }
    }

    /// Checks that squares of these coordinates are finite.
    pub(crate) fn check_extent(&self, points: &Points<'_>) -> Result<()> {
        let apart = |i: usize, k: usize| (points.coordinate(i, k) - self.centre[k]).abs();
        let extent =
            points.span().max(|i| (0..self.dim()).map(|k| apart(i, k)).fold(0.0, f64::max));
        if extent > WIDEST { Err(Error::TooWide { extent }) } else { Ok(()) }
    }

    /// Epsilon in the units of this frame; an error where the exponents could not be resolved.
    pub(crate) fn epsilon(&self, epsilon: f64) -> Result<f64> {
        let scaled = epsilon * self.shrink * self.shrink;
        let square = self.radius * self.radius;
        if square > LARGEST_EXPONENT * scaled {
            let radius = self.radius / self.shrink;
            return Err(Error::EpsilonTooSmall {
                epsilon,
                radius,
                ratio: square / scaled,
                least: radius / LARGEST_EXPONENT * radius,
            });
        }
        if !scaled.is_finite() {
            return Err(Error::Option {
                name: "epsilon",
                expected: "comparable to the squared extent of the data",
                value: epsilon,
            });
        }
        Ok(scaled)
    }

    /// A cost in the units of the user.
    pub(crate) fn cost_to_user(&self, cost: f64) -> Result<f64> {
        let cost = cost / self.shrink / self.shrink;
        if cost.is_finite() {
            Ok(cost)
        } else {
            Err(Error::TooWide { extent: self.radius / self.shrink })
        }
    }
}

/// Checks that exponents of the kernel at some points keep enough digits; epsilon in the units of the frame.
pub(crate) fn check_reach(
    frame: &Frame,
    points: &Points<'_>,
    places: impl Iterator<Item = usize>,
    epsilon: f64,
) -> Result<()> {
    for i in places {
        let square = |k| frame.coordinate(points, i, k).powi(2);
        let ratio = (0..frame.dim()).map(square).sum::<f64>() / epsilon;
        if ratio.is_nan() || ratio > LARGEST_EXPONENT {
            return Err(Error::FarPoint { point: i + 1, ratio });
        }
    }
    Ok(())
}

pub(crate) fn same_dimension(mu: &Measure<'_>, nu: &Measure<'_>) -> Result<()> {
    if mu.dim() == nu.dim() { Ok(()) } else { Err(Error::Dimensions { x: mu.dim(), y: nu.dim() }) }
}

/// The point between the means of two clouds.
pub(crate) fn common_centre(mu: &Measure<'_>, nu: &Measure<'_>) -> Result<Vec<f64>> {
    same_dimension(mu, nu)?;
    let mut centre: Vec<f64> =
        mu.mean().iter().zip(nu.mean()).map(|(x, y)| 0.5 * x + 0.5 * y).collect();
    clamp_to(&mut centre, &[mu.support().points, nu.support().points]);
    Ok(centre)
}

/// A mean is rounded; that of equal points should be the point.
pub(crate) fn clamp_to(centre: &mut [f64], clouds: &[&Points<'_>]) {
    let boxes: Vec<Vec<[f64; 2]>> = clouds.iter().map(|points| extremes(points)).collect();
    for (k, c) in centre.iter_mut().enumerate() {
        let low = boxes.iter().map(|ends| ends[k][0]).fold(f64::INFINITY, f64::min);
        let high = boxes.iter().map(|ends| ends[k][1]).fold(f64::NEG_INFINITY, f64::max);
        *c = c.clamp(low, high);
    }
}

/// The largest power of two that is at most `x`, for positive normal `x`.
pub(crate) fn power_of_two_below(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0x7ff0_0000_0000_0000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two() {
        for (x, p) in [(1.0, 1.0), (1.5, 1.0), (0.9, 0.5), (1e10, 2f64.powi(33)), (5.0, 4.0)] {
            assert_eq!(power_of_two_below(x), p, "{x}");
        }
    }

    #[test]
    fn frames_are_exact_for_tiny_and_huge_clouds() {
        for scale in [1e-150, 1e-20, 1.0, 1e20, 1e150] {
            let points = Points::new(vec![0.0, 3.0 * scale], 1).unwrap();
            let m = Measure::uniform(points);
            let frame = Frame::around(&m, &m).unwrap();
            let a = frame.coordinate(m.points(), 0, 0);
            let b = frame.coordinate(m.points(), 1, 0);
            assert_eq!(a, -b, "{scale}");
            assert!((0.5..=1.0).contains(&b), "{scale}: {b}");
            let distance = frame.cost_to_user((a - b).powi(2)).unwrap();
            assert!((distance / (9.0 * scale * scale) - 1.0).abs() < 1e-15);
        }
        let far = Measure::uniform(Points::new(vec![0.0, 1e200], 1).unwrap());
        assert!(matches!(Frame::around(&far, &far), Err(Error::TooWide { .. })));
    }
}
