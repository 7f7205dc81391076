"""Vectors of float64 with as many lanes as those of another precision: values keep their digits, exponentials their speed.

`like` is an array whose dtype says how many lanes there are (`inference/_numba/lanes.py`).
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pullback.inference._numba.lanes import Lanes, address_of, call, floats, lanewise, splat_of, vector_of


def _wide(like):
    return Lanes(types.float64, floats(like.dtype).count)


@intrinsic
def load_wide(typingctx, array, index, like):
    """The vector of float64 at `array.flat[index]`."""
    kind = _wide(like)

    def generate(context, builder, signature, args):
        pointer = address_of(context, builder, signature.args[0], args[0], args[1], vector_of(kind))
        value = builder.load(pointer)
        value.align = 8
        return value

    return kind(array, types.intp, like), generate


@intrinsic
def splat_wide(typingctx, value, like):
    """A vector of float64 with `value` in every lane."""
    kind = _wide(like)

    def generate(context, builder, signature, args):
        return splat_of(builder, context.cast(builder, args[0], signature.args[0], kind.dtype), vector_of(kind))

    return kind(value, like), generate


@intrinsic
def narrow(typingctx, x, like):
    """A vector of float64 in the precision of `like`."""
    kind = floats(like.dtype)

    def generate(context, builder, signature, args):
        return args[0] if kind == x else builder.fptrunc(args[0], vector_of(kind))

    return kind(x, like), generate


@intrinsic
def widen(typingctx, x):
    """A vector in float64."""
    kind = Lanes(types.float64, x.count)

    def generate(context, builder, signature, args):
        return args[0] if kind == x else builder.fpext(args[0], vector_of(kind))

    return kind(x), generate


@intrinsic
def raised(typingctx, x, value):
    """The vector with `value` added to every lane."""

    def generate(context, builder, signature, args):
        element = context.cast(builder, args[1], signature.args[1], x.dtype)
        return builder.fadd(args[0], splat_of(builder, element, vector_of(x)))

    return x(x, value), generate


def _select_positive(builder, x, then, otherwise):
    return builder.select(builder.fcmp_ordered(">", x, ir.Constant(x.type, [0.0] * x.type.count)), then, otherwise)


select_positive = lanewise(_select_positive, 3)
"""`select_positive(x, then, otherwise)`: `then` in the lanes where x > 0, else `otherwise`: also where x is NaN."""


def logarithm(builder, x):
    """Generate the logarithm of each lane."""
    vector = x.type
    bits = 32 if isinstance(vector.element, ir.FloatType) else 64
    mantissa, terms = (23, 5) if bits == 32 else (52, 12)
    integer = ir.VectorType(ir.IntType(bits), vector.count)

    def constant(value, kind=vector):
        return ir.Constant(kind, [value] * kind.count)

    # x = m 2^k with m in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) makes the exponent field say so
    half = 0x3F3504F3 if bits == 32 else 0x3FE6A09E667F3BCD
    raw = builder.bitcast(x, integer)
    k = builder.ashr(builder.sub(raw, constant(half, integer)), constant(mantissa, integer))
    m = builder.bitcast(builder.sub(raw, builder.shl(k, constant(mantissa, integer))), vector)
    f = builder.fdiv(builder.fsub(m, constant(1.0)), builder.fadd(m, constant(1.0)))
    square = builder.fmul(f, f)
    series = constant(2.0 / (2 * terms + 1))
    for term in reversed(range(terms)):  # 2 atanh(f) / f
        series = builder.fadd(builder.fmul(series, square), constant(2.0 / (2 * term + 1)))
    exponent = builder.fmul(builder.sitofp(k, vector), constant(math.log(2)))
    return builder.fadd(builder.fmul(series, f), exponent)


log = lanewise(logarithm, 1)
"""The logarithm of each lane, for finite normal x > 0, within two roundings."""


@intrinsic
def power_and_rest(typingctx, x):
    """Whole numbers k and numbers r with x = k log(2) + r, for float64. For -inf, k is -inf; from 1e15 on, r is 0."""
    result = types.Tuple((x, x))

    def generate(context, builder, signature, args):
        vector = vector_of(x)

        def constant(value):
            return ir.Constant(vector, [value] * x.count)

        k = call(builder, "rint", vector, builder.fmul(args[0], constant(1 / math.log(2))))
        r = call(builder, "fma", vector, k, constant(-0.6931471803691238), args[0])
        r = call(builder, "fma", vector, k, constant(-1.9082149292705877e-10), r)
        known = builder.fcmp_ordered("<", call(builder, "fabs", vector, args[0]), constant(1e15))
        return context.make_tuple(builder, result, [k, builder.select(known, r, constant(0.0))])

    return result(x), generate


def _exponent_bits(kind):
    """The integers of a vector's bits, how many bits its mantissa has, and the bits of 1."""
    integer, mantissa = (ir.IntType(32), 23) if kind.dtype.bitwidth == 32 else (ir.IntType(64), 52)
    return ir.VectorType(integer, kind.count), mantissa, (127 if mantissa == 23 else 1023) << mantissa


@intrinsic
def power_of_two(typingctx, k, like):
    """The power 2^k of whole numbers k <= 0 in float64, in the precision of `like`; 0 where it would be subnormal."""
    kind = floats(like.dtype)

    def generate(context, builder, signature, args):
        vector = vector_of(kind)
        integer, mantissa, one = _exponent_bits(kind)

        def constant(value, kind=vector):
            return ir.Constant(kind, [value] * kind.count)

        number = args[0] if vector == vector_of(k) else builder.fptrunc(args[0], vector)
        raw = builder.bitcast(builder.fadd(number, constant(1.5 * 2.0**mantissa)), integer)  # whose last bits are k
        power = builder.add(builder.shl(raw, constant(mantissa, integer)), constant(one, integer))
        normal = builder.fcmp_ordered(">", number, constant(-127.0 if mantissa == 23 else -1023.0))
        return builder.select(normal, builder.bitcast(power, vector), constant(0.0))

    return kind(k, like), generate


@intrinsic
def mantissa_and_power(typingctx, x):
    """Numbers m from 1 up to 2, and whole numbers k in float64, with x = m 2^k; anything where x is not positive."""
    wide = Lanes(types.float64, x.count)
    result = types.Tuple((x, wide))

    def generate(context, builder, signature, args):
        integer, mantissa, one = _exponent_bits(x)
        raw, places = builder.bitcast(args[0], integer), ir.Constant(integer, [mantissa] * x.count)
        k = builder.ashr(builder.sub(raw, ir.Constant(integer, [one] * x.count)), places)
        m = builder.bitcast(builder.sub(raw, builder.shl(k, places)), vector_of(x))
        return context.make_tuple(builder, result, [m, builder.sitofp(k, vector_of(wide))])

    return result(x), generate


def _transposed(builder, rows):
    """Vectors whose lane j of vector i is lane i of vector j: blocks are exchanged, from halves down to single lanes."""
    count = len(rows)
    size = count // 2
    while size >= 1:
        low, high = [], []
        for j in range(count):
            low.append(j if j & size == 0 else count + j - size)
            high.append(j + size if j & size == 0 else count + j)
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), count), lanes) for lanes in (low, high)]
        for i in range(count):
            if i & size == 0:
                a, b = rows[i], rows[i + size]
                rows[i], rows[i + size] = (builder.shuffle_vector(a, b, mask) for mask in masks)
        size //= 2
    return rows


def _pointers(context, builder, array_type, array, bases_type, bases, offset, count):
    """The address of `array.flat[bases[lane] + offset]` for each lane."""
    data = context.make_array(array_type)(context, builder, array).data
    starts = context.make_array(bases_type)(context, builder, bases).data
    for lane in range(count):
        start = builder.load(builder.gep(starts, [ir.Constant(ir.IntType(64), lane)]))
        yield builder.gep(data, [builder.add(start, offset)])


@intrinsic
def pack_block(typingctx, array, bases, offset, packed, index):
    """Put as many numbers of each example as there are lanes, from `array.flat[bases[lane] + offset]` on, side by side.

    `packed.flat[index]` becomes the vector of all examples' first number, behind it that of their second, and so on.
    """
    kind = floats(array.dtype)

    def generate(context, builder, signature, args):
        vector = vector_of(kind)
        rows = []
        for pointer in _pointers(context, builder, signature.args[0], args[0], signature.args[1], args[1], args[2], kind.count):
            row = builder.load(builder.bitcast(pointer, vector.as_pointer()))
            row.align = array.dtype.bitwidth // 8
            rows.append(row)
        for i, column in enumerate(_transposed(builder, rows)):
            place = builder.add(args[4], ir.Constant(ir.IntType(64), i * kind.count))
            pointer = address_of(context, builder, signature.args[3], args[3], place, vector)
            builder.store(column, pointer).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, bases, types.intp, packed, types.intp), generate


@intrinsic
def unpack_block(typingctx, packed, index, array, bases, offset):
    """The reverse of `pack_block`, for arrays of one dtype."""
    kind = floats(array.dtype)

    def generate(context, builder, signature, args):
        vector = vector_of(kind)
        rows = []
        for i in range(kind.count):
            place = builder.add(args[1], ir.Constant(ir.IntType(64), i * kind.count))
            row = builder.load(address_of(context, builder, signature.args[0], args[0], place, vector))
            row.align = array.dtype.bitwidth // 8
            rows.append(row)
        pointers = _pointers(context, builder, signature.args[2], args[2], signature.args[3], args[3], args[4], kind.count)
        for pointer, column in zip(pointers, _transposed(builder, rows), strict=True):
            builder.store(column, builder.bitcast(pointer, vector.as_pointer())).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(packed, types.intp, array, bases, types.intp), generate
