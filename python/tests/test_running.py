"""How a solve runs: threads, signals, callbacks, bars, forks, warm starts."""

import builtins
import os
import pickle
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
def test_ctrl_c_ends_a_solve(task, interruptible):
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


# Seconds or minutes, each in another phase.
PHASES = {
    "a pass over an exact kernel": "orthant.rot(x, y, 0.1, method='online')",
    "storing features": "orthant.rot(x, y, 2.0, method='gaussian', rank=2000, precision='f32', certify=False)",
    "a divergence of features": "orthant.divergence(x, y, 2.0, anchors='adaptive', rank=1000, precision='f32')",
    "the choice of a method": "orthant.rot(wide, wide + 1, 20.0, accuracy=1e-6, allow_exact=False)",
    "landmarks": "orthant.rot(x, y, 5.0, method='nystrom', rank=500)",
    "a pass over a lattice": "orthant.rot(many, many + 1, 2.0, method='lattice', accuracy=1e-3)",
    "features": "orthant.FeatureMap.paper(x, y, 2.0, 3000)(x)",
    "a sample": "plan.sample(2_000_000)",
    "a map": "plan.barycentric(many[:, :3])",
    "a potential": "plan.potential(many[:, :3], cloud='y')",
    "partners": "plan.partners(3, many[:, :3])",
    "votes": "plan.vote(np.arange(5000) % 500, many[:, :3])",
    "a gradient": "features.gradient(['x', 'y', 'epsilon'])",
    "a cost": "explicit.transport_cost()",
    "a dense plan": "lattice.to_dense()",
    "a comparison": "orthant.compare([x, y, x + 1], 2.0, method='gaussian', rank=1500)",
    "a test": "orthant.two_sample_test(x[:20_000], y[:20_000], 2.0, method='gaussian', rank=1500)",
    "a barycentre": "orthant.barycenter([x, y], 2.0, method='online')",
    "a flow": "orthant.flow(x, y, 2.0, method='gaussian', rank=1500)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_is_heard_in_every_phase(interruptible):
    """Two signals in each, early and later; a child tells how much it still did: milliseconds, but for some phases.

    In seconds of the processor: those of a clock depend on what else goes on.
    """
    program = f"""
        import os, signal, threading, time, numpy as np, orthant
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(100_000, 3)), rng.normal(size=(100_000, 3)) + 1
        wide, many = rng.normal(size=(20_000, 100)), rng.normal(size=(500_000, 4))
        plan = orthant.plan(x[:5000], y[:5000], 2.0, method="online", max_iterations=1)
        features = orthant.plan(x[:50_000], y[:50_000], 2.0, method="gaussian", rank=1000, max_iterations=1)
        lattice = orthant.plan(x[:15_000], y[:15_000], 2.0, method="lattice")
        given = rng.uniform(0.1, 1.0, size=(20_000, 100))
        explicit = orthant.plan(None, None, 1.0, features=(given, given), max_iterations=1)
        for phase, code in {PHASES!r}.items():
            for pause in 0.05, 0.4:
                sent = []
                def send():
                    sent.append(time.process_time())
                    os.kill(os.getpid(), signal.SIGINT)
                timer = threading.Timer(pause, send)
                timer.start()
                try:
                    exec(compile(code, phase, "exec"))
                    timer.cancel()
                    took = -1.0
                except KeyboardInterrupt:
                    took = time.process_time() - sent[0]
                print(f"{{phase}}|{{pause}}|{{took:.3f}}", flush=True)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split("|") for line in done.stdout.splitlines()]
    assert len(lines) == 2 * len(PHASES)
    slow = [line for line in lines if float(line[2]) > 1.5]
    assert not slow, done.stdout
    # What was done before the second signal is no failure, before the first it would be no test.
    assert all(float(took) >= 0 for _, pause, took in lines if pause == "0.05"), done.stdout


def test_a_plan_can_be_used_after_ctrl_c(interruptible):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2)) + 1
    plan = orthant.plan(x, y, 2.0, method="online", max_iterations=1)
    expected = plan.row(0)
    threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT)).start()
    last = time.monotonic() + 60
    with pytest.raises(KeyboardInterrupt):
        while time.monotonic() < last:
            plan.barycentric()
    np.testing.assert_array_equal(plan.row(0), expected)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_these_tests_end_where_ctrl_c_is_ignored():
    """As jobs in the background are started by some shells and some services."""
    names = ["test_a_plan_can_be_used_after_ctrl_c", "test_ctrl_c_ends_a_solve[rot]"]
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*ignoring, *(f"{__file__}::{name}" for name in names)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout.startswith(".."), done.stdout + done.stderr


# A process that cannot start a thread: root may start any number, so it becomes somebody else first.
WITHOUT_THREADS = """
    import os, resource, signal, sys, threading, numpy as np, orthant, orthant._messages, orthant._tables
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3000, 2)), rng.normal(size=(2000, 2)) + 1
    if sys.argv[1] == "none":
        if os.getuid() == 0:
            os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        try:
            threading.Thread(target=print).start()
        except RuntimeError:
            print("no threads", file=sys.stderr)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the number of threads")
def test_without_threads_the_calling_thread_does_the_work():
    program = WITHOUT_THREADS + """
    seen = []
    plan = orthant.plan(x, y, 0.5, method="lattice")
    found = [
        orthant.rot(x, y, 0.5, callback=lambda progress: seen.append(progress.iteration)).value,
        orthant.rot(x, y, 0.5, method="online", threads=3, max_iterations=3).value,
        orthant.divergence(x[:500], y[:500]).value,
        orthant.compare([x[:200], y[:200]], 0.5).matrix[0, 1],
        float(orthant.FeatureMap.paper(x, y, 0.5, 50)(x).sum()),
        *plan.barycentric(x[:2]).ravel(),
    ]
    assert seen
    print([value.hex() for value in map(float, found)])
    """
    run = lambda how: subprocess.run(  # noqa: E731
        [sys.executable, "-c", textwrap.dedent(program), how], capture_output=True, text=True, timeout=300, check=True
    )
    alone, together = run("none"), run("all")
    assert alone.stderr == "no threads\n" and together.stderr == ""
    assert alone.stdout == together.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the number of threads")
def test_without_threads_ctrl_c_ends_a_solve():
    program = WITHOUT_THREADS + """
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        orthant.rot(x, y, 1e-4, method="online", solver="plain", max_iterations=1_000_000, tolerance=1e-12, time_limit=60)
    except KeyboardInterrupt:
        print("interrupted")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), "none"], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "interrupted\n"


def test_a_callback_sees_iterations_and_may_end_the_solve(slow):
    arguments, settings = slow
    seen = []

    def callback(progress):
        if progress.iteration:
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
    assert terms == {"cross", "self_x", "self_y", ""}


def test_a_callback_hears_of_every_phase():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3000, 6)), rng.normal(size=(3000, 6)) + 1
    seen = []
    found = orthant.rot(x, y, 9.0, allow_exact=False, accuracy=0.02, callback=seen.append)
    assert found.method == "gaussian"
    phases = [event.phase for event in seen]
    assert phases[0] == "choosing a method" and phases.count("choosing a method") > 1
    assert {"storing features", "iterating", "bounding the error"} <= set(phases)
    between = [event for event in seen if not event.iteration]
    assert all((e.term, e.epsilon, e.marginal_error, e.value) == ("", 9.0, np.inf, -np.inf) for e in between)
    assert [e.elapsed for e in seen] == sorted(e.elapsed for e in seen)
    assert "phase='choosing a method'" in repr(seen[0])


@pytest.mark.parametrize("phase", ["choosing a method", "storing features"])
def test_a_callback_may_end_a_solve_before_the_first_iteration(phase):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3000, 6)), rng.normal(size=(3000, 6)) + 1
    for function in (orthant.rot, orthant.divergence, orthant.plan, orthant.gradient):
        with pytest.raises(RuntimeError, match="the callback ended the solve before there was anything to return"):
            function(x, y, 9.0, allow_exact=False, accuracy=0.02, callback=lambda progress: progress.phase == phase)


# Seconds for each of these without a limit, or minutes: in the choice of a method, in a pass over all pairs, in features.
LIMITED = {
    "choosing": ("rot", (12_000, 50), {"accuracy": 1e-4}),
    "choosing, of three terms": ("divergence", (8_000, 50), {"accuracy": 1e-4}),
    "all pairs": ("rot", (15_000, 20), {"method": "online"}),
    "all pairs, of three terms": ("divergence", (10_000, 20), {"method": "online"}),
    "features": ("rot", (30_000, 20), {"method": "gaussian", "rank": 4000}),
    "a plan": ("plan", (15_000, 20), {"method": "online"}),
    "a gradient": ("gradient", (10_000, 20), {"method": "online"}),
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_time_limit_holds_in_every_phase(name):
    function, shape, settings = LIMITED[name]
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=shape) + 1
    limit, begun, worked = 1.0, time.monotonic(), time.process_time()
    try:
        found = getattr(orthant, function)(x, y, time_limit=limit, threads=2, **settings)
    except TimeoutError as error:
        assert "the time limit of 1 s was over while" in str(error)
    else:
        result = getattr(found, "result", getattr(found, "solution", found))
        assert not result.converged or time.monotonic() - begun < limit
    took = time.monotonic() - begun
    # Within a second. Where many others work too, a processor says more than a clock.
    assert time.process_time() - worked < 2 * (limit + 1.0)
    assert took < limit + 1.0 or os.getloadavg()[0] > os.cpu_count()


def test_a_plan_can_be_used_after_its_time_limit():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3000, 2)), rng.normal(size=(2500, 2)) + 1
    plan = orthant.plan(x, y, 0.5, method="lattice", time_limit=30.0)
    again = pickle.loads(pickle.dumps(orthant.plan(x, y, 0.5, method="lattice", time_limit=0.5)))
    time.sleep(1.5)
    assert again.barycentric(x[:5]).shape == plan.barycentric(x[:5]).shape
    np.testing.assert_allclose(again.marginals()[0], plan.marginals()[0], rtol=1e-3)


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_child_has_threads_of_its_own():
    """In a process of its own, without other libraries that have threads."""
    program = """
        import multiprocessing, numpy as np, orthant
        rng = np.random.default_rng(0)
        # More points than a thread would do alone.
        x, y = rng.normal(size=(40_000, 2)), rng.normal(size=(50_000, 2)) + 1

        def values(queue=None):
            map_ = orthant.FeatureMap.paper(x, y, 0.5, 50)
            found = [
                orthant.rot(x, y, 0.5).value,
                # What is done on threads before a solve.
                orthant.rot(None, None, 0.5, features=(np.exp(0.1 * x), np.exp(0.1 * y))).value,
                orthant.rot(x, y, 0.5, features=map_, max_iterations=5).value,
                orthant.rot(x, y, 0.5, anchors=x[:30], max_iterations=5).value,
                float(map_(x).sum()),
            ]
            return found if queue is None else queue.put(found)

        expected = values()
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=values, args=(queue,), daemon=True)
        child.start()
        assert queue.get(timeout=60) == expected
        child.join(timeout=60)
        assert child.exitcode == 0
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=180)


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
