"""SparseMAP's oracle of tag sequences: Viterbi's algorithm for one example."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.scratch import carve
from pullback.inference.sparsemap.oracle import Oracle, Paths


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


def ends(shape, sizes, options, tails, heads):
    """The nodes are the tags of each position but the last, between two that stand for the start and the end."""
    tags, length = shape[1], sizes[0]
    last = (length - 1) * tags + 1
    tails[:] = -1
    for i in range(length):
        for a in range(tags if i > 0 else min(tags, 1)):
            for b in range(tags):
                part = (i * tags + a) * tags + b
                tails[part] = 1 + (i - 1) * tags + a if i > 0 else 0
                heads[part] = 1 + i * tags + b if i < length - 1 else last
    return last + 1 if length > 0 else 1


PATHS = Paths(ends, nodes=lambda shape: max(shape[0] - 1, 0) * shape[1] + 2, reach=lambda shape: 2 * shape[1])
ORACLE = Oracle(best, lambda shape: 8 * (2 * shape[1] + shape[0] * shape[1]) + 128, groups=_positions, paths=PATHS)
