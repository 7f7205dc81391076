"""SparseMAP's oracle of monotone alignments, for one example."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.scratch import carve
from pullback.inference.sparsemap.oracle import Oracle


def best(scores, shape, sizes, options, work, parts):
    """The best path: its cells from the first to the last. `options[0]` is the index of the moves: any, forward."""
    m, rows, columns, down = shape[1], sizes[0], sizes[1], options[0] == 0
    if rows == 0 or columns == 0:
        return 0 if rows == columns else -1
    value, at = carve(work, 0, columns, np.float64)
    choice, at = carve(work, at, shape[0] * m, np.int8)
    for i in range(rows):
        corner = -np.inf  # the value above and to the left
        for j in range(columns):
            above = value[j] if i > 0 else -np.inf
            x, move = corner, 0
            if down and above > x:
                x, move = above, 1
            if j > 0 and value[j - 1] > x:
                x, move = value[j - 1], 2
            if i == 0 and j == 0:
                x = 0.0
            choice[i * m + j] = move
            value[j] = x + scores[i * m + j]
            corner = above
    if not value[columns - 1] > -np.inf:
        return -1
    i, j, count = rows - 1, columns - 1, 0
    while True:
        parts[count] = i * m + j
        count += 1
        if i == 0 and j == 0:
            break
        move = choice[i * m + j]
        i -= move != 2
        j -= move != 1
    for p in range(count // 2):
        parts[p], parts[count - 1 - p] = parts[count - 1 - p], parts[p]
    return count


ORACLE = Oracle(best, work=lambda shape: 8 * (shape[1] + shape[0] * shape[1]) + 128, choices=("any", "forward"))
