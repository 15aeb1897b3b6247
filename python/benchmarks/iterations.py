"""A hundred plain iterations with given features, beside loops of four products in other libraries: JSON Lines.

    THREADS=2 python iterations.py [n] [rank] [repeats] [distance]

The same f32 features for all, of two clouds of two clusters each, of which one has more of the mass in the second cloud:
what has to cross makes plain iterations slow, so that none has converged to 1e-6 after a hundred, and all do exactly as
many. At eps = 0.5 plain f32 scalings do not leave their range. Features below 1e-30 are set to that: numbers that are not
normal any more would slow the products of the other libraries down by far.

`whole` are the seconds of a call with 100 iterations, features given as arrays of the library: ours also checks and stores
them, and sums up the plan (its marginals, its interval); the loops have nothing else. `ms` is an iteration: the difference
to a call with 10, over 90. At the distance of the clusters that is taken here, 3.4, ours stores the features once; at 4 it
has to store them anew on the way, which counts. `over` and `whole_over` are these as multiples of ours. The best of 7 interleaved runs. `apart`
is the largest difference of log v from ours. Peers that are not installed are said to be missing.
"""

import sys

from common import THREADS, best, tell

import numpy as np  # isort: skip

import orthant

EPSILON, FEW, MANY = 0.5, 10, 100


def clusters(n, share, distance, seed):
    """Two clusters of normal points in the plane; the second has this share of them."""
    rng = np.random.default_rng(seed)
    points = np.sqrt(0.1) * rng.normal(size=(n, 2))
    points[: int(share * n), 0] += distance
    return points


def features(n, rank, distance):
    x, y = clusters(n, 0.5, distance, 0), clusters(n, 0.6, distance, 1)
    map_ = orthant.FeatureMap.paper(x, y, EPSILON, rank)
    return [np.maximum(map_(c), 1e-30).astype(np.float32) for c in (x, y)]


def with_orthant(xi, zeta, n):
    settings = {"precision": "f32", "solver": "plain", "certify": False, "threads": THREADS, "tolerance": 1e-6}

    def run(iterations):
        found = orthant.rot(None, None, EPSILON, features=(xi, zeta), max_iterations=iterations, **settings)
        assert found.iterations == iterations, f"converged after {found.iterations}"
        return found.potential_y / EPSILON

    return run


def loop(xi, zeta, ones, log):
    xi_t, zeta_t = xi.T, zeta.T
    weights = ones / len(ones)

    def run(iterations):
        u = weights
        v = weights / (zeta @ (xi_t @ u))
        for _ in range(iterations):
            u = weights / (xi @ (zeta_t @ v))
            v = weights / (zeta @ (xi_t @ u))
        return log(v)

    return run


def with_numpy(xi, zeta, n):
    return loop(xi, zeta, np.ones(n, dtype=np.float32), np.log)


def with_torch(xi, zeta, n):
    import torch

    torch.set_num_threads(THREADS)
    return loop(torch.tensor(xi), torch.tensor(zeta), torch.ones(n), lambda v: v.log().numpy())


def with_ott(xi, zeta, n):
    import jax
    import jax.numpy as jnp
    from ott.geometry import low_rank
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import sinkhorn

    geometry = low_rank.LRKGeometry(jnp.asarray(xi), jnp.asarray(zeta), epsilon=EPSILON)
    problem = linear_problem.LinearProblem(geometry)

    def solve(iterations):
        counts = {"min_iterations": iterations, "max_iterations": iterations, "inner_iterations": iterations}
        solver = sinkhorn.Sinkhorn(lse_mode=False, threshold=-1.0, **counts)
        compiled = jax.jit(lambda p: solver(p).g / EPSILON)
        compiled(problem).block_until_ready()
        return compiled

    compiled = {iterations: solve(iterations) for iterations in (FEW, MANY)}
    return lambda iterations: np.asarray(compiled[iterations](problem).block_until_ready())


def main(n=20_000, rank=600, repeats=7, distance=3.4):
    xi, zeta = features(n, rank, distance)
    racers = {}
    for name, make in {
        "orthant": with_orthant, "numpy": with_numpy, "torch": with_torch, "ott": with_ott,
    }.items():  # fmt: skip
        try:
            run = make(xi, zeta, n)
        except ImportError:
            tell("iterations", library=name, missing=True)
            continue
        racers[name, MANY] = lambda run=run: run(MANY)
        racers[name, FEW] = lambda run=run: run(FEW)
    found = best(racers, repeats)
    each = {name: (run.seconds - found[name, FEW].seconds) / (MANY - FEW) for (name, k), run in found.items() if k == MANY}
    ours = found["orthant", MANY]
    for name, ms in each.items():
        run = found[name, MANY]
        shift = np.asarray(run.result, dtype=float) - ours.result
        tell(
            "iterations", library=name, n=n, rank=rank, iterations=MANY, ms=1e3 * ms, over=ms / each["orthant"],
            whole=run.seconds, whole_over=run.seconds / ours.seconds,
            apart=float(np.abs(shift - shift.mean()).max()), clamped=float((xi == np.float32(1e-30)).mean()),
        )  # fmt: skip


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:4]), *(float(a) for a in sys.argv[4:5]))
