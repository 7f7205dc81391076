"""Numbers in lanes: m, m 2^k, or m exp(e), where m is plain or dual. README.md says when.

A number is a pair. The first of it is m and, for dual numbers, its derivative; the second is an exponent: nothing, a vector
of whole numbers k, or three vectors whose sum is e, held apart. A chart is a pair of tuples of arrays, as long as those of its
numbers, which decide when it is compiled.

A mask of -1e30 next to a score of 0.5 is lost in a float64 sum. In an exponent of three parts both are kept: the rounding error
of each sum of the first parts goes to the second, and that of the second to the third (Knuth's two-sum). Numbers up to 1e38
keep an absolute error of about 1e-9; numbers up to 1e22 one of float64's last place at 1.

Dual numbers are of a direction in which the scores move, or of the scores themselves, which may be too large for a
derivative. Then the power moves, too: the derivative of m is what that of the number has beside its exponent. `rate` is the
derivative of the logarithm of 2^k or exp(e) for a step of the exponent, 0 if powers are constant, None if there are none.
"""

from __future__ import annotations

import math

from pullback.inference._numba.compile import subroutine
from pullback.inference._numba.lanes import exp_by_series, fma, splat, where_larger
from pullback.inference._numba.vectors import log, mantissa_and_power, power_and_rest, power_of_two
from pullback.inference.engine.rules import numbers

NOTHING = -1e305  # the exponent of 0, and about that of its products: below those of all others


@subroutine
def bounds(exponent):
    """Logarithms of weights: those below the first count as 0, and with one below the second the range is too small."""
    if len(exponent) == 0:
        return -708.0, -300.0  # exp(-300) is 1e-130, well inside the range of float64
    if len(exponent) == 1:
        return -1e12, -math.inf  # below which one vector does not hold a score's exponent with all digits of the score
    return -math.inf, -math.inf


@subroutine
def rate_for(exponents, moves, like):
    """The rate for numbers with such exponents, by whether powers move."""
    if len(exponents) == 0:
        return None
    return splat(like, 0.0 if not moves else math.log(2.0) if len(exponents) == 1 else 1.0)


@subroutine
def get(chart, at):
    """The number at a flat index."""
    return numbers.at(chart[0], at), numbers.at(chart[1], at)


@subroutine
def put(chart, at, number):
    """Write a number to a flat index."""
    numbers.put(chart[0], at, number[0])
    _put_exponent(chart[1], at, number[1])


@subroutine
def _put_exponent(exponents, at, exponent):
    if len(exponents) > 0:
        numbers.put(exponents, at, exponent)


@subroutine
def nothing(m, exponents):
    """The number 0, for the two tuples of a chart."""
    if len(exponents) == 0:
        return numbers.constant(m, 0.0), exponents
    return numbers.constant(m, 1.0), _widened(exponents, splat(m[0], NOTHING))


@subroutine
def _widened(like, x):
    """A vector as an exponent."""
    zero = x - x
    if len(like) == 1:
        return (x,)
    return x, zero, zero


@subroutine
def two_sum(a, b):
    """The rounded sum and what rounding took from it."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@subroutine
def added(a, b):
    """The sum of two exponents."""
    if len(a) == 0:
        return a
    if len(a) == 1:
        return (a[0] + b[0],)
    high, high_error = two_sum(a[0], b[0])
    middle, middle_error = two_sum(a[1], b[1])
    middle, error = two_sum(middle, high_error)
    return high, middle, a[2] + b[2] + (middle_error + error)


@subroutine
def negative(a):
    """The exponent of the inverse."""
    if len(a) == 0:
        return a
    zero = a[0] - a[0]
    if len(a) == 1:
        return (zero - a[0],)
    return zero - a[0], zero - a[1], zero - a[2]


@subroutine
def narrow(exponent):
    """The nearest float64."""
    if len(exponent) == 1:
        return exponent[0]
    return exponent[0] + (exponent[1] + exponent[2])


@subroutine
def chosen(x, a, b):
    """The tuple a in the lanes where x > 0, else b."""
    zero = x - x
    first = where_larger(x, zero, a[0], b[0])
    if len(a) == 1:
        return (first,)
    second = where_larger(x, zero, a[1], b[1])
    if len(a) == 2:
        return first, second
    return first, second, where_larger(x, zero, a[2], b[2])


@subroutine
def _scaled(m, factor, move):
    """Plain or dual m times a factor whose logarithm has the derivative `move`."""
    if len(m) == 1:
        return (m[0] * factor,)
    return m[0] * factor, fma(move, m[0], m[1]) * factor


@subroutine
def lowered(m, exponent, rate):
    """A number with an exponent of at most 0 without it; 0 where that would be subnormal."""
    if len(exponent) == 0:
        return m
    x = narrow(exponent)
    return _scaled(m, power_of_two(x, x) if len(exponent) == 1 else exp_by_series(x), rate * x)


@subroutine
def normal(number, rate):
    """The same number with m between 1 and 2, or 1."""
    if rate is None:
        return number
    m, exponent = number
    value, one = m[0], m[0] / m[0]
    more, factor = _to_normal(value, exponent, one)
    return _scaled(m, factor, (one - one) - rate * more), added(exponent, _widened(exponent, more))


@subroutine
def _to_normal(value, exponent, one):
    """By which exponent and factor m becomes normal."""
    if len(exponent) == 1:
        _, more = mantissa_and_power(value)
        return more, power_of_two((one - one) - more, more)
    return log(value), one / value


@subroutine
def times(a, b):
    """The product a * b."""
    return numbers.times(a[0], b[0]), added(a[1], b[1])


@subroutine
def inverse(a):
    """One over a."""
    return numbers.over(numbers.constant(a[0], 1.0), a[0]), negative(a[1])


@subroutine
def plus(a, b, rate):
    """The sum a + b."""
    (m, k), (n, j) = a, b
    if rate is None:
        return numbers.plus(m, n), k
    gap = added(k, negative(j))
    x = narrow(gap)
    low = lowered(chosen(x, n, m), chosen(x, negative(gap), gap), rate)
    return numbers.plus(chosen(x, m, n), low), chosen(x, k, j)


@subroutine
def times_plus(a, b, c, rate):
    """The sum a * b + c."""
    if rate is None:
        return numbers.times_plus(a[0], b[0], c[0]), c[1]
    return plus(times(a, b), c, rate)


@subroutine
def order_of(m, exponent):
    """A vector that is larger for larger numbers, as far as their exponents differ."""
    return m[0] if len(exponent) == 0 else narrow(exponent)


@subroutine
def order_of_nothing(exponent):
    """Where the order of positive numbers begins."""
    return 0.0 if len(exponent) == 0 else NOTHING / 2


@subroutine
def exponential(like, x, shift, extra):
    """exp(x - shift - extra) in parts: the value of m, the exponent, and the logarithm of the value of m.

    `like` are the exponents of a chart; with them `extra` is 0. Scores below the bound of these give 0.
    """
    if len(like) == 0:
        y = x - shift - extra
        return exp_by_series(y), like, y
    zero, none = splat(x, 0.0), splat(x, NOTHING)
    cutoff, _ = bounds(like)
    high, low = two_sum(x, zero - shift)
    is_weight = where_larger(splat(x, max(cutoff, NOTHING)), high, zero, splat(x, 1.0))
    high, low = where_larger(is_weight, zero, high, zero), where_larger(is_weight, zero, low, zero)
    if len(like) == 3:
        return splat(x, 1.0), (where_larger(is_weight, zero, high, none), low, zero), zero
    whole, rest = power_and_rest(high)
    rest = rest + low
    return exp_by_series(rest), (where_larger(is_weight, zero, whole, none),), rest


@subroutine
def log_of(m, exponent):
    """The logarithm of a number's value, as the sum of three vectors held apart."""
    logarithm = log(m[0])
    zero = logarithm - logarithm
    if len(exponent) == 0:
        return logarithm, zero, zero
    if len(exponent) == 3:
        return added(exponent, (logarithm, zero, zero))
    k, coarse = exponent[0], splat(m[0], math.log(2))
    high = k * coarse
    return high, fma(k, coarse, zero - high) + k * splat(m[0], 2.3190468138462996e-17), logarithm
