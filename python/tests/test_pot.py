"""The adapter against POT itself."""

import numpy as np
import ot
import pytest

import orthant.pot


def test_solve_sample(clouds):
    x, y, a, b = clouds
    theirs = ot.solve_sample(x, y, a, b, reg=0.5, max_iter=100_000, tol=1e-12)
    ours = orthant.pot.solve_sample(x, y, a, b, reg=0.5, tol=1e-12)
    assert ours.value == pytest.approx(float(theirs.value), rel=1e-6)
    assert ours.value_linear == pytest.approx(float(theirs.value_linear), rel=1e-6)
    np.testing.assert_allclose(ours.plan, theirs.plan, atol=1e-10)
    # Potentials are unique up to a constant that goes from one to the other.
    shift = ours.potentials[0][0] - theirs.potentials[0][0]
    np.testing.assert_allclose(ours.potentials[0], theirs.potentials[0] + shift, atol=1e-6)
    np.testing.assert_allclose(ours.potentials[1], theirs.potentials[1] - shift, atol=1e-6)
    np.testing.assert_allclose(ours.marginal_a, a, atol=1e-9)
    np.testing.assert_allclose(ours.marginal_b, b, atol=1e-9)
    np.testing.assert_allclose(x + ours.a_to_b, ours.plan @ y / a[:, None], atol=1e-6)
    np.testing.assert_allclose(y + ours.b_to_a, ours.plan.T @ x / b[:, None], atol=1e-6)
    assert ours.status == "converged" and "converged" in repr(ours) and ours.log["niter"] > 0


def test_lazy_plans(clouds):
    x, y, a, b = clouds
    lazy = orthant.pot.sinkhorn(a, b, x, y, 0.5).lazy_plan
    dense = np.asarray(lazy)
    assert lazy.shape == dense.shape
    for key in [3, (3, 4), slice(2, 9, 3), (slice(5), slice(3)), (slice(None), 7), (2, slice(4)), slice(0, 0)]:
        np.testing.assert_allclose(lazy[key], dense[key], rtol=1e-9, atol=0)


def test_sinkhorn2(clouds):
    x, y, a, b = clouds
    theirs = ot.sinkhorn2(a, b, ot.dist(x, y), 0.5, method="sinkhorn_log", numItermax=100_000, stopThr=1e-12)
    value, result = orthant.pot.sinkhorn2(a, b, x, y, 0.5, log=True)
    assert value == pytest.approx(theirs, rel=1e-6) == result.value_linear
    assert orthant.pot.sinkhorn2(a, b, x, y, 0.5, method="lattice") == pytest.approx(theirs, rel=1e-2)


def test_unbalanced(clouds):
    x, y, a, b = clouds
    theirs = ot.solve_sample(x, y, 2 * a, b, reg=0.5, unbalanced=1.0, max_iter=100_000, tol=1e-12)
    ours = orthant.pot.solve_sample(x, y, 2 * a, b, reg=0.5, unbalanced=1.0)
    np.testing.assert_allclose(ours.plan, theirs.plan, atol=1e-8)


def test_divergence(clouds):
    x, y, a, b = clouds
    value, found = orthant.pot.empirical_sinkhorn_divergence(x, y, 0.5, a, b, log=True)
    assert value == found.value == pytest.approx(orthant.divergence(x, y, 0.5, a, b).value, rel=1e-5)


def test_other_metrics_are_refused(clouds):
    x, y, _, _ = clouds
    with pytest.raises(ValueError, match="sqeuclidean"):
        orthant.pot.solve_sample(x, y, metric="cityblock", reg=1.0)
