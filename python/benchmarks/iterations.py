"""Plain iterations with stored features, beside loops of four products in other libraries: JSON Lines.

    THREADS=2 python iterations.py [n] [rank]

The same f32 features for all, of the paper's Figure 1 (two clouds of normal points in the plane), at eps = 0.5, where plain
f32 scalings do not leave their range. Features below 1e-30 are set to that: numbers that are not normal any more would
slow the products of the other libraries down by far. A racer does 100 iterations, which is checked; what is
shown is the time of a call less that of a call with 2, for all of them alike, an iteration each, the best of 5
interleaved calls. `whole` is the call itself. Peers that are not installed are said to be missing.
"""

import sys

from common import THREADS, best, figure_1, tell

import numpy as np  # isort: skip

import orthant

EPSILON, FEW, MANY = 0.5, 2, 102


def features(n, rank):
    x, y = figure_1(n)
    map_ = orthant.FeatureMap.paper(x, y, EPSILON, rank)
    return [np.maximum(map_(c), 1e-30).astype(np.float32) for c in (x, y)]


def ours(xi, zeta, n):
    settings = {"precision": "f32", "solver": "plain", "certify": False, "threads": THREADS, "tolerance": 1e-12}

    def run(iterations):
        found = orthant.rot(None, None, EPSILON, features=(xi, zeta), max_iterations=iterations, **settings)
        assert found.iterations == iterations, found
        return found.potential_y / EPSILON

    return run


def loop(xi, zeta, ones, log):
    xi_t, zeta_t = xi.T, zeta.T
    weights = ones / len(ones)

    def run(iterations):
        v = ones
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
        return jax.jit(lambda p: solver(p).g / EPSILON)

    solves = {iterations: solve(iterations) for iterations in (FEW, MANY)}
    for compiled in solves.values():
        compiled(problem).block_until_ready()
    return lambda iterations: np.asarray(solves[iterations](problem).block_until_ready())


def main(n=20_000, rank=600):
    xi, zeta = features(n, rank)
    racers = {}
    for name, make in {"orthant": ours, "numpy": with_numpy, "torch": with_torch, "ott": with_ott}.items():
        try:
            run = make(xi, zeta, n)
        except ImportError:
            tell("iterations", library=name, missing=True)
            continue
        racers[name, FEW] = lambda run=run: run(FEW)
        racers[name, MANY] = lambda run=run: run(MANY)
    found = best(racers, 5)
    names = [name for name, count in found if count == MANY]
    each = {name: (found[name, MANY][1] - found[name, FEW][1]) / (MANY - FEW) for name in names}
    reference = found["orthant", MANY][0]
    for name in names:
        scaling = np.asarray(found[name, MANY][0], dtype=float)
        shift = scaling - reference
        tell(
            "iterations", library=name, n=n, rank=rank, ms=1e3 * each[name], over=each[name] / each["orthant"],
            whole=found[name, MANY][1], apart=float(np.abs(shift - shift.mean()).max()),
            clamped=float((xi == np.float32(1e-30)).mean()),
        )  # fmt: skip


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
