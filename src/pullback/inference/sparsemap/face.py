"""Completing the active set: the Jacobian needs trees that span the whole face of the polytope that mu lies in.

Near the end of a search mu may be found, up to rounding, as a mean of fewer trees than that. Every tree of the face
ties with the active ones, <s - mu, z> being the same, so rounding hides which of them are missing. A direction that
is constant on the affine hull of the active trees, but not on the face, shows one: its best or its worst tree.

The ties are as exact as mu is: where a search has ended with a gap above rounding, trees of the face differ by as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.inference.compile import inner, lean
from pullback.inference.sparsemap.active_set import direction
from pullback.inference.sparsemap.search import extend, improvement, rebuild
from pullback.inference.sparsemap.state import full, grown, place

_GOLDEN = 0.6180339887498949


def completion(best_heads: Callable[..., Any]) -> Callable[..., Any]:
    """The function that completes active sets, compiled with an oracle: `best_heads(scores, length, multiroot, work, heads)`.

    It works on lane 0. Besides what the oracle takes it needs the sentence's scores `[n, n]`; residual, which is
    s - mu, `[n, n]`; scratch for that tilted; and b, the sentence, whose gap the result must have.
    """

    @inner
    def complete(arcs, trees, scores, length, residual, multiroot, work, heads, tilted, b, result):
        """Append trees of mu's face, with weight 0, until they span it; returns the trees."""
        if trees.changes[0] > 64 + 4 * trees.sizes[0]:
            rebuild(arcs, trees, 0, length)
        _, rounding = improvement(arcs, 0, scores, length, heads)
        slack = max(100 * rounding, 4 * result.gap[b])
        most = length * (length - 1) + 1  # that are affinely independent
        attempt, failed = 0, 0
        while failed < 2 and trees.sizes[0] < most:
            tilt(arcs, trees, 0, length, residual, attempt, 100 * slack, tilted)
            best_heads(tilted, length, multiroot, work, heads)
            result.calls[b] += 1
            if full(trees):
                trees = grown(trees)
            gap, _ = improvement(arcs, 0, scores, length, heads)
            found = gap > -slack
            if found:
                place(arcs, trees, 0, scores, length, heads, 0.0)
                found = extend(trees, 0, length)
            # after a tree was found the next direction begins with its first side
            attempt, failed = (attempt + 2 - attempt % 2, 0) if found else (attempt + 1, failed + 1)
        return trees

    return complete


@lean
def subtract_mean(arcs, residual):
    """Write s - mu of lane 0 where its trees have arcs; elsewhere mu is zero."""
    for slot in range(arcs.counts[0]):
        residual[arcs.head_of[0, slot], arcs.word_of[0, slot]] = arcs.scores[0, slot] - arcs.mean[0, slot]


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
