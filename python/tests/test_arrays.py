"""Layouts, types and tables: the right answer, or an error that says what to do."""

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import orthant


def value(x, y, **settings):
    return orthant.rot(x, y, 0.5, method="online", **settings).value


@pytest.fixture
def expected(clouds):
    x, y, _, _ = clouds
    # An oracle that knows nothing of layouts: the cost matrix.
    cost = ((x[:, None] - y) ** 2).sum(axis=2)
    return orthant.rot(None, None, 0.5, cost=cost).value


def strided(x):
    wide = np.full((2 * x.shape[0], 3 * x.shape[1]), np.nan)
    wide[::2, ::3] = x
    return wide[::2, ::3]


def misaligned(x):
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[:] = x
    return view


@pytest.mark.parametrize(
    "layout",
    [
        np.ascontiguousarray,
        np.asfortranarray,
        strided,
        misaligned,
        lambda x: x[::-1][::-1],
        lambda x: np.ascontiguousarray(x[::-1])[::-1],
        lambda x: np.ascontiguousarray(x.T).T,
        lambda x: x.astype(">f8"),
        lambda x: x.astype(np.longdouble),
        lambda x: x.tolist(),
        pytest.param(np.asmatrix, marks=pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")),
        lambda x: pd.DataFrame(x),
        lambda x: pd.DataFrame(x).convert_dtypes(),
        lambda x: pa.table(dict(zip("pqr", x.T.copy()))),
        lambda x: pa.RecordBatch.from_pydict(dict(zip("pqr", x.T.copy()))),
        lambda x: pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 3),
    ],
)
def test_every_layout_is_the_same_cloud(clouds, expected, layout):
    x, y, _, _ = clouds
    assert value(layout(x), y) == pytest.approx(expected, rel=1e-6)
    assert value(x, layout(y)) == pytest.approx(expected, rel=1e-6)
    assert value(layout(x), layout(y)) == value(x, y)


def test_single_precision_in_every_layout(clouds, expected):
    x, y = (c.astype(np.float32) for c in clouds[:2])
    first = value(x, y)
    assert first == pytest.approx(expected, rel=1e-5)
    assert value(np.asfortranarray(x), strided(y).astype(np.float32)) == first
    assert value(pd.DataFrame(x), y) == first
    assert value(x.astype(np.float64), y.astype(np.float64)) == first


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint16, bool, np.float16])
def test_whole_numbers_are_converted(kind):
    x = np.arange(12).reshape(6, 2) % 7
    y = (np.arange(10).reshape(5, 2) * 3) % 5
    x, y = x.astype(kind), y.astype(kind)
    assert value(x, y) == value(x.astype(float), y.astype(float))


def test_weights_of_any_kind(clouds):
    x, y, a, _ = clouds
    counts = np.round(a * 5000).astype(int)
    first = orthant.rot(x, y, 0.5, counts / counts.sum()).value
    for weights in [counts, counts.tolist(), pd.Series(counts), pa.array(counts), np.repeat(counts, 2)[::2]]:
        assert orthant.rot(x, y, 0.5, weights).value == pytest.approx(first, rel=1e-12)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (lambda x: x[:, 0], ValueError, r"x\[:, None\]"),
        (lambda x: x[None], ValueError, r"x.reshape\(len\(x\), -1\)"),
        (lambda x: 3.0, ValueError, "single number"),
        (lambda x: x.astype(object), TypeError, r"astype\(float\)"),
        (lambda x: x.astype(complex), TypeError, "complex"),
        (lambda x: x.astype(str), TypeError, "text"),
        (lambda x: np.ma.masked_less(x, 0.0), TypeError, "masked"),
        (lambda x: x.astype("M8[s]"), TypeError, "times"),
        (lambda x: np.zeros(3, dtype=[("p", float), ("q", float)]), TypeError, "structured"),
        (lambda x: [[1.0, 2.0], [3.0]], TypeError, "cannot be made an array"),
        (lambda x: None, TypeError, "points are needed"),
        (lambda x: "points.csv", TypeError, "text"),
        (lambda x: x[:0], ValueError, "no points"),
        (lambda x: x[:, :0], ValueError, "no coordinates"),
        (lambda x: np.where(x > 2, np.nan, x), ValueError, r"x: point \d+, coordinate \d is NaN.*counted from 1"),
        (lambda x: np.where(x > 2, np.inf, x), ValueError, "inf"),
        (lambda x: x[:, :2], ValueError, "2 and 3 coordinates"),
        (lambda x: pd.DataFrame(x).assign(name="a"), TypeError, r"'name' \("),
        (lambda x: pd.DataFrame(x).where(lambda t: t < 2), ValueError, "NaN"),
        (lambda x: pa.table({"p": ["a", "b"]}), TypeError, "'p' "),
        (lambda x: pa.table({"p": [1.0, None]}), ValueError, "NaN"),
    ],
)
def test_bad_points_say_what_to_do(clouds, bad, error, message):
    x, y, _, _ = clouds
    with pytest.raises(error, match=message):
        orthant.rot(bad(x), y, 0.5)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (np.ones(299), ValueError, "299 weights for the 300 points of x"),
        (np.ones((300, 1)), ValueError, r"ravel\(\)"),
        (-np.ones(300), ValueError, "weights of x"),
        (np.zeros(300), ValueError, "all weights are zero"),
        (["a"] * 300, TypeError, "text"),
    ],
)
def test_bad_weights_say_what_to_do(clouds, weights, error, message):
    x, y, _, _ = clouds
    with pytest.raises(error, match=message):
        orthant.rot(x, y, 0.5, weights)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_no_copy_of_arrays_in_c_order(kind):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(200_000, 4)).astype(kind) for _ in range(2))

    def allocated(x, y):
        """Bytes that NumPy asked for at most; the library's own do not count here."""
        tracemalloc.start()
        orthant.rot(x, y, 50.0, method="gaussian", rank=4, certify=False, max_iterations=1, solver="plain")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    allocated(x, y)
    assert allocated(x, y) < 0.1 * x.nbytes
    assert allocated(np.asfortranarray(x), y) >= x.nbytes


def test_inputs_are_not_changed_and_plans_do_not_follow_them(clouds):
    x, y, _, _ = (c.copy() for c in clouds)
    x.flags.writeable = False
    plan = orthant.plan(x, y, 0.5)
    before = plan.row(3), plan.barycentric(x[:4])
    y[:] = 100.0
    np.testing.assert_array_equal(plan.row(3), before[0])
    np.testing.assert_array_equal(plan.barycentric(x[:4]), before[1])


def test_tables_of_polars(clouds, expected):
    pl = pytest.importorskip("polars")
    x, y, a, _ = clouds
    table = pl.DataFrame(x, schema=["p", "q", "r"])
    assert value(table, y) == value(x, y) == pytest.approx(expected, rel=1e-6)
    assert value(table.with_columns(pl.all().cast(pl.Float32)), y) == value(x.astype(np.float32), y)
    assert orthant.rot(table, y, 0.5, pl.Series(a)).value == orthant.rot(x, y, 0.5, a).value
    with pytest.raises(TypeError, match="'name'"):
        value(table.with_columns(pl.lit("a").alias("name")), y)
    with pytest.raises(TypeError, match="collect"):
        value(table.lazy(), y)


def test_files(plane, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa, ds = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    x, y = plane
    expected = orthant.rot(x, y, 0.5).value
    table = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1]}), table)
    np.save(tmp_path / "x.npy", x)
    for given in [table, str(table), tmp_path / "x.npy", pq.ParquetFile(table), ds.dataset(table)]:
        assert orthant.rot(given, y, 0.5).value == expected
    pq.write_table(pa.table({"a": x[:, 0], "name": ["n"] * len(x)}), table)
    with pytest.raises(TypeError, match=r"hold no numbers: 'name' \(string\)"):
        orthant.rot(table, y, 0.5)
    with pytest.raises(TypeError, match=r"must end in .parquet or .npy"):
        orthant.rot("x.csv", y, 0.5)
    with pytest.raises(FileNotFoundError):
        orthant.rot(tmp_path / "none.parquet", y, 0.5)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((row for row in [[1.0, 2.0]]), TypeError, "x is a generator, and an array is needed"),
        ({1.0, 2.0}, TypeError, "x is a set"),
        (3.0, ValueError, "x is a single number"),
    ],
)
def test_what_is_no_array_says_so(given, error, message):
    with pytest.raises(error, match=message):
        orthant.rot(given, [[0.0, 1.0]], 0.5)


def test_sparse_matrices_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    for x in [sparse.eye(2).tocsr(), sparse.eye_array(2)]:
        with pytest.raises(TypeError, match="x is sparse.*toarray"):
            orthant.rot(x, np.eye(2), 0.5)


def test_a_list_of_no_clouds_is_refused():
    for function in [orthant.barycenter, orthant.compare]:
        with pytest.raises(ValueError, match="list of clouds is empty"):
            function([])
