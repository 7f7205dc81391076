"""Vectors of eight numbers, and where two of them are equal."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pullback.inference._numba.lanes import Lanes, splat_of, vector_of

LANES = 8


@intrinsic
def splat_eight(typingctx, array, value):
    """Eight lanes of `array`'s dtype with `value` in each."""
    kind = Lanes(array.dtype, LANES)

    def generate(context, builder, signature, args):
        return splat_of(builder, context.cast(builder, args[1], signature.args[1], kind.dtype), vector_of(kind))

    return kind(array, value), generate


@intrinsic
def equal(typingctx, a, b):
    """The lanes where two vectors are equal, as bits of a number."""

    def generate(context, builder, signature, args):
        bits = builder.bitcast(builder.fcmp_ordered("==", args[0], args[1]), ir.IntType(LANES))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(a, b), generate
