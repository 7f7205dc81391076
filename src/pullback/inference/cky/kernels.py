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

from pullback.inference.cky.slopes import product
from pullback.inference.compile import kernel, lean
from pullback.inference.hypergraph.packing import by_length, clear, pack, unpack
from pullback.inference.hypergraph.vectors import select_positive
from pullback.inference.lanes import aligned, exp, fma, lanes_in, larger, load, splat, store, where_larger
from pullback.inference.rows import count_nan

LOG_PARTITION, MARGINALS, PRODUCT = range(3)


@lean
def _weights(packed, side, n, lengths, first, line, shifts, weight):
    """Write W of all spans, 0 for those beyond an example's length, and g of each lane, NaN where a score is NaN."""
    lanes = lanes_in(line)
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
    """Write m of all spans, two columns at a time; returns the largest of each lane."""
    zero = splat(weight, 0.0)
    peak = zero
    for j in range(0, n, 2):
        column, other = (j * (j + 1) // 2 + j) * lanes, ((j + 1) * (j + 2) // 2 + j + 1) * lanes
        last = other - (j + 1) * lanes
        if j + 1 < n:
            m = load(weight, last)
            peak = larger(m, peak)
            store(inside, last, m)
        for i in range(j, -1, -1):
            left, one, two = i * (i + 1) // 2 * lanes, zero, zero
            for k in range(i, j):
                m = load(inside, left)
                one = fma(m, load(inside, column - (k + 1) * lanes), one)
                two = fma(m, load(inside, other - (k + 1) * lanes), two)
                left += (k + 2) * lanes
            w = load(weight, column - i * lanes)
            m = w if i == j else w * one
            peak = larger(m, peak)
            store(inside, column - i * lanes, m)
            if j + 1 < n:
                m = load(weight, other - i * lanes) * fma(m, load(inside, last), two)
                peak = larger(m, peak)
                store(inside, other - i * lanes, m)
    return peak


@lean
def _outside(n, lanes, weight, inside, outside, parent):
    """Write the outside values of all spans over Z, from those of whole sentences, and their products with W.

    A span is a left child of longer spans that begin with it, and a right child of those that end with it. Two spans that
    end together are done at a time. Returns the largest value of each lane.
    """
    peak = splat(weight, 0.0)
    for j in range(n - 1, -1, -1):
        column = (j * (j + 1) // 2 + j) * lanes
        for i in range(0, j + 1, 2):
            u, v = column - i * lanes, max(column - (i + 1) * lanes, 0)
            one, two = load(outside, u), load(outside, v)
            for k in range(j + 1, n):
                at = (k * (k + 1) // 2 + k) * lanes
                m = load(inside, at - (j + 1) * lanes)
                one = fma(load(parent, at - i * lanes), m, one)
                two = fma(load(parent, at - (i + 1) * lanes), m, two)
            before, here = ((i - 1) * i // 2 + i - 1) * lanes, (i * (i + 1) // 2 + i) * lanes
            for h in range(0, i * lanes, lanes):
                o = load(parent, column - h)
                one = fma(o, load(inside, before - h), one)
                two = fma(o, load(inside, here - h), two)
            peak = larger(one, peak)
            store(outside, u, one)
            o = one * load(weight, u)
            store(parent, u, o)
            if i < j:
                two = fma(o, load(inside, here - i * lanes), two)
                peak = larger(two, peak)
                store(outside, v, two)
                store(parent, v, two * load(weight, v))
    return peak


@lean
def _totals(lengths, first, line, shifts, limit, inside, outside, keep, order, filled, log_z, sound):
    """Write log Z of a group's examples, whether it is in range, and the outside values of whole sentences, 1 / Z."""
    lanes = lanes_in(line)
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
def _place(side, n, lanes, inside, outside, moved, slope, parts):
    """Put the marginals, or their derivatives, where the scores were."""
    for j in range(n):
        v, place = j * (j + 1) // 2 + j, j
        for i in range(j + 1):
            at = (v - i) * lanes
            store(parts, place * lanes, load(moved, at) if slope else load(inside, at) * load(outside, at))
            place += side


@kernel
def sums(worker, workers, side, scores, lengths, what, direction, out, kept, log_z, sound):
    """Write log-partitions and, by `what`, marginals, or the product of their Jacobian with a direction.

    `scores`, `direction` and `out` are `[B, side, side]`. `sound[b]` says whether an example's results are right. If there is
    room in `kept`, marginals leave their charts there, and products take them from there.
    """
    lanes, cells, spans = lanes_in(scores), side * side, side * (side + 1) // 2
    keep, slope = what != LOG_PARTITION, what == PRODUCT
    flat, flat_out, flat_direction = scores.reshape(-1), out.reshape(-1), direction.reshape(-1)
    packed, line = aligned((cells + 1) * lanes, scores), aligned(lanes, scores)
    parts, longest = aligned(cells * lanes * keep, scores), side  # what is not written is zero for all groups
    clear(parts, 0, len(parts))
    size, given = spans * lanes, len(kept) > 0
    weight, inside = aligned(size, scores), aligned(size, scores)
    outside, parent = aligned(size * keep, scores), aligned(size * keep, scores)
    rise, moved, along = aligned(size * slope, scores), aligned(size * slope, scores), aligned(size * slope, scores)
    bases, shifts = np.empty(lanes, np.int64), np.empty(lanes)
    limit = 1e28 if lanes_in(scores) == 16 else 1e280
    order, sizes = by_length(lengths, side, lanes)
    for first in range(worker * lanes, len(order), workers * lanes):
        n, filled = sizes[first], min(lanes, len(scores) - first)
        for lane in range(lanes):
            bases[lane] = order[first + lane] * cells
        if given:
            at = 4 * spans * first
            weight, inside = kept[at : at + size], kept[at + size : at + 2 * size]
            outside, parent = kept[at + 2 * size : at + 3 * size], kept[at + 3 * size : at + 4 * size]
        if not (given and slope):
            pack(flat, bases, n * side, packed)
            _weights(packed, side, n, sizes, first, line, shifts, weight)
            store(line, 0, _inside(n, lanes, weight, inside))
            clear(outside, 0, keep * n * (n + 1) // 2 * lanes)
            _totals(sizes, first, line, shifts, limit, inside, outside, keep, order, filled, log_z, sound)
            if keep:
                store(line, 0, _outside(n, lanes, weight, inside, outside, parent))
            for lane in range(filled):
                b = order[first + lane]
                sound[b] &= line[lane] <= limit and lengths[b] == sizes[first + lane]
        if keep:
            if slope:
                pack(flat_direction, bases, n * side, packed)
                product(side, n, sizes, first, line, weight, inside, outside, parent, packed, along, rise, moved)
            if n < longest:
                clear(parts, 0, len(parts))
            _place(side, n, lanes, inside, outside, moved, slope, parts)
            longest = n
            unpack(parts, bases, filled, cells, flat_out)
