"""What `--json` prints against docs/schema.json.

Run by `cargo xtask test` with the variable ORTHANT set to the release build.
"""

import json
import os
import pathlib
import subprocess

import jsonschema
import numpy as np
import pandas as pd
import pytest

ORTHANT = os.environ["ORTHANT"]
SCHEMA = json.loads(pathlib.Path(__file__, "../../docs/schema.json").resolve().read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)

# Nothing may hang.
pytestmark = pytest.mark.timeout(300)

TWO = "x.csv y.csv --columns a,b --eps 0.2"


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name, centre in [("x.csv", 0.0), ("y.csv", 0.5)]:
        points = rng.normal(size=(60, 2)) * 0.3 + centre
        table = pd.DataFrame(points, columns=["a", "b"]).assign(w=rng.integers(1, 3, size=60))
        table.to_csv(tmp_path / name, index=False)
    return tmp_path


def report(folder, arguments):
    command = [ORTHANT, *arguments.split(), "--json", "-q"]
    done = subprocess.run(command, cwd=folder, capture_output=True)
    # A result, or one that was asked to be better than it could be.
    assert done.returncode in (0, 3), done.stderr.decode()
    return json.loads(done.stdout)


def test_the_schema_is_one():
    VALIDATOR.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "arguments",
    [
        f"rot {TWO}",
        f"rot {TWO} --weights w --reach 0.5",
        f"rot {TWO} --anchors lattice",
        f"rot {TWO} --anchors sobol --rank 100 --certify",
        f"rot {TWO} --method nystrom",
        f"rot {TWO} --anchors adaptive --rank 100 --polish",
        f"rot {TWO} --method arccos",
        f"rot {TWO} --scale robust --pca 1 --sample 20 --max-iter 1",
        "rot x.csv y.csv",
        "rot x.csv y.csv --eps 3%",
        f"divergence {TWO}",
        f"divergence {TWO} --anchors lattice",
        f"divergence {TWO} --reach 1",
        f"map {TWO} -o m.csv",
        f"report {TWO} -o r.html",
        f"flow {TWO} --steps 2",
        f"test {TWO} --permutations 19",
        f"barycenter {TWO}",
        f"barycenter {TWO} --free 10 --steps 3 --debiased",
        f"compare {TWO}",
        f"compare {TWO} --time-limit 0",
        "divergence x.csv --group w --between 1,2 --eps 0.2",
    ],
)
def test_every_result_is_of_one_schema(folder, arguments):
    errors = [f"{e.json_path}: {e.message}" for e in VALIDATOR.iter_errors(report(folder, arguments))]
    assert errors == []


def test_the_schema_is_not_so_wide_that_everything_fits(folder):
    assert not VALIDATOR.is_valid({"schema": "orthant/1", "command": "rot"})
    result = report(folder, f"rot {TWO}")
    assert VALIDATOR.is_valid(result)
    assert not VALIDATOR.is_valid({**result, "surprise": 1})
