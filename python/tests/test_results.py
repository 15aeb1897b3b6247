"""Results are frozen and readable."""

import copy
import pickle

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


def same(one, other):
    """Whether two results have the same fields."""
    # Of a gradient only what was asked for.
    for name in [n for n in dir(one) if not n.startswith("_") and hasattr(one, n)]:
        before, after = getattr(one, name), getattr(other, name)
        if callable(before):
            continue
        if type(before).__module__ == "orthant":
            same(before, after)
        elif isinstance(before, list) and before and type(before[0]).__module__ == "orthant":
            for pair in zip(before, after):
                same(*pair)
        else:
            np.testing.assert_equal(after, before)


def test_results_go_through_pickle(plane):
    x, y = plane
    more = [
        orthant.gradient(x[:30], y[:40], 0.5, by=("x", "b", "epsilon")),
        orthant.rot(x[:30], y[:40], 0.5, reach=(1.0, None), anchors="sobol", rank=300),
    ]
    for result in [*everything(plane), *more]:
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result) and repr(again) == repr(result)
        same(result, again)
        for name in ("x", "points", "potential_x", "null"):
            if hasattr(again, name):
                assert not getattr(again, name).flags.writeable
        assert repr(copy.deepcopy(result)) == repr(result)
    # They are as good as new.
    first = orthant.rot(x, y, 0.2, method="online", tolerance=1e-8)
    kept = pickle.loads(pickle.dumps(first))
    assert orthant.rot(x, y, 0.2, method="online", tolerance=1e-8, warm_start=kept).iterations <= 2
    some = orthant.compare([x, y, x + 1], 0.5, callback=lambda done: True)
    assert not some.complete
    assert orthant.compare([x, y, x + 1], 0.5, finished=pickle.loads(pickle.dumps(some))).complete


def test_what_cannot_be_unpickled_says_why(plane):
    make, (name, version, numbers, objects) = orthant.rot(*plane, 0.5).__reduce__()
    assert version == orthant.__version__
    with pytest.raises(ValueError, match="pickled by orthant 0.0.9"):
        make(name, "0.0.9", numbers, objects)
    with pytest.raises(ValueError, match="not those of a Solution"):
        make(name, version, numbers[:10], objects)
    with pytest.raises(AttributeError, match="Cat"):
        make("Cat", version, numbers, objects)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(orthant.plan(*plane, 0.5))


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
