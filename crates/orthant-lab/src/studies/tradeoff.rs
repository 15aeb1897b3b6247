//! Figures 1, 3 and 5: the deviation from the truth against time, for several epsilons.

mod group;

use std::path::Path;

use orthant_draw::{Panel, Picture};
use orthant_support::Failure;
use orthant_support::clouds::{self, Clouds};
use orthant_support::number::short;
use serde::{Deserialize, Serialize};

use crate::config::{counts, positive};
use crate::higgs;
use crate::page::{Figure, Section, columns};
use crate::solve::{self, Entrant, Request, Solved, Truth};
use crate::spread::{Spread, listed};
use crate::study::Study;
use group::{Group, table};

/// Between which clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Problem {
    Gaussians,
    Sphere,
    Higgs,
}

impl Problem {
    fn name(self) -> &'static str {
        match self {
            Problem::Gaussians => "Two normal clouds in the plane",
            Problem::Sphere => "Two clouds on the sphere",
            Problem::Higgs => "HIGGS, 28 axes",
        }
    }
}

/// The settings.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tradeoff {
    problem: Problem,
    /// Points of each cloud.
    n: usize,
    /// Of the clouds; they are the same in all repeats, in which features are drawn anew.
    data_seed: u64,
    eps: Vec<f64>,
    /// For every epsilon: of random features, and of ours.
    repeats: Vec<usize>,
    /// Of the Nystrom approximation.
    repeats_nys: usize,
    /// Of Sinkhorn's algorithm, in which nothing is random but the time.
    repeats_sin: usize,
    ranks: Vec<usize>,
    /// What ours is asked for, in place of ranks.
    accuracies: Vec<f64>,
    /// L1 error of the marginal at which Algorithm 1 stops.
    tolerance: f64,
    /// Seconds after which a solve has failed.
    limit: f64,
    truth: Truth,
}

/// A run: the problem, and what is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Case {
    problem: Problem,
    n: usize,
    data_seed: u64,
    #[serde(flatten)]
    request: Request,
}

impl Study for Tradeoff {
    type Case = Case;
    type Outcome = Solved;
    type Data = Clouds;

    fn check(&self) -> Result<(), String> {
        positive("eps", &self.eps)?;
        positive("accuracies", &self.accuracies)?;
        positive("tolerance and limit", &[self.tolerance, self.limit])?;
        counts("ranks", &self.ranks)?;
        counts("n", &[self.n])?;
        counts("repeats", &self.repeats)?;
        if self.repeats.len() == self.eps.len() {
            Ok(())
        } else {
            Err(format!(
                "{} repeats for {} eps; give one for each",
                self.repeats.len(),
                self.eps.len()
            ))
        }
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (&eps, &repeats) in self.eps.iter().zip(&self.repeats) {
            let mut requests = vec![Request::truth(eps, self.truth)];
            for (entrant, repeats) in [
                (Entrant::Ours, repeats),
                (Entrant::Sin, self.repeats_sin),
                (Entrant::Nys, self.repeats_nys),
                (Entrant::Rf, repeats),
            ] {
                for seed in 0..repeats as u64 {
                    requests.extend(self.requests(entrant, eps, seed));
                }
            }
            let case = |request| {
                let (problem, n, data_seed) = (self.problem, self.n, self.data_seed);
                Case { problem, n, data_seed, request }
            };
            cases.extend(requests.into_iter().map(case));
        }
        cases
    }

    fn seconds(&self, case: &Case) -> f64 {
        let Case { n, request, .. } = case;
        let n = *n as f64;
        let r = request.rank.unwrap_or(0) as f64;
        let reach = match self.problem {
            Problem::Gaussians => 5.0,
            Problem::Sphere => 2.0,
            Problem::Higgs => 50.0,
        };
        let iterations = 3.0 + reach / request.eps;
        let time = match request.entrant {
            Entrant::Rf => 2.0 * n * r * (20e-9 + 0.7e-9 * iterations),
            Entrant::Nys => 0.3e-9 * 2.0 * n * r * r,
            Entrant::Sin => n * n * (40e-9 + 0.7e-9 * iterations),
            // To the end, which takes several times as many iterations.
            Entrant::Truth if self.truth == Truth::Exact => n * n * 8e-9 * 8.0 * iterations,
            Entrant::Truth if self.problem == Problem::Sphere => n * 6e-5 * iterations.sqrt(),
            Entrant::Truth => n * 1e-5 * iterations.sqrt(),
            Entrant::Ours if self.problem == Problem::Higgs => n * n * 3e-7,
            Entrant::Ours => n * 2e-6 * iterations.sqrt(),
        };
        time.min(request.limit).max(1e-3)
    }

    fn words(&self, case: &Case) -> String {
        let Request { entrant, eps, .. } = case.request;
        format!("eps = {eps}, {}, {}", entrant.name(), case.request.setting())
    }

    fn data(&self, folder: Option<&Path>) -> Result<Self::Data, Failure> {
        match self.problem {
            Problem::Higgs => higgs::read(folder, self.n, self.data_seed),
            _ => Ok(self.clouds()),
        }
    }

    fn run(&self, clouds: &Clouds, case: &Case) -> Result<Solved, Failure> {
        solve::solve(&case.request, &clouds.measures(case.n)?)
    }

    fn section(&self, done: &[(Case, Solved)]) -> Result<Section, Failure> {
        let groups: Vec<Group<'_>> =
            self.eps.iter().filter_map(|&eps| Group::new(eps, done)).collect();
        let mut figures = Vec::new();
        if self.problem == Problem::Sphere {
            figures.push(self.picture_of_clouds()?);
        }
        if !groups.is_empty() {
            figures.push(self.deviations(&groups)?);
            figures.push(self.errors(&groups)?);
        }
        let mut seen: Vec<String> = groups.iter().map(Group::sentence).collect();
        seen.push(self.about_truth(&groups));
        Ok(Section { figures, table: table(&groups), seen })
    }
}

impl Tradeoff {
    /// From seeds.
    fn clouds(&self) -> Clouds {
        match self.problem {
            Problem::Gaussians | Problem::Higgs => clouds::figure_1(self.n, self.data_seed),
            Problem::Sphere => clouds::caps(self.n, self.data_seed),
        }
    }

    /// What an entrant is asked for in one repeat.
    fn requests(&self, entrant: Entrant, eps: f64, seed: u64) -> Vec<Request> {
        let &Tradeoff { tolerance, limit, .. } = self;
        let request =
            |rank, accuracy| Request { entrant, eps, rank, accuracy, seed, tolerance, limit };
        match entrant {
            Entrant::Rf | Entrant::Nys => {
                self.ranks.iter().map(|&rank| request(Some(rank), None)).collect()
            }
            Entrant::Ours => self.accuracies.iter().map(|&a| request(None, Some(a))).collect(),
            Entrant::Sin | Entrant::Truth => vec![request(None, None)],
        }
    }

    /// Figure 2: the sphere, seen from above both caps.
    fn picture_of_clouds(&self) -> Result<Figure, Failure> {
        let clouds = self.clouds();
        // Along z: the caps are around (-1/2, 0, .87) and (1/2, 0, .87). A little from below, to look round.
        let tilt = 0.35_f64;
        let seen = |x: &[f64]| [x[0], x[1] * tilt.cos() + x[2] * tilt.sin()];
        let cloud = |values: &[f64]| values.chunks_exact(3).map(seen).collect::<Vec<_>>();
        let mut panel = Panel::new()
            .title("Two clouds on the unit sphere")
            .axes("axis 1", "axis 2, tilted towards axis 3")
            .equal()
            .size(620.0, 620.0);
        let circle = |k: u32| f64::from(k) * std::f64::consts::TAU / 180.0;
        let outline: Vec<[f64; 2]> =
            (0..=180).map(|k| [circle(k).cos(), circle(k).sin()]).collect();
        panel.line("outline of the sphere", &outline, 7)?;
        panel.cloud("first cloud", &cloud(&clouds.x), 0)?;
        panel.cloud("second cloud", &cloud(&clouds.y), 1)?;
        let caption = format!(
            "Figure 2. {} points each, uniform on two caps of half-angle 50 degrees whose centres are 60 degrees apart. The \
             paper shows its clouds and does not say how they were drawn.",
            self.n
        );
        Ok(Figure { suffix: "-clouds", picture: panel.into(), caption })
    }

    /// As the paper has it: D against time.
    fn deviations(&self, groups: &[Group<'_>]) -> Result<Figure, Failure> {
        let mut panels = Vec::new();
        for group in groups {
            let curves = group.curves(self, |d| d);
            let ways = group.way(|d| d);
            let heights = curves.iter().flat_map(|c| &c.marks).flat_map(|m| [m.y.low, m.y.high]);
            let range = Spread::of(heights.chain([100.0])).unwrap_or(NOTHING);
            let margin = 0.1 * (range.high - range.low).max(0.1);
            let y = [range.low - margin, range.high + margin];
            let mut panel = group.panel(&curves, &ways, y);
            panel.level("", 100.0)?;
            Group::fill(&mut panel, &curves, &ways, [y[0] + 0.3 * margin, y[1]])?;
            panels.push(panel.axes("time in seconds", "deviation D in %"));
        }
        let caption = format!(
            "Deviation from the truth, D = 100 (W - W_hat) / |W| + 100 in percent (100 is right), against the time of features \
             and iterations until the L1 error of the marginal is below {}. Marks are ranks {} (RF, Nys) or \
             accuracies {} (ours), means over repeats; bands go from the lowest to the highest. Sin is drawn along its \
             iterations. Crosses are failures, at the lower edge where there is no value at all.",
            short(self.tolerance),
            listed(&self.ranks.iter().map(ToString::to_string).collect::<Vec<_>>()),
            listed(&self.accuracies.iter().map(|a| format!("{a:e}")).collect::<Vec<_>>()),
        );
        let title = format!("{}: deviation from the truth", self.problem.name());
        let picture = Picture::multiples(&title, columns(panels.len()), panels)?;
        Ok(Figure { suffix: "", picture, caption })
    }

    /// The same on a logarithmic scale, so that small errors can be told apart.
    fn errors(&self, groups: &[Group<'_>]) -> Result<Figure, Failure> {
        let error = |d: f64| (d - 100.0).abs().max(LEAST);
        let mut panels = Vec::new();
        for group in groups {
            let curves = group.curves(self, error);
            let ways = group.way(error);
            let heights = curves.iter().flat_map(|c| &c.marks).flat_map(|m| [m.y.low, m.y.high]);
            let range = Spread::of(heights.chain(ways.iter().map(|p| p[1]))).unwrap_or(NOTHING);
            // Room for crosses below: a tenth of the height.
            let below = (range.high / range.low).powf(0.1).max(2.0);
            let y = [range.low / below, 3.0 * range.high];
            let mut panel = group.panel(&curves, &ways, y).logarithmic(true, true);
            Group::fill(&mut panel, &curves, &ways, [y[0] * below.powf(0.4), y[1]])?;
            panels.push(panel.axes("time in seconds", "error |D - 100| in %"));
        }
        let caption = format!(
            "The same as an error, |D - 100| in percent, on logarithmic axes. Errors below {LEAST:e} % are drawn there."
        );
        let title = format!("{}: error of the value", self.problem.name());
        let picture = Picture::multiples(&title, columns(panels.len()), panels)?;
        Ok(Figure { suffix: "-error", picture, caption })
    }

    fn about_truth(&self, groups: &[Group<'_>]) -> String {
        let worst = groups.iter().filter_map(|g| Some(100.0 * g.truth_bound? / g.truth.abs()));
        match (self.truth, Spread::of(worst)) {
            (Truth::Lattice, Some(worst)) => format!(
                "The truth W is that of features on a lattice, whose distance from the exact kernel is proven to be at most \
                 {} % of W at every epsilon, converged to an L1 error of the marginals of 1e-9.",
                short(worst.high)
            ),
            _ => "The truth W is that of the exact kernel, all pairs, converged to an L1 error of the marginals of 1e-9."
                .to_owned(),
        }
    }
}

/// In percent; what is below is drawn here.
const LEAST: f64 = 1e-9;

/// A range where there is nothing to see.
const NOTHING: Spread = Spread { mean: 100.0, low: 99.0, high: 101.0 };
