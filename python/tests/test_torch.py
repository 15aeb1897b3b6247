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


def penalty(x, y, loss):
    """A gradient penalty, as WGAN-GP has it, beside a loss that has a gradient anyway."""
    value = loss(x, y)
    (slope,) = torch.autograd.grad(value, [x], create_graph=True)
    return x.square().sum() + slope.square().sum()


def test_a_second_derivative_is_an_error():
    x, y = tensor(6, 2), tensor(5, 2, seed=1)
    loss = SinkhornDivergence(0.5, **EXACT)
    with pytest.raises(NotImplementedError, match="no second derivative.*detach"):
        penalty(x, y, loss).backward()
    xi, zeta = tensor(6, 4, low=0.2), tensor(5, 4, seed=1, low=0.2)
    with pytest.raises(NotImplementedError, match="no second derivative"):
        penalty(xi, zeta, lambda xi, zeta: feature_divergence(xi, zeta, 0.7)).backward()
    with pytest.raises(NotImplementedError, match="no second derivative"):
        torch.autograd.functional.hessian(lambda x: loss(x, y), x)


def test_create_graph_alone_is_no_second_derivative():
    x, y = tensor(6, 2), tensor(5, 2, seed=1)
    loss = SinkhornDivergence(0.5, **EXACT)
    (expected,) = torch.autograd.grad(loss(x, y), [x])
    (slope,) = torch.autograd.grad(loss(x, y), [x], create_graph=True)
    torch.testing.assert_close(slope, expected, rtol=1e-9, atol=1e-12)
    # What is detached is a number.
    (slope.detach().square().sum() + loss(x, y)).backward()
    torch.testing.assert_close(x.grad, expected, rtol=1e-9, atol=1e-12)


def test_points_may_change_between_the_two_passes():
    x, y = tensor(6, 2), tensor(5, 2, seed=1)
    value = sinkhorn_divergence(x, y, 0.5, **EXACT)
    with torch.no_grad():
        x += 1.0
    value.backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_are_computed_in_floats(kind):
    x, y = torch.tensor([[0, 1], [1, 1], [0, 0]]).to(kind), torch.tensor([[1, 0], [1, 1]]).to(kind)
    expected = orthant.divergence(x.double().numpy(), y.double().numpy(), 0.5, **EXACT).value
    assert expected != int(expected)
    for value in (SinkhornDivergence(0.5, **EXACT)(x, y), sinkhorn_divergence(x, y, 0.5, **EXACT)):
        assert value.dtype == torch.get_default_dtype() and value.item() == pytest.approx(expected, rel=1e-6)
    mixed = sinkhorn_divergence(x, y.double(), 0.5, **EXACT)
    assert mixed.dtype == torch.float64 and mixed.item() == pytest.approx(expected, rel=1e-9)
    weights = torch.tensor([1, 2, 3])
    assert sinkhorn_divergence(x, y, 0.5, weights, **EXACT).is_floating_point()


def test_a_default_epsilon_is_held_fixed_in_the_gradient():
    """By finite differences at that epsilon; those that choose it anew differ."""
    x, y = tensor(8, 2), tensor(6, 2, seed=1, grad=False)
    loss = SinkhornDivergence(**EXACT)
    (slope,) = torch.autograd.grad(loss(x, y), [x])
    epsilon = orthant.rot(x.detach().numpy(), y.numpy()).epsilon
    (fixed,) = torch.autograd.grad(SinkhornDivergence(epsilon, **EXACT)(x, y), [x])
    torch.testing.assert_close(slope, fixed, rtol=1e-7, atol=1e-10)
    direction, h = tensor(8, 2, seed=5, grad=False), 1e-5

    def difference(**more):
        values = [
            orthant.divergence((x + s * h * direction).detach().numpy(), y.numpy(), **more, **EXACT).value for s in (1, -1)
        ]
        return (values[0] - values[1]) / (2 * h)

    along = (slope * direction).sum().item()
    assert along == pytest.approx(difference(epsilon=epsilon), rel=1e-5)
    assert along != pytest.approx(difference(), rel=1e-3)
    for doc in (SinkhornDivergence.__doc__, sinkhorn_divergence.__doc__, orthant.torch.__doc__):
        assert "held fixed" in " ".join(doc.split())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SinkhornDivergence(-1.0), ValueError, "epsilon must be"),
        (lambda: SinkhornDivergence("small"), TypeError, "epsilon must be a number"),
        (lambda: SinkhornDivergence(0.1, blur=0.1), TypeError, r"SinkhornDivergence\(\).*'blur'; here it is epsilon"),
        (lambda: SinkhornDivergence(0.1, metod="online"), TypeError, "did you mean method"),
        (lambda: SinkhornDivergence(0.1, method="best"), ValueError, "method must be 'auto'"),
        (lambda: SinkhornDivergence(0.1, tolerance=-1), ValueError, "tolerance must be"),
        (lambda: SinkhornDivergence(0.1, threads=0), ValueError, "threads must be between"),
        (lambda: SinkhornDivergence(0.1, reach=-1), ValueError, "reach must be positive"),
        (lambda: SinkhornDivergence(0.1, of="it"), ValueError, "of must be"),
        (lambda: SinkhornDivergence(0.1, features=3), TypeError, "features must be LearnedFeatures"),
        (lambda: SinkhornDivergence(0.1, reuse="no"), TypeError, "reuse must be True or False"),
        (lambda: SinkhornDivergence(0.1, callback=3), TypeError, "callback must be a function"),
        (lambda: LearnedFeatures(0, 5), ValueError, "dim must be a positive integer, got 0"),
        (lambda: LearnedFeatures(2, 2.5), ValueError, "rank must be a positive integer, got 2.5"),
        (lambda: LearnedFeatures(2, 5, epsilon=-1.0), ValueError, "epsilon must be positive and finite, got -1.0"),
        (lambda: LearnedFeatures(2, 5, radius=float("nan")), ValueError, "radius must be"),
        (lambda: LearnedFeatures(2, 5, eps=1.0), TypeError, r"LearnedFeatures\(\).*'eps'; here it is epsilon"),
        (lambda: LearnedFeatures(2, 5, dtype=torch.int64), TypeError, "dtype must be one of floating point"),
    ],
)
def test_constructors_check_their_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_constructors_take_what_is_right():
    SinkhornDivergence(0.1, anchors="sobol", rank=100, of="value_kl", threads=1, progress=False, reach=(1.0, None))
    SinkhornDivergence(method="lattice", accuracy=1e-2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda loss, x, y: loss(x.numpy(), y), TypeError, r"^x is a NumPy array, and a tensor is needed: torch.as_tensor\(x\)$"),
        (lambda loss, x, y: loss(x, y.tolist()), TypeError, "^y is a list of 20, and a tensor is needed"),
        (lambda loss, x, y: loss(x[None][:0], y[None][:0]), ValueError, "^the batch is empty"),
        (lambda loss, x, y: loss(x[:0], y), ValueError, "no points"),
        (lambda loss, x, y: loss(x[:, 0], y), ValueError, r"^x must be of shape \(n, d\).*got \(30,\)"),
        (lambda loss, x, y: loss(x.cfloat(), y), TypeError, "^x is complex"),
        (lambda loss, x, y: loss(torch.ones(30, 1), x, torch.ones(20), y), ValueError, r"^a must be of shape \(30,\)"),
        (lambda loss, x, y: loss(torch.ones(30), x, torch.ones(3), y), ValueError, r"^b must be of shape \(20,\)"),
        (lambda loss, x, y: loss(torch.ones(30), x[None], torch.ones(20), y[None]), ValueError, r"^a must be of shape \(1, 30\)"),
        (lambda loss, x, y: loss(x, torch.ones(30), y, torch.ones(20)), ValueError, "^x must be of shape"),
        (lambda loss, x, y: loss(torch.ones(30).numpy(), x, None, y), TypeError, "^a is a NumPy array"),
        (lambda loss, x, y: sinkhorn_divergence(x.numpy(), y), TypeError, "^x is a NumPy array"),
        (lambda loss, x, y: sinkhorn_divergence(x, y, 0.5, torch.ones(30, 1)), ValueError, "^a must be of shape"),
        (lambda loss, x, y: sinkhorn_divergence(x, y, reg=0.5), TypeError, r"^sinkhorn_divergence\(\).*here it is epsilon"),
        (lambda loss, x, y: feature_divergence(x.abs().numpy(), y.abs()), TypeError, "^xi is a NumPy array"),
        (lambda loss, x, y: feature_divergence(x.abs(), y[0]), ValueError, r"^zeta must be of shape \(m, r\)"),
    ],
)
def test_what_is_no_tensor_of_the_right_shape_gets_one_line(call, error, message):
    x, y = tensor(30, 2, grad=False), tensor(20, 2, seed=1, grad=False)
    with pytest.raises(error, match=message) as raised:
        call(SinkhornDivergence(0.5), x, y)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 200
