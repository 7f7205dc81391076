"""The GPU's kernels are tested on a GPU where there is one, and in Triton's interpreter, in a process of its own.

In the interpreter all memory that nobody wrote is NaN, so that whoever reads it shows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
import torch

import interpreter
from pullback.inference._triton import support as triton_support
from pullback.inference.front.family import backend


@pytest.fixture
def device() -> Iterator[torch.device]:
    """Where the kernels run: a GPU, or the CPU in the interpreter."""
    with backend("cuda"):
        yield torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def gpu() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.device("cuda")


@pytest.fixture
def poisoned() -> Callable[[], AbstractContextManager[None]]:
    """A block in which all memory that nobody wrote is NaN, or the largest integer."""
    return _poisoned


@contextlib.contextmanager
def _poisoned() -> Iterator[None]:
    interpreter.poison(True)
    try:
        yield
    finally:
        interpreter.poison(False)


if triton_support.interpreting():
    interpreter.patch()
    interpreter.poison(True)
