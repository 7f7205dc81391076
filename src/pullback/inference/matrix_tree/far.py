"""Sums over all trees for scores so far apart that their weights leave the range of float64. README.md has the maths.

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

import numpy as np

from pullback.inference._numba.compile import inner, kernel, subroutine
from pullback.inference._numba.lanes import BYTES, aligned, gather, larger, load, splat, store, where_larger
from pullback.inference._numba.vectors import log, select_positive
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.front.checks import INFEASIBLE, OK
from pullback.inference.matrix_tree.exponents import (
    LOWEST,
    NOTHING,
    added,
    aligned_terms,
    as_log,
    from_difference,
    get,
    log_of,
    narrow,
    normal,
    nothing,
    power,
    put,
    subtracted,
)
from pullback.inference.matrix_tree.scaling import copy, place

LANES = BYTES // 8


@kernel
def solve(worker, workers, scores, lengths, order, exponents, direction, entropic, multiroot, mu, product, totals, status):
    """Marginals, their derivative along the direction, log Z and entropy of the sentences of `order`, of at least one word.

    `scores` are `[B, n, n]`, finite or -inf among the words, `direction` likewise, or empty for zero. If `entropic`, the
    `product` is the gradient of the entropy. `mu` and `product` are not written if they are empty; `totals` `[B, 2]`
    get log Z and, if `entropic`, the entropy. `exponents` is a tuple as long as those of the weights. With one part, sentences
    are left OUT_OF_RANGE if their trees may need an arc that counts as 0 there.
    """
    n, first = scores.shape[-1], worker * LANES
    if first >= len(order):
        return
    largest, tilted, back = lengths[order[first]], entropic or direction.size > 0, mu.size > 0 or product.size > 0
    flat, flat_direction = scores.reshape(-1), direction.reshape(-1)
    flat_mu, flat_product = mu.reshape(-1), product.reshape(-1)
    before, weights, sums = _numbers(exponents, largest), _numbers(exponents, largest), _numbers(exponents, largest)
    some = largest if tilted else 0
    tangents, tangents_before, slopes = _chart(some), _chart(some), _chart(some)
    adjoints = _chart(largest if back else 0)
    means, best, gains, falls = _line(largest), _line(largest), _line(largest), _line(largest)
    bases, long, last = np.empty(LANES, np.int64), _line(0), np.zeros(LANES, np.int64)
    dropped, log_z, nats = _line(0), _line(0), _line(0)
    for start in range(first, len(order), workers * LANES):
        size, count = lengths[order[start]], min(LANES, len(order) - start)
        row = (size + 1 - size % 2) * LANES
        place(order, start, lengths, n * n, bases, long)
        last[:] = 0
        for _ in range(2):
            _read(flat, flat_direction, n, size, row, bases, long, last, before, tangents_before, best, dropped)
            _copy(before, weights, size, row)
            if entropic:
                _start(before, tangents_before, size, row)
            if tilted:
                copy(tangents_before, tangents)
            _eliminate(weights, tangents, size, row, tilted, entropic, multiroot, sums, means)
            again = False
            for lane in range(count):
                # if no word that is left leads to this one, a single root has to be above it, so it must be the last
                stuck = _first_without(sums, size, lane)
                if stuck > 0 and last[lane] == 0 and not multiroot:
                    last[lane], again = stuck, True
            if not again:
                break
        store(log_z, 0, _log_z(size, best, sums))
        store(nats, 0, _entropy(size, sums, means) if entropic else splat(means, 0.0))
        for lane in range(count):
            b = order[start + lane]
            status[b] = _verdict(size, lane, sums, dropped)
            totals[b, 0], totals[b, 1] = log_z[lane], max(nats[lane], 0.0)
            if status[b] != OK:
                long[lane] = 0.0
        if back:
            _differentiate(
                weights, tangents, adjoints, slopes, size, row, tilted, entropic, multiroot, sums, means, gains, falls
            )
            _settle(before, tangents_before, weights, tangents, adjoints, slopes, size, row, tilted, entropic)
        if mu.size > 0:
            _write(n, size, row, bases, long, last, adjoints, 0.0, 1.0, flat_mu)
        if product.size > 0:
            _write(n, size, row, bases, long, last, slopes, -np.inf, np.inf, flat_product)


@inner
def _chart(size):
    return aligned((size + 1) * (size + 1 - size % 2) * LANES, np.empty(0, np.float64))


@inner
def _line(size):
    return aligned((size + 1) * LANES, np.empty(0, np.float64))


@inner
def _numbers(exponents, size):
    """A chart of numbers."""
    if len(exponents) == 1:
        return _chart(size), (_chart(size),)
    return _chart(size), (_chart(size), _chart(size), _chart(size))


@inner
def _start(weights, tangents, size, row):
    """The tangents of entropies, zero, less log m."""
    for at in range(0, (size + 1) * row, LANES):
        m = load(weights[0], at)
        store(tangents, at, (m - m) - log(m))


@inner
def _copy(source, target, size, row):
    for at in range(0, (size + 1) * row, LANES):
        put(target, at, get(source, at))


@inner
def _read(flat, flat_direction, n, size, row, bases, long, last, weights, tangents, best, dropped):
    """Fill in the weights, shifted by the best score into each word, and the tangents, which are zero there.

    Padding hangs from the first word with weight one, as in scaling.py. A single root's only child, `last`, changes places
    with the first word. `dropped` gets the largest difference that counted as 0, -inf if there is none.
    """
    m, tilted = weights[0], len(flat_direction) > 0
    root, lengths, none = size * row, load(long, 0), splat(m, -np.inf)
    zero, lowest = splat(m, 0.0), splat(m, LOWEST)
    for h in range(size):
        for j in range(size):
            x = where_larger(lengths, splat(m, max(h, j)), gather(flat, bases, h * n + j), zero if h == 0 else none)
            store(m, (root if h == j else h * row) + j * LANES, where_larger(x, none, larger(x, lowest), x))
            if tilted:
                v = where_larger(lengths, splat(m, max(h, j)), gather(flat_direction, bases, h * n + j), zero)
                store(tangents, (root if h == j else h * row) + j * LANES, where_larger(x, none, v, zero))
        store(m, h * row + h * LANES, none)
        if tilted:
            store(tangents, h * row + h * LANES, zero)
    _exchange(m, size, row, last)
    if tilted:
        _exchange(tangents, size, row, last)
    worst = none
    for j in range(size):
        top, level = none, zero
        for at in range(j * LANES, root + row, row):
            x = load(m, at)
            level = where_larger(x, top, load(tangents, at), level) if tilted else zero
            top = larger(x, top)
        top = where_larger(top, none, top, zero)
        store(best, j * LANES, top)
        for at in range(j * LANES, root + row, row):
            x = load(m, at)
            value, exponent, lost = from_difference(m, weights[1], x, top)
            put(weights, at, (value, exponent))
            worst = larger(lost, worst)
            if tilted:
                store(tangents, at, load(tangents, at) - level)
    store(dropped, 0, worst)


@inner
def _exchange(chart, size, row, last):
    """In each lane that has a last word above 0, exchange it with word 0."""
    for lane in range(LANES):
        if last[lane] > 0:
            across, down = last[lane] * LANES, last[lane] * row
            for at in range(lane, size * LANES, LANES):
                chart[at], chart[down + at] = chart[down + at], chart[at]
            for at in range(lane, (size + 1) * row, row):
                chart[at], chart[across + at] = chart[across + at], chart[at]


@inner
def _eliminate(weights, tangents, size, row, tilted, entropic, multiroot, sums, means):
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
    """What a share adds to the mean of the tangents."""
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
def _first_without(sums, size, lane):
    """The first eliminated word that no other leads to, or -1."""
    for k in range(size - 1, -1, -1):
        if sums[1][0][k * LANES + lane] < NOTHING / 2:
            return k
    return -1


@inner
def _verdict(size, lane, sums, dropped):
    """Arcs that count as 0 may be left out if the at most (size + 1)^size trees with one of them weigh next to nothing.

    Each of these trees weighs at most as much as its arc, as no shifted score is above zero.
    """
    exponent = 0.0
    for k in range(size):
        exponent += sums[1][0][k * LANES + lane]
    if exponent < NOTHING / 2:
        return INFEASIBLE if dropped[lane] == -np.inf else OUT_OF_RANGE
    return OK if dropped[lane] == -np.inf or exponent > 0.5 * dropped[lane] else OUT_OF_RANGE


@inner
def _log_z(size, best, sums):
    """The sum of the shifts and of the logs of the sums, in three parts until the end."""
    zero = splat(best, 0.0)
    total = zero, zero, zero
    for k in range(size):
        total = added(total, (load(best, k * LANES), zero, zero))
        m, exponent = get(sums, k * LANES)
        total = added(total, log_of(best, m, exponent))
    return narrow(total)


@inner
def _entropy(size, sums, means):
    total = splat(means, 0.0)
    for k in range(0, size * LANES, LANES):
        total = total + (load(means, k) + log(load(sums[0], k)))
    return total


@inner
def _differentiate(
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
def _settle(before, tangents_before, weights, tangents, adjoints, slopes, size, row, tilted, entropic):
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


@inner
def _write(n, size, row, bases, long, last, chart, low, high, out):
    """Copy the lanes of a chart to packed matrices, between bounds; `out` is their batch, flat."""
    _exchange(chart, size, row, last)
    for h in range(size):
        for m in range(size):
            at = (size if h == m else h) * row + m * LANES
            for lane in range(LANES):
                if long[lane] > max(h, m):
                    out[bases[lane] + h * n + m] = min(max(chart[at + lane], low), high)
