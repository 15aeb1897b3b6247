"""The scripts of the gallery run, with few points."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parent.parent / "gallery"


@pytest.mark.parametrize("script", sorted(p.name for p in GALLERY.glob("*.py")))
def test_a_script_draws_its_picture(script, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    picture = tmp_path / "picture.png"
    done = subprocess.run(
        [sys.executable, GALLERY / script, picture],
        env={**os.environ, "ORTHANT_QUICK": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 5000 and done.stdout
