"""Triton, where there is one: kernels of models, whose modules can be imported without it.

They run on a GPU, or, with `TRITON_INTERPRET=1` in the environment before Python starts, on a CPU: slow, for tests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`triton.jit`; without Triton the function as it is, which nobody can launch."""
    return (lambda function: function) if triton is None else triton.jit(**options)


def interpreting() -> bool:
    """Whether kernels run in Triton's interpreter."""
    return triton is not None and bool(triton.knobs.runtime.interpret)


def launch(kernel: Any, programs: int, device: torch.device, *args: Any, **options: Any) -> None:
    """Run so many programs of a kernel on a device, with its tensors and numbers, and its constants by name."""
    with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
        kernel[(programs,)](*args, **options)
