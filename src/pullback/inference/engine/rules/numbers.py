"""The arithmetic of a sweep over a chart, for every kind of number: the types decide when it is compiled.

A chart is an array, or a tuple of arrays, whose dtypes say what they are:

    values                                         weights
    values, derivatives                            dual numbers: the derivative along a direction
    values, integers                               value 2^k: a range that little leaves
    values, derivatives, integers                  both: the derivative is derivative 2^k
    values, [derivatives,] integers, two numbers   value 2^(k + 2^44 h + 2^84 g): a range that nothing leaves
    values, integers, two numbers, entropies       the same with the entropy of the terms of all sums in it

The same sweep then computes a function, its derivative along a direction, or the entropy, and each of them in a larger range.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pullback.inference._numba.lanes import Lanes, call, floats, load_from, splat_of, store_to, vector_of
from pullback.inference._numba.vectors import logarithm

# Straight to LLVM: functions would have to be compiled wherever they are used.

_FAR, _FARTHER = 2.0**44, 2.0**84
_NOWHERE = -1e300  # the g of 0: below all others, and sums of many are finite
_LN2 = 0.6931471803691238, 1.9082149292705877e-10  # log(2) in two pieces: the first has few bits


class _Number(NamedTuple):
    """The parts of a number, or the arrays of a chart: a value, and perhaps its derivative; exponents; an entropy."""

    values: list[Any]
    exponents: list[Any]
    entropies: list[Any]


def _sorted(kind, parts):
    """Parts by what they are."""
    first = next((i for i, each in enumerate(_kinds(kind)) if isinstance(each.dtype, types.Integer)), len(parts))
    return _Number(parts[:first], parts[first : first + 3], parts[first + 3 :])


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
        own = _sorted(number, values)
        values = [*_normal(builder, own), *own.entropies] if own.exponents else values
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


def _clamped(builder, x, most):
    """Vectors of float64 between minus and plus a number."""
    low, high = _fill(x.type, -most), _fill(x.type, most)
    x = builder.select(builder.fcmp_ordered(">", x, low), x, low)
    return builder.select(builder.fcmp_ordered("<", x, high), x, high)


def _near(builder, exponents):
    """The integers k + 2^44 h + 2^84 g, or as large as is of use."""
    if len(exponents) == 1:
        return exponents[0]
    k, h, g = exponents
    far = call(builder, "fma", h.type, g, _fill(h.type, _FARTHER / _FAR), h)
    return builder.add(k, builder.fptosi(builder.fmul(_clamped(builder, far, 2.0**16), _fill(h.type, _FAR)), k.type))


def _normal(builder, number):
    """Values and exponents so that the first value is between 1 and 2; 0 has the least exponents."""
    first, exponent = number.values[0], number.exponents[0]
    floating, integer = first.type, exponent.type
    mantissa, bias = (23, 127) if isinstance(floating.element, ir.FloatType) else (52, 1023)
    field = builder.lshr(builder.bitcast(first, integer), _fill(integer, mantissa))
    k = builder.sub(field, _fill(integer, bias))
    inverse = builder.bitcast(builder.shl(builder.sub(_fill(integer, bias), k), _fill(integer, mantissa)), floating)
    zero = builder.fcmp_unordered("==", first, _fill(floating, 0.0))
    inverse = builder.select(zero, _fill(floating, 1.0), inverse)
    least = _fill(integer, least_of(32 if mantissa == 23 else 64))
    exponent = builder.select(zero, least, _larger(builder, builder.add(exponent, k), least))
    far = [builder.select(zero, _fill(floating, low), x) for x, low in zip(number.exponents[1:], (0.0, _NOWHERE), strict=False)]
    return [*(builder.fmul(value, inverse) for value in number.values), exponent, *far]


@intrinsic
def constant(typingctx, chart, value):
    """A constant, 0 or 1, for this kind of chart."""
    number = _number(chart)

    def generate(context, builder, signature, args):
        kinds = _kinds(number)
        vector = vector_of(kinds[0])
        parts = [splat_of(builder, context.cast(builder, args[1], signature.args[1], kinds[0].dtype), vector)]
        own, positive = _sorted(number, kinds), builder.fcmp_ordered(">", parts[0], _fill(vector, 0.0))
        parts += [_fill(vector_of(kind), 0.0) for kind in own.values[1:]]
        for kind, least in zip(own.exponents, (4 * least_of(kinds[0].dtype.bitwidth), 0, _NOWHERE), strict=False):
            nothing = _fill(vector_of(kind), least)  # below all products of two
            parts.append(builder.select(positive, _fill(vector_of(kind), 0), nothing))
        return _whole(context, builder, number, [*parts, *(_fill(vector_of(kind), 0.0) for kind in own.entropies)])

    return number(chart, value), generate


def _arithmetic(count, plain, tangent, scale=None, entropy=None):
    """An operation on numbers, from what it does to vectors, to their derivatives, to their exponents and to their entropies.

    `scale(builder, *exponents)` returns the exponents of the result, and factors by which values of some operands change;
    `entropy(builder, values, entropies)` gets these values.
    """

    def generate(context, builder, signature, args):
        kind = signature.return_type
        first = vector_of(_kinds(kind)[0])

        def fma(a, b, c):
            return call(builder, "fma", first, a, b, c)

        numbers = [_sorted(kind, _parts(builder, kind, number)) for number in args]
        values, ends = [number.values for number in numbers], []
        if numbers[0].exponents:
            ends, shifts = scale(builder, *(number.exponents for number in numbers))
            for operand, shift in shifts.items():
                by = _power(builder, first, shift)
                values[operand] = [builder.fmul(x, by) for x in values[operand]]
        parts = [plain(builder, fma, *(value[0] for value in values))]
        if len(values[0]) > 1:
            parts.append(tangent(builder, fma, *values))
        if numbers[0].entropies:
            found = entropy(builder, [value[0] for value in values], [number.entropies[0] for number in numbers])
            ends = [*ends, found]
        return _whole(context, builder, kind, parts + ends)

    of_two, of_three = (lambda context, a, b: (a(a, a), generate)), (lambda context, a, b, c: (a(a, a, a), generate))
    return intrinsic(of_two if count == 2 else of_three)


def _tangent_of_inverse(builder, fma, one, x):
    inverse = builder.fdiv(one[0], x[0])
    return builder.fsub(one[1], builder.fmul(builder.fmul(x[1], inverse), inverse))


def _each(name):
    """The sum or the difference of exponents."""
    return lambda builder, a, b: [
        getattr(builder, name if isinstance(x.type.element, ir.IntType) else f"f{name}")(x, y)
        for x, y in zip(a, b, strict=True)
    ]


_added, _subtracted = _each("add"), _each("sub")


def _aligned(builder, a, b):
    """The larger of two exponents, and how far each is below it."""
    if len(a) == 1:
        top = _larger(builder, a[0], b[0])
        return [top], builder.sub(a[0], top), builder.sub(b[0], top)
    gap = _near(builder, _subtracted(builder, a, b))
    zero = _fill(gap.type, 0)
    above = builder.icmp_signed(">", gap, zero)
    top = [builder.select(above, x, y) for x, y in zip(a, b, strict=True)]
    return top, builder.select(above, zero, gap), builder.select(above, builder.sub(zero, gap), zero)


def _aligned_sum(builder, a, b):
    top, below_a, below_b = _aligned(builder, a, b)
    return top, {0: below_a, 1: below_b}


def _aligned_product(builder, a, b, c):
    top, below_product, below_c = _aligned(builder, _added(builder, a, b), c)
    return top, {0: below_product, 2: below_c}


def _surprising(builder, p, entropy):
    """The share p (entropy - log p) of an entropy."""
    zero, one, normal = (_fill(p.type, number) for number in (0.0, 1.0, 2.0**-1022))
    positive = builder.fcmp_ordered(">=", p, normal)
    surprise = builder.fsub(entropy, logarithm(builder, builder.select(positive, p, one)))
    return builder.select(builder.fcmp_ordered(">", p, zero), builder.fmul(p, surprise), zero)


def _mixed(builder, a, b, own_a, own_b):
    """The entropy of a sum of two terms: the mean of theirs, and that of the choice between them."""
    total = builder.fadd(a, b)
    total = builder.select(builder.fcmp_ordered(">", total, _fill(a.type, 0.0)), total, _fill(a.type, 1.0))
    shares = [_surprising(builder, builder.fdiv(value, total), own) for value, own in ((a, own_a), (b, own_b))]
    return builder.fadd(*shares)


plus = _arithmetic(
    2, lambda b, fma, x, y: b.fadd(x, y), lambda b, fma, x, y: b.fadd(x[1], y[1]), _aligned_sum,
    lambda builder, values, own: _mixed(builder, *values, *own),
)  # fmt: skip
"""The sum a + b."""
times = _arithmetic(
    2, lambda b, fma, x, y: b.fmul(x, y), lambda b, fma, x, y: fma(x[0], y[1], b.fmul(x[1], y[0])),
    lambda builder, a, b: (_added(builder, a, b), {}), lambda builder, values, own: builder.fadd(*own),
)  # fmt: skip
"""The product a * b."""
times_plus = _arithmetic(
    3, lambda b, fma, x, y, z: fma(x, y, z), lambda b, fma, x, y, z: fma(x[0], y[1], fma(x[1], y[0], z[1])), _aligned_product,
    lambda builder, values, own: _mixed(builder, builder.fmul(*values[:2]), values[2], builder.fadd(*own[:2]), own[2]),
)  # fmt: skip
"""The sum a * b + c."""
over = _arithmetic(
    2, lambda b, fma, one, x: b.fdiv(one, x), _tangent_of_inverse, lambda builder, one, x: (_subtracted(builder, one, x), {}),
    lambda builder, values, own: builder.fsub(*own),
)  # fmt: skip
"""`over(one, x)`: one over x, and minus its entropy."""
where_positive = _arithmetic(
    3,
    lambda b, fma, c, x, zero: b.select(b.fcmp_ordered(">", c, zero), x, zero),
    lambda b, fma, c, x, zero: b.select(b.fcmp_ordered(">", c[0], zero[0]), x[1], zero[0]),
)
"""`where_positive(condition, a, zero)`: a in the lanes where the condition's value is positive; without exponents."""


@intrinsic
def value_of(typingctx, a):
    """The number without its derivative, its exponents and its entropy."""

    def generate(context, builder, signature, args):
        return _parts(builder, a, args[0])[0]

    return _kinds(a)[0](a), generate


@intrinsic
def share_of(typingctx, a):
    """The result of a part, as a plain vector, from its probability p, a number: p, its derivative, or p (entropy - log p)."""

    def generate(context, builder, signature, args):
        own = _sorted(a, _parts(builder, a, args[0]))
        found = own.values[-1]
        if own.exponents:
            exponent = _near(builder, own.exponents)
            lower = builder.ashr(exponent, _fill(exponent.type, 1))  # in two steps: derivatives may be large
            for step in (lower, builder.sub(exponent, lower)):
                below = builder.select(builder.icmp_signed(">", step, _fill(step.type, 0)), _fill(step.type, 0), step)
                found = builder.fmul(found, _power(builder, found.type, below))
        for entropy in own.entropies:
            found = _surprising(builder, found, entropy)
        return found

    return _kinds(a)[0](a), generate


@intrinsic
def where_above(typingctx, a, b, x, y):
    """The number x in the lanes where the vector a is larger than b, else y."""

    def generate(context, builder, signature, args):
        above = builder.fcmp_ordered(">", args[0], args[1])
        pairs = zip(_parts(builder, x, args[2]), _parts(builder, y, args[3]), strict=True)
        return _whole(context, builder, x, [builder.select(above, *pair) for pair in pairs])

    return x(a, b, x, y), generate


@intrinsic
def copy_lane(typingctx, chart, index, out, place):
    """Write the number of one lane of a chart, at a flat index, to another chart of its kind."""

    def generate(context, builder, signature, args):
        for array, source, target in zip(
            _kinds(chart), _parts(builder, chart, args[0]), _parts(builder, out, args[2]), strict=True
        ):
            data = (context.make_array(array)(context, builder, each).data for each in (source, target))
            where = [builder.gep(each, [i]) for each, i in zip(data, (args[1], args[3]), strict=True)]
            builder.store(builder.load(where[0]), where[1])
        return context.get_dummy_value()

    return types.void(chart, types.intp, out, types.intp), generate


@intrinsic
def whole_powers(typingctx, x):
    """The whole numbers next to x / log(2), in float64 as x is."""

    def generate(context, builder, signature, args):
        wide = vector_of(x)
        return call(builder, "rint", wide, builder.fmul(args[0], _fill(wide, 1.4426950408889634)))

    return x(x), generate


def _split(builder, x, unit=1.0):
    """Whole numbers k and numbers r with x = k unit log(2) + r, for float64, of which no digits are lost."""
    k = call(builder, "rint", x.type, builder.fmul(x, _fill(x.type, 1.4426950408889634 / unit)))
    r = call(builder, "fma", x.type, k, _fill(x.type, -unit * _LN2[0]), x)
    return k, call(builder, "fma", x.type, k, _fill(x.type, -unit * _LN2[1]), r)


@intrinsic
def below_power(typingctx, x, top, exponents):
    """Split x = (top + k) log(2) + r: k as integers like those of the array `exponents`, but not far below 0, and r.

    All are float64, top a whole number; r is between -log(2) / 2 and log(2) / 2.
    """
    kind = Lanes(exponents.dtype, x.count)
    result = types.Tuple((kind, x))

    def generate(context, builder, signature, args):
        wide = vector_of(x)
        k, r = _split(builder, args[0])
        k, least = builder.fsub(k, args[1]), _fill(wide, float(least_of(exponents.dtype.bitwidth) // 8))
        low = builder.fcmp_unordered("<", k, least)  # -inf, too
        k, r = builder.select(low, least, k), builder.select(low, _fill(wide, 0.0), r)
        return context.make_tuple(builder, result, [builder.fptosi(k, vector_of(kind)), r])

    return result(x, top, exponents), generate


@intrinsic
def far_power(typingctx, x, top):
    """Split x = (k + 2^44 h + 2^84 g) log(2) + r, in float64: integers k, and whole numbers h and g, of which sums are exact.

    For scores up to `top` beyond 2^127, g are multiples of 2^-43 times the largest; what is below that is in h, whose sums are
    rounded then.
    """
    kind = Lanes(types.int64, x.count)
    result = types.Tuple((kind, x, x, x))

    def generate(context, builder, signature, args):
        wide = vector_of(x)
        number = _clamped(builder, args[0], 1.7e308)
        g, rest = _split(builder, number, _FARTHER)
        known = builder.fcmp_ordered("<", call(builder, "fabs", wide, number), _fill(wide, 2.0**137))
        h, rest = _split(builder, builder.select(known, rest, _fill(wide, 0.0)), _FAR)
        k, r = _split(builder, rest)
        large = builder.fmul(_clamped(builder, args[1], 1.7e308), _fill(wide, 2.0**9 / _FARTHER / math.log(2.0)))
        most = builder.fsub(builder.fadd(g, large), large)
        h = builder.fadd(h, builder.fmul(builder.fsub(g, most), _fill(wide, _FARTHER / _FAR)))
        return context.make_tuple(builder, result, [builder.fptosi(k, vector_of(kind)), h, most, r])

    return result(x, x), generate
