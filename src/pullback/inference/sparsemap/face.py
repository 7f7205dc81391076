"""Completing the active set: the Jacobian needs trees that span the whole face of the polytope that mu lies in.

Near the end of a search mu may be found, up to rounding, as a mean of fewer trees than that. Every tree of the face
ties with the active ones, <s - mu, z> being the same, so rounding hides which of them are missing. A direction that
is constant on the affine hull of the active trees, but not on the face, shows one: its best or its worst tree.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import lean
from pullback.inference.sparsemap.active_set import direction

_GOLDEN = 0.6180339887498949


@lean
def tilt(arcs, trees, lane, length, residual, attempt, size, tilted):
    """Write s - mu plus a small step along such a direction; arcs that mu does not use are forbidden.

    Args:
        arcs: of all lanes.
        trees: of all lanes; the inverse must be up to date.
        lane: whose.
        length: the sentence's.
        residual: s - mu, `[n, n]`.
        attempt: each pair of numbers has a direction of its own, the second of the pair its opposite.
        size: of the step.
        tilted: `[n, n]`, to write.
    """
    sign = size - 2.0 * size * (attempt % 2)
    for h in range(length):
        for m in range(length):
            tilted[h, m] = -np.inf
    for slot in range(arcs.counts[lane]):
        if arcs.mean[lane, slot] > 0.0:
            h, m = arcs.head_of[lane, slot], arcs.word_of[lane, slot]
            tilted[h, m] = _noise(slot, attempt // 2)
    for i in range(trees.sizes[lane]):
        trees.slopes[i] = 0.0
        for m in range(length):
            trees.slopes[i] += _noise(trees.slots[lane, i, m], attempt // 2)
        if i > 0:
            trees.slopes[i] -= trees.slopes[0]
    trees.slopes[0] = 0.0
    direction(trees.inverse, trees.sums, lane, 0, trees.sizes[lane], trees.slopes, trees.step)
    for i in range(trees.sizes[lane]):
        for m in range(length):
            slot = trees.slots[lane, i, m]
            tilted[arcs.head_of[lane, slot], m] -= trees.step[i]
    for h in range(length):
        for m in range(length):
            if tilted[h, m] > -np.inf:
                tilted[h, m] = residual[h, m] + sign * tilted[h, m]


@lean
def _noise(slot, attempt):
    """Numbers from -0.5 to 0.5 without a pattern."""
    return ((slot + 1) * (attempt + 1) * _GOLDEN) % 1.0 - 0.5
