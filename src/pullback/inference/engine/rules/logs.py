"""Sums in logarithms, for scores of any size: what the generated loops call.

A chart is a tuple of arrays of vectors, with one vector for each item: its value, the tangent of the value, its
probability, and the tangent of that, in float64 whatever the scores' precision. A sum keeps two more: the largest term,
and one over the sum of exp(term - largest). The probability of a term, given the item, is exp(term - largest) over that
sum: large numbers are subtracted from each other once, and what an item's terms share adds up to 1.

Values and largest terms are sums of three float64 each, held apart: a mask of -1e30 next to a score of 0.5 is lost in
one. The rounding error of each sum of the first numbers goes to the second, and that of the second to the third
(Knuth's two-sum).

The tangent of a value is the mean of its terms' tangents; for entropies, it is the mean of the terms' entropies - log
p.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inline
from pullback.inference._numba.lanes import exp, larger, load, splat, store, where_larger
from pullback.inference._numba.vectors import load_wide, log, narrow, select_positive, splat_wide, widen

VALUE, TANGENT, OUT, OUT_TANGENT = range(4)
_LOWEST = -1e300  # finite scores below this count as this: sums of them stay finite


@inline
def wide_at(a, at, like):
    """The three numbers of a value."""
    return load_wide(a[0], at, like), load_wide(a[1], at, like), load_wide(a[2], at, like)


@inline
def wide_of(x, like):
    """A vector of scores as values."""
    zero, none = splat_wide(0.0, like), splat_wide(-np.inf, like)
    x = widen(x)
    return where_larger(x, none, larger(x, splat_wide(_LOWEST, like)), none), zero, zero


@inline
def put_wide(a, at, x):
    """Write a value."""
    store(a[0], at, x[0])
    store(a[1], at, x[1])
    store(a[2], at, x[2])


@inline
def _two_sum(a, b):
    """The rounded sum and what rounding took from it."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@inline
def plus_wide(a, b, like):
    """The sum of two values."""
    none, zero = splat_wide(-np.inf, like), splat_wide(0.0, like)
    high, error = _two_sum(a[0], b[0])
    middle, rest = _two_sum(a[1], b[1])
    middle, more = _two_sum(middle, error)
    low = a[2] + b[2] + (rest + more)
    return high, where_larger(high, none, middle, zero), where_larger(high, none, low, zero)


@inline
def gap(a, b):
    """The difference a - b in float64, for b above -inf."""
    return (a[0] - b[0]) + ((a[1] - b[1]) + (a[2] - b[2]))


@inline
def log_sum(a, ia, a_step, b, ib, b_step, count, sums, place, like):
    """The logarithm of the sum over t < count of exp(a[ia + t a_step] + b[ib + t b_step])."""
    none, zero, at, by = splat_wide(-np.inf, like), splat_wide(0.0, like), ia, ib
    best, found = (zero, zero, zero), none  # 0 until there is a term above -inf, which `found` says
    for _ in range(count):
        x = plus_wide(wide_at(a[VALUE], at, like), wide_at(b[VALUE], by, like), like)
        more = where_larger(found, none, gap(x, best), x[0])  # the first term counts, whatever it is
        more = where_larger(found, none, more, where_larger(x[0], none, splat_wide(1.0, like), none))
        high, middle = where_larger(more, zero, x[0], best[0]), where_larger(more, zero, x[1], best[1])
        best = high, middle, where_larger(more, zero, x[2], best[2])
        found = larger(found, where_larger(x[0], none, zero, none))
        at, by = at + a_step, by + b_step
    total = splat(like, 0.0)
    for _ in range(count):
        x = plus_wide(wide_at(a[VALUE], ia, like), wide_at(b[VALUE], ib, like), like)
        total = total + exp(narrow(gap(x, best), like))
        ia, ib = ia + a_step, ib + b_step
    one = splat(like, 1.0)
    some = select_positive(total, total, one)
    put_wide(sums[0], place, best)
    store(sums[1], place, one / some)
    value = plus_wide(best, (widen(log(some)), zero, zero), like)
    return where_larger(found, none, value[0], none), value[1], value[2]


@inline
def share(a, ia, b, ib, top, inverse, like):
    """The probability of a term."""
    x = plus_wide(wide_at(a[VALUE], ia, like), wide_at(b[VALUE], ib, like), like)
    return exp(narrow(gap(x, top), like)) * inverse


@inline
def tangent_of(a, ia, b, ib, p, surprise, like):
    """The tangent of a term, or its entropy."""
    d = load_wide(a[TANGENT], ia, like) + load_wide(b[TANGENT], ib, like)
    return d - widen(log(select_positive(p, p, splat(like, 1.0)))) if surprise else d


@inline
def mean_tangent(a, ia, a_step, b, ib, b_step, count, sums, place, surprise, like):
    """The tangent of a sum. Probabilities in float32 do not quite add up to 1, which long structures would feel."""
    top, inverse = wide_at(sums[0], place, like), load(sums[1], place)
    zero = splat_wide(0.0, like)
    mean, total = zero, zero
    for _ in range(count):
        p = share(a, ia, b, ib, top, inverse, like)
        w = widen(p)
        mean = mean + select_positive(w, w * tangent_of(a, ia, b, ib, p, surprise, like), zero)
        total = total + w
        ia, ib = ia + a_step, ib + b_step
    return select_positive(total, mean / select_positive(total, total, splat_wide(1.0, like)), zero)


@inline
def push(a, ia, a_step, b, ib, b_step, count, sums, place, out, like):
    """Pass the probability of an item on to the factors of its terms."""
    top, inverse, zero = wide_at(sums[0], place, like), load(sums[1], place), splat_wide(0.0, like)
    for _ in range(count):
        q = select_positive(out, out * widen(share(a, ia, b, ib, top, inverse, like)), zero)
        store(a[OUT], ia, load_wide(a[OUT], ia, like) + q)
        store(b[OUT], ib, load_wide(b[OUT], ib, like) + q)
        ia, ib = ia + a_step, ib + b_step


@inline
def push_tangent(a, ia, a_step, b, ib, b_step, count, sums, place, out, moved, own, surprise, like):
    """The same with tangents: `moved` is that of the probability `out`, `own` that of the item's value."""
    top, inverse, zero = wide_at(sums[0], place, like), load(sums[1], place), splat_wide(0.0, like)
    for _ in range(count):
        p = share(a, ia, b, ib, top, inverse, like)
        w = widen(p)
        q = select_positive(out, select_positive(w, out * w, zero), zero)
        d = tangent_of(a, ia, b, ib, p, surprise, like) - own
        dq = select_positive(q, w * (moved + out * d), zero)
        store(a[OUT], ia, load_wide(a[OUT], ia, like) + q)
        store(b[OUT], ib, load_wide(b[OUT], ib, like) + q)
        store(a[OUT_TANGENT], ia, load_wide(a[OUT_TANGENT], ia, like) + dq)
        store(b[OUT_TANGENT], ib, load_wide(b[OUT_TANGENT], ib, like) + dq)
        ia, ib = ia + a_step, ib + b_step
