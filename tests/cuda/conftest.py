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
        pytest.skip("needs a GPU, or Triton's interpreter, where a test of its own runs it")
    with operators.backend("cuda"):
        yield torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def gpu() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.device("cuda")


@pytest.fixture
def in_interpreter() -> Callable[..., None]:
    """Runs pytest with these arguments in Triton's interpreter, with the `cuda` backend on the CPU, in float32."""
    if triton_support.triton is None:
        pytest.skip("Triton is not installed")

    def run(*arguments: str) -> None:
        chosen = {"TRITON_INTERPRET": "1", "PULLBACK_TEST_BACKENDS": "cuda", "PULLBACK_TEST_DTYPES": "float32"}
        environment = os.environ | chosen | {"CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]

    return run


def _faster_interpreter() -> None:
    """Without what makes it four times slower: checks of every integer operation for overflow, and patching all of
    `triton.language` anew at every call of one kernel by another (only Triton's own need it, once).

    Before Triton 3.7 it made numbers of arrays of one element by `int`, which NumPy 2.4 refuses.
    """
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    patch_tensor = interpreter._patch_lang_tensor

    def patch_tensor_for_numpy(tensor, scope):
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor_for_numpy
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
