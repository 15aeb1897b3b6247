//! Clouds of any dimension on paper.

use orthant::{Measure, Points};
use orthant_draw::{Panel, thinned};
use orthant_support::Failure;

use crate::input::{Axes, Inputs};

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
    Axes(Axes),
}

impl View {
    /// Of the clouds of a command, under the names of their columns.
    pub(crate) fn of(inputs: &Inputs, measures: &[&Measure<'_>]) -> Result<Self, Failure> {
        let names = inputs.clouds[0].columns.as_deref().filter(|_| !inputs.preparation.loses());
        View::new(measures, names)
    }

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

    /// An empty picture with these axes.
    pub(crate) fn panel(&self, title: &str) -> Panel {
        let [x, y] = &self.axes;
        let panel = Panel::new().title(title).axes(x, y).size(760.0, 560.0);
        if self.is_plane() { panel.equal() } else { panel }
    }

    /// The chosen points of a cloud, the `level`-th of them.
    pub(crate) fn places(
        &self,
        points: &Points<'_>,
        chosen: &[usize],
        level: usize,
    ) -> Vec<[f64; 2]> {
        self.map(chosen.len(), level, |row, c| points.coordinate(chosen[row], c))
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
                Kind::Axes(axes) => {
                    let point: Vec<f64> = (0..axes.mean.len()).map(|c| at(i, c)).collect();
                    let mut along = axes.project(&point);
                    [along.next().unwrap_or(0.0), along.next().unwrap_or(0.0)]
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
    let points: Vec<f64> = clouds
        .iter()
        .flat_map(|cloud| {
            let (points, chosen) =
                (cloud.points(), thinned(cloud.points().len(), SAMPLE / clouds.len()));
            chosen.into_iter().flat_map(move |i| (0..dim).map(move |c| points.coordinate(i, c)))
        })
        .collect();
    let axes = Axes::principal(points.chunks_exact(dim), dim, 2)
        .ok_or_else(|| Failure::input("the clouds have no principal axes to be drawn on"))?;
    let name = |k: usize| {
        let share = axes.shares[k];
        let share = if share > 0.0 {
            format!(" ({:.0} % of the variance)", 100.0 * share)
        } else {
            String::new()
        };
        format!("principal axis {}{share}", k + 1)
    };
    Ok(View { axes: [name(0), name(1)], kind: Kind::Axes(axes) })
}

#[cfg(test)]
mod tests {
    use super::*;

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
