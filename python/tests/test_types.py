"""Types are checked, stubs are those of the module, examples run."""

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import orthant
import orthant.pot


def check(folder, *arguments):
    # From elsewhere: mypy takes packages in its folder for the user's own.
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_passes_mypy(tmp_path):
    pytest.importorskip("mypy")
    # To read the whole of PyTorch takes minutes.
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-torch.*]\nfollow_imports = skip\n")
    check(tmp_path, "mypy", "--ignore-missing-imports", f"--cache-dir={tmp_path}", "-p", "orthant")


def test_a_user_passes_mypy(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "user.py"
    program.write_text(
        "import numpy as np\n"
        "import orthant\n"
        "x = np.zeros((3, 2))\n"
        "found = orthant.divergence(x, x + 1, 0.5, method='online', threads=1)\n"
        "value: float = found.cross.value_kl\n"
        "plan = orthant.plan(x, x, 0.5)\n"
        "moved = plan.barycentric(x) + 1.0\n"
        "frozen = orthant.rot(x, x, 0.5).potential_x.mean()\n"
    )
    check(tmp_path, "mypy", "--strict", f"--cache-dir={tmp_path}", str(program))
    program.write_text("import orthant\northant.rot([[1.0]], [[2.0]], method='best')\n")
    with pytest.raises(AssertionError, match="method"):
        check(tmp_path, "mypy", "--strict", f"--cache-dir={tmp_path}", str(program))


def test_stubs_are_those_of_the_module(tmp_path):
    pytest.importorskip("mypy")
    check(tmp_path, "mypy.stubtest", "orthant._orthant")


def test_examples_run():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    count = 0
    places = [(orthant, "orthant"), (orthant.pot, "orthant.pot")]
    places += [(getattr(orthant, name), name) for name in orthant.__all__ if name != "__version__"]
    for place, name in places:
        module = place if inspect.ismodule(place) else False
        for example in finder.find(place, name, module=module, globs={}):
            count += len(example.examples)
            runner.run(example)
    assert runner.failures == 0 and count > 40


def test_everything_public_is_documented():
    for name in set(orthant.__all__) - {"__version__"}:
        assert inspect.getdoc(getattr(orthant, name)), name


@pytest.mark.parametrize("page", ["README.md", "../README.md"])
def test_examples_of_the_readme_run(page, capsys):
    text = (Path(__file__).parent.parent / page).read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
    assert "Divergence" in capsys.readouterr().out
