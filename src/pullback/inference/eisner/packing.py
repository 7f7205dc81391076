"""Putting sentences side by side into lanes, and the layout of their charts.

A chart is a flat array of vectors, one for each pair of words (row, column); `pitch` is the number of vectors from one
row to the next, odd so that a column does not fall into few sets of the cache.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import called
from pullback.inference.lanes import BYTES, gather, larger, load, splat, store, trouble, where_larger


@called
def pitch_of(n):
    """Vectors from one row of a chart of n words to the next."""
    return n + 1 - n % 2


@called
def lanes_of(array):
    """Lanes in a vector of the array's dtype."""
    return BYTES // array.itemsize


@called
def clear(out, sentence, h, first):
    """Zeros in a row of `[B, n, n]`, from a column on."""
    for m in range(np.uint64(first), np.uint64(out.shape[-1])):  # unsigned: an index that cannot be negative is faster
        out[sentence, h, m] = 0.0


@called
def pack(scores, n, order, first, lengths, packed, lane_lengths, bases, codes):
    """Write the scores of sentences order[first], order[first + 1], ... into lanes, padding as -inf.

    `order` has the longest sentences first; the first one's length is the group's size, which is returned. `packed` is the
    chart to write; `lane_lengths` and `codes` get the length of each lane, 0 without a sentence, and the trouble found in
    it: 1 for +inf, 2 for NaN. `bases` is scratch, one int64 per lane.
    """
    lanes = lanes_of(packed)
    for lane in range(lanes):
        inside = first + lane < len(order)
        sentence = order[first + lane] if inside else order[first]
        bases[lane] = sentence * n * n
        lane_lengths[lane] = lengths[sentence] if inside else 0
    size = lengths[order[first]]
    pitch = pitch_of(size)
    long = load(lane_lengths, 0)
    forbidden = splat(packed, -np.inf)
    worst = splat(packed, 0.0)
    for h in range(size):
        for m in range(size):
            x = gather(scores, bases, h * n + m)
            x = where_larger(long, splat(packed, max(h, m)), x, forbidden)
            worst = larger(trouble(x), worst)
            store(packed, (h * pitch + m) * lanes, x)
    store(codes, 0, worst)
    return size
