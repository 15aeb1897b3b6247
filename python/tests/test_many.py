"""Barycentres, comparisons, tests and flows."""

import numpy as np
import ot
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

import orthant


def test_barycenter_is_that_of_pot():
    grid = np.linspace(0, 1, 60)[:, None]
    bumps = [np.exp(-((grid[:, 0] - c) ** 2) / 0.01) + 1e-9 for c in (0.2, 0.7)]
    bumps = [b / b.sum() for b in bumps]
    expected = ot.bregman.barycenter(
        np.stack(bumps, axis=1), ot.dist(grid, grid), 0.01, weights=np.array([0.3, 0.7]),
        method="sinkhorn_log", numItermax=100_000, stopThr=1e-12,
    )  # fmt: skip
    found = orthant.barycenter(
        [(grid, bumps[0]), (grid, bumps[1])], 0.01, [3, 7], support=grid, method="online", tolerance=1e-10
    )
    np.testing.assert_allclose(found.weights, expected, atol=1e-7)
    assert found.converged and found.weights.sum() == pytest.approx(1.0)
    assert found.distances @ [0.3, 0.7] == pytest.approx(found.value)
    assert found.softmax(100.0).sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(found.points, grid)


def test_free_barycenter_of_translates():
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = orthant.barycenter(
        [triangle, triangle + [4, 0]], 0.1, free=triangle + 0.3, debiased=True, tolerance=1e-9
    )
    np.testing.assert_allclose(found.points, triangle + [2, 0], atol=2e-3)
    assert found.rest == "still" and found.value < found.first
    seven = orthant.barycenter([triangle, triangle + 1], 0.1, free=7, max_steps=3)
    assert seven.points.shape == (7, 2) and seven.steps <= 3


def test_comparison_is_that_of_pairs(plane):
    x, y = plane
    clouds = [x, y, (x + 1, np.arange(400.0))]
    found = orthant.compare(clouds, 0.5, tolerance=1e-9)
    matrix = found.matrix
    assert found.complete and found.converged and found.count == 3
    assert matrix[0, 1] == pytest.approx(orthant.divergence(x, y, 0.5, tolerance=1e-9).value, rel=1e-6)
    assert matrix[0, 2] == pytest.approx(
        orthant.divergence(x, x + 1, 0.5, None, np.arange(400.0), tolerance=1e-9).value, rel=1e-6
    )
    np.testing.assert_array_equal(matrix, matrix.T)
    assert (found.intervals[..., 0] <= matrix).all() and (matrix <= found.intervals[..., 1]).all()
    np.testing.assert_allclose(found.linkage(), linkage(squareform(matrix), "average"))
    assert found.leaves() in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0])
    points, share = found.embedding()
    assert points.shape == (3, 2) and 0 < share <= 1
    assert [(p.first, p.second) for p in found.pairs] == [(0, 1), (0, 2), (1, 2)]


def test_a_comparison_goes_on(plane):
    clouds = [*plane, plane[0] + 1]
    part = orthant.compare(clouds, 0.5, callback=lambda done: done.done == 1)
    assert not part.complete and len(part.pairs) == 1
    with pytest.raises(ValueError, match="finished=this"):
        part.matrix
    whole = orthant.compare(clouds, 0.5, finished=part)
    np.testing.assert_array_equal(whole.matrix, orthant.compare(clouds, 0.5).matrix)


def test_lists_of_clouds_are_checked(plane):
    x, y = plane
    with pytest.raises(TypeError, match="list of clouds"):
        orthant.compare(x, 0.5)
    with pytest.raises(TypeError, match="list of clouds"):
        orthant.compare(3, 0.5)
    with pytest.raises(ValueError, match="at least two"):
        orthant.compare([x], 0.5)
    with pytest.raises(ValueError, match="cloud 1: point 1, coordinate 1 is NaN"):
        orthant.compare([x, np.full((2, 2), np.nan)], 0.5)
    with pytest.raises(ValueError, match="tuple of 3"):
        orthant.compare([x, (y, y, y)], 0.5)
    with pytest.raises(ValueError, match="support is for points that stay"):
        orthant.barycenter([x, y], 0.5, support=x, free=3)
    with pytest.raises(TypeError, match="not a matrix"):
        orthant.compare([x, y], 0.5, cost=x)


def test_two_sample_test():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 3)), rng.normal(size=(70, 3))
    far = orthant.two_sample_test(x, y + 1, permutations=99)
    assert far.pvalue == far.resolution == 0.01 and far.exceeding == 0
    near = orthant.two_sample_test(x, y, permutations=99, seed=1)
    assert near.pvalue > 0.05
    own = orthant.divergence(x, y, accuracy=1e-2, seed=1)
    assert (near.value, near.interval.low, near.interval.high) == (own.value, own.interval.low, own.interval.high)
    assert near.interval.low <= near.value <= near.interval.high
    assert "value" in repr(near) and f"{near.interval.kind}" in repr(near)
    assert near.null.shape == (99,) and near.permutations == 99
    assert near.quantile(0.0) <= np.median(near.null) <= near.quantile(1.0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        near.quantile(2)
    stopped = orthant.two_sample_test(x, y, permutations=10_000, callback=lambda done: True)
    assert stopped.stop == "requested" and stopped.permutations < 10_000
    assert stopped.interval is None and stopped.value == stopped.statistic


def test_flow():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) * 0.5 + 3
    steps = []
    found = orthant.flow(x, y, 0.1, max_steps=20, each=lambda step: steps.append((step.value, step.points)))
    assert found.value < 0.01 * found.first and found.value == found.divergence.value
    assert [v for v, _ in steps] == sorted((v for v, _ in steps), reverse=True)
    np.testing.assert_array_equal(steps[0][1], x)
    np.testing.assert_array_equal(steps[-1][1], found.points)
    stopped = orthant.flow(x, y, 0.1, callback=lambda done: done.done == 2)
    assert stopped.steps == 2 and stopped.rest == "requested"
    with pytest.raises(ValueError, match="step must be"):
        orthant.flow(x, y, 0.1, step=-1)
