"""A disc becomes a spiral, along the gradient of the divergence."""

import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import orthant

n = 500 if os.environ.get("ORTHANT_QUICK") else 5000
rng = np.random.default_rng(0)
angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(0, 1, n))
disc = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
turn = 3 * np.pi * np.sqrt(rng.uniform(0.02, 1, n))
spiral = 0.15 * turn[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1) + rng.normal(size=(n, 2)) * 0.03

steps = []
found = orthant.flow(disc, spiral, 0.01, max_steps=30, each=lambda step: steps.append(step))

shown = [0, 1, 3, len(steps) - 1]
box = {"xlim": (-1.65, 1.45), "ylim": (-1.25, 1.35)}
figure, axes = plt.subplots(1, 4, figsize=(12, 2.8), layout="constrained")
for ax, step in zip(axes, (steps[min(k, len(steps) - 1)] for k in shown)):
    ax.scatter(*spiral.T, s=1, c="0.8", lw=0)
    ax.scatter(*step.points.T, s=1, c=angle, cmap="hsv", lw=0)
    ax.set(title=f"step {step.number}: {step.value:.2g}", aspect="equal", xticks=[], yticks=[], **box)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else __file__.replace(".py", ".png"), dpi=80)
print(f"{found.steps} steps from {found.first:.3g} to {found.value:.3g} ({found.rest}), {sum(found.times):.1f} s")
