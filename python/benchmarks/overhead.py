"""What calling from Python adds to the time that the library takes: JSON Lines.

    python overhead.py [n]

A result knows how long its solve took; the rest of a call is the package's: checks of the arguments, the thread that
waits, and what is made of the result. Best of interleaved repetitions.
"""

import json
import sys
import time

import numpy as np

import orthant


def main(n):
    rng = np.random.default_rng(0)
    for kind in (np.float64, np.float32):
        x = rng.normal(size=(n, 2)).astype(kind)
        y = (rng.normal(size=(n, 2)) * 0.5 + 1).astype(kind)
        for settings in ({"method": "lattice"}, {"method": "gaussian", "rank": 100, "certify": False, "precision": "f32"}):
            best = (np.inf, np.inf)
            for _ in range(7):
                begun = time.perf_counter()
                found = orthant.rot(x, y, 0.5, **settings)
                best = min(best, (time.perf_counter() - begun, sum(found.times)))
            wall, inside = best
            print(
                json.dumps(
                    {
                        "bench": "overhead", "n": n, "dtype": np.dtype(kind).name, "method": settings["method"],
                        "seconds": round(wall, 4), "library": round(inside, 4), "added": round(wall / inside - 1, 4),
                    }
                ),
                flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
