"""The colours of one photo on another: pixels are points of the colour cube, and the map moves them."""

import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

import orthant

step = 8 if os.environ.get("ORTHANT_QUICK") else 1
palace, flower = (photo[::step, ::step] / 255 for photo in load_sample_images().images)
x, y = palace.reshape(-1, 3), flower.reshape(-1, 3)

# All pixels: a lattice in the colour cube.
plan = orthant.plan(x, y, 0.01, method="lattice", accuracy=1e-2, progress=sys.stderr.isatty())
moved = np.clip(plan.barycentric(), 0, 1).reshape(palace.shape)

figure, axes = plt.subplots(1, 3, figsize=(12, 2.95), layout="constrained")
titles = ["a photo", "another one", "the first in the colours of the second"]
for ax, image, title in zip(axes, [palace, flower, moved], titles):
    ax.imshow(image)
    ax.set_title(title)
    ax.axis("off")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else __file__.replace(".py", ".png"), dpi=80)
print(f"{len(x):,} pixels, {sum(plan.solution.times):.1f} s, {plan.solution.method} of {plan.solution.rank:,} nodes")
