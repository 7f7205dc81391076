"""SparseMAP's oracle of binary trees: CKY for one sentence."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.scratch import carve
from pullback.inference.sparsemap.oracle import Oracle


def best(scores, shape, sizes, options, work, parts):
    """The best tree: its 2n - 1 spans in ascending order.

    `chart[i * n + j]` is the value of the span i..j, and so is `chart[j * n + i]`, transposed: both factors of a split are then
    read along a row.
    """
    n, length = shape[0], sizes[0]
    if length == 0:
        return 0
    chart, at = carve(work, 0, n * n, np.float64)
    split, at = carve(work, at, n * n, np.int32)
    stack, at = carve(work, at, 2 * n + 2, np.int32)
    for j in range(length):
        chart[j * n + j] = scores[j * n + j]
        for i in range(j - 1, -1, -1):
            value, where = -np.inf, i
            for k in range(i, j):
                x = chart[i * n + k] + chart[j * n + k + 1]
                if x > value:
                    value, where = x, k
            split[i * n + j] = where
            chart[i * n + j] = chart[j * n + i] = value + scores[i * n + j]
    if not chart[length - 1] > -np.inf:
        return -1
    stack[0], height, count = length - 1, 1, 0
    while height > 0:
        height -= 1
        span = stack[height]
        parts[count] = span
        count += 1
        i, j = span // n, span % n
        if i < j:
            stack[height] = i * n + split[span]
            stack[height + 1] = (split[span] + 1) * n + j
            height += 2
    parts[:count].sort()
    return count


ORACLE = Oracle(best, work=lambda shape: 16 * (shape[0] * shape[0] + shape[0] + 1) + 192)
