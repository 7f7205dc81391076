"""Recursions in which a cell is entered in one of three ways, in SIMD lanes: sums with their chances, and tangents."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import subroutine
from pullback.inference._numba.lanes import exp, larger, splat, store, where_larger
from pullback.inference._numba.vectors import log, narrow, select_positive, splat_wide, widen


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


@subroutine
def tangent_of(chance, before, surprise, like):
    """The tangent of a way: that of the cell before and, if wanted, its surprise. Ways without a chance have none."""
    zero, one = splat_wide(0.0, like), splat_wide(1.0, like)
    if surprise:
        before = before - log(select_positive(chance, chance, one))
    return select_positive(chance, before, zero)
