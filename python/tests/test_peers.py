"""Conventions, against OTT-JAX and GeomLoss where they are installed."""

import numpy as np
import pytest

import orthant

EXACT = {"method": "online", "tolerance": 1e-11}


def test_geomloss(clouds):
    torch = pytest.importorskip("torch")
    geomloss = pytest.importorskip("geomloss")
    x, y, a, b = clouds
    x, y, a, b = x[:50], y[:40], a[:50] / a[:50].sum(), b[:40] / b[:40].sum()
    epsilon = 0.5
    torch.set_num_threads(1)
    tensors = [torch.tensor(t) for t in (a, x, b, y)]
    blur = (epsilon / 2) ** 0.5

    def loss(debias, **more):
        settings = {"p": 2, "blur": blur, "debias": debias, "scaling": 0.999, "backend": "tensorized"}
        return geomloss.SamplesLoss("sinkhorn", **settings, **more)(*tensors).item()

    # GeomLoss anneals epsilon and does nothing else: errors fall with the square of 1 - scaling.
    apart = orthant.divergence(x, y, epsilon, a, b, **EXACT)
    assert 2 * loss(True) == pytest.approx(apart.value, rel=1e-6)
    assert 2 * loss(False) == pytest.approx(orthant.rot(x, y, epsilon, a, b, **EXACT).value_kl, rel=1e-6)
    # With relaxed marginals they do not fall any more below a few millionths.
    assert 2 * loss(True, reach=1.5) == pytest.approx(
        orthant.divergence(x, y, epsilon, a, b, reach=1.5, **EXACT).value, rel=1e-5
    )


def test_ott(clouds):
    jax = pytest.importorskip("jax")
    pytest.importorskip("ott")
    jax.config.update("jax_enable_x64", True)
    from ott.geometry import pointcloud
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import sinkhorn

    x, y, a, b = clouds
    geometry = pointcloud.PointCloud(x, y, epsilon=0.5)
    problem = linear_problem.LinearProblem(geometry, a=a, b=b)
    theirs = sinkhorn.Sinkhorn(threshold=1e-10, max_iterations=100_000)(problem)
    ours = orthant.rot(x, y, 0.5, a, b, **EXACT)
    assert ours.value_kl == pytest.approx(float(theirs.reg_ot_cost), rel=1e-6)
    # Their potentials are eps log u, as `potentials`, up to a constant.
    f = np.asarray(theirs.f)
    shift = ours.potential_x[0] - f[0]
    np.testing.assert_allclose(ours.potential_x, f + shift, atol=1e-5)
