"""Results are frozen and readable."""

import numpy as np
import pytest

import orthant


def everything(plane):
    x, y = plane
    x, y = x[:60], y[:50]
    yield orthant.rot(x, y, 0.5)
    yield orthant.divergence(x, y, 0.5)
    yield orthant.compare([x, y, x + 1], 0.5)
    yield orthant.two_sample_test(x, y, permutations=19)
    yield orthant.flow(x, y, 0.5, max_steps=2)
    yield orthant.barycenter([x, y], 0.5)
    yield orthant.barycenter([x, y], 0.5, free=10, max_steps=2)


def test_repr_and_html(plane):
    for result in everything(plane):
        text, page = repr(result), result._repr_html_()
        assert text.startswith(type(result).__name__ + "\n") and "epsilon" in text
        assert page.startswith("<table>") and page.endswith("</table>") and "epsilon" in page
        assert page.count("<tr>") == len(text.splitlines()) - 1


def test_results_are_frozen(plane):
    for result in everything(plane):
        for name in [n for n in dir(result) if not n.startswith("_") and not callable(getattr(result, n))]:
            with pytest.raises(AttributeError):
                setattr(result, name, 1)
            value = getattr(result, name)
            if isinstance(value, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    value[...] = 0
    with pytest.raises((TypeError, AttributeError)):
        orthant.Solution()


def test_intervals(plane):
    interval = orthant.rot(*plane, 0.5, method="lattice").interval
    low, high = interval
    assert (low, high, high - low) == (interval.low, interval.high, interval.width)
    assert low in interval and high + 1 not in interval
    assert interval == interval and interval.kind == "bound"
    assert repr(interval) == f"Interval({low}, {high}, kind='bound')"


def test_a_certificate_is_there_unless_it_is_not_wanted(plane):
    exact = orthant.rot(*plane, 0.5, method="online")
    found = orthant.rot(*plane, 0.5, anchors="sobol", rank=500)
    assert found.interval.kind == "sampled" and exact.value in found.interval
    assert orthant.rot(*plane, 0.5, anchors="sobol", rank=500, certify=False).interval is None
    assert exact.keeps(1e-3)


def test_fields(plane):
    found = orthant.rot(*plane, 0.5)
    assert found.reason and found.rank > 0 and found.builds >= 0 and found.stages >= 1
    assert found.mass == pytest.approx(1.0) and found.rho == (np.inf, np.inf)
    assert max(found.marginal_errors) < 1e-6 and found.polished is None
    assert len(found.times) == 2 and found.potentials[0] is found.potential_x
    apart = orthant.divergence(*plane, 0.5)
    assert apart.kernels == "exact" and apart.cross is apart.cross and apart.method == "online"
    f, g = apart.potentials
    assert f.shape == (400,) and g.shape == (500,)
    assert f.mean() + g.mean() == pytest.approx(apart.value, rel=1e-5)
