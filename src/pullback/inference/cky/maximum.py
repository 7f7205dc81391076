"""The CKY algorithm on the CPU, examples in SIMD lanes; spans as in `kernels.py`."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import kernel, lean
from pullback.inference.hypergraph.packing import by_length, check, pack
from pullback.inference.hypergraph.vectors import load_wide, widen
from pullback.inference.lanes import aligned, lanes_in, larger, load, splat, store


@lean
def _climb(packed, side, n, lanes, values):
    """Write the value of the best tree over each span."""
    nothing = widen(splat(packed, -np.inf))
    for j in range(n):
        column = j * (j + 1) // 2 + j
        for i in range(j, -1, -1):
            most, left = nothing, i * (i + 1) // 2
            for k in range(i, j):
                x = load_wide(values, left * lanes, packed) + load_wide(values, (column - k - 1) * lanes, packed)
                most = larger(x, most)
                left += k + 2
            own = widen(load(packed, (i * side + j) * lanes))
            store(values, (column - i) * lanes, own if i == j else most + own)


@lean
def _follow(packed, side, length, lanes, lane, values, stack, z, base):
    """From the root down: the first split whose parts make the span's value."""
    stack[0], stack[1], height = 0, length - 1, 1
    while height > 0:
        height -= 1
        i, j = stack[2 * height], stack[2 * height + 1]
        z[base + i * side + j] = 1.0
        if i == j:
            continue
        column = j * (j + 1) // 2 + j
        k, left, own = i, i * (i + 1) // 2, np.float64(packed[(i * side + j) * lanes + lane])
        goal = values[(column - i) * lanes + lane]
        while k < j - 1 and values[left * lanes + lane] + values[(column - k - 1) * lanes + lane] + own != goal:
            left += k + 2
            k += 1
        stack[2 * height], stack[2 * height + 1], stack[2 * height + 2], stack[2 * height + 3] = k + 1, j, i, k
        height += 2


@kernel
def argmax(worker, workers, side, scores, lengths, z, best, codes):
    """Write the best trees over zeros, and their scores; the arguments are those of `kernels.sums`."""
    lanes, cells, spans = lanes_in(scores), side * side, side * (side + 1) // 2
    flat, flat_z = scores.reshape(-1), z.reshape(-1)
    packed, values = aligned((cells + 1) * lanes, scores), aligned(spans * lanes, np.empty(0))
    bases, found, stack = np.empty(lanes, np.int64), aligned(lanes, scores), np.empty(4 * side + 4, np.int64)
    order, sizes = by_length(lengths, side, lanes)
    for first in range(worker * lanes, len(order), workers * lanes):
        for lane in range(lanes):
            bases[lane] = order[first + lane] * cells
        n = sizes[first]
        pack(flat, bases, n * side, packed)
        check(packed, n * side, found)
        _climb(packed, side, n, lanes, values)
        for lane in range(min(lanes, len(scores) - first)):
            b, length = order[first + lane], sizes[first + lane]
            codes[b] = found[lane] > 0.0 or lengths[b] != length
            if length > 0:
                best[b] = values[(length * (length + 1) // 2 - 1) * lanes + lane]
                feasible = -np.inf < best[b] < np.inf
                codes[b] |= not feasible
                if feasible:
                    _follow(packed, side, length, lanes, lane, values, stack, flat_z, bases[lane])
