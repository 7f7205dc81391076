"""Sums of logs of any size without rounding: a number is the sum of three float64, held apart.

A mask of -1e30 next to a score of 0.5 is lost in a float64 sum. Here both are kept: the rounding error of each sum of the
first parts goes to the second, and that of the second to the third (Knuth's two-sum). Numbers up to 1e38 keep an
absolute error of about 1e-9; numbers up to 1e22 one of float64's last place at 1. Log 0 is -inf, followed by two zeros.
"""

from __future__ import annotations

import math

from pullback.inference._numba.compile import inner

LOWEST = -1e300  # finite scores below this count as this: sums of them stay finite


@inner
def wide(x):
    """A float64 as a wide number."""
    return x, 0.0, 0.0


@inner
def nothing():
    """Log 0."""
    return -math.inf, 0.0, 0.0


@inner
def plus(a, b):
    """The sum a + b; -inf if one of them is."""
    high, high_error = _two_sum(a[0], b[0])
    if high == -math.inf:
        return -math.inf, 0.0, 0.0
    middle, middle_error = _two_sum(a[1], b[1])
    middle, error = _two_sum(middle, high_error)
    return high, middle, a[2] + b[2] + (middle_error + error)


@inner
def minus(a, b):
    """The difference a - b, for b above -inf."""
    return plus(a, (-b[0], -b[1], -b[2]))


@inner
def narrow(a):
    """The nearest float64."""
    return a[0] + (a[1] + a[2])


@inner
def gap(a, b):
    """The difference a - b as a float64: +inf if only b is -inf, -inf if a is."""
    if a[0] == -math.inf:
        return -math.inf
    if b[0] == -math.inf:
        return math.inf
    return narrow(minus(a, b))


@inner
def _two_sum(a, b):
    """The rounded sum and what rounding took from it."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)
