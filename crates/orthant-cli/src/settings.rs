//! From options of the command line to options of the library.

use std::ffi::OsStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use orthant::anchors::Draw;
use orthant::{
    GroundCost, Mahalanobis, Measure, Method, Options, Precision,
    options::{Algorithm, Anchors, Features, Landmarks, SampleSizes},
};
use orthant_io::ReadOptions;
use orthant_support::Failure;
use orthant_support::memory;
use orthant_support::number::number;
use serde::Serialize;

use crate::args::{
    AnchorsName, Common, CostScale, CostSpec, EpsilonSpec, LandmarksName, MethodName,
    PrecisionName, Reach, ReachSides, Refining, ScaleName, SolverName, Solving,
};

/// Relative error of a value, where none is given.
pub(crate) const DEFAULT_ACCURACY: f64 = 1e-3;
/// L1 error of the marginals, where none is given.
pub(crate) const DEFAULT_TOLERANCE: f64 = 1e-6;
/// Epsilon, as a part of the mean cost, where none is given.
const DEFAULT_EPSILON: f64 = 0.05;

/// All that a result depends on, out of the groups of options that a command has.
#[derive(Debug, Clone)]
pub(crate) struct Settings<'a> {
    pub(crate) common: &'a Common,
    refining: Refining,
    solver: SolverName,
    no_gauge: bool,
    /// What it costs to change the marginals.
    rho: [f64; 2],
    pub(crate) normalize: bool,
    /// Where none is given.
    pub(crate) accuracy: f64,
    pub(crate) tolerance: f64,
    begun: Instant,
    /// The cost of two points, once it is read.
    ground: OnceLock<Ground>,
}

/// The cost of two points, and how kept results call it.
#[derive(Debug, Clone)]
struct Ground {
    cost: GroundCost,
    key: String,
}

impl<'a> Settings<'a> {
    /// With the clock started.
    pub(crate) fn new(common: &'a Common) -> Self {
        Settings {
            common,
            refining: Refining::default(),
            solver: SolverName::Auto,
            no_gauge: false,
            rho: [f64::INFINITY; 2],
            normalize: false,
            accuracy: common.basic.accuracy.unwrap_or(DEFAULT_ACCURACY),
            tolerance: common.iterating.tol.unwrap_or(DEFAULT_TOLERANCE),
            begun: Instant::now(),
            ground: OnceLock::new(),
        }
    }

    /// The cost of two points, if it goes with the method.
    pub(crate) fn ground(&self) -> Result<&GroundCost, Failure> {
        if let Some(ground) = self.ground.get() {
            return Ok(&ground.cost);
        }
        let ground = match &self.common.kernel.cost {
            None => Ground { cost: GroundCost::SquaredEuclidean, key: "sqeuclidean".to_owned() },
            Some(spec) => {
                let ground = match spec {
                    CostSpec::Named(cost) => Ground { cost: cost.clone(), key: spec.to_string() },
                    CostSpec::Mahalanobis(file) => mahalanobis(file)?,
                };
                self.check_cost(&ground.cost)?;
                ground
            }
        };
        Ok(&self.ground.get_or_init(|| ground).cost)
    }

    fn check_cost(&self, cost: &GroundCost) -> Result<(), Failure> {
        let kernel = &self.common.kernel;
        let (name, method) = (cost.as_str(), name_of(&kernel.method));
        let exact = matches!(kernel.method, MethodName::Dense | MethodName::Online);
        if matches!(kernel.method, MethodName::Arccos | MethodName::Linear) {
            return Err(Failure::input(format!(
                "--method {method} defines a cost of its own; leave out --cost, or use another method"
            )));
        }
        if !cost.is_squared_distance() && !exact && !self.is_automatic() {
            return Err(Failure::input(format!(
                "features, lattices and landmarks are for squared distances, which the {name} cost is not; use --method auto, \
                 dense or online, without --anchors and --rank"
            )));
        }
        if kernel.anchors == Some(AnchorsName::Paper)
            && !matches!(cost, GroundCost::SquaredEuclidean)
        {
            return Err(Failure::input(format!(
                "the paper's anchors are for the squared Euclidean cost, not for the {name} cost; use other --anchors"
            )));
        }
        Ok(())
    }

    pub(crate) fn solving(mut self, solving: &Solving) -> Self {
        (self.solver, self.no_gauge) = (solving.solver, solving.no_gauge);
        self
    }

    pub(crate) fn refining(mut self, refining: &Refining) -> Self {
        self.refining = refining.clone();
        self
    }

    /// Relaxed marginals, if they are: `2 reach^2`.
    pub(crate) fn reach(mut self, reach: Reach, sides: ReachSides) -> Result<Self, Failure> {
        let ReachSides { reach_x, reach_y } = sides;
        let given = [
            ("--reach", [reach.reach; 2]),
            ("--reach-x", [reach_x, None]),
            ("--reach-y", [None, reach_y]),
        ];
        if reach.normalize && given.iter().all(|(_, reach)| *reach == [None; 2]) {
            return Err(Failure::input(
                "--normalize is for unbalanced transport, other weights are always normalised; add --reach",
            ));
        }
        for (name, reach) in given {
            for (rho, reach) in self.rho.iter_mut().zip(reach) {
                let Some(reach) = reach else { continue };
                if reach.is_nan() || reach <= 0.0 {
                    let expected = "a positive distance";
                    return Err(orthant::Error::Option { name, expected, value: reach }.into());
                }
                *rho = 2.0 * reach * reach;
            }
        }
        self.normalize = reach.normalize;
        Ok(self)
    }

    pub(crate) fn polishes(&self) -> bool {
        self.refining.polish
    }

    pub(crate) fn method_name(&self) -> MethodName {
        self.common.kernel.method
    }

    /// Whether an accuracy is promised: by the automatic choice, and by lattices and samples of any size.
    pub(crate) fn promises(&self) -> bool {
        let kernel = &self.common.kernel;
        let lattice = kernel.anchors == Some(AnchorsName::Lattice)
            || (kernel.method == MethodName::Lattice && kernel.anchors.is_none());
        let sampled = kernel.method == MethodName::Sampled && self.refining.sample_size.is_none();
        kernel.rank.is_none() && (self.is_automatic() || lattice || sampled)
    }

    /// Whether the method is chosen here.
    pub(crate) fn is_automatic(&self) -> bool {
        let kernel = &self.common.kernel;
        kernel.method == MethodName::Auto && kernel.anchors.is_none() && kernel.rank.is_none()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.common.kernel.seed
    }

    /// When the command began.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// What it costs to change the marginals, where they are relaxed.
    pub(crate) fn rho(&self) -> [Option<f64>; 2] {
        self.rho.map(|rho| Some(rho).filter(|rho| rho.is_finite()))
    }

    /// Time that is left of the limit.
    fn time_left(&self) -> Option<Duration> {
        self.common.iterating.time_limit.map(|limit| limit.saturating_sub(self.begun.elapsed()))
    }

    /// Seconds since the command began.
    pub(crate) fn elapsed(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Memory to use, in bytes, if anything is known of it.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.common.iterating.memory.or_else(memory::available)
    }

    /// The method asked for, if the options go together.
    pub(crate) fn method(&self) -> Result<Method, Failure> {
        let kernel = &self.common.kernel;
        let (method, anchors) = match (kernel.method, kernel.anchors) {
            (MethodName::Auto, anchors) if !self.is_automatic() => (MethodName::Gaussian, anchors),
            (MethodName::Lattice, None) => (MethodName::Gaussian, Some(AnchorsName::Lattice)),
            (method, anchors) => (method, anchors),
        };
        let name = name_of(&method);
        if anchors.is_some() && method != MethodName::Gaussian {
            return Err(Failure::input(format!(
                "--anchors are those of --method gaussian, {name} has none; leave one of the two out"
            )));
        }
        let ranked = [MethodName::Gaussian, MethodName::Arccos, MethodName::Nystrom];
        if kernel.rank.is_some() && !ranked.contains(&method) {
            return Err(Failure::input(format!(
                "--rank is a number of features of --method gaussian or arccos, or of landmarks of \
                 nystrom, {name} has no such number; leave one of the two out"
            )));
        }
        let sizes = [
            (self.refining.sample_size.is_some(), "--sample-size is that"),
            (self.refining.samples.is_some(), "--samples are those"),
        ];
        if let Some((_, option)) = sizes.iter().find(|(given, _)| *given)
            && method != MethodName::Sampled
        {
            return Err(Failure::input(format!("{option} of sampled; add --method sampled")));
        }
        if self.refining.landmarks.is_some() && method != MethodName::Nystrom {
            return Err(Failure::input("--landmarks are those of nystrom; add --method nystrom"));
        }
        let lattice = anchors == Some(AnchorsName::Lattice);
        if self.common.basic.accuracy.is_some() && ranked.contains(&method) && !lattice {
            return Err(Failure::input(
                "--accuracy is for --method auto and --anchors lattice; how good random features and \
                 landmarks are depends on their number, --rank",
            ));
        }
        if kernel.uncentred && anchors != Some(AnchorsName::Paper) {
            return Err(Failure::input(
                "--uncentred is for the paper's anchors; add --anchors paper",
            ));
        }
        let arc_cosine = [
            (kernel.order.is_some(), "--order"),
            (kernel.kappa.is_some(), "--kappa"),
            (kernel.sigma.is_some(), "--sigma"),
        ];
        if let Some((_, option)) = arc_cosine.iter().find(|(given, _)| *given)
            && method != MethodName::Arccos
        {
            return Err(Failure::input(format!(
                "{option} is for the arc-cosine kernel; add --method arccos"
            )));
        }
        Ok(match method {
            MethodName::Auto => Method::Auto,
            // With anchors, which was refused above.
            MethodName::Lattice => Method::lattice(),
            MethodName::Gaussian => {
                Method::Factored(Features::Gaussian(match anchors.unwrap_or(AnchorsName::Sobol) {
                    AnchorsName::Sobol => Anchors::Random(Draw::Sobol),
                    AnchorsName::Adaptive => Anchors::Adaptive,
                    AnchorsName::Iid => Anchors::Random(Draw::Iid),
                    AnchorsName::Orthogonal => Anchors::Random(Draw::Orthogonal),
                    AnchorsName::Lattice => Anchors::Lattice { stored: false },
                    AnchorsName::Paper => Anchors::Paper { centred: !kernel.uncentred },
                }))
            }
            MethodName::Arccos => Method::Factored(Features::ArcCosine {
                order: kernel.order.unwrap_or(1),
                kappa: kernel.kappa.unwrap_or(0.1),
                sigma: kernel.sigma.unwrap_or(1.5),
            }),
            MethodName::Linear => Method::Factored(Features::Linear),
            MethodName::Dense => Method::dense(),
            MethodName::Online => Method::online(),
            MethodName::Sampled => Method::Sampled(SampleSizes {
                size: self.refining.sample_size.map(as_count).transpose()?,
                samples: self.refining.samples.map(as_count).transpose()?,
            }),
            MethodName::Nystrom => Method::Nystrom(match self.refining.landmarks {
                Some(LandmarksName::Uniform) => Landmarks::Uniform,
                Some(LandmarksName::Leverage) | None => Landmarks::Leverage,
            }),
        })
    }

    /// The options of the library.
    pub(crate) fn options(&self, epsilon: &Epsilon) -> Result<Options, Failure> {
        let kernel = &self.common.kernel;
        let mut builder = Options::builder(epsilon.value)
            .method(self.method()?)
            .cost(self.ground()?.clone())
            .gauge(!self.no_gauge)
            .accuracy(self.accuracy)
            .seed(kernel.seed)
            .certify(self.refining.certify)
            .polish(self.refining.polish)
            .algorithm(match self.solver {
                SolverName::Auto => Algorithm::Auto,
                SolverName::Plain => Algorithm::Plain,
                SolverName::Anderson => Algorithm::Anderson,
                SolverName::Accelerated => Algorithm::Accelerated,
            })
            .tolerance(self.tolerance)
            .max_iterations(self.common.iterating.max_iter)
            .precision(match kernel.precision {
                PrecisionName::F32 => Precision::F32,
                PrecisionName::F64 => Precision::F64,
            })
            .rho_x(self.rho[0])
            .rho_y(self.rho[1]);
        if let Some(rank) = kernel.rank {
            builder = builder.rank(rank);
        }
        if let Some(rank) = kernel.max_rank {
            builder = builder.max_rank(rank);
        }
        if let Some(left) = self.time_left() {
            builder = builder.time_limit(left);
        }
        if let Some(bytes) = self.memory() {
            builder = builder.max_memory(bytes);
        }
        Ok(builder.build()?)
    }

    /// The settings as results name them.
    pub(crate) fn json(&self, epsilon: &Epsilon) -> SettingsJson {
        let Common { reading, kernel, iterating, .. } = self.common;
        let [rho_x, rho_y] = self.rho();
        SettingsJson {
            cost: kernel.cost.as_ref().map_or("sqeuclidean".to_owned(), ToString::to_string),
            epsilon: epsilon.value,
            epsilon_origin: epsilon.origin.as_str(),
            mean_cost: epsilon.of(CostScale::Mean),
            cost_deviation: epsilon.of(CostScale::Deviation),
            rho_x,
            rho_y,
            accuracy: self.promises().then_some(self.accuracy),
            chosen: self.chosen(),
            max_iter: iterating.max_iter,
            seed: kernel.seed,
            scale: Some(reading.scale).filter(|s| *s != ScaleName::None).map(|s| name_of(&s)),
            pca: reading.pca,
            sample: reading.sample,
        }
    }

    /// What kept pairs depend on, by the name of the option.
    pub(crate) fn kept(&self, epsilon: &Epsilon) -> KeptSettings {
        let kernel = &self.common.kernel;
        KeptSettings {
            cost: self.ground.get().map(|ground| ground.key.clone()).filter(|c| c != "sqeuclidean"),
            eps: epsilon.value,
            chosen: self.chosen(),
            accuracy: self.accuracy,
            certify: self.refining.certify,
            polish: self.refining.polish,
            max_rank: kernel.max_rank,
            seed: kernel.seed,
            max_iter: self.common.iterating.max_iter,
            rho: self.rho()[0],
            uncentred: kernel.uncentred,
            landmarks: self.refining.landmarks.map(|l| name_of(&l)),
            sample_size: self.refining.sample_size,
            samples: self.refining.samples,
            no_gauge: self.no_gauge,
            order: kernel.order,
            kappa: kernel.kappa,
            sigma: kernel.sigma,
        }
    }

    fn chosen(&self) -> Chosen {
        let kernel = &self.common.kernel;
        Chosen {
            method: name_of(&kernel.method),
            anchors: kernel.anchors.map(|anchors| name_of(&anchors)),
            rank: kernel.rank,
            precision: name_of(&kernel.precision),
            solver: name_of(&self.solver),
            tol: self.tolerance,
        }
    }
}

/// A count of points in memory.
fn as_count(count: u64) -> Result<usize, Failure> {
    usize::try_from(count).map_err(Failure::input)
}

/// How a problem is solved, under the names of the options.
#[derive(Debug, Clone, Serialize)]
struct Chosen {
    method: String,
    anchors: Option<String>,
    rank: Option<usize>,
    precision: String,
    solver: String,
    tol: f64,
}

/// Settings in JSON.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SettingsJson {
    cost: String,
    epsilon: f64,
    /// `given`, `percentage` or `default`.
    epsilon_origin: &'static str,
    /// What percentages are of, where one was used.
    mean_cost: Option<f64>,
    cost_deviation: Option<f64>,
    rho_x: Option<f64>,
    rho_y: Option<f64>,
    /// If one is promised.
    accuracy: Option<f64>,
    #[serde(flatten)]
    chosen: Chosen,
    max_iter: usize,
    seed: u64,
    scale: Option<String>,
    pca: Option<u32>,
    sample: Option<u64>,
}

/// All that a pair depends on but its clouds. Not what a result does not depend on: threads, the time limit, and the memory,
/// with which only the choice of what is accurate enough can change.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "options as they were given")]
pub(crate) struct KeptSettings {
    /// If it is not the squared Euclidean one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<String>,
    eps: f64,
    #[serde(flatten)]
    chosen: Chosen,
    accuracy: f64,
    certify: bool,
    polish: bool,
    max_rank: Option<usize>,
    seed: u64,
    max_iter: usize,
    rho: Option<f64>,
    uncentred: bool,
    landmarks: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    no_gauge: bool,
    order: Option<u8>,
    kappa: Option<f64>,
    sigma: Option<f64>,
}

/// The regularisation, and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct Epsilon {
    pub(crate) value: f64,
    origin: Origin,
    /// What it is a part of, if it is one.
    scale: Option<(CostScale, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Origin {
    Given,
    /// A part of the scale of the costs that was given.
    Percentage(f64),
    /// That part of the mean cost where nothing is given.
    Default,
    /// Of a kernel that is not a function of epsilon.
    Unit,
}

impl Origin {
    fn as_str(self) -> &'static str {
        match self {
            Origin::Given => "given",
            Origin::Percentage(_) => "percentage",
            Origin::Default | Origin::Unit => "default",
        }
    }
}

impl Epsilon {
    /// What is given, or a part of the mean cost or of its standard deviation, over pairs of points drawn from all clouds
    /// together.
    pub(crate) fn choose(
        settings: &Settings<'_>,
        measures: &[Measure<'_>],
    ) -> Result<Self, Failure> {
        let cost = settings.ground()?;
        Epsilon::of_scale(settings, |scale| match scale {
            CostScale::Mean => cost.mean(measures),
            CostScale::Deviation => cost.deviation(measures),
        })
    }

    /// The same for a problem of two clouds, where the standard deviation is over pairs of a point of either cloud.
    pub(crate) fn between(
        settings: &Settings<'_>,
        measures: &[Measure<'_>; 2],
    ) -> Result<Self, Failure> {
        let cost = settings.ground()?;
        Epsilon::of_scale(settings, |scale| match scale {
            CostScale::Mean => cost.mean(measures),
            CostScale::Deviation => cost.deviation_between(&measures[0], &measures[1]),
        })
    }

    fn of_scale(
        settings: &Settings<'_>,
        find: impl Fn(CostScale) -> orthant::Result<f64> + Send + Sync,
    ) -> Result<Self, Failure> {
        let (part, scale, origin) = match settings.common.basic.eps {
            Some(EpsilonSpec::Absolute(value)) => {
                return Ok(Epsilon { value, origin: Origin::Given, scale: None });
            }
            Some(EpsilonSpec::Relative(part, scale)) if !(part > 0.0 && part.is_finite()) => {
                return Err(Failure::input(format!(
                    "--eps must be a positive part of {}, got {}{}",
                    scale.name(),
                    1e2 * part,
                    scale.suffix()
                )));
            }
            Some(EpsilonSpec::Relative(part, scale)) => (part, scale, Origin::Percentage(part)),
            None if matches!(settings.method_name(), MethodName::Arccos | MethodName::Linear) => {
                return Ok(Epsilon { value: 1.0, origin: Origin::Unit, scale: None });
            }
            None => (DEFAULT_EPSILON, CostScale::Mean, Origin::Default),
        };
        if matches!(settings.method_name(), MethodName::Arccos | MethodName::Linear) {
            return Err(Failure::input(format!(
                "a part of {} is for the squared Euclidean cost, which arccos and linear do not have; give \
                 --eps a number",
                scale.name()
            )));
        }
        let found = settings.common.iterating.threads.run(|| find(scale))?;
        if found == 0.0 {
            return Err(Failure::input(match scale {
                CostScale::Mean => {
                    "all points of all clouds coincide, so there is no scale to choose epsilon from; give --eps a number"
                }
                CostScale::Deviation => {
                    "all pairs of points have the same cost, whose standard deviation is zero; give --eps a number, or a part \
                     of the mean cost such as 5%"
                }
            }));
        }
        Ok(Epsilon { value: part * found, origin, scale: Some((scale, found)) })
    }

    /// This scale of the costs, if epsilon is a part of it.
    fn of(&self, scale: CostScale) -> Option<f64> {
        self.scale.filter(|(used, _)| *used == scale).map(|(_, found)| found)
    }

    /// `epsilon = 0.1 (5 % of the mean cost, 2)`.
    pub(crate) fn text(&self) -> String {
        let percent = |part: f64| {
            self.scale.map_or_else(String::new, |(scale, found)| {
                format!(" ({} % of {}, {})", 1e2 * part, scale.name(), number(found))
            })
        };
        let origin = match self.origin {
            Origin::Given => String::new(),
            Origin::Percentage(part) => percent(part),
            Origin::Default => percent(DEFAULT_EPSILON),
            Origin::Unit => {
                " (the default for a kernel that is not a function of epsilon)".to_owned()
            }
        };
        format!("epsilon = {}{origin}", number(self.value))
    }
}

/// The cost of the matrix in a file.
fn mahalanobis(file: &str) -> Result<Ground, Failure> {
    let read = orthant_io::read(OsStr::new(file), &ReadOptions::default())?;
    let (rows, dim) = (read.len(), read.dim);
    if rows != dim {
        return Err(Failure::input(format!(
            "{}: the matrix of a Mahalanobis cost is square, with a row and a column for each coordinate, and this one has \
             {rows} rows of {dim} numbers",
            read.path
        )));
    }
    let entries: Vec<f64> = match read.values {
        orthant_io::Values::F32(values) => values.into_iter().map(f64::from).collect(),
        orthant_io::Values::F64(values) => values,
    };
    let matrix = Mahalanobis::new(&entries, dim)
        .map_err(|error| Failure::input(format!("{}: {error}", read.path)))?;
    let key = format!("mahalanobis {entries:?}");
    Ok(Ground { cost: GroundCost::Mahalanobis(matrix), key })
}

/// How a choice is called on the command line.
pub(crate) fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
}
