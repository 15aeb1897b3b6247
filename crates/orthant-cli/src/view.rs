//! Clouds of any dimension on paper.

use faer::{Mat, Side};
use orthant::{Measure, Points};
use orthant_draw::thinned;

use crate::failure::Failure;

/// Points that principal axes are taken from, at most.
const SAMPLE: usize = 20_000;

/// Where the points of some clouds are drawn.
pub(crate) struct View {
    /// What the two axes are.
    pub(crate) axes: [String; 2],
    kind: Kind,
}

enum Kind {
    /// Points on a line, the clouds one above the other.
    Line,
    Plane,
    /// Principal axes, and what is subtracted before.
    Axes {
        mean: Vec<f64>,
        axes: [Vec<f64>; 2],
    },
}

impl View {
    /// The plane itself, or the first two principal axes of all clouds together. `names` are those of the columns.
    pub(crate) fn new(clouds: &[&Measure<'_>], names: Option<&[String]>) -> Result<Self, Failure> {
        let dim = clouds.first().map_or(0, |cloud| cloud.dim());
        let name = |c: usize| {
            names
                .and_then(|names| names.get(c))
                .cloned()
                .unwrap_or_else(|| format!("axis {}", c + 1))
        };
        Ok(match dim {
            0 | 1 => View { axes: [name(0), String::new()], kind: Kind::Line },
            2 => View { axes: [name(0), name(1)], kind: Kind::Plane },
            _ => principal(clouds, dim)?,
        })
    }

    /// The chosen points of a cloud, the `level`-th of them.
    pub(crate) fn places(
        &self,
        points: &Points<'_>,
        chosen: &[usize],
        level: usize,
    ) -> Vec<[f64; 2]> {
        let at = |i: usize, c: usize| points.coordinate(i, c);
        self.map(chosen.len(), level, |row, c| at(chosen[row], c))
    }

    /// Points given by their coordinates.
    pub(crate) fn map(
        &self,
        rows: usize,
        level: usize,
        at: impl Fn(usize, usize) -> f64,
    ) -> Vec<[f64; 2]> {
        (0..rows)
            .map(|i| match &self.kind {
                Kind::Line => [at(i, 0), level as f64],
                Kind::Plane => [at(i, 0), at(i, 1)],
                Kind::Axes { mean, axes } => {
                    let mut place = [0.0; 2];
                    for (place, axis) in place.iter_mut().zip(axes) {
                        let parts = mean.iter().zip(axis).enumerate();
                        *place = parts.map(|(c, (mean, axis))| (at(i, c) - mean) * axis).sum();
                    }
                    place
                }
            })
            .collect()
    }

    /// Whether lengths on paper are those of the space.
    pub(crate) fn is_plane(&self) -> bool {
        !matches!(self.kind, Kind::Line)
    }
}

fn principal(clouds: &[&Measure<'_>], dim: usize) -> Result<View, Failure> {
    let rows: Vec<(usize, usize)> = clouds
        .iter()
        .enumerate()
        .flat_map(|(k, cloud)| {
            thinned(cloud.points().len(), SAMPLE / clouds.len()).into_iter().map(move |i| (k, i))
        })
        .collect();
    let at = |&(k, i): &(usize, usize), c: usize| clouds[k].points().coordinate(i, c);
    let count = rows.len() as f64;
    let mean: Vec<f64> =
        (0..dim).map(|c| rows.iter().map(|row| at(row, c) / count).sum()).collect();
    let centred = Mat::from_fn(rows.len(), dim, |i, c| (at(&rows[i], c) - mean[c]) / count.sqrt());
    let covariance = centred.transpose() * &centred;
    let eigen = covariance
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| Failure::input("the clouds have no principal axes to be drawn on"))?;
    let total: f64 = (0..dim).map(|c| covariance[(c, c)]).sum();
    // Eigenvalues rise.
    let axis = |k: usize| -> Vec<f64> {
        let column = (0..dim).map(|c| eigen.U()[(c, dim - 1 - k)]).collect::<Vec<_>>();
        // The sign is that of the largest entry, so that pictures do not flip.
        let largest = column.iter().fold(0.0_f64, |a, b| if b.abs() > a.abs() { *b } else { a });
        column.iter().map(|x| x * largest.signum()).collect()
    };
    let name = |k: usize| {
        let part = eigen.S().column_vector()[dim - 1 - k] / total;
        let share = if total > 0.0 {
            format!(" ({:.0} % of the variance)", 100.0 * part)
        } else {
            String::new()
        };
        format!("principal axis {}{share}", k + 1)
    };
    Ok(View { axes: [name(0), name(1)], kind: Kind::Axes { mean, axes: [axis(0), axis(1)] } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_axes_are_those_of_an_ellipsoid() {
        // Long along (1, 1, 0), less along (0, 0, 1), nothing along (1, -1, 0).
        let points: Vec<f64> = (0..200)
            .flat_map(|i| {
                let (s, t) = (f64::from(i) / 20.0, f64::from(i % 7));
                [s + 1.0, s + 2.0, 0.3 * t]
            })
            .collect();
        let cloud = Measure::uniform(Points::new(points, 3).unwrap());
        let view = View::new(&[&cloud], None).unwrap();
        let places = view.places(cloud.points(), &[0, 199], 0);
        let length = places[1][0] - places[0][0];
        assert!((length.abs() - (199.0 / 20.0) * 2.0_f64.sqrt()).abs() < 0.1, "{length}");
        assert!(view.axes[0].starts_with("principal axis 1 (9"));
        assert!(view.is_plane());
    }

    #[test]
    fn lines_and_planes_are_drawn_as_they_are() {
        let line = Measure::uniform(Points::new(vec![1.0, 5.0], 1).unwrap());
        let view = View::new(&[&line], None).unwrap();
        assert_eq!(view.places(line.points(), &[1], 1), [[5.0, 1.0]]);
        assert!(!view.is_plane());
        let names = ["lon".to_owned(), "lat".to_owned()];
        let plane = Measure::uniform(Points::new(vec![1.0, 5.0], 2).unwrap());
        let view = View::new(&[&plane], Some(&names)).unwrap();
        assert_eq!(view.axes, names);
        assert_eq!(view.places(plane.points(), &[0], 0), [[1.0, 5.0]]);
        // All points at one place have no variance, and are drawn.
        let same = Measure::uniform(Points::new(vec![1.0; 12], 3).unwrap());
        let view = View::new(&[&same], None).unwrap();
        assert!(view.places(same.points(), &[0, 3], 0).iter().flatten().all(|x| x.abs() < 1e-12));
    }
}
