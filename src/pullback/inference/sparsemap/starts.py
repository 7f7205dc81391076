"""Where a search starts: from trees that a caller suggests."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import inner, lean
from pullback.inference.sparsemap.state import NEVER_BUILT, mix, place, roomy, shift


@inner
def start(arcs, trees, scores, length, heads, weights, projective, multiroot):
    """Make trees active, as far as they can be used; the inverse is built when it is needed."""
    total = 0.0
    for i in range(len(weights)):
        if weights[i] > 0.0 and _usable(scores, length, projective, multiroot, heads[i]):
            trees = roomy(trees)
            place(arcs, trees, scores, length, heads[i], weights[i])
            trees.size[0] += 1
            total += weights[i]
    for i in range(trees.size[0]):
        trees.weights[i] /= total
    trees.changes[0] = NEVER_BUILT
    mix(arcs, trees, length)
    shift(arcs, scores, length)
    return trees


@lean
def _usable(scores, length, projective, multiroot, heads):
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


@lean
def _crosses(length, heads):
    """Whether two arcs cross; the root stands left of the first word."""
    for m in range(length):
        low, high = _ends(heads[m], m)
        for k in range(low + 1, high):
            other_low, other_high = _ends(heads[k], k)
            if other_low < low or other_high > high:
                return True
    return False


@lean
def _ends(head, word):
    return (-1 if head == word else min(head, word)), max(head, word)
