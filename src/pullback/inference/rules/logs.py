"""Sums in logarithms, for weights that leave the range of floating point: what the generated loops call.

A chart is a tuple of arrays of vectors, with one vector for each item: its value, the tangent of the value, its probability, and
the tangent of that, all in float64 whatever the scores' precision. A sum keeps two more: the largest term, and one over the
sum of exp(term - largest). The probability of a term, given the item, is exp(term - largest) over that sum: large numbers are
subtracted from each other once, and what an item's terms share adds up to 1.

The tangent of a value is the mean of its terms' tangents; for entropies, it is the mean of the terms' entropies - log p.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import inline
from pullback.inference.hypergraph.vectors import load_wide, log, narrow, select_positive, splat_wide, widen
from pullback.inference.lanes import exp, larger, load, splat, store, where_larger

VALUE, TANGENT, OUT, OUT_TANGENT = range(4)


@inline
def log_sum(a, ia, a_step, b, ib, b_step, count, sums, place, like):
    """The logarithm of the sum over t < count of exp(a[ia + t a_step] + b[ib + t b_step])."""
    nothing, at, by = splat_wide(-np.inf, like), ia, ib
    best = nothing
    for _ in range(count):
        best = larger(load_wide(a[VALUE], at, like) + load_wide(b[VALUE], by, like), best)
        at, by = at + a_step, by + b_step
    finite = where_larger(best, nothing, best, splat_wide(0.0, like))
    total = splat(like, 0.0)
    for _ in range(count):
        total = total + exp(narrow(load_wide(a[VALUE], ia, like) + load_wide(b[VALUE], ib, like) - finite, like))
        ia, ib = ia + a_step, ib + b_step
    one = splat(like, 1.0)
    some = select_positive(total, total, one)
    store(sums[0], place, finite)
    store(sums[1], place, one / some)
    return where_larger(best, nothing, finite + widen(log(some)), nothing)


@inline
def share(a, ia, b, ib, top, inverse, like):
    """The probability of a term."""
    x = load_wide(a[VALUE], ia, like) + load_wide(b[VALUE], ib, like)
    return exp(narrow(x - top, like)) * inverse


@inline
def tangent_of(a, ia, b, ib, p, surprise, like):
    """The tangent of a term, or its entropy."""
    d = load_wide(a[TANGENT], ia, like) + load_wide(b[TANGENT], ib, like)
    return d - widen(log(select_positive(p, p, splat(like, 1.0)))) if surprise else d


@inline
def mean_tangent(a, ia, a_step, b, ib, b_step, count, sums, place, surprise, like):
    """The tangent of a sum. Probabilities in float32 do not quite add up to 1, which long structures would feel."""
    top, inverse = load_wide(sums[0], place, like), load(sums[1], place)
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
    top, inverse, zero = load_wide(sums[0], place, like), load(sums[1], place), splat_wide(0.0, like)
    for _ in range(count):
        q = select_positive(out, out * widen(share(a, ia, b, ib, top, inverse, like)), zero)
        store(a[OUT], ia, load_wide(a[OUT], ia, like) + q)
        store(b[OUT], ib, load_wide(b[OUT], ib, like) + q)
        ia, ib = ia + a_step, ib + b_step


@inline
def push_tangent(a, ia, a_step, b, ib, b_step, count, sums, place, out, moved, own, surprise, like):
    """The same with tangents: `moved` is that of the probability `out`, `own` that of the item's value."""
    top, inverse, zero = load_wide(sums[0], place, like), load(sums[1], place), splat_wide(0.0, like)
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
