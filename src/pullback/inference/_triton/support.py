"""Triton, where there is one: the decorator and language of GPU kernels, and a launch that says what is missing.

Kernels are written with `jit` and `tl` from here, so that their modules can be imported without Triton. They run on a GPU,
or, with `TRITON_INTERPRET=1` in the environment before Python starts, on a CPU in Triton's interpreter: slow, for tests.

A kernel that has changed since it last gave right results on a GPU serves only with `PULLBACK_UNPROVEN_KERNELS=1`.
"""

from __future__ import annotations

import functools
import os
import shutil
import sysconfig
import tempfile
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`triton.jit`; without Triton the function as it is, which nobody can launch."""
    return (lambda function: function) if triton is None else triton.jit(**options)


def constant(value: float) -> Any:
    """A constant that kernels may use by its name."""
    return value if tl is None else tl.constexpr(value)


def interpreting() -> bool:
    """Whether kernels run in Triton's interpreter."""
    if triton is None or not hasattr(triton, "knobs"):  # which older releases do not have
        return triton is not None and os.environ.get("TRITON_INTERPRET", "0") == "1"
    return bool(triton.knobs.runtime.interpret)


def unproven() -> bool:
    """Whether kernels serve that have not been right on a GPU since they last changed: see docs/gpu.md."""
    return os.environ.get("PULLBACK_UNPROVEN_KERNELS", "0") not in ("", "0")


class Fixed:
    """The last arguments of a kernel, tensors and numbers, and constants: the same in many launches, which look at them once.

    Attributes:
        compiled: what was compiled for them, by the kernel and the traits of its other arguments.
    """

    def __init__(self, *args: Tensor | int, **options: int) -> None:
        self.args, self.options = args, options
        self.compiled: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...], Any]] = {}
        self.values = [x.data_ptr() if isinstance(x, Tensor) else x for x in args]  # Triton takes addresses for tensors


_NOTHING = Fixed()


def launch(kernel: Any, programs: int, device: torch.device, *args: Any, fixed: Any = _NOTHING, **options: Any) -> None:
    """Run so many programs of a kernel on the current stream of a device.

    Args:
        kernel: a function of `jit`, with all its numbers in `do_not_specialize`.
        programs: how many.
        device: where the tensors are.
        args: the kernel's tensors and numbers.
        fixed: a `Fixed`, of the last of them and further options, where many launches share these.
        options: its constants, which come last among its parameters, and Triton's own options.
    """
    require(device)
    if device.type == "cuda" and device.index != torch.cuda.current_device():
        with torch.cuda.device(device):
            return launch(kernel, programs, device, *args, fixed=fixed, **options)
    from pullback.inference._triton import launcher  # which needs `jit` from here

    try:
        launcher.start(kernel, programs, device, args, fixed, options)
    except Exception as error:
        missing = missing_tools()
        if missing is None or interpreting():
            raise
        raise RuntimeError(missing) from error


@functools.cache
def require(device: torch.device) -> None:
    """Raise where kernels cannot run on tensors of this device."""
    if triton is None:
        raise RuntimeError(
            "inference on a GPU needs Triton, which is not installed (PyTorch for CUDA on Linux includes it): "
            "pip install triton, or pass scores.cpu()"
        )
    if device.type != "cuda" and not interpreting():
        raise RuntimeError(
            f"the cuda backend got tensors on {device}: move them to a GPU, or set TRITON_INTERPRET=1 in the "
            "environment before Python starts to run its kernels in Triton's interpreter"
        )


def missing_tools() -> str | None:
    """What Triton needs to compile a kernel and does not find, and what to do; None if all is there."""
    compiler = os.environ.get("CC") or "gcc or clang"
    if not any(shutil.which(name) for name in compiler.split(" or ")):
        return (
            f"Triton needs a C compiler to start a kernel and found no {compiler}: install one (Debian: apt install gcc) "
            "or name it in the environment variable CC"
        )
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")  # as Triton looks for them
    headers = os.path.join(sysconfig.get_paths(scheme)["include"], "Python.h")
    if not os.path.exists(headers):
        return (
            f"Triton needs Python's headers to start a kernel and found no {headers}: install them "
            "(Debian: apt install python3-dev)"
        )
    cache = triton.knobs.cache.dir if hasattr(triton, "knobs") else os.environ.get("TRITON_CACHE_DIR", "~/.triton/cache")
    cache = os.path.expanduser(cache)
    if not _writable(cache):
        return (
            f"Triton keeps compiled kernels in {cache}, which cannot be written: name another folder in the environment "
            "variable TRITON_CACHE_DIR"
        )
    return None


def _writable(folder: str) -> bool:
    """Whether files can be made in a folder, which is made if need be."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def program_count(examples: int, scratch: int, least: int = 32) -> int:
    """How many programs share the examples of a batch, if each needs `scratch` bytes: a GiB in all, but `least` of them."""
    return max(1, min(examples, max(least, 2**30 // max(scratch, 1))))


def contiguous(x: Tensor) -> Tensor:
    """The same values, one after the other."""
    return x if x.is_contiguous() else x.contiguous()


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is at least x."""
    return 1 << (x - 1).bit_length()
