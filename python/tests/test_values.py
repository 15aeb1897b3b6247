"""Values, potentials and conventions against POT, and against sums over dense plans."""

import numpy as np
import ot
import pytest

import orthant


def reference(x, y, a, b, epsilon):
    """<P, C>, the KL form, the paper's form and the plan, by POT."""
    cost = ot.dist(x, y)
    plan = ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", numItermax=100_000, stopThr=1e-13)
    linear = np.sum(plan * cost)
    kl = linear + epsilon * np.sum(plan * np.log(plan / np.outer(a, b)))
    return linear, kl, linear + epsilon * np.sum(plan * np.log(plan)), plan


@pytest.mark.parametrize("method", ["auto", "online", "dense"])
@pytest.mark.parametrize("epsilon", [0.3, 10.0])
def test_rot_is_that_of_pot(clouds, method, epsilon):
    x, y, a, b = clouds
    found = orthant.rot(x, y, epsilon, a, b, method=method, tolerance=1e-11)
    linear, kl, paper, _ = reference(x, y, a, b, epsilon)
    assert found.transport_cost == pytest.approx(linear, rel=1e-8)
    assert found.value_kl == pytest.approx(kl, rel=1e-8)
    assert found.value == pytest.approx(paper, rel=1e-8)
    assert float(found) == found.value and found.converged and found.stop == "converged"
    assert found.value in found.interval and found.interval.kind == "exact"


def test_divergence_is_that_of_pot(clouds):
    x, y, a, b = clouds
    values = [reference(*p, 1.0)[1] for p in [(x, y, a, b), (x, x, a, a), (y, y, b, b)]]
    found = orthant.divergence(x, y, 1.0, a, b, tolerance=1e-11)
    assert found.value == pytest.approx(values[0] - (values[1] + values[2]) / 2, rel=1e-7)
    assert [found.cross.value_kl, found.self_x.value_kl, found.self_y.value_kl] == pytest.approx(values)
    assert found.converged and found.value in found.interval


def test_potentials_give_the_plan(clouds):
    x, y, a, b = clouds
    found = orthant.rot(x, y, 0.5, a, b, tolerance=1e-11)
    f, g = found.potentials
    plan = np.exp((f[:, None] + g - ot.dist(x, y)) / 0.5)
    np.testing.assert_allclose(plan, reference(x, y, a, b, 0.5)[3], rtol=1e-6, atol=1e-12)
    f_kl, g_kl = found.potentials_kl
    np.testing.assert_allclose(f_kl, f - 0.5 * np.log(a))
    assert a @ f_kl + b @ g_kl == pytest.approx(found.value_kl)


def test_unbalanced_is_that_of_pot(clouds):
    x, y, a, b = clouds
    a, b = 2.0 * a, 3.0 * b
    found = orthant.rot(x, y, 0.5, a, b, rho=(1.5, 2.5), tolerance=1e-11)
    plan = ot.unbalanced.sinkhorn_unbalanced(
        a, b, ot.dist(x, y), 0.5, (1.5, 2.5), reg_type="kl", method="sinkhorn_stabilized", numItermax=100_000, stopThr=1e-13
    )
    assert found.mass == pytest.approx(plan.sum(), rel=1e-6)
    assert found.transport_cost == pytest.approx(np.sum(plan * ot.dist(x, y)), rel=1e-6)
    both = orthant.rot(x, y, 0.5, a, b, reach=1.0)
    assert both.rho == (2.0, 2.0)
    assert orthant.rot(x, y, 0.5, a, b, reach=(1.0, None)).rho == (2.0, np.inf)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "lattice"},
        {"anchors": "lattice", "rank": 3000},
        {"method": "gaussian", "rank": 4000},
        {"anchors": "adaptive", "rank": 1000},
        {"anchors": "iid", "rank": 4000},
        {"anchors": "orthogonal", "rank": 4000},
        {"anchors": "paper", "rank": 8000},
        {"method": "nystrom", "rank": 300},
        {"method": "lattice", "precision": "f32"},
        {"method": "gaussian", "rank": 500, "polish": True},
        {"solver": "plain"},
        {"solver": "accelerated"},
    ],
)
def test_every_method_is_near_the_exact_one(plane, settings):
    x, y = plane
    exact = orthant.rot(x, y, 0.5, method="online")
    found = orthant.rot(x, y, 0.5, **settings)
    assert found.converged
    assert found.value_kl == pytest.approx(exact.value_kl, rel=0.05)
    if found.interval is not None and found.interval.kind == "bound":
        assert exact.value in found.interval


def test_costs_and_features_of_ones_own(clouds):
    x, y, a, b = clouds
    cost = ot.dist(x, y, metric="euclidean")
    plan = ot.sinkhorn(a, b, cost, 0.2, method="sinkhorn_log", numItermax=100_000, stopThr=1e-12)
    for method in ["dense", "online", "auto"]:
        found = orthant.rot(None, None, 0.2, a, b, cost=cost, method=method, tolerance=1e-10)
        assert found.transport_cost == pytest.approx(np.sum(cost * plan), rel=1e-7)
    rng = np.random.default_rng(3)
    xi, zeta = rng.uniform(0.1, 1, size=(300, 20)), rng.uniform(0.1, 1, size=(200, 20))
    found = orthant.rot(None, None, 0.7, a, b, features=(xi, zeta), tolerance=1e-11)
    plan = ot.sinkhorn(a, b, -0.7 * np.log(xi @ zeta.T), 0.7, numItermax=100_000, stopThr=1e-14)
    np.testing.assert_allclose(
        np.exp((found.potentials[0][:, None] + found.potentials[1]) / 0.7) * (xi @ zeta.T), plan, rtol=1e-6
    )
    assert found.method == "explicit" and found.rank == 20


def test_feature_maps(plane):
    x, y = plane
    kernel = np.exp(-ot.dist(x, y) / 0.8)
    paper = orthant.FeatureMap.paper(x, y, 0.8, rank=20_000)
    assert np.abs(paper(x) @ paper(y).T - kernel).max() < 0.2
    assert paper.anchors.shape == (20_000, 2) and paper.q > 0
    own = orthant.FeatureMap.gaussian(paper.anchors[:500], 0.8, q=paper.q)
    np.testing.assert_allclose(np.exp(own.log_features(x)), own(x))
    found = orthant.rot(x, y, 0.8, features=own)
    same = orthant.rot(x, y, 0.8, anchors=paper.anchors[:500], q=paper.q)
    assert found.value == same.value and found.method == "map"
    pair = orthant.rot(x, y, 0.8, features=(own, own))
    assert pair.value == pytest.approx(found.value)
    explicit = orthant.rot(x, y, 0.8, features=(own(x), own(y)))
    assert explicit.value == pytest.approx(found.value, rel=1e-6)
    arc = orthant.FeatureMap.arc_cosine(2, 300, seed=5)
    assert orthant.rot(x, y, 1.0, features=arc).value == pytest.approx(
        orthant.rot(x, y, 1.0, method="arccos", rank=300, seed=5).value
    )
    positive = np.abs(x) + 0.1, np.abs(y) + 0.1
    linear = orthant.FeatureMap.linear(2)
    assert orthant.rot(*positive, features=linear).value == orthant.rot(*positive, method="linear").value
    assert repr(linear) == "FeatureMap.linear(dim=2, rank=2)"


def test_default_epsilon_is_a_part_of_the_mean_squared_distance(plane):
    x, y = plane
    # Of all points, whichever cloud they are of: one and the same for every function.
    points = np.concatenate([x, y])
    expected = pytest.approx(0.05 * ot.dist(points, points).mean())
    assert orthant.rot(x, y).epsilon == expected
    assert orthant.divergence(x, y).epsilon == expected
    assert orthant.two_sample_test(x, y, permutations=9).epsilon == expected
    assert orthant.compare([x, y]).epsilon == expected
    with pytest.raises(ValueError, match="all points coincide"):
        orthant.rot(np.zeros((3, 2)), np.zeros((4, 2)))


def test_breakdown_is_an_error_of_its_own():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 2)) * 5, rng.normal(size=(500, 2)) * 5 + 20
    with pytest.raises(orthant.BreakdownError, match="larger epsilon"):
        orthant.rot(x, y, 0.05, method="nystrom", rank=50)
    assert issubclass(orthant.BreakdownError, RuntimeError)


def test_limits_are_no_errors(plane):
    found = orthant.rot(*plane, 0.01, max_iterations=2, solver="plain")
    assert not found.converged and found.stop == "iteration_limit"
    assert found.iterations == 2


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"method": "best"}, ValueError, "method must be 'auto'"),
        ({"method": 3}, TypeError, "method must be a string"),
        ({"anchors": "best"}, ValueError, "anchors must be 'sobol'"),
        ({"solver": "best"}, ValueError, "solver must be"),
        ({"precision": "f16"}, ValueError, "precision must be"),
        ({"rank": -1}, ValueError, "rank must be a positive integer, got -1"),
        ({"rank": 0}, ValueError, "rank must be at least 1"),
        ({"rank": 2.5}, TypeError, "rank must be a positive integer"),
        ({"rank": 5, "method": "online"}, ValueError, "leave it out"),
        ({"tolerance": -1}, ValueError, "tolerance must be between 0 and 1"),
        ({"accuracy": 2}, ValueError, "accuracy must be"),
        ({"time_limit": -1}, ValueError, "time_limit"),
        ({"threads": 0}, ValueError, "threads must be"),
        ({"callback": 3}, TypeError, "callback must be a function"),
        ({"warm_start": 3}, TypeError, "warm_start must be"),
        ({"reach": -1.0}, ValueError, "reach must be positive"),
        ({"reach": 1.0, "rho": 1.0}, ValueError, "two ways"),
        ({"cost": np.ones((2, 2))}, ValueError, "."),
        ({"cost": np.ones((2, 2)), "anchors": "sobol"}, ValueError, "give one of them"),
        ({"features": np.ones((4, 2))}, ValueError, "one FeatureMap"),
        ({"features": (np.ones((4, 2)), -np.ones((4, 2)))}, ValueError, "positive"),
        ({"max_memory": 10, "method": "dense"}, MemoryError, "allowed"),
        ({"toleranze": 1}, TypeError, "did you mean tolerance"),
    ],
)
def test_bad_settings_say_what_to_do(settings, error, message):
    x = np.arange(8.0).reshape(4, 2)
    with pytest.raises(error, match=message):
        orthant.rot(x, x + 1, 0.5, **settings)


def test_bad_epsilon():
    x = np.ones((3, 2))
    for bad, error in [(-1, ValueError), (0, ValueError), (np.nan, ValueError), ("a", TypeError)]:
        with pytest.raises(error, match="epsilon must be"):
            orthant.rot(x, x + 1, bad)


@pytest.mark.parametrize("settings", [{"method": "online"}, {"method": "lattice"}, {"anchors": "sobol", "rank": 2000}])
def test_intervals_are_of_the_value_that_they_are_named_after(plane, settings):
    """An exact kernel, converged far beyond the others, is in both."""
    x, y = plane
    exact = orthant.rot(x, y, 0.5, method="dense", tolerance=1e-12)
    found = orthant.rot(x, y, 0.5, **settings)
    for value, interval in [("value", found.interval), ("value_kl", found.interval_kl)]:
        assert getattr(found, value) in interval and getattr(exact, value) in interval
    assert found.interval.width == pytest.approx(found.interval_kl.width, rel=1e-6)
    shift = found.value_kl - found.value
    assert found.interval.low + shift == pytest.approx(found.interval_kl.low, rel=1e-9)
    assert repr(found).splitlines()[1].count("in [") == repr(found).splitlines()[2].count("in [") == 1
    weights = np.full(400, 2.0 / 400)
    relaxed = orthant.rot(x, y, 0.5, weights, reach=1.0, **settings)
    exact = orthant.rot(x, y, 0.5, weights, reach=1.0, method="dense", tolerance=1e-12)
    assert relaxed.interval is None and relaxed.value_kl in relaxed.interval_kl and exact.value_kl in relaxed.interval_kl
    assert "in [" not in repr(relaxed).splitlines()[1] and "in [" in repr(relaxed).splitlines()[2]


def test_samples_hold_the_value_of_pot():
    rng = np.random.default_rng(3)
    scale = 1 / np.sqrt(1 + np.arange(12))
    x, y = rng.normal(size=(600, 12)) * scale, rng.normal(size=(500, 12)) * scale + 0.3
    a, b = np.full(600, 1 / 600), np.full(500, 1 / 500)
    epsilon = 0.2 * ot.dist(x, y).mean()
    _, kl, paper, _ = reference(x, y, a, b, epsilon)
    found = orthant.rot(x, y, epsilon, method="sampled", sample_size=120, samples=6)
    assert found.method == "sampled" and found.rank == 120
    assert kl in found.interval_kl and paper in found.interval and found.interval.kind == "sampled"
    sampling = found.sampling
    assert (sampling["size"], sampling["samples"], sampling["rows"]) == (120, 6, 512)
    assert abs(sampling["estimate"] - paper) <= 3 * sampling["stderr"]
    # Few points are better taken all.
    exact = orthant.rot(x, y, epsilon, method="sampled")
    assert exact.sampling is None and exact.method == "online" and exact.interval.kind == "exact"
    with pytest.raises(ValueError, match="the size of samples must be at least 2"):
        orthant.rot(x, y, epsilon, method="sampled", sample_size=1)
    # Marginals may be relaxed.
    truth = orthant.rot(x, y, epsilon, method="dense", reach=1.0).value_kl
    assert truth in orthant.rot(x, y, epsilon, method="sampled", sample_size=120, reach=1.0).interval_kl
