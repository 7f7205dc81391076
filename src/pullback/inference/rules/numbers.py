"""The arithmetic of a sweep over a chart: lanes of plain numbers, or of dual numbers.

A chart of dual numbers is a pair of charts, values and derivatives. The same sweep then computes a function or, with
dual numbers, the function and its derivative along a direction; the types decide when it is compiled.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pullback.inference.compile import inline
from pullback.inference.lanes import call, floats, load_from, splat_of, store_to, vector_of

# Straight to LLVM: functions would have to be compiled wherever they are used.


def _parts(builder, kind, value):
    """The parts of a number or of a chart: one, or two with a derivative."""
    return [builder.extract_value(value, i) for i in range(2)] if isinstance(kind, types.BaseTuple) else [value]


def _whole(context, builder, kind, parts):
    return context.make_tuple(builder, kind, parts) if isinstance(kind, types.BaseTuple) else parts[0]


def _number(chart):
    """The type of the numbers of a chart."""
    return types.UniTuple(floats(chart[0].dtype), 2) if isinstance(chart, types.BaseTuple) else floats(chart.dtype)


def _first(kind):
    return kind[0] if isinstance(kind, types.BaseTuple) else kind


@intrinsic
def at(typingctx, chart, index):
    """The number at a flat index."""
    number = _number(chart)

    def generate(context, builder, signature, args):
        array, vector = _first(signature.args[0]), _first(number)
        charts = _parts(builder, signature.args[0], args[0])
        found = [load_from(context, builder, array, part, args[1], vector) for part in charts]
        return _whole(context, builder, number, found)

    return number(chart, types.intp), generate


@intrinsic
def put(typingctx, chart, index, number):
    """Write a number to a flat index."""

    def generate(context, builder, signature, args):
        charts = _parts(builder, signature.args[0], args[0])
        for part, value in zip(charts, _parts(builder, number, args[2]), strict=True):
            store_to(context, builder, _first(signature.args[0]), part, args[1], _first(number), value)
        return context.get_dummy_value()

    return types.void(chart, types.intp, number), generate


@intrinsic
def constant(typingctx, chart, value):
    """A constant, for this kind of chart."""
    number = _number(chart)

    def generate(context, builder, signature, args):
        kind = _first(number)
        vector = vector_of(kind)
        parts = [splat_of(builder, context.cast(builder, args[1], signature.args[1], kind.dtype), vector)]
        if isinstance(number, types.BaseTuple):
            parts.append(ir.Constant(vector, [0.0] * vector.count))
        return _whole(context, builder, number, parts)

    return number(chart, value), generate


def _arithmetic(count, plain, slope):
    """An operation on numbers, from what it does to vectors and to their derivatives."""

    def generate(context, builder, signature, args):
        kind = signature.return_type

        def fma(a, b, c):
            return call(builder, "fma", vector_of(_first(kind)), a, b, c)

        numbers = [_parts(builder, kind, number) for number in args]
        parts = [plain(builder, fma, *(number[0] for number in numbers))]
        if isinstance(kind, types.BaseTuple):
            parts.append(slope(builder, fma, *numbers))
        return _whole(context, builder, kind, parts)

    of_two, of_three = (lambda context, a, b: (a(a, a), generate)), (lambda context, a, b, c: (a(a, a, a), generate))
    return intrinsic(of_two if count == 2 else of_three)


def _slope_of_inverse(builder, fma, one, x):
    inverse = builder.fdiv(one[0], x[0])
    return builder.fsub(one[1], builder.fmul(builder.fmul(x[1], inverse), inverse))


plus = _arithmetic(2, lambda b, fma, x, y: b.fadd(x, y), lambda b, fma, x, y: b.fadd(x[1], y[1]))
"""The sum a + b."""
times = _arithmetic(
    2, lambda b, fma, x, y: b.fmul(x, y), lambda b, fma, x, y: fma(x[0], y[1], b.fmul(x[1], y[0]))
)  # fmt: skip
"""The product a * b."""
times_plus = _arithmetic(
    3, lambda b, fma, x, y, z: fma(x, y, z), lambda b, fma, x, y, z: fma(x[0], y[1], fma(x[1], y[0], z[1]))
)  # fmt: skip
"""The sum a * b + c."""
over = _arithmetic(2, lambda b, fma, one, x: b.fdiv(one, x), _slope_of_inverse)
"""`over(one, x)`: one over x."""
where_positive = _arithmetic(
    3,
    lambda b, fma, c, x, zero: b.select(b.fcmp_ordered(">", c, zero), x, zero),
    lambda b, fma, c, x, zero: b.select(b.fcmp_ordered(">", c[0], zero[0]), x[1], zero[0]),
)
"""`where_positive(condition, a, zero)`: a in the lanes where the condition's value is positive."""


@intrinsic
def value_of(typingctx, a):
    """The number without its derivative."""

    def generate(context, builder, signature, args):
        return _parts(builder, a, args[0])[0]

    return _first(a)(a), generate


@inline
def dot(a, ia, a_step, b, ib, b_step, count, start):
    """The sum of `start` and of a[ia + t * a_step] * b[ib + t * b_step] over t < count."""
    for _ in range(count):
        start = times_plus(at(a, ia), at(b, ib), start)
        ia, ib = ia + a_step, ib + b_step
    return start


@inline
def two_dots(a, ia, a_step, b, ib, b_step, c, ic, c_step, d, id, d_step, count, first, second):
    """Two `dot`s in one loop: independent sums hide each other's latency."""
    for _ in range(count):
        first = times_plus(at(a, ia), at(b, ib), first)
        second = times_plus(at(c, ic), at(d, id), second)
        ia, ib, ic, id = ia + a_step, ib + b_step, ic + c_step, id + d_step
    return first, second


@inline
def three_dots(
    a, ia, a_step, b, ib, b_step, c, ic, c_step, d, id, d_step, e, ie, e_step, f, f_start, f_step, count,
    first, second, third,
):  # fmt: skip
    """Three `dot`s in one loop."""
    for _ in range(count):
        first = times_plus(at(a, ia), at(b, ib), first)
        second = times_plus(at(c, ic), at(d, id), second)
        third = times_plus(at(e, ie), at(f, f_start), third)
        ia, ib, ic, id = ia + a_step, ib + b_step, ic + c_step, id + d_step
        ie, f_start = ie + e_step, f_start + f_step
    return first, second, third
