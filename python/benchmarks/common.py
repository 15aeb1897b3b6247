"""What the benchmarks share. Import it before NumPy: it sets the number of threads of all libraries."""

import json
import os
import time
from typing import Any, NamedTuple

THREADS = int(os.environ.get("THREADS", "2"))
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = str(THREADS)
# jax has no other way.
os.environ.setdefault("XLA_FLAGS", f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={THREADS}")

import numpy as np  # noqa: E402


def figure_1(n, seed=0):
    """The clouds of the paper's Figure 1: N((1, 1), I) and N(0, 0.1 I) in the plane."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + [1.0, 1.0], rng.normal(size=(n, 2)) * np.sqrt(0.1)


def tell(bench, **fields):
    """A line of JSON; numbers with four digits."""
    short = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in fields.items()}
    print(json.dumps({"bench": bench, "threads": THREADS, **short}), flush=True)


def timed(function):
    """What it returns, and its seconds."""
    begun = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begun


class Best(NamedTuple):
    """The last result, the least seconds, and the least of what the result says of itself."""

    result: Any
    seconds: float
    inner: float


def best(racers, repeats, inner=lambda name, result: None):
    """The best of each, interleaved, so that a busy moment meets all of them."""
    found = {}
    for _ in range(repeats):
        for name, run in racers.items():
            result, seconds = timed(run)
            last = found.get(name, Best(None, np.inf, np.inf))
            said = inner(name, result)
            found[name] = Best(result, min(seconds, last.seconds), last.inner if said is None else min(said, last.inner))
    return found
