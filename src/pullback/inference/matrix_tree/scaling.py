"""Putting sentences side by side into lanes as weights: exp(score - shift), a shift for each word's column.

Every tree takes one arc from each column, so the shifts add up to a factor of Z. With a single root it takes one arc
from the root as well: root arcs then have a further shift in common, and a column's shift is that of its other arcs.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inline, inner
from pullback.inference._numba.lanes import bad_score, exp_by_series, gather, larger, load, splat, store, where_larger

LOWEST = -708.0  # the exponential of what is below this is zero


@inner
def place(order, first, lengths, stride, bases, lane_lengths):
    """Give the sentences order[first], order[first + 1], ... a lane each.

    `bases` get where each lane's scores begin, `lane_lengths` its length, 0 for lanes without a sentence.
    """
    for lane in range(len(bases)):
        inside = first + lane < len(order)
        sentence = order[first + lane] if inside else order[first]
        bases[lane] = sentence * stride
        lane_lengths[lane] = lengths[sentence] if inside else 0


@inner
def read_weights(scores, n, size, pitch, bases, lane_lengths, multiroot, weights, shifts, codes):
    """Fill a chart of weights (see elimination.py), zero on the diagonal, and the shifts: of each column, of the root.

    Padding hangs from the first word with weight one (the first word, if it is padding, from the root), and nothing hangs
    from it: it does not change Z. Returns, per lane, the largest difference between a column's shift and a score whose
    weight is not zero, and the largest of the finite shifted scores whose weight is, -inf if there is none.
    """
    lanes = len(bases)
    row = pitch * lanes
    root = size * row
    zero, forbidden = splat(shifts, 0.0), splat(shifts, -np.inf)
    long = load(lane_lengths, 0)
    worst = zero
    for m in range(size):
        store(shifts, m * lanes, forbidden)
    for h in range(size):
        padding = zero if h == 0 else forbidden
        for m in range(size):
            x = where_larger(long, splat(shifts, max(h, m)), gather(scores, bases, h * n + m), padding)
            worst = larger(bad_score(x), worst)
            store(weights, (root if h == m else h * row) + m * lanes, x)
            if h != m or multiroot:
                store(shifts, m * lanes, larger(x, load(shifts, m * lanes)))
    store(codes, 0, worst)
    top = forbidden
    for m in range(size):
        shift = _finite(load(shifts, m * lanes), zero, forbidden)
        store(shifts, m * lanes, shift)
        top = larger(load(weights, root + m * lanes) - shift, top)
    store(shifts, size * lanes, zero if multiroot else _finite(top, zero, forbidden))
    spread, dropped, lowest = zero, forbidden, splat(shifts, LOWEST)
    for h in range(size + 1):
        extra = load(shifts, size * lanes) if h == size else zero
        for m in range(size):
            at = h * row + m * lanes
            if h == m:
                store(weights, at, zero)
            else:
                x = load(weights, at) - load(shifts, m * lanes) - extra
                spread = larger(where_larger(lowest, x, zero, zero - x), spread)
                dropped = larger(where_larger(lowest, x, x, forbidden), dropped)
                store(weights, at, exp_by_series(x))
    return spread, dropped


@inner
def read_tangents(direction, n, size, pitch, bases, lane_lengths, multiroot, weights, tangents):
    """Fill a chart with the derivatives of the weights when the scores move along a direction.

    A constant added to a column of the scores, or with a single root to all root arcs, changes no probability: the
    direction is shifted to zero where the scores are largest, so that a large constant costs no precision.
    """
    lanes = len(bases)
    row = pitch * lanes
    root = size * row
    zero, almost_one = splat(weights, 0.0), splat(weights, 1.0 - 1e-9)
    long = load(lane_lengths, 0)
    for m in range(size):
        shift = zero
        for h in range(size):
            at = (root if h == m else h * row) + m * lanes
            v = where_larger(long, splat(weights, max(h, m)), gather(direction, bases, h * n + m), zero)
            store(tangents, at, v)
            if h != m or multiroot:
                shift = where_larger(load(weights, at), almost_one, v, shift)
        for h in range(size + 1):
            store(tangents, h * row + m * lanes, load(tangents, h * row + m * lanes) - shift)
    shift = zero
    if not multiroot:
        for m in range(size):
            shift = where_larger(load(weights, root + m * lanes), almost_one, load(tangents, root + m * lanes), shift)
    for h in range(size + 1):
        for m in range(size):
            at = h * row + m * lanes
            weight, v = load(weights, at), load(tangents, at)
            v = v - shift if h == size else v
            store(tangents, at, where_larger(weight, zero, weight * v, zero))


@inner
def copy(source, target):
    for i in range(len(source)):
        target[i] = source[i]


@inline
def _finite(x, zero, forbidden):
    """Zero in the lanes that are -inf."""
    return where_larger(x, forbidden, x, zero)
