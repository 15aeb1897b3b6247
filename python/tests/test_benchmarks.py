"""The benchmarks run, small and without comparing anything; libraries that are missing are said to be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("command", ["overhead.py 500", "iterations.py 500 600 2", "race.py 300", "multiscale.py --sizes"])
def test_a_benchmark(command):
    name, *arguments = command.split()
    # As if GeomLoss were missing: it compiles for minutes.
    program = f"import runpy, sys; sys.modules['geomloss'] = None; sys.path.insert(0, {str(FOLDER)!r}); " \
        f"sys.argv = {[name, *arguments]!r}; runpy.run_path({str(FOLDER / name)!r}, run_name='__main__')"  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines and all(line["bench"] == name.removesuffix(".py") and line["threads"] == 1 for line in lines)
