"""The exponential of a chain's scores, for Numba: as few instructions as float32 allows, as they are a third of inference."""

from __future__ import annotations

import math

from llvmlite import ir
from numba.extending import intrinsic

from pullback.inference._numba.lanes import call, vector_of

_POWER = (1.0, 0.6931469775991649, 0.2402224208537498, 0.05550733743251342, 0.009671512639653993, 0.001326472719744566)
"""The polynomial of degree 5 with the least relative error for 2^r between -1/2 and 1/2, and none at 0: 9e-8."""
_WIDE_POWER = tuple(math.log(2) ** k / math.factorial(k) for k in range(14))


@intrinsic
def exp_or_nan(typingctx, x):
    """The exponential of each lane for x <= 80; exactly 0 where it would be subnormal and at -inf, NaN where x is NaN.

    exp(x) = 2^k 2^r, where k is the whole number next to y = x / log(2), and r = y - k. The constant 1 / log(2) is rounded,
    which changes y by no more than the rounding of x does.
    """

    def generate(context, builder, signature, args):
        vector, bits = vector_of(x), x.dtype.bitwidth
        integer = ir.VectorType(ir.IntType(bits), vector.count)
        mantissa, lowest, coefficients = (23, -87.0, _POWER) if bits == 32 else (52, -708.0, _WIDE_POWER)

        def constant(value, kind=vector):
            return ir.Constant(kind, [value] * kind.count)

        def fma(a, b, c):
            return call(builder, "fma", vector, a, b, c)

        # so large that the sum is rounded to a whole number k, which stands in its last bits
        large, factor = constant(1.5 * 2.0**mantissa), constant(1 / math.log(2))
        shifted = fma(args[0], factor, large)
        r = fma(args[0], factor, builder.fsub(large, shifted))
        value = constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = fma(value, r, constant(coefficient))
        power = builder.shl(builder.bitcast(shifted, integer), constant(mantissa, integer))
        value = builder.bitcast(builder.add(builder.bitcast(value, integer), power), vector)
        # the bits of a NaN may have become a number's; this is a maximum, of which NaN is the second operand
        rest = builder.select(builder.fcmp_ordered(">", constant(0.0), args[0]), constant(0.0), args[0])
        return builder.select(builder.fcmp_ordered(">=", args[0], constant(lowest)), value, rest)

    return x(x), generate
