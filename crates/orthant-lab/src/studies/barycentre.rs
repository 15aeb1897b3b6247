//! Figure 6: a barycentre on the positive sphere, with the linear kernel.

use std::path::Path;
use std::time::Instant;

use orthant::{Measure, Method, Options, Points, barycenter::barycenter, options::Features};
use orthant_draw::{Panel, Picture};
use orthant_support::Failure;
use orthant_support::number::{digits, duration, short};
use serde::{Deserialize, Serialize};

use crate::config::{counts, positive};
use crate::page::{Figure, Section, Table};
use crate::sphere::{bump, positive_sphere};
use crate::study::Study;

/// The settings, and the only run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Barycentre {
    /// The simplex is cut into `side^2` triangles, and there is a point in each.
    side: usize,
    /// Of the histograms around the corners, in radians.
    deviation: f64,
    /// Temperature of the softmax.
    softmax: f64,
    /// L1 error of the marginals.
    tolerance: f64,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    weights: Vec<f64>,
    peaks: Vec<f64>,
    value: f64,
    rank: usize,
    iterations: usize,
    marginal_error: f64,
    converged: bool,
    seconds: f64,
}

impl Study for Barycentre {
    type Case = Barycentre;
    type Outcome = Found;
    type Data = Vec<[f64; 3]>;

    fn check(&self) -> Result<(), String> {
        counts("side", &[self.side])?;
        positive(
            "deviation, softmax and tolerance",
            &[self.deviation, self.softmax, self.tolerance],
        )
    }

    fn cases(&self) -> Vec<Barycentre> {
        vec![self.clone()]
    }

    fn seconds(&self, _: &Barycentre) -> f64 {
        0.1
    }

    fn words(&self, _: &Barycentre) -> String {
        "three histograms".to_owned()
    }

    fn data(&self, _: Option<&Path>) -> Result<Self::Data, Failure> {
        Ok(positive_sphere(self.side))
    }

    fn run(&self, points: &Self::Data, _: &Barycentre) -> Result<Found, Failure> {
        let support = Points::new(points.as_flattened(), 3)?;
        let corner =
            |k: usize| Measure::weighted(support.borrowed(), &bump(points, k, self.deviation));
        let corners = [corner(0)?, corner(1)?, corner(2)?];
        let options = Options::builder(1.0).method(Method::Factored(Features::Linear));
        let options = options.tolerance(self.tolerance).build()?;
        let begun = Instant::now();
        let found = barycenter(&corners, &[1.0; 3], &support, &options)?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok(Found {
            peaks: found.softmax(self.softmax)?,
            value: found.value,
            rank: found.rank,
            iterations: found.iterations,
            marginal_error: found.marginal_error,
            converged: found.converged(),
            weights: found.weights,
            seconds,
        })
    }

    fn section(&self, done: &[(Barycentre, Found)]) -> Result<Section, Failure> {
        let mut table = Table::new(&[
            "points",
            "rank",
            "value",
            "iterations",
            "marginal error",
            "seconds",
            "mass within 0.15 rad of the middle",
            "the same after the softmax",
        ]);
        let (mut figures, mut seen) = (Vec::new(), Vec::new());
        if let Some((_, found)) = done.first() {
            let points = positive_sphere(self.side);
            let near = |weights: &[f64]| -> f64 {
                let middle = |x: &[f64; 3]| x.iter().sum::<f64>() / 3.0_f64.sqrt();
                let inside = points.iter().zip(weights);
                inside.filter(|(x, _)| middle(x).min(1.0).acos() < 0.15).map(|(_, w)| w).sum()
            };
            let masses = [near(&found.weights), near(&found.peaks)];
            let even = near(&vec![1.0 / points.len() as f64; points.len()]);
            figures.push(self.maps(&points, found)?);
            table.row(vec![
                points.len().to_string(),
                found.rank.to_string(),
                digits(found.value, 6),
                found.iterations.to_string(),
                short(found.marginal_error),
                short(found.seconds),
                short(masses[0]),
                short(masses[1]),
            ]);
            let spread = extremes(&found.weights);
            seen.push(format!(
                "The barycentre of {} points {} in {} iterations and {}, with a kernel of rank {}.",
                points.len(),
                if found.converged { "converged" } else { "did not converge" },
                found.iterations,
                duration(found.seconds),
                found.rank
            ));
            seen.push(format!(
                "Its largest weight is {} times its smallest, and {} % of its mass is within 0.15 radians of the \
                 middle of the three corners, where an even distribution has {} %.",
                digits(spread[1] / spread[0], 2),
                short(100.0 * masses[0]),
                short(100.0 * even)
            ));
            seen.push(format!(
                "The softmax of temperature {} puts {} % of the mass there.",
                self.softmax,
                short(100.0 * masses[1])
            ));
        }
        Ok(Section { figures, table, seen })
    }
}

fn extremes(weights: &[f64]) -> [f64; 2] {
    let range = |[low, high]: [f64; 2], x: &f64| [low.min(*x), high.max(*x)];
    weights.iter().fold([f64::INFINITY, f64::NEG_INFINITY], range)
}

/// Where a point of the positive sphere is, seen from the middle of it.
fn seen_from_middle(x: &[f64; 3]) -> [f64; 2] {
    let right = (x[1] - x[0]) / 2.0_f64.sqrt();
    let up = (2.0 * x[2] - x[0] - x[1]) / 6.0_f64.sqrt();
    [right, up]
}

impl Barycentre {
    fn maps(&self, points: &[[f64; 3]], found: &Found) -> Result<Figure, Failure> {
        let places: Vec<[f64; 2]> = points.iter().map(seen_from_middle).collect();
        let bumps = [0, 1, 2].map(|corner| bump(points, corner, self.deviation));
        let softmax = format!("(e) softmax of it, temperature {}", self.softmax);
        let [a, b, c] = &bumps;
        let maps: [(&str, &[f64]); 5] = [
            ("(a) first histogram", a),
            ("(b) second histogram", b),
            ("(c) third histogram", c),
            ("(d) barycentre", &found.weights),
            (&softmax, &found.peaks),
        ];
        let mut panels = Vec::new();
        for (title, values) in maps {
            let mut panel = Panel::new()
                .title(title)
                .axes("towards the second corner", "towards the third corner")
                .equal()
                .size(400.0, 380.0);
            // So that neighbours touch.
            panel.surface(&places, values, (235.0 / self.side as f64).clamp(1.0, 15.0))?;
            panels.push(panel);
        }
        panels.push(kernel()?);
        let caption = format!(
            "Figure 6. Histograms of deviation {} radians around the corners of the positive sphere ({} points), their \
             Wasserstein barycentre for the cost -log x.y, and its softmax, which makes the peak stand out. Seen along the \
             diagonal (1, 1, 1); every panel has its own scale, from its lowest value (dark) to its highest (bright). The kernel \
             of the cost -log x.y is x.y: a matrix of 3 columns times its transpose. It is shown for 64 points.",
            self.deviation,
            points.len()
        );
        let picture = Picture::grid("A barycentre on the positive sphere", 3, panels)?;
        Ok(Figure { suffix: "", picture, caption })
    }
}

/// The kernel, inner products of the points, of a coarser sphere.
fn kernel() -> Result<Panel, Failure> {
    let points = positive_sphere(8);
    let product = |x: &[f64; 3], y: &[f64; 3]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let values: Vec<f64> =
        points.iter().flat_map(|x| points.iter().map(move |y| product(x, y))).collect();
    Ok(Panel::matrix(&values, points.len(), "x.y")?
        .title("(f) the kernel x.y, of rank 3")
        .axes("points, row by row", "points, row by row")
        .size(400.0, 380.0))
}
