"""A million points against a million: the problem of the paper's Figure 1, at the smallest of its epsilons."""

import os
import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import orthant

n = 20_000 if os.environ.get("ORTHANT_QUICK") else 1_000_000
rng = np.random.default_rng(0)
x = rng.normal(size=(n, 2)) + 1
y = rng.normal(size=(n, 2)) * np.sqrt(0.1)

begun = time.perf_counter()
plan = orthant.plan(x, y, 0.05, accuracy=1e-4, progress=sys.stderr.isatty())
solved = time.perf_counter() - begun
pairs = plan.sample(400, seed=0)
s = plan.solution

figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
# Without the palest of the colours, which would be a rim of white.
oranges = ListedColormap(matplotlib.colormaps["Oranges"](np.linspace(0.35, 1, 256)))
axes.hexbin(*x.T, gridsize=80, bins="log", cmap="Blues", mincnt=1)
axes.hexbin(*y.T, gridsize=45, bins="log", cmap=oranges, mincnt=1)
axes.plot(*np.stack([x[pairs[:, 0]], y[pairs[:, 1]]]).transpose(2, 0, 1), "k-", lw=0.3, alpha=0.6)
axes.set(aspect="equal", title=f"{n:,} points a cloud, {solved:.1f} s", xlim=(-3, 5), ylim=(-3, 5))
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else __file__.replace(".py", ".png"), dpi=80)
print(f"value {s.value:.5f} in [{s.interval.low:.5f}, {s.interval.high:.5f}] ({s.interval.kind}), {s.method}, {solved:.1f} s")
