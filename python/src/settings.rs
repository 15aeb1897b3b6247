//! Keyword arguments to options, all checked.

use std::sync::Arc;
use std::time::Duration;

use numpy::PyArray1;
use orthant::anchors::Draw;
use orthant::features::{FeatureMap as Map, FeatureMatrix, Gaussian};
use orthant::{
    CostMatrix, Error, GroundCost, Mahalanobis, Measure, Method, Options, Precision, Solver,
    barycenter::Barycenters,
    control::Cancel,
    options::{Algorithm, Anchors, Cost, Features, Landmarks, SampleSizes},
    two_sample::TwoSampleTest,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arrays::{Cloud, Columns, Matrix, Take, matched};
use crate::errors::{raised, raised_by};
use crate::features::{self, Given, default_q};
use crate::watch::{Watch, callable, check_threads, on_pool};

/// The keyword arguments of a call, by name; those that are missing or `None` are left to the library.
pub(crate) struct Settings<'py> {
    given: Bound<'py, PyDict>,
    epsilon: Option<Epsilon>,
    kernel: Kernel<'py>,
    /// The cost of two points.
    ground: GroundCost,
    /// Ends the call.
    cancel: Cancel,
}

/// The regularisation as it was given.
#[derive(Clone, Copy)]
enum Epsilon {
    Absolute(f64),
    /// A part of a scale of the costs.
    Part(f64, Scale),
}

/// What epsilon can be a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    MeanCost,
    /// The standard deviation of the cost.
    Deviation,
}

/// The scale of the costs of two clouds.
pub(crate) type ScaleOfTwo = fn(Scale, &GroundCost, [&Measure<'_>; 2]) -> orthant::Result<f64>;

impl Scale {
    /// This part of it, as it was found.
    fn times(self, part: f64, found: f64) -> PyResult<f64> {
        if found > 0.0 {
            return Ok(part * found);
        }
        Err(PyValueError::new_err(match self {
            Scale::MeanCost => {
                "all points coincide, so that there is no scale for epsilon; give one"
            }
            Scale::Deviation => {
                "all pairs of points have the same cost, whose standard deviation is zero; give epsilon as a number, or as a \
                 part of the mean cost such as '5%'"
            }
        }))
    }

    /// Over pairs of points of all clouds together.
    pub(crate) fn of_all<'a, 'm: 'a>(
        self,
        cost: &GroundCost,
        measures: impl IntoIterator<Item = &'a Measure<'m>>,
    ) -> orthant::Result<f64> {
        match self {
            Scale::MeanCost => cost.mean(measures),
            Scale::Deviation => cost.deviation(measures),
        }
    }

    /// For a problem of two clouds: the standard deviation is over pairs of a point of either.
    pub(crate) fn of_two(
        self,
        cost: &GroundCost,
        [mu, nu]: [&Measure<'_>; 2],
    ) -> orthant::Result<f64> {
        match self {
            Scale::MeanCost => cost.mean([mu, nu]),
            Scale::Deviation => cost.deviation_between(mu, nu),
        }
    }
}

/// A number, `"5%"` of the mean cost, or `"5%std"` of its standard deviation.
fn epsilon_of(given: &Bound<'_, PyAny>) -> PyResult<Epsilon> {
    let text = given.cast::<PyString>().map(ToString::to_string).unwrap_or_default();
    let Some((number, unit)) = text.split_once('%') else {
        return extract(given, "epsilon", "a number").map(Epsilon::Absolute);
    };
    let part = || {
        let scale = match unit.trim() {
            "" => Scale::MeanCost,
            "std" => Scale::Deviation,
            _ => return None,
        };
        let part: f64 = number.trim().parse().ok()?;
        (part > 0.0 && part.is_finite()).then_some(Epsilon::Part(part / 100.0, scale))
    };
    part().ok_or_else(|| {
        PyValueError::new_err(format!(
            "epsilon must be a number, a part of the mean cost such as '5%', or of the standard deviation of the cost such as \
             '5%std', got {text:?}"
        ))
    })
}

/// Whether a cost is a function of two points, and not a matrix.
fn is_ground(cost: &Bound<'_, PyAny>) -> bool {
    cost.is_instance_of::<PyString>() || cost.is_callable() || named_matrix(cost).is_some()
}

/// `("mahalanobis", A)`.
fn named_matrix<'py>(cost: &Bound<'py, PyAny>) -> Option<(String, Bound<'py, PyAny>)> {
    let pair = cost.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2)?;
    let name = pair.get_item(0).ok()?;
    let name = name.cast::<PyString>().ok()?.to_string();
    Some((name, pair.get_item(1).ok()?))
}

const COSTS: &str = "'sqeuclidean', 'cosine', 'dot', 'euclidean', 'l1', 'lp:3' (any exponent), 'geodesic', ('mahalanobis', A), \
                     a function of two points, or a matrix of costs";

/// The cost of two points.
fn ground(reader: &Reader<'_, '_>) -> PyResult<GroundCost> {
    let Some(given) = reader.raw("cost")?.filter(is_ground) else {
        return Ok(GroundCost::SquaredEuclidean);
    };
    let unknown =
        |word: &str| Err(PyValueError::new_err(format!("cost must be {COSTS}, got {word:?}")));
    if let Some((name, matrix)) = named_matrix(&given) {
        if name != "mahalanobis" {
            return unknown(&name);
        }
        let matrix = Matrix::new("the matrix of the Mahalanobis cost", &matrix)?;
        let (rows, columns) = (matrix.rows(), matrix.columns());
        if rows != columns {
            return Err(PyValueError::new_err(format!(
                "the matrix of the Mahalanobis cost must be square, with a row and a column for each coordinate, got {rows} x \
                 {columns}"
            )));
        }
        let points = matrix.points("the matrix of the Mahalanobis cost", Matrix::borrowed)?;
        let entries: Vec<f64> =
            (0..rows * columns).map(|i| points.coordinate(i / columns, i % columns)).collect();
        return Ok(GroundCost::Mahalanobis(Mahalanobis::new(&entries, rows).map_err(raised)?));
    }
    let Ok(word) = given.cast::<PyString>() else {
        return Ok(of_callable(given.unbind()));
    };
    let word = word.to_string();
    Ok(match word.split_once(':') {
        Some(("lp", p)) => match p.parse() {
            Ok(p) => GroundCost::Lp(p),
            Err(_) => return unknown(&word),
        },
        Some(_) => return unknown(&word),
        None => match &*word {
            "sqeuclidean" => GroundCost::SquaredEuclidean,
            "cosine" => GroundCost::Cosine,
            "dot" => GroundCost::Dot,
            "euclidean" => GroundCost::Euclidean,
            "l1" => GroundCost::L1,
            "geodesic" => GroundCost::Geodesic,
            _ => return unknown(&word),
        },
    })
}

/// A function in Python of two arrays. What it raises is told, and is no cost.
fn of_callable(function: Py<PyAny>) -> GroundCost {
    GroundCost::function(move |x, y| {
        Python::attach(|py| {
            let points = (PyArray1::from_slice(py, x), PyArray1::from_slice(py, y));
            let cost = function.call1(py, points).and_then(|cost| cost.extract::<f64>(py));
            cost.unwrap_or_else(|error| {
                error.write_unraisable(py, Some(function.bind(py)));
                f64::NAN
            })
        })
    })
}

/// The kernel that was asked for.
enum Kernel<'py> {
    Named(Method),
    /// Anchors of one's own, with `q`.
    Anchors(Matrix<'py>, Option<f64>),
    Cost(Matrix<'py>, Use),
    Map(Arc<dyn Map>, Use),
    Pair([Arc<dyn Map>; 2], Use),
    Explicit([Matrix<'py>; 2], Use),
}

/// Matrices that give the kernel of a call, if there are any.
pub(crate) enum Matrices<'a> {
    Nothing,
    Costs(CostMatrix<'a>),
    Features([FeatureMatrix<'a>; 2]),
}

/// Tasks with some options and these matrices.
macro_rules! tasks {
    ($($name:ident $task:ident),*) => {$(
        pub(crate) fn $name<'s>(&self, options: &Options) -> $task<'s, 'a> {
            let asked = $task::new(options);
            match self {
                Matrices::Nothing => asked,
                Matrices::Costs(costs) => asked.costs(costs.clone()),
                Matrices::Features([x, y]) => asked.features(x.clone(), y.clone()),
            }
        }
    )*};
}

impl<'a> Matrices<'a> {
    tasks!(solver Solver, barycenters Barycenters, test TwoSampleTest);

    /// Refuses matrices where points move.
    pub(crate) fn refused(&self) -> orthant::Result<()> {
        let reason = match self {
            Matrices::Nothing => return Ok(()),
            Matrices::Costs(_) => "the costs are given as a matrix",
            Matrices::Features(_) => "the features are given as matrices",
        };
        let remedy = "use a cost or a feature map that is a function of the points";
        Err(Error::NoDerivative { by: "the points", reason, remedy })
    }
}

/// Features may define the cost of an exact method.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Factored,
    Dense,
    Online,
}

const METHODS: &str =
    "'auto', 'gaussian', 'lattice', 'arccos', 'linear', 'dense', 'online', 'nystrom' or 'sampled'";
const ANCHORS: &str =
    "'sobol', 'adaptive', 'iid', 'orthogonal', 'lattice' or 'paper', or an array of anchors";
const SOLVERS: &str = "'auto', 'plain', 'anderson' or 'accelerated'";

impl<'py> Settings<'py> {
    pub(crate) fn new(
        epsilon: Option<&Bound<'py, PyAny>>,
        given: &Bound<'py, PyDict>,
    ) -> PyResult<Self> {
        let epsilon = epsilon.map(epsilon_of).transpose()?;
        let reader = Reader(given);
        let (ground, kernel) = (ground(&reader)?, kernel(&reader)?);
        Ok(Settings { given: given.clone(), epsilon, kernel, ground, cancel: Cancel::default() })
    }

    /// As they were given.
    pub(crate) fn dict(&self) -> &Bound<'py, PyDict> {
        &self.given
    }

    /// The token that ends the call.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Whether the kernel is made of matrices that were given.
    pub(crate) fn has_matrices(&self) -> bool {
        matches!(self.kernel, Kernel::Cost(..) | Kernel::Explicit(..))
    }

    fn reader(&self) -> Reader<'_, 'py> {
        Reader(&self.given)
    }

    /// The two clouds of a problem.
    pub(crate) fn clouds(
        &self,
        points: [Option<&Bound<'py, PyAny>>; 2],
        weights: [Option<&Bound<'py, PyAny>>; 2],
    ) -> PyResult<([Cloud<'py>; 2], Columns)> {
        let counts = match &self.kernel {
            Kernel::Cost(cost, _) => [Some(cost.rows()), Some(cost.columns())],
            Kernel::Explicit([xi, zeta], _) => [Some(xi.rows()), Some(zeta.rows())],
            _ => [None; 2],
        };
        let [a, b] = weights;
        // With only one cloud of points there is nothing to match.
        let (points, columns) = match points {
            [Some(x), Some(y)] => {
                let both = [("x", x.clone()), ("y", y.clone())];
                let (found, columns) = matched(self.given.py(), &both)?;
                (found.into_iter().map(Some).collect(), columns)
            }
            one => (one.map(Option::<&_>::cloned).to_vec(), Columns::default()),
        };
        let clouds = [
            Cloud::new("x", points[0].as_ref(), ("a", a), counts[0])?,
            Cloud::new("y", points[1].as_ref(), ("b", b), counts[1])?,
        ];
        Ok((clouds, columns))
    }

    /// Epsilon for two clouds, by the scale of their costs or by that of the matrix of costs between them.
    pub(crate) fn epsilon_between(
        &self,
        matrices: &Matrices<'_>,
        [mu, nu]: [&Measure<'_>; 2],
        scale_of: ScaleOfTwo,
    ) -> PyResult<f64> {
        if let (Matrices::Costs(costs), Some(Epsilon::Part(part, scale))) = (matrices, self.epsilon)
        {
            let [mean, deviation] = costs.mean_and_deviation(mu, nu).map_err(raised)?;
            return scale.times(part, if scale == Scale::MeanCost { mean } else { deviation });
        }
        self.epsilon(|scale, cost| scale_of(scale, cost, [mu, nu]))
    }

    /// Epsilon as given, or 0.05 times the mean cost; costs that features define have no unit, and epsilon 1.
    pub(crate) fn epsilon(
        &self,
        scale_of: impl FnOnce(Scale, &GroundCost) -> orthant::Result<f64> + Send,
    ) -> PyResult<f64> {
        let (part, scale) = match self.epsilon {
            Some(Epsilon::Absolute(epsilon)) => return Ok(epsilon),
            Some(Epsilon::Part(part, scale)) => (part, scale),
            None => (0.05, Scale::MeanCost),
        };
        match &self.kernel {
            Kernel::Named(Method::Factored(Features::ArcCosine { .. } | Features::Linear))
            | Kernel::Map(..)
            | Kernel::Pair(..)
            | Kernel::Explicit(..)
            | Kernel::Cost(..)
                if self.epsilon.is_some() =>
            {
                Err(PyValueError::new_err(
                    "a part of the cost is for the squared Euclidean cost, and for a cost matrix between two clouds; give \
                     epsilon as a number",
                ))
            }
            Kernel::Cost(..) => {
                Err(PyTypeError::new_err("a cost matrix needs an epsilon, in units of the costs"))
            }
            Kernel::Map(..) | Kernel::Pair(..) | Kernel::Explicit(..) => Ok(1.0),
            Kernel::Named(Method::Factored(Features::ArcCosine { .. } | Features::Linear)) => {
                Ok(1.0)
            }
            Kernel::Named(_) | Kernel::Anchors(..) => {
                // A cost may be a function in Python, so that this thread must not keep the interpreter to itself.
                let cost = &self.ground;
                let found = on_pool(self.given.py(), || scale_of(scale, cost));
                scale.times(part, found.map_err(raised)?)
            }
        }
    }

    /// The matrices that give the kernel.
    pub(crate) fn matrices<'m, 'a>(&'m self, take: Take<'m, 'py, 'a>) -> PyResult<Matrices<'a>> {
        Ok(match &self.kernel {
            Kernel::Cost(cost, _) => {
                let (rows, columns) = (cost.rows(), cost.columns());
                let matrix = CostMatrix::new(take(cost), rows, columns);
                Matrices::Costs(matrix.map_err(raised_by("cost"))?)
            }
            Kernel::Explicit([xi, zeta], _) => {
                let matrix = |m: &'m Matrix<'py>, name: &str| {
                    let (values, rows, columns) = (take(m), m.rows(), m.columns());
                    let made =
                        on_pool(self.given.py(), || FeatureMatrix::new(values, rows, columns));
                    made.map_err(raised_by(name))
                };
                Matrices::Features([
                    matrix(xi, "the features of x")?,
                    matrix(zeta, "the features of y")?,
                ])
            }
            _ => Matrices::Nothing,
        })
    }

    /// The options with this epsilon for these measures.
    pub(crate) fn options(&self, epsilon: f64, measures: &[&Measure<'_>]) -> PyResult<Options> {
        let reader = self.reader();
        let mut builder = Options::builder(epsilon)
            .method(self.method(epsilon, measures)?)
            .cost(self.ground.clone())
            .cancel(self.cancel.clone())
            .precision(
                reader
                    .word("precision", "'f32' or 'f64'", |word| match word {
                        "f32" | "float32" => Some(Precision::F32),
                        "f64" | "float64" => Some(Precision::F64),
                        _ => None,
                    })?
                    .unwrap_or_default(),
            )
            .algorithm(
                reader
                    .word("solver", SOLVERS, |word| match word {
                        "auto" => Some(Algorithm::Auto),
                        "plain" => Some(Algorithm::Plain),
                        "anderson" => Some(Algorithm::Anderson),
                        "accelerated" => Some(Algorithm::Accelerated),
                        _ => None,
                    })?
                    .unwrap_or_default(),
            );
        macro_rules! set {
            ($($name:ident: $kind:ty, $what:literal;)*) => {$(
                if let Some(value) = reader.get::<$kind>(stringify!($name), $what)? {
                    builder = builder.$name(value);
                }
            )*};
        }
        set! {
            rank: usize, "a positive integer";
            accuracy: f64, "a number";
            gauge: bool, "True or False";
            allow_exact: bool, "True or False";
            certify: bool, "True or False";
            polish: bool, "True or False";
            max_rank: usize, "a positive integer";
            seed: u64, "an integer that is not negative";
            tolerance: f64, "a number";
            max_iterations: usize, "a positive integer";
        }
        if let Some(seconds) = reader.get::<f64>("time_limit", "a number of seconds")? {
            let limit = Duration::try_from_secs_f64(seconds).map_err(|_| {
                PyValueError::new_err(format!(
                    "time_limit must be a number of seconds that is not negative, got {seconds}"
                ))
            })?;
            builder = builder.time_limit(limit);
        }
        // A process that asks for more memory than there is would be ended without a word.
        let limit = reader.get::<f64>("max_memory", "a number of bytes")?;
        if let Some(bytes) = limit.map_or_else(|| Ok(available()), |b| whole("max_memory", b))? {
            builder = builder.max_memory(bytes);
        }
        let (rho, reach) = (reader.positive_pair("rho")?, reader.positive_pair("reach")?);
        if rho.is_some() && reach.is_some() {
            let message = "rho and reach are two ways to say one thing; leave one of them out";
            return Err(PyValueError::new_err(message));
        }
        if let Some([x, y]) = rho.or(reach.map(|reach| reach.map(|r| 2.0 * r * r))) {
            builder = builder.rho_x(x).rho_y(y);
        }
        builder.build().map_err(raised)
    }

    fn method(&self, epsilon: f64, measures: &[&Measure<'_>]) -> PyResult<Method> {
        Ok(match &self.kernel {
            Kernel::Named(method) => method.clone(),
            Kernel::Anchors(anchors, q) => {
                let points = anchors.points("anchors", Matrix::borrowed)?;
                let q = q.unwrap_or_else(|| {
                    let clouds: Vec<_> = measures.iter().map(|m| m.points()).collect();
                    default_q(&clouds, epsilon)
                });
                let map = on_pool(self.given.py(), || Gaussian::with_anchors(&points, q, epsilon))
                    .map_err(raised)?;
                Method::Factored(Features::Map(Arc::new(map)))
            }
            Kernel::Cost(_, how) | Kernel::Explicit(_, how) => match how {
                Use::Factored => Method::Auto,
                Use::Dense => Method::dense(),
                Use::Online => Method::online(),
            },
            Kernel::Map(map, how) => how.of(Features::Map(map.clone())),
            Kernel::Pair([x, y], how) => how.of(Features::Pair(x.clone(), y.clone())),
        })
    }

    /// How the call is to be run.
    pub(crate) fn watch(&self) -> PyResult<Watch> {
        let reader = self.reader();
        let threads = reader.get::<usize>("threads", "a positive integer")?;
        check_threads(threads)?;
        let mut listeners = Vec::new();
        if let Some(callback) = reader.raw("callback")? {
            listeners.push((callable("callback", &callback)?, Duration::ZERO));
        }
        if let Some(bar) = reader.raw("progress")? {
            listeners.push((callable("progress", &bar)?, Duration::from_millis(100)));
        }
        Ok(Watch { threads, listeners, cancel: self.cancel.clone() })
    }

    /// A keyword argument of the task itself.
    pub(crate) fn get<T: FromPyObjectOwned<'py>>(
        &self,
        name: &str,
        what: &str,
    ) -> PyResult<Option<T>> {
        self.reader().get(name, what)
    }

    pub(crate) fn raw(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.reader().raw(name)
    }
}

impl Use {
    fn of(self, features: Features) -> Method {
        match self {
            Use::Factored => Method::Factored(features),
            Use::Dense => Method::Dense(Cost::Features(features)),
            Use::Online => Method::Online(Cost::Features(features)),
        }
    }
}

/// What `method`, `anchors`, `features`, `cost` and their parameters say together.
fn kernel<'py>(reader: &Reader<'_, 'py>) -> PyResult<Kernel<'py>> {
    let conflict = |message: &str| Err(PyValueError::new_err(message.to_owned()));
    let method = reader.text("method")?.unwrap_or_else(|| "auto".to_owned());
    let anchors = reader.raw("anchors")?;
    let cost = reader.raw("cost")?.filter(|cost| !is_ground(cost));
    let features = reader.raw("features")?;
    let ranked = reader.raw("rank")?.is_some();
    if [anchors.is_some(), cost.is_some(), features.is_some()].iter().filter(|g| **g).count() > 1 {
        return conflict(
            "anchors, features and cost each say what the kernel is; give one of them",
        );
    }
    let how = match &*method {
        "auto" => Some(Use::Factored),
        "dense" => Some(Use::Dense),
        "online" => Some(Use::Online),
        _ => None,
    };
    if let Some(cost) = cost {
        return match how {
            Some(how) => Ok(Kernel::Cost(Matrix::new("cost", &cost)?, how)),
            None => conflict("a cost matrix is for the methods 'dense' and 'online'"),
        };
    }
    if let Some(given) = features {
        let Some(how) = how else {
            return conflict("features are for the methods 'auto', 'dense' and 'online'");
        };
        return match pair(&given)? {
            None => match features::one_of("features", &given)? {
                Given::Map(map) => Ok(Kernel::Map(map, how)),
                Given::Matrix(_) => Err(features::mixed()),
            },
            Some([x, y]) => match (
                features::one_of("the features of x", &x)?,
                features::one_of("the features of y", &y)?,
            ) {
                (Given::Map(x), Given::Map(y)) => Ok(Kernel::Pair([x, y], how)),
                (Given::Matrix(x), Given::Matrix(y)) => Ok(Kernel::Explicit([x, y], how)),
                _ => Err(features::mixed()),
            },
        };
    }
    // Checked also where they mean nothing.
    let q = reader.get("q", "a positive number")?;
    let centred = reader.get("centred", "True or False")?.unwrap_or(true);
    let order = reader.get("order", "0, 1 or 2")?.unwrap_or(1);
    let kappa = reader.get("kappa", "a number")?.unwrap_or(0.1);
    let sigma = reader.get("sigma", "a number")?.unwrap_or(1.5);
    let landmarks = reader.word("landmarks", "'leverage' or 'uniform'", |word| match word {
        "leverage" => Some(Landmarks::Leverage),
        "uniform" => Some(Landmarks::Uniform),
        _ => None,
    })?;
    let sizes = SampleSizes {
        size: reader.get("sample_size", "an integer of at least 2")?,
        samples: reader.get("samples", "an integer of at least 2")?,
    };
    // A number of features, or a place for them, is a choice.
    let chosen = anchors.is_some() || ranked;
    let named = match &*method {
        "auto" if !chosen => Method::Auto,
        "auto" | "gaussian" => return gaussian(reader, anchors, q, centred),
        _ if anchors.is_some() && method != "lattice" => {
            return conflict(
                "anchors are those of the method 'gaussian'; leave one of the two out",
            );
        }
        "lattice" => Method::lattice(),
        "arccos" => Method::Factored(Features::ArcCosine { order, kappa, sigma }),
        "linear" => Method::Factored(Features::Linear),
        "dense" => Method::dense(),
        "online" => Method::online(),
        "nystrom" => Method::Nystrom(landmarks.unwrap_or_default()),
        "sampled" => Method::Sampled(sizes),
        other => {
            let got = shown(PyString::new(reader.0.py(), other).as_any());
            let message = format!("method must be {METHODS}, got {got}");
            return Err(PyValueError::new_err(message));
        }
    };
    if ranked && matches!(&*method, "linear" | "dense" | "online" | "sampled") {
        return conflict(
            "rank is a number of features of 'gaussian' or 'arccos', of nodes of 'lattice' or of landmarks of \
             'nystrom'; leave it out",
        );
    }
    Ok(Kernel::Named(named))
}

fn gaussian<'py>(
    reader: &Reader<'_, 'py>,
    anchors: Option<Bound<'py, PyAny>>,
    q: Option<f64>,
    centred: bool,
) -> PyResult<Kernel<'py>> {
    let Some(anchors) = anchors else { return Ok(Kernel::Named(Method::gaussian())) };
    if anchors.cast::<PyString>().is_err() {
        return Ok(Kernel::Anchors(Matrix::new("anchors", &anchors)?, q));
    }
    let anchors = reader.word("anchors", ANCHORS, |word| match word {
        "sobol" => Some(Anchors::Random(Draw::Sobol)),
        "iid" => Some(Anchors::Random(Draw::Iid)),
        "orthogonal" => Some(Anchors::Random(Draw::Orthogonal)),
        "adaptive" => Some(Anchors::Adaptive),
        "lattice" => Some(Anchors::Lattice { stored: false }),
        "paper" => Some(Anchors::Paper { centred }),
        _ => None,
    })?;
    let anchors = anchors.unwrap_or(Anchors::Random(Draw::Sobol));
    Ok(Kernel::Named(Method::Factored(Features::Gaussian(anchors))))
}

/// The two parts of a tuple or list of two.
fn pair<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<[Bound<'py, PyAny>; 2]>> {
    let Ok(tuple) = object.cast::<PyTuple>() else { return Ok(None) };
    if tuple.len() != 2 {
        return Err(PyValueError::new_err(format!("a pair is needed, got {} parts", tuple.len())));
    }
    Ok(Some([tuple.get_item(0)?, tuple.get_item(1)?]))
}

/// Named values, read one by one.
struct Reader<'r, 'py>(&'r Bound<'py, PyDict>);

impl<'py> Reader<'_, 'py> {
    fn raw(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str, what: &str) -> PyResult<Option<T>> {
        self.raw(name)?.map(|value| extract(&value, name, what)).transpose()
    }

    fn text(&self, name: &str) -> PyResult<Option<String>> {
        self.get(name, "a string")
    }

    /// One of some words.
    fn word<T>(
        &self,
        name: &str,
        words: &str,
        meaning: impl Fn(&str) -> Option<T>,
    ) -> PyResult<Option<T>> {
        let Some(word) = self.text(name)? else { return Ok(None) };
        if let Some(value) = meaning(&word) {
            return Ok(Some(value));
        }
        let got = self.raw(name)?.map(|value| shown(&value)).unwrap_or_default();
        Err(PyValueError::new_err(format!("{name} must be {words}, got {got}")))
    }

    /// A number for both clouds, or a pair, with None for what is infinite.
    fn pair(&self, name: &str) -> PyResult<Option<[f64; 2]>> {
        let Some(value) = self.raw(name)? else { return Ok(None) };
        let number = |value: &Bound<'py, PyAny>| {
            if value.is_none() {
                Ok(f64::INFINITY)
            } else {
                extract(value, name, "a number or a pair")
            }
        };
        Ok(Some(match pair(&value)? {
            Some([x, y]) => [number(&x)?, number(&y)?],
            None => [number(&value)?; 2],
        }))
    }

    /// The same, all positive.
    fn positive_pair(&self, name: &str) -> PyResult<Option<[f64; 2]>> {
        let found = self.pair(name)?;
        let bad = found.iter().flatten().find(|value| value.is_nan() || **value <= 0.0);
        match bad {
            Some(value) => Err(PyValueError::new_err(format!(
                "{name} must be positive, or None for a marginal that is kept; got {value}"
            ))),
            None => Ok(found),
        }
    }
}

/// A value of some kind, or an exception that says which.
pub(crate) fn extract<'py, T: FromPyObjectOwned<'py>>(
    value: &Bound<'py, PyAny>,
    name: &str,
    what: &str,
) -> PyResult<T> {
    value.extract().map_err(|error: T::Error| {
        let message = format!("{name} must be {what}, got {}", shown(value));
        // A number of the wrong sign or size, or of another kind.
        if Into::<PyErr>::into(error).is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(message)
        } else {
            PyTypeError::new_err(message)
        }
    })
}

/// A value in an error message, short whatever it is.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = |value: &Bound<'_, PyAny>| -> PyResult<String> {
        value.py().import("orthant._messages")?.call_method1("shown", (value,))?.extract()
    };
    text(value).unwrap_or_else(|_| "something that cannot be shown".to_owned())
}

fn whole(name: &str, bytes: f64) -> PyResult<Option<u64>> {
    if bytes.is_nan() || bytes < 0.0 {
        let message = format!("{name} must be a number of bytes that is not negative, got {bytes}");
        return Err(PyValueError::new_err(message));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; infinity becomes the largest number, which is no limit either"
    )]
    Ok(Some(bytes as u64))
}

/// Memory that can be had without swapping, where the system tells.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
