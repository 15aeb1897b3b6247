"""How often the exact value is in the interval of samples, and how close their estimate is: JSON Lines.

    python coverage.py [--problems 360] [--data X.npy Y.npy ...]

Problems differ in shape, dimension (5 to 300), epsilon (2 to 50 % of the mean cost), sizes, weights, duplicates, tails, one far
point, marginals (kept or relaxed), and cost; every fourth is a divergence. The exact value is that of the dense kernel. With
`--data`, rows of these arrays are drawn in place of every second cloud.
"""

import argparse

from common import tell

import numpy as np  # isort: skip

import orthant

DIMENSIONS = (5, 7, 10, 28, 50, 100, 300)
PARTS = ("2%", "5%", "10%", "20%", "50%")
COSTS = ("sqeuclidean", "euclidean", "l1")


def cloud(rng, n, dim, shift, heavy):
    """Clusters whose spectrum decays."""
    axes = 1 / np.sqrt(1 + np.arange(dim))
    centres = np.random.default_rng(dim).normal(size=(8, dim)) * 1.5 * axes
    wide = np.minimum(rng.random(n) ** (-1 / 3), 1e3) if heavy else np.ones(n)
    return centres[rng.integers(8, size=n)] + axes * (shift + wide[:, None] * rng.normal(size=(n, dim)))


def problem(p, data):
    """The points, the weights and the settings of a problem."""
    rng = np.random.default_rng(10_000 + p)
    n, m = ((900, 900), (700, 1100), (1100, 800))[p % 3]
    dim = DIMENSIONS[p % 7]
    x, y = cloud(rng, n, dim, 0.0, p % 5 == 1), cloud(rng, m, dim, 0.4, p % 5 == 1)
    kind = "made"
    if data and p % 2:
        rows = data[(p // 2) % len(data)]
        drawn = rng.permutation(len(rows))[: n + m]
        x, y, kind = rows[drawn[:n]], rows[drawn[n:]] + 0.3 * rows.std(axis=0), "real"
    if p % 6 == 2:
        x = x[np.arange(len(x)) // 4 * 4]
    if p % 6 == 4:
        x = x.copy()
        x[0] += 20 * x.std()
    weights = [rng.random(len(c)) ** 3 + 1e-4 for c in (x, y)] if p % 4 == 3 else [None, None]
    settings = {"cost": COSTS[p % 9 // 4 if p % 9 < 8 else 2], "seed": p}
    if p % 5 == 4:
        settings["reach"] = float(np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=1).mean()))
    return kind, x, y, weights, PARTS[p % 5 if p % 7 else (p // 7) % 5], settings


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=360)
    parser.add_argument("--data", nargs="*", default=[])
    options = parser.parse_args()
    data = [np.load(path).astype(float) for path in options.data]
    inside, held, estimates, distances = 0, 0, 0, []
    for p in range(options.problems):
        kind, x, y, (a, b), epsilon, settings = problem(p, data)
        solve = orthant.divergence if p % 4 == 1 else orthant.rot
        exact = solve(x, y, epsilon, a, b, method="dense", tolerance=1e-8, **settings)
        found = solve(x, y, epsilon, a, b, method="sampled", sample_size=150, **settings)
        if solve is orthant.rot:
            interval, value, truth = found.interval_kl, found.value_kl, exact.value_kl
            if "reach" not in settings:
                estimates += 1
                held += abs(found.sampling["estimate"] - exact.value) <= 3 * found.sampling["stderr"]
        else:
            interval, value, truth = found.interval, found.value, exact.value
        inside += interval.low <= truth <= interval.high
        distances.append(abs(value - truth) / (0.5 * (interval.high - interval.low)))
        if not interval.low <= truth <= interval.high:
            tell("coverage", missed=p, kind=kind, dim=x.shape[1], epsilon=epsilon, exact=truth, low=interval.low,
                 high=interval.high, **{k: v for k, v in settings.items() if k != "seed"})  # fmt: skip
    tell("coverage", problems=options.problems, inside=inside, estimates=estimates, estimates_held=int(held),
         median_distance_in_half_widths=float(np.median(distances)))  # fmt: skip


if __name__ == "__main__":
    main()
