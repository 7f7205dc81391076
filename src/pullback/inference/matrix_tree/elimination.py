"""State elimination and its reverse over lanes of weights, for plain and for dual numbers. README.md has the maths.

A chart holds one vector for each arc: row h and column m for the arc from h to m, the row after the last word for the
root, `pitch` vectors from one row to the next. Words are eliminated from the last to the first.
"""

from __future__ import annotations

from pullback.inference._numba.compile import inline, inner
from pullback.inference._numba.lanes import larger, where_larger
from pullback.inference.engine.rules.numbers import (
    at,
    constant,
    over,
    plus,
    put,
    times,
    times_plus,
    value_of,
    where_positive,
)

TINY = 1e-200  # weights and products of weights below this leave the range in which the sweeps can work


@inner
def eliminate(weights, size, pitch, lanes, multiroot, sums):
    """Eliminate all words, in place; what is left of a word's row and column is what they held when its turn came.

    `sums` gets the sum S_k of the weights into each word: Z is their product. Returns the smallest product of two weights,
    or inverse of one, in each lane: all is well where it is at least TINY.
    """
    row = pitch * lanes
    root = size * row
    one, zero = constant(weights, 1.0), constant(weights, 0.0)
    least = value_of(one)
    for k in range(size - 1, -1, -1):
        column, own = k * lanes, k * row
        total = at(weights, root + column) if multiroot or k == 0 else zero
        smallest = value_of(one)
        for h in range(k):
            weight = at(weights, h * row + column)
            smallest = _smaller_positive(value_of(weight), smallest)
            total = plus(total, weight)
        put(sums, column, total)
        inverse = over(one, total)
        from_root = value_of(at(weights, root + column))
        smallest = _smaller_positive(from_root, smallest) * value_of(inverse)
        largest = larger(from_root * value_of(inverse), value_of(one))
        thinnest = value_of(one)
        for m in range(k):
            thinnest = _smaller_positive(value_of(at(weights, own + m * lanes)), thinnest)
        least = _smaller(least, _smaller(smallest * thinnest, value_of(total)))
        least = _smaller(least, value_of(one) / largest)
        for h in range(k):
            _add_paths(weights, h * row, own, column, k, lanes, inverse)
        _add_paths(weights, root, own, column, k, lanes, inverse)
    return least


@inline
def _add_paths(weights, row, own, column, k, lanes, inverse):
    """Add the paths h -> k -> m to the arcs h -> m of one row."""
    share = times(at(weights, row + column), inverse)
    for m in range(0, k * lanes, lanes):
        put(weights, row + m, times_plus(share, at(weights, own + m), at(weights, row + m)))


@inner
def differentiate(weights, adjoints, size, pitch, lanes, multiroot, sums, gains, uses):
    """The derivatives of log Z in all weights, and the marginals, from the last eliminated word back to the first.

    `weights`, as `eliminate` left it, becomes the chart of marginals; `adjoints`, a copy of the weights from before, with a
    zero diagonal, the derivatives. `gains` and `uses` are scratch, a vector per word (and the root).
    """
    row = pitch * lanes
    root = size * row
    one, minus_one, zero = constant(weights, 1.0), constant(weights, -1.0), constant(weights, 0.0)
    for k in range(size):
        column, own = k * lanes, k * row
        inverse = over(one, at(sums, column))
        for m in range(0, column, lanes):
            put(gains, m, zero)
        for h in range(k):
            _collect(weights, adjoints, h * row, own, column, lanes, inverse, gains, uses, h * lanes)
        _collect(weights, adjoints, root, own, column, lanes, inverse, gains, uses, size * lanes)
        rest = one
        for m in range(0, column, lanes):
            gain = at(gains, m)
            rest = times_plus(times(minus_one, at(weights, own + m)), gain, rest)
            _settle(weights, adjoints, own + m, gain)
        for h in range(k):
            slot = h * row + column
            adjoint = times(plus(rest, at(uses, h * lanes)), inverse)
            _settle(weights, adjoints, slot, where_positive(at(weights, slot), adjoint, zero))
        slot = root + column
        own_share = rest if multiroot or k == 0 else zero
        adjoint = times(plus(own_share, at(uses, size * lanes)), inverse)
        _settle(weights, adjoints, slot, where_positive(at(weights, slot), adjoint, zero))


@inline
def _collect(weights, adjoints, row, own, column, lanes, inverse, gains, uses, h):
    """The derivatives of arcs k -> m (gains) and h -> k (uses) by the arcs h -> m, which contain the paths h -> k -> m."""
    share = times(at(weights, row + column), inverse)
    use = constant(weights, 0.0)
    for m in range(0, column, lanes):
        adjoint = at(adjoints, row + m)
        put(gains, m, times_plus(adjoint, share, at(gains, m)))
        use = times_plus(adjoint, at(weights, own + m), use)
    put(uses, h, use)


@inline
def _settle(weights, adjoints, slot, adjoint):
    put(weights, slot, times(at(adjoints, slot), adjoint))
    put(adjoints, slot, adjoint)


@inline
def _smaller(a, b):
    """The smaller of each pair; a where one is NaN."""
    return where_larger(a, b, b, a)


@inline
def _smaller_positive(a, b):
    """The smaller of each pair, but b where a is zero."""
    return where_larger(a, a - a, _smaller(a, b), b)
