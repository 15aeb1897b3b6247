"""The tests are for an installed wheel: the folder of this file has nothing that could be imported in its place."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import orthant

assert "site-packages" in Path(orthant.__file__).parts, f"{orthant.__file__} is no installed package"


def unskipped(report):
    """Where all libraries are installed, as in `cargo xtask test`, a test that is skipped has failed."""
    if report.outcome == "skipped" and os.environ.get("ORTHANT_SKIP_NOTHING"):
        report.outcome, report.longrepr = "failed", f"skipped, and nothing may be: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return unskipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return unskipped((yield))


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal. Jobs in the background may have been started with it ignored, and so would be children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


@pytest.fixture
def clouds():
    """300 and 200 weighted points in three dimensions."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = rng.normal(size=(200, 3)) * 0.6 + 0.5
    a, b = rng.uniform(0.1, 2.0, size=300), rng.uniform(0.1, 2.0, size=200)
    return x, y, a / a.sum(), b / b.sum()


@pytest.fixture
def plane():
    """400 and 500 points of the plane."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(400, 2)), rng.normal(size=(500, 2)) * 0.5 + 1.0
