"""How the generated loops draw one term of a sum, for one example: numbers of one lane of the charts."""

from __future__ import annotations

import math

from pullback.inference.compile import inline
from pullback.inference.random_kernels import uniform

__all__ = ["choose", "choose_log", "uniform"]


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
def choose_log(a, ia, a_step, b, ib, b_step, count, sums, place, u):
    """The same for charts in logarithms."""
    top, below, last = sums[0][place], 0.0, 0
    for t in range(count):
        p = math.exp(a[0][ia + t * a_step] + b[0][ib + t * b_step] - top) * sums[1][place]
        below += p
        if p > 0.0:
            last = t
            if below > u:
                break
    return last
