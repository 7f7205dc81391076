"""Sums over all trees for groups of sentences in lanes, in any kind of number (numbers.py)."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner, kernel
from pullback.inference._numba.lanes import aligned, larger, load, splat, store
from pullback.inference._numba.vectors import log
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.front.checks import INFEASIBLE, INFINITE, NAN, OK
from pullback.inference.matrix_tree.elimination import LANES, TINY, differentiate, eliminate
from pullback.inference.matrix_tree.numbers import NOTHING, added, get, log_of, narrow, rate_for
from pullback.inference.matrix_tree.scaling import (
    APART,
    CODE,
    DROPPED,
    LAST,
    LEAST,
    LENGTH,
    LOGS,
    VALUE,
    Group,
    copy,
    place,
    read_tangents,
    read_weights,
    write,
)

_NEGLIGIBLE = 50.0  # logs apart


@kernel
def solve(worker, workers, scores, lengths, order, kind, exponents, direction, multiroot, out, value, status):
    """Marginals and log Z of the sentences of `order`, or their derivatives.

    `kind` and `exponents` are tuples as long as those of the numbers. For dual numbers, `out` gets the derivative of the
    marginals along the direction: J v, and v J, for J is symmetric. If that is empty, it is along the scores, and `value`
    gets the entropy. `out` is not written if it is empty. Sentences out of range are left with the status OUT_OF_RANGE.
    """
    n, first = scores.shape[-1], worker * LANES
    if first >= len(order):
        return
    largest = lengths[order[first]]
    cells, flat, flat_out = (largest + 1) * pitch(largest), scores.reshape(-1), out.reshape(-1)
    weights, sums = _chart(kind, exponents, cells, value), _chart(kind, exponents, largest, value)
    before = _chart(kind, exponents, cells * (out.size > 0), value)
    gains, uses = _chart(kind, (), largest, value)[0], _chart(kind, (), largest, value)[0]
    group, shifts = Group(np.empty(LANES, np.int64), aligned(8 * LANES, value)), aligned((largest + 1) * LANES, value)
    rate = rate_for(exponents, direction.size == 0, shifts)
    low, high = (0.0, 1.0) if len(kind) == 1 else (-np.inf, np.inf)
    for start in range(first, len(order), workers * LANES):
        size, count = lengths[order[start]], min(LANES, len(order) - start)
        row = pitch(size) * LANES
        place(order, start, lengths, n * n, group)
        for _ in range(2):
            read_weights(flat, n, size, row, group, multiroot, weights, shifts)
            left = _leave_all(group, order, start, count, status)
            if left:
                break
            if len(kind) == 2 and direction.size > 0:
                read_tangents(direction.reshape(-1), n, size, row, group, multiroot, weights)
            if out.size > 0:
                copy(weights, before, size, row)
            store(group.held, LEAST, eliminate(weights, size, row, multiroot, sums, rate))
            if multiroot or not _another_first(sums[1], size, count, group.held):
                break
        if left:
            continue
        _add_up(kind, size, sums, shifts, group)
        for lane in range(count):
            b = order[start + lane]
            status[b], value[b] = _verdict(group, lane, size, sums[1]), group.held[VALUE + lane]
        if out.size > 0:
            differentiate(weights, before, size, row, multiroot, sums, gains, uses, rate)
            write(weights[0][-1], n, size, row, group, weights[1], low, high, flat_out)


@inner
def pitch(size):
    """Vectors from one row of a chart to the next: odd, so that a column does not fall into few sets of the cache."""
    return size + 1 - size % 2


@inner
def _chart(kind, exponents, count, like):
    """Vectors of numbers."""
    return _vectors(kind, count * LANES, like), _vectors(exponents, count * LANES, like)


@inner
def _vectors(kind, size, like):
    if len(kind) == 0:
        return ()
    if len(kind) == 1:
        return (aligned(size, like),)
    if len(kind) == 2:
        return aligned(size, like), aligned(size, like)
    return aligned(size, like), aligned(size, like), aligned(size, like)


@inner
def _leave_all(group, order, start, count, status):
    """Whether no sentence of the group can be OK, as their scores show; then their statuses are written."""
    for lane in range(count):
        if group.held[CODE + lane] == 0 and group.held[APART + lane] == 0:
            return False
    for lane in range(count):
        status[order[start + lane]] = _code(group, lane)
    return True


@inner
def _code(group, lane):
    if group.held[CODE + lane] == 0:
        return OUT_OF_RANGE
    return INFINITE if group.held[CODE + lane] == 1 else NAN


@inner
def _another_first(exponents, size, count, held):
    """Whether, in some lane, no word that is left leads to one: a single root has to be above that, so it must be the last."""
    again = False
    for lane in range(count):
        stuck = _first_without(exponents, size, lane)
        if stuck > 0 and held[LAST + lane] == 0:
            held[LAST + lane], again = stuck, True
    return again


@inner
def _first_without(exponents, size, lane):
    """The first eliminated word that no other leads to, or -1; without exponents -1, as such a sum is out of range."""
    if len(exponents) > 0:
        for k in range(size - 1, -1, -1):
            if exponents[0][k * LANES + lane] < NOTHING / 2:
                return k
    return -1


@inner
def _add_up(kind, size, sums, shifts, group):
    """Write the logarithm of the product of the sums; and log Z or, for dual numbers, the entropy.

    That is what the logarithms of all sums exceed their derivatives by.
    """
    zero = splat(shifts, 0.0)
    total, entropy = (zero, zero, zero), zero
    for k in range(0, size * LANES, LANES):
        m, exponent = get(sums, k)
        total = added(total, log_of(m, exponent))
        entropy = entropy + (log(m[0]) - m[-1] / m[0])
    store(group.held, LOGS, narrow(total))
    for k in range(0, (size + 1) * LANES, LANES):
        total = added(total, (load(shifts, k), zero, zero))
    store(group.held, VALUE, narrow(total) if len(kind) == 1 else larger(entropy, zero))


@inner
def _verdict(group, lane, size, exponents):
    """The lane's status; a lane that is not OK loses its words, so that nothing of it is written.

    Arcs whose weight is zero may be left out if the at most (size + 1)^size trees with one of them weigh next to nothing:
    each of these weighs at most as much as its arc, as no shifted score is above zero.
    """
    lost, verdict = group.held[DROPPED + lane], _code(group, lane)
    if group.held[CODE + lane] == 0 and group.held[APART + lane] == 0 and group.held[LEAST + lane] >= TINY:
        if _first_without(exponents, size, lane) >= 0:
            verdict = INFEASIBLE if lost == -np.inf else OUT_OF_RANGE
        elif lost == -np.inf or lost + size * np.log(size + 1.0) + _NEGLIGIBLE < group.held[LOGS + lane]:
            return OK
    group.held[LENGTH + lane] = 0.0
    return verdict
