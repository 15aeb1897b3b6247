"""Costs of two points and epsilon as a part of their scale, against SciPy, POT and OTT."""

import pickle

import numpy as np
import ot
import pytest
from scipy.spatial.distance import cdist

import orthant

A = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])


def clouds():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(40, 3)) + 0.5, 0.7 * rng.normal(size=(30, 3)) - [0.2, 0.4, 1.0]
    a, b = rng.uniform(0.1, 1, 40), rng.uniform(0.1, 1, 30)
    return x, y, a / a.sum(), b / b.sum()


COSTS = {
    "sqeuclidean": lambda x, y: cdist(x, y, "sqeuclidean"),
    "cosine": lambda x, y: cdist(x, y, "cosine"),
    "dot": lambda x, y: -x @ y.T,
    "euclidean": lambda x, y: cdist(x, y, "euclidean"),
    "l1": lambda x, y: cdist(x, y, "cityblock"),
    "lp:3.5": lambda x, y: cdist(x, y, "minkowski", p=3.5),
    "geodesic": lambda x, y: np.arccos(np.clip(1 - cdist(x, y, "cosine"), -1, 1)),
}


def all_costs():
    yield from COSTS.items()
    yield ("mahalanobis", A), lambda x, y: cdist(x, y, "mahalanobis", VI=A) ** 2
    yield (lambda u, v: abs(u[0] - v[0]) + np.cos(u[1] * v[1])), lambda x, y: (
        np.abs(x[:, :1] - y[:, 0]) + np.cos(x[:, 1:2] * y[:, 1])
    )


@pytest.mark.parametrize("cost, matrix", list(all_costs()))
def test_costs_are_those_of_scipy(cost, matrix):
    x, y, a, b = clouds()
    found = orthant.rot(x, y, 0.4, a, b, cost=cost, tolerance=1e-11)
    c = matrix(x, y)
    plan = ot.sinkhorn(a, b, c, 0.4, method="sinkhorn_log", stopThr=1e-13, numItermax=100_000)
    assert found.transport_cost == pytest.approx(np.sum(plan * c), abs=1e-8)
    kl = np.sum(plan * np.log(plan / np.outer(a, b)))
    assert found.value_kl == pytest.approx(np.sum(plan * c) + 0.4 * kl, abs=1e-8)
    assert found.plan_concentration == pytest.approx(kl / np.log(30), abs=1e-8)
    assert np.allclose(orthant.plan(x, y, 0.4, a, b, cost=cost, tolerance=1e-11).to_dense(), plan, atol=1e-9)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_names_are_those_of_pot(metric):
    x, y, a, b = clouds()
    found = orthant.rot(x, y, 0.4, a, b, cost=metric, tolerance=1e-11)
    by_matrix = orthant.rot(None, None, 0.4, a, b, cost=ot.dist(x, y, metric=metric), tolerance=1e-11)
    assert found.value_kl == pytest.approx(by_matrix.value_kl, abs=1e-9)


def test_costs_go_with_divergences_gradients_and_many_clouds():
    x, y, a, b = clouds()
    for cost, _ in all_costs():
        if not callable(cost):
            apart = orthant.divergence(x, y, 0.4, cost=cost, tolerance=1e-10).value
            assert apart > 0
            compared = orthant.compare([x, y], 0.4, cost=cost, tolerance=1e-10, method="dense").matrix
            assert compared[0, 1] == pytest.approx(apart, abs=1e-8), cost
            # A plan comes back with its cost.
            plan = orthant.plan(x, y, 0.4, cost=cost)
            assert pickle.loads(pickle.dumps(plan))[3, 4] == plan[3, 4]
            gradient = orthant.gradient(x, y, 0.4, a, b, by="x", cost=cost, method="dense", tolerance=1e-11)
            moved = x.copy()
            values = []
            for step in (1e-5, -1e-5):
                moved[3, 1] = x[3, 1] + step
                values.append(orthant.divergence(moved, y, 0.4, a, b, cost=cost, method="dense", tolerance=1e-11).value)
            assert gradient.x[3, 1] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-6), cost
    assert orthant.compare([x, y], cost="euclidean").matrix[0, 1] > 0
    with pytest.raises(TypeError, match="not a matrix"):
        orthant.compare([x, y], 0.1, cost=np.ones((40, 30)))


def test_bad_costs_are_errors_that_name_the_place():
    x, y, _, _ = clouds()
    zero = y.copy()
    zero[6] = 0
    for cost in ("cosine", "geodesic"):
        with pytest.raises(ValueError, match="point 7 is zero"):
            orthant.rot(x, zero, 0.1, cost=cost)
    with pytest.raises(ValueError, match="cost must be 'sqeuclidean'"):
        orthant.rot(x, y, 0.1, cost="manhattan")
    with pytest.raises(ValueError, match="at least 1"):
        orthant.rot(x, y, 0.1, cost="lp:0.5")
    with pytest.raises(ValueError, match="square"):
        orthant.rot(x, y, 0.1, cost=("mahalanobis", A[:2]))
    with pytest.raises(ValueError, match="3 x 3, got 2 x 2"):
        orthant.rot(x, y, 0.1, cost=("mahalanobis", A[:2, :2]))
    with pytest.raises(ValueError, match="negative eigenvalue"):
        orthant.rot(x, y, 0.1, cost=("mahalanobis", -A))
    with pytest.raises(ValueError, match="positive features cannot be had"):
        orthant.rot(x, y, 0.1, cost="l1", method="lattice")


@pytest.mark.parametrize("cost, matrix", list(all_costs()))
def test_epsilon_may_be_a_part_of_the_scale_of_the_cost(cost, matrix):
    x, y, a, b = clouds()
    c = matrix(x, y)
    mean = a @ c @ b
    deviation = np.sqrt(a @ (c - mean) ** 2 @ b)
    if cost != "dot":
        assert orthant.rot(x, y, "5%std", a, b, cost=cost).epsilon == pytest.approx(0.05 * deviation)
    both = np.concatenate([x, y])
    pooled = matrix(both, both)
    if cost != "dot":
        assert orthant.rot(x, y, "20%", cost=cost).epsilon == pytest.approx(0.2 * pooled.mean())
    given = orthant.rot(None, None, "5%std", a, b, cost=c)
    assert given.epsilon == pytest.approx(0.05 * deviation)


def test_five_percent_of_the_deviation_is_the_epsilon_of_ott():
    jax = pytest.importorskip("jax")
    pointcloud = pytest.importorskip("ott.geometry.pointcloud")
    jax.config.update("jax_enable_x64", True)
    x, y, _, _ = clouds()
    theirs = float(pointcloud.PointCloud(jax.numpy.asarray(x), jax.numpy.asarray(y)).epsilon)
    assert orthant.rot(x, y, "5%std").epsilon == pytest.approx(theirs, rel=1e-6)


def test_bad_parts_name_the_remedy():
    x, y, _, _ = clouds()
    for bad in ("5%foo", "five%", "-1%", "0%std"):
        with pytest.raises(ValueError, match="such as '5%std'"):
            orthant.rot(x, y, bad)
    with pytest.raises(ValueError, match="standard deviation is zero; give epsilon as a number"):
        orthant.rot(x[:1], y[:1], "5%std")
