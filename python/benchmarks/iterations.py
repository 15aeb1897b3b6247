"""Plain iterations with stored features, beside loops of four products in other libraries: JSON Lines.

    python iterations.py [n] [rank] [threads]

The same f32 features for all, of the paper's Figure 1 (two clouds of normal points in the plane), at eps = 0.5, where plain
f32 scalings do not leave their range. Peers that are not installed are left out. Times are the best of interleaved
repetitions, an iteration each.
"""

import json
import os
import sys

THREADS = sys.argv[3] if len(sys.argv) > 3 else "2"
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = THREADS

import time  # noqa: E402

import numpy as np  # noqa: E402

import orthant  # noqa: E402

EPSILON, ITERATIONS = 0.5, 100


def features(n, rank):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2)) + [1.0, 1.0]
    y = rng.normal(size=(n, 2)) * np.sqrt(0.1)
    map_ = orthant.FeatureMap.paper(x, y, EPSILON, rank)
    return [np.maximum(map_(c), 1e-30).astype(np.float32) for c in (x, y)]


def ours(xi, zeta):
    settings = {"precision": "f32", "solver": "plain", "certify": False, "threads": int(THREADS)}

    def solve(iterations):
        return orthant.rot(
            None, None, EPSILON, features=(xi, zeta), max_iterations=iterations, tolerance=1e-6, **settings
        )

    def run():
        # Features are stored before the first iteration; the difference is that of the others.
        few, many = solve(2), solve(2 + ITERATIONS)
        return (many.times[1] - few.times[1]) / (many.iterations - few.iterations)

    return run


def loop(products, a, b):
    xi, zeta, xi_t, zeta_t = products

    def run():
        v = 1 + 0 * b
        begun = time.perf_counter()
        for _ in range(ITERATIONS):
            u = a / (xi @ (zeta_t @ v))
            v = b / (zeta @ (xi_t @ u))
        float(v.sum())
        return (time.perf_counter() - begun) / ITERATIONS

    return run


def with_torch(xi, zeta, n):
    import torch

    torch.set_num_threads(int(THREADS))
    x, z = torch.tensor(xi), torch.tensor(zeta)
    weights = torch.full((n,), 1 / n)
    return loop((x, z, x.T, z.T), weights, weights)


def with_ott(xi, zeta, n):
    import jax
    import jax.numpy as jnp
    from ott.geometry import low_rank
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import sinkhorn

    geometry = low_rank.LRKGeometry(jnp.asarray(xi), jnp.asarray(zeta), epsilon=EPSILON)
    problem = linear_problem.LinearProblem(geometry)
    solver = sinkhorn.Sinkhorn(
        lse_mode=False, threshold=-1.0, min_iterations=ITERATIONS, max_iterations=ITERATIONS, inner_iterations=ITERATIONS
    )
    solve = jax.jit(lambda p: solver(p).g)
    solve(problem).block_until_ready()

    def run():
        begun = time.perf_counter()
        solve(problem).block_until_ready()
        return (time.perf_counter() - begun) / ITERATIONS

    return run


def main(n, rank):
    xi, zeta = features(n, rank)
    weights = np.full(n, 1 / n, dtype=np.float32)
    racers = {"orthant": ours(xi, zeta), "numpy": loop((xi, zeta, xi.T, zeta.T), weights, weights)}
    for name, make in {"torch": with_torch, "ott": with_ott}.items():
        try:
            racers[name] = make(xi, zeta, n)
        except ImportError:
            print(json.dumps({"bench": "iterations", "library": name, "missing": True}), flush=True)
    best = dict.fromkeys(racers, np.inf)
    for _ in range(5):
        for name, run in racers.items():
            best[name] = min(best[name], run())
    for name, seconds in best.items():
        print(
            json.dumps(
                {
                    "bench": "iterations", "library": name, "n": n, "rank": rank, "threads": int(THREADS),
                    "ms": round(1e3 * seconds, 3), "over": round(seconds / best["orthant"], 2),
                }
            ),
            flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main(*(int(a) for a in (sys.argv[1:3] or [20_000, 600])))
