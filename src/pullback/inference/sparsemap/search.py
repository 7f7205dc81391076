"""The active-set method on trees, apart from the oracle: one iteration at a time. See README.md.

Large functions have one caller each: what is inlined twice is compiled twice.
"""

from __future__ import annotations

from pullback.inference.compile import lean
from pullback.inference.sparsemap.active_set import append, direction, move, remove, reordered
from pullback.inference.sparsemap.overlap import shared
from pullback.inference.sparsemap.state import copy, mix, place

_ROUNDING = 4 * 2.0**-52
_CLOSE = 1e4  # gaps of fewer roundings than this are as small as errors of the weights, which are then refined
_PATIENCE = 5  # how many such gaps need not be half of the one before
_MANY = 4  # trees a word: larger faces may have dimensions that the search has not found


@lean
def advance(arcs, trees, lane, scores, length, heads, exact, limit, b, result):
    """One iteration, with the tree that the oracle found.

    Args:
        arcs: of all lanes.
        trees: of all lanes, with room for one more in this one.
        lane: whose.
        scores: the sentence's, `[n, n]`.
        length: the sentence's.
        heads: the tree z = argmax <s - mu, z>.
        exact: whether the oracle is; a rough one is not asked again when it finds nothing new.
        limit: how many calls of the oracle are enough.
        b: the sentence.
        result: gap, calls, whether it converged, and whether the active set may not span the face of mu.

    Returns:
        Whether the search goes on.
    """
    result.calls[b] += 1
    size = trees.sizes[lane]
    gap, rounding = improvement(arcs, lane, scores, length, heads)
    close = size > 0 and not gap > _CLOSE * rounding
    if size > 0:
        trees.stalls[lane] += close and gap > 0.5 * result.gap[b]
        patience = _PATIENCE if gap <= 100 * rounding else 10 * _PATIENCE
        result.gap[b], result.converged[b] = gap, not gap > rounding or trees.stalls[lane] > patience
        result.partial[b] = gap > rounding or size > _MANY * length
        if result.converged[b] or result.calls[b] >= limit or (close and not exact):
            return False
    place(arcs, trees, lane, scores, length, heads, 1.0 if size == 0 else 0.0)
    stale = size == 0 or trees.changes[lane] > 64 + 4 * size
    if stale:
        trees.sizes[lane] += 1
    elif not extend(trees, lane, length):
        # Without rounding its gap would be zero, the mean being the minimum on the affine hull.
        if trees.changes[lane] == 0 or not exact:
            result.converged[b] = close
            return False
        stale = True
    if stale:
        rebuild(arcs, trees, lane, length)
    for _ in range(3 if stale or close else 1):
        if stale or close:
            _measure(arcs, trees, lane, length)
            first = 0
        else:
            for i in range(size):
                trees.slopes[i] = 0.0
            trees.slopes[size] = gap
            first = size
        _settle(trees, lane, length, first)
        mix(arcs, trees, lane, length)
    return True


@lean
def improvement(arcs, lane, scores, length, heads):
    """`<s - mu, z - mu>` for a tree z, and how much of it may be rounding."""
    gain, size = 0.0, float(length)
    for m in range(length):
        h = heads[m]
        slot = arcs.slot_of[lane, h, m]
        if slot >= 0:
            slack = arcs.scores[lane, slot] - arcs.mean[lane, slot]
        else:
            slack = scores[h, m] - arcs.shifts[lane, m]
        gain += slack
        size += abs(slack)
    own, own_size = _of_the_mean(arcs, lane)
    return gain - own, _ROUNDING * (size + own_size)


@reordered
def _of_the_mean(arcs, lane):
    own, size = 0.0, 0.0
    for slot in range(arcs.counts[lane]):
        term = (arcs.scores[lane, slot] - arcs.mean[lane, slot]) * arcs.mean[lane, slot]
        own += term
        size += abs(term)
    return own, size


@lean
def extend(trees, lane, length):
    """Activate the tree behind the active ones, if it is affinely independent of them."""
    size = trees.sizes[lane]
    capacity, width = trees.heads.shape[1], trees.heads.shape[2]
    start = lane * capacity * width
    for i in range(size):
        count = shared(trees.heads, start + i * width, trees.heads, start + size * width, width)
        trees.gram[i] = count - (width - length)
    independent = append(trees.inverse, trees.sums, lane, size, trees.gram, float(length), trees.step)
    trees.changes[lane] += independent
    trees.sizes[lane] += independent
    return independent


@lean
def rebuild(arcs, trees, lane, length):
    """Compute inverse and slopes from the trees and their weights, whatever these are."""
    size, trees.sizes[lane] = trees.sizes[lane], 0
    total = 0.0
    for i in range(size):
        kept = trees.sizes[lane]
        copy(trees, lane, kept, i, length)
        if extend(trees, lane, length):
            total += trees.weights[lane, kept]
    trees.changes[lane] = 0
    for i in range(trees.sizes[lane]):
        trees.weights[lane, i] /= total
    mix(arcs, trees, lane, length)


@lean
def _measure(arcs, trees, lane, length):
    """The slopes of all active trees, less the first one's."""
    for i in range(trees.sizes[lane]):
        trees.slopes[i] = 0.0
        for m in range(length):
            slot = trees.slots[lane, i, m]
            trees.slopes[i] += arcs.scores[lane, slot] - arcs.mean[lane, slot]
        if i > 0:
            trees.slopes[i] -= trees.slopes[0]
    trees.slopes[0] = 0.0


@lean
def _settle(trees, lane, length, first):
    """Step to the minimum on the affine hull, dropping the trees whose weight vanishes on the way.

    The slopes before the first are zero.
    """
    while True:
        size = trees.sizes[lane]
        direction(trees.inverse, trees.sums, lane, first, size, trees.slopes, trees.step)
        far, blocking = move(trees.weights, lane, size, trees.step)
        if blocking < 0:
            return
        trees.weights[lane, blocking] = 0.0
        for i in range(size - 1, -1, -1):
            trees.slopes[i] *= 1.0 - far  # up to a constant, which does not matter
            if trees.weights[lane, i] <= 0.0:
                remove(trees.inverse, trees.sums, lane, size, i)
                size -= 1
                trees.slopes[i] = trees.slopes[size]
                copy(trees, lane, i, size, length)
                trees.changes[lane] += 1
        trees.sizes[lane], first = size, 0
