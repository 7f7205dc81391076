"""What the workers of a kernel share: a queue of work, and scratch memory, bytes that Python makes, cut into arrays.

Kernels that make no arrays compile faster.
"""

from __future__ import annotations

import threading

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from pullback.inference._numba.compile import called

_KEPT = 1 << 24  # bytes: what is larger is made anew, and given back
_own = threading.local()


def scratch(units: int, size: int) -> np.ndarray:
    """So many bytes for each of the workers that may share some units of work: a row each, for `carve`.

    No more workers than rows may run. Each thread keeps its last one, which spares the page faults of fresh memory; what it
    returns is valid until the next call.
    """
    workers, row = max(1, min(torch.get_num_threads(), units)), -(-size // 64) * 64
    found: np.ndarray | None = getattr(_own, "bytes", None)
    if found is None or len(found) < workers * row:
        found = torch.empty(workers * row, dtype=torch.uint8, device="cpu").numpy()  # begins at a cache line
        if len(found) <= _KEPT:
            _own.bytes = found
    return found[: workers * row].reshape(workers, row)


@intrinsic
def _view(typingctx, work, at, count, dtype):
    """The numbers at a byte of the scratch, as an array that is not counted or checked."""
    kind = types.Array(dtype.dtype if isinstance(dtype, types.DType) else dtype.instance_type, 1, "C")

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        element = context.get_data_type(kind.dtype)
        array = context.make_array(kind)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(element))
        populate_array(
            array, data=builder.bitcast(builder.gep(data, [args[1]]), element.as_pointer()), shape=[args[2]],
            strides=[size], itemsize=size, meminfo=None,
        )  # fmt: skip
        return array._getvalue()

    return kind(work, types.intp, types.intp, dtype), generate


@called
def carve(work, at, count, dtype):
    """An array of `count` numbers in the scratch, from byte `at` on, and where the next one may begin: at a cache line."""
    array = _view(work, at, count, dtype)
    return array, (at + array.itemsize * count + 63) // 64 * 64


@intrinsic
def take(typingctx, taken):
    """The number of the next unit of work; `taken`, `[1]` of int64, counts those that all workers have taken."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(taken), generate
