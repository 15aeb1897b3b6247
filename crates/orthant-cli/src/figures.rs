//! Pictures of two clouds and of what is between them.

use orthant::{Divergence, Measure, Plan, Side};
use orthant_draw::{MOST_ARROWS, MOST_POINTS, Picture, thinned};
use orthant_support::Failure;

use crate::input::Inputs;
use crate::view::View;

/// Both clouds, and where points of the first go.
pub(crate) fn map(
    plan: &Plan<'_>,
    inputs: &Inputs,
    measures: &[Measure<'_>; 2],
) -> Result<Picture, Failure> {
    let [mu, nu] = measures;
    let view = View::of(inputs, &[mu, nu])?;
    let mut panel = view.panel("What moves where");
    for (k, (cloud, measure)) in inputs.clouds.iter().zip(measures).enumerate() {
        let chosen = thinned(measure.points().len(), MOST_POINTS);
        panel.cloud(&cloud.short, &view.places(measure.points(), &chosen, k), k)?;
    }
    let moved = plan.barycentric(Side::X)?;
    let chosen = thinned(mu.points().len(), MOST_ARROWS);
    let from = view.places(mu.points(), &chosen, 0);
    let to = view.map(chosen.len(), 1, |row, c| moved[chosen[row] * mu.dim() + c]);
    panel.arrows("to the mean of its partners", &from, &to)?;
    Ok(panel.into())
}

/// Both clouds, coloured by what a little more mass at a point would add to the divergence.
pub(crate) fn difference(
    divergence: &Divergence,
    inputs: &Inputs,
    measures: &[Measure<'_>; 2],
) -> Result<Picture, Failure> {
    let view = View::of(inputs, &[&measures[0], &measures[1]])?;
    let Divergence { cross, self_x, self_y, .. } = divergence;
    let excess = |cross: Vec<f64>, own: Vec<f64>| -> Vec<f64> {
        cross.iter().zip(&own).map(|(cross, own)| cross - own).collect()
    };
    let excess = [
        excess(cross.potential_kl_x(), self_x.potential_kl_x()),
        excess(cross.potential_kl_y(), self_y.potential_kl_x()),
    ];
    let mut panel =
        view.panel("Where the clouds differ: what mass at a point adds to the divergence");
    for (k, (cloud, measure)) in inputs.clouds.iter().zip(measures).enumerate() {
        let chosen = thinned(measure.points().len(), MOST_POINTS);
        let values: Vec<f64> = chosen.iter().map(|&i| excess[k][i]).collect();
        panel.coloured(&cloud.short, &view.places(measure.points(), &chosen, k), &values)?;
    }
    Ok(panel.into())
}
