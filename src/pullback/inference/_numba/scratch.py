"""A queue of work for the workers of a kernel, and bytes of scratch memory cut into arrays, in compiled code.

The bytes are Python's (`threads.scratch`): kernels that make no arrays compile faster.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from pullback.inference._numba.compile import called


def unchecked(context, builder, kind, data, count):
    """Generate an array at a pointer that is not counted or checked."""
    element = context.get_data_type(kind.dtype)
    array = context.make_array(kind)(context, builder)
    size = context.get_constant(types.intp, context.get_abi_sizeof(element))
    pointer = builder.bitcast(data, element.as_pointer())
    populate_array(array, data=pointer, shape=[count], strides=[size], itemsize=size, meminfo=None)
    return array._getvalue()


@intrinsic
def _view(typingctx, work, at, count, dtype):
    """The numbers at a byte of the scratch."""
    kind = types.Array(dtype.dtype if isinstance(dtype, types.DType) else dtype.instance_type, 1, "C")

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return unchecked(context, builder, kind, builder.gep(data, [args[1]]), args[2])

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
