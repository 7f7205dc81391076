"""SparseMAP's oracle of tag sequences: Viterbi's algorithm for one example."""

from __future__ import annotations

import numpy as np

from pullback.inference.scratch import carve
from pullback.inference.sparsemap.oracle import Oracle


def best(scores, shape, sizes, options, work, parts):
    """The best sequence: one part for each position."""
    tags, length = shape[1], sizes[0]
    if length == 0:
        return 0
    value, at = carve(work, 0, 2 * tags, np.float64)
    choice, at = carve(work, at, shape[0] * tags, np.int32)
    now, then = 0, tags
    for b in range(tags):
        value[b] = scores[b]
    for i in range(1, length):
        row = i * tags * tags
        for b in range(tags):
            value[then + b] = -np.inf
            choice[i * tags + b] = 0
        for a in range(tags):
            base = value[now + a]
            for b in range(tags):
                x = base + scores[row + a * tags + b]
                if x > value[then + b]:
                    value[then + b] = x
                    choice[i * tags + b] = a
        now, then = then, now
    tag = 0
    for b in range(tags):
        if value[now + b] > value[now + tag]:
            tag = b
    if not value[now + tag] > -np.inf:
        return -1
    for i in range(length - 1, -1, -1):
        before = choice[i * tags + tag] if i > 0 else 0
        parts[i] = (i * tags + before) * tags + tag
        tag = before
    return length


def _positions(shape: tuple[int, ...]) -> np.ndarray:
    n, tags, _ = shape
    return np.repeat(np.arange(n, dtype=np.int32), tags * tags)


ORACLE = Oracle(best, work=lambda shape: 8 * (2 * shape[1] + shape[0] * shape[1]) + 128, groups=_positions)
