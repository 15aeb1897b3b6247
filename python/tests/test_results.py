"""Results are frozen and readable."""

import copy
import pickle
import subprocess
import sys

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


def test_plans_and_gradients_in_notebooks(plane):
    plan = orthant.plan(*plane, 0.5)
    page = plan._repr_html_()
    assert page.startswith("<table>") and page.endswith("</table>")
    assert "400 x 500" in page and "value_kl" in page and "converged" in page
    slope = orthant.gradient(*plane, 0.5, by=("x", "epsilon"))
    page = slope._repr_html_()
    assert "array of shape (400, 2)" in page and page.count("<tr>") == len(repr(slope).splitlines()) - 1


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


def plans(plane):
    """A plan of every kind of kernel, and what it was made with."""
    x, y = plane
    a = np.arange(400.0)
    high = np.random.default_rng(3).normal(size=(2, 900, 6))
    own = orthant.FeatureMap.paper(x, y, 0.8, 60)
    yield "auto", orthant.plan(x, y)
    yield "auto, random", orthant.plan(high[0], high[1] + 1, 9.0, allow_exact=False, accuracy=0.02)
    yield "online", orthant.plan(x, y, 0.5, a, method="online")
    yield "dense, f32", orthant.plan(x.astype(np.float32), y, 0.5, method="dense", precision="f32")
    yield "lattice", orthant.plan(x, y, 0.5, method="lattice", accuracy=1e-5)
    yield "lattice of a rank", orthant.plan(x, y, 0.5, anchors="lattice", rank=500)
    yield "sobol", orthant.plan(x, y, 0.5, a, anchors="sobol", rank=300, seed=4)
    yield "adaptive", orthant.plan(x, y, 0.5, anchors="adaptive", rank=300, certify=True)
    yield "paper", orthant.plan(x, y, 0.5, anchors="paper", rank=300)
    yield "polished", orthant.plan(x, y, 0.5, anchors="sobol", rank=100, polish=True)
    yield "unbalanced", orthant.plan(x, y, 0.5, a, reach=(1.0, None))
    yield "nystrom", orthant.plan(x, y, 5.0, method="nystrom", rank=50)
    yield "arccos", orthant.plan(x, y, 1.0, method="arccos", rank=50)
    yield "a map", orthant.plan(x, y, 0.8, features=own)
    yield "two maps", orthant.plan(x, y, 0.8, features=(own, own))
    yield "anchors", orthant.plan(x, y, 0.8, anchors=x[:40], q=2.0)
    yield "features", orthant.plan(None, None, 0.8, a, features=(own(x), own(y)))
    yield "costs", orthant.plan(None, None, 0.8, cost=np.abs(x[:, :1] - y[:, 0]))
    yield "stopped", orthant.plan(x, y, 0.01, max_iterations=3, solver="plain")


def test_plans_go_through_pickle_bit_by_bit_and_are_not_solved_again(plane):
    x, _ = plane
    for name, plan in plans(plane):
        stored = pickle.dumps(plan)
        again = pickle.loads(stored)
        assert repr(again) == repr(plan), name
        same(plan.solution, again.solution)
        # The seconds of the first solve: nothing was solved.
        assert again.solution.times == plan.solution.times and again.shape == plan.shape
        np.testing.assert_array_equal(again.row(3), plan.row(3), err_msg=name)
        np.testing.assert_array_equal(again.column(-1), plan.column(-1), err_msg=name)
        assert again[5, 7] == plan[5, 7] and again.transport_cost() == plan.transport_cost(), name
        np.testing.assert_array_equal(again.marginals()[0], plan.marginals()[0], err_msg=name)
        if name != "nystrom":
            np.testing.assert_array_equal(again.sample(50, seed=2), plan.sample(50, seed=2), err_msg=name)
        if name not in ("features", "costs", "auto, random"):
            np.testing.assert_array_equal(again.barycentric(x[:9] + 0.1), plan.barycentric(x[:9] + 0.1), err_msg=name)
            np.testing.assert_array_equal(again.barycentric(cloud="y"), plan.barycentric(cloud="y"), err_msg=name)
            np.testing.assert_array_equal(again.gradient("a").a, plan.gradient("a").a, err_msg=name)
        # And once more: nothing is lost on the way.
        assert pickle.dumps(again) == pickle.dumps(pickle.loads(pickle.dumps(again))), name
        np.testing.assert_array_equal(copy.deepcopy(plan).row(2), plan.row(2), err_msg=name)


def test_a_pickled_plan_does_not_follow_its_arrays(plane):
    x, y = (c.copy() for c in plane)
    anchors, cost = x[:40].copy(), np.abs(x[:, :1] - y[:, 0])
    made = [orthant.plan(x, y, 0.8, anchors=anchors, q=2.0), orthant.plan(None, None, 0.8, cost=cost)]
    rows = [plan.row(0) for plan in made]
    x[:], y[:], anchors[:], cost[:] = 0.0, 0.0, 0.0, 0.0
    for plan, row in zip(made, rows):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(plan)).row(0), row)


def test_plans_of_tables_keep_their_names(plane):
    pd = pytest.importorskip("pandas")
    x, y = (pd.DataFrame(c, columns=["p", "q"]) for c in plane)
    plan = orthant.plan(x, y[["q", "p"]], 0.5)
    again = pickle.loads(pickle.dumps(plan))
    assert again.columns == ["p", "q"]
    np.testing.assert_array_equal(again.barycentric(x[["q", "p"]]), plan.barycentric())
    np.testing.assert_array_equal(again.gradient("y").y, plan.gradient("y").y)


def test_a_plan_goes_to_another_process(plane, tmp_path):
    """A file that a new interpreter reads."""
    plan = orthant.plan(*plane, 0.5, callback=lambda progress: None, progress=False)
    (tmp_path / "plan.pickle").write_bytes(pickle.dumps(plan))
    program = "import pickle, sys; plan = pickle.load(open(sys.argv[1], 'rb')); print(plan.row(7).tobytes().hex())"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "plan.pickle")], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == plan.row(7).tobytes().hex()


def test_feature_maps_go_through_pickle(plane):
    x, y = plane
    maps = [
        orthant.FeatureMap.paper(x, y, 0.8, 30),
        orthant.FeatureMap.gaussian(x[:20], 0.8, q=1.5),
        orthant.FeatureMap.arc_cosine(2, 30, seed=5),
        orthant.FeatureMap.linear(2),
    ]
    for own in maps:
        again = pickle.loads(pickle.dumps(own))
        assert repr(again) == repr(own) and again.q == own.q
        points = np.abs(x) + 0.1
        np.testing.assert_array_equal(again(points), own(points))


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
    assert apart.kernels == "exact" and apart.cross is apart.cross and apart.method == "dense"
    f, g = apart.potentials
    assert f.shape == (400,) and g.shape == (500,)
    assert f.mean() + g.mean() == pytest.approx(apart.value, rel=1e-5)
