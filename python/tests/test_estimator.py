"""The estimator, and scikit-learn's own tools with it where they are installed."""

import pickle

import numpy as np
import pytest

from orthant import OptimalTransportMap, plan


@pytest.fixture
def moved(plane):
    x = plane[0][:150]
    return x, x @ np.array([[1.5, 0.2], [0.2, 0.5]]) + 2


def test_fit_and_transform(moved):
    x, y = moved
    estimator = OptimalTransportMap(0.05, tolerance=1e-8)
    assert estimator.fit(x, y) is estimator
    np.testing.assert_array_equal(estimator.transform(x[:7]), plan(x, y, 0.05, tolerance=1e-8).barycentric(x[:7]))
    # The map of a positive definite matrix is optimal, and the estimator finds it but for the blur.
    assert np.abs(estimator.transform(x) - y).mean() < 0.15
    assert np.abs(estimator.inverse_transform(y) - x).mean() < 0.15
    np.testing.assert_allclose(estimator.fit_transform(x, y), estimator.transform(x), atol=1e-6)
    assert estimator.n_features_in_ == 2 and estimator.plan_.shape == (150, 150)


def test_pickle(moved):
    x, y = moved
    for settings in ({"method": "online"}, {"method": "lattice"}, {}):
        fitted = OptimalTransportMap(0.05, tolerance=1e-9, **settings).fit(x, y)
        again = pickle.loads(pickle.dumps(fitted))
        assert again.get_params() == fitted.get_params() and again.n_features_in_ == 2
        np.testing.assert_array_equal(again.transform(x[:9] + 0.1), fitted.transform(x[:9] + 0.1))
    assert pickle.loads(pickle.dumps(OptimalTransportMap(0.3))).epsilon == 0.3


def test_parameters():
    estimator = OptimalTransportMap(0.1, method="online")
    assert estimator.get_params()["method"] == "online"
    assert estimator.set_params(epsilon=0.2).epsilon == 0.2
    assert repr(estimator) == "OptimalTransportMap(epsilon=0.2, method='online')"
    with pytest.raises(ValueError, match="no parameter 'eps'"):
        estimator.set_params(eps=1)


def test_errors(plane):
    with pytest.raises(ValueError, match="not fitted"):
        OptimalTransportMap().transform([[0.0]])
    with pytest.raises(ValueError, match="needs Y"):
        OptimalTransportMap().fit(plane[0])


def test_with_scikit_learn(moved):
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.validation import check_is_fitted

    x, y = moved
    estimator = clone(OptimalTransportMap(0.05, seed=3))
    assert estimator.get_params() == OptimalTransportMap(0.05, seed=3).get_params()
    check_is_fitted(estimator.fit(x, y))
    pipeline = make_pipeline(StandardScaler(), OptimalTransportMap(0.05)).fit(x, y)
    assert pipeline.transform(x).shape == y.shape


def test_names_of_columns(moved):
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    x, y = moved
    table = pd.DataFrame(x, columns=["a", "b"])
    estimator = OptimalTransportMap(0.05).fit(table, pd.DataFrame(y, columns=["a", "b"])[["b", "a"]])
    assert list(estimator.feature_names_in_) == ["a", "b"] == list(estimator.get_feature_names_out())
    plain = OptimalTransportMap(0.05).fit(x, y).transform(x)
    np.testing.assert_array_equal(estimator.transform(table), plain)
    np.testing.assert_array_equal(estimator.transform(table[["b", "a"]]), plain)
    with pytest.raises(ValueError, match=r"the plan has the columns \['a', 'b'\] and points has \['a', 'c'\]"):
        estimator.transform(pd.DataFrame(x, columns=["a", "c"]))
    with pytest.raises(ValueError, match=r"x has the columns \['a', 'b'\] and y has \['c', 'd'\]"):
        estimator.fit(table, pd.DataFrame(y, columns=["c", "d"]))
    assert list(estimator.fit(pa.table({"e": x[:, 0], "f": x[:, 1]}), y).get_feature_names_out()) == ["e", "f"]
    estimator.fit(x, y)
    assert not hasattr(estimator, "feature_names_in_") and list(estimator.get_feature_names_out()) == ["x0", "x1"]


def test_pipelines_and_grids(moved):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import ParameterGrid
    from sklearn.pipeline import Pipeline

    x, y = moved
    pipeline = Pipeline([("map", OptimalTransportMap())])
    assert "OptimalTransportMap" in repr(pipeline)
    for parameters in ParameterGrid({"map__epsilon": [0.05, 0.1], "map__method": ["online", "auto"]}):
        assert pipeline.set_params(**parameters).fit(pd.DataFrame(x, columns=["a", "b"]), y).transform(
            pd.DataFrame(x, columns=["a", "b"])
        ).shape == x.shape
    with pytest.raises(NotFittedError):
        OptimalTransportMap().transform(x)
