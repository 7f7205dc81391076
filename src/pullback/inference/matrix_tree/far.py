"""Sums over all trees for scores so far apart that their weights leave the range of float64. README.md has the maths,
far_elimination.py the sweeps.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner, kernel
from pullback.inference._numba.lanes import gather, larger, load, splat, store, where_larger
from pullback.inference._numba.vectors import log
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.front.checks import INFEASIBLE, OK
from pullback.inference.matrix_tree.exponents import LOWEST, NOTHING, added, from_difference, get, log_of, narrow, put
from pullback.inference.matrix_tree.far_elimination import differentiate, eliminate, settle
from pullback.inference.matrix_tree.kernels import LANES, chart, line, pitch, write
from pullback.inference.matrix_tree.scaling import copy, place


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
    tangents, tangents_before, slopes = chart(some), chart(some), chart(some)
    adjoints = chart(largest if back else 0)
    means, best, gains, falls = line(largest), line(largest), line(largest), line(largest)
    bases, long, last = np.empty(LANES, np.int64), line(0), np.zeros(LANES, np.int64)
    dropped, log_z, nats = line(0), line(0), line(0)
    for start in range(first, len(order), workers * LANES):
        size, count = lengths[order[start]], min(LANES, len(order) - start)
        row = pitch(size) * LANES
        place(order, start, lengths, n * n, bases, long)
        last[:] = 0
        for _ in range(2):
            _read(flat, flat_direction, n, size, row, bases, long, last, multiroot, before, tangents_before, best, dropped)
            _copy(before, weights, size, row)
            if entropic:
                _start(before, tangents_before, size, row)
            if tilted:
                copy(tangents_before, tangents)
            eliminate(weights, tangents, size, row, tilted, entropic, multiroot, sums, means)
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
            differentiate(
                weights, tangents, adjoints, slopes, size, row, tilted, entropic, multiroot, sums, means, gains, falls
            )
            settle(before, tangents_before, weights, tangents, adjoints, slopes, size, row, tilted, entropic)
        if mu.size > 0:
            _exchange(adjoints, size, row, last)
            write(n, size, row, bases, long, adjoints, 0.0, 1.0, flat_mu)
        if product.size > 0:
            _exchange(slopes, size, row, last)
            write(n, size, row, bases, long, slopes, -np.inf, np.inf, flat_product)


@inner
def _numbers(exponents, size):
    """A chart of numbers."""
    if len(exponents) == 1:
        return chart(size), (chart(size),)
    return chart(size), (chart(size), chart(size), chart(size))


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
def _lay_out(flat, n, size, row, bases, long, last, padding, values):
    """Put matrices side by side; `padding` is for arcs from the first word to padding, other padding and diagonals are -inf.

    A single root's only child, `last`, changes places with the first word.
    """
    none, lengths = splat(values, -np.inf), load(long, 0)
    for h in range(size):
        outside = splat(values, padding) if h == 0 else none
        for m in range(size):
            x = where_larger(lengths, splat(values, max(h, m)), gather(flat, bases, h * n + m), outside)
            store(values, (size if h == m else h) * row + m * LANES, x)
        store(values, h * row + h * LANES, none)
    _exchange(values, size, row, last)


@inner
def _read(flat, flat_direction, n, size, row, bases, long, last, multiroot, weights, tangents, best, dropped):
    """Fill in the weights, shifted by the best score into each word, and the tangents, shifted to zero there.

    Padding hangs from the first word with weight one, as in scaling.py. With a single root, its tangents have a further shift.
    `dropped` gets the largest difference that counted as 0, -inf if there is none.
    """
    scores, tilted, root = weights[0], len(flat_direction) > 0, size * row
    zero, none, lowest = splat(scores, 0.0), splat(scores, -np.inf), splat(scores, LOWEST)
    _lay_out(flat, n, size, row, bases, long, last, 0.0, scores)
    if tilted:
        _lay_out(flat_direction, n, size, row, bases, long, last, 0.0, tangents)
    worst, root_top, root_level = none, none, zero
    for column in range(0, size * LANES, LANES):
        top, level = none, zero
        for at in range(column, root + row, row):
            x = load(scores, at)
            x = where_larger(x, none, larger(x, lowest), x)
            store(scores, at, x)
            if tilted:
                store(tangents, at, where_larger(x, none, load(tangents, at), zero))
                level = where_larger(x, top, load(tangents, at), level)
            top = larger(x, top)
        top = where_larger(top, none, top, zero)
        store(best, column, top)
        if tilted and not multiroot:
            x = load(scores, root + column) - top
            root_level = where_larger(x, root_top, load(tangents, root + column) - level, root_level)
            root_top = larger(x, root_top)
        for at in range(column, root + row, row):
            m, exponent, lost = from_difference(scores, weights[1], load(scores, at), top)
            put(weights, at, (m, exponent))
            worst = larger(lost, worst)
            if tilted:
                store(tangents, at, load(tangents, at) - level)
    store(dropped, 0, worst)
    if tilted and not multiroot:
        for at in range(root, root + row, LANES):
            store(tangents, at, load(tangents, at) - root_level)


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
    if _first_without(sums, size, lane) >= 0:
        return INFEASIBLE if dropped[lane] == -np.inf else OUT_OF_RANGE
    exponent = 0.0
    for k in range(size):
        exponent += sums[1][0][k * LANES + lane]
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
