"""What the SparseMAP oracles of all trees share."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import lean


def columns(shape: tuple[int, ...]) -> np.ndarray:
    """The group of each arc: every word has one head."""
    return np.tile(np.arange(shape[1], dtype=np.int32), shape[0])


@lean
def is_tree(n, length, multiroot, parts, count):
    """Whether parts are the arcs of a tree: entry m being that of word m, head * n + m."""
    if count != length:
        return False
    roots = 0
    for m in range(length):
        if parts[m] % n != m or parts[m] // n >= length:
            return False
        roots += parts[m] // n == m
    if roots > 1 and not multiroot:
        return False
    for m in range(length):
        above, steps = m, 0
        while parts[above] // n != above:
            above = parts[above] // n
            steps += 1
            if steps > length:
                return False
    return True
