"""What the README shows is run, and both sides of its table of other libraries are compared."""

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import orthant

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_first_example(capsys):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    # As it is, with fewer points.
    names = {}
    exec(code.replace("100_000", "2000").replace("80_000", "1500"), names)  # noqa: S102
    assert names["found"].converged and names["found"].value in names["found"].interval
    assert "Divergence" in capsys.readouterr().out
    assert names["moved"].shape == names["slope"].shape == (2000, 2) and names["pairs"].shape == (1000, 2)


def rows():
    """Pairs of lists of expressions: theirs and ours."""

    def expressions(cell):
        spans = re.findall(r"`([^`]+)`", cell)
        return [s for s in spans if not s.startswith(".") and "(" in s]

    for line in README.splitlines():
        if line.startswith("| ") and "`" in line:
            theirs, ours = (expressions(cell) for cell in line.strip("|").split(" | "))
            if ours:
                yield pytest.param(theirs, ours, id=theirs[0])


TABLE = list(rows())


def test_the_table_was_found():
    assert len(TABLE) == 11


WHERE = {
    "ot": ("ot", None),
    "linear": ("ott.solvers.linear", None),
    "PointCloud": ("ott.geometry.pointcloud", "PointCloud"),
    "sinkhorn_divergence": ("ott.tools.sinkhorn_divergence", "sinkhorn_divergence"),
    "SamplesLoss": ("geomloss", "SamplesLoss"),
}


def names_of(expression, clouds):
    """What an expression is about, imported; the test is skipped where something is not installed."""
    x, y, a, b = clouds
    names = {"X": x, "Y": y, "a": a, "b": b, "reg": 0.5, "rho": 2.0, "s": 0.5, "orthant": orthant}
    used = {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
    if "torch" in expression or "SamplesLoss" in used:
        torch = pytest.importorskip("torch")
        importlib.import_module("orthant.torch")
        names.update({k: torch.tensor(v) for k, v in {"a": a, "b": b, "x": x, "y": y}.items()})
    for name in used & WHERE.keys():
        module, attribute = WHERE[name]
        found = pytest.importorskip(module)
        names[name] = getattr(found, attribute) if attribute else found
        if module.startswith("ott"):
            importlib.import_module("jax").config.update("jax_enable_x64", True)
    return names


def value(expression, clouds):
    return np.asarray(eval(expression, names_of(expression, clouds)))  # noqa: S307


@pytest.mark.parametrize(("theirs", "ours"), TABLE)
def test_both_sides_of_the_table(theirs, ours, clouds):
    x, y, a, b = (c[:60] for c in clouds)
    given = (x, y, a / a.sum(), b / b.sum())
    values = [value(expression, given) for expression in ours]
    assert all(np.isfinite(v).all() for v in values)
    # GeomLoss anneals and stops: its default is good to a few hundredths.
    precision = 3e-2 if "SamplesLoss" in theirs[0] else 2e-4
    expected = value(theirs[0], given)
    for found in values:
        np.testing.assert_allclose(found, expected, rtol=precision, atol=precision * np.abs(expected).max())
