"""What Python shows: names, docstrings, tables for notebooks."""

import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import orthant
import orthant.pot
from orthant import _settings

CLASSES = [getattr(orthant, name) for name in orthant.__all__ if inspect.isclass(getattr(orthant, name))]
CLASSES += [orthant.pot.OTResult, orthant.pot.LazyPlan]


def members(cls):
    """What a class has by itself, and users may call."""
    return {name: value for name, value in vars(cls).items() if not name.startswith("_")}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_attribute_and_method_has_a_docstring(cls):
    assert inspect.getdoc(cls)
    for name, value in members(cls).items():
        described = isinstance(value, property) or inspect.isdatadescriptor(value) or inspect.isroutine(value)
        if described:
            assert inspect.getdoc(value), f"{cls.__name__}.{name}"


def test_classes_of_torch_have_docstrings():
    pytest.importorskip("torch")
    for cls in (orthant.torch.SinkhornDivergence, orthant.torch.LearnedFeatures):
        for name, value in members(cls).items():
            if isinstance(value, property) or inspect.isroutine(value):
                assert inspect.getdoc(value), f"{cls.__name__}.{name}"


def test_results_are_counted():
    """So that the test above is about something."""
    count = sum(len(members(cls)) for cls in CLASSES)
    assert count > 150 and len(CLASSES) >= 18


def test_help_shows_them(capsys):
    help(orthant.Divergence)
    shown = capsys.readouterr().out
    assert "zero if the clouds are equal" in shown and "The solution of `W(x, y)`" in shown


def test_stubs_have_the_docstrings_of_the_module():
    tree = ast.parse((Path(orthant.__file__).parent / "_orthant.pyi").read_text())
    compared = 0
    for cls in [node for node in tree.body if isinstance(node, ast.ClassDef)]:
        real = getattr(orthant, cls.name)
        assert ast.get_docstring(cls) == inspect.getdoc(real), cls.name
        for member in [node for node in cls.body if isinstance(node, ast.FunctionDef)]:
            if not member.name.startswith("_"):
                assert ast.get_docstring(member) == inspect.getdoc(getattr(real, member.name)), f"{cls.name}.{member.name}"
                compared += 1
    assert compared > 130


def test_all_settings_are_explained_once():
    explained = inspect.getdoc(orthant.rot)
    for name in _settings.DEFAULTS:
        # As a parameter, at the beginning of a line, maybe with others.
        heads = [line.partition(" : ")[0] for line in explained.splitlines() if " : " in line and line[0] != " "]
        assert sum(name in [n.strip() for n in head.split(",")] for head in heads) == 1, name
    for name in _settings.MOVES:
        assert name in inspect.getdoc(orthant.flow), name
    assert "finished" in inspect.getdoc(orthant.compare)
    for name in ("divergence", "plan", "gradient", "map", "barycenter", "compare", "two_sample_test", "flow"):
        assert "`rot`" in inspect.getdoc(getattr(orthant, name)), name


def test_dir_is_clean_and_has_torch():
    pytest.importorskip("torch")
    assert set(dir(orthant)) == {*orthant.__all__, "torch"}
    public = {name for name in vars(orthant) if not name.startswith("_")}
    assert public <= {*orthant.__all__, "torch"}


def test_torch_comes_when_it_is_asked_for():
    pytest.importorskip("torch")
    program = """
        import sys, orthant
        assert "torch" not in sys.modules and "torch" in dir(orthant)
        assert "torch" not in sys.modules
        print(orthant.torch.SinkhornDivergence.__name__)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "SinkhornDivergence\n", done.stderr


def test_without_torch_the_error_says_what_to_install():
    program = """
        import importlib.util, sys
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
        sys.modules["torch"] = None
        import orthant
        assert "torch" not in dir(orthant)
        try:
            orthant.torch
        except ImportError as error:
            print(error)
        assert not hasattr(orthant, "tensorflow")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "orthant.torch needs PyTorch, which is not installed: pip install torch\n", done.stderr
