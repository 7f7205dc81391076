"""How many arcs two trees share: the entries of the Gram matrix, by comparing many heads at a time.

Rows of heads are padded to a multiple of `BLOCK` with -1, which counts as shared; callers subtract it.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pullback.inference.compile import lean

BLOCK = 32


@lean
def padded(n):
    """The width of a row of n heads."""
    return -(-n // BLOCK) * BLOCK


@intrinsic
def _equal(typingctx, heads, first, others, second):
    """How many of the `BLOCK` int16 at `heads.flat[first]` equal those at `others.flat[second]`."""

    def generate(context, builder, signature, args):
        vector = ir.VectorType(ir.IntType(16), BLOCK)
        rows = []
        for array, index in ((0, 1), (2, 3)):
            data = context.make_array(signature.args[array])(context, builder, args[array]).data
            pointer = builder.bitcast(builder.gep(data, [args[index]]), vector.as_pointer())
            row = builder.load(pointer, typ=vector)
            row.align = 2
            rows.append(row)
        bits = builder.bitcast(builder.icmp_signed("==", *rows), ir.IntType(BLOCK))
        return builder.zext(builder.ctpop(bits), ir.IntType(64))

    return types.int64(heads, types.intp, others, types.intp), generate


@lean
def shared(heads, first, others, second, width):
    """How many of the first `width` heads of two rows are equal, each given by the flat index of its start."""
    count = 0
    for block in range(0, width, BLOCK):
        count += _equal(heads, first + block, others, second + block)
    return count
