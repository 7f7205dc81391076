"""The arithmetic of a sweep over a chart: lanes of plain numbers, or of dual numbers.

A chart of dual numbers is a pair of charts, values and derivatives. The same sweep then computes a function or, with
dual numbers, the function and its derivative along a direction; the types decide when it is compiled.
"""

from __future__ import annotations

from numba.core import types
from numba.extending import overload

from pullback.inference.compile import inline
from pullback.inference.lanes import Lanes, fma, load, splat, store


def at(chart, index):
    """The number at a flat index."""


def put(chart, index, number):
    """Write a number to a flat index."""


def constant(chart, value):
    """A constant, for this kind of chart."""


def plus(a, b):
    """The sum a + b."""


def times(a, b):
    """The product a * b."""


def times_plus(a, b, c):
    """The sum a * b + c."""


def value_of(a):
    """The number without its derivative."""


@overload(at, inline="always")
def _at(chart, index):
    if isinstance(chart, types.Array):
        return lambda chart, index: load(chart, index)
    return lambda chart, index: (load(chart[0], index), load(chart[1], index))


@overload(put, inline="always")
def _put(chart, index, number):
    if isinstance(chart, types.Array):
        return lambda chart, index, number: store(chart, index, number)

    def dual(chart, index, number):
        store(chart[0], index, number[0])
        store(chart[1], index, number[1])

    return dual


@overload(constant, inline="always")
def _constant(chart, value):
    if isinstance(chart, types.Array):
        return lambda chart, value: splat(chart, value)
    return lambda chart, value: (splat(chart[0], value), splat(chart[0], 0.0))


@overload(plus, inline="always")
def _plus(a, b):
    if isinstance(a, Lanes):
        return lambda a, b: a + b
    return lambda a, b: (a[0] + b[0], a[1] + b[1])


@overload(times, inline="always")
def _times(a, b):
    if isinstance(a, Lanes):
        return lambda a, b: a * b
    return lambda a, b: (a[0] * b[0], fma(a[0], b[1], a[1] * b[0]))


@overload(times_plus, inline="always")
def _times_plus(a, b, c):
    if isinstance(a, Lanes):
        return lambda a, b, c: fma(a, b, c)
    return lambda a, b, c: (fma(a[0], b[0], c[0]), fma(a[0], b[1], fma(a[1], b[0], c[1])))


@overload(value_of, inline="always")
def _value_of(a):
    if isinstance(a, Lanes):
        return lambda a: a
    return lambda a: a[0]


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
