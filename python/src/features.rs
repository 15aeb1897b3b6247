//! Feature maps as objects.

use std::sync::Arc;

use numpy::PyArray2;
use orthant::features::{ArcCosine, FeatureMap as Map, Gaussian, Linear, stride};
use orthant::{Points, control::Cancel, theory};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::arrays::{Cloud, Matrix, frozen, matched, rows};
use crate::errors::{raised, raised_by};
use crate::pickle::{Reduced, reduced};
use crate::watch::{on_pool, quietly};

/// A map from points to positive features: `k(x, y) = phi(x) . phi(y)`.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct FeatureMap {
    pub(crate) map: Arc<dyn Map>,
    anchors: Option<Vec<f64>>,
    recipe: Recipe,
}

/// How to make the map again.
#[derive(Serialize, Deserialize)]
pub(crate) enum Recipe {
    Gaussian(Gaussian),
    Paper(Gaussian),
    ArcCosine { dim: usize, order: u8, kappa: f64, sigma: f64, rank: usize, seed: u64 },
    Linear { dim: usize },
}

impl FeatureMap {
    pub(crate) fn new(recipe: Recipe) -> PyResult<Self> {
        let (map, anchors): (Arc<dyn Map>, _) = match &recipe {
            Recipe::Gaussian(map) | Recipe::Paper(map) => {
                (Arc::new(map.clone()), Some(map.anchors()))
            }
            &Recipe::ArcCosine { dim, order, kappa, sigma, rank, seed } => {
                let map = ArcCosine::new(dim, order, kappa, sigma, rank, seed).map_err(raised)?;
                let anchors = map.anchors();
                (Arc::new(map), Some(anchors))
            }
            &Recipe::Linear { dim } => (Arc::new(Linear::new(dim).map_err(raised)?), None),
        };
        Ok(FeatureMap { map, anchors, recipe })
    }
}

#[pymethods]
impl FeatureMap {
    /// Of the Gaussian kernel `exp(-|x - y|^2 / epsilon)`, with these anchors (the paper's Lemma 1).
    #[staticmethod]
    #[pyo3(signature = (anchors, epsilon, q=None))]
    fn gaussian(anchors: &Bound<'_, PyAny>, epsilon: f64, q: Option<f64>) -> PyResult<Self> {
        let matrix = Matrix::new("anchors", anchors)?;
        let points = matrix.points("anchors", Matrix::borrowed)?;
        let q = q.unwrap_or_else(|| default_q(&[&points], epsilon));
        let map = on_pool(anchors.py(), || Gaussian::with_anchors(&points, q, epsilon));
        FeatureMap::new(Recipe::Gaussian(map.map_err(raised)?))
    }

    /// The paper's map for two clouds.
    #[staticmethod]
    #[pyo3(signature = (x, y, epsilon, rank, seed=0, centred=true))]
    fn paper(
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        epsilon: f64,
        rank: usize,
        seed: u64,
        centred: bool,
    ) -> PyResult<Self> {
        let (points, _) = matched(x.py(), &[("x", x.clone()), ("y", y.clone())])?;
        let clouds = [
            Cloud::new("x", Some(&points[0]), ("a", None), None)?,
            Cloud::new("y", Some(&points[1]), ("b", None), None)?,
        ];
        let [mu, nu] = [clouds[0].measure(Matrix::borrowed)?, clouds[1].measure(Matrix::borrowed)?];
        let map = on_pool(x.py(), || Gaussian::paper(&mu, &nu, epsilon, rank, seed, centred));
        FeatureMap::new(Recipe::Paper(map.map_err(raised)?))
    }

    /// Of the arc-cosine kernel plus `kappa`.
    #[staticmethod]
    #[pyo3(signature = (dim, rank, order=1, kappa=0.1, sigma=1.5, seed=0))]
    fn arc_cosine(
        dim: usize,
        rank: usize,
        order: u8,
        kappa: f64,
        sigma: f64,
        seed: u64,
    ) -> PyResult<Self> {
        FeatureMap::new(Recipe::ArcCosine { dim, order, kappa, sigma, rank, seed })
    }

    /// The coordinates themselves, all positive.
    #[staticmethod]
    fn linear(dim: usize) -> PyResult<Self> {
        FeatureMap::new(Recipe::Linear { dim })
    }

    /// Number of coordinates of a point.
    #[getter]
    fn dim(&self) -> usize {
        self.map.dim()
    }

    /// Number of features.
    #[getter]
    fn rank(&self) -> usize {
        self.map.rank()
    }

    /// Which map it is: `gaussian`, `paper`, `arc_cosine` or `linear`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.recipe {
            Recipe::Gaussian(_) => "gaussian",
            Recipe::Paper(_) => "paper",
            Recipe::ArcCosine { .. } => "arc_cosine",
            Recipe::Linear { .. } => "linear",
        }
    }

    /// Of the paper's Lemma 1, for Gaussian features; otherwise `None`.
    #[getter]
    fn q(&self) -> Option<f64> {
        match &self.recipe {
            Recipe::Gaussian(map) | Recipe::Paper(map) => map.q().first().copied(),
            _ => None,
        }
    }

    /// The anchors, a row each; `None` if the map has none.
    #[getter]
    fn anchors<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let anchors = self.anchors.clone().map(|values| frozen(rows(py, values, self.map.dim())?));
        anchors.transpose()
    }

    /// The logarithms of the features of some points, a row a point.
    fn log_features<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.evaluated(points, py, |log| log)
    }

    /// The features of some points, a row a point.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.evaluated(points, py, f64::exp)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "FeatureMap", &self.recipe, ())
    }

    fn __repr__(&self) -> String {
        format!("FeatureMap.{}(dim={}, rank={})", self.kind(), self.map.dim(), self.map.rank())
    }
}

impl FeatureMap {
    /// A function of the logarithms of the features of some points.
    fn evaluated<'py>(
        &self,
        points: &Bound<'py, PyAny>,
        py: Python<'py>,
        of: fn(f64) -> f64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let matrix = Matrix::new("points", points)?;
        let points = matrix.points("points", Matrix::borrowed)?;
        let cancel = Cancel::default();
        let values = quietly(py, &cancel, || self.values(&points, of, &cancel))??;
        rows(py, values, self.map.rank())
    }

    fn values(
        &self,
        points: &Points<'_>,
        of: fn(f64) -> f64,
        cancel: &Cancel,
    ) -> PyResult<Vec<f64>> {
        const ROWS: usize = 8;
        self.map.check(points).map_err(raised_by("points"))?;
        let (rank, width) = (self.map.rank(), stride(self.map.rank()));
        // Asked for first: without the memory the process would be ended.
        let mut room: Vec<f64> = Vec::new();
        let size = points.len().checked_mul(rank).filter(|n| room.try_reserve_exact(*n).is_ok());
        drop(room);
        let Some(size) = size else {
            let message = format!("{} x {rank} features do not fit into the memory", points.len());
            return Err(pyo3::exceptions::PyMemoryError::new_err(message));
        };
        let mut values = vec![0.0; size];
        values.par_chunks_mut(ROWS * rank).enumerate().for_each_init(
            || vec![0.0; ROWS * width],
            |rows, (c, values)| {
                // Nobody will see them.
                if cancel.is_cancelled() {
                    return;
                }
                let rows = &mut rows[..values.len() / rank * width];
                self.map.log_features(points, c * ROWS, width, rows);
                for (values, row) in values.chunks_exact_mut(rank).zip(rows.chunks_exact(width)) {
                    values.iter_mut().zip(row).for_each(|(value, log)| *value = of(*log));
                }
            },
        );
        Ok(values)
    }
}

/// The paper's `q` for clouds, from their largest norm.
pub(crate) fn default_q(clouds: &[&Points<'_>], epsilon: f64) -> f64 {
    let norm = |points: &Points<'_>, i: usize| -> f64 {
        (0..points.dim()).map(|k| points.coordinate(i, k).powi(2)).sum::<f64>().sqrt()
    };
    let radius =
        |points: &Points<'_>| (0..points.len()).map(|i| norm(points, i)).fold(0.0, f64::max);
    let largest = clouds.iter().map(|points| radius(points)).fold(0.0, f64::max);
    theory::paper_q(largest, epsilon, clouds.first().map_or(1, |points| points.dim()))
}

/// The paper's `q`: anchors of clouds of this radius have the variance `q epsilon / 4` on every axis.
#[pyfunction]
pub(crate) fn paper_q(radius: f64, epsilon: f64, dim: usize) -> PyResult<f64> {
    if !(radius >= 0.0 && radius.is_finite() && epsilon > 0.0 && epsilon.is_finite() && dim > 0) {
        let message = format!(
            "radius must not be negative, epsilon and dim must be positive; got {radius}, {epsilon} and {dim}"
        );
        return Err(PyValueError::new_err(message));
    }
    Ok(theory::paper_q(radius, epsilon, dim))
}

/// Which map, or a matrix of features.
pub(crate) fn one_of<'py>(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Given<'py>> {
    match object.cast::<FeatureMap>() {
        Ok(map) => Ok(Given::Map(map.get().map.clone())),
        Err(_) => Ok(Given::Matrix(Matrix::new(name, object)?)),
    }
}

/// Features of one cloud.
pub(crate) enum Given<'py> {
    Map(Arc<dyn Map>),
    Matrix(Matrix<'py>),
}

/// A pair must be of one kind.
pub(crate) fn mixed() -> PyErr {
    PyValueError::new_err(
        "features must be one FeatureMap, a pair of them, or a pair of matrices with a row of positive features for \
         each point of x and of y",
    )
}
