"""Putting sentences side by side into lanes as weights: exp(score - shift), a shift for each word's column.

Every tree takes one arc from each column, so the shifts add up to a factor of Z. With a single root it takes one arc
from the root as well: without exponents, root arcs then have a further shift in common, and a column's shift is that of its
other arcs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback.inference._numba.compile import inline, inner
from pullback.inference._numba.lanes import bad_score, gather, larger, load, splat, store, where_larger
from pullback.inference.engine.rules import numbers
from pullback.inference.matrix_tree.elimination import LANES
from pullback.inference.matrix_tree.numbers import bounds, exponential, get, order_of, order_of_nothing, put

LOWEST = -1e300  # finite scores below this count as this: sums of them stay finite
_LARGE = 1e4


class Group(NamedTuple):
    """The sentences in the lanes."""

    bases: Any  # where their scores begin
    held: Any  # one vector of each of the following


LENGTH = 0  # of a sentence, 0 for lanes without one
LAST = LANES  # a single root's only child that changes places with the first word
CODE = 2 * LANES  # of bad scores
APART = 3 * LANES  # not 0 if scores are too far apart
DROPPED = 4 * LANES  # the largest of the finite shifted scores whose weight is zero, -inf if there is none
LEAST = 5 * LANES  # the smallest product of weights
LOGS = 6 * LANES  # the sum of the logarithms of the sums of weights
VALUE = 7 * LANES  # log Z, or the entropy


@inner
def place(order, first, lengths, stride, group):
    """Give the sentences order[first], order[first + 1], ... a lane each."""
    for lane in range(LANES):
        inside = first + lane < len(order)
        sentence = order[first + lane] if inside else order[first]
        group.bases[lane] = sentence * stride
        group.held[LENGTH + lane] = lengths[sentence] if inside else 0
        group.held[LAST + lane] = 0


@inner
def _lay_out(flat, n, size, row, group, exponents, padding, outside, values):
    """Put matrices side by side: `padding` for arcs from the first word to padding, `outside` for others and diagonals."""
    long, others = load(group.held, LENGTH), splat(values, outside)
    for h in range(size):
        beyond = splat(values, padding) if h == 0 else others
        for m in range(size):
            x = where_larger(long, splat(values, max(h, m)), gather(flat, group.bases, h * n + m), beyond)
            store(values, (size if h == m else h) * row + m * LANES, x)
        store(values, h * row + h * LANES, others)
    exchange(values, size, row, group, exponents)


@inner
def read_weights(scores, n, size, row, group, multiroot, weights, shifts):
    """Fill a chart of weights (see elimination.py), zero on the diagonal, and the shifts: of each column, of the root.

    Padding hangs from the first word with weight one (the first word, if it is padding, from the root), and nothing hangs
    from it: it does not change Z. Derivatives become those along the scores.
    """
    values, root, with_root = weights[0][0], size * row, multiroot or len(weights[1]) > 0
    zero, forbidden, lowest = splat(shifts, 0.0), splat(shifts, -np.inf), splat(shifts, LOWEST)
    _lay_out(scores, n, size, row, group, weights[1], 0.0, -np.inf, values)
    worst, top = zero, forbidden
    for column in range(0, size * LANES, LANES):
        shift = forbidden
        for at in range(column, root + row, row):
            x = load(values, at)
            worst = larger(bad_score(x), worst)
            x = where_larger(x, forbidden, where_larger(lowest, x, lowest, x), x)
            store(values, at, x)
            if with_root or at < root:
                shift = larger(x, shift)
        shift = _finite(shift, zero, forbidden)
        store(shifts, column, shift)
        top = larger(load(values, root + column) - shift, top)
    store(group.held, CODE, worst)
    extra = zero if with_root else _finite(top, zero, forbidden)
    store(shifts, size * LANES, extra)
    cutoff, farthest = bounds(weights[1])
    spread, dropped, least = zero, forbidden, splat(shifts, cutoff)
    for h in range(size + 1):
        apart = extra if h == size else zero
        for m in range(0, size * LANES, LANES):
            x, shift = load(values, h * row + m), load(shifts, m)
            y = x - shift - apart
            spread = larger(where_larger(least, y, zero, zero - y), spread)
            dropped = larger(where_larger(least, y, y, forbidden), dropped)
            _put(weights, h * row + m, exponential(weights[1], x, shift, apart))
    # the root's shift is added to each root arc: where it is large it takes their last digits
    size_of_extra = larger(extra, zero - extra)
    spread = where_larger(size_of_extra, splat(shifts, _LARGE), size_of_extra, spread)
    store(group.held, APART, where_larger(spread, splat(shifts, -farthest), spread, zero))
    store(group.held, DROPPED, dropped)


@inline
def _put(weights, at, found):
    """Write a weight, and its derivative along its own score."""
    value, exponent, logarithm = found
    zero = value - value
    put(weights, at, (_dual(weights[0], value, where_larger(value, zero, value * logarithm, zero)), exponent))


@inline
def _dual(chart, value, derivative):
    """A value and its derivative, if the chart has derivatives."""
    if len(chart) == 1:
        return (value,)
    return value, derivative


@inner
def read_tangents(direction, n, size, row, group, multiroot, weights):
    """Replace the derivatives of weights by those along a direction of the scores.

    A constant added to a column of the scores, or with a single root to all root arcs, changes no probability: the
    direction is shifted to zero where the scores are largest, so that a large constant costs no precision.
    """
    tangents, root, stop = weights[0][1], size * row, size * LANES
    zero, least = splat(tangents, 0.0), splat(tangents, order_of_nothing(weights[1]))
    _lay_out(direction, n, size, row, group, weights[1], 0.0, 0.0, tangents)
    root_top, root_shift = least, zero
    for column in range(0, stop, LANES):
        top, shift = least, zero
        for at in range(column, root + row * (multiroot or len(weights[1]) > 0), row):
            top, shift = _at_larger(weights, at, top, shift)
        for at in range(column, root + row, row):
            store(tangents, at, load(tangents, at) - shift)
        if not multiroot:
            root_top, root_shift = _at_larger(weights, root + column, root_top, root_shift)
    for h in range(size + 1):
        for at in range(h * row, h * row + stop, LANES):
            m, exponent = get(weights, at)
            v = m[1] - root_shift if h == size else m[1]
            store(tangents, at, where_larger(order_of(m, exponent), least, m[0] * v, zero))


@inline
def _at_larger(weights, at, top, shift):
    """The order of a number and its direction, where it is above `top`, else `top` and `shift`."""
    m, exponent = get(weights, at)
    order = order_of(m, exponent)
    return larger(order, top), where_larger(order, top, m[1], shift)


@inner
def exchange(values, size, row, group, exponents):
    """In each lane that has a last word above 0, exchange it with word 0. Without exponents there are none."""
    if len(exponents) > 0:
        for lane in range(LANES):
            last = int(group.held[LAST + lane])
            if last > 0:
                for at in range(lane, size * LANES, LANES):
                    values[at], values[last * row + at] = values[last * row + at], values[at]
                for at in range(lane, (size + 1) * row, row):
                    values[at], values[last * LANES + at] = values[last * LANES + at], values[at]


@inner
def copy(weights, before, size, row):
    """Copy a chart of weights, with 0 for m on the diagonal."""
    for at in range(0, (size + 1) * row, LANES):
        put(before, at, get(weights, at))
    for h in range(size):
        numbers.put(before[0], h * row + h * LANES, numbers.constant(before[0], 0.0))


@inner
def write(values, n, size, row, group, exponents, low, high, out):
    """Copy the lanes of a chart to packed matrices, between bounds; `out` is their batch, flat."""
    exchange(values, size, row, group, exponents)
    for h in range(size):
        for m in range(size):
            at = (size if h == m else h) * row + m * LANES
            for lane in range(LANES):
                if group.held[LENGTH + lane] > max(h, m):
                    out[group.bases[lane] + h * n + m] = min(max(values[at + lane], low), high)


@inline
def _finite(x, zero, forbidden):
    """Zero in the lanes that are -inf."""
    return where_larger(x, forbidden, x, zero)
