//! What is done to the coordinates before anything is solved: one scale for all clouds, principal components.

use faer::{Mat, Side};
use orthant_support::Failure;
use orthant_support::number::{count, rough};

use super::Cloud;
use crate::args::ScaleName;

/// Columns that spread more unevenly than this are worth a warning.
const UNEVEN: f64 = 1e3;
/// Rows that are multiplied at a time.
const BLOCK: usize = 4096;

/// A change of coordinates, the same for all clouds.
#[derive(Debug, Default)]
pub(crate) struct Preparation {
    scale: Option<Scale>,
    components: Option<Axes>,
}

/// What is subtracted from each column, and what it is then divided by.
#[derive(Debug)]
struct Scale {
    name: &'static str,
    centre: Vec<f64>,
    spread: Vec<f64>,
}

/// Directions, and the point that they start from.
#[derive(Debug)]
pub(crate) struct Axes {
    pub(crate) mean: Vec<f64>,
    /// Orthonormal, the one of the largest variance first.
    pub(crate) directions: Vec<Vec<f64>>,
    /// The part of the variance along each.
    pub(crate) shares: Vec<f64>,
}

impl Preparation {
    /// Finds the change for all clouds together, every point counted once.
    pub(super) fn fit(
        clouds: &[Cloud],
        scale: ScaleName,
        components: Option<usize>,
    ) -> Result<Self, Failure> {
        let scale = match scale {
            ScaleName::None => None,
            ScaleName::Standard => Some(Scale::standard(clouds)?),
            ScaleName::Robust => Some(Scale::robust(clouds)),
        };
        let mut preparation = Preparation { scale, components: None };
        if let Some(k) = components {
            let dim = clouds[0].dim;
            if k > dim {
                return Err(Failure::input(format!(
                    "--pca {k} is more than the {dim} coordinates that there are; use a smaller number"
                )));
            }
            let scaled: Vec<Vec<f64>> =
                clouds.iter().map(|cloud| preparation.scaled(&cloud.coordinates())).collect();
            let rows = scaled.iter().flat_map(|values| values.chunks_exact(dim));
            let axes = Axes::principal(rows, dim, k).ok_or_else(|| {
                Failure::input(
                    "the clouds have no principal components: their points overflow or coincide",
                )
            })?;
            preparation.components = Some(axes);
        }
        Ok(preparation)
    }

    /// Whether coordinates stay as they are.
    pub(crate) fn is_none(&self) -> bool {
        self.scale.is_none() && self.components.is_none()
    }

    /// Whether coordinates can be taken back.
    pub(crate) fn loses(&self) -> bool {
        self.components.is_some()
    }

    pub(super) fn apply(&self, cloud: &mut Cloud) {
        if self.is_none() {
            return;
        }
        let scaled = self.scaled(&cloud.coordinates());
        match &self.components {
            None => cloud.prepare(scaled, cloud.dim),
            Some(axes) => {
                let values =
                    scaled.chunks_exact(cloud.dim).flat_map(|row| axes.project(row)).collect();
                cloud.prepare(values, axes.directions.len());
            }
        }
    }

    fn scaled(&self, values: &[f64]) -> Vec<f64> {
        let Some(Scale { centre, spread, .. }) = &self.scale else { return values.to_vec() };
        let columns = centre.iter().zip(spread).cycle();
        values.iter().zip(columns).map(|(x, (centre, spread))| (x - centre) / spread).collect()
    }

    /// Coordinates of the file again; components have lost them.
    pub(crate) fn undo(&self, values: &[f64]) -> Vec<f64> {
        let Some(Scale { centre, spread, .. }) = &self.scale else { return values.to_vec() };
        let columns = centre.iter().zip(spread).cycle();
        values.iter().zip(columns).map(|(x, (centre, spread))| x * spread + centre).collect()
    }

    /// What was done, for people.
    pub(super) fn text(&self) -> Vec<String> {
        let scale = self.scale.as_ref().map(|scale| {
            format!("columns scaled by {}, the same for all clouds: epsilon and values are in these units", scale.name)
        });
        let components = self.components.as_ref().map(|axes| {
            let share: f64 = axes.shares.iter().sum();
            format!(
                "{} principal components, with {:.1} % of the variance",
                count(axes.directions.len()),
                1e2 * share
            )
        });
        scale.into_iter().chain(components).collect()
    }
}

impl Scale {
    /// By mean and standard deviation.
    fn standard(clouds: &[Cloud]) -> Result<Self, Failure> {
        let (centre, spread): (Vec<f64>, Vec<f64>) =
            (0..clouds[0].dim).map(|c| moments(clouds, c)).unzip();
        if centre.iter().chain(&spread).any(|x| !x.is_finite()) {
            return Err(Failure::input(
                "the coordinates are too large for their standard deviation; use --scale robust",
            ));
        }
        Ok(Scale {
            name: "mean and standard deviation",
            centre,
            spread: spread.into_iter().map(unit).collect(),
        })
    }

    /// By median and distance of the quartiles.
    fn robust(clouds: &[Cloud]) -> Self {
        let (centre, spread): (Vec<f64>, Vec<f64>) = (0..clouds[0].dim)
            .map(|c| {
                let mut column: Vec<f64> = column(clouds, c).collect();
                let mut at = |q| quantile(&mut column, q);
                let [low, middle, high] = [at(0.25), at(0.5), at(0.75)];
                (middle, unit(high - low))
            })
            .unzip();
        Scale { name: "median and quartiles", centre, spread }
    }
}

/// A column of equal values has no spread, and is left as it is.
fn unit(spread: f64) -> f64 {
    if spread > 0.0 { spread } else { 1.0 }
}

fn column(clouds: &[Cloud], c: usize) -> impl Iterator<Item = f64> {
    clouds.iter().flat_map(move |cloud| (0..cloud.len()).map(move |i| cloud.coordinate(i, c)))
}

/// Mean and standard deviation of a column.
fn moments(clouds: &[Cloud], c: usize) -> (f64, f64) {
    let points: usize = clouds.iter().map(Cloud::len).sum();
    let mean = column(clouds, c).map(|x| x / points as f64).sum::<f64>();
    let variance = column(clouds, c).map(|x| (x - mean).powi(2)).sum::<f64>() / points as f64;
    (mean, variance.sqrt())
}

/// The value below which this part of the values is, between the two nearest.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    let at = part * (values.len() - 1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let below = at.floor() as usize;
    let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(*low);
    *low + (at - at.floor()) * (high - *low)
}

/// A warning, if some columns decide the cost alone.
pub(super) fn uneven(clouds: &[Cloud]) -> Option<String> {
    let known: Vec<(usize, f64)> = (0..clouds[0].dim)
        .map(|c| (c, moments(clouds, c)))
        // A column of equal values has no spread but rounding.
        .filter(|(_, (mean, spread))| *spread > 1e-12 * mean.abs() && spread.is_finite())
        .map(|(c, (_, spread))| (c, spread))
        .collect();
    let widest = known.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let narrowest = known.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ratio = widest.1 / narrowest.1;
    let name = |c: usize| match &clouds[0].columns {
        Some(names) if !names[c].is_empty() => format!("column {:?}", names[c]),
        _ => format!("column {}", clouds[0].positions[c] + 1),
    };
    (ratio > UNEVEN).then(|| {
        format!(
            "{} spreads {} times as far as {}, so that it decides the cost; --scale standard gives all columns one spread",
            name(widest.0),
            rough(ratio, 0),
            name(narrowest.0)
        )
    })
}

impl Axes {
    /// The first `k` principal axes of some rows, or nothing if there are none to be had.
    pub(crate) fn principal<'r>(
        rows: impl Iterator<Item = &'r [f64]> + Clone,
        dim: usize,
        k: usize,
    ) -> Option<Self> {
        let count = rows.clone().count() as f64;
        let mut mean = vec![0.0; dim];
        for row in rows.clone() {
            mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / count);
        }
        let mut covariance = Mat::<f64>::zeros(dim, dim);
        let mut block: Vec<f64> = Vec::with_capacity(BLOCK * dim);
        let mut add = |block: &mut Vec<f64>| {
            let centred = Mat::from_fn(block.len() / dim, dim, |i, c| {
                (block[i * dim + c] - mean[c]) / count.sqrt()
            });
            covariance += centred.transpose() * &centred;
            block.clear();
        };
        for row in rows {
            block.extend_from_slice(row);
            if block.len() >= BLOCK * dim {
                add(&mut block);
            }
        }
        add(&mut block);
        let eigen = covariance.self_adjoint_eigen(Side::Lower).ok()?;
        let total: f64 = (0..dim).map(|c| covariance[(c, c)]).sum();
        if !total.is_finite() {
            return None;
        }
        // Eigenvalues rise.
        let direction = |k: usize| -> Vec<f64> {
            let column = (0..dim).map(|c| eigen.U()[(c, dim - 1 - k)]).collect::<Vec<_>>();
            // The sign is that of the largest entry, so that pictures do not flip.
            let largest =
                column.iter().fold(0.0_f64, |a, b| if b.abs() > a.abs() { *b } else { a });
            column.iter().map(|x| x * largest.signum()).collect()
        };
        let share = |k: usize| {
            let part = eigen.S().column_vector()[dim - 1 - k];
            if total > 0.0 { part / total } else { 0.0 }
        };
        Some(Axes {
            directions: (0..k).map(direction).collect(),
            shares: (0..k).map(share).collect(),
            mean,
        })
    }

    /// The coordinates of a point along the axes.
    pub(crate) fn project<'p>(&'p self, point: &'p [f64]) -> impl Iterator<Item = f64> + 'p {
        self.directions.iter().map(move |direction| {
            let parts = point.iter().zip(&self.mean).zip(direction);
            parts.map(|((x, mean), d)| (x - mean) * d).sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        // numpy.quantile([3, 1, 2, 10], [0.25, 0.5, 0.75])
        let mut values = [3.0, 1.0, 2.0, 10.0];
        let found = [0.25, 0.5, 0.75].map(|q| quantile(&mut values, q));
        assert_eq!(found, [1.75, 2.5, 4.75]);
        assert_eq!(quantile(&mut [7.0], 0.75), 7.0);
    }

    #[test]
    fn principal_axes_are_those_of_an_ellipsoid() {
        // Long along (1, 1, 0), less along (0, 0, 1), nothing along (1, -1, 0).
        let points: Vec<[f64; 3]> = (0..200)
            .map(|i| {
                let (s, t) = (f64::from(i) / 20.0, f64::from(i % 7));
                [s + 1.0, s + 2.0, 0.3 * t]
            })
            .collect();
        let axes = Axes::principal(points.iter().map(|p| &p[..]), 3, 2).unwrap();
        let ends = [&points[0], &points[199]].map(|p| axes.project(p).next().unwrap());
        assert!(((ends[1] - ends[0]) - (199.0 / 20.0) * 2.0_f64.sqrt()).abs() < 0.1, "{ends:?}");
        assert!(axes.shares[0] > 0.9 && (axes.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let dots = axes.directions[0].iter().zip(&axes.directions[1]).map(|(a, b)| a * b);
        assert!(dots.sum::<f64>().abs() < 1e-12);
    }
}
