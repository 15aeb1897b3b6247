"""Plain iterations with stored features, beside loops of four products in other libraries: JSON Lines.

    THREADS=2 python iterations.py [n] [rank]

The same f32 features for all, of the paper's Figure 1 (two clouds of normal points in the plane), at eps = 0.5, where plain
f32 scalings do not leave their range. Features below 1e-30 are set to that: numbers that are not normal any more would
slow the products of the other libraries down by far. All do as many iterations as ours needs to a marginal error of
1e-6, the least in single precision, at most 102. A call of ours also checks and stores the features, so its iterations are
timed by what the result says of them, less the same with 2 iterations; the loops have nothing else. The best of 15
interleaved runs. `whole` is the call itself, `apart` the largest difference of log v from ours. Peers that are not
installed are said to be missing.
"""

import sys

from common import THREADS, best, figure_1, tell

import numpy as np  # isort: skip

import orthant

EPSILON, FEW, MOST = 0.5, 2, 102


def features(n, rank):
    x, y = figure_1(n)
    map_ = orthant.FeatureMap.paper(x, y, EPSILON, rank)
    return [np.maximum(map_(c), 1e-30).astype(np.float32) for c in (x, y)]


def ours(xi, zeta):
    settings = {"precision": "f32", "solver": "plain", "certify": False, "threads": THREADS, "tolerance": 1e-6}

    def run(iterations):
        found = orthant.rot(None, None, EPSILON, features=(xi, zeta), max_iterations=iterations, **settings)
        return found.iterations, found.potential_y / EPSILON, found.times[1]

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


def with_numpy(xi, zeta, n, many):
    return loop(xi, zeta, np.ones(n, dtype=np.float32), np.log)


def with_torch(xi, zeta, n, many):
    import torch

    torch.set_num_threads(THREADS)
    return loop(torch.tensor(xi), torch.tensor(zeta), torch.ones(n), lambda v: v.log().numpy())


def with_ott(xi, zeta, n, many):
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

    compiled = solve(many)
    compiled(problem).block_until_ready()
    return lambda _: np.asarray(compiled(problem).block_until_ready())


def main(n=20_000, rank=600):
    xi, zeta = features(n, rank)
    mine = ours(xi, zeta)
    many, reference, _ = mine(MOST)
    racers = {"orthant": lambda: mine(many), "orthant, few": lambda: mine(FEW)}
    for name, make in {"numpy": with_numpy, "torch": with_torch, "ott": with_ott}.items():
        try:
            run = make(xi, zeta, n, many)
        except ImportError:
            tell("iterations", library=name, missing=True)
            continue
        racers[name] = lambda run=run: run(many)
    found = best(racers, 15, inner=lambda name, result: result[2] if name.startswith("orthant") else None)
    few = found.pop("orthant, few").inner
    each = {name: f.seconds / many for name, f in found.items()}
    each["orthant"] = (found["orthant"].inner - few) / (many - FEW)
    for name, run in found.items():
        scaling = np.asarray(run.result[1] if name == "orthant" else run.result, dtype=float)
        shift = scaling - reference
        tell(
            "iterations", library=name, n=n, rank=rank, ms=1e3 * each[name], over=each[name] / each["orthant"],
            iterations=many, whole=run.seconds, apart=float(np.abs(shift - shift.mean()).max()),
            clamped=float((xi == np.float32(1e-30)).mean()),
        )  # fmt: skip


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
