"""The reference values of `oracles.rs` (pip install POT==0.9.5 numpy; prints pot_reference.txt)."""

import numpy as np
import ot

x = np.array([[0.0, 0.0], [1.0, 0.5], [-0.5, 2.0], [0.25, -1.0]])
y = np.array([[1.0, 1.0], [-1.0, 0.0], [0.5, 0.25]])
a = np.array([0.1, 0.2, 0.3, 0.4])
b = np.array([0.5, 0.25, 0.25])
cost = ot.dist(x, y)  # squared Euclidean
rows = []
for reg in (0.4, 0.7, 2.0):
    plan = ot.sinkhorn(a, b, cost, reg, method="sinkhorn_log", numItermax=100000, stopThr=1e-14)
    linear = np.sum(plan * cost)
    kl = linear + reg * np.sum(plan * np.log(plan / np.outer(a, b)))
    rows.append(f"({reg}, {kl:.15}, {linear:.15})")
print("[" + ", ".join(rows) + "]")
