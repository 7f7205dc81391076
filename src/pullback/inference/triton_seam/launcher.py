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
    key = kernel, device, *map(_traits, args), *options.items()
    if key in _compiled:
        compiled, constants = _compiled[key]
        _again(compiled, programs, device, args, constants)
        return
    compiled = kernel[(programs,)](*args, **options)
    if compiled is not None and reuses(device):
        _compiled[key] = compiled, tuple(options[name] for name in kernel.arg_names if name in options)


def _again(compiled: Any, programs: int, device: torch.device, args: tuple[Any, ...], constants: tuple[Any, ...]) -> None:
    """What `compiled[grid](*args)` does, without Triton's hooks for profilers, which cost as much as the rest."""
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    compiled.run(programs, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None, *args, *constants)


def _traits(x: Any) -> Any:
    """What a kernel is compiled for of an argument: a tensor, a number that does not matter but for its size, or a tuple."""
    if isinstance(x, Tensor):
        return x.dtype, x.data_ptr() % 16 == 0
    return tuple(map(_traits, x)) if isinstance(x, tuple) else x.bit_length() // 32


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
        _again(compiled, 3, device, (out, 7), (1,))
    except Exception:
        return False
    return out.tolist() == [7, 8, 9]


@jit(do_not_specialize=["first"])
def _probe(out, first, STEP: tl.constexpr):
    tl.store(out + tl.program_id(0), first + STEP * tl.program_id(0))
