"""Numbers of any size in lanes: m 2^k, or m exp(e) for scores of any size. README.md says when.

An exponent is a tuple of vectors: one, of whole numbers k, or three whose sum is e, held apart. A mask of -1e30 next to a
score of 0.5 is lost in a float64 sum. Here both are kept: the rounding error of each sum of the first parts goes to the
second, and that of the second to the third (Knuth's two-sum). Numbers up to 1e38 keep an absolute error of about 1e-9;
numbers up to 1e22 one of float64's last place at 1. The length of the tuple decides when it is compiled.
"""

from __future__ import annotations

import math

from pullback.inference._numba.compile import subroutine
from pullback.inference._numba.lanes import exp_by_series, fma, load, splat, store, where_larger
from pullback.inference._numba.vectors import log, mantissa_and_power, power_and_rest, power_of_two, raised

NOTHING = -1e305  # the exponent of 0, and about that of its products: below those of all others
LOWEST = -1e300  # finite scores below this count as this: sums of them stay finite
_CUTOFF = -1e12  # below this, one vector does not hold a score's exponent with all digits of the score


@subroutine
def added(a, b):
    """The sum of two exponents."""
    if len(a) == 1:
        return (a[0] + b[0],)
    high, high_error = two_sum(a[0], b[0])
    middle, middle_error = two_sum(a[1], b[1])
    middle, error = two_sum(middle, high_error)
    return high, middle, a[2] + b[2] + (middle_error + error)


@subroutine
def subtracted(a, b):
    """The difference of two exponents."""
    if len(a) == 1:
        return (a[0] - b[0],)
    zero = b[0] - b[0]
    return added(a, (zero - b[0], zero - b[1], zero - b[2]))


@subroutine
def narrow(k):
    """The nearest float64."""
    if len(k) == 1:
        return k[0]
    return k[0] + (k[1] + k[2])


@subroutine
def two_sum(a, b):
    """The rounded sum and what rounding took from it."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@subroutine
def chosen(x, a, b):
    """The exponent a in the lanes where x > 0, else b."""
    zero = x - x
    if len(a) == 1:
        return (where_larger(x, zero, a[0], b[0]),)
    parts = where_larger(x, zero, a[0], b[0]), where_larger(x, zero, a[1], b[1]), where_larger(x, zero, a[2], b[2])
    return parts


@subroutine
def power(like, k):
    """The value of a number with m = 1 and an exponent of at most 0; 0 where that would be subnormal."""
    if len(k) == 1:
        return power_of_two(k[0], like)
    return exp_by_series(narrow(k))


@subroutine
def get(chart, at):
    """The number at a flat index: m and its exponent. A chart is an array of m, and a tuple of arrays of exponents."""
    return load(chart[0], at), _get_exponent(chart[1], at)


@subroutine
def _get_exponent(k, at):
    if len(k) == 1:
        return (load(k[0], at),)
    return load(k[0], at), load(k[1], at), load(k[2], at)


@subroutine
def put(chart, at, number):
    """Write a number to a flat index."""
    store(chart[0], at, number[0])
    _put_exponent(chart[1], at, number[1])


@subroutine
def _put_exponent(k, at, exponent):
    store(k[0], at, exponent[0])
    if len(k) == 3:
        store(k[1], at, exponent[1])
        store(k[2], at, exponent[2])


@subroutine
def widened(like, x):
    """A float64 vector as an exponent for the charts `like`."""
    zero = x - x
    if len(like) == 1:
        return (x,)
    return x, zero, zero


@subroutine
def nothing(chart):
    """The number 0."""
    return splat(chart[0], 1.0), widened(chart[1], splat(chart[0], NOTHING))


@subroutine
def normal(m, k):
    """The same number with m between 1 and 2, or 1."""
    if len(k) == 1:
        m, more = mantissa_and_power(m)
        return m, (k[0] + more,)
    zero = m - m
    return m / m, added(k, (log(m), zero, zero))


@subroutine
def aligned_terms(like, a, b):
    """The m of two numbers for their larger exponent, that exponent, and how far the first one is above the second."""
    gap = subtracted(a[1], b[1])
    x = narrow(gap)
    zero = x - x
    down = power(like, chosen(x, subtracted(b[1], a[1]), gap))
    top = chosen(x, a[1], b[1])
    return where_larger(x, zero, a[0], a[0] * down), where_larger(x, zero, b[0] * down, b[0]), top, x


@subroutine
def as_log(k, x):
    """A difference of exponents as one of logarithms; `k` is an exponent of that kind."""
    if len(k) == 1:
        return raised(x - x, math.log(2)) * x
    return x


@subroutine
def from_difference(m, k, x, best):
    """exp(x - best), 0 for x = -inf, and the largest difference that was so far below 0 that it counts as 0, else -inf."""
    zero, one, none, least = splat(m, 0.0), splat(m, 1.0), splat(m, NOTHING), splat(m, -math.inf)
    high, low = two_sum(x, zero - best)
    finite = where_larger(x, least, one, zero)
    high, low = where_larger(finite, zero, high, zero), where_larger(finite, zero, low, zero)
    if len(k) == 3:
        return one, (where_larger(finite, zero, high, none), low, zero), least
    far = where_larger(splat(m, _CUTOFF), high, one, zero)
    high, low = where_larger(far, zero, zero, high), where_larger(far, zero, zero, low)
    whole, rest = power_and_rest(high)
    return exp_by_series(rest + low), (where_larger(finite - far, zero, whole, none),), where_larger(far, zero, x - best, least)


@subroutine
def log_of(like, m, k):
    """The logarithm, as the sum of three vectors held apart."""
    zero = splat(like, 0.0)
    if len(k) == 3:
        return added(k, (log(m), zero, zero))
    coarse = splat(like, math.log(2))
    high = k[0] * coarse
    return high, fma(k[0], coarse, zero - high) + k[0] * splat(like, 2.3190468138462996e-17), log(m)
