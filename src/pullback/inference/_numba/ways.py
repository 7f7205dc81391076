"""Recursions in which a cell is entered in one of three ways, in SIMD lanes: sums with their chances, and tangents."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import subroutine
from pullback.inference._numba.lanes import exp, larger, splat, store, where_larger
from pullback.inference._numba.vectors import (
    log,
    mantissa_and_power,
    narrow,
    power_and_rest,
    power_of_two,
    select_positive,
    splat_wide,
    widen,
)  # fmt: skip


@subroutine
def combined(like, a, b, c, s, chances, at, apart, keep):
    """Log-sum of three ways to a cell, plus its score; if `keep`, the chance of each way is written, `apart` from the last."""
    nothing, one = splat_wide(-np.inf, like), splat(like, 1.0)
    best = larger(c, larger(b, a))
    finite = where_larger(best, nothing, best, splat_wide(0.0, like))
    x, y, z = exp(narrow(a - finite, like)), exp(narrow(b - finite, like)), exp(narrow(c - finite, like))
    total = x + y + z
    some = select_positive(total, total, one)
    if keep:
        inverse = one / some
        store(chances, at, x * inverse)
        store(chances, at + apart, y * inverse)
        store(chances, at + 2 * apart, z * inverse)
    return where_larger(best, nothing, finite + widen(log(some)) + widen(s), nothing)


NOTHING = -1e200
"""The exponent of 0, and about that of all numbers next to it: below all others, and sums of many are finite."""
DIGITS = 2.0**53
"""The largest exponent to which 1 can be added in float64."""


@subroutine
def merged(like, a, b, c, s, chances, at, apart, keep, normal):
    """`combined` for numbers m 2^k, pairs (m, k), which does not wait for an exponential and a logarithm.

    With `normal`, m is between 1 and 2; otherwise it is up to 5 times the largest m. Numbers of 0 have ways of some chance,
    which nothing uses.
    """
    best, one = larger(c[1], larger(b[1], a[1])), splat(like, 1.0)
    x = a[0] * power_of_two(a[1] - best, like)
    y = b[0] * power_of_two(b[1] - best, like)
    z = c[0] * power_of_two(c[1] - best, like)
    total = x + y + z
    if keep:
        store(chances, at, x / total)  # exactly 1 for the only way
        store(chances, at + apart, y / total)
        store(chances, at + 2 * apart, z / total)
    power, rest = power_and_rest(widen(s))
    m, k = total * exp(narrow(rest, like)), best + larger(power, splat_wide(NOTHING, like))
    if normal:
        m, more = mantissa_and_power(m)
        k = k + more
    # beside a score of 1e30, k has no digits for others, and m would have only a part of them
    m = where_larger(k, splat_wide(-DIGITS, like), where_larger(splat_wide(DIGITS, like), k, m, one), one)
    return m, k


@subroutine
def tangent_of(chance, before, surprise, like):
    """The tangent of a way: that of the cell before and, if wanted, its surprise. Ways without a chance have none."""
    zero, one = splat_wide(0.0, like), splat_wide(1.0, like)
    if surprise:
        before = before - log(select_positive(chance, chance, one))
    return select_positive(chance, before, zero)
