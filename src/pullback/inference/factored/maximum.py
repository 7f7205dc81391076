"""Viterbi's algorithm for tag sequences with transitions apart, on the CPU: the steps are those of `chain/maximum.py`."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel
from pullback.inference._numba.lanes import aligned, lanes_in, splat, splat_half
from pullback.inference._numba.packing import clear
from pullback.inference.chain.maximum import best_tag, first_before, step
from pullback.inference.factored.kernels import are_bad, emit, first_tags, worst_of


@kernel
def argmax(worker, workers, tags, scores, lengths, z, best, codes):
    """Write the best structures, and their scores. Ties: from the last position back, the first tag."""
    lanes, rows = lanes_in(scores), scores.shape[1]
    n, room, wide = rows - 2 - tags, -(-tags // lanes) * lanes, np.empty(0)
    flat, flat_z, nan, half_nan = scores.reshape(-1), z.reshape(-1), splat(scores, 0.0), splat_half(scores, 0.0)
    values, joined = aligned((n + 1) * room, wide), aligned((n + 1) * room, wide)  # with and without the position's emission
    for b in range(worker, len(scores), workers):
        length, begin = min(max(lengths[b], 0), n), b * rows * tags
        end, base = begin + (n + 1) * tags, begin + (n + 2) * tags
        clear(flat_z, begin, begin + rows * tags)
        codes[b] = lengths[b] != length
        if length > 0:
            codes[b] |= are_bad(flat, begin, n, length, tags)
        if length > 1:
            codes[b] |= worst_of(flat, base, begin + rows * tags) == np.inf
        if length == 0 or codes[b]:
            continue
        first_tags(flat, begin + n * tags, tags, joined, 0)
        emit(flat, begin, tags, joined, 0, end if length == 1 else -1, values, 0)
        for i in range(1, length):
            step(flat, base, tags, values, (i - 1) * room, joined, i * room, nan, half_nan)
            emit(flat, begin + i * tags, tags, joined, i * room, end if i == length - 1 else -1, values, i * room)
        tag = best_tag(tags, values, (length - 1) * room)
        best[b] = values[(length - 1) * room + tag]
        codes[b] |= best[b] == -np.inf
        if not codes[b]:
            for i in range(length - 1, -1, -1):
                flat_z[begin + i * tags + tag] = 1.0
                if i > 0:
                    tag = first_before(flat, base + tag, tags, values, (i - 1) * room, joined[i * room + tag])
