//! Plans as objects.

mod kept;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use orthant::{Measure, Options, Plan as Coupling, Points, Side, Solver, control::Cancel};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::arrays::{Cloud, Columns, Matrix, array, rows, vector};
use crate::errors::raised;
use crate::pickle::Reduced;
use crate::results::{Lines, Pair, Solution, lines};
use crate::settings::{Matrices, Scale, Settings};
use crate::solve::{By, Gradient, Object, Warm, as_given, found};
use crate::watch::{Ear, quietly, run};

use kept::Recipe;

/// What a plan is of. It has a copy of the points: arrays of Python may change, and a plan does not.
struct Setting {
    mu: Measure<'static>,
    nu: Measure<'static>,
    options: Options,
    matrices: Matrices<'static>,
    cancel: Cancel,
    columns: Columns,
}

impl Setting {
    fn solver<'s>(&self) -> Solver<'s, 'static> {
        self.matrices.solver(&self.options)
    }
}

/// How much goes where: the coupling of two clouds, never stored. Points are counted from 0, and from the end if
/// negative.
#[pyclass(frozen, module = "orthant")]
pub(crate) struct Plan {
    coupling: Coupling<'static>,
    setting: Setting,
    solution: PyOnceLock<Py<Solution>>,
    recipe: Recipe,
}

#[pyfunction]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    x: Option<Object<'py>>,
    y: Option<Object<'py>>,
    epsilon: Option<Object<'py>>,
    a: Option<Object<'py>>,
    b: Option<Object<'py>>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Plan> {
    let settings = Settings::new(epsilon.as_ref(), settings)?;
    let warm = Warm::new(&settings)?;
    let (setting, recipe) =
        prepared(&settings, [x.as_ref(), y.as_ref()], [a.as_ref(), b.as_ref()])?;
    let warm = warm.from();
    let made = run(py, settings.watch()?, |shared| {
        warm.of_term(setting.solver())
            .observer(&mut Ear::new(shared, setting.options.epsilon()))
            .plan(&setting.mu, &setting.nu)
    })?;
    Ok(Plan { coupling: made.map_err(raised)?, setting, solution: PyOnceLock::new(), recipe })
}

/// Measures and options of a plan, out of the arguments of a call.
fn prepared<'py>(
    settings: &Settings<'py>,
    points: [Option<&Object<'py>>; 2],
    weights: [Option<&Object<'py>>; 2],
) -> PyResult<(Setting, Recipe)> {
    let (clouds, columns) = settings.clouds(points, weights)?;
    let [mu, nu] = [clouds[0].measure(Matrix::owned)?, clouds[1].measure(Matrix::owned)?];
    let matrices = settings.matrices(Matrix::owned)?;
    let epsilon = settings.epsilon_between(&matrices, [&mu, &nu], Scale::of_two)?;
    let options = settings.options(epsilon, &[&mu, &nu])?;
    let recipe = Recipe::new(settings, points, clouds.map(Cloud::into_weights))?;
    Ok((Setting { mu, nu, options, matrices, cancel: settings.cancel(), columns }, recipe))
}

type Indices<'py> = Bound<'py, PyArray1<i64>>;
type Partners<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f64>>);

/// Points of one's own, if there are any.
struct At<'py>(Option<Matrix<'py>>);

impl<'py> At<'py> {
    /// In the place of points of one of the clouds of a plan.
    fn new(points: Option<&Object<'py>>, plan: &Plan, side: Side) -> PyResult<Self> {
        let Some(points) = points else { return Ok(At(None)) };
        let matrix = Matrix::new("points", &plan.setting.columns.placed("points", points)?)?;
        let (given, dim) = (matrix.columns(), plan.measure(side).dim());
        // A plan of given features or costs has no coordinates, and says so itself.
        if given != dim && dim > 1 {
            let message = format!(
                "points has {given} columns, and the points of the plan have {dim} coordinates"
            );
            return Err(PyValueError::new_err(message));
        }
        Ok(At(Some(matrix)))
    }

    fn points(&self) -> PyResult<Option<Points<'_>>> {
        self.0.as_ref().map(|matrix| matrix.points("points", Matrix::borrowed)).transpose()
    }
}

fn side(cloud: &str) -> PyResult<Side> {
    match cloud {
        "x" => Ok(Side::X),
        "y" => Ok(Side::Y),
        other => Err(PyValueError::new_err(format!("cloud must be 'x' or 'y', got '{other}'"))),
    }
}

impl Plan {
    fn measure(&self, side: Side) -> &Measure<'static> {
        if side == Side::X { &self.setting.mu } else { &self.setting.nu }
    }

    /// Does some work with the plan, which Ctrl-C ends.
    fn quietly<R: Send>(&self, py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
        quietly(py, &self.setting.cancel, work)
    }

    /// An index of Python, which may count from the end.
    fn index(&self, side: Side, index: isize) -> PyResult<usize> {
        let count = self.measure(side).weights().len();
        let place = if index < 0 { count.checked_add_signed(index) } else { index.try_into().ok() };
        place.filter(|i| *i < count).ok_or_else(|| {
            let what = if side == Side::X { "row" } else { "column" };
            PyIndexError::new_err(format!("{what} {index} of a plan with {count} {what}s"))
        })
    }
}

#[pymethods]
impl Plan {
    /// Points of x by points of y.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        let shape = self.coupling.shape();
        (shape.rows, shape.columns)
    }

    /// Number of coordinates of a point.
    #[getter]
    fn dim(&self) -> usize {
        self.measure(Side::X).dim()
    }

    /// The names of the coordinates, in the order that the plan has them, if the clouds were tables with names.
    #[getter]
    fn columns(&self, py: Python<'_>) -> PyResult<Option<Vec<String>>> {
        self.setting.columns.own_names(py)
    }

    /// The solution that the plan belongs to: values, potentials, errors, why it stopped.
    #[getter]
    fn solution(&self, py: Python<'_>) -> PyResult<Py<Solution>> {
        let made = self
            .solution
            .get_or_try_init(py, || Py::new(py, Solution::new(self.coupling.solution().clone())))?;
        Ok(made.clone_ref(py))
    }

    /// The `value` of its solution.
    #[getter]
    fn value(&self) -> f64 {
        self.coupling.solution().value
    }

    /// Whether the solve converged.
    #[getter]
    fn converged(&self) -> bool {
        self.coupling.solution().converged()
    }

    /// The sum of all entries, computed.
    fn mass(&self, py: Python<'_>) -> PyResult<f64> {
        self.quietly(py, || self.coupling.mass())?.map_err(raised)
    }

    /// `<P, C>`, over all pairs if it is not known yet.
    fn transport_cost(&self, py: Python<'_>) -> PyResult<f64> {
        self.quietly(py, || self.coupling.transport_cost())
    }

    /// How much goes from point `i` of x to point `j` of y.
    fn entry(&self, i: isize, j: isize) -> PyResult<f64> {
        let (i, j) = (self.index(Side::X, i)?, self.index(Side::Y, j)?);
        self.coupling.entry(i, j).map_err(raised)
    }

    fn __getitem__(&self, key: &Object<'_>) -> PyResult<f64> {
        let Ok((i, j)) = key.extract::<(isize, isize)>() else {
            return Err(PyTypeError::new_err(
                "plan[i, j] is an entry; for more there are row(i), column(j) and to_dense()",
            ));
        };
        self.entry(i, j)
    }

    /// Where the mass of point `i` of x goes: a number for every point of y.
    fn row<'py>(&self, py: Python<'py>, i: isize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let i = self.index(Side::X, i)?;
        let row = self.quietly(py, || self.coupling.row(i))?.map_err(raised)?;
        Ok(array(py, row))
    }

    /// Where the mass of point `j` of y comes from: a number for every point of x.
    fn column<'py>(&self, py: Python<'py>, j: isize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let j = self.index(Side::Y, j)?;
        let column = self.quietly(py, || self.coupling.column(j))?.map_err(raised)?;
        Ok(array(py, column))
    }

    /// The largest entries of a row: columns and masses.
    fn top<'py>(
        &self,
        py: Python<'py>,
        i: isize,
        count: isize,
    ) -> PyResult<(Indices<'py>, Bound<'py, PyArray1<f64>>)> {
        let (i, count) = (self.index(Side::X, i)?, number(count)?);
        let top = self.quietly(py, || self.coupling.top(i, count))?.map_err(raised)?;
        let (columns, masses): (Vec<usize>, Vec<f64>) = top.into_iter().unzip();
        Ok((integers(py, columns), array(py, masses)))
    }

    /// The sums of the rows and those of the columns, computed.
    fn marginals<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let [x, y] = self.quietly(py, || self.coupling.marginals())?.map_err(raised)?;
        Ok((array(py, x), array(py, y)))
    }

    /// Coupled points: `count` pairs (i, j), drawn independently with the probabilities of the plan.
    #[pyo3(signature = (count, seed=0))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: isize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let count = number(count)?;
        let pairs = self.quietly(py, || self.coupling.sample(count, seed))?.map_err(raised)?;
        integers(py, pairs.into_iter().flatten().collect()).reshape([count, 2])
    }

    /// All entries as a matrix; refused if they are too many for the memory.
    fn to_dense<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let entries = self.quietly(py, || self.coupling.to_dense())?.map_err(raised)?;
        rows(py, entries, self.coupling.shape().columns)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Object<'py>>,
        copy: Option<bool>,
    ) -> PyResult<Object<'py>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("a plan is not stored: its array is always a copy"));
        }
        let dense = self.to_dense(py)?.into_any();
        match dtype {
            None => Ok(dense),
            Some(dtype) => dense.call_method1("astype", (dtype,)),
        }
    }

    /// Where points go in the mean: those of x (or of y, with `cloud="y"`), or any others.
    #[pyo3(signature = (points=None, *, cloud="x"))]
    fn barycentric<'py>(
        &self,
        py: Python<'py>,
        points: Option<Object<'py>>,
        cloud: &str,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let side = side(cloud)?;
        let at = At::new(points.as_ref(), self, side)?;
        let points = at.points()?;
        let means = self.quietly(py, || match &points {
            None => self.coupling.barycentric(side),
            Some(points) => self.coupling.map_at(side, points),
        })?;
        rows(py, means.map_err(raised)?, self.measure(side.other()).dim())
    }

    /// Means of values of the other cloud; one column for a vector.
    #[pyo3(signature = (values, points=None, *, cloud="x"))]
    fn mean<'py>(
        &self,
        py: Python<'py>,
        values: &Object<'py>,
        points: Option<Object<'py>>,
        cloud: &str,
    ) -> PyResult<Object<'py>> {
        let side = side(cloud)?;
        let at = At::new(points.as_ref(), self, side)?;
        let is_vector =
            values.getattr("ndim").and_then(|n| n.extract()).is_ok_and(|n: usize| n == 1);
        let (values, columns) = if is_vector {
            (vector("values", values)?, 1)
        } else {
            let matrix = Matrix::new("values", values)?;
            (matrix.to_f64(), matrix.columns())
        };
        let points = at.points()?;
        let means = self.quietly(py, || match &points {
            None => self.coupling.conditional_mean(side, &values, columns),
            Some(points) => self.coupling.conditional_mean_at(side, points, &values, columns),
        })?;
        let means = means.map_err(raised)?;
        Ok(if is_vector {
            array(py, means).into_any()
        } else {
            rows(py, means, columns)?.into_any()
        })
    }

    /// The likeliest label of every point, and its probability. Labels may be anything that NumPy can sort.
    #[pyo3(signature = (labels, points=None, *, cloud="x"))]
    fn vote<'py>(
        &self,
        py: Python<'py>,
        labels: &Object<'py>,
        points: Option<Object<'py>>,
        cloud: &str,
    ) -> PyResult<(Object<'py>, Bound<'py, PyArray1<f64>>)> {
        let side = side(cloud)?;
        let at = At::new(points.as_ref(), self, side)?;
        let points = at.points()?;
        let options = PyDict::new(py);
        options.set_item("return_inverse", true)?;
        let (distinct, numbers): (Object<'py>, Object<'py>) =
            py.import("numpy")?.call_method("unique", (labels,), Some(&options))?.extract()?;
        let numbers: Vec<usize> = numbers.call_method0("ravel")?.extract()?;
        let votes = self.quietly(py, || match &points {
            None => self.coupling.vote(side, &numbers),
            Some(points) => self.coupling.vote_at(side, points, &numbers),
        })?;
        let votes = votes.map_err(raised)?;
        let winners = integers(py, votes.iter().map(|v| v.label).collect());
        let probabilities = array(py, votes.iter().map(|v| v.probability).collect());
        Ok((distinct.get_item(winners)?, probabilities))
    }

    /// The largest partners of every point, -1 and 0 where there are fewer.
    #[pyo3(signature = (count, points=None, *, cloud="x"))]
    fn partners<'py>(
        &self,
        py: Python<'py>,
        count: isize,
        points: Option<Object<'py>>,
        cloud: &str,
    ) -> PyResult<Partners<'py>> {
        let count = number(count)?;
        let side = side(cloud)?;
        let at = At::new(points.as_ref(), self, side)?;
        let points = at.points()?;
        // More than there are is as many as there are.
        let count = count.min(self.measure(side.other()).weights().len());
        let found = self.quietly(py, || match &points {
            None => self.coupling.partners(side, count),
            Some(points) => self.coupling.partners_at(side, points, count),
        })?;
        let found = found.map_err(raised)?;
        let padded = |row: Vec<(usize, f64)>| {
            let pairs = row.into_iter().map(|(j, p)| (j.try_into().unwrap_or(-1), p));
            pairs.chain(std::iter::repeat((-1, 0.0))).take(count)
        };
        let height = found.len();
        let (indices, shares): (Vec<i64>, Vec<f64>) = found.into_iter().flat_map(padded).unzip();
        Ok((
            PyArray1::from_vec(py, indices).reshape([height, count])?,
            PyArray1::from_vec(py, shares).reshape([height, count])?,
        ))
    }

    /// The potential of x (or of y) as a function of position, at any points.
    #[pyo3(signature = (points, *, cloud="x"))]
    fn potential<'py>(
        &self,
        py: Python<'py>,
        points: Object<'py>,
        cloud: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let side = side(cloud)?;
        let at = At::new(Some(&points), self, side)?;
        let Some(points) = at.points()? else { unreachable!("given") };
        let potential = self.quietly(py, || self.coupling.potential_at(side, &points))?;
        Ok(array(py, potential.map_err(raised)?))
    }

    /// Derivatives of `value_kl`, or of `value`.
    #[pyo3(signature = (by=None, *, of="value_kl"))]
    fn gradient(slf: &Bound<'_, Self>, by: Option<Object<'_>>, of: &str) -> PyResult<Gradient> {
        let (py, this) = (slf.py(), slf.get());
        let by = by.map_or_else(|| Ok(vec![By::Points(Side::X)]), |names| By::list(&names))?;
        let of_value = match of {
            "value" => true,
            "value_kl" => false,
            other => {
                let message = format!("of must be 'value_kl' or 'value', got '{other}'");
                return Err(PyValueError::new_err(message));
            }
        };
        let dims = [this.measure(Side::X).dim(), this.measure(Side::Y).dim()];
        let done = this.quietly(py, || {
            let derivatives = this.coupling.gradient();
            let derivatives = if of_value { derivatives.of_value()? } else { derivatives };
            found(&derivatives, &by, dims)
        })?;
        let solution = this.coupling.solution();
        let value = if of_value { solution.value } else { solution.value_kl };
        let result = this.solution(py)?.into_any();
        let found = as_given(done.map_err(raised)?, &this.setting.columns);
        Gradient::new(py, value, found, result)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduced(py)
    }

    /// The same as a table for notebooks.
    fn _repr_html_(&self) -> String {
        let (rows, columns) = self.shape();
        let solution = self.coupling.solution();
        lines(Lines::new().add("shape", format!("{rows} x {columns}"), ""), solution).html("Plan")
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = self.shape();
        let s = self.coupling.solution();
        let converged = if s.converged() { "converged" } else { s.stop.as_str() };
        format!(
            "Plan(shape=({rows}, {columns}), method='{}', epsilon={}, value={}, {converged})",
            s.method.as_str(),
            s.epsilon,
            s.value
        )
    }
}

/// How many, as Python counts.
fn number(count: isize) -> PyResult<usize> {
    count.try_into().map_err(|_| {
        PyValueError::new_err(format!("count must be an integer that is not negative, got {count}"))
    })
}

/// Numbers of points for Python.
fn integers(py: Python<'_>, values: Vec<usize>) -> Indices<'_> {
    // No cloud has 2^63 points.
    let values = values.into_iter().map(|i| i64::try_from(i).unwrap_or(-1)).collect();
    PyArray1::from_vec(py, values)
}
