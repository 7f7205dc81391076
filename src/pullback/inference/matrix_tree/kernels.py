"""Groups of sentences in lanes of float64 weights. Sentences out of range are left with the status OUT_OF_RANGE."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback.inference._numba.compile import inner, kernel
from pullback.inference._numba.lanes import BYTES, aligned, gather, load, splat, store, where_larger
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.front.checks import INFINITE, NAN, OK
from pullback.inference.matrix_tree.elimination import TINY, differentiate, eliminate
from pullback.inference.matrix_tree.scaling import copy, place, read_tangents, read_weights

LANES = BYTES // 8
_FAR = 300.0  # a score this far below the best of its column has a weight of 1e-130, well inside the range
_LARGE = 1e4
_NEGLIGIBLE = 50.0  # logs apart


class Group(NamedTuple):
    """The state of each lane: where its scores begin, its length, its code for bad scores, and the guards of the range."""

    bases: Any
    lengths: Any
    codes: Any
    spread: Any
    dropped: Any
    least: Any


@kernel
def expectations(worker, workers, scores, lengths, order, multiroot, mu, log_z, entropy, status):
    """Marginals, log Z and entropy of every sentence; what has an empty array is not computed."""
    n = scores.shape[-1]
    first = worker * LANES
    if first >= len(order):
        return
    largest = lengths[order[first]]
    group = Group(np.empty(LANES, np.int64), line(0), line(0), line(0), line(0), line(0))
    weights, adjoints = chart(largest), chart(largest)
    shifts, sums, gains, uses = line(largest), line(largest), line(largest), line(largest)
    flat, flat_mu = scores.reshape(-1), mu.reshape(-1)
    for start in range(first, len(order), workers * LANES):
        size = lengths[order[start]]
        step = pitch(size)
        place(order, start, lengths, n * n, group.bases, group.lengths)
        _read(flat, n, size, group, multiroot, weights, shifts)
        if _leave_all(group, order, start, status):
            continue
        if mu.size > 0 or entropy.size > 0:
            copy(weights, adjoints)
        store(group.least, 0, eliminate(weights, size, step, LANES, multiroot, sums))
        if mu.size > 0 or entropy.size > 0:
            differentiate(weights, adjoints, size, step, LANES, multiroot, sums, gains, uses)
        if entropy.size > 0:
            store(uses, 0, _mean_score(flat, n, size, step, group, weights, shifts))
        for lane in range(min(LANES, len(order) - start)):
            b = order[start + lane]
            status[b] = _verdict(group, lane, size, sums)
            if log_z.size > 0:
                log_z[b] = _sum_of_logs(size, lane, sums) + _sum(size + 1, lane, shifts)
            if entropy.size > 0:
                entropy[b] = max(_sum_of_logs(size, lane, sums) - uses[lane], 0.0)
        if mu.size > 0:
            write(n, size, step * LANES, group.bases, group.lengths, weights, 0.0, 1.0, flat_mu)


@kernel
def products(worker, workers, scores, lengths, order, direction, multiroot, product, status):
    """The derivative of every sentence's marginals along a direction: J v, and v J, for J is symmetric."""
    n = scores.shape[-1]
    first = worker * LANES
    if first >= len(order):
        return
    largest = lengths[order[first]]
    group = Group(np.empty(LANES, np.int64), line(0), line(0), line(0), line(0), line(0))
    weights, adjoints = (chart(largest), chart(largest)), (chart(largest), chart(largest))
    sums, gains = (line(largest), line(largest)), (line(largest), line(largest))
    uses, shifts = (line(largest), line(largest)), line(largest)
    flat, flat_direction, flat_product = scores.reshape(-1), direction.reshape(-1), product.reshape(-1)
    for start in range(first, len(order), workers * LANES):
        size = lengths[order[start]]
        step = pitch(size)
        place(order, start, lengths, n * n, group.bases, group.lengths)
        _read(flat, n, size, group, multiroot, weights[0], shifts)
        if _leave_all(group, order, start, status):
            continue
        read_tangents(flat_direction, n, size, step, group.bases, group.lengths, multiroot, weights[0], weights[1])
        copy(weights[0], adjoints[0])
        copy(weights[1], adjoints[1])
        store(group.least, 0, eliminate(weights, size, step, LANES, multiroot, sums))
        differentiate(weights, adjoints, size, step, LANES, multiroot, sums, gains, uses)
        for lane in range(min(LANES, len(order) - start)):
            b = order[start + lane]
            status[b] = _verdict(group, lane, size, sums[0])
        write(n, size, step * LANES, group.bases, group.lengths, weights[1], -np.inf, np.inf, flat_product)


@inner
def pitch(size):
    """Vectors from one row of a chart to the next: odd, so that a column does not fall into few sets of the cache."""
    return size + 1 - size % 2


@inner
def chart(size):
    return aligned((size + 1) * pitch(size) * LANES, np.empty(0, np.float64))


@inner
def line(size):
    """A vector for each word and one for the root."""
    return aligned((size + 1) * LANES, np.empty(0, np.float64))


@inner
def _read(flat, n, size, group, multiroot, weights, shifts):
    spread, dropped = read_weights(
        flat, n, size, pitch(size), group.bases, group.lengths, multiroot, weights, shifts, group.codes
    )
    root = load(shifts, size * LANES)  # added to each root arc: where it is large it takes their last digits
    too_large = splat(shifts, _LARGE)
    spread = where_larger(root, too_large, root, where_larger(splat(shifts, -_LARGE), root, splat(shifts, 0.0) - root, spread))
    store(group.spread, 0, spread)
    store(group.dropped, 0, dropped)


@inner
def _leave_all(group, order, start, status):
    """Whether no sentence of the group can be OK, as their scores show; then their statuses are written."""
    count = min(LANES, len(order) - start)
    for lane in range(count):
        if group.codes[lane] == 0 and group.spread[lane] <= _FAR:
            return False
    for lane in range(count):
        status[order[start + lane]] = _code(group, lane)
    return True


@inner
def _code(group, lane):
    if group.codes[lane] == 0:
        return OUT_OF_RANGE
    return INFINITE if group.codes[lane] == 1 else NAN


@inner
def _verdict(group, lane, size, sums):
    """The lane's status; a lane that is not OK loses its words, so that nothing of it is written.

    Arcs whose weight is zero may be left out if the at most (size + 1)^size trees with one of them weigh next to nothing.
    """
    if group.codes[lane] == 0 and group.spread[lane] <= _FAR and group.least[lane] >= TINY:
        lost = group.dropped[lane]
        if lost == -np.inf or lost + size * np.log(size + 1.0) + _NEGLIGIBLE < _sum_of_logs(size, lane, sums):
            return OK
    group.lengths[lane] = 0.0
    return _code(group, lane)


@inner
def _mean_score(flat, n, size, pitch, group, marginals, shifts):
    """The mean of the shifted scores, <mu, s>, in each lane."""
    zero = splat(shifts, 0.0)
    long = load(group.lengths, 0)
    total = zero
    for h in range(size):
        for m in range(size):
            row = size if h == m else h
            x = gather(flat, group.bases, h * n + m) - load(shifts, m * LANES)
            x = x - load(shifts, size * LANES) if h == m else x
            p = where_larger(long, splat(shifts, max(h, m)), load(marginals, (row * pitch + m) * LANES), zero)
            total = total + where_larger(p, zero, p * x, zero)
    return total


@inner
def _sum(count, lane, line):
    total = 0.0
    for k in range(count):
        total += line[k * LANES + lane]
    return total


@inner
def _sum_of_logs(count, lane, line):
    total = 0.0
    for k in range(count):
        total += np.log(line[k * LANES + lane])
    return total


@inner
def write(n, size, row, bases, lengths, values, low, high, out):
    """Copy the lanes of a chart to packed matrices, between bounds; `out` is their batch, flat."""
    for h in range(size):
        for m in range(size):
            at = (size if h == m else h) * row + m * LANES
            for lane in range(LANES):
                if lengths[lane] > max(h, m):
                    out[bases[lane] + h * n + m] = min(max(values[at + lane], low), high)
