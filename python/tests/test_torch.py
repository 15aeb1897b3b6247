"""PyTorch: gradients by `gradcheck`, modules, training. Skipped where it is not installed (its wheel is half a gigabyte)."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import orthant  # noqa: E402
from orthant.torch import LearnedFeatures, SinkhornDivergence, feature_divergence, sinkhorn_divergence  # noqa: E402

EXACT = {"method": "online", "tolerance": 1e-12}


def tensor(*shape, seed=0, grad=True, low=None):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) if low is None else rng.uniform(low, 1.0, size=shape)
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def test_gradcheck_by_points_and_weights():
    x, y, a, b = tensor(6, 2), tensor(5, 2, seed=1), tensor(6, seed=2, low=0.3), tensor(5, seed=3, low=0.3)
    assert torch.autograd.gradcheck(lambda x, y: sinkhorn_divergence(x, y, 0.5, **EXACT), (x, y))
    assert torch.autograd.gradcheck(
        lambda a, x, b, y: sinkhorn_divergence(x, y, 0.5, a, b, **EXACT), (a, x, b, y)
    )
    assert torch.autograd.gradcheck(
        lambda a, x, b, y: sinkhorn_divergence(x, y, 0.5, a, b, of="value_kl", **EXACT), (a, x, b, y)
    )
    assert torch.autograd.gradcheck(
        lambda a, x, b, y: sinkhorn_divergence(x, y, 0.5, a, b, reach=1.0, **EXACT), (a, x, b, y)
    )


def test_gradcheck_by_anchors():
    x, y, anchors = tensor(6, 2), tensor(5, 2, seed=1), tensor(8, 2, seed=2)
    assert torch.autograd.gradcheck(
        lambda x, y, u: sinkhorn_divergence(x, y, 1.0, anchors=u, q=2.0, tolerance=1e-12), (x, y, anchors)
    )


def test_gradcheck_by_features():
    xi, zeta, a = tensor(6, 4, low=0.2), tensor(5, 4, seed=1, low=0.2), tensor(6, seed=2, low=0.3)
    assert torch.autograd.gradcheck(
        lambda xi, zeta, a: feature_divergence(xi, zeta, 0.7, a, tolerance=1e-12), (xi, zeta, a)
    )


def test_learned_features_are_those_of_the_library():
    features = LearnedFeatures(2, 30, epsilon=0.8, radius=2.0, dtype=torch.float64)
    x, y = tensor(20, 2), tensor(15, 2, seed=1)
    theirs = orthant.FeatureMap.gaussian(features.anchors.detach(), 0.8, q=features.q)
    np.testing.assert_allclose(features.log_features(x).detach(), theirs.log_features(x.detach()), rtol=1e-12)
    # The same gradient, by the envelope theorem through the map, and by autograd through explicit features.
    loss = SinkhornDivergence(features=features, tolerance=1e-12)
    one = torch.autograd.grad(loss(x, y), [x, features.anchors])
    other = torch.autograd.grad(
        feature_divergence(features(x), features(y), 0.8, tolerance=1e-12), [x, features.anchors]
    )
    for g, h in zip(one, other):
        torch.testing.assert_close(g, h, rtol=1e-6, atol=1e-9)


def test_calls():
    x, y = tensor(30, 2), tensor(20, 2, seed=1)
    a, b = tensor(30, seed=2, low=0.3, grad=False), tensor(20, seed=3, low=0.3, grad=False)
    loss = SinkhornDivergence(0.5, **EXACT)
    expected = orthant.divergence(x.detach(), y.detach(), 0.5, **EXACT).value
    assert loss(x, y).item() == pytest.approx(expected, rel=1e-9)
    weighted = loss(a, x, b, y)
    assert weighted.item() == pytest.approx(
        orthant.divergence(x.detach(), y.detach(), 0.5, a, b, **EXACT).value, rel=1e-9
    )
    batch = loss(torch.stack([x, x + 1]), torch.stack([y, y]))
    assert batch.shape == (2,) and batch[0].item() == pytest.approx(expected, rel=1e-9)
    batch.sum().backward()
    assert x.grad.shape == x.shape
    assert loss(x.float(), y.float()).dtype == torch.float32
    assert "epsilon=0.5" in repr(loss) and loss.last.converged
    with pytest.raises(TypeError, match="got 3"):
        loss(x, y, y)
    with pytest.raises(ValueError, match="must be"):
        loss(x, torch.stack([y]))
    with pytest.raises(ValueError, match="belong to epsilon"):
        SinkhornDivergence(0.3, features=LearnedFeatures(2, 5, epsilon=0.4))


def test_a_tensor_with_gradient_is_not_taken_by_the_numpy_functions():
    with pytest.raises(TypeError, match="orthant.torch"):
        orthant.rot(tensor(3, 2), tensor(3, 2, grad=False), 0.5)


def test_non_contiguous_tensors():
    x, y = tensor(2, 30), tensor(20, 2, seed=1)
    loss = SinkhornDivergence(0.5, **EXACT)
    assert loss(x.T, y).item() == pytest.approx(loss(x.T.contiguous(), y).item(), rel=1e-12)


def test_training_reuses_potentials():
    x, y = tensor(200, 2), tensor(200, 2, seed=1, grad=False) * 0.5 + 2
    loss = SinkhornDivergence(0.2, method="online", solver="plain", tolerance=1e-8)
    values, iterations = [], []
    for _ in range(12):
        value = loss(x, y)
        (slope,) = torch.autograd.grad(value, [x])
        values.append(value.item())
        iterations.append(loss.last.iterations)
        with torch.no_grad():
            x -= 0.5 * 100 * slope
    assert values[-1] < 1e-2 * values[0]
    cold = SinkhornDivergence(0.2, reuse=False, method="online", solver="plain", tolerance=1e-8)
    assert cold.last is None and cold(x, y).item() == pytest.approx(loss(x, y).item(), rel=1e-5)
    fresh = orthant.divergence(x.detach(), y, 0.2, method="online", solver="plain", tolerance=1e-8)
    assert iterations[-1] < fresh.iterations


def test_a_kernel_can_be_learnt():
    """A few steps of the adversary: anchors that tell two clouds apart better."""
    x, y = tensor(100, 2, grad=False), tensor(100, 2, seed=1, grad=False) * 0.7
    features = LearnedFeatures(2, 40, epsilon=1.0, radius=3.0, dtype=torch.float64)
    loss = SinkhornDivergence(features=features, tolerance=1e-8)
    optimizer = torch.optim.Adam(features.parameters(), lr=0.02, maximize=True)
    values = []
    for _ in range(15):
        optimizer.zero_grad()
        value = loss(x, y)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] > 1.05 * values[0]
