"""Start kernels, and start them again by what Triton compiled for such arguments before.

Triton's public way, `kernel[grid](...)`, takes twice as long to find what it compiled: most of the time of a small call.
What it returns, the compiled kernel, can be started by itself, but Triton does not promise how. So the first launch on a
device tries that on a small kernel; if the result is wrong or an error, all launches take the public way.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from pullback.inference.triton_support import jit, tl, triton

_compiled: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}


def start(kernel: Any, programs: int, device: torch.device, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Run so many programs of a kernel on the current stream: see `triton_support.launch`."""
    traits = [(x.dtype, x.data_ptr() % 16 == 0) if isinstance(x, Tensor) else x.bit_length() // 32 for x in args]
    key = kernel, device, *traits, *options.items()
    if key in _compiled:
        compiled, constants = _compiled[key]
        compiled[(programs, 1, 1)](*args, *constants)
        return
    compiled = kernel[(programs,)](*args, **options)
    if compiled is not None and reuses(device):
        _compiled[key] = compiled, tuple(options[name] for name in kernel.arg_names if name in options)


def reuses(device: torch.device) -> bool:
    """Whether compiled kernels can be started again; not known while a CUDA graph is captured, where nothing may wait."""
    if triton is None or device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return False
    return _self_test(device)


@functools.cache
def _self_test(device: torch.device) -> bool:
    """Whether a compiled kernel, started again with other arguments, does what `kernel[grid]` would."""
    out = torch.zeros(3, dtype=torch.int32, device=device)
    try:
        compiled = _probe[(2,)](out, 5, STEP=1, num_warps=1)
        compiled[(3, 1, 1)](out, 7, 1)
    except Exception:
        return False
    return out.tolist() == [7, 8, 9]


@jit(do_not_specialize=["first"])
def _probe(out, first, STEP: tl.constexpr):
    tl.store(out + tl.program_id(0), first + STEP * tl.program_id(0))
