//! Proposition 3.1: how far the kernel of random features is from the kernel, as a ratio.

use std::path::Path;

use orthant::features::{FeatureMap, Gaussian, stride};
use orthant::theory::{ln_second_moment, psi, psi_paper};
use orthant::{Measure, Points};
use orthant_draw::{Panel, Picture};
use orthant_support::Failure;
use orthant_support::clouds::{self, Clouds};
use orthant_support::number::{digits, short};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::config::{counts, positive};
use crate::page::{Figure, Mark, Section, Table, curve};
use crate::spread::{Spread, slope};
use crate::study::Study;

/// The settings: clouds are those of Figure 1.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ratio {
    n: usize,
    data_seed: u64,
    eps: Vec<f64>,
    ranks: Vec<usize>,
    repeats: usize,
    /// Probability with which the bound may fail.
    tau: f64,
}

/// A run: one draw of features.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Case {
    n: usize,
    data_seed: u64,
    eps: f64,
    rank: usize,
    seed: u64,
}

/// Ratios over all pairs, and what theory says of them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ratios {
    /// `max |k_theta / k - 1|`.
    largest: f64,
    /// Root mean square of `k_theta / k - 1`.
    typical: f64,
    /// What that should be, by exact second moments.
    expected: f64,
    /// The paper's psi, and the exact one.
    psi: [f64; 2],
}

impl Study for Ratio {
    type Case = Case;
    type Outcome = Ratios;
    type Data = Clouds;

    fn check(&self) -> Result<(), String> {
        counts("n and repeats", &[self.n, self.repeats])?;
        counts("ranks", &self.ranks)?;
        positive("eps", &self.eps)?;
        positive("tau", &[self.tau])
    }

    fn cases(&self) -> Vec<Case> {
        let &Ratio { n, data_seed, .. } = self;
        let mut cases = Vec::new();
        for &eps in &self.eps {
            for &rank in &self.ranks {
                let seeds = 0..self.repeats as u64;
                cases.extend(seeds.map(|seed| Case { n, data_seed, eps, rank, seed }));
            }
        }
        cases
    }

    fn seconds(&self, case: &Case) -> f64 {
        1e-9 * (case.n * case.n * case.rank) as f64 + 1e-3
    }

    fn words(&self, case: &Case) -> String {
        format!("eps = {}, r = {}", case.eps, case.rank)
    }

    fn data(&self, _: Option<&Path>) -> Result<Clouds, Failure> {
        Ok(clouds::figure_1(self.n, self.data_seed))
    }

    fn run(&self, clouds: &Clouds, case: &Case) -> Result<Ratios, Failure> {
        let [mu, nu] = clouds.measures(case.n)?;
        let &Case { eps, rank, seed, .. } = case;
        // Norms from the origin, as the paper has them: then midpoints are as they are.
        let map = Gaussian::paper(&mu, &nu, eps, rank, seed, false)?;
        let sums = ratios(&map, &mu, &nu, eps)?;
        let radius =
            [&mu, &nu].map(|cloud| largest_norm(cloud.points())).into_iter().fold(0.0, f64::max);
        let q = map.q()[0];
        let psi = [psi_paper(q, 2), psi(q, 2, radius, eps)];
        if !(psi[1].is_finite() && sums.squares.is_finite() && sums.moments.is_finite()) {
            let message =
                format!("eps = {eps}: ratios are too large for numbers; use a larger one");
            return Err(Failure::input(message));
        }
        let pairs = (mu.points().len() * nu.points().len()) as f64;
        Ok(Ratios {
            largest: sums.largest,
            typical: (sums.squares / pairs).sqrt(),
            expected: (sums.moments / pairs / rank as f64).sqrt(),
            psi,
        })
    }

    fn section(&self, done: &[(Case, Ratios)]) -> Result<Section, Failure> {
        let mut table = Table::new(&[
            "eps",
            "r",
            "draws",
            "sup |ratio - 1|",
            "lowest",
            "highest",
            "root mean square",
            "expected",
            "bound, psi of the paper",
            "bound, exact psi",
        ]);
        let (mut panels, mut seen) = (Vec::new(), Vec::new());
        for &eps in &self.eps {
            let rows = self.rows(eps, done);
            if rows.is_empty() {
                continue;
            }
            for row in &rows {
                let Row { rank, draws, largest, typical, expected, bounds } = row;
                let cells = [largest.mean, largest.low, largest.high, typical.mean, *expected];
                let cells = cells.into_iter().chain(*bounds).map(short);
                let names = [eps.to_string(), rank.to_string(), draws.to_string()];
                table.row(names.into_iter().chain(cells).collect());
            }
            panels.push(panel(eps, &rows)?);
            seen.extend(sentences(eps, &rows));
        }
        let caption = format!(
            "Largest |k_theta/k - 1| over all pairs of the clouds of Figure 1 ({} points each), and its root mean square, means \
             over {} draws with bands from the lowest to the highest. Dashed: the bound of Proposition 3.1 that holds with \
             probability {}, psi sqrt(2 log(2 n^2 / tau) / r), with the psi that the paper states and with the exact supremum; \
             and the root mean square that exact second moments give, without a free constant.",
            self.n,
            self.repeats,
            1.0 - self.tau
        );
        let mut figures = Vec::new();
        if !panels.is_empty() {
            let picture = Picture::multiples("Ratio of the kernels", 3, panels)?;
            figures.push(Figure { suffix: "", picture, caption });
        }
        Ok(Section { figures, table, seen })
    }
}

/// What there is at one rank.
struct Row {
    rank: usize,
    draws: usize,
    largest: Spread,
    typical: Spread,
    expected: f64,
    bounds: [f64; 2],
}

impl Ratio {
    fn rows(&self, eps: f64, done: &[(Case, Ratios)]) -> Vec<Row> {
        let row = |rank: usize| {
            let runs =
                || done.iter().filter(|(c, _)| c.eps == eps && c.rank == rank).map(|(_, r)| r);
            let first = runs().next()?;
            let pairs = (self.n as f64).powi(2);
            // Where 2 n^2 exp(-r delta^2 / (2 psi^2)) = tau.
            let factor = (2.0 * (2.0 * pairs / self.tau).ln() / rank as f64).sqrt();
            Some(Row {
                rank,
                draws: runs().count(),
                largest: Spread::of(runs().map(|r| r.largest))?,
                typical: Spread::of(runs().map(|r| r.typical))?,
                expected: first.expected,
                bounds: first.psi.map(|psi| psi * factor),
            })
        };
        self.ranks.iter().filter_map(|&rank| row(rank)).collect()
    }
}

/// What is drawn at most: bounds may be anything.
const HIGHEST: f64 = 1e6;

fn panel(eps: f64, rows: &[Row]) -> Result<Panel, Failure> {
    let mut panel = Panel::new()
        .title(format!("eps = {eps}"))
        .axes("number of features r", "|k_theta / k - 1|")
        .logarithmic(true, true)
        .snug()
        .size(430.0, 340.0);
    let marks = |f: fn(&Row) -> Spread| -> Vec<Mark> {
        rows.iter().map(|row| Mark { x: row.rank as f64, y: f(row) }).collect()
    };
    curve(&mut panel, "largest of all pairs", &marks(|row| row.largest), 1)?;
    curve(&mut panel, "root mean square over pairs", &marks(|row| row.typical), 0)?;
    let line = |f: &dyn Fn(&Row) -> f64| -> Vec<[f64; 2]> {
        rows.iter().map(|row| [row.rank as f64, f(row)]).filter(|p| p[1] <= HIGHEST).collect()
    };
    for (name, points, colour) in [
        ("root mean square by exact second moments", line(&|row| row.expected), 7),
        ("bound of Proposition 3.1, psi of the paper", line(&|row| row.bounds[0]), 2),
        ("bound of Proposition 3.1, exact psi (if below 1e6)", line(&|row| row.bounds[1]), 3),
    ] {
        if !points.is_empty() {
            panel.dashed(name, &points, colour)?;
        }
    }
    Ok(panel)
}

fn sentences(eps: f64, rows: &[Row]) -> Option<String> {
    let last = rows.last()?;
    let points: Vec<[f64; 2]> =
        rows.iter().map(|row| [row.rank as f64, row.typical.mean]).collect();
    let slope = slope(&points)
        .map_or_else(String::new, |s| format!(" It falls as r to the {}.", digits(s, 2)));
    let held = rows.iter().filter(|row| row.largest.high <= row.bounds[0]).count();
    Some(format!(
        "eps = {eps}, r = {}: the largest ratio is off by {} (mean of {} draws), where the bound allows {} with the psi of the \
         paper and {} with the exact one; the root mean square is {} and exact second moments expect {}.{slope} The bound \
         with the psi of the paper holds in all draws at {held} of {} ranks.",
        last.rank,
        short(last.largest.mean),
        last.draws,
        short(last.bounds[0]),
        short(last.bounds[1]),
        short(last.typical.mean),
        short(last.expected),
        rows.len()
    ))
}

/// Sums over pairs.
#[derive(Default)]
struct Sums {
    largest: f64,
    squares: f64,
    /// Of the variance of a ratio with one feature.
    moments: f64,
}

/// `k_theta / k` of all pairs, from logarithms.
fn ratios(map: &Gaussian, mu: &Measure<'_>, nu: &Measure<'_>, eps: f64) -> Result<Sums, Failure> {
    let (rank, stride) = (map.rank(), stride(map.rank()));
    let logs = |points: &Points<'_>| -> Result<Vec<f64>, Failure> {
        map.check(points)?;
        let mut out = vec![0.0; points.len() * stride];
        map.log_features(points, 0, stride, &mut out);
        Ok(out)
    };
    let (x, y) = (mu.points(), nu.points());
    let (of_x, of_y) = (logs(x)?, logs(y)?);
    let place = |p: &Points<'_>, i: usize| [p.coordinate(i, 0), p.coordinate(i, 1)];
    let row = |(i, a): (usize, &[f64])| {
        let mut sums = Sums::default();
        for (j, b) in of_y.chunks(stride).enumerate() {
            let (p, q) = (place(x, i), place(y, j));
            let cost = (p[0] - q[0]).powi(2) + (p[1] - q[1]).powi(2);
            // Products over the kernel are of order one, or too small to matter.
            let ratio: f64 = a[..rank].iter().zip(b).map(|(a, b)| (a + b + cost / eps).exp()).sum();
            let middle = [0.5 * (p[0] + q[0]), 0.5 * (p[1] + q[1])];
            let moment = ln_second_moment(map.q(), &middle, eps).exp_m1();
            sums.largest = sums.largest.max((ratio - 1.0).abs());
            sums.squares += (ratio - 1.0).powi(2);
            sums.moments += moment;
        }
        sums
    };
    let rows: Vec<Sums> = of_x.par_chunks(stride).enumerate().map(row).collect();
    // In order, so that the number of threads does not matter.
    Ok(rows.into_iter().fold(Sums::default(), |a, b| Sums {
        largest: a.largest.max(b.largest),
        squares: a.squares + b.squares,
        moments: a.moments + b.moments,
    }))
}

fn largest_norm(points: &Points<'_>) -> f64 {
    let norm = |i: usize| (0..points.dim()).map(|c| points.coordinate(i, c).powi(2)).sum::<f64>();
    (0..points.len()).map(norm).fold(0.0, f64::max).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_features_have_the_mean_square_that_second_moments_expect() {
        // At a large epsilon ratios are nearly normal: over 40 draws the mean square is right to 40 %, four errors.
        let study =
            Ratio { n: 40, data_seed: 1, eps: vec![5.0], ranks: vec![2000], repeats: 40, tau: 0.1 };
        let clouds = study.data(None).unwrap();
        let runs: Vec<Ratios> =
            study.cases().iter().map(|case| study.run(&clouds, case).unwrap()).collect();
        let mean = runs.iter().map(|r| r.typical.powi(2)).sum::<f64>() / 40.0;
        let expected = runs[0].expected.powi(2);
        assert!((mean / expected - 1.0).abs() < 0.4, "{mean} {expected}");
        assert!(runs.iter().all(|r| r.largest >= r.typical && r.psi[1] > r.psi[0]));
    }
}
