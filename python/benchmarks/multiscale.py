"""Beside GeomLoss with `backend="multiscale"`, the quickest rival in two and three dimensions: JSON Lines.

    THREADS=2 python multiscale.py [--sizes 10000 100000 1000000] [--meshes A.npy B.npy] [--divergence]

W_KL of the paper's Figure 1, and of two surfaces in space: those of the files (vertices as rows of three), or a torus
and a knotted tube of 50,000 points each; surfaces are moved and scaled to a mean squared radius of 1. GeomLoss has its
default scaling of 0.9 and f32, as its examples do, and a first call that compiles is not counted. Ours is `orthant.rot` of the same f32 arrays, with
an accuracy of 1e-4, or the first of 1e-5, 1e-6, ... that is as accurate as GeomLoss was. Errors are relative to a
reference of accuracy 1e-9 (`within`: its proven bound). With --divergence, Sinkhorn divergences instead of values; a
divergence of ours is certified too. Times are the least of interleaved calls.
"""

import argparse

from common import THREADS, best, figure_1, tell

import numpy as np  # isort: skip

import orthant


def surfaces(n=50_000):
    """A torus and a tube along a trefoil knot."""
    rng = np.random.default_rng(0)
    s, t = rng.uniform(0, 2 * np.pi, size=(2, n))
    torus = np.stack([(1 + 0.4 * np.cos(t)) * np.cos(s), (1 + 0.4 * np.cos(t)) * np.sin(s), 0.4 * np.sin(t)], axis=1)

    def knot(s):
        return np.stack([np.sin(s) + 2 * np.sin(2 * s), np.cos(s) - 2 * np.cos(2 * s), -np.sin(3 * s)], axis=1)

    along = knot(s + 1e-4) - knot(s - 1e-4)
    along /= np.linalg.norm(along, axis=1)[:, None]
    side = np.cross(along, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side, axis=1)[:, None]
    tube = knot(s) + 0.3 * (np.cos(t)[:, None] * side + np.sin(t)[:, None] * np.cross(along, side))
    return torus, tube


def placed(points):
    points = np.asarray(points, dtype=float)
    points = points - points.mean(axis=0)
    return points / np.sqrt((points**2).sum(axis=1).mean())


def race(name, x, y, epsilon, divergence, repeats):
    import torch
    from geomloss import SamplesLoss

    torch.set_num_threads(THREADS)
    x, y = (np.ascontiguousarray(c, dtype=np.float32) for c in (x, y))
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    loss = SamplesLoss(
        "sinkhorn", p=2, blur=(epsilon / 2) ** 0.5, scaling=0.9, debias=divergence, backend="multiscale"
    )

    def theirs():
        with torch.no_grad():
            return 2 * loss(a, b).item()

    def ours(accuracy, **more):
        solve = orthant.divergence if divergence else orthant.rot
        found = solve(x, y, epsilon, accuracy=accuracy, threads=THREADS, **more)
        return found.value if divergence else found.value_kl

    # The reference, and its bound.
    solve = orthant.divergence if divergence else orthant.rot
    fine = solve(x, y, epsilon, method="lattice", accuracy=1e-9, tolerance=1e-10)
    exact = fine.value if divergence else fine.value_kl
    if not fine.converged:
        raise SystemExit(f"the reference did not converge: {fine}")
    error = lambda value: abs(value - exact) / abs(exact)  # noqa: E731
    goal = error(theirs())
    accuracy = 1e-4
    while error(ours(accuracy)) > goal and accuracy > 1e-7:
        accuracy /= 10
    found = best({"geomloss": theirs, "orthant": lambda: ours(accuracy)}, repeats)
    for library, (value, seconds) in found.items():
        tell(
            "multiscale", problem=name, n=len(x), m=len(y), dim=x.shape[1], epsilon=epsilon,
            what="divergence" if divergence else "value_kl", library=library, seconds=seconds, error=error(value),
            over=seconds / found["orthant"][1], accuracy=accuracy if library == "orthant" else None,
            within=fine.interval.width / abs(exact),
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--meshes", nargs=2)
    parser.add_argument("--divergence", action="store_true")
    given = parser.parse_args()
    try:
        import geomloss  # noqa: F401
        import pykeops  # noqa: F401
    except ImportError as missing:
        tell("multiscale", library="geomloss", missing=str(missing))
        return
    for n in given.sizes:
        x, y = figure_1(n)
        for epsilon in (0.05, 0.1, 0.5):
            race("figure 1", x, y, epsilon, given.divergence, 5 if n <= 100_000 else 2)
    meshes = [np.load(path) for path in given.meshes] if given.meshes else surfaces()
    for epsilon in (0.05, 0.1, 0.5):
        race("meshes" if given.meshes else "torus and knot", *map(placed, meshes), epsilon, given.divergence, 3)


if __name__ == "__main__":
    main()
