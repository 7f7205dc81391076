"""SparseMAP's oracle of segmentations, for one example."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.scratch import carve
from pullback.inference.sparsemap.oracle import Oracle, Paths


def best(scores, shape, sizes, options, work, parts):
    """The best segmentation: its segments from the first to the last."""
    widths, labels, length = shape[1], shape[2], sizes[0]
    value, at = carve(work, 0, length + 1, np.float64)
    choice, at = carve(work, at, length + 1, np.int32)
    value[0] = 0.0
    for end in range(1, length + 1):
        value[end], choice[end] = -np.inf, -1
        for start in range(max(end - widths, 0), end):
            first = (start * widths + end - start - 1) * labels
            for part in range(first, first + labels):
                x = value[start] + scores[part]
                if x > value[end]:
                    value[end], choice[end] = x, part
    if not value[length] > -np.inf:
        return -1
    count, end = 0, length
    while end > 0:
        parts[count] = choice[end]
        count += 1
        end = choice[end] // (widths * labels)
    for i in range(count // 2):
        parts[i], parts[count - 1 - i] = parts[count - 1 - i], parts[i]
    return count


def ends(shape, sizes, options, tails, heads):
    """The nodes are the positions between words: segments lead from their starts to their ends."""
    widths, labels, length = shape[1], shape[2], sizes[0]
    tails[:] = -1
    for start in range(length):
        for width in range(min(widths, length - start)):
            first = (start * widths + width) * labels
            for part in range(first, first + labels):
                tails[part], heads[part] = start, start + width + 1
    return length + 1


PATHS = Paths(ends, nodes=lambda shape: shape[0] + 1, reach=lambda shape: shape[1])
ORACLE = Oracle(best, work=lambda shape: 16 * (shape[0] + 1) + 128, paths=PATHS)
