"""Plans against the dense matrix that they stand for."""

import numpy as np
import pytest

import orthant


@pytest.fixture(params=["online", "lattice", "gaussian"])
def plan(plane, request):
    return orthant.plan(*plane, 0.5, method=request.param, tolerance=1e-9)


def test_entries_rows_and_columns(plane, plan):
    dense = plan.to_dense()
    assert plan.shape == dense.shape == (400, 500)
    assert plan[3, 7] == plan.entry(3, 7) == pytest.approx(dense[3, 7], rel=1e-9)
    assert plan[-1, -2] == pytest.approx(dense[-1, -2], rel=1e-9)
    np.testing.assert_allclose(plan.row(-1), dense[-1], rtol=1e-9)
    np.testing.assert_allclose(plan.column(2), dense[:, 2], rtol=1e-9)
    np.testing.assert_allclose(np.asarray(plan), dense)
    assert np.asarray(plan, dtype=np.float32).dtype == np.float32
    assert plan.mass() == pytest.approx(1.0) and dense.sum() == pytest.approx(1.0)
    for sums, axis in zip(plan.marginals(), [1, 0]):
        np.testing.assert_allclose(sums, dense.sum(axis=axis), rtol=1e-6)
    indices, masses = plan.top(4, 3)
    np.testing.assert_array_equal(indices, np.argsort(-dense[4])[:3])
    np.testing.assert_allclose(masses, dense[4][indices], rtol=1e-9)
    with pytest.raises(IndexError):
        plan.row(400)
    with pytest.raises(IndexError):
        plan.row(-401)
    with pytest.raises(TypeError, match="to_dense"):
        plan[0]


def test_means_are_those_of_rows(plane, plan):
    x, y = plane
    dense = plan.to_dense()
    rows = dense / dense.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(plan.barycentric(), rows @ y, atol=1e-6)
    np.testing.assert_allclose(plan.barycentric(x[:9]), (rows @ y)[:9], atol=1e-6)
    columns = dense / dense.sum(axis=0)
    np.testing.assert_allclose(plan.barycentric(cloud="y"), columns.T @ x, atol=1e-6)
    ages = np.arange(500.0)
    np.testing.assert_allclose(plan.mean(ages), rows @ ages, rtol=1e-6)
    table = np.stack([ages, ages**2], axis=1)
    np.testing.assert_allclose(plan.mean(table), rows @ table, rtol=1e-5)
    assert plan.mean(table, x[:3]).shape == (3, 2)
    with pytest.raises(ValueError, match="must be 500 x 1"):
        plan.mean(ages[:-1])
    with pytest.raises(ValueError, match="cloud must be"):
        plan.barycentric(cloud="z")


def test_votes_and_partners(plane, plan):
    _, y = plane
    dense = plan.to_dense()
    labels = np.where(y[:, 0] > 1, "right", "left")
    winners, shares = plan.vote(labels)
    rows = dense / dense.sum(axis=1, keepdims=True)
    right = rows @ (labels == "right")
    np.testing.assert_array_equal(winners, np.where(right > 0.5, "right", "left"))
    np.testing.assert_allclose(shares, np.maximum(right, 1 - right), rtol=1e-6)
    indices, probabilities = plan.partners(4)
    assert indices.shape == probabilities.shape == (400, 4)
    np.testing.assert_allclose(probabilities, -np.sort(-rows)[:, :4], rtol=1e-5)
    assert plan.partners(10**9, y[:2])[0].shape == (2, 500)


def test_samples(plan):
    pairs = plan.sample(20_000, seed=3)
    assert pairs.shape == (20_000, 2) and pairs.dtype == np.int64
    np.testing.assert_array_equal(pairs[:50], plan.sample(50, seed=3))
    # The first marginal: counts of 400 equal cells.
    counts = np.bincount(pairs[:, 0], minlength=400)
    assert ((counts - 50) ** 2 / 50).sum() < 520
    assert plan.sample(0).shape == (0, 2)
    with pytest.raises(MemoryError, match="draw fewer"):
        plan.sample(10**15)


def test_potentials_are_functions(plane, plan):
    x, y = plane
    np.testing.assert_allclose(plan.potential(x), plan.solution.potentials_kl[0], atol=1e-6)
    np.testing.assert_allclose(plan.potential(y, cloud="y"), plan.solution.potentials_kl[1], atol=1e-6)
    assert plan.solution is plan.solution and plan.value == plan.solution.value
    assert plan.transport_cost() == pytest.approx(plan.solution.transport_cost)
    assert "Plan(shape=(400, 500)" in repr(plan) and plan.converged


def test_map_is_the_barycentric_projection(plane):
    x, y = plane
    plan = orthant.plan(x, y, 0.5)
    np.testing.assert_array_equal(orthant.map(x, y, 0.5), plan.barycentric())
    np.testing.assert_array_equal(orthant.map(x, y, 0.5, at=y[:3]), plan.barycentric(y[:3]))
    np.testing.assert_array_equal(orthant.map(x, y, 0.5, back=True), plan.barycentric(cloud="y"))


def test_what_a_kernel_cannot_do_is_an_error(plane):
    x, y = plane
    plan = orthant.plan(None, None, 1.0, cost=np.abs(x[:, :1] - y[:, 0]))
    with pytest.raises(ValueError, match="says nothing of other points"):
        plan.barycentric([[0.0]])
    with pytest.raises(ValueError, match="either sign"):
        orthant.plan(x, y, 5.0, method="nystrom", rank=50).sample(3)


def test_plans_outlive_everything_they_were_made_from():
    def make():
        x = np.random.default_rng(0).normal(size=(50, 2))
        own = orthant.FeatureMap.paper(x, x, 1.0, 40)
        return orthant.plan(x, x + 1, 1.0, features=(own(x), own(x + 1)))

    plan = make()
    assert plan.to_dense().sum() == pytest.approx(1.0)


def test_bad_counts_and_points_say_what_is_wrong(plane):
    plan = orthant.plan(*plane, 0.5)
    for call in [lambda: plan.sample(-1), lambda: plan.top(0, -1), lambda: plan.partners(-2)]:
        with pytest.raises(ValueError, match="count must be an integer that is not negative"):
            call()
    for call in [plan.barycentric, plan.potential, lambda x: plan.partners(1, x)]:
        with pytest.raises(ValueError, match="points has 3 columns, and the points of the plan have 2 coordinates"):
            call(np.zeros((4, 3)))
    with pytest.raises(TypeError, match="points is None"):
        plan.potential(None)
