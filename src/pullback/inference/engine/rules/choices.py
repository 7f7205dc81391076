"""How the generated loops draw one term of a sum, for one example: numbers of one lane of the charts."""

from __future__ import annotations

import math

from pullback.inference._numba.compile import inline
from pullback.inference._numba.random_kernels import uniform

__all__ = ["choose", "choose_log", "choose_scaled", "uniform"]


@inline
def choose(a, ia, a_step, b, ib, b_step, count, u):
    """Draw t < count with a probability proportional to a[ia + t a_step] b[ib + t b_step]."""
    total = 0.0
    for t in range(count):
        total += a[ia + t * a_step] * b[ib + t * b_step]
    below, last = 0.0, 0
    for t in range(count):
        p = a[ia + t * a_step] * b[ib + t * b_step]
        below += p
        if p > 0.0:
            last = t
            if below > u * total:
                break
    return last


@inline
def choose_scaled(a, ia, a_step, b, ib, b_step, count, u):
    """The same for numbers with exponents."""
    top, some = a[1][ia] + b[1][ib], False
    for t in range(count):
        at, by = ia + t * a_step, ib + t * b_step
        if a[0][at] > 0.0 and b[0][by] > 0.0:
            e = a[1][at] + b[1][by]
            top, some = max(top, e) if some else e, True
    total = 0.0
    for t in range(count):
        total += _over(a, ia + t * a_step, b, ib + t * b_step, top)
    below, last = 0.0, 0
    for t in range(count):
        p = _over(a, ia + t * a_step, b, ib + t * b_step, top)
        below += p
        if p > 0.0:
            last = t
            if below > u * total:
                break
    return last


@inline
def _over(a, at, b, by, top):
    """The product of two numbers over 2^top."""
    below = max(a[1][at] + b[1][by] - top, -1000)
    return 0.0 if below == -1000 else a[0][at] * b[0][by] * 2.0**below


@inline
def choose_log(a, ia, a_step, b, ib, b_step, count, sums, place, u):
    """The same for charts in logarithms."""
    below, last = 0.0, 0
    for t in range(count):
        p = math.exp(_gap(a[0], ia + t * a_step, b[0], ib + t * b_step, sums[0], place)) * sums[1][place]
        below += p
        if p > 0.0:
            last = t
            if below > u:
                break
    return last


@inline
def _gap(a, at, b, by, top, place):
    """The sum of two values of three numbers each less that of the largest term."""
    high = a[0][at] + b[0][by]
    back = high - a[0][at]
    error = (a[0][at] - (high - back)) + (b[0][by] - back)
    if not high > -math.inf:
        return -math.inf
    middle = (a[1][at] - top[1][place]) + (b[1][by] + error)
    return (high - top[0][place]) + (middle + (a[2][at] + b[2][by] - top[2][place]))
