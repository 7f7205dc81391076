"""The arithmetic of a sweep over a chart: lanes of plain numbers, of dual numbers, or of either with an exponent.

A chart is an array, or a tuple of arrays: values, their derivatives (dual numbers), and exponents, which are integers.
The same sweep then computes a function, the function and its derivative along a direction, and both in a range that
nothing leaves; the types decide when it is compiled. A number with an exponent e is value 2^e, and its derivative is
derivative 2^e.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pullback.inference._numba.lanes import Lanes, call, floats, load_from, splat_of, store_to, vector_of

# Straight to LLVM: functions would have to be compiled wherever they are used.


def _parts(builder, kind, value):
    """The parts of a number or of a chart."""
    if not isinstance(kind, types.BaseTuple):
        return [value]
    return [builder.extract_value(value, i) for i in range(len(kind))]


def _whole(context, builder, kind, parts):
    return context.make_tuple(builder, kind, parts) if isinstance(kind, types.BaseTuple) else parts[0]


def _number(chart):
    """The type of the numbers of a chart."""
    if isinstance(chart, types.BaseTuple):
        return types.BaseTuple.from_types([floats(array.dtype) for array in chart])
    return floats(chart.dtype)


def _kinds(kind):
    return list(kind) if isinstance(kind, types.BaseTuple) else [kind]


def _scaled(kind):
    """Whether numbers have an exponent."""
    return isinstance(_kinds(kind)[-1].dtype, types.Integer)


def least_of(bits):
    """The exponent of 0, and the least one that is kept: those of three factors add up."""
    return -(2 ** (bits - 4))


@intrinsic
def at(typingctx, chart, index):
    """The number at a flat index."""
    number = _number(chart)

    def generate(context, builder, signature, args):
        arrays, charts = _kinds(signature.args[0]), _parts(builder, signature.args[0], args[0])
        found = [
            load_from(context, builder, array, part, args[1], vector)
            for array, part, vector in zip(arrays, charts, _kinds(number), strict=True)
        ]
        return _whole(context, builder, number, found)

    return number(chart, types.intp), generate


@intrinsic
def put(typingctx, chart, index, number):
    """Write a number to a flat index; if it has an exponent, with a value between 1 and 2, or 0."""

    def generate(context, builder, signature, args):
        arrays, charts = _kinds(signature.args[0]), _parts(builder, signature.args[0], args[0])
        values = _parts(builder, number, args[2])
        if _scaled(number):
            values = _normal(builder, values)
        for array, part, value, kind in zip(arrays, charts, values, _kinds(number), strict=True):
            store_to(context, builder, array, part, args[1], kind, value)
        return context.get_dummy_value()

    return types.void(chart, types.intp, number), generate


def _fill(kind, value):
    return ir.Constant(kind, [value] * kind.count)


def _power(builder, floating, k):
    """The power 2^k of integers k <= 0; 0 where that would be subnormal."""
    mantissa, bias = (23, 127) if isinstance(floating.element, ir.FloatType) else (52, 1023)
    bits = builder.shl(builder.add(k, _fill(k.type, bias)), _fill(k.type, mantissa))
    tiny = builder.icmp_signed("<=", k, _fill(k.type, -bias))
    return builder.bitcast(builder.select(tiny, _fill(k.type, 0), bits), floating)


def _larger(builder, a, b):
    return builder.select(builder.icmp_signed(">", a, b), a, b)


def _normal(builder, values):
    """Values and exponents so that the first value is between 1 and 2; 0 has the least exponent."""
    *numbers, exponent = values
    floating, integer = numbers[0].type, exponent.type
    mantissa, bias = (23, 127) if isinstance(floating.element, ir.FloatType) else (52, 1023)
    field = builder.lshr(builder.bitcast(numbers[0], integer), _fill(integer, mantissa))
    k = builder.sub(field, _fill(integer, bias))
    inverse = builder.bitcast(builder.shl(builder.sub(_fill(integer, bias), k), _fill(integer, mantissa)), floating)
    zero = builder.fcmp_unordered("==", numbers[0], _fill(floating, 0.0))
    inverse = builder.select(zero, _fill(floating, 1.0), inverse)
    least = _fill(integer, least_of(32 if mantissa == 23 else 64))
    exponent = builder.select(zero, least, _larger(builder, builder.add(exponent, k), least))
    return [*(builder.fmul(number, inverse) for number in numbers), exponent]


@intrinsic
def constant(typingctx, chart, value):
    """A constant, 0 or 1, for this kind of chart."""
    number = _number(chart)

    def generate(context, builder, signature, args):
        first, *rest = _kinds(number)
        vector = vector_of(first)
        parts = [splat_of(builder, context.cast(builder, args[1], signature.args[1], first.dtype), vector)]
        for kind in rest:
            if isinstance(kind.dtype, types.Integer):
                least = _fill(vector_of(kind), 4 * least_of(kind.dtype.bitwidth))  # below all products of two
                positive = builder.fcmp_ordered(">", parts[0], _fill(vector, 0.0))
                parts.append(builder.select(positive, _fill(vector_of(kind), 0), least))
            else:
                parts.append(_fill(vector_of(kind), 0.0))
        return _whole(context, builder, number, parts)

    return number(chart, value), generate


def _arithmetic(count, plain, tangent, scale=None):
    """An operation on numbers, from what it does to vectors, to their derivatives and to their exponents.

    `scale(builder, exponents)` returns the exponent of the result, and factors by which values of some operands change.
    """

    def generate(context, builder, signature, args):
        kind = signature.return_type
        first = _kinds(kind)[0]

        def fma(a, b, c):
            return call(builder, "fma", vector_of(first), a, b, c)

        numbers, ends = [_parts(builder, kind, number) for number in args], []
        if _scaled(kind):
            exponents = [number.pop() for number in numbers]
            exponent, shifts = scale(builder, *exponents)
            for operand, shift in shifts.items():
                by = _power(builder, vector_of(first), shift)
                numbers[operand] = [builder.fmul(x, by) for x in numbers[operand]]
            ends = [exponent]
        parts = [plain(builder, fma, *(number[0] for number in numbers))]
        if len(numbers[0]) > 1:
            parts.append(tangent(builder, fma, *numbers))
        return _whole(context, builder, kind, parts + ends)

    of_two, of_three = (lambda context, a, b: (a(a, a), generate)), (lambda context, a, b, c: (a(a, a, a), generate))
    return intrinsic(of_two if count == 2 else of_three)


def _tangent_of_inverse(builder, fma, one, x):
    inverse = builder.fdiv(one[0], x[0])
    return builder.fsub(one[1], builder.fmul(builder.fmul(x[1], inverse), inverse))


def _aligned(builder, a, b):
    top = _larger(builder, a, b)
    return top, {0: builder.sub(a, top), 1: builder.sub(b, top)}


def _aligned_product(builder, a, b, c):
    product = builder.add(a, b)
    top = _larger(builder, product, c)
    return top, {0: builder.sub(product, top), 2: builder.sub(c, top)}


plus = _arithmetic(2, lambda b, fma, x, y: b.fadd(x, y), lambda b, fma, x, y: b.fadd(x[1], y[1]), _aligned)
"""The sum a + b."""
times = _arithmetic(
    2, lambda b, fma, x, y: b.fmul(x, y), lambda b, fma, x, y: fma(x[0], y[1], b.fmul(x[1], y[0])),
    lambda builder, a, b: (builder.add(a, b), {}),
)  # fmt: skip
"""The product a * b."""
times_plus = _arithmetic(
    3, lambda b, fma, x, y, z: fma(x, y, z), lambda b, fma, x, y, z: fma(x[0], y[1], fma(x[1], y[0], z[1])), _aligned_product
)  # fmt: skip
"""The sum a * b + c."""
over = _arithmetic(2, lambda b, fma, one, x: b.fdiv(one, x), _tangent_of_inverse)
"""`over(one, x)`: one over x, without exponents."""
where_positive = _arithmetic(
    3,
    lambda b, fma, c, x, zero: b.select(b.fcmp_ordered(">", c, zero), x, zero),
    lambda b, fma, c, x, zero: b.select(b.fcmp_ordered(">", c[0], zero[0]), x[1], zero[0]),
)
"""`where_positive(condition, a, zero)`: a in the lanes where the condition's value is positive; without exponents."""


@intrinsic
def value_of(typingctx, a):
    """The number without its derivative and its exponent."""

    def generate(context, builder, signature, args):
        return _parts(builder, a, args[0])[0]

    return _kinds(a)[0](a), generate


def _flattening(place):
    @intrinsic
    def flat(typingctx, a):
        kind = a[0]

        def generate(context, builder, signature, args):
            parts = _parts(builder, a, args[0])
            exponent, number = parts[-1], parts[place]
            lower = builder.ashr(exponent, _fill(exponent.type, 1))  # in two steps: derivatives may be large
            for step in (lower, builder.sub(exponent, lower)):
                below = builder.select(builder.icmp_signed(">", step, _fill(step.type, 0)), _fill(step.type, 0), step)
                number = builder.fmul(number, _power(builder, vector_of(kind), below))
            return number

        return kind(a), generate

    return flat


flat_value = _flattening(0)
"""`flat_value(a)`: the value of a number with an exponent up to 0 as a plain vector."""
flat_tangent = _flattening(1)
"""The same for its derivative."""


@intrinsic
def whole_powers(typingctx, x):
    """The whole numbers next to x / log(2), in float64 as x is."""

    def generate(context, builder, signature, args):
        wide = vector_of(x)
        return call(builder, "rint", wide, builder.fmul(args[0], _fill(wide, 1.4426950408889634)))

    return x(x), generate


@intrinsic
def below_power(typingctx, x, top, exponents):
    """Split x = (top + k) log(2) + r: k as integers like those of the array `exponents`, but not far below 0, and r.

    All are float64, top a whole number; r is between -log(2) / 2 and log(2) / 2. No digits of x are lost.
    """
    kind = Lanes(exponents.dtype, x.count)
    result = types.Tuple((kind, x))

    def generate(context, builder, signature, args):
        wide = vector_of(x)
        k = call(builder, "rint", wide, builder.fmul(args[0], _fill(wide, 1.4426950408889634)))
        r = call(builder, "fma", wide, k, _fill(wide, -0.6931471803691238), args[0])
        r = call(builder, "fma", wide, k, _fill(wide, -1.9082149292705877e-10), r)
        k, least = builder.fsub(k, args[1]), _fill(wide, float(least_of(exponents.dtype.bitwidth) // 8))
        low = builder.fcmp_unordered("<", k, least)  # -inf, too
        k, r = builder.select(low, least, k), builder.select(low, _fill(wide, 0.0), r)
        return context.make_tuple(builder, result, [builder.fptosi(k, vector_of(kind)), r])

    return result(x, top, exponents), generate
