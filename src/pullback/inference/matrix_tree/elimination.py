"""State elimination and its reverse over lanes of weights, for all kinds of number (numbers.py). README.md has the maths.

A chart holds a number in each lane for each arc: row h and column m for the arc from h to m, the row after the last word for
the root, `row` elements from one row to the next. Words are eliminated from the last to the first.
"""

from __future__ import annotations

from pullback.inference._numba.compile import inline, inner
from pullback.inference._numba.lanes import BYTES, larger, where_larger
from pullback.inference.engine.rules import numbers
from pullback.inference.engine.rules.numbers import at, value_of, where_positive
from pullback.inference.matrix_tree.numbers import (
    added,
    get,
    inverse,
    lowered,
    negative,
    normal,
    nothing,
    plus,
    put,
    times,
    times_plus,
)

LANES = BYTES // 8
TINY = 1e-200  # weights and products of weights below this leave the range in which those without exponents can work


@inner
def eliminate(weights, size, row, multiroot, sums, rate):
    """Eliminate all words, in place; what is left of a word's row and column is what they held when its turn came.

    `sums` gets the sum S_k of the weights into each word: Z is their product. Returns the smallest product of two weights,
    or inverse of one, in each lane: without exponents, all is well where it is at least TINY.
    """
    root, least = size * row, value_of(numbers.constant(weights[0], 1.0))
    for k in range(size - 1, -1, -1):
        column, own = k * LANES, k * row
        for x in range(k):
            _normalise(weights, own + x * LANES, rate)
            _normalise(weights, x * row + column, rate)
        _normalise(weights, root + column, rate)
        total = get(weights, root + column) if multiroot or k == 0 else nothing(weights[0], weights[1])
        for h in range(k):
            total = plus(total, get(weights, h * row + column), rate)
        total = normal(total, rate)
        put(sums, column, total)
        through = inverse(total)
        if rate is None:
            least = _least(weights[0], root, own, column, row, value_of(total[0]), value_of(through[0]), least)
        for h in range(k):
            _add_paths(weights, h * row, own, column, through, rate)
        _add_paths(weights, root, own, column, through, rate)
    return least


@inline
def _normalise(weights, at, rate):
    if rate is not None:
        put(weights, at, normal(get(weights, at), rate))


@inline
def _least(weights, root, own, column, row, total, through, least):
    """The smallest of the products and inverses of a word's weights, and of `least`."""
    from_root, one = value_of(at(weights, root + column)), value_of(numbers.constant(weights, 1.0))
    smallest = thinnest = one
    for slot in range(column, own, row):
        smallest = _smaller_positive(value_of(at(weights, slot)), smallest)
    smallest = _smaller_positive(from_root, smallest) * through
    largest = larger(from_root * through, one)
    for slot in range(own, own + column, LANES):
        thinnest = _smaller_positive(value_of(at(weights, slot)), thinnest)
    least = _smaller(least, _smaller(smallest * thinnest, total))
    return _smaller(least, one / largest)


@inline
def _add_paths(weights, row, own, column, through, rate):
    """Add the paths h -> k -> m to the arcs h -> m of one row."""
    share = times(get(weights, row + column), through)
    for m in range(0, column, LANES):
        put(weights, row + m, times_plus(share, get(weights, own + m), get(weights, row + m), rate))


@inner
def differentiate(weights, before, size, row, multiroot, sums, gains, uses, rate):
    """The derivatives of log Z in all weights, and the marginals, from the last eliminated word back to the first.

    `weights`, as `eliminate` left it, becomes the chart of marginals, in m. `before` holds the weights from before, but 0 for m
    on the diagonal; its m become the derivatives times the powers of `weights`, which stay bounded where derivatives would
    not. `gains` and `uses` are scratch, for m of each word.
    """
    root, chart = size * row, weights[0]
    one, minus_one, zero = numbers.constant(chart, 1.0), numbers.constant(chart, -1.0), numbers.constant(chart, 0.0)
    for k in range(size):
        column, own = k * LANES, k * row
        through = inverse(get(sums, column))
        for m in range(0, column, LANES):
            numbers.put(gains, m, zero)
        for h in range(k):
            _collect(weights, before, h * row, own, column, through, gains, uses, h * LANES, rate)
        _collect(weights, before, root, own, column, through, gains, uses, column, rate)
        rest = one
        for m in range(0, column, LANES):
            gain = at(gains, m)
            rest = numbers.times_plus(numbers.times(minus_one, at(chart, own + m)), gain, rest)
            _settle(weights, before, own + m, gain, rate)
        for h in range(k + 1):
            slot = (h * row if h < k else root) + column
            own_share = zero
            if h < k or multiroot or k == 0:  # for other arcs S_k, of which they are no part, may be far smaller than they
                own_share = lowered(rest, added(at(weights[1], slot), through[1]), rate)
            adjoint = numbers.times(numbers.plus(own_share, at(uses, h * LANES)), through[0])
            _settle(weights, before, slot, where_positive(at(chart, slot), adjoint, zero), rate)


@inline
def _collect(weights, before, row, own, column, through, gains, uses, h, rate):
    """The derivatives of arcs k -> m (gains) and h -> k (uses) by the arcs h -> m, which contain the paths h -> k -> m."""
    share = times(get(weights, row + column), through)
    use = numbers.constant(weights[0], 0.0)
    for m in range(0, column, LANES):
        other = get(weights, own + m)
        gap = added(added(share[1], other[1]), negative(at(weights[1], row + m)))
        adjoint = lowered(at(before[0], row + m), gap, rate)
        numbers.put(gains, m, numbers.times_plus(adjoint, share[0], at(gains, m)))
        use = numbers.times_plus(adjoint, other[0], use)
    numbers.put(uses, h, use)


@inline
def _settle(weights, before, slot, adjoint, rate):
    old = get(before, slot)
    gap = added(old[1], negative(at(weights[1], slot)))
    numbers.put(weights[0], slot, lowered(numbers.times(old[0], adjoint), gap, rate))
    numbers.put(before[0], slot, adjoint)


@inline
def _smaller(a, b):
    """The smaller of each pair; a where one is NaN."""
    return where_larger(a, b, b, a)


@inline
def _smaller_positive(a, b):
    """The smaller of each pair, but b where a is zero."""
    return where_larger(a, a - a, _smaller(a, b), b)
