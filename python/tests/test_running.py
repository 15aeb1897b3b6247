"""How a solve runs: threads, signals, callbacks, bars, forks, warm starts."""

import builtins
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import orthant


@pytest.fixture
def slow():
    """A solve of many seconds: small epsilon, plain iterations."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2)) + 3
    return (x, y, 1e-3), {"method": "online", "solver": "plain", "max_iterations": 1_000_000, "tolerance": 1e-12}


def test_the_lock_is_released(slow):
    arguments, settings = slow
    ticks, done = 0, threading.Event()

    def solve():
        orthant.rot(*arguments, **settings, time_limit=0.5)
        done.set()

    thread = threading.Thread(target=solve)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.002)
    thread.join()
    assert ticks > 20


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("task", ["rot", "divergence", "plan", "gradient", "flow", "barycenter", "compare", "two_sample_test"])
def test_ctrl_c_ends_a_solve(task):
    clouds = "[x, y]" if task in ("barycenter", "compare") else "x, y"
    program = f"""
        import time, numpy as np, orthant
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2)) + 3
        settings = dict(method="online", solver="plain", max_iterations=1_000_000, tolerance=1e-12)
        print("ready", flush=True)
        try:
            orthant.{task}({clouds}, 1e-3, **settings)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.7)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert output == "interrupted\n"
    assert time.monotonic() - sent < 10


def test_a_callback_sees_iterations_and_may_end_the_solve(slow):
    arguments, settings = slow
    seen = []

    def callback(progress):
        seen.append((progress.term, progress.iteration, progress.value, progress.marginal_error))
        return progress.iteration == 5

    found = orthant.rot(*arguments, **settings, callback=callback)
    assert found.stop == "requested" and found.iterations == 5 and not found.converged
    assert [s[:2] for s in seen] == [("cross", k) for k in range(1, 6)]
    assert all(error > 0 for *_, error in seen)
    values = [value for *_, value, _ in seen]
    assert values == sorted(values) and values[-1] <= found.value + 1e-9


def test_terms_of_a_divergence_are_told_apart(plane):
    terms = set()
    orthant.divergence(*plane, 0.5, callback=lambda p: terms.add(p.term))
    assert terms == {"cross", "self_x", "self_y"}


def test_an_exception_of_a_callback_is_that_of_the_call(slow):
    arguments, settings = slow

    def callback(progress):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        orthant.rot(*arguments, **settings, callback=callback)
    with pytest.raises(KeyError, match="mine"):
        orthant.flow([[0.0]], [[1.0]], 0.1, each=callback)


def test_results_do_not_depend_on_the_number_of_threads(plane):
    for settings in [{"method": "online"}, {"method": "lattice"}, {"method": "gaussian", "rank": 100}]:
        one, three, all_ = (orthant.rot(*plane, 0.3, threads=n, **settings) for n in [1, 3, None])
        np.testing.assert_array_equal(one.potential_x, three.potential_x)
        np.testing.assert_array_equal(one.potential_x, all_.potential_x)
        assert one.value == three.value == all_.value


def _in_child(queue, x, y):
    queue.put(orthant.rot(x, y, 0.5).value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(plane):
    expected = orthant.rot(*plane, 0.5).value
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue, *plane))
    child.start()
    assert queue.get(timeout=60) == expected
    child.join(timeout=60)
    assert child.exitcode == 0


def test_threads_of_python_may_solve_at_once(plane):
    expected = orthant.divergence(*plane, 0.5).value
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(orthant.divergence(*plane, 0.5).value)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_a_warm_start_needs_fewer_iterations(plane):
    x, y = plane
    settings = {"method": "online", "solver": "plain", "tolerance": 1e-8}
    cold = orthant.rot(x, y, 0.2, **settings)
    warm = orthant.rot(x + 1e-6, y, 0.2, **settings, warm_start=cold)
    assert warm.iterations < 0.6 * cold.iterations
    first = orthant.divergence(x, y, 0.2, **settings)
    again = orthant.divergence(x, y, 0.2, **settings, warm_start=first)
    assert again.iterations <= 6 < first.iterations
    slope = orthant.gradient(x, y, 0.2, **settings)
    assert orthant.divergence(x, y, 0.2, **settings, warm_start=slope).iterations <= 6
    assert orthant.rot(x, y, 0.2, **settings, warm_start=first).iterations <= 2
    with pytest.raises(ValueError, match="must be"):
        orthant.rot(x[:-1], y, 0.2, **settings, warm_start=cold)


def test_a_bar_of_tqdm(plane, capfd):
    pytest.importorskip("tqdm")
    orthant.divergence(*plane, 0.05, progress=True)
    shown = capfd.readouterr().err
    assert "self_x" in shown and "error" in shown
    orthant.compare([*plane, plane[0] + 1], 0.5, progress=True)
    assert "pairs" in capfd.readouterr().err


def test_a_plain_line_without_tqdm(plane, capfd, monkeypatch):
    whole = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("tqdm"):
            raise ImportError(name)
        return whole(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    orthant.rot(*plane, 0.05, progress=True)
    shown = capfd.readouterr().err
    assert "cross: iteration" in shown and shown.endswith("\n")


def test_nothing_is_shown_unless_asked_for(plane, capfd):
    orthant.rot(*plane, 0.5)
    assert capfd.readouterr() == ("", "")


def test_import_is_quick_and_needs_only_numpy():
    program = """
        import sys, orthant
        heavy = {"torch", "jax", "pandas", "pyarrow", "sklearn", "ot", "tqdm", "scipy"} & set(sys.modules)
        assert not heavy, heavy
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
