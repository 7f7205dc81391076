"""The GPU's kernels are tested on a GPU where there is one, and in Triton's interpreter, in a process of its own."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from pullback.inference import operators, triton_support

ROOT = Path(__file__).parents[2]


@pytest.fixture
def device() -> Iterator[torch.device]:
    """Where the kernels run: a GPU, or the CPU in the interpreter; a test that needs neither is not for this folder."""
    if not torch.cuda.is_available() and not triton_support.interpreting():
        pytest.skip("needs a GPU, or Triton's interpreter: test_interpreter runs it there")
    with operators.backend("cuda"):
        yield torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def gpu() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.device("cuda")


@pytest.fixture
def in_interpreter() -> Callable[..., None]:
    """Runs pytest with these arguments in Triton's interpreter, with the `cuda` backend on the CPU."""
    if triton_support.triton is None:
        pytest.skip("Triton is not installed")
    if tuple(map(int, triton_support.triton.__version__.split(".")[:2])) < (3, 7):
        pytest.skip("the interpreter of Triton before 3.7 fails with NumPy from 2.4 on")

    def run(*arguments: str) -> None:
        environment = {"TRITON_INTERPRET": "1", "PULLBACK_TEST_BACKENDS": "cuda", "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]

    return run


def _faster_interpreter() -> None:
    """Without what makes it four times slower: checks of every integer operation for overflow, and patching all of
    `triton.language` anew at every call of one kernel by another (only Triton's own need it, once).
    """
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    patched: set[str] = set()

    def call(self, *args, **kwargs):
        module = self.fn.__module__
        if module.startswith("triton.") and module not in patched:
            interpreter._patch_lang(self.fn)
            patched.add(module)
        return self.rewrite()(*args, **kwargs)

    interpreter.InterpretedFunction.__call__ = call


if triton_support.interpreting():
    _faster_interpreter()
