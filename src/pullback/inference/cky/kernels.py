"""Sums over binary trees without logarithms: weights in the range of floating point, examples in SIMD lanes.

Every tree over w words has 2 w - 1 spans, so that a number g may be taken off every score of an example:

    m(i, i) = W(i, i),    m(i, j) = W(i, j) sum_k m(i, k) m(k + 1, j),    W(i, j) = exp(s(i, j) - g),
    log Z = log m(0, n - 1) + (2 n - 1) g.

There are about 4^w trees, two per span: with exp(g) twice the mean of exp(s), the value of a typical span is near one. What
is lost to underflow is below the smallest number, and its share of a marginal is that times an outside value over Z: an example
whose inside or outside values exceed `limit`, or whose scores are not numbers, is marked for a second try in logarithms.

The span of words i..j is at j (j + 1) / 2 + j - i: those that end at j follow each other.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference.compile import kernel, lean
from pullback.inference.hypergraph.sweeps import pack
from pullback.inference.hypergraph.vectors import select_positive, unpack_block
from pullback.inference.lanes import BYTES, aligned, exp, fma, larger, load, splat, store, where_larger
from pullback.inference.rows import count_nan

LOG_PARTITION, MARGINALS, PRODUCT = range(3)


@lean
def _weights(packed, side, n, lengths, first, line, shifts, weight):
    """Write W of all spans, 0 for those beyond an example's length, and g of each lane, NaN where a score is NaN."""
    lanes = len(line)
    none, zero = splat(packed, -np.inf), splat(packed, 0.0)
    top, total, nan = none, zero, zero
    for j in range(n):
        for lane in range(lanes):
            line[lane] = 1.0 if lengths[first + lane] > j else 0.0
        real = load(line, 0)
        for i in range(j, -1, -1):
            x = select_positive(real, load(packed, (i * side + j) * lanes), none)
            top, nan = larger(x, top), count_nan(x, nan)
            store(weight, (j * (j + 1) // 2 + j - i) * lanes, x)
    spans = n * (n + 1) // 2
    top = where_larger(top, none, top, zero)
    for v in range(spans):
        x = exp(load(weight, v * lanes) - top)
        total = total + x
        store(weight, v * lanes, x)
    store(line, 0, total)
    for lane in range(lanes):
        own = lengths[first + lane] * (lengths[first + lane] + 1) // 2
        some = line[lane] > 0.0 and own > 0
        shifts[lane] = math.log(2.0 * line[lane] / own) if some else 0.0
        line[lane] = own / (2.0 * line[lane]) if some else 0.0
    factor = load(line, 0)
    for v in range(spans):
        store(weight, v * lanes, load(weight, v * lanes) * factor)
    store(line, 0, top)
    for lane in range(lanes):
        shifts[lane] += line[lane]
    store(line, 0, nan)
    for lane in range(lanes):
        shifts[lane] = np.nan if line[lane] > 0.0 else shifts[lane]


@lean
def _inside(n, lanes, weight, inside):
    """Write m of all spans; returns the largest of each lane."""
    zero = splat(weight, 0.0)
    peak = zero
    for j in range(n):
        column = j * (j + 1) // 2 + j
        for i in range(j, -1, -1):
            even, odd = zero, zero
            for k in range(i, j - 1, 2):
                left = k * (k + 1) // 2 + k - i
                even = even + load(inside, left * lanes) * load(inside, (column - k - 1) * lanes)
                odd = odd + load(inside, (left + k + 2) * lanes) * load(inside, (column - k - 2) * lanes)
            if (j - i) % 2 == 1:
                left = (j - 1) * j // 2 + j - 1 - i
                even = even + load(inside, left * lanes) * load(inside, (column - j) * lanes)
            w = load(weight, (column - i) * lanes)
            m = w if i == j else w * (even + odd)
            peak = larger(m, peak)
            store(inside, (column - i) * lanes, m)
    return peak


@lean
def _outside(n, lanes, weight, inside, outside):
    """Write the outside values of all spans over Z, from those of whole sentences; returns the largest of each lane."""
    peak = splat(weight, 0.0)
    for j in range(n - 1, -1, -1):
        column = j * (j + 1) // 2 + j
        for i in range(j + 1):
            o = load(outside, (column - i) * lanes)
            peak = larger(o, peak)
            o = o * load(weight, (column - i) * lanes)
            left = i * (i + 1) // 2
            for k in range(i, j):
                a, b = left * lanes, (column - k - 1) * lanes
                store(outside, a, load(outside, a) + o * load(inside, b))
                store(outside, b, load(outside, b) + o * load(inside, a))
                left += k + 2
    return peak


@lean
def _centre(side, n, lengths, first, line, weight, inside, outside, direction, along):
    """Write the direction of each span less the mean over a tree's spans, which changes no result but keeps digits."""
    lanes, zero = len(line), splat(weight, 0.0)
    mean = zero
    for j in range(n):
        for i in range(j + 1):
            v = (j * (j + 1) // 2 + j - i) * lanes
            x = select_positive(load(weight, v), load(direction, (i * side + j) * lanes), zero)  # what is no part may be NaN
            mean = fma(load(inside, v) * load(outside, v), x, mean)
            store(along, v, x)
    store(line, 0, mean)
    for lane in range(lanes):
        line[lane] /= max(2 * lengths[first + lane] - 1, 1)
    mean = load(line, 0)
    for v in range(n * (n + 1) // 2):
        store(along, v * lanes, load(along, v * lanes) - mean)


@lean
def _inside_slope(n, lanes, weight, inside, along, rise):
    """Write the derivatives of m along the direction."""
    zero = splat(weight, 0.0)
    for j in range(n):
        column = j * (j + 1) // 2 + j
        for i in range(j, -1, -1):
            v, left = (column - i) * lanes, i * (i + 1) // 2 * lanes
            one, other = zero, zero
            for k in range(i, j):
                b = (column - k - 1) * lanes
                one = fma(load(rise, left), load(inside, b), one)
                other = fma(load(inside, left), load(rise, b), other)
                left += (k + 2) * lanes
            store(rise, v, fma(load(inside, v), load(along, v), load(weight, v) * (one + other)))


@lean
def _outside_slope(n, lanes, weight, inside, outside, along, rise, moved):
    """Write the derivatives of the outside values, from those of whole sentences: dual numbers of `_outside`."""
    for j in range(n - 1, -1, -1):
        column = j * (j + 1) // 2 + j
        for i in range(j + 1):
            v, left = (column - i) * lanes, i * (i + 1) // 2 * lanes
            w = load(weight, v)
            o = load(outside, v) * w
            x = fma(load(moved, v), w, o * load(along, v))
            for k in range(i, j):
                b = (column - k - 1) * lanes
                store(moved, left, fma(x, load(inside, b), fma(o, load(rise, b), load(moved, left))))
                store(moved, b, fma(x, load(inside, left), fma(o, load(rise, left), load(moved, b))))
                left += (k + 2) * lanes


@lean
def _product(side, n, lengths, first, line, weight, inside, outside, direction, along, rise, moved):
    """Write the derivatives of the marginals along the direction to `moved`."""
    lanes, spans = len(line), n * (n + 1) // 2
    _centre(side, n, lengths, first, line, weight, inside, outside, direction, along)
    _inside_slope(n, lanes, weight, inside, along, rise)
    _clear(moved, spans * lanes)
    for lane in range(lanes):
        last = (lengths[first + lane] * (lengths[first + lane] + 1) // 2 - 1) * lanes + lane
        if last >= 0:
            moved[last] = -rise[last] * outside[last] * outside[last]
    _outside_slope(n, lanes, weight, inside, outside, along, rise, moved)
    for v in range(0, spans * lanes, lanes):
        store(moved, v, fma(load(rise, v), load(outside, v), load(inside, v) * load(moved, v)))


@lean
def _totals(lengths, first, line, shifts, limit, inside, outside, keep, order, filled, log_z, sound):
    """Write log Z of a group's examples, whether it is in range, and the outside values of whole sentences, 1 / Z."""
    lanes = len(line)
    for lane in range(lanes):
        length = lengths[first + lane]
        last = (length * (length + 1) // 2 - 1) * lanes + lane
        z = inside[last] if length > 0 else 1.0
        fine = line[lane] <= limit and z >= 1.0 / limit and shifts[lane] == shifts[lane]
        if lane < filled:
            b = order[first + lane]
            sound[b] = fine
            log_z[b] = math.log(z) + (2 * length - 1) * shifts[lane] if fine and length > 0 else 0.0
        if keep and fine and length > 0:
            outside[last] = 1.0 / z


@lean
def _write(packed, bases, filled, count, out):
    """Write lanes to their examples."""
    lanes = len(bases)
    whole = count - count % lanes if filled == lanes else 0
    for at in range(0, whole, lanes):
        unpack_block(packed, at * lanes, out, bases, at)
    for at in range(whole, count):
        for lane in range(filled):
            out[bases[lane] + at] = packed[at * lanes + lane]


@lean
def _clear(array, count):
    for p in range(count):
        array[p] = 0.0


@lean
def _place(side, n, lanes, inside, outside, moved, product, packed):
    """Put the marginals, or their derivatives, where the scores were; zero elsewhere."""
    _clear(packed, side * side * lanes)
    for j in range(n):
        for i in range(j + 1):
            v = (j * (j + 1) // 2 + j - i) * lanes
            store(packed, (i * side + j) * lanes, load(moved, v) if product else load(inside, v) * load(outside, v))


@kernel
def sums(worker, workers, side, scores, lengths, order, what, direction, out, log_z, sound):
    """Write log-partitions and, by `what`, marginals, or the product of their Jacobian with a direction.

    `scores`, `direction` and `out` are `[B, side * side]`; `order` lists the examples by falling length, filled up to whole
    groups, and `lengths` has their lengths. `sound[b]` says whether an example's results are right.
    """
    lanes, cells, spans = BYTES // scores.itemsize, side * side, side * (side + 1) // 2
    keep, product = what != LOG_PARTITION, what == PRODUCT
    flat, flat_out, flat_direction = scores.reshape(-1), out.reshape(-1), direction.reshape(-1)
    packed, other = aligned((cells + 1) * lanes, scores), aligned((cells + 1) * lanes * product, scores)
    weight, inside = aligned(spans * lanes, scores), aligned(spans * lanes, scores)
    outside, line = aligned(spans * lanes * keep, scores), aligned(lanes, scores)
    rise, moved = aligned(spans * lanes * product, scores), aligned(spans * lanes * product, scores)
    along = aligned(spans * lanes * product, scores)
    bases, shifts = np.empty(lanes, np.int64), np.empty(lanes)
    limit = 1e28 if scores.itemsize == 4 else 1e280
    for first in range(worker * lanes, len(order), workers * lanes):
        n, filled = lengths[first], min(lanes, len(scores) - first)
        for lane in range(lanes):
            bases[lane] = order[first + lane] * cells
        pack(flat, bases, n * side, packed, line)
        _weights(packed, side, n, lengths, first, line, shifts, weight)
        store(line, 0, _inside(n, lanes, weight, inside))
        _clear(outside, keep * n * (n + 1) // 2 * lanes)
        _totals(lengths, first, line, shifts, limit, inside, outside, keep, order, filled, log_z, sound)
        if keep:
            store(line, 0, _outside(n, lanes, weight, inside, outside))
            for lane in range(filled):
                sound[order[first + lane]] &= line[lane] <= limit
            if product:
                pack(flat_direction, bases, n * side, other, line)
                _product(side, n, lengths, first, line, weight, inside, outside, other, along, rise, moved)
            _place(side, n, lanes, inside, outside, moved, product, packed)
            _write(packed, bases, filled, cells, flat_out)
