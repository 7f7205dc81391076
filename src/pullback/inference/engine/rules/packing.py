"""Putting examples side by side into lanes, and the layout of their charts.

A chart is a flat array of vectors, one for each pair of words (row, column); `pitch` is the number of vectors from one
row to the next, odd so that a column does not fall into few sets of the cache.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba import packing as blocks
from pullback.inference._numba.compile import called
from pullback.inference._numba.lanes import BYTES, bad_score, larger, load, splat, store, where_larger


@called
def pitch_of(n):
    """Vectors from one row of a chart of n words to the next: room for n + 1."""
    return n + 1 + n % 2


@called
def lanes_of(array):
    """Lanes in a vector of the array's dtype."""
    return BYTES // array.itemsize


@called
def clear_all(array, count):
    """Zeros in the first numbers of an array."""
    for p in range(count):
        array[p] = 0.0


@called
def clear(out, example, first):
    """Zeros in the rows of an example of `[B, n, n]`, from one on."""
    cells, side = out.shape[1] * out.shape[2], out.shape[2]
    blocks.clear(out.reshape(-1), example * cells + first * side, (example + 1) * cells)


@called
def bases_of(order, first, cells, bases):
    """Write where the examples order[first], ... begin; lanes without an example repeat the first."""
    for lane in range(len(bases)):
        bases[lane] = order[first + lane if first + lane < len(order) else first] * cells


@called
def pack(scores, order, first, lengths, upper, packed, lane_lengths, bases, codes):
    """Write the scores of examples order[first], order[first + 1], ... into lanes, row by row; padding as -inf.

    `order` has the longest examples first; the first one's length is the group's size, which is returned. What is no part is 0:
    columns beyond the size and, with `upper`, all below the diagonal. `lane_lengths` and `codes` get the length of each lane, 0
    without an example, and the code of the worst score: 1 for +inf, 2 for NaN. `bases` is scratch.
    """
    lanes, side = lanes_of(packed), scores.shape[-1]
    bases_of(order, first, side * side, bases)
    for lane in range(lanes):
        lane_lengths[lane] = lengths[order[first + lane]] if first + lane < len(order) else 0
    size = lengths[order[first]]
    blocks.pack(scores.reshape(-1), bases, size * side, packed)
    long, forbidden, zero = load(lane_lengths, 0), splat(packed, -np.inf), splat(packed, 0.0)
    worst, at = zero, 0
    for h in range(size):
        for m in range(side):
            if m >= size or (upper and m < h):
                store(packed, at, zero)
            else:
                x = where_larger(long, splat(packed, max(h, m)), load(packed, at), forbidden)
                worst = larger(bad_score(x), worst)
                store(packed, at, x)
            at += lanes
    store(codes, 0, worst)
    return size


@called
def scale(chart, n, side, lane_lengths, factor, line):
    """Multiply a chart by a factor per lane; padding becomes 0, whatever it held. `line` is scratch."""
    lanes = lanes_of(chart)
    for lane in range(lanes):
        line[lane] = factor[lane]
    by, long, zero = load(line, 0), load(lane_lengths, 0), splat(chart, 0.0)
    for h in range(n):
        for m in range(side):
            at = (h * side + m) * lanes
            store(chart, at, where_larger(long, splat(chart, max(h, m)), load(chart, at) * by, zero))


@called
def unpack(chart, group, order, size, out, bases):
    """Write each lane of a chart to its example, and zeros to the rows beyond the size."""
    side, filled = out.shape[-1], min(lanes_of(chart), len(order) - group)
    bases_of(order, group, side * side, bases)
    blocks.unpack(chart, bases, filled, size * side, out.reshape(-1))
    for lane in range(filled):
        clear(out, order[group + lane], size)
