//! The scale of the cost, which epsilon is chosen by.

use super::frame::{WIDEST, power_of_two_below};
use crate::error::{Error, Result, in_clouds};
use crate::ground::GroundCost;
use crate::measure::{Measure, Support, are_counted};
use crate::rows::{GroundRows, LogRows};

/// Mean squared distance of two points that are drawn independently from all clouds together, in linear time.
///
/// Every point counts by its weight as given ([`Measure::mass`] times the weights), and points of a measure without
/// weights count one each. So the number depends on the points alone, and not on how they are divided into clouds: it is
/// the same for every task on the same points, and a permutation of the points between the clouds leaves it as it is.
/// It is twice the total variance of the points. Zero means that all points coincide; overflow is an error.
///
/// ```
/// use orthant::{Measure, Points, mean_cost};
/// let x = Measure::uniform(Points::new(vec![0.0, 2.0], 1)?);
/// let y = Measure::uniform(Points::new(vec![4.0], 1)?);
/// // The squared distances of 0, 2 and 4 are 4 (twice), 16 and 0 (three times), each pair in both orders.
/// assert!((mean_cost(&[x, y])? - 2.0 * (4.0 + 4.0 + 16.0) / 9.0).abs() < 1e-12);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn mean_cost<'a, 'm: 'a>(measures: impl IntoIterator<Item = &'a Measure<'m>>) -> Result<f64> {
    let measures: Vec<&Measure<'m>> = measures.into_iter().collect();
    if let Some([first, other]) =
        measures.windows(2).map(|pair| [pair[0].dim(), pair[1].dim()]).find(|[x, y]| x != y)
    {
        return Err(Error::Dimensions { x: first, y: other });
    }
    let shares = shares(&measures)?;
    let means: Vec<Vec<f64>> = measures.iter().map(|measure| measure.mean()).collect();
    let mut mean = 0.0;
    for (k, (measure, part)) in measures.iter().zip(&shares).enumerate() {
        // Twice the trace of the covariance.
        mean += part * in_clouds([k, k], mean_squared_distance(measure, measure))?;
        for (l, other) in shares.iter().enumerate().skip(k + 1) {
            let between: f64 = means[k].iter().zip(&means[l]).map(|(x, y)| (x - y).powi(2)).sum();
            mean += 2.0 * part * other * between;
        }
    }
    if mean.is_finite() { Ok(mean) } else { Err(Error::Overflow { what: "the mean cost" }) }
}

/// The parts that the measures have of all points together, by their weights as given.
fn shares(measures: &[&Measure<'_>]) -> Result<Vec<f64>> {
    let sums: Vec<f64> = measures
        .iter()
        .zip(are_counted(measures))
        .map(
            |(measure, counted)| {
                if counted { measure.points().span().total() as f64 } else { measure.mass() }
            },
        )
        .collect();
    let sum: f64 = sums.iter().sum();
    if !sum.is_finite() {
        return Err(Error::Overflow { what: "the sum of the weights" });
    }
    Ok(sums.into_iter().map(|part| part / sum).collect())
}

/// Mean squared distance `sum_ij a_i b_j ||x_i - y_j||^2`, in linear time: the traces of the two
/// covariances and the squared distance of the means.
///
/// Overflow is an error. Zero means that all points coincide.
pub fn mean_squared_distance(mu: &Measure<'_>, nu: &Measure<'_>) -> Result<f64> {
    let frame = crate::coordinates::Frame::around(mu, nu)?;
    let trace = |m: &Measure<'_>, mean: &[f64]| -> f64 {
        let Support { points, weights } = m.support();
        let apart = |i: usize, k: usize| frame.coordinate(points, i, k) - mean[k];
        let square = |i: usize| (0..mean.len()).map(|k| apart(i, k).powi(2)).sum::<f64>();
        points.span().sum(|i| weights[i] * square(i))
    };
    let frame_mean = |m: &Measure<'_>| -> Vec<f64> {
        let Support { points, weights } = m.support();
        let mut mean = vec![0.0; m.dim()];
        points.span().sum_each(&mut mean, |i, sums| {
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum += weights[i] * frame.coordinate(points, i, k);
            }
        });
        mean
    };
    let (mx, my) = (frame_mean(mu), frame_mean(nu));
    let between: f64 = mx.iter().zip(&my).map(|(x, y)| (x - y) * (x - y)).sum();
    frame.cost_to_user(trace(mu, &mx) + trace(nu, &my) + between)
}

/// Standard deviation of the squared distance of two points that are drawn independently from all clouds together, in
/// linear time: what [`mean_cost`] is the mean of, over the same pairs.
///
/// ```
/// use orthant::{Measure, Points, cost_deviation};
/// let x = Measure::uniform(Points::new(vec![0.0, 2.0], 1)?);
/// // The squared distances of the four pairs are 0, 4, 4 and 0.
/// assert!((cost_deviation(&[x])? - 2.0).abs() < 1e-12);
/// # Ok::<(), orthant::Error>(())
/// ```
pub fn cost_deviation<'a, 'm: 'a>(
    measures: impl IntoIterator<Item = &'a Measure<'m>>,
) -> Result<f64> {
    let measures: Vec<&Measure<'m>> = measures.into_iter().collect();
    let shares = shares(&measures)?;
    let all: Vec<(&Measure<'m>, f64)> = measures.into_iter().zip(shares).collect();
    deviation([&all, &all])
}

/// Standard deviation of the squared distance over all pairs of a point of either measure,
/// `sqrt(sum_ij a_i b_j (||x_i - y_j||^2 - mean)^2)`, in linear time.
///
/// With uniform weights, a twentieth of it is OTT's epsilon where none is given. Overflow is an error. Zero means that all
/// pairs have the same distance.
pub fn squared_distance_deviation(mu: &Measure<'_>, nu: &Measure<'_>) -> Result<f64> {
    deviation([&[(mu, 1.0)], &[(nu, 1.0)]])
}

/// Adds what a point of this weight and these coordinates has to some sums.
type Adding<'a> = dyn Fn(f64, &[f64], &mut [f64]) + Sync + 'a;

/// Around the means of two clouds, `x = mx + s`, `y = my + t` and `D = mx - my`,
///
/// ```text
/// ||x - y||^2 - |D|^2 = (|s|^2 + 2 D.s) + (|t|^2 - 2 D.t) - 2 s.t
/// ```
///
/// and its three parts are uncorrelated, because `s` and `t` are independent and of mean zero. So their variances add up, that
/// of the last one is `4 tr(Sx Sy)`, and nothing is subtracted. Each cloud is given in parts, with the share that each
/// has of it.
fn deviation(clouds: [&[(&Measure<'_>, f64)]; 2]) -> Result<f64> {
    let Some((first, _)) = clouds[0].first() else { return Ok(0.0) };
    let dim = first.dim();
    if let Some((other, _)) = clouds.iter().copied().flatten().find(|(m, _)| m.dim() != dim) {
        return Err(Error::Dimensions { x: dim, y: other.dim() });
    }
    let centres = clouds.map(|parts| {
        let mut centre = vec![0.0; dim];
        for (measure, share) in parts {
            centre.iter_mut().zip(measure.mean()).for_each(|(c, m)| *c += share * m);
        }
        centre
    });
    let mut extent: f64 =
        centres[0].iter().zip(&centres[1]).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    for (parts, centre) in clouds.iter().zip(&centres) {
        for (measure, _) in *parts {
            let points = measure.support().points;
            let apart = |i: usize, k: usize| (points.coordinate(i, k) - centre[k]).abs();
            let farthest = |i: usize| (0..dim).map(|k| apart(i, k)).fold(0.0, f64::max);
            extent = extent.max(points.span().max(farthest));
        }
    }
    if extent == 0.0 {
        return Ok(0.0);
    }
    if extent > WIDEST {
        return Err(Error::TooWide { extent });
    }
    // Fourth powers stay in the range of the numbers.
    let shrink = power_of_two_below(1.0 / extent.max(1e-300));
    let sums = |c: usize, len: usize, add: &Adding<'_>| {
        let mut total = vec![0.0; len];
        for (measure, share) in clouds[c] {
            let Support { points, weights } = measure.support();
            let mut sums = vec![0.0; len];
            points.span().sum_each(&mut sums, |i, sums| {
                let s: Vec<f64> =
                    (0..dim).map(|k| (points.coordinate(i, k) - centres[c][k]) * shrink).collect();
                add(weights[i], &s, sums);
            });
            total.iter_mut().zip(sums).for_each(|(t, s)| *t += share * s);
        }
        total
    };
    // What rounding left of the means.
    let rests = [0, 1].map(|c| {
        sums(c, dim, &|w, s, sums| sums.iter_mut().zip(s).for_each(|(sum, s)| *sum += w * s))
    });
    let covariance = |c: usize| {
        sums(c, dim * dim, &|w, s, sums| {
            let s: Vec<f64> = s.iter().zip(&rests[c]).map(|(s, r)| s - r).collect();
            for (row, si) in sums.chunks_exact_mut(dim).zip(&s) {
                row.iter_mut().zip(&s).for_each(|(sum, sj)| *sum += w * si * sj);
            }
        })
    };
    let covariances = [covariance(0), covariance(1)];
    let apart: Vec<f64> = (0..dim)
        .map(|k| (centres[0][k] - centres[1][k]) * shrink + rests[0][k] - rests[1][k])
        .collect();
    let alone = |c: usize| {
        let sign = if c == 0 { 2.0 } else { -2.0 };
        let trace: f64 = (0..dim).map(|k| covariances[c][k * dim + k]).sum();
        sums(c, 1, &|w, s, sums| {
            let parts = s.iter().zip(&rests[c]).zip(&apart);
            let part: f64 = parts.map(|((s, r), d)| (s - r) * (s - r + sign * d)).sum();
            sums[0] += w * (part - trace).powi(2);
        })[0]
    };
    let together: f64 = covariances[0].iter().zip(&covariances[1]).map(|(x, y)| x * y).sum();
    let deviation = (alone(0) + alone(1) + 4.0 * together).sqrt() / shrink / shrink;
    if deviation.is_finite() {
        Ok(deviation)
    } else {
        Err(Error::Overflow { what: "the standard deviation of the cost" })
    }
}

/// The scale of a cost, which epsilon is chosen by. That of the dot product is that of half the squared distance, from which it
/// differs by terms of one point each. Costs that are no squared distance visit all pairs.
impl GroundCost {
    /// The mean cost of two points that are drawn independently from all clouds together: see [`mean_cost`].
    pub fn mean<'a, 'm: 'a>(
        &self,
        measures: impl IntoIterator<Item = &'a Measure<'m>>,
    ) -> Result<f64> {
        let measures: Vec<&Measure<'m>> = measures.into_iter().collect();
        if self.is_squared_distance() {
            return mean_cost(&self.all_mapped(&measures)?);
        }
        let all = self.parts(measures)?;
        Ok(self.over_pairs([&all, &all])?[0])
    }

    /// The standard deviation of the same cost: see [`cost_deviation`].
    pub fn deviation<'a, 'm: 'a>(
        &self,
        measures: impl IntoIterator<Item = &'a Measure<'m>>,
    ) -> Result<f64> {
        let measures: Vec<&Measure<'m>> = measures.into_iter().collect();
        if self.is_squared_distance() {
            return cost_deviation(&self.all_mapped(&measures)?);
        }
        let all = self.parts(measures)?;
        Ok(self.over_pairs([&all, &all])?[1])
    }

    /// The standard deviation over pairs of a point of either measure: see [`squared_distance_deviation`].
    pub fn deviation_between(&self, mu: &Measure<'_>, nu: &Measure<'_>) -> Result<f64> {
        if self.is_squared_distance() {
            let mapped = self.all_mapped(&[mu, nu])?;
            return squared_distance_deviation(&mapped[0], &mapped[1]);
        }
        self.check_all(&[mu, nu])?;
        Ok(self.over_pairs([&[(mu, 1.0)], &[(nu, 1.0)]])?[1])
    }

    fn check_all(&self, measures: &[&Measure<'_>]) -> Result<()> {
        for (k, measure) in measures.iter().enumerate() {
            in_clouds([k, k], self.check(measure.points()))?;
        }
        Ok(())
    }

    fn all_mapped<'m>(&self, measures: &[&'m Measure<'_>]) -> Result<Vec<Measure<'m>>> {
        self.check_all(measures)?;
        Ok(measures.iter().map(|measure| self.mapped_measure(measure)).collect())
    }

    fn parts<'a, 'm>(&self, measures: Vec<&'a Measure<'m>>) -> Result<Vec<(&'a Measure<'m>, f64)>> {
        self.check_all(&measures)?;
        let shares = shares(&measures)?;
        Ok(measures.into_iter().zip(shares).collect())
    }

    /// Mean and standard deviation over all pairs, one by one.
    fn over_pairs(&self, [x, y]: [&[(&Measure<'_>, f64)]; 2]) -> Result<[f64; 2]> {
        let sum = |of: &(dyn Fn(f64) -> f64 + Sync)| -> Result<f64> {
            let mut sum = 0.0;
            for (mu, share) in x {
                for (nu, other) in y {
                    if mu.dim() != nu.dim() {
                        return Err(Error::Dimensions { x: mu.dim(), y: nu.dim() });
                    }
                    let (mu, nu) = (mu.support(), nu.support());
                    let (points, others) = (mu.points.borrowed(), nu.points.borrowed());
                    let rows = GroundRows::new(self, 1.0, points, others);
                    sum += share
                        * other
                        * mu.points.span().sum(|i| {
                            let mut row = vec![0.0; nu.len()];
                            rows.fill(i, nu.len(), &mut row, &mut vec![0.0; rows.scratch()]);
                            let costs = row.iter().zip(nu.weights);
                            mu.weights[i] * costs.map(|(l, b)| b * of(-l)).sum::<f64>()
                        });
                }
            }
            Ok(sum)
        };
        let mean = sum(&|cost| cost)?;
        if !mean.is_finite() {
            return Err(Error::Overflow { what: "the mean cost" });
        }
        let deviation = sum(&|cost| (cost - mean).powi(2))?.sqrt();
        Ok([mean, deviation])
    }
}
