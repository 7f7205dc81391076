"""Warm starts: which of the trees that a caller suggests can be used."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import inner
from pullback.inference.sparsemap.search import restart
from pullback.inference.sparsemap.state import place, with_room


@inner
def begin(arcs, trees, lane, scores, length, projective, multiroot, heads, weights):
    """Start from the trees a caller suggests; what is no tree, or uses a forbidden arc, is left out."""
    for i in range(len(weights)):
        if weights[i] > 0.0 and usable(scores, length, projective, multiroot, heads[i]):
            trees = with_room(trees, lane)
            place(arcs, trees, lane, scores, length, heads[i], weights[i])
            trees.sizes[lane] += 1
    if trees.sizes[lane] > 0:
        restart(arcs, trees, lane, length)
    return trees


@inner
def usable(scores, length, projective, multiroot, heads):
    """Whether heads are a tree of this kind without forbidden arcs."""
    roots = 0
    for m in range(length):
        if heads[m] < 0 or heads[m] >= length or scores[heads[m], m] == -np.inf:
            return False
        roots += heads[m] == m
    if roots > 1 and not multiroot:
        return False
    for m in range(length):
        above, steps = m, 0
        while heads[above] != above:
            above = heads[above]
            steps += 1
            if steps > length:
                return False
    return not projective or not _crosses(length, heads)


@inner
def _crosses(length, heads):
    """Whether two arcs cross; the root stands left of the first word."""
    for m in range(length):
        low, high = _ends(heads[m], m)
        for k in range(low + 1, high):
            other_low, other_high = _ends(heads[k], k)
            if other_low < low or other_high > high:
                return True
    return False


@inner
def _ends(head, word):
    return (-1 if head == word else min(head, word)), max(head, word)
