//! Solves as the experiments have them: who competes, and what is kept of a solve.

use std::time::{Duration, Instant};

use orthant::{
    Measure, Method, Options, Solution, Solver, Stop,
    control::{Next, Progress},
    options::{Algorithm, OptionsBuilder},
};
use orthant_support::Failure;
use orthant_support::number::{duration, short};
use serde::{Deserialize, Serialize};

/// Who competes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Entrant {
    /// The exact kernel, converged.
    Truth,
    /// The paper's random features, and its Algorithm 1.
    Rf,
    /// The Nystrom approximation, and Algorithm 1.
    Nys,
    /// The stored kernel, and Algorithm 1.
    Sin,
    /// The automatic choice, for an accuracy.
    Ours,
}

impl Entrant {
    /// Those that are compared with the truth.
    pub(crate) const ALL: [Entrant; 4] = [Entrant::Rf, Entrant::Nys, Entrant::Sin, Entrant::Ours];

    /// In tables and sentences.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Entrant::Truth => "truth",
            Entrant::Rf => "RF",
            Entrant::Nys => "Nys",
            Entrant::Sin => "Sin",
            Entrant::Ours => "ours",
        }
    }

    /// In pictures, of the colours of `orthant-draw`.
    pub(crate) fn colour(self) -> usize {
        match self {
            Entrant::Ours => 0,
            Entrant::Rf => 1,
            Entrant::Nys => 2,
            Entrant::Sin => 3,
            Entrant::Truth => 7,
        }
    }
}

/// How the truth is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Truth {
    /// Features on a lattice, with a bound of their error: up to four axes.
    Lattice,
    /// All pairs.
    Exact,
}

/// Error of the value, relative to `value_kl`, that a lattice is asked for where it is the truth.
pub(crate) const TRUTH_ACCURACY: f64 = 1e-9;
/// L1 error of the marginal at which the truth counts as converged.
const TRUTH_TOLERANCE: f64 = 1e-9;

/// What a solve is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) entrant: Entrant,
    pub(crate) eps: f64,
    /// Number of features or landmarks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) rank: Option<usize>,
    /// Relative error that is asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) accuracy: Option<f64>,
    /// Of random features; of others the number of the repeat.
    pub(crate) seed: u64,
    /// L1 error of the marginal at which Algorithm 1 stops.
    pub(crate) tolerance: f64,
    /// Seconds after which a solve has failed.
    pub(crate) limit: f64,
}

impl Request {
    /// The reference.
    pub(crate) fn truth(eps: f64, truth: Truth) -> Self {
        let accuracy = (truth == Truth::Lattice).then_some(TRUTH_ACCURACY);
        let (rank, seed, limit) = (None, 0, f64::from(u32::MAX));
        let tolerance = TRUTH_TOLERANCE;
        Request { entrant: Entrant::Truth, eps, rank, accuracy, seed, tolerance, limit }
    }

    /// What it varies in: `r = 500`, `accuracy 1e-3`.
    pub(crate) fn setting(&self) -> String {
        match (self.rank, self.accuracy) {
            (Some(rank), _) => format!("r = {rank}"),
            (None, Some(accuracy)) => format!("accuracy {accuracy:e}"),
            (None, None) => "exact".to_owned(),
        }
    }

    /// The options for it. The baselines are as the paper has them: no gauge, and plain iterations.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let method = match (self.entrant, self.accuracy) {
            (Entrant::Truth, Some(_)) => Method::lattice(),
            (Entrant::Truth, None) => Method::online(),
            (Entrant::Rf, _) => Method::paper(),
            (Entrant::Nys, _) => Method::nystrom(),
            (Entrant::Sin, _) => Method::dense(),
            (Entrant::Ours, _) => Method::Auto,
        };
        let options = Options::builder(self.eps)
            .method(method)
            .seed(self.seed)
            .max_iterations(1_000_000)
            .time_limit(Duration::from_secs_f64(self.limit));
        let options = match self.entrant {
            Entrant::Rf | Entrant::Nys | Entrant::Sin => {
                options.algorithm(Algorithm::Plain).gauge(false).tolerance(self.tolerance)
            }
            Entrant::Truth => options.tolerance(self.tolerance),
            // The value is off by about the square of the error of the marginals.
            Entrant::Ours => {
                options.tolerance(self.accuracy.map_or(self.tolerance, |a| a.min(self.tolerance)))
            }
        };
        let given = |o: OptionsBuilder| {
            let o = if let Some(rank) = self.rank { o.rank(rank) } else { o };
            if let Some(accuracy) = self.accuracy { o.accuracy(accuracy) } else { o }
        };
        Ok(given(options).build()?)
    }
}

/// What is kept of a solve.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Solved {
    /// `W`, if the solve had one: at a limit, so far.
    pub(crate) value: Option<f64>,
    pub(crate) seconds: f64,
    pub(crate) iterations: usize,
    pub(crate) rank: usize,
    pub(crate) method: String,
    /// Of the distance from the exact kernel.
    pub(crate) bound: Option<f64>,
    /// Why it counts as failed.
    pub(crate) failure: Option<String>,
    /// Seconds, value and marginal error on the way, at iterations that grow by half.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) way: Vec<[f64; 3]>,
}

/// Solves, and keeps what came of it, failures too.
pub(crate) fn solve(request: &Request, [mu, nu]: &[Measure<'_>; 2]) -> Result<Solved, Failure> {
    let options = request.options()?;
    let mut way = Vec::new();
    let mut next = 1;
    let begun = Instant::now();
    let mut watch = |progress: &mut Progress<'_>| {
        if progress.iteration >= next {
            next = (progress.iteration * 3).div_ceil(2);
            let seconds = begun.elapsed().as_secs_f64();
            way.push([seconds, progress.value(), progress.marginal_error]);
        }
        Next::Continue
    };
    let solver = Solver::new(&options);
    // The way is a curve of its own where there is nothing else to vary.
    let solver = match request.entrant {
        Entrant::Sin => solver.observer(&mut watch),
        _ => solver,
    };
    let solved = solver.rot(mu, nu);
    let seconds = begun.elapsed().as_secs_f64();
    Ok(match solved {
        Ok(solution) => Solved {
            value: Some(solution.value),
            seconds,
            iterations: solution.iterations,
            rank: solution.rank,
            method: solution.method.as_str().to_owned(),
            bound: solution.bound,
            failure: not_converged(&solution, request.limit),
            way,
        },
        Err(error) => Solved {
            value: None,
            seconds,
            iterations: 0,
            rank: request.rank.unwrap_or(0),
            method: request.entrant.name().to_owned(),
            bound: None,
            failure: Some(reason(&error)),
            way,
        },
    })
}

/// Why a solution counts as failed, if it does.
pub(crate) fn not_converged(solution: &Solution, limit: f64) -> Option<String> {
    match solution.stop {
        Stop::Converged => None,
        Stop::TimeLimit => Some(format!("time limit of {}", duration(limit))),
        stop => Some(stop.as_str().replace('_', " ")),
    }
}

/// A failure in a few words.
pub(crate) fn reason(error: &orthant::Error) -> String {
    match error {
        orthant::Error::NotPositive { .. } => "kernel not positive".to_owned(),
        orthant::Error::Breakdown { value, .. } => format!("kernel product {}", short(*value)),
        other => other.to_string(),
    }
}
