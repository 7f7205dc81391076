"""The package as a whole: what it exports, what importing it costs, and which way its arrows point."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as pb

SOURCES = Path(pb.__file__).parent
CORE = {"torch", "numba", "numpy", "llvmlite", "triton", "pullback"}  # llvmlite comes with numba, triton with torch


def imports_of(folder):
    """The modules that the files below a folder import when they run, at once or lazily."""
    for path in sorted((SOURCES / folder).rglob("*.py")):
        for node in _running(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield path, node.module


def _running(node):
    """All nodes but those that only a type checker sees."""
    yield node
    if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        for child in ast.iter_child_nodes(node):
            yield from _running(child)


def test_public_names_are_there():
    assert {"Categorical", "DependencyTree", "Structure"} <= set(pb.__all__)
    assert all(hasattr(pb, name) for name in pb.__all__)


def test_losses_and_parts_have_modules_of_their_own():
    """One name for each thing: nothing is at the top level and in a group."""
    assert {"CrossEntropy", "Perceptron", "SparseMAPLoss"} <= set(pb.losses.__all__)
    assert {"FromArgmax", "Projected", "Gumbel", "LeaveOneOut", "InnerState"} <= set(pb.parts.__all__)
    groups = [set(pb.__all__), set(pb.losses.__all__), set(pb.parts.__all__)]
    assert sum(map(len, groups)) == len(set().union(*groups))
    for name in set().union(*groups[1:]):
        assert not hasattr(pb, name)


def test_signatures_of_classes_name_their_arguments():
    """What `help` and editors show; `*args` would hide the names."""
    classes = {name: each for name, each in vars(pb).items() if name in pb.__all__ and inspect.isclass(each)}
    for name, each in classes.items():
        if not issubclass(each, Warning):
            kinds = {parameter.kind for parameter in inspect.signature(each).parameters.values()}
            assert inspect.Parameter.VAR_POSITIONAL not in kinds, name
    assert list(inspect.signature(pb.Segmentation).parameters) == ["lengths", "transitions", "validate"]


@pytest.mark.parametrize("name", ["losses", "nn", "parts", "viz"])
def test_the_help_of_the_package_names_its_groups(name):
    assert f"pullback.{name}" in pb.__doc__
    assert getattr(pb, name).__doc__


def test_the_package_is_typed():
    assert (SOURCES / "py.typed").exists()


def test_importing_does_not_load_a_compiler():
    """What makes `import pullback` cheap: numba (and triton) come with the first call that needs them."""
    program = (
        "import torch, sys; before = set(sys.modules)\n"
        "import pullback\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pullback" in loaded
    assert not loaded & {"numba", "llvmlite", "triton", "scipy", "pandas", "matplotlib"}


def test_the_core_depends_on_torch_numba_and_numpy_alone():
    """Plots of diagnoses import Matplotlib where they draw, and say so where it is missing."""
    for folder in ("structures", "inference", "estimators", "nn"):
        for path, module in imports_of(folder):
            top = module.partition(".")[0]
            drawing = top == "matplotlib" and path.name == "show.py"
            assert drawing or top in CORE or top in sys.stdlib_module_names, f"{path} imports {module}"


@pytest.mark.parametrize(
    ("folder", "never"),
    [
        ("inference", ["pullback.structures", "pullback.estimators", "pullback_study"]),
        ("structures", ["pullback.estimators", "pullback.nn", "pullback_study"]),
        ("estimators", ["pullback.nn", "pullback_study"]),
    ],
)
def test_the_arrows_point_one_way(folder, never):
    for path, module in imports_of(folder):
        assert not any(module == name or module.startswith(name + ".") for name in never), f"{path} imports {module}"
