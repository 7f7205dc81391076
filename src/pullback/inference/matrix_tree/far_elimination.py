"""The sweeps of elimination.py over weights with exponents, for far.py. README.md has the maths.

Marginals and their derivative along a direction, or entropy and its gradient. A weight is kept as a number with an exponent
(exponents.py) and a tangent of its log. An adjoint is kept as the marginal probability of its arc in the graph of the moment
when one of the arc's words is eliminated, over m of its weight. These stay bounded where weights and adjoints would not.
Rows are heads, the root after the last word.

The tangent is the derivative of the log along the direction; or, if `entropic`, the entropy of the paths that the weight
sums over: what the log exceeds its derivative along the scores by. Scores themselves never enter these, so that their size
does not matter. Entropies are kept less log m: log m of a share's surprise then cancels, and what is left of it is the
exponent, without a logarithm.
"""

from __future__ import annotations

from pullback.inference._numba.compile import inner, subroutine
from pullback.inference._numba.lanes import load, splat, store, where_larger
from pullback.inference._numba.vectors import log, select_positive
from pullback.inference.matrix_tree.exponents import (
    NOTHING,
    added,
    aligned_terms,
    as_log,
    get,
    narrow,
    normal,
    nothing,
    power,
    put,
    subtracted,
)
from pullback.inference.matrix_tree.kernels import LANES


@inner
def eliminate(weights, tangents, size, row, tilted, entropic, multiroot, sums, means):
    """Eliminate in place; what is left of a word's row and column is what they held when its turn came, with a normal m."""
    root, zero = size * row, splat(weights[0], 0.0)
    for k in range(size - 1, -1, -1):
        column, own = k * LANES, k * row
        for x in range(k):
            _normalise(weights, tangents, entropic, own + x * LANES)
            _normalise(weights, tangents, entropic, x * row + column)
        _normalise(weights, tangents, entropic, root + column)
        whole = get(weights, root + column) if multiroot or k == 0 else nothing(weights)
        for h in range(k):
            a, b, top, _ = aligned_terms(weights[0], whole, get(weights, h * row + column))
            whole = a + b, top
        whole = normal(whole[0], whole[1])
        put(sums, column, whole)
        if tilted:
            mean = zero
            if multiroot or k == 0:
                mean = _tilt(weights, tangents, root + column, whole, entropic)
            for h in range(k):
                mean = mean + _tilt(weights, tangents, h * row + column, whole, entropic)
            store(means, column, mean)
        for h in range(k):
            _add_paths(weights, tangents, h * row, own, column, whole, tilted, entropic, means)
        _add_paths(weights, tangents, root, own, column, whole, tilted, entropic, means)


@subroutine
def _normalise(weights, tangents, entropic, at):
    before, k = get(weights, at)
    m, k = normal(before, k)
    if entropic:
        store(tangents, at, load(tangents, at) + (log(before) - log(m)))
    put(weights, at, (m, k))


@subroutine
def _share(weights, at, whole):
    """The share of a weight in the sum of those into a word, as a number."""
    m, k = get(weights, at)
    return m / whole[0], subtracted(k, whole[1])


@subroutine
def _tilt(weights, tangents, at, whole, entropic):
    """The term of a share in the mean of the tangents."""
    m, k = _share(weights, at, whole)
    p = m * power(weights[0], k)
    t = load(tangents, at)
    if entropic:
        t = t - as_log(k, narrow(k))
    return p * t


@subroutine
def _add_paths(weights, tangents, row, own, column, whole, tilted, entropic, means):
    """Add the paths h -> k -> m to the arcs h -> m of one row."""
    like = weights[0]
    share = _share(weights, row + column, whole)
    one, empty, zero = splat(like, 1.0), splat(like, NOTHING / 2), splat(like, 0.0)
    tilt = zero
    if tilted:
        tilt = load(tangents, row + column) - load(means, column)
    for m in range(0, column, LANES):
        other = get(weights, own + m)
        path = share[0] * other[0], added(share[1], other[1])
        a, b, top, gap = aligned_terms(like, path, get(weights, row + m))
        total = a + b
        put(weights, row + m, (total, top))
        if tilted:
            p = where_larger(path[1][0], empty, a / total, zero)
            by_path, by_arc = tilt + load(tangents, own + m), load(tangents, row + m)
            if entropic:
                apart = as_log(top, gap)
                by_path = by_path - where_larger(apart, zero, zero, apart)
                by_arc = by_arc + where_larger(apart, zero, apart, zero)
            store(tangents, row + m, p * by_path + (one - p) * by_arc)


@inner
def differentiate(
    weights, tangents, adjoints, slopes, size, row, tilted, entropic, multiroot, sums, means, gains, falls
):  # fmt: skip
    """The marginals of arcs when one of their words is eliminated, and their derivatives, both over m, in reverse order."""
    like, root = weights[0], size * row
    one, zero = splat(like, 1.0), splat(like, 0.0)
    for at in range(0, root + row, LANES):
        store(adjoints, at, zero)
        if tilted:
            store(slopes, at, zero)
    for k in range(size):
        column, own = k * LANES, k * row
        whole = get(sums, column)
        for m in range(0, column, LANES):
            store(gains, m, zero)
            store(falls, m, zero)
        for h in range(k):
            _collect(weights, tangents, adjoints, slopes, h * row, own, column, whole, tilted, entropic, means, gains, falls)
        _collect(weights, tangents, adjoints, slopes, root, own, column, whole, tilted, entropic, means, gains, falls)
        rest, fall = one, zero
        for m in range(0, column, LANES):
            x, y = load(gains, m), load(falls, m)
            rest, fall = rest - x, fall - y
            scale = load(like, own + m)
            store(adjoints, own + m, x / scale)
            if tilted:
                store(slopes, own + m, y / scale)
        for row_of in range(k + 1):
            at = (root if row_of == k else row_of * row) + column
            m, e = _share(weights, at, whole)
            p = m * power(like, e)
            scale = load(like, at)
            p = p if row_of < k or multiroot or k == 0 else zero
            store(adjoints, at, (load(adjoints, at) + p * rest) / scale)
            if tilted:
                change = load(tangents, at) - load(means, column)
                if entropic:
                    change = change - as_log(e, narrow(e))
                store(slopes, at, (load(slopes, at) + select_positive(p, p * (fall + rest * change), zero)) / scale)


@subroutine
def _collect(weights, tangents, adjoints, slopes, row, own, column, whole, tilted, entropic, means, gains, falls):
    """Give the arcs h -> k and k -> m their shares of the arcs h -> m, which contain the paths h -> k -> m."""
    like = weights[0]
    share = _share(weights, row + column, whole)
    zero = splat(like, 0.0)
    use, fall, tilt = zero, zero, zero
    if tilted:
        tilt = load(tangents, row + column) - load(means, column)
    for m in range(0, column, LANES):
        other, arc = get(weights, own + m), get(weights, row + m)
        gap = subtracted(added(share[1], other[1]), arc[1])
        part = share[0] * other[0] * power(like, gap)
        p = load(adjoints, row + m) * part
        use = use + p
        store(gains, m, load(gains, m) + p)
        if tilted:
            change = tilt + load(tangents, own + m) - load(tangents, row + m)
            if entropic:
                change = change - as_log(gap, narrow(gap))
            d = load(slopes, row + m) * part + select_positive(p, p * change, zero)
            fall = fall + d
            store(falls, m, load(falls, m) + d)
    store(adjoints, row + column, use)
    if tilted:
        store(slopes, row + column, fall)


@inner
def settle(before, tangents_before, weights, tangents, adjoints, slopes, size, row, tilted, entropic):
    """The marginals and derivatives of the arcs before elimination, in place of those of the arcs after it."""
    like = weights[0]
    one, zero = splat(like, 1.0), splat(like, 0.0)
    for at in range(0, (size + 1) * row, LANES):
        old, new = get(before, at), get(weights, at)
        gap = subtracted(old[1], new[1])
        part = old[0] * power(like, gap)
        p = load(adjoints, at) * part
        p = where_larger(p, one, one, select_positive(p, p, zero))
        store(adjoints, at, p)
        if tilted:
            change = load(tangents_before, at) - load(tangents, at)
            if entropic:
                change = change - as_log(gap, narrow(gap))
            store(slopes, at, load(slopes, at) * part + select_positive(p, p * change, zero))
