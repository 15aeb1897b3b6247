"""The divergence of two clouds as one of them moves away: values of random features with their intervals, and exact ones."""

import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import orthant

n = 300 if os.environ.get("ORTHANT_QUICK") else 3000
rng = np.random.default_rng(0)
x, y = rng.normal(size=(n, 5)), rng.normal(size=(n, 5)) * 0.8
shifts = np.linspace(0, 2, 9)

exact, rough = [], []
for shift in shifts:
    moved = y + shift * np.eye(5)[0]
    exact.append(orthant.divergence(x, moved, 2.0, method="online"))
    rough.append(orthant.divergence(x, moved, 2.0, anchors="sobol", rank=300))

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(shifts, [d.value for d in exact], "k-", lw=1, label="exact")
axes.plot(shifts, [d.value for d in rough], "C0o", ms=4, label="300 random features")
axes.vlines(shifts, [d.interval.low for d in rough], [d.interval.high for d in rough], "C0", label="interval")
axes.set(xlabel="shift", ylabel="divergence", title=f"{n:,} points a cloud, 5 coordinates")
axes.legend()
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else __file__.replace(".py", ".png"), dpi=80)
inside = sum(e.value in r.interval for e, r in zip(exact, rough))
print(f"{inside} of {len(shifts)} intervals contain the exact divergence")
