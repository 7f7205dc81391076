"""Viterbi's algorithm on the CPU, one example at a time: the tags of a position are the lanes of SIMD vectors."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import kernel, lean
from pullback.inference.hypergraph.vectors import splat_wide, widen
from pullback.inference.lanes import BYTES, aligned, larger, splat, store
from pullback.inference.rows import any_nonzero, count_nan, load_first


@lean
def _climb(scores, begin, length, tags, values, room):
    """Write the value of the best sequence that ends with each tag at each position; returns whether NaN was read."""
    lanes = BYTES // scores.itemsize
    least, nan = splat(scores, -np.inf), splat(scores, 0.0)
    for b in range(tags):
        values[b] = np.float64(scores[begin + b])
        nan = count_nan(splat(scores, scores[begin + b]), nan)
    for i in range(1, length):
        now, then, at = (i - 1) * room, i * room, begin + i * tags * tags
        for k in range(0, tags, lanes):
            width = min(lanes, tags - k)
            most = splat_wide(-np.inf, scores)
            for a in range(tags):
                x = load_first(scores, at + a * tags + k, width, least)
                nan = count_nan(x, nan)
                most = larger(splat_wide(values[now + a], scores) + widen(x), most)
            store(values, then + k, most)
    return any_nonzero(nan)


@lean
def _follow(scores, begin, length, tags, values, room, tag, z):
    """From the last tag back: the first tag whose value and score make the next one's value."""
    for i in range(length - 1, -1, -1):
        before, at, goal = 0, begin + i * tags * tags + tag, values[i * room + tag]
        while i > 0 and before < tags - 1 and values[(i - 1) * room + before] + scores[at + before * tags] != goal:
            before += 1
        z[at + before * tags] = 1.0
        tag = before


@kernel
def argmax(worker, workers, tags, scores, lengths, z, best, codes):
    """Write the best structures over zeros, and their scores. Ties: from the last position back, the first tag."""
    cells, lanes = tags * tags, BYTES // scores.itemsize
    n, room = scores.shape[1] // cells, -(-tags // lanes) * lanes
    flat, flat_z, values = scores.reshape(-1), z.reshape(-1), aligned(n * room, np.empty(0))
    for b in range(worker, len(scores), workers):
        length, begin = lengths[b], b * n * cells
        if length == 0:
            continue
        codes[b] = _climb(flat, begin, length, tags, values, room)
        last, tag = (length - 1) * room, 0
        for c in range(1, tags):
            if values[last + c] > values[last + tag]:
                tag = c
        best[b] = values[last + tag]
        codes[b] |= not -np.inf < best[b] < np.inf
        if not codes[b]:
            _follow(flat, begin, length, tags, values, room, tag, flat_z)
