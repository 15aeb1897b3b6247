"""What calling from Python adds to the time that the library takes: JSON Lines.

    python overhead.py [n]

A result knows how long its solve took; the rest of a call is the package's: checks of the arguments, the thread that
waits, and what is made of the result. Best of interleaved repetitions.
"""

import sys
import time

from common import figure_1, tell

import numpy as np  # isort: skip

import orthant


def main(n):
    for kind in (np.float64, np.float32):
        x, y = (c.astype(kind) for c in figure_1(n))
        for settings in ({"method": "lattice"}, {"method": "gaussian", "rank": 100, "certify": False, "precision": "f32"}):
            best = (np.inf, np.inf)
            for _ in range(7):
                begun = time.perf_counter()
                found = orthant.rot(x, y, 0.5, **settings)
                best = min(best, (time.perf_counter() - begun, sum(found.times)))
            wall, inside = best
            tell(
                "overhead", n=n, dtype=np.dtype(kind).name, method=settings["method"], seconds=wall, library=inside,
                added=wall / inside - 1,
            )  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
