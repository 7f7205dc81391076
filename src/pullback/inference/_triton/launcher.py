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

from pullback.inference._triton.support import Fixed, jit, tl, triton


def start(
    kernel: Any, programs: int, device: torch.device, args: tuple[Any, ...], fixed: Fixed, options: dict[str, Any]
) -> None:
    """Run so many programs of a kernel on the current stream: see `triton_support.launch`."""
    key: list[Any] = [id(kernel), device, *options.items()]
    values: list[Any] = []
    _read(args, key, values)
    known = fixed.compiled.get(tuple(key))
    if known is not None:
        _again(known[0], programs, device, (*values, *fixed.values), known[1])
        return
    every = fixed.options | options
    compiled = kernel[(programs,)](*args, *fixed.args, **every)
    if compiled is not None and reuses(device):
        constants = tuple(every[name] for name in kernel.arg_names if name in every)
        fixed.compiled[tuple(key)] = compiled, constants, kernel  # which lives as long as its number is in a key


def _read(args: tuple[Any, ...], key: list[Any], values: list[Any]) -> None:
    """Append what a kernel is compiled for of tensors, numbers (which do not matter but for their size) and tuples of them,
    and what its launcher takes: Triton would ask the driver about every tensor, but takes an address as it is.
    """
    for x in args:
        if isinstance(x, Tensor):
            at = x.data_ptr()
            key.append(x.dtype)
            key.append(at % 16 == 0)
            values.append(at)
        elif isinstance(x, tuple):
            inner: list[Any] = []
            key.append(len(x))
            _read(x, key, inner)
            values.append(tuple(inner))
        else:
            key.append(x.bit_length() // 32)
            values.append(x)


def _again(compiled: Any, programs: int, device: torch.device, args: tuple[Any, ...], constants: tuple[Any, ...]) -> None:
    """What `compiled[grid](*args)` does, without Triton's hooks for profilers, which cost as much as the rest."""
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    compiled.run(programs, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None, *args, *constants)


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
        _again(compiled, 3, device, (out.data_ptr(), 7), (1,))
    except Exception:
        return False
    return out.tolist() == [7, 8, 9]


@jit(do_not_specialize=["first"])
def _probe(out, first, STEP: tl.constexpr):
    tl.store(out + tl.program_id(0), first + STEP * tl.program_id(0))
