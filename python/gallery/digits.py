"""Domain adaptation: digits with labels, and digits of another kind (in another light, noisy) without."""

import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import orthant

images, labels = load_digits(return_X_y=True)
images = images / 16
if os.environ.get("ORTHANT_QUICK"):
    images, labels = images[:600], labels[:600]
rng = np.random.default_rng(0)
half = rng.permutation(len(images))
source, target = half[: len(half) // 2], half[len(half) // 2 :]
known, truth = labels[source], labels[target]
# The other kind: dimmer to the right, a light from below, and noise.
across, down = np.tile(np.linspace(1.0, 0.4, 8), 8), np.repeat(np.linspace(0.0, 0.8, 8), 8)
other = images[target] * across + down + rng.normal(size=(len(target), 64)) * 0.05

before = KNeighborsClassifier(1).fit(images[source], known).score(other, truth)
plan = orthant.plan(images[source], other, 0.3, method="online", max_iterations=2000)
after = KNeighborsClassifier(1).fit(plan.barycentric(), known).score(other, truth)
votes, sure = plan.vote(known, cloud="y")
voted = (votes == truth).mean()

moved, partners = plan.barycentric(), plan.partners(1)[0][:, 0]
figure, axes = plt.subplots(3, 10, figsize=(10, 3.6), layout="constrained")
for k in range(10):
    i = np.flatnonzero(known == k)[0]
    for ax, image in zip(axes[:, k], [images[source][i], moved[i], other[partners[i]]]):
        ax.imshow(image.reshape(8, 8), cmap="gray")
        ax.set(xticks=[], yticks=[])
for ax, name in zip(axes[:, 0], ["with labels", "where it goes", "its partner"]):
    ax.set_ylabel(name)
figure.suptitle(f"labels of the other kind: {before:.0%} right without transport, {after:.0%} with it, {voted:.0%} by vote")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else __file__.replace(".py", ".png"), dpi=80)
print(f"nearest neighbour: {before:.1%}; after the map: {after:.1%}; votes: {voted:.1%}")
