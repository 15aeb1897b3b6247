"""Tables are matched by the names of their columns, whatever their order; objects of cells by their principal components."""

import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import orthant

NAMES = ["age", "height", "weight"]


def polars_table(x, names):
    return pytest.importorskip("polars").DataFrame(x, schema=names)


def arrow_table(x, names):
    return pa.table(dict(zip(names, x.T.copy())))


def pandas_table(x, names):
    return pd.DataFrame(x, columns=names)


TABLES = [pandas_table, polars_table, arrow_table]


@pytest.fixture
def wide():
    """Clouds whose columns have very different scales: what is matched by position is far off."""
    rng = np.random.default_rng(0)
    scale = np.array([1.0, 10.0, 100.0])
    return rng.normal(size=(60, 3)) * scale, rng.normal(size=(50, 3)) * scale + scale


def turned(table, x, names):
    """The same cloud with its columns in another order."""
    return table(x[:, [2, 0, 1]], [names[2], names[0], names[1]])


@pytest.mark.parametrize("table", TABLES)
def test_a_cloud_is_at_no_distance_from_itself_with_other_columns(wide, table):
    x, _ = wide
    found = orthant.divergence(table(x, NAMES), turned(table, x, NAMES), 50.0, tolerance=1e-9)
    assert found.value == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("first", TABLES)
@pytest.mark.parametrize("second", TABLES)
def test_every_function_of_two_clouds(wide, first, second):
    x, y = wide
    a, b = first(x, NAMES), turned(second, y, NAMES)
    given = {"tolerance": 1e-9}
    assert orthant.rot(a, b, 50.0, **given).value == orthant.rot(x, y, 50.0, **given).value
    assert orthant.divergence(a, b, 50.0, **given).value == orthant.divergence(x, y, 50.0, **given).value
    np.testing.assert_array_equal(orthant.map(a, b, 50.0), orthant.map(x, y, 50.0))
    np.testing.assert_array_equal(
        orthant.map(a, b, 50.0, at=turned(first, x[:5], NAMES)), orthant.map(x, y, 50.0, at=x[:5])
    )
    moved = orthant.flow(a, b, 50.0, max_steps=2)
    np.testing.assert_array_equal(moved.points, orthant.flow(x, y, 50.0, max_steps=2).points)
    test = orthant.two_sample_test(a, b, permutations=19)
    assert test.statistic == orthant.two_sample_test(x, y, permutations=19).statistic
    plan, plain = orthant.plan(a, b, 50.0), orthant.plan(x, y, 50.0)
    assert plan.columns == NAMES and plain.columns is None and plan.dim == 3
    for points in (turned(first, x[:4], NAMES), turned(second, x[:4], NAMES)):
        np.testing.assert_array_equal(plan.barycentric(points), plain.barycentric(x[:4]))
        np.testing.assert_array_equal(plan.potential(points), plain.potential(x[:4]))
        np.testing.assert_array_equal(plan.barycentric(points, cloud="y"), plain.barycentric(x[:4], cloud="y"))


@pytest.mark.parametrize("table", TABLES)
def test_gradients_have_the_columns_in_which_points_were_given(wide, table):
    x, y = wide
    plain = orthant.gradient(x, y, 50.0, by=("x", "y"))
    found = orthant.gradient(table(x, NAMES), turned(table, y, NAMES), 50.0, by=("x", "y"))
    np.testing.assert_array_equal(found.x, plain.x)
    np.testing.assert_array_equal(found.y, plain.y[:, [2, 0, 1]])
    plan = orthant.plan(table(x, NAMES), turned(table, y, NAMES), 50.0, tolerance=1e-9)
    of_plan = orthant.plan(x, y, 50.0, tolerance=1e-9).gradient("y").y
    np.testing.assert_array_equal(plan.gradient("y").y, of_plan[:, [2, 0, 1]])


@pytest.mark.parametrize("table", TABLES)
def test_lists_of_clouds(wide, table):
    x, y = wide
    clouds = [table(x, NAMES), turned(table, y, NAMES), (turned(table, x + 1, NAMES), np.ones(60))]
    plain = [x, y, (x + 1, np.ones(60))]
    np.testing.assert_array_equal(orthant.compare(clouds, 50.0).matrix, orthant.compare(plain, 50.0).matrix)
    support = turned(table, x, NAMES)
    found = orthant.barycenter(clouds, 50.0, support=support, max_iterations=5)
    expected = orthant.barycenter(plain, 50.0, support=x, max_iterations=5)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.points, x)
    free = orthant.barycenter(clouds, 50.0, free=(support, np.ones(60)), max_steps=2)
    expected = orthant.barycenter(plain, 50.0, free=(x, np.ones(60)), max_steps=2)
    np.testing.assert_array_equal(free.points, expected.points)
    with pytest.raises(TypeError, match="list of clouds"):
        orthant.compare(table(x, NAMES), 50.0)


def test_estimators_pot_and_feature_maps(wide):
    x, y = wide
    a, b = pandas_table(x, NAMES), turned(pandas_table, y, NAMES)
    plain = orthant.OptimalTransportMap(50.0).fit(x, y)
    fitted = orthant.OptimalTransportMap(50.0).fit(a, b)
    assert list(fitted.feature_names_in_) == NAMES == list(fitted.get_feature_names_out())
    np.testing.assert_array_equal(fitted.transform(turned(pandas_table, x[:9], NAMES)), plain.transform(x[:9]))
    np.testing.assert_array_equal(fitted.inverse_transform(turned(pandas_table, y, NAMES)), plain.inverse_transform(y))
    with pytest.raises(ValueError, match=r"the plan has the columns \['age', 'height', 'weight'\] and points has \['a'"):
        fitted.transform(pandas_table(x, ["a", "b", "c"]))
    theirs = orthant.pot.solve_sample(a, b, reg=50.0)
    ours = orthant.pot.solve_sample(x, y, reg=50.0)
    np.testing.assert_array_equal(theirs.a_to_b, ours.a_to_b)
    np.testing.assert_array_equal(theirs.b_to_a, ours.b_to_a)
    maps = orthant.FeatureMap.paper(a, b, 50.0, 10), orthant.FeatureMap.paper(x, y, 50.0, 10)
    np.testing.assert_array_equal(maps[0](x), maps[1](x))


@pytest.mark.parametrize("table", TABLES)
def test_different_names_are_an_error_that_lists_both(wide, table):
    x, y = wide
    one, other = table(x, NAMES), table(y, ["age", "height", "income"])
    expected = (
        r"^x has the columns \['age', 'height', 'weight'\] and y has \['age', 'height', 'income'\]: select the same "
        r"columns of both, or pass .to_numpy\(\) of them to match by position$"
    )
    for function in (orthant.rot, orthant.divergence, orthant.plan, orthant.gradient, orthant.map, orthant.flow):
        with pytest.raises(ValueError, match=expected):
            function(one, other, 50.0)
    with pytest.raises(ValueError, match="cloud 0 has the columns .* and cloud 1 has"):
        orthant.compare([one, other], 50.0)
    with pytest.raises(ValueError, match="at has"):
        orthant.map(one, one, 50.0, at=other)
    with pytest.raises(ValueError, match="support has"):
        orthant.barycenter([one, one], 50.0, support=other)
    with pytest.raises(ValueError, match="points has"):
        orthant.plan(one, one, 50.0).barycentric(other)


def test_by_position_on_request_and_without_names(wide):
    x, y = wide
    expected = orthant.rot(x, y, 50.0).value
    one, other = pd.DataFrame(x, columns=NAMES), pd.DataFrame(y, columns=["p", "q", "r"])
    assert orthant.rot(one.to_numpy(), other.to_numpy(), 50.0).value == expected
    assert orthant.rot(one, y, 50.0).value == expected
    # Names that a library gives to columns without names go with any others.
    assert orthant.rot(pd.DataFrame(x), other, 50.0).value == expected
    assert orthant.rot(one, pd.DataFrame(y), 50.0).value == expected
    assert orthant.rot(pd.DataFrame(x), polars_table(y, [f"column_{k}" for k in range(3)]), 50.0).value == expected
    assert orthant.plan(pd.DataFrame(x), y, 50.0).columns is None
    # But among themselves numbers are names too.
    frame = pd.DataFrame(x)
    assert orthant.divergence(frame, frame[[2, 0, 1]], 50.0, tolerance=1e-9).value == pytest.approx(0.0, abs=1e-6)
    plan = orthant.plan(frame, pd.DataFrame(y), 50.0)
    np.testing.assert_array_equal(plan.barycentric(frame[[2, 0, 1]]), plan.barycentric(x))


def test_names_that_appear_twice_and_many_names(wide):
    x, y = wide
    same = pd.DataFrame(x, columns=["p", "p", "q"]), pd.DataFrame(y, columns=["p", "p", "q"])
    assert orthant.rot(*same, 50.0).value == orthant.rot(x, y, 50.0).value
    with pytest.raises(ValueError, match="two of them are named 'p'"):
        orthant.rot(same[0], pd.DataFrame(y, columns=["q", "p", "p"]), 50.0)
    genes = [f"gene{k}" for k in range(200)]
    many = pd.DataFrame(np.zeros((3, 200)), columns=genes), pd.DataFrame(np.ones((3, 200)), columns=[*genes[:-1], "other"])
    with pytest.raises(ValueError, match=r"x has the columns \['gene199'\].* and y has \['other'\]") as error:
        orthant.rot(*many, 1.0)
    assert len(str(error.value)) < 300


def test_text_is_refused_by_name(wide):
    x, y = wide
    with pytest.raises(TypeError, match=r"y has columns that hold no numbers: 'name' \("):
        orthant.divergence(pd.DataFrame(x, columns=NAMES), pd.DataFrame(y, columns=NAMES).assign(name="a"), 50.0)
    many = pd.DataFrame({f"t{k}": ["a"] for k in range(100)})
    with pytest.raises(TypeError, match="'t11' .* and 88 more"):
        orthant.rot(many, y, 50.0)


class Cells:
    """As AnnData: rows and columns on request, slowly, and coordinates by name."""

    def __init__(self, **obsm):
        self.obs, self.obsm = {}, obsm
        self.shape = (10**6, 30_000)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        raise AssertionError("one cell after the other takes minutes")


def test_objects_of_cells(wide):
    x, y = wide
    cells = Cells(X_umap=x[:, :2], X_pca=x), Cells(X_pca=pd.DataFrame(y))
    assert orthant.divergence(*cells, 50.0).value == orthant.divergence(x, y, 50.0).value
    assert orthant.compare(list(cells), 50.0).matrix[0, 1] == orthant.compare([x, y], 50.0).matrix[0, 1]
    fitted = orthant.OptimalTransportMap(50.0).fit(*cells)
    assert fitted.transform(cells[0]).shape == x.shape
    begun = time.monotonic()
    with pytest.raises(TypeError, match=r"^x \(Cells\) has no obsm\['X_pca'\].*obsm has x.obsm\['X_umap'\], x.obsm\['X_tsne'\]$"):
        orthant.rot(Cells(X_umap=x, X_tsne=x), y, 50.0)
    with pytest.raises(TypeError, match="obsm has nothing"):
        orthant.rot(x, Cells(), 50.0)
    with pytest.raises(TypeError, match="list of clouds"):
        orthant.compare(cells[0])
    assert time.monotonic() - begun < 5
