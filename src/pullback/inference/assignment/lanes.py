"""Vectors of eight float64, from scores of either dtype, and where two of them are equal."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pullback.inference._numba.lanes import Lanes, address_of, lanewise, splat_of, vector_of

LANES = 8
_DOUBLES = Lanes(types.float64, LANES)


def _read(builder, pointer, count):
    """Eight numbers from an address on, as float64; with a count, -inf behind the first `count`, whose memory is not read."""
    kind, aligned = pointer.type.pointee, ir.Constant(ir.IntType(32), 4)
    if count is None:
        value = builder.load(pointer)
        value.align = 4
    else:
        wide = ir.VectorType(ir.IntType(64), LANES)
        real = builder.icmp_signed("<", ir.Constant(wide, list(range(LANES))), splat_of(builder, count, wide))
        single = isinstance(kind.element, ir.FloatType)
        operands = pointer, aligned, real, ir.Constant(kind, [float("-inf")] * LANES)
        function = ir.FunctionType(kind, [x.type for x in operands])
        name = f"llvm.masked.load.v{LANES}f{32 if single else 64}.p0"
        value = builder.call(builder.module.globals.get(name) or ir.Function(builder.module, function, name), operands)
    return builder.fpext(value, vector_of(_DOUBLES)) if isinstance(kind.element, ir.FloatType) else value


def _loading(masked):
    def generate(context, builder, signature, args):
        pointer = address_of(
            context, builder, signature.args[0], args[0], args[1], vector_of(Lanes(signature.args[0].dtype, LANES))
        )
        return _read(builder, pointer, args[2] if masked else None)

    return generate


@intrinsic
def load_doubles(typingctx, array, index):
    """The eight numbers from `array.flat[index]` on, as float64."""
    return _DOUBLES(array, types.intp), _loading(masked=False)


@intrinsic
def load_first_doubles(typingctx, array, index, count):
    """The first `count` of them, and -inf in the other lanes, whose memory is not read."""
    return _DOUBLES(array, types.intp, types.intp), _loading(masked=True)


@intrinsic
def splat_double(typingctx, value):
    """The same float64 in every lane."""
    return _DOUBLES(types.float64), lambda context, builder, signature, args: splat_of(builder, args[0], vector_of(_DOUBLES))


@intrinsic
def equal(typingctx, a, b):
    """The lanes where two vectors are equal, as bits of a number."""

    def generate(context, builder, signature, args):
        bits = builder.bitcast(builder.fcmp_ordered("==", args[0], args[1]), ir.IntType(LANES))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(a, b), generate


smaller = lanewise(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b), 2)
"""The smaller of each pair; b where they are equal or one is NaN."""
