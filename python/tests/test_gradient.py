"""Derivatives against central differences."""

import numpy as np
import pytest

import orthant

SETTINGS = {"tolerance": 1e-12, "method": "online"}


def slope(value, x, direction, h=1e-4):
    at = [value(x + k * h * direction) for k in (1, -1, 2, -2)]
    return (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * h)


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 0.5
    a, b = rng.uniform(0.5, 1.5, 30), rng.uniform(0.5, 1.5, 25)
    return x, y, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("of", ["divergence", "value_kl", "value"])
def test_by_points_weights_and_epsilon(small, of):
    x, y, a, b = small

    def value(x, y, a, b, epsilon=0.4):
        if of == "divergence":
            return orthant.divergence(x, y, epsilon, a, b, **SETTINGS).value
        return getattr(orthant.rot(x, y, epsilon, a, b, **SETTINGS), of)

    found = orthant.gradient(x, y, 0.4, a, b, by=("x", "y", "a", "b", "epsilon"), of=of, **SETTINGS)
    assert found.value == pytest.approx(value(x, y, a, b), rel=1e-10)
    rng = np.random.default_rng(1)
    d = rng.normal(size=x.shape)
    assert np.sum(found.x * d) == pytest.approx(slope(lambda x: value(x, y, a, b), x, d), rel=1e-6)
    d = rng.normal(size=y.shape)
    assert np.sum(found.y * d) == pytest.approx(slope(lambda y: value(x, y, a, b), y, d), rel=1e-6)
    # Weights are normalised, so the derivative is along what leaves their sum.
    d = rng.normal(size=a.shape) * a
    d -= d.sum() * a
    assert found.a @ d == pytest.approx(slope(lambda a: value(x, y, a, b), a, d), rel=1e-6)
    assert found.a @ a == pytest.approx(0.0, abs=1e-12)
    found_e = slope(lambda e: value(x, y, a, b, e), 0.4, 1.0)
    assert found.epsilon == pytest.approx(found_e, rel=1e-6)
    assert isinstance(found.result, orthant.Divergence if of == "divergence" else orthant.Solution)


def test_by_anchors(small):
    x, y, a, b = small
    anchors = np.random.default_rng(2).normal(size=(20, 2))
    settings = {"q": 2.0, "tolerance": 1e-12, "certify": False}

    def value(anchors):
        return orthant.divergence(x, y, 1.0, a, b, anchors=anchors, **settings).value

    found = orthant.gradient(x, y, 1.0, a, b, by="anchors", anchors=anchors, q=2.0, tolerance=1e-12)
    d = np.random.default_rng(3).normal(size=anchors.shape)
    assert found.anchors.shape == anchors.shape
    assert np.sum(found.anchors * d) == pytest.approx(slope(value, anchors, d), rel=1e-6)


def test_by_features(small):
    _, _, a, b = small
    rng = np.random.default_rng(4)
    xi, zeta = rng.uniform(0.2, 1.0, size=(30, 6)), rng.uniform(0.2, 1.0, size=(25, 6))

    def value(xi):
        return orthant.divergence(None, None, 1.0, a, b, features=(xi, zeta), tolerance=1e-12).value

    by = ("features_x", "features_y", "log_features_x")
    found = orthant.gradient(None, None, 1.0, a, b, features=(xi, zeta), by=by, tolerance=1e-12)
    d = rng.normal(size=xi.shape) * 0.1
    assert np.sum(found.features_x * d) == pytest.approx(slope(value, xi, d), rel=1e-6)
    np.testing.assert_allclose(found.log_features_x, found.features_x * xi, rtol=1e-7, atol=1e-15)
    assert found.features_y.shape == zeta.shape


def test_what_was_not_asked_for_is_not_there(small):
    x, y, a, b = small
    found = orthant.gradient(x, y, 0.4, a, b)
    assert found.x.shape == x.shape
    with pytest.raises(AttributeError, match="was not asked for"):
        found.y
    with pytest.raises(ValueError, match="by must be of"):
        orthant.gradient(x, y, 0.4, by="z")
    with pytest.raises(ValueError, match="of must be"):
        orthant.gradient(x, y, 0.4, of="it")
    assert "array of shape (30, 2)" in repr(found)


def test_a_gradient_of_a_plan(small):
    x, y, a, b = small
    plan = orthant.plan(x, y, 0.4, a, b, **SETTINGS)
    found = orthant.gradient(x, y, 0.4, a, b, of="value_kl", **SETTINGS)
    np.testing.assert_array_equal(plan.gradient().x, found.x)
    assert plan.gradient(("a",), of="value").value == plan.value


def test_single_precision(small):
    x, y, _, _ = small
    found = orthant.gradient(x.astype(np.float32), y, 0.4, precision="f32", method="dense")
    exact = orthant.gradient(x, y, 0.4, **SETTINGS)
    np.testing.assert_allclose(found.x, exact.x, atol=1e-4)
