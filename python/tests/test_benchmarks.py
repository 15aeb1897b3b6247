"""The benchmarks run, small and without comparing anything; libraries that are missing are said to be."""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "benchmarks"
COMMANDS = ["overhead.py 500", "iterations.py 500 600 2", "race.py 300 0.5", "multiscale.py --sizes"]


def test_the_benchmarks():
    # In one process, because the other libraries take long to import; as if GeomLoss were missing: it compiles for minutes.
    program = f"""
import runpy, sys
sys.modules["geomloss"] = None
sys.path.insert(0, {str(FOLDER)!r})
for command in {COMMANDS!r}:
    sys.argv = command.split()
    runpy.run_path({str(FOLDER)!r} + "/" + sys.argv[0], run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["threads"] == 1 for line in lines)
    names = list(dict.fromkeys(line["bench"] for line in lines))
    assert names == [command.split(".py")[0] for command in COMMANDS]
