//! The scale of the cost, which epsilon is chosen by.

use crate::error::{Error, Result, in_clouds};
use crate::measure::{Measure, Support, are_counted};

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
    // The sums of the weights as given.
    let shares: Vec<f64> = measures
        .iter()
        .zip(are_counted(&measures))
        .map(
            |(measure, counted)| {
                if counted { measure.points().span().total() as f64 } else { measure.mass() }
            },
        )
        .collect();
    let sum: f64 = shares.iter().sum();
    if !sum.is_finite() {
        return Err(Error::Overflow { what: "the sum of the weights" });
    }
    let means: Vec<Vec<f64>> = measures.iter().map(|measure| measure.mean()).collect();
    let mut mean = 0.0;
    for (k, (measure, share)) in measures.iter().zip(&shares).enumerate() {
        let part = share / sum;
        // Twice the trace of the covariance.
        mean += part * in_clouds([k, k], mean_squared_distance(measure, measure))?;
        for (l, other) in shares.iter().enumerate().skip(k + 1) {
            let between: f64 = means[k].iter().zip(&means[l]).map(|(x, y)| (x - y).powi(2)).sum();
            mean += 2.0 * part * (other / sum) * between;
        }
    }
    if mean.is_finite() { Ok(mean) } else { Err(Error::Overflow { what: "the mean cost" }) }
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
