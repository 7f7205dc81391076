"""The active-set method on trees, apart from the oracle: one iteration at a time. See README.md.

Large functions have one caller each: what is inlined twice is compiled twice.
"""

from __future__ import annotations

from pullback.inference.compile import lean
from pullback.inference.sparsemap.active_set import append, direction, move, normalize, remove, reordered
from pullback.inference.sparsemap.overlap import shared
from pullback.inference.sparsemap.state import copy, mix, place

_ROUNDING = 4 * 2.0**-52
_CLOSE = 1e2  # gaps of fewer roundings than this are as small as errors of the weights, which are then refined
_AMPLIFIED = 1e4  # the same for a tree that depends on active ones, with coefficients that multiply their errors
_PATIENCE = 5  # how many such gaps need not be half of the one before


@lean
def advance(arcs, trees, scores, length, heads, exact, limit, b, result):
    """One iteration, with the tree that the oracle found.

    Args:
        arcs: the sentence's.
        trees: the active ones, with room for one more.
        scores: the sentence's, `[n, n]`.
        length: the sentence's.
        heads: the tree z = argmax <s - mu, z>.
        exact: whether the oracle is; a rough one is not asked again when it finds nothing new.
        limit: how many calls of the oracle are enough.
        b: the sentence.
        result: gap, calls, and whether it converged.

    Returns:
        Whether the search goes on.
    """
    result.calls[b] += 1
    size = trees.size[0]
    gap, rounding = improvement(arcs, scores, length, heads)
    close = size > 0 and not gap > _CLOSE * rounding
    if size > 0:
        trees.stalls[0] += close and gap > 0.5 * result.gap[b]
        result.gap[b], result.converged[b] = gap, not gap > rounding or trees.stalls[0] > _PATIENCE
        if result.converged[b] or result.calls[b] >= limit or (close and not exact):
            return False
    place(arcs, trees, scores, length, heads, 1.0 if size == 0 else 0.0)
    stale, new = size == 0 or trees.changes[0] > 64 + 4 * size, True
    if stale:
        trees.size[0] += 1
    elif not extend(trees, length):
        # Without rounding its gap would be zero, the mean being the minimum on the affine hull.
        if exact and trees.changes[0] == 0:
            result.converged[b] = not gap > _AMPLIFIED * rounding
            return False
        stale, new = exact, False
    if stale:
        rebuild(arcs, trees, length)
    refined = stale or close or not new
    for _ in range(3 if stale else 2 if refined else 1):
        only = -1
        if refined:
            _measure(arcs, trees, length)
        else:
            for i in range(size):
                trees.slopes[i] = 0.0
            trees.slopes[size] = gap
            only = size
        _settle(trees, length, only)
        mix(arcs, trees, length)
    return new or exact


@lean
def improvement(arcs, scores, length, heads):
    """`<s - mu, z - mu>` for a tree z, and how much of it may be rounding."""
    gain, size = 0.0, float(length)
    for m in range(length):
        h = heads[m]
        slot = arcs.slot_of[h, m]
        if slot >= 0:
            slack = arcs.scores[slot] - arcs.mean[slot]
        else:
            slack = scores[h, m] - arcs.shifts[m]
        gain += slack
        size += abs(slack)
    own, own_size = _of_the_mean(arcs)
    return gain - own, _ROUNDING * (size + own_size)


@reordered
def _of_the_mean(arcs):
    own, size = 0.0, 0.0
    for slot in range(arcs.count[0]):
        term = (arcs.scores[slot] - arcs.mean[slot]) * arcs.mean[slot]
        own += term
        size += abs(term)
    return own, size


@lean
def extend(trees, length):
    """Activate the tree behind the active ones, if it is affinely independent of them."""
    size = trees.size[0]
    width = trees.heads.shape[1]
    for i in range(size):
        count = shared(trees.heads, i * width, trees.heads, size * width, width)
        trees.gram[i] = count - (width - length)
    independent = append(trees.inverse, size, trees.gram, float(length), trees.step)
    trees.changes[0] += independent
    trees.size[0] += independent
    return independent


@lean
def rebuild(arcs, trees, length):
    """Compute inverse and slopes from the trees and their weights, whatever these are."""
    size, trees.size[0] = trees.size[0], 0
    total = 0.0
    for i in range(size):
        kept = trees.size[0]
        copy(trees, kept, i, length)
        if extend(trees, length):
            total += trees.weights[kept]
    trees.changes[0] = 0
    for i in range(trees.size[0]):
        trees.weights[i] /= total
    mix(arcs, trees, length)


@lean
def _measure(arcs, trees, length):
    """The slopes of all active trees, less the first one's."""
    for i in range(trees.size[0]):
        trees.slopes[i] = 0.0
        for m in range(length):
            slot = trees.slots[i, m]
            trees.slopes[i] += arcs.scores[slot] - arcs.mean[slot]
        if i > 0:
            trees.slopes[i] -= trees.slopes[0]
    trees.slopes[0] = 0.0


@lean
def _settle(trees, length, only):
    """Step to the minimum on the affine hull, dropping the trees whose weight vanishes on the way.

    If `only` is a tree and not -1, all slopes but its are zero. They stay so when a part of the step is made.
    """
    while True:
        size = trees.size[0]
        direction(trees.inverse, size, trees.slopes, only, trees.step)
        far, blocking = move(trees.weights, size, trees.step)
        if blocking < 0:
            normalize(trees.weights, size)  # large slopes make large rounding errors of a step that should sum to zero
            return
        trees.weights[blocking] = 0.0
        for i in range(size - 1, -1, -1):
            trees.slopes[i] *= 1.0 - far  # up to a constant, which does not matter
            if trees.weights[i] <= 0.0:
                remove(trees.inverse, size, i, trees.step)
                size -= 1
                only = -1 if only == i else i if only == size else only
                trees.slopes[i] = trees.slopes[size]
                copy(trees, i, size, length)
                trees.changes[0] += 1
        trees.size[0] = size
