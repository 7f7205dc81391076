"""A queue that the threads of a kernel share: whoever is free takes the next unit of work."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def take(typingctx, taken):
    """The number of the next unit; `taken`, `[1]` of int64, counts those that have been taken."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(taken), generate
