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
from pullback.inference.sparsemap.oracle import Oracle
from pullback.inference.sparsemap.search import extend, improvement, rebuild
from pullback.inference.sparsemap.state import place, roomy

_GOLDEN = 0.6180339887498949


def completion(oracle: Oracle) -> Callable[..., Any]:
    """The function that completes active sets, compiled with an oracle."""
    best_heads, place_of = oracle.best_heads, oracle.place_of

    @inner
    @oracle.own
    def complete(arcs, trees, scores, length, residual, multiroot, work, heads, tilted, b, result):
        """Append trees of mu's face, with weight 0, until they span it; returns the trees.

        Args:
            arcs: the sentence's, after a search that has converged.
            trees: the active ones.
            scores: the sentence's, `[n, n]`.
            length: the sentence's.
            residual: s - mu, as the oracle takes it.
            multiroot: whether several words may attach to the root.
            work: scratch of the oracle.
            heads: the tree that the oracle found last, and scratch.
            tilted: scratch, as large as the residual.
            b: the sentence.
            result: its gap; its calls are counted on.
        """
        if trees.changes[0] > 64 + 4 * trees.size[0]:
            rebuild(arcs, trees, length)
        _, rounding = improvement(arcs, scores, length, heads)
        slack = max(100 * rounding, 4 * result.gap[b])
        most = length * (length - 1) + 1  # that are affinely independent
        attempt, failed = 0, 0
        while failed < 2 and trees.size[0] < most:
            tilt(arcs, trees, length, residual, attempt, 100 * slack, tilted)
            best_heads(tilted, length, multiroot, work, heads)
            result.calls[b] += 1
            trees = roomy(trees)
            gap, _ = improvement(arcs, scores, length, heads)
            found = gap > -slack
            if found:
                place(arcs, trees, scores, length, heads, 0.0)
                found = extend(trees, length)
            # after a tree was found the next direction begins with its first side
            attempt, failed = (attempt + 2 - attempt % 2, 0) if found else (attempt + 1, failed + 1)
        return trees

    @lean
    @oracle.own
    def tilt(arcs, trees, length, residual, attempt, size, tilted):
        """Write s - mu plus a small step along such a direction; arcs that mu does not use are forbidden.

        Each pair of attempts has a direction of its own, the second of the pair its opposite.
        """
        sign = size - 2.0 * size * (attempt % 2)
        tilted[:] = -np.inf
        for slot in range(arcs.count[0]):
            if arcs.mean[slot] > 0.0:
                tilted[place_of(arcs.head_of[slot], arcs.word_of[slot], length)] = _noise(slot, attempt // 2)
        for i in range(trees.size[0]):
            trees.slopes[i] = 0.0
            for m in range(length):
                trees.slopes[i] += _noise(trees.slots[i, m], attempt // 2)
            if i > 0:
                trees.slopes[i] -= trees.slopes[0]
        trees.slopes[0] = 0.0
        direction(trees.inverse, trees.size[0], trees.slopes, -1, trees.step)
        for i in range(trees.size[0]):
            for m in range(length):
                tilted[place_of(trees.heads[i, m], m, length)] -= trees.step[i]
        for slot in range(arcs.count[0]):
            if arcs.mean[slot] > 0.0:
                at = place_of(arcs.head_of[slot], arcs.word_of[slot], length)
                tilted[at] = residual[at] + sign * tilted[at]

    return complete


@lean
def _noise(slot, attempt):
    """Numbers from -0.5 to 0.5 without a pattern."""
    return ((slot + 1) * (attempt + 1) * _GOLDEN) % 1.0 - 0.5
